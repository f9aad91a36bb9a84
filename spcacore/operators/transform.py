"""Scores: data times loadings."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from .._limits import CACHED_ENTRIES, slices
from .._types import AnyArray, Array, DType, Index
from .._validation import (
    check_shape,
    float_type,
    is_operator,
    is_row_blocks,
    is_sparse,
    real_array,
    refuse_not_finite,
    require_real,
)
from ..linalg.scaling import beyond_range
from .blocks import naming_not_finite, sum_parts
from .dense import has_blas_layout, is_small
from .partition import matching_blocks
from .problem import Problem
from .sparse import compressed


def scores(
    X: Any,
    loadings: AnyArray,
    mean: AnyArray | None,
    scale: AnyArray | None,
    row_weight: AnyArray | None = None,
    sound: bool = False,
    missing: bool = False,
) -> AnyArray:
    """Return ((diag(row_weight) X - mean) / scale) @ loadings, from the columns that some loading uses.

    Sparse X that is known to be `sound` and finite is not checked again. With `missing`, NaN entries of dense
    X count as the mean.
    """
    # Blocks of rows, and rows with weights
    p = len(loadings)
    if is_row_blocks(X):
        blocks = matching_blocks(X, p)
        dtype = np.result_type(float_type(blocks.dtype), loadings, loadings if scale is None else scale)
        return blocks.mapped(scores, loadings.shape[1:], dtype, loadings, mean, scale)
    if row_weight is not None:
        result = row_weight[:, None] * scores(X, loadings, None, scale, sound=sound)
        if mean is not None:
            result -= mean @ (loadings if scale is None else loadings / scale[:, None])
        return result
    used = used_variables(loadings)
    V = loadings[used]
    if scale is not None:
        V = V / scale[used, None]
    # Sparse matrices and operators: X V - 1 mean'V, again with smaller V if X V overflows
    if is_sparse(X) or is_operator(X):
        if is_sparse(X):
            X = X if sound else compressed(X)
            X = X.astype(np.float64) if X.dtype.itemsize > 8 else X
        check_shape(X, "X", "m", p)
        full = np.zeros_like(loadings)
        full[used] = V
        if sound and X.format == "csc":
            X, full = X[:, used], V
        with beyond_range():
            result = np.asarray(X @ full)
        require_real(result.dtype, "X, an operator, returned", "fiu")
        unit = 1.0
        if not np.isfinite(result).all():
            if not is_sparse(X):
                raise ValueError("X, an operator, returned NaN or infinity")
            refuse_not_finite(X, "X")
            unit = _below_overflow(result.dtype)
            result = np.asarray(X @ (full * unit))
        with beyond_range():
            return (result if mean is None else result - mean[used] @ (V * unit)) / unit
    # Arrays: (X - 1 mean') V
    a = X if is_small(X) else real_array(X, "X", ndim=2, finite=False)
    check_shape(a, "X", "m", p)
    about = np.zeros(len(used), a.dtype) if mean is None else mean[used]
    if missing and np.isnan(a).any():
        a = a[:, used]
        a, used = np.where(np.isnan(a), about.astype(a.dtype), a), np.arange(len(used))
    return _dense_scores(a, used, about, V).astype(np.result_type(float_type(a.dtype), V), copy=False)


def used_variables(V: AnyArray) -> Index:
    """Return the variables for which some loading is not zero."""
    return np.unique(np.flatnonzero(V != 0) // V.shape[1]) if V.size else np.empty(0, np.intp)


def products_of_scores(
    X: Any, loadings: AnyArray, mean: AnyArray | None, scale: AnyArray | None,
    weight: Array | None,
) -> Array:  # fmt: skip
    """Return T' diag(weight) T for the scores T, in float64.

    For data in blocks of rows it is computed where the blocks are.
    """
    if not is_row_blocks(X):
        return squares_of_scores(X, weight, loadings, mean, scale)
    blocks = matching_blocks(X, len(loadings))
    with naming_not_finite(blocks):
        factors = loadings, mean, scale
        return np.asarray(blocks.reduced(sum_parts, squares_of_scores, *factors, each=blocks.split(weight)))


def squares_of_scores(X: Any, weight: Array | None, *factors: Any) -> Array:
    """Return T' diag(weight) T for the scores T of some rows."""
    T = scores(X, *factors).astype(np.float64, copy=False)
    return np.asarray(T.T @ (T if weight is None else T * weight[:, None]))


def _dense_scores(a: AnyArray, used: Index, about: AnyArray, V: AnyArray) -> AnyArray:
    """Return (a[:, used] - about) @ V, in one read or, where `a` must be copied, a few rows at a time."""
    dtype = np.result_type(float_type(a.dtype), about, V)
    out = np.empty((len(a), V.shape[1]), dtype)
    V, about = np.ascontiguousarray(V, dtype), about.astype(dtype)
    if a.dtype == dtype and has_blas_layout(a):
        index = None if len(used) == a.shape[1] else used
        _core.scores(a, index, about, V, out)
    else:
        for rows in slices(len(a), len(used), CACHED_ENTRIES):
            _core.scores(np.ascontiguousarray(a[rows, used], dtype), None, about, V, out[rows])
    with beyond_range():
        sound = np.isfinite(out.sum())
    left: Index = np.empty(0, np.intp) if sound else np.flatnonzero(~np.isfinite(out).all(axis=1))
    # Rows with an entry that is not finite, or whose sums overflowed on the way
    for some in slices(len(left), len(used), CACHED_ENTRIES):
        at = left[some]
        part = a[at[:, None], used]
        if not np.isfinite(part).all():
            refuse_not_finite(a, "X")
        unit = _below_overflow(dtype)
        with beyond_range():
            out[at] = (part * unit - about * unit) @ V / unit
    return out


def _below_overflow(dtype: DType) -> float:
    """Return a power of two by which the largest numbers can be multiplied to leave room for their sums."""
    return 2.0 ** -(np.finfo(dtype).maxexp // 8)


def fitted_scores(X: Any, problem: Problem, loadings: AnyArray) -> AnyArray | None:
    """Return the scores of the rows that the problem was made of; a missing entry counts as the mean.

    None for a covariance, and for blocks of rows, which would have to be read once more.
    """
    if problem.n_samples is None or is_row_blocks(X):
        return None
    if problem.filled is not None:  # centered and scaled, with zeros where entries are missing
        return scores(problem.filled.array, loadings, None, None)
    sound = problem.compressed is not None
    rows = problem.compressed if sound else X
    return scores(rows, loadings, problem.mean, problem.scale, problem.degree_weight, sound)
