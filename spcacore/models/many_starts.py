"""Loadings of few variables from many starts at once, all steps of which are made together.

A generation of starts draws some loadings at random, or takes them from others, and keeps the rest of one of
the best ends so far. Rounds solve each loading again given the others, by `max x'PAPx / x'Px` of the
variables of largest

    |PAPx - theta Px + theta x|,    theta = x'PAPx / x'Px, P = I - QQ', Q a basis of the others,

that is by truncated power for the quotient. Most starts end after few rounds; the best go on. The arrays have
the starts as their first axis, so that a step of all costs little more than one.
"""

from __future__ import annotations

import numpy as np

from .._limits import (
    CANDIDATE_TOL,
    GENERATION_BEST,
    GENERATION_STARTS,
    GENERATION_STEPS,
    GENERATION_WORK,
    GENERATIONS,
    GENERATIONS_ROUNDS,
    GENERATIONS_STALLED,
)
from .._types import Array, Index
from ..operators.problem import Problem
from .orthogonal_search import Loading, as_matrix

__all__ = ["best_of_many"]
__dir__ = __all__.copy

_NEGLIGIBLE = 1e-8  # of a unit vector outside of a span


def best_of_many(
    problem: Problem, sizes: tuple[int, ...], start: list[Loading], rng: np.random.Generator
) -> list[list[Loading]]:
    """The best of different ends, best first; the start is the first generation's parent."""
    kept: Index = np.arange(problem.p) if problem.choice is None else problem.choice.available
    A = problem.operator.submatrix(kept).astype(np.float64)
    A = (A + A.T) / 2
    best = as_matrix(problem.p, start)[kept][None].astype(np.float64)
    values = _explained(A, best)
    stalled = 0
    for _ in range(GENERATIONS):
        V, new = _ends(A, sizes, _generation(len(A), sizes, best, rng))
        before = values[0]
        best, values = _different(np.concatenate([best, V]), np.concatenate([values, new]))
        stalled = 0 if values[0] > before * (1 + CANDIDATE_TOL) else stalled + 1
        if stalled == GENERATIONS_STALLED:
            break
    dtype = problem.operator.dtype
    return [
        [(kept[i := np.flatnonzero(v)], np.ascontiguousarray(v[i]).astype(dtype)) for v in V.T] for V in best
    ]


def _generation(p: int, sizes: tuple[int, ...], best: Array, rng: np.random.Generator) -> Array:
    """Starts: a quarter at random, a half with new loadings, a quarter with loadings of two of the best."""
    r = len(sizes)
    work = sum(k**3 + p**2 for k in sizes)
    least, most = GENERATION_STARTS
    V = np.zeros((int(np.clip(GENERATION_WORK / work, least, min(most, least + 4 * p * r))), p, r))
    for n, one in enumerate(V):
        new = rng.permutation(r)[: rng.integers(1, r + 1) if n % 4 else r]
        parent, other = best[rng.integers(len(best), size=2)]
        one[:] = parent
        for t in new:
            one[:, t] = 0
            one[rng.choice(p, sizes[t], replace=False), t] = rng.standard_normal(sizes[t])
            if n % 4 == 1:
                one[:, t] = other[:, rng.integers(r)] + 1e-3 * one[:, t]
    return V


def _ends(A: Array, sizes: tuple[int, ...], V: Array) -> tuple[Array, Array]:
    """Where rounds lead, of fewer and fewer starts, and what they explain; largest first."""
    values = np.empty(0)
    for part, rounds in GENERATIONS_ROUNDS:
        V = V[: len(V) // part]
        for _ in range(rounds):
            for t, k in enumerate(sizes):
                V[:, :, t] = _solved_again(A, V, t, k)
        values = _explained(A, V)
        order = _largest_first(values)
        V, values = V[order], values[order]
    return V, values


def _solved_again(A: Array, V: Array, t: int, k: int) -> Array:
    """Unit loadings t of all starts, given the others."""
    Q = np.linalg.qr(np.delete(V, t, 2))[0]
    AQ = A @ Q
    M = np.swapaxes(Q, 1, 2) @ AQ
    theta, x = _fitted(A, Q, AQ, M, _largest_entries(V[:, :, t], k))
    top, best = theta, x
    for _ in range(GENERATION_STEPS):
        Px = x - _product(Q, _product(np.swapaxes(Q, 1, 2), x))
        y = Px @ A
        x = y - _product(Q, _product(np.swapaxes(Q, 1, 2), y)) + theta[:, None] * (x - Px)
        theta, x = _fitted(A, Q, AQ, M, _largest_entries(x, k))
        better = theta > top
        top = np.where(better, theta, top)
        best = np.where(better[:, None], x, best)
    return best


def _largest_entries(x: Array, k: int) -> Index:
    return np.argsort(-np.abs(x), axis=1, kind="stable")[:, :k]


def _fitted(A: Array, Q: Array, AQ: Array, M: Array, S: Index) -> tuple[Array, Array]:
    """The largest x'PAPx / x'Px over vectors on the supports S, and unit vectors that attain it."""
    rows = np.arange(len(S))[:, None]
    own, image = Q[rows, S], AQ[rows, S]
    across = image @ np.swapaxes(own, 1, 2)
    inside = A[S[:, :, None], S[:, None, :]] - across - np.swapaxes(across, 1, 2)
    inside += own @ M @ np.swapaxes(own, 1, 2)
    metric = np.eye(S.shape[1]) * (1 + _NEGLIGIBLE) - own @ np.swapaxes(own, 1, 2)
    L = np.linalg.inv(np.linalg.cholesky(metric))
    values, E = np.linalg.eigh(L @ inside @ np.swapaxes(L, 1, 2))
    x = np.zeros(Q.shape[:2])
    x[rows, S] = _product(np.swapaxes(L, 1, 2), E[:, :, -1])
    return np.maximum(values[:, -1], 0), x / np.linalg.norm(x, axis=1, keepdims=True)


def _explained(A: Array, V: Array) -> Array:
    """Tr(Q'AQ) of each, Q a basis of the loadings."""
    Q, R = np.linalg.qr(V)
    Q = Q * (np.abs(np.diagonal(R, axis1=1, axis2=2)) > _NEGLIGIBLE**0.5)[:, None, :]
    out: Array = ((A @ Q) * Q).sum(axis=(1, 2))
    return out


def _different(V: Array, values: Array) -> tuple[Array, Array]:
    """The best of different value, largest first."""
    kept: list[int] = []
    for n in _largest_first(values):
        if not kept or values[n] < values[kept[-1]] * (1 - CANDIDATE_TOL):
            kept.append(int(n))
        if len(kept) == GENERATION_BEST:
            break
    return V[kept], values[kept]


def _largest_first(values: Array) -> Index:
    """Equal but for rounding, in their order."""
    return np.argsort(-np.round(values / (values.max() or 1.0), 9), kind="stable")


def _product(M: Array, x: Array) -> Array:
    """Of each matrix with its vector."""
    out: Array = (M @ x[:, :, None])[:, :, 0]
    return out
