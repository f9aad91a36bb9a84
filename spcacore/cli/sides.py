"""What `spcacore stability` reads besides FILE: the other side of the data, or the classes of the samples."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from .._messages import counted
from .._records import record
from .models import flag_of
from .reading import read, read_lines, where_not_finite
from .source import STDIN
from .table import Arguments, UserError
from .task import Task

__all__ = ["Side", "check_sides", "read_sides"]
__dir__ = __all__.copy


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
