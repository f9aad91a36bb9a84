"""Data whose rows can be weighed or taken, with the names of their columns."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from .._validation import column_names, has_only_products, is_row_blocks, is_sparse, real_array
from ..operators.partition import row_blocks
from ..operators.sparse_format import canonical_arrays

__all__ = ["NamedArray", "as_rows", "plain_rows"]


class NamedArray:
    """An array with the names of its columns."""

    array: NDArray[Any]
    columns: tuple[str, ...] | None

    def __init__(self, array: NDArray[Any], columns: tuple[str, ...] | None):
        self.array, self.columns = array, columns

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    def __array__(self, dtype: Any = None, copy: Any = None) -> NDArray[Any]:
        return self.array


def as_rows(X: Any, name: str, needed: str, finite: bool = True) -> Any:
    """X as an array with names, CSR matrix or row blocks."""
    if has_only_products(X):
        raise TypeError(f"{name} must have {needed}; an operator offers only products")
    if is_row_blocks(X):
        return row_blocks(X)
    if is_sparse(X):
        return canonical_arrays(X)[0].tocsr()
    return NamedArray(real_array(X, name, ndim=2, finite=finite), column_names(X))


def plain_rows(X: Any) -> Any:
    """The same, of which rows can be taken by their index."""
    return X.array if isinstance(X, NamedArray) else X
