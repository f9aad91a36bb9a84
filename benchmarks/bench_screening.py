"""A whole `sparse_pca` call on 500 x 100,000; Unit.time_read, one X.T @ u, is the unit g to divide by."""

import numpy as np

import spcacore
from spcacore import sparse_pca

from . import memory
from .families import FAMILIES, K, R, make

SHAPE = (500, 100_000)
DTYPES = ["float32", "float64"]
SCREENING = ["auto", "none"]


class Screening:
    """Time, in the families that performance targets name."""

    params = (DTYPES, ["C", "F"], ["medium", "gene", "noise"], SCREENING)
    param_names = ("dtype", "order", "family", "screening")
    timeout = 600
    number = 1
    repeat = (1, 3, 60)
    warmup_time = 0

    def setup(self, dtype, order, family, screening):
        self.X = make(family, *SHAPE, dtype, order)

    def time_ten_components(self, dtype, order, family, screening):
        sparse_pca(self.X, R, cardinality=K, method=spcacore.TPower(screening=screening))


class Reads:
    """Counts, the same on every machine: bytes read of X and of its quantized copy, over those of X."""

    params = (DTYPES, list(FAMILIES))
    param_names = ("dtype", "family")
    timeout = 600

    def setup(self, dtype, family):
        self.X = make(family, *SHAPE, dtype)

    def track_reads(self, dtype, family):
        return sparse_pca(self.X, R, cardinality=K).screening.reads

    track_reads.unit = "reads of X"


class Unit:
    params = (DTYPES, ["C", "F"])
    param_names = ("dtype", "order")

    def setup(self, dtype, order):
        self.X = make("noise", *SHAPE, dtype, order)
        self.u = np.ones(len(self.X), self.X.dtype)

    def time_read(self, dtype, order):
        self.X.T @ self.u


class Memory:
    """Peak resident memory of the whole call above X."""

    params = (DTYPES, ["C", "F"], SCREENING)
    param_names = ("dtype", "order", "screening")
    timeout = 600

    def track_peak(self, dtype, order, screening):
        return 100 * memory.peak("medium", *SHAPE, dtype, order, screening)

    track_peak.unit = "% of X"
