"""Least squares components: the score of few variables that explains most of all of them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar, Self

import numpy as np

from .._limits import (
    CHOICE_ORDER,
    GREEDY_PENALTIES,
    LEAST_SQUARES_EXACT_ORDER,
    LEAST_SQUARES_SWAP_WORK,
    NULL_WEIGHT,
    PENCIL_BACKWARD_ORDER,
    PENCIL_NULL,
    RISE,
    SIGNED_ORDER,
    USUAL_BACKWARD_ORDER,
)
from .._records import record
from .._types import Index, Kind, MatrixLike, Switch, Weights
from .._validation import require_entries
from ..choice import Choice, Explained
from ..linalg.eigen import PencilBasis, all_eigenpairs
from ..linalg.scaling import eps_of
from ..methods import LeastSquares
from ..objectives.ratio import Ratio, RatioOfUnits, Support
from ..operators.deflation import DEFLATIONS, DeflatedOperator
from ..operators.problem import Problem
from ..progress import Callback
from ..results import SparseComponent
from ..supports.admissible import Supports, Units
from ..supports.search import Steps, backward, growing, swap
from ..supports.tree import prove
from .base import refuse_costly, run_one, shared_parameters
from .solution import Ended, ProgressClock, ProgressHook, Report, Solution, drop_zeros, ended
from .solver import Needs, Solver, bisect, least_share


@record
class LeastSquaresSolver(Solver):
    """The largest x'A^2 x/x'Ax: the variance of all variables that a regression on the score X x explains.

    G. M. Merola (2015). Least squares sparse principal component analysis: a backward elimination approach to
    attain large loadings. Australian & New Zealand Journal of Statistics 57(3), 391-429. G. M. Merola and G.
    Chen (2019). Projection sparse principal component analysis: an efficient least squares method. Journal of
    Multivariate Analysis 173, 366-382.
    """

    strategy: str
    time_limit: float
    node_limit: float
    name = "least_squares"
    objective = "least_squares"
    default_deflation = "schur"
    usual_needs: ClassVar[Needs] = Needs(whole_products=True)
    takes_share = True

    @classmethod
    def from_record(cls, problem: Problem, record: LeastSquares) -> Self:
        require_entries(problem, "least_squares")
        refuse_costly(record.strategy, problem.p, PENCIL_BACKWARD_ORDER)
        refuse_costly(record.strategy, problem.p, LEAST_SQUARES_EXACT_ORDER, ("exact",))
        return super().from_record(problem, record)

    def solve(self, state: DeflatedOperator, sparsity: int | Explained) -> Solution | None:
        """Return the best component of a cardinality or, by bisection, the smallest that explains a share."""
        if isinstance(state.hook, ProgressHook) and state.hook.whole and state.hook.ended:
            raise Ended
        of = sparsity.of if isinstance(sparsity, Explained) else None
        search = LeastSquaresSearch(self, state, of == "score")
        if not isinstance(sparsity, Explained):
            return search.unless_rounding(search.solve(sparsity, self.nearby))
        least = least_share(sparsity, state) * search.ratio.largest
        enough = search.enough(least)
        if enough is None:
            return None
        fewest = state.supports.bounds[0]
        found = bisect(search.solve, lambda x: x.objective >= least, fewest, enough, state.hook)
        found = search.unless_rounding(found)
        return found if found is None or of == "variance" else _of_all_variables(state, found)


def _of_all_variables(state: DeflatedOperator, x: Solution) -> Solution:
    """Return x with x'A^2x/x'Ax as its objective, after a search for the share of one score."""
    square = state.operator.apply(x.index, np.ascontiguousarray(x.entries)).astype(np.float64)
    return replace(x, objective=float(square @ square / (square[x.index] @ x.entries)), upper_bound=None)


class LeastSquaresSearch:
    """The search in one matrix, with what it keeps for several cardinalities."""

    solver: LeastSquaresSolver
    problem: Problem
    hook: Report | None

    def __init__(self, solver: LeastSquaresSolver, state: DeflatedOperator, of_score: bool = False):
        self.solver, self.problem, self.hook = solver, state.problem, state.hook
        self.steps: Steps = Steps(ProgressClock(state.hook))
        self.state: DeflatedOperator = state
        if state.constraint == "uncorrelated":  # if Q'x = 0, Schur's deflation has the same x'Ax and Ax
            self.state = DeflatedOperator.from_problem(state.problem, DEFLATIONS["schur"])
            for index, entries in state.loadings:
                self.state = self.state.deflate(index, entries)
        self.Q = np.stack(state.basis).astype(np.float64) if state.constrained else None
        self.penalties: tuple[float, ...] = GREEDY_PENALTIES if state.constrained else (0.0,)
        self.ratio: Ratio = Ratio(self.state)
        if of_score and self.ratio.usable.any():
            self.ratio = self.ratio.of_score()
        supports = state.supports
        self.supports: Supports = supports.among(
            supports.mask(np.flatnonzero(self.ratio.usable)) | supports.included
        )
        self._ratios: dict[tuple[float, bool, int], RatioOfUnits] = {}
        self._paths: dict[RatioOfUnits, tuple[list[Units], Iterator[Units]]] = {}

    def solve(self, k: int, start: Solution | None = None) -> Solution | None:
        """Return the best component of k variables found; None where nothing is left, or nothing feasible."""
        if not self.ratio.usable.any():
            return None
        if self.solver.strategy == "exact" and self.supports.signs is not None:
            most = self.supports.most_variables(k)
            if most > SIGNED_ORDER:
                raise ValueError(
                    f"strategy='exact' proves loadings of given signs of at most {SIGNED_ORDER} variables, "
                    f"not {most}"
                )
        best = None
        for x in self._supports(k, start):
            if best is None or x.value > best.value * (1 + RISE):
                best = x
        if best is None:
            return None
        converged, upper = not ended(self.hook), None
        if self.solver.strategy == "exact":
            best, upper, converged = self._proved(best, k)
        size = float(np.linalg.norm(best.x))
        entries = (best.x / size).astype(self.ratio.dtype)
        found = Solution(best.index, entries, best.value, best.n_iter, converged, upper)
        return drop_zeros(found)

    def unless_rounding(self, x: Solution | None) -> Solution | None:
        """Return the component, or None where it may be rounding alone.

        Earlier components that Schur's deflation removed enlarge errors by a factor: the largest variance
        over the least variance that one of them had given the others, a pivot of V'AV.
        """
        earlier, op, raised = self.state.loadings, self.problem.operator, 1.0
        if x is None or self.problem.diagonal is None:
            return x
        if earlier and self.state.deflation.update == "schur":
            images = [op.apply(index, np.ascontiguousarray(v)).astype(np.float64) for index, v in earlier]
            G = np.array([[v @ image[index] for image in images] for index, v in earlier])
            G += np.eye(len(G)) * G.trace() * eps_of(op.dtype)
            raised += float(self.problem.diagonal.max() / np.linalg.cholesky(G).diagonal().min() ** 2)
        return x if x.objective > raised * self.problem.noise(x.index, True) else None

    def enough(self, value: float) -> int | None:
        """Return a cardinality at which forward search reaches a value; the largest one if it never does."""
        if not self.ratio.usable.any():
            return None
        objective = self._objective(self.penalties[-1], False, self.supports.bounds[1])
        for units in self._path(objective):
            k = int(self.supports.size[units].sum())
            if objective.value(units) >= value:
                fitted = self.refit(objective.usable(units))
                if fitted is not None and fitted.value >= value:
                    return k
        return self.supports.bounds[1]

    def _objective(self, weight: float, of_score: bool, k: int) -> RatioOfUnits:
        """Return the ratio as an objective on supports of up to k, and keep it.

        `weight` is that of the penalty on the span of earlier components.
        """
        found = self._ratios.get((weight, of_score, k))
        if found is None:
            ratio = self.ratio.of_score() if of_score else self.ratio
            found = RatioOfUnits(ratio.penalized(self.Q, weight), self.supports.within(k))
            self._ratios[weight, of_score, k] = found
        return found

    def _path(self, objective: RatioOfUnits) -> Iterator[Units]:
        """Yield the supports of forward search, which are kept for the next call."""
        if objective not in self._paths:
            self._paths[objective] = [], growing(objective, objective.supports.included)
        found, path = self._paths[objective]
        yield from found
        for units in path:
            found.append(units)
            yield units
            if self.steps(1):
                return

    def _forward(self, weight: float, of_score: bool, k: int) -> Units:
        """Return the support of forward search with a cardinality of up to k.

        One path serves all k, unless units of different size share the room.
        """
        shared = self.supports.counts_variables
        objective = self._objective(weight, of_score, k if shared else self.supports.bounds[1])
        units = self.supports.included
        for more in self._path(objective):
            if self.supports.size[more].sum() > k:
                break
            units = more
            if self.supports.size[more].sum() == k:
                break
        return units

    def _supports(self, k: int, start: Solution | None) -> Iterator[Support]:
        """Yield what the searches find, and what swaps make of it, each with its best feasible x."""
        for weight in self.penalties:
            objective, known = self._objective(weight, False, k), set[bytes]()
            for units in self._ends(objective, weight, k, start):
                for improve in (False, True) if self.solver.swaps else (False,):
                    if improve:
                        objective.work = LEAST_SQUARES_SWAP_WORK
                        units = swap(objective, units, self.steps)[1]
                    if units.tobytes() in known or objective.supports.left(units) < 0:
                        break
                    known.add(units.tobytes())
                    S = objective.usable(units)
                    fitted = self.refit(S) if len(S) else None
                    if fitted is not None:
                        yield replace(fitted, n_iter=self.steps.done)
            if ended(self.hook):
                return

    def _ends(
        self, objective: RatioOfUnits, weight: float, k: int, start: Solution | None
    ) -> Iterator[Units]:
        """Yield the units where the searches of the strategy end."""
        strategy = self.solver.strategy
        auto = strategy in ("auto", "exact")
        if start is not None:
            begin = (self.supports.included | self.supports.mask(start.index)) & self.supports.allowed
            yield backward(objective, self.steps, begin)
        if auto or strategy in ("forward", "bidirectional"):
            yield self._forward(weight, False, k)
        if strategy == "projection" or (auto and not self.ratio.single):
            yield self._forward(weight, True, k)
        most = CHOICE_ORDER if self.supports.grouped else USUAL_BACKWARD_ORDER
        if strategy in ("backward", "bidirectional") or (auto and self.ratio.p <= most):
            yield backward(objective, self.steps)

    def refit(self, S: Index) -> Support | None:
        """Return the best feasible x on a support; None where there is none."""
        M, G = self.ratio.blocks(S)
        if self.supports.signs is not None:
            return RatioOfUnits(self.ratio, self.supports).best_of(S)
        # x = N z are the feasible vectors
        N = np.eye(len(S))
        if self.Q is not None:
            _, root, V = np.linalg.svd(self.Q[:, S])
            N = V[int(np.count_nonzero(root > 1e-11)) :].T
        if N.shape[1] == 0:
            return None
        # Among these, the largest ratio; a variable that others span is left out
        G = N.T @ G @ N
        mu, U = all_eigenpairs(G)
        least = PENCIL_NULL.of(self.ratio.dtype) * max(float(mu[-1]), float(self.ratio.variance[S].max()))
        if not mu[-1] > least:
            return None
        if self.Q is None and mu[0] <= least:
            spanned = (U[:, mu <= least] ** 2).sum(axis=1) > NULL_WEIGHT
            return self.refit(np.delete(S, np.flatnonzero(spanned)[-1]))
        basis = PencilBasis.of(N.T @ M @ N, mu, U, mu > least)
        return Support(S, N @ basis.W[:, 0], float(basis.eigenvalues[0]))

    def _proved(self, best: Support, k: int) -> tuple[Support, float, bool]:
        """Return the best support of a tree, an upper bound, and whether the tree was searched to its end."""
        clock = ProgressClock(self.hook, time.monotonic() + self.solver.time_limit)
        ratio = self.ratio.penalized(self.Q, self.penalties[-1])
        supports = self.supports.within(k)
        objective = RatioOfUnits(ratio, supports, self.refit)
        begin = supports.mask(best.index) | supports.included
        proof = prove(objective, begin, node_limit=self.solver.node_limit, clock=clock)
        found = objective.best_on(proof.units)
        if found is None or not found.value > best.value:
            found = best
        upper = max(found.value, min(proof.upper(), ratio.largest * (1 + RISE)))
        return replace(found, n_iter=proof.n_nodes), upper, not proof.open()


@shared_parameters
def least_squares_component(
    X: MatrixLike, cardinality: int | Explained, *,
    options: LeastSquares | None = None, choice: Choice | None = None,
    kind: Kind = "data", center: Switch = True, scale: Switch = False, sample_weight: Weights = None,
    callback: Callback | None = None,
) -> SparseComponent:  # fmt: skip
    """The score of a few variables that explains the most variance of all variables.

    Searches `max x'A^2 x / x'Ax` over x with at most `cardinality` nonzeros, where `A` is the covariance
    matrix: the variance of all variables that a regression on the score `X x` explains, and not only of
    the variables in the support. This chooses other variables than `tpower` does: one from each group of
    correlated variables is enough.

    Parameters
    ----------
    X : array-like of shape (n, p) or sparse matrix
        Data, one row per sample; with ``kind="covariance"`` a symmetric positive semidefinite (p, p) matrix.
        Its entries are needed: operators that offer only products are refused.
    cardinality : int or Explained
        Number of nonzeros, in [1, p]; fewer are returned where fewer explain as much. ``Explained(share)``
        finds the fewest variables that explain this share of what the first principal component explains or,
        ``of="score"``, of that component's score.
    options : LeastSquares, optional
        Options of the search, which the documentation of the record explains.
    {common}

    Returns
    -------
    SparseComponent
        `loading` (p,) of unit 2-norm; `value`, the variance of all variables explained, in the units of A;
        `cardinality`, `n_iter` (variables added and swaps tried; nodes of the tree), `converged`, `method`.
        "exact" also gives `upper_bound`, which is the value, up to rounding, if no limit ended the search.
        For a matrix without any variance the loading is the first unit vector, the value 0, and a
        RuntimeWarning is given.

    Raises
    ------
    ValueError
        For NaN, infinite or empty input, a covariance that is not symmetric positive semidefinite, an option
        out of range, or input without entries.
    {type_error}

    References
    ----------
    G. M. Merola (2015). Least squares sparse principal component analysis: a backward elimination approach
    to attain large loadings. Australian & New Zealand Journal of Statistics 57, 391-429. G. M. Merola and
    G. Chen (2019). Projection sparse principal component analysis: an efficient least squares method. Journal
    of Multivariate Analysis 173, 366-382 (projection). G. M. Furnival and R. W. Wilson (1974). Regressions by
    leaps and bounds. Technometrics 16, 499-511 (the tree of "exact").

    {pitprops}
    >>> x = spcacore.least_squares_component(pitprops.correlation, 3, kind="covariance")
    >>> print(f"{x.value:.3f}", [name for name, w in zip(pitprops.names, x.loading) if w])
    4.032 ['length', 'ringbut', 'bowmax']
    >>> few = spcacore.Explained(0.9)
    >>> spcacore.least_squares_component(pitprops.correlation, few, kind="covariance").cardinality
    2
    """
    run = run_one(
        LeastSquaresSolver, options, X, cardinality, choice, callback, kind, center, scale,
        sample_weight, True,
    )  # fmt: skip
    x = run.component()
    upper = None if run.found is None else run.found.upper_bound
    if upper is None:
        return x
    return replace(x, upper_bound=max(float(run.state.problem.in_units(upper)), x.value))
