"""Supports under a prior that respect what the caller knows of the variables (supports/admissible)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._types import Array, Index
from ..supports.admissible import Supports
from .priors import Isotropic, PriorMatrix

__all__ = ["chosen_support", "log_binomial", "log_supports"]
__dir__ = __all__.copy


def chosen_support(prior: PriorMatrix, choice: Supports, r: Array, a: float, k: int) -> Index:
    """Greedy by units in r_S'(K_S)^-1 r_S - log det K_S, K = a I + L, from those that are included.

    Where groups of different size share the room, also by the gain over the size, and, where K is a multiple
    of I, by the largest norms that fit; the best of these.
    """
    units, most = _greedily(prior, choice, r, a, k, False)
    if choice.counts_variables:
        ways = [_greedily(prior, choice, r, a, k, True)]
        if isinstance(prior, Isotropic):
            packed = choice.largest(choice.norms(r), k)
            S = choice.variables(packed)
            ways.append((packed, _gain(_block(prior, S, a), r[S])))
        for other, value in ways:
            if value > most:
                units, most = other, value
    return choice.variables(units)


def _greedily(
    prior: PriorMatrix, choice: Supports, r: Array, a: float, k: int, relative: bool
) -> tuple[Index, float]:
    """One unit more while one has room, that of the largest gain, or gain over size; and the sum of gains."""
    rows, rest, total = np.zeros((0, len(r))), r.astype(np.float64), 0.0
    units = choice.included.copy()
    for u in np.flatnonzero(units):
        S = choice.variables(np.array([u]))
        total += _gain(_block(prior, S, a) - rows[:, S].T @ rows[:, S], rest[S])
        rows, rest = _joined(prior, S, a, rows, rest)
    several = np.bincount(choice.unit) > 1
    diagonal = a + (1.0 if isinstance(prior, Isotropic) else prior.matrix.diagonal())
    free = choice.fitting(units, k)
    while free.any():
        d = diagonal - np.sum(rows**2, axis=0)
        gains = np.full(len(units), -np.inf)
        alone = np.flatnonzero((free & ~several)[choice.unit])
        gains[choice.unit[alone]] = rest[alone] ** 2 / d[alone] - np.log(d[alone])
        for u in np.flatnonzero(free & several):
            S = choice.variables(np.array([u]))
            gains[u] = _gain(_block(prior, S, a) - rows[:, S].T @ rows[:, S], rest[S])
        best = int(np.argmax(gains / choice.size if relative else gains))
        total += float(gains[best])
        units[best] = True
        free = choice.fitting(units, k)
        if free.any():
            rows, rest = _joined(prior, choice.variables(np.array([best])), a, rows, rest)
    return np.flatnonzero(units), total


def log_binomial(n: int, k: int) -> float:
    """The logarithm of the number of sets of k of n things."""
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def log_supports(choice: Supports, S: Index, k: int) -> float:
    """The logarithm of the number of supports that S is one of.

    These have k units, or, where groups share the room, whole groups of as many variables as those of S.
    """
    free = choice.allowed & ~choice.included
    if not choice.counts_variables:
        return log_binomial(int(free.sum()), k - int(choice.included.sum()))
    room = int(choice.size[free & np.isin(np.arange(len(free)), choice.unit[S])].sum())
    ways = np.full(room + 1, -np.inf)
    ways[0] = 0.0
    for size, n in zip(*np.unique(choice.size[free], return_counts=True), strict=True):
        before = ways.copy()
        for m in range(1, min(int(n), room // int(size)) + 1):
            some = m * int(size)
            ways[some:] = np.logaddexp(ways[some:], before[: room + 1 - some] + log_binomial(int(n), m))
    return float(ways[room])


def _gain(K: Array, rest: Array) -> float:
    return float(rest @ np.linalg.solve(K, rest)) - float(np.linalg.slogdet(K)[1])


def _block(prior: PriorMatrix, S: Index, a: float) -> Array:
    return _dense(prior, S)[:, S] + a * np.eye(len(S))


def _dense(prior: PriorMatrix, S: Index) -> NDArray[Any]:
    """Rows of L."""
    if isinstance(prior, Isotropic):
        out = np.zeros((len(S), prior.p))
        out[np.arange(len(S)), S] = 1
        return out
    some = prior.matrix[S]
    return np.asarray(some if isinstance(some, np.ndarray) else some.toarray())


def _joined(prior: PriorMatrix, S: Index, a: float, rows: Array, rest: Array) -> tuple[Array, Array]:
    """The rows of the Cholesky factor for all variables, and r less its part on them, with S more."""
    new = _dense(prior, S) - rows[:, S].T @ rows
    new[np.arange(len(S)), S] += a
    L = np.linalg.cholesky(new[:, S])
    new = np.linalg.solve(L, new)
    return np.vstack([rows, new]), rest - np.linalg.solve(L, rest[S]) @ new
