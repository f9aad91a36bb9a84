"""What the commands that compute have in common."""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

import numpy as np

from .._asked import record_of
from .._messages import counted, listed
from ..choice import Choice, Explained, Total
from ..methods import METHODS
from ..operators.deflation import DEFLATIONS
from ..solvers.table import SOLVERS
from .console import Work, say
from .reading import read, read_lines, where_not_finite
from .report import check_outputs, write
from .table import Arguments, Table, UserError

__all__ = [
    "ACROSS", "OPTIONS", "PICTURES", "SPARSITY", "TABLES", "Task", "as_many", "check_matplotlib",
    "check_together", "checked_options", "draw_figure", "fitted_by", "given_sparsity", "method_options",
]  # fmt: skip
__dir__ = __all__.copy

SPARSITY = {
    "cardinality": "-k/--cardinality",
    "explained": "--explained",
    "l1_bound": "--l1-bound",
    "penalty": "--penalty",
}
ACROSS = ("support", "total_cardinality")
OPTIONS = ("max_iter", "tol", "nonnegative", "strategy", "norm", "relative", "block", "time_limit")
TABLES, PICTURES = (".csv", ".npz"), (".png", ".pdf", ".svg")


class Task:
    """A file that was read, and what is to be done with it."""

    def __init__(self, args: Arguments):
        self.args = args
        started = time.perf_counter()
        self.table: Table = read(args)
        self.reading = time.perf_counter() - started
        self.names = self.table.variables()
        self.matrix = self.table.matrix
        self.n, self.p = self.matrix.shape
        where = None if args.nan else where_not_finite(self.table, args)
        if where is not None:
            raise UserError(f"{args.source}: {where}")
        self.size = f"{args.source} has {counted(self.n, 'sample')} of {counted(self.p, 'variable')}"
        self.warnings: list[str] = []
        self.computing = 0.0

    @property
    def treatment(self) -> dict[str, Any]:
        """How all functions of the library are to take the matrix."""
        args = self.args
        kind = "covariance" if args.covariance else "data"
        return {"kind": kind, "center": args.center, "scale": args.scale}

    def choice(self, signs: bool = True) -> Choice | None:
        """What is known of the variables, by their places."""
        args, place = self.args, {name: j for j, name in enumerate(self.names)}
        options: dict[str, Any] = {}
        for name in ("include", "exclude"):
            given = getattr(args, name)
            unknown = [one for one in given or () if one not in place]
            if unknown:
                raise UserError(f"argument --{name}: there is no variable {unknown[0]!r}")
            if given:
                options[name] = [place[one] for one in given]
        both = set(options.get("include", ())) & set(options.get("exclude", ()))
        if both:
            raise UserError(f"argument --exclude: {self.names[min(both)]!r} is in --include too")
        if args.groups is not None:
            options["groups"] = read_lines(args, "groups", self.p, known=self.names)
        if args.count is not None:
            if args.groups is None:
                raise UserError("argument --count: requires --groups")
            options["count"] = args.count
        if signs and getattr(args, "nonnegative", None):
            options["signs"] = 1
        return Choice(**options) if options else None

    @contextmanager
    def work(self) -> Any:
        """Time it, and turn what is wrong with the matrix or the options into one line."""
        work = Work(self.args.quiet)
        try:
            with work() as progress:
                yield progress
        except (TypeError, ValueError) as error:
            where = where_not_finite(self.table, self.args, self.args.nan)
            option = re.split("[ =]", str(error), maxsplit=1)[0]
            named = where is None and option in (*OPTIONS, *ACROSS, "include", "exclude", "groups", "count")
            subject = f"argument --{option.replace('_', '-')}" if named else self.args.source
            raise UserError(f"{subject}: {where or error}") from None
        self.warnings = work.warn(self._reworded)
        self.computing = work.seconds
        for note in () if self.args.quiet else self.args.notes:
            say(f"note: {note}")

    def _reworded(self, message: str) -> str | None:
        """A warning of the library, which counts components from 0, in the words of the command."""
        missed = re.fullmatch(r"components? ([\d, ]+) not converged in (.*)", message)
        if missed is None:
            return message
        some = [str(int(t) + 1) for t in missed[1].split(",")]
        flag = "--max-iter" if missed[2].endswith("iterations") else "--time-limit"
        return (
            f"component{'s' * (len(some) > 1)} {', '.join(some)} not converged in {missed[2]}; raise {flag}"
        )

    def components(self, count: Any, default: int) -> Any:
        """A number, within the bounds of the matrix; a share as it is."""
        if isinstance(count, float):
            return count
        most = min(self.n, self.p)
        if count is None:
            count = min(default, most)
            if count < default:
                self.args.notes.append(f"{counted(count, 'component')} instead of {default}: {self.size}")
        if count > most:
            raise UserError(f"argument -n/--n-components: {count} is too many, at most {most}: {self.size}")
        return count

    def sparsity(self, name: str, value: Any) -> Any:
        """A number or several, within the bounds that depend on the matrix."""
        given, value = value, np.hstack(value) if isinstance(value, list) else value
        if name == "cardinality" and np.max(value) > self.p:
            raise UserError(
                f"argument -k/--cardinality: {np.max(value)} is too many, at most {self.p}: {self.size}"
            )
        if name == "explained" and not (np.min(value) > 0 and np.max(value) <= 1):
            raise UserError("argument --explained: a share is more than 0, and at most 1")
        if name == "l1_bound" and not (np.min(value) >= 1 and np.max(value) <= np.sqrt(self.p)):
            wrong = np.min(value) if np.min(value) < 1 else np.max(value)
            raise UserError(
                f"argument --l1-bound: {wrong:g} is not between 1 and {np.sqrt(self.p):.4g}, the root of the "
                f"number of variables: {self.size}"
            )
        return given

    def title(self, what: str) -> str:
        args = self.args
        if args.covariance:
            kind = "correlation" if args.scale else "covariance"
            return f"{what} of {args.source}: {counted(self.p, 'variable')}, {kind} matrix"
        treatment = f"{'' if args.center else 'not '}centered, {'' if args.scale else 'not '}scaled"
        size = f"{counted(self.n, 'sample')}, {counted(self.p, 'variable')}"
        return f"{what} of {args.source}: {size}, {treatment}"

    def document(self, fields: dict[str, Any]) -> dict[str, Any]:
        """What --json prints."""
        args = self.args
        return {
            "command": args.command,
            "file": args.file,
            "samples": None if args.covariance else self.n,
            "variables": self.p,
            "kind": self.treatment["kind"],
            "center": args.center and not args.covariance,
            "scale": args.scale,
            "names": None if self.table.names is None else self.names,
            **fields,
            "warnings": self.warnings,
            "notes": args.notes,
            "seconds": {"reading": self.reading, "computing": self.computing},
        }

    def last_line(self, verb: str, *written: str | None) -> None:
        print(f"\nread in {self.reading:.2f} s, {verb} in {self.computing:.2f} s")
        for path in filter(None, written):
            print(f"wrote {path}")


def as_many(args: Arguments, parameter: str, value: list[Any]) -> int:
    """The number of components, which is that of the values."""
    if args.n_components is not None and args.n_components != len(value):
        raise UserError(
            f"argument {SPARSITY[parameter]}: {counted(len(value), 'number')} for "
            f"{counted(args.n_components, 'component')}"
        )
    return len(value)


def given_sparsity(args: Arguments) -> tuple[str, Any]:
    """What the method takes, and the value given for it, or None."""
    wanted = SOLVERS[args.method].sparsity
    if args.explained is not None and args.cardinality is not None:
        raise UserError("argument --explained: not with -k")
    if args.explained is None and args.explained_of is not None:
        raise UserError("argument --explained-of: requires --explained")
    if args.explained is not None and wanted == "cardinality":
        wanted = "explained"
    for name, flag in SPARSITY.items():
        if name != wanted and getattr(args, name) is not None:
            takes = "cardinality" if name == "explained" else name
            others = listed(method for method in SOLVERS if SOLVERS[method].sparsity == takes)
            raise UserError(
                f"argument {flag}: method {args.method} takes {SPARSITY[wanted]}; "
                f"{flag} is for --method {others}"
            )
    value = getattr(args, wanted)
    if value is None and wanted == "l1_bound":
        raise UserError(
            f"method {args.method} needs --l1-bound, between 1 and the root of the number of variables"
        )
    if value is None and wanted == "penalty":
        raise UserError(f"method {args.method} needs --penalty; with --relative, between 0 and 1")
    return wanted, value


def method_options(args: Arguments) -> dict[str, Any]:
    """Those options of the method that were given."""
    takes = {name: (*one.__dataclass_fields__,) for name, one in METHODS.items()}
    options = {}
    for name in OPTIONS:
        value = getattr(args, name)
        if value is None or value is False:
            continue
        if name == "nonnegative":
            takes = {method: (name,) * SOLVERS[method].chooses for method in SOLVERS}
        if name not in takes[args.method]:
            others = ", ".join(method for method in SOLVERS if name in takes[method])
            raise UserError(
                f"argument --{name.replace('_', '-')}: not for method {args.method}, but {others}"
            )
        if name != "nonnegative":  # which is known of the variables
            options[name] = value
    return options


def fitted_by(
    args: Arguments, parameter: str, value: Any, options: dict[str, Any], choice: Choice | None
) -> dict[str, Any]:
    """How `sparse_pca` is told of the method, of how sparse components are, and of the variables."""
    if args.rng is not None and "rng" in METHODS[args.method].__dataclass_fields__:
        options = options | {"rng": args.rng}
    if parameter in ("l1_bound", "penalty"):
        options, value = options | {parameter: value}, None
    elif parameter == "explained":
        value = Explained(value, args.explained_of or "variance")
    elif parameter == "total_cardinality":
        value = Total(value)
    return {
        "cardinality": value, "method": record_of(args.method, **options), "choice": choice,
        "deflation": args.constraint or args.deflation, "refine": args.refine,
    }  # fmt: skip


def checked_options(
    args: Arguments, *outputs: tuple[str | None, str, tuple[str, ...]]
) -> tuple[str, Any, dict[str, Any]]:
    """The sparsity, its value and the options of the method, where nothing is wrong with the arguments."""
    if args.method is None:
        args.method = "least_squares" if args.objective == "least_squares" else "tpower"
    objective = SOLVERS[args.method].objective
    if args.objective not in (None, objective):
        raise UserError(f"argument --method: {args.method} maximizes {objective}, not {args.objective}")
    parameter, value = given_sparsity(args)
    options = method_options(args)
    check_together(args)
    check_outputs(args, outputs)
    check_matplotlib(args)
    args.nan = SOLVERS[args.method].missing and args.method != "tpower"  # which --impute makes explicit
    return parameter, value, options


def check_together(args: Arguments) -> None:
    """Refuse before the work, in the words of the command, what the library would refuse in its own."""
    given = {
        f"--{name.replace('_', '-')}"
        for name in ("constraint", "deflation", "refine", "certify", "nonnegative", "block", *ACROSS)
        if getattr(args, name, None) not in (None, False, "free")
    }
    pairs = [
        ("--constraint", "--deflation"), ("--constraint", "--nonnegative"), ("--refine", "--nonnegative"),
        ("--block", "--deflation"), ("--block", "--constraint"), ("--block", "--certify"),
    ]  # fmt: skip
    alone = ("--constraint", "--deflation", "--refine", "--certify", "--nonnegative", "--block")
    pairs += [(one, across) for across in ("--support", "--total-cardinality") for one in alone]
    for one, other in pairs:
        if {one, other} <= given:
            raise UserError(f"argument {one}: not with {other}")
    if SOLVERS[args.method].objective == "least_squares":
        for one in given & {"--refine", "--certify"}:
            raise UserError(f"argument {one}: not with method least_squares")
        if args.deflation is not None and not DEFLATIONS[args.deflation].semidefinite:
            raise UserError(f"argument --deflation: {args.deflation} is not for method least_squares")
    if args.refine and args.constraint == "uncorrelated":
        raise UserError("argument --refine: not with --constraint uncorrelated")
    if args.covariance and getattr(args, "scores", None):
        raise UserError("argument --scores: a covariance has no samples to score")


def check_matplotlib(args: Arguments) -> None:
    if args.plot is not None:
        try:
            import matplotlib.figure  # noqa: F401
        except ImportError:
            raise UserError("argument --plot: drawing needs matplotlib; pip install matplotlib") from None


def draw_figure(path: str, width: float, draw: Callable[[Any], Any]) -> None:
    """A figure into a file; no window is opened, whatever the settings of matplotlib."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, 5), layout="constrained")
    with warnings.catch_warnings():  # of letters that the font lacks
        warnings.simplefilter("ignore")
        draw(figure)
        write(path, lambda path: figure.savefig(path, dpi=150))
