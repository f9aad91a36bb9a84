"""`spcacore certify`: how much more variance any other component could explain."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from .._limits import COMMAND_RELAXATION_ORDER
from .._rendering import gap, percent
from .._types import AnyArray, Definition
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
from .models import takes
from .report import json_loading, print_loading, print_rows
from .table import Arguments, UserError
from .task import Task

__all__ = ["run"]


def run(args: Arguments) -> None:
    if (args.cardinality is None) == (args.loadings is None):
        raise UserError("give either -k/--cardinality or --loadings; see spcacore certify --help")
    if args.relaxation is not None and args.exact:
        raise UserError("argument --relaxation: not with --exact")
    if args.deflation not in (None, *DEFLATIONS):
        raise UserError(f"argument --deflation: {args.deflation} has no bounds of components in turn")
    saved = [] if args.loadings is None else [read_saved(args.loadings)]
    adopt(args, saved)
    task = Task(args)
    known = {name: v for name, v in args.of_model.items() if takes("tpower")[name].place == "choice"}
    options = task.treatment | task.choice(known)
    if saved:
        _certify_loadings(task, options, rows_for(saved[0], task.table, args.source))
    else:
        _certify_cardinalities(task, options)


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
            row = {"cardinality": k, **bounds, "upper_bound": x.upper_bound, "value": x.value, "gap": x.gap}
            components.append(row | {"loadings": json_loading(x.loading, task.names)})

    def show() -> None:
        print_rows([{name: v for name, v in row.items() if name != "loadings"} for row in components])
        if len(components) == 1:
            state = "optimal, proved" if x.gap == 0 else f"at most {gap(x.gap)} % below the optimum"
            print(f"\nthe component found, {state}")
            print_loading(x.loading, task.names)

    task.report("Optimality", {"components": components}, show)


def _certify_loadings(task: Task, options: dict[str, Any], V: AnyArray) -> None:
    """What given loadings explain, and how far each may be from the best of its cardinality in its turn."""
    args, deflation = task.args, task.args.deflation or "projection"
    definitions: tuple[Definition, ...] = ("cumulative", "adjusted", "raw")
    with task.work() as work:
        explained = {name: explained_variance(task.matrix, V, name, **task.treatment) for name in definitions}
        problem = as_problem(task.matrix, **options | {"choice": knowledge(options.get("choice"))})
        _check_loadings(V, problem, task)
        components = [
            {"component": t + 1, "cardinality": np.count_nonzero(V[:, t])}
            | {name: v[t] for name, v in explained.items()}
            | {"value": value, "upper_bound": bound, "gap": max(0.0, 1 - value / bound) if bound > 0 else 0.0}
            for t, (value, bound) in enumerate(_bounds_in_turn(problem, V, task, deflation, work))
        ]
    total = problem.total_variance

    def show() -> None:
        print(f"loadings of {args.loadings}; variances of each, by three definitions\n")
        print_rows(components)
        print()
        for name, v in explained.items():
            if total and np.isfinite(total):
                print(f"{name}: {percent(v.sum() / total)} % of the variance in all")
        print(f"value: the variance once the earlier components are removed (deflation: {deflation})")

    fields = {"loadings": args.loadings, "deflation": deflation, "total_variance": total}
    task.report("Optimality", fields | {"components": components}, show)


def _check_loadings(V: AnyArray, problem: Problem, task: Task) -> None:
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
    problem: Problem, V: AnyArray, task: Task, name: str, work: Work
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
