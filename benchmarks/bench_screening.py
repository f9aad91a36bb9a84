"""A whole `sparse_pca` call on the six families; Unit.time_read, one X.T @ u, is the unit g to divide by."""

import numpy as np

from spcacore import sparse_pca

from . import memory
from .families import FAMILIES, K, R, make

SHAPES = {"500x100000 float64": (500, 100_000, "float64"), "500x400000 float32": (500, 400_000, "float32")}
SCREENING = ["auto", "none"]


class Screening:
    params = (list(SHAPES), ["C", "F"], list(FAMILIES), SCREENING)
    param_names = ("shape", "order", "family", "screening")
    timeout = 600
    number = 1
    repeat = (1, 3, 60)
    warmup_time = 0

    def setup(self, shape, order, family, screening):
        self.X = make(family, *SHAPES[shape], order)

    def time_ten_components(self, shape, order, family, screening):
        sparse_pca(self.X, R, cardinality=K, screening=screening)

    def track_reads(self, shape, order, family, screening):
        """Bytes of X, and of what stands in for it, read by the whole call over the bytes of X."""
        return sparse_pca(self.X, R, cardinality=K, screening=screening).screening.reads

    track_reads.unit = "reads of X"


class Unit:
    params = (list(SHAPES), ["C", "F"])
    param_names = ("shape", "order")

    def setup(self, shape, order):
        self.X = make("noise", *SHAPES[shape], order)
        self.u = np.ones(len(self.X), self.X.dtype)

    def time_read(self, shape, order):
        self.X.T @ self.u


class Memory:
    params = (list(SHAPES), ["C", "F"], SCREENING)
    param_names = ("shape", "order", "screening")
    timeout = 600

    def track_peak(self, shape, order, screening):
        """Peak resident memory of the whole call above X."""
        return 100 * memory.peak("medium", *SHAPES[shape], order, screening)

    track_peak.unit = "% of X"
