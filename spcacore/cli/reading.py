"""Files as tables: a matrix with the names of its columns and rows, or one line that says what is wrong.

The first line of a text is a header if none of its cells but the first is a number, and the first column
names the rows if none of its cells is one. Where numbers may be names, a note says how they were read.
"""

from __future__ import annotations

import contextlib
import csv
import io
import re
import shlex
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
from .._limits import INDEX_ROWS, INFO_NAMES
from .._messages import counted, first_of, listed, repeated
from .._records import replaced
from .._rendering import shortened
from .._validation import stored
from ..linalg.scaling import beyond_range
from ..readable import labels
from .source import (
    PICKLED,
    Arguments,
    Source,
    Table,
    UserError,
    compressed,
    needed,
    picked,
    place,
    refusing,
    source_of,
    unquoted,
)

# ---- text -------------------------------------------------------------------------------------------

# What says that a cell is missing, besides what pandas knows.
_MISSING = re.compile(
    r"(?i)|[(<]?(na|null|missing)[)>]?|n/a|n\.a\.?|none|nil|nat|[+-]?nan|\?|-{1,3}|[–—*]|\.{1,2}|\\n|"
    r"#(n/a|na|n/a n/a|div/0!|value!|ref!|name\?|num!|null!)|-?1\.#(qnan|ind)"
)
# Numbers as they are written, to the last bit, which pandas 3.1 does by default and without this word
_PANDAS = tuple(map(int, pandas.__version__.split(".")[:2]))
_EXACT: dict[str, Any] = {} if _PANDAS >= (3, 1) else {"float_precision": "round_trip"}
_TRUTH = {"true": "1", "false": "0"}
_WRITTEN = re.compile(r"[-+$€£ ]*\d[\d.,' ]*[%$€£ ]*")  # a number, as people may write it
_IDENTIFIER = re.compile(
    r"(?i:(.*[\W_])?(id|ids|index|idx|key|nr|no|case|sample|subject|patient|participant|obs|observation|row|"
    r"barcode)|unnamed: \d+)|.*[a-z]I[Dd]"
)
_Cells = tuple[list[str], list[float | None]]


def number(cell: str, decimal: str = ".", thousands: str | None = None) -> float | None:
    """What the cell holds: a number, 1 for true, NaN if it is missing, and None if it holds words."""
    cell = re.sub("[\u00a0\u202f]", " ", cell).strip().replace("−", "-")
    if _MISSING.fullmatch(cell):
        return np.nan
    mark = re.escape(thousands or "")
    if mark and re.match(rf"[+-]?\d{{1,3}}({mark}\d{{2,3}})*{mark}\d{{3}}(?!\d|{mark})", cell):
        cell = cell.replace(str(thousands), "")
    if decimal == ",":
        cell = cell.replace(".", "_").replace(",", ".")
    try:
        return None if "_" in cell else float(_TRUTH.get(cell.lower(), cell))
    except ValueError:
        return None


def _read(cells: Any, args: Arguments) -> _Cells:
    """Cells as words, and as numbers."""
    known = zip(cells, pandas.isna(cells), strict=True)
    words = ["" if lacking else str(cell) for cell, lacking in known]
    return words, [number(word, args.decimal, args.thousands) for word in words]


def _are_words(cells: _Cells) -> bool:
    """Whether there are words, and no number, however it is written."""
    numbers = any(value == value for value in cells[1] if value is not None)
    return None in cells[1] and not numbers and not any(map(_WRITTEN.fullmatch, cells[0]))


def _are_whole(cells: _Cells) -> bool:
    return all(value is not None and value % 1 == 0 for value in cells[1])


def _top(source: Source, args: Arguments) -> tuple[str, list[list[str]]]:
    """What separates cells, and the cells of the first two lines that are not blank."""
    lines = (line.split(args.comment)[0] if args.comment else line for line in source.lines())
    first = next(filter(str.strip, lines), "")
    bare, marks = re.sub('"[^"]*"', "", first), "\t" if source.kind == ".tsv" else "\t;,"
    delimiter = args.delimiter or next((mark for mark in marks if mark in bare), "\t")
    rows = csv.reader(chain([first], lines), delimiter=delimiter)
    return delimiter, list(islice((cells for cells in rows if any(map(str.strip, cells))), 2))


def _read_text(source: Source, args: Arguments) -> Table:
    """What the arguments do not say of the layout is told from the first two lines."""
    delimiter, top = _top(source, args)
    if not top:
        raise UserError(f"{source} is empty")
    names, second = top[0], top[-1]
    cells = _read(names[1:] or names, args)
    more = len(second) - len(names)
    by_name = more == 1 and (args.row_names or number(second[0]) is None)  # as R writes
    header = args.header
    if header is None:
        header = _are_words(cells) or by_name or not names[0].strip()
        if not _are_words(_read(names, args)) if header else _are_whole(cells):
            what, flag = ("a header", "--no-header") if header else ("data", "--header")
            args.notes.append(f"line 1 of {source} was read as {what}; if it is not, say {flag}")
    if header and len(top) == 1:
        raise UserError(f"{source} has a header but no rows")
    width = len(names) + max(more, 0) * header
    try:
        frame = pandas.read_csv(
            source.lines(), sep=delimiter, header=0 if header else None, names=range(width), index_col=False,
            decimal=args.decimal, comment=args.comment, low_memory=False, **_EXACT,
            converters=dict.fromkeys(range(1 if args.thousands is None else width), str),
        )  # fmt: skip
    except pandas.errors.ParserError as error:
        wrong = str(error).strip().rpartition("error: ")[2]
        raise UserError(f"{source}: {wrong}; --comment says how lines of comments begin") from None
    if not header:
        return _table_of(frame, None, source, args)
    titles = [""] * by_name + names
    if (frame.iloc[:, len(titles) :].fillna("") != "").any(axis=None):  # but for a comma that ends each line
        raise UserError(
            f"{source}: the header has {counted(len(names), 'cell')}, the next line {len(second)}; "
            "--comment says how lines of comments begin, --row-names that column 1 names the rows"
        )
    return _table_of(frame.iloc[:, : len(titles)], titles, source, args)


def _index(frame: Any, titles: Sequence[str] | None, source: Source, args: Arguments) -> list[int]:
    """The columns that name the rows: those that are given, or the first if it looks like that."""
    if args.index_column is not None:
        return [place(source, one, titles, frame.shape[1], "index-column") for one in args.index_column]
    if args.row_names is not None or frame.shape[1] < 2:
        return [0] * bool(args.row_names)
    cells, title = _read(frame[0], args), titles[0] if titles else "?"
    if not title or _are_words(cells):
        return [0]
    looks = len(frame) >= INDEX_ROWS and _are_whole(cells) and frame[0].is_unique
    if looks and (_IDENTIFIER.fullmatch(title) or set(np.diff(np.array(cells[1], np.float64))) == {1}):
        args.notes.append(
            f"column 1 of {source} was read as names of the rows; if it is not, say --no-row-names"
        )
        return [0]
    return []


def _table_of(
    frame: Any, names: list[str] | None, source: Source, args: Arguments, index: Sequence[int] | None = None
) -> Table:
    """Columns of numbers as a matrix. Those without any are left out; others must have nothing else."""
    width, titles = frame.shape[1], None if names is None else [name.strip() for name in names]
    index = _index(frame, titles, source, args) if index is None else index
    left = {*index, *(place(source, one, titles, width, "drop") for one in args.drop or ())}
    args.drop = None  # is done
    kept, words = list[int](), list[str]()  # what is left out, with the first cell that is no number
    for j in sorted({*range(width)} - left):
        if frame[j].dtype.kind not in "fiub":
            cells = _read(frame[j], args)
            if None in cells[1]:
                i, title = cells[1].index(None), (titles and titles[j]) or str(j + 1)
                shown = f"{shortened(cells[0][i])!r}"
                if not _are_words(cells) and not args.keep_going:
                    advice = _advice(cells[0][i], title, width, i == 0 and not names)
                    raise UserError(
                        f"{source}: row {i + 1}, column {title!r} is not a number: {shown}{advice}"
                    )
                words.append(f"{title!r} ({shown})")
                continue
            frame[j] = np.array(cells[1], np.float64)
        if not titles or titles[j] or frame[j].notna().any():
            kept.append(j)
    shown = first_of(words, INFO_NAMES)
    written = "--decimal and --thousands say how numbers are written"
    if not kept:
        what = f": {shown}; {written}" if words else ""
        raise UserError(f"{source} has no column of numbers, but names of rows, or words{what}")
    if words:
        args.notes.append(
            f"left out {counted(len(words), 'column')} of {source} without numbers: {shown}; --index-column "
            f"takes one as names of the rows; {written}"
        )
    single = all(dtype.name in ("float32", "float16") for dtype in frame[kept].dtypes)
    rows = zip(*(_read(frame[j], args)[0] for j in index), strict=True)
    return Table(
        frame[kept].to_numpy(np.float32 if single else np.float64),
        None if names is None else tuple(names[j] for j in kept),
        tuple(map(" ".join, rows)) if index else None,
    )  # fmt: skip


def _advice(cell: str, title: str, width: int, is_first: bool) -> str:
    """What may be wrong with a cell among numbers that is no number, as a clause."""
    mark = re.search(r"\d([,.' \u00a0])\d", cell)
    if width == 1:
        return "; commas, semicolons or tabs must separate cells, or say --delimiter"
    if mark:
        sign, comma = shlex.quote(mark[1]), "; if the comma is the decimal mark, say --decimal ,"
        other = " --decimal ," * (mark[1] == ".")
        return f"; if {sign} separates thousands, say --thousands {sign}{other}{comma * (mark[1] == ',')}"
    layout = "; if line 1 is a header, say --header" * is_first
    layout += "; if column 1 names the rows, say --row-names" * (title == "1")
    return f"{layout}; correct it, or leave the column out: --drop {shlex.quote(title)}"


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
    return _table_of(frame.set_axis(range(len(names)), axis=1), names, source, args, index)


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
    ".csv": (_read_text, _TEXT), ".tsv": (_read_text, _TEXT), ".npy": (_read_npy, ""),
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
        kept = [j for j in range(X.shape[1]) if j not in dropped]
        table = replaced(table, matrix=X[:, kept], names=picked(table.names, kept))
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
    with np.errstate(invalid="ignore"):  # of infinite entries
        parts = matrix[:9, :9], matrix
        return not any((abs(1.0 * part - part.T) > 1e-5 * abs(part)).sum() for part in parts)


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


def _imputed(table: Table, args: Arguments) -> Table:
    """The table with what is missing filled in or dropped, and a note of that."""
    X, rows = table.matrix, args.impute == "drop-rows"
    if args.impute and (args.covariance or scipy.sparse.issparse(X)):
        raise UserError("argument --impute: for dense data, not a covariance or a sparse matrix")
    many = int(np.isnan(stored(X)).sum())
    if not many:
        return table
    note = counted(many, "missing entry")
    if args.impute is None:
        args.notes.append(f"{note}, left out by the method; --impute fills or drops")
        return table
    frame, what = pandas.DataFrame(X), "sample" if rows else "variable"
    touched = int(frame.isna().any(axis=int(rows)).sum())
    if args.impute == "mean":
        filled, done, wrong = frame.fillna(frame.mean()), "filled with means", "a variable has no entry"
    else:
        filled, done = frame.dropna(axis=int(not rows)), "dropped"
        wrong = f"every {what} has a missing entry"
    if filled.empty or filled.isna().any(axis=None):
        raise UserError(f"argument --impute: {wrong}")
    args.notes.append(f"{note}: {counted(touched, what)} {done}")
    names = picked(table.names, filled.columns), picked(table.row_names, filled.index)
    return Table(filled.to_numpy(), *names)


# ---- loadings, as `fit -o` and other programs write them --------------------------------------------

_BESIDE = {"center": "mean", "scale": "scale", "kind": "kind"}  # columns of .csv: what the fit did


def read_saved(path: str) -> Arguments:
    """The fields of the file: loadings, a row for each variable; the kind of matrix that was fitted, nothing
    where the file does not say; names, and what else a fit has written."""
    refused = f"argument --loadings: {path}"
    with refusing(path):
        source = source_of(path)
        if source.kind == ".npz":
            fields = dict(np.load(source.file(), allow_pickle=False))
        elif source.kind == ".csv":
            frame = pandas.read_csv(source.lines(), index_col=0, converters={0: str}, **_EXACT)
            known = _BESIDE.keys() & {*frame} if "kind" in frame else ()
            fields = {_BESIDE[name]: frame.pop(name).to_numpy() for name in known}
            fields |= {"names": frame.index.to_numpy(), "loadings": frame.to_numpy()}
        else:
            raise UserError(f"{refused} is neither .csv nor .npz")
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
    """Take the matrix as the loadings were fitted; refuse options that contradict that."""
    for name, field, kinds in (("center", "mean", ["data"]), ("scale", "scale", ["data", "covariance"])):
        known = {getattr(one, field) is not None: one.path for one in files if one.kind in kinds}
        asked = getattr(args, name)
        if known and (len(known) > 1 if asked is None else asked not in known):
            flag = {how: f"--{'no-' * (not how)}{name}" for how in (False, True)}
            said = ", ".join(f"{path} was fitted with {flag[how]}" for how, path in known.items())
            raise UserError(f"argument {flag[asked is not False]}: {said}")
        if asked is None:
            setattr(args, name, next(iter(known), name == "center"))
    if not args.covariance and {one.kind for one in files} == {"covariance"}:
        args.covariance = "auto"


def places(saved: Arguments, table: Table, source: object) -> list[int]:
    """Where the variables of the loadings are in the table: by name or, where one has no names, in order."""
    names, wanted = table.variables(), labels(saved.names, len(saved.loadings))
    if not set(wanted) <= set(names):
        wanted = list(map(unquoted, wanted))
    nameless = not set(wanted) <= set(names) and (table.names is None or saved.names is None)
    if nameless and len(wanted) != len(names):
        here, there = (counted(len(one), "variable") for one in (names, wanted))
        raise UserError(
            f"{source} has {here}, {saved.path} has {there}, and they cannot be matched without names"
        )
    if nameless or wanted == names:  # though some may be the same
        return [*range(len(names))]
    wrong = wrong_labels([name for name in names if name in set(wanted)], wanted)
    if wrong:
        raise UserError(f"{source} does not have the variables of {saved.path}: it is {wrong}")
    return [names.index(name) for name in wanted]
