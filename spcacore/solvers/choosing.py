"""Steps and ascents among supports of whole units and of given signs, by kernels (units.c, unit_ascent.c)."""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from ..operators.submatrix import largest_submatrix
from ..supports.admissible import Supports
from .solution import Report

__all__ = ["Rule", "Step", "UnitSteps", "Vector"]

Vector = NDArray[np.float64]
Rule = Callable[[Vector], tuple[NDArray[np.intp], Vector]]  # of A x


class Step(IntEnum):
    """What a step keeps of A x; the numbers are those of spca.h."""

    TRUNCATION, L0, L1, L1_BOUND = range(4)


class UnitSteps:
    """Steps of one kind, up to a cardinality, or with a penalty or a bound as their level."""

    supports: Supports
    rule: Any

    def __init__(self, supports: Supports, step: Step, count: int = 0, level: float = 0.0):
        self.supports, self.rule = supports, supports.rule(step, count, level)

    def __call__(self, y: Vector) -> tuple[NDArray[np.intp], Vector]:
        """The support, and the next vector from y = A x, of any norm; x'Ax is taken as 1."""
        x, units = self.rule.step(np.ascontiguousarray(y), 1.0)
        return self.supports.index(units), x

    def ascend(
        self, op: _core.Operator, index: NDArray[np.intp], entries: NDArray[Any], max_iter: int, tol: float,
        hook: Report | None,
    ) -> tuple[int, NDArray[np.intp], NDArray[Any], float, float, int]:  # fmt: skip
        """x <- the step of A x over its norm, until the objective rises no more; the best x met.

        Returns status, as the kernels do, index, entries, objective, x'Ax and the number of iterations.
        """
        x = self.start(op, index, entries)
        status, x, units, objective, quadratic, n_iter = op.unit_ascend(self.rule, x, max_iter, tol, hook)
        if status < 0:
            return status, index, entries, -math.inf, -math.inf, 0
        support = self.supports.index(units)
        return status, support, x[support].astype(op.dtype), objective, quadratic, n_iter

    def start(self, op: _core.Operator, index: NDArray[np.intp], entries: NDArray[Any]) -> Vector:
        """Dense; a variable alone stands for its group."""
        x, members = np.zeros(op.p), index
        x[index] = entries
        if self.supports.grouped and len(index) == 1:
            members = self.supports.variables(self.supports.units(index))
        if 1 < len(members) <= largest_submatrix(op) and len(index) == 1:
            x[members] = np.linalg.eigh(op.submatrix(members).astype(np.float64))[1][:, -1]
        return x
