"""The `spcacore` command: sparse PCA of a matrix in a file, or of the embedded pit props."""

from __future__ import annotations

import argparse
import contextlib
import csv
import os
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn, TextIO

import numpy as np
from numpy.typing import NDArray

from . import datasets
from ._reading import Table, UserError, counted, read, where_not_finite
from ._result import Progress, SparsePCAResult
from .components import sparse_pca
from .deflation import METHODS

TABLE_ROWS, TABLE_COLUMNS = 40, 10  # more variables or components than this are listed instead
LISTED = 50  # variables of one component on the screen

DESCRIPTION = """\
Sparse principal component analysis: components that explain much variance and use few variables each,
so that they can be read. Ordinary principal components mix all variables.

  spcacore                  show it on the pit props, 13 measurements of 180 mine timbers
  spcacore fit FILE         analyse the matrix in FILE
  spcacore fit --help       file formats and options
"""

FIT_DESCRIPTION = """\
Find sparse principal components of the matrix in FILE, one row a sample and one column a variable, and
print for each the variables that it selects, their loadings, and the share of the variance explained.
"""

FIT_EPILOG = """\
examples:
  spcacore fit data.csv                          5 components of 10 variables each
  spcacore fit data.csv -n 3 -k 7,4,4 --scale    3 components of 7, 4 and 4 standardized variables
  spcacore fit correlations.csv --covariance     from a covariance or correlation matrix
  spcacore fit matrix.mtx.gz --orientation columns --names genes.txt -o loadings.csv
                                                 counts with one column a sample, as from 10x Genomics

file formats:
  .csv, .tsv       Text, also compressed (.csv.gz). A header and row names are recognised: a first line
                   or a first column of words. Semicolons are recognised; decimals need a point.
  .npy             A NumPy array, 2-D. It is read from disk as needed.
  .npz             Several NumPy arrays: the only 2-D one, the one called X, or that of --array. An array
                   of words of the right length gives the names. Or a matrix of scipy.sparse.save_npz.
  .mtx             A Matrix Market file, sparse or dense, also compressed (.mtx.gz).

The variance of a component is what it adds to the earlier ones. Variables and components are counted from
1, and a variable without a name is called x1, x2, ...
exit status: 0 success, 2 wrong usage or input, 130 interrupted.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command with these arguments (default: those of the process); the exit status."""
    try:
        _run(sys.argv[1:] if argv is None else list(argv))
        if sys.stdout is not None:
            sys.stdout.flush()
        return 0
    except UserError as error:
        return _fail(str(error))
    except MemoryError:
        return _fail("not enough memory for this matrix")
    except BrokenPipeError:
        _abandon_stdout()
        return 0
    except OSError as error:  # files are dealt with where they are opened
        _abandon_stdout()
        return _fail(f"cannot write to the standard output: {error.strerror}")
    except KeyboardInterrupt:
        _say("interrupted")
        return 130


def _abandon_stdout() -> None:
    """Let the interpreter, which flushes it once more at exit, do so in vain."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(argv: list[str]) -> None:
    if argv and argv[0] != "fit" and not argv[0].startswith("-"):
        raise UserError(f"unknown command {argv[0]!r}; to analyse a file: spcacore fit {argv[0]}")
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")
    args = _parser().parse_args(argv)
    if args.version:
        from importlib.metadata import version

        print(f"spcacore {version('spcacore')}")
    elif args.command is None:
        _show_pitprops()
    else:
        _fit_file(args)


def _fail(message: str) -> int:
    _say(f"error: {message}")
    return 2


def _say(message: str) -> None:
    """One line on stderr, whatever is in the message."""
    with contextlib.suppress(OSError):
        print(f"spcacore: {' '.join(message.split())}", file=sys.stderr)


# ---- arguments --------------------------------------------------------------------------------------


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message}; see {self.prog} --help")


def _parser() -> argparse.ArgumentParser:
    style: dict[str, Any] = {
        "formatter_class": argparse.RawDescriptionHelpFormatter, "allow_abbrev": False,
    }  # fmt: skip
    parser = _Parser(prog="spcacore", description=DESCRIPTION, **style)
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    fit = commands.add_parser(
        "fit", help="analyse the matrix in a file", description=FIT_DESCRIPTION, epilog=FIT_EPILOG, **style
    )
    fit.add_argument("file", metavar="FILE", help=".csv, .tsv, .npy, .npz or .mtx, see below")

    what = fit.add_argument_group("components")
    what.add_argument("-n", "--components", metavar="N", type=_at_least(1), help="how many (default: 5)")
    what.add_argument(
        "-k", "--cardinality", metavar="K", type=_cardinality,
        help="variables in every component, or in each: -k 10, -k 7,4,4 (default: 10)",
    )  # fmt: skip
    what.add_argument("--scale", action="store_true", help="divide variables by their standard deviations")
    what.add_argument("--no-center", dest="center", action="store_false", help="do not subtract the means")
    what.add_argument("--covariance", action="store_true", help="FILE is a covariance or correlation matrix")
    what.add_argument(
        "--deflation", choices=METHODS, default="projection", metavar="NAME",
        help=f"how a component is removed: {', '.join(METHODS)} (default: projection)",
    )  # fmt: skip
    what.add_argument(
        "--max-iter", metavar="N", type=_at_least(0), default=1000, help="iterations (default: 1000)"
    )
    what.add_argument(
        "--tol", type=_tolerance, help="relative change at which to stop (default: 1e-8; --float32: 1e-5)"
    )
    what.add_argument("--seed", metavar="N", type=_at_least(0), help="for random choices (default: fixed)")
    what.add_argument("--float32", action="store_true", help="compute in single precision")

    reading = fit.add_argument_group("reading FILE")
    reading.add_argument(
        "--orientation", choices=("rows", "columns"), default="rows", help="what is a sample (default: rows)"
    )
    reading.add_argument("--names", metavar="FILE", help="names of the variables, one a line")
    reading.add_argument("--array", metavar="NAME", help=".npz: which array")
    reading.add_argument(
        "--header", action=argparse.BooleanOptionalAction, help=".csv, .tsv: the first line is names, or not"
    )
    reading.add_argument(
        "--row-names", action=argparse.BooleanOptionalAction,
        help=".csv, .tsv: the first column is names, or not",
    )  # fmt: skip

    writing = fit.add_argument_group("writing")
    writing.add_argument(
        "-o", "--output", metavar="FILE", help="write the loadings (.csv) or all results (.npz)"
    )
    writing.add_argument("--scores", metavar="FILE", help="write the scores of the samples (.csv or .npz)")
    writing.add_argument("-q", "--quiet", action="store_true", help="print errors and warnings only")
    return parser


def _at_least(low: int) -> Callable[[str], int]:
    def whole_number(text: str) -> int:
        if not text.isdecimal() or int(text) < low:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least {low}")
        return int(text)

    return whole_number


def _cardinality(text: str) -> int | list[int]:
    numbers = [_at_least(1)(part.strip()) for part in text.split(",")]
    return numbers[0] if len(numbers) == 1 else numbers


def _tolerance(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < np.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least 0")
    return value


# ---- the two commands -------------------------------------------------------------------------------


def _show_pitprops() -> None:
    pitprops = datasets.load_pitprops()
    cardinality = [7, 4, 4, 1, 1, 1]
    result, seconds = _fit(
        pitprops.correlation, False, n_components=6, cardinality=cardinality, kind="covariance"
    )
    print(
        "Sparse PCA of the pit props: correlations of 13 measurements of 180 mine timbers (Jeffers 1967)\n"
        "6 components of 7, 4, 4, 1, 1 and 1 variables, as in Zou, Hastie and Tibshirani (2006)\n"
    )
    _report(result, pitprops.names)
    print(f"\n{seconds:.3f} s\nYour own data: spcacore fit FILE      More: spcacore --help")


def _fit_file(args: argparse.Namespace) -> None:
    _check_outputs(args)
    args.notes = []  # printed only if all goes well, so that an error is alone
    started = time.perf_counter()
    table = read(args)
    reading = time.perf_counter() - started
    options = _options(table, args)
    try:
        result, seconds = _fit(table.matrix, args.quiet, **options)
    except (TypeError, ValueError) as error:
        where = where_not_finite(table.matrix, args)
        raise UserError(f"{args.file}: {where or error}") from None
    for note in () if args.quiet else args.notes:
        _say(f"note: {note}")
    names = table.variables()
    if args.output:
        _write(args.output, lambda path: _write_result(path, result, names))
    if args.scores:
        scores = result.transform(table.matrix)
        _write(args.scores, lambda path: _write_scores(path, scores, table.samples()))
    if args.quiet:
        return
    print(_title(args, table), end="\n\n")
    _report(result, names)
    print(f"\nread in {reading:.2f} s, fitted in {seconds:.2f} s")
    for path in filter(None, (args.output, args.scores)):
        print(f"wrote {path}")


def _title(args: argparse.Namespace, table: Table) -> str:
    n, p = table.matrix.shape
    if args.covariance:
        what = f"{counted(p, 'variable')}, {'correlation' if args.scale else 'covariance'} matrix"
    else:
        treatment = f"{'' if args.center else 'not '}centred, {'' if args.scale else 'not '}scaled"
        what = f"{counted(n, 'sample')}, {counted(p, 'variable')}, {treatment}"
    return f"Sparse PCA of {args.file}: {what}"


def _options(table: Table, args: argparse.Namespace) -> dict[str, Any]:
    """The arguments of `sparse_pca`, with the bounds that depend on the matrix checked."""
    n, p = table.matrix.shape
    most, r, k = min(n, p), args.components, args.cardinality
    size = f"{args.file} has {counted(n, 'sample')} of {counted(p, 'variable')}"
    if isinstance(k, list):
        if r is not None and r != len(k):
            raise UserError(
                f"argument -k/--cardinality: {counted(len(k), 'number')} for {counted(r, 'component')}"
            )
        r = len(k)
    if r is None:
        r = min(5, most)
        if r < 5:
            args.notes.append(f"{counted(r, 'component')} instead of 5: {size}")
    if r > most:
        raise UserError(f"argument -n/--components: {r} is too many, at most {most}: {size}")
    if k is None:
        k = min(10, p)
    if np.max(k) > p:
        raise UserError(f"argument -k/--cardinality: {np.max(k)} is too many, at most {p}: {size}")
    return {
        "n_components": r, "cardinality": k, "deflation": args.deflation, "scale": args.scale,
        "center": args.center, "kind": "covariance" if args.covariance else "data",
        "max_iter": args.max_iter, "tol": args.tol, "rng": args.seed,
    }  # fmt: skip


def _fit(matrix: Any, quiet: bool, **options: Any) -> tuple[SparsePCAResult, float]:
    """The result and the seconds it took, with progress and warnings on stderr."""
    started = time.perf_counter()
    progress = _ProgressLine(sys.stderr, quiet)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", RuntimeWarning)
        try:
            result = sparse_pca(matrix, callback=progress, **options)
        finally:
            progress.clear()
    seconds = time.perf_counter() - started
    messages = [str(w.message) for w in caught]
    if not result.converged.all():  # the library counts from 0
        messages = [m for m in messages if "not converged" not in m]
        some = np.flatnonzero(~result.converged) + 1
        messages.append(
            f"component{'s' * (len(some) > 1)} {', '.join(map(str, some))} not converged in "
            f"{options['max_iter']} iterations; raise --max-iter"
        )
    for message in messages:
        _say(f"warning: {message}")
    return result, seconds


class _ProgressLine:
    """A `callback` that says on stderr what is under way once that takes over a second."""

    def __init__(self, stream: TextIO | None, quiet: bool):
        self.stream, self.quiet = stream, quiet or stream is None
        self.terminal = stream is not None and stream.isatty()
        self.started = time.perf_counter()
        self.next = self.started + 1
        self.width = 0

    def __call__(self, progress: Progress) -> None:
        now = time.perf_counter()
        if self.quiet or now < self.next:
            return
        line = (
            f"component {progress.component + 1} of {progress.n_components}, "
            f"iteration {progress.n_iter}, {now - self.started:.0f} s"
        )
        if self.terminal:
            self.next = now + 0.1
            self._put("\r" + line.ljust(self.width))
            self.width = len(line)
        else:
            self.next = now + 5
            self._put(f"spcacore: {line}\n")

    def clear(self) -> None:
        if self.width:
            self._put("\r" + " " * self.width + "\r")

    def _put(self, text: str) -> None:
        assert self.stream is not None
        with contextlib.suppress(OSError):
            self.stream.write(text)
            self.stream.flush()


# ---- the report -------------------------------------------------------------------------------------


def _report(result: SparsePCAResult, names: Sequence[str]) -> None:
    """Loadings and variances: a table where it fits, else a list for each component."""
    if result.n_components == 0:
        print("no component: the variables do not vary")
        return
    names = ["".join(c if c.isprintable() else "?" for c in name) for name in names]
    summary = _summary(result)
    numbers = [str(t + 1) for t in range(result.n_components)]
    if len(names) <= TABLE_ROWS and result.n_components <= TABLE_COLUMNS:
        loadings = [
            [name, *("." if v == 0 else f"{v:.3f}" for v in row)]
            for name, row in zip(names, result.loadings, strict=True)
        ]
        _print_aligned([["component", *numbers], *loadings, [""], *summary])
        return
    _print_aligned(list(zip(["component", *numbers], *summary, strict=True)))
    for t, v in enumerate(result.loadings.T):
        chosen = np.flatnonzero(v)
        chosen = chosen[np.argsort(-np.abs(v[chosen]), kind="stable")]
        print(f"\ncomponent {t + 1}: {summary[2][t + 1]} % of the variance")
        for j in chosen[:LISTED]:
            print(f"  {v[j]:6.3f}  {names[j]}")
        if len(chosen) > LISTED:
            print(f"  and {len(chosen) - LISTED} more; -o FILE writes all")


def _summary(result: SparsePCAResult) -> list[list[str]]:
    """Rows of nonzeros and variances, each with its title first."""
    ratio = result.explained_variance_ratio
    assert ratio is not None  # unknown for operators alone
    return [
        ["nonzeros", *map(str, result.cardinality)],
        ["variance", *(f"{v:#.4g}".rstrip(".") for v in result.explained_variance)],
        ["variance %", *(f"{100 * v:.1f}" for v in ratio)],
        ["cumulative %", *(f"{100 * v:.1f}" for v in np.cumsum(ratio))],
    ]


def _print_aligned(rows: Sequence[Sequence[str]]) -> None:
    """The first column to the left, the others to the right."""
    columns = max(map(len, rows))
    widths = [max(len(row[j]) for row in rows if j < len(row)) for j in range(columns)]
    for row in rows:
        cells = [cell.ljust(w) if j == 0 else cell.rjust(w) for j, (cell, w) in enumerate(zip(row, widths))]  # noqa: B905
        print("  ".join(cells).rstrip())


# ---- writing ----------------------------------------------------------------------------------------


def _check_outputs(args: argparse.Namespace) -> None:
    """Refuse before the work what could not be written after it."""
    if args.scores and args.covariance:
        raise UserError("argument --scores: a covariance has no samples to score")
    outputs = [path for path in (args.output, args.scores) if path is not None]
    for path in outputs:
        if Path(path).suffix.lower() not in (".csv", ".npz"):
            raise UserError(f"{path}: unknown extension; .csv and .npz can be written")
        parent = Path(path).parent
        if not parent.is_dir():
            raise UserError(f"cannot write {path}: {parent} is not a directory")
        if Path(path).is_dir():
            raise UserError(f"cannot write {path}: it is a directory")
        if not os.access(path if os.path.exists(path) else parent, os.W_OK):
            raise UserError(f"cannot write {path}: permission denied")
        if os.path.exists(path) and os.path.exists(args.file) and os.path.samefile(path, args.file):
            raise UserError(f"cannot write {path}: it is the file to analyse")
    if len(outputs) == 2 and Path(outputs[0]).resolve() == Path(outputs[1]).resolve():
        raise UserError(f"cannot write {outputs[0]}: it is named for both loadings and scores")


def _write(path: str, write: Callable[[str], None]) -> None:
    try:
        write(path)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}") from None


def _write_result(path: str, result: SparsePCAResult, names: list[str]) -> None:
    if Path(path).suffix.lower() == ".csv":
        _write_csv(path, "variable", names, result.loadings)
        return
    fields = {
        name: getattr(result, name)
        for name in (
            "loadings", "explained_variance", "explained_variance_ratio", "total_variance", "cardinality",
            "mean", "scale", "n_iter", "converged", "method", "deflation", "kind", "n_samples",
        )
    }  # fmt: skip
    fields["names"] = np.array(names, dtype=np.str_)
    _write_npz(path, fields)


def _write_scores(path: str, scores: NDArray[Any], samples: list[str]) -> None:
    if Path(path).suffix.lower() == ".csv":
        _write_csv(path, "sample", samples, scores)
    else:
        _write_npz(path, {"scores": scores, "names": np.array(samples, dtype=np.str_)})


def _write_npz(path: str, fields: dict[str, Any]) -> None:
    with open(path, "wb") as file:
        np.savez(file, **{name: value for name, value in fields.items() if value is not None})


def _write_csv(path: str, title: str, names: list[str], values: NDArray[Any]) -> None:
    """One line a row of `values`; numbers as short as reading them back exactly allows."""
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([title, *(f"component_{t + 1}" for t in range(values.shape[1]))])
        for name, row in zip(names, values, strict=True):
            writer.writerow([name, *("0" if v == 0 else str(v) for v in row)])


if __name__ == "__main__":
    sys.exit(main())
