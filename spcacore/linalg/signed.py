"""The best values of given signs on a support."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._limits import RISE, SIGNED_RATIOS

__all__ = ["Vector", "raised_ratio", "signed_ratio", "signed_vector"]

Vector = NDArray[np.float64]


def signed_vector(G: Vector, signs: NDArray[Any], begin: Vector | None = None) -> tuple[Vector, float]:
    """A maximizer of x'Gx over unit vectors of these signs, and that: of few variables the best one, of many
    a fixed point of x <- (G x)_+/||.||, from `begin` too (signed.c)."""
    start = None if begin is None else np.ascontiguousarray(begin)
    return _core.signed_vector(np.ascontiguousarray(G), np.ascontiguousarray(signs, np.int8), start)


def signed_ratio(M: Vector, G: Vector, signs: NDArray[Any], begin: Vector) -> tuple[Vector, float]:
    """A maximizer of x'Mx/x'Gx over x of these signs: `begin`, which maximizes it without them, if it has
    them, or what `raised_ratio` finds."""
    for x in (begin, -begin):
        x = x / np.linalg.norm(x)
        if (x * signs).min() >= -1e-12:
            x = np.where(x * signs < 0, 0, x)
            return x, float(x @ M @ x / (x @ G @ x))
    return raised_ratio(M, G, signs, begin, 0.0)


def raised_ratio(
    M: Vector, G: Vector, signs: NDArray[Any], x: Vector, ratio: float, rise: float = RISE, least: float = 0.0
) -> tuple[Vector, float]:
    """x'Mx/x'Gx raised by maximizers of x'(M - ratio G)x of these signs (Dinkelbach 1967), where x'Gx is
    more than the least."""
    for _ in range(SIGNED_RATIOS):
        new, gain = signed_vector(M - ratio * G, signs, x)
        size = float(new @ G @ new)
        value = float(new @ M @ new) / size if size > least else 0.0
        if not gain > 0 or not value > ratio * (1 + rise):
            break
        x, ratio = new, value
    return x, ratio
