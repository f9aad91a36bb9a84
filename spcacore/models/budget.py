"""One number of nonzeros for all loadings: how to divide it, and among which variables.

A nonzero moves from one loading to another where the loss of the one, given all the others, is less than the
gain of the other: the moves that promise most are tried, and loadings solved again each given the others.
"""

from __future__ import annotations

import numpy as np

from .._limits import BUDGET_SPLITS, BUDGET_TRIALS, CHOICE_SWAPS, REFINEMENT_ROUNDS, RISE, SMALL_ORDER
from .._types import Array
from ..operators.deflation import DEFLATIONS, DeflatedOperator
from ..operators.problem import Problem
from ..operators.submatrix import rows_of
from ..solvers.bordered_pencil import Pencil
from ..solvers.refitting import refit
from ..solvers.solution import Solution
from ..supports.admissible import Supports
from ..supports.enumeration import splits_of
from ..supports.search import Steps
from .orthogonal_search import Loading, in_turn
from .refinement import quickly_refined, refined

__all__ = ["Change", "best_budget", "even_split"]

Change = tuple[float, int]  # what is lost or gained by a unit


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
        new, _ = refined(problem, _without_zeros(best), sizes, None, 0, REFINEMENT_ROUNDS, 1e-7, seed, None)
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
        loadings = _without_zeros(loadings)
        for trial, split in _trials(problem, loadings, sizes, most)[:BUDGET_TRIALS]:
            new, more = quickly_refined(problem, trial, split)
            if more > value * (1 + RISE):
                loadings, value, sizes = new, more, split
                steps(1)
                break
        else:
            break
    return loadings, value, sizes


def _trials(
    problem: Problem, loadings: list[Loading], sizes: tuple[int, ...], most: int
) -> list[tuple[list[Loading], tuple[int, ...]]]:
    """Loadings after a move, and their cardinalities; those of the largest gain first.

    Of a loading with more room than it uses, that may move, without a loss.
    """
    supports, losses, gains = problem.supports, list[list[Change]](), list[list[Change]]()
    used = [supports.cardinality_with(index) for index, _ in loadings]
    for t, x in enumerate(loadings):
        state = _given(problem, loadings[:t] + loadings[t + 1 :])
        changes = _changes_of_units if supports.shapes else _changes
        loss, gain = changes(state, supports, x)
        losses.append([(0.0, -1)] if not supports.shapes and used[t] < sizes[t] else loss)
        gains.append(gain)
    moves = []
    for s, (k, now) in enumerate(zip(sizes, used, strict=True)):
        leaving = [(lost, u, int(supports.size[u]) if u >= 0 else 1) for lost, u in losses[s]]
        leaving += [(0.0, -1, k - now)] if supports.shapes and k > now else []
        for lost, u, freed in leaving:
            for t, joining in enumerate(gains):
                room = sizes[t] - used[t] + freed
                fits = [(gained, v) for gained, v in joining if supports.size[v] <= room]
                if t != s and fits and sizes[t] + freed <= most:
                    gained, v = max(fits)
                    moves.append((gained - lost, s, u, t, v, freed))
    out = []
    for _, s, u, t, v, freed in sorted(moves, key=lambda move: -move[0]):
        trial, split = [*loadings], [*sizes]
        split[s] -= freed
        split[t] += freed
        if u >= 0:
            index, entries = loadings[s]
            kept = supports.unit[index] != u
            trial[s] = index[kept], entries[kept]
        trial[t] = _joined(supports, loadings[t], v)
        if all(entries.any() for _, entries in trial):
            out.append((trial, tuple(split)))
    return out


def _given(problem: Problem, others: list[Loading]) -> DeflatedOperator:
    state = DeflatedOperator.from_problem(problem, DEFLATIONS["generalized"])
    for other in others:
        state = state.deflate(*other, problem.noise)
    return state


def _joined(supports: Supports, x: Loading, unit: int) -> Loading:
    """A loading with tiny entries for one unit more."""
    index, entries = x
    new = np.setdiff1d(supports.variables(np.array([unit])), index)
    tiny = np.full(len(new), np.finfo(entries.dtype).eps, entries.dtype)
    if supports.signs is not None:
        tiny *= np.where(supports.signs[new] == 0, 1, supports.signs[new])
    both = np.append(index, new)
    order = np.argsort(both)
    return both[order], np.append(entries, tiny)[order]


def _changes(
    state: DeflatedOperator, supports: Supports, x: Loading
) -> tuple[list[Change], list[Change]]:  # fmt: skip
    """What is lost without the variable that is missed least, and gained with that which adds most."""
    S, p = x[0], len(supports.unit)
    pencil = Pencil.of(state, -1.0 if state.quotient else 0.0)
    C = rows_of(state.operator, S)
    basis = pencil.basis(C[:, S].astype(np.float64), S)
    now = float(basis.eigenvalues[0]) if len(basis.eigenvalues) else 0.0
    left = basis.without_each()
    loss = [(now - float(left.max()), int(S[np.argmax(left)]))] if len(S) > 1 else []
    others = np.setdiff1d(np.arange(p), S)
    if len(others) == 0:
        return loss, []
    diagonal = np.ascontiguousarray(state.diagonal, np.float64)
    norm = None if pencil.Q is not None else np.einsum("ij,ij->j", C, C, dtype=np.float64)
    value: Array = pencil.bordered_eigenvalues(C, S, others, diagonal, basis, norm)
    return loss, [(float(value.max()) - now, int(others[np.argmax(value)]))]


def _changes_of_units(
    state: DeflatedOperator, supports: Supports, x: Loading
) -> tuple[list[Change], list[Change]]:
    """What is lost without each unit of the smallest norms, and gained with each of the largest products."""
    index, entries = x
    now, units = _worth(state, x), supports.units(index)
    dense = np.zeros(len(supports.unit))
    dense[index] = entries
    leaving = units[~supports.included[units]] if len(units) > 1 else units[:0]
    leaving = leaving[np.argsort(supports.norms(dense)[leaving], kind="stable")][:BUDGET_TRIALS]
    losses = []
    for u in leaving.tolist():
        kept = supports.unit[index] != u
        losses.append((now - _worth(state, (index[kept], entries[kept])), u))
    product = state.operator.apply(index, np.ascontiguousarray(entries)).astype(np.float64)
    outside = supports.allowed & ~supports.included
    outside[units] = False
    best = np.flatnonzero(outside)
    norms = supports.norms(supports.projected(product))
    best = best[np.argsort(-norms[best], kind="stable")][:CHOICE_SWAPS]
    return losses, [(_worth(state, _joined(supports, x, u)) - now, u) for u in best.tolist()]


def _worth(state: DeflatedOperator, x: Loading) -> float:
    """What the best values on a support explain."""
    index, entries = x
    if not entries.any():
        return 0.0
    entries = entries / np.linalg.norm(entries)
    return max(refit(state, Solution(index, entries, -np.inf, 0, True)).objective, 0.0)
