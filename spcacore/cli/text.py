"""Text files and other columns as tables, by pandas.

The first line is a header if none of its cells but the first is a number, and the first column names the rows
if none of its cells is one. Where numbers may be names, a note says how they were read.
"""

from __future__ import annotations

import csv
import re
import shlex
from collections.abc import Sequence
from itertools import chain, islice
from typing import Any

import numpy as np
import pandas

from .._limits import INDEX_ROWS, INFO_NAMES
from .._messages import counted
from .._rendering import shortened
from .source import Arguments, Source, Table, UserError, place

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


def _top(source: Source, args: Arguments) -> tuple[str, list[list[str]]]:
    """What separates cells, and the cells of the first two lines that are not blank."""
    lines = (line.split(args.comment)[0] if args.comment else line for line in source.lines())
    first, second = (next((line for line in lines if line.strip()), "") for _ in range(2))
    marks = "\t" if source.kind == ".tsv" else ";\t," if args.thousands == "," else ",;\t"
    quoted = re.search(r'"[^",]*\d,\d', first + second)  # 1,5 in quotes, between commas
    marks = marks.replace(args.decimal, "") + "," * bool(quoted)
    bare = re.sub('"[^"]*"', "", first)
    delimiter = args.delimiter or next((mark for mark in marks if mark in bare), marks[0])
    rows = csv.reader(chain([first, second], lines), delimiter=delimiter)
    return delimiter, list(islice((cells for cells in rows if any(map(str.strip, cells))), 2))


def read_text(source: Source, args: Arguments) -> Table:
    """What the arguments do not say of the layout is told from the first two lines."""
    delimiter, top = _top(source, args)
    if not top:
        raise UserError(f"{source} is empty")
    names, second = top[0], top[-1]
    cells = _read(names[1:] or names, args)
    blank = len(names) > 1 and not names[0].strip()
    one_more = len(names) + 1 == len(second)
    by_name = one_more and (args.row_names or number(second[0]) is None)  # as R writes
    header = _are_words(cells) or by_name or blank if args.header is None else args.header
    if header and len(top) == 1:
        raise UserError(f"{source} has a header but no rows")
    if args.header is None and (not _are_words(_read(names, args)) if header else _are_whole(cells)):
        what, flag = ("a header", "--no-header") if header else ("data", "--header")
        args.notes.append(f"line 1 of {source} was read as {what}; if it is not, say {flag}")
    try:
        frame = pandas.read_csv(
            source.lines(), sep=delimiter, header=0 if header else None, decimal=args.decimal,
            comment=args.comment, float_precision="round_trip", low_memory=False,
            converters=dict.fromkeys(range(1 if args.thousands is None else len(second)), str),
        )  # fmt: skip
    except pandas.errors.ParserError as error:
        wrong = str(error).strip().rpartition("error: ")[2]
        raise UserError(f"{source}: {wrong}; --comment says how lines of comments begin") from None
    if not header:
        return table_of(frame, None, source, args)
    if not isinstance(frame.index, pandas.RangeIndex):  # the lines have more cells than the header
        ended = one_more and frame.iloc[:, -1].isna().all()  # a comma ends each line
        if not (by_name or ended):
            raise UserError(
                f"{source}: the header has {counted(len(names), 'cell')}, the next line {len(second)}; "
                "--comment says how lines of comments begin, --row-names that column 1 names the rows"
            )
        frame = frame.reset_index().iloc[:, : -1 if ended else None]
        names = names if ended else ["", *names]
    while len(names) > 1 and not names[-1].strip() and frame.iloc[:, len(names) - 1].isna().all():
        names.pop()  # a comma ends each line
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
    if not _IDENTIFIER.fullmatch(title) and (np.diff(np.array(cells[1], np.float64)) != 1).any():
        return []
    args.notes.append(f"column 1 of {source} was read as names of the rows; if it is not, say --no-row-names")
    return [0]


def table_of(
    frame: Any, names: list[str] | None, source: Source, args: Arguments,
    index: Sequence[int] | None = None, order: Any = "C",
) -> Table:  # fmt: skip
    """Columns of numbers as a matrix. Those without any are left out; others must have nothing else."""
    width = frame.shape[1]
    frame = frame.set_axis(range(width), axis=1)
    titles = [names[j].strip() if names else "" for j in range(width)]
    index = _index(frame, names, source, args) if index is None else index
    left = {*index, *(place(source, one, names, width, "drop") for one in args.drop or ())}
    args.drop = None  # is done
    kept, words = list[int](), list[str]()  # what is left out, with the first cell that is no number
    for j in (j for j in range(width) if j not in left):
        if getattr(frame[j].dtype, "kind", "O") not in "fiub":
            cells = _read(frame[j].astype(object).where(frame[j].notna(), None), args)
            if None in cells[1]:
                i, title = cells[1].index(None), titles[j] or str(j + 1)
                shown = f"{shortened(cells[0][i])!r}"
                if not _are_words(cells) and not args.keep_going:
                    advice = _advice(cells[0][i], title, width, i == 0 and not names)
                    raise UserError(
                        f"{source}: row {i + 1}, column {title!r} is not a number: {shown}{advice}"
                    )
                words.append(f"{title!r} ({shown})")
                continue
            frame[j] = np.array(cells[1], np.float64)
        kept.append(j)
    shown = ", ".join([*words[:INFO_NAMES], *["..."] * (len(words) > INFO_NAMES)])
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
        np.require(frame[kept].to_numpy(np.float32 if single else np.float64), None, order),
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
