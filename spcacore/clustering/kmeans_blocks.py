"""K-means for data that are read by blocks of rows: files, distributed arrays and sparse matrices.

A search yields queries about all points. One pass over the rows answers the queries of all searches, so that
many starts need few passes. Points are `sqrt(w_j) (x_j - mean_j)` for the variables of nonzero weight; they
are computed for a few rows at a time. A partition is described by centers: each point belongs to the nearest
one, except for points that have moved. So a block answers with sums for each cluster and with a few points,
and labels travel once, at the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._limits import HARTIGAN_MOVES, KMEANS_ENTRIES
from .._types import AnyArray, Array, Names
from .._validation import float_type, is_sparse
from ..operators.blocks import RowBlocks, WholeRows, as_kernel_input, dense_rows, locate_not_finite
from ..operators.moments import statistics
from ..operators.sparse import permuted_columns
from ..operators.statistics import Statistics, merged
from .columns import Columns, Labels, Points, Samples, Step, centering, largest, split_weight

_KEY = 7  # seed of random numbers of the rows; their sums tell partitions apart


class Assigned(NamedTuple):
    """A partition: each point belongs to the nearest center, by these weights, unless it has moved.

    `keys` has for each cluster the sum of random numbers of its rows, modulo 2^64.
    """

    weights: Array
    centers: Array
    moves: dict[int, tuple[int, int]]
    keys: NDArray[np.uint64]


class _Question(NamedTuple):
    """A question about the points with these weights, and the number of entries of its answer."""

    task: Callable[..., Any]
    weights: Array
    given: tuple[Any, ...]
    entries: int = 1


class BlockColumns(Samples):
    """Data in blocks of rows, centered and scaled to about 1 by a power of two, like `Columns`."""

    n: int
    p: int
    dtype: Any
    mean: Array
    exponent: int
    weight: Array | None
    kept: Labels | None
    source: RowBlocks
    blocks: RowBlocks
    names: Names

    def __init__(
        self, source: RowBlocks, poll: Callable[[], object] = lambda: None, sample_weight: Any = None
    ) -> None:
        self.weight, self.kept = split_weight(sample_weight, source.shape[0])
        blocks = source if self.kept is None else source.taken(self.kept)
        self.source, self.blocks, self.names = source, blocks, blocks.names
        self.poll: Callable[[], object] = poll
        (self.n, self.p), self.dtype = blocks.shape, float_type(blocks.dtype)
        each = blocks.placed(self.weight)
        self.own: list[tuple[int, Any]] = list(zip(blocks.starts, each, strict=True))
        self.everything: Array = np.ones(self.p)
        found: Statistics = blocks.reduced(merged, statistics, each=each)
        if not all(np.isfinite(a).all() for a in (found.mean, found.low, found.high)):
            locate_not_finite(blocks)
        self.mean, self.exponent = centering(found, self.n)
        self.unit: float = math.ldexp(1.0, -self.exponent)
        rows = max(map(len, blocks.split(np.empty(self.n))))
        self.together: int = max(1, KMEANS_ENTRIES // (8 * rows))  # as many as memory allows

    def permuted(self, generator: np.random.Generator, poll: Callable[[], object]) -> BlockColumns:
        """Return a copy of a sparse matrix with the entries of each variable in random order."""
        source: Any = self.source
        X = permuted_columns(source.source, generator)
        return BlockColumns(WholeRows(X), poll)

    def _answers(self, queries: dict[int, tuple[str, Any]], weights: Sequence[Array]) -> dict[int, Any]:
        """Answer the queries for single rows if there are any, else all queries in one pass."""
        asked = [i for i, (kind, _) in queries.items() if kind == "rows"]
        if asked:  # these first, so that all searches share the next pass
            rows = self._rows([weights[i] for i in asked], [queries[i][1] for i in asked])
            return dict(zip(asked, rows, strict=True))
        each = [self._question(weights[i], *query) for i, query in queries.items()]
        found = self._ask([question for question, _ in each])
        return {i: finish(own) for i, (_, finish), own in zip(queries, each, found, strict=True)}

    def _question(self, w: Array, kind: str, given: Any) -> tuple[_Question, Callable[[Any], Any]]:
        """Return the question for the blocks, and a function that makes the answer of their answer."""
        if kind == "nearest":
            centers, before, _ = given
            return (
                _Question(_nearest, w, (centers, before), centers.size),
                lambda step: step._replace(partition=Assigned(w, centers, {}, step.partition)),
            )
        if kind == "sums":
            partition, k = given
            return (
                _Question(_sums, w, (partition, k), k * np.count_nonzero(w)),
                lambda step: step._replace(partition=partition),
            )
        i, point, old, key = given  # "drawn"
        near = ([i], point[None]) if old is None else ([*old[0], i], np.concatenate((old[1], point[None])))
        return _Question(_draw, w, (*near, key)), lambda best: (near, best[0])

    def _ask(self, questions: list[_Question]) -> list[Any]:
        """Return the answers to several questions, from one pass."""
        if not questions:
            return []
        combine = partial(_combined, [_COMBINE[question.task] for question in questions])
        entries = sum(question.entries for question in questions)
        sides = self.mean, self.unit, questions
        return list(self.blocks.reduced(combine, _each_of, *sides, each=self.own, entries=entries))

    def _sums(self, partitions: list[Assigned], n_clusters: int) -> Iterable[tuple[Array, Array]]:
        entries = n_clusters * self.p
        steps = self._ask([_Question(_sums, self.everything, (a, n_clusters), entries) for a in partitions])
        return ((step.sums, step.counts) for step in steps)

    def labels(self, partition: Assigned) -> Labels:
        """Return the cluster of each sample."""
        (labels,) = self._ask([_Question(_labels, partition.weights, (partition,))])
        return np.asarray(labels)

    def key(self, partition: Assigned) -> Any:
        """Return a key of the partition that does not depend on how its clusters are numbered."""
        return tuple(sorted(partition.keys.tolist()))

    def moved(self, partition: Assigned, moves: dict[int, tuple[int, int]]) -> Assigned:
        """Return the partition after points have moved from one cluster to another."""
        keys = partition.keys.copy()
        for i, (own, to) in moves.items():
            keys[own : own + 1] -= _row_keys(i, 1)  # arrays wrap around
            keys[to : to + 1] += _row_keys(i, 1)
        return partition._replace(moves=partition.moves | moves, keys=keys)

    def _rows(self, weights: list[Array], chosen: list[list[int]]) -> list[Array]:
        """Return the points with these numbers, for each search."""
        index = np.concatenate(chosen)
        rows = self.source.rows(index if self.kept is None else self.kept[index])
        rows = (rows.astype(np.float64) - self.mean) * self.unit
        parts = np.split(rows, np.cumsum([len(some) for some in chosen])[:-1])
        return [part[:, w > 0] * np.sqrt(w[w > 0]) for w, part in zip(weights, parts, strict=True)]


AnyColumns = Columns | BlockColumns

# ---- one block --------------------------------------------------------------------------------------


class _Rows(NamedTuple):
    """A few rows of a block, centered and scaled, `unit (x - mean)`; a sparse X is kept as it is.

    `first` is the number of the first row, `weight` has the weights of the rows.
    """

    X: Any
    first: int
    weight: Array
    mean: AnyArray
    unit: float

    def points(self, w: Array) -> Points:
        """Return the points: rows times sqrt(w_j), for the variables of nonzero weight."""
        used = np.flatnonzero(w)
        scale, few = np.sqrt(w[used]), len(used) < len(w)
        if not is_sparse(self.X):
            return Points((self.X.take(used, 1) if few else self.X) * scale, self.weight, self.first)
        scale *= self.unit
        Z = self.X[:, used].astype(np.float64) if few else self.X.astype(np.float64, copy=True)
        Z.data *= scale[Z.indices] if Z.format == "csr" else np.repeat(scale, np.diff(Z.indptr))
        return Points(Z, self.weight, self.first, self.mean[used] * scale)


def _each_of(
    block: Any, own: tuple[int, Array | None], mean: AnyArray, unit: float, questions: list[_Question]
) -> list[Any]:
    """Return the answers of a block to the questions."""
    X, (start, weight) = as_kernel_input(block), own
    weight = np.ones(X.shape[0]) if weight is None else weight
    if is_sparse(X):
        return list(_answered(_Rows(X, start, weight, mean, unit), questions))
    answers = []
    for part, rows in dense_rows(X):
        some = _Rows((rows - mean) * unit, start + part.start, weight[part], mean, unit)
        answers.append(list(_answered(some, questions)))
    return _combined([_COMBINE[question.task] for question in questions], answers)


def _answered(rows: _Rows, questions: list[_Question]) -> Iterator[Any]:
    """Yield the answers of a few rows; questions with the same weights share the points."""
    points, last = None, None
    for task, w, given, _ in questions:
        if points is None or w is not last:
            points, last = rows.points(w), w
        yield task(rows, points, *given)


def _combined(combine: list[Callable[[list[Any]], Any]], parts: Iterable[Any]) -> list[Any]:
    """Combine the answers of parts of the rows, question by question."""
    return [one(list(own)) for one, own in zip(combine, zip(*parts, strict=True), strict=True)]


def _row_keys(first: int, n: int) -> NDArray[np.uint64]:
    """Return random numbers for n rows, from the row `first` on."""
    return np.asarray(np.random.PCG64(_KEY).advance(first).random_raw(n))


def _nearest(rows: _Rows, points: Points, centers: Array, before: tuple[Array, Labels]) -> Step:
    """Return the step to the nearest centers, with the keys of the clusters in place of labels."""
    step = points.step_to(centers, before, np.inf)
    row_keys = _row_keys(points.first, points.n)
    keys = [row_keys[step.partition == c].sum() for c in range(len(centers))]
    return step._replace(partition=np.array(keys, np.uint64))


def _labels(rows: _Rows, points: Points, partition: Assigned) -> Labels:
    """Return the labels of the points, by the weights of the partition."""
    labels = points.apart(partition.centers).argmin(axis=1)
    for i, (_, to) in partition.moves.items():
        if points.first <= i < points.first + points.n:
            labels[i - points.first] = to
    return labels


def _sums(rows: _Rows, points: Points, partition: Assigned, k: int) -> Step:
    """Return a partition as a step."""
    labels = _labels(rows, rows.points(partition.weights), partition)
    return points.step(labels, k)._replace(partition=np.zeros(k, np.uint64))


def _draw(rows: _Rows, points: Points, chosen: list[int], centers: Array, key: int) -> tuple[int, float]:
    """Return a row at random, with probability proportional to weight times squared distance.

    The distance is that from the nearest of the chosen rows. Also returns a number by which the rows drawn in
    other blocks are compared with this one.
    """
    distance = points.apart(centers).min(axis=1) + points.squares
    distance[[i - points.first for i in chosen if points.first <= i < points.first + points.n]] = 0
    return points.drawn(np.maximum(distance, 0), key)


def _one_step(parts: list[Step]) -> Step:
    """Combine the steps of parts of the rows into one step."""
    *summed, total, far, gains = zip(*parts, strict=True)
    keys, sums, counts, sizes = (np.sum(each, axis=0) for each in summed)
    distant, moves = largest(np.concatenate(far), 2 * len(counts)), np.concatenate(gains)
    return Step(keys, sums, counts, sizes, sum(total), distant, largest(moves, HARTIGAN_MOVES))


_COMBINE: dict[Callable[..., Any], Callable[[list[Any]], Any]] = {
    _nearest: _one_step,
    _sums: _one_step,
    _labels: np.concatenate,
    _draw: partial(max, key=itemgetter(1)),  # the point that compares best, the first if several do
}
