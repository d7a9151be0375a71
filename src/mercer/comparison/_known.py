"""The models that have names, and which of them are taken when nobody says which."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable as Function
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sklearn.base import clone
from sklearn.decomposition import PCA

from ..estimators import (
    GPLVM,
    Autoencoder,
    BayesianGPLVM,
    KernelPCA,
    MetricMDS,
    ProbabilisticPCA,
)

__all__ = ["KNOWN", "Asked", "Known", "chosen"]

_MANY = 5000  # points beyond which to learn a way back takes minutes


@dataclass(frozen=True)
class Asked:
    """What a model is made for: n points, vectors of d columns or not, in q dimensions.

    Examples
    --------
    >>> from mercer.comparison import Asked
    >>> Asked(100, 2, "rbf").distance  # of vectors, it is Euclid's
    'linear'
    """

    n: int
    q: int
    kernel: Any
    vectors: bool = True
    gaps: bool = False
    seed: int = 0
    max_memory: Any = None
    d: int = 1

    @property
    def distance(self) -> Any:
        """The kernel whose distance is that of the points: Euclid's for vectors."""
        return "linear" if self.vectors else self.kernel


@dataclass(frozen=True)
class Known:
    """A model with a name: how it is made, and when it is taken without being asked for.

    Attributes
    ----------
    make : function
        Makes the estimator for what is `Asked`.
    most : int or None
        Points up to which it is taken: within a minute or so.
    values : int or None
        Values of X, n times its columns, up to which it is taken, for the same reason.
    points : bool
        Whether it takes points that are no vectors.
    gaps : bool
        Whether it is taken where values are missing, and only there.

    Examples
    --------
    >>> from mercer.comparison import KNOWN, Asked
    >>> KNOWN["autoencoder"].refuses(Asked(20_000, 2, "rbf"))
    '20000 points are more than 5000, and it would take long'
    """

    make: Function[[Asked], Any]
    most: int | None = None
    values: int | None = None
    points: bool = False
    gaps: bool = False

    def made(self, asked: Asked) -> Any:
        """Return the estimator, with the seed and the budget if it has any."""
        model = self.make(asked)
        given = {"random_state": asked.seed, "max_memory": asked.max_memory}
        return model.set_params(**{k: v for k, v in given.items() if k in model.get_params()})

    def refuses(self, asked: Asked) -> str:
        """Return why it is not taken unasked; an empty text if it is."""
        if not (asked.vectors or self.points):
            return "it takes vectors"
        if asked.gaps != self.gaps:
            return "values are missing" if asked.gaps else "it is PCA, where no value is missing"
        if self.most is not None and asked.n > self.most:
            return f"{asked.n} points are more than {self.most}, and it would take long"
        if self.values is not None and asked.n * asked.d > self.values:
            many = f"{asked.n} x {asked.d} values are more than {self.values}"
            return f"{many}, and it would take long"
        return ""


KNOWN: dict[str, Known] = {
    "PCA": Known(lambda a: PCA(a.q)),
    "PPCA": Known(lambda a: ProbabilisticPCA(a.q), gaps=True),
    "kernel PCA": Known(
        lambda a: KernelPCA(a.q, kernel=a.kernel, fit_inverse_transform=a.vectors and a.n <= _MANY),
        points=True,
    ),
    "MDS": Known(lambda a: MetricMDS(a.q, kernel=a.distance), 10_000, points=True),
    "Sammon": Known(
        lambda a: MetricMDS(a.q, stress="sammon", kernel=a.distance), 10_000, points=True
    ),
    "autoencoder": Known(lambda a: Autoencoder(a.q), 5000, values=250_000),
    "GPLVM": Known(lambda a: GPLVM(a.q), 1000),
    "Bayesian GPLVM": Known(lambda a: BayesianGPLVM(a.q), 3000),
}


def chosen(models: Any, asked: Asked) -> tuple[dict[str, Any], dict[str, str]]:
    """Return estimators by name, not fitted, and why others were left out.

    Examples
    --------
    >>> from mercer.comparison import Asked, chosen
    >>> models, left_out = chosen(None, Asked(20_000, 2, "rbf"))
    >>> list(models), list(left_out)
    (['PCA', 'kernel PCA'], ['PPCA', 'MDS', 'Sammon', 'autoencoder', 'GPLVM', 'Bayesian GPLVM'])
    """
    if models is None:
        reasons = {name: known.refuses(asked) for name, known in KNOWN.items()}
        taken = {name: KNOWN[name].made(asked) for name, why in reasons.items() if not why}
        return taken, {name: why for name, why in reasons.items() if why}
    if isinstance(models, Mapping):
        given = list(models.items())
    else:
        given = [(None, one) for one in ([models] if _is_one(models) else models)]
    found: dict[str, Any] = {}
    for label, one in given:
        name = _named(one) if isinstance(one, str) else type(one).__name__
        if not isinstance(one, str) and not _is_one(one):
            raise TypeError(f"models are names or estimators with fit_transform, got {one!r}")
        model = KNOWN[name].made(asked) if isinstance(one, str) else clone(one)
        found[_free(str(label or name), found)] = model
    if not found:
        raise ValueError("models is empty: name at least one, or leave it out")
    return found, {}


def _is_one(model: Any) -> bool:
    return isinstance(model, str) or hasattr(model, "fit_transform") or hasattr(model, "transform")


def _free(name: str, taken: dict[str, Any]) -> str:
    """Return the name, with a number if it is taken."""
    names = [name, *(f"{name} {k}" for k in range(2, len(taken) + 2))]
    return next(one for one in names if one not in taken)


def _named(name: str) -> str:
    """Return the name in the table that is meant, whatever its case and spaces."""
    names = {_bare(known): known for known in KNOWN}
    names |= {"kernelpca": "kernel PCA", "metricmds": "MDS", "probabilisticpca": "PPCA"}
    if _bare(name) in names:
        return names[_bare(name)]
    near = difflib.get_close_matches(_bare(name), names, 1, cutoff=0.5)
    hint = f"; did you mean {names[near[0]]!r}?" if near else ";"
    raise ValueError(f"there is no model {name!r}{hint} there are {', '.join(KNOWN)}")


def _bare(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
