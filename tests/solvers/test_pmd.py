"""pmd against PMA, convex solvers, grids of the sphere and the alternation written out."""

import warnings

import flat
import numpy as np
import pytest
import scipy.sparse
from hypothesis import strategies as st
from in_turn import SEEDS, each_kind, each_order, of_examples, scaled_or_not
from numpy.testing import assert_allclose, assert_array_equal
from oracles import centered, normal, reference, spiked

import spcacore

TIGHT = {"tol": 0, "max_iter": 100000}


def up_to_sign(x, y):
    return min(np.abs(x - y).max(), np.abs(x + y).max())


def feasible(x, c):
    assert np.linalg.norm(x) == pytest.approx(1, abs=1e-12)
    assert np.abs(x).sum() <= c * (1 + 1e-12)


# ---- PMA --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bound", [1.3, 1.8, 2.4])
@pytest.mark.parametrize("orth", [False, True])
def test_pma_spc_on_pit_props(bound, orth):
    """Each component from PMA's start, a singular vector of X, given PMA's earlier ones."""
    X = reference("pitprops_rootmatrix")
    name = f"pitprops_root_PMA_SPC_{'orth_' if orth else ''}sumabsv{bound}"
    V = reference(name + ("_v" if orth else "_K6_niter200_v"))
    start = np.linalg.svd(X)[2]
    residual = X
    for t in range(6):
        x = flat.pmd(residual, bound, center=False, start=start[t], **TIGHT)
        assert up_to_sign(x.loading, V[:, t]) < 1e-5
        assert np.abs(x.loading).sum() == pytest.approx(bound, abs=1e-12)
        assert up_to_sign(x.sample_loading, residual @ V[:, t] / x.strength) < 1e-5
        if orth:
            u = reference(name + "_u")[:, t]
            assert up_to_sign(x.sample_loading, u) < 1e-5
            residual = residual - np.outer(u, u @ residual)
        else:
            strength, pve = reference(name + "_d_pve")[t]
            assert x.strength == pytest.approx(strength, rel=1e-5)
            projected = X @ V[:, : t + 1] @ np.linalg.pinv(V[:, : t + 1])
            assert (projected**2).sum() / (X**2).sum() == pytest.approx(pve, abs=1e-9)
            residual = residual - np.outer(residual @ V[:, t], V[:, t])
        assert flat.pmd(residual, bound, center=False).converged


def test_pma_nonnegative():
    X = reference("small40x12_X")
    V = reference("small_PMA_SPC_vpos_sumabsv2_v")
    Z = residual = centered(X)
    for t in range(V.shape[1]):
        x = flat.pmd(residual, 2, nonnegative=True, start=np.linalg.svd(Z)[2][t], **TIGHT)
        y = flat.pmd(residual, 2, nonnegative=True, start=-np.linalg.svd(Z)[2][t], **TIGHT)
        assert min(np.abs(z.loading - V[:, t]).max() for z in (x, y)) < 1e-6
        residual = residual - np.outer(residual @ V[:, t], V[:, t])


def test_pma_two_way():
    X = reference("small40x12_X")
    V, U = (reference(f"small_PMA_PMD_u3_v2_{which}") for which in "vu")
    strengths = reference("small_PMA_PMD_u3_v2_d").ravel()
    residual = centered(X)
    start = np.linalg.svd(residual)[2]
    for t in range(3):
        x = flat.pmd(residual, 2, sample_l1_bound=3, center=False, start=start[t], **TIGHT)
        assert up_to_sign(x.loading, V[:, t]) < 1e-5
        assert up_to_sign(x.sample_loading, U[:, t]) < 1e-5
        assert x.strength == pytest.approx(strengths[t], rel=1e-7)
        residual = residual - strengths[t] * np.outer(U[:, t], V[:, t])


def test_pma_with_missing_entries():
    """PMA imputes the mean of what is observed: the same where that has been removed."""
    X = reference("small40x12_X_10pctNA")
    V = reference("small_PMA_SPC_NA_sumabsv2_v")
    strength = reference("small_PMA_SPC_NA_d_pve")[0, 0]
    x = flat.pmd(X - np.nanmean(X), 2, center=False, start="eigenvector", **TIGHT)
    assert up_to_sign(x.loading, V[:, 0]) < 1e-7
    assert x.strength == pytest.approx(strength, rel=1e-9)


# ---- optimality -------------------------------------------------------------------------------------


def test_ends_of_the_range():
    X = normal(0, 30, 12) * np.geomspace(3, 1, 12)
    s, V = np.linalg.svd(centered(X))[1:]
    of_one = flat.pmd(X, 2, sample_l1_bound=1, **TIGHT)
    (i,) = np.flatnonzero(of_one.sample_loading)
    assert_allclose(np.abs(of_one.loading), np.abs(spcacore.l1_threshold(centered(X)[i], 2)[0]), atol=1e-9)
    x = flat.pmd(X, 12**0.5, **TIGHT)
    assert up_to_sign(x.loading, V[0]) < 1e-6
    assert x.strength == pytest.approx(s[0])
    one = flat.pmd(X, 1)
    assert_array_equal(one.loading, np.eye(12)[np.argmax(X.var(axis=0))])
    assert one.value == pytest.approx(X.var(axis=0, ddof=1).max())
    negative = scipy.sparse.linalg.aslinearoperator(-np.ones((2, 2)))  # v'Av = -(v_1 + v_2)^2
    zero = spcacore.pmd(negative, 1.2, kind="covariance")
    assert zero.strength == 0
    assert zero.value == pytest.approx(0, abs=1e-15)


@pytest.mark.share(3)
@pytest.mark.parametrize("bound", [1.5, 4.0, 20.0])
@each_order
def test_iterates_of_noise(bound, order):
    """Many entries near the level; each step asks only for those above a guess of it."""
    X = np.asarray(normal(0, 60, 3000), order=order)
    Z = centered(X)
    v = np.zeros(3000)
    v[:5] = 1
    for n_iter in range(1, 12):
        v = spcacore.l1_threshold(Z.T @ (Z @ v), bound)[0]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            x = flat.pmd(
                X, bound, start=np.eye(3000)[:5].sum(axis=0), max_iter=n_iter, tol=0, screening="both"
            )
        assert_allclose(x.loading, v, atol=1e-9)


@each_kind
def test_one_large_entry_and_many_near_the_level(kind):
    """A = ss': v is the soft threshold of s, though neither the largest entries nor the last level say so."""
    s = np.random.default_rng(0).uniform(0.9, 1.1, 1000)
    s[7] = 10
    expected, level = spcacore.l1_threshold(s, 2)
    assert 0.9 < level < 1.1
    assert np.count_nonzero(expected) > 16 * 4
    X = np.outer(s, s) if kind == "covariance" else s[None]
    for start in (s, np.eye(1000)[0], 1 / s):
        for n_iter in (1, 2, 3):  # of each step, since a later one makes good what one has missed
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)
                x = flat.pmd(X, 2, kind=kind, center=False, start=start, tol=0, max_iter=n_iter)
            assert_allclose(x.loading, expected, atol=1e-12)


@of_examples(40, seed=SEEDS, n=st.integers(2, 20), p=st.integers(2, 20))
def test_two_way_ascent(seed, n, p):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    c, d = rng.uniform(1, p**0.5), rng.uniform(1, n**0.5)
    strengths = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        for n_iter in range(8):
            x = flat.pmd(X, c, center=False, sample_l1_bound=d, start=np.ones(p), max_iter=n_iter)
            feasible(x.loading, c)
            feasible(x.sample_loading, d)
            assert x.strength == pytest.approx(x.sample_loading @ X @ x.loading, rel=1e-12)
            assert x.value == pytest.approx(((X @ x.loading) ** 2).sum() / max(n - 1, 1))
            strengths.append(x.strength)
    assert (np.diff(strengths[1:]) >= -1e-12 * strengths[-1]).all()  # the first is the start, bounded


# ---- input ------------------------------------------------------------------------------------------


@scaled_or_not
def test_left_side_and_strength_belong_to_the_loading(scale):
    X = spiked()
    Y = centered(X)
    Y = Y / Y.std(axis=0, ddof=1) if scale else Y
    x = flat.pmd(X, 2, scale=scale, tol=1e-13)
    assert_allclose(x.strength * x.sample_loading, Y @ x.loading, atol=1e-12)
    two = flat.pmd(X, 2, scale=scale, sample_l1_bound=4)
    assert two.strength == pytest.approx(two.sample_loading @ Y @ two.loading, rel=1e-12)
    csr = flat.pmd(scipy.sparse.csr_array(X), 2, scale=scale, sample_l1_bound=4)
    assert_allclose(csr.sample_loading, two.sample_loading, atol=1e-6)
    of_matrix = flat.pmd(Y.T @ Y / 49, 2, kind="covariance", tol=1e-13)
    assert x.strength == pytest.approx((49 * of_matrix.value) ** 0.5, rel=1e-9)
    assert of_matrix.strength == pytest.approx(of_matrix.value**0.5, rel=1e-9)
    assert of_matrix.sample_loading is None


# ---- several components -----------------------------------------------------------------------------


def test_two_way_residual():
    """deflation="naive" leaves X - d u v', step by step; the diagonal serves the starts."""
    X = spiked()
    options = {"sample_l1_bound": 4.0, "tol": 1e-13}
    result = flat.sparse_pca(X, 4, l1_bound=2, method="pmd", deflation="naive", renormalize=False, **options)
    residual = centered(X)
    for t in range(4):
        x = flat.pmd(residual, 2, center=False, **options)
        assert up_to_sign(x.loading, result.loadings[:, t]) < 1e-5
        residual = residual - x.strength * np.outer(x.sample_loading, x.loading)
    other = flat.sparse_pca(X, 4, l1_bound=2, method="pmd", renormalize=False, **options)
    assert np.abs(other.loadings - result.loadings).max() > 1e-3


# ---- missing entries --------------------------------------------------------------------------------


def holes():
    X = normal(0, 30, 15) * np.geomspace(4, 1, 15) + 3
    X[:, :3] += 5 * normal(1, 30, 1)
    X[np.random.default_rng(2).random(X.shape) < 0.15] = np.nan
    return X


@pytest.mark.share(12)
@each_order
@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("scale", [True, False])
def test_missing_entries_are_left_out(order, center, scale):
    """The alternation over observed entries, written out, for three components of the residual."""
    X = np.asarray(holes(), order=order)
    seen = ~np.isnan(X)
    mean = np.nanmean(X, axis=0) if center else np.zeros(15)
    Z = np.where(seen, X - mean, 0)
    deviation = np.sqrt((Z**2).sum(axis=0) / (seen.sum(axis=0) - 1)) if scale else np.ones(15)
    Z = Z / deviation
    before = X.copy()
    result = flat.sparse_pca(
        X,
        3,
        l1_bound=2,
        method="pmd",
        deflation="naive",
        center=center,
        scale=scale,
        renormalize=False,
        start="eigenvector",
        **TIGHT,
    )
    assert_array_equal(X, before)
    assert result.total_variance == pytest.approx((Z**2).sum() / 29)
    if center:
        assert_allclose(result.mean, mean, rtol=1e-12)
    if scale:
        assert_allclose(result.scale, deviation, rtol=1e-12)
    Q = np.linalg.qr(result.loadings)[0]
    assert_allclose(
        result.explained_variance.sum(), ((Z @ Q) ** 2).sum() / 29, rtol=1e-10
    )  # of the data, not of what the residuals have left of them
    for t in range(3):
        v = np.linalg.svd(Z)[2][0]
        for _ in range(5000):
            u = Z @ v
            v = spcacore.l1_threshold(Z.T @ (u / np.linalg.norm(u)), 2.0)[0]
        assert up_to_sign(result.loadings[:, t], v) < 1e-5
        Z = np.where(seen, Z - np.outer(Z @ v, v), 0)


def test_missing_entries_in_one_component():
    X = holes()
    Z = np.nan_to_num(X - np.nanmean(X, axis=0))
    x, y = (
        flat.pmd(X, 2),
        flat.pmd(Z, 2, center=False),
    )
    assert_allclose(x.loading, y.loading, atol=1e-9)
    assert_allclose(x.sample_loading, y.sample_loading, atol=1e-9)
    assert x.strength == pytest.approx(y.strength, rel=1e-12)
    X[4] = np.nan  # a whole row is fine
    assert flat.pmd(X, 2).sample_loading[4] == 0
    X[:, 2] = np.where(np.isnan(X[:, 2]), np.nan, 7.1)  # constant where observed
    assert flat.pmd(X, 2).loading[2] == 0
    assert flat.pmd(X, 2, scale=True).loading[2] == 0
