"""scikit-learn estimators of the functions of this package.

What `score` of components is, and a grid search maximizes. The variance of new rows that components explain
grows with every variable that they may use; their likelihood does not. Let U be an orthonormal basis of the
span of the loadings, turned to where the scores of the training rows are uncorrelated with variances
l_1 >= ... >= l_q. Among the normal distributions of covariance W W' + s2 I with W in this span, the
likelihood of the training rows is largest for

    W = U diag(l_j - s2)^(1/2),   s2 = (total variance - sum l_j)/(p - q),

which is probabilistic PCA (Tipping and Bishop 1999) with the span given instead of found; directions with l_j
below s2 are left to the noise. A new row y, less the mean, with t = U'y has the log-density

    -1/2 (p log 2 pi + sum log l_j + (p - q) log s2 + sum t_j^2/l_j + ||y - U t||^2/s2).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_array
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from .._limits import ESTIMATOR_ENTRIES
from .._messages import counted
from .._validation import column_names, is_sparse, real_array
from ..generalized.cca import sparse_cca
from ..generalized.lda import sparse_lda
from ..linalg.orthogonal import orthonormal
from ..models.components import sparse_pca
from ..models.elastic_net import spca
from ..models.probabilistic import ppca
from ..models.rotated import sca
from ..operators.sparse_format import canonical_arrays
from ..operators.transform import scores
from ..solvers.table import METHODS

__all__ = ["PPCA", "SCA", "SPCA", "SparseCCA", "SparseLDA", "SparsePCA"]
_LOG_2PI = math.log(2 * math.pi)


def _few(p: int) -> int:
    """Nonzeros where no number is given: the root of the number of variables, rounded up."""
    return math.isqrt(p - 1) + 1


def _rng(random_state: Any) -> Any:
    """As the functions take it: None is a fixed seed, and a RandomState gives a number."""
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    return random_state


# ---- the likelihood of rows, given a span -----------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class _Density:
    """The normal distribution above, of centred and scaled rows; U in the variables that it uses."""

    p: int
    used: NDArray[np.intp]
    U: NDArray[np.float64]
    along: NDArray[np.float64]
    noise: float
    mean: NDArray[Any] | None
    scale: NDArray[Any] | None

    @classmethod
    def of(
        cls, X: Any, V: NDArray[Any], mean: Any, scale: Any, total: float, sample_weight: Any = None
    ) -> _Density:
        """The likeliest one for the rows of X in the span of V; total is their variance."""
        p = V.shape[0]
        weight = None if sample_weight is None else np.asarray(sample_weight, np.float64)
        degrees = max(X.shape[0] - 1, 1) if weight is None else float(weight.sum()) - 1
        used = np.flatnonzero(V.any(axis=1))
        Q = orthonormal(V[used])
        Q = Q[:, Q.any(axis=0)]
        full = np.zeros((p, Q.shape[1]))
        full[used] = Q
        T = scores(X, full, mean, scale)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            D = T.T @ (T if weight is None else T * weight[:, None]) / degrees
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

    def log_density(self, X: Any) -> NDArray[np.float64]:
        q = len(self.along)
        if self.noise == 0 and q < self.p:
            raise ValueError(
                "the covariance is singular, so there is no density: the components leave no noise; "
                "fit fewer of them"
            )
        parts = [self._squares(rows) for rows in self._rows(X)]
        square = np.concatenate([s for s, _ in parts])
        rest = np.concatenate([r for _, r in parts])
        determinant = float(np.log(self.along).sum())
        if q < self.p:
            determinant += (self.p - q) * math.log(self.noise)
            with np.errstate(over="ignore", under="ignore"):
                square += rest / self.noise
        if self.scale is not None:
            determinant += 2 * float(np.log(self.scale.astype(np.float64)).sum())
        return -0.5 * (self.p * _LOG_2PI + determinant + square)

    def covariance(self) -> NDArray[np.float64]:
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

    def _squares(self, rows: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
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
        with np.errstate(over="ignore", under="ignore"):
            if sparse:  # elsewhere y is -m/s but for the entries stored
                rest = np.einsum("ij,ij->i", left, left) + self._unused(rows, m, s)
            else:
                Y[:, self.used] = left
                rest = np.einsum("ij,ij->i", Y, Y)
            return np.sum((t / np.sqrt(self.along)) ** 2, axis=1), rest

    def _unused(self, rows: Any, m: NDArray[np.float64], s: NDArray[np.float64]) -> NDArray[np.float64]:
        """Squares of sparse rows in the variables that U does not use."""
        weight = np.ones(self.p)
        weight[self.used] = 0
        base = weight * (m / s) ** 2
        column = rows.indices
        row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
        entry = weight[column] * ((rows.data - m[column]) / s[column]) ** 2
        seen = np.bincount(row, entry, rows.shape[0])
        return seen + np.maximum(base.sum() - np.bincount(row, base[column], rows.shape[0]), 0)


# ---- what the estimators share ----------------------------------------------------------------------


class _Transformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Scores of the components."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _n_features_out(self) -> int:
        return self.components_.shape[0]

    def _training(self, X: Any, y: Any = "no_validation", finite: Any = False, **checks: Any) -> Any:
        """X as the functions take it, not copied, with the names of its variables noted.

        The functions look for NaN themselves.
        """
        return validate_data(
            self, X, y, accept_sparse=("csr", "csc"), dtype=(np.float64, np.float32),
            ensure_all_finite=finite, ensure_min_samples=2, **checks,
        )  # fmt: skip

    def _new(self, X: Any, finite: Any = True) -> Any:
        check_is_fitted(self)
        return validate_data(
            self, X, reset=False, accept_sparse=("csr", "csc"), dtype=(np.float64, np.float32),
            ensure_all_finite=finite,
        )  # fmt: skip

    def _set(self, result: Any) -> None:
        """What all results of components have."""
        self.result_ = result
        self.components_ = result.loadings.T
        self.n_components_ = result.loadings.shape[1]
        self.mean_, self.scale_ = result.mean, result.scale

    def transform(self, X: Any) -> NDArray[Any]:
        """Scores of the rows of X, centred and scaled, times the loadings.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, p)

        Returns
        -------
        ndarray of shape (m, r)
        """
        return self._transformed(X)

    def _transformed(self, X: Any) -> NDArray[Any]:
        """An array, whatever the container that `transform` is set to give."""
        return scores(self._new(X), self.components_.T, self.mean_, self.scale_)


class _Invertible(_Transformer):
    """Scores that give rows back."""

    def inverse_transform(self, X: Any) -> NDArray[Any]:
        """Rows from their scores: of `transform(X)`, the projection of X onto the span of the components.

        Parameters
        ----------
        X : array-like of shape (m, r)

        Returns
        -------
        ndarray of shape (m, p)
        """
        check_is_fitted(self)
        S = self._scores(X)
        return self._rows(S @ np.linalg.pinv(self.components_.T).astype(S.dtype, copy=False))

    def _scores(self, X: Any) -> NDArray[Any]:
        S = real_array(X, "X", ndim=2, empty=self._n_features_out == 0)
        if S.shape[1] != self._n_features_out:
            raise ValueError(
                f"X has {counted(S.shape[1], 'column')} for {counted(self._n_features_out, 'component')}"
            )
        return S

    def _rows(self, X: NDArray[Any]) -> NDArray[Any]:
        """In the units of the data."""
        if self.scale_ is not None:
            X *= self.scale_
        if self.mean_ is not None:
            X += self.mean_
        return X


class _Likelihood:
    """`score` and `score_samples` of components."""

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """Log-density of each row of X in the model of the components and noise.

        The model has covariance `W W' + s2 I`, with W in the span of the components and both fitted to the
        training data; with ``scale=True`` that of the scaled variables.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, p)

        Returns
        -------
        ndarray of shape (m,)

        Raises
        ------
        ValueError
            When the components leave no noise, so that the covariance is singular.
        """
        X = self._new(X)  # type: ignore[attr-defined]
        return self._density.log_density(X)  # type: ignore[attr-defined]

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log-density of the rows of X, see `score_samples`.

        Of rows held out, it is largest near the right number of variables: too few leave variance to the
        noise, too many fit the training rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, p)
        y : ignored

        Returns
        -------
        float
        """
        return float(np.mean(self.score_samples(X)))

    def get_covariance(self) -> NDArray[Any]:
        """The covariance of the model that `score` uses.

        Returns
        -------
        ndarray of shape (p, p)
        """
        check_is_fitted(self)
        return self._density.covariance()  # type: ignore[attr-defined]


class _Components(_Likelihood, _Invertible):
    """Sparse components of a matrix."""

    def _count(self, X: Any) -> Any:
        """n_components, None being as many as there can be."""
        if self.n_components is None:
            estimated = np.ndim(self.center) == 0 and bool(self.center)
            return max(1, min(X.shape[0] - estimated, X.shape[1]))
        return self.n_components

    def _describe(self, X: Any, result: Any, variance: Any, ratio: Any, sample_weight: Any) -> None:
        self._set(result)
        self.explained_variance_, self.explained_variance_ratio_ = variance, ratio
        self.n_iter_ = max(1, int(np.max(result.n_iter, initial=1)))
        self._density = _Density.of(
            X, result.loadings, self.mean_, self.scale_, result.total_variance, sample_weight
        )
        self.noise_variance_ = self._density.noise


# ---- components -------------------------------------------------------------------------------------


class SparsePCA(_Components):
    """Sparse principal components, one after the other, each of few variables and large variance.

    Each maximizes `x'Ax` subject to `||x|| = 1` and its cardinality, where A is the covariance matrix
    from which the earlier components have been removed. This is `spcacore.sparse_pca`, which explains the
    parameters in full. Sparse X is centred implicitly and never made dense.

    Parameters
    ----------
    n_components : int or None, default 2
        In [1, min(n, p)]. None: as many as there can be, `min(n - 1, p)` (n without centring).
    cardinality, l1_bound, penalty : number or sequence of numbers, optional
        How sparse every component, or each, is to be; just the one that the method takes. Default: for
        methods that take a cardinality the root of the number of variables, rounded up; for those that take
        an l1 bound, that which as many equal loadings meet. "gpower" must be given its penalty.
    method, deflation, constraint, renormalize, refine, certify
        As in `sparse_pca`.
    center : bool or array-like of shape (p,), default True
    scale : bool or array-like of shape (p,), default False
        Divide each variable by its standard deviation.
    start, n_starts, max_iter, tol, screening
        As in `sparse_pca`.
    options : dict, optional
        Further options of the method, such as ``{"nonnegative": True}``.
    random_state : int, RandomState or None, default None
        For random starts. None is a fixed seed here, so that results repeat.

    Attributes
    ----------
    components_ : ndarray of shape (r, p)
        One unit row a component; in each, the entry of largest magnitude is positive.
    explained_variance_ : ndarray of shape (r,)
        Additional variance of each component given the earlier ones: the sum is the variance of the
        projection onto their span. `spcacore.explained_variance` has two other definitions.
    explained_variance_ratio_ : ndarray of shape (r,)
        The same as a proportion of the total variance.
    noise_variance_ : float
        Of the model that `score` uses: the mean variance left in all other directions.
    mean_, scale_ : ndarray of shape (p,) or None
    n_components_ : int
        Components found: fewer than asked for, after a RuntimeWarning, where no variance is left.
    n_iter_ : int
        Iterations of the component that took most.
    result_ : SparsePCAResult
        With the cardinalities, the iterations of each component, bounds, and the screening.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (p,)

    See Also
    --------
    spcacore.sparse_pca : The function.
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

    def __init__(
        self,
        n_components: int | None = 2,
        *,
        cardinality: Any = None,
        l1_bound: Any = None,
        penalty: Any = None,
        method: str = "tpower",
        deflation: str = "projection",
        constraint: str | None = None,
        renormalize: bool = True,
        refine: bool = False,
        certify: bool = False,
        center: bool = True,
        scale: bool = False,
        start: str | None = None,
        n_starts: int | None = None,
        max_iter: int | None = None,
        tol: float | None = None,
        screening: str = "auto",
        options: dict[str, Any] | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.cardinality = cardinality
        self.l1_bound = l1_bound
        self.penalty = penalty
        self.method = method
        self.deflation = deflation
        self.constraint = constraint
        self.renormalize = renormalize
        self.refine = refine
        self.certify = certify
        self.center = center
        self.scale = scale
        self.start = start
        self.n_starts = n_starts
        self.max_iter = max_iter
        self.tol = tol
        self.screening = screening
        self.options = options
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> SparsePCA:
        """Find the components of X.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
            CSR and CSC matrices are not made dense; float32 stays float32. Nothing is copied.
        y : ignored
        sample_weight : array-like of shape (n,), optional
            How many samples each row stands for, see `spcacore.sparse_pca`.

        Returns
        -------
        self
        """
        names = column_names(X)
        X = self._training(X, finite=self.method == "pmd")  # the function would leave NaN out
        sparsity = {"cardinality": self.cardinality, "l1_bound": self.l1_bound, "penalty": self.penalty}
        if all(value is None for value in sparsity.values()) and self.method in METHODS:
            k = _few(X.shape[1])
            defaults = {"cardinality": k, "l1_bound": math.sqrt(k), "penalty": None}
            wanted = METHODS[self.method].sparsity
            sparsity[wanted] = defaults[wanted]
        result = sparse_pca(
            X, self._count(X), **sparsity, method=self.method, deflation=self.deflation,
            constraint=self.constraint, renormalize=self.renormalize, refine=self.refine,
            certify=self.certify, kind="data", center=self.center, scale=self.scale,
            sample_weight=sample_weight, start=self.start,
            n_starts=self.n_starts, max_iter=self.max_iter, tol=self.tol, screening=self.screening,
            rng=_rng(self.random_state), **(self.options or {}),
        )  # fmt: skip
        self._describe(
            X, replace(result, names=names), result.explained_variance, result.explained_variance_ratio,
            sample_weight,
        )  # fmt: skip
        return self


class SPCA(_Components):
    """Sparse principal components as a regression, all at once.

    Minimizes `sum_i ||x_i - V B'x_i||^2 + ridge sum_j ||b_j||^2 + sum_j penalty_j ||b_j||_1` over B and
    V with `V'V = I`; the components are the columns of B at unit length. This is `spcacore.spca`, which
    explains the parameters in full.

    Parameters
    ----------
    n_components : int or None, default 2
        In [1, min(n, p)]. None: as many as there can be, `min(n - 1, p)` (n without centring).
    cardinality : int or sequence of ints, optional
        Nonzeros of each component. Default, without a penalty: the root of the number of variables,
        rounded up.
    penalty : float or sequence of floats, optional
        Of the l1 norms, instead of `cardinality`.
    ridge, start, max_iter, tol
        As in `spca`.
    center : bool or array-like of shape (p,), default True
    scale : bool or array-like of shape (p,), default False
        Divide each variable by its standard deviation.

    Attributes
    ----------
    components_ : ndarray of shape (r, p)
        Rows of unit length, or zero; in each, the entry of largest magnitude is positive.
    explained_variance_, explained_variance_ratio_ : ndarray of shape (r,)
        Additional variance of each component given the earlier ones, as in `SparsePCA`;
        `result_.adjusted_variance` has that of the paper.
    noise_variance_ : float
        Of the model that `score` uses.
    mean_, scale_ : ndarray of shape (p,) or None
    n_components_ : int
    n_iter_ : int
    result_ : SPCAResult
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (p,)

    See Also
    --------
    spcacore.spca : The function.

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
    >>> model.explained_variance_ratio_.round(3)
    array([0.237, 0.17 ])
    """

    def __init__(
        self,
        n_components: int | None = 2,
        *,
        cardinality: Any = None,
        penalty: Any = None,
        ridge: float | None = None,
        start: Any = None,
        max_iter: int = 1000,
        tol: float | None = None,
        center: bool = True,
        scale: bool = False,
    ) -> None:
        self.n_components = n_components
        self.cardinality = cardinality
        self.penalty = penalty
        self.ridge = ridge
        self.start = start
        self.max_iter = max_iter
        self.tol = tol
        self.center = center
        self.scale = scale

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> SPCA:
        """Find the components of X.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
            CSR and CSC matrices are not made dense; float32 stays float32. Nothing is copied.
        y : ignored
        sample_weight : array-like of shape (n,), optional
            How many samples each row stands for, see `spcacore.spca`.

        Returns
        -------
        self
        """
        X, names = self._training(X), column_names(X)
        cardinality = self.cardinality
        if cardinality is None and self.penalty is None:
            cardinality = _few(X.shape[1])
        result = spca(
            X, self._count(X), penalty=self.penalty, cardinality=cardinality, ridge=self.ridge,
            start=self.start, max_iter=self.max_iter, tol=self.tol, center=self.center, scale=self.scale,
            sample_weight=sample_weight,
        )  # fmt: skip
        self._describe(
            X, replace(result, names=names), result.explained_variance, result.explained_variance_ratio,
            sample_weight,
        )  # fmt: skip
        return self


class SCA(_Components):
    """Sparse component analysis: sparse loadings Y of a rotated basis, all at once.

    Maximizes `||Z'XY||_F` over scores `Z'Z = I` and loadings with `sum |y_ij| <= l1_bound`. This is
    `spcacore.sca`, which explains the parameters in full.

    Parameters
    ----------
    n_components : int or None, default 2
        In [1, min(n, p)]. None: as many as there can be, `min(n - 1, p)` (n without centring).
    l1_bound : float, optional
        Positive, at most `r sqrt(p)`, of all loadings together. Default: `sqrt(p r)`.
    rotation : {"varimax", "l1", "none"}, default "varimax"
    threshold : {"soft", "hard"}, default "soft"
    start, max_iter, tol
        As in `sca`.
    center : bool or array-like of shape (p,), default True
    scale : bool or array-like of shape (p,), default False
        Divide each variable by its standard deviation.

    Attributes
    ----------
    components_ : ndarray of shape (r, p)
        As they were shrunk, not of unit length, by the variance of their scores.
    explained_variance_, explained_variance_ratio_ : ndarray of shape (r,)
        Additional variance of each component given the earlier ones, as in `SparsePCA`.
    noise_variance_ : float
        Of the model that `score` uses.
    mean_, scale_ : ndarray of shape (p,) or None
    n_components_ : int
    n_iter_ : int
    result_ : RotatedResult
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (p,)

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

    def __init__(
        self,
        n_components: int | None = 2,
        *,
        l1_bound: float | None = None,
        rotation: str = "varimax",
        threshold: str = "soft",
        start: Any = None,
        max_iter: int = 1000,
        tol: float = 1e-5,
        center: bool = True,
        scale: bool = False,
    ) -> None:
        self.n_components = n_components
        self.l1_bound = l1_bound
        self.rotation = rotation
        self.threshold = threshold
        self.start = start
        self.max_iter = max_iter
        self.tol = tol
        self.center = center
        self.scale = scale

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> SCA:
        """Find the components of X.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
            CSR and CSC matrices are not made dense; float32 stays float32. Nothing is copied.
        y : ignored
        sample_weight : array-like of shape (n,), optional
            How many samples each row stands for, see `spcacore.sca`.

        Returns
        -------
        self
        """
        if isinstance(self.scale, str):
            raise TypeError(f"scale must be True or False, not {self.scale!r}")
        X, names = self._training(X), column_names(X)
        result = sca(
            X, self._count(X), l1_bound=self.l1_bound, rotation=self.rotation, threshold=self.threshold,
            start=self.start, max_iter=self.max_iter, tol=self.tol, center=self.center, scale=self.scale,
            sample_weight=sample_weight,
        )  # fmt: skip
        ratio = np.diff(result.pve, prepend=0.0)
        self._describe(X, replace(result, names=names), ratio * result.total_variance, ratio, sample_weight)
        return self


class PPCA(_Likelihood, _Invertible):
    """Probabilistic principal components by maximum likelihood, also with missing entries.

    Maximizes `sum_i log N(x_i; mu, W W' + s2 I)` over mu, W (p x r) and s2; where entries are missing
    (NaN), the likelihood of the observed ones. The components are dense. This is `spcacore.ppca`, which
    explains the parameters in full.

    Parameters
    ----------
    n_components : int, default 2
        At most the rank of the centred data.
    center : bool or array-like of shape (p,), default True
    scale : bool or array-like of shape (p,), default False
        Divide each variable by its standard deviation first.
    ddof, max_iter, tol
        As in `ppca`.

    Attributes
    ----------
    components_ : ndarray of shape (r, p)
        W': orthogonal rows of squared length `explained_variance_ - noise_variance_`;
        `result_.directions` has them at unit length.
    explained_variance_ : ndarray of shape (r,)
        Variance along each direction, noise included.
    explained_variance_ratio_ : ndarray of shape (r,)
        As a proportion of the total variance of the model, `sum explained_variance_ + (p - r) s2`.
    noise_variance_ : float
        s2: the mean of all other eigenvalues. For n <= p scikit-learn's `PCA` averages only those that are
        not 0, which is more, and no maximum of the likelihood.
    mean_, scale_ : ndarray of shape (p,) or None
    n_components_ : int
    n_iter_ : int
        1 without missing entries, where the solution is in closed form.
    result_ : PPCAResult
        With the BIC, samples of the model, and `impute` for missing entries.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (p,)

    See Also
    --------
    spcacore.ppca : The function.

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

    def __init__(
        self,
        n_components: int = 2,
        *,
        center: bool = True,
        scale: bool = False,
        ddof: int = 1,
        max_iter: int = 1000,
        tol: float = 1e-9,
    ) -> None:
        self.n_components = n_components
        self.center = center
        self.scale = scale
        self.ddof = ddof
        self.max_iter = max_iter
        self.tol = tol

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> PPCA:
        """Fit the model to X.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
            Dense data may have NaN entries, missing at random.
        y : ignored
        sample_weight : array-like of shape (n,), optional
            How many samples each row stands for, see `spcacore.ppca`.

        Returns
        -------
        self
        """
        X, names = self._training(X), column_names(X)
        result = ppca(
            X, self.n_components, center=self.center, scale=self.scale,
            sample_weight=sample_weight, ddof=self.ddof,
            max_iter=self.max_iter, tol=self.tol,
        )  # fmt: skip
        self._set(replace(result, names=names))
        self.explained_variance_, self.noise_variance_ = result.explained_variance, result.noise_variance
        rest = (X.shape[1] - self.n_components_) * self.noise_variance_
        total = float(self.explained_variance_.sum()) + rest
        if not 0 < total < math.inf:
            raise ValueError("the variances exceed the number range; rescale X")
        self.explained_variance_ratio_ = self.explained_variance_ / total
        self.n_iter_ = max(1, result.n_iter)
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        """Posterior means `(W'W + s2 I)^-1 W'(x - mean)` of z, from the observed entries of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, p)
            NaN entries are missing.

        Returns
        -------
        ndarray of shape (m, r)
        """
        X = self._new(X, finite=False)
        return self.result_.transform(X)

    def inverse_transform(self, X: Any) -> NDArray[Any]:
        """Rows from their posterior means: `W (W'W)^-1 (W'W + s2 I) z + mean`.

        Of `transform(X)` that is the projection of X onto the span of the components; `transform` of it
        gives the posterior means again.

        Parameters
        ----------
        X : array-like of shape (m, r)

        Returns
        -------
        ndarray of shape (m, p)
        """
        check_is_fitted(self)
        S = self._scores(X)
        length = np.sqrt(np.maximum(self.explained_variance_ - self.noise_variance_, 0))
        back = np.where(length > 0, self.explained_variance_ / np.where(length > 0, length, 1), 0)
        return self._rows((S * back.astype(S.dtype)) @ self.result_.directions.T)

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """Log-density of the observed entries of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, p)
            NaN entries are missing.

        Returns
        -------
        ndarray of shape (m,)

        Raises
        ------
        ValueError
            When the covariance is singular: the components leave no noise.
        """
        X = self._new(X, finite=False)
        return self.result_.score_samples(X)

    def get_covariance(self) -> NDArray[Any]:
        """The covariance `W W' + s2 I` of the model.

        Returns
        -------
        ndarray of shape (p, p)
        """
        check_is_fitted(self)
        return self.result_.covariance()


# ---- with labels, or a second matrix ----------------------------------------------------------------


class SparseLDA(ClassifierMixin, _Transformer):
    """Sparse linear discriminant analysis: directions of few variables that separate classes.

    Each maximizes `x'S_b x / x'B x` over x with few nonzeros, S_b the scatter between the class means and
    B the scatter within classes, shrunk if asked; rows go to the nearest centroid in the space of the
    directions, in the metric of the scatter within. This is `spcacore.sparse_lda`, which explains the
    parameters in full.

    Parameters
    ----------
    n_components : int, optional
        In [1, classes - 1]. Default: `min(classes - 1, p)`.
    cardinality : int or sequence of ints, optional
        Nonzeros of each direction. Default: the root of the number of variables, rounded up.
    priors : array-like of shape (c,), optional
        Of the classes, in the order of the sorted labels. Default: their shares of y.
    shrinkage : None, float or "auto", default None
        Towards a multiple of the identity. Not invariant to the units of the variables: put a
        `StandardScaler` before.
    method, strategy, swaps, deflation, max_iter, tol
        As in `sparse_lda`.
    random_state : int, RandomState or None, default None
        For random starts. None is a fixed seed here, so that results repeat.

    Attributes
    ----------
    classes_ : ndarray of shape (c,)
    components_ : ndarray of shape (r, p)
        The directions at unit length.
    scalings_ : ndarray of shape (p, r)
        The same of unit variance within classes; `transform` uses these.
    means_ : ndarray of shape (c, p)
    priors_ : ndarray of shape (c,)
    mean_ : ndarray of shape (p,)
    n_components_ : int
    n_iter_ : int
        Iterations of the direction that took most.
    result_ : SparseLDAResult
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (p,)

    See Also
    --------
    spcacore.sparse_lda : The function.

    References
    ----------
    B. Moghaddam, Y. Weiss and S. Avidan (2006). Generalized spectral bounds for sparse LDA. Proceedings of
    the 23rd International Conference on Machine Learning, 641-648.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from spcacore.sklearn import SparseLDA
    >>> X, y = load_wine(return_X_y=True, as_frame=True)
    >>> model = SparseLDA(cardinality=3).fit(X, y)
    >>> model.feature_names_in_[model.components_[0] != 0].tolist()
    ['flavanoids', 'color_intensity', 'proline']
    >>> round(model.score(X, y), 2)
    0.97
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        cardinality: Any = None,
        priors: Any = None,
        shrinkage: Any = None,
        method: str = "auto",
        strategy: str = "auto",
        swaps: bool = True,
        deflation: str = "projection",
        max_iter: int = 1000,
        tol: float = 1e-8,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.cardinality = cardinality
        self.priors = priors
        self.shrinkage = shrinkage
        self.method = method
        self.strategy = strategy
        self.swaps = swaps
        self.deflation = deflation
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> SparseLDA:
        """Find the directions.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
        y : array-like of shape (n,)
            Class labels.

        Returns
        -------
        self
        """
        names = column_names(X)
        X, y = self._training(X, y)
        check_classification_targets(y)
        cardinality = _few(X.shape[1]) if self.cardinality is None else self.cardinality
        result = sparse_lda(
            X, y, self.n_components, cardinality=cardinality, priors=self.priors,
            shrinkage=self.shrinkage, method=self.method, strategy=self.strategy, swaps=self.swaps,
            deflation=self.deflation, max_iter=self.max_iter, tol=self.tol, rng=_rng(self.random_state),
        )  # fmt: skip
        self.result_ = replace(result, names=names)
        self.classes_, self.priors_, self.means_ = result.classes, result.priors, result.means
        self.components_, self.scalings_, self.mean_ = result.loadings.T, result.scalings, result.mean
        self.n_components_ = result.n_components
        self.n_iter_ = max(1, int(np.max(result.n_iter, initial=1)))
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        """Discriminant scores `(X - mean) @ scalings`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, p)

        Returns
        -------
        ndarray of shape (m, r)
        """
        X = self._new(X)
        return self.result_.transform(X)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """`log pi_c - d^2/2`, d the distance to each centroid; of two classes, the second less the first.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, p)

        Returns
        -------
        ndarray of shape (m, c), or (m,) for two classes
        """
        X = self._new(X)
        values = self.result_.decision_function(X)
        return values[:, 1] - values[:, 0] if len(self.classes_) == 2 else values

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of largest `decision_function`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, p)

        Returns
        -------
        ndarray of shape (m,)
        """
        X = self._new(X)
        return self.result_.predict(X)

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Log-probabilities of the classes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, p)

        Returns
        -------
        ndarray of shape (m, c)
        """
        X = self._new(X)
        values = self.result_.decision_function(X)
        values -= values.max(axis=1, keepdims=True)
        return values - np.log(np.exp(values).sum(axis=1, keepdims=True))

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities of the classes, were they normal with the scatter within as their covariance.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, p)

        Returns
        -------
        ndarray of shape (m, c)
        """
        return np.exp(self.predict_log_proba(X))


class SparseCCA(_Invertible):
    """Sparse canonical correlation analysis: few variables of two sides that go together.

    "pmd" maximizes `u'X'Yv` over u and v of unit 2-norm and bounded l1 norms, "generalized" maximizes the
    correlation of `Xu` and `Yv` over u and v with few nonzeros. This is `spcacore.sparse_cca`, which
    explains the parameters in full. `fit_transform` gives the scores of X alone, so that it works in a
    pipeline.

    Parameters
    ----------
    n_components : int, default 1
        Pairs, in [1, min(n, p, q)].
    method : {"pmd", "generalized"}, default "pmd"
    l1_bound : float or pair of floats, optional
        Of "pmd". Default: what as many equal loadings as the root of the number of variables meet.
    cardinality : int or pair of ints, optional
        Of "generalized". Default: the root of the number of variables of each side, rounded up.
    ridge, max_iter, tol
        As in `sparse_cca`.
    scale : bool, default True
        Divide each variable by its standard deviation.

    Attributes
    ----------
    components_ : ndarray of shape (r, p)
        u of each pair.
    y_components_ : ndarray of shape (r, q)
        v of each pair.
    correlations_ : ndarray of shape (r,)
        Of the scores of the training data.
    mean_, scale_ : ndarray of shape (p,) or None
    y_mean_, y_scale_ : ndarray of shape (q,) or None
    n_components_ : int
        Pairs found: fewer than asked for, after a RuntimeWarning, where nothing is left to correlate.
    n_iter_ : int
        Iterations of the pair that took most.
    result_ : SparseCCAResult
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (p,)

    See Also
    --------
    spcacore.sparse_cca : The function.
    spcacore.sparse_cca_permutation : The choice of bounds by permutation.

    References
    ----------
    D. M. Witten, R. Tibshirani and T. Hastie (2009). A penalized matrix decomposition, with applications to
    sparse principal components and canonical correlation analysis. Biostatistics 10(3), 515-534, section 3.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import GridSearchCV
    >>> from spcacore.sklearn import SparseCCA
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.standard_normal((60, 100)), rng.standard_normal((60, 80))
    >>> common = 1.5 * rng.standard_normal(60)
    >>> X[:, :4] += common[:, None]
    >>> Y[:, 5:8] -= common[:, None]
    >>> search = GridSearchCV(SparseCCA(), {"l1_bound": [1, 1.5, 3, 7]}).fit(X, Y)
    >>> search.best_params_, round(float(search.best_score_), 2)
    ({'l1_bound': 1.5}, 0.83)

    The left and right halves of handwritten digits, by a few pixels of each:

    >>> from sklearn.datasets import load_digits
    >>> images = load_digits().images
    >>> left, right = images[:, :, :4].reshape(-1, 32), images[:, :, 4:].reshape(-1, 32)
    >>> model = SparseCCA(l1_bound=2).fit(left[:900], right[:900])
    >>> int((model.components_ != 0).sum()), round(model.score(left[900:], right[900:]), 2)
    (5, 0.7)
    """

    def __init__(
        self,
        n_components: int = 1,
        *,
        method: str = "pmd",
        l1_bound: Any = None,
        cardinality: Any = None,
        ridge: Any = 0.0,
        scale: bool = True,
        max_iter: int = 1000,
        tol: float | None = None,
    ) -> None:
        self.n_components = n_components
        self.method = method
        self.l1_bound = l1_bound
        self.cardinality = cardinality
        self.ridge = ridge
        self.scale = scale
        self.max_iter = max_iter
        self.tol = tol

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: Any, y: Any) -> SparseCCA:
        """Find the pairs.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
        y : array-like or sparse matrix of shape (n, q) or (n,)

        Returns
        -------
        self
        """
        names_x, names_y = column_names(X), column_names(y)
        X, y = self._training(X, y, multi_output=True, y_numeric=True)
        self._flat = y.ndim == 1
        y = self._second(y, X.dtype)
        p, q = X.shape[1], y.shape[1]
        l1_bound, cardinality = self.l1_bound, self.cardinality
        if l1_bound is None and cardinality is None:
            counts = _few(p), _few(q)
            if self.method == "generalized":
                cardinality = counts
            else:
                l1_bound = math.sqrt(counts[0]), math.sqrt(counts[1])
        result = sparse_cca(
            X, y, self.n_components, method=self.method, l1_bound=l1_bound, cardinality=cardinality,
            ridge=self.ridge, scale=self.scale, max_iter=self.max_iter, tol=self.tol,
        )  # fmt: skip
        self.result_ = replace(result, names_x=names_x, names_y=names_y)
        self.components_, self.y_components_ = result.loadings_x.T, result.loadings_y.T
        self.mean_, self.scale_ = result.mean_x, result.scale_x
        self.y_mean_, self.y_scale_ = result.mean_y, result.scale_y
        self.correlations_, self.n_components_ = result.correlations, result.n_components
        self.n_iter_ = max(1, int(np.max(result.n_iter, initial=1)))
        T, mean = result.scores_x.astype(np.float64), np.asarray(result.mean_y)
        together = np.asarray(y.T @ T).T - np.outer(T.sum(axis=0), mean)
        self._regression = np.linalg.pinv(T.T @ T) @ together
        return self

    @staticmethod
    def _second(y: Any, dtype: Any) -> Any:
        """The other side as a matrix."""
        y = y.reshape(-1, 1) if y.ndim == 1 else y
        return y if y.dtype.kind == "f" else y.astype(dtype)

    def transform(self, X: Any, y: Any = None) -> Any:
        """Scores of the rows of X, and of y if given.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, p)
        y : array-like or sparse matrix of shape (m, q) or (m,), optional

        Returns
        -------
        ndarray of shape (m, r), or a pair of them
        """
        return self._transformed(X) if y is None else self._both(X, y)

    def _both(self, X: Any, y: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        own = self._transformed(X)
        y = check_array(y, accept_sparse=("csr", "csc"), ensure_2d=False, input_name="y")
        y = self._second(y, own.dtype)
        needed = len(own), self.y_components_.shape[1]
        if y.shape != needed:
            raise ValueError(f"y has shape {y.shape} where {needed} is needed")
        return own, scores(y, self.y_components_.T, self.y_mean_, self.y_scale_)

    def fit_transform(self, X: Any, y: Any) -> NDArray[Any]:
        """Fit, and the scores of the rows of X.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
        y : array-like or sparse matrix of shape (n, q) or (n,)

        Returns
        -------
        ndarray of shape (n, r)
        """
        return self.fit(X, y).transform(X)

    def predict(self, X: Any) -> NDArray[np.float64]:
        """y from the scores of X, by least squares.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, p)

        Returns
        -------
        ndarray of shape (m, q), or (m,) after a fit to one y
        """
        out = self._transformed(X) @ self._regression + self.y_mean_
        return out[:, 0] if self._flat else out

    def score(self, X: Any, y: Any) -> float:
        """Mean correlation of the pairs of scores of rows of X and y.

        It has the sign of the training data: pairs that are opposed in new rows count as negative.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, p)
        y : array-like or sparse matrix of shape (m, q) or (m,)

        Returns
        -------
        float
        """
        if y is None:
            raise ValueError("score needs y, the other side of the pairs")
        pairs = [S.astype(np.float64) for S in self._both(X, y)]
        for S in pairs:
            S /= np.maximum(np.abs(S).max(axis=0), np.finfo(float).tiny)
            S -= S.mean(axis=0)
        norm = np.linalg.norm(pairs[0], axis=0) * np.linalg.norm(pairs[1], axis=0)
        found = np.sum(pairs[0] * pairs[1], axis=0) / np.where(norm > 0, norm, 1)
        return float(found.mean()) if len(found) else 0.0
