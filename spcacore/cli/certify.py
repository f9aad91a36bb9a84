"""`spcacore certify`: how much more variance any other component could explain."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._limits import COMMAND_RELAXATION_ORDER
from .._rendering import gap, table_of, text_page
from .._validation import as_seed
from ..methods import BranchAndBound
from ..models.variance import explained_variance
from ..operators.deflation import DEFLATIONS, DeflatedOperator
from ..operators.inputs import as_problem
from ..operators.problem import Problem
from ..solvers.certificates import optimality_bound, upper_bounds
from ..solvers.exact import ExactSearch, branch_and_bound, solve_to_optimality
from ..solvers.truncated_power import tpower
from ..supports.admissible import knowledge
from .console import Work
from .loadings import adopt, read_saved, rows_for
from .models import flag_of, takes
from .report import json_loading, print_loading
from .table import Arguments, UserError
from .task import Task

__all__ = ["run"]

_REQUIRES = {
    "time_limit": "exact", "rng": "exact", "deflation": "loadings", "relaxation": "cardinality",
}  # fmt: skip


def run(args: Arguments) -> None:
    if (args.cardinality is None) == (args.loadings is None):
        raise UserError("give either -k/--cardinality or --loadings; see spcacore certify --help")
    for name, needed in _REQUIRES.items():
        if getattr(args, name) is not None and not getattr(args, needed):
            raise UserError(f"argument {flag_of(name)}: requires {flag_of(needed)}")
    if args.relaxation is not None and args.exact:
        raise UserError("argument --relaxation: not with --exact")
    if args.deflation not in (None, *DEFLATIONS):
        raise UserError(f"argument --deflation: {args.deflation} has no bounds of components in turn")
    saved = None if args.loadings is None else read_saved(args.loadings)
    adopt(args, [] if saved is None else [saved])
    task = Task(args)
    names = [name for name, one in takes("tpower").items() if one.place == "choice"]
    known = task.choice({n: args.of_model[n] for n in names if n in args.of_model}) | task.treatment
    if saved is None:
        _certify_cardinalities(task, known)
    else:
        _certify_loadings(task, known, rows_for(saved, task.names, args.source))


def _print(rows: list[dict[str, Any]]) -> None:
    """A row for each component."""
    first, *others = rows[0]
    columns = {name: [row[name] for row in rows] for name in others if name != "loadings"}
    columns["gap"] = [f"{gap(share)} %" for share in columns["gap"]]
    print(text_page("", table_of(first, [row[first] for row in rows], columns)).strip())


def _certify_cardinalities(task: Task, options: dict[str, Any]) -> None:
    """How much variance a component of each cardinality can have, and how much the best one found has."""
    args, components = task.args, []
    relaxation = task.p <= COMMAND_RELAXATION_ORDER if args.relaxation is None else args.relaxation
    with task.work() as work:
        for k in args.cardinality:
            work.task = f"cardinality {k}: "
            work("bounds")
            told = lambda state: work(f"{state.n_iter} {'nodes' if args.exact else 'iterations'}")  # noqa: E731
            if args.exact:
                search = BranchAndBound(time_limit=args.time_limit, rng=args.rng)
                x: Any = branch_and_bound(task.matrix, k, options=search, callback=told, **options)
                bounds = {"nodes": x.n_nodes}
            else:
                best = optimality_bound(task.matrix, k, relaxation=relaxation, **options)
                x, bounds = tpower(task.matrix, k, callback=told, **options), best.bounds
                x = replace(x, upper_bound=max(best.upper_bound, x.value))
            known = {"upper_bound": x.upper_bound, "value": x.value, "gap": x.gap}
            components.append(
                {"cardinality": k, **bounds, **known, "loadings": json_loading(x.loading, task.names)}
            )

    def show() -> None:
        _print(components)
        if len(components) == 1:
            state = "optimal, proved" if x.gap == 0 else f"at most {gap(x.gap)} % below the optimum"
            print(f"\nthe component found, {state}")
            print_loading(x.loading, task.names)

    task.report("Optimality", {"components": components}, show)


def _certify_loadings(task: Task, options: dict[str, Any], V: NDArray[Any]) -> None:
    """What given loadings explain, and how far each may be from the best of its cardinality in its turn."""
    args, deflation = task.args, task.args.deflation or "projection"
    with task.work() as work:
        variances = {
            name: explained_variance(task.matrix, V, name, **task.treatment)
            for name in ("cumulative", "adjusted", "raw")
        }
        problem = as_problem(task.matrix, **options | {"choice": knowledge(options.get("choice"))})
        _check_loadings(V, problem, task)
        components = [
            {"component": t + 1, "cardinality": np.count_nonzero(V[:, t]),
             **{name: v[t] for name, v in variances.items()}, "value": value, "upper_bound": bound,
             "gap": max(0.0, 1 - value / bound) if bound > 0 else 0.0}
            for t, (value, bound) in enumerate(_bounds_in_turn(problem, V, task, deflation, work))
        ]  # fmt: skip
    total = problem.total_variance

    def show() -> None:
        print(f"loadings of {args.loadings}; variances of each, by three definitions\n")
        _print(components)
        shares = {
            name: 100 * v.sum() / total for name, v in variances.items() if total and np.isfinite(total)
        }
        print(
            "\n"
            + "".join(f"{name}: {share:.1f} % of the variance in all\n" for name, share in shares.items())
        )
        print(f"value: the variance once the earlier components are removed (deflation: {deflation})")

    fields = {"loadings": args.loadings, "deflation": deflation, "total_variance": total}
    task.report("Optimality", fields | {"components": components}, show)


def _check_loadings(V: NDArray[Any], problem: Problem, task: Task) -> None:
    """Refuse loadings that a bound on others does not bound."""
    supports, path = problem.supports, task.args.loadings
    for t, v in enumerate(V.T):
        wrong = np.flatnonzero(supports.excluded & (v != 0))
        if len(wrong):
            name = task.names[wrong[0]]
            raise UserError(f"argument --exclude: component {t + 1} of {path} has {name!r}")
        if supports.signs is not None and {-1, 1} <= {*np.sign(v * supports.signs)}:
            raise UserError(f"argument --signs: component {t + 1} of {path} has both signs")


def _bounds_in_turn(
    problem: Problem, V: NDArray[Any], task: Task, name: str, work: Work
) -> Iterator[tuple[float, float]]:
    """v'Av of each loading, A without the earlier ones, and a bound for vectors as sparse, in variances."""
    args, deflation = task.args, DEFLATIONS[name]
    supports, dtype = problem.supports, problem.operator.dtype
    state = DeflatedOperator.from_problem(problem, deflation)
    for t, v in enumerate(V.T):
        work.task = f"component {t + 1} of {V.shape[1]}: "
        work("bounds")
        index = np.flatnonzero(v)
        value = np.ascontiguousarray(v[index] / np.linalg.norm(v[index]), dtype)
        variance = state.objective(index, value)
        k = supports.cardinality_with(index)
        if args.exact:
            solver = ExactSearch.from_record(problem, BranchAndBound(time_limit=args.time_limit))
            nodes = lambda n: work(f"{n} nodes")  # noqa: E731
            proof = solve_to_optimality(problem, state, k, solver, [as_seed(args.rng), t], nodes)
            bound = variance if proof is None else proof.bound(variance, dtype)
        else:
            bound = min(upper_bounds(problem, state, supports.most_variables(k)).values())
        yield float(problem.in_units(variance)), float(problem.in_units(max(bound, variance)))
        state = state.deflate(index, value, lambda index: problem.noise(index, deflation.first_order))
