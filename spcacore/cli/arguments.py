"""The arguments of the command."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any, NoReturn

import numpy as np

from .._limits import COMMAND_GRID_VALUES
from ..models.across import SUPPORTS
from ..models.alternation import CONSTRAINTS, OBJECTIVES
from ..operators.choice import COUNTS
from ..operators.deflation import DEFLATIONS
from ..solvers.share import SHARES
from ..solvers.table import SOLVERS
from . import help
from .completion import SHELLS
from .imputing import HOW
from .models import MODELS, RESAMPLED
from .reading import FORMATS
from .table import UserError

__all__ = ["LARGEST_VALUE", "grid", "make_parser", "whole_grid"]
__dir__ = __all__.copy

LARGEST_VALUE = Decimal("1e300")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message}; see {self.prog} --help")


_STYLE: dict[str, Any] = {"formatter_class": argparse.RawDescriptionHelpFormatter, "allow_abbrev": False}


def make_parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="spcacore", description=help.DESCRIPTION, epilog=help.STATUS,
        usage="spcacore [COMMAND FILE [options]]", **_STYLE,
    )  # fmt: skip
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", help=argparse.SUPPRESS)
    parser.add_argument(
        "--completion", choices=SHELLS, metavar="SHELL", help=f"print completions for {', '.join(SHELLS)}"
    )
    for add in (
        _add_fit, _add_path, _add_stability, _add_certify, _add_transform, _add_compare, _add_info,
    ):  # fmt: skip
        add(commands)
    return parser


def _add_command(commands: Any, name: str, description: str, epilog: str, files: str | None = None) -> Any:
    new = commands.add_parser(
        name, prog=f"spcacore {name}", description=description, epilog=epilog,
        usage=f"spcacore {name} FILE [options]", **_STYLE,
    )  # fmt: skip
    new.add_argument(
        "file", metavar="FILE", nargs=files,
        help=".csv, .npy, .npz, .mtx, .parquet, .h5ad, or -, see below",
    )  # fmt: skip
    new.set_defaults(nan=False, keep_going=False)
    return new


def _add_fit(commands: Any) -> None:
    fit = _add_command(commands, "fit", help.FIT_DESCRIPTION, help.FIT_EPILOG)
    what = fit.add_argument_group("components")
    what.add_argument(
        "-n", "--components", metavar="N", type=_count_or_share,
        help="how many; or the share of the variance that they explain together: -n 0.8 (default: 5)",
    )  # fmt: skip
    what.add_argument(
        "-k", "--cardinality", metavar="K", type=_cardinality,
        help="variables in each component, one number or several: -k 10, -k 7,4,4 (default: 10)",
    )  # fmt: skip
    _add_explained(what)
    what.add_argument(
        "--explained-of", choices=SHARES,
        help="what the share of --explained refers to: the variance, or the score (R^2) (default: variance)",
    )  # fmt: skip
    _add_method(what, _numbers, "one number for all components, or one for each", (*SOLVERS, *MODELS))
    what.add_argument(
        "--support", choices=SUPPORTS,
        help="common: the same -k variables in all components; disjoint: no variable in two (default: free)",
    )  # fmt: skip
    what.add_argument(
        "--total-cardinality", metavar="K", type=_at_least(1),
        help="instead of -k: nonzeros of all components together, divided so that they explain the most",
    )  # fmt: skip
    what.add_argument(
        "--sample-l1-bound", metavar="C", type=_numbers, help="sma: bounds the scores (default: sqrt(n r))"
    )
    _add_ridge(what, "")
    what.add_argument("--certify", action="store_true", help="bound what any other components can explain")
    _add_matrix(what)
    _add_search(fit.add_argument_group("search"))
    _add_reading(fit)
    writing = _add_writing(fit, "the loadings (.csv) or all results (.npz)")
    writing.add_argument("--scores", metavar="FILE", help="write the scores of the samples (.csv or .npz)")
    writing.add_argument("--plot", metavar="FILE", help="draw loadings and variances (.png, .pdf or .svg)")
    writing.add_argument(
        "--raw-names", action="store_true",
        help="in .csv, put no apostrophe before names that a spreadsheet takes for formulas (=, +, - or @ "
        "first)",
    )  # fmt: skip


def _add_path(commands: Any) -> None:
    path = _add_command(commands, "path", help.PATH_DESCRIPTION, help.PATH_EPILOG)
    path.set_defaults(explained=None, explained_of=None)
    what = path.add_argument_group("components")
    what.add_argument("-n", "--components", metavar="N", type=_at_least(1), help="how many (default: 1)")
    what.add_argument(
        "-k", "--cardinality", metavar="K", type=_by_component(whole_grid),
        help="variables in every component: -k 1:50, -k 1,2,5,10 (default: 1, 2, 3, 4, 5, 7, 10, ..., 160); "
        "with --select also of each: -k 1:20/5,10",
    )  # fmt: skip
    _add_method(what, _by_component(grid), "the values to try, as 1:5:0.5", tuple(SOLVERS))
    _add_matrix(what)
    choosing = path.add_argument_group("choosing a value")
    choosing.add_argument(
        "--select", choices=("cv", "permutation", "sparseness", "bic", "stability"),
        help="choose by cross-validation, by permutation of the data, by the index of sparseness, by the "
        "likelihood of a normal model (BIC), or by the agreement of half-samples",
    )  # fmt: skip
    choosing.add_argument(
        "--folds", metavar="N", type=_at_least(2), help="folds of cross-validation (default: 5)"
    )
    choosing.add_argument(
        "--permutations", metavar="N", type=_at_least(2), help="how many permutations (default: 20)"
    )
    choosing.add_argument(
        "--rule", choices=("one_se", "best"),
        help="take the sparsest within one standard error of the best, or the best (default: one_se)",
    )  # fmt: skip
    choosing.add_argument(
        "--jobs", metavar="N", type=_at_least(1), help="run this many folds or permutations at a time"
    )
    _add_files(path, "the curve (.csv, or .npz with what was chosen)", "draw the curve (.png, .pdf or .svg)")


def _add_stability(commands: Any) -> None:
    stability = _add_command(commands, "stability", help.STABILITY_DESCRIPTION, help.STABILITY_EPILOG)
    what = stability.add_argument_group("components")
    what.add_argument("-n", "--components", metavar="N", type=_at_least(1), help="how many (default: 2)")
    what.add_argument(
        "-k", "--cardinality", metavar="K", type=_cardinality,
        help="variables in each component, one number or several: -k 10, -k 7,4 (default: 10); "
        "sparse_cca: in each side of a pair",
    )  # fmt: skip
    _add_explained(what)
    what.set_defaults(explained_of=None, support=None, total_cardinality=None, scores=None)
    _add_method(
        what, _numbers, "one number for all components, or one for each", (*SOLVERS, *RESAMPLED)
    )  # fmt: skip
    _add_ridge(
        what, "; sparse_cca: this share of the mean variance is added to all, one for both sides or two"
    )
    what.add_argument(
        "--shrinkage", metavar="A", type=_shrinkage,
        help="sparse_lda: from 0 to 1, towards equal variances within classes, or auto (default: 0)",
    )  # fmt: skip
    what.add_argument(
        "--other", metavar="FILE", help="sparse_cca: the other side, of the same samples, read as FILE is"
    )  # fmt: skip
    what.add_argument("--labels", metavar="FILE", help="sparse_lda: the class of each sample, one per line")
    _add_matrix(what, covariance=False)
    again = stability.add_argument_group("resamples")
    again.add_argument(
        "--resampling", choices=("complementary", "half", "bootstrap"),
        help="complementary halves of the samples, single halves, or as many samples drawn with replacement "
        "(default: complementary)",
    )  # fmt: skip
    again.add_argument(
        "--resamples", metavar="N", type=_at_least(2), help="how many resamples (default: 100)"
    )
    again.add_argument(
        "--threshold",
        metavar="S",
        type=_tolerance,
        help="a variable is stable if this share of the resamples chooses it",
    )
    again.add_argument(
        "--max-false", metavar="V", type=_tolerance,
        help="or: choose that share so that at most V false variables are expected in a component "
        "(default: 1)",
    )  # fmt: skip
    again.add_argument(
        "--assumption", choices=("none", "unimodal", "r-concave"),
        help="what the bound on false variables assumes of pairs of halves (default: unimodal)",
    )  # fmt: skip
    again.add_argument("--level", metavar="S", type=_tolerance, help="level of the intervals (default: 0.95)")
    again.add_argument("--jobs", metavar="N", type=_at_least(1), help="run this many resamples at a time")
    _add_files(
        stability,
        "what was found for each variable (.csv), or everything (.npz)",
        "draw the frequencies (.png, .pdf or .svg)",
    )


def _add_ridge(group: Any, more: str) -> None:
    group.add_argument(
        "--ridge", metavar="R", type=_numbers, help=f"spca: the weight of squared loadings{more}"
    )  # fmt: skip


def _add_certify(commands: Any) -> None:
    certify = _add_command(commands, "certify", help.CERTIFY_DESCRIPTION, help.CERTIFY_EPILOG)
    what = certify.add_argument_group("what to certify")
    what.add_argument(
        "-k", "--cardinality", metavar="K", type=whole_grid, help="variables: -k 10, -k 5,10, -k 1:9"
    )
    what.add_argument("--loadings", metavar="FILE", help="loadings as written by fit -o (.csv or .npz)")
    what.add_argument(
        "--deflation", choices=DEFLATIONS, metavar="NAME",
        help="how earlier loadings are removed (default: projection)",
    )  # fmt: skip
    what.add_argument("--exact", action="store_true", help="find and prove the best, by branch and bound")
    what.add_argument("--time-limit", metavar="S", type=_tolerance, help="seconds for each of these searches")
    what.add_argument(
        "--relaxation", action=argparse.BooleanOptionalAction,
        help="also bound by the semidefinite relaxation (default: up to 100 variables)",
    )  # fmt: skip
    what.add_argument(
        "--seed", metavar="N", type=_at_least(0), help="seed of random choices (default: fixed)"
    )
    _add_matrix(what)
    _add_choice(certify.add_argument_group("what is known of the variables"), "no negative loadings")
    _add_reading(certify)
    _add_writing(certify, None)


def _add_transform(commands: Any) -> None:
    transform = _add_command(commands, "transform", help.TRANSFORM_DESCRIPTION, help.TRANSFORM_EPILOG)
    what = transform.add_argument_group("components")
    what.add_argument(
        "--loadings",
        metavar="FILE",
        required=True,
        help="loadings as written by fit -o: .npz, or .csv, see above",
    )
    _add_matrix(what, covariance=False)
    _add_reading(transform)
    writing = _add_writing(transform, "the scores (.csv or .npz) instead of printing them")
    writing.add_argument("--raw-names", action="store_true", help="put no apostrophe before names, as in fit")


def _add_compare(commands: Any) -> None:
    compare = _add_command(commands, "compare", help.COMPARE_DESCRIPTION, help.COMPARE_EPILOG)
    what = compare.add_argument_group("components")
    what.add_argument(
        "--loadings",
        metavar="FILE",
        nargs="+",
        required=True,
        help="loadings as written by fit -o: .csv or .npz",
    )
    what.add_argument(
        "--reference", metavar="N", type=_at_least(1), default=1,
        help="number of the file that the others are matched with (default: 1, the first)",
    )  # fmt: skip
    _add_matrix(what)
    _add_reading(compare)
    writing = _add_writing(compare, "the comparison (.csv or .html)")
    writing.add_argument("--plot", metavar="FILE", help="draw the variances (.png, .pdf or .svg)")


def _add_info(commands: Any) -> None:
    info = _add_command(commands, "info", help.INFO_DESCRIPTION, help.INFO_EPILOG, "?")
    info.add_argument(
        "--build", action="store_true",
        help="instead of FILE: versions, BLAS, threads, and the processor that the kernels are compiled for",
    )  # fmt: skip
    _add_reading(info, missing=False)
    _add_writing(info, None)
    info.set_defaults(nan=True, keep_going=True, float32=False, covariance=None)


def _add_explained(group: Any) -> None:
    group.add_argument(
        "--explained", metavar="S", type=_numbers,
        help="instead of -k: as few variables as explain this share (0 to 1) of what ordinary components "
        "explain",
    )  # fmt: skip


def _add_method(group: Any, numbers: Callable[[str], Any], which: str, methods: tuple[str, ...]) -> None:
    models = MODELS | RESAMPLED
    takers = {
        name: ", ".join(
            method for method in methods
            if (name in models[method].sparsity if method in models else SOLVERS[method].sparsity == name)
        )
        for name in ("l1_bound", "penalty")
    }  # fmt: skip
    group.add_argument(
        "--objective", choices=tuple(OBJECTIVES),
        help="what is maximized: the variance of the scores, or what the scores explain of all variables "
        "(default: variance)",
    )  # fmt: skip
    group.add_argument(
        "--method", choices=methods, metavar="NAME",
        help=f"{', '.join(methods)} (default: tpower, or the one for --objective)",
    )  # fmt: skip
    group.add_argument(
        "--l1-bound", metavar="C", type=numbers, help=f"instead of -k for {takers['l1_bound']}: {which}"
    )
    group.add_argument(
        "--penalty", metavar="P", type=numbers, help=f"instead of -k for {takers['penalty']}: {which}"
    )
    group.add_argument(
        "--deflation", choices=DEFLATIONS, metavar="NAME",
        help=f"how a component is removed: {', '.join(DEFLATIONS)} (default: projection; of least_squares: "
        "schur)",
    )  # fmt: skip
    group.add_argument(
        "--constraint",
        choices=CONSTRAINTS,
        help="keep components orthogonal to earlier ones, or uncorrelated with them, instead of a deflation",
    )
    group.add_argument("--refine", action="store_true", help="improve the components jointly")
    group.set_defaults(certify=False)


def _add_matrix(group: Any, covariance: bool = True) -> None:
    group.add_argument("--scale", action="store_true", help="divide variables by their standard deviations")
    group.add_argument("--no-center", dest="center", action="store_false", help="do not subtract the means")
    if covariance:
        group.add_argument(
            "--covariance", action="store_true", help="FILE is a covariance or correlation matrix"
        )
    else:
        group.set_defaults(covariance=False)
    group.add_argument("--float32", action="store_true", help="compute in single precision")


def _add_search(group: Any) -> None:
    group.add_argument("--max-iter", metavar="N", type=_at_least(0), help="most iterations (default: 1000)")
    group.add_argument(
        "--tol", type=_tolerance,
        help="stop at this relative change, or for branch_and_bound at this gap (tpower: 1e-8; --float32: "
        "1e-5)",
    )  # fmt: skip
    group.add_argument(
        "--seed", metavar="N", type=_at_least(0), help="seed of random choices (default: fixed)"
    )
    _add_choice(
        group,
        "no negative loadings: " + ", ".join([*(name for name in SOLVERS if SOLVERS[name].chooses), "spca"]),
    )
    group.add_argument(
        "--strategy", choices=("forward", "gradient", "backward", "bidirectional", "projection", "exact"),
        help="greedy, least_squares: how variables are added or removed (default: forward for greedy, "
        "auto for least_squares)",
    )  # fmt: skip
    group.add_argument("--norm", choices=("l1", "l0"), help="gpower: what is penalized (default: l1)")
    group.add_argument("--relative", action="store_true", help="gpower: penalties from 0 to 1")
    group.add_argument("--block", action="store_true", help="gpower: all components at once")
    group.add_argument(
        "--time-limit",
        metavar="S",
        type=_tolerance,
        help="branch_and_bound, and exact least_squares: seconds for each component",
    )


def _add_choice(group: Any, nonnegative: str) -> None:
    group.add_argument(
        "--include", metavar="NAMES", type=_names, help="variables that every component has: --include a,b"
    )
    group.add_argument("--exclude", metavar="NAMES", type=_names, help="variables that no component has")
    group.add_argument(
        "--groups", metavar="FILE",
        help="the group of each variable, one per line: a group is in or out as a whole, and -k counts "
        "groups",
    )  # fmt: skip
    group.add_argument(
        "--count", choices=COUNTS,
        help="what -k counts where there are groups (default: groups); variables: whole groups, of at most "
        "so many variables together",
    )  # fmt: skip
    group.add_argument("--nonnegative", action="store_true", help=nonnegative)


def _names(text: str) -> list[str]:
    """Names between commas."""
    return [name for name in map(str.strip, text.split(",")) if name]


def _add_reading(command: argparse.ArgumentParser, missing: bool = True) -> None:
    reading = command.add_argument_group("reading FILE")
    reading.add_argument(
        "--orientation",
        choices=("rows", "columns"),
        default="rows",
        help="whether rows or columns are samples (default: rows)",
    )
    reading.add_argument(
        "--format", choices=FORMATS, metavar="NAME",
        help=f"what FILE holds, whatever its name: {', '.join(FORMATS)} (default: by its extension; for "
        "-: csv)",
    )  # fmt: skip
    reading.add_argument("--names", metavar="FILE", help="names of the variables, one per line")
    reading.add_argument("--array", metavar="NAME", help="the array of an .npz, or the layer of an .h5ad")
    reading.add_argument(
        "--header",
        action=argparse.BooleanOptionalAction,
        help=".csv, .tsv: the first line has names, or has none",
    )
    reading.add_argument(
        "--row-names", action=argparse.BooleanOptionalAction,
        help=".csv, .tsv: the first column has names, or has none",
    )  # fmt: skip
    reading.add_argument(
        "--index-column", metavar="NAMES", type=_names,
        help=".csv, .tsv, .parquet: the columns, by name or number, that name the rows",
    )  # fmt: skip
    reading.add_argument(
        "--drop",
        metavar="NAMES",
        type=_names,
        help="leave out these columns of FILE, by name or number",
    )
    reading.add_argument(
        "--thousands", metavar="MARK", type=_mark,
        help=".csv, .tsv: what separates thousands, as , in 10,500 (default: nothing does)",
    )  # fmt: skip
    reading.add_argument(
        "--comment", metavar="MARK", type=_mark, help=".csv, .tsv: what begins a comment, as #"
    )
    reading.add_argument(
        "--delimiter", metavar="MARK", type=_mark,
        help=".csv, .tsv: what separates cells: one character, or tab (default: comma, semicolon or tab, "
        "as found)",
    )  # fmt: skip
    reading.add_argument(
        "--decimal", choices=(".", ","), default=".", help=".csv, .tsv: the decimal mark (default: .)"
    )
    if missing:
        reading.add_argument(
            "--impute", choices=HOW,
            help="missing entries: take the mean of the variable, or drop samples or variables that have any",
        )  # fmt: skip
    else:
        command.set_defaults(impute=None)


def _add_files(command: argparse.ArgumentParser, output: str, picture: str) -> None:
    _add_search(command.add_argument_group("search"))
    _add_reading(command)
    _add_writing(command, output).add_argument("--plot", metavar="FILE", help=picture)


def _add_writing(command: argparse.ArgumentParser, output: str | None) -> Any:
    writing = command.add_argument_group("writing")
    writing.add_argument("--json", action="store_true", help="print the result as JSON instead of text")
    if output is not None:
        writing.add_argument("-o", "--output", metavar="FILE", help=f"write {output}")
        writing.add_argument(
            "-q",
            "--quiet",
            action="store_true",
            help="print errors and warnings only, and what --json asks for",
        )
    command.set_defaults(quiet=False)
    return writing


# ---- numbers ----------------------------------------------------------------------------------------


def _at_least(low: int) -> Callable[[str], int]:
    def whole_number(text: str) -> int:
        if not text.isdecimal() or int(text) < low:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least {low}")
        return int(text)

    return whole_number


def _mark(text: str) -> str:
    mark = "\t" if text in ("tab", "\\t") else text
    if len(mark) != 1 or mark in '"\r\n' or mark.isalnum():
        raise argparse.ArgumentTypeError(f"{text!r} is not one character, as ; or tab")
    return mark


def _count_or_share(text: str) -> int | float:
    """A whole number, or a share: a decimal between 0 and 1."""
    try:
        share = float(text)
    except ValueError:
        share = 0.0
    return share if 0 < share < 1 else _at_least(1)(text)


def _cardinality(text: str) -> int | list[int]:
    numbers = [_at_least(1)(part.strip()) for part in text.split(",")]
    return numbers[0] if len(numbers) == 1 else numbers


def _numbers(text: str) -> float | list[float]:
    numbers = [_tolerance(part.strip()) for part in text.split(",")]
    return numbers[0] if len(numbers) == 1 else numbers


def _shrinkage(text: str) -> float | str:
    value = -1.0 if text == "auto" else _tolerance(text)
    if value > 1:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a number from 0 to 1 nor auto")
    return "auto" if text == "auto" else value


def _tolerance(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < np.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least 0")
    return value


def whole_grid(text: str) -> list[int]:
    values = _decimals(text)
    if any(value != int(value) or value < 1 for value in values):
        raise argparse.ArgumentTypeError(f"{text!r} has values that are not whole numbers of at least 1")
    return [int(value) for value in values]


def grid(text: str) -> list[float]:
    return [float(value) for value in _decimals(text)]


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
            raise argparse.ArgumentTypeError(
                f"{part!r} is neither a number of at least 0 nor a range of such, as 1:50 or 1:5:0.5"
            )
        first, last, step = numbers[0], numbers[-1 if len(numbers) == 1 else 1], Decimal(1)
        if len(numbers) == 3:
            step = numbers[2]
        if step == 0 or last < first:
            raise argparse.ArgumentTypeError(f"{part!r} is a range without values")
        if len(values) + float(last - first) / max(float(step), 1e-300) >= COMMAND_GRID_VALUES:
            raise argparse.ArgumentTypeError(f"{text!r} has more than {COMMAND_GRID_VALUES} values")
        values += [first + i * step for i in range(int((last - first) / step) + 1)]
    if len(set(values)) < len(values):
        raise argparse.ArgumentTypeError(f"{text!r} has a value twice")
    return values
