"""Files as tables: a matrix with the names of its columns and rows, or one line that says what is wrong."""

from __future__ import annotations

import contextlib
import re
import sys
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse
from numpy.typing import NDArray

from .._limits import ERROR_LETTERS
from .._messages import counted, repeated
from .._records import record, replaced
from .console import ProgressLine
from .source import Source, source_of
from .stores import read_h5ad, read_parquet
from .table import Arguments, Table, UserError, compressed, unquoted
from .text import place, read_text

__all__ = [
    "Saved", "adopt", "known_names", "placed", "places", "read", "read_lines", "read_saved", "symmetric",
    "where_not_finite",
]  # fmt: skip
__dir__ = __all__.copy

_TABLES = (".csv", ".tsv", ".parquet")
_OF_TEXT = ("header", "delimiter", "decimal", "thousands", "comment")


def read(args: Arguments) -> Table:
    """The matrix of the file, oriented, with whatever names there are."""
    progress = ProgressLine(sys.stderr, args.quiet)
    try:
        with _reading(args.file):
            source = args.source = source_of(args.file, args.format, progress)
        _check_format(source, args)
        table = _checked(source, args)
    finally:
        progress.clear()
    if args.drop and source.kind not in _TABLES:
        p = table.matrix.shape[1]
        dropped = {place(source, one, table.variables(), p, "drop") for one in args.drop}
        table = table.with_columns([j for j in range(p) if j not in dropped])
    if args.float32:
        with np.errstate(over="ignore"):
            table = replaced(table, matrix=table.matrix.astype(np.float32, copy=False))
    if args.orientation == "columns":
        table = table.transposed()
    if args.names is not None:
        table = replaced(table, names=read_lines(args, "names", table.matrix.shape[1]))
    if args.impute is not None:
        table = _imputed(table, args)
    named = [name for name in map(str.strip, table.names or ()) if name]
    if len(set(named)) < len(named):
        args.notes.append(repeated(named))
    if args.covariance == "auto":
        args.covariance = symmetric(table.matrix)
    if not args.covariance and args.command != "info" and symmetric(table.matrix):
        args.notes.append(f"{source} is symmetric; if it holds covariances or correlations, say --covariance")
    return table


def _check_format(source: Source, args: Arguments) -> None:
    """Whether it can be read, and the arguments go with it."""
    kind = source.kind
    if kind in (".pkl", ".pickle", ".joblib"):
        raise UserError(_pickled(source))
    if kind not in _READERS:
        raise UserError(
            f"{source}: unknown extension; .csv, .tsv, .npy, .npz and .mtx can be read, and .parquet and "
            ".h5ad where pyarrow and h5py are installed; --format says what another name holds"
        )
    if args.array is not None and kind not in (".npz", ".h5ad"):
        raise UserError(f"argument --array: {source} is not an .npz file, nor .h5ad")
    for options, kinds in ((_OF_TEXT, _TABLES[:2]), (("row_names", "index_column"), _TABLES)):
        given = [name for name in options if getattr(args, name) not in (None, ".")]
        if given and kind not in kinds:
            what = "is neither .csv nor .tsv" + ", nor .parquet" * (kinds is _TABLES)
            raise UserError(f"argument --{given[0].replace('_', '-')}: {source} {what}")
    if args.delimiter == args.decimal:
        raise UserError("argument --delimiter: a comma separates cells or decimals, not both")
    if args.thousands == args.decimal:
        raise UserError(f"argument --thousands: {args.decimal!r} is the decimal mark")


def _checked(source: Source, args: Arguments) -> Table:
    """A matrix of real numbers."""
    with _reading(source):
        table = _READERS[source.kind](source, args)
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
        why = str(error)  # with data in it
        if "Python objects" in why or "allow_pickle" in why:
            raise UserError(_pickled(source)) from None
        why = f"{why[:ERROR_LETTERS]}..." if len(why) > ERROR_LETTERS else why
        raise UserError(f"{source} cannot be read as {source.kind}: {why}") from None


def symmetric(matrix: Any) -> bool:
    """Whether it equals its transpose to the rounding of single precision."""
    if matrix.shape[0] != matrix.shape[1] or matrix.shape[0] == 1:
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        if scipy.sparse.issparse(matrix):
            return bool(abs(matrix - matrix.T).max() <= 1e-5 * abs(matrix).max())
        return all(np.allclose(m, m.T, rtol=1e-5, atol=0) for m in (matrix[:9, :9], matrix))


def read_lines(
    args: Arguments, option: str, count: int, of: str = "variable", known: Sequence[str] = ()
) -> tuple[str, ...]:
    """A name, or a group, for each variable; or a label for each sample. Of lines of several cells with tabs
    between them it is the second; the first may be what is `known`, in any order."""
    path = getattr(args, option)
    with _reading(path), source_of(path).open_text() as file:
        lines = [line.split("\t") for line in re.split(r"\r\n?|\n", file.read().rstrip())]
    if len(lines) != count:
        raise UserError(f"argument --{option}: {path} has {len(lines)} {option} for {counted(count, of)}")
    several = min(map(len, lines)) > 1
    if several:
        args.notes.append(f"column 2 of {path} was taken for the {option}")
        place = {cells[0].strip(): cells for cells in lines}
        if len(place) == count and place.keys() == set(known):
            lines = [place[name] for name in known]
    return tuple(cells[several].strip() for cells in lines)


# ---- loadings ---------------------------------------------------------------------------------------


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


def read_saved(path: str) -> Saved:
    args = Arguments(array="loadings", notes=[], header=True, row_names=True, decimal=".")
    with _reading(path):
        source = source_of(path)
        if source.kind not in (".csv", ".npz"):
            raise UserError(f"argument --loadings: {path} is neither .csv nor .npz")
        table = _READERS[source.kind](source, args)
        fields = {} if source.kind == ".csv" else dict(np.load(source.file(), allow_pickle=False))
    V, names = table.matrix, table.row_names
    if source.kind == ".npz":
        names = table.names or names
    if set(table.words.get("kind", ())) in ({"data"}, {"covariance"}):
        fields["kind"] = table.words.pop("kind")[0]
        for name, plain in (("scale", 1), ("center", 0)):
            if table.names and name == table.names[V.shape[1] - 1]:
                if (V[:, -1] != plain).any():
                    fields["mean" if name == "center" else name] = V[:, -1]
                V = V[:, :-1]
    if V.ndim != 2 or V.dtype.kind not in "fiub" or not np.isfinite(V).all() or table.words:
        raise UserError(f"argument --loadings: {path} does not hold a matrix of finite numbers")
    for name in {"weights", "mean", "scale"} & fields.keys():
        if len(fields[name]) != len(V) or not np.isfinite(fields[name]).all():
            raise UserError(f"argument --loadings: {path}: {name} does not fit {counted(len(V), 'variable')}")
    known = [name.strip() or f"x{j + 1}" for j, name in enumerate(names or [""] * len(V))]
    kind = str(fields["kind"]) if "kind" in fields else None
    return Saved(
        path, known if names or source.kind == ".csv" else None, V, fields.get("weights", V), kind,
        fields.get("mean"), fields.get("scale"),
    )  # fmt: skip


def adopt(args: Arguments, files: Sequence[Saved]) -> None:
    """Take the matrix as the loadings were fitted; refuse options that contradict that."""
    recorded = [one for one in files if one.kind is not None]
    for name, was in (("center", "centered"), ("scale", "scaled")):
        treated: dict[bool, str] = {}
        for one in recorded:
            if name == "scale" or one.kind == "data":
                treated.setdefault((one.mean if name == "center" else one.scale) is not None, one.path)
        asked = getattr(args, name)
        if len(treated) == 2 and asked is None:
            raise UserError(
                f"argument --loadings: the variables of {treated[True]} were {was}, those of "
                f"{treated[False]} were not; say --{name} or --no-{name}"
            )
        if len(treated) == 1 and asked not in (None, *treated):
            raise UserError(
                f"argument --{'no-' * (not asked)}{name}: {treated[not asked]} says that its variables were "
                f"{'not ' * asked}{was}"
            )
        value, path = (
            next(iter(treated.items()), (name == "center", None)) if asked is None else (asked, None)
        )
        setattr(args, name, value)
        if path is not None and value != (name == "center"):
            args.notes.append(f"--{'no-' * (not value)}{name}, as {path} says")
    if not args.covariance and recorded and all(one.kind == "covariance" for one in recorded):
        args.covariance = "auto"


def known_names(saved: Saved, names: Sequence[str]) -> list[str]:
    """Those in the file of loadings, without what was put before formulas where these names lack it."""
    known = saved.names or [f"x{j + 1}" for j in range(len(saved.loadings))]
    return known if set(known) <= set(names) else list(map(unquoted, known))


def places(wanted: Sequence[str], names: Sequence[str], of: object, path: object) -> list[int]:
    """Where the names that `of` has are among those of `path`."""
    if list(wanted) == list(names):  # in their order, though some may be the same
        return [*range(len(names))]
    at = {name: j for j, name in enumerate(names)}
    lost = [name for name in wanted if name not in at]
    if lost:
        more = f" (and {len(lost) - 1} more)" if len(lost) > 1 else ""
        raise UserError(f"{path} has no variable {lost[0]!r}{more}, as {of} has")
    count = Counter(names) | Counter(wanted)
    twice = next((name for name in wanted if count[name] > 1), None)
    if twice is not None:
        raise UserError(f"variables cannot be matched: {twice!r} is the name of several")
    return [at[name] for name in wanted]


def placed(saved: Saved, names: Sequence[str], source: object) -> NDArray[np.float64]:
    """The loadings with a row for each of these variables, whatever the order of the file."""
    V, path = saved.loadings, saved.path
    if len(V) != len(names):
        raise UserError(
            f"argument --loadings: {path} has {counted(len(V), 'variable')}, {source} has {len(names)}"
        )
    if saved.names is not None:
        V = V[places(names, known_names(saved, names), source, path)]
    empty = np.flatnonzero(~V.any(axis=0))
    if V.shape[1] == 0 or len(empty):
        which = f"component {empty[0] + 1} of {path} has" if len(empty) else f"{path} has"
        raise UserError(f"argument --loadings: {which} no loading that is not zero")
    return V.astype(np.float64)


# ---- what is missing --------------------------------------------------------------------------------


def _entries(X: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """Those that are not finite: row and column of each, and the value."""
    if scipy.sparse.issparse(X):
        entries = X.tocoo()
        at = np.flatnonzero(~np.isfinite(entries.data))
        return np.stack([entries.row[at], entries.col[at]], axis=1), entries.data[at]
    bad = np.argwhere(~np.isfinite(X))
    return bad, X[tuple(bad.T)]


def _imputed(table: Table, args: Arguments) -> Table:
    """The table without missing entries, and a note of what was done; infinite entries stay."""
    if args.covariance:
        raise UserError("argument --impute: not with --covariance, whose entries are no samples")
    where, values = _entries(table.matrix)
    where = where[np.isnan(values)]
    if not len(where):
        return table
    many, X = counted(len(where), "missing entry"), table.matrix
    if args.impute == "mean":
        filled, columns = X.copy(), np.unique(where[:, 1])
        for j in columns:
            x = X[:, [j]].toarray() if scipy.sparse.issparse(X) else X[:, [j]]
            if np.isnan(x).all():
                name = table.variables()[j]
                raise UserError(
                    f"argument --impute: variable {name} has no entry to take the mean of; drop it"
                )
            with np.errstate(over="ignore"):
                filled[where[where[:, 1] == j, 0], j] = np.nanmean(x, dtype=np.float64)
        args.notes.append(f"{many} of {counted(len(columns), 'variable')} replaced by means")
        return replaced(table, matrix=filled)
    axis = 0 if args.impute == "drop-rows" else 1
    kept = np.setdiff1d(np.arange(X.shape[axis]), where[:, axis])
    what = "sample" if axis == 0 else "variable"
    if not len(kept):
        raise UserError(f"argument --impute: every {what} has a missing entry, none is left")
    args.notes.append(f"{counted(X.shape[axis] - len(kept), what)} dropped, with {many}")
    return (table.with_columns if axis else table.with_rows)(kept.tolist())


def where_not_finite(table: Table, args: Arguments, nan: bool = False) -> str | None:
    """Where the first entry that is infinite, or NaN unless that is allowed, stands in the file."""
    if args.orientation == "columns":
        table = table.transposed()
    bad, values = _entries(table.matrix)
    if nan:
        bad, values = bad[np.isinf(values)], values[np.isinf(values)]
    if len(bad) == 0:
        return None
    more = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
    single = " in single precision" if args.float32 else ""
    return f"{table.cell(*bad[0])} is {values[0]}{single}{more}; impute or drop such entries"


# ---- arrays -----------------------------------------------------------------------------------------


def _read_npy(source: Source, args: Arguments) -> Table:
    if source.content is not None:
        return Table(np.load(source.file(), allow_pickle=False))
    return Table(np.lib.format.open_memmap(source.path, mode="r"))


def _pickled(where: object) -> str:
    return f"{where} holds pickled Python objects, which are not loaded, for safety; save an array of numbers"


def _read_npz(source: Source, args: Arguments) -> Table:
    if not zipfile.is_zipfile(source.file()):
        raise UserError(f"{source} is not an .npz file")
    arrays: dict[str, Any] = {}
    with np.load(source.file(), allow_pickle=False) as file:
        if {"format", "shape", "data"} <= set(file.files):
            if args.array is not None:
                raise UserError(f"argument --array: {source} holds one sparse matrix")
            return Table(compressed(scipy.sparse.load_npz(source.file())))
        for name in file.files:
            try:
                arrays[name] = file[name]
            except ValueError as error:
                if "allow_pickle" not in str(error):
                    raise
                arrays[name] = None
    arrays = {name: a for name, a in arrays.items() if not isinstance(a, bytes)}  # as other files are
    shapes = ", ".join(
        f"{name} {'pickled' if a is None else 'x'.join(map(str, a.shape)) or 'scalar'}"
        for name, a in arrays.items()
    )
    matrices = [name for name, a in arrays.items() if a is not None and a.ndim == 2]
    name = args.array or (matrices[0] if len(matrices) == 1 else "X")
    if args.array is None and name not in arrays and not matrices and len(arrays) == 1:
        (name,) = arrays
    if name not in arrays:
        raise UserError(
            f"argument --array: {source} has no array {name!r}, but: {shapes}" if args.array
            else f"{source} has several matrices, choose one with --array: {shapes}" if matrices
            else f"{source} has no matrix: {shapes or 'it is empty'}"
        )  # fmt: skip
    X = arrays[name]
    if X is None:
        raise UserError(_pickled(f"{source}: array {name}"))

    def words(count: int) -> tuple[str, ...] | None:
        """The only array of so many words, if there is one."""
        found = [
            a for a in arrays.values() if getattr(a, "dtype", X.dtype).kind == "U" and a.shape == (count,)
        ]
        return tuple(found[0].tolist()) if len(found) == 1 else None

    n, p = X.shape if X.ndim == 2 else (0, 0)
    return Table(X, words(p), words(n) if n != p else None, shapes)


def _read_mtx(source: Source, args: Arguments) -> Table:
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


_READERS: dict[str, Callable[[Source, Arguments], Table]] = {
    ".csv": read_text, ".tsv": read_text, ".npy": _read_npy, ".npz": _read_npz, ".mtx": _read_mtx,
    ".parquet": read_parquet, ".h5ad": read_h5ad,
}  # fmt: skip
