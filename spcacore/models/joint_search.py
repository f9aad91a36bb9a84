"""Several loadings sought together: the search of joint.c, on the covariance matrix of some variables.

Of many variables these are the most promising ones. Others join as long as one would enter a loading.
"""

from __future__ import annotations

import itertools
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
    JOINT_SAME,
    JOINT_SHARE,
    JOINT_SMALL,
    JOINT_WORK,
    RISE,
    SUBMATRIX_ENTRIES,
    TOGETHER_ORDER,
)  # fmt: skip
from .._types import AnyArray, Array, Index
from .._validation import Hook
from ..linalg.scaling import TINY, beyond_range, union
from ..operators.deflation import DeflatedOperator
from ..operators.problem import Problem
from ..progress import Progress
from ..solvers.truncated_power import TruncatedPower
from ..supports.admissible import Supports

Loading = tuple[Index, AnyArray]
Loadings = list[Loading]
Sizes = tuple[int, ...]  # the cardinalities of several components
ORDER_DIGITS = 9  # of variances, of which equal ones keep their order
_CONSTRAINTS = (None, "orthogonal", "uncorrelated")  # by their numbers in joint.h


def as_matrix(problem: Problem, loadings: Sequence[Loading]) -> Array:
    """The loadings as columns, in float64."""
    V = np.zeros((problem.p, len(loadings)))
    for t, (index, value) in enumerate(loadings):
        V[index, t] = value
    return V


def in_places(variances: Sequence[float], sizes: Sequence[int]) -> list[int]:
    """The order in which those of as many nonzeros descend in variance, in the places that these have.

    Those of equal variance stay in turn, so that rounding orders none.
    """
    share, out = np.asarray(variances) / (max(variances, default=0) or 1.0), np.empty(len(sizes), np.intp)
    order = np.lexsort((-share.round(ORDER_DIGITS), np.asarray(sizes)))
    out[np.argsort(sizes, kind="stable")] = order
    return out.tolist()


def in_turn(problem: Problem, sizes: Sizes, seed: int, constraint: str | None = None) -> Loadings:
    """Loadings by truncated power and projection deflation, or under a constraint; fewer where no variance
    is left."""
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
    seed: int, late: bool, constraint: str | None = None,
) -> _core.Population:  # fmt: skip
    """Members of a search from given loadings; `late`: without the first moves, which begin anew."""
    return _core.Population(
        A, np.array(sizes, np.intp), min(supports.most_variables(max(sizes)), len(A)),
        max(JOINT_MEMBERS, len(starts)), starts, JOINT_BITS, seed % 2**64, JOINT_FIRST_MOVES if late else 0,
        _CONSTRAINTS.index(constraint), supports.rule(0) if supports.shapes else None,
    )  # fmt: skip


@dataclass(eq=False)
class JointSearch:
    """Populations one after another, and some from the best of these, until several end at the same.

    Draws the same numbers on every machine.
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
        """Some moves at a time."""
        spent, ends, earlier = 0.0, [], self.best
        for turn in itertools.count():
            combined = turn % (JOINT_POPULATIONS + 1) == JOINT_POPULATIONS
            starts = [x for _, x in earlier] if combined else [] if turn else self.starts
            population = _population(
                self.A, self.supports, self.sizes, starts, self.seed + turn, combined, self.constraint
            )
            limit, patience = JOINT_SHARE * self.limit, JOINT_PATIENCE
            if combined:
                limit, patience = self.limit, JOINT_COMBINED_PATIENCE
            going = True
            while going:
                going = population.go_on(JOINT_MOVES, patience, min(limit, self.limit - spent))
                both = sorted(earlier + population.best(JOINT_KEPT), key=lambda one: -one[0])
                self.best = both[:JOINT_MEMBERS]
                yield
            spent, earlier = spent + population.spent, self.best
            ends += [] if combined else [most for most, _ in population.best(1)]
            same = sum(self.best != [] and end > self.best[0][0] * (1 - JOINT_SAME) for end in ends)
            if same >= JOINT_AGREEING or spent >= self.limit:
                return


def searched(
    problem: Problem, start: Loadings, sizes: Sizes, attempts: int, max_iter: int, seed: int,
    hook: Hook, constraint: str | None = None,
) -> tuple[Loadings, bool]:  # fmt: skip
    """The best loadings of so many searches from these, and whether the first came to its end; none where
    none meet the constraint."""
    among, ended, told = promising(problem, start, max(sizes)), True, False
    for check in range(JOINT_CHECKS):
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
                told = hook(now)
                if told or n_iter + 1 == max_iter:
                    ended = ended and attempt > 0
                    break
            told = told or hook(replace(now, refining=False))
            if told:
                break
        found, kept = (
            _population(A, supports, sizes, [x], 0, True, constraint).best(1) for x in (best, given)
        )
        if not (found or kept):
            return [], False
        (most, best), (least, given) = (found or kept)[0], (kept or found)[0]
        best = best if most > least * (1 + RISE) else given  # which may be what loadings in turn are
        if not all(len(index) for index, _ in best):
            break  # of the supports that are allowed, too few have variance beside others
        start = _outside(among, best, problem.operator.dtype)
        if told or len(among) == problem.p:
            break
        joining = entrants(problem, start, among, constraint)
        if len(joining) == 0:
            break
        among = union(among, problem.supports.whole(joining))
    return start, ended and not told


def _starts(
    A: Array, supports: Supports, sizes: Sizes, given: Loadings, seed: int,
    constraint: str | None,
) -> list[Loadings]:  # fmt: skip
    """These loadings, and under a constraint good ones without it, which may nearly meet it."""
    if constraint is None:
        return [given]
    free = JointSearch(A, supports, sizes, [given], seed)
    free.limit *= JOINT_SHARE
    for _ in free.rounds():
        pass
    return [given, *(x for _, x in free.best if all(len(index) for index, _ in x))]


def without_last_bits(A: Array) -> Array:
    """A to 32 bits of the standard deviations of each pair.

    So last bits, which differ between processors, storages and threads, decide nothing in a search of many
    steps. The values of what it finds are those of A.
    """
    unit = np.exp2(np.frexp(np.abs(A.diagonal()))[1] // 2)
    with beyond_range():
        unit = np.multiply.outer(unit, unit) * 2.0**-JOINT_BITS
        return np.where(unit > TINY, np.round(A / unit) * unit, A)


def ascended(problem: Problem, starts: Sequence[Loadings], sizes: Sizes) -> tuple[Loadings, float]:
    """The best loadings to which these ascend, each given the others, and what they explain."""
    among = promising(problem, [x for start in starts for x in start], max(sizes))
    inside = [_inside(among, start) for start in starts]
    A = np.ascontiguousarray(problem.operator.submatrix(among))
    supports = problem.supports.on(among)
    ((most, best),) = _population(A, supports, sizes, inside, 0, True).best(1)
    if not all(len(index) for index, _ in best):
        return starts[0], 0.0
    return _outside(among, best, problem.operator.dtype), most


def _inside(among: Index, loadings: Sequence[Loading]) -> Loadings:
    return [(np.searchsorted(among, index), value.astype(np.float64)) for index, value in loadings]


def _outside(among: Index, loadings: Sequence[Loading], dtype: np.dtype[np.generic]) -> Loadings:
    return [(among[index], value.astype(dtype)) for index, value in loadings]


def promising(problem: Problem, loadings: Loadings, size: int, order: int = TOGETHER_ORDER) -> Index:
    """The variables to begin with: of large variance, of large covariance with the loadings, and theirs.

    At least so many, where there are as many of positive variance.
    """
    op, variance, whole = problem.operator, problem.diagonal, problem.supports.whole
    used = whole(np.concatenate([index for index, _ in loadings]))
    order = order if op.symmetric_form else min(order, SUBMATRIX_ENTRIES // op.m)
    some = np.arange(problem.p) if variance is None else np.flatnonzero(variance > 0)
    if len(some) <= max(order, len(used)):
        return whole(np.append(some, used))
    V = np.asfortranarray(as_matrix(problem, loadings), op.dtype)
    promise = [np.linalg.norm(op.apply_block(V), axis=1).astype(np.float64)]
    promise += [] if variance is None else [np.ascontiguousarray(variance, np.float64)]
    few = min(max((order - len(used)) // len(promise), size), problem.p)
    return whole(np.concatenate([used, *(_core.select_largest(x, few) for x in promise if few > 0)]))


def entrants(problem: Problem, loadings: Loadings, among: Index, constraint: str | None) -> Index:
    """The variables outside that would enter a loading, given the others, by truncated power."""
    op = problem.operator
    V = as_matrix(problem, loadings)
    AV = op.apply_block(np.asfortranarray(V, op.dtype)).astype(np.float64)
    free = np.ones(problem.p, np.bool_) if problem.diagonal is None else problem.diagonal > 0
    free[among] = False
    excess = np.zeros(problem.p)
    for y, level in _products(V, AV, among, constraint):
        if level > 0:  # else x adds nothing to the others, and has no share to defend
            excess = np.maximum(excess, np.where(free, np.abs(y) / level - (1 + 1e-6), 0))
    few = _core.select_largest(excess, min(JOINT_ENTRANTS, problem.p))
    found: Index = few[excess[few] > 0]
    return found


def _products(V: Array, AV: Array, among: Index, constraint: str | None) -> Iterator[tuple[Array, float]]:
    """For each loading x of V its products, given the others, and the least on its support.

    With Q a basis of the others, products off the support of Q are (Ax - AQQ'x)_j; on the support of x they
    are x_j times the quotient. Under a constraint they are (Ax - Gb)_j, G the others, or their images, and b
    such that they are x_j times the variance on the support. Of disjoint supports they are (Ax)_j, and of a
    common one their norm over all loadings.
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
