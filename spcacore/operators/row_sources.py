"""What slices of rows can be read from: stores as they are, tables, and matrices one below the other.

Also here: whether a block that was read is as expected (`Expected`).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from hashlib import blake2b
from itertools import accumulate, islice, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._labels import columns_of
from .._limits import CACHED_ENTRIES, slices
from .._messages import counted, first_of
from .._types import AnyArray, DType, Names
from .._validation import float_type, is_row_blocks, is_sparse, real_array, require_real
from ..linalg.scaling import beyond_range
from .sparse import compressed

_SINGLE = ("float32", "float16", "float", "halffloat")  # types that become float32; pyarrow has the last two


def as_sliced(X: Any) -> Any:
    """Return X as an object with a shape, a dtype and slices of rows.

    X may be such an object, a list of them, a table, a function that yields blocks, or the path of a file.
    """
    if isinstance(X, (str, os.PathLike)):
        return _opened(Path(X))
    several = isinstance(X, (list, tuple)) and len(X) > 0
    if several and (is_row_blocks(X) or all(isinstance(part, (str, os.PathLike)) for part in X)):
        return _stacked([as_sliced(part) for part in X])
    if hasattr(X, "get_fragments"):  # a dataset of pyarrow
        groups = [group for part in X.get_fragments() for group in part.split_by_row_group()]
        sizes = [group.row_groups[0].num_rows for group in groups]
        return _pieced_table(sizes, X.schema, lambda i: groups[i].to_table())
    if hasattr(X, "read_row_group"):  # a file of pyarrow.parquet
        sizes = [X.metadata.row_group(i).num_rows for i in range(X.metadata.num_row_groups)]
        return _pieced_table(sizes, X.schema_arrow, X.read_row_group)
    if callable(X) and not hasattr(X, "shape"):
        return _Yielded(X)
    if columns_of(X) is not None and not hasattr(X, "dtype"):
        return _table(X)
    return X


def own_names(X: Any) -> Names:
    """Return the names of the columns of what `as_sliced` returns."""
    return X.names if isinstance(X, Pieces) else columns_of(X)


def reads(X: Any) -> bool:
    """Whether slices of rows come from elsewhere than memory, and any thread may read them.

    What a function yields may be bound to the thread that called it.
    """
    if isinstance(X, Pieces):
        return X.elsewhere
    return not (is_sparse(X) or (isinstance(X, np.ndarray) and not isinstance(X, np.memmap)))


def as_numbers(block: Any, name: str) -> Any:
    """Return a slice as an array or a sparse matrix; a slice of a table as an array of its numbers."""
    if is_sparse(block) or (isinstance(block, np.ndarray) and block.dtype != object):
        return block
    return real_array(block, name, ndim=2, finite=False, empty=True)


def _opened(path: Path) -> Any:
    """Open NumPy's files as memory maps, and parquet as a dataset; files of a folder in order of names."""
    if not path.exists():
        raise FileNotFoundError(f"X is the path {str(path)!r}, and there is no such file or folder")
    files = sorted(path.glob("*.npy")) if path.is_dir() else []
    if files:
        return _stacked([_opened(file) for file in files])
    if path.suffix == ".npy":
        return np.load(path, mmap_mode="r")
    if path.suffix == ".parquet" or (path.is_dir() and any(path.rglob("*.parquet"))):
        from pyarrow import dataset

        return as_sliced(dataset.dataset(path))
    raise ValueError(
        f"X is the path {str(path)!r}: files must be .npy or .parquet, or in a folder; open others, and pass "
        "what has slices of rows"
    )


class Pieces:
    """Rows in pieces that are read in turn, with slices of rows; a slice may also have all columns.

    Parameters
    ----------
    sizes : list of int
        The number of rows of each piece.
    read : function
        Called with the number of a piece, returns an object with slices of its rows. The piece read last
        stays in memory.
    elsewhere : bool
        Whether pieces are read by any thread, and from elsewhere than memory. If not, each pass reads anew.

    Attributes
    ----------
    cuts : list of int
        Where each piece begins, and where the last one ends.
    """

    ndim = 2
    dtype: DType

    def __init__(
        self, sizes: Iterable[Any], p: Any, dtype: DType, names: Names, read: Callable[[int], Any],
        elsewhere: bool,
    ) -> None:  # fmt: skip
        self.cuts: list[int] = list(accumulate(map(int, sizes), initial=0))
        self.shape: tuple[int, int] = self.cuts[-1], int(p)
        self.dtype, self.names, self.elsewhere = dtype, names, elsewhere
        self._read = read
        self._piece: tuple[int, Any] = (-1, None)
        self._next = 0  # the row after the last slice

    def __getitem__(self, rows: Any) -> Any:
        rows = rows[0] if isinstance(rows, tuple) else rows
        start, stop, _ = rows.indices(self.shape[0])
        if start < self._next and not self.elsewhere:
            self._piece = -1, None
        self._next, parts = stop, []
        for i, (first, last) in enumerate(pairwise(self.cuts)):
            if first < stop and start < last:
                if i != self._piece[0]:
                    self._piece = i, self._read(i)
                part = as_numbers(self._piece[1][max(start - first, 0) : min(stop, last) - first], "X")
                same = float_type(part.dtype) == float_type(self.dtype)
                parts.append(part if same else part.astype(self.dtype))
        if len(parts) == 1:
            return parts[0]
        return stacked(parts) if parts else np.empty((0, self.shape[1]), self.dtype)


def _dtype_of(kinds: Iterable[Any]) -> DType:
    """Return the type for columns of these types: float32 if all are in `_SINGLE`, else float64."""
    return np.dtype(np.float32 if all(str(kind).lower() in _SINGLE for kind in kinds) else np.float64)


def _table(X: Any) -> Pieces:
    """Return a dataframe of pandas or polars, or a table of pyarrow, as pieces whose slices become arrays."""
    kinds, rows = getattr(X, "dtypes", None), getattr(X, "iloc", X)
    dtype = _dtype_of(X.schema.types if kinds is None else kinds)
    table = Pieces(X.shape[:1], X.shape[1], dtype, columns_of(X), lambda _: rows, False)
    table[:1]  # raises an error that names the columns that hold no numbers
    return table


def _pieced_table(sizes: list[int], schema: Any, read: Callable[[int], Any]) -> Pieces:
    """Return a table that is read in pieces, such as the groups of rows of parquet files."""
    text = [str(kind) for kind in schema.types]
    numbers = ("int", "uint", "float", "double", "half", "bool", "decimal")
    wrong = [
        (name, kind) for name, kind in zip(schema.names, text, strict=True) if not kind.startswith(numbers)
    ]
    refuse_columns(wrong, "drop or encode")
    return Pieces(sizes, len(text), _dtype_of(text), tuple(schema.names), read, True)


def refuse_columns(wrong: list[tuple[str, Any]], advice: str) -> None:
    """Raise where these columns of a table, by names and types, hold no numbers."""
    if wrong:
        named = first_of(f"{name!r} ({kind})" for name, kind in wrong)
        raise TypeError(f"X has columns that hold no numbers: {advice} {named}")


class _Yielded(Pieces):
    """Blocks that a function yields one after the other, anew in each pass; a first one tells their sizes."""

    def __init__(self, blocks: Callable[[], Any]) -> None:
        self.blocks = blocks
        self.left: Any = None  # the blocks that this pass has not read,
        self.next = sys.maxsize  # and the number of the first of them
        parts = [(block.shape, block.dtype) for block in self._opened()]
        if not parts:
            raise ValueError("X is a function that returns no block of rows")
        wide = {shape[1] for shape, _ in parts}
        if len(wide) > 1:
            raise ValueError(f"X is a function that returns blocks with numbers of columns {sorted(wide)}")
        dtype = np.result_type(*(kind for _, kind in parts))
        super().__init__((shape[0] for shape, _ in parts), wide.pop(), dtype, None, self._block, False)

    def _opened(self) -> Iterator[Any]:
        """Call the function, and yield its blocks, checked."""
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

    def _block(self, i: int) -> Any:
        """Return block i; the function is called anew if that has been passed."""
        if i < self.next:
            self.left, self.next = self._opened(), 0
        skipped, self.next = i - self.next, i + 1
        block = next(islice(self.left, skipped, None), None)
        size, before = 0 if block is None else block.shape[0], self.cuts[i + 1] - self.cuts[i]
        if size != before:
            raise ValueError(f"X returned {counted(size, 'row')}, and {before} when first read")
        return block


def stacked(rows: list[Any]) -> Any:
    """Return a new matrix of others, one below the other."""
    if any(map(is_sparse, rows)):
        from scipy.sparse import vstack

        return vstack(rows, "csr")
    return np.concatenate(rows)


def _stacked(parts: list[Any]) -> Pieces:
    """Return matrices one below the other, each with slices of rows, as pieces."""
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
    parts = [part.tocsr() if is_sparse(part) else part for part in parts]
    dtype = np.result_type(*(np.dtype(part.dtype) for part in parts))
    sizes, names = [part.shape[0] for part in parts], next(iter(named), None)
    return Pieces(sizes, parts[0].shape[1], dtype, names, parts.__getitem__, any(map(reads, parts)))


# ---- whether a block is what it was ---------------------------------------------------------------------


class Expected(NamedTuple):
    """What a block must be: rows `start` to `stop` of p columns and this dtype.

    `known` is its fingerprint, or None before the first read. `reading` is the number of the pass, and
    `whole` the name of the data in messages.
    """

    number: int
    start: int
    stop: int
    p: int
    dtype: DType
    known: int | None
    reading: int
    whole: str

    @property
    def name(self) -> str:
        return f"block {self.number} of {self.whole} (rows {self.start} to {self.stop - 1})"

    def check(self, block: Any) -> Any:
        """Return the block if it is as expected; an error if it is not, since its source may have changed."""
        name, shape = self.name, getattr(block, "shape", None)
        if not isinstance(shape, tuple):
            raise TypeError(f"{name} is {type(block).__name__}, not an array")
        block = as_numbers(block, name)
        dtype = getattr(block, "dtype", None)
        if isinstance(dtype, np.dtype):
            require_real(dtype, f"{name} has")
        if shape != (self.stop - self.start, self.p):
            raise ValueError(
                f"{name} has shape {shape}, not {(self.stop - self.start, self.p)} as {self.whole} says"
            )
        if isinstance(dtype, np.dtype) and float_type(dtype) != float_type(self.dtype):
            raise ValueError(f"{name} has dtype {dtype}, not {self.dtype} as {self.whole} says")
        if self.known is not None and fingerprint(block) != self.known:
            raise ValueError(
                f"{name} holds other numbers in pass {self.reading} than when it was first read, so results "
                "would be of no one X. Is its file still written, or are random numbers drawn anew? Store X "
                "once, or keep it in memory (dask: persist=True); for data that were meant to change between "
                "two calls, call row_blocks again"
            )
        return block

    def note(self, error: BaseException) -> None:
        """Add a note to an error that says which block it came from."""
        if self.name not in f"{error}{getattr(error, '__notes__', '')}":
            error.add_note(f"{self.name} could not be read, in pass {self.reading}")


_LINE = 1 << 8  # entries of a line into which an array of one dimension is divided


def fingerprint(block: Any) -> int:
    """Return a number that two reads of a block share only if it holds the same numbers.

    The bits of each entry are taken as a whole number. The columns are summed modulo 2^64, each entry times a
    key of its row; keys are random and fixed. These sums, in lines of `_LINE`, are summed likewise with keys
    of their own, and the sums hashed in their order. Whole numbers add without rounding, so the same bits
    give the same number in any layout, by any order of additions and on any processor: there is no margin to
    choose, and no false alarm. At most one in 2^31 of all keys misses a change (fingerprint.c).
    """
    digest = blake2b(digest_size=8)
    parts: tuple[AnyArray, ...]
    if is_sparse(block):
        X = block if block.format in ("csr", "csc") else compressed(block)
        parts = X.data, X.indices, X.indptr
    else:
        parts = (_sums(_words(np.asarray(block))),)
    for part in parts:
        words = _words(part)
        whole = len(words) // _LINE * _LINE
        digest.update(_sums(words[:whole].reshape(-1, _LINE), 1).tobytes())
        digest.update(words[whole:].tobytes())
    return int.from_bytes(digest.digest(), "little")


def _words(a: AnyArray) -> AnyArray:
    """Return the bits of the entries as whole numbers."""
    if a.dtype.itemsize not in (1, 2, 4, 8):  # long doubles do not use all of their bytes
        with beyond_range():
            a = a.astype(np.float64)
    return a.view(np.dtype(f"u{a.dtype.itemsize}").newbyteorder(a.dtype.byteorder))


@lru_cache(maxsize=8)
def _keys(n: int, level: int = 0) -> NDArray[np.uint64]:
    """Return n random numbers of 64 bits, always the same at each level of sums."""
    return np.random.PCG64(level).random_raw(n)


def _sums(words: AnyArray, level: int = 0) -> NDArray[np.uint64]:
    """Return the sums of the columns modulo 2^64, each word times the key of its row."""
    (n, p), size = words.shape, words.itemsize
    keys, out = _keys(n, level), np.zeros(p, np.uint64)
    ordered = size in words.strides and all(stride % size == 0 for stride in words.strides)
    if ordered and words.flags.aligned and words.dtype.isnative:
        _core.fingerprint(words, keys, out)
        return out
    sums = np.empty(p, np.uint64)
    for part in slices(n, p, CACHED_ENTRIES):
        _core.fingerprint(np.ascontiguousarray(words[part], f"u{size}"), keys[part], sums)
        out += sums
    return out
