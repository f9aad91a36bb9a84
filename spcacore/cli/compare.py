"""`spcacore compare`: several files of loadings side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..models.comparison import compare
from ..models.variance import from_loadings
from .loadings import adopt, read_saved, rows_for
from .report import write, write_table
from .table import Arguments, UserError
from .task import Task

__all__ = ["run"]


def run(args: Arguments) -> None:
    args.loadings = [args.loadings, *args.others]
    reference = args.reference or 1
    if not 1 <= reference <= len(args.loadings):
        raise UserError(f"argument --reference: {reference} is too many, of {len(args.loadings)} files")
    stems = [Path(path).stem for path in args.loadings]
    labels = stems if len(set(stems)) == len(stems) else args.loadings
    if len(set(labels)) < len(labels):
        raise UserError("argument --loadings: names a file twice")
    files = list(map(read_saved, args.loadings))
    adopt(args, files)
    task = Task(args)
    with task.work() as work:
        results = {}
        for label, saved in zip(labels, files, strict=True):
            work(saved.path)
            V = rows_for(saved, task.table, args.source)
            results[label] = from_loadings(V, task.matrix, names=task.names, label=label, **task.treatment)
        found = compare(results, task.matrix, reference=reference - 1, **task.treatment)

    if args.output and args.output.lower().endswith(".html"):
        write(args.output, lambda path: Path(path).write_text(found._repr_html_(), encoding="utf-8"))
    elif args.output:
        write_table(args.output, found.to_frame(), {})

    def draw(figure: Any) -> None:
        from .. import plot

        plot.comparison(found, ax=figure.subplots())

    fields = {"reference": found.labels[found.reference], "total_variance": found.total_variance}
    fields["components"] = found.to_frame()
    task.report("Comparison", fields, lambda: print(found.summary()), draw, 8)
