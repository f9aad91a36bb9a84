"""What a variable more or less does to the sum of the r largest eigenvalues of a support."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._limits import ACROSS_BISECTIONS, ACROSS_ENTERING, ACROSS_WORK

__all__ = ["Array", "Index", "Steps", "leading_sum", "promising", "with_each"]
__dir__ = __all__.copy

Array = NDArray[np.float64]
Index = NDArray[np.intp]


class Steps:
    """Exchanges made, of `most`; `report` is told their number, and is True to end."""

    def __init__(self, most: int, report: Callable[[int], bool]):
        self.most, self.report = most, report
        self.done, self.ended = 0, False

    @property
    def over(self) -> bool:
        return self.ended or self.done >= self.most

    def __call__(self) -> bool:
        """One more; whether to stop."""
        self.done += 1
        self.ended = self.report(self.done) or self.ended
        return self.over


def leading_sum(A: Array, S: Index, r: int) -> float:
    """The sum of the r largest eigenvalues of A[S, S]."""
    if len(S) <= r:
        return float(A.diagonal()[S].sum())
    return float(np.linalg.eigvalsh(A[np.ix_(S, S)])[-r:].sum())


def with_each(A: Array, S: Index, others: Index, r: int) -> Array:
    """`leading_sum` of S with each of the other variables more.

    In the eigenbasis of A[S, S] the bordered matrix has the eigenvalues l_q on its diagonal and z_q beside
    them. Its own are the roots of d - x + sum_q z_q^2 / (x - l_q), one between any two l_q, which bisection
    finds.
    """
    diagonal = A.diagonal()
    if len(S) < r:
        return diagonal[S].sum() + diagonal[others]
    values, W = np.linalg.eigh(A[np.ix_(S, S)])
    values, W, d = values[::-1].copy(), np.asfortranarray(W[:, ::-1]), diagonal[others]
    if r == 1:
        C = np.ascontiguousarray(A[S])
        return np.asarray(
            _core.bordered_eigenvalues(C, others, diagonal.copy(), values, W, None, None, None, 0.0, 0.0)
        )
    square = (W.T @ A[np.ix_(S, others)]) ** 2
    upper = np.maximum(values[0], d) + np.sqrt(square.sum(axis=0))
    total = np.zeros(len(others))
    for q in range(r):
        low, high = np.full(len(others), values[q]), upper if q == 0 else np.full(len(others), values[q - 1])
        for _ in range(ACROSS_BISECTIONS):
            x = (low + high) / 2
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                above = d - x + (square / (x - values[:, None])).sum(axis=0) > 0
            low, high = np.where(above, x, low), np.where(above, high, x)
        total += (low + high) / 2
    return total


def promising(A: Array, S: Index, others: Index, r: int) -> Index:
    """The others, or where all take long those of the largest products with the leading eigenvectors of S."""
    if len(S) ** 2 * len(others) * min(r, len(S)) <= ACROSS_WORK or len(others) <= ACROSS_ENTERING:
        return others
    V = np.linalg.eigh(A[np.ix_(S, S)])[1][:, -r:]
    weight = np.square(A[np.ix_(others, S)] @ V).sum(axis=1)
    return np.sort(others[np.argsort(-weight, kind="stable")[:ACROSS_ENTERING]])
