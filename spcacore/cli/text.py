"""Text files as tables, by pandas: a header, row names and columns of words are recognized."""

from __future__ import annotations

import csv
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from itertools import islice
from typing import Any

import numpy as np

from .._limits import INDEX_ROWS, INFO_NAMES
from .._messages import counted
from .._records import replaced
from .source import Source
from .table import Arguments, Table, UserError

__all__ = ["needed", "number", "place", "read_text", "table_of", "with_index"]
__dir__ = __all__.copy

# What says that a cell is missing, in any case of its letters; besides an empty one.
_MISSING = [
    "na", "nan", "n/a", "n.a.", "n.a", "null", "none", "nil", "nat", "missing", "<na>", "(na)",
    "(null)", "(missing)", "?", "-", "--", "---", "–", "—", ".", "..", "*", "\\n", "#n/a", "#na",
    "#div/0!", "#value!", "#ref!", "#name?", "#num!", "#null!", "1.#qnan", "-1.#qnan", "1.#ind",
    "-1.#ind", "+nan", "-nan", "nan(ind)", "-nan(ind)",
]  # fmt: skip
_SPELLED = ["", "#N/A N/A", "NaN", "NaT", *_MISSING, *map(str.upper, _MISSING), *map(str.title, _MISSING)]
_GROUPS = re.compile(r"[+-]?\d{1,3}(?:[,.' _]\d{2,3})*([,.' _])\d{3}(?:[.,]\d+)?")  # 10,500 and 1.234,5
_FRACTION = re.compile(r"[+-]?\d*[.,]\d+(?:[eE][+-]?\d+)?")  # 1,5
_IDENTIFIER = re.compile(
    r"(?i:(.*[\W_])?(id|ids|index|idx|key|nr|no|case|sample|subject|patient|participant|obs|observation|row|"
    r"barcode)|unnamed: \d+)|.*[a-z]I[Dd]"
)
_Record = tuple[int, list[str]]  # line number and cells

# ---- cells ------------------------------------------------------------------------------------------


def number(cell: Any, decimal: str = ".", thousands: str | None = None) -> float | None:
    """What the cell holds: a number, NaN if it is missing, and None if it holds words."""
    if not isinstance(cell, str):
        try:
            return np.nan if cell is None else float(cell)
        except (TypeError, ValueError):
            return None
    cell = _stripped(cell).replace("−", "-")
    if cell.lower() in _MISSING or cell in _SPELLED:
        return np.nan
    if thousands is not None and thousands in cell:
        mark = re.escape(thousands)
        if not re.fullmatch(rf"[+-]?\d{{1,3}}({mark}\d{{2,3}})*{mark}\d{{3}}", cell.split(decimal)[0]):
            return None
        cell = cell.replace(thousands, "")
    if decimal == ",":
        cell = cell.replace(".", "_").replace(",", ".")
    try:
        return None if "_" in cell else float(cell.lower().replace("1.#inf", "inf"))
    except ValueError:
        return None


def _stripped(cell: str) -> str:
    return re.sub("[\u00a0\u202f]", " ", cell).strip()


def _is_number(cell: str) -> bool:
    value = number(cell)
    return value is not None and value == value


def _is_label(cell: Any) -> bool:
    """Whether the cell names something; `1,5` and `10,500` are more likely numbers, written otherwise."""
    written = isinstance(cell, str) and (_GROUPS.fullmatch(cell.strip()) or _FRACTION.fullmatch(cell.strip()))
    return number(cell) is None and not written


def _advice(cell: str, args: Arguments) -> str:
    """What may be wrong with a cell that is no number, as a clause."""
    cell = _stripped(cell)
    grouped, fraction = _GROUPS.fullmatch(cell), _FRACTION.fullmatch(cell) and args.decimal == "."
    advice = ["with --decimal , a number has no point"] if args.decimal == "," and "." in cell else []
    if grouped:
        mark = shlex.quote(grouped[1])
        other = " --decimal ," * (grouped[1] == args.decimal == ".")
        advice.append(f"if {mark} separates thousands, say --thousands {mark}{other}")
    if fraction:
        advice.append(
            "if the comma is the decimal mark, say --decimal ," if grouped
            else "decimals need a point, or say --decimal ,"
        )  # fmt: skip
    return "".join(f"; {part}" for part in advice)


def _whole(cells: Sequence[Any]) -> Any:
    """The cells as whole numbers, or None."""
    if not all(re.fullmatch(r"\d{1,15}(\.0*)?", str(cell).strip()) for cell in cells):
        return None
    return np.array([int(float(cell)) for cell in cells])


def _counts_up(cells: Sequence[Any], step: int | None = None) -> bool:
    """Whether the cells are equally spaced increasing whole numbers, as only names are."""
    whole = _whole(cells)
    steps = np.zeros(1) if whole is None else np.diff(whole)
    return bool((steps > 0).all() and (steps == (step or steps[:1])).all())


# ---- the file ---------------------------------------------------------------------------------------


def needed(source: Source, package: str) -> Any:
    """The package that reads such files."""
    try:
        return import_module(package)
    except ImportError:
        raise UserError(f"{source}: reading such files needs {package}; pip install {package}") from None


class _Text:
    """Lines of cells: what separates them, and how many lines before them are comments."""

    def __init__(self, source: Source, args: Arguments):
        self.source, self.args, self.comments = source, args, 0
        top: list[tuple[int, str]] = []
        with source.open_text() as file:
            for i, line in enumerate(self.lines(file)):
                if line.strip():
                    top.append((i, line))
                    if not line.startswith("#"):
                        break
        marks = ";\t" if args.decimal == "," else ";\t," if args.thousands == "," else ",;\t"
        found = re.sub(r'"[^"]*"', "", top[-1][1]) if top else ""
        sniffed = "\t" if source.kind == ".tsv" else next((m for m in marks if m in found), marks[0])
        self.delimiter = args.delimiter or sniffed
        widths = [len(next(csv.reader([line], delimiter=self.delimiter))) for _, line in top]
        self.comments = max(
            (i + 1 for (i, _), w in zip(top, widths, strict=True) if w != widths[-1]), default=0
        )

    def lines(self, file: Any) -> Iterator[str]:
        """Those that are no comments, whose place an empty line takes."""
        mark = self.args.comment
        for i, line in enumerate(file):
            line = "\n" if i < self.comments else line
            yield line.split(mark)[0] + "\n" if mark and mark in line else line

    def records(self) -> Iterator[_Record]:
        """Line number and cells of each line that is not blank."""
        with self.source.open_text() as file:
            reader = csv.reader(self.lines(file), delimiter=self.delimiter, strict=True)
            try:
                for cells in reader:
                    if len(cells) > 1 or "".join(cells).strip():
                        yield reader.line_num, cells
            except csv.Error as error:
                raise UserError(f"{self.source}: line {reader.line_num}: {error}") from None

    def frame(self, skipped: int, model: _Record) -> Any:
        """The rows below the first lines, as wide as the model; the first column as it is written."""
        pandas, args, width = needed(self.source, "pandas"), self.args, len(model[1])
        frame = None
        with self.source.open_text() as file:
            for _ in range(skipped):
                next(file)
            try:
                frame = pandas.read_csv(
                    file, sep=self.delimiter, header=None, names=range(width), decimal=args.decimal,
                    comment=args.comment, na_values=_SPELLED, keep_default_na=False, low_memory=False,
                    converters=dict.fromkeys(range(1 if args.thousands is None else width), str),
                    float_precision="round_trip", index_col=False,
                )  # fmt: skip
            except pandas.errors.ParserError as error:
                wrong = error
        if frame is None or (width > 1 and frame.iloc[:, -1].isna().any()):  # or cells that are not there
            for record in self.records():
                if record[0] > skipped and len(record[1]) != width:
                    raise self.ragged(record, model)
        if frame is None:
            raise wrong
        return frame

    def ragged(self, record: _Record, model: _Record) -> UserError:
        (line, cells), (model_line, model_cells) = record, model
        mark = next((one[:1] for one in (cells[0], model_cells[0]) if one[:1] in tuple("#!%")), None)
        advice = f"; if {mark} begins a comment, say --comment '{mark}'" if mark else ""
        many = counted(len(cells), "cell")
        return UserError(
            f"{self.source}: line {line} has {many}, line {model_line} has {len(model_cells)}{advice}"
        )


def read_text(source: Source, args: Arguments) -> Table:
    """What the arguments do not say of the layout is told from the first two lines."""
    text = _Text(source, args)
    top = list(islice(text.records(), 2))
    if not top:
        raise UserError(f"{source} is empty")
    first, second = top[0][1], top[-1][1] if len(top) > 1 else None
    header = _has_header(first, second, args)
    if header and second is None:
        raise UserError(f"{source} has a header but no rows")
    frame = text.frame(top[0][0] if header else text.comments, top[int(header)])
    names = [re.sub("^# *", "", first[0]), *first[1:]] if header else None
    if names is not None:
        extra = frame.shape[1] - len(names)
        if extra > 0 and frame.iloc[:, -extra:].isna().all(axis=None):  # a comma at the end of each row
            frame = frame.iloc[:, : len(names)]
        elif extra < 0 and not "".join(names[extra:]).strip():
            names = names[:extra]
        elif extra == 1 and args.row_names is not False:
            names = ["", *names]
        elif extra:
            raise text.ragged(top[1], top[0])
        while len(names) > 1 and not names[-1].strip() and frame.iloc[:, -1].isna().all():
            names, frame = names[:-1], frame.iloc[:, :-1]
    index = with_index(frame, names, source, args)
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


def _has_header(first: list[str], second: list[str] | None, args: Arguments) -> bool:
    if args.header is not None:
        return bool(args.header)
    if args.decimal != ".":
        first = [cell if _is_number(cell) else cell.replace(",", ".") for cell in first]
    labeled = second is not None and len(second) > 1 and _is_label(second[0])
    short = second is not None and len(first) + 1 == len(second)
    cells = first if short or len(first) == 1 or _is_number(first[0]) else first[1:]
    numbers = sum(map(_is_number, cells))
    words = sum(number(cell) is None for cell in cells)
    numbered = len(first) > 1 and not first[0].strip() and not short and (labeled or _counts_up(first[1:]))
    return words > numbers or numbered or (short and labeled)


def with_index(frame: Any, names: Sequence[str] | None, source: Source, args: Arguments) -> list[int]:
    """The columns that name the rows: those that are given, or the first if it looks like that."""
    if args.index_column is not None:
        return [place(source, one, names, frame.shape[1], "index-column") for one in args.index_column]
    if args.row_names is not None:
        return [0] * bool(args.row_names)
    if frame.shape[1] < 2:
        return []
    cells = frame.iloc[:, 0].dropna().tolist()
    known = (cell for cell in cells if number(cell) is None or number(cell) == number(cell))
    if (names and not names[0].strip()) or _is_label(next(known, "0")):
        return [0]
    whole = _whole(cells)
    if whole is None or len(whole) < INDEX_ROWS or len(np.unique(whole)) < len(whole):
        return []
    # whole numbers that do not repeat: the name says it, or they count, or rise with as many digits each
    alike = 4 <= len(str(whole[0])) == len(str(whole[-1]))
    counts = (np.diff(whole) > 0).all() and (alike or (np.diff(whole) == 1).all())
    if not counts and not (names and _IDENTIFIER.fullmatch(names[0].strip())):
        return []
    args.notes.append(
        f"column 1 of {source} looks like numbers of the rows and was read as row names; if it is a "
        "variable, say --no-row-names"
    )
    return [0]


def _question_layout(
    source: Source, args: Arguments, table: Table, first: list[str], header: bool, row_names: bool
) -> None:
    """Point out names that look like numbers and were read as data."""
    n, p = table.matrix.shape
    if args.header is None and not header and len(first) > 3 and _counts_up(first[row_names:]):
        args.notes.append(f"line 1 of {source} was read as data; if it is a header, say --header")
    if args.row_names is not None or args.index_column is not None:
        return
    if not row_names and n > 2 and p > 1:
        steps = np.diff(table.matrix[:, 0])
        if (steps == 1).all() or (n >= INDEX_ROWS and ((steps > 0) & (steps == np.round(steps))).all()):
            what = "counts the rows" if (steps == 1).all() else "rises from row to row"
            args.notes.append(
                f"column 1 of {source} {what}; if it is not a variable, say --row-names or --index-column 1"
            )
    if row_names and table.row_names and len(first) > p and number(first[0]) is None:
        one = next((name for name in table.row_names if _is_number(name)), None)
        if one is not None and _is_label(table.row_names[0]):
            args.notes.append(
                f"column 1 of {source} was read as row names, though {one.strip()} is a number; if it is "
                "a variable, say --no-row-names"
            )


# ---- columns ----------------------------------------------------------------------------------------


def table_of(
    frame: Any, names: Sequence[str] | None, index: Sequence[int], source: Source, args: Arguments,
    records: Callable[[], Iterator[_Record]] | None = None, header: bool = False, order: Any = "C",
) -> Table:  # fmt: skip
    """Columns of numbers as a matrix; those of words are left out, and a few words among numbers refused."""
    width = frame.shape[1]
    frame = frame.set_axis(range(width), axis=1)
    dropped = {place(source, one, names, width, "drop") for one in args.drop or ()}
    kept = [j for j in range(width) if j not in {*index, *dropped}]
    if width == len(index):
        raise UserError(f"{source} has row names only")
    table = Table(None, None if names is None else tuple(names))
    if records is not None:
        line = lambda i: next(islice(records(), i + header, None))[0]  # noqa: E731
        table = replaced(table, unit="line", line=line)
    first: dict[int, tuple[int, str]] = {}  # of the cells that are no numbers: the row, and what is there
    for j in kept:
        if isinstance(frame.dtypes[j], np.dtype) and frame.dtypes[j].kind in "fiub":
            continue
        cells = frame[j].astype(object).where(frame[j].notna(), None).tolist()
        values = [number(cell, args.decimal, args.thousands) for cell in cells]
        bad = [i for i, value in enumerate(values) if value is None]
        if not bad:
            frame[j] = np.array(values, np.float64)
            continue
        first[j] = bad[0], str(cells[bad[0]])
        known = sum(value is not None and value == value for value in values)
        if sum(_is_label(cells[i]) for i in bad) <= known and not args.keep_going:
            raise _no_number(source, table, j, *first[j], bool(index), args)
    if first and len(first) == len(kept):
        j = next(iter(first))
        raise _no_number(source, table, j, *first[j], bool(index), args)
    if first:
        shown = ", ".join(f"{_title(names, j)!r} ({c!r})" for j, (_, c) in islice(first.items(), INFO_NAMES))
        many = "a column" if len(first) == 1 else f"{len(first)} columns"
        args.notes.append(
            f"left out {many} of {source} without numbers: {shown}{', ...' * (len(first) > INFO_NAMES)}; "
            "--index-column takes one as names of the rows"
        )
    kept = [j for j in kept if j not in first]
    single = bool(kept) and all(dtype.name in ("float32", "float16") for dtype in frame[kept].dtypes)
    labels = [["" if one is None else str(one) for one in frame[j]] for j in index]
    return replaced(
        table,
        matrix=np.require(frame[kept].to_numpy(np.float32 if single else np.float64), None, order),
        names=None if names is None else tuple(names[j] for j in kept),
        row_names=tuple(map(" ".join, zip(*labels, strict=True))) if index else None,
        column=lambda j: kept[j] + 1,
        words={_title(names, j): frame[j].tolist() for j in first},
    )


def place(source: object, wanted: str, names: Sequence[str] | None, width: int, option: str) -> int:
    """Of a column, by its name or its number."""
    if names and wanted in names:
        return list(names).index(wanted)
    if wanted.isdecimal() and 1 <= int(wanted) <= width:
        return int(wanted) - 1
    raise UserError(f"argument --{option}: {source} has no column {wanted!r}")


def _title(names: Sequence[str] | None, j: int) -> str:
    return names[j] if names and names[j].strip() else f"column {j + 1}"


def _no_number(
    source: Source, table: Table, j: int, i: int, cell: str, named: bool, args: Arguments
) -> UserError:
    shown = cell if len(cell) <= 30 else cell[:27] + "..."
    where, advice = table.cell(i, j), _advice(cell, args)
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
    return UserError(f"{source}: {where} is not a number: {shown!r}{advice}")
