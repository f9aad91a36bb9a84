"""What all pictures share: axes, names, colors, and the paragraphs of their docstrings."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from .._rendering import shortened
from .._types import AnyArray, Array
from .._validation import integer, real_array
from ..linalg.scaling import descending
from ..readable import HasLoadings, as_result, labels, loadings_in, names_of_sides
from ..results import check_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

ABOVE, BELOW = "#b2182b", "#2166ac"
SPARSE, DENSE, ORDINARY, CHOSEN = "#0072b2", "#7d7d7d", "#c4c4c4", "#d55e00"
COLORS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c564b", "#4d4d4d")
VERBATIM: dict[str, Any] = {"parse_math": False, "usetex": False}  # a name may contain $ and _
LETTER_WIDTH = 0.6  # of a letter, over its height
NO_LOADINGS = "all loadings are zero"
PARAGRAPHS = {
    "result": """\
result : result, fitted estimator, or array-like of shape (p, r) or (p,)
    A result of any function, if it has loadings; an estimator with `components_`, of this package or
    another; any object with `loadings`; or the loadings.""",
    "names": "names : sequence of p str, optional\n"
    "    Names of the variables. Default: the names in the result, else x1, x2, ...",
    "components": "components : int or sequence of int, optional\n"
    "    Which components to draw, in this order. Default: all.",
    "axes": """\
ax : matplotlib.axes.Axes, optional
    Where to draw. Default: a new figure.

Returns
-------
matplotlib.axes.Axes""",
    "wrong": "Raises\n------\nValueError, TypeError",
    "no_matplotlib": "ImportError\n    If matplotlib is not installed.",
    "examples": """\
Examples
--------
>>> import matplotlib
>>> matplotlib.use("Agg")
>>> from spcacore import plot""",
}


def inches_of(ax: Axes) -> tuple[float, float]:
    """Return the width and height of the Axes, before labels take a part of it."""
    box, dpi = ax.get_window_extent(), ax.figure.dpi
    return box.width / dpi, box.height / dpi


def given_or_new_axes(ax: Axes | None, size: tuple[float, float]) -> Any:
    """Return the Axes to draw into: the given one or, with a new figure of this size, a new one."""
    try:
        from matplotlib.axes import Axes
    except ImportError:
        raise ImportError(
            'spcacore.plot needs matplotlib: pip install matplotlib, or ".[plot]" from the source directory'
        ) from None
    if ax is None:
        from matplotlib import pyplot

        figure: Any
        figure, ax = pyplot.subplots(figsize=size, layout="constrained")
        figure.get_layout_engine().set(w_pad=0.09, h_pad=0.09)
        return ax
    if not isinstance(ax, Axes):
        raise TypeError(f"ax must be a matplotlib Axes or None, not {type(ax).__name__}")
    return ax


def with_loadings(result: Any) -> tuple[Any, Array]:
    """Return what holds the loadings, and these; loadings of two sets of variables are stacked."""
    result = as_result(result)
    sides = result._sides() if isinstance(result, HasLoadings) else ()
    V = np.vstack([side.loadings for side in sides]) if len(sides) else loadings_in(result)
    V = real_array(V, "loadings", ndim=(1, 2)).astype(np.float64)
    return result, V[:, None] if V.ndim == 1 else V


def chosen_components(components: Any, r: int) -> list[int]:
    """Return the components to draw, checked; all if None."""
    if components is None:
        return list(range(r))
    if isinstance(components, (str, bytes)) or not hasattr(components, "__len__"):
        return [integer(components, "components", 0, r - 1)]
    if len(components) == 0:
        raise ValueError("components is empty")
    return [integer(t, f"components[{i}]", 0, r - 1) for i, t in enumerate(components)]


def variable_names(result: Any, names: Any, p: int) -> list[str]:
    """Return a name for each variable."""
    if names is not None:
        return list(check_names(names, p))
    if not isinstance(result, HasLoadings):
        return labels(getattr(result, "names", None), p)
    return names_of_sides(result)


def variance_shares(result: Any, chosen: Sequence[int] | None = None) -> Array | None:
    """Return the share of the variance of each component, or of the chosen ones; None if it is not known."""
    shares = getattr(result, "explained_variance_ratio", None)
    if shares is None:
        return None
    shares = np.asarray(shares, np.float64)
    return shares if chosen is None else shares[list(chosen)]


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def points_per_row(ax: Any, m: int) -> float:
    """Return the height of each of m rows, in points."""
    return inches_of(ax)[1] * 72 / max(m, 1)


def label_rows(ax: Any, names: list[str], weight: AnyArray | None = None) -> int:
    """Write names beside the rows, in letters that fit; return how many.

    If letters for all rows would be too small to read, the rows of largest weight get names, as many as there
    is room for.
    """
    from matplotlib.font_manager import FontProperties

    room = points_per_row(ax, len(names))
    shown = np.arange(len(names))
    if room < 5.5:
        weight = np.zeros(len(names)) if weight is None else weight
        apart = math.ceil(6.5 / room)
        free, chosen = np.ones(len(names), bool), []
        for j in descending(weight):
            if free[j]:
                chosen.append(j)
                free[max(0, j - apart + 1) : j + apart] = False
        shown, room = np.sort(chosen), 6.5
    size = min(0.9 * room, FontProperties(size="small").get_size_in_points())
    ax.set_yticks(shown, [shortened(names[j]) for j in shown], fontsize=size, **VERBATIM)
    return len(shown)


def text_color() -> str:
    """Return the color of text in the style in use; it is light in dark styles."""
    import matplotlib

    return matplotlib.rcParams["text.color"]


def is_dark(ax: Any) -> bool:
    """Whether the background is dark."""
    from matplotlib.colors import to_rgb

    return sum(to_rgb(ax.get_facecolor())) < 1.5


def diverging(ax: Any) -> Any:
    """Return colors from blue to red, with the background in between, so that small loadings are faint."""
    from matplotlib.colors import LinearSegmentedColormap

    bright = ("#a6d3f2", BELOW, "#303030", ABOVE, "#f9b8a0")
    return LinearSegmentedColormap.from_list("diverging", bright) if is_dark(ax) else "RdBu_r"


def faint(alpha: float) -> dict[str, Any]:
    """Return options for a line in the background, in any style: the color of text, nearly transparent."""
    return {"color": text_color(), "alpha": alpha}


def add_grid(ax: Any, axis: str, *spines: str) -> None:
    """Draw lines across one axis behind the picture, in place of the frame."""
    ax.grid(True, axis=axis, linewidth=0.8, **faint(0.1))
    ax.set_axisbelow(True)
    ax.spines[["top", "right", *spines]].set_visible(False)


def write_in_the_middle(ax: Any, text: str) -> None:
    """Write a text where nothing can be drawn."""
    ax.text(0.5, 0.5, text, transform=ax.transAxes, ha="center", va="center", color="0.5")


def add_color_bar(ax: Any, image: Any, label: str = "loading") -> None:
    """Add a bar that explains the colors."""
    shrink = min(1, 2.8 / inches_of(ax)[1])
    bar = ax.figure.colorbar(image, ax=ax, fraction=0.05, pad=0.03, aspect=18, shrink=shrink)
    bar.set_label(label, **VERBATIM)
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=2)


def legend_above(ax: Any, order: Sequence[str] = ()) -> Any:
    """Add a legend above the picture, where it hides nothing; `order` is an order of labels."""
    drawn, said = ax.get_legend_handles_labels()
    places = [said.index(label) for label in order if label in said] or range(len(said))
    return ax.legend(
        [drawn[i] for i in places], [said[i] for i in places], frameon=False, fontsize="small",
        loc="lower left", bbox_to_anchor=(0, 1), ncols=1 if inches_of(ax)[0] < 3 else 2, borderaxespad=0.2,
    )  # fmt: skip
