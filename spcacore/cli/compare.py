"""`spcacore compare`: several files of loadings side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..models.comparison import Comparison, compare
from ..models.given import from_loadings
from .reading import adopt, placed, read_saved
from .report import check_outputs, print_json, write, write_csv
from .table import Arguments, UserError
from .task import PICTURES, Task, check_matplotlib, draw_figure

__all__ = ["run"]
__dir__ = __all__.copy


def run(args: Arguments) -> None:
    args.loadings = [args.loadings, *args.others]
    check_outputs(
        args,
        ((args.output, "the comparison", (".csv", ".html")), (args.plot, "the picture", PICTURES)),
    )
    check_matplotlib(args)
    if args.reference > len(args.loadings):
        raise UserError(f"argument --reference: {args.reference} is too many, of {len(args.loadings)} files")
    labels = _labels(args.loadings)
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
    if args.output:
        write(args.output, lambda path: _write(path, found))
    if args.plot:
        from .. import plot

        draw_figure(args.plot, 8, lambda figure: plot.comparison(found, ax=figure.subplots()))
    if args.json:
        print_json(task.document(_json(found)))
    elif not args.quiet:
        print(task.title("Comparison"), end="\n\n")
        print(found)
        task.last_line("compared", args.output, args.plot)


def _labels(paths: list[str]) -> list[str]:
    """Names without folder and extension where these differ."""
    stems = [Path(path).stem for path in paths]
    labels = stems if len(set(stems)) == len(stems) else paths
    if len(set(labels)) < len(labels):
        raise UserError("argument --loadings: names a file twice")
    return labels


def _write(path: str, found: Comparison) -> None:
    if path.lower().endswith(".html"):
        Path(path).write_text(found._repr_html_(), encoding="utf-8")
        return
    index, columns = found.columns()
    write_csv(path, ["result", *columns], zip(index, *columns.values(), strict=True))


def _json(found: Comparison) -> dict[str, Any]:
    index, columns = found.columns()
    measures = {"like": "matched", "shared": "shared", "overlap": "overlap", "angle": "angle",
                "correlation": "correlation"}  # fmt: skip
    return {
        "reference": found.labels[found.reference],
        "total_variance": found.total_variance,
        "results": [
            {
                "label": label,
                "cardinality": found.cardinality[i],
                "explained_variance": {name: v[i] for name, v in found.explained_variance.items()},
            }
            for i, label in enumerate(found.labels)
        ],
        "matched": [
            {"result": label, "component": columns["component"][i],
             **{name: columns[column][i] for name, column in measures.items()}}
            for i, label in enumerate(index)
        ],
    }  # fmt: skip
