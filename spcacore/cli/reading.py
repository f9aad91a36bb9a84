"""Files as tables: a matrix with the names of its columns and rows, or one line that says what is wrong."""

from __future__ import annotations

import contextlib
import io
import re
import warnings
import zipfile
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse

from .._limits import ERROR_LETTERS
from .._messages import counted, listed, repeated
from .._records import replaced
from .._types import AnyArray
from ..linalg.scaling import beyond_range
from .source import Source, needed, source_of
from .table import Arguments, Table, UserError, compressed
from .text import place, read_text, table_of, with_index

__all__ = ["places_in", "read", "read_lines", "refusing", "symmetric"]

_FOR = {  # options, and the files that they are for
    "header delimiter decimal thousands comment": (".csv", ".tsv"),
    "row_names index_column": (".csv", ".tsv", ".parquet"),
    "array": (".npz", ".h5ad"),
}


def read(args: Arguments) -> Table:
    """The matrix of the file, oriented, with whatever names there are."""
    with refusing(args.file):
        source = args.source = source_of(args.file, args.format)
        _refuse_options(source, args)
        table = _READERS[source.kind](source, args)
        X = table.matrix
        if X.ndim != 2 or 0 in X.shape:
            raise UserError(
                f"{source}: a matrix that is not empty is needed, not an array of shape {X.shape}"
            )
        if X.dtype.kind not in "fiub":
            raise UserError(f"{source}: real numbers are needed, not dtype {X.dtype}")
    if args.drop and table.columns is None:
        dropped = {place(source, one, table.variables(), X.shape[1], "drop") for one in args.drop}
        table = table.with_columns([j for j in range(X.shape[1]) if j not in dropped])
    if args.float32:
        with beyond_range():
            table = replaced(table, matrix=table.matrix.astype(np.float32, copy=False))
    if args.command != "info":
        _refuse_gaps(table, args)
    table = table.transposed() if args.orientation == "columns" else table
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


def _refuse_options(source: Source, args: Arguments) -> None:
    kind = source.kind
    if kind in (".pkl", ".pickle", ".joblib"):
        raise UserError(_PICKLED.format(source))
    if kind not in _READERS:
        raise UserError(
            f"{source}: unknown extension; {listed(_READERS, 'and')} can be read, and --format says what a "
            "file of another name holds"
        )
    for names, kinds in _FOR.items():
        for name in names.split():
            if getattr(args, name) not in (None, ".") and kind not in kinds:
                raise UserError(f"argument --{name.replace('_', '-')}: {source} is not {listed(kinds)}")
    for name in ("delimiter", "thousands"):
        if getattr(args, name) == args.decimal is not None:
            raise UserError(f"argument --{name}: {args.decimal!r} is the decimal mark")


@contextlib.contextmanager
def refusing(source: object) -> Iterator[None]:
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
            raise UserError(_PICKLED.format(source)) from None
        why = f"{why[:ERROR_LETTERS]}..." if len(why) > ERROR_LETTERS else why
        raise UserError(f"cannot read {source}: {why}") from None


def symmetric(matrix: Any) -> bool:
    """Whether it equals its transpose to the rounding of single precision."""
    if matrix.shape[0] != matrix.shape[1] or matrix.shape[0] == 1:
        return False
    if scipy.sparse.issparse(matrix):
        return bool(abs(matrix - matrix.T).max() <= 1e-5 * abs(matrix).max())
    return all(np.allclose(part, part.T, rtol=1e-5, atol=0) for part in (matrix[:9, :9], matrix))


def read_lines(args: Arguments, option: str, count: int, of: str = "variable") -> tuple[str, ...]:
    """A name, or a group, for each variable; or a label for each sample. Of lines of several cells with tabs
    between them, as 10x Genomics writes them, it is the second."""
    path = getattr(args, option)
    with refusing(path), source_of(path).open_text() as file:
        lines = [line.split("\t") for line in re.split(r"\r\n?|\n", file.read().rstrip())]
    if len(lines) != count:
        raise UserError(f"argument --{option}: {path} has {len(lines)} {option} for {counted(count, of)}")
    several = min(map(len, lines)) > 1
    if several:
        args.notes.append(f"column 2 of {path} was taken for the {option}")
    return tuple(cells[several].strip() for cells in lines)


# ---- what is missing --------------------------------------------------------------------------------


def places_in(X: Any, found: Callable[[Any], Any]) -> AnyArray:
    """Row and column of each entry that is found."""
    if not scipy.sparse.issparse(X):
        return np.argwhere(found(X))
    entries = X.tocoo()
    return np.transpose([entries.row, entries.col])[found(entries.data)]


def _refuse_gaps(table: Table, args: Arguments) -> None:
    """Refuse what is infinite, or missing unless that is allowed."""
    allowed = args.nan or args.impute
    bad = places_in(table.matrix, np.isinf if allowed else lambda x: ~np.isfinite(x))
    if len(bad):
        i, j = bad[0]
        what = "missing" if np.isnan(table.matrix[i, j]) else "infinite"
        what += " in single precision" * bool(args.float32)
        more = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
        advice = "say what becomes of it: --impute mean, or drop-rows"
        advice = advice if what == "missing" else "replace it, or leave its row or column out"
        raise UserError(f"{args.source}: {table.cell(i, j)} is {what}{more}; {advice}")


def _imputed(table: Table, args: Arguments) -> Table:
    """The table without missing entries, and a note of what was done."""
    X, mean, axis = table.matrix, args.impute == "mean", int(args.impute == "drop-rows")
    if args.covariance or scipy.sparse.issparse(X):
        raise UserError("argument --impute: for dense data, not a covariance or a sparse matrix")
    gaps = np.isnan(X)
    touched, what = gaps.any(axis=axis), ("variable", "sample")[axis]
    if not touched.any():
        return table
    if gaps.all(axis=0).any() if mean else touched.all():
        wrong = "a variable has no entry" if mean else f"every {what} has a missing entry, none is left"
        raise UserError(f"argument --impute: {wrong}")
    many, some = counted(int(gaps.sum()), "missing entry"), counted(int(touched.sum()), what)
    args.notes.append(f"{many} of {some} replaced by means" if mean else f"{some} dropped, with {many}")
    if mean:
        return replaced(table, matrix=np.where(gaps, np.nanmean(X, axis=0), X))
    kept = np.flatnonzero(~touched).tolist()
    return table.transposed().with_columns(kept).transposed() if axis else table.with_columns(kept)


# ---- formats ----------------------------------------------------------------------------------------

_PICKLED = "{} holds pickled Python objects, which are not loaded, for safety; save an array of numbers"


def _read_npy(source: Source, args: Arguments) -> Table:
    if source.content is not None:
        return Table(np.load(source.file(), allow_pickle=False))
    return Table(np.lib.format.open_memmap(source.path, mode="r"))


def _read_npz(source: Source, args: Arguments) -> Table:
    """A sparse matrix, or one of several arrays; the only array of words of the right length has names."""
    if not zipfile.is_zipfile(source.file()):
        raise UserError(f"{source} is not an .npz file")
    with np.load(source.file(), allow_pickle=False) as file:
        if {"format", "shape", "data"} <= set(file.files):
            return Table(compressed(scipy.sparse.load_npz(source.file())))
        arrays: dict[str, Any] = {}
        for name in file.files:
            with contextlib.suppress(ValueError):  # of pickled objects
                arrays[name] = np.asarray(file[name])
        if arrays and all(a.dtype.kind == "S" and not a.ndim for a in arrays.values()):
            raise UserError(f"{source} is an archive of other files than arrays; take the table out of it")
        shapes = ", ".join(f"{name} {'x'.join(map(str, a.shape)) or 'scalar'}" for name, a in arrays.items())
        matrices = [name for name, a in arrays.items() if a.ndim == 2]
        only = matrices if len(matrices) == 1 else [*arrays][: len(arrays) == 1]
        name = args.array or ([*only, "X"])[0]
        if name not in file.files:
            what = "several matrices" if matrices and not args.array else f"no array {name!r}"
            raise UserError(f"{source} has {what}; --array chooses among: {shapes or 'nothing'}")
        X = arrays[name] if name in arrays else file[name]
    words = {a.shape: tuple(a.tolist()) for a in arrays.values() if a.dtype.kind == "U"}
    n, p = X.shape if X.ndim == 2 else (0, 0)
    return Table(X, words.get((p,)), words.get((n,)) if n != p else None, shapes)


def _read_mtx(source: Source, args: Arguments) -> Table:
    with warnings.catch_warnings(), source.open_bytes() as stream:
        warnings.simplefilter("ignore", DeprecationWarning)  # of sparse matrices in favor of arrays
        text = stream.read()
        if b"\0" in text:  # at which mmread reads on beyond its memory, as without an end of the last line
            raise ValueError("it has a NUL, which is not text")
        matrix = scipy.io.mmread(io.BytesIO(text + b"\n"))
    return Table(compressed(matrix) if scipy.sparse.issparse(matrix) else matrix)


def _read_parquet(source: Source, args: Arguments) -> Table:
    """Columns of numbers; an index, or a first column of words or of numbers of the rows, names these."""
    needed(source, "pyarrow")
    pandas = needed(source, "pandas")
    frame = pandas.read_parquet(source.file())
    names, levels = [str(name) or "?" for name in frame.columns], frame.index.nlevels
    if isinstance(frame.index, pandas.RangeIndex) or args.index_column is not None:
        return table_of(frame, names, with_index(frame, names, source, args), source, args, order="F")
    frame = frame.set_axis(range(len(names)), axis=1).reset_index(names=[f"-{i}" for i in range(levels)])
    return table_of(frame, [""] * levels + names, range(levels), source, args, order="F")


def _read_h5ad(source: Source, args: Arguments) -> Table:
    """X, a layer, or the raw X of annotated data, with the names of the variables and observations."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = needed(source, "anndata").read_h5ad(source.file())
    matrices = {"X": data.X, "raw": getattr(data.raw, "X", None), **data.layers}
    matrices = {name: X for name, X in matrices.items() if X is not None}
    X, contents = matrices.get(args.array or "X"), ", ".join(sorted(matrices))
    if X is None:
        what = f"no {args.array or 'X'}; --array chooses among: {contents or 'nothing'}"
        raise UserError(f"{source} has {what}")
    of = data.raw if args.array == "raw" else data
    X = compressed(X) if scipy.sparse.issparse(X) else X
    return Table(X, tuple(of.var_names), tuple(data.obs_names), contents)


_READERS: dict[str, Callable[[Source, Arguments], Table]] = {
    ".csv": read_text, ".tsv": read_text, ".npy": _read_npy, ".npz": _read_npz, ".mtx": _read_mtx,
    ".parquet": _read_parquet, ".h5ad": _read_h5ad,
}  # fmt: skip
