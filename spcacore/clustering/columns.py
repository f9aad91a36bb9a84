"""Data in memory, centered, for clustering: a few variables at a time, or as points for K-means."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np

from .. import _core
from .._limits import HARTIGAN_MOVES, PART_ENTRIES, THREAD_ENTRIES, slices
from .._messages import counted, warn
from .._records import record
from .._rendering import Part, leading, table_of
from .._types import AnyArray, Array, DType, Index, Names
from .._validation import (
    as_dense,
    check_l1_bound,
    check_sample_weight,
    column_names,
    real_array,
)
from ..linalg.eigen import interruptible
from ..linalg.orthogonal import matrix_product
from ..linalg.scaling import below_range, descending, roots
from ..linalg.threads import Report, in_threads
from ..operators.moments import statistics
from ..operators.sparse import as_finite, permuted_columns, squared_norms
from ..operators.statistics import Statistics
from ..readable import Listing, Tabular, labels

Labels = Index
Search = Generator[tuple[str, Any], Any, Any]  # yields queries about points, and receives answers
Weighted = tuple[Array, Search]  # the weights of the points, and the search
PAIRS = "X must have at least two rows: there are no pairs of samples"


class Samples:
    """Rows whose variables are centered and scaled to about 1 by a power of two.

    Attributes
    ----------
    mean : ndarray of shape (p,)
        Of each variable, by the weights; where it is constant, the constant.
    exponent : int
        Entries times `2**exponent` are in the caller's units.
    names : tuple of str or None
    weight : ndarray of shape (n,) or None
        How many samples each row stands for, each more than none.
    kept : ndarray or None
        Which rows of the caller's these are, where some have the weight 0.
    poll : callable
        Called before each block; what it raises ends the call.
    together : int
        How many searches for clusters share each look at the rows.
    """

    n: int
    p: int
    dtype: Any
    mean: Array
    exponent: int
    weight: Array | None
    poll: Callable[[], object]
    together: int = 1
    power: int = 2  # of the unit of X that the objective has

    @property
    def mass(self) -> Array:
        """How many samples each row stands for, 1 if there are no weights."""
        return np.ones(self.n) if self.weight is None else self.weight

    def run_searches(self, searches: list[Weighted]) -> list[Any]:
        """Run the searches, each with the weights of its points; return their results."""
        results: list[Any] = [None] * len(searches)
        weights, runs = [w for w, _ in searches], [search for _, search in searches]
        for first in range(0, len(searches), self.together):
            # Each search runs to its first query; answers take it to the next, until it returns
            queries = {i: next(runs[i]) for i in range(len(searches))[first : first + self.together]}
            while queries:
                self.poll()
                for i, answer in self._answers(queries, weights).items():
                    try:
                        queries[i] = runs[i].send(answer)
                    except StopIteration as end:
                        results[i] = end.value
                        del queries[i]
        return results

    def _answers(self, queries: dict[int, tuple[str, Any]], weights: Sequence[Array]) -> dict[int, Any]:
        """Answer the queries about points, or at least one of them."""
        raise NotImplementedError

    def centers(self, partition: Any, n_clusters: int) -> AnyArray:
        """Return the means of the clusters, in the caller's units."""
        ((sums, counts),) = self._sums([partition], n_clusters)
        return (self.mean + np.ldexp(sums / counts[:, None], self.exponent)).astype(self.dtype)

    def sums_between(self, partitions: list[Any], n_clusters: int) -> Array:
        """Return the sum of squares between clusters of each variable, one row for each partition.

        The means of all samples are 0, so it is the sum over clusters of |sum of points|^2/weight.
        """
        rows = [np.sum(s**2 / counts[:, None], axis=0) for s, counts in self._sums(partitions, n_clusters)]
        return np.array(rows).reshape(len(partitions), self.p)

    def _sums(self, partitions: list[Any], n_clusters: int) -> Iterable[tuple[Array, Array]]:
        """Return the sums of the points in each cluster, over all variables, and the weights of the clusters.

        There is such a pair for each partition.
        """
        raise NotImplementedError


@record
class Columns(Samples):
    """Data in memory, as an array or CSC matrix, read a block of variables at a time."""

    source: AnyArray
    mean: Array
    exponent: int
    names: Names
    poll: Callable[[], object] = lambda: None
    weight: Array | None = None
    kept: Labels | None = None

    @classmethod
    def of(cls, X: Any, sample_weight: Any = None, **more: Any) -> Self:
        """Return the variables of data in memory, checked, without rows of weight 0."""
        names, a = column_names(X), as_finite(X, form="csc")
        weight, kept = split_weight(sample_weight, a.shape[0])
        a = a if kept is None else a[kept]
        mean, exponent = centering(statistics(a, weight), a.shape[0])
        return cls(a, mean, exponent, names, weight=weight, kept=kept, **more)

    def __post_init__(self) -> None:
        self.n: int = self.source.shape[0]
        self.p: int = self.source.shape[1]
        self.dtype: DType = self.source.dtype
        self.last: tuple[Array, Points] | None = None  # weights, and the points with these

    def blocks(self, index: Labels | None = None) -> Iterator[tuple[Any, AnyArray]]:
        """Yield parts of the variables, and their entries as C-ordered rows, centered and scaled."""
        for part in self._parts(PART_ENTRIES, index):
            self.poll()
            yield part, self._block(part)

    def each_block(self, task: Callable[[Any, AnyArray], object]) -> None:
        """Call `task` for each block of all variables, by threads; it must write to places of its own."""

        def one(part: Any, report: Report) -> None:
            report()
            self.poll()
            task(part, self._block(part))

        in_threads(one, self._parts(THREAD_ENTRIES), _core.shares_loops())

    def _parts(self, entries: int, index: Labels | None = None) -> list[Any]:
        """Return the variables in parts of at most so many entries."""
        parts = slices(self.p if index is None else len(index), self.n, entries)
        return [part if index is None else index[part] for part in parts]

    def _block(self, part: Any) -> AnyArray:
        """Return some variables as rows, centered and scaled."""
        mean = self.mean[part, None]
        T = np.empty((len(mean), self.n), self.dtype)
        columns: Any = self.source[:, part].T
        np.subtract(as_dense(columns), mean, out=T, casting="same_kind")
        T *= self.dtype.type(math.ldexp(1.0, -self.exponent))
        # What rounding of the mean has left
        T -= np.average(T, axis=1, weights=self.weight)[:, None].astype(T.dtype)
        return T

    def weighted_rows(self, w: Array) -> AnyArray:
        """Return sqrt(w_j) x_j for the variables of nonzero weight, as rows."""
        index = np.flatnonzero(w)
        rows = [T * np.sqrt(w[part, None]).astype(T.dtype) for part, T in self.blocks(index)]
        return np.concatenate(rows)

    def weighted_gram(self, w: Array) -> AnyArray:
        """Return G = X diag(w) X'."""
        G = np.zeros((self.n, self.n), self.dtype)
        for part, T in self.blocks(np.flatnonzero(w)):
            T = T * np.sqrt(w[part, None]).astype(T.dtype)
            G += matrix_product(np.ascontiguousarray(T.T))
        return G

    def points(self, w: Array) -> Array:
        """Return points, (n, m), with the distances of the rows of X diag(sqrt(w)); m is at most 4 n."""
        if np.count_nonzero(w) <= 4 * self.n:  # no more memory than eigenvectors, and less time
            return np.ascontiguousarray(self.weighted_rows(w).T, np.float64)
        G = self.weighted_gram(w).astype(np.float64)
        values, vectors = interruptible(lambda: np.linalg.eigh(G))
        return vectors * roots(values)

    def _answers(self, queries: dict[int, tuple[str, Any]], weights: Sequence[Array]) -> dict[int, Any]:
        return {i: self._answer(weights[i], *query) for i, query in queries.items()}

    def _answer(self, w: Array, kind: str, given: Any) -> Any:
        """Answer one query about the points with weights w."""
        if self.last is None or w is not self.last[0]:
            self.last = w, Points(self.points(w), self.mass)
        points = self.last[1]
        if kind == "rows":
            return points.Z[given]
        if kind == "drawn":
            _, point, near, key = given
            distance = ((points.Z - point) ** 2).sum(axis=1)
            near = distance if near is None else np.minimum(near, distance)
            return near, points.drawn(near, key)[0]
        if kind == "sums":
            return points.step(*given)
        return points.step_to(*given)  # "nearest"

    def labels(self, partition: Labels) -> Labels:
        """Return the cluster of each sample."""
        return partition

    def key(self, partition: Labels) -> Any:
        """Return a key of the partition that does not depend on how its clusters are numbered."""
        return renumbered(partition)[0].tobytes()

    def moved(self, partition: Labels, moves: dict[int, tuple[int, int]]) -> Labels:
        """Return the partition after points have moved from one cluster to another."""
        partition = partition.copy()
        for i, (_, to) in moves.items():
            partition[i] = to
        return partition

    def _sums(self, partitions: list[Labels], n_clusters: int) -> Iterable[tuple[Array, Array]]:
        each = [membership(labels, n_clusters, self.mass) for labels in partitions]
        members = np.concatenate([np.empty((0, self.n)), *(member for member, _ in each)]).astype(self.dtype)
        sums = np.empty((len(members), self.p))

        def of(part: Any, T: AnyArray) -> None:
            sums[:, part] = matrix_product(T, members).T

        self.each_block(of)
        return zip(sums.reshape(len(partitions), n_clusters, self.p), (w for _, w in each), strict=True)

    def permuted(self, generator: np.random.Generator, poll: Callable[[], object]) -> Self:
        """Return a copy with the entries of each variable in random order."""
        return replace(self, source=permuted_columns(self.source, generator), poll=poll)


def membership(labels: Labels, n_clusters: int, weight: Array) -> tuple[Array, Array]:
    """Return the (n_clusters, n) matrix of weights at the clusters of the rows, and its row sums."""
    member = (labels == np.arange(n_clusters)[:, None]) * weight
    return member, np.bincount(labels, weight, n_clusters)


def renumbered(labels: Labels) -> tuple[Labels, Labels]:
    """Return labels numbered in the order in which clusters first occur, and that order."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    order = np.argsort(first)
    return np.argsort(order)[inverse], order


class Step(NamedTuple):
    """A partition, and what a search needs of its points.

    Attributes
    ----------
    partition : labels, or what blocks of rows compute them from
    sums : ndarray of shape (k, m)
        Of the points of each cluster.
    counts, sizes : ndarray of shape (k,)
        Their weights, and their numbers.
    total : float
        The sum of the squared norms of all points.
    far, gains : ndarray of shape (., 3)
        Points with their clusters: the squared distances of those farthest from their centers, and by how
        much a move of one point lowers the sum of squares, where that is most.
    """

    partition: Any
    sums: Array
    counts: Array
    sizes: Labels
    total: float
    far: Array = np.empty((0, 3))
    gains: Array = np.empty((0, 3))


@record
class Points:
    """Points as the rows of Z - 1 shift', with weights; Z may be sparse, and the shift None stands for 0.

    They are a part of all points, from the number `first` on.
    """

    Z: Any
    weight: Array
    first: int = 0
    shift: Array | None = None

    @property
    def n(self) -> int:
        return int(self.Z.shape[0])

    def times(self, M: Array) -> Array:
        """Return (Z - 1 shift') M."""
        product = np.asarray(self.Z @ M)
        return product if self.shift is None else product - self.shift @ M

    @cached_property
    def squares(self) -> Array:
        """The squared norm of each point."""
        own = squared_norms(self.Z, 1)
        if self.shift is None:
            return own
        return own - 2 * (self.Z @ self.shift) + self.shift @ self.shift

    def step(self, labels: Labels, k: int) -> Step:
        """Return the partition with these labels as a step."""
        member, counts = membership(labels, k, self.weight)
        sums = np.asarray(member @ self.Z)
        if self.shift is not None:
            sums -= np.outer(counts, self.shift)
        total = float(self.weight @ self.squares)
        return Step(labels, sums, counts, np.bincount(labels, minlength=k), total)

    def apart(self, centers: Array) -> Array:
        """Return the squared distances from the centers, less the squared norm of each point."""
        return squared_norms(centers, 1) - 2 * self.times(centers.T)

    def step_to(self, centers: Array, before: tuple[Array, Labels], enough: float) -> Step:
        """Return the step to the nearest centers.

        If a cluster is empty, or the sum of squares between clusters is not above `enough`, the step also has
        points that may move. `before` has the weights and sizes of the clusters before.
        """
        apart, k = self.apart(centers), len(centers)
        labels = apart.argmin(axis=1)
        step = self.step(labels, k)
        if step.sizes.all() and sums_of_squares(step) > enough:
            return step
        distance = self.squares[:, None] + apart
        if not step.sizes.all():
            step = step._replace(far=self._largest(distance[np.arange(self.n), labels], labels, 2 * k))
        return step._replace(gains=self._moves(distance, labels, before))

    def _moves(self, distance: Array, labels: Labels, before: tuple[Array, Labels]) -> Array:
        """Return the points whose move lowers the sum of squares within clusters most (Hartigan 1975).

        A point of mass m at the distance d from a cluster of mass M would add d^2 m M/(M + m) there. In its
        own cluster it has d^2 m M/(M - m). The masses and sizes of the clusters are those before.
        """
        (counts, sizes), mass = before, self.weight
        rows, own, others = np.arange(self.n), counts[labels], sizes[labels] > 1
        saving = distance[rows, labels] * np.where(others, mass * own / np.where(others, own - mass, 1), 0)
        cost = distance * (mass[:, None] * counts / (counts + mass[:, None]))
        cost[rows, labels] = np.inf
        return self._largest(saving - cost.min(axis=1), labels, HARTIGAN_MOVES)

    def _largest(self, value: Array, labels: Labels, count: int) -> Array:
        """Return at most `count` points with the largest values: number, cluster and value."""
        rows = np.arange(self.first, self.first + self.n, dtype=np.float64)
        return largest(np.stack([rows, labels, value], axis=1), count)

    def drawn(self, distance: Array, key: int) -> tuple[int, float]:
        """Return a row at random, with probability proportional to weight times distance, and its score.

        The row with the largest score among all parts of the rows is the one drawn from all.
        """
        score = self.weight * distance / exponential(key, self.first, self.n)
        best = int(np.argmax(score))
        return self.first + best, float(score[best])


def sums_of_squares(step: Step) -> float:
    """Return the sum of squares between clusters, none of which may be empty."""
    return float(squared_norms(step.sums, 1) @ (1 / step.counts))


def largest(points: Array, count: int) -> Array:
    """Return at most `count` points (number, cluster, value) with the largest values, in descending order."""
    return points[descending(points[:, 2], count)]


def exponential(key: int, first: int, n: int) -> Array:
    """Return exponential variates for n rows from the row `first` on.

    They do not depend on how rows are divided. The row with the largest a_i / e_i is drawn with probability
    proportional to a_i.
    """
    raw = np.random.PCG64(key).advance(first).random_raw(n)
    return -np.log(((raw >> np.uint64(11)) + 0.5) * 2.0**-53)


def centering(found: Statistics | None, n: int) -> tuple[Array, int]:
    """Return the means of the variables, exact for constant ones, and the exponent of the deviations."""
    if found is None or n < 2:
        raise ValueError(PAIRS)
    with below_range():
        half_range = float((found.high / 2 - found.low / 2).max())
    if not half_range > 0:
        raise ValueError("X has no variance: all its rows are equal")
    return np.where(found.low == found.high, found.low, found.mean), math.frexp(half_range)[1]


def split_weight(sample_weight: Any, n: int) -> tuple[Array | None, Labels | None]:
    """Return the positive weights and, if others are 0, the rows that have positive ones."""
    weight = check_sample_weight(sample_weight, n)
    if weight is None or weight.all():
        return weight, None
    kept = np.flatnonzero(weight)
    return weight[kept], kept


def check_number_range(columns: Any, bound: float) -> None:
    """Raise ValueError if a sum of differences to the power of `columns` would over- or underflow."""
    limits, power = np.finfo(columns.dtype), columns.power
    high = power * (columns.exponent + 1) + math.log2(columns.n * bound)
    if not (high < limits.maxexp and power * (columns.exponent - 1) > limits.minexp):
        size = f"2**{columns.exponent}"
        raise ValueError(
            f"X has differences of the order of {size}, whose {'squares' * (power == 2) or 'sums'} are "
            f"beyond the number range of {columns.dtype}; rescale it"
        )


# ---- nonnegative weights of variables with a bound on their l1 norm -------------------------------------


class WeightedResult(Tabular):
    """A result with weights of the variables.

    `to_frame()` has a row for each variable and the column weight.
    """

    weights: AnyArray
    names: Names
    converged: bool
    n_iter: int

    @property
    def cardinality(self) -> int:
        """Number of nonzero weights."""
        return int(np.count_nonzero(self.weights))

    @property
    def selected(self) -> Labels:
        """Indices of the variables with nonzero weights, in descending order of weight."""
        return leading(self.weights)

    def _chosen(self) -> str:
        """Return words for how many variables have nonzero weights."""
        return f"{self.cardinality} of {counted(len(self.weights), 'variable')}"

    def _table(self) -> Listing:
        return Listing("variable", labels(self.names, len(self.weights)), {"weight": self.weights})

    def _parts(self) -> list[Part]:
        return table_of(*self._table(), rows=self.selected.tolist(), noun="variable")


@dataclass
class Fit:
    """The end of one search: weights, the objective after each iteration and, for K-means, the partition."""

    weights: Array
    trace: list[float]
    converged: bool
    partition: Any = None


def l1_threshold(a: Array, bound: float) -> Array:
    """Return the w that maximizes a'w subject to w >= 0, ||w||_2 <= 1 and ||w||_1 <= bound."""
    w = np.empty_like(a)
    _core.l1_threshold(a, bound, 2, w)
    return w


def check_l1_bounds(values: Any, p: int) -> list[float]:
    """Return several bounds, checked and ascending; by default ten in geometric progression."""
    if values is None:
        last = max(0.7 * math.sqrt(p), min(1.2, math.sqrt(p)))
        return np.unique(np.geomspace(min(1.2, last), last, 10)).tolist()
    real_array(values, "l1_bounds", ndim=1)
    return sorted({check_l1_bound(c, f"l1_bounds[{i}]", p) for i, c in enumerate(values)})


def warn_unless_converged(converged: bool, max_iter: int) -> None:
    """Warn if the iteration has not converged."""
    if not converged:
        warn(f"not converged in {counted(max_iter, 'iteration')}")
