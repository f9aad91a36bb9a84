"""Pictures of sparse components, with matplotlib (`pip install "spcacore[plot]"`).

Every function draws into one matplotlib Axes, a new one or the one it is given, and returns it. Nothing is
shown, and no setting of matplotlib is changed. Loadings have one diverging scale of colors everywhere, red
above zero and blue below, with limits of the same magnitude.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._messages import counted
from .._validation import check_choice, integer, real_array
from ..results import labels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes


__all__ = ["bars", "biplot", "heatmap", "images", "path", "scree"]
_DIVERGING, _ABOVE, _BELOW = "RdBu_r", "#b2182b", "#2166ac"
_SPARSE, _DENSE, _ORDINARY, _CHOSEN = "#0072b2", "#7d7d7d", "#c4c4c4", "#d55e00"
_CLASSES = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c564b", "#4d4d4d")
_MARKERS = "osD^"
_VERBATIM: dict[str, Any] = {"parse_math": False, "usetex": False}  # a name may contain $ and _
_LONGEST_NAME = 24
_LARGEST_TREE = 3000
_SIGN = 0.3  # what the sign of a loading counts in the clustering of variables, beside its magnitude
_SCREE = ("sparse", "sparse, cumulative", "ordinary", "ordinary, cumulative")
_WIDTH = 0.6  # of a letter, of its height
_LOG_SPAN = 10**1.5
_NO_LOADINGS = "all loadings are zero"


def bars(
    result: Any,
    component: int = 0,
    *,
    n_variables: int = 30,
    names: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """The loadings of one component as horizontal bars, the largest magnitude first.

    Parameters
    ----------
    result : object with `loadings`, or array-like of shape (p, r) or (p,)
        `SparsePCAResult`, `SPCAResult`, `RotatedResult` and the like; a `SparseComponent` has one component.
    component : int, default 0
    n_variables : int, default 30
        At most so many bars; the title says how many loadings there are.
    names : sequence of p str, optional
        Of the variables. Default: those of the result, else x1, x2, ...
    ax : matplotlib.axes.Axes, optional
        Default: a new figure.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ValueError, TypeError
        For a component that is not there, or names that are not p strings.
    ImportError
        Without matplotlib.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import spcacore
    >>> from spcacore import plot
    >>> props = spcacore.datasets.load_pitprops()
    >>> result = spcacore.sparse_pca(props.correlation, 2, cardinality=4, kind="covariance")
    >>> ax = plot.bars(result, names=props.names)
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['length', 'topdiam', 'bowdist', 'whorls']
    >>> ax.get_title(loc="left")
    'component 1: 4 loadings, 22.6 % of the variance'
    """
    V = _loadings(result)
    t = integer(component, "component", 0, V.shape[1] - 1)
    limit = integer(n_variables, "n_variables", 1)
    named = _names(result, names, len(V))
    v = V[:, t]
    count = int(np.count_nonzero(v))
    index = np.argsort(-abs(v), kind="stable")[: min(count, limit)]
    ax = _axes(ax, (5.6, min(1.1 + 0.24 * max(len(index), 3), 10)))
    position = np.arange(len(index))
    thick = 0.72 * min(1, 30 / _room(ax, len(index)))
    ax.barh(position, v[index], height=thick, color=[_ABOVE if x > 0 else _BELOW for x in v[index]])
    if count:
        ax.axvline(0, color=_ink(), linewidth=0.8)
    ax.set_ylim(max(len(index), 1) - 0.4, -0.6)
    _label_rows(ax, [named[j] for j in index])
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel("loading" if len(index) == count else f"loading (the {len(index)} largest of {count})")
    ax.xaxis.grid(True, color="0.9", linewidth=0.8)
    ax.set_axisbelow(True)
    _bare(ax, "left")
    share = _shares(result, V.shape[1])
    variance = "" if share is None else f", {_percent(share[t])} of the variance"
    shown = counted(count, "loading")
    ax.set_title(f"component {t + 1}: {shown}{variance}", loc="left", fontsize="medium")
    if count == 0:
        ax.set_xticks([])
        _say(ax, _NO_LOADINGS)
    return ax


def heatmap(
    result: Any,
    *,
    names: Sequence[str] | None = None,
    components: int | Sequence[int] | None = None,
    n_variables: int | None = None,
    order: str = "cluster",
    ax: Axes | None = None,
) -> Axes:
    """The loadings as a table of colors, variables down and components across.

    Only variables that some of these components select are shown, and no color where a loading is exactly
    zero. Names are written where there is room for them.

    Parameters
    ----------
    result : object with `loadings`, or array-like of shape (p, r) or (p,)
    names : sequence of p str, optional
        Default: those of the result, else x1, x2, ...
    components : int or sequence of int, optional
        Which, and in which order. Default: all.
    n_variables : int, optional
        Show only so many, those with the largest loadings by magnitude. Default: all that are selected.
    order : {"cluster", "loading", "given"}, default "cluster"
        "cluster": hierarchical clustering (average linkage) by the magnitudes of the loadings, and less by
        their signs, a variable's loadings divided by the root of their length, so that the components
        count more than the sizes; of two clusters that merge, that of the earlier components comes first.
        For more than 3000 variables, "loading". "loading": by the component in which a variable has its
        largest magnitude, there from positive to negative. "given": as in the data.
    ax : matplotlib.axes.Axes, optional
        Default: a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        Its figure has the color bar too.

    Raises
    ------
    ValueError, TypeError
        For components that are not there, an order that is not, or names that are not p strings.
    ImportError
        Without matplotlib.

    References
    ----------
    M. B. Eisen, P. T. Spellman, P. O. Brown and D. Botstein (1998). Cluster analysis and display of
    genome-wide expression patterns. Proceedings of the National Academy of Sciences 95, 14863-14868.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from spcacore import plot
    >>> ax = plot.heatmap([[0.8, 0], [0, 0], [0, -1], [0.6, 0]], names=["a", "b", "c", "d"])
    >>> [label.get_text() for label in ax.get_yticklabels()]  # b has no loading
    ['a', 'd', 'c']
    """
    V = _loadings(result)
    chosen = _components(components, V.shape[1])
    check_choice(order, "order", ("cluster", "loading", "given"))
    named = _names(result, names, len(V))
    V = V[:, chosen]
    magnitude = abs(V).max(axis=1)
    rows = np.flatnonzero(magnitude)
    selected = len(rows)
    if n_variables is not None:
        most = integer(n_variables, "n_variables", 1)
        rows = np.sort(rows[np.argsort(-magnitude[rows], kind="stable")[:most]])
    if order == "cluster" and 2 < len(rows) <= _LARGEST_TREE:
        rows = rows[_clustered(V[rows])]
    elif order != "given":
        rows = rows[_by_component(V[rows])]
    m, r = len(rows), len(chosen)
    ax = _axes(ax, (min(2.8 + 0.6 * r, 11), min(1.2 + 0.21 * max(m, 6), 9)))
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    if m == 0:
        ax.set_xticks([])
        ax.set_yticks([])
        _say(ax, _NO_LOADINGS)
        return ax
    largest = float(magnitude[rows].max())
    table = np.ma.masked_equal(V[rows], 0)
    image = ax.imshow(
        table, cmap=_DIVERGING, vmin=-largest, vmax=largest, aspect="auto", interpolation="nearest"
    )
    if _room(ax, m) > 4:
        ax.hlines(np.arange(m + 1) - 0.5, -0.5, r - 0.5, color="0.92", linewidth=0.6)
    ax.vlines(np.arange(r + 1) - 0.5, -0.5, m - 0.5, color="0.8", linewidth=0.8)
    ax.set_xlim(-0.5, r - 0.5)
    ax.set_ylim(m - 0.5, -0.5)
    shares = _shares(result, r, chosen)
    thin = max(1, -(-r // 20))
    ticks = [str(t + 1) for t in chosen]
    if shares is not None and r <= 8:
        ticks = [f"{tick}\n{_percent(share)}" for tick, share in zip(ticks, shares, strict=True)]
    ax.set_xticks(np.arange(0, r, thin), ticks[::thin])
    ax.set_xlabel("component" if shares is None or r > 8 else "component, and its share of the variance")
    if not _label_rows(ax, [named[j] for j in rows]) or m < selected:
        ax.set_ylabel(
            counted(m, "variable") if m == selected else f"{m} of {counted(selected, 'selected variable')}"
        )
    _color_bar(ax, image)
    return ax


def images(
    result: Any,
    shape: tuple[int, int],
    *,
    components: int | Sequence[int] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Each loading as an image, side by side in one Axes, on one symmetric scale of colors; zeros are blank.

    Parameters
    ----------
    result : object with `loadings`, or array-like of shape (p, r) or (p,)
        Variables are the pixels, row by row.
    shape : (int, int)
        Rows and columns of an image; the product is p.
    components : int or sequence of int, optional
        Which, and in which order. Default: all.
    ax : matplotlib.axes.Axes, optional
        Default: a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        Its `images` are in the order of the components; its figure has the color bar too.

    Raises
    ------
    ValueError, TypeError
        For components that are not there, or a shape that does not hold p pixels.
    ImportError
        Without matplotlib.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from spcacore import plot
    >>> ax = plot.images([0.6, 0.0, 0.0, 0.0, -0.8, 0.0], (2, 3))
    >>> ax.images[0].get_array().filled(0).tolist(), ax.images[0].get_clim()
    ([[0.6, 0.0, 0.0], [0.0, -0.8, 0.0]], (-0.8, 0.8))
    """
    V = _loadings(result)
    chosen = _components(components, V.shape[1])
    if not isinstance(shape, (tuple, list)) or len(shape) != 2:
        raise TypeError(f"shape must be two integers, the rows and columns of an image, not {shape!r}")
    rows, columns = (integer(size, f"shape[{i}]", 1) for i, size in enumerate(shape))
    if rows * columns != len(V):
        raise ValueError(
            f"shape ({rows}, {columns}) has {counted(rows * columns, 'pixel')} "
            f"for {counted(len(V), 'variable')}"
        )
    r = len(chosen)
    tall = rows / columns
    across = min(r, math.ceil(math.sqrt(1.5 * r * tall)))
    down = -(-r // across)
    across = -(-r // down)
    shares = _shares(result, r, chosen)
    gap, title = 0.08, 0.24 if r > 1 or shares is not None else 0.0  # of a width, and in inches
    side = min(1.6, 9 / across, 8 / (down * tall))
    high = down * (side * tall + max(title, gap * side))
    own = ax is None
    ax = _axes(ax, (side * across * (1 + gap) + 1.2, max(high + 0.3, 1.8)))
    if not own:
        box = ax.get_window_extent()
        width, height = 0.85 * box.width / ax.figure.dpi, box.height / ax.figure.dpi
        side = min(width / (across * (1 + gap)), max(height / down - title, 0.1) / tall)
    head = max(title / side, gap)
    limit = float(abs(V[:, chosen]).max()) or 1.0
    for i, t in enumerate(chosen):
        left, top = i % across * (1 + gap), i // across * (tall + head)
        picture = np.ma.masked_equal(V[:, t].reshape(rows, columns), 0)
        image = ax.imshow(
            picture, cmap=_DIVERGING, vmin=-limit, vmax=limit, interpolation="nearest",
            extent=(left, left + 1, top + tall, top),
        )  # fmt: skip
        edge = [(left, top), (left + 1, top), (left + 1, top + tall), (left, top + tall), (left, top)]
        ax.plot(*zip(*edge, strict=True), color="0.75", linewidth=0.8)
        if title:
            said = f"{t + 1}" if shares is None else f"{t + 1}:  {_percent(shares[i])}"
            ax.text(left, top - 0.03, said, fontsize="small", va="bottom")
    ax.set_xlim(-0.02, across * (1 + gap) - gap + 0.02)
    ax.set_ylim(down * (tall + head) - head + 0.02, -head)
    ax.set_axis_off()
    _color_bar(ax, image)
    return ax


def biplot(
    result: Any,
    scores_or_X: Any,
    *,
    components: tuple[int, int] = (0, 1),
    labels: Any = None,
    names: Sequence[str] | None = None,
    n_variables: int = 10,
    ax: Axes | None = None,
) -> Axes:
    """The samples by two components, with an arrow for each selected variable.

    A point is a sample, at its scores as `result.transform` gives them: its centred and scaled variables
    times the loadings. The arrow of variable j ends at `c (v_j1, v_j2)`, its loadings of the two components
    times one factor c, the same for both directions and all variables, so that the arrows fill the
    picture. A variable that only one component selects hence has an arrow along that axis, and one that
    neither selects has none. Both axes have the same unit, so that angles are as they are.

    Parameters
    ----------
    result : object with `loadings`, or array-like of shape (p, r)
    scores_or_X : array-like of shape (n, r), or data of shape (n, p)
        The scores of all components, or the data to compute them from (dense or sparse) by the `transform` of
        the result. A matrix of p columns is taken as data.
    components : (int, int), default (0, 1)
        To the right, and up.
    labels : array-like of shape (n,), optional
        Classes of the samples, at most 32, for the colors.
    names : sequence of p str, optional
        Of the variables. Default: those of the result, else x1, x2, ...
    n_variables : int, default 10
        At most so many arrows, the longest.
    ax : matplotlib.axes.Axes, optional
        Default: a new figure.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ValueError, TypeError
        For components that are not there, or shapes that do not match.
    ImportError
        Without matplotlib.

    References
    ----------
    K. R. Gabriel (1971). The biplot graphic display of matrices with application to principal component
    analysis. Biometrika 58, 453-467.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import spcacore
    >>> from spcacore import plot
    >>> X, _ = spcacore.datasets.make_spiked(40, 30, cardinality=3, rng=0)
    >>> ax = plot.biplot(spcacore.sparse_pca(X, 2, cardinality=3), X)
    >>> sorted(text.get_text() for text in ax.texts if text.get_text())
    ['x1', 'x2', 'x3', 'x4', 'x5', 'x6']
    """
    V = _loadings(result)
    p, r = V.shape
    if not isinstance(components, (tuple, list)) or len(components) != 2:
        raise TypeError(f"components must be two integers, not {components!r}")
    if r < 2:
        raise ValueError("a biplot needs two components, and the result has one")
    first, second = _components(components, r)
    if first == second:
        raise ValueError(f"components must be two different ones, not {components!r}")
    limit = integer(n_variables, "n_variables", 0)
    named = _names(result, names, p)
    Z = _scores(result, scores_or_X, p, r)[:, [first, second]].astype(np.float64)
    V = V[:, [first, second]]
    classes = None if labels is None else _classes(labels, len(Z))
    length = np.hypot(*V.T)
    selected = np.flatnonzero(length)
    index = selected[np.argsort(-length[selected], kind="stable")[:limit]]
    own = ax is None
    ax = _axes(ax, (6.8, 5.6))
    style: dict[str, Any] = {
        "s": float(np.clip(15000 / len(Z), 6, 26)),
        "linewidth": 0.4,
        "edgecolor": ax.get_facecolor(),
        "zorder": 2,
    }
    style["rasterized"] = len(Z) > 5000
    if classes is None:
        ax.scatter(*Z.T, color="0.6", **style)
    else:
        _scatter_classes(ax, Z, *classes, style)
    for line in (ax.axhline, ax.axvline):
        line(0, color="0.85", linewidth=0.8, zorder=0)
    reach, size = abs(Z).max(axis=0), abs(V[index]).max(axis=0, initial=0)
    fits = [a / b for a, b in zip(reach, size, strict=True) if a > 0 and b > 0]
    tips = V[index] * (0.95 * min(fits) if fits else 1.0)
    for tip in tips:
        arrow = {"arrowstyle": "-|>", "shrinkA": 0, "shrinkB": 0, "color": _ink(), "linewidth": 1.2}
        ax.annotate("", tuple(tip), (0, 0), arrowprops={**arrow, "mutation_scale": 9}, zorder=3)
    ax.update_datalim(np.vstack([tips * 1.08, np.zeros((1, 2))]))
    shared = any(
        len(grouper.get_siblings(ax)) > 1 for grouper in (ax.get_shared_x_axes(), ax.get_shared_y_axes())
    )
    ax.set_aspect("equal", adjustable="box" if shared else "datalim")
    ax.autoscale_view()
    shares = _shares(result, 2, (first, second))
    for i, (t, axis) in enumerate(((first, ax.xaxis), (second, ax.yaxis))):
        share = "" if shares is None else f"  ({_percent(shares[i])} of the variance)"
        axis.set_label_text(f"component {t + 1}{share}")
    if 0 < len(index) < len(selected):
        ax.text(
            1, 0.005, f"arrows: the {len(index)} longest of {len(selected)}", transform=ax.transAxes,
            fontsize="x-small", color="0.45", ha="right", va="bottom",
        )  # fmt: skip
    _bare(ax)
    if own:
        whole: Any = ax.figure
        whole.draw_without_rendering()  # labels are placed by where the tips will be
    else:
        ax.apply_aspect()
    _label_tips(ax, tips, [_short(named[j]) for j in index])
    return ax


def scree(
    result: Any,
    X: Any = None,
    *,
    dense: Any = None,
    kind: str | None = None,
    center: bool | None = None,
    scale: bool | None = None,
    ax: Axes | None = None,
) -> Axes:
    """The share of the variance of each component and of all up to it, beside ordinary principal components.

    Shares of sparse components are additional variances (`explained_variance`, definition "cumulative"), so
    that their sums are what components explain together; no r components explain more than the first r
    ordinary ones, whose shares are the r largest eigenvalues of the covariance matrix over its trace.

    Parameters
    ----------
    result : object with `loadings`, or array-like of shape (p, r) or (p,)
        Its own shares are drawn where it has them; else X is needed.
    X : array-like of shape (n, p), sparse matrix, optional
        The data, or the covariance, which the result was computed from. Ordinary principal components are
        drawn if it is given.
    dense : array-like, optional
        Shares of ordinary principal components, if they are known: numbers in [0, 1], not cumulated.
    kind : {"data", "covariance"}, optional
    center, scale : bool, optional
        How X is to be taken, as in `sparse_pca`. Default: as the result says, else "data", True, False.
    ax : matplotlib.axes.Axes, optional
        Default: a new figure.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ValueError, TypeError
        For an X that is not the one of the result, both X and dense, or no known shares.
    ImportError
        Without matplotlib.

    References
    ----------
    H. Shen and J. Z. Huang (2008). Sparse principal component analysis via regularized low rank
    matrix approximation. Journal of Multivariate Analysis 99, section 2.3.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import spcacore
    >>> from spcacore import plot
    >>> A = spcacore.datasets.load_pitprops().correlation
    >>> result = spcacore.sparse_pca(A, 3, cardinality=5, kind="covariance")
    >>> ax = plot.scree(result, A)
    >>> for bars in ax.containers:
    ...     print(bars.get_label(), [round(float(bar.get_height()), 1) for bar in bars])
    sparse [26.2, 16.7, 15.2]
    ordinary [32.5, 18.3, 14.4]
    """
    V = _loadings(result)
    r = V.shape[1]
    if X is not None and dense is not None:
        raise ValueError("give either X or dense, not both")
    options: dict[str, Any] = {"kind": kind, "center": center, "scale": scale}
    shares = _shares(result, r)
    if X is None:
        if any(option is not None for option in options.values()):
            raise ValueError("kind, center and scale say how X is to be taken, and there is no X")
        if shares is None:
            raise ValueError("the result has no explained_variance_ratio: pass X")
    ordinary = None if dense is None else _known_shares(dense)[:r]
    if X is not None:
        options = {name: _as_in(result, name) if v is None else v for name, v in options.items()}
        ordinary, own = _shares_of(X, V, shares is None, options)
        shares = own if shares is None else shares
    assert shares is not None
    ax = _axes(ax, (min(4.4 + 0.35 * r, 10), 4))
    x = np.arange(1, r + 1)
    width = 0.38 if ordinary is not None else 0.6
    ax.bar(x - (width / 2 if ordinary is not None else 0), 100 * shares, width, color=_SPARSE, label="sparse")
    ax.plot(x, 100 * np.cumsum(shares), "o-", color=_SPARSE, markersize=4.5, label="sparse, cumulative")
    if ordinary is not None:
        at = x[: len(ordinary)]
        ax.bar(at + width / 2, 100 * ordinary, width, color=_ORDINARY, label="ordinary")
        ax.plot(
            at, 100 * np.cumsum(ordinary), "s--", color=_DENSE, markersize=4, linewidth=1.2,
            label="ordinary, cumulative", zorder=1.9,
        )  # fmt: skip
    _whole_ticks(ax, r)
    ax.set_xlim(0.4, r + 0.6)
    top = 100 * max(shares.sum(), 0 if ordinary is None else ordinary.sum())
    ax.set_ylim(0, min(max(1.12 * top, 1e-9), 105))
    ax.set_xlabel("component")
    ax.set_ylabel("share of the variance, %")
    ax.yaxis.grid(True, color="0.92", linewidth=0.8)
    ax.set_axisbelow(True)
    drawn, said = ax.get_legend_handles_labels()
    order = [said.index(label) for label in _SCREE if label in said]
    _legend(ax, [drawn[i] for i in order], [said[i] for i in order])
    _bare(ax)
    return ax


def path(path_or_selection: Any, *, chosen: float | None = None, ax: Axes | None = None) -> Axes:
    """What sparsity costs: variance, or a score with its standard errors, against cardinality or penalty.

    Of a `SparsityPath`, the share of the variance that all components explain together and, for up to six,
    that of each; the dashed line is what as many ordinary principal components explain. Of a
    `SparsitySelection`, the score with error bars of one standard error, the best value, and the one chosen:
    with the one-standard-error rule, the sparsest whose score reaches the dashed line, the best score less
    its standard error. (A number of components by permutation counts those above permuted data, where the
    dashed line is then.) The axis is logarithmic where values span more than a factor of 32.

    Parameters
    ----------
    path_or_selection : SparsityPath or SparsitySelection
        From `sparsity_path`, `select_sparsity` or `select_n_components`.
    chosen : float, optional
        One of the values, to be marked. Default: what a selection chose; on a path, none.
    ax : matplotlib.axes.Axes, optional
        Default: a new figure.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ValueError, TypeError
        For anything else, or a chosen value that is not there.
    ImportError
        Without matplotlib.

    References
    ----------
    L. Breiman, J. H. Friedman, R. A. Olshen and C. J. Stone (1984). Classification and Regression Trees,
    section 3.4.3, for the one-standard-error rule.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import spcacore
    >>> from spcacore import plot
    >>> A = spcacore.datasets.load_pitprops().correlation
    >>> found = spcacore.sparsity_path(A, n_components=2, cardinality=range(1, 14), kind="covariance")
    >>> ax = plot.path(found, chosen=5)
    >>> for text in ax.get_legend().get_texts():
    ...     print(text.get_text())
    each component
    2 components together
    ordinary: 50.7 %
    chosen: 5, 42.9 %
    """
    source = path_or_selection
    is_selection = all(hasattr(source, name) for name in ("parameter", "values", "score", "criterion"))
    if not is_selection and not all(
        hasattr(source, name) for name in ("parameter", "values", "explained_variance_ratio", "dense_ratio")
    ):
        raise TypeError(f"a SparsityPath or a SparsitySelection is needed, not {type(source).__name__}")
    values = real_array(source.values, "values", ndim=1).astype(np.float64)
    if chosen is None and is_selection:
        chosen = source.chosen
    if chosen is not None and not np.any(values == chosen):
        raise ValueError(f"chosen must be one of the values {_listed(values)}, not {chosen!r}")
    if not is_selection and source.explained_variance_ratio is None:
        raise ValueError("the path has no explained_variance_ratio: the total variance is unknown")
    ax = _axes(ax, (6, 4))
    order = np.argsort(values, kind="stable")
    draw = _draw_selection if is_selection else _draw_path
    y = draw(ax, source, values, order)
    _value_axis(ax, values)
    ax.set_xlabel(_PARAMETERS.get(source.parameter, source.parameter))
    ax.yaxis.grid(True, color="0.92", linewidth=0.8)
    ax.set_axisbelow(True)
    _bare(ax)
    if chosen is not None:
        i = int(np.flatnonzero(values == chosen)[0])
        reached = "" if is_selection else f", {y[i]:.1f} %"
        ax.plot(
            values[i], y[i], "o", markersize=11, markerfacecolor="none", markeredgecolor=_CHOSEN,
            markeredgewidth=1.8, linestyle="none", zorder=4, label=f"chosen: {values[i]:g}{reached}",
        )  # fmt: skip
        ax.axvline(values[i], color=_CHOSEN, linewidth=0.8, alpha=0.6, zorder=1)
    _legend(ax, *ax.get_legend_handles_labels())
    return ax


# ---- paths ------------------------------------------------------------------------------------------


_PARAMETERS = {
    "cardinality": "cardinality: nonzero loadings of each component",
    "l1_bound": "bound of the l1 norm of each component",
    "penalty": "penalty",
    "n_components": "number of components",
}
_CRITERIA = {
    "cv": "predicted share of left-out variance",
    "permutation": "logarithm of the share, less that of permuted data",
    "sparseness": "index of sparseness",
}


def _draw_path(ax: Any, source: Any, values: NDArray[Any], order: NDArray[Any]) -> NDArray[np.float64]:
    shares = 100 * np.asarray(source.explained_variance_ratio, np.float64)
    total, r = shares.sum(axis=1), shares.shape[1]
    x = values[order]
    if 1 < r <= len(_CLASSES) - 2:
        for t in range(r):
            ax.plot(
                x, shares[order, t], "-", color=_SPARSE, linewidth=1, alpha=0.45,
                label="each component" if t == 0 else "_",
            )  # fmt: skip
            ax.annotate(
                f"{t + 1}", (x[-1], shares[order[-1], t]), xytext=(4, 0), textcoords="offset points",
                fontsize="x-small", color=_SPARSE, va="center",
            )  # fmt: skip
    name = "variance explained" if r == 1 else f"{counted(r, 'component')} together"
    ax.plot(x, total[order], "o-", color=_SPARSE, markersize=4.5, label=name)
    top = np.nanmax(total)
    if source.dense_ratio is not None:
        dense = 100 * float(np.sum(source.dense_ratio))
        ax.axhline(
            dense, color=_DENSE, linewidth=1.2, linestyle="--", zorder=1, label=f"ordinary: {dense:.1f} %"
        )
        top = max(top, dense)
    ax.set_ylim(0, min(max(1.08 * top, 1e-9), 105))
    ax.set_ylabel("share of the variance, %")
    return total


def _draw_selection(ax: Any, source: Any, values: NDArray[Any], order: NDArray[Any]) -> NDArray[np.float64]:
    score = np.asarray(source.score, np.float64)
    error = None if source.standard_error is None else np.asarray(source.standard_error, np.float64)
    ax.plot(values[order], score[order], "o-", color=_SPARSE, markersize=4.5, label="score")
    if error is not None:
        ax.errorbar(
            values, score, error, fmt="none", ecolor="#8fbfe0", elinewidth=1.4, capsize=2.5, zorder=1.5
        )  # fmt: skip
    best = int(np.flatnonzero(values == source.best)[0])
    ax.plot(
        values[best], score[best], "D", color=_SPARSE, markersize=7, linestyle="none", zorder=3,
        label=f"best: {values[best]:g}",
    )  # fmt: skip
    if error is not None:
        level, meaning = score[best] - error[best], "best less its standard error"
        if (source.parameter, source.criterion) == ("n_components", "permutation"):
            level, meaning = 0.0, "permuted data"
        ax.axhline(level, color=_DENSE, linewidth=1.2, linestyle="--", zorder=1, label=meaning)
        sparsest = int(np.flatnonzero(values == source.one_se)[0])
        ax.plot(
            values[sparsest], score[sparsest], "s", color="#009e73", markersize=6.5, linestyle="none",
            label=f"one standard error: {values[sparsest]:g}", zorder=3,
        )  # fmt: skip
    ax.set_ylabel(_CRITERIA.get(source.criterion, source.criterion))
    return score


def _value_axis(ax: Any, values: NDArray[Any]) -> None:
    """Logarithmic where the values span decades; ticks that read as numbers."""
    from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

    if values.min() > 0 and values.max() / values.min() > _LOG_SPAN:
        ax.set_xscale("log")
        ax.xaxis.set_major_locator(
            LogLocator(subs=(1.0, 2.0, 5.0) if values.max() < 1e4 * values.min() else (1.0,))
        )
        ax.xaxis.set_major_formatter("{x:g}")
        ax.xaxis.set_minor_locator(NullLocator())
    elif np.all(values == np.rint(values)):
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))


def _listed(values: NDArray[Any]) -> str:
    shown = [f"{value:g}" for value in values]
    return ", ".join(shown if len(shown) <= 8 else [*shown[:4], "...", *shown[-2:]])


# ---- shares -----------------------------------------------------------------------------------------


def _shares(result: Any, r: int, chosen: Sequence[int] | None = None) -> NDArray[np.float64] | None:
    """Of the variance, for each component; None where the result does not say."""
    shares = getattr(result, "explained_variance_ratio", None)
    if shares is None and getattr(result, "pve", None) is not None:
        shares = np.diff(np.asarray(result.pve, np.float64), prepend=0)
    if shares is None:
        return None
    shares = np.asarray(shares, np.float64)
    return shares if chosen is None else shares[list(chosen)]


def _known_shares(dense: Any) -> NDArray[np.float64]:
    shares = real_array(dense, "dense", ndim=1).astype(np.float64)
    if shares.min() < 0 or shares.sum() > 1 + 1e-6:
        raise ValueError("dense must be shares of the variance: numbers in [0, 1] that add up to at most 1")
    return shares


def _as_in(result: Any, name: str) -> Any:
    """How the result took its data."""
    if name == "kind":
        return getattr(result, "kind", "data")
    if name == "center":
        return not (hasattr(result, "mean") and result.mean is None)
    return getattr(result, "scale", None) is not None


def _shares_of(
    X: Any, V: NDArray[Any], wanted: bool, options: dict[str, Any]
) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
    """Of r ordinary principal components, and if wanted of these loadings."""
    from ..linalg.eigen import leading_eigenvectors
    from ..models.variance import checked_loadings, operator_variances
    from ..operators.inputs import as_problem

    problem = as_problem(X, definite=False, **options)
    p, r = V.shape
    if problem.p != p:
        raise ValueError(f"X has {counted(problem.p, 'column')} for {counted(p, 'variable')}")
    if problem.diagonal is None:
        raise ValueError("X must have entries: shares need the total variance")
    total = float(problem.diagonal.sum())
    if not total > 0:
        raise ValueError("X has no variance")
    op = problem.operator
    rank = min(r, p if op.covariance else min(p, op.n))
    ordinary = np.zeros(r)
    ordinary[:rank] = np.maximum(leading_eigenvectors(op, rank)[0], 0) / total
    own = operator_variances(problem, checked_loadings(V, p), "cumulative") / total if wanted else None
    return ordinary, own


# ---- order of variables -----------------------------------------------------------------------------


def _clustered(V: NDArray[np.float64]) -> NDArray[np.intp]:
    """Leaves of a hierarchical clustering; at each node the half of the earlier components comes first."""
    from scipy.cluster.hierarchy import linkage

    largest = abs(V).max(axis=1)
    W = V / largest[:, None]  # so that no sum of squares vanishes
    U = W * np.sqrt(largest / largest.max() / np.linalg.norm(W, axis=1))[:, None]
    tree = linkage(np.hstack([abs(U), _SIGN * U]), "average")
    size = abs(W)
    leading = W[np.arange(len(W)), size.argmax(axis=1)] * (largest / largest.max())
    weight = size @ np.arange(W.shape[1]) / size.sum(axis=1) - 1e-3 * leading
    leaves = [np.array([j]) for j in range(len(V))]
    for left, right in tree[:, :2].astype(int):
        pair = sorted((leaves[left], leaves[right]), key=lambda part: weight[part].mean())
        leaves.append(np.concatenate(pair))
    return leaves[-1]


def _by_component(V: NDArray[np.float64]) -> NDArray[np.intp]:
    leading = abs(V).argmax(axis=1)
    return np.lexsort((-V[np.arange(len(V)), leading], leading))


# ---- points and arrows ------------------------------------------------------------------------------


def _scores(result: Any, source: Any, p: int, r: int) -> NDArray[Any]:
    """As given, or of the data given."""
    shape = getattr(source, "shape", None) or np.shape(source)
    if len(shape) == 2 and shape[1] == p:
        if not hasattr(result, "transform"):
            raise TypeError(f"{type(result).__name__} has no transform: pass scores of shape (n, {r})")
        Z = result.transform(source)
        return real_array(Z, "scores", ndim=2)
    Z = real_array(source, "scores_or_X", ndim=2)
    if Z.shape[1] != r:
        raise ValueError(
            f"scores_or_X must have {counted(r, 'column')} (scores) or {p} (data), not shape {Z.shape}"
        )
    return Z


def _classes(labels: Any, n: int) -> tuple[list[str], NDArray[np.intp]]:
    given = np.asarray(labels)
    if given.shape != (n,):
        raise ValueError(f"labels must have shape ({n},), not {given.shape}")
    try:
        kinds, member = np.unique(given, return_inverse=True)
    except TypeError:
        kinds, member = np.unique(given.astype(str), return_inverse=True)
    if len(kinds) > len(_CLASSES) * len(_MARKERS):
        raise ValueError(
            f"labels have {len(kinds)} classes; at most {len(_CLASSES) * len(_MARKERS)} can be told"
        )
    return [str(kind) for kind in kinds], member


def _scatter_classes(
    ax: Any, Z: NDArray[Any], kinds: list[str], member: NDArray[np.intp], style: dict[str, Any]
) -> None:
    drawn = []
    for c in range(len(kinds)):
        color, marker = _CLASSES[c % len(_CLASSES)], _MARKERS[c // len(_CLASSES)]
        drawn.append(ax.scatter(*Z[member == c].T, color=color, marker=marker, alpha=0.75, **style))
    few = len(kinds) <= 8
    place = (
        {"loc": "lower left", "bbox_to_anchor": (0, 1)}
        if few
        else {"loc": "upper left", "bbox_to_anchor": (1, 1)}
    )
    legend = ax.legend(
        drawn, [f"{c}" for c in range(len(kinds))], frameon=False, ncols=min(len(kinds), 4) if few else 1,
        fontsize="small", handletextpad=0.2, columnspacing=1.2, borderaxespad=0.2, **place,
    )  # fmt: skip
    for handle, text, kind in zip(legend.legend_handles, legend.get_texts(), kinds, strict=True):
        handle.set_sizes([30])
        text.set(text=_short(kind), **_VERBATIM)  # a label that begins with _ would be left out


def _label_tips(ax: Any, tips: NDArray[np.float64], names: list[str]) -> None:
    """Each name beyond its arrow, or as near as leaves room for those of longer arrows."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.patheffects import withStroke

    size = FontProperties(size="small").get_size_in_points()
    scale = 72 / ax.figure.dpi
    at = ax.transData.transform(tips).reshape(-1, 2) * scale
    origin = ax.transData.transform((0, 0)) * scale
    low, high = (np.array(corner) * scale for corner in ax.get_window_extent().get_points())
    lines = np.concatenate([np.linspace(origin, tip, 60) for tip in at]) if len(at) else at
    taken = np.zeros((len(names), 2, 2))
    for i, name in enumerate(names):
        half = np.array([_WIDTH * size * len(name) / 2, 0.7 * size])
        angle = math.atan2(*(at[i] - origin)[::-1])
        best: tuple[float, NDArray[Any], int] | None = None
        for reach in (3, 9, 16, 24, 33, 44, 56):
            for turn in (0, 25, -25, 50, -50, 90, -90):
                way = np.array([math.cos(angle + math.radians(turn)), math.sin(angle + math.radians(turn))])
                offset = way * (reach + half)
                box = np.array([at[i] + offset - half, at[i] + offset + half])
                cost = _overlap(box, taken[:i])
                cost += 4.0 * int(np.count_nonzero(((lines > box[0]) & (lines < box[1])).all(axis=1)))
                cost += 2 * float(np.maximum(low - box[0], 0).sum() + np.maximum(box[1] - high, 0).sum())
                if best is None or cost < best[0] - 1e-9:
                    best = cost, offset, reach
                if cost == 0:
                    break
            if best is not None and best[0] == 0:
                break
        assert best is not None
        _, offset, reach = best
        taken[i] = at[i] + offset - half, at[i] + offset + half
        leader = {"arrowstyle": "-", "color": "0.6", "linewidth": 0.6, "shrinkA": 0, "shrinkB": 1}
        ax.annotate(
            name, tuple(tips[i]), tuple(offset), textcoords="offset points", ha="center", va="center",
            fontsize="small", zorder=5, arrowprops=leader if reach > 9 else None,
            path_effects=[withStroke(linewidth=2.2, foreground=ax.get_facecolor(), alpha=0.85)], **_VERBATIM,
        )  # fmt: skip


def _overlap(box: NDArray[np.float64], others: NDArray[np.float64]) -> float:
    """Area that a box has in common with others."""
    sides = np.minimum(box[1], others[:, 1]) - np.maximum(box[0], others[:, 0])
    return float(np.prod(np.maximum(sides, 0), axis=1).sum())


# ---- what all pictures share ------------------------------------------------------------------------


def _axes(ax: Axes | None, size: tuple[float, float]) -> Any:
    """The Axes to draw into."""
    try:
        from matplotlib.axes import Axes
    except ImportError:
        raise ImportError('spcacore.plot needs matplotlib: pip install "spcacore[plot]"') from None
    if ax is None:
        from matplotlib import pyplot

        figure: Any
        figure, ax = pyplot.subplots(figsize=size, layout="constrained")
        figure.get_layout_engine().set(w_pad=0.09, h_pad=0.09)
        return ax
    if not isinstance(ax, Axes):
        raise TypeError(f"ax must be a matplotlib Axes or None, not {type(ax).__name__}")
    return ax


def _loadings(result: Any) -> NDArray[np.float64]:
    V = getattr(result, "loadings", None)
    if V is None:
        V = getattr(result, "loading", result)
    V = real_array(V, "loadings", ndim=(1, 2)).astype(np.float64)
    return V[:, None] if V.ndim == 1 else V


def _components(components: Any, r: int) -> list[int]:
    if components is None:
        return list(range(r))
    if isinstance(components, (str, bytes)) or not hasattr(components, "__len__"):
        return [integer(components, "components", 0, r - 1)]
    if len(components) == 0:
        raise ValueError("components is empty")
    return [integer(t, f"components[{i}]", 0, r - 1) for i, t in enumerate(components)]


def _names(result: Any, names: Any, p: int) -> list[str]:
    if names is None:
        return labels(getattr(result, "names", None), p)
    if isinstance(names, (str, bytes)) or not hasattr(names, "__len__"):
        raise TypeError(f"names must be a sequence of {p} strings, not {names!r}")
    if len(names) != p:
        raise ValueError(f"names has {counted(len(names), 'entry')} for {counted(p, 'variable')}")
    return [str(name) for name in names]


def _short(name: str) -> str:
    """On one line; the middle of a long one is left out, as names tend to differ at their ends."""
    name = " ".join(name.split())
    if len(name) <= _LONGEST_NAME:
        return name
    tail = _LONGEST_NAME // 3
    return f"{name[: _LONGEST_NAME - tail - 1].rstrip()}…{name[-tail:].lstrip()}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _room(ax: Any, m: int) -> float:
    """Points that each of m rows has."""
    return ax.get_window_extent().height / ax.figure.dpi * 72 / max(m, 1)


def _label_rows(ax: Any, names: list[str]) -> bool:
    """Names beside the rows, in letters that fit; none where those would be too small to read."""
    from matplotlib.font_manager import FontProperties

    room = _room(ax, len(names))
    if room < 5.5:
        ax.set_yticks([])
        return False
    size = min(0.9 * room, FontProperties(size="small").get_size_in_points())
    ax.set_yticks(np.arange(len(names)), [_short(name) for name in names], fontsize=size, **_VERBATIM)
    return True


def _whole_ticks(ax: Any, r: int) -> None:
    step = max(1, -(-r // 15))
    ax.set_xticks(np.arange(1, r + 1, step))


def _ink() -> str:
    """What the style in use writes in: dark styles are light here."""
    import matplotlib

    return matplotlib.rcParams["text.color"]


def _bare(ax: Any, *more: str) -> None:
    ax.spines[["top", "right", *more]].set_visible(False)


def _say(ax: Any, text: str) -> None:
    ax.text(0.5, 0.5, text, transform=ax.transAxes, ha="center", va="center", color="0.5")


def _color_bar(ax: Any, image: Any) -> None:
    inches = ax.get_window_extent().height / ax.figure.dpi
    bar = ax.figure.colorbar(
        image, ax=ax, label="loading", fraction=0.05, pad=0.03, aspect=18, shrink=min(1, 2.8 / inches)
    )
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=2)


def _legend(ax: Any, drawn: Sequence[Any], said: Sequence[str]) -> None:
    """Above the picture, where it hides nothing."""
    ax.legend(
        drawn, said, frameon=False, fontsize="small", loc="lower left", bbox_to_anchor=(0, 1), ncols=2,
        borderaxespad=0.2,
    )  # fmt: skip
