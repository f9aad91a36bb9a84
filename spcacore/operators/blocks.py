"""Data read a block of rows at a time: from a file, or where a cluster holds them.

A solver sees the p x p operator `A = F'F factor`, where F is the scaled centered data, and no vector of
length n. Block b answers with `F_b'F_b V factor`, by the operator of data in memory. So means are subtracted
where the rows are, and one pass over the data serves all columns of V. Results are added in double precision,
in the order of the rows, whichever process computed them.

A pass costs more than its arithmetic, and a pass for 32 columns costs little more than for one. So columns of
A are fetched for the variables that a solver uses, with others that are likely to follow, and are kept:
products with sparse vectors and submatrices need no further pass. Where products have cost as much as all of
A would, A is formed. That costs at most twice the least possible (Karlin, Manasse, Rudolph and Sleator 1988,
Algorithmica 3, for renting and buying).
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

from .._limits import (
    BLOCK_BYTES,
    BLOCK_TALL,
    BLOCKS_AT_LEAST,
    GROUP_ENTRIES,
    GROUP_ROWS,
    KEPT_BYTES,
    SMALL_BLOCK_BYTES,
    slices,
)
from .._messages import counted, warn_repeated
from .._types import AnyArray, Array, DType, Index, Names
from .._validation import as_dense, columns_of, is_sparse, require_real, stored
from ..linalg.threads import one_ahead
from .row_sources import Expected, fingerprint, reads, stacked
from .sparse import as_finite, compressed, in_memory

Task = Callable[..., Any]  # called with a block, what goes with it, and what all blocks share
Combine = Callable[[Iterable[Any]], Any]  # called with results that come one by one, in order

# ---- what is computed of a block, wherever it is, and of the results of several ---------------------------


def as_kernel_input(block: Any) -> Any:
    """Return a block as kernels read it in place: floats, aligned, with contiguous rows or columns."""
    return in_memory(block, "X" if is_sparse(block) else "a block of X")


def finite(block: Any) -> Any:
    """Return `as_kernel_input`, or refuse a block with entries that are NaN or infinite."""
    X = as_kernel_input(block)
    if not np.isfinite(stored(X)).all():
        raise ValueError("X has entries that are NaN or infinite")
    return X


def dense_rows(X: Any, entries: int = 1 << 22) -> Iterator[tuple[slice, AnyArray]]:
    """Yield which rows, and these as a dense array, so that each array has about `entries` entries."""
    for part in slices(X.shape[0], X.shape[1], entries):
        yield part, as_dense(X[part])


def not_finite(block: Any, start: int) -> tuple[int, tuple[int, int] | None]:
    """Return how many entries are NaN or infinite, and the row and column of the first.

    `start` is the number of the first row of the block.
    """
    X = as_kernel_input(block)
    if is_sparse(X):
        X = X.tocsr().tocoo()
        bad = ~np.isfinite(X.data)
        rows, columns = X.row[bad], X.col[bad]
    else:
        rows, columns = np.nonzero(~np.isfinite(X))
    return len(rows), (int(rows[0]) + start, int(columns[0])) if len(rows) else None


def sum_parts(parts: Iterable[AnyArray]) -> Array:
    """Return the sum of arrays, in double precision and in this order."""
    each = iter(parts)
    total = np.array(next(each), np.float64)
    for part in each:
        total += part
        del part  # before the next is computed
    return total


def concatenated(parts: Iterable[AnyArray]) -> AnyArray:
    """Return the rows of all parts, one part below the other."""
    return np.concatenate(list(parts))


def _with_own(*both: Any) -> tuple[Any, ...]:
    """Return a block, and what goes with it."""
    return both


def _in_groups(parts: Iterable[tuple[Any, ...]], entries: int, most: int) -> Iterator[tuple[Any, ...]]:
    """Yield blocks with what goes with them, small ones below each other.

    Each result has this number of entries to be added, and to copy a block of fewer entries costs less. At
    `most` so many rows wait for others.
    """
    held: list[tuple[Any, ...]] = []
    size = rows = 0
    for part in parts:
        held.append(part)
        rows += part[0].shape[0]
        size += part[0].nnz if is_sparse(part[0]) else part[0].size
        del part  # before the next is read
        if size >= min(entries, GROUP_ENTRIES) or rows >= most:
            yield _below(held)
            held, size, rows = [], 0, 0
    if held:
        yield _below(held)


def _of_groups(task: Task, groups: Iterator[tuple[Any, ...]], arguments: tuple[Any, ...]) -> Iterator[Any]:
    """Yield the result of a task for each group."""
    for group in groups:
        yield task(*group, *arguments)
        del group  # before the next is read


def _below(held: Sequence[Any]) -> Any:
    """Return arrays, sparse matrices or tuples of them, one below the other; of None or numbers the first."""
    if len(held) == 1 or held[0] is None or isinstance(held[0], int):
        return held[0]
    if isinstance(held[0], tuple):
        return tuple(map(_below, zip(*held, strict=True)))
    return stacked([as_kernel_input(part) if is_sparse(part) else part for part in held])


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
    source: Any

    def __init__(
        self, shape: Sequence[int], dtype: DTypeLike, starts: list[int], names: Iterable[str] | None
    ) -> None:
        if len(shape) != 2:
            raise ValueError(f"X must have 2 dimensions, not shape {tuple(shape)}")
        self.shape: tuple[int, int] = int(shape[0]), int(shape[1])
        if 0 in self.shape[self.summed :]:
            raise ValueError(f"X is empty: shape {self.shape}")
        self.dtype: DType = np.dtype(dtype)
        require_real(self.dtype)
        self.starts: list[int] = starts
        self._passes = [0]
        self.prints: list[int | None] = [None] * len(starts)  # fingerprints of the blocks as first read
        if names is not None and not hasattr(names, "__iter__"):
            raise TypeError(f"names must be a sequence of names or None, not {names!r}")
        self.names: Names = None if names is None else tuple(str(name) for name in names)
        warn_repeated(self.names)
        if self.names is not None and len(self.names) != self.shape[1]:
            raise ValueError(
                f"names has {counted(len(self.names), 'entry')} for {counted(self.shape[1], 'variable')}"
            )

    ndim = 2
    summed = False  # whether these are sums over rows, in place of rows
    called = "X"  # its name in messages
    together = GROUP_ROWS  # rows of small blocks that are used together; 0 where tasks run elsewhere

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
        """Return what each block must be in this pass."""
        bounds = pairwise([*self.starts, self.shape[0]])
        return [
            Expected(b, *rows, self.shape[1], self.dtype, self.prints[b], max(self.passes, 1), self.called)
            for b, rows in enumerate(bounds)
        ]

    def results(
        self, task: Task, *arguments: Any, each: Any = None, combine: Combine | None = None, entries: int = 0
    ) -> Iterator[Any]:
        """Yield `task(block, own, *arguments)` for each block, in order; `own` is its entry of `each`.

        Some results may be combined already, if `reduced` says how and many would have to travel.
        """
        raise NotImplementedError

    def reduced(
        self, combine: Combine, task: Task, *arguments: Any, each: Any = None, entries: int = 0
    ) -> Any:
        """Return what `task` returns for all blocks, combined in order.

        `entries` is the size of each result, if that is more than a number for each column. Small blocks that
        are read here are then used several at a time.
        """
        if entries and self.together:
            groups = _in_groups(self.results(_with_own, each=each), entries, self.together)
            return combine(_of_groups(task, groups, arguments))
        return combine(self.results(task, *arguments, each=each, combine=combine, entries=entries))

    def has_room(self, size: int) -> bool:
        """Whether `reduced` may return `size` bytes for each block, to be added to a sum of the same size."""
        return 2 * size <= KEPT_BYTES

    def mapped(self, task: Task, tail: tuple[int, ...], dtype: DType, *arguments: Any) -> Any:
        """Return what `task` makes of the rows, of shape ``(n, *tail)``; for a dask array, not yet computed.

        If the task refuses a block that has an entry that is not finite, the error says where that is.
        """
        with naming_not_finite(self):
            return self.reduced(concatenated, task, *arguments)

    def split(self, a: Any) -> list[Any]:
        """Return the n rows of `a`, block by block; if it is None, a None for each block."""
        return [None if a is None else a[i:j] for i, j in pairwise([*self.starts, self.shape[0]])]

    def placed(self, a: AnyArray | None) -> list[Any]:
        """Return `split(a)` for use as `each` in many passes: it is sent once to where the blocks are."""
        return self._sent(self.split(a))

    def _sent(self, parts: list[Any]) -> list[Any]:
        return parts

    def _parted_like(self, other: RowBlocks) -> RowBlocks:
        """Return the same rows in blocks that begin where those of other data do."""
        if self.starts == other.starts:
            return self
        raise NotImplementedError

    def beside(self, other: RowBlocks, a: Any) -> Any:
        """Return the blocks of other data, with the rows of `a` or None, for use as `each` in one pass.

        The other data must be parted like these.
        """
        raise NotImplementedError

    def rows(self, index: Index) -> AnyArray:
        """Return some rows as a dense array, in any order."""
        which = np.searchsorted(self.starts, index, "right") - 1
        parts = [
            self._slice(b, i - self.starts[b]) for b, i in zip(which.tolist(), index.tolist(), strict=True)
        ]
        return np.concatenate([finite(as_dense(part)) for part in parts])

    def _slice(self, b: int, i: int) -> Any:
        """Return row i of block b, as a slice."""
        return self.source[self.starts[b] + i : self.starts[b] + i + 1]

    def taken(self, rows: Index) -> RowBlocks:
        """Return some rows, which must ascend, as blocks."""
        return TakenRows(self, rows)

    def held(self) -> RowBlocks:
        """Return the same data with blocks that are kept while that object exists, if it saves work."""
        return self

    def aligned(self) -> RowBlocks:
        """Return the same data with blocks that need not be copied to be read, if copies can be kept."""
        return self

    def whole(self) -> Any:
        """Return all rows in memory."""
        return stacked(list(self.results(as_kernel_input)))

    def __repr__(self) -> str:
        n, p = self.shape
        return f"RowBlocks({n} x {p}, {self.dtype}, {counted(self.n_blocks, 'block')})"


class SlicedRows(RowBlocks):
    """Blocks that are read into memory one at a time, as slices of rows of one object."""

    def __init__(self, X: Any, block_bytes: int | None, names: Any) -> None:
        if is_sparse(X):  # checked as a whole, since slices hide what is wrong with indices
            X = compressed(X)
        if not (hasattr(X, "shape") and hasattr(X, "dtype") and hasattr(X, "__getitem__")):
            raise TypeError(
                f"X must have shape, dtype and slices of rows, and {type(X).__name__} lacks some of them"
            )
        # How many rows a block has: by bytes, in whole chunks of a file
        shape = tuple(X.shape)
        width = math.prod(shape[1:])
        row_bytes = width * np.dtype(X.dtype).itemsize
        if is_sparse(X):  # what it stores for a row, on average
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
        if reads(X):  # so that at most an eighth of the work waits for the end of a pass
            self.together = max(1, min(GROUP_ROWS, self.shape[0] // BLOCKS_AT_LEAST))

    def results(self, task: Task, *arguments: Any, each: Any = None, **combining: Any) -> Iterator[Any]:
        self._passes[0] += 1
        expected = self.expected()
        ahead = reads(self.source) and not isinstance(each, Iterator)  # an iterator may read the same source
        in_turn = one_ahead(self._known, expected) if ahead else (self._known(block) for block in expected)
        with closing(in_turn):  # also if the task fails, since the traceback would keep it open
            for block, *own in zip(expected, *([] if each is None else [each]), strict=True):
                rows, self.prints[block.number] = next(in_turn)
                yield task(rows, *own, *arguments)
                del rows, own  # before the next but one is read

    def _known(self, block: Expected) -> tuple[Any, int]:
        """Return the rows of a block, and their fingerprint."""
        rows = self.read(block)
        return rows, fingerprint(rows) if block.known is None else block.known

    def read(self, block: Expected) -> Any:
        """Return the rows of a block, checked; an error says which block it was."""
        try:
            return block.check(_rows(self.source, block.start, block.stop))
        except Exception as error:
            block.note(error)
            raise

    def _parted_like(self, other: RowBlocks) -> RowBlocks:
        out = copy.copy(self)
        out.starts, out.prints = other.starts, [None] * other.n_blocks
        return out

    def beside(self, other: Any, a: Any) -> Any:
        return zip(map(other.read, other.expected()), self.split(a), strict=True)


class WholeRows(RowBlocks):
    """Finite rows in memory, dense or in CSR, as one block that is not read from anywhere."""

    def __init__(self, X: Any) -> None:
        self.source: Any = as_finite(X)
        super().__init__(self.source.shape, self.source.dtype, [0], columns_of(X))

    def results(self, task: Task, *arguments: Any, each: Any = None, **combining: Any) -> Iterator[Any]:
        yield task(self.source, *(() if each is None else each), *arguments)


def _starts(cuts: list[int], most: int) -> list[int]:
    """Return where blocks of at most so many rows begin, at the cuts where they can."""
    out: list[int] = []
    for first, last in pairwise(cuts):
        if not out or last - out[-1] > most:
            out += range(first, last, most)
    return out


def _rows(source: Any, start: int, stop: int) -> Any:
    """Return a slice of rows; for CSR in memory, without a copy of the entries."""
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
        self.source, self._passes, self.together = source, source._passes, source.together
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
    """Return the task's result for some rows of a block; None if the block has none of them."""
    rows, *each = own
    return task(as_kernel_input(block)[rows], *each, *arguments) if len(rows) else None


def _of_some(combine: Combine, parts: Iterable[Any]) -> Any:
    """Combine the results of blocks that have rows; None if there are none."""
    some = [part for part in parts if part is not None]
    return combine(some) if some else None


def locate_not_finite(blocks: RowBlocks) -> None:
    """Raise an error that says how many entries are NaN or infinite, and where, if there are any."""
    count, first = 0, None
    for number, where in blocks.results(not_finite, each=blocks.starts):
        count, first = count + number, where if first is None else first
    if count:
        which, it = ("entry that is", "it") if count == 1 else ("entries that are", "them")
        raise ValueError(
            f"{blocks.called} has {count} {which} NaN or infinite, the first at {first}; replace or drop {it}"
        )


def named(block: Any, start: int, called: str, task: Task, *arguments: Any) -> Any:
    """Return `task(block, *arguments)`; if an entry is not finite, the error of the task says where.

    `start` is the number of the first row of the block, and `called` the name of the data.
    """
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
    """A context in which an error of a task says where an entry is not finite, if that is why."""
    try:
        yield
    except ValueError:
        locate_not_finite(blocks)
        raise
