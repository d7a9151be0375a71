"""Checks whether a function is a Mercer kernel: proofs, counterexamples, and checks of matrices."""

from ._check_gram import GramCheck, check_gram
from ._counterexample import Witness
from ._counterexample_search import Evidence, declared_witness
from ._validity_result import Validity, validity

__all__ = [
    "Evidence",
    "GramCheck",
    "Validity",
    "Witness",
    "check_gram",
    "declared_witness",
    "validity",
]
