"""Upper bounds on what several sparse loadings explain together.

Let the columns of V have at most k_1 .. k_r nonzeros, P be the projection onto their span, and A be positive
semidefinite. The variance that they explain together is Tr(PA). F(m) bounds x'Cx over unit vectors with at
most m nonzeros.

*Orthonormal V.* P = VV' <= I. So for any Z >= 0 and C = A - Z

    Tr(PA) = Tr(PZ) + sum_t v_t'Cv_t <= Tr Z + sum_t F(k_t).

*Uncorrelated components*, v_s'Av_t = 0. With a_t = v_t'Av_t, the vectors A^(1/2)v_t / a_t^(1/2) are
orthonormal. So for X >= 0, Z = A^(1/2)XA^(1/2), C = A - Z and F no less than any a_t

    sum_t a_t = sum_t v_t'Zv_t + sum_t v_t'Cv_t <= F (r largest eigenvalues of X) + sum_t F(k_t).

*Any V.* If no two supports share a variable, the loadings are orthogonal. Otherwise let J be the s >= 1
variables that are in more than one support, and n_t how many of them the support of v_t has: sum_t n_t >= 2s.
Without J the loadings have disjoint supports. So their unit vectors w_t and e_j for each j in J are
orthonormal, and span a space that contains the span of V: with Q the projection onto it, P <= Q. Hence for
any B >= 0 and Z >= 0, and C = B - Z

    Tr(PA) = Tr P(A - B) + Tr(PB) <= Tr P(A - B) + Tr(QB)
           <= (r largest eigenvalues of A - B) + Tr Z + sum_t F(k_t - n_t) + (s largest c_jj),

where F(0) = 0. The largest over all s and n_t is a bound. Each of the two cases has its own multipliers B and
Z. In the second case all loadings together have at most K = sum_t k_t - 1 variables. So Tr(PA) is also at
most the sum of the r largest eigenvalues of A on K variables, which a tree bounds.

They are chosen with the largest eigenvalues of C on a few supports in the place of F. Searches add supports
on which C is larger (cutting planes; alternating directions, Boyd et al. 2011). A tree then bounds F.
"""

from __future__ import annotations

import numpy as np

from .._limits import (
    JOINT_CHECK,
    JOINT_EFFORT,
    JOINT_ENTERING,
    JOINT_FREE_ROUNDS,
    JOINT_ITERATIONS,
    JOINT_NODES,
    JOINT_ROUNDS,
    JOINT_STALL,
    JOINT_STEP,
    JOINT_TREE,
    JOINT_UNION,
)
from .._records import record
from .._types import Array, Index
from ..linalg.scaling import EPS, descending, largest_magnitude
from ..objectives.eigenvalue_sum import LeadingSum
from ..supports.admissible import Supports
from ..supports.tree import Tree
from .matrix_search import Search, best_supports
from .solution import ProgressClock, Report

Matrix = Array


@record
class _Multipliers:
    """B and Z of a bound, and its `cost`: all parts of the bound except those with F."""

    B: Matrix
    Z: Matrix
    cost: float


def most_together(levels: Matrix, own: Matrix, sizes: tuple[int, ...], least: int = 0) -> float:
    """Return the largest sum_t levels[k_t - n_t] + (the s >= least largest `own`) with sum_t n_t >= 2s.

    Levels must not fall.
    """
    best = np.zeros(1)  # by sum_t n_t
    for k in sizes:
        new = np.full(len(best) + k, -np.inf)
        for n in range(k + 1):
            np.maximum(new[n : n + len(best)], best + levels[k - n], out=new[n : n + len(best)])
        best = new
    shared = np.append(0.0, np.cumsum(np.maximum(np.sort(own)[::-1], 0)))
    return float((best + shared[np.minimum(np.arange(len(best)) // 2, len(own))])[2 * least :].max())


def relaxed_bound(
    A: Matrix, sizes: tuple[int, ...], constraint: str | None, hook: Report | None = None
) -> float:
    """Return the bound by multipliers and search; if the hook returns true, by the multipliers known then."""
    scale = largest_magnitude(A)
    if scale == 0:
        return 0.0
    A, clock = np.ascontiguousarray(A) / scale, ProgressClock(hook)
    bound = _Ascent(A, sizes, constraint or "orthogonal", clock).bound(0.0)
    if constraint is None and len(sizes) > 1:  # a single loading shares no variable
        shared = _Ascent(A, sizes, None, clock).bound(bound)
        if shared > bound * (1 + JOINT_STALL):
            shared = _of_union(A, sizes, (bound, shared), clock)
        bound = max(bound, shared)
    return scale * bound


def _of_union(A: Matrix, sizes: tuple[int, ...], between: tuple[float, float], stop: Report) -> float:
    """Return a bound for loadings that share a variable, by the number of variables that they use together.

    It is at least the first of two numbers, and at most the second.
    """
    p, r = len(A), len(sizes)
    least, known = between
    tree = Tree(LeadingSum(A, Supports.any_of(p).within(min(sum(sizes) - 1, p)), r), np.zeros(p, bool), 0.0)
    tree.value = tree.pruning_level = max(least, tree.value)
    tree.run(JOINT_EFFORT // p**3, lambda done: stop(done) or tree.value >= known, JOINT_UNION)
    return min(known, tree.upper() + 8 * EPS * p * float(np.trace(A)))


def _rounding(A: Matrix, found: _Multipliers, sizes: tuple[int, ...]) -> float:
    """Return by how much rounding may have lowered a bound of A, whose entries are at most 1.

    With u = EPS: an entry of B = FF' is off by p u max|B|, so v'Bv by k p u max|B| for k nonzeros, and
    likewise with Z. An eigenvalue of M, of order m, is off by a few times u m ||M||: for C on k variables by
    at most k^2 u max|C|, and for r of A - B by r p u ||A - B||_F. F is off by k^2 u, and the eigenvalues of X
    and the sums by p u of themselves. Together that is (k + 1) p u times the cost, since a variable, and so
    F, reaches 1.
    """
    C = found.B - found.Z
    size = found.cost + float(found.B.max() + np.abs(C).max())
    rest = len(sizes) * float(np.linalg.norm(A - found.B))
    return 8 * EPS * len(A) * (size * sum(k + 1 for k in sizes) + rest)


def _searched(C: Matrix, m: int, support: Index, stop: Report) -> tuple[float, Index]:
    """Return a bound on x'Cx for unit x with at most m nonzeros, by a small tree; and a good support."""
    search = Search(C, m, support)
    search.run(min(JOINT_NODES, int(JOINT_TREE / len(C) ** 2)), stop, 64)
    return search.upper(), np.sort(search.index)


def _supports(C: Matrix, m: int) -> Index:
    """Return supports of m variables on which C is large."""
    if m == len(C):
        return np.arange(m)[None]
    C = np.ascontiguousarray(C)
    found = [best_supports(C, m, JOINT_CHECK, JOINT_STALL, swaps, None) for swaps in (0.0, np.inf)]
    return np.concatenate([x.supports for x in found if x is not None] or [np.arange(m)[None]])


def _values(C: Matrix, supports: Index) -> Matrix:
    """Return the largest eigenvalue of C on each support."""
    return np.linalg.eigvalsh(C[supports[:, :, None], supports[:, None, :]])[:, -1].astype(np.float64)


# ---- the multipliers ---------------------------------------------------------------------------------


class _Pool:
    """Supports, and the multiplier U of C on each of them (scaled, as in alternating directions).

    Supports smaller than the largest are filled up with a variable p that has no entries.
    """

    def __init__(self, p: int, most: int):
        self.p, self.most = p, most
        self.supports, self.sizes = np.zeros((0, most), np.intp), np.zeros(0, np.intp)
        self.U = np.zeros((0, most, most))

    def add(self, supports: Index) -> None:
        """Add supports of one size, if they are new."""
        m = supports.shape[1]
        filled = np.pad(supports, ((0, 0), (0, self.most - m)), constant_values=self.p)
        known = {tuple(x) for x in self.supports[self.sizes == m].tolist()}
        new = filled[[tuple(x) not in known for x in filled.tolist()]]
        self.supports = np.concatenate([self.supports, new])
        self.sizes = np.append(self.sizes, np.full(len(new), m))
        self.U = np.concatenate([self.U, np.zeros((len(new), self.most, self.most))])

    def add_near(self, C: Matrix, support: Index) -> None:
        """Add a support, and the best ones that differ from it by one variable."""
        m, others = len(support), np.delete(np.arange(self.p), support)
        near = np.tile(support, (m * len(others), 1))
        near[np.arange(len(near)), np.repeat(np.arange(m), len(others))] = np.tile(others, m)
        near = np.sort(near, axis=1)
        order = descending(_values(C, near))[:JOINT_ENTERING]
        self.add(np.concatenate([support[None], near[order]]))

    def of(self, C: Matrix) -> Matrix:
        """Return C on each support."""
        return np.pad(C, (0, 1))[self.supports[:, :, None], self.supports[:, None, :]]

    def best(self, C: Matrix) -> tuple[Matrix, list[Index]]:
        """Return the largest eigenvalue of C on a support of each size, and these supports."""
        values, levels = np.linalg.eigvalsh(self.of(C))[:, -1], np.zeros(self.most + 1)
        where = [np.zeros(0, np.intp)] * (self.most + 1)
        for m in np.unique(self.sizes):
            at = np.flatnonzero(self.sizes == m)[np.argmax(values[self.sizes == m])]
            levels[m], where[m] = values[at], self.supports[at, :m]
        return levels, where

    def decompose(self, C: Matrix) -> Matrix:
        """Return the eigenvalues of C - U on each support, ascending."""
        self.before = self.of(C)
        self.values, self.E = np.linalg.eigh(self.before - self.U)
        return self.values

    def lower(self, levels: Matrix) -> tuple[Matrix, Matrix]:
        """Lower eigenvalues above the level of their size to it, and return the sums of these parts.

        The sums are of W + U for each entry of C, where W is the part after the step; the counts say how many
        parts have it.
        """
        E, size = self.E, self.p + 1
        W = (E * np.minimum(self.values, levels[self.sizes, None])[:, None, :]) @ E.swapaxes(1, 2)
        self.W = _beyond(W, self.before)
        places = (self.supports[:, :, None] * size + self.supports[:, None, :]).ravel()
        sums = np.bincount(places, (self.W + self.U).ravel(), size * size).astype(np.float64)
        counts = np.bincount(places, minlength=size * size).astype(np.float64)
        return sums.reshape(size, size)[:-1, :-1], counts.reshape(size, size)[:-1, :-1]

    def follow(self, C: Matrix) -> float:
        """Update U by the difference between C and its parts; return the sum of its squares."""
        left = self.W - self.of(C)
        self.U += left
        return float((left**2).sum())


class _Ascent:
    """Alternating directions for B, Z and C = B - Z with nearly the least bound.

    Under a constraint B = A, and the parts are C on supports of the given sizes. Z costs tr(WZ). W is I or,
    for uncorrelated components, F A^-1 on the large eigenvalues, because other directions gain less than they
    cost.

    Without a constraint A - B, B, Z, the diagonal of C and C on the supports are parts. alpha + beta m is at
    least the largest eigenvalue of C on supports of m variables. Together these levels and the diagonal of C
    make

        r alpha + beta sum_t k_t + sum_j (c_jj - 2 beta)+.
    """

    def __init__(self, A: Matrix, sizes: tuple[int, ...], constraint: str | None, stop: Report):
        self.A, self.sizes, self.apart, self.stop, most = A, sizes, constraint is not None, stop, max(sizes)
        self.C, self.Z, self.tau, self.W = A.copy(), np.zeros_like(A), 1.0, np.eye(len(A))
        self.H: Matrix | None = None
        self.UZ, self.UB, self.UA = np.zeros_like(A), np.zeros_like(A), np.zeros_like(A)
        self.Ud = np.zeros(len(A))
        self.counted = sorted(set(sizes)) if self.apart else list(range(1, most + 1))
        self.pool, self.levels = _Pool(len(A), most), np.full(most + 1, -np.inf)
        self.best, self.most = _Multipliers(A, self.Z, np.inf), np.inf
        self.look(A, self.Z)
        if constraint == "uncorrelated":
            self.set_prices(_searched(A, most, self.pool.best(A)[1][most], stop)[0])
        self.tau = 10 * len(sizes) / self.most

    def set_prices(self, F: float) -> None:
        """Set W for uncorrelated components, none of which has more variance than F."""
        values, E = np.linalg.eigh(self.A)
        least = F / (2 * len(self.sizes))
        self.W = (E * (F / np.maximum(values, least))) @ E.T
        large = values > least
        self.F, root = F, np.sqrt(values[large])
        self.H, self.root = E[:, large] * root, E[:, large] / root

    def priced(self, B: Matrix, Z: Matrix) -> _Multipliers:
        """Return the multipliers with their cost; for uncorrelated components with Z = HXH', X >= 0."""
        r = len(self.sizes)
        if self.H is not None:
            values, E = np.linalg.eigh(self.root.T @ Z @ self.root)
            Z = recomposed(self.H @ E, values)
            cost = self.F * float(np.maximum(values, 0)[-r:].sum())
        else:
            cost = float(np.trace(Z))
        if not self.apart:
            cost += float(np.linalg.eigvalsh(self.A - B)[-r:].sum())
        return _Multipliers(B, Z, cost)

    def bound(self, enough: float) -> float:
        """Return the bound that the best multipliers give, with F by trees.

        The supports that the trees find are added, and the multipliers are chosen again, until the bound is
        at most `enough` or improves little.
        """
        bound = np.inf
        steps = int(min(JOINT_ITERATIONS, max(1, JOINT_EFFORT / len(self.A) ** 3)))
        for n_rounds in range(JOINT_ROUNDS if self.apart else JOINT_FREE_ROUNDS):
            self.descend(max(1, steps // 3) if n_rounds else steps, enough)
            C, before = self.best.B - self.best.Z, self.most
            levels, where = self.pool.best(C)
            for m in self.counted:
                levels[m], support = _searched(C, m, where[m], self.stop)
                self.pool.add_near(C, support)
            new = self.value(self.best, levels) + _rounding(self.A, self.best, self.sizes)
            self.most = np.inf
            self.look(self.best.B, self.best.Z)
            stalled = not new < bound * (1 - JOINT_STALL) and self.most <= before * (1 + JOINT_STALL)
            if stalled or new <= enough or self.stop(0):
                return min(new, bound)
            bound = min(new, bound)
        return bound

    def value(self, found: _Multipliers, levels: Matrix) -> float:
        """Return the bound with `levels` F(0), .., F(the largest size), which are made not to fall."""
        levels = np.maximum.accumulate(np.maximum(levels, 0))
        if self.apart:
            return found.cost + float(levels[list(self.sizes)].sum())
        return found.cost + most_together(levels, (found.B - found.Z).diagonal(), self.sizes, 1)

    def look(self, B: Matrix, Z: Matrix) -> None:
        """Add supports on which C is large, and keep the multipliers if they give the least bound so far."""
        found = self.priced(B, Z)
        C = B - found.Z
        for m in self.counted:
            supports = np.sort(_supports(C, m), axis=1)
            self.pool.add(supports[_values(C, supports) > self.levels[m]])
        value = self.value(found, self.pool.best(C)[0])
        if value < self.most:
            self.best, self.most = found, value

    def descend(self, steps: int, enough: float) -> None:
        """Iterate while that lowers the bound, and it is above `enough`."""
        least, stalled = self.most, 0
        for step in range(1, steps + 1):
            if self.stop(step):
                return
            B, Z, primal, dual = self.step()
            if step % JOINT_CHECK and step < steps:
                continue
            self.look(B, Z)
            stalled = 0 if self.most < least * (1 - JOINT_STALL) else stalled + 1
            least = min(least, self.most)
            if stalled >= 4 or self.most <= enough:
                return
            factor = 1.5 if primal > 3 * dual else 1 / 1.5 if dual > 3 * primal else 1.0
            self.tau *= factor
            for scaled in (self.UZ, self.UB, self.UA, self.Ud, self.pool.U):
                scaled /= factor

    def step(self) -> tuple[Matrix, Matrix, float, float]:
        """Return B and Z after one iteration, how far the parts disagree, and how far they moved."""
        # Each part by itself: Z, the diagonal of C, and C on the supports
        A, p = self.A, len(self.A)
        Z = _positive(self.Z - self.UZ - self.W / self.tau)
        diagonal, total = self.C.diagonal(), self.Z + self.C
        own = _beyond(self.set_levels(self.pool.decompose(self.C), diagonal - self.Ud), diagonal)
        sums, counts = self.pool.lower(np.maximum(self.levels, 0))
        z, before = _beyond(Z, self.Z) + self.UZ, (self.C, self.Z)
        # The Z and C that agree best with all parts
        if self.apart:
            B, primal = A, 0.0
            self.C = (A - z + sums) / (1 + counts)
            self.Z = A - self.C
        else:
            sums[np.diag_indices(p)] += own + self.Ud
            counts[np.diag_indices(p)] += 1
            rest = A - total - self.UA
            values, E = np.linalg.eigh(rest)
            rest -= recomposed(E, in_fantope(self.tau * values, len(self.sizes)) / self.tau)
            B = _positive(total - self.UB)
            a, b = _beyond(A - rest, total) - self.UA, _beyond(B, total) + self.UB  # both are to be Z + C
            one, two = a + z + b, a + b + sums
            self.Z = ((2 + counts) * one - 2 * two) / (2 + 3 * counts)
            self.C = (3 * two - 2 * one) / (2 + 3 * counts)
            self.UA, self.UB = self.Z + self.C - a, b - self.Z - self.C
            self.Ud += own - self.C.diagonal()
            primal = float(((A - rest - self.Z - self.C) ** 2).sum() + ((B - self.Z - self.C) ** 2).sum())
        # What is left between the parts, and the step
        self.UZ = z - self.Z
        primal += float(((Z - self.Z) ** 2).sum()) + self.pool.follow(self.C)
        dual = ((1 + counts) * (self.C - before[0]) ** 2).sum() + ((self.Z - before[1]) ** 2).sum()
        return B, Z, float(np.sqrt(primal)), float(np.sqrt(dual))

    def set_levels(self, values: Matrix, own: Matrix) -> Matrix:
        """Set the best levels for the parts as they are, and return the diagonal of C with them."""
        m, tau, r = self.pool.sizes, self.tau, len(self.sizes)
        values = values[:, -r:]  # more are seldom above the level
        if self.apart:
            for size in self.counted:
                self.levels[size] = _level(values[m == size], self.sizes.count(size) / tau)
            return own
        m, values = np.repeat(m, values.shape[1]), values.ravel()
        low, beta = 0.0, float(max(values.max(), own.max(), 0))
        for _ in range(20):  # bisection for the minimum of a convex function of beta
            middle = (low + beta) / 2
            alpha = max(_level(values - middle * m, r / tau), 0.0)
            over = (m * np.maximum(values - alpha - middle * m, 0)).sum()
            charged = max(np.clip(tau * (own - 2 * middle), 0, 1).sum(), 1.0)
            slope = sum(self.sizes) - tau * over - 2 * charged
            low, beta = (low, middle) if slope > 0 else (middle, beta)
        alpha = max(_level(values - beta * m, r / tau), 0.0)
        self.levels = alpha + beta * np.arange(len(self.levels))
        return own - _shares(tau * (own - 2 * beta)) / tau


def _beyond(new: Matrix, old: Matrix) -> Matrix:
    """Return a step that is longer than from old to new (over-relaxation, Eckstein & Bertsekas 1992)."""
    return old + JOINT_STEP * (new - old)


def _level(values: Matrix, total: float) -> float:
    """Return the level that the values exceed by this total together."""
    ordered = np.sort(values, axis=None)[::-1]
    levels = (np.cumsum(ordered) - total) / np.arange(1, ordered.size + 1)
    return float(levels[np.flatnonzero(ordered > levels)[-1]])


def _shares(values: Matrix) -> Matrix:
    """Return the nearest numbers in [0, 1] with a sum of at least 1."""
    shares = np.clip(values, 0, 1)
    return shares if shares.sum() >= 1 else in_fantope(values, 1)


def _positive(M: Matrix) -> Matrix:
    """Return the nearest semidefinite matrix."""
    values, E = np.linalg.eigh(M)
    return recomposed(E, values)


def recomposed(E: Matrix, values: Matrix) -> Matrix:
    """Return E diag(values) E', symmetric to the last bit, with values below 0 taken as 0."""
    used = values > 0
    F = E[:, used] * np.sqrt(values[used])
    return F @ F.T


def in_fantope(values: Matrix, r: int) -> Matrix:
    """Return the nearest numbers in [0, 1] with the sum r."""
    low, high = float(values.min()) - 1, float(values.max())
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if np.clip(values - middle, 0, 1).sum() > r else (low, middle)
    return np.clip(values - (low + high) / 2, 0, 1)
