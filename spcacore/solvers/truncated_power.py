"""Truncated power iteration: one sparse component of given cardinality."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._limits import QUOTIENT_ROUNDS, SWAP_WORK
from .._validation import as_seed, check_bool, integer
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
from .refitting import is_better, penalty_continuation, refit
from .starts import check_start, starts
from .swaps import swap_search


@dataclass(frozen=True, eq=False, repr=False)
class Options:
    """How one component is searched for; `swaps` is what exchanges may cost, in multiplications."""

    start: Any
    n_starts: int | None
    max_iter: int
    tol: float | None
    renormalize: bool
    nonnegative: bool
    swaps: float


def check_options(
    problem: Problem,
    *,
    start: Any = None,
    n_starts: Any = None,
    max_iter: Any = 1000,
    tol: Any = None,
    renormalize: Any = True,
    nonnegative: Any = False,
    swaps: Any = None,
) -> Options:
    """Validate what `tpower` and `sparse_pca` share."""
    renormalize, nonnegative = check_bool(renormalize, "renormalize"), check_bool(nonnegative, "nonnegative")
    if swaps is None:
        swaps = renormalize and not nonnegative and start is None
        affordable = SWAP_WORK
    else:
        swaps, affordable = check_bool(swaps, "swaps"), math.inf
        if swaps and (nonnegative or not renormalize):
            raise ValueError("swaps=True goes with renormalize=True and without nonnegative")
        if swaps and problem.diagonal is None:
            raise ValueError("swaps=True needs the entries of X; an operator offers only products")
    return Options(
        *check_start(problem.p, start, n_starts),
        *check_iterations(max_iter, tol),
        renormalize,
        nonnegative,
        affordable if swaps else 0.0,
    )


def tpower(
    X: Any,
    cardinality: int,
    *,
    start: Any = None,
    n_starts: int | None = None,
    max_iter: int = 1000,
    tol: float | None = None,
    renormalize: bool = True,
    nonnegative: bool = False,
    swaps: bool | None = None,
    kind: str = "data",
    center: Any = True,
    scale: Any = False,
    sample_weight: Any = None,
    screening: str = "auto",
    n_features: int | None = None,
    rng: Any = None,
    callback: Callback | None = None,
) -> SparseComponent:
    """One sparse principal component by the truncated power method.

    Searches `max x'Ax` subject to `||x|| = 1` and at most `cardinality` nonzeros, where `A` is the
    covariance matrix, by `x <- T_k(Ax)/||T_k(Ax)||` from several starts. The objective never
    decreases along a run; the best run is returned.

    Parameters
    ----------
    X : array-like of shape (n, p), sparse matrix, LinearOperator or callable
        Data, one row a sample; with ``kind="covariance"`` a symmetric (p, p) matrix, which may be
        indefinite (the iteration then works on a shifted matrix), or a callable `v -> A v`, see `sparse_pca`.
        float32 and float64 arrays in C or Fortran order, and CSR and CSC matrices, are not copied.
    cardinality : int
        Number of nonzeros, in [1, p].
    start : None, "diagonal", "eigenvector" or array-like of shape (p,), optional
        None (default): nearly the leading eigenvector of the submatrix of the `4 cardinality` variables
        of largest variance, or, where all variances tie, of largest weight in dense leading vectors, and
        the variables of largest weight there; then single variables by decreasing variance. "diagonal":
        the variable of largest variance alone. "eigenvector": the leading eigenvector,
        truncated to 8, 4, 2 and 1 times the cardinality, each run warm-starting the next. An array is
        truncated first.
    n_starts : int, optional
        Number of starts when `start` is None, run one after another; beyond 1 + p they are random.
        Default: one, and as
        many single variables as are cheap, all of them for p up to several hundred.
    max_iter : int, default 1000
        Iterations of each start.
    tol : float, optional
        A run ends when its support is stable and an iteration raises the objective by a fraction of
        at most `tol`. Default 1e-8 for float64, 1e-5 for float32.
    renormalize : bool, default True
        Replace the values on the support by the leading eigenvector there, which never lowers the
        objective (Moghaddam et al. 2006).
    nonnegative : bool, default False
        Only loadings without negative entries: each step keeps the largest entries of the positive part.
    swaps : bool, optional
        At last exchange variables of the support for others, one for one, until no exchange raises the
        objective. It takes `cardinality` columns of A. Default: where these are cheap, `start` is None, and
        values are re-fitted.
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
    screening : {"auto", "both", "shadow", "references", "none"}, default "auto"
        How dense data are kept from being read for every product, see `sparse_pca`.
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
        `loading` (p,), `value`, `cardinality`, `n_iter`, `converged`, `method`. For a matrix without
        any variance the loading is the first unit vector, the value 0, and a RuntimeWarning is given.

    Raises
    ------
    ValueError
        For NaN, infinite or empty input, an asymmetric covariance, or an option out of range.
    TypeError
        For input that is not real numbers, masked arrays, or an option of the wrong type.

    References
    ----------
    X.-T. Yuan and T. Zhang (2013). Truncated power method for sparse eigenvalue problems. Journal of
    Machine Learning Research 14, 899-925, algorithm 1.

    Examples
    --------
    >>> import spcacore
    >>> pitprops = spcacore.datasets.load_pitprops()
    >>> x = spcacore.tpower(pitprops.correlation, 6, kind="covariance")
    >>> print(f"{x.value:.4f}", [name for name, w in zip(pitprops.names, x.loading) if w])
    3.7710 ['topdiam', 'length', 'ringbut', 'bowmax', 'bowdist', 'whorls']
    """
    problem = as_problem(
        X,
        kind=kind,
        center=center,
        scale=scale,
        sample_weight=sample_weight,
        n_features=n_features,
        definite=False,
        screening=screening,
    )
    k = integer(cardinality, "cardinality", 1, problem.p)
    options = check_options(
        problem, start=start, n_starts=n_starts, max_iter=max_iter, tol=tol, renormalize=renormalize,
        nonnegative=nonnegative, swaps=swaps,
    )  # fmt: skip
    seed = as_seed(rng)
    told = progress_hook(callback)
    found = solve(problem, DeflatedOperator.nothing(problem), k, options, [seed, 0], told)
    return component_result(problem, found, "tpower", told, max_iter)


def solve(
    problem: Problem,
    state: DeflatedOperator,
    cardinality: int,
    options: Options,
    seed: list[int],
    told: Callable[[int], object] | None,
) -> Solution | None:
    """The best run over all starts on the deflated operator; None when it maps them all to zero."""
    op, positive = state.operator, options.nonnegative
    tol = default_tol(op, options.tol)
    best = None
    for index, value, path in starts(problem, state, cardinality, options.start, options.n_starts, seed):
        if best is not None and ended(told):
            break
        new = _run(state, Solution(index, value, 0.0, 0, False), path, options, tol, told)
        if new is None:
            continue
        if best is None or is_better(state, new, best, tol if options.renormalize else 0, positive):
            best = new
    if best is None:
        return None
    if options.renormalize:
        best = refit(state, best, positive)
    if best.objective == -np.inf:  # nothing on this support is outside of the span of Q
        return None
    for _ in range(QUOTIENT_ROUNDS if state.quotient and options.renormalize and not positive else 0):
        again = _run(state, best, (cardinality,), options, tol, told)
        if again is None or np.array_equal(again.index, best.index):
            break
        again = refit(state, again)
        if not again.objective > best.objective:
            break
        best = again
    return drop_zeros(swap_search(problem, state, best, options.swaps, told))


def _run(
    state: DeflatedOperator,
    x: Solution,
    path: tuple[int, ...],
    options: Options,
    tol: float,
    told: ProgressHook | None,
) -> Solution | None:
    """From one start, through the cardinalities of the path; None where A maps a vector to zero."""
    op = state.operator
    limits = options.max_iter, tol, told, options.nonnegative
    running = op.with_quotient() if state.quotient else op
    index, value = x.index, x.value
    for width in path:
        status, index, value, objective, n_iter = running.truncated_power(index, value, width, *limits)
        if status < 0:
            return None
    x = Solution(index, value, objective, n_iter, status == 0)
    return penalty_continuation(state, x, lambda op, i, v: op.truncated_power(i, v, path[-1], *limits))
