"""The step of SCoTLASS where something is known of the variables.

It maximizes a'w over ||w|| <= 1, sum_u ||w_u|| <= c of the units that are not included, the signs, and
Q'w = 0. With b = a - Q mu without wrong signs, s_u = max(1 - l/||b_u||, 0) b_u, and s_u = b_u of the included
ones, the dual is to minimize over mu and the level l >= 0

    h = ||s|| + c l,    dh/dmu = -Q'w,    w = s/||s||,

where l is known for each mu (`UnitSteps`). With e = b_u/||b_u|| on the m free units that are not
zero, D = (1 - l/||b_u||) I + l/||b_u|| ee' there, and cost = e'w,

    h_mumu = Q'(D - ww')Q/||s||,    h_mul = Q'(e - cost w)/||s||,    h_ll = (m - cost^2)/||s||,

and mu is sought by Newton steps on h_mumu - h_mul h_mul'/h_ll, or h_mumu at level 0, damped as in scotlass.c.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._limits import ORTHOGONAL_THRESHOLD_STEPS
from .._records import record
from ..supports.admissible import Supports
from .choosing import Rule, Step, UnitSteps, Vector
from .solution import ProgressClock, Report

__all__ = ["ascend_orthogonally", "orthogonal_bounding"]

_EXACT, _ENOUGH = 64 * float(np.finfo(np.float64).eps), float(np.finfo(np.float64).eps) ** 0.75
_FAR = 1e6  # steps where h is flat, in units of a


def orthogonal_bounding(choice: Supports, bound: float, Q: Vector) -> Rule:
    """The rule of a bound among vectors with Q'x = 0; zeros where no such unit vector attains the maximum."""
    threshold, begin = UnitSteps(choice, Step.L1_BOUND, level=bound), np.zeros(Q.shape[1])

    def rule(a: Vector) -> tuple[NDArray[np.intp], Vector]:
        nonlocal begin
        index, s, begin = _solved(_Dual(choice, threshold, a, Q), begin if begin.any() else Q.T @ a)
        return index, s

    return rule


def ascend_orthogonally(
    op: _core.Operator, choice: Supports, bound: float, Q: Vector, index: NDArray[np.intp],
    entries: NDArray[Any], max_iter: int, tol: float, hook: Report | None,
) -> tuple[int, NDArray[np.intp], NDArray[Any], float, int]:  # fmt: skip
    """As `UnitSteps.ascend` by that rule, without x'Ax, which is the objective."""
    steps = UnitSteps(choice, Step.L1_BOUND, level=bound)
    if Q.shape[1] == 0:
        status, index, entries, value, _, n_iter = steps.ascend(op, index, entries, max_iter, tol, hook)
        return status, index, entries, value, n_iter
    rule, clock = orthogonal_bounding(choice, bound, Q), ProgressClock(hook)
    x = choice.oriented(steps.start(op, index, entries))
    best: tuple[NDArray[np.intp], Vector, float] | None = None
    status, n_iter, support = 1, 0, np.flatnonzero(x)
    if max_iter == 0 and x.any():
        support, x = rule(x)
    while x.any():
        x = x / np.linalg.norm(x)
        nonzero = np.flatnonzero(x)
        v = x[nonzero].astype(op.dtype)
        y = op.apply(nonzero, v).astype(np.float64)
        value = float(v @ y[nonzero])
        if n_iter > 0 or max_iter == 0:
            rise = math.inf if best is None else value - best[2]
            best = best if best is not None and not rise > 0 else (support, x, value)
            if not rise > tol * abs(value):
                status = 0
                break
        if n_iter == max_iter or clock(n_iter):
            break
        support, x = rule(y)
        n_iter += 1
    if best is None:
        return -1, index, entries, -math.inf, 0
    support, x, value = best
    return status, support, x[support].astype(op.dtype), value, n_iter


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
        index, s = self.threshold(b)
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
