"""The pencil (A, B) on a support: its eigenvalues, and what one variable more or less makes of them.

A greedy search needs no more of any pencil, B = I included.  With the eigendecomposition B = U diag(mu) U'
and T = U diag(mu)^(-1/2) on the directions that B does not map to zero, the eigenvalues of T'AT are those of
the pencil.
"""

from __future__ import annotations

import numpy as np

from .. import _core
from .._limits import NULL_WEIGHT, RISE, SIGNED_RATIOS, TIE
from .._records import record
from .._types import AnyArray, Array, Index, Mask
from .eigen import all_eigenpairs, upper_eigenpairs
from .orthogonal import inner_products, symmetrized

_DEFINITE = 1e-3  # the least root of a pivot over the largest, of a matrix far from singular


@record
class PencilBasis:
    """W with W'BW = I and W'AW = diag(eigenvalues), descending.

    `in_null_space` marks the variables that can be made zero by adding what B maps to zero.
    """

    eigenvalues: Array
    W: Array
    in_null_space: Mask

    @classmethod
    def of(cls, A: Array, mu: Array, U: Array, kept: Mask) -> PencilBasis:
        """Of A and B = U diag(mu) U', of which the directions `kept` count."""
        return cls._of(A, whitening(mu, U, kept), (U[:, ~kept] ** 2).sum(axis=1) > NULL_WEIGHT)

    @classmethod
    def _of(cls, A: Array, T: Array, null: Mask) -> PencilBasis:
        basis = cls.ordinary(T.T @ A @ T)
        return cls(basis.eigenvalues, np.asfortranarray(T @ basis.W), null)

    @classmethod
    def ordinary(cls, A: AnyArray) -> PencilBasis:
        """Of A alone, B = I."""
        eigenvalues, W = all_eigenpairs(symmetrized(A))
        return cls(eigenvalues[::-1].copy(), np.asfortranarray(W[:, ::-1]), np.zeros(len(A), bool))

    @classmethod
    def definite(cls, A: Array, B: Array) -> PencilBasis | None:
        """By Cholesky's factorization; None where B may be singular."""
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
        """Of k variables along none of which B is positive."""
        return cls(np.zeros(0), np.zeros((k, 0), order="F"), np.ones(k, bool))

    def without_each(self) -> Array:
        """The largest eigenvalue that is left without each variable in turn; 0 where there is none."""
        if len(self.eigenvalues) == 0:
            return np.zeros(len(self.W))
        value = _core.deleted_eigenvalues(self.eigenvalues, self.W)
        value[self.in_null_space] = self.eigenvalues[0]
        return value


def whitening(mu: Array, U: Array, kept: Mask) -> Array:
    """T = U diag(mu)^(-1/2) on the directions `kept`, so that T'BT = I for B = U diag(mu) U'."""
    return U[:, kept] / np.sqrt(mu[kept])


def largest_value(A: Array, T: Array) -> float:
    """The largest eigenvalue of T'AT, of which no number of threads changes a bit."""
    G = inner_products(T, inner_products(A, T))
    return float(upper_eigenpairs(symmetrized(G), 1)[0][0])


def border(
    basis: PencilBasis, A: Array, B: Array, a: Array, b: Array, least: Array | float
) -> tuple[Array, Array, Array, Mask]:
    """What borders diag(eigenvalues) with a variable more: e, corner, d; where it adds more than rounding.

    With the columns A_Sj and B_Sj of candidates, and a_jj and b_jj: d = W'B_Sj, sigma = b_jj - d'd,
    e = (W'A_Sj - lambda d)/sqrt(sigma), corner = (a_jj - 2 d'W'A_Sj + sum lambda d^2)/sigma. Where sigma is
    at most `least`, neither is divided.
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
    """The largest eigenvalues with what `border` says of each variable; as before where it adds nothing."""
    lam = basis.eigenvalues
    if len(lam) == 0:
        return np.where(usable, corner, -np.inf)
    e = np.ascontiguousarray(np.where(usable, e, 0.0))
    value = _core.bordered_eigenvalues(
        e, np.arange(len(corner)), np.where(usable, corner, lam[0]), lam, np.asfortranarray(np.eye(len(lam)))
    )
    return np.where(usable, value, lam[0])


def ties(value: Array, tolerance: float = TIE.double) -> Index:
    """Where the largest value is, to rounding."""
    largest = value.max()
    return np.flatnonzero(value >= largest - tolerance * abs(largest))


# ---- the best values of given signs on a support --------------------------------------------------------


def signed_vector(G: Array, signs: AnyArray, begin: Array | None = None) -> tuple[Array, float]:
    """A maximizer of x'Gx over unit vectors of these signs, and that: of few variables the best one, of many
    a fixed point of x <- (G x)_+/||.||, from `begin` too (signed.c)."""
    start = None if begin is None else np.ascontiguousarray(begin)
    return _core.signed_vector(np.ascontiguousarray(G), np.ascontiguousarray(signs, np.int8), start)


def signed_ratio(M: Array, G: Array, signs: AnyArray, begin: Array) -> tuple[Array, float]:
    """A maximizer of x'Mx/x'Gx over x of these signs: `begin`, which maximizes it without them, if it has
    them, or what `raised_ratio` finds."""
    for x in (begin, -begin):
        x = x / np.linalg.norm(x)
        if (x * signs).min() >= -1e-12:
            x = np.where(x * signs < 0, 0, x)
            return x, float(x @ M @ x / (x @ G @ x))
    return raised_ratio(M, G, signs, begin, 0.0)


def raised_ratio(
    M: Array, G: Array, signs: AnyArray, x: Array, ratio: float, rise: float = RISE, least: float = 0.0
) -> tuple[Array, float]:
    """x'Mx/x'Gx raised by maximizers of x'(M - ratio G)x of these signs (Dinkelbach 1967), where x'Gx is
    more than the least."""
    for _ in range(SIGNED_RATIOS):
        new, gain = signed_vector(M - ratio * G, signs, x)
        size = float(new @ G @ new)
        value = float(new @ M @ new) / size if size > least else 0.0
        if not gain > 0 or not value > ratio * (1 + rise):
            break
        x, ratio = new, value
    return x, ratio
