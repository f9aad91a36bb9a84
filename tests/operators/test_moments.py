"""Sums of rows in place of rows: the same answers, whatever machine added what."""

import itertools
import pickle
import re
import shutil
import sys
from fractions import Fraction
from functools import partial, reduce
from operator import add
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

import spcacore
from spcacore import Moments

RNG = np.random.default_rng(5)
X = (RNG.standard_normal((80, 4)) * [4, 3, 2, 1]) @ RNG.standard_normal((4, 12)) + RNG.standard_normal(
    (80, 12)
)
WEIGHT = RNG.random(80) * 3
NAMES = [f"v{j}" for j in range(12)]


def added(X, cuts=(0, 1, 30, 80), **options):
    parts = [Moments.of(X[i:j], **options) for i, j in itertools.pairwise(cuts)]
    return parts[2] + (parts[0] + parts[1])


FITS = {
    "sparse_pca": partial(spcacore.sparse_pca, n_components=3, cardinality=4),
    "greedy": partial(spcacore.sparse_pca, n_components=2, cardinality=4, method="greedy"),
    "pmd": partial(spcacore.sparse_pca, n_components=2, method=spcacore.PMD(1.7)),
    "common": partial(spcacore.sparse_pca, n_components=2, cardinality=4, support="common"),
    "spca": partial(spcacore.spca, n_components=2, cardinality=4),
    "sca": partial(spcacore.sca, n_components=2),
    "ppca": partial(spcacore.ppca, n_components=2),
    "soppca": partial(spcacore.soppca, n_components=2, cardinality=4),
}
WAYS = {
    "plain": {},
    "scaled": {"scale": True},
    "about 0": {"center": False},
    "given": {"center": np.ones(12)},
}


@pytest.mark.share(3)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", FITS)
def test_a_fit_of_moments_is_that_of_rows(name, way):
    rows = FITS[name](X + 2, **WAYS[way])
    sums = FITS[name](added(X + 2), **WAYS[way])
    for what in ("loadings", "explained_variance", "mean", "scale"):
        a, b = getattr(sums, what), getattr(rows, what)
        assert (a is None) == (b is None)
        if a is not None:
            assert_allclose(a, b, atol=1e-6)
    assert getattr(sums, "n_samples", 80) == getattr(rows, "n_samples", 80) == 80
    assert_allclose(sums.transform(X), rows.transform(X), atol=1e-5)


def of_three_rows(X):
    return spcacore.row_blocks(X, block_bytes=3 * X[0].nbytes)


@pytest.mark.parametrize(
    "make", [np.asarray, sp.csr_array, sp.csc_matrix, spcacore.row_blocks, of_three_rows], ids="dscbr"
)
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_moments_by_definition(make, offset):
    M = Moments.of(make(X + offset))
    assert_allclose(M.mean, np.mean(X + offset, axis=0), rtol=1e-14)
    sparse = make in (sp.csr_array, sp.csc_matrix)  # which subtracts products of means, of 1e12 here
    assert_allclose(M.scatter / 79, np.cov((X + offset).T), atol=0.1 if sparse and offset else 1e-9)
    back = pickle.loads(pickle.dumps(M))
    again = Moments(M.n_samples, M.mean, M.scatter)
    for other in (back, again):
        assert np.array_equal(other.scatter, M.scatter)


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int32, bool])
@pytest.mark.parametrize(
    "storage", [np.asarray, np.asfortranarray, sp.csr_array], ids=["dense", "columns", "sparse"]
)
def test_integers_are_exact(dtype, storage):
    """Against rational numbers, and the same bits in whatever order the rows are added."""
    rng = np.random.default_rng(1)
    high = min(np.iinfo(dtype).max if dtype is not bool else 1, 30_000)
    A = rng.integers(0, high, (41, 5), endpoint=True).astype(dtype)
    expected = [
        [
            Fraction(sum(int(a) * int(b) for a, b in zip(x, y, strict=True)))
            - Fraction(sum(map(int, x))) * sum(map(int, y)) / 41
            for y in A.T
        ]
        for x in A.T
    ]
    every = [added(storage(A), cuts) for cuts in ((0, 1, 2, 41), (0, 20, 30, 41), (0, 39, 40, 41))]
    for M in every:
        assert np.array_equal(M.scatter, every[0].scatter)
        assert np.array_equal(M.scatter, np.array(expected, float))
        if storage is not sp.csr_array:  # else their size
            assert np.array_equal([M.found.low, M.found.high], [A.min(axis=0), A.max(axis=0)])


def test_integers_far_from_zero_of_many_rows():
    """One entry of 2^15 and n - 1 of 2^15 - 1 have the scatter 1 - 1/n."""
    same = one = Moments.of(np.array([[32767]]))
    for _ in range(17):
        same = same + same + one
    total = same + Moments.of(np.array([[32768]]))
    assert total.scatter[0, 0] == 1 - 1 / total.n_samples


@pytest.mark.parametrize("kind", ["dense", "sparse", "frame", "weights"])
@pytest.mark.parametrize("whole", [False, True])
def test_no_rows_change_nothing(kind, whole):
    """A part without rows is the neutral element of the sum, to the last bit, from either side."""
    given = (X * 10).astype(int) if whole else X
    nothing = {
        "dense": lambda: Moments.of(given[:0]),
        "sparse": lambda: Moments.of(sp.csr_array(given[:0])),
        "frame": lambda: Moments.of(pytest.importorskip("pandas").DataFrame(columns=[*"abcdefghijkl"])),
        "weights": lambda: Moments.of(given, sample_weight=np.zeros(80)),
    }[kind]()
    total = Moments.of(given)
    for found in (total + nothing, nothing + total, sum([nothing, total, nothing])):
        assert found.n_samples == 80
        assert found.scatter.tobytes() == total.scatter.tobytes()
        assert found.mean.tobytes() == total.mean.tobytes()
        assert found.names == nothing.names
        assert (found + total).scatter.tobytes() == (total + total).scatter.tobytes()  # exact still
    assert (nothing + nothing).n_samples == 0
    with pytest.raises(ValueError, match="moments of no rows"):
        spcacore.sparse_pca(nothing, 1, 3)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda M: spcacore.sparse_kmeans(M, 2, 1.5), "needs the rows of X"),
        (lambda M: spcacore.stability(M, FITS["sparse_pca"]), "needs the rows of X"),
        (lambda M: spcacore.sma(M, 2), "need the rows of X"),
        (lambda M: spcacore.sparse_cca(M, M, 1, 2), "needs the rows of X"),
        (lambda M: spcacore.sparse_pca(M, 1, 2, sample_weight=WEIGHT), "go to Moments.of"),
        (lambda M: spcacore.sparse_pca(X, 1, 2).transform(M), "needs the rows of X"),
        (lambda M: M + Moments.of(X[:, :3]), "different variables"),
        (lambda M: M + 1, "unsupported operand"),
        (lambda M: spcacore.sparse_pca(M, 1, 2, kind="covariance"), "leave out kind='covariance'"),
        (lambda M: Moments.of(X[:0, :0]), "X is empty"),
        (lambda M: Moments(5, [0.0, 0.0], [[1.0, 0.5], [0.0, 1.0]]), "symmetric"),
        (lambda M: Moments(5, [0.0], [[-1.0]]), "negative diagonal"),
        (lambda M: Moments(5, [0.0], np.eye(2)), "shape"),
        (lambda M: Moments(10, [0.0, 0.0], [[1.0, 2.0], [2.0, 1.0]]), "semidefinite"),
        (lambda M: Moments(1, [0.0], [[1.0]]), "must exceed 1"),
        (lambda M: Moments.of(np.where(X[3, 2] == X, np.nan, X)), r"\(3, 2\)"),
        (lambda M: Moments.of(X, sample_weight=-np.ones(80)), "negative"),
    ],
)
def test_refusals(call, words):
    with pytest.raises((TypeError, ValueError), match=words):
        call(Moments.of(X))


def test_names_travel():
    pd = pytest.importorskip("pandas")
    names = [f"v{j}" for j in range(12)]
    M = added(pd.DataFrame(X, columns=names))
    assert spcacore.sparse_pca(M, 1, 3).names == tuple(names)
    by_label = M + Moments.of(pd.DataFrame(X[:, ::-1], columns=names[::-1]))
    assert_allclose(by_label.scatter, 2 * M.scatter, rtol=1e-12, atol=1e-10)
    assert sum([M, M]).names == by_label.names == tuple(names)
    with pytest.raises(ValueError, match="different variables"):
        M + Moments.of(pd.DataFrame(X, columns=[*names[1:], "other"]))


def recipe(words):
    """The code of the page about another system."""
    page = (Path(__file__).parents[2] / "docs" / "distributed.md").read_text()
    (code,) = (block for block in re.findall(r"```python\n(.*?)```", page, re.S) if words in block)
    return code


def test_the_recipe_of_the_page():
    """What Spark would run on each part, here on two parts of three and one dataframes."""
    pd = pytest.importorskip("pandas")
    space = {}
    exec(recipe("mapInPandas").partition("\nrows = ")[0], space)
    frames = [pd.DataFrame(X[i:j]) for i, j in ((0, 10), (10, 10), (10, 45), (45, 80))]
    found = [row for part in (frames[:3], frames[3:], []) for row in space["moments_of_part"](iter(part))]
    total = sum((pickle.loads(row.moments[0]) for row in found[1:]), pickle.loads(found[0].moments[0]))
    assert_allclose(total.scatter, Moments.of(X).scatter, atol=1e-10)


def by_spark(monkeypatch):
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    sql = pytest.importorskip("pyspark.sql", reason="needs pyspark")
    if shutil.which("java") is None:
        pytest.skip("needs Java")
    session = sql.SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    table = [tuple(row) for row in X.tolist()]
    space = {"spark_frame": session.createDataFrame(table, NAMES).repartition(3)}
    try:
        exec(recipe("mapInPandas").partition("\nresult = ")[0], space)
    finally:
        session.stop()
    return space["total"]


def by_ray(monkeypatch):
    ray = pytest.importorskip("ray", reason="needs ray")
    ray.init(num_cpus=2, include_dashboard=False, configure_logging=False)
    space = {"ray": ray, "spcacore": spcacore, "reduce": reduce, "add": add, "parts": np.array_split(X, 3)}
    try:
        exec(recipe("ray.remote"), space)
    finally:
        ray.shutdown()
    return space["total"]


@pytest.mark.slow
@pytest.mark.parametrize("run", [by_spark, by_ray])
def test_the_recipes_where_they_are_meant_to_run(run, monkeypatch):
    total = run(monkeypatch)
    assert total.names == (tuple(NAMES) if run is by_spark else None)
    assert_allclose(total.scatter, Moments.of(X).scatter, atol=1e-10)
    assert_allclose(
        spcacore.sparse_pca(total, 2, 5).loadings, spcacore.sparse_pca(X, 2, 5).loadings, atol=1e-10
    )
