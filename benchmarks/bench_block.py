"""A block of b vectors through the operator; time_read, one X.T @ u, is the unit g to divide by."""

import numpy as np

from spcacore._operator import as_problem


class Block:
    params = (
        ["500x100000", "5000x10000", "50000x1000"],
        ["float32", "float64"],
        ["C", "F"],
        [1, 2, 4, 8, 16],
    )
    param_names = ("shape", "dtype", "order", "b")
    timeout = 120

    def setup(self, shape, dtype, order, b):
        n, p = map(int, shape.split("x"))
        rng = np.random.default_rng(0)
        self.X = np.asarray(rng.standard_normal((n, p), dtype), order=order)
        self.V = np.asfortranarray(rng.standard_normal((p, b)).astype(dtype))
        self.u = np.ones(n, dtype)
        self.operator = as_problem(self.X).operator

    def time_read(self, shape, dtype, order, b):
        self.X.T @ self.u

    def time_two_gemms(self, shape, dtype, order, b):
        self.X.T @ (self.X @ self.V)

    def time_apply_one(self, shape, dtype, order, b):
        self.operator.apply(None, self.V[:, 0])

    def time_apply_block(self, shape, dtype, order, b):
        self.operator.apply_block(self.V)
