"""Text files as tables, by pandas: a header, row names and columns of words are recognized."""

from __future__ import annotations

import csv
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np

from .._limits import INDEX_ROWS, INFO_NAMES
from .._messages import counted
from .source import Source
from .table import Arguments, Table, UserError

__all__ = ["MISSING", "Record", "needed", "number", "numbers_rows", "place", "read_text", "table_of"]
__dir__ = __all__.copy

MISSING = frozenset((
    "", "na", "nan", "n/a", "n.a.", "n.a", "null", "none", "nil", "nat", "missing", "<na>", "(na)", "(null)",
    "(missing)", "?", "-", "--", "---", "–", "—", ".", "..", "*", "\\n", "#n/a", "#na", "#n/a n/a", "#div/0!",
    "#value!", "#ref!", "#name?", "#num!", "#null!", "1.#qnan", "-1.#qnan", "1.#ind", "-1.#ind", "+nan",
    "-nan", "nan(ind)", "-nan(ind)",
))  # fmt: skip
_SPELLED = sorted({"NaN", "NaT"}.union(*({word, word.upper(), word.capitalize()} for word in MISSING)))
# 10,500 and 1.234,5 and 12,34,567
_GROUPS = re.compile(r"[+-]?\d{1,3}(?:[,.' _]\d{2,3})*([,.' _])\d{3}(?:[.,]\d+)?")
_FRACTION = re.compile(r"[+-]?\d*[.,]\d+(?:[eE][+-]?\d+)?")  # 1,5
_IDENTIFIER = re.compile(
    r"(?i:(.*[\W_])?(id|ids|index|idx|key|nr|no|case|sample|subject|patient|participant|obs|observation|row|"
    r"barcode)|unnamed: \d+)|.*[a-z]I[Dd]"
)
Record = tuple[int, list[str]]  # line number and cells


# ---- cells ------------------------------------------------------------------------------------------


def number(cell: str, decimal: str = ".", thousands: str | None = None) -> float | None:
    """What the cell holds: a number, NaN if it is missing, and None if it holds words."""
    cell = re.sub("[\u00a0\u202f]", " ", cell).strip().replace("−", "-")
    if cell.lower() in MISSING:
        return np.nan
    if thousands is not None and thousands in cell:
        whole = cell.split(decimal)[0]
        mark = re.escape(thousands)
        if not re.fullmatch(rf"[+-]?\d{{1,3}}({mark}\d{{2,3}})*{mark}\d{{3}}", whole):
            return None
        cell = cell.replace(thousands, "")
    if decimal == ",":
        cell = cell.replace(".", "_").replace(",", ".")
    try:
        return None if "_" in cell else float(cell.lower().replace("1.#inf", "inf"))
    except ValueError:
        return None


def _is_number(cell: str) -> bool:
    value = number(cell)
    return value is not None and value == value


def _is_text(cell: str) -> bool:
    return number(cell) is None


def _is_label(cell: str) -> bool:
    """Whether the cell names something; `1,5` and `10,500` are more likely numbers, written otherwise."""
    return _is_text(cell) and not (_GROUPS.fullmatch(cell.strip()) or _FRACTION.fullmatch(cell.strip()))


def _advice(cell: str, args: Arguments) -> str:
    """What may be wrong with a cell that is no number, as a clause."""
    cell = re.sub("[\u00a0\u202f]", " ", cell).strip()
    grouped, fraction = _GROUPS.fullmatch(cell), _FRACTION.fullmatch(cell)
    advice = []
    if fraction and args.decimal == ".":
        advice.append("if the comma is the decimal mark, say --decimal ,")
    elif args.decimal == "," and "." in cell:
        advice.append("with --decimal , a number has no point")
    if grouped:
        mark = shlex.quote(grouped[1])
        other = " --decimal ," * (grouped[1] == args.decimal == ".")
        advice.insert(args.decimal == ",", f"if {mark} separates thousands, say --thousands {mark}{other}")
    elif fraction and args.decimal == ".":
        advice = ["decimals need a point, or say --decimal ,"]
    return "".join(f"; {part}" for part in advice)


def _whole(cells: Sequence[Any]) -> Any:
    """The cells as whole numbers, or None."""
    if not all(re.fullmatch(r"\d{1,15}(\.0*)?", str(cell).strip()) for cell in cells):
        return None
    return np.array([int(float(str(cell))) for cell in cells])


def _counts_up(cells: list[str]) -> bool:
    """Whether the cells are equally spaced increasing whole numbers, as only names are."""
    whole = _whole(cells)
    steps = None if whole is None else np.diff(whole)
    return steps is not None and bool((steps > 0).all() and (steps == steps[:1]).all())


# ---- the file ---------------------------------------------------------------------------------------


def needed(source: Source, package: str) -> Any:
    """The package that reads such files."""
    from importlib import import_module

    try:
        return import_module(package)
    except ImportError:
        raise UserError(f"{source}: reading such files needs {package}; pip install {package}") from None


class _Text:
    """Lines of cells: what separates them, and how many lines before them are comments."""

    def __init__(self, source: Source, args: Arguments):
        self.source, self.args, self.comments = source, args, 0
        with source.open_text() as file:
            top: list[tuple[int, str]] = []
            for i, line in enumerate(self.lines(file)):
                if line.strip():
                    top.append((i, line))
                    if not line.startswith("#"):
                        break
        last = top[-1][1] if top else ""
        self.delimiter = args.delimiter or ("\t" if source.kind == ".tsv" else self._delimiter(last))
        widths = [len(next(csv.reader([line], delimiter=self.delimiter))) for _, line in top]
        other = [i + 1 for (i, _), width in zip(top, widths, strict=True) if width != widths[-1]]
        self.comments = other[-1] if other else 0

    def _delimiter(self, line: str) -> str:
        outside_quotes = re.sub(r'"[^"]*"', "", line)
        marks = ";\t" if self.args.decimal == "," else ";\t," if self.args.thousands == "," else ",;\t"
        return next((mark for mark in marks if mark in outside_quotes), marks[0])

    def lines(self, file: Any) -> Iterator[str]:
        """Those that are no comments, whose place an empty line takes."""
        mark = self.args.comment
        for i, line in enumerate(file):
            if i < self.comments:
                line = "\n"
            yield line.split(mark)[0] + "\n" if mark and mark in line else line

    def records(self) -> Iterator[Record]:
        """Line number and cells of each line that is not blank."""
        with self.source.open_text() as file:
            reader = csv.reader(self.lines(file), delimiter=self.delimiter, strict=True)
            try:
                for cells in reader:
                    if len(cells) > 1 or "".join(cells).strip():
                        yield reader.line_num, cells
            except csv.Error as error:
                raise UserError(f"{self.source}: line {reader.line_num}: {error}") from None

    def frame(self, pandas: Any, skipped: int, model: Record) -> Any:
        """The rows below the first lines, as wide as the model; the first column as it is written."""
        args = self.args
        try:
            with self.source.open_text() as file:
                for _ in range(skipped):
                    next(file)
                frame = pandas.read_csv(
                    file, sep=self.delimiter, header=None, names=range(len(model[1])), decimal=args.decimal,
                    comment=args.comment, na_values=_SPELLED, keep_default_na=False, low_memory=False,
                    converters=dict.fromkeys(range(1 if args.thousands is None else len(model[1])), str),
                    float_precision="round_trip", index_col=False,
                )  # fmt: skip
        except pandas.errors.ParserError:
            self._check_widths(skipped, model)
            raise
        if frame.shape[1] > 1 and frame.iloc[:, -1].isna().any():  # or cells that are not there
            self._check_widths(skipped, model)
        return frame

    def _check_widths(self, skipped: int, model: Record) -> None:
        for record in self.records():
            if record[0] > skipped and len(record[1]) != len(model[1]):
                raise self.ragged(record, model)

    def ragged(self, record: Record, model: Record) -> UserError:
        (line, cells), (model_line, model_cells) = record, model
        marks = [one[:1] for one in (cells[0], model_cells[0]) if one[:1] in tuple("#!%")]
        advice = f"; if {marks[0]} begins a comment, say --comment '{marks[0]}'" if marks else ""
        many = counted(len(cells), "cell")
        return UserError(
            f"{self.source}: line {line} has {many}, line {model_line} has {len(model_cells)}{advice}"
        )


def read_text(source: Source, args: Arguments) -> Table:
    """What the arguments do not say of the layout is told from the first two lines."""
    pandas, text = needed(source, "pandas"), _Text(source, args)
    top = list(islice(text.records(), 2))
    if not top:
        raise UserError(f"{source} is empty")
    first, second = top[0][1], top[1][1] if len(top) > 1 else None
    header = _has_header(first, second, args)
    if header:
        if second is None:
            raise UserError(f"{source} has a header but no rows")
        first = [re.sub("^# *", "", first[0]), *first[1:]]
    frame = text.frame(pandas, top[0][0] if header else text.comments, top[int(header)])
    short, names = False, None
    if header:
        extra = frame.shape[1] - len(first)
        if extra > 0 and frame.iloc[:, -extra:].isna().all(axis=None):  # a comma at the end of each row
            frame = frame.iloc[:, : len(first)]
        elif extra < 0 and not "".join(first[extra:]).strip():
            first = first[:extra]
        elif extra == 1 and args.row_names is not False:
            short = True
        elif extra:
            raise text.ragged(top[1], top[0])
        while len(first) > 1 and not first[-1].strip() and not short and frame.iloc[:, -1].isna().all():
            first, frame = first[:-1], frame.iloc[:, :-1]
        names = ["", *first] if short else first
    index = _index(source, frame, names, _has_row_names(first, frame, short, header, args), args)
    table = table_of(frame, names, index, source, args, text.records, header)
    _question_layout(source, args, table, first, header, index == [0])
    bad = np.argwhere(~np.isfinite(table.matrix))
    if len(bad) and not (args.nan or args.impute):
        what = "is missing" if np.isnan(table.matrix[tuple(bad[0])]) else "is infinite"
        more = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
        raise UserError(
            f"{source}: {table.cell(*bad[0])} {what}{more}; impute such cells, or drop their rows"
        )
    return table


# ---- its layout -------------------------------------------------------------------------------------


def _labeled(second: list[str] | None) -> bool:
    return second is not None and len(second) > 1 and _is_label(second[0])


def _has_header(first: list[str], second: list[str] | None, args: Arguments) -> bool:
    if args.header is not None:
        return bool(args.header)
    if args.decimal != ".":
        first = [cell if _is_number(cell) else cell.replace(",", ".") for cell in first]
    short = second is not None and len(first) + 1 == len(second)
    cells = first if short or len(first) == 1 or _is_number(first[0]) else first[1:]
    mostly_text = sum(map(_is_text, cells)) > sum(map(_is_number, cells))
    corner = len(first) > 1 and not first[0].strip() and not short
    numbered = corner and (_labeled(second) or _counts_up(first[1:]))
    return mostly_text or numbered or (short and _labeled(second))


def _has_row_names(first: list[str], frame: Any, short: bool, header: bool, args: Arguments) -> bool | None:
    """Whether the first two lines say that there are; None if they do not."""
    if args.row_names is not None or args.index_column is not None:
        return bool(args.row_names)
    if header:
        cells = (cell for cell in frame.iloc[:, 0] if cell.strip().lower() not in MISSING)
        labeled = frame.shape[1] > 1 and _is_label(next(cells, "0"))
        return short or (len(first) > 1 and not first[0].strip()) or labeled or None
    return (len(first) > 1 and _is_label(first[0])) or None


def _index(
    source: Source, frame: Any, names: list[str] | None, named: bool | None, args: Arguments
) -> list[int]:
    """The columns that name the rows."""
    if args.index_column is not None:
        return [place(source, one, names, frame.shape[1], "index-column") for one in args.index_column]
    if named is None and frame.shape[1] > 1:
        named = numbers_rows(source, frame.iloc[:, 0].tolist(), names[0] if names else "", args)
    return [0] if named else []


def numbers_rows(source: Source, cells: Sequence[Any], name: str, args: Arguments) -> bool:
    """Whether the first column looks like numbers of the rows, which is then noted."""
    found = _looks_like_index(cells, name)
    if found:
        args.notes.append(
            f"column 1 of {source} looks like numbers of the rows and was read as row names; if it is a "
            "variable, say --no-row-names"
        )
    return found


def _looks_like_index(cells: Sequence[Any], name: str) -> bool:
    """Whether the first column numbers the rows rather than measures something: whole numbers that do not
    repeat, of which the name says so, or which count, or rise with as many digits each, as years do."""
    whole = _whole(cells)
    if whole is None or len(whole) < INDEX_ROWS or len(np.unique(whole)) < len(whole):
        return False
    steps, digits = np.diff(whole), len(str(whole[0]))
    rising = bool((steps > 0).all())
    alike = digits >= 4 and digits == len(str(whole[-1]))
    return bool(_IDENTIFIER.fullmatch(name.strip())) or (rising and (alike or bool((steps == 1).all())))


def _question_layout(
    source: Source, args: Arguments, table: Table, first: list[str], header: bool, row_names: bool
) -> None:
    """Point out names that look like numbers and were read as data."""
    n, p = table.matrix.shape
    told = args.row_names is not None or args.index_column is not None
    if args.header is None and not header and len(first) > 3 and _counts_up(first[row_names:]):
        args.notes.append(f"line 1 of {source} was read as data; if it is a header, say --header")
    if not told and not row_names and n > 2 and p > 1:
        steps = np.diff(table.matrix[:, 0])
        if (steps == 1).all() or (((steps > 0) & (steps == np.round(steps))).all() and n >= INDEX_ROWS):
            what = "counts the rows" if (steps == 1).all() else "rises from row to row"
            args.notes.append(
                f"column 1 of {source} {what}; if it is not a variable, say --row-names or --index-column 1"
            )
    if not told and row_names and table.row_names and len(first) > p and _is_text(first[0]):
        one = next((name for name in table.row_names if _is_number(name)), None)
        if one is not None and _is_label(table.row_names[0]):
            args.notes.append(
                f"column 1 of {source} was read as row names, though {one.strip()} is a number; if it is "
                "a variable, say --no-row-names"
            )


# ---- columns ----------------------------------------------------------------------------------------


def table_of(
    frame: Any, names: Sequence[str] | None, index: Sequence[int], source: Source, args: Arguments,
    records: Callable[[], Iterator[Record]] | None = None, header: bool = False, order: Any = "C",
) -> Table:  # fmt: skip
    """Columns of numbers as a matrix; those of words are left out, and a few words among numbers refused."""
    width = frame.shape[1]
    frame = frame.set_axis(range(width), axis=1)
    labels = [["" if one is None else str(one) for one in frame[j]] for j in index]
    dropped = {place(source, one, names, width, "drop") for one in args.drop or ()}
    kept = [j for j in range(width) if j not in {*index, *dropped}]
    if not kept and index and width == len(index):
        raise UserError(f"{source} has row names only")
    table = Table(None, None if names is None else tuple(names))
    if records is not None:
        line = lambda i: next(islice(records(), i + header, None))[0]  # noqa: E731
        table = replace(table, unit="line", line=line)
    first: dict[int, tuple[int, str]] = {}  # of the cells that are no numbers: the row, and what is there
    for j in kept:
        if isinstance(frame.dtypes[j], np.dtype) and frame.dtypes[j].kind in "fiub":
            continue
        cells = frame[j].astype(object).where(frame[j].notna(), None).tolist()
        values = [_value(cell, args) for cell in cells]
        bad = [i for i, value in enumerate(values) if value is None]
        if not bad:
            frame[j] = np.array(values, np.float64)
            continue
        first[j] = bad[0], str(cells[bad[0]])
        labels_there = sum(not isinstance(cells[i], str) or _is_label(cells[i]) for i in bad)
        known = sum(value is not None and value == value for value in values)
        if labels_there <= known and not args.keep_going:
            raise UserError(_no_number(source, table, j, *first[j], bool(index), args))
    if len(first) == len(kept) and first:
        j = next(iter(first))
        raise UserError(_no_number(source, table, j, *first[j], bool(index), args))
    kept = [j for j in kept if j not in first]
    if first:
        args.notes.append(_left_out(source, table, first))
    single = bool(kept) and all(dtype.name in ("float32", "float16") for dtype in frame[kept].dtypes)
    return replace(
        table,
        matrix=np.require(frame[kept].to_numpy(np.float32 if single else np.float64), None, order),
        names=None if names is None else tuple(names[j] for j in kept),
        row_names=tuple(map(" ".join, zip(*labels, strict=True))) if index else None,
        column=lambda j: kept[j] + 1,
        words={_title(names, j): frame[j].tolist() for j in first},
    )


def _value(cell: Any, args: Arguments) -> float | None:
    if isinstance(cell, str):
        return number(cell, args.decimal, args.thousands)
    try:
        return np.nan if cell is None else float(cell)
    except (TypeError, ValueError):
        return None


def place(source: object, wanted: str, names: Sequence[str] | None, width: int, option: str) -> int:
    """Of a column, by its name or its number."""
    if names and wanted in names:
        return list(names).index(wanted)
    if wanted.isdecimal() and 1 <= int(wanted) <= width:
        return int(wanted) - 1
    raise UserError(f"argument --{option}: {source} has no column {wanted!r}")


def _title(names: Sequence[str] | None, j: int) -> str:
    return names[j] if names and names[j].strip() else f"column {j + 1}"


def _left_out(source: Source, table: Table, first: dict[int, tuple[int, str]]) -> str:
    shown = [f"{_title(table.names, j)!r} ({cell!r})" for j, (_, cell) in islice(first.items(), INFO_NAMES)]
    more = ", ..." if len(first) > len(shown) else ""
    many = "a column" if len(first) == 1 else f"{len(first)} columns"
    return (
        f"left out {many} of {source} without numbers: {', '.join(shown)}{more}; --index-column takes one as "
        "names of the rows"
    )


def _no_number(source: Source, table: Table, j: int, i: int, cell: str, named: bool, args: Arguments) -> str:
    shown = cell if len(cell) <= 30 else cell[:27] + "..."
    where = table.cell(i, j)
    advice = _advice(cell, args)
    if advice or table.unit == "row":
        pass
    elif len(cell.split()) > 1 and all(map(_is_number, cell.split())):
        advice = "; commas, semicolons or tabs must separate cells"
    elif where.startswith("line 1,"):
        advice = "; if line 1 is a header, say --header"
    elif j == 0 and not named:
        advice = "; if column 1 is row names, say --row-names"
    else:
        advice = f"; correct it, or leave the column out: --drop {shlex.quote(_title(table.names, j))}"
    return f"{source}: {where} is not a number: {shown!r}{advice}"
