"""The problem: an operator with what Python needs to know about it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .. import _core
from .._messages import counted, warn
from .._records import record, replaced
from .._types import AnyArray, Array, Index, Names
from .._validation import default_cardinality
from ..linalg.scaling import beyond_range, eps_of
from ..supports.admissible import Supports

OUT_OF_RANGE = "a variance exceeds the number range and is given as inf"
BELOW_RANGE = "a variance is below the number range and is given as 0"


def warn_out_of_range(inside: Any, given: Any) -> None:
    """Warn where a variance is inf or 0 in the caller's units, but not in the operator's."""
    given = np.asarray(given)
    if not np.isfinite(given).all():
        warn(OUT_OF_RANGE)
    if ((given == 0) & (np.asarray(inside) != 0)).any():
        warn(BELOW_RANGE)


@dataclass(frozen=True)
class Screening:
    """How much of the data a call has read.

    Attributes
    ----------
    mode : {"gram", "working_set", "both", "shadow", "references", "none"}
        "gram": the p x p matrix was formed, and nothing else read. "working_set": the search went on among
        some columns. Else what screened the columns of dense data: an int8 shadow of X, the products with
        earlier directions, both, or nothing, so that every product read all of X.
    reads : float or None
        Bytes read of X and of its shadow, setting up included, over the bytes of X. Of a working set in
        memory it counts the columns that join and the checks; of blocks of rows, the passes. None with
        "none".
    columns : int
        Exact products with a column of X.
    questions : int
        Products with X that the solver asked for; a plain loop reads X once for each.
    working_set : int
        Columns among which the search went on, on their Gram matrix; 0 where all were searched.
    checks : int
        How often all columns were then asked whether one outside would enter.
    """

    mode: str = "none"
    reads: float | None = None
    columns: int = 0
    questions: int = 0
    working_set: int = 0
    checks: int = 0


class Affine(NamedTuple):
    """How X becomes F = diag(row_weight) (X - 1 mean') diag(weight) range^2, with A = F'F factor.

    For a covariance X, A = factor range^2 diag(weight) X diag(weight). None stands for weights of 1, and for
    means of 0.
    """

    mean: AnyArray | None = None
    weight: AnyArray | None = None
    range: float = 1.0
    factor: float = 1.0
    row_weight: AnyArray | None = None

    def operator(self, X: Any, covariance: bool = False) -> _core.Operator:
        """Return the operator A of X in memory."""
        A = _core.operator(X, covariance, *self[:4])
        return A if self.row_weight is None else A.row_weighted(self.row_weight, True)


@record
class Problem:
    """An operator with what Python needs to know about it.

    Attributes
    ----------
    operator : _core.Operator
    n_samples : int or None
        None for a covariance.
    diagonal : ndarray of shape (p,) or None
        The operator's, in its own units; None where only products are known.
    exponent : int
        A value of the operator times `2**exponent` is a variance in the caller's units.
    moment : ndarray of shape (p,) or None
        Second moment about 0 of each column as it is stored, in the operator's units; for a covariance
        the diagonal.
    floor : float
        Where there are no entries: variance that rounding alone may leave.
    mean, scale : ndarray of shape (p,) or None
        What is subtracted from each column, and then divides it.
    given : tuple of str
        Which of "center" and "scale" the caller gave as a vector.
    names : tuple of str or None
    cost : int
        Multiplications of one product, for deciding how many starts to afford.
    supports : Supports
        The supports that are allowed, by what the caller knows about the variables.
    affine : Affine
        How the operator's matrix comes from the data, or from the covariance. Its `weight` and `range`, a
        power of two that brings the entries near 1, multiply each centered column, and its `row_weight`, the
        root of the weight of a sample, each row.
    degree_weight : ndarray of shape (n,) or None
        What the operator multiplies each row by, before it is centered: for a graph scaled by its degrees.
    total_weight : float or None
        Samples that the rows stand for: n, or the sum of their weights; None for a covariance.
    screening : callable
        Returns a `Screening`: what has been read so far.
    filled : MissingData or None
        Where entries are missing.
    compressed : sparse matrix or None
        The data where they are sparse, in CSR or CSC with sound, ascending indices.
    working_set : WorkingSet or None
        The variables among which searches may work, with their Gram matrix.
    form : bool
        Whether A is to be formed before the search, see `gram.formed`.
    data : Problem or None
        If A was formed as a matrix, the problem of the data that it was formed from.
    rounding : float
        Share of each entry that rounding may have changed, where the operator knows more digits.
    extreme : callable or None
        For data: returns what the largest entry of each column explains by itself, or more.
    ground : Ground or None
        Parts of A in single precision, in which the call searches for where to start.
    """

    operator: _core.Operator
    n_samples: int | None
    diagonal: AnyArray | None
    exponent: int
    moment: AnyArray | None
    names: Names
    cost: int
    supports: Supports
    floor: float = 0.0
    mean: AnyArray | None = None
    scale: AnyArray | None = None
    given: tuple[str, ...] = ()
    affine: Affine = Affine()
    degree_weight: AnyArray | None = None
    total_weight: float | None = None
    screening: Callable[[], Screening] = Screening
    filled: MissingData | None = None
    compressed: Any = None
    working_set: Any = None
    form: bool = False
    data: Problem | None = None
    rounding: float = 0.0
    extreme: Callable[[], Array] | None = None
    ground: Any = None

    @property
    def p(self) -> int:
        return self.operator.p

    @property
    def most_components(self) -> int:
        """The largest number of components that can have variance."""
        return min(self.p, self.n_samples or self.p)

    @property
    def n_variables(self) -> int:
        """The number of variables that are not excluded."""
        return len(self.supports.available)

    @property
    def is_matrix(self) -> bool:
        """Whether the operator is A as a dense matrix, and a product reads no rows."""
        return bool(self.operator.symmetric_form and self.operator.dense)

    @property
    def kind(self) -> str:
        """Whether the caller gave data or a covariance."""
        return "covariance" if self.n_samples is None else "data"

    @property
    def degrees(self) -> float:
        """The divisor of the covariance: n - 1, or the sum of the weights less one."""
        most = (self.total_weight or 2) - 1
        return max(most, 1) if self.affine.row_weight is None else most

    @property
    def total_variance(self) -> float | None:
        """The trace of A in the caller's units."""
        return None if self.diagonal is None else self.in_units(self.diagonal.sum())

    @property
    def trace(self) -> float:
        """The trace of A, whose diagonal must be known."""
        return float(self.variances.sum())

    @property
    def variances(self) -> AnyArray:
        """The diagonal of A, which must be known."""
        assert self.diagonal is not None
        return self.diagonal

    @property
    def known_moment(self) -> AnyArray:
        """The second moments, which must be known."""
        assert self.moment is not None
        return self.moment

    @property
    def unit(self) -> float:
        """The variance in the caller's units that 1 stands for; inf or 0 out of range."""
        return float(self.in_units(1.0))

    @property
    def emptiness(self) -> str:
        """Why there is no variance, for a message."""
        if self.n_samples == 1 and self.mean is not None:
            return "X has a single sample, and no variance about its mean; at least 2 are needed"
        return "X has no variance"

    def exhausted(self, t: int, r: int) -> str:
        """Return the message after t of r components."""
        why = f": {self.emptiness}" if self.n_samples == 1 and self.mean is not None else ""
        return f"no variance is left after {t} of the {counted(r, 'component')} requested{why}"

    @property
    def missing_entries(self) -> int:
        return 0 if self.filled is None else int(np.isnan(self.filled.source).sum())

    def noise(self, index: Index, first_order: bool = False) -> float:
        """Return the variance, in the operator's units, that rounding alone may leave along these variables.

        Data whose entries have errors of 4 eps, of scales and deflations too, leave 16 eps^2. A covariance
        leaves eps, and so do deflations of `first_order`.
        """
        eps, k = eps_of(self.operator.dtype), len(index)
        first_order = first_order or self.operator.symmetric_form
        if self.moment is None or self.diagonal is None:
            return math.sqrt(self.floor) if first_order and not self.operator.symmetric_form else self.floor
        noise = 4 * eps * k * float(np.abs(self.diagonal[index]).max()) if first_order else 0.0
        if self.rounding > 0:  # a unit vector takes at most the sum of squared errors, each of half an eps
            noise += self.rounding**2 / 4 * float(self.moment[index].sum())
        if not self.operator.symmetric_form:
            noise += 16 * eps**2 * k * float(self.moment[index].sum())
        return noise

    def unscreened(self) -> Problem:
        """Return the problem with the plain operator, which screens no columns."""
        return replaced(self, operator=self.operator.unscreened(), screening=Screening, working_set=None)

    def in_units(self, value: Any) -> Any:
        """Return values of the operator as the caller's variances; inf or 0 out of the number range."""
        with beyond_range():
            return np.ldexp(value, self.exponent)

    def reported(self, value: Any) -> AnyArray:
        """Return `in_units`, with a warning where a variance becomes inf or 0 only there."""
        given = np.asarray(self.in_units(value))
        warn_out_of_range(value, given)
        return given


def of_matrix(problem: Problem, A: AnyArray, supports: Supports | None = None) -> Problem:
    """Return the problem of some variables: its operator is A between them.

    Without `supports` any of them are allowed, with the same positive signs.
    """
    operator = _core.dense(np.ascontiguousarray(A), True)
    diagonal, anyone = A.diagonal().copy(), Supports.any_of(len(A), positive=problem.supports.positive)
    return replaced(
        problem, operator=operator, diagonal=diagonal, moment=diagonal, mean=None, scale=None, names=None,
        degree_weight=None, cost=A.size, supports=supports or anyone,
        working_set=None, form=False, data=None,
    )  # fmt: skip


def usual_cardinality(problem: Problem) -> int:
    """Return the default cardinality."""
    least, most = problem.supports.bounds
    return min(max(default_cardinality(problem.p), least), most)


@record
class MissingData:
    """Data with missing entries, and a private copy, centered and scaled, that has zeros for these.

    Attributes
    ----------
    source : ndarray of shape (n, p)
        The caller's array, which tells where entries are missing.
    array : ndarray of shape (n, p)
        The copy, which the operator reads.
    range : float
        The operator multiplies the copy by its square.
    replaced : dict
        Columns of the copy by their number, as they were before `subtract` changed them.
    """

    source: AnyArray
    array: AnyArray
    range: float
    replaced: dict[int, AnyArray]

    def subtract(self, image: AnyArray, index: Index, value: AnyArray) -> AnyArray:
        """Subtract `image value'` from the observed entries; return the new variances of these columns."""
        variances = np.empty(len(index))
        unit = self.range * self.range
        for a, j in enumerate(index):
            column = self.array[:, j]
            self.replaced.setdefault(int(j), column.copy())
            column -= np.where(np.isnan(self.source[:, j]), 0, image * (value[a] / unit)).astype(column.dtype)
            variances[a] = np.sum((column.astype(np.float64) * unit) ** 2) / max(len(column) - 1, 1)
        return variances

    def restore(self) -> None:
        """Undo every `subtract`."""
        for j, column in self.replaced.items():
            self.array[:, j] = column
        self.replaced.clear()
