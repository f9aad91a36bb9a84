"""What the solvers return: frozen, picklable, made of arrays, numbers and names alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._messages import counted
from ._validation import aligned, framed, integer, real_array
from .operators.problem import Screening
from .operators.transform import scores as scores_of


@dataclass(frozen=True, eq=False, repr=False)
class SparseComponent:
    """One sparse loading vector and how it was obtained.

    Attributes
    ----------
    loading : ndarray of shape (p,)
        Unit 2-norm; the entry of largest magnitude is positive.
    value : float
        `x' A x`, in the units of the covariance.
    cardinality : int
        Number of nonzeros.
    n_iter : int
        Iterations of the start that won.
    converged : bool
    method : str
    screening : Screening
        How much of the data was read.
    upper_bound : float or None
        No unit vector with as many nonzeros has a larger value; None where no bound was asked for.
    names : tuple of str or None
        Names of the variables, when the input had any.
    """

    loading: NDArray[Any]
    value: float
    cardinality: int
    n_iter: int
    converged: bool
    method: str
    screening: Screening = field(default_factory=Screening)
    upper_bound: float | None = None
    names: tuple[str, ...] | None = None

    @property
    def gap(self) -> float | None:
        """How far `value` may be below the optimum, as a proportion of the upper bound; 0 is a proof."""
        if self.upper_bound is None:
            return None
        return max(0.0, 1 - self.value / self.upper_bound) if self.upper_bound > 0 else 0.0

    def to_frame(self) -> Any:
        """The loading as a pandas DataFrame of one column, as `SparsePCAResult.to_frame`."""
        return frame({"component_1": self.loading}, labels(self.names, len(self.loading)), "variable")

    def __repr__(self) -> str:
        state = "converged" if self.converged else "not converged"
        return (
            f"{type(self).__name__}(method={self.method!r}, p={self.loading.size}, "
            f"cardinality={self.cardinality}, value={self.value:.6g}, {state} in "
            f"{counted(self.n_iter, 'iteration')})"
        )


@dataclass(frozen=True, eq=False, repr=False)
class PMDComponent(SparseComponent):
    """A component with its left side, from `pmd`.

    Attributes
    ----------
    loading, value, cardinality, n_iter, converged, method, screening, names
        As in `SparseComponent`.
    sample_loading : ndarray of shape (n,) or None
        u, of unit 2-norm, or zero for data without any variance; None for a covariance.
    strength : float
        `d = u'Xv`, of the centered and scaled data in the units of X; for a covariance `sqrt(v'Av)`.
    """

    sample_loading: NDArray[Any] | None = None
    strength: float = 0.0


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class GreedyComponent(SparseComponent):
    """The component of the largest cardinality of a greedy search, with those of all smaller ones.

    Attributes
    ----------
    path_value : ndarray of shape (K,)
        The value `x' A x` reached at cardinality 1, ..., K.
    order : ndarray of shape (K,) or None
        The variables in the order in which they join: the first k are the support at cardinality k. None
        where a support does not contain the one before.
    path_index, path_loading : ndarray of shape (K (K + 1) / 2,)
        The variables (ascending) of each support and their loadings, one cardinality after another.
    """

    path_value: NDArray[Any]
    order: NDArray[np.intp] | None
    path_index: NDArray[np.intp]
    path_loading: NDArray[Any]

    def at(self, k: int) -> SparseComponent:
        """The component of cardinality k.

        Parameters
        ----------
        k : int
            In [1, K].

        Returns
        -------
        SparseComponent
        """
        k = integer(k, "k", 1, len(self.path_value))
        part = slice(k * (k - 1) // 2, k * (k + 1) // 2)
        loading = np.zeros_like(self.loading)
        loading[self.path_index[part]] = self.path_loading[part]
        return SparseComponent(
            loading, float(self.path_value[k - 1]), int(np.count_nonzero(loading)), self.n_iter,
            self.converged, self.method, self.screening, names=self.names,
        )  # fmt: skip

    def __repr__(self) -> str:
        return (
            f"GreedyComponent(method={self.method!r}, p={self.loading.size}, cardinality={self.cardinality}, "
            f"value={self.value:.6g}, with those of cardinality 1 to {len(self.path_value)})"
        )


@dataclass(frozen=True, eq=False, repr=False)
class DSPCAComponent(SparseComponent):
    """A sparse loading vector from the semidefinite relaxation, with the relaxation itself.

    What a relaxation of `x'Ax - penalty ||x||_1^2` proves of `x'Ax` depends on the cardinality: there
    `upper_bound` is `dual + penalty * cardinality`.

    Attributes
    ----------
    relaxation : float
        Objective of the matrix found, in the units of the covariance: a lower bound of the optimum of
        the relaxation.
    dual : float
        Upper bound of that optimum, hence of the objective at every unit vector that is allowed.
    kept : ndarray of shape (m,), int
        The variables that were not eliminated beforehand, ascending.
    matrix : ndarray of shape (m, m)
        The matrix found, of these variables; all others have zeros.
    """

    relaxation: float = 0.0
    dual: float = 0.0
    kept: NDArray[np.intp] = field(default_factory=lambda: np.zeros(0, np.intp))
    matrix: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 0)))


@dataclass(frozen=True, eq=False, repr=False)
class ExactComponent(SparseComponent):
    """One sparse loading vector with a proof, or as far as the proof got.

    Attributes
    ----------
    optimal : bool
        No unit vector with as many nonzeros has a larger value, but for rounding; `gap` is then 0, and
        `upper_bound` is above `value` by what rounding may hide.
    n_nodes : int
        Nodes of the search tree that were examined.
    """

    optimal: bool = False
    n_nodes: int = 0

    @property
    def gap(self) -> float | None:
        """How far `value` may be below the optimum, as a proportion of the upper bound; 0 is a proof."""
        return 0.0 if self.optimal else super().gap

    def __repr__(self) -> str:
        state = "optimal" if self.optimal else f"within {100 * (self.gap or 0):.2g} % of the optimum"
        return (
            f"ExactComponent(method={self.method!r}, p={self.loading.size}, cardinality={self.cardinality}, "
            f"value={self.value:.6g}, {state}, {counted(self.n_nodes, 'node')})"
        )


def labels(names: Sequence[str] | None, count: int) -> list[str]:
    """The names of `count` variables, x1, x2, ... where they have none."""
    return [f"x{j + 1}" for j in range(count)] if names is None else list(names)


def frame(columns: dict[str, Any], index: Sequence[Any], index_name: str) -> Any:
    """A pandas DataFrame."""
    try:
        import pandas
    except ImportError:
        raise ImportError("to_frame() needs pandas: pip install pandas") from None
    return pandas.DataFrame(columns, index=pandas.Index(index, name=index_name))


def check_scores(scores: Any, n_components: int) -> NDArray[Any]:
    """Scores as an array with a column for each component."""
    S = real_array(scores, "scores", ndim=2, empty=n_components == 0)
    if S.shape[1] != n_components:
        raise ValueError(
            f"scores have {counted(S.shape[1], 'column')} for {counted(n_components, 'component')}"
        )
    return S


def to_data_units(X: NDArray[Any], mean: Any, scale: Any) -> NDArray[Any]:
    """X * scale + mean, in place: the inverse of centring and scaling."""
    if scale is not None:
        X *= scale
    if mean is not None:
        X += mean
    return X


class Named:
    """A result with loadings of named variables."""

    loadings: NDArray[Any]
    names: tuple[str, ...] | None

    @property
    def n_components(self) -> int:
        """Number of components."""
        return self.loadings.shape[1]

    def to_frame(self) -> Any:
        """The loadings as a pandas DataFrame, with the names of the variables.

        Returns
        -------
        pandas.DataFrame of shape (p, r)
            The index has the names, or x1, x2, ...; the columns are component_1, component_2, ...

        Raises
        ------
        ImportError
            Without pandas.
        """
        columns = {f"component_{t + 1}": v for t, v in enumerate(self.loadings.T)}
        return frame(columns, labels(self.names, len(self.loadings)), "variable")


class LoadingsResult(Named):
    """What any result with loadings, and the mean and scale of its data, can do."""

    mean: NDArray[Any] | None
    scale: NDArray[Any] | None

    def transform(self, X: Any) -> NDArray[Any]:
        """Scores `((X - mean) / scale) @ loadings` of the rows of X.

        Parameters
        ----------
        X : array-like, sparse matrix, dask array or `row_blocks` of shape (m, p)
            For a result from a covariance, which knows no mean, X is used as it is. Columns with names are
            taken in the order of `names`.

        Returns
        -------
        ndarray of shape (m, r); of a dask array, a dask array; of a dataframe of pandas or polars, another
            With the index of X, and columns component_1, component_2, ...

        Raises
        ------
        ValueError
            Where the columns of a dataframe are not those of the fit.
        """
        return framed(X, scores_of(aligned(X, self.names), self.loadings, self.mean, self.scale))

    def reconstruct(self, scores: Any) -> NDArray[Any]:
        """Rows from their scores: the orthogonal projection of the data onto the span of the loadings.

        `scores @ inv(V'V) @ V' * scale + mean`, so that `reconstruct(transform(X))` is the best
        approximation of X by these components, although they need not be orthogonal.

        Parameters
        ----------
        scores : array-like of shape (m, r)

        Returns
        -------
        ndarray of shape (m, p)
        """
        S = check_scores(scores, self.n_components)
        return to_data_units(S @ np.linalg.pinv(self.loadings), self.mean, self.scale)
