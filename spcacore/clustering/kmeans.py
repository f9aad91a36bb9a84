"""Sparse K-means: weights of the variables, chosen along with the clusters.

    maximize sum_j w_j b_j   subject to   w >= 0, ||w||_2 <= 1, ||w||_1 <= c

over w and partitions, where b_j is the sum of squares between clusters of variable j. Two steps alternate: w
= the soft threshold of b, and K-means on the columns sqrt(w_j) x_j.

A K-means search is a generator that yields queries about its points ("sums", "nearest", "rows", "drawn").
Data in memory (`columns`) and in row blocks (`kmeans_blocks`) answer them, each in their way. A partition is
an array of labels in memory; for row blocks it is what labels are computed from.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np

from .._labels import joined
from .._limits import LLOYD_STEPS
from .._messages import convergence, few
from .._records import frozen_record, replaced
from .._types import AnyArray, Index, MatrixLike, Names, RandomSource, Weights
from .._validation import as_seed, check_l1_bound, integer, is_row_blocks, is_sparse
from ..linalg.scaling import eps_of
from ..operators.blocks import SlicedRows, WholeRows
from ..operators.partition import row_blocks
from ..operators.transform import scores
from ..progress import Callback, Progress, check_callback
from .columns import (
    Array,
    Columns,
    Fit,
    Search,
    Step,
    WeightedResult,
    check_number_range,
    l1_threshold,
    renumbered,
    sums_of_squares,
    warn_unless_converged,
)
from .kmeans_blocks import AnyColumns, BlockColumns

ROUND_GAIN = 1e-3  # relative, of new starts; after less there are no more


@frozen_record
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

    labels: Index
    weights: AnyArray
    centers: AnyArray
    objective: float
    trace: Array
    n_iter: int
    converged: bool
    l1_bound: float
    names: Names

    def _facts(self) -> list[str]:
        return [
            f"cluster sizes {few(np.bincount(self.labels))}", self._chosen(),
            f"l1_bound={self.l1_bound:.6g}", convergence(self),
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

    The search starts from `n_init` partitions, which K-means finds from random centers (k-means++): half of
    them with all variables, the others with a single variable each. Then it tries 3 `n_init` new ones, while
    these gain more than .1 percent: two thirds with a variable added to the best weights, the others with
    weights at random or the best ones. The `n_init` / 4 best of each round go on. Where weights alternate,
    K-means is Lloyd's iteration, followed by moves of single samples.

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
        Largest number of changes of the weights from each start, which end when no label changes.
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
    check_number_range(columns, bound)
    generator = np.random.default_rng([seed, 0])
    starts = first_partitions(columns, n_clusters, n_init, generator)
    hook, done = check_callback(callback), count(1)

    def tell() -> bool:
        return hook(Progress(0, 1, next(done)))

    fit = best_partition(columns, n_clusters, bound, starts, max_iter, generator, tell)
    if not hook.ended:
        warn_unless_converged(fit.converged, max_iter)
    labels, centers = columns.labels(fit.partition), columns.centers(fit.partition, n_clusters)
    trace = np.ldexp(np.array(fit.trace), columns.power * columns.exponent)
    stopped = hook.ended
    hook(Progress(0, 1, len(trace), float(trace[-1])))
    weights = fit.weights.astype(columns.dtype)
    if columns.kept is not None:
        own, labels = labels, nearest_clusters(X, centers, weights)
        labels[columns.kept] = own
    labels, order = renumbered(labels)
    return SparseKMeans(
        labels, weights, centers[order], float(trace[-1]),
        trace, len(trace), fit.converged and not stopped, bound, columns.names,
    )  # fmt: skip


def nearest_clusters(X: Any, centers: AnyArray, weights: AnyArray) -> Index:
    """Return the cluster of the center nearest to each row, in the weighted variables."""
    centers = centers.astype(np.float64)
    middle = centers.mean(axis=0)
    # Half the squared distance, less what all centers share
    between = weights[:, None] * (centers - middle).T
    nearness = scores(X, between, middle, None) - 0.5 * np.sum(between * (centers - middle).T, axis=0)
    return np.asarray(np.argmax(nearness, axis=1))


def as_kmeans_input(X: Any, sample_weight: Any = None) -> AnyColumns:
    """Return dense data by variables, and sparse data and row blocks by blocks of rows."""
    if not (is_sparse(X) or is_row_blocks(X)):
        return Columns.of(X, sample_weight)
    blocks = WholeRows(X) if is_sparse(X) else row_blocks(X).held()
    if isinstance(blocks, SlicedRows) and blocks.n_blocks == 1 and not is_sparse(X):
        rows = blocks.whole()  # memory holds it in each pass anyway
        if not is_sparse(rows):
            return replaced(Columns.of(rows, sample_weight), names=blocks.names)
    return BlockColumns(blocks, sample_weight=sample_weight)


def first_partitions(
    columns: AnyColumns, n_clusters: int, n_init: int, generator: np.random.Generator
) -> list[Any]:
    """Return partitions from K-means on all variables with equal weights, and on single variables.

    About half of the starts use a single variable. Where clusters differ in only one or two variables, the
    noise of all the others may hide them from every start.
    """
    single = np.resize(generator.permutation(columns.p), n_init // 2)
    everything = np.full(columns.p, columns.p**-0.5)
    weights = [everything] * (n_init - len(single))
    weights += [(np.arange(columns.p) == j).astype(np.float64) for j in single]
    return _kmeans_runs(columns, weights, n_clusters, generator)


def best_partition(
    columns: AnyColumns,
    n_clusters: int,
    bound: float,
    starts: list[Any],
    max_iter: int,
    generator: np.random.Generator,
    tell: Callable[[], bool] = lambda: False,
) -> Fit:
    """Return the best fit from some partitions, and from new ones by other weights, while these are better.

    From the weights of a local optimum K-means seldom finds another: a variable is added to most of them, or
    they are random. `tell` is called at each change of the weights; True from it ends the search.
    """
    quarter = -(-len(starts) // 4)
    best = _from_partitions(columns, n_clusters, bound, starts, len(starts), max_iter, tell)
    least = max(1e-9, 8 * eps_of(columns.dtype))  # a smaller gain may be rounding
    while best.converged:
        added = np.resize(generator.permutation(columns.p), 8 * quarter)
        weights = [best.weights + (np.arange(columns.p) == j) for j in added]
        random = generator.exponential(size=(2 * quarter, columns.p))
        weights += [l1_threshold(own, bound) for own in random] + [best.weights] * (2 * quarter)
        partitions = _kmeans_runs(columns, weights, n_clusters, generator)
        more = _from_partitions(columns, n_clusters, bound, partitions, quarter, max_iter, tell)
        value = best.trace[-1]
        if more.trace[-1] > value * (1 + least):
            best = more
        if not best.trace[-1] > value * (1 + ROUND_GAIN):
            break
    return best


def _from_partitions(
    columns: AnyColumns,
    n_clusters: int,
    bound: float,
    starts: list[Any],
    keep: int,
    max_iter: int,
    tell: Callable[[], bool],
) -> Fit:
    """Return the best fit over the starts; those that are best after their first weights go on.

    The starts advance together, so that they share the passes over the data. Starts that reach the same
    partition continue as one.
    """
    finished: list[Fit] = []
    seen: dict[Any, Fit] = {}  # the first run that reached each partition
    active = [Fit(np.empty(0), [], False, partition) for partition in starts]
    for n_iter in range(1, max_iter + 1):
        active = [run for run in active if seen.setdefault(columns.key(run.partition), run) is run]
        # w, given the partitions
        sums = columns.sums_between([run.partition for run in active], n_clusters)
        for run, between in zip(active, sums, strict=True):
            run.weights = l1_threshold(between, bound)
            run.trace.append(float(run.weights @ between))
        if n_iter == 1:
            active = sorted(active, key=lambda run: -run.trace[-1])[:keep]
        last = tell() or n_iter == max_iter
        # Partitions, given w
        searches = [(run.weights, lloyd(columns, run.partition, n_clusters)) for run in active]
        for run, new in zip(active, columns.run_searches(searches), strict=True):
            run.converged = columns.key(new) == columns.key(run.partition)  # the weights would stay, too
            if not last:
                run.partition = new
        finished += [run for run in active if run.converged or last]
        active = [run for run in active if not run.converged]
        if last or not active:
            break
    return max(finished, key=lambda run: run.trace[-1])


def _kmeans_runs(
    columns: AnyColumns, weights: list[Array], n_clusters: int, generator: np.random.Generator
) -> list[Any]:
    """Return partitions of K-means from random centers, one for each of the weights.

    Without moves of single points they differ more, and the search over weights ends at better ones.
    """

    def run(first: int, keys: list[int]) -> Search:
        step = yield from _kmeans_plus_plus(columns, first, keys)
        return (yield from lloyd(columns, step, n_clusters, moves=False))

    chance = None if columns.weight is None else columns.mass / columns.mass.sum()
    starts = [
        (int(generator.choice(columns.n, p=chance)), generator.integers(2**63, size=n_clusters - 1).tolist())
        for _ in weights
    ]
    return columns.run_searches([(own, run(*start)) for own, start in zip(weights, starts, strict=True)])


def lloyd(columns: AnyColumns, begin: Any, n_clusters: int, moves: bool = True) -> Search:
    """Make Lloyd's steps and, where these end, moves of single points (Hartigan 1975), until neither helps.

    `begin` is a partition or a step. Returns the partition, whose sum of squares between clusters grows with
    each step.
    """
    at: Step = begin if isinstance(begin, Step) else (yield "sums", (begin, n_clusters))
    least, value = 1e-11 * at.total, sums_of_squares(at)
    for _ in range(LLOYD_STEPS):
        columns.poll()
        # Lloyd's step: each point goes to the nearest center
        enough = value + least if moves else -np.inf
        new = yield "nearest", (at.sums / at.counts[:, None], (at.counts, at.sizes), enough)
        new = yield from _without_empty_clusters(columns, new)
        new_value = sums_of_squares(new)
        if not new_value > value + least:
            # Hartigan's moves
            candidates = new.gains[new.gains[:, 2] > least]
            if not moves or len(candidates) == 0:
                break
            points = yield "rows", candidates[:, 0].astype(np.intp).tolist()
            new = _hartigan_moves(columns, new, candidates, points, least)
            new_value = sums_of_squares(new)
            if not new_value > value + least:
                break
        at, value = new, new_value
    return at.partition


def _hartigan_moves(columns: AnyColumns, step: Step, candidates: Array, points: Array, least: float) -> Step:
    """Return the step after the candidates have moved, one after another, each if that still gains."""
    for (i, own), point in zip(candidates[:, :2].astype(np.intp).tolist(), points, strict=True):
        m, counts = columns.mass[i], step.counts
        distance = ((point - step.sums / counts[:, None]) ** 2).sum(axis=1)
        change = distance * (m * counts / (counts + m))
        change[own] = np.inf
        to = int(np.argmin(change))
        if step.sizes[own] > 1 and distance[own] * m * counts[own] / (counts[own] - m) - change[to] > least:
            step = _moved(columns, step, {i: (own, to)}, point[None])
    return step


def _moved(columns: AnyColumns, step: Step, moves: dict[int, tuple[int, int]], points: Array) -> Step:
    """Return the step after points have moved from one cluster to another."""
    sums, counts, sizes = step.sums.copy(), step.counts.copy(), step.sizes.copy()
    for (i, (own, to)), point in zip(moves.items(), points, strict=True):
        for cluster, sign in ((own, -1), (to, 1)):
            sums[cluster] += sign * columns.mass[i] * point
            counts[cluster] += sign * columns.mass[i]
            sizes[cluster] += sign
    partition = columns.moved(step.partition, moves)
    return step._replace(partition=partition, sums=sums, counts=counts, sizes=sizes)


def _without_empty_clusters(columns: AnyColumns, step: Step) -> Search:
    """Return the step with the points that are farthest from their centers moved into empty clusters."""
    if step.sizes.all():
        return step
    sizes, left = step.sizes.copy(), step.far[:, :2].astype(np.intp).tolist()
    moves: dict[int, tuple[int, int]] = {}
    for empty in np.flatnonzero(sizes == 0).tolist():
        i, own = next(point for point in left if sizes[point[1]] > 1)
        left.remove([i, own])
        sizes[own] -= 1
        moves[i] = own, empty
    points = yield "rows", list(moves)
    gains = step.gains[~np.isin(step.gains[:, 0], list(moves))]
    return _moved(columns, step, moves, points)._replace(gains=gains)


def _kmeans_plus_plus(columns: AnyColumns, first: int, keys: list[int]) -> Search:
    """Return the step from random centers that are far apart (k-means++).

    `keys` are seeds, one for each further center. See Arthur and Vassilvitskii (2007), SODA, 1027-1035.
    """
    centers = yield "rows", [first]
    near, i = None, first
    for key in keys:
        near, i = yield "drawn", (i, centers[-1], near, key)
        centers = np.concatenate((centers, (yield "rows", [i])))
    before = np.ones(len(centers)), np.ones(len(centers), np.intp)
    return (yield from _without_empty_clusters(columns, (yield "nearest", (centers, before, np.inf))))
