"""Whether the variables of a component have more in common than noise explains."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._limits import NOISE_GROWTH, NOISE_INDEPENDENT, NOISE_VARIABLES, SUBMATRIX_ORDER, WEAK_CORRELATION
from ..operators.deflation import DeflatedOperator
from ..operators.problem import Problem
from ..operators.submatrix import largest_submatrix
from .solution import Solution

__all__ = ["NORMAL_MEDIAN", "rises_above_noise"]

NORMAL_MEDIAN = 0.67449  # of |z|, z standard normal


def rises_above_noise(problem: Problem, state: DeflatedOperator, x: Solution) -> bool:
    """Whether the variables of x are correlated by more than noise explains.

    Their mean correlation, weighted by |x_i x_j| (a_ii a_jj)^(1/2), is compared with that of the best k of p
    variables without any signal, which is about s (2 log(p over k) / m)^(1/2): that many supports, and the
    mean of m = k (k - 1) / 2 correlations of deviation s in each. A better support has larger correlations
    still, and the start from one of its variables sees them. Where A is a matrix, so that another start costs
    little, unequal weights w count as fewer, m = (sum w)^2 / sum w^2: k - 1 where one variable has nearly all
    of x. The s of an earlier component will do where it leaves no doubt, as s would have to grow NOISE_GROWTH
    times.

    Correlations of independent variables deviate by n^(-1/2). Where they deviate by much more, as on words,
    genes and cells, all variables are dependent, and a weak signal is not what could have been missed.
    """
    assert state.diagonal is not None
    diagonal = np.maximum(state.diagonal, 0)
    size = np.abs(x.entries) * np.sqrt(diagonal[x.index])
    alone, p, k = float(size @ size), len(diagonal), len(x.index)
    pairs = float(size.sum()) ** 2 - alone
    if k < 2 or not pairs > 0:
        return False
    weights = k * (k - 1.0)
    if state.operator.symmetric_form:
        weights = pairs**2 / max(alone**2 - float((size**4).sum()), pairs**2 / weights)  # at most k (k - 1)
    correlation = (x.objective - alone) / pairs
    supports = math.lgamma(p + 1) - math.lgamma(k + 1) - math.lgamma(p - k + 1)
    explained = WEAK_CORRELATION * math.sqrt(4 * supports / weights)
    kept: Any = problem.working_set if problem.working_set is not None else problem.ground
    known = None if kept is None else kept.noise
    if known is not None and correlation > NOISE_GROWTH * known * explained:
        return True
    noise = _sampled_noise(state, diagonal)
    if kept is not None:
        kept.noise = noise
    independent = 0.0 if problem.n_samples is None else NOISE_INDEPENDENT / math.sqrt(problem.degrees)
    return noise > independent > 0 or correlation > noise * explained


def _sampled_noise(state: DeflatedOperator, diagonal: NDArray[Any]) -> float:
    """The standard deviation of correlations that are noise, by some of the variables of largest variance."""
    op = state.operator
    among = _core.select_largest(diagonal, min(op.p, SUBMATRIX_ORDER))
    count = min(NOISE_VARIABLES, max(2, largest_submatrix(op)))
    some = np.ascontiguousarray(among[:: -(-len(among) // count)])
    G = op.submatrix(some)
    root = np.sqrt(np.maximum(G.diagonal(), 0))
    return _noise(G, root, np.arange(len(some)))


def _inverse(root: NDArray[Any]) -> NDArray[Any]:
    """1 / root, and 0 where that is 0."""
    with np.errstate(divide="ignore", under="ignore"):
        return np.where(root > 0, 1 / root, 0).astype(root.dtype)


def _noise(G: NDArray[Any], root: NDArray[Any], some: NDArray[np.intp]) -> float:
    """The standard deviation of correlations that are noise, by the median of some rows of A."""
    inverse = _inverse(root)
    size = np.abs(G[some] * inverse) * inverse[some, None]
    size[np.arange(len(some)), some] = 0
    return float(np.median(size)) / NORMAL_MEDIAN
