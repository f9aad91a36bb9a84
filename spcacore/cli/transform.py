"""`spcacore transform`: scores of new samples by components that were saved."""

from __future__ import annotations

import sys

from .._messages import counted
from ..operators.inputs import as_problem
from ..operators.transform import scores
from .fit import write_scores
from .reading import Saved, adopt, known_names, places, read_saved
from .report import print_json, write
from .table import Arguments, Table, UserError
from .task import Task

__all__ = ["run"]
__dir__ = __all__.copy


def run(args: Arguments) -> None:
    saved = read_saved(args.loadings)
    adopt(args, [saved])
    args.notes.clear()  # which this command need not say
    task = Task(args)
    table = _matched(task, saved)
    X, samples, raw = table.matrix, table.samples(), args.raw_names
    with task.work():
        mean, scale = saved.mean, saved.scale
        if saved.kind is None:  # then the moments of the samples themselves
            problem = as_problem(X, center=args.center is not False, scale=bool(args.scale))
            mean, scale = problem.mean, problem.scale
        values = scores(X, saved.weights, mean, scale)
    if args.output:
        write(args.output, lambda path: write_scores(path, values, samples, raw))
    if args.json:
        fields = {
            "loadings": args.loadings, "components": values.shape[1], "sample_names": samples,
            "scores": values,
        }  # fmt: skip
        print_json(task.document(fields))
    elif not args.output:
        write_scores(sys.stdout, values, samples, raw)


def _matched(task: Task, saved: Saved) -> Table:
    """The table with the variables of the fit alone, in their order."""
    args, names, p = task.args, task.names, len(saved.loadings)
    wanted = known_names(saved, names)
    numbered = wanted == [f"x{j + 1}" for j in range(p)]
    if task.table.names is None or (numbered and not set(wanted) <= set(names)):
        if task.p != p:
            raise UserError(
                f"{args.source} has {counted(task.p, 'variable')}, {args.loadings} has {p}, and they cannot "
                "be matched without names"
            )
        return task.table
    return task.table.with_columns(places(wanted, names, args.loadings, args.source))
