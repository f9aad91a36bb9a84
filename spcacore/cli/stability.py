"""`spcacore stability`: which variables resamples choose again."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from .._messages import counted
from ..selection.stability_result import Stability
from ..selection.stable_variables import stability
from .models import call_of
from .reading import read, read_lines, where_not_finite
from .report import json_result, write_frame, write_npz
from .source import STDIN
from .table import Arguments, UserError
from .task import Task

__all__ = ["run"]
__dir__ = __all__.copy


def run(args: Arguments) -> None:
    sides = {"sparse_cca": "other", "sparse_lda": "labels"}
    option = sides.get(args.method)
    path = None if option is None else getattr(args, option)
    call = call_of(args, {name: v for name, v in args.of_model.items() if name != option})
    if option is not None and path in (None, STDIN):
        why = "a file is needed, not the standard input" if path else f"method {args.method} needs it"
        raise UserError(f"argument --{option}: {why}")
    if option is not None and args.impute == "drop-rows":
        raise UserError(f"argument --impute: drop-rows would leave no row for some of those of --{option}")
    task = Task(args)
    names, Y, fields = task.names, None, {}
    if option == "other":
        table = _other(task)
        Y, other, known = table.matrix, table.variables("y"), set(names)
        names = [*names, *(f"{name} (other)" if name in known else name for name in other)]
        fields = {"other": path, "other_variables": len(other), "other_names": other if table.names else None}
    elif option == "labels":
        Y = np.array(read_lines(args, option, task.n, "sample", task.table.samples()), np.str_)
    r = task.components(call, 1 if option == "labels" else 2)
    model = partial(call.function, n_components=r, **task.keywords(call))
    with task.work() as progress:
        found = stability(task.matrix, model, Y, callback=progress, **args.of_function)
    found = replace(found, names=tuple(names))

    def draw(figure: Any) -> None:
        from .. import plot

        for t, ax in enumerate(np.atleast_1d(figure.subplots(1, r))):
            plot.stability(found, t, ax=ax)

    task.report(
        "Stability", "computed", fields | _json(found, names), lambda: print(found.summary()),
        lambda path: _write(path, found), draw, 5.5 * r,
    )  # fmt: skip


def _other(task: Task) -> Any:
    """The other side of canonical pairs, whose rows are those of the matrix."""
    args = Arguments(**vars(task.args))
    args.file, args.drop = args.other, None
    args.format = args.names = args.array = None
    if not re.search(r"\.([ct]sv)(\.\w+)?$", args.file.lower()):
        args.header = args.row_names = args.index_column = args.delimiter = args.thousands = None
        args.comment, args.decimal = None, "."
    table = read(args)
    where = where_not_finite(table, args)
    if where is not None:
        raise UserError(f"argument --other: {args.source}: {where}")
    here, there, source = task.table.samples(), table.samples(), task.args.source
    if len(there) != task.n:
        many = counted(len(there), "sample")
        raise UserError(f"argument --other: {args.file} has {many}, {source} has {task.n}")
    for i, (a, b) in enumerate(zip(here, there, strict=True)):
        if a != b and task.table.row_names and table.row_names:
            raise UserError(
                f"argument --other: sample {i + 1} of {args.file} is {b!r}, that of {source} is {a!r}"
            )
    return table


_FIELDS = (
    "selection_frequency", "any_frequency", "average_selected", "average_any", "threshold", "any_threshold",
    "expected_false", "stable", "loading_interval", "explained_variance_ratio", "explained_interval",
    "cosine", "loadings", "resampling", "assumption", "level", "max_false", "n_samples", "names",
)  # fmt: skip


def _write(path: str, found: Stability) -> None:
    if Path(path).suffix.lower() == ".csv":
        write_frame(path, found.to_frame().astype({"stable": int}))
    else:
        write_npz(path, {name: getattr(found, name) for name in _FIELDS})


def _json(found: Stability, names: list[str]) -> dict[str, Any]:
    of_all = ("model", "resampling", "level", "max_false", "assumption", "average_any", "any_threshold")
    of_each = ("threshold", "expected_false", "average_selected", "explained_interval")
    components: list[dict[str, Any]] = [
        {"index": t, **{name: None if (v := getattr(found, name)) is None else v[t] for name in of_each},
         "cosine": found.cosine[:, t].mean(), "variables": []}
        for t in range(found.n_components)
    ]  # fmt: skip
    for t, j in found.rows():
        components[t]["variables"].append(
            {"index": j, "variable": names[j], "frequency": found.selection_frequency[j, t],
             "loading": found.loadings[j, t], "interval": found.loading_interval[j, t],
             "stable": found.stable[j, t]}
        )  # fmt: skip
    result = found.result
    if found.model == "sparse_cca":  # of both sides
        own = {name: getattr(result, name) for name in ("method", "deflation", "n_iter", "converged")}
        result = SimpleNamespace(loadings=found.loadings, **own)
    return {
        **{name: getattr(found, name) for name in of_all}, "resamples": found.n_resamples,
        "components": components, "result": json_result(result, names),
    }  # fmt: skip
