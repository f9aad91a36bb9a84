"""Sparse clustering against explicit matrices of all pairs, enumeration, convex and other solvers."""

import itertools

import numpy as np
import pytest
import reference
import scipy.sparse
from extras import optional
from hypothesis import strategies as st
from in_turn import SEEDS, examples, of_examples
from numpy.testing import assert_allclose
from oracles import centered, normal
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import pdist, squareform

from spcacore import sparse_dissimilarity, sparse_dissimilarity_gap, sparse_kmeans
from spcacore.clustering import columns as memory
from spcacore.clustering.kmeans import lloyd

KMeans = optional("sklearn.cluster", "KMeans")
adjusted_rand_score = optional("sklearn.metrics", "adjusted_rand_score")
roc_auc_score = optional("sklearn.metrics", "roc_auc_score")

METRICS = ("sqeuclidean", "absolute")
BOTH = pytest.mark.parametrize("metric", METRICS)


def all_pairs(X, metric):
    """D, of n^2 rows."""
    d = np.abs(X[:, None, :] - X[None, :, :]).reshape(-1, X.shape[1])
    return d**2 if metric == "sqeuclidean" else d


def threshold(a, c):
    """argmax w'a."""
    return reference.l1_threshold(a, c)[0].astype(float)


def alternated(D, c):
    """The paper's iteration, from equal weights."""
    w = np.full(D.shape[1], D.shape[1] ** -0.5)
    for _ in range(100):
        w = threshold(D.T @ (D @ w), c)
    return w


def random_data(seed, low=3, high=10):
    rng = np.random.default_rng(seed)
    n, p = rng.integers(low, high, size=2)
    X = rng.standard_normal((n, p)) * rng.uniform(0.5, 2, p) + 10 * rng.standard_normal(p)
    X[: n // 2, : p // 2] += 2
    return X, 1 + rng.random() * (np.sqrt(p) - 1)


def planted(seed, shift, n=60, p=500, k=50):
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1, 2], n // 3)
    X = rng.standard_normal((n, p))
    X[:, :k] += shift * (y[:, None] - 1)
    return X, y


def cut(dissimilarity, k, method="average"):
    return fcluster(linkage(dissimilarity, method), k, "maxclust")


# ---- the dissimilarity ------------------------------------------------------------------------------


@BOTH
@of_examples(40, seed=SEEDS)
def test_explicit_matrix_of_all_pairs(metric, seed):
    X, c = random_data(seed)
    D = all_pairs(X, metric)
    result = sparse_dissimilarity(X, c, metric, max_iter=2000, tol=1e-10)
    w = result.weights
    assert (w >= 0).all()
    assert np.linalg.norm(w) <= 1 + 1e-12
    assert w.sum() <= c * (1 + 1e-12)
    assert result.objective == pytest.approx(np.linalg.norm(D @ w), rel=1e-9)
    assert_allclose(squareform(result.dissimilarity).ravel(), D @ w, rtol=1e-9, atol=1e-9)
    other = np.linalg.norm(D @ alternated(D, c))
    assert result.objective >= other * (1 - 1e-7)
    a = D.T @ (D @ w) / np.linalg.norm(D @ w)  # a stationary point: the threshold does not move it
    assert_allclose(w, threshold(a, c), atol=1e-6)
    assert (np.diff(result.trace) >= -1e-12 * result.objective).all()
    assert result.trace[-1] == result.objective


@BOTH
@of_examples(30, seed=SEEDS)
def test_both_ends_of_the_bound(metric, seed):
    X = random_data(seed)[0] ** 3  # tails so heavy that equal weights start at the wrong one
    D = all_pairs(X, metric)
    single = sparse_dissimilarity(X, 1.0, metric)
    norms = np.linalg.norm(D, axis=0)
    assert single.selected.tolist() == [int(norms.argmax())]
    assert single.objective == pytest.approx(norms.max(), rel=1e-12)
    _, vectors = np.linalg.eigh(D.T @ D)
    loose = sparse_dissimilarity(X, np.sqrt(X.shape[1]), metric, tol=1e-10)
    assert_allclose(loose.weights, np.abs(vectors[:, -1]), atol=1e-7)


@pytest.mark.parametrize("bound", [2.0, 6.0, np.sqrt(200)])
def test_differences_of_the_caller(bound):
    """The same as of those that are known by name; of others, the leading eigenvector without a bound."""
    X = planted(1, 1.0, n=36, p=200)[0]
    for metric, difference in (
        ("sqeuclidean", lambda a, b: (a - b) ** 2),
        ("absolute", lambda a, b: abs(a - b)),
    ):
        known = sparse_dissimilarity(X, bound, metric, tol=1e-9)
        D = np.column_stack([difference(*x[np.array(np.triu_indices(36, 1))]) for x in X.T])
        found = sparse_dissimilarity(D, bound, "precomputed", tol=1e-9)
        assert_allclose(found.weights, known.weights, atol=1e-7)
        assert_allclose(found.dissimilarity, known.dissimilarity, rtol=1e-6)
        assert found.objective == pytest.approx(known.objective, rel=1e-9)
    positive = 1e200 * np.exp(X)  # differences relative to the entries, which do not depend on where 0 is
    D = np.column_stack([pdist(x[:, None], "canberra") for x in positive.T])
    canberra = sparse_dissimilarity(D, bound, "precomputed", tol=1e-10)
    assert_allclose(canberra.dissimilarity, D @ canberra.weights, rtol=1e-9)
    if bound == np.sqrt(200):
        leading = np.linalg.eigh(D.T @ D)[1][:, -1]
        assert_allclose(canberra.weights, abs(leading), atol=1e-7)


def test_gap_of_differences_of_the_caller():
    """Permuting samples is permuting entries: the same distribution, and for one variable the same number."""
    X = planted(6, 1.5, n=30, p=60, k=8)[0]
    bounds = [1.0, 2.0, 4.0]
    known = sparse_dissimilarity_gap(X, bounds, "absolute", n_permutations=20)
    D = np.column_stack([pdist(x[:, None], "cityblock") for x in X.T])
    found = sparse_dissimilarity_gap(D, bounds, "precomputed", n_permutations=20)
    assert_allclose(found.objective, known.objective, rtol=1e-6)
    assert_allclose(found.permuted[0], known.permuted[0], rtol=1e-9)
    error = 5 * np.hypot(found.deviation, known.deviation) / np.sqrt(20)
    assert (
        abs(np.log(found.permuted).mean(axis=1) - np.log(known.permuted).mean(axis=1)) <= error + 1e-9
    ).all()


# ---- K-means ----------------------------------------------------------------------------------------


def sums_between(X, labels, weight=None):
    """Total less within, of each variable."""

    def squares(rows):
        w = np.ones(len(X))[rows] if weight is None else weight[rows]
        return w @ (X[rows] - np.average(X[rows], axis=0, weights=w)) ** 2

    return squares(np.full(len(X), True)) - sum(squares(labels == k) for k in set(labels))


@of_examples(25, seed=SEEDS, n_clusters=st.integers(2, 4))
def test_kmeans_optimum_of_either_half(seed, n_clusters):
    X, c = random_data(seed, 5, 14)
    result = sparse_kmeans(X, n_clusters, c, rng=seed)
    w, labels = result.weights, result.labels
    assert np.bincount(labels).all()
    assert len(np.bincount(labels)) == n_clusters
    assert labels[np.sort(np.unique(labels, return_index=True)[1])].tolist() == list(range(n_clusters))
    between = sums_between(X, labels)
    assert result.objective == pytest.approx(w @ between, rel=1e-9)
    assert_allclose(w, threshold(between, c), atol=1e-9)
    assert (np.diff(result.trace) >= -1e-12 * result.objective).all()
    for k in range(n_clusters):
        assert_allclose(result.centers[k], X[labels == k].mean(axis=0), atol=1e-12)
    points = centered(X) * np.sqrt(w)
    theirs = KMeans(n_clusters, n_init=10, random_state=0).fit(points).inertia_
    ours = (points**2).sum() - result.objective
    assert ours <= theirs + 1e-9 * (points**2).sum()


@pytest.mark.share(3)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array, np.float32])
def test_kmeans_of_all_partitions(form, weighted):
    """No partition, each with its best weights, does better. A row of weight 0 just has a label, here 0."""
    reached, tried = 0, examples(16)
    for seed in range(tried):
        rng = np.random.default_rng(seed)
        X, bound = rng.standard_normal((8, 6)) * 2.0 ** rng.integers(-1, 2, 6), rng.uniform(1, 2)
        X[4:, :2] += 2 * (seed % 2)
        weight = rng.uniform(0.5, 2, 8) if weighted else None
        best = 0.0
        for rest in itertools.product((0, 1), repeat=7):
            if any(rest):
                between = sums_between(X, np.array((0, *rest)), weight)
                best = max(best, threshold(between, bound) @ between)
        Y = np.insert(X, 0, 5, axis=0) if weighted else X
        weights = np.insert(weight, 0, 0) if weighted else None
        found = sparse_kmeans(form(Y), 2, bound, sample_weight=weights)
        tolerance = 1e-4 if form is np.float32 else 1e-9
        assert found.objective <= best * (1 + tolerance)
        reached += found.objective >= best * (1 - tolerance)
        assert found.n_iter <= 10
        assert np.argmin((Y[0] - found.centers) ** 2 @ found.weights) == found.labels[0] == 0 or not weighted
    assert reached >= 0.9 * tried


@pytest.mark.share(3)
@pytest.mark.parametrize(
    ("gain", "moves"), [(0.3, True), (1e-3, True), (1e-9, True), (1e-13, False), (-1e-3, False)]
)
def test_a_point_moves_where_that_gains_more_than_rounding(gain, moves):
    """Two pairs at which Lloyd's steps end; moving one point gains a share `gain` of the sum of squares."""
    low, high = 1.0, 3.0  # at the distance sqrt(3) both partitions are as good

    def of(distance):
        points = np.array([0.0, 2.0, 1 + distance, 1 + distance])[:, None]
        points -= points.mean()
        value = [sums_between(points, np.array(labels)).sum() for labels in ([0, 0, 1, 1], [0, 1, 1, 1])]
        return points, (value[1] - value[0]) / np.sum(points**2)

    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if of(middle)[1] > gain else (low, middle)
    points, reached = of(low)
    assert reached == pytest.approx(gain, rel=0.05, abs=5e-14)

    def found(points, labels, weight=None):
        columns = memory.Columns.of(points, weight)
        return columns.run_searches([(np.ones(1), lloyd(columns, np.array(labels), 2))])[0].tolist()

    labels = found(points, [0, 0, 1, 1])
    assert labels == ([0, 1, 1, 1] if moves else [0, 0, 1, 1])
    joined = found(points[:3], [0, 0, 1], [2, 2, 4])  # the pair at one place is one row
    assert joined == labels[:3]


def test_kmeans_more_clusters_than_distinct_samples():
    X = np.repeat([[0.0, 1.0], [5.0, 2.0]], 4, axis=0)
    for n_clusters in (2, 3, 5, 8):
        result = sparse_kmeans(X, n_clusters, 1.2)
        assert np.bincount(result.labels, minlength=n_clusters).all()
        assert result.objective == pytest.approx(sparse_kmeans(X, 2, 1.2).objective)


@pytest.mark.parametrize("seed", [9, 16, 29])
def test_kmeans_of_all_partitions_of_noise(seed):
    """The optimum uses variables that partitions by all of them do not suggest: two clusters, enumerated."""
    rng = np.random.default_rng(seed)
    X, bound = rng.standard_normal((9, 20)), rng.uniform(1.2, 0.8 * np.sqrt(20))
    X[4:, :2] += 2 * (seed % 2)
    labels = np.array([(0.0, *rest) for rest in itertools.product((0.0, 1.0), repeat=8) if any(rest)])
    size = labels.sum(axis=1)
    between = (labels @ centered(X)) ** 2 * (1 / size + 1 / (9 - size))[:, None]
    best = max(threshold(own, bound) @ own for own in between)
    assert sparse_kmeans(X, 2, bound).objective == pytest.approx(best, rel=1e-9)


# ---- the gap statistic ------------------------------------------------------------------------------


@BOTH
def test_gap_of_the_dissimilarity(metric):
    X, _ = planted(6, 1.5, n=30, p=60, k=8)
    bounds = [7.0, 1.0, 2.0, 4.0]
    gap = sparse_dissimilarity_gap(X, bounds, metric, n_permutations=6)
    assert gap.l1_bounds.tolist() == sorted(bounds)
    fits = [sparse_dissimilarity(X, c, metric) for c in sorted(bounds)]
    assert_allclose(gap.objective, [fit.objective for fit in fits], rtol=1e-12)
    assert gap.cardinality.tolist() == [fit.cardinality for fit in fits]
    assert_allclose(gap.gap, np.log(gap.objective) - np.log(gap.permuted).mean(axis=1), 1e-9, 1e-12)
    assert_allclose(gap.deviation, np.log(gap.permuted).std(axis=1, ddof=1), atol=1e-12)
    # one variable alone does not feel its permutation; two do
    assert_allclose(gap.permuted[0], gap.objective[0], rtol=1e-9)
    assert (gap.deviation[1:] > 1e-5).all()
    assert gap.gap[1:3].max() == gap.gap.max() > 0.05
    assert gap.l1_bound == gap.l1_bounds[gap.gap.argmax()]
    near = gap.l1_bounds[gap.gap >= gap.gap.max() - gap.deviation[gap.gap.argmax()]]
    assert gap.smallest_l1_bound == near.min()


def test_default_bounds_stay_in_range():
    for p in (1, 2, 3, 40):
        X = normal(0, 6, p)
        bounds = sparse_dissimilarity_gap(X, n_permutations=2).l1_bounds
        assert 1 <= bounds[0] <= bounds[-1] <= np.sqrt(p)


# ---- what is refused --------------------------------------------------------------------------------

GOOD = normal(0, 6, 9)
HUGE = GOOD * 1e160


def test_the_absolute_metric_reaches_farther():
    """What squares cannot hold."""
    result = sparse_dissimilarity(HUGE, 2.0, "absolute")
    assert_allclose(result.dissimilarity, 1e160 * pdist(GOOD, "cityblock", w=result.weights), rtol=1e-12)


def test_not_converged():
    X, _ = planted(8, 1.0, n=24, p=50, k=8)
    with pytest.warns(RuntimeWarning, match="not converged in 2 iterations"):
        result = sparse_dissimilarity(X, 3, max_iter=2, tol=0)
    assert not result.converged
    assert result.n_iter == len(result.trace) == 2
    assert "not converged" in repr(result)
    with pytest.warns(RuntimeWarning, match="not converged in 1 iteration$"):
        sparse_kmeans(planted(0, 0.7)[0], 3, 6, max_iter=1)


@pytest.mark.parametrize("p", [4, 40])
def test_points_have_the_weighted_distances(p):
    """Of few variables these are the points, of many they come from the products of the samples."""
    rng = np.random.default_rng(p)
    X, w = 0.1 * rng.standard_normal((9, p)), rng.random(p)
    points = memory.Columns.of(X).points(w)
    unit = np.median(pdist(X * np.sqrt(w))) / np.median(pdist(points))  # a power of two
    assert np.log2(unit) == pytest.approx(np.rint(np.log2(unit)), abs=1e-12)
    assert_allclose(pdist(points) * unit, pdist(X * np.sqrt(w)), rtol=1e-9)
