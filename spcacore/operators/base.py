"""What a kind of input must tell, so that no other module asks how the caller's matrix is stored."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import cache, partial
from typing import Any

import numpy as np

from .. import _core
from .._limits import (
    BLOCKS_SUBMATRIX_ORDER,
    GRAM_DENSE_PRODUCTS,
    GRAM_FEW,
    GRAM_FREE_BYTES,
    GRAM_ORDER,
    GRAM_SHARE,
    GRAM_SPARSE_PRODUCTS,
    GRAM_TALL,
    SCATTER_COST,
    SYMMETRY,
)
from .._records import replaced
from .._types import AnyArray, Array, DType, Names
from .._validation import refuse_not_finite
from ..linalg.scaling import (
    below_range,
    beyond_range,
    exponent_of,
    largest_magnitude,
    power_of_two_scale,
)
from ..supports.admissible import Supports
from .problem import Affine, Problem
from .statistics import (
    Standardization,
    Statistics,
    deviations,
    statistics_of,
)
from .working_set import WorkingSet

_TINY = 1e-140  # below this the sum of squares of a deviation has lost terms to underflow


class Storage(ABC):
    """The caller's matrix, where it is and as it is stored.

    A new kind of input is one subclass, of `DataStorage` for data, one line in `inputs.as_problem`, and in C
    the table of functions that `operator` fills (spca_proto.h).

    Attributes
    ----------
    shape : (n, p)
    dtype : numpy dtype
        float32 or float64: the precision of products.
    names : tuple of str or None
        The names of the columns.
    cost : int
        Multiplications of one product with A.
    working_set : type or None
        The class of working sets for this storage.
    """

    covariance = False
    working_set: type[WorkingSet] | None = None
    shape: tuple[int, int]
    dtype: DType
    names: Names = None
    cost: int

    @abstractmethod
    def operator(self, affine: Affine) -> Any:
        """Return the symmetric operator A that solvers see."""

    @abstractmethod
    def problem(self, treatment: Standardization) -> Problem:
        """Return the problem: the operator with what Python needs to know about it."""

    def resembles_covariance(self) -> bool:
        """Whether data could be a covariance: symmetric, and no entry beyond what the diagonal allows."""
        return False

    def made(self, affine: Affine, treatment: Standardization, **known: Any) -> Problem:
        """Return the problem of this matrix after an affine change; `known` has more fields of the record."""
        data = not self.covariance
        return Problem(
            operator=self.operator(affine),
            n_samples=self.shape[0] if data else None,
            exponent=(-4 if data else -2) * exponent_of(affine.range),
            names=self.names,
            cost=self.cost,
            supports=Supports.any_of(self.shape[1]),
            mean=affine.mean,
            affine=affine,
            total_weight=treatment.total_weight if data else None,
            given=treatment.given,
            **known,
        )

    def by_columns(self) -> Storage:
        """Return this matrix, or a copy where reading a single column takes no longer than its entries do."""
        return self


class DataStorage(Storage):
    """Data, one row per sample.

    Attributes
    ----------
    form : str or None
        Why A is to be formed: "auto" or "gram".
    """

    form: str | None = None

    def forms_gram(self, screening: str) -> bool:
        """Whether A as a matrix is to be formed; an error where it must be, and cannot."""
        p = self.shape[1]
        if screening == "gram" and p > BLOCKS_SUBMATRIX_ORDER:
            raise ValueError(
                f"screening='gram' is for at most {BLOCKS_SUBMATRIX_ORDER} variables, not {p}: leave it out"
            )
        return screening == "gram" or (screening == "auto" and self.gram_pays())

    @abstractmethod
    def gram_pays(self) -> bool:
        """Whether A is formed by default.

        The answer depends on X alone. So components that are added later are those that all at once would
        have been.
        """

    @abstractmethod
    def statistics(self, weight: Array | None, *scaled: Any) -> Statistics:
        """Return statistics of all columns from one pass; a row counts as often as its weight says.

        Squares may overflow. `scaled` may have some columns whose squares do, and the units of these: then
        the statistics are of these columns times `unit`^2.
        """

    @abstractmethod
    def raise_not_finite(self) -> None:
        """Raise and say where, if an entry is NaN or infinite."""

    def problem(self, treatment: Standardization) -> Problem:
        return self.problem_with(self.statistics(treatment.sample_weight), treatment)

    def problem_with(self, statistics: Statistics, treatment: Standardization) -> Problem:
        """Return the `problem`, given the statistics of the columns."""
        found = data_problem(self, *column_statistics(self, statistics, treatment), treatment)
        factor = 1 / max(self.shape[0] - 1, 1)
        return replaced(found, extreme=cache(partial(_extreme, found, statistics, factor)))


class InMemory(Storage):
    """An array, or a matrix in CSR or CSC, which is not copied: `matrix`."""

    matrix: Any
    called = "X"  # its name in messages

    def raise_not_finite(self) -> None:
        """Raise and say where, if an entry is NaN or infinite."""
        refuse_not_finite(self.matrix, self.called)

    def operator(self, affine: Affine) -> _core.Operator:
        return affine.operator(self.matrix, self.covariance)


class DataInMemory(InMemory, DataStorage):
    """Data in memory, where the kernels read all rows at once; `dense` if every entry is stored."""

    dense = False

    @abstractmethod
    def pairs(self) -> tuple[int, float]:
        """Return the number of stored entries, and of pairs of entries of a row that A is summed from."""

    def gram_pays(self) -> bool:
        n, p = self.shape
        if p > GRAM_ORDER or n < (p if p <= GRAM_FEW else GRAM_TALL * p):
            return False  # asked first, since counting pairs takes some reads
        stored, pairs = self.pairs()
        work = min(n * p * p / 2, SCATTER_COST * pairs)
        small = 8 * p * p <= max(GRAM_FREE_BYTES, GRAM_SHARE * stored * self.dtype.itemsize)
        most = GRAM_DENSE_PRODUCTS if self.dense else GRAM_SPARSE_PRODUCTS
        return small and work <= most * SCATTER_COST * stored

    def statistics(self, weight: Array | None, *scaled: Any) -> Statistics:
        found = statistics_of(self.matrix, weight, *scaled)
        assert found is not None
        return found

    def resembles_covariance(self) -> bool:
        n, p = self.shape
        if n != p or n == 1:
            return False
        largest, asymmetry, excess = _core.symmetry(self.matrix)
        return 0 < largest < math.inf and max(asymmetry, excess) <= largest * SYMMETRY.of(self.dtype)


# ---- from the statistics to the problem


def refuse_oblong(shape: tuple[int, ...], called: str = "X") -> None:
    """Refuse a covariance that is not square."""
    if shape[0] != shape[1]:
        what, more = ("a covariance", "; use kind='data' for data") if called == "X" else (called, "")
        raise ValueError(f"{what} must be square, not of shape {shape}{more}")


def column_statistics(
    storage: DataStorage, statistics: Statistics, treatment: Standardization
) -> tuple[Array, Array]:
    """Return the mean of each column, and its deviation about what is subtracted.

    The deviation is a root mean square, and exactly 0 for a column that equals what is subtracted. Both come
    from the sums of one pass; the storage recomputes columns whose squares left the number range.
    """
    with beyond_range():
        mean, deviation, varies = deviations(statistics, treatment)
    unsound = ~np.isfinite(deviation) | ~np.isfinite(mean)
    odd = np.flatnonzero(unsound | ((deviation < _TINY) & varies))
    deviation[~varies] = 0
    if len(odd):
        if unsound.any():
            storage.raise_not_finite()
        storage.form = None  # from sums of squares that left it, too
        size = np.minimum(np.maximum(-statistics.low, statistics.high), np.finfo(np.float64).max)
        if treatment.mean is not None:
            size = np.maximum(size, np.abs(treatment.mean))
        unit, mean = np.array([power_of_two_scale(one) for one in size[odd]]), mean.copy()
        with beyond_range():
            scaled = storage.statistics(treatment.sample_weight, odd, unit)
            mean[odd], deviation[odd], _ = deviations(scaled, treatment, odd, unit)
    return mean, deviation


def data_problem(
    storage: DataStorage, middle: Array, deviation: Array, treatment: Standardization
) -> Problem:
    """Return the problem of data that have entries, wherever these are.

    `middle` has the means of the columns, and `deviation` the root mean squares about what is subtracted.
    """
    n, dtype = storage.shape[0], storage.dtype
    if treatment.excluded is not None:
        deviation = np.where(treatment.excluded, 0.0, deviation)
    # What is subtracted from the columns, and divides them
    zero = deviation == 0
    about, largest = middle, max(largest_magnitude(middle), float(deviation.max()))
    if treatment.mean is not None:
        about, largest = treatment.mean, max(largest, largest_magnitude(treatment.mean))
    spread, weight, scale = deviation, None, None
    if treatment.scale:
        with beyond_range():
            given = treatment.deviation
            divisor, scale, weight = divisors(deviation, treatment, dtype)
            spread = np.where(zero, 0.0, 1.0) if given is None else deviation / given
            offset = np.maximum(np.abs(middle), np.abs(about)) / divisor
        largest = 1.0 if given is None else max(float(spread.max()), float(offset.max()))
        if not math.isfinite(largest):
            raise ValueError("a column of X divided by its scale exceeds the number range")
    elif treatment.center and zero.any():  # a constant column must not return as rounding noise
        weight = np.where(zero, 0, 1).astype(dtype)
    weight = treatment.without_excluded(weight, dtype)
    # A power of two that brings entries near 1; the diagonal and second moments in these units
    range_ = 1.0 if treatment.scale and treatment.deviation is None else power_of_two_scale(largest, dtype)
    with below_range():
        diagonal = (spread * range_ * range_) ** 2
        mean = about.astype(dtype) if treatment.center else None
    moment = diagonal
    if treatment.center:
        with beyond_range():
            offset = about * range_ * range_
            moment = diagonal + (offset if weight is None else offset * weight) ** 2
    affine = Affine(mean, weight, range_, 1.0 / max(n - 1, 1), treatment.row_weight(dtype))
    return storage.made(affine, treatment, diagonal=diagonal, moment=moment, scale=scale)


def _extreme(problem: Problem, statistics: Statistics, factor: float) -> Array:
    """Return at least what the largest entry of each column explains by itself, in the operator's units."""
    mean, weight, unit, _, row_weight = problem.affine
    center = 0 if mean is None else mean
    with beyond_range(), np.errstate(invalid="ignore"):
        reach = np.maximum(np.abs(statistics.high - center), np.abs(statistics.low - center))
        reach = reach * unit * unit * (1 if weight is None else weight)
        if row_weight is not None:
            reach = reach * row_weight.max()
        return np.fmin(reach**2 * factor, problem.variances)


def divisors(deviation: Array, treatment: Standardization, dtype: DType) -> tuple[Array, AnyArray, AnyArray]:
    """Return what divides each column, the same in the number range of `dtype`, and its inverse there."""
    given = treatment.deviation
    divisor = np.where(deviation == 0, 1, deviation) if given is None else given
    with beyond_range():
        scale = divisor.astype(dtype)
        weight = np.where(deviation == 0, 0, 1 / scale).astype(dtype)
    for wrong, much, size in ((weight, "little", "small"), (scale, "much", "large")):
        if not np.isfinite(wrong).all():
            j = int(np.argmin(np.isfinite(wrong)))
            if given is not None:
                raise ValueError(f"scale[{j}] is too {size} for {dtype}")
            raise ValueError(f"column {j} of X varies too {much} to be divided by its standard deviation")
    return divisor, scale, weight
