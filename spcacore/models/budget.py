"""One number of nonzeros for all loadings: how to divide it, and among which variables.

A nonzero moves from one loading to another where the loss of the one, given all the others, is less than the
gain of the other: the moves that promise most are tried, and loadings solved again each given the others.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._limits import BUDGET_TRIALS, REFINEMENT_ROUNDS, RISE, SMALL_ORDER
from ..operators.deflation import DEFLATIONS, DeflatedOperator
from ..operators.problem import Problem
from ..solvers.bordered_pencil import Pencil
from ..solvers.swaps import rows_of
from .bordered_sums import Steps
from .orthogonal_search import Loading, in_turn
from .refinement import quickly_refined, refined

Move = tuple[float, int, int, int, int]  # net gain; i leaves loading s, and j joins loading t


def even_split(total: int, r: int) -> tuple[int, ...]:
    """As equal as possible, larger ones first."""
    return tuple(total // r + (t < total % r) for t in range(r))


def best_budget(
    problem: Problem, total: int, r: int, starts: list[list[Loading]], steps: Steps, seed: int, again: bool
) -> tuple[list[Loading], float]:
    """The best loadings of so many nonzeros in all that moves lead to, and what they explain.

    If begun `again`, from the starts alone.
    """
    most = min(total - r + 1, problem.p)
    begin = starts if again else [*starts, in_turn(problem, even_split(total, r), seed)]
    found = [
        _moved(problem, *quickly_refined(problem, one, _sizes(one), seed), most, steps, seed)
        for one in begin
        if len(one) == r
    ]
    best, value = max(found, key=lambda one: one[1], default=(begin[-1], 0.0))
    while not (again or steps.over) and len(best) == r and problem.p <= SMALL_ORDER:
        new, _ = refined(problem, best, _sizes(best), None, 0, REFINEMENT_ROUNDS, 1e-7, seed, None)
        new, more = quickly_refined(problem, new, _sizes(new), seed)
        if not more > value * (1 + RISE):
            break
        best, value = _moved(problem, new, more, most, steps, seed)
        steps(value)
    return best, value


def _sizes(loadings: list[Loading]) -> tuple[int, ...]:
    return tuple(len(index) for index, _ in loadings)


def _moved(
    problem: Problem, loadings: list[Loading], value: float, most: int, steps: Steps, seed: int
) -> tuple[list[Loading], float]:
    """Moves of a nonzero from one loading to another, as long as one that is tried raises the variance."""
    while not steps.over:
        for _, s, i, t, j in _moves(problem, loadings, most)[:BUDGET_TRIALS]:
            trial, sizes = [*loadings], [*_sizes(loadings)]
            index, entries = loadings[s]
            kept = index != i
            trial[s] = index[kept], entries[kept] if entries[kept].any() else np.ones_like(entries[kept])
            index, entries = loadings[t]
            at = int(np.searchsorted(index, j))
            trial[t] = np.insert(index, at, j), np.insert(entries, at, np.finfo(entries.dtype).eps)
            sizes[s] -= 1
            sizes[t] += 1
            new, more = quickly_refined(problem, trial, tuple(sizes), seed)
            if more > value * (1 + RISE) and sum(_sizes(new)) <= sum(sizes):
                loadings, value = new, more
                steps(value)
                break
        else:
            break
    return loadings, value


def _moves(problem: Problem, loadings: list[Loading], most: int) -> list[Move]:
    """For each two loadings the variable that one misses least, and that which the other gains most by."""
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
        if len(S) > 1:
            left = basis.without_each()
            losses[t] = now - float(left.max()), int(S[np.argmax(left)])
        others = np.setdiff1d(np.arange(problem.p), S)
        if len(others) and len(S) < most:
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
