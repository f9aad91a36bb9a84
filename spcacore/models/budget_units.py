"""One number of nonzeros for all loadings that have included variables, whole groups or given signs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._limits import BUDGET_TRIALS, CHOICE_SWAPS, RISE
from ..operators.deflation import DEFLATIONS, DeflatedOperator
from ..operators.problem import Problem
from ..solvers.refitting import refit
from ..solvers.solution import Solution
from ..supports.admissible import Supports
from .bordered_sums import Steps
from .orthogonal_search import Loading
from .refinement import quickly_refined

__all__ = ["Change", "Index", "moved_units"]
__dir__ = __all__.copy

Index = NDArray[np.intp]
Change = tuple[float, int]  # what is lost or gained by a unit


def moved_units(
    problem: Problem, choice: Supports, loadings: list[Loading], value: float, sizes: tuple[int, ...],
    most: int, steps: Steps, seed: int,
) -> tuple[list[Loading], float, tuple[int, ...]]:  # fmt: skip
    """Moves of a unit from one loading to another, as long as one that is tried raises the variance."""
    while not steps.over:
        for trial, split in _trials(problem, choice, loadings, sizes, most)[:BUDGET_TRIALS]:
            new, more = quickly_refined(problem, trial, split, seed)
            if more > value * (1 + RISE):
                loadings, value, sizes = new, more, split
                steps()
                break
        else:
            break
    return loadings, value, sizes


def _trials(
    problem: Problem, choice: Supports, loadings: list[Loading], sizes: tuple[int, ...], most: int
) -> list[tuple[list[Loading], tuple[int, ...]]]:
    """Loadings after a move, and their cardinalities; those of the largest gain first."""
    states = [_given(problem, loadings[:t] + loadings[t + 1 :]) for t in range(len(loadings))]
    used = [choice.cardinality_with(index) for index, _ in loadings]
    losses = [_losses(state, choice, x) for state, x in zip(states, loadings, strict=True)]
    gains = [_gains(state, choice, x) for state, x in zip(states, loadings, strict=True)]
    moves = []
    for s, (k, now) in enumerate(zip(sizes, used, strict=True)):
        leaving = [(loss, u, int(choice.size[u])) for loss, u in losses[s]]
        leaving += [(0.0, -1, k - now)] if k > now else []
        for loss, u, freed in leaving:
            for t, joining in enumerate(gains):
                room = sizes[t] - used[t] + freed
                fits = [(gain, v) for gain, v in joining if choice.size[v] <= room]
                if t != s and fits and sizes[t] + freed <= most:
                    gain, v = max(fits)
                    moves.append((gain - loss, s, u, t, v, freed))
    out = []
    for _, s, u, t, v, freed in sorted(moves, key=lambda move: -move[0]):
        trial, split = [*loadings], [*sizes]
        split[s] -= freed
        split[t] += freed
        if u >= 0:
            index, entries = loadings[s]
            kept = choice.unit[index] != u
            trial[s] = index[kept], entries[kept]
        trial[t] = _joined(choice, loadings[t], v)
        if all(entries.any() for _, entries in trial):
            out.append((trial, tuple(split)))
    return out


def _given(problem: Problem, others: list[Loading]) -> DeflatedOperator:
    state = DeflatedOperator.from_problem(problem, DEFLATIONS["generalized"])
    for other in others:
        state = state.deflate(*other, problem.noise)
    return state


def _joined(choice: Supports, x: Loading, unit: int) -> Loading:
    """A loading with tiny entries for one unit more."""
    index, entries = x
    new = np.setdiff1d(choice.variables(np.array([unit])), index)
    tiny = np.full(len(new), np.finfo(entries.dtype).eps, entries.dtype)
    if choice.signs is not None:
        tiny *= np.where(choice.signs[new] == 0, 1, choice.signs[new])
    both = np.append(index, new)
    order = np.argsort(both)
    return both[order], np.append(entries, tiny)[order]


def _worth(state: DeflatedOperator, x: Loading) -> float:
    """What the best values on a support explain."""
    index, entries = x
    if not entries.any():
        return 0.0
    entries = entries / np.linalg.norm(entries)
    return max(refit(state, Solution(index, entries, -np.inf, 0, True)).objective, 0.0)


def _losses(state: DeflatedOperator, choice: Supports, x: Loading) -> list[Change]:
    """What is lost without each unit that is not included, of the smallest norms."""
    index, entries = x
    now, units = _worth(state, x), choice.units(index)
    units = units[~choice.included[units]]
    if len(units) == len(choice.units(index)) == 1:
        return []
    dense = np.zeros(len(choice.unit))
    dense[index] = entries
    units = units[np.argsort(choice.norms(dense)[units], kind="stable")][:BUDGET_TRIALS]
    out = []
    for u in units.tolist():
        kept = choice.unit[index] != u
        out.append((now - _worth(state, (index[kept], entries[kept])), u))
    return out


def _gains(state: DeflatedOperator, choice: Supports, x: Loading) -> list[Change]:
    """What is gained with each other unit, of the largest products."""
    index, entries = x
    now = _worth(state, x)
    product = state.operator.apply(index, np.ascontiguousarray(entries)).astype(np.float64)
    norms = choice.norms(choice.projected(product))
    outside = choice.allowed & ~choice.included
    outside[choice.units(index)] = False
    best = np.flatnonzero(outside)
    best = best[np.argsort(-norms[best], kind="stable")][:CHOICE_SWAPS]
    return [(_worth(state, _joined(choice, x, u)) - now, u) for u in best.tolist()]
