"""prs, sca and sma against the authors' package, and what they promise."""

import warnings

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import covariance, shared, spanned_variance

import spcacore
from spcacore import prs, sca, sma

PITPROPS = spcacore.datasets.load_pitprops().correlation


def reference(name):
    return np.loadtxt(shared("reference") / f"{name}.csv", delimiter=",")


def samples(seed, n=30, p=12):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, p)) @ rng.standard_normal((p, p))


# ---- the authors' package, epca ---------------------------------------------------------------------


@pytest.mark.parametrize(("bound", "atol"), [(6, 2e-4), (9, 5e-4)])
def test_pit_props_root_matrix(bound, atol):
    """Both stop at 1e-5, after a few iterations more or less."""
    X, theirs = (
        reference("pitprops_rootmatrix"),
        reference(f"pitprops_root_epca_sca_k6_gamma{bound}_loadings"),
    )
    n_iter, *pve = reference(f"pitprops_root_epca_sca_k6_gamma{bound}_niter_cpve")
    ours = sca(X, 6, l1_bound=bound, center=False)
    np.testing.assert_allclose(ours.loadings, theirs, atol=atol)
    np.testing.assert_allclose(ours.pve, pve, atol=atol)
    assert abs(ours.n_iter - n_iter) < 0.1 * n_iter
    assert ours.converged


def test_small_matrix():
    X, theirs = reference("small40x12_X"), reference("small_epca_sca_k3_soft_gamma5_loadings")
    ours = sca(X, 3, l1_bound=5)
    np.testing.assert_allclose(ours.loadings, theirs, atol=2e-4)
    np.testing.assert_allclose(ours.pve, reference("small_epca_sca_k3_soft_gamma5_niter_cpve")[1:], atol=1e-5)
    np.testing.assert_allclose(ours.scores, (X - X.mean(axis=0)) @ ours.loadings, atol=1e-12)


def test_the_correlation_matrix_taken_as_data():
    ours = sca(PITPROPS, 6, l1_bound=6)
    np.testing.assert_allclose(
        ours.pve, [0.26487988, 0.39553800, 0.53817461, 0.66282761, 0.76841113, 0.83980453], atol=4e-5
    )
    assert np.count_nonzero(ours.loadings, axis=0).tolist() == [6, 2, 4, 4, 3, 2]
    assert abs(ours.n_iter - 13) <= 1


def test_sma_small_matrix():
    X = reference("small40x12_X")
    y, z, b = (reference(f"small_epca_sma_k3_gamma10_5_{name}") for name in "yzb")
    ours = sma(X, 3, sample_l1_bound=10, l1_bound=5, tol=1e-8)
    for mine, theirs in ((ours.loadings, y), (ours.scores, z)):
        cosine = np.abs(mine.T @ theirs) / np.outer(*(np.linalg.norm(M, axis=0) for M in (mine, theirs)))
        np.testing.assert_allclose(np.sort(cosine.max(axis=0)), 1, atol=1e-4)
    assert np.linalg.norm(ours.middle) == pytest.approx(np.linalg.norm(b), rel=1e-4)
    np.testing.assert_allclose(ours.middle, ours.scores.T @ X @ ours.loadings, atol=1e-8)


# ---- promises ---------------------------------------------------------------------------------------


@given(seed=st.integers(0, 2**32), share=st.floats(0.0, 1.0))
@settings(max_examples=40, deadline=None, derandomize=True)
def test_prs_is_polar_rotate_shrink(seed, share):
    rng = np.random.default_rng(seed)
    p, r = int(rng.integers(3, 12)), int(rng.integers(1, 4))
    M = rng.standard_normal((p, r))
    bound = r + share * (r * np.sqrt(p) - r)
    Y = prs(M, bound)
    U, _, Vt = np.linalg.svd(M, full_matrices=False)
    rotated = spcacore.varimax(U @ Vt)[0] if r > 1 else U @ Vt
    total = np.abs(rotated).sum()
    assert np.abs(Y).sum() == pytest.approx(min(bound, total), rel=1e-12)
    kept = Y != 0
    if total > bound:  # one level everywhere: the projection on the l1 ball
        level = (np.abs(rotated) - np.abs(Y))[kept]
        np.testing.assert_allclose(level, level[0], atol=1e-12)
        assert (np.abs(rotated)[~kept] <= level[0] + 1e-12).all()
        assert (np.sign(Y)[kept] == np.sign(rotated)[kept]).all()
    hard = prs(M, bound, threshold="hard")
    assert np.abs(hard).sum() <= bound * (1 + 1e-12)
    np.testing.assert_array_equal(hard[hard != 0], rotated[hard != 0])


@given(seed=st.integers(0, 2**32))
@settings(max_examples=15, deadline=None, derandomize=True)
def test_data_sparse_data_and_covariance_agree(seed):
    X = samples(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        dense = sca(X, 3, l1_bound=6, max_iter=50)
        for M, kind in ((scipy.sparse.csr_array(X), "data"), (covariance(X), "covariance")):
            other = sca(M, 3, l1_bound=6, kind=kind, max_iter=50)
            np.testing.assert_allclose(other.loadings, dense.loadings, atol=1e-6)
    assert np.abs(dense.loadings).sum() <= 6 * (1 + 1e-12)
    assert ((dense.loadings**3).sum(axis=0) >= 0).all()
    V = dense.loadings / np.linalg.norm(dense.loadings, axis=0)
    A = covariance(X)
    assert dense.pve[-1] == pytest.approx(spanned_variance(A, V) / np.trace(A), rel=1e-9)
    assert dense.pve[-1] <= np.linalg.eigvalsh(A)[-3:].sum() / np.trace(A) * (1 + 1e-12)


def test_a_loose_bound_gives_the_principal_subspace():
    X = samples(3)
    A = covariance(X)
    result = sca(X, 3, l1_bound=3 * np.sqrt(12))
    assert result.pve[-1] == pytest.approx(np.linalg.eigvalsh(A)[-3:].sum() / np.trace(A), rel=1e-9)
    single = sca(X.astype(np.float32), 3, l1_bound=6)
    assert single.loadings.dtype == single.scores.dtype == np.float32
    np.testing.assert_allclose(single.loadings, sca(X, 3, l1_bound=6).loadings, atol=5e-3)


def test_planted_blocks_and_wide_sparse_data():
    """Many variables by Lanczos; communities of a graph on both sides, never made dense."""
    rng = np.random.default_rng(0)
    n, p, r = 300, 800, 4
    rate = 0.01 + 0.2 * (np.arange(n)[:, None] * r // n == np.arange(p)[None] * r // p)
    X = scipy.sparse.csr_array((rng.random((n, p)) < rate).astype(float))
    for result in (sma(X, r), sca(X, r, l1_bound=40, center=False)):
        block = np.argmax(np.abs(result.loadings), axis=1)
        found = [np.bincount(block[part], minlength=r).max() for part in np.split(np.arange(p), r)]
        assert sum(found) > 0.97 * p
        assert len({int(np.bincount(block[part]).argmax()) for part in np.split(np.arange(p), r)}) == r


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"n_components": 0}, ValueError, "n_components"),
        ({"n_components": 13}, ValueError, "n_components"),
        ({"l1_bound": 1.9}, ValueError, r"l1_bound must be in \[2, 6.9"),
        ({"l1_bound": 7.0}, ValueError, "l1_bound"),
        ({"l1_bound": "3"}, TypeError, "l1_bound"),
        ({"rotation": "promax"}, ValueError, "rotation"),
        ({"threshold": "firm"}, ValueError, "threshold"),
        ({"max_iter": 0}, ValueError, "max_iter"),
        ({"tol": -1.0}, ValueError, "tol"),
        ({"center": 1}, TypeError, "center"),
        ({"callback": 1}, TypeError, "callback"),
    ],
)
def test_bad_input(options, error, match):
    X = samples(1)
    before = X.copy()
    for function in (sca, sma):
        with pytest.raises(error, match=match):
            function(X, **{"n_components": 2, **options})
    np.testing.assert_array_equal(X, before)
    with pytest.raises(ValueError, match="NaN"):
        sca(np.full((4, 4), np.nan), 2)
    with pytest.raises(ValueError, match="at least as many rows"):
        prs(np.ones((2, 3)), 2.0)
    with pytest.raises(ValueError, match="l1_bound"):
        prs(np.ones((3, 2)), 0.0)


def test_not_converged_and_callback():
    X = samples(2)
    with pytest.warns(RuntimeWarning, match="not converged in 1 iterations"):
        assert not sca(X, 3, l1_bound=6, max_iter=1, tol=0).converged

    def enough(progress):
        raise StopIteration

    with pytest.warns(RuntimeWarning, match="not converged in 1 iterations"):
        assert sca(X, 3, l1_bound=6, callback=enough).n_iter == 1


@pytest.mark.parametrize("function", [sca, sma])
def test_rank_and_scale(function):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 2)) @ rng.standard_normal((2, 10))
    with pytest.warns(RuntimeWarning, match="only 2 of the 4 components"):
        two = function(X, 4, l1_bound=5)
    assert two.loadings.shape == (10, 2)
    assert two.pve[-1] <= 1 + 1e-12
    with pytest.raises(ValueError, match="no variance"):
        function(np.zeros((5, 4)), 2)
    Y = samples(4)
    for scale in (1e-150, 1e150):
        a, b = function(Y, 2, l1_bound=4), function(Y * scale, 2, l1_bound=4)
        np.testing.assert_allclose(a.loadings, b.loadings, atol=1e-6)
        np.testing.assert_allclose(a.pve, b.pve, atol=1e-6)
        if function is sma:
            np.testing.assert_allclose(b.middle, a.middle * scale, rtol=1e-5, atol=1e-6 * scale)
