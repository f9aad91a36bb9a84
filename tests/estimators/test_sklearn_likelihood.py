"""The estimators' likelihood of rows, against densities of SciPy, scikit-learn's PCA and a maximizer."""

import warnings

import numpy as np
import pytest
from in_turn import scaled_or_not
from numpy.testing import assert_allclose
from oracles import normal
from scipy.optimize import minimize
from scipy.stats import multivariate_normal

import spcacore
from spcacore.datasets import make_spiked

pytest.importorskip("sklearn", reason="needs scikit-learn")
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from spcacore import TPower
from spcacore.sklearn import PPCA, SCA, SPCA, SparsePCA


@pytest.mark.parametrize("E", [SparsePCA, SPCA])
def test_with_all_variables_it_is_principal_component_analysis(E):
    X = load_wine().data
    oracle = PCA(3).fit(X)
    exactly = {"method": TPower(tol=1e-12)} if E is SparsePCA else {"tol": 1e-12}
    model = E(3, cardinality=13, **exactly).fit(X)
    signs = np.sign(np.sum(model.components_ * oracle.components_, axis=1))
    tolerance = 1e-9 if E is SparsePCA else 1e-4  # the default ridge, which is not 0
    assert_allclose(model.components_ * signs[:, None], oracle.components_, atol=tolerance)
    assert_allclose(model.explained_variance_, oracle.explained_variance_, rtol=tolerance)
    assert_allclose(model.explained_variance_ratio_, oracle.explained_variance_ratio_, rtol=tolerance)
    assert_allclose(model.noise_variance_, oracle.noise_variance_, rtol=tolerance)
    assert_allclose(model.transform(X) * signs, oracle.transform(X), atol=1e5 * tolerance)
    again = model.inverse_transform(model.transform(X))
    assert_allclose(again, oracle.inverse_transform(oracle.transform(X)), atol=1e3 * tolerance)
    assert_allclose(model.score_samples(X), oracle.score_samples(X), rtol=tolerance)
    assert_allclose(model.get_covariance(), oracle.get_covariance(), atol=1e5 * tolerance)
    assert model.score(X) == pytest.approx(oracle.score(X), rel=tolerance)


def test_rows_of_posterior_means_are_projections():
    """Onto the span of the components, which that of scikit-learn's are."""
    X, oracle = load_wine().data, PCA(3).fit(load_wine().data)
    model = PPCA(3).fit(X)
    again = model.inverse_transform(model.transform(X))
    assert_allclose(again, oracle.inverse_transform(oracle.transform(X)), atol=1e-6)


# ---- the likelihood ---------------------------------------------------------------------------------


def gaussian(A, C):
    """Mean log-density of data with covariance A under N(0, C), but for its constant."""
    return -0.5 * (np.linalg.slogdet(C)[1] + np.trace(np.linalg.solve(C, A)))


@pytest.mark.parametrize("case", ["spread", "below the noise"])
def test_the_model_is_the_likeliest_in_the_span(case, rng):
    """Against a maximizer that knows nothing of the closed form."""
    X = rng.standard_normal((50, 6)) @ np.diag([3, 2, 1, 1, 1, 1]) + rng.standard_normal(6)
    if case == "below the noise":
        X = X * [1, 0.1, 1, 1, 1, 1]
    model = SCA(2, start=np.eye(6)[:, :2], max_iter=1, l1_bound=2.0, rotation="none")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # one iteration does not converge
        model.fit(X)
    V = np.linalg.qr(model.components_.T)[0]
    A = np.cov(X.T)

    def objective(z):
        W = V @ z[:4].reshape(2, 2)
        return -gaussian(A, W @ W.T + np.exp(z[4]) * np.eye(6))

    best = min(minimize(objective, rng.standard_normal(5), tol=1e-10).fun for _ in range(3))
    assert gaussian(A, model.get_covariance()) == pytest.approx(-best, abs=1e-6)


@scaled_or_not
@pytest.mark.parametrize("E", [SparsePCA, SPCA, SCA, PPCA])
def test_log_densities_are_those_of_the_normal_distribution(E, scale):
    X = make_spiked(80, 12, cardinality=4, variances=(9, 4), rng=1)[0] * np.linspace(0.5, 4, 12) + 3
    model = E(scale=scale).fit(X[:50])
    oracle = multivariate_normal(model.mean_, model.get_covariance())
    assert_allclose(model.score_samples(X[50:]), oracle.logpdf(X[50:]), rtol=1e-9)
    assert model.score(X[50:]) == pytest.approx(oracle.logpdf(X[50:]).mean())


@pytest.mark.parametrize("E", [SparsePCA, SPCA, SCA, PPCA])
def test_a_row_far_away_has_no_density(E):
    X = make_spiked(60, 20, cardinality=4, variances=(9, 4), rng=0)[0]
    assert E().fit(X).score(X[:1] * 1e200) == -np.inf


def test_held_out_likelihood_finds_the_number_of_components():
    X = make_spiked(150, 40, cardinality=8, variances=(12, 8, 5), rng=0)[0]
    for model in (SparsePCA(cardinality=8), PPCA()):
        search = GridSearchCV(model, {"n_components": [1, 2, 3, 4, 6]}).fit(X)
        assert search.best_params_ == {"n_components": 3}


@pytest.mark.parametrize("size", [1e-170, 1e170])
def test_probabilistic_components_beyond_the_number_range(size):
    X = make_spiked(60, 20, cardinality=4, variances=(9, 4), rng=0)[0] * size
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of infinite variances
        with pytest.raises(ValueError, match="number range; rescale X"):
            PPCA().fit(X)


def test_there_is_no_density_without_noise():
    X = np.outer(np.arange(6.0), [1, 2, 0])
    model = SparsePCA(1, cardinality=2).fit(X)
    assert model.noise_variance_ == 0
    with pytest.raises(ValueError, match="no density"):
        model.score(X)
    whole = SparsePCA(3, cardinality=3).fit(normal(0, 20, 3))
    assert np.isfinite(whole.score(X))  # all directions are components


@pytest.mark.filterwarnings("ignore:the penalty leaves")
def test_without_any_loading_all_is_noise():
    """The density is then that of independent variables with equal variances."""
    X = make_spiked(60, 7, cardinality=3, variances=(9, 6), rng=0)[0]
    model = SPCA(2, penalty=1e6).fit(X)
    assert not model.components_.any()
    assert (model.transform(X) == 0).all()
    spread = X.var(axis=0, ddof=1).mean()
    expected = multivariate_normal(X.mean(axis=0), spread * np.eye(7)).logpdf(X)
    assert_allclose(model.score_samples(X), expected, rtol=1e-10)


def test_noise_of_many_variables_in_single_precision():
    X = normal(0, 20, 3000)
    X[:, 0] *= 1500
    single, double = (SparsePCA(1, 1).fit(X.astype(t)) for t in (np.float32, np.float64))
    assert_allclose(single.score(X), double.score(X), rtol=1e-5)


def test_missing_entries():
    X = make_spiked(120, 15, cardinality=5, variances=(12, 8), rng=0)[0]
    holes = X.copy()
    holes[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    model = PPCA().fit(holes)
    result = spcacore.ppca(holes, 2)
    assert np.array_equal(model.transform(holes), result.transform(holes))
    assert model.score(holes) == result.score(holes)
    assert model.n_iter_ == result.n_iter > 1
    filled = make_pipeline(PPCA()).fit(holes)
    assert filled.transform(holes).shape == (120, 2)
    for model in (SparsePCA(method="pmd"), SPCA(), SCA()):
        with pytest.raises(ValueError, match=f"Input X contains NaN, which {type(model).__name__} does not"):
            model.fit(holes)
        with pytest.raises(NotFittedError):  # nothing is kept
            model.score(X)
    with pytest.raises(ValueError, match="Input X contains NaN, which partial_fit does not"):
        PPCA().partial_fit(holes)


def test_all_components_that_there_can_be():
    X = normal(0, 6, 9)
    assert SparsePCA(None, cardinality=9).fit(X).n_components_ == 5
    assert SparsePCA(None, cardinality=9, center=False).fit(X).n_components_ == 6
    assert SPCA(None, cardinality=3).fit(X.T).n_components_ == 6
