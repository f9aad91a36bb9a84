"""`spcacore path`: several numbers of variables, or bounds, and the choice of one."""

from __future__ import annotations

from typing import Any

from .._messages import counted
from .._rendering import percent
from ..selection.criteria import select_sparsity, sparsity_path
from .fit import fit_fields
from .models import SPARSITY, flag_of, refuse, takes
from .report import fields_of, json_result, print_result, write_table
from .table import Arguments, UserError
from .task import Task

__all__ = ["run"]


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
    if grid is not None and isinstance(grid[0], list):
        if args.criterion is None:
            raise UserError(f"argument {flag_of(name)}: values for each component require --criterion")
        asked.setdefault("n_components", len(grid))
    task = Task(args)
    model = task.model(1)
    given = None if grid is None else {name: grid}
    with task.work() as work:
        function = sparsity_path if args.criterion is None else select_sparsity
        curve: Any = function(task.matrix, model, given, callback=work, **choosing)
    path, names = getattr(curve, "path", curve), task.names
    fields = fields_of(curve)
    if path is not curve:
        earlier = [fields_of(one) | {"path": fields_of(one.path)} for one in curve.earlier]
        fields |= {"path": fields_of(path), "earlier": earlier, "result": json_result(curve.result, names)}
        fields["chosen_by_component"] = curve.chosen_by_component
    if args.output:
        more = {} if path is curve else fit_fields(curve.result, names)
        write_table(args.output, curve.to_frame(), more | fields_of(curve))

    def show() -> None:
        print(f"{path.summary()}\n")
        r = counted(path.n_components, "ordinary principal component")
        print(f"{percent(path.dense_ratio.sum())} % by {r}")
        if path is not curve:
            print(f"\n{curve.summary()}\n")
            print_result(curve.result, names)

    def draw(figure: Any) -> None:
        from .. import plot

        plot.path(curve, ax=figure.subplots())

    task.report("Sparsity path", fields, show, draw)
