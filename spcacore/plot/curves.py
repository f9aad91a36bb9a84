"""Shares of the variance, beside the shares of ordinary components; paths of sparsity; frequencies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from .._rendering import shortened
from .._types import Array, Kind, OperatorLike
from .._validation import check_choice, real_array
from ..models.comparison import Comparison, compare
from .drawing import (
    COLORS,
    DENSE,
    ORDINARY,
    SPARSE,
    VERBATIM,
    add_grid,
    given_or_new_axes,
    legend_above,
    variance_shares,
    with_loadings,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes


from collections.abc import Iterable
from typing import TYPE_CHECKING

from .._limits import LOG_SPAN
from .._messages import counted, few
from .._rendering import leading
from .._types import AnyArray
from .._validation import LARGEST, integer
from ..selection.criteria import SparsitySelection
from ..selection.stability_result import Stability
from ..selection.tuning import SparsityPath
from .drawing import (
    CHOSEN,
    label_rows,
    variable_names,
    write_in_the_middle,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_HATCHES = ("", "//", "..", "xx")


def scree(
    result: object,
    X: OperatorLike | None = None,
    *,
    dense: ArrayLike | None = None,
    kind: Kind | None = None,
    center: bool | None = None,
    scale: bool | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the shares of the variance of the components, beside the shares of ordinary principal components.

    Bars show the share of each component, and lines the cumulative shares. Shares of sparse components are
    additional variances (`explained_variance`, definition "cumulative"), so their sum is what the components
    explain together. No r components explain more than the first r ordinary ones, whose shares are the r
    largest eigenvalues of the covariance matrix divided by its trace.

    Parameters
    ----------
    {result}
        If the result has no shares of its own, X is needed.
    X : array-like of shape (n, p), sparse matrix, optional
        The data, or the covariance, from which the result was computed. If you give it, ordinary principal
        components are always drawn.
    dense : array-like, optional
        Shares of ordinary principal components, if you know them: numbers in [0, 1], not cumulative. Default:
        `dense_ratio` of the result, which it has if that took only milliseconds.
    kind : {"data", "covariance"}, optional
    center, scale : bool, optional
        How to read X, as in `sparse_pca`. Default: as the result was computed, else "data", True, False.
    {axes}

    {wrong}
        If X is not the matrix of the result, if both X and dense are given, or if no shares are known.
    {no_matplotlib}

    References
    ----------
    H. Shen and J. Z. Huang (2008). Sparse principal component analysis via regularized low rank
    matrix approximation. Journal of Multivariate Analysis 99, section 2.3.

    {examples}
    >>> import spcacore
    >>> A = spcacore.datasets.load_pitprops().correlation
    >>> result = spcacore.sparse_pca(A, 3, cardinality=5, kind="covariance")
    >>> ax = plot.scree(result, A)
    >>> for bars in ax.containers:
    ...     print(bars.get_label(), [round(float(bar.get_height()), 1) for bar in bars])
    sparse [26.2, 16.7, 15.2]
    ordinary [32.5, 18.3, 14.4]
    """
    result, V = with_loadings(result)
    r = V.shape[1]
    if X is not None and dense is not None:
        raise ValueError("give either X or dense, not both")
    # Shares of the components, and of ordinary ones
    shares = variance_shares(result)
    if X is None:
        if (kind, center, scale) != (None, None, None):
            raise ValueError("kind, center and scale say how to read X, but X is not given")
        if shares is None:
            raise ValueError("the result has no explained_variance_ratio: pass X")
    dense = getattr(result, "dense_ratio", None) if X is None and dense is None else dense
    ordinary = None if dense is None else _known_shares(dense)[:r]
    if X is not None:
        found = compare([result], X, kind=kind, center=center, scale=scale)
        if found.explained_variance_ratio is None:
            raise ValueError("X has no variance, or no entries by which it is known")
        ordinary = found.dense_ratio
        shares = found.explained_variance_ratio["cumulative"][0] if shares is None else shares
    assert shares is not None
    # Bars, and lines of cumulative shares
    ax = given_or_new_axes(ax, (min(4.4 + 0.35 * r, 10), 4))
    what = "dense" if V.all() else "sparse"
    series = [(shares, SPARSE, SPARSE, "o-", what)]
    if ordinary is not None:
        series.append((ordinary, ORDINARY, DENSE, "s--", "ordinary"))
    width = 0.38 if len(series) == 2 else 0.6
    for i, (values, bar, line, style, label) in enumerate(series):
        at = np.arange(1, len(values) + 1)
        beside = (i - 0.5) * width if len(series) == 2 else 0
        ax.bar(at + beside, 100 * values, width, color=bar, label=label)
        ax.plot(
            at, 100 * np.cumsum(values), style, color=line, markersize=4.5, label=f"{label}, cumulative",
            zorder=2 - i / 10,
        )  # fmt: skip
    # Ticks, labels and a legend
    ax.set_xticks(np.arange(1, r + 1, max(1, -(-r // 15))))
    ax.set_xlim(0.4, r + 0.6)
    top = 100 * max(values.sum() for values, *_ in series)
    ax.set_ylim(0, min(max(1.12 * top, 1e-9), 105))
    ax.set_xlabel("component")
    ax.set_ylabel("share of the variance, %")
    add_grid(ax, "y")
    legend_above(ax, (what, f"{what}, cumulative", "ordinary", "ordinary, cumulative"))
    return ax


def comparison(
    results: Comparison | Mapping[str, Any] | Sequence[Any], X: OperatorLike | None = None, *,
    definition: str = "cumulative", ax: Axes | None = None,
) -> Axes:  # fmt: skip
    """Draw the variance of the components of several results, with matched components side by side.

    Groups of bars are in the order of the components of the reference, followed by components without a
    match. Behind each group is a bar for the ordinary principal component of the same number, if its share is
    known.

    Parameters
    ----------
    results : Comparison, mapping or sequence
        From `spcacore.compare`, or what that takes: results by their labels, or in a list.
    X : array-like of shape (n, p), sparse matrix, optional
        The data, or the covariance, if `results` is no comparison yet. `compare` has options.
    definition : str, default "cumulative"
        Definition of the variance, as in the function `explained_variance`.
    {axes}

    {wrong}
        As in `compare`; if `results` is not a comparison and there is no X, or if there is no such
        definition.
    {no_matplotlib}

    {examples}
    >>> import spcacore
    >>> A = spcacore.datasets.load_pitprops().correlation
    >>> found = [spcacore.sparse_pca(A, 3, cardinality=k, kind="covariance") for k in (3, 6)]
    >>> ax = plot.comparison(spcacore.compare(dict(zip(["three", "six"], found)), A))
    >>> for bars in ax.containers:
    ...     print(bars.get_label(), [round(float(bar.get_height()), 1) for bar in bars])
    ordinary [32.5, 18.3, 14.4]
    three [19.0, 17.0, 15.1]
    six [29.0, 17.0, 15.4]
    """
    if not isinstance(results, Comparison):
        if X is None:
            raise TypeError(
                f"results must be a Comparison where X is left out, not {type(results).__name__}: "
                "plot.comparison(results, X)"
            )
        results = compare(results, X)
    elif X is not None:
        raise TypeError("X was given to spcacore.compare already: leave it out")
    check_choice(definition, "definition", tuple(results.explained_variance))
    known = results.explained_variance_ratio
    values = (results.explained_variance if known is None else known)[definition]
    unit = 1 if known is None else 100
    r = results.loadings[results.reference].shape[1]
    # A group of bars for each component of the reference, and after these one for each component without a
    # match
    places = [np.where(m < 0, r - 1 + np.cumsum(m < 0), m) for m in results.matched]
    groups = 1 + max((int(place.max()) for place in places if len(place)), default=0)
    ax = given_or_new_axes(ax, (min(4.4 + 0.5 * groups, 11), 4))
    if results.dense_ratio is not None:
        behind = 100 * results.dense_ratio[:r]
        at = 1 + np.arange(len(behind))
        ax.bar(at, behind, 0.92, color=ORDINARY, alpha=0.45, zorder=1, label="ordinary")
    width = 0.8 / len(places)
    for i, (label, place) in enumerate(zip(results.labels, places, strict=True)):
        left = 1 + place + (i - (len(places) - 1) / 2) * width
        color = COLORS[i % len(COLORS)]
        hatch = _HATCHES[i // len(COLORS) % len(_HATCHES)]
        name = shortened(label).lstrip("_") or "_"
        ax.bar(left, unit * values[i], 0.9 * width, color=color, hatch=hatch, zorder=2, label=name)
    # Ticks, labels and a legend
    step = max(1, -(-groups // 15))
    ticks = [str(t + 1) if t < r else "alone" for t in range(groups)]
    ax.set_xticks(np.arange(1, groups + 1, step), ticks[::step])
    ax.set_xlim(0.4, groups + 0.6)
    ax.set_xlabel(f"component of {shortened(results.labels[results.reference])}", **VERBATIM)
    ax.set_ylabel("variance" if known is None else "share of the variance, %")
    add_grid(ax, "y")
    for text in legend_above(ax).get_texts():
        text.set(**VERBATIM)
    return ax


def _known_shares(dense: Any) -> Array:
    """Return shares of ordinary components, checked."""
    shares = real_array(dense, "dense", ndim=1).astype(np.float64)
    if shares.min() < 0 or shares.sum() > 1 + 1e-6:
        raise ValueError("dense must be shares of the variance: numbers in [0, 1] that add up to at most 1")
    return shares


# ---- paths of sparsity, and the choice of a value -----------------------------------------------------

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
    """Return the position of a value among the values."""
    return int(np.flatnonzero(values == value)[0])


def _circle(ax: Any, x: float, y: float, color: str, label: str = "_") -> None:
    """Draw a circle around the point that is chosen."""
    ax.plot(
        x, y, "o", markersize=11, markerfacecolor="none", markeredgecolor=color, markeredgewidth=1.8,
        linestyle="none", zorder=4, label=label,
    )  # fmt: skip


def _draw_path(ax: Any, source: Any, values: AnyArray) -> Array:
    """Draw the share of the variance along a path, of each component and of all; return the latter."""
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
    """Draw a level to compare with."""
    ax.axhline(level, color=DENSE, linewidth=1.2, linestyle="--", zorder=1, label=label)


def _draw_selection(ax: Any, source: Any, values: AnyArray) -> Array:
    """Draw the score of each value with its standard error, and mark the choices; return the scores."""
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
    """Draw the scores and the choice of components that have grids of their own; return the scores."""
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
    """Set the axis of values: logarithmic if they span decades, with ticks that read as numbers."""
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
