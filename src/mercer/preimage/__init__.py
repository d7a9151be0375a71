"""Pre-images: points z with phi(z) close to a given element of the RKHS (arrays in, arrays out)."""

from ._descent import descend
from ._learned import choose_map, evenly
from ._preimage import PreImages, joined, local_method, preimage
from ._target import Target
from ._validation import Options

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
