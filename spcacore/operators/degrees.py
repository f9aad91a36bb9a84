"""Data scaled by the sums of their rows and columns."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._limits import CHUNK
from .._validation import column_names, is_row_blocks, is_sparse, raise_not_finite, real_array
from .dense import blas_layout
from .problem import Problem
from .sparse_format import canonical_arrays


def degree_problem(X: Any, *, center: bool) -> Problem:
    """The operator of `X_ij / sqrt((d_i + tau) (g_j + tau'))` for nonnegative X.

    d and g are the row and column sums, tau and tau' their means.
    """
    names = column_names(X)
    if is_row_blocks(X):
        raise ValueError("scale='degree' needs the data in memory, and X is in blocks of rows")
    make: Callable[..., _core.Operator]
    if is_sparse(X):
        X, arrays = canonical_arrays(X)
        row_major, data = X.format == "csr", arrays[0]
        n, p = X.shape
        make = lambda *s: _core.compressed(n, p, row_major, *arrays, False, *s)  # noqa: E731
        sums, name = partial(_compressed_sums, row_major, (n, p), *arrays), "X.data"
    else:
        data = blas_layout(real_array(X, "X", ndim=2, finite=False))
        n, p = data.shape
        make = lambda *s: _core.dense(data, False, *s)  # noqa: E731
        sums, name = partial(_dense_sums, data), "X"
    with np.errstate(over="ignore", invalid="ignore"):
        low, row, column, _ = sums(np.ones(n))
    if not (np.isfinite(row).all() and np.isfinite(column).all()):
        raise_not_finite(data, name)
        raise ValueError("the row and column sums of X exceed the number range")
    if low < 0:
        raise ValueError(f"scale='degree' needs nonnegative entries, and X has {low:.6g}")
    if not row.any():
        raise ValueError("X has no entry but zeros")
    row_weight = (1 / np.sqrt(row + row.mean())).astype(data.dtype)
    weight = (1 / np.sqrt(column + column.mean())).astype(data.dtype)
    _, _, mean, square = sums(row_weight.astype(np.float64))
    mean /= n
    spread = square - n * mean**2 if center else square
    zero = spread <= 1e-13 * square  # constant to rounding
    weight[zero] = 0
    moment = square * weight.astype(np.float64) ** 2 / max(n - 1, 1)
    means = mean.astype(data.dtype) if center else None
    return Problem(
        operator=make(means, weight, 1.0, 1.0 / max(n - 1, 1)).row_weighted(row_weight),
        n_samples=n,
        diagonal=np.where(zero, 0, spread) * weight.astype(np.float64) ** 2 / max(n - 1, 1),
        exponent=0,
        moment=moment,
        floor=0.0,
        mean=means,
        scale=np.sqrt(column + column.mean()).astype(data.dtype),
        names=names,
        cost=data.size,
        weight=weight,
        row_weight=row_weight,
    )


_Sums = tuple[float, NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]


def _dense_sums(a: NDArray[Any], weight: NDArray[np.float64]) -> _Sums:
    """The lowest entry, the sum of each row; of each column sum and squares, the rows weighted."""
    (n, p), low = a.shape, np.inf
    row, column, square = np.empty(n), np.zeros(p), np.zeros(p)
    step = max(1, CHUNK // 4 // p)
    for part in (slice(s, s + step) for s in range(0, n, step)):
        x = a[part].astype(np.float64)
        low = min(low, float(x.min()))
        row[part] = x.sum(axis=1)
        x *= weight[part, None]
        column += x.sum(axis=0)
        square += np.einsum("ij,ij->j", x, x)
    return low, row, column, square


def _compressed_sums(
    row_major: bool, shape: tuple[int, int], data: Any, indices: Any, indptr: Any, weight: NDArray[np.float64]
) -> _Sums:
    row, column, square = np.zeros(shape[0]), np.zeros(shape[1]), np.zeros(shape[1])
    low = float(data.min(initial=0))
    first, lines = 0, len(indptr) - 1
    while first < lines:
        last = max(first + 1, int(np.searchsorted(indptr, indptr[first] + CHUNK // 4, "right")) - 1)
        part = slice(indptr[first], indptr[last])
        x, other = data[part].astype(np.float64), indices[part]
        line = np.repeat(np.arange(last - first), np.diff(indptr[first : last + 1]))
        if row_major:
            row[first:last] = np.bincount(line, x, last - first)
            x *= weight[first + line]
            column += np.bincount(other, x, shape[1])
            square += np.bincount(other, x * x, shape[1])
        else:
            row += np.bincount(other, x, shape[0])
            x *= weight[other]
            column[first:last] = np.bincount(line, x, last - first)
            square[first:last] = np.bincount(line, x * x, last - first)
        first = last
    return low, row, column, square
