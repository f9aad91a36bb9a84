"""Variance as an objective over supports (supports/objective), and the searches that end others.

`LeadingEigenvalue` is for supports of single variables with entries of any sign. It keeps the rows of A that
it needs. `Variance` is for groups and given signs. Where A may be formed, its bounds come from submatrices,
and only values from re-fitting; elsewhere each support that is tried is re-fitted.

Other searches end with a brief tree (`brief_search`) and with swaps (`swap_search`), for both kinds of
supports.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property, partial

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
    EXACT_SLACK,
    GREEDY_PENALTIES,
    GREEDY_UNITS,
    QUOTIENT_NULL,
    REFIT_RISE,
    RISE,
    SWAP_GAP,
    SWAP_WORK,
    SWAPS_AT_A_TIME,
    TIE,
    TIE_WORK,
    TIED_VARIABLES,
    TREE_PENALTY,
)
from .._types import AnyArray, Array, Index, Mask
from ..linalg.eigen import PencilBasis
from ..linalg.scaling import largest_magnitude, with_entries
from ..objectives.eigenvalue_sum import LeadingSum
from ..operators.deflation import DeflatedOperator
from ..operators.gram import (
    KeptRows,
    kept_rows,
    largest_submatrix,
    rows_at_once,
    symmetric_submatrix,
)
from ..supports.admissible import Units
from ..supports.objective import Bound, Objective, kept
from ..supports.search import swap
from ..supports.tree import Tree
from .matrix_search import Search
from .refitting import fitted_on, refit
from .solution import ProgressClock, Solution, ended
from .starts import power_start

# ---- supports of single variables: the largest eigenvalue, with one variable more or less ---------------


class LeadingEigenvalue(Objective):
    """The largest x'Ax/x'Bx on a support of single variables of any sign, with B = I + strength QQ'.

    Q is the basis of what the state has removed, by rows. With strength 0 it is None, and the value is the
    largest eigenvalue. With -1 it is the quotient of generalized deflation. A large strength penalizes what
    of x lies in the span of Q. Directions with x'Bx of at most `least` do not count.

    `order` has the variables that were asked about last, in the order of joining. `_joined` holds their rows
    of A, and `norm` the squared norms of the columns of these rows. `next_to(most)` names variables whose
    rows are likely to be asked for next, so that several rows come with one pass over the data.
    """

    state: DeflatedOperator
    op: _core.Operator
    Q: Array | None
    strength: float
    least: float
    rows: KeptRows
    most_tried: int
    tie: float
    starts: int

    def __init__(self, state: DeflatedOperator, k: int, strength: float = 0.0, rows: KeptRows | None = None):
        super().__init__(state.supports.within(k))
        self.state, self.op = state, state.operator
        self.tie, self.most_tried = TIE.of(self.op.dtype), self.op.p
        self.Q = np.stack(state.basis) if strength else None
        self.strength, self.least = strength, QUOTIENT_NULL.of(self.op.dtype)
        self.rows = kept_rows(self.op) if rows is None else rows
        work = float(1 if self.op.symmetric_form else self.op.m) * self.op.p
        self.starts = max(16, min(TIED_VARIABLES, int(TIE_WORK / work)))
        self.next_to: Callable[[int], Index] | None = None
        self.order: Index = np.empty(0, np.intp)
        self.asked: Units = np.zeros(self.op.p, bool)
        self.norm: Array = np.zeros(self.op.p)

    @cached_property
    def diagonal(self) -> Array:
        return np.ascontiguousarray(self.state.variances, np.float64)

    @cached_property
    def _whole(self) -> Array:
        return symmetric_submatrix(self.op)

    @cached_property
    def _joined(self) -> AnyArray:
        return np.empty((self.supports.room, self.op.p), self.op.dtype)

    def _with_rows(self, units: Units) -> tuple[Index, AnyArray, Array]:
        """Return the variables in the order of joining, their rows of A, and A between them.

        Of more variables than there is room for, no rows are returned.
        """
        if self.supports.left(units) < 0:
            S = self.supports.index(units)
            return S, self._whole[:0], self._whole[np.ix_(S, S)]
        if (self.asked & ~units).any():  # not all that was asked about last is in it: begin anew
            self.order, self.norm, self.asked = self.order[:0], np.zeros(self.op.p), self.asked & False
        joined = np.flatnonzero(units & ~self.asked)
        if len(joined):
            (new,) = self.rows.between(joined, None, self.next_to)
            self._joined[len(self.order) :][: len(joined)] = new
            self.order, self.asked = np.append(self.order, joined), units
            self.norm = self.norm + np.square(new, dtype=np.float64).sum(axis=0)
        C = self._joined[: len(self.order)]
        return self.order, C, C[:, self.order].astype(np.float64)

    def _between(self, units: Units) -> tuple[Index, Array]:
        """Return the variables of the units, ascending, and A between them."""
        S, _, G = self._with_rows(units)
        place = np.argsort(S)
        return S[place], G[np.ix_(place, place)]

    def _basis(self, G: AnyArray, S: Index) -> PencilBasis:
        """Return the eigenpairs of the pencil (G, B) on the support S, where G is A between its variables."""
        if self.Q is None:
            return PencilBasis.ordinary(G)
        U, root, _ = np.linalg.svd(self.Q[:, S].T)
        square = np.ones(len(S))
        square[: len(root)] += self.strength * root**2
        return PencilBasis.of(G, square, U, square > self.least)

    def solution(self, units: Units) -> Solution:
        """Return the best vector on the support, of unit norm."""
        S, G = self._between(units)
        if self.Q is None:
            value, x = _core.leading_eigenvector(np.ascontiguousarray(G))
            x[~G.any(axis=0)] = 0  # rounding must not give these variables a loading
        else:
            basis, value, x = self._basis(G, S), -np.inf, np.zeros(len(S))
            if basis.W.shape[1]:  # else every x on the support lies in the span of Q
                value, x = float(basis.eigenvalues[0]), basis.W[:, 0]
                x = x / np.linalg.norm(x)
        x = x if x.any() else np.eye(1, len(x))[0]
        return Solution(S, x.astype(self.op.dtype), value, len(S), True)

    def value(self, units: Units) -> float:
        return self.solution(units).objective

    def with_each(self, units: Units, others: Index) -> Array:
        """Solve a secular equation for each of the others; a bound decides most of them without."""
        if not units.any():
            square = np.ones(len(others))
            if self.Q is not None:
                square += self.strength * (self.Q[:, others] ** 2).sum(axis=0)
            counts = square > self.least
            return np.where(counts, self.diagonal[others] / np.where(counts, square, 1), -np.inf)
        S, C, G = self._with_rows(units)
        basis, norm = self._basis(G, S), self.norm if self.Q is None else None
        R = None if self.Q is None else np.asfortranarray(basis.W.T @ self.Q[:, S].T)
        if len(S) > 1 and basis.W.shape[1]:
            wanted = partial(self._steepest, C, basis.W[:, 0], others)
            self.next_to = wanted if rows_at_once(self.op) else None
        return _core.bordered_eigenvalues(
            C, others, self.diagonal, basis.eigenvalues, basis.W, norm, self.Q, R, self.strength, self.least
        )

    def _steepest(self, C: AnyArray, x: Array, others: Index, most: int) -> Index:
        """Return the variables among the others with the largest entries of A x: `most`, if there is room."""
        count = min(self.supports.room - len(C) - 1, most, len(others))
        if count <= 0:
            return others[:0]
        y = x.astype(C.dtype) @ C
        return others[_core.select_largest(np.ascontiguousarray(y[others]), count)]

    def without_each(self, units: Units, members: Index) -> Array:
        S, G = self._between(units)
        return self._basis(G, S).without_each()[np.searchsorted(S, members)]

    def pairs(self, starts: Index) -> Array:
        """Return the values of the best pairs with each start; the rows of several starts come together."""
        self.next_to = lambda most: np.array(self.rows.lacking(starts)[:most], np.intp)
        values, self.next_to = super().pairs(starts), None
        return values

    def promise(self, units: Units) -> Array:
        """Return the magnitudes of the units' leading eigenvector; without units, of a vector near A's."""
        if not units.any():
            return np.abs(power_start(self.op, np.random.default_rng(self.state.seed)))
        x = self.solution(units)
        return with_entries(self.op.p, x.index, np.abs(x.entries))


class Feasible(LeadingEigenvalue):
    """The largest x'Ax, or x'Ax/x'Bx, of the feasible x on a support: Q'x = 0 under a constraint.

    `with_each` and `without_each` have eigenvalues of the pencil, which are bounds of these values.
    """

    exact = False

    def solution(self, units: Units) -> Solution:
        """Return the component of the best feasible vector on the support."""
        return fitted_on(self.state, self.supports.index(units))


class Slopes(LeadingEigenvalue):
    """The same value, but only the variable with the largest slope |(A x)_j| joins.

    A forward search then takes a few products with A, and no eigenvalue for each variable.
    """

    def _between(self, units: Units) -> tuple[Index, Array]:
        if self.state.diagonal is None or self.supports.room > largest_submatrix(self.op):
            return super()._between(units)
        S = self.supports.index(units)
        return S, self.op.submatrix(S).astype(np.float64)

    def entering(self, units: Units, others: Index) -> Index:
        """Return the variable of the largest slope.

        Without units, return all others or, if variances are not known, the variable of largest promise.
        """
        x = self.solution(units) if units.any() else None
        if x is None:
            return others if self.state.diagonal is not None else np.array([np.argmax(self.promise(units))])
        running, strength = self.op, self.strength
        if strength < 0:
            running = self.op.with_quotient()
        elif strength > 0 and x.objective > 0:
            running = self.op.with_penalty(strength * x.objective)
        place, slope, _ = running.largest(x.index, x.entries, len(x.index) + 1)
        outside = ~units[place]
        return place[outside][[np.argmax(np.abs(slope[outside]))]]

    def pairs(self, starts: Index) -> Array:
        every = LeadingEigenvalue(self.state, 2, self.strength, self.rows)
        return every.pairs(starts)

    def with_each(self, units: Units, others: Index) -> Array:
        single = units.any() or self.state.diagonal is None
        return np.zeros(len(others)) if single else super().with_each(units, others)


# ---- supports of groups, and of given signs ---------------------------------------------------------


class Variance(Objective):
    """The largest x'Ax, or x'Ax/x'Bx under generalized deflation, of the feasible x on a support of units.

    `matrix` bounds it by eigenvalues of submatrices, where A is formed. `near` is the dense vector from which
    values are sought.
    """

    state: DeflatedOperator
    op: _core.Operator
    most_tried: int
    rise: float
    slack: float

    def __init__(
        self, state: DeflatedOperator, k: int, A: Array | None = None, most_tried: int = GREEDY_UNITS
    ):
        super().__init__(state.supports.within(k))
        self.state, self.op, self.most_tried = state, state.operator, most_tried
        self.rise = self.slack = REFIT_RISE.of(self.op.dtype)
        self.near: Array = np.zeros(self.op.p)
        if A is None and not state.quotient and self.op.p <= largest_submatrix(self.op):
            A = symmetric_submatrix(self.op)
        self.matrix: LeadingSum | None = None if A is None or state.quotient else LeadingSum(A, self.supports)
        self.exact: bool = self.matrix is None or (self.matrix.exact and not state.constrained)
        if self.matrix is not None and state.constrained:  # x'Ax = x'(A - t QQ')x where Q'x = 0
            Q = np.stack(state.basis, axis=1)
            t = TREE_PENALTY * largest_magnitude(self.matrix.A)
            self.matrix.bounding = self.matrix.A, self.matrix.A - t * (Q @ Q.T)

    @kept()
    def solution(self, units: Units) -> Solution:
        """Return the component of the best values on the units."""
        S = self.supports.index(units)
        start = self.near[S]
        if not start.any():
            start = self.supports.ones(S)
        start = (start / np.linalg.norm(start)).astype(self.op.dtype)
        return refit(self.state, Solution(S, start, -np.inf))

    def know(self, x: Solution) -> Units:
        """Return the units of a component that is known, and take its values, so that none are sought."""
        units = self.supports.mask(x.index)
        self.answers["solution"] = {units.tobytes(): x}
        return units

    def value(self, units: Units) -> float:
        return self.solution(units).objective if units.any() else 0.0

    def with_each(self, units: Units, others: Index) -> Array:
        return (
            super().with_each(units, others) if self.matrix is None else self.matrix.with_each(units, others)
        )

    def promise(self, units: Units) -> Array:
        """Return the squared norm of A x on each unit, with x the component of these units.

        Without units, order them by their variances, and where these tie, by a vector near the leading
        eigenvector.
        """
        supports = self.supports
        if not units.any():
            variance = supports.per_unit(np.maximum(self.state.variances, 0).astype(np.float64))
            dense = power_start(self.op, np.random.default_rng(self.state.seed)).astype(np.float64)
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


def swap_units(state: DeflatedOperator, x: Solution) -> Solution:
    """Swap units one for one while that raises the variance, and return the component at the end.

    Of groups and variables with signs only those with large entries of A x are tried, and swaps are few.
    """
    k, clock = state.supports.cardinality_of(x.index), ProgressClock(state.hook)
    begin, most = state.supports.mask(x.index), math.inf
    objective: LeadingEigenvalue | Variance
    if not state.supports.simple:
        objective, most = Variance(state, k, most_tried=CHOICE_SWAPS), CHOICE_SWAPS
        objective.know(x)
    elif state.quotient or state.constrained:
        objective = Feasible(state, k, -1.0 if state.quotient else GREEDY_PENALTIES[-1])
    else:
        objective = LeadingEigenvalue(state, k)
    value, units = swap(objective, begin, lambda n: n >= most or clock(n))
    return x.moved_to(objective.solution(units)) if value > x.objective else x


class UnitTree(Tree):
    """The tree over units, which begins with a component that is known."""

    objective: Variance

    def __init__(self, state: DeflatedOperator, A: AnyArray, k: int, best: Solution, tol: float = 0.0):
        objective = Variance(state, k, A)
        super().__init__(objective, objective.know(best), tol)

    def best(self) -> Solution:
        return self.objective.solution(self.units)


def improved(state: DeflatedOperator, x: Solution, k: int) -> Solution:
    """Improve the component of a search that never drops a variable: by a brief tree, then by swaps."""
    return swap_search(state, brief_search(state, x, k), SWAP_WORK)


def brief_search(state: DeflatedOperator, x: Solution, k: int) -> Solution:
    """Return the best component of k nonzeros that a tree of few nodes finds, or x if that is no better."""
    op = state.operator
    p = op.p
    # Refuse what a brief tree is not for: a large matrix, or one that is costly to form
    left = min(BRIEF_NODES, int(BRIEF_WORK / (p * k) ** 2))
    # x has fewer than k units if no others have any variance; where variables are counted, room may be left
    counted = state.supports.counts_variables or state.supports.cardinality_with(x.index) == k
    lacks = not counted and not state.constrained
    if left == 0 or p > min(BRIEF_ORDER, largest_submatrix(op)) or k == p or lacks:
        return x
    if (
        state.diagonal is None
        or ended(state.hook)
        or (not op.symmetric_form and float(op.m) * p**2 > BRIEF_FORMING)
    ):
        return x
    # Search A itself, by a tree over units or by the one of single variables, which is in C
    A = symmetric_submatrix(op)
    if not state.supports.simple:
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
    return x.moved_to(best)


# ---- swapping variables of a support for others -------------------------------------------------------


def swap_search(state: DeflatedOperator, x: Solution, budget: float) -> Solution:
    """Swap variables one for one while that raises the objective, then re-fit the values.

    No support that differs in one variable is better than the one returned, unless it would take more
    multiplications than `budget` to see that. Groups and variables with signs are swapped by `swap_units`.
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
    # Whether the budget allows all rows of A at the support, as swaps under a constraint or a quotient need
    affordable = float(k) * state.problem.cost + float(k) ** 2 * p <= budget
    if state.quotient or state.constrained:
        return swap_units(state, x) if affordable else x
    # All swaps by one call where A itself is in memory
    rows, clock, begin = kept_rows(state.operator), ProgressClock(state.hook), x
    if state.matrix is not None and not state.supports.shapes:
        x, complete = _swapped(state, state.matrix, x, clock)
        if complete:
            return x if x is begin else refit(state, x)
    # Else swap by swap, from the eigenpairs of A on the support and bounds for the variables outside
    basis = PencilBasis.ordinary(state.operator.submatrix(x.index).astype(np.float64))
    while (better := best_swap(state, rows, x, basis, budget, affordable)) is not None:
        x, basis = better
        if clock(x.n_iter):
            break
    if affordable and not _is_apart(x, basis):  # the bounds need a gap between the first two eigenvalues
        x = swap_units(state, x)
    return x if x is begin else refit(state, x)


def _is_apart(x: Solution, basis: PencilBasis) -> bool:
    """Whether the second eigenvalue of A on the support is well below the value that a swap must exceed."""
    enough = x.objective + RISE * abs(x.objective)
    return bool(enough - basis.eigenvalues[1] > SWAP_GAP * abs(enough))


def _swapped(
    state: DeflatedOperator, A: AnyArray, x: Solution, clock: ProgressClock
) -> tuple[Solution, bool]:
    """Return x after the swaps that a kernel finds on A in memory, and whether that is all.

    It is not, if the two largest eigenvalues are too close for the kernel's bounds.
    """
    diagonal = np.ascontiguousarray(state.diagonal, np.float64)
    limits = RISE, SWAP_GAP, EXACT_SLACK.of(A.dtype), TIE.double, SWAPS_AT_A_TIME
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
    """Return x with one variable swapped for a better one, and the eigenpairs of A on its new support.

    None if there is no such swap. The variables of the smallest entries are tried first. `basis` has the
    eigenpairs on the support of x; `affordable` says whether the budget allows all rows of A at the support.
    """
    op, S, k = state.operator, x.index, len(x.index)
    stored = op.symmetric_form and not op.by_passes  # A itself, of which rows cost nothing
    diagonal = np.ascontiguousarray(state.diagonal, np.float64)
    enough = x.objective + RISE * abs(x.objective)
    # Which variables outside may raise the eigenvalue?
    outside = np.ones(op.p, bool)
    outside[S] = False
    if state.deflation.semidefinite:  # A is semidefinite: j adds at most a_jj
        outside &= diagonal + basis.without_each().max() > enough
        computed = not stored and len(rows.lacking(S)) > 4  # these rows cost more than a product
        if affordable and computed:
            outside &= within_reach(state, basis, S, diagonal, enough)
    candidate = np.flatnonzero(outside)
    if len(candidate) == 0 or not _is_apart(x, basis):
        return None
    # C: the rows of A at the support, at the candidates alone where these are few, or at all variables
    used = np.sort(np.append(S, candidate))
    few = not stored and len(used) <= largest_submatrix(op) and len(used) ** 2 < k * op.p
    if few and float(op.n) * len(used) ** 2 <= budget:
        place = np.searchsorted(used, S)
        C, candidate, diagonal = op.submatrix(used)[place], np.searchsorted(used, candidate), diagonal[used]
    elif affordable:
        used, place, (C,) = np.arange(op.p), S, rows.between(S)
    else:
        return None
    # The first exchange that bounds allow, and that the eigenvalues of the new support confirm
    leaving = np.argsort(np.abs(x.entries), kind="stable")
    leaving = leaving[~state.supports.included[S[leaving]]]
    for i, j in _bounded(basis, C, leaving, candidate, diagonal, enough):
        index = np.sort(np.append(np.delete(S, i), used[j]))
        known = _exchanged(C, place, i, j, diagonal) if op.by_passes else op.submatrix(index)
        found = PencilBasis.ordinary(known.astype(np.float64))
        objective, entries = float(found.eigenvalues[0]), found.W[:, 0].astype(op.dtype)
        if objective > enough:
            return replace(x, index=index, entries=entries, objective=objective), found
    return None


def _exchanged(C: AnyArray, S: Index, i: int, j: int, diagonal: Array) -> AnyArray:
    """Return A between some variables, with j in the place of S[i], from its rows C; S are their columns.

    No blocks of the data need be read for it.
    """
    kept = np.delete(np.arange(len(S)), i)
    own = C[np.ix_(kept, S[kept])]
    G = np.block([[own, C[kept, j][:, None]], [C[kept, j], diagonal[j]]])
    order = np.argsort(np.append(S[kept], j))
    return G[np.ix_(order, order)]


def within_reach(
    state: DeflatedOperator, basis: PencilBasis, S: Index, diagonal: Array, level: float
) -> Mask:
    """Mark the variables that may raise the largest eigenvalue of a support above the level.

    This takes one product with A. The argument is that of exchange.c with another bound on c't, for c = A_Sj.
    A = F'F is semidefinite, so the coefficients b_m of c along the eigenvectors satisfy
    sum_m b_m^2 / lambda_m <= a_jj. With s = b_1,

        c't = sum_(m > 1) b_m^2 / (level - lambda_m) <= lambda_2 / (level - lambda_2) (a_jj - s^2 / lambda_1).
    """
    slack, lam, U = EXACT_SLACK.of(state.operator.dtype), basis.eigenvalues, basis.W
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
    return (1 + 2 * slack) * reach**2 + slack * abs(level) >= level - diagonal


def _bounded(
    basis: PencilBasis, C: AnyArray, leaving: Index, candidate: Index, diagonal: Array, level: float
) -> Iterator[tuple[int, int]]:
    """Yield exchanges that raise the largest eigenvalue of a support above the level, by a kernel's bounds.

    C has the rows of A at the support. An exchange is the place in the support and the variable that takes
    it.
    """
    limits = level, EXACT_SLACK.of(C.dtype), TIE.double
    while (
        found := _core.exchange(C, leaving, candidate, diagonal, basis.eigenvalues, basis.W, *limits)
    ) is not None:
        yield int(leaving[found[0]]), found[1]
        leaving = leaving[found[0] + 1 :]
