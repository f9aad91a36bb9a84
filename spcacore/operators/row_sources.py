"""What slices of rows can be read from: stores as they are, tables, and matrices one below the other."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from .._labels import columns_of
from .._messages import counted
from .._types import DType, Names
from .._validation import float_type, is_row_blocks, is_sparse, real_array

_SINGLE = ("float32", "float16", "float", "halffloat")  # dtypes that become float32; the last two of pyarrow


def as_sliced(X: Any) -> Any:
    """X as an object with a shape, a dtype and slices of rows, if it is one, holds some, or names a file."""
    if isinstance(X, (str, os.PathLike)):
        return _opened(Path(X))
    if isinstance(X, (list, tuple)) and (is_row_blocks(X) or _are_paths(X)):
        return StackedRows([as_sliced(part) for part in X])
    if hasattr(X, "get_fragments"):  # a dataset of pyarrow
        groups = [group for part in X.get_fragments() for group in part.split_by_row_group()]
        return PiecedTable([(group.row_groups[0].num_rows, group.to_table) for group in groups], X.schema)
    if hasattr(X, "read_row_group"):  # a file of pyarrow.parquet
        order = range(X.metadata.num_row_groups)
        sizes = [X.metadata.row_group(i).num_rows for i in order]
        readers = [partial(X.read_row_group, i) for i in order]
        return PiecedTable(list(zip(sizes, readers, strict=True)), X.schema_arrow)
    if callable(X) and not hasattr(X, "shape"):
        return IteratedRows(X)
    if columns_of(X) is not None and not hasattr(X, "dtype"):
        return SlicedTable(X)
    return X


def own_names(X: Any) -> Names:
    """The names of the columns of what `as_sliced` returns."""
    return X.names if isinstance(X, _Source) else columns_of(X)


def reads(X: Any) -> bool:
    """Whether slices of rows come from elsewhere than memory, by any thread: what a function yields may be
    bound to the thread that called it."""
    if isinstance(X, StackedRows):
        return any(map(reads, X.parts))
    here = isinstance(X, np.ndarray) and not isinstance(X, np.memmap)
    return not (here or is_sparse(X) or isinstance(X, (SlicedTable, IteratedRows)))


def as_numbers(block: Any, name: str) -> Any:
    """A slice as an array or a sparse matrix; of a table, an array of its numbers."""
    if is_sparse(block) or (isinstance(block, np.ndarray) and block.dtype != object):
        return block
    return real_array(block, name, ndim=2, finite=False, empty=True)


def _are_paths(X: list[Any] | tuple[Any, ...]) -> bool:
    return len(X) > 0 and all(isinstance(part, (str, os.PathLike)) for part in X)


def _opened(path: Path) -> Any:
    """A file of NumPy as a memory map, files of parquet as a dataset; those in a folder in order of names."""
    if not path.exists():
        raise FileNotFoundError(f"X is the path {str(path)!r}, and there is no such file or folder")
    files = sorted(path.glob("*.npy")) if path.is_dir() else []
    if files:
        return StackedRows([_opened(file) for file in files])
    if path.suffix == ".npy":
        return np.load(path, mmap_mode="r")
    if path.suffix == ".parquet" or (path.is_dir() and any(path.rglob("*.parquet"))):
        from pyarrow import dataset

        return as_sliced(dataset.dataset(path))
    raise ValueError(
        f"X is the path {str(path)!r}: files must be .npy or .parquet, or in a folder; open others, and pass "
        "what has slices of rows"
    )


class _Source:
    """What has shape, dtype and slices of rows; a slice of all columns may go with these."""

    ndim = 2
    shape: tuple[int, int]
    dtype: DType
    names: Names

    def __getitem__(self, rows: Any) -> Any:
        rows = rows[0] if isinstance(rows, tuple) else rows
        start, stop, _ = rows.indices(self.shape[0])
        return self._between(start, max(start, stop))

    def _between(self, start: int, stop: int) -> Any:
        raise NotImplementedError

    def _of_own_type(self, rows: Any) -> Any:
        return rows if float_type(rows.dtype) == float_type(self.dtype) else rows.astype(self.dtype)


def _dtype_of(kinds: Iterable[Any]) -> DType:
    return np.dtype(np.float32 if all(str(kind).lower() in _SINGLE for kind in kinds) else np.float64)


def _cuts(sizes: Iterable[Any]) -> list[int]:
    """Where pieces of so many rows begin, and where the last one ends."""
    return list(accumulate(map(int, sizes), initial=0))


class _Pieces(_Source):
    """Rows in pieces, each with slices of rows.

    Attributes
    ----------
    cuts : list of int
        Where each begins, and where the last one ends.
    """

    cuts: list[int]

    def _piece(self, i: int) -> Any:
        raise NotImplementedError

    def _between(self, start: int, stop: int) -> Any:
        rows = [
            self._of_own_type(
                as_numbers(self._piece(i)[max(start - first, 0) : min(stop, last) - first], "X")
            )
            for i, (first, last) in enumerate(pairwise(self.cuts))
            if first < stop and start < last
        ]
        return _below(list(map(self._of_own_type, rows)), self.shape[1], self.dtype)


class SlicedTable(_Pieces):
    """A dataframe of pandas or polars, or a table of pyarrow, some rows of which become an array."""

    rows: Any

    def __init__(self, X: Any) -> None:
        self.rows = getattr(X, "iloc", X)
        self.names: Names = columns_of(X)
        self.shape: tuple[int, int] = int(X.shape[0]), int(X.shape[1])
        self.cuts: list[int] = [0, self.shape[0]]
        kinds = getattr(X, "dtypes", None)
        self.dtype: DType = _dtype_of(X.schema.types if kinds is None else kinds)
        self._between(0, 1)  # names the columns that are no numbers

    def _piece(self, i: int) -> Any:
        return self.rows


class PiecedTable(_Pieces):
    """A table in pieces, such as the groups of rows of parquet files: how many rows, and what reads them.

    One piece is in memory.
    """

    readers: list[Callable[[], Any]]

    def __init__(self, pieces: list[tuple[int, Callable[[], Any]]], schema: Any) -> None:
        text = [str(kind) for kind in schema.types]
        wrong = [
            f"{name!r} ({kind})"
            for name, kind in zip(schema.names, text, strict=True)
            if not kind.startswith(("int", "uint", "float", "double", "half", "bool", "decimal"))
        ]
        if wrong:
            more = ", ..." if len(wrong) > 5 else ""
            raise TypeError(
                f"X has columns that hold no numbers: drop or encode {', '.join(wrong[:5])}{more}"
            )
        self.names: Names = tuple(schema.names)
        self.cuts: list[int] = _cuts(size for size, _ in pieces)
        self.shape: tuple[int, int] = self.cuts[-1], len(self.names)
        self.dtype: DType = _dtype_of(text)
        self.readers, self._known = [read for _, read in pieces], -1
        self._table: Any = None

    def _piece(self, i: int) -> Any:
        if i != self._known:
            self._table, self._known = self.readers[i](), i
        return self._table


class IteratedRows(_Source):
    """Blocks that a function yields, one after the other, and anew in each pass. One block is in memory."""

    shape: tuple[int, int]
    dtype: DType

    def __init__(self, blocks: Callable[[], Any]) -> None:
        self.blocks = blocks
        parts = [(block.shape, block.dtype) for block in self._opened()]
        if not parts:
            raise ValueError("X is a function that returns no block of rows")
        wide = {shape[1] for shape, _ in parts}
        if len(wide) > 1:
            raise ValueError(f"X is a function that returns blocks with numbers of columns {sorted(wide)}")
        self.cuts: list[int] = _cuts(shape[0] for shape, _ in parts)
        self.shape, self.dtype = (self.cuts[-1], wide.pop()), np.result_type(*(kind for _, kind in parts))
        self.names: Names = None
        self._open: Any = iter(())
        self._block: Any = None  # what was read last,
        self._first, self._next = 0, 0  # its first row, and the next to be read

    def _opened(self) -> Iterator[Any]:
        try:
            blocks = iter(self.blocks())
        except TypeError as error:
            raise TypeError(
                f"X must be a function without arguments that returns blocks of rows: {error}"
            ) from None
        for block in blocks:
            if len(getattr(block, "shape", ())) != 2:
                raise TypeError(f"X must return blocks of two dimensions, not {type(block).__name__}")
            yield as_numbers(block, "a block of X")

    def _between(self, start: int, stop: int) -> Any:
        if self._block is None or start < self._next:
            self._open, self._block, self._first = self._opened(), None, 0
        rows: list[Any] = []
        self._next = stop
        while start < stop:
            size = 0 if self._block is None else self._block.shape[0]
            if start >= self._first + size:
                self._first += size
                self._block = next(self._open, None)
                if self._block is None:
                    raise ValueError(
                        f"X returned {counted(self._first, 'row')}, and {self.shape[0]} when first read"
                    )
                continue
            part = self._block[start - self._first : stop - self._first]
            start += part.shape[0]
            rows.append(self._of_own_type(part))
        return _below(rows, self.shape[1], self.dtype)


def _below(rows: list[Any], p: int, dtype: DType) -> Any:
    """Matrices one below the other, of which there may be one or none."""
    if len(rows) == 1:
        return rows[0]
    return stacked(rows) if rows else np.empty((0, p), dtype)


def stacked(rows: list[Any]) -> Any:
    """A new matrix, from others one below the other."""
    if any(map(is_sparse, rows)):
        from scipy.sparse import vstack

        return vstack(rows, "csr")
    return np.concatenate(rows)


class StackedRows(_Pieces):
    """Matrices one below the other, each with slices of rows."""

    def __init__(self, parts: list[Any]) -> None:
        for i, part in enumerate(parts):
            if len(part.shape) != 2 or part.shape[1] != parts[0].shape[1]:
                raise ValueError(
                    f"X is a list of matrices, which must have the same columns: X[0] has shape "
                    f"{tuple(parts[0].shape)}, X[{i}] {tuple(part.shape)}"
                )
        named = {names: i for i, part in enumerate(parts) if (names := own_names(part)) is not None}
        if len(named) > 1:
            first, other = list(named.values())[:2]
            raise ValueError(f"X is a list of tables, and X[{first}] has other columns than X[{other}]")
        self.names: Names = next(iter(named), None)
        self.parts: list[Any] = [part.tocsr() if is_sparse(part) else part for part in parts]
        self.cuts: list[int] = _cuts(part.shape[0] for part in parts)
        self.shape: tuple[int, int] = self.cuts[-1], int(parts[0].shape[1])
        self.dtype: DType = np.result_type(*(np.dtype(part.dtype) for part in parts))

    def _piece(self, i: int) -> Any:
        return self.parts[i]
