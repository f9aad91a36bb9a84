"""Supports under a prior that respect what the caller knows of the variables (operators/choice)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._types import Array, Index
from ..operators.choice import Choice
from .priors import Isotropic, Prior

__all__ = ["chosen_support"]
__dir__ = __all__.copy


def chosen_support(prior: Prior, choice: Choice, r: Array, a: float, k: int) -> Index:
    """Greedy by units in r_S'(K_S)^-1 r_S - log det K_S, K = a I + L, from those that are included."""
    rows, rest = np.zeros((0, len(r))), r.astype(np.float64)
    units = choice.included.copy()
    for u in np.flatnonzero(units):
        rows, rest = _joined(prior, choice.variables(np.array([u])), a, rows, rest)
    several = np.bincount(choice.unit) > 1
    diagonal = a + (1.0 if isinstance(prior, Isotropic) else prior.matrix.diagonal())
    while units.sum() < k:
        d = diagonal - np.sum(rows**2, axis=0)
        gains = np.full(len(units), -np.inf)
        alone = np.flatnonzero((choice.allowed & ~units & ~several)[choice.unit])
        gains[choice.unit[alone]] = rest[alone] ** 2 / d[alone] - np.log(d[alone])
        for u in np.flatnonzero(choice.allowed & ~units & several):
            S = choice.variables(np.array([u]))
            gains[u] = _gain(_block(prior, S, a) - rows[:, S].T @ rows[:, S], rest[S])
        best = int(np.argmax(gains))
        units[best] = True
        if units.sum() < k:
            rows, rest = _joined(prior, choice.variables(np.array([best])), a, rows, rest)
    return choice.variables(np.flatnonzero(units))


def _gain(K: Array, rest: Array) -> float:
    return float(rest @ np.linalg.solve(K, rest)) - float(np.linalg.slogdet(K)[1])


def _block(prior: Prior, S: Index, a: float) -> Array:
    return _dense(prior, S)[:, S] + a * np.eye(len(S))


def _dense(prior: Prior, S: Index) -> NDArray[Any]:
    """Rows of L."""
    if isinstance(prior, Isotropic):
        out = np.zeros((len(S), prior.p))
        out[np.arange(len(S)), S] = 1
        return out
    some = prior.matrix[S]
    return np.asarray(some if isinstance(some, np.ndarray) else some.toarray())


def _joined(prior: Prior, S: Index, a: float, rows: Array, rest: Array) -> tuple[Array, Array]:
    """The rows of the Cholesky factor for all variables, and r less its part on them, with S more."""
    new = _dense(prior, S) - rows[:, S].T @ rows
    new[np.arange(len(S)), S] += a
    L = np.linalg.cholesky(new[:, S])
    new = np.linalg.solve(L, new)
    return np.vstack([rows, new]), rest - np.linalg.solve(L, rest[S]) @ new
