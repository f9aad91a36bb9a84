"""A proof beside an answer: branch and bound from it, within a limit of time."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from .._limits import EXACT_ORDER, RISE
from ..operators.deflation import DeflatedOperator
from ..operators.problem import Problem
from .exact import ExactSearch, solve_to_optimality
from .solution import Report, Solution, ended

__all__ = ["FORMING_SPEED", "PROOF_SECONDS", "better_support"]

PROOF_SECONDS = 2.0  # by default; real data of 2000 variables mostly take less
FORMING_SPEED = 1e10  # multiplications in a second by which a matrix of all variables is formed, about


def better_support(
    problem: Problem, state: DeflatedOperator, x: Solution, k: int, seconds: float, hook: Report | None
) -> tuple[Solution, float]:
    """x, or what a tree that starts from it finds better, and an upper bound on all of k nonzeros.

    The bound is infinite where no tree is tried: with all variables, under groups or signs, or where the
    matrix of all variables is too large, or takes too long to form.
    """
    p, op = problem.p, state.operator
    if x.proved:
        return x, x.objective
    forming = 0.0 if op.symmetric_form else float(op.m) * p**2
    few = k < p <= EXACT_ORDER and forming < seconds * FORMING_SPEED
    if not (few and state.supports.simple) or ended(hook):
        return x, math.inf
    solver = ExactSearch(0.0, seconds, None)
    proof = solve_to_optimality(problem, state, k, solver, [0, 0], hook, x.index, bounded=False)
    if proof is None:
        return x, math.inf
    found = proof.found
    value = state.objective(x.index, x.entries)
    if found.objective > value + RISE * abs(value) and not _same(found.index, x.index):
        x, value = (
            replace(x, index=found.index, entries=found.entries, objective=found.objective),
            found.objective,
        )
    return x, proof.bound(value, op.dtype)


def _same(index: NDArray[np.intp], other: NDArray[np.intp]) -> bool:
    return np.array_equal(np.sort(index), np.sort(other))
