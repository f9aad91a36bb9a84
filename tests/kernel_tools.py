"""What the tests of kernels share: data, and the Gaussian kernel by its formula."""

import numpy as np
from scipy.spatial.distance import cdist


def images(n, rng):
    """Gray values like those of written digits: ten shapes in noise, and margins that are 0."""
    shapes = rng.uniform(-0.8, 1.0, (10, 8, 8))
    X = shapes[rng.integers(10, size=n)] + 0.2 * rng.standard_normal((n, 8, 8))
    X[:, :, [0, -1]] = 0
    return (16 * X.clip(0, 1)).round().reshape(n, 64) / 16


IMAGES = images(640, np.random.default_rng(0))
TRAIN, NEW = IMAGES[:600], IMAGES[600:]


def samples(seed, n=40, p=5):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, p)) @ rng.standard_normal((p, p)) + 3


def gaussian(X, Y, bandwidth):
    return np.exp(-(cdist(X, Y) ** 2) / (2 * bandwidth**2))


def matched(scores, reference):
    """The scores with the signs of the reference."""
    return scores * np.sign((scores * reference).sum(axis=0))


class Slices:
    """Rows from a file, say: no more of them are asked for at once than a block."""

    def __init__(self, X):
        self.X, self.shape, self.dtype = X, X.shape, X.dtype

    def __getitem__(self, part):
        return self.X[part]
