"""Supports of several components chosen together: one set for all, sets without a common variable, or one
number of nonzeros for all.

All searches work on A of some variables: of all, where there are not many. Else they are at first those that
components sought in turn promise (models/joint_search). Others join that would enter a loading, and the
search goes on from there until there are none.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from .._limits import (
    ACROSS_CANDIDATES,
    ACROSS_CHECKS,
    ACROSS_EXCESS,
    ACROSS_ORDER,
    BOUND_ORDER,
    EXACT_ORDER,
    JOINT_ORDER,
)
from .._messages import counted
from .._records import replaced
from .._types import Array, Index
from .._validation import Hook, integer, require_entries
from ..choice import Explained
from ..linalg.orthogonal import fix_sign
from ..objectives.eigenvalue_sum import LeadingSum
from ..operators.problem import Problem, of_matrix
from ..operators.submatrix import symmetric_submatrix
from ..progress import Progress
from ..solvers.base import hook_of_component
from ..solvers.certificates import joint_bounds, may_be_formed
from ..solvers.solution import Solution
from ..supports.admissible import Supports
from ..supports.search import Steps
from ..supports.tree import prove
from .joint_search import Loading, Loadings, Sizes, entrants, in_places, in_turn, promising
from .request import Request
from .supports_together import best_budget, best_common, best_disjoint, even_split


def check_sizes(
    request: Request, problem: Problem, r: int, several: list[tuple[Any, ...]]
) -> list[tuple[Any, ...]]:
    """The numbers of variables of the components, given r and p; an error where there are too few."""
    if not request.together:
        return several
    support, total, choice = request.support, request.total, problem.supports
    require_entries(problem, "a choice of supports together")
    if request.method.name == "branch_and_bound" and problem.p > EXACT_ORDER:
        raise ValueError(f"branch_and_bound takes at most {EXACT_ORDER} variables, not {problem.p}")
    if choice.shapes and problem.p > ACROSS_ORDER:
        raise ValueError(
            f"{choice.shaping} with supports chosen together is for at most {ACROSS_ORDER} variables, not "
            f"{problem.p}"
        )
    low, p = choice.bounds
    what = "group" if choice.grouped and not choice.counts_variables else "variable"
    joint = choice.why() if choice.shapes else ""
    if total is not None:
        most = p if support == "disjoint" else r * p
        integer(
            total, "Total", r * low, most,
            joint or f": {counted(r, 'component')} of {counted(p, what)}, each with one at least",
        )  # fmt: skip
        return [even_split(total, r)] * len(several)
    for sizes in several:
        if support == "common" and len(set(sizes)) > 1:
            raise ValueError(
                "support='common' uses one set for all components: cardinality must be one number"
            )
        variables = choice.most_variables(sizes[0])
        if support == "common" and variables < r:
            raise ValueError(
                f"{counted(r, 'component')} on {counted(variables, 'common variable')}: no more components "
                "than variables are orthogonal; raise cardinality"
            )
        if support == "disjoint" and sum(sizes) > p:
            raise ValueError(
                f"disjoint supports of {counted(sum(sizes), what)} in all: X has {counted(p, what)}"
            )
    return several


def search_together(
    problem: Problem, solver: Any, request: Request, r: int, hook: Hook,
    found: list[Solution],
) -> str | None:  # fmt: skip
    """Append to `found` the components; a warning where that is less than r."""
    problem = problem.unscreened()
    sizes, exact = request.cardinality, request.method.name == "branch_and_bound"
    if hook.ended:
        return None
    if not problem.variances.any():
        return problem.exhausted(0, r)
    told = hook_of_component(hook, 0, r)
    steps = Steps(getattr(solver, "max_iter", 1000), lambda done: told is not None and bool(told(done)))
    proved: list[float] = []

    def of_some(A: Array, active: Index, before: Loadings) -> Loadings:
        supports, begin = problem.supports, [np.searchsorted(active, index) for index, _ in before]
        if len(active) < problem.p:
            supports = replaced(Supports.any_of(len(active)), allowed=supports.allowed[active])
        masks = [supports.mask(index) for index in begin]
        if request.support == "common":
            objective = LeadingSum(A, supports.within(sizes[0]), r)
            _, units = best_common(objective, steps, masks[:1], np.random.default_rng(request.seed))
            if exact:
                end = time.monotonic() + solver.time_limit

                def clock(nodes: int) -> bool:
                    return time.monotonic() > end or steps.report(nodes)

                limit = np.inf if solver.node_limit is None else solver.node_limit
                proof = prove(objective, units, tol=solver.tol, node_limit=limit, clock=clock)
                units = proof.units
                proved[:] = [proof.upper, float(proof.complete)]
            S = supports.index(units)
            return _leading(problem, A, S, active[S], r)
        total = request.total
        start = [(S, v) for S, (_, v) in zip(begin, before, strict=True)]
        if request.support == "disjoint" or not (before or supports.shapes):
            split = sizes if sum(sizes) <= len(A) else even_split(len(A), r)
            sets, one, value, sure = best_disjoint(
                A, supports, split, steps, total is not None, request.seed, masks or None
            )
            start = [one.loading(units)[:2] for units in sets if units.any()]
            if request.support == "disjoint":
                if sure and len(active) == problem.p:
                    proved[:] = [value, 1.0]
                return [(S, x) for S, x in start if x.any()]
        assert total is not None
        inside, seed = of_matrix(problem, A, supports), request.seed
        return best_budget(inside, total, r, [start] if start else [], steps, seed, bool(before))[0]

    loadings = _among_some(problem, request, r, exact, of_some)
    done = not steps.over and (not exact or bool(proved[1]))
    excess = ACROSS_EXCESS.of(problem.operator.dtype)
    upper = proved[0] * (1 + excess) if proved else None
    new = [_solution(problem, x, steps.done, done, upper) for x in loadings]
    found += _ordered([x for x in new if x.objective > problem.noise(x.index)], request)
    tell_found(problem, found, r, hook)
    if len(found) < r:
        return problem.exhausted(len(found), r)
    return None


def _leading(problem: Problem, A: Array, S: Index, index: Index, r: int) -> Loadings:
    """The leading eigenvectors of A on S, which are variables `index`, of more than rounding."""
    values, V = np.linalg.eigh(A[np.ix_(S, S)])
    left = values[::-1][:r] > problem.noise(index)
    return [(S, v) for v, keep in zip(V[:, ::-1].T[:r], left, strict=True) if keep]


def tell_found(problem: Problem, found: list[Solution], r: int, hook: Hook) -> None:
    """Progress of components that were found together."""
    for t, x in enumerate(found):
        hook(Progress(t, r, x.n_iter, float(problem.in_units(x.objective))))


def _solution(problem: Problem, x: Loading, n_iter: int, done: bool, upper: float | None) -> Solution:
    index, entries = x
    kept = np.abs(entries) > 0
    index = index[kept]
    entries = (entries[kept] / np.linalg.norm(entries[kept])).astype(problem.operator.dtype)
    supports = problem.supports
    entries = fix_sign(entries) if supports.signs is None else supports.sign(index, entries)
    value = float(entries @ problem.operator.apply(index, np.ascontiguousarray(entries))[index])
    return Solution(index, entries, value, n_iter, done, upper)


def _ordered(found: list[Solution], request: Request) -> list[Solution]:
    """By decreasing variance, but that each disjoint component keeps the place of its cardinality."""
    sizes = request.cardinality
    if request.support == "common" or request.total is not None or len(found) < len(sizes):
        sizes = (0,) * len(found)
    return [found[t] for t in in_places([x.objective for x in found], sizes)]


def _among_some(
    problem: Problem, request: Request, r: int, every: bool,
    of_some: Callable[[Array, Index, Loadings], Loadings],
) -> Loadings:  # fmt: skip
    """The loadings found among some variables that no other would enter, in the numbers of all."""
    p, sizes, common = problem.p, request.cardinality, request.support == "common"
    active, loadings = np.arange(p), Loadings()
    if not every and p > ACROSS_ORDER:
        wanted = sizes[0] if common else sum(sizes)
        count = 4 * max(ACROSS_CANDIDATES, wanted)
        active = promising(problem, in_turn(problem, sizes, request.seed), wanted, count)
    for _ in range(ACROSS_CHECKS):
        A = symmetric_submatrix(problem.operator, active)
        loadings = [(active[S], v) for S, v in of_some(A, active, loadings)]
        if len(active) == p or not loadings:
            break
        joining = entrants(problem, loadings, active, request.support or "disjoint")
        if len(joining) == 0:
            break
        active = np.union1d(active, joining)
    return loadings


def _most_variables(problem: Problem, found: list[Solution], request: Request) -> Sizes:
    """Variables that each component may have: other groups than those found may be larger."""
    choice = problem.supports
    counts = [choice.cardinality_of(x.index) for x in found]
    for t, k in enumerate(request.cardinality[: len(found)]):
        counts[t] = max(counts[t], 0 if isinstance(k, Explained) else k)
    return tuple(choice.most_variables(k) for k in counts)


def bounds_together(problem: Problem, found: list[Solution], request: Request) -> dict[str, float]:
    """Bounds on what all explain together, in the operator's units: of any supports that are allowed."""
    support, total = request.support, request.total
    choice = problem.supports
    sizes, rows, relaxed = _most_variables(problem, found, request), None, problem.p <= JOINT_ORDER
    if support == "common":
        rows = choice.most_variables(request.cardinality[0])
        sizes = (rows,) * len(found)
    elif total is not None:
        one, relaxed = choice.most_variables(total - len(found) + 1), False
        rows = total if one == total - len(found) + 1 else one * len(found)
        sizes = (min(one, problem.p),) * len(found)
    elif support == "disjoint":
        sizes = tuple(choice.most_variables(k) for k in request.cardinality[: len(found)])
    apart = support != "free" or request.constraint == "orthogonal"  # what others explain exceeds Tr(V'AV)
    out = joint_bounds(problem, sizes, "orthogonal" if apart else None, relaxed, rows)
    op = problem.operator
    if support == "common" and may_be_formed(op, BOUND_ORDER):
        A = symmetric_submatrix(op)
        objective = LeadingSum(A, choice.within(request.cardinality[0]), len(found))
        bound = objective.bound(choice.included, choice.allowed & ~choice.included)
        out["levels"] = bound.value + ACROSS_EXCESS.of(op.dtype) * float(A.trace())
    return out
