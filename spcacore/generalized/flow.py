"""Truncated Rayleigh flow (Tan, Wang, Liu and Zhang 2018).

`x <- x + eta (Ax/rho - Bx)`, rho = x'Ax/x'Bx, of which the k largest entries are kept; each step raises rho
if `eta lambda_max(B) < 1` and k is large enough.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from .. import _core
from .._limits import (
    FLOW_NULL,
    FLOW_ROUGH_STEPS,
    FLOW_ROUGH_TOL,
    FLOW_ROUNDS,
    FLOW_STEP_TOL,
    GRADIENT_SUPPORT,
    RISE,
)
from ..linalg.eigen import largest_eigenpairs
from ..objectives.ratio import RatioOfUnits
from ..solvers.solution import Solution
from ..supports.admissible import Units
from ..supports.search import Steps, forward
from .form import Array, Form, Index
from .options import Options
from .pencil import Pencil
from .search import single_variables

__all__ = ["flows"]


class _BySlope(RatioOfUnits):
    """The same, where the variable of the largest slope of the ratio alone may join."""

    def entering(self, units: Units, others: Index) -> Index:
        S, basis = self._basis(units)
        if len(basis.eigenvalues) == 0 or len(others) == 0:
            return others if len(S) == 0 else others[:1]
        # |Ax - rho Bx| for x'Bx = 1, in units in which B_jj = 1
        A, B = self._block(S, others)
        slope = np.abs(basis.W[:, 0] @ (A - basis.eigenvalues[0] * B))
        return others[[np.argmax(slope / np.sqrt(np.maximum(self.quotient.G_diagonal[others], 1e-3)))]]


def flows(
    objective: RatioOfUnits, pencil: Pencil, options: Options, steps: Steps
) -> Iterator[tuple[Units, bool]]:
    """From single variables, from what a search by slopes selects, and from a dense vector; whether each
    ended by itself."""
    active, supports = pencil.active, objective.supports
    k = supports.room
    step = 0.9 / _step_bound(pencil.B0, active, options.seed)

    def refined(S: Index, v: Array | None) -> tuple[Units, bool]:
        x = _refined(pencil, S, v, k, step, options, steps)
        return supports.mask(x.index), x.converged

    yield refined(np.sort(single_variables(objective, k)), None)
    if k <= GRADIENT_SUPPORT:
        yield refined(supports.index(forward(_BySlope(pencil, supports))), None)
    S, v = active, _dense_start(pencil, options.seed)
    for size in (8 * k, 4 * k, 2 * k):
        if size < len(active):
            S, v, _, _ = _flow(pencil, S, v, size, step, FLOW_ROUGH_STEPS, FLOW_ROUGH_TOL, steps)
    yield refined(S, v)


def _refined(
    pencil: Pencil, S: Index, v: Array | None, k: int, step: float, options: Options, steps: Steps
) -> Solution:
    """The flow, then the best values on its support, from which it runs again, while that pays."""
    best = pencil.leading(S) if v is None else None
    for _ in range(FLOW_ROUNDS):
        if best is not None:
            S, v = best.index, best.entries
        assert v is not None
        S, v, _, done = _flow(pencil, S, v, k, step, options.max_iter, options.tol, steps)
        new = replace(pencil.leading(S), converged=done)
        if best is not None and not new.objective > best.objective * (1 + RISE):
            return replace(best, converged=best.converged and done)
        best = new
    assert best is not None
    return best


def _flow(
    pencil: Pencil, S: Index, v: Array, k: int, least: float, max_iter: int, tol: float,
    steps: Steps,
) -> tuple[Index, Array, int, bool]:  # fmt: skip
    """Steps of at least `least`; longer ones for as long as they raise the ratio."""
    v = v / (np.linalg.norm(v) or 1.0)
    Av, Bv = pencil.A.matvec(v, S), pencil.B.matvec(v, S)
    least_square = FLOW_NULL if pencil.B is pencil.B0 else pencil.least
    rho = _quotient(v, S, Av, Bv, least_square)
    if rho == -np.inf:  # deflation has left nothing of B there
        kept = np.sort(_core.select_largest(v, min(k, len(v))))
        return S[kept], v[kept], 0, True
    eta = least
    for n_iter in range(1, max_iter + 1):
        direction = Av - rho * Bv
        scale = abs(rho) if abs(rho) > 1e-8 else 1.0
        while True:
            y = (eta / scale) * direction
            y[S] += v
            T = np.sort(_core.select_largest(y, k))
            T = T[y[T] != 0]
            if not len(T):
                return S, v, n_iter, True
            u = y[T] / np.linalg.norm(y[T])
            Au, Bu = pencil.A.matvec(u, T), pencil.B.matvec(u, T)
            new = _quotient(u, T, Au, Bu, least_square)
            if new >= rho or eta <= least:
                break
            eta = max(eta / 4, least)
        same = np.array_equal(S, T)
        rise = new - rho
        if rise < 0 and len(S) <= k:
            return S, v, n_iter, True
        if new == -np.inf:
            return T, u, n_iter, True
        S, v, Av, Bv, rho = T, u, Au, Bu, new
        eta *= 2
        if steps(n_iter) and len(S) <= k:
            return S, v, n_iter, False
        if same and rise <= tol * abs(rho):
            return S, v, n_iter, True
    return S, v, max_iter, False


def _quotient(v: Array, S: Index, Av: Array, Bv: Array, least_square: float) -> float:
    square = float(v @ Bv[S])
    return float(v @ Av[S]) / square if square > least_square else -np.inf


def _step_bound(B: Form, active: Index, seed: int) -> float:
    """A little above the largest eigenvalue of B, by Lanczos iteration."""
    if len(active) <= 32:
        return float(np.linalg.eigvalsh(B.block(active))[-1])
    from scipy.sparse.linalg import LinearOperator

    v = np.random.default_rng(seed).standard_normal(B.p)
    operator = LinearOperator((B.p, B.p), dtype=np.float64, matvec=lambda x: B.matvec(x.ravel()))
    values, _ = largest_eigenpairs(operator, 1, v0=v, tol=FLOW_STEP_TOL)
    return (1 + 2 * FLOW_STEP_TOL) * float(values[0])


def _dense_start(pencil: Pencil, seed: int) -> Array:
    """Nearly the leading eigenvector of A, in units in which B has diagonals near 1."""
    v = np.random.default_rng([seed, 1]).standard_normal(pencil.A.p)
    for _ in range(20):
        w = pencil.A.matvec(v)
        if not w[pencil.active].any():
            break
        v = w / np.linalg.norm(w)
    return v[pencil.active]
