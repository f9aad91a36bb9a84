"""Where searches start, against loops and all single variables; how many starts there were, by counting."""

import flat
import numpy as np
import pytest
import scipy.sparse
from oracles import covariance, largest_on, normal

import spcacore
from spcacore import _core, pmd, scotlass
from spcacore.solvers.starts import LargestEntries, ThresholdedEntries, power_start, promising_columns

# ---- the columns of A that promise most ---------------------------------------------------------------


def topics(seed):
    """A correlation matrix with blocks of variables, of which a dense background hides the best."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((400, 260)) + 0.6 * rng.standard_normal((400, 1)) * rng.choice([-1, 1], 260)
    for block in (slice(0, 3), slice(3, 8), slice(8, 20)):
        X[:, block] += 1.5 * rng.standard_normal((400, 1))
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
            assert largest_on(A, k) >= told[j][0] * (1 - 1e-12)


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


# ---- how many starts a search made, and how many of its runs reached the best -------------------------


def two_blocks(other=0.9):
    """Blocks of three variables, of which the second is the better."""
    A = np.eye(6)
    A[:3, :3] += other * (1 - np.eye(3))
    A[3:6, 3:6] += 0.95 * (1 - np.eye(3))
    return A


def counts(found):
    return tuple(int(np.ravel(c)[0]) for c in (found.n_starts, found.n_ends, found.n_best))


def test_each_variable_leads_to_its_own_block():
    """Truncated power from a variable stays in its block, so three of six single starts reach the better."""
    found = flat.tpower(two_blocks(), 3, kind="covariance", n_starts=7)
    assert set(np.flatnonzero(found.loading)) == {3, 4, 5}
    starts, ends, best = counts(found)
    assert (starts, ends) == (7, 7)  # one from the leading variables, and each variable
    assert best - 3 in (0, 1)  # wherever the first start led
    whole = spcacore.sparse_pca(
        two_blocks(), 1, cardinality=3, kind="covariance", method=spcacore.TPower(n_starts=7)
    )
    assert counts(whole) == (starts, ends, best)


def test_runs_that_reach_the_same_value_on_different_variables_agree():
    """The blocks are the same, so that each run ends at 2.9: so say they by every kind of step."""
    options = {"kind": "covariance", "n_starts": 7}
    A = two_blocks(other=0.95)
    for found in (
        flat.tpower(A, 3, **options),
        flat.pmd(A, 1.7, **options),
        flat.scotlass(A, 1.7, **options),
    ):
        assert counts(found) == (7, 7, 7)


def test_eight_power_steps_lead_to_the_leading_eigenvector():
    """Those of an eigenvalue of 1 are 4^-8 of what they were beside that of 4."""
    V, _ = np.linalg.qr(normal(0, 30, 30))
    v = power_start(_core.dense(np.eye(30) + 3 * np.outer(V[0], V[0]), True), np.random.default_rng(1))
    assert abs(v @ V[0]) >= (1 - 1e-6) * np.linalg.norm(v)


@pytest.mark.share(4)
@pytest.mark.parametrize("p", [40, 400, 3500])
@pytest.mark.parametrize("kind", ["data", "covariance", "csr"])
def test_a_race_has_more_starts_than_ends(p, kind):
    if p > 1000 and kind == "covariance":
        pytest.skip("as with fewer variables")
    rng = np.random.default_rng(1)
    X = rng.standard_normal((50, p)) * np.exp(0.3 * rng.standard_normal(p))
    given = {"covariance": np.cov(X.T) if p <= 1000 else None, "csr": scipy.sparse.csr_array(X)}.get(kind, X)
    result = spcacore.sparse_pca(
        given, 2, cardinality=6, kind="covariance" if kind == "covariance" else "data"
    )
    assert (result.n_starts >= result.n_ends).all()
    assert (result.n_ends >= result.n_best).all()
    assert (result.n_best >= 1).all()
    assert p == 40 or (result.n_starts >= 100).all()  # of few variables a tree may prove the first end


def test_planted_components_are_reached_by_most_runs_and_noise_by_few():
    strong, _ = spcacore.datasets.make_spiked(100, 400, cardinality=10, variances=[50.0], rng=0)
    noise = normal(0, 100, 400)
    shares = [
        (found.n_best / found.n_ends)[0] for X in (strong, noise)
        for found in [spcacore.sparse_pca(X, 1, cardinality=10)]
    ]  # fmt: skip
    assert shares[0] > 2 * shares[1]


def test_the_summary_names_components_that_one_run_reached():
    noise = normal(0, 100, 400)
    result = spcacore.sparse_pca(noise, 2, cardinality=10, method=spcacore.TPower(n_starts=12))
    lone = [t + 1 for t in range(2) if result.n_best[t] == 1 and result.n_ends[t] >= 3]
    assert lone
    said = f"starts (n_starts) may find better: component{'s' * (len(lone) > 1)} {', '.join(map(str, lone))}"
    assert said in result.summary()
    assert (
        "more starts" not in spcacore.sparse_pca(two_blocks(), 1, cardinality=3, kind="covariance").summary()
    )


def test_components_that_are_added_keep_the_counts():
    X = normal(2, 60, 80)
    first = spcacore.sparse_pca(X, 2, cardinality=5)
    more = first.extend(X, 1)
    assert more.n_starts[:2].tolist() == first.n_starts.tolist()
    assert more.n_best[:2].tolist() == first.n_best.tolist()
    assert len(more.n_starts) == 3
