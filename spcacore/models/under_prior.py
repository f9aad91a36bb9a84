"""Components under a prior: in turn, deflated (`fit_in_turn`), or all at once by exact EM (`fit_at_once`).

In `T = X W + noise` the r rows of W are independent N(0, C); X (n x r) and s2 maximize the density of T. With
L = C^-1, and X turned so that X'X = s2 diag(a), the rows of W are independent given T, too:

    w_i ~ N(m_i, K_i^-1),   K_i = a_i I + L,   m_i = K_i^-1 T'x_i/s2,
    log p(T) = -(n p log(2 pi s2) + |T|^2/s2 + sum_i (log det K_i - log det L - m_i'K_i m_i))/2,
    X = T M S^-1,   S = M'M + diag(Tr K_i^-1),   s2 = (|T|^2 - Tr S^-1 M'T'T M)/(n p).

X = T B needs T'T alone. Two steps accelerate it: the rows of W may covary, which is estimated and goes into X
(PX-EM, Liu, Rubin and Wu 1998), and two steps are continued along their curve where that raises the density
(SQUAREM, Varadhan and Roland 2008).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg
from scipy.optimize import lsq_linear

from .._labels import columns_of, symmetric
from .._messages import counted
from .._records import record
from .._types import Array, MatrixLike
from .._validation import Hook, integer, real_array
from ..linalg.eigen import leading_eigenvectors
from ..linalg.orthogonal import fix_sign, symmetrized
from ..linalg.scaling import descending, eps_of
from ..objectives.regression import Regression
from ..operators.base import refuse_oblong
from ..operators.deflation import DEFLATIONS, DeflatedOperator
from ..operators.problem import Problem
from ..operators.submatrix import KeptRows
from ..progress import Progress
from ..solvers.solution import Ended, ProgressHook
from ..supports.admissible import Supports
from ..supports.search import forward_ways
from .priors import Diagonal, PriorMatrix, Spectral
from .variational import Component, Search

_LOG_2PI = math.log(2 * math.pi)


@record
class _Point:
    """X = T B and s2, with `GB` = T'X."""

    B: Array
    GB: Array
    noise: float

    def apart(self, other: _Point) -> float:
        """The squared norm of the difference of X, relative to X."""
        size = float(np.sum(self.B * self.GB))
        return float(np.sum((self.B - other.B) * (self.GB - other.GB))) / size if size > 0 else 0.0


@record
class _Step:
    """The posteriors and the log-density at a point, and where EM goes from there."""

    at: _Point
    M: Array
    a: Array
    traces: Array
    log_density: float
    next: _Point


class _JointModel:
    """The density of T, in the basis of the eigenvectors of L where these are known."""

    def __init__(self, problem: Problem, n: float, prior: PriorMatrix) -> None:
        self.op, self.n, self.entries = problem.operator, n, n * problem.n_variables
        self.square = problem.trace * (n - 1)  # of T
        self.U = prior.U if isinstance(prior, Spectral) else None
        self.prior = Diagonal(prior.theta) if isinstance(prior, Spectral) else prior
        self.constant = self.prior.logdet(0.0)

    def product(self, B: Array) -> Array:
        """T'T B."""
        V = np.asfortranarray(B if self.U is None else self.U @ B, self.op.dtype)
        G = (self.n - 1) * self.op.apply_block(V).astype(np.float64)
        return G if self.U is None else self.U.T @ G

    def start(self, r: int) -> _Point:
        """The weights of principal components, which are best without a prior."""
        values, V = leading_eigenvectors(self.op, r)
        left = self.square - (self.n - 1) * float(np.maximum(values, 0).sum())
        if left <= (30 if self.op.single else 1e3) * eps_of(self.op.dtype) * self.square:
            raise ValueError(f"X has rank {r} at most, so n_components must be below that: no noise is left")
        B = V.astype(np.float64) / math.sqrt(self.prior.p)
        B = B if self.U is None else self.U.T @ B
        return _Point(B, self.product(B), left / self.entries)

    def step(self, at: _Point) -> _Step:
        prior, square = self.prior, self.square
        squares, R = linalg.eigh(at.B.T @ at.GB)
        a, right = np.maximum(squares, 0) / at.noise, at.GB @ R / at.noise
        M = np.column_stack([prior.solve(float(b), v) for b, v in zip(a, right.T, strict=True)])
        volume = sum(prior.logdet(float(b)) - self.constant for b in a)
        F = self.entries * (_LOG_2PI + math.log(at.noise)) + square / at.noise + volume - np.sum(right * M)
        GM, traces = self.product(M), np.array([prior.trace(float(b)) for b in a])
        S = linalg.inv(M.T @ M + np.diag(traces))
        noise = max(square - float(np.sum(S * (M.T @ GM))), 1e-15 * square) / self.entries
        LM = np.column_stack([prior.product(m) for m in M.T])
        values, Q = linalg.eigh(
            (M.T @ LM + np.diag(prior.p - a * traces)) / prior.p
        )  # covariance of rows of W
        turn = S @ (Q * np.sqrt(np.maximum(values, 0))) @ Q.T @ R.T
        return _Step(at, M, a, traces, -0.5 * float(F), _Point(M @ turn, GM @ turn, noise))


def _continued(before: _Point, middle: _Point, after: _Point) -> _Point:
    """The point of SQUAREM's third step length."""
    first, bend = middle.B - before.B, after.B - 2 * middle.B + before.B
    size = float(np.linalg.norm(bend))
    length = max(float(np.linalg.norm(first)) / size, 1.0) if size > 0 else 1.0

    def along(x: Array, y: Array, z: Array) -> Array:
        return x + 2 * length * (y - x) + length**2 * (z - 2 * y + x)

    noises = [np.log(point.noise) for point in (before, middle, after)]
    return _Point(
        along(before.B, middle.B, after.B),
        along(before.GB, middle.GB, after.GB),
        float(np.exp(along(*noises))),
    )


# ---- several components -----------------------------------------------------------------------------


def fit_in_turn(
    search: Search, r: int, stop: bool, sizes: tuple[int, ...] | None, deflation: str, unit: float,
    known: Sequence[Component], hook: Hook,
) -> list[Component]:  # fmt: skip
    """Up to r components, each in the scale of the caller's prior, whose precision is `unit` times L.

    With `stop`, no more than raise the free energy, but one at least.
    """
    residual, problem = search.residual, search.problem
    op, k = problem.operator, problem.p
    removal = DEFLATIONS["orthogonalized_projection" if residual.orthogonal else "naive"]
    state: DeflatedOperator | None = DeflatedOperator.from_problem(problem, removal)
    rounding = (30 if op.single else 1e3) * eps_of(op.dtype)
    components: list[Component] = []
    for t in range(r):
        if residual.square <= rounding * residual.total:
            if stop:
                break
            raise ValueError(f"X has rank {t}, to rounding, so n_components must be at most {t}, not {r}")
        if t < len(known):
            new = known[t]
        else:
            search = replace(
                search, seed=[search.seed[0], t + 1], report=ProgressHook(hook, t, r, whole=True)
            )
            try:
                if sizes is None:
                    new = search.on_all(residual.M if deflation == "orthogonal" else residual.M[:, :0])
                else:
                    k = sizes[t]
                    new = search.on_support(k, state, deflation == "constrained")
            except Ended:
                break
            new = _in_units(replace(new, gain=search.gain(new, k)), problem, residual.n, unit)
        if stop and components and not new.gain > 0:
            break
        components.append(new)
        residual.remove(new.m * math.sqrt(unit), (float(new.m @ new.m) + new.trace) * unit)
        if sizes is not None and state is not None and t + 1 < r:
            index = np.flatnonzero(new.m)
            loading = new.m[index] / np.linalg.norm(new.m[index])
            state = state.deflate(index, loading.astype(op.dtype))
        if t >= len(known) and _told(hook, problem, new, t, r):
            break
    return components


def _told(hook: Hook, problem: Problem, new: Component, t: int, r: int) -> bool:
    """Tell the callback of a finished component; whether it ends the fit."""
    if hook.callback is None:  # and so nobody asks for the variance
        return False
    loading = (new.m / np.linalg.norm(new.m)).astype(problem.operator.dtype)
    variance = float(problem.in_units(loading @ problem.operator.apply(None, loading)))
    return hook(Progress(t, r, len(new.free_energy), variance))


def _in_units(new: Component, problem: Problem, n: float, unit: float) -> Component:
    """In the scale of the caller's prior, whose precision is `unit` times L, and of the data."""
    m = fix_sign(new.m) if problem.supports.signs is None else new.m
    return replace(
        new, m=m / math.sqrt(unit), a=new.a * unit, trace=new.trace / unit,
        noise=float(problem.in_units(new.noise)),
        free_energy=new.free_energy - n * problem.n_variables * problem.exponent * math.log(2) / 2,
    )  # fmt: skip


def fit_at_once(
    problem: Problem, n: float, r: int, prior: PriorMatrix, unit: float, max_iter: int, tol: float,
    hook: Hook,
) -> list[Component]:  # fmt: skip
    """All r components by EM, those that explain most first; none where the callback ends it.

    Each has the log-density of all after each step.
    """
    model = _JointModel(problem, n, prior)
    entries = model.entries
    best = model.step(model.start(r))
    path, converged, idle = [best.log_density], False, 0
    while not converged and len(path) < max_iter:
        steps = [best]
        while len(steps) < 3 and not converged and len(path) < max_iter:
            new = model.step(steps[-1].next)
            steps.append(new)
            path.append(max(new.log_density, path[-1]))
            if hook(Progress(0, r, len(path) - 1)):
                return []
            idle = idle + 1 if path[-1] - path[-2] <= 1e-15 * entries else 0
            converged = new.at.apart(new.next) <= tol**2 or idle == 3
        best = steps[-1]
        if len(steps) == 3 and not converged:
            further = model.step(_continued(*(step.at for step in steps)))
            if further.log_density > best.log_density:
                best = further
                path[-1] = best.log_density
    M = best.M if model.U is None else model.U @ best.M
    alone = -0.5 * entries * (_LOG_2PI + math.log(model.square / entries) + 1)
    cost = 0.5 * (n - 0.5 * (r - 1)) * math.log(prior.p)  # of n weights, less what turns
    gain = (path[-1] - alone) / r - cost
    energies = np.array(path)
    found = (
        Component(M[:, i], float(best.a[i]), float(best.traces[i]), best.at.noise, energies, converged, gain)
        for i in descending(best.a * (np.sum(M**2, axis=0) + best.traces))
    )
    components = [_in_units(one, problem, n, unit) for one in found]
    for t, one in enumerate(components):
        if _told(hook, problem, one, t, r):
            break
    return components


def information_projection(
    mean: ArrayLike,
    covariance: MatrixLike,
    cardinality: int | None = None,
    *,
    earlier: ArrayLike | None = None,
    signs: int | ArrayLike | None = None,
) -> tuple[Array, Array, float]:
    """Restrict a normal distribution to few variables, to a subspace, or to given signs.

    Of all distributions on a set, this one has the least Kullback-Leibler divergence from the given one: it
    is that one, restricted to the set. On a subspace with an orthonormal basis N it is ``N(a, B)`` with
    ``B = N (N'KN)^-1 N'`` and ``a = B K mean``, where K is the inverse of the covariance. Such are the
    posteriors of `oppca` and `soppca`. Where signs are given it is not normal; a is then its mode, the
    solution of a quadratic program.

    Parameters
    ----------
    mean : array-like of shape (p,)
    covariance : array-like of shape (p, p)
        Positive definite.
    cardinality : int, optional
        How many entries may be nonzero. A greedy search for the support of the least divergence maximizes
        ``r_S'(K_S)^-1 r_S - log det K_S``, ``r = K mean``. Default: all variables.
    earlier : array-like of shape (p,) or (p, r), optional
        Vectors to which the result is orthogonal, as loadings found before.
    signs : 1, -1 or array-like of shape (p,), optional
        As in `Choice`: 1 allows no negative entries, and so on. Not with `earlier`. They do not
        change which support is chosen.

    Returns
    -------
    a : ndarray of shape (p,)
        The mean or, with signs, the mode.
    B : ndarray of shape (p, p)
        The covariance, of rank at most the dimension of the subspace; with signs, of the normal distribution
        that they cut.
    divergence : float
        Minus the logarithm of the integral of p over the subspace. It is comparable between subspaces of one
        dimension.

    Raises
    ------
    ValueError
        For a covariance that is not symmetric and positive definite, shapes that do not match, an option out
        of range, or if nothing but zero is orthogonal to the vectors.
    TypeError
        For input that is not real numbers.

    References
    ----------
    R. Khanna, J. Ghosh, R. Poldrack and O. Koyejo (2017). A deflation method for structured probabilistic
    PCA. SIAM International Conference on Data Mining, sections 2.1 and 2.2.

    Examples
    --------
    >>> import spcacore
    >>> mean, covariance = [1.0, 2.0, -1.0], [[2, 1, 0], [1, 2, 0], [0, 0, 1]]
    >>> a, B, divergence = spcacore.information_projection(mean, covariance, 2)
    >>> a.round(6).tolist(), B.diagonal().round(6).tolist()
    ([1.0, 2.0, 0.0], [2.0, 2.0, 0.0])
    >>> spcacore.information_projection(mean, covariance, signs=1)[0].round(6).tolist()
    [1.0, 2.0, 0.0]
    """
    names = columns_of(covariance)
    C = real_array(symmetric(covariance, names, "covariance"), "covariance", ndim=2).astype(np.float64)
    p = len(C)
    refuse_oblong(C.shape, "covariance")
    if not np.allclose(C, C.T, rtol=1e-7, atol=1e-12 * np.abs(C).max()):
        raise ValueError("covariance must be a symmetric matrix")
    m = real_array(mean, "mean", ndim=1, labels=names).astype(np.float64)
    if len(m) != p:
        raise ValueError(f"mean has {counted(len(m), 'entry')} for {counted(p, 'variable')}")
    shift = int(np.frexp(C.diagonal().max())[1]) // 2  # the unit, a power of two
    C = np.ldexp(C, -2 * shift)
    try:
        K = linalg.cho_solve(linalg.cho_factor(symmetrized(C)), np.eye(p))
    except linalg.LinAlgError:
        raise ValueError("covariance must be positive definite") from None
    with np.errstate(over="ignore", invalid="ignore"):
        m = np.ldexp(m, -shift)
        r = K @ m
        if not np.isfinite(m @ r * (1 + K.diagonal().max())):
            raise ValueError("mean is beyond the number range beside this covariance")
    k = p if cardinality is None else integer(cardinality, "cardinality", 1, p)
    sign = Supports.checked(p, names, signs=signs).signs
    if sign is not None and earlier is not None:
        raise ValueError("signs cannot be combined with earlier: drop one of the two")
    S = np.arange(p)
    if k < p:
        objective = Regression(
            KeptRows(lambda S: (K[S],), p), K.diagonal(), r, Supports.any_of(p, k), volume=True
        )
        S = objective.supports.index(max(forward_ways(objective), key=objective.value))
    N = np.eye(p)[:, S]
    if earlier is not None:
        Q = real_array(earlier, "earlier", ndim=(1, 2), labels=names).astype(np.float64)
        if len(Q) != p:
            raise ValueError(f"earlier has {counted(len(Q), 'row')} for {counted(p, 'variable')}")
        Q = Q.reshape(p, -1)
        N = N @ linalg.null_space(Q[S].T)
        if N.shape[1] == 0:
            raise ValueError(f"nothing but 0 of {counted(len(S), 'variable')} is orthogonal to earlier")
    inside = N.T @ K @ N
    B = N @ linalg.solve(inside, N.T, assume_a="pos")
    a = B @ r
    logs = np.linalg.slogdet(K)[1] - np.linalg.slogdet(inside)[1]
    divergence = ((p - N.shape[1]) * (_LOG_2PI + 2 * shift * math.log(2)) - logs + m @ r - r @ a) / 2
    if sign is not None:
        R = linalg.cholesky(inside)
        low, high = np.where(sign[S] > 0, 0, -np.inf), np.where(sign[S] < 0, 0, np.inf)
        found = lsq_linear(R, R @ a[S], (low, high), method="bvls", tol=1e-14).x
        a[S] = np.clip(found, low, high)  # which may be beyond by rounding
    with np.errstate(over="ignore", under="ignore"):
        return np.ldexp(a, shift), np.ldexp(B, 2 * shift), float(divergence)
