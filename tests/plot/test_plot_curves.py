"""Pictures of variances and paths, against NumPy; and how all pictures look, against stored ones.

Stored pictures are compared after averaging blocks of pixels, so that letters may be drawn a little
differently. After an intended change, look at what `python tests/plot/test_plot_curves.py DIRECTORY` writes,
and store it in tests/data/plots.
"""

import sys
from pathlib import Path
from types import SimpleNamespace

import flat
import numpy as np
import pytest
import scipy.sparse.linalg
from calls import pca
from numpy.testing import assert_allclose
from oracles import covariance, normal, spanned_variance

import spcacore
from spcacore import plot
from spcacore.models.variance import VARIANCE_DEFINITIONS

matplotlib = pytest.importorskip("matplotlib", reason="needs matplotlib")
matplotlib.use("Agg")
import plot_tools  # noqa: E402
from matplotlib import pyplot  # noqa: E402
from plot_tools import PROPS, drawn, eigenvalue_shares, heights, selection, stand_in, texts  # noqa: E402

closed_figures = plot_tools.closed_figures

STORED = Path(__file__).parents[1] / "data" / "plots"


def labeled(ax, start):
    (line,) = [line for line in ax.lines if line.get_label().startswith(start)]
    return line


def lines(ax):
    return {line.get_label(): line.get_ydata() / 100 for line in ax.lines}


@pytest.mark.parametrize("container", [np.asarray, scipy.sparse.csr_array, np.float32])
@pytest.mark.parametrize("options", [{}, {"scale": True}, {"center": False}])
def test_shares_beside_those_of_principal_components(container, options):
    X = np.random.default_rng(14).poisson(2, (50, 8)).astype(float) * np.arange(1, 9)
    X = container(X)
    result = flat.sparse_pca(X, 4, cardinality=3, **options)
    ax = plot.scree(result, X)
    A = covariance(X.toarray() if scipy.sparse.issparse(X) else X, **options)
    dense = eigenvalue_shares(A, 4)
    tolerance = {"rel": 1e-4 if container is np.float32 else 1e-9}
    assert heights(ax)["ordinary"] == pytest.approx(dense, **tolerance)
    assert heights(ax)["sparse"] == pytest.approx(result.explained_variance_ratio)
    assert lines(ax)["ordinary, cumulative"] == pytest.approx(np.cumsum(dense), **tolerance)
    together = spanned_variance(A, result.loadings.astype(float)) / np.trace(A)
    assert lines(ax)["sparse, cumulative"][-1] == pytest.approx(together, **tolerance)


def test_shares_of_an_indefinite_matrix():
    """As Hotelling's deflation leaves it; by what the second of two oblique loadings adds."""
    A = np.diag([4.0, 3, 2, -1])
    ax = plot.scree([[1, 0.6], [0, 0.8], [0, 0], [0, 0]], A, kind="covariance")
    assert_allclose(heights(ax)["sparse"], [0.5, 0.375])


def test_dense_components_are_not_called_sparse():
    V = np.linalg.eigh(PROPS.correlation)[1][:, :-3:-1]
    assert set(heights(plot.scree(V, PROPS.correlation, kind="covariance"))) == {"dense", "ordinary"}


def compared(**options):
    """The second result turned round, the third with two components that are matched with none."""
    V = np.eye(13)
    results = {
        "first": V[:, :3],
        "$turned_1$": V[:, [2, 0]],
        "_third": V[:, [4, 1, 6]] + 0.1 * V[:, [1, 1, 1]],
    }
    return spcacore.compare(results, PROPS.correlation, kind="covariance", **options)


@pytest.mark.share(3)
@pytest.mark.parametrize("definition", VARIANCE_DEFINITIONS)
def test_matched_components_stand_side_by_side(definition):
    c = compared()
    ax = plot.comparison(c, definition=definition)
    found = heights(ax)
    assert list(found) == ["ordinary", "first", "$turned_1$", "third"]
    assert_allclose(found["ordinary"], eigenvalue_shares(PROPS.correlation, 3))
    places = {
        bars.get_label(): [round(bar.get_x() + bar.get_width() / 2) for bar in bars] for bars in ax.containers
    }
    for i, name in enumerate(["first", "$turned_1$", "third"]):
        V = np.zeros((13, len(c.matched[i])))
        V[c.variables] = c.loadings[i]
        shares = spcacore.explained_variance(PROPS.correlation, V, definition, kind="covariance") / 13
        assert_allclose(found[name], shares, rtol=1e-10)
        assert places[name] == [m + 1 if m >= 0 else None for m in c.matched[i]]
    assert places["$turned_1$"] == [3, 1]
    drawn(ax)


def test_components_that_are_matched_with_none_stand_alone():
    c = compared(reference="$turned_1$")
    ax = plot.comparison(c)
    assert texts(ax.get_xticklabels()) == ["1", "2", "alone"]
    assert ax.get_xlabel() == "component of $turned_1$"
    (bars,) = [bars for bars in ax.containers if bars.get_label() == "first"]
    assert [round(bar.get_x() + bar.get_width() / 2) for bar in bars] == [2, 3, 1]


def test_variances_of_a_comparison_without_a_total():
    A = PROPS.correlation
    root = scipy.sparse.linalg.aslinearoperator(np.linalg.cholesky(A).T * np.sqrt(12))
    ax = plot.comparison(spcacore.compare([np.eye(13)[:, :2]], root, center=False))
    assert [bar.get_height() for bar in ax.containers[0]] == pytest.approx([1, 1])
    assert ax.get_ylabel() == "variance"
    assert len(ax.containers) == 1


def test_values_of_one_component_that_descend():
    shares = stand_in([9, 5, 1]).explained_variance_ratio[:, :1]
    ax = plot.path(stand_in([9, 5, 1], explained_variance_ratio=shares, dense_ratio=None))
    assert ax.get_xscale() == "linear"
    line = labeled(ax, "variance explained")
    assert line.get_xdata().tolist() == [9, 5, 1]
    assert np.all(np.diff(line.get_ydata()) < 0)
    assert not [line for line in ax.lines if line.get_label().startswith(("chosen", "ordinary"))]
    assert plot.path(stand_in([0, 10, 1000])).get_xscale() == "linear"  # a zero has no logarithm
    for values, between in (([1, 10, 100], True), ([1, 10, 10**4], False), ([30, 300, 3000], True)):
        ax = plot.path(stand_in(values))
        assert ax.get_xscale() == "log"
        assert np.isclose(np.log10(ax.get_xticks()) % 1, np.log10(2)).any() == between  # the powers of ten


def test_a_few_whole_values_have_whole_ticks():
    ticks = plot.path(stand_in([1, 2, 3])).get_xticks()
    assert np.array_equal(ticks, np.rint(ticks))
    ticks = plot.path(stand_in([1.0, 1.2, 1.4])).get_xticks()
    assert not np.array_equal(ticks, np.rint(ticks))


def test_a_path_and_selections_as_they_are_found():
    A = PROPS.correlation
    found = spcacore.sparsity_path(A, pca(2, kind="covariance"), [2, 5, 13])
    ax = plot.path(found)
    dense = eigenvalue_shares(A, 2).sum()
    assert labeled(ax, "ordinary").get_ydata()[0] == pytest.approx(100 * dense)
    total = labeled(ax, "2 components").get_ydata()
    assert total == pytest.approx([100 * spanned_variance(A, r.loadings) / 13 for r in found.results])
    assert total[-1] == pytest.approx(100 * dense)
    X = normal(18, 30, 6) * [5, 4, 1, 1, 1, 1]
    for chosen in (
        spcacore.select_sparsity(X, spcacore.sparse_pca, [1, 2, 4]),
        spcacore.select_sparsity(X, spcacore.sparse_pca, [4, 2], criterion="permutation", n_permutations=3),
        spcacore.select_sparsity(X, spcacore.sparse_pca, [1, 2, 4], criterion="sparseness"),
        spcacore.select_n_components(X, pca(1, 2), 3),
    ):
        ax = plot.path(chosen)
        assert labeled(ax, "chosen").get_xdata()[0] == chosen.chosen
        order = np.argsort(chosen.values)
        assert np.array_equal(labeled(ax, "score").get_ydata(), chosen.score[order])
        drawn(ax)


def test_grids_that_differ_by_component():
    """All components, or one in full."""
    first = selection(criterion="permutation")
    grid, score = np.array([2, 6, 16]), np.array([0.4, 0.5, 0.6])
    last = selection(
        values=grid, score=score, standard_error=np.full(3, 0.01), best=16, one_se=16, chosen=16,
        criterion="permutation", earlier=(first,),
    )  # fmt: skip
    ax = plot.path(last)
    drawn(ax)
    handles, said = ax.get_legend_handles_labels()
    assert said == ["component 1, chosen: 4", "component 2, chosen: 16"]
    for handle, values, scores, spread in (
        (handles[0], first.values, first.score, 0.05),
        (handles[1], [2, 6, 16], [0.4, 0.5, 0.6], 0.01),
    ):
        assert handle.lines[0].get_xdata().tolist() == list(values)
        assert handle.lines[0].get_ydata().tolist() == list(scores)
        ends = [segment[:, 1].tolist() for segment in handle.lines[2][0].get_segments()]
        assert ends == [pytest.approx([y - spread, y + spread]) for y in scores]
    rings = [line for line in ax.lines if line.get_markersize() == 11]
    assert [(r.get_xdata()[0], r.get_ydata()[0]) for r in rings] == [(4, 0.36), (16, 0.6)]
    assert ax.get_xlabel() == "cardinality: nonzero loadings of each component"
    assert ax.get_ylabel() == "logarithm of the share, less the one of permuted data"
    for component, step in ((0, first), (1, last)):
        ax = plot.path(last, component=component)
        assert labeled(ax, "chosen").get_xdata()[0] == step.chosen
        assert np.array_equal(labeled(ax, "score").get_xdata(), np.sort(step.values))
        assert ax.get_xlabel() == f"cardinality: nonzero loadings of component {component + 1}"
    assert labeled(plot.path(last, component=0, chosen=2), "chosen").get_xdata()[0] == 2


# ---- stored pictures --------------------------------------------------------------------------------


def example():
    """Loadings and scores that no solver can change."""
    V = np.zeros((13, 4))
    V[[0, 1, 6, 7, 8, 9], 0] = 0.48, 0.47, 0.41, 0.42, 0.35, 0.29
    V[[2, 3], 1] = 0.71, 0.70
    V[[4, 5, 12], 2] = 0.55, 0.62, -0.56
    V[[5, 10, 11], 3] = -0.25, 0.93, -0.27
    shares = np.array([0.29, 0.14, 0.13, 0.09])
    return SimpleNamespace(loadings=V, explained_variance_ratio=shares, names=PROPS.names)


def scores():
    t = np.arange(60)
    return np.column_stack([np.cos(t) * (2 + t % 5), np.sin(t) * (1 + t % 3), np.cos(2 * t), np.sin(3 * t)])


def disk():
    y, x = np.indices((9, 12))
    waves = [np.cos(x / 2 + k) * np.sin(y / 3 + k) for k in range(5)]
    return np.column_stack([np.where(abs(wave) > 0.5, wave, 0).ravel() / 5 for wave in waves])


def stored_comparison():
    V = example().loadings
    return spcacore.compare(
        {"four": V, "two": V[:, [2, 0]], "pairs": V[:, :3] + V[:, [1, 2, 3]]},
        PROPS.correlation,
        kind="covariance",
    )


PICTURES = {
    "bars": lambda: plot.bars(example(), 3),
    "bars_many": lambda: plot.bars(np.sin(np.arange(1, 201.0)), n_variables=20),
    "heatmap": lambda: plot.heatmap(example()),
    "heatmap_many": lambda: plot.heatmap(np.sin(np.outer(np.arange(200), [1, 2, 3])), order="loading"),
    "images": lambda: plot.images(disk(), (9, 12)),
    "biplot": lambda: plot.biplot(example(), scores(), labels=np.arange(60) % 3),
    "biplot_plain": lambda: plot.biplot(example(), scores(), components=(3, 2), n_variables=3),
    "scree": lambda: plot.scree(example(), dense=[0.32, 0.18, 0.14, 0.09]),
    "comparison": lambda: plot.comparison(stored_comparison()),
    "path": lambda: plot.path(stand_in(), chosen=8),
    "selection": lambda: plot.path(selection()),
}


def at_low_resolution(name):
    with matplotlib.style.context("default"):
        ax = PICTURES[name]()
        ax.figure.set_dpi(60)
        return drawn(ax)


def blocks(picture, size=6):
    """Means of blocks of pixels."""
    height, width = (n // size * size for n in picture.shape[:2])
    return picture[:height, :width].reshape(height // size, size, width // size, size, 3).mean(axis=(1, 3))


def apart(a, b):
    """Root mean square difference of the means, and the largest."""
    difference = blocks(a) - blocks(b)
    return np.sqrt(np.mean(difference**2)), abs(difference).max()


@pytest.mark.share(6)
@pytest.mark.skipif(
    matplotlib.__version_info__ < (3, 11),
    reason="stored pictures are by matplotlib 3.11, which sets text anew",
)
@pytest.mark.parametrize("name", PICTURES)
def test_stored_pictures(name, tmp_path):
    ours, stored = at_low_resolution(name), pyplot.imread(STORED / f"{name}.png")[..., :3]
    assert ours.shape == stored.shape
    pyplot.imsave(tmp_path / "ours.png", ours)
    mean, largest = apart(ours, stored)
    assert mean < 0.01, f"see {tmp_path / 'ours.png'}"
    assert largest < 0.15, f"see {tmp_path / 'ours.png'}"


def main(directory):
    for name in PICTURES:
        pyplot.imsave(Path(directory) / f"{name}.png", at_low_resolution(name))


def test_frequencies_of_a_stability():
    X, _ = spcacore.datasets.make_spiked(40, 30, cardinality=4, rng=0)
    found = spcacore.stability(X, pca(2, 4), n_resamples=10)
    ax = plot.stability(found, 1, n_variables=6, names=[f"g{j}" for j in range(30)])
    order = np.argsort(-found.selection_frequency[:, 1], kind="stable")[:6]
    order = order[found.selection_frequency[order, 1] > 0]
    bars = sorted((bar.get_y(), bar.get_width()) for group in ax.containers for bar in group)
    assert_allclose([width for _, width in bars], found.selection_frequency[order, 1])
    stars = [" *" * bool(found.stable[j, 1]) for j in order]
    shown = [label.get_text() for label in ax.get_yticklabels()]
    assert shown == [f"g{j}{star}" for j, star in zip(order, stars, strict=True)]
    dashed = [line for line in ax.get_lines() if line.get_linestyle() == "--"]
    assert [line.get_xdata()[0] for line in dashed] == [found.threshold[1]]
    with pytest.raises(TypeError, match="found must be a Stability"):
        plot.stability(X)
    with pytest.raises(ValueError, match=r"component must be in \[0, 1\]"):
        plot.stability(found, 2)


if __name__ == "__main__":
    main(sys.argv[1])
