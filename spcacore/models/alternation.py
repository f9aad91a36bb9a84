"""A one-component solver and a deflation, in turn."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .._limits import REFINEMENT_ROUNDS
from .._messages import counted, instead_of, listed
from .._validation import Hook, as_seed, check_bool, check_choice, integer, per_component
from ..linalg.orthogonal import fix_sign
from ..operators.deflation import METHODS as DEFLATIONS
from ..operators.deflation import DeflatedOperator
from ..operators.inputs import as_problem
from ..operators.problem import Problem
from ..operators.screening import MODES as SCREENING
from ..progress import Progress
from ..solvers.base import Ended, Solution, ended, hook_of_component
from ..solvers.certificates import upper_bounds
from ..solvers.starts import WarmStart
from ..solvers.table import METHODS, SPARSITY, Method, methods_of
from .refinement import NOT_CONVERGED, refined

CONSTRAINTS = ("orthogonal", "uncorrelated")


def prepare(
    X: Any,
    n_components: Any,
    sparsities: list[dict[str, Any]],
    *,
    method: str = "tpower",
    deflation: str = "projection",
    constraint: str | None = None,
    renormalize: bool = True,
    refine: bool = False,
    certify: bool = False,
    kind: str = "data",
    center: Any = True,
    scale: Any = False,
    sample_weight: Any = None,
    start: str | None = None,
    n_starts: int | None = None,
    max_iter: int | None = None,
    tol: float | None = None,
    screening: str = "auto",
    n_features: int | None = None,
    rng: Any = None,
    **options: Any,
) -> tuple[Problem, int, list[dict[str, Any]]]:
    """All that `sparse_pca` is given, checked: the problem, r, and settings for each choice of sparsity."""
    settings: dict[str, Any] = {
        "renormalize": renormalize, "center": center, "scale": scale, "sample_weight": sample_weight,
        "n_features": n_features,
        "screening": screening, "constraint": constraint, "certify": check_bool(certify, "certify"),
        "refine": check_bool(refine, "refine"),
    }  # fmt: skip
    chosen = METHODS[check_choice(method, "method", tuple(METHODS))]
    check_choice(deflation, "deflation", DEFLATIONS)
    if constraint is not None:
        check_choice(constraint, "constraint", CONSTRAINTS)
        if deflation != "projection":
            raise ValueError("a constraint takes the place of a deflation; leave deflation='projection'")
    if refine and (not renormalize or constraint == "uncorrelated" or options.get("nonnegative")):
        raise ValueError("refine=True goes with renormalize=True, without nonnegative or uncorrelated")
    if start is not None:
        check_choice(start, "start", ("diagonal", "eigenvector"))
    options |= {"start": start, "n_starts": n_starts, "max_iter": max_iter, "tol": tol}
    options = {name: value for name, value in options.items() if value is not None}
    _refuse_options(method, options)
    for given in sparsities:
        refuse_sparsity(method, given)
    settings["screening"] = check_choice(screening, "screening", SCREENING)
    if chosen.whole(options) and screening != "none":
        if screening != "auto":
            raise ValueError(
                f"screening={screening!r} does not help {method} with these options: leave it out"
            )
        settings["screening"] = "none"
    problem = as_problem(
        X, kind=kind, center=center, scale=scale, sample_weight=sample_weight,
        n_features=n_features, screening=settings["screening"], missing=chosen.missing,
    )  # fmt: skip
    size = counted(problem.p, "variable")
    if problem.n_samples:
        size = f"{counted(problem.n_samples, 'row')} of {size}"
    most = min(problem.p, problem.n_samples or problem.p)
    r = integer(n_components, "n_components", 1, most, f": X has {size}")
    settings["options"] = options
    several = [check_sparsities(chosen, given[chosen.sparsity], r, problem) for given in sparsities]
    settings["seed"] = as_seed(rng)
    return problem, r, [settings | {chosen.sparsity: sparsity} for sparsity in several]


def _refuse_options(method: str, options: dict[str, Any]) -> None:
    takes = {name: [*inspect.signature(one.check_options).parameters][1:] for name, one in METHODS.items()}
    allowed = [name for name in takes[method] if name != "renormalize"]
    for name in options:
        if name in allowed:
            continue
        others = [repr(other) for other in takes if name in takes[other]]
        if others:
            raise TypeError(f"{name} is no option of method {method!r}, but of {listed(others, 'and')}")
        known = {n: n for n in ("callback", *SPARSITY, *inspect.signature(prepare).parameters, *allowed)}
        for sparsity in SPARSITY:
            if sparsity != METHODS[method].sparsity:
                known[sparsity] = f"{sparsity} (with method={methods_of(sparsity)})"
        hint = instead_of(name, known) or f", which takes {listed(allowed, 'and')}"
        raise TypeError(f"{name} is no option of method {method!r}{hint}")


def refuse_sparsity(method: str, given: dict[str, Any]) -> None:
    wanted = METHODS[method].sparsity
    for name, value in given.items():
        if name != wanted and value is not None:
            raise TypeError(
                f"method {method!r} takes {wanted}, not {name}, which goes with method={methods_of(name)}"
            )
    if given[wanted] is None:
        raise TypeError(f"method {method!r} needs {wanted}, {SPARSITY[wanted]}")


def check_sparsities(method: Method, value: Any, r: int, problem: Problem) -> tuple[Any, ...]:
    return per_component(
        value, method.sparsity, r, lambda one, name: method.check_sparsity(one, name, problem)
    )


def search(
    problem: Problem,
    method: str,
    deflation: str,
    settings: dict[str, Any],
    known: list[Solution],
    r: int,
    tell: Hook | None,
    near: Sequence[Solution] = (),
    quick: bool = False,
    quiet: bool = False,
) -> list[Solution]:
    """Components up to the r-th after the known ones.

    Those of a problem `near` are starts too; `quick` spares the single variables beside them.
    """
    solver, constraint = METHODS[method], settings["constraint"]
    sparsity = settings[solver.sparsity]
    options = solver.check_options(problem, renormalize=settings["renormalize"], **settings["options"])
    if not settings["renormalize"] and (
        constraint is not None or (deflation == "generalized" and not solver.generalized)
    ):
        what = f"deflation={deflation!r} of {method}" if constraint is None else f"constraint={constraint!r}"
        raise ValueError(f"{what} needs renormalize=True: it re-fits the values on the supports found")
    if constraint is not None and settings["options"].get("nonnegative"):
        raise ValueError("a constraint cannot be met by nonnegative loadings; drop one of the two")
    if solver.check_together is not None:
        solver.check_together(options, sparsity)
    block = solver.solve_block if getattr(options, "block", False) else None
    if block is not None and (deflation != "projection" or constraint is not None):
        raise ValueError("block=True finds all components at once; leave deflation and constraint out")
    if block is not None and settings["certify"]:
        raise ValueError("certify=True bounds one component after another; block=True finds all at once")
    state = DeflatedOperator.nothing(problem, deflation, constraint)
    found: list[Solution] = []
    if settings["certify"] and problem.diagonal is None:
        raise ValueError("certify=True needs the entries of X; an operator offers only products")
    try:
        if block is not None:
            told = hook_of_component(tell, 0, r)
            found = block(problem, sparsity, options, [settings["seed"], 0], told)
            if ended(told):
                found = [replace(f, converged=False) for f in found]
                options = replace(options, max_iter=max((f.n_iter for f in found), default=0))
            if len(found) < r and not quiet:
                warnings.warn(
                    f"{r - len(found)} of the {counted(r, 'component')} vanished under the penalty",
                    RuntimeWarning, stacklevel=3,
                )  # fmt: skip
            for t, f in enumerate(found):
                if tell is not None:
                    tell(Progress(t, r, f.n_iter, float(problem.in_units(f.objective))))
        for t in range(r if block is None else 0):
            if t < len(known):
                new: Solution | None = known[t]
            else:
                told = hook_of_component(tell, t, r, whole=True)
                here = options
                if t < len(near) and getattr(options, "start", "none") is None:
                    here = replace(options, start=WarmStart(near[t].index, near[t].value))
                    if quick and options.n_starts is None:
                        here = replace(here, n_starts=1)
                new = solver.solve(problem, state, sparsity[t], here, [settings["seed"], t], told)
                if new is not None and not new.objective > problem.noise(new.index, deflation):
                    new = None
            if new is None:
                what = "no variance" if constraint is None and not solver.orthogonal else "nothing feasible"
                if solver.sparsity == "penalty" and what == "no variance":
                    what += " above the penalty"
                if not quiet:
                    warnings.warn(
                        f"{what} is left after {t} of the {counted(r, 'component')} asked for",
                        RuntimeWarning,
                        stacklevel=3,
                    )
                break
            if settings["certify"]:
                new = _certified(problem, state, new)
            found.append(new)
            if t + 1 < r:
                image = None
                if deflation == "naive" and solver.image is not None:
                    image = solver.image(state, new, options)
                state = state.without(
                    new.index, new.value, lambda index: problem.noise(index, deflation), image
                )
            if tell is not None and t >= len(known):
                variance = float(problem.in_units(new.objective))
                if tell(Progress(t, r, new.n_iter, variance)):
                    break
    except Ended:
        pass
    finally:
        if problem.filled is not None:
            problem.filled.restore()
    if not quiet and not all(f.converged for f in found):
        some = [t for t, f in enumerate(found) if not f.converged]
        limit = (
            "the limits given"
            if method == "branch_and_bound"
            else f"{counted(options.max_iter, 'iteration')}"
        )
        warnings.warn(
            f"component{'s' * (len(some) > 1)} {', '.join(map(str, some))} not converged in {limit}",
            RuntimeWarning, stacklevel=3,
        )  # fmt: skip
    return found


def refine_all(
    problem: Problem,
    found: list[Solution],
    settings: dict[str, Any],
    tell: Hook | None,
    quiet: bool = False,
) -> list[Solution]:
    """The components solved again, each given all the others."""
    if tell is not None and tell.ended:
        return [replace(x, converged=False) for x in found]
    sizes = settings.get("cardinality", tuple(len(x.index) for x in found))
    start = [(x.index, x.value) for x in found]
    loadings, converged = refined(
        problem, start, sizes, settings["constraint"], 0, REFINEMENT_ROUNDS, 1e-7, settings["seed"], tell
    )
    if not (converged or quiet or (tell is not None and tell.ended)):
        warnings.warn(NOT_CONVERGED.format(REFINEMENT_ROUNDS), RuntimeWarning, stacklevel=3)
    state = DeflatedOperator.nothing(problem, "generalized")
    out = []
    for x, (index, value) in zip(found, loadings, strict=True):
        new = replace(x, index=index, value=fix_sign(value), converged=x.converged and converged)
        if settings["certify"]:
            new = _certified(problem, state, new)
            state = state.without(new.index, new.value, problem.noise)
        out.append(new)
    return out


def _certified(problem: Problem, state: DeflatedOperator, x: Solution) -> Solution:
    """With the objective of the deflated matrix, and an upper bound on it."""
    value = np.ascontiguousarray(x.value)
    objective = float(value @ state.operator.apply(x.index, value)[x.index])
    if state.quotient:
        objective /= 1 - sum(float(q[x.index] @ value) ** 2 for q in state.basis)
    bound = min(upper_bounds(problem, state, len(x.index)).values())
    return replace(x, objective=objective, upper_bound=max(bound, objective))
