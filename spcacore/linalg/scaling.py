"""Magnitudes: powers of two that bring entries near 1, rounding, the number range, and order."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._types import AnyArray, Array, Index, Mask

EPS = float(np.finfo(np.float64).eps)
TINY = float(np.finfo(np.float64).tiny)  # the least number with all digits


def eps_of(dtype: Any) -> float:
    """The distance from 1 to the next number."""
    return float(np.finfo(dtype).eps)


def descending(values: AnyArray, most: int | None = None) -> Index:
    """Where the largest is, then the others or so many; those that tie in the order that they have."""
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
    """Square roots, of what rounding has made negative 0."""
    return np.sqrt(np.maximum(values, 0))


def divisor(size: AnyArray) -> AnyArray:
    """What is divided by: 1 in place of what is not positive."""
    return np.where(size > 0, size, 1)


def with_entries(p: int, index: Index, entries: Any, dtype: Any = np.float64) -> AnyArray:
    """A vector of p entries, by its nonzeros."""
    x = np.zeros(p, dtype)
    x[index] = entries
    return x


def below_range() -> np.errstate:
    """For numbers that may be rounded to 0."""
    return np.errstate(under="ignore")


def beyond_range() -> np.errstate:
    """For numbers that may leave the number range: what becomes of them is seen to afterwards."""
    return np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore")


def power_of_two_scale(largest: float, dtype: Any = np.float64) -> float:
    """The power of two whose square brings `largest` near 1, or as near as it can without overflow."""
    most = np.finfo(dtype).maxexp // 2 - 1
    return 2.0 ** min(-(math.frexp(largest)[1] // 2), most) if largest > 0 else 1.0


def power_of_two_scales(largest: AnyArray) -> Array:
    """The same of each column, given its largest magnitude."""
    return np.array([power_of_two_scale(size) for size in largest])


def exponent_of(range_: float) -> int:
    """The logarithm of a power of two."""
    return math.frexp(range_)[1] - 1


def exponent_above(largest: float) -> int:
    """The e with 2^(e - 1) <= largest < 2^e; 0 for zero."""
    return math.frexp(largest)[1]


def even_exponent(largest: float, dtype: Any = np.float64) -> int:
    """An even e with `largest` 2^-e near 1, and 2^-e representable: that of the square of the scale above."""
    return -2 * exponent_of(power_of_two_scale(largest, dtype))


def largest_magnitude(a: Any) -> float:
    """Of the entries of an array, without a copy; NaN where one is."""
    return max(float(a.max(initial=0)), -float(a.min(initial=0)))
