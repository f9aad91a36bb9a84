"""The two sides of a canonical correlation: their columns, and the products of C = X'Y/(n - 1)."""

from __future__ import annotations

import copy
import math
import re
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from .._labels import joined
from .._limits import CHUNK, CROSS_COLUMNS, EIGENVECTOR_TOL, KEPT_BYTES, SUBMATRIX_ORDER
from .._messages import quiet
from .._records import record
from .._types import AnyArray, Array, Index
from .._validation import column_names, integer, is_row_blocks, is_sparse, real_array, refuse_products
from ..linalg.eigen import largest_eigenpairs
from ..linalg.orthogonal import fix_sign, sign_of, tall_product
from ..operators.block_tasks import as_kernel_input, dense_rows, sum_parts
from ..operators.blocks import RowBlocks
from ..operators.deflation import LowRank
from ..operators.inputs import as_problem
from ..operators.partition import row_blocks
from ..operators.problem import Problem
from ..operators.sparse import compressed
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


def names_of(X: Any) -> tuple[str, ...] | None:
    if not is_row_blocks(X):
        return column_names(X)
    return row_blocks(X).names


def both_sides(
    X: Any, Y: Any, scale: bool, choices: tuple[Known, Known] = (None, None), sample_weight: Any = None
) -> tuple[Side, Side]:
    """The sides; what is known of their variables are arguments of `Supports.checked`, or none."""
    Y, sample_weight = joined(X, Y, "Y"), joined(X, sample_weight, "sample_weight")
    if is_row_blocks(X) or is_row_blocks(Y):
        X, Y = _parted_alike(X, Y)
        of: Any = BlockSide.of
    else:
        of = Side.of
    x = named("x", lambda: of(X, scale, "X", choices[0], sample_weight))
    if sample_weight is not None:
        _refuse_uneven(len(sample_weight), next(iter(getattr(Y, "shape", ())), len(sample_weight)))
    y = named("y", lambda: speaking_of_y(lambda: of(Y, scale, "Y", choices[1], sample_weight)))
    _refuse_uneven(x.n, y.n)
    if x.n < 2:
        raise ValueError("at least two rows are needed")
    return x, y


def _refuse_uneven(n: int, m: int) -> None:
    if n != m:
        raise ValueError(f"X and Y must have the same number of rows, not {n} and {m}")


def _column_weights(problem: Problem) -> Array:
    """What the centered columns are multiplied by."""
    assert problem.diagonal is not None
    assert problem.total_weight is not None
    unit = problem.range * problem.range
    weight = np.full(problem.p, unit) if problem.scale is None else unit / problem.scale.astype(float)
    weight[problem.diagonal == 0] = 0
    return weight / math.sqrt(problem.total_weight - 1 or 1)


def common_dtype(x: Side, y: Side) -> np.dtype[Any]:
    """float32 where both sides are."""
    return np.dtype(np.float32 if x.dtype == y.dtype == np.float32 else np.float64)


@record
class Side:
    """Z - 1 offset', the centered and scaled columns over sqrt(n - 1), Z sparse where there is an offset.

    Of weighted rows, Z - root offset' has those of positive weight, times their `root`, that of the weight,
    over sqrt(sum of the weights - 1).

    `order` permutes the rows. Times `2**exponent`, columns are in the caller's units.
    """

    Z: Any
    offset: Array | None
    root: Array | None
    order: Index | None
    mean: AnyArray | None
    scale: AnyArray | None
    exponent: int
    name: str
    supports: Supports

    @classmethod
    def of(cls, X: Any, scale: bool, name: str, choice: Known, sample_weight: Any) -> Side:
        refuse_products(X, "X")
        problem = _problem(X, scale, choice, sample_weight)
        assert problem.mean is not None
        dtype, weight = problem.operator.dtype, _column_weights(problem)
        root, kept = _roots(sample_weight), None
        if root is not None:
            kept = np.flatnonzero(root)
            root = root[kept]
        rows = compressed(X).tocsr() if is_sparse(X) else real_array(X, "X", ndim=2)
        rows = rows if kept is None else rows[kept]
        multiple = np.ones(rows.shape[0], dtype) if root is None else root.astype(dtype)
        with np.errstate(under="ignore"):
            Z, rest = centered_rows(rows, np.zeros(len(multiple), np.intp), problem.mean[None], multiple)
            if rest is None:
                Z *= weight.astype(dtype)
            else:
                Z.data *= weight[Z.indices].astype(dtype)
        offset = None if rest is None else rest.means[0] * weight
        return cls(
            Z, offset, root, None, problem.mean, problem.scale, problem.exponent // 2, name,
            problem.supports,
        )  # fmt: skip

    @property
    def n(self) -> int:
        return self.Z.shape[0]

    @property
    def p(self) -> int:
        return self.Z.shape[1]

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.Z.dtype

    def permuted(self, order: Index) -> Side:
        return replace(self, order=order)

    def matvec(self, v: Array) -> Array:
        """Z v, of one vector or several."""
        f = self._times(v, False)
        if self.offset is not None:
            shift = self.offset @ v
            f = f - (shift if self.root is None else _outer(self.root, shift))
        return f if self.order is None else f[self.order]

    def transpose_matvec(self, f: Array) -> Array:
        """Z' f."""
        if self.order is not None:
            g = np.empty_like(f)
            g[self.order] = f
            f = g
        v = self._times(f, True)
        if self.offset is not None:
            v = v - _outer(self.offset, f.sum(axis=0) if self.root is None else self.root @ f)
        return v

    def _times(self, v: Array, transposed: bool) -> Array:
        """Z v or Z'v, of which the bits are those of any number of threads."""
        if not is_sparse(self.Z):
            return tall_product(self.Z, v, transposed).astype(np.float64)
        return np.asarray((self.Z.T if transposed else self.Z) @ v.astype(self.Z.dtype), np.float64)

    def metric(self, ridge: float) -> Form:
        """The covariance, and a ridge."""
        form = Form.of(factor=self.Z)
        if self.offset is not None:
            total = float(self.n) if self.root is None else float(self.root @ self.root)
            o = self.offset[:, None]
            form = form + LowRank(o, np.array([[-total]]), o)
        level = self._levels(ridge, form.diagonal())
        if self.p > SUBMATRIX_ORDER:
            return replace(form, ridge=level if level.any() else None)
        return Form.with_level(form.block(np.arange(self.p)), level)

    def _levels(self, ridge: float, diagonal: Array) -> Array:
        """The ridge times the mean diagonal entry, for each variable that is not excluded."""
        kept = ~self.supports.excluded
        return np.where(kept, ridge * float(diagonal[kept].mean()), 0.0)

    def scores(self, given: Any, loadings: AnyArray) -> Any:
        """Of the rows that the side was made of."""
        return scores(given, loadings, self.mean, self.scale)

    def count(self, value: Any, name: str) -> int:
        """A cardinality, of variables or of groups."""
        why = "" if self.supports.plain else self.supports.why()
        return integer(value, name, *self.supports.bounds, why)


@record
class BlockSide(Side):
    """The same in blocks of rows, of which the operator makes the products, so that Z is None."""

    problem: Problem
    blocks: RowBlocks
    weight: Array

    @classmethod
    def of(cls, X: Any, scale: bool, name: str, choice: Known, sample_weight: Any) -> Side:
        blocks = _in_blocks(X, "X").held()
        problem = _problem(blocks, scale, choice, sample_weight)
        return cls(
            None, None, _roots(sample_weight), None, problem.mean, problem.scale, problem.exponent // 2, name,
            problem.supports, problem, blocks, _column_weights(problem),
        )  # fmt: skip

    @property
    def n(self) -> int:
        return self.blocks.shape[0]

    @property
    def p(self) -> int:
        return self.problem.p

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.problem.operator.dtype

    def scores(self, given: Any, loadings: AnyArray) -> Any:
        return scores(self.blocks, loadings, self.mean, self.scale)

    def matvec(self, v: Array) -> Array:
        """Z v, of one vector, in one pass."""
        f = self.problem.operator.forward_block(v[:, None])[:, 0]
        return f.astype(np.float64) / math.sqrt(self.n - 1)

    def metric(self, ridge: float) -> Form:
        matrix = self.problem.operator.submatrix(np.arange(self.p)).astype(np.float64)
        return Form.with_level(matrix, self._levels(ridge, matrix.diagonal()))

    def cross(self, other: BlockSide) -> Array:
        """Z'Z of both sides, (p, q), in one pass."""
        if 8 * self.p * other.p > KEPT_BYTES:
            raise ValueError(
                f"X and Y are in blocks of rows, of which products of p q <= {KEPT_BYTES // 8} entries are "
                f"formed, not of {self.p} x {other.p}: choose variables first, or bring both into memory"
            )
        if _is_first(other.blocks) and not _is_first(self.blocks):
            return other.cross(self).T
        units = [(side.mean, side.weight.astype(side.dtype)) for side in (self, other)]
        each = self.blocks.beside(other.blocks, None if self.root is None else self.root**2)
        return self.blocks.reduced(sum_parts, _products, units, each=each, entries=self.p * other.p)[0]


def _problem(X: Any, scale: bool, choice: Known, sample_weight: Any) -> Problem:
    with quiet("scale=True leaves"):  # which is the default, and what is constant cannot correlate
        return as_problem(X, scale=scale, choice=choice, sample_weight=sample_weight)


def _in_blocks(X: Any, name: str) -> RowBlocks:
    return row_blocks(X if is_row_blocks(X) or is_sparse(X) else real_array(X, name, ndim=2))


def _is_first(blocks: Any) -> bool:
    """Whether others are sent to where these are: a dask array."""
    return hasattr(blocks, "array")


def _parted_alike(X: Any, Y: Any) -> tuple[RowBlocks, RowBlocks]:
    """Both in the same blocks of rows, so that every pass over either reads the same."""
    x, y = _in_blocks(X, "X"), speaking_of_y(lambda: _in_blocks(Y, "X"))
    _refuse_uneven(x.shape[0], y.shape[0])
    y = copy.copy(y)
    y.called = "Y"
    if _is_first(y) and not _is_first(x):
        return x._parted_like(y), y
    return x, y._parted_like(x)


def _roots(sample_weight: Any) -> Array | None:
    return None if sample_weight is None else np.sqrt(np.asarray(sample_weight, np.float64))


def _products(block: Any, own: tuple[Any, Array | None], units: Any) -> tuple[Array]:
    """Of the rows of two blocks, centered and scaled."""
    other, weight = own
    left, right = as_kernel_input(block), as_kernel_input(other)
    out = np.zeros((left.shape[1], right.shape[1]))
    entries = max(1, CHUNK // max(left.shape[1], right.shape[1]))
    for (part, a), (_, b) in zip(
        dense_rows(left, entries * left.shape[1]), dense_rows(right, entries * right.shape[1]), strict=True
    ):
        (u, v), (w, z) = units
        with np.errstate(under="ignore"):
            A = (a - u) * v
            out += (A if weight is None else A * weight[part, None]).T @ ((b - w) * z)
    return (out,)


@record
class CrossCovariance:
    """C = X'Y, of whose products X'(Yv) the earlier pairs are taken away; nothing more once `stop` is set."""

    x: Side
    y: Side
    stop: threading.Event | None = None

    def __post_init__(self) -> None:
        x, y = self.x, self.y
        self.matrix: Array | None = (
            x.cross(y) if isinstance(x, BlockSide) and isinstance(y, BlockSide) else None
        )
        self.removed: LowRank = LowRank.none(x.p, y.p)
        self.signed: bool = any(s.supports.signs is not None for s in (x, y))

    def matvec(self, v: Array) -> Array:
        """C v, of one vector or several."""
        self._refuse_stopped()
        u = self.x.transpose_matvec(self.y.matvec(v)) if self.matrix is None else self.matrix @ v
        return u + self.removed.times(v)

    def transpose_matvec(self, u: Array) -> Array:
        """C' u."""
        self._refuse_stopped()
        v = self.y.transpose_matvec(self.x.matvec(u)) if self.matrix is None else self.matrix.T @ u
        return v + self.removed.T.times(u)

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

    def _refuse_stopped(self) -> None:
        if self.stop is not None and self.stop.is_set():
            raise InterruptedError("another thread was interrupted")


def _outer(a: Array, b: Any) -> Array:
    return a * b if np.ndim(b) == 0 else np.outer(a, b)


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

    def with_sign(self, given: bool) -> Pair:
        """The entry of u of largest magnitude becomes positive, unless signs are given; v turns with u."""
        return self if given else replace(self, u=fix_sign(self.u), v=sign_of(self.u) * self.v)
