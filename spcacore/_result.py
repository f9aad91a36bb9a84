"""What the solvers return: frozen, picklable, made of arrays, numbers and names alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._messages import counted


@dataclass(frozen=True)
class Progress:
    """What a `callback` is told.

    Attributes
    ----------
    component : int
        Index of the component under way, or just finished, from 0.
    n_components : int
    n_iter : int
        Iterations of the present start, or of the component once finished.
    value : float or None
        Its variance once finished; None while under way.

    Notes
    -----
    A callback that raises StopIteration ends the search early. It is not called again, and the call returns
    what was found so far:

    * of components found in turn (`sparse_pca`, `oppca`, `soppca`, `extend`) those that are finished, maybe
      none; of directions (`sparse_eigen`, `sparse_lda`) and pairs (`sparse_cca`) the first at least, from a
      search cut short, with ``converged=False``;
    * of one component, or several found together, the best point so far with ``converged=False``;
    * `sparsity_path`: the values that are finished; `sca_path`: all, those not reached by one iteration
      from the one before;
    * `select_sparsity`, `select_n_components`: the choice by the folds or permutations that are finished, and
      RuntimeError where they are fewer than two.

    Any other exception reaches the caller. StopIteration from an operator that is given as X is an error.
    """

    component: int
    n_components: int
    n_iter: int
    value: float | None = None


Callback = Callable[[Progress], object]


@dataclass(frozen=True)
class SelectionProgress:
    """What a `callback` of a path or a selection is told.

    Attributes
    ----------
    done, total : int
        Searches finished, and all that there will be.
    value : int or float
        The sparsity, or number of components, of the one just finished.
    """

    done: int
    total: int
    value: float


@dataclass(frozen=True)
class Screening:
    """How much of dense data a call has read.

    Attributes
    ----------
    mode : {"both", "shadow", "references", "none"}
        What screened the columns: an int8 shadow of X, the products with earlier directions, both, or
        nothing, so that every product read all of X.
    reads : float or None
        Bytes read of X and of its shadow, setting up included, over the bytes of X; None with "none".
    columns : int
        Exact products with a column of X.
    questions : int
        Products with X that the solver asked for; a plain loop reads X once for each.
    """

    mode: str = "none"
    reads: float | None = None
    columns: int = 0
    questions: int = 0


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
        How much of dense data was read.
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
    screening: Screening = Screening()
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
        `d = u'Xv`, of the centred and scaled data in the units of X; for a covariance `sqrt(v'Av)`.
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
        from ._input import integer

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


class Named:
    """What any result with loadings can do."""

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


class _Loadings(Named):
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
        from ._input import aligned, framed
        from ._operator import scores

        return framed(X, scores(aligned(X, self.names), self.loadings, self.mean, self.scale))

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
        from ._input import real_array

        V = self.loadings
        S = real_array(scores, "scores", ndim=2, empty=V.shape[1] == 0)
        if S.shape[1] != V.shape[1]:
            raise ValueError(
                f"scores have {counted(S.shape[1], 'column')} for {counted(V.shape[1], 'component')}"
            )
        X = S @ np.linalg.pinv(V)
        if self.scale is not None:
            X *= self.scale
        if self.mean is not None:
            X += self.mean
        return X


@dataclass(frozen=True, eq=False, repr=False)
class SparsePCAResult(_Loadings):
    """Sparse principal components, in the order in which they were found.

    Attributes
    ----------
    loadings : ndarray of shape (p, r)
        One unit column a component; in each, the entry of largest magnitude is positive.
    explained_variance : ndarray of shape (r,)
        Additional variance of each component given the earlier ones (`explained_variance`,
        definition "cumulative"); the sum is the variance explained together.
    explained_variance_ratio : ndarray of shape (r,) or None
        As a proportion of the total; None where the total is unknown (products alone).
    total_variance : float or None
        Trace of the covariance matrix.
    cardinality : ndarray of shape (r,), int
        Nonzeros of each loading.
    mean, scale : ndarray of shape (p,) or None
        Subtracted from, then divides, each column; None if not applied.
    n_iter : ndarray of shape (r,), int
    converged : ndarray of shape (r,), bool
    upper_bound : ndarray of shape (r,) or None
        With ``certify=True``: no loading of that cardinality has more variance in the deflated matrix.
    gap : ndarray of shape (r,) or None
        How far each component may be below that, as a proportion of the bound; 0 is a proof.
    method, deflation, kind : str
    n_samples : int or None
        None for a covariance.
    names : tuple of str or None
        Names of the variables, when the input had any.
    screening : Screening
        How much of dense data was read.
    options : dict
        The remaining options of the call, which `extend` repeats.
    """

    loadings: NDArray[Any]
    explained_variance: NDArray[Any]
    explained_variance_ratio: NDArray[Any] | None
    total_variance: float | None
    cardinality: NDArray[np.intp]
    mean: NDArray[Any] | None
    scale: NDArray[Any] | None
    n_iter: NDArray[np.intp]
    converged: NDArray[np.bool_]
    method: str
    deflation: str
    kind: str
    n_samples: int | None
    names: tuple[str, ...] | None
    screening: Screening
    options: dict[str, Any] = field(repr=False)
    upper_bound: NDArray[Any] | None = None
    gap: NDArray[Any] | None = None

    def extend(
        self,
        X: Any,
        more: int,
        *,
        cardinality: Any = None,
        l1_bound: Any = None,
        penalty: Any = None,
        callback: Callback | None = None,
    ) -> SparsePCAResult:
        """Add components without recomputing these; the same result as asking for all at once.

        Parameters
        ----------
        X : the matrix that this result was computed from
        more : int
            Number of components to add.
        cardinality, l1_bound, penalty : number or sequence of `more` numbers, optional
            What the method takes. Default: that of the call that made this result, if it was one number.
        callback : callable, optional
            As in `sparse_pca`.

        Returns
        -------
        SparsePCAResult
        """
        from .components import extend

        sparsity = {"cardinality": cardinality, "l1_bound": l1_bound, "penalty": penalty}
        return extend(self, X, more, sparsity, callback)

    def __repr__(self) -> str:
        r = self.n_components
        share = ""
        if self.explained_variance_ratio is not None:
            share = f", {100 * float(self.explained_variance_ratio.sum()):.1f} % of the variance explained"
        return (
            f"SparsePCAResult(method={self.method!r}, deflation={self.deflation!r}, p={len(self.loadings)}, "
            f"{counted(r, 'component')}, cardinality={self.cardinality.tolist()}{share})"
        )


@dataclass(frozen=True, eq=False, repr=False)
class SPCAResult(_Loadings):
    """Sparse principal components by elastic nets, from `spca`.

    Attributes
    ----------
    loadings : ndarray of shape (p, r)
        Columns of unit length, or zero; in each, the entry of largest magnitude is positive.
    explained_variance, explained_variance_ratio : ndarray of shape (r,)
        As in `SparsePCAResult`.
    adjusted_variance : ndarray of shape (r,)
        Variance that each score adds to the earlier scores (`explained_variance`, definition "adjusted").
    total_variance : float or None
    cardinality : ndarray of shape (r,), int
    penalty : ndarray of shape (r,)
        Of the l1 norms; where a number of variables was asked for, as it was found.
    ridge : float
    objective : ndarray of shape (n_iter,)
        After each iteration; without the constant `Tr X'X` where that is not known.
    mean, scale : ndarray of shape (p,) or None
    n_iter : int
    converged : bool
    method, kind : str
    n_samples : int or None
    names : tuple of str or None
    """

    loadings: NDArray[Any]
    explained_variance: NDArray[Any]
    explained_variance_ratio: NDArray[Any] | None
    adjusted_variance: NDArray[Any]
    total_variance: float | None
    cardinality: NDArray[np.intp]
    penalty: NDArray[np.float64]
    ridge: float
    objective: NDArray[np.float64]
    mean: NDArray[Any] | None
    scale: NDArray[Any] | None
    n_iter: int
    converged: bool
    method: str
    kind: str
    n_samples: int | None
    names: tuple[str, ...] | None

    def __repr__(self) -> str:
        p, r = self.loadings.shape
        share = ""
        if self.explained_variance_ratio is not None:
            share = f"{100 * float(self.explained_variance_ratio.sum()):.1f} % of the variance explained, "
        state = "converged" if self.converged else "not converged"
        return (
            f"SPCAResult(p={p}, {counted(r, 'component')}, cardinality={self.cardinality.tolist()}, "
            f"{share}{state} in "
            f"{counted(self.n_iter, 'iteration')})"
        )


@dataclass(frozen=True, eq=False, repr=False)
class RotatedResult(Named):
    """Sparse loadings of a rotated basis, from `sca` or `sma`.

    Attributes
    ----------
    loadings : ndarray of shape (p, r)
        As they were shrunk: columns are not of unit length.
    scores : ndarray of shape (n, r) or None
        Of `sca`: the centred and scaled data times the loadings; None for a covariance. Of `sma`: Z, sparse.
    pve : ndarray of shape (r,)
        Cumulative proportion of the variance that the loadings explain.
    n_iter : int
    converged : bool
    method : {"sca", "sma"}
    names : tuple of str or None
        Names of the variables, when the input had any.
    middle : ndarray of shape (r, r) or None
        Of `sma`: B = Z'XY.
    mean, scale : ndarray of shape (p,) or None
        Subtracted from, then divides, each column; None if not applied.
    total_variance : float
        Trace of the covariance matrix of what the loadings multiply.
    """

    loadings: NDArray[Any]
    scores: NDArray[Any] | None
    pve: NDArray[np.float64]
    n_iter: int
    converged: bool
    method: str
    names: tuple[str, ...] | None
    middle: NDArray[np.float64] | None = None
    mean: NDArray[Any] | None = None
    scale: NDArray[Any] | None = None
    total_variance: float = 0.0

    def __repr__(self) -> str:
        p, r = self.loadings.shape
        state = "converged" if self.converged else "not converged"
        return (
            f"RotatedResult(method={self.method!r}, p={p}, {counted(r, 'component')}, "
            f"nonzeros={np.count_nonzero(self.loadings, axis=0).tolist()}, "
            f"{100 * float(self.pve[-1]):.1f} % of the variance explained, {state} in "
            f"{counted(self.n_iter, 'iteration')})"
        )
