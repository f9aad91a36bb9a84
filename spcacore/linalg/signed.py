"""The best values of given signs on a support."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._limits import RISE, SIGNED_ORDER, SIGNED_RATIOS

__all__ = ["SIGNED_STEPS", "Vector", "signed_ratio", "signed_vector"]
__dir__ = __all__.copy

Vector = NDArray[np.float64]
SIGNED_STEPS = 10  # of an ascent where all supports are tried after it


def signed_vector(G: Vector, signs: NDArray[Any], begin: Vector | None = None) -> tuple[Vector, float]:
    """A maximizer of x'Gx over unit vectors of these signs: of few variables the best one.

    One without zeros is the leading eigenvector of G. So the best of k variables is that, where it has the
    signs, or the best of k - 1 of them; of many variables a fixed point of x <- (G x)_+/||.||.
    """
    k = len(G)
    best, most = _finished(G, signs, *_signed_ascent(G, signs, begin))
    if k > SIGNED_ORDER:
        return best, most
    masked = np.where(G * np.outer(signs, signs) < 0, 0, G)  # x'Gx is at most x'Mx
    waiting, seen = [tuple(range(k))], set()
    while waiting:
        kept = waiting.pop()
        at = np.array(kept)
        values, vectors = np.linalg.eigh(G[np.ix_(at, at)])
        enough = most + 1e-14 * abs(most)
        if not values[-1] > enough or not np.linalg.eigvalsh(masked[np.ix_(at, at)])[-1] > enough:
            continue
        x = _with_signs(vectors[:, -1], signs[at])
        if x is not None:
            best, most = np.zeros(k), float(values[-1])
            best[at] = x
            continue
        for i, j in enumerate(kept):
            fewer = kept[:i] + kept[i + 1 :]
            if signs[j] != 0 and fewer and fewer not in seen:
                seen.add(fewer)
                waiting.append(fewer)
    return best, float(best @ G @ best)


def signed_ratio(M: Vector, G: Vector, signs: NDArray[Any], begin: Vector) -> tuple[Vector, float]:
    """A maximizer of x'Mx/x'Gx over x of these signs: `begin`, which maximizes it without them, if it has
    them, or the end of maximizers of x'(M - ratio G)x (Dinkelbach 1967)."""
    x = _with_signs(begin / np.linalg.norm(begin), signs)
    if x is not None:
        return x, float(x @ M @ x / (x @ G @ x))
    x, ratio = begin, 0.0
    for _ in range(SIGNED_RATIOS):
        new, gain = signed_vector(M - ratio * G, signs, x)
        size = float(new @ G @ new)
        value = float(new @ M @ new) / size if size > 0 else 0.0
        if not gain > 0 or not value > ratio * (1 + RISE):
            break
        x, ratio = new, value
    return x, ratio


def _with_signs(x: Vector, signs: NDArray[Any]) -> Vector | None:
    """x or -x, whichever has the signs but for rounding."""
    for one in (x, -x):
        if (one * signs).min() >= -1e-12:
            one = np.where(one * signs < 0, 0, one)
            return one / np.linalg.norm(one)
    return None


def _finished(G: Vector, signs: NDArray[Any], x: Vector, value: float) -> tuple[Vector, float]:
    """The leading eigenvector on the support of x, which an ascent comes near, where it has the signs."""
    at = np.flatnonzero(x)
    values, vectors = np.linalg.eigh(G[np.ix_(at, at)])
    leading = _with_signs(vectors[:, -1], signs[at])
    if leading is None or values[-1] < value - 1e-14 * abs(value):
        return x, value
    out = np.zeros(len(G))
    out[at] = leading
    return out, float(values[-1])


def _signed_ascent(G: Vector, signs: NDArray[Any], begin: Vector | None) -> tuple[Vector, float]:
    values, vectors = np.linalg.eigh(G)
    x = _with_signs(vectors[:, -1], signs)
    if x is not None:
        return x, float(values[-1])
    shift, best, most = max(0.0, -float(values[0])), None, -math.inf
    single = np.zeros(len(G))
    single[np.argmax(G.diagonal())] = 1
    for start in (vectors[:, -1], -vectors[:, -1], single, -single, *(() if begin is None else (begin,))):
        x = np.where(start * signs < 0, 0, start)
        if not x.any():
            continue
        x, value = x / np.linalg.norm(x), -math.inf
        for _ in range(SIGNED_STEPS if len(G) <= SIGNED_ORDER else 100 * len(G) + 1000):
            y = G @ x
            previous, value = value, float(x @ y)
            y += shift * x
            y = np.where(y * signs < 0, 0, y)
            if not value - previous > 1e-15 * abs(value) or not y.any():
                break
            x = y / np.linalg.norm(y)
        value = float(x @ G @ x)
        if value > most:
            best, most = x, value
    assert best is not None
    return best, most
