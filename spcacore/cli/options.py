"""The options of the command, each declared once, and the commands that take them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from decimal import Decimal, InvalidOperation
from importlib import import_module
from typing import Any

import click
import numpy as np
from click.shell_completion import get_completion_class

from .._limits import COMMAND_GRID_VALUES
from .._messages import instead_of
from ..choice import COUNTS, SHARES
from ..models.request import CONSTRAINTS, SUPPORTS
from ..operators.deflation import DEFLATIONS
from ..solvers.table import SOLVERS
from . import help
from .models import MODELS, RESAMPLED, flag_of
from .table import Arguments, UserError

__all__ = [
    "COMMANDS",
    "FORMATS",
    "IMPUTE",
    "LARGEST_VALUE",
    "arguments",
    "cli",
    "grid",
    "in_words",
    "whole_grid",
]
__dir__ = __all__.copy

FORMATS = ("csv", "tsv", "npy", "npz", "mtx", "parquet", "h5ad")
IMPUTE = ("mean", "drop-rows", "drop-columns")
LARGEST_VALUE = Decimal("1e300")


# ---- values -----------------------------------------------------------------------------------------


class _Value(click.ParamType):
    name = "value"

    def __init__(self, parse: Callable[[str], Any]):
        self.parse = parse

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        try:
            return self.parse(value) if isinstance(value, str) else value
        except ValueError as error:
            return self.fail(str(error), param, ctx)


class _OneOf(click.Choice[str]):
    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        if value not in self.choices:
            self.fail(f"invalid choice: {value!r} (choose from {', '.join(self.choices)})", param, ctx)
        return value


def _whole(low: int) -> Callable[[str], int]:
    def whole_number(text: str) -> int:
        if not text.isdecimal() or int(text) < low:
            raise ValueError(f"{text!r} is not a whole number of at least {low}")
        return int(text)

    return whole_number


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < np.inf:
        raise ValueError(f"{text!r} is not a number of at least 0")
    return value


def _one_or_several(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    def numbers(text: str) -> Any:
        found = [parse(part.strip()) for part in text.split(",")]
        return found[0] if len(found) == 1 else found

    return numbers


def _count_or_share(text: str) -> int | float:
    """A whole number, or a share: a decimal between 0 and 1."""
    try:
        share = float(text)
    except ValueError:
        share = 0.0
    return share if 0 < share < 1 else _whole(1)(text)


def _shrinkage(text: str) -> float | str:
    if text == "auto":
        return text
    value = _number(text)
    if value > 1:
        raise ValueError(f"{text!r} is neither a number from 0 to 1 nor auto")
    return value


def _mark(text: str) -> str:
    mark = {"tab": "\t", "\\t": "\t", "space": " "}.get(text, text)
    if len(mark) != 1 or mark in '"\r\n' or mark.isalnum():
        raise ValueError(f"{text!r} is not one character, as ; or tab")
    return mark


def _names(text: str) -> list[str]:
    return [name for name in map(str.strip, text.split(",")) if name]


def grid(text: str) -> list[float]:
    return [float(value) for value in _decimals(text)]


def whole_grid(text: str) -> list[int]:
    values = _decimals(text)
    if any(value != int(value) or value < 1 for value in values):
        raise ValueError(f"{text!r} has values that are not whole numbers of at least 1")
    return [int(value) for value in values]


def _by_component(numbers: Callable[[str], list[Any]]) -> Callable[[str], list[Any]]:
    """The values of a grid, or those of each component with a stroke between them."""

    def grids(text: str) -> list[Any]:
        found = [numbers(part) for part in text.split("/")]
        return found if len(found) > 1 else found[0]

    return grids


def _decimals(text: str) -> list[Decimal]:
    """The values of A, A:B and A:B:S, joined by commas; in decimals, so that 0:1:0.1 holds 0.3."""
    values: list[Decimal] = []
    for part in text.split(","):
        try:
            numbers = [Decimal(number.strip()) for number in part.split(":")]
        except InvalidOperation:
            numbers = []
        if not 1 <= len(numbers) <= 3 or not all(n.is_finite() and 0 <= n <= LARGEST_VALUE for n in numbers):
            raise ValueError(
                f"{part!r} is neither a number of at least 0 nor a range of such, as 1:50 or 1:5:0.5"
            )
        first, last, step = numbers[0], numbers[min(1, len(numbers) - 1)], Decimal(1)
        if len(numbers) == 3:
            step = numbers[2]
        if step == 0 or last < first:
            raise ValueError(f"{part!r} is a range without values")
        if len(values) + float(last - first) / max(float(step), 1e-300) >= COMMAND_GRID_VALUES:
            raise ValueError(f"{text!r} has more than {COMMAND_GRID_VALUES} values")
        values += [first + i * step for i in range(int((last - first) / step) + 1)]
    if len(set(values)) < len(values):
        raise ValueError(f"{text!r} has a value twice")
    return values


# ---- options ----------------------------------------------------------------------------------------


class _Option(click.Option):
    """An option with the heading that it stands under in the help."""

    def __init__(self, heading: str, *flags: str, **settings: Any):
        self.heading = heading
        super().__init__(flags, **settings)


_SHARES = _one_or_several(_number)
_TYPES: dict[str, Any] = {  # how the value of each option is read; words are those that it may be
    "n_components": _whole(1), "cardinality": _one_or_several(_whole(1)), "explained": _SHARES,
    "explained_of": SHARES, "objective": ("variance", "least_squares"),
    "l1_bound": _SHARES, "penalty": _SHARES,
    "deflation": DEFLATIONS, "constraint": CONSTRAINTS, "support": SUPPORTS, "total_cardinality": _whole(1),
    "sample_l1_bound": _SHARES, "ridge": _SHARES, "shrinkage": _shrinkage, "reference": _whole(1),
    "criterion": ("cv", "permutation", "sparseness", "bic", "stability"), "n_folds": _whole(2),
    "n_permutations": _whole(2), "rule": ("one_se", "best"),
    "resampling": ("complementary", "half", "bootstrap"), "n_resamples": _whole(2), "threshold": _number,
    "max_false": _number, "assumption": ("none", "unimodal", "r-concave"), "level": _number,
    "n_jobs": _whole(1), "max_iter": _whole(0), "tol": _number, "rng": _whole(0),
    "strategy": ("auto", "forward", "gradient", "backward", "bidirectional", "projection", "exact"),
    "norm": ("l1", "l0"), "time_limit": _number, "include": _names, "exclude": _names, "count": COUNTS,
    "orientation": ("rows", "columns"), "format": FORMATS, "drop": _names, "index_column": _names,
    "delimiter": _mark, "decimal": (".", ","), "thousands": _mark, "comment": _mark, "impute": IMPUTE,
}  # fmt: skip
_PATH = click.Path(readable=False, allow_dash=True)
_DEFAULTS = {"orientation": "rows", "decimal": ".", "reference": 1}


def _options(command: str, takes: list[str], words: dict[str, Any]) -> Iterator[_Option]:
    """The options of a command, in the order of the table; `words` are its own texts, types and methods."""
    methods, models = words.get("method", ()), MODELS | RESAMPLED
    takers = {
        name: ", ".join(
            one for one in methods
            if (name in models[one].sparsity if one in models else SOLVERS[one].sparsity == name)
        )
        for name in ("l1_bound", "penalty")
    }  # fmt: skip
    signed = ", ".join([*(name for name in SOLVERS if SOLVERS[name].chooses), "spca"])
    texts = {"nonnegative": signed, "deflation": ", ".join(DEFLATIONS), **takers, **words}
    types = {**_TYPES, "method": methods, **words.get("types", {})}
    texts["method"] = ", ".join(methods)
    for part in re.split(r"(?m)^\[", help.OPTIONS)[1:]:
        heading, rows = part.split("]\n", 1)
        for row in re.split(r"\n(?=\w)", rows.strip()):
            first, text = row.split("\n", 1)
            name, *flags = first.split()
            if name not in takes:
                continue
            settings: dict[str, Any] = {"default": _DEFAULTS[name]} if name in _DEFAULTS else {}
            metavar = None if flags[-1].startswith("-") else flags.pop()
            kind = _PATH if metavar == "FILE" else types.get(name)
            if metavar is None:
                settings |= {"default": None} if "/" in flags[0] else {"is_flag": True, "default": False}
            elif callable(kind):
                settings["type"] = kind if kind is _PATH else _Value(kind)
            elif kind is not None:
                settings["type"] = _OneOf(tuple(kind))
                metavar = metavar if len(kind) > 5 else "{" + ",".join(kind) + "}"
            required = name == "loadings" and command != "certify"
            text = " ".join(text.format_map(texts).split())
            yield _Option(heading, *flags, name, metavar=metavar, help=text, required=required, **settings)


# ---- commands ---------------------------------------------------------------------------------------


class _Command(click.Command):
    """A command with its options under headings, and texts printed as they are written."""

    def __init__(self, name: str, takes: str, **words: Any):
        file = click.Argument(["file"], type=_PATH, required=name != "info")
        others = [click.Argument(["others"], type=_PATH, nargs=-1)] * (name == "compare")
        texts = {key: getattr(help, f"{name.upper()}_{key.upper()}") for key in ("description", "epilog")}
        super().__init__(
            name, params=[file, *others, *_options(name, takes.split(), words)], callback=self.run,
            help=texts["description"], epilog=texts["epilog"],
        )  # fmt: skip
        self.context_settings = {"help_option_names": ["-h", "--help"], "max_content_width": 110}

    def run(self, **given: Any) -> None:
        args = arguments(self.name, given)
        import_module(f".{self.name}", __package__).run(args)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write(f"usage: {ctx.command_path} FILE [options]\n\n{self.help}")
        headings: dict[str, list[tuple[str, str]]] = {}
        for param in self.params:
            if isinstance(param, _Option) and (record := param.get_help_record(ctx)):
                headings.setdefault(param.heading, []).append(record)
        for heading, records in headings.items():
            with formatter.section(heading):
                formatter.write_dl(records, col_max=26)
        formatter.write(f"\n{self.epilog}")


def arguments(command: str | None, given: dict[str, Any]) -> Arguments:
    """With what follows from the command, and room for notes, which are printed only if all goes well."""
    args = Arguments(**given, command=command, notes=[], nan=command == "info", keep_going=command == "info")
    args.asked = {name: given.get(name) for name in ("center", "scale")}
    args.center, args.scale = args.center is not False, bool(args.scale)
    args.covariance = None if command == "info" else bool(args.covariance)
    return args


_METHOD = "objective method l1_bound penalty deflation constraint refine"
_MATRIX = "covariance scale center float32"
_CHOICE = "include exclude groups count nonnegative"
_SEARCH = f"max_iter tol rng strategy norm relative block time_limit {_CHOICE}"
_FILE = """orientation format names array drop index_column row_names header delimiter decimal thousands
comment json"""
_EACH = "one number for all components, or one for each"
COMMANDS = {
    one.name: one for one in (
        _Command(
            "fit", f"""n_components cardinality explained explained_of {_METHOD} support total_cardinality
            sample_l1_bound ridge certify {_MATRIX} {_SEARCH} {_FILE} impute output scores plot raw_names
            quiet""",
            n_components="(default: 5), or the share of the variance that they explain together: -n 0.8",
            cardinality="variables in each component, one number or several: -k 10, -k 7,4,4 (default: 10)",
            method=(*SOLVERS, *MODELS), values=_EACH, types={"n_components": _count_or_share},
            output="the loadings (.csv) or all results (.npz)", plot="loadings and variances",
        ),
        _Command(
            "path", f"""n_components cardinality {_METHOD} {_MATRIX} criterion n_folds n_permutations rule
            n_jobs {_SEARCH} {_FILE} impute output plot quiet""",
            n_components="(default: 1)", method=tuple(SOLVERS), values="the values to try, as 1:5:0.5",
            cardinality="""variables in every component: -k 1:50, -k 1,2,5,10 (default: 1, 2, 3, 4, 5, 7,
            10, ..., 160); with --criterion also of each: -k 1:20/5,10""",
            types={"cardinality": _by_component(whole_grid), "l1_bound": _by_component(grid),
                   "penalty": _by_component(grid)},
            output="the curve (.csv, or .npz with what was chosen)", plot="the curve",
        ),
        _Command(
            "stability", f"""n_components cardinality explained {_METHOD} ridge shrinkage other labels
            scale center
            float32 resampling n_resamples threshold max_false assumption level n_jobs {_SEARCH} {_FILE}
            impute
            output plot quiet""",
            n_components="(default: 2)", method=(*SOLVERS, *RESAMPLED), values=_EACH,
            cardinality="""variables in each component, one number or several: -k 10, -k 7,4 (default: 10);
            sparse_cca: in each side of a pair""",
            output="what was found for each variable (.csv), or everything (.npz)", plot="the frequencies",
        ),
        _Command(
            "certify", f"""cardinality loadings deflation exact time_limit relaxation rng {_MATRIX} {_CHOICE}
            {_FILE} impute""",
            cardinality="variables: -k 10, -k 5,10, -k 1:9", types={"cardinality": whole_grid},
        ),
        _Command(
            "transform", f"loadings scale center float32 {_FILE} impute output raw_names quiet",
            output="the scores (.csv or .npz) instead of printing them",
        ),
        _Command(
            "compare", f"loadings reference {_MATRIX} {_FILE} impute output plot quiet",
            output="the comparison (.csv or .html)", plot="the variances",
        ),
        _Command("info", f"build {_FILE}"),
    )
}  # fmt: skip


class _Group(click.Group):
    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args[0] not in self.commands:
            raise UserError(f"unknown command {args[0]!r}; to analyze a file: spcacore fit {args[0]}")
        return super().resolve_command(ctx, args)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write(f"usage: spcacore [COMMAND FILE [options]]\n\n{help.DESCRIPTION}\n")
        with formatter.section("options"):
            formatter.write_dl([record for p in self.get_params(ctx) if (record := p.get_help_record(ctx))])
        formatter.write(f"\n{help.STATUS}")


@click.group(
    cls=_Group,
    commands=COMMANDS,
    invoke_without_command=True,
    context_settings=COMMANDS["fit"].context_settings,
)
@click.option("--version", is_flag=True, help="print the version and exit")
@click.option("--completion", metavar="SHELL", type=_OneOf(("bash", "zsh", "fish")), help="print completions")
@click.pass_context
def cli(ctx: click.Context, version: bool, completion: str | None) -> None:
    if version:
        from importlib.metadata import version as version_of

        click.echo(f"spcacore {version_of('spcacore')}")
    elif completion is not None:
        shell = get_completion_class(completion)
        assert shell is not None  # the choices are those that click has
        click.echo(shell(cli, {}, "spcacore", "_SPCACORE_COMPLETE").source())
    elif ctx.invoked_subcommand is None:
        import_module(".fit", __package__).show_pitprops()
        return
    else:
        return
    ctx.exit()


# ---- what was wrong ---------------------------------------------------------------------------------

_HINTS = {"center": "--no-center", "cardinality": "-k", "n_components": "-n"} | {
    name: flag_of(name)
    for name in ("rng", "scale", "l1_bound", "penalty", "tol", "max_iter", "method", "nonnegative", "include",
                 "exclude", "groups", "count")
}  # fmt: skip


def in_words(error: click.UsageError) -> str:
    """What the user did wrong, as one line."""
    if isinstance(error, click.MissingParameter) and error.param is not None:
        name = "FILE" if isinstance(error.param, click.Argument) else error.param.opts[0]
        message = f"the following arguments are required: {name}"
    elif isinstance(error, click.BadParameter) and error.param is not None:
        message = f"argument {flag_of(error.param.name or '')}: {error.message}"
    elif isinstance(error, click.NoSuchOption):
        word = error.option_name.lstrip("-").split("=")[0].replace("-", "_")
        message = f"unrecognized arguments: {error.option_name}{instead_of(word, _HINTS)}"
    else:
        message = error.message.rstrip(".")
    return f"{message}; see {error.ctx.command_path if error.ctx else 'spcacore'} --help"
