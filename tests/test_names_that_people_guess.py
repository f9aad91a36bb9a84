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


def test_bounds_are_upper_bounds(fit):
    best = spcacore.optimality_bound(fit[0], 4)
    assert best.upper_bound == best.bound == min(best.bounds.values())
    assert best.upper_bound >= spcacore.tpower(fit[0], 4).value


@pytest.mark.parametrize(
    ("method", "name", "pair"), [("generalized", "cardinality", (3, 2)), ("pmd", "l1_bound", (1.5, 1.2))]
)
def test_the_two_of_a_pair_apart(fit, method, name, pair):
    X, Y = fit[0][:, :8], fit[0][:, 8:]
    apart = {f"x_{name}": pair[0], f"y_{name}": pair[1]}
    one = spcacore.sparse_cca(X, Y, method=method, **apart)
    other = spcacore.sparse_cca(X, Y, method=method, **{name: pair})
    np.testing.assert_array_equal(one.loadings_x, other.loadings_x)
    np.testing.assert_array_equal(one.loadings_y, other.loadings_y)
    assert not np.array_equal(
        one.loadings_y, spcacore.sparse_cca(X, Y, method=method, **{name: 1}).loadings_y
    )
    with pytest.raises(ValueError, match=f"{name} goes without x_{name}"):
        spcacore.sparse_cca(X, Y, method=method, **apart, **{name: pair})
    with pytest.raises(TypeError, match=f"y_{name} is missing"):
        spcacore.sparse_cca(X, Y, method=method, **{f"x_{name}": 1})
    with pytest.raises(TypeError, match=f"x_{name} must be one number"):
        spcacore.sparse_cca(X, Y, method=method, **{**apart, f"x_{name}": pair})
