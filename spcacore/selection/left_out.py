"""The score of left-out entries.

Rows are split into folds. The other rows give loadings V, their additional variances d,
the mean, and the noise `s2 = (total - sum d)/(p - r)` of the model `x ~ N(mean, WW' + s2 I)`,
`W = V diag(max(d - s2, 0))^(1/2)`. In each row y of the fold every entry is left out in its turn, and
predicted by its expectation given the other entries of the row. With `M = W'W + s2 I`,
`e = y - W M^-1 W'y` and `h_j = w_j'M^-1 w_j`, the error of that is `e_j/(1 - h_j)`: posterior means of the
scores are a ridge regression of the row on W, whose leave-one-out errors have this closed form. Variables
without a loading are predicted by their means. The score is the share of the variance of the fold that is
predicted so, `1 - sum of squared errors/sum of squares about the mean`. It falls where loadings fit noise, as
the share explained by a projection never does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._limits import HELD_OUT_ENTRIES
from .._records import record
from .._types import Array
from .._validation import is_row_blocks, is_sparse
from ..models.variance import operator_variances
from ..operators.problem import Problem
from ..solvers.solution import Solution

__all__ = ["HeldOutRows", "left_out_error", "loadings_of"]


def loadings_of(problem: Problem, solutions: list[Solution]) -> NDArray[Any]:
    """The solutions as columns."""
    V = np.zeros((problem.p, len(solutions)), problem.operator.dtype)
    for t, x in enumerate(solutions):
        V[x.index, t] = x.entries
    return V


@record
class _Units:
    """Centering and scaling of entries, and a power of two that multiplies them then."""

    mean: Array
    scale: Array
    exponent: int = 0

    def of(self, entries: NDArray[Any], columns: Any) -> Array:
        with np.errstate(over="ignore", under="ignore"):
            return np.ldexp((entries - self.mean[columns]) / self.scale[columns], self.exponent)

    def parts(self, rows: Any) -> Iterator[Array]:
        """All entries, a few columns at a time."""
        m, p = rows.shape
        if is_sparse(rows):  # what is not stored is -mean
            rows = rows.tocsc()
            columns = np.repeat(np.arange(p), np.diff(rows.indptr))
            yield self.of(rows.data, columns)
            yield np.sqrt(m - np.diff(rows.indptr)) * self.of(np.zeros(p), slice(p))
            return
        step = max(1, HELD_OUT_ENTRIES // max(m, 1))
        for start in range(0, p, step):
            block = slice(start, start + step)
            yield self.of(rows[:, block], block)


def _largest(rows: Any, units: _Units) -> float:
    return max(float(np.fmax.reduce(np.abs(part), None, initial=0)) for part in units.parts(rows))


def _sum_of_squares(rows: Any, units: _Units) -> float:
    return sum(float(np.nansum(part**2)) for part in units.parts(rows))


def _predicted(rows: Any, units: _Units, used: NDArray[np.intp], W: Array, noise: float) -> float:
    """The sum of squares of the variables with loadings, less that of the prediction errors."""
    predicted, step = 0.0, max(1, HELD_OUT_ENTRIES // (len(used) * W.shape[1] + W.shape[1] ** 2))
    for start in range(0, rows.shape[0], step):
        part = rows[start : start + step]
        part = part[:, used].toarray() if is_sparse(part) else part[:, used]
        Y = units.of(part, used)
        predicted += float(np.nansum(Y**2)) - left_out_error(Y, W, noise)
    return predicted


class HeldOutRows:
    """Rows outside of a fit, centered and scaled by its means and deviations, times a power of two."""

    rows: Any
    problem: Problem

    def __init__(self, rows: Any, problem: Problem):
        self.rows, self.problem = rows, problem
        p = problem.p
        mean = np.zeros(p) if problem.mean is None else problem.mean.astype(np.float64)
        scale = np.ones(p)
        if problem.scale is not None:  # where the fit saw no variance there is no unit
            assert problem.diagonal is not None
            scale = np.where(problem.diagonal > 0, problem.scale, np.inf)
        self.units: _Units = _Units(mean, scale)
        largest = max(self._per_block(_largest))
        if not math.isfinite(largest):
            raise ValueError("the left-out rows exceed the number range; rescale X")
        self.units = _Units(mean, scale, -math.frexp(largest)[1])
        self.total = sum(self._per_block(_sum_of_squares))

    def _per_block(self, task: Callable[..., float], *arguments: Any) -> list[float]:
        """The results of a task for all rows, or for each block of them."""
        if is_row_blocks(self.rows):
            return list(self.rows.results(task, self.units, *arguments))
        return [task(self.rows, self.units, *arguments)]

    def score(self, solutions: list[Solution]) -> float:
        """The share of the sum of squares that is predicted."""
        problem = self.problem
        assert problem.diagonal is not None
        if not solutions or not self.total > 0:
            return 0.0
        V = loadings_of(problem, solutions)
        variances = operator_variances(problem, V, "cumulative")
        total = float(problem.diagonal.sum())
        left = max(total - float(variances.sum()), 0.0) / max(problem.p - len(solutions), 1)
        noise = max(left, 1e-10 * total / problem.p)
        used = np.flatnonzero(V.any(axis=1))
        W = V[used].astype(np.float64) * np.sqrt(np.maximum(variances - noise, 0))
        return sum(self._per_block(_predicted, used, W, noise)) / self.total


def left_out_error(Y: Array, W: Array, noise: float) -> float:
    """Sum of squared errors of each entry of Y, predicted from the others of its row, but for NaN entries."""
    observed = ~np.isnan(Y)
    M = (W.T @ W)[None]
    if not observed.all():
        Y = np.where(observed, Y, 0)
        products = W[:, :, None] * W[:, None, :]
        M = np.tensordot(observed.astype(np.float64), products, 1)
    inverse = np.linalg.inv(M + noise * np.eye(W.shape[1]))
    scores = ((Y @ W)[:, None, :] @ inverse)[:, 0]
    leverage = ((W @ inverse) * W).sum(axis=-1)
    errors = (Y - scores @ W.T) / np.maximum(1 - leverage, np.finfo(float).eps)
    return float(np.sum(errors**2, where=observed))
