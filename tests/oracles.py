"""Slow, independent ways to the same numbers: NumPy on explicit matrices, and enumeration."""

import tracemalloc
from itertools import combinations

import files
import numpy as np
import pytest
from scipy.sparse.linalg import LinearOperator


def ends_at(count):
    """A callback that ends the search when so many steps are done."""

    def callback(progress):
        if progress.done >= count:
            raise StopIteration

    return callback


def with_peak(call):
    """What a call returns, and how many bytes it had at most."""
    tracemalloc.start()
    try:
        return call(), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def data_file(name):
    """The path of a data file; the test is skipped where it is not on this machine."""
    try:
        return files.data_file(name)
    except FileNotFoundError as error:
        pytest.skip(str(error))


def data_arrays(name):
    """The arrays of such a file."""
    data_file(name)
    return files.arrays(name)


def reference(name):
    """What another package made of a matrix, or the matrix: a table of tests/data."""
    return np.genfromtxt(files.DATA / f"{name}.csv", delimiter=",")


def difference(ours, theirs):
    """The largest of the entries of each column, whose signs are each program's own."""
    theirs = theirs * np.sign((ours * theirs).sum(axis=0))
    return np.abs(ours - theirs).max(axis=0)


def centered(X):
    return X - X.mean(axis=0)


def covariance(X, center=True, scale=False):
    X = np.asarray(X, np.float64)
    X = centered(X) if center else X
    if scale:
        norm = np.sqrt((X**2).sum(axis=0) / (len(X) - 1))
        X = X / np.where(norm == 0, 1, norm)
    return X.T @ X / (len(X) - 1)


def largest_on(A, S):
    """The largest x'Ax of unit vectors x on a support."""
    return np.linalg.eigvalsh(A[np.ix_(S, S)])[-1]


def leading_on(A, S):
    """The entries on a support of the x that has it."""
    return np.linalg.eigh(A[np.ix_(S, S)])[1][:, -1]


def optimum(A, k):
    """max x'Ax over unit x with k nonzeros, by enumeration of the supports."""
    supports = np.array(list(combinations(range(len(A)), k)))
    blocks = A[supports[:, :, None], supports[:, None, :]]
    return np.linalg.eigvalsh(blocks)[:, -1].max()


def assert_stationary(A, x):
    """A step of truncated power keeps the support: no product outside exceeds one within."""
    y = np.abs(A @ x)
    assert y[x == 0].max() <= y[x != 0].min() * (1 + 1e-9)


def quotient(A, Q, x):
    """x'Ax of the part outside of Q, over its squared norm."""
    q = x - Q @ (Q.T @ x)
    return q @ A @ q / (q @ q)


def best_quotient(A, Q, k):
    """The largest x'Ax/x'Bx, B = I - QQ', over supports of size k, by the pencil on the range of B_S."""
    B = np.eye(len(A)) - Q @ Q.T
    supports = np.array(list(combinations(range(len(A)), k)))
    at = supports[:, :, None], supports[:, None, :]
    h, E = np.linalg.eigh(B[at])
    W = E * np.where(h > 1e-8, 1 / np.sqrt(np.maximum(h, 1e-8)), 0)[:, None, :]
    return max(0.0, np.linalg.eigvalsh(W.transpose(0, 2, 1) @ (B @ A @ B)[at] @ W)[:, -1].max())


def best_uncorrelated_pair(A):
    """The largest variance of two uncorrelated components of two variables each.

    By directions x on one support, for each of which there is one y on another with x'Ay = 0.
    """
    S = np.array([*combinations(range(len(A)), 2)])
    angle = np.linspace(0, np.pi, 721)
    x = np.stack([np.cos(angle), np.sin(angle)])
    first = np.einsum("ia,sij,ja->sa", x, A[S[:, :, None], S[:, None, :]], x)
    w = np.einsum("tsij,ja->tsia", A[S[:, None, :, None], S[None, :, None, :]], x)
    y = np.stack([-w[:, :, 1], w[:, :, 0]], axis=2)
    size = np.einsum("tsia,tsia->tsa", y, y)
    second = np.einsum("tsia,tij,tsja->tsa", y, A[S[:, :, None], S[:, None, :]], y)
    return (first + second / np.maximum(size, 1e-12)).max()


def power_iteration(A, x, k, n_iter):
    """Truncated power iteration, written as in the paper."""
    for _ in range(n_iter):
        y = A @ x
        keep = np.argsort(-abs(y), kind="stable")[:k]
        x = np.zeros(len(A))
        x[keep] = y[keep]
        x /= np.linalg.norm(x)
    return x


WINE_OPTIMA = [
    1, 1.86456350, 2.56972077, 3.08203077, 3.43977842, 3.77443748, 4.04691484, 4.29329653,
    4.50874336, 4.59429324, 4.67900004, 4.70583538, 4.70585025,
]  # fmt: skip
WINE_COVARIANCE_OPTIMA = [(5, 99201.3094), (10, 99201.7813)]
UCI_OPTIMA = [
    ("communities", 5, 4.86054814), ("communities", 10, 8.82361576), ("geography", 5, 5.0),
    ("geography", 10, 10.0), ("gait", 5, 4.89034372),
]  # fmt: skip


def normal(seed, *shape):
    """Independent normal numbers."""
    return np.random.default_rng(seed).standard_normal(shape)


def samples(seed, n=30, p=12):
    """Normal, with random correlations."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, p)) @ rng.standard_normal((p, p))


def spiked():
    """Two groups of variables on noise with zeros, (50, 60)."""
    X = np.random.default_rng(2).standard_normal((50, 60)) + 1
    X[:, 5:12] += 2 * np.random.default_rng(3).standard_normal((50, 1))
    X[:, 20:26] -= 2 * np.random.default_rng(4).standard_normal((50, 1))
    X[abs(X) < 0.4] = 0
    return X


def planted(n, p, k, r=2, signal=3.0, seed=0):
    """Disjoint components of k variables each, and noise."""
    rng = np.random.default_rng(seed)
    V = np.zeros((p, r))
    for t in range(r):
        V[t * k : (t + 1) * k, t] = rng.choice([-1, 1], k) / np.sqrt(k)
    weights = signal * np.linspace(1.3, 1, r)
    return rng.standard_normal((n, r)) * weights @ V.T + rng.standard_normal((n, p))


def products(f, p):
    """A symmetric matrix of which a function gives the products."""
    return LinearOperator((p, p), matvec=f, dtype=np.float64)


def unit_vector(rng, p, k, dtype=np.float64):
    """The positions and values of k nonzeros, of norm 1."""
    index, value = np.sort(rng.choice(p, k, replace=False)), rng.standard_normal(k)
    return index, (value / np.linalg.norm(value)).astype(dtype)


def sparse_direction(rng, p, dtype):
    """A unit vector with 5 nonzeros."""
    x = np.zeros(p)
    x[rng.choice(p, 5, replace=False)] = rng.standard_normal(5)
    return (x / np.linalg.norm(x)).astype(dtype)


def orthogonalized(method):
    return method.startswith("orthogonalized") or method == "generalized"


def deflated(A, x, method, earlier=()):
    """Explicit deflation of a covariance matrix (Mackey 2008, sections 2 and 3)."""
    if orthogonalized(method):
        Q = np.linalg.qr(np.column_stack(earlier))[0] if len(earlier) else np.zeros((len(A), 0))
        x = x - Q @ (Q.T @ x)
        if np.linalg.norm(x) < 1e-8:
            return A
    x = x / np.linalg.norm(x)
    if method.endswith("hotelling"):
        return A - x @ A @ x * np.outer(x, x)
    if method.endswith("projection") or method in ("generalized", "naive"):
        P = np.eye(len(A)) - np.outer(x, x)
        return P @ A @ P
    if x @ A @ x < 1e-12:
        return A
    return A - np.outer(A @ x, A @ x) / (x @ A @ x)


def deflations(A, V, method):
    """A, and what is left of it after each of these loadings."""
    left = [A]
    for t, x in enumerate(V.T.astype(float)):
        left.append(deflated(left[-1], x, method, list(V.T[:t].astype(float))))
    return left


def dense_vector(p, index, entries):
    x = np.zeros(p)
    x[index] = entries
    return x


def spanned_variance(A, V):
    """Tr(A V (V'V)^+ V')."""
    return np.trace(A @ V @ np.linalg.pinv(V.T @ V) @ V.T)
