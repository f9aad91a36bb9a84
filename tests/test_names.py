"""Dataframes of any kind bring the names of their variables, and results give them back."""

import sys
import warnings

import numpy as np
import pytest
from html_tools import Columns

import spcacore

NAMES = ("alpha", "b$eta", "gamma_2", "δ", "e", "f")
X = np.random.default_rng(0).standard_normal((30, 6)) @ np.diag([3, 2.5, 2, 1, 1, 1])


def pandas_frame(array):
    return pytest.importorskip("pandas", reason="needs pandas").DataFrame(array, columns=NAMES)


def test_names_of_a_smaller_cardinality():
    found = spcacore.greedy(Columns(np.cov(X.T), NAMES), 4, kind="covariance")
    assert found.at(2).names == NAMES
    assert np.count_nonzero(found.at(2).loading) == 2


@pytest.mark.parametrize("method", ["pmd", "generalized"])
def test_names_of_two_sides(method):
    options = {"l1_bound": 1.4} if method == "pmd" else {"cardinality": 2}
    result = spcacore.sparse_cca(Columns(X, NAMES), X[:, ::-1] + X, method=method, **options)
    assert (result.names_x, result.names_y) == (NAMES, None)


@pytest.mark.parametrize(
    "call",
    [
        lambda X: spcacore.sparse_dissimilarity(X, 1.5),
        lambda X: spcacore.sparse_kmeans(X, 2, 1.5),
    ],
)
def test_frame_of_weights(call):
    pytest.importorskip("pandas", reason="needs pandas")
    result = call(Columns(X, NAMES))
    weights = result.to_frame()["weight"]
    assert list(weights[weights > 0].sort_values(ascending=False).index) == [
        NAMES[j] for j in result.selected
    ]


def test_frames_of_loadings():
    pytest.importorskip("pandas", reason="needs pandas")
    result = spcacore.sparse_pca(pandas_frame(X), 2, cardinality=[3, 2])
    table = result.to_frame()
    for t in range(2):
        for j, name in enumerate(NAMES):
            assert table.loc[name, f"component_{t + 1}"] == result.loadings[j, t]
    assert table.index.name == "variable"
    assert spcacore.ppca(X, 1).to_frame().index.tolist() == ["x1", "x2", "x3", "x4", "x5", "x6"]
    x = spcacore.tpower(Columns(np.cov(X.T), NAMES), 2, kind="covariance").to_frame()
    assert (x["component_1"] != 0).sum() == 2
    left, right = spcacore.sparse_cca(Columns(X, NAMES), X[:, :3], l1_bound=(1.4, 1.2)).to_frame()
    assert left.index.tolist() == list(NAMES)
    assert right.index.tolist() == ["x1", "x2", "x3"]


def test_correlations_as_a_frame():
    frame = pandas_frame(X)
    assert spcacore.sparse_pca(frame.corr(), 1, cardinality=2, kind="covariance").names == NAMES


def test_a_frame_needs_pandas(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        spcacore.sparse_pca(X, 1, cardinality=2).to_frame()


def test_a_column_of_words_is_named():
    array = X[:, :3].astype(object)
    array[4, 1] = "wood"
    with pytest.raises(TypeError, match=r"not numbers, 'wood' at \(4, 1\): .* column 'b\$eta'$"):
        spcacore.sparse_pca(Columns(array, NAMES[:3]), 1, cardinality=2)


# ---- new rows, by the names of their columns -------------------------------------------------------------

Z = np.random.default_rng(3).standard_normal((30, 6)) * np.arange(1, 7)
LETTERS = list("abcdef")
MADE = {
    "sparse_pca": lambda X: spcacore.sparse_pca(X, 2, cardinality=3, scale=True),
    "spca": lambda X: spcacore.spca(X, 2, cardinality=3),
    "ppca": lambda X: spcacore.ppca(X, 2),
    "oppca": lambda X: spcacore.oppca(X, 2),
    "kernel_pca": lambda X: spcacore.kernel_pca(X, 2),
    "kernel_pca on features": lambda X: spcacore.kernel_pca(X, 2, random_features=20),
    "sparse_lda": lambda X: spcacore.sparse_lda(X, np.arange(30) % 3, cardinality=3),
}
METHODS = [
    *[(made, "transform", 2) for made in MADE],
    ("ppca", "impute", 6),
    *[("ppca", m, 0) for m in ("score", "score_samples", "posterior_covariance")],
    *[("sparse_lda", m, 0) for m in ("decision_function", "predict")],
]  # `columns` of a frame that comes back; 0: always an array


def same(out, plain):
    """But for what a fit of another layout of the rows rounds to; labels are the same."""
    if np.asarray(plain).dtype.kind == "f":
        np.testing.assert_allclose(np.asarray(out), plain, rtol=1e-6, atol=1e-9)
    else:
        np.testing.assert_array_equal(np.asarray(out), plain)


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize(("made", "method", "columns"), METHODS)
def test_rows_go_by_the_names_of_their_columns(made, method, columns, library):
    frames = pytest.importorskip(library)
    plain = getattr(MADE[made](Z), method)(Z)
    X = frames.DataFrame(Z, **({"columns": LETTERS} if library == "pandas" else {"schema": LETTERS}))
    if library == "pandas":
        X.index = [f"row {i}" for i in range(30)]
    result = MADE[made](X)
    for order in (LETTERS, LETTERS[::-1], list("badcfe")):
        out = getattr(result, method)(X[order])
        same(out, plain)
        if columns:
            assert type(out) is frames.DataFrame
            names = [f"component_{t + 1}" for t in range(columns)] if method == "transform" else LETTERS
            assert list(out.columns) == names
            if library == "pandas":
                assert out.index.equals(X.index)
        else:
            assert not hasattr(out, "columns")
    assert type(getattr(result, method)(Z)) is type(plain)  # without names by position
    same(getattr(MADE[made](Z), method)(X), plain)
    for other, match in (
        (X[LETTERS[1:]], "6 columns of the fit.* it has 5, without 'a'"),
        (
            X.rename(columns={"b": "B"}) if library == "pandas" else X.rename({"b": "B"}),
            "without 'b', with the unknown 'B'",
        ),
    ):
        with pytest.raises(ValueError, match=match):
            getattr(result, method)(other)


def test_pairs_and_further_components_go_by_names():
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(Z, columns=LETTERS, index=np.arange(30) + 7)
    x, y = X[["a", "b", "c"]], X[["d", "e", "f"]]
    result = spcacore.sparse_cca(x, y, 1, l1_bound=(1.2, 1.2))
    for out, scores in zip(
        result.transform(x[list("cab")], y[list("fed")]), (result.scores_x, result.scores_y), strict=True
    ):
        np.testing.assert_allclose(out.to_numpy(), scores, atol=1e-12)
        assert out.index.equals(X.index)
    with pytest.raises(ValueError, match=r"^Y must have the 3 columns"):
        result.transform(x, x)
    for fit in (
        lambda r: spcacore.sparse_pca(X, r, cardinality=3), lambda r: spcacore.soppca(X, r, 3),
    ):  # fmt: skip
        more = fit(1).extend(X[LETTERS[::-1]], 1)
        np.testing.assert_array_equal(more.loadings, fit(2).loadings)
    twice = X.set_axis(["a", "a", *"bcde"], axis=1)
    with pytest.warns(RuntimeWarning, match="several variables have the same name: 'a'"):
        result = spcacore.sparse_pca(twice, 1, cardinality=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert result.transform(twice).shape == (30, 1)
        with pytest.raises(ValueError, match="columns of the same name in another order"):
            result.transform(twice.iloc[:, ::-1])
    few = Columns(Z, NAMES)
    result = spcacore.sparse_pca(few, 1, cardinality=3)
    with pytest.raises(ValueError, match="in another order than the fit"):
        result.transform(Columns(Z[:, ::-1], few.columns[::-1]))
    arrow = pytest.importorskip("pyarrow").Table.from_pandas(X, preserve_index=False)
    result = spcacore.sparse_pca(arrow, 1, cardinality=3)
    np.testing.assert_array_equal(result.transform(arrow.select(LETTERS[::-1])), result.transform(Z))


def test_features_go_by_names():
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(Z, columns=LETTERS, index=np.arange(30) + 7)
    features = spcacore.random_fourier_features(X, 5)
    out = features.transform(X[LETTERS[::-1]])
    same(out, features.transform(Z))
    assert out.index.equals(X.index)
    assert out.columns[-1] == "feature_5"
    same(features.kernel(X[LETTERS[::-1]], X), features.kernel(Z))
    with pytest.raises(ValueError, match="Y must have the 6 columns"):
        features.kernel(X, X[LETTERS[1:]])
