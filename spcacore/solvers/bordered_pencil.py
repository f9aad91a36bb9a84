"""What a variable more or less does to the largest eigenvalue of a support."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._limits import QUOTIENT_NULL
from .._records import record
from ..linalg.eigen import all_eigenpairs
from ..linalg.pencil import PencilBasis
from ..operators.deflation import DeflatedOperator
from .solution import Solution

__all__ = ["Pencil"]


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

    def basis(self, G: NDArray[Any], index: NDArray[np.intp]) -> PencilBasis:
        """Of a support, where A is G."""
        if self.Q is None:
            eigenvalues, W = all_eigenpairs((G + G.T) / 2.0)
            return PencilBasis(
                eigenvalues[::-1].copy(), np.asfortranarray(W[:, ::-1]), np.zeros(len(G), bool)
            )
        U, root, _ = np.linalg.svd(self.Q[:, index].T)
        square = np.ones(len(index))
        square[: len(root)] += self.strength * root**2
        return PencilBasis.of(G, square, U, square > self.least)

    def leading(self, G: NDArray[np.float64], index: NDArray[np.intp], n_iter: int) -> Solution:
        """The leading vector of a support, of unit norm, where A is G."""
        if self.Q is None:
            value, x = _core.leading_eigenvector(np.ascontiguousarray(G))
            x[~G.any(axis=0)] = 0  # rounding must not give these variables a loading
            return Solution(index, x if x.any() else np.eye(1, len(x))[0], value, n_iter, True)
        basis = self.basis(G, index)
        if basis.W.shape[1] == 0:  # all of it lies in the span of Q
            return Solution(index, np.eye(1, len(index))[0], -np.inf, n_iter, True)
        x = basis.W[:, 0]
        return Solution(index, x / np.linalg.norm(x), float(basis.eigenvalues[0]), n_iter, True)

    def bordered_eigenvalues(
        self, C: NDArray[Any], index: NDArray[np.intp], candidate: NDArray[np.intp],
        diagonal: NDArray[np.float64], basis: PencilBasis, norm: NDArray[np.float64] | None = None,
    ) -> NDArray[np.float64]:  # fmt: skip
        """The largest eigenvalues on a support, where the rows of A are C, with each candidate more."""
        R = None if self.Q is None else np.asfortranarray(basis.W.T @ self.Q[:, index].T)
        return _core.bordered_eigenvalues(
            C, candidate, diagonal, basis.eigenvalues, basis.W, norm, self.Q, R, self.strength, self.least
        )
