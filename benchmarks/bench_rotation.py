"""Varimax; time_read, one np.sum over the loadings, is the unit to divide by."""

import numpy as np

from spcacore import _core, varimax


def planted(p, r, dtype):
    """One large entry a row plus noise, rotated at random, in Fortran order."""
    rng = np.random.default_rng(0)
    y = 0.1 * rng.standard_normal((p, r))
    y[np.arange(p), rng.integers(r, size=p)] += rng.standard_normal(p)
    return np.asfortranarray((y @ np.linalg.qr(rng.standard_normal((r, r)))[0]).astype(dtype))


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
    params = (["20000x10", "20000x50"],)
    param_names = ("shape",)

    def setup(self, shape):
        self.loadings = planted(*map(int, shape.split("x")), np.float64)

    def time_read(self, shape):
        np.sum(self.loadings)

    def time_varimax(self, shape):
        varimax(self.loadings)

    def time_numpy_svd_iteration(self, shape):
        svd_iteration(self.loadings)


class Kernel:
    """The kernel alone, in place; asv must not call it twice on one input."""

    params = (["float32", "float64"],)
    param_names = ("dtype",)
    number = 1
    warmup_time = 0

    def setup_cache(self):
        return planted(1_000_000, 10, np.float64)

    def setup(self, loadings, dtype):
        self.loadings = np.array(loadings, dtype, order="F")

    def time_read(self, loadings, dtype):
        np.sum(self.loadings)

    def time_orthomax(self, loadings, dtype):
        _core.orthomax(self.loadings, 1.0, 1000, 1e-6)
