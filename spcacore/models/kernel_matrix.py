"""The kernel matrix of all pairs of rows: its tiles, and its leading eigenvectors once it is doubly centered.

Square tiles of the lower triangle are computed into an n x n array for LAPACK or Lanczos, each by a matrix
product and a function applied in place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.linalg import lapack

from .. import _core
from .._limits import (
    COPIED_ENTRIES,
    FLOAT32_HALF_NORM,
    KERNEL_TOL,
    LAPACK_ORDER,
    SYMMETRY,
    TILE_ROWS,
    slices,
)
from .._records import record
from .._types import AnyArray, Array, DType
from .._validation import as_dense, check_shape, real_array
from ..linalg.eigen import interruptible, leading_eigenpairs
from ..linalg.orthogonal import matrix_product
from ..linalg.scaling import beyond_range, eps_of, exponent_above, largest_magnitude
from ..linalg.threads import Report, in_threads

KernelFunction = Callable[[Any, Any], Any]


# ---- kernels ----------------------------------------------------------------------------------------


@record
class Rows:
    """Shifted and scaled rows, with half their squared norms for distances."""

    matrix: Any
    half: Any
    n: int


@record
class Kernel:
    """A kernel of rows that are first shifted and scaled: `(x - shift) * factor`."""

    function: str | KernelFunction
    p: int
    bandwidth: Any = None
    degree: Any = None
    gamma: Any = None
    coef0: Any = None
    shift: Array | None = None
    factor: float = 1.0
    sparse: bool = False

    def rows(self, X: Any) -> Rows:
        """Return a shifted and scaled copy of X; for a precomputed kernel, X itself."""
        n = X.shape[0]
        check_shape(X, "X", "n", self.p)
        if self.function == "precomputed":
            return Rows(X, None, n)
        matrix = self._shift_and_scale(X, X.dtype)
        if self.function != "rbf":
            return Rows(matrix, None, n)
        half = self._half_squared_norms(matrix)
        if matrix.dtype == np.float32 and half.max() > FLOAT32_HALF_NORM:
            matrix = self._shift_and_scale(X, np.dtype(np.float64))
            half = self._half_squared_norms(matrix)
        if not np.isfinite(half).all():
            raise ValueError(f"bandwidth is too small for distances in X: {self.bandwidth:g}")
        return Rows(matrix, half, n)

    def _shift_and_scale(self, X: Any, dtype: DType) -> Any:
        """Return (X - shift) * factor in this type; sparse rows have no shift."""
        if self.sparse:
            from scipy.sparse import csr_array

            scaled = csr_array(X, dtype=dtype, copy=True)
            scaled.data *= self.factor
            return scaled
        matrix = np.empty(X.shape, dtype)
        for part in slices(len(matrix), self.p, COPIED_ENTRIES):
            block = as_dense(X[part])
            block = block.astype(np.float64) if self.shift is None else block - self.shift
            np.multiply(block, self.factor, out=matrix[part], casting="same_kind")
        return matrix

    def _half_squared_norms(self, matrix: Any) -> AnyArray:
        """Return half of the squared norm of each row."""
        with beyond_range():
            if self.sparse:
                return np.asarray(matrix.multiply(matrix).sum(axis=1)).ravel() / 2
            return np.einsum("ij,ij->i", matrix, matrix) / 2

    def tile(self, a: Rows, i: slice, b: Rows, j: slice, out: AnyArray) -> None:
        """Write the kernel between rows i of a and rows j of b to `out`; for "rbf", less 1."""
        if self.function == "precomputed":
            out[...] = a.matrix[i, j]
            return
        # Products of rows
        A, B = a.matrix[i], b.matrix[j]
        dtype = np.result_type(A.dtype, B.dtype)
        values = out if dtype == out.dtype or callable(self.function) else np.empty(out.shape, dtype)
        with beyond_range():
            if callable(self.function):
                values = real_array(self.function(A, B), "kernel(A, B)", ndim=2, shape=out.shape)
            elif self.sparse:
                values[...] = (A @ B.T).toarray()
            else:
                same = a is b and i == j
                other = None if same else np.ascontiguousarray(B, values.dtype)
                _core.matrix_product(np.ascontiguousarray(A, values.dtype), other, 1.0, values)
            # exp(-d^2/2) - 1, with -d^2/2 = x'y - x'x/2 - y'y/2
            if self.function == "rbf":
                values -= a.half[i, None]
                values -= b.half[j]
                np.minimum(values, 0, out=values)
                if a is b and i == j:
                    np.fill_diagonal(values, 0)
                np.expm1(values, out=values)
            elif self.function in ("polynomial", "sigmoid"):
                values *= self.gamma
                values += self.coef0
                if self.function == "sigmoid":
                    np.tanh(values, out=values)
                else:
                    _power(values, self.degree)
            if values is not out:
                out[...] = values


def _power(out: AnyArray, degree: int) -> None:
    """Raise the entries to an integer power in place, by squarings."""
    base = out.copy()
    for bit in f"{degree:b}"[1:]:
        np.square(out, out=out)
        if bit == "1":
            out *= base


def tiles(n: int) -> Iterator[tuple[slice, slice]]:
    """Yield the rows and the columns of each tile of the lower triangle of an n x n matrix."""
    for i in slices(n, 1, TILE_ROWS):
        for j in slices(i.stop, 1, TILE_ROWS):
            yield i, j


def expanded(kernel: Kernel, samples: Rows, X: Any, mean: AnyArray, coefficients: AnyArray) -> AnyArray:
    """Return (k(X, samples) - mean) @ coefficients, computed tile by tile."""
    m, dtype = X.shape[0], np.result_type(X.dtype, coefficients.dtype)
    check_shape(X, "X", "n", kernel.p)
    out = np.zeros((m, coefficients.shape[1]), dtype)
    buffer = np.empty((TILE_ROWS, TILE_ROWS), dtype)
    for part in slices(m, 1, TILE_ROWS):
        rows = kernel.rows(X[part])
        for j in slices(samples.n, 1, TILE_ROWS):
            tile = buffer[: rows.n, : j.stop - j.start]
            kernel.tile(rows, slice(0, rows.n), samples, j, tile)
            with beyond_range():  # an error follows
                tile -= mean[j]
                out[part] += matrix_product(tile, coefficients[j].T)
    if not np.isfinite(out).all():
        raise ValueError("the kernel between X and the samples is beyond the number range")
    return out


# ---- the kernel matrix and its leading eigenvectors -------------------------------------------------


@dataclass(eq=False)
class KernelMatrix:
    """The doubly centered kernel matrix of all samples, times 2^-exponent.

    With weights, the means are weighted, and the matrix is multiplied by their square roots from both sides.
    """

    kernel: Kernel
    rows: Rows
    dtype: DType
    weight: Array | None
    mean: Array = field(init=False)  # the means of the columns
    center: float = 0.0  # the mean of `mean`
    exponent: int = 0
    largest: float = 1.0

    @property
    def half_exponent(self) -> int:
        """The power of two by which scores are multiplied in the end."""
        kernel = self.kernel
        return self.exponent // 2 - (exponent_above(kernel.factor) - 1 if kernel.function == "linear" else 0)

    def noise(self, first: float) -> float:
        """Return the size up to which eigenvalues may be rounding."""
        return 100 * eps_of(self.dtype) * max(first, math.sqrt(self.rows.n) * self.largest)

    def _center(self, tile: AnyArray, i: slice, j: slice) -> None:
        """Subtract mean_a + mean_b - mean of means from a tile, in place, and apply weights and exponent."""
        tile -= self.mean[j].astype(self.dtype)
        tile -= (self.mean[i] - self.center).astype(self.dtype)[:, None]
        if self.weight is not None:
            tile *= np.sqrt(self.weight[i, None]).astype(self.dtype)
            tile *= np.sqrt(self.weight[j]).astype(self.dtype)
        if self.exponent:
            tile *= 2.0**-self.exponent

    def _measure(self, K: AnyArray) -> None:
        """Set the means and the exponent, and check symmetry."""
        n, function = self.rows.n, self.kernel.function
        # Sums over all tiles
        total, largest, asymmetry = np.zeros(n), 0.0, 0.0
        for i, j in tiles(n):
            tile = K[i, j]
            with beyond_range():
                total[i] += self._sums(tile, j)
                if i != j:
                    total[j] += self._sums(tile.T, i)
                if function != "rbf":
                    largest = max(largest, largest_magnitude(tile))
                if function == "precomputed":
                    asymmetry = max(asymmetry, largest_magnitude(tile - self.rows.matrix[j, i].T))
                elif callable(function) and i == j:
                    asymmetry = max(asymmetry, largest_magnitude(tile - tile.T))
        if not np.isfinite(total).all():
            raise ValueError("the kernel has values beyond the number range; scale X, or gamma")
        if asymmetry > largest * SYMMETRY.of(self.dtype):
            what = "a precomputed kernel matrix" if function == "precomputed" else "a kernel"
            raise ValueError(f"{what} must be symmetric, and this one is not, by up to {asymmetry:.3g}")
        # Means and scale
        self.mean = total / (n if self.weight is None else self.weight.sum())
        self.center = float(np.average(self.mean, weights=self.weight))
        if function != "rbf":
            exponent = exponent_above(largest)
            self.exponent = exponent + exponent % 2
            self.largest = math.ldexp(largest, -self.exponent)
        if self.weight is not None:
            self.largest *= float(self.weight.max())

    def _sums(self, tile: AnyArray, columns: slice) -> Array:
        """Return the sums of the rows of a tile, each column as often as its weight says."""
        if self.weight is None:
            return tile.sum(axis=1, dtype=np.float64)
        return np.asarray((tile * self.weight[columns]).sum(axis=1))

    def components(self, r: int, dense: bool, seed: int) -> tuple[Array, Array, float, str]:
        """Return the r largest eigenvalues, their vectors, the trace, and the name of the solver."""
        n = self.rows.n
        K = np.empty((n, n), self.dtype)

        def fill(where: tuple[slice, slice], report: Report) -> None:
            report()
            self.kernel.tile(self.rows, where[0], self.rows, where[1], K[where])

        # A callable holds the GIL; sparse products are not safe in threads
        serial = callable(self.kernel.function) or self.kernel.sparse
        in_threads(fill, list(tiles(n)), 1 if serial else _core.shares_loops())
        self._measure(K)
        for i, j in tiles(n):
            self._center(K[i, j], i, j)
        trace = float(K.diagonal().sum(dtype=np.float64))
        values, U, solver = leading(K, r, dense, seed)
        return values, U, trace, solver


def leading(K: AnyArray, r: int, dense: bool, seed: int) -> tuple[Array, Array, str]:
    """Return the r largest eigenvalues, their vectors and the solver, from the lower triangle of K.

    The upper triangle is overwritten. `dense` asks for LAPACK.
    """
    from scipy.sparse.linalg import LinearOperator

    for i, j in tiles(len(K)):
        if i != j:
            K[j, i] = K[i, j].T
    op = _core.dense(K.T, True, None, None, 1.0, 1.0)
    symmetric = LinearOperator(
        K.shape, dtype=np.float64,
        matvec=lambda v: op.apply(None, np.ascontiguousarray(v.ravel(), K.dtype)).astype(float),
    )  # fmt: skip
    start = np.random.default_rng(seed).standard_normal(len(K))
    values, U, by_lanczos = leading_eigenpairs(
        K, r, None if dense else symmetric, v0=start - start.mean(), tol=KERNEL_TOL.of(K.dtype),
        maxiter=max(30, len(K) // 15),
    )  # fmt: skip
    return values, U, "lanczos" if by_lanczos else "lapack"


def large(size: int, r: int) -> bool:
    """Whether Lanczos takes less time than LAPACK."""
    return size > LAPACK_ORDER and r <= size // 10


# ---- pre-images ---------------------------------------------------------------------------------------


def preimages(
    name: str | KernelFunction,
    options: dict[str, Any],
    scores: AnyArray,
    data: Any,
    ridge: float,
    weight: Any,
) -> tuple[Kernel, Rows, AnyArray]:
    """Return what pre-images need: the kernel of the scores, the scores, and (K + ridge W^-1)^-1 X.

    K is the kernel matrix of the scores and W has the weights of the samples.
    """
    if weight is not None:
        scores, data, ridge = scores[weight > 0], data[weight > 0], ridge / weight[weight > 0]
    n, r = scores.shape
    factor = 1 / options["bandwidth"] if name == "rbf" else 1.0
    kernel = Kernel(name, r, **options, factor=factor)
    rows = kernel.rows(scores)
    K = np.empty((n, n), scores.dtype)
    for i, j in tiles(n):
        kernel.tile(rows, i, rows, j, K[i, j])
        if name == "rbf":
            K[i, j] += 1
        if i != j:
            K[j, i] = K[i, j].T
    K.flat[:: n + 1] += ridge
    # The system
    right = as_dense(data)
    definite = name in ("linear", "polynomial", "rbf") and (options["coef0"] or 0) >= 0
    (norm_of,) = lapack.get_lapack_funcs(("lange",), (K,))
    norm, wrong = norm_of("1", K.T), "the kernel of the scores is not finite"  # for the condition number
    if math.isfinite(norm):
        dual, wrong = interruptible(lambda: _solve(K.T, right, definite, norm))
    if wrong:
        raise ValueError(f"pre-images cannot be fitted, a larger ridge may help: {wrong}")
    return kernel, rows, dual


def _solve(K: AnyArray, right: AnyArray, definite: bool, norm: float) -> tuple[AnyArray, str]:
    """Return K^-1 right, and a message if that is not accurate; the upper triangle of K is overwritten.

    LAPACK is called directly, because scipy.linalg.solve reports a nearly singular matrix by a warning, which
    only a filter of the whole process could catch.
    """
    names = ("posv", "pocon") if definite else ("sysv", "sycon")
    solve, condition = lapack.get_lapack_funcs(names, (K, right))
    *factor, dual, info = solve(K, right, lower=0, overwrite_a=1)
    if info != 0:
        return dual, f"the kernel of the scores is {'not positive definite' if definite else 'singular'}"
    rcond, _ = condition(*factor, norm)
    return dual, f"it is nearly singular, rcond={rcond:.3g}" if rcond < eps_of(K.dtype) else ""
