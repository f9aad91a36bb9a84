"""Loadings that explain much together, from hundreds of random starts at once: of few variables.

Each of a generation of starts ascends by itself: a loading is sought again given the others, by one step of
truncated power on x'PAPx / x'Px, P = I - QQ', Q a basis of the others, and by the best values on the support.
The next generation begins with the best ends, some loadings of which are drawn again.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._limits import (
    GENERATION_CANDIDATES,
    GENERATION_PARENTS,
    GENERATION_RISE,
    GENERATION_SPAN,
    GENERATION_STALLED,
    GENERATION_SWEEPS,
    GENERATION_TIES,
    GENERATION_WORK,
    GENERATIONS,
    MANY_STARTS,
)
from .._records import record
from .._types import Array
from ..operators.problem import Problem
from .orthogonal_search import Loading, as_matrix

__all__ = ["many_ends"]
__dir__ = __all__.copy


def many_ends(
    problem: Problem, sizes: tuple[int, ...], best: list[Loading], rng: np.random.Generator
) -> list[list[Loading]]:
    """The best ends of some generations, of different supports; `best` is among the first starts."""
    A = problem.operator.submatrix(np.arange(problem.p)).astype(np.float64)
    some = np.flatnonzero(A.diagonal() > 0)  # not those that are excluded
    search = _Generation(A[np.ix_(some, some)], sizes)
    count = min(MANY_STARTS, int(GENERATION_WORK / search.cost))
    if count < 2 or len(some) < max(sizes):
        return []
    V = search.random(count, rng)
    V[0] = as_matrix(problem.p, best)[some]
    V[1 : 1 + count // 4] = search.drawn_again(np.repeat(V[:1], count // 4, axis=0), rng)
    ends, most, stalled = search.best(search.ascended(V)), -np.inf, 0
    for _ in range(GENERATIONS - 1):
        children = ends[rng.integers(len(ends), size=count)]
        new = search.ascended(search.drawn_again(children, rng))
        before, ends = most, search.best(np.concatenate([ends, new]))
        most = float(search.explained(ends[:1])[0])
        stalled = 0 if most > before * (1 + GENERATION_RISE) else stalled + 1
        if stalled == GENERATION_STALLED:
            break
    dtype = problem.operator.dtype
    return [
        [(some[used], np.ascontiguousarray(v[used], dtype)) for v in W.T for used in [np.flatnonzero(v)]]
        for W in ends[:GENERATION_CANDIDATES]
    ]


@record
class _Generation:
    """Loadings V (count, p, r) with columns of so many nonzeros, of covariance A, that ascend together."""

    A: Array
    sizes: tuple[int, ...]

    @property
    def cost(self) -> float:
        """Of one sweep from one start, in multiplications."""
        p, r = len(self.A), len(self.sizes)
        return sum(2.0 * p * p + 4.0 * p * r * r + 40.0 * k**3 + 2000.0 for k in self.sizes)

    def random(self, count: int, rng: np.random.Generator) -> Array:
        """Normal values on random supports."""
        V = np.empty((count, len(self.A), len(self.sizes)))
        for t, k in enumerate(self.sizes):
            V[:, :, t] = self._random(count, k, rng)
        return V

    def _random(self, count: int, k: int, rng: np.random.Generator) -> Array:
        p = len(self.A)
        support = np.argpartition(rng.random((count, p)), k - 1, axis=1)[:, :k]
        x = np.zeros((count, p))
        np.put_along_axis(x, support, rng.standard_normal((count, k)), axis=1)
        return x / np.linalg.norm(x, axis=1)[:, None]

    def drawn_again(self, V: Array, rng: np.random.Generator) -> Array:
        """One loading of each, or two of three and more."""
        count, _, r = V.shape
        places = np.argsort(rng.random((count, r)), axis=1)
        drawn = places < rng.integers(1, 3 if r > 2 else 2, size=(count, 1))
        return np.where(drawn[:, None, :], self.random(count, rng), V)

    def ascended(self, V: Array) -> Array:
        """Where sweeps over the loadings lead, each from its own start, until none gains."""
        V, going, before = V.copy(), np.arange(len(V)), self.explained(V)
        for _ in range(GENERATION_SWEEPS):
            part = V[going]
            for t in range(len(self.sizes)):
                part[:, :, t] = self._again(part, t)
            V[going], explained = part, self.explained(part)
            rises = explained > before[going] * (1 + GENERATION_RISE)
            before[going] = explained
            going = going[rises]
            if len(going) == 0:
                break
        return V

    def explained(self, V: Array) -> Array:
        """Tr(Q'AQ), Q a basis of the loadings."""
        Q = _basis(V)
        return (Q * (self.A @ Q)).sum(axis=(1, 2))

    def best(self, V: Array) -> Array:
        """The best of different supports; of equal ones those that come first."""
        explained = self.explained(V)
        order = np.argsort(-np.round(explained / explained.max(), 9), kind="stable")
        known: dict[bytes, int] = {}
        for s in order:
            known.setdefault(np.packbits(np.unique(V[s].T != 0, axis=0)).tobytes(), int(s))
            if len(known) == GENERATION_PARENTS:
                break
        return V[list(known.values())]

    def _again(self, V: Array, t: int) -> Array:
        """Loading t of each, sought again given the others."""
        x, k = V[:, :, t], self.sizes[t]
        given = _Given.of(self.A, np.delete(V, t, axis=2))
        product, value = given.product(self.A, x)
        near_ties = 1 - GENERATION_TIES * np.arange(len(self.A)) / len(self.A)  # the first of equal ones
        support = np.sort(np.argsort(-np.abs(product) * near_ties, axis=1, kind="stable")[:, :k], axis=1)
        new, quotient = given.fitted(self.A, support)
        better = quotient > value * (1 + GENERATION_RISE)
        return np.where(better[:, None], new, x)


@record
class _Given:
    """What bases Q (n, p, m) of other loadings leave: AQ and Q'AQ."""

    Q: Array
    AQ: Array
    QAQ: Array

    @classmethod
    def of(cls, A: Array, V: Array) -> _Given:
        Q = _basis(V)
        AQ = A @ Q
        return cls(Q, AQ, Q.swapaxes(1, 2) @ AQ)

    def product(self, A: Array, x: Array) -> tuple[Array, Array]:
        """(PAP + rho QQ')x and rho = x'PAPx / x'Px."""
        inside = self._inside(x)
        z = x - inside
        y = z @ A
        left = np.square(z).sum(axis=1)
        quotient = (y * z).sum(axis=1) / np.maximum(left, GENERATION_SPAN)
        quotient = np.where(left > GENERATION_SPAN, quotient, 0)
        return y - self._inside(y) + quotient[:, None] * inside, quotient

    def _inside(self, x: Array) -> Array:
        """QQ'x."""
        return (self.Q @ (self.Q.swapaxes(1, 2) @ x[:, :, None]))[:, :, 0]

    def fitted(self, A: Array, support: NDArray[np.intp]) -> tuple[Array, Array]:
        """The best unit vectors on supports (n, k), and x'PAPx / x'Px of them."""
        n, k = support.shape
        Q = np.take_along_axis(self.Q, support[:, :, None], axis=1)
        AQ = np.take_along_axis(self.AQ, support[:, :, None], axis=1)
        cross = AQ @ Q.swapaxes(1, 2)
        M = A[support[:, :, None], support[:, None, :]] - cross - cross.swapaxes(1, 2)
        M += Q @ self.QAQ @ Q.swapaxes(1, 2)
        left, U = np.linalg.eigh(np.eye(k) - Q @ Q.swapaxes(1, 2))
        kept = left > GENERATION_SPAN
        W = U * np.where(kept, 1 / np.sqrt(np.where(kept, left, 1)), 0)[:, None, :]
        quotients, Z = np.linalg.eigh(W.swapaxes(1, 2) @ M @ W)
        value = (W @ Z[:, :, -1:])[:, :, 0]
        norm = np.linalg.norm(value, axis=1)
        x = np.zeros((n, len(A)))
        np.put_along_axis(x, support, value / np.where(norm > 0, norm, 1)[:, None], axis=1)
        return x, np.where(norm > 0, quotients[:, -1], 0)


def _basis(V: Array) -> Array:
    """Orthonormal columns with the span of those of each V (n, p, m); zero where earlier ones span one."""
    Q = V.copy()
    for t in range(V.shape[2]):
        q, earlier = Q[:, :, t], Q[:, :, :t]
        if t > 0:
            q = q - (earlier @ (earlier.swapaxes(1, 2) @ q[:, :, None]))[:, :, 0]
        left = np.square(q).sum(axis=1)
        kept = left > GENERATION_SPAN
        Q[:, :, t] = np.where(kept, 1 / np.sqrt(np.where(kept, left, 1)), 0)[:, None] * q
    return Q
