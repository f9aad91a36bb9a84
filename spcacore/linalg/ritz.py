"""Eigenvectors of a pencil within the span of directions whose products are kept (Rayleigh and Ritz)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import brentq

from .._types import Array

SPAN_SIZE = 24  # directions; of so many half are kept. Twice as many save a tenth of the iterations
ROOT_STEP = 0.7  # a longer step can miss a root


class RitzSpan:
    """Orthonormal directions v with G v and L v, to find eigenvectors of (G, a I + L) for any a.

    Of a full span the leading half is kept: a thick restart (Wu and Simon 2000).
    """

    def __init__(self, p: int, exact: float):
        self.exact, self.size = exact, 0
        self.parts: Array = np.empty((3, min(SPAN_SIZE, p), p))

    @property
    def filled(self) -> Array:
        """The directions and their products, of shape (3, size, p)."""
        return self.parts[:, : self.size]

    @property
    def full(self) -> bool:
        return self.size == self.parts.shape[1]

    def append(self, d: Array) -> bool:
        """Add a direction with its products, unless it is rounding of what is there; whether it was added."""
        before = float(np.linalg.norm(d[0]))
        for _ in range(2 if self.size else 0):
            d = d - (self.filled[0] @ d[0]) @ self.filled
        left = float(np.linalg.norm(d[0]))
        if not left > self.exact * before or self.full:
            return False
        self.parts[:, self.size] = d / left
        self.size += 1
        return True

    def eigenvectors(self) -> Callable[[float], tuple[Array, float, float]]:
        """Of a: weights of eigenvectors z, of length 1 in a I + L, ascending; z'G z and z'L z of the last."""
        V, G, L = self.filled
        values, turn = np.linalg.eigh(V @ L.T)
        H, values = turn.T @ (V @ G.T) @ turn, np.maximum(values, 0)

        def of(a: float) -> tuple[Array, float, float]:
            root = 1 / np.sqrt(values + a)
            found, Z = np.linalg.eigh(root[:, None] * H * root)
            Z = root[:, None] * Z
            return turn @ Z, float(found[-1]), float(values @ Z[:, -1] ** 2)

        return of

    def keep_leading(self, weights: Array) -> None:
        """Keep the span of the last half of these combinations, at least one."""
        half = weights[:, ::-1][:, : max(1, self.parts.shape[1] // 2)]
        turn = np.linalg.qr(half)[0]
        self.size, kept = turn.shape[1], turn.T @ self.filled
        self.parts[:, : self.size] = kept


def root_beyond(f: Callable[[float], float], t: float) -> float:
    """A root of f, to some digits of f(t), where f(t) points from t if f falls; or a step towards it."""
    value = f(t)
    if abs(value) <= 1e-9:
        return t
    end = t + min(max(4 * value, -ROOT_STEP), ROOT_STEP)
    if f(end) * value > 0:
        return end
    return float(brentq(f, t, end, xtol=1e-9 + 1e-3 * abs(value)))
