"""Swapping variables of a support for others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._limits import GREEDY_PENALTIES
from ..linalg.pencil import ties
from ..operators.deflation import DeflatedOperator
from ..operators.problem import Problem
from ..operators.submatrix import largest_submatrix
from .base import ProgressClock, Report, Solution, ended
from .bordered_pencil import Pencil
from .choosing import swap_units
from .refitting import refit

__all__ = ["best_swap", "rows_of", "swap_search"]
__dir__ = __all__.copy


def swap_search(
    problem: Problem, state: DeflatedOperator, x: Solution, budget: float, hook: Report | None
) -> Solution:
    """Variables swapped, one for one, for as long as that raises the objective; then values re-fitted.

    No support that differs in one variable is better than the one returned, unless to see that would take
    more multiplications than `budget`.
    """
    k, p = len(x.index), problem.p
    if budget <= 0 or state.diagonal is None or k == p or k < 2 or x.objective == -np.inf or ended(hook):
        return x
    if state.choice is not None and not state.choice.plain:
        return swap_units(state, x, budget, hook)
    strength = -1.0 if state.quotient else GREEDY_PENALTIES[-1] if state.constrained else 0.0
    pencil, clock = Pencil.of(state, strength), ProgressClock(hook)
    while (new := best_swap(problem, state, pencil, x, budget)) is not None:
        x = new
        if clock(x.n_iter):
            break
    return x


def best_swap(
    problem: Problem, state: DeflatedOperator, pencil: Pencil, x: Solution, budget: float
) -> Solution | None:
    """x with one variable swapped for a better one, the smallest entry first; None if there is none."""
    op, S, k = state.operator, x.index, len(x.index)
    diagonal = np.ascontiguousarray(state.diagonal, np.float64)
    enough = x.objective + 1e-10 * abs(x.objective)
    plain = pencil.Q is None
    outside = np.ones(op.p, bool)
    outside[S] = False
    if 20.0 * k**4 > budget or k > largest_submatrix(op):
        return None
    if plain:
        basis = pencil.basis(op.submatrix(S).astype(np.float64), S)
        without = basis.without_each()
        if state.deflation.semidefinite:  # A is semidefinite: j adds at most a_jj
            outside &= diagonal + without.max() > enough
    candidate = np.flatnonzero(outside)
    if len(candidate) == 0:
        return None
    used = np.sort(np.append(S, candidate))
    if not op.symmetric_form and len(used) <= largest_submatrix(op) and len(used) ** 2 < k * op.p:
        if float(op.m) * len(used) ** 2 > budget:
            return None
        C = op.submatrix(used)[np.searchsorted(used, S)]
    else:
        if float(k) * problem.cost + float(k) ** 2 * op.p > budget:
            return None
        C = rows_of(op, S)[:, used]
    place, others, variance = np.searchsorted(used, S), np.searchsorted(used, candidate), diagonal[used]
    norm = np.einsum("ij,ij->j", C, C, dtype=np.float64) if plain else None
    local = pencil if pencil.Q is None else replace(pencil, Q=np.ascontiguousarray(pencil.Q[:, used]))
    left = None
    for i in np.argsort(np.abs(x.entries), kind="stable"):
        if state.choice is not None and state.choice.included[S[i]]:
            continue
        rest = np.delete(np.arange(k), i)
        if norm is not None:  # the largest eigenvalue of a bordered matrix is at most that of its norms
            left = np.maximum(norm - C[i].astype(np.float64) ** 2, 0) + 1e-12 * norm
            half = (without[i] - variance) / 2
            if (np.sqrt(half**2 + left) - half)[others].max() + without[i] <= enough:
                continue
        part = np.ascontiguousarray(C[rest])
        basis = local.basis(part[:, place[rest]].astype(np.float64), place[rest])
        value = local.bordered_eigenvalues(part, place[rest], others, variance, basis, left)
        if value.max() > enough:
            index = np.sort(np.append(S[rest], candidate[ties(value)[0]]))
            new = refit(state, replace(x, index=index, entries=np.ones(k, op.dtype)))
            if new.objective > enough:
                return new
    return None


def rows_of(op: _core.Operator, S: NDArray[np.intp]) -> NDArray[Any]:
    """A[S, :]."""
    C = np.empty((len(S), op.p), op.dtype)
    step = 1 if op.symmetric_form else 4  # of data, four in one read
    for start in range(0, len(S), step):
        part = S[start : start + step]
        if step == 1:
            C[start] = op.apply(part, np.ones(1, op.dtype))
            continue
        V = np.zeros((op.p, len(part)), op.dtype, order="F")
        V[part, np.arange(len(part))] = 1
        C[start : start + step] = op.apply_block(V).T
    return C
