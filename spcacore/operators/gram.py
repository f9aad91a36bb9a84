"""A as a matrix, from one pass over tall data: whether that pays, and the problem that has it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._limits import (
    BLOCKS_SUBMATRIX_ORDER,
    CHUNK,
    GRAM_BLOCKS_ORDER,
    GRAM_CANCELLATION,
    GRAM_DENSE_PRODUCTS,
    GRAM_FEW,
    GRAM_FREE_BYTES,
    GRAM_LEFT,
    GRAM_ORDER,
    GRAM_SHARE,
    GRAM_SPARSE_PRODUCTS,
    GRAM_TALL,
    SCATTER_COST,
)
from .._records import replaced
from .problem import Problem, Screening
from .statistics import Standardization, Statistics

__all__ = [
    "formed", "is_rounding", "is_tall", "is_wanted", "keeps_digits", "pairs_of", "pays", "with_matrix",
    "with_moments",
]  # fmt: skip


def pays(shape: tuple[int, int], stored: int, pairs: float, itemsize: int, dense: bool) -> bool:
    """Whether to form A of data by default, which takes the product of so many pairs of entries.

    That depends on X alone, so that components added later are those that all at once would have been.
    """
    n, p = shape
    if not is_tall(shape, dense):
        return False
    work = min(n * p * p / 2, SCATTER_COST * pairs)
    small = 8 * p * p <= max(GRAM_FREE_BYTES, GRAM_SHARE * stored * itemsize)
    most = GRAM_DENSE_PRODUCTS if dense else GRAM_SPARSE_PRODUCTS
    return small and work <= most * SCATTER_COST * stored


def is_tall(shape: tuple[int, int], dense: bool) -> bool:
    """Whether there are so few variables for the samples that A may be formed by default."""
    n, p = shape
    return p <= GRAM_ORDER and n >= (p if p <= GRAM_FEW else GRAM_TALL * p)


def is_wanted(storage: Any, screening: str) -> bool:
    """Whether A of this `DataStorage` is to be formed; an error where it must be, and cannot."""
    n, p = storage.shape
    if screening == "gram":
        if p > BLOCKS_SUBMATRIX_ORDER:
            raise ValueError(
                f"screening='gram' is for at most {BLOCKS_SUBMATRIX_ORDER} variables, not {p}: leave it out"
            )
        return bool(storage.has_gram)
    if screening != "auto" or not storage.has_gram:
        return False
    if storage.one_pass:
        return p <= GRAM_BLOCKS_ORDER and bool(storage.has_room)
    if not is_tall((n, p), storage.dense):  # to count pairs takes some reads
        return False
    stored, pairs = storage.pairs()
    return pays((n, p), stored, pairs, storage.dtype.itemsize, storage.dense)


def pairs_of(lines: NDArray[Any], lengths: bool, n: int) -> float:
    """The sum of squares of the numbers of entries of n rows, halved: of `indptr`, or of the rows of all."""
    if lengths:
        steps = (lines[s : s + CHUNK + 1] for s in range(0, n, CHUNK))
        return sum(float(np.square(np.diff(part).astype(np.float64)).sum()) for part in steps) / 2
    count = np.zeros(n, np.int64)
    for s in range(0, len(lines), CHUNK):
        count += np.bincount(lines[s : s + CHUNK], minlength=n)
    return float(np.square(count.astype(np.float64)).sum()) / 2


def keeps_digits(problem: Problem, dense: bool, screening: str) -> bool:
    """Whether A has the digits of X: no entry is missing, and of sparse X no variance, which is what the mean
    leaves of a second moment, is much smaller than that. An error where A must still be formed."""
    assert problem.moment is not None
    assert problem.diagonal is not None
    lost = problem.moment > GRAM_CANCELLATION * problem.diagonal
    digits = dense or not (lost & (problem.diagonal > 0)).any()
    if screening == "gram" and not (digits and problem.filled is None):
        what = "NaN entries" if digits else "columns whose mean hides their variance"
        raise ValueError(f"screening='gram' cannot be combined with X, which has {what}: leave it out")
    return digits and problem.filled is None


def with_matrix(problem: Problem, A: NDArray[Any], passes: int) -> Problem:
    """The problem of data whose operator is the matrix A now."""
    A = np.ascontiguousarray(A, problem.operator.dtype)
    told = partial(Screening, "gram", float(passes))
    operator = _core.dense(A, True, None, None, 1.0, 1.0)
    return replaced(problem, operator=operator, cost=problem.p, screening=told, form=False, data=problem)


def with_moments(
    problem: Problem, found: Statistics, M: NDArray[np.float64], treatment: Standardization
) -> Problem:
    """The same from the products of rows about their means, which one pass found with the statistics."""
    if not treatment.center or treatment.mean is not None:
        d = found.mean if treatment.mean is None else found.mean - treatment.mean
        M = M + found.n * np.multiply.outer(d, d)
    weight = np.ones(problem.p) if problem.weight is None else problem.weight.astype(np.float64)
    weight *= problem.range**2
    return with_matrix(problem, M / treatment.degrees * weight * weight[:, None], 1)


def formed(problem: Problem, report: Callable[[int], object] | None = None) -> Problem:
    """The problem with A as a matrix, if it is to have one and the callback does not end that."""
    A = problem.operator.gram(None, report) if problem.form else None
    return problem if A is None else with_matrix(problem, A, 2)


def is_rounding(problem: Problem, variance: float) -> bool:
    """Whether a variance is too small for A to tell well: the data know more of it."""
    if problem.data is None:
        return False
    assert problem.diagonal is not None
    return not variance > GRAM_LEFT.of(problem.operator.dtype) * float(problem.diagonal.max())
