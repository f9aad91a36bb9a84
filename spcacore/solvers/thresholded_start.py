"""A start for variables whose common signal is weak: the leading eigenvector of a thresholded covariance."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._limits import THRESHOLD_ROWS, THRESHOLDS
from ..linalg.eigen import largest_eigenpairs
from ..operators.deflation import DeflatedOperator
from ..operators.problem import Problem
from ..operators.submatrix import largest_submatrix
from .starts import promising_variables

NORMAL_MEDIAN = 0.67449  # of |z|, z standard normal


def thresholded_starts(
    problem: Problem, state: DeflatedOperator, seed: list[int]
) -> Iterator[tuple[NDArray[np.intp], NDArray[Any]]]:
    """Variables and the leading eigenvector of their covariance, soft-thresholded at several levels.

    |a_ij| is lowered by tau s (a_ii a_jj)^(1/2), s the standard deviation of correlations that are noise,
    by the median of all (Deshpande and Montanari 2016, section 2, where s = n^(-1/2)). Of more variables
    than a submatrix may have, the most promising.
    """
    from scipy.sparse.linalg import ArpackError

    op = state.operator
    count = min(op.p, largest_submatrix(op))
    index = np.arange(op.p)
    if count < op.p:
        index = np.sort(promising_variables(problem, state, count, seed))[:count]
    if len(index) < 3:
        return
    G = op.submatrix(index)
    root = np.sqrt(np.maximum(G.diagonal(), 0))
    with np.errstate(divide="ignore", under="ignore"):
        inverse = np.where(root > 0, 1 / root, 0).astype(G.dtype)
    some = np.arange(0, len(index), -(-len(index) // THRESHOLD_ROWS))
    size = np.abs(G[some] * inverse) * inverse[some, None]
    size[np.arange(len(some)), some] = 0
    noise = float(np.median(size)) / NORMAL_MEDIAN
    size = np.abs(G)
    step, largest = (noise * root).astype(G.dtype), root.astype(G.dtype)
    for tau in THRESHOLDS:
        B = size - (tau * step)[:, None] * largest
        np.maximum(B, 0, out=B)
        np.copysign(B, G, out=B)
        np.fill_diagonal(B, G.diagonal())
        try:
            vectors = largest_eigenpairs(B, 1, v0=largest, tol=1e-2)[1]
        except ArpackError:  # not converged, or zero
            continue
        yield index, np.ascontiguousarray(vectors[:, 0])
