"""Fields: A between some variables, or all, in single precision, where searches race."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._limits import (
    FIELD_CANCELLATION,
    FIELD_COLUMNS,
    FIELD_IMAGE_ENTRIES,
    FIELD_IMAGES,
    NEIGHBOR_BITS,
    NEIGHBOR_LARGEST,
    NEIGHBOR_SHARE,
    NEIGHBOR_SORTS,
    NEIGHBOR_WORK,
    NEIGHBORS,
    PART_ENTRIES,
    VARIANCE_TIE,
    slices,
)
from .._types import AnyArray, Index
from ..linalg.scaling import are_among, columns_with_entries, descending, union
from .deflation import DeflatedOperator
from .gram import hides_variance
from .problem import Problem, Screening

Single = NDArray[np.float32]
Direction = tuple[Index, AnyArray]  # the nonzeros of a vector that has been removed: variables and values


class Field:
    """A between some variables in single precision, from which components are removed as they are found.

    It only has to tell good supports from poor ones; the values come from the operator itself.

    Attributes
    ----------
    index : ndarray of shape (w,), int
        The variables W; ascending, unless some have joined.
    matrix : ndarray of shape (w, w), float32
        A[W, W] without what has been removed.
    whole : bool
        Whether these are all variables.
    led : bool
        Whether the ends of races led to these variables.
    """

    def __init__(self, problem: Problem, index: Index, led: bool = False):
        # The problem without what would hold this field: a circle keeps memory until garbage is collected
        data = None if problem.data is None else replace(problem.data, ground=None)
        self._problem = replace(problem, ground=None, working_set=None, screening=Screening, data=data)
        self.index: Index = index
        self.whole: bool = len(index) == problem.p
        self.led = led
        self._columns: Single | None = None
        self.matrix: AnyArray = self._formed()
        self._place = np.full(problem.p, -1, np.intp)
        self._place[index] = np.arange(len(index))
        self._removed: list[Direction] = []
        self._norm: dict[int, Single] = {}  # by cardinality, norms of the rows as they were when asked for

    def _formed(self) -> Single:
        """Return A[W, W] before any deflation, in single precision."""
        op, index = self._problem.operator, self.index
        if op.by_passes:
            return np.asarray(op.submatrix(index), np.float32, order="C")
        op, w, problem = op.unscreened(), len(index), self._problem
        if not (op.symmetric_form or op.dense or hides_variance(problem, FIELD_CANCELLATION, index)):
            return op.rough_gram(index)
        A = np.empty((w, w), np.float32)
        if op.symmetric_form or not op.dense:
            for first in range(0, w, FIELD_COLUMNS):
                rows = slice(first, first + FIELD_COLUMNS)
                A[rows, first:] = _first_rows(op, np.ascontiguousarray(index[first:]), len(index[rows]))
                A[rows.stop :, rows] = A[rows, rows.stop :].T
            return A
        C = np.empty((w, op.m), np.float32)
        for first in range(0, w, FIELD_COLUMNS):
            C[first : first + FIELD_COLUMNS] = op.columns(index[first : first + FIELD_COLUMNS])
        _core.matrix_product(C, None, float(op.factor), A)
        if not self.whole:
            self._columns = C
        return A

    def full(self, state: DeflatedOperator) -> bool:
        """Whether the variables of what has been removed are more than the field has room for."""
        removed = [variables for variables, _ in _directions(state)]
        return len(union(*removed)) > len(self.index)

    def without(self, state: DeflatedOperator) -> bool:
        """Remove what the state has removed; False if that needs variables that are not here.

        If the field has removed something else, it is formed anew.
        """
        found = _directions(state)
        if len(found) < len(self._removed) or not all(
            np.array_equal(a, b)
            for before, now in zip(self._removed, found, strict=False)
            for a, b in zip(before, now, strict=True)
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
        """Let the variables of a component join, in the place of some of the least variance.

        Their rows of A are computed, and the components that were removed before are removed from these.
        False if that is not possible.
        """
        op: Any = self._problem.operator.unscreened()
        if not state.by_loadings:
            return False
        needed = union(variables, *(removed for removed, _ in self._removed))
        new, free = variables[self._place[variables] < 0], np.flatnonzero(~are_among(self.index, needed))
        A, rows = self.matrix, np.empty((len(new), len(self.index)), np.float32)
        variance = self._problem.variances[self.index[free]]  # after deflation rounding would decide
        at = np.sort(free[np.argsort(variance, kind="stable")[: len(new)]])
        self._place[self.index[at]] = -1
        self.index[at], self._place[new] = new, at
        if self._columns is None:
            others = np.append(new, np.delete(self.index, at))
            rows[:, self._place[others]] = _first_rows(op, others, len(new))
        else:
            self._columns[at] = op.columns(new)
            _core.matrix_product(self._columns[at], self._columns, float(op.factor), rows)
        for removed, entries in self._removed:  # these have no nonzeros at the new variables
            place, x = self._place[removed], entries.astype(np.float32)
            rows[:, place] -= np.outer(rows[:, place] @ x, x)
        A[at], A[:, at] = rows, rows.T
        for k, norm in self._norm.items():
            norm[at] = _core.largest_norms(A, at, k)
        return True

    def among(self, variables: Index) -> AnyArray:
        """Return A between some variables of the field, without what has been removed."""
        at = self._place[variables]
        return self.matrix[at[:, None], at]

    def norms(self, k: int) -> tuple[Single, bool]:
        """Return an array of a norm for each row, of its k largest entries, and whether these are known.

        Known norms are those of the rows when they were computed, since when components may have been
        removed. If they are not known, the array is there to be filled.
        """
        if k in self._norm:
            return self._norm[k], True
        self._norm[k] = np.empty(len(self.index), np.float32)
        return self._norm[k], False

    def promising(self, k: int, count: int) -> Index:
        """Return the `count` rows whose k largest entries have the largest norms, by decreasing norm.

        Removing a component changes the rows of its variables most. The norms of other rows are computed anew
        only if they were among the largest.
        """
        norm, known = self.norms(k)
        if not known:
            norm[:] = _core.largest_norms(self.matrix, np.arange(len(self.index)), k)
        likely = _core.select_largest(norm, min(2 * count, len(norm)))
        norm[likely] = _core.largest_norms(self.matrix, likely, k)
        return likely[descending(norm[likely])][:count]

    def around(self, supports: list[Index], each: int, most: int) -> Index:
        """Return the variables whose products with the leading vectors on these supports are largest.

        They are `each` variables for each support, those of the supports, and those that have been removed.
        If they are more than `most`, the first supports count.
        """
        op = self._problem.operator.unscreened()
        chosen = dict.fromkeys(int(j) for variables, _ in self._removed for j in variables)
        at_once = max(1, min(FIELD_IMAGES, FIELD_IMAGE_ENTRIES // self._problem.p))
        at_once = len(supports) if op.by_passes else at_once  # all in one pass
        for first in range(0, len(supports), at_once):
            some = supports[first : first + at_once]
            for S, image in zip(some, self._images(op, some).T, strict=True):
                largest = _core.select_largest(np.ascontiguousarray(np.abs(image)), each)
                chosen |= dict.fromkeys([*S.tolist(), *largest.tolist()])
            if len(chosen) >= most:
                break
        return np.sort(np.array(list(chosen)[:most], np.intp))

    def _images(self, op: Any, supports: list[Index]) -> AnyArray:
        """Return A v, as columns, for the leading vector v on each support."""
        vectors = []
        for S in supports:
            at = self._place[S]
            vectors.append((at, _core.leading_eigenvector(_core.principal_submatrix(self.matrix, at))[1]))
        if self._columns is not None:
            U = np.stack([v @ self._columns[at] for at, v in vectors], axis=1)
            return op.backward_block(U)
        given = [(S, v) for S, (_, v) in zip(supports, vectors, strict=True)]
        return op.apply_block(columns_with_entries(op.p, given, op.dtype))


@dataclass(eq=False)
class Ground:
    """The fields of one call, which its components share, and what the search has learned from them.

    Attributes
    ----------
    wide : bool
        Whether one start was not enough for a component.
    enough : int
        For how many components one start was enough.
    partial : int
        For how many components a further race, between the variables that have most in common with the ends
        of the first, found nothing better.
    weak : bool
        Whether the last component was no more correlated than noise.
    moved : bool
        Whether a race in a part of A found a better component than one start.
    value : float
        What the last component explains.
    noise : float or None
        The deviation of correlations that are noise, estimated for an earlier component.
    """

    wide: bool = False
    weak: bool = False
    enough: int = 0
    partial: int = 0
    value: float = 0.0
    moved: bool = False
    noise: float | None = None

    def __post_init__(self) -> None:
        self._fields: dict[tuple[int, bool], Field] = {}
        self._operator: Any = None
        self._norms: AnyArray | None = None
        # By cardinality, how many columns were tried and where they lead; ends of runs among all variables
        self.columns: dict[int, tuple[int, list[Any]]] = {}
        self.found: list[Any] = []

    def field(self, state: DeflatedOperator, most: int, by_variance: bool) -> Field | None:
        """Return a field without the components found; None if it cannot be made.

        It has all variables, or `most` of them. If there are more, these are the variables of largest
        variance if `by_variance`. Otherwise half of them are, and the others are random; where variances tie,
        three quarters are the variables that are correlated most with neighbors.
        """
        if self._operator is not state.problem.operator:
            self._fields, self._operator, self._norms = {}, state.problem.operator, None
        whole = state.p <= most
        key = (state.p, False) if whole else (most, by_variance)
        field = self._fields.get(key)
        if field is None or field.full(state):
            index = np.arange(state.p) if whole else self.some(state, most, by_variance)
            self._fields.clear()  # memory holds one
            field = self._fields[key] = Field(state.problem, index)
        if field.led:  # it serves one component
            del self._fields[key]
        return field if field.without(state) else None

    def led(self, problem: Problem, among: Index) -> Field:
        """Return the field of these variables, to which a race on the last field led; it takes its place.

        The race for the next component begins there: noise has many supports nearly as good as the best, and
        those that this field has are better than those of variables of large variance. A field that led
        from there would have ever fewer of them, so the search after that begins anew.
        """
        (key,) = self._fields
        self._fields.clear()  # memory holds one
        field = self._fields[key] = Field(problem, among, True)
        return field

    def some(self, state: DeflatedOperator, count: int, by_variance: bool) -> Index:
        """Return `count` variables, chosen as for `field`, and those of the components found."""
        promise, most = state.problem.variances, count // 2
        if variances_tie(promise, count):
            if self._norms is None:
                self._norms = norms_among_neighbors(state.problem, state.seed)
            if self._norms is not None:
                promise, most = self._norms, int(NEIGHBOR_SHARE * count)
        some = _core.select_largest(promise, count if by_variance else most)
        if not by_variance:
            others = state.problem.variances > 0
            others[some] = False
            rest = np.flatnonzero(others)
            rng = np.random.default_rng([*state.seed[:1], count])
            some = np.append(some, rng.choice(rest, min(len(rest), count - len(some)), replace=False))
        return union(some, *(variables for variables, _ in _directions(state)))


def ground_of(state: DeflatedOperator) -> Ground:
    """Return the ground of the call that the state belongs to, or a new one."""
    return Ground() if state.problem.ground is None else state.problem.ground


def can_be_formed(state: DeflatedOperator) -> bool:
    """Whether A between some variables can be formed, as searches with a plain cardinality use it."""
    if state.problem.diagonal is None or state.problem.filled is not None or state.supports.shapes:
        return False
    if state.deflation.residual and state.loadings:
        return False
    op: Any = state.problem.operator
    small = not op.symmetric_form or op.dense or state.p <= FIELD_COLUMNS
    return bool(op.by_passes or (op.in_memory and small))


def _first_rows(op: Any, index: Index, count: int) -> AnyArray:
    """Return the first `count` rows of A[index, index]; not for dense data in memory, which have columns."""
    if op.by_passes:
        return np.asarray(op.gram.between(index[:count], index))
    if op.symmetric_form:
        return op.columns(index[:count])[:, index]
    gram = op.gram(index, None, count)
    assert gram is not None  # no callback can have ended it
    return gram


def _directions(state: DeflatedOperator) -> list[Direction]:
    """Return what has been removed from A, in order."""
    if state.deflation.orthogonalized or state.constraint is not None:
        return [(np.flatnonzero(q), q[q != 0]) for q in state.basis]
    return list(state.loadings)


# ---- which variables of equal variance are in a field: those that are correlated with neighbors ------------


def variances_tie(diagonal: AnyArray | None, width: int) -> bool:
    """Whether the variances do not say which `width` of the variables are promising."""
    if diagonal is None or width == len(diagonal):
        return diagonal is None
    largest = diagonal.max()
    return bool(np.count_nonzero(diagonal >= (1 - VARIANCE_TIE) * largest) > width)


def norms_among_neighbors(problem: Problem, seed: tuple[int, ...]) -> Single | None:
    """Return for each variable the norm of its largest entries of A among neighbors, scaled.

    The norms are divided by the largest variance. A random projection gives two columns of F at an angle t
    the same sign with probability 1 - t/pi (Goemans and Williamson 1995, J. ACM 42; Charikar 2002, STOC). x
    counts as near -x. So variables are sorted by several such signs, a few times with other signs, and A is
    formed in runs of neighbors. For p variables this takes time proportional to p, not to p^2. None for a
    matrix, without variance, and where that would take long.
    """
    op: Any = problem.operator.unscreened()
    n, p, largest = op.n, op.p, problem.variances.max()
    work = NEIGHBOR_SORTS * NEIGHBORS * float(n) * p
    if work > NEIGHBOR_WORK or not largest > 0 or (op.symmetric_form and not op.by_passes):
        return None
    # Sort the variables by the signs of random projections, relative to the first one
    rng = np.random.default_rng([*seed[:1], NEIGHBOR_BITS])
    U = rng.standard_normal((NEIGHBOR_SORTS * NEIGHBOR_BITS, n)).astype(op.dtype).T
    sign = op.backward_block(U).reshape(p, NEIGHBOR_SORTS, NEIGHBOR_BITS) > 0
    sign ^= sign[:, :, :1]
    order = np.argsort(sign @ (1 << np.arange(NEIGHBOR_BITS)), axis=0, kind="stable").T
    # A in runs of neighbors, and the largest norm that a row has in any of them
    sorts = order[:, : p // NEIGHBORS * NEIGHBORS].reshape(NEIGHBOR_SORTS, -1, NEIGHBORS)
    found = op.gram.in_runs(sorts) if op.by_passes else in_runs(op, sorts)
    norms, everything = np.zeros(p, np.float32), np.arange(NEIGHBORS)
    for run, A in zip(sorts.reshape(-1, NEIGHBORS), found, strict=True):
        norms[run] = np.maximum(norms[run], _core.largest_norms(A, everything, NEIGHBOR_LARGEST))
    return (norms / largest).round(3)  # so that rounding of sums decides between few of them


def in_runs(op: _core.Operator, sorts: Index) -> Iterator[Single]:
    """Yield A between the variables of each run of each sort, in single precision.

    Each time it is the same array with other numbers.
    """
    width = sorts.shape[2]
    A, room = np.empty((width, width), np.float32), np.empty((0, op.m), op.dtype)
    for runs in sorts:  # the variables of one sort are distinct
        for part in slices(len(runs), width * op.m, PART_ENTRIES):
            index = np.ascontiguousarray(runs[part].ravel())
            if len(room) < len(index):
                room = np.empty((len(index), op.m), op.dtype)
            columns = op.columns(index, room[: len(index)]).astype(np.float32, copy=False)
            for first in range(0, len(index), width):
                _core.matrix_product(columns[first : first + width], None, float(op.factor), A)
                yield A
