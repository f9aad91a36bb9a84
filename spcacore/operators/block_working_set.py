"""The working set of data in blocks of rows, which asks for few passes over them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .. import _core
from .._limits import READ_AHEAD, SPARE_READS, SUSPECT_BYTES, SUSPECT_SHARE
from .._types import AnyArray, Array, Index
from .deflation import DeflatedOperator
from .problem import Problem, Screening
from .working_set import Vector, WorkingSet

__all__ = ["BlocksWorkingSet"]


class BlocksWorkingSet(WorkingSet):
    """The same of data in blocks of rows: without columns where memory has no room for them, or where these
    would come from other processes.

    Where there is room, a check asks the last products A v first. With f = F x, of which F_W is known, and
    for any c, the Cauchy-Schwarz inequality gives

        |F_j'f| <= |sum_r c_r (A v_r)_j| + ||F_j|| ||f - sum_r c_r F v_r||,

    all of F times the root of the operator's factor, so that ||F_j||^2 is a variance. Where few columns may
    exceed the level these are read, and kept for the next check; else a product with all columns is made, in
    one pass for several vectors.
    """

    def __init__(self, problem: Problem):
        super().__init__(problem)
        assert problem.diagonal is not None
        assert problem.moment is not None
        n, dtype = self.operator.n, self.operator.dtype
        self.norm: Array = np.sqrt(problem.diagonal) * (1 + 1e-6)
        self.size: AnyArray = np.sqrt(problem.moment)  # about 0
        self.eps: float = 4 * float(np.finfo(dtype).eps)
        self.few: int = min(int(SUSPECT_SHARE * self.operator.p), SUSPECT_BYTES // (n * dtype.itemsize))
        self.spare = np.empty((0, n), dtype)  # columns that were read and did not join,
        self.owner: Index = np.empty(0, np.intp)  # whose they are,
        self.slot: Index = np.full(self.operator.p, -1, np.intp)  # and where those of a variable are
        self.promise = problem.diagonal  # of the variables, to be asked for soon
        operator: Any = self.operator
        self.before: int = operator.gram.blocks.passes - 1  # but for the statistics
        if operator.gram.blocks.remote:
            self._drop_columns()

    def report(self, screening: Callable[[], Screening]) -> Screening:
        operator: Any = self.operator
        return replace(super().report(screening), reads=float(operator.gram.blocks.passes - self.before))

    @property
    def most(self) -> int:
        return self._most_with(0)

    def _add(self, new: Index) -> None:
        total = len(self.index) + len(new)
        if total > self._most_with(self._columns.shape[1]):
            self._drop_columns()
            self.spare = np.empty((0, 0), self.operator.dtype)
        super()._add(new)
        operator: Any = self.operator
        operator.gram.inside = self.position, self._gram[:total, :total]

    def _products(self, w: int, new: Index, out: AnyArray) -> None:
        operator: Any = self.operator
        if self._columns.shape[1] > 0:
            self._columns[w : len(self.index)] = self._read(new)
            self._multiply(w, operator.gram.factor, out)
        else:
            out[...] = operator.gram.between(new, self.index)

    def _read(self, index: Index) -> AnyArray:
        """Columns F_j outside of W, as rows; a pass that this takes brings some that may be next."""
        missing = index[self.slot[index] < 0]
        if len(missing) > self.few:  # which would take the room of the spare ones
            operator: Any = self.operator
            return np.asarray(operator.gram.data_columns(index))
        if len(missing):
            self._fetch(index, missing)
        return self.spare[self.slot[index]]

    def _fetch(self, index: Index, missing: Index) -> None:
        """The missing columns become spare ones; where these have no room, others but `index` go."""
        operator: Any = self.operator
        more = min(READ_AHEAD, self.few) - len(missing)
        if more > 0:
            others = self.promise.copy()
            others[self.index] = others[self.owner] = others[missing] = 0
            likely = _core.select_largest(others, min(more, len(others)))
            missing = np.union1d(missing, likely[others[likely] > 0])
        if len(self.owner) + len(missing) > len(self.spare):
            kept = np.intersect1d(self.owner, index)
            room = max(len(kept) + len(missing), SPARE_READS * self.few)
            spare = np.empty((room, self.operator.n), self.operator.dtype)
            spare[: len(kept)] = self.spare[self.slot[kept]]
            self.slot[self.owner] = -1
            self.slot[kept] = np.arange(len(kept))
            self.spare, self.owner = spare, kept
        first = len(self.owner)
        self.owner = np.concatenate((self.owner, missing))
        self.slot[missing] = np.arange(first, len(self.owner))
        self.spare[first : len(self.owner)] = operator.gram.data_columns(missing)

    def _above(
        self, operator: _core.Operator, state: DeflatedOperator, active: Index, vectors: Sequence[Vector]
    ) -> list[tuple[Index, AnyArray]]:
        gram: Any = self.operator.gram  # type: ignore[attr-defined]
        if not state.by_loadings:
            with gram.by_products():
                return super()._above(operator, state, active, vectors)
        plain = [self._without_loadings(state, index, entries) for index, entries, _ in vectors]
        levels = [level for _, _, level in vectors]
        out = self._by_columns(gram, active, plain, levels) if self._columns.shape[1] > 0 else {}
        made = [i for i in range(len(vectors)) if i not in out]
        if made:
            asked = [plain[i] for i in made]
            overlap = [vectors[i][:2] for i in made if not np.array_equal(plain[i][1], vectors[i][1])]
            Y = gram.products([*asked, *overlap])[:, : len(made)]  # deflation asks for A x itself
            self.promise = np.abs(Y).max(axis=1).astype(np.float64)
            out |= {i: (np.arange(self.operator.p), y) for i, y in zip(made, Y.T, strict=True)}
        gram.alone = True
        answers = [(*out[i], level) for i, level in enumerate(levels)]
        return [
            (index[large], value[large])
            for index, value, level in answers
            for large in [np.abs(value) > level]
        ]

    def _by_columns(
        self, gram: Any, active: Index, plain: list[tuple[Index, Array]], levels: list[float]
    ) -> dict[int, tuple[Index, AnyArray]]:
        """The variables that may exceed the level of a vector, and A x there, where their columns are few."""
        images = [self._image(index, v) for index, v in plain]
        suspects = [
            self._suspects(gram, active, *image, level) for image, level in zip(images, levels, strict=True)
        ]
        unknown = [suspect[self.position[suspect] < 0] for suspect in suspects]
        read = [i for i, missing in enumerate(unknown) if len(missing) <= self.few]
        if not read or sum(len(unknown[i]) for i in read) > self.few:
            return {}
        columns = np.unique(np.concatenate([unknown[i] for i in read]))
        entries, out = self._read(columns), dict[int, tuple[Index, AnyArray]]()
        for i in read:
            value, known = np.empty(len(suspects[i])), self.position[suspects[i]] >= 0
            f = images[i][0]
            value[known] = self._columns[self.position[suspects[i][known]]] @ f
            value[~known] = entries[np.searchsorted(columns, unknown[i])] @ f
            out[i] = suspects[i], value * math.sqrt(gram.factor)
        return out

    def _without_loadings(
        self, state: DeflatedOperator, index: Index, entries: AnyArray
    ) -> tuple[Index, Array]:
        """(I - x_1 x_1') .. (I - x_t x_t') x."""
        v = np.zeros(len(self.index))
        v[self.position[index]] = entries
        for variables, loading in reversed(state.loadings):
            at = self.position[variables]
            v[at] -= loading * (loading @ v[at])
        used = np.flatnonzero(v)
        used = used[np.argsort(self.index[used])]
        return self.index[used], v[used]

    def _image(self, index: Index, v: AnyArray) -> tuple[Array, float]:
        """f = F v times the root of the factor, and how far off rounding may have it, here or in a block."""
        gram: Any = self.operator.gram  # type: ignore[attr-defined]
        f = v.astype(self.operator.dtype) @ self._columns[self.position[index]]
        loose = self.eps * (len(index) + 16) * float(np.abs(v) @ self.size[index])
        return f.astype(np.float64) * math.sqrt(gram.factor), loose

    def _suspects(self, gram: Any, active: Index, f: Array, loose: float, level: float) -> Index:
        """The variables outside whose products with f may exceed the level."""
        size, known = float(np.linalg.norm(f)), []
        for variables, values, y in gram.recent:
            if (self.position[variables] >= 0).all():
                known.append((*self._image(variables, values[:, 0]), y[:, 0]))
        bound = np.zeros(self.operator.p)
        rest, rounding = f, size
        if known:
            D = np.stack([g for g, _, _ in known], axis=1)
            unit = np.maximum(np.linalg.norm(D, axis=0), np.finfo(float).tiny)
            c = np.linalg.lstsq(D / unit, f, rcond=1e-6)[0]
            rest = f - D @ (c / unit)
            rounding += float(np.abs(c).sum())
            for weight, (_, off, y) in zip(c / unit, known, strict=True):
                bound += weight * y
                loose += abs(weight) * off
        outside = float(np.linalg.norm(rest)) * (1 + 1e-6) + 1e-10 * size + loose
        rounding *= self.eps * (self.operator.n * (1 + 1 / 16) + 64)
        bound = np.abs(bound) + self.norm * outside + self.size * rounding
        bound[active] = 0
        self.promise = bound
        return np.flatnonzero(~(bound <= level))
