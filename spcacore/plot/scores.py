"""Samples and variables by two components."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from .._messages import counted
from .._rendering import leading, shortened
from .._types import AnyArray, Array, Index, MatrixLike
from .._validation import integer, real_array
from ..readable import as_result, is_table
from .drawing import (
    COLORS,
    LETTER_WIDTH,
    VERBATIM,
    add_color_bar,
    chosen_components,
    faint,
    given_or_new_axes,
    is_dark,
    percent,
    text_color,
    variable_names,
    variance_shares,
    with_loadings,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

_STYLES = list(product("osD^", COLORS))  # a mark and a color for each class


def biplot(
    result: object,
    scores_or_X: MatrixLike | None = None,
    *,
    components: tuple[int, int] = (0, 1),
    labels: ArrayLike | None = None,
    names: Sequence[str] | None = None,
    n_variables: int = 10,
    ax: Axes | None = None,
) -> Axes:
    """Draw the scores of the samples on two components, with an arrow for each selected variable.

    A point is a sample; its coordinates are its scores from `result.transform`. The arrow of variable j ends
    at `c (v_j1, v_j2)`, where v_j1 and v_j2 are its loadings in the two components. The factor c is the same
    for all variables, and makes the arrows fill the picture. A variable that only one component selects has
    an arrow along that axis; a variable that neither selects has no arrow. Both axes have the same scale, so
    that angles are not distorted. Where arrows of one direction end close together, their names stand in one
    list, the longest first.

    Parameters
    ----------
    {result}
    scores_or_X : array-like of shape (n, r), or data of shape (n, p), optional
        The scores of all components, or the data (dense or sparse), from which `result.transform` computes
        the scores. A matrix of p columns is taken as data. Default: the scores that the result has.
    components : (int, int), default (0, 1)
        The components on the horizontal and on the vertical axis.
    labels : array-like of shape (n,), optional
        Classes of the samples, at most 32, or numbers, which give the colors. Numbers that are not whole, or
        more than 32 different ones, get a color bar; those that are NaN are gray.
    {names}
    n_variables : int, default 10
        How many arrows to draw, at most: the longest ones.
    {axes}

    {wrong}
        If there are no such components, or shapes do not match.
    {no_matplotlib}

    References
    ----------
    K. R. Gabriel (1971). The biplot graphic display of matrices with application to principal component
    analysis. Biometrika 58, 453-467.

    {examples}
    >>> import spcacore
    >>> X, _ = spcacore.datasets.make_spiked(40, 30, cardinality=3, rng=0)
    >>> ax = plot.biplot(spcacore.sparse_pca(X, 2, cardinality=3), X)
    >>> sorted(name for text in ax.texts for name in text.get_text().splitlines())
    ['x1', 'x2', 'x3', 'x4', 'x5', 'x6']
    """
    # Scores and loadings
    given, (result, V) = result, with_loadings(result)
    p, r = V.shape
    if not isinstance(components, (tuple, list)) or len(components) != 2:
        raise TypeError(f"components must be two integers, not {components!r}")
    if r < 2:
        raise ValueError("a biplot needs two components, and the result has one")
    first, second = chosen_components(components, r)
    if first == second:
        raise ValueError(f"components must be two different ones, not {components!r}")
    limit = integer(n_variables, "n_variables", 0)
    named = variable_names(result, names, p)
    scores_or_X = getattr(result, "scores", None) if scores_or_X is None else scores_or_X
    if scores_or_X is None:
        raise ValueError("the result has no scores of its own: give scores_or_X, scores or data")
    Z = _scores(given, scores_or_X, p, r)[:, [first, second]].astype(np.float64)
    V = V[:, [first, second]]
    draw_points = _colored(labels, len(Z))
    # Points, then arrows for the longest loadings
    length = np.hypot(*V.T)
    selected = np.flatnonzero(length)
    index = leading(length, limit)
    own = ax is None
    ax = given_or_new_axes(ax, (6.8, 5.6))
    draw_points(
        ax, Z, s=float(np.clip(15000 / len(Z), 6, 26)), linewidth=0.4, edgecolor=ax.get_facecolor(), zorder=2,
        rasterized=len(Z) > 5000,
    )  # fmt: skip
    for line in (ax.axhline, ax.axvline):
        line(0, linewidth=0.8, zorder=0, **faint(0.15))
    tips = _draw_arrows(ax, Z, V[index])
    shared = any(
        len(grouper.get_siblings(ax)) > 1 for grouper in (ax.get_shared_x_axes(), ax.get_shared_y_axes())
    )
    ax.set_aspect("equal", adjustable="box" if shared else "datalim")
    ax.autoscale_view()
    # Labels
    shares = variance_shares(result, (first, second))
    for i, (t, axis) in enumerate(((first, ax.xaxis), (second, ax.yaxis))):
        share = "" if shares is None else f"  ({percent(shares[i])} of the variance)"
        axis.set_label_text(f"component {t + 1}{share}")
    if 0 < len(index) < len(selected):
        ax.text(
            1, 0.005, f"arrows: the {len(index)} longest of {len(selected)}", transform=ax.transAxes,
            fontsize="x-small", color="0.45", ha="right", va="bottom",
        )  # fmt: skip
    ax.spines[["top", "right"]].set_visible(False)
    if own:
        whole: Any = ax.figure
        whole.draw_without_rendering()  # names are placed by where the tips will be
    else:
        ax.apply_aspect()
    _label_tips(ax, tips, [shortened(named[j]) for j in index])
    return ax


def _colored(labels: Any, n: int) -> Callable[..., object]:
    """Return a function that draws the points: in one color, by numbers, or by the class of each."""
    if labels is None:
        return lambda ax, Z, **style: ax.scatter(*Z.T, color="0.6", **style)
    given = np.asarray(labels)
    if given.shape != (n,):
        raise ValueError(f"labels must have shape ({n},), not {given.shape}")
    if given.dtype == object and all(isinstance(x, (int, float, np.number, type(None))) for x in given):
        given = given.astype(np.float64)
    if given.dtype.kind in "iuf":  # numbers or classes; NaN where there is none
        values = np.where(np.isfinite(given), given, math.nan).astype(np.float64)
        known = np.unique(values[~np.isnan(values)])
        if len(known) > len(_STYLES) or np.any(known != np.rint(known)):
            title = str(getattr(labels, "name", None) or "label")
            return partial(_scatter_numbers, values=values, title=title)
    try:
        kinds, member = np.unique(given, return_inverse=True)
    except TypeError:
        kinds, member = np.unique(given.astype(str), return_inverse=True)
    if len(kinds) > len(_STYLES):
        raise ValueError(
            f"labels have {len(kinds)} classes; at most {len(_STYLES)} can be told apart, but numbers get a "
            "color bar"
        )
    return partial(_scatter_classes, kinds=list(map(str, kinds)), member=member)


def _draw_arrows(ax: Axes, Z: Array, V: AnyArray) -> Array:
    """Draw an arrow for each variable, scaled to reach as far as the points; return where they end."""
    reach, size = abs(Z).max(axis=0), abs(V).max(axis=0, initial=0)
    fits = [a / b for a, b in zip(reach, size, strict=True) if a > 0 and b > 0]
    tips: Array = V * (0.95 * min(fits) if fits else 1.0)
    arrow = {
        "arrowstyle": "-|>", "shrinkA": 0, "shrinkB": 0, "color": text_color(), "linewidth": 1.2,
        "mutation_scale": 9,
    }  # fmt: skip
    for tip in tips:
        ax.annotate("", tuple(tip), (0, 0), arrowprops=arrow, zorder=3)
    ax.update_datalim(np.vstack([tips * 1.08, np.zeros((1, 2))]))
    return tips


def _scores(result: Any, source: Any, p: int, r: int) -> AnyArray:
    """Return the scores, as given or computed from data."""
    shape = getattr(source, "shape", None) or np.shape(source)
    if len(shape) == 2 and shape[1] == p:
        one = not is_table(result) and not hasattr(as_result(result), "loadings_x")
        if not (one and hasattr(result, "transform")):
            raise TypeError(
                f"{type(result).__name__} has no transform of one table: pass scores of shape (n, {r})"
            )
        Z = result.transform(source)
        return real_array(Z, "scores", ndim=2)
    Z = real_array(source, "scores_or_X", ndim=2)
    if Z.shape[1] != r:
        raise ValueError(
            f"scores_or_X must have {counted(r, 'column')} (scores) or {p} (data), not shape {Z.shape}"
        )
    return Z


def _scatter_numbers(ax: Any, Z: AnyArray, values: Array, title: str, **style: Any) -> None:
    """Draw points in colors from dark to light, except for colors that the background would hide."""
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap

    known = ~np.isnan(values)
    low, high = (0.2, 1.0) if is_dark(ax) else (0.0, 0.92)
    colors = ListedColormap(colormaps["viridis"](np.linspace(low, high, 256)))
    if not known.all():
        ax.scatter(*Z[~known].T, color="0.6", **style)
    image = ax.scatter(*Z[known].T, c=values[known], cmap=colors, **style)
    add_color_bar(ax, image, shortened(title))


def _scatter_classes(ax: Any, Z: AnyArray, kinds: list[str], member: Index, **style: Any) -> None:
    """Draw points with a mark and a color for each class."""
    drawn = [
        ax.scatter(*Z[member == c].T, color=color, marker=marker, alpha=0.75, **style)
        for c, (marker, color) in enumerate(_STYLES[: len(kinds)])
    ]
    few = len(kinds) <= 8
    legend = ax.legend(
        drawn, list(map(str, range(len(kinds)))), frameon=False, ncols=min(len(kinds), 4) if few else 1,
        fontsize="small", handletextpad=0.2, columnspacing=1.2, borderaxespad=0.2,
        loc="lower left" if few else "upper left", bbox_to_anchor=(0 if few else 1, 1),
    )  # fmt: skip
    for handle, text, kind in zip(legend.legend_handles, legend.get_texts(), kinds, strict=True):
        handle.set_sizes([30])
        # Set afterwards, as a legend leaves out labels that begin with _
        text.set(text=shortened(kind), **VERBATIM)


def _label_tips(ax: Any, tips: Array, names: list[str]) -> None:
    """Write each name beyond its arrow, or as near as names of longer arrows leave room.

    Names of arrows that end close together and in one direction are lines of one text.
    """
    from matplotlib.font_manager import FontProperties
    from matplotlib.patheffects import withStroke

    size = FontProperties(size="small").get_size_in_points()
    scale = 72 / ax.figure.dpi
    at = ax.transData.transform(tips).reshape(-1, 2) * scale
    origin = ax.transData.transform((0, 0)) * scale
    low, high = (np.array(corner) * scale for corner in ax.get_window_extent().get_points())
    # What is in the way: arrows, and the boxes of names that are written
    groups = _gathered(at - origin, size)
    lines = np.concatenate([np.linspace(origin, tip, 60) for tip in at]) if len(at) else at
    taken = np.zeros((len(groups), 2, 2))
    reaches, turns = np.array([*product((3, 9, 16, 24, 33, 44, 56), (0, 25, -25, 50, -50, 90, -90))]).T
    for g, members in enumerate(groups):
        i = members[0]
        longest = max(len(names[j]) for j in members)
        half = np.array([LETTER_WIDTH * size * longest / 2, (0.1 + 0.6 * len(members)) * size])
        angle = math.atan2(*(at[i] - origin)[::-1]) + np.radians(turns)
        offsets = np.stack([np.cos(angle), np.sin(angle)], axis=1) * (reaches[:, None] + half)
        # Corners of possible boxes, the best first
        first, last = at[i] + offsets - half, at[i] + offsets + half
        shared = np.minimum(last[:, None], taken[:g, 1]) - np.maximum(first[:, None], taken[:g, 0])
        crossed = ((lines > first[:, None]) & (lines < last[:, None])).all(axis=2)
        cost = np.maximum(shared, 0).prod(axis=2).sum(axis=1) + 4 * crossed.sum(axis=1)
        cost += 2 * (np.maximum(low - first, 0) + np.maximum(last - high, 0)).sum(axis=1)
        best = int(cost.round(9).argmin())
        taken[g] = first[best], last[best]
        leader = {"arrowstyle": "-", "color": "0.6", "linewidth": 0.6, "shrinkA": 0, "shrinkB": 1}
        ax.annotate(
            "\n".join(names[j] for j in members), tuple(tips[i]), tuple(offsets[best]),
            textcoords="offset points", ha="center", va="center", fontsize="small", linespacing=1.05,
            zorder=5, arrowprops=leader if reaches[best] > 9 else None,
            path_effects=[withStroke(linewidth=2.2, foreground=ax.get_facecolor(), alpha=0.85)],
            **VERBATIM,
        )  # fmt: skip


def _gathered(tips: Array, size: float) -> list[list[int]]:
    """Return groups of arrows, the longest first.

    Each arrow of a group ends near another one of it, and has nearly its direction.
    """
    groups: list[list[int]] = []
    for i, tip in enumerate(tips):
        for members in groups:
            last = tips[members[-1]]
            across = abs(last[0] * tip[1] - last[1] * tip[0]) / max(float(np.hypot(*last)), 1e-300)
            if across < 0.2 * size and float(np.hypot(*(last - tip))) < 1.2 * size:
                members.append(i)
                break
        else:
            groups.append([i])
    return groups
