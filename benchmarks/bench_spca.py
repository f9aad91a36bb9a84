"""Elastic-net components: wide data by an infinite ridge, tall data by the paths of a finite one."""

import warnings

import numpy as np

import spcacore

WIDE = (72, 7129)  # the shape of a gene expression array
TALL = (5000, 1000)


class Wide:
    """5 components of 50 variables."""

    params = (["inf", "finite"],)
    param_names = ("ridge",)

    def setup(self, ridge):
        warnings.simplefilter("ignore", RuntimeWarning)
        n, p = WIDE
        rng = np.random.default_rng(0)
        factors = rng.standard_normal((n, 8)) * np.geomspace(8, 1, 8)
        genes = rng.standard_normal((8, p)) * (rng.random((8, p)) < 0.05)
        self.X = factors @ genes + rng.standard_normal(WIDE)
        self.ridge = np.inf if ridge == "inf" else 100 * (n - 1.0)

    def time_cardinality(self, ridge):
        spcacore.spca(self.X, 5, cardinality=50, ridge=self.ridge, max_iter=50, tol=0)

    def time_principal_components(self, ridge):
        """For a ratio: what the search starts from."""
        np.linalg.svd(self.X - self.X.mean(axis=0), full_matrices=False)


class Tall:
    """By penalty: a working set of the variables."""

    def setup(self):
        warnings.simplefilter("ignore", RuntimeWarning)
        self.X, _ = spcacore.datasets.make_spiked(*TALL, cardinality=30, variances=(60, 45, 30), rng=0)

    def time_penalty(self):
        spcacore.spca(self.X, 3, penalty=3e4, ridge=1.0, max_iter=50, tol=0)
