"""Sparse components of a matrix, in turn or all at once, and components in the space of a kernel."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import KW_ONLY
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from .._asked import as_method
from .._labels import joined
from .._records import filled
from .._types import (
    AnyArray,
    Array,
    Bounded,
    Deflation,
    EigenSolver,
    MatrixLike,
    MethodName,
    RandomState,
    Rotation,
    Support,
    ThresholdRule,
    Weights,
)
from .._validation import column_names
from ..choice import Choice, Explained, Prior, Total
from ..methods import Method
from ..models.components import sparse_pca
from ..models.elastic_net import spca
from ..models.kernel import KernelPCAResult, kernel_pca
from ..models.probabilistic import PPCAResult
from ..models.random_features import RandomFeatures
from ..models.rotated import sca
from ..models.structured import oppca, soppca
from ..solvers.table import SOLVERS
from .base import PARAGRAPHS, Batches, Transformer, as_rng, estimator, with_seed
from .probabilistic import Likelihood, likeliest_in_span


@filled(PARAGRAPHS)
class Components(Batches, Likelihood):
    """An estimator of sparse components of a matrix."""

    n_components: float | None
    center: bool

    def _model_of(self, X: Any, sample_weight: Any) -> PPCAResult:
        result = self.result_
        treatment = result.mean, result.scale, result.total_variance
        return likeliest_in_span(X, result.loadings, *treatment, sample_weight)

    def _refuses_missing(self) -> bool:
        return True  # functions may leave NaN out, and `score` cannot

    def _count(self, n: int, p: int) -> Any:
        if self.n_components is not None:
            return self.n_components
        estimated = np.ndim(self.center) == 0 and bool(self.center)
        return max(1, min(n - estimated, p))


@estimator
class SparsePCA(Components):
    """Sparse principal components, one after another, each with few variables and large variance.

    Each component maximizes `x'Ax` subject to `||x|| = 1` and a limit on its nonzeros, where A is the
    covariance matrix from which the earlier components have been removed. The estimator calls
    `spcacore.sparse_pca`, which explains the parameters in full. Sparse X is centered implicitly and never
    made dense.

    Parameters
    ----------
    n_components : int, float or None, default 2
        In [1, min(n, p)], or a share of the variance between 0 and 1, as in `sparse_pca`. None: the largest
        possible number, `min(n - 1, p)` (without centering, `min(n, p)`).
    cardinality : int, sequence of ints, Explained or Total, optional
        How sparse the components are, as in `sparse_pca`. Default: the square root of the number of
        variables, rounded up. Methods with an l1 bound or a penalty have it in their record.
    method, choice, deflation, support, refine, certify
        As in `sparse_pca`.
    {center_scale}
    {random_state}

    Attributes
    ----------
    components_ : ndarray of shape (r, p)
        A row of unit length for each component. In each row the entry of largest magnitude is positive.
    explained_variance_ : ndarray of shape (r,)
        Additional variance of each component given the earlier ones. The sum is the variance of the
        projection onto the span of all components. With method "least_squares", it is the variance of all
        variables that a regression on the scores explains. See `spcacore.explained_variance`.
    explained_variance_ratio_ : ndarray of shape (r,)
        The same as a proportion of the total variance.
    {noise_variance}
    mean_, scale_ : ndarray of shape (p,) or None
    n_components_ : int
        Number of components found. If no variance is left, it is less than requested, with a RuntimeWarning.
    n_iter_ : int
        Largest number of iterations of a component.
    result_ : SparsePCAResult
        The full result: cardinalities, iterations of each component, bounds, and screening.
    {features}

    See Also
    --------
    SPCA, SCA : All components at once.

    References
    ----------
    X.-T. Yuan and T. Zhang (2013). Truncated power method for sparse eigenvalue problems. Journal of
    Machine Learning Research 14, 899-925. M. E. Tipping and C. M. Bishop (1999). Probabilistic principal
    component analysis. Journal of the Royal Statistical Society B 61(3), 611-622, equations 7 and 8: `score`.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from spcacore.datasets import make_spiked
    >>> from spcacore.sklearn import SparsePCA
    >>> X, planted = make_spiked(100, 200, cardinality=10, variances=(20, 10), rng=0)
    >>> search = GridSearchCV(SparsePCA(), {"cardinality": [3, 10, 30, 100]}).fit(X)
    >>> search.best_params_
    {'cardinality': 10}
    >>> search.best_estimator_.explained_variance_ratio_.round(3)
    array([0.092, 0.033])
    """

    n_components: float | None = 2
    cardinality: int | ArrayLike | Explained | Total | None = None
    _: KW_ONLY
    method: MethodName | Method = "tpower"
    choice: Choice | None = None
    deflation: Deflation | None = None
    support: Support = "free"
    refine: bool | int = False
    certify: bool | float | Bounded = False
    center: bool = True
    scale: bool = False
    random_state: RandomState = None

    _in_turn = True
    _function = staticmethod(sparse_pca)

    def _refuses_missing(self) -> bool:
        return SOLVERS[as_method(self.method).name].missing


@estimator
class SPCA(Components):
    """Sparse principal components as a regression, all at once.

    Minimizes `sum_i ||x_i - V B'x_i||^2 + ridge sum_j ||b_j||^2 + sum_j penalty_j ||b_j||_1` over B and
    V with `V'V = I`. The components are the columns of B at unit length. The estimator calls
    `spcacore.spca`, which explains the parameters in full.

    Parameters
    ----------
    {count}
    cardinality : int or sequence of ints, optional
        Nonzeros of each component. Default, without a penalty: the square root of the number of variables,
        rounded up.
    penalty : float or sequence of floats, optional
        Instead of `cardinality`: the penalty on the l1 norms.
    ridge, choice, refine, max_iter, tol
        As in `spca`.
    {center_scale}

    Attributes
    ----------
    components_ : ndarray of shape (r, p)
        Rows of unit length, or zero. In each row the entry of largest magnitude is positive.
    explained_variance_, explained_variance_ratio_ : ndarray of shape (r,)
        Additional variance of each component given the earlier ones, as in `SparsePCA`.
        `result_.adjusted_variance` has the variance as the paper defines it.
    {noise_variance}
    mean_, scale_ : ndarray of shape (p,) or None
    n_components_ : int
    n_iter_ : int
    result_ : SPCAResult
    {features}

    References
    ----------
    H. Zou, T. Hastie and R. Tibshirani (2006). Sparse principal component analysis. Journal of
    Computational and Graphical Statistics 15, 265-286, equation 3.12.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_wine
    >>> from spcacore.sklearn import SPCA
    >>> wine = load_wine(as_frame=True)
    >>> model = SPCA(cardinality=4, ridge=np.inf, scale=True).fit(wine.data)
    >>> model.feature_names_in_[model.components_[0] != 0].tolist()
    ['total_phenols', 'flavanoids', 'proanthocyanins', 'od280/od315_of_diluted_wines']
    >>> model.explained_variance_ratio_.round(2)
    array([0.24, 0.17])
    """

    n_components: int | None = 2
    cardinality: int | ArrayLike | None = None
    _: KW_ONLY
    penalty: float | ArrayLike | None = None
    ridge: float | None = None
    choice: Choice | None = None
    refine: bool = True
    max_iter: int = 1000
    tol: float | None = None
    center: bool = True
    scale: bool = False

    _function = staticmethod(spca)


@estimator
class SCA(Components):
    """Sparse component analysis: sparse loadings Y of a rotated basis, all at once.

    Maximizes `||Z'XY||_F` over scores Z with `Z'Z = I` and loadings Y with `sum |y_ij| <= l1_bound`. The
    estimator calls `spcacore.sca`, which explains the parameters in full.

    Parameters
    ----------
    {count}
    l1_bound : float, optional
        Bound on all loadings together, positive, at most `r sqrt(p)`. Default: `sqrt(p r)`.
    rotation : {"varimax", "l1", "none"}, default "varimax"
    threshold : {"soft", "hard"}, default "soft"
    start, max_iter, tol
        As in `sca`.
    {center_scale}

    Attributes
    ----------
    components_ : ndarray of shape (r, p)
        The loadings after thresholding, not of unit length, in order of the variance of their scores.
    explained_variance_, explained_variance_ratio_ : ndarray of shape (r,)
        Additional variance of each component given the earlier ones, as in `SparsePCA`.
    {noise_variance}
    mean_, scale_ : ndarray of shape (p,) or None
    n_components_ : int
    n_iter_ : int
    result_ : RotatedResult
    {features}

    See Also
    --------
    spcacore.sca : The function; it also scales graphs by degrees.

    References
    ----------
    F. Chen and K. Rohe (2020). A new basis for sparse principal component analysis. arXiv:2007.00596.

    Examples
    --------
    >>> from spcacore.datasets import make_spiked
    >>> from spcacore.sklearn import SCA
    >>> X, planted = make_spiked(100, 500, cardinality=10, rng=0)
    >>> model = SCA(l1_bound=6).fit(X)
    >>> [sorted(abs(y).argsort()[-10:].tolist()) for y in model.components_]
    [[0, 1, 2, 3, 4, 5, 6, 7, 8, 9], [10, 11, 12, 13, 14, 15, 16, 17, 18, 19]]

    >>> from sklearn.datasets import load_wine
    >>> wine = load_wine(as_frame=True)
    >>> model = SCA(l1_bound=2.5, scale=True).fit(wine.data)
    >>> model.feature_names_in_[model.components_[1] != 0].tolist()
    ['alcohol', 'ash', 'magnesium', 'color_intensity', 'hue', 'proline']
    """

    n_components: int | None = 2
    _: KW_ONLY
    l1_bound: float | None = None
    rotation: Rotation = "varimax"
    threshold: ThresholdRule = "soft"
    start: str | ArrayLike | None = None
    max_iter: int = 1000
    tol: float = 1e-5
    center: bool = True
    scale: bool = False

    _function = staticmethod(sca)

    def _count(self, n: int, p: int) -> Any:
        if isinstance(self.scale, str):
            raise TypeError(f"scale must be True or False, not {self.scale!r}")
        return super()._count(n, p)


# ---- probabilistic components with a prior on their loadings --------------------------------------------


@estimator
class StructuredPCA(Batches):
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
    random_state: RandomState = None

    _in_turn = _of_rank = True

    def _model_function(self, allowed: Collection[str]) -> Callable[..., Any]:
        if self.cardinality is not None or "oppca" not in allowed:
            return soppca
        if self.choice:
            raise ValueError("choice needs a cardinality, without which loadings are dense")
        return oppca

    def _seeded(self, seed: Any) -> dict[str, Any]:
        return {"prior": with_seed(self.prior or Prior(), seed)}

    def inverse_transform(self, X: MatrixLike) -> AnyArray:
        """Rows from their scores: sums of the posterior means, weighted by the scores.

        {scores_to_rows}

        {structured_example}
        >>> model.inverse_transform(model.transform(X)).shape
        (100, 30)
        """
        check_is_fitted(self)
        return self.result_.reconstruct(self._scores(X))


# ---- components in the space of a kernel ------------------------------------------------------------


@estimator
class KernelPCA(Transformer):
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
    solver: EigenSolver | None = None
    memory_limit: float | None = None
    random_state: RandomState = None

    _function = staticmethod(kernel_pca)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.sparse = not tags.input_tags.pairwise
        return tags

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
        X = self._training(X)
        self._fit_to(X, names=names if self.kernel != "precomputed" else None, sample_weight=sample_weight)
        return self

    def _refuses_missing(self) -> bool:
        return True

    def _seeded(self, seed: Any) -> dict[str, Any]:
        return {"rng": as_rng(seed)}

    def _set(self, result: Any) -> None:
        self.result_: KernelPCAResult = result
        self.n_components_: int = result.n_components
        self.eigenvalues_: Array = result.eigenvalues
        self.explained_variance_ratio_: Array | None = result.explained_variance_ratio

    def inverse_transform(self, X: ArrayLike) -> AnyArray:
        """Approximate pre-images: rows whose scores are near the given ones. This needs a `ridge`.

        {scores_to_rows}

        {circles_example}
        >>> model.inverse_transform(model.transform(X[:5])).shape
        (5, 2)
        """
        check_is_fitted(self)
        return self.result_.inverse_transform(X)
