"""Variational EM for one component under a prior: the equations stand in `structured`."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from .._messages import counted
from ..operators.deflation import DeflatedOperator
from ..operators.problem import Problem
from ..solvers.truncated_power import TruncatedPower
from .priors import Diagonal, Isotropic, Prior, Sparse, Spectral

Vector = NDArray[np.float64]
_LOG_2PI = math.log(2 * math.pi)


@dataclass(frozen=True)
class Component:
    """One posterior; first in the scale of the prior's L, then of the caller's prior."""

    m: Vector
    a: float
    trace: float
    noise: float  # in the operator's units
    free_energy: Vector
    converged: bool
    dimension: int = 0  # of the subspace it lives on


def project_out(v: Vector, Q: Vector) -> Vector:
    """What of v is orthogonal to Q, twice."""
    if Q.shape[1] == 0:
        return v
    v = v - Q @ (Q.T @ v)
    return v - Q @ (Q.T @ v)


def append_orthonormal(Q: Vector, m: Vector) -> Vector:
    """An orthonormal basis of Q and m."""
    q = project_out(m / np.linalg.norm(m), Q)
    norm = np.linalg.norm(q)
    return Q if norm < 1e-10 else np.column_stack([Q, project_out(q / norm, Q)])


class Residual:
    """Z'Z of the deflated data `Z = T (I - B M')`: B = M orthonormal, or x_t = T b_t and the means."""

    def __init__(self, problem: Problem, n: int, orthogonal: bool):
        self.op, self.n, self.orthogonal = problem.operator, n, orthogonal
        assert problem.diagonal is not None
        self.total = float(problem.diagonal.sum()) * (n - 1)
        self.square = self.total
        self.B = self.M = self.AB = np.zeros((problem.p, 0))
        self.inner = np.zeros((0, 0))

    @property
    def basis(self) -> Vector:
        return self.M

    def _product(self, v: Vector) -> Vector:
        index = np.flatnonzero(v)
        if len(index) == 0:
            return np.zeros_like(v)
        if len(index) > len(v) // 2:
            return (self.n - 1) * self.op.apply(None, v.astype(self.op.dtype)).astype(np.float64)
        return (self.n - 1) * self.op.apply(index, v[index].astype(self.op.dtype)).astype(np.float64)

    def apply(self, v: Vector) -> Vector:
        """Z'Z v."""
        along = self.M.T @ v
        y = self._product(v) - self.AB @ along
        return y - self.M @ (self.B.T @ y)

    def submatrix(self, index: NDArray[np.intp]) -> Vector:
        """Z'Z on a support."""
        G = (self.n - 1) * self.op.submatrix(index).astype(np.float64)
        if self.M.shape[1]:
            cross = self.AB[index] @ self.M[index].T
            G += self.M[index] @ self.inner @ self.M[index].T - cross - cross.T
        return (G + G.T) / 2

    def remove(self, m: Vector, energy: float) -> None:
        """Deflate by a component with mean m and `energy` m'm + Tr S."""
        if self.orthogonal:
            Q = append_orthonormal(self.M, m)
            if Q.shape[1] == self.M.shape[1]:
                return
            b, m = Q[:, -1], Q[:, -1]
        else:
            b = (m - self.B @ (self.M.T @ m)) / energy
        self.B, self.M = np.column_stack([self.B, b]), np.column_stack([self.M, m])
        self.AB = np.column_stack([self.AB, self._product(b)])
        self.inner = self.B.T @ self.AB
        self.inner = (self.inner + self.inner.T) / 2
        cross = np.sum(self.M * self.AB)
        self.square = self.total - 2 * cross + np.sum(self.inner * (self.M.T @ self.M))


# ---- one component ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Posterior:
    """A posterior N(m, S), and all that F needs of it."""

    m: Vector
    g: Vector  # Z'Z m
    Lm: Vector
    trace: float
    prior_trace: float  # Tr L S
    logdet: float  # of S
    a: float = 0.0

    def scaled(self, dimension: int) -> Posterior:
        """With `E w'Lw` the dimension."""
        spread = float(self.m @ self.Lm) + self.prior_trace
        if not spread > 0:
            return self
        c = math.sqrt(dimension / spread)
        return Posterior(
            c * self.m, c * self.g, c * self.Lm, c**2 * self.trace, c**2 * self.prior_trace,
            self.logdet + 2 * dimension * math.log(c), self.a,
        )  # fmt: skip


class ExpectationMaximization:
    """EM on all variables of a prior, on the complement of Q."""

    def __init__(
        self,
        product: Callable[[Vector], Vector],
        square: float,
        entries: int,
        prior: Prior,
        Q: Vector,
        exact: float,
    ):
        self.U: Vector | None = None
        self.prior: Isotropic | Diagonal | Sparse
        if isinstance(prior, Spectral):  # all of it in the basis of the eigenvectors, where L is diagonal
            U = self.U = prior.U
            self.product: Callable[[Vector], Vector] = lambda v: U.T @ product(U @ v)
            self.prior, self.Q = prior.rotated, U.T @ Q
        else:
            self.product, self.prior, self.Q = product, prior, Q
        self.square, self.entries = square, entries
        self.exact = exact
        self.dimension = prior.p - Q.shape[1]
        self.guess: list[Vector | None] = [None, None]

    def m_step(self, x: Posterior) -> tuple[float, float, float, float]:
        """e, s2, |x|^2/s2 and F, with the best weights and noise."""
        e = float(x.m @ x.m) + x.trace
        gain = float(x.m @ x.g) / e
        noise = max(self.square - gain, 1e-15 * self.square) / self.entries
        spread = float(x.m @ x.Lm) + x.prior_trace
        F = -0.5 * self.entries * (_LOG_2PI + math.log(noise) + 1) - 0.5 * spread
        F += 0.5 * (self.dimension * (1 + _LOG_2PI) + x.logdet)
        return e, noise, gain / e / noise, F

    def e_step(self, x: Posterior) -> Posterior:
        """The posterior given the best weights and noise for x."""
        e, noise, a, _ = self.m_step(x)
        right = x.g / (e * noise)
        prior, Q = self.prior, self.Q
        iterative = isinstance(prior, Sparse)
        m = prior.solve(a, right, self.guess[0] if iterative else None)
        self.guess[0] = m
        trace, logdet = prior.trace(a), -prior.logdet(a)
        if Q.shape[1]:
            Y = prior.solve(a, Q, self.guess[1] if iterative else None)
            self.guess[1] = Y
            N = Q.T @ Y
            N = linalg.cho_factor((N + N.T) / 2)
            m = project_out(m - Y @ linalg.cho_solve(N, Y.T @ right), Q)
            trace -= float(np.sum(Y * linalg.cho_solve(N, Y.T).T))
            logdet -= 2 * float(np.log(np.diag(N[0])).sum())
        return Posterior(m, self.product(m), prior.product(m), trace, self.dimension - a * trace, logdet, a)

    def start(self, v: Vector) -> Posterior:
        v = project_out(v, self.Q)
        x = Posterior(v, self.product(v), self.prior.product(v), 0.0, 0.0, 0.0)
        if not float(v @ x.Lm) > 1e-12 * float(v @ v):
            return x
        return x.scaled(self.dimension)

    def run(
        self, v: Vector, max_iter: int, tol: float, told: Callable[[], None]
    ) -> tuple[Posterior, float, Vector, bool]:
        """From the direction v: the posterior, s2, F after each iteration, and whether it converged."""
        x = self.e_step(self.start(v if self.U is None else self.U.T @ v)).scaled(self.dimension)
        F = self.m_step(x)[3]
        path: list[float] = []
        earlier: list[Posterior] = []
        converged, idle = False, 0
        while len(path) < max_iter and not converged:
            if float(x.m @ x.m) < 1e-14 * x.trace:  # no signal that the prior would allow
                converged = True
                break
            z = self.combined(x, earlier)
            y = self.e_step(z)
            after = self.m_step(y)[3]
            if z is not x and after < F:
                z, y = x, self.e_step(x)
                after = self.m_step(y)[3]
            if path and after < path[-1]:  # by rounding
                converged = True
                break
            turned = y.m / np.linalg.norm(y.m) - z.m / np.linalg.norm(z.m)
            converged = float(np.linalg.norm(turned)) <= tol and abs(y.a - x.a) <= 1e-3 * y.a
            idle = idle + 1 if after - F <= 1e-15 * self.entries else 0
            converged |= idle == 3
            path.append(after)
            told()
            earlier = [x, *earlier][:2]
            x = y if converged else y.scaled(self.dimension)
            F = self.m_step(x)[3]
        _, noise, _, F = self.m_step(x)
        if self.U is not None:
            x = replace(x, m=self.U @ x.m, g=self.U @ x.g, Lm=self.U @ x.Lm)
        return x, noise, np.array(path or [F]), converged

    def combined(self, y: Posterior, earlier: list[Posterior]) -> Posterior:
        """y, or if better the leading vector of (Z'Z, K) in its span with the points before it."""
        norm = float(np.linalg.norm(y.m))
        basis: list[tuple[Vector, ...]] = [tuple(part / norm for part in (y.m, y.g, y.Lm))]
        for x in earlier:
            d: tuple[Vector, ...] = (y.m - x.m, y.g - x.g, y.Lm - x.Lm)
            before = float(np.linalg.norm(d[0]))
            for b in basis + basis:
                d = tuple(part - (b[0] @ d[0]) * other for part, other in zip(d, b, strict=True))
            left = float(np.linalg.norm(d[0]))
            if left > self.exact * max(norm, 1e3 * before):  # else it has lost its digits
                basis.append(tuple(part / left for part in d))
        if len(basis) == 1:
            return y
        V, G, L = (np.stack([b[i] for b in basis], axis=1) for i in range(3))
        H, K = V.T @ G, V.T @ L + y.a * np.eye(len(basis))
        try:
            _, z = linalg.eigh((H + H.T) / 2, (K + K.T) / 2, subset_by_index=[len(K) - 1] * 2)
        except np.linalg.LinAlgError:
            return y
        weight = z[:, 0]
        m, Lm = V @ weight, L @ weight
        length = float(m @ (y.a * m + Lm))
        if not length > 0:
            return y
        c = math.sqrt(max(float(y.m @ (y.a * y.m + y.Lm)), 0.0) / length)
        c = -c if float(m @ y.m) < 0 else c
        new = replace(y, m=project_out(c * m, self.Q), g=c * (G @ weight), Lm=c * Lm)
        return new if self.m_step(new)[3] > self.m_step(y)[3] else y


@dataclass(frozen=True)
class Search:
    """How one component is searched for."""

    problem: Problem
    residual: Residual
    prior: Prior
    n: int
    max_iter: int
    tol: float
    seed: list[int]
    told: Callable[[], None]

    @property
    def entries(self) -> int:
        return self.n * self.problem.p

    @property
    def exact(self) -> float:
        """The relative size below which differences of products are rounding."""
        return math.sqrt(float(np.finfo(self.problem.operator.dtype).eps))

    def start(self) -> Vector:
        """A dense direction near the leading eigenvectors of Z'Z."""
        v = np.random.default_rng(self.seed).standard_normal(self.problem.p)
        for _ in range(4):
            v = self.residual.apply(v / np.linalg.norm(v))
        return v

    def dense(self, Q: Vector) -> Component:
        climb = ExpectationMaximization(
            self.residual.apply, self.residual.square, self.entries, self.prior, Q, self.exact
        )
        x, noise, path, converged = climb.run(self.start(), self.max_iter, self.tol, self.told)
        return Component(x.m, x.a, x.trace, noise, path, converged, climb.dimension)

    def sparse(self, k: int, state: DeflatedOperator | None, constrained: bool) -> Component:
        supports: list[NDArray[np.intp]] = []
        if state is not None:
            solver = TruncatedPower.from_options(self.problem)
            found = solver.solve(self.problem, state, k, [self.seed[0], self.seed[1] - 1], None)
            if found is not None:
                index = found.index
                if len(index) < k:
                    spare = np.setdiff1d(np.arange(self.problem.p), index)[: k - len(index)]
                    index = np.sort(np.concatenate((index, spare)))
                supports.append(index)
        none = np.zeros((self.problem.p, 0))
        residual = self.residual
        climb = ExpectationMaximization(
            residual.apply, residual.square, self.entries, self.prior, none, self.exact
        )
        x, *_ = climb.run(self.start(), 30, max(self.tol, 1e-3), self.told)
        e, noise, a, _ = climb.m_step(x)
        supports.append(self.prior.support(x.g / (e * noise), a, k))
        best: Component | None = None
        for S in supports:
            new = self._settled(S, k, constrained)
            if new is not None and (best is None or new.free_energy[-1] > best.free_energy[-1]):
                best = new
        if best is None:
            raise ValueError(f"no loading of {counted(k, 'variable')} is orthogonal to the earlier ones")
        return best

    def _settled(self, S: NDArray[np.intp], k: int, constrained: bool) -> Component | None:
        """EM on a support, which changes while that raises F."""
        path: list[Vector] = []
        start: Vector | None = None
        best: tuple[Component, float] | None = None
        inner = self.prior.restricted(S)
        for _ in range(self.max_iter):
            Q = np.zeros((len(S), 0))
            if constrained and self.residual.basis.shape[1]:
                U, s, _ = linalg.svd(self.residual.basis[S], full_matrices=False)
                Q = U[:, s > 1e-10]
                if Q.shape[1] >= len(S):
                    break
            G = self.residual.submatrix(S)
            climb = ExpectationMaximization(G.dot, self.residual.square, self.entries, inner, Q, self.exact)
            if start is None:
                start = linalg.eigh(G, subset_by_index=[len(S) - 1] * 2)[1][:, 0]
            if np.linalg.norm(project_out(start, Q)) < 1e-8 * np.linalg.norm(start):
                start = np.random.default_rng(self.seed).standard_normal(len(S))
            x, noise, energies, converged = climb.run(start, self.max_iter, self.tol, self.told)
            if best is not None and not energies[-1] > best[1]:
                break
            if best is not None:
                energies = energies[energies >= best[1]]
            path.append(energies)
            m = np.zeros(self.problem.p)
            m[S] = x.m
            new = Component(m, x.a, x.trace, noise, np.concatenate(path), converged, climb.dimension)
            best = new, float(energies[-1])
            g = self.residual.apply(m)
            e, s2, a, _ = climb.m_step(x)
            right = g / (e * s2)
            after = self.prior.support(right, a, k)
            if np.array_equal(after, S):
                break
            S, inner = after, self.prior.restricted(after)
            start = inner.solve(a, right[S])
        return None if best is None else best[0]
