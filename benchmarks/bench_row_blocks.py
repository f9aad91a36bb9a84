"""Data in blocks of rows: passes over them, and time beside that of the same array in memory."""

import numpy as np

import spcacore

from .families import R, make

SHAPE = (2000, 20_000)
BLOCKS, CARDINALITY = 4, 50


class RowBlocks:
    """Ten components of 50 from default calls; `time_in_memory` is the unit to divide by."""

    params = (["medium", "gene", "noise"], ["float32", "float64"])
    param_names = ("family", "dtype")
    timeout = 600
    number = 1
    repeat = (1, 3, 60)
    warmup_time = 0

    def setup(self, family, dtype):
        self.X = make(family, *SHAPE, np.dtype(dtype))

    def blocks(self):
        return spcacore.row_blocks(self.X, block_bytes=self.X.nbytes // BLOCKS)

    def time_in_memory(self, family, dtype):
        spcacore.sparse_pca(self.X, R, cardinality=CARDINALITY)

    def time_row_blocks(self, family, dtype):
        spcacore.sparse_pca(self.blocks(), R, cardinality=CARDINALITY)

    def track_passes(self, family, dtype):
        blocks = self.blocks()
        spcacore.sparse_pca(blocks, R, cardinality=CARDINALITY)
        return blocks.passes / R

    track_passes.unit = "passes a component"
