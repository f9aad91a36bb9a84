"""Swapping variables of a support for others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._limits import GREEDY_PENALTIES, SWAP_GAP, SWAP_SLACK
from ..linalg.pencil import PencilBasis, ties
from ..operators.deflation import DeflatedOperator
from ..operators.problem import Problem
from ..operators.submatrix import largest_submatrix
from .base import ProgressClock, Report, Solution, ended
from .bordered_pencil import Pencil
from .choosing import swap_units
from .refitting import refit

__all__ = ["best_swap", "may_exceed", "rows_of", "swap_search"]
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
    pencil, rows, clock = Pencil.of(state, strength), _Rows(state.operator), ProgressClock(hook)
    while (new := best_swap(problem, state, pencil, rows, x, budget)) is not None:
        x = new
        if clock(x.n_iter):
            break
    return x


def best_swap(
    problem: Problem, state: DeflatedOperator, pencil: Pencil, rows: _Rows, x: Solution, budget: float
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
        whole = pencil.basis(op.submatrix(S).astype(np.float64), S)
        if state.deflation.semidefinite:  # A is semidefinite: j adds at most a_jj
            outside &= diagonal + whole.without_each().max() > enough
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
        C = rows.of(S)[:, used]
    place, others, variance = np.searchsorted(used, S), np.searchsorted(used, candidate), diagonal[used]
    local = pencil if pencil.Q is None else replace(pencil, Q=np.ascontiguousarray(pencil.Q[:, used]))
    near = np.ones((k, len(others)), bool)
    if plain:
        near = may_exceed(whole, C[:, others], variance[others], enough, SWAP_SLACK.of(op.dtype))
    for i in np.argsort(np.abs(x.entries), kind="stable"):
        if (state.choice is not None and state.choice.included[S[i]]) or not near[i].any():
            continue
        rest = np.delete(np.arange(k), i)
        part = np.ascontiguousarray(C[rest])
        basis = local.basis(part[:, place[rest]].astype(np.float64), place[rest])
        value = local.bordered_eigenvalues(part, place[rest], others[near[i]], variance, basis)
        if value.max() > enough:
            index = np.sort(np.append(S[rest], candidate[near[i]][ties(value)[0]]))
            new = refit(state, replace(x, index=index, entries=np.ones(k, op.dtype)))
            if new.objective > enough:
                return new
    return None


def may_exceed(
    basis: PencilBasis, C: NDArray[Any], variance: NDArray[np.float64], level: float, slack: float
) -> NDArray[np.bool_]:
    """Whether variable j, of A[S, j] = C[:, j] and a_jj, in the place of i may exceed an eigenvalue.

    With M = level I - A[S, S], not below 0, it does where c'(M without i)^-1 c > level - a_jj, c without c_i
    (the Schur complement). Let u be the leading eigenvector, e = level - lambda_1, R the inverse of M on
    the other eigenvectors, s = u'c, t = R c. Then that quadratic form is
    c't + (R_ii s^2 - e t_i^2 - 2 u_i s t_i)/(e R_ii + u_i^2); without e t_i^2, which is small, it is above.
    """
    lam, U = basis.eigenvalues, basis.W
    first, gap = level - lam[0], level - lam[1:]
    if not (first >= -slack * abs(level) and gap.min() > SWAP_GAP * abs(level)):
        return np.ones(C.shape, bool)
    first = max(first, 0.0)  # which rounding may have left below
    E = U.T @ C.astype(np.float64, copy=False)
    scaled, u, square = E[1:] / gap[:, None], U[:, :1], E[0] ** 2
    inverse = U[:, 1:] ** 2 @ (1 / gap)[:, None]
    width = first * inverse + u**2
    form = np.einsum("ij,ij->j", E[1:], scaled)
    excess = form + variance - level
    excess += slack * (np.abs(excess) + abs(level) + form)  # 2 |u_i s t_i| <= R_ii s^2 + u_i^2 c't
    left = np.hstack((width, inverse, -2 * u * U[:, 1:]))
    exceeds = left @ np.vstack((excess, (1 + 2 * slack) * square, scaled * E[0])) > 0
    return np.asarray(exceeds | (width < SWAP_GAP))


class _Rows:
    """Rows of A, kept from one support to the next."""

    def __init__(self, op: _core.Operator):
        self.op, self.rows = op, dict[int, NDArray[Any]]()

    def of(self, S: NDArray[np.intp]) -> NDArray[Any]:
        """A[S, :]."""
        new = np.array([j for j in S.tolist() if j not in self.rows], np.intp)
        known = self.rows | dict(zip(new.tolist(), rows_of(self.op, new), strict=True))
        self.rows = {j: known[j] for j in S.tolist()}
        return np.stack([*self.rows.values()])


def rows_of(op: _core.Operator, S: NDArray[np.intp]) -> NDArray[Any]:
    """A[S, :]."""
    C = np.empty((len(S), op.p), op.dtype)
    step = 1 if op.symmetric_form else 4  # of data, four in one read
    for start in range(0, len(S), step):
        part = S[start : start + step]
        if len(part) == 1:  # reads less, with the same bits
            C[start] = op.apply(part, np.ones(1, op.dtype))
            continue
        V = np.zeros((op.p, len(part)), op.dtype, order="F")
        V[part, np.arange(len(part))] = 1
        C[start : start + step] = op.apply_block(V).T
    return C
