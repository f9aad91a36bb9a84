"""Pairs of the generalized eigenproblem of two sides, by the best support for one given the other, in turn.

`max u'Cv` over `u'B_x u = v'B_y v = 1` and the cardinalities, B the covariance of a side and a ridge; this is
the pencil ([0 C; C' 0], [B_x 0; 0 B_y]).  For a given v the best u is that of the pencil (gg', B_x), g = Cv,
of rank one, whose supports are searched as in search.py; then v likewise; then both on their supports, from
the singular vectors of W_x'CW_y with W'BW = I.  Turns go on while that raises the value, by forward search
from every start, and with swaps too from the best three of these.  Of few variables the supports of both
sides also grow together in that pencil, from the best pairs of variables, and are swapped; or all are tried.
Further pairs are those of C deflated in the metrics, see `CrossCovariance`; generalized deflation takes zz'
from the metrics, too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, product

import numpy as np
from scipy.linalg import block_diag

from .._limits import (
    CCA_GENERALIZED_LEFT,
    CCA_PAIRS,
    CCA_REFINED_STARTS,
    CCA_START_WORK,
    CCA_STARTS,
    CERTIFIED_NODES,
    PAIR_WORK,
    PENCIL_BACKWARD_ORDER,
    PENCIL_ENUMERATED,
    PENCIL_START_WORK,
    RISE,
)
from ..operators.deflation import PROJECTION, Deflation
from ..solvers.solution import ProgressHook, ended
from .cca_choice import Chosen, best_values
from .form import Array, Form, Index
from .pencil import Pencil, Solution
from .ratio_bounds import pair_bounds
from .search import best_of_all, best_pairs, forward_search, swap_search
from .sides import CrossCovariance, Pair, Side, common_dtype, leading_singular_vector, max_abs_per_column

__all__ = ["Alternation"]
__dir__ = __all__.copy


class Alternation:
    """Pairs one after another, by the best supports for one side given the other, in turn."""

    def __init__(
        self,
        x: Side,
        y: Side,
        counts: tuple[int, int],
        ridges: tuple[float, float],
        max_iter: int,
        tol: float,
        deflation: Deflation = PROJECTION,
        certify: bool = False,
    ):
        self.certify = certify
        self.cross, self.max_iter, self.tol = CrossCovariance(x, y), max_iter, tol
        self.deflation = deflation
        nothing = [Form.of(factor=np.zeros((1, s.p))) for s in (x, y)]
        self.metric = [s.metric(ridge) for s, ridge in zip((x, y), ridges, strict=True)]
        self.empty = any(not (form.diagonal() > 0).any() for form in self.metric)
        if self.empty:
            return
        dtype = common_dtype(x, y)
        self.pencil = [
            Pencil(A, B, dtype=dtype, advice="use ridge") for A, B in zip(nothing, self.metric, strict=True)
        ]
        supports = [s.supports for s in (x, y)]
        most = [one.most_variables(k) for k, one in zip(counts, supports, strict=True)]
        self.counts = [min(k, len(pencil.active)) for k, pencil in zip(most, self.pencil, strict=True)]
        self.chosen = [Chosen(*one) for one in zip(self.pencil, supports, counts, strict=True)]
        self.shaped = any(one.shapes for one in supports)
        self.signed = any(one.signs is not None for one in supports)
        self.first = 0.0
        self.noise = CCA_GENERALIZED_LEFT.of(dtype)

    def bounds(self, nodes: int = CERTIFIED_NODES) -> dict[str, float]:
        """On the strength of the next pair, by name."""
        if self.empty:
            return {"spectral": 0.0}
        C, *metrics = self._matrices()
        return pair_bounds(C, (metrics[0], metrics[1]), (self.counts[0], self.counts[1]), nodes)

    def _matrices(self) -> tuple[Array, Array, Array]:
        """C, B_x and B_y of the active variables, in units of the pencils."""
        x, y = self.pencil
        C = self.cross.matvec(np.eye(self.cross.y.p)[:, y.active])
        C = C[x.active] * x.unit[x.active, None] * y.unit[y.active]
        return C, x.B.block(x.active), y.B.block(y.active)

    def next(self, progress: ProgressHook | None) -> Pair | None:
        if self.empty:
            return None
        starts = self._starts()
        rough, n_iter = self._from(starts, False, progress)
        order = sorted(rough, key=lambda i: -rough[i].strength)
        fine: dict[int, Pair] = {}
        if not ended(progress):
            fine, more = self._from([starts[i] for i in order[:CCA_REFINED_STARTS]], True, progress)
            n_iter += more
        best: Pair | None = None
        for pair in (*fine.values(), *rough.values()):
            best = _better(best, pair)
        if best is None or not best.strength > self.noise * self.first:
            return None
        for pair in self._together(progress):
            best = _better(best, pair)
        self.first = max(self.first, best.strength)
        best = best.with_sign(self.cross.x, self.cross.y)
        if self.certify:
            best = replace(best, bound=max(best.strength, min(self.bounds().values())))
        removed = [self._removed(side, w) for side, w in ((0, best.u), (1, best.v))]
        if all(z.any() for _, z in removed) or self.deflation.update == "projection":
            self.cross.remove(removed[0], removed[1], self.deflation.update)
        return replace(best, n_iter=n_iter)

    def _together(self, progress: ProgressHook | None) -> Iterator[Pair]:
        """Pairs whose supports grow together, from pairs of variables, with swaps; or the best of all."""
        counts, (x, y) = (self.counts[0], self.counts[1]), self.pencil
        p, q, n = len(x.active), len(y.active), float(self.cross.x.n)
        plain = not self.shaped and x.B is x.B0 and y.B is y.B0
        if not plain or n * p * q > PAIR_WORK or p + q > PENCIL_BACKWARD_ORDER or ended(progress):
            return
        C, B_x, B_y = self._matrices()
        if not C.any():
            return
        part = np.repeat([0, 1], [p, q])
        A, B = np.block([[np.zeros((p, p)), C], [C.T, np.zeros((q, q))]]), block_diag(B_x, B_y)
        both = Pencil(Form.of(A), Form.of(B), dtype=x.dtype, advice=x.advice)
        if math.comb(p, counts[0]) * math.comb(q, counts[1]) <= PENCIL_ENUMERATED:
            sides = combinations(range(p), counts[0]), combinations(range(p, p + q), counts[1])
            best = best_of_all(both, (S + T for S, T in product(*sides)))
            if best is not None:
                yield self._of_supports(x.active[best[best < p]], y.active[best[best >= p] - p])
                return
        starts = int(PENCIL_START_WORK / (4 / 3 * sum(counts) ** 3 * (p + q)))
        for pair in best_pairs(both, min(CCA_PAIRS, starts), part):
            found = forward_search(both, sum(counts), None, pair, (part, counts))
            S = swap_search(both, found, None, part=part).index
            yield self._of_supports(x.active[S[p > S]], y.active[S[p <= S] - p])
            if ended(progress):
                return

    def _of_supports(self, S: Index, T: Index) -> Pair:
        x, y = (Solution(index, np.zeros(len(index)), 0.0, 0, True) for index in (S, T))
        return Pair(*self._both(x, y), 1, True)

    def _removed(self, side: int, w: Array) -> tuple[Array, Array]:
        """The direction that a vector is removed by, and B times it; zero where it adds none."""
        pencil, index = self.pencil[side], np.flatnonzero(w)
        known = len(pencil.basis)
        pencil.remove(Solution(index, w[index] / pencil.unit[index], 0.0, 0, True), self.deflation)
        if len(pencil.basis) == known:
            return np.zeros_like(w), np.zeros_like(w)
        q, z = pencil.basis[-1]
        return q * pencil.unit, np.divide(z, pencil.unit, out=np.zeros_like(w), where=pencil.unit > 0)

    def _from(
        self, starts: list[Array], swaps: bool, progress: ProgressHook | None
    ) -> tuple[dict[int, Pair], int]:
        """Where each start leads, unless it meets supports that an earlier one has met; and all turns."""
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
        """The leading singular vector, made sparse, and the variables of Y most correlated with one of X."""
        cross = self.cross
        v = leading_singular_vector(cross)
        if v is None:
            return []
        sparse = np.zeros_like(v)
        kept = self.chosen[1].choice.truncated(v, self.chosen[1].count)
        sparse[kept] = v[kept]
        starts = [sparse]
        if float(cross.x.n) * cross.x.p * cross.y.p <= PAIR_WORK:
            spread = [np.sqrt(np.maximum(form.diagonal(), 0)) for form in self.metric]
            inverse = [np.where(s > 0, 1 / np.where(s > 0, s, 1), 0) for s in spread]
            largest = max_abs_per_column(cross, *inverse)
            count = 1 + min(cross.y.p - 1, int(CCA_START_WORK / (float(cross.x.n) * cross.x.p * cross.y.p)))
            for j in np.argsort(-largest, kind="stable")[: min(count, CCA_STARTS)]:
                starts.append(np.eye(1, cross.y.p, j)[0])
        return [s * v for v in starts for s in ((1, -1) if self.signed else (1,))]

    def _alternate(
        self, v: Array, swaps: bool, seen: set[bytes], progress: ProgressHook | None
    ) -> tuple[Pair | None, int]:
        """u for v, v for u, then both on their supports, until that raises nothing; and how many turns."""
        supports: list[Index | None] = [None, None]
        best: Pair | None = None
        n_iter = 0
        for n_iter in range(1, self.max_iter + 1):
            x = self._support(0, self.cross.matvec(v), supports[0], swaps)
            if x is None:
                return best, n_iter
            u = np.zeros(self.cross.x.p)
            u[x.index] = x.value * self.pencil[0].unit[x.index]
            y = self._support(1, self.cross.transpose_matvec(u), supports[1], swaps)
            if y is None:
                return best, n_iter
            supports = [x.index, y.index]
            u, v, strength = self._both(x, y)
            enough = progress is not None and progress(n_iter)
            if best is not None and strength <= best.strength * (1 + self.tol):
                return replace(best, n_iter=n_iter, converged=True), n_iter
            key = x.index.tobytes() + y.index.tobytes()
            if key in seen:
                return None, n_iter
            seen.add(key)
            best = Pair(u, v, strength, n_iter, False)
            if enough:
                break
        return best, n_iter

    def _support(self, side: int, g: Array, earlier: Index | None, swaps: bool) -> Solution | None:
        """The best on the supports that a forward search, and swaps from it and the earlier one, find."""
        pencil, k = self.pencil[side], self.counts[side]
        g = np.where(pencil.unit > 0, g, 0)
        if not g.any():
            return None
        if self.chosen[side].choice.shapes:
            x = self.chosen[side].search(g * pencil.unit, earlier, swaps)
            return x if x.objective > 0 else None
        pencil = pencil.with_numerator(Form.of(factor=g[None]))
        if k == len(pencil.active):
            if side == 0:
                return pencil.leading(pencil.active, 0)
            return Solution(pencil.active, np.zeros(k), 0.0, 0, True)  # its values are not asked for
        found = [forward_search(pencil, k, None)]
        if earlier is not None and not np.array_equal(earlier, found[0].index):
            found.append(pencil.leading(earlier, 0))
        if swaps:
            found = [swap_search(pencil, x, None) for x in found]
        return max(found, key=lambda x: x.objective)

    def _both(self, x: Solution, y: Solution) -> tuple[Array, Array, float]:
        """The best values on two supports."""
        S, T, units = x.index, y.index, [pencil.unit for pencil in self.pencil]
        E = np.zeros((len(units[1]), len(T)))
        E[T, np.arange(len(T))] = units[1][T]
        C = self.cross.matvec(E)[S] * units[0][S, None]
        u, v = np.zeros(len(units[0])), np.zeros(len(units[1]))
        u[S], v[T], strength = best_values(self.chosen, S, T, C, y.value)
        return u * units[0], v * units[1], strength


def _better(best: Pair | None, pair: Pair) -> Pair:
    return pair if best is None or pair.strength > best.strength * (1 + RISE) else best
