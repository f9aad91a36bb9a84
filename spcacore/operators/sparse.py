"""Sparse data and covariance matrices, in CSR and CSC."""

from __future__ import annotations

import math
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from .. import _core
from .._limits import CHOLESKY_ORDER, CHUNK, SYMMETRY
from .._types import AnyArray, Array, Index
from .._validation import float_type, is_sparse, raise_not_finite, real_array, refuse_not_finite
from ..linalg.scaling import below_range, beyond_range, largest_magnitude, power_of_two_scale
from .base import Affine, CovarianceStorage, DataStorage, Storage, refuse_asymmetric, refuse_oblong
from .dense import columns_as_float64, refuse_indefinite
from .gram import pairs_of
from .problem import Problem
from .screening import available_memory
from .statistics import Standardization, Statistics, compressed_statistics, entries
from .working_set import CompressedWorkingSet

# ---- sparse matrices: checks before any kernel follows their indices, and columns in random order -------


def canonical_arrays(
    X: Any, turn: bool = False, called: str = "X"
) -> tuple[Any, tuple[AnyArray, AnyArray, AnyArray]]:
    """CSR or CSC with ascending indices, and (data, indices, indptr) as the kernels read them."""
    X = compressed(X, called, turn)
    return X, _kernel_arrays(X)


def _kernel_arrays(X: Any) -> tuple[AnyArray, AnyArray, AnyArray]:
    """(data, indices, indptr) of a sound matrix as the kernels read them."""
    with beyond_range():  # of long doubles
        data = np.require(X.data, float_type(X.dtype), ["C", "A"])
    wide = np.int64 if np.int64 in (X.indices.dtype, X.indptr.dtype) else np.int32
    indices, indptr = np.require(X.indices, wide, ["C", "A"]), np.require(X.indptr, wide, ["C", "A"])
    return data, indices, indptr


class _Corrupt(Exception):
    """Indices or indptr point outside of the matrix."""


def compressed(X: Any, name: str = "X", turn: bool = False) -> Any:
    """A sparse matrix as CSR or CSC with sound indices, each line ascending, and nothing after the last.

    CSR that is not so may `turn` into CSC, which sorts it in less time than it takes to sort each row.
    scipy follows unsound indices out of bounds; its own answer to whether they ascend may be out of date.
    """
    if X.ndim != 2 or 0 in X.shape:
        raise ValueError(f"{name} must have 2 dimensions and not be empty: shape {X.shape}")
    if X.dtype.kind not in "fiub":
        raise TypeError(f"{name} has dtype {X.dtype}; real numbers are needed")
    try:
        if X.format not in ("csr", "csc"):
            _check_before_conversion(X)
            X = X.tocsr()
        n, p = X.shape
        _check_indices(X.indptr, X.indices, X.data, *((n, p) if X.format == "csr" else (p, n)))
    except _Corrupt:
        raise ValueError(
            f"{name} is a corrupt sparse matrix: its indices or indptr point outside of it"
        ) from None
    stored = int(X.indptr[-1])
    if stored < max(len(X.data), len(X.indices)) or not X.dtype.isnative:
        data = X.data[:stored].astype(X.dtype.newbyteorder("="), copy=False)
        X = type(X)((data, X.indices[:stored], X.indptr), shape=X.shape)
    if not _canonical(X):
        X = X.tocsc() if turn and X.format == "csr" else X.copy()
        X.sum_duplicates()
    return X


def as_finite(X: Any, name: str = "X", form: str = "csr") -> Any:
    """A finite float array, or sparse matrix of this format, by reference where possible."""
    if not is_sparse(X):
        return real_array(X, name, ndim=2)
    a = compressed(X, name).asformat(form)
    refuse_not_finite(a.data, f"{name}.data")
    return a.astype(float_type(a.dtype), copy=False)


def squared_norms(M: Any, axis: int = 0) -> Array:
    """Of the columns of a dense or sparse matrix, or of its rows, in double precision."""
    if is_sparse(M):
        square = M.power(2)
        return np.asarray((square if axis else square.T) @ np.ones(M.shape[axis]))
    return np.einsum("ij,ij->i" if axis else "ij,ij->j", M, M, dtype=np.float64)


def _require(condition: Any) -> None:
    if not condition:
        raise _Corrupt


def _check_indices(ptr: Any, idx: Any, data: Any, lines: int, length: int, data_ndim: int = 1) -> None:
    _require(ptr.dtype.kind in "iu" and idx.dtype.kind in "iu" and idx.ndim == 1 and data.ndim == data_ndim)
    _require(ptr.shape == (lines + 1,) and ptr[0] == 0 and (ptr[1:] >= ptr[:-1]).all())
    _require(ptr[-1] <= min(len(idx), len(data)))
    idx = idx[: ptr[-1]]
    _require(len(idx) == 0 or (idx.min() >= 0 and idx.max() < length))


def _check_before_conversion(X: Any) -> None:
    """What `tocsr` itself would follow out of bounds."""
    n, p = X.shape
    if X.format == "coo":
        for c, size in zip(X.coords, X.shape, strict=True):
            _require(c.shape == X.data.shape and c.ndim == 1 and c.dtype.kind in "iu")
            _require(len(c) == 0 or (c.min() >= 0 and c.max() < size))
    elif X.format == "bsr":
        r, c = X.blocksize
        _require(r > 0 and c > 0 and n % r == 0 and p % c == 0)
        _check_indices(X.indptr, X.indices, X.data, n // r, p // c, 3)
    elif X.format == "lil":
        _require(len(X.rows) == len(X.data) == n)
        _require(all(len(row) == len(values) for row, values in zip(X.rows, X.data, strict=True)))
    elif X.format == "dia":
        _require(X.data.ndim == 2 and X.offsets.shape == X.data.shape[:1])


def _canonical(X: Any) -> bool:
    """Whether the indices of each line ascend strictly."""
    ptr, idx = X.indptr, X.indices
    for s in range(0, len(idx) - 1, CHUNK):
        part = idx[s : s + CHUNK + 1]
        falls = np.flatnonzero(part[1:] <= part[:-1]) + (s + 1)
        if len(falls) > len(ptr) or (ptr[np.searchsorted(ptr, falls)] != falls).any():
            return False
    return True


def permuted_columns(X: Any, generator: np.random.Generator) -> Any:
    """The entries of each column in a random order, the same for each format of a sparse matrix."""
    if not is_sparse(X):
        return generator.permuted(X, axis=0)
    from scipy.sparse import csc_array

    X = X.tocsc()
    if not X.data.all():  # which zeros are stored must not decide
        X = X.copy()
        X.eliminate_zeros()
    indices, n = np.empty_like(X.indices), X.shape[0]
    for start, end in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        indices[start:end] = generator.choice(n, end - start, replace=False)
    return csc_array((X.data, indices, X.indptr), shape=X.shape)


class _Compressed(Storage):
    """CSR or CSC, of which nothing is copied; others become CSR."""

    def __init__(self, X: Any, turn: bool = False, called: str = "X") -> None:
        self.matrix, self.arrays = canonical_arrays(X, turn, called)
        self.row_major, self.shape = self.matrix.format == "csr", self.matrix.shape
        self.dtype, self.cost = self.arrays[0].dtype, max(self.arrays[0].size, self.shape[1])

    def operator(self, affine: Affine) -> _core.Operator:
        stored: Any = self.row_major, *self.arrays, self.covariance, *affine[:4]
        return affine.weighted(_core.compressed(*self.shape, *stored))


class CompressedData(_Compressed, DataStorage):
    """Sparse data."""

    has_gram = True
    working_set: Any = CompressedWorkingSet

    def __init__(self, X: Any) -> None:
        super().__init__(X, turn=True)

    def statistics(self, weight: Array | None) -> Statistics:
        found = compressed_statistics(self.shape, self.row_major, *self.arrays, weight)
        assert found is not None
        return found

    def problem_with(self, statistics: Statistics, treatment: Standardization) -> Problem:
        return replace(super().problem_with(statistics, treatment), compressed=self.matrix)

    def pairs(self) -> tuple[int, float]:
        data, indices, indptr = self.arrays
        return data.size, pairs_of(indptr if self.row_major else indices, self.row_major, self.shape[0])

    def columns(self, index: Index) -> Array:
        return columns_as_float64(self.matrix[:, index].toarray())

    def raise_not_finite(self) -> None:
        raise_not_finite(self.arrays[0], "X.data")

    def resembles_covariance(self) -> bool:
        n, p = self.shape
        if n != p or n == 1 or not self.arrays[0].size:
            return False
        with beyond_range():
            apart = float(abs(self.matrix - self.matrix.T).max())
            most = float(np.abs(self.arrays[0]).max()) * SYMMETRY.of(self.dtype)
            excess = _excess(self.matrix.diagonal(), self.row_major, self.arrays)
        return apart <= most < math.inf and excess <= most

    def by_columns(self) -> CompressedData:
        size = sum(part.nbytes for part in self.arrays)
        if not self.row_major or size > available_memory() / 2:
            return self
        turned = copy(self)
        turned.matrix, turned.row_major = self.matrix.tocsc(), False  # sound, as what SciPy made of sound X
        turned.arrays = _kernel_arrays(turned.matrix)
        return turned


class CompressedCovariance(_Compressed, CovarianceStorage):
    """A symmetric matrix in CSR or CSC; `definite` refuses an indefinite one."""

    def __init__(self, X: Any, definite: bool = True, called: str = "X") -> None:
        super().__init__(X, called=called)
        self.definite: bool = definite
        self.called: str = called
        refuse_oblong(self.shape, called)

    def largest(self) -> float:
        X, data, p = self.matrix, self.arrays[0], self.shape[1]
        refuse_not_finite(data, f"{self.called}.data")
        largest = largest_magnitude(data)
        relative = SYMMETRY.of(data.dtype)
        range_ = power_of_two_scale(largest, data.dtype)  # A'v = Av for every v, without a transposed copy
        probe = np.random.default_rng(0).standard_normal(p) * range_
        asymmetry = float(np.abs(X @ probe - X.T @ probe).max()) * range_
        if asymmetry > largest * range_ * range_ * relative * math.sqrt(p):
            with beyond_range():
                refuse_asymmetric(float(abs(X - X.T).max()), 0.0, self.called)
        if self.definite:
            excess = _excess(self.diagonal(), self.row_major, self.arrays)
            whole = X.toarray() if p <= CHOLESKY_ORDER else None
            refuse_indefinite(whole, largest, excess, largest * relative)
        return largest

    def diagonal(self) -> AnyArray:
        return np.asarray(self.matrix.diagonal().astype(self.dtype))


def _excess(diagonal: Any, row_major: bool, arrays: tuple[AnyArray, AnyArray, AnyArray]) -> float:
    """The largest excess |a_ij| - sqrt(a_ii a_jj) of a 2 x 2 minor that is not semidefinite."""
    root = np.sqrt(np.maximum(diagonal, 0).astype(np.float64))
    most = 0.0
    with below_range():
        for x, i, j in entries(row_major, *arrays):
            most = max(most, float((np.abs(x) - root[i] * root[j]).max(initial=0)))
    return most
