"""`spcacore stability`: which variables resamples choose again."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from .._limits import LISTED_FREQUENCIES
from .._messages import counted
from .._records import record
from .._rendering import percent, printable
from ..models.components import sparse_pca
from ..selection.model import FITTING
from ..selection.stability_result import Stability
from ..selection.stable_variables import stability
from .models import RESAMPLED, check_model, flag_of, given, options_of, refuse
from .reading import quoted, read, read_lines, where_not_finite
from .report import check_outputs, json_result, print_aligned, print_json, write, write_csv, write_npz
from .source import STDIN
from .table import Arguments, UserError
from .task import PICTURES, TABLES, Task, as_many, check_matplotlib, checked_options, draw_figure, fitted_by

__all__ = ["Side", "check_sides", "read_sides", "run"]
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
    choice = task.choice()
    if args.method in RESAMPLED:
        known = {} if choice is None else {"choice": choice}
        model = partial(FITTING[args.method][0], n_components=r, **sparsity, **options, **known)
    else:
        ((parameter, value),) = sparsity.items()
        asked = fitted_by(args, parameter, value, options, choice)
        model = partial(sparse_pca, n_components=r, center=args.center, scale=args.scale, **asked)
    given_numbers = {name: one for name, one in numbers.items() if one is not None}
    with task.work() as progress:
        found = stability(
            task.matrix, model, side.Y, resampling=resampling, n_resamples=count, rng=args.rng,
            callback=progress, **given_numbers,
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
        return {parameter: value}, options
    check_model(args, RESAMPLED, "rng")
    check_outputs(args, outputs)
    check_matplotlib(args)
    check_sides(args)
    model = RESAMPLED[args.method]
    options = options_of(args, model)
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


# ---- the other side, or the classes -------------------------------------------------------------------


@record
class Side:
    """Y, the names of all variables, the most components and why no more, fields of the JSON."""

    Y: Any
    names: list[str]
    most: int
    why: str
    fields: dict[str, Any]


def check_sides(args: Arguments) -> None:
    """Refuse before FILE is read what cannot be read after it."""
    for method, name in (("sparse_cca", "other"), ("sparse_lda", "labels")):
        path = getattr(args, name)
        if args.method != method:
            continue
        if path is None:
            raise UserError(f"method {method} needs --{name} FILE")
        if path == STDIN:
            raise UserError(f"argument --{name}: a file is needed, not the standard input")
        if args.impute == "drop-rows":
            raise UserError(f"argument --impute: drop-rows would leave no row for some of those of --{name}")
    if args.method == "sparse_cca":
        given = [name for name in ("cardinality", "l1_bound") if getattr(args, name) is not None]
        if len(given) != 1:
            raise UserError("method sparse_cca needs either -k or --l1-bound")
        for name in (*given, "ridge"):
            value = getattr(args, name)
            if isinstance(value, list) and len(value) != 2:
                many = counted(len(value), "number")
                raise UserError(
                    f"argument {flag_of(name)}: {many}; one is for both sides, two are for one each"
                )
        if args.ridge is not None and args.cardinality is None:
            raise UserError("argument --ridge: of sparse_cca it requires -k")


def read_sides(task: Task) -> Side:
    """What the method needs besides the matrix."""
    args = task.args
    if args.method == "sparse_cca":
        return _other(task)
    most, why = min(task.n, task.p), task.size
    if args.method != "sparse_lda":
        return Side(None, task.names, most, why, {})
    labels = np.array(read_lines(args, "labels", task.n, "sample", task.table.samples()), np.str_)
    classes, sizes = np.unique(labels, return_counts=True)
    if len(classes) < 2:
        raise UserError(f"argument --labels: {args.labels} has a single class")
    if args.resampling != "bootstrap" and sizes.min() < 4:
        few = str(classes[sizes.argmin()])
        raise UserError(
            f"argument --labels: {few!r} has {counted(int(sizes.min()), 'sample')}, and half of them need 4"
        )
    why = f"{args.labels} has {counted(len(classes), 'class')}"
    return Side(labels, task.names, min(most, len(classes) - 1), why, {})


def _other(task: Task) -> Side:
    """The other side of canonical pairs, whose rows are those of the matrix."""
    args = Arguments(**vars(task.args))
    args.file, args.format, args.names, args.array = task.args.other, None, None, None
    args.drop = ()
    if not re.search(r"\.([ct]sv)(\.\w+)?$", args.file.lower()):
        args.header = args.row_names = args.index_column = args.delimiter = args.thousands = args.comment = (
            None
        )
        args.decimal = "."
    table = read(args)
    where = where_not_finite(table, args)
    if where is not None:
        raise UserError(f"argument --other: {args.source}: {where}")
    n, q = table.matrix.shape
    size = f"{args.file} has {counted(n, 'sample')}"
    if n != task.n:
        raise UserError(f"argument --other: {size}, {task.args.source} has {task.n}")
    if task.table.row_names and table.row_names:
        for i, (a, b) in enumerate(zip(task.table.samples(), table.samples(), strict=True)):
            if a != b:
                raise UserError(
                    f"argument --other: sample {i + 1} of {args.file} is {b!r}, that of {task.args.source} "
                    f"is {a!r}"
                )
    known, names = set(task.names), table.variables("y")
    size += f" of {counted(q, 'variable')}"
    _check_bounds(task, q, size)
    return Side(
        table.matrix,
        [*task.names, *(f"{name} (other)" if name in known else name for name in names)],
        min(task.n, task.p, q),
        f"{task.size}, {size}",
        {"other": args.file, "other_variables": q, "other_names": None if table.names is None else names},
    )


def _check_bounds(task: Task, q: int, size: str) -> None:
    """Of -k and --l1-bound on both sides."""
    for name in ("cardinality", "l1_bound"):
        value = getattr(task.args, name)
        if value is None:
            continue
        x, y = value if isinstance(value, list) else (value, value)
        task.sparsity(name, x)
        if name == "cardinality" and y > q:
            raise UserError(f"argument -k/--cardinality: {y} is too many, at most {q}: {size}")
        if name == "l1_bound" and not 1 <= y <= np.sqrt(q):
            raise UserError(
                f"argument --l1-bound: {y:g} is not between 1 and {np.sqrt(q):.4g}, the root of the number "
                f"of variables: {size}"
            )
