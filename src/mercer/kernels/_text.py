"""Kernels of texts: the cosine of counts of words or of character n-grams, weighted by tf-idf.

Texts are cut by scikit-learn's analyzers, and the weights are those of its `TfidfVectorizer`.  A
term has the weight it has in the training texts, so that the kernel knows them only after
`kernel.resolve(texts)`, which estimators call in `fit`.
"""

from __future__ import annotations

import inspect
from itertools import chain
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from .._points import only_column
from ._base import node
from ._dot import squared_norms
from ._explicit import Explicit, Terms, codes_of

__all__ = ["BagOfNgrams", "BagOfWords", "TextKernel"]

_OWN = {"input", "analyzer", "ngram_range", "vocabulary", "dtype"}  # the kernels have them
_ROUNDING = 1e-12  # relative error allowed in sums of weights
_LEARNED = {"min_df", "max_df", "max_features"}  # from the training texts, as the weights are


class TextKernel(Explicit):
    """k(x, z) = <v(x), v(z)> / (|v(x)| |v(z)|), v_t(x) = (count of the term t in x) * weight_t."""

    # Not a node: the fields are those of the kernels, in an order of their own.
    ngrams: tuple[int, int]
    tfidf: Any
    sublinear_tf: bool
    smooth_idf: bool
    options: dict[str, Any] | None

    _analyzer: ClassVar[str]
    domain: ClassVar[str] = "texts"

    def _check(self) -> None:
        name = type(self).__name__
        ngrams = self.ngrams
        pair = isinstance(ngrams, (tuple, list)) and len(ngrams) == 2
        if not pair or not all(isinstance(n, (int, np.integer)) for n in ngrams):
            raise TypeError(f"{name}: ngrams must be (shortest, longest), got {ngrams!r}")
        if not 1 <= ngrams[0] <= ngrams[1]:
            raise ValueError(f"{name}: ngrams must be 1 <= shortest <= longest, got {ngrams!r}")
        object.__setattr__(self, "ngrams", (int(ngrams[0]), int(ngrams[1])))
        if isinstance(self.tfidf, dict):
            object.__setattr__(self, "tfidf", dict(self.tfidf))
        elif not isinstance(self.tfidf, (bool, np.bool_)):
            raise TypeError(
                f"{name}: tfidf must be True, False, or a dictionary of weights, got {self.tfidf!r}"
            )
        if self.options is not None:
            if not isinstance(self.options, dict):
                raise TypeError(f"{name}: options must be a dict, got {self.options!r}")
            object.__setattr__(self, "options", dict(self.options))
            self._check_options(self.options)

    def _check_options(self, options: dict[str, Any]) -> None:
        from sklearn.feature_extraction.text import CountVectorizer

        name = type(self).__name__
        known = set(inspect.signature(CountVectorizer).parameters) - _OWN
        if unknown := sorted(set(options) - known):
            raise ValueError(
                f"{name}: {unknown[0]!r} is no option; those of CountVectorizer that can be given "
                f"are {sorted(known)}"
            )
        if (learned := sorted(_LEARNED & set(options))) and self.tfidf is False:
            raise ValueError(
                f"{name}: {learned[0]} is learned from the training texts, which tfidf=False does "
                f"not look at; use tfidf=True"
            )

    # ------------------------------------------------------------------ texts

    def _vectorizer(self, **options: Any) -> Any:
        from sklearn.feature_extraction.text import CountVectorizer

        given = {**(self.options or {}), **options}
        return CountVectorizer(analyzer=self._analyzer, ngram_range=self.ngrams, **given)

    def _texts(self, X: Any) -> list:
        name = type(self).__name__
        if isinstance(X, (str, bytes)):
            raise TypeError(f"{name} takes a collection of texts, got the one text {X!r:.60}")
        texts = list(only_column(X, name))
        for place, text in enumerate(texts):
            if not isinstance(text, (str, bytes)):
                raise TypeError(f"{name}: point {place} is {text!r:.60}, not a string")
        return texts

    def _terms(self, X: Any) -> Terms:
        texts = self._texts(X)
        analyze = self._vectorizer().build_analyzer()
        found = [analyze(text) for text in texts]
        places: dict[str, int] = {}
        place = [places.setdefault(term, len(places)) for term in chain.from_iterable(found)]
        owner = np.repeat(np.arange(len(texts)), [len(terms) for terms in found])
        counts = sp.csr_array(
            (np.ones(len(place)), (owner, place)), shape=(len(texts), len(places)), dtype=float
        )
        counts.sum_duplicates()
        if (self.options or {}).get("binary"):
            counts.data[:] = 1.0
        if self.sublinear_tf:
            counts.data = np.log(counts.data) + 1.0
        names = list(places)
        if isinstance(self.tfidf, dict):
            # as in scikit-learn, a term that has no weight is left out of the length, too
            weights = np.array([self.tfidf.get(name, 0.0) for name in names], dtype=float)
            counts.data *= weights[counts.indices]
        norms = np.sqrt(squared_norms(counts))
        phi = counts.tocoo()
        value = np.divide(phi.data, norms[phi.row], out=phi.data, where=norms[phi.row] > 0)
        code = codes_of(names, type(self).__name__, "terms")
        return Terms(len(texts), phi.row, code[phi.col], value)

    # ------------------------------------------------------------------ weights

    def _rules(self) -> list[str]:
        return ["tfidf"] if not isinstance(self.tfidf, dict) and self.tfidf else []

    def _resolve_own(self, X: Any, weights: np.ndarray | None) -> dict[str, Any]:
        if not self._rules():
            return {}
        texts = self._texts(X)
        weights = np.ones(len(texts)) if weights is None else weights
        n, smooth = float(np.sum(weights)), float(bool(self.smooth_idf))
        try:
            names, frequency = self._vocabulary(texts, weights)
        except ValueError as error:
            raise ValueError(
                f"{type(self).__name__}: {error} ({len(texts)} texts, the first "
                f"{texts[0] if texts else None!r:.40}); shorter ngrams or other options may help"
            ) from None
        idf = np.log((n + smooth) / (frequency + smooth)) + 1.0
        return {"tfidf": dict(zip(names.tolist(), idf.tolist(), strict=True))}

    def _vocabulary(self, texts: list, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the terms, and the sum of the weights of the texts that contain each of them.

        `min_df`, `max_df` and `max_features` are those of `CountVectorizer`, which counts texts:
        here a text of weight 2 counts as two texts.
        """
        given = self._vectorizer()
        given._validate_params()
        vectorizer = self._vectorizer(min_df=1, max_df=1.0, max_features=None)
        counts = vectorizer.fit_transform(texts)
        names, n = vectorizer.get_feature_names_out(), float(np.sum(weights))
        frequency = np.asarray(weights @ (counts > 0), dtype=float)
        low, high = (
            float(limit) if isinstance(limit, Integral) else limit * n
            for limit in (given.min_df, given.max_df)
        )
        if low == 1.0:  # "in some text", also where all weights are smaller than 1
            low = 0.0
        if high < low:
            raise ValueError("max_df corresponds to < documents than min_df")
        common = frequency <= high * (1.0 + _ROUNDING)
        kept = np.flatnonzero(common & (frequency >= low * (1.0 - _ROUNDING)))
        if given.max_features is not None and len(kept) > given.max_features:
            totals = np.asarray(weights @ counts, dtype=float)[kept]
            if np.all(totals == np.round(totals)):
                totals = totals.astype(np.int64)  # as there, so that ties are broken as there
            kept = np.sort(kept[(-totals).argsort()[: given.max_features]])
        if not len(kept):
            raise ValueError(
                "After pruning, no terms remain. Try a lower min_df or a higher max_df."
            )
        return names[kept], frequency[kept]

    diagonal_bound: ClassVar[float] = 1.0

    discrete: ClassVar[bool] = True

    def __str__(self) -> str:
        shown = f"{len(self.tfidf)} weights" if isinstance(self.tfidf, dict) else f"{self.tfidf}"
        return f"{type(self).__name__}(ngrams={self.ngrams}, tfidf={shown})"


@node
class BagOfWords(TextKernel):
    """k(x, z) = the cosine of the tf-idf vectors of two texts, from their words.

    Equal to ``linear_kernel(TfidfVectorizer().fit(train).transform(texts), ...)``; a text without
    any known word has k = 0, with itself too.

    Parameters
    ----------
    ngrams : (int, int), default=(1, 1)
        Runs of how many words are terms, from the shortest to the longest.
    tfidf : bool or dict, default=True
        True: a term t counts log((1 + n) / (1 + n_t)) + 1 times, if n_t of the n training texts
        have it; terms that they do not have count 0.  False: all terms count once, and nothing is
        learned.  A dictionary of weights: what True is replaced by, or your own.
    sublinear_tf : bool, default=False
        Whether a term that occurs c times counts 1 + log c instead of c.
    smooth_idf : bool, default=True
        Whether there is the 1 + in numerator and denominator.
    options : dict, optional
        Further options of scikit-learn's `CountVectorizer`: `stop_words`, `token_pattern`,
        `min_df`, ...  A text of weight 2 counts as two texts in `min_df`, `max_df` and
        `max_features`.

    Notes
    -----
    Cost: one sparse product.  The catch: words are compared as they are written, without order or
    meaning; after `resolve` the kernel holds a weight for each term, and its repr shows them all.
    References: Salton and Buckley (1988), Joachims (1998).

    Examples
    --------
    >>> from mercer.kernels import BagOfWords
    >>> texts = ["the cat sat", "the dog sat", "a bird"]
    >>> BagOfWords(tfidf=False)(texts).round(2)
    array([[1.  , 0.67, 0.  ],
           [0.67, 1.  , 0.  ],
           [0.  , 0.  , 1.  ]])
    >>> k = BagOfWords().resolve(texts)
    >>> k(["the cat"], texts).round(2)
    array([[0.86, 0.31, 0.  ]])
    """

    ngrams: tuple[int, int] = (1, 1)
    tfidf: Any = True
    sublinear_tf: bool = False
    smooth_idf: bool = True
    options: dict[str, Any] | None = None

    _analyzer: ClassVar[str] = "word"


@node
class BagOfNgrams(TextKernel):
    """k(x, z) = the cosine of the tf-idf vectors of two texts, from their character n-grams.

    Parameters
    ----------
    ngrams : (int, int), default=(3, 3)
        Runs of how many characters are terms, from the shortest to the longest.
    tfidf, sublinear_tf, smooth_idf, options
        As for `BagOfWords`.

    Notes
    -----
    Needs no notion of a word, and forgives endings and slips of the pen: the better choice for
    short or misspelt texts, and for telling languages apart.  `Spectrum` counts the same n-grams,
    without weights.  As in scikit-learn, letters are made small and runs of white space become one
    space, unless the options say otherwise.  Cost: one sparse product.  The catch: a text shorter
    than the shortest n-gram has k = 0, with itself too.  Reference: Cavnar and Trenkle (1994).

    Examples
    --------
    >>> from mercer.kernels import BagOfNgrams
    >>> BagOfNgrams(tfidf=False)(["kernel"], ["kernels", "colonel"]).round(2)
    array([[0.89, 0.22]])
    """

    ngrams: tuple[int, int] = (3, 3)
    tfidf: Any = True
    sublinear_tf: bool = False
    smooth_idf: bool = True
    options: dict[str, Any] | None = None

    _analyzer: ClassVar[str] = "char"
