"""The generalized power method: sparse components by an l1 or l0 penalty, one or all at once."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

import numpy as np

from .. import _core
from .._limits import (
    BLOCK_NOISE,
    BLOCK_STILL,
    COLUMN_ENDS,
    COLUMN_STARTS_LEAST,
    GPOWER_ORDER,
    GPOWER_STARTS,
    SAME_ENDS,
    START_WORK,
    SUBSPACE_ROUNDS,
    SUBSPACE_SPARE,
)
from .._messages import warn
from .._records import record, replaced
from .._types import Array, Kind, OperatorLike, Switch, Weights
from .._validation import per_component, positive, require_entries
from ..choice import Choice
from ..linalg.orthogonal import inner_products, polar_factor, tall_product
from ..linalg.scaling import beyond_range, divisor, eps_of, roots
from ..methods import GPower
from ..operators.deflation import DeflatedOperator
from ..operators.problem import Problem
from ..progress import Callback
from ..results import SparseComponent
from ..supports.admissible import Supports
from .base import IterativeSolver, run_one, shared_parameters
from .greedy_search import greedy_or
from .refitting import Step, Steps, refit
from .solution import ProgressClock, ProgressHook, Report, Solution, Tally, drop_zeros, ended
from .solver import Needs, Solver
from .starts import (
    Columns,
    Start,
    ThresholdedEntries,
    from_variable,
    largest_alone,
    power_start,
    promising_columns,
    search_starts,
    tied,
    variance_alone,
)


@record
class GeneralizedPower(IterativeSolver):
    """The generalized power method, of one component or of a block of them."""

    norm: str
    relative: bool
    block: bool
    mu: Any
    name = "gpower"
    sparsity = "penalty"

    @classmethod
    def from_record(cls, problem: Problem, record: GPower) -> Self:
        diagonal = isinstance(record.start, str) and record.start == "diagonal"
        for needed, what in ((record.relative, "relative=True"), (diagonal, "start='diagonal'")):
            if needed:
                require_entries(problem, what)
        return super().from_record(problem, record)

    @classmethod
    def needs(cls, record: GPower) -> Needs:
        return Needs(whole_products=record.block, working_set=not record.block)

    @property
    def _chooses(self) -> bool:
        """Whether the number of starts depends on what they find."""
        return self.start is None and self.n_starts is None

    def solve(self, state: DeflatedOperator, penalty: float) -> Solution | None:
        gamma = float(self._threshold(state, penalty))
        starts = self._starts(state, gamma)
        best = self._search(state, state.operator, starts, gamma)
        if state.quotient:
            ends = [] if best is None else [(best.index, best.entries, ())]
            starts = itertools.chain(ends, self._starts(state, gamma))
            best = self._search(state, state.operator.with_quotient(), starts, gamma)
        if best is not None and self.renormalize and state.constrained:
            size = state.supports.cardinality_with(best.index)
            best = greedy_or(state, best, size, more=len(state.basis))
        return best

    def _search(
        self, state: DeflatedOperator, op: _core.Operator, starts: Iterator[Start], gamma: float
    ) -> Solution | None:
        """Return the best of the runs from all starts, re-fitted if asked.

        Its objective is -inf if the support of no run has a feasible vector. None if the penalty makes every
        run zero.
        """
        l0, rounding = self.norm == "l0", _rounding(op)
        limits = self.max_iter, self.tol, state.hook
        steps = self._steps(state.supports, gamma)
        best, lacking, most, runs = None, None, -math.inf, 0
        agreed, work = 0, 0.0  # runs that ended at the best value, and the multiplications of all
        for tried, (index, entries, _) in enumerate(starts):
            enough = tried >= COLUMN_STARTS_LEAST and work > START_WORK
            if best is not None and (ended(state.hook) or (self._chooses and (agreed > SAME_ENDS or enough))):
                break
            new, objective = steps.ascend(op, index, entries, *limits)
            runs += 1
            if new is None:
                continue
            work += 2.0 * (op.p * len(new.index) if op.symmetric_form else state.problem.cost) * new.n_iter
            first_term = abs(new.objective) if l0 else math.sqrt(abs(new.objective))
            if new.converged and objective <= rounding * first_term:
                continue
            if best is not None and objective <= most + rounding * abs(most):
                agreed += objective >= most - 100 * self.tol * abs(most)
                continue
            if self.renormalize:
                new = refit(state, new)
            if new.objective > -math.inf:
                best, most, agreed = new, objective, 1
            elif best is None:
                lacking = new
        return lacking if best is None else replaced(best, tally=Tally(runs, runs, agreed))

    def _threshold(self, state: DeflatedOperator, penalties: Any, weights: Any = 1.0) -> Any:
        """Return penalties of sqrt(z'Az), or of z'Az with the l0 norm, in the units of the operator."""
        l0 = self.norm == "l0"
        given = np.asarray(penalties, np.float64)
        with beyond_range():
            if self.relative:
                largest = max(float(state.variances.max()), 0.0)
                gamma = given * weights**2 * largest if l0 else given * weights * math.sqrt(largest)
            else:
                samples = state.problem.degrees
                exponent = state.problem.exponent if l0 else state.problem.exponent // 2
                gamma = np.ldexp(given / (samples if l0 else math.sqrt(samples)), -exponent)
        ceiling = math.sqrt(np.finfo(np.float32).max)  # so that products stay finite, on a field too
        return np.minimum(gamma, ceiling)

    def _starts(self, state: DeflatedOperator, gamma: float) -> Iterator[Start]:
        """Yield the nonzeros of starts: variables whose columns promise most, and those of large variance."""
        op, p, diagonal = state.operator, state.p, variance_alone(state)
        if isinstance(self.start, Solution):
            yield self.start.index, self.start.entries, ()
            if self.n_starts == 0:
                return
        elif isinstance(self.start, np.ndarray) or self.start == "eigenvector":
            yield from search_starts(state, p, self.start, None)
            return
        # The most promising columns or, if A is not a matrix in memory, where runs from these end on a field
        count, everything, promising = self.n_starts or 1, np.arange(p), []
        rng = np.random.default_rng(state.seed)
        if self._chooses and diagonal is not None:
            count = min(p, 1 + int(START_WORK / (40 * state.problem.cost)))
            promise = ThresholdedEntries(self.norm == "l0", gamma)
            columns = Columns.of(state)
            if columns is not None and op.symmetric_form and len(columns.among) == p:
                promising = promising_columns(columns.matrix, promise, GPOWER_STARTS).tolist()
                yield from (from_variable(j, op.dtype) for j in promising)
            elif columns is not None:
                steps = self._steps(Supports.any_of(len(columns.among)), gamma)
                ends = columns.ends(promise, GPOWER_STARTS, steps, self.max_iter)
                yield from ends[:COLUMN_ENDS]
        # Variables of large variance, then random vectors
        if diagonal is None:
            yield everything, power_start(op, rng), ()
            count -= 1
        else:
            for j in largest_alone(diagonal, min(count, p), lambda: rng):
                if diagonal[j] > 0 and j not in promising:
                    yield from_variable(j, op.dtype)
                count -= 1
        for _ in range(count):
            yield everything, rng.standard_normal(p).astype(op.dtype), ()

    def _steps(self, supports: Supports, gamma: float) -> Steps:
        """Return the iteration with this threshold."""
        return Steps(supports, Step.L0 if self.norm == "l0" else Step.L1, level=gamma)

    def among_some(self, state: DeflatedOperator, penalty: float) -> tuple[Solver, float] | None:
        """Return the solver for some variables, with the penalty as a number.

        A relative penalty refers to the variable of largest variance, which may not be among them.
        """
        found = super().among_some(state, penalty)
        if found is None:
            return None
        exponent, l0 = state.problem.exponent, self.norm == "l0"
        gamma = float(self._threshold(state, penalty))
        if l0:
            penalty = math.ldexp(gamma * state.problem.degrees, exponent)
        else:
            penalty = math.ldexp(gamma * math.sqrt(state.problem.degrees), exponent // 2)
        return replaced(found[0], relative=False), penalty

    def level(self, state: DeflatedOperator, x: Solution, penalty: float) -> float | None:
        gamma = float(self._threshold(state, penalty))
        threshold = math.sqrt(gamma) if self.norm == "l0" else gamma
        quadratic = state.quadratic(x.index, x.entries)
        return threshold * math.sqrt(quadratic) if threshold > 0 and quadratic > 0 else None

    def together(
        self, problem: Problem, penalties: Sequence[float], seed: list[int], hook: ProgressHook | None
    ) -> list[Solution] | None:
        """Return the components of a block, without those that the penalty makes zero.

        Together they have the largest objective over U with orthonormal columns (Journee et al. 2010,
        sections 2.3 and 2.4, algorithms 4 and 5). With S = F'F, c_ij = F_i'u_j, weights mu_j and thresholds
        gamma_j, the objectives are

            l1:  max sum_ij (mu_j |c_ij| - gamma_j)_+^2      l0:  max sum_ij ((mu_j c_ij)^2 - gamma_j)_+

        U <- the polar factor of F W, where w_j is the gradient by c_j. So only C = A W (W'A W)^(-1/2) is
        needed. The objective is convex in U, hence it never decreases.
        """
        if not self.block:
            return None
        op, m = problem.operator, len(penalties)
        mu = _weights(self.mu, m)
        gamma = self._threshold(DeflatedOperator.from_problem(problem), penalties, mu)
        l0 = self.norm == "l0"

        def threshold(C: Array) -> tuple[Array, float]:
            B = mu * C
            if l0:
                excess = B**2 - gamma
                return mu * np.where(excess > 0, B, 0), float(np.maximum(excess, 0).sum())
            T = np.maximum(np.abs(B) - gamma, 0)
            return mu * np.copysign(T, B), float((T**2).sum())

        best: _Block | None = None
        for W in _block_starts(problem, m, self, seed):
            if best is not None and ended(hook):
                break
            new = _ascend(op, W, threshold, self, hook)
            if best is None or new.objective > best.objective * (1 + _rounding(op)):
                best = new
        assert best is not None
        if self.renormalize and best.W.any():
            best = _fill(op, best, mu, self, hook)
        return _components(problem, best)


def _rounding(op: _core.Operator) -> float:
    """Return the share by which objectives may differ through rounding alone."""
    return BLOCK_NOISE.of(op.dtype)


@shared_parameters
def gpower(
    X: OperatorLike, penalty: float | None = None, *,
    options: GPower | None = None, choice: Choice | None = None,
    kind: Kind = "data", center: Switch = True, scale: Switch = False, sample_weight: Weights = None,
    callback: Callback | None = None,
) -> SparseComponent:  # fmt: skip
    """One sparse principal component by the generalized power method.

    Searches, over unit z and with `S = X'X` of the centered data,

        max sqrt(z'Sz) - penalty ||z||_1      (norm "l1"),
        max z'Sz - penalty ||z||_0            (norm "l0"),

    by `u <- Xz/||Xz||`, `z <-` the entries of `X'u` beyond the threshold `penalty` (l1: diminished by it;
    l0: those whose square exceeds it), normalized. The objective never decreases along a run.

    Parameters
    ----------
    X : array-like of shape (n, p), sparse matrix or LinearOperator
        Data, one row per sample; with ``kind="covariance"`` a symmetric positive semidefinite (p, p)
        matrix, which is S itself: the Gram matrix of centered data takes the same penalty as the data,
        their covariance one divided by `sqrt(n - 1)` (l1) or `n - 1` (l0).
    penalty : float
        At least 0. 0 is the power method. A penalty of at least the largest column norm of X (l1), or its
        square (l0), forces every loading to zero.
    options : GPower, optional
        Options of the search, which the documentation of the record explains.
    {common}

    Returns
    -------
    SparseComponent
        `loading` (p,), `value` (the variance `z'Az`, in units of the covariance matrix `A`),
        `cardinality`, `n_iter`, `converged`, `method`. Where the penalty forces every entry to zero,
        the loading is zero, its value and cardinality are 0, and a RuntimeWarning is given.

    Raises
    ------
    ValueError
        For NaN, infinite or empty input, a covariance that is not symmetric positive semidefinite, or
        an option out of range.
    {type_error}

    References
    ----------
    M. Journee, Yu. Nesterov, P. Richtarik and R. Sepulchre (2010). Generalized power method for sparse
    principal component analysis. Journal of Machine Learning Research 11, 517-553, sections 2.1 and
    2.2, algorithms 2 and 3.

    {pitprops}
    >>> x = spcacore.gpower(pitprops.correlation, 0.3, kind="covariance")
    >>> print(f"{x.value:.4f}", [name for name, w in zip(pitprops.names, x.loading) if w])
    3.9962 ['topdiam', 'length', 'ringtop', 'ringbut', 'bowmax', 'bowdist', 'whorls']
    """
    run = run_one(
        GeneralizedPower, options, X, penalty, choice, callback, kind, center, scale,
        sample_weight, True,
    )  # fmt: skip
    problem = run.state.problem
    if run.found is None and (problem.diagonal is None or problem.diagonal.any()):
        warn("the penalty is too large: every loading is zero")
        return run.result(Solution(np.empty(0, np.intp), np.empty(0), 0.0))
    return run.component()


# ---- all components at once -------------------------------------------------------------------------


def _weights(mu: Any, m: int) -> Array:
    """Return one positive weight for each component."""
    return np.array(per_component(1.0 if mu is None else mu, "mu", m, positive))


@record
class _Block:
    """Where a run for all components ended: W, p x m, whose columns become the loadings."""

    W: Array
    objective: float
    n_iter: int
    converged: bool


def _ascend(
    op: _core.Operator,
    W: Array,
    step: Callable[[Array], tuple[Array, float]],
    solver: GeneralizedPower,
    hook: Report | None,
) -> _Block:
    """Iterate W <- step(C), where C = F'U and U is the polar factor of F W, while the objective grows.

    `step` returns the new W and the objective. Where rounding hides a gain of the tolerance, the iteration
    goes on while W moves, as runs for one component do (ascent.h).
    """
    rounding = 64 * eps_of(op.dtype)
    tol = max(solver.tol, rounding)
    W, previous = step(_projections(op, W))
    clock = ProgressClock(hook)
    for n_iter in range(1, solver.max_iter + 1):
        if clock(n_iter):
            return _Block(W, previous, n_iter - 1, False)
        new, objective = step(_projections(op, W))
        stable = np.array_equal(new != 0, W != 0)
        rests = objective - previous <= (tol if stable else rounding) * objective
        moved = np.square(new - W).sum() > max(solver.tol, BLOCK_STILL) * np.square(new).sum()
        W = new
        if rests and (solver.tol >= rounding or not moved):
            return _Block(W, objective, n_iter, True)
        previous = objective
    return _Block(W, previous, solver.max_iter, False)


def _projections(op: _core.Operator, W: Array) -> Array:
    """Return C = F'U, where U is the polar factor of F W, on the columns of F W that are not zero.

    Let F W = V D with unit columns in V, and V'V = E diag(h) E'. Then V E h^(-1/2) has orthonormal columns,
    and the polar factor is that times the polar factor of h^(1/2) E'D. This is accurate for any ratio of the
    columns' norms.
    """
    # F W by columns: their norms, and the angles between them
    largest = np.abs(W).max(axis=0)
    V = (W / divisor(largest)).astype(op.dtype)
    Y = op.apply_block(V).astype(np.float64)
    G = inner_products(V, Y)
    size = roots(np.diagonal(G))
    alive = size > 0
    C = np.zeros(W.shape)
    if not alive.any():
        return C
    # V'V = E diag(h) E', and the polar factor of h^(1/2) E'D
    one = 1 / size[alive]
    h, E = np.linalg.eigh((G + G.T)[np.ix_(alive, alive)] / 2 * np.outer(one, one))
    kept = h > 8 * len(h) * eps_of(op.dtype)
    root, E = np.sqrt(h[kept]), E[:, kept]
    turn = polar_factor(root[:, None] * E.T * (largest * size)[alive])
    C[:, alive] = tall_product(Y[:, alive], (one[:, None] * E / root) @ turn)
    return C


def _fill(
    op: _core.Operator, found: _Block, mu: Array, solver: GeneralizedPower, hook: Report | None
) -> _Block:
    """Return the values on the supports that maximize Tr(U'F Z diag(mu)) over U'U = I and unit z_j.

    This is the authors' pattern filling for several components. Components with the same support stay
    different; if each were re-fitted by itself, they would not.
    """
    pattern = found.W != 0

    def within(C: Array) -> tuple[Array, float]:
        Z = np.where(pattern, mu * C, 0)
        norm = np.linalg.norm(Z, axis=0)
        return mu * Z / divisor(norm), float(norm.sum())

    filled = _ascend(op, found.W, within, solver, hook)
    return _Block(
        filled.W, filled.objective, found.n_iter + filled.n_iter, found.converged and filled.converged
    )


def _components(problem: Problem, found: _Block) -> list[Solution]:
    """Return the columns that are not zero, as unit loadings with their variances."""
    op, out = problem.operator, []
    for w in found.W.T:
        index = np.flatnonzero(w)
        if len(index) == 0:
            continue
        value = (w[index] / np.abs(w).max()).astype(op.dtype)
        value /= np.sqrt(np.square(value).sum())
        variance = float(value @ op.apply(index, value)[index])
        new = drop_zeros(Solution(index, value, variance, found.n_iter, found.converged))
        if new is not None and new.objective > problem.noise(index):
            out.append(new)
    return out


def _block_starts(problem: Problem, m: int, solver: GeneralizedPower, seed: list[int]) -> Iterator[Array]:
    """Yield p x m matrices to start from: columns of large variance, leading eigenvectors, random ones."""
    op, p = problem.operator, problem.p
    rng = np.random.default_rng(seed)

    def each() -> Iterator[Array]:
        if problem.diagonal is not None and solver.start != "eigenvector":
            yield _columns(problem, m, rng)
        if solver.start != "diagonal":
            yield _eigenvectors(op, m, rng)
        while True:
            yield rng.standard_normal((p, m))

    one = solver.start is not None
    yield from itertools.islice(each(), 1 if one else solver.n_starts or 1 + (problem.diagonal is not None))


def _columns(problem: Problem, m: int, rng: np.random.Generator) -> Array:
    """Return unit vectors for the m variables that explain most, each given those taken before."""
    op, p = problem.operator, problem.p
    index = largest_alone(tied(problem.variances), min(p, 4 * m), lambda: rng)
    G = op.submatrix(index).astype(np.float64)
    W = np.zeros((p, m))
    for t in range(m):
        j = int(np.argmax(tied(np.diagonal(G))))
        W[index[j], t] = 1
        if G[j, j] > 0:
            G = G - np.outer(G[:, j], G[j]) / G[j, j]
    return W


def _eigenvectors(op: _core.Operator, m: int, rng: np.random.Generator) -> Array:
    """Return the m leading eigenvectors of A; if A is large, to a few digits by subspace iteration."""
    p = op.p
    small = p <= max(GPOWER_ORDER, m + SUBSPACE_SPARE)
    C = np.eye(p) if small else rng.standard_normal((p, m + SUBSPACE_SPARE))
    for _ in range(1 if small else SUBSPACE_ROUNDS):
        C = _projections(op, C)
    return tall_product(C, np.linalg.eigh(inner_products(C))[1][:, ::-1][:, :m])
