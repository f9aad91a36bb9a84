"""Results as text on the screen, as JSON, and in files: one way for all commands."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import shutil
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from .._limits import LISTED_VARIABLES, TABLE_COLUMNS, TABLE_ROWS
from .._messages import listed
from .._rendering import printable
from .._types import AnyArray
from ..readable import Result
from .source import Arguments, UserError, quoted

_SCHEMA = 4  # of --json; grows when a field changes its meaning or goes away
_LARGE = {  # what a result has of every variable or sample
    "loadings", "mean", "scale", "scores", "selection_frequency", "any_frequency", "stable",
    "loading_interval", "names",
}  # fmt: skip
_PLAIN = (type(None), np.ndarray, np.generic, str, int, float)
Files = Mapping[str, Mapping[str, Any]]  # by option and extension: a table, arrays, or a page
Draw = Callable[[Any, Any], object]  # with spcacore.plot, on a figure
_EXTENSIONS = {"output": (".csv", ".npz"), "scores": (".csv", ".npz"), "plot": (".png", ".pdf", ".svg")}


# ---- text -------------------------------------------------------------------------------------------


def text_of(result: Any) -> str:
    """The result's own summary, with the loadings of what is chosen as a table where that fits."""
    if result.n_components == 0:
        return "no component: the variables do not vary"
    chosen = result.loadings.any(axis=1)
    as_table = chosen.sum() <= TABLE_ROWS and result.n_components <= TABLE_COLUMNS
    summary = result.summary(0 if as_table else LISTED_VARIABLES).partition("\n\n")[2]
    if not as_table:
        return summary
    table = result.to_frame()[chosen].rename(index=printable)
    return f"{summary}\n\n{table.map(lambda v: f'{v:.3f}' if v else '.').to_string()}"


# ---- JSON -------------------------------------------------------------------------------------------


def print_json(document: Mapping[str, Any], names: Sequence[str] = ()) -> None:
    """One line; numbers read back exactly, and what is unknown or not finite is null."""
    document = {"spcacore": version("spcacore"), "schema": _SCHEMA, **document}
    text = json.dumps(document, default=partial(_plain, names=names))
    print(json.dumps(json.loads(text, parse_constant=lambda _: None)))


def _plain(value: Any, names: Sequence[str]) -> Any:
    """Of dictionaries, lists and what JSON has; of a result, what is not of every variable."""
    if isinstance(value, Result):
        kinds, V = (*_PLAIN, Result, tuple), getattr(value, "loadings", None)
        left, state = ("names", "results") if V is None else _LARGE, value.__getstate__().items()
        shown = {name: one for name, one in state if name not in left and isinstance(one, kinds)}
        return shown if V is None else shown | {"loadings": [entries(v, names) for v in V.T]}
    if hasattr(value, "to_dict"):  # a table of pandas
        return value.reset_index().to_dict("records")
    return value.tolist()


def entries(v: AnyArray, names: Sequence[str]) -> list[dict[str, Any]]:
    """What is not zero of a loading."""
    return [{"index": j, "variable": names[j], "loading": v[j]} for j in np.flatnonzero(v).tolist()]


def fields_of(result: Any) -> dict[str, Any]:
    """The arrays, numbers and words of a result, by the names of its attributes."""
    state = result.__getstate__().items()
    return {name: value for name, value in state if isinstance(value, _PLAIN) or name == "names"}


# ---- files ------------------------------------------------------------------------------------------


def check_outputs(args: Arguments) -> None:
    """Refuse before the work what could not be written after it."""
    allowed = _EXTENSIONS | ({"output": (".csv", ".html")} if args.command == "compare" else {})
    named = [os.path.realpath(one) for one in (args.file, *args.loadings, args.names, args.groups) if one]
    for name in allowed:
        path = getattr(args, name)
        if not path:
            continue
        target, exists = os.path.realpath(path), os.path.exists(path)
        folder = os.path.dirname(target)
        if Path(path).suffix.lower() not in allowed[name]:
            raise UserError(f"{path}: unknown extension; {listed(allowed[name], 'and')} can be written")
        wrong = (
            "it is a directory" if os.path.isdir(path)
            else f"{folder} is not a directory, or permission is denied"
            if not os.access(path if exists else folder, os.W_OK)
            else "another argument names it, too" if target in named
            else ""
        )  # fmt: skip
        if wrong:
            raise UserError(f"cannot write {path}: {wrong}")
        named.append(target)
    if args.plot and find_spec("matplotlib") is None:
        raise UserError("argument --plot: drawing needs matplotlib; pip install matplotlib")


def write_all(args: Arguments, files: Files, draw: Draw | None, width: float) -> list[str]:
    """Write what is asked for; the paths."""
    for option, forms in files.items():
        if path := getattr(args, option):
            form = Path(path).suffix.lower()
            write(path, partial(_WAYS[form], forms[form], raw=args.raw_names))
    if args.plot and draw:
        from matplotlib.figure import Figure  # no window is opened, whatever the settings of matplotlib

        from .. import plot

        figure = Figure(figsize=(width, 5), layout="constrained")
        with warnings.catch_warnings(action="ignore"):  # of letters that the font lacks
            draw(plot, figure)
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


def _save(arrays: Mapping[str, Any], part: str, raw: bool | None) -> None:
    with open(part, "wb") as file:
        np.savez(file, **{name: value for name, value in arrays.items() if value is not None})


def write_frame(frame: Any, file: Any, raw: bool | None = False) -> str | None:
    """As CSV. Names that a spreadsheet would compute are quoted, unless `raw`; numbers read back exactly."""
    if not raw:
        frame = frame.rename(index=lambda name: quoted(name) if isinstance(name, str) else name)
    careful = any("\r" in str(name) for name in frame.index)  # which Python before 3.13 does not quote
    quoting = csv.QUOTE_NONNUMERIC if careful else csv.QUOTE_MINIMAL
    return frame.to_csv(file, lineterminator="\n", encoding="utf-8", quoting=quoting)


_WAYS: dict[str, Callable[..., object]] = {
    ".csv": write_frame, ".npz": _save,
    ".html": lambda page, part, raw: Path(part).write_text(page, encoding="utf-8"),
}  # fmt: skip
