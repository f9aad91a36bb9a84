"""The semidefinite relaxation under what is known of the variables.

Let x = (x_u) by units u, of size m_u as the cardinality counts them, I those that are included and K what k
leaves for the others. By Cauchy and Schwarz (sum sqrt(m_u) ||x_u||)^2 <= K sum ||x_u||^2, over u not in I. So
M = xx' meets

    sum_{u != v} sqrt(m_u m_v) ||M_uv||_F  +  sum_u (m_u - K) Tr M_uu  <=  0

and M_ij s_i s_j >= 0 for entries of signs s. Let Y = r (G + D) - N, with ||G_uv||_F <= sqrt(m_u m_v), D the
diagonal of the second sum, and N_ij s_i s_j >= 0. Then Tr YM <= 0, so that the largest eigenvalue of A - Y is
a bound. For a penalty r on (sum ||x_u||)^2, m_u is 1 and K is 0.
"""

from __future__ import annotations

import math

import numpy as np

from .._limits import SHAPED_CHECKS, SHAPED_ORDER
from .._types import Array, Index
from ..supports.admissible import Supports
from .solution import Report, ended

__all__ = ["refuse_many", "solve_shaped"]


def refuse_many(order: int, choice: Supports) -> None:
    """Raise where a step would take too long."""
    if order > SHAPED_ORDER:
        raise ValueError(
            f"{choice.shaping} requires at most {SHAPED_ORDER} variables in dspca, not {order}: exclude some"
        )


class _Constraint:
    """The set above, or the penalty, for the variables kept."""

    def __init__(self, choice: Supports, kept: Index, k: int | None):
        names, self.unit = np.unique(choice.unit[kept], return_inverse=True)
        free = ~choice.included[names]
        size = choice.size[names].astype(float) if k is not None else np.ones(len(names))
        room = 0.0 if k is None else float(k - int(choice.size[choice.included].sum()))
        root = np.where(free, np.sqrt(size), 0)
        self.weights = np.outer(root, root)
        np.fill_diagonal(self.weights, 0)
        self.diagonal = np.where(free, size - room, 0)[self.unit]
        s = np.zeros(len(kept)) if choice.signs is None else choice.signs[kept].astype(float)
        self.signs = np.outer(s, s)
        np.fill_diagonal(self.signs, 0)
        self.block = self.unit[:, None] * len(names) + self.unit

    def nearest(self, V: Array, level: float | None) -> Array:
        """The nearest matrix of the set, or, for a penalty of this level, that of least distance and cost."""
        P = np.where(V * self.signs < 0, 0.0, V)
        norms = np.sqrt(np.bincount(self.block.ravel(), (P * P).ravel(), minlength=self.weights.size))
        norms, w = norms.reshape(self.weights.shape), self.weights
        linear, square = float(V.diagonal() @ self.diagonal), float(self.diagonal @ self.diagonal)

        if level is None:  # the root of a convex function that falls, by Newton's method from the left
            level, before = 0.0, -1.0
            while level > before:
                over = norms > level * w
                excess = float((w * (norms - level * w))[over].sum()) + linear - level * square
                slope, before = float((w * w)[over].sum()) + square, level
                level = max(level, level + excess / (slope or 1.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(w > 0, np.maximum(1 - level * w / norms, 0), 1.0)
        share[~(norms > 0)] = 0
        Z = P * share.ravel()[self.block]
        Z[np.diag_indices(len(Z))] -= level * self.diagonal
        return Z


def solve_shaped(
    A: Array, choice: Supports, kept: Index, k: int | None, penalty: float, max_iter: int, tol: float,
    hook: Report | None,
) -> tuple[bool, Array, float, float, int, Array]:  # fmt: skip
    """Alternating directions (Boyd et al. 2011) between matrices of trace 1 and those of the constraint.

    Whether it converged, M, its objective, the bound, the number of iterations, and the A - Y of which the
    bound is the largest eigenvalue. M meets the constraint to the tolerance.
    """
    unit = float(np.abs(np.linalg.eigvalsh(A)).max())
    A, penalty, what = A / unit, penalty / unit, _Constraint(choice, kept, k)
    p, rho = len(A), 1.0
    Z, U = np.eye(p) / p, np.zeros((p, p))
    rounding = 64 * p * float(np.finfo(float).eps)  # of the largest eigenvalue
    M, best, primal, converged, n_iter = Z, float(np.linalg.eigvalsh(A)[-1]) + rounding, -math.inf, False, 0
    lowest = A
    while n_iter < max_iter and not converged:
        n_iter += 1
        M = _nearest_density(Z - U + A / rho)
        before = Z
        V = M + U
        Z = what.nearest(V, None if k is not None else penalty / rho)
        U = V - Z
        if n_iter % SHAPED_CHECKS and n_iter < max_iter:
            continue
        gap, moved = float(np.linalg.norm(M - Z)), float(np.linalg.norm(Z - before))
        values = np.linalg.eigvalsh(A - rho * U)
        bound = float(values[-1]) + rounding * float(np.abs(values).max())
        if bound < best:
            best, lowest = bound, A - rho * U
        primal = float(np.sum(A * M)) - (0 if k is not None else penalty * _charge(what, M))
        converged = best - primal <= tol * abs(best) and gap <= tol
        if hook is not None and (hook(n_iter) or ended(hook)):
            break
        if gap > 5 * rho * moved or rho * moved > 5 * gap:
            factor = 2.0 if gap > rho * moved else 0.5
            rho, U = rho * factor, U / factor
    return converged, M, min(primal, best) * unit, best * unit, n_iter, lowest * unit


def _charge(what: _Constraint, M: Array) -> float:
    """What a penalty of 1 costs."""
    squares = np.bincount(what.block.ravel(), (M * M).ravel(), minlength=what.weights.size)
    norms = np.sqrt(squares).reshape(what.weights.shape)
    return float((what.weights * norms).sum()) + float(M.diagonal() @ what.diagonal)


def _nearest_density(V: Array) -> Array:
    """The nearest semidefinite matrix of trace 1: the eigenvalues projected onto the simplex."""
    values, vectors = np.linalg.eigh((V + V.T) / 2)
    values = values - values[-1]  # which moves the shift alone, and keeps its digits
    falling = values[::-1]
    shift = (np.cumsum(falling) - 1) / np.arange(1, len(values) + 1)
    kept = np.flatnonzero(falling > shift)[-1]
    weights = np.maximum(values - shift[kept], 0)
    used = weights > 0
    return np.asarray((vectors[:, used] * weights[used]) @ vectors[:, used].T)
