"""Data read a block of rows at a time: from a file, or where a cluster holds them.

A solver sees the p x p operator `A = F'F factor`, F the scaled centred data, and no vector of length n: block
b answers with `X_b'(X_b W - 1 s)` and its sums, for W = weight V and s = mean'W, so the means are subtracted
where the rows are and one pass over the data serves all columns of V. What comes back is added in double, in
the order of the rows, whatever ran where.

A pass costs more than its arithmetic, and that of 32 columns little more than that of one. So columns of A
are fetched for the variables that a solver has in use, with some that are likely to follow, and are kept:
products with sparse vectors and submatrices need no further pass. Where products have cost as much as all of
A would, A is formed: at most twice the least cost (Karlin, Manasse, Rudolph and Sleator 1988, Algorithmica 3,
for renting and buying).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import _core
from ._input import float_type, integer, is_sparse, real_array
from ._messages import counted, refuse_no_array, warn_repeated
from ._operator import (
    Problem,
    _canonical_arrays,
    _column_statistics,
    _data_problem,
    _range,
    compressed,
    strided,
)

_BLOCK_BYTES = 1 << 27  # of X, read at a time
_KEPT_BYTES = 1 << 30  # of columns of A
_LARGEST = 1 << 14  # variables up to which a submatrix of A is formed
_ALL = 256  # variables up to which all of A is fetched at once
_TOGETHER = 32  # columns of A that cost about as much as one, which is some products
_LIGHT = 1 << 23  # bytes that a block may return for columns which are only likely to be used
_LONGEST = 512  # nonzeros of vectors whose columns may be worth fetching
_TOLL = 16.0  # columns of A that cost as much as one product, where there are many
_DOUBLE = 256  # variables up to which submatrices of float32 data are summed in double

Index = NDArray[np.intp]
Combine = Callable[[list[Any]], Any]


def row_blocks(
    X: Any, *, block_bytes: int | None = None, persist: bool | None = None, names: Any = None
) -> RowBlocks:
    """Data that are read a block of rows at a time, for `sparse_pca` and the other functions of (n, p) data.

    Each pass reads every row once; memory holds one block, and at most 1 GB of columns of the covariance. A
    solver makes a pass for the statistics of the columns and then some ten for each component.

    Parameters
    ----------
    X : object with `shape`, `dtype` and slices of rows, or dask array, of shape (n, p)
        An `h5py.Dataset`, a `zarr.Array`, the `X` of a backed AnnData, a memory map; rows are read as
        ``X[i:j]``, dense or as a sparse matrix. A dask array, or a dask dataframe, is worked on where its
        blocks are, by the distributed client if there is one.
    block_bytes : int, optional
        Bytes of X in a block, 128 MB by default; rounded to whole chunks of files that have them. Blocks of a
        dask array are its chunks.
    persist : bool, optional
        Of a dask array: True computes its blocks once and keeps them while a function runs, False computes
        them in every pass. By default they are kept where they fit in half of the memory that is free. Blocks
        that `X.persist()` has computed are used in place.
    names : sequence of str, optional
        Of the variables; by default the columns of a dataframe.

    Returns
    -------
    RowBlocks
        To be given in place of X.

    Raises
    ------
    TypeError
        For what cannot be read by rows, is not real, or an option that does not go with this X.
    ValueError
        For an empty X, or a dask array of unknown shape; while a function reads them, for blocks of another
        shape or precision than X says.

    References
    ----------
    The means and variances of blocks are merged as in T. F. Chan, G. H. Golub and R. J. LeVeque (1983).
    Algorithms for computing the sample variance. The American Statistician 37, 242-247.

    Examples
    --------
    >>> import numpy as np, spcacore
    >>> X, _ = spcacore.datasets.make_spiked(200, 50, cardinality=5, rng=0)
    >>> by_rows = spcacore.row_blocks(X, block_bytes=20_000)
    >>> by_rows
    RowBlocks(200 x 50, float64, 4 blocks)
    >>> result = spcacore.sparse_pca(by_rows, 1, cardinality=5)
    >>> np.abs(result.loadings - spcacore.sparse_pca(X, 1, cardinality=5).loadings).max() < 1e-12
    np.True_
    """
    if isinstance(X, RowBlocks):
        if block_bytes is not None or persist is not None or names is not None:
            raise TypeError("X has been made by row_blocks already: options must be given there")
        return X
    if getattr(X, "__dask_graph__", None) is not None:
        from . import dask

        if block_bytes is not None:
            raise TypeError("block_bytes is not for dask arrays, whose blocks are their chunks: see rechunk")
        return dask.DaskBlocks(X, persist, names)
    if persist is not None:
        raise TypeError("persist is for dask arrays; other data are read in every pass")
    refuse_no_array(X, "X")
    size = _BLOCK_BYTES if block_bytes is None else integer(block_bytes, "block_bytes", 1)
    return SlicedRows(X, size, names)


class RowBlocks:
    """Data in blocks of rows; see `row_blocks`.

    Attributes
    ----------
    shape : (n, p)
    dtype : numpy dtype
        As stored.
    n_blocks : int
    names : tuple of str or None
    passes : int
        How often the data have been read so far.
    """

    __row_blocks__ = True

    def __init__(self, shape: Any, dtype: Any, starts: list[int], names: Any) -> None:
        if len(shape) != 2:
            raise ValueError(f"X must have 2 dimensions, not shape {tuple(shape)}")
        self.shape = int(shape[0]), int(shape[1])
        if 0 in self.shape:
            raise ValueError(f"X is empty: shape {self.shape}")
        self.dtype = np.dtype(dtype)
        if self.dtype.kind not in "fiub":
            raise TypeError(f"X has dtype {self.dtype}; real numbers are needed")
        self.starts, self._passes = starts, [0]
        if names is not None and not hasattr(names, "__iter__"):
            raise TypeError(f"names must be a sequence of names or None, not {names!r}")
        self.names = None if names is None else tuple(str(name) for name in names)
        warn_repeated(self.names)
        if self.names is not None and len(self.names) != self.shape[1]:
            raise ValueError(
                f"names has {counted(len(self.names), 'entry')} for {counted(self.shape[1], 'variable')}"
            )

    ndim = 2

    @property
    def n_blocks(self) -> int:
        return len(self.starts)

    @property
    def passes(self) -> int:
        return self._passes[0]

    def expected(self) -> list[Expected]:
        """What each block must be."""
        bounds = pairwise([*self.starts, self.shape[0]])
        return [Expected(b, *rows, self.shape[1], self.dtype) for b, rows in enumerate(bounds)]

    def results(
        self, task: Callable[..., Any], *arguments: Any, each: list[Any] | None = None
    ) -> Iterator[Any]:
        """`task(block, *arguments)` of each block, in order; its entry of `each` goes first."""
        raise NotImplementedError

    def reduced(self, combine: Combine, task: Callable[..., Any], *arguments: Any, each: Any = None) -> Any:
        """`combine` of what `task` returns, in order; of some of that first, and then of what came of it."""
        parts: list[Any] = []
        for part in self.results(task, *arguments, each=each):
            parts.append(part)
            if len(parts) == 2:
                parts = [combine(parts)]
        return combine(parts)

    def stacked(self, task: Callable[..., Any], *arguments: Any, each: list[Any] | None = None) -> Any:
        """What `task` returns of each block, an array of as many rows, one below the other."""
        return np.concatenate(list(self.results(task, *arguments, each=each)))

    def mapped(
        self, task: Callable[..., Any], tail: tuple[int, ...], dtype: np.dtype[Any], *arguments: Any
    ) -> Any:
        """The same for the caller, of shape (n, *tail); of a dask array a dask array, not yet computed."""
        return self.stacked(task, *arguments)

    def split(self, a: Any) -> list[Any]:
        """The rows of `a`, of which there are n, block by block."""
        return [a[i:j] for i, j in pairwise([*self.starts, self.shape[0]])]

    def beside(self, other: RowBlocks) -> Any:
        """The same rows of other data, block by block, to go as `each`."""
        raise NotImplementedError

    def rows(self, index: Index) -> NDArray[Any]:
        """Some rows in memory, in any order, dense."""
        which = np.searchsorted(self.starts, index, "right") - 1
        parts = [
            self._slice(b, i - self.starts[b]) for b, i in zip(which.tolist(), index.tolist(), strict=True)
        ]
        return np.concatenate([finite(part.toarray() if is_sparse(part) else part) for part in parts])

    def _slice(self, b: int, i: int) -> Any:
        """One row of block b."""
        raise NotImplementedError

    def taken(self, rows: Index) -> RowBlocks:
        """Some rows, ascending."""
        return TakenRows(self, rows)

    def held(self) -> RowBlocks:
        """The same with blocks that are kept as long as this object is, where that saves computing them."""
        return self

    def repaired(self) -> RowBlocks:
        """The same with blocks that need not be copied to be read, where copies can be kept."""
        return self

    def whole(self) -> Any:
        """All rows in memory."""
        parts = [part for part in self.results(prepared) if part.shape[0]]
        if any(map(is_sparse, parts)):
            from scipy.sparse import vstack

            return vstack(parts, "csr")
        return np.concatenate(parts)

    def __repr__(self) -> str:
        n, p = self.shape
        return f"RowBlocks({n} x {p}, {self.dtype}, {counted(self.n_blocks, 'block')})"


class SlicedRows(RowBlocks):
    """Blocks that slices of rows of one object bring into memory, one at a time."""

    def __init__(self, X: Any, block_bytes: int, names: Any) -> None:
        if is_sparse(X):
            X = compressed(X)
        if not (hasattr(X, "shape") and hasattr(X, "dtype") and hasattr(X, "__getitem__")):
            raise TypeError(f"X must have shape, dtype and slices of rows, which {type(X).__name__} has not")
        if is_sparse(X):  # slices hide what is wrong with indices
            compressed(X)
        shape = tuple(X.shape)
        rows = block_bytes // max(1, math.prod(shape[1:]) * np.dtype(X.dtype).itemsize)
        chunks = getattr(X, "chunks", None)
        if isinstance(chunks, tuple) and chunks and isinstance(chunks[0], int):
            rows = max(rows // chunks[0], 1) * chunks[0]
        super().__init__(shape, X.dtype, list(range(0, sum(shape[:1]), max(rows, 1))), names)
        self.source = X

    def results(
        self, task: Callable[..., Any], *arguments: Any, each: list[Any] | None = None
    ) -> Iterator[Any]:
        self._passes[0] += 1
        for block in self.expected():
            rows = block.check(self.source[block.start : block.stop])
            yield task(rows, *(() if each is None else (each[block.number],)), *arguments)

    def _slice(self, b: int, i: int) -> Any:
        return self.source[self.starts[b] + i : self.starts[b] + i + 1]

    def beside(self, other: RowBlocks) -> Any:
        return _Slices(other, [*self.starts, self.shape[0]])


class _Slices:
    """Rows of a source, read where they are asked for."""

    def __init__(self, blocks: Any, bounds: list[int]) -> None:
        self.blocks, self.bounds = blocks, bounds

    def __getitem__(self, b: int) -> Any:
        return self.blocks.source[self.bounds[b] : self.bounds[b + 1]]


class TakenRows(RowBlocks):
    """Some rows of other blocks."""

    def __init__(self, source: RowBlocks, rows: Index) -> None:
        ends = np.searchsorted(rows, [*source.starts, source.shape[0]]).tolist()
        super().__init__((len(rows), source.shape[1]), source.dtype, ends[:-1], source.names)
        self.source, self._passes = source, source._passes
        self.own = [part - start for part, start in zip(self.split(rows), source.starts, strict=True)]

    def _own(self, each: Any) -> list[Any]:
        return [(rows, *(() if each is None else (each[b],))) for b, rows in enumerate(self.own)]

    def results(
        self, task: Callable[..., Any], *arguments: Any, each: list[Any] | None = None
    ) -> Iterator[Any]:
        return self.source.results(_on_rows, task, *arguments, each=self._own(each))

    def reduced(self, combine: Combine, task: Callable[..., Any], *arguments: Any, each: Any = None) -> Any:
        return self.source.reduced(combine, _on_rows, task, *arguments, each=self._own(each))


def _on_rows(block: Any, own: tuple[Any, ...], task: Callable[..., Any], *arguments: Any) -> Any:
    rows, *each = own
    return task(prepared(block)[rows], *each, *arguments)


def added(parts: list[tuple[NDArray[Any], ...]]) -> tuple[NDArray[np.float64], ...]:
    """The sums of arrays, in double precision and in this order."""
    out = tuple(np.array(part, np.float64) for part in parts[0])
    for part in parts[1:]:
        for total, one in zip(out, part, strict=True):
            total += one
    return out


# ---- of one block, wherever it is ------------------------------------------------------------------


class Expected(NamedTuple):
    """The rows, columns and dtype of a block, as the whole has them."""

    number: int
    start: int
    stop: int
    p: int
    dtype: np.dtype[Any]

    def check(self, block: Any) -> Any:
        """The block, if it is as expected; its source may change between two passes."""
        name = f"block {self.number} of X (rows {self.start} to {self.stop - 1})"
        shape, dtype = getattr(block, "shape", None), getattr(block, "dtype", None)
        if not isinstance(shape, tuple):
            raise TypeError(f"{name} is {type(block).__name__}, not an array")
        if isinstance(dtype, np.dtype) and dtype.kind not in "fiub":
            raise TypeError(f"{name} has dtype {dtype}; real numbers are needed")
        if shape != (self.stop - self.start, self.p):
            raise ValueError(f"{name} has shape {shape}, not {(self.stop - self.start, self.p)} as X says")
        if isinstance(dtype, np.dtype) and float_type(dtype) != float_type(self.dtype):
            raise ValueError(f"{name} has dtype {dtype}, not {self.dtype} as X says")
        return block


def prepared(block: Any) -> Any:
    """A block that the tasks below read in place: of a float dtype, aligned, rows or columns contiguous."""
    if is_sparse(block):
        if block.shape[0] == 0:
            return np.empty(block.shape, float_type(block.dtype))
        X, (data, indices, indptr) = _canonical_arrays(block)
        return type(X)((data, indices, indptr), shape=X.shape)
    return strided(real_array(block, "a block of X", ndim=2, finite=False, empty=True))


def finite(block: Any) -> Any:
    """The same, where nothing in it is NaN or infinite."""
    X = prepared(block)
    if not np.isfinite(X.data if is_sparse(X) else X).all():
        raise ValueError("X has entries that are NaN or infinite")
    return X


def dense_rows(X: Any, entries: int = 1 << 22) -> Iterator[tuple[slice, NDArray[Any]]]:
    """A prepared block as dense rows, so many entries at a time."""
    n, p = X.shape
    step = max(1, entries // p)
    for part in (slice(start, start + step) for start in range(0, n, step)):
        yield part, X[part].toarray() if is_sparse(X) else X[part]


def _operator(block: Any) -> _core.Operator:
    """X'X."""
    if is_sparse(block):
        arrays = block.data, block.indices, block.indptr
        n, p = block.shape
        return _core.compressed(n, p, block.format == "csr", *arrays, False, None, None, 1.0, 1.0)
    return _core.dense(block, False, None, None, 1.0, 1.0)


@dataclass(frozen=True, eq=False, repr=False)
class Statistics:
    """Of some rows: their number and that of stored entries; mean, sum of squared deviations, lowest and
    highest entry of each column; whether all of it was read in place.

    Of sparse rows, lowest and highest only bound the magnitude, and tell whether a column is constant.
    """

    n: int
    stored: int
    mean: NDArray[np.float64]
    square: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    plain: bool


def statistics(block: Any) -> Statistics | None:
    """Of a block; None where it has no rows."""
    X = prepared(block)
    n, p = X.shape
    if n == 0:
        return None
    if is_sparse(X):
        arrays = X.data, X.indices, X.indptr
        mean, square, spread = _core.compressed_statistics(n, p, X.format == "csr", *arrays)
        low, high = np.where(spread == 0, mean, -spread), np.where(spread == 0, mean, spread)
        return Statistics(n, X.nnz, mean, square, low, high, np.may_share_memory(X.data, block.data))
    sums, _ = _core.dense_statistics(X, True, None)
    plain = isinstance(block, np.ndarray) and np.may_share_memory(X, block)
    return Statistics(n, n * p, sums[0], sums[1], sums[2], sums[3], plain)


def merged(parts: list[Statistics | None]) -> Statistics | None:
    """Of all rows, from those of some (Chan, Golub and LeVeque 1983, as in statistics.c)."""
    out: Statistics | None = None
    for b in parts:
        a = out
        if a is None or b is None:
            out = b if a is None else a
            continue
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            n, d = a.n + b.n, b.mean - a.mean
            out = Statistics(
                n,
                a.stored + b.stored,
                a.mean + d * (b.n / n),
                a.square + (b.square + d * d * (a.n * (b.n / n))),
                np.minimum(a.low, b.low),
                np.maximum(a.high, b.high),
                a.plain and b.plain,
            )
    return out


def not_finite(block: Any, start: int) -> tuple[int, tuple[int, int] | None]:
    """How many entries are NaN or infinite, and the row and column of the first."""
    X = prepared(block)
    if is_sparse(X):
        X = X.tocsr()
        bad = np.flatnonzero(~np.isfinite(X.data))
        row = np.searchsorted(X.indptr, bad[:1], "right") - 1
        where = None if len(bad) == 0 else (int(row[0]) + start, int(X.indices[bad[0]]))
        return len(bad), where
    rows, columns = np.nonzero(~np.isfinite(X))
    return len(rows), (int(rows[0]) + start, int(columns[0])) if len(rows) else None


def scaled_statistics(block: Any, index: Index, unit: NDArray[np.float64]) -> Statistics | None:
    """`statistics` of some columns, multiplied twice by their unit."""
    X = prepared(block)[:, index]
    X = (X.toarray() if is_sparse(X) else X).astype(np.float64)
    return statistics(np.ascontiguousarray(X * unit * unit))


def _times(X: Any, index: Index | None, W: NDArray[Any], shift: NDArray[Any], range_: float) -> NDArray[Any]:
    """range (X[:, index] W - 1 shift'); W of one dimension is a diagonal."""
    if index is not None and W.shape == (len(index), 1):
        U = _operator(X).image(index, np.ascontiguousarray(W[:, 0]))[:, None]
    elif is_sparse(X):
        if index is not None:
            full = np.zeros((X.shape[1], len(shift)), W.dtype, order="F")
            full[index] = np.diag(W) if W.ndim == 1 else W
            W = full
        U = _operator(X).image_block(W)
    elif index is None:
        U = X @ W
    else:
        U = X[:, index] * W if W.ndim == 1 else X[:, index] @ W
    U -= shift
    U *= W.dtype.type(range_)
    return U


def products(
    block: Any, index: Index | None, W: NDArray[Any], shift: NDArray[Any], range_: float, factor: float
) -> tuple[NDArray[Any], NDArray[Any]]:
    """X'U and 1'U, U = factor range^2 (X[:, index] W - 1 shift')."""
    X = prepared(block)
    b = len(shift)
    if X.shape[0] == 0:
        return np.zeros((X.shape[1], b), W.dtype), np.zeros(b)
    U = _times(X, index, W, shift, range_)
    U *= W.dtype.type(factor)
    U *= W.dtype.type(range_)
    return transposed(X, U)


def transposed(block: Any, U: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """X'U and 1'U."""
    X, b = prepared(block), U.shape[1]
    if X.shape[0] == 0:
        return np.zeros((X.shape[1], b), U.dtype), np.zeros(b)
    Y = _operator(X).transposed_block(U) if is_sparse(X) or b < 8 else X.T @ U
    return Y, U.sum(axis=0, dtype=np.float64)


def image(
    block: Any, index: Index | None, W: NDArray[Any], shift: NDArray[Any], range_: float
) -> NDArray[Any]:
    """range (X[:, index] W - 1 shift')."""
    X = prepared(block)
    return _times(X, index, W, shift, range_) if X.shape[0] else np.zeros((0, len(shift)), W.dtype)


def submatrix(
    block: Any, index: Index, W: NDArray[Any], shift: NDArray[Any], range_: float, double: bool
) -> tuple[NDArray[Any]]:
    """U'U, U = range (X[:, index] diag(W) - 1 shift')."""
    X = prepared(block)
    part = X[:, index].toarray() if is_sparse(X) else X[:, index]
    if double:
        part, W, shift = part.astype(np.float64), W.astype(np.float64), shift.astype(np.float64)
    U = part * W
    U -= shift
    U *= U.dtype.type(range_)
    return (U.T @ U,)


def scores_of(block: Any, index: Index, V: NDArray[Any], shift: NDArray[Any] | None) -> NDArray[Any]:
    """X[:, index] V - 1 shift'."""
    X = prepared(block)
    out = np.asarray(X[:, index] @ V)
    if not np.isfinite(out).all():
        raise ValueError("X has entries that are NaN or infinite, or too large")
    return out if shift is None else out - shift


# ---- the operator ------------------------------------------------------------------------------------


class Gram:
    """A without deflation: products, columns and submatrices from passes over the blocks.

    It belongs to one call of a solver, which changes what it keeps.
    """

    def __init__(
        self,
        blocks: RowBlocks,
        dtype: np.dtype[Any],
        mean: NDArray[Any] | None,
        weight: NDArray[Any] | None,
        range_: float,
        factor: float,
    ) -> None:
        self.blocks, self.dtype, self.range, self.factor = blocks, dtype, range_, factor
        self.p = p = blocks.shape[1]
        self.mean = np.zeros(p, dtype) if mean is None else mean
        self.weight = np.ones(p, dtype) if weight is None else weight
        self.answers: deque[NDArray[Any]] = deque()  # to the products that will be asked for next
        self.diagonal = np.zeros(p, dtype)
        self.promise = self.diagonal  # of the variables, to be used soon
        self.column = np.empty((0, p), dtype)  # those kept, as rows
        self.slot = np.full(p, -1, np.intp)  # of a variable in `column`
        self.owner = np.empty(0, np.intp)  # of a slot, -1 where free
        self.used = np.empty(0, np.int64)  # when, for each slot
        self.clock, self.formed = 0, False
        self.part = np.empty(0, np.intp), np.empty((0, 0), dtype)  # some variables, and A between them
        self.capacity = min(p, _KEPT_BYTES // (p * dtype.itemsize))
        self.cost = 0.0  # of the passes so far, in columns of A
        self.debt = 0  # products that kept columns would have saved

    def forward(self, v: NDArray[Any]) -> NDArray[Any]:
        """A v, as the kernels ask for it."""
        if self.answers:
            return self.answers.popleft()
        index = np.flatnonzero(v)
        y = self.block(index, v[index][:, None])[:, 0]
        self.promise = np.abs(y)
        return np.ascontiguousarray(y)

    def block(self, index: Index, V: NDArray[Any]) -> NDArray[Any]:
        """A[:, index] V."""
        if len(index) == 0:
            return np.zeros((self.p, V.shape[1]), self.dtype)
        if self._has(index):
            self.clock += 1
            slots = self.slot[index]
            self.used[slots] = self.clock
            whole = self.formed and len(index) == self.p
            return (V.T @ (self.column if whole else self.column[slots])).T
        self.cost += _TOLL * V.shape[1]
        joining = self._heaviest(index, V)
        if len(joining):
            unit = np.zeros((len(index), len(joining)), self.dtype)
            unit[np.searchsorted(index, joining), np.arange(len(joining))] = 1
            V = np.hstack((V, unit))
        Y = self._times(index, V)
        self._keep(joining, joining, Y[:, V.shape[1] - len(joining) :])
        return Y[:, : V.shape[1] - len(joining)]

    def _heaviest(self, index: Index, V: NDArray[Any]) -> Index:
        """Variables of large weight in a single vector: where a step of a solver leads to, as a rule."""
        if V.shape[1] > 1 or len(index) > min(_LONGEST, self.capacity):
            return index[:0]
        count = -(-(len(index) // 4 + 1) // _TOGETHER) * _TOGETHER - 1
        count = min(count, len(index), _LIGHT // (self.p * self.dtype.itemsize))
        chosen = index[_core.select_largest(np.ascontiguousarray(V[:, 0]), count)] if count else index[:0]
        return chosen[self.slot[chosen] < 0]

    def _weighted(self, index: Index, V: NDArray[Any]) -> tuple[Index | None, NDArray[Any], NDArray[Any]]:
        """What the blocks need for F[:, index] V."""
        W = V * (self.weight[index] * self.dtype.type(self.range))[:, None]
        few = 4 * len(index) <= self.p
        if not few:
            full = np.zeros((self.p, V.shape[1]), self.dtype, order="F")
            full[index] = W
        return index if few else None, W if few else full, self.mean[index] @ W

    def _times(self, index: Index, V: NDArray[Any]) -> NDArray[Any]:
        """A[:, index] V from the blocks."""
        return self._product(*self._weighted(index, V))

    def image(self, V: NDArray[Any]) -> NDArray[Any]:
        """F V, (n, b)."""
        index = np.flatnonzero(V.any(axis=1))
        return np.asarray(self.blocks.stacked(image, *self._weighted(index, V[index]), self.range))

    def transposed(self, U: NDArray[Any]) -> NDArray[Any]:
        """F'U factor, (p, b)."""
        U = U * U.dtype.type(self.range) * U.dtype.type(self.factor)
        return self._centred(*self.blocks.reduced(added, transposed, each=self.blocks.split(U)))

    def _product(self, index: Index | None, W: NDArray[Any], shift: NDArray[Any]) -> NDArray[Any]:
        """Of the blocks, in one pass."""
        return self._centred(*self.blocks.reduced(added, products, index, W, shift, self.range, self.factor))

    def _centred(self, Y: NDArray[np.float64], total: NDArray[np.float64]) -> NDArray[Any]:
        """Of what the blocks return, without their means, in the units of A."""
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            Y -= np.multiply.outer(self.mean.astype(np.float64), total)
            Y *= self.weight[:, None]
            Y *= self.range
            return np.asarray(Y, self.dtype)

    def _has(self, index: Index) -> bool:
        """Whether these columns are kept, after a pass where that pays."""
        missing = index[self.slot[index] < 0]
        if len(missing) == 0:
            return True
        if self._all():
            return True
        if len(index) > min(_LONGEST, self.capacity):
            return False
        if len(missing) > _TOGETHER + 16 * self.debt:
            self.debt += 1
            return False
        self.debt = 0
        self._fetch(index, missing)
        return True

    def _all(self) -> bool:
        """Form A where it is small, or would have cost no more than the passes so far."""
        p = self.p
        if self.capacity < p or (p > _ALL and self.cost < p):
            return False
        everything = np.arange(p)
        self.column = np.ascontiguousarray(self._submatrix(everything))
        self.slot, self.owner, self.used = everything, everything.copy(), np.zeros(p, np.int64)
        self.formed = True
        return True

    def _fetch(self, index: Index, missing: Index) -> None:
        """Keep the missing columns of these variables, and some more while they cost little."""
        more = min(-len(missing) % _TOGETHER, _LIGHT // (self.p * self.dtype.itemsize))
        free = np.setdiff1d(np.flatnonzero(self.slot < 0), missing)
        if 0 < more <= min(len(free), self.capacity - len(index)):
            likely = _core.select_largest(self.promise[free], more)
            missing = np.union1d(missing, free[likely])
        W = self.weight[missing] * self.dtype.type(self.range)
        self.cost += 3 * _TOLL + len(missing)
        self._keep(index, missing, self._product(missing, W, self.mean[missing] * W))

    def _keep(self, index: Index, joining: Index, columns: NDArray[Any]) -> None:
        """These columns, and those of `index` that are kept already."""
        self._make_room(index, len(joining))
        slots = np.flatnonzero(self.owner < 0)[: len(joining)]
        self.column[slots] = columns.T
        self.slot[joining], self.owner[slots], self.used[slots] = slots, joining, self.clock

    def _make_room(self, index: Index, count: int) -> None:
        """Free slots for `count` more columns: new ones, or those used longest ago but of `index`."""
        size = len(self.owner)
        lacking = count - int(np.count_nonzero(self.owner < 0))
        grown = min(max(size + lacking, 2 * size), self.capacity)
        if lacking > 0 and grown > size:
            column = np.empty((grown, self.p), self.dtype)
            column[:size] = self.column
            self.column = column
            self.owner = np.append(self.owner, np.full(grown - size, -1, np.intp))
            self.used = np.append(self.used, np.zeros(grown - size, np.int64))
            lacking -= grown - size
        if lacking > 0:
            kept = self.slot[index]
            self.used[kept[kept >= 0]] = self.clock + 1
            for slot in np.argsort(np.where(self.owner < 0, self.clock + 2, self.used), kind="stable")[
                :lacking
            ]:
                self.slot[self.owner[slot]] = -1
                self.owner[slot] = -1

    def submatrix(self, index: Index) -> NDArray[Any]:
        """A[index, index]; without a pass where the columns are kept."""
        missing = index[self.slot[index] < 0]
        if len(missing) and self.p <= _ALL and self._all():
            missing = missing[:0]
        if 0 < len(missing) <= _TOGETHER // 4 and len(index) <= min(_LONGEST, self.capacity):
            self._fetch(index, missing)
        elif len(missing):
            if not np.isin(index, self.part[0]).all():
                more = min(len(index) // 2, _LARGEST - len(index)) if len(index) <= _LONGEST else 0
                rest = np.setdiff1d(np.arange(self.p), index)
                likely = _core.select_largest(self.diagonal[rest], min(max(more, 0), len(rest)))
                wider = np.union1d(index, rest[likely])
                self.part = wider, self._submatrix(wider)
            place = np.searchsorted(self.part[0], index)
            return self.part[1][np.ix_(place, place)]
        G = self.column[np.ix_(self.slot[index], index)]
        return (G + G.T) / 2

    def _submatrix(self, index: Index) -> NDArray[Any]:
        k = len(index)
        if k > _LARGEST:
            raise ValueError(
                f"this needs the covariance of {k} variables at once, and X is in blocks of rows, of which "
                f"that of at most {_LARGEST} is formed"
            )
        W = self.weight[index] * self.dtype.type(self.range)
        double = self.dtype == np.float64 or k <= _DOUBLE
        (G,) = self.blocks.reduced(added, submatrix, index, W, self.mean[index] * W, self.range, double)
        G *= self.factor
        return np.asarray(G, self.dtype)


Step = tuple[Index, NDArray[np.float64], "NDArray[np.float64] | None", float]


class BlockOperator:
    """What solvers see: `_core.Operator` for the products, and A[S, S] or blocks of products in one pass.

    `covariance` is True: it acts on vectors of length p alone. `n` is the number of samples.
    """

    dense, covariance = False, True

    def __init__(
        self, gram: Gram, inner: _core.Operator, method: str = "", steps: tuple[Step, ...] = ()
    ) -> None:
        self.gram, self.inner, self.method, self.steps = gram, inner, method, steps
        self.n, self.p, self.m, self.t = gram.blocks.shape[0], gram.p, gram.p, len(steps)
        self.dtype, self.single = gram.dtype, inner.single

    def __getattr__(self, name: str) -> Any:
        if name in ("outer", "row_weighted", "screened"):
            raise TypeError("this needs the data in memory, and X is in blocks of rows")
        return getattr(self.inner, name)

    def unscreened(self) -> BlockOperator:
        return self

    def with_quotient(self) -> BlockOperator:
        return BlockOperator(self.gram, self.inner.with_quotient(), self.method, self.steps)

    def with_penalty(self, weight: float) -> BlockOperator:
        return BlockOperator(self.gram, self.inner.with_penalty(weight), self.method, self.steps)

    def deflated(
        self, method: str, index: Index, value: NDArray[Any], image: NDArray[Any] | None, amount: float
    ) -> BlockOperator:
        inner = self.inner.deflated(method, index, value, image, amount)
        g = None if image is None else np.asarray(image, np.float64)
        step = index, np.asarray(value, np.float64), g, float(amount)
        return BlockOperator(self.gram, inner, method, (*self.steps, step))

    def apply_block(self, V: NDArray[Any]) -> NDArray[Any]:
        """A V, in one pass."""
        V = np.asarray(V, self.dtype)
        index = np.flatnonzero(V.any(axis=1))
        self.gram.answers.extend(np.ascontiguousarray(self.gram.block(index, V[index]).T))
        try:
            return self.inner.apply_block(V)
        finally:
            self.gram.answers.clear()

    def image_block(self, V: NDArray[Any]) -> NDArray[Any]:
        """F V (n, b), of data that are not deflated, in one pass."""
        return self.gram.image(np.asarray(V, self.dtype))

    def transposed_block(self, U: NDArray[Any]) -> NDArray[Any]:
        """F'U times factor (p, b), of data that are not deflated, in one pass."""
        return self.gram.transposed(np.asarray(U, self.dtype, order="F"))

    def submatrix(self, index: Index) -> NDArray[Any]:
        """A[S, S], S = index, of the deflated operator.

        After projections (operator.c), of `(I - x_t x_t') .. (I - x_1 x_1') (A - sum_i g_i x_i')`; row i of R
        is x_i' times what the first i - 1 factors leave, at S.
        """
        G = self.gram.submatrix(index)
        if not self.steps:
            return G
        G = G.astype(np.float64)
        k, t = len(index), self.t
        X = np.zeros((t, self.p))
        for x, (where, value, _, _) in zip(X, self.steps, strict=True):
            x[where] = value
        at = X[:, index]
        if self.method == "hotelling":
            for x, (_, _, _, amount) in zip(at, self.steps, strict=True):
                G -= amount * np.multiply.outer(x, x)
        elif self.method == "schur":
            for _, _, g, amount in self.steps:
                assert g is not None
                G -= amount * np.multiply.outer(g[index], g[index])
        else:
            images = np.stack([g for _, _, g, _ in self.steps if g is not None])
            G -= images[:, index].T @ at
            overlap = X @ X.T
            R = np.empty((t, k))  # x_i'A = g_i' + sum_j<i (x_j'x_i) g_j'
            for i in range(t):
                R[i] = images[i, index] + overlap[i, :i] @ images[:i, index]
            R -= (X @ images.T) @ at
            for i in range(t):
                G -= np.multiply.outer(at[i], R[i])
                R[i + 1 :] -= np.multiply.outer(overlap[i + 1 :, i], R[i])
        return ((G + G.T) / 2).astype(self.dtype)


# ---- from statistics to the problem ------------------------------------------------------------------


def problem_of(X: Any, center: bool, scale: bool) -> Problem:
    """The problem of data in blocks of rows."""
    blocks = row_blocks(X).held()
    (n, p), dtype = blocks.shape, float_type(blocks.dtype)
    found: Statistics = blocks.reduced(merged, statistics)
    if not found.plain:
        blocks = blocks.repaired()

    def again(index: Index) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        unit = np.array([_range(size) for size in np.maximum(-found.low[index], found.high[index])])
        scaled: Statistics = blocks.reduced(merged, scaled_statistics, index, unit)
        square = scaled.square if center else scaled.square + n * scaled.mean**2
        return scaled.mean / unit / unit, np.sqrt(square / max(n - 1, 1)) / unit / unit

    def make(mean: NDArray[Any] | None, weight: NDArray[Any] | None, range_: float, factor: float) -> Any:
        gram = Gram(blocks, dtype, mean, weight, range_, factor)
        return BlockOperator(gram, _core.products(gram, p, p, True, 1.0, dtype == np.float32))

    with np.errstate(over="ignore", invalid="ignore"):
        sums = found.mean, found.square, found.high - found.low
    columns = _column_statistics(n, center, sums, again, lambda: _locate(blocks))
    problem = _data_problem(columns, n, dtype, center, scale, blocks.names, max(found.stored, p), make)
    operator: Any = problem.operator
    assert problem.diagonal is not None
    operator.gram.diagonal = operator.gram.promise = problem.diagonal.astype(dtype)
    return problem


def _locate(blocks: RowBlocks) -> None:
    count, first = 0, None
    for number, where in blocks.results(not_finite, each=blocks.starts):
        count, first = count + number, where if first is None else first
    if count:
        which, it = ("entry that is", "it") if count == 1 else ("entries that are", "them")
        raise ValueError(f"X has {count} {which} NaN or infinite, the first at {first}; impute or drop {it}")


@contextmanager
def naming_not_finite(blocks: RowBlocks) -> Iterator[None]:
    """Where a task refuses what is not finite, says where that is in the whole."""
    try:
        yield
    except ValueError:
        _locate(blocks)
        raise


def scores(X: Any, loadings: NDArray[Any], mean: NDArray[Any] | None, scale: NDArray[Any] | None) -> Any:
    """((X - mean) / scale) @ loadings; of a dask array, a dask array."""
    blocks = row_blocks(X)
    if blocks.shape[1] != len(loadings):
        raise ValueError(f"X has shape {blocks.shape} where (m, {len(loadings)}) is needed")
    index = np.flatnonzero(loadings.any(axis=1))
    V = loadings[index]
    if scale is not None:
        V = V / scale[index, None]
    dtype = np.result_type(float_type(blocks.dtype), V)
    shift = None if mean is None else mean[index] @ V
    return blocks.mapped(scores_of, V.shape[1:], dtype, index, V, shift)
