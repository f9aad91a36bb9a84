"""Orthonormal bases, polar factors and signs.

Gram-Schmidt is made twice, which suffices for a basis that is orthonormal to rounding (Giraud, Langou and
Rozloznik 2005). Two forms: `orthogonal_part` by one vector of the basis after the other (a list, of which
none need be stacked), `project_out` by matrix products (columns of Q, and several vectors at a time).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from .. import _core
from .._limits import GRAM_LOSS, IN_SPAN, NULL_DIRECTION, POLAR_ENTRIES, RANK, SPAN, TIE
from .._types import AnyArray, Array
from .scaling import below_range, beyond_range, divisor, eps_of


def symmetrized(A: AnyArray) -> AnyArray:
    """A symmetric matrix without what rounding has made of it."""
    return (A + A.T) / 2


# ---- signs ------------------------------------------------------------------------------------------


def _first_largest(value: AnyArray) -> tuple[np.intp, float]:
    """The entry of largest magnitude, the first of those that tie to rounding, and that magnitude."""
    size = np.abs(value)
    largest = size.max()
    return np.argmax(size >= (1 - TIE.of(value.dtype)) * largest), largest


def sign_of(value: AnyArray) -> float:
    """The sign of the entry of largest magnitude, the first of those that tie to rounding."""
    return -1.0 if value[_first_largest(value)[0]] < 0 else 1.0


def fix_sign(value: AnyArray) -> AnyArray:
    """The entry of largest magnitude becomes positive: the first of those that tie, then the largest."""
    first, largest = _first_largest(value)
    value = -value if value[first] < 0 else value.copy()
    value[first] = largest
    return value


def fix_signs(U: AnyArray) -> AnyArray:
    """The same of each column."""
    return np.stack([fix_sign(u) for u in U.T], axis=1)


# ---- Gram-Schmidt -----------------------------------------------------------------------------------


def unit(x: AnyArray) -> AnyArray | None:
    """x over its norm, at any scale; None for the zero vector."""
    largest = np.abs(x).max(initial=0)
    if largest == 0:
        return None
    x = x / largest
    return x / np.linalg.norm(x)


def columns_near_one(B: Array) -> Array:
    """Each column times the power of two that brings its largest entry near 1; a zero column stays."""
    with below_range():  # of entries far below the largest
        return np.ldexp(B, -np.frexp(np.abs(B).max(axis=0))[1])


def unit_columns(B: Array) -> Array:
    """Each column over its norm, at any scale; a zero column stays."""
    B = columns_near_one(B)
    norm = np.linalg.norm(B, axis=0)
    return B / divisor(norm)


def orthogonal_part(x: AnyArray, basis: Iterable[AnyArray]) -> AnyArray | None:
    """The normalized part of x orthogonal to an orthonormal basis; None if that is only rounding."""
    q, basis = unit(x), list(basis)
    if q is None:
        return None
    for _ in range(2):
        for b in basis:
            q = q - b * (b @ q)
        norm = np.linalg.norm(q)
        if norm < IN_SPAN:
            return None
        q = q / norm
    return q


def orthonormal_basis(vectors: Iterable[AnyArray]) -> list[Array]:
    """Of the orthogonal part of each vector that has one, in order."""
    out: list[Array] = []
    for v in vectors:
        q = orthogonal_part(v, out)
        if q is not None:
            out.append(q)
    return out


def orthonormal(V: AnyArray, rounding: float | None = None) -> Array:
    """Gram-Schmidt in order; a column in the span of the earlier ones becomes zero.

    It is in the span where rounding of its entries, by the share `rounding` or that of the type of V, may be
    all that keeps it out.
    """
    share = eps_of(V.dtype) if rounding is None else rounding
    return _core.orthogonal_parts(np.ascontiguousarray(V.T, np.float64), share).T


def project_out(v: Array, Q: Array) -> Array:
    """(I - QQ') v of one vector or several, for Q with orthonormal columns."""
    if Q.shape[1] == 0:
        return v
    for _ in range(2):
        v = v - Q @ (Q.T @ v)
    return v


def column_span(M: Array) -> Array:
    """An orthonormal basis of the span of columns that are orthonormal, or rows of such: by an SVD."""
    U, s, _ = np.linalg.svd(M, full_matrices=False)
    return U[:, s > SPAN]


# ---- products of matrices -----------------------------------------------------------------------
#
# By the loops of the package, which round alike for any number of threads, and whose threads sleep when they
# are done. Those of BLAS stay awake for some ms after a product, on the cores that read the data next.


def matrix_product(A: AnyArray, B: AnyArray | None = None) -> AnyArray:
    """A B', or A A', in the precision of A."""
    out = np.empty((len(A), len(A if B is None else B)), A.dtype)
    other = None if B is None else np.ascontiguousarray(B, A.dtype)
    _core.matrix_product(np.ascontiguousarray(A), other, 1.0, out)
    return out


def inner_products(A: Array, B: Array | None = None) -> Array:
    """A'B, or A'A."""
    return matrix_product(A.T.astype(np.float64, copy=False), None if B is None else B.T)


def tall_product(M: AnyArray, R: AnyArray, transposed: bool = False) -> AnyArray:
    """M R, or M'R, of finite numbers in the precision of M, of one vector or several; in Fortran order."""
    op = _core.dense(M, False)
    out = (op.backward_block if transposed else op.forward_block)(R.reshape(len(R), -1))
    return out if R.ndim > 1 else out[:, 0]


# ---- polar factors ----------------------------------------------------------------------------------


def polar_factor(M: Array, factor: Array | None = None) -> Array:
    """The nearest matrix with orthonormal columns to M, or to M times `factor`, in Fortran order.

    UV' of the SVD M = U diag(s) V'; of a large M, M (M'M)^(-1/2), which loses the digits of
    (s_1/s_r)^2, where that is little.
    """
    if M.size > POLAR_ENTRIES:
        with beyond_range():
            G = inner_products(M)
            G = G if factor is None else factor @ G @ factor
        if np.isfinite(G).all():
            values, vectors = np.linalg.eigh(G)
            if values[0] > max(GRAM_LOSS * values[-1], 1e-200):
                root = (vectors / np.sqrt(values)) @ vectors.T
                root = root if factor is None else factor @ root
                return tall_product(M, root)
    U, _, Vt = np.linalg.svd(M if factor is None else M @ factor, full_matrices=False)
    return np.asfortranarray(U @ Vt)


def procrustes(M: Array, near: Array) -> tuple[Array, float]:
    """V with V'V = I that maximizes Tr(V'M), close to `near` where M leaves it open; and the maximum.

    By the SVD of R in M = QR. Where M has rank r < k, V = U_r W_r' + (polar factor of (I - U_r U_r') near
    W_0) W_0', W_0 the right singular vectors of zero; the maximum is the nuclear norm of M.
    """
    Q, R = np.linalg.qr(M)
    U, size, Wt = np.linalg.svd(R)
    rank = int(np.count_nonzero(size > RANK * max(size[0], 0.0)))
    U = Q @ U[:, :rank]
    V = U @ Wt[:rank]
    if rank < len(size):
        left, _, right = np.linalg.svd(project_out(near @ Wt[rank:].T, U), full_matrices=False)
        V += left @ right @ Wt[rank:]
    return V, float(size.sum())


def inverse_root(G: Array) -> Array:
    """G^(-1/2) of a symmetric semidefinite matrix, 0 where it is singular."""
    values, vectors = np.linalg.eigh(symmetrized(G))
    kept = values > NULL_DIRECTION * max(values[-1], 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return (vectors * np.where(kept, 1 / np.sqrt(np.where(kept, values, 1)), 0)) @ vectors.T
