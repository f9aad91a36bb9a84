"""Shares of the variance, beside the shares of ordinary principal components."""

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
    # a group for each component of the reference; those without a match have one each, after all others
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
    shares = real_array(dense, "dense", ndim=1).astype(np.float64)
    if shares.min() < 0 or shares.sum() > 1 + 1e-6:
        raise ValueError("dense must be shares of the variance: numbers in [0, 1] that add up to at most 1")
    return shares
