"""Upper bounds on what several sparse loadings explain together.

Let the columns of V have at most k_1 .. k_r nonzeros, P be the projection onto their span, and A be positive
semidefinite. The variance that they explain together is Tr(PA).

*Orthonormal V.* P = VV' has 0 <= P <= I, trace r and magnitudes off the diagonal of at most
sum_t (k_t - 1) together (Vu et al. 2013). For any Z >= 0

    Tr(PA) = Tr(PZ) + sum_t v_t'(A - Z)v_t <= Tr Z + sum_t F(k_t),

F(m) a bound on x'(A - Z)x over unit vectors with at most m nonzeros. For any Y with no diagonal and entries
of at most rho, and Z = (A - Y - theta I)+, it is at most theta + rho (m - 1).

*Any V.* Let J be the variables in more than one support, s of them, and n_t how many the support of v_t
has: sum_t n_t >= 2s. Without J the loadings have disjoint supports. So their unit vectors w_t, and e_j of
each j in J, are orthonormal, and span a space that holds that of V: with Q the projection onto it, P <= Q.
Hence for any B >= 0 and Z >= 0

    Tr(PA) = Tr P(A - B) + Tr(PB) <= Tr P(A - B) + Tr(QB)
           <= (r largest eigenvalues of A - B) + Tr Z + sum_t F(k_t - n_t) + (s largest b_jj - z_jj),

with F as above for B in the place of A, F(0) = 0, and the largest over all s and n_t. To choose B and Y:
magnitudes of Q off the diagonal are at most sum_t (k_t + 1) - 2 Tr Q together.

Both problems of the best multipliers are semidefinite programs, solved by alternating directions; any iterate
gives a bound. A search of a few nodes for F(m) itself then replaces theta + rho (m - 1).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._limits import (
    JOINT_CHECK,
    JOINT_ITERATIONS,
    JOINT_NODES,
    JOINT_STALL,
    JOINT_START_ROUNDS,
    JOINT_STARTS,
)
from .._records import record
from .exact_tree import Search
from .solution import Solution

__all__ = ["Matrix", "l1_multiplier", "most_together", "relaxed_bound"]

Matrix = NDArray[np.float64]
_EPS = float(np.finfo(np.float64).eps)


@record
class _Multipliers:
    """B, Z and what F(m) is at most by Y: theta + rho (m - 1)."""

    beyond: float  # the r largest eigenvalues of A - B together
    B: Matrix
    Z: Matrix
    theta: float
    rho: float
    Y: Matrix

    def levels(self, most: int) -> Matrix:
        """F(0) .. F(most)."""
        m = np.arange(most + 1)
        return np.where(m > 0, self.theta + self.rho * (m - 1), 0)

    def bound(self, levels: Matrix, sizes: tuple[int, ...], orthogonal: bool) -> float:
        own = (self.B - self.Z).diagonal()
        together = levels[list(sizes)].sum() if orthogonal else most_together(levels, own, sizes)
        return self.beyond + float(np.trace(self.Z)) + float(together)


def most_together(levels: Matrix, own: Matrix, sizes: tuple[int, ...]) -> float:
    """The largest sum_t levels[k_t - n_t] + (the s largest `own`), sum_t n_t >= 2s; levels do not fall."""
    best = np.zeros(1)  # by sum_t n_t
    for k in sizes:
        new = np.full(len(best) + k, -np.inf)
        for n in range(k + 1):
            np.maximum(new[n : n + len(best)], best + levels[k - n], out=new[n : n + len(best)])
        best = new
    shared = np.append(0.0, np.cumsum(np.maximum(np.sort(own)[::-1], 0)))
    return float((best + shared[np.minimum(np.arange(len(best)) // 2, len(own))]).max())


def relaxed_bound(A: Matrix, sizes: tuple[int, ...], orthogonal: bool) -> float:
    """The bound by multipliers and search."""
    scale = float(np.abs(A).max())
    if scale == 0:
        return 0.0
    A = A / scale
    found = _orthogonal(A, sizes)
    free, bound = _searched(found, sizes)
    if orthogonal:
        return scale * bound
    if free > bound * (1 + JOINT_STALL):
        free = min(free, _searched(_any(A, sizes), sizes)[0])
    return scale * free


def l1_multiplier(A: Matrix, k: int) -> Matrix:
    """Y without diagonal that makes lambda_1(A - Y) + (k - 1) max |y_ij| about as small as can be."""
    scale = float(np.abs(A).max()) or 1.0
    return scale * _orthogonal(A / scale, (k,)).Y


def _searched(found: _Multipliers, sizes: tuple[int, ...]) -> tuple[float, float]:
    """The bounds by given multipliers, of any and of orthonormal V, with F(m) searched.

    Rounding is allowed for: of eigenvalues and of matrices that are semidefinite but for it.
    """
    levels = np.maximum(found.levels(max(sizes)), 0)
    C = found.B - found.Z
    searched = levels.copy()
    for m in range(1, len(levels)):
        searched[m] = min(levels[m], max(_largest_of(C, m), 0.0))
    searched = np.maximum.accumulate(searched)
    size = 1 + float(np.abs(found.B).max()) + float(np.abs(C).max())
    rounding = 64 * _EPS * len(C) * size * sum(k + 1 for k in sizes)
    free, bound = (min(found.bound(x, sizes, way) for x in (levels, searched)) for way in (False, True))
    return free + rounding, bound + rounding


def _largest_of(C: Matrix, m: int) -> float:
    """A bound on x'Cx over unit vectors with at most m nonzeros, by a tree of few nodes."""
    if m == 1:
        return float(C.diagonal().max())
    kept = np.arange(len(C))
    start = Solution(_start(C, m), np.ones(m), 0.0, 0, True)
    search, nodes = Search(None, C, kept, m, start, 0.0, plain=True), 0
    while search.open() and nodes < JOINT_NODES:
        nodes += search.step(min(64, JOINT_NODES - nodes), _unlimited)
    return search.upper()


def _unlimited(_: int) -> None:
    pass


def _start(C: Matrix, m: int) -> NDArray[np.intp]:
    """The best support of some steps of truncated power from several columns."""
    p = len(C)
    lowest = float(np.linalg.eigvalsh(C)[0])
    D = C - min(lowest, 0.0) * np.eye(p)
    reach = np.sort(np.abs(C), axis=0)[-m:].sum(axis=0)
    X = D[:, np.argsort(-reach, kind="stable")[:JOINT_STARTS]]
    for _ in range(JOINT_START_ROUNDS):
        level = np.partition(np.abs(X), p - m, axis=0)[p - m]
        X = np.where(np.abs(X) >= level, X, 0)
        X = D @ (X / np.maximum(np.linalg.norm(X, axis=0), np.finfo(float).tiny))
    supports = np.unique(np.sort(np.argsort(-np.abs(X), axis=0, kind="stable")[:m].T, axis=1), axis=0)
    values = np.linalg.eigvalsh(C[supports[:, :, None], supports[:, None, :]])[:, -1]
    return np.ascontiguousarray(supports[np.argmax(values)])


# ---- the two semidefinite programs -------------------------------------------------------------------


def _orthogonal(A: Matrix, sizes: tuple[int, ...]) -> _Multipliers:
    """max Tr(AP) over 0 <= P <= I, Tr P = r, magnitudes off the diagonal of at most sum_t (k_t - 1)."""
    r, limit = len(sizes), float(sum(sizes) - len(sizes))
    own = np.diag(A.diagonal())

    def multipliers(Y: Matrix) -> _Multipliers:
        values, E = np.linalg.eigh(A - Y)
        theta = float(values[-r])
        Z = _recomposed(E, np.maximum(values - theta, 0))
        return _Multipliers(0.0, A, Z, theta, float(np.abs(Y).max()), Y)

    best = min((multipliers(Y) for Y in (np.zeros_like(A), A - own)), key=lambda x: x.bound(
        x.levels(max(sizes)), sizes, True))  # fmt: skip
    most = best.bound(best.levels(max(sizes)), sizes, True)
    W, U, tau = np.zeros_like(A), np.zeros_like(A), 0.5
    pace = _Pace()
    for n_iter in range(1, JOINT_ITERATIONS + 1):
        values, E = np.linalg.eigh(W - U + A / tau)
        H = _recomposed(E, _fantope(values, r))
        T = H + U
        before, W = W, _shrunk(T, 0.0, limit)
        U = T - W
        if n_iter % JOINT_CHECK:
            continue
        new = multipliers(tau * _off(U))
        value = new.bound(new.levels(max(sizes)), sizes, True)
        if value < most:
            best, most = new, value
        factor = pace.factor(value, float(np.linalg.norm(H - W)), float(np.linalg.norm(W - before)))
        if factor == 0:
            break
        tau, U = tau * factor, U / factor
    return best


def _any(A: Matrix, sizes: tuple[int, ...]) -> _Multipliers:
    """max Tr(AP) over 0 <= P <= Q <= I, Tr P = r, off(Q) + 2 Tr Q <= sum_t (k_t + 1).

    P + T = Q, T >= 0; each of the three matrices has a copy that obeys the equation and the l1 bound, the
    other three are projected by their eigenvalues.
    """
    r, limit = len(sizes), float(sum(sizes) + len(sizes))
    best, most = None, np.inf
    copies = [np.zeros_like(A) for _ in range(3)]
    U = [np.zeros_like(A) for _ in range(3)]
    tau, pace = 0.5, _Pace()
    for n_iter in range(1, JOINT_ITERATIONS + 1):
        values, E = np.linalg.eigh(copies[0] - U[0] + A / tau)
        P = _recomposed(E, _fantope(values, r))
        values, E = np.linalg.eigh(copies[1] - U[1])
        T = _recomposed(E, np.maximum(values, 0))
        values, E = np.linalg.eigh(copies[2] - U[2])
        Q = _recomposed(E, np.clip(values, 0, 1))
        a, b, q = P + U[0], T + U[1], Q + U[2]
        before = copies[2]
        joint = _shrunk((q + (a + b) / 2) / 1.5, 2.0, limit)
        rest = (joint - a - b) / 2
        copies = [a + rest, b + rest, joint]
        U = [a - copies[0], b - copies[1], q - joint]
        if n_iter % JOINT_CHECK:
            continue
        values, E = np.linalg.eigh(tau * U[0])
        B = _recomposed(E, np.maximum(values, 0))
        Y = _off(B + tau * U[2])
        rho = float(np.abs(Y).max())
        values, E = np.linalg.eigh(B - Y)
        Z = _recomposed(E, np.maximum(values - 2 * rho, 0))
        beyond = float(np.linalg.eigvalsh(A - B)[-r:].sum())
        new = _Multipliers(beyond, B, Z, 2 * rho, rho, Y)
        value = new.bound(new.levels(max(sizes)), sizes, False)
        if best is None or value < most:
            best, most = new, value
        primal = float(np.linalg.norm(P - copies[0]) + np.linalg.norm(Q - joint))
        factor = pace.factor(value, primal, float(np.linalg.norm(joint - before)))
        if factor == 0:
            break
        tau, U = tau * factor, [u / factor for u in U]
    assert best is not None
    return best


class _Pace:
    """When alternating directions end, and the penalty that balances their residuals (Boyd et al. 2011)."""

    def __init__(self) -> None:
        self.value, self.stalled = np.inf, 0

    def factor(self, value: float, primal: float, dual: float) -> float:
        """What to multiply the penalty by; 0 after checks that lowered the bound no more."""
        self.stalled = 0 if value < self.value * (1 - JOINT_STALL) else self.stalled + 1
        if self.stalled == 0:
            self.value = value
        if self.stalled >= 4:
            return 0.0
        return 1.5 if primal > 4 * dual else 1 / 1.5 if dual > 4 * primal else 1.0


def _recomposed(E: Matrix, values: Matrix) -> Matrix:
    """E diag(values) E', values not negative, symmetric to the last bit."""
    used = values > 0
    F = E[:, used] * np.sqrt(values[used])
    return F @ F.T


def _off(M: Matrix) -> Matrix:
    """Without its diagonal."""
    out: Matrix = M.copy()
    np.fill_diagonal(out, 0)
    return out


def _fantope(values: Matrix, r: int) -> Matrix:
    """The nearest numbers in [0, 1] with the sum r."""
    low, high = float(values[0]) - 1, float(values[-1])
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if np.clip(values - middle, 0, 1).sum() > r else (low, middle)
    return np.clip(values - (low + high) / 2, 0, 1)


def _shrunk(M: Matrix, weight: float, limit: float) -> Matrix:
    """The nearest matrix whose magnitudes off the diagonal, and weight times its trace, sum to the limit.

    Or less. The level t is the root of a convex function that falls, found by Newton's method from the left.
    """
    size, own = np.abs(_off(M)), M.diagonal()
    t = 0.0
    for _ in range(50):
        over = size > t
        count = np.count_nonzero(over)
        excess = (
            float(size[over].sum()) - count * t + weight * (float(own.sum()) - weight * len(M) * t) - limit
        )
        slope = count + weight**2 * len(M)
        if not excess > 1e-12 * limit or slope == 0:
            break
        t += excess / slope
    out: Matrix = np.sign(M) * np.maximum(size - t, 0)
    np.fill_diagonal(out, own - weight * t)
    return out
