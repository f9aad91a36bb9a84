"""A start for variables whose common signal is weak: the leading eigenvector of a thresholded covariance."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._limits import (
    LANCZOS_ORDER,
    LANCZOS_RESTARTS,
    LANCZOS_TOL,
    NOISE_GROWTH,
    NOISE_VARIABLES,
    SUBMATRIX_ORDER,
    THRESHOLD_ROWS,
    THRESHOLDS,
    WEAK_CORRELATION,
)
from ..operators.deflation import DeflatedOperator
from ..operators.problem import Problem
from ..operators.submatrix import largest_submatrix
from .solution import Solution
from .starts import promising_variables

__all__ = ["NORMAL_MEDIAN", "rises_above_noise", "thresholded_starts"]
__dir__ = __all__.copy

NORMAL_MEDIAN = 0.67449  # of |z|, z standard normal


def thresholded_starts(
    problem: Problem, state: DeflatedOperator, seed: list[int]
) -> Iterator[tuple[NDArray[np.intp], NDArray[Any]]]:
    """Variables and the leading eigenvector of their covariance, soft-thresholded at several levels.

    |a_ij| is lowered by tau s (a_ii a_jj)^(1/2), s the standard deviation of correlations that are noise,
    by the median of all (Deshpande and Montanari 2016, section 2, where s = n^(-1/2)): correlations by
    tau s. Of more variables than a submatrix may have, the most promising.
    """
    op = state.operator
    count = min(op.p, largest_submatrix(op))
    index = np.arange(op.p)
    if count < op.p:
        index = np.sort(promising_variables(problem, state, count, seed))[:count]
    if len(index) < 3:
        return
    working_set = problem.working_set
    G = None if working_set is None else working_set.submatrix(problem, state, index)
    if G is None:
        G = state.matrix if state.matrix is not None and len(index) == op.p else state.submatrix(index)
    root = np.sqrt(np.maximum(G.diagonal(), 0))
    root[root < np.finfo(np.float32).tiny] = 0  # the inverse has no place in single precision
    if not root.any():
        return
    noise = _noise(G, root, np.arange(0, len(index), -(-len(index) // THRESHOLD_ROWS)))
    # A start needs no more than single precision
    scale, inverse = (root / root.max()).astype(np.float32), _inverse(root).astype(np.float32)
    correlation = G.astype(np.float32, order="C")
    correlation *= inverse[:, None]
    correlation *= inverse
    own = correlation.diagonal()
    for tau in THRESHOLDS:
        level = float(np.float32(tau * noise))
        if len(index) <= LANCZOS_ORDER:
            B = correlation - np.clip(correlation, -level, level)
            np.fill_diagonal(B, own)
            vector = np.linalg.eigh(scale[:, None] * B * scale)[1][:, -1]
        else:
            vector = _core.thresholded_vector(correlation, scale, level, LANCZOS_TOL, LANCZOS_RESTARTS)
        yield index, vector.astype(op.dtype)


def rises_above_noise(problem: Problem, state: DeflatedOperator, x: Solution) -> bool:
    """Whether the variables of x are correlated by more than noise explains.

    Their mean correlation, weighted by |x_i x_j| (a_ii a_jj)^(1/2), is compared with that of the best k of p
    variables without any signal, which is about s (2 log(p over k) / m)^(1/2): that many supports, and the
    mean of m = k (k - 1) / 2 correlations of deviation s in each. A better support has larger correlations
    still, and the start from one of its variables sees them. Where A is a matrix, so that another start costs
    little, unequal weights w count as fewer, m = (sum w)^2 / sum w^2: k - 1 where one variable has nearly all
    of x. The s of an earlier component will do where it leaves no doubt, as s would have to grow NOISE_GROWTH
    times.
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
    working_set = problem.working_set
    known = None if working_set is None else working_set.noise
    if known is not None and correlation > NOISE_GROWTH * known * explained:
        return True
    noise = _sampled_noise(state, diagonal)
    if working_set is not None:
        working_set.noise = noise
    return correlation > noise * explained


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
