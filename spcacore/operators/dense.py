"""Dense data in memory."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from .. import _core
from .._limits import GRAM_ENTRIES, GRAM_ONE_READ, SINGLE_LOSS
from .._types import AnyArray, DType, Names
from .._validation import column_names, float_type, real_array, refuse_not_finite
from ..linalg.scaling import below_range, beyond_range, eps_of
from . import screening as _screening
from .base import DataInMemory
from .gram import with_moments
from .problem import MissingData, Problem
from .statistics import Standardization, Statistics, from_whole, in_range
from .working_set import WorkingSet


class DenseData(DataInMemory):
    """An array, which is not copied.

    `missing` allows NaN entries. `screening` says how products with its columns are to be screened.
    """

    dense = True
    working_set: Any = WorkingSet
    screening = "none"
    shape: tuple[int, int]
    dtype: DType
    cost: int

    def __init__(self, X: Any, missing: bool = False) -> None:
        self.names: Names = column_names(X)
        self.given: Any = X
        self.missing: bool = missing
        self.small = is_small(X) and X.size >= GRAM_ENTRIES  # then a copy as floats may not be needed
        a = X if self.small else self.matrix
        self.shape, self.dtype, self.cost = a.shape, float_type(a.dtype), a.size

    @cached_property
    def matrix(self) -> AnyArray:
        """X as an array of floats whose layout the kernels can read."""
        return blas_layout(real_array(self.given, "X", ndim=2, finite=False))

    def resembles_covariance(self) -> bool:
        n, p = self.shape
        with beyond_range():
            alike = n == p and np.allclose(self.matrix[0], self.matrix[:, 0], 1e-5, 0)
        return alike and super().resembles_covariance()

    def pairs(self) -> tuple[int, float]:
        n, p = self.shape
        return n * p, n * p * p / 2

    def problem(self, treatment: Standardization) -> Problem:
        """Return the problem; the pass for the statistics forms A or the quantized copy too, if wanted."""
        # The pass over the data
        a, plan, M = self.matrix, None, None
        sums: Any = None
        size: Any = None
        if treatment.sample_weight is None and treatment.mean is None:
            plan = _screening.plan(a, self.screening)
        one_read = self.form is not None and treatment.sample_weight is None and a.size >= GRAM_ENTRIES
        whole = _core.whole_moments(a) if one_read and a.dtype == np.float64 else None
        if whole is not None:
            found, M = from_whole(len(a), whole)
        elif one_read and a.shape[1] <= GRAM_ONE_READ:
            sums, M = _core.dense(a, False).moments()
        elif plan is None:
            found = self.statistics(treatment.sample_weight)
        else:  # the same pass fills the quantized copy
            sums, size = _core.dense_statistics(a, treatment.center, plan.shadow)
        if sums is not None:
            found = Statistics(len(a), a.size, *sums[:4])
            M = M if in_range(found, a.dtype) else None  # else its squares leave the number range
        # Entries that are missing, or that need double precision
        if self.missing and np.isnan(a[:, np.isnan(found.mean)]).any():
            return missing_problem(a, treatment, self.names)
        if treatment.center and a.dtype == np.float32 and _far_from_zero(found):
            double = copy(self)
            double.matrix, double.dtype = a.astype(np.float64), np.dtype(np.float64)
            return _rounded(double.problem(treatment), a.dtype)
        problem = self.problem_with(found, treatment)
        if M is not None and self.form is not None:
            return with_moments(problem, found, M, treatment)
        return problem if plan is None else _screening.screened(problem, plan, a, sums, size)


def _far_from_zero(found: Statistics) -> bool:
    """Whether every variable is so far from zero that single precision would lose its deviations."""
    varies = found.square > 0
    with beyond_range():
        lost = found.square < (SINGLE_LOSS * found.mean) ** 2 * found.n
    return bool(varies.any() and lost[varies].all())


def _rounded(problem: Problem, dtype: DType) -> Problem:
    """Return the problem of entries that were rounded to this type."""
    data = None if problem.data is None else _rounded(problem.data, dtype)
    return replace(problem, rounding=eps_of(dtype), data=data)


def is_small(a: Any) -> bool:
    """Whether this is an array of whole numbers of at most 16 bits, which can be multiplied as they are."""
    if not isinstance(a, np.ndarray) or isinstance(a, np.ma.MaskedArray) or a.ndim != 2 or a.size == 0:
        return False
    small = a.dtype in (np.int8, np.uint8, np.int16, np.uint16)  # in this machine's order of bytes
    return small and a.flags.aligned and has_blas_layout(a)


def missing_problem(a: AnyArray, treatment: Standardization, names: Names) -> Problem:
    """Return the problem of data with NaN entries, centered and scaled by what is observed.

    Missing entries then count as 0.
    """
    if treatment.sample_weight is not None or treatment.mean is not None or treatment.deviation is not None:
        raise ValueError(
            "X has NaN entries, which cannot be combined with sample_weight or vectors for center and scale"
        )
    mean, deviation, filled, bad = _core.fill_missing(a, treatment.center, treatment.scale)
    if bad < a.shape[1]:
        if np.isnan(a[:, bad]).all():
            raise ValueError(f"column {bad} of X has only NaN entries")
        refuse_not_finite(np.where(np.isnan(a), 0, a), "X")
    if treatment.excluded is not None:
        filled[:, treatment.excluded] = 0
    problem = DenseData(filled).problem(Standardization(len(a)))
    with below_range():
        return replace(
            problem,
            mean=mean.astype(a.dtype) if treatment.center else None,
            scale=deviation.astype(a.dtype) if treatment.scale else None,
            names=names,
            filled=MissingData(a, filled, problem.affine.range, {}),
        )


def has_blas_layout(a: AnyArray) -> bool:
    """Whether rows or columns are contiguous and do not overlap."""
    size = a.itemsize
    return any(
        a.strides[inner] == size
        and (
            a.shape[outer] == 1
            or (a.strides[outer] >= size * a.shape[inner] and a.strides[outer] % size == 0)
        )
        for inner, outer in ((1, 0), (0, 1))
    )


def blas_layout(a: AnyArray) -> AnyArray:
    """Return the array itself where `has_blas_layout`, else a copy."""
    return a if has_blas_layout(a) else np.ascontiguousarray(a)
