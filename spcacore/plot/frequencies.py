"""How often variables are chosen again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from .._docstrings import filled
from .._rendering import shortened
from .._validation import LARGEST, integer
from ..selection.stability_result import Stability
from . import drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["stability"]


@filled(drawing.PARAGRAPHS)
def stability(
    found: Stability, component: int = 0, *, n_variables: int = 30, names: Iterable[str] | None = None,
    ax: Axes | None = None
) -> Axes:  # fmt: skip
    """Draw how often each variable is selected, with stars for the stable variables.

    Colored bars show variables that the fit to all the data selects. A dashed line shows the threshold.

    Parameters
    ----------
    found : Stability
        From `spcacore.stability`.
    component : int, default 0
    n_variables : int, default 30
        How many variables to show, at most: those selected most often.
    {names}
    {axes}

    {wrong}
        If `found` is not a `Stability`, there is no such component, or the names do not fit.
    {no_matplotlib}

    References
    ----------
    N. Meinshausen and P. Buehlmann (2010). Stability selection. Journal of the Royal Statistical Society B
    72, 417-473.

    {examples}
    >>> from functools import partial
    >>> import spcacore
    >>> X, planted = spcacore.datasets.make_spiked(100, 200, cardinality=10, rng=0)
    >>> model = partial(spcacore.sparse_pca, n_components=2, cardinality=10)
    >>> ax = plot.stability(spcacore.stability(X, model, n_resamples=20), 1)
    >>> sum("*" in label.get_text() for label in ax.get_yticklabels())
    10
    """
    if not isinstance(found, Stability):
        raise TypeError(f"found must be a Stability, not {type(found).__name__}")
    t = integer(component, "component", 0, found.n_components - 1)
    most = integer(n_variables, "n_variables", 1, LARGEST)
    frequency = found.selection_frequency[:, t]
    shown = drawing.variable_names(found, names, len(frequency))
    order = np.argsort(-frequency, kind="stable")[: min(most, np.count_nonzero(frequency))]
    ax = drawing.given_or_new_axes(ax, (6, min(1.6 + 0.22 * max(len(order), 4), 12)))
    if len(order) == 0:
        drawing.write_in_the_middle(ax, "no variable is ever chosen")
        return ax
    stars = [" *" if found.stable[j, t] else "" for j in order]
    chosen = found.loadings[order, t] != 0
    place = np.arange(len(order))
    for part, color, label in (
        (chosen, drawing.SPARSE, "in the component of all the data"),
        (~chosen, drawing.ORDINARY, "in those of resamples alone"),
    ):
        if part.any():
            ax.barh(place[part], frequency[order[part]], 0.7, color=color, label=label)
    if np.isfinite(found.threshold[t]):
        ax.axvline(
            found.threshold[t], color=drawing.CHOSEN, linestyle="--", linewidth=1.2,
            label=f"* stable: {found.threshold[t]:.3g} or more",
        )  # fmt: skip
    drawing.label_rows(ax, [shortened(shown[j]) + star for j, star in zip(order, stars, strict=True)])
    ax.set_ylim(len(order) - 0.4, -0.6)
    ax.set_xlim(0, 1)
    ax.set_xlabel(f"share of the resamples, component {t + 1}")
    drawing.add_grid(ax, "x")
    drawing.hide_spines(ax)
    drawing.legend_above(ax, *ax.get_legend_handles_labels())
    return ax
