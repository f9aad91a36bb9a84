"""What resamples say about each variable: how often it is chosen, with which others, and its loadings."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import field
from itertools import groupby, islice
from operator import itemgetter
from typing import Any

import numpy as np

from .._limits import QUANTILE_ENTRIES, READ_VARIABLES, STABLE_FREQUENCY, slices
from .._messages import counted, few
from .._records import NO_PANDAS, filled, frozen_record
from .._rendering import Part, leading, table_of
from .._types import Array, Index, Mask, Names
from .._validation import group_places, integer, number
from ..linalg.orthogonal import matched_columns, unit_columns
from ..linalg.scaling import divisor, union
from ..readable import Judged, Listing, Tabular, labels
from .resampling import Refit, Refits, Sparse


@filled(
    {
        "no_pandas": NO_PANDAS,
    }
)
@frozen_record
class Stability(Judged, Tabular):
    """How often each variable is chosen again, from `stability`.

    With B resamples, p variables and r components; the components of each resample are given the order and
    the signs of the components of all the data.

    `to_frame()` has a row for each variable and component where it is ever chosen, the most frequent first in
    each component: component (from 1), loading, frequency, low, high, stable.

    Attributes
    ----------
    selection_frequency : ndarray of shape (p, r)
        The share of the resamples in which a variable has a nonzero loading in a component.
    any_frequency : ndarray of shape (p,)
        The share of the resamples in which a variable has a nonzero loading in any component.
    average_selected : ndarray of shape (r,)
        q, the average number of variables in a component.
    average_any : float
        The average number of variables in at least one component.
    threshold : ndarray of shape (r,)
        A variable is stable if its frequency is at least this. inf if no frequency has a bound as small as
        `max_false`.
    any_threshold : float
        The same for `any_frequency`.
    expected_false : ndarray of shape (r,) or None
        The bound on the expected number of false variables at these thresholds; None for a bootstrap, and for
        a threshold of at most 1/2.
    stable : ndarray of shape (p, r), bool
        Whether the frequency reaches the threshold.
    loading_interval : ndarray of shape (p, r, 2)
        The quantiles `(1 - level)/2` and `(1 + level)/2` of the loadings of unit length.
    explained_variance_ratio : ndarray of shape (B, r) or None
        Shares of the variance of each resample; None where the model has none.
    explained_interval : ndarray of shape (r, 2) or None
        The same quantiles of these shares.
    cosine : ndarray of shape (B, r)
        Magnitudes of cosines of the loadings with the loadings of all the data; 0 where a resample had no
        such component.
    loadings : ndarray of shape (p, r)
        The loadings of all the data, of unit length.
    result : object
        The result of the model for all the data.
    model : str
    resampling : {"complementary", "half", "bootstrap"}
    assumption : {"none", "unimodal"}
        What the bounds assume about the frequencies of false variables.
    level : float
    max_false : float
    n_samples : int
    names : tuple of str or None
        Names of the variables, if the input had any; for "sparse_cca" the names of X, then of Y.
    chosen : tuple of B tuples of r ndarrays, int
        The variables of each component of each resample, ascending.

    Examples
    --------
    >>> from functools import partial
    >>> import spcacore
    >>> X, planted = spcacore.datasets.make_spiked(100, 50, cardinality=5, variances=(9,), rng=0)
    >>> found = spcacore.stability(X, partial(spcacore.sparse_pca, cardinality=5), n_resamples=20)
    >>> found.selection_frequency.shape, found.stable[:, 0].nonzero()[0].tolist()
    ((50, 1), [0, 1, 2, 3, 4])
    """

    selection_frequency: Array
    any_frequency: Array
    average_selected: Array
    average_any: float
    threshold: Array
    any_threshold: float
    expected_false: Array | None
    stable: Mask
    loading_interval: Array
    explained_variance_ratio: Array | None
    explained_interval: Array | None
    cosine: Array
    loadings: Array
    result: Any
    model: str
    resampling: str
    assumption: str
    level: float
    max_false: float
    n_samples: int
    names: Names
    chosen: tuple[tuple[Index, ...], ...] = field(repr=False)

    @property
    def n_components(self) -> int:
        """Number of components."""
        return self.loadings.shape[1]

    @property
    def n_resamples(self) -> int:
        """Number of resamples."""
        return len(self.chosen)

    @property
    def agreement(self) -> Array:
        """How well the resamples agree on each component, (r,): 1 if always, about 0 for a blind choice.

        It is `1 - sum_j s_j^2 / (p (q/p) (1 - q/p))`, where s_j^2 is the sample variance of the choices of
        variable j, and q the average number of variables chosen (Nogueira, Sechidis and Brown 2018). For
        supports of one size it is the average of Kuncheva's index over pairs. It is 0 if there is nothing to
        choose.
        """
        f, share = self.selection_frequency, self.average_selected / len(self.loadings)
        chance = share * (1 - share)
        variance = f * (1 - f) * (self.n_resamples / (self.n_resamples - 1))
        return np.where(chance > 0, 1 - variance.mean(axis=0) / divisor(chance), 0.0)

    def false_selections(self, threshold: float, component: int | None = None) -> float:
        """The bound on the expected number of false variables of at least this frequency.

        A variable is false if a half-sample chooses it with a probability of at most q/p, as a blind choice
        would. For any r the bound holds for the variables in at least one component, which needs no matching.
        For single components it assumes that the components of each resample have the order of the components
        of all the data.

        Parameters
        ----------
        threshold : float
            In (1/2, 1].
        component : int, optional
            Default: variables in at least one component.

        Returns
        -------
        float

        Raises
        ------
        ValueError
            For a bootstrap, because it has no such bound, or a threshold out of range.

        Examples
        --------
        >>> from functools import partial
        >>> import spcacore
        >>> X, planted = spcacore.datasets.make_spiked(100, 200, cardinality=10, rng=0)
        >>> found = spcacore.stability(X, partial(spcacore.sparse_pca, cardinality=10), n_resamples=50)
        >>> bool(found.false_selections(0.9) < 1)
        True
        """
        threshold = number(threshold, "threshold", 0.5, 1)
        if threshold == 0.5:
            raise ValueError("threshold must be above 1/2")
        if self.resampling == "bootstrap":
            raise ValueError("a bootstrap has no bound on false selections: use half-samples")
        q = self.average_any
        if component is not None:
            q = float(self.average_selected[integer(component, "component", 0, self.n_components - 1)])
        return false_selections(threshold, q, len(self.loadings), self.n_resamples, self.assumption)

    def together(self, component: int = 0, variables: Sequence[int] | None = None) -> Array:
        """How often pairs of variables are chosen together for a component.

        Parameters
        ----------
        component : int, default 0
        variables : sequence of m ints, optional
            Default: the variables that are chosen from all the data.

        Returns
        -------
        ndarray of shape (m, m)
            Shares of the resamples; the diagonal has the selection frequencies.

        Examples
        --------
        >>> from functools import partial
        >>> import spcacore
        >>> X, planted = spcacore.datasets.make_spiked(100, 200, cardinality=3, rng=0)
        >>> model = partial(spcacore.sparse_pca, cardinality=3)
        >>> spcacore.stability(X, model, n_resamples=20).together().shape
        (3, 3)
        """
        t = integer(component, "component", 0, self.n_components - 1)
        p = len(self.loadings)
        if variables is None:
            index = np.flatnonzero(self.loadings[:, t])
        else:
            index = np.array(
                [integer(j, f"variables[{i}]", 0, p - 1) for i, j in enumerate(variables)], np.intp
            )
        rows = np.array([np.isin(index, supports[t]) for supports in self.chosen], np.float64)
        return rows.T @ rows / self.n_resamples

    def group_frequencies(
        self, groups: Sequence[Hashable] | Mapping[str, Hashable], component: int | None = None
    ) -> dict[Hashable, float]:
        """How often groups of variables are chosen: a group is chosen if any of its variables is.

        Parameters
        ----------
        groups : sequence of p labels, or mapping of names to labels
            The group of each variable, as in ``stability(.., groups=)`` or other.
        component : int, optional
            Default: groups in at least one component.

        Returns
        -------
        dict of float
            Shares of the resamples by group, in the order in which groups first appear.

        Raises
        ------
        ValueError
            For another number of labels than variables, a variable without a group, or no such component.
        TypeError
            For groups that are neither a sequence nor a mapping.

        Examples
        --------
        >>> from functools import partial
        >>> import spcacore
        >>> X, planted = spcacore.datasets.make_spiked(100, 12, cardinality=4, variances=(400, 100), rng=0)
        >>> groups = ["first"] * 4 + ["second"] * 4 + ["third"] * 4
        >>> model = partial(spcacore.sparse_pca, cardinality=1, choice=spcacore.Choice(groups=groups))
        >>> found = spcacore.stability(X, model, n_resamples=20, rng=0)
        >>> found.group_frequencies(groups)
        {'first': 1.0, 'second': 0.0, 'third': 0.0}
        """
        index, labels = group_places(groups, self.names, len(self.loadings))
        if component is not None:
            component = integer(component, "component", 0, self.n_components - 1)
        count = np.zeros(len(labels))
        for supports in self.chosen:
            some = np.concatenate(supports) if component is None else supports[component]
            count[np.unique(index[some])] += 1
        return dict(zip(labels, (count / self.n_resamples).tolist(), strict=True))

    def _table(self) -> Listing:
        return self._variables(self.rows())

    def _variables(self, rows: list[tuple[int, int]]) -> Listing:
        """Return a table of the pairs of a component and a variable."""
        t, j = np.array(rows, np.intp).reshape(-1, 2).T
        low, high = self.loading_interval[j, t].T
        columns = {
            "component": t + 1, "loading": self.loadings[j, t], "frequency": self.selection_frequency[j, t],
            "low": low, "high": high, "stable": self.stable[j, t],
        }  # fmt: skip
        names = labels(self.names, len(self.loadings))
        return Listing("variable", [names[i] for i in j], columns)

    def _parts(self) -> list[Part]:
        """Return the summary: a table of components, and one of the variables chosen most often."""
        known: dict[str, Any] = {
            "selected": self.average_selected, "threshold": self.threshold, "stable": self.stable.sum(axis=0),
            "agreement": self.agreement, "cosine": self.cosine.mean(axis=0),
        }  # fmt: skip
        if self.expected_false is not None:
            known["expected false, at most"] = self.expected_false
        if self.explained_interval is not None:
            low, high = self.explained_interval.T
            known |= {"% of the variance, low": 100 * low, "% of the variance, high": 100 * high}
        parts = table_of("component", range(1, self.n_components + 1), known, noun="component")
        each = max(1, READ_VARIABLES // self.n_components)
        rows = self.rows()
        top = [row for _, own in groupby(rows, itemgetter(0)) for row in islice(own, each)]
        parts += table_of(*self._variables(top))
        left = len(rows) - len(top)
        return [*parts, *([f"and {counted(left, 'more row')}: see to_frame()"] if left else [])]

    def rows(self) -> list[tuple[int, int]]:
        """Pairs of a component and a variable that it ever selects, the most frequent variables first.

        Returns
        -------
        list of (int, int)

        Examples
        --------
        >>> from functools import partial
        >>> import spcacore
        >>> X, planted = spcacore.datasets.make_spiked(100, 50, cardinality=2, variances=(400,), rng=0)
        >>> spcacore.stability(X, partial(spcacore.sparse_pca, cardinality=2), n_resamples=20).rows()
        [(0, 0), (0, 1)]
        """
        out = []
        for t, frequency in enumerate(self.selection_frequency.T):
            out += [(t, int(j)) for j in leading(frequency)]
        return out

    def _facts(self) -> list[str]:
        return [
            f"model={self.model!r}", f"{counted(self.n_resamples, 'resample')} ({self.resampling})",
            f"p={len(self.loadings)}", counted(self.n_components, "component"),
            f"stable={few(self.stable.sum(axis=0))}",
        ]  # fmt: skip


# ---- the bound on false selections


def false_selections(threshold: float, q: float, p: int, count: int, assumption: str) -> float:
    """Return the bound on the expected number of false variables with frequency `threshold` or more.

    q of p variables are selected from half of the rows, in `count` resamples; tau is the threshold. "none":
    `q^2/((2 tau - 1) p)` (Meinshausen and Buehlmann 2010, theorem 1). "unimodal", with B = count/2
    complementary pairs: `C q^2/p` (Shah and Samworth 2013, theorem 2, where `q/p <= 1/sqrt(3)`), with
    `C = 1/(2 (2 tau - 1 - 1/(2B)))` for tau up to 3/4 and `4 (1 - tau + 1/(2B))/(1 + 1/B)` above, where this
    is less.
    """
    bound = q * q / ((2 * threshold - 1) * p)
    pairs, share = count // 2, q / p
    if assumption == "none" or pairs == 0:
        return bound
    half = 1 / (2 * pairs)
    if share <= 1 / math.sqrt(3):
        if threshold > 0.75:
            bound = min(bound, 4 * (1 - threshold + half) / (1 + 2 * half) * q * q / p)
        elif 2 * threshold - 1 > half and threshold >= 0.5 + min(share**2, half + 0.75 * share**2):
            bound = min(bound, q * q / (2 * (2 * threshold - 1 - half) * p))
    return bound


def least_threshold(q: float, p: int, count: int, assumption: str, max_false: float) -> tuple[float, float]:
    """Return the smallest frequency whose bound is at most `max_false`, and that bound, or inf and 0."""
    for i in range(count // 2 + 1, count + 1):
        bound = false_selections(i / count, q, p, count, assumption)
        if bound <= max_false:
            return i / count, bound
    return math.inf, 0.0


# ---- matching


def matched(refit: Refit, reference: Array) -> tuple[list[Sparse], Index, Array]:
    """Match the components of a resample with the reference: give them its order, its signs and unit length.

    Returns the components, empty where none was left; which component came to each place, -1 for none; and
    the magnitudes of their cosines with the reference. The assignment has the largest sum of these.
    """
    r = reference.shape[1]
    out: list[Sparse] = [(np.zeros(0, np.intp), np.zeros(0))] * r
    place, cosine = np.full(r, -1), np.zeros(r)
    unit = [(index, entries / (np.linalg.norm(entries) or 1.0)) for index, entries in refit.components]
    products = np.array([reference[index].T @ entries for index, entries in unit]).reshape(-1, r)
    for s, t, sign in zip(*matched_columns(products), strict=True):
        index, entries = unit[s]
        out[t] = index, entries if sign > 0 else -entries
        place[t], cosine[t] = s, abs(products[s, t])
    return out, place, cosine


def _side_by_side(components: list[Sparse], p: int) -> Any:
    """Return a sparse matrix whose columns are the components."""
    from scipy.sparse import csc_array

    index, entries = (np.concatenate(each) for each in zip(*components, strict=True))
    ends = np.cumsum([0, *(len(own) for own, _ in components)])
    return csc_array((entries, index, ends), shape=(p, len(components))).tocsr()


def rotated(components: list[Sparse], reference: Array) -> list[Sparse]:
    """Return L Q for the orthogonal Q that brings the loadings L nearest to the reference (Procrustes)."""
    matrix = _side_by_side(components, len(reference))
    used = np.flatnonzero(np.diff(matrix.indptr))
    L = matrix[used].toarray()
    U, _, Vt = np.linalg.svd(L.T @ reference[used])
    return [(used, v) for v in (L @ (U @ Vt)).T]


def quantiles(components: list[Sparse], p: int, level: float) -> Array:
    """Return two quantiles of the loadings of each variable in one component, (p, 2).

    The share `level` of the loadings is between them. `components` has this component in each resample. A
    variable that was not chosen has the loading 0.
    """
    out, matrix = np.zeros((p, 2)), _side_by_side(components, p)
    ever = np.flatnonzero(np.diff(matrix.indptr))
    for some in slices(len(ever), len(components), QUANTILE_ENTRIES):
        out[ever[some]] = _interval(matrix[ever[some]].toarray().T, level)
    return out


def _interval(values: Array, level: float) -> Array:
    """Return two quantiles of each column, between which are this share of the values."""
    return np.quantile(values, [(1 - level) / 2, (1 + level) / 2], axis=0).T


def assembled(
    found: list[Refit], refits: Refits, *, resampling: str, assumption: str, level: float, max_false: float,
    threshold: float | None, alignment: str, **told: Any,
) -> Stability:  # fmt: skip
    """Return the result for the components of all resamples; `told` are further fields."""
    # Components of each resample, matched with the components of all the data
    R = unit_columns(refits.reference)
    (p, r), count = R.shape, len(found)
    cosine, shares = np.zeros((count, r)), np.full((count, r), np.nan)
    components, chosen = [], []
    for b, refit in enumerate(found):
        own, place, cosine[b] = matched(refit, R)
        if refit.shares is not None:
            shares[b] = np.append(refit.shares, 0.0)[place]
        components.append(rotated(own, R) if alignment == "procrustes" else own)
        chosen.append(tuple(index for index, _ in own))
    # How often each variable is chosen: for each component, and for any
    unions = [union(*supports) for supports in chosen]
    *times, anywhere = (
        np.bincount(np.concatenate(one), minlength=p) for one in [*zip(*chosen, strict=True), unions]
    )
    frequency, average = np.stack(times, axis=1) / count, np.mean([len(union) for union in unions])

    def cut(q: float) -> tuple[float, float]:
        """Return the frequency from which on a variable is stable, and the bound on false ones, or NaN."""
        if threshold is None and resampling != "bootstrap":
            return least_threshold(q, p, count, assumption, max_false)
        given = STABLE_FREQUENCY if threshold is None else threshold
        bounded = resampling != "bootstrap" and given > 0.5
        return given, false_selections(given, q, p, count, assumption) if bounded else math.nan

    # Thresholds and bounds, from the average number of variables chosen
    selected = np.sum(times, axis=1) / count
    levels, bounds = np.array([cut(q) for q in (*selected.tolist(), float(average))]).T
    known = all(refit.shares is not None for refit in found)
    return Stability(
        selection_frequency=frequency, any_frequency=anywhere / count, average_selected=selected,
        average_any=float(average), threshold=levels[:r], any_threshold=float(levels[r]),
        expected_false=None if math.isnan(bounds[0]) else bounds[:r], stable=frequency >= levels[:r],
        loading_interval=np.stack(
            [quantiles([*one], p, level) for one in zip(*components, strict=True)], axis=1
        ),
        explained_variance_ratio=shares if known else None,
        explained_interval=_interval(shares, level) if known else None, cosine=cosine, loadings=R,
        result=refits.result, names=refits.names(), chosen=tuple(chosen), resampling=resampling,
        assumption=assumption, level=level, max_false=max_false, **told,
    )  # fmt: skip
