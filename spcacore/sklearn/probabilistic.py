"""Probabilistic principal components."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._limits import ROUNDING_LEFT
from .._records import filled
from .._types import AnyArray, Array, MatrixLike
from .._validation import is_sparse
from ..linalg.orthogonal import orthonormal
from ..linalg.scaling import beyond_range, divisor, roots
from ..models.probabilistic import PPCAResult, ppca
from ..operators.transform import products_of_scores
from ..results import to_data_units
from .base import PARAGRAPHS, Batches, Invertible, estimator

# ---- the likelihood of rows, given the span of the components -------------------------------------------
# This is the `score` of components, which a grid search maximizes. The variance of new rows that components
# explain grows with every variable that they may use; their likelihood does not. Let U be an orthonormal
# basis of the span of the loadings, turned so that the scores of the training rows are uncorrelated, with
# variances l_1 >= ... >= l_q. Among the normal distributions of covariance W W' + s2 I with W in this span,
# the likelihood of the training rows is largest for
#
#     W = U diag(l_j - s2)^(1/2),   s2 = (total variance - sum l_j)/(p - q),
#
# which is probabilistic PCA (Tipping and Bishop 1999) with the span given instead of estimated. Directions
# with l_j below s2 are left to the noise.


def likeliest_in_span(
    X: Any, V: AnyArray, mean: Any, scale: Any, total: float, sample_weight: Any = None
) -> PPCAResult:
    """Return the probabilistic model of the rows of X with components in the span of V.

    `total` is the total variance of X.
    """
    weight = None if sample_weight is None else np.asarray(sample_weight, np.float64)
    n = getattr(X, "n_samples", X.shape[0]) if weight is None else float(weight.sum())
    p = V.shape[0]
    Q = orthonormal(V)
    Q = Q[:, Q.any(axis=0)]
    # SciPy would copy all entries of X to the precision of Q
    given = Q.astype(X.dtype) if is_sparse(X) and X.dtype.kind == "f" else Q
    with beyond_range():
        D = products_of_scores(X, given, mean, scale, weight) / (max(n - 1, 1) if weight is None else n - 1)
    if not np.isfinite(D).all():
        raise ValueError("the variances of the components exceed the number range; rescale X")
    values, vectors = np.linalg.eigh(D)
    values, vectors = np.maximum(values[::-1], 0), vectors[:, ::-1]
    size = np.arange(len(values) + 1)  # how many directions are left to the model
    rest = total - np.append(0, np.cumsum(values))
    rest[(size == p) | (rest <= ROUNDING_LEFT.of(V.dtype) * total)] = 0
    level = rest / np.maximum(p - size, 1)
    q = int(np.flatnonzero(np.append(np.inf, values) > level)[-1])
    noise = float(level[q])
    W = Q @ vectors[:, :q] * np.sqrt(values[:q] - noise)
    none = np.zeros(0)
    return PPCAResult(
        W, noise, mean, scale, values[:q], None, None, 0, none, 0, True, None, None, "given span"
    )  # fmt: skip


@filled(PARAGRAPHS)
class Likelihood(Invertible):
    """Adds `score` and `score_samples` to components, by a probabilistic model."""

    _density: PPCAResult

    def score_samples(self, X: MatrixLike) -> Array:
        """Log-density of each row of X in the model of the components and noise.

        The model has covariance `W W' + s2 I`, with W in the span of the components. W and s2 are fitted to
        the training data. With ``scale=True`` this is the covariance of the scaled variables.

        {rows_to}
        ndarray of shape (m,)

        Raises
        ------
        ValueError
            If the components leave no noise, so that the covariance is singular.

        {spca_example}
        >>> model.score_samples(X[:5]).shape
        (5,)
        """
        X = self._new(X)  # first: it says that the estimator is not fitted
        return self._density.score_samples(X)

    def score(self, X: MatrixLike, y: object = None) -> float:
        """Mean log-density of the rows of X, see `score_samples`.

        For held-out rows, it is largest near the right number of variables. Components with too few variables
        leave variance to the noise; components with too many overfit the training rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, p)
        y : ignored

        Returns
        -------
        float

        {spca_example}
        >>> bool(model.score(X) > SparsePCA(1).fit(X).score(X))
        True
        """
        return float(np.mean(self.score_samples(X)))

    def get_covariance(self) -> AnyArray:
        """The covariance of the model that `score` uses.

        {covariance}

        {spca_example}
        >>> model.get_covariance().shape
        (30, 30)
        """
        check_is_fitted(self)
        return self._density.covariance()


@estimator
class PPCA(Batches, Likelihood):
    """Probabilistic principal components by maximum likelihood, also with missing entries.

    Maximizes `sum_i log N(x_i; mu, W W' + s2 I)` over mu, W (p x r) and s2. If entries are missing (NaN), it
    maximizes the likelihood of the observed ones; they must be missing at random, of dense data. The
    components are not sparse. The estimator calls `spcacore.ppca`, which explains the parameters in full.

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

    _takes_missing = _of_rank = True
    _function = staticmethod(ppca)

    def _fit_rows(self, X: Any, sample_weight: Any, names: Any, callback: Any = None) -> None:
        super()._fit_rows(X, sample_weight, names, callback)
        rest = (len(self.result_.loadings) - self.n_components_) * self.noise_variance_
        total = float(self.explained_variance_.sum()) + rest
        if not 0 < total < math.inf:
            raise ValueError("the variances exceed the number range; rescale X")
        self.explained_variance_ratio_ = self.explained_variance_ / total

    def inverse_transform(self, X: MatrixLike) -> AnyArray:
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
        length = roots(self.explained_variance_ - self.noise_variance_)
        back = np.where(length > 0, self.explained_variance_ / divisor(length), 0)
        rows: AnyArray = (S * back.astype(S.dtype)) @ self.result_.directions.T
        return to_data_units(rows, self.mean_, self.scale_)
