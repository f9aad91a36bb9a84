"""Paths of sparsity, and the choice of a value."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from .._limits import LOG_SPAN
from .._messages import counted, few
from .._rendering import leading, shortened
from .._types import AnyArray, Array
from .._validation import LARGEST, integer
from ..selection.criteria import SparsitySelection
from ..selection.stability_result import Stability
from ..selection.tuning import SparsityPath
from .drawing import (
    CHOSEN,
    COLORS,
    DENSE,
    ORDINARY,
    SPARSE,
    add_grid,
    given_or_new_axes,
    label_rows,
    legend_above,
    variable_names,
    write_in_the_middle,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PARAMETERS = {
    "cardinality": "cardinality: nonzero loadings of {}",
    "l1_bound": "bound of the l1 norm of {}",
    "penalty": "penalty of {}",
    "n_components": "number of components",
}
_CRITERIA = {
    "cv": "predicted share of left-out variance",
    "permutation": "logarithm of the share, less the one of permuted data",
    "correlation": "correlation of scores with those of left-out rows",
    "sparseness": "index of sparseness",
    "bic": "log-likelihood of a sample, less the cost of nonzeros",
    "stability": "agreement of half-samples",
}


def path(
    path_or_selection: SparsityPath | SparsitySelection,
    *,
    component: int | None = None,
    chosen: float | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw what sparsity costs: variance, or a score with standard errors, against cardinality or penalty.

    For a `SparsityPath`, it draws the share of the variance that all components explain together, and for up
    to six components also each. The dashed line is the share of the same number of ordinary principal
    components.

    For a `SparsitySelection`, it draws the score with error bars of one standard error, and marks the best
    value and the chosen one. With the one-standard-error rule, the chosen value is the sparsest one whose
    score reaches the dashed line: the best score minus its standard error. If permutations choose the number
    of components, the dashed line is the level of permuted data. If grids differ by component, it draws the
    scores of each component, given the values chosen for the earlier ones.

    The axis is logarithmic if the values span more than a factor of 32.

    Parameters
    ----------
    path_or_selection : SparsityPath or SparsitySelection
        From `sparsity_path`, `select_sparsity` or `select_n_components`.
    component : int, optional
        Of a selection whose grids differ by component, the one to draw, from 0. Default: all.
    chosen : float, optional
        The value to mark. Default: the value that a selection chose; for a path, none. Several components
        with different grids cannot have one.
    {axes}

    {wrong}
        If the object is of another type, or it does not have the `component` or the `chosen` value.
    {no_matplotlib}

    References
    ----------
    L. Breiman, J. H. Friedman, R. A. Olshen and C. J. Stone (1984). Classification and Regression Trees,
    section 3.4.3, for the one-standard-error rule.

    {examples}
    >>> from functools import partial
    >>> import spcacore
    >>> A = spcacore.datasets.load_pitprops().correlation
    >>> model = partial(spcacore.sparse_pca, n_components=2, kind="covariance")
    >>> found = spcacore.sparsity_path(A, model, range(1, 14))
    >>> ax = plot.path(found, chosen=5)
    >>> for text in ax.get_legend().get_texts():
    ...     print(text.get_text())
    each component
    2 components together
    ordinary: 50.7 %
    chosen: 5, 42.9 %
    """
    source: Any = path_or_selection
    if not isinstance(source, (SparsityPath, SparsitySelection)):
        raise TypeError(f"a SparsityPath or a SparsitySelection is needed, not {type(source).__name__}")
    steps = [*getattr(source, "earlier", ()), source]
    together = component is None and len(steps) > 1
    if component is not None:
        if len(steps) == 1:
            raise ValueError("component requires a selection whose grids differ by component")
        source = steps[integer(component, "component", 0, len(steps) - 1)]
    if together and chosen is not None:
        raise ValueError("chosen needs component where grids differ by component")
    values, is_selection = source.values, isinstance(source, SparsitySelection)
    if chosen is None and is_selection and not together:
        chosen = source.chosen
    if chosen is not None and not np.any(values == chosen):
        raise ValueError(f"chosen must be one of the values {few(values.tolist())[1:-1]}, not {chosen!r}")
    if not is_selection and source.explained_variance_ratio is None:
        raise ValueError("the path has no explained_variance_ratio: the total variance is unknown")
    ax = given_or_new_axes(ax, (6, 4))
    if together:
        y, values = _draw_steps(ax, steps), np.concatenate([step.values for step in steps])
    else:
        y = (_draw_selection if is_selection else _draw_path)(ax, source, values)
    _value_axis(ax, values)
    which = "each component" if component is None else f"component {component + 1}"
    ax.set_xlabel(_PARAMETERS.get(source.parameter, source.parameter).format(which))
    add_grid(ax, "y")
    if chosen is not None:
        i = _place(values, chosen)
        reached = "" if is_selection else f", {y[i]:.1f} %"
        _circle(ax, values[i], y[i], CHOSEN, f"chosen: {values[i]:g}{reached}")
        ax.axvline(values[i], color=CHOSEN, linewidth=0.8, alpha=0.6, zorder=1)
    legend_above(ax)
    return ax


def _place(values: AnyArray, value: float) -> int:
    """Which of the values this is."""
    return int(np.flatnonzero(values == value)[0])


def _circle(ax: Any, x: float, y: float, color: str, label: str = "_") -> None:
    """Around the point that is chosen."""
    ax.plot(
        x, y, "o", markersize=11, markerfacecolor="none", markeredgecolor=color, markeredgewidth=1.8,
        linestyle="none", zorder=4, label=label,
    )  # fmt: skip


def _draw_path(ax: Any, source: Any, values: AnyArray) -> Array:
    shares = 100 * source.explained_variance_ratio
    total, r = shares.sum(axis=1), shares.shape[1]
    right = int(np.argmax(values))
    if 1 < r <= 6:
        for t, share in enumerate(shares.T):
            label = "each component" if t == 0 else "_"
            ax.plot(values, share, "-", color=SPARSE, linewidth=1, alpha=0.45, label=label)
            ax.annotate(
                f"{t + 1}", (values[right], share[right]), xytext=(4, 0), textcoords="offset points",
                fontsize="x-small", color=SPARSE, va="center",
            )  # fmt: skip
    name = "variance explained" if r == 1 else f"{counted(r, 'component')} together"
    ax.plot(values, total, "o-", color=SPARSE, markersize=4.5, label=name)
    top = np.nanmax(total)
    if source.dense_ratio is not None:
        dense = 100 * float(np.sum(source.dense_ratio))
        _dashed(ax, dense, f"ordinary: {dense:.1f} %")
        top = max(top, dense)
    ax.set_ylim(0, min(max(1.08 * top, 1e-9), 105))
    ax.set_ylabel("share of the variance, %")
    return total


def _dashed(ax: Any, level: float, label: str) -> None:
    """A level to compare with."""
    ax.axhline(level, color=DENSE, linewidth=1.2, linestyle="--", zorder=1, label=label)


def _draw_selection(ax: Any, source: Any, values: AnyArray) -> Array:
    score, error = source.score, source.standard_error
    ax.plot(values, score, "o-", color=SPARSE, markersize=4.5, label="score")
    best = _place(values, source.best)
    marks = [(best, "D", SPARSE, "best")]
    if error is not None:
        ax.errorbar(
            values, score, error, fmt="none", ecolor="#8fbfe0", elinewidth=1.4, capsize=2.5, zorder=1.5
        )  # fmt: skip
        if (source.parameter, source.criterion) == ("n_components", "permutation"):
            _dashed(ax, 0.0, "permuted data")
        else:
            _dashed(ax, score[best] - error[best], "best less its standard error")
        marks.append((_place(values, source.one_se), "s", "#009e73", "one standard error"))
    for i, marker, color, what in marks:
        label = f"{what}: {values[i]:g}"
        ax.plot(
            values[i], score[i], marker, color=color, markersize=7, linestyle="none", zorder=3, label=label
        )  # fmt: skip
    ax.set_ylabel(_CRITERIA[source.criterion])
    return score


def _draw_steps(ax: Any, steps: list[SparsitySelection]) -> Array:
    """The scores of components with grids of their own, and what is chosen for each."""
    for t, step in enumerate(steps):
        color, i = COLORS[t % len(COLORS)], _place(step.values, step.chosen)
        ax.errorbar(
            step.values, step.score, step.standard_error, fmt="o-", color=color, markersize=4.5,
            elinewidth=1.2, capsize=2.5, label=f"component {t + 1}, chosen: {step.chosen:g}",
        )  # fmt: skip
        _circle(ax, step.values[i], step.score[i], color)
    ax.set_ylabel(_CRITERIA[steps[0].criterion])
    return np.concatenate([step.score for step in steps])


def _value_axis(ax: Any, values: AnyArray) -> None:
    """Logarithmic where the values span decades; ticks that read as numbers."""
    from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

    if values.min() > 0 and values.max() / values.min() > LOG_SPAN:
        ax.set_xscale("log")
        ax.xaxis.set_major_locator(
            LogLocator(subs=(1.0, 2.0, 5.0) if values.max() < 1e4 * values.min() else (1.0,))
        )
        ax.xaxis.set_major_formatter("{x:g}")
        ax.xaxis.set_minor_locator(NullLocator())
    elif np.all(values == np.rint(values)):
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))


# ---- how often variables are chosen again ---------------------------------------------------------------


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
    shown = variable_names(found, names, len(frequency))
    order = leading(frequency, most)
    ax = given_or_new_axes(ax, (6, min(1.6 + 0.22 * max(len(order), 4), 12)))
    if len(order) == 0:
        write_in_the_middle(ax, "no variable is ever chosen")
        return ax
    stars = [" *" if found.stable[j, t] else "" for j in order]
    chosen = found.loadings[order, t] != 0
    place = np.arange(len(order))
    for part, color, label in (
        (chosen, SPARSE, "in the component of all the data"),
        (~chosen, ORDINARY, "in those of resamples alone"),
    ):
        if part.any():
            ax.barh(place[part], frequency[order[part]], 0.7, color=color, label=label)
    if np.isfinite(found.threshold[t]):
        ax.axvline(
            found.threshold[t], color=CHOSEN, linestyle="--", linewidth=1.2,
            label=f"* stable: {found.threshold[t]:.3g} or more",
        )  # fmt: skip
    label_rows(ax, [shortened(shown[j]) + star for j, star in zip(order, stars, strict=True)])
    ax.set_ylim(len(order) - 0.4, -0.6)
    ax.set_xlim(0, 1)
    ax.set_xlabel(f"share of the resamples, component {t + 1}")
    add_grid(ax, "x")
    legend_above(ax)
    return ax
