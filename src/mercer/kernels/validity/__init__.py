"""Checks whether a function is a Mercer kernel: proofs, counterexamples, and checks of matrices."""

from ._check_gram import GramCheck, check_gram
from ._search import Evidence, declared_witness
from ._verdict import Validity, validity
from ._witness import Witness

__all__ = [
    "Evidence",
    "GramCheck",
    "Validity",
    "Witness",
    "check_gram",
    "declared_witness",
    "validity",
]
