"""Each one-component method, three components, on data and on a covariance matrix; sparsity alike."""

from dataclasses import replace

import numpy as np

import spcacore
from spcacore.methods import METHODS

SHAPES = {"data": (500, 10_000), "covariance": (2000, 1000)}
K = 20
R = 3
SPIKES = (60, 45, 30)
SLOW = ("branch_and_bound", "dspca")  # have benchmarks of their own


def problem(kind):
    """Data 500 x 10,000, or the covariance matrix of 1000 variables, with three planted components."""
    X, planted = spcacore.datasets.make_spiked(*SHAPES[kind], cardinality=K, variances=SPIKES, rng=0)
    return (X if kind == "data" else np.cov(X.T)), planted


def sparsity(method, M, kind):
    """The method, and a cardinality if it takes one, for about K nonzeros in each of three components."""
    if method.sparsity == "cardinality":
        return {"method": method, "cardinality": K}
    return {"method": matched(method, M, kind)}


def matched(method, M, kind):
    """With the l1 bound, or relative penalty, of which three components have 3 K nonzeros, by bisection."""
    if method.sparsity == "penalty":
        method = replace(method, relative=True)
    low, high = (1.0, np.sqrt(M.shape[1])) if method.sparsity == "l1_bound" else (1.0, 0.0)
    for _ in range(14):
        middle = (low + high) / 2
        method = replace(method, **{method.sparsity: middle})
        nonzeros = spcacore.sparse_pca(M, R, method=method, kind=kind).cardinality.sum()
        if abs(nonzeros - R * K) <= 1:
            break
        low, high = (middle, high) if nonzeros < R * K else (low, middle)
    return method


class Methods:
    params = (["data", "covariance"], [m for m in METHODS if m not in SLOW])
    param_names = ("kind", "method")
    timeout = 600

    def setup_cache(self):
        """The search for the options takes longer than what is timed."""
        kinds, methods = self.params
        return {
            (kind, method): sparsity(METHODS[method](), problem(kind)[0], kind)
            for kind in kinds
            for method in methods
        }

    setup_cache.timeout = 600

    def setup(self, options, kind, method):
        self.M, _ = problem(kind)

    def time_three_components(self, options, kind, method):
        spcacore.sparse_pca(self.M, R, kind=kind, **options[kind, method])


class Swaps:
    """Pure noise, where most of the time goes into exchanges of variables, and data where none helps."""

    params = ("noise", "noise covariance", "planted")
    param_names = ("data",)

    def setup(self, data):
        rng = np.random.default_rng(0)
        if data == "noise":
            self.M = rng.standard_normal((200, 5000))
        elif data == "noise covariance":
            self.M = np.cov(rng.standard_normal((1000, 500)).T)
        else:
            variances = (8, 7.5, 7, 6.5, 6)
            self.M = spcacore.datasets.make_spiked(200, 5000, cardinality=K, variances=variances, rng=0)[0]

    def time_five_components(self, data):
        kind = "covariance" if "covariance" in data else "data"
        spcacore.sparse_pca(self.M, 5, cardinality=K, kind=kind)
