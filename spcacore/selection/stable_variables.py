"""Which variables would be chosen again: sparse components of resamples of the rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .._docstrings import hands_on
from .._labels import joined
from .._limits import STABLE_FREQUENCY
from .._messages import counted, listed, quiet
from .._types import MatrixLike, RandomSource, Resampling
from .._validation import (
    as_seed,
    check_bool,
    check_callback,
    check_choice,
    column_names,
    has_only_products,
    integer,
    is_row_blocks,
    is_sparse,
    number,
    real_array,
)
from ..generalized.cca import sparse_cca
from ..generalized.lda import sparse_lda
from ..linalg.threads import Report, check_jobs, in_threads
from ..models.alternation import with_defaults
from ..models.components import sparse_pca
from ..models.elastic_net import spca
from ..models.rotated import sca
from ..models.structured import soppca
from ..operators.partition import row_blocks
from ..operators.sparse_format import canonical_arrays
from ..progress import SelectionProgress
from .resampling import (
    RESAMPLINGS,
    ComponentRefits,
    PairRefits,
    Refit,
    Refits,
    WeightedRefits,
    drawn_weights,
)
from .stability_result import Stability, assembled
from .tuning import NamedArray

__all__ = ["ALIGNMENTS", "ASSUMPTIONS", "FUNCTIONS", "WARM", "Callback", "stability"]
__dir__ = __all__.copy

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sparse_pca": sparse_pca, "spca": spca, "sca": sca, "soppca": soppca, "sparse_cca": sparse_cca,
    "sparse_lda": sparse_lda,
}  # fmt: skip
WARM = ("sparse_pca", "spca", "sca")
ASSUMPTIONS = ("none", "unimodal", "r-concave")
ALIGNMENTS = ("assignment", "procrustes")
Callback = Callable[[SelectionProgress], object]


@hands_on(
    sparse_pca, spca, sca, soppca, sparse_cca, sparse_lda, leaves_out=("kind", "sample_weight", "certify")
)
def stability(
    X: MatrixLike, n_components: int, Y: MatrixLike | None = None, *,
    model: Literal["sparse_pca", "spca", "sca", "soppca", "sparse_cca", "sparse_lda"] = "sparse_pca",
    resampling: Resampling = "complementary", n_resamples: int = 100,
    threshold: float | None = None, max_false: float = 1.0,
    assumption: Literal["none", "unimodal", "r-concave"] | None = None, level: float = 0.95,
    alignment: Literal["assignment", "procrustes"] = "assignment", warm_start: bool | None = None,
    n_jobs: int = 1, rng: RandomSource = None, callback: Callback | None = None,
    **options: Any,
) -> Stability:  # fmt: skip
    """Which variables of sparse components would be chosen again: stability selection, or a bootstrap.

    The model is fitted to all the data and to resamples of the rows. The components of each resample are
    matched with those of all the data by the largest sum of `|cosines|`, and take their order and signs. The
    function then counts how often a variable has a nonzero loading.

    Parameters
    ----------
    X : array-like of shape (n, p), sparse matrix, RowBlocks or dask array
        Data, one row per sample, as the model takes them, without NaN. Samples are assumed to be independent.
    n_components : int
        r.
    Y : array-like, optional
        For "sparse_cca" the other side, (n, q); for "sparse_lda" the labels, (n,), and rows are then drawn
        within each class.
    model : {"sparse_pca", "spca", "sca", "soppca", "sparse_cca", "sparse_lda"}, default "sparse_pca"
        The function of that name, to which resamples are weights of the rows: no rows are copied.
    resampling : {"complementary", "half", "bootstrap"}, default "complementary"
        "half": floor(n/2) rows without replacement. "complementary": the same in pairs without a common row.
        Both bound the expected number of false variables. "bootstrap": n rows with replacement, whose
        quantiles are those of components of n rows.
    n_resamples : int, default 100
        B, at least 2; even for "complementary".
    threshold : float, optional
        In (0, 1]: the frequency from which a variable is stable. Default: the smallest at which the bound on
        the expected number of false variables, of each component, is at most `max_false`; 0.75 for a
        bootstrap, which has no bound.
    max_false : float, default 1
        Positive.
    assumption : {"none", "unimodal", "r-concave"}, optional
        What the bound assumes of the frequencies of a false variable in complementary pairs: nothing, that
        their distribution has one mode, or that besides it is as concave as Shah and Samworth (2013, section
        3.3) propose, r = -1/2 of both halves of a pair and -1/4 of all half-samples, which gives the smallest
        bound. Default: "unimodal", and "none" of resamples without pairs.
    level : float, default 0.95
        The level of the intervals, in (0, 1).
    alignment : {"assignment", "procrustes"}, default "assignment"
        "procrustes": the intervals are those of loadings rotated to those of all the data, for components
        that mix because their variances are close. Frequencies are those of components in any case.
    warm_start : bool, optional
        Whether resamples are searched from the components of all the data, and quickly: with fewer starts of
        their own, and of "tpower" without swaps unless ``swaps=True``. Default: True for a bootstrap. The
        bound holds only where half-samples are searched independently. Not for "soppca", "sparse_cca" and
        "sparse_lda".
    n_jobs : int, default 1
        Threads; -1: one for each processor. The result does not depend on it.
    rng : None, int or numpy Generator, optional
        For resamples and random starts; None is a fixed seed.
    callback : callable, optional
        Called with a `SelectionProgress` after each resample, in the thread of the caller. Raising
        StopIteration ends the search early: the result then uses the finished resamples, at least two of
        which are needed.
    {options}

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
        For an operator, a covariance, or an option of the wrong type.
    RuntimeError
        Where the callback ends the search before two resamples.

    Notes
    -----
    With q variables chosen on average from half of the rows, at most `q^2/((2 tau - 1) p)` variables of
    frequency tau or more are expected among those that a half-sample chooses with a probability of no more
    than q/p. Complementary pairs have smaller bounds for frequencies whose distribution has one mode or is
    r-concave (`assumption`), see `Stability.false_selections`. Quantiles of a bootstrap of sparse loadings
    are a description rather than confidence intervals: the chance that a loading is zero has no smooth limit.

    References
    ----------
    N. Meinshausen and P. Buehlmann (2010). Stability selection. Journal of the Royal Statistical Society B
    72, 417-473. R. D. Shah and R. J. Samworth (2013). Variable selection with error control: another look at
    stability selection. Journal of the Royal Statistical Society B 75, 55-80.

    Examples
    --------
    >>> import spcacore
    >>> X, planted = spcacore.datasets.make_spiked(100, 200, cardinality=10, rng=0)
    >>> found = spcacore.stability(X, 2, cardinality=10, n_resamples=50)
    >>> found.stable.sum(axis=0).tolist(), (planted != 0)[found.stable].all().item()
    ([10, 10], True)
    """
    check_choice(model, "model", FUNCTIONS)
    check_choice(resampling, "resampling", RESAMPLINGS)
    check_choice(alignment, "alignment", ALIGNMENTS)
    if assumption is None:
        assumption = "unimodal" if resampling == "complementary" else "none"
    elif check_choice(assumption, "assumption", ASSUMPTIONS) != "none" and resampling != "complementary":
        raise ValueError(f"assumption={assumption!r} is for complementary pairs, not for {resampling!r}")
    n_resamples = integer(n_resamples, "n_resamples", 2)
    if resampling == "complementary" and n_resamples % 2:
        raise ValueError(f"n_resamples must be even for complementary pairs, not {n_resamples}")
    threshold = None if threshold is None else _positive(threshold, "threshold", 1.0)
    max_false = _positive(max_false, "max_false")
    level = _positive(level, "level", 1.0)
    if level == 1:
        raise ValueError("level must be below 1")
    warm = resampling == "bootstrap" if warm_start is None else check_bool(warm_start, "warm_start")
    if warm_start and model not in WARM:
        raise ValueError(f"warm_start=True is for {listed(WARM, 'and')}, not {model!r}")
    if isinstance(n_components, (bool, float, np.floating)):
        raise TypeError(f"n_components must be an integer, not {n_components!r}")
    threads, hook = check_jobs(n_jobs), check_callback(callback)
    _refuse(model, Y, options)
    rows, Y = _rows(X, "X"), joined(X, Y, "Y")
    n = rows.shape[0]
    labels = _labels(Y, n, resampling) if model == "sparse_lda" else None
    least = n if resampling == "bootstrap" else n // 2
    integer(n_components, "n_components", 1, least, f": that many rows has a resample of {n}")
    seed = as_seed(rng)
    refits = _refits(model, rows, n_components, Y, options, warm, seed)
    if not refits.reference().any():
        raise ValueError("X has no component under these options: no variable is chosen")
    weights = drawn_weights(n, resampling, seed, labels)
    batches = [range(i, min(i + refits.batch, n_resamples)) for i in range(0, n_resamples, refits.batch)]
    done = 0

    def tell(count: int) -> bool:
        nonlocal done
        for _ in range(count):
            done += 1
            if hook is not None and hook(SelectionProgress(done, n_resamples, done)):
                return True
        return False

    def fit(batch: range, report: Report) -> list[Refit]:
        out = refits.of(np.array([weights(i) for i in batch]), report)
        report(len(batch))
        return out

    with quiet():  # of each resample
        found = [one for batch in in_threads(fit, batches, threads, tell) for one in batch]
    if hook is not None and hook.ended:
        found = found[: done - done % (1 + (resampling == "complementary"))]
    if len(found) < 2:
        raise RuntimeError("the callback ended the search before two resamples were done")
    return assembled(
        found, refits.reference(), refits.result, names=refits.names(), model=model, resampling=resampling,
        assumption=assumption, level=level, max_false=max_false, threshold=threshold,
        fallback=STABLE_FREQUENCY, alignment=alignment, n_samples=n,
    )  # fmt: skip


def _positive(value: Any, name: str, high: float = np.inf) -> float:
    value = number(value, name, 0, high)
    if value == 0:
        raise ValueError(f"{name} must be positive")
    return value


def _refuse(model: str, Y: Any, options: dict[str, Any]) -> None:
    """What goes with no resample."""
    if options.get("sample_weight") is not None:
        raise TypeError("sample_weight cannot be used here: resamples weigh the rows")
    if options.get("certify"):
        raise TypeError("certify cannot be used here: a certificate is for one fit")
    if options.get("kind", "data") != "data":
        raise TypeError("kind must be 'data': a covariance has no rows to draw from")
    if model in ("sparse_cca", "sparse_lda"):
        if Y is None:
            raise TypeError(
                f"model={model!r} needs Y, the {'labels' if model == 'sparse_lda' else 'other side'}"
            )
    elif Y is not None:
        raise TypeError(f"Y is for 'sparse_cca' and 'sparse_lda', not for {model!r}")


def _rows(X: Any, name: str) -> Any:
    """X as an array with names, CSR matrix or row blocks, whose rows can be weighed or taken."""
    if has_only_products(X):
        raise TypeError(f"{name} must have rows to draw from; an operator offers only products")
    if is_row_blocks(X):
        rows: Any = row_blocks(X)
    elif is_sparse(X):
        rows = canonical_arrays(X)[0].tocsr()
    else:
        rows = NamedArray(real_array(X, name, ndim=2), column_names(X))
    if rows.shape[0] < 4:
        raise ValueError(f"{name} must have at least four rows, not {rows.shape[0]}")
    return rows


def _labels(Y: Any, n: int, resampling: str) -> NDArray[np.intp]:
    """Which class each row belongs to, counted from 0."""
    y = np.asarray(Y)
    if y.ndim != 1 or len(y) != n:
        raise ValueError(f"Y has shape {y.shape} for {counted(n, 'row')}: it must have one label for each")
    _, labels, sizes = np.unique(y, return_inverse=True, return_counts=True)
    if resampling != "bootstrap" and sizes.min() < 4:
        raise ValueError(f"half-samples need four rows of each class, and one has {sizes.min()}")
    return labels.astype(np.intp)


def _refits(
    model: str, X: Any, n_components: Any, Y: Any, options: dict[str, Any], warm: bool, seed: int
) -> Refits:
    """The model of all the data, ready for resamples."""
    options = {name: value for name, value in options.items() if value is not None}
    if model == "sparse_pca":
        method, deflation = with_defaults(
            options.pop("method", None), options.pop("objective", None), options.pop("deflation", None),
            options.get("constraint"),
        )  # fmt: skip
        return ComponentRefits(
            X, n_components, options | {"method": method, "deflation": deflation}, warm, seed
        )
    if model == "sparse_cca":
        return PairRefits(sparse_cca, (X, _rows(Y, "Y")), n_components, options)
    if model in ("soppca", "sparse_lda"):
        options = {"rng": seed} | options
    data = (X, np.asarray(Y)) if model == "sparse_lda" else (X,)
    refits = WeightedRefits(FUNCTIONS[model], data, n_components, options)
    return refits.from_there() if warm and model in WARM else refits
