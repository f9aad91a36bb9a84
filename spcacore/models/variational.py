"""Variational EM for one component under a prior; the equations are in models/structured.

`ExpectationMaximization` iterates on given variables; `Search` chooses the variables. Notation: Z is the
deflated data. A loading w has a prior of precision L, and a posterior of mean m and covariance S. x has the
weights of the samples, s2 is the variance of the noise, `K_a = a I + L` with `a = |x|^2/s2`, and
`e = E w'w = m'm + Tr S`. No step lowers F, the free energy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import InitVar, dataclass, replace
from functools import cache, cached_property, partial

import numpy as np
from scipy import linalg

from .._limits import DETERMINANT_RESIDUAL, LAPACK_ORDER, SUPPORT_TOL
from .._messages import counted
from .._records import record
from .._types import Array, Index
from ..linalg.eigen import RitzSpan, ShiftedInverse, largest_eigenpairs, root_beyond
from ..linalg.orthogonal import column_span, project_out, symmetrized
from ..linalg.scaling import LOG_2PI, eps_of, with_entries
from ..operators.deflation import DeflatedOperator
from ..operators.problem import Problem
from ..solvers.solution import Report
from ..solvers.truncated_power import TruncatedPower
from ..supports.admissible import Supports
from .priors import (
    Diagonal,
    Isotropic,
    PriorMatrix,
    Sparse,
    Spectral,
    chosen_support,
    log_supports,
    within_signs,
)
from .residual import Residual

_LEAST = 1e-300  # in place of 0, so that logarithms are finite
_SIGNAL = 1e-14  # share of the variance below which a squared mean counts as none
ROOT_STEP = 0.7  # a longer step of log a can miss a root, or all signal of a first direction
SHIFTED_ENTRIES = 1 << 21  # entries of eigenvectors; with more, a system is solved by conjugate gradients


@record
class Component:
    """The posterior of one component: its mean, precision and noise, and how the iteration went.

    The scale is that of the prior's L or, once it is finished, that of the caller's prior.
    """

    m: Array
    a: float
    trace: float  # Tr S
    noise: float  # in the operator's units, or the caller's
    free_energy: Array
    converged: bool
    gain: float = 0.0  # F over noise alone, less the cost of the weights, see `Search.gain`


# ---- one component ----------------------------------------------------------------------------------


@record
class Posterior:
    """A posterior N(m, S) with the products and traces that F needs."""

    m: Array
    g: Array  # Z'Z m
    Lm: Array
    trace: float
    prior_trace: float  # Tr L S
    logdet: float  # log det S
    a: float = 0.0

    def scaled(self, dimension: int) -> Posterior:
        """Return the posterior of c w, with c such that E w'Lw is the dimension."""
        expected = float(self.m @ self.Lm) + self.prior_trace
        if not expected > 0:
            return self
        c = math.sqrt(dimension / expected)
        return Posterior(
            c * self.m, c * self.g, c * self.Lm, c**2 * self.trace, c**2 * self.prior_trace,
            self.logdet + 2 * dimension * math.log(c), self.a,
        )  # fmt: skip

    def certain(self, dimension: int) -> Posterior:
        """Return the limit as the noise goes to 0: no variance, and w'Lw is the dimension."""
        point = replace(self, trace=0.0, prior_trace=0.0, logdet=-math.inf, a=math.inf)
        return point.scaled(dimension)


def _with_products(
    product: Callable[[Array], Array], prior: Isotropic | Diagonal | Sparse, Q: Array, v: Array
) -> Array:
    """Return v, normalized and orthogonal to Q, with its images Z'Zv and Lv, as three rows."""
    v = project_out(v, Q)
    v = v / np.linalg.norm(v)
    return np.stack([v, product(v), prior.product(v)])


@dataclass(eq=False)
class ExpectationMaximization:
    """EM for one component on all variables of the prior `given`, orthogonal to the columns of Q.

    `product` multiplies by Z'Z, `square` is |Z|^2, of which `floor` may be rounding, and `entries` the number
    n p of entries of Z. `exact` is the accuracy that matters in the span of earlier iterates. `supports` has
    the signs that loadings must have, for `WithinSigns`. In the basis U of the eigenvectors of L, if they are
    known, L is diagonal.
    """

    product: Callable[[Array], Array]
    square: float
    floor: float
    entries: float
    given: InitVar[PriorMatrix | Diagonal]
    Q: Array
    exact: InitVar[float]
    supports: Supports | None = None
    U: Array | None = None
    gain: float = 4.0  # see `best_combination`: step of log a over what it lacks
    grows: bool = True
    shifted: ShiftedInverse | None = None
    a: float = 0.0

    def __post_init__(self, given: PriorMatrix | Diagonal, exact: float) -> None:
        self.prior: Isotropic | Diagonal | Sparse
        if isinstance(given, Spectral):
            U, product = given.U, self.product
            self.U, self.prior, self.Q = U, given.rotated, U.T @ self.Q
            self.product = lambda v: U.T @ product(U @ v)
        else:
            self.prior = given
        self.dimension: int = given.p - self.Q.shape[1]
        # A bound method would make a reference cycle
        with_products = partial(_with_products, self.product, self.prior, self.Q)
        self.span: RitzSpan = RitzSpan(given.p, exact, with_products)
        self.share: Array = np.array([0.0, math.log(self.dimension / given.p), 0.0])  # see `e_step`
        self.guess: list[Array | None] = [None, None]

    def m_step(self, x: Posterior) -> tuple[float, float, float, float]:
        """Return e, s2, a = |x|^2/s2 and F, at the best weights x and noise s2 for the posterior.

        The weights are x = Zm/e, so |x|^2 = m'Z'Zm/e^2, and s2 = (|Z|^2 - m'Z'Zm/e)/(n p).
        """
        e = float(x.m @ x.m) + x.trace
        gain = float(x.m @ x.g) / e
        noise = max(self.square - gain, 1e-15 * self.square) / self.entries
        expected = float(x.m @ x.Lm) + x.prior_trace
        F = -0.5 * self.entries * (LOG_2PI + math.log(noise) + 1) - 0.5 * expected
        F += 0.5 * (self.dimension * (1 + LOG_2PI) + x.logdet)
        return e, noise, gain / e / noise, F

    def target(self, x: Posterior) -> tuple[Array, float]:
        """Return r = Z'x/s2 and a at the best weights and noise; the next mean solves K_a m = r."""
        e, noise, a, _ = self.m_step(x)
        return x.g / (e * noise), a

    def e_step(self, x: Posterior) -> Posterior:
        """Return the posterior at the best weights and noise for the previous one: m = K_a^-1 r, S = K_a^-1.

        Orthogonal to Q it is m = K^-1(r - Q N^-1 Q'K^-1 r) with N = Q'K^-1 Q, and the trace and the
        determinant of S lose the parts along Q.
        """
        right, a = self.target(x)
        prior, Q = self.prior, self.Q
        m = prior.solve(a, right, self.guess[0])
        self.guess[0] = m
        trace, logdet = prior.trace(a), -prior.logdet(a)
        if isinstance(prior, Isotropic):
            m, trace, logdet = project_out(m, Q), self.dimension / (a + 1), -self.dimension * math.log(a + 1)
        elif Q.shape[1]:
            Y = prior.solve(a, Q, self.guess[1])
            self.guess[1] = Y
            N = Q.T @ Y
            N = linalg.cho_factor(symmetrized(N))
            m = project_out(m - Y @ linalg.cho_solve(N, Y.T @ right), Q)
            trace -= float(np.trace(linalg.cho_solve(N, Y.T @ Y)))
            logdet -= 2 * float(np.log(np.diag(N[0])).sum())
        # log a, the logarithm of Tr S/Tr K_a^-1 there and its slope in log a, to extrapolate Tr S
        t, share = math.log(max(a, _LEAST)), math.log(max(trace / prior.trace(a), _LEAST))
        before, at, slope = self.share
        far = abs(t - before) > 1e-4
        self.share = np.array([t, share, (share - at) / (t - before) if far else slope])
        return Posterior(m, self.product(m), prior.product(m), trace, self.dimension - a * trace, logdet, a)

    def constant(self) -> float:
        """Return the terms of F that do not change: (log det L + log det Q'L^-1 Q - dimension log 2 pi)/2.

        They are the logarithm of the normalization of the prior, as a density on the complement of Q.
        """
        logdet, Q, prior = self.prior.logdet(0.0), self.Q, self.prior
        if Q.shape[1] and not isinstance(prior, Isotropic):
            Y = prior.solve(0.0, Q, residual=DETERMINANT_RESIDUAL)
            logdet += float(np.linalg.slogdet(Q.T @ Y)[1])
        return 0.5 * (logdet - self.dimension * LOG_2PI)

    def start(self, v: Array) -> Posterior:
        """Return a posterior without variance at the direction v, scaled as the prior expects."""
        v = project_out(v, self.Q)
        x = Posterior(v, self.product(v), self.prior.product(v), 0.0, 0.0, 0.0)
        if not float(v @ x.Lm) > 1e-12 * float(v @ v):
            return x
        return x.scaled(self.dimension)

    def run(self, v: Array, max_iter: int, tol: float, report: Report) -> tuple[Posterior, Component]:
        """Iterate from the direction v; return the posterior, and the component with F at each iteration."""
        x = self.start(v if self.U is None else self.U.T @ v)
        x = self.best_combination(replace(x, a=self.m_step(x)[2]))
        x = self.e_step(x).scaled(self.dimension)
        F, rounding = self.m_step(x)[3], 1e-15 * self.entries
        path: list[float] = []
        converged, idle, least = False, 0, math.inf
        # Each iteration: the best point in the span of the iterates, then an E-step if that raises F
        while len(path) < max_iter and not converged:
            if float(x.m @ x.m) < _SIGNAL * x.trace:  # no signal beside the prior
                converged = True
                break
            if (self.square - self.floor) * float(x.m @ x.m) <= float(x.m @ x.g):  # nothing besides x m'
                x, converged = x.certain(self.dimension), True
                path.append(math.inf)
                break
            z = best = self.best_combination(x)
            y = self.e_step(z)
            after = self.m_step(y)[3]
            if z is not x and after < F - rounding:
                z, y = x, self.e_step(x)
                after = self.m_step(y)[3]
            step = float(np.linalg.norm(y.m / np.linalg.norm(y.m) - z.m / np.linalg.norm(z.m)))
            converged = step <= tol and abs(y.a - x.a) <= 1e-3 * y.a
            # F is flat at its maximum, so a direction goes on improving after the last digits of F have
            # converged: to half as many digits as F has. If F no longer rises, and three times neither the
            # steps get smaller nor the span grows, the rest is rounding.
            stuck = step >= least or not self.grows
            idle = idle + 1 if stuck and after - max([F, *path[-1:]]) <= rounding else 0
            converged |= idle == 3
            if not converged:
                self.correct(best, len(path))
            least = min(least, step)
            path.append(max([after, *path[-1:]]))
            report(len(path))
            x = y if converged or len(path) == max_iter else y.scaled(self.dimension)
            F = self.m_step(x)[3]
        certain, (_, noise, a, F) = x.a == math.inf, self.m_step(x)
        self.a = a if certain else x.a
        if self.U is not None:
            x = replace(x, m=self.U @ x.m, g=self.U @ x.g, Lm=self.U @ x.Lm)
        noise = 0.0 if certain else noise
        return x, Component(x.m, x.a, x.trace, noise, np.array(path or [F]), converged)

    def best_combination(self, y: Posterior) -> Posterior:
        """Return the point m = c u that EM in the span of the iterates leads to, or one on the way.

        u is the leading eigenvector of (Z'Z, K_a) in the span, with u'K_a u = 1. With f = u'Z'Z u, w = u'u
        and l = u'Lu, F is largest in c where `e^2 s2 = f Tr S/l`. The best weights then have
        `a = c^2 l/Tr S`, so the right a is the root of one equation in log a, which is sought from that of y.
        """
        self.grows = self.span.append(np.stack([y.m, y.g, y.Lm]))
        within = self.span.eigenvectors()
        last, share, slope = self.share

        @cache
        def at(t: float) -> tuple[float, float, float, Array]:
            """At a = e^t, return log(c^2 l/Tr S) - t, which has the root; c^2; Tr S; and the eigenvectors."""
            a = math.exp(t)
            Z, f, l = within(a)
            f, l, w = max(f, _LEAST), max(l, _LEAST), float(Z[:, -1] @ Z[:, -1])
            trace = math.exp(share + slope * (t - last)) * self.prior.trace(a)
            # A quadratic equation for e: e^2 (|Z|^2 - f/w) + e f Tr S/w = n p f Tr S/l
            square, linear = max(self.square - f / w, 0), f * trace / w
            constant = self.entries * f * trace / l
            e = 2 * constant / max(linear + math.sqrt(linear**2 + 4 * square * constant), _LEAST)
            energy = max(e - trace, _SIGNAL / 10 * trace) / w
            return math.log(energy * (l / trace)) - t, energy, trace, Z

        begin = math.log(max(y.a, _LEAST))
        t, self.gain = root_beyond(lambda t: at(t)[0], begin, self.gain, ROOT_STEP)
        _, energy, trace, Z = at(t)
        m, g, Lm = math.sqrt(energy) * Z[:, -1] @ self.span.filled
        if self.span.full:
            self.span.keep_leading(Z)
        a, sign = math.exp(t), math.copysign(1, m @ y.m)
        m = project_out(sign * m, self.Q)
        return Posterior(m, sign * g, sign * Lm, trace, self.dimension - a * trace, y.logdet, a)

    def correct(self, x: Posterior, steps: int) -> None:
        """Add to the span a direction that leads from x nearly to an eigenvector, if many steps have not.

        It comes from a shifted inverse iteration, where that is available.
        """
        if self.shifted is None:
            return
        d = self.shifted.step(x.a, x.m, x.g, x.Lm, self.Q, steps)
        if d is not None:
            self.grows |= self.span.append(d[None])

    def take(self, near: Array) -> None:
        """Begin with these directions in the span, as they explained much beside an earlier component."""
        V = project_out(near if self.U is None else self.U.T @ near, self.Q)
        for v, g in zip(V.T, self.product(V).T, strict=True):
            if np.linalg.norm(v) > 0.1:
                self.span.append(np.stack([v, g, self.prior.product(v)]))

    def rest(self) -> Array:
        """Return the directions of the span that explain most besides the component found."""
        self.span.keep_leading(self.span.eigenvectors()(self.a)[0])
        V = self.span.filled[0, 1:].T
        return V.copy() if self.U is None else self.U @ V


class WithinSigns(ExpectationMaximization):
    """EM under a diagonal L for loadings with given signs: the posterior of each entry is truncated at 0.

    So is the prior. Half of its mass is left for each variable with a sign, so its density doubles
    (`constant`).
    """

    prior: Diagonal
    supports: Supports

    @cached_property
    def signs(self) -> Array:
        return self.supports.ones(np.arange(self.prior.p)) * (self.supports.signs != 0)

    def e_step(self, x: Posterior) -> Posterior:
        right, a = self.target(x)
        prior = self.prior
        _, m, variances, entropies = within_signs(right, a + prior.diagonal, self.signs)
        logdet = 2 * float(entropies.sum()) - self.dimension * (1 + LOG_2PI)
        prior_trace = float(prior.diagonal @ variances)
        return Posterior(m, self.product(m), prior.product(m), float(variances.sum()), prior_trace, logdet, a)

    def constant(self) -> float:
        """Also return log 2 for each variable with a sign."""
        return super().constant() + math.log(2) * np.count_nonzero(self.signs)

    def start(self, v: Array) -> Posterior:
        v = self.supports.oriented(v)
        return super().start(v if v.any() else self.supports.ones(np.arange(len(v))))

    def best_combination(self, y: Posterior) -> Posterior:
        return y  # a combination of truncated distributions is not truncated


def _leading(G: Array) -> Array:
    """Return the leading eigenvector; for a large matrix to a few digits, which is enough for a start."""
    if len(G) <= LAPACK_ORDER:
        return np.asarray(linalg.eigh(G, subset_by_index=[len(G) - 1] * 2)[1][:, 0])
    start = G[:, np.argmax(G.diagonal())]
    return np.asarray(largest_eigenpairs(G, 1, v0=start, tol=1e-2)[1][:, 0])


def _near_eigenvector(product: Callable[[Array], Array], v: Array, tol: float) -> Callable[[Array], Array]:
    """Return a function that multiplies by the matrix, at no cost for vectors close to the eigenvector v.

    They are replaced by the multiple of v that is nearest.
    """
    v = v / np.linalg.norm(v)
    Av = product(v)

    def near(u: Array) -> Array:
        c = float(v @ u)
        return c * Av if np.linalg.norm(u - c * v) <= tol * abs(c) else product(u)

    return near


def _by_factor(Y: Array, v: Array) -> Array:
    return np.asarray(Y @ (Y.T @ v))


@record
class OnSupport:
    """Where EM on the support S ended.

    `a` and r = Z'x/s2 are the values there. The next support is chosen for them.
    """

    S: Index
    em: ExpectationMaximization
    found: Component
    a: float
    r: Array


@record
class Search:
    """The search for one component: on all variables, or on k of them."""

    residual: Residual
    prior: PriorMatrix
    max_iter: int
    tol: float
    seed: list[int]
    report: Report

    @property
    def problem(self) -> Problem:
        return self.residual.problem

    @property
    def entries(self) -> float:
        """How many entries of data there are, n times the number of variables that are not excluded."""
        return self.residual.n * self.problem.n_variables

    def _best_support(self, r: Array, a: float, k: int) -> Index:
        """Return the support of k variables that is best for r = Z'x/s2 and a."""
        return chosen_support(self.prior, self.problem.supports.within(k), r, a)

    def em(
        self,
        prior: PriorMatrix | Diagonal,
        Q: Array,
        product: Callable[[Array], Array] | None = None,
        signed: Supports | None = None,
    ) -> ExpectationMaximization:
        """Return an EM iteration on the variables of `prior`, orthogonal to Q.

        `product` multiplies by Z'Z between these variables; default, Z'Z itself. `signed` has their signs.
        """
        exact = math.sqrt(eps_of(self.problem.operator.dtype))  # smaller differences are rounding
        kind = ExpectationMaximization
        if signed is not None:
            kind, prior = WithinSigns, Diagonal(prior.diagonal)
        residual = self.residual
        sizes = residual.square, residual.floor, self.entries
        return kind(product or residual.apply, *sizes, prior, Q, exact, signed)

    def start(self) -> Array:
        """Return a start: a random vector after a few steps of power iteration with Z'Z.

        One step is enough if directions near the component are known.
        """
        v = np.random.default_rng(self.seed).standard_normal(self.problem.p)
        for _ in range(1 if self.residual.near.size else 4):
            v = self.residual.apply(v / np.linalg.norm(v))
        return v

    def on_all(self, Q: Array) -> Component:
        """Find a component on all variables, orthogonal to Q."""
        residual, U = self.residual, self.residual.U
        prior = self.prior.rotated if U is not None and isinstance(self.prior, Spectral) else self.prior
        em = self.em(prior, Q)
        if Q.shape[1] and em.U is None:
            em.product = lambda v: project_out(residual.product(v), Q)
        # Without structure, the leading eigenvector is the mean; else what was near the last component may
        # help
        v = residual.leading() if isinstance(self.prior, Isotropic) else None
        if v is None:
            em.take(residual.near)
            em.shifted = residual.shifted = residual.shifted or self._shifted(prior)
        else:
            em.product = _near_eigenvector(em.product, v, self.tol)
        _, found = em.run(self.start() if v is None else v, self.max_iter, self.tol, self.report)
        if v is None:
            residual.near = em.rest()
        m = found.m if U is None else U @ found.m
        return replace(found, m=m, free_energy=found.free_energy + em.constant())

    def _shifted(self, prior: PriorMatrix | Diagonal) -> ShiftedInverse | None:
        """Return shifted inverses for `correct`, for data in memory that are small enough; else None."""
        op = self.residual.op
        order = min(op.p, op.p if op.symmetric_form else op.n)
        if not op.in_memory or isinstance(prior, Isotropic | Spectral):
            return None
        if isinstance(prior, Sparse) and op.p * order > SHIFTED_ENTRIES:
            return None
        return ShiftedInverse(order, self.residual.whole_factor, prior.solve)

    def on_support(self, k: int, state: DeflatedOperator, constrained: bool) -> Component:
        """Find a component of k variables: EM from two supports, of which the better result is returned.

        One support is the one that truncated power finds, the other fits best to EM on all variables. With
        signs, both r and -r give a support. `constrained`: orthogonal to the earlier components.
        """
        supports: list[Index] = []
        state = replace(state, seed=(self.seed[0], self.seed[1] - 1))
        solution = TruncatedPower.from_record(self.problem).find(state, k)
        if solution is not None:
            dense = with_entries(self.problem.p, solution.index, solution.entries)
            supports.append(self.problem.supports.truncated(dense, k))
        em = self.em(self.prior, np.zeros((self.problem.p, 0)))
        x, _ = em.run(self.start(), 30, max(self.tol, 1e-3), self.report)
        r, a = em.target(x)
        supports.append(self._best_support(r, a, k))
        if self.problem.supports.signs is not None:
            supports.append(self._best_support(-r, a, k))
        runs = [self._em_on_support(S, k, constrained) for S in supports]
        found = [run for run in runs if run is not None]
        if not found:
            after = constrained and self.residual.M.size > 0
            left = "is orthogonal to the earlier ones" if after else "has any variance left"
            raise ValueError(f"no loading of {counted(k, 'variable')} {left}")
        best, constant = max(found, key=lambda run: run[0].free_energy[-1])
        return replace(best, free_energy=best.free_energy + constant)

    def gain(self, new: Component, k: int) -> float:
        """Return by how much F exceeds that of noise alone, less what the choices cost.

        The weights are maximized, so each costs log(p)/2. The support of k variables or groups is one of
        many, so it costs the logarithm of their number.
        """
        choices = log_supports(self.problem.supports, np.flatnonzero(new.m), k)
        noise = self.residual.square / self.entries
        alone = -0.5 * self.entries * (LOG_2PI + math.log(noise) + 1)
        return (
            float(new.free_energy[-1])
            - alone
            - 0.5 * self.residual.n * math.log(self.problem.n_variables)
            - choices
        )

    def _em_on_support(self, S: Index, k: int, constrained: bool) -> tuple[Component, float] | None:
        """Run EM on a support, and change it as long as that raises F; return the component and F's constant.

        The next support is the best for r = Z'x/s2 or for a point beyond it, r + reach (r - before), where
        `before` is the r of the support before. The reach doubles each time F rises, and is 0 once F does
        not. The search ends where no other support is better at reach 0. The tolerance is loose at first, and
        that of the caller on the last support.
        """
        path: list[Array] = []
        best: OnSupport | None = None
        before, start = np.zeros(0), np.zeros(0)
        reach, tol = 0.0, max(self.tol, SUPPORT_TOL)
        for _ in range(self.max_iter):
            new = self._em_within(S, start, constrained, tol)
            if new is None:
                break
            # Keep the support if F has risen, and go further in the same direction
            plain = reach == 0
            energies = new.found.free_energy
            if best is None or energies[-1] > path[-1][-1]:
                path.append(energies if best is None else energies[energies >= path[-1][-1]])
                plain, reach = False, 0.0 if best is None else max(1.0, 2 * reach)
                before, best = new.r if best is None else best.r, new
            else:
                reach = 0.0
            # The next support; if none differs, the same one with the final tolerance
            S = self._best_support(best.r + reach * (best.r - before), best.a, k)
            if reach > 0 and np.array_equal(S, best.S):
                reach, S = 0.0, self._best_support(best.r, best.a, k)
            if plain or np.array_equal(S, best.S):
                if tol == self.tol:
                    break
                reach, tol, S, start = 0.0, self.tol, best.S, best.found.m[best.S]
            else:
                start = self.prior.restricted(S).solve(best.a, best.r[S])
        if best is None:
            return None
        return replace(best.found, free_energy=np.concatenate(path)), best.em.constant()

    def _em_within(self, S: Index, start: Array, constrained: bool, tol: float) -> OnSupport | None:
        """Run EM on the support S, from `start`, or from the leading eigenvector if `start` is empty.

        Returns None if no loading on S is orthogonal to the earlier ones, or if nothing is left of its
        variables.
        """
        Q = np.zeros((len(S), 0))
        if constrained and self.residual.M.shape[1]:
            Q = column_span(self.residual.M[S])
            if Q.shape[1] >= len(S):
                return None
        # Z'Z on S, by a factor if that is smaller
        Y = self.residual.factor(S)
        if Y is None:
            G = self.residual.submatrix(S)
            if not G.any():  # nothing is left of variables that must be included
                return None
            product: Callable[[Array], Array] = G.dot
            start = start if len(start) else _leading(G)
        else:
            product = partial(_by_factor, Y)
            start = start if len(start) else Y @ _leading(Y.T @ Y)
        signed = None if self.problem.supports.signs is None else self.problem.supports.on(S)
        em = self.em(self.prior.restricted(S), Q, product, signed)
        if np.linalg.norm(project_out(start, Q)) < 1e-8 * np.linalg.norm(start):
            start = np.random.default_rng(self.seed).standard_normal(len(S))
        x, found = em.run(start, self.max_iter, tol, self.report)
        m = with_entries(self.problem.p, S, x.m)
        e, s2, a, _ = em.m_step(x)
        return OnSupport(S, em, replace(found, m=m), a, self.residual.apply(m) / (e * s2))
