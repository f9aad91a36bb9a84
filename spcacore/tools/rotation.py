"""Orthogonal and oblique rotation of loadings to simple structure."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize

from .. import _core
from .._messages import counted, warn
from .._records import NO_PANDAS, filled, frozen_record
from .._types import AnyArray, Array, DType
from .._validation import check_bool, iteration_limits, number, real_array
from ..linalg.scaling import (
    below_range,
    beyond_range,
    descending,
    divisor,
    eps_of,
    exponent_above,
    largest_magnitude,
)
from ..operators.problem import OUT_OF_RANGE
from ..readable import Listing, Tabular
from .steps import output_array

_filled = filled(
    {
        "rotation": "rotation : ndarray, shape (r, r), dtype of `rotated`\n"
        "    Orthogonal, with determinant 1.  Columns are neither sorted nor given a sign.",
        "raises": "Raises\n------\nTypeError, ValueError\n    As `orthomax`, with its RuntimeWarning.",
    }
)


@_filled
def orthomax(
    loadings: ArrayLike,
    gamma: float = 1.0,
    *,
    normalize: bool = False,
    max_iter: int = 1000,
    tol: float = 1e-6,
    overwrite: bool = False,
) -> tuple[AnyArray, AnyArray]:
    r"""Rotate loadings to maximize an orthomax criterion.

    Finds the orthogonal :math:`R` for which :math:`Y = LR` maximizes

    .. math:: \sum_j \left[\sum_i y_{ij}^4 - \frac{\gamma}{p} \left(\sum_i y_{ij}^2\right)^2\right]

    by rotating two columns at a time through the best angle for the two or, where there are many rows, all
    pairs at once.  The result is never worse than the start, and it is a maximum that no rotation of two
    columns improves.

    Parameters
    ----------
    loadings : array_like, shape (p, r)
        One row per variable, one column per component.  float32 and float64 are kept; float16 becomes
        float32, other real types float64.
    gamma : float, default 1.0
        The member of the family, any finite number >= 0: 0 is *quartimax*, 1 *varimax*, r/2 *equamax*.
    normalize : bool, default False
        Kaiser's normalization: find the rotation for rows scaled to length one, and apply it to the
        loadings as they are.  Rows of zeros stay zeros (and count in p).
    max_iter : int, default 1000
        The largest number of sweeps over all pairs of columns, or of steps that turn all pairs at once.
    tol : float, default 1e-6
        A pair of columns x, y is left as it is when turning it raises the criterion by at most
        ``(1 + gamma) * tol**2 * sum((x**2 + y**2)**2)``, as every angle below about `tol` radians
        does; the iteration ends when that holds for all pairs.  0 goes on to the rounding of the
        loadings, which takes long where the maximum is flat.
    overwrite : bool, default False
        Write the result into `loadings`, which must be a contiguous, writable float32 or float64
        ndarray.  In Fortran order no other array of that size is made; in C order the work is done
        in a copy that is then written back.  After an exception or an interrupt the contents are
        undefined.

    Returns
    -------
    rotated : ndarray, shape (p, r), float32 or float64
        ``loadings @ rotation``; with `overwrite` the array `loadings` itself, otherwise a new array in
        Fortran order.
    {rotation}

    Raises
    ------
    TypeError
        If an argument has the wrong type.
    ValueError
        If `loadings` is empty, not a matrix, or has entries that are NaN or infinite; if a parameter
        is out of range; or if `overwrite` is not possible.

    Warns
    -----
    RuntimeWarning
        If `max_iter` sweeps or steps were not enough; the result is still a rotation that raised the
        criterion.

    See Also
    --------
    varimax : The same with gamma = 1.

    Notes
    -----
    Loadings of fewer than 4096 rows, or fewer than 80 rows a column, are rotated by sweeps over
    the pairs of columns [1]_.  Longer ones start from the rotation of some rows of large norm (a twentieth of
    the rows or less, but 20 a column), unless that is no better than none, and go on by limited-memory
    quasi-Newton steps [3]_, which turn all pairs at once; a sweep takes over where a step does not raise the
    criterion.  The steps are found in single precision.  A final test on the rotated loadings confirms that
    no pair is left to turn; it allows for the rounding of single precision, and uses double precision where
    that matters. Where the criterion has several maxima, the start decides which one is found.

    When ``loadings.T @ loadings`` is a multiple of the identity the second sum is the same for every
    rotation, and all members of the family agree.

    References
    ----------
    .. [1] H. F. Kaiser (1958). The varimax criterion for analytic rotation in factor analysis.
           Psychometrika 23(3), 187-200.
    .. [2] D. B. Clarkson and R. I. Jennrich (1988). Quartic rotation criteria and algorithms.
           Psychometrika 53(2), 251-259.
    .. [3] J. Nocedal and S. J. Wright (2006). Numerical Optimization, 2nd edition. Springer, chapter 7.

    Examples
    --------
    >>> import numpy as np
    >>> from spcacore import orthomax
    >>> simple = np.array([[2.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 3.0]])
    >>> turn = np.array([[0.8, -0.6], [0.6, 0.8]])
    >>> rotated, rotation = orthomax(simple @ turn, gamma=0)
    >>> np.abs(rotated).round(6)
    array([[2., 0.],
           [1., 0.],
           [0., 1.],
           [0., 3.]])
    >>> np.allclose(rotation, turn.T)
    True
    """
    normalize = check_bool(normalize, "normalize")
    gamma = number(gamma, "gamma", 0)
    if gamma == math.inf:
        raise ValueError("gamma must be finite, not inf")

    def rotate(work: AnyArray, max_iter: int, tol: float) -> tuple[AnyArray, bool]:
        """Rotate in place; return the rotation and whether the sweeps have converged."""
        if normalize:
            # Two factors a row: neither their squares nor their product can leave the range.
            peak = divisor(np.abs(work).max(axis=1, keepdims=True))
            work /= peak
            length = divisor(np.linalg.norm(work, axis=1, keepdims=True))
            work /= length
        status, rotation, _ = _core.orthomax(work, gamma, max_iter, tol)
        if normalize:
            work *= length
            with below_range():
                work *= peak
        return rotation, status == 0

    return _turned(loadings, rotate, "orthomax", max_iter, tol, overwrite)


@_filled
def varimax(
    loadings: ArrayLike,
    *,
    normalize: bool = False,
    max_iter: int = 1000,
    tol: float = 1e-6,
    overwrite: bool = False,
) -> tuple[AnyArray, AnyArray]:
    """Rotate loadings to maximize the summed variance of their squares: `orthomax` with gamma = 1.

    Parameters
    ----------
    loadings : array_like, shape (p, r)
        One row per variable, one column per component.
    normalize, max_iter, tol, overwrite
        As in `orthomax`.

    Returns
    -------
    rotated : ndarray, shape (p, r), float32 or float64
        ``loadings @ rotation``.
    {rotation}

    {raises}

    See Also
    --------
    orthomax : The whole family, with the details.

    References
    ----------
    .. [1] H. F. Kaiser (1958). The varimax criterion for analytic rotation in factor analysis.
           Psychometrika 23(3), 187-200.

    Examples
    --------
    >>> import numpy as np
    >>> from spcacore import varimax
    >>> rotated, rotation = varimax([[1.0, 1.0], [2.0, 2.0], [3.0, -3.0]])
    >>> (np.abs(rotated) / np.sqrt(2)).round(6)
    array([[1., 0.],
           [2., 0.],
           [0., 3.]])
    """
    return orthomax(loadings, 1.0, normalize=normalize, max_iter=max_iter, tol=tol, overwrite=overwrite)


@_filled
def l1_rotation(
    loadings: ArrayLike,
    *,
    max_iter: int = 1000,
    tol: float = 1e-8,
    overwrite: bool = False,
) -> tuple[AnyArray, AnyArray]:
    r"""Rotate loadings to minimize the sum of their magnitudes.

    Seeks the orthogonal :math:`R` for which :math:`Y = LR` minimizes :math:`\sum_{ij} |y_{ij}|`, from
    the varimax rotation, by rotating two columns at a time through the best of all angles for the two.
    At that angle some row has a zero in one of them, and the best of such angles is found exactly.

    Parameters
    ----------
    loadings : array_like, shape (p, r)
        As in `orthomax`.
    max_iter : int, default 1000
        The largest number of sweeps over the pairs of columns.
    tol : float, default 1e-8
        A pair of columns is left as it is when turning it lowers the sum of their magnitudes by at most `tol`
        times that sum; the iteration ends when all pairs are left so.
    overwrite : bool, default False
        Write the result into `loadings`; see `orthomax`.

    Returns
    -------
    rotated : ndarray, shape (p, r), float32 or float64
        ``loadings @ rotation``, whose magnitudes sum to no more than after `varimax`.
    {rotation}

    {raises}

    See Also
    --------
    varimax : A smooth criterion of simplicity, where this one starts.

    Notes
    -----
    No rotation of two columns improves the result; of three or more at once one might, since the
    criterion has kinks.  A sweep reads each pair of columns about once, and sorts only the rows whose angle
    is a candidate.

    References
    ----------
    .. [1] F. Chen and K. Rohe (2020). A new basis for sparse principal component analysis.
           arXiv:2007.00596: the problem; varimax is its relaxation.

    Examples
    --------
    >>> import numpy as np
    >>> from spcacore import l1_rotation
    >>> simple = np.array([[2.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 3.0]])
    >>> turn = np.array([[0.8, -0.6], [0.6, 0.8]])
    >>> rotated, rotation = l1_rotation(simple @ turn)
    >>> np.abs(rotated).round(6)
    array([[2., 0.],
           [1., 0.],
           [0., 1.],
           [0., 3.]])
    """
    return _turned(loadings, l1_rotate, "l1_rotation", max_iter, tol, overwrite)


def _turned(
    loadings: ArrayLike, rotate: Callable[[AnyArray, int, float], tuple[AnyArray, bool]], called: str,
    max_iter: int, tol: float, overwrite: bool,
) -> tuple[AnyArray, AnyArray]:  # fmt: skip
    """Rotate the loadings by `rotate`, in place or in a copy; return them and the rotation."""
    a = real_array(loadings, "loadings", ndim=2)
    overwrite = check_bool(overwrite, "overwrite")
    max_iter, tol = iteration_limits(max_iter, tol, least=0)
    rotated = output_array(loadings, a, "loadings", overwrite, "F")
    work = np.asfortranarray(rotated)  # copies only loadings in C order that are overwritten
    rotation, converged = rotate(work, max_iter, tol)
    if work is not rotated:
        rotated[...] = work
    if not converged:
        warn(f"{called} did not converge in {counted(max_iter, 'iteration')}; raise max_iter or tol")
    return rotated, rotation.astype(rotated.dtype, copy=False)


def l1_rotate(Y: AnyArray, max_iter: int, tol: float, varimax: bool = True) -> tuple[Array, bool]:
    """Rotate Y in place to a small sum of magnitudes; return R and whether the sweeps have converged.

    Y is in Fortran order. The sweeps begin after varimax, if that is asked for.
    """
    exponent = exponent_above(largest_magnitude(Y))
    with below_range():
        np.ldexp(Y, -exponent, out=Y)
    R = np.eye(Y.shape[1], order="F")
    if varimax:
        R = np.asfortranarray(_core.orthomax(Y, 1.0, max_iter, 1e-6)[1])
    status, _ = _core.l1_sweeps(Y, max_iter, tol, R)
    with below_range():
        np.ldexp(Y, exponent, out=Y)
    return R, status == 0


# ---- oblique rotation of loadings to simple structure: factors that may be correlated -------------------
# With L the loadings and T a matrix of unit columns, the pattern is `P = L (T')^-1`, the factors have the
# correlations `C = T'T`, and `P C P' = LL'` whatever T is.


_oblique = filled(
    {
        "loadings": "loadings : array_like of shape (p, r)\n"
        "    One row per variable, one column per factor, with independent columns: of principal components\n"
        "    the eigenvectors times the square roots of their eigenvalues.",
        "normalize": "normalize : bool, default False\n"
        "    Kaiser's normalization: find the rotation for rows scaled to length one.",
        "returns": "Returns\n-------\nObliqueRotation\n\nRaises\n------\nTypeError, ValueError\n"
        "    For loadings that are not a matrix, are empty, not finite or with dependent columns; for an\n"
        "    option out of range.",
        "no_pandas": NO_PANDAS,
    }
)


@_oblique
@frozen_record
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
        """The pattern, under the name that `plot` reads."""
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


@_oblique
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
    U *= np.linalg.norm(np.linalg.inv(U), axis=1)
    return back(L, turned @ U)


@_oblique
def oblimin(
    loadings: ArrayLike, *, normalize: bool = False, max_iter: int = 1000, tol: float = 1e-7
) -> ObliqueRotation:
    """Rotate loadings to minimize the covariances of their squares, the direct quartimin criterion.

    This is the member of the oblimin family with parameter 0, the usual default: it minimizes `sum_(s<t)
    sum_i p_is^2 p_it^2` over all patterns P, by limited-memory quasi-Newton steps from the varimax rotation.

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
    limit, tol = iteration_limits(max_iter, tol)
    L, row, back = _checked(loadings, normalize)
    A = L / row
    A = A * np.sqrt(len(A) / np.square(A).sum())

    def criterion(given: Array) -> tuple[float, Array]:
        """Return the criterion for T, whose columns are brought to unit length, and its gradient."""
        length = np.sqrt(np.square(given.reshape(-1, L.shape[1])).sum(axis=0))
        T = given.reshape(-1, L.shape[1]) / length
        inverse = np.linalg.inv(T)
        P = A @ inverse.T
        squares = np.square(P)
        others = squares.sum(axis=1, keepdims=True) - squares
        slope = -(P.T @ (P * others) @ inverse).T
        # A change of length changes nothing
        slope -= T * (T * slope).sum(axis=0)
        return float((squares * others).sum()) / 4, (slope / length).ravel()

    options = {"maxiter": limit, "maxfun": 20 * limit, "gtol": tol, "ftol": 0.0, "maxcor": 20}
    found = minimize(criterion, varimax(A)[1].ravel(), jac=True, method="L-BFGS-B", options=options)
    if found.nit >= limit:
        warn(f"oblimin did not converge in {counted(limit, 'step')}")
    T = found.x.reshape(-1, L.shape[1])
    return back(L, np.linalg.inv(T / np.sqrt(np.square(T).sum(axis=0))).T)


def _checked(loadings: ArrayLike, normalize: bool) -> tuple[Array, Array, Callable[..., ObliqueRotation]]:
    """Return loadings with entries near 1, the lengths of their rows, or ones, and what makes the result."""
    check_bool(normalize, "normalize")
    given = real_array(loadings, "loadings", ndim=2)
    L = given.astype(np.float64)
    exponent = exponent_above(largest_magnitude(L))
    L = np.ldexp(L, -exponent)
    s = np.linalg.svd(L, compute_uv=False)
    if len(L) < L.shape[1] or s[-1] <= len(L) * eps_of(given.dtype) * s[0]:
        raise ValueError("loadings must have independent columns: leave out factors that the others contain")
    row = np.sqrt(np.square(L).sum(axis=1, keepdims=True)) if normalize else np.ones((len(L), 1))
    return L, divisor(row), partial(_rotated, exponent, given.dtype)


def _rotated(exponent: int, dtype: DType, L: Array, rotation: Array) -> ObliqueRotation:
    """Return the result: factors in order of variance, each with its largest loading positive."""
    back = np.linalg.inv(rotation)  # not of rotation'rotation, which squares what rounding does
    C, P = back @ back.T, L @ rotation
    variance = (P * (P @ C)).sum(axis=0)
    order = descending(variance)
    turn = np.eye(len(order))[:, order] * np.sign(P[abs(P).argmax(axis=0), range(len(order))])[order]
    P, C, rotation = P @ turn, turn.T @ (C + C.T) @ turn / 2, rotation @ turn
    units = (P, exponent), (P @ C, exponent), (C, 0), (rotation, 0), (variance[order], 2 * exponent)
    with beyond_range():
        found = ObliqueRotation(*(np.ldexp(x, e).astype(dtype) for x, e in units))
    if np.isinf(found.variance[0]):
        warn(OUT_OF_RANGE)
    return found
