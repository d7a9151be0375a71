"""Pre-images: points z with phi(z) close to a given element of the RKHS (arrays in, arrays out)."""

from ._batched_lbfgs import descend
from ._preimage import PreImages, joined, local_method, preimage
from ._preimage_options import Options
from ._preimage_regression import choose_map, evenly
from ._preimage_target import Target

__all__ = [
    "Options",
    "PreImages",
    "Target",
    "choose_map",
    "descend",
    "evenly",
    "joined",
    "local_method",
    "preimage",
]
