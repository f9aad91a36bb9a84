"""Pictures of loadings and scores: what is drawn, against the loadings and NumPy."""

import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse
from extras import optional
from hypothesis import given, settings
from hypothesis import strategies as st
from in_turn import SEEDS
from numpy.testing import assert_allclose, assert_array_equal
from oracles import centered, normal

import spcacore
from spcacore import plot

matplotlib = pytest.importorskip("matplotlib", reason="needs matplotlib")
matplotlib.use("Agg")
import plot_tools  # noqa: E402
from matplotlib import pyplot  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402
from plot_tools import (  # noqa: E402
    NASTY,
    PROPS,
    drawn,
    heights,
    selection,
    sparse,
    stand_in,
    texts,
)

from spcacore.plot.drawing import label_rows  # noqa: E402

closed_figures = plot_tools.closed_figures
pandas = optional("pandas")


def points(ax):
    return np.vstack([np.asarray(c.get_offsets()) for c in ax.collections])


def tips(ax):
    """The arrows of a biplot, from the origin."""
    arrows = [a for a in ax.texts if not a.get_text() and a.arrow_patch is not None]
    assert all(a.xyann == (0, 0) and a.arrow_patch.shrinkA == a.arrow_patch.shrinkB == 0 for a in arrows)
    return np.array([a.xy for a in arrows]).reshape(-1, 2)


def names_of_arrows(ax):
    return [name for text in texts(ax.texts) for name in text.splitlines()]


def rows(ax):
    return texts(ax.get_yticklabels())


# ---- bars -------------------------------------------------------------------------------------------


def test_bars_of_nothing():
    ax = plot.bars(np.zeros(5))
    assert len(ax.patches) == 0
    assert texts(ax.texts) == ["all loadings are zero"]
    drawn(ax)


def test_names_are_not_mathematics():
    V = np.arange(1, 7.0)[::-1]
    for ax in (plot.bars(V, names=NASTY), plot.heatmap(V, names=NASTY, order="given")):
        assert rows(ax)[:3] == list(NASTY[:3])
        assert rows(ax)[3] == "line break"
        assert len(rows(ax)[5]) <= 24
        drawn(ax)  # bad mathematics would raise
    Z = normal(0, 6, 2)
    ax = plot.biplot(sparse(0, 6, 2, 1), Z, names=NASTY, labels=NASTY)
    assert "$a_1$ b$" in texts(ax.texts)
    assert sorted(texts(ax.get_legend().get_texts()))[0] == "$a_1$ b$"
    assert "_under_score" in texts(ax.get_legend().get_texts())
    drawn(ax)


def test_long_names_keep_both_ends():
    names = ["od280/od315_of_diluted_wines", "od280/od315_of_diluted_beers"]
    first, second = rows(plot.bars([2.0, 1.0], names=names))
    assert first.startswith("od280/od315")
    assert first.endswith("d_wines")
    assert second.endswith("d_beers")


# ---- heatmap ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["cluster", "loading", "given"])
@given(SEEDS, st.integers(2, 25), st.integers(1, 6))
@settings(derandomize=True, deadline=None, max_examples=5)
def test_a_heatmap_has_the_rows_of_the_selected_variables(order, seed, p, r):
    V = sparse(seed, p, r)
    ax = plot.heatmap(V, order=order, ax=Figure(figsize=(4, 9)).subplots())
    index = [int(name[1:]) - 1 for name in rows(ax)]
    assert sorted(index) == np.flatnonzero(V.any(axis=1)).tolist()
    table = ax.images[0].get_array()
    assert np.array_equal(table.filled(0), V[index])
    assert np.array_equal(np.ma.getmaskarray(table), V[index] == 0)
    assert ax.images[0].get_clim() == (-abs(V).max(), abs(V).max())
    if order == "given":
        assert index == sorted(index)


@pytest.mark.parametrize("order", ["cluster", "loading"])
def test_variables_of_a_component_stay_together(order):
    rng = np.random.default_rng(2)
    group = rng.permutation(np.repeat(range(4), 8))
    V = np.where(group[:, None] == range(4), rng.uniform(0.2, 1, (32, 1)), 0)
    V[:, 3] *= -1
    index = [int(name[1:]) - 1 for name in rows(plot.heatmap(V, order=order))]
    assert np.count_nonzero(np.diff(group[index])) == 3
    assert np.array_equal(group[index], np.repeat(range(4), 8))
    assert all(np.all(np.diff(V[index[8 * t : 8 * t + 8], t]) < 0) for t in range(4))


@pytest.mark.parametrize("ratio", [1e-100, 1e-170, 1e-308])
def test_rows_of_any_size_are_clustered(ratio):
    V = np.zeros((6, 2))
    V[::2, 0], V[1::2, 1] = [1e150, 2e150, 3e150], [1, 2, 3]
    V[1::2] *= 1e150 * ratio
    V[0, 1] = 1e140  # in both components
    index = [int(name[1:]) - 1 for name in rows(plot.heatmap(V))]
    assert sorted(index[:3]) == [0, 2, 4]
    assert sorted(index[3:]) == [1, 3, 5]


def test_of_many_rows_the_heaviest_are_named_apart(rng):
    """As plain loops choose them; names of 6.5 points do not overlap."""
    ax, weight, chosen = pyplot.figure(figsize=(4, 4)).add_subplot(), rng.random(150), []
    row = 72 * 4 * ax.get_position().height / 150
    for j in np.argsort(-weight):
        if all(abs(j - i) * row >= 6.5 for i in chosen):
            chosen.append(j)
    assert label_rows(ax, [f"v{j}" for j in range(150)], weight) == len(chosen)
    assert texts(ax.get_yticklabels()) == [f"v{j}" for j in sorted(chosen)]


def test_parts_of_a_heatmap():
    V = sparse(4, 20, 4, 0.8)
    ax = plot.heatmap(V, components=[3, 1], n_variables=5, order="given")
    best = np.sort(np.argsort(-abs(V[:, [3, 1]]).max(axis=1))[:5])
    assert np.array_equal(ax.images[0].get_array().filled(0), V[np.ix_(best, [3, 1])])
    assert texts(ax.get_xticklabels()) == ["4", "2"]
    assert ax.get_ylabel() == f"5 of {np.count_nonzero(V[:, [3, 1]].any(axis=1))} selected variables"
    shares = np.array([0.4, 0.3, 0.2, 0.05])
    explained = SimpleNamespace(loadings=V, explained_variance_ratio=shares)
    for width, ticks in ((4, ["4\n5.0 %", "2\n30.0 %"]), (1.5, ["4", "2"])):  # inches
        ax = plot.heatmap(explained, components=[3, 1], ax=pyplot.figure(figsize=(width, 4)).add_subplot())
        assert texts(ax.get_xticklabels()) == ticks


# ---- biplot -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("components", [(0, 1), (2, 0)])
def test_arrows_are_loadings_times_one_factor(components):
    """Arrows of variables that one of the components misses included, at their angles on the canvas."""
    rng = np.random.default_rng(8)
    V = np.zeros((9, 3))
    V[:3, 0], V[2:5, 1], V[4:7, 2] = rng.standard_normal((3, 3))
    Z = rng.standard_normal((50, 3)) * [9, 4, 2]
    ax = plot.biplot(V, Z, components=components, n_variables=9)
    pair = list(components)
    selected = np.flatnonzero(V[:, pair].any(axis=1))
    order = selected[np.argsort(-np.linalg.norm(V[selected][:, pair], axis=1))]
    arrows = tips(ax)
    assert len(arrows) == len(selected) < 9
    factor = (arrows * V[order][:, pair]).sum() / (V[order][:, pair] ** 2).sum()
    assert factor > 0
    assert arrows == pytest.approx(factor * V[order][:, pair], abs=1e-12)
    assert sorted(names_of_arrows(ax)) == sorted(f"x{j + 1}" for j in order)
    assert points(ax) == pytest.approx(Z[:, pair])
    drawn(ax)
    on_canvas = ax.transData.transform(arrows) - ax.transData.transform((0, 0))
    angle = np.arctan2(on_canvas[:, 1], on_canvas[:, 0])
    assert angle == pytest.approx(np.arctan2(V[order, pair[1]], V[order, pair[0]]), abs=1e-6)
    low, high = np.transpose([ax.get_xlim(), ax.get_ylim()])
    assert np.all((arrows > low) & (arrows < high))
    assert abs(arrows).max() > 0.3 * abs(Z[:, pair]).max()  # seen beside the points


def test_points_are_the_scores_of_the_data():
    X = normal(9, 40, 10) * np.linspace(3, 1, 10) + 7
    result = spcacore.sparse_pca(X, 3, cardinality=4, scale=True)
    F = centered(X) / X.std(axis=0, ddof=1)
    Z = F @ result.loadings
    for source in (X, scipy.sparse.csr_array(X), Z):
        ax = plot.biplot(result, source, components=(1, 2))
        assert points(ax) == pytest.approx(Z[:, [1, 2]])
    share = 100 * result.explained_variance_ratio
    assert ax.get_xlabel() == f"component 2  ({share[1]:.1f} % of the variance)"
    assert ax.get_ylabel() == f"component 3  ({share[2]:.1f} % of the variance)"


def test_a_covariance_has_scores_of_other_data():
    result = spcacore.sparse_pca(PROPS.correlation, 3, cardinality=4, kind="covariance")
    X = normal(10, 30, 13)
    assert points(plot.biplot(result, X)) == pytest.approx((X @ result.loadings)[:, :2])


def test_names_of_arrows_do_not_overlap():
    """Of sparse loadings, most arrows lie on the axes, their tips close together."""
    V = np.zeros((12, 2))
    V[:6, 0], V[6:, 1] = np.linspace(0.5, 0.3, 6), np.linspace(-0.5, -0.3, 6)
    names = [f"variable_{j}" for j in range(12)]
    Z = normal(12, 80, 2) * 3
    ax = plot.biplot(V, Z, names=names, n_variables=12)
    drawn(ax)
    tight = [matplotlib.text.Text.get_window_extent(t) for t in ax.texts if t.get_text()]
    assert sorted(names_of_arrows(ax)) == sorted(names)
    for i, a in enumerate(tight):
        for b in tight[:i]:
            assert not (min(a.x1, b.x1) - max(a.x0, b.x0) > 1 and min(a.y1, b.y1) - max(a.y0, b.y0) > 1)


def test_names_of_arrows_that_end_together_are_a_list():
    """The longest first; arrows of other directions, or that end elsewhere, have names of their own."""
    V = np.zeros((9, 2))
    V[:4, 0], V[4:7, 1], V[7], V[8] = [0.5, 0.52, 0.51, 0.1], [-0.6, -0.61, -0.62], (0.4, 0.4), (-0.5, 0)
    ax = plot.biplot(V, normal(12, 80, 2) * 3, n_variables=9)
    assert {t for t in texts(ax.texts) if t} == {"x2\nx3\nx1", "x4", "x7\nx6\nx5", "x8", "x9"}
    assert len(tips(ax)) == 9


NUMBERS = normal(14, 60)


@pytest.mark.share(3)
@pytest.mark.parametrize(
    ("labels", "shown"),
    [
        (NUMBERS, NUMBERS),
        (np.arange(60), np.arange(60)),
        (np.where(NUMBERS > 1, np.nan, NUMBERS), NUMBERS[NUMBERS <= 1]),
        ([None, *NUMBERS[1:]], NUMBERS[1:]),
    ],
    ids=["floats", "many integers", "NaN", "None"],
)
def test_numbers_as_labels_have_a_color_bar(labels, shown):
    Z = normal(11, 60, 2)
    ax = plot.biplot(sparse(0, 5, 2), Z, labels=labels)
    assert ax.get_legend() is None
    assert len(ax.figure.axes) == 2
    assert np.asarray(ax.collections[-1].get_array()) == pytest.approx(shown, abs=1e-6)
    assert len(points(ax)) == 60
    if len(shown) < 60:  # the others are gray
        assert len(ax.collections[0].get_offsets()) == 60 - len(shown)
    drawn(ax)


def test_whole_numbers_are_classes():
    Z = normal(11, 60, 2)
    for labels in (np.arange(60) % 3, np.arange(60) % 3 * 1.0, np.arange(60) % 2 == 0):
        ax = plot.biplot(sparse(0, 5, 2), Z, labels=labels)
        assert len(ax.get_legend().get_texts()) == len(np.unique(labels))


def test_a_biplot_has_the_scores_of_the_result():
    X = normal(17, 30, 6)
    result = spcacore.sparse_pca(X, 2, cardinality=3)
    assert_array_equal(points(plot.biplot(result)), points(plot.biplot(result, X)))
    with pytest.raises(ValueError, match="no scores of its own"):
        plot.biplot(spcacore.sparse_pca(np.cov(X.T), 2, cardinality=3, kind="covariance"))


def test_a_biplot_without_variance_or_loadings():
    V = np.eye(3)[:, :2]
    assert len(tips(plot.biplot(V, np.zeros((4, 2))))) == 2
    ax = plot.biplot(np.zeros((3, 2)), np.ones((4, 2)))
    assert len(tips(ax)) == 0
    drawn(ax)


# ---- any result, any axes ---------------------------------------------------------------------------


X = normal(17, 30, 6) @ np.diag([3, 2.5, 2, 1, 1, 1])


RESULTS = {
    "sparse_pca": lambda: spcacore.sparse_pca(X, 2, cardinality=3),
    "spca": lambda: spcacore.spca(X, 2, cardinality=3),
    "ppca": lambda: spcacore.ppca(X, 2),
    "sparse_lda": lambda: spcacore.sparse_lda(X, np.repeat([0, 1, 2], 10), cardinality=2),
    "float32": lambda: spcacore.sparse_pca(X.astype(np.float32), 2, cardinality=3),
    "list": lambda: spcacore.sparse_pca(X, 2, cardinality=3).loadings.tolist(),
}


@pytest.mark.parametrize("result", RESULTS.values(), ids=RESULTS)
def test_every_result_can_be_drawn(result):
    result = result()
    V = np.asarray(getattr(result, "loadings", result))
    assert [bar.get_width() for bar in plot.bars(result).patches] == V[np.argsort(-abs(V[:, 0])), 0][
        : np.count_nonzero(V[:, 0])
    ].tolist()
    image = plot.images(result, (2, 3)).images[1]
    assert np.array_equal(image.get_array().filled(0).ravel(), V[:, 1])
    left, right, bottom, top = image.get_extent()
    assert (bottom - top) / (right - left) == pytest.approx(2 / 3)  # pixels are squares


def test_both_sides_of_canonical_pairs():
    Y = X[:, 3:] + 0.1 * X[:, :3]
    result = spcacore.sparse_cca(X, Y, 2, l1_bound=(1.3, 1.2))
    V = np.vstack([result.loadings_x, result.loadings_y])
    names = [*(f"x{j + 1}" for j in range(6)), *(f"y{j + 1}" for j in range(3))]
    for order in ("given", "cluster", "loading"):
        ax = plot.heatmap(result, order=order)
        found = [names.index(name) for name in rows(ax)]
        assert sorted(found) == np.flatnonzero(V.any(axis=1)).tolist()
        assert sorted(found[: np.count_nonzero(V[:6].any(axis=1))]) == sorted(j for j in found if j < 6)
        assert np.array_equal(ax.images[0].get_array().filled(0), V[found])
    assert rows(plot.bars(result)) == [names[j] for j in np.argsort(-abs(V[:, 0])) if V[j, 0]]
    named = replace(result, names_x=tuple("abcdef"))
    assert set(rows(plot.heatmap(named))) <= {*"abcdef", "y1", "y2", "y3"}


def test_estimators_are_drawn_as_their_results():
    """Of this package and of scikit-learn; the names are those of the columns of the fit."""
    decomposition = pytest.importorskip("sklearn.decomposition", reason="needs scikit-learn")
    from spcacore.sklearn import SparsePCA

    frame = pandas.DataFrame(X, columns=[*"abcdef"])
    ours, theirs = SparsePCA(2, cardinality=3).fit(frame), decomposition.PCA(2).fit(frame)
    for model in (ours, theirs):
        ax = plot.heatmap(model, order="given")
        used = model.components_.any(axis=0)
        assert np.array_equal(ax.images[0].get_array().filled(0), model.components_.T[used])
        assert rows(ax) == frame.columns[used].tolist()
        shares = 100 * getattr(model, "explained_variance_ratio_", ours.result_.explained_variance_ratio)
        assert texts(ax.get_xticklabels()) == [f"{t + 1}\n{share:.1f} %" for t, share in enumerate(shares)]
        assert points(plot.biplot(model, frame)) == pytest.approx(np.asarray(model.transform(frame)))
        what = "dense" if model.components_.all() else "sparse"
        assert heights(plot.scree(model))[what] == pytest.approx(shares / 100)
    found = spcacore.compare({"a": theirs, "b": ours}, frame)
    assert found.explained_variance_ratio["raw"][0] == pytest.approx(theirs.explained_variance_ratio_)
    assert_allclose(found.loadings[1], ours.result_.loadings, rtol=1e-14)
    for own in (theirs, ours.result_):
        given = spcacore.from_loadings(own, X)
        ratio = spcacore.explained_variance(X, given.loadings, ratio=True)
        assert spcacore.explained_variance(frame, own, ratio=True) == pytest.approx(ratio, rel=1e-12)
        assert given.names == tuple("abcdef")
    assert set(heights(plot.comparison({"a": theirs, "b": ours}, frame))) == {"ordinary", "a", "b"}


CALLS = {
    "bars": lambda ax: plot.bars(X[:6], ax=ax),
    "heatmap": lambda ax: plot.heatmap(X[:6], ax=ax),
    "images": lambda ax: plot.images(X[:6], (3, 2), ax=ax),
    "biplot": lambda ax: plot.biplot(X[:6, :2], X[:, :2], ax=ax),
    "scree": lambda ax: plot.scree(X[:6, :2], X, ax=ax),
    "comparison": lambda ax: plot.comparison(spcacore.compare([X.T[:6, :2]], X), ax=ax),
    "path": lambda ax: plot.path(stand_in(), ax=ax),
    "selection": lambda ax: plot.path(selection(), ax=ax),
}


@pytest.mark.share(3)
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_axes_that_are_given_are_used(call):
    figure = Figure()  # unknown to pyplot
    ax, other = figure.subplots(1, 2)
    before = dict(matplotlib.rcParams)
    assert call(ax) is ax
    assert not pyplot.get_fignums()
    assert dict(matplotlib.rcParams) == before
    assert not other.has_data()
    figure.canvas.draw()
    part = Figure(layout="constrained").subfigures(1, 2)[1]
    assert call(part.subplots()) in part.axes
    new = call(None)
    assert pyplot.get_fignums() == [new.figure.number]
    drawn(new)


def test_without_matplotlib_it_is_said_where_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.axes", None)
    with pytest.raises(ImportError, match=r"\.\[plot\]"):
        plot.bars([1.0])


BY_COMPONENT = selection(earlier=(selection(),))
V2 = np.eye(6)[:, :2]


BAD = [
    (lambda: plot.bars(V2, 2), ValueError, "component must be in \\[0, 1\\], not 2"),
    (lambda: plot.bars(V2, ax=3), TypeError, "ax must be a matplotlib Axes or None, not int"),
    (lambda: plot.heatmap(V2, components=[0, 2]), ValueError, "components\\[1\\] must be in \\[0, 1\\]"),
    (lambda: plot.heatmap(V2, components=[]), ValueError, "components is empty"),
    (lambda: plot.images(V2, (2, 4)), ValueError, "shape \\(2, 4\\) has 8 pixels for 6 variables"),
    (lambda: plot.images(V2, 6), TypeError, "shape must be two integers"),
    (lambda: plot.biplot(V2[:, :1], X), ValueError, "needs two components"),
    (lambda: plot.biplot(V2, X[:, :2], components=(0, 0)), ValueError, "two different"),
    *[
        (lambda V=V: plot.biplot(V(), X), TypeError, "has no transform of one table: pass scores of shape")
        for V in (
            lambda: V2,
            lambda: pandas.DataFrame(V2),
            lambda: spcacore.sparse_cca(X[:, :3], X[:, 3:], 2, 2),
        )
    ],
    (lambda: plot.bars(spcacore.compare([V2], X)), TypeError, "Comparison has the loadings of several"),
    (lambda: plot.biplot(V2, X[:, :3]), ValueError, "2 columns \\(scores\\) or 6 \\(data\\)"),
    (lambda: plot.biplot(V2, X[:, :2], labels=[0, 1]), ValueError, "labels must have shape \\(30,\\)"),
    (
        lambda: plot.biplot(V2, np.zeros((33, 2)), labels=[*map(str, range(33))]),
        ValueError,
        "33 classes; at most 32 can be told apart, but numbers",
    ),
    (lambda: plot.scree(V2), ValueError, "no explained_variance_ratio: pass X"),
    (lambda: plot.scree(V2, X, dense=[0.1]), ValueError, "either X or dense"),
    (lambda: plot.scree(V2, np.ones((4, 6))), ValueError, "X has no variance"),
    (lambda: plot.scree(spcacore.sparse_pca(X, 2, cardinality=2), dense=[0.9, 0.2]), ValueError, "dense"),
    (lambda: plot.comparison({"a": V2}), TypeError, r"not dict: plot.comparison\(results, X\)"),
    (lambda: plot.comparison(spcacore.compare([V2], X), X), TypeError, "X was given to spcacore.compare"),
    (lambda: plot.heatmap(spcacore.kernel_pca(X, 2)), TypeError, "KernelPCAResult has no loadings"),
    (
        lambda: spcacore.compare([spcacore.sparse_cca(X, X[:, :3], l1_bound=1.2)], X),
        TypeError,
        "loadings_x and loadings_y",
    ),
    (lambda: plot.path(stand_in(), chosen=3), ValueError, "chosen must be one of the values 1, 2, 4"),
    (lambda: plot.path(stand_in(), component=0), ValueError, "component requires a selection whose grids"),
    (lambda: plot.path(BY_COMPONENT, chosen=4), ValueError, "chosen needs component"),
    (lambda: plot.path(V2), TypeError, "SparsityPath or a SparsitySelection"),
    (lambda: plot.path(stand_in(explained_variance_ratio=None)), ValueError, "total variance is unknown"),
]


@pytest.mark.parametrize(("call", "error", "message"), BAD)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()
    assert not pyplot.get_fignums()  # refused before any drawing
