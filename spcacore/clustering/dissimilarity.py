"""Sparse dissimilarities: weights of the variables for hierarchical clustering.

Let D have a row for each pair of samples and a column for each variable, with the difference of the two
samples in that variable, d(x, y) = (x - y)^2 or |x - y|. A dissimilarity is D w, and the weights are those
that make it largest:

    maximize ||D w||   subject to   w >= 0, ||w||_2 <= 1, ||w||_1 <= c                               (1)

This equals max u'Dw over w and unit u, so two steps alternate: u = Dw/||Dw||, and w = the soft threshold of
D'u; each is the best given the other. With the symmetric M = D'D this is w <- threshold(M w), with objective
sqrt(w'M w), and D, which has n^2 rows, is not formed. For centered columns and squared differences, over all
n^2 ordered pairs,

    M_jk = 2 [n sum_i x_ij^2 x_ik^2 + ||x_j||^2 ||x_k||^2 + 2 (x_j'x_k)^2]

(expand the square; odd moments vanish). All terms are nonnegative, so nothing cancels. Hence

    (M w)_j = 2 [n sum_i x_ij^2 s_i + (sum s) ||x_j||^2 + 2 x_j'G x_j],   G = X diag(w) X',  s = diag G.

These are matrix products of n x p with n x min(n, number of nonzero weights). Absolute differences have no
such form; their sums over pairs are computed again for each product (distances.c). For differences that the
caller gives, D is kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.spatial.distance import is_valid_y, num_obs_y, squareform

from .. import _core
from .._limits import CLUSTERING_TOL
from .._messages import convergence, counted
from .._records import frozen_record, record
from .._types import AnyArray, MatrixLike, Metric, Names
from .._validation import (
    as_dense,
    check_choice,
    check_l1_bound,
    column_names,
    integer,
    number,
    real_array,
    require_memory,
)
from ..linalg.orthogonal import matrix_product, tall_product
from ..linalg.scaling import below_range
from ..operators.sparse import squared_norms
from .columns import (
    Array,
    Columns,
    Fit,
    WeightedResult,
    check_number_range,
    l1_threshold,
    warn_unless_converged,
)

METRICS = {"sqeuclidean": 2, "absolute": 1}  # the power of the differences that each adds


@frozen_record
class SparseDissimilarity(WeightedResult):
    """A dissimilarity between samples that depends on few variables.

    Attributes
    ----------
    weights : ndarray of shape (p,)
        Weights of the variables: nonnegative, of norm at most 1, with a sum of at most `l1_bound`.
    dissimilarity : ndarray of shape (n (n - 1) / 2,)
        `sum_j weights[j] d(x_ij, x_i'j)` for all pairs, in the order of `scipy.spatial.distance.pdist`. Pass
        it to `scipy.cluster.hierarchy.linkage`.
    objective : float
        `||D w||`: the norm of the dissimilarity over all ordered pairs, sqrt(2) times the norm of the vector.
    trace : ndarray of shape (n_iter,)
        The objective at each iteration, which never decreases.
    n_iter : int
    converged : bool
    l1_bound : float
    metric : str
        The name of the differences.
    names : tuple of str or None
        Names of the variables, if the input had any.

    Examples
    --------
    >>> import spcacore
    >>> cells = spcacore.datasets.load_blood_cells()
    >>> result = spcacore.sparse_dissimilarity(cells.data, 2)
    >>> [cells.names[j] for j in result.selected[:3]], result.dissimilarity.shape
    (['CST3', 'LYZ', 'HLA-DRA'], (244650,))
    """

    weights: AnyArray
    dissimilarity: AnyArray
    objective: float
    trace: Array
    n_iter: int
    converged: bool
    l1_bound: float
    metric: str
    names: Names

    def _facts(self) -> list[str]:
        return [
            counted(num_obs_y(self.dissimilarity), "sample"), self._chosen(), f"metric={self.metric!r}",
            f"l1_bound={self.l1_bound:.6g}", convergence(self),
        ]  # fmt: skip


def sparse_dissimilarity(
    X: MatrixLike,
    l1_bound: float,
    metric: Metric = "sqeuclidean",
    *,
    max_iter: int = 200,
    tol: float | None = None,
) -> SparseDissimilarity:
    """A dissimilarity between samples that depends on few variables, for hierarchical clustering.

    Maximizes `||D w||` over weights `w >= 0, ||w||_2 <= 1, ||w||_1 <= l1_bound`, where column j of D holds
    the differences of all pairs of samples in variable j, squared or absolute. It alternates `u <- Dw/||Dw||`
    with w <- the soft threshold of `D'u` that meets the bound. It starts from equal weights, as in the paper,
    and from the norms of the columns of D, and returns the better result. D has n^2 rows and is never formed.

    Parameters
    ----------
    X : array-like of shape (n, p), or sparse matrix
        Data in memory, one row per sample; float32 stays float32. Variables are not scaled: if their units
        differ, scale them first. X is not copied; a sparse matrix is made dense a few columns at a time.
    l1_bound : float
        In [1, sqrt(p)]. 1 allows a single variable; sqrt(p) is no restriction. See
        `sparse_dissimilarity_gap`.
    metric : {"sqeuclidean", "absolute", "precomputed"}, default "sqeuclidean"
        Differences `(x_ij - x_i'j)**2`, or `abs(x_ij - x_i'j)`, which is less sensitive to outliers. With
        "precomputed", X is D itself: other differences, at least 0, of shape (n (n - 1) / 2, p), with pairs
        in the order of `scipy.spatial.distance.pdist`.
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
    max_iter, tol = check_iterations(max_iter, tol)
    differences = as_differences(X, metric)
    bound = check_l1_bound(l1_bound, "l1_bound", differences.p)
    check_number_range(differences, bound)
    fit = best_weights(differences, bound, starting_vectors(differences), max_iter, tol)
    warn_unless_converged(fit.converged, max_iter)
    weights = fit.weights.astype(differences.dtype)
    exponent = differences.power * differences.exponent
    with below_range():
        pairs = np.ldexp(differences.weighted(weights), exponent).astype(differences.dtype)
        trace = np.ldexp(np.array(fit.trace), exponent)
    return SparseDissimilarity(
        weights, pairs, float(trace[-1]), trace, len(trace), fit.converged, bound, metric, differences.names
    )


def check_iterations(max_iter: Any, tol: Any) -> tuple[int, float | None]:
    """Return the options of the iteration, checked."""
    return integer(max_iter, "max_iter", 1), None if tol is None else number(tol, "tol", 0)


def best_weights(
    differences: AnyDifferences, bound: float, starts: list[Array], max_iter: int, tol: float | None
) -> Fit:
    """Return the best fit over the starts; the soft threshold of each start is the first w."""
    tol = CLUSTERING_TOL.of(differences.dtype) if tol is None else tol
    fits = [_alternate(differences, bound, start, max_iter, tol) for start in starts]
    return max(fits, key=lambda fit: fit.trace[-1])


def _alternate(differences: AnyDifferences, bound: float, start: Array, max_iter: int, tol: float) -> Fit:
    """Iterate w <- threshold(M w) until w stays."""
    fit = Fit(l1_threshold(start, bound), [], False)
    while True:
        a = differences.products(fit.weights)
        fit.trace.append(math.sqrt(float(fit.weights @ a)))
        new = l1_threshold(a, bound)
        fit.converged = float(np.abs(new - fit.weights).sum() / fit.weights.sum()) <= tol
        if fit.converged or len(fit.trace) == max_iter:
            return fit
        fit.weights = new


@record
class OfColumns(Columns):
    """Squared or absolute differences of the entries of columns."""

    metric: str = "sqeuclidean"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.power: int = METRICS[self.metric]

    def norms(self) -> Array:
        """Return the norms of the columns of D, up to a common factor."""
        squares = np.empty(self.p)
        for part, T in self.blocks():
            square = T * T
            total = square.sum(axis=1)
            squares[part] = total
            if self.metric == "sqeuclidean":
                squares[part] = self.n * np.einsum("ij,ij->i", square, square) + 3 * total * total
        return np.sqrt(squares)

    def products(self, w: Array) -> Array:
        """Return M w."""
        out = np.empty(self.p)
        # Absolute differences: D'(D w), from sums over pairs
        if self.metric == "absolute":
            pairs = self.weighted(w).astype(self.dtype, copy=False)
            for part, T in self.blocks():
                out[part] = _core.absolute_products(T, pairs)
            return 2 * out
        # Squared differences: the formula above, with G or a factor of G, whichever is smaller
        few = np.count_nonzero(w) <= self.n
        root = self.weighted_rows(w) if few else self.weighted_gram(w)
        s = np.einsum("ij,ij->j", root, root) if few else root.diagonal()

        def some(part: Any, T: AnyArray) -> None:
            product = matrix_product(T, root)
            quadratic = np.einsum("ij,ij->i", product, product if few else T)
            square = T * T
            weighted = np.einsum("ij,j->i", square, s)
            out[part] = 2 * (self.n * weighted + s.sum() * square.sum(axis=1) + 2 * quadratic)

        self.each_block(some)
        return out

    def weighted(self, w: AnyArray) -> Array:
        """Return D w over the pairs i < i'."""
        pairs = np.zeros(self.n * (self.n - 1) // 2)
        for part, T in self.blocks(np.flatnonzero(w)):
            _core.add_distances(T, w[part].astype(T.dtype, copy=False), self.metric == "sqeuclidean", pairs)
        return pairs


@record
class Given:
    """Differences that the caller gives: D, over the pairs i < i'."""

    D: AnyArray
    exponent: int
    names: Names
    power = 1

    def __post_init__(self) -> None:
        self.p: int = self.D.shape[1]
        self.dtype: Any = self.D.dtype
        self.n: int = num_obs_y(self.D[:, 0])

    def permuted(self, generator: np.random.Generator, poll: Callable[[], object]) -> Given:
        """Return D with the samples in another random order for each column."""
        D = np.empty_like(self.D)
        for j, d in enumerate(self.D.T):
            poll()
            square = squareform(d)
            order = generator.permutation(len(square))
            D[:, j] = squareform(square[np.ix_(order, order)], checks=False)
        return Given(D, self.exponent, self.names)

    def norms(self) -> Array:
        return np.sqrt(squared_norms(self.D))

    def products(self, w: Array) -> Array:
        return 2 * tall_product(self.D, self.weighted(w).astype(self.dtype), transposed=True).astype(
            np.float64
        )

    def weighted(self, w: AnyArray) -> Array:
        return tall_product(self.D, w.astype(self.dtype)).astype(np.float64)


AnyDifferences = OfColumns | Given


def starting_vectors(differences: AnyDifferences) -> list[Array]:
    """Return two starts: M w for equal weights, and sqrt(diag M), the norms of the columns of D."""
    p = differences.p
    return [differences.products(np.full(p, p**-0.5)), differences.norms()]


def as_differences(X: Any, metric: Any) -> AnyDifferences:
    """Return the differences of X, checked."""
    require_memory(X, "all pairs of rows are compared, which needs")
    if isinstance(metric, str) and metric == "precomputed":
        return _given(X)
    check_choice(metric, "metric", (*METRICS, "precomputed"))
    return OfColumns.of(X, metric=metric)


def _given(X: Any) -> Given:
    """Return X as D, checked."""
    names, D = column_names(X), real_array(as_dense(X), "X", ndim=2)
    if D.min() < 0:
        raise ValueError(f"differences must be at least 0, and one is {D.min():.3g}")
    if not D.max() > 0:
        raise ValueError("X has no variance: all its rows are equal")
    exponent = math.frexp(float(D.max()))[1]
    if not is_valid_y(D[:, 0]):
        raise ValueError(
            f"with metric='precomputed' X has a row for each of n (n - 1) / 2 pairs of samples, not {len(D)}"
        )
    return Given(np.asfortranarray(np.ldexp(D, -exponent), D.dtype), exponent, names)
