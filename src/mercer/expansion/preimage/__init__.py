"""Pre-images: points z for which phi(z) is close to a given element of the RKHS."""

from ._batched_lbfgs import batched_lbfgs
from ._preimage import PreImages, concatenate_preimages, local_preimage_method, preimage
from ._preimage_options import PreImageOptions
from ._preimage_regression import choose_regression_map, evenly_spaced_indices
from ._preimage_target import PreImageTarget

__all__ = [
    "PreImageOptions",
    "PreImageTarget",
    "PreImages",
    "batched_lbfgs",
    "choose_regression_map",
    "concatenate_preimages",
    "evenly_spaced_indices",
    "local_preimage_method",
    "preimage",
]
