"""Missing entries count for nothing: as data in which each has the mean of the rest of its column."""

import flat
import numpy as np
import pytest
from in_turn import scaled_or_not
from numpy.testing import assert_allclose

import spcacore

pytestmark = pytest.mark.usefixtures("few_starts")

FITS = {
    "tpower": lambda X, **o: flat.sparse_pca(X, 2, cardinality=4, **o),
    "one": lambda X, **o: flat.tpower(X, 4, **o),
    "schur": lambda X, **o: flat.sparse_pca(X, 2, cardinality=4, deflation="schur", **o),
    "refined": lambda X, **o: flat.sparse_pca(X, 2, cardinality=4, refine=True, **o),
    "spca": lambda X, **o: flat.spca(X, 2, cardinality=4, **o),
    "sca": lambda X, **o: spcacore.sca(X, 2, l1_bound=4, **o),
}


@pytest.fixture(params=[np.float64, np.float32])
def X(request):
    X = spcacore.datasets.make_spiked(50, 12, cardinality=4, variances=(9, 5), rng=0)[0] + 3
    X[np.random.default_rng(1).random(X.shape) < 0.1] = np.nan
    return X.astype(request.param)


def same(result, expected, single):
    tolerance = 2e-4 if single else 1e-8
    for name in ("loadings", "loading", "explained_variance", "value", "total_variance", "scores"):
        if getattr(expected, name, None) is not None:
            assert_allclose(getattr(result, name), getattr(expected, name), rtol=tolerance, atol=tolerance)


@scaled_or_not
@pytest.mark.parametrize("name", FITS)
def test_missing_entries_are_the_means(X, name, scale):
    single = X.dtype == np.float32
    result = FITS[name](X, scale=scale)
    Z = X.astype(np.float64)
    Z = (Z - np.nanmean(Z, axis=0)) / (np.nanstd(Z, axis=0, ddof=1) if scale else 1)
    expected = FITS[name](np.where(np.isnan(Z), 0, Z).astype(X.dtype), center=False)
    same(result, expected, single)
    if name != "one":
        assert_allclose(result.mean, np.nanmean(X, axis=0), rtol=1e-5)


@pytest.mark.parametrize("name", FITS)
def test_what_does_not_go_with_missing_entries(X, name):
    with pytest.raises(ValueError, match="NaN entries, which cannot be combined with sample_weight"):
        FITS[name](X, sample_weight=np.ones(50))
    X[:, 3] = np.nan
    with pytest.raises(ValueError, match="column 3 of X has only NaN entries"):
        FITS[name](X)
