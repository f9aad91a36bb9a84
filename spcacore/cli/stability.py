"""`spcacore stability`: which variables resamples choose again."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from .._limits import LISTED_FREQUENCIES
from .._messages import counted
from .._rendering import percent, printable
from ..selection.stability_result import Stability
from ..selection.stable_variables import stability
from .models import RESAMPLED, check_model, given, options_of, refuse
from .reading import quoted
from .report import check_outputs, json_result, print_aligned, print_json, write, write_csv, write_npz
from .sides import Side, check_sides, read_sides
from .table import Arguments, UserError
from .task import PICTURES, TABLES, Task, as_many, check_matplotlib, checked_options, draw_figure

__all__ = ["run"]
__dir__ = __all__.copy


def run(args: Arguments) -> None:
    sparsity, options = _asked(args)
    args.nan = False
    resampling: Any = args.resampling or "complementary"
    count = _check_resampling(args, resampling)
    task = Task(args)
    if task.n < 4:
        raise UserError(f"at least 4 samples are needed: {task.size}")
    side = read_sides(task)
    r = task.components(args.n_components, min(2, task.n // 2, side.most))
    least = task.n if resampling == "bootstrap" else task.n // 2
    for most, of_what in ((side.most, f": {side.why}"), (least, f" of a resample: {task.size}")):
        if r > most:
            raise UserError(f"argument -n/--n-components: {r} is too many, at most {most}{of_what}")
    if args.method in RESAMPLED:
        sparsity = given(args, task.p)
    if args.method != "sparse_cca":  # which has two sizes
        sparsity = {
            name: task.sparsity(name, min(10, task.p) if value is None else value)
            for name, value in sparsity.items()
        }
    numbers = {
        "threshold": args.threshold,
        "assumption": args.assumption,
        "max_false": args.max_false,
        "level": args.level,
        "n_jobs": args.n_jobs,
    }
    options |= task.choice() | {name: one for name, one in numbers.items() if one is not None}
    with task.work() as progress:
        found = stability(
            task.matrix, r, side.Y, resampling=resampling, n_resamples=count, rng=args.rng,
            callback=progress, **sparsity, **options,
        )  # fmt: skip
    _report(task, found, side, sparsity)


def _asked(args: Arguments) -> tuple[dict[str, Any], dict[str, Any]]:
    """How sparse, and the options of the model, where nothing is wrong with the arguments."""
    outputs = (args.output, "the frequencies", TABLES), (args.plot, "the picture", PICTURES)
    if args.method not in RESAMPLED:
        for name in ("ridge", "shrinkage", "other", "labels"):
            if getattr(args, name) is not None:
                refuse(args, name, RESAMPLED)
        parameter, value, options = checked_options(args, *outputs)
        if isinstance(value, list):
            args.n_components = as_many(args, parameter, value)
        for name in ("method", "deflation", "constraint", "refine", "center", "scale"):
            options[name] = getattr(args, name)
        return {parameter: value}, options
    check_model(args, RESAMPLED, "rng")
    check_outputs(args, outputs)
    check_matplotlib(args)
    check_sides(args)
    model = RESAMPLED[args.method]
    options = {"model": args.method} | options_of(args, model)
    options |= {name: getattr(args, name) for name in ("center", "scale") if name in model.data}
    options.pop("rng", None)  # the seed is that of resamples too
    if args.method == "sparse_cca":
        options["method"] = "pmd" if args.cardinality is None else "generalized"
        return {}, options
    for name in ("cardinality", "penalty"):
        if isinstance(getattr(args, name), list):
            args.n_components = as_many(args, name, getattr(args, name))
    return {}, options


def _check_resampling(args: Arguments, resampling: str) -> int:
    """The number of resamples."""
    count: int = args.n_resamples or 100
    if resampling == "complementary" and count % 2:
        raise UserError(f"argument --n-resamples: {count} is odd, and complementary pairs have two each")
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
    return count


def _report(task: Task, found: Stability, side: Side, sparsity: dict[str, Any]) -> None:
    """Write the files asked for, and print what was found."""
    args, names = task.args, side.names
    if args.output:
        write(args.output, lambda path: _write(path, found, names))
    if args.plot:
        from .. import plot

        def draw(figure: Any) -> None:
            for t, ax in enumerate(np.atleast_1d(figure.subplots(1, found.n_components))):
                plot.stability(found, t, names=names, ax=ax)

        draw_figure(args.plot, 5.5 * found.n_components, draw)
    if args.json:
        print_json(task.document({**sparsity, **side.fields, **_json(found, names)}))
    elif not args.quiet:
        print(task.title("Stability"), end="\n\n")
        _print(found, names)
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
        "model": found.model, "resampling": found.resampling, "resamples": found.n_resamples,
        "level": found.level, "max_false": found.max_false, "assumption": found.assumption,
        "average_any": found.average_any, "any_threshold": found.any_threshold,
        "components": components, "result": json_result(_loadings_of(found), names),
    }  # fmt: skip


def _loadings_of(found: Stability) -> Any:
    """The result for all the data; of two sides, with the loadings of both as they are in `found`."""
    if found.model != "sparse_cca":
        return found.result
    own = {name: getattr(found.result, name) for name in ("method", "deflation", "n_iter", "converged")}
    return SimpleNamespace(loadings=found.loadings, **own)
