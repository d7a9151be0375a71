"""Check whether a function is a Mercer kernel: proofs, counterexamples, and checks of matrices."""

from ..._core import former_names
from ._counterexample import Counterexample
from ._counterexample_search import Evidence, known_counterexample
from ._validity_result import GramCheck, Validity, check_gram, validity

__getattr__ = former_names(__name__)

__all__ = [
    "Counterexample",
    "Evidence",
    "GramCheck",
    "Validity",
    "check_gram",
    "known_counterexample",
    "validity",
]
