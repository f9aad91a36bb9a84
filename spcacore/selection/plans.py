"""Fits of a model at each value of its sparsity: to all the data, to folds and to permutations.

A `Plan` knows how to fit; it makes paths, scores of left-out entries and shares of permuted data from these
fits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from .._limits import NOISE_LEFT, PART_ENTRIES, slices
from .._messages import counted, quiet, warn
from .._records import record, replaced
from .._types import AnyArray, Array, Index
from .._validation import Hook, as_dense, as_seed, integer, is_row_blocks, is_sparse
from ..linalg.orthogonal import columns_near_one, unit_columns
from ..linalg.scaling import EPS, LOG_2PI, beyond_range, exponent_above, roots
from ..linalg.threads import Report, in_threads
from ..models.alternation import problem_of, refine_all, search
from ..models.components import SparsePCAResult, components_result, explained_together, loadings_of
from ..models.request import Request
from ..models.variance import DEFINITIONS, nonzeros_of, operator_variances
from ..operators.deflation import DEFLATIONS, DeflatedOperator
from ..operators.gram import dense_shares, formed
from ..operators.inputs import as_problem
from ..operators.problem import Problem, warn_out_of_range
from ..operators.sparse import permuted_columns
from ..operators.transform import scores as row_scores
from ..solvers.solution import Solution
from ..solvers.table import SOLVERS
from .model import Grid, Model, grid_of, plain_rows
from .tuning import SparsityPath

Notify = Callable[[Any], object]


def plan_of(X: Any, model: Model, grid: Any, rng: Any) -> Plan:
    """Return the plan for a model and the values of its sparsity in `grid`."""
    return (SearchPlan if model.name == "sparse_pca" else FitPlan)(X, model, grid_of(model, grid, X), rng)


class Plan:
    """What to fit at each value of the sparsity, from the sparsest to the densest, for any rows.

    If each component has a grid of its own, `begin` sets the component whose values are tried; `earlier` has
    the positions of the values chosen for the components before it. With `counting` the number of components
    is to be chosen: there is one value, and what counts is the first 0, 1, ..., r components.
    """

    problem: Problem
    r: int
    seed: int
    method: str
    deflation: Any = "none"
    kind: Any = "data"
    counting: bool = False
    earlier: tuple[int, ...] = ()
    model: Model
    parameter: str
    values: AnyArray
    grids: list[AnyArray] | None

    def __init__(self, X: Any, model: Model, grid: Grid):
        self.X, self.model = X, model
        self.parameter, self.values, self.grids = grid

    def begin(self, earlier: tuple[int, ...]) -> None:
        """Try the values of the next component, given the positions of the values chosen for earlier ones."""
        assert self.grids is not None
        self.earlier, self.r, self.values = earlier, len(earlier) + 1, self.grids[len(earlier)]

    def model_of(self, i: int) -> Model:
        """Return the model at the i-th value."""
        value = self.values[i].item()
        if self.grids is not None:
            value = [*(grid[k].item() for grid, k in zip(self.grids, self.earlier, strict=False)), value]
        return self.model.having(**{self.parameter: value}).of(self.r)

    def searched(self, X: Any, report: Report) -> tuple[Problem, list[list[Solution]]]:
        """Return other rows as a problem, and the components found in them at each value."""
        raise NotImplementedError

    def fitted(self, hook: Notify) -> tuple[Any, ...]:
        """Return the results for all the data, one for each value.

        The hook is told each value; if it returns True, the path ends.
        """
        raise NotImplementedError

    def warn(self, results: Sequence[Any]) -> None:
        """Warn of what the fits to all the data did not reach, unless these fits have warned."""

    def path(self, hook: Notify) -> SparsityPath:
        """Return the path of all the data: what each value explains, and the index of sparseness."""
        results = self.fitted(hook)
        problem, m, r = self.problem, len(results), self.r
        cardinality, shares = np.zeros((m, r), np.intp), np.zeros((m, r))
        for i, result in enumerate(results):
            cardinality[i, : result.n_components] = np.count_nonzero(result.loadings, axis=0)
            if problem.diagonal is not None:
                shares[i, : result.n_components] = result.explained_variance_ratio
        dense = index = None
        if problem.diagonal is not None:
            dense = dense_shares(problem, r)()
            zeros = 1 - cardinality.sum(axis=1) / (problem.p * r)
            index = shares.sum(axis=1) * dense.sum() * zeros
        return SparsityPath(
            self.parameter, self.values, None if dense is None else shares, cardinality, dense, index,
            results, self.method, self.deflation, self.kind, problem.n_samples, problem.names,
        )  # fmt: skip

    def cross_validated(
        self, n_folds: int, n_repeats: int, threads: int, hook: Notify, full: Sequence[AnyArray] | None = None
    ) -> Array:
        """Return a score for each fold and each value, from fits to the rows outside of the fold.

        The score is the share of the variance of left-out entries that is predicted, as explained below. If
        components are counted, the second axis has the scores of the first 0, 1, ..., r components. With
        `full`, the loadings of all rows at each value, the score is how well the scores of the fold by these
        loadings and by those of the fit agree: the mean magnitude of their correlations.
        """
        X, by_blocks = plain_rows(self.X), is_row_blocks(self.X)
        n = X.shape[0]
        # Folds
        folds = []
        for repeat in range(n_repeats):
            order = np.random.default_rng([self.seed, repeat]).permutation(n)
            folds += [np.sort(fold) for fold in np.array_split(order, n_folds)]
        fewest = min(n - len(fold) for fold in folds)
        if fewest < self.r:
            raise ValueError(
                f"n_components must be at most {fewest}, the rows outside of a fold, not {self.r}"
            )
        # Each column needs an entry outside of each fold
        if isinstance(X, np.ndarray) and np.isnan(X).any():
            for fold in folds:
                empty = np.isnan(np.delete(X, fold, axis=0)).all(axis=0)
                if empty.any():
                    j = int(np.argmax(empty))
                    raise ValueError(f"column {j} of X has entries other than NaN in one fold only")

        def score(fold: Index, report: Report) -> list[float]:
            """Return the scores of one fold."""
            rows = np.delete(np.arange(n), fold)
            problem, solutions = self.searched(X.taken(rows) if by_blocks else X[rows], report)
            own = X.taken(fold) if by_blocks else X[fold]
            held = _HeldOutRows(own, problem.unscreened())
            if full is not None:
                whole, first = _HeldOutRows(own, self.problem.unscreened()), self.r - 1 if self.grids else 0
                pairs = zip(solutions, full, strict=True)
                own_and_whole = [(held.scores(loadings_of(problem, c)), whole.scores(V)) for c, V in pairs]
                return [float(_agreement(*pair, self.r)[first:].mean()) for pair in own_and_whole]
            if self.counting:
                solutions = [solutions[0][:t] for t in range(self.r + 1)]
            return [held.score(components) for components in solutions]

        return np.array(in_threads(score, folds, threads, hook))

    def permuted(self, count: int, threads: int, hook: Notify) -> Array:
        """Return the share of the variance of all components, in X and in `count` permutations of X.

        The shape is (1 + count, m) for m values; the first row is X itself. A permutation shuffles each
        column by itself.
        """
        X = plain_rows(self.X)

        def shares(i: int, report: Report) -> list[float]:
            problem, solutions = self.searched(self.shuffled(X, i) if i else X, report)
            return [float(self.shares(problem, components).sum()) for components in solutions]

        return np.array(in_threads(shares, range(1 + count), threads, hook))

    def shuffled(self, X: Any, i: int) -> Any:
        """Return the i-th permutation of X."""
        return permuted_columns(X, np.random.default_rng([self.seed, 1, i]))

    @property
    def definition(self) -> str:
        """How the variance is counted that each component explains."""
        return DEFINITIONS[SOLVERS[self.method].objective] if self.method in SOLVERS else "cumulative"

    def shares(self, problem: Problem, components: list[Solution]) -> Array:
        """Return the share of the variance that each component explains, 0 where none was left."""
        problem, out = problem.unscreened(), np.zeros(self.r)
        if problem.trace > 0:
            variances = operator_variances(problem, loadings_of(problem, components), self.definition)
            out[: len(components)] = variances / problem.trace
        return out


class SearchPlan(Plan):
    """The plan for `sparse_pca`: one problem, in which each value starts from components of the last.

    If components are counted, their sparsity is that of the model.
    """

    problem: Problem
    solver: Any
    r: int
    requests: list[Any]
    method: str
    deflation: Any

    def __init__(self, X: Any, model: Model, grid: Grid, rng: Any):
        if isinstance(model.n_components, (float, np.floating)):  # a share of the variance
            raise TypeError(f"n_components must be an integer, not {model.n_components!r}")
        super().__init__(X, model, grid)
        self.counting: bool = self.parameter == "n_components"
        several = self.values.tolist() if self.grids is None else _rows_of(self.grids)
        choices = None if self.counting else several
        self.problem, self.solver, self.r, self.requests = model.seeded(rng).prepared(X, choices)
        first = self.requests[0]
        self.method, self.deflation = first.method.name, first.constraint or first.removal
        self.kind: Any = first.kind
        self.checked: Any = self.requests
        self.problem = formed(self.problem)
        self.seed: int = as_seed(rng) if model.has_seed else first.seed
        self.solutions: list[list[Solution]] = []

    def begin(self, earlier: tuple[int, ...]) -> None:
        """Also fix the sparsities of the earlier components."""
        super().begin(earlier)
        t = len(earlier)
        chosen = tuple(self.checked[i].sparsity[s] for s, i in enumerate(earlier))
        rows = self.checked[: len(self.values)]
        self.requests = [replaced(row, sparsity=(*chosen, row.sparsity[t])) for row in rows]

    @quiet()  # of a part of the rows
    def searched(self, X: Any, report: Report) -> tuple[Problem, list[list[Solution]]]:
        problem = formed(problem_of(X, self.requests[0]))
        return problem, self.search_values(problem, report, report)

    @quiet()
    def search_values(
        self, problem: Problem, hook: Notify, report: Report | None = None
    ) -> list[list[Solution]]:
        """Return the components at each value, searched from the densest value to the sparsest.

        The solution at one value is a start for the next. If the first component at a denser value then
        explains less than at the sparser one before it (if refined: all together), it is searched for again
        from there. `report` is set for other rows than all the data; their solutions are not kept.
        """
        tell = Hook(None if report is None else lambda progress: report())
        solutions: list[list[Solution]] = [[] for _ in self.requests]
        ended = False

        def solve_at(i: int, near: Sequence[Solution]) -> list[Solution]:
            """Return the components at the i-th value; earlier components are the same at all values."""
            request = self.requests[i]
            known = [] if request.attempts else list(near[: len(self.earlier)])  # the same for all values
            return search(problem, self.solver, request, known, self.r, tell, near)

        # From the densest to the sparsest
        for i in range(len(solutions) - 1, -1, -1):
            solutions[i] = solve_at(i, solutions[i + 1] if i + 1 < len(solutions) else ())
            if hook(self.values[i].item()) is True:
                self.values, self.requests = self.values[i:], self.requests[i:]
                solutions, ended = solutions[i:], True
                break
        # And back, where a denser value explains less
        for i in range(1, len(solutions)) if self.parameter != "penalty" and not ended else ():
            sparser, denser = solutions[i - 1], solutions[i]
            if self.requests[i].attempts and len(sparser) == self.r > 1:
                if explained_together(problem, denser) < explained_together(problem, sparser):
                    solutions[i] = refine_all(problem, sparser, self.requests[i], tell)
            elif sparser and denser and denser[0].objective < sparser[0].objective:
                new = solve_at(i, sparser)
                if new and new[0].objective > denser[0].objective:
                    solutions[i] = new
        if report is None:
            self.solutions = solutions
        return solutions

    # Parallel analysis of what components leave. The matrix that is left cannot be permuted itself: in the
    # directions of the loadings it has no noise, and permuted it would have. What matters are the variances
    # of the noise (Dobriban and Owen). A variable has lost the share h_j of its noise, where h_j is the
    # squared norm of row j of an orthonormal basis of the loadings. So each column of X is permuted, and
    # scaled to the variance that is left over 1 - h_j. A regression on t scores also takes t of n - 1 degrees
    # of freedom.

    def permuted(self, count: int, threads: int, hook: Notify) -> Array:
        """Return shares of the variance that earlier components leave, if components are counted.

        The shape is (1 + count, r). The first row has the share of each component in X, the others that of
        the first component in permuted columns of the variances that are left.
        """
        if not self.counting:
            return super().permuted(count, threads, hook)
        X, request, found = plain_rows(self.X), self.requests[0], self.solutions[0]
        own = self.shares(self.problem, found)
        left = np.maximum(1 - np.cumsum(own) + own, EPS)
        scales, totals = self._scales_of_noise(found)

        def shares(i: int, report: Report) -> Array:
            if i == 0:
                report(self.values[0].item())
                return own / left
            rows, out, tell = self.shuffled(X, i), np.zeros(self.r), Hook(lambda progress: report())
            for t, scale in enumerate(scales):
                given = rows
                if t and self.problem.filled is not None:  # no vector goes with missing entries
                    given, scale = (rows / scale).astype(rows.dtype), False
                one = replaced(request, scale=scale, sparsity=request.sparsity[t : t + 1])
                with quiet():
                    problem = formed(problem_of(given, one))
                    first = search(problem, self.solver, one, [], 1, tell)
                out[t] = self.shares(problem, first)[0] * totals[t]
            report(self.values[0].item())
            return out / left

        return np.array(in_threads(shares, range(1 + count), threads, hook))

    def _scales_of_noise(self, found: list[Solution]) -> tuple[list[Any], list[float]]:
        """Return the scales of the permuted columns for each component, and their total over that of X."""
        problem = self.problem.unscreened()
        by_scores = self.definition == "regression"
        state = DeflatedOperator.from_problem(
            problem, DEFLATIONS["orthogonalized_schur" if by_scores else "orthogonalized_projection"]
        )
        scales: list[Any] = [self.requests[0].scale]
        totals = [1.0]
        own = np.ones(problem.p) if problem.scale is None else problem.scale
        for t, component in enumerate(found[: self.r - 1], 1):
            state = state.deflate(component.index, component.entries)
            kept = 1 - sum((q**2 for q in state.basis), np.zeros(problem.p))
            if by_scores:
                kept *= max(problem.degrees - t, 1) / problem.degrees
            noise = np.divide(state.variances, kept, out=np.zeros(problem.p), where=kept > NOISE_LEFT)
            share = np.divide(noise, problem.variances, out=noise, where=problem.variances > 0)
            share = np.maximum(share, NOISE_LEFT)
            scales.append(own / np.sqrt(share))
            totals.append(float(share @ problem.variances) / problem.trace)
        return scales, totals

    def fitted(self, hook: Notify) -> tuple[SparsePCAResult, ...]:
        solutions = self.search_values(self.problem, hook)
        return tuple(self.result(f, s) for f, s in zip(solutions, self.requests, strict=True))

    @quiet()
    def result(self, solutions: list[Solution], request: Request) -> SparsePCAResult:
        """Return the result for all the data at one value."""
        return components_result(self.problem, solutions, request)

    def warn(self, results: Sequence[SparsePCAResult]) -> None:
        fewer = [len(found) < self.r for found in self.solutions]
        unconverged = [not all(x.converged for x in found) for found in self.solutions]
        for some, what in (
            (fewer, f"fewer than {counted(self.r, 'component')} are left"),
            (unconverged, "not converged"),
        ):
            if any(some):
                values = ", ".join(f"{value:g}" for value in self.values[some])
                warn(what if self.counting else f"{what} at {self.parameter} {values}")
        if results:
            shares: list[Any] = [result.explained_variance_ratio for result in results]
            given = np.concatenate([result.explained_variance for result in results])
            warn_out_of_range(np.zeros(1) if shares[0] is None else np.concatenate(shares), given)


class FitPlan(Plan):
    """The plan for any other function, which is called at each value, for each fold and each permutation."""

    seed: int
    method: str

    def __init__(self, X: Any, model: Model, grid: Grid, rng: Any):
        if model.keywords.get("kind", "data") != "data":
            raise TypeError(f"kind must be 'data' when the sparsity of {model.name} is chosen")
        self.seed, self.method = as_seed(rng), model.name
        super().__init__(X, model.seeded(None if rng is None else self.seed), grid)
        center, scale = model.keyword("center", True), model.keyword("scale", False)
        if center is None:  # `sca` centers, unless it scales a graph by degrees
            center = not isinstance(scale, str)
        self.treatment: dict[str, Any] = {"center": center, "scale": scale}
        weight = model.keywords.get("sample_weight")
        if not all(isinstance(value, bool) for value in self.treatment.values()):
            raise TypeError("center and scale must be True or False when the sparsity is chosen")
        self.problem: Problem = as_problem(X, sample_weight=weight, **self.treatment)
        self.model = self.model.by_place(self.problem.names, self.problem.p)
        most = min(self.problem.p, self.problem.n_samples or self.problem.p)
        self.r: int = integer(model.n_components, "n_components", 1, most)
        for t, one in enumerate(self.grids or ()):
            if self.parameter == "cardinality":
                integer(one[-1], f"cardinality[{t}][{len(one) - 1}]", 1, self.problem.p)

    @quiet()
    def searched(self, X: Any, report: Report) -> tuple[Problem, list[list[Solution]]]:
        problem = as_problem(X, **self.treatment)
        fits = self.fits(X, report, callback=lambda progress: report())
        return problem, [_solutions(fit.loadings, problem) for fit in fits]

    def fitted(self, hook: Notify) -> tuple[Any, ...]:
        results = self.fits(self.X, hook)
        self.values = self.values[-len(results) :]
        return tuple(results)

    def fits(self, X: Any, hook: Notify, **options: Any) -> list[Any]:
        """Return the result at each value; the hook ends this at a value, from the densest on, by True."""
        results: list[Any] = []
        for i in range(len(self.values))[::-1]:
            results.insert(0, self.model_of(i).fit(X, **options))
            if hook(self.values[i].item()) is True:
                break
        return results


def _rows_of(grids: list[AnyArray]) -> Any:
    """Return rows with one value for each component, which together have all values of all grids."""
    longest = max(map(len, grids))
    return np.transpose([np.pad(grid, (0, longest - len(grid)), "edge") for grid in grids]).tolist()


def _solutions(loadings: AnyArray, problem: Problem) -> list[Solution]:
    """Return the loadings, at unit length, as solutions; those that are zero are left out."""
    unit = unit_columns(np.asarray(loadings, np.float64)).astype(problem.operator.dtype)
    return [Solution(*x, 0.0) for x in nonzeros_of(unit) if len(x[0])]


# ---- the score of left-out entries ----------------------------------------------------------------------
# Rows are split into folds. The rows outside of a fold give loadings V, their additional variances d, the
# mean, and the noise `s2 = (total - sum d)/(p - r)`. These make the model `x ~ N(mean, WW' + s2 I)` with
# `W = V diag(max(d - s2, 0))^(1/2)`. In each row y of the fold, each entry is left out in turn, and predicted
# by its expectation given the other entries of the row. With `M = W'W + s2 I`, `e = y - W M^-1 W'y` and
# `h_j = w_j'M^-1 w_j`, the error is `e_j/(1 - h_j)`, because the posterior means of the scores are a ridge
# regression of the row on W, whose leave-one-out errors have this closed form. Variables without a loading
# are predicted by their means. The score is the share of the variance of the fold that is predicted in this
# way, `1 - sum of squared errors/sum of squares about the mean`. It falls where loadings fit noise; the share
# that a projection explains never does.


@record
class _Units:
    """How entries are centered and scaled: (entry - mean)/scale, times a power of two against overflow."""

    mean: Array
    scale: Array
    exponent: int = 0

    def of(self, entries: AnyArray, columns: Any) -> Array:
        """Return the entries of these columns, centered and scaled."""
        with beyond_range():
            return np.ldexp((entries - self.mean[columns]) / self.scale[columns], self.exponent)

    def parts(self, rows: Any) -> Iterator[Array]:
        """Yield all entries of the rows, centered and scaled, a few columns at a time.

        For a sparse matrix these are the stored entries and, for each column, one number whose square is the
        sum of squares of all entries that are not stored.
        """
        m, p = rows.shape
        if is_sparse(rows):  # what is not stored is 0, so -mean after centering
            rows = rows.tocsc()
            columns = np.repeat(np.arange(p), np.diff(rows.indptr))
            yield self.of(rows.data, columns)
            yield np.sqrt(m - np.diff(rows.indptr)) * self.of(np.zeros(p), slice(p))
            return
        for block in slices(p, m, PART_ENTRIES):
            yield self.of(rows[:, block], block)


def _largest(rows: Any, units: _Units) -> float:
    """Return the largest magnitude of the rows in these units."""
    return max(float(np.fmax.reduce(np.abs(part), None, initial=0)) for part in units.parts(rows))


def _sum_of_squares(rows: Any, units: _Units) -> float:
    """Return the sum of squares of the rows in these units."""
    return sum(float(np.nansum(part**2)) for part in units.parts(rows))


def _predicted(rows: Any, units: _Units, used: Index, W: Array, noise: float) -> float:
    """Return the sum of squares of the variables with loadings, less that of the errors of prediction."""
    parts = _dense_parts(rows, units, used, len(used) * W.shape[1] + W.shape[1] ** 2)
    return sum(float(np.nansum(Y**2)) - left_out_error(Y, W, noise) for Y in parts)


def _dense_parts(rows: Any, units: _Units, used: Index, entries: int) -> Iterator[Array]:
    """Yield these columns of a few rows at a time, if the work needs so many entries for each row."""
    for part in slices(rows.shape[0], entries, PART_ENTRIES):
        yield units.of(as_dense(rows[part][:, used]), used)


def _agreement(U: Array, V: Array, r: int) -> Array:
    """Return the magnitudes of the correlations of the r columns of scores U and V.

    They are 0 where one is constant or missing.
    """
    out, t = np.zeros(r), min(U.shape[1], V.shape[1])
    U, V = (columns_near_one(W[:, :t] - W[0, :t]) for W in (U, V))  # so that constants become exact zeros
    U, V = (unit_columns(W - W.mean(axis=0)) for W in (U, V))
    out[:t] = np.abs((U * V).sum(axis=0))
    return out


class _HeldOutRows:
    """The rows of a fold, centered and scaled by the means and deviations of the fit, and a power of 2."""

    def __init__(self, rows: Any, problem: Problem):
        self.rows, self.problem = rows, problem
        mean, scale = np.zeros(problem.p), np.ones(problem.p)
        if problem.mean is not None:
            mean = problem.mean.astype(np.float64)
        if problem.scale is not None:  # no unit where the fit saw no variance
            scale = np.where(problem.variances > 0, problem.scale, np.inf)
        self.units: _Units = _Units(mean, scale)
        largest = max(self._per_block(_largest))
        if not math.isfinite(largest):
            raise ValueError("the left-out rows exceed the number range; rescale X")
        self.units = replaced(self.units, exponent=-exponent_above(largest))
        self.total: float = sum(self._per_block(_sum_of_squares))

    def _per_block(self, task: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Return the results of a task for all rows or, for row blocks, for each block."""
        if is_row_blocks(self.rows):
            return list(self.rows.results(task, self.units, *arguments))
        return [task(self.rows, self.units, *arguments)]

    def scores(self, V: AnyArray) -> Array:
        """Return the scores of the rows by loadings V; missing entries count as the mean."""
        return row_scores(self.rows, V.astype(np.float64), self.units.mean, self.units.scale, missing=True)

    def score(self, solutions: list[Solution]) -> float:
        """Return the share of the sum of squares that the components predict."""
        problem = self.problem
        if not solutions or not self.total > 0:
            return 0.0
        V = loadings_of(problem, solutions)
        root, noise = _roots_and_noise(problem, V)
        used = np.flatnonzero(V.any(axis=1))
        W = V[used].astype(np.float64) * root
        return sum(self._per_block(_predicted, used, W, noise)) / self.total


def _roots_and_noise(problem: Problem, V: AnyArray) -> tuple[Array, float]:
    """Return the factors of the columns in W = V diag(root), and s2, which is kept above 0."""
    variances, total = operator_variances(problem, V, "cumulative"), problem.trace
    left = max(total - float(variances.sum()), 0.0) / max(problem.p - V.shape[1], 1)
    noise = max(left, 1e-10 * total / problem.p)
    return roots(variances - noise), noise


def left_out_error(Y: Array, W: Array, noise: float) -> float:
    """Return the sum of squared errors when each entry of Y is predicted from the others of its row.

    NaN entries are neither predicted nor used.
    """
    # M = W'W of the observed variables of each row: one matrix for all rows if none is missing
    observed = ~np.isnan(Y)
    M = (W.T @ W)[None]
    if not observed.all():
        Y = np.where(observed, Y, 0)
        products = W[:, :, None] * W[:, None, :]
        M = np.tensordot(observed.astype(np.float64), products, 1)
    # e_j/(1 - h_j)
    inverse = np.linalg.inv(M + noise * np.eye(W.shape[1]))
    scores = ((Y @ W)[:, None, :] @ inverse)[:, 0]
    leverage = ((W @ inverse) * W).sum(axis=-1)
    errors = (Y - scores @ W.T) / np.maximum(1 - leverage, EPS)
    return float(np.sum(errors**2, where=observed))


# ---- the likelihood of components with noise, `x ~ N(mean, WW' + s2 I)`, and what its parameters cost ---
# As for left-out entries, `W = V diag(max(d - s2, 0))^(1/2)` for loadings V of additional variances d, and
# `s2 = (total - sum d)/(p - r)`. With `M = W'W + s2 I` and the sample covariance A,
#
#     log det(WW' + s2 I) = (p - r) log s2 + log det M,   Tr((WW' + s2 I)^-1 A) = (Tr A - Tr(M^-1 W'AW))/s2.


def schwarz_criterion(problem: Problem, V: AnyArray) -> float:
    """Return the Bayesian information criterion of loadings, per sample and so that larger is better.

    It is the log-likelihood, less `log(n)/2` for each nonzero and for s2, over n.
    """
    assert problem.n_samples is not None
    n, p, r, total = problem.n_samples, problem.p, V.shape[1], problem.trace
    if not total > 0:
        return 0.0
    root, noise = _roots_and_noise(problem, V)
    W = V.astype(np.float64) * root
    image = problem.operator.apply_block(np.asfortranarray(V, problem.operator.dtype))
    inner = W.T @ (image * root)
    M = W.T @ W + noise * np.eye(r)
    trace = (total - float(np.trace(np.linalg.solve(M, inner)))) / noise
    determinant = (p - r) * math.log(noise) + float(np.linalg.slogdet(M)[1])
    if problem.unit > 0 and math.isfinite(problem.unit):
        determinant += p * math.log(problem.unit)
    likelihood = -0.5 * (n * (p * LOG_2PI + determinant) + (n - 1) * trace)
    return (likelihood - 0.5 * (np.count_nonzero(V) + 1) * math.log(n)) / n
