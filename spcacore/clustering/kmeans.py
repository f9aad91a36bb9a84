"""Sparse K-means: weights of the variables, chosen along with the clusters.

    maximize sum_j w_j b_j   subject to   w >= 0, ||w||_2 <= 1, ||w||_1 <= c

over w and partitions, b_j the sum of squares between clusters of variable j: by turns w = the soft threshold
of b, and K-means on the columns sqrt(w_j) x_j. A K-means search is a generator that yields queries about its
points ("squared_norms", "products", "sums", "rows", "distances_from"), which data in memory and in blocks of
rows answer each in their way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._labels import joined
from .._limits import HARTIGAN_MOVES, LLOYD_STEPS
from .._messages import convergence, few
from .._records import replaced
from .._types import MatrixLike, RandomSource, Weights
from .._validation import LARGEST, as_seed, integer, is_row_blocks, is_sparse
from ..operators.blocks import SlicedRows
from ..operators.partition import row_blocks
from ..operators.sparse import compressed
from ..operators.transform import scores
from ..progress import Callback, Progress, check_callback
from .columns import (
    PAIRS,
    Array,
    Columns,
    Fit,
    Labels,
    Search,
    WeightedResult,
    as_columns,
    check_l1_bound,
    check_number_range,
    l1_threshold,
    warn_unless_converged,
)
from .kmeans_blocks import BlockColumns

__all__ = [
    "SparseKMeans",
    "as_kmeans_input",
    "best_partition",
    "first_partitions",
    "lloyd",
    "nearest_clusters",
    "sparse_kmeans",
]


@dataclass(frozen=True, eq=False, repr=False)
class SparseKMeans(WeightedResult):
    """Clusters of samples that depend on few variables.

    Attributes
    ----------
    labels : ndarray of shape (n,), intp
        Cluster of each sample, numbered from 0 in order of first occurrence.
    weights : ndarray of shape (p,)
        Weights of the variables: nonnegative, of norm at most 1, with a sum of at most `l1_bound`.
    centers : ndarray of shape (n_clusters, p)
        Means of all variables in each cluster.
    objective : float
        `sum_j weights[j] b_j`, b_j the sum of squares between clusters.
    trace : ndarray of shape (n_iter,)
        The objective at each iteration, which never decreases.
    n_iter : int
    converged : bool
    l1_bound : float
    names : tuple of str or None
        Names of the variables, if the input had any.

    Examples
    --------
    >>> import numpy as np, spcacore
    >>> X = np.random.default_rng(0).standard_normal((30, 20))
    >>> X[20:, :3] += 5
    >>> result = spcacore.sparse_kmeans(X, 2, 1.7)
    >>> result.centers.shape, sorted(result.selected[:3].tolist())
    ((2, 20), [0, 1, 2])
    """

    labels: Labels
    weights: NDArray[Any]
    centers: NDArray[Any]
    objective: float
    trace: Array
    n_iter: int
    converged: bool
    l1_bound: float
    names: tuple[str, ...] | None

    def _facts(self) -> list[str]:
        return [
            f"cluster sizes {few(np.bincount(self.labels))}", self._chosen(),
            f"l1_bound={self.l1_bound:.6g}", convergence(self.converged, self.n_iter),
        ]  # fmt: skip


def sparse_kmeans(
    X: MatrixLike,
    n_clusters: int,
    l1_bound: float,
    *,
    n_init: int = 20,
    max_iter: int = 100,
    sample_weight: Weights = None,
    rng: RandomSource = None,
    callback: Callback | None = None,
) -> SparseKMeans:
    """K-means with few variables, which are chosen together with the clusters.

    Maximizes `sum_j w_j b_j` over partitions into `n_clusters` and weights
    `w >= 0, ||w||_2 <= 1, ||w||_1 <= l1_bound`, where b_j is the sum of squares of variable j between
    clusters (total minus within). It alternates K-means on the columns `sqrt(w_j) x_j` with w <- the soft
    threshold of b that meets the bound. The objective never decreases.

    The search starts from `n_init` partitions, which K-means with all variables finds from random centers
    (k-means++). With the best weights it tries the same number of new partitions. K-means is Lloyd's
    iteration, followed by moves of single samples.

    Parameters
    ----------
    X : array-like of shape (n, p), sparse matrix, RowBlocks or dask array
        Data, one row per sample; float32 stays float32. Variables are centered implicitly, but not scaled: if
        their units differ, scale them first. X is not copied; sparse matrices stay sparse. Each step of
        K-means reads blocks of rows once, for several starts together, and rows of single points; a
        smaller `n_init` needs fewer passes.
    n_clusters : int
        At least 2 and at most the number of rows.
    l1_bound : float
        In [1, sqrt(p)]. See `sparse_kmeans_gap`.
    n_init : int, default 20
        Number of random starts.
    max_iter : int, default 100
        Largest number of changes of the weights. The search ends before that when no label changes.
    sample_weight : array-like of shape (n,), optional
        How many samples each row stands for, at least 0: means and sums of squares are the same as if each
        row were repeated that often. The sum must be above 1. A row of weight 0 has the label of the nearest
        center.
    rng : None, int or numpy Generator, optional
        For the starts. None is a fixed seed.
    callback : callable or True, optional
        Called with a `Progress` after each change of the weights. Raising StopIteration ends the search
        early, with the best partition so far and ``converged=False``.

    Returns
    -------
    SparseKMeans
        `labels` (n,), numbered in order of first occurrence, with no empty cluster; `weights` (p,), `centers`
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
    columns = as_kmeans_input(X, joined(X, sample_weight, "sample_weight"))
    n_clusters = integer(n_clusters, "n_clusters", 2, columns.n)
    bound = check_l1_bound(l1_bound, "l1_bound", columns.p)
    check_number_range(columns, 2, bound)
    generator = np.random.default_rng([seed, 0])
    starts = first_partitions(columns, n_clusters, n_init, generator)
    hook, done = check_callback(callback), count(1)

    def tell() -> bool:
        return hook is not None and hook(Progress(0, 1, next(done)))

    fit = best_partition(columns, n_clusters, bound, starts, max_iter, generator, tell)
    stopped = hook is not None and hook.ended
    if not stopped:
        warn_unless_converged(fit.converged, max_iter)
    labels = _renumber(fit.labels)
    trace = np.ldexp(np.array(fit.trace), 2 * columns.exponent)
    if hook is not None:
        hook(Progress(0, 1, len(trace), float(trace[-1])))
    weights, centers = fit.weights.astype(columns.dtype), columns.centers(labels, n_clusters)
    if columns.kept is not None:
        own, labels = labels, nearest_clusters(X, centers, weights)
        labels[columns.kept] = own
    return SparseKMeans(
        labels, weights, centers, float(trace[-1]),
        trace, len(trace), fit.converged and not stopped, bound, columns.names,
    )  # fmt: skip


def nearest_clusters(X: Any, centers: NDArray[Any], weights: NDArray[Any]) -> Labels:
    """The cluster of the center nearest to each row, in the weighted variables."""
    centers = centers.astype(np.float64)
    middle = centers.mean(axis=0)
    between = weights[:, None] * (centers - middle).T  # the distance less what all share, halved
    nearness = scores(X, between, middle, None) - 0.5 * np.sum(between * (centers - middle).T, axis=0)
    return np.asarray(np.argmax(nearness, axis=1))


def as_kmeans_input(X: Any, sample_weight: Any = None) -> Columns | BlockColumns:
    """Dense data by variables; sparse data and row blocks by blocks of rows."""
    if not (is_sparse(X) or is_row_blocks(X)):
        return as_columns(X, sample_weight)
    blocks = row_blocks(compressed(X), block_bytes=LARGEST) if is_sparse(X) else row_blocks(X).held()
    if isinstance(blocks, SlicedRows) and blocks.n_blocks == 1 and not is_sparse(X):
        rows = blocks.whole()  # which memory holds in each pass anyway
        if not is_sparse(rows):
            return replaced(as_columns(rows, sample_weight), names=blocks.names)
    columns = BlockColumns(blocks, sample_weight=sample_weight)
    if columns.n < 2:
        raise ValueError(PAIRS)
    return columns


def first_partitions(
    columns: Columns | BlockColumns, n_clusters: int, n_init: int, generator: np.random.Generator
) -> list[Labels]:
    """Partitions by K-means on all variables, equally weighted."""
    weights = np.full(columns.p, columns.p**-0.5)
    return [labels for labels, _ in _kmeans_runs(columns, weights, n_clusters, n_init, generator)]


def best_partition(
    columns: Columns | BlockColumns,
    n_clusters: int,
    bound: float,
    starts: list[Labels],
    max_iter: int,
    generator: np.random.Generator,
    tell: Callable[[], bool] = lambda: False,
) -> Fit:
    """The best result from some partitions, improved by new K-means starts with its weights.

    `tell` hears of each change of the weights, and says whether the search is to end.
    """
    best = _from_partitions(columns, n_clusters, bound, starts, max_iter, tell)
    least = max(1e-9, 8 * float(np.finfo(columns.dtype).eps))  # what is no gain but rounding
    while best.converged:
        runs = _kmeans_runs(columns, best.weights, n_clusters, len(starts), generator)
        labels, value = max(runs, key=lambda run: run[1])
        remaining = max_iter - len(best.trace)
        if remaining == 0 or not value > best.trace[-1] * (1 + least):
            break
        more = _from_partitions(columns, n_clusters, bound, [labels], remaining, tell)
        more.trace[:0] = best.trace
        best = more
    return best


def _from_partitions(
    columns: Columns | BlockColumns,
    n_clusters: int,
    bound: float,
    starts: list[Labels],
    max_iter: int,
    tell: Callable[[], bool],
) -> Fit:
    """The best result over all starts, which advance together, so that they share the passes over the data.

    Starts that reach the same partition continue as one.
    """
    finished: list[Fit] = []
    seen: set[bytes] = set()
    active = [Fit(np.empty(0), [], False, labels) for labels in starts]
    for n_iter in range(1, max_iter + 1):
        active = [run for run in active if _add_if_new(_renumber(run.labels).tobytes(), seen)]
        sums = columns.sums_between([run.labels for run in active], n_clusters)
        for run, between in zip(active, sums, strict=True):
            run.weights = l1_threshold(between, bound)
            run.trace.append(float(run.weights @ between))
        last = tell() or n_iter == max_iter
        searches = [(run.weights, lloyd(columns, run.labels, n_clusters)) for run in active]
        for run, (new, _) in zip(active, columns.run_searches(searches), strict=True):
            run.converged = np.array_equal(new, run.labels)  # which fixes the weights, too
            if not last:
                run.labels = new
        finished += [run for run in active if run.converged or last]
        active = [run for run in active if not run.converged]
        if last or not active:
            break
    return max(finished, key=lambda run: run.trace[-1])


def _add_if_new(key: bytes, seen: set[bytes]) -> bool:
    """Whether the key was not in the set, which it joins."""
    new = key not in seen
    seen.add(key)
    return new


def _kmeans_runs(
    columns: Columns | BlockColumns,
    weights: Array,
    n_clusters: int,
    n_init: int,
    generator: np.random.Generator,
) -> list[tuple[Labels, float]]:
    """K-means from some starts: partitions, and their sums of squares between clusters."""

    def run(first: int, draws: list[float]) -> Search:
        labels, squares = yield from _kmeans_plus_plus(n_clusters, first, draws, columns.mass)
        return (yield from lloyd(columns, labels, n_clusters, squares))

    chance = None if columns.weight is None else columns.mass / columns.mass.sum()
    starts = [
        (int(generator.choice(columns.n, p=chance)), generator.random(n_clusters - 1).tolist())
        for _ in range(n_init)
    ]
    return columns.run_searches([(weights, run(*start)) for start in starts])


def lloyd(
    columns: Columns | BlockColumns, labels: Labels, n_clusters: int, squares: Array | None = None
) -> Search:
    """Lloyd's steps and, where they end, moves of single points, until neither helps (Hartigan 1975).

    Returns the partition and its sum of squares between clusters, which grows with every step. The squared
    norms of the points may be known.
    """
    if squares is None:
        squares = yield "squared_norms", None
    mass = columns.mass
    least = 1e-11 * float(mass @ squares)
    sums = yield "sums", (labels, n_clusters)
    centers, value = _means(sums, labels, mass)
    for _ in range(LLOYD_STEPS):
        columns.poll()
        products, new, new_sums = yield "nearest", centers
        distance = squares[:, None] - 2 * products + np.einsum("ij,ij->i", centers, centers)
        moves = _moves_to_empty_clusters(distance, new)
        if moves:
            points = yield "rows", list(moves)
            new, new_sums = _moved(new, new_sums, moves, points, mass)
        new_centers, new_value = _means(new_sums, new, mass)
        if not new_value > value + least:
            candidates = _candidates(distance, labels, least, mass)
            if not candidates:
                break
            points = yield "rows", candidates
            new, new_sums = _hartigan_moves(labels, sums, candidates, points, least, mass)
            new_centers, new_value = _means(new_sums, new, mass)
            if not new_value > value + least:
                break
        labels, sums, centers, value = new, new_sums, new_centers, new_value
    return labels, value


def _means(sums: Array, labels: Labels, mass: Array) -> tuple[Array, float]:
    """The centers, and the sum of squares between clusters."""
    counts = np.bincount(labels, mass, len(sums))
    centers = sums / counts[:, None]
    return centers, float(counts @ np.einsum("ij,ij->i", centers, centers))


def _moved(
    labels: Labels, sums: Array, moves: dict[int, int], points: Array, mass: Array
) -> tuple[Labels, Array]:
    """The labels and the sums of clusters after points have moved."""
    labels, sums = labels.copy(), sums.copy()
    for (i, to), point in zip(moves.items(), points, strict=True):
        sums[labels[i]] -= mass[i] * point
        sums[to] += mass[i] * point
        labels[i] = to
    return labels, sums


def _candidates(distance: Array, labels: Labels, least: float, mass: Array) -> list[int]:
    """Points that each lower the sum of squares within clusters by a move, from the largest gain down.

    A point of mass m at the distance d from a cluster of mass M adds d^2 m M/(M + m), and had M/(M - m).
    """
    counts, sizes = np.bincount(labels, mass, distance.shape[1]), np.bincount(labels)
    rows, own, others = np.arange(len(labels)), counts[labels], sizes[labels] > 1
    saving = distance[rows, labels] * np.where(others, mass * own / np.where(others, own - mass, 1), 0)
    cost = distance * (mass[:, None] * counts / (counts + mass[:, None]))
    cost[rows, labels] = np.inf
    gain = saving - cost.min(axis=1)
    order = np.argsort(-gain, kind="stable")[:HARTIGAN_MOVES]
    return order[gain[order] > least].tolist()


def _hartigan_moves(
    labels: Labels, sums: Array, candidates: list[int], points: Array, least: float, mass: Array
) -> tuple[Labels, Array]:
    """The labels and the sums of clusters after the candidates moved, each if that still gains, in turn."""
    labels, sums = labels.copy(), sums.copy()
    counts, sizes = np.bincount(labels, mass, len(sums)), np.bincount(labels, minlength=len(sums))
    for i, point in zip(candidates, points, strict=True):
        own, m = labels[i], mass[i]
        distance = ((point - sums / counts[:, None]) ** 2).sum(axis=1)
        change = distance * (m * counts / (counts + m))
        change[own] = np.inf
        to = int(np.argmin(change))
        if sizes[own] > 1 and distance[own] * m * counts[own] / (counts[own] - m) - change[to] > least:
            for cluster, sign in ((own, -1), (to, 1)):
                sums[cluster] += sign * m * point
                counts[cluster] += sign * m
                sizes[cluster] += sign
            labels[i] = to
    return labels, sums


def _moves_to_empty_clusters(distance: Array, labels: Labels) -> dict[int, int]:
    """For every empty cluster the point farthest from its center, as `{point: cluster}`."""
    counts = np.bincount(labels, minlength=distance.shape[1])
    moves: dict[int, int] = {}
    if counts.all():
        return moves
    own = distance[np.arange(len(labels)), labels]
    for empty in np.flatnonzero(counts == 0):
        i = int(np.argmax(np.where(counts[labels] > 1, own, -np.inf)))
        counts[labels[i]] -= 1
        moves[i], own[i] = int(empty), -np.inf
    return moves


def _kmeans_plus_plus(n_clusters: int, first: int, draws: list[float], mass: Array) -> Search:
    """Labels by random centers far apart (k-means++: Arthur and Vassilvitskii 2007, SODA, 1027-1035), and the
    squared norms of the points."""
    squares = yield "squared_norms", None
    chosen, nearest = [first], np.full(len(squares), np.inf)
    for draw in draws:
        nearest = np.minimum(nearest, (yield "distances_from", (chosen[-1], squares)))
        total = np.cumsum(mass * nearest)
        i = int(np.searchsorted(total, draw * total[-1], side="right"))
        chosen.append(min(i, len(nearest) - 1))
    centers = yield "rows", chosen
    products = yield "products", centers
    distance = squares[:, None] - 2 * products + np.einsum("ij,ij->i", centers, centers)
    labels = np.argmin(distance, axis=1)
    for i, to in _moves_to_empty_clusters(distance, labels).items():
        labels[i] = to
    return labels, squares


def _renumber(labels: Labels) -> Labels:
    """Labels in the order in which clusters first occur."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse]
