"""Data scaled by the sums of their rows and columns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .._types import AnyArray, Array
from .._validation import column_names, is_sparse, require_memory
from ..linalg.scaling import beyond_range
from .dense import DenseData
from .problem import Problem
from .sparse import CompressedData
from .statistics import Standardization

_Data = DenseData | CompressedData


def degree_problem(X: Any, *, center: bool) -> Problem:
    """The operator of `X_ij / sqrt((d_i + tau) (g_j + tau'))` for nonnegative X.

    d and g are the row and column sums, tau and tau' their means.
    """
    data, rows, columns = _sums(X)
    if not rows.any():
        raise ValueError("X has only zeros")
    weight = _weight(data, rows, float(rows.mean()))
    root = np.sqrt(columns + columns.mean())
    problem = _scaled(data, weight).problem(Standardization(len(rows), center, True, deviation=root))
    return replace(problem, degree_weight=weight, compressed=None, names=column_names(X))


def row_shift(problem: Problem) -> float | None:
    """tau of a graph scaled by its degrees, the mean of d: its weights are `(d_i + tau)^(-1/2)`."""
    weight = problem.degree_weight
    return None if weight is None else float(np.mean(weight.astype(np.float64) ** -2)) / 2


def degree_weight(X: Any, tau: float) -> AnyArray:
    """`(d_i + tau)^(-1/2)` for the rows of nonnegative X."""
    data, rows, _ = _sums(X)
    return _weight(data, rows, tau)


def _weight(data: _Data, rows: Array, tau: float) -> AnyArray:
    return np.asarray(1 / np.sqrt(rows + tau), data.dtype)


def _sums(X: Any) -> tuple[_Data, Array, Array]:
    """The data, and the sums of their rows and columns."""
    require_memory(X, "scale='degree' needs")
    data = CompressedData(X) if is_sparse(X) else DenseData(X)
    matrix = data.matrix
    with beyond_range():
        rows, columns = (np.asarray(matrix.sum(axis=axis, dtype=np.float64)).ravel() for axis in (1, 0))
    if not (np.isfinite(rows).all() and np.isfinite(columns).all()):
        data.raise_not_finite()
        raise ValueError("the row and column sums of X exceed the number range")
    if (low := float(matrix.min())) < 0:
        raise ValueError(f"scale='degree' needs nonnegative entries, and X has {low:.6g}")
    return data, rows, columns


def _scaled(data: _Data, weight: AnyArray) -> _Data:
    """diag(weight) X, a copy."""
    if isinstance(data, DenseData):
        return DenseData(data.matrix * weight[:, None])
    X = data.matrix
    each = np.repeat(weight, np.diff(X.indptr)) if X.format == "csr" else weight[X.indices]
    return CompressedData(type(X)((X.data * each, X.indices, X.indptr), shape=X.shape))
