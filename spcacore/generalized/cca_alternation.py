"""Canonical pairs, one after another: each side in turn is the best for the other.

A pair maximizes u'Cv over `u'B_x u = v'B_y v = 1` and the cardinalities, where B is the covariance of a side
plus a ridge. This is the pencil ([0 C; C' 0], [B_x 0; 0 B_y]).

* For a given v, the best u belongs to the pencil (gg', B_x) with g = Cv, of rank one. Its support is searched
  for as in eigen.py. Then v likewise for u, and then the values of both on their supports, which are singular
  vectors of W_x'CW_y with W'BW = I. Turns go on while the value rises: by forward search from every start,
  and with swaps too from the best three of them.
* With few variables, the supports of both sides also grow together in the large pencil, from the best pairs
  of variables, and are swapped; or all supports are tried.
* Further pairs are those of C deflated in the metrics, see `CrossCovariance`; generalized deflation takes zz'
  from the metrics, too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import field, replace
from itertools import combinations, product

import numpy as np
from scipy.linalg import block_diag

from .. import _core
from .._limits import (
    CCA_CHOICE_TURNS,
    CCA_LEFT,
    CCA_PAIRS,
    CCA_REFINED_STARTS,
    CCA_START_WORK,
    CCA_STARTS,
    CERTIFIED_NODES,
    PAIR_WORK,
    PENCIL_BACKWARD_ORDER,
    PENCIL_ENUMERATED,
    PENCIL_LEFT,
    PENCIL_START_WORK,
    RISE,
    TIE,
)
from .._records import record
from .._types import Array, Index
from ..linalg.eigen import whitening
from ..linalg.orthogonal import orthogonal_part
from ..linalg.scaling import descending, divisor, roots, with_entries
from ..objectives.ratio import Regression
from ..operators.deflation import DEFLATIONS, PROJECTION, Deflation
from ..operators.gram import KeptRows
from ..solvers.refitting import Step
from ..solvers.solution import ProgressHook, Report, Solution, ended
from ..supports.admissible import Supports, Units
from ..supports.search import forward, forward_ways, swap
from .canonical_sides import (
    CrossCovariance,
    Pair,
    Side,
    leading_singular_vector,
    max_abs_per_column,
)
from .eigen import best_pairs, ratio_of
from .pencil import Form, Pencil, bounds_of, common_dtype


@record
class Alternation:
    """Finds one pair after another, by the best support of one side given the other.

    `pencil` has the metric of each side, with units in which its diagonal is near 1; C is in the same units.
    """

    x: Side
    y: Side
    most: tuple[int, int]  # cardinality of each side: variables, or groups
    ridges: tuple[float, float]
    max_iter: int
    tol: float
    deflation: Deflation = PROJECTION
    certify: bool = False

    def __post_init__(self) -> None:
        sides = self.x, self.y
        metric = [s.metric(ridge) for s, ridge in zip(sides, self.ridges, strict=True)]
        self.empty: bool = any(not (form.diagonal() > 0).any() for form in metric)
        if self.empty:
            return
        dtype = common_dtype(self.x, self.y)
        self.pencil: list[Pencil] = [
            Pencil(Form.of_rows(np.zeros((1, B.p))), B, dtype=dtype, advice="use ridge") for B in metric
        ]
        x, y = self.pencil
        self.cross: CrossCovariance = CrossCovariance(self.x, self.y, (x.unit, y.unit))
        self.supports: list[Supports] = [s.supports.within(k) for s, k in zip(sides, self.most, strict=True)]
        self._renew_rows()
        self.first: float = 0.0
        self.noise: float = PENCIL_LEFT.of(dtype)

    def _renew_rows(self) -> None:
        """Keep the rows of the metrics as they are now, and none of those before a deflation."""
        self.rows: list[KeptRows] = [
            KeptRows(lambda S, B=one.B: (B.rows(S),), one.p)  # type: ignore[misc]
            for one in self.pencil
        ]

    @property
    def counts(self) -> tuple[int, int]:
        """How many variables each side may have."""
        kx, ky = (min(s.room, len(one.active)) for s, one in zip(self.supports, self.pencil, strict=True))
        return kx, ky

    def bounds(self, nodes: int = CERTIFIED_NODES, hook: ProgressHook | None = None) -> dict[str, float]:
        """Return upper bounds on the strength of the next pair, by name."""
        if self.empty:
            return {"spectral": 0.0}
        counts, parts = self.counts, (len(self.pencil[0].active), *self.counts)
        bounds = bounds_of(*self._matrices(), sum(counts), 1.0, nodes, hook, parts=parts)
        return {name: min(value, 1.0) for name, value in bounds.items()}

    def _matrices(self) -> tuple[Array, Array]:
        """Return [0 C; C' 0] and [B_x 0; 0 B_y] between the active variables, in the units of the pencils."""
        x, y = self.pencil
        C = self.cross.matvec(np.eye(self.cross.y.p)[:, y.active])[x.active]
        B = block_diag(x.B.block(x.active), y.B.block(y.active))
        A = np.zeros_like(B)
        A[: len(C), len(C) :], A[len(C) :, : len(C)] = C, C.T
        return A, B

    def next(self, progress: ProgressHook | None) -> Pair | None:
        """Return the next pair, and remove it from C; None if nothing is left."""
        if self.empty:
            return None
        # Turns from each start, then with swaps from the best
        starts = self._starts()
        rough, n_iter = self._runs(starts, False, progress)
        order = sorted(rough, key=lambda i: -rough[i].strength)
        fine: dict[int, Pair] = {}
        if not ended(progress):
            fine, more = self._runs([starts[i] for i in order[:CCA_REFINED_STARTS]], True, progress)
            n_iter += more
        best: Pair | None = None
        for pair in (*fine.values(), *rough.values()):
            best = _better(best, pair)
        if best is None or not best.strength > self.noise * self.first:
            return None
        # Both supports together
        for pair in self._together(progress):
            best = _better(best, pair)
        self.first = max(self.first, best.strength)
        # Its bound, its removal, and the pair in the caller's units
        if self.certify:
            best = replace(best, bound=max(best.strength, min(self.bounds().values())))
        self.cross.remove(self._removed(0, best.u), self._removed(1, best.v), self.deflation.update)
        u, v = (w * pencil.unit for w, pencil in zip((best.u, best.v), self.pencil, strict=True))
        return self.cross.measured(replace(best, u=u, v=v), n_iter)

    def _together(self, progress: ProgressHook | None) -> Iterator[Pair]:
        """Yield pairs whose supports grow together from pairs of variables, or the best of all supports."""
        counts, (x, y) = self.counts, self.pencil
        p, q, n = len(x.active), len(y.active), float(self.cross.x.n)
        plain = not any(one.shapes for one in self.supports) and x.B is x.B0 and y.B is y.B0
        if not plain or n * p * q > PAIR_WORK or p + q > PENCIL_BACKWARD_ORDER or ended(progress):
            return
        A, B = self._matrices()
        if not A.any():
            return
        # The pencil of both sides, and how many variables each side has room for
        part = np.repeat([0, 1], [p, q])
        both = Pencil(Form.of(A), Form.of(B), dtype=x.dtype, advice=x.advice)
        supports = replace(_TwoParts.any_of(p + q, sum(counts)), counts=counts, part=part)
        objective = ratio_of(both, supports)
        # All supports, if these are few; else those that grow from the best pairs
        affordable = int(PENCIL_START_WORK / (4 / 3 * sum(counts) ** 3 * (p + q)))
        found: Iterator[Units]
        if math.comb(p, counts[0]) * math.comb(q, counts[1]) <= PENCIL_ENUMERATED:
            sides = combinations(range(p), counts[0]), combinations(range(p, p + q), counts[1])
            sets = [objective.supports.mask(np.array(S + T)) for S, T in product(*sides)]
            found = iter([sets[int(np.argmax(objective.most(sets)))]])
        else:
            pairs = best_pairs(both, min(CCA_PAIRS, affordable), part)
            grown = (forward(objective, objective.supports.mask(pair)) for pair in pairs)
            found = (swap(objective, units)[1] for units in grown)
        for units in found:
            S = np.flatnonzero(units)
            yield Pair(*self._on_both(x.active[S[p > S]], y.active[S[p <= S] - p], np.zeros(y.p)), 1, True)
            if ended(progress):
                return

    def _removed(self, side: int, w: Array) -> tuple[Array, Array]:
        """Deflate the metric of a side; return the direction that was removed and B times it.

        Both are zero if the vector adds no direction to the earlier ones.
        """
        index = np.flatnonzero(w)
        found = self.pencil[side].remove(Solution(index, w[index], 0.0), self.deflation)
        self._renew_rows()
        return found or (np.zeros_like(w), np.zeros_like(w))

    def _runs(
        self, starts: list[Array], swaps: bool, progress: ProgressHook | None
    ) -> tuple[dict[int, Pair], int]:
        """Return where each start leads, by its position, and the number of all turns.

        A start that meets supports which an earlier start has met leads nowhere.
        """
        pairs, n_iter, seen = dict[int, Pair](), 0, set[bytes]()
        for i, start in enumerate(starts):
            pair, turns = self._alternate(start, swaps, seen, progress)
            n_iter += turns
            if pair is not None:
                pairs[i] = pair
            if pairs and ended(progress):
                break
        return pairs, n_iter

    def _starts(self) -> list[Array]:
        """Return vectors of Y to begin with: the leading singular vector, truncated, and single variables.

        The single variables are those with the largest correlations with a variable of X.
        """
        spread = [roots(pencil.G_diagonal) for pencil in self.pencil]
        starts = pair_starts(self.cross, [np.where(s > 0, 1 / divisor(s), 0) for s in spread], 1)
        for v in starts[:1]:
            v[np.delete(np.arange(len(v)), self.supports[1].truncated(v, self.supports[1].room))] = 0
        return self.cross.turned(starts)

    def _alternate(
        self, v: Array, swaps: bool, seen: set[bytes], progress: ProgressHook | None
    ) -> tuple[Pair | None, int]:
        """Alternate from v until the value no longer rises; return the pair and the number of turns.

        A turn chooses the support of u for v, of v for u, and then the values of both. None if it meets
        supports in `seen`.
        """
        units: list[Units | None] = [None, None]
        best: Pair | None = None
        n_iter = 0
        for n_iter in range(1, self.max_iter + 1):
            support, w = list[Index](), np.zeros(0)
            for side, pencil in enumerate(self.pencil):
                g = self.cross.transpose_matvec(w) if side == 1 else self.cross.matvec(v)
                units[side] = chosen = self._support(side, g, units[side], swaps)
                if chosen is None:
                    return best, n_iter
                S = np.intersect1d(self.supports[side].index(chosen), pencil.active)
                w = with_entries(pencil.p, S, self._values(side, S, g[S]))
                support.append(S)
            u, v, strength = self._on_both(support[0], support[1], w)
            enough = progress is not None and progress(n_iter)
            if best is not None and strength <= best.strength * (1 + self.tol):
                return replace(best, n_iter=n_iter, converged=True), n_iter
            key = b"".join(S.tobytes() for S in support)
            if key in seen:
                return None, n_iter
            seen.add(key)
            best = Pair(u, v, strength, n_iter, False)
            if enough:
                break
        return best, n_iter

    def _support(self, side: int, g: Array, earlier: Units | None, swaps: bool) -> Units | None:
        """Return the best support of a side for the products g.

        It comes from forward search and from the earlier support, with swaps if `swaps`. None if no support
        has a positive value.
        """
        pencil, supports = self.pencil[side], self.supports[side]
        supports = supports.among(supports.mask(pencil.active))
        if supports.left(supports.allowed) >= 0:
            return supports.allowed if g.any() else None
        objective = Regression(
            self.rows[side], pencil.G_diagonal, g, supports, least=pencil.least,
            fit=None if supports.signs is None else lambda S: self._fit(side, S, g[S]),
        )  # fmt: skip
        found = forward_ways(objective)
        if earlier is not None and not np.array_equal(earlier, found[0]):
            found.append(earlier)
        if swaps:
            found = [swap(objective, units)[1] for units in found]
        best = max(found, key=objective.value)
        return best if objective.value(best) > 0 else None

    def _fit(self, side: int, S: Index, g: Array) -> Array:
        """Return the minimizer of u'Bu - 2 g'u on the support S, with the signs that are asked for."""
        supports, W = self.supports[side], self._whitened(side, S)
        if supports.signs is None:
            return W @ (W.T @ g)
        B = self.pencil[side].B.block(S)
        if W.shape[1] < len(S):  # where B is zero up to rounding, g must be zero too
            R = B @ W
            B, g = R @ R.T, R @ (W.T @ g)
        u = _core.unit_net(supports.on(S).rule(Step.L1), B, g, np.zeros(len(S)))[0]
        size = float(u @ B @ u)
        return u * (float(g @ u) / size) if size > 0 else u  # scaled so that u'Bu = g'u

    def _whitened(self, side: int, S: Index) -> Array:
        """Return W with W'BW = I on a support."""
        mu, U = np.linalg.eigh(self.pencil[side].B.block(S))
        return whitening(mu, U, mu > self.pencil[side].cut(mu[-1]))

    def _values(self, side: int, S: Index, g: Array) -> Array:
        """Return the best values on a support, with u'Bu = 1; zeros if g'u is not positive."""
        u = self._fit(side, S, g)
        return u / math.sqrt(size) if (size := float(g @ u)) > 0 else np.zeros(len(S))

    def _on_both(self, S: Index, T: Index, v: Array) -> tuple[Array, Array, float]:
        """Return the best values on two supports and u'Cv: singular vectors or, with signs, by turns.

        The turns begin from v, and from the singular vector with either sign.
        """
        p, q = (pencil.p for pencil in self.pencil)
        E = np.zeros((q, len(T)))
        E[T, np.arange(len(T))] = 1
        C = self.cross.matvec(E)[S]
        W = self._whitened(0, S), self._whitened(1, T)
        left, value, right = np.linalg.svd(W[0].T @ C @ W[1], full_matrices=False)
        best = W[0] @ left[:, 0], W[1] @ right[0], float(value[0])
        if self.cross.signed:
            starts = v[T], best[1], -best[1]
            best = max((self._alternate_values(S, T, C, start) for start in starts), key=lambda one: one[2])
        return with_entries(p, S, best[0]), with_entries(q, T, best[1]), best[2]

    def _alternate_values(self, S: Index, T: Index, C: Array, v: Array) -> tuple[Array, Array, float]:
        """Return u and v on two supports, each in turn the best for the other, while the value rises."""
        u, most = np.zeros(len(S)), 0.0
        for _ in range(CCA_CHOICE_TURNS):
            new = self._values(0, S, C @ v)
            other = self._values(1, T, C.T @ new)
            value = float(new @ C @ other)
            if not value > most * (1 + RISE):
                break
            u, v, most = new, other, value
        return u, v, most


@record
class _TwoParts(Supports):
    """Supports of variables in two parts, each with a cardinality of its own."""

    counts: tuple[int, int] = (0, 0)
    part: Index = field(default_factory=lambda: np.zeros(0, np.intp))

    def joining(self, units: Units) -> Units:
        full = np.bincount(self.part[units], minlength=2) >= self.counts
        return super().joining(units) & ~full[self.part]


def _better(best: Pair | None, pair: Pair) -> Pair:
    """Return the pair that is stronger, beyond rounding; the first if they tie."""
    return pair if best is None or pair.strength > best.strength * (1 + RISE) else best


# ---- pairs by penalized matrix decomposition (Witten, Tibshirani and Hastie 2009) -----------------------
# The covariance within each side is replaced by the identity. The problem is then to maximize u'Cv over
# `||u|| <= 1`, `||v|| <= 1`, `||u||_1 <= c_x` and `||v||_1 <= c_y`, with C = X'Y/(n - 1). Two steps
# alternate: u <- the soft threshold of Cv at the bound, and v <- that of C'u. They begin from the leading
# singular vector and from variables of Y with large entries of C, and the best result is kept. C is applied
# as X'(Yv). Further pairs are those of `C - sum d uv'`, or of another deflation of C.


@record
class PenalizedDecomposition:
    """Finds one pair after another, by soft thresholds at l1 bounds."""

    x: Side
    y: Side
    bounds: tuple[float, float]
    max_iter: int
    tol: float
    deflation: Deflation = DEFLATIONS["hotelling"]

    def __post_init__(self) -> None:
        self.first: float = 0.0
        self.bases: tuple[list[Array], list[Array]] = ([], [])
        self.cross: CrossCovariance = CrossCovariance(self.x, self.y)
        self.noise: float = CCA_LEFT.of(common_dtype(self.x, self.y))

    def next(self, progress: Report | None, starts: list[Array] | None = None) -> Pair | None:
        """Return the next pair, the best of the runs from all starts, and remove it from C.

        None if nothing is left.
        """
        runs: list[Pair] = []
        for v in self.cross.turned(pair_starts(self.cross) if starts is None else starts):
            runs.append(self._run(v, progress))
            if ended(progress):
                break
        if not runs:
            return None
        best = max(runs, key=lambda pair: pair.strength * (1 + RISE * (pair is runs[0])))
        if not best.strength > self.noise * self.first:
            return None
        self.first = self.first or best.strength
        u, v = self._removed(0, best.u), self._removed(1, best.v)
        self.cross.remove((u, u), (v, v), self.deflation.update)
        return self.cross.measured(best, sum(pair.n_iter for pair in runs))

    def _removed(self, side: int, w: Array) -> Array:
        """Return the unit vector that w is removed by; zero where it adds no direction."""
        if not self.deflation.orthogonalized:
            return w / np.linalg.norm(w)
        q = orthogonal_part(w, self.bases[side])
        if q is None:
            return np.zeros_like(w)
        self.bases[side].append(q)
        return q

    def _run(self, v: Array, progress: Report | None) -> Pair:
        """Alternate soft thresholds from v until the strength no longer rises by more than the tolerance."""
        u, strength, n_iter, converged = np.zeros(self.cross.x.p), 0.0, 0, False
        for n_iter in range(1, self.max_iter + 1):
            u = _l1_bounded(self.cross.matvec(v), self.bounds[0], self.x.supports)
            slope = self.cross.transpose_matvec(u)
            v = _l1_bounded(slope, self.bounds[1], self.y.supports)
            before, strength = strength, float(v @ slope)
            enough = progress is not None and progress(n_iter)
            converged = strength - before <= self.tol * strength
            if converged or enough:
                break
        return Pair(u, v, strength, n_iter, converged)


def pair_starts(cross: CrossCovariance, units: list[Array] | None = None, more: int = 0) -> list[Array]:
    """Return vectors of Y to begin with: the leading right singular vector, and single variables.

    The variables are those with the largest covariances in these units; `more` adds to their number. Empty if
    C is zero; the vector alone where variables take too much work.
    """
    v = leading_singular_vector(cross)
    if v is None:
        return []
    work = float(cross.x.n) * cross.x.p * cross.y.p
    if work > PAIR_WORK:
        return [v]
    count = int(np.clip(more + CCA_START_WORK / work, 1, CCA_STARTS))
    largest = max_abs_per_column(cross, *(units or (np.ones(cross.x.p), np.ones(cross.y.p))))
    unit = largest.max() * TIE.of(common_dtype(cross.x, cross.y))
    order = descending(np.round(largest / unit))[:count]
    return [v, *(np.eye(1, cross.y.p, j)[0] for j in order)]


def _l1_bounded(a: Array, bound: float, choice: Supports) -> Array:
    """Return the unit vector of bounded l1 norm with the largest product with a; 0 if no sign allows one."""
    if choice.shapes:
        a = choice.projected(a)
        if a.any():
            a = choice.rule(Step.L1_BOUND, level=bound).step(np.ascontiguousarray(a), 1.0)[0]
            a /= np.linalg.norm(a)
        return a
    w = np.empty_like(a)
    _core.l1_threshold(np.ascontiguousarray(a), bound, 0, w)
    return w
