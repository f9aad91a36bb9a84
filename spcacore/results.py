"""The results of solvers: frozen, picklable, and made of arrays, numbers and names alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ._labels import same_columns
from ._messages import convergence, counted
from ._records import frozen_record
from ._types import AnyArray, Array, Index, MatrixLike, Names
from ._validation import aligned, framed, integer, real_array
from .operators.problem import Screening
from .operators.transform import scores as scores_of
from .readable import Named

__all__ = [
    "DSPCAComponent", "ExactComponent", "GreedyComponent", "LoadingsResult", "PMDComponent",
    "SparseComponent", "check_names", "check_scores", "to_data_units",
]  # fmt: skip
__dir__: Callable[[], list[str]] = __all__.copy


def check_names(names: Any, p: int) -> tuple[str, ...]:
    """Return names of p variables, given any sequence."""
    if isinstance(names, (str, bytes)) or not hasattr(names, "__len__"):
        raise TypeError(f"names must be a sequence of {p} strings, not {names!r}")
    if len(names) != p:
        raise ValueError(f"names has {counted(len(names), 'entry')} for {counted(p, 'variable')}")
    return tuple(str(name) for name in names)


def check_scores(scores: Any, n_components: int, names: Sequence[str] = ()) -> AnyArray:
    """Return scores as an array with a column for each component, in the order of the components' names."""
    scores = same_columns(scores, tuple(names) or tuple(f"component_{t + 1}" for t in range(n_components)))
    S = real_array(scores, "scores", ndim=2, empty=n_components == 0)
    if S.shape[1] != n_components:
        raise ValueError(
            f"scores have {counted(S.shape[1], 'column')} for {counted(n_components, 'component')}"
        )
    return S


def to_data_units(X: AnyArray, mean: Any, scale: Any) -> AnyArray:
    """Return X * scale + mean, computed in place: the inverse of centering and scaling."""
    if scale is not None:
        X *= scale
    if mean is not None:
        X += mean
    return X


class LoadingsResult(Named):
    """The base of results that have loadings, and the mean and scale of their data."""

    mean: AnyArray | None
    scale: AnyArray | None
    method: str

    def _facts(self) -> list[str]:
        return [f"method={self.method!r}", *self._sizes(), *self._share()]

    def _share(self) -> list[str]:
        shares = getattr(self, "explained_variance_ratio", None)
        return [] if shares is None else [f"{100 * float(np.sum(shares)):.1f} % of the variance explained"]

    def transform(self, X: MatrixLike) -> AnyArray:
        """Scores `((X - mean) / scale) @ loadings` of the rows of X.

        A score is the weighted sum of the variables of a row. Loadings are used as they are, even if they are
        not orthogonal or not of unit length. Scores of different components may be correlated.

        Parameters
        ----------
        X : array-like, sparse matrix, dask array or `row_blocks` of shape (m, p)
            A result from a covariance has no mean; X is then only divided by `scale`. Named columns may come
            in any order. If the fitted data had missing entries, dense X may have some, which count as the
            mean.

        Returns
        -------
        ndarray of shape (m, r); for a dask array, a dask array; for a dataframe of pandas or polars, another
            A dataframe has the index of X, and columns component_1, component_2, ...

        Raises
        ------
        ValueError
            If a dataframe has other columns than in the fit.

        Examples
        --------
        >>> import numpy as np, spcacore
        >>> X, planted = spcacore.datasets.make_spiked(100, 50, cardinality=5, rng=0)
        >>> result = spcacore.sparse_pca(X[:80], 2, cardinality=5)
        >>> np.allclose(result.transform(X[80:]), (X[80:] - result.mean) @ result.loadings)
        True
        """
        X_ = aligned(X, self.names)
        row_weight, missing = self._row_weight(X_), getattr(self, "missing_entries", 0) > 0
        return framed(X, scores_of(X_, self.loadings, self.mean, self.scale, row_weight, missing=missing))

    def reconstruct(self, scores: ArrayLike) -> AnyArray:
        """Rows from their scores, by orthogonal projection onto the span of the loadings.

        The rows are `scores @ inv(V'V) @ V' * scale + mean`, in the units of X. Hence
        `reconstruct(transform(X))` is the best approximation of X by these components, even if they are not
        orthogonal. For a result from a covariance, the mean is zero.

        Parameters
        ----------
        scores : array-like of shape (m, r)

        Returns
        -------
        ndarray of shape (m, p)

        Examples
        --------
        >>> import spcacore
        >>> X, planted = spcacore.datasets.make_spiked(100, 50, cardinality=5, rng=0)
        >>> result = spcacore.sparse_pca(X, 2, cardinality=5)
        >>> left = X - result.reconstruct(result.scores)
        >>> bool((left**2).sum() < 0.1 * ((X - result.mean) ** 2).sum())
        True
        """
        S = check_scores(scores, self.n_components)
        return to_data_units(S @ self._rows_of_scores(), self.mean, self.scale)

    def inverse_transform(self, scores: ArrayLike) -> AnyArray:
        """The same as `reconstruct`, under the name that scikit-learn uses."""
        return self.reconstruct(scores)

    def _row_weight(self, X: Any) -> AnyArray | None:
        """Return what multiplies each row of X before it is centered, or None."""
        return None

    def _rows_of_scores(self) -> AnyArray:
        """Return the rows that scores of 1 stand for, one for each component, centered and scaled: (r, p)."""
        return np.linalg.pinv(self.loadings)


@frozen_record
class SparseComponent(LoadingsResult):
    """One sparse loading vector and how it was obtained.

    Attributes
    ----------
    loading : ndarray of shape (p,)
        A unit vector; its entry of largest magnitude is positive.
    value : float
        The variance `x' A x`, in the units of the covariance.
    cardinality : int
        Number of nonzeros.
    n_iter : int
        Number of iterations from the best start.
    n_starts, n_ends, n_best : int
        How many starts the search made, how many of their runs it carried to their ends, and how many of
        these ended at the best value, to a millionth. If only one of many did, more starts (`n_starts=`) may
        find a better component. 1, 1 and 1 where the method has one start.
    converged : bool
    method : str
    screening : Screening
        How much of the data was read.
    upper_bound : float or None
        No unit vector with as many nonzeros has a larger value. None if no bound was requested.
    names : tuple of str or None
        Names of the variables, if the input had any.
    missing_entries : int
        How many entries of X were NaN.
    mean, scale : ndarray of shape (p,) or None
        What was subtracted from each column, and what then divided it. None if not applied.
    given : tuple of str
        Which of "center" and "scale" were vectors of the caller, so that `mean` or `scale` repeats them.
    kind : {"data", "covariance"}

    Examples
    --------
    >>> import spcacore
    >>> A = spcacore.datasets.load_pitprops().correlation
    >>> component = spcacore.tpower(A, 4, kind="covariance")
    >>> component.cardinality, round(component.value, 2), component.loading.shape
    (4, 2.94, (13,))
    """

    loading: AnyArray
    value: float
    cardinality: int
    n_iter: int
    converged: bool
    method: str
    screening: Screening = field(default_factory=Screening)
    upper_bound: float | None = None
    names: Names = None
    missing_entries: int = 0
    n_starts: int = 1
    n_ends: int = 1
    n_best: int = 1
    mean: AnyArray | None = None
    scale: AnyArray | None = None
    given: tuple[str, ...] = ()
    kind: str = "data"

    @property
    def gap(self) -> float | None:
        """How far `value` may be below the optimum, as a proportion of the upper bound; 0 is a proof."""
        if self.upper_bound is None:
            return None
        return max(0.0, 1 - self.value / self.upper_bound) if self.upper_bound > 0 else 0.0

    @property
    def loadings(self) -> AnyArray:  # type: ignore[override]
        """The loading as the only column of a matrix of shape (p, 1), as other results have loadings."""
        return self.loading[:, None]

    def _facts(self) -> list[str]:
        return [*self._found(), convergence(self)]

    def _found(self) -> list[str]:
        return [
            f"method={self.method!r}", f"p={self.loading.size}", f"cardinality={self.cardinality}",
            f"value={self.value:.6g}",
        ]  # fmt: skip


@frozen_record(kw_only=True)
class PMDComponent(SparseComponent):
    """A component `d u v'` of variables and of samples, from `pmd`.

    Attributes
    ----------
    loading, value, cardinality, n_iter, converged, method, screening, names
        As in `SparseComponent`.
    sample_loading : ndarray of shape (n,) or None
        u, a unit vector, or zero for data without any variance. None for a covariance.
    strength : float
        `d = u'Xv` for the centered and scaled data X; for a covariance `sqrt(v'Av)`.

    Examples
    --------
    >>> import spcacore
    >>> X, planted = spcacore.datasets.make_spiked(40, 30, cardinality=5, rng=0)
    >>> component = spcacore.pmd(X, l1_bound=2, options=spcacore.PMD(renormalize=False))
    >>> component.loading.shape, component.sample_loading.shape
    ((30,), (40,))
    """

    sample_loading: AnyArray | None
    strength: float


@frozen_record(kw_only=True)
class GreedyComponent(SparseComponent):
    """The component of a greedy search, with the components of all smaller cardinalities.

    Attributes
    ----------
    path_value : ndarray of shape (K,)
        The variance `x' A x` at cardinality 1, ..., K.
    order : ndarray of shape (K,) or None
        The variables in the order in which they join: the first k are the support at cardinality k. None if
        a support does not contain the one before.
    path_index, path_loading : ndarray of shape (K (K + 1) / 2,)
        The variables (ascending) of each support and their loadings, one cardinality after another.

    Examples
    --------
    >>> import spcacore
    >>> A = spcacore.datasets.load_pitprops().correlation
    >>> component = spcacore.greedy(A, 4, kind="covariance")
    >>> component.path_value.round(2).tolist()
    [1.0, 1.95, 2.48, 2.94]
    """

    path_value: Array
    order: Index | None
    path_index: Index
    path_loading: AnyArray

    def at(self, k: int) -> SparseComponent:
        """The component of cardinality k.

        Parameters
        ----------
        k : int
            In [1, K].

        Returns
        -------
        SparseComponent

        Examples
        --------
        >>> import spcacore
        >>> A = spcacore.datasets.load_pitprops().correlation
        >>> component = spcacore.greedy(A, 4, kind="covariance").at(2)
        >>> component.cardinality, round(component.value, 2)
        (2, 1.95)
        """
        k = integer(k, "k", 1, len(self.path_value))
        part = slice(k * (k - 1) // 2, k * (k + 1) // 2)
        loading = np.zeros_like(self.loading)
        loading[self.path_index[part]] = self.path_loading[part]
        return SparseComponent(
            loading, float(self.path_value[k - 1]), int(np.count_nonzero(loading)), self.n_iter,
            self.converged, self.method, self.screening, names=self.names, mean=self.mean, scale=self.scale,
            given=self.given, kind=self.kind,
        )  # fmt: skip

    def _facts(self) -> list[str]:
        return [*self._found(), f"with those of cardinality 1 to {len(self.path_value)}"]


@frozen_record(kw_only=True)
class DSPCAComponent(SparseComponent):
    """A sparse loading vector from the semidefinite relaxation, with the relaxation itself.

    With a penalty, the relaxation is for `x'Ax - penalty ||x||_1^2`. It bounds `x'Ax` for vectors of at
    most `cardinality` nonzeros: `upper_bound` is `dual + penalty * cardinality`.

    Attributes
    ----------
    relaxation : float
        Objective of the matrix found, in the units of the covariance. It is a lower bound of the optimum of
        the relaxation.
    dual : float
        An upper bound of that optimum, and so of the objective at every unit vector that is allowed.
    kept : ndarray of shape (m,), int
        The variables that were not eliminated beforehand, ascending.
    matrix : ndarray of shape (m, m)
        The matrix found, for the kept variables. All other entries are zero.

    Examples
    --------
    >>> import spcacore
    >>> A = spcacore.datasets.load_pitprops().correlation
    >>> component = spcacore.dspca(A, 4, kind="covariance")
    >>> component.value <= component.upper_bound, component.matrix.shape == (len(component.kept),) * 2
    (True, True)
    """

    relaxation: float
    dual: float
    kept: Index
    matrix: Array


@frozen_record(kw_only=True)
class ExactComponent(SparseComponent):
    """One sparse loading vector with a proof that it is optimal, or with the gap that is left.

    Attributes
    ----------
    optimal : bool
        True if no unit vector with as many nonzeros has a larger value, up to rounding. `gap` is then 0, and
        `upper_bound` exceeds `value` only by possible rounding errors.
    n_nodes : int
        Number of nodes of the search tree that were examined.

    Examples
    --------
    >>> import spcacore
    >>> A = spcacore.datasets.load_pitprops().correlation
    >>> component = spcacore.branch_and_bound(A, 4, kind="covariance")
    >>> component.optimal, component.gap
    (True, 0.0)
    """

    optimal: bool
    n_nodes: int

    @property
    def gap(self) -> float | None:
        """How far `value` may be below the optimum, as a proportion of the upper bound; 0 is a proof."""
        return 0.0 if self.optimal else super().gap

    def _facts(self) -> list[str]:
        state = "optimal" if self.optimal else f"within {100 * (self.gap or 0):.2g} % of the optimum"
        return [*self._found(), state, counted(self.n_nodes, "node")]
