from ._compare import compare
from ._comparison import Compared, Comparison
from ._known import KNOWN, Asked, Known, chosen

__all__ = ["KNOWN", "Asked", "Compared", "Comparison", "Known", "chosen", "compare"]
