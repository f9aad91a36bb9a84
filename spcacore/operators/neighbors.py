"""Which variables of equal variance a component may have: those that are correlated with neighbors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._limits import (
    NEIGHBOR_BITS,
    NEIGHBOR_ENTRIES,
    NEIGHBOR_LARGEST,
    NEIGHBOR_SORTS,
    NEIGHBOR_WORK,
    NEIGHBORS,
    VARIANCE_TIE,
    slices,
)
from .._types import AnyArray, Index
from .problem import Problem

Single = NDArray[np.float32]


def variances_tie(diagonal: AnyArray | None, width: int) -> bool:
    """Whether the variances do not say which `width` of the variables are promising."""
    if diagonal is None or width == len(diagonal):
        return diagonal is None
    largest = diagonal.max()
    return bool(np.count_nonzero(diagonal >= (1 - VARIANCE_TIE) * largest) > width)


def norms_among_neighbors(problem: Problem, seed: tuple[int, ...]) -> Single | None:
    """Of each variable, the norm of its largest entries of A among neighbors, over the largest variance.

    A random projection gives two columns of F at an angle t the same sign with probability 1 - t/pi (Goemans
    and Williamson 1995, J. ACM 42; Charikar 2002, STOC), and x counts as near -x. So variables are sorted by
    such signs, some times anew, and A is formed in runs of neighbors: for p variables in time of p, not of
    p^2. None for a matrix, without variance, and where that would take long.
    """
    op: Any = problem.operator.unscreened()
    n, p, largest = op.n, op.p, problem.variances.max()
    work = NEIGHBOR_SORTS * NEIGHBORS * float(n) * p
    if work > NEIGHBOR_WORK or not largest > 0 or (op.symmetric_form and not op.by_passes):
        return None
    rng = np.random.default_rng([*seed[:1], NEIGHBOR_BITS])
    U = rng.standard_normal((NEIGHBOR_SORTS * NEIGHBOR_BITS, n)).astype(op.dtype).T
    sign = op.backward_block(U).reshape(p, NEIGHBOR_SORTS, NEIGHBOR_BITS) > 0
    sign ^= sign[:, :, :1]
    order = np.argsort(sign @ (1 << np.arange(NEIGHBOR_BITS)), axis=0, kind="stable").T
    sorts = order[:, : p // NEIGHBORS * NEIGHBORS].reshape(NEIGHBOR_SORTS, -1, NEIGHBORS)
    found = op.gram.in_runs(sorts) if op.by_passes else in_runs(op, sorts)
    norms, everything = np.zeros(p, np.float32), np.arange(NEIGHBORS)
    for run, A in zip(sorts.reshape(-1, NEIGHBORS), found, strict=True):
        norms[run] = np.maximum(norms[run], _core.largest_norms(A, everything, NEIGHBOR_LARGEST))
    return (norms / largest).round(3)  # so that rounding of sums decides among few


def in_runs(op: _core.Operator, sorts: Index) -> Iterator[Single]:
    """A between the variables of each run of each sort, in single precision and in one array."""
    width = sorts.shape[2]
    A, room = np.empty((width, width), np.float32), np.empty((0, op.m), op.dtype)
    for runs in sorts:  # whose variables are distinct
        for part in slices(len(runs), width * op.m, NEIGHBOR_ENTRIES):
            index = np.ascontiguousarray(runs[part].ravel())
            if len(room) < len(index):
                room = np.empty((len(index), op.m), op.dtype)
            columns = op.columns(index, room[: len(index)]).astype(np.float32, copy=False)
            for first in range(0, len(index), width):
                _core.matrix_product(columns[first : first + width], None, float(op.factor), A)
                yield A
