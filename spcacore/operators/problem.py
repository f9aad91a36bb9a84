"""An operator with what Python needs to know of it."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from ..linalg.scaling import exponent_of, power_of_two_scale
from .missing import MissingData
from .standardization import Standardization
from .statistics import ColumnStatistics

if TYPE_CHECKING:
    from .base import CovarianceStorage, DataStorage

OUT_OF_RANGE = "a variance exceeds the number range and is given as inf"
BELOW_RANGE = "a variance is below the number range and is given as 0"


def warn_out_of_range(inside: Any, given: Any, stacklevel: int) -> None:
    """Where a variance is not what it is in the operator's units, but inf or 0."""
    given = np.asarray(given)
    if not np.isfinite(given).all():
        warnings.warn(OUT_OF_RANGE, RuntimeWarning, stacklevel=stacklevel + 1)
    if ((given == 0) & (np.asarray(inside) != 0)).any():
        warnings.warn(BELOW_RANGE, RuntimeWarning, stacklevel=stacklevel + 1)


def data_problem(storage: DataStorage, columns: ColumnStatistics, treatment: Standardization) -> Problem:
    """The problem of data that have entries, wherever these are."""
    n, dtype = storage.shape[0], storage.dtype
    zero = columns.deviation == 0
    about = columns.mean if treatment.mean is None else treatment.mean
    spread, weight, scale = columns.deviation, None, None
    largest = max(float(np.abs(columns.mean).max()), float(np.abs(about).max()), float(spread.max()))
    if treatment.scale:
        with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
            given = treatment.deviation
            divisor = np.where(zero, 1, columns.deviation) if given is None else given
            scale = divisor.astype(dtype)
            weight = np.where(zero, 0, 1 / scale).astype(dtype)
            spread = np.where(zero, 0.0, 1.0) if given is None else columns.deviation / given
            offset = np.maximum(np.abs(columns.mean), np.abs(about)) / divisor
        _refuse_scale(weight, scale, given is not None)
        largest = 1.0 if given is None else max(float(spread.max()), float(offset.max()))
        if not math.isfinite(largest):
            raise ValueError("a column of X divided by its scale exceeds the number range")
    elif treatment.center and zero.any():  # a constant column must not return as rounding noise
        weight = np.where(zero, 0, 1).astype(dtype)
    range_ = 1.0 if treatment.scale and treatment.deviation is None else power_of_two_scale(largest, dtype)
    with np.errstate(under="ignore"):
        diagonal = (spread * range_ * range_) ** 2
        mean = about.astype(dtype) if treatment.center else None
    moment = diagonal
    if treatment.center:
        with np.errstate(over="ignore", under="ignore"):
            offset = about * range_ * range_
            moment = diagonal + (offset if weight is None else offset * weight) ** 2
    row_weight = treatment.row_weight(dtype)
    return Problem(
        operator=storage.operator(mean, weight, range_, 1.0 / max(n - 1, 1), row_weight),
        n_samples=n,
        diagonal=diagonal,
        exponent=-4 * exponent_of(range_),
        moment=moment,
        floor=0.0,
        mean=mean,
        scale=scale,
        names=storage.names,
        cost=storage.cost,
        weight=weight,
        row_weight=row_weight,
        range=range_,
        total_weight=treatment.total_weight,
    )


def divisor_and_weight(given: NDArray[np.float64], dtype: np.dtype) -> tuple[NDArray[Any], NDArray[Any]]:
    """The given scale and its inverse, in the number range of `dtype`."""
    with np.errstate(over="ignore", under="ignore", divide="ignore"):
        scale = given.astype(dtype)
        weight = (1 / scale).astype(dtype)
    _refuse_scale(weight, scale, True)
    return scale, weight


def _refuse_scale(weight: NDArray[Any], scale: NDArray[Any], given: bool) -> None:
    """Raise where a scale, or what it multiplies by, is beyond the number range."""
    for wrong, much in ((~np.isfinite(weight), "little"), (~np.isfinite(scale), "much")):
        if wrong.any():
            j = int(np.argmax(wrong))
            if given:
                raise ValueError(
                    f"scale[{j}] is too {'small' if much == 'little' else 'large'} for {scale.dtype}"
                )
            raise ValueError(f"column {j} of X varies too {much} to be divided by its standard deviation")


def covariance_problem(storage: CovarianceStorage, largest: float, treatment: Standardization) -> Problem:
    """The problem of a covariance that has entries; `largest` is the largest magnitude of one."""
    dtype, diagonal = storage.dtype, storage.diagonal()
    deviation = np.sqrt(np.maximum(diagonal, 0)).astype(np.float64)
    weight = scale = None
    range_ = 1.0
    if treatment.deviation is not None:
        scale, weight = divisor_and_weight(treatment.deviation, dtype)
        with np.errstate(over="ignore", under="ignore"):
            scaled = diagonal.astype(np.float64) / treatment.deviation / treatment.deviation
        if not np.isfinite(scaled).all():
            raise ValueError("a variance divided by its scale exceeds the number range")
        range_ = power_of_two_scale(float(np.abs(scaled).max()), dtype)
        diagonal = scaled * range_ * range_
    elif treatment.scale:
        if (diagonal < -1e-8 * largest).any():
            raise ValueError("scale=True needs variances, and X has a negative diagonal entry")
        zero = deviation == 0
        scale = np.where(zero, 1, deviation).astype(dtype)
        weight = np.where(zero, 0, 1 / np.where(zero, 1, deviation)).astype(dtype)
        diagonal = np.where(zero, 0.0, 1.0)
    else:
        range_ = power_of_two_scale(largest, dtype)
        diagonal = diagonal.astype(np.float64) * range_ * range_
    return Problem(
        operator=storage.operator(None, weight, range_, 1.0),
        n_samples=None,
        diagonal=diagonal,
        exponent=-2 * exponent_of(range_),
        moment=diagonal,
        floor=0.0,
        mean=None,
        scale=scale,
        names=storage.names,
        cost=storage.cost,
    )


@dataclass(frozen=True)
class Screening:
    """How much of dense data a call has read.

    Attributes
    ----------
    mode : {"both", "shadow", "references", "none"}
        What screened the columns: an int8 shadow of X, the products with earlier directions, both, or
        nothing, so that every product read all of X.
    reads : float or None
        Bytes read of X and of its shadow, setting up included, over the bytes of X; None with "none".
    columns : int
        Exact products with a column of X.
    questions : int
        Products with X that the solver asked for; a plain loop reads X once for each.
    """

    mode: str = "none"
    reads: float | None = None
    columns: int = 0
    questions: int = 0


@dataclass(frozen=True, eq=False, repr=False)
class Problem:
    """An operator with what Python needs to know of it.

    Attributes
    ----------
    operator : _core.Operator
    n_samples : int or None
        None for a covariance.
    diagonal : ndarray of shape (p,) or None
        Of the operator, in its own units; None where only products are known.
    exponent : int
        A value of the operator times `2**exponent` is a variance in the caller's units.
    moment : ndarray of shape (p,) or None
        Second moment about 0 of each column as it is stored, in the operator's units; of a covariance
        the diagonal.
    floor : float
        Where there are no entries: variance that rounding alone may leave.
    mean, scale : ndarray of shape (p,) or None
        What is subtracted from, then divides, each column.
    names : tuple of str or None
    cost : int
        Multiplications of one product, for deciding how many starts to afford.
    weight : ndarray of shape (p,) or None
        What the operator multiplies each centred column by, besides `range`**2.
    row_weight : ndarray of shape (n,) or None
        What it multiplies each row by, after it is centered: the root of the weight of a sample.
    degree_weight : ndarray of shape (n,) or None
        What it multiplies each row by, before it is centered: of a graph scaled by its degrees.
    range : float
    total_weight : float or None
        Samples that the rows stand for: n, or the sum of their weights; None for a covariance.
    screening : callable
        Says what has been read so far.
    filled : MissingData or None
        Where entries are missing.
    """

    operator: _core.Operator
    n_samples: int | None
    diagonal: NDArray[Any] | None
    exponent: int
    moment: NDArray[Any] | None
    floor: float
    mean: NDArray[Any] | None
    scale: NDArray[Any] | None
    names: tuple[str, ...] | None
    cost: int
    weight: NDArray[Any] | None = None
    row_weight: NDArray[Any] | None = None
    degree_weight: NDArray[Any] | None = None
    range: float = 1.0
    total_weight: float | None = None
    screening: Callable[[], Screening] = Screening
    filled: MissingData | None = None

    @property
    def p(self) -> int:
        return self.operator.p

    @property
    def degrees(self) -> float:
        """Divisor of the covariance in the caller's units: n - 1, or one less than the sum of the weights."""
        if self.row_weight is not None and self.total_weight is not None:
            return self.total_weight - 1
        return max((self.n_samples or 2) - 1, 1)

    @property
    def total_variance(self) -> float | None:
        """The trace of A in the caller's units."""
        return None if self.diagonal is None else self.in_units(self.diagonal.sum())

    @property
    def unit(self) -> float:
        """The variance in the caller's units that 1 stands for; inf or 0 out of range."""
        return float(self.in_units(1.0))

    def noise(self, index: NDArray[np.intp], deflation: str = "projection") -> float:
        """Variance, in the operator's units, that rounding alone may leave along k variables.

        Of data, entries with errors of eps leave eps^2. A covariance leaves eps, and so do the
        deflations that subtract a variance rather than a column.
        """
        eps, k = float(np.finfo(self.operator.dtype).eps), len(index)
        first_order = self.operator.covariance or not deflation.endswith("projection")
        if self.moment is None or self.diagonal is None:
            return math.sqrt(self.floor) if first_order and not self.operator.covariance else self.floor
        noise = 4 * eps * k * float(self.diagonal[index].max()) if first_order else 0.0
        return noise if self.operator.covariance else noise + 4 * eps**2 * k * float(self.moment[index].sum())

    def unscreened(self) -> Problem:
        """The same with the plain operator."""
        return replace(self, operator=self.operator.unscreened(), screening=Screening)

    def in_units(self, value: Any) -> Any:
        """Operator values as the caller's variances; inf or 0 where those leave the number range."""
        with np.errstate(over="ignore", under="ignore"):
            return np.ldexp(value, self.exponent)
