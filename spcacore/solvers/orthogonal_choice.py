"""The step of SCoTLASS where something is known of the variables.

It maximizes a'w over ||w|| <= 1, sum_u ||w_u|| <= c of the units that are not included, the signs, and
Q'w = 0. With b = a - Q mu without wrong signs, s_u = max(1 - l/||b_u||, 0) b_u, and s_u = b_u of the included
ones, the dual is to minimize over mu and the level l >= 0

    h = ||s|| + c l,    dh/dmu = -Q'w,    w = s/||s||,

where l is known for each mu (`choosing.bounding`). With e = b_u/||b_u|| on the m free units that are not
zero, D = (1 - l/||b_u||) I + l/||b_u|| ee' there, and cost = e'w,

    h_mumu = Q'(D - ww')Q/||s||,    h_mul = Q'(e - cost w)/||s||,    h_ll = (m - cost^2)/||s||,

and mu is sought by Newton steps on h_mumu - h_mul h_mul'/h_ll, or h_mumu at level 0, damped as in scotlass.c.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._limits import ORTHOGONAL_THRESHOLD_STEPS
from .._records import record
from ..supports.admissible import Supports
from .choosing import Rule, Vector, bounding

__all__ = ["orthogonal_bounding"]
__dir__ = __all__.copy

_EXACT, _ENOUGH = 64 * float(np.finfo(np.float64).eps), float(np.finfo(np.float64).eps) ** 0.75
_FAR = 1e6  # steps where h is flat, in units of a


def orthogonal_bounding(choice: Supports, bound: float, Q: Vector) -> Rule:
    """The rule of a bound among vectors with Q'x = 0; zeros where no such unit vector attains the maximum."""
    threshold, begin = bounding(choice, bound), np.zeros(Q.shape[1])
    if Q.shape[1] == 0:
        return threshold

    def rule(a: Vector, _: float) -> tuple[NDArray[np.intp], Vector]:
        nonlocal begin
        index, s, begin = _solved(_Dual(choice, threshold, a, Q), begin if begin.any() else Q.T @ a)
        return index, s

    return rule


@record
class _Point:
    """mu with its s and h, the support that s may have, and Q'w."""

    mu: Vector
    index: NDArray[np.intp]
    s: Vector
    value: float
    left: Vector

    @property
    def largest(self) -> float:
        return float(np.abs(self.left).max())


@record
class _Dual:
    """h of one a."""

    choice: Supports
    threshold: Rule
    a: Vector
    Q: Vector

    def at(self, mu: Vector) -> _Point:
        b = self.a - self.Q @ mu
        index, s = self.threshold(b, 0.0)
        w = s / (float(np.linalg.norm(s)) or 1.0)
        return _Point(mu, index, s, float(b @ w), self.Q.T @ w)

    def curvature(self, x: _Point) -> Vector:
        """Of h, the level following mu."""
        unit, S = self.choice.unit, np.flatnonzero(x.s)
        norms = self.choice.norms(self.choice.projected(self.a - self.Q @ x.mu))
        sizes = self.choice.norms(x.s)
        free = (sizes > 0) & ~self.choice.included
        level = float((norms - sizes)[free].mean()) if free.any() else 0.0
        scale, q = float(np.linalg.norm(x.s)), self.Q[S]
        share = np.divide(level, norms, out=np.zeros_like(norms), where=free)
        e = x.s[S] / np.where(free, sizes, np.inf)[unit[S]]
        along = np.zeros((len(free), q.shape[1]))
        np.add.at(along, unit[S], e[:, None] * q)
        H = q.T @ ((1 - share)[unit[S], None] * q) + along.T @ (share[:, None] * along)
        H -= np.outer(x.left, x.left)
        cost = float(sizes[free].sum()) / scale
        corner = float(np.count_nonzero(free)) - cost**2
        if level > 0 and corner > _EXACT:
            z = q.T @ e - cost * x.left
            H -= np.outer(z, z) / corner
        return H / scale


def _solved(dual: _Dual, mu: Vector) -> tuple[NDArray[np.intp], Vector, Vector]:
    """Support and s of the mu where Newton steps end, and that."""
    x, damping = dual.at(mu), 1e-10
    for _ in range(ORTHOGONAL_THRESHOLD_STEPS):
        if x.largest <= _EXACT or damping > 1e8 or not x.s.any():
            break
        H = dual.curvature(x)
        H[np.diag_indices(len(H))] += damping / float(np.linalg.norm(x.s))
        try:
            step = np.linalg.solve(H, x.left)
        except np.linalg.LinAlgError:
            step = np.full_like(mu, np.inf)
        if not x.left @ step > 0 or not np.abs(step).max() <= _FAR * float(np.abs(dual.a).max()):
            damping *= 10
            continue
        new = dual.at(x.mu + step)
        if new.value <= x.value - x.left @ step / 4 or new.largest <= x.largest / 2:
            x, damping = new, max(damping / 10, 1e-12)
        elif x.largest <= _ENOUGH:  # rounding is all that is left
            break
        else:
            damping *= 10
    feasible = x.largest <= _ENOUGH and x.value > 0
    return x.index, x.s if feasible else np.zeros_like(x.s), x.mu
