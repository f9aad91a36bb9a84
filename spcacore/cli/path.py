"""`spcacore path`: several numbers of variables, or bounds, and the choice of one."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._messages import counted
from .._rendering import percent
from ..models.components import sparse_pca
from .models import flag_of
from .report import (
    json_result,
    print_aligned,
    print_json,
    print_result,
    result_fields,
    write,
    write_csv,
    write_npz,
)
from .table import Arguments, UserError
from .task import PICTURES, SPARSITY, TABLES, Task, checked_options, draw_figure, fitted_by

__all__ = ["run"]
__dir__ = __all__.copy

_DEFAULT_CARDINALITIES = (1, 2, 3, 4, 5, 7, 10, 14, 20, 28, 40, 56, 80, 112, 160)


def run(args: Arguments) -> None:
    parameter, values, options = checked_options(
        args, (args.output, "the curve", TABLES), (args.plot, "the picture", PICTURES)
    )
    selecting = _selection_options(args)
    if values is not None and isinstance(values[0], list):
        _check_grids(args, SPARSITY[parameter], len(values))
    from ..selection.criteria import select_sparsity, sparsity_path

    task = Task(args)
    r = task.components(args.n_components, 1)
    folds = args.n_folds or 5
    if args.criterion == "cv" and folds > task.n:
        raise UserError(f"argument --n-folds: {folds} is too many, at most {task.n}: {task.size}")
    least = {"cv": 3, "permutation": 3, "stability": 4}.get(args.criterion, 0)
    if task.n < least:
        raise UserError(f"argument --criterion: at least {counted(least, 'sample')} are needed: {task.size}")
    if values is None:
        values = [k for k in _DEFAULT_CARDINALITIES if k <= task.p]
    asked = fitted_by(args, "cardinality", None, options, task.choice())
    model = partial(sparse_pca, n_components=r, **asked, **task.treatment)
    grid = task.sparsity(parameter, values)
    with task.work() as progress:
        if args.criterion is None:
            curve: Any = sparsity_path(task.matrix, model, grid, callback=progress)
        else:
            curve = select_sparsity(task.matrix, model, grid, callback=progress, rng=args.rng, **selecting)
    if args.output:
        write(args.output, lambda path: _write_curve(path, curve, task.names))
    if args.plot:
        from .. import plot

        draw_figure(args.plot, 7, lambda figure: plot.path(curve, ax=figure.subplots()))
    if args.json:
        print_json(task.document(_json_curve(curve, task.names)))
    elif not args.quiet:
        print(task.title("Sparsity path"), end="\n\n")
        if args.criterion is None:
            _print_path(curve)
        else:
            _print_selection(curve)
            print_result(curve.result, task.names)
        task.last_line("computed", args.output, args.plot)


def _check_grids(args: Arguments, flag: str, count: int) -> None:
    """As many components as there are grids, one of which is to be chosen for each."""
    if args.criterion is None:
        raise UserError(f"argument {flag}: values for each component require --criterion")
    if args.n_components not in (None, count):
        raise UserError(
            f"argument {flag}: values of {counted(count, 'component')}, and -n/--n-components "
            f"{args.n_components}"
        )
    args.n_components = count


def _selection_options(args: Arguments) -> dict[str, Any]:
    criteria = {
        "n_folds": "cv", "n_permutations": "permutation", "rule": None, "n_jobs": None,
    }  # fmt: skip
    options = {"criterion": args.criterion}
    for name, criterion in criteria.items():
        value = getattr(args, name)
        if value is None:
            continue
        if args.criterion is None or criterion not in (None, args.criterion):
            raise UserError(
                f"argument {flag_of(name)}: requires --criterion{' ' * bool(criterion)}{criterion or ''}"
            )
        options[name] = value
    if args.criterion == "cv" and args.covariance:
        raise UserError("argument --criterion: a covariance has no samples to divide into folds")
    if args.criterion == "permutation" and args.covariance:
        raise UserError("argument --criterion: a covariance has no samples to permute")
    if args.criterion in ("bic", "stability") and args.covariance:
        raise UserError(f"argument --criterion: {args.criterion} needs samples, and a covariance has none")
    return options


def _print_path(curve: Any) -> None:
    print_aligned([[*row] for row in zip(*_curve_rows(curve), strict=True)])
    r = len(curve.dense_ratio)
    print(f"\n{percent(np.sum(curve.dense_ratio))} % by {counted(r, 'ordinary principal component')}")


def _curve_rows(curve: Any) -> list[list[str]]:
    """The columns of the table, each with its title first."""
    return [
        [curve.parameter.replace("_", " "), *(f"{value:g}" for value in curve.values)],
        ["nonzeros", *map(_sizes, curve.cardinality)],
        ["variance %", *(percent(np.sum(shares)) for shares in curve.explained_variance_ratio)],
        ["index of sparseness", *(f"{index:.3f}" for index in curve.index_of_sparseness)],
    ]


def _sizes(nonzeros: NDArray[Any]) -> str:
    """Of each component where these are few, else of all together."""
    return "+".join(map(str, nonzeros)) if len(nonzeros) <= 5 else str(np.sum(nonzeros))


def _print_selection(curve: Any) -> None:
    steps = [*curve.earlier, curve]
    for t, step in enumerate(steps):
        if len(steps) > 1:
            print(f"component {t + 1}")
        _print_scores(step)
        print()


def _print_scores(curve: Any) -> None:
    columns = _curve_rows(curve.path)
    if curve.criterion != "sparseness":
        columns.append(["score", *(f"{score:.4g}" for score in curve.score)])
    if curve.standard_error is not None:
        columns.append(["standard error", *(f"{error:.2g}" for error in curve.standard_error)])
    marks = [
        " ".join(["best"] * bool(value == curve.best) + ["chosen"] * bool(i == curve.chosen_index))
        for i, value in enumerate(curve.values)
    ]
    columns.append([mark.ljust(max(map(len, marks))) for mark in ("", *marks)])
    print_aligned([[*row] for row in zip(*columns, strict=True)])
    name = curve.parameter.replace("_", " ")
    rule = ", the sparsest within a standard error of the best" * (
        curve.rule == "one_se" and curve.standard_error is not None
    )
    print(f"\nchosen by {_CRITERIA[curve.criterion]}{rule}: {name} {curve.chosen:g}")


_CRITERIA = {
    "cv": "cross-validation", "permutation": "permutation", "sparseness": "the index of sparseness",
    "bic": "BIC", "stability": "the agreement of half-samples",
}  # fmt: skip


def _csv_columns(curve: Any) -> dict[str, Any]:
    """One number a value of the parameter in each."""
    path = getattr(curve, "path", curve)
    shares, nonzeros = path.explained_variance_ratio, path.cardinality
    columns = {
        "nonzeros": nonzeros.sum(axis=1),
        "explained_variance_ratio": shares.sum(axis=1),
        "index_of_sparseness": path.index_of_sparseness,
    }
    for t in range(shares.shape[1]):
        columns[f"nonzeros_{t + 1}"] = nonzeros[:, t]
        columns[f"explained_variance_ratio_{t + 1}"] = shares[:, t]
    if path is not curve:
        columns["score"] = curve.score
        if curve.standard_error is not None:
            columns["standard_error"] = curve.standard_error
    return columns


_PATH_FIELDS = (
    "parameter", "values", "explained_variance_ratio", "cardinality", "index_of_sparseness", "dense_ratio",
)  # fmt: skip
_SELECTION_FIELDS = (
    "parameter", "criterion", "values", "score", "standard_error", "scores", "best", "one_se", "chosen",
    "chosen_index", "rule",
)  # fmt: skip


def _write_curve(path: str, curve: Any, names: list[str]) -> None:
    if Path(path).suffix.lower() == ".csv":
        steps = [*getattr(curve, "earlier", ()), curve]
        tables = [_csv_columns(step) for step in steps]
        rows = []
        for t, (step, table) in enumerate(zip(steps, tables, strict=True)):
            which = [t + 1] * (len(steps) > 1)
            for i, value in enumerate(step.values):
                rows.append(
                    [value, *which, *(table[name][i] if name in table else "" for name in tables[-1])]
                )
        write_csv(path, [curve.parameter, *["component"] * (len(steps) > 1), *tables[-1]], rows)
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


def _json_curve(curve: Any, names: list[str]) -> dict[str, Any]:
    path = getattr(curve, "path", curve)
    fields = {"method": path.method, "deflation": path.deflation, **_fields(curve)}
    if "path" in fields:
        fields["result"] = json_result(curve.result, names)
    return fields
