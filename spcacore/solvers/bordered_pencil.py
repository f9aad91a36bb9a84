"""What a variable more or less does to the largest eigenvalue of a support."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._limits import QUOTIENT_NULL
from .._records import record
from ..operators.deflation import DeflatedOperator
from .base import Solution


@record
class _Basis:
    """W with W'B_S W = I and W'A_S W = diag(eigenvalues), descending, and R = W'Q_S.

    `in_null_space` marks the variables that can be made zero by adding what B maps to zero.
    """

    eigenvalues: NDArray[np.float64]
    W: NDArray[np.float64]
    R: NDArray[np.float64] | None
    in_null_space: NDArray[np.bool_]


@record
class Pencil:
    """B = I + strength QQ', Q by rows; directions with x'Bx of at most `least` do not count."""

    Q: NDArray[np.float64] | None
    strength: float
    least: float

    @classmethod
    def of(cls, state: DeflatedOperator, strength: float = 0.0) -> Pencil:
        Q = np.stack(state.basis) if strength else None
        return cls(Q, strength, QUOTIENT_NULL.of(state.operator.dtype))

    def diagonal(self, p: int) -> NDArray[np.float64]:
        """Of B."""
        return np.ones(p) if self.Q is None else 1 + self.strength * (self.Q**2).sum(axis=0)

    def basis(self, G: NDArray[Any], index: NDArray[np.intp]) -> _Basis:
        """Of a support, where A is G."""
        G = (G + G.T) / 2.0
        if self.Q is None:
            eigenvalues, W = np.linalg.eigh(G)
            return _Basis(
                eigenvalues[::-1].copy(), np.asfortranarray(W[:, ::-1]), None, np.zeros(len(G), bool)
            )
        Q = self.Q[:, index].T
        U, root, _ = np.linalg.svd(Q)
        square = np.ones(len(index))
        square[: len(root)] += self.strength * root**2
        kept = square > self.least
        T = U[:, kept] / np.sqrt(square[kept])
        eigenvalues, Y = np.linalg.eigh(T.T @ G @ T)
        W = np.asfortranarray(T @ Y[:, ::-1])
        null = (U[:, ~kept] ** 2).sum(axis=1) > 1e-8
        return _Basis(eigenvalues[::-1].copy(), W, np.asfortranarray(W.T @ Q), null)

    def leading(self, G: NDArray[np.float64], index: NDArray[np.intp], n_iter: int) -> Solution:
        """The leading vector of a support, of unit norm, where A is G."""
        if self.Q is None:
            value, x = _core.leading_eigenvector(np.ascontiguousarray(G))
            x[~G.any(axis=0)] = 0  # rounding must not give these variables a loading
            return Solution(index, x if x.any() else np.eye(1, len(x))[0], value, n_iter, True)
        basis = self.basis(G, index)
        x = basis.W[:, 0]
        return Solution(index, x / np.linalg.norm(x), float(basis.eigenvalues[0]), n_iter, True)

    def bordered_eigenvalues(
        self, C: NDArray[Any], candidate: NDArray[np.intp], diagonal: NDArray[np.float64], basis: _Basis,
        norm: NDArray[np.float64] | None = None,
    ) -> NDArray[np.float64]:  # fmt: skip
        """The largest eigenvalues with each candidate more."""
        return _core.bordered_eigenvalues(
            C,
            candidate,
            diagonal,
            basis.eigenvalues,
            basis.W,
            norm,
            self.Q,
            basis.R,
            self.strength,
            self.least,
        )
