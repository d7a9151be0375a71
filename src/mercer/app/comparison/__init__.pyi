from ._compare_models import MODELS, EmbeddingRequest, ModelSpec, choose_models, compare
from ._comparison_result import Comparison, ModelResult

__all__ = [
    "MODELS",
    "Comparison",
    "EmbeddingRequest",
    "ModelResult",
    "ModelSpec",
    "choose_models",
    "compare",
]
