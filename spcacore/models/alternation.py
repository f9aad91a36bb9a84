"""A one-component solver and a deflation, in turn."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from .._asked import SPARSITY, as_method, methods_of, options_of, seed_of
from .._limits import EXACT_SLACK, REFINEMENT_ROUNDS
from .._messages import counted, warn
from .._validation import (
    LARGEST,
    Hook,
    as_seed,
    as_share,
    check_bool,
    check_choice,
    integer,
    number,
    per_component,
)
from ..choice import Choice, Explained, Total
from ..methods import METHODS, Method
from ..operators.deflation import DEFLATIONS, PROJECTION, DeflatedOperator, Deflation
from ..operators.gram import is_rounding
from ..operators.inputs import as_problem, in_order
from ..operators.problem import Problem, usual_cardinality
from ..progress import Progress
from ..solvers.base import Solver, check_choice_of, choice_options, hook_of_component
from ..solvers.certificates import upper_bounds
from ..solvers.proving import PROOF_SECONDS, better_support
from ..solvers.share import Share, fewest_variables
from ..solvers.solution import Ended, Report, Solution, ended
from ..solvers.table import SOLVERS
from ..supports.admissible import Supports
from .across import are_together, check_across, check_sizes, search_together, tell_found
from .refinement import NOT_CONVERGED, joint_variance, refined, refuse_constraint, with_sign
from .variance import TotalShare

__all__ = [
    "CERTIFY",
    "CONSTRAINTS",
    "check_certify",
    "check_refine",
    "check_sparsities",
    "check_total",
    "explained_together",
    "make_solver",
    "prepare",
    "problem_of",
    "refine_all",
    "refuse_sparsity",
    "search",
    "usual_sparsity",
    "with_default",
]  # fmt: skip
__dir__ = __all__.copy

CONSTRAINTS = ("orthogonal", "uncorrelated")
CERTIFY = ("bounds", "jointly")


def with_default(deflation: str | None, method: Method) -> tuple[str, str | None]:
    """The deflation, that of the method where none is given, and the constraint that is in place of one."""
    if deflation is None:
        return SOLVERS[method.name].default_deflation, None
    check_choice(deflation, "deflation", (*DEFLATIONS, *CONSTRAINTS))
    return (PROJECTION.name, deflation) if deflation in CONSTRAINTS else (deflation, None)


def prepare(
    X: Any, n_components: Any, sparsities: Sequence[Any], *,
    method: Any = "tpower", choice: Choice | None = None, deflation: str | None = None,
    support: str = "free", refine: Any = False, certify: Any = False,
    kind: str = "data", center: Any = True, scale: Any = False, sample_weight: Any = None,
) -> tuple[Problem, Solver, int, list[dict[str, Any]]]:  # fmt: skip
    """What `sparse_pca` is given, checked: problem, solver, r, and settings for each choice of sparsity."""
    record = as_method(method)
    chosen, options = SOLVERS[record.name], options_of(record)
    name, constraint = with_default(deflation, record)
    removal = DEFLATIONS[name]
    center, scale, sample_weight = in_order(X, center, scale, sample_weight)
    attempts, (bounded, seconds) = check_refine(refine), check_certify(certify)
    sparsities = [*sparsities]
    totals = [integer(one.count, "Total", 1) for one in sparsities if isinstance(one, Total)]
    settings: dict[str, Any] = {
        "record": record, "method": record.name, "deflation": name, "constraint": constraint,
        "renormalize": check_bool(record.renormalize, "renormalize"),
        "center": center, "scale": scale, "sample_weight": sample_weight, "screening": record.screening,
        "certify": bounded, "proof_seconds": seconds, "refine": attempts > 0,
        "n_restarts": max(attempts - 1, 0), "support": support,
        "total_cardinality": totals[0] if totals else None,
    }  # fmt: skip
    together = are_together(settings)
    known = choice_options(chosen, None if attempts or together else options, choice)
    settings["choice"] = known
    signs = choice is not None and choice.signs is not None
    if attempts and (not record.renormalize or constraint == "uncorrelated"):
        raise ValueError("refine=True requires renormalize=True, and no deflation='uncorrelated'")
    if constraint is not None and signs:
        raise ValueError(
            f"deflation={deflation!r} cannot be met by loadings of given signs: drop one of the two"
        )
    if options.get("start") is not None:
        check_choice(options["start"], "start", ("diagonal", "eigenvector"))
    sparsities = check_across(settings, chosen, removal, options, n_components, sparsities)
    for given in sparsities:
        refuse_sparsity(chosen, given)
    settings["screening"] = chosen.checked_screening(record.screening, options)
    settings["options"] = options
    problem = problem_of(X, chosen, kind, settings)
    sparsities = [usual_sparsity(problem, chosen) if one is None else one for one in sparsities]
    settings["choice"] = problem.choice
    check_choice_of(chosen, problem)
    if attempts and constraint is not None:
        refuse_constraint(problem)
    if problem.choice is not None and options.get("block"):
        raise ValueError("block=True cannot be combined with a choice of variables")
    size = counted(problem.p, "variable")
    if problem.n_samples:
        size = f"{counted(problem.n_samples, 'row')} of {size}"
    most = min(problem.p, problem.n_samples or problem.p)
    if isinstance(n_components, (float, np.floating)):
        r, wanted = most, chosen.sparsity
        settings["total_share"] = check_total(n_components, wanted, sparsities, options, problem)
    else:
        r = integer(n_components, "n_components", 1, most, f": X has {size}")
    several: list[tuple[Any, ...]] = [(1,) * r] * len(sparsities)
    if not totals:
        several = [check_sparsities(chosen, given, r, problem) for given in sparsities]
    several = check_sizes(settings, problem, r, several)
    settings["seed"] = as_seed(seed_of(record))
    solver = make_solver(problem, chosen, removal, settings)
    solver.check_screening(settings["screening"], DeflatedOperator.from_problem(problem, removal, constraint))
    for sparsity in several:
        solver.check_together(sparsity)
    return problem, solver, r, [settings | {chosen.sparsity: sparsity} for sparsity in several]


def check_refine(refine: Any) -> int:
    """The number of attempts."""
    if isinstance(refine, (bool, np.bool_)):
        return int(refine)
    return integer(refine, "refine", 1, LARGEST, ": True, False, or a number of attempts")


def check_certify(certify: Any) -> tuple[bool | str, float]:
    """What is bounded, and how long a tree may take."""
    if isinstance(certify, str):
        return (True, 0.0) if check_choice(certify, "certify", CERTIFY) == "bounds" else (certify, 0.0)
    if isinstance(certify, (bool, np.bool_)):
        return bool(certify), PROOF_SECONDS
    if not number(certify, "certify", -math.inf) > 0:
        raise ValueError("certify must be a positive number of seconds; 'bounds' makes no search")
    return True, float(certify)


def problem_of(X: Any, method: type[Solver], kind: str, settings: dict[str, Any]) -> Problem:
    """X as the settings have it, which may be those of other rows."""
    options = settings["options"]
    return as_problem(
        X, kind=kind, center=settings["center"], scale=settings["scale"],
        sample_weight=settings.get("sample_weight"), screening=settings["screening"],
        missing=method.missing and not are_together(settings),
        columnwise=not (method.needs_whole_products(options) or are_together(settings)),
        restrictable=method.may_restrict(options) and not are_together(settings),
        form=not method.needs_samples(options), choice=settings.get("choice"),
    )  # fmt: skip


def make_solver(
    problem: Problem, method: type[Solver], deflation: Deflation, settings: dict[str, Any]
) -> Solver:
    """The solver with its options, validated, also against what several components ask of it."""
    constraint, options = settings["constraint"], settings["options"]
    if method.objective == "least_squares":
        if settings["refine"] or settings["certify"]:
            what = "refine=True" if settings["refine"] else f"certify={settings['certify']!r}"
            raise ValueError(f"{what} requires a method that maximizes the variance, not 'least_squares'")
        if not deflation.semidefinite:
            raise ValueError(
                f"deflation={deflation.name!r} cannot be combined with method 'least_squares': it may "
                "leave negative variances, and the share that a score explains is not defined then"
            )
    solver: Solver = method.from_options(problem, renormalize=settings["renormalize"], **options)
    if not settings["renormalize"] and (
        constraint is not None or (deflation.quotient and not solver.maximizes_quotient)
    ):
        what = f"deflation={deflation.name!r} of {solver.name}"
        what = what if constraint is None else f"deflation={constraint!r}"
        raise ValueError(f"{what} needs renormalize=True: it re-fits the values on the supports found")
    if solver.solves_block and (deflation is not PROJECTION or constraint is not None):
        raise ValueError("block=True finds all components at once; leave deflation out")
    if solver.solves_block and settings["certify"] is True:
        raise ValueError("certify=True bounds one component after another; block=True finds all at once")
    if settings["certify"] and problem.diagonal is None:
        raise ValueError(
            f"certify={settings['certify']!r} needs the entries of X; an operator offers only products"
        )
    return solver


def check_total(
    share: Any, wanted: str, sparsities: list[Any], options: dict[str, Any], problem: Problem
) -> float:
    """Validate the share of the total variance that all components are to explain."""
    if not 0 < share < 1:
        raise TypeError(
            f"n_components must be an integer, or a share between 0 and 1, not {share!r}{as_share(share, 1)}"
        )
    if options.get("block"):
        raise ValueError("block=True finds all components at once: n_components must be an integer")
    if problem.diagonal is None:
        raise ValueError("n_components as a share needs a total variance, which an operator does not provide")
    for value in sparsities:
        if np.ndim(value.share if isinstance(value, Explained) else value) > 0:
            raise ValueError(f"{wanted} must be one number when n_components is a share")
    return float(share)


def refuse_sparsity(method: type[Solver], given: Any) -> None:
    """Refuse what is not the method's way to say how sparse."""
    wanted = method.sparsity
    if isinstance(given, Explained) and wanted != "cardinality":
        raise TypeError(
            f"method {method.name!r} takes {wanted}; Explained requires method={methods_of('cardinality')}"
        )
    if given is None and wanted == "penalty":
        raise TypeError(
            f"method {method.name!r} needs {wanted}, {SPARSITY[wanted]}: "
            f"method={METHODS[method.name].__name__}({wanted}=...)"
        )


def usual_sparsity(problem: Problem, method: type[Solver]) -> float:
    """A cardinality, or the l1 norm of a unit vector of as many equal entries."""
    k = usual_cardinality(problem)
    return math.sqrt(k) if method.sparsity == "l1_bound" else k


def check_sparsities(method: type[Solver], given: Any, r: int, problem: Problem) -> tuple[Any, ...]:
    """How sparse each component is to be, or the `Share` that it is to explain."""
    if isinstance(given, Explained):
        return Share.each(given, r)
    if isinstance(given, Share):
        return (given,) * r
    return per_component(
        given, method.sparsity, r, lambda one, name: method.check_sparsity(one, name, problem)
    )


def search(
    problem: Problem,
    solver: Solver,
    deflation: Deflation,
    settings: dict[str, Any],
    known: list[Solution],
    r: int,
    hook: Hook | None,
    near: Sequence[Solution] = (),
    quick: bool = False,
    quiet: bool = False,
) -> list[Solution]:
    """Components up to the r-th after the known ones.

    Those of a problem `near` are starts too; `quick` spares the single variables beside them.
    """
    found: list[Solution] = []
    lacking, limit = None, solver.limit()
    try:
        if are_together(settings):
            lacking = search_together(problem, solver, settings, r, hook, found)
        elif solver.solves_block:
            lacking = _all_at_once(problem, solver, settings, r, hook, found)
            if hook is not None and hook.ended:
                limit = counted(max((x.n_iter for x in found), default=0), "iteration")
        else:
            state = DeflatedOperator.from_problem(problem, deflation, settings["constraint"])
            solvers = [solver.near(x, quick) for x in near[:r]]
            solvers += [solver] * (r - len(solvers))
            lacking = _in_turn(problem, state, solvers, settings, known, hook, found)
    except Ended:
        pass
    finally:
        if problem.filled is not None:
            problem.filled.restore()
    if quiet:
        return found
    if lacking is not None:
        warn(lacking)
    some = [t for t, x in enumerate(found) if not x.converged]
    if some:
        which = f"component{'s' * (len(some) > 1)} {', '.join(map(str, some))}"
        warn(f"{which} not converged in {limit}")
    return found


def _all_at_once(
    problem: Problem, solver: Solver, settings: dict[str, Any], r: int, hook: Hook | None,
    found: list[Solution],
) -> str | None:  # fmt: skip
    """Append to `found` what a block solver finds; a warning if that is less than r components."""
    report = hook_of_component(hook, 0, r)
    block = solver.solve_block(problem, settings[solver.sparsity], [settings["seed"], 0], report)
    found += [replace(x, converged=x.converged and not ended(report)) for x in block]
    tell_found(problem, found, r, hook)
    if len(found) < r:
        return f"{r - len(found)} of the {counted(r, 'component')} vanished under the penalty"
    return None


def _found(
    problem: Problem, state: DeflatedOperator, solver: Solver, sparsity: Any, seed: list[int],
    report: Report | None,
) -> Solution | None:  # fmt: skip
    if isinstance(sparsity, Share):
        return fewest_variables(problem, state, solver, sparsity, seed, report)
    return solver.find(problem, state, sparsity, seed, report)


def _in_turn(
    problem: Problem, state: DeflatedOperator, solvers: list[Solver], settings: dict[str, Any],
    known: list[Solution], hook: Hook | None, found: list[Solution],
) -> str | None:  # fmt: skip
    """Append to `found` one component after another, each removed; a warning where nothing is left."""
    r, first_order = len(solvers), state.deflation.first_order
    total = TotalShare.of(problem, solvers[0].objective, settings.get("total_share"))
    for t, solver in enumerate(solvers):
        if t < len(known):
            new: Solution | None = known[t]
        else:
            report = hook_of_component(hook, t, r, whole=True)
            sparsity, seed = settings[solver.sparsity][t], [settings["seed"], t]
            new = _found(problem, state, solver, sparsity, seed, report)
            if is_rounding(problem, 0.0 if new is None else new.objective):
                assert problem.data is not None
                problem = problem.data
                state = _after(problem, state, solver, found)
                new = _found(problem, state, solver, sparsity, seed, report)
            if new is not None and not new.objective > problem.noise(new.index, first_order):
                new = None
        if new is None:
            what = "no variance" if state.constraint is None and not solver.orthogonal else "nothing feasible"
            if solver.sparsity == "penalty" and what == "no variance":
                what += " above the penalty"
            if total is not None:
                return f"{what} is left after {counted(t, 'component')}: {total}"
            return problem.exhausted(t, r).replace("no variance", what)
        if settings["certify"] is True:
            asked, report = settings[solver.sparsity][t], hook_of_component(hook, t, r, whole=True)
            k = _cardinality(state.choice, new, asked)
            better, own = better_support(problem, state, new, k, settings["proof_seconds"], report)
            free = (
                solver.name == "tpower"
                and settings["renormalize"]
                and not getattr(solver, "nonnegative", False)
            )
            if t >= len(known) and free and better is not new:
                new = replace(better, entries=with_sign(problem, better.index, better.entries))
            own = min(own, solver.bound(state, k, report))
            new = _certified(problem, state, new, asked, own)
        found.append(new)
        if total is not None and total.reached_with(new):
            if hook is not None and t >= len(known):
                hook(Progress(t, r, new.n_iter, float(problem.in_units(new.objective))))
            return None
        if t + 1 < r:
            state = _without(problem, state, solver, new)
        if hook is not None and t >= len(known):
            variance = float(problem.in_units(new.objective))
            if hook(Progress(t, r, new.n_iter, variance)):
                break
    else:
        if total is not None:
            return f"there are no more than {counted(r, 'component')}: {total}"
    return None


def _without(problem: Problem, state: DeflatedOperator, solver: Solver, x: Solution) -> DeflatedOperator:
    """One more component removed."""
    image = solver.image(state, x) if state.deflation.residual else None
    noise = partial(problem.noise, first_order=state.deflation.first_order)
    return state.deflate(x.index, x.entries, noise, image)


def _after(
    problem: Problem, state: DeflatedOperator, solver: Solver, found: list[Solution]
) -> DeflatedOperator:
    """The components found removed from another form of the problem."""
    state = DeflatedOperator.from_problem(problem, state.deflation, state.constraint)
    for x in found:
        state = _without(problem, state, solver, x)
    return state


def refine_all(
    problem: Problem,
    found: list[Solution],
    settings: dict[str, Any],
    hook: Hook | None,
    quiet: bool = False,
) -> list[Solution]:
    """The components solved again, each given all the others."""
    if hook is not None and hook.ended:
        return [replace(x, converged=False) for x in found]
    choice = problem.choice
    sizes = tuple(len(x.index) if choice is None else choice.cardinality_with(x.index) for x in found)
    if not any(isinstance(one, Share) for one in settings.get("cardinality", ())):
        sizes = settings.get("cardinality", sizes)[: len(found)]
    start = [(x.index, x.entries) for x in found]
    loadings, converged = refined(
        problem, start, sizes, settings["constraint"], settings.get("n_restarts", 0), REFINEMENT_ROUNDS, 1e-7,
        settings["seed"], hook,
    )  # fmt: skip
    if not (converged or quiet or (hook is not None and hook.ended)):
        warn(NOT_CONVERGED.format(REFINEMENT_ROUNDS))
    state = DeflatedOperator.from_problem(problem, DEFLATIONS["generalized"])
    out = []
    for x, size, (index, entries) in zip(found, sizes, loadings, strict=True):
        entries = with_sign(problem, index, entries)
        new = replace(x, index=index, entries=entries, converged=x.converged and converged)
        if settings["certify"] is True:
            new = _certified(problem, state, new, size)
            state = state.deflate(new.index, new.entries, problem.noise)
        out.append(new)
    return out


def explained_together(problem: Problem, found: Sequence[Solution]) -> float:
    """The variance of the projection onto the span of components, in the operator's units."""
    return joint_variance(problem, [(x.index, x.entries) for x in found])


def _cardinality(choice: Supports | None, x: Solution, asked: Any) -> int:
    """As it is counted: what is included counts though it is zero, and groups that fit may leave room."""
    if choice is None:
        return len(x.index)
    if choice.counts_variables and isinstance(asked, int):
        return asked
    return choice.cardinality_with(x.index)


def _certified(
    problem: Problem, state: DeflatedOperator, x: Solution, asked: Any, bound: float = math.inf
) -> Solution:
    """With the objective of the deflated matrix, and an upper bound on it."""
    objective = state.objective(x.index, x.entries)
    size = _cardinality(state.choice, x, asked)
    if state.choice is not None:
        size = state.choice.most_variables(size)
    if not bound <= objective * (1 + EXACT_SLACK.of(problem.operator.dtype)):
        bound = min(bound, *upper_bounds(problem, state, size).values())
    return replace(x, objective=objective, upper_bound=max(bound, objective))
