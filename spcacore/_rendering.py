"""Results as plain text and as HTML: what components explain, and which variables have large loadings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from html import escape
from typing import Any, NamedTuple

import numpy as np

from ._limits import NAME_LETTERS, READ_COMPONENTS, READ_VARIABLES
from ._messages import counted
from ._types import AnyArray, Array, Index, Mask
from ._validation import is_flag
from .linalg.scaling import descending, divisor

_LIGHT = "--above:#e58c7d;--below:#84b5d8;--share:#0072b2;--dense:#b5b5b5"
_DARK = "--above:#93332c;--below:#245f92;--share:#4ea3d8;--dense:#6b6b6b"
STYLE = (  # the colors of the system, unless the page says which it has
    f".spcacore{{{_LIGHT};overflow-x:auto}}"
    f"@media (prefers-color-scheme:dark){{.spcacore{{{_DARK}}}}}"
    f"[data-jp-theme-light=true] .spcacore,[data-theme=light] .spcacore,.vscode-light .spcacore{{{_LIGHT}}}"
    f"[data-jp-theme-light=false] .spcacore,[data-theme=dark] .spcacore,.vscode-dark .spcacore{{{_DARK}}}"
    ".spcacore table{border-collapse:collapse;margin:.5em 0;font-variant-numeric:tabular-nums;color:inherit}"
    ".spcacore th,.spcacore td{padding:.15em .6em;text-align:right;background:none}"
    ".spcacore th:first-child{text-align:left;font-weight:normal}"
    ".spcacore thead th{border-bottom:1px solid;font-weight:bold}"
    ".spcacore td.above{background:linear-gradient(90deg,var(--above) var(--size),transparent 0)}"
    ".spcacore td.below{background:linear-gradient(90deg,var(--below) var(--size),transparent 0)}"
    ".spcacore td.bars{min-width:9em}"
    ".spcacore i{display:block;height:.45em;background:var(--share)}"
    ".spcacore i.dense{background:var(--dense)}"
)

# ---- numbers and names ------------------------------------------------------------------------------


def significant(value: float) -> str:
    return f"{value:#.4g}".rstrip(".")


def percent(share: float) -> str:
    return f"{100 * share:.1f}"


def gap(share: float | None) -> str:
    """Write a gap with two digits, so that only a proof, which holds up to rounding, is written as 0."""
    return "-" if share is None else "0" if abs(share) < 1e-12 else f"{100 * share:#.2g}".rstrip(".")


def printable(text: str) -> str:
    """Replace characters that would move the cursor or color the terminal."""
    return "".join(c if c.isprintable() else "?" for c in text)


def shortened(name: str) -> str:
    """Write a name on one line; the middle of a long one is left out, as names differ at their ends."""
    name = " ".join(name.split())
    if len(name) <= NAME_LETTERS:
        return name
    tail = NAME_LETTERS // 3
    return f"{name[: NAME_LETTERS - tail - 1].rstrip()}…{name[-tail:].lstrip()}"


def name_of(names: Sequence[str] | None, j: int) -> str:
    """Return the name of a variable for a table, or x1, x2, ..."""
    return f"x{j + 1}" if names is None else printable(shortened(names[j]))


def aligned_lines(rows: Sequence[Sequence[str]]) -> list[str]:
    """Write rows of words as lines, with the first column to the left and the others to the right."""
    first, *others = (max(map(len, column)) for column in zip(*rows, strict=True))
    return ["  ".join([name.ljust(first), *map(str.rjust, cells, others)]).rstrip() for name, *cells in rows]


# ---- tables of words --------------------------------------------------------------------------------


class Table(NamedTuple):
    """Titles, and rows that each begin with a name; in HTML a cell may be written already."""

    titles: Sequence[str]
    rows: Sequence[Sequence[str]]


Part = Table | str  # a part of a report: a table, or a note below it

_TITLES = {"explained_variance_ratio": "% of the variance", "p_value": "p-value", "frequency": "frequency %"}
_SHARES = ("explained_variance_ratio", "frequency")


def _word(name: str, value: Any) -> str:
    """Write an entry of the column `name`."""
    if value is None:
        return ""
    if is_flag(value):
        return "yes" if value else ""
    if isinstance(value, (int, np.integer)):
        return str(value)
    if isinstance(value, (float, np.floating)):
        return percent(float(value)) if name in _SHARES else significant(float(value))
    return printable(shortened(str(value)))


def table_of(
    of: str, index: Sequence[Any], columns: Mapping[str, Any], rows: Sequence[int] | None = None,
    noun: str = "row",
) -> list[Part]:  # fmt: skip
    """Return a table of the rows, by default the first ones, and a note about those left out.

    `of` is the title of the index, `noun` what the note calls a row.
    """
    chosen = range(len(index)) if rows is None else rows
    shown = chosen[:READ_VARIABLES]
    titles = [of.replace("_", " "), *(_TITLES.get(name, name.replace("_", " ")) for name in columns)]
    words = [[_word(of, index[i]), *(_word(name, x[i]) for name, x in columns.items())] for i in shown]
    left = len(chosen) - len(shown)
    return [Table(titles, words), *([f"and {counted(left, f'more {noun}')}"] if left else [])]


# ---- what is said of loadings -----------------------------------------------------------------------


def percentages(V: AnyArray) -> Array:
    """Scale each column so that its magnitudes add up to 100, at any scale; a zero column stays."""
    size = np.abs(V).max(axis=0, initial=0)
    V = V / divisor(size).astype(np.float64)
    return V * (100 / np.maximum(np.abs(V).sum(axis=0), 1))


def leading(v: AnyArray, limit: int | None = None) -> Index:
    """Return the positions of the nonzeros, the largest magnitude first; ties keep their order."""
    index = np.flatnonzero(v)
    return index[descending(np.abs(v[index]), limit)]


def leading_of_all(V: AnyArray, limit: int) -> list[int]:
    """Return at most `limit` variables that lead a component.

    Each component in turn adds its next largest variable. The result is in the order of the components.
    """
    orders = [leading(v, limit) for v in V.T]
    owner: dict[int, int] = {}
    for rank in range(limit):
        for t, order in enumerate(orders):
            if rank < len(order) and len(owner) < limit:
                owner.setdefault(int(order[rank]), t)
    return sorted(owner, key=owner.__getitem__)


def title_of(result: Any) -> str:
    """Return the first line about a result: its type, method and size, and the share explained."""
    sides = result._sides()
    r = sides[0].loadings.shape[1]
    noun = "component" if len(sides) == 1 else "pair"
    *others, last = (len(side.loadings) for side in sides)
    size = " and ".join([*map(str, others), counted(last, "variable")])
    text = f"{type(result).__name__} by {result.method}: {counted(r, noun)} of {size}"
    shares = getattr(result, "explained_variance_ratio", None)
    share = [] if shares is None else [f"{percent(float(np.sum(shares)))} % of the variance"]
    return ", ".join([text, *share, *result._notes()])


def component_columns(result: Any) -> dict[str, list[str]]:
    """Return what a result has for each component, as columns of words under their titles."""
    known: dict[str, list[str]] = {
        f"nonzeros{_of(side)}": [str(np.count_nonzero(v)) for v in side.loadings.T[:READ_COMPONENTS]]
        for side in result._sides()
    }

    def add(title: str, name: str, word: Any = significant, summed: bool = False) -> None:
        """Add the attribute `name` as a column, if the result has it."""
        values = getattr(result, name, None)
        if values is not None:
            values = np.cumsum(values) if summed else np.atleast_1d(values)
            known[title] = [word(float(x)) for x in values[:READ_COMPONENTS]]

    add("correlation", "correlations")
    add("strength", "strengths")
    add("variance", "explained_variance")
    add("value", "values" if hasattr(result, "values") else "value")
    add("%", "explained_variance_ratio", percent)
    add("cumulative %", "explained_variance_ratio", percent, summed=True)
    add("ordinary, cumulative %", "dense_ratio", percent, summed=True)
    add("adjusted variance", "adjusted_variance")
    add("upper bound", "upper_bound")
    if "upper bound" in known:
        add("gap %", "gap", gap)
    return known


def _components(columns: Mapping[str, list[str]], count: int) -> Table:
    """Return the columns as a table with a row for each component."""
    return Table(
        ["component", *columns],
        [[str(t + 1), *(column[t] for column in columns.values())] for t in range(count)],
    )


def notes_of(result: Any) -> list[str]:
    """Return notes on what the tables leave out, on components that did not converge, and on bounds."""
    r = result._sides()[0].loadings.shape[1]
    notes = []
    if r > READ_COMPONENTS:
        notes.append(f"and {counted(r - READ_COMPONENTS, 'more component')}")
    for some, said in (
        (~np.atleast_1d(getattr(result, "converged", True)), "not converged"),
        (
            _reached_once(result),
            "one run of several reached the best, so more starts (n_starts) may find better",
        ),
    ):
        which = [str(t + 1) for t in np.flatnonzero(some)[:READ_COMPONENTS]]
        if which:
            plural = "s" * (len(which) > 1)
            notes.append(said if len(some) == 1 else f"{said}: component{plural} {', '.join(which)}")
    if np.size(getattr(result, "upper_bound", 0)) > 1 and result.deflation != "generalized":
        notes.append("an upper bound is of the deflated matrix: compare by the gap, not by the variance")
    return notes


def _reached_once(result: Any) -> Mask:
    """Whether one of at least three runs reached the best value, without a proof, for each component."""
    ends, best = getattr(result, "n_ends", None), getattr(result, "n_best", None)
    if ends is None or best is None:
        return np.zeros(1, np.bool_)
    gaps = getattr(result, "gap", None)
    unproved = True if gaps is None else np.atleast_1d(gaps) > 0
    return np.asarray((np.atleast_1d(best) == 1) & (np.atleast_1d(ends) >= 3) & unproved)


def _of(side: Any) -> str:
    """Return " of X" for a side with a mark, or nothing."""
    return f" of {side.mark}" if side.mark else ""


# ---- text -------------------------------------------------------------------------------------------


def text_page(title: str, parts: Sequence[Part]) -> str:
    """Return a title, tables and notes as plain text."""
    lines = [title]
    for part in parts:
        if isinstance(part, Table):
            lines += ["", *aligned_lines([part.titles, *part.rows])]
        else:
            lines.append(part)
    return "\n".join(lines)


def contributions_of(result: Any, n_variables: int) -> list[Part]:
    """Return what the summary of a result with loadings says: of components, and of their variables."""
    shown = min(result._sides()[0].loadings.shape[1], READ_COMPONENTS)
    parts: list[Part] = [_components(component_columns(result), shown), *notes_of(result)]
    for side in result._sides():
        if shown and n_variables:
            parts += ["", f"contributions{_of(side)}, % of the sum of magnitudes"]
            parts += [
                f"{t + 1}: {_contributions(side.loadings[:, t], side.names, n_variables)}"
                for t in range(shown)
            ]
    return parts


def _contributions(v: AnyArray, names: Sequence[str] | None, n_variables: int) -> str:
    """Return the variables of one component with their shares, the largest first."""
    index = np.flatnonzero(v)
    share = percentages(v[index, None])[:, 0]
    top = leading(share, n_variables)
    words = [f"{name_of(names, j)} {x:.1f}" for j, x in zip(index[top], share[top], strict=True)]
    if len(top) < len(index):
        words.append(f"{len(index) - len(top)} more {100 - np.abs(share[top]).sum():.1f}")
    return ", ".join(words) or "no variable"


# ---- HTML -------------------------------------------------------------------------------------------


class _Cell(str):
    """A cell in HTML."""

    __slots__ = ()


def cell(text: str, kind: str = "", size: float | None = None) -> _Cell:
    """Return a cell of a table; with a size, it is also a bar of `size` percent of its width."""
    attributes = f' class="{kind}"' if kind else ""
    attributes += "" if size is None else f' style="--size:{size:.1f}%"'
    return _Cell(f"<td{attributes}>{escape(text)}</td>")


def bars(share: float, dense: float | None, largest: float) -> _Cell:
    """Return a cell with a share of the variance as a bar, above the share of an ordinary component."""
    unit = 100 / largest if largest > 0 else 0.0
    drawn = f'<i style="width:{unit * max(share, 0):.1f}%"></i>'
    drawn += "" if dense is None else f'<i class="dense" style="width:{unit * max(dense, 0):.1f}%"></i>'
    return _Cell(f'<td class="bars">{drawn}</td>')


def _loading_cell(value: float, largest: float) -> _Cell:
    """Return a cell with a loading, as a bar relative to the largest of its component."""
    if value == 0:
        return cell("")
    return cell(significant(value), "above" if value > 0 else "below", 100 * abs(value) / largest)


def html_page(title: str, parts: Sequence[Part]) -> str:
    """Return a title, tables and notes as HTML."""
    inner = "".join(map(_html_part, parts))
    return f'<div class="spcacore"><style>{STYLE}</style><p><b>{escape(title)}</b></p>{inner}</div>'


def _html_part(part: Part) -> str:
    """Return a table or a note as HTML."""
    if isinstance(part, str):
        return f"<p>{escape(part)}</p>"
    head = "".join(f'<th scope="col">{escape(title)}</th>' for title in part.titles)
    body = "".join(
        f'<tr><th scope="row">{escape(name)}</th>'
        f"{''.join(x if isinstance(x, _Cell) else cell(x) for x in cells)}</tr>"
        for name, *cells in part.rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def parts_of(result: Any) -> list[Part]:
    """Return what a notebook shows of a result with loadings: components, and a table of loadings."""
    sides = result._sides()
    r = min(sides[0].loadings.shape[1], READ_COMPONENTS)
    columns = component_columns(result)
    shares = getattr(result, "explained_variance_ratio", None)
    dense = getattr(result, "dense_ratio", None)
    if shares is not None and r:
        largest = max(float(np.max(shares)), 0.0 if dense is None else float(np.max(dense)))
        columns["share" if dense is None else "share, and of an ordinary component"] = [
            bars(float(shares[t]), None if dense is None else float(dense[t]), largest) for t in range(r)
        ]
    parts: list[Part] = [_components(columns, r), *notes_of(result)]
    for side in sides:
        parts += loadings_parts(
            side.loadings[:, :r], [str(t + 1) for t in range(r)], partial(name_of, side.names),
            f"variable{_of(side)}",
        )  # fmt: skip
    return parts


def loadings_parts(
    V: AnyArray, titles: Sequence[str], named: Callable[[int], str], variable: str = "variable"
) -> list[Part]:
    """Return a table of leading variables with loadings as bars, and a note about the others.

    There is no table if all loadings are 0.
    """
    index = leading_of_all(V, READ_VARIABLES)
    if not index:
        return []
    sizes = np.abs(V).max(axis=0)
    rows = [
        [named(j), *(_loading_cell(float(x), float(size)) for x, size in zip(V[j], sizes, strict=True))]
        for j in index
    ]
    more = int(np.count_nonzero(V.any(axis=1))) - len(index)
    left = [f"and {counted(more, 'more variable')} with nonzero loadings"] if more else []
    return [Table([variable, *titles], rows), *left]
