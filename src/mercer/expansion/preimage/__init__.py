"""Pre-images: points z for which phi(z) is close to a given element of the RKHS."""

from ._closed_form_preimage import choose_regression_map, evenly_spaced_indices
from ._iterative_preimage import batched_lbfgs
from ._preimage import (
    PreImageOptions,
    PreImages,
    concatenate_preimages,
    local_preimage_method,
    preimage,
)
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
