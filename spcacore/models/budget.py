"""One number of nonzeros for all loadings: how to divide it, and among which variables.

A nonzero moves from one loading to another where the loss of the one, given all the others, is less than the
gain of the other: the moves that promise most are tried, and loadings solved again each given the others.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._limits import BUDGET_SPLITS, BUDGET_TRIALS, REFINEMENT_ROUNDS, RISE, SMALL_ORDER
from ..operators.deflation import DEFLATIONS, DeflatedOperator
from ..operators.problem import Problem
from ..solvers.bordered_pencil import Pencil
from ..solvers.swaps import rows_of
from .bordered_sums import Steps
from .budget_units import moved_units
from .disjoint_enumeration import splits_of
from .orthogonal_search import Loading, in_turn
from .refinement import quickly_refined, refined

__all__ = ["Move", "best_budget", "even_split"]
__dir__ = __all__.copy

Move = tuple[float, int, int, int, int]  # net gain; i, or none, leaves loading s, and j joins t


def even_split(total: int, r: int) -> tuple[int, ...]:
    """As equal as possible, larger ones first."""
    return tuple(total // r + (t < total % r) for t in range(r))


def best_budget(
    problem: Problem, total: int, r: int, starts: list[list[Loading]], steps: Steps, seed: int, again: bool
) -> tuple[list[Loading], float]:
    """The best loadings of so many nonzeros in all that moves lead to, and what they explain.

    If begun `again`, from the starts alone.
    """
    low, high = (1, problem.p) if problem.choice is None else problem.choice.bounds
    most, split = min(total - (r - 1) * low, high), even_split(total, r)
    begin = [(one, tuple(len(index) for index, _ in one)) for one in starts]
    splits = [] if again else [split]
    if problem.choice is not None and problem.choice.counts_variables and problem.p <= SMALL_ORDER:
        splits += [s for s in splits_of(total, r, most) if s[-1] >= low and s != split][:BUDGET_SPLITS]
    begin += [(in_turn(problem, sizes, seed), sizes) for sizes in splits]
    ends = []
    for one, sizes in begin:
        if len(one) == r:
            quick = quickly_refined(problem, _without_zeros(one), sizes, seed)
            ends.append(_moved(problem, *quick, sizes, most, steps, seed))
    if not ends:
        return begin[-1][0], 0.0
    best, value, sizes = max(ends, key=lambda one: one[1])
    while not (again or steps.over) and problem.p <= SMALL_ORDER:
        new, _ = refined(problem, _without_zeros(best), sizes, None, 0, REFINEMENT_ROUNDS, 1e-7, seed, None)
        new, more = quickly_refined(problem, _without_zeros(new), sizes, seed)
        if not more > value * (1 + RISE):
            break
        best, value, sizes = _moved(problem, new, more, sizes, most, steps, seed)
        steps()
    return best, value


def _without_zeros(loadings: list[Loading]) -> list[Loading]:
    return [(index[entries != 0], entries[entries != 0]) for index, entries in loadings]


def _moved(
    problem: Problem, loadings: list[Loading], value: float, sizes: tuple[int, ...], most: int, steps: Steps,
    seed: int,
) -> tuple[list[Loading], float, tuple[int, ...]]:  # fmt: skip
    """Moves of a nonzero from one loading to another, as long as one that is tried raises the variance.

    With what is explained then, and how many nonzeros each loading may have.
    """
    if problem.choice is not None and problem.choice.shapes:
        return moved_units(problem, problem.choice, loadings, value, sizes, most, steps, seed)
    while not steps.over:
        loadings = _without_zeros(loadings)
        for _, s, i, t, j in _moves(problem, loadings, sizes, most)[:BUDGET_TRIALS]:
            trial, split = [*loadings], [*sizes]
            index, entries = loadings[s]
            trial[s] = index[index != i], entries[index != i]
            index, entries = loadings[t]
            at = int(np.searchsorted(index, j))
            trial[t] = np.insert(index, at, j), np.insert(entries, at, np.finfo(entries.dtype).eps)
            split[s] -= 1
            split[t] += 1
            new, more = quickly_refined(problem, trial, tuple(split), seed)
            if more > value * (1 + RISE):
                loadings, value, sizes = new, more, tuple(split)
                steps()
                break
        else:
            break
    return loadings, value, sizes


def _moves(
    problem: Problem, loadings: list[Loading], sizes: tuple[int, ...], most: int
) -> list[Move]:  # fmt: skip
    """For each two loadings the variable that one misses least, and that which the other gains most by.

    A loading with fewer nonzeros than it may have misses none, -1.
    """
    losses: list[tuple[float, int] | None] = []
    gains: list[tuple[float, int] | None] = []
    for t, (S, _) in enumerate(loadings):
        state = DeflatedOperator.from_problem(problem, DEFLATIONS["generalized"])
        for other in loadings[:t] + loadings[t + 1 :]:
            state = state.deflate(*other, problem.noise)
        pencil = Pencil.of(state, -1.0 if state.quotient else 0.0)
        C = rows_of(state.operator, S)
        basis = pencil.basis(C[:, S].astype(np.float64), S)
        now = float(basis.eigenvalues[0]) if len(basis.eigenvalues) else 0.0
        losses.append(None)
        gains.append(None)
        if len(S) < sizes[t]:
            losses[t] = 0.0, -1
        elif len(S) > 1:
            left = basis.without_each()
            losses[t] = now - float(left.max()), int(S[np.argmax(left)])
        others = np.setdiff1d(np.arange(problem.p), S)
        if len(others) and sizes[t] < most:
            diagonal = np.ascontiguousarray(state.diagonal, np.float64)
            norm = None if pencil.Q is not None else np.einsum("ij,ij->j", C, C, dtype=np.float64)
            value: NDArray[np.float64] = pencil.bordered_eigenvalues(C, S, others, diagonal, basis, norm)
            gains[t] = float(value.max()) - now, int(others[np.argmax(value)])
    moves = [
        (gain[0] - loss[0], s, loss[1], t, gain[1])
        for s, loss in enumerate(losses)
        for t, gain in enumerate(gains)
        if s != t and loss is not None and gain is not None
    ]
    return sorted(moves, key=lambda move: -move[0])
