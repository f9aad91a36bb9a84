"""The gap statistic: the bound at which the objective most exceeds the one for permuted data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._messages import counted
from .._records import frozen_record
from .._types import MatrixLike, Metric, RandomSource
from .._validation import as_seed, integer, require_memory
from ..linalg.threads import Report, check_jobs, in_threads
from ..progress import ProgressCounter, SelectionCallback, check_callback, refuse_ended
from ..readable import Listing, Tabular
from .columns import (
    Array,
    Fit,
    Labels,
    check_l1_bounds,
    check_number_range,
    warn_unless_converged,
)
from .dissimilarity import AnyDifferences, as_differences, best_weights, check_iterations, starting_vectors
from .kmeans import as_kmeans_input, best_partition, first_partitions
from .kmeans_blocks import AnyColumns


@frozen_record
class GapStatistic(Tabular):
    """How far the objective is above the one for permuted data, for each bound on the weights.

    `to_frame()` has a row for each bound: gap, deviation, objective, nonzeros, chosen.

    Attributes
    ----------
    l1_bounds : ndarray of shape (m,)
        The bounds, ascending.
    gap : ndarray of shape (m,)
        `log objective - mean log permuted`.
    deviation : ndarray of shape (m,)
        Standard deviation of `log permuted`.
    objective : ndarray of shape (m,)
        The objective for the data.
    permuted : ndarray of shape (m, n_permutations)
        The objective for data in which the entries of each variable are permuted.
    cardinality : ndarray of shape (m,), intp
        Number of nonzero weights for the data.
    l1_bound : float
        The bound with the largest gap.
    smallest_l1_bound : float
        The smallest bound whose gap is within one standard deviation of the largest.

    Examples
    --------
    >>> import numpy as np, spcacore
    >>> X = np.random.default_rng(0).standard_normal((30, 200))
    >>> X[15:, :10] += 3
    >>> found = spcacore.sparse_dissimilarity_gap(X, [1.5, 3, 6, 12])
    >>> int(found.gap.argmax()), found.l1_bound, found.permuted.shape
    (1, 3.0, (4, 10))
    """

    l1_bounds: Array
    gap: Array
    deviation: Array
    objective: Array
    permuted: Array
    cardinality: Labels
    l1_bound: float
    smallest_l1_bound: float

    def _facts(self) -> list[str]:
        return [
            f"l1_bound={self.l1_bound:.4g}", f"smallest_l1_bound={self.smallest_l1_bound:.4g}",
            counted(len(self.l1_bounds), "bound"), counted(self.permuted.shape[1], "permutation"),
        ]  # fmt: skip

    def _table(self) -> Listing:
        columns = {
            "gap": self.gap, "deviation": self.deviation, "objective": self.objective,
            "nonzeros": self.cardinality, "chosen": self.l1_bounds == self.l1_bound,
        }  # fmt: skip
        return Listing("l1_bound", self.l1_bounds.tolist(), columns)


def sparse_dissimilarity_gap(
    X: MatrixLike,
    l1_bounds: ArrayLike | None = None,
    metric: Metric = "sqeuclidean",
    *,
    n_permutations: int = 10,
    max_iter: int = 200,
    tol: float | None = None,
    n_jobs: int = 1,
    rng: RandomSource = None,
    callback: SelectionCallback | None = None,
) -> GapStatistic:
    """Choose the bound of `sparse_dissimilarity` by permutations of each variable.

    For each bound c, let O(c) be the largest `||D w||` found, and O*(c) the one for data in which the entries
    of every variable are permuted independently. The gap is
    `gap(c) = log O(c) - mean over permutations of log O*(c)`. The bound with the largest gap is chosen.

    Parameters
    ----------
    X : array-like of shape (n, p), or sparse matrix
        As in `sparse_dissimilarity`.
    l1_bounds : array-like of shape (m,), optional
        Each in [1, sqrt(p)]; sorted here. Default: ten in geometric progression from 1.2 to `0.7 sqrt(p)`.
    metric : {"sqeuclidean", "absolute", "precomputed"}, default "sqeuclidean"
        As in `sparse_dissimilarity`. If differences are given, samples are permuted.
    n_permutations : int, default 10
    max_iter, tol
        As in `sparse_dissimilarity`.
    n_jobs : int, default 1
        Number of threads; -1 for one per processor. Each holds one permuted copy of X. The result does not
        depend on their number.
    rng : None, int or numpy Generator, optional
        For the permutations. None is a fixed seed.
    callback : callable or True, optional
        Called with a `SelectionProgress` after each permutation. Raising StopIteration ends the search early,
        with the permutations that are finished; a RuntimeError if there are fewer than two.

    Returns
    -------
    GapStatistic
        `l1_bound` with the largest gap, `smallest_l1_bound` within one standard deviation of it, and the
        curve: `l1_bounds`, `gap`, `deviation`, `objective`, `permuted`, `cardinality`.

    Raises
    ------
    ValueError, TypeError
        As in `sparse_dissimilarity`.

    References
    ----------
    D. M. Witten and R. Tibshirani (2010). A framework for feature selection in clustering. Journal of the
    American Statistical Association 105(490), 713-726, sections 3 and 4.

    Examples
    --------
    >>> import numpy as np, spcacore
    >>> X = np.random.default_rng(0).standard_normal((30, 200))
    >>> X[15:, :10] += 3
    >>> spcacore.sparse_dissimilarity_gap(X, [1.5, 3, 6, 12])
    GapStatistic(l1_bound=3, smallest_l1_bound=3, 4 bounds, 10 permutations)
    """
    max_iter, tol = check_iterations(max_iter, tol)
    permutations = _Permutations(n_permutations, n_jobs, rng, callback)
    differences = as_differences(X, metric)
    bounds = check_l1_bounds(l1_bounds, differences.p)

    def solve(differences: AnyDifferences, generator: np.random.Generator) -> list[Fit]:
        starts = starting_vectors(differences)
        return [best_weights(differences, bound, starts, max_iter, tol) for bound in bounds]

    return permutations.gap(differences, bounds, solve, max_iter)


def sparse_kmeans_gap(
    X: MatrixLike,
    n_clusters: int,
    l1_bounds: ArrayLike | None = None,
    *,
    n_permutations: int = 10,
    n_init: int = 20,
    max_iter: int = 100,
    n_jobs: int = 1,
    rng: RandomSource = None,
    callback: SelectionCallback | None = None,
) -> GapStatistic:
    """Choose the bound of `sparse_kmeans` by permutations of each variable.

    Like `sparse_dissimilarity_gap`, but O(c) is the largest `sum_j w_j b_j` found for the bound c.

    Parameters
    ----------
    X : array-like of shape (n, p), or sparse matrix
        As in `sparse_kmeans`, but in memory, because entries are permuted.
    n_clusters, n_init, max_iter
        As in `sparse_kmeans`.
    l1_bounds, n_permutations, n_jobs
        As in `sparse_dissimilarity_gap`.
    rng : None, int or numpy Generator, optional
        For permutations and starts. None is a fixed seed.
    callback : callable or True, optional
        As in `sparse_dissimilarity_gap`.

    Returns
    -------
    GapStatistic
        As from `sparse_dissimilarity_gap`.

    Raises
    ------
    ValueError, TypeError
        As in `sparse_kmeans`.

    References
    ----------
    D. M. Witten and R. Tibshirani (2010), cited in `sparse_kmeans`.

    Examples
    --------
    >>> import numpy as np, spcacore
    >>> X = np.random.default_rng(0).standard_normal((30, 200))
    >>> X[20:, :10] += 3
    >>> spcacore.sparse_kmeans_gap(X, 2, [1.5, 3, 6, 12])
    GapStatistic(l1_bound=6, smallest_l1_bound=6, 4 bounds, 10 permutations)
    """
    max_iter = integer(max_iter, "max_iter", 1)
    n_init = integer(n_init, "n_init", 1)
    permutations = _Permutations(n_permutations, n_jobs, rng, callback)
    require_memory(X, "permutations need")
    columns = as_kmeans_input(X)
    n_clusters = integer(n_clusters, "n_clusters", 2, columns.n)
    bounds = check_l1_bounds(l1_bounds, columns.p)

    def solve(columns: AnyColumns, generator: np.random.Generator) -> list[Fit]:
        starts = first_partitions(columns, n_clusters, n_init, generator)
        return [best_partition(columns, n_clusters, c, starts, max_iter, generator) for c in bounds]

    return permutations.gap(columns, bounds, solve, max_iter)


class _Permutations:
    """The options of the permutations, checked."""

    def __init__(self, n_permutations: Any, n_jobs: Any, rng: Any, callback: Any) -> None:
        self.count = integer(n_permutations, "n_permutations", 2)
        self.threads = check_jobs(n_jobs)
        self.seed = as_seed(rng)
        self.counter = ProgressCounter(check_callback(callback), self.count)

    def gap(
        self,
        columns: AnyColumns | AnyDifferences,
        bounds: list[float],
        solve: Callable[[Any, np.random.Generator], list[Fit]],
        max_iter: int,
    ) -> GapStatistic:
        """Return the gap statistic: log objective less its mean over permutations, for each bound.

        `solve` fits all bounds.
        """

        def permuted(i: int, report: Report) -> list[float]:
            report()
            generator = np.random.default_rng([self.seed, i])
            found = [fit.trace[-1] for fit in solve(columns.permuted(generator, report), generator)]
            report(i)
            return found

        check_number_range(columns, bounds[-1])
        fits = solve(columns, np.random.default_rng([self.seed, 0]))
        warn_unless_converged(all(fit.converged for fit in fits), max_iter)
        objective = np.array([fit.trace[-1] for fit in fits])
        found = in_threads(permuted, range(1, self.count + 1), self.threads, self.counter)
        refuse_ended(len(found), "permutations")
        reference = np.array(found).T
        logs = np.log(reference)
        gap, deviation = np.log(objective) - logs.mean(axis=1), logs.std(axis=1, ddof=1)
        best = int(np.argmax(gap))
        smallest = int(np.argmax(gap >= gap[best] - deviation[best]))
        exponent = columns.power * columns.exponent
        return GapStatistic(
            np.array(bounds), gap, deviation, np.ldexp(objective, exponent), np.ldexp(reference, exponent),
            np.array([np.count_nonzero(fit.weights) for fit in fits]), bounds[best], bounds[smallest],
        )  # fmt: skip
