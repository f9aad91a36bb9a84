"""Races from the columns of A: against runs from every column, and near the threshold of detection."""

import tracemalloc
from dataclasses import replace
from itertools import combinations
from math import comb, log, sqrt
from types import SimpleNamespace

import flat
import numpy as np
import pytest
import scipy.sparse
from in_turn import each_dtype, each_kind, scaled_or_not
from numpy.testing import assert_allclose
from oracles import centered, largest_on, leading_on, normal

import spcacore
from spcacore import _core, sparse_pca, tpower
from spcacore._limits import NEIGHBOR_LARGEST
from spcacore.operators import field as fields
from spcacore.operators.deflation import DEFLATIONS, DeflatedOperator
from spcacore.operators.field import norms_among_neighbors
from spcacore.operators.inputs import as_problem
from spcacore.solvers import field_search, starts
from spcacore.solvers.field_search import rises_above_noise
from spcacore.solvers.solution import Solution


def in_blocks(X):
    return spcacore.row_blocks(X, block_bytes=X.nbytes // 4)


def counts(rng):
    """Words of topics, most of them rare: log(1 + counts)."""
    topics = rng.gamma(0.05, 1, (12, 400)) * np.exp(rng.standard_normal(400))
    return np.log1p(rng.poisson(rng.gamma(0.2, 3, (300, 12)) @ topics))


def genotypes(rng):
    """0, 1, 2 in blocks of linkage."""
    base = np.repeat(rng.standard_normal((150, 25)), 16, axis=1)
    X = 0.8 * base + 0.6 * rng.standard_normal((150, 400))
    return np.digitize(X, [0.4, 1.4]).astype(float)


def factors(rng):
    """Dense factors, and a scale of each variable."""
    X = rng.standard_normal((60, 15)) @ rng.standard_normal((15, 400)) + rng.standard_normal((60, 400))
    return X * np.exp(0.5 * rng.standard_normal(400))


def noise(rng):
    return rng.standard_normal((80, 400))


def best_of_all_columns(A, k):
    """The best value of truncated power from every column, re-fitted on its support."""
    best = 0.0
    for j in range(len(A)):
        support, x = np.array([j]), np.ones(1)
        for _ in range(100):
            y = A[:, support] @ x
            new = np.sort(np.argsort(-np.abs(y), kind="stable")[:k])
            x = y[new] / np.linalg.norm(y[new])
            if np.array_equal(new, support):
                break
            support = new
        best = max(best, largest_on(A, support))
    return best


SMALL = {
    "FIELD_AT_ONCE": 100,
    "FIELD_PROBE": 64,
    "FIELD_PROBE_EACH": 1,
}  # the routes of large data, on data of 400 variables
ROUTES = {
    "at once": {},
    "after a part": SMALL,
    "in a part": SMALL | {"FIELD_ORDER": 256, "FIELD_SOME": 256},
}


def limited(monkeypatch, limits):
    for name, value in limits.items():
        monkeypatch.setattr(field_search, name, value)


@pytest.mark.share(8)
@scaled_or_not
@pytest.mark.parametrize("make", [counts, genotypes, factors, noise])
@pytest.mark.parametrize("route", ROUTES)
def test_no_start_is_better_than_the_default(make, scale, route, monkeypatch):
    """Whatever the storage, within a thousandth; where A is searched in a part, within half a hundredth."""
    X = make(np.random.default_rng(4))
    X = X[:, X.std(axis=0) > 0]
    A = np.corrcoef(X.T) if scale else np.cov(X.T)
    least = best_of_all_columns(A, 10) * (0.995 if route == "in a part" else 0.999)
    limited(monkeypatch, ROUTES[route])
    kept = {
        "C": X,
        "F": np.asfortranarray(X),
        "csr": scipy.sparse.csr_array(X),
        "float32": X.astype(np.float32),
    }
    for storage in kept if route == "at once" else ("C", "csr"):
        assert tpower(kept[storage], 10, scale=scale).value >= least, storage
    if route == "at once":
        assert tpower(A, 10, kind="covariance").value >= least


def test_noise_of_one_component_tells_where_to_race_for_the_next(monkeypatch):
    """With a third fewer starts; runs from every column, after the same projections, find nothing better.

    After two components the search begins anew.
    """
    X = noise(np.random.default_rng(3))
    limited(monkeypatch, ROUTES["in a part"])
    found = sparse_pca(X, 4, 10)
    first, second, third, fourth = found.n_starts.tolist()
    assert max(second, fourth) <= min(first, third) - 250
    A = np.cov(X.T)
    for v in found.loadings.T:
        S = v != 0
        assert largest_on(A, S) >= best_of_all_columns(A, 10)
        Q = np.eye(len(A)) - np.outer(v, v)
        A = Q @ A @ Q


def modules(seed, n, p, k, count):
    """Groups of k of p variables that share a factor, all of one variance, and what they explain."""
    rng = np.random.default_rng(seed)
    X, groups = rng.standard_t(6, (n, p)) / 1.5**0.5, []
    for share in rng.uniform(2.5, 8, count) / np.sqrt(n):
        groups.append(rng.choice(p, k, replace=False))
        signed = rng.choice([-1, 1], k) * rng.standard_normal((n, 1))
        X[:, groups[-1]] = np.sqrt(1 - share) * X[:, groups[-1]] + np.sqrt(share) * signed
    values = [np.linalg.eigvalsh(np.cov(X[:, S].T))[-1] for S in groups]
    return X, np.sort(values)[::-1]


@pytest.mark.parametrize(
    ("seed", "n", "p", "k", "storage"),
    [
        (0, 130, 4500, 60, np.asarray),
        (1, 200, 8500, 25, np.asfortranarray),
        (2, 150, 5200, 40, in_blocks),
        pytest.param(3, 130, 30_000, 50, np.asarray, marks=pytest.mark.slow),
        pytest.param(4, 130, 30_000, 50, in_blocks, marks=pytest.mark.slow),
    ],
)
def test_modules_of_one_variance_are_found_in_their_order(seed, n, p, k, storage):
    """No variance, and no part of the variables, tells of a dozen groups of so many variables."""
    X, planted = modules(seed, n, p, k, 12)
    r = 3 if p < 10_000 else 1  # of more variables fewer columns are tried
    found = sparse_pca(storage(X), r, cardinality=k).explained_variance
    assert_allclose(np.maximum(found, planted[:r]), found, rtol=2e-3)


@pytest.mark.parametrize("storage", [np.asarray, np.asfortranarray, scipy.sparse.csr_array, in_blocks])
@pytest.mark.parametrize("count", [20, 100])  # fewer and more than come in single precision
@pytest.mark.parametrize("deflation", ["projection", "hotelling"])
@each_dtype
def test_steps_from_columns_promise_no_more_than_their_ends_explain(storage, count, deflation, dtype):
    """The leading eigenvalue on a support is no less; the best end is nearly that of all columns.

    Both deflations do the same to an eigenvector.
    """
    X = modules(5, 80, 100, 8, 3)[0].astype(dtype)
    before = np.arange(1, 9)
    if deflation == "hotelling":
        score = np.resize([dtype(3), dtype(-3)], 80)
        X -= np.outer(score, score @ X / (score @ score))
        X[:, before] = np.outer(score, np.full(8, 8**-0.5))
    problem = as_problem(storage(X), scale=False, screening="none")
    state = DeflatedOperator.from_problem(problem, DEFLATIONS[deflation])
    state = state.deflate(before, np.full(8, 8**-0.5, dtype))
    P = np.eye(100)
    P[np.ix_(before, before)] -= 1 / 8
    A = P @ np.cov(X.T.astype(float)) @ P
    index = np.arange(100)[-count:]
    ends = starts.ends_of_columns(state, 8, index)
    assert len({S.tobytes() for S, _ in ends}) == len(ends) > 3
    for S, bound in ends:
        assert state.problem.in_units(bound) <= largest_on(A, S) * (1 + 1e-5)
    assert largest_on(A, ends[0][0]) >= 0.95 * best_of_all_columns(A, 8)


def test_steps_from_columns_take_room_for_some_of_them(monkeypatch, rng):
    """For the vectors that come at a time, for their products with A, and for the supports."""
    problem = as_problem(scipy.sparse.csr_array(rng.standard_normal((20, 2000))), screening="none")
    monkeypatch.setattr(starts, "RANDOM_ENTRIES", 200 * 2000)
    state = DeflatedOperator.from_problem(problem)
    starts.ends_of_columns(state, 8, np.arange(10))
    tracemalloc.start()
    starts.ends_of_columns(state, 8, np.arange(800))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * 200 * 2000 * 8


def test_a_component_that_explains_little_is_asked_about(monkeypatch):
    """From one start the fourth planted component comes before the third."""
    X, V = spcacore.datasets.make_spiked(100, 2000, cardinality=15, variances=(10, 9.5, 9, 8.5, 8), rng=9)
    limited(monkeypatch, SMALL | {"FIELD_PROBE": 128})
    common = (sparse_pca(X, 5, 15).loadings != 0).T.astype(int) @ (V != 0)
    assert common.argmax(axis=1).tolist() == [0, 1, 2, 3, 4]


def test_equal_variances_tell_no_part_of_the_variables(monkeypatch):
    """Standardized data race at once, however many variables."""
    X, _ = spcacore.datasets.make_spiked(100, 400, cardinality=10, variances=(12, 8), rng=0)
    limited(monkeypatch, SMALL | {"FIELD_ORDER": 200, "FIELD_SOME": 150})
    assert sparse_pca(X, 2, 10, scale=True).n_starts.min() > field_search.RACE_STARTS // 3


@pytest.mark.parametrize("seed", [0, 8])
def test_a_block_is_found_of_which_a_part_of_all_variables_has_few(monkeypatch, rng):
    """Sixty blocks of ten variables of one variance, one more correlated: 300 of 1500 have two of it."""
    block = np.repeat(np.arange(150), 10)
    share = np.where(block == 0, 0.55, np.where(block < 60, 0.4, 0.0))
    X = np.sqrt(share) * rng.standard_normal((150, 150))[:, block]
    X += np.sqrt(1 - share) * rng.standard_normal(X.shape)
    order = rng.permutation(1500)
    limited(monkeypatch, ROUTES["in a part"] | {"FIELD_ORDER": 300, "FIELD_SOME": 300})
    found = tpower(X[:, order], 10, scale=True)
    assert set(order[found.loading != 0]) == set(range(10))


@pytest.mark.parametrize(("seed", "storage"), [(3, np.asarray), (4, scipy.sparse.csr_array)])
def test_a_block_is_found_that_variances_do_not_tell(storage, monkeypatch, rng):
    """Six of 2000 variables, one of them among 300 at random; a weaker factor has many."""
    X = rng.standard_normal((60, 2000))
    X[:, :400] += 0.75 * rng.standard_normal((60, 1)) * np.ones(400)
    X[:, -6:] = 0.2 * X[:, -6:] + rng.standard_normal((60, 1))
    limited(monkeypatch, {"FIELD_AT_ONCE": 300, "FIELD_ORDER": 600, "FIELD_SOME": 300})
    assert np.flatnonzero(tpower(storage(X), 6, scale=True).loading).tolist() == [*range(1994, 2000)]


@pytest.mark.parametrize("storage", [np.asarray, np.asfortranarray, scipy.sparse.csr_array, in_blocks])
def test_norms_among_neighbors(storage):
    """By the definition, where all variables are neighbors; of more, copies of one are."""
    X = normal(0, 50, 64)
    options = {"scale": True, "screening": "none"}
    R = np.sort(np.abs(np.corrcoef(X.T)), axis=1)[:, -NEIGHBOR_LARGEST:]
    found = norms_among_neighbors(as_problem(storage(X), **options), (0,))
    assert_allclose(found, np.linalg.norm(R, axis=1), atol=1e-3)
    X = np.hstack([np.repeat(X[:, :10], 8, axis=1) * np.resize([1, -3], 80), X, X[:, :56] ** 2])
    found = norms_among_neighbors(as_problem(storage(X), **options), (0,))
    assert found[:80].min() > 8**0.5 > found[144:].max()


@pytest.mark.parametrize(("seed", "storage"), [(1, np.asarray), (3, scipy.sparse.csr_array)])
def test_the_largest_entries_of_no_sample_explain_more(storage, monkeypatch, rng):
    """Of rare counts, whose best components are variables that have few samples, and these in common."""
    X = rng.poisson(rng.gamma(0.5, 0.02, 3000), (200, 3000)).astype(float)
    X = X[:, X.std(axis=0) > 0]
    limited(monkeypatch, ROUTES["in a part"])
    found = tpower(storage(X), 10, scale=True)
    Z = centered(X) / X.std(axis=0, ddof=1)
    samples = [Z[:, np.argsort(-np.abs(z))[:10]] for z in Z]
    assert found.value >= max(np.linalg.eigvalsh(np.cov(S.T))[-1] for S in samples) * (1 - 1e-9)


@pytest.mark.parametrize("storage", [np.asarray, scipy.sparse.csc_array, in_blocks])
@pytest.mark.parametrize("weights", [None, np.linspace(0.5, 2, 60)])
def test_samples_that_explain_most_by_themselves(storage, weights):
    """The k variables of a sample by its entries, in units of deviations; none of an earlier component."""
    X = np.random.default_rng(0).standard_t(1.5, (60, 500))
    problem = as_problem(storage(X), scale=True, sample_weight=weights)
    first = DeflatedOperator.from_problem(problem)
    state = replace(first, loadings=((np.arange(20), np.full(20, 20**-0.5)),))
    w = np.ones(60) if weights is None else weights
    Z = X - np.average(X, axis=0, weights=w)
    square = w[:, None] * Z**2
    square /= square.sum(axis=0)
    square[:, :20] = 0
    best = np.argsort(-square, axis=1)[:, :10]
    explained = np.take_along_axis(square, best, axis=1).sum(axis=1)
    value = np.sort(explained)[-5:].mean() / starts.EXTREME_LEAST
    expected = [set(best[i]) for i in np.flatnonzero(explained >= starts.EXTREME_LEAST * value)]
    found = [set(S) for S in starts.extreme_samples(state, 10, value)]
    assert 0 < len(expected) < 5
    assert found == expected
    assert problem.extreme().all()  # what is known of the data stays


@each_kind
def test_variables_of_weak_signals_are_swapped(kind):
    """Of 50 nonzeros, too: one of the smallest for one that is likely to enter does not raise the value."""
    X = normal(0, 500, 1000)
    A = np.cov(X.T)
    found = tpower(X if kind == "data" else A, 50, kind=kind)
    S, y = np.flatnonzero(found.loading), np.abs(A @ found.loading)
    for j in [j for j in np.argsort(-y) if j not in S][:40]:
        for i in S[np.argsort(np.abs(found.loading[S]))[:10]]:
            T = np.append(S[i != S], j)
            assert largest_on(A, T) <= found.value * (1 + 1e-8)


@pytest.mark.parametrize(("seed", "blocks"), [(0, 0), (3, 0), (2, 40), (3, 40)])
def test_few_columns_tell_of_blocks_beneath_larger_variances(blocks, rng):
    """Twenty variables of larger variance have a signal; of each block a part has two, if there is any."""
    X = (1.5 if blocks else 1.0) * rng.standard_normal((100, 4000))
    order = rng.permutation(4000)
    shared = np.repeat(rng.standard_normal((100, blocks)), 20, axis=1)
    X[:, order[: 20 * blocks]] = 1.1 * shared + 0.4 * rng.standard_normal(shared.shape)
    X[:, order[-20:]] = 1.1 * rng.standard_normal((100, 1)) + 1.2 * rng.standard_normal((100, 20))
    (found,) = set(np.flatnonzero(sparse_pca(X, 1, 20).loadings[order]) // 20)
    assert found < blocks if blocks else found == 199


@pytest.mark.parametrize("count", [1, 3, 40, 300])
@pytest.mark.parametrize("p", [40, 129, 1000, 3000, 9000])
@each_dtype
def test_norms_of_the_largest_entries(p, count, dtype):
    rng = np.random.default_rng(p)
    A = rng.standard_normal((3, p)).astype(dtype)
    A[1] = rng.integers(-2, 3, p)  # ties
    A[2, rng.permutation(p)[p // 2 :]] = 0
    k = min(count, p)
    square = np.zeros((p, p), dtype)
    square[:3] = A
    expected = np.sqrt(np.square(np.sort(np.abs(A.astype(np.float64)), axis=1)[:, p - k :]).sum(axis=1))
    assert_allclose(_core.largest_norms(square, np.arange(3), k), expected, rtol=1e-5)


@pytest.mark.parametrize("deflation", ["projection", "schur", "hotelling", "orthogonalized_projection"])
@pytest.mark.parametrize("storage", ["C", "F", "csr", "csc", "covariance"])
@pytest.mark.parametrize("most", [60, 30, 12])  # the third component fills the last
def test_components_are_removed_from_a_field(storage, deflation, most):
    """By the definition of the deflation; in a part of A, variables of a component join."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((40, 60)) * rng.uniform(1, 2, 60)
    forms = {"F": np.asfortranarray, "csr": scipy.sparse.csr_array, "csc": scipy.sparse.csc_array}
    A = np.cov(X.T)
    given = A if storage == "covariance" else forms.get(storage, np.asarray)(X)
    problem = as_problem(given, kind="covariance" if storage == "covariance" else "data")
    state = DeflatedOperator.from_problem(problem, DEFLATIONS[deflation])
    ground, span = fields.Ground(), np.zeros((60, 0))
    assert ground.field(state, most, False) is not None
    for _ in range(3):
        index = np.sort(rng.choice(60, 5, replace=False))
        x = np.zeros(60)
        x[index] = rng.standard_normal(5)
        x /= np.linalg.norm(x)
        state = state.deflate(index, x[index])
        z = x - span @ (span.T @ x) if deflation.startswith("orth") else x
        z /= np.linalg.norm(z)
        span = np.column_stack([span, z])
        if deflation == "schur":
            A = A - np.outer(A @ z, A @ z) / (z @ A @ z)
        elif deflation == "hotelling":
            A = A - (z @ A @ z) * np.outer(z, z)
        else:
            P = np.eye(60) - np.outer(z, z)
            A = P @ A @ P
        field = ground.field(state, most, False)
        if field is None:  # a part that lacks variables, which join where each component is removed by itself
            assert most < 60
            assert deflation != "projection"
            return
        size = problem.in_units(field.matrix.astype(float))
        assert_allclose(size, A[np.ix_(field.index, field.index)], atol=2e-5)
        assert np.isin(index, field.index).all()


def weak_signal(spike, seed, p):
    """Equal loadings of random signs, of so much variance, on unit noise; and their support."""
    rng = np.random.default_rng(seed)
    support = rng.choice(p, 20, replace=False)
    v = np.zeros(p)
    v[support] = rng.choice([-1, 1], 20) / np.sqrt(20)
    return rng.standard_normal((500, p)) + np.sqrt(spike) * rng.standard_normal((500, 1)) * v, set(support)


def mean_recall(spike, seeds, p=1000, scale=False):
    shares = []
    for seed in seeds:
        X, support = weak_signal(spike, seed, p=p)
        found = np.flatnonzero(tpower(X, 20, scale=scale).loading)
        shares.append(len(support & set(found.tolist())) / 20)
    return np.mean(shares)


@pytest.mark.parametrize(
    ("seeds", "p", "spike", "scale", "least"),
    [
        ([0, 4, 6, 9], 1000, 1.27, False, 0.7),  # which the largest variances and the first columns miss
        ([1], 1000, 1.27, False, 0.5),  # as do runs of k nonzeros
        ([0, 1], 8000, 1.8, False, 0.8),  # half of it has no large variance: a race in a part of A
        pytest.param(range(30), 1000, 1.27, False, 0.75, marks=pytest.mark.slow),
        pytest.param(range(30), 1000, 1.42, False, 0.85, marks=pytest.mark.slow),
        pytest.param(range(30), 5000, 1.7, False, 0.8, marks=pytest.mark.slow),
        pytest.param(range(30), 5000, 2.0, True, 0.9, marks=pytest.mark.slow),
        pytest.param(range(10), 20_000, 1.8, False, 0.6, marks=pytest.mark.slow),
    ],
)
def test_a_weak_signal_is_found(seeds, p, spike, scale, least):
    """From the truth, the recall of the slow ones is .82, .89, .91, .95 and .91."""
    assert mean_recall(spike, seeds, p, scale) >= least


@pytest.mark.parametrize("storage", ["C", "F", "csr", "covariance"])
def test_a_field_around_supports(storage):
    """By the definition: the largest entries of A v for the leading vector v on each support."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((50, 200)) * rng.uniform(1, 2, 200)
    X[:, 20:40] += rng.standard_normal((50, 1))
    A = np.cov(X.T)
    given = {"F": np.asfortranarray, "csr": scipy.sparse.csr_array}.get(storage, np.asarray)(X)
    kind = "covariance" if storage == "covariance" else "data"
    problem = as_problem(A if kind == "covariance" else given, kind=kind)
    state = DeflatedOperator.from_problem(problem)
    field = fields.Ground().field(state, 100, True)
    supports, expected = [np.sort(rng.choice(field.index, 6, replace=False)) for _ in range(3)], set()
    for S in supports:
        v = leading_on(A, S)
        expected |= {*S.tolist(), *np.argsort(-np.abs(A[:, S] @ v))[:12].tolist()}
    found = field.around(supports, 12, 200)
    assert set(found.tolist()) == expected
    size = problem.in_units(fields.Field(problem, found).matrix.astype(float))
    assert_allclose(size, A[np.ix_(found, found)], atol=2e-5)
    assert set(supports[0]) <= set(field.around(supports, 12, 13))


@pytest.mark.share(3)
@pytest.mark.parametrize("tiny", [1e-35, 3e-39, 1e-42, 1e-60, 1e-160])
@pytest.mark.parametrize("kind", ["data", "csr", "covariance"])
def test_variables_of_hardly_any_variance_are_as_good_as_absent(kind, tiny, capfd, rng):
    """Their covariances are no normal numbers in single precision, in which starts are found."""
    X = rng.standard_normal((300, 120))
    large = np.arange(120) % 7 > 0
    X[:, ~large] *= tiny

    def values(X):
        A = np.cov(X.T) if kind == "covariance" else scipy.sparse.csr_array(X) if kind == "csr" else X
        found = sparse_pca(A, 2, cardinality=10, kind="covariance" if kind == "covariance" else "data")
        return found.loadings, found.explained_variance

    loadings, variance = values(X)
    assert not loadings[~large].any()
    assert_allclose(variance, values(X[:, large])[1], rtol=0.05)
    some = loadings[:, 0] != 0
    leading = np.linalg.eigvalsh(np.cov(X[:, some].T))[-1]
    assert_allclose(loadings[some, 0] @ np.cov(X[:, some].T) @ loadings[some, 0], leading)
    assert capfd.readouterr().out == ""  # where LAPACK complains


@each_kind
@pytest.mark.parametrize("k", [3, 6, 20])
def test_the_correlation_that_noise_does_not_explain(k, kind):
    """Of correlations +-c, which have the median c; among k variables all are r, whatever their units.

    Correlations of n - 1 degrees of freedom deviate by (n - 1)^(-1/2) at least, even if most are smaller.
    Where A is a matrix, a mean by unequal weights counts as that of m, which has its variance.
    """
    p, c = 64, 0.01
    rng = np.random.default_rng(k)
    R = np.triu(rng.choice([-c, c], (p, p)), 1)
    R += R.T + np.eye(p)
    inside = np.sort(rng.choice(p, k, replace=False))
    root = rng.uniform(1, 4, p)
    x = rng.uniform(0.1, 1, k)
    x /= np.linalg.norm(x)
    weights = np.array(
        [x[i] * root[inside[i]] * x[j] * root[inside[j]] for i, j in combinations(range(k), 2)]
    )
    m = k * (k - 1) / 2 if kind == "data" else 1 / np.square(weights / weights.sum()).sum()
    noise = c / 0.67449 if kind == "covariance" else (p - 1) ** -0.5
    level = 2 * noise * sqrt(2 * log(comb(p, k)) / m)
    for r, above in ((0.99 * level, False), (1.01 * level, True)):
        R[np.ix_(inside, inside)] = r + (1 - r) * np.eye(k)
        A = R * root * root[:, None]
        X = A if kind == "covariance" else np.linalg.cholesky(A).T * sqrt(p)
        problem = as_problem(X, kind=kind, center=False, definite=kind == "data")
        state = DeflatedOperator.from_problem(problem)
        value = x @ state.operator.apply(inside, x)[inside]
        found = Solution(inside, x, float(value), 0, True)
        assert rises_above_noise(state, found) == above
        for known, trusted in ((None, False), (0.49 * noise, True), (0.52 * noise, False)):
            kept = SimpleNamespace(noise=known)  # an earlier estimate decides where twice as much would
            assert rises_above_noise(state.with_problem(working_set=kept), found) == (above or trusted)
            assert kept.noise == (known if trusted else pytest.approx(noise, rel=1e-9))


def test_dependent_variables_hide_no_weak_signal(rng):
    """Correlations that deviate by more than those of independent variables are not noise."""
    X = rng.standard_normal((200, 2)) @ rng.standard_normal((2, 300)) + rng.standard_normal((200, 300))
    for data, above in ((X, True), (rng.standard_normal((200, 300)), False)):
        problem = as_problem(data)
        index = np.arange(5)
        state = DeflatedOperator.from_problem(problem)
        value = float(np.cov(data[:, :5].T).sum()) / 5
        x = Solution(index, np.full(5, sqrt(0.2)), value, 0, True)
        assert rises_above_noise(state, x) == above


@pytest.mark.parametrize("k", [29, 31, 45, 58])
def test_a_race_in_a_part_of_the_variables_needs_room_for_the_support(k):
    """Of noise, where a race also runs among half of the variables: as good as on the covariance matrix."""
    X = normal(0, 40, 60)
    found = spcacore.sparse_pca(X, 1, k)
    assert found.cardinality.tolist() == [k]
    A = np.cov(X, rowvar=False)
    given = flat.tpower(A, k, n_starts=60, kind="covariance")
    assert found.explained_variance[0] >= given.value * (1 - 2e-3)
    with pytest.raises(ValueError, match="31 nonzeros of 30 variables"):
        spcacore._core.truncated_power_of_matrix(
            A[:30, :30].copy(), np.zeros((1, 1), int), np.ones((1, 1)), 31, 5, 0.0
        )
