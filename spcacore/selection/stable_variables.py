"""Which variables would be chosen again: sparse components of resamples of the rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._labels import joined
from .._messages import counted, listed, quiet
from .._types import Alignment, Assumption, Index, MatrixLike, ModelLike, RandomSource, Resampling
from .._validation import as_seed, check_bool, check_choice, integer, positive
from ..linalg.threads import Report, check_jobs, in_threads
from ..progress import ProgressCounter, SelectionCallback, check_callback, refuse_ended
from .model import Model, as_model, as_rows, takes_model
from .resampling import ComponentRefits, Refit, Refits, WeightedRefits, drawn_weights
from .stability_result import Stability, assembled

RESAMPLED = ("sparse_pca", "spca", "sca", "soppca", "sparse_cca", "sparse_lda")
WARM = ("sparse_pca", "spca", "sca")


@takes_model(*RESAMPLED)
def stability(
    X: MatrixLike, model: ModelLike, Y: MatrixLike | None = None, *,
    resampling: Resampling = "complementary", n_resamples: int = 100,
    threshold: float | None = None, max_false: float = 1.0,
    assumption: Assumption | None = None, level: float = 0.95,
    alignment: Alignment = "assignment", warm_start: bool | None = None,
    n_jobs: int = 1, rng: RandomSource = None, callback: SelectionCallback | None = None,
) -> Stability:  # fmt: skip
    """Find which variables of sparse components would be chosen again, by stability selection or a bootstrap.

    The model is fitted to all the data and to resamples of the rows. The components of each resample are
    matched with the components of all the data by the largest sum of `|cosines|`, and take their order and
    signs. The function then counts how often a variable has a nonzero loading.

    Parameters
    ----------
    X : array-like of shape (n, p), sparse matrix, RowBlocks or dask array
        Data, one row per sample, as the model takes them, without NaN. Samples are assumed to be independent.
    model : function, functools.partial or estimator
        What is fitted: `sparse_pca`, `spca`, `sca`, `soppca`, `sparse_cca` or `sparse_lda`, a partial of one
        with its options by name, or their estimators, not yet fitted. Resamples are weights of the rows, and
        no rows are copied. The number of components is 1 if a partial does not say. Any other object with
        `fit` and, once fitted, `components_` is fitted to copies of the rows, which is slower.
    Y : array-like, optional
        For `sparse_cca` the other side, (n, q); for `sparse_lda` the labels, (n,), and rows are then drawn
        within each class.
    resampling : {"complementary", "half", "bootstrap"}, default "complementary"
        "half": floor(n/2) rows without replacement. "complementary": the same in pairs without a common row.
        Both bound the expected number of false variables, "half" only if there are many resamples: of two to
        four, three times as many may be false. "bootstrap": n rows with replacement, so that quantiles
        describe components of n rows.
    n_resamples : int, default 100
        B, at least 2; even for "complementary".
    threshold : float, optional
        In (0, 1]: a variable that is chosen with this frequency or more is stable. Default: the smallest
        frequency at which the bound on the expected number of false variables, of each component, is at most
        `max_false`; 0.75 for a bootstrap, which has no bound.
    max_false : float, default 1
        Positive.
    assumption : {"none", "unimodal"}, optional
        What the bound assumes about the frequencies of a false variable in complementary pairs: nothing, or
        that their distribution has one mode. Default: "unimodal", or "none" for resamples without pairs.
    level : float, default 0.95
        The level of the intervals, in (0, 1).
    alignment : {"assignment", "procrustes"}, default "assignment"
        "procrustes": for the intervals, loadings are rotated to the loadings of all the data, for components
        that mix because their variances are close. Frequencies are counted by components in any case.
    warm_start : bool, optional
        Whether the search in a resample starts from the components of all the data and is short: with fewer
        starts of its own and, for "tpower", without swaps unless ``swaps=True``. Default: True for a
        bootstrap. The bound holds only where half-samples are searched independently. For `sparse_pca`,
        `spca` and `sca`.
    n_jobs : int, default 1
        Threads; -1: one for each processor. The result does not depend on it.
    rng : None, int or numpy Generator, optional
        For resamples, and for random starts unless the model has an `rng` of its own; None is a fixed
        seed.
    callback : callable or True, optional
        Called with a `SelectionProgress` after each resample, in the thread of the caller. Raising
        StopIteration ends the search early: the result then uses the finished resamples; there must be two of
        them.

    Returns
    -------
    Stability
        `selection_frequency` (p, r), `stable` (p, r), `threshold` (r,), `expected_false` (r,),
        `loading_interval` (p, r, 2), `explained_interval` (r, 2), `together`, `result`, ...

    Raises
    ------
    ValueError
        As in the function of the model; for NaN, more components than a resample has rows, or an option out
        of range.
    TypeError
        For an operator, a covariance, something that is not a model, or an option of the wrong type.
    RuntimeError
        Where the callback ends the search before two resamples.

    Notes
    -----
    With q variables chosen on average from half of the rows, at most `q^2/((2 tau - 1) p)` variables of
    frequency tau or more are expected among those that a half-sample chooses with a probability of no more
    than q/p. Complementary pairs have smaller bounds for frequencies whose distribution has one mode
    (`assumption`), see `Stability.false_selections`. Quantiles of a bootstrap of sparse loadings
    are a description rather than confidence intervals: the chance that a loading is zero has no smooth limit.

    References
    ----------
    N. Meinshausen and P. Buehlmann (2010). Stability selection. Journal of the Royal Statistical Society B
    72, 417-473. R. D. Shah and R. J. Samworth (2013). Variable selection with error control: another look at
    stability selection. Journal of the Royal Statistical Society B 75, 55-80.

    Examples
    --------
    >>> from functools import partial
    >>> import spcacore
    >>> X, planted = spcacore.datasets.make_spiked(100, 200, cardinality=10, rng=0)
    >>> model = partial(spcacore.sparse_pca, n_components=2, cardinality=10)
    >>> found = spcacore.stability(X, model, n_resamples=50)
    >>> found.stable.sum(axis=0).tolist(), (planted != 0)[found.stable].all().item()
    ([10, 10], True)
    """
    asked = as_model(model, "stability", RESAMPLED, estimators=True)
    check_choice(resampling, "resampling", Resampling)
    check_choice(alignment, "alignment", Alignment)
    if assumption is None:
        assumption = "unimodal" if resampling == "complementary" else "none"
    elif check_choice(assumption, "assumption", Assumption) != "none" and resampling != "complementary":
        raise ValueError(f"assumption={assumption!r} is for complementary pairs, not for {resampling!r}")
    n_resamples = integer(n_resamples, "n_resamples", 2)
    if resampling == "complementary" and n_resamples % 2:
        raise ValueError(f"n_resamples must be even for complementary pairs, not {n_resamples}")
    threshold = None if threshold is None else positive(threshold, "threshold", 1, closed=True)
    max_false, level = positive(max_false, "max_false"), positive(level, "level", 1.0)
    warm = resampling == "bootstrap" if warm_start is None else check_bool(warm_start, "warm_start")
    if warm_start and asked.name not in WARM:
        raise ValueError(f"warm_start=True is for {listed(WARM, 'and')}, not {asked.name!r}")
    threads, hook = check_jobs(n_jobs), check_callback(callback)
    # The rows, and a fit to all of them
    _refuse(asked, Y)
    rows, Y = _rows(X, "X"), joined(X, Y, "Y")
    n = rows.shape[0]
    labels = _labels(Y, n, resampling) if asked.name == "sparse_lda" else None
    least, why = n if resampling == "bootstrap" else n // 2, f": that many rows has a resample of {n}"
    if asked.n_components is not None or not asked.is_foreign:
        integer(asked.n_components, "n_components", 1, least, why)
    seed = as_seed(rng)
    refits = _refits(asked.seeded(seed), rows, Y, labels, warm)
    integer(refits.reference.shape[1], "n_components", 0, least, why)
    if not refits.reference.any():
        raise ValueError("X has no component under these options: no variable is chosen")
    # Resamples, in batches, by threads
    weights = drawn_weights(n, resampling, seed, labels)
    batches = [range(i, min(i + refits.batch, n_resamples)) for i in range(0, n_resamples, refits.batch)]
    counter = ProgressCounter(hook, n_resamples)

    def tell(count: int) -> bool:
        return any(counter(counter.done + 1) for _ in range(count))

    def fit(batch: range, report: Report) -> list[Refit]:
        out = refits.of(np.array([weights(i) for i in batch]), report)
        report(len(batch))
        return out

    with quiet():  # not for each resample
        found = [one for batch in in_threads(fit, batches, threads, tell) for one in batch]
    if hook.ended:
        found = found[: counter.done - counter.done % (1 + (resampling == "complementary"))]
    refuse_ended(len(found), "resamples")
    return assembled(
        found, refits, model=asked.name, resampling=resampling, assumption=assumption, level=level,
        max_false=max_false, threshold=threshold, alignment=alignment, n_samples=n,
    )  # fmt: skip


def _refuse(model: Model, Y: Any) -> None:
    """Raise TypeError for options that resamples cannot use, and for a Y that is missing or not used."""
    if model.given("certify") and model.keywords["certify"]:
        raise TypeError("certify cannot be used here: a certificate is for one fit")
    if model.keywords.get("kind", "data") != "data":
        raise TypeError("kind must be 'data': a covariance has no rows to draw from")
    if model.name in ("sparse_cca", "sparse_lda"):
        if Y is None:
            what = "labels" if model.name == "sparse_lda" else "other side"
            raise TypeError(f"model={model.name} needs Y, the {what}")
    elif Y is not None:
        raise TypeError(f"Y is for sparse_cca and sparse_lda, not for {model.name}")


def _rows(X: Any, name: str) -> Any:
    """Return X as rows that can be drawn; there must be at least four."""
    rows = as_rows(X, name, "rows to draw from")
    if rows.shape[0] < 4:
        raise ValueError(f"{name} must have at least four rows, not {rows.shape[0]}")
    return rows


def _labels(Y: Any, n: int, resampling: str) -> Index:
    """Return the class of each row, as a number from 0."""
    y = np.asarray(Y)
    if y.ndim != 1 or len(y) != n:
        raise ValueError(f"Y has shape {y.shape} for {counted(n, 'row')}: it must have one label for each")
    _, labels, sizes = np.unique(y, return_inverse=True, return_counts=True)
    if resampling != "bootstrap" and sizes.min() < 4:
        raise ValueError(f"half-samples need four rows of each class, and one has {sizes.min()}")
    return labels.astype(np.intp)


def _refits(model: Model, X: Any, Y: Any, labels: Index | None, warm: bool) -> Refits:
    """Fit the model to all the data, and return what fits it to resamples."""
    if model.name == "sparse_pca":
        return ComponentRefits(X, model, warm)
    other = () if Y is None else (_rows(Y, "Y") if labels is None else np.asarray(Y),)
    return WeightedRefits((X, *other), model, warm and model.name in WARM)
