"""`spcacore path`: several numbers of variables, or bounds, and the choice of one."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from .._messages import counted
from .._rendering import percent
from ..selection.criteria import select_sparsity, sparsity_path
from .fit import fit_fields
from .models import SPARSITY, call_of, flag_of, refuse, takes
from .report import fields_of, json_result, print_result, write_table
from .table import Arguments, UserError
from .task import Task

__all__ = ["run"]
__dir__ = __all__.copy

_OF_CRITERIA = {
    "n_folds": "cv", "n_repeats": "cv", "n_permutations": "permutation", "n_resamples": "stability",
}  # fmt: skip


def run(args: Arguments) -> None:
    asked, choosing = args.of_model, args.of_function
    grids = {name: asked.pop(name) for name in SPARSITY if name in asked}
    for name in grids:
        if name not in takes(args.method):
            refuse(args, name)
    name, grid = next(iter(grids.items()), ("cardinality", None))
    args.grid_of = name
    if args.criterion is None and "rng" in choosing:
        seed = choosing.pop("rng")
        asked |= {"rng": seed} if "rng" in takes(args.method) else {}
    for option in choosing:
        needed = _OF_CRITERIA.get(option, args.criterion)
        if args.criterion is None or args.criterion != needed:
            raise UserError(f"argument {flag_of(option)}: requires --criterion {needed or ''}".rstrip())
    if grid is not None and isinstance(grid[0], list):
        if args.criterion is None:
            raise UserError(f"argument {flag_of(name)}: values for each component require --criterion")
        asked.setdefault("n_components", len(grid))
    call = call_of(args, asked)
    task = Task(args)
    model = partial(call.function, n_components=task.components(call, 1), **task.keywords(call))
    given = None if grid is None else {name: grid}
    with task.work() as work:
        function = sparsity_path if args.criterion is None else select_sparsity
        curve: Any = function(task.matrix, model, given, callback=work, **choosing)
    path, names = getattr(curve, "path", curve), task.names
    steps = [replace(one, earlier=()) for one in (*curve.earlier, curve)] if path is not curve else [curve]
    tables = [
        step.to_frame() if step is path else step.path.to_frame().join(step.to_frame()) for step in steps
    ]

    def show() -> None:
        for step, table in zip(steps, tables, strict=True):
            shares = table["explained_variance_ratio"].map(percent)
            table = table.assign(explained_variance_ratio=shares).rename(columns=_title)
            print(f"{step._title()}\n\n{table.to_string(float_format='{:.4g}'.format)}\n")
        r = counted(path.n_components, "ordinary principal component")
        print(f"{percent(path.dense_ratio.sum())} % by {r}\n")
        if path is not curve:
            print_result(curve.result, names)

    def draw(figure: Any) -> None:
        from .. import plot

        plot.path(curve, ax=figure.subplots())

    fields = fields_of(path)
    if path is not curve:
        earlier = [fields_of(step) | {"path": fields_of(step.path)} for step in steps]
        fields = earlier.pop() | {"chosen_by_component": curve.chosen_by_component, "earlier": earlier}
        fields["result"] = json_result(curve.result, names)
    if args.output:
        import pandas

        rows = pandas.concat([table.assign(component=t + 1) for t, table in enumerate(tables)])
        more = {} if path is curve else fit_fields(curve.result, names)
        arrays = {name: v for name, v in fields.items() if name not in ("earlier", "path", "result")}
        write_table(args.output, rows if len(tables) > 1 else tables[0], more | arrays)
    task.report("Sparsity path", fields, show, draw)


def _title(column: str) -> str:
    return "variance %" if column == "explained_variance_ratio" else column.replace("_", " ")
