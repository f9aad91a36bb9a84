"""Embedded real data, and generators; nothing is downloaded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from ._messages import counted
from ._types import AnyArray, Array, DType, RandomSource
from ._validation import integer, number, real_array

__all__ = [
    "Correlation", "Samples", "load_blood_cells", "load_help_topics", "load_pitprops", "load_stocks",
    "make_spiked",
]  # fmt: skip
__dir__: Callable[[], list[str]] = __all__.copy


@dataclass(frozen=True, eq=False)
class Correlation:
    """A correlation matrix with the names of its variables.

    Attributes
    ----------
    correlation : ndarray of shape (p, p), float64
    names : tuple of str
    n_samples : int or None
        Number of samples behind the correlations, if it is known.
    source, license : str

    Examples
    --------
    >>> import spcacore
    >>> props = spcacore.datasets.load_pitprops()
    >>> props.names[:2], float(props.correlation[0, 1])
    (('topdiam', 'length'), 0.954)
    """

    correlation: Array
    names: tuple[str, ...]
    n_samples: int | None
    source: str = ""
    license: str = ""

    def __repr__(self) -> str:
        samples = "" if self.n_samples is None else f", {counted(self.n_samples, 'sample')}"
        return f"Correlation({counted(len(self.names), 'variable')}{samples})"


@dataclass(frozen=True, eq=False)
class Samples:
    """Samples of named variables, most of whose entries are zero.

    Attributes
    ----------
    data : CSR array of shape (n, p), float64
    names : tuple of str
        Names of the variables.
    samples : tuple of str
        Names or classes of the samples.
    source, license : str

    Examples
    --------
    >>> import spcacore
    >>> cells = spcacore.datasets.load_blood_cells()
    >>> cells.data.shape, len(cells.names), len(cells.samples)
    ((700, 250), 250, 700)
    """

    data: Any
    names: tuple[str, ...]
    samples: tuple[str, ...]
    source: str
    license: str

    def __repr__(self) -> str:
        n, p = self.data.shape
        return f"Samples({counted(n, 'sample')}, {counted(p, 'variable')})"


def load_pitprops() -> Correlation:
    """Correlations of 13 measurements of 180 pit props, the classic example of the field.

    The props were cut from Corsican pine, grown in East Anglia, for use in mines. The variables are sizes,
    moisture, specific gravity, rings, bow and knots of each prop.

    Returns
    -------
    Correlation
        `correlation` (13, 13), `names`, `n_samples`.

    References
    ----------
    J. N. R. Jeffers (1967). Two case studies in the application of principal component analysis.
    Applied Statistics 16, 225-236.

    Examples
    --------
    >>> import spcacore
    >>> spcacore.datasets.load_pitprops()
    Correlation(13 variables, 180 samples)
    """
    import csv
    from importlib.resources import files

    with (files(__package__) / "pitprops.csv").open(encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    return Correlation(
        np.array([row[1:] for row in rows], np.float64), tuple(header[1:]), 180,
        "J. N. R. Jeffers (1967), Applied Statistics 16, 225-236", "published numbers",
    )  # fmt: skip


def load_stocks() -> Correlation:
    """Correlations of the returns of 423 stocks of the S&P 500, without the common movement of the market.

    The leading factor of the correlations was removed. The diagonal, between 0.3 and 1, is the share of the
    variance of each stock that this factor does not explain. Numbers have four decimals.

    Returns
    -------
    Correlation
        `correlation` (423, 423), `names` (the tickers), `n_samples` None.

    Examples
    --------
    >>> import numpy as np, spcacore
    >>> stocks = spcacore.datasets.load_stocks()
    >>> result = spcacore.sparse_pca(stocks.correlation, 2, cardinality=6, kind="covariance")
    >>> [sorted(stocks.names[j] for j in np.flatnonzero(v)) for v in result.loadings.T]
    [['AEP', 'DUK', 'ED', 'SO', 'WEC', 'XEL'], ['AEE', 'CMS', 'DTE', 'ES', 'LNT', 'PNW']]
    """
    file = _arrays("stocks.npz")
    names = tuple(file["names"].tolist())
    A = np.zeros((len(names), len(names)))
    A[np.tril_indices(len(names))] = file["lower"] / 1e4
    A += np.tril(A, -1).T
    return Correlation(A, names, None, "daily returns of stocks of the S&P 500", "CC0 1.0")


def load_blood_cells() -> Samples:
    """700 blood cells and their 250 genes of largest variance: logarithms of normalized counts.

    Returns
    -------
    Samples
        `data` (700, 250), `names` (genes), `samples` (types of the cells).

    References
    ----------
    G. X. Y. Zheng and others (2017). Massively parallel digital transcriptional profiling of single cells.
    Nature Communications 8, 14049.

    Examples
    --------
    >>> import numpy as np, spcacore
    >>> cells = spcacore.datasets.load_blood_cells()
    >>> result = spcacore.sparse_pca(cells.data, 2, cardinality=5)
    >>> [sorted(cells.names[j] for j in np.flatnonzero(v)) for v in result.loadings.T]
    [['CST3', 'HLA-DPA1', 'HLA-DPB1', 'HLA-DRA', 'LYZ'], ['AIF1', 'FCER1G', 'FCGR3A', 'LST1', 'TYROBP']]
    """
    return _samples(
        "blood_cells.npz", 1e-3, "labels",
        "10x Genomics, Fresh 68k PBMCs (Donor A); the cells that scanpy carries as pbmc68k_reduced, to three "
        "decimals",
        "CC BY 4.0",
    )  # fmt: skip


def load_help_topics() -> Samples:
    """Counts of words in the help topics of Python 3.11, such as "BOOLEAN" or "with".

    Each word has at least three letters, and occurs in at least three topics, and in at most half of them.

    Returns
    -------
    Samples
        `data` (counts), `names` (words), `samples` (topics).

    Examples
    --------
    >>> import numpy as np, spcacore
    >>> text = spcacore.datasets.load_help_topics()
    >>> result = spcacore.sparse_pca(text.data, 3, cardinality=4)
    >>> for v in result.loadings.T:
    ...     print(sorted(text.names[j] for j in np.flatnonzero(v)))
    ['class', 'instance', 'method', 'self']
    ['exception', 'pattern', 'statement', 'suite']
    ['characters', 'return', 'str', 'string']
    """
    return _samples(
        "help_topics.npz", 1.0, "samples",
        "pydoc_data.topics of Python 3.11, copyright Python Software Foundation", "PSF-2.0",
    )  # fmt: skip


def _arrays(name: str) -> dict[str, AnyArray]:
    """Return the arrays of an embedded file."""
    from importlib.resources import files

    with (files(__package__) / name).open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        return dict(arrays)


def _samples(name: str, unit: float, samples: str, source: str, license: str) -> Samples:
    """Return embedded samples; the file has `counts`, the number of entries in each row."""
    from scipy.sparse import csr_array

    file = _arrays(name)
    indptr = np.concatenate(([0], np.cumsum(file["counts"], dtype=np.int32)), dtype=np.int32)
    data, shape = file["data"] * unit, (len(file["counts"]), len(file["names"]))
    rows = csr_array((data, file["indices"].astype(np.int32), indptr), shape=shape)
    return Samples(rows, tuple(file["names"].tolist()), tuple(file[samples].tolist()), source, license)


def make_spiked(
    n_samples: int,
    n_features: int,
    *,
    cardinality: int = 10,
    variances: ArrayLike = (400.0, 300.0),
    noise: float = 1.0,
    dtype: DTypeLike = np.float64,
    rng: RandomSource = None,
) -> tuple[AnyArray, AnyArray]:
    """Gaussian data with sparse planted components.

    Component t has equal loadings on variables `t * cardinality` to `(t + 1) * cardinality - 1`, and
    variance `variances[t]`. In every other direction the variance is `noise`. Shen and Huang use the default
    variances and cardinality.

    Parameters
    ----------
    n_samples, n_features : int
    cardinality : int, default 10
        Number of nonzeros of each component.
    variances : sequence of float, default (400, 300)
        Variance along each component, at least `noise`.
    noise : float, default 1
        Variance in the other directions.
    dtype : float32 or float64, default float64
    rng : None, int or numpy Generator, optional

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
    loadings : ndarray of shape (n_features, r)
        The planted components.

    Raises
    ------
    ValueError
        If the components need more variables than there are, or a variance is below the noise.

    References
    ----------
    H. Shen and J. Z. Huang (2008). Sparse principal component analysis via regularized low rank
    matrix approximation. Journal of Multivariate Analysis 99, section 4.1.

    Examples
    --------
    >>> import spcacore
    >>> X, V = spcacore.datasets.make_spiked(50, 500, rng=0)
    >>> result = spcacore.sparse_pca(X, 2, cardinality=10)
    >>> abs(V.T @ result.loadings).max(axis=1).round(2)
    array([1., 1.])
    """
    n = integer(n_samples, "n_samples", 1)
    p = integer(n_features, "n_features", 1)
    k = integer(cardinality, "cardinality", 1, p)
    spikes = real_array(variances, "variances", ndim=1)
    noise = number(noise, "noise", 0)
    if len(spikes) * k > p:
        raise ValueError(
            f"{counted(len(spikes), 'component')} of {counted(k, 'variable')} do not fit into {p}"
        )
    if spikes.min() < noise:
        raise ValueError(f"variances must be at least the noise, {noise:g}")
    real: DType = np.dtype(dtype)
    if real not in (np.float32, np.float64):
        raise ValueError(f"dtype must be float32 or float64, not {real}")
    generator = np.random.default_rng(rng)
    loadings = np.zeros((p, len(spikes)), real)
    X = generator.standard_normal((n, p), dtype=real)
    X *= real.type(noise**0.5)
    for t, variance in enumerate(spikes):
        block = slice(t * k, (t + 1) * k)
        loadings[block, t] = k**-0.5
        scores = generator.standard_normal(n) * (variance - noise) ** 0.5
        X[:, block] += np.outer(scores, loadings[block, t]).astype(real)
    return X, loadings
