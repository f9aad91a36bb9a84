"""The best single component that a search from all columns finds, in NumPy and numba, without spcacore.

Truncated power from every column of the covariance matrix (of more than 10,000, from the 3,000 of largest
variance and 7,000 at random): three steps of each, the best to their ends, in double precision; then swaps
from the best distinct ends. Values are re-fitted.
"""

import numpy as np

MOST_STARTS, LONG, POLISHED, STEPS, TOL = 10_000, 300, 5, 300, 1e-9
GRAM = 6000  # variables whose covariance matrix is formed
BLOCK = 256


def kernels():
    """Compiled when first asked for, since asv imports this file without numba."""
    from numba import njit

    @njit(cache=True, fastmath=True)
    def largest(a, k):
        index = np.arange(k)
        size = np.abs(a[:k])
        low = np.argmin(size)
        least = size[low]
        for i in range(k, len(a)):
            s = abs(a[i])
            if s > least:
                index[low], size[low] = i, s
                low = np.argmin(size)
                least = size[low]
        return index

    @njit(cache=True, fastmath=True)
    def truncated(Y, k, S, W):
        """The largest entries of each row of Y, at length 1."""
        for b in range(len(Y)):
            J = largest(Y[b], k)
            square = 0.0
            for q in range(k):
                S[b, q], W[b, q] = J[q], Y[b, J[q]]
                square += W[b, q] ** 2
            if square > 0:
                W[b] /= np.sqrt(square)

    @njit(cache=True, fastmath=True)
    def combined(rows, S, W, out):
        """Sums of rows, one for each support."""
        out[:] = 0
        for b in range(len(S)):
            for q in range(S.shape[1]):
                row, w = rows[S[b, q]], W[b, q]
                for i in range(len(row)):
                    out[b, i] += w * row[i]

    return truncated, combined


class Matrix:
    """The covariance matrix of centered data, by its entries where there are few, else by products."""

    def __init__(self, D):
        self.D, self.n = D, len(D)
        self.rows = np.ascontiguousarray(D.T)
        self.variance = np.square(self.rows).sum(axis=1) / (self.n - 1)
        self.entries = None
        if D.shape[1] <= GRAM:
            self.entries = D.T @ D / (self.n - 1)
            self.entries = (self.entries + self.entries.T) / 2

    def columns(self, index):
        if self.entries is not None:
            return self.entries[index]
        return self.rows[index] @ self.D / (self.n - 1)

    def products(self, S, W, combined):
        """A row for each support: the product of the matrix with its vector."""
        if self.entries is not None:
            Y = np.empty((len(S), len(self.entries)))
            combined(self.entries, S, W, Y)
            return Y
        T = np.empty((len(S), self.n))
        combined(self.rows, S, W, T)
        return T @ self.D / (self.n - 1)

    def fitted(self, S):
        """The largest variance on a support, and its vector."""
        B = (
            self.entries[np.ix_(S, S)]
            if self.entries is not None
            else self.rows[S] @ self.rows[S].T / (self.n - 1)
        )
        values, vectors = np.linalg.eigh(B)
        return values[-1], vectors[:, -1]


def starts(A, seed=0):
    p = len(A.variance)
    if p <= MOST_STARTS:
        return np.arange(p)
    order = np.argsort(-A.variance, kind="stable")
    rest = np.random.default_rng(seed).permutation(order[3000:])
    return np.sort(np.concatenate([order[:3000], rest[: MOST_STARTS - 3000]]))


def ends(A, k):
    """Supports at the ends of the best runs, without repetition, the best first."""
    truncated, combined = kernels()
    first = starts(A)
    S, W = np.empty((len(first), k), np.int64), np.empty((len(first), k))
    value = np.empty(len(first))
    blocks = [slice(b, b + BLOCK) for b in range(0, len(first), BLOCK)]
    for block in blocks:
        truncated(A.columns(first[block]), k, S[block], W[block])

    def step(where):
        Y = A.products(S[where], W[where], combined)
        V, U = np.empty_like(S[where]), np.empty_like(W[where])
        value[where] = (np.take_along_axis(Y, S[where], axis=1) * W[where]).sum(axis=1)
        truncated(Y, k, V, U)
        S[where], W[where] = V, U

    for _ in range(3):
        for block in blocks:
            step(block)
    best = distinct(S, value)[:LONG]
    going, before = best, value[best].copy()
    for _ in range(STEPS):
        for b in range(0, len(going), BLOCK):
            step(going[b : b + BLOCK])
        rising = value[going] > before * (1 + TOL)
        going = going[rising]
        if not len(going):
            break
        before = value[going].copy()
    return [np.sort(S[s]) for s in best[distinct(S[best], value[best])]]


def distinct(S, value):
    """The first of each support, by decreasing value."""
    seen, kept = set(), []
    for s in np.argsort(-value, kind="stable"):
        key = tuple(np.sort(S[s]))
        if key not in seen:
            seen.add(key)
            kept.append(s)
    return np.array(kept)


def swapped(A, S, most=200):
    """The support where no exchange that is tried raises the variance.

    For each variable that may leave, these are the three for which a matrix of two rows promises most.
    """
    value, _ = A.fitted(S)
    for _ in range(most):
        C = A.columns(S)
        choices = []
        for i in range(len(S)):
            rest = np.delete(np.arange(len(S)), i)
            left, x = A.fitted(S[rest]) if len(rest) else (0.0, np.zeros(0))
            y = x @ C[rest]
            apart = np.hypot((left - A.variance) / 2, y)
            promise = (left + A.variance) / 2 + apart
            promise[S] = -np.inf
            choices += [(promise[j], i, j) for j in np.argpartition(-promise, 2)[:3]]
        found = [
            (A.fitted(new := np.append(np.delete(S, i), j))[0], new) for _, i, j in sorted(choices)[-20:]
        ]
        most_now, new = max(found, key=lambda f: f[0])
        if most_now <= value * (1 + 1e-10):
            break
        value, S = most_now, np.sort(new)
    return value, S


def best_component(D, k):
    """Value, support and loadings of the best component of centered data D with k variables."""
    A = Matrix(D)
    found = ends(A, k)
    value, S = max(
        (swapped(A, S) for S in sorted(found, key=lambda S: -A.fitted(S)[0])[:POLISHED]), key=lambda f: f[0]
    )
    return value, S, A.fitted(S)[1]
