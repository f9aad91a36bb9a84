"""Data read a block of rows at a time: from a file, or where a cluster holds them.

A solver sees the p x p operator `A = F'F factor`, F the scaled centered data, and no vector of length n:
block b answers with `F_b'F_b V factor`, by the operator of data in memory, so the means are subtracted where
the rows are and one pass over the data serves all columns of V. What comes back is added in double, in the
order of the rows, whatever ran where.

A pass costs more than its arithmetic, and that of 32 columns little more than that of one. So columns of A
are fetched for the variables that a solver has in use, with some that are likely to follow, and are kept:
products with sparse vectors and submatrices need no further pass. Where products have cost as much as all of
A would, A is formed: at most twice the least cost (Karlin, Manasse, Rudolph and Sleator 1988, Algorithmica 3,
for renting and buying).
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from .._limits import BLOCK_BYTES, BLOCK_TALL, BLOCKS_AT_LEAST, KEPT_BYTES, SMALL_BLOCK_BYTES, slices
from .._messages import counted, warn_repeated
from .._types import AnyArray, Array, DType, Index, Names
from .._validation import as_dense, columns_of, is_sparse, stored
from ..linalg.threads import one_ahead
from .row_sources import Expected, fingerprint, reads, stacked
from .sparse import as_finite, compressed, in_memory

Task = Callable[..., Any]  # of a block, what goes with it, and what all blocks share
Combine = Callable[[Iterable[Any]], Any]  # of results that come one by one, in order

# ---- what is computed of a block, wherever it is, and of the results of several ---------------------------


def as_kernel_input(block: Any) -> Any:
    """A block that the tasks below read in place: of a float dtype, aligned, rows or columns contiguous."""
    return in_memory(block, "X" if is_sparse(block) else "a block of X")


def finite(block: Any) -> Any:
    """The same, where nothing in it is NaN or infinite."""
    X = as_kernel_input(block)
    if not np.isfinite(stored(X)).all():
        raise ValueError("X has entries that are NaN or infinite")
    return X


def dense_rows(X: Any, entries: int = 1 << 22) -> Iterator[tuple[slice, AnyArray]]:
    """A prepared block as dense rows, so many entries at a time."""
    for part in slices(X.shape[0], X.shape[1], entries):
        yield part, as_dense(X[part])


def not_finite(block: Any, start: int) -> tuple[int, tuple[int, int] | None]:
    """How many entries are NaN or infinite, and the row and column of the first."""
    X = as_kernel_input(block)
    if is_sparse(X):
        X = X.tocsr()
        bad = np.flatnonzero(~np.isfinite(X.data))
        row = np.searchsorted(X.indptr, bad[:1], "right") - 1
        where = None if len(bad) == 0 else (int(row[0]) + start, int(X.indices[bad[0]]))
        return len(bad), where
    rows, columns = np.nonzero(~np.isfinite(X))
    return len(rows), (int(rows[0]) + start, int(columns[0])) if len(rows) else None


def sum_parts(parts: Iterable[AnyArray]) -> Array:
    """The sum of arrays, in double precision and in this order."""
    each = iter(parts)
    total = np.array(next(each), np.float64)
    for part in each:
        total += part
        del part  # before the next is computed
    return total


def concatenated(parts: Iterable[AnyArray]) -> AnyArray:
    """Rows one below the other."""
    return np.concatenate(list(parts))


# ---- blocks ---------------------------------------------------------------------------------------------


class RowBlocks:
    """Data in blocks of rows; see `row_blocks`.

    Attributes
    ----------
    shape : (n, p)
    dtype : numpy dtype
        The type in which the data are stored.
    n_blocks : int
    names : tuple of str or None
    passes : int
        How often the data have been read so far.

    Examples
    --------
    >>> import numpy as np, spcacore
    >>> blocks = spcacore.row_blocks(np.ones((100, 5)), block_bytes=1600)
    >>> blocks.shape, blocks.n_blocks, blocks.passes
    ((100, 5), 3, 0)
    """

    __row_blocks__ = True

    def __init__(
        self, shape: Sequence[int], dtype: DTypeLike, starts: list[int], names: Iterable[str] | None
    ) -> None:
        if len(shape) != 2:
            raise ValueError(f"X must have 2 dimensions, not shape {tuple(shape)}")
        self.shape: tuple[int, int] = int(shape[0]), int(shape[1])
        if 0 in self.shape[self.summed :]:
            raise ValueError(f"X is empty: shape {self.shape}")
        self.dtype: DType = np.dtype(dtype)
        if self.dtype.kind not in "fiub":
            raise TypeError(f"X has dtype {self.dtype}; real numbers are needed")
        self.starts: list[int] = starts
        self._passes = [0]
        self.prints: list[int | None] = [None] * len(starts)  # of each block, from the first read of it
        if names is not None and not hasattr(names, "__iter__"):
            raise TypeError(f"names must be a sequence of names or None, not {names!r}")
        self.names: Names = None if names is None else tuple(str(name) for name in names)
        warn_repeated(self.names)
        if self.names is not None and len(self.names) != self.shape[1]:
            raise ValueError(
                f"names has {counted(len(self.names), 'entry')} for {counted(self.shape[1], 'variable')}"
            )

    ndim = 2
    summed = False  # whether these are the sums of rows, in place of rows
    called = "X"  # in words of errors

    @property
    def n_samples(self) -> float:
        return self.shape[0]

    @property
    def n_blocks(self) -> int:
        return len(self.starts)

    @property
    def passes(self) -> int:
        return self._passes[0]

    def expected(self) -> list[Expected]:
        """What each block must be, in this pass."""
        bounds = pairwise([*self.starts, self.shape[0]])
        return [
            Expected(b, *rows, self.shape[1], self.dtype, self.prints[b], max(self.passes, 1), self.called)
            for b, rows in enumerate(bounds)
        ]

    def results(
        self, task: Task, *arguments: Any, each: Any = None, combine: Combine | None = None, entries: int = 0
    ) -> Iterator[Any]:
        """`task(block, *arguments)` of each block, in order; its entry of `each` goes first.

        Several are combined already where `reduced` is told how, and many would have to travel.
        """
        raise NotImplementedError

    def reduced(
        self, combine: Combine, task: Task, *arguments: Any, each: Any = None, entries: int = 0
    ) -> Any:
        """What `task` returns, combined in order.

        Each result has so many `entries`, if more than one for each column.
        """
        return combine(self.results(task, *arguments, each=each, combine=combine, entries=entries))

    def has_room(self, size: int) -> bool:
        """Whether `reduced` may return so many bytes of each block, to be added to a sum of that size."""
        return 2 * size <= KEPT_BYTES

    def mapped(self, task: Task, tail: tuple[int, ...], dtype: DType, *arguments: Any) -> Any:
        """The same for the caller, of shape ``(n, *tail)``; of a dask array one that is not yet computed.

        A block that the task refuses since something in it is not finite says where that is.
        """
        with naming_not_finite(self):
            return self.reduced(concatenated, task, *arguments)

    def split(self, a: Any) -> list[Any]:
        """The n rows of `a`, block by block; of None a None for each."""
        return [None if a is None else a[i:j] for i, j in pairwise([*self.starts, self.shape[0]])]

    def placed(self, a: AnyArray | None) -> list[Any]:
        """The same, to go as `each` in many passes: sent once to where the blocks are."""
        return self._sent(self.split(a))

    def _sent(self, parts: list[Any]) -> list[Any]:
        return parts

    def _parted_like(self, other: RowBlocks) -> RowBlocks:
        """The same rows in the blocks of other data with as many rows."""
        if self.starts == other.starts:
            return self
        raise NotImplementedError

    def beside(self, other: RowBlocks, a: Any) -> Any:
        """The blocks of other data, parted like these, and of `a` or None, to go as `each` in one pass."""
        raise NotImplementedError

    def rows(self, index: Index) -> AnyArray:
        """Some rows in memory, in any order, dense."""
        which = np.searchsorted(self.starts, index, "right") - 1
        parts = [
            self._slice(b, i - self.starts[b]) for b, i in zip(which.tolist(), index.tolist(), strict=True)
        ]
        return np.concatenate([finite(as_dense(part)) for part in parts])

    def _slice(self, b: int, i: int) -> Any:
        """One row of block b."""
        raise NotImplementedError

    def taken(self, rows: Index) -> RowBlocks:
        """Some rows, ascending."""
        return TakenRows(self, rows)

    def held(self) -> RowBlocks:
        """The same with blocks that are kept as long as this object is, where that saves computing them."""
        return self

    def aligned(self) -> RowBlocks:
        """The same with blocks that need not be copied to be read, where copies can be kept."""
        return self

    def whole(self) -> Any:
        """All rows in memory."""
        return stacked(list(self.results(as_kernel_input)))

    def __repr__(self) -> str:
        n, p = self.shape
        return f"RowBlocks({n} x {p}, {self.dtype}, {counted(self.n_blocks, 'block')})"


class SlicedRows(RowBlocks):
    """Blocks that slices of rows of one object bring into memory, one at a time."""

    def __init__(self, X: Any, block_bytes: int | None, names: Any) -> None:
        if is_sparse(X):
            X = compressed(X)
        if not (hasattr(X, "shape") and hasattr(X, "dtype") and hasattr(X, "__getitem__")):
            raise TypeError(
                f"X must have shape, dtype and slices of rows, and {type(X).__name__} lacks some of them"
            )
        if is_sparse(X):  # slices hide what is wrong with indices
            compressed(X)
        shape = tuple(X.shape)
        width = math.prod(shape[1:])
        row_bytes = width * np.dtype(X.dtype).itemsize
        if is_sparse(X):  # what it stores of a row, on average
            row_bytes = (X.data.nbytes + X.indices.nbytes) // max(1, shape[0])
        row_bytes = max(1, row_bytes)
        if block_bytes is None:
            block_bytes = SMALL_BLOCK_BYTES
            if BLOCK_TALL * width * row_bytes > block_bytes:  # two blocks are in memory
                block_bytes = max(block_bytes, min(BLOCK_BYTES, shape[0] * row_bytes // BLOCKS_AT_LEAST))
        rows = max(block_bytes // row_bytes, 1)
        chunks = getattr(X, "chunks", None)
        if isinstance(chunks, tuple) and chunks and isinstance(chunks[0], int):
            rows = max(rows // chunks[0], 1) * chunks[0]
        cuts = getattr(X, "cuts", [0, *shape[:1]])
        super().__init__(shape, X.dtype, _starts(cuts, rows), names)
        self.source = X

    def results(self, task: Task, *arguments: Any, each: Any = None, **combining: Any) -> Iterator[Any]:
        self._passes[0] += 1
        expected = self.expected()
        ahead = reads(self.source) and not isinstance(each, Iterator)  # which may read the same source
        in_turn = one_ahead(self._known, expected) if ahead else (self._known(block) for block in expected)
        with closing(in_turn):  # also where the task fails, whose traceback would keep it
            for block, *own in zip(expected, *([] if each is None else [each]), strict=True):
                rows, self.prints[block.number] = next(in_turn)
                yield task(rows, *own, *arguments)
                del rows, own  # before the next but one is read

    def _known(self, block: Expected) -> tuple[Any, int]:
        """The rows of a block, and their fingerprint."""
        rows = self.read(block)
        return rows, fingerprint(rows) if block.known is None else block.known

    def read(self, block: Expected) -> Any:
        """The rows of a block."""
        try:
            return block.check(_rows(self.source, block.start, block.stop))
        except Exception as error:
            block.note(error)
            raise

    def _slice(self, b: int, i: int) -> Any:
        return self.source[self.starts[b] + i : self.starts[b] + i + 1]

    def _parted_like(self, other: RowBlocks) -> RowBlocks:
        out = copy.copy(self)
        out.starts, out.prints = other.starts, [None] * other.n_blocks
        return out

    def beside(self, other: Any, a: Any) -> Any:
        return zip(map(other.read, other.expected()), self.split(a), strict=True)


class WholeRows(RowBlocks):
    """Finite rows in memory, dense or in CSR, as one block that needs no reading."""

    def __init__(self, X: Any) -> None:
        self.source: Any = as_finite(X)
        super().__init__(self.source.shape, self.source.dtype, [0], columns_of(X))

    def results(self, task: Task, *arguments: Any, each: Any = None, **combining: Any) -> Iterator[Any]:
        yield task(self.source, *(() if each is None else each), *arguments)

    def _slice(self, b: int, i: int) -> Any:
        return self.source[i : i + 1]


def _starts(cuts: list[int], most: int) -> list[int]:
    """Where blocks of at most so many rows begin, at the cuts where they can."""
    out: list[int] = []
    for first, last in pairwise(cuts):
        if not out or last - out[-1] > most:
            out += range(first, last, most)
    return out


def _rows(source: Any, start: int, stop: int) -> Any:
    """A slice of rows; of CSR arrays in memory without a copy of the entries."""
    if not is_sparse(source) or source.format != "csr":
        return source[start:stop]
    first, last = source.indptr[start], source.indptr[stop]
    rows = type(source)((stop - start, source.shape[1]), dtype=source.dtype)
    rows.data, rows.indices = source.data[first:last], source.indices[first:last]  # SciPy may copy them
    rows.indptr = source.indptr[start : stop + 1] - first
    return rows


class TakenRows(RowBlocks):
    """Some rows of other blocks."""

    source: RowBlocks

    def __init__(self, source: RowBlocks, rows: Index) -> None:
        ends = np.searchsorted(rows, [*source.starts, source.shape[0]]).tolist()
        super().__init__((len(rows), source.shape[1]), source.dtype, ends[:-1], source.names)
        self.source, self._passes = source, source._passes
        self.own: list[Any] = [
            part - start for part, start in zip(self.split(rows), source.starts, strict=True)
        ]

    def _sent(self, parts: list[Any]) -> list[Any]:
        return self.source._sent(parts)

    def results(
        self, task: Task, *arguments: Any, each: Any = None, combine: Combine | None = None, **more: Any
    ) -> Iterator[Any]:
        own = list(zip(self.own, *([] if each is None else [each]), strict=True))
        several = combine and partial(_of_some, combine)
        found = self.source.results(_on_rows, task, *arguments, each=own, combine=several, **more)
        return (one for one in found if one is not None)


def _on_rows(block: Any, own: tuple[Any, ...], task: Task, *arguments: Any) -> Any:
    """Of some rows of a block; None where it has none of them."""
    rows, *each = own
    return task(as_kernel_input(block)[rows], *each, *arguments) if len(rows) else None


def _of_some(combine: Combine, parts: Iterable[Any]) -> Any:
    """Combined without those that have no rows."""
    some = [part for part in parts if part is not None]
    return combine(some) if some else None


def locate_not_finite(blocks: RowBlocks) -> None:
    count, first = 0, None
    for number, where in blocks.results(not_finite, each=blocks.starts):
        count, first = count + number, where if first is None else first
    if count:
        which, it = ("entry that is", "it") if count == 1 else ("entries that are", "them")
        raise ValueError(
            f"{blocks.called} has {count} {which} NaN or infinite, the first at {first}; replace or drop {it}"
        )


def named(block: Any, start: int, called: str, task: Task, *arguments: Any) -> Any:
    """`task(block, *arguments)`; where it fails since an entry is not finite, an error that says where."""
    try:
        return task(block, *arguments)
    except ValueError:
        where = not_finite(block, start)[1]
        if where is None:
            raise
        raise ValueError(
            f"{called} has entries that are NaN or infinite, one at {where}; replace or drop them"
        ) from None


@contextmanager
def naming_not_finite(blocks: RowBlocks) -> Iterator[None]:
    """Where a task refuses what is not finite, says where that is in the whole."""
    try:
        yield
    except ValueError:
        locate_not_finite(blocks)
        raise
