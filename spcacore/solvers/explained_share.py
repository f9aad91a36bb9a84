"""The fewest variables whose component explains a share of what the dense component explains."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._limits import SHARE_ROUNDING
from ..choice import Explained
from ..linalg.eigen import leading_eigenvectors
from ..linalg.scaling import descending
from ..operators.deflation import DeflatedOperator
from .refitting import refit
from .solution import Report, Solution, drop_zeros, ended
from .solver import Solver

SolveAt = Callable[[int, Solution | None], Solution | None]


def least_share(explained: Explained, state: DeflatedOperator) -> float:
    """What a component is to explain, but for rounding."""
    return float(explained.share) * (1 - SHARE_ROUNDING.of(state.operator.dtype))


def fewest_variables(solver: Solver, state: DeflatedOperator, share: Explained) -> Solution | None:
    """The component of the fewest variables, among those that the solver finds, that explains the share.

    That of the largest eigenvalue of the deflated A or, of its score t, the squared correlation with t. By
    bisection, each search started from the last component that sufficed, or on the path of one search.
    """
    if solver.takes_share:
        return solver.solve(state, share)
    least = least_share(share, state)
    dense = _Dense(state)
    if not dense.value > state.problem.noise(np.arange(1), state.deflation.first_order):
        return None
    low, high, first = dense.bracket(share.of, least)
    if not state.supports.plain:  # the truncated vector may have other variables, and be no bound
        fewest, high = state.supports.bounds
        low, first = min(max(low, fewest), high) if not state.supports.grouped else fewest, None
    if state.supports.positive:  # nor does it have these signs
        high, first = state.p, None
    path = solver.path(state, high)
    if path is not None:
        last = first
        for x in path:
            if x.objective > -np.inf and dense.share(share.of, x) >= least:
                return drop_zeros(x)
            last = x if first is None else first
        return drop_zeros(last)

    def solve_at(k: int, near: Solution | None) -> Solution | None:
        return (solver if near is None else solver.near(near)).find(state, k)

    return bisect(solve_at, lambda x: dense.share(share.of, x) >= least, low, high, state.hook, first)


def bisect(
    solve_at: SolveAt, reaches: Callable[[Solution], bool], low: int, high: int, hook: Report | None,
    near: Solution | None = None,
) -> Solution | None:  # fmt: skip
    """The component of the smallest k in [low, high] that reaches; that of `high` where none does."""
    best = solve_at(high, near)
    if near is not None and (best is None or not reaches(best)):
        best = near
    while best is not None and low < high and not ended(hook):
        k = (low + high) // 2
        x = solve_at(k, best)
        if x is not None and reaches(x):
            best, high = x, min(k, len(x.index))
        else:
            low = k + 1
    return best


class _Dense:
    """The leading eigenvector of the deflated A."""

    def __init__(self, state: DeflatedOperator):
        self.state, self.p = state, state.p
        op = state.operator
        start = np.random.default_rng(0).standard_normal(op.p).astype(op.dtype)
        if not op.apply(None, start).any():  # ARPACK cannot start
            values, vectors = np.zeros(2), np.zeros((op.p, 2))
        else:
            values, vectors = leading_eigenvectors(op, min(2, op.p))
        self.value, self.second = float(values[0]), max(float(values[-1]), 0.0)
        self.vector = np.ascontiguousarray(vectors[:, 0], np.float64)

    def share(self, of: str, x: Solution) -> float:
        """What a component explains."""
        if of == "variance":
            return x.objective / self.value
        # corr(X x, X u)^2 = lambda (x'u)^2 / x'Ax
        variance = self.state.quadratic(x.index, x.entries)
        return self.value * float(self.vector[x.index] @ x.entries) ** 2 / variance if variance > 0 else 0.0

    def bracket(self, of: str, least: float) -> tuple[int, int, Solution | None]:
        """Numbers of variables that are too few, less one, and enough; and a component of so many.

        With the largest eigenvalues l and m, x'Ax <= l c^2 + m (1 - c^2), and c^2 = (x'u)^2 is at most the
        sum of the k largest u_j^2. The truncated u is a component; where it is not
        feasible, its values are re-fitted.
        """
        plain = not (self.state.quotient or self.state.constrained)
        order = descending(np.abs(self.vector))
        c = np.cumsum(self.vector[order] ** 2)
        low, high = 1, self.p
        if plain and of == "variance" and least * self.value > self.second:
            needed = (least * self.value - self.second) / (self.value - self.second)
            low = 1 + int(np.searchsorted(c, needed * (1 - 1e-6)))
        first, bottom = None, low
        while bottom < high:
            k = (bottom + high) // 2
            x = self._truncated(order[:k])
            x = x if plain else refit(self.state, x)
            if self.share(of, x) >= least:
                first, high = x, k
            else:
                bottom = k + 1
        return min(low, high), high, first

    def _truncated(self, index: Any) -> Solution:
        index = np.sort(index)
        entries = self.vector[index] / np.linalg.norm(self.vector[index])
        entries = entries.astype(self.state.operator.dtype)
        return Solution(index, entries, self.state.quadratic(index, entries), 0, True)
