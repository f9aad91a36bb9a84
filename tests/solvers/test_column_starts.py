"""The columns of A that promise most, where searches start: against loops, and all single variables."""

import flat
import numpy as np
import pytest
from oracles import covariance

from spcacore import pmd, scotlass
from spcacore.solvers.starts import LargestEntries, ThresholdedEntries, promising_columns


def topics(seed, p=260, sizes=(3, 5, 12), n=400):
    """A correlation matrix with blocks of variables, of which a dense background hides the best."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) + 0.6 * rng.standard_normal((n, 1)) * rng.choice([-1, 1], p)
    first = 0
    for size in sizes:
        X[:, first : first + size] += 1.5 * rng.standard_normal((n, 1))
        first += size
    return covariance(X, scale=True)


PROMISES = {
    "largest": (LargestEntries(4), lambda y: (np.sort(y**2)[-4:].sum(), set(np.argsort(-(y**2))[:4]))),
    "l1": (
        ThresholdedEntries(False, 0.4),
        lambda y: ((np.maximum(abs(y) - 0.4, 0) ** 2).sum(), set(np.flatnonzero(abs(y) > 0.4))),
    ),
    "l0": (
        ThresholdedEntries(True, 0.16),
        lambda y: (np.maximum(y**2 - 0.16, 0).sum(), set(np.flatnonzero(y**2 > 0.16))),
    ),
}


@pytest.mark.parametrize("name", PROMISES)
@pytest.mark.parametrize("p", [7, 300])
def test_columns_by_what_a_step_reaches(name, p):
    rng = np.random.default_rng(p)
    A = np.cov(rng.standard_normal((p + 9, p)) @ np.diag(rng.uniform(0.5, 2, p)), rowvar=False)
    A[:, 3] = A[3] = 0
    promise, naive = PROMISES[name]
    told = [naive(A[j] / np.sqrt(A[j, j])) if A[j, j] > 0 else (0, set()) for j in range(p)]
    expected, passed = [], set()
    for j in sorted(range(p), key=lambda j: -told[j][0]):
        if j not in passed and told[j][0] > 0 and len(expected) < 6:
            expected.append(j)
            passed |= told[j][1]
    assert promising_columns(A, promise, 6).tolist() == expected
    for j in expected:  # what it promises is a bound from below
        k = sorted(told[j][1])
        if name == "largest":
            assert np.linalg.eigvalsh(A[np.ix_(k, k)])[-1] >= told[j][0] * (1 - 1e-12)


def objective(A, z, penalty, norm):
    square = z @ A @ z
    if norm == "l0":
        return square - penalty * np.count_nonzero(z)
    return np.sqrt(square) - penalty * np.abs(z).sum()


@pytest.mark.share(12)
@pytest.mark.parametrize(("norm", "penalty"), [("l1", 0.3), ("l1", 0.6), ("l0", 0.1), ("l0", 0.3)])
@pytest.mark.parametrize("seed", range(3))
def test_generalized_power_where_all_variances_are_equal(norm, penalty, seed):
    A = topics(seed)
    options = {"norm": norm, "kind": "covariance", "renormalize": False}
    found = objective(A, flat.gpower(A, penalty, **options).loading, penalty, norm)
    each = (flat.gpower(A, penalty, start=e, **options).loading for e in np.eye(len(A))[::3])
    assert found >= max(objective(A, z, penalty, norm) for z in each) * (1 - 2e-3)


@pytest.mark.share(12)
@pytest.mark.filterwarnings("ignore:not converged")
@pytest.mark.parametrize("solver", [pmd, scotlass])
@pytest.mark.parametrize("bound", [1.5, 2.0, 3.0])
def test_bounded_norms_where_all_variances_are_equal(solver, bound):
    A = topics(0)
    name, options = solver.__name__, {"kind": "covariance"}
    found = solver(A, bound, **flat.recorded(name, options)).value
    each = [
        solver(A, bound, **flat.recorded(name, {**options, "start": e})).value for e in np.eye(len(A))[::6]
    ]
    assert found >= max(each) * (1 - 2e-3)
