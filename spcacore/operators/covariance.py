"""A covariance matrix in memory, dense or sparse."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import _core
from .._labels import symmetric
from .._limits import CHOLESKY_ORDER, SYMMETRY
from .._types import AnyArray, Array, DType, Names
from .._validation import as_dense, column_names, is_sparse
from ..linalg.scaling import below_range
from .base import CovarianceStorage, InMemory, refuse_oblong
from .sparse import in_memory


class Covariance(InMemory, CovarianceStorage):
    """A symmetric matrix; `definite` refuses an indefinite one."""

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
            if not bad and largest > 0 and self.shape[0] <= CHOLESKY_ORDER:  # else by 2 x 2 minors alone
                with below_range():
                    scaled = as_dense(self.matrix).astype(np.float64) / largest
                bad = is_indefinite(scaled, tolerance / largest)
            if bad:
                raise ValueError("a covariance must be positive semidefinite, and X is not")
        return largest

    def diagonal(self) -> AnyArray:
        return np.asarray(self.matrix.diagonal())


def is_indefinite(A: Array, share: float) -> bool:
    """Whether A has no Cholesky factor, even with a share of its largest sum of a row on its diagonal."""
    A[np.diag_indices(len(A))] += share * np.abs(A).sum(axis=0).max()
    try:
        np.linalg.cholesky(A)
    except np.linalg.LinAlgError:
        return True
    return False
