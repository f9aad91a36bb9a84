"""A matrix with names, and columns of a file as one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from .._records import record, replaced
from ..readable import labels
from .source import UserError


@record
class Table:
    """A matrix with the names of its columns and rows, where known."""

    matrix: Any
    names: tuple[str, ...] | None = None
    row_names: tuple[str, ...] | None = None

    def transposed(self) -> Table:
        return replaced(self, matrix=self.matrix.T, names=self.row_names, row_names=self.names)

    def with_columns(self, index: Sequence[int]) -> Table:
        names = self.names and tuple(self.names[j] for j in index)
        return replaced(self, matrix=self.matrix[:, index], names=names)

    def variables(self, letter: str = "x") -> list[str]:
        """A name for each column."""
        plain = labels(None, self.matrix.shape[1], letter)
        return [own.strip() or name for own, name in zip(self.names or plain, plain, strict=True)]

    def samples(self) -> list[str]:
        """A name for each row."""
        return self.transposed().variables("")


def place(source: object, wanted: str, names: Sequence[str] | None, width: int, option: str) -> int:
    """Of a column, by its name or its number."""
    if names and wanted in names:
        return list(names).index(wanted)
    if wanted.isdecimal() and 1 <= int(wanted) <= width:
        return int(wanted) - 1
    raise UserError(f"argument --{option}: {source} has no column {wanted!r}")


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
