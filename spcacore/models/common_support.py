"""One set of variables for r components, of the largest sum of eigenvalues (objectives/eigenvalue_sum)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from .._limits import ACROSS_RANDOM, SMALL_ORDER
from .._types import Array
from ..linalg.eigen import leading_eigenpairs
from ..objectives.eigenvalue_sum import LeadingSum
from ..supports.admissible import Units
from ..supports.search import Steps, best_of, forward

__all__ = ["best_common"]


def best_common(
    objective: LeadingSum, steps: Steps, starts: Iterable[Units] = (), rng: np.random.Generator | None = None
) -> tuple[float, Units]:
    """The best set that swaps lead to, from a few starts or those given; of few variables, with `rng`, random
    ones too."""
    A, r, p = objective.A, objective.r, len(objective.A)
    starts = [*starts]
    if not starts:
        values, V, _ = leading_eigenpairs(A.copy(), r, A if p > SMALL_ORDER and 2 * r < p else None)
        weights = [objective.diagonal, np.square(V) @ np.maximum(values, 0)]
        if rng is not None and p <= SMALL_ORDER:
            weights += [rng.random(p) for _ in range(ACROSS_RANDOM)]
        starts = [forward(objective), *(_largest(objective, weight) for weight in weights)]
    return best_of(objective, starts, steps)


def _largest(objective: LeadingSum, weight: Array) -> Units:
    """The units of largest weights, as many as have room."""
    supports = objective.supports
    units = np.zeros(len(supports.allowed), bool)
    norms = np.sqrt(np.maximum(supports.per_unit(weight), 0))
    units[supports.largest(norms, supports.room)] = True
    return forward(objective, units & supports.allowed)
