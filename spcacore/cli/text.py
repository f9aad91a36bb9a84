"""Text files and other columns as tables, by pandas.

The first line is a header if none of its cells but the first is a number, and the first column names the rows
if none of its cells is one. Where numbers may be names, a note says how they were read.
"""

from __future__ import annotations

import csv
import re
import shlex
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np

from .._limits import INDEX_ROWS, INFO_NAMES
from .._messages import counted
from .._rendering import shortened
from .source import Arguments, Source, UserError, needed
from .table import Table, place

__all__ = ["number", "read_text", "table_of"]

# What says that a cell is missing, besides what pandas knows.
_MISSING = re.compile(
    r"(?i)|[(<]?(na|null|missing)[)>]?|n/a|n\.a\.?|none|nil|nat|[+-]?nan|\?|-{1,3}|[–—*]|\.{1,2}|\\n|"
    r"#(n/a|na|n/a n/a|div/0!|value!|ref!|name\?|num!|null!)|-?1\.#(qnan|ind)"
)
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
    words = ["" if cell is None or cell != cell else str(cell) for cell in cells]
    return words, [number(word, args.decimal, args.thousands) for word in words]


def _are_words(cells: _Cells) -> bool:
    """Whether there are words, and no number, however it is written."""
    numbers = any(value == value for value in cells[1] if value is not None)
    return None in cells[1] and not numbers and not any(map(_WRITTEN.fullmatch, cells[0]))


def _are_whole(cells: _Cells) -> bool:
    return all(value is not None and value % 1 == 0 for value in cells[1])


# ---- the file ---------------------------------------------------------------------------------------


def _layout(source: Source, args: Arguments) -> tuple[str, int]:
    """What separates cells, and how many lines at the top are comments."""
    top: list[str] = []
    with source.open_text() as file:
        for line in file:
            top.append(re.sub('"[^"]*"', "", line))
            if line.strip() and not line.startswith("#"):
                break
    marks = (
        "\t"
        if source.kind == ".tsv"
        else ";\t"
        if args.decimal == ","
        else ";\t,"
        if args.thousands == ","
        else ",;\t"
    )
    delimiter = args.delimiter or next((mark for mark in marks if mark in "".join(top[-1:])), marks[0])
    if len({line.count(delimiter) for line in top[-2:]}) == 1:
        top.pop()  # the last comment has the names of the columns
    return delimiter, max(0, len(top) - 1)


def _top(file: Iterator[str], delimiter: str, mark: str | None) -> Iterator[tuple[int, list[str]]]:
    """The cells of each line that is not blank, and how many lines they and those before take."""
    reader = csv.reader((line.split(mark)[0] if mark else line for line in file), delimiter=delimiter)
    return ((reader.line_num, cells) for cells in reader if len(cells) > 1 or "".join(cells).strip())


def read_text(source: Source, args: Arguments) -> Table:
    """What the arguments do not say of the layout is told from the first two lines."""
    pandas, (delimiter, skipped) = needed(source, "pandas"), _layout(source, args)
    with source.open_text() as file:
        top = list(islice(_top(islice(file, skipped, None), delimiter, args.comment), 2))
    if not top:
        raise UserError(f"{source} is empty")
    first, second = top[0][1], top[-1][1]
    cells = _read(first[1:] or first, args)
    named = len(first) + 1 == len(second) and number(second[0]) is None  # as R writes them
    blank = len(first) > 1 and not first[0].strip()
    header = _are_words(cells) or named or blank if args.header is None else args.header
    if header and len(top) == 1:
        raise UserError(f"{source} has a header but no rows")
    if args.header is None and (not _are_words(_read(first, args)) if header else _are_whole(cells)):
        what, flag = ("a header", "--no-header") if header else ("data", "--header")
        args.notes.append(f"line 1 of {source} was read as {what}; if it is not, say {flag}")
    skipped += top[0][0] * bool(header)
    with source.open_text() as file:
        for _ in range(skipped):  # lines, of which pandas would skip records
            next(file)
        try:
            frame = pandas.read_csv(
                file, sep=delimiter, header=None, names=range(len(second)), decimal=args.decimal,
                comment=args.comment, float_precision="round_trip", low_memory=False, index_col=False,
                converters=dict.fromkeys(range(1 if args.thousands is None else len(second)), str),
            )  # fmt: skip
        except pandas.errors.ParserError as error:
            wrong = re.sub(r"(?<=line )\d+", lambda m: str(int(m[0]) + skipped), str(error).strip())
            wrong = wrong.rpartition("error: ")[2]
            raise UserError(f"{source}: {wrong}; --comment says how lines of comments begin") from None
    if not header:
        return table_of(frame, None, source, args)
    names = [re.sub("^# *", "", first[0]), *first[1:]]
    width = int(np.flatnonzero(frame.notna().any()).max(initial=0)) + 1  # a comma may end each line
    while len(names) > width and not names[-1]:
        names.pop()
    if width == len(names) + 1 and args.row_names is not False:
        names = ["", *names]
    if len(names) < width or len(names) > len(second):
        raise UserError(
            f"{source}: the header has {counted(len(names), 'cell')}, the next line {len(second)}"
        )
    return table_of(frame.iloc[:, : len(names)], names, source, args)


# ---- columns ----------------------------------------------------------------------------------------


def _index(frame: Any, names: Sequence[str] | None, source: Source, args: Arguments) -> list[int]:
    """The columns that name the rows: those that are given, or the first if it looks like that."""
    if args.index_column is not None:
        return [place(source, one, names, frame.shape[1], "index-column") for one in args.index_column]
    if args.row_names is not None or frame.shape[1] < 2:
        return [0] * bool(args.row_names)
    cells, title = _read(frame[0], args), names[0].strip() if names else "?"
    if not title or _are_words(cells):
        return [0]
    if len(frame) < INDEX_ROWS or not _are_whole(cells) or not frame[0].is_unique:
        return []
    steps = np.diff(np.array(cells[1], np.float64))
    named = bool(_IDENTIFIER.fullmatch(title) or (steps == 1).all())
    if named or (steps > 0).all():
        what, flag = ("names of the rows", "--no-row-names") if named else ("a variable", "--row-names")
        args.notes.append(f"column 1 of {source} was read as {what}; if it is not, say {flag}")
    return [0] * named


def table_of(
    frame: Any, names: list[str] | None, source: Source, args: Arguments,
    index: Sequence[int] | None = None, order: Any = "C",
) -> Table:  # fmt: skip
    """Columns of numbers as a matrix. Those without any are left out; others must have nothing else."""
    width = frame.shape[1]
    frame = frame.set_axis(range(width), axis=1)
    index = _index(frame, names, source, args) if index is None else index
    left = {*index, *(place(source, one, names, width, "drop") for one in args.drop or ())}
    args.drop = None  # is done
    kept: list[int] = []
    words: list[str] = []  # what is left out, with the first cell that is no number
    for j in (j for j in range(width) if j not in left):
        column = frame[j]
        if not isinstance(column.dtype, np.dtype) or column.dtype.kind not in "fiub":
            cells = _read(column.where(column.notna(), None), args)
            if None in cells[1]:
                i = cells[1].index(None)
                cell, title = cells[0][i], names[j] if names and names[j].strip() else str(j + 1)
                if not _are_words(cells) and not args.keep_going:
                    where, advice = (
                        f"row {i + 1}, column {title!r}",
                        _advice(cell, title, width, i == 0 and not names),
                    )
                    raise UserError(f"{source}: {where} is not a number: {shortened(cell)!r}{advice}")
                words.append(f"{title!r} ({shortened(cell)!r})")
                continue
            frame[j] = np.array(cells[1], np.float64)
        kept.append(j)
    if not kept:
        raise UserError(f"{source} has no column of numbers, but names of rows, or words")
    if words:
        shown = ", ".join([*words[:INFO_NAMES], *["..."] * (len(words) > INFO_NAMES)])
        args.notes.append(
            f"left out {counted(len(words), 'column')} of {source} without numbers: {shown}; --index-column "
            "takes one as names of the rows; --decimal and --thousands say how numbers are written"
        )
    single = all(dtype.name in ("float32", "float16") for dtype in frame[kept].dtypes)
    rows = [_read(frame[j], args)[0] for j in index]
    return Table(
        np.require(frame[kept].to_numpy(np.float32 if single else np.float64), None, order),
        None if names is None else tuple(names[j] for j in kept),
        tuple(map(" ".join, zip(*rows, strict=True))) if index else None,
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
