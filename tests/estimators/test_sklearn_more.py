"""Batches, callbacks and routed weights of the estimators; kernels, structured components and clusters."""

import copy

import numpy as np
import pytest
import scipy.sparse as sp
from calls import pca
from numpy.testing import assert_allclose, assert_array_equal
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import cdist, pdist

import spcacore
from spcacore.datasets import make_spiked

pytest.importorskip("sklearn", reason="needs scikit-learn")
import sklearn
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from spcacore.sklearn import (
    PPCA,
    SCA,
    SPCA,
    KernelPCA,
    SparseHierarchical,
    SparseKMeans,
    SparsePCA,
    StabilitySelector,
    StructuredPCA,
)

CALLBACKS = pytest.mark.skipif(not hasattr(SparsePCA, "set_callbacks"), reason="needs scikit-learn 1.9")


@pytest.fixture(scope="module")
def X():
    return make_spiked(60, 12, cardinality=4, variances=(9, 5, 3), rng=0)[0]


# ---- batches ----------------------------------------------------------------------------------------


IN_BATCHES = [
    SparsePCA(2, cardinality=4),
    SPCA(2, cardinality=4),
    SPCA(2, penalty=[2.0, 3], ridge=3.0),
    SPCA(2, penalty=5),
    SCA(2, l1_bound=4),
    PPCA(2),
    PPCA(2, ddof=0),
    StructuredPCA(2),
    StructuredPCA(2, cardinality=4),
]


@pytest.mark.share(12)
@pytest.mark.parametrize("n", [60, 9], ids=["tall", "few"])
@pytest.mark.parametrize(
    "options",
    [{}, {"scale": True}, {"center": False}, {"center": np.arange(12.0) / 10, "scale": True}],
    ids=["plain", "scale", "about 0", "given"],
)
@pytest.mark.parametrize("model", IN_BATCHES, ids=repr)
def test_batches_of_every_estimator_that_depends_on_the_covariance_alone(X, model, options, n):
    Y = X[:n] + 0.3
    model, whole = (sklearn.base.clone(model).set_params(**options) for _ in range(2))
    for rows in np.split(np.random.default_rng(0).permutation(n), [1, n // 2]):
        model.partial_fit(Y[rows])
    whole.fit(Y)
    for name in ("components_", "explained_variance_", "explained_variance_ratio_", "noise_variance_"):
        assert_allclose(getattr(model, name), getattr(whole, name), atol=1e-7)
    assert_allclose(model.transform(Y), whole.transform(Y), atol=1e-6)
    if hasattr(model, "score_samples"):
        assert_allclose(model.score_samples(Y), whole.score_samples(Y), rtol=1e-6)
    for name in ("penalty", "ridge", "bic", "log_likelihood", "n_parameters", "pve", "gain", "n_samples"):
        if hasattr(whole.result_, name):
            ours, theirs = getattr(model.result_, name), getattr(whole.result_, name)
            assert_allclose(ours, theirs, rtol=1e-6, err_msg=name)
    assert getattr(model.result_, "kind", None) == getattr(whole.result_, "kind", None)
    assert model.n_samples_seen_ == n


@pytest.mark.parametrize(("n", "weight"), [(10, None), (9, [1, 2] * 4 + [1]), (13, [1, 0] * 6 + [1])])
def test_the_default_ridge_in_batches(X, n, weight):
    """By samples and by variables that are not excluded; eight of twelve."""
    Y, w = X[:n], None if weight is None else np.array(weight)
    model = SPCA(2, cardinality=3, choice=spcacore.Choice(exclude=[0, 1, 2, 11]))
    for rows in (slice(0, 7), slice(7, n)):
        model.partial_fit(Y[rows], sample_weight=None if w is None else w[rows])
    whole = SPCA(2, cardinality=3, choice=spcacore.Choice(exclude=[0, 1, 2, 11])).fit(
        Y if w is None else np.repeat(Y, w, axis=0)
    )
    assert model.result_.ridge == pytest.approx(whole.result_.ridge)
    assert_allclose(model.components_, whole.components_, atol=1e-7)


@pytest.mark.share(3)
@pytest.mark.parametrize("model", IN_BATCHES, ids=repr)
def test_weights_of_batches_are_repeated_rows(X, model):
    weight = np.random.default_rng(1).integers(0, 4, len(X))
    model = sklearn.base.clone(model)
    for part in (slice(0, 1), slice(1, 31), slice(31, None)):
        model.partial_fit(X[part], sample_weight=weight[part])
    expected = sklearn.base.clone(model).fit(np.repeat(X, weight, axis=0))
    atol = 1e-6 if isinstance(model, StructuredPCA) else 1e-9  # its iteration ends some 1e-8 from the optimum
    assert_allclose(model.components_, expected.components_, atol=atol)
    assert_allclose(model.mean_, np.average(X, axis=0, weights=weight), atol=1e-12)


@pytest.mark.parametrize("weight", [1 / 3, 0.325])
@pytest.mark.parametrize("model", [StructuredPCA(2), PPCA(2)], ids=repr)
def test_batches_whose_weights_are_no_whole_number(X, model, weight):
    parts, whole = sklearn.base.clone(model), sklearn.base.clone(model)
    for rows in (X[:25], X[25:]):
        parts.partial_fit(rows, sample_weight=np.full(len(rows), weight))
    whole.fit(X, sample_weight=np.full(60, weight))
    assert_allclose(parts.components_, whole.components_, atol=1e-6)
    if isinstance(model, PPCA):
        assert parts.result_.log_likelihood == pytest.approx(whole.result_.log_likelihood, rel=1e-9)


def test_models_wait_for_rows_enough_to_fit(X):
    for model in (PPCA(3), StructuredPCA(3)):
        model.partial_fit(X[:3])
        assert not hasattr(model, "components_")
        assert not hasattr(model, "n_samples_seen_")
        assert model.partial_fit(X[3:20]).components_.shape == (3, 12)
        assert model.fit(X).partial_fit(X[:5]).n_samples_seen_ == 5  # fit starts afresh
        with pytest.raises(ValueError, match=r"n_components must be in \[1, 12\]"):
            model.__class__(13).partial_fit(X)


def test_single_precision_stays_so(X):
    model = SparsePCA(2, cardinality=4).partial_fit(X.astype(np.float32))
    assert model.components_.dtype == np.float32
    assert model.partial_fit(X).components_.dtype == np.float64


def test_what_is_refused_leaves_the_estimator(X):
    model = SparsePCA(2, cardinality=4).partial_fit(X[:30])
    before = copy.deepcopy(model.__dict__)
    for bad, words in ((X[:, :5], "features"), (np.full((3, 12), np.nan), "NaN")):
        with pytest.raises(ValueError, match=words):
            model.partial_fit(bad)
    for about, words in ((np.arange(5.0), "center has 5 entries"), ([np.nan] * 12, "center")):
        with pytest.raises(ValueError, match=words):
            SparsePCA(2, cardinality=4, center=about).partial_fit(X)
    with pytest.raises(ValueError, match=r"[Nn]egative"):
        model.partial_fit(X, sample_weight=-np.ones(60))
    assert_array_equal(model.components_, before["components_"])
    model.partial_fit(X[30:])
    assert_allclose(model.mean_, X.mean(axis=0), atol=1e-12)
    assert SparsePCA(2, cardinality=4).fit(X).partial_fit(X[:30]).n_samples_seen_ == 30
    with pytest.raises(ValueError, match="use fit"):
        SparsePCA().partial_fit(sp.csr_array((3, 20_000)))


# ---- callbacks and routing --------------------------------------------------------------------------


class Recorder:
    """A callback of scikit-learn that writes down what it hears, and may ask for the end."""

    def __init__(self, end=None):
        self.heard, self.end = [], end

    def setup(self, estimator, context):
        self.heard.append("setup")

    def teardown(self, estimator, context):
        self.heard.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.heard.append(("begin", context.task_name, context.task_id))

    def on_fit_task_end(self, estimator, context):
        self.heard.append(("end", context.task_name, context.task_id))
        return context.task_name == "component" and context.task_id == self.end


@CALLBACKS
@pytest.mark.parametrize("make", [lambda: SparsePCA(3, cardinality=4), lambda: StructuredPCA(3)])
def test_callbacks_hear_of_each_component(X, make):
    recorder = Recorder()
    model = make().set_callbacks(recorder).fit(X)
    tasks = [(what, "component", t) for t in range(3) for what in ("begin", "end")]
    assert recorder.heard == ["setup", ("begin", "fit", 0), *tasks, ("end", "fit", 0), "teardown"]
    assert_array_equal(model.components_, make().fit(X).components_)


@CALLBACKS
@pytest.mark.parametrize("model", [SPCA(2), SCA(2), SparsePCA(2, cardinality=4, refine=3), PPCA(2)])
def test_callbacks_hear_of_iterations(X, model):
    recorder = Recorder()
    X = np.where(np.eye(*X.shape), np.nan, X) if isinstance(model, PPCA) else X
    sklearn.base.clone(model).set_callbacks(recorder).fit(X)
    begun = [entry for entry in recorder.heard if entry[:2] == ("begin", "iteration")]
    assert begun == [("begin", "iteration", t) for t in range(len(begun))]
    assert len(begun) > 1


@CALLBACKS
@pytest.mark.filterwarnings("ignore:.*ended")
def test_a_callback_ends_the_fit(X):
    model = SparsePCA(3, cardinality=4).set_callbacks(Recorder(end=0)).fit(X)
    assert model.n_components_ == 1


@CALLBACKS
def test_callbacks_are_torn_down_after_errors(X):
    recorder = Recorder()
    with pytest.raises(ValueError, match="cardinality"):
        SparsePCA(3, cardinality=99).set_callbacks(recorder).fit(X)
    assert recorder.heard[-1] == "teardown"


def test_weights_are_routed_through_a_pipeline(X):
    weight = np.random.default_rng(2).integers(0, 3, len(X))
    with sklearn.config_context(enable_metadata_routing=True):
        model = SparsePCA(2, cardinality=4).set_fit_request(sample_weight=True)
        search = GridSearchCV(model, {"cardinality": [4]}, cv=3).fit(X, sample_weight=weight)
    expected = spcacore.sparse_pca(np.repeat(X, weight, axis=0), 2, cardinality=4).loadings
    assert_allclose(search.best_estimator_.components_, expected.T, atol=1e-9)


# ---- kernels ----------------------------------------------------------------------------------------


def test_precomputed_kernels_and_random_features(X):
    K = np.exp(-cdist(X, X, "sqeuclidean") / 32)
    model, reference = KernelPCA(2, kernel="precomputed").fit(K), KernelPCA(2, bandwidth=4).fit(X)
    assert_allclose(abs(model.transform(K)), abs(reference.transform(X)), atol=1e-7)
    approximate = KernelPCA(2, bandwidth=4, random_features=4000, random_state=0).fit(X)
    assert_allclose(approximate.eigenvalues_, reference.eigenvalues_, rtol=0.1)
    back = KernelPCA(11, kernel="linear", ridge=1e-6).fit(X)
    assert_allclose(
        back.inverse_transform(back.transform(X)), back.result_.inverse_transform(back.result_.scores),
        atol=1e-6,
    )  # fmt: skip


# ---- clusters ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def clusters():
    rng = np.random.default_rng(4)
    labels = np.repeat([0, 1, 2], [20, 25, 15])
    X = rng.standard_normal((60, 50))
    X[:, :5] += 4 * rng.standard_normal((3, 5))[labels]
    return X, labels


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_clusters_on_few_variables(clusters, container):
    X, labels = clusters
    model = SparseKMeans(3, l1_bound=2, random_state=0).fit(container(X))
    assert adjusted_rand_score(model.labels_, labels) == 1
    assert set(np.argsort(-model.weights_)[:4]) <= set(range(5))
    assert np.array_equal(model.predict(container(X)), model.labels_)
    new = X[::2] + 0.1
    distance = cdist(new, model.cluster_centers_, "sqeuclidean", w=model.weights_)
    assert np.array_equal(model.predict(container(new)), np.argmin(distance, axis=1))
    for t in range(3):
        assert_allclose(model.cluster_centers_[t], X[model.labels_ == t].mean(axis=0), atol=1e-12)


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array, spcacore.row_blocks])
def test_one_cluster_rests_on_no_variable(clusters, container):
    X, weight = clusters[0], np.arange(60) % 4
    for counts, rows in ((None, X), (weight, np.repeat(X, weight, axis=0))):
        model = SparseKMeans(1).fit(container(X), sample_weight=counts)
        assert not model.labels_.any()
        assert not model.weights_.any()
        assert_allclose(model.cluster_centers_[0], rows.mean(axis=0), atol=1e-12)


@pytest.mark.parametrize("method", ["average", "complete", "single", "weighted"])
def test_trees_of_scipy(clusters, method):
    X, _ = clusters
    model = SparseHierarchical(3, l1_bound=2, linkage=method).fit(X)
    tree = linkage(pdist(X, "sqeuclidean", w=model.weights_), method)
    assert_allclose(model.linkage_[:, 2], tree[:, 2], rtol=1e-9)
    expected = fcluster(tree, 3, "maxclust")
    assert adjusted_rand_score(model.labels_, expected) == 1
    assert model.labels_[0] == 0


@pytest.mark.parametrize("method", ["average", "complete", "single", "weighted"])
def test_as_many_clusters_as_asked_where_distances_tie(method):
    X = np.array([[0, 0], [1, 0], [0, 1], [1, 1], [2, 0], [0, 0.0]])
    before = np.zeros(6, int)
    for k in range(1, 7):
        labels = SparseHierarchical(k, l1_bound=1.4, linkage=method).fit(X).labels_
        assert_array_equal(np.unique(labels), np.arange(k))
        assert len({*zip(before, labels, strict=True)}) == k  # each is a part of a larger one
        before = labels


@pytest.mark.parametrize(
    ("estimator", "words"),
    [
        (SparseHierarchical(linkage="ward"), "linkage must be"),
        (SparseHierarchical(61), r"n_clusters must be in \[1, 60\]"),
        (SparseHierarchical(2.5), "n_clusters must be an integer"),
        (SparseHierarchical(None), "n_clusters must be an integer"),
        (SparseKMeans("two"), "n_clusters must be an integer"),
        (SparseKMeans(0), "n_clusters must be at least 1"),
    ],
)
def test_bad_parameters_of_these(clusters, estimator, words):
    with pytest.raises((TypeError, ValueError), match=words):
        estimator.fit(clusters[0])


# ---- stable variables -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [{}, {"resampling": "bootstrap", "threshold": 0.9}, {"max_false": 3.0, "assumption": "none"}],
)
def test_stable_variables_in_a_pipeline(options):
    X = make_spiked(80, 60, cardinality=6, variances=(12,), rng=0)[0]
    model = StabilitySelector(SparsePCA(1, cardinality=8), n_resamples=20, **options)
    Z = make_pipeline(model, PCA(1)).fit(X)
    found = spcacore.stability(X, pca(1, 8), n_resamples=20, **options)
    assert set(Z[0].get_support(indices=True)) >= set(range(6))
    assert_array_equal(Z[0].get_support(), found.stable[:, 0])
    assert_array_equal(Z[0].transform(X), X[:, found.stable[:, 0]])
    assert Z[0].frequencies_[:6].min() > np.sort(Z[0].frequencies_[6:])[-2]
    l1 = StabilitySelector(pca(method="pmd", l1_bound=2.5), n_resamples=10).fit(X)
    assert l1.result_.result.method == "pmd"
