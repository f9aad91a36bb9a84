"""Searches for the support of a sparse x: one variable more, one less, or one for another.

All variables that may join a support are judged by two products of matrices and one root each, and those
that may leave by one root each (Moghaddam, Weiss and Avidan 2006).
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from .. import _core
from .._limits import (
    PENCIL_ALL_SWAPS_WORK,
    PENCIL_BACKWARD_ORDER,
    PENCIL_ENTERING,
    PENCIL_ENUMERATED,
    PENCIL_PAIRS,
    PENCIL_START_WORK,
    PENCIL_STARTS,
    PENCIL_SWAP_ROUNDS,
    PENCIL_SWAP_WORK,
    PENCIL_TIED_VARIABLES,
    RISE,
    TIE,
    USUAL_BACKWARD_ORDER,
)
from ..linalg.pencil import PencilBasis, ties
from ..solvers.solution import ProgressHook, ended
from .form import Array, Index
from .pencil import Pencil, Solution, Unbounded

__all__ = [
    "Parts", "backward_search", "best_of_all", "best_pairs", "first_variable", "forward_search",
    "gradient_search", "greedy_searches", "promising_variables", "single_ratios", "swap_search",
]  # fmt: skip
__dir__ = __all__.copy

Parts = tuple[Index, tuple[int, ...]]  # of each variable its part, and of each part how many may be chosen


def greedy_searches(
    pencil: Pencil, k: int, strategy: str, progress: ProgressHook | None
) -> Iterator[Solution]:
    """The supports that the searches of a strategy find."""
    if strategy != "backward":
        yield forward_search(pencil, k, progress)
    if strategy in ("backward", "bidirectional"):
        yield backward_search(pencil, k, progress)
    if strategy != "auto" or k == 1:
        return
    if len(pencil.active) <= USUAL_BACKWARD_ORDER:
        # the ratio of all variables may have no bound where that of a few has
        with contextlib.suppress(Unbounded):
            yield backward_search(pencil, k, progress)
    affordable = int(PENCIL_START_WORK / (4 / 3 * k**3 * len(pencil.active)))
    if k > 2 and len(pencil.active) <= PENCIL_BACKWARD_ORDER:
        for pair in best_pairs(pencil, min(PENCIL_PAIRS, affordable)):
            with contextlib.suppress(Unbounded):
                yield forward_search(pencil, k, progress, pair)
    elif affordable > 0:
        ratio = single_ratios(pencil)
        starts = min(PENCIL_STARTS, len(pencil.active), affordable)
        for first in pencil.active[_core.select_largest(ratio - ratio.min(), starts)]:
            yield forward_search(pencil, k, progress, (int(first),))
    if math.comb(len(pencil.active), k) <= PENCIL_ENUMERATED:
        best = best_of_all(pencil, itertools.combinations(range(len(pencil.active)), k))
        if best is not None:
            yield pencil.leading(best, 0)


def best_of_all(pencil: Pencil, supports: Iterable[tuple[int, ...]]) -> Index | None:
    """The best of supports of equal size, of places among the active; None if B is singular on one."""
    S = np.array(list(supports))
    rows, columns = S[:, :, None], S[:, None, :]
    A, B = (form.block(pencil.active)[rows, columns] for form in (pencil.A, pencil.B))
    try:
        inverse = np.linalg.inv(np.linalg.cholesky(B))
    except np.linalg.LinAlgError:
        return None
    values = np.linalg.eigvalsh(inverse @ A @ inverse.transpose(0, 2, 1))[:, -1]
    return pencil.active[S[int(np.argmax(values))]] if np.isfinite(values).all() else None


def best_pairs(pencil: Pencil, count: int, apart: Array | None = None) -> list[tuple[int, int]]:
    """The pairs of variables with the largest values, each variable in two of them at most.

    Where variables are of two parts, `apart`, each pair has one of each.  The values are the larger roots of
    det(A - v B) = 0 on the pairs.
    """
    active = pencil.active
    A, B = pencil.A.block(active), pencil.B.block(active)
    a, b = A.diagonal(), B.diagonal()
    square = np.multiply.outer(b, b) - B * B
    middle = np.multiply.outer(a, b) / 2 + np.multiply.outer(b, a) / 2 - A * B
    last = np.multiply.outer(a, a) - A * A
    root = np.sqrt(np.maximum(middle * middle - square * last, 0))
    regular = square > pencil.least * np.multiply.outer(b, b)
    value = np.where(regular, (middle + root) / np.where(regular, square, 1), -np.inf)
    first, second = np.triu_indices(len(active), 1)
    if apart is not None:
        across = apart[active[first]] != apart[active[second]]
        first, second = first[across], second[across]
    value, used, chosen = value[first, second], np.zeros(len(active), int), list[tuple[int, int]]()
    for place in np.argsort(-value, kind="stable"):
        pair = [first[place], second[place]]
        if len(chosen) == count or not value[place] > -np.inf:
            break
        if (used[pair] < 2).all():
            used[pair] += 1
            chosen.append((int(active[pair[0]]), int(active[pair[1]])))
    return chosen


def single_ratios(pencil: Pencil) -> Array:
    """Of the active variables, each by itself; the least of all where earlier directions span it."""
    A, B = pencil.Ad[pencil.active], pencil.Bd[pencil.active]
    counts = pencil.least < B
    ratio = np.where(counts, A / np.where(counts, B, 1), np.inf)
    return np.where(counts, ratio, ratio[counts].min(initial=0.0))


def first_variable(pencil: Pencil) -> int:
    """The variable with the largest ratio or, of several, that with the best partner."""
    active = pencil.active
    tied = active[ties(single_ratios(pencil), TIE.of(pencil.dtype))][:PENCIL_TIED_VARIABLES]
    if len(tied) == 1 or len(active) == 1:
        return int(tied[0])
    pairs = []
    for i in tied:
        S = np.array([i])
        basis = pencil.basis_on(S)
        others = np.delete(active, np.searchsorted(active, i))
        pairs.append(pencil.bordered_eigenvalues(pencil.A.rows(S), pencil.B.rows(S), basis, S, others).max())
    return int(tied[ties(np.array(pairs))[0]])


class _Growing:
    """A support to which variables are added, with the rows of A and of B that belong to them."""

    def __init__(self, pencil: Pencil, K: int, parts: Parts | None):
        self.pencil, self.size = pencil, 0
        self.part, counts = (np.zeros(pencil.A.p, np.intp), (K,)) if parts is None else parts
        self.room = np.array(counts)
        self.A, self.B = np.empty((K, pencil.A.p)), np.empty((K, pencil.A.p))
        self.index, self.free = np.empty(K, np.intp), np.zeros(pencil.A.p, bool)
        self.free[pencil.active] = True

    def add(self, new: int) -> tuple[Index, Array, Array, PencilBasis]:
        """The support with one variable more, its rows, and the pencil on it."""
        k = self.size
        self.size = k + 1
        self.index[k], self.free[new] = new, False
        self.room[self.part[new]] -= 1
        S, A, B = self.index[: k + 1], self.A[: k + 1], self.B[: k + 1]
        A[k], B[k] = self.pencil.A.rows(S[k:])[0], self.pencil.B.rows(S[k:])[0]
        return S, A, B, self.pencil.basis_of(A[:, S], B[:, S], S)

    def candidates(self) -> Index:
        """The variables that may follow."""
        return np.flatnonzero(self.free & (self.room[self.part] > 0))


def forward_search(
    pencil: Pencil, K: int, progress: ProgressHook | None, first: tuple[int, ...] = (),
    parts: Parts | None = None,
) -> Solution:  # fmt: skip
    """Up to cardinality K, by the largest value, from the variables `first`."""
    support = _Growing(pencil, K, parts)
    begin = [*(first or (first_variable(pencil),))][::-1]
    new = begin.pop()
    while True:
        S, A, B, basis = support.add(new)
        if progress is not None:
            progress(len(S))
        if len(S) == K:
            return pencil.leading(S, K, basis=basis)
        if begin:
            new = begin.pop()
            continue
        candidate = support.candidates()
        new = int(candidate[ties(pencil.bordered_eigenvalues(A, B, basis, S, candidate))[0]])


def gradient_search(pencil: Pencil, K: int) -> Index:
    """Up to cardinality K, by the largest slope of the ratio."""
    support, new = _Growing(pencil, K, None), first_variable(pencil)
    while True:
        S, A, B, basis = support.add(new)
        if len(S) == K:
            return np.sort(S)
        x, value = (basis.W[:, 0], basis.eigenvalues[0]) if len(basis.eigenvalues) else (np.ones(len(S)), 0.0)
        # |Ax - rho Bx| for x'Bx = 1, in units in which B_jj = 1
        slope = np.abs(x @ A - value * (x @ B))
        slope = np.where(support.free, slope / np.sqrt(np.maximum(pencil.Bd, 1e-3)), -1.0)
        new = int(np.argmax(slope))


def backward_search(pencil: Pencil, K: int, progress: ProgressHook | None) -> Solution:
    """From all variables, down to cardinality K."""
    S = pencil.active
    GA, GB = pencil.A.block(S), pencil.B.block(S)
    removed = 0
    while True:
        basis = pencil.basis_of(GA, GB, S)
        if len(S) == K:
            return pencil.leading(S, removed, basis=basis)
        worst = int(ties(basis.without_each())[-1])
        S = np.delete(S, worst)
        GA, GB = (np.delete(np.delete(G, worst, 0), worst, 1) for G in (GA, GB))
        removed += 1
        if progress is not None:
            progress(removed)


def swap_search(
    pencil: Pencil, x: Solution, progress: ProgressHook | None, work: float | None = None,
    part: Index | None = None,
) -> Solution:  # fmt: skip
    """Variables swapped, one for one, for as long as that raises the value and costs no more than `work`.

    Where each variable is of a `part`, another of the same takes its place.
    """
    S, k = x.index.copy(), len(x.index)
    if not x.objective > -np.inf:
        return replace(x, n_iter=0)
    RA, RB = pencil.A.rows(S), pencil.B.rows(S)
    room = int(PENCIL_SWAP_WORK / (4.0 * k**3))
    best, n_iter, unchanged = x, 0, 0
    order = np.argsort(np.abs(x.value), kind="stable")
    candidates = promising_variables(pencil, RA, RB, S, room)
    if len(candidates) == 0:
        return replace(x, n_iter=0)
    p = len(pencil.active)
    if work is None:
        work = max(PENCIL_ALL_SWAPS_WORK, 2 * (4 / 3 * k**3 * p + 6 * k**4))
    decomposition, refreshment = 25.0 * k**3, 25.0 * k**3 + 2.0 * k**2 * p
    reading = sum(50.0 * form.factor.shape[0] * p for form in (pencil.A, pencil.B) if form.factor is not None)
    stale = False
    while unchanged < k and n_iter < PENCIL_SWAP_ROUNDS * k and work > 0 and not ended(progress):
        if stale and n_iter % k == 0:
            candidates, stale = promising_variables(pencil, RA, RB, S, room), False
            work -= refreshment
        work -= decomposition + 2.0 * k**2 * len(candidates)
        place = order[n_iter % k]
        n_iter += 1
        rest = np.delete(np.arange(k), place)
        if k == 1:
            basis = PencilBasis.empty(0)
        else:
            basis = pencil.basis_of(RA[np.ix_(rest, S[rest])], RB[np.ix_(rest, S[rest])], S[rest])
        outside = candidates[~np.isin(candidates, S)]
        unchanged += 1
        if part is not None:
            outside = outside[part[outside] == part[S[place]]]
        if len(outside) == 0:
            continue
        others = np.ix_(rest, outside)
        value = pencil.bordered_eigenvalues(RA[others], RB[others], basis, S[rest], outside)
        enough = best.objective + RISE * abs(best.objective)
        if not value.max() > enough:
            continue
        trial = S.copy()
        trial[place] = outside[ties(value)[0]]
        one, before = trial[[place]], (RA[place].copy(), RB[place].copy())
        RA[place], RB[place] = pencil.A.rows(one)[0], pencil.B.rows(one)[0]
        work -= decomposition + reading
        new = pencil.leading(trial, 0, basis=pencil.basis_of(RA[:, trial], RB[:, trial], trial))
        if new.objective > enough:
            S, best, unchanged = trial, new, 0
            if progress is not None:
                progress(n_iter)
            stale = room < p
        else:
            RA[place], RB[place] = before
    return replace(best, n_iter=n_iter, converged=x.converged and unchanged >= k)


def promising_variables(pencil: Pencil, RA: Array, RB: Array, S: Index, room: int) -> Index:
    """The variables outside a support that may enter: those that would add most."""
    free = np.zeros(pencil.A.p, bool)
    free[pencil.active] = True
    free[S] = False
    outside = np.flatnonzero(free)
    room = max(room, PENCIL_ENTERING)
    if len(outside) <= room:
        return outside
    basis = pencil.basis_of(RA[:, S], RB[:, S], S)
    value = pencil.bordered_eigenvalues(RA, RB, basis, S, outside, rough=False)
    return np.sort(outside[_core.select_largest(value - value.min(), room)])
