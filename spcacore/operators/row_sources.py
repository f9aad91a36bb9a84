"""What slices of rows can be read from: stores as they are, tables, and matrices one below the other."""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._labels import columns_of
from .._validation import float_type, is_row_blocks, is_sparse, real_array

__all__ = ["SlicedTable", "StackedRows", "as_numbers", "as_sliced", "own_names"]
__dir__ = __all__.copy

_SINGLE = ("float32", "float16", "float", "halffloat")  # dtypes that become float32; the last two of pyarrow


def as_sliced(X: Any) -> Any:
    """X as an object with a shape, a dtype and slices of rows, if it is one or holds some."""
    if isinstance(X, (list, tuple)) and is_row_blocks(X):
        return StackedRows([as_sliced(part) for part in X])
    if columns_of(X) is not None and not hasattr(X, "dtype"):
        return SlicedTable(X)
    return X


def own_names(X: Any) -> tuple[str, ...] | None:
    """The names of the columns of what `as_sliced` returns."""
    return X.names if isinstance(X, _Source) else columns_of(X)


def as_numbers(block: Any, name: str) -> Any:
    """A slice as an array or a sparse matrix; of a table, an array of its numbers."""
    if is_sparse(block) or (isinstance(block, np.ndarray) and block.dtype != object):
        return block
    return real_array(block, name, ndim=2, finite=False, empty=True)


class _Source:
    """What has shape, dtype and slices of rows; a slice of all columns may go with these."""

    ndim = 2
    shape: tuple[int, int]
    dtype: np.dtype[Any]
    names: tuple[str, ...] | None

    def __getitem__(self, rows: Any) -> Any:
        rows = rows[0] if isinstance(rows, tuple) else rows
        start, stop, _ = rows.indices(self.shape[0])
        return self._between(start, max(start, stop))

    def _between(self, start: int, stop: int) -> Any:
        raise NotImplementedError


class SlicedTable(_Source):
    """A dataframe of pandas or polars, or a table of pyarrow, some rows of which become an array."""

    def __init__(self, X: Any) -> None:
        self.table, self.shape, self.names = X, (int(X.shape[0]), int(X.shape[1])), columns_of(X)
        kinds = getattr(X, "dtypes", None)
        if kinds is None:
            kinds = X.schema.types
        single = all(str(kind).lower() in _SINGLE for kind in kinds)
        self.dtype = np.dtype(np.float32 if single else np.float64)
        self._between(0, 1)  # names the columns that are no numbers

    def _between(self, start: int, stop: int) -> NDArray[Any]:
        if hasattr(self.table, "iloc"):
            part = self.table.iloc[start:stop]
        else:
            part = self.table.slice(start, stop - start)
        return real_array(part, "X", ndim=2, finite=False, empty=True).astype(self.dtype, copy=False)


class StackedRows(_Source):
    """Matrices one below the other, each with slices of rows.

    Attributes
    ----------
    cuts : list of int
        Where each begins, and where the last one ends.
    """

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
        self.names = next(iter(named), None)
        self.parts = [part.tocsr() if is_sparse(part) else part for part in parts]
        self.cuts = list(accumulate((int(part.shape[0]) for part in parts), initial=0))
        self.shape = self.cuts[-1], int(parts[0].shape[1])
        self.dtype = np.result_type(*(np.dtype(part.dtype) for part in parts))

    def _between(self, start: int, stop: int) -> Any:
        rows = [
            self._as_others(part[max(start - first, 0) : min(stop, last) - first])
            for part, (first, last) in zip(self.parts, pairwise(self.cuts), strict=True)
            if first < stop and start < last
        ]
        if len(rows) == 1:
            return rows[0]
        if any(map(is_sparse, rows)):
            from scipy.sparse import vstack

            return vstack(rows, "csr")
        return np.concatenate(rows) if rows else np.empty((0, self.shape[1]), self.dtype)

    def _as_others(self, rows: Any) -> Any:
        rows = as_numbers(rows, "X")
        return rows if float_type(rows.dtype) == float_type(self.dtype) else rows.astype(self.dtype)
