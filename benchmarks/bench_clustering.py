"""Sparse clustering of 200 x 5000, in seconds; clustering.py writes the page."""

import numpy as np

from spcacore import sparse_dissimilarity, sparse_kmeans

SHAPE = (200, 5000)


class Clustering:
    params = (["float32", "float64"], [5.0, 20.0])
    param_names = ("dtype", "bound")

    def setup(self, dtype, bound):
        X = np.random.default_rng(0).standard_normal(SHAPE)
        X[len(X) // 2 :, :50] += 1
        self.X = X.astype(dtype)

    def time_squares(self, dtype, bound):
        sparse_dissimilarity(self.X, bound)

    def time_absolute(self, dtype, bound):
        sparse_dissimilarity(self.X, bound, "absolute")

    def time_kmeans(self, dtype, bound):
        sparse_kmeans(self.X, 2, bound)
