"""The rotation of least l1 norm against all angles of two columns and planted sparse bases."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from in_turn import examples
from numpy.testing import assert_allclose, assert_array_equal

from spcacore import l1_rotation, varimax


@given(seed=st.integers(0, 2**32), single=st.booleans())
@settings(max_examples=examples(60), deadline=None, derandomize=True)
def test_l1_rotation_of_two_columns_is_the_best_of_all_angles(seed, single):
    """The minimum lies where some row has a zero: all those angles, one by one."""
    rng = np.random.default_rng(seed)
    p = int(rng.integers(1, 60))
    Y = rng.standard_normal((p, 2)) * rng.exponential(size=(p, 1))
    Y[rng.random(p) < 0.2] = 0
    Y[rng.random(p) < 0.3, 0] = 0  # ties at the axis
    Y = Y.astype(np.float32 if single else np.float64)
    rotated, R = l1_rotation(Y)
    angles = np.concatenate([[0.0], np.arctan2(Y[:, 1], Y[:, 0]), np.linspace(0, np.pi / 2, 200)])
    c, s = np.cos(angles), np.sin(angles)
    x, y = (Y.astype(np.float64)).T
    sums = np.abs(np.outer(c, x) + np.outer(s, y)).sum(axis=1) + np.abs(np.outer(c, y) - np.outer(s, x)).sum(
        axis=1
    )
    eps = 1e-5 if single else 1e-8
    assert np.abs(rotated).sum() == pytest.approx(sums.min(), rel=2 * eps)
    assert_allclose(rotated, Y @ R, atol=1e-5 if single else 1e-12)
    assert_allclose(R.T @ R, np.eye(2), atol=1e-6 if single else 1e-14)


@given(seed=st.integers(0, 2**32))
@settings(max_examples=examples(40), deadline=None, derandomize=True)
def test_l1_rotation_is_orthogonal_and_no_pair_gains(seed):
    rng = np.random.default_rng(seed)
    p, r = int(rng.integers(2, 80)), int(rng.integers(1, 7))
    Y = rng.standard_t(3, (p, r))
    before = Y.copy()
    rotated, R = l1_rotation(Y)
    assert_array_equal(Y, before)
    assert_allclose(R.T @ R, np.eye(r), atol=1e-12)
    assert np.linalg.det(R) == pytest.approx(1)
    assert_allclose(rotated, Y @ R, atol=1e-11 * np.abs(Y).max())
    total = np.abs(rotated).sum()
    assert total <= np.abs(varimax(Y)[0]).sum() * (1 + 1e-12)
    for a, b in itertools.combinations(range(r), 2):
        x, y = rotated[:, a], rotated[:, b]
        least = np.abs(x).sum() + np.abs(y).sum()
        for t in np.arctan2(y, x):
            turned = np.abs(np.cos(t) * x + np.sin(t) * y) + np.abs(np.cos(t) * y - np.sin(t) * x)
            assert turned.sum() >= least * (1 - 2e-8)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("p", "r"), [(200, 4), (5000, 8)])
def test_l1_rotation_recovers_an_exactly_sparse_basis(p, r, dtype):
    """A rotation of sparse columns has its zeros back, to what `tol` leaves."""
    rng = np.random.default_rng(p)
    simple = np.where(rng.random((p, r)) < 0.3, rng.standard_normal((p, r)), 0)
    mixed = (simple @ np.linalg.qr(rng.standard_normal((r, r)))[0]).astype(dtype)
    for order in "CF":
        Y = np.array(mixed, order=order)
        rotated, _ = l1_rotation(Y, overwrite=True)
        assert rotated is Y
        cosine = np.abs(rotated.T @ simple) / np.outer(
            *(np.linalg.norm(M, axis=0) for M in (rotated, simple))
        )
        place = cosine.argmax(axis=0)
        assert sorted(place) == list(range(r))
        assert_allclose(np.abs(rotated[:, place]), np.abs(simple), atol=1e-5 if dtype == np.float32 else 1e-6)
    varimaxed = varimax(mixed)[0]
    assert (np.abs(varimaxed) > 1e-4).sum() > 2 * np.count_nonzero(simple)  # alone it does not find them


@pytest.mark.parametrize(
    ("loadings", "options", "error", "match"),
    [
        (np.full((3, 2), np.nan), {}, ValueError, "NaN"),
        (np.ones(3), {}, ValueError, "dimension"),
        (np.ones((0, 2)), {}, ValueError, "empty"),
        ([["a", "b"]], {}, TypeError, "numbers"),
        (np.ones((3, 2)), {"tol": -1}, ValueError, "tol"),
        (np.ones((3, 2)), {"max_iter": 1.5}, TypeError, "max_iter"),
        (np.ones((3, 2)), {"overwrite": 1}, TypeError, "overwrite"),
    ],
)
def test_l1_rotation_of_bad_input(loadings, options, error, match):
    with pytest.raises(error, match=match):
        l1_rotation(loadings, **options)


def test_l1_rotation_tells_that_it_was_stopped():
    Y = np.random.default_rng(0).standard_normal((50, 5))
    with pytest.warns(RuntimeWarning, match="1 iteration"):
        l1_rotation(Y, max_iter=1)
