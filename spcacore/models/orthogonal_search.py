"""Orthogonal loadings: supports, which are hard to change one loading at a time, and values on given ones.

The values, all at once: maximize Tr V'AV subject to V'V = I and V = 0 outside of a pattern. With symmetric
multipliers L the gradient of the Lagrangian is 2 (AV - VL) on the pattern, its second derivative along D is
2 Tr(D'AD - D'DL). A step is Newton's within the directions that keep V'V to first order, each curvature taken
negative; then V is brought back to V'V = I by Gauss-Newton steps of least norm. A step that does not raise
the variance is halved: it never falls.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._limits import (
    DENSE_JACOBIAN,
    ORTHOGONAL_ENTERING,
    ORTHOGONAL_HALVINGS,
    ORTHOGONAL_ORDER,
    ORTHOGONAL_PROJECTIONS,
    ORTHOGONAL_STEPS,
    ORTHOGONAL_SWAP_WORK,
    ORTHOGONAL_SWAPS,
    ORTHOGONAL_TOLERANCE,
    ORTHOGONAL_TRIAL_STEPS,
    PENALTY_FIRST,
    PENALTY_GROWTH,
    PENALTY_LAST,
)
from .._types import Array, Index
from ..operators.deflation import DEFLATIONS, DeflatedOperator
from ..operators.problem import Problem
from ..operators.submatrix import largest_submatrix
from ..solvers.truncated_power import TruncatedPower

__all__ = [
    "Loading", "Pattern", "Supports", "Trial", "as_loadings", "as_matrix", "best_values", "explained",
    "in_turn", "nearest_orthogonal", "on_supports", "penalized_supports", "supports_of", "swapped",
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


# ---- values on given supports ------------------------------------------------------------------------


class Pattern:
    """Where r loadings have their N entries, and which m pairs of them meet."""

    row: Index
    column: Index
    i: Index
    j: Index
    c: Index
    both: Index
    a: NDArray[Any]
    b: NDArray[Any]

    def __init__(self, used: NDArray[np.bool_]):
        self.used = used
        self.row, self.column = np.nonzero(used)
        self.i, self.j = np.nonzero(np.triu(used.T.astype(np.intp) @ used))
        place = np.full(used.shape, -1)
        place[self.row, self.column] = np.arange(len(self.row))
        self.c, self.both = np.nonzero((used[:, self.i] & used[:, self.j]).T)
        self.a, self.b = place[self.both, self.i[self.c]], place[self.both, self.j[self.c]]

    def error(self, V: Array) -> Array:
        """V'V - I, of the pairs that meet; the others have no common variable."""
        return (V.T @ V)[self.i, self.j] - (self.i == self.j)

    def jacobian(self, V: Array) -> Any:
        """The m x N derivatives of `error` by the entries of the pattern, sparse where they are many."""
        shape = len(self.i), len(self.row)
        first, second = V[self.both, self.j[self.c]], V[self.both, self.i[self.c]]
        if shape[0] * shape[1] <= DENSE_JACOBIAN:
            J = np.zeros(shape)
            J[self.c, self.a] = first
            J[self.c, self.b] += second
            return J
        from scipy.sparse import csr_array

        places = np.tile(self.c, 2), np.append(self.a, self.b)
        return csr_array((np.append(first, second), places), shape)

    def curvature(self, A: Array, multipliers: Array) -> Array:
        """The N x N second derivatives of Tr V'AV less the sum of the multipliers times `error`."""
        H = np.where(self.column[:, None] == self.column, 2 * A[np.ix_(self.row, self.row)], 0)
        H[self.a, self.b] -= multipliers[self.c]  # no place twice: a pair and a variable name it
        H[self.b, self.a] -= multipliers[self.c]
        return H

    def matrix(self, values: Array) -> Array:
        """Values of the entries in their places."""
        V = np.zeros(self.used.shape)
        V[self.row, self.column] = values
        return V


def nearest_orthogonal(V: Array, pattern: Pattern) -> Array | None:
    """Orthogonal loadings near V on the pattern; None if the iteration does not reach any.

    Alternating projections until V'V is near I, then Gauss-Newton steps on V'V = I, each of least norm.
    """
    for _ in range(ORTHOGONAL_PROJECTIONS):
        error = pattern.error(V)
        size = np.abs(error).max(initial=0)
        if size <= ORTHOGONAL_TOLERANCE:
            return V
        if size > 0.1:
            left, _, right = np.linalg.svd(V, full_matrices=False)
            V = np.where(pattern.used, left @ right, 0)
        else:
            step = _least_norm(pattern.jacobian(V), -error)
            if not np.abs(step).max() <= 1:  # the equations have no solution near
                return None
            V = V + pattern.matrix(step)
    return None


def _least_norm(J: Any, error: Array) -> Array:
    """The least solution of J d = error, or the least of the least squares ones."""
    if isinstance(J, np.ndarray):
        values, vectors = np.linalg.eigh(J @ J.T)
        kept = values > 1e-12 * values[-1]
        return J.T @ (vectors[:, kept] @ ((vectors[:, kept].T @ error) / values[kept]))
    from scipy.sparse.linalg import lsmr

    return np.asarray(lsmr(J, error, atol=1e-8, btol=1e-8)[0])


def best_values(A: Array, V: Array, pattern: Pattern, n_steps: int) -> Array:
    """A local maximum of Tr V'AV to which V, orthogonal, ascends; A over the rows of V.

    The matrices of order N are dense.
    """
    value = explained(A, V)
    for _ in range(n_steps):
        J = np.asarray(pattern.jacobian(V))
        gradient = 2 * (A @ V)[pattern.row, pattern.column]
        left, size, right = np.linalg.svd(J)
        rank = int(np.count_nonzero(size > 1e-10 * size[0]))
        multipliers = left[:, :rank] @ ((right[:rank] @ gradient) / size[:rank])
        free = right[rank:].T
        within = free.T @ gradient
        if np.linalg.norm(within) <= 1e-9 * np.linalg.norm(gradient):
            break
        bend, turn = np.linalg.eigh(free.T @ pattern.curvature(A, multipliers) @ free)
        bend = np.maximum(np.abs(bend), 1e-3 * np.abs(bend).max())
        step = free @ (turn @ ((turn.T @ within) / bend))
        for _ in range(ORTHOGONAL_HALVINGS):
            new = nearest_orthogonal(V + pattern.matrix(step), pattern)
            if new is not None and explained(A, new) > value:
                break
            step = step / 2
        else:
            break
        rise, V, value = explained(A, new) - value, new, explained(A, new)
        if rise <= 1e-12 * abs(value):
            break
    return V


def explained(A: Array, V: Array) -> float:
    """Tr V'AV."""
    return float(((A @ V) * V).sum())
