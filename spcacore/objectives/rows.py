"""Rows of large symmetric matrices, which searches ask for again and again."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .._types import Array, Index

__all__ = ["KeptRows"]

_SPARE_ROWS = 256  # beside those of a support, which may leave it and come back


class KeptRows:
    """Rows of matrices of order p, kept once they were asked for."""

    rows: Callable[[Index], tuple[Array, ...]]
    all: Index

    def __init__(self, rows: Callable[[Index], tuple[Array, ...]], p: int):
        self.rows, self.all = rows, np.arange(p)
        self.kept: dict[int, tuple[Array, ...]] = {}

    def between(self, S: Index, T: Index | None = None) -> list[Array]:
        """Rows S, columns T or all, of each of the matrices."""
        members = S.tolist()
        new = [j for j in members if j not in self.kept]
        if new or not members:
            if len(self.kept) > len(members) + _SPARE_ROWS:
                self.kept, new = {}, members
            parts = self.rows(np.array(new, np.intp))
            self.kept.update(zip(new, zip(*parts, strict=True), strict=True))
            if not members:
                return [part[:, self.all if T is None else T] for part in parts]
        each = zip(*(self.kept[j] for j in members), strict=True)
        return [np.array(rows if T is None else [row[T] for row in rows]) for rows in each]
