"""One set of variables for r components (objectives/eigenvalue_sum), or sets without a common variable
(objectives/partition): the best that searches lead to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import permutations

import numpy as np

from .._limits import (
    ACROSS_RANDOM,
    ACROSS_RANDOM_MANY,
    ACROSS_RANDOM_WORK,
    BUDGET_SPLITS,
    BUDGET_TRIALS,
    REFINEMENT_ROUNDS,
    RISE,
    SIGNED_ORDER,
    SMALL_ORDER,
)
from .._types import Array
from .._validation import Hook
from ..linalg.eigen import leading_eigenpairs
from ..objectives.eigenvalue_sum import LeadingSum
from ..objectives.partition import Partition
from ..operators.problem import Problem
from ..supports.admissible import Supports, Units
from ..supports.search import Steps, best_of, forward, swap
from ..supports.tree import Sets, enumerated, splits_of
from .joint_search import Loading, Loadings, Sizes, in_turn
from .refinement import quickly_refined, refined


def best_common(
    objective: LeadingSum, steps: Steps, starts: Iterable[Units] = (), rng: np.random.Generator | None = None
) -> tuple[float, Units]:
    """The best set that swaps lead to, from a few starts or those given; of few variables, with `rng`, random
    ones too."""
    A, r, p = objective.A, objective.r, len(objective.A)
    starts = [*starts]
    if not starts:
        values, V, _ = leading_eigenpairs(A.copy(), r, A if p > SMALL_ORDER and 2 * r < p else None)
        weights = [objective.diagonal, np.square(V) @ np.maximum(values, 0)]
        if rng is not None and p <= SMALL_ORDER:
            weights += [rng.random(p) for _ in range(ACROSS_RANDOM)]
        starts = [forward(objective), *(_largest(objective, weight) for weight in weights)]
    return best_of(objective, starts, steps)


def _largest(objective: LeadingSum, weight: Array) -> Units:
    """The units of largest weights, as many as have room."""
    supports = objective.supports
    norms = np.sqrt(np.maximum(supports.per_unit(weight), 0))
    return forward(objective, supports.largest(norms, supports.room) & supports.allowed)


def best_disjoint(
    A: Array, supports: Supports, sizes: Sizes, steps: Steps, total: bool, seed: int,
    begin: Sets | None = None,
) -> tuple[Sets, LeadingSum, float, bool]:  # fmt: skip
    """The best sets of these sizes that swaps lead to, the objective of one, the value, whether it is proved.

    With `total` only the sum of the sizes is kept. Of few variables all supports are tried.
    """
    search = _Disjoint(A, supports, sizes, steps, total)
    r = len(sizes)
    if begin is not None:
        value, units = search.ascended(np.concatenate(begin), pairs=search.small)
        return search.sets(units), search.one, value, False
    units, proved = search.in_turn(sizes, [None] * r, range(r)), False
    value, best = search.whole.value(units), search.sets(units)
    if search.small and not steps.over:  # what is proved needs no search
        splits = [tuple(sorted(sizes, reverse=True))]
        if total:
            splits = splits_of(sum(sizes), r, int(supports.size[supports.allowed].sum()))
        most = max(supports.most_variables(k) for split in splits for k in split)
        best, value, proved = enumerated(search.one, splits, search.rooms(units), best, value)
        proved &= supports.signs is None or most <= SIGNED_ORDER
    if proved:
        return best, search.one, value, True
    deflated = search.in_turn(sizes, [None] * r, range(r), deflated=True)
    starts = (
        [units, deflated] if value == search.whole.value(units) else [np.concatenate(best), units, deflated]
    )
    for start in starts:
        more, units = search.ascended(start, pairs=search.small)
        if more > value * (1 + RISE):
            value, best = more, search.sets(units)
    rng = np.random.default_rng(seed)
    restarts = ACROSS_RANDOM if search.small else ACROSS_RANDOM_MANY
    for _ in range(min(restarts, ACROSS_RANDOM_WORK // len(A) ** 2)):
        if steps.over:
            break
        kept = [None if out else one for one, out in zip(best, rng.random(r) < 0.5, strict=True)]
        rooms = search.rooms(np.concatenate(best))
        start = search.in_turn(rooms, kept, rng.permutation(r).tolist(), rng=rng)
        more, units = search.ascended(start, pairs=False)
        if more > value * (1 + RISE):
            value, best = more, search.sets(units)
    return best, search.one, value, False


class _Disjoint:
    def __init__(self, A: Array, supports: Supports, sizes: Sizes, steps: Steps, total: bool):
        self.A, self.supports, self.steps = A, supports, steps
        self.one = LeadingSum(A, supports.within(sum(sizes) if total else max(sizes)))
        self.whole = Partition(self.one, sizes, total)
        self.small = len(A) <= SMALL_ORDER

    def sets(self, units: Units) -> Sets:
        return self.whole.sets(units)

    def rooms(self, units: Units) -> Sizes:
        """The cardinalities, or with a total those that there are."""
        if not self.whole.total:
            return self.whole.sizes
        return tuple(int(self.supports.size[one].sum()) for one in self.sets(units))

    def in_turn(
        self, rooms: Sizes, sets: list[Units | None], order: Sequence[int], deflated: bool = False,
        rng: np.random.Generator | None = None,
    ) -> Units:  # fmt: skip
        """The sets that are missing, one after another among the units left, of A or of what is left of it;
        with `rng` random ones."""
        left, out = self.A, {t: one for t, one in enumerate(sets) if one is not None}
        none = np.zeros(len(self.supports.allowed), bool)
        for t in order:
            if t in out:
                continue
            free = self.supports.among(~np.any([none, *out.values()], axis=0)).within(rooms[t])
            objective = LeadingSum(left, free)
            if rng is not None:
                out[t] = free.largest(rng.random(len(none)), free.room) & free.allowed
                continue
            out[t] = best_common(objective, self.steps)[1]
            if deflated:
                S, x = objective.loading(out[t])[:2]
                y = left[:, S] @ x
                dense = np.zeros(len(left))
                dense[S] = x
                left = left - np.outer(dense, y) - np.outer(y, dense) + (x @ y[S]) * np.outer(dense, dense)
        return forward(self.whole, np.concatenate([out[t] for t in range(len(sets))]))

    def ascended(self, units: Units, pairs: bool) -> tuple[float, Units]:
        """Swaps, and then each component or pair anew among what the others leave, while the value rises."""
        value, units = swap(self.whole, units, self.steps)
        while not self.steps.over:
            new = self._each_anew(units, pairs)
            if new is units:
                break
            more, new = swap(self.whole, new, self.steps)
            if not more > value * (1 + RISE):
                break
            value, units = more, new
            self.steps(1)
        return value, units

    def _each_anew(self, units: Units, pairs: bool) -> Units:
        """Each component, and of `pairs` each in both orders, chosen again where that explains more.

        From its own variables and those that belong to none.
        """
        r = len(self.whole.sizes)
        groups: list[Sizes] = [(t,) for t in range(r)]
        groups += permutations(range(r), 2) if pairs else ()
        for group in groups:
            if self.steps.over:
                break
            kept = [None if t in group else one for t, one in enumerate(self.sets(units))]
            new = self.in_turn(self.rooms(units), kept, group)
            if self.whole.value(new) > self.whole.value(units) * (1 + RISE):
                units = new
        return units


# ---- one number of nonzeros for all loadings: how to divide it, and among which variables ---------------
# A nonzero moves from one loading to another where all explain more after it, each solved again given the
# others: the best of such moves, as long as there is one.


def even_split(total: int, r: int) -> Sizes:
    """As equal as possible, larger ones first."""
    return tuple(total // r + (t < total % r) for t in range(r))


def best_budget(
    problem: Problem, total: int, r: int, starts: list[Loadings], steps: Steps, seed: int, again: bool
) -> tuple[Loadings, float]:
    """The best loadings of so many nonzeros in all that moves lead to, and what they explain.

    If begun `again`, from the starts alone.
    """
    supports = problem.supports
    low, high = supports.bounds
    most, split = min(total - (r - 1) * low, high), even_split(total, r)
    begin = [(one, tuple(len(index) for index, _ in one)) for one in starts]
    splits = [] if again else [split]
    if supports.counts_variables and problem.p <= SMALL_ORDER:
        splits += [s for s in splits_of(total, r, most) if s[-1] >= low and s != split][:BUDGET_SPLITS]
    begin += [(in_turn(problem, sizes, seed), sizes) for sizes in splits]
    ends = []
    for one, sizes in begin:
        if len(one) == r:
            quick = quickly_refined(problem, _without_zeros(one), sizes)
            ends.append(_moved(problem, *quick, sizes, most, steps))
    if not ends:
        return begin[-1][0], 0.0
    best, value, sizes = max(ends, key=lambda one: one[1])
    while not (again or steps.over) and problem.p <= SMALL_ORDER:
        new, _ = refined(problem, _without_zeros(best), sizes, None, 0, REFINEMENT_ROUNDS, seed, Hook(None))
        new, more = quickly_refined(problem, _without_zeros(new), sizes)
        if not more > value * (1 + RISE):
            break
        best, value, sizes = _moved(problem, new, more, sizes, most, steps)
        steps(1)
    return best, value


def _without_zeros(loadings: Loadings) -> Loadings:
    return [(index[entries != 0], entries[entries != 0]) for index, entries in loadings]


def _moved(
    problem: Problem, loadings: Loadings, value: float, sizes: Sizes, most: int, steps: Steps,
) -> tuple[Loadings, float, Sizes]:  # fmt: skip
    """Moves of a unit from one loading to another, as long as one that is tried raises the variance.

    With what is explained then, and the cardinality that each loading may have.
    """
    while not steps.over:
        trials = _trials(problem, _without_zeros(loadings), sizes, most)
        ends = [(*quickly_refined(problem, trial, split), split) for trial, split in trials]
        best = max(ends, key=lambda end: end[1], default=(loadings, 0.0, sizes))
        if not best[1] > value * (1 + RISE):
            break
        loadings, value, sizes = best
        steps(1)
    return loadings, value, sizes


def _trials(problem: Problem, loadings: Loadings, sizes: Sizes, most: int) -> list[tuple[Loadings, Sizes]]:
    """Loadings without a unit, whose room another one gets, and their cardinalities; small units first.

    Of a loading with more room than it uses, that may move, without a loss.
    """
    supports, moves = problem.supports, list[tuple[float, int, int, Loading]]()
    for s, (index, entries) in enumerate(loadings):
        room = sizes[s] - supports.cardinality_with(index)
        if room > 0:
            moves.append((0.0, s, room, (index, entries)))
        norms = supports.per_unit(np.square(entries), index)
        leaving = np.flatnonzero(supports.leaving(supports.mask(index)))
        for u in leaving[np.argsort(norms[leaving], kind="stable")][:BUDGET_TRIALS].tolist():
            kept = supports.unit[index] != u
            if entries[kept].any():
                moves.append((float(norms[u]), s, int(supports.size[u]), (index[kept], entries[kept])))
    out = []
    for _, s, freed, left in sorted(moves, key=lambda move: move[0]):
        for t in range(len(sizes)):
            if t != s and sizes[t] + freed <= most:
                split = [k - freed * (a == s) + freed * (a == t) for a, k in enumerate(sizes)]
                out.append(([left if a == s else x for a, x in enumerate(loadings)], tuple(split)))
    return out
