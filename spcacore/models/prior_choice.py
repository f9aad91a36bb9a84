"""Supports under a prior, and how many there are."""

from __future__ import annotations

import math

import numpy as np

from .._types import Array, Index
from ..objectives.regression import Regression
from ..objectives.rows import KeptRows
from ..supports.admissible import Supports
from ..supports.search import forward_ways
from .priors import Isotropic, PriorMatrix, Sparse

__all__ = ["chosen_support", "log_binomial", "log_supports"]


def chosen_support(prior: PriorMatrix, supports: Supports, r: Array, a: float) -> Index:
    """Greedy by units in r_S'(K_S)^-1 r_S - log det K_S, K = a I + L.

    Where K is a multiple of I, the largest norms are best.
    """
    if isinstance(prior, Sparse) and supports.plain:
        return prior.support(r, a, supports.room)
    ends = []
    if isinstance(prior, Isotropic):
        best = supports.variables(supports.largest(supports.norms(r), supports.room))
        if not supports.grouped:
            return best
        ends = [supports.mask(best)]

    def rows(S: Index) -> tuple[Array]:
        K = prior.rows(S)
        K[np.arange(len(S)), S] += a
        return (K,)

    objective = Regression(KeptRows(rows, prior.p), a + prior.diagonal, r, supports, volume=True)
    return supports.index(max([*forward_ways(objective), *ends], key=objective.value))


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
