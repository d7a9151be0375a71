from ._compare_models import compare
from ._comparison_result import Comparison, ModelResult
from ._registry import (
    MODELS,
    EmbeddingRequest,
    KernelDistanceModel,
    ModelSpec,
    choose_models,
    find_model,
)

__all__ = [
    "MODELS",
    "Comparison",
    "EmbeddingRequest",
    "KernelDistanceModel",
    "ModelResult",
    "ModelSpec",
    "choose_models",
    "compare",
    "find_model",
]
