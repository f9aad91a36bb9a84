"""Sparse data and covariance matrices, in CSR and CSC."""

from __future__ import annotations

import math
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._limits import CHOLESKY_ORDER, CHUNK, SYMMETRY
from .._validation import raise_not_finite
from ..linalg.scaling import exponent_of, power_of_two_scale
from .base import Affine, CovarianceStorage, DataStorage
from .dense import columns_as_float64, refuse_indefinite
from .gram import pairs_of
from .problem import Problem
from .screening import available_memory
from .sparse_format import canonical_arrays, kernel_arrays
from .statistics import Index, Standardization, Statistics, compressed_statistics
from .working_set import ColumnBounds, CompressedWorkingSet

__all__ = ["CompressedCovariance", "CompressedData"]


class CompressedData(DataStorage):
    """A matrix in CSR or CSC, of which nothing is copied; others become CSR."""

    matrix: Any
    arrays: tuple[NDArray[Any], NDArray[Any], NDArray[Any]]
    row_major: Any
    shape: tuple[int, int]
    dtype: np.dtype[Any]
    cost: int

    has_gram = True
    working_set: Any = CompressedWorkingSet

    def __init__(self, X: Any) -> None:
        self.matrix, self.arrays = canonical_arrays(X, turn=True)
        self.row_major, self.shape = self.matrix.format == "csr", self.matrix.shape
        self.dtype, self.cost = self.arrays[0].dtype, max(self.arrays[0].size, self.shape[1])

    def statistics(self, weight: NDArray[np.float64] | None) -> Statistics:
        found = compressed_statistics(self.shape, self.row_major, *self.arrays, weight)
        assert found is not None
        return found

    def problem_with(self, statistics: Statistics, treatment: Standardization) -> Problem:
        return replace(super().problem_with(statistics, treatment), compressed=self.matrix)

    def pairs(self) -> tuple[int, float]:
        data, indices, indptr = self.arrays
        return data.size, pairs_of(indptr if self.row_major else indices, self.row_major, self.shape[0])

    def columns(self, index: Index) -> NDArray[np.float64]:
        return columns_as_float64(self.matrix[:, index].toarray())

    def raise_not_finite(self) -> None:
        raise_not_finite(self.arrays[0], "X.data")

    def resembles_covariance(self) -> bool:
        n, p = self.shape
        if n != p or n == 1 or not self.arrays[0].size:
            return False
        with np.errstate(over="ignore", invalid="ignore"):
            apart = float(abs(self.matrix - self.matrix.T).max())
            most = float(np.abs(self.arrays[0]).max()) * SYMMETRY.of(self.dtype)
            return apart <= most < math.inf and _excess(self.matrix.diagonal(), *self.arrays) <= most

    def by_columns(self) -> CompressedData:
        size = sum(part.nbytes for part in self.arrays)
        if not self.row_major or size > available_memory() / 2:
            return self
        turned = copy(self)
        turned.matrix, turned.row_major = self.matrix.tocsc(), False  # sound, as what SciPy made of sound X
        turned.arrays = kernel_arrays(turned.matrix)
        return turned

    def bounds(self, problem: Problem) -> ColumnBounds | None:
        return None if self.row_major else ColumnBounds(problem, np.diff(self.arrays[2]))

    def operator(self, affine: Affine) -> _core.Operator:
        n, p = self.shape
        operator = _core.compressed(n, p, self.row_major, *self.arrays, False, *affine[:4])  # type: ignore[arg-type]
        return affine.weighted(operator)


class CompressedCovariance(CovarianceStorage):
    """A symmetric matrix in CSR or CSC; `definite` refuses an indefinite one."""

    matrix: Any
    arrays: tuple[NDArray[Any], NDArray[Any], NDArray[Any]]
    shape: tuple[int, int]
    dtype: np.dtype[Any]
    cost: int
    definite: bool

    def __init__(self, X: Any, definite: bool = True) -> None:
        self.matrix, self.arrays = canonical_arrays(X)
        self.shape, self.dtype = self.matrix.shape, self.arrays[0].dtype
        self.cost, self.definite = max(self.arrays[0].size, self.shape[1]), definite
        if self.shape[0] != self.shape[1]:
            raise ValueError(f"a covariance must be square, not of shape {self.shape}")

    def largest(self) -> float:
        X, data, p = self.matrix, self.arrays[0], self.shape[1]
        if not all(np.isfinite(data[s : s + CHUNK]).all() for s in range(0, data.size, CHUNK)):
            raise_not_finite(data, "X.data")
        largest = max(float(data.max(initial=0)), -float(data.min(initial=0)))
        relative = SYMMETRY.of(data.dtype)
        range_ = power_of_two_scale(largest, data.dtype)  # A'v = Av for every v, without a transposed copy
        probe = np.random.default_rng(0).standard_normal(p) * range_
        asymmetry = float(np.abs(X @ probe - X.T @ probe).max()) * range_
        if asymmetry > largest * range_ * range_ * relative * math.sqrt(p):
            with np.errstate(over="ignore"):
                apart = np.ldexp(asymmetry, -2 * exponent_of(range_))
            raise ValueError(f"a covariance must be symmetric; X @ v and X.T @ v differ by up to {apart:.3g}")
        if self.definite:
            excess = _excess(self.diagonal(), *self.arrays)
            whole = X.toarray() if p <= CHOLESKY_ORDER else None
            refuse_indefinite(whole, largest, excess, largest * relative)
        return largest

    def diagonal(self) -> NDArray[Any]:
        return np.asarray(self.matrix.diagonal().astype(self.dtype))

    def operator(self, affine: Affine) -> _core.Operator:
        n, p = self.shape
        row_major = self.matrix.format == "csr"
        return _core.compressed(n, p, row_major, *self.arrays, True, *affine[:4])  # type: ignore[arg-type]


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
