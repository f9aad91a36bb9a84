"""Swapping variables of a support for others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from .. import _core
from .._limits import RISE, SWAP_GAP, SWAP_SLACK, SWAPS_AT_A_TIME, TIE
from .._types import AnyArray, Array, Index, Mask
from ..linalg.pencil import PencilBasis
from ..operators.deflation import DeflatedOperator
from ..operators.submatrix import KeptRows, kept_rows, largest_submatrix
from .refitting import refit
from .solution import ProgressClock, Solution, ended
from .variance import swap_units


def swap_search(state: DeflatedOperator, x: Solution, budget: float) -> Solution:
    """Variables swapped, one for one, for as long as that raises the objective; then values re-fitted.

    No support that differs in one variable is better than the one returned, unless to see that would take
    more multiplications than `budget`.
    """
    k, p = len(x.index), state.p
    if budget <= 0 or state.diagonal is None or k == p or k < 2 or x.objective == -np.inf:
        return x
    if ended(state.hook):
        return x
    if not state.supports.simple:
        return swap_units(state, x)
    if 20.0 * k**4 > budget or k > largest_submatrix(state.operator):
        return x
    affordable = float(k) * state.problem.cost + float(k) ** 2 * p <= budget
    if state.quotient or state.constrained:
        return swap_units(state, x) if affordable else x
    rows, clock, begin = kept_rows(state.operator), ProgressClock(state.hook), x
    if state.matrix is not None and not state.supports.shapes:
        x, complete = _swapped(state.matrix, state, x, clock)
        if complete:
            return x if x is begin else refit(state, x)
    basis = PencilBasis.ordinary(state.operator.submatrix(x.index).astype(np.float64))
    while (better := best_swap(state, rows, x, basis, budget, affordable)) is not None:
        x, basis = better
        if clock(x.n_iter):
            break
    if affordable and not _is_apart(x, basis):  # where the kernel has no bounds
        x = swap_units(state, x)
    return x if x is begin else refit(state, x)


def _is_apart(x: Solution, basis: PencilBasis) -> bool:
    """Whether the second eigenvalue of A on the support is below what is to be exceeded."""
    enough = x.objective + RISE * abs(x.objective)
    return bool(enough - basis.eigenvalues[1] > SWAP_GAP * abs(enough))


def _swapped(
    A: AnyArray, state: DeflatedOperator, x: Solution, clock: ProgressClock
) -> tuple[Solution, bool]:
    """x after swaps by a kernel, which reads rows of A where they are; whether there are no more to make."""
    diagonal = np.ascontiguousarray(state.diagonal, np.float64)
    limits = RISE, SWAP_GAP, SWAP_SLACK.of(A.dtype), TIE.double, SWAPS_AT_A_TIME
    while True:
        index, vector, objective, ended = _core.swap(A, x.index, diagonal, *limits)
        unchanged = np.array_equal(index, x.index)
        if not unchanged:
            x = replace(x, index=index, entries=vector.astype(A.dtype), objective=objective)
        if ended or clock(x.n_iter):
            return x, True
        if unchanged:
            return x, False


def best_swap(
    state: DeflatedOperator, rows: KeptRows, x: Solution, basis: PencilBasis, budget: float,
    affordable: bool,
) -> tuple[Solution, PencilBasis] | None:  # fmt: skip
    """x with one variable swapped for a better one, the smallest entry first; None if there is none.

    The same with the eigenpairs of A on its support, of which x is the first.
    """
    op, S, k = state.operator, x.index, len(x.index)
    diagonal = np.ascontiguousarray(state.diagonal, np.float64)
    enough = x.objective + RISE * abs(x.objective)
    outside = np.ones(op.p, bool)
    outside[S] = False
    if state.deflation.semidefinite:  # A is semidefinite: j adds at most a_jj
        outside &= diagonal + basis.without_each().max() > enough
        computed = not op.symmetric_form and len(rows.lacking(S)) > 4  # which costs more than a product
        if affordable and computed:
            outside &= within_reach(state, basis, S, diagonal, enough)
    candidate = np.flatnonzero(outside)
    if len(candidate) == 0 or not _is_apart(x, basis):
        return None
    used = np.sort(np.append(S, candidate))
    few = not op.symmetric_form and len(used) <= largest_submatrix(op) and len(used) ** 2 < k * op.p
    if few and float(op.m) * len(used) ** 2 <= budget:
        place = np.searchsorted(used, S)
        C, candidate, diagonal = op.submatrix(used)[place], np.searchsorted(used, candidate), diagonal[used]
    elif affordable:
        used, (C,) = np.arange(op.p), rows.between(S)
    else:
        return None
    leaving = np.argsort(np.abs(x.entries), kind="stable")
    leaving = leaving[~state.supports.included[S[leaving]]]
    for i, j in _bounded(basis, C, leaving, candidate, diagonal, enough):
        index = np.sort(np.append(np.delete(S, i), used[j]))
        known = _exchanged(C, S, i, j, diagonal) if op.by_passes else op.submatrix(index)
        found = PencilBasis.ordinary(known.astype(np.float64))
        objective, entries = float(found.eigenvalues[0]), found.W[:, 0].astype(op.dtype)
        if objective > enough:
            return replace(x, index=index, entries=entries, objective=objective), found
    return None


def _exchanged(C: AnyArray, S: Index, i: int, j: int, diagonal: Array) -> AnyArray:
    """A between the variables of S, j in place of S[i], by C = A[S, :]; so blocks need not be read."""
    kept = np.delete(np.arange(len(S)), i)
    own = C[np.ix_(kept, S[kept])]
    G = np.block([[own, C[kept, j][:, None]], [C[kept, j], diagonal[j]]])
    order = np.argsort(np.append(S[kept], j))
    return G[np.ix_(order, order)]


def within_reach(
    state: DeflatedOperator, basis: PencilBasis, S: Index, diagonal: Array, level: float
) -> Mask:
    """Which variables may raise the largest eigenvalue of a support above the level, from one product with A.

    As in exchange.c, but with another bound on c't, c = A_Sj. A = F'F is semidefinite, so that the squares of
    the coefficients b_m of c along the eigenvectors have sum_m b_m^2 / lambda_m <= a_jj, and
    c't = sum_(m > 1) b_m^2 / (level - lambda_m) <= lambda_2 / (level - lambda_2) (a_jj - s^2 / lambda_1).
    """
    slack, lam, U = SWAP_SLACK.of(state.operator.dtype), basis.eigenvalues, basis.W
    gap = level - lam[1]
    if not gap > SWAP_GAP * abs(level):
        return np.ones(len(diagonal), bool)
    inverse = (U[:, 1:] ** 2 / (level - lam[1:])).sum(axis=1)
    width = max(level - lam[0], 0.0) * inverse + U[:, 0] ** 2
    if not width.min() > 0:
        return np.ones(len(diagonal), bool)
    s = np.abs(state.operator.apply(S, np.ascontiguousarray(U[:, 0], state.operator.dtype)), dtype=np.float64)
    form = max(lam[1], 0.0) / gap * np.maximum(diagonal - s**2 / lam[0], 0) + slack * np.abs(diagonal)
    reach = np.sqrt(form) + s * np.sqrt(inverse / width).max()
    return np.asarray((1 + 2 * slack) * reach**2 + slack * abs(level) >= level - diagonal)


def _bounded(
    basis: PencilBasis, C: AnyArray, leaving: Index, candidate: Index, diagonal: Array, level: float
) -> Iterator[tuple[int, int]]:
    """Exchanges that raise the largest eigenvalue of a support above the level, by the bounds of a kernel.

    C has the rows of A at the support.
    """
    limits = level, SWAP_SLACK.of(C.dtype), TIE.double
    while (
        found := _core.exchange(C, leaving, candidate, diagonal, basis.eigenvalues, basis.W, *limits)
    ) is not None:
        yield int(leaving[found[0]]), found[1]
        leaving = leaving[found[0] + 1 :]
