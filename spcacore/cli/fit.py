"""`spcacore fit`, and `spcacore` alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from .. import datasets
from .._records import replaced
from ..models.components import sparse_pca
from ..readable import frame
from ..results import LoadingsResult
from .console import Work
from .models import takes
from .report import fields_of, json_result, print_result, write_table
from .table import Arguments, UserError
from .task import Task

__all__ = ["fit_fields", "run", "scores_of", "show_pitprops"]


def show_pitprops() -> None:
    pitprops = datasets.load_pitprops()
    sizes = [7, 4, 4, 1, 1, 1]
    with Work(False) as work:
        result = sparse_pca(pitprops.correlation, 6, sizes, kind="covariance", callback=work)
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
    task = Task(args)
    model, names = task.model(5), task.names
    with task.work() as work:
        result = model(task.matrix, callback=work)
    if args.plot and result.n_components == 0:
        raise UserError(f"cannot write {args.plot}: there is no component to draw")
    if args.scores:
        found = scores_of(result.transform(task.matrix), task.table.samples())
        write_table(args.scores, *found, args.raw_names)
    if args.output:
        write_table(args.output, _frame(result, names), fit_fields(result, names), args.raw_names)

    def draw(figure: Any) -> None:
        from .. import plot

        left, right = figure.subplots(1, 2)
        plot.heatmap(result, names=names, ax=left)
        plot.scree(result, None if np.isnan(task.matrix.sum()) else task.matrix, ax=right)

    fields = {"result": json_result(result, names)}
    task.report("Sparse PCA", fields, lambda: print_result(result, names), draw, 11)


def fit_fields(result: Any, names: list[str]) -> dict[str, Any]:
    """What an .npz of a fit holds; scores have a file of their own."""
    fields = fields_of(result) | {"gap": getattr(result, "gap", None), "names": np.array(names, np.str_)}
    if type(result).transform is not LoadingsResult.transform:  # then a unit row of data has the weights
        eye = scipy.sparse.csr_array(scipy.sparse.identity(len(names), format="csr"))
        fields["weights"] = replaced(result, mean=None, scale=None).transform(eye)
    return fields | {"scores": None}


def _frame(result: Any, names: list[str]) -> Any:
    """The loadings, with columns that say what the fit did to its data."""
    table, kind = replaced(result, names=names).to_frame(), getattr(result, "kind", None)
    if kind is None:
        return table
    mean, scale = (
        (0.0 if result.mean is None else result.mean),
        (1.0 if result.scale is None else result.scale),
    )
    return table.assign(center=mean, scale=scale, kind=kind)


def scores_of(values: Any, samples: list[str]) -> tuple[Any, dict[str, Any]]:
    """As a table, and as arrays."""
    columns = {f"component_{t + 1}": score for t, score in enumerate(values.T)}
    return frame(columns, samples, "sample"), {"scores": values, "names": np.array(samples, np.str_)}
