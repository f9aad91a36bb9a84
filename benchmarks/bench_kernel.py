"""Kernel PCA: by the kernel matrix and on random features; time_product, X X', is the unit."""

import numpy as np

from spcacore import kernel_pca


def data(n, p):
    """Noise with three directions of more variance."""
    X = np.random.default_rng(0).standard_normal((n, p))
    X[:, :3] *= 3
    return X


class KernelPCA:
    params = (1000, 3000)
    param_names = ("n",)

    def setup(self, n):
        self.X = data(n, 50)

    def time_product(self, n):
        self.X @ self.X.T

    def time_lanczos(self, n):
        kernel_pca(self.X, 5, bandwidth=5.0, solver="lanczos")

    def time_random_features(self, n):
        kernel_pca(self.X, 5, bandwidth=5.0, random_features=500)
