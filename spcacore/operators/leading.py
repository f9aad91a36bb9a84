"""Leading eigenvectors of an operator."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from .._messages import counted
from ..linalg.eigen import leading_eigenvectors
from .problem import Problem


def leading_vectors(problem: Problem, r: int) -> NDArray[np.float64]:
    """The r leading eigenvectors of the operator; fewer, with a warning, where its rank is smaller."""
    if problem.diagonal is not None and not problem.diagonal.any():
        raise ValueError("X has no variance")
    values, vectors = leading_eigenvectors(problem.operator, r)
    rank = int(np.count_nonzero(values > negligible(problem, values[0])))
    if rank == 0:
        raise ValueError("X has no variance")
    if rank < r:
        warnings.warn(
            f"X has only {rank} of the {counted(r, 'component')} asked for", RuntimeWarning, stacklevel=3
        )
    return np.asfortranarray(vectors[:, :rank])


def negligible(problem: Problem, first: float = 0.0) -> float:
    """A variance that may be rounding alone, given the largest one where the total is not known."""
    total = first if problem.diagonal is None else float(problem.diagonal.sum())
    return 1e3 * float(np.finfo(problem.operator.dtype).eps) * total
