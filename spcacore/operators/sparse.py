"""Sparse data in CSR and CSC, and covariances; what all matrices in memory must be for the kernels."""

from __future__ import annotations

import math
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from .. import _core
from .._labels import symmetric
from .._limits import (
    CACHED_ENTRIES,
    CHOLESKY_ORDER,
    CHUNK,
    FEW_ENTRIES,
    FEW_SAMPLED,
    SCREENED_ENTRIES,
    SYMMETRY,
    slices,
)
from .._types import AnyArray, Array, DType, Names
from .._validation import (
    as_dense,
    as_floats,
    column_names,
    is_sparse,
    real_array,
    refuse_not_finite,
    require_real,
)
from ..linalg.scaling import below_range, beyond_range, largest_magnitude, power_of_two_scale, roots
from .base import DataInMemory, InMemory, divisors, refuse_oblong
from .dense import DenseData, blas_layout
from .problem import Affine, Problem
from .screening import available_memory
from .statistics import Standardization, Statistics
from .working_set import CompressedWorkingSet

# ---- sparse matrices: checks before a kernel follows their indices, and columns in random order ---------


def in_memory(X: Any, called: str = "X", turn: bool = False) -> Any:
    """Return X as the kernels read it in place.

    It has a float type and is aligned. Rows or columns of an array are contiguous; a sparse matrix is sound
    CSR or CSC with ascending indices. `turn` is for `compressed`.
    """
    if not is_sparse(X):
        return blas_layout(real_array(X, called, ndim=2, finite=False))
    X = compressed(X, called, turn)
    data = np.ascontiguousarray(as_floats(X.data, f"{called}.data"))
    arrays = data, *_indices_of(X)
    same = all(a is b for a, b in zip(arrays, (X.data, X.indices, X.indptr), strict=True))
    return X if same else type(X)(arrays, shape=X.shape)


def _indices_of(X: Any) -> tuple[AnyArray, AnyArray]:
    """Return the indices and indptr of CSR, CSC or BSR in one integer type that the kernels read."""
    wide = np.int32 if X.indices.dtype == X.indptr.dtype == np.int32 else np.int64
    return np.require(X.indices, wide, ["C", "A"]), np.require(X.indptr, wide, ["C", "A"])


def compressed(X: Any, name: str = "X", turn: bool = False) -> Any:
    """Return a sparse matrix as CSR or CSC with sound, ascending indices in each line.

    With `turn`, CSR whose indices do not ascend becomes CSC, because that takes less time than sorting each
    row. Entries after the last line are dropped. scipy follows unsound indices out of bounds, so they are
    checked first. Its own answer to whether they ascend may be out of date.
    """
    if X.ndim != 2 or 0 in X.shape:
        raise ValueError(f"{name} must have 2 dimensions and not be empty: shape {X.shape}")
    require_real(X.dtype, f"{name} has")
    sound = X.format in ("csr", "csc") or _can_be_converted(X)
    if sound:
        X = X if X.format in ("csr", "csc") else X.tocsr()
        order = _line_order(X, *(X.shape if X.format == "csr" else X.shape[::-1]))
    if not sound or order == 0:
        raise ValueError(f"{name} is a corrupt sparse matrix: its indices or indptr point outside of it")
    stored = int(X.indptr[-1])
    if stored < max(len(X.data), len(X.indices)) or not X.dtype.isnative:
        data = X.data[:stored].astype(X.dtype.newbyteorder("="), copy=False)
        X = type(X)((data, X.indices[:stored], X.indptr), shape=X.shape)
    if order == 1:
        X = X.tocsc() if turn and X.format == "csr" else X.copy()
        X.sum_duplicates()
    return X


def as_finite(X: Any, name: str = "X", form: str = "csr") -> Any:
    """Return a finite float array, or a sparse matrix of this format, by reference where possible."""
    a = in_memory(X, name)
    a = a.asformat(form) if is_sparse(a) else a
    refuse_not_finite(a, name)
    return a


def squared_norms(M: Any, axis: int = 0) -> Array:
    """Return the squared norms of columns, or of rows with axis=1, in double precision."""
    if is_sparse(M):
        square = M.power(2)
        return np.asarray((square if axis else square.T) @ np.ones(M.shape[axis]))
    return np.einsum("ij,ij->i" if axis else "ij,ij->j", M, M, dtype=np.float64)


def _line_order(X: Any, lines: int, length: int, data_ndim: int = 1) -> int:
    """Return 2 if the indices of each line ascend, 1 if they are at least in range, 0 if X is corrupt."""
    integers = X.indptr.dtype.kind in "iu" and X.indices.dtype.kind in "iu"
    if not integers or X.indptr.shape != (lines + 1,) or X.indices.ndim != 1 or X.data.ndim != data_ndim:
        return 0
    indices, indptr = _indices_of(X)
    return _core.line_order(length, min(len(indices), len(X.data)), indptr, indices)


def _can_be_converted(X: Any) -> bool:
    """Whether `tocsr` would follow no index out of bounds."""
    n, p = X.shape
    if X.format == "coo":
        return all(
            c.shape == X.data.shape and c.ndim == 1 and c.dtype.kind in "iu"
            and (len(c) == 0 or (c.min() >= 0 and c.max() < size))
            for c, size in zip(X.coords, X.shape, strict=True)
        )  # fmt: skip
    if X.format == "bsr":
        r, c = X.blocksize
        whole = r > 0 and c > 0 and n % r == 0 and p % c == 0
        return whole and _line_order(X, n // r, p // c, 3) > 0
    if X.format == "lil":
        even = all(len(row) == len(values) for row, values in zip(X.rows, X.data, strict=False))
        return len(X.rows) == len(X.data) == n and even
    return X.format != "dia" or (X.data.ndim == 2 and X.offsets.shape == X.data.shape[:1])


def permuted_columns(X: Any, generator: np.random.Generator) -> Any:
    """Return X with the entries of each column in a random order, the same for each sparse format."""
    if not is_sparse(X):
        return generator.permuted(X, axis=0)
    from scipy.sparse import csc_array

    X = X.tocsc()
    if not X.data.all():  # the order must not depend on which zeros are stored
        X = X.copy()
        X.eliminate_zeros()
    indices, n = np.empty_like(X.indices), X.shape[0]
    for start, end in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        indices[start:end] = generator.choice(n, end - start, replace=False)
    return csc_array((X.data, indices, X.indptr), shape=X.shape)


class CompressedData(DataInMemory):
    """Sparse data in CSR or CSC; other formats become CSR."""

    working_set: Any = CompressedWorkingSet

    def __init__(self, X: Any) -> None:
        self.matrix: Any = in_memory(X, turn=True)
        self.shape, self.dtype = self.matrix.shape, self.matrix.dtype
        self.cost: int = max(self.matrix.data.size, self.shape[1])

    def problem_with(self, statistics: Statistics, treatment: Standardization) -> Problem:
        return replace(super().problem_with(statistics, treatment), compressed=self.matrix)

    def pairs(self) -> tuple[int, float]:
        X, count = self.matrix, np.zeros(self.shape[0], np.int64)  # of the entries of each row
        if X.format == "csr":
            count += np.diff(X.indptr)
        else:
            for part in slices(len(X.indices), 1, CHUNK):
                count += np.bincount(X.indices[part], minlength=len(count))
        return X.data.size, float(np.square(count.astype(np.float64)).sum()) / 2

    def by_columns(self) -> CompressedData:
        """Return the data in CSC, if memory has room for a copy."""
        X, turned = self.matrix, copy(self)
        size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
        if X.format == "csr" and size <= available_memory() / 2:
            turned.matrix = in_memory(X.tocsc())
        return turned


def by_entries(storage: DenseData) -> DenseData | CompressedData:
    """Return dense data of many variables as sparse data, if nearly all their entries are zero.

    The copy is much smaller than X. The same X is always treated in the same way.
    """
    X = storage.given if storage.small else storage.matrix
    # A sample of the entries tells whether it is worth looking at all
    n, p = X.shape
    some = (np.linspace(0, size - 1, min(size, FEW_SAMPLED), dtype=np.intp) for size in (n, p))
    if X.size < SCREENED_ENTRIES or _share(X[np.ix_(*some)]) > 2 * FEW_ENTRIES:
        return storage
    from scipy.sparse import csc_array, csr_array

    # Copy the entries line by line, until they are too many
    by_rows, most = X.strides[1] == X.itemsize, FEW_ENTRIES * X.size
    lines, kind = (X, csr_array) if by_rows else (X.T, csc_array)
    wide, width = (np.int32 if X.size < 2**31 else np.int64), lines.shape[1]
    start, indices, data = np.zeros(len(lines) + 1, wide), [], []
    for part in slices(len(lines), width, CACHED_ENTRIES):
        filled = lines[part] != 0
        count = np.cumsum(np.count_nonzero(filled, axis=1)) + start[part.start]
        if count[-1] > most:
            return storage
        start[part.start + 1 : part.stop + 1] = count
        at = np.flatnonzero(filled)
        indices.append((at % width).astype(wide))
        data.append(lines[part].ravel()[at].astype(storage.dtype, copy=False))
    few = CompressedData(kind((np.concatenate(data), np.concatenate(indices), start), shape=X.shape))
    few.names = storage.names
    return few if np.isfinite(few.matrix.data).all() else storage


def _share(x: AnyArray) -> float:
    """Return the share of entries that are not zero."""
    return np.count_nonzero(x) / x.size


# ---- a covariance, dense or sparse -----------------------------------------------------------------------


class Covariance(InMemory):
    """A symmetric p x p matrix; `definite` refuses an indefinite one, `called` is its name in messages."""

    covariance = True
    shape: tuple[int, int]
    dtype: DType
    cost: int

    def __init__(self, X: Any, definite: bool = True, called: str = "X") -> None:
        self.matrix: Any = in_memory(symmetric(X, None, called), called)
        self.names: Names = column_names(X)
        self.called: str = called
        self.definite: bool = definite
        self.shape, self.dtype = self.matrix.shape, self.matrix.dtype
        self.cost = max(self.matrix.data.size, self.shape[1]) if is_sparse(X) else self.shape[0]
        refuse_oblong(self.shape, called)

    def largest(self) -> float:
        """Return the largest magnitude of an entry.

        An error where X is not finite, not symmetric or, if that is asked for, not positive semidefinite.
        """
        largest, asymmetry, excess = _core.symmetry(self.matrix)
        if not math.isfinite(largest):
            self.raise_not_finite()
        tolerance = largest * SYMMETRY.of(self.dtype)
        if asymmetry > tolerance:
            what = "a covariance" if self.called == "X" else self.called
            raise ValueError(
                f"{what} must be symmetric; it differs from its transpose by up to {asymmetry:.3g}"
            )
        if self.definite:
            bad = excess > tolerance
            if not bad and largest > 0 and self.shape[0] <= CHOLESKY_ORDER:  # else only 2 x 2 minors tell
                with below_range():
                    scaled = as_dense(self.matrix).astype(np.float64) / largest
                bad = is_indefinite(scaled, tolerance / largest)
            if bad:
                raise ValueError(
                    "a covariance must be positive semidefinite, and X is not; where that comes of "
                    "rounding or of missing entries, statsmodels' cov_nearest gives a matrix nearby that is"
                )
        return largest

    def diagonal(self) -> AnyArray:
        return np.asarray(self.matrix.diagonal())

    def problem(self, treatment: Standardization) -> Problem:
        largest, dtype, given = self.largest(), self.dtype, treatment.deviation
        diagonal = self.diagonal()
        weight = scale = None
        range_ = 1.0
        if given is not None:
            _, scale, weight = divisors(given, treatment, dtype)
            with beyond_range():
                scaled = diagonal.astype(np.float64) / given / given
            if not np.isfinite(scaled).all():
                raise ValueError("a variance divided by its scale exceeds the number range")
            range_ = power_of_two_scale(largest_magnitude(scaled), dtype)
            diagonal = scaled * range_ * range_
        elif treatment.scale:
            if (diagonal < -1e-8 * largest).any():
                raise ValueError("scale=True needs variances, and X has a negative diagonal entry")
            deviation = roots(diagonal).astype(np.float64)
            _, scale, weight = divisors(deviation, treatment, dtype)
            diagonal = np.where(deviation == 0, 0.0, 1.0)
        else:
            range_ = power_of_two_scale(largest, dtype)
            diagonal = diagonal.astype(np.float64) * range_ * range_
        if treatment.excluded is not None:
            weight = treatment.without_excluded(weight, dtype)
            diagonal = np.where(treatment.excluded, 0, diagonal)
        affine = Affine(None, weight, range_)
        return self.made(affine, treatment, diagonal=diagonal, moment=diagonal, scale=scale)


def is_indefinite(A: Array, share: float) -> bool:
    """Whether A has no Cholesky factor, even with `share` times its largest row sum added to the diagonal."""
    A[np.diag_indices(len(A))] += share * np.abs(A).sum(axis=0).max()
    try:
        np.linalg.cholesky(A)
    except np.linalg.LinAlgError:
        return True
    return False
