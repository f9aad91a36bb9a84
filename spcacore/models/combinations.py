"""Which of many candidate loadings explain most variance together.

Loadings sought in turn keep to what the first of them took. So candidates are gathered, the ends of truncated
power from single variables given some of the loadings, and good combinations of them are sought by exchanging
one or two at a time. With G = V'V and H = V'AV of all candidates V, those numbered T explain
Tr(G_TT^-1 H_TT), and one more adds the variance of its part orthogonal to them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._limits import (
    CANDIDATE_ITERATIONS,
    CANDIDATE_SPAN,
    CANDIDATE_TIES,
    CANDIDATE_TOL,
    CANDIDATE_WORK,
    CANDIDATES,
    COMBINATION_EXCHANGES,
    COMBINATION_STARTS,
    COMBINATIONS,
    PAIRED_CANDIDATES,
)
from .._records import record
from .._types import Array
from ..operators.deflation import DEFLATIONS, DeflatedOperator
from ..operators.problem import Problem
from ..solvers.starts import variance_alone
from .orthogonal_search import Loading

__all__ = ["Candidates"]
__dir__ = __all__.copy


class Candidates:
    """Loadings for places of given cardinalities, each support once."""

    def __init__(self, problem: Problem, sizes: tuple[int, ...]):
        self.problem, self.sizes = problem, sizes
        self.found: dict[bytes, Loading] = {}

    def add(self, loadings: Sequence[Loading]) -> None:
        """Further candidates, of a support that is known the new values."""
        for index, value in loadings:
            if len(self.found) < CANDIDATES or index.tobytes() in self.found:
                self.found[index.tobytes()] = index, value

    def add_ends(self, others: Sequence[Loading], size: int) -> None:
        """Where truncated power ends from single variables, given other loadings."""
        problem, state = self.problem, self._given(others)
        op, promise = state.operator, variance_alone(state)
        count = min(problem.p, int(CANDIDATE_WORK / self._cost(size)))
        if promise is None or count == 0:
            return
        first = np.argsort(-promise, kind="stable")[:count, None]
        index, value, objective, _ = self._running(state).truncated_power_each(
            first, np.ones(first.shape, op.dtype), size, CANDIDATE_ITERATIONS, CANDIDATE_TOL, None, False
        )
        order = _descending(objective)
        order = order[objective[order] > problem.noise(first[:1, 0])]
        self.add([(index[s], value[s]) for s in order])

    def without(self, others: Sequence[Loading], x: Loading, size: int) -> list[tuple[int, float, Loading]]:
        """Each variable of a loading, and the value and loading where it ends if that may not come back."""
        state, (index, value) = self._given(others), x
        if len(index) * self._cost(size) > CANDIDATE_WORK:
            return []
        out = []
        for i in range(len(index)):
            one, rest = (index[i : i + 1], np.ones(1, value.dtype)), np.delete(value, i)
            if not rest.any():
                continue
            running = self._running(state.deflate(*one, lambda _: -1.0))
            status, *new, objective, _ = running.truncated_power(
                np.delete(index, i), rest, size, CANDIDATE_ITERATIONS, CANDIDATE_TOL
            )
            if status >= 0:
                out.append((int(index[i]), objective, (new[0], new[1])))
        self.add([x for _, _, x in out])
        return out

    def _given(self, others: Sequence[Loading]) -> DeflatedOperator:
        state = DeflatedOperator.from_problem(self.problem, DEFLATIONS["generalized"])
        for x in others:
            state = state.deflate(*x, self.problem.noise)
        return state

    def _running(self, state: DeflatedOperator) -> _core.Operator:
        return state.operator.with_quotient() if state.quotient else state.operator

    def _cost(self, size: int) -> int:
        """Of a product with a loading."""
        return self.problem.cost * (size if self.problem.operator.symmetric_form else 1)

    def combinations(self, now: Sequence[Loading]) -> list[list[Loading]]:
        """The best combinations that exchanges lead to, from the loadings of now and from greedy choices."""
        loadings, places = list(self.found.values()), {key: j for j, key in enumerate(self.found)}
        products = _Products.of(self.problem, loadings, self.sizes)
        firsts = _descending(np.diagonal(products.H))[:COMBINATION_STARTS]
        begin = [products.greedy(int(j)) for j in firsts]
        given = [places[index.tobytes()] for index, _ in now if index.tobytes() in places]
        if given and len(given) == len(now) and products.independent(given):
            begin.append(given)
        climbed = [products.climb(start) for start in begin if start]
        ends = {products.in_order(T): value for T, value in climbed}
        known = {frozenset(given)}
        best: list[tuple[int, ...]] = []
        most = max(ends.values(), default=0.0) or 1.0
        for T in sorted(ends, key=lambda T: (-round(ends[T] / most, 9), T)):  # the same set in any order ties
            if frozenset(T) not in known and len(best) < COMBINATIONS:
                known.add(frozenset(T))
                best.append(T)
        return [[loadings[j] for j in T] for T in best]


@record
class _Products:
    """G and H, and which candidates j are sparse enough for which places t."""

    G: Array
    H: Array
    fits: NDArray[np.bool_]

    @classmethod
    def of(cls, problem: Problem, loadings: list[Loading], sizes: tuple[int, ...]) -> _Products:
        from scipy.sparse import csc_array

        op = problem.operator
        ends = np.cumsum([0, *(len(index) for index, _ in loadings)])
        entries = np.concatenate([x for _, x in loadings]).astype(np.float64)
        V = csc_array(
            (entries, np.concatenate([i for i, _ in loadings]), ends), (problem.p, len(loadings))
        )  # fmt: skip
        images = [op.forward(i, np.ascontiguousarray(x, op.dtype)).astype(np.float64) for i, x in loadings]
        if op.symmetric_form:
            H = np.stack([V.T @ image for image in images])
        else:
            U = np.stack(images)
            H = U @ U.T / max(op.n - 1, 1)
        fits = np.diff(ends) <= np.array(sizes)[:, None]
        return cls((V.T @ V).toarray(), (H + H.T) / 2, fits)

    def in_order(self, T: list[int]) -> tuple[int, ...]:
        """The same, those in places of equal cardinality in their order: rounds go from place to place."""
        out = np.array(T)
        for same in np.unique(self.fits, axis=0):
            places = (self.fits == same).all(axis=1)
            out[places] = np.sort(out[places])
        return tuple(out.tolist())

    def independent(self, T: list[int]) -> bool:
        """Whether no loading is nearly in the span of the others."""
        return bool(np.linalg.eigvalsh(self.G[np.ix_(T, T)])[0] > CANDIDATE_SPAN)

    def given(self, T: list[int]) -> _Given:
        """What every candidate adds to those of T."""
        W = np.linalg.inv(np.linalg.cholesky(self.G[np.ix_(T, T)])).T  # V_T W is orthonormal
        GW, HW = self.G[:, T] @ W, self.H[:, T] @ W
        M = HW[T].T @ W
        left = 1 - (GW**2).sum(axis=1)
        variance = np.diagonal(self.H) - 2 * (HW * GW).sum(axis=1) + ((GW @ M) * GW).sum(axis=1)
        return _Given(GW, HW, M, left, variance)

    def greedy(self, first: int) -> list[int] | None:
        """The candidate that adds most, one after another, in the first place that it fits; None if none."""
        T: list[int] = [-1] * len(self.fits)
        T[int(np.argmax(self.fits[:, first]))] = first
        while -1 in T:
            open_places = np.array([j < 0 for j in T])
            gain = self.given([j for j in T if j >= 0]).gain()
            gain[~self.fits[open_places].any(axis=0)] = 0
            j = _largest(gain)
            if not gain[j] > 0:
                return None
            T[int(np.argmax(self.fits[:, j] & open_places))] = j
        return T

    def climb(self, T: list[int]) -> tuple[list[int], float]:
        """The combination where no exchange of one candidate or, as tried, of two explains more; and that."""
        value = float(np.trace(self.given(T).M))
        for _ in range(COMBINATION_EXCHANGES):
            new, more = _best([self._one(T, t) for t in range(len(T))])
            if not more > value * (1 + CANDIDATE_TOL):
                pairs = [self._two(T, s, t) for t in range(len(T)) for s in range(t)]
                new, more = _best([*pairs, (T, value)])
            if not more > value * (1 + CANDIDATE_TOL):
                break
            T, value = new, more
        return T, value

    def _one(self, T: list[int], t: int) -> tuple[list[int], float]:
        """The best candidate in place t."""
        if len(T) == 1:
            variance = np.where(self.fits[0], np.diagonal(self.H), -np.inf)
            return [_largest(variance)], float(variance.max())
        rest = self.given(T[:t] + T[t + 1 :])
        gain = np.where(self.fits[t], rest.gain(), -np.inf)
        j = _largest(gain)
        return [*T[:t], j, *T[t + 1 :]], float(np.trace(rest.M) + gain[j])

    def _two(self, T: list[int], s: int, t: int) -> tuple[list[int], float]:
        """The best candidates in places s and t, one of the two among the best by itself."""
        others = [j for place, j in enumerate(T) if place not in (s, t)]
        if not others:
            return T, -np.inf
        rest = self.given(others)
        alone = rest.gain()
        best = bar = -np.inf
        pair = T[s], T[t]
        for place, partner in ((s, t), (t, s)):
            if place == t and np.array_equal(self.fits[s], self.fits[t]):
                break
            gain = np.where(self.fits[place], alone, -np.inf)
            few = _descending(gain)[:PAIRED_CANDIDATES]
            few = few[gain[few] > 0]
            both = gain[few, None] + np.where(self.fits[partner], rest.after(self, few), -np.inf)
            if both.size and both.max() > bar:
                i, j = divmod(_largest(both.ravel()), both.shape[1])
                best = float(both[i, j])
                bar = best * (1 + CANDIDATE_TIES)
                pair = (int(few[i]), j) if place == s else (j, int(few[i]))
        new = [pair[0] if q == s else pair[1] if q == t else j for q, j in enumerate(T)]
        return new, float(np.trace(rest.M)) + best


@record
class _Given:
    """All candidates given chosen ones, of which V_T W is an orthonormal basis.

    GW and HW are G_T W and H_T W, M = W'H_TT W; `left` and `variance` are v'Pv and v'PAPv of each candidate
    v, P the projection away from the chosen ones.
    """

    GW: Array
    HW: Array
    M: Array
    left: Array
    variance: Array

    def gain(self) -> Array:
        """v'PAPv / v'Pv; 0 where little of v is left."""
        return _ratio(self.variance, self.left)

    def after(self, products: _Products, few: NDArray[np.intp]) -> Array:
        """The same of all candidates, by columns, once one of the few is chosen too."""
        G = products.G[few] - self.GW[few] @ self.GW.T  # v'Pw
        H = products.H[few] - self.HW[few] @ self.GW.T - self.GW[few] @ self.HW.T
        H += self.GW[few] @ self.M @ self.GW.T  # v'PAPw
        part = G / self.left[few, None]
        left = self.left - G * part
        return _ratio(self.variance - 2 * H * part + self.variance[few, None] * part**2, left)


def _largest(values: Array) -> int:
    """The first of those that are largest, but for rounding."""
    most = float(values.max())
    return int(np.argmax(values >= most - CANDIDATE_TIES * abs(most))) if np.isfinite(most) else 0


def _descending(values: Array) -> NDArray[np.intp]:
    """Places by decreasing value; ties, but for rounding, in their order."""
    size = float(np.abs(values[np.isfinite(values)]).max(initial=0)) or 1.0
    return np.argsort(-np.round(values / (CANDIDATE_TIES * size)), kind="stable")


def _best(ends: list[tuple[list[int], float]]) -> tuple[list[int], float]:
    return ends[_largest(np.array([value for _, value in ends]))]


def _ratio(variance: Array, left: Array) -> Array:
    return np.where(left > CANDIDATE_SPAN, variance / np.maximum(left, CANDIDATE_SPAN), 0)
