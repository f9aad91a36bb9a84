"""`spcacore transform`: scores of new samples by components that were saved."""

from __future__ import annotations

import sys

from ..operators.inputs import as_problem
from ..operators.transform import scores
from .fit import scores_of
from .loadings import adopt, places, read_saved
from .report import print_json, write_frame, write_table
from .table import Arguments
from .task import Task

__all__ = ["run"]


def run(args: Arguments) -> None:
    saved = read_saved(args.loadings)
    adopt(args, [saved])
    task = Task(args)
    X, samples, fields = (
        task.matrix[:, places(saved, task.table, args.source)],
        task.table.samples(),
        saved.fields,
    )
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
