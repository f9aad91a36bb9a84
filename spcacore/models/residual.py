"""Z'Z of deflated data, for components under a prior: its products, parts and factors."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .. import _core
from .._limits import SPAN
from .._types import Array, Index
from ..linalg.eigen import ShiftedInverse, all_eigenpairs
from ..linalg.orthogonal import inner_products, project_out, symmetrized
from ..operators.deflation import LowRank
from ..operators.gram import leading_pairs
from ..operators.problem import Problem
from .priors import PriorMatrix, Spectral

ALL_SHARE = 16  # of so many times as many eigenvectors, all are found as fast


@dataclass
class Residual:
    """Z'Z of the deflated data `Z = T (I - B M')`.

    B = M is an orthonormal basis of the means; with naive deflation M has the means, and x_t = T b_t. Of data
    in memory, all are in the basis of the eigenvectors U of the prior, if it is given.
    """

    problem: Problem
    n: float
    orthogonal: bool
    wanted: int
    prior: PriorMatrix | None = None

    def __post_init__(self) -> None:
        problem, prior = self.problem, self.prior
        self.op: _core.Operator = problem.operator
        self.U: Array | None = None
        if isinstance(prior, Spectral) and self.op.in_memory:
            self.U = prior.U
            self.op = _in_basis(self.op, prior.U)
        self.eigenvectors: Array = np.zeros((problem.p, 0))
        self.total: float = problem.trace * (self.n - 1)
        self.square: float = self.total
        self.B = self.M = self.AB = np.zeros((problem.p, 0))
        self.inner = self.MM = np.zeros((0, 0))  # B'AB, M'M
        self.crossed: float = 0.0  # Tr M'AB
        self._term: LowRank | None = LowRank.none(problem.p)
        self.FB: Array | None = None  # of the data, once it is asked for
        self.near: Array = np.zeros((problem.p, 0))  # what explained most beside the last component
        self.shifted: ShiftedInverse | None = None

    def product(self, v: Array) -> Array:
        if v.ndim > 1:
            products = self.op.apply_block(np.asfortranarray(v, self.op.dtype))
            return (self.n - 1) * products.astype(np.float64)
        index = np.flatnonzero(v)
        if len(index) == 0:
            return np.zeros_like(v)
        if len(index) > len(v) // 2:
            return (self.n - 1) * self.op.apply(None, v.astype(self.op.dtype)).astype(np.float64)
        return (self.n - 1) * self.op.apply(index, v[index].astype(self.op.dtype)).astype(np.float64)

    def apply(self, v: Array) -> Array:
        """Z'Z v."""
        return self.product(v) + self.term.times(v)

    def leading(self) -> Array | None:
        """The leading eigenvector once as many eigenvectors have been removed as components.

        None where each product may be a pass over data elsewhere.
        """
        t, p = self.M.shape[1], len(self.M)
        if not self.orthogonal or self.op.by_passes:
            return None
        if t >= self.eigenvectors.shape[1]:
            r = min(max(self.wanted, 2 * t), p)
            every = p <= ALL_SHARE * r and (self.op.symmetric_form or self.op.n >= p)
            self.eigenvectors = leading_pairs(self.op, p if every else r)[1]
        v = project_out(self.eigenvectors[:, t].astype(np.float64), self.M)
        return v if np.linalg.norm(v) > 0.5 else None

    def submatrix(self, index: Index) -> Array:
        """Z'Z on a support."""
        G = self.op.submatrix(index).astype(np.float64)
        G = (self.n - 1) * G + self.term.block(index)
        return symmetrized(G)

    def factor(self, index: Index) -> Array | None:
        """Y with YY' = Z'Z on a support, where Y is the smaller one, of data in memory."""
        op = self.op
        if op.symmetric_form or not op.in_memory or op.n >= len(index):
            return None
        Y = op.columns(index).astype(np.float64)
        if self.M.shape[1]:
            if self.FB is None:
                self.FB = op.forward_block(self.B).astype(np.float64)
            Y -= self.M[index] @ self.FB.T
        return Y * math.sqrt((self.n - 1) * op.factor)

    def whole_factor(self) -> Array:
        """Y with YY' = Z'Z, of data in memory."""
        index = np.arange(len(self.M))
        Y = self.factor(index)
        if Y is None:
            values, V = all_eigenpairs(self.submatrix(index))
            Y = V * np.sqrt(np.maximum(values, 0))
        return Y

    def remove(self, m: Array, energy: float) -> None:
        """Deflate by a component with mean m and `energy` m'm + Tr S."""
        m = m if self.U is None else self.U.T @ m
        if self.orthogonal:
            q = project_out(m / np.linalg.norm(m), self.M)
            if np.linalg.norm(q) < SPAN:
                return
            b = m = project_out(q / np.linalg.norm(q), self.M)
        else:
            b = (m - self.B @ (self.M.T @ m)) / energy
        Ab = self.product(b)
        self.M, self.AB = np.column_stack([self.M, m]), np.column_stack([self.AB, Ab])
        self.B = self.M if self.orthogonal else np.column_stack([self.B, b])
        self.FB = self._term = None
        self.inner, self.MM = _bordered(self.inner, self.B.T @ Ab), _bordered(self.MM, self.M.T @ m)
        self.crossed += float(m @ Ab)
        self.square = self.total + float(np.sum(self.MM * self.inner)) - 2 * self.crossed

    @property
    def term(self) -> LowRank:
        """What deflation adds to T'T."""
        if self._term is None:
            one, sides = np.eye(len(self.inner)), np.hstack([self.M, self.AB])
            self._term = LowRank(sides, np.block([[self.inner, -one], [-one, 0 * one]]), sides)
        return self._term


def _bordered(A: Array, column: Array) -> Array:
    """The symmetric matrix A, and one column more."""
    return np.block([[A, column[:-1, None]], [column]])


def _in_basis(op: _core.Operator, U: Array) -> _core.Operator:
    """The operator U'AU, by the data or by A, whichever is smaller."""
    V = np.asfortranarray(U, op.dtype)
    if op.symmetric_form or op.n >= op.p:
        AV = op.apply_block(V).astype(np.float64)
        A = inner_products(U, AV)
        return _core.dense(symmetrized(A), True)
    return _core.dense(op.forward_block(V).astype(np.float64), False, factor=op.factor)
