"""The rotation of least l1 norm against all angles of two columns and planted sparse bases."""

import numpy as np
import pytest
from hypothesis import strategies as st
from in_turn import SEEDS, each_dtype, of_examples
from numpy.testing import assert_allclose

from spcacore import _core, l1_rotation, varimax


@of_examples(60, seed=SEEDS, single=st.booleans())
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


@each_dtype
@pytest.mark.parametrize(("p", "r"), [(200, 4), (5000, 8)])
def test_l1_rotation_recovers_an_exactly_sparse_basis(p, r, dtype):
    """A rotation of sparse columns has its zeros back, to what `tol` leaves."""
    rng = np.random.default_rng(p)
    simple = np.where(rng.random((p, r)) < 0.3, rng.standard_normal((p, r)), 0)
    mixed = (simple @ np.linalg.qr(rng.standard_normal((r, r)))[0]).astype(dtype)
    for order in "CF":
        Y = np.array(mixed, order=order)
        rotated, R = l1_rotation(Y, overwrite=True)
        assert rotated is Y
        assert_allclose(rotated, mixed @ R, atol=1e-4 if dtype == np.float32 else 1e-12)
        cosine = np.abs(rotated.T @ simple) / np.outer(
            *(np.linalg.norm(M, axis=0) for M in (rotated, simple))
        )
        place = cosine.argmax(axis=0)
        assert sorted(place) == list(range(r))
        assert_allclose(np.abs(rotated[:, place]), np.abs(simple), atol=1e-5 if dtype == np.float32 else 1e-6)
    varimaxed = varimax(mixed)[0]
    assert (np.abs(varimaxed) > 1e-4).sum() > 2 * np.count_nonzero(simple)  # alone it does not find them


def test_rows_that_are_subnormal_leave_the_rotation_orthogonal():
    """Their norms are rounded to a few bits, by which the direction of a row of ones became too short."""
    Y = np.array([[2.0, 2], [5e-324, 5e-324], [1e-323, 1e-323], [-1, 0], [-2, -2]], order="F")
    R = np.eye(2, order="F")
    _core.l1_sweeps(Y, 9, 1e-12, R)
    assert_allclose(R.T @ R, np.eye(2), atol=1e-15)
