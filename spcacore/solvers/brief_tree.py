"""A brief branch and bound, which ends a search where it proves its component or finds a better one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from .._limits import BRIEF_FORMING, BRIEF_NODES, BRIEF_ORDER, BRIEF_WORK, CHOICE_NODES, CHOICE_ORDER, RISE
from ..operators.deflation import DeflatedOperator
from ..operators.submatrix import largest_submatrix
from .exact_tree import Search
from .solution import Report, Solution, ended
from .unit_search import UnitTree

__all__ = ["brief_search"]


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
    A = op.submatrix(np.arange(p)).astype(np.float64)
    if not state.supports.simple:
        return _among_units(state, A, x, k)
    tree = Search(state, (A + A.T) / 2, np.arange(p), k, x, 0.0)
    while left > 0 and tree.open():
        left -= tree.step(min(left, 8), lambda _: None)
    x = replace(x, proved=not tree.open())
    if not tree.value > x.objective + RISE * abs(x.objective):
        return x
    best = tree.best()
    return replace(x, index=best.index, entries=best.entries, objective=best.objective)


def _among_units(state: DeflatedOperator, A: NDArray[np.float64], x: Solution, k: int) -> Solution:
    """The same over groups, and under signs."""
    if len(A) > CHOICE_ORDER or state.quotient:
        return x
    tree = UnitTree(state, (A + A.T) / 2, k, x, 0.0)
    tree.step(CHOICE_NODES, lambda _: None)
    best = tree.best()
    return replace(x, index=best.index, entries=best.entries, objective=best.objective)
