"""Loadings as bars, as a table of colors, and as images."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from .._limits import CLUSTERED_VARIABLES
from .._messages import counted
from .._rendering import leading
from .._types import Array, Index
from .._validation import check_choice, integer
from ..readable import HasLoadings
from .drawing import (
    ABOVE,
    BELOW,
    NO_LOADINGS,
    add_color_bar,
    add_grid,
    chosen_components,
    diverging,
    faint,
    given_or_new_axes,
    inches_of,
    label_rows,
    percent,
    points_per_row,
    text_color,
    variable_names,
    variance_shares,
    with_loadings,
    write_in_the_middle,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes


def bars(
    result: object,
    component: int = 0,
    *,
    n_variables: int = 30,
    names: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the loadings of one component as horizontal bars, the largest magnitude first.

    Parameters
    ----------
    {result}
    component : int, default 0
    n_variables : int, default 30
        How many bars to draw, at most. The title has the number of nonzero loadings.
    {names}
    {axes}

    {wrong}
        If there is no such component, or `names` is not a sequence of p strings.
    {no_matplotlib}

    {examples}
    >>> import spcacore
    >>> props = spcacore.datasets.load_pitprops()
    >>> result = spcacore.sparse_pca(props.correlation, 2, cardinality=4, kind="covariance")
    >>> ax = plot.bars(result, names=props.names)
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['length', 'topdiam', 'bowdist', 'whorls']
    >>> ax.get_title(loc="left")
    'component 1: 4 loadings, 22.6 % of the variance'
    """
    result, V = with_loadings(result)
    t = integer(component, "component", 0, V.shape[1] - 1)
    limit = integer(n_variables, "n_variables", 1)
    named = variable_names(result, names, len(V))
    v = V[:, t]
    count = int(np.count_nonzero(v))
    index = leading(v, limit)
    ax = given_or_new_axes(ax, (5.6, min(1.1 + 0.24 * max(len(index), 3), 10)))
    position = np.arange(len(index))
    thick = 0.72 * min(1, 30 / points_per_row(ax, len(index)))
    ax.barh(position, v[index], height=thick, color=[ABOVE if x > 0 else BELOW for x in v[index]])
    if count:
        ax.axvline(0, color=text_color(), linewidth=0.8)
    ax.set_ylim(max(len(index), 1) - 0.4, -0.6)
    label_rows(ax, [named[j] for j in index])
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel("loading" if len(index) == count else f"loading (the {len(index)} largest of {count})")
    add_grid(ax, "x", "left")
    share = variance_shares(result)
    variance = "" if share is None else f", {percent(share[t])} of the variance"
    shown = counted(count, "loading")
    ax.set_title(f"component {t + 1}: {shown}{variance}", loc="left", fontsize="medium", wrap=True)
    if count == 0:
        ax.set_xticks([])
        write_in_the_middle(ax, NO_LOADINGS)
    return ax


def heatmap(
    result: object,
    *,
    names: Sequence[str] | None = None,
    components: int | Sequence[int] | None = None,
    n_variables: int | None = None,
    order: Literal["cluster", "loading", "given"] = "cluster",
    ax: Axes | None = None,
) -> Axes:
    """Draw the loadings as a table of colors, with a row for each variable and a column for each component.

    Only variables that at least one of these components selects are shown. Zero loadings have no color. If
    there is no room for all names, the names of the largest loadings are written. The two sets of variables
    of `sparse_cca` stand one below the other, with a line between them.

    Parameters
    ----------
    {result}
    {names}
    {components}
    n_variables : int, optional
        How many variables to show, at most: those with the largest loadings by magnitude. Default: all that
        are selected.
    order : {"cluster", "loading", "given"}, default "cluster"
        "cluster": by hierarchical clustering (average linkage) of the magnitudes of the loadings, and, with
        less weight, of their signs. The loadings of each variable are divided by the square root of their
        norm, so that it matters more in which components a variable is than how large it is there. Of two
        clusters that merge, the one of the earlier components comes first. More than 3000 variables, and
        variables that are in one component each, are ordered as by "loading". "loading": by the component in
        which a variable has its largest magnitude, and there from positive to negative. "given": as in the
        data.
    {axes}
        The figure also has a color bar.

    {wrong}
        If there are no such components or no such order, or `names` is not a sequence of p strings.
    {no_matplotlib}

    References
    ----------
    M. B. Eisen, P. T. Spellman, P. O. Brown and D. Botstein (1998). Cluster analysis and display of
    genome-wide expression patterns. Proceedings of the National Academy of Sciences 95, 14863-14868.

    {examples}
    >>> ax = plot.heatmap([[0.8, 0], [0, 0], [0, -1], [0.6, 0]], names=["a", "b", "c", "d"])
    >>> [label.get_text() for label in ax.get_yticklabels()]  # b has no loading
    ['a', 'd', 'c']
    """
    # Which rows, and their order
    result, V = with_loadings(result)
    chosen = chosen_components(components, V.shape[1])
    check_choice(order, "order", ("cluster", "loading", "given"))
    named = variable_names(result, names, len(V))
    V = V[:, chosen]
    magnitude = abs(V).max(axis=1)
    rows = np.flatnonzero(magnitude)
    selected = len(rows)
    if n_variables is not None:
        most = integer(n_variables, "n_variables", 1)
        rows = np.sort(leading(magnitude, most))
    sides = _sides(result, rows)
    rows = np.concatenate([_ordered(V, side, order) for side in sides])
    m, r = len(rows), len(chosen)
    # The table of colors
    ax = given_or_new_axes(ax, (min(2.8 + 0.6 * r, 11), min(1.2 + 0.21 * max(m, 6), 9)))
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    if m == 0:
        ax.set_xticks([])
        ax.set_yticks([])
        write_in_the_middle(ax, NO_LOADINGS)
        return ax
    largest = float(magnitude[rows].max())
    table = np.ma.masked_equal(V[rows], 0)
    image = ax.imshow(
        table, cmap=diverging(ax), vmin=-largest, vmax=largest, aspect="auto", interpolation="nearest"
    )
    if points_per_row(ax, m) > 4:
        ax.hlines(np.arange(m + 1) - 0.5, -0.5, r - 0.5, linewidth=0.6, **faint(0.1))
    ax.vlines(np.arange(r + 1) - 0.5, -0.5, m - 0.5, linewidth=0.8, **faint(0.2))
    ax.hlines(np.cumsum([len(side) for side in sides[:-1]]) - 0.5, -0.5, r - 0.5, color=text_color())
    ax.set_xlim(-0.5, r - 0.5)
    ax.set_ylim(m - 0.5, -0.5)
    # Labels
    shares = variance_shares(result, chosen) if r <= 8 and inches_of(ax)[0] > 0.7 * r else None
    thin = max(1, -(-r // 20))
    ticks = [str(t + 1) for t in chosen]
    if shares is not None:
        ticks = [f"{tick}\n{percent(share)}" for tick, share in zip(ticks, shares, strict=True)]
    ax.set_xticks(np.arange(0, r, thin), ticks[::thin])
    ax.set_xlabel("component" if shares is None else "component, and its share of the variance")
    labeled = label_rows(ax, [named[j] for j in rows], magnitude[rows])
    what = counted(m, "variable") if m == selected else f"{m} of {counted(selected, 'selected variable')}"
    if labeled < m:
        ax.set_ylabel(f"{what}, {labeled} of them named")
    elif m < selected:
        ax.set_ylabel(what)
    add_color_bar(ax, image)
    return ax


def images(
    result: object,
    shape: tuple[int, int],
    *,
    components: int | Sequence[int] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw each loading as an image, side by side in one Axes.

    All images share one symmetric scale of colors. Zeros are blank.

    Parameters
    ----------
    {result}
        Variables are the pixels, row by row.
    shape : (int, int)
        Numbers of rows and columns of an image; their product must be p.
    {components}
    {axes}
        Its `images` are in the order of the components. The figure also has a color bar.

    {wrong}
        If there are no such components, or the shape does not have p pixels.
    {no_matplotlib}

    {examples}
    >>> ax = plot.images([0.6, 0.0, 0.0, 0.0, -0.8, 0.0], (2, 3))
    >>> ax.images[0].get_array().filled(0).tolist(), ax.images[0].get_clim()
    ([[0.6, 0.0, 0.0], [0.0, -0.8, 0.0]], (-0.8, 0.8))
    """
    result, V = with_loadings(result)
    chosen = chosen_components(components, V.shape[1])
    if not isinstance(shape, (tuple, list)) or len(shape) != 2:
        raise TypeError(f"shape must be two integers, the rows and columns of an image, not {shape!r}")
    rows, columns = (integer(size, f"shape[{i}]", 1) for i, size in enumerate(shape))
    if rows * columns != len(V):
        raise ValueError(
            f"shape ({rows}, {columns}) has {counted(rows * columns, 'pixel')} "
            f"for {counted(len(V), 'variable')}"
        )
    # How many pictures side by side, and how large
    r = len(chosen)
    tall = rows / columns
    across = min(r, math.ceil(math.sqrt(1.5 * r * tall)))
    down = -(-r // across)
    across = -(-r // down)
    shares = variance_shares(result, chosen)
    gap, title = 0.08, 0.24 if r > 1 or shares is not None else 0.0  # a share of a width, and inches
    side = min(1.6, 9 / across, 8 / (down * tall))
    high = down * (side * tall + max(title, gap * side))
    own = ax is None
    ax = given_or_new_axes(ax, (side * across * (1 + gap) + 1.2, max(high + 0.3, 1.8)))
    if not own:
        width, height = inches_of(ax)
        side = min(0.85 * width / (across * (1 + gap)), max(height / down - title, 0.1) / tall)
    from matplotlib.patches import Rectangle

    # The pictures, in units of their width
    head = max(title / side, gap)
    limit = float(abs(V[:, chosen]).max()) or 1.0
    for i, t in enumerate(chosen):
        left, top = i % across * (1 + gap), i // across * (tall + head)
        picture = np.ma.masked_equal(V[:, t].reshape(rows, columns), 0)
        image = ax.imshow(
            picture, cmap=diverging(ax), vmin=-limit, vmax=limit, interpolation="nearest",
            extent=(left, left + 1, top + tall, top),
        )  # fmt: skip
        ax.add_patch(Rectangle((left, top), 1, tall, fill=False, linewidth=0.8, **faint(0.25)))
        if title:
            said = f"{t + 1}" if shares is None else f"{t + 1}:  {percent(shares[i])}"
            ax.text(left, top - 0.03, said, fontsize="small", va="bottom")
    ax.set_xlim(-0.02, across * (1 + gap) - gap + 0.02)
    ax.set_ylim(down * (tall + head) - head + 0.02, -head)
    ax.set_axis_off()
    add_color_bar(ax, image)
    return ax


def _sides(result: Any, rows: Index) -> list[Index]:
    """Return the rows of each set of variables."""
    if not isinstance(result, HasLoadings):
        return [rows]
    ends = np.cumsum([len(side.loadings) for side in result._sides()])
    return np.split(rows, np.searchsorted(rows, ends[:-1]))


def _ordered(V: Array, rows: Index, order: str) -> Index:
    """Return the rows in the order asked for: by clusters, by component, or as given."""
    shared = np.count_nonzero(V[rows], axis=1).max(initial=0) > 1
    if order == "cluster" and shared and 2 < len(rows) <= CLUSTERED_VARIABLES:
        return rows[_clustered(V[rows])]
    return rows if order == "given" else rows[_by_component(V[rows])]


_SIGN = 0.3  # weight of signs in the clustering of variables, beside magnitudes


def _clustered(V: Array) -> Index:
    """Return the rows in the order of the leaves of a hierarchical clustering.

    Rows are compared by the magnitudes of their loadings and, with less weight, by their signs. At each node
    the half with loadings of earlier components comes first.
    """
    from scipy.cluster.hierarchy import linkage

    largest = abs(V).max(axis=1)
    W = V / largest[:, None]  # no sum of squares vanishes
    U = W * np.sqrt(largest / largest.max() / np.linalg.norm(W, axis=1))[:, None]
    tree = linkage(np.hstack([abs(U), _SIGN * U]), "average")
    size = abs(W)
    first = W[np.arange(len(W)), size.argmax(axis=1)] * (largest / largest.max())
    weight = size @ np.arange(W.shape[1]) / size.sum(axis=1) - 1e-3 * first
    leaves = [np.array([j]) for j in range(len(V))]
    for left, right in tree[:, :2].astype(int):
        pair = sorted((leaves[left], leaves[right]), key=lambda part: weight[part].mean())
        leaves.append(np.concatenate(pair))
    return leaves[-1]


def _by_component(V: Array) -> Index:
    """Return the rows by the component of their largest loading, and there in descending order."""
    component = abs(V).argmax(axis=1)
    return np.lexsort((-V[np.arange(len(V)), component], component))
