"""`spcacore compare`: several files of loadings side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..models.comparison import Comparison, compare
from ..models.given import from_loadings
from .reading import adopt, placed, read_saved
from .report import write_frame
from .table import Arguments, UserError
from .task import Task

__all__ = ["run"]
__dir__ = __all__.copy


def run(args: Arguments) -> None:
    args.loadings = [args.loadings, *args.others]
    if not 1 <= args.reference <= len(args.loadings):
        raise UserError(f"argument --reference: {args.reference} is too many, of {len(args.loadings)} files")
    stems = [Path(path).stem for path in args.loadings]
    labels = stems if len(set(stems)) == len(stems) else args.loadings
    if len(set(labels)) < len(labels):
        raise UserError("argument --loadings: names a file twice")
    files = list(map(read_saved, args.loadings))
    adopt(args, files)
    task = Task(args)
    with task.work() as progress:
        results = {}
        for label, saved in zip(labels, files, strict=True):
            progress(saved.path)
            V = placed(saved, task.names, args.source)
            results[label] = from_loadings(V, task.matrix, names=task.names, label=label, **task.treatment)
        found = compare(results, task.matrix, reference=args.reference - 1, **task.treatment)

    def draw(figure: Any) -> None:
        from .. import plot

        plot.comparison(found, ax=figure.subplots())

    task.report(
        "Comparison", "compared", _json(found), lambda: print(found), lambda path: _write(path, found),
        draw, 8,
    )  # fmt: skip


def _write(path: str, found: Comparison) -> None:
    if path.lower().endswith(".html"):
        Path(path).write_text(found._repr_html_(), encoding="utf-8")
    else:
        write_frame(path, found.to_frame())


def _json(found: Comparison) -> dict[str, Any]:
    measures = ["component", "matched", "shared", "overlap", "angle", "correlation"]
    matched = found.to_frame()[measures].rename(columns={"matched": "like"}).reset_index()
    results = [
        {"label": label, "cardinality": found.cardinality[i],
         "explained_variance": {name: v[i] for name, v in found.explained_variance.items()}}
        for i, label in enumerate(found.labels)
    ]  # fmt: skip
    return {
        "reference": found.labels[found.reference], "total_variance": found.total_variance,
        "results": results, "matched": matched.to_dict("records"),
    }  # fmt: skip
