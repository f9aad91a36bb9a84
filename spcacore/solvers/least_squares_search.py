"""Supports whose score explains much of all variables: max x'A^2 x / x'Ax, one variable more or less.

A and its square are asked for by rows, two products each, and only where the search comes to them. On a
support S let W have `W'A_S W = I` and `W'(A^2)_S W = diag(lambda)`; what a variable more makes of lambda is
the root of one equation (`linalg.pencil.border`). The value is monotone in the support. Where A is too large
to be formed, of the diagonal of A^2, which that equation needs, at first only a bound is known: entries are
computed for the variables that the bound does not rule out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from .. import _core
from .._limits import (
    LEAST_SQUARES_ENTERING,
    LEAST_SQUARES_EXACT_ROUNDS,
    LEAST_SQUARES_ORDER,
    LEAST_SQUARES_SWAP_WORK,
    LEAST_SQUARES_VECTORS,
    PENCIL_NULL,
    PENCIL_SCHUR,
    RISE,
    TIE,
)
from .._records import record
from .._types import Array, Index
from ..linalg.eigen import all_eigenpairs, leading_eigenpairs, leading_eigenvectors
from ..linalg.pencil import PencilBasis, border, ties
from ..operators.deflation import DeflatedOperator
from ..operators.problem import Problem
from .greedy_search import whole_matrix
from .solution import ProgressClock
from .swaps import rows_of

__all__ = ["Ratio", "Support", "backward_search", "forward_search", "swap_search"]
__dir__ = __all__.copy


@record
class Support:
    """Variables, ascending, the x there with the largest value, x'Gx = 1, and that value."""

    index: Index
    x: Array
    value: float
    n_iter: int = 0


class Ratio:
    """x'Mx/x'Gx by rows of M and G, in the units of the operator.

    M is A^2 or, of a single score X u, `largest^2 uu'`: the value is the share of that score that a
    regression explains, times `largest`. G is A or, with a penalty, A + weight QQ'.

    Attributes
    ----------
    largest : float
        The largest eigenvalue of A, which bounds all values; `u` is its vector.
    usable : ndarray of bool
        Variables of which the deflation has left more than rounding.
    """

    def __init__(self, problem: Problem, state: DeflatedOperator):
        assert problem.diagonal is not None
        assert state.diagonal is not None
        self.op = op = state.operator
        self.p, self.dtype = op.p, op.dtype
        self.variance = self.G_diagonal = np.maximum(np.asarray(state.diagonal, np.float64), 0)
        self.least = PENCIL_SCHUR.of(op.dtype) * np.asarray(problem.diagonal, np.float64)
        self.usable = self.variance > np.maximum(self.least, np.finfo(op.dtype).tiny)
        self.A: Array | None = None
        self.Q: Array | None = None  # the penalty, as rows
        self.single = False
        self.largest, self.u = 0.0, np.zeros(op.p)
        if self.usable.any():
            self._square()

    def _square(self) -> None:
        """The leading eigenpairs, and the diagonal of A^2 or a bound of it."""
        if self.p <= LEAST_SQUARES_ORDER:
            self.A = whole_matrix(self.op)
            self.A = (self.A + self.A.T) / 2
            values, vectors, _ = leading_eigenpairs(self.A.copy(), 1)
            self.M_diagonal, self.known = np.einsum("ij,ij->j", self.A, self.A), np.ones(self.p, bool)
        else:
            r = min(LEAST_SQUARES_VECTORS + 1, self.p - 2, self.op.m)
            values, vectors = leading_eigenvectors(self.op, r)
            values = np.maximum(values, 0)
            # (A^2)_jj = sum lambda_l^2 v_jl^2 + what is left, at most lambda_r (a_jj - sum lambda_l v_jl^2)
            square = vectors[:, :-1] ** 2
            left = np.maximum(self.variance - square @ values[:-1], 0) * values[-1]
            self.M_diagonal = square @ values[:-1] ** 2 + left
            self.known = np.zeros(self.p, bool)
        self.largest, self.u = float(values[0]), np.ascontiguousarray(vectors[:, 0])

    def penalized(self, Q: Array, weight: float) -> Ratio:
        """With `weight` times the largest variance on what of x lies in the span of Q."""
        other = self._copy()
        other.Q = np.sqrt(weight * self.variance.max()) * Q
        other.G_diagonal = self.variance + np.einsum("ij,ij->j", other.Q, other.Q)
        return other

    def of_score(self) -> Ratio:
        """Of the score of the leading eigenvector instead of all variables."""
        other = self._copy()
        other.single, other.known = True, np.ones(self.p, bool)
        other.M_diagonal = (self.largest * self.u) ** 2
        return other

    def _copy(self) -> Ratio:
        other = object.__new__(Ratio)
        other.__dict__.update(self.__dict__)
        return other

    def rows(self, S: Index) -> tuple[Array, Array]:
        """Those of M and G."""
        G = rows_of(self.op, S).astype(np.float64) if self.A is None else self.A[S]
        if self.single:
            M = np.outer(self.largest**2 * self.u[S], self.u)
        elif self.A is not None:
            M = G @ self.A
        else:
            M = self.op.apply_block(G.T.astype(self.dtype)).T.astype(np.float64)
        if self.Q is not None:
            G = G + self.Q[:, S].T @ self.Q
        return M, G

    def blocks(self, S: Index) -> tuple[Array, Array]:
        """M and G on a support."""
        M, G = self.rows(S)
        M, G = M[:, S], G[:, S]
        return (M + M.T) / 2, (G + G.T) / 2

    def know(self, index: Index) -> None:
        """Compute the diagonal of M there."""
        index = index[~self.known[index]]
        if len(index):
            rows = rows_of(self.op, index).astype(np.float64)
            self.M_diagonal[index], self.known[index] = np.einsum("ij,ij->i", rows, rows), True

    def basis(self, M: Array, G: Array) -> PencilBasis:
        """Of a support."""
        mu, U = all_eigenpairs((G + G.T) / 2)
        kept = mu > PENCIL_NULL.of(self.dtype) * mu[-1]
        return PencilBasis.of((M + M.T) / 2, mu, U, kept)

    def best_on(self, S: Index, rows: tuple[Array, Array] | None = None, n_iter: int = 0) -> Support:
        """The best x on a support, whose rows may be known."""
        M, G = self.rows(S) if rows is None else rows
        basis, order = self.basis(M[:, S], G[:, S]), np.argsort(S)
        return Support(S[order], basis.W[order, 0], float(basis.eigenvalues[0]), n_iter)

    def values_with(self, M: Array, G: Array, candidate: Index, basis: PencilBasis) -> Array:
        """The values with each candidate more, of which M and G have the columns; -inf for those spanned."""
        b, corner, _, usable = border(
            basis, M, G, self.M_diagonal[candidate], self.G_diagonal[candidate], self.least[candidate]
        )
        corner = np.where(usable, np.minimum(corner, self.largest), -np.inf)
        if len(basis.eigenvalues) == 0:
            return corner
        b[:, ~usable] = 0
        value = _core.bordered_eigenvalues(
            np.ascontiguousarray(b), np.arange(len(candidate)), np.where(usable, corner, 0.0),
            basis.eigenvalues, np.asfortranarray(np.eye(len(b))),
        )  # fmt: skip
        return np.where(usable, value, -np.inf)

    def best_addition(
        self, M: Array, G: Array, candidate: Index, basis: PencilBasis, more_than: float = -np.inf
    ) -> int | None:
        """The candidate with the largest value; None if none has more than `more_than`, or all are spanned.

        M and G are the rows of the support. Bounds are replaced by values, of the most promising, until a
        value is the largest.
        """
        if len(candidate) == 0:
            return None
        value = self.values_with(M[:, candidate], G[:, candidate], candidate, basis)
        for _ in range(LEAST_SQUARES_EXACT_ROUNDS):
            best = int(ties(value, TIE.of(self.dtype))[0])
            if not value[best] > more_than:
                return None
            if self.known[candidate[best]]:
                return int(candidate[best])
            open_ = np.flatnonzero(~self.known[candidate])
            open_ = open_[np.argsort(-value[open_], kind="stable")[:32]]
            some = candidate[open_]
            self.know(some)
            value[open_] = self.values_with(M[:, some], G[:, some], some, basis)
        value = np.where(self.known[candidate], value, -np.inf)
        best = int(ties(value, TIE.of(self.dtype))[0])
        return int(candidate[best]) if value[best] > more_than else None


def forward_search(ratio: Ratio, k: int, clock: ProgressClock, first: int | None = None) -> Iterator[Support]:
    """The supports of 1, ..., k variables; fewer where the others are spanned by them."""
    S = np.zeros(0, np.intp)
    M, G = np.zeros((0, ratio.p)), np.zeros((0, ratio.p))
    basis, free = PencilBasis.empty(0), ratio.usable.copy()
    new = first
    while len(S) < k:
        if new is None:
            new = ratio.best_addition(M, G, np.flatnonzero(free), basis)
        if new is None:
            return
        S, free[new] = np.append(S, new), False
        row_M, row_G = ratio.rows(S[-1:])
        M, G, new = np.vstack([M, row_M]), np.vstack([G, row_G]), None
        basis, order = ratio.basis(M[:, S], G[:, S]), np.argsort(S)
        yield Support(S[order], basis.W[order, 0], float(basis.eigenvalues[0]), len(S))
        if clock(len(S)):
            return


def backward_search(ratio: Ratio, clock: ProgressClock) -> Iterator[Support]:
    """The supports of ever fewer variables, from all that no others span."""
    S = np.flatnonzero(ratio.usable)
    M, G = ratio.blocks(S)
    while len(S):
        basis, order = ratio.basis(M, G), np.argsort(S)
        if not basis.in_null_space.any():
            yield Support(S[order], basis.W[order, 0], float(basis.eigenvalues[0]), ratio.p - len(S))
        if len(S) == 1 or clock(ratio.p - len(S)):
            return
        worst = int(ties(basis.without_each())[-1])
        S = np.delete(S, worst)
        M, G = (np.delete(np.delete(part, worst, 0), worst, 1) for part in (M, G))


def swap_search(
    ratio: Ratio, x: Support, clock: ProgressClock, work: float = LEAST_SQUARES_SWAP_WORK
) -> Support:
    """Variables swapped, one for one, for as long as that raises the value and costs no more than `work`."""
    k = len(x.index)
    S = x.index.copy()
    M, G = ratio.rows(S)
    candidate, unchanged, n_iter = _promising(ratio, S, M, G), 0, 0
    order = np.argsort(np.abs(x.x) * np.sqrt(ratio.variance[S]), kind="stable")
    step = 25.0 * k**3 + 4.0 * k**2 * len(candidate)
    while unchanged < k and len(candidate) and work > 0 and not clock(x.n_iter + n_iter):
        place = order[n_iter % k]
        n_iter, unchanged, work = n_iter + 1, unchanged + 1, work - step
        rest = np.delete(np.arange(k), place)
        basis = PencilBasis.empty(0)
        if k > 1:
            basis = ratio.basis(M[np.ix_(rest, S[rest])], G[np.ix_(rest, S[rest])])
        outside = candidate[~np.isin(candidate, S)]
        enough = x.value + RISE * x.value
        new = ratio.best_addition(M[rest], G[rest], outside, basis, enough)
        if new is None:
            continue
        trial, before = S.copy(), (M[place].copy(), G[place].copy())
        trial[place] = new
        row_M, row_G = ratio.rows(trial[[place]])
        M[place], G[place] = row_M[0], row_G[0]
        better = ratio.best_on(trial, (M, G), x.n_iter)
        if better.value > enough:
            S, x, unchanged = trial, better, 0
        else:
            M[place], G[place] = before
    return replace(x, n_iter=x.n_iter + n_iter)


def _promising(ratio: Ratio, S: Index, M: Array, G: Array) -> Index:
    """The variables that may enter a support: those that would add most to it."""
    free = ratio.usable.copy()
    free[S] = False
    outside = np.flatnonzero(free)
    if len(outside) > LEAST_SQUARES_ENTERING:
        value = ratio.values_with(M[:, outside], G[:, outside], outside, ratio.basis(M[:, S], G[:, S]))
        outside = np.sort(outside[np.argsort(-value, kind="stable")[:LEAST_SQUARES_ENTERING]])
    return outside
