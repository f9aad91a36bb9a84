"""The flags of the command: those of models by their signatures, the others by the table of their help."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from decimal import Decimal
from importlib import import_module
from typing import Any, Literal, NamedTuple, get_args, get_origin

import click

from .._limits import COMMAND_GRID_VALUES
from .._messages import IN_RECORDS, instead_of
from ..methods import METHODS
from ..options import OPTIONS
from ..selection.criteria import select_sparsity
from ..selection.stable_variables import stability
from . import help
from .models import FIT, RESAMPLED, in_flags, long_flag, options_of, takes
from .source import Arguments, UserError

# ---- values -----------------------------------------------------------------------------------------


def _value(text: str) -> Any:
    """A number or a word, or several; what it may be is for the function to say."""
    values = [_number(part.strip()) for part in text.split(",")]
    return values if len(values) > 1 else values[0]


def _number(text: str) -> Any:
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text


def _mark(text: str) -> str:
    mark = {"tab": "\t", "\\t": "\t", "space": " "}.get(text, text)
    if len(mark) != 1 or mark in '"\r\n' or mark.isalnum():
        raise click.BadParameter(f"{text!r} is not one character, as ; or tab")
    return mark


def _names(text: str) -> list[str]:
    return [name for name in map(str.strip, text.split(",")) if name]


def grid(text: str) -> list[Any]:
    """The values of A, A:B and A:B:S, joined by commas; of each component, with a stroke between them."""
    if "/" in text:
        return [grid(part) for part in text.split("/")]
    values: list[Any] = []
    for part in text.split(","):
        try:
            first, last, step = map(Decimal, (*part.split(":"), *(part, "1")[part.count(":") :]))
            count = int(min((last - first) / step, Decimal(COMMAND_GRID_VALUES))) + 1
        except (ArithmeticError, ValueError):  # decimals, so that 0:1:0.1 holds 0.3
            count = 0
        if count < 1 or first < 0:
            raise click.BadParameter(f"{part!r} is neither a number nor a range of some, as 1:50 or 1:5:0.5")
        values += [_number(f"{(first + i * step).normalize():f}") for i in range(count)]
        if len(values) > COMMAND_GRID_VALUES:
            raise click.BadParameter(f"{text!r} has more than {COMMAND_GRID_VALUES} values")
    return values


_READ: dict[str, Any] = {  # what reads the values that stand for so much in the table
    "FILE": click.Path(readable=False, allow_dash=True), "NAMES": _names, "MARK": _mark, "GRID": grid,
    "NAME": str, "I": int,
}  # fmt: skip
_REQUIRES = re.compile(r"requires --([\w-]+)(?: ([^;]+))?;")  # what else is needed, by the help

# ---- options ----------------------------------------------------------------------------------------


class _Row(NamedTuple):
    """Of an option: the heading of its help, other flags, what stands for a value, and the text."""

    heading: str = "options"
    flags: str = ""
    metavar: str = ""
    text: str = ""


def _rows() -> Iterator[tuple[str, _Row]]:
    heading, row = "", r"(?m)^(?:\[(.*)\]\n)?(\w\S*)((?: -\S+)*)(?: ([^\s-].*))?\n((?:  .*\n)*)"
    for title, name, flags, metavar, text in re.findall(row, help.OPTIONS):
        heading = title or heading
        yield name, _Row(heading, flags, metavar, " ".join(text.split()))


_ROWS = dict(_rows())


def _row(name: str, command: str) -> _Row:
    """Of an option of a command."""
    return _ROWS.get(f"{name}.{command}") or _ROWS.get(name, _Row())


class _Helped(click.Command):
    """A command with its options under headings, and texts printed as they are written."""

    usage = "FILE [options]"

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write(f"usage: {ctx.command_path} {self.usage}\n\n{self.help}")
        headings: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx) if isinstance(param, click.Option) else None
            if record:
                headings.setdefault(_ROWS.get(str(param.name), _Row()).heading, []).append(record)
        for heading, records in headings.items():
            with formatter.section(heading):
                formatter.write_dl(records, col_max=26)
        formatter.write(f"\n{self.epilog}")


def _option(name: str, command: str, takers: dict[str, Any], methods: tuple[str, ...]) -> click.Option:
    """A flag of a command; `takers` are the methods that take it, and its type there."""
    row = _row(name, command)
    types = [one for hint in takers.values() for one in (hint, *get_args(hint))]
    words = [word for one in types if get_origin(one) is Literal for word in get_args(one)]
    choices = (
        methods if name == "method" else re.findall(r"[{|]([^}|]+)", row.metavar) or dict.fromkeys(words)
    )
    flag, text = long_flag(name), row.text or OPTIONS[name].meaning
    settings: dict[str, Any] = {"type": _READ.get(row.metavar, _value), "metavar": row.metavar or "N"}
    if bool in types or not (row.metavar or takers):
        flag, settings = f"{flag}/--no-{flag[2:]}", {"default": None}
    elif choices:
        settings = {"type": click.Choice([*choices]), "metavar": "NAME"}
        text += f": {', '.join(choices)}"
    if 0 < len(takers) < 5 and len(methods) > 8 and "" not in takers:
        text = f"{', '.join(takers)}: {text}"
    required = name == "loadings" and command != "certify"
    return click.Option([flag, *row.flags.split(), name], help=text, required=required, **settings)


class _Command(_Helped):
    """It takes the options of its methods, those of the function that runs them, and others by name."""

    methods: tuple[str, ...]
    of_models: set[str]

    def __init__(self, name: str, others: str, methods: tuple[str, ...] = (), function: Any = None):
        self.methods, self.of_function = methods, options_of(function) if function else {}
        takers: dict[str, dict[str, Any]] = {
            one: {} for one in [*others.split(), *["method"] * bool(methods)]
        }
        for method in methods or ["tpower"]:
            for one, option in takes(method).items():
                if methods or one in takers:
                    takers.setdefault(one, {})[method] = option.type
        takers |= {one: {"": by.type} for one, by in self.of_function.items()}
        if function is stability:  # which draws rows
            del takers["covariance"]
        self.of_models = {one for one, by in takers.items() if by} - self.of_function.keys()
        rows = [*_ROWS]
        order = sorted(takers, key=lambda one: rows.index(one if one in rows else "block"))
        files = [click.Argument(["file"], type=_READ["FILE"], required=name != "info")]
        if name == "compare":
            files.append(click.Argument(["others"], type=_READ["FILE"], nargs=-1))
        super().__init__(
            name, params=[*files, *(_option(one, name, takers[one], methods) for one in order)],
            callback=self.run, help=help.PAGES[f"{name}.description"], epilog=help.epilog(name),
            context_settings=_SETTINGS,
        )  # fmt: skip

    def run(self, **given: Any) -> None:
        module, name = ("info", "run") if self.name == "info" else ("runs", str(self.name))
        getattr(import_module(f".{module}", __package__), name)(arguments(self, given))


# ---- commands ---------------------------------------------------------------------------------------


def arguments(command: _Command, given: dict[str, Any]) -> Arguments:
    """With what follows from the command, and room for notes, which are printed only if all goes well."""
    args = Arguments(**given, command=command.name, methods=command.methods, notes=[])
    args.keep_going = command.name == "info"
    args.method, args.decimal = args.method or "tpower", args.decimal or "."
    said = {one: value for one, value in given.items() if value is not None}
    for name in said:
        needed = _REQUIRES.match(_row(name, str(command.name)).text)
        if needed:
            flag, word = needed.groups()
            other = getattr(args, flag.replace("-", "_"))
            if other in (None, False) or (word and other not in word.split(" or ")):
                raise UserError(f"argument {long_flag(name)}: {needed[0].rstrip(';')}")
    args.of_function = {one: value for one, value in said.items() if one in command.of_function}
    args.of_model = {one: value for one, value in said.items() if one in command.of_models}
    return args


_SETTINGS: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": 110}
_FILE = """orientation format names array drop index_column row_names header delimiter decimal thousands
comment json"""
_OUT = f"float32 {_FILE} impute output quiet"
_KNOWN = "include exclude groups signs count covariance"
COMMANDS: dict[str, click.Command] = {
    str(one.name): one for one in (
        _Command("fit", f"{_OUT} scores plot raw_names", FIT),
        _Command("path", f"{_OUT} plot", tuple(METHODS), select_sparsity),
        _Command("stability", f"{_OUT} plot", RESAMPLED, stability),
        _Command("certify", f"cardinality loadings exact time_limit relaxation rng center scale {_KNOWN} "
                 f"float32 impute {_FILE}"),
        _Command("transform", f"{_OUT} loadings raw_names center scale"),
        _Command("compare", f"{_OUT} loadings reference plot center scale covariance"),
        _Command("info", f"build {_FILE}"),
    )
}  # fmt: skip


class _Group(_Helped, click.Group):
    usage = "[COMMAND FILE [options]]"


@click.group(
    cls=_Group, commands=COMMANDS, invoke_without_command=True, context_settings=_SETTINGS,
    help=help.PAGES["description"], epilog=help.PAGES["status"],
)  # fmt: skip
@click.version_option(package_name="spcacore", message="%(prog)s %(version)s")
@click.pass_context
def cli(ctx: click.Context) -> None:
    if ctx.invoked_subcommand is None:
        import_module(".runs", __package__).show_pitprops()


def in_words(error: click.UsageError) -> str:
    """What the user did wrong, as one line."""
    message, context = error.format_message().rstrip("."), error.ctx
    if message.startswith("No such command"):
        message += "; to analyze a file: spcacore fit FILE"
    if isinstance(error, click.NoSuchOption) and context is not None:
        word = error.option_name.lstrip("-").replace("-", "_")
        flags = {str(param.name): long_flag(str(param.name)) for param in context.command.params}
        say = f"; say {in_flags(IN_RECORDS[word])}" if word in IN_RECORDS and word not in flags else ""
        message = f"there is no option {error.option_name}{say or instead_of(word, flags)}"
    return f"{message}; see {context.command_path if context else 'spcacore'} --help"
