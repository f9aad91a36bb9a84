"""Sparse matrices: checks before any kernel follows their indices, and columns in random order."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._limits import CHUNK
from .._validation import float_type, is_sparse

__all__ = ["canonical_arrays", "compressed", "kernel_arrays", "permuted_columns"]


def canonical_arrays(
    X: Any, turn: bool = False
) -> tuple[Any, tuple[NDArray[Any], NDArray[Any], NDArray[Any]]]:
    """CSR or CSC with ascending indices, and (data, indices, indptr) as the kernels read them."""
    X = compressed(X, turn=turn)
    return X, kernel_arrays(X)


def kernel_arrays(X: Any) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """(data, indices, indptr) of a sound matrix as the kernels read them."""
    with np.errstate(over="ignore", under="ignore"):  # of long doubles
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
