"""`spcacore fit`, and `spcacore` alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .. import datasets
from ..models.components import sparse_pca
from .console import Work
from .models import call_of, takes
from .reading import where_not_finite
from .report import json_result, print_result, result_fields, write, write_matrix, write_npz
from .table import Arguments, UserError
from .task import Task

__all__ = ["run", "show_pitprops", "write_scores"]
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
    given = args.of_model
    if given.get("certify") and "time_limit" in given and "time_limit" not in takes(args.method):
        given["certify"] = given.pop("time_limit") or "bounds"
    call = call_of(args, given)
    if args.covariance and args.scores:
        raise UserError("argument --scores: a covariance has no samples to score")
    task = Task(args)
    names = task.names
    gap = where_not_finite(task.table, args)
    if args.scores and gap is not None:
        raise UserError(f"argument --scores: {args.source}: {gap}")
    r, keywords = task.components(call, 5), task.keywords(call)
    with task.work() as progress:
        result = call.function(task.matrix, r, **keywords, callback=progress)
    if args.plot and result.n_components == 0:
        raise UserError(f"cannot write {args.plot}: there is no component to draw")
    if args.scores:
        scores, samples = result.transform(task.matrix), task.table.samples()
        write(args.scores, lambda path: write_scores(path, scores, samples, args.raw_names))

    def draw(figure: Any) -> None:
        from .. import plot

        left, right = figure.subplots(1, 2)
        plot.heatmap(result, names=names, ax=left)
        plot.scree(result, task.matrix if gap is None else None, ax=right)

    task.report(
        "Sparse PCA", "fitted", {"result": json_result(result, names)}, lambda: print_result(result, names),
        lambda path: _write(path, result, names, args.raw_names), draw, 11,
    )  # fmt: skip


def _write(path: str, result: Any, names: list[str], raw: bool) -> None:
    """Loadings, with columns that say what the fit did to its data; or all."""
    if Path(path).suffix.lower() == ".npz":
        write_npz(path, result_fields(result, names))
        return
    p, kind, more = len(names), getattr(result, "kind", None), {}
    if kind == "data":
        more["center"] = np.zeros(p) if result.mean is None else result.mean
    if kind is not None:
        more |= {"scale": np.ones(p) if result.scale is None else result.scale, "kind": [kind] * p}
    write_matrix(path, "variable", names, result.loadings, raw, **more)


def write_scores(path: Any, scores: Any, samples: list[str], raw: bool) -> None:
    """To a file, by its extension, or as CSV to an open one."""
    if isinstance(path, str) and path.lower().endswith(".npz"):
        write_npz(path, {"scores": scores, "names": np.array(samples, dtype=np.str_)})
    else:
        write_matrix(path, "sample", samples, scores, raw)
