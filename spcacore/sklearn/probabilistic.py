"""Probabilistic principal components."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from .._docstrings import filled
from .._limits import ESTIMATOR_ENTRIES
from .._records import record
from .._types import AnyArray, Array, Index, MatrixLike
from .._validation import is_row_blocks, is_sparse
from ..linalg.orthogonal import orthonormal
from ..linalg.scaling import beyond_range
from ..models.probabilistic import ppca
from ..operators.block_tasks import finite
from ..operators.partition import row_blocks
from ..operators.sparse import canonical_arrays
from ..operators.transform import products_of_scores
from .base import PARAGRAPHS, Invertible, WeightedBatches

__all__ = ["PPCA", "Density", "Likelihood"]


# ---- the likelihood of rows, given the span of the components -------------------------------------------
# What `score` of components is, and a grid search maximizes. The variance of new rows that components explain
# grows with every variable that they may use; their likelihood does not. Let U be an orthonormal basis of the
# span of the loadings, turned to where the scores of the training rows are uncorrelated with variances
# l_1 >= ... >= l_q. Among the normal distributions of covariance W W' + s2 I with W in this span, the
# likelihood of the training rows is largest for
#
#     W = U diag(l_j - s2)^(1/2),   s2 = (total variance - sum l_j)/(p - q),
#
# which is probabilistic PCA (Tipping and Bishop 1999) with the span given instead of estimated; directions
# with l_j below s2 are left to the noise. A new row y, less the mean, with t = U'y has the log-density
#
#     -1/2 (p log 2 pi + sum log l_j + (p - q) log s2 + sum t_j^2/l_j + ||y - U t||^2/s2).


@record
class Density:
    """The normal distribution above, of centered and scaled rows; U in the variables that it uses."""

    p: int
    used: Index
    U: Array
    along: Array
    noise: float
    mean: AnyArray | None
    scale: AnyArray | None

    @classmethod
    def of(
        cls, X: Any, V: AnyArray, mean: Any, scale: Any, total: float, sample_weight: Any = None
    ) -> Density:
        """The likeliest one for the rows of X in the span of V; total is their variance."""
        weight = None if sample_weight is None else np.asarray(sample_weight, np.float64)
        degrees = (
            max(getattr(X, "n_samples", X.shape[0]) - 1, 1) if weight is None else float(weight.sum()) - 1
        )

        def variances(Q: Array) -> Array:
            # SciPy would copy all entries of X to the precision of Q
            given = Q.astype(X.dtype) if is_sparse(X) and X.dtype.kind == "f" else Q
            return products_of_scores(X, given, mean, scale, weight) / degrees

        return cls.in_span(V, variances, mean, scale, total)

    @classmethod
    def in_span(
        cls,
        V: AnyArray,
        variances: Callable[[Array], Array],
        mean: Any,
        scale: Any,
        total: float,
    ) -> Density:
        """The likeliest one in the span of V, of rows with the covariances `variances(Q)` of their scores."""
        p = V.shape[0]
        used = np.flatnonzero(V.any(axis=1))
        Q = orthonormal(V[used])
        Q = Q[:, Q.any(axis=0)]
        full = np.zeros((p, Q.shape[1]))
        full[used] = Q
        with beyond_range():
            D = variances(full)
        if not np.isfinite(D).all():
            raise ValueError("the variances of the components exceed the number range; rescale X")
        values, vectors = np.linalg.eigh(D)
        values, vectors = np.maximum(values[::-1], 0), vectors[:, ::-1]
        rounding = 10 * p * float(np.finfo(V.dtype).eps)
        q, noise = len(values), 0.0
        while True:
            rest = total - float(values[:q].sum())
            noise = rest / (p - q) if q < p and rest > rounding * total else 0.0
            if q == 0 or values[q - 1] > noise:
                break
            q -= 1
        return cls(p, used, Q @ vectors[:, :q], values[:q], noise, mean, scale)

    def log_density(self, X: Any) -> Array:
        q = len(self.along)
        if self.noise == 0 and q < self.p:
            raise ValueError(
                "the covariance is singular, so there is no density: the components leave no noise; "
                "fit fewer of them"
            )
        if is_row_blocks(X):
            found: Array = row_blocks(X).mapped(_log_density, (), np.dtype(np.float64), self)
            return found
        parts = [self._squares(rows) for rows in self._rows(X)]
        square = np.concatenate([s for s, _ in parts])
        rest = np.concatenate([r for _, r in parts])
        determinant = float(np.log(self.along).sum())
        if q < self.p:
            determinant += (self.p - q) * math.log(self.noise)
            with beyond_range():
                square += rest / self.noise
        if self.scale is not None:
            determinant += 2 * float(np.log(self.scale.astype(np.float64)).sum())
        return -0.5 * (self.p * math.log(2 * math.pi) + determinant + square)

    def covariance(self) -> Array:
        C = np.zeros((self.p, self.p))
        C[np.ix_(self.used, self.used)] = (self.U * (self.along - self.noise)) @ self.U.T
        C[np.diag_indices(self.p)] += self.noise
        return C if self.scale is None else C * np.outer(self.scale, self.scale)

    def _rows(self, X: Any) -> Any:
        entries = self.p
        if is_sparse(X):
            X = canonical_arrays(X)[0].tocsr()
            entries = max(1, len(self.used), 4 * X.nnz // X.shape[0])
        step = max(1, ESTIMATOR_ENTRIES // entries)
        for start in range(0, X.shape[0], step):
            yield X[start : start + step]

    def _squares(self, rows: Any) -> tuple[Array, Array]:
        """`sum t_j^2/l_j` and `||y - U t||^2` of each row; only the variables in use have a part of U t."""
        sparse = is_sparse(rows)
        m = np.zeros(self.p) if self.mean is None else self.mean.astype(np.float64)
        s = np.ones(self.p) if self.scale is None else self.scale.astype(np.float64)
        Y = rows[:, self.used].toarray().astype(np.float64) if sparse else rows.astype(np.float64)
        columns = self.used if sparse else slice(None)
        Y -= m[columns]
        Y /= s[columns]
        near = Y if sparse else Y[:, self.used]
        t = near @ self.U
        left = near - t @ self.U.T
        with beyond_range():
            if sparse:  # elsewhere y is -m/s but for the entries stored
                rest = np.einsum("ij,ij->i", left, left) + self._unused(rows, m, s)
            else:
                Y[:, self.used] = left
                rest = np.einsum("ij,ij->i", Y, Y)
            return np.sum((t / np.sqrt(self.along)) ** 2, axis=1), rest

    def _unused(self, rows: Any, m: Array, s: Array) -> Array:
        """Squares of sparse rows in the variables that U does not use."""
        weight = np.ones(self.p)
        weight[self.used] = 0
        base = weight * (m / s) ** 2
        column = rows.indices
        row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
        entry = weight[column] * ((rows.data - m[column]) / s[column]) ** 2
        seen = np.bincount(row, entry, rows.shape[0])
        return seen + np.maximum(base.sum() - np.bincount(row, base[column], rows.shape[0]), 0)


def _log_density(block: Any, density: Density) -> Array:
    return density.log_density(finite(block))


@filled(PARAGRAPHS)
class Likelihood(Invertible):
    """`score` and `score_samples` of components."""

    _density: Density

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
        X = self._new(X)
        return self._density.log_density(X)

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
        return self._fit_all(X, sample_weight)

    def _least_rows(self, p: int) -> int:
        return self._rows_of_rank(p, self.n_components)

    def _fit_rows(self, X: Any, sample_weight: Any, names: Any, callback: Any = None) -> None:
        result = ppca(X, self.n_components, **self._options(X.shape[1]), sample_weight=sample_weight)
        self._set(replace(result, names=names))
        self.noise_variance_: float = result.noise_variance
        rest = (len(result.loadings) - self.n_components_) * self.noise_variance_
        total = float(self.explained_variance_.sum()) + rest
        if not 0 < total < math.inf:
            raise ValueError("the variances exceed the number range; rescale X")
        self.explained_variance_ratio_: Array = self.explained_variance_ / total

    def transform(self, X: MatrixLike) -> AnyArray:
        """Posterior means `(W'W + s2 I)^-1 W'(x - mean)` of z, from the observed entries of each row.

        {missing_to}
        ndarray of shape (m, r)

        {ppca_example}
        >>> model.transform(X[:5]).shape
        (5, 2)
        """
        X = self._new(X, finite=False)
        return self.result_.transform(X)

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
        length = np.sqrt(np.maximum(self.explained_variance_ - self.noise_variance_, 0))
        back = np.where(length > 0, self.explained_variance_ / np.where(length > 0, length, 1), 0)
        return self._rows((S * back.astype(S.dtype)) @ self.result_.directions.T)

    def score_samples(self, X: MatrixLike) -> Array:
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

    def get_covariance(self) -> AnyArray:
        """The covariance `W W' + s2 I` of the model.

        {covariance}

        {ppca_example}
        >>> C = model.get_covariance()
        >>> C.shape, bool(C.trace().round(6) == X.var(axis=0, ddof=1).sum().round(6))
        ((30, 30), True)
        """
        check_is_fitted(self)
        return self.result_.covariance()
