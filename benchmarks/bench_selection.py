"""Paths over the sparsity, and its choice by left-out entries, beside single calls and rows dropped."""

from functools import partial

import numpy as np

import spcacore

SHAPE = (200, 5000)  # of the data for a choice
VALUES = [5, 10, 20, 40, 80, 160]


class Path:
    """Six values at once, which share one pass over the data, beside six calls."""

    params = ([(500, 20_000), (500, 100_000)], ["path", "calls"])
    param_names = ("shape", "how")

    def setup(self, shape, how):
        self.X = spcacore.datasets.make_spiked(*shape, cardinality=20, rng=0)[0]

    def time_six_values(self, shape, how):
        if how == "path":
            spcacore.sparsity_path(self.X, partial(spcacore.sparse_pca, n_components=3), VALUES)
        else:
            for k in VALUES:
                spcacore.sparse_pca(self.X, 3, cardinality=k)


class Select:
    params = ([1, 2],)
    param_names = ("threads",)

    def setup(self, threads):
        rng = np.random.default_rng(0)
        self.X = spcacore.datasets.make_spiked(*SHAPE, cardinality=20, rng=rng)[0]

    def time_five_folds(self, threads):
        spcacore.select_sparsity(self.X, partial(spcacore.sparse_pca, n_components=2), VALUES, n_jobs=threads)

    def track_chosen(self, threads):
        return spcacore.select_sparsity(
            self.X, partial(spcacore.sparse_pca, n_components=2), VALUES, n_jobs=threads
        ).chosen
