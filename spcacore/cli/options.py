"""The flags of the command: those of models by their signatures, the others by the table of their help."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from decimal import Decimal, InvalidOperation
from importlib import import_module
from typing import Any, get_args

import click
from click.shell_completion import get_completion_class

from .. import _types
from .._limits import COMMAND_GRID_VALUES
from .._messages import IN_RECORDS, instead_of
from ..methods import METHODS
from ..options import OPTIONS
from ..selection.criteria import select_sparsity
from ..selection.stable_variables import stability
from . import help
from .models import FIT, RESAMPLED, Option, flag_of, in_flags, long_flag, options_of, takes
from .table import Arguments, UserError

__all__ = ["COMMANDS", "arguments", "cli", "grid", "in_words"]
__dir__ = __all__.copy

_LARGEST = Decimal("1e300")

# ---- values -----------------------------------------------------------------------------------------


def _number(words: str) -> Callable[[str], Any]:
    """What reads a number of a type, or several where it may be a sequence."""
    kinds = [kind for kind in (int, float) if kind.__name__ in words]

    def one(text: str) -> Any:
        for kind in kinds:
            try:
                return kind(text)
            except ValueError:
                pass
        if "str" in words:
            return text
        raise click.BadParameter(f"{text!r} is not a {'whole ' * (kinds == [int])}number")

    def numbers(text: str) -> Any:
        several = "ArrayLike" in words or "tuple" in words
        found = [one(part.strip()) for part in text.split(",")] if several else [one(text)]
        return found[0] if len(found) == 1 else found

    return numbers


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
            numbers = [Decimal(number.strip()) for number in part.split(":")]  # so that 0:1:0.1 holds 0.3
        except InvalidOperation:
            numbers = []
        if not 1 <= len(numbers) <= 3 or not all(n.is_finite() and 0 <= n <= _LARGEST for n in numbers):
            raise click.BadParameter(
                f"{part!r} is neither a number of at least 0 nor a range of such, as 1:50 or 1:5:0.5"
            )
        first, last = numbers[0], numbers[min(1, len(numbers) - 1)]
        step = numbers[2] if len(numbers) == 3 else Decimal(1)
        if step == 0 or last < first:
            raise click.BadParameter(f"{part!r} is a range without values")
        if len(values) + (last - first) / step >= COMMAND_GRID_VALUES:
            raise click.BadParameter(f"{text!r} has more than {COMMAND_GRID_VALUES} values")
        found = (first + i * step for i in range(int((last - first) / step) + 1))
        values += [int(value) if value == int(value) else float(value) for value in found]
    return values


_PATH, _SEED = click.Path(readable=False, allow_dash=True), _number("int")
_READ: dict[str, tuple[str, Any]] = {  # what stands for a value in the table, or its type, and what reads it
    "FILE": ("FILE", _PATH), "Groups": ("FILE", _PATH), "NAMES": ("NAMES", _names),
    "Variables": ("NAMES", _names), "MARK": ("MARK", _mark), "GRID": ("GRID", grid), "NAME": ("NAME", str),
    "N": ("N", _SEED), "RandomSource": ("N", _SEED),
}  # fmt: skip
_DEFAULTS = {"orientation": "rows", "decimal": ".", "reference": 1}

_METHODS = tuple(dict.fromkeys((*FIT, *RESAMPLED)))

# ---- options ----------------------------------------------------------------------------------------


class _Option(click.Option):
    """An option with the heading that it stands under in the help."""

    heading: str


def _rows() -> Iterator[tuple[str, tuple[str, list[str], str, str]]]:
    """Of each row of the table: the heading, other flags, what stands for a value, and the text."""
    for part in re.split(r"(?m)^\[", help.OPTIONS)[1:]:
        heading, rows = part.split("]\n", 1)
        for row in re.split(r"\n(?=\w)", rows.strip()):
            first, _, text = row.partition("\n")
            name, *flags = first.split()
            metavar = flags.pop() if flags and not flags[-1].startswith("-") else ""
            yield name, (heading, flags, metavar, " ".join(text.split()))


_ROWS = dict(_rows())


def _choices(words: str) -> tuple[str, ...]:
    """The words that a type allows, or those in the table."""
    found = words[1:-1].split("|") if words.startswith("{") else re.findall(r"['\"]([\w-]+)['\"]", words)
    for word in words.split(" | "):
        found += [one for one in get_args(getattr(_types, word, None)) if isinstance(one, str)]
    return tuple(dict.fromkeys(found))


def _option(name: str, command: str, takers: dict[str, Option], methods: tuple[str, ...]) -> _Option:
    """A flag of a command; `takers` are the methods that take it, none where that is not asked."""
    heading, flags, metavar, text = _ROWS.get(name, ("search", [], "", ""))
    own = _ROWS.get(f"{name}.{command}", (heading, [], "", text))
    heading, metavar, text = own[0], own[2] or metavar, own[3] or OPTIONS[name].meaning
    types = " | ".join(dict.fromkeys(one.words for one in takers.values())) or metavar
    choices = methods if name == "method" else _choices(types)
    settings: dict[str, Any] = {"required": name == "loadings" and command != "certify"}
    if name in _DEFAULTS:
        settings["default"] = _DEFAULTS[name]
    flag, read = long_flag(name), metavar if metavar == "GRID" else types.split(" | ")[0]
    if {"bool", "Switch", "YES"} & {*types.split(" | ")}:
        flag = f"{flag}/--no-{flag[2:]}"
        settings["default"] = None
    elif choices:
        few = f"{{{','.join(choices)}}}" if len(choices) < 6 else ""
        settings |= {"type": click.Choice(choices), "metavar": few or "NAME"}
        text = text if few else f"{text}: {', '.join(choices)}"
    elif read in _READ:
        kind, settings["type"] = _READ[read]
        settings |= {"metavar": metavar or kind}
    elif types:
        settings |= {"type": _number(types), "metavar": metavar or ("S" if "float" in types else "N")}
    else:
        settings["is_flag"] = True
    if 0 < len(takers) < 5 and len(methods) > 8 and "" not in takers:
        text = f"{', '.join(takers)}: {text}"
    option = _Option([flag, *flags, name], help=text, **settings)
    option.heading = heading
    return option


class _Command(click.Command):
    """A command with its options under headings, and texts printed as they are written.

    It takes the options of its methods, those of the function that runs them, and others by name.
    """

    def __init__(self, name: str, takes_also: str, methods: tuple[str, ...] = (), function: Any = None):
        own = options_of(function) if function else {}
        found: dict[str, dict[str, Option]] = {one: {"": option} for one, option in own.items()}
        for method in _METHODS:
            for one, option in takes(method).items():
                if one not in own and (method in methods or one in takes_also.split()):
                    found.setdefault(one, {})[method] = option
        for one in [*takes_also.split(), *["method"] * bool(methods)]:
            found.setdefault(one, {})
        if function is stability:  # which draws rows
            del found["covariance"]
        rows = [*_ROWS]
        order = sorted(found, key=lambda one: rows.index(one if one in rows else "block"))
        params = [click.Argument(["file"], type=_PATH, required=name != "info")]
        if name == "compare":
            params.append(click.Argument(["others"], type=_PATH, nargs=-1))
        super().__init__(
            name, params=[*params, *(_option(one, name, found[one], methods) for one in order)],
            callback=self.run, help=help.PAGES[f"{name}.description"], epilog=help.epilog(name),
            context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
        )  # fmt: skip
        self.methods, self.of_function = methods, set(own)

    def run(self, **given: Any) -> None:
        import_module(f".{self.name}", __package__).run(arguments(self, given))

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


# ---- commands ---------------------------------------------------------------------------------------


def arguments(command: _Command, given: dict[str, Any]) -> Arguments:
    """With what follows from the command, and room for notes, which are printed only if all goes well."""
    args = Arguments(**given, command=command.name, methods=command.methods, notes=[])
    args.nan = args.keep_going = command.name == "info"
    args.method = args.method or "tpower"
    every = {one for method in _METHODS for one in takes(method)}
    said = {one: value for one, value in given.items() if value is not None}
    args.of_function = {one: v for one, v in said.items() if one in command.of_function}
    args.of_model = {one: v for one, v in said.items() if one in every - command.of_function}
    return args


_FILE = """orientation format names array drop index_column row_names header delimiter decimal thousands
comment json"""
_OUT = f"float32 {_FILE} impute output quiet"
_KNOWN = "include exclude groups signs count covariance"
COMMANDS = {
    one.name: one for one in (
        _Command("fit", f"{_OUT} scores plot raw_names", FIT),
        _Command("path", f"{_OUT} plot", tuple(METHODS), select_sparsity),
        _Command("stability", f"{_OUT} plot", RESAMPLED, stability),
        _Command("certify", f"cardinality loadings deflation exact time_limit relaxation rng center scale "
                 f"{_KNOWN} float32 impute {_FILE}"),
        _Command("transform", f"{_OUT} loadings raw_names center scale"),
        _Command("compare", f"{_OUT} loadings reference plot center scale covariance"),
        _Command("info", f"build {_FILE}"),
    )
}  # fmt: skip


class _Group(click.Group):
    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args[0] not in self.commands:
            raise UserError(f"unknown command {args[0]!r}; to analyze a file: spcacore fit {args[0]}")
        return super().resolve_command(ctx, args)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write(f"usage: spcacore [COMMAND FILE [options]]\n\n{help.PAGES['description']}\n")
        with formatter.section("options"):
            formatter.write_dl([record for p in self.get_params(ctx) if (record := p.get_help_record(ctx))])
        formatter.write(f"\n{help.PAGES['status']}")


@click.group(
    cls=_Group, commands=COMMANDS, invoke_without_command=True,
    context_settings=COMMANDS["fit"].context_settings,
)  # fmt: skip
@click.version_option(package_name="spcacore", message="%(prog)s %(version)s")
@click.option(
    "--completion", metavar="SHELL", type=click.Choice(("bash", "zsh", "fish")), help="print completions"
)
@click.pass_context
def cli(ctx: click.Context, completion: str | None) -> None:
    if completion is not None:
        shell = get_completion_class(completion)
        assert shell is not None  # the choices are those that click has
        click.echo(shell(cli, {}, "spcacore", "_SPCACORE_COMPLETE").source())
        ctx.exit()
    elif ctx.invoked_subcommand is None:
        import_module(".fit", __package__).show_pitprops()


def in_words(error: click.UsageError) -> str:
    """What the user did wrong, as one line."""
    if isinstance(error, click.MissingParameter) and error.param is not None:
        name = "FILE" if isinstance(error.param, click.Argument) else error.param.opts[0]
        message = f"the following arguments are required: {name}"
    elif isinstance(error, click.BadParameter) and error.param is not None:
        message = f"argument {flag_of(error.param.name or '')}: {error.message.rstrip('.')}"
    elif isinstance(error, click.NoSuchOption) and error.ctx is not None:
        word = error.option_name.lstrip("-").split("=")[0].replace("-", "_")
        short = lambda flag: len(flag) > 2  # noqa: E731
        flags = {param.name or "": min(param.opts, key=short) for param in error.ctx.command.params}
        say = f"; say {in_flags(IN_RECORDS[word])}" if word in IN_RECORDS and word not in flags else ""
        message = f"unrecognized arguments: {error.option_name}{say or instead_of(word, flags)}"
    else:
        message = error.message.rstrip(".")
    return f"{message}; see {error.ctx.command_path if error.ctx else 'spcacore'} --help"
