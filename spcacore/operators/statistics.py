"""Mean and deviation of each column, also where their squares leave the number range."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._limits import CHUNK
from ..linalg.scaling import power_of_two_scale

_TINY = 1e-280  # below this a sum of squares has lost terms to underflow


@dataclass(frozen=True, eq=False, repr=False)
class ColumnStatistics:
    """Mean, and root mean square about it (or about 0) with n - 1, of each column as float64.

    `deviation` is 0 exactly where a column is constant (or zero, when not centred).
    """

    mean: NDArray[np.float64]
    deviation: NDArray[np.float64]


def column_statistics(
    n: int,
    center: bool,
    statistics: tuple[NDArray[np.float64], ...],
    again: Callable[[NDArray[np.intp]], tuple[NDArray[np.float64], NDArray[np.float64]]],
    locate: Callable[[], None],
) -> ColumnStatistics:
    """From the sums of one pass; `again` gives mean and deviation where squares left the number range."""
    mean, square, spread = statistics
    degrees = max(n - 1, 1)
    with np.errstate(over="ignore", under="ignore"):
        if not center:
            square = square + n * mean**2
            spread = np.maximum(spread, np.abs(mean))
        deviation = np.sqrt(square / degrees)
    if not (np.isfinite(mean).all() and np.isfinite(square).all()):
        locate()
    deviation[spread == 0] = 0
    odd = np.flatnonzero(~np.isfinite(square) | ~np.isfinite(mean) | ((square < _TINY) & (spread > 0)))
    if len(odd):
        mean = mean.copy()
        with np.errstate(over="ignore", under="ignore"):
            mean[odd], deviation[odd] = again(odd)
    return ColumnStatistics(mean, deviation)


def recomputed_statistics(
    columns: Callable[[NDArray[np.intp]], NDArray[Any]], n: int, center: bool, odd: NDArray[np.intp]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and deviation of columns, scaled by powers of two; to the bit those of data of another scale."""
    mean, deviation, step = np.empty(len(odd)), np.empty(len(odd)), max(1, CHUNK // n)
    for part in (slice(i, i + step) for i in range(0, len(odd), step)):
        x = columns(odd[part])
        unit = np.array([power_of_two_scale(size) for size in np.abs(x).max(axis=0)])
        x *= unit
        x *= unit
        sums, _ = _core.dense_statistics(x, center)
        mean[part] = sums[0]
        deviation[part] = np.sqrt((sums[1] + (0 if center else n * sums[0] ** 2)) / max(n - 1, 1))
        for a in (mean, deviation):
            a[part] = a[part] / unit / unit
    return mean, deviation
