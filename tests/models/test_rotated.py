"""prs, sca and sma against the authors' package, and what they promise."""

import importlib
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg
from extras import optional
from hypothesis import strategies as st
from in_turn import SEEDS, of_examples
from numpy.testing import assert_allclose, assert_array_equal
from oracles import centered, reference, samples

import spcacore
from spcacore import l1_rotation, prs, sca, sma, varimax
from spcacore.operators.gram import leading_vectors
from spcacore.operators.inputs import as_problem

adjusted_rand_score = optional("sklearn.metrics", "adjusted_rand_score")
PITPROPS = spcacore.datasets.load_pitprops().correlation


def counts(seed, n=40, p=30, r=3):
    """Edges between rows and columns of r blocks, in float64; a row and a column have none."""
    rng = np.random.default_rng(seed)
    rate = 0.1 + 0.7 * (np.arange(n)[:, None] * r // n == np.arange(p)[None] * r // p)
    X = rng.poisson(rate).astype(float)
    X[5] = X[:, 7] = 0
    return X


def normalized(X):
    """By degrees, as in the docstring of `sca`."""
    d, g = X.sum(axis=1), X.sum(axis=0)
    return X / np.sqrt(np.outer(d + d.mean(), g + g.mean()))


def test_leading_vectors_of_small_rank():
    X = np.outer(np.arange(20.0), np.ones(300)) + np.outer(np.ones(20), np.arange(300.0))
    X[:, 7] = np.arange(20.0) ** 2
    with pytest.warns(RuntimeWarning, match="X has rank 2"):
        V = leading_vectors(as_problem(X), 4)
    Q = np.linalg.svd(centered(X), full_matrices=False)[2][:2].T
    assert_allclose(Q @ (Q.T @ V), V, atol=1e-8)


# ---- the authors' package, epca ---------------------------------------------------------------------


AS_DATA = pytest.mark.filterwarnings("ignore:X is symmetric")  # as the papers take it


@AS_DATA
@pytest.mark.parametrize(("bound", "atol"), [(6, 2e-4), (9, 5e-4)])
def test_pit_props_root_matrix(bound, atol):
    """Both stop at 1e-5, after a few iterations more or less."""
    X, theirs = (
        reference("pitprops_rootmatrix"),
        reference(f"pitprops_root_epca_sca_k6_gamma{bound}_loadings"),
    )
    n_iter, *pve = reference(f"pitprops_root_epca_sca_k6_gamma{bound}_niter_cpve")
    ours = sca(X, 6, l1_bound=bound, center=False)
    assert_allclose(ours.loadings, theirs, atol=atol)
    assert_allclose(ours.pve, pve, atol=atol)
    assert abs(ours.n_iter - n_iter) < 0.1 * n_iter
    assert ours.converged


def test_small_matrix():
    X, theirs = reference("small40x12_X"), reference("small_epca_sca_k3_soft_gamma5_loadings")
    ours = sca(X, 3, l1_bound=5)
    assert_allclose(ours.loadings, theirs, atol=2e-4)
    assert_allclose(ours.pve, reference("small_epca_sca_k3_soft_gamma5_niter_cpve")[1:], atol=1e-5)
    assert_allclose(ours.scores, centered(X) @ ours.loadings, atol=1e-12)


def test_sma_small_matrix():
    X = reference("small40x12_X")
    y, z, b = (reference(f"small_epca_sma_k3_gamma10_5_{name}") for name in "yzb")
    ours = sma(X, 3, sample_l1_bound=10, l1_bound=5, tol=1e-8)
    for mine, theirs in ((ours.loadings, y), (ours.scores, z)):
        cosine = np.abs(mine.T @ theirs) / np.outer(*(np.linalg.norm(M, axis=0) for M in (mine, theirs)))
        assert_allclose(np.sort(cosine.max(axis=0)), 1, atol=1e-4)
    assert np.linalg.norm(ours.middle) == pytest.approx(np.linalg.norm(b), rel=1e-4)
    assert_allclose(ours.middle, ours.scores.T @ X @ ours.loadings, atol=1e-8)


# ---- promises ---------------------------------------------------------------------------------------


@of_examples(60, seed=SEEDS, share=st.floats(0.0, 1.0), rotation=st.sampled_from(["varimax", "l1"]))
def test_prs_is_polar_rotate_shrink(seed, share, rotation):
    rng = np.random.default_rng(seed)
    p, r = int(rng.integers(3, 12)), int(rng.integers(1, 4))
    M = rng.standard_normal((p, r))
    bound = r + share * (r * np.sqrt(p) - r)
    Y, rotate = prs(M, bound, rotation=rotation), {"varimax": varimax, "l1": l1_rotation}[rotation]
    U, _, Vt = np.linalg.svd(M, full_matrices=False)
    rotated = rotate(U @ Vt)[0] if r > 1 else U @ Vt
    total = np.abs(rotated).sum()
    assert np.abs(Y).sum() == pytest.approx(min(bound, total), rel=1e-12)
    kept = Y != 0
    if total > bound:  # one level everywhere: the projection on the l1 ball
        level = (np.abs(rotated) - np.abs(Y))[kept]
        assert_allclose(level, level[0], atol=1e-12)
        assert (np.abs(rotated)[~kept] <= level[0] + 1e-12).all()
        assert (np.sign(Y)[kept] == np.sign(rotated)[kept]).all()
    hard = prs(M, bound, rotation=rotation, threshold="hard")
    assert np.abs(hard).sum() <= bound * (1 + 1e-12)
    assert_array_equal(hard[hard != 0], rotated[hard != 0])


# ---- degrees ----------------------------------------------------------------------------------------


@pytest.mark.share(2)
@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("p", [30, 400])
def test_degrees_against_the_normalized_matrix(center, p):
    """Dense in either order, CSR and CSC with either index, integers and float32; few columns and many."""
    X = counts(p, n=60, p=p)
    L = normalized(X)
    wide = scipy.sparse.csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    sparse = scipy.sparse.csr_array(X)
    inputs = [X, np.asfortranarray(X), X.astype(int), sparse, sparse.tocsc(), wide]
    inputs += [X.astype(np.float32), sparse.astype(np.float32)]
    bound = 0.6 * np.sqrt(3 * p)
    plain = sca(L, 3, l1_bound=bound, center=center, tol=1e-7)
    both = sma(L, 3, l1_bound=bound, sample_l1_bound=8, center=center, tol=1e-7)
    for M in inputs:
        single = M.dtype == np.float32
        atol = 5e-4 if single else 1e-6
        options = {"l1_bound": bound, "center": center, "scale": "degree", "tol": 1e-5 if single else 1e-7}
        result = sca(M, 3, **options)
        assert_allclose(result.loadings, plain.loadings, atol=atol)
        assert_allclose(result.scores, (L - center * L.mean(axis=0)) @ plain.loadings, atol=atol)
        assert_allclose(result.pve, plain.pve, atol=atol)
        assert not result.loadings[7].any()
        other = sma(M, 3, sample_l1_bound=8, **options)
        assert_allclose(other.loadings, both.loadings, atol=atol)
        assert_allclose(other.scores, both.scores, atol=atol)
        assert_allclose(other.middle, both.middle, atol=atol)
        assert not other.scores[5].any() or center


@pytest.mark.parametrize(("blocks", "lost"), [(2, 0.7), (3, 0.85)])
def test_a_graph_scaled_by_degrees_is_not_centered_by_default(blocks, lost, monkeypatch):
    """Adjusted Rand indices of the graphs of a benchmark, with small sizes."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    X, _, block = importlib.import_module("graph").block_model(400, 600, 12_000, blocks)

    def agreement(**options):
        found = np.abs(sca(X, blocks, scale="degree", **options).loadings).argmax(axis=1)
        return adjusted_rand_score(block, found)

    assert agreement() == agreement(center=False) > 0.98
    assert agreement(center=True) < lost


def test_two_components_of_two_variables_are_the_variables():
    """A rotation turns any orthogonal matrix to them; what it leaves beside is rounding, and no loading."""
    for seed in range(40):
        found = sca(np.random.default_rng(seed).standard_normal((12, 2)), 2)
        assert_array_equal(found.cardinality, [1, 1])


# ---- rotation by the l1 norm, starts -----------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_sma_by_default(seed):
    """The default bounds, B = Z'XY, its order, and the signs of both sides."""
    X = samples(seed)
    n, p, r = 30, 12, 3
    X[:, 0] -= 3 * np.abs(X).max()
    result = sma(X, r)
    Y, Z, B = result.loadings, result.scores, result.middle
    assert_allclose(B, Z.T @ X @ Y, rtol=1e-10, atol=1e-10 * np.abs(X).max())
    explicit = sma(X, r, sample_l1_bound=np.sqrt(n * r), l1_bound=np.sqrt(p * r))
    assert_array_equal(explicit.loadings, Y)
    assert_array_equal(explicit.scores, Z)
    for side, size in ((Y, np.sum(B**2, axis=0)), (Z, np.sum(B**2, axis=1))):
        assert (np.sum(side**3, axis=0) > 0).all()
        assert (np.diff(size) <= 0).all()
        assert np.abs(side).sum() <= np.sqrt(len(side) * r) * (1 + 1e-12)


def test_a_start_decides_where_to_begin():
    X = samples(5)
    done = sca(X, 3, l1_bound=6)
    again = sca(X, 3, l1_bound=6, start=done.loadings)
    assert again.n_iter <= 2 < done.n_iter
    assert_allclose(again.loadings, done.loadings, atol=1e-4)


@pytest.mark.parametrize("function", [sca, sma, spcacore.spca])
def test_a_component_far_below_the_first_in_single_precision(function, rng):
    X = rng.standard_normal((100, 20))
    X[:, 0] *= 200
    double = function(X, 2, center=True)
    for M in (X, scipy.sparse.csr_array(X)):
        single = function(M.astype(np.float32), 2, center=True)
        assert_allclose(np.abs(single.loadings), np.abs(double.loadings), atol=1e-2)
        assert_allclose(single.explained_variance, double.explained_variance, rtol=1e-3)


# ---- bad input --------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", [sca, sma])
@pytest.mark.parametrize("p", [20, 400])
def test_more_components_than_the_rank(function, p, rng):
    """As many components as there are, never NaN, in each storage and scaling."""
    X = rng.poisson(1.0, (30, 2)).astype(float) @ rng.poisson(1.0, (2, p))
    X[3] = X[:, 4] = 0
    for M in (X, scipy.sparse.csr_array(X), scipy.sparse.csc_array(X), X.astype(np.float32)):
        for scale in (False, "degree"):
            with pytest.warns(RuntimeWarning, match="only 2 of the 5 components"):
                result = function(M, 5, scale=scale, center=False)
            assert result.loadings.shape == (p, 2)
            for a in (result.loadings, result.scores, result.pve):
                assert np.isfinite(a).all()
