"""`spcacore transform`: scores of new samples by components that were saved."""

from __future__ import annotations

import sys
from typing import Any

from .._messages import counted
from ..operators.inputs import as_problem
from ..operators.transform import scores
from .fit import scores_of
from .loadings import Saved, adopt, known_names, places, read_saved
from .report import print_json, write_frame, write_table
from .table import Arguments, UserError
from .task import Task

__all__ = ["run"]


def run(args: Arguments) -> None:
    saved = read_saved(args.loadings)
    adopt(args, [saved])
    args.notes.clear()  # which this command need not say
    task = Task(args)
    X, samples, fields = _matched(task, saved), task.table.samples(), saved.fields
    with task.work():
        mean, scale = fields.get("mean"), fields.get("scale")
        if not saved.kind:  # then the moments of the samples themselves
            problem = as_problem(X, center=task.treatment["center"], scale=task.treatment["scale"])
            mean, scale = problem.mean, problem.scale
        values = scores(X, fields.get("weights", saved.loadings), mean, scale)
    table, arrays = scores_of(values, samples)
    if args.output:
        write_table(args.output, table, arrays, args.raw_names)
    if args.json:
        print_json(task.document({"loadings": args.loadings, "sample_names": samples, "scores": values}))
    elif not args.output:
        write_frame(sys.stdout, table, args.raw_names)


def _matched(task: Task, saved: Saved) -> Any:
    """The variables of the fit alone, in their order."""
    args, names, p = task.args, task.names, len(saved.loadings)
    wanted = known_names(saved, names)
    if task.table.names is None or (saved.names is None and not set(wanted) <= set(names)):
        if task.p != p:
            raise UserError(
                f"{args.source} has {counted(task.p, 'variable')}, {args.loadings} has {p}, and they cannot "
                "be matched without names"
            )
        return task.matrix
    return task.matrix[:, places(wanted, names, args.loadings, args.source)]
