"""Points of K-means that are read a block of rows at a time: of files, of clusters, and of sparse matrices.

The searches of `clustering` are generators that ask for products with all points. Here a pass over the rows
answers all searches that ask for the same at that moment, so that many starts cost few passes. Points are
`sqrt(w_j) (x_j - mean_j)` of the variables of nonzero weight, which exist for one block at a time; memory
holds n numbers for each cluster and start at work, and p for each cluster.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import LARGEST, float_type, is_sparse
from ..operators.blocks import (
    Index,
    RowBlocks,
    _locate,
    added,
    dense_rows,
    prepared,
    statistics,
)
from ..operators.partition import row_blocks
from ..operators.permutation import permuted_columns
from ..operators.statistics import Statistics, merged

_TOGETHER = 1 << 24  # entries of products at work at a time
Array = NDArray[np.float64]
Search = Generator[tuple[str, Any], Any, Any]
Weighted = tuple[Array, Search]


class BlockColumns:
    """Variables centred and brought near 1 by a power of two, as `clustering._Columns`, in blocks of rows."""

    def __init__(self, blocks: RowBlocks, poll: Callable[[], object] = lambda: None) -> None:
        self.blocks, self.poll, self.names = blocks, poll, blocks.names
        (self.n, self.p), self.dtype = blocks.shape, float_type(blocks.dtype)
        found: Statistics = blocks.reduced(merged, statistics)
        if not all(np.isfinite(a).all() for a in (found.mean, found.low, found.high)):
            _locate(blocks)
        with np.errstate(under="ignore"):
            spread = float((found.high / 2 - found.low / 2).max())
        if self.n > 1 and not spread > 0:
            raise ValueError("X has no variance: all its rows are equal")
        self.mean = np.where(found.low == found.high, found.low, found.mean)
        self.exponent = math.frexp(spread)[1]
        self.unit = math.ldexp(1.0, -self.exponent)

    def permuted(self, generator: np.random.Generator, poll: Callable[[], object]) -> BlockColumns:
        """A copy of a sparse matrix with the entries of each variable in random order."""
        source: Any = self.blocks
        X = permuted_columns(source.source, generator)
        return BlockColumns(row_blocks(X, block_bytes=LARGEST), poll)

    def carried_out(self, searches: list[Weighted]) -> list[Any]:
        """What each search, with the weights of its points, returns."""
        width = max(1, _TOGETHER // (self.n * 8))
        ended: list[Any] = []
        for first in range(0, len(searches), width):
            ended += self._together(searches[first : first + width])
        return ended

    def _together(self, searches: list[Weighted]) -> list[Any]:
        ended: list[Any] = [None] * len(searches)
        asked = {i: next(search) for i, (_, search) in enumerate(searches)}
        while asked:
            kind = next(iter(asked.values()))[0]
            some = [i for i in asked if asked[i][0] == kind]
            self.poll()
            answers = getattr(self, f"_{kind}")([searches[i][0] for i in some], [asked[i][1] for i in some])
            for i, answer in zip(some, answers, strict=True):
                try:
                    asked[i] = searches[i][1].send(answer)
                except StopIteration as end:
                    ended[i] = end.value
                    del asked[i]
        return ended

    def sums_between(self, partitions: list[NDArray[np.intp]], n_clusters: int) -> Array:
        """Sums of squares between clusters, a row for each partition; the means of all samples are 0."""
        out = np.empty((len(partitions), self.p))
        if not partitions:
            return out
        given = [(labels, n_clusters) for labels in partitions]
        ones = np.ones(self.p)
        for row, (labels, _), sums in zip(out, given, self._sums([ones] * len(given), given), strict=True):
            counts = np.bincount(labels, minlength=n_clusters)
            row[:] = np.sum(sums**2 / counts[:, None], axis=0)
        return out

    def centers(self, labels: NDArray[np.intp], n_clusters: int) -> NDArray[Any]:
        """Means of the clusters, in the caller's units."""
        (sums,) = self._sums([np.ones(self.p)], [(labels, n_clusters)])
        sums /= np.bincount(labels, minlength=n_clusters)[:, None]
        return (self.mean + np.ldexp(sums, self.exponent)).astype(self.dtype)

    # ---- what searches ask for: lists, an entry for each search -----------------------------------------

    def _squares(self, weights: list[Array], _: Any) -> list[Array]:
        """Squared norms of the points."""
        W = np.stack(weights, axis=1)
        return list(self.blocks.stacked(_squares, self.mean, self.unit, W).T)

    def _image(self, weights: list[Array], centers: list[Array]) -> list[Array]:
        """Products of the points with each center."""
        used = np.flatnonzero(np.any(weights, axis=0))
        M = np.zeros((self.p, sum(map(len, centers))))
        ends = np.cumsum([len(C) for C in centers])
        for w, C, end in zip(weights, centers, ends, strict=True):
            own = np.flatnonzero(w)
            M[own, end - len(C) : end] = np.sqrt(w[own, None]) * C.T
        out = self.blocks.stacked(_image, used, self.mean[used], self.unit, M[used])
        return np.split(out, ends[:-1], axis=1)

    def _sums(self, weights: list[Array], given: list[tuple[NDArray[np.intp], int]]) -> list[Array]:
        """Sums of the points of each cluster."""
        used = np.flatnonzero(np.any(weights, axis=0))
        each = list(zip(*(self.blocks.split(labels) for labels, _ in given), strict=True))
        counts = [k for _, k in given]
        (S,) = self.blocks.reduced(added, _sums, used, self.mean[used], self.unit, counts, each=each)
        parts = np.split(S, np.cumsum(counts)[:-1], axis=0)
        return [part[:, w[used] > 0] * np.sqrt(w[w > 0]) for w, part in zip(weights, parts, strict=True)]

    def _rows(self, weights: list[Array], chosen: list[list[int]]) -> list[Array]:
        """Some points."""
        rows = self.blocks.rows(np.concatenate(chosen))
        rows = (rows.astype(np.float64) - self.mean) * self.unit
        parts = np.split(rows, np.cumsum([len(some) for some in chosen])[:-1])
        return [part[:, w > 0] * np.sqrt(w[w > 0]) for w, part in zip(weights, parts, strict=True)]

    def _apart(self, weights: list[Array], given: list[tuple[int, Array]]) -> list[Array]:
        """Squared distances of the points from one of them, of which the squared norms are given."""
        rows = self._rows(weights, [[i] for i, _ in given])
        images = self._image(weights, rows)
        out = []
        for (i, squares), product in zip(given, images, strict=True):
            distance = np.maximum(squares + squares[i] - 2 * product[:, 0], 0)
            distance[i] = 0
            out.append(distance)
        return out


# ---- of one block -----------------------------------------------------------------------------------


def _part(block: Any, index: Index) -> Any:
    X = prepared(block)
    return X if len(index) == X.shape[1] else X[:, index]


def _squares(block: Any, mean: Array, unit: float, W: Array) -> Array:
    """(unit (X - 1 mean'))^2 W, entries squared."""
    X = prepared(block)
    if is_sparse(X):
        X = X.astype(np.float64) * unit
        mean = mean * unit
        return np.asarray(X.multiply(X) @ W) - 2 * (X @ (mean[:, None] * W)) + mean**2 @ W
    out = np.empty((len(X), W.shape[1]))
    for part, rows in dense_rows(X):
        out[part] = ((rows - mean) * unit) ** 2 @ W
    return out


def _image(block: Any, index: Index, mean: Array, unit: float, M: Array) -> Array:
    """unit (X[:, index] - 1 mean') M."""
    X = _part(block, index)
    if is_sparse(X):
        return np.asarray(X @ (unit * M)) - mean @ (unit * M)
    out = np.empty((len(X), M.shape[1]))
    for part, rows in dense_rows(X):
        out[part] = ((rows - mean) * unit) @ M
    return out


def _sums(
    block: Any,
    labels: tuple[NDArray[np.intp], ...],
    index: Index,
    mean: Array,
    unit: float,
    counts: list[int],
) -> tuple[Array]:
    """unit M'(X[:, index] - 1 mean'), M the clusters of several partitions side by side."""
    X = _part(block, index)
    M = np.hstack(
        [(own[:, None] == np.arange(k)).astype(np.float64) for own, k in zip(labels, counts, strict=True)]
    )
    if is_sparse(X):
        return (unit * (np.asarray(X.T @ M).T - np.outer(M.sum(axis=0), mean)),)
    out = np.zeros((M.shape[1], len(index)))
    for part, rows in dense_rows(X):
        out += M[part].T @ ((rows - mean) * unit)
    return (out,)
