"""How directions of a pencil are sought: options, where searches begin, and truncated Rayleigh flow.

The flow (Tan, Wang, Liu and Zhang 2018) is `x <- x + eta (Ax/rho - Bx)`, rho = x'Ax/x'Bx, of which the k
largest entries are kept; each step raises rho if `eta lambda_max(B) < 1` and k is large enough.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .. import _core
from .._asked import as_ratio_search
from .._limits import (
    FLOW_NULL,
    FLOW_ROUGH_STEPS,
    FLOW_ROUGH_TOL,
    FLOW_ROUNDS,
    FLOW_STEP_TOL,
    GRADIENT_SUPPORT,
    PENCIL_BACKWARD_ORDER,
    PENCIL_ENTERING,
    PENCIL_ENUMERATED,
    PENCIL_PAIRS,
    PENCIL_START_WORK,
    PENCIL_STARTS,
    PENCIL_SUPPORT,
    PENCIL_SWAP_WORK,
    RISE,
    USUAL_BACKWARD_ORDER,
)
from .._records import record
from .._types import Array, Index
from .._validation import as_seed, check_bool, check_choice, default_cardinality, integer, per_component
from ..linalg.eigen import largest_eigenpairs
from ..objectives.ratio import RatioOfUnits
from ..operators.deflation import DEFLATIONS as ALL_DEFLATIONS
from ..supports.admissible import Supports, Units, knowledge
from ..supports.search import Clock, Steps, backward, forward, forward_ways
from .pencil import Form, Pencil, Unbounded
from .ratio_bounds import refuse_many

DEFLATIONS = {name: one for name, one in ALL_DEFLATIONS.items() if not one.residual}


@record
class Options:
    """How directions are sought."""

    supports: Supports
    cardinality: tuple[int, ...]
    method: str
    strategy: str
    swaps: bool
    deflation: str
    max_iter: int
    tol: float
    seed: int
    certify: bool


def check_options(
    p: int, names: tuple[str, ...] | None, cardinality: Any, n_components: Any, choice: Any, method: Any,
    deflation: Any, certify: Any,
) -> Options:  # fmt: skip
    """Validate what `sparse_eigen` and `sparse_lda` share."""
    given, supports = as_ratio_search(method), Supports.checked(p, names, **knowledge(choice))
    r = integer(n_components, "n_components", 1, p)
    least, most = supports.bounds
    most = min(most, PENCIL_SUPPORT)
    k = per_component(
        min(max(default_cardinality(p), least), most) if cardinality is None else cardinality, "cardinality",
        r, lambda v, name: integer(v, name, least, most, "" if supports.plain else supports.why()),
    )  # fmt: skip
    removal = check_choice(deflation, "deflation", DEFLATIONS)
    if not supports.plain and given.method == "rayleigh_flow":
        raise ValueError(
            "choice cannot be combined with method='rayleigh_flow', which keeps the largest entries of each "
            "step, whichever they are: use method='greedy'"
        )
    if supports.signs is not None and DEFLATIONS[removal].quotient:
        raise ValueError(f"signs cannot be combined with deflation={deflation!r}: leave one out")
    if given.strategy in ("backward", "bidirectional") and p > PENCIL_BACKWARD_ORDER:
        raise ValueError(
            f"strategy={given.strategy!r} takes at most {PENCIL_BACKWARD_ORDER} variables, not {p}: "
            "use strategy='forward'"
        )
    if check_bool(certify, "certify"):
        refuse_many(p)
    return Options(
        supports, k, given.method, given.strategy, given.swaps, removal, given.max_iter, given.tol,
        as_seed(given.rng), bool(certify),
    )  # fmt: skip


# ---- where searches begin -----------------------------------------------------------------------------


def ratio_of(pencil: Pencil, supports: Supports) -> RatioOfUnits:
    """The largest value of the pencil on a support of variables that are not constant."""
    objective = RatioOfUnits(pencil, supports.among(supports.mask(np.flatnonzero(pencil.usable))))
    objective.most_tried = max(PENCIL_ENTERING, int(PENCIL_SWAP_WORK / (4.0 * supports.room**3)))
    return objective


def greedy_searches(objective: RatioOfUnits, pencil: Pencil, strategy: str, clock: Clock) -> Iterator[Units]:
    """The supports that the searches of a strategy find."""
    supports = objective.supports
    k, n = supports.room, len(pencil.active)
    if strategy != "backward":
        yield from forward_ways(objective, clock)
    if strategy in ("backward", "bidirectional"):
        yield backward(objective, clock)
    if strategy != "auto" or k == 1:
        return
    if supports.plain and math.comb(n, k) <= PENCIL_ENUMERATED:
        sets = [supports.mask(np.array(S)) for S in itertools.combinations(pencil.active, k)]
        yield sets[int(np.argmax(objective.most(sets)))]
        return
    if n <= USUAL_BACKWARD_ORDER:
        # the ratio of all variables may have no bound where that of a few has
        with contextlib.suppress(Unbounded):
            yield backward(objective, clock)
    affordable = int(PENCIL_START_WORK / (4 / 3 * k**3 * n))
    starts: Sequence[Sequence[int]]
    if supports.plain and k > 2 and n <= PENCIL_BACKWARD_ORDER:
        starts = best_pairs(pencil, min(PENCIL_PAIRS, affordable))
    else:
        starts = [[first] for first in single_units(objective, min(PENCIL_STARTS, affordable))]
    for start in starts:
        units = supports.included.copy()
        units[list(start)] = True
        with contextlib.suppress(Unbounded):
            yield forward(objective, units, clock)


def single_units(objective: RatioOfUnits, count: int) -> list[int]:
    """Those of the largest ratios, each beside what is included."""
    supports = objective.supports
    begin = np.array(supports.included)
    active = np.flatnonzero(supports.joining(begin))
    ratio = objective.with_each(begin, active) if len(active) else np.zeros(0)
    return [*active[np.argsort(-ratio, kind="stable")[:count]]]


def best_pairs(pencil: Pencil, count: int, apart: Array | None = None) -> list[tuple[int, int]]:
    """The pairs of variables with the largest values, each variable in two of them at most.

    Where variables are of two parts, `apart`, each pair has one of each.  The values are the larger roots of
    det(A - v B) = 0 on the pairs.
    """
    active = pencil.active
    A, B = pencil.A.block(active), pencil.B.block(active)
    a, b = A.diagonal(), B.diagonal()
    square = np.multiply.outer(b, b) - B * B
    middle = np.multiply.outer(a, b) / 2 + np.multiply.outer(b, a) / 2 - A * B
    last = np.multiply.outer(a, a) - A * A
    root = np.sqrt(np.maximum(middle * middle - square * last, 0))
    regular = square > pencil.least * np.multiply.outer(b, b)
    value = np.where(regular, (middle + root) / np.where(regular, square, 1), -np.inf)
    first, second = np.triu_indices(len(active), 1)
    if apart is not None:
        across = apart[active[first]] != apart[active[second]]
        first, second = first[across], second[across]
    value, used, chosen = value[first, second], np.zeros(len(active), int), list[tuple[int, int]]()
    for place in np.argsort(-value, kind="stable"):
        pair = [first[place], second[place]]
        if len(chosen) == count or not value[place] > -np.inf:
            break
        if (used[pair] < 2).all():
            used[pair] += 1
            chosen.append((int(active[pair[0]]), int(active[pair[1]])))
    return chosen


# ---- truncated Rayleigh flow --------------------------------------------------------------------------


class _BySlope(RatioOfUnits):
    """The same, where the variable of the largest slope of the ratio alone may join."""

    def entering(self, units: Units, others: Index) -> Index:
        S, basis = self._basis(units)
        if len(basis.eigenvalues) == 0 or len(others) == 0:
            return others if len(S) == 0 else others[:1]
        # |Ax - rho Bx| for x'Bx = 1, in units in which B_jj = 1
        A, B = self._block(S, others)
        slope = np.abs(basis.W[:, 0] @ (A - basis.eigenvalues[0] * B))
        return others[[np.argmax(slope / np.sqrt(np.maximum(self.quotient.G_diagonal[others], 1e-3)))]]


def flows(
    objective: RatioOfUnits, pencil: Pencil, options: Options, steps: Steps
) -> Iterator[tuple[Units, bool]]:
    """From single variables, from what a search by slopes selects, and from a dense vector; whether each
    ended by itself."""
    active, supports = pencil.active, objective.supports
    k = supports.room
    step = 0.9 / _step_bound(pencil.B0, active, options.seed)

    def refined(S: Index, v: Array | None) -> tuple[Units, bool]:
        """The flow, then the best values on its support, from which it runs again, while that pays."""
        best = pencil.leading(S) if v is None else None
        for _ in range(FLOW_ROUNDS):
            if best is not None:
                S, v = best.index, best.entries
            assert v is not None
            S, v, done = _flow(pencil, S, v, k, step, options.max_iter, options.tol, steps)
            new = replace(pencil.leading(S), converged=done)
            if best is not None and not new.objective > best.objective * (1 + RISE):
                best = replace(best, converged=best.converged and done)
                break
            best = new
        assert best is not None
        return supports.mask(best.index), best.converged

    begun = [np.sort(np.array(single_units(objective, k), np.intp))]
    if k <= GRADIENT_SUPPORT:
        begun.append(supports.index(forward(_BySlope(pencil, supports))))
    for S in begun:
        if len(S):  # which deflation may leave without a quotient
            yield refined(S, None)
    S, v = active, _dense_start(pencil, options.seed)
    for size in (8 * k, 4 * k, 2 * k):
        if size < len(active):
            S, v, _ = _flow(pencil, S, v, size, step, FLOW_ROUGH_STEPS, FLOW_ROUGH_TOL, steps)
    yield refined(S, v)


def _flow(
    pencil: Pencil, S: Index, v: Array, k: int, least: float, max_iter: int, tol: float,
    steps: Steps,
) -> tuple[Index, Array, bool]:  # fmt: skip
    """Steps of at least `least`; longer ones for as long as they raise the ratio."""
    v = v / (np.linalg.norm(v) or 1.0)
    Av, Bv = pencil.A.matvec(v, S), pencil.B.matvec(v, S)
    least_square = FLOW_NULL if pencil.B is pencil.B0 else pencil.least
    rho = _quotient(v, S, Av, Bv, least_square)
    if rho == -np.inf:  # deflation has left nothing of B there
        kept = np.sort(_core.select_largest(v, min(k, len(v))))
        return S[kept], v[kept], True
    eta = least
    for n_iter in range(1, max_iter + 1):
        direction = Av - rho * Bv
        scale = abs(rho) if abs(rho) > 1e-8 else 1.0
        while True:
            y = (eta / scale) * direction
            y[S] += v
            T = np.sort(_core.select_largest(y, k))
            T = T[y[T] != 0]
            if not len(T):
                return S, v, True
            u = y[T] / np.linalg.norm(y[T])
            Au, Bu = pencil.A.matvec(u, T), pencil.B.matvec(u, T)
            new = _quotient(u, T, Au, Bu, least_square)
            if new >= rho or eta <= least:
                break
            eta = max(eta / 4, least)
        same = np.array_equal(S, T)
        rise = new - rho
        if rise < 0 and len(S) <= k:
            return S, v, True
        if new == -np.inf:
            return T, u, True
        S, v, Av, Bv, rho = T, u, Au, Bu, new
        eta *= 2
        if steps(n_iter) and len(S) <= k:
            return S, v, False
        if same and rise <= tol * abs(rho):
            return S, v, True
    return S, v, False


def _quotient(v: Array, S: Index, Av: Array, Bv: Array, least_square: float) -> float:
    square = float(v @ Bv[S])
    return float(v @ Av[S]) / square if square > least_square else -np.inf


def _step_bound(B: Form, active: Index, seed: int) -> float:
    """A little above the largest eigenvalue of B, by Lanczos iteration."""
    if len(active) <= 32:
        return float(np.linalg.eigvalsh(B.block(active))[-1])
    from scipy.sparse.linalg import LinearOperator

    v = np.random.default_rng(seed).standard_normal(B.p)
    operator = LinearOperator((B.p, B.p), dtype=np.float64, matvec=lambda x: B.matvec(x.ravel()))
    values, _ = largest_eigenpairs(operator, 1, v0=v, tol=FLOW_STEP_TOL)
    return (1 + 2 * FLOW_STEP_TOL) * float(values[0])


def _dense_start(pencil: Pencil, seed: int) -> Array:
    """Nearly the leading eigenvector of A, in units in which B has diagonals near 1."""
    v = np.random.default_rng([seed, 1]).standard_normal(pencil.A.p)
    for _ in range(20):
        w = pencil.A.matvec(v)
        if not w[pencil.active].any():
            break
        v = w / np.linalg.norm(w)
    return v[pencil.active]
