"""K-means of data that are read by blocks of rows: files, distributed arrays and sparse matrices.

A search yields queries about all points. One pass over the rows answers the queries of all searches, so that
many starts need few passes. Points are `sqrt(w_j) (x_j - mean_j)` of the variables
of nonzero weight, which are computed for one block at a time; memory holds n numbers for each cluster and
active start, and p for each cluster.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._limits import KMEANS_ENTRIES
from .._types import Index
from .._validation import LARGEST, float_type, is_sparse
from ..operators.block_tasks import as_kernel_input, dense_rows, statistics, sum_parts
from ..operators.blocks import RowBlocks, locate_not_finite
from ..operators.partition import row_blocks
from ..operators.sparse import permuted_columns
from ..operators.statistics import Statistics, merged
from .columns import Array, Labels, Weighted, membership, nearest, split_weight

__all__ = ["BlockColumns"]


class BlockColumns:
    """Variables centered and scaled to about 1 by a power of two, as `Columns`, in blocks of rows."""

    source: RowBlocks
    blocks: RowBlocks  # those of positive weight
    weight: Array | None
    kept: Labels | None
    poll: Callable[[], object]
    names: tuple[str, ...] | None
    n: int
    p: int
    dtype: np.dtype[Any]

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
        self.mean: NDArray[Any] = np.where(stats.low == stats.high, stats.low, stats.mean)
        self.exponent: int = math.frexp(half_range)[1]
        self.unit: float = math.ldexp(1.0, -self.exponent)
        if self.weight is not None:
            one = np.zeros(self.n, np.intp), 1
            ((sums,),) = self._ask([self._sums([np.ones(self.p)], [one])])
            self.mean = self.mean + np.ldexp(sums[0] / self.mass.sum(), self.exponent)

    def permuted(self, generator: np.random.Generator, poll: Callable[[], object]) -> BlockColumns:
        """A copy of a sparse matrix with the entries of each variable in random order."""
        source: Any = self.source
        X = permuted_columns(source.source, generator)
        return BlockColumns(row_blocks(X, block_bytes=LARGEST), poll)

    def run_searches(self, searches: list[Weighted]) -> list[Any]:
        """The result of each search."""
        width = max(1, KMEANS_ENTRIES // (self.n * 8))
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
        each = [[()] * self.blocks.n_blocks if q.each is None else q.each for q in questions]
        parts = list(self.blocks.results(_each_of, plan, *arguments, each=list(zip(*each, strict=True))))
        return [question.finish([part[i] for part in parts]) for i, question in enumerate(questions)]

    def sums_between(self, partitions: list[Labels], n_clusters: int) -> Array:
        """Sums of squares between clusters, a row for each partition; the means of all samples are 0."""
        out = np.empty((len(partitions), self.p))
        if not partitions:
            return out
        given = [(labels, n_clusters) for labels in partitions]
        ones = np.ones(self.p)
        (each,) = self._ask([self._sums([ones] * len(given), given)])
        for row, (labels, _), sums in zip(out, given, each, strict=True):
            counts = np.bincount(labels, self.mass, n_clusters)
            row[:] = np.sum(sums**2 / counts[:, None], axis=0)
        return out

    def centers(self, labels: Labels, n_clusters: int) -> NDArray[Any]:
        """Means of the clusters, in the caller's units."""
        ((sums,),) = self._ask([self._sums([np.ones(self.p)], [(labels, n_clusters)])])
        sums /= np.bincount(labels, self.mass, n_clusters)[:, None]
        return (self.mean + np.ldexp(sums, self.exponent)).astype(self.dtype)

    # ---- questions of one kind, an entry for each search ------------------------------------------------

    def _squared_norms(self, weights: list[Array], _: Any) -> _Question:
        """Squared norms of the points."""
        W = np.stack(weights, axis=1)
        return _Question(
            _squared_norms, (self.mean, self.unit, W), None, lambda parts: list(np.concatenate(parts).T)
        )

    def _products(self, weights: list[Array], centers: list[Array]) -> _Question:
        """Products of the points with each center."""
        used, M, ends = self._side_by_side(weights, centers)
        arguments = used, self.mean[used], self.unit, M[used]
        return _Question(
            _products, arguments, None, lambda parts: np.split(np.concatenate(parts), ends[:-1], axis=1)
        )

    def _nearest(self, weights: list[Array], centers: list[Array]) -> _Question:
        """Products of the points with each center, the nearest centers, and the sums of their points."""
        used, M, ends = self._side_by_side(weights, centers)
        squares = [np.einsum("ij,ij->i", C, C) for C in centers]

        def finish(parts: list[Any]) -> list[Any]:
            products = np.split(np.concatenate([part[0] for part in parts]), ends[:-1], axis=1)
            labels = [np.concatenate(own) for own in zip(*(part[1] for part in parts), strict=True)]
            (S,) = sum_parts([part[2] for part in parts])
            return list(zip(products, labels, self._weighted(S, ends, weights, used), strict=True))

        arguments = used, self.mean[used], self.unit, M[used], squares
        each = [(weight,) for weight in self._weights_of_blocks()]
        return _Question(_nearest, arguments, each, finish)

    def _weights_of_blocks(self) -> list[Array | None]:
        """Of the rows of each block."""
        return [None] * self.blocks.n_blocks if self.weight is None else self.blocks.split(self.weight)

    def _side_by_side(self, weights: list[Array], centers: list[Array]) -> tuple[Index, Array, Index]:
        """The variables in use, the weighted centers of all searches as columns, and where each ends."""
        used = np.flatnonzero(np.any(weights, axis=0))
        M = np.zeros((self.p, sum(map(len, centers))))
        ends = np.cumsum([len(C) for C in centers])
        for w, C, end in zip(weights, centers, ends, strict=True):
            own = np.flatnonzero(w)
            M[own, end - len(C) : end] = np.sqrt(w[own, None]) * C.T
        return used, M, ends

    def _weighted(self, S: Array, ends: Index, weights: list[Array], used: Index) -> list[Array]:
        """The sums of each search, of its points."""
        parts = np.split(S, ends[:-1], axis=0)
        return [part[:, w[used] > 0] * np.sqrt(w[w > 0]) for w, part in zip(weights, parts, strict=True)]

    def _sums(self, weights: list[Array], given: list[tuple[Labels, int]]) -> _Question:
        """Sums of the points of each cluster."""
        used = np.flatnonzero(np.any(weights, axis=0))
        own = zip(*(self.blocks.split(labels) for labels, _ in given), strict=True)
        each = list(zip(own, self._weights_of_blocks(), strict=True))
        counts = [k for _, k in given]
        arguments = used, self.mean[used], self.unit, counts

        def finish(parts: list[Any]) -> list[Array]:
            (S,) = sum_parts(parts)
            return self._weighted(S, np.cumsum(counts), weights, used)

        return _Question(_sums, arguments, each, finish)

    def _distances_from(self, weights: list[Array], given: list[tuple[int, Array]]) -> _Question:
        """Squared distances of all points from one of them, given all squared norms."""
        asked = self._products(weights, self._rows(weights, [[i] for i, _ in given]))

        def finish(parts: list[Any]) -> list[Array]:
            out = []
            for (i, squares), product in zip(given, asked.finish(parts), strict=True):
                distance = np.maximum(squares + squares[i] - 2 * product[:, 0], 0)
                distance[i] = 0
                out.append(distance)
            return out

        return asked._replace(finish=finish)

    def _rows(self, weights: list[Array], chosen: list[list[int]]) -> list[Array]:
        """Some points."""
        index = np.concatenate(chosen)
        rows = self.source.rows(index if self.kept is None else self.kept[index])
        rows = (rows.astype(np.float64) - self.mean) * self.unit
        parts = np.split(rows, np.cumsum([len(some) for some in chosen])[:-1])
        return [part[:, w > 0] * np.sqrt(w[w > 0]) for w, part in zip(weights, parts, strict=True)]


class _Question(NamedTuple):
    """What is asked of each block, with what goes with all and with each; and the answers, an entry for each
    search, from what the blocks return."""

    task: Callable[..., Any]
    arguments: tuple[Any, ...]
    each: list[tuple[Any, ...]] | None
    finish: Callable[[list[Any]], list[Any]]


# ---- one block --------------------------------------------------------------------------------------


def _each_of(
    block: Any, own: tuple[tuple[Any, ...], ...], plan: list[tuple[Callable[..., Any], int]], *arguments: Any
) -> tuple[Any, ...]:
    """Of several tasks, each with so many of the arguments."""
    X, left, out = as_kernel_input(block), list(arguments), []
    for (task, count), given in zip(plan, own, strict=True):
        out.append(task(X, *given, *left[:count]))
        del left[:count]
    return tuple(out)


def _nearest(
    block: Any, weight: Array | None, index: Index, mean: Array, unit: float, M: Array, squares: list[Array]
) -> tuple[Array, list[Labels], tuple[Array]]:
    """The products with the centers of several searches, the nearest, and the sums of their points."""
    products = _products(block, index, mean, unit, M)
    each = np.split(products, np.cumsum([len(own) for own in squares])[:-1], axis=1)
    labels = [nearest(part, own) for part, own in zip(each, squares, strict=True)]
    counts = [len(own) for own in squares]
    return products, labels, _sums(block, tuple(labels), weight, index, mean, unit, counts)


def _select_columns(block: Any, index: Index) -> Any:
    X = as_kernel_input(block)
    return X if len(index) == X.shape[1] else X[:, index]


def _squared_norms(block: Any, mean: Array, unit: float, W: Array) -> Array:
    """(unit (X - 1 mean'))^2 W, with the entries squared."""
    X = as_kernel_input(block)
    if is_sparse(X):
        X = X.astype(np.float64) * unit
        mean = mean * unit
        return np.asarray(X.multiply(X) @ W) - 2 * (X @ (mean[:, None] * W)) + mean**2 @ W
    out = np.empty((len(X), W.shape[1]))
    for part, rows in dense_rows(X):
        out[part] = ((rows - mean) * unit) ** 2 @ W
    return out


def _products(block: Any, index: Index, mean: Array, unit: float, M: Array) -> Array:
    """unit (X[:, index] - 1 mean') M."""
    X = _select_columns(block, index)
    if is_sparse(X):
        return np.asarray(X @ (unit * M)) - mean @ (unit * M)
    out = np.empty((len(X), M.shape[1]))
    for part, rows in dense_rows(X):
        out[part] = ((rows - mean) * unit) @ M
    return out


def _sums(
    block: Any,
    labels: tuple[Labels, ...],
    weight: Array | None,
    index: Index,
    mean: Array,
    unit: float,
    counts: list[int],
) -> tuple[Array]:
    """unit M'(X[:, index] - 1 mean'), M the weighted memberships of several partitions side by side."""
    X = _select_columns(block, index)
    M = np.hstack([membership(own, k, weight)[0] for own, k in zip(labels, counts, strict=True)])
    if is_sparse(X):
        return (unit * (np.asarray(X.T @ M).T - np.outer(M.sum(axis=0), mean)),)
    out = np.zeros((M.shape[1], len(index)))
    for part, rows in dense_rows(X):
        out += M[part].T @ ((rows - mean) * unit)
    return (out,)
