"""SCoTLASS: one component of bounded l1 norm, orthogonal to the earlier loadings."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import as_seed, check_bool, real_array
from ..linalg.orthogonal import orthogonal_part
from ..operators.deflation import DeflatedOperator
from ..operators.inputs import as_problem
from ..operators.problem import Problem
from ..progress import Callback
from ..results import SparseComponent
from .base import (
    ProgressHook,
    Solution,
    check_iterations,
    component_result,
    default_tol,
    drop_zeros,
    ended,
    progress_hook,
)
from .penalized_decomposition import bounded_starts, check_bound
from .refitting import is_better, refit
from .starts import check_start


@dataclass(frozen=True, eq=False, repr=False)
class Options:
    """How one component is searched for; arrays only in `start`."""

    start: Any
    n_starts: int | None
    max_iter: int
    tol: float | None
    renormalize: bool


def check_options(
    problem: Problem,
    *,
    start: Any = None,
    n_starts: Any = None,
    max_iter: Any = 1000,
    tol: Any = None,
    renormalize: Any = False,
) -> Options:
    """Validate what `scotlass` and `sparse_pca` share."""
    return Options(
        *check_start(problem.p, start, n_starts),
        *check_iterations(max_iter, tol),
        check_bool(renormalize, "renormalize"),
    )


def scotlass(
    X: Any,
    l1_bound: float,
    *,
    earlier: Any = None,
    start: Any = None,
    n_starts: int | None = None,
    max_iter: int = 1000,
    tol: float | None = None,
    renormalize: bool = False,
    kind: str = "data",
    center: Any = True,
    scale: Any = False,
    sample_weight: Any = None,
    n_features: int | None = None,
    rng: Any = None,
    callback: Callback | None = None,
) -> SparseComponent:
    """One sparse principal component of bounded l1 norm, orthogonal to earlier loadings.

    Searches `max v'Av` subject to `||v|| = 1`, `||v||_1 <= l1_bound` and `v'x = 0` for every earlier
    loading x, where `A` is the covariance matrix. Each iteration maximizes `(Av)'w` over these w
    exactly. The objective never decreases along a run; the best run from several starts is
    returned. Without earlier loadings it is the criterion of `pmd`.

    Parameters
    ----------
    X : array-like of shape (n, p), sparse matrix, LinearOperator or callable
        Data, one row a sample; with ``kind="covariance"`` a symmetric (p, p) matrix, which may be
        indefinite (the iteration then works on a shifted matrix), or a callable `v -> A v`.
        float32 and float64 arrays in C or Fortran order, and CSR and CSC matrices, are not copied.
    l1_bound : float
        Bound on the l1 norm of the loading, in [1, sqrt(p)]. Near 1 only nearly single variables
        meet it, and none of them may be orthogonal to the earlier loadings.
    earlier : array-like of shape (p, t), optional
        The earlier loadings, of any norm.
    start : None, "diagonal", "eigenvector" or array-like of shape (p,), optional
        As in `pmd`.
    n_starts : int, optional
        Number of starts when `start` is None, as in `tpower`.
    max_iter : int, default 1000
        Iterations of each start.
    tol : float, optional
        A run ends when its support is stable and an iteration raises the objective by a fraction of
        at most `tol`. Default 1e-8 for float64, 1e-5 for float32.
    renormalize : bool, default False
        Replace the values on the support by the best ones there that are orthogonal to the earlier
        loadings. Their l1 norm may exceed the bound.
    kind : {"data", "covariance"}, default "data"
    center : bool or array-like of shape (p,), default True
        Subtract the column means, or these numbers, implicitly. True is ignored for a covariance.
    scale : bool or array-like of shape (p,), default False
        Divide each column by its standard deviation (with `center` given, by the root mean square
        about it, with divisor n - 1), or by these positive numbers, implicitly; constant columns by 1. For a
        covariance: use the correlation.
    sample_weight : array-like of shape (n,), optional
        How many samples each row of data stands for, not negative: the mean and covariance are those of rows
        repeated so often, divided by ``sum(sample_weight) - 1``, which must be positive. Rows of weight 0 are
        left out. X is not copied; dense X is not screened then.
    n_features : int, optional
        p, needed when X is a bare callable; of anything else, it must be its number of columns.
    rng : None, int or numpy Generator, optional
        For random starts and for probing operators without entries; None is a fixed seed.
    callback : callable, optional
        Called with a `Progress` at most twenty times a second, and once at the end.
        Raising StopIteration ends the search early, see `Progress`.

    Returns
    -------
    SparseComponent
        `loading` (p,), `value`, `cardinality`, `n_iter`, `converged`, `method`. For a matrix
        without any variance the loading is the first unit vector, the value 0, and a RuntimeWarning is given.

    Raises
    ------
    ValueError
        For NaN, infinite or empty input, an asymmetric covariance, an option out of range, or where
        no start leads to a unit vector that is within the bound and orthogonal to the earlier
        loadings.
    TypeError
        For input that is not real numbers, masked arrays, or an option of the wrong type.

    References
    ----------
    I. T. Jolliffe, N. T. Trendafilov and M. Uddin (2003). A modified principal component technique
    based on the LASSO. Journal of Computational and Graphical Statistics 12(3), 531-547,
    equations 4 to 6.

    Examples
    --------
    >>> import spcacore
    >>> A = spcacore.datasets.load_pitprops().correlation
    >>> x = spcacore.scotlass(A, 1.8, kind="covariance")
    >>> y = spcacore.scotlass(A, 1.8, earlier=x.loading[:, None], kind="covariance")
    >>> x.cardinality, y.cardinality, round(x.value, 4), round(y.value, 4)
    (5, 6, 2.6446, 2.1679)
    >>> bool(abs(x.loading @ y.loading) < 1e-10)
    True
    """
    problem = as_problem(
        X,
        kind=kind,
        center=center,
        scale=scale,
        sample_weight=sample_weight,
        n_features=n_features,
        definite=False,
    )
    bound = check_bound(l1_bound, "l1_bound", problem)
    options = check_options(
        problem, start=start, n_starts=n_starts, max_iter=max_iter, tol=tol, renormalize=renormalize
    )
    state = DeflatedOperator.nothing(problem, constraint="orthogonal")
    for x in _columns(earlier, problem.p):
        index = np.flatnonzero(x)
        state = state.without(index, x[index].astype(problem.operator.dtype), problem.noise)
    seed = as_seed(rng)
    told = progress_hook(callback)
    found = solve(problem, state, bound, options, [seed, 0], told)
    if found is None and state.basis:
        raise ValueError(
            f"no unit vector of l1 norm at most {bound:g} that is orthogonal to the earlier loadings was "
            "found; raise l1_bound"
        )
    return component_result(problem, found, "scotlass", told, max_iter)


def _columns(earlier: Any, p: int) -> NDArray[np.float64]:
    """Its columns, as rows of unit norm."""
    if earlier is None:
        return np.empty((0, p))
    E = real_array(earlier, "earlier", ndim=2, empty=True).astype(np.float64).T
    if E.shape[1] != p:
        raise ValueError(f"earlier has shape {E.T.shape} where ({p}, t) is needed")
    largest = np.abs(E).max(axis=1, keepdims=True)
    if not largest.all():
        raise ValueError(f"column {int(np.argmin(largest))} of earlier is the zero vector")
    E = E / largest
    return E / np.linalg.norm(E, axis=1, keepdims=True)


def solve(
    problem: Problem,
    state: DeflatedOperator,
    l1_bound: float,
    options: Options,
    seed: list[int],
    told: ProgressHook | None,
) -> Solution | None:
    """The best run over all starts on the deflated operator; None where none ends in a feasible vector."""
    op = state.operator
    tol = default_tol(op, options.tol)
    state = replace(state, constraint=state.constraint or "orthogonal", basis=_basis(state))
    Q = np.zeros((op.p, len(state.basis)), op.dtype, order="F")
    for t, q in enumerate(state.basis):
        Q[:, t] = q
    best = None
    for index, value, _ in bounded_starts(problem, state, l1_bound, options.start, options.n_starts, seed):
        if best is not None and ended(told):
            break
        dense = np.zeros(op.p, op.dtype)
        dense[index] = value
        status, v, objective, n_iter = op.scotlass(dense, Q, l1_bound, options.max_iter, tol, told)
        if status < 0:
            continue
        index = np.flatnonzero(v)
        new = Solution(index, v[index], objective, n_iter, status == 0)
        if best is None or is_better(state, new, best, 0):
            best = new
    if best is not None and options.renormalize:
        best = refit(state, best)
    return drop_zeros(best)


def _basis(state: DeflatedOperator) -> tuple[NDArray[np.float64], ...]:
    """Orthonormal, of what a loading has to be orthogonal to."""
    if state.constraint is not None:
        return state.basis
    basis: list[NDArray[np.float64]] = []
    for index, value in state.loadings:
        x = np.zeros(state.operator.p)
        x[index] = value
        q = orthogonal_part(x, basis)
        if q is not None:
            basis.append(q)
    return tuple(basis)
