"""explained_variance and renormalize against explicit projections and LAPACK."""

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from hypothesis import strategies as st
from in_turn import SEEDS, each_dtype, of_examples
from numpy.testing import assert_allclose
from oracles import centered, covariance, spanned_variance

from spcacore import explained_variance


def case(seed, dependent, rank):
    """Data of that rank about their means, with long tails; and loadings with zeros."""
    rng = np.random.default_rng(seed)
    X = rng.standard_t(3, (25, rank)) @ rng.standard_normal((rank, 10)) + 3
    V = rng.standard_normal((10, 4)) * (rng.random((10, 4)) < 0.5)
    V[0] += 1
    if dependent:
        V[:, 2] = V[:, 0] - 2 * V[:, 1]
    return X, V


@pytest.mark.parametrize("kind", ["data", "covariance", "csc"])
@of_examples(40, seed=SEEDS, dependent=st.booleans(), rank=st.sampled_from([2, 10]))
def test_three_definitions(kind, seed, dependent, rank):
    X, V = case(seed, dependent, rank)
    A = covariance(X)
    M = {"data": X, "covariance": A, "csc": scipy.sparse.csc_array(X)}[kind]
    options = {"kind": "covariance" if kind == "covariance" else "data"}
    U = V / np.linalg.norm(V, axis=0)
    got = {d: explained_variance(M, V, d, **options) for d in ("cumulative", "adjusted", "raw")}
    assert_allclose(got["raw"], np.diag(U.T @ A @ U), rtol=1e-10)
    assert_allclose(
        got["cumulative"].cumsum(), [spanned_variance(A, U[:, : t + 1]) for t in range(4)], rtol=1e-8
    )
    S = centered(X) @ U / 24**0.5
    for t in range(4):  # what is left of a score after regression on the earlier ones
        residual = S[:, t] - S[:, :t] @ np.linalg.lstsq(S[:, :t], S[:, t], rcond=None)[0]
        assert got["adjusted"][t] == pytest.approx(residual @ residual, rel=1e-6, abs=1e-8 * np.trace(A))
    best = np.linalg.eigvalsh(A)[::-1][:4].cumsum()
    assert (got["cumulative"].cumsum() <= best * (1 + 1e-10)).all()
    ratio = explained_variance(M, V, ratio=True, **options)
    assert_allclose(ratio, got["cumulative"] / np.trace(A), rtol=1e-12)


@each_dtype
def test_loadings_nearly_in_the_span_of_others(dtype, rng):
    """Not as far as rounding of the loadings, in their precision, may have put them there."""
    A, V = np.diag([1, 1e6, 1]), np.array([[1, 0, 0], [1, 1e-7, 0]], dtype).T
    assert_allclose(explained_variance(A, V, kind="covariance"), [1, 1e6])
    B = np.diag([1e6, 90.0, 1.0]) + 5
    first, second = (
        B[:, S] @ np.linalg.solve(B[np.ix_(S, S)], B[S]) for S in ([0], [0, 1])
    )  # fitted by these variables
    for s in (1, 1e-3, 1e-6) if dtype == np.float64 else (1,):
        W = np.array([[1, 0, 0], [1, s, 0]], dtype).T
        found = explained_variance(B, W, "regression", kind="covariance")
        assert_allclose(found, [np.trace(first), np.trace(second - first)], rtol=1e-5)
        left = (B - first)[1, 1] * s**2 / (1 + s**2)
        assert_allclose(explained_variance(B, W, "adjusted", kind="covariance")[1], left, 1e-5)
    tiny = np.array([[1e-310 if dtype == np.float64 else 1e-40, 0, 0]], dtype).T
    assert_allclose(explained_variance(A, tiny, kind="covariance"), [1])
    W = rng.standard_normal((30, 4)).astype(dtype)
    sums = (W @ rng.standard_normal((4, 3)).astype(dtype)).astype(dtype)
    found = explained_variance(np.eye(30), np.hstack([W, sums]), kind="covariance")
    assert_allclose(found, [1, 1, 1, 1, 0, 0, 0], atol=1e-6)
