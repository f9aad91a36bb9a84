"""Probabilistic principal components."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from .._docstrings import filled
from .._labels import joined
from .._types import Array, MatrixLike
from .._validation import column_names
from ..models.probabilistic import ppca
from .base import PARAGRAPHS
from .likelihood import Likelihood
from .running import WeightedBatches

__all__ = ["PPCA"]


@filled(PARAGRAPHS)
@dataclass(eq=False, repr=False)
class PPCA(WeightedBatches, Likelihood):
    """Probabilistic principal components by maximum likelihood, also with missing entries.

    Maximizes `sum_i log N(x_i; mu, W W' + s2 I)` over mu, W (p x r) and s2. If entries are missing (NaN), it
    maximizes the likelihood of the observed ones. The components are not sparse. The estimator calls
    `spcacore.ppca`, which explains the parameters in full.

    Parameters
    ----------
    n_components : int, default 2
        At most the rank of the centered data.
    max_iter, tol
        As in `ppca`.
    center : bool or array-like of shape (p,), default True
    scale : bool or array-like of shape (p,), default False
        First divide each variable by its standard deviation, or by these positive numbers.
    ddof
        As in `ppca`.

    Attributes
    ----------
    components_ : ndarray of shape (r, p)
        W': orthogonal rows of squared length `explained_variance_ - noise_variance_`. `result_.directions`
        has them at unit length.
    explained_variance_ : ndarray of shape (r,)
        Variance along each direction, including the noise.
    explained_variance_ratio_ : ndarray of shape (r,)
        The same as a proportion of the total variance of the model, `sum explained_variance_ + (p - r) s2`.
    noise_variance_ : float
        s2: the mean of all other eigenvalues. For n <= p, `PCA` of scikit-learn averages only those that are
        not 0; its value is therefore larger, and does not maximize the likelihood.
    mean_, scale_ : ndarray of shape (p,) or None
    n_components_ : int
    n_iter_ : int
        1 without missing entries: the solution then has a closed form.
    result_ : PPCAResult
        The full result, with the BIC, `sample`, and `impute` for missing entries.
    {features}

    References
    ----------
    M. E. Tipping and C. M. Bishop (1999). Probabilistic principal component analysis. Journal of the Royal
    Statistical Society B 61(3), 611-622, equations 7 and 8.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from spcacore.datasets import make_spiked
    >>> from spcacore.sklearn import PPCA
    >>> X, planted = make_spiked(200, 30, variances=(9, 6, 4), rng=0)
    >>> GridSearchCV(PPCA(), {"n_components": [1, 2, 3, 4, 8]}).fit(X).best_params_
    {'n_components': 3}

    >>> from sklearn.datasets import load_digits
    >>> GridSearchCV(PPCA(), {"n_components": [20, 50, 55]}).fit(load_digits().data).best_params_
    {'n_components': 50}
    """

    n_components: int = 2
    _: KW_ONLY
    max_iter: int = 1000
    tol: float = 1e-9
    center: bool = True
    scale: bool = False
    ddof: int = 1

    _function = staticmethod(ppca)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def fit(self, X: MatrixLike, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model to X.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
            Dense data may have NaN entries, missing at random.
        y : ignored
        sample_weight : array-like of shape (n,), optional
            How many samples each row stands for, as in the function.

        Returns
        -------
        self

        {ppca_example}
        >>> model.components_.shape
        (2, 30)
        """
        self._afresh()
        sample_weight = joined(X, sample_weight, "sample_weight")
        X, names = self._training(X), column_names(X)
        self._fit_rows(X, sample_weight, names)
        return self

    def _least_rows(self, p: int) -> int:
        return self._rows_of_rank(p, self.n_components)

    def _fit_rows(self, X: Any, sample_weight: Any, names: Any, callback: Any = None) -> None:
        result = ppca(X, self.n_components, **self._options(X.shape[1]), sample_weight=sample_weight)
        self._set(replace(result, names=names))
        self.mean_: NDArray[Any] | None = result.mean
        self.scale_: NDArray[Any] | None = result.scale
        self.explained_variance_: Array = result.explained_variance
        self.noise_variance_: float = result.noise_variance
        rest = (len(result.loadings) - self.n_components_) * self.noise_variance_
        total = float(self.explained_variance_.sum()) + rest
        if not 0 < total < math.inf:
            raise ValueError("the variances exceed the number range; rescale X")
        self.explained_variance_ratio_: Array = self.explained_variance_ / total

    def transform(self, X: MatrixLike) -> NDArray[Any]:
        """Posterior means `(W'W + s2 I)^-1 W'(x - mean)` of z, from the observed entries of each row.

        {missing_to}
        ndarray of shape (m, r)

        {ppca_example}
        >>> model.transform(X[:5]).shape
        (5, 2)
        """
        X = self._new(X, finite=False)
        return self.result_.transform(X)

    def inverse_transform(self, X: MatrixLike) -> NDArray[Any]:
        """Rows from their posterior means: `W (W'W)^-1 (W'W + s2 I) z + mean`.

        For the posterior means `transform(X)`, the rows are the projection of X onto the span of the
        components; `transform` turns these rows into the posterior means again.

        {scores_to_rows}

        {ppca_example}
        >>> model.inverse_transform(model.transform(X)).shape
        (100, 30)
        """
        check_is_fitted(self)
        S = self._scores(X)
        length = np.sqrt(np.maximum(self.explained_variance_ - self.noise_variance_, 0))
        back = np.where(length > 0, self.explained_variance_ / np.where(length > 0, length, 1), 0)
        return self._rows((S * back.astype(S.dtype)) @ self.result_.directions.T)

    def score_samples(self, X: MatrixLike) -> NDArray[np.float64]:
        """Log-density of the observed entries of each row.

        {missing_to}
        ndarray of shape (m,)

        Raises
        ------
        ValueError
            If the components leave no noise, so that the covariance is singular.

        {ppca_example}
        >>> model.score_samples(X[:5]).shape
        (5,)
        """
        X = self._new(X, finite=False)
        return self.result_.score_samples(X)

    def get_covariance(self) -> NDArray[Any]:
        """The covariance `W W' + s2 I` of the model.

        {covariance}

        {ppca_example}
        >>> C = model.get_covariance()
        >>> C.shape, bool(C.trace().round(6) == X.var(axis=0, ddof=1).sum().round(6))
        ((30, 30), True)
        """
        check_is_fitted(self)
        return self.result_.covariance()
