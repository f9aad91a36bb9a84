"""The search of a matrix in memory: against all supports, LAPACK, and runs from all columns."""

import contextlib

import numpy as np
import pytest
from in_turn import each_dtype
from oracles import normal, optimum
from solvers.test_exact import KINDS, matrix

from spcacore import _core

ALL = ((1, 60, 1), (2, 20, 1))


def plan(
    starts=300,
    rounds=ALL,
    ends=8,
    swapped=4,
    tie=1e-12,
    exact=400,
    nodes=1000,
    hopeless=9.0,
):
    limits = 1e-10, 1e-8, 1e-9, tie
    return starts, rounds, 300, 1e-8, ends, 40, swapped, limits, exact, nodes, hopeless


def values_of(A, supports):
    S = np.asarray(supports)
    return np.linalg.eigvalsh(A[S[:, :, None], S[:, None, :]].astype(float))[:, ::-1].T


def value_of(A, support):
    return values_of(A, [support])[0, 0]


@pytest.mark.share(3)
@pytest.mark.parametrize("p", [1, 2, 3, 5, 8, 11])
@each_dtype
def test_a_tree_proves_the_best_of_all_supports(p, dtype):
    for seed, k in ((seed, k) for seed in range(3) for k in range(1, p + 1)):
        for name in KINDS:
            A = np.ascontiguousarray(matrix(name, np.random.default_rng(seed), p), dtype)
            if not A.any():
                continue
            supports, values, _, (*_, proved) = _core.search(A, k, plan())
            best = optimum(A.astype(float), k)
            assert proved, (name, k)
            assert values[0] == pytest.approx(best, rel=1e-9, abs=1e-9), (name, k)
            assert value_of(A, supports[0]) == pytest.approx(best, rel=1e-9, abs=1e-9)
            assert (np.diff(supports[0]) > 0).all()


@pytest.mark.share(3)
@each_dtype
@pytest.mark.parametrize("k", [2, 5, 9])
def test_without_a_tree_races_end_where_no_swap_is_better(dtype, k):
    """Values are eigenvalues, ends differ, the best come first, and most are the best of all supports."""
    reached = []
    for seed in range(6):
        for name in KINDS:
            A = np.ascontiguousarray(matrix(name, np.random.default_rng(seed), 11), dtype)
            found, values, runs, told = _core.search(A, k, plan(nodes=0, swapped=99))
            assert told[0] == 11
            assert told[3:] == (0, False)
            assert sum(runs) <= told[1] <= 11
            assert len({tuple(S) for S in found}) == len(found)
            tie = 1e-12 * abs(values[0])
            assert (np.diff(values[1:]) <= 0).all()
            assert values[0] >= values.max() - tie
            for S, value in zip(found, values, strict=True):
                assert value == pytest.approx(value_of(A, S), rel=1e-9, abs=1e-9), name
                outside = np.setdiff1d(np.arange(11), S)
                swapped = [np.append(np.delete(S, i), j) for i in range(k) for j in outside]
                simple = value - values_of(A, [S])[1, 0] > 1e-7 * abs(value)  # else swaps are not bounded
                assert not simple or values_of(A, swapped)[0].max() <= value * (1 + 1e-9) + 1e-9, name
            reached.append(values[0] >= optimum(A.astype(float), k) * (1 - 1e-9) - 1e-12)
    assert np.mean(reached) > 0.9


def test_of_ties_the_first_variables():
    """Two blocks of one value, found from one another by no swap, and a tie between all columns."""
    block = np.ones((4, 4))
    A = np.kron(np.eye(3), block)
    found, values, runs, _ = _core.search(A, 4, plan(nodes=0))
    assert values.tolist() == pytest.approx([4, 4, 4])
    assert found.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
    assert runs.tolist() == [1, 1, 1]  # of columns that lead to one support, one goes on
    A = np.eye(9)
    assert _core.search(A, 3, plan(nodes=0, tie=1e-6))[0][0].tolist() == [0, 1, 2]


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("exact", [399, 400])
def test_columns_of_large_norms_start(known, exact, rng):
    """A block whose columns promise most; what is known of other columns may be old."""
    A = np.cov(rng.standard_normal((100, 400)).T)
    block = np.arange(300, 310)
    A[np.ix_(block, block)] += 3
    score = None
    if known:
        largest = np.sort(np.abs(A), axis=1)[:, -10:]
        score = np.sqrt(np.square(largest).sum(axis=1))
        score[block[0]] *= 1.2  # which is corrected
    way = plan(starts=20, rounds=((1, 15, 10), (2, 10, 10)), exact=exact, nodes=0)
    found, values, _, told = _core.search(A, 10, way, score, known)
    assert told[0] == 20
    assert found[0].tolist() == block.tolist()
    assert values[0] == pytest.approx(value_of(A, block), rel=1e-12)
    if known:
        assert score[block[0]] == pytest.approx(np.linalg.norm(np.sort(np.abs(A[block[0]]))[-10:]), rel=1e-6)


@pytest.mark.parametrize("width", [8, 12, 16])
@pytest.mark.parametrize("exact", [0, 200])
def test_all_columns_raced_are_as_good_as_run_to_their_ends(exact, width):
    rng = np.random.default_rng(2)
    for _ in range(4):
        X = rng.standard_normal((60, 200)) @ (np.eye(200) + 0.2 * rng.standard_normal((200, 200)))
        A = np.cov(X.T)
        every = _core.search(A, 8, plan(rounds=(), ends=40, swapped=40, nodes=0))[1][0]
        rounds = (1, 100, width), (2, 40, min(width, 12))
        raced = _core.search(A, 8, plan(rounds=rounds, exact=exact, nodes=0))[1][0]
        assert raced >= every * 0.995
        assert every >= raced * (1 - 1e-12)


def test_the_tree_goes_on_after_the_race_and_ends_where_no_proof_is_near():
    A = np.cov(normal(3, 50, 50).T)
    nodes = [_core.search(A, 20, plan(nodes=30, hopeless=h))[3][3] for h in (9.0, 0.01)]
    assert 8 < nodes[0] < 30  # more wait in the end than it may divide
    assert nodes[1] == 1
    X = normal(3, 1000, 50)
    *_, told = _core.search(np.cov(X.T), 5, plan())
    assert told[4]
    assert told[3] > 8
    assert told[0] == 51


@pytest.mark.parametrize("nodes", [0, 100])
def test_nothing_is_found_where_there_is_nothing(nodes):
    found, values, runs, told = _core.search(np.zeros((6, 6)), 2, plan(nodes=nodes))
    assert len(found) == len(values) == len(runs) == 0
    assert not told[4]
    with pytest.raises(ValueError, match="7 nonzeros of 6 variables"):
        _core.search(np.eye(6), 7, plan())


@pytest.mark.parametrize("nodes", [0, 100])
@pytest.mark.parametrize("p", [1, 7, 300])
@each_dtype
def test_a_matrix_that_is_not_finite_ends_it_without_harm(p, nodes, dtype):
    for wrong, k in ((wrong, k) for wrong in (np.nan, np.inf) for k in {1, max(1, p // 2), p}):
        A = np.eye(p, dtype=dtype)
        A[p // 3 :, p // 3] = A[p // 3, p // 3 :] = wrong
        with contextlib.suppress(ValueError):  # a product is not finite
            found = _core.search(A, k, plan(nodes=nodes))[0]
            assert ((found >= 0) & (found < p)).all()


@pytest.mark.parametrize("p", [30, 500])
def test_a_callback_ends_it_with_what_was_found(p):
    class Ended:
        ended = True

        def __call__(self, n_iter):
            return True

    A = np.cov(normal(0, 40, p).T)
    found, values, _, told = _core.search(A, 5, plan(), progress=Ended())
    assert not told[4]
    assert len(found) == len(values)

    def wrong(n_iter):
        raise KeyError

    wrong.ended = True
    with pytest.raises(KeyError):
        _core.search(A, 5, plan(), progress=wrong)
