"""Rows as kernels read them: arrays, CSR matrices, blocks, or anything that is sliced."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._limits import BANDWIDTH_ROWS
from .._validation import (
    float_type,
    is_operator,
    is_row_blocks,
    is_sparse,
    number,
    raise_not_finite,
    real_array,
    refuse_not_finite,
)
from ..linalg.scaling import exponent_above
from ..operators.block_tasks import finite
from ..operators.blocks import naming_not_finite
from ..operators.partition import row_blocks
from ..operators.sparse_format import compressed
from .gram import largest_magnitude

__all__ = [
    "SlicedRows", "as_kernel_input", "as_rows", "column_means", "median_distance", "of_block", "positive",
    "sample_rows",
]  # fmt: skip


def as_kernel_input(X: Any, square: bool = False, name: str = "X") -> Any:
    """A finite float array or CSR matrix, by reference where possible."""
    if is_operator(X):
        raise TypeError(f"{name} is a LinearOperator, and a kernel needs its rows")
    if not is_sparse(X) or square:
        a = real_array(X, name, ndim=2)
        if square and a.shape[0] != a.shape[1]:
            raise ValueError(f"a precomputed kernel matrix must be square, not of shape {a.shape}")
        return a
    S = compressed(X, name).tocsr()
    S = S.astype(float_type(S.dtype), copy=False)
    refuse_not_finite(S.data, f"{name}.data")
    return S


def column_means(a: Any, weight: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
    """The means of the columns, dense or sparse."""
    with np.errstate(under="ignore"):
        if weight is not None:
            return np.asarray(a.T @ (weight / weight.sum()), np.float64)
        return np.asarray(a.mean(axis=0, dtype=np.float64)).ravel()


def median_distance(data: Any, seed: int, weight: NDArray[np.float64] | None = None) -> float:
    """The median distance between rows that differ, in a sample where there are many rows."""
    a, weight = sample_rows(data, np.random.default_rng(seed), weight)
    a = a.toarray().astype(np.float64) if is_sparse(a) else a.astype(np.float64)
    exponent = exponent_above(largest_magnitude(a))
    a = np.ldexp(a, -exponent)
    a -= a.mean(axis=0)
    square = np.einsum("ij,ij->i", a, a)
    sums = square[:, None] + square
    distance = sums - 2 * (a @ a.T)
    distance[distance <= (16 + a.shape[1]) * np.finfo(float).eps * sums] = 0
    pairs = np.tri(len(a), k=-1, dtype=bool) & (distance > 0)
    times = None if weight is None else np.outer(weight, weight)[pairs]
    distance = distance[pairs]
    if not len(distance) or (times is not None and not times.any()):
        raise ValueError("X has no variance: all rows are equal, and bandwidth has no default")
    middle = np.median(np.sqrt(distance)) if times is None else _weighted_median(np.sqrt(distance), times)
    return math.ldexp(float(middle), exponent)


def _weighted_median(values: NDArray[np.float64], weight: NDArray[np.float64]) -> float:
    """The median of values that stand so many times each."""
    order = np.argsort(values, kind="stable")
    total = np.cumsum(weight[order])
    low, high = (np.searchsorted(total, total[-1] / 2, side) for side in ("left", "right"))
    return float(values[order[low]] + values[order[min(high, len(order) - 1)]]) / 2


class SlicedRows:
    """Anything that gives rows by slices; entries are checked when they are read."""

    source: Any
    name: str

    def __init__(self, X: Any, name: str = "X") -> None:
        self.source, self.name = X, name
        self.shape: tuple[int, ...] = tuple(map(int, X.shape))
        if len(self.shape) != 2 or 0 in self.shape:
            raise ValueError(f"{name} must have 2 dimensions and not be empty: shape {self.shape}")
        self.dtype: np.dtype[Any] = float_type(X.dtype)

    def __getitem__(self, part: Any) -> NDArray[Any]:
        block = real_array(self.source[part], self.name, ndim=2, finite=False)
        if not np.isfinite(block).all():
            if isinstance(self.source, np.ndarray):
                raise_not_finite(real_array(self.source, self.name, ndim=2, finite=False), self.name)
            raise ValueError(f"{self.name} has NaN or infinite entries among the rows {part}")
        return block


def as_rows(X: Any, p: int | None = None, name: str = "X") -> Any:
    """X as a CSR matrix, row blocks, or rows to be sliced; what cannot be sliced is converted at once."""
    by_slices = isinstance(getattr(X, "dtype", None), np.dtype) and X.dtype.kind in "fiub"
    rows: Any
    if isinstance(X, SlicedRows):
        rows = X
    elif is_row_blocks(X):
        rows = row_blocks(X)
    elif is_sparse(X) or is_operator(X):
        rows = as_kernel_input(X, name=name)
    elif by_slices and hasattr(X, "__getitem__") and not isinstance(X, np.ma.MaskedArray):
        rows = SlicedRows(X, name)
    else:
        rows = SlicedRows(real_array(X, name, ndim=2, finite=False), name)
    if p is not None and rows.shape[1] != p:
        raise ValueError(f"{name} has shape {rows.shape} where (n, {p}) is needed")
    return rows


def sample_rows(
    data: Any, rng: np.random.Generator, weight: NDArray[np.float64] | None = None
) -> tuple[Any, NDArray[np.float64] | None]:
    """At most `BANDWIDTH_ROWS` rows, drawn at random, in their order, and their weights."""
    n = data.shape[0]
    if n > BANDWIDTH_ROWS:
        chosen = np.sort(rng.choice(n, BANDWIDTH_ROWS, replace=False))
        weight = None if weight is None else weight[chosen]
    if is_row_blocks(data):
        with naming_not_finite(data):
            return as_kernel_input((data if n <= BANDWIDTH_ROWS else data.taken(chosen)).whole()), weight
    if n <= BANDWIDTH_ROWS:
        return data[0:n], weight
    if isinstance(data, SlicedRows) and not isinstance(data.source, np.ndarray):
        return np.concatenate([data[i : i + 1] for i in chosen.tolist()]), weight
    return data[chosen], weight


def of_block(block: Any, task: Callable[..., Any], *arguments: Any) -> Any:
    """`task` of a block of rows, which must be finite."""
    rows = finite(block)
    return task(rows.tocsr() if is_sparse(rows) else rows, *arguments)


def positive(value: Any, name: str) -> float:
    """A finite number above zero."""
    result = number(value, name, -math.inf) if value == value else math.nan
    if not 0 < result < math.inf:
        raise ValueError(f"{name} must be positive and finite, not {value!r}")
    return result
