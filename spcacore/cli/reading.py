"""Files as tables: a matrix with the names of its columns and rows, or one line that says what is wrong."""

from __future__ import annotations

import contextlib
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from .._limits import ERROR_LETTERS
from .._messages import counted, repeated
from .._records import record
from .console import ProgressLine
from .source import Source, source_of
from .table import Arguments, Table, UserError, compressed
from .text import place, read_text

__all__ = [
    "FORMULA", "READERS", "Saved", "adopt", "imputed", "placed", "quoted", "read", "read_lines",
    "read_saved", "symmetric", "unquoted", "where_not_finite",
]  # fmt: skip
__dir__ = __all__.copy

_TABLES = (".csv", ".tsv", ".parquet")
_OF_TEXT = ("header", "delimiter", "decimal", "thousands", "comment")
FORMULA = re.compile(r"'*[=+\-@\t\r]")  # what a spreadsheet computes, with or without quotes before it


def quoted(name: str) -> str:
    """A name that a spreadsheet takes for words: with an apostrophe before what would be a formula."""
    return f"'{name}" if FORMULA.match(name) else name


def unquoted(name: str) -> str:
    return name[1:] if name.startswith("'") and FORMULA.match(name) else name


def read(args: Arguments) -> Table:
    """The matrix of the file, oriented, with whatever names there are."""
    progress = ProgressLine(sys.stderr, args.quiet)
    try:
        with _reading(args.file):
            source = args.source = source_of(args.file, args.format, progress)
        table = _checked(source, READERS[_known(source, args)], args)
    finally:
        progress.clear()
    if args.drop and source.kind not in _TABLES:
        p = table.matrix.shape[1]
        dropped = {place(source, one, table.variables(), p, "drop") for one in args.drop}
        table = table.with_columns([j for j in range(p) if j not in dropped])
    if args.float32:
        with np.errstate(over="ignore"):
            table = replace(table, matrix=table.matrix.astype(np.float32, copy=False))
    if args.orientation == "columns":
        table = table.transposed()
    if args.names is not None:
        table = replace(table, names=read_lines(args, "names", table.matrix.shape[1]))
    if args.impute is not None:
        table = imputed(table, args)
    named = [name for name in map(str.strip, table.names or ()) if name]
    if len(set(named)) < len(named):
        args.notes.append(repeated(named))
    if args.covariance == "auto":
        args.covariance = symmetric(table.matrix)
    if args.covariance is False and symmetric(table.matrix):
        args.notes.append(f"{source} is symmetric; if it holds covariances or correlations, say --covariance")
    return table


def _known(source: Source, args: Arguments) -> str:
    """The format, where it can be read and the arguments go with it."""
    kind = source.kind
    if kind in (".pkl", ".pickle", ".joblib"):
        raise UserError(_pickled(source))
    if kind not in READERS:
        raise UserError(
            f"{source}: unknown extension; .csv, .tsv, .npy, .npz and .mtx can be read, and .parquet and "
            ".h5ad where pyarrow and h5py are installed; --format says what another name holds"
        )
    if args.array is not None and kind not in (".npz", ".h5ad"):
        raise UserError(f"argument --array: {source} is not an .npz file, nor .h5ad")
    for options, kinds in ((_OF_TEXT, (".csv", ".tsv")), (("row_names", "index_column"), _TABLES)):
        given = [name for name in options if getattr(args, name) not in (None, ".")]
        if given and kind not in kinds:
            what = "is neither .csv nor .tsv" + ", nor .parquet" * (kinds is _TABLES)
            raise UserError(f"argument --{given[0].replace('_', '-')}: {source} {what}")
    if args.delimiter == args.decimal:
        raise UserError("argument --delimiter: a comma separates cells or decimals, not both")
    if args.thousands == args.decimal:
        raise UserError(f"argument --thousands: {args.decimal!r} is the decimal mark")
    return kind


def _checked(source: Source, reader: Callable[[Source, Arguments], Table], args: Arguments) -> Table:
    """A matrix of real numbers."""
    with _reading(source):
        table = reader(source, args)
    matrix = table.matrix
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise UserError(
            f"{source}: a matrix that is not empty is needed, not an array of shape {matrix.shape}"
        )
    if matrix.dtype.kind not in "fiub":
        raise UserError(f"{source}: real numbers are needed, not dtype {matrix.dtype}")
    return table


@contextlib.contextmanager
def _reading(source: Any) -> Iterator[None]:
    """What goes wrong with a file, as one line that names it."""
    try:
        yield
    except (UserError, MemoryError):
        raise
    except UnicodeError:
        raise UserError(f"{source}: not UTF-8 text; save it as UTF-8") from None
    except OSError as error:
        raise UserError(f"cannot read {source}: {error.strerror or error}") from None
    except Exception as error:  # of a damaged file, whatever the library that reads it comes upon
        if "Python objects" in str(error) or "allow_pickle" in str(error):
            raise UserError(_pickled(source)) from None
        why = str(error)  # with data in it
        if len(why) > ERROR_LETTERS:
            why = f"{why[:ERROR_LETTERS]}..."
        raise UserError(f"{source} cannot be read as {source.kind}: {why}") from None


def symmetric(matrix: Any) -> bool:
    """Whether it equals its transpose to the rounding of single precision."""
    if matrix.shape[0] != matrix.shape[1] or matrix.shape[0] == 1:
        return False
    if scipy.sparse.issparse(matrix):
        with np.errstate(over="ignore", invalid="ignore"):
            return bool(abs(matrix - matrix.T).max() <= 1e-5 * abs(matrix).max())
    with np.errstate(over="ignore", invalid="ignore"):
        return all(np.allclose(m, m.T, rtol=1e-5, atol=0) for m in (matrix[:9, :9], matrix))


def read_lines(
    args: Arguments, option: str, count: int, of: str = "variable", known: Sequence[str] = ()
) -> tuple[str, ...]:
    """A name, or a group, for each variable; or a label for each sample. Of lines of several cells with tabs
    between them it is the second; the first may be what is `known`, in any order."""
    path = getattr(args, option)
    with _reading(path):
        source = source_of(path)
        with source.open_text() as file:
            lines = [line.strip("\r\n ").split("\t") for line in file]
    while lines and not "".join(lines[-1]).strip():
        del lines[-1]
    if len(lines) != count:
        raise UserError(f"argument --{option}: {path} has {len(lines)} {option} for {counted(count, of)}")
    width = min(map(len, lines))
    if width > 1:
        args.notes.append(f"column 2 of {path} was taken for the {option}")
        place = {cells[0].strip(): cells for cells in lines}
        if len(place) == count and place.keys() == set(known):
            lines = [place[name] for name in known]
    return tuple(cells[width > 1].strip() for cells in lines)


@record
class Saved:
    """Loadings as `fit -o` writes them, with a row for each variable, and what the fit did to its data, where
    the file says so: its kind, means and divisors."""

    path: str
    names: list[str] | None
    loadings: NDArray[Any]
    weights: NDArray[Any]
    kind: str | None = None
    mean: NDArray[Any] | None = None
    scale: NDArray[Any] | None = None


_LAYOUT = {
    "header": True, "row_names": True, "index_column": None, "nan": False, "impute": None, "delimiter": None,
    "decimal": ".", "thousands": None, "comment": None, "drop": (), "keep_going": False,
}  # fmt: skip


def read_saved(path: str) -> Saved:
    args = Arguments(array="loadings", notes=[], **_LAYOUT)
    with _reading(path):
        source = source_of(path)
        if source.kind not in (".csv", ".npz"):
            raise UserError(f"argument --loadings: {path} is neither .csv nor .npz")
        table = READERS[source.kind](source, args)
        fields = {} if source.kind == ".csv" else dict(np.load(source.file(), allow_pickle=False))
    V, names = table.matrix, table.row_names
    if source.kind == ".npz":
        names = table.names or names
    elif set(table.words.get("kind", ())) in ({"data"}, {"covariance"}):
        fields["kind"] = table.words.pop("kind")[0]
        last = [name for name in (table.names or ()) if name in ("center", "scale")]
        V = V[:, : V.shape[1] - len(last)]
        for j, name in enumerate(last):
            column = table.matrix[:, j - len(last)]
            if (column != (name == "scale")).any():
                fields["mean" if name == "center" else name] = column
    if V.ndim != 2 or V.dtype.kind not in "fiub" or not np.isfinite(V).all() or table.words:
        raise UserError(f"argument --loadings: {path} does not hold a matrix of finite numbers")
    for name in ("weights", "mean", "scale"):
        if name in fields and (len(fields[name]) != len(V) or not np.isfinite(fields[name]).all()):
            raise UserError(f"argument --loadings: {path}: {name} does not fit {counted(len(V), 'variable')}")
    known = None
    if names is not None or source.kind == ".csv":
        known = [name.strip() or f"x{j + 1}" for j, name in enumerate(names or [""] * len(V))]
    return Saved(
        path, known, V, fields.get("weights", V),
        str(fields["kind"]) if "kind" in fields else None, fields.get("mean"), fields.get("scale"),
    )  # fmt: skip


def adopt(args: Arguments, files: Sequence[Saved]) -> None:
    """Take the matrix as the loadings were fitted; refuse options that contradict that."""
    recorded = [one for one in files if one.kind is not None]
    for name, was in (("center", "centered"), ("scale", "scaled")):
        treated: dict[bool, str] = {}
        for one in recorded:
            if name == "scale" or one.kind == "data":
                treated.setdefault((one.mean if name == "center" else one.scale) is not None, one.path)
        asked = args.asked[name]
        if len(treated) == 2 and asked is None:
            raise UserError(
                f"argument --loadings: the variables of {treated[True]} were {was}, those of "
                f"{treated[False]} were not; say --{name} or --no-{name}"
            )
        if len(treated) == 1 and asked not in (None, *treated):
            path = treated[not asked]
            raise UserError(
                f"argument --{'no-' * (not asked)}{name}: {path} says that its variables were "
                f"{'not ' * asked}{was}"
            )
        if len(treated) == 1:
            [value] = treated
            if value != getattr(args, name):
                args.notes.append(f"--{'no-' * (not value)}{name}, as {treated[value]} says")
            setattr(args, name, value)
    if not args.covariance and recorded and all(one.kind == "covariance" for one in recorded):
        args.covariance = "auto"


def placed(saved: Saved, names: Sequence[str], source: object) -> NDArray[np.float64]:
    """The loadings with a row for each of these variables, whatever the order of the file."""
    V, path = saved.loadings, saved.path
    known = saved.names or list(names)
    if len(V) != len(names):
        raise UserError(
            f"argument --loadings: {path} has {counted(len(V), 'variable')}, {source} has {len(names)}"
        )
    if not set(known) >= set(names):
        known = list(map(unquoted, known))
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


def imputed(table: Table, args: Arguments) -> Table:
    """The table without missing entries, and a note of what was done; infinite entries stay."""
    if args.covariance:
        raise UserError("argument --impute: not with --covariance, whose entries are no samples")
    missing = _missing(table.matrix)
    if not len(missing):
        return table
    many = counted(len(missing), "missing entry")
    if args.impute == "mean":
        columns = np.unique(missing[:, 1])
        args.notes.append(f"{many} of {counted(len(columns), 'variable')} replaced by means")
        return replace(table, matrix=_with_means(table, missing))
    axis = 0 if args.impute == "drop-rows" else 1
    kept = np.setdiff1d(np.arange(table.matrix.shape[axis]), missing[:, axis])
    what = "sample" if axis == 0 else "variable"
    if not len(kept):
        raise UserError(f"argument --impute: every {what} has a missing entry, none is left")
    dropped = counted(table.matrix.shape[axis] - len(kept), what)
    args.notes.append(f"{dropped} dropped, with {many}")
    return (table.with_columns if axis else table.with_rows)(kept.tolist())


def _missing(X: Any) -> NDArray[np.intp]:
    """Row and column of each NaN."""
    if scipy.sparse.issparse(X):
        entries = X.tocoo()
        at = np.flatnonzero(np.isnan(entries.data))
        return np.stack([entries.row[at], entries.col[at]], axis=1).astype(np.intp)
    return np.argwhere(np.isnan(X)) if X.dtype.kind == "f" else np.empty((0, 2), np.intp)


def _with_means(table: Table, missing: NDArray[np.intp]) -> Any:
    """A copy in which the mean of the rest of its column takes the place of each missing entry."""
    X: Any = table.matrix
    rows, columns = missing.T
    wanted, place = np.unique(columns, return_inverse=True)
    means = np.empty(len(wanted))
    for i, j in enumerate(wanted):
        x = X[:, [j]].toarray()[:, 0] if scipy.sparse.issparse(X) else np.asarray(X[:, j])
        known = x[~np.isnan(x)]
        if not len(known):
            name = table.variables()[j]
            raise UserError(f"argument --impute: variable {name} has no entry to take the mean of; drop it")
        with np.errstate(over="ignore"):
            means[i] = known.mean(dtype=np.float64)
    if not scipy.sparse.issparse(X):
        filled = np.array(X)
        filled[rows, columns] = means[place]
        return filled
    filled = X.copy()
    entry = np.flatnonzero(np.isnan(filled.data))
    major = np.searchsorted(filled.indptr, entry, side="right") - 1
    column = filled.indices[entry] if filled.format == "csr" else major
    filled.data[entry] = means[np.searchsorted(wanted, column)]
    return filled


def where_not_finite(table: Table, args: Arguments, nan: bool = False) -> str | None:
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


def _read_npy(source: Source, args: Arguments) -> Table:
    if source.content is not None:
        return Table(np.load(source.file(), allow_pickle=False))
    return Table(np.lib.format.open_memmap(source.path, mode="r"))


def _pickled(where: object) -> str:
    return f"{where} holds pickled Python objects, which are not loaded, for safety; save an array of numbers"


def _read_npz(source: Source, args: Arguments) -> Table:
    import zipfile

    if not zipfile.is_zipfile(source.file()):
        raise UserError(f"{source} is not an .npz file")
    with np.load(source.file(), allow_pickle=False) as file:
        if {"format", "shape", "data"} <= set(file.files):
            if args.array is not None:
                raise UserError(f"argument --array: {source} holds one sparse matrix")
            return Table(compressed(scipy.sparse.load_npz(source.file())))
        members = {name: _npz_array(file, name) for name in file.files}
    arrays = {name: a for name, a in members.items() if not isinstance(a, bytes)}  # as other files are
    name = _choose(source, arrays, args.array)
    X = arrays[name]
    if X is None:
        raise UserError(_pickled(f"{source}: array {name}"))
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


def _choose(source: Source, arrays: dict[str, NDArray[Any] | None], wanted: str | None) -> str:
    """The name of the matrix among the arrays of an .npz file."""
    shapes = _shapes(arrays)
    if wanted is not None:
        if wanted not in arrays:
            raise UserError(f"argument --array: {source} has no array {wanted!r}, but: {shapes}")
        return wanted
    matrices = [name for name, a in arrays.items() if a is not None and a.ndim == 2]
    if len(matrices) == 1:
        return matrices[0]
    if "X" in arrays:
        return "X"
    if matrices:
        raise UserError(f"{source} has several matrices, choose one with --array: {shapes}")
    if len(arrays) == 1:
        return next(iter(arrays))
    raise UserError(f"{source} has no matrix: {shapes or 'it is empty'}")


def _words(arrays: dict[str, NDArray[Any] | None], count: int) -> tuple[str, ...] | None:
    """The only array of `count` words, if there is one."""
    found = [a for a in arrays.values() if a is not None and a.dtype.kind == "U" and a.shape == (count,)]
    return tuple(found[0].tolist()) if len(found) == 1 else None


def _read_mtx(source: Source, args: Arguments) -> Table:
    import scipy.io

    with warnings.catch_warnings(), source.open_bytes() as stream:
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


def _read_parquet(source: Source, args: Arguments) -> Table:
    from .stores import read_parquet

    return read_parquet(source, args)


def _read_h5ad(source: Source, args: Arguments) -> Table:
    from .stores import read_h5ad

    return read_h5ad(source, args.array)


READERS: dict[str, Callable[[Source, Arguments], Table]] = {
    ".csv": read_text, ".tsv": read_text, ".npy": _read_npy, ".npz": _read_npz, ".mtx": _read_mtx,
    ".parquet": _read_parquet, ".h5ad": _read_h5ad,
}  # fmt: skip
