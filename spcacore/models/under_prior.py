"""Components under a prior: in turn, deflated (`fit_in_turn`), or all at once by exact EM (`fit_at_once`).

In `T = X W + noise` the r rows of W are independent N(0, C); X (n x r) and s2 maximize the density of T. With
L = C^-1, and X turned so that X'X = s2 diag(a), the rows of W are independent given T, too:

    w_i ~ N(m_i, K_i^-1),   K_i = a_i I + L,   m_i = K_i^-1 T'x_i/s2,
    log p(T) = -(n p log(2 pi s2) + |T|^2/s2 + sum_i (log det K_i - log det L - m_i'K_i m_i))/2,
    X = T M S^-1,   S = M'M + diag(Tr K_i^-1),   s2 = (|T|^2 - Tr S^-1 M'T'T M)/(n p).

X is kept as T B, so only T'T is needed. Two steps accelerate the iteration. The rows of W may be correlated:
their covariance is estimated and goes into X (PX-EM, Liu, Rubin and Wu 1998). And two steps are continued
along their curve, if that raises the density (SQUAREM, Varadhan and Roland 2008).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy import linalg

from .._limits import ROUNDING_LEFT
from .._messages import counted, warn
from .._records import record
from .._types import Array
from .._validation import Hook
from ..linalg.eigen import leading_eigenvectors
from ..linalg.scaling import LOG_2PI, descending, roots
from ..operators.deflation import DEFLATIONS, DeflatedOperator
from ..operators.problem import Problem
from ..progress import Progress
from ..solvers.solution import Ended, ProgressHook
from .priors import Diagonal, PriorMatrix, Spectral
from .refinement import with_sign
from .variational import Component, Search


@record
class _Point:
    """Where an iteration stands: X = T B and s2, with `GB` = T'X."""

    B: Array
    GB: Array
    noise: float

    def apart(self, other: _Point) -> float:
        """Return |X - Y|^2/|X|^2 for the X of this point and Y of the other."""
        size = float(np.sum(self.B * self.GB))
        return float(np.sum((self.B - other.B) * (self.GB - other.GB))) / size if size > 0 else 0.0


@record
class _Step:
    """The posteriors and the log density at a point, and the point to which EM goes from there."""

    at: _Point
    M: Array
    a: Array
    traces: Array  # Tr K_i^-1
    log_density: float
    next: _Point


class _JointModel:
    """The density of T, in the basis of the eigenvectors of L if they are known.

    n is the number of samples, or the sum of their weights.
    """

    def __init__(self, problem: Problem, n: float, prior: PriorMatrix) -> None:
        self.op, self.n, self.entries = problem.operator, n, n * problem.n_variables
        self.square = problem.trace * (n - 1)  # |T|^2
        self.U = prior.U if isinstance(prior, Spectral) else None
        self.prior = Diagonal(prior.theta) if isinstance(prior, Spectral) else prior
        self.constant = self.prior.logdet(0.0)

    def product(self, B: Array) -> Array:
        """Return T'T B."""
        V = B if self.U is None else self.U @ B
        G = (self.n - 1) * self.op.apply_block(V).astype(np.float64)
        return G if self.U is None else self.U.T @ G

    def start(self, r: int) -> _Point:
        """Return the weights and the noise of principal components, which are the maximum without a prior."""
        values, V = leading_eigenvectors(self.op, r)
        left = self.square - (self.n - 1) * float(np.maximum(values, 0).sum())
        if left <= ROUNDING_LEFT.of(self.op.dtype) * self.square:
            raise ValueError(f"X has rank {r} at most, so n_components must be below that: no noise is left")
        B = V.astype(np.float64) / math.sqrt(self.prior.p)
        B = B if self.U is None else self.U.T @ B
        return _Point(B, self.product(B), left / self.entries)

    def step(self, at: _Point) -> _Step:
        """One iteration: posteriors and log density at a point, then the best weights and noise for them."""
        prior, square = self.prior, self.square
        # Turn X so that X'X = s2 diag(a); then M has the m_i = K_i^-1 T'x_i/s2
        squares, R = linalg.eigh(at.B.T @ at.GB)
        a, right = np.maximum(squares, 0) / at.noise, at.GB @ R / at.noise
        M = np.column_stack([prior.solve(float(b), v) for b, v in zip(a, right.T, strict=True)])
        # The log density
        volume = sum(prior.logdet(float(b)) - self.constant for b in a)
        F = self.entries * (LOG_2PI + math.log(at.noise)) + square / at.noise + volume - np.sum(right * M)
        # X = T M S^-1 and s2 = (|T|^2 - Tr S^-1 M'T'T M)/(n p)
        GM, traces = self.product(M), np.array([prior.trace(float(b)) for b in a])
        S = linalg.inv(M.T @ M + np.diag(traces))
        noise = max(square - float(np.sum(S * (M.T @ GM))), 1e-15 * square) / self.entries
        # The covariance of the rows of W, which PX-EM puts into X
        LM = np.column_stack([prior.product(m) for m in M.T])
        values, Q = linalg.eigh(
            (M.T @ LM + np.diag(prior.p - a * traces)) / prior.p
        )  # covariance of rows of W
        turn = S @ (Q * roots(values)) @ Q.T @ R.T
        return _Step(at, M, a, traces, -0.5 * float(F), _Point(M @ turn, GM @ turn, noise))


def _continued(before: _Point, middle: _Point, after: _Point) -> _Point:
    """Return the point of SQUAREM: three points define a curve, which is followed beyond the last one.

    With the step d_1 and the bend d_2 of three points, the length is |d_1|/|d_2| (the third of the authors'
    choices), and at least 1.
    """
    first, bend = middle.B - before.B, after.B - 2 * middle.B + before.B
    size = float(np.linalg.norm(bend))
    length = max(float(np.linalg.norm(first)) / size, 1.0) if size > 0 else 1.0
    points = [(point.B, point.GB, np.log(point.noise)) for point in (before, middle, after)]
    B, GB, noise = (
        x + 2 * length * (y - x) + length**2 * (z - 2 * y + x) for x, y, z in zip(*points, strict=True)
    )
    return _Point(B, GB, float(np.exp(noise)))


# ---- several components -----------------------------------------------------------------------------


def fit_in_turn(
    search: Search, r: int, stop: bool, sizes: tuple[int, ...] | None, deflation: str, unit: float,
    known: Sequence[Component], hook: Hook,
) -> list[Component]:  # fmt: skip
    """Find up to r components, each after deflation by the ones before.

    `sizes` are the cardinalities; None for components on all variables. The caller's precision is `unit`
    times L, and the components have the scale of the caller's prior. With `stop` only the components that
    raise the free energy are returned, but at least one. The first components come from `known`.
    """
    residual, problem = search.residual, search.problem
    k = problem.p
    removal = DEFLATIONS["orthogonalized_projection" if residual.orthogonal else "naive"]
    state = DeflatedOperator.from_problem(problem, removal)
    components: list[Component] = []
    for t in range(r):
        # Stop where only rounding is left
        if residual.square <= residual.floor:
            if stop:
                break
            raise ValueError(f"X has rank {t}, to rounding, so n_components must be at most {t}, not {r}")
        # The component
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
        # Deflation
        components.append(new)
        residual.remove(new.m * math.sqrt(unit), (float(new.m @ new.m) + new.trace) * unit)
        if sizes is not None and t + 1 < r:
            index = np.flatnonzero(new.m)
            loading = new.m[index] / np.linalg.norm(new.m[index])
            state = state.deflate(index, loading.astype(problem.operator.dtype))
        if t >= len(known) and _report(hook, problem, new, t, r):
            break
    if len(components) > len(known) and components[-1].free_energy[-1] == math.inf:
        found = f"{counted(len(components), 'component')} leave{'s' * (len(components) == 1)} no noise"
        warn(f"{found}, and the free energy is unbounded: it is reported as inf")
    return components


def _report(hook: Hook, problem: Problem, new: Component, t: int, r: int) -> bool:
    """Report a finished component to the callback; return whether that ends the fit."""
    if hook.callback is None:  # nobody asks for the variance
        return False
    loading = (new.m / np.linalg.norm(new.m)).astype(problem.operator.dtype)
    variance = float(problem.in_units(loading @ problem.operator.apply(None, loading)))
    return hook(Progress(t, r, len(new.free_energy), variance))


def _in_units(new: Component, problem: Problem, n: float, unit: float) -> Component:
    """Return the component in the units of the data and the scale of the caller's prior.

    That prior has `unit` times L as precision. F changes because the operator has the data divided by a power
    of two.
    """
    return replace(
        new, m=with_sign(problem, new.m) / math.sqrt(unit), a=new.a * unit, trace=new.trace / unit,
        noise=float(problem.in_units(new.noise)),
        free_energy=new.free_energy - n * problem.n_variables * problem.exponent * math.log(2) / 2,
    )  # fmt: skip


def fit_at_once(
    problem: Problem, n: float, r: int, prior: PriorMatrix, unit: float, max_iter: int, tol: float,
    hook: Hook,
) -> list[Component]:  # fmt: skip
    """Find all r components by EM, in the order of what they explain; the callback may end the fit early.

    Each has as `free_energy` the log density of all after each step.
    """
    model = _JointModel(problem, n, prior)
    entries = model.entries
    # Two steps, then one from the point to which they lead, if the density is higher there
    best = model.step(model.start(r))
    path, converged, idle = [best.log_density], False, 0
    ended = False
    while not (converged or ended) and len(path) < max_iter:
        steps = [best]
        while len(steps) < 3 and not (converged or ended) and len(path) < max_iter:
            new = model.step(steps[-1].next)
            steps.append(new)
            path.append(max(new.log_density, path[-1]))
            ended = hook(Progress(0, r, len(path) - 1))
            idle = idle + 1 if path[-1] - path[-2] <= 1e-15 * entries else 0
            converged = new.at.apart(new.next) <= tol**2 or idle == 3
        best = steps[-1]
        if len(steps) == 3 and not (converged or ended):
            further = model.step(_continued(*(step.at for step in steps)))
            if further.log_density > best.log_density:
                best = further
                path[-1] = best.log_density
    # What all gain over noise alone
    M = best.M if model.U is None else model.U @ best.M
    alone = -0.5 * entries * (LOG_2PI + math.log(model.square / entries) + 1)
    cost = 0.5 * (n - 0.5 * (r - 1)) * math.log(prior.p)  # n weights each, less rotations
    gain = (path[-1] - alone) / r - cost
    # The components
    energies = np.array(path)
    found = (
        Component(M[:, i], float(best.a[i]), float(best.traces[i]), best.at.noise, energies, converged, gain)
        for i in descending(best.a * (np.sum(M**2, axis=0) + best.traces))
    )
    components = [_in_units(one, problem, n, unit) for one in found]
    for t, one in enumerate(components):
        if _report(hook, problem, one, t, r):
            break
    return components
