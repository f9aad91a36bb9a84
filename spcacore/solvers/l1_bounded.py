"""One component whose loading has a bounded l1 norm: the penalized matrix decomposition, and SCoTLASS."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from .. import _core
from .._labels import columns_of
from .._limits import (
    COLUMN_ENDS,
    COLUMN_LEAST,
    COLUMN_STARTS,
    CONTINUATION,
    PMD_ITERATIONS,
    REFIT_RISE,
)
from .._records import record, replaced
from .._types import AnyArray, Array, Index, Kind, Names, OperatorLike, Switch, Weights
from .._validation import check_l1_bound, real_array
from ..choice import Choice
from ..linalg.orthogonal import unit_columns
from ..linalg.scaling import below_range, with_entries
from ..methods import PMD, SCoTLASS
from ..operators.deflation import DeflatedOperator
from ..operators.gram import largest_submatrix
from ..operators.problem import Problem
from ..progress import Callback
from ..results import PMDComponent, SparseComponent
from ..supports.admissible import Supports
from .base import IterativeSolver, begun, run_one, shared_parameters
from .refitting import Step, Steps, best_of_bounded, penalty_continuation
from .solution import Solution
from .solver import Needs, Solver
from .starts import Columns, LargestEntries, Start, fewest_nonzeros, search_starts


@record
class BoundedSolver(IterativeSolver):
    """A solver whose loading has a bounded l1 norm."""

    sparsity = "l1_bound"

    def begin(self, state: DeflatedOperator, l1_bound: float) -> Iterator[Start]:
        """Yield the starts: by default where runs from the most promising columns end.

        Promise is for the fewest nonzeros that the l1 bound allows. Other starts are those of
        `search_starts`.
        """
        op, p, start, n_starts = state.operator, state.p, self.start, self.n_starts
        k = min(fewest_nonzeros(l1_bound), p, largest_submatrix(op))
        usual = start is None and n_starts is None and not (state.supports.shapes or state.constrained)
        columns = Columns.of(state) if usual and p > COLUMN_LEAST else None
        if columns is not None:
            steps = Steps(Supports.any_of(len(columns.among)), Step.L1_BOUND, level=l1_bound)
            limit = min(self.max_iter, PMD_ITERATIONS)
            ends = columns.ends(LargestEntries(k), COLUMN_STARTS, steps, limit)
            yield from ends[:COLUMN_ENDS]
            n_starts = 1 if ends else None
        width = p if isinstance(start, np.ndarray) else k
        yield from search_starts(state, width, start, n_starts)


@record
class PenalizedDecomposition(BoundedSolver):
    """The penalized matrix decomposition, one-way or two-way."""

    name = "pmd"
    missing = True
    nonnegative_kernel = True

    @classmethod
    def from_record(cls, problem: Problem, record: PMD) -> Self:
        bound = record.sample_l1_bound
        if bound is not None:
            if problem.n_samples is None:
                raise ValueError("sample_l1_bound needs data; a covariance has no samples")
            if problem.operator.symmetric_form:
                raise ValueError("sample_l1_bound needs the data in memory, and X is in blocks of rows")
            bound = check_l1_bound(bound, "sample_l1_bound", problem.n_samples)
        return replaced(super().from_record(problem, record), sample_l1_bound=bound)

    @classmethod
    def needs(cls, record: PMD) -> Needs:
        two_way = record.sample_l1_bound is not None
        return Needs(whole_products=two_way, samples=two_way, working_set=not two_way)

    def level(self, state: DeflatedOperator, x: Solution, l1_bound: float) -> float | None:
        y = state.operator.apply(x.index, np.ascontiguousarray(x.entries))
        return _core.l1_threshold(y, l1_bound, state.supports.positive, np.empty_like(y))

    def solve(self, state: DeflatedOperator, l1_bound: float) -> Solution | None:
        """Return the best of the runs; a constraint is met by runs with growing penalties after each."""
        op, two_way = state.operator, self.sample_l1_bound is not None
        if two_way and not state.deflation.semidefinite:
            raise ValueError(
                f"sample_l1_bound needs data, and {state.deflation.name!r} deflation has no data form"
            )
        sample_bound = min(self.sample_l1_bound or 0.0, math.sqrt(op.n))  # the rows may be fewer; 0: no bound
        supports = state.supports
        weights = () if two_way else CONTINUATION  # two-way steps take no penalty
        if supports.shapes and two_way:
            raise ValueError("sample_l1_bound cannot be combined with include, groups or signs of variables")

        steps = Steps(supports, Step.L1_BOUND, level=l1_bound, samples=sample_bound)

        def ascend(op: _core.Operator, index: Index, entries: AnyArray) -> Solution | None:
            return steps.ascend(op, index, entries, self.max_iter, self.tol, state.hook)[0]

        def run(*start: Any) -> Solution | None:
            x = ascend(*start[:3])
            return None if x is None else penalty_continuation(state, x, ascend, weights)

        begin = partial(self.begin, state, l1_bound)
        best = best_of_bounded(state, begin, run, self.renormalize)
        if two_way and best is not None:  # the objective was u'F v
            best = replace(best, objective=state.objective(best.index, best.entries))
        return best


def left_vector(state: DeflatedOperator, x: Solution, bound: float | None) -> tuple[AnyArray, float]:
    """Return u, of bounded l1 norm, and u'F v in the units of F, for the loading v = x."""
    f = state.operator.forward(x.index, np.ascontiguousarray(x.entries))
    u, root = np.empty_like(f), math.sqrt(len(f))
    _core.l1_threshold(f, min(bound or root, root), 0, u)
    return u, float(u.astype(np.float64) @ f)


@shared_parameters
def pmd(
    X: OperatorLike, l1_bound: float | None = None, *,
    options: PMD | None = None, choice: Choice | None = None,
    kind: Kind = "data", center: Switch = True, scale: Switch = False, sample_weight: Weights = None,
    callback: Callback | None = None,
) -> PMDComponent:  # fmt: skip
    """One sparse principal component by the penalized matrix decomposition.

    Searches `max u'Xv` subject to `||u|| = ||v|| = 1` and `||v||_1 <= l1_bound`, with X centered and, if
    requested, scaled (the SPC criterion), by `u <- Xv/||Xv||` and v <- the soft threshold of `X'u` at the
    bound, from several starts. That is `max v'Av` over the same v, with the covariance matrix `A`, so a
    covariance serves as well. The objective never decreases along a run; the best run is returned.

    Parameters
    ----------
    X : array-like of shape (n, p), sparse matrix or LinearOperator
        Data, one row per sample; with ``kind="covariance"`` a symmetric (p, p) matrix, which may be
        indefinite (the iteration then works on a shifted matrix), or a LinearOperator. float32 and
        float64 arrays in C or Fortran order, and CSR and CSC matrices, are not copied. Dense data may have
        NaN entries, which are left out of all sums: those for the column means, the standard deviations and
        the products. Such data are copied once, centered and scaled, and not screened.
    l1_bound : float
        Bound on the l1 norm of the loading, in [1, sqrt(p)]: 1 allows a single variable, sqrt(p) is no
        bound.
    options : PMD, optional
        Options of the search, which the documentation of the record explains.
    {common}

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
    {type_error}

    References
    ----------
    D. M. Witten, R. Tibshirani and T. Hastie (2009). A penalized matrix decomposition, with
    applications to sparse principal components and canonical correlation analysis. Biostatistics
    10(3), 515-534, algorithm 3 and sections 2.2 to 3.2.

    {pitprops}
    >>> x = spcacore.pmd(
    ...     pitprops.correlation, 1.8, kind="covariance", options=spcacore.PMD(renormalize=False)
    ... )
    >>> x
    PMDComponent(method='pmd', p=13, cardinality=5, value=2.64461, converged in 59 iterations)
    >>> round(float(abs(x.loading).sum()), 6)
    1.8
    """
    run = run_one(
        PenalizedDecomposition, options, X, l1_bound, choice, callback, kind, center, scale, sample_weight
    )  # fmt: skip
    problem, found = run.state.problem, run.found
    component = run.component()
    before = problem.data or problem
    data = problem.n_samples is not None and not before.operator.symmetric_form
    left = np.zeros(problem.n_samples or 0, problem.operator.dtype) if data else None
    strength = 0.0
    if found is not None and found.objective > problem.noise(found.index):
        if data:
            whole = DeflatedOperator.from_problem(before)
            left, strength = left_vector(whole, found, run.solver.sample_l1_bound)
            strength *= math.sqrt(problem.degrees / max(len(left) - 1, 1))  # of the rows that each stands for
        else:
            strength = math.sqrt(found.objective) * math.sqrt(problem.degrees)
    with below_range():
        strength = float(np.ldexp(strength, problem.exponent // 2))
    return PMDComponent(**vars(component), sample_loading=left, strength=strength)


# ---- SCoTLASS: orthogonal to the earlier loadings, too ------------------------------------------------


@record
class LassoComponent(BoundedSolver):
    """SCoTLASS: the l1 bound and orthogonality to the earlier loadings, met exactly in each step."""

    name = "scotlass"
    usual_needs: ClassVar[Needs] = Needs(whole_products=True, working_set=True)
    orthogonal = True

    def solve(self, state: DeflatedOperator, l1_bound: float) -> Solution | None:
        """Return the best of the runs, in which each step keeps the l1 bound and Q'x = 0 exactly."""
        op = state.operator
        if not state.quotient:
            state = state.orthogonal()
        Q, supports = _columns_of(state), state.supports

        def run(
            operator: _core.Operator, index: Index, entries: AnyArray, _: tuple[int, ...]
        ) -> Solution | None:
            steps = Steps(supports, Step.L1_BOUND, level=l1_bound, Q=Q if operator is op else Q[:, :0])
            return steps.ascend(operator, index, entries, self.max_iter, self.tol, state.hook)[0]

        begin = partial(self.begin, state, l1_bound)
        signed = supports.signs is not None and state.constrained
        best = best_of_bounded(state, begin, run, self.renormalize and not signed)
        if signed and self.renormalize and best is not None:
            steps = Steps(supports.only(best.index), Step.L1_BOUND, level=math.sqrt(op.p), Q=Q)
            x, _ = steps.ascend(op, best.index, best.entries, self.max_iter, self.tol, state.hook)
            if x is not None and x.objective > best.objective:
                best = best.moved_to(x)
        return best

    def among_some(self, state: DeflatedOperator, l1_bound: float) -> tuple[Solver, Any] | None:
        """Return the solver for some variables; None if components are to be uncorrelated.

        Earlier loadings are in the set, so orthogonality to them changes no product outside of it.
        """
        found = super().among_some(replace(state, constraint=None), l1_bound)
        return None if state.constraint == "uncorrelated" else found

    def level(self, state: DeflatedOperator, x: Solution, l1_bound: float) -> float | None:
        """Return the l1 threshold of b = A x - Q mu, or None if b does not reproduce the next step.

        mu solves ||s|| w_S + level sign(w_S) = b_S for the next w.
        """
        op, Q = state.operator, _columns_of(state.orthogonal())
        dense = with_entries(op.p, x.index, x.entries, op.dtype)
        y = op.apply(x.index, np.ascontiguousarray(x.entries))
        status, w, _, _ = op.scotlass(dense, Q, l1_bound, 1, self.tol, None)
        S = np.flatnonzero(w)
        if status < 0 or len(S) == 0:
            return None
        unknown = np.column_stack([w[S], np.sign(w[S]), Q[S]])
        b = y - Q @ np.linalg.lstsq(unknown, y[S], rcond=None)[0][2:]
        same = np.empty_like(y)
        level = _core.l1_threshold(np.ascontiguousarray(b), l1_bound, 0, same)
        return level if np.abs(same - w).max() <= REFIT_RISE.of(op.dtype) ** 0.5 else None


@shared_parameters
def scotlass(
    X: OperatorLike, l1_bound: float | None = None, *,
    earlier: ArrayLike | None = None,
    options: SCoTLASS | None = None, choice: Choice | None = None,
    kind: Kind = "data", center: Switch = True, scale: Switch = False, sample_weight: Weights = None,
    callback: Callback | None = None,
) -> SparseComponent:  # fmt: skip
    """One sparse principal component of bounded l1 norm, orthogonal to earlier loadings.

    Searches `max v'Av` subject to `||v|| = 1`, `||v||_1 <= l1_bound` and `v'x = 0` for every earlier
    loading x, where `A` is the covariance matrix. Each iteration maximizes `(Av)'w` over these w
    exactly. The objective never decreases along a run; the best run from several starts is
    returned. Without earlier loadings it is the criterion of `pmd`.

    Parameters
    ----------
    X : array-like of shape (n, p), sparse matrix or LinearOperator
        Data, one row per sample; with ``kind="covariance"`` a symmetric (p, p) matrix, which may be
        indefinite (the iteration then works on a shifted matrix), or a LinearOperator.
        float32 and float64 arrays in C or Fortran order, and CSR and CSC matrices, are not copied.
    l1_bound : float
        Bound on the l1 norm of the loading, in [1, sqrt(p)]. Near 1 only nearly single variables
        meet it, and none of them may be orthogonal to the earlier loadings.
    earlier : array-like of shape (p, t), optional
        The earlier loadings, of any norm.
    options : SCoTLASS, optional
        Options of the search, which the documentation of the record explains.
    {common}

    Returns
    -------
    SparseComponent
        `loading` (p,), `value`, `cardinality`, `n_iter`, `converged`, `method`. For a matrix
        without any variance the loading is the first unit vector, the value 0, and a RuntimeWarning is given.

    Raises
    ------
    ValueError
        For NaN, infinite or empty input, an asymmetric covariance, an option out of range, or where
        no start leads to a unit vector that is within the bound and orthogonal to the earlier
        loadings.
    {type_error}

    References
    ----------
    I. T. Jolliffe, N. T. Trendafilov and M. Uddin (2003). A modified principal component technique
    based on the LASSO. Journal of Computational and Graphical Statistics 12(3), 531-547,
    equations 4 to 6.

    Examples
    --------
    >>> import spcacore
    >>> A = spcacore.datasets.load_pitprops().correlation
    >>> x = spcacore.scotlass(A, 1.8, kind="covariance", options=spcacore.SCoTLASS(renormalize=False))
    >>> y = spcacore.scotlass(
    ...     A,
    ...     1.8,
    ...     earlier=x.loading[:, None],
    ...     kind="covariance",
    ...     options=spcacore.SCoTLASS(renormalize=False),
    ... )
    >>> x.cardinality, y.cardinality, round(x.value, 4), round(y.value, 4)
    (5, 6, 2.6446, 2.1679)
    >>> bool(abs(x.loading @ y.loading) < 1e-10)
    True
    """

    run = begun(
        LassoComponent, options, X, l1_bound, choice, callback, kind, center, scale, sample_weight
    )  # fmt: skip
    state = replace(run.state, constraint="orthogonal")
    for x in _columns(earlier, state.p, columns_of(X)):
        x = np.where(state.supports.excluded, 0, x)
        index = np.flatnonzero(x)
        state = state.deflate(index, x[index].astype(state.operator.dtype), noise=lambda index: 0.0)
    run = replace(run, state=state, found=run.solver.find(state, run.cardinality))
    if run.found is None and run.state.basis:
        raise ValueError(
            f"no unit vector of l1 norm at most {run.cardinality:g} that is orthogonal to the earlier "
            "loadings was found; raise l1_bound"
        )
    return run.component()


def _columns(earlier: Any, p: int, names: Names) -> Array:
    """Return the columns of `earlier`, as rows of unit norm."""
    if earlier is None:
        return np.empty((0, p))
    E = real_array(earlier, "earlier", ndim=2, shape=(p, "t"), empty=True, labels=names).astype(np.float64)
    used = E.any(axis=0)
    if not used.all():
        raise ValueError(f"column {int(np.argmin(used))} of earlier is the zero vector")
    return unit_columns(E).T


def _columns_of(state: DeflatedOperator) -> AnyArray:
    """Return Q, p x t, whose columns are the basis of what the state has removed."""
    return np.array(state.basis, state.operator.dtype).reshape(-1, state.p).T
