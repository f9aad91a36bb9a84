"""Several sparse components: a one-component solver and a deflation, in turn."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ._input import cardinalities, choice, hook, integer, seed_of
from ._operator import OUT_OF_RANGE, Problem, as_problem
from ._result import Callback, Progress, Screening, SparsePCAResult
from .deflation import METHODS, Deflated
from .tpower import Found, check_options, solve
from .variance import operator_variances


def sparse_pca(
    X: Any,
    n_components: int,
    *,
    cardinality: Any,
    method: str = "tpower",
    deflation: str = "projection",
    renormalize: bool = True,
    kind: str = "data",
    center: bool = True,
    scale: bool = False,
    start: str | None = None,
    n_starts: int | None = None,
    max_iter: int = 1000,
    tol: float | None = None,
    screening: str = "auto",
    n_features: int | None = None,
    rng: Any = None,
    callback: Callback | None = None,
) -> SparsePCAResult:
    """Sparse principal components: unit loadings with few nonzeros and large variance.

    Each component maximizes `x'Ax` subject to `||x|| = 1` and its cardinality, where `A` is the
    covariance matrix from which the earlier components have been removed by the deflation. The data
    are neither copied nor changed: centring, scaling and deflation are implicit.

    Parameters
    ----------
    X : array-like of shape (n, p), sparse matrix, LinearOperator or callable
        Data, one row a sample; with ``kind="covariance"`` a symmetric positive semidefinite (p, p)
        matrix (covariance, correlation or Gram), or a callable `v -> A v`. float32 and float64 arrays
        in C or Fortran order, memory maps, and CSR and CSC matrices are not copied; float32 stays
        float32. Dataframes bring the names of the variables.
    n_components : int
        In [1, min(n, p)].
    cardinality : int or sequence of int
        Nonzeros of every component, or of each.
    method : {"tpower"}, default "tpower"
        Truncated power iteration, see `tpower`.
    deflation : str, default "projection"
        "hotelling", "projection", "schur", "orthogonalized_hotelling" or
        "orthogonalized_projection", see `deflate`.
    renormalize : bool, default True
        Re-fit the values on each support, see `renormalize`.
    kind : {"data", "covariance"}, default "data"
    center : bool, default True
        Subtract the column means. Ignored for a covariance.
    scale : bool, default False
        Divide each column by its standard deviation; a covariance becomes the correlation.
    start : None, "diagonal" or "eigenvector", optional
    n_starts, max_iter, tol
        As in `tpower`.
    screening : {"auto", "both", "shadow", "references", "none"}, default "auto"
        Keep dense data from being read for every product, with the same result to the last bit. "shadow"
        makes an int8 copy of X, an eighth (float32: a quarter) of its size, and reads only the columns
        of X that the copy cannot rule out; "references" rules out columns by their products with
        earlier vectors; "both" does both; "auto" decides by the size of X and the memory available, and
        takes at most a fifth of X above 64 MB. Other input than dense data takes no notice. `result.screening` says what was used and read.
    n_features : int, optional
        p, needed when X is a bare callable.
    rng : None, int or numpy Generator, optional
        For random starts and for probing operators without entries; None is a fixed seed, so results
        repeat.
    callback : callable, optional
        Called with a `Progress` after each component, and at most twenty times a second in between.
        Raising StopIteration ends the search, and the components finished so far are returned; any
        other exception reaches the caller.

    Returns
    -------
    SparsePCAResult
        `loadings` (p, r), `explained_variance` and `_ratio` (r,), `total_variance`, `cardinality`,
        `mean`, `scale`, `n_iter`, `converged`; `.transform`, `.reconstruct`, `.extend`. It has fewer
        than `n_components` components, and a RuntimeWarning is given, when no variance is left.

    Raises
    ------
    ValueError
        For NaN, infinite or empty input, a covariance that is not symmetric positive semidefinite
        (beyond 1500 variables only its 2 x 2 minors are looked at), or an option out of range.
    TypeError
        For input that is not real numbers, masked arrays, or an option of the wrong type.

    References
    ----------
    X.-T. Yuan and T. Zhang (2013). Truncated power method for sparse eigenvalue problems. Journal of
    Machine Learning Research 14, 899-925. L. Mackey (2008). Deflation methods for sparse PCA.
    Advances in Neural Information Processing Systems 21.

    Examples
    --------
    >>> import spcacore
    >>> pitprops = spcacore.datasets.load_pitprops()
    >>> result = spcacore.sparse_pca(pitprops.correlation, 3, cardinality=[7, 4, 4], kind="covariance")
    >>> result
    SparsePCAResult(method='tpower', deflation='projection', p=13, 3 components, cardinality=[7, 4, 4], 60.2 % of the variance explained)
    >>> result.explained_variance_ratio.round(3)
    array([0.307, 0.157, 0.138])
    """  # noqa: E501
    options: dict[str, Any] = {
        "renormalize": renormalize, "center": center, "scale": scale, "start": start, "n_starts": n_starts,
        "max_iter": max_iter, "tol": tol, "n_features": n_features, "screening": screening,
    }  # fmt: skip
    choice(method, "method", ("tpower",))
    choice(deflation, "deflation", METHODS)
    if start is not None:
        choice(start, "start", ("diagonal", "eigenvector"))
    problem = as_problem(X, kind=kind, center=center, scale=scale, n_features=n_features, screening=screening)
    r = integer(n_components, "n_components", 1, min(problem.p, problem.n_samples or problem.p))
    options["cardinality"] = cardinalities(cardinality, r, problem.p)
    options["seed"] = seed_of(rng)
    hook(callback)
    found = _search(problem, method, deflation, options, [], r, callback)
    read, problem = problem.screening(), problem.unscreened()  # frees the shadow
    return _result(problem, found, read, method, deflation, kind, options)


def extend(
    result: SparsePCAResult, X: Any, more: int, *, cardinality: Any, callback: Callback | None
) -> SparsePCAResult:
    """Continue `result`, which came from this X; see `SparsePCAResult.extend`."""
    options = dict(result.options)
    problem = as_problem(
        X,
        kind=result.kind,
        center=options["center"],
        scale=options["scale"],
        n_features=options["n_features"],
        screening=options["screening"],
    )
    hook(callback)
    before, p = result.n_components, len(result.loadings)
    if problem.p != p or problem.n_samples != result.n_samples:
        raise ValueError(
            f"X has {problem.n_samples} samples of {problem.p} variables; this result came from "
            f"{result.n_samples} of {p}"
        )
    more = integer(more, "more", 1, min(p, problem.n_samples or p) - before)
    earlier = options["cardinality"][:before]
    if cardinality is None:
        if len(set(earlier)) != 1:
            raise ValueError(
                "cardinality must be given: the earlier components have different ones, or none is left"
            )
        cardinality = earlier[0]
    options["cardinality"] = earlier + cardinalities(cardinality, more, p)
    known = [
        Found(np.flatnonzero(x), x[x != 0], 0.0, int(result.n_iter[t]), bool(result.converged[t]))
        for t, x in enumerate(np.asarray(result.loadings, problem.operator.dtype).T)
    ]
    found = _search(problem, result.method, result.deflation, options, known, before + more, callback)
    read, problem = problem.screening(), problem.unscreened()
    return _result(problem, found, read, result.method, result.deflation, result.kind, options)


class _Enough(Exception):
    """The callback raised StopIteration; an operator that does so has failed instead."""


def _tell(callback: Callback, progress: Progress) -> None:
    try:
        callback(progress)
    except StopIteration as stop:
        raise _Enough from stop


def _search(
    problem: Problem,
    method: str,
    deflation: str,
    options: dict[str, Any],
    known: list[Found],
    r: int,
    callback: Callback | None,
) -> list[Found]:
    """Components up to the r-th after the known ones."""
    search = check_options(
        problem.p,
        options["start"],
        options["n_starts"],
        options["max_iter"],
        options["tol"],
        options["renormalize"],
    )
    state = Deflated(problem.operator, problem.diagonal)
    found: list[Found] = []
    try:
        for t in range(r):
            if t < len(known):
                new: Found | None = known[t]
            else:
                told = None
                if callback is not None:
                    told = lambda n_iter, t=t: _tell(callback, Progress(t, r, n_iter))  # noqa: E731
                new = solve(
                    problem, state.operator, state.diagonal, options["cardinality"][t], search,
                    [options["seed"], t], told,
                )  # fmt: skip
                if new is not None and not new.objective > problem.noise(new.index, deflation):
                    new = None
            if new is None:
                warnings.warn(
                    f"no variance is left after {t} of the {r} components asked for",
                    RuntimeWarning,
                    stacklevel=3,
                )
                break
            found.append(new)
            if t + 1 < r:
                state = state.without(
                    deflation, new.index, new.value, lambda index: problem.noise(index, deflation)
                )
            if callback is not None and t >= len(known):
                _tell(callback, Progress(t, r, new.n_iter, float(problem.in_units(new.objective))))
    except _Enough:
        pass
    if not all(f.converged for f in found):
        some = [t for t, f in enumerate(found) if not f.converged]
        warnings.warn(
            f"component{'s' * (len(some) > 1)} {', '.join(map(str, some))} not converged in "
            f"{search.max_iter} iterations", RuntimeWarning, stacklevel=3,
        )  # fmt: skip
    return found


def _result(
    problem: Problem,
    found: list[Found],
    screening: Screening,
    method: str,
    deflation: str,
    kind: str,
    options: dict[str, Any],
) -> SparsePCAResult:
    V = np.zeros((problem.p, len(found)), problem.operator.dtype)
    for t, f in enumerate(found):
        V[f.index, t] = f.value
    variances = operator_variances(problem, V, "cumulative")
    ratio = None
    if problem.diagonal is not None:
        total = float(problem.diagonal.sum())
        ratio = variances / total if total > 0 else variances
    in_units = np.asarray(problem.in_units(variances))
    if not np.isfinite(in_units).all():
        warnings.warn(OUT_OF_RANGE, RuntimeWarning, stacklevel=3)
    return SparsePCAResult(
        loadings=V,
        explained_variance=in_units,
        explained_variance_ratio=ratio,
        total_variance=problem.total_variance,
        cardinality=np.array([np.count_nonzero(v) for v in V.T], np.intp),
        mean=problem.mean,
        scale=problem.scale,
        n_iter=np.array([f.n_iter for f in found], np.intp),
        converged=np.array([f.converged for f in found], np.bool_),
        method=method,
        deflation=deflation,
        kind=kind,
        n_samples=problem.n_samples,
        names=problem.names,
        screening=screening,
        options=options,
    )
