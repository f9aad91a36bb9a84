"""One symmetric matrix of a pencil: as it is given or as a product of rows, with units and terms."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .._limits import PRODUCT_ENTRIES
from .._records import record
from .._types import Array, Index
from .._validation import is_sparse
from ..operators.low_rank import LowRank

__all__ = ["Form"]


@record
class Form:
    """diag(unit) (matrix, or F'F + diag(ridge)) diag(unit) + terms, of which nothing large is copied.

    Matrix and F may be sparse. The terms are in the units of the product.
    """

    matrix: Any
    factor: Any
    ridge: Array | None
    unit: Array
    terms: LowRank

    @classmethod
    def of(cls, matrix: Any = None, factor: Any = None, ridge: Any = None) -> Form:
        p = (matrix if matrix is not None else factor).shape[1]
        return cls(matrix, factor, ridge, np.ones(p), LowRank.none(p))

    @classmethod
    def with_level(cls, matrix: Array, level: Array | float) -> Form:
        """matrix + diag(level), in place."""
        matrix[np.diag_indices(len(matrix))] += level
        return cls.of(matrix)

    @property
    def p(self) -> int:
        return len(self.unit)

    def __add__(self, term: LowRank) -> Form:
        return replace(self, terms=self.terms + term)

    def in_units(self, unit: Array) -> Form:
        return replace(self, unit=self.unit * unit, terms=self.terms.in_units(unit))

    def diagonal(self) -> Array:
        if self.matrix is not None:
            d = self.matrix.diagonal().astype(np.float64) * self.unit * self.unit
        else:
            d = _column_squares(self.factor, self.unit)
            if self.ridge is not None:
                d = d + self.ridge * self.unit * self.unit
        return d + self.terms.diagonal()

    def stored(self) -> tuple[Array, Index, Index]:
        """Magnitudes of the entries of a sparse matrix, and their rows and columns."""
        M = self.matrix.tocoo()
        row, column = M.coords
        size = np.abs(M.data).astype(np.float64)
        size *= self.unit[row]
        size *= self.unit[column]
        return size, row, column

    def rows(self, S: Index) -> Array:
        """Those of the variables S, (k, p)."""
        if self.matrix is not None:
            part = self.matrix[S]
            out = np.array(part.toarray() if is_sparse(part) else part, np.float64, order="C")
            out *= self.unit[S, None]
        else:
            part = self.factor[:, S] * self.unit[S]
            out = np.asarray((part.T @ self.factor).todense() if is_sparse(part) else part.T @ self.factor)
            out = out.astype(np.float64)
            if self.ridge is not None:
                out[np.arange(len(S)), S] += self.ridge[S] * self.unit[S]
        out *= self.unit
        return out + self.terms.rows(S) if self.terms else out

    def block(self, S: Index) -> Array:
        """Rows and columns S."""
        unit = self.unit[S]
        if self.matrix is not None:
            part = self.matrix[S][:, S].toarray() if is_sparse(self.matrix) else self.matrix[np.ix_(S, S)]
            out = part.astype(np.float64)
            out *= unit[:, None]
            out *= unit
        else:
            part = self.factor[:, S]
            part = (part.toarray() if is_sparse(part) else part).astype(np.float64) * unit
            out = part.T @ part
            if self.ridge is not None:
                out[np.diag_indices(len(S))] += self.ridge[S] * unit * unit
        out = out + self.terms.block(S)
        return (out + out.T) / 2

    def matvec(self, x: Array, S: Index | None = None) -> Array:
        """The product with a vector, or with one that has the entries x on S only."""
        s = self.unit if S is None else self.unit[S]
        z = s * x
        if self.matrix is not None:
            z = z.astype(self.matrix.dtype)
            if is_sparse(self.matrix):
                y = self.matrix @ z if S is None else self.matrix[S].T @ z
            elif S is None:  # in blocks that are copied unless rows are contiguous, for the same bits always
                step = max(1, PRODUCT_ENTRIES // self.p)
                blocks = (self.matrix[start : start + step] for start in range(0, self.p, step))
                y = np.concatenate([np.ascontiguousarray(block) @ z for block in blocks])
            else:
                y = z @ np.ascontiguousarray(self.matrix[S])
            y = y.astype(np.float64)
        else:
            part = self.factor if S is None else self.factor[:, S]
            y = np.asarray(self.factor.T @ (part @ z), np.float64)
            if self.ridge is not None:
                if S is None:
                    y += self.ridge * z
                else:
                    y[S] += self.ridge[S] * z
        y *= self.unit
        return y + self.terms.times(x, S) if self.terms else y


def _column_squares(F: Any, unit: Array) -> Array:
    if is_sparse(F):
        scaled = F.multiply(unit).tocsr()
        return np.asarray(scaled.multiply(scaled).sum(axis=0)).ravel()
    return np.einsum("ij,ij->j", F * unit, F * unit, dtype=np.float64)
