"""Results over several values of the sparsity."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from .._messages import counted
from .._types import Array, Index
from ..models.components import SparsePCAResult
from ..readable import Listing, Tabular

__all__ = ["ByValue", "SparsityPath"]


class ByValue(Tabular):
    """A result with something for each of several values of a parameter."""

    parameter: str
    values: NDArray[Any]

    def _table(self) -> Listing:
        return Listing(self.parameter, self._index(), self._columns())

    def _index(self) -> list[Any]:
        return self.values.tolist()

    def _columns(self) -> dict[str, Any]:
        raise NotImplementedError


@dataclass(frozen=True, eq=False, repr=False)
class SparsityPath(ByValue):
    """Sparse components for each of several values of their sparsity, from `sparsity_path`.

    It is a sequence: ``path[i]`` is the result of the model for the i-th value, of `sparse_pca` a
    `SparsePCAResult`.

    `to_frame()` has a row for each value: nonzeros and, if the total is known, explained_variance_ratio
    and index_of_sparseness.

    Attributes
    ----------
    parameter : str
        "cardinality", "l1_bound", "penalty", or a parameter of another estimator.
    values : ndarray of shape (m,)
        The values, from the sparsest to the densest: ascending, or descending for a penalty.
    explained_variance_ratio : ndarray of shape (m, r) or None
        Additional share of the variance of each component, as in `SparsePCAResult`; 0 where none was left.
        None where the total is unknown.
    cardinality : ndarray of shape (m, r), int
        The number of nonzeros of each loading.
    dense_ratio : ndarray of shape (r,) or None
        Shares of the variance of the first r ordinary principal components.
    index_of_sparseness : ndarray of shape (m,) or None
        `(share explained) (share of the ordinary components) (share of zeros among the loadings)`
        (Trendafilov 2014): it rewards both variance and zeros.
    results : tuple of m results of the model
        Of estimators of other packages, as by `from_loadings`.
    method, deflation, kind : str
    n_samples : int or None
    names : tuple of str or None
        Names of the variables, if the input had any.

    Examples
    --------
    >>> from functools import partial
    >>> import spcacore
    >>> X, planted = spcacore.datasets.make_spiked(100, 50, cardinality=5, rng=0)
    >>> path = spcacore.sparsity_path(X, partial(spcacore.sparse_pca, n_components=2), [2, 5, 10])
    >>> path.explained_variance_ratio.shape, path[1].cardinality.tolist()
    ((3, 2), [5, 5])
    """

    parameter: str
    values: NDArray[Any]
    explained_variance_ratio: NDArray[Any] | None
    cardinality: Index
    dense_ratio: Array | None
    index_of_sparseness: Array | None
    results: tuple[SparsePCAResult, ...]
    method: str
    deflation: str
    kind: str
    n_samples: int | None
    names: tuple[str, ...] | None

    @property
    def n_components(self) -> int:
        """Number of components."""
        return self.cardinality.shape[1]

    def __len__(self) -> int:
        return len(self.results)

    def __getitem__(self, i: int) -> SparsePCAResult:
        return self.results[i]

    def __iter__(self) -> Iterator[SparsePCAResult]:
        return iter(self.results)

    def _columns(self) -> dict[str, Any]:
        columns: dict[str, Any] = {"nonzeros": self.cardinality.sum(axis=1)}
        if self.explained_variance_ratio is not None:
            columns["explained_variance_ratio"] = self.explained_variance_ratio.sum(axis=1)
            columns["index_of_sparseness"] = self.index_of_sparseness
        return columns

    def _facts(self) -> list[str]:
        first, last = self.values[[0, -1]]
        facts = [
            f"method={self.method!r}", counted(self.n_components, "component"),
            f"{counted(len(self), 'value')} of {self.parameter} from {first:.6g} to {last:.6g}",
        ]  # fmt: skip
        if self.explained_variance_ratio is not None:
            low, high = 100 * self.explained_variance_ratio.sum(axis=1)[[0, -1]]
            facts.append(f"{low:.1f} to {high:.1f} % of the variance explained")
        return facts
