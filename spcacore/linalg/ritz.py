"""The leading eigenvector of a pencil within the span of directions whose products are kept (Rayleigh-Ritz)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import brentq

from .._types import Array

SPAN_SIZE = 24  # directions; of so many half are kept. Twice as many save a tenth of the iterations


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

    def eigenvectors(self) -> Callable[[float], tuple[Array, Array]]:
        """Of a, the eigenvalues within the span, ascending, and the weights of unit vectors in a I + L."""
        V, G, L = self.filled
        values, turn = np.linalg.eigh(V @ L.T)
        H = turn.T @ (V @ G.T) @ turn

        def of(a: float) -> tuple[Array, Array]:
            root = 1 / np.sqrt(np.maximum(values, 0) + a)
            found, Z = np.linalg.eigh(root[:, None] * H * root)
            return found, turn @ (root[:, None] * Z)

        return of

    def keep_leading(self, weights: Array) -> None:
        """Keep the span of the last half of these combinations, at least one."""
        half = weights[:, ::-1][:, : max(1, self.parts.shape[1] // 2)]
        turn = np.linalg.qr(half)[0]
        self.size, kept = turn.shape[1], turn.T @ self.filled
        self.parts[:, : self.size] = kept

    def without(self, first: Array, energy: float, orthogonal: bool) -> RitzSpan:
        """The rest of the leading half once G is G' = (I - m b')G(I - b m'), b = m/energy, of its first vector
        m, with its products. If all is to be orthogonal to m, the directions are as well."""
        m = first[0]
        rest = self.filled[:, 1:].copy()
        share = (rest[0] @ m / energy)[:, None]
        if orthogonal:
            rest -= share * first[:, None]
        else:
            rest[1] -= share * first[1]
        rest[1] -= (rest[1] @ m / energy)[:, None] * m
        new = RitzSpan(len(m), self.exact)
        for d in rest.swapaxes(0, 1):
            new.append(d)
        return new


def root_beyond(f: Callable[[float], float], t: float) -> float | None:
    """A root of f, on the side of t where f(t) points if f falls; None if none is found."""
    value = f(t)
    stride = min(max(2 * value, -2.0), 2.0)
    for _ in range(9):
        if abs(value) <= 1e-9:
            return t
        if f(t + stride) * value <= 0:
            return float(brentq(f, t, t + stride, xtol=1e-10))
        t, stride = t + stride, 2 * stride
    return None
