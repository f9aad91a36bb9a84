"""The flags of the command, and the call of the library that they stand for.

Flags of models follow from the signatures of functions and records, the others from the table in help.py.
"""

from __future__ import annotations

import contextlib
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from functools import cache
from importlib import import_module
from typing import Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

import click

from .._limits import COMMAND_GRID_VALUES
from .._messages import IN_RECORDS, instead_of, listed
from .._types import ShareOf
from ..choice import Choice, Explained, Prior, Total
from ..methods import METHODS
from ..models.components import sparse_pca
from ..models.probabilistic import ppca
from ..options import OPTIONS
from ..selection.criteria import select_sparsity
from ..selection.model import FITTING, SPARSITY_WORDS
from ..selection.stable_variables import stability
from . import help
from .source import Arguments, UserError

# ---- what methods take ------------------------------------------------------------------------------

_FUNCTIONS = {name: one for name, (one, _) in FITTING.items()} | {"ppca": ppca}
FIT = (*METHODS, "spca", "sca", "sma", "ppca", "oppca", "soppca")
RESAMPLED = (*METHODS, "spca", "sca", "soppca")
SPARSITY = (*SPARSITY_WORDS, "explained", "total")
_NO_FLAGS = re.compile(  # data, records, and arrays for which no word stands
    "return|[XYy]|grid|model|kind|method|options|choice|prior|callback|sample_weight|start|mu|priors|covariance|"
    "precision"
)


class Option(NamedTuple):
    """The argument whose record has an option, "" for the function itself; and the type of the option."""

    place: str
    type: Any


def options_of(source: Callable[..., object], place: str = "") -> dict[str, Option]:
    """Return the parameters of a function, or the fields of a record, that can be flags."""
    types = get_type_hints(source)
    return {name: Option(place, types[name]) for name in signature(source) if not _NO_FLAGS.fullmatch(name)}


@cache
def signature(source: Callable[..., object]) -> Mapping[str, inspect.Parameter]:
    """Return the parameters of a function or record."""
    return inspect.signature(source).parameters


def _share(
    explained: float | None = None, explained_of: ShareOf = "variance", total: int | None = None
) -> Explained | Total:
    """Return the record for --explained or --total."""
    return Total(total) if explained is None else Explained(explained, explained_of)  # type: ignore[arg-type]


def _records(method: str) -> Mapping[str, Callable[..., Any]]:
    """Return what has the options of a method, by the argument it is given as; "" is the function itself."""
    function, record = _FUNCTIONS.get(method, sparse_pca), METHODS.get(method)
    share = _share if record and record.sparsity == "cardinality" else None
    known = {"prior": Prior, "choice": Choice, "method": record, "cardinality": share}
    places = {place: kind for place, kind in known.items() if kind and place in signature(function)}
    return {"": function, **places}


@cache
def takes(method: str) -> Mapping[str, Option]:
    """Return the options that a method takes."""
    records = _records(method)
    found = {name: one for place, by in records.items() for name, one in options_of(by, place).items()}
    if method in METHODS and "cardinality" not in records:
        del found["cardinality"]
    if "kind" in signature(records[""]):
        found["covariance"] = Option("", bool)
    return found


def call_of(args: Arguments) -> tuple[Callable[..., Any], dict[str, Any], dict[str, Any]]:
    """Return the function to call, its keywords, and the options that make its choice of variables."""
    records, known = _records(args.method), takes(args.method)
    # Options by the record that they belong to
    parts: dict[str, dict[str, Any]] = {"": {"method": args.method} if "method" in records else {}}
    for name, value in args.of_model.items():
        if name not in known:
            refuse(args, name)
        parts.setdefault(known[name].place, {})[name] = value
    several = [long_flag(name) for name in SPARSITY if name in args.of_model]
    if len(several) > 1:
        raise UserError(f"argument {several[1]}: not with {several[0]}")
    # Records
    keywords, choice = parts.pop(""), parts.pop("choice", {})
    try:
        keywords |= {place: records[place](**part) for place, part in parts.items()}
    except (TypeError, ValueError) as error:
        raise refusal(args, error) from None
    if keywords.pop("covariance", False):
        keywords["kind"] = "covariance"
    for name in ("center", "scale"):
        if getattr(args, name) is None:
            own = signature(records[""]).get(name)
            setattr(args, name, own.default if own else True)
    return records[""], keywords, choice


def refuse(args: Arguments, name: str) -> None:
    """Raise UserError for an option that the method does not take."""
    others = [method for method in args.methods if name in takes(method)]
    instead = [long_flag(one) for one in SPARSITY if one in takes(args.method)] if name in SPARSITY else []
    which = f", which takes {listed(instead)}" if instead else ""
    flag = long_flag(f"no_{name}" if getattr(args, name) is False else name)
    raise UserError(f"argument {flag}: not for method {args.method}{which}, but {listed(others)}")


def refusal(args: Arguments, error: Exception) -> UserError:
    """Return an error of the library about an option or the data, in the words of the command."""
    file = str(args.source or args.file)
    said = re.sub(r"\bX\b", lambda _: file, in_flags(str(error)))
    word = re.split(r"\W", said, maxsplit=1)[0]
    name = {"grid": args.grid_of, "share": "explained", "Total": "total"}.get(word, word)
    if name in vars(args):
        return UserError(f"argument {long_flag(name)}: {re.sub(rf'^(grid.*?|{word}) ', '', said)}")
    said = re.sub(r"at \((\d+), (\d+)\)", r"in row \1, column \2", said)
    # The command counts from 1
    said = re.sub(r"\b(row|column|variable) (\d+)", lambda m: f"{m[1]} {int(m[2]) + 1}", said)
    return UserError(said if said.startswith(file) else f"{file}: {said}")


def long_flag(name: str) -> str:
    """Return the flag of an option."""
    return f"--{name.replace('_', '-')}"


def in_flags(text: str) -> str:
    """Return a message of the library with the flags of the command in place of options."""
    text = re.sub(r"cardinality=(Explained|Total)\(\.\.\.\)", lambda m: f"--{m[1].lower()}", text)
    text = re.sub(r"\b\w+=\(?[A-Z]\w+\((\w+=[^()]*)\)", r"\1", text)
    text = text.replace("kind='covariance'", "covariance=True").replace("kind='data'", "--no-covariance")
    flags = re.sub(
        r"\b([a-z]\w*)=('\w+'|[\w.-]*\w|\.\.\.)", lambda m: f"{long_flag(m[1])} {m[2]}".replace("'", ""), text
    )
    return re.sub(r" (True|\.\.\.)", "", flags)


# ---- values -----------------------------------------------------------------------------------------


def _value(text: str) -> Any:
    """Return a number or a word, or a list of them; whether it is allowed is for the function to say."""
    values = [_number(part.strip()) for part in text.split(",")]
    return values if len(values) > 1 else values[0]


def _number(text: str) -> Any:
    """Return a text as a number, if it is one."""
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text


def _mark(text: str) -> str:
    """Return the mark that a word stands for."""
    return {"tab": "\t", "space": " "}.get(text, text)


def _names(text: str) -> list[str]:
    """Return the words of a text with commas."""
    return [name for name in map(str.strip, text.split(",")) if name]


def grid(text: str) -> list[Any]:
    """Return the values of a grid: A, A:B and A:B:S, joined by commas."""
    values: list[Any] = []
    for part in text.split(","):
        try:
            first, last, step = map(Decimal, (*part.split(":"), *(part, "1")[part.count(":") :]))
            count = int(min((last - first) / step, Decimal(COMMAND_GRID_VALUES))) + 1
        except (ArithmeticError, ValueError):  # Decimal, so that 0:1:0.1 holds 0.3
            count = 0
        if count < 1 or first < 0:
            raise click.BadParameter(f"{part!r} is neither a number nor a range of some, as 1:50 or 1:5:0.5")
        values += [_number(f"{(first + i * step).normalize():f}") for i in range(count)]
        if len(values) > COMMAND_GRID_VALUES:
            raise click.BadParameter(f"{text!r} has more than {COMMAND_GRID_VALUES} values")
    return values


_READ: dict[str, Any] = {  # what reads the values with these names in the table
    "FILE": click.Path(readable=False, allow_dash=True), "NAMES": _names, "MARK": _mark, "GRID": grid,
    "NAME": str, "I": int,
}  # fmt: skip
# The option that must be there too, from the help
_REQUIRES = re.compile(r"requires --([\w-]+)(?: ([^;]+))?;")

# ---- flags ------------------------------------------------------------------------------------------


class _Row(NamedTuple):
    """What the help says about an option: its heading, further flags, a word for its value, and the text."""

    heading: str = "options"
    flags: str = ""
    metavar: str = ""
    text: str = ""


def _rows() -> Iterator[tuple[str, _Row]]:
    """Yield the options of the table in help.py."""
    heading, row = "", r"(?m)^(?:\[(.*)\]\n)?(\w\S*)((?: -\S+)*)(?: ([^\s-].*))?\n((?:  .*\n)*)"
    for title, name, flags, metavar, text in re.findall(row, help.OPTIONS):
        heading = title or heading
        yield name, _Row(heading, flags, metavar, " ".join(text.split()))


_ROWS = dict(_rows())


def _row(name: str, command: str) -> _Row:
    """Return the row of an option, for this command if it has one of its own."""
    return _ROWS.get(f"{name}.{command}") or _ROWS.get(name, _Row())


def _option(name: str, command: str, takers: dict[str, Any], methods: tuple[str, ...]) -> click.Option:
    """Return the flag of an option for a command; `takers` are the methods that take it, with its types."""
    # The values that it may have
    row = _row(name, command)
    types = [one for hint in takers.values() for one in (hint, *get_args(hint))]
    words = [word for one in types if get_origin(one) is Literal for word in get_args(one)]
    choices = (
        methods if name == "method" else re.findall(r"[{|]([^}|]+)", row.metavar) or dict.fromkeys(words)
    )
    # The flag and its help
    flag, text = long_flag(name), row.text or OPTIONS[name].meaning
    settings: dict[str, Any] = {"type": _READ.get(row.metavar, _value), "metavar": row.metavar or "N"}
    if bool in types or not (row.metavar or takers):
        flag, settings = f"{flag}/--no-{flag[2:]}", {"default": None}
    elif choices:
        settings = {"type": click.Choice([*choices]), "metavar": "NAME"}
        text += f": {', '.join(choices)}"
    if 0 < len(takers) < 5 and len(methods) > 8 and "" not in takers:
        text = f"{', '.join(takers)}: {text}"
    required = name == "loadings" or (name, command) == ("cardinality", "certify")
    settings["multiple"] = (name, command) == ("loadings", "compare")
    return click.Option([flag, *row.flags.split(), name], help=text, required=required, **settings)


class _Command(click.Command):
    """A command, with the options of its methods, of the function that runs them, and `others` by name."""

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
        if function is stability:  # it draws rows
            del takers["covariance"]
        self.of_models = {one for one, by in takers.items() if by} - self.of_function.keys()
        rows = [*_ROWS]
        order = sorted(takers, key=lambda one: rows.index(one if one in rows else "block"))
        files = [click.Argument(["file"], type=_READ["FILE"])]
        if name == "compare":
            files.append(click.Argument(["others"], type=_READ["FILE"], nargs=-1))
        super().__init__(
            name, params=[*files, *(_option(one, name, takers[one], methods) for one in order)],
            callback=self.run, help=help.PAGES[f"{name}.description"], epilog=help.epilog(name),
            context_settings=_SETTINGS,
        )  # fmt: skip

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options under their headings."""
        headings: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record and param.param_type_name == "option":
                headings.setdefault(_row(str(param.name), "").heading, []).append(record)
        for heading, records in headings.items():
            with formatter.section(heading):
                formatter.write_dl(records)

    def run(self, **given: Any) -> None:
        """Run the function of this name in runs.py."""
        getattr(import_module(".runs", __package__), str(self.name))(arguments(self, given))


# ---- commands ---------------------------------------------------------------------------------------


def arguments(command: _Command, given: dict[str, Any]) -> Arguments:
    """Return the arguments of a command as its function takes them; refuse those that need another one.

    `notes` collects notes, which are printed only if all goes well.
    """
    args = Arguments(**given, command=command.name, methods=command.methods, notes=[])
    args.method, args.decimal = args.method or "tpower", args.decimal or "."
    first = args.loadings if command.name == "compare" else [args.loadings]
    args.loadings = [one for one in (*first, *(args.others or ())) if one]
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
_OUT = f"float32 {_FILE} output quiet"
_KNOWN = "include exclude groups signs count covariance"
COMMANDS: dict[str, click.Command] = {
    str(one.name): one for one in (
        _Command("fit", f"{_OUT} scores plot", FIT),
        _Command("path", f"{_OUT} plot", tuple(METHODS), select_sparsity),
        _Command("stability", f"{_OUT} plot", RESAMPLED, stability),
        _Command("certify", f"cardinality relaxation center scale {_KNOWN} float32 {_FILE}"),
        _Command("transform", f"{_OUT} loadings center scale"),
        _Command("compare", f"{_OUT} loadings reference plot center scale covariance"),
        _Command("info", _FILE),
    )
}  # fmt: skip


@click.group(
    commands=COMMANDS, invoke_without_command=True, context_settings=_SETTINGS,
    help=help.PAGES["description"], epilog=help.PAGES["status"],
)  # fmt: skip
@click.version_option(package_name="spcacore", message="%(prog)s %(version)s")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Run a command, or show what the package can do if there is none."""
    if ctx.invoked_subcommand is None:
        import_module(".runs", __package__).show_pitprops()


def in_words(error: click.UsageError) -> str:
    """Return what the user did wrong, as one line."""
    message, context = error.format_message().rstrip("."), error.ctx
    if message.startswith("No such command"):
        message += "; to analyze a file: spcacore fit FILE"
    if isinstance(error, click.NoSuchOption) and context is not None:
        word = error.option_name.lstrip("-").replace("-", "_")
        flags = {str(param.name): long_flag(str(param.name)) for param in context.command.params}
        say = f"; say {in_flags(IN_RECORDS[word])}" if word in IN_RECORDS and word not in flags else ""
        message = f"there is no option {error.option_name}{say or instead_of(word, flags)}"
    return f"{message}; see {context.command_path if context else 'spcacore'} --help"
