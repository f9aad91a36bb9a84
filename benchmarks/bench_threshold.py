"""The soft threshold at an l1 bound, and selection, in units of one memcpy of the vector (p = 10^6).

`track_*` gives the median time of a call over that of `np.copyto`, taken in turns on the same array.
"""

from time import perf_counter

import numpy as np

from spcacore import _core, l1_threshold, truncate

P = 10**6
DTYPES = ["float32", "float64"]
VECTORS = {
    "normal": lambda rng: rng.standard_normal(P),
    "uniform": lambda rng: rng.uniform(-1, 1, P),
    "laplace": lambda rng: rng.laplace(size=P),
    "t, 1 degree of freedom": lambda rng: rng.standard_cauchy(P),
    "t, 2 degrees of freedom": lambda rng: rng.standard_t(2, P),
    "pareto 1": lambda rng: rng.pareto(1, P) + 1,
    "pareto 3": lambda rng: rng.pareto(3, P) + 1,
    "90 % zeros": lambda rng: rng.standard_normal(P) * (rng.random(P) < 0.1),
    "rounded": lambda rng: np.round(2 * rng.standard_normal(P)),
    "finely rounded": lambda rng: np.round(10 * rng.standard_normal(P)),
    "sorted": lambda rng: np.sort(rng.standard_normal(P)),
    "constant": lambda rng: np.full(P, 3.0),
}
BOUNDS = [1.0, 3.0, 30.0, 300.0, 700.0, 850.0, 1000.0]


def vector(kind, dtype):
    return VECTORS[kind](np.random.default_rng(0)).astype(dtype)


def ratio(call, a, repeats=11):
    out = np.zeros_like(a)
    times = []
    for _ in range(repeats + 2):
        start = perf_counter()
        np.copyto(out, a)
        middle = perf_counter()
        call()
        times.append((middle - start, perf_counter() - middle))
    copy, work = np.median(times[2:], axis=0)
    return work / copy


class Threshold:
    """The kernel with a warm output, and the function, which allocates it; the worst of all bounds."""

    params = (["kernel", "function"], DTYPES, list(VECTORS))
    param_names = ("what", "dtype", "vector")
    timeout = 120
    unit = "memcpy"

    def setup(self, what, dtype, kind):
        self.a = vector(kind, dtype)
        self.out = np.zeros_like(self.a)

    def call(self, what, bound, nonnegative):
        if what == "kernel":
            return lambda: _core.l1_threshold(self.a, bound, 2 * nonnegative, self.out)
        return lambda: l1_threshold(self.a, bound, nonnegative=nonnegative)

    def track_worst(self, what, dtype, kind):
        return max(ratio(self.call(what, c, sign), self.a) for c in BOUNDS for sign in (False, True))


class Selection:
    """Truncation, and selection alone."""

    params = (DTYPES, ["normal", "rounded", "sorted"], [100, P // 8, 9 * P // 10])
    param_names = ("dtype", "vector", "k")
    unit = "memcpy"

    def setup(self, dtype, kind, k):
        self.a = vector(kind, dtype)

    def track_truncate(self, dtype, kind, k):
        return ratio(lambda: truncate(self.a, k), self.a)

    def track_select_largest(self, dtype, kind, k):
        return ratio(lambda: _core.select_largest(self.a, k), self.a)


class Reference:
    params = (DTYPES,)
    param_names = ("dtype",)

    def setup(self, dtype):
        self.a = vector("normal", dtype)

    def time_numpy_sort_reference(self, dtype):
        """What the search over all breakpoints costs by sorting and cumulative sums."""
        a = -np.sort(-np.abs(self.a))
        j = np.arange(1, P + 1)
        s1, s2 = np.cumsum(a), np.cumsum(a * a)
        excess, square = s1 - j * a, s2 - 2 * a * s1 + j * a * a
        np.searchsorted(excess**2 - 500.0**2 * square, 0)
