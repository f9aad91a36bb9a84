"""A file as a table, and what its user did wrong."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from .._records import record, replaced
from ..readable import labels

__all__ = ["Arguments", "Table", "UserError", "compressed", "quoted", "unquoted"]


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
    line: Callable[[int], int] | None = None  # of a row of a text
    columns: Sequence[int] | None = None  # where they stand in the file, from 0

    def transposed(self) -> Table:
        return replaced(self, matrix=self.matrix.T, names=self.row_names, row_names=self.names)

    def with_columns(self, index: Sequence[int]) -> Table:
        names = self.names and tuple(self.names[j] for j in index)
        return replaced(self, matrix=self.matrix[:, index], names=names, columns=index)

    def cell(self, i: int, j: int) -> str:
        """Where an entry stands in the file."""
        name = f" ({self.names[j]!r})" if self.names and self.names[j].strip() else ""
        row = f"row {i + 1}" if self.line is None else f"line {self.line(i)}"
        return f"{row}, column {(j if self.columns is None else self.columns[j]) + 1}{name}"

    def variables(self, letter: str = "x") -> list[str]:
        """A name for each column."""
        plain = labels(None, self.matrix.shape[1], letter)
        return [own.strip() or name for own, name in zip(self.names or plain, plain, strict=True)]

    def samples(self) -> list[str]:
        """A name for each row."""
        return self.transposed().variables("")


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
