"""Loadings of any other program, with what they explain of X."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._labels import row_labels
from .._types import Kind, OperatorLike, Switch, Weights
from ..operators.inputs import as_problem
from ..operators.leading import cheap_dense_shares
from ..operators.problem import warn_out_of_range
from ..operators.transform import fitted_scores
from ..readable import as_result, loadings_in
from ..results import LoadingsResult, check_names
from .variance import checked_loadings, operator_variances

__all__ = ["GivenLoadings", "from_loadings"]


@dataclass(frozen=True, eq=False, repr=False)
class GivenLoadings(LoadingsResult):
    """Loadings of another program and the variance that they explain, from `from_loadings`.

    Attributes
    ----------
    loadings : ndarray of shape (p, r)
        At unit length, or zero, in the order and with the signs that were given.
    method : str
        The label that the caller gave.
    explained_variance, explained_variance_ratio, total_variance, cardinality, mean, scale, kind
        As in `SparsePCAResult`.
    n_samples, names, dense_ratio, scores
        As in `SparsePCAResult`.

    Examples
    --------
    >>> import spcacore
    >>> X, planted = spcacore.datasets.make_spiked(100, 50, cardinality=5, rng=0)
    >>> result = spcacore.from_loadings(planted, X, label="planted")
    >>> result.method, result.cardinality.tolist(), result.transform(X).shape
    ('planted', [5, 5], (100, 2))
    """

    loadings: NDArray[Any]
    mean: NDArray[Any] | None
    scale: NDArray[Any] | None
    explained_variance: NDArray[np.float64]
    explained_variance_ratio: NDArray[np.float64] | None
    total_variance: float | None
    cardinality: NDArray[np.intp]
    kind: str
    n_samples: int | None
    names: tuple[str, ...] | None
    method: str
    dense_ratio: NDArray[np.float64] | None
    scores: NDArray[Any] | None = None


def from_loadings(
    loadings: object,
    X: OperatorLike,
    *,
    kind: Kind = "data",
    center: Switch = True,
    scale: Switch = False,
    sample_weight: Weights = None,
    names: Iterable[str] | None = None,
    label: str = "given",
) -> GivenLoadings:
    """Turn loadings of any other program into a result with variances, scores, summaries and pictures.

    Parameters
    ----------
    loadings : array-like of shape (p, r) or (p,), result or fitted estimator
        Columns of any length, orthogonal or not. They are normalized here, and keep their signs. If a
        dataframe has the names of the variables as its index, its rows are put in the order of the variables
        of X.
    X : array-like of shape (n, p), sparse matrix or LinearOperator
        What the loadings belong to: data or, with ``kind="covariance"``, a symmetric matrix, as in
        `sparse_pca`. Not copied.
    kind, center, scale, sample_weight
        How to read X, as in `sparse_pca`.
    names : sequence of p str, optional
        Names of the variables. Default: the names in X, else the index of `loadings` if that holds words.
    label : str, default "given"
        Where the loadings come from. It becomes the `method` of the result, which tables show.

    Returns
    -------
    GivenLoadings

    Raises
    ------
    ValueError
        For NaN, infinite or empty input, shapes that do not match, or other names than in X.
    TypeError
        For input that is not real numbers, or an option of the wrong type.

    See Also
    --------
    compare : Several results side by side.

    References
    ----------
    H. Shen and J. Z. Huang (2008). Sparse principal component analysis via regularized low rank
    matrix approximation. Journal of Multivariate Analysis 99, section 2.3: the variance explained.

    Examples
    --------
    >>> import numpy as np, spcacore
    >>> props = spcacore.datasets.load_pitprops()
    >>> V = np.zeros((13, 1))
    >>> V[[0, 1]] = 2  # the sum of length and diameter, by judgment
    >>> result = spcacore.from_loadings(V, props.correlation, kind="covariance", names=props.names)
    >>> print(result.summary())
    GivenLoadings by given: 1 component of 13 variables, 15.0 % of the variance
    <BLANKLINE>
    component  nonzeros  variance     %  cumulative %  ordinary, cumulative %
    1                 2     1.954  15.0          15.0                    32.5
    <BLANKLINE>
    contributions, % of the sum of magnitudes
    1: topdiam 50.0, length 50.0
    """
    problem = as_problem(
        X, kind=kind, center=center, scale=scale, sample_weight=sample_weight,
        definite=False,
    )  # fmt: skip
    if not isinstance(label, str):
        raise TypeError(f"label must be a string, not {label!r}")
    own = problem.names if names is None else check_names(names, problem.p)
    V = checked_loadings(loadings, problem.p, own, (1, 2))
    own = _names_of(loadings) if own is None else own
    V = V[:, None] if V.ndim == 1 else V
    variances = operator_variances(problem, V, "cumulative")
    in_units = np.asarray(problem.in_units(variances))
    warn_out_of_range(variances, in_units)
    ratio = None
    if problem.diagonal is not None:
        total = float(problem.diagonal.sum())
        ratio = variances / total if total > 0 else variances
    V = V.astype(problem.operator.dtype)
    return GivenLoadings(
        loadings=V, explained_variance=in_units,
        explained_variance_ratio=ratio, total_variance=problem.total_variance,
        cardinality=np.count_nonzero(V, axis=0), mean=problem.mean, scale=problem.scale, kind=kind,
        n_samples=problem.n_samples, names=own, method=label,
        dense_ratio=cheap_dense_shares(problem, V.shape[1]), scores=fitted_scores(X, problem, V),
    )  # fmt: skip


def _names_of(loadings: Any) -> tuple[str, ...] | None:
    """Of a result, or the rows of a dataframe or series of pandas; None where they are but numbers."""
    source = as_result(loadings)
    if loadings_in(source) is not loadings:
        return getattr(source, "names", None)
    index = row_labels(loadings)
    return tuple(index) if index is not None and all(isinstance(name, str) for name in index) else None
