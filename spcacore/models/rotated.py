"""Sparse loadings of a rotated basis: polar factor, rotation, shrinkage (Chen and Rohe 2020)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import _core
from .._messages import convergence, counted, warn
from .._records import frozen_record
from .._types import AnyArray, Array, Kind, MatrixLike, Rotation, Switch, ThresholdRule, Weights
from .._validation import (
    Hook,
    check_bool,
    check_choice,
    has_only_products,
    integer,
    iteration_limits,
    number,
    real_array,
)
from ..linalg.orthogonal import inner_products, inverse_root, polar_factor, symmetrized
from ..linalg.scaling import EPS, TINY, below_range, descending, divisor
from ..operators.gram import leading_vectors, negligible
from ..operators.inputs import as_problem, degree_problem, degree_weight, row_shift
from ..operators.problem import Problem
from ..progress import Callback, Progress, check_callback
from ..readable import when_asked
from ..solvers.base import shared_parameters
from ..tools.rotation import l1_rotate, orthomax
from .variance import VariancesResult, operator_variances


@frozen_record(kw_only=True)
class RotatedResult(VariancesResult):
    """Sparse loadings of a rotated basis, from `sca` or `sma`.

    `transform` gives the weighted sums of the variables of each row; for `sma` these are not Z. `reconstruct`
    is the projection onto the loadings. With ``scale="degree"``, `transform` first divides each row by the
    square root of its sum plus `row_shift`, and `reconstruct` returns rows that are divided in this way.

    Attributes
    ----------
    loadings : ndarray of shape (p, r)
        The thresholded loadings; columns are not of unit length.
    scores : ndarray of shape (n, r) or None
        For `sca`: the centered and scaled data times the loadings; None for a covariance, and for rows in
        blocks. For `sma`: the sparse matrix Z.
    explained_variance, explained_variance_ratio : ndarray of shape (r,)
        Additional variance of each component given the earlier ones, as in `SparsePCAResult`.
    cardinality : ndarray of shape (r,), int
        Number of nonzeros of each loading.
    n_samples : int or None
        None for a covariance.
    n_iter : int
    converged : bool
    method : {"sca", "sma"}
    missing_entries : int
        How many entries of X were NaN.
    names : tuple of str or None
        Names of the variables, if the input had any.
    middle : ndarray of shape (r, r) or None
        For `sma`: B = Z'XY.
    mean, scale : ndarray of shape (p,) or None
        What was subtracted from each column, and what then divided it. None if not applied.
    given : tuple of str
        As in `SparsePCAResult`.
    total_variance : float
        Trace of the covariance matrix of the centered and scaled data.
    row_shift : float or None
        tau of ``scale="degree"``.
    dense_ratio : ndarray of shape (r,) or None
        As in `SparsePCAResult`.
    kind : {"data", "covariance"}

    Examples
    --------
    >>> import spcacore
    >>> X, planted = spcacore.datasets.make_spiked(100, 50, cardinality=5, rng=0)
    >>> result = spcacore.sca(X, 2, l1_bound=4)
    >>> result.scores.shape, result.pve.round(1).tolist()
    ((100, 2), [0.5, 0.9])
    """

    explained_variance_ratio: Array
    n_iter: int
    converged: bool
    middle: Array | None = None
    row_shift: float | None = None
    dense_ratio: Array | None = when_asked()
    missing_entries: int = 0

    @property
    def pve(self) -> Array:
        """Proportion of the variance explained, (r,): cumulative, after each loading."""
        return np.cumsum(self.explained_variance_ratio)

    def _row_weight(self, X: Any) -> AnyArray | None:
        return None if self.row_shift is None else degree_weight(X, self.row_shift)

    def _facts(self) -> list[str]:
        return [*super()._facts(), convergence(self)]


def prs(
    M: ArrayLike, l1_bound: float, *, rotation: Rotation = "varimax", threshold: ThresholdRule = "soft"
) -> AnyArray:
    """Polar factor, rotation, shrinkage: a sparse matrix near an orthonormal basis of the columns of M.

    The function takes the polar factor of M, which is the nearest matrix with orthonormal columns. It rotates
    this factor by varimax, which makes many entries small. It then soft-thresholds all entries at one level,
    chosen so that `sum |y_ij| = l1_bound`.

    Parameters
    ----------
    M : array-like of shape (p, r), p >= r
    l1_bound : float
        In (0, inf). If the rotated matrix meets the bound already, it is not thresholded.
    rotation : {"varimax", "l1", "none"}, default "varimax"
        "l1": `l1_rotation`, which minimizes `sum |y_ij|` itself, from varimax.
    threshold : {"soft", "hard"}, default "soft"
        "hard" keeps as many of the largest entries as the bound allows, unchanged.

    Returns
    -------
    ndarray of shape (p, r)
        Its columns are not normalized.

    Raises
    ------
    ValueError
        For NaN, infinite or empty input, more columns than rows, or an option out of range.
    TypeError
        For input that is not real numbers.

    References
    ----------
    F. Chen and K. Rohe (2020). A new basis for sparse principal component analysis. arXiv:2007.00596.

    Examples
    --------
    >>> import numpy as np, spcacore
    >>> abs(spcacore.prs([[2.0, 0.1], [0.1, 1.0], [0.0, 0.2]], 1.8)).round(3)
    array([[0.874, 0.   ],
           [0.   , 0.855],
           [0.   , 0.071]])
    """
    a = real_array(M, "M", ndim=2)
    if a.shape[0] < a.shape[1]:
        raise ValueError(f"M must have at least as many rows as columns, not shape {a.shape}")
    shrink = _Shrinkage(rotation, threshold, number(l1_bound, "l1_bound", TINY))
    with below_range():  # a power of two, as LAPACK would round
        M = np.ldexp(a.astype(np.float64), -int(np.frexp(np.abs(a).max())[1]))
    return shrink(M).astype(a.dtype)


@shared_parameters
def sca(
    X: MatrixLike, n_components: int, *,
    l1_bound: float | None = None,
    rotation: Rotation = "varimax",
    threshold: ThresholdRule = "soft",
    start: str | ArrayLike | None = None, max_iter: int = 1000, tol: float = 1e-5,
    kind: Kind = "data", center: Switch | None = None, scale: Switch = False, sample_weight: Weights = None,
    callback: Callback | None = None,
) -> RotatedResult:  # fmt: skip
    """Sparse component analysis: sparse loadings Y of a rotated basis, all at once.

    Maximizes `||Z'XY||_F` over scores Z with `Z'Z = I` and loadings Y with `sum |y_ij| <= l1_bound`, by
    alternation: Z is the polar factor of `XY`, and Y is `prs` of `X'Z`. The search begins with the leading
    singular vectors. X is centered and scaled implicitly, so that sparse X stays sparse. An iteration reads X
    once (CSC: twice).

    Parameters
    ----------
    X : array-like of shape (n, p), sparse matrix
        Data; with ``kind="covariance"`` a symmetric positive semidefinite (p, p) matrix. Not copied, except
        dense data with NaN entries, which are left out of all sums, as in `pmd`.
    n_components : int
        r, in [1, min(n, p)].
    l1_bound : float, optional
        Positive, at most `r sqrt(p)`. Below r some loadings may have no nonzeros. Default: `sqrt(p r)`.
    rotation : {"varimax", "l1", "none"}, default "varimax"
        "l1" minimizes `sum |y_ij|` over rotations. The first iteration starts this from varimax, each later
        one from the previous rotation.
    threshold : {"soft", "hard"}, default "soft"
        "hard" keeps as many of the largest entries as the bound allows, unchanged; it may cycle.
    start : array-like of shape (p, r), optional
        Loadings to begin with, for instance those for another bound.
    max_iter : int, default 1000
    tol : float, default 1e-5
        Stop when the sine of the angle by which a loading turns is at most this, for all loadings.
    kind : {"data", "covariance"}, default "data"
    center : bool or array-like of shape (p,), optional
        Subtract the column means, or these numbers, implicitly. True is ignored for a covariance. Default:
        True, but False with ``scale="degree"``. In a scaled graph the leading direction also tells blocks
        apart, and the means hold most of it, so centering would lose a block.
    scale : bool, "degree" or array-like of shape (p,), default False
        Divide each column by its standard deviation, or by these positive numbers. If `center` is False or
        an array, the deviation is the root mean square about 0 or about it, with divisor n - 1. "degree" is
        for nonnegative X such as the adjacency matrix of a graph: entries become
        `X_ij / sqrt((d_i + tau) (g_j + tau'))`, where d and g are the sums of rows and columns, tau is the
        mean of d, and tau' the mean of g (for square X, tau' = tau).
        `center` subtracts the means of the scaled matrix, which is a copy of X.
    {sample_weight}
    {each_iteration}

    Returns
    -------
    RotatedResult
        `loadings` (p, r) after thresholding, not of unit length, in order of the variance of their scores;
        the sum of the cubes of each is positive. `scores` (n, r): the centered and scaled data times the
        loadings; None for a covariance. `pve` (r,), cumulative.

    Raises
    ------
    ValueError
        For infinite or empty input, NaN except in dense data, X without variance, an indefinite covariance,
        negative entries with "degree", a start that explains nothing in some direction, or an option out of
        range. If the rank of X is below r, there are fewer components, with a RuntimeWarning.
    TypeError
        For input that is not real numbers, or an option of the wrong type.

    See Also
    --------
    sparsity_path : Several bounds.

    References
    ----------
    F. Chen and K. Rohe (2020). A new basis for sparse principal component analysis. arXiv:2007.00596.
    T. Qin and K. Rohe (2013). Regularized spectral clustering under the degree-corrected stochastic
    blockmodel. Advances in Neural Information Processing Systems 26, section 2: tau.

    Examples
    --------
    >>> import spcacore
    >>> X, planted = spcacore.datasets.make_spiked(100, 500, cardinality=10, rng=0)
    >>> result = spcacore.sca(X, 2, l1_bound=6)
    >>> [sorted(abs(y).argsort()[-10:].tolist()) for y in result.loadings.T]
    [[0, 1, 2, 3, 4, 5, 6, 7, 8, 9], [10, 11, 12, 13, 14, 15, 16, 17, 18, 19]]
    """
    if center is None:
        center = not isinstance(scale, str)
    problem = _problem(X, kind, center, scale, sample_weight, missing=True, form=True)
    op = problem.operator
    r, bound = _check(problem, n_components, l1_bound, "l1_bound", problem.p)
    shrink = _Shrinkage(rotation, threshold, bound)
    max_iter, tol = iteration_limits(max_iter, tol)
    hook = check_callback(callback)
    Y = leading_vectors(problem, r) if start is None else _check_start(problem, r, start)

    def step() -> float:
        nonlocal Y
        AY = op.apply_block(Y).astype(np.float64, copy=False)
        before = Y
        Y = shrink(AY, inverse_root(inner_products(Y, AY)))
        return _turned(Y, before)

    ended = _iterate(step, Y.shape[1], max_iter, tol, hook)
    variances = np.einsum("ij,ij->j", Y, op.apply_block(Y))
    order = descending(variances)
    Y = (Y * np.where(np.einsum("ij,ij,ij->j", Y, Y, Y) < 0, -1, 1))[:, order]
    return _result(problem, "sca", Y, ended, X)


def _result(
    problem: Problem, method: str, Y: Array, ended: tuple[int, bool], rows: Any = None, **more: Any
) -> RotatedResult:  # fmt: skip
    """Return the result for loadings Y; `ended` is the number of iterations and whether they converged."""
    variances = operator_variances(problem, Y, "cumulative")
    return RotatedResult.of(
        problem, Y + 0.0, variances, rows,  # no zero with a sign
        n_iter=ended[0], converged=ended[1], method=method, row_shift=row_shift(problem), **more,
    )  # fmt: skip


def sma(
    X: MatrixLike, n_components: int, *,
    l1_bound: float | None = None,
    sample_l1_bound: float | None = None,
    rotation: str = "varimax",
    threshold: str = "soft",
    max_iter: int = 1000, tol: float = 1e-5,
    center: Switch = False, scale: Switch = False,
    callback: Callback | None = None,
) -> RotatedResult:  # fmt: skip
    """Sparse matrix approximation `Z B Y'`, sparse on both sides, in rotated bases.

    Maximizes `||Z'XY||_F` over Z and Y with `sum |z_ij| <= sample_l1_bound` and `sum |y_ij| <= l1_bound`, by
    alternation: Z is `prs` of `XY`, and Y is `prs` of `X'Z`.

    Parameters
    ----------
    X : array-like of shape (n, p), sparse matrix, RowBlocks or dask array
        Not copied. Each iteration reads blocks of rows twice; these cannot be scaled by "degree".
    n_components : int
        r, in [1, min(n, p)].
    l1_bound, sample_l1_bound : float, optional
        Positive, at most `r sqrt(p)` and `r sqrt(n)`. Default: `sqrt(p r)` and `sqrt(n r)`.
    rotation, threshold, max_iter, tol, scale, callback
        As in `sca`. With "degree", Z and Y are factors of the scaled matrix.
    center : bool or array-like of shape (p,), default False
        Subtract the column means, or these numbers, implicitly.

    Returns
    -------
    RotatedResult
        `loadings` Y (p, r) and `scores` Z (n, r), after thresholding; `middle` B = Z'XY (r, r); `pve`.

    Raises
    ------
    ValueError
        For NaN, infinite or empty input, or an option out of range.
    TypeError
        For input that is not real numbers, or an option of the wrong type.

    References
    ----------
    F. Chen and K. Rohe (2020), as of `sca`.

    Examples
    --------
    >>> import numpy as np, spcacore
    >>> blocks = np.kron(np.eye(2), np.ones((3, 4)))
    >>> result = spcacore.sma(blocks, 2, sample_l1_bound=3, l1_bound=3)
    >>> sorted((result.loadings != 0).astype(int).T.tolist())
    [[0, 0, 0, 0, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0, 0, 0]]
    """
    problem = _problem(X, "data", center, scale, form=False)
    if problem.is_matrix:
        raise TypeError("sma scores samples, which need the rows of X, and X has their moments alone")
    op = problem.operator
    r, bound = _check(problem, n_components, l1_bound, "l1_bound", problem.p)
    n = problem.n_samples or 0
    _, sample_bound = _check(problem, n_components, sample_l1_bound, "sample_l1_bound", n)
    shrink, shrink_samples = (_Shrinkage(rotation, threshold, limit) for limit in (bound, sample_bound))
    max_iter, tol = iteration_limits(max_iter, tol)
    hook = check_callback(callback)
    Y = leading_vectors(problem, r)
    Z = np.zeros((n, Y.shape[1]), order="F")

    def step() -> float:
        nonlocal Y, Z
        before = Y, Z
        Z = shrink_samples(op.forward_block(Y).astype(np.float64, copy=False))
        Y = shrink(op.backward_block(Z).astype(np.float64, copy=False))
        return max(_turned(Y, before[0]), _turned(Z, before[1]))

    ended = _iterate(step, Y.shape[1], max_iter, tol, hook)
    Y, Z, B = _ordered(Y, Z, Z.T @ op.forward_block(Y))
    with below_range():
        B = B * math.ldexp(1.0, problem.exponent // 2)
    return _result(problem, "sma", Y, ended, scores=(Z + 0.0).astype(op.dtype), middle=B)


def _iterate(
    step: Callable[[], float],
    r: int,
    max_iter: int,
    tol: float,
    hook: Hook,
) -> tuple[int, bool]:
    """Take steps until none turns a column by a sine above `tol`.

    Return their number, and whether that was reached.
    """
    n_iter = 0
    for n_iter in range(1, max_iter + 1):
        sine = step()
        stop = hook(Progress(0, r, n_iter))
        if sine <= tol:
            return n_iter, True
        if stop:
            break
    warn(f"not converged in {counted(n_iter, 'iteration')}")
    return n_iter, False


def _check(problem: Problem, n_components: Any, bound: Any, name: str, size: int) -> tuple[int, float]:
    """Return the number of components and the bound, checked; the default bound is sqrt(size r)."""
    r = integer(n_components, "n_components", 1, problem.most_components)
    if bound is None:
        return r, math.sqrt(size * r)
    return r, number(bound, name, TINY, r * math.sqrt(size))


def _problem(
    X: Any, kind: Any, center: Any, scale: Any, sample_weight: Any = None, **options: Any
) -> Problem:
    """Return X as a `Problem`, which may be scaled by degrees; `options` are arguments of `as_problem`."""
    if has_only_products(X):
        raise TypeError("X must be an array or a sparse matrix; the total variance of an operator is unknown")
    if not isinstance(scale, str):
        return as_problem(X, kind, center, scale, sample_weight, **options)
    check_choice(kind, "kind", Kind)
    if scale != "degree":
        raise ValueError(f"scale must be True, False or 'degree', not {scale!r}")
    if kind == "covariance":
        raise ValueError("scale='degree' is for data, not for a covariance")
    if sample_weight is not None:
        raise ValueError("scale='degree' cannot be combined with sample_weight: it scales rows by sums")
    return degree_problem(X, center=check_bool(center, "center"))


def _check_start(problem: Problem, r: int, start: Any) -> Array:
    """Return the initial loadings at unit length; each must explain variance that the others do not."""
    a = real_array(start, "start", ndim=2, shape=(problem.p, r), labels=problem.names)
    peak = np.abs(a).max(axis=0)
    if not peak.all():
        raise ValueError("start has a column of zeros")
    Y = np.asfortranarray(a / peak, np.float64)
    Y /= np.linalg.norm(Y, axis=0)
    G = Y.T @ problem.operator.apply_block(Y)
    if not np.linalg.eigvalsh(symmetrized(G))[0] > negligible(problem):
        raise ValueError(f"start has fewer than {counted(r, 'direction')} in which X has variance")
    return Y


# ---- polar, rotate, shrink --------------------------------------------------------------------------


class _Shrinkage:
    """Polar factor, rotation and threshold of a matrix, for one call after another.

    The search for the threshold starts at the level of the call before.
    """

    def __init__(self, rotation: Any, threshold: Any, bound: float):
        self.rotation = check_choice(rotation, "rotation", Rotation)
        self.threshold, self.bound = check_choice(threshold, "threshold", ThresholdRule), bound
        self.rotated = False  # once rotated, a call need not begin with varimax
        self.level = 0.0

    def __call__(self, M: Array, factor: Array | None = None) -> Array:
        """Return the sparse matrix for M, or for M times the symmetric `factor`."""
        Y = polar_factor(M, factor)
        if Y.shape[1] > 1 and self.rotation == "varimax":
            orthomax(Y, 1.0, overwrite=True)
        elif Y.shape[1] > 1 and self.rotation == "l1":
            l1_rotate(Y, 1000, 1e-8, varimax=not self.rotated)
            self.rotated = True
        Y[np.abs(Y) <= 8 * Y.shape[1] * EPS] = 0  # rounding: the columns have unit length
        # One level for all entries, so that their magnitudes sum to at most the bound
        flat = Y.ravel(order="K")
        if self.threshold == "hard":  # equal entries are all kept or all dropped
            level = _core.l1_kept_level(flat, self.bound)
            flat[np.abs(flat) <= level] = 0
            return Y
        self.level = _core.l1_ball_level(flat, self.bound, self.level)
        if self.level > 0:
            _core.soft_threshold(flat, self.level, flat)
        return Y


def _turned(new: Array, old: Array) -> float:
    """Return the largest sine of the angle between matching columns; a zero column matches a zero column."""
    from scipy.optimize import linear_sum_assignment

    norms = [np.sqrt(np.einsum("ij,ij->j", M, M)) for M in (new, old)]
    cosine = np.abs(inner_products(new, old)) / np.outer(*(divisor(norm) for norm in norms))
    cosine[np.ix_(norms[0] == 0, norms[1] == 0)] = 1
    worst = cosine[linear_sum_assignment(-cosine)].min()
    return math.sqrt(max(0.0, 1 - worst**2))


def _ordered(Y: Array, Z: Array, B: Array) -> tuple[Array, Array, Array]:
    """Order the columns by the norms of the rows and columns of B, the largest first.

    Their signs make the sums of cubes positive.
    """
    size, sides = float(np.abs(B).max(initial=0)) or 1.0, []
    for side in (Y, Z):
        order = descending(np.sum((B / size) ** 2, axis=0))
        signs = np.where((side[:, order] ** 3).sum(axis=0) < 0, -1, 1)
        sides.append(side[:, order] * signs)
        B = (B[:, order] * signs).T  # for the other side
    Y, Z = sides
    return Y, Z, B
