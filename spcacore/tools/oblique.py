"""Oblique rotation of loadings to simple structure: factors that may be correlated.

With L the loadings and T a matrix of unit columns, the pattern is `P = L (T')^-1`, the factors have the
correlations `C = T'T`, and `P C P' = LL'` whatever T is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize

from .._docstrings import NO_PANDAS, filled
from .._messages import counted, warn
from .._types import Array
from .._validation import check_bool, integer, number, real_array
from ..linalg.scaling import exponent_above, largest_magnitude
from ..operators.problem import OUT_OF_RANGE
from ..readable import Listing, Tabular
from .rotation import varimax

__all__ = ["ObliqueRotation", "oblimin", "promax"]

_filled = filled(
    {
        "loadings": "loadings : array_like of shape (p, r)\n"
        "    One row per variable, one column per factor, with independent columns: of principal components\n"
        "    the eigenvectors times the roots of their eigenvalues.",
        "normalize": "normalize : bool, default False\n"
        "    Kaiser's normalization: find the rotation for rows scaled to length one.",
        "returns": "Returns\n-------\nObliqueRotation\n\nRaises\n------\nTypeError, ValueError\n"
        "    For loadings that are no matrix, empty, not finite or with dependent columns; for an option\n"
        "    out of range.",
        "no_pandas": NO_PANDAS,
    }
)


@_filled
@dataclass(frozen=True, eq=False, repr=False)
class ObliqueRotation(Tabular):
    """Loadings of correlated factors, from `oblimin` and `promax`.

    Factors are in order of variance, and the largest loading of each is positive. `to_frame()` has a row for
    each factor, from 1: variance, share, cumulative.

    Attributes
    ----------
    pattern : ndarray of shape (p, r)
        The weights of the factors in each variable: ``loadings @ rotation``.
    structure : ndarray of shape (p, r)
        The covariances of variables and factors, `pattern @ correlations`: with standardized variables,
        their correlations.
    correlations : ndarray of shape (r, r)
        The correlations of the factors.
    rotation : ndarray of shape (r, r)
    variance : ndarray of shape (r,)
        The sum of pattern times structure over the variables. These add up to the sum of squares of the
        loadings, which is what all factors explain together; `share` in the table is a part of this sum.

    Examples
    --------
    >>> import numpy as np, spcacore
    >>> values, vectors = np.linalg.eigh(spcacore.datasets.load_pitprops().correlation)
    >>> found = spcacore.promax(vectors[:, -3:] * np.sqrt(values[-3:]))
    >>> print(found.summary())
    ObliqueRotation: 3 factors, 13 variables, largest correlation 0.26
    <BLANKLINE>
    factor  variance   share  cumulative
    1          3.629  0.4283      0.4283
    2          2.533  0.2989      0.7271
    3          2.313  0.2729       1.000
    """

    pattern: Array
    structure: Array
    correlations: Array
    rotation: Array
    variance: Array

    @property
    def loadings(self) -> Array:
        """The pattern, by the name that `plot` knows."""
        return self.pattern

    def _facts(self) -> list[str]:
        p, r = self.pattern.shape
        apart = abs(self.correlations - np.eye(r)).max()
        return [counted(r, "factor"), counted(p, "variable"), f"largest correlation {apart:.2f}"]

    def _table(self) -> Listing:
        P = self.pattern / abs(self.pattern).max()
        share = (P * (P @ self.correlations)).sum(axis=0)
        share /= share.sum()
        columns = {"variance": self.variance, "share": share, "cumulative": np.cumsum(share)}
        return Listing("factor", range(1, len(share) + 1), columns)


@_filled
def promax(loadings: ArrayLike, power: float = 4.0, *, normalize: bool = False) -> ObliqueRotation:
    """Rotate loadings by promax: a regression of powers of the varimax loadings on these loadings.

    Parameters
    ----------
    {loadings}
    power : float, default 4.0
        In [1, 100]. 1 is varimax; larger powers let the factors correlate more.
    {normalize}

    {returns}

    References
    ----------
    A. E. Hendrickson and P. O. White (1964). Promax: a quick method for rotation to oblique simple structure.
    British Journal of Statistical Psychology 17, 65-70.

    Examples
    --------
    >>> import numpy as np, spcacore
    >>> values, vectors = np.linalg.eigh(spcacore.datasets.load_pitprops().correlation)
    >>> found = spcacore.promax(vectors[:, -3:] * np.sqrt(values[-3:]))
    >>> found.correlations.round(2)
    array([[ 1.  ,  0.26, -0.07],
           [ 0.26,  1.  , -0.23],
           [-0.07, -0.23,  1.  ]])
    """
    power = number(power, "power", 1, 100)
    L, row, back = _checked(loadings, normalize)
    _, turned = varimax(L / row)
    V = L / row @ turned
    V /= abs(V).max()
    U = np.linalg.lstsq(V, V * abs(V) ** (power - 1), rcond=None)[0]
    U *= np.sqrt(np.linalg.inv(U.T @ U).diagonal())
    return back(L, turned @ U)


@_filled
def oblimin(
    loadings: ArrayLike, *, normalize: bool = False, max_iter: int = 1000, tol: float = 1e-7
) -> ObliqueRotation:
    """Rotate loadings to minimize the covariances of their squares, the direct quartimin criterion.

    Of the oblimin family it is the member with parameter 0, the usual default: the least
    `sum_(s<t) sum_i p_is^2 p_it^2` over all patterns P. Limited-memory quasi-Newton steps search for it from
    the varimax rotation.

    Parameters
    ----------
    {loadings}
    {normalize}
    max_iter : int, default 1000
    tol : float, default 1e-7
        The search ends where no entry of the gradient exceeds it, for loadings whose squares add up to one
        for each row on average.

    {returns}

    Warns
    -----
    RuntimeWarning
        If `max_iter` steps were not enough, as where two factors become one.

    References
    ----------
    R. I. Jennrich (2002). A simple general method for oblique rotation. Psychometrika 67, 7-19.
    R. I. Jennrich and P. F. Sampson (1966). Rotation for simple loadings. Psychometrika 31, 313-323.

    Examples
    --------
    >>> import numpy as np, spcacore
    >>> values, vectors = np.linalg.eigh(spcacore.datasets.load_pitprops().correlation)
    >>> found = spcacore.oblimin(vectors[:, -3:] * np.sqrt(values[-3:]))
    >>> found.correlations.round(1) + 0.0
    array([[1. , 0.2, 0.1],
           [0.2, 1. , 0. ],
           [0.1, 0. , 1. ]])
    """
    limit = integer(max_iter, "max_iter", 1)
    tol = number(tol, "tol", 0)
    L, row, back = _checked(loadings, normalize)
    A = L / row
    A = A * np.sqrt(len(A) / np.square(A).sum())

    def criterion(given: Array) -> tuple[float, Array]:
        """Of the pattern by these columns over their lengths; its gradient."""
        length = np.sqrt(np.square(given.reshape(-1, L.shape[1])).sum(axis=0))
        T = given.reshape(-1, L.shape[1]) / length
        inverse = np.linalg.inv(T)
        P = A @ inverse.T
        squares = np.square(P)
        others = squares.sum(axis=1, keepdims=True) - squares
        slope = -(P.T @ (P * others) @ inverse).T
        slope -= T * (T * slope).sum(axis=0)
        return float((squares * others).sum()) / 4, (slope / length).ravel()

    options = {"maxiter": limit, "maxfun": 20 * limit, "gtol": tol, "ftol": 0.0, "maxcor": 20}
    found = minimize(criterion, varimax(A)[1].ravel(), jac=True, method="L-BFGS-B", options=options)
    if found.nit >= limit:
        warn(f"oblimin did not converge in {counted(limit, 'step')}")
    T = found.x.reshape(-1, L.shape[1])
    return back(L, np.linalg.inv(T / np.sqrt(np.square(T).sum(axis=0))).T)


def _checked(loadings: ArrayLike, normalize: bool) -> tuple[Array, Array, Callable[..., ObliqueRotation]]:
    """Loadings with entries near 1, the lengths of their rows, or ones, and what makes the result."""
    check_bool(normalize, "normalize")
    given = real_array(loadings, "loadings", ndim=2)
    L = given.astype(np.float64)
    exponent = exponent_above(largest_magnitude(L))
    L = np.ldexp(L, -exponent)
    s = np.linalg.svd(L, compute_uv=False)
    if len(L) < L.shape[1] or s[-1] <= len(L) * np.finfo(given.dtype).eps * s[0]:
        raise ValueError("loadings must have independent columns: leave out factors that the others contain")
    row = np.sqrt(np.square(L).sum(axis=1, keepdims=True)) if normalize else np.ones((len(L), 1))
    return L, np.where(row > 0, row, 1), partial(_rotated, exponent, given.dtype)


def _rotated(exponent: int, dtype: np.dtype[Any], L: Array, rotation: Array) -> ObliqueRotation:
    """With the factors in order of variance, and signs."""
    C = np.linalg.inv(rotation.T @ rotation)
    P = L @ rotation
    variance = (P * (P @ C)).sum(axis=0)
    order = np.argsort(-variance, kind="stable")
    turn = np.eye(len(order))[:, order] * np.sign(P[abs(P).argmax(axis=0), range(len(order))])[order]
    P, C, rotation = P @ turn, turn.T @ (C + C.T) @ turn / 2, rotation @ turn
    units = (P, exponent), (P @ C, exponent), (C, 0), (rotation, 0), (variance[order], 2 * exponent)
    with np.errstate(over="ignore", under="ignore"):
        found = ObliqueRotation(*(np.ldexp(x, e).astype(dtype) for x, e in units))
    if np.isinf(found.variance[0]):
        warn(OUT_OF_RANGE)
    return found
