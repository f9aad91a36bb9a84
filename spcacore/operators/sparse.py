"""Sparse data and covariance matrices, in CSR and CSC."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from .. import _core
from .._limits import CHOLESKY_ORDER, CHUNK
from .._validation import raise_not_finite
from ..linalg.scaling import exponent_of, power_of_two_scale
from .dense import columns_as_float64, refuse_indefinite
from .problem import Problem, covariance_problem, data_problem
from .sparse_format import canonical_arrays
from .statistics import column_statistics, recomputed_statistics


def from_sparse(X: Any, covariance: bool, center: bool, scale: bool, definite: bool) -> Problem:
    X, arrays = canonical_arrays(X)
    data = arrays[0]
    row_major = X.format == "csr"
    n, p = X.shape

    def locate() -> None:
        raise_not_finite(data, "X.data")

    if not covariance:
        columns = column_statistics(
            n,
            center,
            tuple(_core.compressed_statistics(n, p, row_major, *arrays)),
            partial(
                recomputed_statistics, lambda block: columns_as_float64(X[:, block].toarray()), n, center
            ),
            locate,
        )
        return data_problem(
            columns, n, data.dtype, center, scale, None, max(data.size, p),
            lambda *s: _core.compressed(n, p, row_major, *arrays, False, *s),
        )  # fmt: skip
    if n != p:
        raise ValueError(f"a covariance must be square, not of shape {X.shape}")
    if not all(np.isfinite(data[s : s + CHUNK]).all() for s in range(0, data.size, CHUNK)):
        locate()
    largest = max(float(data.max(initial=0)), -float(data.min(initial=0)))
    relative = 1e-8 if data.dtype == np.float64 else 1e-5
    range_ = power_of_two_scale(largest, data.dtype)  # A'v = Av for every v, without a transposed copy
    probe = np.random.default_rng(0).standard_normal(p) * range_
    asymmetry = float(np.abs(X @ probe - X.T @ probe).max()) * range_
    if asymmetry > largest * range_ * range_ * relative * math.sqrt(p):
        with np.errstate(over="ignore"):
            apart = np.ldexp(asymmetry, -2 * exponent_of(range_))
        raise ValueError(f"a covariance must be symmetric; X @ v and X.T @ v differ by up to {apart:.3g}")
    diagonal = X.diagonal().astype(data.dtype)
    if definite:
        tolerance = largest * relative
        excess = _excess(diagonal, *arrays)
        refuse_indefinite(X.toarray() if p <= CHOLESKY_ORDER else None, largest, excess, tolerance)
    return covariance_problem(
        diagonal, largest, data.dtype, scale, None, max(data.size, p),
        lambda *s: _core.compressed(n, p, row_major, *arrays, True, *s),
    )  # fmt: skip


def _excess(diagonal: Any, data: Any, indices: Any, indptr: Any) -> float:
    """The largest excess |a_ij| - sqrt(a_ii a_jj) of a 2 x 2 minor that is not semidefinite."""
    root = np.sqrt(np.maximum(diagonal, 0).astype(np.float64))
    most, first, lines = 0.0, 0, len(diagonal)
    while first < lines:
        last = max(first + 1, int(np.searchsorted(indptr, indptr[first] + CHUNK, "right")) - 1)
        part = slice(indptr[first], indptr[last])
        with np.errstate(under="ignore"):
            bound = np.repeat(root[first:last], np.diff(indptr[first : last + 1])) * root[indices[part]]
        most = max(most, float((np.abs(data[part]) - bound).max(initial=0)))
        first = last
    return most
