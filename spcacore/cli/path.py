"""`spcacore path`: several numbers of variables, or bounds, and the choice of one."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from .._messages import counted
from .._rendering import percent
from ..selection.criteria import select_sparsity, sparsity_path
from .models import SPARSITY, call_of, flag_of, refuse, takes
from .report import json_result, print_result, result_fields, write_frame, write_npz
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
    if args.criterion is None:
        seed = {"rng": choosing.pop("rng")} if "rng" in choosing else {}
        asked |= seed if "rng" in takes(args.method) else {}
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
    with task.work() as progress:
        if args.criterion is None:
            curve: Any = sparsity_path(task.matrix, model, given, callback=progress)
        else:
            curve = select_sparsity(task.matrix, model, given, callback=progress, **choosing)

    def draw(figure: Any) -> None:
        from .. import plot

        plot.path(curve, ax=figure.subplots())

    task.report(
        "Sparsity path", "computed", _json(curve, task.names), lambda: _print(curve, task.names),
        lambda path: _write(path, curve, task.names), draw,
    )  # fmt: skip


def _print(curve: Any, names: list[str]) -> None:
    path = getattr(curve, "path", curve)
    for step in [*getattr(curve, "earlier", ()), curve]:
        frame = _frame(step)
        frame["explained_variance_ratio"] *= 100
        titles = {name: name.replace("_", " ") for name in frame if not name[-1].isdigit()}
        frame = frame[[*titles]].rename(columns=titles | {"explained_variance_ratio": "variance %"})
        print(f"{step._title()}\n\n{frame.to_string(float_format='{:.4g}'.format)}\n")
    r = counted(path.n_components, "ordinary principal component")
    print(f"{percent(path.dense_ratio.sum())} % by {r}")
    if path is not curve:
        print()
        print_result(curve.result, names)


def _frame(curve: Any) -> Any:
    """A row for each value: what is explained together, by each component, and the score."""
    path = getattr(curve, "path", curve)
    frame = path.to_frame()
    for t in range(path.n_components):
        frame[f"nonzeros_{t + 1}"] = path.cardinality[:, t]
        frame[f"explained_variance_ratio_{t + 1}"] = path.explained_variance_ratio[:, t]
    return frame if path is curve else frame.join(replace(curve, earlier=()).to_frame())


_PATH_FIELDS = (
    "parameter", "values", "explained_variance_ratio", "cardinality", "index_of_sparseness", "dense_ratio",
)  # fmt: skip
_SELECTION_FIELDS = (
    "parameter", "criterion", "values", "score", "standard_error", "scores", "best", "one_se", "chosen",
    "chosen_index", "rule",
)  # fmt: skip


def _write(path: str, curve: Any, names: list[str]) -> None:
    if Path(path).suffix.lower() == ".csv":
        import pandas

        frames = [_frame(step) for step in [*getattr(curve, "earlier", ()), curve]]
        if len(frames) > 1:
            frames = [frame.assign(component=t + 1) for t, frame in enumerate(frames)]
        write_frame(path, pandas.concat(frames))
        return
    fields = _fields(curve)
    if "path" in fields:  # whose fields would have the names of those of the result
        del fields["path"]
        for t, step in enumerate(fields.pop("earlier", ())):
            fields |= {f"{name}_{t + 1}": value for name, value in step.items() if name != "path"}
        fields |= result_fields(curve.result, names)
    write_npz(path, fields)


def _fields(curve: Any) -> dict[str, Any]:
    if not hasattr(curve, "path"):
        return {name: getattr(curve, name) for name in _PATH_FIELDS}
    fields = {name: getattr(curve, name) for name in _SELECTION_FIELDS} | {"path": _fields(curve.path)}
    if curve.earlier:
        fields["chosen_by_component"] = curve.chosen_by_component
        fields["earlier"] = [_fields(one) for one in curve.earlier]
    return fields


def _json(curve: Any, names: list[str]) -> dict[str, Any]:
    path = getattr(curve, "path", curve)
    fields = {"method": path.method, "deflation": path.deflation, **_fields(curve)}
    return fields if path is curve else fields | {"result": json_result(curve.result, names)}
