"""Supports of several components chosen together: one set for all, sets without a common variable, or one
number of nonzeros for all.

All searches work on A of some variables: of all, where there are not many. Else they are at first those of
largest variance, of largest entries in the leading eigenvectors, and of components sought in turn. Others
join whose product `A v` exceeds the least one in the support of a loading v, and the search goes on from
there until there are none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._limits import (
    ACROSS_CANDIDATES,
    ACROSS_CHECKS,
    ACROSS_ENTRANTS,
    ACROSS_EXCESS,
    ACROSS_ORDER,
    BOUND_ENTRIES,
    BOUND_ORDER,
    EXACT_ORDER,
    JOINT_ORDER,
)
from .._messages import counted
from .._validation import Hook, integer
from ..linalg.eigen import leading_eigenvectors
from ..linalg.orthogonal import fix_sign
from ..operators.problem import Problem, of_matrix
from ..progress import Progress
from ..solvers.base import hook_of_component
from ..solvers.certificates import joint_bounds
from ..solvers.share import Share
from ..solvers.solution import Solution
from ..supports.admissible import Supports
from .bordered_sums import Array, Index, Steps, leading_sum
from .budget import best_budget, even_split
from .common_support import best_common, bound_of, prove
from .common_units import CommonUnits
from .disjoint_supports import best_disjoint
from .disjoint_units import DisjointUnits
from .orthogonal_search import Loading, in_turn
from .request import Request

__all__ = ["bounds_together", "check_sizes", "search_together", "tell_found"]
__dir__ = __all__.copy


def check_sizes(
    request: Request, problem: Problem, r: int, several: list[tuple[Any, ...]]
) -> list[tuple[Any, ...]]:
    """The numbers of variables of the components, given r and p; an error where there are too few."""
    if not request.together:
        return several
    support, total, choice = request.support, request.total, problem.choice
    if problem.diagonal is None:
        raise ValueError("supports chosen together need the entries of X; an operator offers only products")
    if request.method.name == "branch_and_bound" and problem.p > EXACT_ORDER:
        raise ValueError(f"branch_and_bound takes at most {EXACT_ORDER} variables, not {problem.p}")
    if choice is not None and choice.shapes and problem.p > ACROSS_ORDER:
        raise ValueError(
            f"{choice.shaping} with supports chosen together is for at most {ACROSS_ORDER} variables, not "
            f"{problem.p}"
        )
    what, low, p, joint = "variable", 1, problem.p, ""
    if choice is not None:
        low, p = choice.bounds
        what = "group" if choice.grouped and not choice.counts_variables else what
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
        variables = sizes[0] if choice is None else choice.most_variables(sizes[0])
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
    problem: Problem, solver: Any, request: Request, r: int, hook: Hook | None,
    found: list[Solution],
) -> str | None:  # fmt: skip
    """Append to `found` the components; a warning where that is less than r."""
    problem = problem.unscreened()
    sizes, exact = request.cardinality, request.method.name == "branch_and_bound"
    if hook is not None and hook.ended:
        return None
    assert problem.diagonal is not None
    if not problem.diagonal.any():
        return problem.exhausted(0, r)
    told = hook_of_component(hook, 0, r)
    steps = Steps(getattr(solver, "max_iter", 1000), lambda done: told is not None and bool(told(done)))
    proved: list[float] = []

    def of_some(A: Array, active: Index, before: list[Loading]) -> list[Loading]:
        if problem.choice is not None and problem.choice.shapes:
            return _of_units(problem, problem.choice, A, solver, request, r, steps, proved)
        begin = [np.searchsorted(active, index) for index, _ in before]
        if request.support == "common":
            k = sizes[0]
            S = best_common(A, k, r, steps, begin[:1], np.random.default_rng(request.seed))
            if exact:
                proof = prove(
                    A, k, r, S, steps, tol=solver.tol, seconds=solver.time_limit, nodes=solver.node_limit
                )
                S = proof.index
                proved[:] = [proof.upper, float(proof.complete)]
            return _leading(problem, A, S, active[S], r)
        total = request.total
        start = [(S, v) for S, (_, v) in zip(begin, before, strict=True)]
        if request.support == "disjoint" or not before:
            split = sizes if sum(sizes) <= len(A) else even_split(len(A), r)
            sets, sure = best_disjoint(A, split, steps, total is not None, request.seed, begin or None)
            start = [(S, np.linalg.eigh(A[np.ix_(S, S)])[1][:, -1]) for S in sets]
        if request.support == "disjoint":
            if sure and len(active) == problem.p:
                proved[:] = [sum(leading_sum(A, S, 1) for S in sets), 1.0]
            return start
        assert total is not None
        inside, seed = of_matrix(problem, A), request.seed
        return best_budget(inside, total, r, [start], steps, seed, bool(before))[0]

    loadings = _among_some(problem, request, r, exact, of_some)
    done = not steps.over and (not exact or bool(proved[1]))
    excess = ACROSS_EXCESS.of(problem.operator.dtype)
    upper = proved[0] * (1 + excess) if proved else None
    new = [_solution(problem, x, steps.done, done, upper) for x in loadings]
    found += _ordered(problem, [x for x in new if x.objective > problem.noise(x.index)], request)
    tell_found(problem, found, r, hook)
    if len(found) < r:
        return problem.exhausted(len(found), r)
    return None


def _leading(problem: Problem, A: Array, S: Index, index: Index, r: int) -> list[Loading]:
    """The leading eigenvectors of A on S, which are variables `index`, of more than rounding."""
    values, V = np.linalg.eigh(A[np.ix_(S, S)])
    left = values[::-1][:r] > problem.noise(index)
    return [(S, v) for v, keep in zip(V[:, ::-1].T[:r], left, strict=True) if keep]


def _of_units(
    problem: Problem, choice: Supports, A: Array, solver: Any, request: Request, r: int, steps: Steps,
    proved: list[float],
) -> list[Loading]:  # fmt: skip
    """Loadings that respect what is known of the variables; a proof is put into `proved`."""
    sizes, total, seed = request.cardinality, request.total, request.seed
    if request.support == "common":
        search = CommonUnits(A, choice, sizes[0], r, steps)
        units = search.best(seed)
        S = search.variables(units)
        if request.method.name == "branch_and_bound":
            limits = {"seconds": solver.time_limit, "nodes": solver.node_limit}
            proof = search.prove(units, tol=solver.tol, **limits)
            S = proof.index
            proved[:] = [proof.upper, float(proof.complete)]
        return _leading(problem, A, S, S, r)
    if request.support == "disjoint":
        loadings, sure = DisjointUnits(A, choice, sizes, total is not None, steps).best(seed)
        if sure:
            proved[:] = [sum(float(x @ A[np.ix_(S, S)] @ x) for S, x in loadings), 1.0]
        return [(S, x) for S, x in loadings if x.any()]
    assert total is not None
    return best_budget(of_matrix(problem, A), total, r, [], steps, seed, False)[0]


def tell_found(problem: Problem, found: list[Solution], r: int, hook: Hook | None) -> None:
    """Progress of components that were found together."""
    for t, x in enumerate(found):
        if hook is not None:
            hook(Progress(t, r, x.n_iter, float(problem.in_units(x.objective))))


def _solution(problem: Problem, x: Loading, n_iter: int, done: bool, upper: float | None) -> Solution:
    index, entries = x
    kept = np.abs(entries) > 0
    index = index[kept]
    entries = (entries[kept] / np.linalg.norm(entries[kept])).astype(problem.operator.dtype)
    signed = problem.choice is not None and problem.choice.signs is not None
    entries = problem.choice.sign(index, entries) if signed and problem.choice else fix_sign(entries)
    value = float(entries @ problem.operator.apply(index, np.ascontiguousarray(entries))[index])
    return Solution(index, entries, value, n_iter, done, upper)


def _ordered(problem: Problem, found: list[Solution], request: Request) -> list[Solution]:
    """By decreasing variance, but that each disjoint component keeps the place of its cardinality."""
    order = sorted(found, key=lambda x: -x.objective)
    if request.support == "common" or request.total is not None:
        return order
    choice, sizes, out = problem.choice, request.cardinality, []
    if choice is not None and choice.shapes and len(found) == len(sizes):
        places = sorted(range(len(sizes)), key=lambda t: (-sizes[t], -found[t].objective))
        of = dict(zip(sorted(range(len(sizes)), key=lambda t: -sizes[t]), places, strict=True))
        return [found[of[t]] for t in range(len(sizes))]
    for size in sizes:
        place = next((i for i, x in enumerate(order) if len(x.index) == size), 0)
        out += [order.pop(place)] if order else []
    return out


def _among_some(
    problem: Problem, request: Request, r: int, every: bool,
    of_some: Callable[[Array, Index, list[Loading]], list[Loading]],
) -> list[Loading]:  # fmt: skip
    """The loadings found among some variables that no other would enter, in the numbers of all."""
    op, p = problem.operator, problem.p
    active = np.arange(p) if every or p <= ACROSS_ORDER else _candidates(problem, request, r)
    loadings: list[Loading] = []
    for _ in range(ACROSS_CHECKS):
        A = op.submatrix(active).astype(np.float64)
        loadings = [(active[S], v) for S, v in of_some((A + A.T) / 2, active, loadings)]
        entrants = _entrants(problem, request, loadings, active)
        if len(entrants) == 0 or len(active) == p:
            break
        active = np.union1d(active, entrants)
    return loadings


def _candidates(problem: Problem, request: Request, r: int) -> Index:
    """Variables to begin with."""
    sizes, common = request.cardinality, request.support == "common"
    wanted = sizes[0] if common else sum(sizes)
    count = min(problem.p, max(ACROSS_CANDIDATES, 2 * wanted))
    values, V = leading_eigenvectors(problem.operator, r)
    weights = [np.asarray(problem.diagonal), np.square(V) @ np.maximum(values, 0), *np.abs(V.T)]
    tops = [np.argsort(-weight, kind="stable")[:count] for weight in weights]
    turn = [index for index, _ in in_turn(problem, sizes, request.seed)]
    return np.unique(np.concatenate([*tops, *turn]))


def _entrants(problem: Problem, request: Request, loadings: list[Loading], active: Index) -> Index:
    """Other variables whose products with a loading exceed the least of its own, those that do so most."""
    if len(active) == problem.p or not loadings:
        return active[:0]
    op = problem.operator
    products = [op.apply(i, np.ascontiguousarray(v, op.dtype)).astype(np.float64) for i, v in loadings]
    excess = np.zeros(problem.p)
    if request.support == "common":
        norm = np.sqrt(np.square(products).sum(axis=0))
        level = norm[loadings[0][0]].min()
        excess = norm / level - 1 if level > 0 else norm
    else:
        for (index, _), product in zip(loadings, np.abs(products), strict=True):
            level = product[index].min()
            excess = np.maximum(excess, product / level - 1 if level > 0 else product)
    excess[active] = 0
    order = np.argsort(-excess, kind="stable")[:ACROSS_ENTRANTS]
    return order[excess[order] > 1e-9]


def _most_variables(problem: Problem, found: list[Solution], request: Request) -> tuple[int, ...]:
    """Variables that each component may have: other groups than those found may be larger."""
    choice = Supports.plain(problem.p) if problem.choice is None else problem.choice
    counts = [choice.cardinality_of(x.index) for x in found]
    for t, k in enumerate(request.cardinality[: len(found)]):
        counts[t] = max(counts[t], 0 if isinstance(k, Share) else k)
    return tuple(choice.most_variables(k) for k in counts)


def bounds_together(problem: Problem, found: list[Solution], request: Request) -> dict[str, float]:
    """Bounds on what all explain together, in the operator's units: of any supports that are allowed."""
    support, total = request.support, request.total
    choice = Supports.plain(problem.p) if problem.choice is None else problem.choice
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
    orthogonal = support != "free" or request.constraint == "orthogonal"
    out = joint_bounds(problem, sizes, orthogonal, relaxed, rows)
    op = problem.operator
    if (
        support == "common"
        and problem.p <= BOUND_ORDER
        and (op.symmetric_form or op.m * problem.p <= BOUND_ENTRIES)
    ):
        A = op.submatrix(np.arange(problem.p)).astype(np.float64)
        bound = bound_of((A + A.T) / 2, np.arange(problem.p), 0, sizes[0], len(found))[0]
        out["levels"] = bound + ACROSS_EXCESS.of(op.dtype) * float(A.trace())
    return out
