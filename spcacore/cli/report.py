"""Results as text on the screen, as JSON, and in files; all commands use it."""

from __future__ import annotations

import contextlib
import json
import os
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
from .source import Arguments, UserError

_SCHEMA = 5  # the version of --json; it grows when a field changes its meaning or goes away
_LARGE = {  # fields with an entry for every variable or sample
    "mean", "scale", "scores", "selection_frequency", "any_frequency", "stable", "loading_interval", "names",
}  # fmt: skip
_PLAIN = (type(None), np.ndarray, np.generic, str, int, float)
Files = Mapping[str, Mapping[str, Any]]  # by option and extension: a table, arrays, or a page
Draw = Callable[[Any, Any], object]  # draws with spcacore.plot on a figure
_EXTENSIONS = {"output": (".csv", ".npz"), "scores": (".csv", ".npz"), "plot": (".png", ".pdf", ".svg")}


# ---- text -------------------------------------------------------------------------------------------


def text_of(result: Any) -> str:
    """Return the summary of a result, with a table of the loadings if they are few."""
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
    """Print a document as one line; numbers read back exactly, and what is unknown or not finite is null."""
    document = {"spcacore": version("spcacore"), "schema": _SCHEMA, **document}
    text = json.dumps(document, default=partial(_plain, names=names))
    print(json.dumps(json.loads(text, parse_constant=lambda _: None)))


def _plain(value: Any, names: Sequence[str]) -> Any:
    """Return a value in dictionaries and lists, without fields of a result that are as long as the data."""
    if isinstance(value, Result):
        fields = fields_of(value)
        if "loadings" not in fields:
            return {name: one for name, one in fields.items() if name != "names"}
        fields["loadings"] = [entries(v, names) for v in fields["loadings"].T]
        return {name: one for name, one in fields.items() if name not in _LARGE}
    if hasattr(value, "to_dict"):  # a table of pandas
        return value.reset_index().to_dict("records")
    return value.tolist()


def entries(v: AnyArray, names: Sequence[str]) -> list[dict[str, Any]]:
    """Return the nonzeros of a loading, each with its variable."""
    return [{"index": j, "variable": names[j], "loading": v[j]} for j in np.flatnonzero(v).tolist()]


def fields_of(result: Any) -> dict[str, Any]:
    """Return the arrays, numbers and words of a result, by the names of its attributes."""
    state = result.__getstate__().items()
    return {name: value for name, value in state if isinstance(value, _PLAIN) or name == "names"}


# ---- files ------------------------------------------------------------------------------------------


def check_outputs(args: Arguments) -> None:
    """Refuse paths that could not be written, before the work is done."""
    allowed = _EXTENSIONS | ({"output": (".csv", ".html")} if args.command == "compare" else {})
    named = [os.path.realpath(one) for one in (args.file, *args.loadings, args.names, args.groups) if one]
    for name, extensions in allowed.items():
        if not (path := getattr(args, name)):
            continue
        target = os.path.realpath(path)
        folder = os.path.dirname(target)
        if Path(path).suffix.lower() not in extensions:
            raise UserError(f"{path}: unknown extension; {listed(extensions, 'and')} can be written")
        if not os.access(target if os.path.exists(target) else folder, os.W_OK):
            raise UserError(f"cannot write {path}: {folder} is not a directory, or permission is denied")
        if os.path.isdir(target) or target in named:
            raise UserError(f"cannot write {path}: it is a directory, or another argument names it, too")
        named.append(target)
    if args.plot and find_spec("matplotlib") is None:
        raise UserError("argument --plot: drawing needs matplotlib; pip install matplotlib")


def write_all(args: Arguments, files: Files, draw: Draw | None, width: float) -> list[str]:
    """Write the files that are asked for, and return their paths."""
    for option, forms in files.items():
        if path := getattr(args, option):
            form = Path(path).suffix.lower()
            write(path, partial(_WAYS[form], forms[form]))
    if args.plot and draw:
        from matplotlib.figure import Figure  # no window is opened, whatever the settings of matplotlib

        from .. import plot

        figure = Figure(figsize=(width, 5), layout="constrained")
        with warnings.catch_warnings(action="ignore"):  # the font may lack letters
            draw(plot, figure)
            write(args.plot, partial(figure.savefig, dpi=150))
    return [path for path in (args.output, args.scores, args.plot) if path]


def write(path: str, how: Callable[[str], object]) -> None:
    """Write a file as a whole or not at all: under another name beside its place, which is then changed."""
    target = os.path.realpath(path)
    folder, name = os.path.split(target)
    part = os.path.join(folder, f".{os.getpid()}.{name}")
    try:
        if os.path.exists(target) and not os.path.isfile(target):  # a pipe, or a device
            how(path)
            return
        try:
            how(part)
            os.replace(part, target)
        finally:
            with contextlib.suppress(OSError):
                os.remove(part)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}") from None


def _save(arrays: Mapping[str, Any], part: str) -> None:
    """Write arrays as .npz."""
    with open(part, "wb") as file:
        np.savez(file, **{name: value for name, value in arrays.items() if value is not None})


_WAYS: dict[str, Callable[..., object]] = {
    ".csv": lambda table, part: table.to_csv(part, lineterminator="\n"),
    ".npz": _save,
    ".html": lambda page, part: Path(part).write_text(page, encoding="utf-8"),
}
