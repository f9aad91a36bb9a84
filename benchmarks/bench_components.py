"""sparse_pca on dense data; time_read, one X.T @ u, is the unit g to divide by."""

import numpy as np
import scipy.linalg.blas

import spcacore
from spcacore.operators.inputs import as_problem

K = 100


def numpy_loop(X, n_components, k, n_iter):
    """Truncated power with projection deflation, as one writes it in NumPy; n_iter iterations each.

    X is centered already. Starts from the column of largest norm.
    """
    X = X.copy()
    loadings = np.zeros((X.shape[1], n_components), X.dtype)
    for t in range(n_components):
        support = np.array([np.argmax(np.einsum("ij,ij->j", X, X))])
        values = np.ones(1, X.dtype)
        for _ in range(n_iter[t]):
            y = X.T @ (X[:, support] @ values)
            support = np.argpartition(-np.abs(y), k)[:k]
            values = y[support] / np.linalg.norm(y[support])
        loadings[support, t] = values
        X[:, support] -= np.outer(X[:, support] @ values, values)
    return loadings


class SparsePCA:
    params = (["500x10000", "500x100000"], ["float32", "float64"], ["C", "F"])
    param_names = ("shape", "dtype", "order")
    timeout = 300

    def setup(self, shape, dtype, order):
        n, p = map(int, shape.split("x"))
        X, _ = spcacore.datasets.make_spiked(
            n, p, cardinality=K, variances=np.linspace(60, 20, 10), dtype=dtype, rng=0
        )
        self.X = np.asarray(X - X.mean(axis=0), order=order)
        self.u = np.ones(n, dtype)
        self.operator = as_problem(self.X).operator
        self.index = np.sort(np.random.default_rng(0).choice(p, K, replace=False))
        self.value = np.full(K, K**-0.5, dtype)
        self.n_iter = spcacore.sparse_pca(self.X, 3, cardinality=K, method=spcacore.TPower(n_starts=1)).n_iter

    def time_read(self, shape, dtype, order):
        self.X.T @ self.u

    def time_statistics(self, shape, dtype, order):
        as_problem(self.X)

    def time_iteration(self, shape, dtype, order):
        self.operator.largest(self.index, self.value, K)

    def time_three_components(self, shape, dtype, order):
        spcacore.sparse_pca(self.X, 3, cardinality=K, method=spcacore.TPower(n_starts=1))

    def time_three_components_numpy_loop(self, shape, dtype, order):
        numpy_loop(self.X, 3, K, self.n_iter)


class Tall:
    """Data of few variables; time_syrk, their Gram matrix by BLAS, is the unit to divide by."""

    params = (["200000x500", "2000000x100"], ["float32", "float64"], ["C", "F"])
    param_names = ("shape", "dtype", "order")
    timeout = 300

    def setup(self, shape, dtype, order):
        n, p = map(int, shape.split("x"))
        self.X = np.empty((n, p), dtype, order=order)
        rng = np.random.default_rng(0)
        for start in range(0, n, 10_000):
            rows = self.X[start : start + 10_000]
            rows[:] = rng.standard_normal(rows.shape, dtype)
        self.syrk = scipy.linalg.blas.dsyrk if dtype == "float64" else scipy.linalg.blas.ssyrk

    def time_syrk(self, shape, dtype, order):
        self.syrk(1.0, self.X.T if order == "C" else self.X, trans=order == "F")

    def time_five_components(self, shape, dtype, order):
        spcacore.sparse_pca(self.X, 5, cardinality=20)


class Covariance:
    """Correlation matrices of p variables; all coordinates as starts where p is small."""

    params = ([13, 400, 2000],)
    param_names = ("p",)

    def setup(self, p):
        self.A = np.corrcoef(np.random.default_rng(0).standard_normal((p, 3 * p)))

    def time_six_components(self, p):
        spcacore.sparse_pca(self.A, 6, cardinality=5, kind="covariance")
