"""How many starts a search made, and how many of its runs reached the best: by hand, and by counting."""

import flat
import numpy as np
import pytest
import scipy.sparse

import spcacore
from spcacore import _core
from spcacore.solvers.starts import power_start


def two_blocks(p=6, other=0.9):
    """Blocks of three variables, of which the second is the better."""
    A = np.eye(p)
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


def test_eight_power_steps_lead_to_the_leading_eigenvector():
    """Those of an eigenvalue of 1 are 4^-8 of what they were beside that of 4."""
    V, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((30, 30)))
    v = power_start(_core.dense(np.eye(30) + 3 * np.outer(V[0], V[0]), True), np.random.default_rng(1))
    assert abs(v @ V[0]) >= (1 - 1e-6) * np.linalg.norm(v)


@pytest.mark.parametrize("n_starts", [1, 2, 5, 40])
@pytest.mark.parametrize("storage", [np.asarray, np.asfortranarray, scipy.sparse.csr_array])
def test_as_many_starts_as_asked_for(storage, n_starts):
    X = np.random.default_rng(0).standard_normal((30, 60))
    starts, ends, best = counts(flat.tpower(storage(X), 4, n_starts=n_starts))
    assert starts == ends == n_starts
    assert 1 <= best <= ends


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
    noise = np.random.default_rng(0).standard_normal((100, 400))
    shares = [
        (found.n_best / found.n_ends)[0] for X in (strong, noise)
        for found in [spcacore.sparse_pca(X, 1, cardinality=10)]
    ]  # fmt: skip
    assert shares[0] > 2 * shares[1]


def test_the_summary_names_components_that_one_run_reached():
    noise = np.random.default_rng(0).standard_normal((100, 400))
    result = spcacore.sparse_pca(noise, 2, cardinality=10, method=spcacore.TPower(n_starts=12))
    lone = [t + 1 for t in range(2) if result.n_best[t] == 1 and result.n_ends[t] >= 3]
    assert lone
    assert f"more starts may find better: component {', '.join(map(str, lone))}" in result.summary()
    assert (
        "more starts" not in spcacore.sparse_pca(two_blocks(), 1, cardinality=3, kind="covariance").summary()
    )


def test_components_that_are_added_keep_the_counts():
    X = np.random.default_rng(2).standard_normal((60, 80))
    first = spcacore.sparse_pca(X, 2, cardinality=5)
    more = first.extend(X, 1)
    assert more.n_starts[:2].tolist() == first.n_starts.tolist()
    assert more.n_best[:2].tolist() == first.n_best.tolist()
    assert len(more.n_starts) == 3
