"""Steps and searches that respect what the caller knows of the variables (supports/admissible)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from ..operators.submatrix import largest_submatrix
from ..supports.admissible import Supports
from .solution import ProgressClock, Report

__all__ = ["Rule", "Vector", "Worth", "ascend", "bounding", "penalization", "truncation"]
__dir__ = __all__.copy

Vector = NDArray[np.float64]
Rule = Callable[[Vector, float], tuple[NDArray[np.intp], Vector]]  # of A x and x'Ax
_TINY = float(np.finfo(np.float64).tiny)
Worth = Callable[[float, Vector], float]  # of x'Ax and x


def truncation(choice: Supports, count: int) -> Rule:
    """The included units, and those of largest norm up to so many."""

    def rule(y: Vector, _: float) -> tuple[NDArray[np.intp], Vector]:
        y = choice.projected(y)
        kept = choice.variables(choice.largest(choice.norms(y), count))
        x = _only(y, kept)
        if y.any() and not x.any():  # only units without room have entries
            norms = (choice.size <= count).astype(np.float64)
            kept = choice.variables(choice.largest(norms, count))
            x[kept] = choice.ones(kept)
        return kept, x

    return rule


def penalization(choice: Supports, l0: bool, gamma: float) -> tuple[Rule, Worth]:
    """Units whose norm exceeds gamma (l1: diminished by it; l0: its root), and the objective of Journee et
    al.; the included ones cost nothing."""

    def rule(y: Vector, quadratic: float) -> tuple[NDArray[np.intp], Vector]:
        a = choice.projected(y) / math.sqrt(max(quadratic, _TINY))
        norms = choice.norms(a)
        over = norms**2 - gamma if l0 else norms - gamma
        kept = choice.included | ((over > 0) & choice.allowed)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(choice.included | l0, 1.0, over / norms)
        index = choice.variables(np.flatnonzero(kept))
        return index, _only(a * np.where(kept, share, 0)[choice.unit], index)

    def worth(quadratic: float, x: Vector) -> float:
        if l0:
            return quadratic - gamma * int(np.count_nonzero(choice.norms(x)[~choice.included]))
        return math.sqrt(max(quadratic, 0.0)) - gamma * choice.cost(x)

    return rule, worth


def bounding(choice: Supports, bound: float) -> Rule:
    """Norms of units diminished until their sum is at most `bound` times the norm of all; the included ones
    do not count."""

    def rule(y: Vector, _: float) -> tuple[NDArray[np.intp], Vector]:
        y = choice.projected(y)
        norms = choice.norms(y)
        free = ~choice.included
        high = _level(norms[free], float(norms[~free] @ norms[~free]), bound)
        share = np.zeros_like(norms)
        over = free & (norms > high * (1 + 1e-12))
        if not over.any() and not norms[~free].any() and norms.any():  # ties beyond the bound
            over = np.arange(len(norms)) == int(np.argmax(np.where(free, norms, -1)))
            high = 0.0
        share[over] = 1 - high / norms[over]
        share[~free] = 1
        index = choice.variables(np.flatnonzero(over | choice.included))
        return index, _only(y * share[choice.unit], index)

    return rule


def _level(norms: Vector, square: float, bound: float) -> float:
    """By how much to diminish norms until their sum is at most the bound times the root of the sum of their
    squares and of `square`.

    Of the m largest norms, of sum s and sum of squares q: (s - m l)^2 = bound^2 (q - 2 l s + m l^2 + square).
    """
    n = np.append(np.sort(norms)[::-1], 0.0)
    m, s, q = np.arange(1, len(n)), np.cumsum(n[:-1]), np.cumsum(n[:-1] ** 2)
    lower = n[1:]
    kept = np.maximum(q - 2 * lower * s + m * lower**2, 0) + square
    beyond = np.flatnonzero(s - m * lower > bound * np.sqrt(kept))
    if len(beyond) == 0:
        return 0.0
    i = int(beyond[0])
    middle = s[i] / m[i]
    rest = (s[i] ** 2 - bound**2 * (q[i] + square)) / max(m[i] * (m[i] - bound**2), _TINY)
    return float(np.clip(middle - math.sqrt(max(middle**2 - rest, 0.0)), n[i + 1], n[i]))


def _only(y: Vector, kept: NDArray[np.intp]) -> Vector:
    x = np.zeros_like(y)
    x[kept] = y[kept]
    return x


def ascend(
    op: _core.Operator, choice: Supports, rule: Rule, index: NDArray[np.intp], entries: NDArray[Any],
    max_iter: int, tol: float, hook: Report | None, worth: Worth = lambda quadratic, _: quadratic,
) -> tuple[int, NDArray[np.intp], NDArray[Any], float, float, int]:  # fmt: skip
    """x <- the rule of A x over its norm, until the objective rises no more; the best x met.

    Returns status, as the kernels do, index, entries, objective, x'Ax and the number of iterations.
    """
    x, clock = np.zeros(op.p), ProgressClock(hook)
    x[index] = entries
    if choice.grouped and len(index) == 1:  # a variable stands for its group
        members = choice.variables(choice.units(index))
        if len(members) <= largest_submatrix(op):
            x[members] = np.linalg.eigh(op.submatrix(members).astype(np.float64))[1][:, -1]
    x = choice.oriented(x)
    failed = -1, index, entries, -math.inf, -math.inf, 0
    if max_iter == 0 and x.any():
        support, x = rule(x, float(x @ x))
    elif x.any():
        support = np.flatnonzero(x)
    if not x.any():
        return failed
    x /= np.linalg.norm(x)
    best: tuple[NDArray[np.intp], Vector, float, float] | None = None
    status, n_iter = 1, 0
    while True:
        nonzero = np.flatnonzero(x)
        v = x[nonzero].astype(op.dtype)
        y = op.apply(nonzero, v).astype(np.float64)
        quadratic = float(v @ y[nonzero])
        value = worth(quadratic, x)
        if n_iter > 0 or max_iter == 0:
            rise = math.inf if best is None else value - best[2]
            if best is None or rise > 0:
                best = support, x, value, quadratic
            if not rise > tol * abs(quadratic):
                status = 0
                break
        if n_iter == max_iter or clock(n_iter):
            break
        support, x = rule(y, quadratic)
        norm = float(np.linalg.norm(x))
        n_iter += 1
        if not norm > 0 and best is not None:
            break
        if not norm > 0:
            return failed
        x /= norm
    if best is None:
        return failed
    support, x, value, quadratic = best
    return status, support, x[support].astype(op.dtype), value, quadratic, n_iter
