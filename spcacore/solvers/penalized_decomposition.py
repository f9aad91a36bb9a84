"""Penalized matrix decomposition: one component whose loading has a bounded l1 norm."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._validation import as_seed, check_bool, number
from ..operators.deflation import DeflatedOperator
from ..operators.inputs import as_problem
from ..operators.problem import Problem
from ..operators.submatrix import largest_submatrix
from ..progress import Callback
from ..results import PMDComponent
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
from .refitting import PENALTIES, is_better, penalty_continuation, refit
from .starts import Start, check_start, starts


@dataclass(frozen=True, eq=False, repr=False)
class Options:
    """How one component is searched for; arrays only in `start`."""

    start: Any
    n_starts: int | None
    max_iter: int
    tol: float | None
    renormalize: bool
    nonnegative: bool
    sample_l1_bound: float | None


def check_bound(value: Any, name: str, problem: Problem) -> float:
    """Validate the bound on the l1 norm of a loading."""
    return _bound(value, name, problem.p)


def _bound(value: Any, name: str, size: int) -> float:
    root = math.sqrt(size)
    return min(number(value, name, 1.0, root * (1 + 1e-12)), root)


def check_options(
    problem: Problem,
    *,
    sample_l1_bound: Any = None,
    nonnegative: Any = False,
    start: Any = None,
    n_starts: Any = None,
    max_iter: Any = 1000,
    tol: Any = None,
    renormalize: Any = False,
) -> Options:
    """Validate what `pmd` and `sparse_pca` share."""
    if sample_l1_bound is not None:
        if problem.n_samples is None:
            raise ValueError("sample_l1_bound needs data; a covariance has no samples")
        if problem.operator.covariance:
            raise ValueError("sample_l1_bound needs the data in memory, and X is in blocks of rows")
        sample_l1_bound = _bound(sample_l1_bound, "sample_l1_bound", problem.n_samples)
    return Options(
        *check_start(problem.p, start, n_starts),
        *check_iterations(max_iter, tol),
        check_bool(renormalize, "renormalize"),
        check_bool(nonnegative, "nonnegative"),
        sample_l1_bound,
    )


def pmd(
    X: Any,
    l1_bound: float,
    *,
    sample_l1_bound: float | None = None,
    nonnegative: bool = False,
    start: Any = None,
    n_starts: int | None = None,
    max_iter: int = 1000,
    tol: float | None = None,
    renormalize: bool = False,
    kind: str = "data",
    center: Any = True,
    scale: Any = False,
    sample_weight: Any = None,
    screening: str = "auto",
    n_features: int | None = None,
    rng: Any = None,
    callback: Callback | None = None,
) -> PMDComponent:
    """One sparse principal component by the penalized matrix decomposition.

    Searches `max u'Xv` subject to `||u|| = ||v|| = 1` and `||v||_1 <= l1_bound`, with X centred and, if
    asked, scaled (the SPC criterion), by `u <- Xv/||Xv||` and v <- the soft threshold of `X'u` at
    the bound, from several starts. That is `max v'Av` over the same v, with the covariance matrix
    `A`, so a covariance serves as well. The objective never decreases along a run; the best run is
    returned.

    Parameters
    ----------
    X : array-like of shape (n, p), sparse matrix, LinearOperator or callable
        Data, one row a sample; with ``kind="covariance"`` a symmetric (p, p) matrix, which may be
        indefinite (the iteration then works on a shifted matrix), or a callable `v -> A v`. float32 and
        float64 arrays in C or Fortran order, and CSR and CSC matrices, are not copied. Dense data may
        have NaN entries, which are left out of all sums: of the column means and standard deviations,
        and of the products. Such data are copied once, centred and scaled, and not screened.
    l1_bound : float
        Bound on the l1 norm of the loading, in [1, sqrt(p)]: 1 allows a single variable, sqrt(p) is no
        bound.
    sample_l1_bound : float, optional
        The two-way form: a bound, in [1, sqrt(n)], on the l1 norm of u besides. Data only.
    nonnegative : bool, default False
        Only loadings without negative entries.
    start : None, "diagonal", "eigenvector" or array-like of shape (p,), optional
        None (default): nearly the leading eigenvector of the submatrix of the `4 l1_bound**2`
        variables of largest variance or, where all variances tie, dense leading vectors; then single
        variables by decreasing variance. "diagonal": the variable of largest variance alone.
        "eigenvector": the leading eigenvector. An array is taken as it is.
    n_starts : int, optional
        Number of starts when `start` is None, as in `tpower`.
    max_iter : int, default 1000
        Iterations of each start.
    tol : float, optional
        A run ends when its support is stable and an iteration raises the objective by a fraction of
        at most `tol`. Default 1e-8 for float64, 1e-5 for float32.
    renormalize : bool, default False
        Replace the values on the support by the leading eigenvector there. Its l1 norm may exceed
        the bound.
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
        left out. X is not copied; dense X is not screened then. `sample_loading` is of the rows
        times the roots of their weights.
    screening : {"auto", "both", "shadow", "references", "none"}, default "auto"
        How dense data are kept from being read for every product, see `sparse_pca`. The two-way form
        reads them for all.
    n_features : int, optional
        p, needed when X is a bare callable; of anything else, it must be its number of columns.
    rng : None, int or numpy Generator, optional
        For random starts and for probing operators without entries; None is a fixed seed.
    callback : callable, optional
        Called with a `Progress` at most twenty times a second, and once at the end.
        Raising StopIteration ends the search early, see `Progress`.

    Returns
    -------
    PMDComponent
        `loading` (p,), `sample_loading` u (n,), `strength` d = u'Xv, `value` = v'Av, `cardinality`,
        `n_iter`, `converged`, `method`. For a matrix without any variance the loading is the first
        unit vector, the value 0, and a RuntimeWarning is given.

    Raises
    ------
    ValueError
        For infinite or empty input, NaN other than in dense data, a column without any observed
        entry, an asymmetric covariance, or an option out of range.
    TypeError
        For input that is not real numbers, masked arrays, or an option of the wrong type.

    References
    ----------
    D. M. Witten, R. Tibshirani and T. Hastie (2009). A penalized matrix decomposition, with
    applications to sparse principal components and canonical correlation analysis. Biostatistics
    10(3), 515-534, algorithm 3 and sections 2.2 to 3.2.

    Examples
    --------
    >>> import spcacore
    >>> pitprops = spcacore.datasets.load_pitprops()
    >>> x = spcacore.pmd(pitprops.correlation, 1.8, kind="covariance")
    >>> x
    PMDComponent(method='pmd', p=13, cardinality=5, value=2.64461, converged in 59 iterations)
    >>> round(float(abs(x.loading).sum()), 6)
    1.8
    """
    problem = as_problem(
        X, kind=kind, center=center, scale=scale, sample_weight=sample_weight,
        n_features=n_features, definite=False, screening=screening, missing=True,
    )  # fmt: skip
    bound = check_bound(l1_bound, "l1_bound", problem)
    options = check_options(
        problem, sample_l1_bound=sample_l1_bound, nonnegative=nonnegative, start=start, n_starts=n_starts,
        max_iter=max_iter, tol=tol, renormalize=renormalize,
    )  # fmt: skip
    seed = as_seed(rng)
    told = progress_hook(callback)
    state = DeflatedOperator.nothing(problem)
    found = solve(problem, state, bound, options, [seed, 0], told)
    component = component_result(problem, found, "pmd", told, max_iter)
    data = problem.n_samples is not None and not problem.operator.covariance
    left = np.zeros(problem.n_samples or 0, problem.operator.dtype) if data else None
    strength = 0.0
    if found is not None and found.objective > problem.noise(found.index):
        if data:
            left, strength = _left(state, found, options)
            strength *= math.sqrt(problem.degrees / max(len(left) - 1, 1))  # of the rows that each stands for
        else:
            strength = math.sqrt(found.objective) * math.sqrt(problem.degrees)
    with np.errstate(under="ignore"):
        strength = float(np.ldexp(strength, problem.exponent // 2))
    return PMDComponent(**_fields(component), sample_loading=left, strength=strength)


def _fields(component: Any) -> dict[str, Any]:
    return {name: getattr(component, name) for name in component.__dataclass_fields__}


def _left(state: DeflatedOperator, x: Solution, options: Options) -> tuple[NDArray[Any], float]:
    """u, and u'F v in the units of F, that belong to a loading."""
    f = state.operator.image(x.index, np.ascontiguousarray(x.value))
    u = np.empty_like(f)
    _core.l1_threshold(f, options.sample_l1_bound or math.sqrt(len(f)), 0, u)
    return u, float(u.astype(np.float64) @ f)


def image(state: DeflatedOperator, found: Solution, options: Options) -> NDArray[Any] | None:
    """d u, where it differs from F v."""
    if options.sample_l1_bound is None or state.operator.covariance:
        return None
    u, strength = _left(state, found, options)
    return u * u.dtype.type(strength)


def solve(
    problem: Problem,
    state: DeflatedOperator,
    l1_bound: float,
    options: Options,
    seed: list[int],
    told: ProgressHook | None,
) -> Solution | None:
    """The best run over all starts on the deflated operator; None when it maps them all to zero."""
    tol = default_tol(state.operator, options.tol)
    if options.sample_l1_bound is not None and state.method.endswith("hotelling"):
        raise ValueError(f"sample_l1_bound needs data, and {state.method!r} deflation has no data form")
    best = None
    for index, value, _ in bounded_starts(problem, state, l1_bound, options.start, options.n_starts, seed):
        if best is not None and ended(told):
            break
        new = _run(state, Solution(index, value, 0.0, 0, False), l1_bound, options, tol, told)
        if new is not None and (best is None or is_better(state, new, best, 0)):
            best = new
    if best is None:
        return None
    if options.sample_l1_bound is not None:  # its objective was u'F v
        y = state.operator.apply(best.index, best.value)
        best = replace(best, objective=float(best.value @ y[best.index]))
    if options.renormalize:
        best = refit(state, best, options.nonnegative)
    return drop_zeros(best)


def bounded_starts(
    problem: Problem,
    state: DeflatedOperator,
    l1_bound: float,
    start: Any,
    n_starts: int | None,
    seed: list[int],
) -> Iterator[Start]:
    """Those of a cardinality of `l1_bound**2`, the fewest nonzeros of a vector that meets the bound."""
    p = state.operator.p
    k = min(math.ceil(l1_bound**2 - 1e-9), p, largest_submatrix(state.operator))
    yield from starts(problem, state, p if isinstance(start, np.ndarray) else k, start, n_starts, seed)


def _run(
    state: DeflatedOperator,
    x: Solution,
    l1_bound: float,
    options: Options,
    tol: float,
    told: ProgressHook | None,
) -> Solution | None:
    """From one start; None where A maps a vector to zero, or where the support has no feasible vector."""
    op = state.operator
    limits = (
        l1_bound, options.sample_l1_bound or 0.0, options.max_iter, tol, told, options.nonnegative,
    )  # fmt: skip
    status, index, value, objective, n_iter = op.pmd(x.index, x.value, *limits)
    if status < 0:
        return None
    x = Solution(index, value, objective, n_iter, status == 0)
    weights = PENALTIES if options.sample_l1_bound is None else ()  # two-way steps know no penalty
    return penalty_continuation(state, x, lambda op, i, v: op.pmd(i, v, *limits), weights)
