"""Z'Z for the deflated data Z, as components under a prior need it: products, submatrices and factors."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .. import _core
from .._limits import ROUNDING_LEFT, SPAN
from .._types import Array, Index
from ..linalg.eigen import ShiftedInverse, all_eigenpairs
from ..linalg.orthogonal import inner_products, project_out, symmetrized
from ..linalg.scaling import roots
from ..operators.deflation import LowRank
from ..operators.gram import leading_pairs
from ..operators.problem import Problem
from .priors import PriorMatrix, Spectral

ALL_SHARE = 16  # if p is at most so many times the eigenvectors wanted, all are as fast


@dataclass
class Residual:
    """Z'Z for the deflated data `Z = T (I - B M')`, which is never formed.

    If `orthogonal`, B = M is an orthonormal basis of the posterior means. With naive deflation M has the
    means, and B is such that x_t = T b_t. `n` is the number of samples or the sum of their weights, `wanted`
    the number of components. With a prior that has eigenvectors U, and data in memory, everything is in the
    basis U.
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
        self.total: float = problem.trace * (self.n - 1)  # |T|^2
        self.square: float = self.total  # |Z|^2
        self.floor: float = ROUNDING_LEFT.of(self.op.dtype) * self.total  # what of it may be rounding
        self.M: Array = np.zeros((problem.p, 0))
        self.term: LowRank = LowRank.none(problem.p)  # what deflation adds to T'T
        self.wide: bool = self.op.in_memory and not self.op.symmetric_form and self.op.n < self.op.p
        self.X: Array = np.zeros((self.op.m, 0))  # wide data: Z = T - X M'
        self.near: Array = np.zeros((problem.p, 0))  # what explained most besides the last component
        self.shifted: ShiftedInverse | None = None

    def product(self, v: Array) -> Array:
        """Return T'T v, for a vector or the columns of a matrix."""
        op, index = self.op, np.flatnonzero(v)
        if v.ndim == 1 and 0 < 2 * len(index) <= len(v):
            products = op.apply(index, v[index].astype(op.dtype))
        else:
            products = op.apply_block(v.reshape(len(v), -1)).reshape(v.shape)
        return (self.n - 1) * products.astype(np.float64)

    def apply(self, v: Array) -> Array:
        """Return Z'Z v."""
        return self.product(v) + self.term.times(v)

    def leading(self) -> Array | None:
        """Return the leading eigenvector of Z'Z, if eigenvectors of T'T were removed; else None.

        Also None where each product may be a pass over data that are not in memory.
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
        """Return Z'Z between these variables."""
        G = self.op.submatrix(index).astype(np.float64)
        G = (self.n - 1) * G + self.term.rows(index, index)
        return symmetrized(G)

    def factor(self, index: Index) -> Array | None:
        """Return Y with YY' = Z'Z between these variables.

        It is None unless Y has fewer columns than rows and the data are in memory.
        """
        op = self.op
        if not self.wide or op.n >= len(index):
            return None
        Y = op.columns(index).astype(np.float64) - self.M[index] @ self.X.T
        return Y * math.sqrt((self.n - 1) * op.factor)

    def whole_factor(self) -> Array:
        """Return Y with YY' = Z'Z, for data in memory."""
        index = np.arange(len(self.M))
        Y = self.factor(index)
        if Y is None:
            values, V = all_eigenpairs(self.submatrix(index))
            Y = V * roots(values)
        return Y

    def remove(self, m: Array, energy: float) -> None:
        """Deflate by a component with the posterior mean m and the energy m'm + Tr S."""
        m = m if self.U is None else self.U.T @ m
        # The direction: orthonormal to the earlier ones, or m divided by the root of its energy
        if self.orthogonal:
            m = project_out(m / np.linalg.norm(m), self.M)
            if np.linalg.norm(m) < SPAN:
                return
            m, energy = project_out(m / np.linalg.norm(m), self.M), 1.0
        m = m / math.sqrt(energy)
        # Z'Z becomes (I - mm')Z'Z(I - mm'), and |Z|^2 its trace
        G = self.apply(m)
        gain = float(m @ G)
        self.term += LowRank.removal("projection", gain, (m, G))
        self.square += gain * (float(m @ m) - 2)
        if self.wide:
            x = self.op.forward_block(m[:, None]).astype(np.float64) - self.X @ (self.M.T @ m)[:, None]
            self.X = np.hstack([self.X, x])
        self.M = np.column_stack([self.M, m])


def _in_basis(op: _core.Operator, U: Array) -> _core.Operator:
    """Return the operator U'AU, from the data or from A, whichever is smaller."""
    if op.symmetric_form or op.n >= op.p:
        A = inner_products(U, op.apply_block(U).astype(np.float64))
        return _core.dense(symmetrized(A), True)
    return _core.dense(op.forward_block(U).astype(np.float64), False, factor=op.factor)
