"""Attributes and methods by the names that users of other packages look for."""

import copy
import pickle

import numpy as np
import pytest

import spcacore


@pytest.fixture(scope="module")
def fit():
    X = spcacore.datasets.make_spiked(40, 15, cardinality=4, rng=0)[0]
    return X, spcacore.sparse_pca(X, 2, cardinality=4)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("components_", "loadings has the components"),
        ("scores", r"transform\(X\) gives the scores"),
        ("explained_variance_", "explained_variance has no underscore here"),
        ("mean_", "mean has no underscore here"),
        ("sdev", "roots of explained_variance"),
        ("bound", "upper_bound"),
    ],
)
def test_an_error_says_where_it_is(fit, name, words):
    with pytest.raises(AttributeError, match=f"no attribute '{name}': .*{words}"):
        getattr(fit[1], name)


@pytest.mark.parametrize("name", ["foo", "_x_", "__array__", "__array_interface__", "_repr_png_", "foo_"])
def test_other_names_are_not_there(fit, name):
    with pytest.raises(AttributeError, match=f"no attribute '{name}'$"):
        getattr(fit[1], name)


def test_results_are_copied_as_before(fit):
    for again in (copy.copy(fit[1]), copy.deepcopy(fit[1]), pickle.loads(pickle.dumps(fit[1]))):
        np.testing.assert_array_equal(again.loadings, fit[1].loadings)


def test_inverse_transform_projects(fit):
    X, result = fit
    V, mean = result.loadings, X.mean(axis=0)
    projected = (X - mean) @ V @ np.linalg.pinv(V) + mean
    np.testing.assert_allclose(result.inverse_transform(result.transform(X)), projected, atol=1e-10)
    model = spcacore.ppca(X, 2)
    Z = model.transform(X)
    np.testing.assert_allclose(model.inverse_transform(Z), Z @ model.loadings.T + mean, atol=1e-10)
