"""A bound on x'Ax, and a search, by blocks of variables between which all covariances are small.

Let the variables fall into blocks C, and no covariance of two blocks exceed rho in magnitude. A unit vector
with k_C nonzeros in each, k in all, and parts of the norms t_C has

    x'Ax <= sum_C f_C(k_C) t_C^2 + rho sum_(C != D) (k_C k_D)^(1/2) t_C t_D
          = t'diag(f_C(k_C) - rho k_C)t + rho (sum_C k_C^(1/2) t_C)^2
         <= max_C (f_C(k_C) - rho k_C) + rho k,

f_C(j) the optimum for j nonzeros in C alone. So no component exceeds the largest f_C(j) + rho (k - j), j from
1 to k, and where that has j = k, it is the optimum itself. (Del Pia, Zhou and Zhu 2025 have the optimum of
the thresholded matrix, f_C(k), and rho (k - 1) more.) Blocks are the connected components of the graph of
the covariances above rho.
"""

from __future__ import annotations

import heapq
from typing import Any, NamedTuple

import numpy as np

from .. import _core
from .._limits import (
    BLOCK_NODES,
    BLOCK_ORDER,
    BLOCK_SPLITS,
    BLOCK_WORK,
    THRESHOLD_COLUMNS,
    THRESHOLD_ENTRIES,
    THRESHOLD_LEVELS,
    THRESHOLD_STEPS,
)
from .._types import Array, Index, Mask
from ..linalg.scaling import EPS, largest_magnitude
from ..operators.submatrix import rows_of, symmetric_submatrix
from .elimination import row_sums
from .exact_tree import Search
from .solution import Report

# ---- a bound on x'Ax for wide data, of whose covariances only the large ones are kept -------------------
# Let S(A, rho) be A with its entries off the diagonal moved towards 0 by rho, and to 0 where they are
# smaller. What is left out is at most rho in magnitude, so that unit vectors x with at most k nonzeros have
#
#     x'Ax <= lambda_1(S(A, rho)) + rho (k - 1)
#
# (d'Aspremont et al. 2007, section 2.4), and lambda_1(S) <= max_i (|S|w)_i / w_i for any positive w
# (Collatz). The same matrix, split into blocks, serves Del Pia, Zhou and Zhu (2025).


class _LargeEntries(NamedTuple):
    """Magnitudes off the diagonal that exceed a level, with rows and columns, and that level."""

    rows: Index
    columns: Index
    sizes: Array
    level: float


def threshold_bound(diagonal: Array, k: int, large: _LargeEntries) -> float:
    """The least bound over levels at which few entries are kept."""
    rows, columns, sizes, level = large
    best, levels = np.inf, np.linspace(level, max(float(sizes.max(initial=0.0)), level), THRESHOLD_LEVELS)
    while True:
        values = [_bound(rows, columns, sizes, diagonal, k, float(rho)) for rho in levels]
        i = int(np.argmin(values))
        if not values[i] < best * (1 - 1e-4):
            return min(best, values[i])
        best = values[i]
        low, high = levels[max(i - 1, 0)], levels[min(i + 1, len(levels) - 1)]
        levels = np.linspace(low, high, THRESHOLD_LEVELS)


def _bound(
    rows: Index, columns: Index, sizes: Array,
    diagonal: Array, k: int, rho: float,
) -> float:  # fmt: skip
    """lambda_1(S(A, rho)) + rho (k - 1), the eigenvalue by power iteration on magnitudes."""
    kept = sizes > rho
    r, c, over = rows[kept], columns[kept], sizes[kept] - rho
    used, at = np.unique(np.concatenate([r, c]), return_inverse=True)
    r, c, own = at[: len(r)], at[len(r) :], diagonal[used]
    rest = np.delete(diagonal, used)
    alone = float(rest.max(initial=0.0))
    w = np.ones(len(used))
    most = np.inf
    for _ in range(THRESHOLD_STEPS if len(used) else 0):
        y = own * w + np.bincount(r, over * w[c], len(w))
        ratio = float((y / w).max())
        if not ratio < most * (1 - 1e-6):
            most = min(most, ratio)
            break
        most = ratio
        w = np.maximum(y / y.max(), 1e-9)
    return max(alone, most if len(used) else 0.0) + rho * (k - 1)


def large_entries(op: Any) -> _LargeEntries:
    """As many as memory allows; A is formed some columns at a time."""
    p, level, count = op.p, 0.0, 0
    parts: list[tuple[Index, Index, Array]] = []
    for start in range(0, p, THRESHOLD_COLUMNS):
        block = np.arange(start, min(p, start + THRESHOLD_COLUMNS))
        W = np.abs(rows_of(op, block).T.astype(np.float64))
        W[block, np.arange(len(block))] = 0
        i, j = np.nonzero(level < W)
        parts.append((i, block[j], W[i, j]))
        count += len(i)
        while count > THRESHOLD_ENTRIES:
            level = float(np.median(np.concatenate([size for *_, size in parts])))
            parts = [(i[size > level], j[size > level], size[size > level]) for i, j, size in parts]
            count = sum(len(size) for *_, size in parts)
    i, j, size = (np.concatenate(x) for x in zip(*parts, strict=True))
    return _LargeEntries(i, j, size, level)


class BlockSearch:
    """Blocks wait in a heap, that of the largest bound first; a tree searches a block for one number j.

    `value` is what is to be exceeded, and rises with what is found; `support` is what was found. Of the
    rounding of covariances between blocks no more than `slack` is hidden.
    """

    op: Any
    k: int
    value: float
    margin: float

    def __init__(
        self, op: Any, diagonal: Array, k: int, large: _LargeEntries,
        value: float = -np.inf, slack: float = 0.0,
    ):  # fmt: skip
        self.op, self.k, self.value, self.margin = op, k, value, 0.0
        self.support: Index | None = None
        rho, labels = _split(op.p, large)
        slack = max(slack, 4 * k * EPS * largest_magnitude(diagonal))
        self.level: float = rho + slack
        order = np.argsort(labels, kind="stable")
        self.blocks: list[Index] = np.split(order, np.flatnonzero(np.diff(labels[order])) + 1)
        rows = _row_bounds(diagonal, k, large, rho, slack)
        self.caps: dict[int, Array] = {}  # bounds of f_C(j) for j = 1, 2, ..
        self.known: dict[int, Mask] = {}  # whether a tree has lowered them
        self.matrices: dict[int, tuple[Array, Array]] = {}
        most = np.maximum.reduceat(rows[order], np.cumsum([0, *map(len, self.blocks[:-1])]))
        self.heap: list[tuple[float, int]] = [(-float(bound), b) for b, bound in enumerate(most)]
        heapq.heapify(self.heap)

    def upper(self) -> float:
        """No component exceeds it."""
        return max(self.value, -self.heap[0][0])

    def run(self, tol: float, nodes: int, hook: Report | None, work: float = BLOCK_WORK) -> bool:
        """Whether all is proved to be within `tol` of the value, by trees of at most so many nodes each.

        It ends where the hook is true, or after that work: nodes times (p k)^2 of their block.
        """
        left = work
        while -self.heap[0][0] > self._enough(tol):
            if hook is not None and hook(0):
                return False
            b = self.heap[0][1]
            if b not in self.caps:
                self._bound_by_itself(b)
            else:
                j = int(np.argmax(self._reach(b)))
                if self.known[b][j] or left <= 0:
                    return False
                node = float(len(self.blocks[b]) * (j + 1)) ** 2
                left -= node * self._search(b, j, tol, min(nodes, 1 + int(left / node)), hook)
            heapq.heapreplace(self.heap, (-float(self._reach(b).max()), b))
        return True

    def _enough(self, tol: float) -> float:
        return self.value + (tol * abs(self.value) if np.isfinite(self.value) else 0.0) + self.margin

    def _reach(self, b: int) -> Array:
        """f_C(j) + rho (k - j), j = 1, 2, .."""
        caps = self.caps[b]
        return caps + self.level * (self.k - 1 - np.arange(len(caps)))

    def _bound_by_itself(self, b: int) -> None:
        """The largest sum of j magnitudes in a row of the block, and its largest eigenvalue."""
        block = self.blocks[b]
        A, most = symmetric_submatrix(self.op, block), min(self.k, len(block))
        values, vectors = np.linalg.eigh(A)
        rounding = 8 * len(block) * EPS * largest_magnitude(values)
        self.matrices[b] = A, vectors[:, -1].copy()
        self.caps[b] = np.minimum(row_sums(A, most), values[-1]) + rounding
        self.known[b] = np.zeros(most, bool)

    def _search(self, b: int, j: int, tol: float, nodes: int, hook: Report | None) -> int:
        """By a tree for j + 1 nonzeros, of which only what may exceed the value counts; its nodes."""
        block, size = self.blocks[b], j + 1
        A, vector = self.matrices[b]
        tree = Search(A, size, _core.select_largest(vector, size), tol)
        tree.require(self.value - self.level * (self.k - size))
        done = tree.run(nodes, hook)
        if tree.value > self.value:
            self.value, self.support = tree.value, block[tree.index]
        if not tree.open():
            self.margin = max(self.margin, tree.pruning_level - tree.value - tol * abs(tree.value))
        self.caps[b][: j + 1] = np.minimum(self.caps[b][: j + 1], tree.upper())
        self.known[b][j] = True
        return done


def _split(p: int, large: _LargeEntries) -> tuple[float, Index]:
    """The block of each variable, of at most `BLOCK_ORDER`, by the least rho that does; and rho itself."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    rows, columns, sizes, level = large

    def blocks(rho: float) -> Index:
        kept = sizes > rho
        graph = coo_array((np.ones(np.count_nonzero(kept)), (rows[kept], columns[kept])), (p, p))
        return connected_components(graph, directed=False)[1].astype(np.intp)

    def fit(labels: Index) -> bool:
        return int(np.bincount(labels).max()) <= BLOCK_ORDER

    labels, low, high = blocks(level), level, float(sizes.max(initial=level))
    if not fit(labels):
        labels = blocks(high)
        for _ in range(BLOCK_SPLITS):
            middle = (low + high) / 2
            fewer = blocks(middle)
            if fit(fewer):
                high, labels = middle, fewer
            else:
                low = middle
    between = labels[rows] != labels[columns]
    return float(sizes[between].max(initial=level)), labels


def _row_bounds(diagonal: Array, k: int, large: _LargeEntries, rho: float, slack: float) -> Array:
    """The sum of k magnitudes in each row, of which those up to rho count as rho."""
    kept = large.sizes > rho
    rows, sizes = large.rows[kept], large.sizes[kept]
    order = np.lexsort((-sizes, rows))
    rows, sizes = rows[order], sizes[order]
    rank = np.arange(len(rows)) - np.searchsorted(rows, rows)
    few = rank < k - 1
    sums = np.bincount(rows[few], sizes[few], len(diagonal))
    counts = np.bincount(rows[few], minlength=len(diagonal))
    return diagonal + sums + rho * (k - 1 - counts) + slack * (k - 1)


def block_bound(op: Any, diagonal: Array, k: int, large: _LargeEntries, hook: Report | None) -> float:
    """The bound by itself, with short trees."""
    search = BlockSearch(op, diagonal, k, large)
    search.run(0.0, BLOCK_NODES, hook)
    return search.upper()
