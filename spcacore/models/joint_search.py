"""Search for several loadings that explain much together: the search of joint.c, on a covariance matrix.

With many variables the matrix is that of the most promising ones. Others join as long as one of them would
enter a loading. A loading is a pair (index, values). Its positions are among the variables of the matrix
inside the search, and among all variables outside.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from .. import _core
from .._limits import (
    JOINT_AGREEING,
    JOINT_BITS,
    JOINT_CHECKS,
    JOINT_COMBINED_PATIENCE,
    JOINT_CONSTRAINED,
    JOINT_ENTRANTS,
    JOINT_FIRST_MOVES,
    JOINT_KEPT,
    JOINT_MEMBERS,
    JOINT_MOVES,
    JOINT_PATIENCE,
    JOINT_POPULATIONS,
    JOINT_SHARE,
    JOINT_SMALL,
    JOINT_WORK,
    RISE,
    SUBMATRIX_ENTRIES,
    TALLY_TIE,
    TOGETHER_ORDER,
)  # fmt: skip
from .._types import AnyArray, Array, Index
from .._validation import Hook
from ..linalg.scaling import TINY, beyond_range, union, with_entries
from ..operators.deflation import DeflatedOperator
from ..operators.problem import Problem
from ..progress import Progress
from ..solvers.solution import Solution
from ..solvers.truncated_power import TruncatedPower
from ..supports.admissible import Supports

Loading = tuple[Index, AnyArray]
Loadings = list[Loading]
Sizes = tuple[int, ...]  # the cardinalities of several components
ORDER_DIGITS = 9  # digits of variances; those equal to so many keep their order
_CONSTRAINTS = (None, "orthogonal", "uncorrelated")  # the place is the number in joint.h


def pairs_of(found: Sequence[Solution]) -> Loadings:
    """Return the loadings of components."""
    return [(x.index, x.entries) for x in found]


def as_matrix(problem: Problem, loadings: Sequence[Loading]) -> Array:
    """Return the loadings as columns of a float64 matrix."""
    V = np.zeros((problem.p, len(loadings)))
    for t, (index, value) in enumerate(loadings):
        V[index, t] = value
    return V


def in_places(variances: Sequence[float], sizes: Sequence[int]) -> list[int]:
    """Return an order of the components in which variances descend among those of the same cardinality.

    The cardinalities stay where they are: the component at each place has the cardinality of that place.
    Equal variances keep their order, so that rounding decides nothing.
    """
    share, out = np.asarray(variances) / (max(variances, default=0) or 1.0), np.empty(len(sizes), np.intp)
    order = np.lexsort((-share.round(ORDER_DIGITS), np.asarray(sizes)))
    out[np.argsort(sizes, kind="stable")] = order
    return out.tolist()


def in_turn(problem: Problem, sizes: Sizes, seed: int, constraint: str | None = None) -> Loadings:
    """Find loadings one after another by truncated power, with projection deflation or under a constraint.

    They are fewer than `sizes` where no variance is left.
    """
    state, out = DeflatedOperator.from_problem(problem, constraint=constraint), Loadings()
    solver = TruncatedPower.from_record(problem)
    for t, size in enumerate(sizes):
        state = replace(state, seed=(seed, t))
        x = solver.find(state, size)
        if x is None or not x.objective > problem.noise(x.index):
            break
        out.append((x.index, x.entries))
        state = state.deflate(*out[-1])
    return out


def _population(
    A: Array, supports: Supports, sizes: Sequence[int], starts: Sequence[Sequence[Loading]],
    constraint: str | None = None, seed: int = 0, late: bool = True,
) -> _core.Population:  # fmt: skip
    """Return a population of loadings for the search of joint.c on the matrix A.

    A population is a few sets of r loadings, which moves change. It begins with `starts`. With `late` it
    skips the first moves, which seek loadings from new starts. Included variables have their place in each
    start, even where they have no entry.
    """
    if len(wanted := supports.wanted):
        starts = [[_whole(union(index, wanted), index, value) for index, value in x] for x in starts]
    return _core.Population(
        A, np.array(sizes, np.intp), min(supports.most_variables(max(sizes)), len(A)),
        max(JOINT_MEMBERS, len(starts)), starts, JOINT_BITS, seed % 2**64, JOINT_FIRST_MOVES if late else 0,
        _CONSTRAINTS.index(constraint), supports.rule(0) if supports.shapes else None,
    )  # fmt: skip


def _whole(support: Index, index: Index, value: AnyArray) -> Loading:
    """Return a loading with its entries on a support, some of which may be zero."""
    return support, with_entries(int(support[-1]) + 1, index, value)[support]


@dataclass(eq=False)
class JointSearch:
    """Populations, one after another, until enough of them end at the same value.

    After every few populations one begins with the best loadings of the earlier ones. `best` has pairs of a
    value, what the loadings explain together, and the loadings, best first. The random numbers are the same
    on every machine.
    """

    A: Array
    supports: Supports
    sizes: Sequence[int]
    starts: Sequence[Loadings]
    seed: int
    constraint: str | None = None
    best: list[tuple[float, Loadings]] = field(default_factory=list)

    def __post_init__(self) -> None:
        share = JOINT_CONSTRAINED if self.constraint else 1
        self.limit: float = share * JOINT_WORK * max(len(self.A), JOINT_SMALL)

    def rounds(self) -> Iterator[None]:
        """Search; yield after each round of moves, so that the caller can report and stop."""
        spent, ends, earlier = 0.0, [], self.best
        for turn in itertools.count():
            # Where this population begins: as the caller says, anew, or with the best so far
            combined = turn % (JOINT_POPULATIONS + 1) == JOINT_POPULATIONS
            starts = [x for _, x in earlier] if combined else [] if turn else self.starts
            population = _population(
                self.A, self.supports, self.sizes, starts, self.constraint, self.seed + turn, combined
            )
            # It moves until nothing gains for a while, or its share of the work is done
            limit, patience = JOINT_SHARE * self.limit, JOINT_PATIENCE
            if combined:
                limit, patience = self.limit, JOINT_COMBINED_PATIENCE
            going = True
            while going:
                going = population.go_on(JOINT_MOVES, patience, min(limit, self.limit - spent))
                ranked = sorted(earlier + population.best(JOINT_KEPT), key=lambda one: -one[0])
                self.best = ranked[:JOINT_MEMBERS]
                yield
            # Stop if enough populations agree
            spent, earlier = spent + population.spent, self.best
            ends += [] if combined else [most for most, _ in population.best(1)]
            same = sum(self.best != [] and end > self.best[0][0] * (1 - TALLY_TIE) for end in ends)
            if same >= JOINT_AGREEING or spent >= self.limit:
                return


def searched(
    problem: Problem, start: Loadings, sizes: Sizes, attempts: int, max_iter: int, seed: int,
    hook: Hook, constraint: str | None = None,
) -> tuple[Loadings, bool]:  # fmt: skip
    """Return the best loadings of several attempts, and whether the first attempt came to its end.

    `start` has loadings to begin with, `sizes` their cardinalities; an attempt has at most `max_iter` rounds.
    The loadings are empty if none were found that meet the constraint.
    """
    among, ended, stop = promising(problem, start, max(sizes)), True, False
    for check in range(JOINT_CHECKS):
        # Search among the promising variables
        A, given = np.ascontiguousarray(problem.operator.submatrix(among)), _inside(among, start)
        best, most, rough = given, 0.0, without_last_bits(A)
        supports = problem.supports.on(among)
        for attempt in range(1 if check else attempts):
            starts = _starts(rough, supports, sizes, given, seed + attempt, constraint)
            search = JointSearch(rough, supports, sizes, starts, seed + 1009 * attempt, constraint)
            for n_iter, _ in enumerate(search.rounds()):
                if search.best and search.best[0][0] > most:
                    most, best = search.best[0]
                now = Progress(attempt, attempts, n_iter + 1, float(problem.in_units(most)), refining=True)
                stop = hook(now)
                if stop or n_iter + 1 == max_iter:
                    ended = ended and attempt > 0
                    break
            stop = stop or hook(replace(now, refining=False))
            if stop:
                break
        # Values by A itself; the start stays unless the search is better
        found, kept = (_population(A, supports, sizes, [x], constraint).best(1) for x in (best, given))
        if not (found or kept):
            return [], False
        (most, best), (least, given) = (found or kept)[0], (kept or found)[0]
        # A tie keeps the given loadings, found in turn perhaps
        best = best if most > least * (1 + RISE) else given
        if not all(len(index) for index, _ in best):
            break  # too few of the allowed supports have variance beside the others
        # Which other variables would enter
        start = _outside(among, best, problem.operator.dtype)
        more = among if stop else with_entrants(problem, start, among, constraint)
        if len(more) == len(among):
            break
        among = more
    return start, ended and not stop


def _starts(
    A: Array, supports: Supports, sizes: Sizes, given: Loadings, seed: int,
    constraint: str | None,
) -> list[Loadings]:  # fmt: skip
    """Return the loadings to begin with: the given ones and, under a constraint, good ones that ignore it.

    The latter may nearly meet the constraint, and the search then brings them to it.
    """
    if constraint is None:
        return [given]
    free = JointSearch(A, supports, sizes, [given], seed)
    free.limit *= JOINT_SHARE
    for _ in free.rounds():
        pass
    return [given, *(x for _, x in free.best if all(len(index) for index, _ in x))]


def without_last_bits(A: Array) -> Array:
    """Return A, each entry rounded to 32 bits relative to the standard deviations of its two variables.

    The last bits of A differ between processors, storages and numbers of threads. Without them they decide
    nothing in a search of many steps. What the search finds is then valued by A itself.
    """
    unit = np.exp2(np.frexp(np.abs(A.diagonal()))[1] // 2)
    with beyond_range():
        unit = np.multiply.outer(unit, unit) * 2.0**-JOINT_BITS
        return np.where(unit > TINY, np.round(A / unit) * unit, A)


def ascended(
    problem: Problem, starts: Sequence[Loadings], sizes: Sizes, moves: int = 0
) -> tuple[Loadings, float]:
    """Let the loadings of each start ascend, each loading given the others; return the best and its variance.

    A single population then makes so many moves, of several loadings. The variance is 0, with the first
    start, if a loading of the best ones vanishes.
    """
    among = promising(problem, [x for start in starts for x in start], max(sizes))
    inside = [_inside(among, start) for start in starts]
    A = np.ascontiguousarray(problem.operator.submatrix(among))
    supports = problem.supports.on(among)
    if moves and len(sizes) > 1:
        population = _population(without_last_bits(A), supports, sizes, inside)
        population.go_on(moves, moves, math.inf)
        inside += [x for _, x in population.best(1) if all(len(index) for index, _ in x)]
    ((most, best),) = _population(A, supports, sizes, inside).best(1)
    if not all(len(index) for index, _ in best):
        return starts[0], 0.0
    return _outside(among, best, problem.operator.dtype), most


def _inside(among: Index, loadings: Sequence[Loading]) -> Loadings:
    """Return loadings whose positions are in `among`, not in all variables."""
    return [(np.searchsorted(among, index), value.astype(np.float64)) for index, value in loadings]


def _outside(among: Index, loadings: Sequence[Loading], dtype: np.dtype[np.generic]) -> Loadings:
    """Return loadings whose positions are in all variables, given those in `among`."""
    return [(among[index], value.astype(dtype)) for index, value in loadings]


def promising(problem: Problem, loadings: Loadings, size: int, order: int = TOGETHER_ORDER) -> Index:
    """Return the variables among which a joint search begins, about `order` of them.

    These are the variables of the loadings, those of largest covariance with the loadings (the norm of a row
    of AV) and those of largest variance; of each kind at least `size`, where there are as many. If few
    variables have variance, all of them.
    """
    op, variance, whole = problem.operator, problem.diagonal, problem.supports.whole
    used = whole(np.concatenate([index for index, _ in loadings]))
    order = order if op.symmetric_form else min(order, SUBMATRIX_ENTRIES // op.m)
    some = np.arange(problem.p) if variance is None else np.flatnonzero(variance > 0)
    if len(some) <= max(order, len(used)):
        return whole(np.append(some, used))
    AV = op.apply_block(as_matrix(problem, loadings))
    promise = [np.linalg.norm(AV, axis=1).astype(np.float64)]
    promise += [] if variance is None else [np.ascontiguousarray(variance, np.float64)]
    few = min(max((order - len(used)) // len(promise), size), problem.p)
    return whole(np.concatenate([used, *(_core.select_largest(x, few) for x in promise if few > 0)]))


def with_entrants(problem: Problem, loadings: Loadings, among: Index, constraint: str | None) -> Index:
    """Return `among` with the variables outside that would enter a loading in a step given the others.

    The step is one of truncated power. Variable j would enter x if its product |y_j| exceeds the least
    product on the support of x, by more than rounding. At most JOINT_ENTRANTS join, those that exceed it by
    the largest factor, each with its group.
    """
    if len(among) == problem.p:
        return among
    op = problem.operator
    V = as_matrix(problem, loadings)
    AV = op.apply_block(V).astype(np.float64)
    free = np.ones(problem.p, np.bool_) if problem.diagonal is None else problem.diagonal > 0
    free[among] = False
    excess = np.zeros(problem.p)
    for y, level in _products(V, AV, among, constraint):
        if level > 0:  # else x adds nothing to the others, and has no share to defend
            excess = np.maximum(excess, np.where(free, np.abs(y) / level - (1 + 1e-6), 0))
    few = _core.select_largest(excess, min(JOINT_ENTRANTS, problem.p))
    return union(among, problem.supports.whole(few[excess[few] > 0]))


def _products(V: Array, AV: Array, among: Index, constraint: str | None) -> Iterator[tuple[Array, float]]:
    """Yield the products y that a step for each loading x truncates, and the least of them on its support.

    * No constraint: y = (A - AQQ')x, where Q is a basis of the others. On the support of x, y_j is x_j times
      the quotient x'PAPx/x'Px.
    * "orthogonal" or "uncorrelated": y = Ax - Gb, where G has the others, or their images under A. Here b is
      such that y_j is x_j times the variance on the support.
    * "disjoint": y = Ax.
    * "common": the norm of each row of AV, once for all loadings.
    """
    if constraint == "common":
        y = np.linalg.norm(AV, axis=1)
        yield y, float(y[V.any(axis=1)].min())
        return
    for t in range(V.shape[1]):
        others, x = np.delete(V, t, axis=1), V[among, t]
        images, on = np.delete(AV, t, axis=1), V[:, t] != 0
        if constraint == "disjoint":
            yield AV[:, t], float(np.abs(AV[on, t]).min())
            continue
        if constraint:
            G = others if constraint == "orthogonal" else images
            rates = np.linalg.lstsq(np.column_stack([V[on, t], G[on]]), AV[on, t], rcond=None)[0]
            quotient, y = float(rates[0]), AV[:, t] - G @ rates[1:]
        else:
            Q, R = np.linalg.qr(others[among])
            keep = np.abs(R.diagonal()) > 1e-6
            Q, R = Q[:, keep], R[np.ix_(keep, keep)]
            along = Q.T @ x
            z, y = x - Q @ along, AV[:, t] - np.linalg.solve(R.T, images[:, keep].T).T @ along
            quotient = float(z @ y[among]) / max(float(z @ z), TINY)
        yield y, quotient * np.abs(x[x != 0]).min()
