"""Variance over groups of variables and under signs, as an objective over supports (supports/objective).

Where A may be formed, bounds come from its submatrices, and values alone from re-fitting; elsewhere each
support that is tried is re-fitted. Of single variables of any sign, compiled searches do the same. A brief
tree, which ends other searches, is here for both.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .. import _core
from .._limits import (
    BRIEF_FORMING,
    BRIEF_NODES,
    BRIEF_ORDER,
    BRIEF_WORK,
    CHOICE_NODES,
    CHOICE_ORDER,
    CHOICE_SWAPS,
    GREEDY_UNITS,
    REFIT_RISE,
    RISE,
    TREE_PENALTY,
)
from .._types import AnyArray, Array, Index
from ..linalg.orthogonal import symmetrized
from ..objectives.eigenvalue_sum import LeadingSum
from ..operators.deflation import DeflatedOperator
from ..operators.submatrix import largest_submatrix, symmetric_submatrix
from ..supports.admissible import Units
from ..supports.objective import Bound, Objective
from ..supports.search import backward, forward, swap
from ..supports.tree import Tree
from .exact_tree import Search
from .refitting import refit
from .solution import ProgressClock, Report, Solution, ended
from .starts import power_start


class Variance(Objective):
    """x'Ax, or x'Ax/x'Bx under generalized deflation, of the best feasible x on a support."""

    state: DeflatedOperator
    op: _core.Operator
    seed: tuple[int, ...]
    most_tried: int
    rise: float
    slack: float

    def __init__(
        self, state: DeflatedOperator, k: int, A: Array | None = None, seed: tuple[int, ...] = (),
        most_tried: int = GREEDY_UNITS,
    ):  # fmt: skip
        super().__init__(state.supports.within(k))
        self.state, self.op, self.seed, self.most_tried = state, state.operator, seed, most_tried
        self.rise = self.slack = REFIT_RISE.of(self.op.dtype)
        self.known: dict[bytes, Solution] = {}
        self.near: Array = np.zeros(self.op.p)  # from which values are sought
        if A is None and not state.quotient and self.op.p <= largest_submatrix(self.op):
            A = self.op.submatrix(np.arange(self.op.p)).astype(np.float64)
        self.matrix: LeadingSum | None = (
            None if A is None or state.quotient else LeadingSum(symmetrized(A), self.supports)
        )
        self.exact: bool = self.matrix is None or (self.matrix.exact and not state.constrained)
        if self.matrix is not None and state.constrained:  # x'Ax = x'(A - t QQ')x where Q'x = 0
            Q = np.stack(state.basis, axis=1)
            t = TREE_PENALTY * float(np.abs(self.matrix.A).max())
            self.matrix.masked = self.matrix.A - t * (Q @ Q.T)

    def solution(self, units: Units) -> Solution:
        """The best values on some units."""
        key = units.tobytes()
        if key not in self.known:
            S = self.supports.index(units)
            start = self.near[S]
            if not start.any():
                start = self.supports.ones(S)
            start = (start / np.linalg.norm(start)).astype(self.op.dtype)
            self.known[key] = refit(self.state, Solution(S, start, -np.inf, 0, True))
        return self.known[key]

    def value(self, units: Units) -> float:
        return self.solution(units).objective if units.any() else 0.0

    def with_each(self, units: Units, others: Index) -> Array:
        return (
            super().with_each(units, others) if self.matrix is None else self.matrix.with_each(units, others)
        )

    def promise(self, units: Units) -> Array:
        """The squares of A x or, beside no unit, variances, and where these tie the leading eigenvector's."""
        supports = self.supports
        if not units.any():
            variance = supports.per_unit(np.maximum(self.state.variances, 0).astype(np.float64))
            dense = power_start(self.op, np.random.default_rng(self.seed)).astype(np.float64)
            part = supports.norms(supports.oriented(dense))
            order = np.lexsort((part, np.round(variance / (variance.max() or 1), 6)))
            return np.asarray(np.argsort(order), np.float64)
        x = self.solution(units)
        y = self.op.apply(x.index, np.ascontiguousarray(x.entries)).astype(np.float64)
        self.near = supports.projected(y)
        norms = supports.norms(self.near)
        self.near[x.index] += x.entries
        return norms**2

    def bound(self, inside: Units, free: Units) -> Bound:
        assert self.matrix is not None
        return self.matrix.bound(inside, free)


def greedy_by_units(
    state: DeflatedOperator, K: int, strategy: str, seed: list[int], clock: ProgressClock
) -> Solution | None:
    """From what is included, one unit more while there is room, or from all units one unit less.

    By default both, where there are few units; the better one counts.
    """
    objective = Variance(state, K, seed=tuple(seed))
    few = len(objective.supports.allowed) <= CHOICE_ORDER
    found = [forward(objective, clock=clock)] if strategy != "backward" else []
    if strategy in ("backward", "bidirectional") or (strategy == "auto" and few):
        found.append(backward(objective, clock))
    found = [units for units in found if units.any()]
    if not found:
        return None
    units = max(found, key=objective.value)
    return replace(objective.solution(units), n_iter=int(units.sum() - objective.supports.included.sum()))


def swap_units(state: DeflatedOperator, x: Solution, budget: float, hook: Report | None) -> Solution:
    """Units swapped, one for one, for others of large entries of A x, for as long as that helps."""
    if budget <= 0 or x.objective == -np.inf:
        return x
    objective = Variance(state, state.supports.cardinality_of(x.index), most_tried=CHOICE_SWAPS)
    units, clock = objective.supports.mask(x.index), ProgressClock(hook)
    objective.known[units.tobytes()] = x
    new = objective.solution(swap(objective, units, lambda n: n == CHOICE_SWAPS or clock(n))[1])
    return x if new is x else replace(x, index=new.index, entries=new.entries, objective=new.objective)


class UnitTree(Tree):
    """The tree from a component that is known."""

    objective: Variance

    def __init__(self, state: DeflatedOperator, A: AnyArray, k: int, best: Solution, tol: float = 0.0):
        objective = Variance(state, k, A)
        units = objective.supports.mask(best.index)
        objective.known[units.tobytes()] = best
        super().__init__(objective, units, tol)

    def best(self) -> Solution:
        return self.objective.solution(self.units)


def brief_search(state: DeflatedOperator, x: Solution, k: int, hook: Report | None) -> Solution:
    """The best component of k nonzeros that a tree of some nodes meets, or x if that is no better."""
    op = state.operator
    p = op.p
    left = min(BRIEF_NODES, int(BRIEF_WORK / (p * k) ** 2))
    # as it does where nothing else has any variance
    lacks = state.supports.cardinality_with(x.index) < k and not state.constrained
    if left == 0 or p > min(BRIEF_ORDER, largest_submatrix(op)) or k == p or lacks:
        return x
    if (
        state.diagonal is None
        or ended(hook)
        or (not op.symmetric_form and float(op.m) * p**2 > BRIEF_FORMING)
    ):
        return x
    A = symmetric_submatrix(op)
    if not state.supports.simple:  # over groups, and under signs
        if p > CHOICE_ORDER or state.quotient:
            return x
        units = UnitTree(state, A, k, x)
        units.step(CHOICE_NODES)
        best = units.best()
    else:
        tree = Search(A, k, x.index, state=state)
        tree.run(left, at_a_time=8)
        x = replace(x, proved=not tree.open())
        if not tree.value > x.objective + RISE * abs(x.objective):
            return x
        best = tree.best()
    return replace(x, index=best.index, entries=best.entries, objective=best.objective)
