from ._compare_models import compare
from ._comparison_result import Comparison, ModelResult
from ._model_registry import MODELS, EmbeddingRequest, ModelSpec, choose_models

__all__ = [
    "MODELS",
    "Comparison",
    "EmbeddingRequest",
    "ModelResult",
    "ModelSpec",
    "choose_models",
    "compare",
]
