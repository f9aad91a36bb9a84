"""Text files as tables, by pandas: a header, row names and columns of words are recognized."""

from __future__ import annotations

import csv
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np

from .._limits import INDEX_ROWS, INFO_NAMES
from .._messages import counted
from .._rendering import shortened
from .source import Source, needed
from .table import Arguments, Table, UserError

__all__ = ["number", "place", "read_text", "table_of", "with_index"]

# What says that a cell is missing, besides what pandas knows.
_MISSING = re.compile(
    r"(?i)|[(<]?(na|null|missing)[)>]?|n/a|n\.a\.?|none|nil|nat|[+-]?nan|\?|-{1,3}|[–—*]|\.{1,2}|\\n|"
    r"#(n/a|na|n/a n/a|div/0!|value!|ref!|name\?|num!|null!)|-?1\.#(qnan|ind)"
)
_GROUPS = re.compile(r"[+-]?\d{1,3}(?:[,.' _]\d{2,3})*([,.' _])\d{3}(?:[.,]\d+)?")  # 10,500 and 1.234,5
_FRACTION = re.compile(r"[+-]?\d*[.,]\d+(?:[eE][+-]?\d+)?")  # 1,5
_IDENTIFIER = re.compile(
    r"(?i:(.*[\W_])?(id|ids|index|idx|key|nr|no|case|sample|subject|patient|participant|obs|observation|row|"
    r"barcode)|unnamed: \d+)|.*[a-z]I[Dd]"
)
_Record = tuple[int, list[str]]  # line number and cells

# ---- cells ------------------------------------------------------------------------------------------


def number(cell: Any, decimal: str = ".", thousands: str | None = None) -> float | None:
    """What the cell holds: a number, 1 for true, NaN if it is missing, and None if it holds words."""
    if not isinstance(cell, str):
        try:
            return np.nan if cell is None else float(cell)
        except (TypeError, ValueError):
            return None
    cell = _stripped(cell)
    if _MISSING.fullmatch(cell):
        return np.nan
    if cell.lower() in ("true", "false"):
        return float(cell.lower() == "true")
    whole, mark = cell.split(decimal)[0], re.escape(thousands or ",")
    if thousands is not None and re.fullmatch(rf"[+-]?\d{{1,3}}({mark}\d{{2,3}})*{mark}\d{{3}}", whole):
        cell = cell.replace(thousands, "")
    if decimal == ",":
        cell = cell.replace(".", "_").replace(",", ".")
    try:
        return None if "_" in cell else float(cell)
    except ValueError:
        return None


def _stripped(cell: str) -> str:
    return re.sub("[\u00a0\u202f]", " ", cell).strip().replace("−", "-")


def _is_number(cell: Any) -> bool:
    value = number(cell)
    return value is not None and value == value


def _is_label(cell: Any) -> bool:
    """Whether the cell names something; 1,5 and 10,500, $3 and 10% are numbers, written otherwise."""
    plain = _stripped(str(cell)).strip("$€£% ")
    return number(cell) is None and number(plain) is None and not _advice(plain, Arguments(decimal="."))


def _advice(cell: str, args: Arguments) -> str:
    """What may be wrong with a cell that is no number, as a clause."""
    cell, advice = _stripped(cell), ""
    grouped, fraction = _GROUPS.fullmatch(cell), _FRACTION.fullmatch(cell) and args.decimal != ","
    if args.decimal == "," and "." in cell:
        advice = "; with --decimal , a number has no point"
    if grouped:
        mark = shlex.quote(grouped[1])
        other = " --decimal ," * (grouped[1] == args.decimal == ".")
        advice += f"; if {mark} separates thousands, say --thousands {mark}{other}"
    if fraction:
        advice += "; if the comma is the decimal mark, say --decimal ,"
    return advice


def _steps(cells: Sequence[Any]) -> Any:
    """Of whole numbers the steps from each to the next; of other cells, NaN."""
    if not all(re.fullmatch(r"\d{1,15}(\.0*)?", str(cell).strip()) for cell in cells):
        return np.array([np.nan])
    return np.diff([int(float(cell)) for cell in cells])


# ---- the file ---------------------------------------------------------------------------------------


class _Text:
    """Lines of cells: what separates them, and how many lines before them are comments."""

    def __init__(self, source: Source, args: Arguments):
        self.source, self.mark = source, args.comment
        top: list[str] = []
        with source.open_text() as file:
            for line in file:
                top.append(re.sub('"[^"]*"', "", line))
                if line.strip() and not line.startswith("#"):
                    break
        marks = ";\t" if args.decimal == "," else ";\t," if args.thousands == "," else ",;\t"
        sniffed = [mark for mark in marks if source.kind != ".tsv" and mark in "".join(top[-1:])]
        self.delimiter = args.delimiter or [*sniffed, "\t" if source.kind == ".tsv" else marks[0]][0]
        if len({line.count(self.delimiter) for line in top[-2:]}) == 1:
            top.pop()  # the last comment has the names of the columns
        self.comments = max(0, len(top) - 1)

    def records(self) -> Iterator[_Record]:
        """Line number and cells of each line that is neither blank nor a comment."""
        with self.source.open_text() as file:
            lines = (line.split(self.mark)[0] + "\n" if self.mark else line for line in file)
            reader = csv.reader(islice(lines, self.comments, None), delimiter=self.delimiter, strict=True)
            try:
                for cells in reader:
                    if len(cells) > 1 or "".join(cells).strip():
                        yield self.comments + reader.line_num, cells
            except csv.Error as error:
                line = self.comments + reader.line_num
                raise UserError(f"{self.source}: line {line}: {error}") from None

    def frame(self, skipped: int, model: _Record, args: Arguments) -> Any:
        """The rows below the first lines, as wide as the model; the first column as it is written."""
        pandas, width, frame = needed(self.source, "pandas"), len(model[1]), None
        words = range(1 if args.thousands is None else width)
        with self.source.open_text() as file:
            for _ in range(skipped):  # lines, of which pandas would skip records
                next(file)
            try:
                frame = pandas.read_csv(
                    file, sep=self.delimiter, header=None, names=range(width), decimal=args.decimal,
                    comment=args.comment, low_memory=False,
                    converters=dict.fromkeys(words, str), float_precision="round_trip", index_col=False,
                )  # fmt: skip
            except pandas.errors.ParserError as error:
                wrong = UserError(f"{self.source}: {error}")
        if frame is None or (width > 1 and frame.iloc[:, -1].isna().any()):  # or cells that are not there
            for record in self.records():
                if record[0] > skipped and len(record[1]) != width:
                    raise self.ragged(record, model)
        if frame is None:
            raise wrong
        return frame

    def ragged(self, *records: _Record) -> UserError:
        (line, cells), (other, others) = records
        mark = next((one[0] for _, one in records if one[0].startswith(("#", "!", "%"))), "")[:1]
        advice = f"; if {mark} begins a comment, say --comment '{mark}'" if mark else ""
        many = counted(len(cells), "cell")
        return UserError(f"{self.source}: line {line} has {many}, line {other} has {len(others)}{advice}")


def read_text(source: Source, args: Arguments) -> Table:
    """What the arguments do not say of the layout is told from the first two lines."""
    text = _Text(source, args)
    top = list(islice(text.records(), 2))
    if not top:
        raise UserError(f"{source} is empty")
    first, header = top[0][1], _has_header([cells for _, cells in top], args)
    if header and len(top) == 1:
        raise UserError(f"{source} has a header but no rows")
    frame = text.frame(top[0][0] if header else text.comments, top[header], args)
    names = [re.sub("^# *", "", first[0]), *first[1:]] if header else None
    if names is not None:  # a comma may end each line
        while frame.shape[1] > 1 and frame.iloc[:, -1].isna().all() and not any(names[frame.shape[1] - 1 :]):
            frame = frame.iloc[:, :-1]
        while len(names) > frame.shape[1] and not names[-1]:
            names.pop()
        if frame.shape[1] == len(names) + 1 and args.row_names is not False:
            names = ["", *names]
        if frame.shape[1] != len(names):
            raise text.ragged(top[1], top[0])
    index = with_index(frame, names, source, args)
    steps = _steps(first[len(index) :])
    if args.header is None and not header and len(steps) > 1 and 0 < steps[0] == steps.min() == steps.max():
        args.notes.append(f"line 1 of {source} was read as data; if it is a header, say --header")
    line = lambda i: next(islice(text.records(), i + header, None))[0]  # noqa: E731
    return table_of(frame, names, index, source, args, line)


# ---- its layout -------------------------------------------------------------------------------------


def _has_header(top: list[list[str]], args: Arguments) -> bool:
    """Whether the first line has words, or numbers above a column of names."""
    if args.header is not None:
        return bool(args.header)
    first, second = top[0], top[-1]
    blank, short = len(first) > 1 and not first[0].strip(), len(first) + 1 == len(second)
    if (short or blank) and (_is_label(second[0]) or (not short and (_steps(first[1:]) == 1).all())):
        return True
    values = [number(cell, args.decimal) for cell in first[_is_label(first[0]) :] or first]
    return values.count(None) > sum(map(_is_number, values))


def with_index(frame: Any, names: Sequence[str] | None, source: Source, args: Arguments) -> list[int]:
    """The columns that name the rows: those that are given, or the first if it looks like that."""
    if args.index_column is not None:
        return [place(source, one, names, frame.shape[1], "index-column") for one in args.index_column]
    if args.row_names is not None or frame.shape[1] < 2:
        return [0] * bool(args.row_names)
    cells, title = frame.iloc[:, 0].dropna().tolist(), (names or "?")[0].strip()
    if not title or sum(map(_is_label, cells)) > sum(map(_is_number, cells)):
        return [0]
    steps = _steps(cells)
    alone = len(cells) >= INDEX_ROWS and len(set(cells)) == len(cells)
    if alone and ((steps == 1).all() or (_IDENTIFIER.fullmatch(title) and steps[0] == steps[0])):
        read, flag = "as names of the rows; if it is a variable, say", "--no-row-names"
    elif alone and (steps > 0).all():
        read, flag = "as a variable, though it rises; if it names the rows, say", "--row-names"
    else:
        return []
    args.notes.append(f"column 1 of {source} was read {read} {flag}")
    return [0] * (flag == "--no-row-names")


# ---- columns ----------------------------------------------------------------------------------------


def table_of(
    frame: Any, names: list[str] | None, index: Sequence[int], source: Source, args: Arguments,
    line: Callable[[int], int] | None = None, order: Any = "C",
) -> Table:  # fmt: skip
    """Columns of numbers as a matrix; those of words are left out, and a few words among numbers refused."""
    width = frame.shape[1]
    frame = frame.set_axis(range(width), axis=1)
    left = {*index, *(place(source, one, names, width, "drop") for one in args.drop or ())}
    title = lambda j: names[j] if names and names[j].strip() else f"column {j + 1}"  # noqa: E731
    kept: list[int] = []
    wrong: dict[int, tuple[int, str]] = {}  # of a column, the first row whose cell is no number

    def refusal(j: int) -> UserError:
        i, cell = wrong[j]
        where = Table(None, None if names is None else tuple(names), line=line).cell(i, j)
        advice = _advice(cell, args)
        if not advice and line is not None:
            advice = (
                "; commas, semicolons or tabs must separate cells"
                if len(cell.split()) > 1 and all(map(_is_number, cell.split()))
                else "; if line 1 is a header, say --header" if where.startswith("line 1,")
                else "; if column 1 is row names, say --row-names" if j == 0 and not index and _is_label(cell)
                else f"; correct it, or leave the column out: --drop {shlex.quote(title(j))}"
            )  # fmt: skip
        return UserError(f"{source}: {where} is not a number: {shortened(cell)!r}{advice}")

    for j in (j for j in range(width) if j not in left):
        if not isinstance(frame.dtypes[j], np.dtype) or frame.dtypes[j].kind not in "fiub":
            cells = frame[j].astype(object).where(frame[j].notna(), None).tolist()
            values = [number(cell, args.decimal, args.thousands) for cell in cells]
            if None in values:
                wrong[j] = values.index(None), str(cells[values.index(None)])
                if not args.keep_going and sum(map(_is_label, cells)) <= sum(map(_is_number, values)):
                    raise refusal(j)
                continue
            frame[j] = np.array(values, np.float64)
        kept.append(j)
    if not kept:
        raise refusal(next(iter(wrong))) if wrong else UserError(f"{source} has row names only")
    if wrong:
        shown = [f"{title(j)!r} ({shortened(cell)!r})" for j, (_, cell) in wrong.items()][:INFO_NAMES]
        shown += ["..."] * (len(wrong) > INFO_NAMES)
        advice = next(filter(None, (_advice(cell, args) for _, cell in wrong.values())), "")
        args.notes.append(
            f"left out {counted(len(wrong), 'column')} of {source} without numbers: {', '.join(shown)}"
            f"{advice or '; --index-column takes one as names of the rows'}"
        )
    single = all(dtype.name in ("float32", "float16") for dtype in frame[kept].dtypes)
    rows = [["" if one is None else str(one) for one in frame[j]] for j in index]
    return Table(
        np.require(frame[kept].to_numpy(np.float32 if single else np.float64), None, order),
        None if names is None else tuple(names[j] for j in kept),
        tuple(map(" ".join, zip(*rows, strict=True))) if index else None,
        line=line, columns=kept,
    )  # fmt: skip


def place(source: object, wanted: str, names: Sequence[str] | None, width: int, option: str) -> int:
    """Of a column, by its name or its number."""
    if names and wanted in names:
        return list(names).index(wanted)
    if wanted.isdecimal() and 1 <= int(wanted) <= width:
        return int(wanted) - 1
    raise UserError(f"argument --{option}: {source} has no column {wanted!r}")
