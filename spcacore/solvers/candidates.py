"""The variables among which a search begins whose cardinality is not given."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._limits import COLUMN_STARTS_LEAST, START_WORK, WORKING_SET_PROBES, WORKING_SET_START
from ..operators.deflation import DeflatedOperator
from ..operators.problem import Problem
from .column_starts import Columns, LargestEntries
from .starts import promising_variables

__all__ = ["begin_among"]


def begin_among(problem: Problem, state: DeflatedOperator, count: int, seed: list[int]) -> NDArray[np.intp]:
    """The most promising variables, and of single ones of them those that a step from there would come to.

    As many single variables as a search among all columns would start from, and some whose columns promise
    most.
    """
    op, count = state.operator, min(max(count, WORKING_SET_START), state.operator.p)
    chosen, one = [promising_variables(problem, state, count, seed)], np.ones(1, op.dtype)
    probes = min(WORKING_SET_PROBES, int(START_WORK / (20 * problem.cost)))
    assert state.diagonal is not None
    variances = state.diagonal[chosen[0]]
    for j in chosen[0][np.argsort(-variances, kind="stable")[:probes]]:
        y = op.apply(np.array([j]), one)
        chosen.append(_core.select_largest(y, -(-count // WORKING_SET_PROBES)))
    columns = Columns.of(problem, state, seed)
    if columns is not None:
        largest = LargestEntries(-(-count // COLUMN_STARTS_LEAST))
        chosen.append(columns.neighbors(largest, COLUMN_STARTS_LEAST))
    return np.unique(np.concatenate(chosen))
