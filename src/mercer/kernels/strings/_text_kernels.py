"""Text kernels: cosine similarity of tf-idf vectors of words or character n-grams.

Texts are split into terms by scikit-learn's analyzers, and the weights are those of its
`TfidfVectorizer`.  The weights depend on the training texts: they are computed by
`kernel.resolve(texts)`, which estimators call in `fit`.
"""

from __future__ import annotations

import inspect
from dataclasses import replace
from itertools import chain
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from ..._core import Points, single_column
from .._base import Kernel, node, option
from .._parameter_checks import is_bool, optional_dict
from .._parameter_tree import data_dependent
from .._properties import Domain, Properties
from .._sparse_features import Explicit, FeatureTerms, hash_codes
from ..vectors._dot_product import squared_norms

# Parameters of CountVectorizer that are set by the kernels and not allowed in `options`.
_RESERVED_OPTIONS = {"input", "analyzer", "ngram_range", "vocabulary", "dtype"}
_WEIGHT_TOLERANCE = 1e-12  # relative rounding error allowed in sums of weights
# Options that select terms by their counts in the training texts; they require tfidf=True.
_FITTED_OPTIONS = {"min_df", "max_df", "max_features"}


def _is_learned(tfidf: Any) -> bool:
    """Return True if the weights of the terms are learned from the training texts."""
    return not isinstance(tfidf, dict) and bool(tfidf)


@node
class TextKernel(Explicit):
    """Base class of text kernels.

    k(x, z) = <v(x), v(z)> / (|v(x)| |v(z)|),   v_t(x) = (count of the term t in x) * weight_t
    """

    ngrams: tuple[int, int] = (1, 1)
    tfidf: Any = data_dependent(True, is_rule=_is_learned)
    sublinear_tf: bool = False
    smooth_idf: bool = True
    options: dict[str, Any] | None = option(None, optional_dict)

    _analyzer: ClassVar[str]

    def _properties(self, *inner: Properties) -> Properties:
        return replace(super()._properties(*inner), diagonal_bound=1.0)

    def _domain(self, *inner: Domain) -> Domain:
        return Domain("texts", discrete=True)

    def _check(self) -> None:
        name = type(self).__name__
        ngrams = self.ngrams
        pair = isinstance(ngrams, (tuple, list)) and len(ngrams) == 2
        if not pair or not all(isinstance(n, (int, np.integer)) for n in ngrams):
            raise TypeError(
                f"{name}: ngrams must be a pair of integers (shortest, longest), got {ngrams!r}"
            )
        if not 1 <= ngrams[0] <= ngrams[1]:
            raise ValueError(
                f"{name}: ngrams must satisfy 1 <= shortest <= longest, got {ngrams!r}"
            )
        object.__setattr__(self, "ngrams", (int(ngrams[0]), int(ngrams[1])))
        if isinstance(self.tfidf, dict):
            object.__setattr__(self, "tfidf", dict(self.tfidf))
        elif not is_bool(self.tfidf):
            raise TypeError(
                f"{name}: tfidf must be True, False, or a dictionary of weights, got {self.tfidf!r}"
            )
        if self.options is not None:
            object.__setattr__(self, "options", dict(self.options))
            self._check_options(self.options)

    def _check_options(self, options: dict[str, Any]) -> None:
        from sklearn.feature_extraction.text import CountVectorizer

        name = type(self).__name__
        allowed = set(inspect.signature(CountVectorizer).parameters) - _RESERVED_OPTIONS
        if unknown := sorted(set(options) - allowed):
            raise ValueError(
                f"{name}: unknown option {unknown[0]!r}; the options of CountVectorizer that "
                f"can be passed are {sorted(allowed)}"
            )
        if (fitted := sorted(_FITTED_OPTIONS & set(options))) and self.tfidf is False:
            raise ValueError(
                f"{name}: the option {fitted[0]} selects terms by their counts in the training "
                f"texts, which tfidf=False does not use; set tfidf=True"
            )

    # ------------------------------------------------------------------ texts

    def _vectorizer(self, **options: Any) -> Any:
        from sklearn.feature_extraction.text import CountVectorizer

        merged = {**(self.options or {}), **options}
        return CountVectorizer(analyzer=self._analyzer, ngram_range=self.ngrams, **merged)

    def _texts(self, X: Points) -> list[Any]:
        name = type(self).__name__
        if isinstance(X, (str, bytes)):
            raise TypeError(
                f"{name} takes a collection of texts, got the single text {X!r:.60}; "
                f"put it in a list"
            )
        texts = list(single_column(X, name))
        for i, text in enumerate(texts):
            if not isinstance(text, (str, bytes)):
                raise TypeError(f"{name}: point {i} is {text!r:.60}, not a string")
        return texts

    def _terms(self, X: Points) -> FeatureTerms:
        texts = self._texts(X)
        analyze = self._vectorizer().build_analyzer()
        term_lists = [analyze(text) for text in texts]
        vocabulary: dict[str, int] = {}
        column = [
            vocabulary.setdefault(term, len(vocabulary)) for term in chain.from_iterable(term_lists)
        ]
        owner = np.repeat(np.arange(len(texts)), [len(terms) for terms in term_lists])
        counts = sp.csr_array(
            (np.ones(len(column)), (owner, column)),
            shape=(len(texts), len(vocabulary)),
            dtype=float,
        )
        counts.sum_duplicates()
        if (self.options or {}).get("binary"):
            counts.data[:] = 1.0
        if self.sublinear_tf:
            counts.data = np.log(counts.data) + 1.0
        names = list(vocabulary)
        if isinstance(self.tfidf, dict):
            # As in scikit-learn, terms without a weight have weight 0, also in the norm.
            weights = np.array([self.tfidf.get(name, 0.0) for name in names], dtype=float)
            counts.data *= weights[counts.indices]
        norms = np.sqrt(squared_norms(counts))
        phi = counts.tocoo()
        value = np.divide(phi.data, norms[phi.row], out=phi.data, where=norms[phi.row] > 0)
        code = hash_codes(names, type(self).__name__, "terms")
        return FeatureTerms(len(texts), phi.row, code[phi.col], value)

    # ------------------------------------------------------------------ weights

    def _resolve(self, X: Points, weights: np.ndarray | None, targets: np.ndarray | None) -> Kernel:
        texts = self._texts(X)
        weights = np.ones(len(texts)) if weights is None else weights
        n, smooth = float(np.sum(weights)), float(bool(self.smooth_idf))
        try:
            names, frequency = self._vocabulary(texts, weights)
        except ValueError as error:
            raise ValueError(
                f"{type(self).__name__}: {error} ({len(texts)} texts, the first is "
                f"{texts[0] if texts else None!r:.40}); try shorter ngrams or other options"
            ) from None
        idf = np.log((n + smooth) / (frequency + smooth)) + 1.0
        return self._with({"tfidf": dict(zip(names.tolist(), idf.tolist(), strict=True))})

    def _vocabulary(self, texts: list[Any], weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the terms, and for each term the total weight of the texts that contain it.

        `min_df`, `max_df` and `max_features` have the same meaning as in `CountVectorizer`, except
        that a text of weight 2 counts as two texts.
        """
        settings = self._vectorizer()
        settings._validate_params()
        vectorizer = self._vectorizer(min_df=1, max_df=1.0, max_features=None)
        counts = vectorizer.fit_transform(texts)
        names, n = vectorizer.get_feature_names_out(), float(np.sum(weights))
        frequency = np.asarray(weights @ (counts > 0), dtype=float)
        low, high = (
            float(limit) if isinstance(limit, Integral) else limit * n
            for limit in (settings.min_df, settings.max_df)
        )
        if low == 1.0:  # min_df=1 keeps all terms, even if all weights are less than 1
            low = 0.0
        if high < low:
            raise ValueError("max_df corresponds to < documents than min_df")
        below_max = frequency <= high * (1.0 + _WEIGHT_TOLERANCE)
        selected = np.flatnonzero(below_max & (frequency >= low * (1.0 - _WEIGHT_TOLERANCE)))
        if settings.max_features is not None and len(selected) > settings.max_features:
            totals = np.asarray(weights @ counts, dtype=float)[selected]
            if np.all(totals == np.round(totals)):
                # integers as in CountVectorizer, so that `argsort` breaks ties in the same way
                totals = totals.astype(np.int64)
            selected = np.sort(selected[(-totals).argsort()[: settings.max_features]])
        if not len(selected):
            raise ValueError(
                "After pruning, no terms remain. Try a lower min_df or a higher max_df."
            )
        return names[selected], frequency[selected]

    def __str__(self) -> str:
        shown = f"{len(self.tfidf)} weights" if isinstance(self.tfidf, dict) else f"{self.tfidf}"
        return f"{type(self).__name__}(ngrams={self.ngrams}, tfidf={shown})"


@node
class BagOfWords(TextKernel):
    """Bag-of-words kernel: cosine similarity of the tf-idf vectors of the words of two texts.

        k(x, z) = <v(x), v(z)> / (|v(x)| |v(z)|),   v_t(x) = (count of the term t in x) * weight_t

    It equals ``linear_kernel(TfidfVectorizer().fit(train).transform(texts), ...)``.  A text without
    any known word has k = 0 with all texts, including itself.

    Parameters
    ----------
    ngrams : (int, int), default=(1, 1)
        The shortest and the longest n-gram of words to use as a term.  (1, 2) adds pairs of
        neighbouring words, which helps if there are many texts.
    tfidf : bool or dict, default=True
        The weights of the terms.  If True, `resolve` replaces it by a dictionary of the weights
        log((1 + n) / (1 + n_t)) + 1, where n_t of the n training texts contain the term t; terms
        that do not occur in the training texts have weight 0.  If False, all terms have weight 1
        and nothing is learned.  A dictionary {term: weight} sets the weights directly.
    sublinear_tf : bool, default=False
        Whether to replace a count c by 1 + log(c).  Choose True for long texts, in which frequent
        words would dominate.
    smooth_idf : bool, default=True
        Whether to add 1 to n and n_t in the weights, as in the formula above.
    options : dict, optional
        Other parameters of scikit-learn's `CountVectorizer`, such as `stop_words`,
        `token_pattern` or `min_df`.  For `min_df`, `max_df` and `max_features`, a text with sample
        weight 2 counts as two texts.

    See Also
    --------
    BagOfNgrams : N-grams of characters; for short or misspelt texts and many languages.
    Spectrum : Counts n-grams of characters without weights and without learning.
    Cosine : If the tf-idf vectors are already computed.

    Notes
    -----
    The kernel matrix is a product of sparse matrices.  The order and the meaning of words are
    ignored.  After `resolve`, the kernel contains a weight for each term, and its repr shows all of
    them.

    References
    ----------
    Salton and Buckley, "Term-weighting approaches in automatic text retrieval", Information
    Processing & Management 24, 1988. Joachims, "Text categorization with support vector machines:
    learning with many relevant features", ECML 1998.

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

    _analyzer: ClassVar[str] = "word"


@node
class BagOfNgrams(TextKernel):
    """Cosine similarity of the tf-idf vectors of the character n-grams of two texts.

        k(x, z) = <v(x), v(z)> / (|v(x)| |v(z)|),   v_t(x) = (count of the term t in x) * weight_t

    Parameters
    ----------
    ngrams : (int, int), default=(3, 3)
        The shortest and the longest n-gram of characters to use as a term.  Lengths of 2 to 5 are
        usual, such as (2, 4).
    tfidf : bool or dict, default=True
        The weights of the terms, as in `BagOfWords`.
    sublinear_tf : bool, default=False
        Whether to replace a count c by 1 + log(c), as in `BagOfWords`.
    smooth_idf : bool, default=True
        Whether to smooth the tf-idf weights, as in `BagOfWords`.
    options : dict, optional
        Other parameters of scikit-learn's `CountVectorizer`, as in `BagOfWords`.

    See Also
    --------
    BagOfWords : Words instead of characters; for long, well-spelt texts.
    Spectrum : N-grams of strings such as DNA, case-sensitive and without weights.

    Notes
    -----
    Character n-grams do not depend on word boundaries and tolerate inflection and spelling errors.
    Prefer them to words for short or misspelt texts, and to identify languages.  As in
    scikit-learn, texts are converted to lower case and runs of white space to one space, unless
    `options` changes that.  `Spectrum` counts the same n-grams without weights.  The kernel matrix
    is a product of sparse matrices.  A text that is shorter than the shortest n-gram has k = 0 with
    all texts, including itself.

    References
    ----------
    Cavnar and Trenkle, "N-gram-based text categorization", SDAIR 1994.

    Examples
    --------
    >>> from mercer.kernels import BagOfNgrams
    >>> BagOfNgrams(tfidf=False)(["kernel"], ["kernels", "colonel"]).round(2)
    array([[0.89, 0.22]])
    """

    ngrams: tuple[int, int] = (3, 3)

    _analyzer: ClassVar[str] = "char"
