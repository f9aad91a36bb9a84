"""The options of the command, each declared once, and the commands that take them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Decimal, InvalidOperation
from importlib import import_module
from typing import Any

import click
import numpy as np
from click.shell_completion import get_completion_class

from .._limits import COMMAND_GRID_VALUES
from .._messages import instead_of
from ..models.across import SUPPORTS
from ..models.alternation import CONSTRAINTS, OBJECTIVES
from ..operators.choice import COUNTS
from ..operators.deflation import DEFLATIONS
from ..solvers.share import SHARES
from ..solvers.table import SOLVERS
from . import help
from .models import MODELS, RESAMPLED, flag_of
from .table import Arguments, UserError

__all__ = ["COMMANDS", "FORMATS", "IMPUTE", "arguments", "cli", "grid", "in_words", "whole_grid"]
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


def _choice(words: Iterable[str], metavar: str | None = None) -> dict[str, Any]:
    return {"type": _OneOf(tuple(words)), "metavar": metavar or "{" + ",".join(words) + "}"}


def _value(metavar: str, parse: Callable[[str], Any]) -> dict[str, Any]:
    return {"type": _Value(parse), "metavar": metavar}


_FILE = {"type": click.Path(readable=False), "metavar": "FILE"}
_SWITCH = {"is_flag": True}
_NUMBERS = _value("R", _one_or_several(_number))
_COUNT = _value("N", _whole(1))
_TWO = _value("N", _whole(2))
_STRATEGIES = ("forward", "gradient", "backward", "bidirectional", "projection", "exact")


def _takers(name: str, methods: Iterable[str]) -> str:
    models = MODELS | RESAMPLED
    takes = {
        **{m: (one.sparsity,) for m, one in SOLVERS.items()},
        **{m: one.sparsity for m, one in models.items()},
    }
    return ", ".join(method for method in methods if name in takes[method])


def _sparsity(which: str, numbers: Any, methods: tuple[str, ...]) -> list[_Option]:
    """How components are found; the values of the parameters differ by command."""
    add = lambda *flags, help, **more: _Option("components", *flags, help=help, **more)  # noqa: E731
    return [
        add("--objective", **_choice(OBJECTIVES), help="what is maximized: the variance of the scores, or what "
            "the scores explain of all variables (default: variance)"),
        add("--method", **_choice(methods, "NAME"),
            help=f"{', '.join(methods)} (default: tpower, or the one for --objective)"),
        add("--l1-bound", **_value("C", numbers), help=f"instead of -k for {_takers('l1_bound', methods)}: {which}"),
        add("--penalty", **_value("P", numbers), help=f"instead of -k for {_takers('penalty', methods)}: {which}"),
        add("--deflation", **_choice(DEFLATIONS, "NAME"), help=f"how a component is removed: "
            f"{', '.join(DEFLATIONS)} (default: projection; of least_squares: schur)"),
        add("--constraint", **_choice(CONSTRAINTS), help="keep components orthogonal to earlier ones, or "
            "uncorrelated with them, instead of a deflation"),
        add("--refine", **_SWITCH, help="improve the components jointly"),
    ]  # fmt: skip


def _n_components(parse: Any, help: str) -> _Option:
    return _Option("components", "-n", "--n-components", "--components", **_value("N", parse), help=help)


def _cardinality(parse: Any, help: str) -> _Option:
    return _Option("components", "-k", "--cardinality", **_value("K", parse), help=help)


def _choices(nonnegative: str) -> list[_Option]:
    add = lambda *flags, help, **more: _Option("what is known of the variables", *flags, help=help, **more)  # noqa: E731
    return [
        add("--include", **_value("NAMES", _names), help="variables that every component has: --include a,b"),
        add("--exclude", **_value("NAMES", _names), help="variables that no component has"),
        add("--groups", **_FILE, help="the group of each variable, one per line: a group is in or out as a "
            "whole, and -k counts groups"),
        add("--count", **_choice(COUNTS), help="what -k counts where there are groups (default: groups); "
            "variables: whole groups, of at most so many variables together"),
        add("--nonnegative", **_SWITCH, help=f"no negative loadings{nonnegative}"),
    ]  # fmt: skip


_RNG = _Option(
    "search", "--rng", "--seed", **_value("N", _whole(0)), help="seed of random choices (default: fixed)"
)
_SEARCH = [
    _Option("search", "--max-iter", **_value("N", _whole(0)), help="most iterations (default: 1000)"),
    _Option("search", "--tol", **_value("TOL", _number), help="stop at this relative change, or for "
            "branch_and_bound at this gap (tpower: 1e-8; --float32: 1e-5)"),
    _RNG,
    _Option("search", "--strategy", **_choice(_STRATEGIES), help="greedy, least_squares: how variables are "
            "added or removed (default: forward for greedy, auto for least_squares)"),
    _Option("search", "--norm", **_choice(("l1", "l0")), help="gpower: what is penalized (default: l1)"),
    _Option("search", "--relative", **_SWITCH, help="gpower: penalties from 0 to 1"),
    _Option("search", "--block", **_SWITCH, help="gpower: all components at once"),
    _Option("search", "--time-limit", **_value("S", _number), help="branch_and_bound, and exact least_squares: "
            "seconds for each component"),
    *_choices(": " + ", ".join([*(name for name in SOLVERS if SOLVERS[name].chooses), "spca"])),
]  # fmt: skip
_EXPLAINED = _Option("components", "--explained", **_value("S", _one_or_several(_number)), help="instead of -k: as "
                     "few variables as explain this share (0 to 1) of what ordinary components explain")  # fmt: skip
_RIDGE = _Option("components", "--ridge", **_NUMBERS, help="spca: the weight of squared loadings; sparse_cca: this "
                 "share of the mean variance is added to all, one for both sides or two")  # fmt: skip
_COVARIANCE = _Option("matrix", "--covariance", **_SWITCH, help="FILE is a covariance or correlation matrix")
_MATRIX = [
    _Option(
        "matrix", "--scale/--no-scale", default=None, help="divide variables by their standard deviations"
    ),
    _Option("matrix", "--center/--no-center", default=None, help="subtract the means (default: center)"),
    _Option("matrix", "--float32", **_SWITCH, help="compute in single precision"),
]
_READING = [
    _Option("reading FILE", "--orientation", **_choice(("rows", "columns")), default="rows",
            help="whether rows or columns are samples (default: rows)"),
    _Option("reading FILE", "--format", **_choice(FORMATS, "NAME"), help=f"what FILE holds, whatever its name: "
            f"{', '.join(FORMATS)} (default: by its extension; for -: csv)"),
    _Option("reading FILE", "--names", **_FILE, help="names of the variables, one per line"),
    _Option("reading FILE", "--array", metavar="NAME", help="the array of an .npz, or the layer of an .h5ad"),
    _Option("reading FILE", "--drop", **_value("NAMES", _names), help="leave out these columns, by name or number"),
    _Option("reading FILE", "--index-column", **_value("NAMES", _names), help=".csv, .tsv, .parquet: the columns, "
            "by name or number, that name the rows"),
    _Option("reading FILE", "--row-names/--no-row-names", default=None, help=".csv, .tsv, .parquet: the first "
            "column has names, or has none"),
    _Option("reading FILE", "--header/--no-header", default=None, help=".csv, .tsv: the first line has names, or "
            "has none"),
    _Option("reading FILE", "--delimiter", **_value("MARK", _mark), help=".csv, .tsv: what separates cells: one "
            "character, or tab (default: comma, semicolon or tab, as found)"),
    _Option("reading FILE", "--decimal", **_choice((".", ",")), default=".", help=".csv, .tsv: the decimal mark "
            "(default: .)"),
    _Option("reading FILE", "--thousands", **_value("MARK", _mark), help=".csv, .tsv: what separates thousands, as "
            ", in 10,500 (default: nothing does)"),
    _Option("reading FILE", "--comment", **_value("MARK", _mark), help=".csv, .tsv: what begins a comment, as #"),
]  # fmt: skip
_IMPUTE = _Option("reading FILE", "--impute", **_choice(IMPUTE), help="missing entries: take the mean of the "
                  "variable, or drop samples or variables that have any")  # fmt: skip
_JSON = _Option("writing", "--json", **_SWITCH, help="print the result as JSON instead of text")
_QUIET = _Option(
    "writing", "-q", "--quiet", **_SWITCH, help="print errors and warnings only, and what --json asks for"
)
_RAW = _Option("writing", "--raw-names", **_SWITCH, help="in .csv, put no apostrophe before names that a spreadsheet "
               "takes for formulas (=, +, - or @ first)")  # fmt: skip
_JOBS = _Option("choosing", "--n-jobs", "--jobs", **_COUNT, help="run this many at a time")


def _output(what: str) -> _Option:
    return _Option("writing", "-o", "--output", **_FILE, help=f"write {what}")


def _plot(what: str) -> _Option:
    return _Option("writing", "--plot", **_FILE, help=f"draw {what} (.png, .pdf or .svg)")


def _loadings(help: str, **more: Any) -> _Option:
    return _Option("components", "--loadings", **_FILE, help=help, **more)


# ---- commands ---------------------------------------------------------------------------------------


class _Command(click.Command):
    """A command with its options under headings, and texts printed as they are written."""

    def __init__(self, name: str, description: str, epilog: str, *options: _Option, more: bool = False):
        file = click.Argument(["file"], type=click.Path(readable=False, allow_dash=True), metavar="FILE")
        rest = [click.Argument(["others"], type=click.Path(readable=False), nargs=-1)] * more
        super().__init__(
            name, params=[file, *rest, *options], callback=self.run, help=description, epilog=epilog
        )
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


_BOTH = (*SOLVERS, *MODELS)
_EACH = "one number for all components, or one for each"
_SEVERAL = _one_or_several(_whole(1))
COMMANDS = {
    one.name: one for one in (
        _Command(
            "fit", help.FIT_DESCRIPTION, help.FIT_EPILOG,
            _n_components(_count_or_share, "how many; or the share of the variance that they explain together: "
                          "-n 0.8 (default: 5)"),
            _cardinality(_SEVERAL, "variables in each component, one number or several: -k 10, -k 7,4,4 "
                         "(default: 10)"),
            _EXPLAINED,
            _Option("components", "--explained-of", **_choice(SHARES), help="what the share of --explained refers "
                    "to: the variance, or the score (R^2) (default: variance)"),
            *_sparsity(_EACH, _one_or_several(_number), _BOTH),
            _Option("components", "--support", **_choice(SUPPORTS), help="common: the same -k variables in all "
                    "components; disjoint: no variable in two (default: free)"),
            _Option("components", "--total-cardinality", **_value("K", _whole(1)), help="instead of -k: nonzeros "
                    "of all components together, divided so that they explain the most"),
            _Option("components", "--sample-l1-bound", **_value("C", _one_or_several(_number)),
                    help="sma: bounds the scores (default: sqrt(n r))"),
            _RIDGE,
            _Option("components", "--certify", **_SWITCH, help="bound what any other components can explain"),
            _COVARIANCE, *_MATRIX, *_SEARCH, *_READING, _IMPUTE, _JSON,
            _output("the loadings (.csv) or all results (.npz)"),
            _Option("writing", "--scores", **_FILE, help="write the scores of the samples (.csv or .npz)"),
            _plot("loadings and variances"), _RAW, _QUIET,
        ),
        _Command(
            "path", help.PATH_DESCRIPTION, help.PATH_EPILOG, _n_components(_whole(1), "how many (default: 1)"),
            _cardinality(_by_component(whole_grid), "variables in every component: -k 1:50, -k 1,2,5,10 (default: "
                         "1, 2, 3, 4, 5, 7, 10, ..., 160); with --select also of each: -k 1:20/5,10"),
            *_sparsity("the values to try, as 1:5:0.5", _by_component(grid), tuple(SOLVERS)),
            _COVARIANCE, *_MATRIX,
            _Option("choosing", "--criterion", "--select",
                    **_choice(("cv", "permutation", "sparseness", "bic", "stability")),
                    help="choose by cross-validation, by permutation of the data, by the index of sparseness, by "
                    "the likelihood of a normal model (BIC), or by the agreement of half-samples"),
            _Option("choosing", "--n-folds", "--folds", **_TWO, help="folds of cross-validation (default: 5)"),
            _Option("choosing", "--n-permutations", "--permutations", **_TWO,
                    help="how many permutations (default: 20)"),
            _Option("choosing", "--rule", **_choice(("one_se", "best")), help="take the sparsest within one "
                    "standard error of the best, or the best (default: one_se)"),
            _JOBS, *_SEARCH, *_READING, _IMPUTE, _JSON,
            _output("the curve (.csv, or .npz with what was chosen)"), _plot("the curve"), _QUIET,
        ),
        _Command(
            "stability", help.STABILITY_DESCRIPTION, help.STABILITY_EPILOG,
            _n_components(_whole(1), "how many (default: 2)"),
            _cardinality(_SEVERAL, "variables in each component, one number or several: -k 10, -k 7,4 (default: "
                         "10); sparse_cca: in each side of a pair"),
            _EXPLAINED, *_sparsity(_EACH, _one_or_several(_number), (*SOLVERS, *RESAMPLED)), _RIDGE,
            _Option("components", "--shrinkage", **_value("A", _shrinkage), help="sparse_lda: from 0 to 1, towards "
                    "equal variances within classes, or auto (default: 0)"),
            _Option("components", "--other", **_FILE, help="sparse_cca: the other side, of the same samples, read "
                    "as FILE is"),
            _Option("components", "--labels", **_FILE, help="sparse_lda: the class of each sample, one per line"),
            *_MATRIX,
            _Option("choosing", "--resampling", **_choice(("complementary", "half", "bootstrap")),
                    help="complementary halves of the samples, single halves, or as many samples drawn with "
                    "replacement (default: complementary)"),
            _Option("choosing", "--n-resamples", "--resamples", **_TWO, help="how many resamples (default: 100)"),
            _Option("choosing", "--threshold", **_value("S", _number), help="a variable is stable if this share of "
                    "the resamples chooses it"),
            _Option("choosing", "--max-false", **_value("V", _number), help="or: choose that share so that at most "
                    "V false variables are expected in a component (default: 1)"),
            _Option("choosing", "--assumption", **_choice(("none", "unimodal", "r-concave")), help="what the bound "
                    "on false variables assumes of pairs of halves (default: unimodal)"),
            _Option("choosing", "--level", **_value("S", _number), help="level of the intervals (default: 0.95)"),
            _JOBS, *_SEARCH, *_READING, _IMPUTE, _JSON,
            _output("what was found for each variable (.csv), or everything (.npz)"), _plot("the frequencies"),
            _QUIET,
        ),
        _Command(
            "certify", help.CERTIFY_DESCRIPTION, help.CERTIFY_EPILOG,
            _cardinality(whole_grid, "variables: -k 10, -k 5,10, -k 1:9"),
            _loadings("loadings as written by fit -o (.csv or .npz)"),
            _Option("components", "--deflation", **_choice(DEFLATIONS, "NAME"), help="how earlier loadings are "
                    "removed (default: projection)"),
            _Option("components", "--exact", **_SWITCH, help="find and prove the best, by branch and bound"),
            _Option("components", "--time-limit", **_value("S", _number), help="seconds for each of these searches"),
            _Option("components", "--relaxation/--no-relaxation", default=None, help="also bound by the "
                    "semidefinite relaxation (default: up to 100 variables)"),
            _RNG, _COVARIANCE, *_MATRIX, *_choices(""), *_READING, _IMPUTE, _JSON,
        ),
        _Command(
            "transform", help.TRANSFORM_DESCRIPTION, help.TRANSFORM_EPILOG,
            _loadings("loadings as written by fit -o: .npz or .csv", required=True), *_MATRIX, *_READING, _IMPUTE,
            _JSON, _output("the scores (.csv or .npz) instead of printing them"), _RAW, _QUIET,
        ),
        _Command(
            "compare", help.COMPARE_DESCRIPTION, help.COMPARE_EPILOG,
            _loadings("loadings as written by fit -o: .csv or .npz, one file after another", required=True),
            _Option("components", "--reference", **_COUNT, default=1, help="number of the file that the others are "
                    "matched with (default: 1, the first)"),
            _COVARIANCE, *_MATRIX, *_READING, _IMPUTE, _JSON, _output("the comparison (.csv or .html)"),
            _plot("the variances"), _QUIET, more=True,
        ),
        _Command("info", help.INFO_DESCRIPTION, help.INFO_EPILOG, *_READING, _JSON),
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
@click.option(
    "--completion", **_choice(("bash", "zsh", "fish"), "SHELL"), help="print completions for bash, zsh, fish"
)
@click.pass_context
def cli(ctx: click.Context, version: bool, completion: str | None) -> None:
    if version:
        from importlib.metadata import version as version_of

        click.echo(f"spcacore {version_of('spcacore')}")
    elif completion is not None:
        click.echo(get_completion_class(completion)(cli, {}, "spcacore", "_SPCACORE_COMPLETE").source())
    elif ctx.invoked_subcommand is None:
        import_module(".fit", __package__).show_pitprops()
        return
    else:
        return
    ctx.exit()


# ---- what was wrong ---------------------------------------------------------------------------------

_HINTS = {"rng": "--rng", "scale": "--scale", "center": "--no-center", "cardinality": "-k", "n_components": "-n"} | {
    name: f"--{name.replace('_', '-')}"
    for name in ("l1_bound", "penalty", "tol", "max_iter", "method", "nonnegative", "include", "exclude", "groups", "count")
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
