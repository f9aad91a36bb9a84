"""Results as text on the screen, as JSON, and in files."""

from __future__ import annotations

import contextlib
import csv
import json
import math
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._limits import LISTED_LOADINGS, TABLE_COLUMNS, TABLE_ROWS
from .._messages import counted, listed
from .._rendering import aligned_lines, gap, percent, printable, significant
from ..results import LoadingsResult
from .models import weights_of
from .table import Arguments, UserError, quoted

__all__ = [
    "SCHEMA", "check_outputs", "json_loading", "json_result", "plain", "print_aligned", "print_json",
    "print_loading", "print_result", "result_fields", "write", "write_frame", "write_matrix", "write_npz",
]  # fmt: skip
__dir__ = __all__.copy

SCHEMA = 1  # of --json; grows when a field changes its meaning or goes away
_OF_COMPONENTS = (
    "explained_variance", "explained_variance_ratio", "upper_bound", "gap", "n_iter", "converged",
)  # fmt: skip
_EXTENSIONS = {"output": (".csv", ".npz"), "scores": (".csv", ".npz"), "plot": (".png", ".pdf", ".svg")}

# ---- text -------------------------------------------------------------------------------------------


def print_result(result: Any, names: Sequence[str]) -> None:
    """Variances, and the loadings of what is chosen: a table where it fits, else a list of each component."""
    if result.n_components == 0:
        print("no component: the variables do not vary")
        return
    V, r = result.loadings, result.n_components
    summary = _summary(result)
    first = ["component", *(str(t + 1) for t in range(r))]
    chosen = np.flatnonzero(V.any(axis=1)).tolist()
    if len(chosen) <= TABLE_ROWS and r <= TABLE_COLUMNS:
        rows = [[printable(names[j]), *("." if v == 0 else f"{v:.3f}" for v in V[j])] for j in chosen]
        if len(chosen) < len(names):
            rows.append([f"({counted(len(names) - len(chosen), 'other')})", *"." * r])
        print_aligned([first, *rows, [""], *summary])
        return
    print_aligned([*zip(first, *summary, strict=True)])
    for t, v in enumerate(V.T):
        share = f": {summary[2][t + 1]} % of the variance" if len(summary) > 2 else ""
        print(f"\ncomponent {t + 1}{share}")
        print_loading(v, names)


def print_loading(v: NDArray[Any], names: Sequence[str]) -> None:
    """The nonzeros, the largest first."""
    chosen = np.flatnonzero(v)
    for j in chosen[np.argsort(-np.abs(v[chosen]), kind="stable")][:LISTED_LOADINGS]:
        print(f"  {v[j]:6.3f}  {printable(names[j])}")
    if len(chosen) > LISTED_LOADINGS:
        print(f"  and {len(chosen) - LISTED_LOADINGS} more; -o FILE writes all")


def _summary(result: Any) -> list[list[str]]:
    """Rows of nonzeros and variances, each with its title first."""
    ratio = getattr(result, "explained_variance_ratio", None)
    known = (
        ("nonzeros", str, np.count_nonzero(result.loadings, axis=0)),
        ("variance", significant, result.explained_variance),
        ("variance %", percent, ratio),
        ("cumulative %", percent, None if ratio is None else np.cumsum(ratio)),
        ("upper bound", significant, getattr(result, "upper_bound", None)),
        ("gap %", gap, getattr(result, "gap", None)),
    )
    return [[title, *map(word, values)] for title, word, values in known if values is not None]


def print_aligned(rows: Sequence[Sequence[str]]) -> None:
    """The first column to the left, the others to the right."""
    print("\n".join(aligned_lines(rows)))


# ---- JSON -------------------------------------------------------------------------------------------


def print_json(document: dict[str, Any]) -> None:
    """One line; numbers read back exactly, and what is unknown or not finite is null."""
    print(json.dumps(plain({"spcacore": version("spcacore"), "schema": SCHEMA, **document}), allow_nan=False))


def plain(value: Any) -> Any:
    """Of dictionaries, lists, words, numbers and None alone."""
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def json_loading(v: NDArray[Any], names: Sequence[str]) -> list[dict[str, Any]]:
    return [{"index": j, "variable": names[j], "loading": v[j]} for j in np.flatnonzero(v).tolist()]


def json_result(result: Any, names: Sequence[str]) -> dict[str, Any]:
    def of(name: str, t: int) -> Any:
        values: Any = getattr(result, name, None)
        return values if np.ndim(values) == 0 else values[t]

    return {
        **{name: getattr(result, name, None) for name in ("method", "deflation", "total_variance")},
        "components": [
            {"index": t, "cardinality": np.count_nonzero(v), **{name: of(name, t) for name in _OF_COMPONENTS},
             "loadings": json_loading(v, names)}
            for t, v in enumerate(result.loadings.T)
        ],
    }  # fmt: skip


# ---- files ------------------------------------------------------------------------------------------


def check_outputs(args: Arguments) -> None:
    """Refuse before the work what could not be written after it."""
    seen: dict[Path, str] = {}
    sources = {name: getattr(args, name) for name in ("names", "groups", "other", "labels", "loadings")}
    for option, extensions in _EXTENSIONS.items():
        path = getattr(args, option)
        if path is None:
            continue
        if option == "output" and args.command == "compare":
            extensions = (".csv", ".html")
        if Path(path).suffix.lower() not in extensions:
            raise UserError(f"{path}: unknown extension; {listed(extensions, 'and')} can be written")
        parent = Path(path).parent
        wrong = (
            f"{parent} is not a directory" if not parent.is_dir()
            else "it is a directory" if Path(path).is_dir()
            else "" if os.access(path if os.path.exists(path) else parent, os.W_OK)
            else "permission denied"
        )  # fmt: skip
        for name, given in {"FILE": args.file, **sources}.items():
            for source in filter(None, given if isinstance(given, list) else [given]):
                if os.path.exists(path) and os.path.exists(source) and os.path.samefile(path, source):
                    wrong = f"it is the file {'to analyze' if name == 'FILE' else f'of --{name}'}"
        other = seen.setdefault(Path(path).resolve(), option)
        if other != option:
            wrong = f"it is named for both --{other} and --{option}"
        if wrong:
            raise UserError(f"cannot write {path}: {wrong}")
    if args.plot is not None and find_spec("matplotlib") is None:
        raise UserError("argument --plot: drawing needs matplotlib; pip install matplotlib")


def write(path: str, how: Callable[[str], object]) -> None:
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


def write_npz(path: str, fields: Mapping[str, Any]) -> None:
    with open(path, "wb") as file:
        np.savez(file, **{name: value for name, value in fields.items() if value is not None})


def write_matrix(
    file: Any, title: str, names: list[str], values: NDArray[Any], raw: bool, **more: Any
) -> None:
    """A row for each name, with a column for each component, and `more` columns."""
    import pandas

    columns = {f"component_{t + 1}": v for t, v in enumerate(values.T)} | more
    write_frame(file, pandas.DataFrame(columns, index=pandas.Index(names, name=title)), raw)


def write_frame(file: Any, frame: Any, raw: bool = False) -> None:
    """As CSV. Names that a spreadsheet would compute are quoted, unless `raw`; numbers read back exactly."""
    if not raw:
        frame = frame.rename(index=lambda name: quoted(name) if isinstance(name, str) else name)
    careful = any("\r" in str(name) for name in frame.index)  # which Python before 3.13 does not quote
    frame.to_csv(
        file, lineterminator="\n", encoding="utf-8",
        quoting=csv.QUOTE_NONNUMERIC if careful else csv.QUOTE_MINIMAL,
    )  # fmt: skip
