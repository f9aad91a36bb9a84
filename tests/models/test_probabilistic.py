"""ppca against scikit-learn, explicit matrices and direct maximization of the likelihood."""

import warnings

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
import scipy.stats
from extras import optional
from hypothesis import strategies as st
from in_turn import SEEDS, each_dtype, of_examples, scaled_or_not
from numpy.testing import assert_allclose, assert_array_equal
from oracles import centered, covariance
from scipy.sparse.linalg import aslinearoperator

import spcacore
from spcacore import ppca

load_digits = optional("sklearn.datasets", "load_digits")
load_wine = optional("sklearn.datasets", "load_wine")
PCA = optional("sklearn.decomposition", "PCA")


def samples(seed=0, n=40, p=7, noise=0.5):
    rng = np.random.default_rng(seed)
    signal = rng.standard_normal((n, 3)) @ (rng.standard_normal((3, p)) * [[3], [2], [1]])
    return signal + noise * rng.standard_normal((n, p)) + rng.uniform(-5, 5, p)


def with_holes(X, share=0.2, seed=0):
    X = X.copy()
    X[np.random.default_rng(seed).random(X.shape) < share] = np.nan
    return X


def observed_log_likelihood(X, mean, C):
    """Of each row, by the density of its observed part."""
    out = np.zeros(len(X))
    for i, x in enumerate(X):
        seen = ~np.isnan(x)
        if seen.any():
            out[i] = scipy.stats.multivariate_normal(mean[seen], C[np.ix_(seen, seen)]).logpdf(x[seen])
    return out


# ---- closed form ------------------------------------------------------------------------------------


@each_dtype
@pytest.mark.parametrize(
    "data",
    [lambda: np.insert(samples(1), 1, 3.7, axis=1), lambda: load_wine().data, lambda: load_digits().data],
    ids=["made", "wine", "digits"],
)
def test_scikit_learn(data, dtype):
    """Wine has variances from 1e-2 to 1e5; the others have constant columns, whose loadings are 0 exactly."""
    X = np.asarray(data(), dtype)
    Y = X.astype(np.float64)
    rtol = 1e-10 if dtype == np.float64 else 1e-4
    for r in (1, 3, 5):
        ours, theirs = ppca(X, r), PCA(r, svd_solver="full").fit(Y)
        assert_allclose(ours.noise_variance, theirs.noise_variance_, rtol=rtol)
        assert_allclose(ours.explained_variance, theirs.explained_variance_, rtol=rtol)
        assert_allclose(np.abs(ours.directions.T @ theirs.components_.T), np.eye(r), atol=100 * rtol)
        assert_allclose(ours.score(X), theirs.score(Y), rtol=rtol)
        assert_allclose(ours.log_likelihood, len(X) * theirs.score(Y), rtol=rtol)
        assert_allclose(ours.score_samples(X[:9]), theirs.score_samples(Y[:9]), rtol=100 * rtol)
        assert_allclose(
            ours.covariance(),
            theirs.get_covariance(),
            rtol=100 * rtol,
            atol=rtol * theirs.explained_variance_[0],
        )
        assert ours.loadings.dtype == ours.transform(X).dtype == dtype
        assert not ours.loadings[np.ptp(X, axis=0) == 0].any()


@pytest.mark.parametrize("shape", [(12, 30), (30, 12)])
@scaled_or_not
def test_tipping_and_bishop(shape, scale):
    """Equations 7 and 8 on the explicit p x p covariance, for more variables than samples too."""
    X, r = samples(2, *shape), 3
    n, p = X.shape
    A = covariance(X, scale=scale)
    values, U = (a[..., ::-1] for a in np.linalg.eigh(A))
    noise = values[r:].mean()
    result = ppca(X, r, scale=scale)
    assert result.noise_variance == pytest.approx(noise, rel=1e-12)
    D = np.diag(X.std(axis=0, ddof=1)) if scale else np.eye(p)
    W = U[:, :r] * np.sqrt(values[:r] - noise)
    C = W @ W.T + noise * np.eye(p)
    assert_allclose(result.covariance(), D @ C @ D, atol=1e-10)
    if not scale:
        assert_allclose(ppca(X, r, ddof=0).covariance(), C * (n - 1) / n, atol=1e-10)
    assert_allclose(result.score_samples(X), observed_log_likelihood(X, X.mean(axis=0), D @ C @ D), rtol=1e-9)
    assert result.log_likelihood == pytest.approx(result.score_samples(X).sum(), rel=1e-10)
    free = p * r - r * (r - 1) / 2 + 1 + p
    assert result.bic == pytest.approx(-2 * result.log_likelihood + np.log(n) * free)
    V = result.loadings.astype(float)
    M = V.T @ V + noise * np.eye(r)
    Y = centered(X) @ np.linalg.inv(D)
    assert_allclose(result.transform(X), Y @ V @ np.linalg.inv(M), atol=1e-9)
    assert_allclose(result.posterior_covariance(), noise * np.linalg.inv(M), atol=1e-12)


def test_what_the_storage_does_not_tell():
    X = samples(3, 30, 8)
    for M in (X.T.copy(), np.where(np.abs(X) > 2, X, 0).T):  # more variables than samples
        assert_allclose(ppca(sp.csc_array(M), 3).loadings, ppca(M, 3).loadings, atol=1e-8)
    with pytest.raises(ValueError, match="total variance"):
        ppca(aslinearoperator(X), 2)
    assert ppca(covariance(X), 2, kind="covariance").log_likelihood is None


def test_noise_far_below_the_first_component_in_single_precision(rng):
    """A ten-thousandth of its variance is far above the rounding of float32."""
    X = rng.standard_normal((150, 100)) + 20 * np.outer(rng.standard_normal(150), rng.standard_normal(100))
    A = covariance(X.astype(np.float32))
    expected = np.linalg.eigvalsh(A)[:-2].mean()
    for form, kind in ((X, "data"), (sp.csr_array(X), "data"), (sp.csc_array(X), "data"), (A, "covariance")):
        found = ppca(form.astype(np.float32), 2, kind=kind)
        assert_allclose(found.noise_variance, expected, rtol=1e-4)


def test_little_noise_and_the_rank(rng):
    """Small eigenvalues come from the data themselves; r = p gives S, and r = rank leaves no noise."""
    X = rng.standard_normal((40, 2)) @ rng.standard_normal((2, 6)) + 1e-9 * rng.standard_normal((40, 6))
    assert ppca(X, 2).noise_variance == pytest.approx(
        PCA(2, svd_solver="full").fit(X).noise_variance_, rel=1e-5
    )
    Y = samples(1)
    whole = ppca(Y, 7)
    assert_allclose(whole.covariance(), covariance(Y), atol=1e-12)
    assert whole.noise_variance == 0
    assert whole.n_parameters == 7 * 8 // 2 + 7
    expected = observed_log_likelihood(Y, Y.mean(axis=0), covariance(Y))
    assert_allclose(whole.score_samples(Y), expected, rtol=1e-9)
    assert whole.log_likelihood == pytest.approx(expected.sum())
    holes = with_holes(Y, 0.3)
    assert_allclose(
        whole.score_samples(holes), observed_log_likelihood(holes, Y.mean(axis=0), covariance(Y)), rtol=1e-9
    )
    for Z, rank in ((Y[:5], 4), (np.column_stack([Y, Y[:, 0]]), 7)):
        with pytest.warns(RuntimeWarning, match="unbounded"):
            full = ppca(Z, rank)
        assert full.noise_variance == 0
        assert full.log_likelihood == np.inf
        assert_allclose(full.covariance(), covariance(Z), atol=1e-10)
        with pytest.raises(ValueError, match="singular"):
            full.score(Z)
        with pytest.raises(ValueError, match=f"rank {rank}"):
            ppca(Z, rank + 1)


def test_samples_come_from_the_model():
    model = ppca(samples(5), 3)
    X = model.sample(200_000, rng=1)
    assert_allclose(X.mean(axis=0), model.mean, atol=0.05)
    assert_allclose(np.cov(X.T), model.covariance(), atol=0.15)
    assert_array_equal(model.sample(3, rng=1), model.sample(3, rng=1))
    assert (model.sample(3, rng=1) != model.sample(3, rng=2)).all()
    assert ppca(X, 3).noise_variance == pytest.approx(model.noise_variance, rel=0.02)


# ---- missing entries --------------------------------------------------------------------------------


@of_examples(25, seed=SEEDS, share=st.floats(0.02, 0.4), center=st.booleans())
def test_em_never_lowers_the_likelihood(seed, share, center):
    X = with_holes(samples(seed, 40, 6), share, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        result = ppca(X, 2, center=center, max_iter=60)
    assert (np.diff(result.trace) >= -1e-9 * np.abs(result.trace[:-1])).all()
    assert result.score_samples(X).sum() == pytest.approx(result.log_likelihood, rel=1e-9)
    W = result.loadings
    assert_allclose(W.T @ W, np.diag(result.explained_variance - result.noise_variance), atol=1e-9)
    mean = np.zeros(6) if result.mean is None else result.mean
    assert_allclose(result.score_samples(X), observed_log_likelihood(X, mean, result.covariance()), rtol=1e-7)


@scaled_or_not
def test_divisor_of_missing_entries(scale):
    """ddof=1 is the fit of ddof=0 with W W' and the noise times n/(n - 1)."""
    X = with_holes(samples(3, 12, 5), 0.1, seed=2)
    a, b = (ppca(X, 2, scale=scale, ddof=ddof, tol=1e-13, max_iter=9000) for ddof in (0, 1))
    assert a.method == b.method == "em"
    assert b.noise_variance == pytest.approx(a.noise_variance * 12 / 11, rel=1e-12)
    assert_allclose(b.covariance(), a.covariance() * 12 / 11, rtol=1e-10)
    assert_allclose(b.explained_variance, a.explained_variance * 12 / 11, rtol=1e-12)
    assert_array_equal(a.mean, b.mean)


def test_a_row_without_observed_entries_is_no_sample():
    X = with_holes(samples(3, 12, 5), 0.1, seed=2)
    a, b = (ppca(Y, 2, tol=1e-13, max_iter=9000) for Y in (X, np.vstack([X, np.full((8, 5), np.nan)])))
    assert b.scores.shape == (20, 2)
    assert b.n_samples == a.n_samples == 12
    for name in ("noise_variance", "explained_variance", "log_likelihood", "bic"):
        assert_allclose(getattr(b, name), getattr(a, name), rtol=1e-5)


def test_conditional_expectations():
    """Posterior means, covariances and filled entries by the conditional normal distribution."""
    X = samples(7, 30, 6)
    model, holes = ppca(X, 2), with_holes(X, 0.3)
    C, W, p = model.covariance(), model.loadings, 6
    filled, Z, S = model.impute(holes), model.transform(holes), model.posterior_covariance(holes)
    for i, x in enumerate(holes):
        o = ~np.isnan(x)
        gain = np.linalg.solve(C[np.ix_(o, o)], x[o] - model.mean[o])
        assert_allclose(filled[i], np.where(o, x, model.mean + C[:, o] @ gain), atol=1e-10)
        assert_allclose(Z[i], W[o].T @ gain, atol=1e-10)
        expected = np.eye(2) - W[o].T @ np.linalg.solve(C[np.ix_(o, o)], W[o])
        assert_allclose(S[i], expected, atol=1e-10)
    assert_array_equal(filled[~np.isnan(holes)], holes[~np.isnan(holes)])
    whole = ppca(X, p)  # no noise: the limit
    o = ~np.isnan(holes[0])
    gain = np.linalg.solve(covariance(X)[np.ix_(o, o)], holes[0][o] - X.mean(axis=0)[o])
    assert_allclose(
        whole.impute(holes[:1])[0, ~o], (X.mean(axis=0) + covariance(X)[:, o] @ gain)[~o], atol=1e-8
    )
    spread, U = whole.posterior_covariance(holes), whole.loadings
    assert whole.noise_variance == 0
    for i, x in enumerate(holes):  # what the observed entries do not tell of z
        o = ~np.isnan(x)
        expected = np.eye(p) - U[o].T @ np.linalg.solve(U[o] @ U[o].T, U[o])
        assert_allclose(spread[i], expected, atol=1e-8)
        assert np.trace(spread[i]) == pytest.approx(p - np.count_nonzero(o), abs=1e-7)


@pytest.mark.parametrize("scale", [1e-140, 1.0, 1e140])
def test_missing_entries_at_any_scale(scale):
    X = with_holes(samples(8), 0.1)
    a, b = ppca(X, 2), ppca(X * scale, 2)
    assert_allclose(b.loadings, a.loadings * scale, rtol=1e-6, atol=1e-9 * scale)
    assert_allclose(b.noise_variance, a.noise_variance * scale**2, rtol=1e-6)
    count = np.count_nonzero(~np.isnan(X))
    assert b.log_likelihood == pytest.approx(a.log_likelihood - count * np.log(scale), rel=1e-9)
    single = ppca(X.astype(np.float32), 2)
    assert (
        single.loadings.dtype == single.mean.dtype == single.impute(X.astype(np.float32)).dtype == np.float32
    )
    assert_allclose(single.loadings, a.loadings, atol=1e-3)


def test_few_components_of_a_large_matrix(rng):
    """By Lanczos on the matrix of products, to the digits of LAPACK."""
    X = rng.standard_normal((560, 520)) * np.linspace(1, 3, 520)
    values = np.linalg.eigvalsh(np.cov(X.T))[::-1]
    result = spcacore.ppca(X, 4)
    assert_allclose(result.explained_variance, values[:4], rtol=1e-12)
    assert result.noise_variance == pytest.approx(values[4:].mean(), rel=1e-12)
