"""A block of b vectors through the operator; Unit.time_read, one X.T @ u, is the unit g to divide by."""

import numpy as np

from spcacore.operators.inputs import as_problem

SHAPES = ["500x100000", "5000x10000", "50000x1000"]
DTYPES = ["float32", "float64"]


def make(shape, dtype, order):
    n, p = map(int, shape.split("x"))
    return np.asarray(np.random.default_rng(0).standard_normal((n, p), dtype), order=order)


class Unit:
    """One read of X, and the product of one vector."""

    params = (SHAPES, DTYPES, ["C", "F"])
    param_names = ("shape", "dtype", "order")
    timeout = 120

    def setup(self, shape, dtype, order):
        self.X = make(shape, dtype, order)
        self.u, self.v = (np.ones(length, dtype) for length in self.X.shape)
        self.operator = as_problem(self.X).operator

    def time_read(self, shape, dtype, order):
        self.X.T @ self.u

    def time_apply(self, shape, dtype, order):
        self.operator.apply(None, self.v)


class Block:
    """The products of b vectors, by the operator and by two calls of the BLAS."""

    params = (SHAPES, DTYPES, ["C", "F"], [2, 4, 8, 20])
    param_names = ("shape", "dtype", "order", "b")
    timeout = 120

    def setup(self, shape, dtype, order, b):
        self.X = make(shape, dtype, order)
        V = np.random.default_rng(1).standard_normal((self.X.shape[1], b))
        self.V = np.asfortranarray(V.astype(dtype))
        self.operator = as_problem(self.X).operator

    def time_apply_block(self, shape, dtype, order, b):
        self.operator.apply_block(self.V)

    def time_two_gemms(self, shape, dtype, order, b):
        self.X.T @ (self.X @ self.V)
