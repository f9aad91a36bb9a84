"""Pairs by penalized matrix decomposition (Witten, Tibshirani and Hastie 2009).

With the covariance within each side taken for the identity, `max u'Cv` over `||u|| <= 1, ||v|| <= 1,
||u||_1 <= c_x, ||v||_1 <= c_y` for C = X'Y/(n - 1), by turns: u <- the soft threshold of Cv at the bound,
v <- that of C'u, from the leading singular vector and from the largest entry of C, of which the better is
kept.  C is applied as X'(Yv); further pairs are those of `C - sum d uv'`, or
of another deflation of C.
"""

from __future__ import annotations

import math
import threading
from dataclasses import replace
from typing import Any

import numpy as np

from .. import _core
from .._limits import CCA_LEFT, PAIR_WORK, RISE, TIE
from .._types import Array
from .._validation import number
from ..linalg.orthogonal import orthogonal_part
from ..operators.deflation import DEFLATIONS, Deflation
from ..solvers.choosing import Step, UnitSteps
from ..solvers.solution import ProgressHook, ended
from ..supports.admissible import Supports
from .sides import CrossCovariance, Pair, Side, common_dtype, leading_singular_vector, max_abs_per_column

__all__ = ["PenalizedDecomposition", "check_l1_bound", "pmd_starts"]


def check_l1_bound(value: Any, name: str, side: Side) -> float:
    """A number in [1, sqrt(p)]; what exceeds it by rounding is sqrt(p)."""
    root = math.sqrt(side.p)
    return min(number(value, name, 1, root * (1 + TIE.double)), root)


class PenalizedDecomposition:
    """Pairs one after another, by soft thresholds at l1 bounds."""

    deflation: Deflation
    cross: CrossCovariance
    bounds: tuple[float, float]
    max_iter: int
    tol: float
    first: float

    def __init__(
        self,
        x: Side,
        y: Side,
        bounds: tuple[float, float],
        max_iter: int,
        tol: float,
        stop: threading.Event | None = None,
        deflation: Deflation = DEFLATIONS["hotelling"],
    ):
        self.deflation, self.first = deflation, 0.0
        self.bases: tuple[list[Array], list[Array]] = ([], [])
        self.cross, self.bounds, self.max_iter, self.tol = CrossCovariance(x, y, stop), bounds, max_iter, tol
        self.supports: tuple[Supports, Supports] = x.supports, y.supports
        self.signed: bool = any(one.signs is not None for one in self.supports)
        self.noise: float = CCA_LEFT.of(common_dtype(x, y))

    def next(self, progress: ProgressHook | None, starts: list[Array] | None = None) -> Pair | None:
        runs: list[Pair] = []
        starts = pmd_starts(self.cross) if starts is None else starts
        if self.signed:
            starts = [sign * v for v in starts for sign in (1, -1)]
        for v in starts:
            runs.append(self._run(v, progress))
            if ended(progress):
                break
        if not runs:
            return None
        best = max(runs, key=lambda pair: pair.strength * (1 + RISE * (pair is runs[0])))
        if not best.strength > self.noise * self.first:
            return None
        self.first = self.first or best.strength
        best = best.with_sign(self.cross.x, self.cross.y)
        u, v = (self._removed(basis, w) for basis, w in zip(self.bases, (best.u, best.v), strict=True))
        if (u.any() and v.any()) or self.deflation.update == "projection":
            self.cross.remove((u, u), (v, v), self.deflation.update)
        return replace(best, n_iter=sum(pair.n_iter for pair in runs))

    def _removed(self, basis: list[Array], w: Array) -> Array:
        """The unit vector that w is removed by; zero where it adds no direction."""
        if not self.deflation.orthogonalized:
            return w / np.linalg.norm(w)
        q = orthogonal_part(w, basis)
        if q is None:
            return np.zeros_like(w)
        basis.append(q)
        return q

    def _run(self, v: Array, progress: ProgressHook | None) -> Pair:
        u, strength, n_iter, converged = np.zeros(self.cross.x.p), 0.0, 0, False
        for n_iter in range(1, self.max_iter + 1):
            u = _l1_bounded(self.cross.matvec(v), self.bounds[0], self.supports[0])
            slope = self.cross.transpose_matvec(u)
            v = _l1_bounded(slope, self.bounds[1], self.supports[1])
            before, strength = strength, float(v @ slope)
            enough = progress is not None and progress(n_iter)
            converged = strength - before <= self.tol * strength
            if converged or enough:
                break
        return Pair(u, v, strength, n_iter, converged)


def pmd_starts(cross: CrossCovariance) -> list[Array]:
    """The leading singular vector, and the variable of Y with the largest covariance; none if C is zero."""
    v = leading_singular_vector(cross)
    if v is None:
        return []
    if float(cross.x.n) * cross.x.p * cross.y.p > PAIR_WORK:
        return [v]
    largest = max_abs_per_column(cross, np.ones(cross.x.p), np.ones(cross.y.p))
    first = int(np.argmax(largest >= largest.max() * (1 - TIE.of(common_dtype(cross.x, cross.y)))))
    return [v, np.eye(1, cross.y.p, first)[0]]


def _l1_bounded(a: Array, bound: float, choice: Supports) -> Array:
    """The unit vector of bounded l1 norm with the largest product with a; 0 where no entry has its sign."""
    if choice.shapes:
        a = choice.projected(a)
        if a.any():
            a = UnitSteps(choice, Step.L1_BOUND, level=bound)(a)[1]
            a /= np.linalg.norm(a)
        return a
    w = np.empty_like(a)
    _core.l1_threshold(np.ascontiguousarray(a), bound, 0, w)
    return w
