"""Sparse discriminants against scikit-learn, enumeration, and data whose classes are known."""

import numpy as np
import pytest
import scipy.sparse as sp
from extras import drawn, example, optional
from numpy.testing import assert_allclose
from oracles import centered, normal
from scipy.linalg import eigh

from spcacore import row_blocks, sparse_lda

ledoit_wolf_shrinkage = optional("sklearn.covariance", "ledoit_wolf_shrinkage")
load_digits = optional("sklearn.datasets", "load_digits")
load_wine = optional("sklearn.datasets", "load_wine")
LinearDiscriminantAnalysis = optional("sklearn.discriminant_analysis", "LinearDiscriminantAnalysis")
StratifiedKFold = optional("sklearn.model_selection", "StratifiedKFold")


def wine(scale=True):
    X, y = load_wine(return_X_y=True)
    return (centered(X) / X.std(axis=0) if scale else X), y


def scatters(X, y):
    """Formed by the definition."""
    labels = np.unique(y)
    priors = [np.mean(y == c) for c in labels]
    means = np.array([X[y == c].mean(axis=0) for c in labels])
    mean = priors @ means
    between = sum(w * np.outer(m - mean, m - mean) for w, m in zip(priors, means, strict=True))
    return between, sum(w * np.cov(X[y == c].T, bias=True) for w, c in zip(priors, labels, strict=True))


@pytest.mark.parametrize("name", ["wine", "digits", "two"])
def test_all_variables_are_lda(name):
    X, y = load_digits(return_X_y=True) if name == "digits" else wine(scale=False)
    if name == "digits":
        X = X[:, X.std(axis=0) > 0.5]
        X = X[:, np.array([all(X[y == c, j].std() > 0 for c in range(10)) for j in range(X.shape[1])])]
    if name == "two":
        X, y = X[y < 2], y[y < 2]
    ours = sparse_lda(X, y, cardinality=X.shape[1], shrinkage=None)
    theirs = LinearDiscriminantAnalysis(solver="eigen").fit(X, y)
    r = len(np.unique(y)) - 1
    Z, T = ours.transform(X), theirs.transform(X)[:, :r]
    for j in range(r):
        assert abs(np.corrcoef(Z[:, j], T[:, j])[0, 1]) > 1 - 1e-8
    assert np.array_equal(ours.predict(X), theirs.predict(X))
    assert ours.score(X, y) == theirs.score(X, y)
    assert_allclose(ours.values / ours.values.sum(), theirs.explained_variance_ratio_[:r], rtol=1e-6)
    assert_allclose(ours.metric, np.eye(r), atol=1e-6)


@pytest.mark.parametrize("deflation", ["generalized", "projection", "schur"])
def test_rows_on_a_line_have_one_direction(deflation):
    """Between three classes there may be two, but nothing is left of the first."""
    t, y = normal(0, 6), np.array([1, 0, 1, 2, 0, 2])
    X = np.outer(t, normal(50, 4))
    with pytest.warns(RuntimeWarning, match="found only 1 of 2 directions"):
        values = sparse_lda(X, y, 2, 2, shrinkage=None, deflation=deflation).values
    between, within = scatters(t[:, None], y)
    assert_allclose(values, [between[0, 0] / within], rtol=1e-9)


def test_priors_may_be_rounded():
    """To five digits, as printed; they are then made to sum to one."""
    X, y = wine()
    result = sparse_lda(X, y, cardinality=3, priors=[0.33333, 0.33333, 0.33333 + 5e-6])
    assert result.priors.sum() == pytest.approx(1, abs=1e-15)
    assert result.priors[0] == pytest.approx(0.33333 / 0.999995, rel=1e-12)
    for off in (2e-5, -2e-5):
        with pytest.raises(ValueError, match="priors must be positive with sum 1"):
            sparse_lda(X, y, cardinality=3, priors=[0.2, 0.5, 0.3 + off])


class TowardDiagonal:
    """An estimator of covariances for scikit-learn, which it averages over the classes."""

    def __init__(self, amount):
        self.amount = amount

    def fit(self, X):
        S = np.cov(X.T, bias=True)
        self.covariance_ = (1 - self.amount) * S + self.amount * np.diag(np.diag(S))


@pytest.mark.parametrize("priors", [None, [0.2, 0.5, 0.3]])
@pytest.mark.parametrize("shrinkage", [None, 0.3, 1.0])
def test_priors_and_shrinkage(priors, shrinkage):
    X, y = wine(scale=False)
    ours = sparse_lda(X, y, cardinality=13, priors=priors, shrinkage=shrinkage)
    theirs = LinearDiscriminantAnalysis(
        solver="lsqr", priors=priors, covariance_estimator=TowardDiagonal(shrinkage or 0.0)
    ).fit(X, y)
    a, b = ours.decision_function(X), theirs.decision_function(X)
    centre = [M - M.mean(axis=1, keepdims=True) for M in (a, b)]
    assert_allclose(centre[0], centre[1], atol=1e-6)
    assert np.array_equal(ours.predict(X), theirs.predict(X))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, lambda X: row_blocks(X, block_bytes=4000)])
def test_ledoit_wolf(form):
    X, y = wine(scale=False)
    for part in (slice(None), slice(0, 178, 20)):  # more rows than columns, and fewer
        rows, labels = X[part], y[part]
        Z = np.vstack([rows[labels == c] - rows[labels == c].mean(axis=0) for c in np.unique(labels)])
        ours = sparse_lda(form(rows) if part == slice(None) else rows, labels, cardinality=2).shrinkage
        theirs = ledoit_wolf_shrinkage(Z / Z.std(axis=0), assume_centered=True)
        assert_allclose(ours, theirs, rtol=1e-10)


@pytest.mark.parametrize("p", [13, 1100])  # formed, and as rows
def test_units_of_the_variables_do_not_matter(p):
    """By default; and a variable that is constant within the classes, but apart between them, is enough."""
    X, y = wine()
    X = np.hstack([X, normal(0, len(X), p - 13)])
    units = 10.0 ** np.random.default_rng(1).integers(-3, 4, p)
    for form in (np.asarray, sp.csr_array):
        once, again = (sparse_lda(form(Z), y, 1, cardinality=3) for Z in (X, X * units))
        assert 0 < once.shrinkage < 1
        assert again.shrinkage == pytest.approx(once.shrinkage, rel=1e-9)
        assert_allclose(again.scalings[:, 0] * units, once.scalings[:, 0], atol=1e-8)
        constant = X.copy()
        constant[:, 4] = y
        found = sparse_lda(form(constant), y, 1, cardinality=1)
        assert found.loadings[4, 0] == 1
        between, within = (np.diag(S)[np.arange(p) != 4] for S in scatters(X, y))
        assert found.values[0] == pytest.approx(max(between / within) / found.shrinkage)


@pytest.mark.slow
def test_what_the_example_says():
    module = example("discriminants")
    result = module.analyze(*module.data(), counts=(1, 6, 64))
    assert round(100 * result.accuracy) == 96
    named = [{result.names[j] for j in np.flatnonzero(x)} for x in result.model.loadings.T]
    od280 = "od280/od315_of_diluted_wines"
    assert named == [{"flavanoids", od280, "proline"}, {"flavanoids", "color_intensity", "hue"}]
    assert round(100 * sparse_lda(*wine(), cardinality=13).score(*wine())) == 99
    assert (100 * result.shares).round().tolist() == [84, 92, 95]
    assert len(drawn(module, result).axes) == 2


@pytest.mark.share(3)
@pytest.mark.parametrize("p", [9, 1100])
@pytest.mark.parametrize("layout", ["csr", "csc"])
def test_means_of_sparse_data_cost_no_digits(p, layout):
    """Against plain LAPACK on the data less their means; constant columns never count."""
    rng = np.random.default_rng(1)
    X, y = rng.integers(-9, 9, (60, p)).astype(float), np.arange(60) % 3
    X[y == 1, :2] += 9
    X[:, 5:] *= rng.random((60, p - 5)) < 0.3
    far = X.copy()
    far[:, :4] += 1e7
    far[:, 4] = 0.1
    between, within = scatters(X, y)
    result = sparse_lda(sp.csr_array(far).asformat(layout), y, 1, cardinality=3, shrinkage=None)
    S = np.flatnonzero(result.loadings)
    assert 4 not in S
    best = eigh(between[np.ix_(S, S)], within[np.ix_(S, S)], eigvals_only=True)[-1]
    assert_allclose(result.values, best, rtol=1e-7)
    dense = sparse_lda(far, y, 1, cardinality=3, shrinkage=None)
    assert_allclose(result.loadings, dense.loadings, atol=1e-6)
    halves = sp.csr_array(
        (np.repeat(far.ravel() / 2, 2), np.repeat(np.tile(np.arange(p), 60), 2), np.arange(61) * 2 * p)
    )
    again = sparse_lda(halves, y, 1, cardinality=3, shrinkage=None)
    assert_allclose(again.loadings, dense.loadings, atol=1e-6)
    blocks = row_blocks(sp.csr_array(X).asformat(layout), block_bytes=X.nbytes // 9)  # whose means are others
    apart, whole = (sparse_lda(M, y, 1, cardinality=3, shrinkage="auto") for M in (blocks, X))
    assert_allclose(apart.shrinkage, whole.shrinkage, rtol=1e-9)
    assert_allclose(apart.loadings, whole.loadings, atol=1e-9)


@pytest.mark.parametrize(("dtype", "size"), [(np.float64, 1e-310), (np.float32, 1e-40)])
def test_scalings_beyond_the_number_range_are_refused(dtype, size):
    X = (size * np.random.default_rng(1).normal(size=(12, 5))).astype(dtype)
    with pytest.raises(ValueError, match=f"number range of {np.dtype(dtype)}; rescale X"):
        sparse_lda(X, np.arange(12) % 2, cardinality=2)
