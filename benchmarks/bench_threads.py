"""Loops over the matrix by one thread and by two; the same bits."""

import numpy as np

import spcacore
from spcacore import get_num_threads, set_num_threads, sparse_pca
from spcacore.operators.inputs import as_problem

SHAPES = ["500x50000", "50000x500"]


class Threads:
    """Products and a whole call; divide those of two threads by those of one."""

    params = (SHAPES, ["C", "F"], [1, 2])
    param_names = ("shape", "order", "n_threads")
    timeout = 120

    def setup(self, shape, order, n_threads):
        n, p = map(int, shape.split("x"))
        self.X = np.asarray(np.random.default_rng(0).standard_normal((n, p)), order=order)
        self.u, self.V = np.ones(n), np.ones((p, 4), order="F")
        self.operator = as_problem(self.X).operator
        self.before = get_num_threads()
        set_num_threads(n_threads)

    def teardown(self, shape, order, n_threads):
        set_num_threads(self.before)

    def time_transposed(self, shape, order, n_threads):
        self.operator.backward(self.u)

    def time_block(self, shape, order, n_threads):
        self.operator.apply_block(self.V)

    def time_sparse_pca(self, shape, order, n_threads):
        sparse_pca(self.X, 2, cardinality=50, method=spcacore.TPower(screening="none"))
