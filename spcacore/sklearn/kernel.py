"""Kernel principal components, exact or on random features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, replace
from typing import Any, Literal, Self

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from .._labels import joined
from .._types import AnyArray, Array, MatrixLike, RandomState, Weights
from .._validation import column_names
from ..models.kernel import KernelPCAResult, kernel_pca
from ..models.random_features import RandomFeatures
from .base import as_rng, checked_input, estimator, options_of


@estimator
class KernelPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Kernel PCA: principal components of the data in the space that a kernel maps to.

    With `random_features`, the time grows with the number of samples, not with its square. The estimator
    calls `spcacore.kernel_pca`, which explains the parameters in full.

    Parameters
    ----------
    n_components : int, default 2
        At most n - 1, and at most the rank of the centered kernel matrix.
    kernel : {"rbf", "linear", "polynomial", "sigmoid", "precomputed"} or callable, default "rbf"
    bandwidth, degree, gamma, coef0, random_features, ridge, solver, memory_limit
        As in `kernel_pca`. `inverse_transform` needs a `ridge`.
    {random_state}

    Attributes
    ----------
    eigenvalues_ : ndarray of shape (r,)
        Eigenvalues of the centered kernel matrix, the largest first.
    explained_variance_ratio_ : ndarray of shape (r,) or None
        Eigenvalues as proportions of the trace of that matrix. None if the trace is unknown.
    n_components_ : int
    result_ : KernelPCAResult
    {features}

    References
    ----------
    B. Schoelkopf, A. Smola and K.-R. Mueller (1998). Nonlinear component analysis as a kernel eigenvalue
    problem. Neural Computation 10(5), 1299-1319. A. Rahimi and B. Recht (2007). Random features for
    large-scale kernel machines. Advances in Neural Information Processing Systems 20.

    Examples
    --------
    >>> from sklearn.datasets import make_circles
    >>> from spcacore.sklearn import KernelPCA
    >>> X, y = make_circles(200, factor=0.3, noise=0.05, random_state=0)
    >>> Z = KernelPCA(1, bandwidth=0.5).fit_transform(X)
    >>> bool(Z[y == 1].min() > Z[y == 0].max() or Z[y == 1].max() < Z[y == 0].min())
    True
    """

    n_components: int = 2
    _: KW_ONLY
    kernel: str | Callable[..., ArrayLike] = "rbf"
    bandwidth: float | None = None
    degree: int | None = None
    gamma: float | None = None
    coef0: float | None = None
    random_features: int | RandomFeatures | None = None
    ridge: float | None = None
    solver: Literal["lapack", "lanczos"] | None = None
    memory_limit: float | None = None
    random_state: RandomState = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.sparse = not tags.input_tags.pairwise
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def fit(self, X: MatrixLike, y: object = None, sample_weight: Weights = None) -> Self:
        """Find the components of X.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
            With ``kernel="precomputed"`` the kernel matrix, (n, n).
        y : ignored
        sample_weight : array-like of shape (n,), optional
            How many samples each row stands for, as in the function.

        Returns
        -------
        self

        {circles_example}
        >>> model.n_components_
        2
        """
        names, sample_weight = column_names(X), joined(X, sample_weight, "sample_weight")
        X = self._checked(X, least=2)
        result = kernel_pca(
            X, self.n_components, **options_of(self, kernel_pca), sample_weight=sample_weight,
            rng=as_rng(self.random_state),
        )  # fmt: skip
        self.result_: KernelPCAResult = replace(result, names=names if self.kernel != "precomputed" else None)
        self.n_components_: int = result.n_components
        self.eigenvalues_: Array = result.eigenvalues
        self.explained_variance_ratio_: Array | None = result.explained_variance_ratio
        return self

    def _checked(self, X: Any, **checks: Any) -> Any:
        return checked_input(self, X, **checks)

    def transform(self, X: MatrixLike) -> AnyArray:
        """Scores of the rows of X.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, p)
            With ``kernel="precomputed"`` the kernel between these rows and the training rows, (m, n).

        Returns
        -------
        ndarray of shape (m, r)

        {circles_example}
        >>> model.transform(X[:5]).shape
        (5, 2)
        """
        check_is_fitted(self)
        return self.result_.transform(self._checked(X, reset=False))

    def inverse_transform(self, X: ArrayLike) -> AnyArray:
        """Approximate pre-images: rows whose scores are near the given ones. This needs a `ridge`.

        {scores_to_rows}

        {circles_example}
        >>> model.inverse_transform(model.transform(X[:5])).shape
        (5, 2)
        """
        check_is_fitted(self)
        return self.result_.inverse_transform(X)
