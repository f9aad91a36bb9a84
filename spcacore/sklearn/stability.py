"""Variables that resamples choose again, as a selector."""

from __future__ import annotations

from dataclasses import KW_ONLY
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted

from .._types import AnyArray, Array, Assumption, Index, Mask, MatrixLike, ModelLike, RandomState, Resampling
from .._validation import as_dense, default_cardinality, float_type, is_row_blocks
from ..models.components import sparse_pca
from ..operators.blocks import as_kernel_input
from ..selection.model import NamedArray, takes_model
from ..selection.stability_result import Stability
from ..selection.stable_variables import RESAMPLED, stability
from .base import TakesSparse, as_rng, checked_input, estimator, names_seen, options_of


@estimator
class StabilitySelector(SelectorMixin, TakesSparse):
    """Keep the variables that sparse components of many resamples choose again and again.

    A variable is kept if it is stable in at least one component. The estimator calls `spcacore.stability`
    which explains the parameters and cites the papers.

    Parameters
    ----------
    model : estimator, function or functools.partial, optional
        What is fitted to resamples, as in `stability`: an estimator such as ``SparsePCA(2, cardinality=10)``,
        or a partial of a function. Not what needs a second matrix or labels. Default: one component of
        `sparse_pca`, whose cardinality is the square root of the number of variables, rounded up.
    resampling : {"complementary", "half", "bootstrap"}, default "complementary"
    n_resamples : int, default 100
    threshold : float, optional
        In (0, 1]. A variable is stable if its frequency is at least this. Default: the smallest threshold for
        which the bound on the expected number of false variables is at most `max_false`.
    max_false : float, default 1
    assumption : {"none", "unimodal"}, optional
        What the bound assumes about the frequencies of false variables.
    n_jobs : int, default 1
    {random_state}

    Attributes
    ----------
    frequencies_ : ndarray of shape (p,)
        The share of the resamples in which a variable is in at least one component.
    selection_frequencies_ : ndarray of shape (p, r)
        The same for each component.
    result_ : spcacore.Stability
    {features}

    Examples
    --------
    >>> from spcacore.datasets import make_spiked
    >>> from spcacore.sklearn import SparsePCA, StabilitySelector
    >>> X, planted = make_spiked(100, 200, cardinality=10, variances=(9,), rng=0)
    >>> selector = StabilitySelector(SparsePCA(1, cardinality=12), n_resamples=50).fit(X)
    >>> selector.get_support(indices=True).tolist()
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    """

    model: ModelLike | None = None
    _: KW_ONLY
    resampling: Resampling = "complementary"
    n_resamples: int = 100
    threshold: float | None = None
    max_false: float = 1.0
    assumption: Assumption | None = None
    n_jobs: int = 1
    random_state: RandomState = None

    def fit(self, X: MatrixLike, y: object = None) -> Self:
        """Find the variables of X that are stable.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
        y : ignored

        Returns
        -------
        self

        Examples
        --------
        >>> from spcacore.datasets import make_spiked
        >>> from spcacore.sklearn import SparsePCA, StabilitySelector
        >>> X, planted = make_spiked(100, 40, cardinality=5, variances=(9,), rng=0)
        >>> StabilitySelector(SparsePCA(1, cardinality=5), n_resamples=20).fit(X).transform(X).shape
        (100, 5)
        """
        rows = checked_input(self, X, least=4)
        names = names_seen(self)
        if names is not None and isinstance(rows, np.ndarray):
            rows = NamedArray(rows, names)
        model = self.model
        if model is None:
            model = partial(sparse_pca, cardinality=default_cardinality(rows.shape[1]))
        self.result_: Stability = stability(
            rows, **options_of(self, stability) | {"model": model}, rng=as_rng(self.random_state)
        )
        self.frequencies_: Array = self.result_.any_frequency
        self.selection_frequencies_: Array | None = self.result_.selection_frequency
        return self

    def transform(self, X: MatrixLike) -> AnyArray:
        """The columns of X that are stable.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, p)

        Returns
        -------
        array-like of shape (m, number of stable variables)
            A dask array, not yet computed, of a dask array.

        Examples
        --------
        >>> from spcacore.datasets import make_spiked
        >>> from spcacore.sklearn import SparsePCA, StabilitySelector
        >>> X, planted = make_spiked(100, 40, cardinality=5, variances=(9,), rng=0)
        >>> selector = StabilitySelector(SparsePCA(1, cardinality=5), n_resamples=20).fit(X)
        >>> selector.transform(X[:3]).shape
        (3, 5)
        """
        some: AnyArray
        if not is_row_blocks(X):
            some = super().transform(X)
            return some
        rows, index = checked_input(self, X, reset=False), np.flatnonzero(self.get_support())
        some = rows.mapped(_some_columns, (len(index),), float_type(rows.dtype), index)
        return some

    def _get_support_mask(self) -> Mask:
        """Return which variables are stable."""
        check_is_fitted(self)
        return np.logical_or.reduce(self.result_.stable, axis=1)


def _some_columns(block: Any, index: Index) -> AnyArray:
    return np.asarray(as_dense(as_kernel_input(block)[:, index]))


_advised = takes_model(*RESAMPLED)
StabilitySelector.__init__ = _advised(StabilitySelector.__init__)  # type: ignore[method-assign]
