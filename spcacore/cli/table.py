"""A file as a table, and what its user did wrong."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from types import SimpleNamespace
from typing import Any

from .._records import record

__all__ = ["Arguments", "Table", "UserError", "compressed", "quoted", "unquoted"]
__dir__ = __all__.copy


class Arguments(SimpleNamespace):
    """What was given; an option that a command does not have was not."""

    def __getattr__(self, name: str) -> Any:
        return None


class UserError(Exception):
    """Something the user can put right; the message is one line."""


@record
class Table:
    """A matrix with the names of its columns and rows, where known."""

    matrix: Any
    names: tuple[str, ...] | None = None
    row_names: tuple[str, ...] | None = None
    contents: str = ""  # of a file of several arrays
    unit: str = "row"  # what a row is in the file, of text a line
    line: Callable[[int], int] | None = None  # of each row in the file, from 1
    column: Callable[[int], int] | None = None
    words: dict[str, list[Any]] = field(default_factory=dict)  # columns that hold no numbers, left out

    def transposed(self) -> Table:
        return replace(
            self, matrix=self.matrix.T, names=self.row_names, row_names=self.names, line=self.column,
            column=self.line,
        )  # fmt: skip

    def with_columns(self, index: Sequence[int]) -> Table:
        names = self.names and tuple(self.names[j] for j in index)
        before = self.column or _counted
        return replace(self, matrix=self.matrix[:, index], names=names, column=lambda j: before(index[j]))

    def with_rows(self, index: Sequence[int]) -> Table:
        return self.transposed().with_columns(index).transposed()

    def cell(self, i: int, j: int) -> str:
        """Where an entry stands in the file."""
        name = f" ({self.names[j]!r})" if self.names and self.names[j].strip() else ""
        return f"{self.unit} {(self.line or _counted)(i)}, column {(self.column or _counted)(j)}{name}"

    def variables(self, letter: str = "x") -> list[str]:
        """A name for each column."""
        return _labels(self.names, self.matrix.shape[1], letter)

    def samples(self) -> list[str]:
        """A name for each row."""
        return _labels(self.row_names, self.matrix.shape[0], "")


def _counted(place: int) -> int:
    return place + 1


def _labels(names: Sequence[str] | None, count: int, prefix: str) -> list[str]:
    return [name.strip() or f"{prefix}{i + 1}" for i, name in enumerate(names or [""] * count)]


def compressed(matrix: Any) -> Any:
    """As CSR or CSC, once its indices are known to point into it."""
    if hasattr(matrix, "check_format"):
        matrix.check_format(full_check=True)
    return matrix if matrix.format in ("csr", "csc") else matrix.tocsr()


_FORMULA = re.compile(r"'*[=+\-@\t\r]")  # what a spreadsheet computes, with or without quotes before it


def quoted(name: str) -> str:
    """A name that a spreadsheet takes for words: with an apostrophe before what would be a formula."""
    return f"'{name}" if _FORMULA.match(name) else name


def unquoted(name: str) -> str:
    return name[1:] if name.startswith("'") and _FORMULA.match(name) else name
