"""What deflation takes from a matrix, as a term of low rank beside it.

Let A belong to the problem max x'Ax/x'Bx, or C to max u'Cv/sqrt(u'B_x u v'B_y v). With y = B^(1/2)x it is
that of sparse principal components, and what deflates `B^(-1/2) A B^(-1/2)` there (Mackey 2008) is, with
x'Bx = 1, z = Bx and w = Ax,

    Hotelling      A - (x'w) zz'
    projection     (I - zx') A (I - xz') = A - zw' - wz' + (x'w) zz'
    Schur          A - ww'/(x'w)

and of C the same with B_x u, Cv on the left and B_y v, C'u on the right: the Schur complement lowers the rank
(Wedderburn 1934). All are [z w] K [z w]', and never enter A.
"""

from __future__ import annotations

from typing import Self

import numpy as np

from .._records import record
from .._types import Array, Index

__all__ = ["LowRank"]


@record
class LowRank:
    """L K R' of few columns."""

    left: Array
    middle: Array
    right: Array

    @classmethod
    def none(cls, p: int, q: int | None = None) -> Self:
        """Of p rows and q columns."""
        return cls(np.zeros((p, 0)), np.zeros((0, 0)), np.zeros((p if q is None else q, 0)))

    @classmethod
    def removal(
        cls, update: str, value: float, left: tuple[Array, Array], right: tuple[Array, Array] | None = None
    ) -> Self:
        """What a deflation adds, with `value` = x'Ax or u'Cv and, of each side, z and w."""
        K = np.zeros((2, 2))
        if update == "hotelling":
            K[0, 0] = -value
        elif update == "projection":
            K[0, 0], K[0, 1], K[1, 0] = value, -1, -1
        elif abs(value) > 0:
            K[1, 1] = -1 / value
        used = np.flatnonzero(K.any(axis=0))
        L, R = (
            np.stack([side[i] for i in used], axis=1) if len(used) else np.zeros((len(side[0]), 0))
            for side in (left, right or left)
        )
        return cls(L, K[np.ix_(used, used)], R)

    def __bool__(self) -> bool:
        return len(self.middle) > 0

    def __add__(self, other: LowRank) -> LowRank:
        s, t = len(self.middle), len(other.middle)
        K = np.zeros((s + t, s + t))
        K[:s, :s], K[s:, s:] = self.middle, other.middle
        return LowRank(np.hstack([self.left, other.left]), K, np.hstack([self.right, other.right]))

    @property
    def T(self) -> LowRank:
        return LowRank(self.right, self.middle.T, self.left)

    def times(self, V: Array, S: Index | None = None) -> Array:
        """The product with vectors, or with those that have the entries V on S only."""
        return self.left @ (self.middle @ ((self.right if S is None else self.right[S]).T @ V))

    def diagonal(self) -> Array:
        return np.einsum("ij,ij->i", self.left @ self.middle, self.right)

    def rows(self, S: Index) -> Array:
        return (self.left[S] @ self.middle) @ self.right.T

    def block(self, S: Index) -> Array:
        """Rows and columns S."""
        return (self.left[S] @ self.middle) @ self.right[S].T

    def in_units(self, unit: Array) -> LowRank:
        """diag(unit) L K R' diag(unit)."""
        return LowRank(self.left * unit[:, None], self.middle, self.right * unit[:, None])
