"""Supports of several components chosen together.

There are three kinds: one support for all components, supports without a common variable ("disjoint"), and a
total number of nonzeros that all components share.

All searches work on A between candidate variables. With few variables, all are candidates. With many, these
are at first the variables that are promising for components found one after another (models/joint_search).
The search goes on with those that would enter a component, until there are none. It sees A without its last
bits, which would decide between variables of equal variance. Proofs and values use A itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from itertools import permutations
from typing import Any

import numpy as np

from .._limits import (
    ACROSS_CANDIDATES,
    ACROSS_CHECKS,
    ACROSS_EXCESS,
    ACROSS_ORDER,
    ACROSS_RANDOM,
    ACROSS_RANDOM_MANY,
    ACROSS_RANDOM_WORK,
    BOUND_ORDER,
    BUDGET_SPLITS,
    BUDGET_TRIALS,
    EXACT_ORDER,
    JOINT_ORDER,
    REFINEMENT_ROUNDS,
    RISE,
    SIGNED_ORDER,
    SMALL_ORDER,
)
from .._messages import counted
from .._types import Array, Index
from .._validation import Hook, integer, require_entries
from ..choice import Explained
from ..linalg.eigen import leading_eigenpairs
from ..linalg.orthogonal import fix_sign
from ..linalg.scaling import roots, with_entries
from ..objectives.eigenvalue_sum import LeadingSum, Partition
from ..operators.deflation import DeflatedOperator
from ..operators.gram import symmetric_submatrix
from ..operators.problem import Problem, of_matrix
from ..progress import Progress
from ..solvers.certificates import joint_bounds, may_be_formed
from ..solvers.solution import Solution
from ..supports.admissible import Supports, Units
from ..supports.search import Steps, best_of, forward, swap
from ..supports.tree import Sets, enumerated, prove, splits_of
from .joint_search import (
    Loading,
    Loadings,
    Sizes,
    in_places,
    in_turn,
    promising,
    with_entrants,
    without_last_bits,
)
from .refinement import quickly_refined, refined
from .request import Request

# ---- one set for all, or sets without a common variable: what searches lead to ------------------------


def best_common(
    objective: LeadingSum, steps: Steps, starts: Iterable[Units] = (), rng: np.random.Generator | None = None
) -> tuple[float, Units]:
    """Return the set of units with the largest sum of eigenvalues that swaps lead to, and its value.

    Swaps begin from `starts`. If there are none, they begin from forward search and from the largest diagonal
    entries and entries of the leading eigenvectors; with `rng`, from random sets too.
    """
    A, r, p = objective.A, objective.r, len(objective.A)
    starts = [*starts]
    if not starts:
        values, V, _ = leading_eigenpairs(A.copy(), r, A if p > SMALL_ORDER and 2 * r < p else None)
        weights = [objective.diagonal, np.square(V) @ np.maximum(values, 0)]
        if rng is not None:
            weights += [rng.random(p) for _ in range(_restarts(p))]
        starts = [forward(objective), *(_largest(objective, weight) for weight in weights)]
    return best_of(objective, starts, steps)


def _restarts(p: int) -> int:
    """Return how many random starts a search among p variables makes."""
    return min(ACROSS_RANDOM if p <= SMALL_ORDER else ACROSS_RANDOM_MANY, ACROSS_RANDOM_WORK // p**2)


def _largest(objective: LeadingSum, weight: Array) -> Units:
    """Return the units of largest weight, as many as the cardinality has room for."""
    supports = objective.supports
    norms = roots(supports.per_unit(weight))
    return forward(objective, supports.largest(norms, supports.room) & supports.allowed)


def best_disjoint(
    A: Array, supports: Supports, sizes: Sizes, steps: Steps, total: bool, seed: int,
    begin: Sets | None,
) -> tuple[Sets, LeadingSum, float, bool]:  # fmt: skip
    """Search for disjoint supports with the largest sum of variances.

    `sizes` are the cardinalities; with `total` only their sum is kept. `begin` has supports to start from, in
    place of all other starts. With few variables all supports are tried. Returns the supports, the objective
    of a single one, their value, and whether they are proved the best.
    """
    # Go on from given supports
    search = _Disjoint(A, supports, sizes, steps, total)
    r = len(sizes)
    if begin is not None:
        value, units = search.ascended(np.concatenate(begin), pairs=search.small)
        return search.sets(units), search.one, value, False
    # Components in turn among the variables left, then all supports if these are few
    units, proved = search.in_turn(sizes, [None] * r, range(r)), False
    value, best = search.whole.value(units), search.sets(units)
    if search.small and not steps.over:  # a proof spares the search below
        splits = [tuple(sorted(sizes, reverse=True))]
        if total:
            splits = splits_of(sum(sizes), r, int(supports.size[supports.allowed].sum()))
        most = max(supports.most_variables(k) for split in splits for k in split)
        best, value, proved = enumerated(search.one, splits, search.rooms(units), best, value)
        proved &= supports.signs is None or most <= SIGNED_ORDER
    # Swaps from several starts
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
    # About half of the supports at random, the others kept
    rng = np.random.default_rng(seed)
    for _ in range(_restarts(len(A))):
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
    """The search for disjoint supports: its objectives, and its moves.

    `one` is the variance on one support, by A itself; `whole` is the sum over all supports, by A without its
    last bits. A set of supports is an array of masks, one after another (`units`), or a list of masks
    (`sets`).
    """

    def __init__(self, A: Array, supports: Supports, sizes: Sizes, steps: Steps, total: bool):
        self.A, self.supports, self.steps = without_last_bits(A), supports, steps
        self.one = LeadingSum(A, supports.within(sum(sizes) if total else max(sizes)))
        self.whole = Partition(LeadingSum(self.A, self.one.supports), sizes, total)
        self.small = len(A) <= SMALL_ORDER

    def sets(self, units: Units) -> Sets:
        """Split the masks of all supports."""
        return self.whole.sets(units)

    def rooms(self, units: Units) -> Sizes:
        """Return the cardinality that each support has room for; with a total, what it uses now."""
        if not self.whole.total:
            return self.whole.sizes
        return tuple(int(self.supports.size[one].sum()) for one in self.sets(units))

    def in_turn(
        self, rooms: Sizes, sets: list[Units | None], order: Sequence[int], deflated: bool = False,
        rng: np.random.Generator | None = None,
    ) -> Units:  # fmt: skip
        """Fill in the supports that are None, in this order, each among the units that no other support has.

        Each is the best on A or, with `deflated`, on what projection deflation by the previous ones leaves of
        A: (I - xx')A(I - xx'). With `rng` it is random.
        """
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
                dense = with_entries(len(left), S, x)
                left = left - np.outer(dense, y) - np.outer(y, dense) + (x @ y[S]) * np.outer(dense, dense)
        return forward(self.whole, np.concatenate([out[t] for t in range(len(sets))]))

    def ascended(self, units: Units, pairs: bool) -> tuple[float, Units]:
        """Swap units, then choose components anew, while the value rises; return the value and the supports.

        With `pairs`, two components at a time are chosen anew too.
        """
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
        """Choose each component anew among its own variables and the free ones, where it then explains more.

        With `pairs`, do the same with two components at a time, in both orders.
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
# A nonzero moves from one loading to another if all loadings then explain more together, each solved again
# given the others. The best of such moves is made, as long as there is one.


def even_split(total: int, r: int) -> Sizes:
    """Divide a total into r numbers that are as equal as possible, the larger ones first."""
    return tuple(total // r + (t < total % r) for t in range(r))


def best_budget(
    problem: Problem, total: int, r: int, starts: list[Loadings], steps: Steps, seed: int, resumed: bool
) -> tuple[Loadings, float]:
    """Return the best loadings with `total` nonzeros in all, and what they explain together.

    The even split is tried first. Units then move from one loading to another as long as this helps.
    `resumed`: the search goes on, with more variables, from loadings that an earlier one found; then there
    are no other starts.
    """
    supports = problem.supports
    low, high = supports.bounds
    most, split = min(total - (r - 1) * low, high), even_split(total, r)
    # Where to begin: given loadings, and loadings found in turn for some ways to divide the total
    begin = [(one, tuple(len(index) for index, _ in one)) for one in starts]
    splits = [] if resumed else [split]
    if supports.counts_variables and problem.p <= SMALL_ORDER:
        splits += [s for s in splits_of(total, r, most) if s[-1] >= low and s != split][:BUDGET_SPLITS]
    begin += [(in_turn(problem, sizes, seed), sizes) for sizes in splits]
    # Moves from each
    ends = []
    for one, sizes in begin:
        if len(one) == r:
            quick = quickly_refined(problem, _without_zeros(one), sizes)
            ends.append(_moved(problem, *quick, sizes, most, steps))
    if not ends:
        return begin[-1][0], 0.0
    best, value, sizes = max(ends, key=lambda one: one[1])
    # Joint refinement of the best, and moves again
    while not (resumed or steps.over) and problem.p <= SMALL_ORDER:
        new, _ = refined(problem, _without_zeros(best), sizes, None, 0, REFINEMENT_ROUNDS, seed, Hook(None))
        new, more = quickly_refined(problem, _without_zeros(new), sizes)
        if not more > value * (1 + RISE):
            break
        best, value, sizes = _moved(problem, new, more, sizes, most, steps)
        steps(1)
    return best, value


def _without_zeros(loadings: Loadings) -> Loadings:
    """Return the loadings without the entries that are zero."""
    return [(index[entries != 0], entries[entries != 0]) for index, entries in loadings]


def _moved(
    problem: Problem, loadings: Loadings, value: float, sizes: Sizes, most: int, steps: Steps,
) -> tuple[Loadings, float, Sizes]:  # fmt: skip
    """Move a unit from one loading to another, the best of those tried, as long as this raises the variance.

    Returns the loadings, what they explain, and the cardinality that each may have. `most` is the largest one
    allowed.
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
    """Return what moves would leave, least loss first: loadings without one unit, and the new cardinalities.

    From each loading the units of smallest norm are taken. If a loading does not use all of its cardinality,
    the unused part moves, without a loss.
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


# ---- the request of a model ---------------------------------------------------------------------------


def check_sizes(
    request: Request, problem: Problem, r: int, several: list[tuple[Any, ...]]
) -> list[tuple[Any, ...]]:
    """Return the cardinalities of the components at each sparsity; raise an error if X has too few variables.

    Where supports are not chosen together, they are as given. A total is divided evenly at first.
    """
    if not request.together:
        return several
    support, total, choice = request.support, request.total, problem.supports
    require_entries(problem, "a choice of supports together")
    if request.method.name == "branch_and_bound" and problem.p > EXACT_ORDER:
        raise ValueError(f"branch_and_bound takes at most {EXACT_ORDER} variables, not {problem.p}")
    if choice.shapes and problem.p > ACROSS_ORDER:
        raise ValueError(
            f"{choice.shaping} with supports chosen together is for at most {ACROSS_ORDER} variables, not "
            f"{problem.p}"
        )
    low, p = choice.bounds
    what = "group" if choice.grouped and not choice.counts_variables else "variable"
    joint = choice.why() if choice.shapes else ""
    # A total
    if total is not None:
        most = p if support == "disjoint" else r * p
        integer(
            total, "Total", r * low, most,
            joint or f": {counted(r, 'component')} of {counted(p, what)}, each with one at least",
        )  # fmt: skip
        return [even_split(total, r)] * len(several)
    # A cardinality for each
    for sizes in several:
        if support == "common" and len(set(sizes)) > 1:
            raise ValueError(
                "support='common' uses one set for all components: cardinality must be one number"
            )
        variables = choice.most_variables(sizes[0])
        if support == "common" and variables < r:
            raise ValueError(
                f"{counted(r, 'component')} on {counted(variables, 'common variable')}: no more components "
                "than variables are orthogonal; raise cardinality"
            )
        if support == "disjoint" and sum(sizes) > p:
            raise ValueError(
                f"disjoint supports of {counted(sum(sizes), what)} in all: X has {counted(p, what)}"
            )
    return several


def search_together(
    problem: Problem, solver: Any, request: Request, r: int, hook: Hook,
    found: list[Solution],
) -> str | None:  # fmt: skip
    """Append to `found` the components with supports chosen together; return a warning if there are few.

    `of_some` searches A between candidates, the variables `active`, and goes on from loadings `before` of an
    earlier round. One support for all: swaps and, if the method is exact, a tree. Disjoint supports: swaps.
    A total: disjoint supports to begin with, and then moves of nonzeros between the loadings (`best_budget`).
    """
    problem = problem.unscreened()
    sizes, exact = request.cardinality, request.method.name == "branch_and_bound"
    if hook.ended:
        return None
    if not problem.variances.any():
        return problem.exhausted(0, r)
    steps = Steps(lambda done: hook(Progress(0, r, done)), getattr(solver, "max_iter", 1000))
    proved: list[float] = []

    def of_some(A: Array, active: Index, before: Loadings) -> Loadings:
        supports, begin = problem.supports.on(active), [np.searchsorted(active, x) for x, _ in before]
        masks = [supports.mask(index) for index in begin]
        if request.support == "common":
            room, rng = supports.within(sizes[0]), np.random.default_rng(request.seed)
            _, units = best_common(LeadingSum(without_last_bits(A), room, r), steps, masks[:1], rng)
            if exact:
                end = time.monotonic() + solver.time_limit
                proof = prove(
                    LeadingSum(A, room, r), units, tol=solver.tol, node_limit=solver.node_limit,
                    clock=lambda nodes: time.monotonic() > end or steps.report(nodes),
                )  # fmt: skip
                units = proof.units
                proved[:] = [proof.upper(), float(not proof.open())]
            S = supports.index(units)
            return _leading(problem, A, S, active[S], r)
        total = request.total
        start = [(S, v) for S, (_, v) in zip(begin, before, strict=True)]
        if request.support == "disjoint" or not (before or supports.shapes):
            split = sizes if sum(sizes) <= len(A) else even_split(len(A), r)
            sets, one, value, sure = best_disjoint(
                A, supports, split, steps, total is not None, request.seed, masks or None
            )
            start = [one.loading(units)[:2] for units in sets if units.any()]
            if request.support == "disjoint":
                if sure and len(active) == problem.p:
                    proved[:] = [value, 1.0]
                return [(S, x) for S, x in start if x.any()]
        assert total is not None
        inside, rough = (of_matrix(problem, x, supports) for x in (A, without_last_bits(A)))
        starts = [start] if start else []
        found, _ = best_budget(rough, total, r, starts, steps, request.seed, bool(before))
        return quickly_refined(inside, found, tuple(supports.cardinality_with(S) for S, _ in found))[0]

    loadings = _among_some(problem, request, r, exact, of_some)
    done = not steps.over and (not exact or bool(proved[1]))
    excess = ACROSS_EXCESS.of(problem.operator.dtype)
    upper = proved[0] * (1 + excess) if proved else None
    new = [_solution(problem, x, steps.done, done, upper) for x in loadings]
    found += _ordered([x for x in new if x.objective > problem.noise(x.index)], request)
    tell_found(problem, found, r, hook)
    if len(found) < r:
        return problem.exhausted(len(found), r)
    return None


def _leading(problem: Problem, A: Array, S: Index, index: Index, r: int) -> Loadings:
    """Return the r leading eigenvectors of A on S, the variables `index`, without eigenvalues of rounding."""
    values, V = np.linalg.eigh(A[np.ix_(S, S)])
    left = values[::-1][:r] > problem.noise(index)
    return [(S, v) for v, keep in zip(V[:, ::-1].T[:r], left, strict=True) if keep]


def tell_found(problem: Problem, found: list[Solution], r: int, hook: Hook) -> None:
    """Report components that were found together, one after another, to the callback."""
    for t, x in enumerate(found):
        hook(Progress(t, r, x.n_iter, float(problem.in_units(x.objective))))


def _solution(problem: Problem, x: Loading, n_iter: int, done: bool, upper: float | None) -> Solution:
    """Return a loading as a Solution: of unit length, without zeros, with its sign and variance."""
    index, entries = x
    kept = np.abs(entries) > 0
    index = index[kept]
    entries = (entries[kept] / np.linalg.norm(entries[kept])).astype(problem.operator.dtype)
    supports = problem.supports
    entries = fix_sign(entries) if supports.signs is None else supports.sign(index, entries)
    value = DeflatedOperator.from_problem(problem).quadratic(index, entries)
    return Solution(index, entries, value, n_iter, done, upper)


def _ordered(found: list[Solution], request: Request) -> list[Solution]:
    """Return the components in order of variance; with disjoint supports, only within each cardinality."""
    sizes = request.cardinality
    if request.support == "common" or request.total is not None or len(found) < len(sizes):
        sizes = (0,) * len(found)
    return [found[t] for t in in_places([x.objective for x in found], sizes)]


def _among_some(
    problem: Problem, request: Request, r: int, every: bool,
    of_some: Callable[[Array, Index, Loadings], Loadings],
) -> Loadings:  # fmt: skip
    """Search among candidates by `of_some`, until no other variable would enter a loading.

    Returns loadings whose positions are in all variables. With `every`, all variables are candidates at once.
    """
    p, sizes, common = problem.p, request.cardinality, request.support == "common"
    active, loadings, step = np.arange(p), Loadings(), "common" if common else "disjoint"
    if not every and p > ACROSS_ORDER:
        wanted = sizes[0] if common else sum(sizes)
        count = 4 * max(ACROSS_CANDIDATES, wanted)
        active = promising(problem, in_turn(problem, sizes, request.seed), wanted, count)
    for _ in range(ACROSS_CHECKS):
        A = symmetric_submatrix(problem.operator, active)
        loadings = [(active[S], v) for S, v in of_some(A, active, loadings)]
        more = with_entrants(problem, loadings, active, step) if loadings else active
        if len(more) == len(active):
            break
        active = more
    return loadings


def bounds_together(problem: Problem, found: list[Solution], request: Request) -> dict[str, float]:
    """Return upper bounds on what all components explain together, by name, in the operator's units.

    They hold for all supports that are allowed, of the cardinalities asked for.
    """
    support, total = request.support, request.total
    choice = problem.supports
    # How many variables each component may have (sizes), and all together (rows)
    counts = [choice.cardinality_of(x.index) for x in found]
    for t, k in enumerate(request.cardinality[: len(found)]):
        counts[t] = max(counts[t], 0 if isinstance(k, Explained) else k)
    sizes, rows, relaxed = tuple(map(choice.most_variables, counts)), None, problem.p <= JOINT_ORDER
    if support == "common":
        rows = sizes[0]
    elif total is not None:
        one, relaxed = choice.most_variables(total - len(found) + 1), False
        rows = total if one == total - len(found) + 1 else one * len(found)
        sizes = (min(one, problem.p),) * len(found)
    # If loadings need not be orthogonal, they may explain more than Tr(V'AV)
    apart = support != "free" or request.constraint == "orthogonal"
    out = joint_bounds(problem, sizes, "orthogonal" if apart else None, relaxed, rows)
    op = problem.operator
    # On one support: the sum of its largest eigenvalues
    if support == "common" and may_be_formed(op, BOUND_ORDER):
        A = symmetric_submatrix(op)
        objective = LeadingSum(A, choice.within(request.cardinality[0]), len(found))
        bound = objective.bound(choice.included, choice.allowed & ~choice.included)
        out["levels"] = bound.value + ACROSS_EXCESS.of(op.dtype) * float(A.trace())
    return out
