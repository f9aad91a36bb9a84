"""Public bounds on the ratio of a pencil and on canonical correlations: see ratio_bounds.py."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .._types import MatrixLike
from .._validation import check_bool, integer, number
from ..solvers.certificates import OptimalityBound
from .cca_alternation import Alternation
from .eigen import read_pencil
from .pencil import Pencil
from .ratio_bounds import pencil_bounds, refuse_many
from .sides import both_sides, one_of_each

__all__ = ["sparse_cca_bound", "sparse_eigen_bound"]


def sparse_eigen_bound(
    A: MatrixLike, B: MatrixLike, cardinality: int, *, node_limit: int = 2000
) -> OptimalityBound:
    """An upper bound on `x'Ax/x'Bx` over x with at most k nonzeros.

    The smallest of

    - "spectral": the largest generalized eigenvalue;
    - "search": the bound of branch and bound, where B is positive definite; it is the optimum, up to
      rounding, if the search is completed;
    - "relaxation": the bound of a semidefinite relaxation, where the search is not completed.

    Parameters
    ----------
    A : array-like or sparse matrix of shape (p, p)
        Symmetric; it may be indefinite.
    B : array-like or sparse matrix of shape (p, p)
        Symmetric positive semidefinite.
    cardinality : int
        k, in [1, p].
    node_limit : int, default 2000
        Nodes of each search tree; there are at most five trees.

    Returns
    -------
    OptimalityBound
        `upper_bound`, `which` and `bounds`.

    Raises
    ------
    ValueError
        For NaN, infinite or empty input, matrices that are not square, symmetric or of one size, B not
        positive semidefinite, a ratio without bound, more than 500 variables, or an option out of range.
    TypeError
        For input that is not real numbers, or an option of the wrong type.

    References
    ----------
    B. Moghaddam, Y. Weiss and S. Avidan (2006). Generalized spectral bounds for sparse LDA. Proceedings of
    the 23rd International Conference on Machine Learning, 641-648. W. Dinkelbach (1967). On nonlinear
    fractional programming. Management Science 13, 492-498.

    Examples
    --------
    >>> import numpy as np, spcacore
    >>> A, B = np.diag([4.0, 3.0, 2.0, 1.0]), np.diag([4.0, 1.0, 1.0, 1.0])
    >>> A[1, 2] = A[2, 1] = 1
    >>> best = spcacore.sparse_eigen_bound(A, B, 2)
    >>> best.which, round(best.upper_bound, 4), spcacore.sparse_eigen(A, B, 1, 2).values.round(4)
    ('spectral', 3.618, array([3.618]))
    """
    forms, dtype = read_pencil(A, B)
    k = integer(cardinality, "cardinality", 1, forms[0].p)
    nodes = integer(node_limit, "node_limit", 1)
    refuse_many(forms[0].p)
    pencil = Pencil(*forms, dtype=dtype)
    bounds = pencil_bounds(pencil, k, nodes)
    if not bounds:
        raise ValueError("B maps a direction to zero that A does not: the ratio has no bound")
    return _smallest(bounds, np.ldexp(1.0, pencil.exponent))


def sparse_cca_bound(
    X: MatrixLike,
    Y: MatrixLike,
    cardinality: int | ArrayLike,
    *,
    ridge: float | ArrayLike = 0.0,
    node_limit: int = 2000,
    scale: bool = True,
) -> OptimalityBound:
    """An upper bound on the correlation of combinations of k_x variables of X and k_y of Y.

    The bound is on `u'X'Yv / sqrt(u'B_x u v'B_y v)`, which `sparse_cca` with method "generalized" maximizes;
    B_x and B_y are the covariances of both sides, with the ridge. It is the smallest of the bounds of
    `sparse_eigen_bound`. All of these except "spectral" need covariances of full rank and so, without a
    ridge, fewer variables than rows.

    Parameters
    ----------
    X : array-like of shape (n, p), sparse matrix, RowBlocks or dask array
    Y : array-like of shape (n, q), sparse matrix, RowBlocks or dask array
    cardinality : int or pair of ints
        k_x in [1, p] and k_y in [1, q].
    ridge : float or pair of floats, default 0
        This multiple of the mean diagonal entry of a covariance is added to its diagonal.
    node_limit : int, default 2000
        Nodes of each search tree; there are at most five trees.
    scale : bool, default True
        Divide each column by its standard deviation; this matters only with a ridge.

    Returns
    -------
    OptimalityBound
        `upper_bound`, `which` and `bounds`; 0 where a side is constant.

    Raises
    ------
    ValueError
        For NaN, infinite or empty input, sides with different numbers of rows, fewer than two rows, more than
        500 variables of both sides, or an option out of range.
    TypeError
        For input that is not real numbers, or an option of the wrong type.

    References
    ----------
    W. Dinkelbach (1967). On nonlinear fractional programming. Management Science 13, 492-498.

    Examples
    --------
    >>> import numpy as np, spcacore
    >>> rng = np.random.default_rng(2)
    >>> X, Y = rng.standard_normal((100, 20)), rng.standard_normal((100, 10))
    >>> Y[:, :2] += X[:, :2]
    >>> best = spcacore.sparse_cca_bound(X, Y, (2, 2))
    >>> found = spcacore.sparse_cca(X, Y, method="generalized", cardinality=(2, 2))
    >>> round(best.upper_bound, 4), found.correlations.round(4)
    (0.7146, array([0.7146]))
    """
    check_bool(scale, "scale")
    x, y = sides = both_sides(X, Y, scale)
    counts = one_of_each(cardinality, "cardinality", lambda v, name, s: integer(v, name, 1, s.p), sides)
    ridges = one_of_each(ridge, "ridge", lambda v, name, _: number(v, name, 0), sides)
    nodes = integer(node_limit, "node_limit", 1)
    refuse_many(x.p + y.p)
    solver = Alternation(x, y, counts, ridges, 100, 1e-10)
    return _smallest(solver.bounds(nodes), 1.0)


def _smallest(bounds: dict[str, float], unit: float) -> OptimalityBound:
    bounds = {name: float(value * unit) for name, value in bounds.items()}
    which = min(bounds, key=lambda name: bounds[name])
    return OptimalityBound(bounds[which], which, bounds)
