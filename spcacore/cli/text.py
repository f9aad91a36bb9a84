"""Text files as tables: lines of cells, in which a header and row names are recognized."""

from __future__ import annotations

import argparse
import csv
import re
from array import array
from collections.abc import Iterator
from itertools import chain, islice
from typing import TextIO

import numpy as np

from .._messages import counted
from .source import Source
from .table import Table, UserError

__all__ = ["MISSING", "Record", "read_text"]
__dir__ = __all__.copy

MISSING = ("", "na", "nan", "n/a", "null", "none", "?", "-", ".")
Record = tuple[int, list[str]]  # line number and cells


def read_text(source: Source, args: argparse.Namespace) -> Table:
    """Lines of cells; what the arguments do not say of their layout is told from the first two."""
    with source.open_text() as file:
        records = _records(source, file, args.delimiter, args.decimal)
        top = list(islice(records, 2))
        if not top:
            raise UserError(f"{source} is empty")
        first, second = top[0][1], top[1][1] if len(top) > 1 else None
        shown = [None if cells is None else _in_points(cells, args.decimal) for cells in (first, second)]
        header, row_names = _layout(shown[0] or [], shown[1], args.header, args.row_names)
        body = chain(top[1:] if header else top, records)
        names = None
        if header:
            if second is None:
                raise UserError(f"{source} has a header but no rows")
            short = row_names and len(first) + 1 == len(second)
            if len(first) + short != len(second):
                raise UserError(_ragged(source, top[1], top[0]))
            names = tuple(first[1:] if row_names and not short else first)
        table = _parse(source, body, names, row_names, args)
    _question_layout(source, args, table, first, header, row_names)
    return table


def _records(source: Source, file: TextIO, delimiter: str | None, decimal: str) -> Iterator[Record]:
    """Line number and cells of each line that is not blank."""
    top = []
    for line in file:
        top.append(line)
        if line.strip():
            break
    if delimiter is None:
        delimiter = "\t" if source.kind == ".tsv" else _delimiter(top[-1] if top else "", decimal)
    reader = csv.reader(chain(top, file), delimiter=delimiter, strict=True)
    try:
        for cells in reader:
            if len(cells) > 1 or "".join(cells).strip():
                yield reader.line_num, cells
    except csv.Error as error:
        raise UserError(f"{source}: line {reader.line_num}: {error}") from None


def _delimiter(line: str, decimal: str) -> str:
    outside_quotes = re.sub(r'"[^"]*"', "", line)
    marks = ";\t" if decimal == "," else ",;\t"
    return next((mark for mark in marks if mark in outside_quotes), marks[0])


def _with_points(cells: list[str], decimal: str) -> list[str]:
    """The cells, with points where these numbers have commas; a number with a point then is none."""
    if decimal == ".":
        return cells
    return [cell if _is_missing(cell) else cell.replace(".", "_").replace(",", ".") for cell in cells]


def _in_points(cells: list[str], decimal: str) -> list[str]:
    """The cells with what is a number, by either mark, written with a point."""
    return [cell if decimal == "." or _is_number(cell) else cell.replace(",", ".") for cell in cells]


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
    source: Source, args: argparse.Namespace, table: Table, first: list[str], header: bool, row_names: bool
) -> None:
    """Point out names that look like numbers and were read as data."""
    n, p = table.matrix.shape
    if args.header is None and not header and len(first) > 3 and _counts_up(first[row_names:]):
        args.notes.append(f"line 1 of {source} was read as data; if it is a header, say --header")
    if args.row_names is None and not row_names and n > 2 and p > 1:
        column = table.matrix[:, 0]
        if column[0] in (0, 1) and np.array_equal(column, column[0] + np.arange(n)):
            args.notes.append(
                f"column 1 of {source} counts the rows; if it is not a variable, say --row-names"
            )
    if args.row_names is None and table.row_names and len(first) > p and _is_text(first[0]):
        number = next((name for name in table.row_names if _is_number(name)), None)
        if number is not None:
            args.notes.append(
                f"column 1 of {source} was read as row names, though {number.strip()} is a number; if it is "
                "a variable, say --no-row-names"
            )


def _parse(
    source: Source,
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
                raise UserError(f"{source} has row names only")
        elif len(cells) != width:
            raise UserError(_ragged(source, (line, cells), top))
        labels += cells[:start]
        values.extend(_numbers(source, line, cells[start:], start, names, args.decimal))
        lines.append(line)
    matrix = np.frombuffer(values).reshape(len(lines), -1)
    table = Table(matrix, names, tuple(labels) if row_names else None, "", lines, start + 1)
    bad = np.argwhere(~np.isfinite(matrix))
    if len(bad) and not (args.nan or args.impute):
        what = "is missing" if np.isnan(matrix[tuple(bad[0])]) else "is infinite"
        more = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
        raise UserError(
            f"{source}: {table.cell(*bad[0])} {what}{more}; impute such cells, or drop their rows"
        )
    return table


def _numbers(
    source: Source,
    line: int,
    cells: list[str],
    start: int,
    names: tuple[str, ...] | None,
    decimal: str,
) -> list[float]:
    """The cells of a line as numbers; a missing one becomes NaN, and any other is refused."""
    written, cells = cells, _with_points(cells, decimal)
    try:
        if "_" not in "".join(cells):
            return list(map(float, cells))
    except ValueError:
        pass
    for j, cell in enumerate(cells):
        if _is_text(cell):
            shown = written[j] if len(written[j]) <= 30 else written[j][:27] + "..."
            advice = ""
            if decimal == "," and _is_number(written[j].replace(".", "").replace(",", ".")):
                advice = "; with --decimal , a number has no point"
            elif not _is_label(cell):
                advice = "; decimals need a point, or say --decimal ,"
            elif len(cells) == 1 and all(map(_is_number, cell.split())):
                advice = "; commas, semicolons or tabs must separate cells"
            elif line == 1:
                advice = "; if line 1 is a header, say --header"
            elif j == 0 and not start:
                advice = "; if column 1 is row names, say --row-names"
            else:
                advice = "; drop or encode columns of words"
            where = Table(None, names, lines=[line], first_column=start + 1).cell(0, j)
            raise UserError(f"{source}: {where} is not a number: {shown!r}{advice}")
    return [np.nan if _is_missing(cell) else float(cell) for cell in cells]


def _ragged(source: Source, record: Record, model: Record) -> str:
    (line, cells), (model_line, model_cells) = record, model
    return (
        f"{source}: line {line} has {counted(len(cells), 'cell')}, line {model_line} has {len(model_cells)}"
    )
