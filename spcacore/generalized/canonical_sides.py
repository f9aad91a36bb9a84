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
from .._types import AnyArray, Array, DType, Index
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
from ..operators.base import Affine
from ..operators.blocks import RowBlocks, as_kernel_input, dense_rows, sum_parts
from ..operators.deflation import LowRank
from ..operators.gram import symmetric_submatrix
from ..operators.inputs import as_problem
from ..operators.partition import row_blocks
from ..operators.problem import Problem
from ..operators.sparse import as_finite
from ..operators.transform import scores
from ..supports.admissible import Supports
from .pencil import Form
from .scatter import centered_rows

Known = dict[str, Any] | None


def one_of_each(
    value: Any, name: str, check: Callable[..., Any], sides: tuple[Side, Side]
) -> tuple[Any, Any]:
    """One value for each side."""
    values = pair_of(value, name)
    checked = [check(v, f"{name} of {s.name}", s) for v, s in zip(values, sides, strict=True)]
    return checked[0], checked[1]


def pair_of(value: Any, name: str) -> tuple[Any, Any]:
    """What is given for X and for Y: one for both, or a pair."""
    values = value if isinstance(value, (tuple, list, np.ndarray)) else (value, value)
    if len(values) != 2:
        raise ValueError(f"{name} must be one for both sides or a pair, for X and Y, not {value!r}")
    return values[0], values[1]


def l1_bound_of(value: Any, name: str, side: Side) -> float:
    """A bound on the l1 norm of the weights of a side."""
    return check_l1_bound(value, name, side.p)


def ridge_of(value: Any, name: str, _: Side) -> float:
    """A multiple of the mean variance of a side."""
    return number(value, name, 0)


def correlation(a: Array, b: Array) -> float:
    """The cosine of two centered vectors; 0 where one is zero."""
    size = float(np.linalg.norm(a)) * float(np.linalg.norm(b))
    return float(np.clip(a @ b / size, -1, 1)) if size > 0 else 0.0


def _in_words(call: Callable[[], Any], said: str, meant: str, count: int = 0) -> Any:
    """With other words in the errors that are our own, not a source's."""
    try:
        return call()
    except (TypeError, ValueError) as error:
        if type(error) not in (TypeError, ValueError):
            raise
        raise type(error)(re.sub(said, meant, str(error), count=count)) from None


def speaking_of_y(call: Callable[[], Any]) -> Any:
    """What is said of X is meant of Y."""
    return _in_words(call, r"(?<!\.)\bX\b", "Y")


def named(side: str, call: Callable[[], Any]) -> Any:
    """What is said of options of the variables is meant of those of a side."""
    return _in_words(call, r"(?<!')\b(include|exclude|groups|signs)\b", rf"\1 of {side.upper()}", 1)


def both_sides(
    X: Any, Y: Any, scale: bool, choices: tuple[Known, Known] = (None, None), sample_weight: Any = None
) -> tuple[Side, Side]:
    """The sides; what is known of their variables are arguments of `Supports.checked`, or none."""
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
    if n != m:
        raise ValueError(f"X and Y must have the same number of rows, not {n} and {m}")


def common_dtype(x: Side, y: Side) -> DType:
    """float32 where both sides are."""
    return np.dtype(np.float32 if x.dtype == y.dtype == np.float32 else np.float64)


@record
class Side:
    """The products of Z with Z'Z the covariance: the columns, centered and scaled, over sqrt(n - 1).

    Rows are times the roots of their weights. `order` permutes them. Times `2**exponent`, columns are in the
    caller's units.
    """

    problem: Problem
    rows: Any  # the caller's
    name: str
    order: Index | None = None

    @classmethod
    def of(cls, X: Any, scale: bool, name: str, choice: Known, sample_weight: Any) -> Side:
        refuse_products(X, "X")
        rows = row_blocks(X).held() if is_row_blocks(X) else X
        with quiet("scale=True leaves"):  # which is the default, and what is constant cannot correlate
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

    def permuted(self, order: Index) -> Side:
        return replace(self, order=order)

    def matvec(self, v: Array) -> Array:
        """Z v, of one vector or several."""
        op = self.problem.operator
        f = op.forward_block(v.reshape(self.p, -1)).astype(np.float64) / self.root
        f = f if self.order is None else f[self.order]
        return f if v.ndim > 1 else f[:, 0]

    def transpose_matvec(self, f: Array) -> Array:
        """Z' f."""
        op, g = self.problem.operator, f.reshape(self.n, -1)
        if self.order is not None:
            g = np.empty_like(g)
            g[self.order] = f.reshape(self.n, -1)
        v = op.backward_block(g).astype(np.float64) * self.root
        return v if f.ndim > 1 else v[:, 0]

    def metric(self, ridge: float) -> Form:
        """The covariance, and a ridge times the mean variance of the variables that are not excluded."""
        op: Any = self.problem.operator
        variances, kept = self.problem.variances, ~self.supports.excluded
        level = np.where(kept, ridge * float(variances[kept].mean()), 0.0)
        if self.p > SUBMATRIX_ORDER and not op.by_passes:
            return Form.of_operator(op, variances, level if level.any() else None)
        return Form.of(symmetric_submatrix(op) if op.by_passes else op.gram(), level)

    def scores(self, loadings: AnyArray) -> Any:
        """Of the rows that the side was made of."""
        return scores(self.rows, loadings, self.problem.mean, self.problem.scale)

    def count(self, value: Any, name: str) -> int:
        """A cardinality, of variables or of groups."""
        why = "" if self.supports.plain else self.supports.why()
        return integer(value, name, *self.supports.bounds, why)

    def cross(self, other: Side) -> Array | None:
        """Z'Z of both sides, (p, q), in one pass over blocks of rows; None in memory."""
        x, y = self.rows, other.rows
        if not self.problem.operator.by_passes:
            return None
        if 8 * self.p * other.p > KEPT_BYTES:
            raise ValueError(
                f"X and Y are in blocks of rows, of which products of p q <= {KEPT_BYTES // 8} entries are "
                f"formed, not of {self.p} x {other.p}: choose variables first, or bring both into memory"
            )
        if _is_first(y) and not _is_first(x):
            return np.asarray(other.cross(self)).T
        known = [side.problem for side in (self, other)]
        units = [(one.mean, one.range**2 * (1 if one.weight is None else one.weight)) for one in known]
        each = x.beside(y, known[0].row_weight)
        C = x.reduced(sum_parts, _products, units, each=each, entries=self.p * other.p)
        return np.asarray(C / self.root**2)


def _centered(X: Any, problem: Problem) -> Any:
    """The operator of a copy of X from which means are taken where entries are stored, for their digits."""
    assert problem.mean is not None
    rows = as_finite(X)
    n, dtype = rows.shape[0], problem.operator.dtype
    Z, rest = centered_rows(rows, np.zeros(n, np.intp), problem.mean[None], np.ones(n, dtype))
    mean = None if rest is None else rest.means[0].astype(dtype)
    affine = Affine(mean, problem.weight, problem.range, problem.operator.factor, problem.row_weight)
    return affine.operator(Z)


def _in_blocks(X: Any) -> RowBlocks:
    if is_row_blocks(X) or is_sparse(X):
        return row_blocks(X)
    return row_blocks(real_array(X, "X", ndim=2), names=columns_of(X))


def _is_first(blocks: Any) -> bool:
    """Whether others are sent to where these are: a dask array."""
    return hasattr(blocks, "array")


def _parted_alike(X: Any, Y: Any) -> tuple[RowBlocks, RowBlocks]:
    """Both in the same blocks of rows, so that every pass over either reads the same."""
    x, y = _in_blocks(X), speaking_of_y(lambda: _in_blocks(Y))
    _refuse_uneven(x.shape[0], y.shape[0])
    y = copy.copy(y)
    y.called = "Y"
    if _is_first(y) and not _is_first(x):
        return x._parted_like(y), y
    return x, y._parted_like(x)


def _products(block: Any, own: tuple[Any, Array | None], units: Any) -> Array:
    """Of the rows of two blocks, centered and scaled."""
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
    """C = X'Y, of whose products X'(Yv) the earlier pairs are taken away.

    With the units of both sides, it is diag(units) C diag(units).
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
        """C v, of one vector or several."""
        given, v = v, self._in_units(v, 1)
        u = self.x.transpose_matvec(self.y.matvec(v)) if self.matrix is None else self.matrix @ v
        return self._in_units(u, 0) + self.removed.times(given)

    def transpose_matvec(self, u: Array) -> Array:
        """C' u."""
        given, u = u, self._in_units(u, 0)
        v = self.y.transpose_matvec(self.x.matvec(u)) if self.matrix is None else self.matrix.T @ u
        return self._in_units(v, 1) + self.removed.T.times(given)

    def _in_units(self, w: Array, side: int) -> Array:
        return w if self.units is None else (w.T * self.units[side]).T

    def remove(self, x: tuple[Array, Array], y: tuple[Array, Array], update: str) -> None:
        """Deflate by u and v, of unit norm in the metrics of their sides, each with its product z = Bu.

        Those that are zero add no direction, and only a projection takes one of a side away.
        """
        (u, z), (v, w) = x, y
        if update != "projection" and not (z.any() and w.any()):
            return
        Cv = self.matvec(v)
        self.removed += LowRank.removal(update, float(u @ Cv), (z, Cv), (w, self.transpose_matvec(u)))

    def turned(self, starts: list[Array]) -> list[Array]:
        """Vectors of Y from which searches begin: where signs are given, either way round."""
        return [s * v for v in starts for s in ((1, -1) if self.signed else (1,))]


def leading_singular_vector(cross: CrossCovariance) -> Array | None:
    """The leading right singular vector of C; None if C is zero."""
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
    """Of each column of diag(left) C diag(right) the largest magnitude."""
    q = cross.y.p
    largest = np.zeros(q)
    for first in range(0, q, CROSS_COLUMNS):
        E = np.eye(q, min(CROSS_COLUMNS, q - first), -first)
        part = slice(first, first + CROSS_COLUMNS)
        largest[part] = np.abs(cross.matvec(E) * left[:, None]).max(axis=0) * right[part]
    return largest


@record
class Pair:
    """Weights of both sides, and what they maximize."""

    u: Array
    v: Array
    strength: float
    n_iter: int
    converged: bool
    bound: float = math.inf
    correlation: float = 0.0

    def with_sign(self, given: bool) -> Pair:
        """The entry of u of largest magnitude becomes positive, unless signs are given; v turns with u."""
        return self if given else replace(self, u=fix_sign(self.u), v=sign_of(self.u) * self.v)
