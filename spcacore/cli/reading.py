"""Files as tables: a matrix with the names of its columns and rows, or one line that says what is wrong.

The first line of a text is a header if none of its cells but the first is a number, and the first column
names the rows if none of its cells is one.
"""

from __future__ import annotations

import csv
import io
import re
import warnings
import zipfile
from collections.abc import Callable, Sequence
from itertools import chain, islice
from typing import Any

import numpy as np
import pandas
import scipy.io
import scipy.sparse

from .._labels import wrong_labels
from .._limits import INFO_NAMES
from .._messages import counted, first_of, listed, repeated
from .._records import replaced
from .._rendering import shortened
from .._validation import stored
from ..linalg.scaling import beyond_range
from ..readable import labels
from .source import Arguments, Source, Table, UserError, picked, place, refusing, source_of

# ---- text -------------------------------------------------------------------------------------------

# What says that a cell is missing, besides what pandas knows.
_MISSING = re.compile(
    r"(?i)|[(<]?(na|null|missing)[)>]?|n/a|n\.a\.?|none|nil|nat|[+-]?nan|\?|-{1,3}|[–—*]|\.{1,2}|\\n|"
    r"#(n/a|na|n/a n/a|div/0!|value!|ref!|name\?|num!|null!)|-?1\.#(qnan|ind)"
)
# Numbers as they are written, to the last bit, which pandas 3.1 does by default and without this word
_PANDAS = tuple(map(int, pandas.__version__.split(".")[:2]))
_EXACT: dict[str, Any] = {} if _PANDAS >= (3, 1) else {"float_precision": "round_trip"}
_NUMERAL = re.compile(r"[-+$€£ ]*\d[\d.,' ]*[%$€£ ]*")  # a number, as people may write it
_TRUTH = {"true": "1", "false": "0"}
_WRITTEN = "--decimal and --thousands say how numbers are written"
_LAYOUT = f"--header and --row-names say what has names, --delimiter what separates cells; {_WRITTEN}"


def number(cell: str, decimal: str = ".", thousands: str | None = None) -> float | None:
    """Return the number in a cell: 1 for true, NaN if it is missing, and None if the cell has words."""
    cell = re.sub("[\u00a0\u202f]", " ", cell).strip()
    if _MISSING.fullmatch(cell):
        return np.nan
    if thousands:  # before three digits; in India before two and three
        mark = re.escape(thousands)
        cell = re.sub(rf"(?<=\d){mark}(?=(\d\d{mark})*\d{{3}}(?!\d))", "", cell)
    if decimal == ",":
        cell = cell.replace(".", "_").replace(",", ".")
    try:
        return None if "_" in cell else float(_TRUTH.get(cell.lower(), cell))
    except ValueError:
        return None


def _numbers(cells: Sequence[str], args: Arguments) -> tuple[list[float | None], bool]:
    """Return the numbers in the cells, and whether there is a number among them, in any notation."""
    values = [number(cell, args.decimal, args.thousands) for cell in cells]
    known = any(value == value for value in values if value is not None)
    return values, known or any(map(_NUMERAL.fullmatch, cells))


def _top(source: Source, args: Arguments) -> tuple[str, list[list[str]]]:
    """Return the mark that separates cells, and the cells of the first two lines that are not blank."""
    lines = (line.split(args.comment)[0] if args.comment else line for line in source.lines())
    first = next(filter(str.strip, lines), "")
    bare = re.sub('"[^"]*"', "", first)
    delimiter = args.delimiter or next((mark for mark in "\t;," if mark in bare), "\t")
    rows = csv.reader(chain([first], lines), delimiter=delimiter)
    return delimiter, list(islice((cells for cells in rows if any(map(str.strip, cells))), 2))


def _read_text(source: Source, args: Arguments) -> Table:
    """Read a text; what the arguments do not say about its layout follows from the first two lines."""
    # Layout
    delimiter, top = _top(source, args)
    if not top:
        raise UserError(f"{source} is empty")
    titles, second = top[0], top[-1]
    # R writes no title above the names of the rows
    one_more = len(second) == len(titles) + 1 and (args.row_names or number(second[0]) is None)
    header = args.header
    if header is None:
        header = one_more or not titles[0].strip() or not _numbers(titles[1:] or titles, args)[1]
    if header and len(top) == 1:
        raise UserError(f"{source} has a header but no rows")
    # Cells
    titles = [""] * (one_more and header) + titles
    try:
        with warnings.catch_warnings(action="error", category=pandas.errors.ParserWarning):
            frame = pandas.read_csv(
                source.lines(), sep=delimiter, header=0 if header else None, names=range(len(titles)),
                index_col=False, decimal=args.decimal, comment=args.comment, low_memory=False, **_EXACT,
                converters=dict.fromkeys(range(1 if args.thousands is None else len(titles)), str),
            )  # fmt: skip
    except (pandas.errors.ParserError, pandas.errors.ParserWarning) as error:
        wrong = str(error).strip().rpartition("error: ")[2].partition(". ")[0]
        raise UserError(f"{source}: {wrong}; --comment says how lines of comments begin; {_LAYOUT}") from None
    return _table_of(frame, titles if header else None, source, args)


def _table_of(frame: Any, names: list[str] | None, source: Source, args: Arguments) -> Table:
    """Return the columns of numbers of a frame as a matrix.

    Columns without any number are left out; if the first column is one, it names the rows. All other cells
    must be numbers.
    """
    # Names of rows, and columns to leave out
    width, titles = frame.shape[1], None if names is None else [name.strip() for name in names]
    index = [place(source, one, titles, width, "index-column") for one in args.index_column or ()]
    guess = not index and args.row_names is None and width > 1
    if args.row_names or (guess and titles and not titles[0]):
        index = [0]
    left = {*index, *(place(source, one, titles, width, "drop") for one in args.drop or ())}
    args.drop = None  # done here
    kept, words = list[int](), list[str]()  # words: columns left out, with their first cell that is no number
    for j in sorted({*range(width)} - left):
        if frame[j].dtype.kind not in "fiub":
            cells = _words(frame[j])
            values, mixed = _numbers(cells, args)
            if None in values:
                i, title = values.index(None), (titles and titles[j]) or str(j + 1)
                shown = f"{title!r} ({shortened(cells[i])!r})"
                if mixed and args.command != "info":
                    raise UserError(
                        f"{source}: row {i + 1}, column {title!r} is not a number: {shortened(cells[i])!r}; "
                        f"correct it, or leave the column out by --drop; {_LAYOUT}"
                    )
                if guess and j == 0:
                    index = [0]
                else:
                    words.append(shown)
                continue
            frame[j] = np.array(values, np.float64)
        if not titles or titles[j] or frame[j].notna().any():
            kept.append(j)
    shown = first_of(words, INFO_NAMES)
    # The result, with a note about columns that are left out
    if not kept:
        raise UserError(f"{source} has no column of numbers, but of words: {shown}; {_LAYOUT}")
    if words:
        args.notes.append(
            f"left out {counted(len(words), 'column')} of {source} without numbers: {shown}; --index-column "
            f"takes one as names of the rows; {_WRITTEN}"
        )
    rows = zip(*(_words(frame[j]) for j in index), strict=True)
    return Table(
        frame[kept].to_numpy(np.float64),
        None if names is None else tuple(names[j] for j in kept),
        tuple(map(" ".join, rows)) if index else None,
    )  # fmt: skip


def _words(column: Any) -> list[str]:
    """Return the cells of a column as strings, empty where they are missing."""
    return ["" if lacks else str(cell) for cell, lacks in zip(column, column.isna(), strict=True)]


# ---- formats ----------------------------------------------------------------------------------------


def _read_npy(source: Source, args: Arguments) -> Table:
    if source.content is not None:
        return Table(np.load(source.file(), allow_pickle=False))
    return Table(np.lib.format.open_memmap(source.path, mode="r"))


def _read_npz(source: Source, args: Arguments) -> Table:
    """Read a sparse matrix, or one of several arrays.

    The only array of strings with the right length has names.
    """
    zipfile.ZipFile(source.file()).close()  # raises an error if it is no archive
    with np.load(source.file(), allow_pickle=False) as file:
        if {"format", "shape", "data"} <= {*file}:
            return Table(scipy.sparse.load_npz(source.file()))
        arrays = {name: np.asarray(one) for name, one in file.items()}
    words = {a.shape: tuple(a.tolist()) for a in arrays.values() if a.dtype.kind == "U"}
    X = _chosen(source, args, {name: a for name, a in arrays.items() if a.ndim == 2})
    n, p = X.shape
    return Table(X, words.get((p,)), words.get((n,)) if n != p else None)


def _chosen(source: Source, args: Arguments, known: dict[str, Any]) -> Any:
    """Return the only matrix, or the one called X, or the one that --array names."""
    name = args.array or (next(iter(known)) if len(known) == 1 else "X")
    if name not in known:
        raise UserError(
            f"{source} has no matrix {name!r}; --array chooses among: {', '.join(known) or 'nothing'}"
        )
    return known[name]


def _read_mtx(source: Source, args: Arguments) -> Table:
    """Read a matrix in the Matrix Market format."""
    text = source.bytes()
    if b"\0" in text:  # mmread would read on beyond its memory, as it does if the last line has no end
        raise ValueError("it has a NUL, which is not text")
    with warnings.catch_warnings(action="ignore"):  # about sparse matrices in place of arrays
        return Table(scipy.io.mmread(io.BytesIO(text + b"\n")))


def _read_parquet(source: Source, args: Arguments) -> Table:
    """Read columns of numbers; an index, or a first column of words, names the rows."""
    frame = pandas.read_parquet(source.file(), engine="pyarrow")
    if not isinstance(frame.index, pandas.RangeIndex) and args.index_column is None:
        frame.insert(0, "", [*map(str, frame.index)])
    names = [*map(str, frame.columns)]
    return _table_of(frame.set_axis(range(len(names)), axis=1), names, source, args)


def _read_h5ad(source: Source, args: Arguments) -> Table:
    """Read X, a layer, or the raw X of annotated data, with the names of the variables and observations."""
    import anndata

    with warnings.catch_warnings(action="ignore"):
        data = anndata.read_h5ad(source.file())
    known: dict[str, Any] = {
        name: (data, X) for name, X in {"X": data.X, **data.layers}.items() if name and X is not None
    }
    if data.raw is not None:
        known["raw"] = data.raw, data.raw.X
    of, X = _chosen(source, args, known)
    return Table(X, tuple(of.var_names), tuple(data.obs_names))


_ROWS = "row_names index_column"
_TEXT = f"header delimiter decimal thousands comment {_ROWS}"
# Of each extension, what reads such files, and options that are not for all.
_READERS: dict[str, tuple[Callable[[Source, Arguments], Table], str]] = {
    ".csv": (_read_text, _TEXT), ".tsv": (_read_text, _TEXT), ".npy": (_read_npy, ""),
    ".npz": (_read_npz, "array"), ".mtx": (_read_mtx, ""), ".parquet": (_read_parquet, _ROWS),
    ".h5ad": (_read_h5ad, "array"),
}  # fmt: skip

# ---- the matrix -------------------------------------------------------------------------------------


def read(args: Arguments) -> Table:
    """Return the matrix of the file, oriented as asked for, with the names that are known."""
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
        if hasattr(X, "check_format"):  # whether its indices point into it
            X.check_format(full_check=True)
        if scipy.sparse.issparse(X) and X.format not in ("csr", "csc"):
            table = replaced(table, matrix=X.tocsr())
    if args.drop:  # a text has done this already
        dropped = {place(source, one, table.variables(), X.shape[1], "drop") for one in args.drop}
        kept = [j for j in range(X.shape[1]) if j not in dropped]
        table = replaced(table, matrix=table.matrix[:, kept], names=picked(table.names, kept))
    if args.float32:
        with beyond_range():
            table = replaced(table, matrix=table.matrix.astype(np.float32, copy=False))
    table = table.transposed() if args.orientation == "columns" else table
    if args.names is not None:
        table = replaced(table, names=read_lines(args, "names", table.matrix.shape[1]))
    args.notes += _notes(table, args)
    return table


def _notes(table: Table, args: Arguments) -> list[str]:
    """Return notes about the matrix; `info` itself says what is missing or symmetric."""
    named = [name for name in map(str.strip, table.names or ()) if name]
    notes = [repeated(named)] if len({*named}) < len(named) else []
    if args.command == "info":
        return notes
    many, alike = int(np.isnan(stored(table.matrix)).sum()), symmetric(table.matrix)
    if args.covariance == "auto":
        args.covariance = alike
    if many:
        notes.append(f"{counted(many, 'missing entry')}, left out by the method")
    if alike and not args.covariance:
        notes.append(f"{args.source} is symmetric; if it holds covariances or correlations, say --covariance")
    return notes


def _reader(source: Source, args: Arguments) -> Callable[[Source, Arguments], Table]:
    """Return the function that reads this format; raise UserError for options that it does not use."""
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
    """Whether the matrix equals its transpose up to the rounding of single precision."""
    if matrix.shape[0] != matrix.shape[1] or matrix.shape[0] == 1:
        return False
    with np.errstate(invalid="ignore"):  # entries may be infinite
        parts = matrix[:9, :9], matrix
        return not any((abs(1.0 * part - part.T) > 1e-5 * abs(part)).sum() for part in parts)


def read_lines(args: Arguments, option: str, count: int) -> Any:
    """Return a name for each variable, or with `option` "groups" a group, from the lines of a file.

    If cells are separated by tabs, as in files of 10x Genomics, the second cell of a line has the name. In a
    file of groups, the first cell, which ends at a tab or comma, is the variable, and the second its group.
    """
    path = getattr(args, option)
    with refusing(path):
        text = source_of(path).lines().read().rstrip()
    grouped = option == "groups"
    lines = [re.split("[\t,]" if grouped else "\t", line) for line in re.split(r"\r\n?|\n", text)]
    if len(lines) != count:
        raise UserError(
            f"argument --{option}: {path} has {len(lines)} {option} for {counted(count, 'variable')}"
        )
    several = min(map(len, lines)) > 1
    pairs = [(cells[0].strip(), cells[several].strip()) for cells in lines]
    return dict(pairs) if several and grouped else tuple(value for _, value in pairs)


# ---- loadings, as `fit -o` and other programs write them --------------------------------------------

_BESIDE = {"center": "mean", "scale": "scale", "kind": "kind"}  # columns of .csv: what the fit did


def read_saved(path: str) -> Arguments:
    """Return what a file of loadings holds: the loadings, and what else a fit has written.

    Loadings have one row for each variable. `kind` says what matrix was fitted, empty if the file does not
    say. `names` is None if there are none.
    """
    refused = f"argument --loadings: {path}"
    with refusing(path):
        source = source_of(path)
        if source.kind == ".npz":
            fields = dict(np.load(source.file(), allow_pickle=False))
        else:
            frame = pandas.read_csv(source.lines(), index_col=0, converters={0: str}, **_EXACT)
            fields = {}
            if "kind" in frame:
                fields = {_BESIDE[name]: frame.pop(name).to_numpy() for name in _BESIDE.keys() & {*frame}}
                if weights := [name for name in frame if name.startswith("weight_")]:
                    fields["weights"] = np.column_stack([frame.pop(name) for name in weights])
            fields |= {"names": frame.index.to_numpy(), "loadings": frame.to_numpy()}
    if "loadings" not in fields:
        raise UserError(f"{refused} has no array 'loadings', but: {', '.join(fields) or 'nothing'}")
    V = fields["loadings"]
    for name in {"loadings", "weights", "mean", "scale"} & fields.keys():
        values = fields[name]
        numbers = values.dtype.kind in "fiub" and values.shape[:1] == V.shape[:1]
        if not numbers or not np.isfinite(values).all():
            raise UserError(f"{refused}: {name} must be finite numbers, a row for each variable")
    names = [*map(str, fields["names"])] if "names" in fields else None
    kind = str(np.ravel(fields.get("kind", ""))[0])
    fields |= {"path": path, "kind": kind, "names": names, "loadings": V.reshape(len(V), -1)}
    return Arguments(**fields)


def adopt(args: Arguments, files: Sequence[Arguments]) -> None:
    """Read the matrix as the loadings were fitted; raise UserError for options that contradict that."""
    for name, field in (("center", "mean"), ("scale", "scale")):
        known = {getattr(one, field) is not None: one.path for one in files if one.kind}
        asked = getattr(args, name)
        if known and (len(known) > 1 if asked is None else asked not in known):
            said = [f"{path} was fitted with --{'no-' * (not how)}{name}" for how, path in known.items()]
            raise UserError(f"argument --{'no-' * (asked is False)}{name}: {', '.join(said)}")
        if asked is None:
            setattr(args, name, next(iter(known), name == "center"))
    if not args.covariance and {one.kind for one in files} == {"covariance"}:
        args.covariance = "auto"


def places(saved: Arguments, table: Table, source: object) -> list[int]:
    """Return where the variables of the loadings are in the table, by name or, without names, in order."""
    names, wanted = table.variables(), labels(saved.names, len(saved.loadings))
    nameless = not {*wanted} <= {*names} and (table.names is None or saved.names is None)
    if nameless and len(wanted) != len(names):
        here, there = (counted(len(one), "variable") for one in (names, wanted))
        raise UserError(
            f"{source} has {here}, {saved.path} has {there}, and they cannot be matched without names"
        )
    if nameless or wanted == names:  # names may repeat then
        return [*range(len(names))]
    wrong = wrong_labels([name for name in names if name in {*wanted}], wanted)
    if wrong:
        raise UserError(f"{source} does not have the variables of {saved.path}: it is {wrong}")
    return [names.index(name) for name in wanted]
