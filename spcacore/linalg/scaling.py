"""Magnitudes: powers of two that bring entries near 1, rounding, the number range, and order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._types import AnyArray, Index, Mask

EPS = float(np.finfo(np.float64).eps)
TINY = float(np.finfo(np.float64).tiny)  # the least number with all digits
LOG_2PI = math.log(2 * math.pi)


def eps_of(dtype: Any) -> float:
    """Return the distance from 1 to the next number of this type."""
    return float(np.finfo(dtype).eps)


def descending(values: AnyArray, most: int | None = None) -> Index:
    """Return positions in descending order of the values, the first `most` of them; ties keep their order."""
    if most is None or len(values) <= 4 * most:
        return np.argsort(-values, kind="stable")[:most]
    leading = np.flatnonzero(values >= np.partition(values, -most)[-most])
    return leading[descending(values[leading])[:most]]


def union(*indices: Index) -> Index:
    """Return the variables that are in any of these, ascending."""
    every = np.sort(np.concatenate([np.empty(0, np.intp), *indices]))
    new = np.ones(len(every), bool)
    np.not_equal(every[1:], every[:-1], out=new[1:])
    return every[new]


def are_among(index: Index, known: Index) -> Mask:
    """Return whether each of these variables is among those known, which ascend."""
    return known.searchsorted(index, "right") > known.searchsorted(index)


def roots(values: AnyArray) -> AnyArray:
    """Return square roots, with 0 for numbers that rounding has made negative."""
    return np.sqrt(np.maximum(values, 0))


def divisor(size: AnyArray) -> AnyArray:
    """Return the sizes to divide by, with 1 in place of those that are not positive."""
    return np.where(size > 0, size, 1)


def with_entries(p: int, index: Index, entries: Any, dtype: Any = np.float64) -> AnyArray:
    """Return a vector with p entries that has these entries at `index`, and zeros elsewhere."""
    x = np.zeros(p, dtype)
    x[index] = entries
    return x


def columns_with_entries(p: int, vectors: Sequence[tuple[Index, AnyArray]], dtype: Any) -> AnyArray:
    """Return the same for several vectors, as the columns of an array in Fortran order."""
    V = np.zeros((p, len(vectors)), dtype, order="F")
    for v, (index, entries) in zip(V.T, vectors, strict=True):
        v[index] = entries
    return V


def below_range() -> np.errstate:
    """A context in which numbers may be rounded to 0."""
    return np.errstate(under="ignore")


def beyond_range() -> np.errstate:
    """A context in which numbers may leave the number range; the code afterwards handles inf, NaN and 0."""
    return np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore")


def power_of_two_scale(largest: float, dtype: Any = np.float64) -> float:
    """Return the power of two whose square brings `largest` near 1, or as near as it can without overflow."""
    most = np.finfo(dtype).maxexp // 2 - 1
    return 2.0 ** min(-(math.frexp(largest)[1] // 2), most) if largest > 0 else 1.0


def exponent_of(range_: float) -> int:
    """Return the logarithm of a power of two."""
    return math.frexp(range_)[1] - 1


def exponent_above(largest: float) -> int:
    """Return the e with 2^(e - 1) <= largest < 2^e; 0 for zero."""
    return math.frexp(largest)[1]


def largest_magnitude(a: Any) -> float:
    """Return the largest magnitude of the entries of an array, without a copy; NaN if an entry is NaN."""
    return max(float(a.max(initial=0)), -float(a.min(initial=0)))
