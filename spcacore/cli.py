"""The `spcacore` command: sparse PCA of a matrix in a file, or of the embedded pit props."""

from __future__ import annotations

import argparse
import contextlib
import csv
import os
import re
import sys
import time
import warnings
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any, NoReturn, TextIO

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from . import datasets
from ._result import Progress, SparsePCAResult
from .components import sparse_pca
from .deflation import METHODS

TABLE_ROWS, TABLE_COLUMNS = 40, 10  # more variables or components than this are listed instead
LISTED = 50  # variables of one component on the screen
MISSING = ("", "na", "nan", "n/a", "null", "none", "?", "-", ".")

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


class UserError(Exception):
    """Something the user can put right; the message is one line."""


@dataclass(frozen=True)
class Table:
    """A matrix with the names of its columns and rows, where known."""

    matrix: Any
    names: tuple[str, ...] | None = None
    row_names: tuple[str, ...] | None = None

    def transposed(self) -> Table:
        return Table(self.matrix.T, self.row_names, self.names)

    def variables(self) -> list[str]:
        """A name for each column."""
        return _labels(self.names, self.matrix.shape[1], "x")

    def samples(self) -> list[str]:
        """A name for each row."""
        return _labels(self.row_names, self.matrix.shape[0], "")


def _labels(names: Sequence[str] | None, count: int, prefix: str) -> list[str]:
    return [name.strip() or f"{prefix}{i + 1}" for i, name in enumerate(names or [""] * count)]


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
    table = _read(args)
    reading = time.perf_counter() - started
    options = _options(table, args)
    try:
        result, seconds = _fit(table.matrix, args.quiet, **options)
    except (TypeError, ValueError) as error:
        where = _not_finite(table.matrix, args)
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
        what = f"{_count(p, 'variable')}, {'correlation' if args.scale else 'covariance'} matrix"
    else:
        treatment = f"{'' if args.center else 'not '}centred, {'' if args.scale else 'not '}scaled"
        what = f"{_count(n, 'sample')}, {_count(p, 'variable')}, {treatment}"
    return f"Sparse PCA of {args.file}: {what}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"


def _options(table: Table, args: argparse.Namespace) -> dict[str, Any]:
    """The arguments of `sparse_pca`, with the bounds that depend on the matrix checked."""
    n, p = table.matrix.shape
    most, r, k = min(n, p), args.components, args.cardinality
    size = f"{args.file} has {_count(n, 'sample')} of {_count(p, 'variable')}"
    if isinstance(k, list):
        if r is not None and r != len(k):
            raise UserError(
                f"argument -k/--cardinality: {_count(len(k), 'number')} for {_count(r, 'component')}"
            )
        r = len(k)
    if r is None:
        r = min(5, most)
        if r < 5:
            args.notes.append(f"{_count(r, 'component')} instead of 5: {size}")
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
        with contextlib.suppress(OSError):
            self.stream.write(text)
            self.stream.flush()


# ---- reading ----------------------------------------------------------------------------------------


def _read(args: argparse.Namespace) -> Table:
    """The matrix of the file, oriented, with whatever names there are."""
    path, kind = args.file, _kind(args.file)
    read = {".csv": _read_text, ".tsv": _read_text, ".npy": _read_npy, ".npz": _read_npz, ".mtx": _read_mtx}
    if kind not in read:
        raise UserError(f"{path}: unknown extension; .csv, .tsv, .npy, .npz and .mtx can be read")
    if args.array is not None and kind != ".npz":
        raise UserError(f"argument --array: {path} is not an .npz file")
    if (args.header, args.row_names) != (None, None) and kind not in (".csv", ".tsv"):
        raise UserError(f"arguments --header and --row-names: {path} is neither .csv nor .tsv")
    with _reading(path):
        with open(path, "rb"):
            pass
        table = read[kind](path, args)
    matrix = table.matrix
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise UserError(f"{path}: a matrix that is not empty is needed, not an array of shape {matrix.shape}")
    if matrix.dtype.kind not in "fiub":
        raise UserError(f"{path}: real numbers are needed, not dtype {matrix.dtype}")
    if args.float32:
        with np.errstate(over="ignore"):
            matrix = matrix.astype(np.float32, copy=False)
        table = replace(table, matrix=matrix)
    if args.orientation == "columns":
        table = table.transposed()
    if args.names is not None:
        table = replace(table, names=_read_names(args.names, table.matrix.shape[1]))
    if not args.covariance and _symmetric(table.matrix):
        args.notes.append(f"{path} is symmetric; if it holds covariances or correlations, say --covariance")
    return table


def _kind(path: str) -> str:
    """The extension that says how to read the file; `.gz` counts for text only."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    if len(suffixes) > 1 and suffixes[-1] == ".gz" and suffixes[-2] in (".csv", ".tsv", ".mtx"):
        return suffixes[-2]
    return suffixes[-1] if suffixes else ""


@contextlib.contextmanager
def _reading(path: str) -> Iterator[None]:
    """What goes wrong with a file, as one line that names it."""
    import zipfile
    import zlib

    try:
        yield
    except UserError:
        raise
    except UnicodeDecodeError:
        raise UserError(f"{path}: not UTF-8 text; save it as UTF-8") from None
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from None
    except (ValueError, EOFError, KeyError, OverflowError, zlib.error, zipfile.BadZipFile) as error:
        if "Python objects" in str(error) or "allow_pickle" in str(error):
            raise UserError(_pickled(path)) from None
        raise UserError(f"{path} cannot be read as {_kind(path)}: {error}") from None


def _symmetric(matrix: Any) -> bool:
    """Whether it equals its transpose to the rounding of single precision."""
    if matrix.shape[0] != matrix.shape[1] or matrix.shape[0] == 1:
        return False
    if scipy.sparse.issparse(matrix):
        return abs(matrix - matrix.T).max() <= 1e-5 * abs(matrix).max()
    with np.errstate(over="ignore"):
        return all(np.allclose(m, m.T, rtol=1e-5, atol=0) for m in (matrix[:9, :9], matrix))


def _read_names(path: str, count: int) -> tuple[str, ...]:
    with _reading(path), _open_text(path) as file:
        names = tuple(line.strip() for line in file)
    while names and not names[-1]:
        names = names[:-1]
    if len(names) != count:
        raise UserError(f"argument --names: {path} has {len(names)} names for {_count(count, 'variable')}")
    return names


def _not_finite(matrix: Any, args: argparse.Namespace) -> str | None:
    """Where the first entry of the matrix that is NaN or infinite stands in the file."""
    if args.orientation == "columns":
        matrix = matrix.T
    if scipy.sparse.issparse(matrix):
        entries = matrix.tocoo()
        at = np.flatnonzero(~np.isfinite(entries.data))
        bad, values = np.stack([entries.row[at], entries.col[at]], axis=1), entries.data[at]
    else:
        bad = np.argwhere(~np.isfinite(matrix))
        values = matrix[tuple(bad.T)]
    if len(bad) == 0:
        return None
    row, column = bad[0] + 1
    more = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
    single = " in single precision" if args.float32 else ""
    return f"row {row}, column {column} is {values[0]}{single}{more}; impute or drop such entries"


# ---- reading NumPy, SciPy and Matrix Market files ---------------------------------------------------


def _read_npy(path: str, args: argparse.Namespace) -> Table:
    return Table(np.lib.format.open_memmap(path, mode="r"))


def _pickled(where: str) -> str:
    return f"{where} holds pickled Python objects, which are not loaded, for safety; save an array of numbers"


def _read_npz(path: str, args: argparse.Namespace) -> Table:
    import zipfile

    if not zipfile.is_zipfile(path):
        raise UserError(f"{path} is not an .npz file")
    with np.load(path, allow_pickle=False) as file:
        if {"format", "shape", "data"} <= set(file.files):
            if args.array is not None:
                raise UserError(f"argument --array: {path} holds one sparse matrix")
            return Table(_compressed(scipy.sparse.load_npz(path)))
        arrays = {name: _npz_array(file, name) for name in file.files}
    name = _choose(path, arrays, args.array)
    X = arrays[name]
    if X is None:
        raise UserError(_pickled(f"{path}: array {name}"))
    if X.ndim != 2:
        return Table(X)
    n, p = X.shape
    return Table(X, _words(arrays, p), _words(arrays, n) if n != p else None)


def _npz_array(file: Any, name: str) -> NDArray[Any] | None:
    """The array, or None if it is pickled."""
    try:
        return file[name]
    except ValueError as error:
        if "allow_pickle" in str(error):
            return None
        raise


def _choose(path: str, arrays: dict[str, NDArray[Any] | None], wanted: str | None) -> str:
    """The name of the matrix among the arrays of an .npz file."""
    shapes = ", ".join(
        f"{name} {'pickled' if a is None else 'x'.join(map(str, a.shape)) or 'scalar'}"
        for name, a in arrays.items()
    )
    if wanted is not None:
        if wanted not in arrays:
            raise UserError(f"argument --array: {path} has no array {wanted!r}, but: {shapes}")
        return wanted
    matrices = [name for name, a in arrays.items() if a is not None and a.ndim == 2]
    if len(matrices) == 1:
        return matrices[0]
    if "X" in arrays:
        return "X"
    if matrices:
        raise UserError(f"{path} has several matrices, choose one with --array: {shapes}")
    if len(arrays) == 1:
        return next(iter(arrays))
    raise UserError(f"{path} has no matrix: {shapes or 'it is empty'}")


def _words(arrays: dict[str, NDArray[Any] | None], count: int) -> tuple[str, ...] | None:
    """The only array of `count` words, if there is one."""
    found = [a for a in arrays.values() if a is not None and a.dtype.kind == "U" and a.shape == (count,)]
    return tuple(found[0].tolist()) if len(found) == 1 else None


def _read_mtx(path: str, args: argparse.Namespace) -> Table:
    import scipy.io

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of sparse matrices in favour of arrays
        matrix = scipy.io.mmread(path)
    return Table(_compressed(matrix) if scipy.sparse.issparse(matrix) else matrix)


def _compressed(matrix: Any) -> Any:
    """As CSR or CSC, once its indices are known to point into it."""
    if hasattr(matrix, "check_format"):
        matrix.check_format(full_check=True)
    return matrix if matrix.format in ("csr", "csc") else matrix.tocsr()


# ---- reading text -----------------------------------------------------------------------------------

Record = tuple[int, list[str]]  # line number and cells


def _open_text(path: str) -> Any:
    if path.lower().endswith(".gz"):
        import gzip

        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return open(path, encoding="utf-8-sig", newline="")


def _read_text(path: str, args: argparse.Namespace) -> Table:
    with _open_text(path) as file:
        records = _records(path, file)
        top = list(islice(records, 2))
        if not top:
            raise UserError(f"{path} is empty")
        first, second = top[0][1], top[1][1] if len(top) > 1 else None
        header, row_names = _layout(first, second, args.header, args.row_names)
        body = chain(top[1:] if header else top, records)
        names = None
        if header:
            if second is None:
                raise UserError(f"{path} has a header but no rows")
            short = row_names and len(first) + 1 == len(second)
            if len(first) + short != len(second):
                raise UserError(_ragged(path, top[1], top[0]))
            names = tuple(first[1:] if row_names and not short else first)
        table = _parse(path, body, names, row_names)
    _question_layout(path, args, table, first, header, row_names)
    return table


def _records(path: str, file: TextIO) -> Iterator[Record]:
    """Line number and cells of each line that is not blank."""
    top = []
    for line in file:
        top.append(line)
        if line.strip():
            break
    delimiter = "\t" if _kind(path) == ".tsv" else _delimiter(top[-1] if top else "")
    reader = csv.reader(chain(top, file), delimiter=delimiter, strict=True)
    try:
        for cells in reader:
            if len(cells) > 1 or "".join(cells).strip():
                yield reader.line_num, cells
    except csv.Error as error:
        raise UserError(f"{path}: line {reader.line_num}: {error}") from None


def _delimiter(line: str) -> str:
    outside_quotes = re.sub(r'"[^"]*"', "", line)
    return next((mark for mark in ",;\t" if mark in outside_quotes), ",")


def _is_number(cell: str) -> bool:
    """Whether the cell is a number; `1_000` and `nan`, which Python takes for one, are none here."""
    if "_" in cell or _is_missing(cell):
        return False
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _is_missing(cell: str) -> bool:
    return cell.strip().lower() in MISSING


def _is_text(cell: str) -> bool:
    return not _is_missing(cell) and not _is_number(cell)


def _is_label(cell: str) -> bool:
    """Whether the cell names a row; `1,5` is more likely a number that is written wrongly."""
    return _is_text(cell) and not _is_number(cell.replace(",", ".", 1))


def _counts_up(cells: list[str]) -> bool:
    """Whether the cells are equally spaced increasing whole numbers, as only names are."""
    if not all(cell.strip().isdecimal() for cell in cells):
        return False
    steps = np.diff([int(cell) for cell in cells])
    return bool((steps > 0).all() and (steps == steps[:1]).all())


def _layout(
    first: list[str], second: list[str] | None, header: bool | None, row_names: bool | None
) -> tuple[bool, bool]:
    """Whether there are a header and row names, from the first two lines where the user does not say."""
    short = second is not None and len(first) + 1 == len(second)
    labelled = second is not None and len(second) > 1 and _is_label(second[0])
    corner = len(first) > 1 and not first[0].strip() and not short
    if header is None:
        cells = first if short or len(first) == 1 or _is_number(first[0]) else first[1:]
        mostly_text = sum(map(_is_text, cells)) > sum(map(_is_number, cells))
        numbered = corner and (labelled or _counts_up(first[1:]))
        header = mostly_text or numbered or (short and labelled)
    if row_names is None:
        own = not header and len(first) > 1 and _is_label(first[0])
        row_names = own or (header and (short or corner or labelled))
    return header, row_names


def _question_layout(
    path: str, args: argparse.Namespace, table: Table, first: list[str], header: bool, row_names: bool
) -> None:
    """Point out names that look like numbers and were read as data."""
    n, p = table.matrix.shape
    if args.header is None and not header and len(first) > 3 and _counts_up(first[row_names:]):
        args.notes.append(f"line 1 of {path} was read as data; if it is a header, say --header")
    if args.row_names is None and not row_names and n > 2 and p > 1:
        column = table.matrix[:, 0]
        if column[0] in (0, 1) and np.array_equal(column, column[0] + np.arange(n)):
            args.notes.append(f"column 1 of {path} counts the rows; if it is not a variable, say --row-names")


def _parse(path: str, body: Iterator[Record], names: tuple[str, ...] | None, row_names: bool) -> Table:
    """Numbers from lines of equal length, and the labels before them."""
    values, lines, labels = array("d"), array("q"), []
    start, width = int(row_names), None
    for line, cells in body:
        if width is None:
            width, top = len(cells), (line, cells)
            if width == start:
                raise UserError(f"{path} has row names only")
        elif len(cells) != width:
            raise UserError(_ragged(path, (line, cells), top))
        if row_names:
            labels.append(cells[0])
            del cells[0]
        values.extend(_numbers(path, line, cells, start, names))
        lines.append(line)
    matrix = np.frombuffer(values).reshape(len(lines), -1)
    bad = np.argwhere(~np.isfinite(matrix))
    if len(bad):
        i, j = bad[0]
        what = "is missing" if np.isnan(matrix[i, j]) else "is infinite"
        more = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
        raise UserError(
            f"{path}: {_cell(lines[i], j, start, names)} {what}{more}; impute such cells, or drop their rows"
        )
    return Table(matrix, names, tuple(labels) if row_names else None)


def _numbers(
    path: str, line: int, cells: list[str], start: int, names: tuple[str, ...] | None
) -> list[float]:
    """The cells of a line as numbers; a missing one becomes NaN, and any other is refused."""
    try:
        if "_" not in "".join(cells):
            return list(map(float, cells))
    except ValueError:
        pass
    for j, cell in enumerate(cells):
        if _is_text(cell):
            shown = cell if len(cell) <= 30 else cell[:27] + "..."
            advice = ""
            if not _is_label(cell):
                advice = "; decimals need a point"
            elif line == 1:
                advice = "; if line 1 is a header, say --header"
            elif j == 0 and not start:
                advice = "; if column 1 is row names, say --row-names"
            raise UserError(f"{path}: {_cell(line, j, start, names)} is not a number: {shown!r}{advice}")
    return [np.nan if _is_missing(cell) else float(cell) for cell in cells]


def _cell(line: int, j: int, start: int, names: tuple[str, ...] | None) -> str:
    name = f" ({names[j]!r})" if names and names[j].strip() else ""
    return f"line {line}, column {j + 1 + start}{name}"


def _ragged(path: str, record: Record, model: Record) -> str:
    (line, cells), (model_line, model_cells) = record, model
    return f"{path}: line {line} has {_count(len(cells), 'cell')}, line {model_line} has {len(model_cells)}"


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
