"""scotlass against a convex solver, pmd, LAPACK and grids of the sphere."""

import warnings

import flat
import numpy as np
import pytest
from numpy.testing import assert_allclose

import spcacore
from spcacore import sparse_pca

CORRELATION = spcacore.datasets.load_pitprops().correlation


def independent(rng, p, t):
    E = rng.standard_normal((p, t)) * (rng.random((p, t)) < 0.5)
    E[rng.permutation(p)[:t], np.arange(t)] += 1
    return E


def step(a, E, c):
    """argmax a'w over ||w|| <= 1, ||w||_1 <= c, E'w = 0: no iteration, the start alone; None if refused."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            return flat.scotlass(
                np.eye(len(a), dtype=a.dtype), c, earlier=E, kind="covariance", start=a, max_iter=0, tol=0
            ).loading
    except ValueError:
        return None


def test_one_step_is_the_convex_optimum():
    cp = pytest.importorskip("cvxpy")
    solved = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        p = int(rng.integers(4, 12))
        t = int(rng.integers(1, p - 1))
        a, E, c = rng.standard_normal(p), independent(rng, p, t), rng.uniform(1.1, p**0.5)
        w = cp.Variable(p)
        best = cp.Problem(cp.Maximize(a @ w), [cp.norm(w) <= 1, cp.norm1(w) <= c, E.T @ w == 0]).solve()
        x = step(a, E, c)
        if np.linalg.norm(w.value) < 1 - 1e-3:
            assert x is None  # the maximum is not attained on the sphere
        elif np.linalg.norm(w.value) > 1 - 1e-7:
            solved += 1
            sign = 1 if a @ x > 0 else -1
            assert sign * (a @ x) == pytest.approx(best, rel=1e-6)
            assert_allclose(sign * x, w.value, atol=1e-3)
            assert np.abs(E.T @ x).max() < 1e-10
            assert np.abs(x).sum() <= c * (1 + 1e-12)
            assert np.linalg.norm(x) == pytest.approx(1, abs=1e-12)
    assert solved >= 20


@pytest.mark.share(3)
@pytest.mark.parametrize("bound", [1.05, 1.2, 1.5, 1.8, 2.2, 2.8, 13**0.5])
@pytest.mark.parametrize("renormalize", [True, False])
def test_pit_props(bound, renormalize):
    result = sparse_pca(
        CORRELATION, 6, kind="covariance", method=spcacore.SCoTLASS(l1_bound=bound, renormalize=renormalize)
    )
    V = result.loadings
    assert_allclose(V.T @ V, np.eye(6), atol=1e-10)
    assert result.converged.all()
    if not renormalize:
        assert np.abs(V).sum(axis=0).max() <= bound * (1 + 1e-12)
    values = np.sum(CORRELATION @ V * V, axis=0)
    pca = np.linalg.eigvalsh(CORRELATION)[::-1][:6]
    assert (values.cumsum() <= pca.cumsum() + 1e-10).all()
    if bound > 3.6:
        assert_allclose(values, pca, rtol=1e-5)
    one_by_one = V[:, :0]
    for t in range(6):  # the same, given the earlier loadings
        x = flat.scotlass(CORRELATION, bound, earlier=one_by_one, kind="covariance", renormalize=renormalize)
        assert x.value == pytest.approx(values[t], rel=1e-5)
        one_by_one = np.column_stack([one_by_one, V[:, t]])


def test_nothing_feasible():
    e = np.ones((4, 1))
    A = np.diag([4.0, 3, 2, 1])
    for bound, options in (1.2, None), (None, spcacore.SCoTLASS(l1_bound=1.2)):
        with pytest.raises(ValueError, match=r"no unit vector of l1 norm at most 1\.2 that is orthogonal"):
            spcacore.scotlass(A, bound, earlier=e, kind="covariance", options=options)
    x = flat.scotlass(A, 2**0.5 + 1e-6, earlier=e, kind="covariance")
    assert_allclose(abs(x.loading[:2]), 0.5**0.5, atol=1e-2)
    with pytest.raises(ValueError, match="no unit vector"):
        flat.scotlass(A, 2, earlier=np.eye(4), kind="covariance")
    with pytest.warns(RuntimeWarning, match="nothing feasible is left after 1 of the 3"):
        result = sparse_pca(
            np.full((4, 4), 0.5) + np.eye(4),
            3,
            kind="covariance",
            method=spcacore.SCoTLASS(l1_bound=[2, 1.2, 1.2]),
        )
    assert result.n_components == 1
    with pytest.warns(RuntimeWarning, match="no variance"):
        flat.scotlass(np.zeros((3, 3)), 1.5, kind="covariance")


def test_a_bound_that_never_binds_leaves_a_projection():
    """In single precision: what Newton's steps take for the end is enough. Dependent columns count once."""
    for seed in range(200):
        rng = np.random.default_rng(seed)
        a, E = rng.standard_normal(8).astype(np.float32), independent(rng, 8, 3)[:, [0, 1, 2, 0]]
        rest = a - E @ np.linalg.lstsq(E, a)[0]
        x = step(a, E, 8**0.5)
        assert abs(x @ rest) >= 0.99999 * np.linalg.norm(rest), seed
