"""deflate: explicit formulas, and the property table of the methods, each yes and each no."""

import re
from pathlib import Path

import numpy as np
import pytest
from in_turn import SEEDS, each_dtype, each_kind, each_order, of_examples
from numpy.testing import assert_allclose, assert_array_equal
from oracles import covariance, deflated, normal, orthogonalized

from spcacore import _core, deflate
from spcacore.operators.deflation import DEFLATIONS

PSD = [name for name in DEFLATIONS if not name.endswith("hotelling")]


def problem(seed):
    rng = np.random.default_rng(seed)
    B = rng.standard_normal((11, 8))
    xs = rng.standard_normal((8, 3)) * (rng.random((8, 3)) < 0.6)
    xs[0] += 0.5
    return B.T @ B, xs / np.linalg.norm(xs, axis=0)


def sequence(A, xs, method):
    """The matrix after each step."""
    out = [A]
    for t in range(xs.shape[1]):
        earlier = xs[:, :t] if orthogonalized(method) and t else None
        out.append(deflate(out[-1], xs[:, t], method, earlier=earlier))
    return out


@pytest.mark.share(3)
@pytest.mark.parametrize("method", DEFLATIONS)
@each_dtype
@each_order
@of_examples(25, seed=SEEDS)
def test_formula(method, dtype, order, seed):
    A, xs = problem(seed)
    got = sequence(np.asarray(A, dtype, order=order), xs, method)
    for t in range(3):
        A = deflated(A, xs[:, t], method, [xs[:, s] for s in range(t)])
        assert got[t + 1].dtype == dtype
        assert_array_equal(got[t + 1], got[t + 1].T)
        assert_allclose(got[t + 1], A, atol=1e-11 if dtype == np.float64 else 1e-3)


def test_the_table_of_the_guide():
    """Each yes holds for all of 20 matrices and their loadings, and each no fails for one."""
    guide = (Path(__file__).parents[2] / "docs" / "guide" / "several.md").read_text(encoding="utf-8")
    rows = re.findall(r'(?m)^\| `"(\w+)"` \| (\w+) \| (\w+) \| (\w+) \| (\w+) \|$', guide)
    assert {row[0] for row in rows} == set(DEFLATIONS) - {"naive"}
    for method, *said in rows:
        holds = np.ones(4, bool)
        for seed in range(20):
            A, xs = problem(seed)
            small = 1e-9 * np.abs(A).max()
            for t, after in enumerate(sequence(A, xs, method)[1:]):
                x = xs[:, t]
                holds &= [
                    abs(x @ after @ x) < small,
                    np.abs(after @ x).max() < small,
                    np.linalg.eigvalsh(after)[0] > -small,
                    np.abs(after @ xs[:, :t]).max(initial=0) < small,
                ]
        assert ["yes" if held else "no" for held in holds] == said, method


@pytest.mark.share(4)
@pytest.mark.parametrize("method", [name for name in PSD if name != "naive"])
@each_dtype
@each_order
@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("shape", [(30, 9), (5, 40), (1, 3)])
def test_data_deflation_deflates_its_covariance(method, dtype, order, center, shape):
    if shape[0] == 1 and center:
        return  # no variance to remove
    rng = np.random.default_rng(7)
    X = np.asarray(rng.standard_normal(shape) + 2, dtype, order=order)
    earlier = []
    for _ in range(3):
        x = np.zeros(shape[1])
        x[rng.choice(shape[1], 3, replace=False)] = rng.standard_normal(3)
        scatter = covariance(X, center) if shape[0] > 1 else np.outer(X[0], X[0]).astype(float)
        expected = deflated(scatter, x, method, earlier)
        E = np.column_stack(earlier) if earlier and orthogonalized(method) else None
        X = deflate(X, x, method, kind="data", center=center, earlier=E)
        assert X.dtype == dtype
        got = covariance(X, center) if shape[0] > 1 else np.outer(X[0], X[0]).astype(float)
        assert_allclose(got, expected, atol=1e-12 * 50 if dtype == np.float64 else 1e-4)
        earlier.append(x / np.linalg.norm(x))


@pytest.mark.parametrize("method", DEFLATIONS)
def test_nothing_left_to_remove(method):
    A, xs = problem(2)
    if method.startswith("orthogonalized"):
        inside = xs[:, 0] + 2 * xs[:, 1]
        assert_array_equal(deflate(A, inside, method, earlier=xs[:, :2]), A)
    null = np.zeros(8)
    null[0] = 1
    B = A.copy()
    B[0] = B[:, 0] = 0
    assert_array_equal(deflate(B, null, method), B)


@each_order
def test_a_small_variance_beside_a_large_mean_is_removed(order):
    """Last bits of entries near a million, which exact arithmetic tells from none."""
    X = np.full((8, 2), 2.0**20)
    X[::2, 0] += 2.0**-29
    left = deflate(np.asarray(X, order=order), [1.0, 0.0], "schur", kind="data")
    assert np.ptp(X[:, 0]) == 2.0**-29
    assert np.ptp(left[:, 0]) <= 2.0**-32
    assert_array_equal(left[:, 1], X[:, 1])


@each_kind
@each_order
@pytest.mark.parametrize("method", ["projection", "schur"])
def test_overwrite(kind, order, method):
    A, xs = problem(4)
    A = np.asarray(A, order=order)
    expected = deflate(A, xs[:, 0], method, kind=kind)
    before = A.tobytes()
    assert not np.shares_memory(expected, A)
    assert A.tobytes() == before
    S = np.flatnonzero(xs[:, 0])
    part = np.zeros((A.shape[0] + 3, A.shape[1] + 5), order=order)[: A.shape[0], : A.shape[1]]
    part[:] = A
    given = method, part, S, xs[S, 0]
    mean = A.mean(axis=0)
    assert deflate(A, xs[:, 0], method, kind=kind, overwrite=True) is A
    assert_array_equal(A, expected)
    assert _core.deflate_covariance(*given) if kind == "covariance" else _core.deflate_data(*given, mean)
    assert_allclose(part, expected, atol=1e-12)
    assert not part.base[:, A.shape[1] :].any()


def test_in_place_reads_only_what_it_touches():
    """NaN elsewhere neither matters nor is looked for; where x reaches it is refused."""
    X = normal(0, 6, 40)
    A = covariance(X)
    x = np.zeros(40)
    x[[3, 8]] = 0.6, 0.8
    for M, kind in ((X, "data"), (A, "covariance")):
        M[5 if kind == "data" else 20, 20] = np.nan
        with pytest.raises(ValueError, match="1 entry that is NaN"):
            deflate(M, x, kind=kind)
        expected = deflate(np.nan_to_num(M), x, kind=kind)
        deflate(M, x, kind=kind, overwrite=True)
        assert_array_equal(np.nan_to_num(M), expected)
        M[4, 8] = np.nan
        before = M.tobytes()
        with pytest.raises(ValueError, match="where x is not zero, has 1 entry that is NaN"):
            deflate(M, x, kind=kind, overwrite=True)
        assert M.tobytes() == before
    A = covariance(normal(1, 60, 40))
    A[3, 30] += 0.1
    with pytest.raises(ValueError, match="symmetric"):
        deflate(A, x, overwrite=True)


@pytest.mark.parametrize("method", DEFLATIONS)
@each_kind
def test_overflow_is_an_error_and_leaves_the_matrix(method, kind):
    if kind == "data" and method.endswith("hotelling"):
        return
    A = np.full((3, 3), 1.7e308)
    with pytest.raises(ValueError, match="too large"):
        deflate(A, [1, 1, 1], method, kind=kind, center=False, overwrite=True)
    assert (A == 1.7e308).all()
    if kind == "data":
        return
    B = np.full((2, 2), 1e308)  # A x is not too large yet, but x'A x is
    with pytest.raises(ValueError, match="too large"):
        deflate(B, [1, 1], method, overwrite=True)
    assert (B == 1e308).all()
