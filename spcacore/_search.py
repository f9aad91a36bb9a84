"""What every one-component solver shares: starts, values re-fitted on a support, and how it is called.

A solver is a module with `Options` of its own and a function

    solve(problem, state, sparsity, options, seed, told) -> Found or None

that seeks a component of the deflated operator `state.operator`, and returns None where no variance,
or nothing feasible, is left.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _core
from ._input import LARGEST, Hook, choice, hook, integer, number, real_array
from ._messages import counted
from ._operator import Problem, warn_out_of_range
from ._result import Callback, Progress, SparseComponent
from .deflation import Deflated

# A submatrix is formed and decomposed in one go, which Ctrl-C has to wait for: a tenth of a second
_SUBMATRIX_ENTRIES = 1 << 24  # of the columns gathered
_SUBMATRIX_WORK = 4e9  # multiplications of their product
_SUBMATRIX_ORDER = 1024
_WHOLE = 256  # variables up to which all eigenvectors are computed
_SMALL_PROBLEM = 1 << 23  # multiplications of one product; beyond, a Krylov basis would take much memory
_START_BUDGET = 1e8  # multiplications that coordinate starts may cost by default, at 20 iterations each

PENALTIES = (0.25, 1.0, 4.0, 16.0, 64.0)  # of the variance found


class Ended(Exception):
    """The callback ended the search, and the component under way is not wanted."""


class Told:
    """Reports of component t of r, by numbers of iterations; True where the search is to end.

    Of components found in turn only finished ones are returned: with `whole` it raises `Ended` instead.
    """

    def __init__(self, hook: Hook, t: int, r: int, whole: bool = False):
        self.hook, self.t, self.r, self.whole = hook, t, r, whole

    @property
    def ended(self) -> bool:
        return self.hook.ended

    def __call__(self, n_iter: int, value: float | None = None) -> bool:
        ended = self.hook(Progress(self.t, self.r, n_iter, value))
        if ended and self.whole:
            raise Ended
        return ended


def ended(told: Callable[[int], object] | None) -> bool:
    """Whether the callback has ended the search."""
    return isinstance(told, Told) and told.ended


@dataclass(frozen=True, eq=False, repr=False)
class Found:
    """One component in the units of the operator."""

    index: NDArray[np.intp]
    value: NDArray[Any]
    objective: float
    n_iter: int
    converged: bool
    upper_bound: float | None = None


def fix_sign(value: NDArray[Any]) -> NDArray[Any]:
    """The entry of largest magnitude, the first if tied, becomes positive."""
    return -value if value[np.argmax(np.abs(value))] < 0 else value


Run = Callable[[_core.Operator, NDArray[np.intp], NDArray[Any]], tuple[Any, ...]]


def settled(state: Deflated, x: Found, run: Run, weights: tuple[float, ...] = PENALTIES) -> Found | None:
    """What a run found, with Q'x = 0 where the state asks for that; None where no vector met is feasible.

    Then the run is repeated with a growing penalty on what of x lies in the span of Q, while its support
    settles, and the best of the supports on the way is kept. `run(operator, index, value)` returns status,
    index, value, objective, n_iter.
    """
    if not state.constrained:
        return x
    if not x.objective > 0:  # rounding is all that is left
        return None
    best, total, index, value = refit(state, x), x.n_iter, x.index, x.value
    for weight in weights:
        penalized = state.operator.with_penalty(weight * x.objective)
        status, index, value, _, n_iter = run(penalized, index, value)
        total += n_iter
        if status < 0:
            break
        new = refit(state, replace(x, index=index, value=value, converged=status == 0))
        if new.objective > best.objective:
            best = new
    return None if best.objective == -np.inf else replace(best, n_iter=total)


def default_tol(op: _core.Operator, tol: float | None) -> float:
    """The tolerance of an iteration, by precision where it is not given."""
    return tol if tol is not None else 1e-5 if op.single else 1e-8


def better(state: Deflated, new: Found, best: Found, tol: float, nonnegative: bool = False) -> bool:
    """Whether `new` has the larger objective or, where the two tie, the support that comes first.

    Runs end within `tol` of their limits, so those that close are compared at the limits themselves.
    """
    values = new.objective, best.objective
    if np.array_equal(new.index, best.index):
        return values[0] > values[1]
    if tol > 0 and abs(values[0] - values[1]) <= 100 * tol * abs(values[1]):
        values = refit(state, new, nonnegative).objective, refit(state, best, nonnegative).objective
    rounding = 1e-12 if state.operator.dtype == np.float64 else 1e-6
    if abs(values[0] - values[1]) > rounding * abs(values[1]):
        return values[0] > values[1]
    return tuple(new.index) < tuple(best.index)


# ---- values on a support ----------------------------------------------------------------------------


def refit(state: Deflated, x: Found, nonnegative: bool = False) -> Found:
    """The best values on the support of x (variational renormalization, Moghaddam et al. 2006).

    They maximize x'Ax over unit vectors, subject to Q'x = 0 where the state is constrained, or x'Ax/x'Bx
    under generalized deflation. The objective is -inf where no vector of this support is feasible.
    """
    if nonnegative:
        value, objective = _nonnegative_vector(state, x)
    else:
        value, objective = leading_vector(state.operator, x.index, x.value, _span_on(state, x.index))
    return replace(x, value=value, objective=objective)


Span = tuple[NDArray[np.float64], NDArray[np.float64]]


def _span_on(state: Deflated, index: NDArray[np.intp]) -> Span | None:
    """Y and s, with W = I + Y diag(s) Y' such that x = W z are the feasible vectors on a support.

    Let Q_S = Y diag(h)^(1/2) E' be the rows of Q there. Under a constraint W = I - YY'. Under generalized
    deflation W = B_S^(-1/2), B_S = I - Y diag(h) Y', but for what lies in the span of Q, to rounding.
    """
    if not (state.quotient or state.constrained):
        return None
    Q = np.stack([q[index] for q in state.basis], axis=1)
    Y, root, _ = np.linalg.svd(Q, full_matrices=False)
    if state.constrained:
        Y = Y[:, root > 1e-11]
        return Y, np.full(Y.shape[1], -1.0)
    outside = 1 - root**2
    kept = outside > (1e-8 if state.operator.dtype == np.float64 else 1e-3)
    with np.errstate(invalid="ignore", divide="ignore"):
        return Y, np.where(kept, 1 / np.sqrt(outside), 0) - 1


def leading_vector(
    op: _core.Operator, index: NDArray[np.intp], value: NDArray[Any], span: Span | None = None
) -> tuple[NDArray[Any], float]:
    """Leading eigenvector of A[index, index], and its eigenvalue; `value` starts the large case.

    With a span, the unit vector W z for the leading eigenvector z of W A[index, index] W.
    """
    k = len(index)
    if k <= largest_submatrix(op):
        G = op.submatrix(index)
        unused = np.asarray(~G.any(axis=0))  # rounding must not give these variables a loading
        if span is not None:
            G = _within(span, _within(span, G).T).astype(op.dtype)
        eigenvalue, vector = _core.leading_eigenvector(np.ascontiguousarray(G))
        if span is not None:
            return _feasible(span, vector, unused, eigenvalue)
        vector[unused] = 0
        return vector, eigenvalue
    from scipy.sparse.linalg import LinearOperator

    def product(z: NDArray[Any]) -> NDArray[Any]:
        x = z.ravel() if span is None else _within(span, z.ravel())
        y = op.apply(index, np.ascontiguousarray(x, op.dtype))[index]
        return y if span is None else _within(span, y)

    restricted = LinearOperator((k, k), dtype=op.dtype, matvec=product)
    eigenvalues, vectors = _eigsh(restricted, 1, v0=value)
    if span is not None:
        return _feasible(span, vectors[:, 0], np.zeros(k, bool), float(eigenvalues[0]))
    return np.ascontiguousarray(vectors[:, 0], op.dtype), float(eigenvalues[0])


def _within(span: Span, z: NDArray[Any]) -> NDArray[np.float64]:
    """W z."""
    Y, s = span
    return z + Y @ ((s if z.ndim == 1 else s[:, None]) * (Y.T @ z))


def _feasible(
    span: Span, z: NDArray[Any], unused: NDArray[np.bool_], objective: float
) -> tuple[NDArray[Any], float]:
    """W z over its norm; the eigenvectors that W maps to zero are not feasible."""
    x = _within(span, z.astype(np.float64))
    norm = float(np.linalg.norm(x))
    if norm < 1e-6:
        return np.zeros_like(z), -np.inf
    x /= norm
    if not (span[1] == -1).all():
        x[unused] = 0
        if not x.any():
            return np.zeros_like(z), -np.inf
        x /= np.linalg.norm(x)
    elif unused.any() or z.dtype == np.float32:  # once more, since rounding counts here
        x = _within(span, x)
    return x.astype(z.dtype), objective


def _nonnegative_vector(state: Deflated, x: Found) -> tuple[NDArray[Any], float]:
    """A maximizer of x'Ax over x >= 0 on the support: x <- (A x)_+/||.||, which ascends, to its limit."""
    op, k = state.operator, len(x.index)
    if k > largest_submatrix(op) or state.quotient:
        return x.value, x.objective
    G = op.submatrix(x.index).astype(np.float64)
    eigenvalues, vectors = np.linalg.eigh(G)
    vector = fix_sign(vectors[:, -1])
    if vector.min() < -1e-12:
        shift, objective = max(0.0, -eigenvalues[0]), -np.inf
        vector = x.value.astype(np.float64)
        for _ in range(100 * k + 1000):
            y = G @ vector
            previous, objective = objective, float(vector @ y)
            y = np.maximum(y + shift * vector, 0)
            if not objective - previous > 1e-15 * abs(objective) or not y.any():
                break
            vector = y / np.linalg.norm(y)
    vector = np.maximum(vector, 0)
    vector /= np.linalg.norm(vector)
    return vector.astype(op.dtype), float(vector @ (G @ vector))


def leading_vectors(problem: Problem, r: int) -> NDArray[np.float64]:
    """The r leading eigenvectors of the operator; fewer, with a warning, where its rank is smaller."""
    if problem.diagonal is not None and not problem.diagonal.any():
        raise ValueError("X has no variance")
    values, vectors = _eigenvectors(problem.operator, r)
    rank = int(np.count_nonzero(values > negligible(problem, values[0])))
    if rank == 0:
        raise ValueError("X has no variance")
    if rank < r:
        warnings.warn(
            f"X has only {rank} of the {counted(r, 'component')} asked for", RuntimeWarning, stacklevel=3
        )
    return np.asfortranarray(vectors[:, :rank])


def negligible(problem: Problem, first: float = 0.0) -> float:
    """A variance that may be rounding alone, given the largest one where the total is not known."""
    total = first if problem.diagonal is None else float(problem.diagonal.sum())
    return 1e3 * float(np.finfo(problem.operator.dtype).eps) * total


def _eigenvectors(op: _core.Operator, r: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The r largest eigenvalues, descending, and their vectors: by LAPACK, or by ARPACK from products."""
    if op.p <= _WHOLE or r >= op.p - 1:
        values, vectors = np.linalg.eigh(op.submatrix(np.arange(op.p)).astype(np.float64))
        return values[::-1][:r], vectors[:, ::-1][:, :r]
    start = np.random.default_rng(0).standard_normal(op.p).astype(op.dtype)
    values, vectors = _eigsh(products_of(op), r, v0=start, tol=1e-8 if op.dtype == np.float64 else 1e-4)
    return values[::-1].astype(np.float64), vectors[:, ::-1].astype(np.float64)


def products_of(op: Any) -> Any:
    """The operator as a `LinearOperator` of SciPy."""
    from scipy.sparse.linalg import LinearOperator

    return LinearOperator(
        (op.p, op.p), dtype=op.dtype,
        matvec=lambda v: op.apply(None, np.ascontiguousarray(v.ravel(), op.dtype)),
    )  # fmt: skip


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


# ---- options and calls ------------------------------------------------------------------------------


def check_start(p: int, start: Any, n_starts: Any) -> tuple[Any, int | None]:
    """Validate where a search starts."""
    if isinstance(start, str):
        choice(start, "start", ("diagonal", "eigenvector"))
    elif start is not None:
        start = real_array(start, "start", ndim=1).astype(np.float64)
        if start.size != p:
            raise ValueError(f"start has {counted(start.size, 'entry')} for {counted(p, 'variable')}")
        if not start.any():
            raise ValueError("start is the zero vector")
        start = start / np.abs(start).max()
    if n_starts is not None:
        if start is not None:
            raise ValueError("n_starts goes with start=None; a given start is the only one")
        n_starts = integer(n_starts, "n_starts", 1)
    return start, n_starts


def check_iterations(max_iter: Any, tol: Any) -> tuple[int, float | None]:
    """Validate when an iteration ends."""
    return integer(max_iter, "max_iter", 0, LARGEST), None if tol is None else number(tol, "tol", 0)


def telling(tell: Hook | None, t: int, r: int, whole: bool = False) -> Told | None:
    """`Told`, where there is a callback."""
    return None if tell is None else Told(tell, t, r, whole)


def told_of(callback: Callback | None) -> Told | None:
    """Progress of a single component."""
    return telling(hook(callback), 0, 1)


def single(
    problem: Problem, found: Found | None, method: str, told: Told | None, max_iter: int | None
) -> SparseComponent:
    """The result of a one-component function, with its warnings."""
    if found is None or abs(found.objective) <= problem.noise(found.index):
        warnings.warn("X has no variance: the loading is the first unit vector", RuntimeWarning, stacklevel=3)
        one = np.ones(1, problem.operator.dtype)
        found = Found(np.zeros(1, np.intp), one, 0.0, 0, True)
    if ended(told):
        found, max_iter = replace(found, converged=False), found.n_iter
    if not found.converged:
        warnings.warn(f"not converged in {counted(max_iter or 0, 'iteration')}", RuntimeWarning, stacklevel=3)
    value = float(problem.in_units(found.objective))
    warn_out_of_range(found.objective, value, stacklevel=3)
    if told is not None:
        told(found.n_iter, value)
    loading = np.zeros(problem.p, problem.operator.dtype)
    loading[found.index] = found.value
    return SparseComponent(
        loading, value, int(np.count_nonzero(loading)), found.n_iter, found.converged, method,
        problem.screening(), names=problem.names,
    )  # fmt: skip


def finished(found: Found | None) -> Found | None:
    """Without entries that are zero, and with its sign; None if nothing is left."""
    if found is None or not found.objective > -np.inf:
        return None
    kept = np.flatnonzero(found.value)
    if len(kept) == 0:  # a deflated matrix may be zero, and yet no product with it, by rounding
        return None
    return replace(
        found, index=found.index[kept], value=fix_sign(found.value[kept]), objective=float(found.objective)
    )


# ---- starts -----------------------------------------------------------------------------------------

Start = tuple[NDArray[np.intp], NDArray[Any], tuple[int, ...]]


@dataclass(frozen=True, eq=False, repr=False)
class Warm:
    """A start besides the default ones: the component of a problem nearby."""

    index: NDArray[np.intp]
    value: NDArray[Any]


def starts(
    problem: Problem, state: Deflated, k: int, start: Any, n_starts: int | None, seed: list[int]
) -> Iterator[Start]:
    """Nonzeros of each start, and the cardinalities to run through from there."""
    op, diagonal = state.operator, _promise(state)
    p, dtype = op.p, op.dtype
    rng = np.random.default_rng(seed)
    if isinstance(start, Warm):
        yield start.index, start.value, (k,)
        start = None
    if isinstance(start, np.ndarray):
        index = _core.select_largest(start, k)
        yield index, start[index].astype(dtype), (k,)
    elif start == "diagonal":
        if diagonal is None:
            raise ValueError("start='diagonal' needs the entries of X; an operator offers only products")
        yield np.array([np.argmax(diagonal)]), np.ones(1, dtype), (k,)
    elif start == "eigenvector":
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
        if n_starts is None:
            runs = (
                0
                if diagonal is None
                else _START_BUDGET / (20 * problem.cost * (k if problem.n_samples is None else 1))
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


def _promise(state: Deflated) -> NDArray[Any] | None:
    """What each variable explains by itself."""
    if state.diagonal is None:
        return None
    promise = np.maximum(state.diagonal, 0)  # an indefinite matrix may have negative entries there
    if state.quotient:
        outside = 1 - sum(q**2 for q in state.basis)
        kept = outside > 1e-3
        promise = np.where(kept, promise / np.where(kept, outside, 1), 0)
    return promise


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
    from scipy.sparse.linalg import ArpackError

    basis = 4 if count == 1 else 2 * count + 4
    try:
        vectors = _eigsh(products_of(op), count, v0=start, tol=1e-2, maxiter=5, ncv=basis)[1]
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
