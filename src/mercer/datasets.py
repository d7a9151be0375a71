"""Toy data sets from the literature, and readers for files of strings and graphs.

``read_fasta`` and ``read_lines`` read strings, ``read_tudataset`` reads graphs. The functions in
the table below generate a data set. They take the number of points as their first argument and all
other arguments by keyword. They return ``(X, y)``: float64 points X of shape (n, d), and one number
per point: a class (an integer), an angle or a position. Data sets with classes are shuffled.

``random_state`` is an int, a Generator, a RandomState or None. It determines the positions, the
noise and the order of the points. The same integer gives bit-for-bit identical data; None draws a
new seed. ``noise`` is the standard deviation sigma >= 0 of the Gaussian noise that is added to each
coordinate. In the formulas below, e_i ~ N(0, I) are standard normal vectors.

================  ====  =================================  ===================================
data set          d     y                                  what it is for
================  ====  =================================  ===================================
three_clusters    2     cluster 0, 1, 2                    kernel PCA, clustering
circles           2     0 outer, 1 inner                   classes separated by a circle
moons             2     0 upper, 1 lower                   classes with a curved boundary
swiss_roll        3     position along the roll            manifold learning
cubic_curve       2     parameter t                        kernel PCA, cubic kernel
ellipse           2     angle                              kernel PCA, quadratic kernel
noisy_sine        1     the noisy values                   regression
================  ====  =================================  ===================================
"""

from __future__ import annotations

import gzip
import math
import zlib
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import make_circles, make_moons, make_swiss_roll

from ._core import RandomState, as_generator
from .kernels import Graphs

__all__ = [
    "circles",
    "cubic_curve",
    "ellipse",
    "moons",
    "noisy_sine",
    "read_fasta",
    "read_lines",
    "read_tudataset",
    "swiss_roll",
    "three_clusters",
]

Seed = int | np.random.Generator | np.random.RandomState | None
Points = NDArray[np.float64]
ToySet = tuple[Points, NDArray]

_CENTRES = np.array([[-0.5, -0.2], [0.0, 0.6], [0.5, 0.0]])


def three_clusters(n_samples: int = 90, *, std: float = 0.1, random_state: Seed = None) -> ToySet:
    """Draw three round Gaussian clusters in the plane.

        x_i = c_(y_i) + sigma e_i,    e_i ~ N(0, I),    y_i = cluster of x_i,

    with the centres c_0 = (-0.5, -0.2), c_1 = (0, 0.6), c_2 = (0.5, 0).

    This is the toy data set of the first kernel PCA paper. With an RBF kernel, the two leading
    components separate the clusters, and the next ones split each cluster into halves.

    Parameters
    ----------
    n_samples : int, default=90
        Number of points. The sizes of the clusters differ by at most one point.
    std : float, default=0.1
        Standard deviation sigma >= 0 of each coordinate around its centre. The clusters overlap
        clearly from about 0.25.
    random_state : int, Generator, RandomState or None, default=None
        Random seed or generator; None draws a new seed.

    Returns
    -------
    X, y : ndarray of shape (n_samples, 2) and (n_samples,)
        y is the cluster of each point: 0, 1 or 2.

    See Also
    --------
    circles : Classes that no line separates.
    KernelPCA : Kernel principal component analysis.

    References
    ----------
    Schölkopf, Smola and Müller, "Nonlinear component analysis as a kernel eigenvalue
    problem", Neural Computation 10, 1998.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.datasets import three_clusters
    >>> X, y = three_clusters(90, random_state=0)
    >>> X.shape
    (90, 2)
    >>> np.unique(y, return_counts=True)
    (array([0, 1, 2]), array([30, 30, 30]))
    """
    _check(n_samples, random_state, std=std)
    rng = as_generator(random_state)
    cluster = rng.permutation(np.arange(n_samples) % len(_CENTRES))
    return _noisy(_CENTRES[cluster], std, rng), cluster


def circles(
    n_samples: int = 400, *, factor: float = 0.3, noise: float = 0.05, random_state: Seed = None
) -> ToySet:
    """Draw two concentric circles.

        x_i = r (cos t_i, sin t_i) + sigma e_i,    e_i ~ N(0, I),

    with radius r = 1 for y_i = 0 and r = factor for y_i = 1; sigma is `noise`. No line separates
    the classes, but a threshold on the quadratic function |x|^2 does. With any kernel whose RKHS
    contains this function, the classes are therefore linearly separable.

    Parameters
    ----------
    n_samples : int, default=400
        Number of points, half on each circle. If it is odd, the inner circle has one more point.
    factor : float, default=0.3
        Radius of the inner circle, in [0, 1). Values close to 1 make the classes harder to
        separate.
    noise : float, default=0.05
        Standard deviation of the Gaussian noise on each coordinate.
    random_state : int, Generator, RandomState or None, default=None
        Random seed or generator; None draws a new seed.

    Returns
    -------
    X, y : ndarray of shape (n_samples, 2) and (n_samples,)
        y is 0 on the outer circle, 1 on the inner one.

    See Also
    --------
    sklearn.datasets.make_circles : Used internally; the same integer seed gives the same points.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.datasets import circles
    >>> X, y = circles(6, factor=0.5, noise=0.0, random_state=0)
    >>> radius = np.linalg.norm(X, axis=1)
    >>> bool(np.allclose(radius, np.where(y == 0, 1.0, 0.5)))
    True
    """
    _check(n_samples, random_state, factor=factor, noise=noise)
    if factor >= 1:
        raise ValueError(
            f"factor={factor} puts the inner circle on or outside the outer circle of radius 1 - "
            "usually because the ratio was inverted - "
            "try factor = inner radius / outer radius, in [0, 1)."
        )
    seed = _sklearn_seed(random_state)
    return make_circles(n_samples, factor=float(factor), noise=float(noise), random_state=seed)


def moons(n_samples: int = 400, *, noise: float = 0.05, random_state: Seed = None) -> ToySet:
    """Draw two interleaving half circles.

        x_i = (cos t_i, sin t_i) + sigma e_i              for y_i = 0,
        x_i = (1 - cos t_i, 1/2 - sin t_i) + sigma e_i    for y_i = 1,    0 <= t_i <= pi,

    where sigma is `noise` and e_i ~ N(0, I). The boundary between the classes is curved, so that a
    linear classifier fails.

    Parameters
    ----------
    n_samples : int, default=400
        Number of points, half on each moon. If it is odd, the lower moon has one more point.
    noise : float, default=0.05
        Standard deviation of the Gaussian noise on each coordinate.
    random_state : int, Generator, RandomState or None, default=None
        Random seed or generator; None draws a new seed.

    Returns
    -------
    X, y : ndarray of shape (n_samples, 2) and (n_samples,)
        y is 0 on the upper moon, 1 on the lower one.

    See Also
    --------
    sklearn.datasets.make_moons : Used internally; the same integer seed gives the same points.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.datasets import moons
    >>> X, y = moons(100, noise=0.0, random_state=0)
    >>> centre = np.where(y[:, None] == 0, [0.0, 0.0], [1.0, 0.5])
    >>> bool(np.allclose(np.linalg.norm(X - centre, axis=1), 1.0))
    True
    """
    _check(n_samples, random_state, noise=noise)
    return make_moons(n_samples, noise=float(noise), random_state=_sklearn_seed(random_state))


def swiss_roll(n_samples: int = 1000, *, noise: float = 0.0, random_state: Seed = None) -> ToySet:
    """Draw points on a rectangle rolled up in space.

        x_i = (y_i cos y_i, h_i, y_i sin y_i) + sigma e_i,
        3 pi / 2 <= y_i < 9 pi / 2,    0 <= h_i < 21,

    with y_i and h_i uniform and independent, sigma = `noise` and e_i ~ N(0, I). Methods of manifold
    learning are tested on whether they unroll the rectangle.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of points, in no particular order.
    noise : float, default=0.0
        Standard deviation of the Gaussian noise on each coordinate.
    random_state : int, Generator, RandomState or None, default=None
        Random seed or generator; None draws a new seed.

    Returns
    -------
    X, y : ndarray of shape (n_samples, 3) and (n_samples,)
        y is the position along the roll, before noise: the angle of the spiral in radians.

    See Also
    --------
    sklearn.datasets.make_swiss_roll : Used internally; the same integer seed gives the same points.
    embedding_quality : Measure how well an embedding preserves neighbours.

    References
    ----------
    Tenenbaum, de Silva and Langford, "A global geometric framework for nonlinear dimensionality
    reduction", Science 290, 2000.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.datasets import swiss_roll
    >>> X, y = swiss_roll(100, random_state=0)
    >>> bool(np.allclose(np.hypot(X[:, 0], X[:, 2]), y))
    True
    """
    _check(n_samples, random_state, noise=noise)
    X, y = make_swiss_roll(n_samples, noise=float(noise), random_state=_sklearn_seed(random_state))
    return X, y.reshape(n_samples)  # scikit-learn returns a 0-d array for a single point


def cubic_curve(n_samples: int = 200, *, noise: float = 0.0, random_state: Seed = None) -> ToySet:
    """Draw points on a plane curve that lies in a hyperplane of the cubic feature space.

        x_i = (t_i, 2 t_i^2 + t_i^3) + sigma e_i,    t_i evenly spaced over [-2, 1],

    where sigma is `noise` and e_i ~ N(0, I). The second coordinate rises to 32/27 at t = -4/3,
    falls to 0 at t = 0 and rises again to 3 at t = 1. Linear PCA cannot detect that the points lie
    on a curve. Kernel PCA with the cubic polynomial kernel (1 + <x, z>)^3 can: its RKHS contains
    x_2 - 2 x_1^2 - x_1^3, which is zero on the whole curve.

    Parameters
    ----------
    n_samples : int, default=200
        Number of points.
    noise : float, default=0.0
        Standard deviation of the Gaussian noise on each coordinate.
    random_state : int, Generator, RandomState or None, default=None
        Random seed or generator; None draws a new seed.

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
        The points, in the order of t.
    t : ndarray of shape (n_samples,)
        The parameter of each point, before noise.

    See Also
    --------
    ellipse : A closed curve, for the quadratic kernel.
    KernelPCA : Kernel principal component analysis.

    References
    ----------
    Schölkopf, Smola and Müller, "Nonlinear component analysis as a kernel eigenvalue problem",
    Neural Computation 10, 1998 (polynomial kernel PCA).

    Examples
    --------
    >>> from mercer.datasets import cubic_curve
    >>> X, t = cubic_curve(4)
    >>> t
    array([-2., -1.,  0.,  1.])
    >>> X[:, 1]
    array([0., 1., 0., 3.])
    """
    _check(n_samples, random_state, noise=noise)
    t = np.linspace(-2.0, 1.0, n_samples)
    X = np.column_stack([t, t * t * (2.0 + t)])
    return _noisy(X, noise, random_state), t


def ellipse(n_samples: int = 200, *, noise: float = 0.0, random_state: Seed = None) -> ToySet:
    """Draw points on the ellipse x_1^2 + 4 x_2^2 = 1.

        x_i = (cos t_i, sin t_i / 2) + sigma e_i,    t_i evenly spaced over [0, 2 pi),

    where sigma is `noise` and e_i ~ N(0, I). In the feature space (x_1^2, x_2^2) the ellipse is a
    line segment, so that with a quadratic polynomial kernel a linear function describes it.

    Parameters
    ----------
    n_samples : int, default=200
        Number of points.
    noise : float, default=0.0
        Standard deviation of the Gaussian noise on each coordinate.
    random_state : int, Generator, RandomState or None, default=None
        Random seed or generator; None draws a new seed.

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
        The points, in the order of the angle.
    angle : ndarray of shape (n_samples,)
        The parameter t of each point, before noise. It is the polar angle of
        (x_1, 2 x_2), not of (x_1, x_2).

    See Also
    --------
    cubic_curve : An open curve, for the cubic kernel.
    KernelPCA : Kernel principal component analysis.

    References
    ----------
    Schölkopf and Smola, "Learning with Kernels", MIT Press, 2002, chapter 2 (quadratic features).

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.datasets import ellipse
    >>> X, angle = ellipse(100)
    >>> bool(np.allclose(X[:, 0] ** 2 + 4 * X[:, 1] ** 2, 1.0))
    True
    """
    _check(n_samples, random_state, noise=noise)
    angle = np.linspace(0.0, 2.0 * np.pi, n_samples, endpoint=False)
    X = np.column_stack([np.cos(angle), 0.5 * np.sin(angle)])
    return _noisy(X, noise, random_state), angle


def noisy_sine(
    n_samples: int = 48, *, noise: float = 0.1, frequency: float = 1.0, random_state: Seed = None
) -> ToySet:
    """Draw samples of a sine wave with Gaussian noise.

        y_i = sin(2 pi f x_i) + sigma e_i,    x_i evenly spaced over [0, 1],    e_i ~ N(0, 1).

    Parameters
    ----------
    n_samples : int, default=48
        Number of points.
    noise : float, default=0.1
        Standard deviation sigma >= 0 of the Gaussian noise on y; X has no noise.
    frequency : float, default=1.0
        Number f >= 0 of periods in [0, 1].
    random_state : int, Generator, RandomState or None, default=None
        Random seed or generator; None draws a new seed.

    Returns
    -------
    X : ndarray of shape (n_samples, 1)
        The inputs, in increasing order.
    y : ndarray of shape (n_samples,)
        The noisy values.

    See Also
    --------
    KernelRidge : Kernel ridge regression.
    GaussianProcessRegressor : Regression with predictive variances.

    Examples
    --------
    >>> from mercer.datasets import noisy_sine
    >>> X, y = noisy_sine(5, noise=0.0)
    >>> X.ravel()
    array([0.  , 0.25, 0.5 , 0.75, 1.  ])
    >>> abs(y.round(6))
    array([0., 1., 0., 1., 0.])
    """
    _check(n_samples, random_state, noise=noise, frequency=frequency)
    x = np.linspace(0.0, 1.0, n_samples)
    y = np.sin(2.0 * np.pi * float(frequency) * x)
    return x[:, np.newaxis], _noisy(y, noise, random_state)


def read_tudataset(path: str | PathLike[str]) -> tuple[Graphs, NDArray]:
    r"""Read a collection of graphs in the TUDataset format, from a folder or a zip file.

    A data set NAME consists of the files NAME_A.txt (edges), NAME_graph_indicator.txt (the graph of
    each node) and NAME_graph_labels.txt. The files NAME_node_labels.txt, NAME_edge_labels.txt and
    NAME_node_attributes.txt are optional.

    Parameters
    ----------
    path : str or path
        Folder with these files, or a zip file of them.

    Returns
    -------
    X : Graphs
        Undirected graphs. If a file of labels has several columns, each label is a tuple.
    y : ndarray of shape (n,)
        Labels of the graphs. If the file of graph labels is missing, the regression targets from
        the file NAME_graph_attributes.txt.

    See Also
    --------
    Graphs : Collections of graphs.
    mercer.kernels.WeisfeilerLehman : A kernel for graphs.

    References
    ----------
    Morris, Kriege, Bause, Kersting, Mutzel and Neumann, "TUDataset: a collection of
    benchmark datasets for learning with graphs", 2020, www.graphlearning.io.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from mercer.datasets import read_tudataset
    >>> files = {"A": "1, 2\n2, 1", "graph_indicator": "1\n1\n2", "graph_labels": "1\n-1"}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name, text in files.items():
    ...         _ = Path(folder, f"PAIR_{name}.txt").write_text(text)
    ...     read_tudataset(folder)
    (<Graphs: 2 graphs, 3 nodes, 1 edges>, array([ 1, -1]))
    """
    return Graphs.from_tudataset(path)


def read_fasta(path: str | PathLike[str]) -> tuple[list[str], list[str]]:
    r"""Read the sequences of a FASTA file and their names.

    A line that begins with ``>`` contains the name of the sequence that follows it. Blank
    lines, lines that begin with ``;`` and spaces within a sequence are skipped. Upper and lower
    case are preserved; use ``s.upper()`` to ignore the case.

    Parameters
    ----------
    path : str or path
        A text file, gzipped if its name ends with .gz.

    Returns
    -------
    sequences : list of str
        The sequences, in the order of the file.
    names : list of str
        The text after ``>``: identifier and description.

    See Also
    --------
    read_lines : Read one string per line.
    mercer.kernels.Spectrum : A kernel for sequences.

    Examples
    --------
    >>> import os, tempfile
    >>> from mercer.datasets import read_fasta
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "two.fasta")
    ...     with open(path, "w") as file:
    ...         _ = file.write(">one first\nGATT\nACA\n>two\nACGT\n")
    ...     read_fasta(path)
    (['GATTACA', 'ACGT'], ['one first', 'two'])
    """
    sequences: list[list[str]] = []
    names: list[str] = []
    for number, line in enumerate(_lines(path), start=1):
        line = line.strip()
        if line.startswith(">"):
            names.append(line[1:].strip())
            sequences.append([])
        elif line and not line.startswith(";"):
            if not names:
                raise ValueError(
                    f"{path}: line {number} ({line[:40]!r}) precedes the first line that begins "
                    f"with '>', so this is not a FASTA file; if it has one string per line, use "
                    f"read_lines"
                )
            sequences[-1].append("".join(line.split()))
    if not names:
        raise ValueError(f"{path}: no line begins with '>', so this is not a valid FASTA file")
    empty = next((i for i, parts in enumerate(sequences) if not parts), None)
    if empty is not None:
        raise ValueError(
            f"{path}: sequence {empty}, {names[empty]!r}, is empty; the file may be truncated"
        )
    return ["".join(parts) for parts in sequences], names


def read_lines(path: str | PathLike[str]) -> list[str]:
    r"""Read one string from each line of a text file; a blank line is an empty string.

    Parameters
    ----------
    path : str or path
        A UTF-8 text file, gzipped if its name ends with .gz. Line endings are removed; spaces are
        preserved.

    Returns
    -------
    strings : list of str
        One string per line.

    See Also
    --------
    read_fasta : Read sequences with names.
    mercer.kernels.BagOfWords : A kernel for texts.

    Examples
    --------
    >>> import os, tempfile
    >>> from mercer.datasets import read_lines
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "smiles.txt")
    ...     with open(path, "w") as file:
    ...         _ = file.write("CCO\nc1ccccc1\n")
    ...     read_lines(path)
    ['CCO', 'c1ccccc1']
    """
    return _lines(path)


def _lines(path: str | PathLike[str]) -> list[str]:
    """Return the lines of a text file without their line endings."""
    data = Path(path).read_bytes()
    if str(path).endswith(".gz"):
        try:
            data = gzip.decompress(data)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise ValueError(f"{path} is not a gzipped file, or is truncated: {error}") from error
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} is not UTF-8 text: byte {error.start} is {data[error.start]:#04x}; convert "
            f"the file to UTF-8, or decompress it first if it is an archive"
        ) from error
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def _noisy(exact: Points, scale: float, random_state: Seed) -> Points:
    """Add Gaussian noise with standard deviation `scale` to each entry of an array."""
    return exact + float(scale) * as_generator(random_state).standard_normal(exact.shape)


def _sklearn_seed(random_state: Seed) -> int | np.random.RandomState:
    """Convert a validated `random_state` to a form that scikit-learn accepts.

    An integer is returned unchanged, so that scikit-learn generates the same points for that seed.
    A Generator is wrapped, not copied, so that drawing points advances its state. None draws a new
    seed, whereas scikit-learn would use NumPy's global random state.
    """
    if random_state is None or isinstance(random_state, np.random.Generator):
        return np.random.RandomState(np.random.default_rng(random_state).bit_generator)
    return random_state


def _check(n_samples: Any, random_state: RandomState, **scales: Any) -> None:
    """Raise an error unless n_samples >= 1, random_state is valid and all scales are >= 0."""
    cause = "usually the result of / or a number read as a string - try int(n_samples)."
    _require(Integral, "n_samples", n_samples, f", not an integer - {cause}")
    if n_samples < 1:
        raise ValueError(
            f"n_samples={n_samples} is less than one - "
            "usually a fraction of a size, rounded down to 0 - try n_samples=1 or more."
        )
    for name, value in scales.items():
        cause = f"usually an array, None or a string in place of a scalar - try {name}=0.1."
        _require(Real, name, value, f", not a real number - {cause}")
        if not 0 <= float(value) < math.inf:
            raise ValueError(
                f"{name}={value} is not a finite number >= 0 - "
                f"usually a logarithm or the result of a failed computation - try {name}=0.1."
            )
    if isinstance(random_state, np.random.Generator | np.random.RandomState | None):
        return
    known = "try an int, a numpy.random.Generator, a numpy.random.RandomState or None."
    cause = f"usually a flag or a string in place of a seed - {known}"
    _require(Integral, "random_state", random_state, f" - {cause}")
    if not 0 <= int(random_state) < 2**32:
        raise ValueError(
            f"random_state={random_state} is outside [0, {2**32 - 1}] - "
            "usually a hash or a time in nanoseconds used as a seed - "
            "try random_state % 2**32."
        )


def _require(kind: type, name: str, value: object, advice: str) -> None:
    """Raise a TypeError unless the value is an instance of `kind`; bool is not accepted."""
    if isinstance(value, bool) or not isinstance(value, kind):
        raise TypeError(f"{name}={value!r} is of type {type(value).__name__}{advice}")
