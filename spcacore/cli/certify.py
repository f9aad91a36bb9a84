"""`spcacore certify`: how much more variance any other component could explain."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._limits import COMMAND_RELAXATION_ORDER
from .._rendering import gap, percent, significant
from .._types import Definition
from .._validation import as_seed
from ..choice import Choice
from ..methods import BranchAndBound
from ..models.variance import explained_variance
from ..operators.deflation import DEFLATIONS, DeflatedOperator, Deflation
from ..operators.inputs import as_problem
from ..operators.problem import Problem
from ..solvers.certificates import optimality_bound, upper_bounds
from ..solvers.exact import ExactSearch, branch_and_bound, solve_to_optimality
from ..solvers.truncated_power import tpower
from ..supports.admissible import Supports, knowledge
from .console import ProgressLine
from .reading import adopt, placed, read_saved
from .report import json_loading, print_aligned, print_json, print_loading
from .table import Arguments, UserError
from .task import Task

__all__ = ["DEFINITIONS", "run"]
__dir__ = __all__.copy

DEFINITIONS: tuple[Definition, ...] = ("cumulative", "adjusted", "raw")


def run(args: Arguments) -> None:
    if (args.cardinality is None) == (args.loadings is None):
        raise UserError("give either -k/--cardinality or --loadings; see spcacore certify --help")
    for name in ("time_limit", "rng"):
        if getattr(args, name) is not None and not args.exact:
            raise UserError(f"argument --{name.replace('_', '-')}: requires --exact")
    if args.deflation is not None and args.loadings is None:
        raise UserError("argument --deflation: requires --loadings")
    if args.relaxation is not None and (args.exact or args.loadings is not None):
        raise UserError("argument --relaxation: requires -k/--cardinality and not --exact")
    saved = None
    if args.loadings is not None:
        saved = read_saved(args.loadings)
        adopt(args, [saved])
    task = Task(args)
    choice = task.choice()
    if saved is None:
        _certify_cardinalities(task, choice)
    else:
        _certify_loadings(task, choice, placed(saved, task.names, args.source))


def _certify_cardinalities(task: Task, choice: Choice | None) -> None:
    """How much variance a component of each cardinality can have, and how much the best one found has."""
    args, found, treatment = task.args, [], task.treatment | {"choice": choice}
    cardinalities = task.sparsity("cardinality", args.cardinality)
    relaxation = task.p <= COMMAND_RELAXATION_ORDER if args.relaxation is None else args.relaxation
    with task.work() as progress:
        for k in cardinalities:
            progress.task = f"cardinality {k}: "
            progress("bounds")
            if args.exact:
                x: Any = branch_and_bound(
                    task.matrix, k, options=BranchAndBound(time_limit=args.time_limit, rng=args.rng),
                    callback=lambda told: progress(f"{told.n_iter} nodes"), **treatment,
                )  # fmt: skip
                bounds = {"branch and bound": x.upper_bound}
            else:
                best = optimality_bound(task.matrix, k, relaxation=relaxation, **treatment)
                bounds = best.bounds
                x = tpower(
                    task.matrix, k, callback=lambda state: progress(f"iteration {state.n_iter}"), **treatment
                )
                x = replace(x, upper_bound=max(best.upper_bound, x.value))
            found.append((k, bounds, x))
    if args.json:
        components = [
            {
                "cardinality": k, "bounds": bounds, "upper_bound": x.upper_bound, "value": x.value,
                "gap": x.gap, "optimal": getattr(x, "optimal", None),
                "nodes": getattr(x, "n_nodes", None), "loadings": json_loading(x.loading, task.names),
            }
            for k, bounds, x in found
        ]  # fmt: skip
        print_json(task.document({"components": components}))
        return
    print(task.title("Optimality"), end="\n\n")
    rows = [["cardinality", *(str(k) for k, _, _ in found)]]
    if not args.exact:
        rows += [[name, *(significant(bounds[name]) for _, bounds, _ in found)] for name in found[0][1]]
        rows += [[""]]
    rows += [
        ["upper bound", *(significant(x.upper_bound) for _, _, x in found)],
        ["variance found", *(significant(x.value) for _, _, x in found)],
        ["gap %", *(gap(x.gap) for _, _, x in found)],
    ]
    if args.exact:
        rows += [["nodes", *(str(x.n_nodes) for _, _, x in found)]]
    print_aligned(rows)
    if len(found) == 1:
        _, _, x = found[0]
        state = "optimal, proved" if x.gap == 0 else f"at most {gap(x.gap)} % below the optimum"
        print(f"\nthe component found, {state}")
        print_loading(x.loading, task.names)
    task.last_line("certified")


def _certify_loadings(task: Task, choice: Choice | None, V: NDArray[Any]) -> None:
    """What given loadings explain, and how far each may be from the best of its cardinality in its turn."""
    args = task.args
    sizes = np.count_nonzero(V, axis=0)
    deflation = args.deflation or "projection"
    with task.work() as progress:
        variances = {name: explained_variance(task.matrix, V, name, **task.treatment) for name in DEFINITIONS}
        problem = as_problem(task.matrix, choice=knowledge(choice), **task.treatment)
        _check_loadings(V, problem.choice, task)
        values, bounds = _bounds_in_turn(problem, V, DEFLATIONS[deflation], args, progress)
    total = problem.total_variance
    gaps = [max(0.0, 1 - v / b) if b > 0 else 0.0 for v, b in zip(values, bounds, strict=True)]
    if args.json:
        components = [
            {
                "index": t, "cardinality": sizes[t], **{name: variances[name][t] for name in DEFINITIONS},
                "value": values[t], "upper_bound": bounds[t], "gap": gaps[t],
            }
            for t in range(V.shape[1])
        ]  # fmt: skip
        print_json(
            task.document({"loadings": args.loadings, "deflation": deflation, "total_variance": total,
                           "components": components})
        )  # fmt: skip
        return
    print(task.title(f"Loadings {args.loadings}"), end="\n\n")
    rows = [["component", *(str(t + 1) for t in range(V.shape[1])), "all"]]
    rows += [["nonzeros", *map(str, sizes), ""]]
    rows += [
        [f"{name} variance", *map(significant, v), significant(v.sum())] for name, v in variances.items()
    ]
    if total and np.isfinite(total):
        rows += [
            [f"{name} %", *(percent(x / total) for x in v), percent(v.sum() / total)]
            for name, v in variances.items()
        ]
    rows += [
        ["in its turn", *map(significant, values)],
        ["upper bound", *map(significant, bounds)],
        ["gap %", *map(gap, gaps)],
    ]
    print_aligned(rows)
    print(f"\nin its turn: the variance once the earlier components are removed (deflation: {deflation})")
    task.last_line("certified")


def _check_loadings(V: NDArray[Any], choice: Supports | None, task: Task) -> None:
    """Refuse loadings that a bound on others does not bound."""
    for t, v in enumerate(V.T if choice is not None else ()):
        assert choice is not None
        wrong = np.flatnonzero(choice.excluded & (v != 0))
        if len(wrong):
            raise UserError(f"argument --exclude: component {t + 1} of {task.args.loadings} has "
                            f"{task.names[wrong[0]]!r}")  # fmt: skip
        if choice.signs is not None and (v > 0).any() and (v < 0).any():
            raise UserError(
                f"argument --nonnegative: component {t + 1} of {task.args.loadings} has both signs"
            )


def _bounds_in_turn(
    problem: Problem, V: NDArray[Any], deflation: Deflation, args: Arguments, progress: ProgressLine
) -> tuple[list[float], list[float]]:
    """v'Av of each loading, A without the earlier ones, and a bound for vectors as sparse, in variances."""
    state = DeflatedOperator.from_problem(problem, deflation)
    values, bounds = [], []
    for t, v in enumerate(V.T):
        progress.task = f"component {t + 1} of {V.shape[1]}: "
        progress("bounds")
        index = np.flatnonzero(v)
        value = np.ascontiguousarray(v[index] / np.linalg.norm(v[index]), problem.operator.dtype)
        variance = state.objective(index, value)
        k = len(index) if problem.choice is None else problem.choice.cardinality_with(index)
        if args.exact:
            solver = ExactSearch.from_options(problem, time_limit=args.time_limit)
            hook = lambda n: progress(f"{n} nodes")  # noqa: E731
            seed = [as_seed(args.rng), t]
            proof = solve_to_optimality(problem, state, k, solver, seed, hook)
            bound = variance if proof is None else proof.bound(variance, problem.operator.dtype)
        else:
            most = k if problem.choice is None else problem.choice.most_variables(k)
            bound = min(upper_bounds(problem, state, most).values())
        values.append(float(problem.in_units(variance)))
        bounds.append(float(problem.in_units(max(bound, variance))))
        state = state.deflate(index, value, lambda index: problem.noise(index, deflation.first_order))
    return values, bounds
