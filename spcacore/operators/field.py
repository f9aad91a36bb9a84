"""A between some variables, or all, in single precision, where searches race."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._limits import FIELD_COLUMNS, FIELD_IMAGE_ENTRIES, FIELD_IMAGES, FIELD_JOINING
from .._types import AnyArray, Index
from ..linalg.scaling import descending
from ..supports.admissible import Supports
from .deflation import PROJECTION, DeflatedOperator
from .problem import Problem

Direction = tuple[Index, AnyArray]  # the nonzeros of what has been removed, as variables and values


class Field:
    """A between some variables in single precision, from which components are removed as they are found.

    That is enough to tell good supports from poor ones; the values come from the operator itself.

    Attributes
    ----------
    index : ndarray of shape (w,), int
        The variables W, ascending where none has joined.
    matrix : ndarray of shape (w, w), float32
        A[W, W] without what has been removed.
    whole : bool
        Whether these are all variables.
    """

    def __init__(self, problem: Problem, index: Index):
        self._problem = replace(problem, ground=None)  # which would hold this field
        self.index: Index = index
        self.whole: bool = len(index) == problem.p
        self._columns: NDArray[np.float32] | None = None
        self._room: AnyArray = np.empty(0, np.float32)  # where it is, or will be
        self.matrix: AnyArray = self._formed()
        self._place = np.full(problem.p, -1, np.intp)
        self._place[index] = np.arange(len(index))
        self._removed: list[Direction] = []
        self._norm: dict[int, NDArray[np.float32]] = {}  # of rows by cardinality, as they once were

    def _formed(self) -> NDArray[np.float32]:
        op, index = self._problem.operator, self.index
        if op.by_passes:
            return np.asarray(op.submatrix(index), np.float32, order="C")
        op, w = op.unscreened(), len(index)
        self._room = np.empty((w + FIELD_JOINING * (not self.whole)) ** 2, np.float32)
        A = self._room[: w * w].reshape(w, w)
        if op.symmetric_form or not op.dense:
            for first in range(0, w, FIELD_COLUMNS):
                rows = slice(first, first + FIELD_COLUMNS)
                if op.symmetric_form:
                    A[rows] = op.columns(index[rows])[:, index]
                    continue
                gram = op.gram(np.ascontiguousarray(index[first:]), None, len(index[rows]))
                assert gram is not None  # no callback can have ended it
                A[rows, first:] = gram
                A[rows.stop :, rows] = A[rows, rows.stop :].T
            return A
        C = np.empty((w, op.m), np.float32)
        for first in range(0, w, FIELD_COLUMNS):
            C[first : first + FIELD_COLUMNS] = op.columns(index[first : first + FIELD_COLUMNS])
        _core.matrix_product(C, None, float(op.factor), A)
        if not self.whole:
            self._columns = C
        return A

    def without(self, state: DeflatedOperator) -> bool:
        """Remove what the state has removed; False where that needs variables that are not here."""
        found = _directions(state)
        if len(found) < len(self._removed) or not all(
            np.array_equal(before[0], now[0]) and np.array_equal(before[1], now[1])
            for before, now in zip(self._removed, found, strict=False)
        ):
            self.matrix, self._removed, self._norm = self._formed(), [], {}
        for variables, entries in found[len(self._removed) :]:
            if (self._place[variables] < 0).any() and not self._joined(state, variables):
                return False
            at = self._place[variables]
            x = np.ascontiguousarray(entries, np.float32)
            if not _core.deflate_covariance(state.deflation.update, self.matrix, at, x):
                return False
            for k, norm in self._norm.items():
                norm[at] = _core.largest_norms(self.matrix, at, k)
            self._removed.append((variables, entries))
        return True

    def _joined(self, state: DeflatedOperator, variables: Index) -> bool:
        """Let the variables of a component join, and remove from their rows the earlier ones."""
        op: Any = self._problem.operator.unscreened()
        if not state.by_loadings or (self._columns is None and not op.by_passes):
            return False
        new = variables[self._place[variables] < 0]
        w, total = len(self.index), len(self.index) + len(new)
        rows = np.empty((len(new), total), np.float32)
        self.index = np.concatenate((self.index, new))
        if self._columns is None:
            rows[:] = op.gram.between(new, self.index)
        else:
            self._columns = C = np.concatenate((self._columns, op.columns(new).astype(np.float32)))
            _core.matrix_product(np.ascontiguousarray(C[w:]), C, float(op.factor), rows)
        self._place[new] = np.arange(w, total)
        for removed, entries in self._removed:  # none of which has nonzeros among the new
            at, x = self._place[removed], entries.astype(np.float32)
            rows[:, at] -= np.outer(rows[:, at] @ x, x)
        self.matrix = A = self._grown(total)
        A[w:], A[:w, w:] = rows, rows[:, :w].T
        self._norm = {
            k: np.concatenate((norm, _core.largest_norms(A, np.arange(w, total), k)))
            for k, norm in self._norm.items()
        }
        return True

    def _grown(self, total: int) -> AnyArray:
        """The matrix between more variables, in its own memory where there is room."""
        w = len(self.matrix)
        if self.matrix.base is not self._room or self._room.size < total**2:
            self._room = np.empty((total + FIELD_JOINING) ** 2, np.float32)
            self._room[: w * w] = self.matrix.ravel()
        _core.spread_rows(self._room, w, total)
        return self._room[: total**2].reshape(total, total)

    def norms(self, k: int) -> tuple[NDArray[np.float32], bool]:
        """The norms of the k largest entries of all rows as they once were, or room for them; which it is."""
        if k in self._norm:
            return self._norm[k], True
        self._norm[k] = np.empty(len(self.index), np.float32)
        return self._norm[k], False

    def promising(self, k: int, count: int) -> Index:
        """So many rows whose k largest entries have the largest norms, by decreasing norm.

        Removing a component changes the rows of its variables most. The norms of the others are computed
        anew only if they were among the largest.
        """
        norm, known = self.norms(k)
        if not known:
            norm[:] = _core.largest_norms(self.matrix, np.arange(len(self.index)), k)
        likely = _core.select_largest(norm, min(2 * count, len(norm)))
        norm[likely] = _core.largest_norms(self.matrix, likely, k)
        return likely[descending(norm[likely])][:count]

    def as_state(self) -> DeflatedOperator:
        """A between these variables, of which nothing has been removed yet."""
        op = _core.dense(self.matrix, True)
        anyone = Supports.any_of(op.p)
        return DeflatedOperator(op, self.matrix.diagonal().astype(float), PROJECTION, None, (), op, anyone)

    def around(self, supports: list[Index], each: int, most: int) -> Field:
        """The field of the variables whose products with leading vectors on these supports are largest.

        So many of each, and those of the supports and of what has been removed; the first supports count if
        that is more than `most`.
        """
        op = self._problem.operator.unscreened()
        chosen = dict.fromkeys(int(j) for variables, _ in self._removed for j in variables)
        at_once = max(1, min(FIELD_IMAGES, FIELD_IMAGE_ENTRIES // self._problem.p))
        at_once = len(supports) if op.by_passes else at_once  # in one pass
        for first in range(0, len(supports), at_once):
            some = supports[first : first + at_once]
            for S, image in zip(some, self._images(op, some).T, strict=True):
                largest = _core.select_largest(np.ascontiguousarray(np.abs(image)), each)
                chosen |= dict.fromkeys([*S.tolist(), *largest.tolist()])
            if len(chosen) >= most:
                break
        return Field(self._problem, np.sort(np.array(list(chosen)[:most], np.intp)))

    def _images(self, op: Any, supports: list[Index]) -> AnyArray:
        """A v, as columns, of the leading vector v on each support."""
        vectors = []
        for S in supports:
            at = self._place[S]
            vectors.append((at, _core.leading_eigenvector(_core.principal_submatrix(self.matrix, at))[1]))
        if self._columns is not None:
            U = np.stack([v @ self._columns[at] for at, v in vectors], axis=1)
            return op.backward_block(U)
        V = np.zeros((self._problem.p, len(supports)), op.dtype, order="F")
        for j, (S, (_, v)) in enumerate(zip(supports, vectors, strict=True)):
            V[S, j] = v
        return op.apply_block(V)


class Ground:
    """The fields of one call, whose components share them.

    Attributes
    ----------
    wide : bool
        Whether one start was not enough for a component.
    enough : int
        For how many components it was.
    partial : int
        For how many components a race between other variables, those that have most in common with its ends,
        found nothing better.
    weak : bool
        Whether the last component was no more correlated than noise.
    moved : bool
        Whether a race in a part of A found a better component than one start.
    value : float
        What the last component explains.
    noise : float or None
        The deviation of correlations that are noise, of an earlier component.
    """

    wide: bool
    weak: bool
    enough: int
    partial: int
    value: float
    moved: bool

    def __init__(self) -> None:
        self.wide, self.weak, self.enough, self.partial = False, False, 0, 0
        self.noise: float | None = None
        self.value, self.moved = 0.0, False
        self._fields: dict[tuple[int, bool], Field] = {}
        self._operator: Any = None

    def field(
        self, problem: Problem, state: DeflatedOperator, most: int, by_variance: bool, seed: list[int]
    ) -> Field | None:  # fmt: skip
        """The field of so many variables at most without the components found; None where there is none.

        Of more variables these have the largest variance, or only half of them, and the others are at random.
        """
        if self._operator is not problem.operator:
            self._fields, self._operator = {}, problem.operator
        whole = problem.p <= most
        key = (problem.p, False) if whole else (most, by_variance)
        field = self._fields.get(key)
        if field is None:
            index = np.arange(problem.p) if whole else _some(problem, state, most, by_variance, seed)
            self._fields.clear()  # memory holds one
            field = self._fields[key] = Field(problem, index)
        return field if field.without(state) else None


def _some(problem: Problem, state: DeflatedOperator, count: int, by_variance: bool, seed: list[int]) -> Index:
    """So many variables, and those of the components found."""
    diagonal = problem.diagonal
    assert diagonal is not None
    some = [_core.select_largest(diagonal, count if by_variance else count // 2)]
    if not by_variance:
        left = diagonal > 0
        left[some[0]] = False
        rest = np.flatnonzero(left)
        rng = np.random.default_rng([*seed[:1], count])
        some.append(rng.choice(rest, min(len(rest), count - len(some[0])), replace=False))
    return np.unique(np.concatenate([*some, *(variables for variables, _ in _directions(state))]))


def can_be_formed(problem: Problem, state: DeflatedOperator) -> bool:
    """Whether A between some variables can be had, in the form that searches of plain cardinality take."""
    if problem.diagonal is None or problem.filled is not None or state.supports.shapes:
        return False
    if state.deflation.residual and state.loadings:
        return False
    op: Any = problem.operator
    if op.by_passes:
        return bool(op.gram.races)
    return bool(op.in_memory) and (not op.symmetric_form or op.dense or problem.p <= FIELD_COLUMNS)


def _directions(state: DeflatedOperator) -> list[Direction]:
    """What has been removed from A, in turn."""
    if state.deflation.orthogonalized or state.constraint is not None:
        return [(np.flatnonzero(q), q[q != 0]) for q in state.basis]
    return list(state.loadings)
