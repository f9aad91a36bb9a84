"""Sparse clustering: weights of the variables that a dissimilarity, or a partition, rests on.

Let D hold, for every pair of samples (a row) and every variable (a column), how much the two differ in it,
d(x, y) = (x - y)^2 or |x - y|. A dissimilarity is D w, and the weights are those that make it largest:

    maximize ||D w||   subject to   w >= 0, ||w||_2 <= 1, ||w||_1 <= c                               (1)

which is max u'Dw over unit u besides: u = Dw/||Dw||, w = the soft threshold of D'u, by turns, each the best
for the other. With the symmetric M = D'D it reads w <- threshold(M w), objective sqrt(w'M w), and M v needs
no D, which has n^2 rows. For centered columns and squared differences, over all n^2 ordered pairs,

    M_jk = 2 [n sum_i x_ij^2 x_ik^2 + ||x_j||^2 ||x_k||^2 + 2 (x_j'x_k)^2]

(expand the square; odd moments vanish), all terms nonnegative, so that nothing cancels. Hence

    (M w)_j = 2 [n sum_i x_ij^2 s_i + (sum s) ||x_j||^2 + 2 x_j'G x_j],   G = X diag(w) X',  s = diag G,

matrix products of n x p with n x min(n, number of nonzero weights). Absolute differences have no such form;
their sums over pairs are made anew for each product (distances.c).

A partition in place of the pairs gives sparse K-means: b_j, the sum of squares between clusters of variable
j, takes the place of D'u, and K-means on the columns sqrt(w_j) x_j that of u.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._limits import CLUSTERING_ENTRIES, LLOYD_STEPS
from .._messages import counted
from .._validation import (
    LARGEST,
    as_seed,
    check_choice,
    column_names,
    float_type,
    integer,
    is_row_blocks,
    is_sparse,
    number,
    real_array,
    refuse_not_finite,
)
from ..linalg.lapack import interruptible
from ..linalg.threads import Report, check_jobs, in_threads
from ..operators.partition import row_blocks
from ..operators.permutation import permuted_columns
from ..operators.sparse_format import compressed
from ..results import frame, labels
from .kmeans_blocks import BlockColumns, Search, Weighted

_METRICS = {"sqeuclidean": 2, "absolute": 1}
_PAIRS = "X must have at least two rows: there are no pairs of samples"


class _Weighted:
    """What weights of the variables tell."""

    weights: NDArray[Any]
    names: tuple[str, ...] | None
    converged: bool
    n_iter: int

    @property
    def cardinality(self) -> int:
        """Number of nonzero weights."""
        return int(np.count_nonzero(self.weights))

    @property
    def selected(self) -> NDArray[np.intp]:
        """The variables of nonzero weight, the heaviest first."""
        order = np.argsort(-self.weights, kind="stable")
        return order[: self.cardinality]

    def to_frame(self) -> Any:
        """The weights as a pandas DataFrame of one column, with the names of the variables.

        Returns
        -------
        pandas.DataFrame of shape (p, 1)
            The index has the names, or x1, x2, ...

        Raises
        ------
        ImportError
            Without pandas.
        """
        return frame({"weight": self.weights}, labels(self.names, len(self.weights)), "variable")

    def _state(self) -> str:
        return f"{'converged' if self.converged else 'not converged'} in {counted(self.n_iter, 'iteration')}"


@dataclass(frozen=True, eq=False, repr=False)
class SparseDissimilarity(_Weighted):
    """A dissimilarity between samples that rests on few variables.

    Attributes
    ----------
    weights : ndarray of shape (p,)
        Nonnegative, of norm at most 1, with a sum of at most `l1_bound`.
    dissimilarity : ndarray of shape (n (n - 1) / 2,)
        `sum_j weights[j] d(x_ij, x_i'j)`, in the order of `scipy.spatial.distance.pdist`, as
        `scipy.cluster.hierarchy.linkage` takes it.
    objective : float
        `||D w||`: the norm of the dissimilarity over all ordered pairs, sqrt(2) times that of the vector.
    trace : ndarray of shape (n_iter,)
        The objective at each iteration, which never decreases.
    n_iter : int
    converged : bool
    l1_bound : float
    metric : {"sqeuclidean", "absolute"}
    names : tuple of str or None
        Names of the variables, when the input had any.
    """

    weights: NDArray[Any]
    dissimilarity: NDArray[Any]
    objective: float
    trace: NDArray[np.float64]
    n_iter: int
    converged: bool
    l1_bound: float
    metric: str
    names: tuple[str, ...] | None

    def __repr__(self) -> str:
        n = (1 + math.isqrt(1 + 8 * len(self.dissimilarity))) // 2
        return (
            f"SparseDissimilarity({counted(n, 'sample')}, "
            f"{self.cardinality} of {counted(len(self.weights), 'variable')}, "
            f"metric={self.metric!r}, l1_bound={self.l1_bound:.6g}, {self._state()})"
        )


@dataclass(frozen=True, eq=False, repr=False)
class SparseKMeans(_Weighted):
    """Clusters of samples that rest on few variables.

    Attributes
    ----------
    labels : ndarray of shape (n,), intp
        Clusters, numbered from 0 as they first occur.
    weights : ndarray of shape (p,)
        Nonnegative, of norm at most 1, with a sum of at most `l1_bound`.
    centers : ndarray of shape (n_clusters, p)
        Means of the clusters, of all variables.
    objective : float
        `sum_j weights[j] b_j`, b_j the sum of squares between clusters.
    trace : ndarray of shape (n_iter,)
        The objective at each iteration, which never decreases.
    n_iter : int
    converged : bool
    l1_bound : float
    names : tuple of str or None
        Names of the variables, when the input had any.
    """

    labels: NDArray[np.intp]
    weights: NDArray[Any]
    centers: NDArray[Any]
    objective: float
    trace: NDArray[np.float64]
    n_iter: int
    converged: bool
    l1_bound: float
    names: tuple[str, ...] | None

    def __repr__(self) -> str:
        return (
            f"SparseKMeans(clusters of {', '.join(map(str, np.bincount(self.labels)))} samples, "
            f"{self.cardinality} of {counted(len(self.weights), 'variable')}, l1_bound={self.l1_bound:.6g}, "
            f"{self._state()})"
        )


@dataclass(frozen=True, eq=False)
class GapStatistic:
    """How far above chance the objective is, by the bound on the weights.

    Attributes
    ----------
    l1_bounds : ndarray of shape (m,)
        Ascending.
    gap : ndarray of shape (m,)
        `log objective - mean log permuted`.
    deviation : ndarray of shape (m,)
        Standard deviation of `log permuted`.
    objective : ndarray of shape (m,)
        Of the data.
    permuted : ndarray of shape (m, n_permutations)
        Of the data with the entries of each variable permuted.
    cardinality : ndarray of shape (m,), intp
        Nonzero weights of the data.
    l1_bound : float
        The bound of the largest gap.
    smallest_l1_bound : float
        The smallest bound whose gap is within one standard deviation of the largest.
    """

    l1_bounds: NDArray[np.float64]
    gap: NDArray[np.float64]
    deviation: NDArray[np.float64]
    objective: NDArray[np.float64]
    permuted: NDArray[np.float64]
    cardinality: NDArray[np.intp]
    l1_bound: float
    smallest_l1_bound: float

    def __repr__(self) -> str:
        return (
            f"GapStatistic(l1_bound={self.l1_bound:.4g}, smallest_l1_bound={self.smallest_l1_bound:.4g}, "
            f"{len(self.l1_bounds)} bounds, {self.permuted.shape[1]} permutations)"
        )


# ---- public functions --------------------------------------------------------------------------------


def sparse_dissimilarity(
    X: Any,
    l1_bound: float,
    metric: str = "sqeuclidean",
    *,
    max_iter: int = 200,
    tol: float | None = None,
) -> SparseDissimilarity:
    """A dissimilarity between samples by few variables, for hierarchical clustering.

    Maximizes `||D w||` over weights `w >= 0, ||w||_2 <= 1, ||w||_1 <= l1_bound`, where column j of D holds
    the differences of all pairs of samples in variable j, squared or absolute. It alternates `u <- Dw/||Dw||`
    with w <- the soft threshold of `D'u` at the bound, from equal weights, as in the paper, and from weights
    by the norms of the columns of D; the better end is returned. D, of n^2 rows, is never formed.

    Parameters
    ----------
    X : array-like of shape (n, p), or sparse matrix
        Data in memory, one row a sample; float32 stays float32. Variables are centered implicitly, which
        differences do not feel, and not scaled: do that first where units differ. Not copied; some columns
        of a sparse matrix at a time are made dense.
    l1_bound : float
        In [1, sqrt(p)]: 1 allows a single variable, sqrt(p) is no bound. See `sparse_dissimilarity_gap`.
    metric : {"sqeuclidean", "absolute"}, default "sqeuclidean"
        Differences `(x_ij - x_i'j)**2`, or `abs(x_ij - x_i'j)`, which outliers sway less.
    max_iter : int, default 200
    tol : float, optional
        Stop when an iteration moves the weights by a fraction of at most `tol` in the l1 norm. Default 1e-6
        for float64, 1e-4 for float32.

    Returns
    -------
    SparseDissimilarity
        `weights` (p,), `dissimilarity` (n (n - 1) / 2,) in the order of `scipy.spatial.distance.pdist`,
        `objective`, `trace`, `selected`, `n_iter`, `converged`, `names`.

    Raises
    ------
    ValueError
        For NaN, infinite or empty input, fewer than two samples, samples that are all equal, differences
        beyond the number range of the dtype, or an option out of range.
    TypeError
        For input that is not real numbers, in blocks of rows, or an option of the wrong type.

    References
    ----------
    D. M. Witten and R. Tibshirani (2010). A framework for feature selection in clustering. Journal of the
    American Statistical Association 105(490), 713-726, section 4.

    Examples
    --------
    >>> import numpy as np, spcacore
    >>> from scipy.cluster.hierarchy import fcluster, linkage
    >>> X = np.random.default_rng(0).standard_normal((30, 200))
    >>> X[15:, :10] += 3
    >>> result = spcacore.sparse_dissimilarity(X, 3)
    >>> sorted(result.selected[:10].tolist())
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    >>> fcluster(linkage(result.dissimilarity, "average"), 2, "maxclust")
    array([1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2,
           2, 2, 2, 2, 2, 2, 2, 2], dtype=int32)
    """
    check_choice(metric, "metric", tuple(_METRICS))
    max_iter, tol = _check_iterations(max_iter, tol)
    _refuse_blocks(X, "all pairs of rows are compared, which needs")
    columns = _columns(X)
    bound = _check_bound(l1_bound, "l1_bound", columns.p)
    _refuse_out_of_range(columns, _METRICS[metric], bound)
    fit = _best_weights(columns, metric, bound, _starts(columns, metric), max_iter, columns.tolerance(tol))
    _warn_unless(fit.converged, max_iter)
    weights = fit.weights.astype(columns.dtype)
    exponent = _METRICS[metric] * columns.exponent
    with np.errstate(under="ignore"):
        pairs = np.ldexp(_distances(columns, weights, metric), exponent).astype(columns.dtype)
        trace = np.ldexp(np.array(fit.trace), exponent)
    return SparseDissimilarity(
        weights, pairs, float(trace[-1]), trace, len(trace), fit.converged, bound, metric, columns.names
    )


def sparse_dissimilarity_gap(
    X: Any,
    l1_bounds: Any = None,
    metric: str = "sqeuclidean",
    *,
    n_permutations: int = 10,
    max_iter: int = 200,
    tol: float | None = None,
    n_jobs: int = 1,
    rng: Any = None,
) -> GapStatistic:
    """The bound of `sparse_dissimilarity`, by permutations of each variable.

    For each bound c, with O(c) the largest `||D w||` found, takes
    `gap(c) = log O(c) - mean over permutations of log O*(c)`, O* of the data with the entries of every
    variable permuted independently, and chooses the c of the largest gap.

    Parameters
    ----------
    X : array-like of shape (n, p), or sparse matrix
        As in `sparse_dissimilarity`.
    l1_bounds : array-like of shape (m,), optional
        Each in [1, sqrt(p)]; sorted here. Default: ten in geometric progression from 1.2 to `0.7 sqrt(p)`.
    metric : {"sqeuclidean", "absolute"}, default "sqeuclidean"
    n_permutations : int, default 10
    max_iter, tol
        As in `sparse_dissimilarity`.
    n_jobs : int, default 1
        Threads; -1: one for each processor. Each holds one permuted copy of X. The result does not depend on
        their number.
    rng : None, int or numpy Generator, optional
        For the permutations; None is a fixed seed.

    Returns
    -------
    GapStatistic
        `l1_bound` of the largest gap, `smallest_l1_bound` within one standard deviation of it, and the
        curve: `l1_bounds`, `gap`, `deviation`, `objective`, `permuted`, `cardinality`.

    Raises
    ------
    ValueError, TypeError
        As `sparse_dissimilarity`.

    References
    ----------
    D. M. Witten and R. Tibshirani (2010). A framework for feature selection in clustering. Journal of the
    American Statistical Association 105(490), 713-726, sections 3 and 4.

    Examples
    --------
    >>> import numpy as np, spcacore
    >>> X = np.random.default_rng(0).standard_normal((30, 200))
    >>> X[15:, :10] += 3
    >>> spcacore.sparse_dissimilarity_gap(X, [1.5, 3, 6, 12])
    GapStatistic(l1_bound=3, smallest_l1_bound=3, 4 bounds, 10 permutations)
    """
    check_choice(metric, "metric", tuple(_METRICS))
    max_iter, tol = _check_iterations(max_iter, tol)
    job = _Permutations(n_permutations, n_jobs, rng)
    _refuse_blocks(X, "all pairs of rows are compared, which needs")
    columns = _columns(X)
    bounds = _check_bounds(l1_bounds, columns.p)
    _refuse_out_of_range(columns, _METRICS[metric], bounds[-1])
    limits = max_iter, columns.tolerance(tol)

    def solve(columns: _Columns, generator: np.random.Generator) -> list[_Fit]:
        starts = _starts(columns, metric)
        return [_best_weights(columns, metric, bound, starts, *limits) for bound in bounds]

    return job.gap(columns, bounds, _METRICS[metric] * columns.exponent, solve, max_iter)


def sparse_kmeans(
    X: Any,
    n_clusters: int,
    l1_bound: float,
    *,
    n_init: int = 20,
    max_iter: int = 100,
    rng: Any = None,
) -> SparseKMeans:
    """K-means on few variables, chosen along with the clusters.

    Maximizes `sum_j w_j b_j` over partitions into `n_clusters` and weights
    `w >= 0, ||w||_2 <= 1, ||w||_1 <= l1_bound`, with b_j the sum of squares of variable j between clusters
    (total less within). It alternates K-means on the columns `sqrt(w_j) x_j` with w <- the soft threshold of
    b at the bound, so that the objective never decreases, from `n_init` partitions, which K-means of all
    variables finds from random centers (k-means++). At the best end, as many new ones are tried with the
    weights found. K-means is Lloyd's iteration with moves of single samples where that ends.

    Parameters
    ----------
    X : array-like of shape (n, p), sparse matrix, RowBlocks or dask array
        Data, one row a sample; float32 stays float32. Variables are centered implicitly, and not scaled: do
        that first where units differ. Not copied; sparse matrices stay sparse. Blocks of rows are read twice
        a step of K-means, for as many starts as go together: fewer of them, `n_init`, are fewer passes.
    n_clusters : int
        In [2, n].
    l1_bound : float
        In [1, sqrt(p)]. See `sparse_kmeans_gap`.
    n_init : int, default 20
        Random starts.
    max_iter : int, default 100
        Changes of the weights. It ends by itself when no label changes.
    rng : None, int or numpy Generator, optional
        For the starts; None is a fixed seed.

    Returns
    -------
    SparseKMeans
        `labels` (n,), numbered as they first occur, none of them empty; `weights` (p,), `centers`
        (n_clusters, p), `objective`, `trace`, `selected`, `n_iter`, `converged`, `names`.

    Raises
    ------
    ValueError
        For NaN, infinite or empty input, samples that are all equal, differences beyond the number range
        of the dtype, or an option out of range.
    TypeError
        For input that is not real numbers, or an option of the wrong type.

    References
    ----------
    D. M. Witten and R. Tibshirani (2010). A framework for feature selection in clustering. Journal of the
    American Statistical Association 105(490), 713-726, section 3.

    Examples
    --------
    >>> import numpy as np, spcacore
    >>> X = np.random.default_rng(0).standard_normal((30, 200))
    >>> X[20:, :10] += 3
    >>> result = spcacore.sparse_kmeans(X, 2, 3)
    >>> np.bincount(result.labels).tolist(), sorted(result.selected[:10].tolist())
    ([20, 10], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    """
    max_iter = integer(max_iter, "max_iter", 1)
    n_init = integer(n_init, "n_init", 1)
    seed = as_seed(rng)
    columns = _rows(X)
    n_clusters = integer(n_clusters, "n_clusters", 2, columns.n)
    bound = _check_bound(l1_bound, "l1_bound", columns.p)
    _refuse_out_of_range(columns, 2, bound)
    generator = np.random.default_rng([seed, 0])
    starts = _first_partitions(columns, n_clusters, n_init, generator)
    fit = _best_partition(columns, n_clusters, bound, starts, max_iter, generator)
    _warn_unless(fit.converged, max_iter)
    labels = _in_order(fit.labels)
    trace = np.ldexp(np.array(fit.trace), 2 * columns.exponent)
    return SparseKMeans(
        labels, fit.weights.astype(columns.dtype), columns.centers(labels, n_clusters), float(trace[-1]),
        trace, len(trace), fit.converged, bound, columns.names,
    )  # fmt: skip


def sparse_kmeans_gap(
    X: Any,
    n_clusters: int,
    l1_bounds: Any = None,
    *,
    n_permutations: int = 10,
    n_init: int = 20,
    max_iter: int = 100,
    n_jobs: int = 1,
    rng: Any = None,
) -> GapStatistic:
    """The bound of `sparse_kmeans`, by permutations of each variable.

    For each bound c, with O(c) the largest `sum_j w_j b_j` found, takes
    `gap(c) = log O(c) - mean over permutations of log O*(c)`, O* of the data with the entries of every
    variable permuted independently, and chooses the c of the largest gap.

    Parameters
    ----------
    X : array-like of shape (n, p), or sparse matrix
        As in `sparse_kmeans`, but in memory: entries are permuted.
    n_clusters : int
        In [2, n].
    l1_bounds : array-like of shape (m,), optional
        Each in [1, sqrt(p)]; sorted here. Default: ten in geometric progression from 1.2 to `0.7 sqrt(p)`.
    n_permutations : int, default 10
    n_init, max_iter
        As in `sparse_kmeans`.
    n_jobs : int, default 1
        Threads; -1: one for each processor. Each holds one permuted copy of X. The result does not depend on
        their number.
    rng : None, int or numpy Generator, optional
        For permutations and starts; None is a fixed seed.

    Returns
    -------
    GapStatistic
        `l1_bound` of the largest gap, `smallest_l1_bound` within one standard deviation of it, and the
        curve: `l1_bounds`, `gap`, `deviation`, `objective`, `permuted`, `cardinality`.

    Raises
    ------
    ValueError, TypeError
        As `sparse_kmeans`.

    References
    ----------
    D. M. Witten and R. Tibshirani (2010). A framework for feature selection in clustering. Journal of the
    American Statistical Association 105(490), 713-726, section 3.

    Examples
    --------
    >>> import numpy as np, spcacore
    >>> X = np.random.default_rng(0).standard_normal((30, 200))
    >>> X[20:, :10] += 3
    >>> spcacore.sparse_kmeans_gap(X, 2, [1.5, 3, 6, 12])
    GapStatistic(l1_bound=6, smallest_l1_bound=3, 4 bounds, 10 permutations)
    """
    max_iter = integer(max_iter, "max_iter", 1)
    n_init = integer(n_init, "n_init", 1)
    job = _Permutations(n_permutations, n_jobs, rng)
    _refuse_blocks(X, "permutations need")
    columns = _rows(X)
    n_clusters = integer(n_clusters, "n_clusters", 2, columns.n)
    bounds = _check_bounds(l1_bounds, columns.p)
    _refuse_out_of_range(columns, 2, bounds[-1])

    def solve(columns: _Columns | BlockColumns, generator: np.random.Generator) -> list[_Fit]:
        starts = _first_partitions(columns, n_clusters, n_init, generator)
        return [_best_partition(columns, n_clusters, c, starts, max_iter, generator) for c in bounds]

    return job.gap(columns, bounds, 2 * columns.exponent, solve, max_iter)


# ---- checks ------------------------------------------------------------------------------------------


def _check_bound(value: Any, name: str, p: int) -> float:
    root = math.sqrt(p)
    return min(number(value, name, 1.0, root * (1 + 1e-12)), root)


def _check_bounds(values: Any, p: int) -> list[float]:
    if values is None:
        last = max(0.7 * math.sqrt(p), min(1.2, math.sqrt(p)))
        return np.unique(np.geomspace(min(1.2, last), last, 10)).tolist()
    real_array(values, "l1_bounds", ndim=1)
    return sorted({_check_bound(c, f"l1_bounds[{i}]", p) for i, c in enumerate(values)})


def _check_iterations(max_iter: Any, tol: Any) -> tuple[int, float | None]:
    return integer(max_iter, "max_iter", 1), None if tol is None else number(tol, "tol", 0)


def _warn_unless(converged: bool, max_iter: int) -> None:
    if not converged:
        warnings.warn(f"not converged in {counted(max_iter, 'iteration')}", RuntimeWarning, stacklevel=3)


# ---- the data ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Columns:
    """The variables one block at a time, centered and brought near 1 by a power of two.

    Attributes
    ----------
    source : ndarray of shape (n, p)
        The caller's.
    middle : ndarray of shape (p,)
        Between the smallest and the largest entry of each variable: where it is constant, the constant.
    exponent : int
        Entries times `2**exponent` are in the caller's units.
    names : tuple of str or None
    rows : ndarray of shape (p, n) or None
        All variables as blocks give them, if these are not to be made of `source`.
    poll : callable
        Called now and then; what it raises ends the call.
    """

    source: NDArray[Any]
    middle: NDArray[Any]
    exponent: int
    names: tuple[str, ...] | None
    rows: NDArray[Any] | None = None
    poll: Callable[[], object] = lambda: None

    @property
    def n(self) -> int:
        return self.source.shape[0]

    @property
    def p(self) -> int:
        return self.source.shape[1]

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.source.dtype

    def tolerance(self, tol: float | None) -> float:
        return tol if tol is not None else 1e-6 if self.dtype == np.float64 else 1e-4

    def blocks(
        self, index: NDArray[np.intp] | None = None, centered: bool = True
    ) -> Iterator[tuple[Any, NDArray[Any]]]:
        """Which variables, and these as the rows of a C-ordered matrix, whatever the order of the source."""
        width = max(1, CLUSTERING_ENTRIES // self.n)
        for first in range(0, self.p if index is None else len(index), width):
            self.poll()
            part: Any = slice(first, first + width) if index is None else index[first : first + width]
            yield part, self._block(part, centered)

    def _block(self, part: Any, centered: bool) -> NDArray[Any]:
        if self.rows is not None:  # centered
            return self.rows[part]
        middle = self.middle[part]
        T = np.empty((len(middle), self.n), self.dtype)
        columns: Any = self.source[:, part].T
        np.subtract(columns.toarray() if is_sparse(columns) else columns, middle[:, None], out=T)
        T *= self.dtype.type(math.ldexp(1.0, -self.exponent))
        if centered:
            T -= T.mean(axis=1, keepdims=True)
        return T

    def carried_out(self, searches: list[Weighted]) -> list[Any]:
        """What each search, with the weights of its points, returns; one after the other."""
        ended, points, last = [], np.empty((0, 0)), None
        for weights, search in searches:
            if weights is not last:
                points, last = _points(self, weights), weights
            try:
                asked = next(search)
                while True:
                    asked = search.send(_answer(points, *asked))
            except StopIteration as end:
                ended.append(end.value)
        return ended

    def sums_between(self, partitions: list[NDArray[np.intp]], n_clusters: int) -> NDArray[np.float64]:
        """Sums of squares between clusters, a row for each partition; the means of all samples are 0."""
        out = np.empty((len(partitions), self.p))
        each = [member / np.sqrt(counts) for member, counts in (_members(l, n_clusters) for l in partitions)]
        members = np.hstack(each).astype(self.dtype) if each else np.empty((self.n, 0), self.dtype)
        for part, T in self.blocks():
            sums = (T @ members) ** 2
            out[:, part] = sums.reshape(len(T), len(partitions), n_clusters).sum(axis=2).T
        return out

    def centers(self, labels: NDArray[np.intp], n_clusters: int) -> NDArray[Any]:
        """Means of the clusters, in the caller's units."""
        centers = np.empty((n_clusters, self.p), self.dtype)
        member, counts = _members(labels, n_clusters)
        member = (member / counts).astype(self.dtype)
        for part, T in self.blocks(centered=False):
            centers[:, part] = self.middle[part] + np.ldexp(T @ member, self.exponent).T
        return centers

    def permuted(self, generator: np.random.Generator, poll: Callable[[], object]) -> _Columns:
        """A copy with the entries of each variable in random order."""
        if is_sparse(self.source):
            return replace(self, source=permuted_columns(self.source, generator), poll=poll)
        rows = np.empty((self.p, self.n), self.dtype)
        for part, T in self.blocks():
            rows[part] = T
        generator.permuted(rows, axis=1, out=rows)
        return _Columns(self.source, self.middle, self.exponent, self.names, rows, poll)


def _refuse_out_of_range(columns: _Columns | BlockColumns, power: int, bound: float) -> None:
    """Where a sum of differences to this power would over- or underflow."""
    limits = np.finfo(columns.dtype)
    high = power * (columns.exponent + 1) + math.log2(columns.n * bound)
    if not (high < limits.maxexp and power * (columns.exponent - 1) > limits.minexp):
        size = f"2**{columns.exponent}"
        raise ValueError(
            f"X has differences of the order of {size}, whose {'squares' * (power == 2) or 'sums'} are "
            f"beyond the number range of {columns.dtype}; rescale it"
        )


def _refuse_blocks(X: Any, what: str) -> None:
    if is_row_blocks(X):
        raise TypeError(f"{what} the data in memory, and X is in blocks of rows")


def _rows(X: Any) -> _Columns | BlockColumns:
    """What K-means reads: variables, or rows of what is sparse or in blocks."""
    if not (is_sparse(X) or is_row_blocks(X)):
        return _columns(X)
    blocks = row_blocks(compressed(X), block_bytes=LARGEST) if is_sparse(X) else row_blocks(X).held()
    if blocks.shape[0] < 2:
        raise ValueError(_PAIRS)
    return BlockColumns(blocks)


def _source(X: Any) -> Any:
    """A float array, or CSC matrix."""
    if not is_sparse(X):
        return real_array(X, "X", ndim=2)
    a = compressed(X).tocsc()
    refuse_not_finite(a.data, "X.data")
    return a.astype(float_type(a.dtype), copy=False)


def _columns(X: Any) -> _Columns:
    names, a = column_names(X), _source(X)
    if a.shape[0] < 2:
        raise ValueError(_PAIRS)
    low, high = (np.asarray(m.toarray()).ravel() if is_sparse(m) else m for m in (a.min(0), a.max(0)))
    with np.errstate(under="ignore"):
        spread = float((high / 2 - low / 2).max())
        middle = np.where(low == high, low, low / 2 + high / 2)
    if not spread > 0:
        raise ValueError("X has no variance: all its rows are equal")
    return _Columns(a, middle, math.frexp(spread)[1], names)


# ---- weights for a dissimilarity ---------------------------------------------------------------------


@dataclass
class _Fit:
    weights: NDArray[np.float64]
    trace: list[float]
    converged: bool
    labels: NDArray[np.intp] = field(default_factory=lambda: np.empty(0, np.intp))


def _threshold(a: NDArray[np.float64], bound: float) -> NDArray[np.float64]:
    w = np.empty_like(a)
    _core.l1_threshold(a, bound, 2, w)
    return w


def _moved(new: NDArray[np.float64], old: NDArray[np.float64]) -> float:
    return float(np.abs(new - old).sum() / old.sum())


def _best_weights(
    columns: _Columns, metric: str, bound: float, starts: list[NDArray[np.float64]], max_iter: int, tol: float
) -> _Fit:
    """The best over the starts, vectors whose thresholds are the first weights."""
    fits = [_weights(columns, metric, bound, start, max_iter, tol) for start in starts]
    return max(fits, key=lambda fit: fit.trace[-1])


def _weights(
    columns: _Columns, metric: str, bound: float, start: NDArray[np.float64], max_iter: int, tol: float
) -> _Fit:
    fit = _Fit(_threshold(start, bound), [], False)
    while True:
        a = _products(columns, fit.weights, metric)
        fit.trace.append(math.sqrt(float(fit.weights @ a)))
        new = _threshold(a, bound)
        fit.converged = _moved(new, fit.weights) <= tol
        if fit.converged or len(fit.trace) == max_iter:
            return fit
        fit.weights = new


def _starts(columns: _Columns, metric: str) -> list[NDArray[np.float64]]:
    """M w for equal weights, and the norms of the columns of D, which are roots of the diagonal of M."""
    norms = np.empty(columns.p)
    for part, T in columns.blocks():
        square = T * T
        total = square.sum(axis=1)
        if metric == "sqeuclidean":
            norms[part] = columns.n * np.einsum("ij,ij->i", square, square) + 3 * total * total
        else:
            norms[part] = total
    return [_products(columns, np.full(columns.p, columns.p**-0.5), metric), np.sqrt(norms)]


def _products(columns: _Columns, w: NDArray[np.float64], metric: str) -> NDArray[np.float64]:
    """M w."""
    out = np.empty(columns.p)
    if metric == "absolute":
        pairs = _distances(columns, w, metric).astype(columns.dtype, copy=False)
        for part, T in columns.blocks():
            out[part] = _core.absolute_products(T, pairs)
        return 2 * out
    few = np.count_nonzero(w) <= columns.n
    root = _scaled(columns, w) if few else _gram(columns, w)
    s = np.einsum("ij,ij->j", root, root) if few else root.diagonal()
    for part, T in columns.blocks():
        image = T @ root.T
        quadratic = np.einsum("ij,ij->i", image, image if few else T)
        square = T * T
        out[part] = 2 * (columns.n * (square @ s) + s.sum() * square.sum(axis=1) + 2 * quadratic)
    return out


def _scaled(columns: _Columns, w: NDArray[np.float64]) -> NDArray[Any]:
    """sqrt(w_j) x_j of nonzero weight, as rows."""
    index = np.flatnonzero(w)
    rows = [T * np.sqrt(w[part, None]).astype(T.dtype) for part, T in columns.blocks(index)]
    return np.concatenate(rows)


def _gram(columns: _Columns, w: NDArray[np.float64]) -> NDArray[Any]:
    """G = X diag(w) X'."""
    G = np.zeros((columns.n, columns.n), columns.dtype)
    for part, T in columns.blocks(np.flatnonzero(w)):
        T = T * np.sqrt(w[part, None]).astype(T.dtype)
        G += T.T @ T
    return G


def _distances(columns: _Columns, w: NDArray[Any], metric: str) -> NDArray[np.float64]:
    """D w over the pairs i < i', from the differences themselves."""
    pairs = np.zeros(columns.n * (columns.n - 1) // 2)
    for part, T in columns.blocks(np.flatnonzero(w)):
        _core.add_distances(T, w[part].astype(T.dtype, copy=False), metric == "sqeuclidean", pairs)
    return pairs


# ---- K-means -----------------------------------------------------------------------------------------


def _first_partitions(
    columns: _Columns | BlockColumns, n_clusters: int, n_init: int, generator: np.random.Generator
) -> list[NDArray[np.intp]]:
    """By K-means on all variables."""
    weights = np.full(columns.p, columns.p**-0.5)
    return [labels for labels, _ in _runs(columns, weights, n_clusters, n_init, generator)]


def _best_partition(
    columns: _Columns | BlockColumns,
    n_clusters: int,
    bound: float,
    starts: list[NDArray[np.intp]],
    max_iter: int,
    generator: np.random.Generator,
) -> _Fit:
    """The best end over some partitions, and over new starts with its weights."""
    best = _from_partitions(columns, n_clusters, bound, starts, max_iter)
    while best.converged:
        runs = _runs(columns, best.weights, n_clusters, len(starts), generator)
        labels, value = max(runs, key=lambda run: run[1])
        left = max_iter - len(best.trace)
        if left == 0 or not value > best.trace[-1] * (1 + 1e-9):
            break
        more = _from_partitions(columns, n_clusters, bound, [labels], left)
        more.trace[:0] = best.trace
        best = more
    return best


def _from_partitions(
    columns: _Columns | BlockColumns,
    n_clusters: int,
    bound: float,
    starts: list[NDArray[np.intp]],
    max_iter: int,
) -> _Fit:
    """All starts in step, so that a read of the data serves them all; those that meet go on as one."""
    ended: list[_Fit] = []
    seen: set[bytes] = set()
    active = [_Fit(np.empty(0), [], False, labels) for labels in starts]
    for n_iter in range(1, max_iter + 1):
        active = [run for run in active if _add_if_new(_in_order(run.labels).tobytes(), seen)]
        sums = columns.sums_between([run.labels for run in active], n_clusters)
        for run, between in zip(active, sums, strict=True):
            run.weights = _threshold(between, bound)
            run.trace.append(float(run.weights @ between))
        searches = [(run.weights, _lloyd(columns, run.labels, n_clusters)) for run in active]
        for run, (new, _) in zip(active, columns.carried_out(searches), strict=True):
            run.converged = np.array_equal(new, run.labels)  # and then the weights stay too
            if n_iter < max_iter:
                run.labels = new
        ended += [run for run in active if run.converged or n_iter == max_iter]
        active = [run for run in active if not run.converged]
        if not active:
            break
    return max(ended, key=lambda run: run.trace[-1])


def _add_if_new(key: bytes, seen: set[bytes]) -> bool:
    new = key not in seen
    seen.add(key)
    return new


def _points(columns: _Columns, w: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n, m) with the distances of the rows of X diag(sqrt(w)), m at most n."""
    if np.count_nonzero(w) <= columns.n:
        return np.ascontiguousarray(_scaled(columns, w).T, np.float64)
    G = _gram(columns, w).astype(np.float64)
    values, vectors = interruptible(lambda: np.linalg.eigh(G))
    return vectors * np.sqrt(np.maximum(values, 0))


def _members(labels: NDArray[np.intp], n_clusters: int) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """(n, n_clusters) of 0 and 1, and the sizes."""
    member = (labels[:, None] == np.arange(n_clusters)).astype(np.float64)
    return member, np.bincount(labels, minlength=n_clusters)


def _answer(points: NDArray[np.float64], kind: str, given: Any) -> NDArray[np.float64]:
    """What a search asks of points in memory; `BlockColumns` has the same names."""
    if kind == "squares":
        return np.einsum("ij,ij->i", points, points)
    if kind == "image":
        return points @ given.T
    if kind == "sums":
        return _members(*given)[0].T @ points
    if kind == "rows":
        return points[given]
    return ((points - points[given[0]]) ** 2).sum(axis=1)  # "apart"


def _runs(
    columns: _Columns | BlockColumns,
    weights: NDArray[np.float64],
    n_clusters: int,
    n_init: int,
    generator: np.random.Generator,
) -> list[tuple[NDArray[np.intp], float]]:
    """K-means from some starts: partitions, and their sums of squares between clusters."""

    def run(first: int, draws: list[float]) -> Search:
        labels = yield from _spread(n_clusters, first, draws)
        return (yield from _lloyd(columns, labels, n_clusters))

    starts = [
        (int(generator.integers(columns.n)), generator.random(n_clusters - 1).tolist()) for _ in range(n_init)
    ]
    return columns.carried_out([(weights, run(*start)) for start in starts])


def _lloyd(columns: _Columns | BlockColumns, labels: NDArray[np.intp], n_clusters: int) -> Search:
    """Lloyd's steps and, where they end, the best move of one point, until neither helps (Hartigan 1975).

    Returned is the sum of squares between clusters too, about 0, which grows with every step.
    """
    squares = yield "squares", None
    least = 1e-11 * squares.sum()
    centers, value = yield from _means(labels, n_clusters)
    for _ in range(LLOYD_STEPS):
        columns.poll()
        products = yield "image", centers
        distance = squares[:, None] - 2 * products + np.einsum("ij,ij->i", centers, centers)
        new = _filled(distance, np.argmin(distance, axis=1))
        new_centers, new_value = yield from _means(new, n_clusters)
        if not new_value > value + least:
            new = _exchanged(distance, labels, least)
            new_centers, new_value = yield from _means(new, n_clusters)
            if not new_value > value + least:
                break
        labels, centers, value = new, new_centers, new_value
    return labels, value


def _means(labels: NDArray[np.intp], n_clusters: int) -> Search:
    """The centers, and the sum of squares between clusters."""
    sums = yield "sums", (labels, n_clusters)
    counts = np.bincount(labels, minlength=n_clusters)
    centers = sums / counts[:, None]
    return centers, float(counts @ np.einsum("ij,ij->i", centers, centers))


def _exchanged(distance: NDArray[np.float64], labels: NDArray[np.intp], least: float) -> NDArray[np.intp]:
    """With the move of the one point that lowers the sum of squares within clusters most."""
    counts = np.bincount(labels, minlength=distance.shape[1])
    rows, own = np.arange(len(labels)), counts[labels]
    saved = distance[rows, labels] * np.where(own > 1, own / np.maximum(own - 1, 1), 0)
    cost = distance * (counts / (counts + 1))
    cost[rows, labels] = np.inf
    to = np.argmin(cost, axis=1)
    gain = saved - cost[rows, to]
    i = int(np.argmax(gain))
    if gain[i] > least:
        labels = labels.copy()
        labels[i] = to[i]
    return labels


def _filled(distance: NDArray[np.float64], labels: NDArray[np.intp]) -> NDArray[np.intp]:
    """Every empty cluster gets the point farthest from its center; that lowers the sum within clusters."""
    counts = np.bincount(labels, minlength=distance.shape[1])
    if counts.all():
        return labels
    own = distance[np.arange(len(labels)), labels]
    for empty in np.flatnonzero(counts == 0):
        i = int(np.argmax(np.where(counts[labels] > 1, own, -np.inf)))
        counts[labels[i]] -= 1
        labels[i], counts[empty], own[i] = empty, 1, 0.0
    return labels


def _spread(n_clusters: int, first: int, draws: list[float]) -> Search:
    """Labels by random centers far apart (k-means++: Arthur and Vassilvitskii 2007, SODA, 1027-1035)."""
    squares = yield "squares", None
    chosen, nearest = [first], np.full(len(squares), np.inf)
    for draw in draws:
        nearest = np.minimum(nearest, (yield "apart", (chosen[-1], squares)))
        ladder = np.cumsum(nearest)
        rung = int(np.searchsorted(ladder, draw * ladder[-1], side="right"))
        chosen.append(min(rung, len(nearest) - 1))
    centers = yield "rows", chosen
    products = yield "image", centers
    distance = squares[:, None] - 2 * products + np.einsum("ij,ij->i", centers, centers)
    return _filled(distance, np.argmin(distance, axis=1))


def _in_order(labels: NDArray[np.intp]) -> NDArray[np.intp]:
    """Numbered as they first occur."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse]


# ---- the gap statistic -------------------------------------------------------------------------------


class _Permutations:
    """How many, by how many threads, and from which seed."""

    def __init__(self, n_permutations: Any, n_jobs: Any, rng: Any) -> None:
        self.count = integer(n_permutations, "n_permutations", 2)
        self.threads = check_jobs(n_jobs)
        self.seed = as_seed(rng)

    def gap(
        self,
        columns: _Columns | BlockColumns,
        bounds: list[float],
        exponent: int,
        solve: Callable[[Any, np.random.Generator], list[_Fit]],
        max_iter: int,
    ) -> GapStatistic:
        def permuted(i: int, report: Report) -> list[float]:
            report()
            generator = np.random.default_rng([self.seed, i])
            return [fit.trace[-1] for fit in solve(columns.permuted(generator, report), generator)]

        fits = solve(columns, np.random.default_rng([self.seed, 0]))
        _warn_unless(all(fit.converged for fit in fits), max_iter)
        chance = np.array(in_threads(permuted, range(1, self.count + 1), self.threads)).T
        found = np.array([fit.trace[-1] for fit in fits])
        logs = np.log(chance)
        gap, deviation = np.log(found) - logs.mean(axis=1), logs.std(axis=1, ddof=1)
        best = int(np.argmax(gap))
        near = int(np.argmax(gap >= gap[best] - deviation[best]))
        return GapStatistic(
            np.array(bounds), gap, deviation, np.ldexp(found, exponent), np.ldexp(chance, exponent),
            np.array([np.count_nonzero(fit.weights) for fit in fits]), bounds[best], bounds[near],
        )  # fmt: skip
