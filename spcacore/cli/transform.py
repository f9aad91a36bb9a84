"""`spcacore transform`: scores of new samples by components that were saved."""

from __future__ import annotations

import sys
from typing import Any

from numpy.typing import NDArray

from .._messages import counted
from ..operators.inputs import as_problem
from ..operators.transform import scores
from .reading import Saved, adopt, read_saved, unquoted, where_not_finite
from .report import check_outputs, print_json, print_matrix, write, write_scores
from .table import Arguments, Table, UserError
from .task import TABLES, Task

__all__ = ["run"]
__dir__ = __all__.copy


def run(args: Arguments) -> None:
    check_outputs(args, ((args.output, "scores", TABLES),))
    saved = read_saved(args.loadings)
    adopt(args, [saved])
    args.notes.clear()  # which this command need not say
    task = Task(args)
    table = _matched(task, saved)
    where = where_not_finite(table, args)
    if where is not None:
        raise UserError(f"{args.source}: {where}")
    with task.work():
        mean, scale = (saved.mean, saved.scale) if saved.kind is not None else _moments(table.matrix, args)
        values = scores(table.matrix, saved.weights, mean, scale)
    samples = table.samples()
    if args.output:
        write(args.output, lambda path: write_scores(path, values, samples, args.raw_names))
    if args.json:
        print_json(
            task.document(
                {"loadings": args.loadings, "components": values.shape[1], "sample_names": samples,
                 "scores": values}
            )
        )  # fmt: skip
    elif not args.output:
        print_matrix(sys.stdout, "sample", samples, values, args.raw_names)


def _matched(task: Task, saved: Saved) -> Table:
    """The table with the variables of the fit alone, in their order."""
    args, names = task.args, task.names
    wanted = saved.names or [f"x{j + 1}" for j in range(len(saved.loadings))]
    numbered = [f"x{j + 1}" for j in range(len(wanted))]
    if task.table.names is None or (wanted == numbered and not set(wanted) <= set(names)):
        if task.p != len(wanted):
            raise UserError(
                f"{args.source} has {counted(task.p, 'variable')}, {args.loadings} has {len(wanted)}, and "
                "they cannot be matched without names"
            )
        return task.table
    if not set(wanted) <= set(names):
        wanted = list(map(unquoted, wanted))
    place = {name: j for j, name in enumerate(names)}
    lost = [name for name in wanted if name not in place]
    if lost:
        more = f" (and {len(lost) - 1} more)" if len(lost) > 1 else ""
        raise UserError(f"{args.source} has no variable {lost[0]!r}{more}, as {args.loadings} has")
    repeats = sorted({name for name in wanted if names.count(name) > 1}) if len(place) < task.p else []
    if repeats or len(set(wanted)) < len(wanted):
        name = repeats[0] if repeats else next(name for name in wanted if wanted.count(name) > 1)
        raise UserError(f"variables cannot be matched: {name!r} is the name of several")
    return task.table.with_columns([place[name] for name in wanted])


def _moments(X: Any, args: Arguments) -> tuple[NDArray[Any] | None, NDArray[Any] | None]:
    """Means and deviations of the samples themselves, where the arguments ask for them."""
    problem = as_problem(X, center=args.center, scale=args.scale)
    return problem.mean, problem.scale
