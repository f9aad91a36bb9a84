"""Eigenpairs of symmetric matrices, of operators that offer only products, and of pencils.

| wanted | of | function | algorithm |
|---|---|---|---|
| all | a matrix | `all_eigenpairs` | as the r largest, which are backward stable: errors of some eps ||A|| |
| r largest | a matrix | `leading_eigenpairs` | ARPACK if asked and soon converged, else as below |
| r largest | a matrix | `upper_eigenpairs` | LAPACK; from `THREADED_ORDER` on a tridiagonal form of our own |
| r largest | products | `largest_eigenpairs` | ARPACK (implicitly restarted Lanczos), to `tol` |
| r largest | an operator | `leading_eigenvectors` | as a matrix up to `ALL_VECTORS_ORDER`, then ARPACK |

Eigenvalues of `leading_` functions descend; the others keep the order of LAPACK and ARPACK, ascending. Those
of `all_` and `upper_eigenpairs` have the same bits for any number of threads of BLAS.
"""

from __future__ import annotations

import atexit
import inspect
import math
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from .. import _core
from .._limits import (
    ALL_VECTORS_ORDER,
    EIGENVECTOR_TOL,
    NULL_WEIGHT,
    RISE,
    SIGNED_RATIOS,
    THREADED_ORDER,
    TIE,
)
from .._records import record
from .._types import AnyArray, Array, Index, Mask
from .orthogonal import inner_products, project_out, symmetrized
from .scaling import EPS, below_range, exponent_above, largest_magnitude
from .threads import settle

# ---- long LAPACK calls that Ctrl-C need not wait for ----------------------------------------------------


def interruptible(call: Callable[[], Any]) -> Any:
    """Return the result of a call that cannot be interrupted; another thread makes it while this one waits.

    Python delivers signals to its main thread between two instructions, so only after LAPACK returns; but it
    wakes a main thread that waits. The call is then left to itself, so it must not write to what the caller
    keeps. The end of the process waits for it, because LAPACK's buffers must outlive it.
    """
    if threading.current_thread() is not threading.main_thread():
        return call()
    outcome: Future[Any] = Future()
    worker = threading.Thread(target=settle, args=(outcome, call), daemon=True)
    worker.start()
    try:
        return outcome.result()
    finally:
        if not outcome.done():
            atexit.register(worker.join)


def all_eigenpairs(G: Array) -> tuple[Array, Array]:
    """Return all eigenvalues of a symmetric matrix, ascending, and their vectors; Ctrl-C need not wait."""
    return upper_eigenpairs(np.array(G, order="C"), len(G))


def upper_eigenpairs(A: AnyArray, r: int) -> tuple[AnyArray, AnyArray]:
    """Return the r largest eigenvalues of a symmetric matrix, ascending, and their vectors.

    The lower triangle is read, and A overwritten. Where BLAS would use threads, LAPACK only solves a
    tridiagonal problem, in which no call of BLAS is long enough for threads. So the bits do not depend on
    their number.
    """
    from scipy.linalg import eigh_tridiagonal

    n = len(A)
    if n < THREADED_ORDER:
        values, vectors = np.linalg.eigh(A)
        return values[n - r :], vectors[:, n - r :]
    asked: dict[str, Any] = {"select": "i", "select_range": (n - r, n - 1)}
    if r == n:  # dividing and conquering, SciPy's choice, multiplies matrices by BLAS
        asked = {"lapack_driver": "stemr"}
    # A tridiagonal form by the loops of this package, its eigenvectors by LAPACK, and back
    shift = exponent_above(largest_magnitude(A))
    T = np.ascontiguousarray(A)
    np.ldexp(T, -shift, out=T)
    diagonal, beside, tau = _core.tridiagonal(T)
    values, vectors = interruptible(lambda: eigh_tridiagonal(diagonal, beside, **asked))
    V = np.ascontiguousarray(vectors.T)
    _core.untridiagonal(T, tau, V)
    return np.ldexp(values, shift), V.T


def leading_eigenpairs(
    A: AnyArray, r: int, products: Any = None, **options: Any
) -> tuple[Array, Array, bool]:
    """Return the r largest eigenvalues of a symmetric matrix, their vectors, and whether ARPACK found them.

    ARPACK is asked if `products` (the matrix, or a `LinearOperator`) is given, with the options. If not, or
    if `maxiter` restarts do not suffice, or the matrix is zero, the lower triangle is decomposed, and A
    overwritten.
    """
    if products is not None:
        from scipy.sparse.linalg import ArpackError

        with suppress(ArpackError):
            return *_descending(*largest_eigenpairs(products, r, **options)), True
    return *_descending(*upper_eigenpairs(A, r)), False


def _descending(values: AnyArray, vectors: AnyArray) -> tuple[Array, Array]:
    """Return eigenpairs in descending order, as float64."""
    return values[::-1].astype(np.float64), vectors[:, ::-1].astype(np.float64)


def leading_eigenvectors(op: _core.Operator, r: int) -> tuple[Array, Array]:
    """Return the r largest eigenvalues of an operator, descending, and their vectors.

    If the operator is small, its matrix is decomposed.
    """
    if op.p <= ALL_VECTORS_ORDER or r >= op.p - 1:
        return leading_eigenpairs(op.submatrix(np.arange(op.p)).astype(np.float64), min(r, op.p))[:2]
    start = np.random.default_rng(0).standard_normal(op.p).astype(op.dtype)
    tol = EIGENVECTOR_TOL.of(op.dtype)
    return _descending(*largest_eigenpairs(products_of(op), r, v0=start, tol=tol))


def products_of(op: Any) -> Any:
    """Return the operator as a `LinearOperator` of SciPy."""
    from scipy.sparse.linalg import LinearOperator

    return LinearOperator(
        (op.p, op.p), dtype=op.dtype,
        matvec=lambda v: op.apply(None, np.ascontiguousarray(v.ravel(), op.dtype)),
    )  # fmt: skip


def largest_eigenpairs(A: Any, r: int, **options: Any) -> tuple[AnyArray, AnyArray]:
    """Return the r largest eigenvalues, ascending, and their vectors by ARPACK, the same at each call.

    SciPy alone would restart at random. The options are those of `scipy.sparse.linalg.eigsh`: start,
    tolerance, number of restarts. If these do not suffice, `ArpackNoConvergence` is raised.
    """
    from scipy.sparse.linalg import eigsh

    if _restarts_by_rng():
        options["rng"] = np.random.default_rng(0)
    return eigsh(A, r, which="LA", **options)


@cache
def _restarts_by_rng() -> bool:
    """Whether this SciPy takes a source of random numbers for restarts."""
    from scipy.sparse.linalg import eigsh

    return "rng" in inspect.signature(eigsh).parameters


# ---- eigenvectors of a pencil within the span of directions whose products are kept (Rayleigh and Ritz) -


SPAN_SIZE = 24  # directions; a restart keeps half. Twice as many would save a tenth of the iterations
LEAST_LEFT = 1e-6  # share of a direction that must be left for its products to keep their digits
PATIENCE = 6  # iterations for a vector; any more count as waiting
ORDER_OF_STEP = 100  # a decomposition takes as long as (order / this)^2 iterations


@dataclass
class RitzSpan:
    """A span of orthonormal directions v with G v and L v, to find eigenvectors of (G, a I + L) for any a.

    When the span is full, its leading half is kept: a thick restart (Wu and Simon 2000).
    """

    p: int
    exact: float
    with_products: Callable[[Array], Array]
    size: int = 0

    def __post_init__(self) -> None:
        self.parts: Array = np.empty((3, min(SPAN_SIZE, self.p), self.p))

    @property
    def filled(self) -> Array:
        """The directions and their products, of shape (3, size, p)."""
        return self.parts[:, : self.size]

    @property
    def full(self) -> bool:
        """Whether there is no room for another direction, but the span is not the whole space."""
        return self.size + 1 >= self.parts.shape[1] < self.parts.shape[2]  # the whole space needs no restart

    def append(self, d: Array) -> bool:
        """Add a direction, alone or with its products; return whether it was more than rounding.

        If little of it is left beside the span, its products are computed again.
        """
        before = float(np.linalg.norm(d[0]))
        for _ in range(2 if self.size else 0):
            d = d - (self.filled[0] @ d[0]) @ self.filled[: len(d)]
        left = float(np.linalg.norm(d[0]))
        if not left > self.exact * before or self.size == self.parts.shape[1]:
            return False
        known = len(d) > 1 and left > LEAST_LEFT * before
        self.parts[:, self.size] = d / left if known else self.with_products(d[0] / left)
        self.size += 1
        return True

    def eigenvectors(self) -> Callable[[float], tuple[Array, float, float]]:
        """Return a function of a that gives the eigenvectors z in the span.

        It returns their weights, ascending and with z'(a I + L)z = 1, and z'G z and z'L z of the last one.
        """
        V, G, L = self.filled
        values, turn = np.linalg.eigh(V @ L.T)
        H, values = turn.T @ (V @ G.T) @ turn, np.maximum(values, 0)

        def of(a: float) -> tuple[Array, float, float]:
            root = 1 / np.sqrt(values + a)
            found, Z = np.linalg.eigh(root[:, None] * H * root)
            Z = root[:, None] * Z
            return turn @ Z, float(found[-1]), float(values @ Z[:, -1] ** 2)

        return of

    def keep_leading(self, weights: Array) -> None:
        """Keep the span of the last half of these combinations, or one at least."""
        half = weights[:, ::-1][:, : max(1, self.parts.shape[1] // 2)]
        turn = np.linalg.qr(half)[0]
        self.size, kept = turn.shape[1], turn.T @ self.filled
        self.parts[:, : self.size] = kept


@dataclass
class ShiftedInverse:
    """Steps from Ritz vectors x of (G, K_a) by the inverse of G - t K_b, where b is near a.

    K_a = a I + L and G = YY'. Orthogonal to Q and to K_a x, with the Ritz value t of x, this is the step of
    Jacobi and Davidson (Sleijpen and van der Vorst 1996), exact for a = b. With the eigenvectors W of
    Y'K_b^-1 Y, the inverse is `K_b^-1 (Y W (diag(values) - t)^-1 W'Y'K_b^-1 - 1)/t`. The eigenvectors are
    computed for one b, once so many iterations were made that these took as long.
    """

    order: int
    factor: Callable[[], Array]
    solve: Callable[..., Array]
    waited: int = 0
    b: float = math.inf

    @property
    def known(self) -> bool:
        return self.b < math.inf

    def _decompose(self, b: float) -> None:
        """Compute the eigenvectors for b, the present a."""
        Y = self.factor()
        self.values, W = all_eigenpairs(inner_products(Y, self.solve(b, Y)))
        self.b, self.waited, self.YW = b, 0, Y @ W
        self.Q, self.FQ, self.QKQ = Y[:, :0], np.zeros((len(self.values), 0)), np.zeros((0, 0))

    def _border(self, Q: Array) -> None:
        """Add new columns of Q: their products with the parts of the inverse."""
        more = Q[:, self.Q.shape[1] :]
        if more.shape[1]:
            solved = self.solve(self.b, more)
            self.FQ, side = np.hstack([self.FQ, self.YW.T @ solved]), self.Q.T @ solved
            self.Q, self.QKQ = Q, np.block([[self.QKQ, side], [side.T, more.T @ solved]])

    @below_range()
    def step(self, a: float, x: Array, Gx: Array, Lx: Array, Q: Array, steps: int) -> Array | None:
        """Return the step after `steps` iterations; None if the inverse is not known by then."""
        self.waited += steps >= PATIENCE
        if self.waited > (self.order / ORDER_OF_STEP) ** 2 and a != self.b:
            self._decompose(a)
        if not self.known:
            return None
        self._border(Q)
        # The inverse of G - t K_b, applied to K_a x and the residual
        Kx, gain = a * x + Lx, float(x @ Gx)
        t = gain / float(x @ (self.b * x + Lx))
        sides = np.stack([Kx, Gx - gain / float(x @ Kx) * Kx], axis=1)
        solved, q = self.solve(self.b, sides), Q.shape[1]
        within, across = np.hstack([self.FQ, self.YW.T @ solved]), Q.T @ solved
        gaps = self.values - t
        weighted = within / np.where(gaps == 0, EPS * t, gaps)[:, None]
        # Weights that make the step orthogonal to Q and K_a x
        inner = np.block([[self.QKQ, across], [across[:, :1].T, sides[:, :1].T @ solved]])
        inner -= within[:, :-1].T @ weighted
        try:
            weights = np.append(-np.linalg.solve(inner[:, :-1], inner[:, -1]), 1)
        except np.linalg.LinAlgError:
            return None
        right = Q @ weights[:q] + sides @ weights[q:] - self.YW @ (weighted @ weights)
        return project_out(self.solve(self.b, right), Q)


def root_beyond(f: Callable[[float], float], t: float, gain: float, most: float) -> tuple[float, float]:
    """Return a root of f, to three digits of f(t), or a step toward it; and a better `gain`.

    f(t) points from t to the root if f falls. The first step is `gain` times f(t), and no step goes beyond
    `most`. The gain returned is what the first step should have been over f(t).
    """
    from scipy.optimize import brentq

    held = [f]  # emptied, because brentq keeps what it is given in a cycle
    value = f(t)
    if abs(value) <= 1e-9:
        return t, gain
    step = min(max(gain * value, -most), most)
    while abs(after := f(t + step)) > 1e-3 * abs(value):
        if after * value < 0:
            step = float(brentq(lambda t: held[0](t), t, t + step, xtol=1e-9 + 1e-3 * abs(step))) - t
            held.clear()
            break
        if abs(step) == most:
            return t + step, gain
        step = min(max(4 * step, -most), most)
    return t + step, max(step / value, 1.0)


# ---- the pencil (A, B) on a support: its eigenvalues, and what one variable more or less makes of them
# A greedy search asks for nothing else of a pencil, also where B = I. With the eigendecomposition B = U
# diag(mu) U' and T = U diag(mu)^(-1/2), in the directions that B does not map to zero, the eigenvalues of
# T'AT are those of the pencil.

_DEFINITE = 1e-3  # the least root of a pivot over the largest, of a matrix far from singular


@record
class PencilBasis:
    """W with W'BW = I and W'AW = diag(eigenvalues), the eigenvalues descending.

    `in_null_space` marks variables whose entry can be made zero by adding a direction that B maps to zero.
    """

    eigenvalues: Array
    W: Array
    in_null_space: Mask

    @classmethod
    def of(cls, A: Array, mu: Array, U: Array, kept: Mask) -> PencilBasis:
        """Return the basis for A and B = U diag(mu) U', in the directions `kept`."""
        return cls._of(A, whitening(mu, U, kept), (U[:, ~kept] ** 2).sum(axis=1) > NULL_WEIGHT)

    @classmethod
    def _of(cls, A: Array, T: Array, null: Mask) -> PencilBasis:
        """Return the basis in the span of the columns of T, where T'BT = I."""
        basis = cls.ordinary(T.T @ A @ T)
        return cls(basis.eigenvalues, np.asfortranarray(T @ basis.W), null)

    @classmethod
    def ordinary(cls, A: AnyArray) -> PencilBasis:
        """Return the basis for A alone, with B = I."""
        eigenvalues, W = all_eigenpairs(symmetrized(A))
        return cls(eigenvalues[::-1].copy(), np.asfortranarray(W[:, ::-1]), np.zeros(len(A), bool))

    @classmethod
    def definite(cls, A: Array, B: Array) -> PencilBasis | None:
        """Return the basis by Cholesky's factorization of B; None if B may be singular."""
        try:
            L = np.linalg.cholesky(B)
        except np.linalg.LinAlgError:
            return None
        pivot = L.diagonal()
        if not pivot.min() > _DEFINITE * pivot.max():
            return None
        return cls._of(A, np.linalg.inv(L).T, np.zeros(len(B), bool))

    @classmethod
    def empty(cls, k: int) -> PencilBasis:
        """Return the basis for k variables along none of which B is positive."""
        return cls(np.zeros(0), np.zeros((k, 0), order="F"), np.ones(k, bool))

    def without_each(self) -> Array:
        """Return the largest eigenvalue that is left without each variable in turn; 0 if there is none."""
        if len(self.eigenvalues) == 0:
            return np.zeros(len(self.W))
        value = _core.deleted_eigenvalues(self.eigenvalues, self.W)
        value[self.in_null_space] = self.eigenvalues[0]
        return value


def whitening(mu: Array, U: Array, kept: Mask) -> Array:
    """Return T = U diag(mu)^(-1/2) in the directions `kept`, so that T'BT = I for B = U diag(mu) U'."""
    return U[:, kept] / np.sqrt(mu[kept])


def largest_value(A: Array, T: Array) -> float:
    """Return the largest eigenvalue of T'AT; its bits do not depend on the number of threads."""
    G = inner_products(T, inner_products(A, T))
    return float(upper_eigenpairs(symmetrized(G), 1)[0][0])


def border(
    basis: PencilBasis, A: Array, B: Array, a: Array, b: Array, least: Array | float
) -> tuple[Array, Array, Array, Mask]:
    """Return what borders diag(eigenvalues) when a variable joins, e, corner and d, and which ones can join.

    The columns A_Sj and B_Sj of candidates are given, and a_jj and b_jj. With d = W'B_Sj and sigma = b_jj -
    d'd, e = (W'A_Sj - lambda d)/sqrt(sigma) and corner = (a_jj - 2 d'W'A_Sj + sum lambda d^2)/sigma. Where
    sigma is at most `least`, a candidate adds nothing but rounding: it cannot join, and its e and corner are
    not divided.
    """
    lam = basis.eigenvalues
    e, d = basis.W.T @ A, basis.W.T @ B
    sigma = b - np.einsum("ij,ij->j", d, d)
    e -= lam[:, None] * d
    corner = a - np.einsum("ij,ij->j", d, 2 * e + lam[:, None] * d)
    usable = sigma > least
    root = np.sqrt(np.where(usable, sigma, 1.0))
    return e / root, corner / root / root, d, usable


def bordered_values(basis: PencilBasis, e: Array, corner: Array, usable: Mask) -> Array:
    """Return the largest eigenvalue with each variable, by `border`, the same if it adds nothing."""
    lam = basis.eigenvalues
    if len(lam) == 0:
        return np.where(usable, corner, -np.inf)
    e = np.ascontiguousarray(np.where(usable, e, 0.0))
    value = _core.bordered_eigenvalues(
        e, np.arange(len(corner)), np.where(usable, corner, lam[0]), lam, np.asfortranarray(np.eye(len(lam)))
    )
    return np.where(usable, value, lam[0])


def ties(value: Array, tolerance: float = TIE.double) -> Index:
    """Return where the largest value is, up to rounding."""
    largest = value.max()
    return np.flatnonzero(value >= largest - tolerance * abs(largest))


# ---- the best values of given signs on a support --------------------------------------------------------


def signed_vector(G: Array, signs: AnyArray, begin: Array | None = None) -> tuple[Array, float]:
    """Return a maximizer of x'Gx over unit vectors with these signs, and the maximum.

    For few variables it is the best one. For many it is a fixed point of x <- (G x)_+/||.||, from several
    starts and from `begin` (signed.c).
    """
    start = None if begin is None else np.ascontiguousarray(begin)
    return _core.signed_vector(np.ascontiguousarray(G), np.ascontiguousarray(signs, np.int8), start)


def signed_ratio(M: Array, G: Array, signs: AnyArray, begin: Array) -> tuple[Array, float]:
    """Return a maximizer of x'Mx/x'Gx over x with these signs, and the ratio.

    `begin` maximizes the ratio without signs. It is returned if it has them; else the result is by
    `raised_ratio`.
    """
    for x in (begin, -begin):
        x = x / np.linalg.norm(x)
        if (x * signs).min() >= -1e-12:
            x = np.where(x * signs < 0, 0, x)
            return x, float(x @ M @ x / (x @ G @ x))
    return raised_ratio(M, G, signs, begin, 0.0)


def raised_ratio(
    M: Array, G: Array, signs: AnyArray, x: Array, ratio: float, rise: float = RISE, least: float = 0.0
) -> tuple[Array, float]:
    """Raise the ratio x'Mx/x'Gx by maximizers of x'(M - ratio G)x with these signs (Dinkelbach 1967).

    Only x with x'Gx above `least` count.
    """
    for _ in range(SIGNED_RATIOS):
        new, gain = signed_vector(M - ratio * G, signs, x)
        size = float(new @ G @ new)
        value = float(new @ M @ new) / size if size > least else 0.0
        if not gain > 0 or not value > ratio * (1 + rise):
            break
        x, ratio = new, value
    return x, ratio
