"""Probabilistic components with a prior on their loadings."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from .._docstrings import filled
from .._labels import joined
from .._types import Array, MatrixLike, Weights
from .._validation import column_names
from ..choice import Choice, Prior
from ..models.structured import StructuredPCAResult, oppca, soppca
from .base import PARAGRAPHS, Invertible, as_rng
from .callbacks import CallbackSupportMixin, fit_tasks, with_callbacks
from .running import Batches

__all__ = ["StructuredPCA"]


@filled(PARAGRAPHS)
@dataclass(eq=False, repr=False)
class StructuredPCA(CallbackSupportMixin, Batches, Invertible):
    """Probabilistic components with a prior on their loadings, one at a time, dense or sparse.

    The prior says which variables belong together, such as neighbors in a graph or an image, or groups. The
    estimator calls `spcacore.soppca` or, without a cardinality, `spcacore.oppca`, which explain the
    parameters in full.

    Parameters
    ----------
    n_components : int, default 2
        At most the rank of the centered data.
    cardinality : int or sequence of ints, optional
        Nonzeros of each loading. Default: loadings are dense.
    prior : Prior, optional
        As in `soppca`. The default is the identity.
    choice : Choice, optional
        As in `soppca`; it needs a cardinality.
    deflation, max_iter, tol
        As in `soppca`, or without a cardinality as in `oppca`.
    center : bool, default True
        Subtract the means of the variables.
    scale : bool, default False
        Divide each variable by its standard deviation.
    {random_state}

    Attributes
    ----------
    components_ : ndarray of shape (r, p)
        The posterior means at unit length. In each the entry of largest magnitude is positive.
    explained_variance_, explained_variance_ratio_ : ndarray of shape (r,)
        Additional variance of each component given the earlier ones.
    noise_variance_ : float
    mean_, scale_ : ndarray of shape (p,) or None
    n_components_ : int
    n_iter_ : int
        Largest number of iterations of a component.
    result_ : StructuredPCAResult
    {features}

    See Also
    --------
    SparsePCA : Sparse components without a prior.

    Examples
    --------
    Neighboring pixels of handwritten digits belong together:

    >>> from sklearn.datasets import load_digits
    >>> import spcacore
    >>> from spcacore.sklearn import StructuredPCA
    >>> prior = spcacore.Prior(precision=spcacore.grid_laplacian((8, 8)))
    >>> model = StructuredPCA(2, cardinality=20, prior=prior).fit(load_digits().data)
    >>> (model.components_ != 0).sum(axis=1).tolist()
    [20, 20]
    """

    n_components: int = 2
    cardinality: int | ArrayLike | None = None
    _: KW_ONLY
    prior: Prior | None = None
    choice: Choice | None = None
    deflation: Literal["orthogonal", "naive", "constrained", "joint"] = "orthogonal"
    max_iter: int = 500
    tol: float | None = None
    center: bool = True
    scale: bool = False
    random_state: int | np.random.Generator | np.random.RandomState | None = None

    @with_callbacks
    def fit(self, X: MatrixLike, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Find the components of X.

        {fit}

        {structured_example}
        >>> model.components_.shape
        (2, 30)
        """
        self._afresh()
        names, sample_weight = column_names(X), joined(X, sample_weight, "sample_weight")
        X = self._training(X)
        tasks = fit_tasks(self, X, self.n_components)
        self._fit_rows(X, sample_weight, names, tasks)
        if tasks is not None:
            tasks.close()
        return self

    def _fit_rows(self, X: Any, sample_weight: Any, names: Any, callback: Any = None) -> None:
        result = self._model(X, sample_weight, callback)
        self._set(replace(result, names=names))
        self.mean_: NDArray[Any] | None = result.mean
        self.scale_: NDArray[Any] | None = result.scale
        self.explained_variance_: Array = result.explained_variance
        self.explained_variance_ratio_: Array = result.explained_variance_ratio
        self.noise_variance_: float = result.noise_variance

    def partial_fit(self, X: MatrixLike, y: object = None, sample_weight: Weights = None) -> Self:
        """Fit to these rows together with the rows of earlier calls.

        {batches}

        {fit}

        {no_matrix_of_part}

        {structured_example}
        >>> parts = StructuredPCA(2).partial_fit(X[:60]).partial_fit(X[60:])
        >>> bool(abs(parts.components_ - model.components_).max() < 1e-3)
        True
        """
        return self._take(X, sample_weight)

    def _model_function(self, allowed: Collection[str]) -> Callable[..., Any]:
        return oppca if self.cardinality is None and "oppca" in allowed else soppca

    def _least_rows(self, p: int) -> int:
        return self._rows_of_rank(p, self.n_components)

    def _model(self, X: Any, sample_weight: Any, callback: Any) -> StructuredPCAResult:
        options = self._by_place(
            X.shape[1], prior=self._prior(), center=self.center, scale=self.scale,
        ) | {
            "deflation": self.deflation, "max_iter": self.max_iter, "tol": self.tol,
            "sample_weight": sample_weight, "callback": callback,
        }  # fmt: skip
        if self.cardinality is None:
            if self.choice:
                raise ValueError("choice needs a cardinality, without which loadings are dense")
            return oppca(X, self.n_components, **options)
        choice = self._choice_by_place(X.shape[1])
        return soppca(X, self.n_components, self.cardinality, choice=choice, **options)

    def _seeded(self, seed: Any) -> dict[str, Any]:
        return {"prior": self._prior()}

    def _prior(self) -> Any:
        """With random numbers of the estimator, where it has none of its own."""
        if self.random_state is None or (self.prior is not None and self.prior.rng is not None):
            return self.prior
        return replace(Prior() if self.prior is None else self.prior, rng=as_rng(self.random_state))

    def transform(self, X: MatrixLike) -> NDArray[Any]:
        """Scores of the rows of X, as `StructuredPCAResult.transform` gives them.

        {rows_to}
        ndarray of shape (m, r)

        {structured_example}
        >>> scores = model.transform(X)
        >>> scores.shape
        (100, 2)
        """
        X = self._new(X)
        return self.result_.transform(X)

    def inverse_transform(self, X: MatrixLike) -> NDArray[Any]:
        """Rows from their scores: sums of the posterior means, weighted by the scores.

        {scores_to_rows}

        {structured_example}
        >>> model.inverse_transform(model.transform(X)).shape
        (100, 30)
        """
        check_is_fitted(self)
        return self.result_.reconstruct(self._scores(X))
