"""Estimators of data that are not in memory: the answers of the array in memory, read a block at a time."""

import numpy as np
import pytest
from extras import optional
from numpy.testing import assert_allclose
from row_block_tools import bytes_of

import spcacore

pytest.importorskip("sklearn", reason="needs scikit-learn")
from sklearn.base import clone

from spcacore.sklearn import (
    PPCA,
    SCA,
    SPCA,
    KernelPCA,
    SparseCCA,
    SparseHierarchical,
    SparseKMeans,
    SparseLDA,
    SparsePCA,
    StabilitySelector,
    StructuredPCA,
)

N, P = 120, 12
METHODS = ("transform", "score_samples", "score", "predict", "decision_function", "predict_proba")
da, dd, pd = optional("dask.array"), optional("dask.dataframe"), optional("pandas")


def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, P)) + np.arange(P)
    X[:, :4] += 3 * rng.standard_normal((N, 1))
    X[:, 6:9] += 2 * rng.standard_normal((N, 1))
    return X


X = data()
LABELS = (X[:, 0] > 0).astype(int) + (X[:, 7] > 8)
SIDE = X[:, :3] @ np.array([[1.0, 0, 2, 0], [0, 1, 1, 0], [1, 1, 0, 0]]) + np.sin(np.arange(N))[:, None]
WEIGHT = np.arange(N) % 3.0
FRAME_NAMES = [f"v{j}" for j in range(P)]


def stored(tmp_path, chunks=None):
    file = optional("h5py").File(tmp_path / "X.h5", "w")
    file.create_dataset("X", data=X, chunks=chunks)
    return file["X"]


def mapped(tmp_path):
    for i, rows in enumerate((X[:50], X[50:])):
        np.save(tmp_path / f"{i}.npy", rows)
    return [np.load(tmp_path / f"{i}.npy", mmap_mode="r") for i in range(2)]


def frame():
    return pd.DataFrame(X, columns=FRAME_NAMES)


SOURCES = {
    "dask": lambda tmp_path: da.from_array(X, chunks=(50, 5)),
    "dask frame": lambda tmp_path: dd.from_pandas(frame(), npartitions=3),
    "row blocks": lambda tmp_path: spcacore.row_blocks(X, block_bytes=X.nbytes // 3),
    "h5py": stored,
    "h5py in chunks": lambda tmp_path: stored(tmp_path, (32, P)),
    "zarr": lambda tmp_path: optional("zarr").array(X, chunks=(50, P)),
    "memory maps": mapped,
    "frames": lambda tmp_path: [frame()[:50], frame()[50:]],
}
ESTIMATORS = {
    "SparsePCA": (SparsePCA(2, 4), None),
    "SPCA": (SPCA(2, cardinality=4), None),
    "SCA": (SCA(2), None),
    "PPCA": (PPCA(2), None),
    "StructuredPCA": (StructuredPCA(2, 4), None),
    "SparseLDA": (SparseLDA(cardinality=4), LABELS),
    "SparseCCA": (SparseCCA(1), SIDE),
    "KernelPCA": (KernelPCA(2, random_features=20, bandwidth=5.0), None),
    "SparseKMeans": (SparseKMeans(3, l1_bound=2, n_init=3), None),
    "one cluster": (SparseKMeans(1), None),
    "StabilitySelector": (StabilitySelector(SparsePCA(1, cardinality=4), n_resamples=4), None),
}
CLUSTERS = ("SparseKMeans", "one cluster")


@pytest.mark.share(16)
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_as_in_memory(name, source, tmp_path):
    estimator, y = ESTIMATORS[name]
    given, expected = SOURCES[source](tmp_path), clone(estimator).fit(X, y)
    model = clone(estimator).fit(given, y)
    assert model.n_features_in_ == P
    for method in METHODS:
        if not hasattr(model, method) or (name == "one cluster" or (name in CLUSTERS and method == "score")):
            continue
        own = (y,) if method == "score" and y is not None else ()
        found = getattr(model, method)(given, *own)
        assert_allclose(np.asarray(found), getattr(expected, method)(X, *own), atol=1e-7, err_msg=method)
    if name in CLUSTERS:
        assert_allclose(model.cluster_centers_, expected.cluster_centers_, atol=1e-9)
    if hasattr(model, "partial_fit"):
        batches = clone(estimator).partial_fit(given)
        assert_allclose(batches.transform(X), clone(estimator).partial_fit(X).transform(X), atol=1e-7)


WEIGHTED = [name for name in ESTIMATORS if name not in (*CLUSTERS, "StabilitySelector")]


@pytest.mark.parametrize("name", WEIGHTED)
def test_weights_in_dask_arrays(name):
    estimator, y = ESTIMATORS[name]
    lazy, weight = da.from_array(X, chunks=(50, P)), da.from_array(WEIGHT, chunks=50)
    model = clone(estimator).fit(lazy, y, sample_weight=weight)
    repeated = np.repeat(np.arange(N), WEIGHT.astype(int))
    expected = clone(estimator).fit(X[repeated], None if y is None else y[repeated])
    one, other = (
        each.components_ if hasattr(each, "components_") else each.transform(X) for each in (model, expected)
    )
    assert_allclose(one, other, atol=1e-6)


@pytest.mark.share(3)
@pytest.mark.parametrize("name", [name for name in ESTIMATORS if name != "SparseKMeans"])
def test_nothing_comes_whole_to_the_client(name, monkeypatch):
    """Of twice as many rows in as many blocks come at most three vectors of length n more, not X."""
    import dask

    estimator, y = ESTIMATORS[name]
    arrived = []

    def counted(graph, keys, **options):
        found = dask.get(graph, keys, **options)
        arrived[-1] += bytes_of(found)
        return found

    compute = da.Array.__array__

    def refused(self, *arguments, **options):
        assert self.ndim < 2 or self.shape[1] < P, "X was computed here"
        return compute(self, *arguments, **options)

    monkeypatch.setattr(da.Array, "__array__", refused)
    for times in (10, 20):
        arrived.append(0)
        lazy = da.from_array(np.tile(X, (times, 1)), chunks=(40 * times, P))
        labels = None if y is None else np.concatenate([y] * times)
        with dask.config.set(scheduler=counted):
            model = clone(estimator).fit(lazy, labels)
            for method in METHODS:
                if hasattr(model, method) and method != "score":
                    assert getattr(model, method)(lazy).shape[0] == times * N
            if hasattr(model, "score") and name not in CLUSTERS:
                assert np.isfinite(model.score(lazy, *(() if labels is None else (labels,))))
            if hasattr(model, "partial_fit"):
                clone(estimator).partial_fit(lazy)
    assert 0 < arrived[0] <= arrived[1] <= arrived[0] + 3 * 8 * 10 * N


REFUSED = {
    "other columns": (lambda model, lazy: model.transform(lazy[:, :5]), "X has 5 features, but SparsePCA"),
    "other names": (
        lambda model, lazy: model.transform(spcacore.row_blocks(X, names=FRAME_NAMES[::-1])),
        "feature names should match",
    ),
    "NaN": (
        lambda model, lazy: np.asarray(model.transform(da.where(lazy == X[77, 2], np.nan, lazy))),
        r"one at \(77, 2\)",
    ),
    "NaN in blocks": (
        lambda model, lazy: model.transform(
            spcacore.row_blocks(np.where(X[77, 2] == X, np.inf, X), block_bytes=X.nbytes // 3)
        ),
        r"the first at \(77, 2\)",
    ),
    "NaN in score": (
        lambda model, lazy: model.score(da.where(lazy == X[77, 5], np.nan, lazy)), r"one at \(77, 5\)",
    ),
    "one row": (lambda model, lazy: model.fit(lazy[:1]), "X has 1 row, and SparsePCA needs 2"),
    "no labels": (lambda model, lazy: SparseLDA().fit(lazy, None), "requires y"),
    "few labels": (lambda model, lazy: SparseLDA().fit(lazy, LABELS[:-1]), "y has 119 rows, and X has 120"),
    "pairs of rows": (lambda model, lazy: SparseHierarchical().fit(lazy), "needs? .*in memory"),
    "a kernel matrix": (lambda model, lazy: KernelPCA().fit(lazy), "in memory.*random_features"),
    "lists that differ": (lambda model, lazy: model.fit([X[:5], X[5:, :3]]), r"X\[1\] \(115, 3\)"),
    "frames that differ": (
        lambda model, lazy: model.fit([frame(), frame().iloc[:, ::-1]]),
        r"X\[0\] has other columns than X\[1\]",
    ),
    "numbers too large": (lambda model, lazy: SparsePCA().partial_fit(lazy * 1e200), "number range"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_refusals(what):
    call, words = REFUSED[what]
    lazy = da.from_array(X, chunks=(50, P))
    model = SparsePCA(2, 4).fit(spcacore.row_blocks(X, names=FRAME_NAMES))
    assert model.feature_names_in_.tolist() == FRAME_NAMES
    with pytest.raises((ValueError, TypeError), match=words):
        call(model, lazy)
