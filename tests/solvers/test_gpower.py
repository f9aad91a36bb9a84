"""gpower against the paper's own iteration in sample space, the authors' program and enumeration."""

from itertools import combinations

import flat
import numpy as np
import pytest
from gpower_tools import NORMS, bound, data, seeds, shrunk, unconverged
from hypothesis import strategies as st
from in_turn import each_dtype, each_kind, of_examples
from numpy.testing import assert_allclose, assert_array_equal
from oracles import dense_vector, largest_on, normal, reference
from scipy.linalg import block_diag

import spcacore
from spcacore import gpower, sparse_pca
from spcacore.solvers.refitting import Steps


def objective(F, z, gamma, norm):
    size = np.linalg.norm(F @ z)
    return size**2 - gamma * np.count_nonzero(z) if norm == "l0" else size - gamma * abs(z).sum()


def in_sample_space(F, z, gamma, norm, n_iter):
    """Algorithms 2 and 3 as printed: u, not z, is iterated."""
    u = F @ z / np.linalg.norm(F @ z)
    for _ in range(n_iter):
        z = np.zeros(F.shape[1])
        gradient = np.zeros(len(F))
        for i, a in enumerate(F.T):
            z[i] = shrunk(a @ u, gamma, norm)
            gradient += z[i] * a
        u = gradient / np.linalg.norm(gradient)
    z /= np.linalg.norm(z)
    return z * np.sign(z[np.argmax(abs(z))])


# ---- one component ------------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("rho", [0.1, 0.3, 0.5])
def test_the_authors_program_on_pit_props(norm, rho):
    """Its deflation by `X - (X z) z'` and its penalty, relative to what is left, on explicit matrices.

    It ends where its objective grows by less than 1e-4; equal norms it tells apart by rounding.
    """
    F = reference("pitprops_rootmatrix")
    theirs = reference(f"pitprops_GPower_{norm}_rho{rho}_V")
    for z in theirs.T:
        size = np.linalg.norm(F, axis=0)
        start = np.zeros(13)
        start[np.argmax(size)] = 1
        x = flat.gpower(F, rho, center=False, norm=norm, relative=True, start=start)
        assert_array_equal(x.loading != 0, z != 0)
        assert_allclose(abs(x.loading), abs(z), atol=1e-3)
        F = F - np.outer(F @ x.loading, x.loading)


@of_examples(100, seed=seeds, share=st.floats(0, 0.9), n_iter=st.integers(1, 8), norm=st.sampled_from(NORMS))
def test_the_paper_iteration_in_sample_space(seed, share, n_iter, norm):
    F = data(seed)
    gamma = share * bound(F, norm)
    z = np.eye(12)[np.argmax(np.linalg.norm(F, axis=0))]
    options = {"norm": norm, "max_iter": n_iter, "tol": 0, "renormalize": False, "n_starts": 1}
    record = spcacore.GPower(**options)
    x = unconverged(gpower, F, gamma, options=record)
    reference = in_sample_space(F, z, gamma, norm, n_iter)
    assert abs(abs(reference) - abs(x.loading)).max() < 1e-6
    again = unconverged(gpower, F.T @ F, gamma, kind="covariance", options=record)
    assert_allclose(again.loading, x.loading, atol=1e-7)


@of_examples(80, seed=seeds, share=st.floats(0.02, 0.9), p=st.integers(1, 9))
def test_l0_never_above_the_optimum_and_often_at_it(seed, share, p):
    F = data(seed, 15, p)
    S, gamma = F.T @ F, share * bound(F, "l0")
    optimum = max(
        largest_on(S, s) - gamma * k for k in range(1, p + 1) for s in map(list, combinations(range(p), k))
    )
    x = flat.gpower(F, gamma, norm="l0", n_starts=p + 5)
    value = objective(F, x.loading, gamma, "l0")
    assert value <= optimum + 1e-9 * bound(F, "l0")
    assert value >= 0.5 * optimum
    assert x.value * 14 == pytest.approx(np.linalg.norm(F @ x.loading) ** 2, rel=1e-10)


@pytest.mark.parametrize("norm", NORMS)
@each_kind
@each_dtype
@pytest.mark.parametrize("relative", [False, True])
def test_the_largest_column_norm_forces_the_zero_loading(norm, kind, dtype, relative):
    F = data(3)
    top = 1 if relative else bound(F, norm)
    X = (F if kind == "data" else F.T @ F).astype(dtype)
    for penalty in (top,) if relative else (top * (1 + 1e-5), 100 * top, 1e300):
        with pytest.warns(RuntimeWarning, match="penalty is too large"):
            x = flat.gpower(X, penalty, kind=kind, norm=norm, relative=relative)
        assert (x.value, x.cardinality, x.converged) == (0, 0, True)
        assert not x.loading.any()
        with pytest.warns(RuntimeWarning, match="no variance above the penalty is left after 0"):
            none = sparse_pca(
                X, 2, kind=kind, method=spcacore.GPower(penalty=penalty, norm=norm, relative=relative)
            )
        assert none.loadings.shape == (12, 0)
    x = flat.gpower(X, top * 0.999, kind=kind, norm=norm, relative=relative)
    assert_array_equal(np.flatnonzero(x.loading), [np.argmax(np.linalg.norm(F, axis=0))])


def test_of_tied_variances_starts_are_not_the_first_variables():
    """The first twenty tell of no others."""
    apart = block_diag(np.eye(20), np.full((30, 30), 0.5) + np.eye(30) / 2)
    x = flat.gpower(apart, 0.3, kind="covariance", relative=True, n_starts=8)
    assert_allclose(x.value, 1 + 29 / 2)


def test_the_default_starts_come_near_to_all_of_them():
    """On noise one start of an l0 penalty ends some ten percent below the best of all variables."""
    one, several = [], []
    for seed in range(5):
        F = normal(seed, 50, 200)
        F -= F.mean(axis=0)
        gamma = 0.1 * bound(F, "l0")

        def reached(n_starts, F=F, gamma=gamma):
            z = flat.gpower(F, gamma, norm="l0", n_starts=n_starts, renormalize=False).loading
            return objective(F, z, gamma, "l0")

        best = reached(200)
        one.append(reached(1) / best)
        several.append(reached(None) / best)
    assert np.mean(one) < 0.97
    assert np.mean(several) > 0.99


def test_no_more_starts_where_all_end_at_the_same(rng):
    """A strong component: eight starts of a hundred that end there are enough."""
    F = rng.standard_normal((40, 1)) * np.ones(100) + 0.1 * rng.standard_normal((40, 100))
    assert 8 <= flat.gpower(F, 0.01, relative=True).n_starts <= 10


def test_no_more_starts_where_supports_differ_in_a_few_of_hundreds(rng, monkeypatch):
    """Allele counts of four populations: most runs end at 800 variables or so, and at the same value."""
    share = np.clip(rng.uniform(0.05, 0.5, 2000) + rng.normal(0, 0.12, (4, 2000)), 0.01, 0.99)
    X = rng.binomial(2, share[rng.integers(0, 4, 60)]).astype(float)
    F = X - X.mean(axis=0)
    options = {"norm": "l0", "relative": True, "renormalize": False}
    many = flat.gpower(X, 0.02, n_starts=100, **options).loading
    runs, ascend = [], Steps.ascend
    monkeypatch.setattr(Steps, "ascend", lambda *args: runs.append(args) or ascend(*args))
    z = flat.gpower(X, 0.02, **options).loading
    assert len(runs) < 50
    gamma = 0.02 * (F**2).sum(axis=0).max()
    assert objective(F, z, gamma, "l0") > (1 - 1e-3) * objective(F, many, gamma, "l0")


# ---- several, by deflation ----------------------------------------------------------------------------


@pytest.mark.parametrize("norm", NORMS)
def test_an_indefinite_matrix_is_climbed_all_the_same(norm, rng):
    """A + shift I takes over: the end is no worse than the start."""
    climbed = 0
    for _ in range(30):
        B = rng.standard_normal((10, 10))
        A = (B + B.T) / 2 - np.eye(10)
        op = spcacore._core.dense(A, True)
        j = int(np.argmax(np.diagonal(A)))
        if A[j, j] <= 0.1:
            continue
        gamma = 0.2 * (A[j, j] if norm == "l0" else np.sqrt(A[j, j]))
        start = np.array([j]), np.ones(1)
        status, index, value, reached, variance, _ = op.gpower(*start, norm == "l0", gamma, 3000, 1e-12)
        z = dense_vector(10, index, value)
        assert status == 0
        assert variance == pytest.approx(z @ A @ z, abs=1e-10)
        penalty = gamma * (len(index) if norm == "l0" else abs(z).sum())
        first_term, alone = (variance, A[j, j]) if norm == "l0" else np.sqrt([variance, A[j, j]])
        assert reached == pytest.approx(first_term - penalty, abs=1e-10)
        assert reached >= alone - gamma - 1e-10
        climbed += len(index) > 1
    assert climbed > 5
