"""Results as text on the screen, as JSON, and in files."""

from __future__ import annotations

import contextlib
import csv
import json
import math
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from .._limits import LISTED_LOADINGS, TABLE_COLUMNS, TABLE_ROWS
from .._messages import counted
from .._rendering import aligned_lines, gap, percent, printable, significant
from ..results import LoadingsResult
from .models import weights_of
from .reading import quoted
from .table import Arguments, UserError

__all__ = [
    "SCHEMA", "check_outputs", "json_loading", "json_result", "plain", "print_aligned", "print_json",
    "print_loading", "print_matrix", "print_result", "result_fields", "write", "write_csv", "write_matrix",
    "write_npz", "write_result", "write_scores",
]  # fmt: skip
__dir__ = __all__.copy

_OF_COMPONENTS = (
    "explained_variance", "explained_variance_ratio", "upper_bound", "gap", "n_iter", "converged",
)  # fmt: skip
SCHEMA = 1  # of --json; grows when a field changes its meaning or goes away

# ---- text -------------------------------------------------------------------------------------------


def print_result(result: Any, names: Sequence[str]) -> None:
    """Loadings and variances: a table where it fits, else a list for each component."""
    if result.n_components == 0:
        print("no component: the variables do not vary")
        return
    names = list(map(printable, names))
    summary = _summary(result)
    numbers = [str(t + 1) for t in range(result.n_components)]
    chosen = np.flatnonzero(result.loadings.any(axis=1))
    if len(chosen) <= TABLE_ROWS and result.n_components <= TABLE_COLUMNS:
        loadings = [[names[j], *("." if v == 0 else f"{v:.3f}" for v in result.loadings[j])] for j in chosen]
        others = len(names) - len(chosen)
        if others:
            loadings.append([f"({counted(others, 'other')})", *"." * result.n_components])
        print_aligned([["component", *numbers], *loadings, [""], *summary])
        return
    print_aligned(list(zip(["component", *numbers], *summary, strict=True)))
    for t, v in enumerate(result.loadings.T):
        share = f": {summary[2][t + 1]} % of the variance" if len(summary) > 2 else ""
        print(f"\ncomponent {t + 1}{share}")
        print_loading(v, names)


def print_loading(v: NDArray[Any], names: Sequence[str]) -> None:
    """The nonzeros, the largest first."""
    chosen = np.flatnonzero(v)
    chosen = chosen[np.argsort(-np.abs(v[chosen]), kind="stable")]
    for j in chosen[:LISTED_LOADINGS]:
        print(f"  {v[j]:6.3f}  {printable(names[j])}")
    if len(chosen) > LISTED_LOADINGS:
        print(f"  and {len(chosen) - LISTED_LOADINGS} more; -o FILE writes all")


def _summary(result: Any) -> list[list[str]]:
    """Rows of nonzeros and variances, each with its title first."""
    rows = [
        ["nonzeros", *map(str, np.count_nonzero(result.loadings, axis=0))],
        ["variance", *map(significant, result.explained_variance)],
    ]
    ratio = getattr(result, "explained_variance_ratio", None)
    if ratio is not None:
        rows += [["variance %", *map(percent, ratio)], ["cumulative %", *map(percent, np.cumsum(ratio))]]
    if getattr(result, "upper_bound", None) is not None:
        rows.append(["upper bound", *map(significant, result.upper_bound)])
        rows.append(["gap %", *map(gap, result.gap)])
    return rows


def print_aligned(rows: Sequence[Sequence[str]]) -> None:
    """The first column to the left, the others to the right."""
    print("\n".join(aligned_lines(rows)))


# ---- JSON -------------------------------------------------------------------------------------------


def print_json(document: dict[str, Any]) -> None:
    """One line; numbers read back exactly, and what is unknown or not finite is null."""
    from importlib.metadata import version

    document = {"spcacore": version("spcacore"), "schema": SCHEMA, **document}
    print(json.dumps(plain(document), allow_nan=False))


def plain(value: Any) -> Any:
    """Of dictionaries, lists, words, numbers and None alone."""
    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def json_loading(v: NDArray[Any], names: Sequence[str]) -> list[dict[str, Any]]:
    return [{"index": j, "variable": names[j], "loading": v[j]} for j in np.flatnonzero(v).tolist()]


def json_result(result: Any, names: Sequence[str]) -> dict[str, Any]:
    def of(name: str, t: int) -> Any:
        values = getattr(result, name, None)
        return values if values is None or np.ndim(values) == 0 else values[t]

    return {
        "method": result.method,
        "deflation": getattr(result, "deflation", None),
        "constraint": getattr(getattr(result, "options", None), "constraint", None),
        "total_variance": getattr(result, "total_variance", None),
        "components": [
            {
                "index": t,
                "cardinality": np.count_nonzero(v),
                **{name: of(name, t) for name in _OF_COMPONENTS},
                "loadings": json_loading(v, names),
            }
            for t, v in enumerate(result.loadings.T)
        ],
    }


# ---- files ------------------------------------------------------------------------------------------


def check_outputs(args: Arguments, outputs: Sequence[tuple[str | None, str, tuple[str, ...]]]) -> None:
    """Refuse before the work what could not be written after it: each a path, what for, its extensions."""
    seen: dict[Path, str] = {}
    for path, what, extensions in outputs:
        if path is None:
            continue
        if Path(path).suffix.lower() not in extensions:
            *first, last = extensions
            raise UserError(f"{path}: unknown extension; {', '.join(first)} and {last} can be written")
        parent = Path(path).parent
        if not parent.is_dir():
            raise UserError(f"cannot write {path}: {parent} is not a directory")
        if Path(path).is_dir():
            raise UserError(f"cannot write {path}: it is a directory")
        if not os.access(path if os.path.exists(path) else parent, os.W_OK):
            raise UserError(f"cannot write {path}: permission denied")
        loadings = getattr(args, "loadings", None) or ()
        sources = [(args.file, "to analyze"), (args.names, "of the names")]
        sources += [(getattr(args, name, None), f"of --{name}") for name in ("groups", "other", "labels")]
        for one in (loadings,) if isinstance(loadings, str) else loadings:
            sources.append((one, "of the loadings"))
        for source, role in sources:
            if source and os.path.exists(path) and os.path.exists(source) and os.path.samefile(path, source):
                raise UserError(f"cannot write {path}: it is the file {role}")
        other = seen.setdefault(Path(path).resolve(), what)
        if other is not what:
            raise UserError(f"cannot write {path}: it is named for both {other} and {what}")


def write(path: str, how: Callable[[str], None]) -> None:
    """The whole file or none: it is written under another name beside its place, and then renamed."""
    try:
        target = os.path.realpath(path)
        if os.path.exists(target) and not os.path.isfile(target):  # a pipe, or a device
            how(path)
            return
        folder, name = os.path.split(target)
        stem, extension = os.path.splitext(name)
        part = os.path.join(folder, f".{stem}.{os.getpid()}.part{extension}")
        try:
            how(part)
            if os.path.exists(target):
                shutil.copymode(target, part)
            os.replace(part, target)
        finally:
            with contextlib.suppress(OSError):
                os.remove(part)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}") from None


def result_fields(result: Any, names: list[str]) -> dict[str, Any]:
    """What an .npz of a result holds."""
    fields = {
        name: getattr(result, name, None)
        for name in (
            "loadings", "explained_variance", "explained_variance_ratio", "total_variance", "cardinality",
            "upper_bound", "gap", "mean", "scale", "n_iter", "converged", "method", "deflation", "kind",
            "n_samples",
        )
    }  # fmt: skip
    if type(result).transform is not LoadingsResult.transform:
        fields["weights"] = weights_of(result)
    return fields | {"names": np.array(names, dtype=np.str_)}


def write_result(path: str, result: Any, names: list[str], raw: bool) -> None:
    if Path(path).suffix.lower() == ".csv":
        write_matrix(path, "variable", names, result.loadings, raw, _record(result))
    else:
        write_npz(path, result_fields(result, names))


def _record(result: Any) -> dict[str, Any]:
    """Columns that say what the fit did to its data."""
    p, kind = len(result.loadings), getattr(result, "kind", None)
    columns: dict[str, Any] = {}
    if kind == "data":
        columns["center"] = np.zeros(p) if result.mean is None else result.mean
    if kind is not None:
        columns |= {"scale": np.ones(p) if result.scale is None else result.scale, "kind": [kind] * p}
    return columns


def write_scores(path: str, scores: NDArray[Any], samples: list[str], raw: bool) -> None:
    if Path(path).suffix.lower() == ".csv":
        write_matrix(path, "sample", samples, scores, raw)
    else:
        write_npz(path, {"scores": scores, "names": np.array(samples, dtype=np.str_)})


def write_npz(path: str, fields: dict[str, Any]) -> None:
    with open(path, "wb") as file:
        np.savez(file, **{name: value for name, value in fields.items() if value is not None})


def write_matrix(
    path: str,
    title: str,
    names: list[str],
    values: NDArray[Any],
    raw: bool,
    more: Any = None,
) -> None:
    """One line per row of `values`; names that a spreadsheet would compute are quoted, unless `raw`."""
    with open(path, "w", encoding="utf-8", newline="") as file:
        print_matrix(file, title, names, values, raw, more)


def print_matrix(
    file: TextIO,
    title: str,
    names: list[str],
    values: NDArray[Any],
    raw: bool,
    more: Any = None,
) -> None:
    """`write_matrix`, into an open file, with `more` columns by their titles."""
    names, more = names if raw else list(map(quoted, names)), more or {}
    header = [title, *(f"component_{t + 1}" for t in range(values.shape[1])), *more]
    rows = zip(names, values, *more.values(), strict=True)
    _print_csv(file, header, ([name, *row, *others] for name, row, *others in rows))


def write_csv(path: str, header: list[str], rows: Any) -> None:
    """Numbers as short as reading them back exactly allows."""
    with open(path, "w", encoding="utf-8", newline="") as file:
        _print_csv(file, header, rows)


def _print_csv(file: TextIO, header: list[str], rows: Any) -> None:
    writer = csv.writer(file, lineterminator="\n")
    careful = csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_ALL)
    writer.writerow(header)
    for label, *row in rows:  # a carriage return is not quoted by itself before Python 3.13
        (careful if "\r" in str(label) else writer).writerow(
            [label, *("0" if v == 0 else str(v) for v in row)]
        )
