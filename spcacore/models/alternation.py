"""Components one after another: a solver finds one, a deflation removes it, and so on.

The search is `search`; `prepare` checks the arguments of `sparse_pca` for it. Supports that are chosen
together (joint_supports), and solvers that find all components at once, are reached from here too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from .._limits import EXACT_ORDER, EXACT_SLACK, REFINEMENT_ROUNDS, RISE
from .._messages import counted, warn, warn_not_converged
from .._records import replaced
from .._validation import Hook, integer, per_component, require_entries
from ..choice import Explained
from ..linalg.orthogonal import orthogonal_part
from ..linalg.scaling import eps_of, with_entries
from ..operators.deflation import DEFLATIONS, DeflatedOperator
from ..operators.gram import is_rounding
from ..operators.inputs import as_problem, in_order
from ..operators.problem import Problem, usual_cardinality
from ..progress import Progress
from ..solvers.base import (
    check_sparsity,
    check_working_set,
    hook_of_component,
    limit_of,
    shares_of,
)
from ..solvers.certificates import upper_bounds
from ..solvers.exact import ExactSearch, solve_to_optimality
from ..solvers.l1_bounded import left_vector
from ..solvers.refitting import same_support
from ..solvers.semidefinite import own_bound
from ..solvers.solution import Ended, Solution, Tally, ended
from ..solvers.solver import Solver, fewest_variables
from .joint_search import as_matrix, pairs_of
from .joint_supports import check_sizes, search_together, tell_found
from .refinement import (
    NOT_CONVERGED,
    refined,
    refuse_constraint,
    with_sign,
)
from .request import Request
from .variance import DEFINITIONS, operator_variances


def prepare(
    X: Any, n_components: Any, sparsities: Sequence[Any], **options: Any
) -> tuple[Problem, Solver, int, list[Request]]:
    """Check the arguments of `sparse_pca`; return the problem, the solver, r and a request for each sparsity.

    `sparsities` has the values of `cardinality` (or of the l1 bound, or the penalty) along a path; None
    stands for the default. Each request has as `sparsity` r numbers, one for each component. If
    `n_components` is a share, r is the largest number of components that X may have.
    """
    # What can be checked without X
    request = Request.checked(n_components, sparsities, **options)
    wanted = request.method.sparsity
    center, scale, weight = in_order(X, request.center, request.scale, request.sample_weight)
    request = replaced(request, center=center, scale=scale, sample_weight=weight)
    # X, as an operator with its statistics
    problem = problem_of(X, request)
    request = replaced(request, choice=problem.supports)
    if request.attempts and request.constraint is not None:
        refuse_constraint(problem)
    size = counted(problem.p, "variable")
    if problem.n_samples:
        size = f"{counted(problem.n_samples, 'row')} of {size}"
    # How many components, and how sparse each is
    r = most = problem.most_components
    if request.total_share is None:
        r = integer(n_components, "n_components", 1, most, f": X has {size}")
    elif problem.diagonal is None:
        raise ValueError("n_components as a share needs a total variance, which an operator does not provide")
    usual: float = usual_cardinality(problem)
    if wanted == "l1_bound":  # a unit vector of k equal entries has the l1 norm sqrt(k)
        usual = math.sqrt(usual)
    wished = [usual if one is None else one for one in sparsities]
    several: list[tuple[Any, ...]] = [(1,) * r] * len(sparsities)
    if request.total is None:
        several = [check_sparsities(request.solver, given, r, problem) for given in wished]
    several = check_sizes(request, problem, r, several)
    # The solver, which needs X and the options
    solver = make_solver(problem, request)
    state = DeflatedOperator.from_problem(problem, request.deflation, request.constraint)
    check_working_set(solver, request.screening, state, several[0][0])
    return problem, solver, r, [replaced(request, sparsity=sparsity) for sparsity in several]


def problem_of(X: Any, request: Request) -> Problem:
    """Return X as a `Problem`, read as the request says.

    X need not be the matrix that the request was checked with: resampling passes other rows of it.
    """
    method, together = request.solver, request.together
    needs = method.needs(request.method)
    return as_problem(
        X, kind=request.kind, center=request.center, scale=request.scale,
        sample_weight=request.sample_weight, screening=request.screening,
        missing=method.missing and not together,
        columnwise=not (needs.whole_products or together),
        restrictable=needs.working_set and not together,
        form=not needs.samples, choice=request.choice,
    )  # fmt: skip


def make_solver(problem: Problem, request: Request) -> Solver:
    """Return the solver with its options, checked against X."""
    solver: Solver = request.solver.from_record(problem, request.method)
    if request.certify:
        require_entries(problem, f"certify={request.certify!r}")
    return solver


_FORMING_SPEED = 1e10  # multiplications in a second by which a matrix of all variables is formed, about


def check_sparsities(method: type[Solver], given: Any, r: int, problem: Problem) -> tuple[Any, ...]:
    """Return one number for each of r components, or the share that each is to explain."""
    if isinstance(given, Explained):
        return shares_of(given, r)
    return per_component(given, method.sparsity, r, partial(check_sparsity, method, problem=problem))


def search(
    problem: Problem,
    solver: Solver,
    request: Request,
    known: list[Solution],
    r: int,
    hook: Hook,
    near: Sequence[Solution] = (),
    quick: bool = False,
) -> list[Solution]:
    """Return up to r components, of which the `known` ones need no search, refined where the request says so.

    `near` has components of a similar problem, such as the previous sparsity of a path or other rows. Each
    search also starts from the component of the same position there; with `quick`, from one of the default
    starts besides.
    """
    found: list[Solution] = []
    lacking, limit, report = None, limit_of(solver), hook_of_component(hook, 0, r)
    try:
        # Supports chosen together
        if request.together:
            lacking = search_together(problem, solver, request, r, hook, found)
        # All at once, by a solver that can
        elif (block := solver.together(problem, request.sparsity, [request.seed, 0], report)) is not None:
            found += [replace(x, converged=x.converged and not ended(report)) for x in block]
            tell_found(problem, found, r, hook)
            if len(found) < r:
                lacking = f"{r - len(found)} of the {counted(r, 'component')} vanished under the penalty"
        else:
            # One after another
            state = DeflatedOperator.from_problem(problem, request.deflation, request.constraint_in_turn(r))
            solvers = [solver.near(x, 1 if quick else None) for x in near[:r]]
            solvers += [solver] * (r - len(solvers))
            lacking = _in_turn(state, solvers, request, known, hook, found)
    except Ended:
        pass
    finally:
        if problem.filled is not None:
            problem.filled.restore()
    # Warn of what is missing, and refine
    if lacking is not None:
        warn(lacking)
    if found and hook.ended and (request.together or block is not None):
        limit = counted(max(x.n_iter for x in found), "iteration")
    warn_not_converged([x.converged for x in found], limit)
    return refine_all(problem, found, request, hook) if request.attempts and found else found


def _in_turn(
    state: DeflatedOperator, solvers: list[Solver], request: Request,
    known: list[Solution], hook: Hook, found: list[Solution],
) -> str | None:  # fmt: skip
    """Append one component after another to `found`; return a warning if fewer remain than were asked for.

    `solvers` has one solver for each component: they differ only in where they start. The first components
    come from `known`. After each, the deflation takes A to the matrix that the next search works on.
    """
    r, first_order, problem = len(solvers), state.deflation.first_order, state.problem
    wanted, share = request.total_share, 0.0
    state = state.formed() if solvers[0].forms else state
    for t, solver in enumerate(solvers):
        # Search, in the data again if a formed A has lost this component to rounding
        asked, report = request.sparsity[t], hook_of_component(hook, t, r, whole=True)
        state = replaced(state, seed=(request.seed, t), hook=report)
        if t < len(known):
            new: Solution | None = known[t]
        else:
            find = partial(fewest_variables, solver) if isinstance(asked, Explained) else solver.find
            new = find(state, asked)
            if is_rounding(problem, 0.0 if new is None else new.objective):
                assert problem.data is not None
                problem = problem.data
                state = _after(problem, state, solver, found)
                new = find(state, asked)
            if new is not None and not new.objective > problem.noise(new.index, first_order):
                new = None
        # If nothing is left, say why
        if new is None:
            what = "no variance" if state.constraint is None and not solver.orthogonal else "nothing feasible"
            if solver.sparsity == "penalty" and what == "no variance":
                what += " above the penalty"
            if wanted is not None:
                what += f" is left after {counted(t, 'component')}"
                return f"{what}: they explain {share:.4g} of the total, not {wanted:g}"
            return problem.exhausted(t, r).replace("no variance", what)
        # Upper bound, and a better support if the tree finds one; refined components get theirs later
        if request.certify is True and not request.attempts:
            k = _cardinality(state, new, asked)
            better, own = _better_support(state, new, k, request.proof_seconds)
            free = solver.name == "tpower" and request.method.renormalize and state.supports.signs is None
            if t >= len(known) and free and better is not new:
                new = replace(better, entries=with_sign(problem, better.entries))
            if solver.relaxed:
                own = min(own, own_bound(state, k))
            new = _certified(state, new, k, own)
        # Report, and stop if the share of the total variance is reached
        found.append(new)
        done = False
        if wanted is not None:
            V, definition = as_matrix(problem, pairs_of(found)), DEFINITIONS[solver.objective]
            share = float(operator_variances(problem, V, definition).sum()) / (problem.trace or 1)
            done = share >= wanted
        if t >= len(known):
            done |= hook(Progress(t, r, new.n_iter, float(problem.in_units(new.objective))))
        if done:
            return None
        # Deflate
        if t + 1 < r:
            state = _without(state, solver, new)
    if wanted is None:
        return None
    few = f"there are no more than {counted(r, 'component')}"
    return f"{few}: they explain {share:.4g} of the total, not {wanted:g}"


def _without(state: DeflatedOperator, solver: Solver, x: Solution) -> DeflatedOperator:
    """Return the state after the removal of the component x.

    Where the deflation keeps a residual X - d u x' whose u has a bound on its l1 norm, d u is computed here;
    else it is X x.
    """
    bound, image = solver.sample_l1_bound, None
    if bound is not None and state.deflation.residual and not state.operator.symmetric_form:
        u, strength = left_vector(state, x, bound)
        image = u * u.dtype.type(strength)
    noise = partial(state.problem.noise, first_order=state.deflation.first_order)
    return state.deflate(x.index, x.entries, image, noise)


def _after(
    problem: Problem, state: DeflatedOperator, solver: Solver, found: list[Solution]
) -> DeflatedOperator:
    """Return the state of `problem` after the removal of all components found.

    It takes the place of a state whose matrix, formed from the same data, has lost too many digits.
    """
    before = DeflatedOperator.from_problem(problem, state.deflation, state.constraint)
    state = replaced(before, seed=state.seed, hook=state.hook)
    for x in found:
        state = _without(state, solver, x)
    return state


def refine_all(
    problem: Problem,
    found: list[Solution],
    request: Request,
    hook: Hook,
) -> list[Solution]:
    """Return the components after joint refinement: each is solved again, given all the others.

    With ``certify=True`` each also gets an upper bound, given the components before it.
    """
    # Refinement
    sizes = tuple(problem.supports.cardinality_with(x.index) for x in found)
    if not any(isinstance(one, Explained) for one in request.cardinality):
        sizes = (request.cardinality or sizes)[: len(found)]
    start = pairs_of(found)
    loadings, converged = start, False
    if not hook.ended:
        loadings, converged = refined(
            problem, start, sizes, request.constraint, max(request.attempts - 1, 0), REFINEMENT_ROUNDS,
            request.seed, hook,
        )  # fmt: skip
    if not (converged or hook.ended):
        warn(NOT_CONVERGED.format(REFINEMENT_ROUNDS))
    # Certificates: for variances that add up, or for additional variances
    uncorrelated = request.constraint == "uncorrelated"
    removal = DEFLATIONS["projection" if uncorrelated else "generalized"]
    state = DeflatedOperator.from_problem(problem, removal, request.constraint if uncorrelated else None)
    out = []
    for t, (x, size, (index, entries)) in enumerate(zip(found, sizes, loadings, strict=True)):
        entries, converged_too = with_sign(problem, entries), x.converged and converged
        tally = x.tally if np.array_equal(index, x.index) else Tally()
        new = replace(x, index=index, entries=entries, converged=converged_too, proved=False, tally=tally)
        if request.certify is True:
            state = replaced(state, hook=hook_of_component(hook, t, len(found)))
            k = _cardinality(state, new, size)
            _, bound = _better_support(state, new, k, request.proof_seconds)
            new = _certified(state, new, k, bound)
            state = state.deflate(new.index, new.entries)
        out.append(new)
    return out


def _cardinality(state: DeflatedOperator, x: Solution, asked: Any) -> int:
    """Return the cardinality of the supports that an upper bound for x is computed over.

    That is the number asked for, which x may have left unused; else the number of units that x has, where
    included ones count even if their entries are zero.
    """
    if isinstance(asked, int):
        return asked
    return state.supports.cardinality_with(x.index)


def _certified(state: DeflatedOperator, x: Solution, k: int, bound: float) -> Solution:
    """Return x with its objective on the deflated matrix and an upper bound over supports of k variables.

    `bound` is one that is known already. If it does not prove x optimal, the bounds of solvers/certificates
    are computed too.
    """
    if not state.quotient:
        objective = state.objective(x.index, x.entries)
    else:  # q'Aq, since x'Ax/x'Bx may divide rounding by rounding
        q = orthogonal_part(with_entries(state.p, x.index, x.entries), state.basis)
        objective = 0.0 if q is None else float(operator_variances(state.problem, q[:, None], "raw")[0])
    if not bound <= objective * (1 + EXACT_SLACK.of(state.operator.dtype)):
        size = state.supports.most_variables(k)
        bound = min(bound, *upper_bounds(replaced(state, hook=None), size).values())
    if bound <= objective * (1 + 64 * eps_of(state.operator.dtype)):
        bound = objective  # the difference may be rounding
    return replace(x, objective=objective, upper_bound=max(bound, objective))


def _better_support(state: DeflatedOperator, x: Solution, k: int, seconds: float) -> tuple[Solution, float]:
    """Search a tree from x. Return x or a better component, and an upper bound over supports of k variables.

    The bound is infinite where no tree is tried: for all variables, under groups or signs, or where the
    matrix of all variables is too large or takes too long to form.
    """
    p, op = state.p, state.operator
    if x.proved:
        return x, x.objective
    forming = 0.0 if op.symmetric_form else float(op.m) * p**2
    few = k < p <= EXACT_ORDER and forming < seconds * _FORMING_SPEED
    if not (few and state.supports.simple) or ended(state.hook):
        return x, math.inf
    if state.supports.positive:  # a bound without signs also holds with them
        state = state.with_problem(supports=replace(state.supports, signs=None))
    solver = ExactSearch(0.0, seconds, math.inf)
    proof = solve_to_optimality(state, k, solver, x.index, bounded=False)
    if proof is None:
        return x, math.inf
    found = proof.found
    value = state.objective(x.index, x.entries)
    if found.objective > value + RISE * abs(value) and not same_support(found, x):
        x, value = x.moved_to(found), found.objective
    return x, proof.bound(value, op.dtype)
