"""Data scaled by the sums of their rows and columns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .. import _core
from .._limits import CHUNK
from .._types import AnyArray, Array, Index
from .._validation import column_names, is_sparse, require_memory
from ..linalg.scaling import beyond_range
from .base import Affine, DataStorage
from .dense import DenseData
from .problem import Problem
from .sparse import CompressedData
from .statistics import Standardization, Statistics, entries

__all__ = ["DegreeScaled", "degree_problem", "degree_weight", "row_shift"]


class DegreeScaled(DataStorage):
    """diag(u) X of another storage, u_i = (d_i + tau)^(-1/2), d the row sums of X >= 0.

    tau is their mean unless it is given, for new rows.
    """

    dtype: np.dtype[Any]
    shape: tuple[int, int]
    names: tuple[str, ...] | None

    inner: CompressedData | DenseData

    def __init__(self, X: Any, tau: float | None = None) -> None:
        require_memory(X, "scale='degree' needs")
        inner = self.inner = CompressedData(X) if is_sparse(X) else DenseData(X)
        self.names, self.shape, self.dtype = column_names(X), inner.shape, inner.dtype
        self.cost: int = inner.arrays[0].size if isinstance(inner, CompressedData) else inner.cost
        with beyond_range():
            low, row, column, _ = self.sums(np.ones(self.shape[0]))
        if not (np.isfinite(row).all() and np.isfinite(column).all()):
            inner.raise_not_finite()
            raise ValueError("the row and column sums of X exceed the number range")
        if low < 0:
            raise ValueError(f"scale='degree' needs nonnegative entries, and X has {low:.6g}")
        if tau is None and not row.any():
            raise ValueError("X has only zeros")
        shift = row.mean() if tau is None else tau
        self.degree_weight: AnyArray = (1 / np.sqrt(row + shift)).astype(self.dtype)
        self.column_scale: Array = np.sqrt(column + column.mean())

    def sums(self, weight: Array) -> _Sums:
        """The lowest entry, the sum of each row; of each column sum and squares, the rows weighted."""
        if isinstance(self.inner, DenseData):
            return _dense_sums(self.inner.array, weight)
        return _compressed_sums((self.inner.row_major, *self.inner.arrays), self.shape, weight)

    def statistics(self, weight: Array | None) -> Statistics:
        n, _ = self.shape
        _, _, mean, square = self.sums(self.degree_weight.astype(np.float64))
        mean /= n
        deviation = square - n * mean**2
        constant = deviation <= 1e-13 * square  # to rounding
        deviation[constant] = 0
        low, high = np.where(constant, mean, -np.inf), np.where(constant, mean, np.inf)
        return Statistics(n, self.cost, mean, deviation, low, high)

    def raise_not_finite(self) -> None:
        self.inner.raise_not_finite()

    def columns(self, index: Index) -> Array:
        return self.inner.columns(index) * self.degree_weight[:, None]

    def operator(self, affine: Affine) -> _core.Operator:
        return self.inner.operator(affine).row_weighted(self.degree_weight, False)


def degree_problem(X: Any, *, center: bool) -> Problem:
    """The operator of `X_ij / sqrt((d_i + tau) (g_j + tau'))` for nonnegative X.

    d and g are the row and column sums, tau and tau' their means.
    """
    storage = DegreeScaled(X)
    n = storage.shape[0]
    problem = storage.problem(Standardization(n, center, True, deviation=storage.column_scale))
    return replace(problem, degree_weight=storage.degree_weight)


def row_shift(problem: Problem) -> float | None:
    """tau of a graph scaled by its degrees, the mean of d: its weights are `(d_i + tau)^(-1/2)`."""
    weight = problem.degree_weight
    return None if weight is None else float(np.mean(weight.astype(np.float64) ** -2)) / 2


def degree_weight(X: Any, tau: float) -> AnyArray:
    """`(d_i + tau)^(-1/2)` for the rows of nonnegative X."""
    return DegreeScaled(X, tau).degree_weight


_Sums = tuple[float, Array, Array, Array]


def _dense_sums(a: AnyArray, weight: Array) -> _Sums:
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


def _compressed_sums(arrays: tuple[Any, ...], shape: tuple[int, int], weight: Array) -> _Sums:
    row, column, square = np.zeros(shape[0]), np.zeros(shape[1]), np.zeros(shape[1])
    for x, i, j in entries(*arrays):
        row += np.bincount(i, x, shape[0])
        x *= weight[i]
        column += np.bincount(j, x, shape[1])
        square += np.bincount(j, x * x, shape[1])
    return float(arrays[1].min(initial=0)), row, column, square
