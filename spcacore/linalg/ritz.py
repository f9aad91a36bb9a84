"""Eigenvectors of a pencil within the span of directions whose products are kept (Rayleigh and Ritz)."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.optimize import brentq

from .._types import Array
from .eigen import all_eigenpairs
from .orthogonal import inner_products, project_out

SPAN_SIZE = 24  # directions; of so many half are kept. Twice as many save a tenth of the iterations
LEAST_LEFT = 1e-3  # of a direction, of which its products keep their digits
PATIENCE = 6  # steps that a component may take
ORDER_OF_STEP = 100  # variables or samples, whose decomposition takes as long as a step; of others by the square
NEAR = 0.01  # of a relative change of a
TINY = 1e-300


class RitzSpan:
    """Orthonormal directions v with G v and L v, to find eigenvectors of (G, a I + L) for any a.

    Of a full span the leading half is kept: a thick restart (Wu and Simon 2000).
    """

    def __init__(self, p: int, exact: float, with_products: Callable[[Array], Array]):
        self.exact, self.with_products, self.size = exact, with_products, 0
        self.parts: Array = np.empty((3, min(SPAN_SIZE, p), p))

    @property
    def filled(self) -> Array:
        """The directions and their products, of shape (3, size, p)."""
        return self.parts[:, : self.size]

    @property
    def full(self) -> bool:
        return self.size + 1 >= self.parts.shape[1]

    def append(self, d: Array, always: bool = True) -> bool:
        """Add a direction, alone or with its products, unless it is rounding of what is there; whether it was."""
        before = float(np.linalg.norm(d[0]))
        for _ in range(2 if self.size else 0):
            d = d - (self.filled[0] @ d[0]) @ self.filled[: len(d)]
        left = float(np.linalg.norm(d[0]))
        if not left > self.exact * before or self.size == self.parts.shape[1]:
            return False
        known = len(d) > 1 and left > LEAST_LEFT * before
        if not known and not always:
            return False
        self.parts[:, self.size] = d / left if known else self.with_products(d[0] / left)
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


class ShiftedInverse:
    """Steps from Ritz vectors x of (G, K_a), K_a = a I + L, G = YY', by nearly the inverse of G - t K_a.

    Of the vectors orthogonal to Q and to K_a x, with the Ritz value t, that is the step of Jacobi and Davidson
    (Sleijpen and van der Vorst 1996), which converges as fast as the inverse is exact. With eigenvectors W of
    Y'K_a^-1 Y, it is `K_a^-1 (Y W (diag(values) - t)^-1 W'Y'K_a^-1 - 1)/t`. They are found for one a, b, once
    there were as many further iterations as take their time; other a change the values alone, to first order.
    """

    def __init__(self, p: int, order: int, factor: Callable[[], Array], solve: Callable[..., Array]):
        self.order, self.factor, self.solve = order, factor, solve
        self.waited, self.b, self.a = 0, math.inf, math.inf
        self.Q: Array = np.zeros((p, 0))

    @property
    def known(self) -> bool:
        return self.b < math.inf

    def _decompose(self, b: float) -> None:
        Y = self.factor()
        F = self.solve(b, Y)
        self.values, W = all_eigenpairs(inner_products(Y, F))
        self.b, self.waited, self.YW = b, 0, Y @ W
        self.falls = np.sum((F @ W) ** 2, axis=0) / np.maximum(self.values, TINY)
        self.a = math.inf

    def _border(self, a: float, Q: Array) -> None:
        """Products of Q with the parts of the inverse, for an a that is near enough."""
        if not abs(a - self.a) <= NEAR * a:
            self.a, self.Q = a, Q[:, :0]
            self.FQ, self.QKQ = np.zeros((len(self.values), 0)), np.zeros((0, 0))
        more = Q[:, self.Q.shape[1] :]
        if more.shape[1]:
            solved = self.solve(self.a, more)
            self.FQ, side = np.hstack([self.FQ, self.YW.T @ solved]), self.Q.T @ solved
            self.Q, self.QKQ = Q, np.block([[self.QKQ, side], [side.T, more.T @ solved]])

    def step(self, a: float, x: Array, Gx: Array, Lx: Array, Q: Array, steps: int) -> Array | None:
        """The step, where the inverse is known by now, after so many iterations for x."""
        self.waited += steps >= PATIENCE
        if self.waited > (self.order / ORDER_OF_STEP) ** 2 and a != self.b:
            self._decompose(a)
        if not self.known:
            return None
        self._border(a, Q)
        Kx = a * x + Lx
        t = float(x @ Gx) / float(x @ Kx)
        sides = np.stack([Kx, Gx - t * Kx], axis=1)
        solved, q = self.solve(self.a, sides), Q.shape[1]
        within, across = np.hstack([self.FQ, self.YW.T @ solved]), Q.T @ solved
        gaps = self.values / (1 + (self.a - self.b) * self.falls) - t
        weighted = within / np.where(gaps == 0, TINY, gaps)[:, None]
        inner = np.block([[self.QKQ, across], [across[:, :1].T, sides[:, :1].T @ solved]])
        inner -= within[:, :-1].T @ weighted
        weights = np.append(-np.linalg.solve(inner[:, :-1], inner[:, -1]), 1)
        right = Q @ weights[:q] + sides @ weights[q:] - self.YW @ (weighted @ weights)
        return project_out(self.solve(self.a, right), Q)


def root_beyond(f: Callable[[float], float], t: float, gain: float, most: float) -> tuple[float, float]:
    """A root of f, to two digits of f(t), where f(t) points from t if f falls; or a step towards it.

    About `gain` times f(t) from t, and `most` away; what the gain should have been is returned, too.
    """
    value = f(t)
    if abs(value) <= 1e-9:
        return t, gain
    step = min(max(gain * value, -most), most)
    while abs(after := f(t + step)) > 1e-2 * abs(value):
        if after * value < 0:
            step = float(brentq(f, t, t + step, xtol=1e-9 + 1e-2 * abs(step))) - t
            break
        if abs(step) == most:
            return t + step, gain
        step = min(max(4 * step, -most), most)
    return t + step, max(step / value, 1.0)
