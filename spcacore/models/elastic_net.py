"""Sparse principal components by elastic nets (Zou, Hastie and Tibshirani 2006).

Alternates elastic nets for B, given V, with V = the polar factor of X'X B, given B.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _core
from .._limits import JOINING_VARIABLES, LARGEST_RIDGE, SAMPLE_ORDER, WORKING_SET_VARIABLES
from .._messages import convergence, counted, warn
from .._records import record
from .._types import Counted, Groups, Kind, OperatorLike, Switch, Variables, Weights
from .._validation import LARGEST, check_callback, integer, number, per_component, real_array
from ..linalg.orthogonal import fix_sign, procrustes, unit_columns
from ..operators.choice import Choice, knowledge
from ..operators.inputs import as_problem
from ..operators.leading import cheap_dense_shares, leading_vectors
from ..operators.problem import Problem, warn_out_of_range
from ..operators.transform import fitted_scores
from ..progress import Callback, Progress
from ..results import LoadingsResult
from ..solvers.parameters import shared_parameters
from .shaped_net import ShapedNet
from .variance import operator_variances

__all__ = ["SPCAResult", "Space", "spca"]
__dir__ = __all__.copy


@dataclass(frozen=True, eq=False, repr=False)
class SPCAResult(LoadingsResult):
    """Sparse principal components by elastic nets, from `spca`.

    Attributes
    ----------
    loadings : ndarray of shape (p, r)
        Listing of unit length, or zero. In each column the entry of largest magnitude is positive.
    explained_variance, explained_variance_ratio : ndarray of shape (r,)
        As in `SparsePCAResult`.
    adjusted_variance : ndarray of shape (r,)
        Variance that each score adds to the earlier scores (`explained_variance`, definition "adjusted").
    total_variance : float or None
    cardinality : ndarray of shape (r,), int
    penalty : ndarray of shape (r,)
        The penalty on the l1 norm of each loading: as given, or as found for a given `cardinality`.
    ridge : float
    objective : ndarray of shape (n_iter,)
        After each iteration; without the constant `Tr X'X` if that is unknown. With ``ridge=inf`` in the
        squared units of X'X.
    mean, scale : ndarray of shape (p,) or None
    n_iter : int
    converged : bool
    method, kind : str
    n_samples : int or None
    missing_entries : int
        How many entries of X were NaN.
    names : tuple of str or None
    dense_ratio : ndarray of shape (r,) or None
    scores : ndarray of shape (n, r) or None
        As in `SparsePCAResult`.

    Examples
    --------
    >>> import spcacore
    >>> X, planted = spcacore.datasets.make_spiked(100, 50, cardinality=5, rng=0)
    >>> result = spcacore.spca(X, 2, cardinality=5)
    >>> result.cardinality.tolist(), result.explained_variance_ratio.round(2).tolist()
    ([5, 5], [0.53, 0.41])
    """

    loadings: NDArray[Any]
    explained_variance: NDArray[Any]
    explained_variance_ratio: NDArray[Any] | None
    adjusted_variance: NDArray[Any]
    total_variance: float | None
    cardinality: NDArray[np.intp]
    penalty: NDArray[np.float64]
    ridge: float
    objective: NDArray[np.float64]
    mean: NDArray[Any] | None
    scale: NDArray[Any] | None
    n_iter: int
    converged: bool
    method: str
    kind: str
    n_samples: int | None
    names: tuple[str, ...] | None
    dense_ratio: NDArray[Any] | None = None
    scores: NDArray[Any] | None = None
    missing_entries: int = 0

    def _facts(self) -> list[str]:
        return [*self._sizes(), *self._share(), convergence(self.converged, self.n_iter)]


@shared_parameters
def spca(
    X: OperatorLike, n_components: int, cardinality: int | ArrayLike | None = None, *,
    penalty: float | ArrayLike | None = None,
    ridge: float | None = None,
    start: str | ArrayLike | None = None, max_iter: int = 1000, tol: float | None = None,
    include: Variables = None, exclude: Variables = None, groups: Groups = None, nonnegative: Switch = False,
    count: Counted = "groups", kind: Kind = "data", center: Switch = True, scale: Switch = False,
    sample_weight: Weights = None, callback: Callback | None = None,
) -> SPCAResult:  # fmt: skip
    """Sparse principal components by elastic nets, all at once.

    Minimizes over B (p, r) and V (p, r) with `V'V = I`, for the centered rows `x_i` of X,

        sum_i ||x_i - V B'x_i||^2 + ridge sum_j ||b_j||^2 + sum_j penalty_j ||b_j||_1

    by alternation. For fixed V, B solves r elastic nets, exactly, by the path of their penalty. For fixed B,
    V is the polar factor of `X'X B`. The loadings are the columns of B at unit length. The search begins with
    the leading principal components.

    Parameters
    ----------
    X : array-like of shape (n, p), sparse matrix, LinearOperator
        Data; with ``kind="covariance"`` a symmetric positive semidefinite (p, p) matrix (covariance,
        correlation, Gram) that takes the place of X'X. Not copied, except dense data with NaN entries,
        which are left out of all sums, as in `pmd`.
    n_components : int
        r, in [1, min(n, p)].
    cardinality : int or sequence of r ints
        Nonzeros of each loading, in [1, p]. Each iteration takes the smallest penalty before one more
        variable would join. With an infinite ridge it keeps the k largest products as they are, which
        is the best `b_j` with k nonzeros.
    penalty : float or sequence of r floats
        Instead of `cardinality`: the penalty on the l1 norms, at least 0, in the units of X'X.
    ridge : float, optional
        At least 0, in the units of X'X. Default: ``numpy.inf`` for data of fewer samples than columns, where
        weights count samples, else 1e-6 of the mean of the diagonal of X'X. With an infinite ridge the
        elastic nets are soft thresholds of `X'X v_j`, and
        `-2 Tr(V'X'XB) + sum_j ||b_j||^2 + sum_j penalty_j ||b_j||_1` is minimized. The authors advise this
        for p >> n, where a small ridge fits the few rows instead of the directions.
    start : array-like of shape (p, r), optional
        Where V starts, instead of the leading principal components.
    max_iter : int, default 1000
    tol : float, optional
        Stop when no entry of a unit loading changes by more than this. Default: 1e-5; for float32, and for
        `cardinality` with a finite ridge, 1e-3, as in the authors' program.
    include, exclude, groups, nonnegative, count : optional
        As in `sparse_pca`. The penalty then applies to the norms of groups, but not to included variables,
        and `cardinality` counts groups, or variables. A group for which there is no room is passed over.
    {matrix}
    {each_iteration}

    Returns
    -------
    SPCAResult
        `loadings` (p, r), `adjusted_variance` as in the paper, `explained_variance` as everywhere,
        `penalty` (r,), `objective` after each iteration.

    Raises
    ------
    ValueError
        For infinite or empty input, NaN except in dense data, X without variance, an indefinite covariance,
        neither or both of `penalty` and `cardinality`, or an option out of range.
    TypeError
        For input that is not real numbers, or an option of the wrong type.

    Warns
    -----
    RuntimeWarning
        If the rank of X is below r, which gives fewer components, or if a penalty leaves a loading without
        nonzeros.

    Notes
    -----
    The objective never rises, except with `cardinality` and a finite ridge. There the penalties change from
    one iteration to the next, and loadings may drift or alternate between supports instead of converging.
    Memory grows with the square of the number of variables in use.

    References
    ----------
    H. Zou, T. Hastie and R. Tibshirani (2006). Sparse principal component analysis. Journal of
    Computational and Graphical Statistics 15, 265-286: equation 3.12, algorithm 1, and section 4 for
    ``ridge=numpy.inf``.

    Examples
    --------
    >>> import spcacore
    >>> props = spcacore.datasets.load_pitprops()
    >>> penalty = [0.06, 0.16, 0.1, 0.5, 0.5, 0.5]
    >>> result = spcacore.spca(props.correlation, 6, penalty=penalty, kind="covariance")
    >>> result.cardinality.tolist(), (100 * result.adjusted_variance / 13).round(1).tolist()
    ([7, 4, 4, 1, 1, 1], [28.0, 14.0, 13.3, 7.4, 6.8, 6.2])
    """
    choice = knowledge(include, exclude, groups, nonnegative, count)
    if count != "groups" and penalty is not None:
        raise ValueError(f"count={count!r} says what a cardinality counts; leave it out with a penalty")
    problem = as_problem(
        X, kind=kind, center=center, scale=scale, sample_weight=sample_weight, missing=True, choice=choice
    )
    op = problem.operator
    r = integer(n_components, "n_components", 1, min(problem.p, problem.n_samples or problem.p))
    wanted = _wanted(problem, r, penalty, cardinality)
    lam = _ridge(problem, ridge)
    max_iter = integer(max_iter, "max_iter", 1, LARGEST)
    if tol is None:
        tol = 1e-3 if op.single or (cardinality is not None and lam < math.inf) else 1e-5
    tol = number(tol, "tol", 0)
    hook = check_callback(callback)
    V = leading_vectors(problem, r) if start is None else _start(problem, r, start)

    space = (_SampleSpace if _few_samples(problem) else _VariableSpace)(op)
    shaping = problem.choice if problem.choice is not None and problem.choice.shapes else None
    if shaping is not None:
        V = V * np.where([shaping.sides(c) for c in op.apply_block(V).T.astype(np.float64)], 1, -1)
    thresholds = lam == math.inf
    nets = _Thresholds(wanted, shaping) if thresholds else _ElasticNets(op, space, wanted, lam, shaping)
    trace = 0.0 if lam == math.inf or problem.diagonal is None else float(problem.diagonal.sum())
    objective: list[float] = []
    C, unit_B = space.begin(V), np.zeros_like(V)
    for n_iter in range(1, max_iter + 1):
        B, levels = nets.solve(C)
        f = space.forward(B)
        C, nuclear = space.turn(f)
        square = float(np.sum(B * B))
        quadratic = square if lam == math.inf else space.quadratic(B, f) + lam * square
        with np.errstate(under="ignore"):
            size = np.abs(B).sum(axis=0) if shaping is None else np.array([shaping.cost(b) for b in B.T])
            objective.append(trace - 2 * nuclear + quadratic + 2 * float(levels @ size))
        before, unit_B = unit_B, unit_columns(B)
        converged = bool(np.abs(unit_B - before).max() <= tol)
        if (hook is not None and hook(Progress(0, r, n_iter))) or converged:
            break
    if lam == math.inf:  # B has the units of X'X, and not those of loadings
        objective = _from_operator_units(problem, objective)
    result = _result(problem, unit_B, levels, lam, objective, converged, kind, ridge)
    return replace(result, scores=fitted_scores(X, problem, result.loadings))


# ---- the two half-steps -----------------------------------------------------------------------------


class _VariableSpace:
    """V itself, and the products G V."""

    def __init__(self, op: _core.Operator):
        self.op = op

    def begin(self, V: NDArray[np.float64]) -> NDArray[np.float64]:
        """G V."""
        self.V = V
        return self.op.apply_block(V).astype(np.float64)

    def forward(self, B: NDArray[np.float64]) -> NDArray[np.float64]:
        """G B, from which the other methods compute."""
        return self.op.apply_block(B).astype(np.float64)

    def products(self, f: NDArray[np.float64]) -> NDArray[np.float64]:
        """G B."""
        return f

    def quadratic(self, B: NDArray[np.float64], f: NDArray[np.float64]) -> float:
        """Tr B'G B."""
        return float(np.sum(B * f))

    def turn(self, f: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
        """G V for the V that maximizes Tr V'G B, and that maximum."""
        self.V, nuclear = procrustes(f, self.V)
        return self.op.apply_block(self.V).astype(np.float64), nuclear


class _SampleSpace:
    """The same for n < p, where V = F'T, by Y = H T, H = (FF')^(1/2): Y'Y = V'V, and F V = H Y.

    Products with the sparse columns of B read few columns of X; only F'H Y reads all of it.
    """

    def __init__(self, op: _core.Operator):
        self.op = op
        self.unit = math.sqrt(max(op.n - 1, 1))  # of F over that for which G = F'F
        values, vectors = np.linalg.eigh(op.outer().astype(np.float64))
        root = np.sqrt(np.maximum(values, 0))
        self.H = (vectors * root) @ vectors.T
        kept = root > 1e-6 * root[-1]
        self.inverse = (vectors[:, kept] / root[kept]) @ vectors[:, kept].T

    def begin(self, V: NDArray[np.float64]) -> NDArray[np.float64]:
        self.Y = procrustes(self.inverse @ self.forward(V), np.eye(*self.H.shape)[:, : V.shape[1]])[0]
        return self.op.apply_block(V).astype(np.float64)

    def forward(self, B: NDArray[np.float64]) -> NDArray[np.float64]:
        """F B."""
        f = np.zeros((self.op.m, B.shape[1]))
        for j, b in enumerate(B.T):
            index = np.flatnonzero(b)
            if len(index):
                f[:, j] = self.op.forward(index, b[index].astype(self.op.dtype)) / self.unit
        return f

    def products(self, f: NDArray[np.float64]) -> NDArray[np.float64]:
        """F'f."""
        return self.op.backward_block(f).astype(np.float64, copy=False) * self.unit

    def quadratic(self, B: NDArray[np.float64], f: NDArray[np.float64]) -> float:
        return float(np.sum(f * f))

    def turn(self, f: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
        self.Y, nuclear = procrustes(self.H @ f, self.Y)
        return self.products(self.H @ self.Y), nuclear


def _few_samples(problem: Problem) -> bool:
    """Whether a dense matrix has so few rows that FF' pays."""
    return (
        problem.n_samples is not None
        and problem.n_samples < min(problem.p, SAMPLE_ORDER)
        and problem.operator.dense
    )


Space = _VariableSpace | _SampleSpace


@record
class _Wanted:
    """How sparse a loading is to be: at most `limit` nonzeros, and half its penalty at least `floor`."""

    limit: int
    floor: float


class _Thresholds:
    """The nets for an infinite ridge, from the products C = G V: soft thresholds, or the largest entries."""

    def __init__(self, wanted: tuple[_Wanted, ...], choice: Choice | None):
        self.wanted, self.choice = wanted, choice

    def solve(self, C: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """B, and half of the penalties."""
        levels = np.array([w.floor for w in self.wanted[: C.shape[1]]])
        if self.choice is not None:
            B = np.stack([self._chosen(self.choice, c, w) for c, w in zip(C.T, self.wanted, strict=False)], 1)
            return B, levels
        B = np.sign(C) * np.maximum(np.abs(C) - levels, 0)
        for j, c in enumerate(C.T):
            if self.wanted[j].limit < len(c):
                kept = _core.select_largest(np.ascontiguousarray(c), self.wanted[j].limit)
                B[:, j] = 0
                B[kept, j] = c[kept]
        return B, levels

    def _chosen(self, choice: Choice, c: NDArray[np.float64], wanted: _Wanted) -> NDArray[np.float64]:
        """The largest units, or norms of units diminished, of those entries that have the signs."""
        c = choice.projected(c)
        norms = choice.norms(c)
        if wanted.limit < len(c):
            kept = choice.variables(choice.largest(norms, wanted.limit))
            return np.where(np.isin(np.arange(len(c)), kept), c, 0)
        over = np.where(choice.included, norms, np.maximum(norms - wanted.floor, 0))
        return c * (over / np.where(norms > 0, norms, 1))[choice.unit]


class _ElasticNets:
    """The nets for a finite ridge, on a working set of variables.

    Their path needs the Gram matrix of the set. One pass over X then finds variables outside of the set that
    violate the optimality conditions, and these join it. Sets and supports are kept between iterations.
    """

    def __init__(
        self, op: _core.Operator, space: Space, wanted: tuple[_Wanted, ...], ridge: float,
        choice: Choice | None = None,
    ):  # fmt: skip
        self.op, self.space, self.wanted, self.ridge, self.choice = op, space, wanted, ridge, choice
        self.levels = np.zeros(len(wanted))
        self.shaped: ShapedNet | None = None
        self.eps = float(np.finfo(op.dtype).eps)
        self.working = np.zeros(0, np.intp)
        self.B: NDArray[np.float64] | None = None

    def solve(self, C: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """B, and half of the penalties."""
        if self.B is None:
            self.B = np.zeros_like(C)
            self._enlarge(self._excess(C, 0.0))
        noise = 64 * self.eps * np.abs(C).max(axis=0)
        while True:
            B, levels = np.zeros_like(C), np.zeros(C.shape[1])
            for j, wanted in enumerate(self.wanted[: C.shape[1]]):
                B[self.working, j], levels[j] = self._net(
                    C[self.working, j], wanted, self.B[self.working, j], self.levels[j]
                )
            self.B, self.levels[: len(levels)] = B, levels
            if len(self.working) == self.op.p:
                return B, levels
            rest = C - self.space.products(self.space.forward(B))
            violation = self._excess(rest, levels * (1 + 1e-9)) - noise
            violation[self.working] = 0
            if not (violation > 0).any():
                return B, levels
            self._enlarge(violation)

    def _excess(self, C: NDArray[np.float64], levels: Any) -> NDArray[np.float64]:
        """By how much products exceed the levels: their magnitudes, or the norms of their units."""
        choice = self.choice
        if choice is None:
            return np.abs(C) - levels
        norms = np.stack([choice.norms(choice.projected(c)) for c in C.T], axis=1)
        return (norms - np.where(choice.included[:, None], 0, levels))[choice.unit]

    def _net(
        self, c: NDArray[np.float64], wanted: _Wanted, last: NDArray[np.float64], near: float
    ) -> tuple[NDArray[np.float64], float]:
        if self.shaped is not None:
            if wanted.limit == self.op.p:
                return self.shaped.solve(c, wanted.floor, last), wanted.floor
            return self.shaped.sparse(c, wanted.limit, last, near)
        guess = np.flatnonzero(last)
        limit = min(wanted.limit, len(c))
        status, index, value, level = _core.elastic_net(
            self.G,
            np.ascontiguousarray(c),
            limit,
            self.ridge,
            wanted.floor,
            64 * self.eps,
            guess,
            last[guess],
        )
        if status > 0:
            warn("the path of an elastic net did not finish")
        b = np.zeros_like(c)
        b[index] = value
        return b, level

    def _enlarge(self, violation: NDArray[np.float64]) -> None:
        """Add the variables of largest violation: all if p is small, else some of each component."""
        first = len(self.working) == 0
        joining = [self.working]
        for wanted, size in zip(self.wanted, np.maximum(violation, 0).T, strict=False):
            most = (
                max(JOINING_VARIABLES, 2 * wanted.limit) if first and wanted.floor == 0 else JOINING_VARIABLES
            )
            best = _core.select_largest(np.ascontiguousarray(size), min(most, len(size)))
            joining.append(best[(size[best] > 0) | first])
        self.working = (
            np.unique(np.concatenate(joining)) if self.op.p > WORKING_SET_VARIABLES else np.arange(self.op.p)
        )
        if self.choice is not None:
            included = np.flatnonzero(self.choice.included)
            self.working = self.choice.variables(np.union1d(self.choice.units(self.working), included))
        self.G = np.ascontiguousarray(self.op.submatrix(self.working), np.float64)
        if self.choice is not None:
            K = self.G + self.ridge * np.eye(len(self.G))
            self.shaped = ShapedNet(K, self.choice, self.working)


# ---- what comes in and goes out ---------------------------------------------------------------------


def _wanted(problem: Problem, r: int, penalty: Any, cardinality: Any) -> tuple[_Wanted, ...]:
    if (penalty is None) == (cardinality is None):
        raise ValueError("give either penalty or cardinality")
    p = problem.p
    if cardinality is not None:
        choice = problem.choice
        least, most, why = (1, p, "") if choice is None else (*choice.bounds, choice.why())
        counts = per_component(
            cardinality, "cardinality", r, lambda v, name: integer(v, name, least, most, why)
        )
        return tuple(_Wanted(k, 0.0) for k in counts)
    penalties = per_component(penalty, "penalty", r, lambda v, name: number(v, name, 0, np.finfo(float).max))
    return tuple(_Wanted(p, _to_operator_units(problem, value / 2)) for value in penalties)


def _to_operator_units(problem: Problem, value: float) -> float:
    """A number in the units of X'X, in those of the operator's covariance; clipped to the range."""
    with np.errstate(over="ignore", under="ignore"):
        inside = np.ldexp(value, -problem.exponent) / problem.degrees
    return float(min(inside, np.finfo(float).max / 4))


def _from_operator_units(problem: Problem, value: Any) -> Any:
    """The inverse; inf or 0 out of range."""
    with np.errstate(over="ignore", under="ignore"):
        return problem.in_units(np.asarray(value) * problem.degrees)


def _ridge(problem: Problem, ridge: Any) -> float:
    """In the operator's units."""
    if ridge is not None:
        ridge = number(ridge, "ridge", 0)
        return ridge if ridge == math.inf else min(_to_operator_units(problem, ridge), LARGEST_RIDGE)
    p = problem.n_variables
    if problem.n_samples is not None and problem.degrees + 1 < p:
        return math.inf
    if problem.diagonal is None:
        raise ValueError("ridge must be given: an operator does not provide the mean of the diagonal of X'X")
    return 1e-6 * float(problem.diagonal.sum()) / p


def _start(problem: Problem, r: int, start: Any) -> NDArray[np.float64]:
    S = real_array(start, "start", ndim=2, labels=problem.names).astype(np.float64)
    if S.shape != (problem.p, r):
        raise ValueError(f"start has shape {S.shape} where ({problem.p}, {r}) is needed")
    S = S / (np.abs(S).max() or 1)
    if np.linalg.matrix_rank(S) < r:
        raise ValueError(f"start must have {r} linearly independent columns")
    return procrustes(S, S)[0]


def _result(
    problem: Problem, B: NDArray[np.float64], levels: NDArray[np.float64], ridge: float,
    objective: Any, converged: bool, kind: str, given: Any,
) -> SPCAResult:  # fmt: skip
    dtype = problem.operator.dtype
    signed = problem.choice is not None and problem.choice.signs is not None
    loadings = (B if signed else np.stack([fix_sign(b) for b in B.T], axis=1)) + 0.0  # no zero with a sign
    empty = np.flatnonzero(~loadings.any(axis=0))
    if len(empty):
        warn(f"the penalty leaves {len(empty)} loadings without nonzeros, the first at {empty[0]}")
    if not converged:
        warn(f"not converged in {counted(len(objective), 'iteration')}")
    variances = [operator_variances(problem, loadings, how) for how in ("cumulative", "adjusted")]
    total = None if problem.diagonal is None else float(problem.diagonal.sum())
    explained = problem.in_units(variances[0])
    warn_out_of_range(variances[0], explained)
    return SPCAResult(
        loadings=loadings.astype(dtype),
        explained_variance=explained,
        explained_variance_ratio=None if total is None else variances[0] / total,
        adjusted_variance=problem.in_units(variances[1]),
        total_variance=problem.total_variance,
        cardinality=np.count_nonzero(loadings, axis=0),
        penalty=_from_operator_units(problem, 2 * levels),
        ridge=float(_from_operator_units(problem, ridge) if given is None else given),
        objective=_from_operator_units(problem, objective),
        mean=problem.mean,
        scale=problem.scale,
        n_iter=len(objective),
        converged=converged,
        method="spca",
        kind=kind,
        n_samples=problem.n_samples,
        names=problem.names,
        dense_ratio=cheap_dense_shares(problem, loadings.shape[1]),
        missing_entries=problem.missing_entries,
    )
