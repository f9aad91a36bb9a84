"""random_fourier_features, and kernel_pca on them, against the exact kernel and scikit-learn."""

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
import scipy.sparse.linalg
import scipy.stats
from extras import optional
from kernel_tools import Slices, matched, samples
from numpy.testing import assert_allclose, assert_array_equal
from oracles import with_peak

from spcacore import kernel_pca, random_fourier_features
from spcacore.models import random_features

PCA = optional("sklearn.decomposition", "PCA")
RBFSampler = optional("sklearn.kernel_approximation", "RBFSampler")


def test_features_are_the_stated_cosines():
    X = samples(8)
    f = random_fourier_features(X, 30, bandwidth=1.5, rng=3)
    expected = np.sqrt(2 / 30) * np.cos((X - f.shift) @ f.weights + f.offset)
    assert_allclose(f.transform(X), expected, atol=1e-13)
    assert_allclose(f.transform(scipy.sparse.csr_array(X)), expected, atol=1e-12)
    assert f.transform(X.astype(np.float32)).dtype == np.float32
    assert_allclose(f.transform(X.astype(np.float32)), expected, atol=1e-5)
    assert_allclose(f.kernel(X, X[:3]), f.transform(X) @ f.transform(X[:3]).T, rtol=1e-13)
    same = random_fourier_features(X, 30, bandwidth=1.5, rng=3)
    assert_array_equal(same.weights, f.weights)
    alone = random_fourier_features(5, 30, bandwidth=1.5, rng=3)
    assert_array_equal(alone.weights, f.weights)
    assert not alone.shift.any()
    many = random_fourier_features(40, 500, bandwidth=0.1)
    assert scipy.stats.kstest(many.weights.ravel() / 10, "norm").pvalue > 0.01
    assert scipy.stats.kstest(many.offset / (2 * np.pi), "uniform").pvalue > 0.01


def test_kernel_pca_on_features_is_pca_of_the_features():
    X = samples(9, n=300)
    f = random_fourier_features(X, 40, rng=1)
    ours = kernel_pca(X, 4, random_features=f)
    pca = PCA(4, svd_solver="full").fit(f.transform(X))
    expected = pca.transform(f.transform(X))
    assert_allclose(matched(ours.scores, expected), expected, atol=1e-10)
    assert_allclose(ours.explained_variance, pca.explained_variance_, rtol=1e-10)
    assert_allclose(ours.explained_variance_ratio, pca.explained_variance_ratio_, rtol=1e-10)
    assert_allclose(ours.transform(X), ours.scores, atol=1e-12)
    assert (ours.scores[np.abs(ours.scores).argmax(axis=0), np.arange(4)] > 0).all()
    assert ours.features is f
    assert ours.bandwidth == f.bandwidth


@pytest.mark.share(3)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16])
def test_rows_by_blocks(dtype, tmp_path, monkeypatch):
    """Memory maps and anything that gives rows by slices, with memory for a block alone."""
    X = (100 * samples(10, n=20000)).astype(dtype)
    expected = kernel_pca(X, 3, random_features=64)
    np.save(tmp_path / "X.npy", X)
    with monkeypatch.context() as patch:
        patch.setattr(random_features, "COPIED_ENTRIES", 64 * 1000)
        rows = Slices(X)
        stored = np.load(tmp_path / "X.npy", mmap_mode="r")
        options = {"random_features": 64, "bandwidth": expected.bandwidth}
        ours, peak = with_peak(lambda: [kernel_pca(M, 3, **options) for M in (rows, stored)])
        assert peak < 6e6  # the features alone would be 10 MB
        f = expected.features
        assert_allclose(f.transform(rows), f.transform(X), atol=1e-5)
        assert random_fourier_features(rows, 9).bandwidth == pytest.approx(expected.bandwidth, rel=1e-6)
    for one in ours:
        tol = 1e-9 if one.scores.dtype == np.float64 else 1e-4
        assert_allclose(one.scores, expected.scores, atol=tol)
