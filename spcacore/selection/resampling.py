"""Samples drawn again from the rows, and the sparse components of each resample.

A resample is a vector of weights, which say how often each row was drawn, so no rows are copied. Each
resample has a seed of its own, so the result does not depend on which thread works on it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .. import _core
from .._limits import (
    RESAMPLE_BATCH,
    RESAMPLE_CANDIDATES,
    RESAMPLE_CHECKS,
    RESAMPLE_ENTRIES,
    THREAD_ENTRIES,
    WORKING_SET_COST,
    WORKING_SET_ENTRANTS,
    slices,
)
from .._records import record, replaced
from .._types import Array, Index, Names
from .._validation import Hook, is_row_blocks, is_sparse
from ..linalg.scaling import EPS, descending, eps_of, union
from ..linalg.threads import Report
from ..methods import TPower
from ..models.alternation import problem_of, search
from ..models.components import components_result, loadings_of
from ..models.request import Request
from ..models.variance import nonzeros_of, operator_variances
from ..operators.deflation import PROJECTION, DeflatedOperator
from ..operators.gram import formed
from ..operators.problem import Problem, of_matrix
from ..progress import check_callback
from ..readable import names_of_sides
from ..solvers.solution import Solution
from ..solvers.starts import promising_variables
from .model import Model, plain_rows

# ---- truncated power components of many resamples of wide data, searched among candidate variables ------
# With F the centered columns of all the data and w the weights of a resample, W their sum,
#
#     A_w = (F' diag(w) F - W m m')/(W - 1),   m = F'w/W.
#
# A resample is searched on A_w between its candidates alone. Means and variances of all variables come from
# one pass in blocks for a batch of resamples. So do the products that tell whether a variable outside would
# enter. With y = P_1 ... P_(t-1) x_t, where P_s is the projection away from the s-th loading, the entries of
# the deflated `A_t x_t` outside of the candidates are those of `A_w y`, which is F'u with
# `u = w (F y - m'y)`. A variable whose entry exceeds the smallest on the support in magnitude becomes a
# candidate, and the resample is searched again.


@dataclass(eq=False)
class _Resample:
    """One resample: the moments of the columns of F in it, its candidates, and what is found among them.

    Columns are divided by `scale`, and A_w is multiplied by `factor`.
    """

    weight: Array
    total: float
    factor: float
    mean: Array
    variance: Array
    scale: Array
    candidates: Index
    found: list[Solution] = field(default_factory=list)
    shares: Any = None  # of the variance, of each component
    directions: Any = None  # u of each component
    levels: Sequence[float] = ()  # what |A_t x_t| must exceed to enter each component
    kept: int = 0  # this many first components are final: no variable enters
    refit: Refit | None = None  # the components once all are final


@dataclass(eq=False)
class CandidateRefits:
    """The search of resamples among candidates, from the components of all the data (`found`)."""

    problem: Problem
    solver: Any
    request: Request
    found: list[Solution]

    def __post_init__(self) -> None:
        problem, request = self.problem, self.request
        self.recenter: bool = request.center is True
        self.rescale: bool = request.scale is True
        self.count: int = min(RESAMPLE_CANDIDATES * max(request.cardinality), problem.p)
        state = replaced(DeflatedOperator.from_problem(problem), seed=(request.seed, 0))
        begin = promising_variables(state, self.count)
        self.begin: Index = union(begin, *(x.index for x in self.found))

    @staticmethod
    def serves(problem: Problem, request: Request, X: Any) -> bool:
        """Whether this search can be checked in this way and is faster, for the options and data at hand."""
        plain = (
            isinstance(request.method, TPower)
            and request.deflation is PROJECTION
            and request.constraint is None
            and problem.supports.plain
            and not (request.attempts or request.together)
            and problem.supports.signs is None
            and request.method.start is request.method.n_starts is None
            and all(isinstance(k, int) for k in request.cardinality)
        )
        dense = not (is_sparse(X) or is_row_blocks(X)) and problem.data is None
        return plain and dense and problem.cost >= WORKING_SET_COST

    def of(self, weights: Array, report: Report) -> list[Refit | None]:
        """Return the components of each resample and the shares that they explain.

        None where the candidates have too few components, or variables still enter after RESAMPLE_CHECKS.
        """
        resamples = pending = self.resamples(weights)
        for _ in range(RESAMPLE_CHECKS):
            searched = []
            for one in pending:
                report()
                if self._search(one):
                    searched.append(one)
            pending = self._let_enter(searched)
            if not pending:
                break
        return [one.refit for one in resamples]

    def resamples(self, weights: Array) -> list[_Resample]:
        """Return the resamples, with the moments of all columns from one pass over the columns of F.

        Their candidates are some variables for all resamples, and those of largest variance in each.
        """
        operator, m = self.problem.operator, len(weights)
        mean, square = np.empty((m, operator.p)), np.empty((m, operator.p))
        for index in self._chunks():
            F = operator.columns(index).astype(np.float64, copy=False)
            mean[:, index] = weights @ F.T
            square[:, index] = weights @ (F * F).T
        total = weights.sum(axis=1)
        mean /= total[:, None]
        spread = square
        if self.recenter:
            lost = operator.n * EPS * square
            # Sums of squares about the mean of the resample
            spread = square - total[:, None] * mean**2
            spread[spread <= lost] = 0  # constant in the resample
        factor = operator.factor * (operator.n - 1) / (total - 1)
        spread *= factor[:, None]
        # Correlations: each column by its deviation in the resample
        scale: Array = np.broadcast_to(1.0, mean.shape)
        if self.rescale:
            scale = np.sqrt(spread)
            spread = (scale > 0).astype(np.float64)
            scale[scale == 0] = np.inf
        begin = [union(self.begin, _core.select_largest(variance, self.count)) for variance in spread]
        return [*map(_Resample, weights, total, factor, mean, spread, scale, begin)]

    def _chunks(self) -> list[Index]:
        """Return all variables in parts, so that a part of the columns of F is small."""
        operator = self.problem.operator
        parts = slices(operator.p, operator.n, THREAD_ENTRIES)
        return [np.arange(part.start, part.stop) for part in parts]

    def _search(self, resample: _Resample) -> bool:
        """Find the components of a resample among its candidates; False if there are too few."""
        # A_w between the candidates
        index, problem, w = resample.candidates, self.problem, resample.weight
        scale, rows, columns = resample.scale[index], np.flatnonzero(w), problem.operator.columns(index)
        part = columns[:, rows].astype(np.float64, copy=False)
        if self.recenter:
            part -= resample.mean[index, None]
        part *= np.sqrt(w[rows] * resample.factor)
        A = part @ part.T
        if self.rescale:
            A /= np.outer(scale, scale)
        diagonal = resample.variance[index]
        constant = diagonal == 0
        if constant.any():
            A[constant] = A[:, constant] = 0
        np.fill_diagonal(A, diagonal)
        A = A.astype(problem.operator.dtype, copy=False)
        # Its components
        inside = of_matrix(problem, A)
        if not self._in_turn(resample, inside):
            return False
        found = resample.found
        V = loadings_of(inside, found)
        resample.shares = operator_variances(inside, V, "cumulative") / resample.variance.sum()
        resample.found = [replaced(x, index=np.ascontiguousarray(index[x.index], np.intp)) for x in found]
        # y = P_1 ... P_(t-1) x_t and u = w (F y - m'y), for the check of all variables
        V = V.astype(np.float64)
        scores = np.array([_through(V[:, :t], v) / scale for t, v in enumerate(V.T)]) @ columns
        if self.recenter:
            scores -= (scores @ w / resample.total)[:, None]
        resample.directions = (scores * (w * resample.factor)).astype(A.dtype)
        return True

    def _in_turn(self, resample: _Resample, inside: Problem) -> bool:
        """Find one component after another among the candidates; False if there are too few.

        The first `kept` are final. In the first round each search starts from the component of all the data
        and from single variables, in later rounds from the component of the last round.
        """
        state, solver = DeflatedOperator.from_problem(inside), self.solver
        near = [
            replaced(x, index=np.searchsorted(resample.candidates, x.index))
            for x in resample.found or self.found
        ]
        found: list[Solution] = []
        levels = [*resample.levels[: resample.kept]]
        for t, (x, k) in enumerate(zip(near, self.request.cardinality, strict=False)):
            new: Solution | None = x
            if not resample.found:
                state = replaced(state, seed=(self.request.seed, t))
                new = solver.near(x).solve(state, k)
            elif t >= resample.kept:
                new = solver.near(x, 0).solve(state, k)
            if new is None or len(new.index) < k or not new.objective > inside.noise(new.index, True):
                return False
            found.append(new)
            if t >= resample.kept:
                levels.append(solver.level(state, new, k))
            if t + 1 < len(near):
                state = state.deflate(new.index, new.entries)
        resample.found, resample.levels = found, levels
        return True

    def _let_enter(self, resamples: list[_Resample]) -> list[_Resample]:
        """Let variables outside of the candidates enter; return the resamples that must be searched again.

        All variables are checked for all resamples at once.
        """
        if not resamples:
            return []
        # |A_t x_t| of all variables
        operator = self.problem.operator
        U = np.concatenate([one.directions[one.kept :] for one in resamples])
        products = np.empty((len(U), operator.p), operator.dtype)
        for index in self._chunks():
            products[:, index] = U @ operator.columns(index).T
        magnitudes = iter(np.abs(products, out=products))
        slack, pending = 1 + 64 * eps_of(operator.dtype), []
        for one in resamples:
            entrants: list[Index] = []
            # The largest ones that exceed the level of a component
            for t, x in enumerate(one.found[one.kept :], one.kept):
                value = next(magnitudes)
                value[one.candidates] = 0
                above = np.flatnonzero(value > slack * one.levels[t] * one.scale)
                if len(above):
                    one.kept = one.kept if entrants else t
                    first = descending(value[above] / one.scale[above])[: WORKING_SET_ENTRANTS * len(x.index)]
                    entrants.append(above[first])
            # They become candidates
            if entrants:
                one.candidates = union(one.candidates, *entrants)
                pending.append(one)
            else:
                one.refit = Refit([(x.index, x.entries.astype(np.float64)) for x in one.found], one.shares)
        return pending


def _through(V: Array, x: Array) -> Array:
    """Return P_1 ... P_t x, where P_s is the projection away from the s-th column of V."""
    for v in V.T[::-1]:
        x = x - v * (v @ x)
    return x


Sparse = tuple[Index, Array]


@record
class Refit:
    """The components of one resample.

    Each is a pair of variables and entries. `shares` has the share of the variance that each explains, if it
    is known.
    """

    components: list[Sparse]
    shares: Array | None


def drawn_weights(n: int, resampling: str, seed: int, labels: Index | None) -> Callable[[int], Array]:
    """Return a function of i that gives the weights of the i-th resample.

    With `labels` rows are drawn within each label. A half-sample has floor(m/2) of m rows; the two of a
    complementary pair have no row in common.
    """
    parts = [np.arange(n)]
    if labels is not None:
        parts = [np.flatnonzero(labels == label) for label in range(labels.max() + 1)]

    def weights(i: int) -> Array:
        pair, second = divmod(i, 2) if resampling == "complementary" else (i, 0)
        rng = np.random.default_rng([seed, 2, pair])
        out = np.zeros(n)
        for rows in parts:
            m = len(rows)
            if resampling == "bootstrap":
                out[rows] = rng.multinomial(m, np.full(m, 1 / m))
            else:
                half = m // 2
                out[rng.permutation(rows)[second * half : (1 + second) * half]] = 1
        return out

    return weights


class Refits(ABC):
    """The components of all the data (`result`) and of resamples; a subclass for each kind of model.

    `batch` resamples are fitted at a time.
    """

    result: Any
    batch = 1

    @abstractmethod
    def of(self, weights: Array, report: Report) -> list[Refit]:
        """Return the components of resamples, whose weights are the rows of `weights`."""

    @property
    def reference(self) -> Array:
        """The loadings of all the data."""
        return self.loadings(self.result)

    def loadings(self, result: Any) -> Array:
        """Return the loadings of a result; of pairs those of the variables of X, and then of Y."""
        V: Array = np.concatenate([side.loadings for side in result._sides()])
        return V.astype(np.float64, copy=False)

    def refit(self, result: Any) -> Refit:
        """Return a result as the components of a resample."""
        shares = getattr(result, "explained_variance_ratio", None)
        shares = None if shares is None else np.asarray(shares, np.float64)
        return Refit(nonzeros_of(self.loadings(result)), shares)

    def names(self) -> Names:
        """Return the names of the rows of the loadings."""
        sides = self.result._sides()
        return sides[0].names if len(sides) == 1 else tuple(names_of_sides(self.result))


class ComponentRefits(Refits):
    """Resamples of `sparse_pca`; if `warm`, each search begins from the components of all the data."""

    solver: Any
    r: Any
    request: Any
    warm: bool
    kept: CandidateRefits | None

    def __init__(self, X: Any, model: Model, warm: bool):
        problem, self.solver, self.r, (self.request,) = model.prepared(X)
        self.X = problem.compressed if is_sparse(X) else X  # in the order that each search would turn it to
        self.warm, self.kept = warm, None
        problem = formed(problem)
        found = search(problem, self.solver, self.request, [], self.r, Hook(None))
        self.result: Any = components_result(problem, found, self.request)
        self.found, problem = found, problem.unscreened()
        if warm and getattr(self.request.method, "swaps", None) is None:
            self.solver = replaced(self.solver, swaps=0.0)
        if warm and CandidateRefits.serves(problem, self.request, X):
            self.kept = CandidateRefits(problem, self.solver, self.request, found)
            entries = max(problem.cost // 2, RESAMPLE_ENTRIES)
            self.batch: int = int(np.clip(entries // (problem.p * (2 + self.r)), 1, RESAMPLE_BATCH))

    def of(self, weights: Array, report: Report) -> list[Refit]:
        if self.kept is None:
            return [self._one(w, report) for w in weights]
        refits = zip(self.kept.of(weights, report), weights, strict=True)
        return [refit or self._one(w, report) for refit, w in refits]

    def _one(self, w: Array, report: Report) -> Refit:
        """Return the components of one resample, searched among all variables."""
        request = replaced(self.request, sample_weight=w)
        tell = check_callback(lambda progress: report())
        problem = formed(problem_of(self.X, request))
        near: Sequence[Solution] = self.found if self.warm else ()
        found = search(problem, self.solver, request, [], self.r, tell, near, quick=self.warm)
        return self.refit(components_result(problem, found, request))


class WeightedRefits(Refits):
    """Resamples of a function with `sample_weight`; if `warm`, each begins from loadings of all the data.

    An estimator of another package has no weights: it is fitted to copies of the rows drawn.
    """

    data: tuple[Any, ...]
    model: Model

    def __init__(self, data: tuple[Any, ...], model: Model, warm: bool):
        self.data, self.model = data, model
        self.result: Any = model.fit(*data)
        if warm and self.reference.any(axis=0).all():
            self.model = model.begun_at(self.reference)

    def of(self, weights: Array, report: Report) -> list[Refit]:
        tell: dict[str, Any] = {"callback": lambda progress: report()}
        if not self.model.is_foreign:
            return [self.refit(self.model.fit(*self.data, sample_weight=w, **tell)) for w in weights]
        rows = [np.repeat(np.arange(len(w)), w.astype(np.intp)) for w in weights]
        return [self.refit(self.model.fit(plain_rows(*self.data)[drawn], **tell)) for drawn in rows]
