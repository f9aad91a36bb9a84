"""Sparse components in a rotated basis: all at once, the loadings of a whole basis made sparse together.

The leading singular vectors are a basis of a subspace, and any rotation of them explains as much. Varimax
finds the one that is nearly sparse already, and one soft threshold for the whole matrix makes it so
(polar, rotate, shrink: PRS). Alternating with the best scores for these loadings maximizes ||Z'XY||_F over
Z'Z = I and ||Y||_1 <= gamma (SCA); with both sides sparse, SMA.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._input import choice, hook, integer, number, real_array
from ._operator import Problem, as_problem, scores
from ._result import Callback, Progress, RotatedResult
from ._search import _eigsh
from .rotation import orthomax
from .variance import operator_variances

_DENSE = 256  # variables up to which all eigenvectors are computed
_ROTATIONS = ("varimax", "none")
_THRESHOLDS = ("soft", "hard")


def prs(M: Any, l1_bound: float, *, rotation: str = "varimax", threshold: str = "soft") -> NDArray[Any]:
    """Polar, rotate, shrink: a sparse matrix near the orthonormal factor of M, up to a rotation.

    Takes the polar factor of M, the nearest matrix with orthonormal columns; rotates it by varimax; and
    soft-thresholds its entries, at one level for all, to `sum |y_ij| = l1_bound`.

    Parameters
    ----------
    M : array-like of shape (p, r), p >= r
    l1_bound : float
        In (0, inf); a bound that the rotated matrix meets changes nothing.
    rotation : {"varimax", "none"}, default "varimax"
    threshold : {"soft", "hard"}, default "soft"
        "hard" keeps the largest entries as they are, as many as the bound allows.

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
    bound = number(l1_bound, "l1_bound", np.finfo(float).tiny)
    choice(rotation, "rotation", _ROTATIONS)
    choice(threshold, "threshold", _THRESHOLDS)
    return _shrunk(_rotated(_polar(a.astype(np.float64)), rotation), bound, threshold).astype(a.dtype)


def sca(
    X: Any,
    n_components: int,
    *,
    l1_bound: float | None = None,
    rotation: str = "varimax",
    threshold: str = "soft",
    max_iter: int = 1000,
    tol: float = 1e-5,
    kind: str = "data",
    center: bool = True,
    scale: bool = False,
    callback: Callback | None = None,
) -> RotatedResult:
    """Sparse component analysis: sparse loadings Y of a rotated basis, all at once.

    Maximizes `||Z'XY||_F` over scores `Z'Z = I` and loadings with `sum |y_ij| <= l1_bound`, by turns: Z is
    the polar factor of `XY`, and Y is `prs` of `X'Z`. It begins with the leading singular vectors.

    Parameters
    ----------
    X : array-like of shape (n, p), sparse matrix
        Data; with ``kind="covariance"`` a symmetric positive semidefinite (p, p) matrix. Not copied.
    n_components : int
        r, in [1, min(n, p)].
    l1_bound : float, optional
        In [r, r sqrt(p)]. Default: `sqrt(p r)`.
    rotation : {"varimax", "none"}, default "varimax"
    threshold : {"soft", "hard"}, default "soft"
        "hard" keeps the largest entries as they are, as many as the bound allows; it may go in cycles.
    max_iter : int, default 1000
    tol : float, default 1e-5
        Stop when no loading turns by more than this sine, columns matched and of unit length.
    kind : {"data", "covariance"}, default "data"
    center : bool, default True
        Subtract the column means, implicitly. Ignored for a covariance.
    scale : bool, default False
        Divide each column by its standard deviation, implicitly.
    callback : callable, optional
        Called with a `Progress` after each iteration. Raising StopIteration ends the search.

    Returns
    -------
    RotatedResult
        `loadings` (p, r) as they were shrunk, not of unit length, each with the sum of its cubes positive, by
        the variance of their scores; `scores` (n, r), None for a covariance; `pve` (r,), cumulative.

    Raises
    ------
    ValueError
        For NaN, infinite or empty input, X without variance, an indefinite covariance, or an option out of
        range. Of lower rank than r, it gives fewer components, and a RuntimeWarning.
    TypeError
        For input that is not real numbers, or an option of the wrong type.

    References
    ----------
    F. Chen and K. Rohe (2020). A new basis for sparse principal component analysis. arXiv:2007.00596.

    Examples
    --------
    >>> import spcacore
    >>> X, planted = spcacore.datasets.make_spiked(100, 500, cardinality=10, rng=0)
    >>> result = spcacore.sca(X, 2, l1_bound=6)
    >>> [sorted(abs(y).argsort()[-10:].tolist()) for y in result.loadings.T]
    [[0, 1, 2, 3, 4, 5, 6, 7, 8, 9], [10, 11, 12, 13, 14, 15, 16, 17, 18, 19]]
    """
    problem = as_problem(X, kind=kind, center=center, scale=scale)
    r, bound = _check(problem, n_components, l1_bound, "l1_bound", problem.p)
    _check_ways(rotation, threshold)
    max_iter, tol = integer(max_iter, "max_iter", 1), number(tol, "tol", 0)
    tell = hook(callback)
    op = problem.operator
    Y = _leading(problem, r)

    def step() -> float:
        nonlocal Y
        AY = op.apply_block(Y).astype(np.float64)
        before = Y
        Y = _shrunk(_rotated(_polar(AY @ _inverse_root(Y.T @ AY)), rotation), bound, threshold)
        return _turned(Y, before)

    n_iter, converged = _iterated(step, Y.shape[1], max_iter, tol, tell)
    spread = np.sum(Y * op.apply_block(Y), axis=0)
    order = np.argsort(-spread, kind="stable")
    Y = (Y * np.where((Y**3).sum(axis=0) < 0, -1, 1))[:, order]
    loadings = Y.astype(op.dtype)
    return RotatedResult(
        loadings=loadings,
        scores=None if kind == "covariance" else scores(X, loadings, problem.mean, problem.scale),
        pve=_pve(problem, Y),
        n_iter=n_iter,
        converged=converged,
        method="sca",
        names=problem.names,
    )


def sma(
    X: Any,
    n_components: int,
    *,
    sample_l1_bound: float | None = None,
    l1_bound: float | None = None,
    rotation: str = "varimax",
    threshold: str = "soft",
    max_iter: int = 1000,
    tol: float = 1e-5,
    center: bool = False,
    scale: bool = False,
    callback: Callback | None = None,
) -> RotatedResult:
    """Sparse matrix approximation `Z B Y'`, sparse on both sides, in rotated bases.

    Maximizes `||Z'XY||_F` over Z and Y with `sum |z_ij| <= sample_l1_bound` and `sum |y_ij| <= l1_bound`, by
    turns: Z is `prs` of `XY`, and Y is `prs` of `X'Z`.

    Parameters
    ----------
    X : array-like of shape (n, p), sparse matrix
        Not copied.
    n_components : int
        r, in [1, min(n, p)].
    sample_l1_bound, l1_bound : float, optional
        In [r, r sqrt(n)] and [r, r sqrt(p)]. Default: `sqrt(n r)` and `sqrt(p r)`.
    rotation, threshold, max_iter, tol, scale, callback
        As in `sca`.
    center : bool, default False
        Subtract the column means, implicitly.

    Returns
    -------
    RotatedResult
        `loadings` Y (p, r) and `scores` Z (n, r), as they were shrunk; `middle` B = Z'XY (r, r); `pve`.

    Raises
    ------
    ValueError
        For NaN, infinite or empty input, or an option out of range.
    TypeError
        For input that is not real numbers, or an option of the wrong type.

    References
    ----------
    F. Chen and K. Rohe (2020). A new basis for sparse principal component analysis. arXiv:2007.00596.

    Examples
    --------
    >>> import numpy as np, spcacore
    >>> blocks = np.kron(np.eye(2), np.ones((3, 4)))
    >>> result = spcacore.sma(blocks, 2, sample_l1_bound=3, l1_bound=3)
    >>> sorted((result.loadings != 0).astype(int).T.tolist())
    [[0, 0, 0, 0, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0, 0, 0]]
    """
    problem = as_problem(X, center=center, scale=scale)
    op = problem.operator
    r, bound = _check(problem, n_components, l1_bound, "l1_bound", problem.p)
    _, sample_bound = _check(problem, n_components, sample_l1_bound, "sample_l1_bound", op.m)
    _check_ways(rotation, threshold)
    max_iter, tol = integer(max_iter, "max_iter", 1), number(tol, "tol", 0)
    tell = hook(callback)
    Y = _leading(problem, r)
    Z = _polar(_images(op, Y))

    def step() -> float:
        nonlocal Y, Z
        before = Y, Z
        Z = _shrunk(_rotated(_polar(_images(op, Y)), rotation), sample_bound, threshold)
        back = np.stack([op.apply_transposed(np.ascontiguousarray(z, op.dtype)) for z in Z.T], axis=1)
        Y = _shrunk(_rotated(_polar(back.astype(np.float64)), rotation), bound, threshold)
        return max(_turned(Y, before[0]), _turned(Z, before[1]))

    n_iter, converged = _iterated(step, Y.shape[1], max_iter, tol, tell)
    B = Z.T @ _images(op, Y) * math.ldexp(1.0, problem.exponent // 2)
    Y, Z, B = _ordered(Y, Z, B)
    return RotatedResult(
        loadings=Y.astype(op.dtype), scores=Z.astype(op.dtype), pve=_pve(problem, Y), n_iter=n_iter,
        converged=converged, method="sma", names=problem.names, middle=B,
    )  # fmt: skip


def _iterated(
    step: Callable[[], float], r: int, max_iter: int, tol: float, tell: Callable[..., object] | None
) -> tuple[int, bool]:
    """Steps until one turns no column by more than `tol`: how many were made, and whether that was so."""
    n_iter = 0
    for n_iter in range(1, max_iter + 1):
        turned = step()
        if tell is not None:
            try:
                tell(Progress(0, r, n_iter))
            except StopIteration:
                break
        if turned <= tol:
            return n_iter, True
    warnings.warn(f"not converged in {n_iter} iterations", RuntimeWarning, stacklevel=3)
    return n_iter, False


def _check(problem: Problem, n_components: Any, bound: Any, name: str, size: int) -> tuple[int, float]:
    r = integer(n_components, "n_components", 1, min(problem.p, problem.n_samples or problem.p))
    if bound is None:
        return r, math.sqrt(size * r)
    return r, number(bound, name, r, r * math.sqrt(size))


def _check_ways(rotation: Any, threshold: Any) -> None:
    choice(rotation, "rotation", _ROTATIONS)
    choice(threshold, "threshold", _THRESHOLDS)


# ---- polar, rotate, shrink --------------------------------------------------------------------------


def _polar(M: NDArray[Any]) -> NDArray[np.float64]:
    """The nearest matrix with orthonormal columns."""
    U, _, Vt = np.linalg.svd(M, full_matrices=False)
    return U @ Vt


def _rotated(Y: NDArray[np.float64], rotation: str) -> NDArray[np.float64]:
    if rotation == "none" or Y.shape[1] == 1:
        return Y
    return orthomax(Y, 1.0)[0]


def _shrunk(Y: NDArray[np.float64], bound: float, threshold: str) -> NDArray[np.float64]:
    """All entries thresholded at one level, so that their magnitudes sum to at most `bound`."""
    magnitude = np.sort(np.abs(Y), axis=None)[::-1]
    total = np.cumsum(magnitude)
    if total[-1] <= bound:
        return Y
    if threshold == "hard":
        kept = np.count_nonzero(total <= bound)
        level = magnitude[kept]  # of equal entries all go, or all stay
        return np.where(np.abs(Y) > level, Y, 0)
    level = (total - bound) / np.arange(1, len(total) + 1)
    level = level[np.flatnonzero(level < magnitude)[-1]]
    return np.sign(Y) * np.maximum(np.abs(Y) - level, 0)


def _inverse_root(G: NDArray[np.float64]) -> NDArray[np.float64]:
    """G^(-1/2) of a symmetric semidefinite matrix, 0 where it is singular."""
    values, vectors = np.linalg.eigh((G + G.T) / 2)
    kept = values > 1e-14 * max(values[-1], 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return (vectors * np.where(kept, 1 / np.sqrt(np.where(kept, values, 1)), 0)) @ vectors.T


def _turned(new: NDArray[np.float64], old: NDArray[np.float64]) -> float:
    """The largest sine between columns, matched one to one; a zero column matches a zero column."""
    from scipy.optimize import linear_sum_assignment

    a, b = (M / np.where(norm > 0, norm, 1) for M in (new, old) for norm in (np.linalg.norm(M, axis=0),))
    cosine = np.abs(a.T @ b)
    cosine[np.ix_(~new.any(axis=0), ~old.any(axis=0))] = 1
    worst = cosine[linear_sum_assignment(-cosine)].min()
    return math.sqrt(max(0.0, 1 - worst**2))


def _leading(problem: Problem, r: int) -> NDArray[np.float64]:
    """The r leading eigenvectors of the operator; fewer, with a warning, where its rank is smaller."""
    values, vectors = _eigenvectors(problem.operator, r)
    total = values[0] if problem.diagonal is None else problem.diagonal.sum()
    noise = 1e3 * float(np.finfo(problem.operator.dtype).eps) * float(total)
    rank = int(np.count_nonzero(values > noise))
    if rank == 0:
        raise ValueError("X has no variance")
    if rank < r:
        warnings.warn(f"X has only {rank} of the {r} components asked for", RuntimeWarning, stacklevel=3)
    return vectors[:, :rank]


def _eigenvectors(op: Any, r: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    from scipy.sparse.linalg import LinearOperator

    if op.p <= _DENSE or r >= op.p - 1:
        values, vectors = np.linalg.eigh(op.submatrix(np.arange(op.p)).astype(np.float64))
        return values[::-1][:r], vectors[:, ::-1][:, :r]
    whole = LinearOperator(
        (op.p, op.p), dtype=op.dtype,
        matvec=lambda v: op.apply(None, np.ascontiguousarray(v.ravel(), op.dtype)),
    )  # fmt: skip
    start = np.random.default_rng(0).standard_normal(op.p).astype(op.dtype)
    tol = 1e-8 if op.dtype == np.float64 else 1e-4
    values, vectors = _eigsh(whole, r, v0=start, tol=tol)
    return values[::-1].astype(np.float64), vectors[:, ::-1].astype(np.float64)


def _images(op: Any, Y: NDArray[np.float64]) -> NDArray[np.float64]:
    """F Y."""
    out = np.zeros((op.m, Y.shape[1]))
    for t, y in enumerate(Y.T):
        index = np.flatnonzero(y)
        if len(index):
            out[:, t] = op.image(index, y[index].astype(op.dtype))
    return out


def _ordered(
    Y: NDArray[np.float64], Z: NDArray[np.float64], B: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Both sides by the size of their part of B, each column with the sum of its cubes positive."""
    for axis in (0, 1):
        order = np.argsort(-np.sum(B**2, axis=axis), kind="stable")
        side = (Y if axis == 0 else Z)[:, order]
        signs = np.where((side**3).sum(axis=0) < 0, -1, 1)
        if axis == 0:
            Y, B = side * signs, B[:, order] * signs
        else:
            Z, B = side * signs, B[order] * signs[:, None]
    return Y, Z, B


def _pve(problem: Problem, Y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Cumulative proportion of the variance that the loadings explain."""
    norm = np.linalg.norm(Y, axis=0)
    variances = operator_variances(problem, Y / np.where(norm > 0, norm, 1), "cumulative")
    assert problem.diagonal is not None
    total = float(problem.diagonal.sum())
    return np.cumsum(variances) / total if total > 0 else np.cumsum(variances)
