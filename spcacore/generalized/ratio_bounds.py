"""Upper bounds on x'Ax/x'Bx over x with few nonzeros, and on canonical correlations.

For a definite B, no x with at most k nonzeros has a ratio above t exactly where no principal submatrix of
order k of N = tB - A has a negative eigenvalue. The tree of branch and bound (solvers/exact_tree.py) searches
for one, at the largest ratio t that is known; where x'Nx >= -e on the supports of a node, their ratios are at
most t + e/beta, beta the smallest eigenvalue of B. Where that tree does not end, others at larger t may.

For any Y without diagonal, of magnitudes of at most rho, |x'Yx| <= rho (k - 1) x'x. So the ratio is at most
lambda_1 of the pencil (A - Y + rho (k - 1) I, B), with B = I the relaxation of sparse principal components.
Y is found for A - tB (shaped.c), and t lowered to the bound that it gives (Dinkelbach's
iteration).

Canonical pairs are the pencil ([0 C; C' 0], [B_x 0; 0 B_y]) with k_x nonzeros of the one part and k_y of the
other: a node that has all of a part leaves out the rest of it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from .._limits import (
    CERTIFIED_ITERATIONS,
    CERTIFIED_NODES,
    CERTIFIED_ORDER,
    CERTIFIED_ROUNDS,
    CERTIFIED_TOL,
    CERTIFIED_TREES,
)
from .._types import Array, Index
from ..linalg.eigen import all_eigenpairs
from ..linalg.pencil import PencilBasis, largest_value, whitening
from ..linalg.scaling import EPS, descending, largest_magnitude
from ..solvers.exact_tree import Search
from ..solvers.semidefinite import solve_shaped
from ..solvers.solution import ProgressClock, Report
from ..supports.admissible import Supports
from .pencil import Pencil


def refuse_many(p: int) -> None:
    if p > CERTIFIED_ORDER:
        raise ValueError(f"a certificate takes at most {CERTIFIED_ORDER} variables, not {p}")


def pencil_bounds(
    pencil: Pencil, k: int, nodes: int = CERTIFIED_NODES, start: Index | None = None,
    hook: Report | None = None,
) -> dict[str, float]:  # fmt: skip
    """Of the deflated pencil, in its units, by name; a start is a support."""
    active = pencil.active
    k = min(k, len(active))
    spectral = pencil.bound()
    A, B = pencil.A.block(active), pencil.B.block(active)
    support = None if start is None else np.searchsorted(active, start)
    return _bounds(A, B, k, spectral, support, nodes, None, hook)


def pair_bounds(
    A: Array, B: Array, parts: tuple[int, int, int], nodes: int = CERTIFIED_NODES, hook: Report | None = None
) -> dict[str, float]:
    """On the correlation of a pair, by name: a pencil divided at a place, with so many of each part."""
    bounds = _bounds(A, B, sum(parts[1:]), None, None, nodes, parts, hook)
    return {name: min(value, 1.0) for name, value in bounds.items()} or {"spectral": 1.0}


def _bounds(
    A: Array,
    B: Array,
    k: int,
    spectral: float | None,
    support: Index | None,
    nodes: int,
    parts: tuple[int, int, int] | None,
    hook: Report | None,
) -> dict[str, float]:
    """By name, allowing for rounding; both matrices whole. Where the hook is true, those that are known.

    With u = EPS/2, LAPACK's eigenvalues are off by at most 2 p u of a norm, which is at most p times the
    largest entry: those of B by 2 p u top. T'MT, for T'T of norm 1/least, is off by as much and by gamma_p of
    the sums of which it is made; T'BT of I by 2 p u top/least, which moves a ratio by that share of it.
    `rounding` = 32 p^2 u is more than all of these.
    """
    clock = ProgressClock(hook)
    mu, U = all_eigenpairs(B)
    top, rounding = float(mu[-1]), 16 * len(B) ** 2 * EPS
    least = float(mu[0]) - rounding * top
    if not least > 1e4 * rounding * top:
        return {} if spectral is None else {"spectral": spectral + rounding * (1 + abs(spectral))}

    T = whitening(mu, U, mu > 0)

    def largest(M: Array) -> float:
        value = largest_value(M, T)
        return value + rounding * (largest_magnitude(M) + abs(value) * top) / least

    out = {"spectral": largest(A)}
    tree = _Tree(A, B, k, least, parts, support)
    tree.run(nodes, clock, 64)
    if not tree.open():
        return out | {"search": tree.upper()}
    out["relaxation"] = _relaxed(A, B, k, tree.value, out["spectral"], largest, clock)
    return out | {"search": _searched(tree, min(tree.upper(), out["relaxation"]), nodes, clock)}


def _relaxed(
    A: Array, B: Array, k: int, known: float, bound: float, largest: Callable[[Array], float], clock: Report
) -> float:
    """Dinkelbach's iteration, from a ratio that is known and from bounds."""
    p, level = len(A), known
    for _ in range(CERTIFIED_ROUNDS):
        M = A - level * B
        shift = largest_magnitude(M) * np.eye(p)  # so that the tolerance is a share of the entries
        limits = CERTIFIED_ITERATIONS, CERTIFIED_TOL, clock
        lowest = solve_shaped(M + shift, Supports.any_of(p, k), np.arange(p), k, 0.0, *limits)[-1]
        before, bound = bound, min(bound, largest(lowest - shift + level * B))
        if level == before and bound > before - 1e-4 * abs(before):
            break
        level = bound
    return bound


def _searched(tree: _Tree, bound: float, nodes: int, clock: Report) -> float:
    """By trees at ratios between the largest that is known and the bound."""
    best = bound
    for _ in range(CERTIFIED_TREES):
        other = tree.above((tree.value + best) / 2)
        other.run(nodes, clock, 64)
        tree.value, best = max(tree.value, other.value), min(best, other.upper())
        if not best > tree.value + 1e-6 * abs(tree.value):
            break
    return best


class _Tree(Search):
    """The tree for a pencil; of two parts, divided at a place, with so many variables of each."""

    def __init__(
        self, A: Array, B: Array, k: int, least: float, parts: tuple[int, int, int] | None,
        support: Index | None, floor: float = -np.inf,
    ):  # fmt: skip
        self.B, self.least, self.parts, self.floor = B, least, parts, floor
        super().__init__(A, k, _first(A, B, k, parts) if support is None else np.asarray(support))
        self.gain = float(1 / least)

    def above(self, floor: float) -> _Tree:
        """A tree that looks for ratios above that alone."""
        return _Tree(self.A, self.B, self.k, self.least, self.parts, self.index, floor)

    def _root_bound(self, check_limits: Callable[[], object]) -> float:
        return np.inf

    def _update_incumbent(self, support: Index) -> bool:
        x, value = _leading(self.A, self.B, support)
        if not value > self.value:
            return False
        self.index, self.vector, self.value = support, x, value
        return True

    def _set_level(self) -> None:
        """N = level B - A, definite but for rounding on the supports that do not beat the level."""
        level = max(self.value, self.floor)
        N, diagonal = level * self.B - self.A, np.diag_indices_from(self.A)
        size = largest_magnitude(N[diagonal]) + abs(level) * float(self.B.max())  # |A| is not above it
        margin = 16 * (self.k + 4) ** 2 * EPS * size
        N[diagonal] += margin
        self.N, self.pruning_level = N, level + 2 * margin / self.least

    def _keep(self, bound: float, rows: NDArray[np.uint8], excess: Array) -> bool:
        if self.parts is not None:
            feasible = np.array([self._close(row) for row in rows], bool)
            rows, excess = rows[feasible], excess[feasible]
        return super()._keep(bound, rows, excess)

    def _close(self, variables: NDArray[np.uint8]) -> bool:
        """Leave out the rest of a part that is complete; whether no part has too many variables."""
        assert self.parts is not None
        first, *counts = self.parts
        for part, most in zip((variables[:first], variables[first:]), counts, strict=True):
            given = np.count_nonzero(part == 2)
            if given > most or np.count_nonzero(part) < most:
                return False
            if given == most:
                part[part == 1] = 0
        return True


def _leading(A: Array, B: Array, S: Index) -> tuple[Array, float]:
    """The leading x on a support, and its value."""
    mu, U = all_eigenpairs(B[np.ix_(S, S)])
    basis = PencilBasis.of(A[np.ix_(S, S)], mu, U, mu > 0)
    return basis.W[:, 0], float(basis.eigenvalues[0])


def _first(A: Array, B: Array, k: int, parts: tuple[int, int, int] | None) -> Index:
    """The variables of most weight in the leading eigenvector."""
    order = descending(np.abs(_leading(A, B, np.arange(len(A)))[0]))
    if parts is None:
        return np.sort(order[:k])
    first, kx, ky = parts
    return np.sort(np.concatenate([order[order < first][:kx], order[order >= first][:ky]]))
