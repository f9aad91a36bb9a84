"""Supports of least squares components, one variable more or less (objectives/ratio)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from .._limits import LEAST_SQUARES_ENTERING, LEAST_SQUARES_SWAP_WORK, RISE
from .._types import Array, Index
from ..linalg.pencil import PencilBasis, ties
from ..objectives.ratio import Ratio, Support
from .solution import ProgressClock

__all__ = ["backward_search", "forward_search", "swap_search"]
__dir__ = __all__.copy


def forward_search(ratio: Ratio, k: int, clock: ProgressClock, first: int | None = None) -> Iterator[Support]:
    """The supports of 1, ..., k variables; fewer where the others are spanned by them."""
    S = np.zeros(0, np.intp)
    M, G = np.zeros((0, ratio.p)), np.zeros((0, ratio.p))
    basis, free = PencilBasis.empty(0), ratio.usable.copy()
    new = first
    while len(S) < k:
        if new is None:
            new = ratio.best_addition(M, G, np.flatnonzero(free), basis)
        if new is None:
            return
        S, free[new] = np.append(S, new), False
        row_M, row_G = ratio.rows(S[-1:])
        M, G, new = np.vstack([M, row_M]), np.vstack([G, row_G]), None
        basis, order = ratio.basis(M[:, S], G[:, S]), np.argsort(S)
        yield Support(S[order], basis.W[order, 0], float(basis.eigenvalues[0]), len(S))
        if clock(len(S)):
            return


def backward_search(ratio: Ratio, clock: ProgressClock) -> Iterator[Support]:
    """The supports of ever fewer variables, from all that no others span."""
    S = np.flatnonzero(ratio.usable)
    M, G = ratio.blocks(S)
    while len(S):
        basis, order = ratio.basis(M, G), np.argsort(S)
        if not basis.in_null_space.any():
            yield Support(S[order], basis.W[order, 0], float(basis.eigenvalues[0]), ratio.p - len(S))
        if len(S) == 1 or clock(ratio.p - len(S)):
            return
        worst = int(ties(basis.without_each())[-1])
        S = np.delete(S, worst)
        M, G = (np.delete(np.delete(part, worst, 0), worst, 1) for part in (M, G))


def swap_search(
    ratio: Ratio, x: Support, clock: ProgressClock, work: float = LEAST_SQUARES_SWAP_WORK
) -> Support:
    """Variables swapped, one for one, for as long as that raises the value and costs no more than `work`."""
    k = len(x.index)
    S = x.index.copy()
    M, G = ratio.rows(S)
    candidate, unchanged, n_iter = _promising(ratio, S, M, G), 0, 0
    order = np.argsort(np.abs(x.x) * np.sqrt(ratio.variance[S]), kind="stable")
    step = 25.0 * k**3 + 4.0 * k**2 * len(candidate)
    while unchanged < k and len(candidate) and work > 0 and not clock(x.n_iter + n_iter):
        place = order[n_iter % k]
        n_iter, unchanged, work = n_iter + 1, unchanged + 1, work - step
        rest = np.delete(np.arange(k), place)
        basis = PencilBasis.empty(0)
        if k > 1:
            basis = ratio.basis(M[np.ix_(rest, S[rest])], G[np.ix_(rest, S[rest])])
        outside = candidate[~np.isin(candidate, S)]
        enough = x.value + RISE * x.value
        new = ratio.best_addition(M[rest], G[rest], outside, basis, enough)
        if new is None:
            continue
        trial, before = S.copy(), (M[place].copy(), G[place].copy())
        trial[place] = new
        row_M, row_G = ratio.rows(trial[[place]])
        M[place], G[place] = row_M[0], row_G[0]
        better = ratio.best_on(trial, (M, G), x.n_iter)
        if better.value > enough:
            S, x, unchanged = trial, better, 0
        else:
            M[place], G[place] = before
    return replace(x, n_iter=x.n_iter + n_iter)


def _promising(ratio: Ratio, S: Index, M: Array, G: Array) -> Index:
    """The variables that may enter a support: those that would add most to it."""
    free = ratio.usable.copy()
    free[S] = False
    outside = np.flatnonzero(free)
    if len(outside) > LEAST_SQUARES_ENTERING:
        value = ratio.values_with(M[:, outside], G[:, outside], outside, ratio.basis(M[:, S], G[:, S]))
        outside = np.sort(outside[np.argsort(-value, kind="stable")[:LEAST_SQUARES_ENTERING]])
    return outside
