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

from .._limits import LISTED_LOADINGS, TABLE_COLUMNS, TABLE_ROWS
from .._messages import listed
from .._rendering import gap, leading, printable, significant
from .._types import AnyArray
from .table import Arguments, UserError, quoted

__all__ = [
    "check_outputs", "fields_of", "json_loading", "json_result", "print_json", "print_loading",
    "print_result", "print_rows", "write", "write_frame", "write_table",
]  # fmt: skip

_SCHEMA = 2  # of --json; grows when a field changes its meaning or goes away
_LARGE = {  # what a result has of every variable or sample
    "loadings", "mean", "scale", "scores", "selection_frequency", "any_frequency", "stable",
    "loading_interval",
}  # fmt: skip
_EXTENSIONS = {"output": (".csv", ".npz"), "scores": (".csv", ".npz"), "plot": (".png", ".pdf", ".svg")}

# ---- text -------------------------------------------------------------------------------------------


def print_result(result: Any, names: Sequence[str]) -> None:
    """Variances, and the loadings of what is chosen: a table where it fits, else a list of each component."""
    if result.n_components == 0:
        print("no component: the variables do not vary")
        return
    print(result.summary(0).partition("\n\n")[2])
    chosen = np.flatnonzero(result.loadings.any(axis=1)).tolist()
    if len(chosen) <= TABLE_ROWS and result.n_components <= TABLE_COLUMNS:
        table = result.to_frame().iloc[chosen].set_axis([printable(names[j]) for j in chosen])
        print("\n" + table.map(lambda v: f"{v:.3f}" if v else ".").to_string())
        return
    for t, v in enumerate(result.loadings.T):
        print(f"\ncomponent {t + 1}")
        print_loading(v, names)


def print_rows(rows: Sequence[Mapping[str, Any]]) -> None:
    """A table, whose gaps are in percent."""
    from pandas import DataFrame

    forms = {"gap": lambda share: f"{gap(share)} %"}
    print(DataFrame(rows).to_string(index=False, formatters=forms, float_format=significant))


def print_loading(v: AnyArray, names: Sequence[str]) -> None:
    """The nonzeros, the largest first."""
    for j in leading(v, LISTED_LOADINGS):
        print(f"  {v[j]:6.3f}  {printable(names[j])}")
    more = np.count_nonzero(v) - LISTED_LOADINGS
    if more > 0:
        print(f"  and {more} more; -o FILE writes all")


# ---- JSON -------------------------------------------------------------------------------------------


def print_json(document: dict[str, Any]) -> None:
    """One line; numbers read back exactly, and what is unknown or not finite is null."""
    print(
        json.dumps(_plain({"spcacore": version("spcacore"), "schema": _SCHEMA, **document}), allow_nan=False)
    )


def _plain(value: Any) -> Any:
    """Of dictionaries, lists, words, numbers and None alone."""
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if hasattr(value, "to_dict"):  # a table of pandas
        return _plain(value.reset_index().to_dict("records"))
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def fields_of(result: Any) -> dict[str, Any]:
    """The arrays, numbers and words of a result, by the names of its attributes."""
    kinds = (np.ndarray, np.generic, str, int, float)
    return {
        name: value
        for name, value in result.__getstate__().items()
        if value is None or isinstance(value, kinds)
    }


def json_result(result: Any, names: Sequence[str]) -> dict[str, Any]:
    """Its fields but those of every variable, and the nonzero loadings of each component."""
    fields = {name: value for name, value in fields_of(result).items() if name not in _LARGE}
    return fields | {"loadings": [json_loading(v, names) for v in result.loadings.T]}


def json_loading(v: AnyArray, names: Sequence[str]) -> list[dict[str, Any]]:
    return [{"index": j, "variable": names[j], "loading": v[j]} for j in np.flatnonzero(v).tolist()]


# ---- files ------------------------------------------------------------------------------------------


def check_outputs(args: Arguments) -> None:
    """Refuse before the work what could not be written after it."""
    allowed = _EXTENSIONS | ({"output": (".csv", ".html")} if args.command == "compare" else {})
    given = {name: getattr(args, name) for name in allowed if getattr(args, name)}
    read = [args.file, *np.atleast_1d(args.loadings or []), args.other, args.labels, args.names, args.groups]
    read = [one for one in read if one and os.path.exists(one)]
    for name, path in given.items():
        exists, folder = os.path.exists(path), Path(path).absolute().parent
        if Path(path).suffix.lower() not in allowed[name]:
            raise UserError(f"{path}: unknown extension; {listed(allowed[name], 'and')} can be written")
        twice = [one for one in given if one != name and Path(given[one]).resolve() == Path(path).resolve()]
        wrong = (
            f"{folder.name} is not a directory" if not folder.is_dir()
            else "it is a directory" if os.path.isdir(path)
            else "permission denied" if not os.access(path if exists else folder, os.W_OK)
            else f"it is named for both --{name} and --{twice[0]}" if twice
            else "it is a file to read" if exists and any(os.path.samefile(path, one) for one in read)
            else ""
        )  # fmt: skip
        if wrong:
            raise UserError(f"cannot write {path}: {wrong}")
    if args.plot and find_spec("matplotlib") is None:
        raise UserError("argument --plot: drawing needs matplotlib; pip install matplotlib")


def write(path: str, how: Callable[[str], object]) -> None:
    """The whole file or none: it is written under another name beside its place, and then renamed."""
    target = os.path.realpath(path)
    folder, name = os.path.split(target)
    part = os.path.join(folder, f".{os.getpid()}.{name}")
    try:
        if os.path.exists(target) and not os.path.isfile(target):  # a pipe, or a device
            how(path)
            return
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


def write_table(path: str, frame: Any, fields: Mapping[str, Any], raw: bool = False) -> None:
    """A table of pandas as .csv, or all that is known as .npz."""

    def how(part: str) -> None:
        if part.lower().endswith(".csv"):
            write_frame(part, frame, raw)
            return
        with open(part, "wb") as file:
            np.savez(file, **{name: value for name, value in fields.items() if value is not None})

    write(path, how)


def write_frame(file: Any, frame: Any, raw: bool = False) -> None:
    """As CSV. Names that a spreadsheet would compute are quoted, unless `raw`; numbers read back exactly."""
    if not raw:
        frame = frame.rename(index=lambda name: quoted(name) if isinstance(name, str) else name)
    careful = any("\r" in str(name) for name in frame.index)  # which Python before 3.13 does not quote
    quoting = csv.QUOTE_NONNUMERIC if careful else csv.QUOTE_MINIMAL
    frame.to_csv(file, lineterminator="\n", encoding="utf-8", quoting=quoting)
