"""Samples drawn again from the rows, and the sparse components of each resample.

A resample is a vector of weights, which say how often each row was drawn, so no rows are copied. Each
resample has a seed of its own, so the result does not depend on which thread works on it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .. import _core
from .._limits import (
    RESAMPLE_BATCH,
    RESAMPLE_CANDIDATES,
    RESAMPLE_CHECKS,
    RESAMPLE_CHUNK,
    RESAMPLE_ENTRIES,
    RESAMPLE_PRODUCTS,
    WORKING_SET_COST,
    WORKING_SET_ENTRANTS,
    slices,
)
from .._records import record, replaced
from .._types import AnyArray, Array, Index, Names
from .._validation import Hook, is_row_blocks, is_sparse
from ..linalg.scaling import EPS, TINY, descending, eps_of, union
from ..linalg.threads import Report
from ..methods import TPower
from ..models.alternation import problem_of, search
from ..models.components import components_result, loadings_of
from ..models.request import Request
from ..models.variance import nonzeros_of, operator_variances
from ..operators.deflation import PROJECTION, DeflatedOperator
from ..operators.gram import formed
from ..operators.problem import Problem
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
# candidate, and the resample is searched again. By `|(A_w y)_j|^2 <= (A_w)_jj y'A_w y` most variables cannot
# exceed it: their entries are not computed.


@record
class Moments:
    """The moments of the columns of F in each resample of a batch.

    Columns are divided by `scale`, and A_w is multiplied by `factor`.
    """

    weights: Array
    total: Array
    factor: Array
    mean: Array
    variance: Array
    scale: Array


class _Resample:
    """One resample at work: its candidates, and what has been found among them."""

    def __init__(self, candidates: Index):
        self.candidates = candidates
        self.found: list[Solution] = []
        self.columns: AnyArray = np.zeros((0, 0))  # columns of F, as rows
        self.inside: Any = None  # the problem between the candidates
        self.loadings: AnyArray = np.zeros((0, 0))  # rows are the candidates
        self.vectors: list[Array] = []  # y of each component, on the candidates
        self.levels: list[float] = []  # what |A_t x_t| must exceed to enter each component
        self.kept = 0  # this many first components are final: no variable enters


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
        count = min(RESAMPLE_CANDIDATES * max(request.cardinality), problem.p)
        state = replaced(DeflatedOperator.from_problem(problem), seed=(request.seed, 0))
        begin = promising_variables(state, count)
        self.begin: Index = union(begin, *(x.index for x in self.found))
        self.columns: AnyArray = problem.operator.columns(self.begin)

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

    def of(self, weights: Array, report: Report) -> list[tuple[list[Solution], Array] | None]:
        """Return the components of each resample and the shares that they explain.

        `weights` has one row for each resample. The entry of a resample is None if its search has not ended
        after a number of rounds.
        """
        moments = self._moments(weights)
        resamples = [_Resample(self._candidates(variance)) for variance in moments.variance]
        out: list[tuple[list[Solution], Array] | None] = [None] * len(weights)
        pending = list(range(len(weights)))
        for _ in range(RESAMPLE_CHECKS):
            searched = []
            for i in pending:
                report()
                if self._search(resamples[i], i, moments):
                    searched.append(i)
            pending = self._let_enter(resamples, searched, moments)
            for i in set(searched).difference(pending):
                variances = operator_variances(resamples[i].inside, resamples[i].loadings, "cumulative")
                out[i] = resamples[i].found, variances / moments.variance[i].sum()
            if not pending:
                break
        return out

    def _candidates(self, variance: Array) -> Index:
        """Return the variables to begin with: some for all resamples, and those of largest variance here."""
        count = min(RESAMPLE_CANDIDATES * max(self.request.cardinality), len(variance))
        return union(self.begin, _core.select_largest(np.ascontiguousarray(variance), count))

    def _moments(self, weights: Array) -> Moments:
        """Compute the moments of all columns in each resample, in one pass over the columns of F."""
        operator, m = self.problem.operator, len(weights)
        mean, square = np.empty((m, operator.p)), np.empty((m, operator.p))
        for index in self._chunks(operator.p):
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
        scale = np.ones(1)
        if self.rescale:
            scale = np.sqrt(spread)
            spread = (scale > 0).astype(np.float64)
            scale = np.where(scale > 0, scale, np.inf)
        return Moments(weights, total, factor, mean, spread, np.broadcast_to(scale, mean.shape))

    def _columns(self, candidates: Index) -> AnyArray:
        """Return the columns of F of the candidates, as rows; most of them are known."""
        if len(candidates) == len(self.begin):
            return self.columns
        new = np.ones(len(candidates), bool)
        place = np.searchsorted(candidates, self.begin)
        new[place] = False
        out = np.empty((len(candidates), self.columns.shape[1]), self.columns.dtype)
        out[place] = self.columns
        out[new] = self.problem.operator.columns(candidates[new])
        return out

    def _products(self, U: AnyArray, variables: Index) -> AnyArray:
        """Return `F'u`, in the units of A, for each row u of U and these variables.

        Many rows are multiplied as a matrix, which pays for a copy of the columns.
        """
        operator = self.problem.operator
        if len(U) < RESAMPLE_PRODUCTS and 2 * len(variables) > operator.p:
            return operator.backward_block(np.asfortranarray(U.T)).T[:, variables]
        out = np.empty((len(U), len(variables)), operator.dtype)
        for part in self._chunks(len(variables)):
            out[:, part] = U @ operator.columns(variables[part]).T
        out *= operator.factor
        return out

    def _chunks(self, count: int) -> list[Index]:
        """Return positions in parts, so that a part of the columns of F is small."""
        parts = slices(count, self.problem.operator.n, RESAMPLE_CHUNK)
        return [np.arange(part.start, part.stop) for part in parts]

    def _search(self, resample: _Resample, i: int, moments: Moments) -> bool:
        """Find the components of the i-th resample among its candidates; False if there are too few."""
        # A_w between the candidates
        index, problem = resample.candidates, self.problem
        w, scale = moments.weights[i], moments.scale[i, index]
        rows, columns = np.flatnonzero(w), self._columns(index)
        resample.columns = columns
        part = columns[:, rows].astype(np.float64, copy=False)
        if self.recenter:
            part -= moments.mean[i, index, None]
        part *= np.sqrt(w[rows] * moments.factor[i])
        A = part @ part.T
        if self.rescale:
            A /= np.outer(scale, scale)
        diagonal = moments.variance[i, index]
        constant = diagonal == 0
        if constant.any():
            A[constant] = A[:, constant] = 0
        np.fill_diagonal(A, diagonal)
        A = A.astype(problem.operator.dtype, copy=False)
        # Its components, and y = P_1 ... P_(t-1) x_t for the check of all variables
        inside = replaced(
            problem, operator=_core.dense(A, True), n_samples=None, diagonal=diagonal,
            moment=diagonal, mean=None, scale=None, names=None, cost=A.size, weight=None, row_weight=None,
            working_set=None, form=False,
        )  # fmt: skip
        if not self._in_turn(resample, inside):
            return False
        found = resample.found
        loadings = loadings_of(inside, found)
        V = loadings.astype(np.float64)
        resample.vectors = [_through(V[:, :t], v) / scale for t, v in enumerate(V.T)]
        resample.inside, resample.loadings = inside, loadings
        resample.found = [replaced(x, index=np.ascontiguousarray(index[x.index], np.intp)) for x in found]
        return True

    def _in_turn(self, resample: _Resample, inside: Problem) -> bool:
        """Find one component after another among the candidates; False if there are too few.

        The first `kept` are final. In the first round each search starts from the component of all the data
        and from single variables, in later rounds from the component of the last round.
        """
        state, solver = DeflatedOperator.from_problem(inside), self.solver
        near = resample.found
        if not near:
            near = [replaced(x, index=np.searchsorted(resample.candidates, x.index)) for x in self.found]
        found: list[Solution] = []
        levels = resample.levels[: resample.kept]
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

    def _let_enter(self, resamples: list[_Resample], searched: list[int], moments: Moments) -> list[int]:
        """Let variables outside of the candidates enter; return the resamples that must be searched again.

        All variables are checked for all resamples at once.
        """
        if not searched:
            return []
        operator = self.problem.operator
        # |A_t x_t| at the variables that may enter
        variables, products = self._outside([(i, resamples[i]) for i in searched], moments)
        slack = 1 + 64 * eps_of(operator.dtype)
        pending, row = [], 0
        place = np.full(operator.p, -1, np.intp)
        place[variables] = np.arange(len(variables))
        for i in searched:
            resample, first = resamples[i], resamples[i].kept
            unit = (operator.n - 1) / (moments.total[i] - 1)
            entrants: list[Index] = []
            known = place[resample.candidates]
            known = known[known >= 0]
            # The largest ones that exceed the level of a component
            for t, x in enumerate(resample.found[first:], first):
                value = products[row]
                if self.rescale:
                    value = value / moments.scale[i, variables]
                row += 1
                enters = value > slack * resample.levels[t] / unit
                enters[known] = False
                above = enters.nonzero()[0]
                if len(above) and not entrants:
                    resample.kept = t
                most = WORKING_SET_ENTRANTS * len(x.index)
                if len(above):
                    entrants.append(variables[above[descending(value[above])[:most]]])
            # They become candidates
            if entrants:
                resample.candidates = union(resample.candidates, *entrants)
                index = resample.candidates
                resample.found = [replaced(x, index=np.searchsorted(index, x.index)) for x in resample.found]
                pending.append(i)
        return pending

    def _outside(self, searched: list[tuple[int, _Resample]], moments: Moments) -> tuple[Index, AnyArray]:
        """Return the variables that might enter a resample, and the magnitudes of their products.

        The products have one row for each component that is not final. Variable j cannot enter if its bound
        (A_w)_jj y'A_w y is below the square of the level.
        """
        operator, tiny = self.problem.operator, TINY
        few = 1 + math.sqrt(eps_of(operator.dtype))
        U: list[Array] = []
        reach = np.zeros(operator.p, bool)
        for i, resample in searched:
            w, total = moments.weights[i], moments.total[i]
            scores = np.array(resample.vectors[resample.kept :]) @ resample.columns
            if self.recenter:
                scores -= (scores @ w / total)[:, None]
            spread = moments.factor[i] * (scores**2 @ w)  # y'A_w y
            least = np.array(resample.levels[resample.kept :]) ** 2 / np.maximum(spread, tiny)
            reach |= moments.variance[i] * few > least.min()
            U += list(scores * w)
        variables = np.flatnonzero(reach)
        products = self._products(np.array(U, operator.dtype), variables)
        return variables, np.abs(products, out=products)


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

    def loadings(self, result: Any) -> AnyArray:
        """Return the loadings of a result."""
        return np.asarray(result.loadings)

    def reference(self) -> Array:
        """The loadings of all the data."""
        return self.loadings(self.result).astype(np.float64, copy=False)

    def refit(self, result: Any) -> Refit:
        """Return a result as the components of a resample."""
        shares = getattr(result, "explained_variance_ratio", None)
        shares = None if shares is None else np.asarray(shares, np.float64)
        return Refit(nonzeros_of(self.loadings(result).astype(np.float64, copy=False)), shares)

    def names(self) -> Names:
        """Return the names of the rows of the loadings."""
        names: Names = self.result.names
        return names


class ComponentRefits(Refits):
    """Resamples of `sparse_pca`; if `warm`, each search begins from the components of all the data."""

    solver: Any
    r: Any
    request: Any
    warm: bool
    kept: CandidateRefits | None

    def __init__(self, X: Any, model: Model, warm: bool):
        problem, self.solver, self.r, (self.request,) = model.prepared(X)
        self.X, self.warm, self.kept = X, warm, None
        problem = formed(problem)
        found = search(problem, self.solver, self.request, [], self.r, Hook(None))
        self.result: Any = components_result(problem, found, self.request)
        self.found, problem = found, problem.unscreened()
        quick = {"swaps": 0.0} if warm and hasattr(self.solver, "swaps") else {}
        if getattr(self.request.method, "swaps", None) is None and quick:
            self.solver = replace(self.solver, **quick)
        if warm and CandidateRefits.serves(problem, self.request, X):
            self.kept = CandidateRefits(problem, self.solver, self.request, found)
            entries = max(problem.cost // 2, RESAMPLE_ENTRIES)
            self.batch: int = int(np.clip(entries // (problem.p * (2 + self.r)), 1, RESAMPLE_BATCH))

    def of(self, weights: Array, report: Report) -> list[Refit]:
        if self.kept is None:
            return [self._one(w, report) for w in weights]
        out = []
        for found, w in zip(self.kept.of(weights, report), weights, strict=True):
            if found is None:
                out.append(self._one(w, report))
            else:
                out.append(Refit([(x.index, x.entries.astype(np.float64)) for x in found[0]], found[1]))
        return out

    def _one(self, w: Array, report: Report) -> Refit:
        """Return the components of one resample, searched among all variables."""
        request = self.request.having(sample_weight=w)
        tell = check_callback(lambda progress: report())
        problem = formed(problem_of(self.X, request))
        near: Sequence[Solution] = self.found if self.warm else ()
        found = search(problem, self.solver, request, [], self.r, tell, near, quick=self.warm)
        return self.refit(components_result(problem, found, request))


class WeightedRefits(Refits):
    """Resamples of a function with `sample_weight`; if `warm`, each begins from loadings of all the data."""

    data: tuple[Any, ...]
    model: Model

    def __init__(self, data: tuple[Any, ...], model: Model, warm: bool):
        self.data, self.model = data, model
        self.result: Any = model.fit(*data)
        V = self.reference()
        if warm and V.any(axis=0).all():
            self.model = model.begun_at(V)

    def of(self, weights: Array, report: Report) -> list[Refit]:
        return [self.refit(self.weighted(w, lambda progress: report())) for w in weights]

    def weighted(self, w: Array, tell: Callable[[Any], object]) -> Any:
        """Return the result for rows with these weights."""
        return self.model.fit(*self.data, sample_weight=w, callback=tell)


class RowRefits(WeightedRefits):
    """Resamples of an estimator without weights, which is fitted to copies of the rows drawn."""

    def weighted(self, w: Array, tell: Callable[[Any], object]) -> Any:
        rows = np.repeat(np.arange(len(w)), w.astype(np.intp))
        return self.model.fit(plain_rows(self.data[0])[rows], callback=tell)


class PairRefits(WeightedRefits):
    """Resamples of `sparse_cca`: loadings and names have the variables of X and then those of Y."""

    def loadings(self, result: Any) -> AnyArray:
        return np.concatenate([side.loadings for side in result._sides()])

    def names(self) -> Names:
        return tuple(names_of_sides(self.result))
