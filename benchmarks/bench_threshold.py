"""The soft threshold at an l1 bound, in units of one memcpy of the vector (p = 10^6)."""

import numpy as np

from spcacore import l1_threshold, truncate

P = 10**6
BOUNDS = {"tiny": 2.0, "small": 30.0, "middle": 500.0, "barely active": 780.0, "inactive": 1000.0}


class Threshold:
    params = (["float32", "float64"], list(BOUNDS))
    param_names = ("dtype", "bound")

    def setup(self, dtype, bound):
        self.a = np.random.default_rng(0).standard_normal(P).astype(dtype)
        self.out = np.empty_like(self.a)
        self.bound = BOUNDS[bound]

    def time_l1_threshold(self, dtype, bound):
        l1_threshold(self.a, self.bound)


class Selection:
    params = (["float32", "float64"], [100, P // 100, P // 2])
    param_names = ("dtype", "k")

    def setup(self, dtype, k):
        self.a = np.random.default_rng(0).standard_normal(P).astype(dtype)

    def time_truncate(self, dtype, k):
        truncate(self.a, k)


class Reference:
    params = ("float32", "float64")
    param_names = ("dtype",)

    def setup(self, dtype):
        self.a = np.random.default_rng(0).standard_normal(P).astype(dtype)
        self.out = np.empty_like(self.a)

    def time_memcpy(self, dtype):
        np.copyto(self.out, self.a)

    def time_numpy_sort_reference(self, dtype):
        """What the search over all breakpoints costs by sorting and cumulative sums."""
        a = -np.sort(-np.abs(self.a))
        j = np.arange(1, P + 1)
        s1, s2 = np.cumsum(a), np.cumsum(a * a)
        excess, square = s1 - j * a, s2 - 2 * a * s1 + j * a * a
        np.searchsorted(excess**2 - 500.0**2 * square, 0)
