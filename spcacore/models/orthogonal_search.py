"""Supports of orthogonal loadings, which are hard to change one loading at a time."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._limits import (
    ORTHOGONAL_ENTERING,
    ORTHOGONAL_ORDER,
    ORTHOGONAL_STEPS,
    ORTHOGONAL_SWAP_WORK,
    ORTHOGONAL_SWAPS,
    ORTHOGONAL_TOLERANCE,
    ORTHOGONAL_TRIAL_STEPS,
    PENALTY_FIRST,
    PENALTY_GROWTH,
    PENALTY_LAST,
)
from ..operators.deflation import DEFLATIONS, DeflatedOperator
from ..operators.problem import Problem
from ..operators.submatrix import largest_submatrix
from ..solvers.truncated_power import TruncatedPower
from .orthogonal_values import Array, Pattern, best_values, explained, nearest_orthogonal

__all__ = [
    "Loading", "Supports", "Trial", "as_loadings", "as_matrix", "in_turn", "on_supports",
    "penalized_supports", "supports_of", "swapped",
]  # fmt: skip

Loading = tuple[NDArray[np.intp], NDArray[Any]]
Supports = tuple[bytes, ...]


def as_matrix(p: int, loadings: list[Loading]) -> Array:
    """The loadings as columns, in float64."""
    V = np.zeros((p, len(loadings)))
    for t, (index, value) in enumerate(loadings):
        V[index, t] = value
    return V


def as_loadings(V: Array, dtype: Any) -> list[Loading]:
    """The nonzeros of each column."""
    return [(i := np.flatnonzero(v), v[i].astype(dtype)) for v in V.T]


def supports_of(loadings: list[Loading]) -> Supports:
    """What tells whether two sets of loadings have the same supports."""
    return tuple(index.tobytes() for index, _ in loadings)


def on_supports(
    problem: Problem, loadings: list[Loading], n_steps: int = ORTHOGONAL_STEPS
) -> list[Loading] | None:
    """Orthogonal loadings near these on their supports, of the best values to which they ascend; or None.

    Only near ones where the entries together are too many for `best_values`.
    """
    used = np.unique(np.concatenate([index for index, _ in loadings]))
    V = as_matrix(problem.p, loadings)[used]
    pattern = Pattern(V != 0)
    new = nearest_orthogonal(V, pattern)
    if new is None:
        return None
    if len(pattern.row) <= ORTHOGONAL_ORDER and len(used) <= largest_submatrix(problem.operator):
        new = best_values(_submatrix(problem, used), new, pattern, n_steps)
    out = np.zeros((problem.p, len(loadings)))
    out[used] = new
    return as_loadings(out, problem.operator.dtype)


def _submatrix(problem: Problem, index: NDArray[np.intp]) -> Array:
    return problem.operator.submatrix(index).astype(np.float64)


def in_turn(
    problem: Problem, sizes: tuple[int, ...], seed: int, constraint: str | None = None
) -> list[Loading]:
    """Loadings by truncated power and projection deflation, or under a constraint; fewer where no variance is
    left."""
    state, out = DeflatedOperator.from_problem(problem, constraint=constraint), []
    solver = TruncatedPower.from_record(problem)
    for t, size in enumerate(sizes):
        x = solver.solve(problem, state, size, [seed, t], None)
        if x is None or not x.objective > problem.noise(x.index):
            break
        out.append((x.index, x.entries))
        state = state.deflate(*out[-1], problem.noise)
    return out


def penalized_supports(
    problem: Problem, loadings: list[Loading], sizes: tuple[int, ...], seed: int
) -> dict[Supports, list[Loading]]:
    """Loadings by their supports, on the way from these to nearly orthogonal ones.

    Each in turn maximizes x'Ax - penalty * sum of (x'x_s)^2 over the others, while the penalty grows
    (Cory-Wright and Pauphilet 2022, algorithm 2, the components by truncated power and swaps).
    """
    op, loadings = problem.operator, list(loadings)
    seen: dict[Supports, list[Loading]] = {}
    solver = TruncatedPower.from_record(problem)
    if problem.p > ORTHOGONAL_ORDER:
        solver = replace(solver, swaps=0.0)
    state = DeflatedOperator.from_problem(problem, DEFLATIONS["hotelling"])
    variances = [float(x @ op.apply(i, np.ascontiguousarray(x))[i]) for i, x in loadings]
    count = int(math.log(PENALTY_LAST / PENALTY_FIRST, PENALTY_GROWTH)) + 1
    for penalty in PENALTY_FIRST * float(np.mean(variances)) * PENALTY_GROWTH ** np.arange(count):
        for t, (index, value) in enumerate(loadings):
            deflated, diagonal = op, None if problem.diagonal is None else problem.diagonal.copy()
            for s, (i, x) in enumerate(loadings):
                if s != t:
                    deflated = deflated.deflated(
                        "hotelling", i, np.ascontiguousarray(x), None, float(penalty)
                    )
                    if diagonal is not None:
                        diagonal[i] -= penalty * x.astype(np.float64) ** 2
            start = np.zeros(problem.p)
            start[index] = value
            near = replace(state, operator=deflated, diagonal=diagonal)
            new = replace(solver, start=start).solve(problem, near, sizes[t], [seed, t], None)
            if new is not None:
                loadings[t] = new.index, new.entries
        seen[supports_of(loadings)] = list(loadings)
        if _inner_products(loadings) <= ORTHOGONAL_TOLERANCE:
            break
    return seen


def _inner_products(loadings: list[Loading]) -> float:
    """The largest magnitude of x'y of two loadings."""
    used = np.unique(np.concatenate([index for index, _ in loadings]))
    V = as_matrix(int(used[-1]) + 1, loadings)[used]
    return float(np.abs(np.triu(V.T @ V, 1)).max())


def swapped(problem: Problem, loadings: list[Loading], sizes: tuple[int, ...]) -> list[Loading] | None:
    """Orthogonal loadings with variables swapped for others; None if no swap raises the variance.

    A loading with fewer nonzeros than it may have takes one more instead. Each trial chooses all values
    again; those of the largest gain, to second order and but for the constraint, come first.
    """
    op, total = problem.operator, sum(len(index) for index, _ in loadings)
    tries = min(ORTHOGONAL_SWAPS, int(ORTHOGONAL_SWAP_WORK / total**3))
    if tries == 0 or total > ORTHOGONAL_ORDER or problem.diagonal is None:
        return None
    V, found = as_matrix(problem.p, loadings), False
    while True:
        AV = op.apply_block(np.asfortranarray(V, op.dtype)).astype(np.float64)
        gradient = np.where(V != 0, 0, np.abs(AV - V @ (V.T @ AV)))
        few = min(ORTHOGONAL_ENTERING, problem.p)
        entering = np.argsort(-gradient, axis=0, kind="stable")[:few]
        kept = np.union1d(np.flatnonzero(V.any(axis=1)), entering)
        if len(kept) > largest_submatrix(op):
            break
        A, U = _submatrix(problem, kept), V[kept]
        new = None
        for trial in _trials(A, U, gradient[kept], sizes):
            tries -= 1
            new = _tried(A, U, trial)
            if new is not None or tries <= 0:
                break
        if new is None:
            break
        V, found = np.zeros(V.shape), True
        V[kept] = new
        if tries <= 0:
            break
    return as_loadings(V, op.dtype) if found else None


Trial = tuple[int, int, int]


def _trials(A: Array, V: Array, gradient: Array, sizes: tuple[int, ...]) -> list[Trial]:
    """Loading, leaving variable or -1, and entering one, by what the exchange may gain."""
    gains: list[float] = []
    trials: list[Trial] = []
    d = np.diagonal(A)
    for t, v in enumerate(V.T):
        variance = float(v @ A @ v)
        below = np.maximum(variance - d, 0.1 * abs(variance))
        gain, loss = gradient[:, t] ** 2 / below, v**2 * below
        inside = [-1] if np.count_nonzero(v) < sizes[t] else np.flatnonzero(v).tolist()
        for i in inside:
            for j in np.flatnonzero(gradient[:, t]).tolist():
                gains.append(gain[j] - (loss[i] if i >= 0 else 0.0))
                trials.append((t, i, j))
    return [trials[n] for n in np.argsort(-np.array(gains), kind="stable")] if trials else []


def _tried(A: Array, V: Array, trial: Trial) -> Array | None:
    """The loadings after an exchange where it raises the variance."""
    t, i, j = trial
    used, start = V != 0, V.copy()
    if i >= 0:
        used[i, t], start[i, t] = False, 0
    used[j, t] = True
    start[:, t] /= np.linalg.norm(start[:, t]) or 1
    pattern = Pattern(used)
    new = nearest_orthogonal(start, pattern)
    if new is None:
        return None
    new = best_values(A, new, pattern, ORTHOGONAL_TRIAL_STEPS)
    if not explained(A, new) > (1 + 1e-8) * explained(A, V):
        return None
    return best_values(A, new, pattern, ORTHOGONAL_STEPS)
