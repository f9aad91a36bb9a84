"""The kernel matrix of all pairs of rows: its tiles, and its leading eigenvectors once doubly centered.

Square tiles of its lower triangle are computed, each by a matrix product and a function applied in place:
once, into an n x n array for LAPACK or Lanczos, or again for each product of a block Lanczos method.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.linalg import lapack, qr

from .. import _core
from .._limits import (
    COPIED_ENTRIES,
    FLOAT32_HALF_NORM,
    HELD_TILES,
    KERNEL_TOL,
    LANCZOS_PASSES,
    LAPACK_ORDER,
    SYMMETRY,
    TILE_ROWS,
)
from .._messages import warn
from .._records import record
from .._types import AnyArray, Array
from .._validation import check_shape, is_sparse, real_array
from ..linalg.eigen import interruptible, leading_eigenpairs
from ..linalg.scaling import exponent_above
from ..linalg.threads import Report, in_threads

__all__ = [
    "Kernel", "KernelFunction", "KernelMatrix", "Rows", "Vector", "blocks", "expanded", "large",
    "largest_magnitude", "leading", "preimages", "signed", "tiles", "tolerance",
]  # fmt: skip

KernelFunction = Callable[[Any, Any], Any]
Vector = Array


def blocks(n: int, width: int) -> Iterator[slice]:
    """Slices of n rows, as many at a time as `COPIED_ENTRIES` of this width allow."""
    step = max(1, COPIED_ENTRIES // width)
    return (slice(start, min(n, start + step)) for start in range(0, n, step))


def largest_magnitude(a: Any) -> float:
    """Of the entries of an array, without a copy, or of a sparse matrix."""
    if is_sparse(a):
        return float(abs(a).max())
    return max(float(a.max(initial=0)), -float(a.min(initial=0)))


def signed(U: AnyArray) -> AnyArray:
    """Columns with signs such that the entry of largest magnitude, the first if tied, is positive."""
    largest = U[np.abs(U).argmax(axis=0), np.arange(U.shape[1])]
    return U * np.where(largest < 0, -1, 1).astype(U.dtype)


# ---- kernels ----------------------------------------------------------------------------------------


@record
class Rows:
    """Shifted and scaled rows, with half their squared norms for distances."""

    matrix: Any
    half: AnyArray | None
    n: int


@record
class Kernel:
    """A kernel of rows that are first shifted and scaled: `(x - shift) * factor`."""

    function: str | KernelFunction
    p: int
    bandwidth: float | None = None
    degree: int | None = None
    gamma: float | None = None
    coef0: float | None = None
    shift: Array | None = None
    factor: float = 1.0
    sparse: bool = False

    def rows(self, X: Any) -> Rows:
        """A copy, shifted and scaled; of a precomputed kernel the matrix itself."""
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

    def _shift_and_scale(self, X: Any, dtype: np.dtype) -> Any:
        if self.sparse:
            from scipy.sparse import csr_array

            scaled = csr_array(X, dtype=dtype, copy=True)
            scaled.data *= self.factor
            return scaled
        matrix = np.empty(X.shape, dtype)
        for part in blocks(*X.shape):
            block = X[part].toarray() if is_sparse(X) else X[part]
            block = block.astype(np.float64) if self.shift is None else block - self.shift
            np.multiply(block, self.factor, out=matrix[part], casting="same_kind")
        return matrix

    def _half_squared_norms(self, matrix: Any) -> AnyArray:
        with np.errstate(over="ignore"):
            if self.sparse:
                return np.asarray(matrix.multiply(matrix).sum(axis=1)).ravel() / 2
            return np.einsum("ij,ij->i", matrix, matrix) / 2

    def tile(self, a: Rows, i: slice, b: Rows, j: slice, out: AnyArray) -> None:
        """out = the kernel between rows i of a and rows j of b, for "rbf" less 1."""
        if self.function == "precomputed":
            out[...] = a.matrix[i, j]
            return
        A, B = a.matrix[i], b.matrix[j]
        dtype = np.result_type(A.dtype, B.dtype)
        values = out if dtype == out.dtype or callable(self.function) else np.empty(out.shape, dtype)
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            if callable(self.function):
                values = real_array(self.function(A, B), "kernel(A, B)", ndim=2, shape=out.shape)
            elif self.sparse:
                values[...] = (A @ B.T).toarray()
            else:
                same = a is b and i == j
                other = None if same else np.ascontiguousarray(B, values.dtype)
                _core.matrix_product(np.ascontiguousarray(A, values.dtype), other, 1.0, values)
            if self.function == "rbf":
                assert a.half is not None
                assert b.half is not None
                values -= a.half[i, None]
                values -= b.half[j]
                np.minimum(values, 0, out=values)
                if a is b and i == j:
                    np.fill_diagonal(values, 0)
                np.expm1(values, out=values)
            elif self.function in ("polynomial", "sigmoid"):
                assert self.gamma is not None
                assert self.coef0 is not None
                values *= self.gamma
                values += self.coef0
                if self.function == "sigmoid":
                    np.tanh(values, out=values)
                else:
                    _power(values, self.degree)
            if values is not out:
                out[...] = values


def _power(out: AnyArray, degree: int | None) -> None:
    """Integer powers in place, by squarings."""
    base = out.copy()
    for bit in f"{degree:b}"[1:]:
        np.square(out, out=out)
        if bit == "1":
            out *= base


def tiles(n: int) -> Iterator[tuple[slice, slice]]:
    """The tiles of the lower triangle."""
    for s in range(0, n, TILE_ROWS):
        i = slice(s, min(n, s + TILE_ROWS))
        for t in range(0, s + 1, TILE_ROWS):
            yield i, slice(t, min(n, t + TILE_ROWS))


def expanded(kernel: Kernel, samples: Rows, X: Any, mean: AnyArray, coefficients: AnyArray) -> AnyArray:
    """(k(X, samples) - mean) @ coefficients, tile by tile."""
    m, dtype = X.shape[0], np.result_type(X.dtype, coefficients.dtype)
    check_shape(X, "X", "n", kernel.p)
    out = np.zeros((m, coefficients.shape[1]), dtype)
    buffer = np.empty((TILE_ROWS, TILE_ROWS), dtype)
    for s in range(0, m, TILE_ROWS):
        part = slice(s, min(m, s + TILE_ROWS))
        rows = kernel.rows(X[part])
        for t in range(0, samples.n, TILE_ROWS):
            j = slice(t, min(samples.n, t + TILE_ROWS))
            tile = buffer[: rows.n, : j.stop - t]
            kernel.tile(rows, slice(0, rows.n), samples, j, tile)
            with np.errstate(over="ignore", invalid="ignore"):  # raised below
                tile -= mean[j]
                out[part] += tile @ coefficients[j]
    if not np.isfinite(out).all():
        raise ValueError("the kernel between X and the samples is beyond the number range")
    return out


# ---- the kernel matrix and its leading eigenvectors -------------------------------------------------


class KernelMatrix:
    """The kernel matrix of all samples, doubly centered and times 2^-exponent; with weights, of which the
    means are, times the roots of these from both sides."""

    def __init__(
        self, kernel: Kernel, rows: Rows, n: int, dtype: np.dtype, weight: Array | None = None
    ) -> None:
        self.kernel, self.rows, self.n, self.dtype, self.weight = kernel, rows, n, dtype, weight
        self.held: AnyArray | None = None
        self.mean, self.center = np.zeros(n), 0.0  # of columns, and of these
        self.exponent = 0
        self.largest = 1.0

    @property
    def half_exponent(self) -> int:
        """The power of two that scores are multiplied by in the end."""
        kernel = self.kernel
        return self.exponent // 2 - (exponent_above(kernel.factor) - 1 if kernel.function == "linear" else 0)

    def noise(self, first: float) -> float:
        """Eigenvalues up to this size may be rounding errors."""
        return 100 * float(np.finfo(self.dtype).eps) * max(first, math.sqrt(self.n) * self.largest)

    def _uncentered_tiles(self) -> Iterator[tuple[slice, slice, AnyArray]]:
        """Each tile, in the array `held` or in a buffer."""
        serial = callable(self.kernel.function) or self.kernel.sparse  # the GIL, or unsafe
        threads = 1 if serial or self.n <= TILE_ROWS else _core.shares_loops()
        width = threads if self.held is None else threads * HELD_TILES
        places = list(tiles(self.n))
        buffers = np.empty((0 if self.held is not None else width, TILE_ROWS, TILE_ROWS), self.dtype)
        for first in range(0, len(places), width):
            some = places[first : first + width]
            if self.held is not None:
                filled = [self.held[place] for place in some]
            else:
                filled = [
                    b[: i.stop - i.start, : j.stop - j.start]
                    for b, (i, j) in zip(buffers, some, strict=False)
                ]
            in_threads(self._fill, list(zip(some, filled, strict=True)), threads)
            for (i, j), tile in zip(some, filled, strict=True):
                yield i, j, tile

    def _fill(self, where: tuple[tuple[slice, slice], AnyArray], report: Report) -> None:
        (i, j), tile = where
        report()
        self.kernel.tile(self.rows, i, self.rows, j, tile)

    def _center(self, tile: AnyArray, i: slice, j: slice) -> None:
        """tile_ab -= mean_a + mean_b - mean of means."""
        tile -= self.mean[j].astype(self.dtype)
        tile -= (self.mean[i] - self.center).astype(self.dtype)[:, None]
        if self.weight is not None:
            tile *= np.sqrt(self.weight[i, None]).astype(self.dtype)
            tile *= np.sqrt(self.weight[j]).astype(self.dtype)
        if self.exponent:
            tile *= 2.0**-self.exponent

    def _measure(self) -> float:
        """One pass over the tiles: sets means and exponent, checks symmetry, returns the centered trace."""
        n, function = self.n, self.kernel.function
        total, trace, largest, asymmetry = np.zeros(n), 0.0, 0.0, 0.0
        for i, j, tile in self._uncentered_tiles():
            with np.errstate(over="ignore", invalid="ignore"):
                total[i] += self._sums(tile, j)
                if i == j:
                    trace += float(self._sums(tile.diagonal()[None], i)[0])
                else:
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
        self.mean = total / (n if self.weight is None else self.weight.sum())
        self.center = float(np.average(self.mean, weights=self.weight))
        if function != "rbf":
            exponent = exponent_above(largest)
            self.exponent = exponent + exponent % 2
            self.largest = math.ldexp(largest, -self.exponent)
        if self.weight is not None:
            self.largest *= float(self.weight.max())
        return math.ldexp(trace - float(self._sums(self.mean[None], slice(None))[0]), -self.exponent)

    def _sums(self, tile: AnyArray, columns: slice) -> Array:
        """Of the rows, each column as often as its weight says."""
        if self.weight is None:
            return tile.sum(axis=1, dtype=np.float64)
        return np.asarray(tile @ self.weight[columns])

    def held_components(self, r: int, dense: bool, seed: int) -> tuple[Vector, Vector, float, str]:
        """The r largest eigenvalues, their vectors, the trace and the solver, of a matrix in memory."""
        n = self.n
        K = self.held = np.empty((n, n), self.dtype)
        self._measure()
        for i, j in tiles(n):
            self._center(K[i, j], i, j)
        self.held = None
        trace = float(K.diagonal().sum(dtype=np.float64))
        values, U, solver = leading(K, r, dense, seed)
        return values, U, trace, solver

    def streamed_components(self, r: int, seed: int) -> tuple[Vector, Vector, float]:
        """Eigenvalues, vectors and trace by block Lanczos; each product computes the tiles again."""
        trace = self._measure()
        values, U = _block_lanczos(self._product, self.n, r, tolerance(self.dtype), seed)
        return values, U, trace

    def _product(self, V: Array) -> Array:
        V = V.astype(self.dtype, copy=False)
        out = np.zeros(V.shape)
        for i, j, tile in self._uncentered_tiles():
            self._center(tile, i, j)
            out[i] += tile @ V[j]
            if i != j:
                out[j] += tile.T @ V[i]
        return out


def leading(K: AnyArray, r: int, dense: bool, seed: int) -> tuple[Vector, Vector, str]:
    """The r largest eigenvalues and their vectors from the lower triangle, which is overwritten."""
    from scipy.sparse.linalg import LinearOperator

    for i, j in tiles(len(K)):
        if i != j:
            K[j, i] = K[i, j].T
    op = _core.dense(K.T, True, None, None, 1.0, 1.0)
    symmetric = LinearOperator(
        K.shape, dtype=np.float64,
        matvec=lambda v: op.apply(None, np.ascontiguousarray(v.ravel(), K.dtype)).astype(float),
    )  # fmt: skip
    values, U, by_lanczos = leading_eigenpairs(
        K, r, None if dense else symmetric, v0=_centered_start(len(K), 1, seed)[:, 0],
        tol=tolerance(K.dtype), maxiter=max(30, len(K) // 15),
    )  # fmt: skip
    return values, U, "lanczos" if by_lanczos else "lapack"


def tolerance(dtype: np.dtype) -> float:
    """Of the residual of an eigenvector, relative to the largest eigenvalue."""
    return KERNEL_TOL.of(dtype)


def large(size: int, r: int) -> bool:
    """Whether Lanczos takes less time than LAPACK."""
    return size > LAPACK_ORDER and r <= size // 10


def _centered_start(n: int, width: int, seed: int) -> Array:
    V = np.random.default_rng(seed).standard_normal((n, width))
    return V - V.mean(axis=0)


def _block_lanczos(
    product: Callable[[Array], Array], n: int, r: int, tol: float, seed: int
) -> tuple[Array, Array]:
    """The r largest eigenvalues and their vectors from few products with many columns.

    Block Lanczos with full orthogonalization, restarted with the leading half of the Ritz vectors
    (K. Wu and H. Simon 2000, SIAM J. Matrix Anal. Appl. 22, for a single vector).
    """
    width = min(n - 1, max(16, 2 * r))
    capacity = min(n, 8 * width) + width
    Q, W, T = np.empty((n, capacity)), np.empty((n, capacity)), np.zeros((capacity, capacity))
    V = np.linalg.qr(_centered_start(n, width, seed))[0]
    k = 0
    for _ in range(LANCZOS_PASSES):
        new = slice(k, k + V.shape[1])
        Q[:, new], W[:, new] = V, product(V)
        k = new.stop
        T[:k, new] = Q[:, :k].T @ W[:, new]
        T[new, :k] = T[:k, new].T
        values, S = np.linalg.eigh(T[:k, :k])
        values, S = values[::-1], S[:, ::-1]
        residual = W[:, :k] @ S[:, :r] - Q[:, :k] @ (S[:, :r] * values[:r])
        scale = float(np.abs(values).max())
        if k >= r and np.linalg.norm(residual, axis=0).max() <= tol * scale:
            break
        V = _new_directions(W[:, new], Q[:, :k], scale)
        if V.shape[1] == 0 or k == n:
            break
        if k + V.shape[1] > capacity:
            half = max(r, capacity // 2 - width)
            Q[:, :half], W[:, :half] = Q[:, :k] @ S[:, :half], W[:, :k] @ S[:, :half]
            T[:half, :half], k = np.diag(values[:half]), half
    else:
        warn(f"not converged in {LANCZOS_PASSES} products")
    return values[:r], Q[:, :k] @ S[:, :r]


def _new_directions(block: Array, Q: Array, scale: float) -> Array:
    """An orthonormal basis of the part of the block that is orthogonal to Q."""
    V = block - Q @ (Q.T @ block)
    V, R, _ = qr(V, mode="economic", pivoting=True)
    V = V[:, np.abs(R.diagonal()) > 1e-12 * scale]
    V = V - Q @ (Q.T @ V)
    return np.linalg.qr(V)[0]


# ---- pre-images ---------------------------------------------------------------------------------------


def preimages(
    name: str | KernelFunction,
    options: dict[str, Any],
    scores: AnyArray,
    data: Any,
    ridge: float,
    weight: Any,
) -> tuple[Kernel, Rows, AnyArray]:
    """(K + ridge W^-1)^-1 X, with K the kernel between the scores, W their weights."""
    if weight is not None:
        scores, data, ridge = scores[weight > 0], data[weight > 0], ridge / weight[weight > 0]
    n, r = scores.shape
    factor = 1 / options["bandwidth"] if name == "rbf" else 1.0
    kernel = Kernel(name, r, **options, factor=factor)
    rows = kernel.rows(scores)
    K = np.empty((n, n), scores.dtype)
    sums = np.zeros(n)  # of the magnitudes of each column
    for i, j in tiles(n):
        kernel.tile(rows, i, rows, j, K[i, j])
        if name == "rbf":
            K[i, j] += 1
        size = np.abs(K[i, j])
        sums[j] += size.sum(axis=0)
        if i != j:
            sums[i] += size.sum(axis=1)
    K.flat[:: n + 1] += ridge
    right = data.toarray() if is_sparse(data) else data
    definite = name in ("linear", "polynomial", "rbf") and (options["coef0"] or 0) >= 0
    norm = float((sums + ridge).max())
    wrong = "the kernel of the scores is not finite"
    if math.isfinite(norm):
        dual, wrong = interruptible(lambda: _solve(K.T, right, definite, norm))
    if wrong:
        raise ValueError(f"pre-images cannot be fitted, a larger ridge may help: {wrong}")
    return kernel, rows, dual


def _solve(K: AnyArray, right: AnyArray, definite: bool, norm: float) -> tuple[AnyArray, str]:
    """K^-1 right by the upper triangle of K, which is overwritten, and a message where that is not accurate.

    scipy.linalg.solve reports a nearly singular matrix by a warning, which only a filter of the whole process
    could catch.
    """
    names = ("posv", "pocon") if definite else ("sysv", "sycon")
    solve, condition = lapack.get_lapack_funcs(names, (K, right))
    *factor, dual, info = solve(K, right, lower=0, overwrite_a=1)
    if info != 0:
        return dual, f"the kernel of the scores is {'not positive definite' if definite else 'singular'}"
    rcond, _ = condition(*factor, norm)
    return dual, f"it is nearly singular, rcond={rcond:.3g}" if rcond < np.finfo(K.dtype).eps else ""
