"""Bounds on x'Ax for wide data, where few covariances, or few variables, are large.

Each bound leaves out what is small, and adds the most that this can contribute.
"""

from __future__ import annotations

import heapq
from typing import Any, NamedTuple

import numpy as np

from .. import _core
from .._limits import (
    BLOCK_ORDER,
    BLOCK_SPLITS,
    BLOCK_WORK,
    BOUND_ENTRIES,
    STRONG_CHUNK,
    STRONG_GROUPS,
    STRONG_NODES,
    STRONG_STEPS,
    STRONG_VARIABLES,
    STRONG_WORK,
    THRESHOLD_COLUMNS,
    THRESHOLD_ENTRIES,
    THRESHOLD_LEVELS,
    THRESHOLD_STEPS,
)
from .._types import AnyArray, Array, Index, Mask
from ..linalg.scaling import EPS, largest_magnitude, union
from ..operators.gram import rows_of, symmetric_submatrix
from .matrix_search import Search
from .solution import Report

# ---- by the large covariances -------------------------------------------------------------------------
# Let S(A, rho) be A with its entries off the diagonal moved towards 0 by rho, and to 0 where they are
# smaller. What is left out is at most rho in magnitude, so that unit vectors x with at most k nonzeros have
#
#     x'Ax <= lambda_1(S(A, rho)) + rho (k - 1)
#
# (d'Aspremont et al. 2007, section 2.4), and lambda_1(S) <= max_i (|S|w)_i / w_i for any positive w
# (Collatz). The same matrix, split into blocks, serves Del Pia, Zhou and Zhu (2025).


class _LargeEntries(NamedTuple):
    """The entries off the diagonal whose magnitudes (`sizes`) exceed a level."""

    rows: Index
    columns: Index
    sizes: Array
    level: float


def threshold_bound(diagonal: Array, k: int, large: _LargeEntries) -> float:
    """Return the least bound over levels above which the entries are known."""
    top = float(large.sizes.max(initial=large.level))
    best, levels = np.inf, np.linspace(large.level, top, THRESHOLD_LEVELS)
    while True:
        values = [_bound(large, diagonal, k, float(rho)) for rho in levels]
        i = int(np.argmin(values))
        if not values[i] < best * (1 - 1e-4):
            return min(best, values[i])
        best = values[i]
        low, high = levels[max(i - 1, 0)], levels[min(i + 1, len(levels) - 1)]
        levels = np.linspace(low, high, THRESHOLD_LEVELS)


def _bound(large: _LargeEntries, diagonal: Array, k: int, rho: float) -> float:
    """Return lambda_1(S(A, rho)) + rho (k - 1), by power iteration on magnitudes."""
    # The variables with entries above rho, renumbered
    kept = large.sizes > rho
    r, c, over = large.rows[kept], large.columns[kept], large.sizes[kept] - rho
    used, at = np.unique(np.concatenate([r, c]), return_inverse=True)
    r, c, own = at[: len(r)], at[len(r) :], diagonal[used]
    rest = np.delete(diagonal, used)
    alone = float(rest.max(initial=0.0))
    # max_i (|S|w)_i / w_i, for w by power iteration
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
    """Return the largest entries of A, as many as memory allows; A is formed a few columns at a time."""
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


# ---- by blocks of variables, and a search in them -----------------------------------------------------
# Let the variables fall into blocks C, and no covariance of two blocks exceed rho in magnitude. A unit vector
# with k_C nonzeros in each, k in all, and parts of the norms t_C has
#
#     x'Ax <= sum_C f_C(k_C) t_C^2 + rho sum_(C != D) (k_C k_D)^(1/2) t_C t_D
#           = t'diag(f_C(k_C) - rho k_C)t + rho (sum_C k_C^(1/2) t_C)^2
#          <= max_C (f_C(k_C) - rho k_C) + rho k,
#
# f_C(j) the optimum for j nonzeros in C alone. So no component exceeds the largest f_C(j) + rho (k - j), j
# from 1 to k, and where that has j = k, it is the optimum itself. (Del Pia, Zhou and Zhu 2025 have the
# optimum of the thresholded matrix, f_C(k), and rho (k - 1) more.) Blocks are the connected components of the
# graph of the covariances above rho.


class BlockSearch:
    """The search of blocks: those of the largest bound first, each by a tree for one number j of nonzeros.

    `value` is what must be exceeded, and rises as supports are found; `support` is the best of these. `slack`
    is at least what rounding may hide of the covariances between blocks.
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
        """Return the bound that no component exceeds."""
        return max(self.value, -self.heap[0][0])

    def run(self, tol: float, nodes: int, hook: Report | None, work: float = BLOCK_WORK) -> bool:
        """Search until every bound is within `tol` of the value; whether that was reached.

        Each tree has at most `nodes` nodes. The search ends early if the hook returns true, or after this
        work: nodes times (p k)^2 of their block.
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
        """Return the bound at which the value is proved, to `tol`."""
        return self.value + (tol * abs(self.value) if np.isfinite(self.value) else 0.0) + self.margin

    def _reach(self, b: int) -> Array:
        """Return f_C(j) + rho (k - j) for j = 1, 2, .. in block b."""
        caps = self.caps[b]
        return caps + self.level * (self.k - 1 - np.arange(len(caps)))

    def _bound_by_itself(self, b: int) -> None:
        """Bound f_C(j) for all j, by sums of j magnitudes in a row and by the largest eigenvalue."""
        block = self.blocks[b]
        A, most = symmetric_submatrix(self.op, block), min(self.k, len(block))
        values, vectors = np.linalg.eigh(A)
        rounding = 8 * len(block) * EPS * largest_magnitude(values)
        self.matrices[b] = A, vectors[:, -1].copy()
        self.caps[b] = np.minimum(row_sums(A, most), values[-1]) + rounding
        self.known[b] = np.zeros(most, bool)

    def _search(self, b: int, j: int, tol: float, nodes: int, hook: Report | None) -> int:
        """Search a block by a tree for j + 1 nonzeros, and return how many nodes it took.

        Only what may exceed the value, with the rest of the nonzeros outside, counts.
        """
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
    """Return the least rho that makes blocks of at most `BLOCK_ORDER`, and the block of each variable."""
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
    """Return the sum of k magnitudes in each row, where those up to rho count as rho."""
    kept = large.sizes > rho
    rows, sizes = large.rows[kept], large.sizes[kept]
    order = np.lexsort((-sizes, rows))
    rows, sizes = rows[order], sizes[order]
    rank = np.arange(len(rows)) - np.searchsorted(rows, rows)
    few = rank < k - 1
    sums = np.bincount(rows[few], sizes[few], len(diagonal))
    counts = np.bincount(rows[few], minlength=len(diagonal))
    return diagonal + sums + rho * (k - 1 - counts) + slack * (k - 1)


# ---- by a few strong variables ------------------------------------------------------------------------
# A unit vector x with t weak variables and k - t strong ones, whose parts have the norms u and v,
# u^2 + v^2 = 1, has
#
#     x'Ax <= f(k - t) v^2 + 2 c(t) u v + e(t) u^2 <= lambda_1 [f(k - t), c(t); c(t), e(t)] = h(t),
#
# f(j) a bound for j strong variables alone, e(t) one for t weak ones, and c(t)^2 the sum of the t largest
# s_w(k - t), where s_w(j) is the sum of the j largest a_iw^2 over strong i. The largest h(t) is a bound. e(t)
# is the sum of the t largest variances of weak variables; or, these being divided into g groups, of whose
# covariances none exceeds rho in magnitude, all but g of these variances count as rho, if they are larger:
# lambda_1(A_TT) is at most the sum of lambda_1 of its blocks, A being semidefinite, each of which is at most
# a row's sum of magnitudes. Let a level be given. Where h(t) exceeds it, a weak w may belong to such a
# support only if
#
#     s_w(k - t) + a_ww e(t - 1) > (level - a_ww) (level - h'(t - 1)),
#
# h' being h for the k - 1 other variables (bordered, as in branch_and_bound.c, step 4; the squares of the
# covariances of w with weak T sum to at most a_ww lambda_1(A_TT)). What belongs to none is left out, and the
# h(t) are computed again, until nothing changes. No component exceeds the larger of the level and of these.
#
# Rounding. Let u be the unit roundoff, EPS = 2 u, and gamma_m = m u / (1 - m u), which bounds the relative
# error of a sum of m numbers that are not negative (Higham 2002, Accuracy and Stability of Numerical
# Algorithms, section 4.2). LAPACK's eigenvectors and eigenvalues of q strong variables are those of A_ss + E,
# orthonormal but for G, |E| <= q u |A_ss| and |G| <= q u times a constant below 4: their bound on f is off by
# at most (|E| + 2 |G| |A_ss|), and sums of rows by gamma_q |A_ss|: 8 q EPS |A_ss| is more than either. e, and
# c^2 of sums of at most k sums of k squares, are off by gamma_{2k + 2} of themselves; h(t) rises by at most
# the largest relative change of its three entries, and its formula adds six roundings. The last condition,
# off by gamma_{3k + 12}, can leave out a variable of a support that is above the level by that share of it,
# since the eigenvalue of a bordered matrix moves by at most half the relative change of its border's square.
# What is returned is raised by (64 + 8 k) EPS = (128 + 16 k) u, which is more than all of these together.


def strong_variables_bound(
    op: Any, diagonal: Array, root: Array, k: int, rounding: float, below: float, hook: Report | None,
    nodes: int = STRONG_NODES, count: int | None = None, known: float | None = None,
) -> tuple[float, Index]:  # fmt: skip
    """Return the bound by strong variables, and the variables that are not left out.

    It is infinity if it cannot be below `below`. An entry a_ij is off by at most rounding root_i root_j, and
    A is semidefinite but for that. The level is what the search among strong variables finds, unless it is
    `known`. `nodes` limits the trees, and `count` is how many variables are strong.
    """
    # Whether the bound can be below the other one: e(k), and by groups if need be
    p = len(diagonal)
    d, every = diagonal + rounding * root**2, np.arange(p)
    count = min(count or STRONG_VARIABLES[0], p)
    if k < 2 or (count + k) * p > BOUND_ENTRIES:
        return np.inf, every
    strong, together, tried = _core.select_largest(d, count), np.full(k, np.inf), False
    weak = np.delete(every, strong)
    if _weak_bounds(d[weak], together)[-1] >= below:
        together, tried = _within_groups(op, weak, d[weak], rounding, k, below, hook), True
        if _weak_bounds(d[weak], together)[-1] >= below:
            return np.inf, every
    # f(j), the level, and s_w(j)
    value, found = _climb(op, _core.select_largest(d, k))
    strong = union(strong, found)
    f, level = _by_strong_variables(
        symmetric_submatrix(op, strong), np.searchsorted(strong, found), k, nodes, hook, known is not None
    )
    slack = rounding * float(root.max()) * np.cumsum(np.sort(root)[::-1][:k])
    f += np.append(0.0, slack)
    level = max(level, value) if known is None else known
    weak = np.delete(every, strong)
    sums, d = _coupling(op, strong, weak, root, rounding, k, hook), d[weak]
    if sums is None:
        return np.inf, every
    # h(t), and the weak variables that are left, until nothing changes
    while True:
        h = _reach(f, d, sums, k, together)
        if (h[1:] <= level).all():
            break
        kept = _survivors(f, d, sums, k, h, level, together)
        if kept.all() and tried:
            break
        weak, d, sums = weak[kept], d[kept], sums[kept]
        if kept.all():
            together, tried = _within_groups(op, weak, d, rounding, k, float(h.max()), hook), True
    return max(level, float(h.max())) * (1 + (64 + 8 * k) * EPS), union(strong, weak)


def knapsack(values: AnyArray, caps: AnyArray, tail: float, r: int = 1) -> float:
    """Return the largest sum_l values_l t_l + tail (r - sum_l t_l), for tail >= 0.

    It is over 0 <= t_l <= caps_l with sum_l t_l <= r.
    """
    room, total = float(r), 0.0
    for l in np.argsort(-values):
        if values[l] <= tail or room <= 0:
            break
        t = min(room, float(caps[l]))
        total += t * float(values[l])
        room -= t
    return total + max(room, 0.0) * tail


def row_sums(A: Array, most: int) -> Array:
    """Return bounds of x'Ax for 1, 2, .. nonzeros: the largest sums of magnitudes in a row (Gershgorin)."""
    size = np.abs(A)
    np.fill_diagonal(size, 0)
    sums = np.cumsum(np.sort(size)[:, ::-1], axis=1)[:, : most - 1]
    return (A.diagonal()[:, None] + np.pad(sums, ((0, 0), (1, 0)))).max(axis=0)


def _climb(op: Any, index: Index) -> tuple[float, Index]:
    """Return the value and support that truncated power reaches, with the best values on each support."""
    value, found = -np.inf, index
    for _ in range(STRONG_STEPS):
        values, vectors = np.linalg.eigh(op.submatrix(index).astype(np.float64))
        if not values[-1] > value:
            break
        value, found = float(values[-1]), index
        product = op.apply(index, np.ascontiguousarray(vectors[:, -1], op.dtype))
        index = np.sort(_core.select_largest(product, len(index)))
    return value, found


def _by_strong_variables(
    A: Array, start: Index, k: int, nodes: int, hook: Report | None, fewer: bool
) -> tuple[Array, float]:
    """Return f(0), f(1), .., f(k), and the value that was found.

    They come from sums of rows, from eigenvectors and, for k, from a tree. With `fewer`, short trees for
    fewer variables tell which weak ones can be left out.
    """
    q = len(A)
    values, vectors = np.linalg.eigh(A)
    caps = np.cumsum(np.sort(vectors**2, axis=0)[::-1], axis=0)
    sharp = np.array([knapsack(values, caps[j], 0.0) for j in range(min(k, q))])
    margin = 8 * q * EPS * float(values[-1])
    f = np.pad(np.minimum(row_sums(A, len(sharp)), sharp) + margin, (1, k - len(sharp)), "edge")
    f[0] = 0.0
    leading = np.ascontiguousarray(vectors[:, -1])
    for j in range(2, k) if fewer else ():
        tree = Search(A, j, _core.select_largest(leading, min(j, q)))
        tree.run(min(max(20, 1000 // k), nodes), hook)
        f[j] = min(f[j], tree.upper())
    tree = Search(A, k, start)
    tree.run(min(nodes, STRONG_NODES), hook)
    f[k] = min(f[k], tree.upper())
    return f, float(tree.value)


def _coupling(
    op: Any, strong: Index, weak: Index, root: Array, rounding: float,
    k: int, hook: Report | None,
) -> Array | None:  # fmt: skip
    """Return s_w(j), with a row for each weak w, for j = 0 .. k - 1; None if the hook returns true."""
    columns = np.empty((len(weak), len(strong)), op.dtype)
    for s in range(0, len(strong), 32):
        if hook is not None and hook(0):
            return None
        columns[:, s : s + 32] = rows_of(op, strong[s : s + 32]).T[weak]
    most = min(k - 1, len(strong))
    sums = np.empty((len(weak), k))
    for s in range(0, len(weak), STRONG_CHUNK):
        part = np.abs(columns[s : s + STRONG_CHUNK].astype(np.float64))
        part += rounding * root[weak[s : s + STRONG_CHUNK], None] * root[strong]
        part = np.pad(np.sort(part)[:, ::-1][:, :most], ((0, 0), (1, k - 1 - most)))
        np.cumsum(part**2, axis=1, out=sums[s : s + STRONG_CHUNK])
    return sums


def _weak_bounds(d: Array, together: Array) -> Array:
    """Return e(0), e(1), .."""
    top = np.sort(d)[::-1][: len(together)]
    return np.append(0.0, np.cumsum(np.minimum(top, together[: len(top)])))


def _within_groups(
    op: Any, weak: Index, d: Array, rounding: float, k: int, below: float, hook: Report | None
) -> Array:
    """Return what the 1st, 2nd, .. largest variance of weak variables counts at most, by groups.

    Infinity where that takes too long, or as soon as e(k) is not below `below`.
    """
    groups, together = max(1, k // STRONG_GROUPS), np.full(k, np.inf)
    formed = op.in_memory and not op.symmetric_form
    if op.t or not (op.symmetric_form or formed) or op.m * len(weak) ** 2 > groups * STRONG_WORK:
        return together
    lost = rounding * float(d.max(initial=0.0))
    together[groups:] = 0.0
    for members in (weak[g::groups].copy() for g in range(groups)):
        for s in range(0, len(members), THRESHOLD_COLUMNS):
            part, rest = members[s : s + THRESHOLD_COLUMNS], members[s:]
            if hook is not None and hook(0):
                return np.full(k, np.inf)
            W = np.abs(op.gram(rest, None, len(part)) if formed else rows_of(op, part)[:, rest])
            np.fill_diagonal(W, 0)
            np.maximum(together[groups:], float(W.max()) + lost, out=together[groups:])
            if _weak_bounds(d, together)[-1] >= below:
                return np.full(k, np.inf)
    return together


def _reach(f: Array, d: Array, sums: Array, k: int, together: Array) -> Array:
    """Return h(t) for t = 0 .. k, with k variables in all, as far as there are t weak ones."""
    e = _weak_bounds(d, together[:k])
    h = f[k::-1][: len(e)].copy()
    for t in range(1, len(e)):
        c2 = float(np.partition(sums[:, k - t], len(d) - t)[len(d) - t :].sum())
        a, b = float(h[t]), float(e[t])
        h[t] = (a + b) / 2 + np.sqrt(((a - b) / 2) ** 2 + c2)
    return h


def _survivors(
    f: Array, d: Array, sums: Array, k: int, h: Array, level: float, together: Array
) -> Mask:  # fmt: skip
    """Mark the weak variables that may be one of t in a support, for a t with h(t) above the level."""
    fewer = _reach(f, d, sums, k - 1, together)
    e = _weak_bounds(d, together)
    kept = d >= level
    for t in range(1, len(h)):
        if h[t] > level:
            room = level - float(fewer[t - 1])
            kept |= sums[:, k - t] + d * e[t - 1] > (level - d) * max(room, 0.0)
    return kept
