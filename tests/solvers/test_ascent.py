"""Iterative solvers: iterates are feasible, what they maximize never falls, and no point is better."""

import warnings

import flat
import numpy as np
import pytest
from hypothesis import reject
from hypothesis import strategies as st
from in_turn import SEEDS, examples, of_examples

import spcacore

METHODS = ["tpower", "gpower, l1", "gpower, l0", "pmd", "pmd, nonnegative", "scotlass"]


def run(name, A, amount, **options):
    """With a cardinality, a penalty or an l1 bound; where that allows none, None."""
    method, _, how = name.partition(", ")
    options |= {"norm": how} if method == "gpower" else {"nonnegative": True} if how else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        try:
            return getattr(flat, method)(A, amount, kind="covariance", renormalize=False, tol=0, **options)
        except ValueError as error:
            if "no unit vector" not in str(error):
                raise
            return None


def check_feasible(name, x, amount, E):
    assert np.linalg.norm(x) == pytest.approx(1, abs=1e-12)
    if name == "tpower":
        assert np.count_nonzero(x) <= amount
    elif "gpower" not in name:
        assert np.abs(x).sum() <= amount * (1 + 1e-12)
    assert x.min() >= 0 or "nonnegative" not in name
    assert np.abs(E.T @ x).max(initial=0) <= 1e-10 * np.abs(E).max(initial=0) * len(x)


@pytest.mark.share(3)
@pytest.mark.parametrize(
    ("name", "indefinite"), [*((name, False) for name in METHODS), *((name, True) for name in METHODS[3:])]
)
@of_examples(40, seed=SEEDS, p=st.integers(3, 30), share=st.floats(0, 1))
def test_no_iterate_falls(name, indefinite, seed, p, share):
    rng = np.random.default_rng(seed)
    B = rng.standard_normal((p // 2 + 2, p))
    A = B.T @ B - indefinite * p * np.diag(rng.random(p))
    options, E, largest = {"start": np.abs(rng.standard_normal(p))}, np.zeros((p, 0)), A.diagonal().max()
    if "gpower" in name:
        amount = 0.6 * share * (largest if "l0" in name else np.sqrt(largest))
    else:
        amount = 1 + int(share * (p - 1)) if name == "tpower" else 1 + share * (p**0.5 - 1)
    if name == "scotlass":
        E = rng.standard_normal((p, max(1, p // 4))) * (rng.random((p, 1)) < 0.5)
        E[rng.permutation(p)[: E.shape[1]], np.arange(E.shape[1])] += 1
        amount, options["earlier"] = min(0.6 * p**0.5 + 0.3 + share, p**0.5), E
    values = []
    for n_iter in (1, 2, 3, 5, 8, 50):
        found = run(name, A, amount, max_iter=n_iter, **options)
        if found is None or not found.loading.any():  # nothing feasible, or the penalty is too large
            reject()
        x = found.loading
        check_feasible(name, x, amount, E)
        value = x @ A @ x
        if name == "gpower, l1":
            value = np.sqrt(value) - amount * np.abs(x).sum()
        elif name == "gpower, l0":
            value -= amount * np.count_nonzero(x)
        values.append(value)
    if indefinite:  # a step that falls raises the shift, and is taken back
        assert values[-1] >= values[0] - 1e-9 * p
    else:
        assert (np.diff(values) >= -1e-10 * largest).all()


@pytest.mark.share(3)
@pytest.mark.parametrize("bound", [1.0, 1.15, 1.4, 1.6, 3**0.5])
@pytest.mark.parametrize("name", ["pmd", "pmd, nonnegative", "scotlass"])
def test_no_point_of_the_sphere_is_better(name, bound):
    """In three variables; beside an earlier loading, of a circle."""
    for seed in range(examples(16)):
        rng = np.random.default_rng(seed)
        B, E = rng.standard_normal((3, 3)), rng.standard_normal((3, 1))
        A = B.T @ B - (1.0 if seed % 2 else 0.0) * np.eye(3)  # half of them indefinite
        options, slack = {}, 1e-12
        if name == "scotlass":
            angle = np.linspace(0, 2 * np.pi, 200_001)
            grid = np.column_stack([np.cos(angle), np.sin(angle)]) @ np.linalg.svd(E.T)[2][1:]
            options, slack = {"earlier": E}, 1e-6 * np.abs(A).max()
        else:
            E = E[:, :0]
            grid = rng.standard_normal((100_000, 3))
            grid = np.concatenate([grid / np.linalg.norm(grid, axis=1, keepdims=True), np.eye(3)])
        grid = np.abs(grid) if "nonnegative" in name else grid
        values = np.sum(grid @ A * grid, axis=1)[np.abs(grid).sum(axis=1) <= bound]
        x = run(name, A, bound, n_starts=60, **options)
        if x is None or len(values) == 0:
            assert x is None
            assert name == "scotlass"
            assert bound < 1.5  # all runs end inside of the sphere
            continue
        check_feasible(name, x.loading, bound, E)
        assert x.value == pytest.approx(x.loading @ A @ x.loading, rel=1e-9)
        assert x.value >= values.max() - slack or not x.converged


TWO_WAY = spcacore.PMD(3.0, sample_l1_bound=6.0)
BLOCK = spcacore.GPower(3.0, block=True, mu=[1, 0.8, 0.6])


@pytest.mark.parametrize(
    "method", [spcacore.GPower(2.0), BLOCK, spcacore.PMD(3.0), TWO_WAY, spcacore.SCoTLASS(3.0)]
)
def test_single_precision_ends_where_double_does(method):
    """Gains below the rounding of the objective do not end a run whose support still changes."""
    for seed in (0, 2, 9, 20, 32):
        rng = np.random.default_rng(seed)
        loadings = rng.standard_normal((3, 60)) * (rng.random((3, 60)) < 0.3) * [[3], [2.5], [2]]
        X = rng.standard_normal((100, 3)) @ loadings + rng.standard_normal((100, 60))
        double, single = (spcacore.sparse_pca(Y, 3, method=method) for Y in (X, X.astype(np.float32)))
        np.testing.assert_array_equal(single.loadings != 0, double.loadings != 0)
        np.testing.assert_allclose(single.loadings, double.loadings, atol=2e-4)
