"""Deflation in place, k = 100; on data against one X.T @ u, on a covariance against one A @ v."""

import numpy as np

from spcacore import _core, deflate
from spcacore.operators.deflation import DEFLATIONS
from spcacore.operators.deflation import DeflatedOperator as Deflated
from spcacore.operators.inputs import as_problem

K = 100
SHAPE = (500, 100_000)  # of data
P = 5000  # variables of covariances


def loading(p, dtype):
    rng = np.random.default_rng(0)
    x = np.zeros(p, dtype)
    x[rng.choice(p, K, replace=False)] = rng.standard_normal(K)
    return x / np.linalg.norm(x)


class Data:
    params = (["float32", "float64"], ["C", "F"])
    param_names = ("dtype", "order")

    def setup(self, dtype, order):
        self.X = np.asarray(np.random.default_rng(0).standard_normal(SHAPE), dtype, order=order)
        self.u = np.ones(SHAPE[0], dtype)
        self.x = loading(SHAPE[1], dtype)
        self.S = np.flatnonzero(self.x)

    def time_read(self, dtype, order):
        self.X.T @ self.u

    def time_kernel(self, dtype, order):
        _core.deflate_data("projection", self.X, self.S, self.x[self.S], None)

    def time_deflate(self, dtype, order):
        """With the check for finite entries, which reads X."""
        deflate(self.X, self.x, kind="data", overwrite=True)

    def time_numpy_outer(self, dtype, order):
        self.X - np.outer(self.X @ self.x, self.x)


class Covariance:
    params = (["hotelling", "projection", "schur"],)
    param_names = ("method",)

    def setup(self, method):
        B = np.random.default_rng(0).standard_normal((200, P))
        self.A = B.T @ B
        self.v = np.ones(P)
        self.x = loading(P, np.float64)
        self.problem = as_problem(self.A, kind="covariance", definite=False)

    def time_product(self, method):
        self.A @ self.v

    def time_deflate(self, method):
        """With the check for symmetry, which reads A."""
        deflate(self.A, self.x, method, overwrite=True)

    def time_implicit(self, method):
        Deflated.from_problem(self.problem, DEFLATIONS[method]).deflate(
            np.flatnonzero(self.x), self.x[self.x != 0], noise=lambda _: 0.0
        )
