"""What a few variables explain in a regression: g_S'(K_S)^-1 g_S, of products g and a semidefinite K.

This is the largest (g'u)^2/u'Ku over u on the support S, so the best side of a pair whose other side is
given. Less log det K_S it is what a normal prior of precision K leaves to the evidence of a support. Rows of
W'K for W'K_S W = I, and what is left of g and of the diagonal of K for all variables, make of one unit more a
step of Cholesky's factorization.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from .._records import record
from .._types import Array, Index
from ..linalg.pencil import whitening
from ..supports.admissible import Supports, Units, with_unit
from ..supports.objective import Objective
from .rows import KeptRows

__all__ = ["Regression"]
__dir__ = __all__.copy


@record
class _Explained:
    """W of some units, whose variables are `index`, the rows W'K, W'g, what these leave of g and of the
    diagonal of K, and the value."""

    units: Units
    index: Index
    W: Array
    rows: Array
    z: Array
    rest: Array
    left: Array
    value: float

    def without(self, units: Units, own: Index) -> _Explained:
        """Without the variables in these places: those Wc that are zero there."""
        Q, R = np.linalg.qr(self.W[own].T)
        Q = Q[:, np.abs(R.diagonal()) > 0]
        s, along = Q.T @ self.rows, Q.T @ self.z
        return replace(
            self, units=units, rows=self.rows - Q @ s, z=self.z - Q @ along, rest=self.rest + along @ s,
            left=self.left + np.einsum("ij,ij->j", s, s), value=self.value - float(along @ along),
        )  # fmt: skip


class Regression(Objective):
    """The explained part of g; a unit more never lowers it, without `volume`.

    Parameters
    ----------
    K : KeptRows
        The rows of a semidefinite matrix.
    diagonal : ndarray of shape (p,)
    g : ndarray of shape (p,)
    supports : Supports
        With the cardinality as its room.
    least : float
        Eigenvalues of what is left of K up to this are rounding.
    volume : bool
        Whether log det K_S is taken away.
    fit : callable, optional
        The best u on some variables, as where it has signs: it minimizes u'Ku - 2 g'u.
    """

    def __init__(
        self, K: KeptRows, diagonal: Array, g: Array, supports: Supports, *, least: float = 0.0,
        volume: bool = False, fit: Callable[[Index], Array] | None = None,
    ):  # fmt: skip
        super().__init__(supports)
        self.K, self.g, self.least, self.volume, self.fit = K, g, least, volume, fit
        self.exact, self.steepest = fit is None, fit is not None or supports.grouped
        if self.exact and not supports.grouped:
            self.most_tried = len(supports.allowed)
        none, p = np.zeros(len(supports.allowed), bool), len(g)
        self.none = self.last = _Explained(
            none, np.zeros(0, np.intp), np.zeros((0, 0)), np.zeros((0, p)), np.zeros(0),
            g.astype(np.float64), diagonal, 0.0,
        )  # fmt: skip
        self.fitted: dict[bytes, tuple[Array, float]] = {}

    def _explained(self, units: Units) -> _Explained:
        """From the last one asked for, where that has some of these units and no others."""
        at = self.none if (self.last.units & ~units).any() else self.last
        S = self.supports.index(units & ~at.units)
        if len(S) == 0:
            return at
        new = self.K.between(S)[0]
        cross = at.rows[:, S]
        new = new - cross.T @ at.rows
        T = self._whitened(new[:, S])
        rows, z = T.T @ new, T.T @ at.rest[S]
        W = np.zeros((len(at.index) + len(S), at.W.shape[1] + T.shape[1]))
        W[: len(at.index), : at.W.shape[1]] = at.W
        W[: len(at.index), at.W.shape[1] :] = -at.W @ (cross @ T)
        W[len(at.index) :, at.W.shape[1] :] = T
        self.last = _Explained(
            units.copy(), np.append(at.index, S), W, np.vstack([at.rows, rows]), np.append(at.z, z),
            at.rest - z @ rows, at.left - np.einsum("ij,ij->j", rows, rows),
            at.value + float(z @ z) - self._volume(new[:, S]),
        )  # fmt: skip
        return self.last

    def _near(self, units: Units) -> _Explained:
        """The same, or what is left of the last one without one unit, for as long as that is asked for."""
        gone = np.flatnonzero(self.last.units & ~units)
        if len(gone) != 1 or (units & ~self.last.units).any() or self.volume:
            return self._explained(units)
        own = np.flatnonzero(self.supports.unit[self.last.index] == gone[0])
        return self.last.without(units, own)

    def _whitened(self, K: Array) -> Array:
        mu, U = np.linalg.eigh(K)
        return whitening(mu, U, mu > self.least)

    def _volume(self, K: Array) -> float:
        return float(np.linalg.slogdet(K)[1]) if self.volume else 0.0

    def fit_on(self, units: Units) -> tuple[Array, float]:
        """The best u of the signs, for all variables, and its value."""
        assert self.fit is not None
        key = units.tobytes()
        if key not in self.fitted:
            S, u = self.supports.index(units), np.zeros(len(self.g))
            u[S] = self.fit(S)
            self.fitted[key] = u, float(u @ self.g)
        return self.fitted[key]

    def value(self, units: Units) -> float:
        return self._explained(units).value if self.fit is None else self.fit_on(units)[1]

    def most(self, sets: list[Units]) -> Array:
        return np.array([self._explained(units).value for units in sets])

    def with_each(self, units: Units, others: Index) -> Array:
        """The values, whatever the signs."""
        at = self._near(units)
        if not self.supports.grouped:
            left = at.left[others]
            usable = left > self.least
            left = np.where(usable, left, 1.0)
            gain = np.where(usable, at.rest[others] ** 2, 0) / left
            return at.value + gain - (np.log(left) if self.volume else 0.0)
        return np.array([at.value + self._gain(at, self.supports.variables(np.array([u]))) for u in others])

    def _gain(self, at: _Explained, S: Index) -> float:
        K = self.K.between(S, S)[0] - at.rows[:, S].T @ at.rows[:, S]
        z = self._whitened(K).T @ at.rest[S]
        return float(z @ z) - self._volume(K)

    def without_each(self, units: Units, members: Index) -> Array:
        return self.most([with_unit(units, drop=unit) for unit in members])

    def promise(self, units: Units) -> Array:
        """What each variable by itself would add, of the signs."""
        at = self._near(units)
        rest = at.rest
        if self.fit is not None:
            u = self.fit_on(units)[0]
            S = np.flatnonzero(u)
            rest = self.g - u[S] @ self.K.between(S)[0]
        left = np.where(at.left > self.least, at.left, np.inf)
        most = self.supports.per_unit(self.supports.projected(rest) ** 2 / left)
        most[units] = self.shares(units)[units]
        return most

    def shares(self, units: Units) -> Array:
        if self.fit is not None:
            return self.supports.per_unit(self.fit_on(units)[0] ** 2)
        at = self._explained(units)
        return self.supports.per_unit((at.W @ at.z) ** 2, at.index)
