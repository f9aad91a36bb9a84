"""The mean and scatter of rows that come in batches."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._limits import BLOCKS_SUBMATRIX_ORDER, CHUNK
from .._messages import counted
from .._validation import is_sparse


class RunningScatter:
    """Of all rows so far: their number, mean and scatter `sum w (x - mean)(x - mean)'`, p x p, in float64.

    Batches are merged about their means (Chan, Golub and LeVeque 1983), so that digits survive large means,
    and that any order and size of batches gives the same up to rounding.
    """

    def __init__(self, p: int, dtype: Any):
        if p > BLOCKS_SUBMATRIX_ORDER:
            raise ValueError(
                f"partial_fit keeps a matrix of p x p, for at most {BLOCKS_SUBMATRIX_ORDER} variables, and X "
                f"has {counted(p, 'variable')}: use fit, which also takes rows in blocks"
            )
        self.n_rows, self.weight, self.dtype = 0, 0.0, np.dtype(dtype)
        self.mean, self.scatter = np.zeros(p), np.zeros((p, p))

    def add(self, X: Any, sample_weight: NDArray[np.float64] | None) -> None:
        """Take some more rows in."""
        n, p = X.shape
        self.dtype = np.promote_types(self.dtype, X.dtype)
        step = max(1, CHUNK // p)
        for start in range(0, n, step):
            rows = slice(start, start + step)
            self._add(X[rows], None if sample_weight is None else sample_weight[rows])

    def _add(self, X: Any, weight: NDArray[np.float64] | None) -> None:
        n = X.shape[0]
        total = float(n) if weight is None else float(weight.sum())
        self.n_rows += n
        if total == 0:
            return
        w = np.ones(n) if weight is None else weight
        mean = np.asarray(X.T @ w, np.float64).ravel() / total
        if is_sparse(X):
            Z = X.astype(np.float64)
            scaled = Z if weight is None else Z.multiply(w[:, None]).tocsr()
            scatter = (Z.T @ scaled).toarray() - total * np.outer(mean, mean)
        else:
            D = (X - mean) * np.sqrt(w)[:, None]
            scatter = D.T @ D
        both = self.weight + total
        shift = mean - self.mean
        self.scatter += scatter + np.outer(shift, shift) * (self.weight * total / both)
        self.mean += shift * (total / both)
        self.weight = both

    def moment(self, center: Any) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """The covariance about what is subtracted, and that: the mean, nothing, or given numbers."""
        if np.ndim(center):
            about: NDArray[Any] | None = np.asarray(center, np.float64)
        else:
            about = self.mean if center else None
        A = self.scatter
        if about is not self.mean:
            offset = self.mean if about is None else self.mean - about
            A = A + self.weight * np.outer(offset, offset)
        A = A / max(self.weight - 1, 1)
        return A.astype(self.dtype), None if about is None else about.astype(self.dtype)
