"""Rows of large symmetric matrices, which searches ask for again and again."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .._types import Array, Index

__all__ = ["KeptRows"]
__dir__ = __all__.copy

SPARE_ROWS = 256  # beside those of a support, which may leave it and come back


class KeptRows:
    """Rows of matrices of order p, kept once they were asked for."""

    def __init__(self, rows: Callable[[Index], tuple[Array, ...]], p: int):
        self.rows, self.p = rows, p
        self.place, self.count = np.full(p, -1), 0
        self.kept: tuple[Array, ...] = ()

    def between(self, S: Index, T: Index | slice = slice(None)) -> tuple[Array, ...]:
        """Rows S, columns T, of each of the matrices."""
        new = S[self.place[S] < 0]
        if len(new) or not self.kept:
            if self.count > len(S) + SPARE_ROWS:
                self.place[:], self.count, new = -1, 0, S
            self._keep(new)
        at = self.place[S]
        if isinstance(T, slice):
            return tuple(one[at] for one in self.kept)
        return tuple(one[at[:, None], T] for one in self.kept)

    def _keep(self, new: Index) -> None:
        more, end = self.rows(new), self.count + len(new)
        if not self.kept or end > len(self.kept[0]):
            room = [np.empty((max(16, 2 * end), self.p)) for _ in more]
            for large, one in zip(room, self.kept, strict=False):
                large[: self.count] = one[: self.count]
            self.kept = tuple(room)
        for large, one in zip(self.kept, more, strict=True):
            large[self.count : end] = one
        self.place[new], self.count = np.arange(self.count, end), end
