"""What the solvers return: frozen, picklable, made of arrays, numbers and names alone."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._docstrings import NO_PANDAS, filled
from ._labels import same_columns
from ._messages import counted
from ._types import MatrixLike
from ._validation import LARGEST, aligned, check_bool, framed, group_labels, integer, real_array
from .operators.problem import Screening
from .operators.transform import scores as scores_of

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = [
    "DSPCAComponent", "ExactComponent", "GreedyComponent", "LoadingsResult", "Named", "PMDComponent",
    "Readable", "SparseComponent", "check_names", "check_scores", "frame", "labels", "to_data_units",
]  # fmt: skip
__dir__ = __all__.copy

_ELSEWHERE = {  # what other packages call an attribute: where it is here
    "components": "loadings has the components, as columns",
    "components_": "loadings has the components, as columns",
    "rotation": "loadings has the components, as columns",
    "scores": "transform(X) or X, centered and scaled, times the loadings gives them",
    "x": "scores has those of the data, and transform(X) gives those of other rows",
    "sdev": "the roots of explained_variance are the standard deviations",
    "support": "the nonzeros of loadings, np.flatnonzero(result.loadings[:, t]), are the support",
    "singular_values_": "explained_variance has the variances",
    "eigenvalues": "explained_variance has the variances",
    "pev": "explained_variance_ratio has the shares",
    "bound": "upper_bound has the bound",
    "certificate": "upper_bound and gap have the certificate, with certify=True",
}


class Readable:
    """Loadings of named variables, to be read: as a summary, in a notebook, in percent."""

    names: tuple[str, ...] | None

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """An error that says where it is, of what a user of another package may look for."""
            plain = name[:-1] if name.endswith("_") and not name.startswith("_") else ""
            here = plain in getattr(type(self), "__dataclass_fields__", {}) or hasattr(type(self), plain)
            known = plain if plain and here else None
            hint = f"{known} has no underscore here" if known else _ELSEWHERE.get(name)
            message = f"{type(self).__name__!r} object has no attribute {name!r}"
            raise AttributeError(f"{message}: {hint}" if hint else message, name=name, obj=self)

    def _loadings(self) -> NDArray[Any]:
        """Of shape (p, r)."""
        raise NotImplementedError

    def contributions(self) -> NDArray[np.float64]:
        """The loadings in percent, with their signs. The magnitudes of each component add up to 100.

        Returns
        -------
        ndarray of shape (p, r)
            `100 v_jt / sum_j |v_jt|`; zeros where a component has no nonzero loading.

        Examples
        --------
        >>> import spcacore
        >>> props = spcacore.datasets.load_pitprops()
        >>> result = spcacore.sparse_pca(props.correlation, 2, cardinality=3, kind="covariance")
        >>> result.contributions()[:3].round(1)
        array([[34.9,  0. ],
               [35.5,  0. ],
               [ 0. ,  0. ]])
        """
        from . import _rendering

        return _rendering.percentages(self._loadings())

    def group_contributions(
        self, groups: Sequence[Hashable] | Mapping[str, Hashable], *, signed: bool = False
    ) -> dict[Hashable, NDArray[np.float64]]:
        """Contributions in percent, summed over groups of variables.

        Parameters
        ----------
        groups : sequence of p labels, or mapping of names to labels
            The group of each variable. A mapping must have the names of all variables.
        signed : bool, default False
            Add contributions with their signs. The default adds magnitudes, which add up to 100 for each
            component.

        Returns
        -------
        dict of ndarray of shape (r,)
            The sums of each group, in the order in which the groups first appear.

        Raises
        ------
        ValueError
            If the number of labels is not p, or a variable has no group.
        TypeError
            If `groups` is neither a sequence nor a mapping.

        Examples
        --------
        >>> import spcacore
        >>> props = spcacore.datasets.load_pitprops()
        >>> result = spcacore.sparse_pca(props.correlation, 2, cardinality=3, kind="covariance")
        >>> groups = ["size"] * 2 + ["wood"] * 5 + ["shape"] * 6
        >>> {group: share.round().tolist() for group, share in result.group_contributions(groups).items()}
        {'size': [70.0, 0.0], 'wood': [0.0, 71.0], 'shape': [30.0, 29.0]}
        """
        shares = self.contributions()
        labels_of = group_labels(groups, self.names, len(shares))
        shares = shares if check_bool(signed, "signed") else np.abs(shares)
        place: dict[Hashable, int] = {}
        index = [place.setdefault(label, len(place)) for label in labels_of]
        sums = np.zeros((len(place), shares.shape[1]))
        np.add.at(sums, index, shares)
        return {label: sums[i] for label, i in place.items()}

    def summary(self, n_variables: int = 5) -> str:
        """A short report of the components, as plain text.

        It has one line for each component: nonzeros, variance, share of the total, cumulative share, the
        cumulative share of ordinary principal components if it is known, and the upper bound and gap of a
        certificate. Below are the leading variables of each component, with their contributions in percent.

        Parameters
        ----------
        n_variables : int, default 5
            How many variables to list for each component, at most: those with the largest loadings.

        Returns
        -------
        str

        Examples
        --------
        >>> import spcacore
        >>> A = spcacore.datasets.load_pitprops().correlation
        >>> print(spcacore.sparse_pca(A, 2, cardinality=3, kind="covariance").summary())
        SparsePCAResult by tpower: 2 components of 13 variables, 36.0 % of the variance
        <BLANKLINE>
        component  nonzeros  variance     %  cumulative %  ordinary, cumulative %
        1                 3     2.475  19.0          19.0                    32.5
        2                 3     2.204  17.0          36.0                    50.7
        <BLANKLINE>
        contributions, % of the sum of magnitudes
        1: x2 35.5, x1 34.9, x9 29.6
        2: x7 38.4, x6 32.5, x10 29.1
        """
        from . import _rendering

        return _rendering.text_of(self, integer(n_variables, "n_variables", 0, LARGEST))

    def _repr_html_(self) -> str:
        """The same for notebooks, with loadings as a table."""
        from . import _rendering

        return _rendering.html_of(self)


@dataclass(frozen=True, eq=False, repr=False)
class SparseComponent(Readable):
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
    converged : bool
    method : str
    screening : Screening
        How much of the data was read.
    upper_bound : float or None
        No unit vector with as many nonzeros has a larger value. None if no bound was requested.
    names : tuple of str or None
        Names of the variables, if the input had any.

    Examples
    --------
    >>> import spcacore
    >>> A = spcacore.datasets.load_pitprops().correlation
    >>> component = spcacore.tpower(A, 4, kind="covariance")
    >>> component.cardinality, round(component.value, 2), component.loading.shape
    (4, 2.94, (13,))
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

    def _loadings(self) -> NDArray[Any]:
        return self.loading[:, None]

    def to_frame(self) -> DataFrame:
        """The loading as a pandas DataFrame of one column, see `SparsePCAResult.to_frame`.

        Examples
        --------
        >>> import spcacore
        >>> A = spcacore.datasets.load_pitprops().correlation
        >>> spcacore.tpower(A, 4, kind="covariance").to_frame().shape
        (13, 1)
        """
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
    >>> component = spcacore.pmd(X, l1_bound=2)
    >>> component.loading.shape, component.sample_loading.shape
    ((30,), (40,))
    """

    sample_loading: NDArray[Any] | None = None
    strength: float = 0.0


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
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

    With a penalty, the relaxation is that of `x'Ax - penalty ||x||_1^2`. It bounds `x'Ax` for vectors of at
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

    relaxation: float = 0.0
    dual: float = 0.0
    kept: NDArray[np.intp] = field(default_factory=lambda: np.zeros(0, np.intp))
    matrix: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 0)))


@dataclass(frozen=True, eq=False, repr=False)
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


def check_names(names: Any, p: int) -> tuple[str, ...]:
    """Names of p variables from any sequence."""
    if isinstance(names, (str, bytes)) or not hasattr(names, "__len__"):
        raise TypeError(f"names must be a sequence of {p} strings, not {names!r}")
    if len(names) != p:
        raise ValueError(f"names has {counted(len(names), 'entry')} for {counted(p, 'variable')}")
    return tuple(str(name) for name in names)


def frame(columns: dict[str, Any], index: Sequence[Any], index_name: str) -> Any:
    """A pandas DataFrame."""
    try:
        import pandas
    except ImportError:
        raise ImportError("to_frame() needs pandas: pip install pandas") from None
    return pandas.DataFrame(columns, index=pandas.Index(index, name=index_name))


def check_scores(scores: Any, n_components: int) -> NDArray[Any]:
    """Scores as an array with a column for each component."""
    scores = same_columns(scores, tuple(f"component_{t + 1}" for t in range(n_components)))
    S = real_array(scores, "scores", ndim=2, empty=n_components == 0)
    if S.shape[1] != n_components:
        raise ValueError(
            f"scores have {counted(S.shape[1], 'column')} for {counted(n_components, 'component')}"
        )
    return S


def to_data_units(X: NDArray[Any], mean: Any, scale: Any) -> NDArray[Any]:
    """X * scale + mean, in place: the inverse of centering and scaling."""
    if scale is not None:
        X *= scale
    if mean is not None:
        X += mean
    return X


@filled(
    {
        "no_pandas": NO_PANDAS,
    }
)
class Named(Readable):
    """A result with loadings of named variables."""

    loadings: NDArray[Any]

    def _loadings(self) -> NDArray[Any]:
        return self.loadings

    @property
    def n_components(self) -> int:
        """Number of components."""
        return self.loadings.shape[1]

    def to_frame(self) -> DataFrame:
        """The loadings as a pandas DataFrame, with the names of the variables.

        Returns
        -------
        pandas.DataFrame of shape (p, r)
            The index has the names, or x1, x2, ...; the columns are component_1, component_2, ...

        {no_pandas}

        Examples
        --------
        >>> import spcacore
        >>> A = spcacore.datasets.load_pitprops().correlation
        >>> result = spcacore.sparse_pca(A, 2, cardinality=3, kind="covariance")
        >>> result.to_frame()["component_1"].head(3).round(2).tolist()
        [0.6, 0.61, 0.0]
        """
        columns = {f"component_{t + 1}": v for t, v in enumerate(self.loadings.T)}
        return frame(columns, labels(self.names, len(self.loadings)), "variable")


class LoadingsResult(Named):
    """What any result with loadings, and the mean and scale of its data, can do."""

    mean: NDArray[Any] | None
    scale: NDArray[Any] | None

    def transform(self, X: MatrixLike) -> NDArray[Any]:
        """Scores `((X - mean) / scale) @ loadings` of the rows of X.

        A score is the weighted sum of the variables of a row. Loadings are used as they are, even if they are
        not orthogonal or not of unit length. Scores of different components may be correlated.

        Parameters
        ----------
        X : array-like, sparse matrix, dask array or `row_blocks` of shape (m, p)
            A result from a covariance has no mean; X is then only divided by `scale`. Named columns may come
            in any order.

        Returns
        -------
        ndarray of shape (m, r); for a dask array, a dask array; for a dataframe of pandas or polars, another
            A dataframe has the index of X, and columns component_1, component_2, ...

        Raises
        ------
        ValueError
            If the columns of a dataframe are not those of the fit.

        Examples
        --------
        >>> import numpy as np, spcacore
        >>> X, planted = spcacore.datasets.make_spiked(100, 50, cardinality=5, rng=0)
        >>> result = spcacore.sparse_pca(X[:80], 2, cardinality=5)
        >>> np.allclose(result.transform(X[80:]), (X[80:] - result.mean) @ result.loadings)
        True
        """
        X_ = aligned(X, self.names)
        return framed(X, scores_of(X_, self.loadings, self.mean, self.scale, self._row_weight(X_)))

    def reconstruct(self, scores: ArrayLike) -> NDArray[Any]:
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

    def inverse_transform(self, scores: ArrayLike) -> NDArray[Any]:
        """The same as `reconstruct`, under the name that scikit-learn uses."""
        return self.reconstruct(scores)

    def _row_weight(self, X: Any) -> NDArray[Any] | None:
        """What multiplies each row of X before it is centered."""
        return None

    def _rows_of_scores(self) -> NDArray[Any]:
        """A centered and scaled row for a score of 1 of each component, of shape (r, p)."""
        return np.linalg.pinv(self.loadings)
