"""`spcacore fit`, and `spcacore` alone."""

from __future__ import annotations

from typing import Any

from .. import datasets
from ..models.components import sparse_pca
from .console import Work
from .models import MODELS, check_model, fit, flag_of, given
from .reading import where_not_finite
from .report import (
    check_outputs,
    json_result,
    print_json,
    print_result,
    write,
    write_result,
    write_scores,
)
from .table import Arguments, UserError
from .task import (
    PICTURES,
    SPARSITY,
    TABLES,
    Task,
    as_many,
    check_matplotlib,
    checked_options,
    draw_figure,
    fitted_by,
)

__all__ = ["run", "show_pitprops"]
__dir__ = __all__.copy


def show_pitprops() -> None:
    pitprops = datasets.load_pitprops()
    work = Work(False)
    with work() as progress:
        result = sparse_pca(
            pitprops.correlation, 6, cardinality=[7, 4, 4, 1, 1, 1], kind="covariance", callback=progress
        )
    print(
        "Sparse PCA of the pit props: correlations of 13 measurements of 180 mine timbers (Jeffers 1967)\n"
        "6 components of 7, 4, 4, 1, 1 and 1 variables, as in Zou, Hastie and Tibshirani (2006)\n"
    )
    print_result(result, pitprops.names)
    print(f"\n{work.seconds:.3f} s\nYour own data: spcacore fit FILE      More: spcacore --help")


def run(args: Arguments) -> None:
    if args.method in MODELS:
        _run_model(args)
        return
    for name in ("ridge", "sample_l1_bound"):
        if getattr(args, name) is not None:
            raise UserError(f"argument {flag_of(name)}: not for method {args.method or 'tpower'}")
    parameter, value, options = checked_options(args, *_outputs(args))
    if args.total_cardinality is not None and value is not None:
        raise UserError(f"argument --total-cardinality: not with {SPARSITY[parameter]}")
    task = _task(args)
    r = args.n_components
    if isinstance(value, list):
        if isinstance(r, float):
            raise UserError(f"argument {SPARSITY[parameter]}: one number where -n is a share")
        r = as_many(args, parameter, value)
    r, choice = task.components(r, 5), task.choice()
    if args.total_cardinality is not None:
        parameter, value = "total_cardinality", args.total_cardinality
    else:
        value = task.sparsity(parameter, min(10, task.p) if value is None else value)
    certify = args.certify
    if certify is True and args.time_limit is not None and args.method != "branch_and_bound":
        certify = options.pop("time_limit") or "bounds"
    with task.work() as progress:
        result = sparse_pca(
            task.matrix, r, certify=certify, support=args.support or "free", callback=progress,
            **fitted_by(args, parameter, value, options, choice), **task.treatment,
        )  # fmt: skip
    _report(task, result, {parameter: value})


def _run_model(args: Arguments) -> None:
    """A method that fits all components together."""
    check_model(args)
    check_outputs(args, _outputs(args))
    check_matplotlib(args)
    args.nan = MODELS[args.method].missing
    if isinstance(args.n_components, float):
        raise UserError(f"argument -n/--n-components: method {args.method} takes a whole number")
    r = args.n_components
    for name in ("cardinality", "penalty"):
        value = getattr(args, name)
        if isinstance(value, list):
            args.n_components = r = as_many(args, name, value)
    task = _task(args)
    sparsity = given(args, task.p)
    if "cardinality" in sparsity:
        task.sparsity("cardinality", sparsity["cardinality"])
    r, choice = task.components(r, 5), task.choice()
    with task.work() as progress:
        result = fit(args, task.matrix, r, choice, progress, **task.treatment)
    _report(task, result, sparsity)


def _outputs(args: Arguments) -> tuple[tuple[str | None, str, tuple[str, ...]], ...]:
    return (
        (args.output, "loadings", TABLES), (args.scores, "scores", TABLES),
        (args.plot, "the picture", PICTURES),
    )  # fmt: skip


def _task(args: Arguments) -> Task:
    task = Task(args)
    where = where_not_finite(task.table, args) if args.scores and args.nan else None
    if where is not None:
        raise UserError(f"argument --scores: {args.source}: {where}")
    return task


def _report(task: Task, result: Any, sparsity: dict[str, Any]) -> None:
    """Write the files asked for, and print what was found."""
    args, names = task.args, task.names
    if args.output:
        write(args.output, lambda path: write_result(path, result, names, args.raw_names))
    if args.scores:
        scores, samples = result.transform(task.matrix), task.table.samples()
        write(args.scores, lambda path: write_scores(path, scores, samples, args.raw_names))
    if args.plot:
        _draw_result(args.plot, result, task)
    if args.json:
        print_json(task.document({**sparsity, "result": json_result(result, names)}))
    elif not args.quiet:
        print(task.title("Sparse PCA"), end="\n\n")
        print_result(result, names)
        task.last_line("fitted", args.output, args.scores, args.plot)


def _draw_result(path: str, result: Any, task: Task) -> None:
    if result.n_components == 0:
        raise UserError(f"cannot write {path}: there is no component to draw")
    from .. import plot

    def draw(figure: Any) -> None:
        left, right = figure.subplots(1, 2)
        plot.heatmap(result, names=task.names, ax=left)
        complete = where_not_finite(task.table, task.args) is None
        plot.scree(result, task.matrix if complete else None, ax=right)

    draw_figure(path, 11, draw)
