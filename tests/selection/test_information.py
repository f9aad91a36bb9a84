"""BIC against densities of SciPy, and the agreement of half-samples against averages over pairs."""

import itertools
import math

import numpy as np
import pytest
import scipy.sparse
from calls import pca
from numpy.testing import assert_allclose
from oracles import ends_at
from scipy.stats import multivariate_normal

import spcacore
from spcacore.selection.resampling import drawn_weights


def data(n=40, p=12):
    X, _ = spcacore.datasets.make_spiked(n, p, cardinality=4, variances=(30.0, 12.0), rng=0)
    return X + np.arange(p)


def expected_bic(X, result):
    """The densities of the rows in the model, with the covariance written out."""
    n, p = X.shape
    V = result.loadings
    total = X.var(axis=0, ddof=1).sum()
    noise = (total - result.explained_variance.sum()) / (p - V.shape[1])
    covariance = noise * np.eye(p) + (V * np.maximum(result.explained_variance - noise, 0)) @ V.T
    density = multivariate_normal(X.mean(axis=0), covariance).logpdf(X).sum()
    return (density - 0.5 * math.log(n) * (np.count_nonzero(V) + 1)) / n


@pytest.mark.parametrize("storage", [np.asarray, scipy.sparse.csr_array, spcacore.row_blocks])
def test_bic_is_that_of_the_densities(storage):
    X = data()
    found = spcacore.select_sparsity(storage(X), pca(2), [1, 3, 4, 8, 12], criterion="bic")
    expected = [expected_bic(X, result) for result in found.path]
    assert_allclose(found.score, expected, rtol=1e-9)
    assert found.standard_error is None
    assert found.chosen == found.best == [1, 3, 4, 8, 12][int(np.argmax(expected))]


def test_agreement_is_the_average_index_of_kuncheva():
    """Of supports of k variables: (common - k^2/p)/(k - k^2/p), over all pairs of resamples."""
    X, p, k = data(30, 20), 20, 5
    found = spcacore.stability(X, pca(2, k), n_resamples=10)
    for t in (0, 1):
        supports = [set(one[t].tolist()) for one in found.chosen]
        pairs = [(len(a & b) - k * k / p) / (k - k * k / p) for a, b in itertools.combinations(supports, 2)]
        assert found.agreement[t] == pytest.approx(np.mean(pairs))
    whole = spcacore.stability(X, pca(1, 20), n_resamples=4)
    assert whole.agreement.tolist() == [0.0]


def test_stability_as_a_criterion_is_that_of_each_value():
    X = data(30, 20)
    found = spcacore.select_sparsity(
        X, pca(2, scale=True), [2, 5], criterion="stability", n_resamples=6, rng=4
    )
    seed = int(np.random.default_rng(4).integers(2**63))
    for k, score in zip((2, 5), found.score, strict=True):
        one = spcacore.stability(X, pca(2, k, scale=True), n_resamples=6, rng=seed)
        assert score == pytest.approx(one.agreement.mean())
    assert drawn_weights(30, "complementary", seed, None)(0).sum() == 15


def test_a_penalty_that_leaves_no_component_has_the_agreement_of_a_blind_choice():
    X = data(30, 20)
    options = {"method": "gpower", "relative": False}
    with pytest.warns(RuntimeWarning, match="fewer than 1 component"):
        found = spcacore.select_sparsity(
            X, pca(**options), [1e6, 0.5], criterion="stability", n_resamples=6, rng=4
        )
    assert found.values.tolist() == [1e6, 0.5]  # the sparsest first
    assert found.score[0] == 0
    assert found.score[1] > 0
    assert found.chosen == 0.5
    with pytest.warns(RuntimeWarning), pytest.raises(ValueError, match="no component under these options"):
        spcacore.stability(X, pca(penalty=1e6, **options), n_resamples=6, rng=4)
    with pytest.warns(RuntimeWarning), pytest.raises(ValueError, match="no component"):
        spcacore.stability(np.ones((6, 3)), pca(1, 2), n_resamples=6)


def test_an_end_before_all_values_are_tried():
    model = spcacore.sparse_pca, [2, 5]
    with pytest.raises(RuntimeError, match="before all values"):
        spcacore.select_sparsity(
            data(30, 20), *model, criterion="stability", n_resamples=4, callback=ends_at(3)
        )
