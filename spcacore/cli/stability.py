"""`spcacore stability`: which variables resamples choose again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .._messages import counted
from ..selection.stable_variables import stability
from .models import FILES
from .reading import read, read_lines
from .report import fields_of, json_result, write_table
from .source import STDIN
from .table import Arguments, Table, UserError
from .task import Task

__all__ = ["run"]


def run(args: Arguments) -> None:
    option = FILES.get(args.method, "")
    path = getattr(args, option)
    if option and path in (None, STDIN):
        why = "a file is needed, not the standard input" if path else f"method {args.method} needs it"
        raise UserError(f"argument --{option}: {why}")
    if option and args.impute == "drop-rows":
        raise UserError(f"argument --impute: drop-rows would leave no row for some of those of --{option}")
    task = Task(args)
    names, Y, fields = task.names, None, {}
    if option == "other":
        table = _other(task)
        Y, other = table.matrix, table.variables("y")
        fields = {"other": path, "other_names": other}
        names = [*names, *(f"{name} (other)" if name in set(names) else name for name in other)]
    elif option == "labels":
        Y = np.array(read_lines(args, option, task.n, "sample"), np.str_)
    model = task.model(1 if option == "labels" else 2)
    r = model.keywords["n_components"]
    with task.work() as work:
        found = stability(task.matrix, model, Y, callback=work, **args.of_function)
    found = replace(found, names=tuple(names))
    variables = found.to_frame()

    if args.output:
        arrays = fields_of(found) | {"names": np.array(names, np.str_)}
        write_table(args.output, variables.astype({"stable": int}), arrays)

    def draw(figure: Any) -> None:
        from .. import plot

        for t, ax in enumerate(np.atleast_1d(figure.subplots(1, r))):
            plot.stability(found, t, ax=ax)

    fields |= json_result(found, names) | {"variables": variables}
    task.report("Stability", fields, lambda: print(found.summary()), draw, 5.5 * r)


def _other(task: Task) -> Table:
    """The other side of canonical pairs, whose rows are those of the matrix."""
    args = Arguments(**vars(task.args))
    args.file, args.drop = args.other, None
    args.format = args.names = args.array = None
    table = read(args)
    here, there = task.table.samples(), table.samples()
    named = task.table.row_names and table.row_names
    if len(here) != len(there) or (named and here != there):
        wrong = f"it has {counted(len(there), 'sample')}"
        for i, (one, other) in enumerate(zip(here, there, strict=False) if named else ()):
            if one != other:
                wrong = f"its sample {i + 1} is {other!r}, not {one!r}"
                break
        raise UserError(
            f"argument --other: {args.file} must have the {counted(task.n, 'sample')} of {task.args.source}; "
            f"{wrong}"
        )
    return table
