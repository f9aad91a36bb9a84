"""Files as tables: a matrix with the names of its columns and rows, or one line that says what is wrong."""

from __future__ import annotations

import argparse
import contextlib
import csv
import io
import re
import warnings
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from .._limits import ERROR_LETTERS
from .._messages import counted, repeated
from .table import Table, UserError, compressed

FORMULA = re.compile(r"'*[=+\-@\t\r]")  # what a spreadsheet computes, with or without quotes before it
MISSING = ("", "na", "nan", "n/a", "null", "none", "?", "-", ".")


def quoted(name: str) -> str:
    """A name that a spreadsheet takes for words: with an apostrophe before what would be a formula."""
    return f"'{name}" if FORMULA.match(name) else name


def _unquoted(name: str) -> str:
    return name[1:] if name.startswith("'") and FORMULA.match(name) else name


def read(args: argparse.Namespace) -> Table:
    """The matrix of the file, oriented, with whatever names there are."""
    path, kind = args.file, kind_of(args.file)
    if kind in (".pkl", ".pickle", ".joblib"):
        raise UserError(_pickled(path))
    if Path(path).is_dir():
        raise UserError(f"cannot read {path}: it is a directory")
    if kind not in READERS:
        raise UserError(
            f"{path}: unknown extension; .csv, .tsv, .npy, .npz and .mtx can be read, and .parquet and .h5ad "
            "where pyarrow and h5py are installed"
        )
    if args.array is not None and kind not in (".npz", ".h5ad"):
        raise UserError(f"argument --array: {path} is not an .npz file, nor .h5ad")
    if (args.header, args.row_names) != (None, None) and kind not in (".csv", ".tsv"):
        raise UserError(f"arguments --header and --row-names: {path} is neither .csv nor .tsv")
    with _reading(path):
        with open(path, "rb"):
            pass
        table = READERS[kind](path, args)
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
    named = [name for name in map(str.strip, table.names or ()) if name]
    if len(set(named)) < len(named):
        args.notes.append(repeated(named))
    if args.covariance is False and symmetric(table.matrix):
        args.notes.append(f"{path} is symmetric; if it holds covariances or correlations, say --covariance")
    return table


def kind_of(path: str) -> str:
    """The extension that says how to read the file; `.gz` counts for text only."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    if len(suffixes) > 1 and suffixes[-1] == ".gz" and suffixes[-2] in (".csv", ".tsv", ".mtx"):
        return suffixes[-2]
    return suffixes[-1] if suffixes else ""


@contextlib.contextmanager
def _reading(path: str) -> Iterator[None]:
    """What goes wrong with a file, as one line that names it."""
    try:
        yield
    except (UserError, MemoryError):
        raise
    except UnicodeDecodeError:
        raise UserError(f"{path}: not UTF-8 text; save it as UTF-8") from None
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from None
    except Exception as error:  # of a damaged file, whatever the library that reads it comes upon
        if "Python objects" in str(error) or "allow_pickle" in str(error):
            raise UserError(_pickled(path)) from None
        why = str(error)  # with data in it
        if len(why) > ERROR_LETTERS:
            why = f"{why[:ERROR_LETTERS]}..."
        raise UserError(f"{path} cannot be read as {kind_of(path)}: {why}") from None


def symmetric(matrix: Any) -> bool:
    """Whether it equals its transpose to the rounding of single precision."""
    if matrix.shape[0] != matrix.shape[1] or matrix.shape[0] == 1:
        return False
    if scipy.sparse.issparse(matrix):
        with np.errstate(over="ignore", invalid="ignore"):
            return bool(abs(matrix - matrix.T).max() <= 1e-5 * abs(matrix).max())
    with np.errstate(over="ignore", invalid="ignore"):
        return all(np.allclose(m, m.T, rtol=1e-5, atol=0) for m in (matrix[:9, :9], matrix))


def _read_names(path: str, count: int) -> tuple[str, ...]:
    with _reading(path), _open_text(path) as file:
        names = tuple(line.strip() for line in file)
    while names and not names[-1]:
        names = names[:-1]
    if len(names) != count:
        raise UserError(f"argument --names: {path} has {len(names)} names for {counted(count, 'variable')}")
    return names


def read_loadings(path: str, names: Sequence[str], source: str) -> NDArray[np.float64]:
    """Loadings as the command writes them, a row for each of these variables, whatever the order there."""
    kind = kind_of(path)
    args = argparse.Namespace(file=path, array="loadings", header=True, row_names=True, nan=False)
    if kind not in (".csv", ".npz"):
        raise UserError(f"argument --loadings: {path} is neither .csv nor .npz")
    with _reading(path):
        table = READERS[kind](path, args)
    if kind == ".npz":
        table = replace(table, row_names=table.names or table.row_names)
    V = table.matrix
    if V.ndim != 2 or V.dtype.kind not in "fiub" or not np.isfinite(V).all():
        raise UserError(f"argument --loadings: {path} does not hold a matrix of finite numbers")
    known = table.samples() if table.row_names else list(names)
    if len(V) != len(names):
        raise UserError(
            f"argument --loadings: {path} has {counted(len(V), 'variable')}, {source} has {len(names)}"
        )
    if not set(known) >= set(names):
        known = list(map(_unquoted, known))
    if known != list(names):
        place = {name: i for i, name in enumerate(known)}
        lost = next((name for name in names if name not in place), None)
        if lost is not None or len(place) < len(known):
            why = "names variables twice" if lost is None else f"has no variable {lost!r}, as {source} has"
            raise UserError(f"argument --loadings: {path} {why}")
        V = V[[place[name] for name in names]]
    empty = np.flatnonzero(~V.any(axis=0))
    if V.shape[1] == 0 or len(empty):
        which = f"component {empty[0] + 1} of {path} has" if len(empty) else f"{path} has"
        raise UserError(f"argument --loadings: {which} no loading that is not zero")
    return V.astype(np.float64)


def where_not_finite(table: Table, args: argparse.Namespace, nan: bool = False) -> str | None:
    """Where the first entry that is infinite, or NaN unless that is allowed, stands in the file."""
    if args.orientation == "columns":
        table = table.transposed()
    matrix, wrong = table.matrix, np.isinf if nan else lambda x: ~np.isfinite(x)
    if scipy.sparse.issparse(matrix):
        entries = matrix.tocoo()
        at = np.flatnonzero(wrong(entries.data))
        bad, values = np.stack([entries.row[at], entries.col[at]], axis=1), entries.data[at]
    else:
        bad = np.argwhere(wrong(matrix))
        values = matrix[tuple(bad.T)]
    if len(bad) == 0:
        return None
    more = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
    single = " in single precision" if args.float32 else ""
    return f"{table.cell(*bad[0])} is {values[0]}{single}{more}; impute or drop such entries"


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
            return Table(compressed(scipy.sparse.load_npz(path)))
        members = {name: _npz_array(file, name) for name in file.files}
    arrays = {name: a for name, a in members.items() if not isinstance(a, bytes)}  # as other files are
    name = _choose(path, arrays, args.array)
    X = arrays[name]
    if X is None:
        raise UserError(_pickled(f"{path}: array {name}"))
    if X.ndim != 2:
        return Table(X)
    n, p = X.shape
    return Table(X, _words(arrays, p), _words(arrays, n) if n != p else None, _shapes(arrays))


def _npz_array(file: Any, name: str) -> Any:
    """The array, or None if it is pickled."""
    try:
        return file[name]
    except ValueError as error:
        if "allow_pickle" in str(error):
            return None
        raise


def _shapes(arrays: dict[str, NDArray[Any] | None]) -> str:
    return ", ".join(
        f"{name} {'pickled' if a is None else 'x'.join(map(str, a.shape)) or 'scalar'}"
        for name, a in arrays.items()
    )


def _choose(path: str, arrays: dict[str, NDArray[Any] | None], wanted: str | None) -> str:
    """The name of the matrix among the arrays of an .npz file."""
    shapes = _shapes(arrays)
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

    with warnings.catch_warnings(), _open_bytes(path) as stream:
        warnings.simplefilter("ignore", DeprecationWarning)  # of sparse matrices in favor of arrays
        matrix = scipy.io.mmread(_Lines(stream))
    return Table(compressed(matrix) if scipy.sparse.issparse(matrix) else matrix)


class _Lines:
    """A stream whose last line has an end, and no line a NUL: mmread looks for the one, in vain after the
    other, and on beyond its memory."""

    def __init__(self, stream: Any):
        self.stream, self.ended = stream, True

    def read(self, size: int = -1) -> bytes:
        piece: bytes = self.stream.read(size)
        if b"\0" in piece:
            raise ValueError("it has a NUL, which is not text")
        if piece:
            self.ended = piece.endswith(b"\n")
        elif size != 0 and not self.ended:
            self.ended = True
            return b"\n"
        return piece


Record = tuple[int, list[str]]  # line number and cells


def _open_bytes(path: str) -> Any:
    if path.lower().endswith(".gz"):
        import gzip

        return gzip.open(path)
    return open(path, "rb")


def _open_text(path: str) -> Any:
    return io.TextIOWrapper(_open_bytes(path), encoding="utf-8-sig", newline="")


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
        table = _parse(path, body, names, row_names, args)
    _question_layout(path, args, table, first, header, row_names)
    return table


def _records(path: str, file: TextIO) -> Iterator[Record]:
    """Line number and cells of each line that is not blank."""
    top = []
    for line in file:
        top.append(line)
        if line.strip():
            break
    delimiter = "\t" if kind_of(path) == ".tsv" else _delimiter(top[-1] if top else "")
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
    labeled = second is not None and len(second) > 1 and _is_label(second[0])
    corner = len(first) > 1 and not first[0].strip() and not short
    if header is None:
        cells = first if short or len(first) == 1 or _is_number(first[0]) else first[1:]
        mostly_text = sum(map(_is_text, cells)) > sum(map(_is_number, cells))
        numbered = corner and (labeled or _counts_up(first[1:]))
        header = mostly_text or numbered or (short and labeled)
    if row_names is None:
        own = not header and len(first) > 1 and _is_label(first[0])
        row_names = own or (header and (short or corner or labeled))
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
    if args.row_names is None and table.row_names and len(first) > p and _is_text(first[0]):
        number = next((name for name in table.row_names if _is_number(name)), None)
        if number is not None:
            args.notes.append(
                f"column 1 of {path} was read as row names, though {number.strip()} is a number; if it is a "
                "variable, say --no-row-names"
            )


def _parse(
    path: str,
    body: Iterator[Record],
    names: tuple[str, ...] | None,
    row_names: bool,
    args: argparse.Namespace,
) -> Table:
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
        labels += cells[:start]
        values.extend(_numbers(path, line, cells[start:], start, names))
        lines.append(line)
    matrix = np.frombuffer(values).reshape(len(lines), -1)
    table = Table(matrix, names, tuple(labels) if row_names else None, "", lines, start + 1)
    bad = np.argwhere(~np.isfinite(matrix))
    if len(bad) and not args.nan:
        what = "is missing" if np.isnan(matrix[tuple(bad[0])]) else "is infinite"
        more = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
        raise UserError(f"{path}: {table.cell(*bad[0])} {what}{more}; impute such cells, or drop their rows")
    return table


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
            elif len(cells) == 1 and all(map(_is_number, cell.split())):
                advice = "; commas, semicolons or tabs must separate cells"
            elif line == 1:
                advice = "; if line 1 is a header, say --header"
            elif j == 0 and not start:
                advice = "; if column 1 is row names, say --row-names"
            else:
                advice = "; drop or encode columns of words"
            where = Table(None, names, lines=[line], first_column=start + 1).cell(0, j)
            raise UserError(f"{path}: {where} is not a number: {shown!r}{advice}")
    return [np.nan if _is_missing(cell) else float(cell) for cell in cells]


def _ragged(path: str, record: Record, model: Record) -> str:
    (line, cells), (model_line, model_cells) = record, model
    return f"{path}: line {line} has {counted(len(cells), 'cell')}, line {model_line} has {len(model_cells)}"


def _read_parquet(path: str, args: argparse.Namespace) -> Table:
    from .stores import read_parquet

    return read_parquet(path)


def _read_h5ad(path: str, args: argparse.Namespace) -> Table:
    from .stores import read_h5ad

    return read_h5ad(path, args.array)


READERS = {
    ".csv": _read_text, ".tsv": _read_text, ".npy": _read_npy, ".npz": _read_npz, ".mtx": _read_mtx,
    ".parquet": _read_parquet, ".h5ad": _read_h5ad,
}  # fmt: skip
