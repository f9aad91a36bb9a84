"""The two sides of a canonical correlation: their columns, and the products of C = X'Y/(n - 1)."""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from .._labels import columns_of, joined
from .._limits import CHUNK, CROSS_COLUMNS, EIGENVECTOR_TOL, KEPT_BYTES, SUBMATRIX_ORDER
from .._messages import quiet
from .._records import record
from .._types import Array, DType, Index
from .._validation import (
    check_l1_bound,
    integer,
    is_row_blocks,
    is_sparse,
    number,
    real_array,
    refuse_products,
)
from ..linalg.eigen import largest_eigenpairs
from ..linalg.orthogonal import fix_sign, sign_of
from ..linalg.scaling import below_range
from ..operators.blocks import RowBlocks, as_kernel_input, dense_rows, sum_parts
from ..operators.deflation import LowRank
from ..operators.gram import symmetric_submatrix
from ..operators.inputs import as_problem
from ..operators.partition import row_blocks
from ..operators.problem import Problem
from ..operators.sparse import as_finite
from ..supports.admissible import Supports
from .pencil import Form
from .scatter import centered_rows

Known = dict[str, Any] | None


def one_of_each(
    value: Any, name: str, check: Callable[..., Any], sides: tuple[Side, Side]
) -> tuple[Any, Any]:
    """Return the values for X and for Y, checked; `value` may be one for both sides or a pair."""
    values = pair_of(value, name)
    checked = [check(v, f"{name} of {s.name}", s) for v, s in zip(values, sides, strict=True)]
    return checked[0], checked[1]


def pair_of(value: Any, name: str) -> tuple[Any, Any]:
    """Return a pair as it is, and a single value twice."""
    values = value if isinstance(value, (tuple, list, np.ndarray)) else (value, value)
    if len(values) != 2:
        raise ValueError(f"{name} must be one for both sides or a pair, for X and Y, not {value!r}")
    return values[0], values[1]


def l1_bound_of(value: Any, name: str, side: Side) -> float:
    """Return a checked bound on the l1 norm of the weights of a side."""
    return check_l1_bound(value, name, side.p)


def ridge_of(value: Any, name: str, _: Side) -> float:
    """Return a checked ridge, a multiple of the mean variance of a side."""
    return number(value, name, 0)


def _reworded(call: Callable[[], Any], said: str, meant: str, count: int = 0) -> Any:
    """Make a call, with other words in its errors.

    Errors of other types than TypeError and ValueError come from a source of the caller, and stay as they
    are.
    """
    try:
        return call()
    except (TypeError, ValueError) as error:
        if type(error) not in (TypeError, ValueError):
            raise
        raise type(error)(re.sub(said, meant, str(error), count=count)) from None


def speaking_of_y(call: Callable[[], Any]) -> Any:
    """Make a call, with Y in place of X in its errors."""
    return _reworded(call, r"(?<!\.)\bX\b", "Y")


def named(side: str, call: Callable[[], Any]) -> Any:
    """Make a call, with the side in its errors about options of variables."""
    return _reworded(call, r"(?<!')\b(include|exclude|groups|signs)\b", rf"\1 of {side.upper()}", 1)


def both_sides(
    X: Any, Y: Any, scale: bool, choices: tuple[Known, Known] = (None, None), sample_weight: Any = None
) -> tuple[Side, Side]:
    """Return the sides X and Y. `choices` has arguments of `Supports.checked` for each, or None."""
    Y, sample_weight = joined(X, Y, "Y"), joined(X, sample_weight, "sample_weight")
    if is_row_blocks(X) or is_row_blocks(Y):
        X, Y = _parted_alike(X, Y)
    x = named("x", lambda: Side.of(X, scale, "X", choices[0], sample_weight))
    if sample_weight is not None:
        _refuse_uneven(len(sample_weight), next(iter(getattr(Y, "shape", ())), len(sample_weight)))
    y = named("y", lambda: speaking_of_y(lambda: Side.of(Y, scale, "Y", choices[1], sample_weight)))
    _refuse_uneven(x.n, y.n)
    if x.n < 2:
        raise ValueError("at least two rows are needed")
    return x, y


def _refuse_uneven(n: int, m: int) -> None:
    """Raise ValueError unless both sides have the same number of rows."""
    if n != m:
        raise ValueError(f"X and Y must have the same number of rows, not {n} and {m}")


@record
class Side:
    """One side, as a matrix Z with Z'Z the covariance: columns centered, scaled and over sqrt(n - 1).

    Rows are multiplied by the square roots of their weights, and permuted by `order`. Columns are in units of
    a power of two: times `2**exponent` they are in the caller's units.
    """

    problem: Problem
    rows: Any  # as the caller gave them
    name: str
    order: Index | None = None

    @classmethod
    def of(cls, X: Any, scale: bool, name: str, choice: Known, sample_weight: Any) -> Side:
        """Return the side of a matrix, with its means and deviations."""
        refuse_products(X, "X")
        rows = row_blocks(X).held() if is_row_blocks(X) else X
        with quiet("scale=True leaves"):  # scaling is the default, and a constant correlates with nothing
            problem = as_problem(rows, scale=scale, choice=choice, sample_weight=sample_weight)
        if not is_row_blocks(rows):
            problem = replace(problem, operator=_centered(rows, problem))
        return cls(problem, rows, name)

    def __post_init__(self) -> None:
        problem = self.problem
        assert problem.n_samples is not None
        self.n: int = problem.n_samples
        self.p: int = problem.p
        self.dtype: DType = problem.operator.dtype
        self.root: float = math.sqrt(max(self.n - 1, 1))
        self.exponent: int = problem.exponent // 2
        self.supports: Supports = problem.supports

    def matvec(self, v: Array) -> Array:
        """Return Z v, for one vector or several."""
        op = self.problem.operator
        f = op.forward_block(v.reshape(self.p, -1)).astype(np.float64) / self.root
        f = f if self.order is None else f[self.order]
        return f if v.ndim > 1 else f[:, 0]

    def transpose_matvec(self, f: Array) -> Array:
        """Return Z'f, for one vector or several."""
        op, g = self.problem.operator, f.reshape(self.n, -1)
        if self.order is not None:
            g = np.empty_like(g)
            g[self.order] = f.reshape(self.n, -1)
        v = op.backward_block(g).astype(np.float64) * self.root
        return v if f.ndim > 1 else v[:, 0]

    def metric(self, ridge: float) -> Form:
        """Return B: the covariance, plus the ridge times the mean variance of the variables allowed."""
        op: Any = self.problem.operator
        variances, kept = self.problem.variances, ~self.supports.excluded
        level = np.where(kept, ridge * float(variances[kept].mean()), 0.0)
        if self.p > SUBMATRIX_ORDER and not op.by_passes:
            return Form.of_operator(op, variances, level)
        return Form.of(symmetric_submatrix(op) if op.by_passes else op.gram(), level)

    def count(self, value: Any, name: str) -> int:
        """Return a checked cardinality, of variables or of groups."""
        why = "" if self.supports.plain else self.supports.why()
        return integer(value, name, *self.supports.bounds, why)

    def cross(self, other: Side) -> Array | None:
        """Return Z_x'Z_y, (p, q), in one pass over the row blocks of both sides; None for data in memory."""
        x, y = self.rows, other.rows
        if not self.problem.operator.by_passes:
            return None
        if 8 * self.p * other.p > KEPT_BYTES:
            raise ValueError(
                f"X and Y are in blocks of rows, of which products of p q <= {KEPT_BYTES // 8} entries are "
                f"formed, not of {self.p} x {other.p}: choose variables first, or bring both into memory"
            )
        if _is_dask_array(y) and not _is_dask_array(x):
            return np.asarray(other.cross(self)).T
        known = [side.problem.affine for side in (self, other)]
        units = [(mean, unit**2 * (1 if weight is None else weight)) for mean, weight, unit, *_ in known]
        each = x.beside(y, known[0].row_weight)
        C = x.reduced(sum_parts, _products, units, each=each, entries=self.p * other.p)
        return C / self.root**2


def _centered(X: Any, problem: Problem) -> Any:
    """Return an operator of a copy of X that is centered where entries are stored.

    So a mean that is large beside the deviations costs no digits.
    """
    assert problem.mean is not None
    rows = as_finite(X)
    n, dtype = rows.shape[0], problem.operator.dtype
    Z, rest = centered_rows(rows, np.zeros(n, np.intp), problem.mean[None], np.ones(n, dtype))
    mean = None if rest is None else rest.means[0].astype(dtype)
    return problem.affine._replace(mean=mean).operator(Z)


def _in_blocks(X: Any) -> RowBlocks:
    """Return X as row blocks."""
    if is_row_blocks(X) or is_sparse(X):
        return row_blocks(X)
    return row_blocks(real_array(X, "X", ndim=2), names=columns_of(X))


def _is_dask_array(blocks: Any) -> bool:
    """Whether the blocks are a dask array: other blocks are then sent to where these are."""
    return hasattr(blocks, "array")


def _parted_alike(X: Any, Y: Any) -> tuple[RowBlocks, RowBlocks]:
    """Return X and Y in the same blocks of rows, so that each pass reads matching rows of both."""
    x, y = _in_blocks(X), speaking_of_y(lambda: _in_blocks(Y))
    _refuse_uneven(x.shape[0], y.shape[0])
    y = copy.copy(y)
    y.called = "Y"
    if _is_dask_array(y) and not _is_dask_array(x):
        return x._parted_like(y), y
    return x, y._parted_like(x)


def _products(block: Any, own: tuple[Any, Array | None], units: Any) -> Array:
    """Return the products of the columns of two blocks with the same rows, centered and scaled."""
    other, weight = own
    left, right = as_kernel_input(block), as_kernel_input(other)
    out = np.zeros((left.shape[1], right.shape[1]))
    entries = max(1, CHUNK // max(left.shape[1], right.shape[1]))
    for (part, a), (_, b) in zip(
        dense_rows(left, entries * left.shape[1]), dense_rows(right, entries * right.shape[1]), strict=True
    ):
        (u, v), (w, z) = units
        with below_range():
            A = (a - u) * v
            out += (A if weight is None else A * weight[part, None] ** 2).T @ ((b - w) * z)
    return out


@record
class CrossCovariance:
    """C = Z_x'Z_y without the earlier pairs; it is applied as Z_x'(Z_y v) and, in memory, never formed.

    With units of both sides, it is diag(units_x) C diag(units_y).
    """

    x: Side
    y: Side
    units: tuple[Array, Array] | None = None

    def __post_init__(self) -> None:
        x, y = self.x, self.y
        self.matrix: Array | None = x.cross(y)
        self.removed: LowRank = LowRank.none(x.p, y.p)
        self.signed: bool = any(s.supports.signs is not None for s in (x, y))

    def matvec(self, v: Array) -> Array:
        """Return C v, for one vector or several."""
        given, v = v, self._in_units(v, 1)
        u = self.x.transpose_matvec(self.y.matvec(v)) if self.matrix is None else self.matrix @ v
        return self._in_units(u, 0) + self.removed.times(given)

    def transpose_matvec(self, u: Array) -> Array:
        """Return C'u, for one vector or several."""
        given, u = u, self._in_units(u, 0)
        v = self.y.transpose_matvec(self.x.matvec(u)) if self.matrix is None else self.matrix.T @ u
        return self._in_units(v, 1) + self.removed.T.times(given)

    def _in_units(self, w: Array, side: int) -> Array:
        """Return vectors of a side, times its units."""
        return w if self.units is None else (w.T * self.units[side]).T

    def remove(self, x: tuple[Array, Array], y: tuple[Array, Array], update: str) -> None:
        """Deflate by u and v of unit norm in the metrics, each with its product z = B_x u or w = B_y v.

        A vector is zero if it adds no direction to the earlier ones; then only a projection removes the
        other.
        """
        (u, z), (v, w) = x, y
        if update != "projection" and not (z.any() and w.any()):
            return
        Cv = self.matvec(v)
        self.removed += LowRank.removal(update, float(u @ Cv), (z, Cv), (w, self.transpose_matvec(u)))

    def measured(self, pair: Pair, n_iter: int) -> Pair:
        """Return the pair with its correlation; the largest entry of u is positive if no signs are given."""
        u, v = (pair.u, pair.v) if self.signed else (fix_sign(pair.u), sign_of(pair.u) * pair.v)
        a, b = self.x.matvec(u), self.y.matvec(v)
        size = float(np.linalg.norm(a)) * float(np.linalg.norm(b))
        together = float(np.clip(a @ b / size, -1, 1)) if size > 0 else 0.0
        return replace(pair, u=u, v=v, n_iter=n_iter, correlation=together)

    def turned(self, starts: list[Array]) -> list[Array]:
        """Return vectors of Y to begin with; where signs are given, with either sign."""
        return [s * v for v in starts for s in ((1, -1) if self.signed else (1,))]


def leading_singular_vector(cross: CrossCovariance) -> Array | None:
    """Return the leading right singular vector of C; None if C is zero."""
    q = cross.y.p
    if q <= CROSS_COLUMNS:
        C = cross.matvec(np.eye(q))
        if not C.any():
            return None
        return np.linalg.eigh(C.T @ C)[1][:, -1].copy()
    from scipy.sparse.linalg import LinearOperator

    v0 = cross.transpose_matvec(cross.matvec(np.random.default_rng(0).standard_normal(q)))
    if not v0.any():
        return None
    size = float(np.linalg.norm(v0))
    operator = LinearOperator(
        (q, q), dtype=np.float64, matvec=lambda v: cross.transpose_matvec(cross.matvec(v.ravel())) / size
    )
    _, vectors = largest_eigenpairs(operator, 1, v0=v0 / size, tol=EIGENVECTOR_TOL.double)
    return vectors[:, 0].copy()


def max_abs_per_column(cross: CrossCovariance, left: Array, right: Array) -> Array:
    """Return the largest magnitude in each column of diag(left) C diag(right)."""
    q = cross.y.p
    largest = np.zeros(q)
    for first in range(0, q, CROSS_COLUMNS):
        E = np.eye(q, min(CROSS_COLUMNS, q - first), -first)
        part = slice(first, first + CROSS_COLUMNS)
        largest[part] = np.abs(cross.matvec(E) * left[:, None]).max(axis=0) * right[part]
    return largest


@record
class Pair:
    """The weights of both sides, and what they reach: the strength is u'Cv."""

    u: Array
    v: Array
    strength: float
    n_iter: int
    converged: bool
    bound: float = math.inf
    correlation: float = 0.0
