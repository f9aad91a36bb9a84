"""Orthonormal bases, polar factors and signs.

Gram-Schmidt is made twice, which suffices for a basis that is orthonormal up to rounding (Giraud, Langou and
Rozloznik 2005). `orthogonal_part` takes one vector of the basis after another, from a list that need not be
stacked. `project_out` makes matrix products with the columns of Q, also for several vectors at a time.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from .. import _core
from .._limits import GRAM_LOSS, IN_SPAN, NULL_DIRECTION, POLAR_ENTRIES, RANK, SPAN, TIE
from .._types import AnyArray, Array, Index
from .scaling import below_range, beyond_range, divisor, eps_of


def symmetrized(A: AnyArray) -> AnyArray:
    """Return a matrix that should be symmetric without the asymmetry of rounding."""
    return (A + A.T) / 2


# ---- signs ------------------------------------------------------------------------------------------


def _first_largest(value: AnyArray) -> tuple[np.intp, float]:
    """Return the position of the largest magnitude, the first up to rounding, and the magnitude."""
    size = np.abs(value)
    largest = size.max()
    return np.argmax(size >= (1 - TIE.of(value.dtype)) * largest), largest


def sign_of(value: AnyArray) -> float:
    """Return the sign of the entry of largest magnitude, the first of those that tie up to rounding."""
    return -1.0 if value[_first_largest(value)[0]] < 0 else 1.0


def fix_sign(value: AnyArray) -> AnyArray:
    """Return the vector with the sign that makes its entry of largest magnitude positive.

    Of entries that tie up to rounding the first counts, and it becomes the largest.
    """
    first, largest = _first_largest(value)
    value = -value if value[first] < 0 else value.copy()
    value[first] = largest
    return value


def fix_signs(U: AnyArray) -> AnyArray:
    """Apply `fix_sign` to each column."""
    return np.stack([fix_sign(u) for u in U.T], axis=1)


def matched_columns(cosine: Array) -> tuple[Index, Index, Index]:
    """Return which rows go with which columns, so that magnitudes have the largest sum, and their signs.

    Numbers that differ by rounding tie, as 1/2 and 1 do in standardized data with two nonzeros.
    """
    from scipy.optimize import linear_sum_assignment

    rough = cosine.round(6)
    rows, columns = linear_sum_assignment(-np.abs(rough))
    return rows, columns, np.where(rough[rows, columns] < 0, -1, 1)


# ---- Gram-Schmidt -----------------------------------------------------------------------------------


def unit(x: AnyArray) -> AnyArray | None:
    """Return x over its norm, at any scale; None for the zero vector."""
    largest = np.abs(x).max(initial=0)
    if largest == 0:
        return None
    x = x / largest
    return x / np.linalg.norm(x)


def columns_near_one(B: Array) -> Array:
    """Multiply each column by the power of two that brings its largest entry near 1; a zero column stays."""
    with below_range():  # entries far below the largest may become 0
        return np.ldexp(B, -np.frexp(np.abs(B).max(axis=0))[1])


def unit_columns(B: Array) -> Array:
    """Divide each column by its norm, at any scale; a zero column stays."""
    B = columns_near_one(B)
    norm = np.linalg.norm(B, axis=0)
    return B / divisor(norm)


def orthogonal_part(x: AnyArray, basis: Iterable[AnyArray]) -> AnyArray | None:
    """Return the normalized part of x orthogonal to an orthonormal basis; None if that is rounding."""
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
    """Return an orthonormal basis of the span: the orthogonal part of each vector that has one, in order."""
    out: list[Array] = []
    for v in vectors:
        q = orthogonal_part(v, out)
        if q is not None:
            out.append(q)
    return out


def orthonormal(V: AnyArray, rounding: float | None = None) -> Array:
    """Apply Gram-Schmidt to the columns in order; a column in the span of the earlier ones becomes zero.

    It is in the span if rounding of its entries may be all that keeps it out. `rounding` is the relative size
    of that; default: the precision of V.
    """
    share = eps_of(V.dtype) if rounding is None else rounding
    return _core.orthogonal_parts(np.ascontiguousarray(V.T, np.float64), share).T


def project_out(v: Array, Q: Array) -> Array:
    """Return (I - QQ') v for one vector or several; Q has orthonormal columns."""
    if Q.shape[1] == 0:
        return v
    for _ in range(2):
        v = v - Q @ (Q.T @ v)
    return v


def column_span(M: Array) -> Array:
    """Return an orthonormal basis of the span of the columns of M, by an SVD.

    M has orthonormal columns, or some rows of such a matrix, so that its singular values are at most 1.
    """
    U, s, _ = np.linalg.svd(M, full_matrices=False)
    return U[:, s > SPAN]


# ---- products of matrices -----------------------------------------------------------------------
#
# Products use the loops of the package, which round alike for any number of threads, and whose threads sleep
# when they are done. The threads of BLAS stay awake for some ms after a product, on the cores that read the
# data next.


def matrix_product(A: AnyArray, B: AnyArray | None = None) -> AnyArray:
    """Return A B', or A A', in the precision of A."""
    out = np.empty((len(A), len(A if B is None else B)), A.dtype)
    other = None if B is None else np.ascontiguousarray(B, A.dtype)
    _core.matrix_product(np.ascontiguousarray(A), other, 1.0, out)
    return out


def inner_products(A: Array, B: Array | None = None) -> Array:
    """Return A'B, or A'A."""
    return matrix_product(A.T.astype(np.float64, copy=False), None if B is None else B.T)


def tall_product(M: AnyArray, R: AnyArray, transposed: bool = False) -> AnyArray:
    """Return M R, or M'R, in the precision of M and Fortran order, for one vector or several.

    All entries must be finite.
    """
    op = _core.dense(M, False)
    out = (op.backward_block if transposed else op.forward_block)(R.reshape(len(R), -1))
    return out if R.ndim > 1 else out[:, 0]


# ---- polar factors ----------------------------------------------------------------------------------


def polar_factor(M: Array, factor: Array | None = None) -> Array:
    """Return the matrix with orthonormal columns nearest to M, or to M times `factor`, in Fortran order.

    It is UV' with the SVD M = U diag(s) V'. For a large M it is M (M'M)^(-1/2), if that loses few digits: it
    loses those of (s_1/s_r)^2.
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
    """Return the V with V'V = I that maximizes Tr(V'M), and the maximum, the nuclear norm of M.

    It comes from the SVD of R in M = QR. If M has rank r < k, V is not unique: V = U_r W_r' + (polar factor
    of (I - U_r U_r') near W_0) W_0', where W_0 has the right singular vectors for zero, is close to `near`.
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
    """Return G^(-1/2) for a symmetric semidefinite matrix, 0 in directions in which it is singular."""
    values, vectors = np.linalg.eigh(symmetrized(G))
    kept = values > NULL_DIRECTION * max(values[-1], 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return (vectors * np.where(kept, 1 / np.sqrt(np.where(kept, values, 1)), 0)) @ vectors.T
