"""The values of orthogonal loadings on given supports, all at once.

maximize Tr V'AV subject to V'V = I and V = 0 outside of a pattern. With symmetric multipliers L the gradient
of the Lagrangian is 2 (AV - VL) on the pattern, its second derivative along D is 2 Tr(D'AD - D'DL). A step is
Newton's within the directions that keep V'V to first order, each curvature taken negative; then V is brought
back to V'V = I by Gauss-Newton steps of least norm. A step that does not raise the variance is halved: it
never falls.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._limits import (
    DENSE_JACOBIAN,
    ORTHOGONAL_HALVINGS,
    ORTHOGONAL_PROJECTIONS,
    ORTHOGONAL_TOLERANCE,
)
from .._types import Array, Index

__all__ = ["Pattern", "best_values", "explained", "nearest_orthogonal"]


class Pattern:
    """Where r loadings have their N entries, and which m pairs of them meet."""

    row: Index
    column: Index
    i: Index
    j: Index
    c: Index
    both: Index
    a: NDArray[Any]
    b: NDArray[Any]

    def __init__(self, used: NDArray[np.bool_]):
        self.used = used
        self.row, self.column = np.nonzero(used)
        self.i, self.j = np.nonzero(np.triu(used.T.astype(np.intp) @ used))
        place = np.full(used.shape, -1)
        place[self.row, self.column] = np.arange(len(self.row))
        self.c, self.both = np.nonzero((used[:, self.i] & used[:, self.j]).T)
        self.a, self.b = place[self.both, self.i[self.c]], place[self.both, self.j[self.c]]

    def error(self, V: Array) -> Array:
        """V'V - I, of the pairs that meet; the others have no common variable."""
        return (V.T @ V)[self.i, self.j] - (self.i == self.j)

    def jacobian(self, V: Array) -> Any:
        """The m x N derivatives of `error` by the entries of the pattern, sparse where they are many."""
        shape = len(self.i), len(self.row)
        first, second = V[self.both, self.j[self.c]], V[self.both, self.i[self.c]]
        if shape[0] * shape[1] <= DENSE_JACOBIAN:
            J = np.zeros(shape)
            J[self.c, self.a] = first
            J[self.c, self.b] += second
            return J
        from scipy.sparse import csr_array

        places = np.tile(self.c, 2), np.append(self.a, self.b)
        return csr_array((np.append(first, second), places), shape)

    def curvature(self, A: Array, multipliers: Array) -> Array:
        """The N x N second derivatives of Tr V'AV less the sum of the multipliers times `error`."""
        H = np.where(self.column[:, None] == self.column, 2 * A[np.ix_(self.row, self.row)], 0)
        H[self.a, self.b] -= multipliers[self.c]  # no place twice: a pair and a variable name it
        H[self.b, self.a] -= multipliers[self.c]
        return H

    def matrix(self, values: Array) -> Array:
        """Values of the entries in their places."""
        V = np.zeros(self.used.shape)
        V[self.row, self.column] = values
        return V


def nearest_orthogonal(V: Array, pattern: Pattern) -> Array | None:
    """Orthogonal loadings near V on the pattern; None if the iteration does not reach any.

    Alternating projections until V'V is near I, then Gauss-Newton steps on V'V = I, each of least norm.
    """
    for _ in range(ORTHOGONAL_PROJECTIONS):
        error = pattern.error(V)
        size = np.abs(error).max(initial=0)
        if size <= ORTHOGONAL_TOLERANCE:
            return V
        if size > 0.1:
            left, _, right = np.linalg.svd(V, full_matrices=False)
            V = np.where(pattern.used, left @ right, 0)
        else:
            step = _least_norm(pattern.jacobian(V), -error)
            if not np.abs(step).max() <= 1:  # the equations have no solution near
                return None
            V = V + pattern.matrix(step)
    return None


def _least_norm(J: Any, error: Array) -> Array:
    """The least solution of J d = error, or the least of the least squares ones."""
    if isinstance(J, np.ndarray):
        values, vectors = np.linalg.eigh(J @ J.T)
        kept = values > 1e-12 * values[-1]
        return J.T @ (vectors[:, kept] @ ((vectors[:, kept].T @ error) / values[kept]))
    from scipy.sparse.linalg import lsmr

    return np.asarray(lsmr(J, error, atol=1e-8, btol=1e-8)[0])


def best_values(A: Array, V: Array, pattern: Pattern, n_steps: int) -> Array:
    """A local maximum of Tr V'AV to which V, orthogonal, ascends; A over the rows of V.

    The matrices of order N are dense.
    """
    value = explained(A, V)
    for _ in range(n_steps):
        J = np.asarray(pattern.jacobian(V))
        gradient = 2 * (A @ V)[pattern.row, pattern.column]
        left, size, right = np.linalg.svd(J)
        rank = int(np.count_nonzero(size > 1e-10 * size[0]))
        multipliers = left[:, :rank] @ ((right[:rank] @ gradient) / size[:rank])
        free = right[rank:].T
        within = free.T @ gradient
        if np.linalg.norm(within) <= 1e-9 * np.linalg.norm(gradient):
            break
        bend, turn = np.linalg.eigh(free.T @ pattern.curvature(A, multipliers) @ free)
        bend = np.maximum(np.abs(bend), 1e-3 * np.abs(bend).max())
        step = free @ (turn @ ((turn.T @ within) / bend))
        for _ in range(ORTHOGONAL_HALVINGS):
            new = nearest_orthogonal(V + pattern.matrix(step), pattern)
            if new is not None and explained(A, new) > value:
                break
            step = step / 2
        else:
            break
        rise, V, value = explained(A, new) - value, new, explained(A, new)
        if rise <= 1e-12 * abs(value):
            break
    return V


def explained(A: Array, V: Array) -> float:
    """Tr V'AV."""
    return float(((A @ V) * V).sum())
