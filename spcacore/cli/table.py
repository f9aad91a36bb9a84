"""A file as a table, and what its user did wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from .._records import record

__all__ = ["Table", "UserError", "compressed"]
__dir__ = __all__.copy


class UserError(Exception):
    """Something the user can put right; the message is one line."""


@record
class Table:
    """A matrix with the names of its columns and rows, where known."""

    matrix: Any
    names: tuple[str, ...] | None = None
    row_names: tuple[str, ...] | None = None
    contents: str = ""  # of a file of several arrays
    lines: Any = None  # of text: the line of each row
    first_column: int = 1  # of text: the column of the file that the first of the matrix is

    def transposed(self) -> Table:
        return replace(self, matrix=self.matrix.T, names=self.row_names, row_names=self.names)

    def with_columns(self, index: Sequence[int]) -> Table:
        names = None if self.names is None else tuple(self.names[j] for j in index)
        return replace(self, matrix=self.matrix[:, index], names=names)

    def cell(self, i: int, j: int) -> str:
        """Where an entry stands in the file."""
        what, line = ("row", i + 1) if self.lines is None else ("line", self.lines[i])
        name = f" ({self.names[j]!r})" if self.names and self.names[j].strip() else ""
        return f"{what} {line}, column {j + self.first_column}{name}"

    def variables(self, letter: str = "x") -> list[str]:
        """A name for each column."""
        return _labels(self.names, self.matrix.shape[1], letter)

    def samples(self) -> list[str]:
        """A name for each row."""
        return _labels(self.row_names, self.matrix.shape[0], "")


def _labels(names: Sequence[str] | None, count: int, prefix: str) -> list[str]:
    return [name.strip() or f"{prefix}{i + 1}" for i, name in enumerate(names or [""] * count)]


def compressed(matrix: Any) -> Any:
    """As CSR or CSC, once its indices are known to point into it."""
    if hasattr(matrix, "check_format"):
        matrix.check_format(full_check=True)
    return matrix if matrix.format in ("csr", "csc") else matrix.tocsr()
