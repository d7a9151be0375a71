from ._compare_models import compare
from ._comparison_result import Compared, Comparison
from ._model_registry import KNOWN, Asked, Known, chosen

__all__ = ["KNOWN", "Asked", "Compared", "Comparison", "Known", "chosen", "compare"]
