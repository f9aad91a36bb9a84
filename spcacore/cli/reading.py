"""Files as tables: a matrix with the names of its columns and rows, or one line that says what is wrong."""

from __future__ import annotations

import contextlib
import io
import re
import warnings
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas
import scipy.io
import scipy.sparse

from .._messages import counted, listed, repeated
from .._records import replaced
from .._types import AnyArray
from ..linalg.scaling import beyond_range
from .source import (
    PICKLED,
    Arguments,
    Source,
    Table,
    UserError,
    compressed,
    needed,
    place,
    refusing,
    source_of,
)
from .text import read_text, table_of

# ---- formats ----------------------------------------------------------------------------------------


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
        matrices = [name for name, a in arrays.items() if a.ndim == 2]
        name = args.array or (matrices[0] if len(matrices) == 1 else "X")
        shapes = ", ".join(f"{name} {'x'.join(map(str, a.shape)) or 'scalar'}" for name, a in arrays.items())
        if name not in file.files:
            raise UserError(f"{source} has no array {name!r}; --array chooses among: {shapes or 'nothing'}")
        X = arrays[name] if name in arrays else file[name]
    words = {a.shape: tuple(a.tolist()) for a in arrays.values() if a.dtype.kind == "U"}
    n, p = X.shape if X.ndim == 2 else (0, 0)
    return Table(X, words.get((p,)), words.get((n,)) if n != p else None)


def _read_mtx(source: Source, args: Arguments) -> Table:
    text = source.bytes()
    if b"\0" in text:  # at which mmread reads on beyond its memory, as without an end of the last line
        raise ValueError("it has a NUL, which is not text")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of sparse matrices in favor of arrays
        matrix = scipy.io.mmread(io.BytesIO(text + b"\n"))
    return Table(compressed(matrix) if scipy.sparse.issparse(matrix) else matrix)


def _read_parquet(source: Source, args: Arguments) -> Table:
    """Columns of numbers; an index, or a first column of words or of numbers of the rows, names these."""
    needed(source, "pyarrow")
    frame = pandas.read_parquet(source.file())
    names, index = [str(name) or "?" for name in frame.columns], None
    if not isinstance(frame.index, pandas.RangeIndex) and args.index_column is None:
        index = range(frame.index.nlevels)
        frame = frame.reset_index(names=[f"-{i}" for i in index])
        names = [""] * len(index) + names
    return table_of(frame, names, source, args, index=index, order="F")


def _read_h5ad(source: Source, args: Arguments) -> Table:
    """X, a layer, or the raw X of annotated data, with the names of the variables and observations."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = needed(source, "anndata").read_h5ad(source.file())
    matrices = {"X": data.X, "raw": getattr(data.raw, "X", None), **data.layers}
    name, known = args.array or "X", sorted(name for name, X in matrices.items() if X is not None)
    if name not in known:
        raise UserError(f"{source} has no {name}; --array chooses among: {', '.join(known) or 'nothing'}")
    X, of = matrices[name], data.raw if name == "raw" else data
    X = compressed(X) if scipy.sparse.issparse(X) else X
    return Table(X, tuple(of.var_names), tuple(data.obs_names))


_ROWS = "row_names index_column"
_TEXT = f"header delimiter decimal thousands comment {_ROWS}"
# Of each extension, what reads such files, and options that are not for all.
_READERS: dict[str, tuple[Callable[[Source, Arguments], Table], str]] = {
    ".csv": (read_text, _TEXT), ".tsv": (read_text, _TEXT), ".npy": (_read_npy, ""),
    ".npz": (_read_npz, "array"), ".mtx": (_read_mtx, ""), ".parquet": (_read_parquet, _ROWS),
    ".h5ad": (_read_h5ad, "array"),
}  # fmt: skip

# ---- the matrix -------------------------------------------------------------------------------------


def read(args: Arguments) -> Table:
    """The matrix of the file, oriented, with whatever names there are."""
    with refusing(args.file):
        source = args.source = source_of(args.file, args.format)
        table = _reader(source, args)(source, args)
        X = table.matrix
        if X.ndim != 2 or 0 in X.shape:
            raise UserError(
                f"{source}: a matrix that is not empty is needed, not an array of shape {X.shape}"
            )
        if X.dtype.kind not in "fiub":
            raise UserError(f"{source}: real numbers are needed, not dtype {X.dtype}")
    if args.drop:  # of what is no text
        dropped = {place(source, one, table.variables(), X.shape[1], "drop") for one in args.drop}
        table = table.with_columns([j for j in range(X.shape[1]) if j not in dropped])
    if args.float32:
        with beyond_range():
            table = replaced(table, matrix=table.matrix.astype(np.float32, copy=False))
    table = table.transposed() if args.orientation == "columns" else table
    if args.names is not None:
        table = replaced(table, names=read_lines(args, "names", table.matrix.shape[1]))
    if args.command != "info":
        table = _imputed(table, args)
    named = [name for name in map(str.strip, table.names or ()) if name]
    if len(set(named)) < len(named):
        args.notes.append(repeated(named))
    if args.covariance == "auto":
        args.covariance = symmetric(table.matrix)
    if not args.covariance and args.command != "info" and symmetric(table.matrix):
        args.notes.append(f"{source} is symmetric; if it holds covariances or correlations, say --covariance")
    return table


def _reader(source: Source, args: Arguments) -> Callable[[Source, Arguments], Table]:
    if source.kind in (".pkl", ".pickle", ".joblib"):
        raise UserError(PICKLED.format(source))
    if source.kind not in _READERS:
        raise UserError(
            f"{source}: unknown extension; {listed(_READERS, 'and')} can be read, and --format says what a "
            "file of another name holds"
        )
    reader, own = _READERS[source.kind]
    for name in {*f"{_TEXT} array".split()} - {*own.split()}:
        if getattr(args, name) not in (None, "."):
            kinds = listed(kind for kind, (_, takes) in _READERS.items() if name in takes)
            raise UserError(f"argument --{name.replace('_', '-')}: {source} is not {kinds}")
    for name in ("delimiter", "thousands"):
        if getattr(args, name) == args.decimal is not None:
            raise UserError(f"argument --{name}: {args.decimal!r} is the decimal mark")
    return reader


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
    with refusing(path):
        text = source_of(path).lines().read().rstrip()
    lines = [line.split("\t") for line in re.split(r"\r\n?|\n", text)]
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


def _imputed(table: Table, args: Arguments) -> Table:
    """The table with what is missing filled in or dropped, and a note of that."""
    X, mean, rows = table.matrix, args.impute == "mean", args.impute == "drop-rows"
    if args.impute and (args.covariance or scipy.sparse.issparse(X)):
        raise UserError("argument --impute: for dense data, not a covariance or a sparse matrix")
    many = len(places_in(X, np.isnan))
    if not many:
        return table
    note = counted(many, "missing entry")
    if args.impute is None:
        args.notes.append(f"{note}, left out by the method; --impute fills or drops")
        return table
    gaps, what = np.isnan(X), "sample" if rows else "variable"
    touched = gaps.any(axis=int(rows))
    if gaps.all(axis=0).any() if mean else touched.all():
        wrong = "a variable has no entry" if mean else f"every {what} has a missing entry"
        raise UserError(f"argument --impute: {wrong}")
    args.notes.append(
        f"{note}: {counted(int(touched.sum()), what)} {'filled with means' if mean else 'dropped'}"
    )
    if mean:
        return replaced(table, matrix=np.where(gaps, np.nanmean(X, axis=0), X))
    kept = np.flatnonzero(~touched).tolist()
    return table.transposed().with_columns(kept).transposed() if rows else table.with_columns(kept)
