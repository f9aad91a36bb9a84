"""Results as text on the screen, as JSON, and in files: one way for all commands."""

from __future__ import annotations

import contextlib
import csv
import json
import math
import os
import shutil
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from .._limits import LISTED_LOADINGS, TABLE_COLUMNS, TABLE_ROWS
from .._messages import listed
from .._records import record
from .._rendering import leading, printable
from .._types import AnyArray
from ..readable import Result
from .source import Arguments, UserError
from .table import quoted

__all__ = [
    "Outcome", "check_outputs", "entries", "fields_of", "listed_loading", "print_json", "text_of", "write",
    "write_all", "write_frame",
]  # fmt: skip

_SCHEMA = 3  # of --json; grows when a field changes its meaning or goes away
_LARGE = {  # what a result has of every variable or sample
    "loadings", "mean", "scale", "scores", "selection_frequency", "any_frequency", "stable",
    "loading_interval", "names",
}  # fmt: skip
_PLAIN = (type(None), np.ndarray, np.generic, str, int, float)
_EXTENSIONS = {"output": (".csv", ".npz"), "scores": (".csv", ".npz"), "plot": (".png", ".pdf", ".svg")}


@record
class Outcome:
    """What a command found: its text, what --json says, tables and arrays for files, and how to draw it."""

    title: str
    text: str
    fields: Mapping[str, Any]
    files: Mapping[str, tuple[Any, Mapping[str, Any]]]  # by the option: a table, and arrays
    draw: Callable[[Any, Any], object] | None = None  # with spcacore.plot, on a figure
    width: float = 7
    page: str = ""  # HTML


# ---- text -------------------------------------------------------------------------------------------


def text_of(result: Any, names: Sequence[str]) -> str:
    """Variances, and the loadings of what is chosen: a table where it fits, else a list of each component."""
    if result.n_components == 0:
        return "no component: the variables do not vary"
    summary = result.summary(0).partition("\n\n")[2]
    chosen = np.flatnonzero(result.loadings.any(axis=1)).tolist()
    if len(chosen) <= TABLE_ROWS and result.n_components <= TABLE_COLUMNS:
        table = result.to_frame().iloc[chosen].set_axis([printable(names[j]) for j in chosen])
        return f"{summary}\n\n{table.map(lambda v: f'{v:.3f}' if v else '.').to_string()}"
    lists = [f"component {t + 1}\n{listed_loading(v, names)}" for t, v in enumerate(result.loadings.T)]
    return "\n\n".join([summary, *lists])


def listed_loading(v: AnyArray, names: Sequence[str]) -> str:
    """The nonzeros, the largest first."""
    lines = [f"  {v[j]:6.3f}  {printable(names[j])}" for j in leading(v, LISTED_LOADINGS)]
    more = int(np.count_nonzero(v)) - LISTED_LOADINGS
    return "\n".join([*lines, *[f"  and {more} more; -o FILE writes all"] * (more > 0)])


# ---- JSON -------------------------------------------------------------------------------------------


def print_json(document: Mapping[str, Any], names: Sequence[str] = ()) -> None:
    """One line; numbers read back exactly, and what is unknown or not finite is null."""
    document = {"spcacore": version("spcacore"), "schema": _SCHEMA, **document}
    print(json.dumps(_plain(document, names), allow_nan=False))


def _plain(value: Any, names: Sequence[str]) -> Any:
    """Of dictionaries, lists, words, numbers and None alone; of a result, what is not of every variable."""
    if isinstance(value, Result):
        state, V = value.__getstate__(), getattr(value, "loadings", None)
        kinds, left = (*_PLAIN, Result, tuple), ("names", "results") if V is None else _LARGE
        shown: dict[str, Any] = {
            name: one for name, one in state.items() if isinstance(one, kinds) and name not in left
        }
        if V is not None:
            shown["loadings"] = [entries(v, names) for v in V.T]
        value = shown
    if isinstance(value, Mapping):
        return {str(key): _plain(entry, names) for key, entry in value.items()}
    if hasattr(value, "to_dict"):  # a table of pandas
        return _plain(value.reset_index().to_dict("records"), names)
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [_plain(entry, names) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def entries(v: AnyArray, names: Sequence[str]) -> list[dict[str, Any]]:
    """What is not zero of a loading."""
    return [{"index": j, "variable": names[j], "loading": v[j]} for j in np.flatnonzero(v).tolist()]


def fields_of(result: Any) -> dict[str, Any]:
    """The arrays, numbers and words of a result, by the names of its attributes."""
    return {name: value for name, value in result.__getstate__().items() if isinstance(value, _PLAIN)}


# ---- files ------------------------------------------------------------------------------------------


def check_outputs(args: Arguments) -> None:
    """Refuse before the work what could not be written after it."""
    allowed = _EXTENSIONS | ({"output": (".csv", ".html")} if args.command == "compare" else {})
    read = [args.file, *np.atleast_1d(args.loadings or []), args.other, args.labels, args.names, args.groups]
    named = [os.path.realpath(one) for one in read if one]
    for name in allowed:
        path = getattr(args, name)
        if not path:
            continue
        target, exists = os.path.realpath(path), os.path.exists(path)
        folder = os.path.dirname(target)
        if Path(path).suffix.lower() not in allowed[name]:
            raise UserError(f"{path}: unknown extension; {listed(allowed[name], 'and')} can be written")
        wrong = (
            f"{os.path.basename(folder)} is not a directory" if not os.path.isdir(folder)
            else "it is a directory" if os.path.isdir(path)
            else "permission denied" if not os.access(path if exists else folder, os.W_OK)
            else "another argument names it, too" if target in named
            else ""
        )  # fmt: skip
        if wrong:
            raise UserError(f"cannot write {path}: {wrong}")
        named.append(target)
    if args.plot and find_spec("matplotlib") is None:
        raise UserError("argument --plot: drawing needs matplotlib; pip install matplotlib")


def write_all(args: Arguments, outcome: Outcome) -> list[str]:
    """Write what is asked for; the paths."""
    for option, (table, arrays) in outcome.files.items():
        path = getattr(args, option)
        if path:
            ways: dict[str, Callable[[str], object]] = {
                ".csv": lambda part, table=table: write_frame(part, table, args.raw_names),  # type: ignore[misc]
                ".npz": lambda part, arrays=arrays: _save(part, arrays),  # type: ignore[misc]
                ".html": lambda part: Path(part).write_text(outcome.page, encoding="utf-8"),
            }
            write(path, ways[Path(path).suffix.lower()])
    if args.plot and outcome.draw:
        from matplotlib.figure import Figure  # no window is opened, whatever the settings of matplotlib

        from .. import plot

        figure = Figure(figsize=(outcome.width, 5), layout="constrained")
        with warnings.catch_warnings(action="ignore"):  # of letters that the font lacks
            outcome.draw(plot, figure)
            write(args.plot, lambda path: figure.savefig(path, dpi=150))
    return [path for path in (args.output, args.scores, args.plot) if path]


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


def _save(part: str, arrays: Mapping[str, Any]) -> None:
    with open(part, "wb") as file:
        np.savez(file, **{name: value for name, value in arrays.items() if value is not None})


def write_frame(file: Any, frame: Any, raw: bool | None = False) -> str | None:
    """As CSV. Names that a spreadsheet would compute are quoted, unless `raw`; numbers read back exactly."""
    if not raw:
        frame = frame.rename(index=lambda name: quoted(name) if isinstance(name, str) else name)
    careful = any("\r" in str(name) for name in frame.index)  # which Python before 3.13 does not quote
    quoting = csv.QUOTE_NONNUMERIC if careful else csv.QUOTE_MINIMAL
    return frame.to_csv(file, lineterminator="\n", encoding="utf-8", quoting=quoting)
