"""`spcacore stability`: which variables resamples choose again."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from .._limits import LISTED_FREQUENCIES
from .._messages import counted
from .._rendering import percent, printable
from ..selection.stability_result import Stability
from ..selection.stable_variables import stability
from .reading import quoted
from .report import json_result, print_aligned, print_json, write, write_csv, write_npz
from .table import UserError
from .task import PICTURES, TABLES, Task, checked_options, draw_figure

__all__ = ["run"]
__dir__ = __all__.copy


def run(args: argparse.Namespace) -> None:
    parameter, value, options = checked_options(
        args, (args.output, "the frequencies", TABLES), (args.plot, "the picture", PICTURES)
    )
    args.nan = False
    resampling: Any = args.resampling or "complementary"
    count = args.resamples or 100
    if resampling == "complementary" and count % 2:
        raise UserError(f"argument --resamples: {count} is odd, and complementary pairs have two each")
    if resampling != "complementary" and args.assumption not in (None, "none"):
        raise UserError(f"argument --assumption: {args.assumption} requires --resampling complementary")
    for flag, number in (("threshold", args.threshold), ("max-false", args.max_false), ("level", args.level)):
        if number is not None and not (number > 0 and (number <= 1 or flag == "max-false")):
            raise UserError(
                f"argument --{flag}: {number:g} is not more than 0"
                + ", and at most 1" * (flag != "max-false")
            )
    if args.level == 1:
        raise UserError("argument --level: less than 1")
    task = Task(args)
    if task.n < 4:
        raise UserError(f"at least 4 samples are needed: {task.size}")
    r = task.components(len(value) if isinstance(value, list) else args.components, min(2, task.n // 2))
    least = task.n if resampling == "bootstrap" else task.n // 2
    if r > least:
        raise UserError(
            f"argument -n/--components: {r} is too many, at most {least} of a resample: {task.size}"
        )
    value = task.sparsity(parameter, min(10, task.p) if value is None else value)
    given = {
        "threshold": args.threshold,
        "assumption": args.assumption,
        "max_false": args.max_false,
        "level": args.level,
        "n_jobs": args.jobs,
    }
    options |= task.choice() | {name: one for name, one in given.items() if one is not None}
    with task.work() as progress:
        found = stability(
            task.matrix, r, resampling=resampling, n_resamples=count, method=args.method,
            deflation=args.deflation, constraint=args.constraint, refine=args.refine, rng=args.seed,
            callback=progress, **{parameter: value}, center=args.center, scale=args.scale, **options,
        )  # fmt: skip
    if args.output:
        write(args.output, lambda path: _write(path, found, task.names))
    if args.plot:
        from .. import plot

        def draw(figure: Any) -> None:
            for t, ax in enumerate(np.atleast_1d(figure.subplots(1, r))):
                plot.stability(found, t, names=task.names, ax=ax)

        draw_figure(args.plot, 5.5 * r, draw)
    if args.json:
        print_json(task.document({parameter: value, **_json(found, task.names)}))
    elif not args.quiet:
        print(task.title("Stability"), end="\n\n")
        _print(found, task.names)
        task.last_line("computed", args.output, args.plot)


def _print(found: Stability, names: list[str]) -> None:
    for t, threshold in enumerate(found.threshold):
        frequency, stable = found.selection_frequency[:, t], int(np.count_nonzero(found.stable[:, t]))
        order = np.argsort(-frequency, kind="stable")[: np.count_nonzero(frequency)]
        bound = (
            ""
            if found.expected_false is None
            else f", at most {found.expected_false[t]:.2g} expected to be false"
        )
        limit = f"from {percent(threshold)} %{bound}" if np.isfinite(threshold) else "no frequency is enough"
        print(f"component {t + 1}: {counted(stable, 'stable variable')}, {limit}")
        rows = [["", "chosen %", "loading", "from", "to"]]
        for j in order[:LISTED_FREQUENCIES]:
            low, high = found.loading_interval[j, t]
            star = " *" if found.stable[j, t] else ""
            rows.append(
                [
                    printable(names[j]) + star,
                    percent(frequency[j]),
                    *(f"{v:.3f}" for v in (found.loadings[j, t], low, high)),
                ]
            )
        print_aligned(rows)
        if len(order) > LISTED_FREQUENCIES:
            print(f"and {len(order) - LISTED_FREQUENCIES} more; -o FILE writes all")
        print()
    print(
        f"{found.n_resamples} resamples ({found.resampling}); "
        f"from, to: {percent(found.level)} % of their loadings"
    )


_FIELDS = (
    "selection_frequency", "any_frequency", "average_selected", "average_any", "threshold", "any_threshold",
    "expected_false", "stable", "loading_interval", "explained_variance_ratio", "explained_interval",
    "cosine", "loadings", "resampling", "assumption", "level", "max_false", "n_samples",
)  # fmt: skip


def _write(path: str, found: Stability, names: list[str]) -> None:
    if Path(path).suffix.lower() == ".csv":
        header = ["variable", "component", "loading", "frequency", "low", "high", "stable"]
        write_csv(
            path, header,
            (
                [quoted(names[j]), t + 1, found.loadings[j, t], found.selection_frequency[j, t],
                 *found.loading_interval[j, t], int(found.stable[j, t])]
                for t, j in found.rows()
            ),
        )  # fmt: skip
        return
    write_npz(path, {name: getattr(found, name) for name in _FIELDS} | {"names": np.array(names, np.str_)})


def _json(found: Stability, names: list[str]) -> dict[str, Any]:
    interval = found.explained_interval
    components = []
    for t in range(found.n_components):
        components.append(
            {
                "index": t,
                "threshold": found.threshold[t],
                "expected_false": None if found.expected_false is None else found.expected_false[t],
                "average_selected": found.average_selected[t],
                "explained_interval": None if interval is None else interval[t],
                "cosine": found.cosine[:, t].mean(),
                "variables": [
                    {
                        "index": j,
                        "variable": names[j],
                        "frequency": found.selection_frequency[j, t],
                        "loading": found.loadings[j, t],
                        "interval": found.loading_interval[j, t],
                        "stable": found.stable[j, t],
                    }
                    for s, j in found.rows()
                    if s == t
                ],
            }
        )
    return {
        "resampling": found.resampling, "resamples": found.n_resamples, "level": found.level,
        "max_false": found.max_false, "assumption": found.assumption,
        "average_any": found.average_any, "any_threshold": found.any_threshold,
        "components": components, "result": json_result(found.result, names),
    }  # fmt: skip
