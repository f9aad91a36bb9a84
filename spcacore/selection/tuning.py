"""Searches over several values of the sparsity, of all the data, of folds and of permutations.

Left-out entries. Rows are split into folds. The other rows give loadings V, their additional variances d,
the mean, and the noise `s2 = (total - sum d)/(p - r)` of the model `x ~ N(mean, WW' + s2 I)`,
`W = V diag(max(d - s2, 0))^(1/2)`. In each row y of the fold every entry is left out in its turn, and
predicted by its expectation given the other entries of the row. With `M = W'W + s2 I`,
`e = y - W M^-1 W'y` and `h_j = w_j'M^-1 w_j`, the error of that is `e_j/(1 - h_j)`: posterior means of the
scores are a ridge regression of the row on W, whose leave-one-out errors have this closed form. Variables
without a loading are predicted by their means. The score is the share of the variance of the fold that is
predicted so, `1 - sum of squared errors/sum of squares about the mean`. It falls where loadings fit noise, as
the share explained by a projection never does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._limits import HELD_OUT_ENTRIES
from .._messages import counted, warn
from .._records import record
from .._types import Array
from .._validation import check_callback, is_row_blocks, is_sparse
from ..linalg.threads import Report, in_threads
from ..models.alternation import (
    explained_together,
    prepare,
    problem_of,
    refine_all,
    search,
    with_defaults,
)
from ..models.components import SparsePCAResult, components_result
from ..models.variance import DEFINITIONS, operator_variances
from ..operators.deflation import DEFLATIONS
from ..operators.gram import formed
from ..operators.leading import dense_shares
from ..operators.permutation import permuted_columns
from ..operators.problem import Problem, warn_out_of_range
from ..readable import Listing, Tabular
from ..solvers.solution import Solution
from ..solvers.table import SOLVERS
from .grids import component_grids, sparsity_values

if TYPE_CHECKING:
    pass

__all__ = ["ByValue", "HeldOutRows", "NamedArray", "Plan", "SparsityPath", "left_out_error"]
__dir__ = __all__.copy


class ByValue(Tabular):
    """A result with something for each of several values of a parameter."""

    parameter: str
    values: NDArray[Any]

    def _table(self) -> Listing:
        return Listing(self.parameter, self._index(), self._columns())

    def _index(self) -> list[Any]:
        return self.values.tolist()

    def _columns(self) -> dict[str, Any]:
        raise NotImplementedError


@dataclass(frozen=True, eq=False, repr=False)
class SparsityPath(ByValue):
    """Sparse components for each of several values of their sparsity, from `sparsity_path`.

    It is a sequence: ``path[i]`` is the `SparsePCAResult` of the i-th value.

    `to_frame()` has a row for each value: nonzeros and, if the total is known, explained_variance_ratio
    and index_of_sparseness.

    Attributes
    ----------
    parameter : {"cardinality", "l1_bound", "penalty"}
    values : ndarray of shape (m,)
        The values, from the sparsest to the densest: ascending, or descending for a penalty.
    explained_variance_ratio : ndarray of shape (m, r) or None
        Additional share of the variance of each component, as in `SparsePCAResult`; 0 where none was left.
        None where the total is unknown.
    cardinality : ndarray of shape (m, r), int
        The number of nonzeros of each loading.
    dense_ratio : ndarray of shape (r,) or None
        Shares of the variance of the first r ordinary principal components.
    index_of_sparseness : ndarray of shape (m,) or None
        `(share explained) (share of the ordinary components) (share of zeros among the loadings)`
        (Trendafilov 2014): it rewards both variance and zeros.
    results : tuple of m SparsePCAResult
    method, deflation, kind : str
    n_samples : int or None
    names : tuple of str or None
        Names of the variables, if the input had any.

    Examples
    --------
    >>> import spcacore
    >>> X, planted = spcacore.datasets.make_spiked(100, 50, cardinality=5, rng=0)
    >>> path = spcacore.sparsity_path(X, n_components=2, cardinality=[2, 5, 10])
    >>> path.explained_variance_ratio.shape, path[1].cardinality.tolist()
    ((3, 2), [5, 5])
    """

    parameter: str
    values: NDArray[Any]
    explained_variance_ratio: NDArray[Any] | None
    cardinality: NDArray[np.intp]
    dense_ratio: Array | None
    index_of_sparseness: Array | None
    results: tuple[SparsePCAResult, ...]
    method: str
    deflation: str
    kind: str
    n_samples: int | None
    names: tuple[str, ...] | None

    @property
    def n_components(self) -> int:
        """Number of components."""
        return self.cardinality.shape[1]

    def __len__(self) -> int:
        return len(self.results)

    def __getitem__(self, i: int) -> SparsePCAResult:
        return self.results[i]

    def __iter__(self) -> Iterator[SparsePCAResult]:
        return iter(self.results)

    def _columns(self) -> dict[str, Any]:
        columns: dict[str, Any] = {"nonzeros": self.cardinality.sum(axis=1)}
        if self.explained_variance_ratio is not None:
            columns["explained_variance_ratio"] = self.explained_variance_ratio.sum(axis=1)
            columns["index_of_sparseness"] = self.index_of_sparseness
        return columns

    def _facts(self) -> list[str]:
        first, last = self.values[[0, -1]]
        facts = [
            f"method={self.method!r}", counted(self.n_components, "component"),
            f"{counted(len(self), 'value')} of {self.parameter} from {first:.6g} to {last:.6g}",
        ]  # fmt: skip
        if self.explained_variance_ratio is not None:
            low, high = 100 * self.explained_variance_ratio.sum(axis=1)[[0, -1]]
            facts.append(f"{low:.1f} to {high:.1f} % of the variance explained")
        return facts


class NamedArray:
    """An array with the names of its columns."""

    def __init__(self, array: NDArray[Any], columns: tuple[str, ...] | None):
        self.array, self.columns = array, columns

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    def __array__(self, dtype: Any = None, copy: Any = None) -> NDArray[Any]:
        return self.array


class Plan:
    """What to fit, for any rows: values from the sparsest to the densest, and options.

    Where grids differ by component, `begin` says whose values are tried; those of `earlier` ones are chosen.
    """

    grids: list[NDArray[Any]] | None = None
    earlier: tuple[int, ...] = ()

    def __init__(
        self,
        X: Any,
        n_components: Any,
        given: dict[str, Any],
        method: str | None,
        deflation: str | None,
        kind: str,
        center: bool,
        scale: bool,
        rng: Any,
        options: dict[str, Any],
        counting: bool = False,
        by_component: bool = False,
    ):
        if options.get("sample_weight") is not None:
            raise TypeError("sample_weight cannot be used here: folds and permutations weigh all rows alike")
        if options.get("explained") is not None:
            raise TypeError("explained is for sparse_pca: give the values of the sparsity to try")
        if isinstance(n_components, (float, np.floating)):
            raise TypeError(f"n_components must be an integer, not {n_components!r}")
        method, deflation = with_defaults(
            method, options.pop("objective", None), deflation, options.get("constraint")
        )
        self.X, self.method, self.deflation, self.kind = X, method, deflation, kind
        self.parameter = SOLVERS[method].sparsity
        self.counting = counting
        self.options = options | {
            "method": method, "deflation": deflation, "kind": kind, "center": center, "scale": scale,
        }  # fmt: skip
        self.values, sparsities = np.zeros(1), [given]
        if not counting:
            if by_component:
                self.grids = component_grids(self.parameter, given, n_components)
            if self.grids is None:
                self.values = sparsity_values(X, self.parameter, given, options)
            choices = self.values.tolist() if self.grids is None else _rows_of(self.grids)
            sparsities = [given | {self.parameter: choice} for choice in choices]
        self.problem, self.solver, self.r, self.settings = prepare(
            X, n_components, sparsities, rng=rng, **self.options
        )
        self.checked = self.settings
        self.problem = formed(self.problem)
        self.seed = self.settings[0]["seed"]
        self.solutions: list[list[Solution]] = []

    def begin(self, earlier: tuple[int, ...]) -> None:
        """Try the values of the next component, where those of these indices are chosen for earlier ones."""
        assert self.grids is not None
        t, name = len(earlier), self.parameter
        self.earlier, self.r, self.values = earlier, t + 1, self.grids[t]
        if self.checked:
            chosen = tuple(self.checked[i][name][s] for s, i in enumerate(earlier))
            rows = self.checked[: len(self.values)]
            self.settings = [row | {name: (*chosen, row[name][t])} for row in rows]

    def given(self, i: int) -> Any:
        """The sparsity of the i-th value, of all components or of each."""
        value = self.values[i].item()
        if self.grids is None:
            return value
        return [*(grid[k].item() for grid, k in zip(self.grids, self.earlier, strict=False)), value]

    def problem_of(self, X: Any) -> Problem:
        """The same problem for other rows."""
        return formed(problem_of(X, SOLVERS[self.method], self.kind, self.settings[0]))

    def search_values(
        self, problem: Problem, hook: Callable[[Any], object] | None, report: Report | None = None
    ) -> list[list[Solution]]:
        """The components of each value, from the densest value to the sparsest.

        The solution of one value is a start for the next. Where the first component of a denser value then
        explains less than that of a sparser one, or all refined ones do, it is searched for again from there.
        Of folds and permutations, which pass a report, the search has fewer starts.
        """
        tell = None if report is None else check_callback(lambda progress: report())
        solutions: list[list[Solution]] = [[] for _ in self.settings]
        ended = False

        def solve_at(i: int, near: Sequence[Solution]) -> list[Solution]:
            settings = self.settings[i]
            known = [] if settings["refine"] else list(near[: len(self.earlier)])  # the same for all values
            new = search(
                problem, self.solver, DEFLATIONS[self.deflation], settings, known, self.r, tell, near,
                quick=report is not None, quiet=True,
            )  # fmt: skip
            if settings["refine"] and len(new) > 1:
                new = refine_all(problem, new, settings, tell, quiet=True)
            return new

        for i in range(len(solutions) - 1, -1, -1):
            solutions[i] = solve_at(i, solutions[i + 1] if i + 1 < len(solutions) else ())
            if hook is not None and hook(self.values[i].item()) is True:
                self._drop_values_before(i)
                solutions, ended = solutions[i:], True
                break
        for i in range(1, len(solutions)) if self.parameter != "penalty" and not ended else ():
            sparser, denser = solutions[i - 1], solutions[i]
            if self.settings[i]["refine"] and len(sparser) == self.r > 1:
                if explained_together(problem, denser) < explained_together(problem, sparser):
                    solutions[i] = refine_all(problem, sparser, self.settings[i], tell, quiet=True)
            elif sparser and denser and denser[0].objective < sparser[0].objective:
                new = solve_at(i, sparser)
                if new and new[0].objective > denser[0].objective:
                    solutions[i] = new
        if report is None:
            self.solutions = solutions
        return solutions

    def _drop_values_before(self, first: int) -> None:
        """The callback has ended the search at this value."""
        self.values, self.settings = self.values[first:], self.settings[first:]

    def warn(self, results: Sequence[SparsePCAResult]) -> None:
        """Warn of what the search on all the data did not reach."""
        by_value = list(zip(self.values.tolist(), self.solutions, strict=True))
        fewer = [value for value, components in by_value if len(components) < self.r]
        unconverged = [value for value, components in by_value if not all(x.converged for x in components)]
        for some, what in (
            (fewer, f"fewer than {counted(self.r, 'component')} are left"),
            (unconverged, "not converged"),
        ):
            if some:
                where = "" if self.counting else f" at {self.parameter} {', '.join(f'{v:g}' for v in some)}"
                warn(f"{what}{where}")
        if results:
            given = [result.explained_variance for result in results]
            shares = [
                np.zeros(result.n_components) if (share := result.explained_variance_ratio) is None else share
                for result in results
            ]
            warn_out_of_range(np.concatenate(shares), np.concatenate(given))

    def result(self, solutions: list[Solution], settings: dict[str, Any]) -> SparsePCAResult:
        read, problem = self.problem.screening(), self.problem.unscreened()
        return components_result(
            problem, solutions, read, self.method, self.deflation, self.kind, settings, quiet=True
        )

    def path(self, hook: Callable[[Any], object]) -> SparsityPath:
        problem = self.problem
        solutions = self.search_values(problem, hook)
        results = tuple(self.result(f, s) for f, s in zip(solutions, self.settings, strict=True))
        m, r = len(results), self.r
        shares = dense = index = None
        if problem.diagonal is not None:
            shares = np.zeros((m, r))
            for i, result in enumerate(results):
                assert result.explained_variance_ratio is not None
                shares[i, : result.n_components] = result.explained_variance_ratio
            dense = dense_shares(problem, r)
        cardinality = np.zeros((m, r), np.intp)
        for i, result in enumerate(results):
            cardinality[i, : result.n_components] = result.cardinality
        if shares is not None and dense is not None:
            zeros = 1 - cardinality.sum(axis=1) / (problem.p * r)
            index = shares.sum(axis=1) * dense.sum() * zeros
        return SparsityPath(
            self.parameter, self.values, shares, cardinality, dense, index, results, self.method,
            self.deflation, self.kind, problem.n_samples, problem.names,
        )  # fmt: skip

    def shares(self, problem: Problem, solutions: list[list[Solution]]) -> Array:
        """Additional shares (m, r) of the variance; 0 where no component was left."""
        assert problem.diagonal is not None
        total, definition = float(problem.diagonal.sum()), DEFINITIONS[SOLVERS[self.method].objective]
        out = np.zeros((len(solutions), self.r))
        for i, components in enumerate(solutions):
            variances = operator_variances(problem, _loadings(problem, components), definition)
            out[i, : len(components)] = variances / total if total > 0 else 0.0
        return out

    def _rows(self) -> Any:
        return self.X if is_sparse(self.X) or is_row_blocks(self.X) else self.X.array

    def cross_validated(
        self,
        n_folds: int,
        n_repeats: int,
        threads: int,
        hook: Callable[[Any], object],
    ) -> Array:
        """Scores (folds, m) of left-out entries; where components are counted, of the first 0, 1, ..., r."""
        X, by_blocks = self._rows(), is_row_blocks(self.X)
        n = X.shape[0]
        folds = []
        for repeat in range(n_repeats):
            order = np.random.default_rng([self.seed, repeat]).permutation(n)
            folds += [np.sort(fold) for fold in np.array_split(order, n_folds)]
        fewest = min(n - len(fold) for fold in folds)
        if fewest < self.r:
            raise ValueError(
                f"n_components must be at most {fewest}, the rows outside of a fold, not {self.r}"
            )
        if isinstance(X, np.ndarray) and np.isnan(X).any():
            for fold in folds:
                empty = np.isnan(np.delete(X, fold, axis=0)).all(axis=0)
                if empty.any():
                    j = int(np.argmax(empty))
                    raise ValueError(f"column {j} of X has entries other than NaN in one fold only")

        def score(fold: NDArray[np.intp], report: Report) -> list[float]:
            rows = np.delete(np.arange(n), fold)
            problem = self.problem_of(X.taken(rows) if by_blocks else X[rows])
            solutions = self.search_values(problem, None if self.counting else report, report)
            held = HeldOutRows(X.taken(fold) if by_blocks else X[fold], problem.unscreened())
            if not self.counting:
                return [held.score(components) for components in solutions]
            scores = [held.score(solutions[0][:t]) for t in range(self.r + 1)]
            report(self.r)
            return scores

        return np.array(in_threads(score, folds, threads, hook))

    def permuted(self, count: int, threads: int, hook: Callable[[Any], object]) -> Array:
        """Shares (1 + count, m, r), or (1 + count, r) of counted components: as X is, then permuted."""
        X = self._rows()

        def shares(i: int, report: Report) -> Array:
            problem = self.problem_of(
                permuted_columns(X, np.random.default_rng([self.seed, 1, i])) if i else X
            )
            solutions = self.search_values(problem, None if self.counting else report, report)
            out = self.shares(problem.unscreened(), solutions)
            if self.counting:
                report(self.r)
            return out[0] if self.counting else out

        return np.array(in_threads(shares, range(1 + count), threads, hook))


def _rows_of(grids: list[NDArray[Any]]) -> list[list[Any]]:
    """All values of all grids, one of each component in a row."""
    longest = max(len(grid) for grid in grids)
    return [[grid[min(i, len(grid) - 1)].item() for grid in grids] for i in range(longest)]


def _loadings(problem: Problem, solutions: list[Solution]) -> NDArray[Any]:
    V = np.zeros((problem.p, len(solutions)), problem.operator.dtype)
    for t, x in enumerate(solutions):
        V[x.index, t] = x.entries
    return V


# ---- left-out entries ----------------------------------------------------------------------------------


@record
class _Units:
    """Centering and scaling of entries, and a power of two that multiplies them then."""

    mean: Array
    scale: Array
    exponent: int = 0

    def of(self, entries: NDArray[Any], columns: Any) -> Array:
        with np.errstate(over="ignore", under="ignore"):
            return np.ldexp((entries - self.mean[columns]) / self.scale[columns], self.exponent)

    def parts(self, rows: Any) -> Iterator[Array]:
        """All entries, a few columns at a time."""
        m, p = rows.shape
        if is_sparse(rows):  # what is not stored is -mean
            rows = rows.tocsc()
            columns = np.repeat(np.arange(p), np.diff(rows.indptr))
            yield self.of(rows.data, columns)
            yield np.sqrt(m - np.diff(rows.indptr)) * self.of(np.zeros(p), slice(p))
            return
        step = max(1, HELD_OUT_ENTRIES // max(m, 1))
        for start in range(0, p, step):
            block = slice(start, start + step)
            yield self.of(rows[:, block], block)


def _largest(rows: Any, units: _Units) -> float:
    return max(float(np.fmax.reduce(np.abs(part), None, initial=0)) for part in units.parts(rows))


def _sum_of_squares(rows: Any, units: _Units) -> float:
    return sum(float(np.nansum(part**2)) for part in units.parts(rows))


def _predicted(rows: Any, units: _Units, used: NDArray[np.intp], W: Array, noise: float) -> float:
    """The sum of squares of the variables with loadings, less that of the prediction errors."""
    predicted, step = 0.0, max(1, HELD_OUT_ENTRIES // (len(used) * W.shape[1] + W.shape[1] ** 2))
    for start in range(0, rows.shape[0], step):
        part = rows[start : start + step]
        part = part[:, used].toarray() if is_sparse(part) else part[:, used]
        Y = units.of(part, used)
        predicted += float(np.nansum(Y**2)) - left_out_error(Y, W, noise)
    return predicted


class HeldOutRows:
    """Rows outside of a fit, centered and scaled by its means and deviations, times a power of two."""

    def __init__(self, rows: Any, problem: Problem):
        self.rows, self.problem = rows, problem
        p = problem.p
        mean = np.zeros(p) if problem.mean is None else problem.mean.astype(np.float64)
        scale = np.ones(p)
        if problem.scale is not None:  # where the fit saw no variance there is no unit
            assert problem.diagonal is not None
            scale = np.where(problem.diagonal > 0, problem.scale, np.inf)
        self.units = _Units(mean, scale)
        largest = max(self._per_block(_largest))
        if not math.isfinite(largest):
            raise ValueError("the left-out rows exceed the number range; rescale X")
        self.units = _Units(mean, scale, -math.frexp(largest)[1])
        self.total = sum(self._per_block(_sum_of_squares))

    def _per_block(self, task: Callable[..., float], *arguments: Any) -> list[float]:
        """The results of a task for all rows, or for each block of them."""
        if is_row_blocks(self.rows):
            return list(self.rows.results(task, self.units, *arguments))
        return [task(self.rows, self.units, *arguments)]

    def score(self, solutions: list[Solution]) -> float:
        """The share of the sum of squares that is predicted."""
        problem = self.problem
        assert problem.diagonal is not None
        if not solutions or not self.total > 0:
            return 0.0
        V = _loadings(problem, solutions)
        variances = operator_variances(problem, V, "cumulative")
        total = float(problem.diagonal.sum())
        left = max(total - float(variances.sum()), 0.0) / max(problem.p - len(solutions), 1)
        noise = max(left, 1e-10 * total / problem.p)
        used = np.flatnonzero(V.any(axis=1))
        W = V[used].astype(np.float64) * np.sqrt(np.maximum(variances - noise, 0))
        return sum(self._per_block(_predicted, used, W, noise)) / self.total


def left_out_error(Y: Array, W: Array, noise: float) -> float:
    """Sum of squared errors of each entry of Y, predicted from the others of its row, but for NaN entries."""
    observed = ~np.isnan(Y)
    M = (W.T @ W)[None]
    if not observed.all():
        Y = np.where(observed, Y, 0)
        products = W[:, :, None] * W[:, None, :]
        M = np.tensordot(observed.astype(np.float64), products, 1)
    inverse = np.linalg.inv(M + noise * np.eye(W.shape[1]))
    scores = ((Y @ W)[:, None, :] @ inverse)[:, 0]
    leverage = ((W @ inverse) * W).sum(axis=-1)
    errors = (Y - scores @ W.T) / np.maximum(1 - leverage, np.finfo(float).eps)
    return float(np.sum(errors**2, where=observed))
