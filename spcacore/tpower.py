"""Truncated power iteration: one sparse component of given cardinality."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _core
from ._input import LARGEST, choice, flag, hook, integer, number, real_array, seed_of
from ._operator import OUT_OF_RANGE, Problem, as_problem
from ._result import Callback, Progress, SparseComponent

# A submatrix is formed and decomposed in one go, which Ctrl-C has to wait for: a tenth of a second
_SUBMATRIX_ENTRIES = 1 << 24  # of the columns gathered
_SUBMATRIX_WORK = 4e9  # multiplications of their product
_SUBMATRIX_ORDER = 1024
_SMALL_PROBLEM = 1 << 23  # multiplications of one product; beyond, a Krylov basis would take much memory
_START_BUDGET = 1e8  # multiplications that coordinate starts may cost by default, at 20 iterations each


@dataclass(frozen=True)
class Options:
    """How one component is searched for; arrays only in `start`."""

    start: Any
    n_starts: int | None
    max_iter: int
    tol: float | None
    renormalize: bool


@dataclass(frozen=True)
class Found:
    """One component in the units of the operator."""

    index: NDArray[np.intp]
    value: NDArray[Any]
    objective: float
    n_iter: int
    converged: bool


def tpower(
    X: Any,
    cardinality: int,
    *,
    start: Any = None,
    n_starts: int | None = None,
    max_iter: int = 1000,
    tol: float | None = None,
    renormalize: bool = True,
    kind: str = "data",
    center: bool = True,
    scale: bool = False,
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
        indefinite (the iteration then works on a shifted matrix), or a callable `v -> A v`.
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
    kind : {"data", "covariance"}, default "data"
    center : bool, default True
        Subtract the column means, implicitly. Ignored for a covariance.
    scale : bool, default False
        Divide each column by its standard deviation, implicitly; constant columns by 1. For a
        covariance: use the correlation.
    screening : {"auto", "both", "shadow", "references", "none"}, default "auto"
        How dense data are kept from being read for every product, see `sparse_pca`.
    n_features : int, optional
        p, needed when X is a bare callable.
    rng : None, int or numpy Generator, optional
        For random starts and for probing operators without entries; None is a fixed seed.
    callback : callable, optional
        Called with a `Progress` at most twenty times a second, and once at the end. What it raises
        ends the call.

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
        X, kind=kind, center=center, scale=scale, n_features=n_features, definite=False, screening=screening
    )
    k = integer(cardinality, "cardinality", 1, problem.p)
    options = check_options(problem.p, start, n_starts, max_iter, tol, renormalize)
    seed = seed_of(rng)
    told = None
    if (tell := hook(callback)) is not None:
        told = lambda n_iter: tell(Progress(0, 1, n_iter))  # noqa: E731
    found = solve(problem, problem.operator, problem.diagonal, k, options, [seed, 0], told)
    if found is None or abs(found.objective) <= problem.noise(found.index):
        warnings.warn("X has no variance: the loading is the first unit vector", RuntimeWarning, stacklevel=2)
        one = np.ones(1, problem.operator.dtype)
        found = Found(np.zeros(1, np.intp), one, 0.0, 0, True)
    if not found.converged:
        warnings.warn(f"not converged in {max_iter} iterations", RuntimeWarning, stacklevel=2)
    value = float(problem.in_units(found.objective))
    if not np.isfinite(value):
        warnings.warn(OUT_OF_RANGE, RuntimeWarning, stacklevel=2)
    if callback is not None:
        callback(Progress(0, 1, found.n_iter, value))
    loading = np.zeros(problem.p, problem.operator.dtype)
    loading[found.index] = found.value
    return SparseComponent(
        loading, value, int(np.count_nonzero(loading)), found.n_iter, found.converged, "tpower",
        problem.screening(),
    )  # fmt: skip


def check_options(p: int, start: Any, n_starts: Any, max_iter: Any, tol: Any, renormalize: Any) -> Options:
    """Validate what `tpower` and `sparse_pca` share."""
    if isinstance(start, str):
        choice(start, "start", ("diagonal", "eigenvector"))
    elif start is not None:
        start = real_array(start, "start", ndim=1).astype(np.float64)
        if start.size != p:
            raise ValueError(f"start has {start.size} entries for {p} variables")
        if not start.any():
            raise ValueError("start is the zero vector")
        start = start / np.abs(start).max()
    if n_starts is not None:
        if start is not None:
            raise ValueError("n_starts goes with start=None; a given start is the only one")
        n_starts = integer(n_starts, "n_starts", 1)
    return Options(
        start,
        n_starts,
        integer(max_iter, "max_iter", 0, LARGEST),
        None if tol is None else number(tol, "tol", 0),
        flag(renormalize, "renormalize"),
    )


def solve(
    problem: Problem,
    op: _core.Operator,
    diagonal: NDArray[Any] | None,
    k: int,
    options: Options,
    seed: list[int],
    told: Callable[[int], object] | None,
) -> Found | None:
    """The best run over all starts on the (deflated) operator; None when it maps them all to zero."""
    tol = options.tol
    if tol is None:
        tol = 1e-5 if op.single else 1e-8
    if diagonal is not None:
        diagonal = np.maximum(diagonal, 0)  # an indefinite matrix may have negative entries there
    best = None
    for index, value, path in _starts(problem, op, diagonal, k, options, seed):
        for width in path:
            status, index, value, objective, n_iter = op.truncated_power(
                index, value, width, options.max_iter, tol, told
            )
            if status < 0:
                break
        if status < 0:  # A maps the start to zero
            continue
        new = Found(index, value, objective, n_iter, status == 0)
        if best is None or _better(op, new, best, tol if options.renormalize else 0):
            best = new
    if best is None:
        return None
    if options.renormalize:
        value, objective = leading_vector(op, best.index, best.value)
        best = Found(best.index, value, objective, best.n_iter, best.converged)
    kept = np.flatnonzero(best.value)
    if len(kept) == 0:  # a deflated matrix may be zero, and yet no product with it, by rounding
        return None
    return Found(
        best.index[kept], fix_sign(best.value[kept]), float(best.objective), best.n_iter, best.converged
    )


def _better(op: _core.Operator, new: Found, best: Found, tol: float) -> bool:
    """Whether `new` has the larger objective or, where the two tie, the support that comes first.

    Runs end within `tol` of their limits, so those that close are compared at the limits themselves.
    """
    values = new.objective, best.objective
    if np.array_equal(new.index, best.index):
        return values[0] > values[1]
    if tol > 0 and abs(values[0] - values[1]) <= 100 * tol * abs(values[1]):
        values = leading_vector(op, new.index, new.value)[1], leading_vector(op, best.index, best.value)[1]
    rounding = 1e-12 if op.dtype == np.float64 else 1e-6
    if abs(values[0] - values[1]) > rounding * abs(values[1]):
        return values[0] > values[1]
    return tuple(new.index) < tuple(best.index)


def fix_sign(value: NDArray[Any]) -> NDArray[Any]:
    """The entry of largest magnitude, the first if tied, becomes positive."""
    return -value if value[np.argmax(np.abs(value))] < 0 else value


def leading_vector(
    op: _core.Operator, index: NDArray[np.intp], value: NDArray[Any]
) -> tuple[NDArray[Any], float]:
    """Leading eigenvector of A[index, index], and its eigenvalue; `value` starts the large case."""
    k = len(index)
    if k <= largest_submatrix(op):
        G = op.submatrix(index)
        unused = ~G.any(axis=0)  # rounding must not give these variables a loading
        eigenvalue, vector = _core.leading_eigenvector(G)
        vector[unused] = 0
        return vector, eigenvalue
    from scipy.sparse.linalg import LinearOperator

    restricted = LinearOperator(
        (k, k), dtype=op.dtype,
        matvec=lambda v: op.apply(index, np.ascontiguousarray(v.ravel(), op.dtype))[index],
    )  # fmt: skip
    eigenvalues, vectors = _eigsh(restricted, 1, v0=value)
    return np.ascontiguousarray(vectors[:, 0], op.dtype), float(eigenvalues[0])


def _eigsh(A: Any, count: int, **options: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """The largest eigenvalues and their vectors, the same at each call: SciPy may restart at random."""
    from scipy.sparse.linalg import eigsh

    if "rng" in inspect.signature(eigsh).parameters:
        options["rng"] = np.random.default_rng(0)
    return eigsh(A, count, which="LA", **options)


def largest_submatrix(op: _core.Operator) -> int:
    """The largest order at which A[S, S] is formed rather than applied."""
    if op.covariance:
        return _SUBMATRIX_ORDER
    return min(_SUBMATRIX_ORDER, _SUBMATRIX_ENTRIES // op.m, int((_SUBMATRIX_WORK / op.m) ** 0.5))


# ---- starts -----------------------------------------------------------------------------------------

Start = tuple[NDArray[np.intp], NDArray[Any], tuple[int, ...]]


def _starts(
    problem: Problem,
    op: _core.Operator,
    diagonal: NDArray[Any] | None,
    k: int,
    options: Options,
    seed: list[int],
) -> Iterator[Start]:
    """Nonzeros of each start, and the cardinalities to run through from there."""
    p, dtype = op.p, op.dtype
    rng = np.random.default_rng(seed)
    if isinstance(options.start, np.ndarray):
        index = _core.select_largest(options.start, k)
        yield index, options.start[index].astype(dtype), (k,)
    elif options.start == "diagonal":
        if diagonal is None:
            raise ValueError("start='diagonal' needs the entries of X; an operator offers only products")
        yield np.array([np.argmax(diagonal)]), np.ones(1, dtype), (k,)
    elif options.start == "eigenvector":
        vector, _ = leading_vector(op, np.arange(p), _spread(op, rng))
        yield np.arange(p), vector, tuple(min(c * k, p) for c in (8, 4, 2, 1))
    else:
        if _variances_tie(op, diagonal, min(4 * k, p)):  # then dense vectors say what is promising
            dense = _spread(op, rng)
            yield _leading_start(op, dense, k)
            directions = _leading_directions(op, dense, 8 if problem.cost <= _SMALL_PROBLEM else 1)
            del dense
            yield _leading_start(op, directions[0], k)
            index = _core.select_largest(directions[0], k)
            yield index, directions[0][index], (k,)
            for j in sorted({int(np.argmax(np.abs(direction))) for direction in directions}):
                yield np.array([j]), np.ones(1, dtype), (k,)
            del directions
        else:
            yield _leading_start(op, diagonal, k)
        n_starts = options.n_starts
        if n_starts is None:
            runs = (
                0 if diagonal is None else _START_BUDGET / (20 * problem.cost * (k if op.covariance else 1))
            )
            n_starts = 1 + min(p, int(runs))
        singles = 0
        if diagonal is not None:
            singles = min(n_starts - 1, p)
            chosen = _core.select_largest(diagonal, singles)
            for j in chosen[np.argsort(-diagonal[chosen], kind="stable")]:
                yield np.array([j]), np.ones(1, dtype), (k,)
        for _ in range(n_starts - 1 - singles):
            yield np.arange(p), rng.standard_normal(p).astype(dtype), (k,)


def _variances_tie(op: _core.Operator, diagonal: NDArray[Any] | None, width: int) -> bool:
    """Whether the variances do not say which `width` of the variables are promising."""
    if diagonal is None or width == op.p:
        return diagonal is None
    largest = diagonal.max()
    return bool(np.count_nonzero(diagonal >= (1 - 1e-6) * largest) > width)


def _leading_start(op: _core.Operator, promise: NDArray[Any] | None, k: int) -> Start:
    """Nearly the leading eigenvector of the submatrix of the 4k most promising variables."""
    width = min(op.p, 4 * k, largest_submatrix(op))
    if width < k or promise is None:
        return np.arange(op.p), np.ones(op.p, op.dtype), (k,)
    index = _core.select_largest(promise, width)
    G = op.submatrix(index)
    vector = G[:, np.argmax(G.diagonal())]
    with np.errstate(under="ignore"):
        for _ in range(20):  # a start needs no more; a whole decomposition would cost several products
            vector = G @ (vector / (np.linalg.norm(vector) or 1))
    if not vector.any():
        vector = np.ones(width, op.dtype)
    return index, np.ascontiguousarray(vector), (k,)


def _leading_directions(op: _core.Operator, start: NDArray[Any], count: int) -> NDArray[Any]:
    """As rows, the leading eigenvectors of the whole operator to a few digits; at least one."""
    if op.p < 32:
        return start[None]
    from scipy.sparse.linalg import ArpackError, LinearOperator

    whole = LinearOperator(
        (op.p, op.p), dtype=op.dtype,
        matvec=lambda v: op.apply(None, np.ascontiguousarray(v.ravel(), op.dtype)),
    )  # fmt: skip
    basis = 4 if count == 1 else 2 * count + 4
    try:
        vectors = _eigsh(whole, count, v0=start, tol=1e-2, maxiter=5, ncv=basis)[1]
    except ArpackError:  # not converged, or no variance: the power steps will do
        return start[None]
    return np.ascontiguousarray(vectors.T[::-1], op.dtype)


def _spread(op: _core.Operator, rng: np.random.Generator) -> NDArray[Any]:
    """A dense vector near the leading eigenspace, by eight power steps from a random one."""
    v = rng.standard_normal(op.p).astype(op.dtype)
    for _ in range(8):
        norm = np.linalg.norm(v)
        if norm == 0:
            break
        v = op.apply(None, np.ascontiguousarray(v / norm, op.dtype))
    return v if v.any() else np.ones(op.p, op.dtype)
