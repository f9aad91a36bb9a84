"""Which variables outside of a working set greedy search may take next, by few products with the data."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._limits import CENTERING_LOSS, EXACT_SLACK, OUTSIDE_REFERENCES
from .._types import Index
from ..operators.deflation import DeflatedOperator
from ..operators.problem import Problem

__all__ = ["Outside", "Vector"]
__dir__ = __all__.copy

Vector = NDArray[np.float64]


class Outside:
    """Bounds of |A x| at all variables, x on supports S that grow, from the products with some of these x.

    For every a, |A x|_j <= |sum_i a_i (A x_i)_j| + sqrt(A_jj r'A r), r = x - sum_i a_i x_i. It is for a
    positive semidefinite A.

    Attributes
    ----------
    diagonal : ndarray of shape (p,)
        Of A, and what rounding may have taken from it.
    slack : float
        Relative, of all that is compared.
    """

    def __init__(self, problem: Problem, state: DeflatedOperator):
        assert state.diagonal is not None
        assert problem.diagonal is not None
        assert problem.moment is not None
        dtype = state.operator.dtype
        self.state, self.slack = state, EXACT_SLACK.of(dtype)
        self.diagonal = np.maximum(state.diagonal + self.slack * problem.diagonal, 0).astype(np.float64)
        self._root, self._lost = np.sqrt(self.diagonal), np.sqrt(problem.moment) * CENTERING_LOSS.of(dtype)
        self._vectors: list[Vector] = []
        self._products: list[Vector] = []

    def ask(self, S: Index, x: Vector) -> None:
        """The product with x on S, in the order of joining."""
        op, ascending = self.state.operator, np.argsort(S)
        y = op.apply(S[ascending], np.ascontiguousarray(x[ascending], op.dtype))
        self._vectors, self._products = [
            [*kept, new][-OUTSIDE_REFERENCES:]
            for kept, new in ((self._vectors, x), (self._products, y.astype(np.float64)))
        ]

    def bounds(self, S: Index, x: Vector, G: Vector) -> Vector:
        """Of |A x|, where A[S, S] is G."""
        V = np.zeros((len(S), len(self._vectors)))
        for i, vector in enumerate(self._vectors):
            V[: len(vector), i] = vector
        GV, value = G @ V, max(float(x @ G @ x), 0.0)
        a = np.linalg.lstsq(V.T @ GV, GV.T @ x, rcond=None)[0]
        r = x - V @ a
        bound = self._root * np.sqrt(max(float(r @ G @ r), 0.0) + self.slack * value)
        bound += self._lost * float(np.abs(x) @ self._lost[S])
        if len(a) > 0:
            bound += np.abs(sum(weight * product for weight, product in zip(a, self._products, strict=True)))
        return np.minimum(bound, self._root * np.sqrt(value * (1 + self.slack)))

    def may_win(self, bound: Vector, eigenvalues: Vector, best: float) -> NDArray[np.bool_]:
        """Where the eigenvalue of A[S + j, S + j] may be that of the best variable known, or larger.

        A root v above t1 >= t2, the largest of A[S, S], with eigenvectors w_i and x = w_1, fulfills

            v = A_jj + (A x)_j^2/(v - t1) + sum_{i > 1} (A w_i)_j^2/(v - t_i),

        and sum_{i > 1} (A w_i)_j^2 <= t2 (A_jj - (A x)_j^2/t1), since A[S, S] and its border are
        semidefinite: none is as large as v where the right side is smaller, and that side falls with v.
        """
        v = best * (1 - self.slack)
        t1, t2 = float(eigenvalues[0]), max(float(eigenvalues[1]), 0.0) if len(eigenvalues) > 1 else 0.0
        if not v > t1 > 0:
            return np.ones(len(bound), bool)
        square = bound**2
        rest = np.maximum(self.diagonal - square / t1, 0) * (t2 / (v - t2))
        return self.diagonal + square / (v - t1) + rest >= v
