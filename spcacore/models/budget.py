"""One number of nonzeros for all loadings: how to divide it, and among which variables.

A nonzero moves from one loading to another where all explain more after it, each solved again given the
others: the best of such moves, as long as there is one.
"""

from __future__ import annotations

import numpy as np

from .._limits import BUDGET_SPLITS, BUDGET_TRIALS, REFINEMENT_ROUNDS, RISE, SMALL_ORDER
from ..operators.problem import Problem
from ..supports.enumeration import splits_of
from ..supports.search import Steps
from .joint_search import Loading, in_turn
from .refinement import quickly_refined, refined

__all__ = ["best_budget", "even_split"]


def even_split(total: int, r: int) -> tuple[int, ...]:
    """As equal as possible, larger ones first."""
    return tuple(total // r + (t < total % r) for t in range(r))


def best_budget(
    problem: Problem, total: int, r: int, starts: list[list[Loading]], steps: Steps, seed: int, again: bool
) -> tuple[list[Loading], float]:
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
        new, _ = refined(problem, _without_zeros(best), sizes, None, 0, REFINEMENT_ROUNDS, seed, None)
        new, more = quickly_refined(problem, _without_zeros(new), sizes)
        if not more > value * (1 + RISE):
            break
        best, value, sizes = _moved(problem, new, more, sizes, most, steps)
        steps(1)
    return best, value


def _without_zeros(loadings: list[Loading]) -> list[Loading]:
    return [(index[entries != 0], entries[entries != 0]) for index, entries in loadings]


def _moved(
    problem: Problem, loadings: list[Loading], value: float, sizes: tuple[int, ...], most: int, steps: Steps,
) -> tuple[list[Loading], float, tuple[int, ...]]:  # fmt: skip
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


def _trials(
    problem: Problem, loadings: list[Loading], sizes: tuple[int, ...], most: int
) -> list[tuple[list[Loading], tuple[int, ...]]]:
    """Loadings without a unit, whose room another one gets, and their cardinalities; small units first.

    Of a loading with more room than it uses, that may move, without a loss.
    """
    supports, moves = problem.supports, list[tuple[float, int, int, Loading]]()
    for s, (index, entries) in enumerate(loadings):
        room = sizes[s] - supports.cardinality_with(index)
        if room > 0:
            moves.append((0.0, s, room, (index, entries)))
        norms, units = supports.per_unit(np.square(entries), index), supports.units(index)
        leaving = units[~supports.included[units]]
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
