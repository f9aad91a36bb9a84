"""Varimax; time_read, the dot product of the loadings with themselves by BLAS, is the unit to divide by."""

import numpy as np

from spcacore import _core, varimax


def planted(p, r, dtype):
    """One large entry a row plus noise, rotated at random, in Fortran order."""
    rng = np.random.default_rng(0)
    y = 0.1 * rng.standard_normal((p, r))
    y[np.arange(p), rng.integers(r, size=p)] += rng.standard_normal(p)
    return np.asfortranarray((y @ np.linalg.qr(rng.standard_normal((r, r)))[0]).astype(dtype))


def heavy_tails(p, r, dtype):
    """Student's t with 2 degrees of freedom, rotated at random."""
    rng = np.random.default_rng(0)
    y = rng.standard_t(2, size=(p, r))
    return np.asfortranarray((y @ np.linalg.qr(rng.standard_normal((r, r)))[0]).astype(dtype))


def counts(p, r, dtype):
    """Exponential entries and row sizes, no simple structure: a flat maximum."""
    rng = np.random.default_rng(0)
    y = rng.exponential(size=(p, r)) * rng.exponential(size=(p, 1)) * np.linspace(2, 0.3, r)
    return np.asfortranarray((y @ np.linalg.qr(rng.standard_normal((r, r)))[0]).astype(dtype))


DATA = {"planted": planted, "heavy tails": heavy_tails, "counts": counts}


def svd_iteration(loadings, tol=1e-8, max_iter=1000):
    """Varimax as it is commonly written: R from the SVD of L'(Y^3 - Y diag(Y'Y)/p)."""
    rotation, total = np.eye(loadings.shape[1]), 0.0
    for _ in range(max_iter):
        y = loadings @ rotation
        u, s, vt = np.linalg.svd(loadings.T @ (y**3 - y * (np.square(y).sum(axis=0) / len(y))))
        rotation, before, total = u @ vt, total, s.sum()
        if total < before * (1 + tol):
            break
    return loadings @ rotation, rotation


class Varimax:
    params = (["20000x10", "20000x50", "100000x20"], list(DATA))
    param_names = ("loadings", "data")

    def setup(self, shape, data):
        self.loadings = DATA[data](*map(int, shape.split("x")), np.float64)
        self.flat = self.loadings.ravel(order="F")

    def time_read(self, shape, data):
        self.flat @ self.flat

    def time_varimax(self, shape, data):
        varimax(self.loadings)

    def time_numpy_svd_iteration(self, shape, data):
        svd_iteration(self.loadings)


class Kernel:
    """The kernel alone, in place; asv must not call it twice on one input."""

    params = (["float32", "float64"], ["1000000x10", "20000x50"])
    param_names = ("dtype", "loadings")
    number = 1
    warmup_time = 0

    def setup_cache(self):
        return {shape: planted(*map(int, shape.split("x")), np.float64) for shape in self.params[1]}

    def setup(self, loadings, dtype, shape):
        self.loadings = np.array(loadings[shape], dtype, order="F")
        self.flat = self.loadings.ravel(order="F")

    def time_read(self, loadings, dtype, shape):
        self.flat @ self.flat

    def time_orthomax(self, loadings, dtype, shape):
        _core.orthomax(self.loadings, 1.0, 1000, 1e-6)
