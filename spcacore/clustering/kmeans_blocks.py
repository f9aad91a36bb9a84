"""K-means of data that are read by blocks of rows: files, distributed arrays and sparse matrices.

A search yields queries about all points. One pass over the rows answers the queries of all searches, so that
many starts need few passes. Points are `sqrt(w_j) (x_j - mean_j)` of the variables of nonzero weight, which
are computed for some rows at a time. A partition is told by centers, to the nearest of which each point
belongs, but for some points that have moved. So a block answers with sums for each cluster and with a few
points, and labels travel once, at the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._limits import HARTIGAN_MOVES, KMEANS_ENTRIES
from .._types import AnyArray, Array, Index
from .._validation import LARGEST, float_type, is_sparse
from ..operators.block_tasks import as_kernel_input, dense_rows, statistics, sum_parts
from ..operators.blocks import RowBlocks, locate_not_finite
from ..operators.partition import row_blocks
from ..operators.sparse import permuted_columns
from ..operators.statistics import Statistics, merged
from .columns import (
    Labels,
    Step,
    Weighted,
    best_moves,
    exponential,
    farthest,
    largest,
    membership,
    nearest,
    split_weight,
)

__all__ = ["Assigned", "BlockColumns"]

_KEY = 7  # of the numbers of rows, by whose sums partitions are compared


class Assigned(NamedTuple):
    """A partition: the center nearest to each point, with these weights, but for points that have moved.

    `keys` are sums of random numbers of the rows of each cluster, modulo 2^64.
    """

    weights: Array
    centers: Array
    moves: dict[int, int]
    keys: NDArray[np.uint64]


class BlockColumns:
    """Variables centered and scaled to about 1 by a power of two, as `Columns`, in blocks of rows."""

    n: int
    p: int

    def __init__(
        self, source: RowBlocks, poll: Callable[[], object] = lambda: None, sample_weight: Any = None
    ) -> None:
        self.weight, self.kept = split_weight(sample_weight, source.shape[0])
        blocks = source if self.kept is None else source.taken(self.kept)
        self.source, self.blocks, self.poll, self.names = source, blocks, poll, blocks.names
        (self.n, self.p), self.dtype = blocks.shape, float_type(blocks.dtype)
        self.mass: Array = np.ones(self.n) if self.weight is None else self.weight
        stats: Statistics = blocks.reduced(merged, statistics)
        if not all(np.isfinite(a).all() for a in (stats.mean, stats.low, stats.high)):
            locate_not_finite(blocks)
        with np.errstate(under="ignore"):
            half_range = float((stats.high / 2 - stats.low / 2).max())
        if self.n > 1 and not half_range > 0:
            raise ValueError("X has no variance: all its rows are equal")
        self.mean: AnyArray = np.where(stats.low == stats.high, stats.low, stats.mean)
        self.exponent: int = math.frexp(half_range)[1]
        self.unit: float = math.ldexp(1.0, -self.exponent)
        if self.weight is not None:
            everyone = Assigned(np.ones(self.p), np.zeros((1, self.p)), {}, np.zeros(1, np.uint64))
            ((step,),) = self._ask([self._sums([np.ones(self.p)], [(everyone, 1)])])
            self.mean = self.mean + np.ldexp(step.sums[0] / step.counts[0], self.exponent)

    def permuted(self, generator: np.random.Generator, poll: Callable[[], object]) -> BlockColumns:
        """A copy of a sparse matrix with the entries of each variable in random order."""
        source: Any = self.source
        X = permuted_columns(source.source, generator)
        return BlockColumns(row_blocks(X, block_bytes=LARGEST), poll)

    def run_searches(self, searches: list[Weighted]) -> list[Any]:
        """The result of each search; they share the passes, as many as memory allows."""
        width = max(1, KMEANS_ENTRIES // (8 * max(map(len, self.blocks.split(np.empty(self.n))))))
        results: list[Any] = []
        for first in range(0, len(searches), width):
            results += self._run_together(searches[first : first + width])
        return results

    def _run_together(self, searches: list[Weighted]) -> list[Any]:
        results: list[Any] = [None] * len(searches)
        queries = {i: next(search) for i, (_, search) in enumerate(searches)}
        while queries:
            self.poll()
            for i, answer in self._answers(queries, [weights for weights, _ in searches]).items():
                try:
                    queries[i] = searches[i][1].send(answer)
                except StopIteration as end:
                    results[i] = end.value
                    del queries[i]
        return results

    def _answers(self, queries: dict[int, tuple[str, Any]], weights: list[Array]) -> dict[int, Any]:
        """The answers to queries for points, which are read alone; else to all others, in one pass."""
        kinds = {kind: [i for i in queries if queries[i][0] == kind] for kind, _ in queries.values()}
        given = {kind: [queries[i][1] for i in same] for kind, same in kinds.items()}
        own = {kind: [weights[i] for i in same] for kind, same in kinds.items()}
        if "rows" in kinds:  # first, so that all searches then share a pass
            return dict(zip(kinds["rows"], self._rows(own["rows"], given["rows"]), strict=True))
        out: dict[int, Any] = {}
        questions = [getattr(self, f"_{kind}")(own[kind], given[kind]) for kind in kinds]
        for same, answers in zip(kinds.values(), self._ask(questions), strict=True):
            out |= dict(zip(same, answers, strict=True))
        return out

    def _ask(self, questions: list[_Question]) -> list[list[Any]]:
        """The answers to several questions, in one pass."""
        if not questions:
            return []
        plan = [(question.task, len(question.arguments)) for question in questions]
        arguments = [argument for question in questions for argument in question.arguments]
        combine = partial(_combine_each, [question.combine for question in questions])
        entries = sum(question.entries for question in questions)
        own = list(zip(self.blocks.starts, self.blocks.split_or_none(self.weight), strict=True))
        found = self.blocks.reduced(combine, _each_of, plan, *arguments, each=own, entries=entries)
        return [question.finish(own) for question, own in zip(questions, found, strict=True)]

    def sums_between(self, partitions: list[Assigned], n_clusters: int) -> Array:
        """Sums of squares between clusters, a row for each partition; the means of all samples are 0."""
        given = [(partition, n_clusters) for partition in partitions]
        (steps,) = self._ask([self._sums([np.ones(self.p)] * len(given), given)]) if given else ([],)
        rows = [np.sum(step.sums**2 / step.counts[:, None], axis=0) for step in steps]
        return np.array(rows).reshape(len(given), self.p)

    def centers(self, partition: Assigned, n_clusters: int) -> AnyArray:
        """Means of the clusters, in the caller's units."""
        ((step,),) = self._ask([self._sums([np.ones(self.p)], [(partition, n_clusters)])])
        means = step.sums / step.counts[:, None]
        return (self.mean + np.ldexp(means, self.exponent)).astype(self.dtype)

    def labels(self, partition: Assigned) -> Labels:
        """Of each sample."""
        arguments = self._sides([partition.weights], [partition.centers]), [partition.moves]
        ((labels,),) = self._ask([_Question(_labels, arguments, 0, _joined, lambda found: [found])])
        return np.asarray(labels)

    def key(self, partition: Assigned) -> Any:
        """What partitions have in common that differ in the numbers of their clusters alone."""
        return tuple(sorted(partition.keys.tolist()))

    def moved(self, partition: Assigned, moves: dict[int, tuple[int, int]]) -> Assigned:
        """The partition after points have moved from one cluster to another."""
        keys = partition.keys.copy()
        for i, (own, to) in moves.items():
            keys[own : own + 1] -= _row_keys(i, 1)  # as arrays, which wrap around
            keys[to : to + 1] += _row_keys(i, 1)
        return partition._replace(moves=partition.moves | {i: to for i, (_, to) in moves.items()}, keys=keys)

    # ---- questions of one kind, an entry for each search ------------------------------------------------

    def _nearest(
        self, weights: list[Array], given: list[tuple[Array, tuple[Array, Labels], float]]
    ) -> _Question:
        """The steps to the nearest centers."""
        sides = self._sides(weights, [centers for centers, _, _ in given])

        def finish(found: tuple[Array, list[_Cluster]]) -> list[Step]:
            sums = self._weighted(found[0], sides.ends, weights, sides.used)
            return [
                Step(
                    Assigned(w, centers, {}, own.keys),
                    own_sums,
                    own.counts,
                    own.sizes,
                    own.total,
                    own.far,
                    own.gains,
                )
                for w, (centers, _, _), own_sums, own in zip(weights, given, sums, found[1], strict=True)
            ]

        before = [known for _, known, _ in given]
        return _Question(_steps, (sides, before), sides.M.size, _merged_steps, finish)

    def _sums(self, weights: list[Array], given: list[tuple[Assigned, int]]) -> _Question:
        """The partitions as steps, for points of these weights."""
        partitions = [partition for partition, _ in given]
        sides = self._sides([a.weights for a in partitions], [a.centers for a in partitions])
        goal = self._sides(weights, [])

        def finish(found: tuple[Array, Array, Array]) -> list[Step]:
            S, numbers, totals = found
            sums = self._weighted(S, sides.ends, weights, goal.used)
            counts, sizes = sides.each(numbers[0]), sides.each(numbers[1].astype(np.intp))
            each: Any = zip(partitions, sums, counts, sizes, totals.tolist(), strict=True)
            return [Step(*one) for one in each]

        moves, entries = [a.moves for a in partitions], sides.ends[-1] * len(goal.used)
        return _Question(_sums_of_partitions, (sides, moves, goal), entries, sum_parts, finish)

    def _drawn(self, weights: list[Array], given: list[tuple[int, Array, Any, int]]) -> _Question:
        """Of each search the points chosen so far, and one more, far from them as a rule."""
        near = [
            ([i], point[None]) if old is None else ([*old[0], i], np.concatenate((old[1], point[None])))
            for i, point, old, _ in given
        ]
        sides = self._sides(weights, [points for _, points in near])
        arguments = sides, [chosen for chosen, _ in near], [key for _, _, _, key in given]

        def finish(found: Array) -> list[tuple[Any, int]]:
            return list(zip(near, found[:, 0].astype(np.intp).tolist(), strict=True))

        return _Question(_draw, arguments, 0, _first_largest, finish)

    def _sides(self, weights: list[Array], centers: list[Array]) -> _Sides:
        used = np.flatnonzero(np.any(weights, axis=0))
        ends = np.cumsum([0, *map(len, centers)])[1:]
        M = np.zeros((self.p, sum(map(len, centers))))
        for w, C, end in zip(weights, centers, ends, strict=False):
            own = np.flatnonzero(w)
            M[own, end - len(C) : end] = np.sqrt(w[own, None]) * C.T
        squares = np.concatenate([np.empty(0), *(np.einsum("ij,ij->i", C, C) for C in centers)])
        return _Sides(
            used, self.mean[used], self.unit, np.stack(weights, axis=1)[used], M[used], squares, ends
        )

    def _weighted(self, S: Array, ends: Index, weights: list[Array], used: Index) -> list[Array]:
        """The sums of each search, of its points."""
        parts = np.split(S, ends[:-1], axis=0)
        return [part[:, w[used] > 0] * np.sqrt(w[w > 0]) for w, part in zip(weights, parts, strict=True)]

    def _rows(self, weights: list[Array], chosen: list[list[int]]) -> list[Array]:
        """Some points."""
        index = np.concatenate(chosen)
        rows = self.source.rows(index if self.kept is None else self.kept[index])
        rows = (rows.astype(np.float64) - self.mean) * self.unit
        parts = np.split(rows, np.cumsum([len(some) for some in chosen])[:-1])
        return [part[:, w > 0] * np.sqrt(w[w > 0]) for w, part in zip(weights, parts, strict=True)]


class _Question(NamedTuple):
    """What is asked of each block, how many numbers it answers with at least, how the answers of some blocks
    become one, and that the answers to all searches."""

    task: Callable[..., Any]
    arguments: tuple[Any, ...]
    entries: int
    combine: Callable[[list[Any]], Any]
    finish: Callable[[Any], list[Any]]


class _Sides(NamedTuple):
    """What makes points of rows, and what these are multiplied with.

    The variables in use with their means, the unit, their weights (a column for each search). Of the centers
    of all searches side by side: what multiplies `unit (x - mean)`, the squared norms, and where those of
    each search end.
    """

    used: Index
    mean: Array
    unit: float
    W: Array
    M: Array
    squares: Array
    ends: Index

    def each(self, a: Array) -> list[Array]:
        """The columns of each search."""
        return np.split(a, self.ends[:-1], axis=-1)


class _Cluster(NamedTuple):
    """The weights and sizes of the clusters of one search, the keys of their rows, and the rest of `Step`."""

    counts: Array
    sizes: Labels
    keys: NDArray[np.uint64]
    total: float
    far: Array
    gains: Array


# ---- one block --------------------------------------------------------------------------------------


class _Block(NamedTuple):
    """Rows, the number of the first of them, and their weights."""

    X: Any
    start: int
    weight: Array | None

    def points(self, sides: _Sides) -> Iterator[_Points]:
        """Of some rows at a time."""
        X = self.X[:, sides.used] if len(sides.used) < self.X.shape[1] else self.X
        if is_sparse(X) or X.shape[0] == 0:
            yield _Points(X, sides, self.start, self.weight)
            return
        for part, rows in dense_rows(X):
            weight = None if self.weight is None else self.weight[part]
            yield _Points((rows - sides.mean) * sides.unit, sides, self.start + part.start, weight)


def _each_of(
    block: Any, own: tuple[int, Array | None], plan: list[tuple[Callable[..., Any], int]], *arguments: Any
) -> list[Any]:
    """Of several tasks, each with so many of the arguments."""
    rows, left, out = _Block(as_kernel_input(block), *own), list(arguments), []
    for task, count in plan:
        out.append(task(rows, *left[:count]))
        del left[:count]
    return out


def _combine_each(combines: list[Callable[[list[Any]], Any]], parts: Iterable[Any]) -> list[Any]:
    return [combine(list(own)) for combine, own in zip(combines, zip(*parts, strict=True), strict=True)]


class _Points(NamedTuple):
    """Some rows as points: Z = unit (X[:, used] - 1 mean'), of which a sparse X is kept as it is."""

    X: Any
    sides: _Sides
    first: int
    weight: Array | None

    def times(self, M: Array) -> Array:
        """Z M."""
        if is_sparse(self.X):
            M = self.sides.unit * M
            return np.asarray(self.X @ M) - self.sides.mean @ M
        return np.asarray(self.X @ M)

    def squares(self) -> Array:
        """(Z * Z) W."""
        if is_sparse(self.X):
            X, W, mean = self.X.astype(np.float64) * self.sides.unit, self.sides.W, self.sides.mean
            mean = mean * self.sides.unit
            return np.asarray(X.multiply(X) @ W) - 2 * (X @ (mean[:, None] * W)) + mean**2 @ W
        return np.asarray(self.X**2 @ self.sides.W)

    def sums(self, members: list[Array]) -> Array:
        """M'Z, M the memberships side by side."""
        M = np.hstack(members)
        if is_sparse(self.X):
            return self.sides.unit * (np.asarray(self.X.T @ M).T - np.outer(M.sum(axis=0), self.sides.mean))
        return np.asarray(M.T @ self.X)


def _row_keys(first: int, n: int) -> NDArray[np.uint64]:
    """Random numbers of the rows from `first`."""
    return np.asarray(np.random.PCG64(_KEY).advance(first).random_raw(n))


def _steps(block: _Block, sides: _Sides, before: list[tuple[Array, Labels]]) -> tuple[Array, list[_Cluster]]:
    """The sums of the points nearest to each center, and the clusters of each search."""
    parts = []
    for points in block.points(sides):
        products, squares, members, found = points.times(sides.M), points.squares(), [], []
        first, weight = points.first, points.weight
        each = zip(sides.each(products), sides.each(sides.squares), squares.T, before, strict=True)
        for own, norms, size, known in each:
            labels, k = nearest(own, norms), len(norms)
            member, counts = membership(labels, k, weight)
            distance = size[:, None] - 2 * own + norms
            row_keys = _row_keys(first, len(labels))
            keys = np.array([row_keys[labels == c].sum() for c in range(k)], np.uint64)
            total = float(size.sum() if weight is None else weight @ size)
            far, gains = farthest(distance, labels, first), best_moves(distance, labels, known, weight, first)
            sizes = np.bincount(labels, minlength=k)
            found.append(_Cluster(counts, sizes, keys, total, far, gains))
            members.append(member)
        parts.append((points.sums(members), found))
    return _merged_steps(parts)


def _merged_steps(parts: list[tuple[Array, list[_Cluster]]]) -> tuple[Array, list[_Cluster]]:
    """Of all rows, from those of parts of them in order."""
    (sums,) = sum_parts((S,) for S, _ in parts)
    found = []
    for own in zip(*(clusters for _, clusters in parts), strict=True):
        counts, sizes, keys, totals, far, gains = zip(*own, strict=True)
        weights, numbers, names = (np.sum(each, axis=0) for each in (counts, sizes, keys))
        distant = largest(np.concatenate(far), 2 * len(weights))
        moving = largest(np.concatenate(gains), HARTIGAN_MOVES)
        found.append(_Cluster(weights, numbers, names, sum(totals), distant, moving))
    return sums, found


def _assigned(block: _Block, sides: _Sides, moves: list[dict[int, int]]) -> list[Labels]:
    """The labels of the rows of a block in each partition."""
    each = []
    for points in block.points(sides):
        products = sides.each(points.times(sides.M))
        each.append([nearest(*own) for own in zip(products, sides.each(sides.squares), strict=True)])
    out = [np.concatenate(own) for own in zip(*each, strict=True)]
    for labels, moved in zip(out, moves, strict=True):
        for i, to in moved.items():
            if block.start <= i < block.start + len(labels):
                labels[i - block.start] = to
    return out


def _labels(block: _Block, sides: _Sides, moves: list[dict[int, int]]) -> Labels:
    return _assigned(block, sides, moves)[0]


def _joined(parts: list[Labels]) -> Labels:
    return np.concatenate(parts)


def _sums_of_partitions(
    block: _Block, sides: _Sides, moves: list[dict[int, int]], goal: _Sides
) -> tuple[Array, Array, Array]:
    """Sums of the points of each cluster, their weights and numbers, and the sums of all squared norms."""
    every = _assigned(block, sides, moves)
    sizes = [len(own) for own in sides.each(sides.squares)]
    S, numbers = np.zeros((sum(sizes), len(goal.used))), np.zeros((2, sum(sizes)))
    totals = np.zeros(len(sizes))
    for points in block.points(goal):
        first, weight, squares = points.first - block.start, points.weight, points.squares()
        own = [labels[first : first + len(squares)] for labels in every]
        S += points.sums([membership(labels, k, weight)[0] for labels, k in zip(own, sizes, strict=True)])
        for row, by in zip(numbers, (weight, None), strict=True):
            row += np.concatenate([np.bincount(labels, by, k) for labels, k in zip(own, sizes, strict=True)])
        totals += squares.sum(axis=0) if weight is None else weight @ squares
    return S, numbers, totals


def _draw(block: _Block, sides: _Sides, chosen: list[list[int]], keys: list[int]) -> Array:
    """Of each search a point, drawn with a probability proportional to its weight times the squared distance
    from its chosen points, and how it compares with those of other rows."""
    out = np.zeros((len(keys), 2))
    out[:, 1] = -1
    for points in block.points(sides):
        products, squares, first = sides.each(points.times(sides.M)), points.squares(), points.first
        each = zip(products, sides.each(sides.squares), squares.T, chosen, keys, strict=True)
        for s, (own, norms, size, some, key) in enumerate(each if len(squares) else ()):
            distance = np.maximum((norms - 2 * own).min(axis=1) + size, 0)
            distance[[i - first for i in some if first <= i < first + len(distance)]] = 0
            mass = distance if points.weight is None else points.weight * distance
            score = mass / exponential(key, first, len(distance))
            best = int(np.argmax(score))
            if score[best] > out[s, 1]:
                out[s] = first + best, score[best]
    return out


def _first_largest(parts: list[Array]) -> Array:
    """Of each search the point that compares best, the first if several do."""
    every = np.stack(parts)
    return every[np.argmax(every[:, :, 1], axis=0), np.arange(every.shape[1])]
