"""Directions and pairs of directions, found with class labels or a second matrix."""

from __future__ import annotations

from dataclasses import KW_ONLY, replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from .._labels import joined
from .._types import AnyArray, Array, MatrixLike
from .._validation import aligned, check_shape, column_names, is_row_blocks
from ..choice import Choice
from ..generalized.canonical_sides import named, pair_of
from ..generalized.cca import SparseCCAResult, sparse_cca
from ..generalized.lda import sparse_lda
from ..linalg.orthogonal import unit_columns
from ..methods import RatioSearch
from ..operators.blocks import sum_parts
from ..operators.transform import scores
from ..selection.model import by_place
from .base import Invertible, Transformer, estimator, names_seen, options_of, second_side


@estimator
class SparseLDA(ClassifierMixin, Transformer):
    """Sparse linear discriminant analysis: directions of few variables that separate classes.

    Each direction maximizes `x'S_b x / x'B x` over x with few nonzeros. S_b is the scatter between the class
    means, and B the scatter within classes, which `shrinkage` may regularize. A row is assigned to the
    nearest centroid in the space of the directions, in the metric of B. The estimator calls
    `spcacore.sparse_lda`, which explains the parameters in full.

    Parameters
    ----------
    n_components : int, optional
        In [1, classes - 1]. Default: `min(classes - 1, p)`.
    cardinality : int or sequence of ints, optional
        Nonzeros of each direction. Default: the square root of the number of variables, rounded up.
    priors : array-like of shape (c,), optional
        Prior probabilities of the classes, in the order of the sorted labels. Default: their shares in y.
    shrinkage : "auto", float or None, default "auto"
        How far B is shrunk toward its diagonal; None is not at all.
    options, choice, deflation
        As in `sparse_lda`.

    Attributes
    ----------
    classes_ : ndarray of shape (c,)
    components_ : ndarray of shape (r, p)
        The directions at unit length.
    scalings_ : ndarray of shape (p, r)
        The directions, scaled to unit variance within classes; `transform` uses these.
    means_ : ndarray of shape (c, p)
    priors_ : ndarray of shape (c,)
    mean_ : ndarray of shape (p,)
    n_components_ : int
    n_iter_ : int
        Largest number of iterations of a direction.
    result_ : SparseLDAResult
    {features}

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
    ['flavanoids', 'od280/od315_of_diluted_wines', 'proline']
    >>> round(model.score(X, y), 2)
    0.96
    """

    n_components: int | None = None
    cardinality: int | ArrayLike | None = None
    _: KW_ONLY
    priors: ArrayLike | None = None
    shrinkage: float | str | None = "auto"
    options: RatioSearch | None = None
    choice: Choice | None = None
    deflation: str = "projection"

    _function = staticmethod(sparse_lda)

    def fit(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Find the directions.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
        y : array-like of shape (n,)
            Class labels.
        sample_weight : array-like of shape (n,), optional
            How many samples each row stands for, as in the function.

        Returns
        -------
        self

        {wine_example}
        >>> model.components_.shape
        (2, 13)
        """
        names, y = column_names(X), joined(X, y, "y")
        weight = joined(X, sample_weight, "sample_weight")
        rows, labels = self._training(X, y)
        check_classification_targets(labels)
        self._fit_to(rows, labels, names=names, sample_weight=weight)
        result = self.result_
        self.classes_: AnyArray = result.classes
        self.priors_: Array = result.priors
        self.means_: AnyArray = result.means
        self.scalings_: AnyArray = result.scalings
        self.mean_: AnyArray = result.mean
        return self

    def score(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """The share of rows that are classified as in y.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, p)
        y : array-like of shape (m,)
        sample_weight : array-like of shape (m,), optional
            How much each row counts.

        Returns
        -------
        float

        {wine_example}
        >>> model.score(X, y) > 0.9
        True
        """
        weight = joined(X, sample_weight, "sample_weight")
        labels = column_or_1d(np.asarray(joined(X, y, "y")))
        return float(accuracy_score(labels, np.asarray(self.predict(X)), sample_weight=weight))

    def decision_function(self, X: MatrixLike) -> Array:
        """`log pi_c - d^2/2` for each class c, where d is the distance to its centroid.

        For two classes: the value of the second class minus the value of the first.

        {rows_to}
        ndarray of shape (m, c), or (m,) for two classes

        {wine_example}
        >>> int(model.decision_function(X[:1]).argmax())
        0
        """
        X = self._new(X)
        values = self.result_.decision_function(X)
        return values[:, 1] - values[:, 0] if len(self.classes_) == 2 else values

    def predict(self, X: MatrixLike) -> AnyArray:
        """The class with the largest `decision_function`.

        {rows_to}
        ndarray of shape (m,)

        {wine_example}
        >>> model.predict(X[::80]).tolist()
        [0, 1, 2]
        """
        X = self._new(X)
        return self.result_.predict(X)

    def predict_log_proba(self, X: MatrixLike) -> Array:
        """Logarithms of the probabilities from `predict_proba`.

        {rows_to}
        ndarray of shape (m, c)

        {wine_example}
        >>> logarithms = model.predict_log_proba(X[:5])
        >>> logarithms.shape, int(logarithms[0].argmax())
        ((5, 3), 0)
        """
        X = self._new(X)
        values = self.result_.decision_function(X)
        values -= values.max(axis=1, keepdims=True)
        return values - np.log(np.exp(values).sum(axis=1, keepdims=True))

    def predict_proba(self, X: MatrixLike) -> Array:
        """Probabilities of the classes, if each is normal with the scatter within classes as its covariance.

        {rows_to}
        ndarray of shape (m, c)

        {wine_example}
        >>> model.predict_proba(X[:1]).round(2).tolist()
        [[1.0, 0.0, 0.0]]
        """
        return np.exp(self.predict_log_proba(X))


@estimator
class SparseCCA(Invertible):
    """Sparse canonical correlation analysis: a few variables from each of two matrices that correlate.

    Method "pmd" maximizes `u'X'Yv` over unit vectors u and v of bounded l1 norms. Method "generalized"
    maximizes the correlation of `Xu` and `Yv` over u and v with few nonzeros. The estimator calls
    `spcacore.sparse_cca`, which explains the parameters in full. `fit_transform` returns only the scores of
    X, so that it works in a pipeline.

    Parameters
    ----------
    n_components : int, default 1
        Number of pairs, in [1, min(n, p, q)].
    cardinality, l1_bound, method, ridge, choice, deflation, max_iter
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
        Correlations of the scores of the training data.
    mean_, scale_ : ndarray of shape (p,) or None
    y_mean_, y_scale_ : ndarray of shape (q,) or None
    n_components_ : int
        Number of pairs found. If no covariance is left, it is less than requested, with a RuntimeWarning.
    n_iter_ : int
        Largest number of iterations of a pair.
    result_ : SparseCCAResult
    {features}

    See Also
    --------
    spcacore.sparse_cca_permutation : Choose the l1 bounds by permutations.

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

    The left and right halves of handwritten digits, from a few pixels of each:

    >>> from sklearn.datasets import load_digits
    >>> images = load_digits().images
    >>> left, right = images[:, :, :4].reshape(-1, 32), images[:, :, 4:].reshape(-1, 32)
    >>> model = SparseCCA(l1_bound=2).fit(left[:900], right[:900])
    >>> int((model.components_ != 0).sum()), round(model.score(left[900:], right[900:]), 2)
    (5, 0.7)
    """

    n_components: int = 1
    cardinality: int | tuple[int, int] | None = None
    _: KW_ONLY
    l1_bound: float | tuple[float, float] | None = None
    method: Literal["pmd", "generalized"] | None = None
    ridge: float | tuple[float, float] = 0.0
    choice: Choice | tuple[Choice | None, Choice | None] | None = None
    deflation: str | None = None
    max_iter: int = 1000
    scale: bool = True

    _function = staticmethod(sparse_cca)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: MatrixLike, y: MatrixLike, sample_weight: ArrayLike | None = None) -> Self:
        """Find the pairs.

        {weighted_sides}
        self

        {halves_example}
        >>> model.components_.shape, model.y_components_.shape
        ((1, 32), (1, 32))
        """
        names_x, names_y = column_names(X), column_names(y)
        weight = None if sample_weight is None else np.asarray(joined(X, sample_weight, "sample_weight"))
        rows, other = self._training(X, joined(X, y, "y"), multi_output=True, y_numeric=True)
        self._flat = other.ndim == 1
        other = self._second(other, rows.dtype)
        p, q = rows.shape[1], other.shape[1]
        of_x, of_y = pair_of(self.choice, "choice")
        x_choice = named("x", lambda: by_place({"choice": of_x}, names_seen(self), p)["choice"])
        y_choice = named("y", lambda: by_place({"choice": of_y}, names_y, q)["choice"])
        result = sparse_cca(
            rows, other, self.n_components,
            **options_of(self, sparse_cca) | {"choice": (x_choice, y_choice)}, sample_weight=weight,
        )  # fmt: skip
        self.result_: SparseCCAResult = replace(result, names_x=names_x, names_y=names_y)
        self.components_: AnyArray = result.loadings_x.T
        self.y_components_: AnyArray = result.loadings_y.T
        self.mean_: AnyArray | None = result.mean_x
        self.scale_: AnyArray | None = result.scale_x
        self.y_mean_: AnyArray | None = result.mean_y
        self.y_scale_: AnyArray | None = result.scale_y
        self.correlations_: Array = result.correlations
        self.n_components_: int = result.n_components
        self._set_iterations(result)
        T, mean = np.asarray(result.scores_x, np.float64), np.asarray(result.mean_y)
        W = T if weight is None else T * weight[:, None]
        if is_row_blocks(other):
            products = other.reduced(sum_parts, _transposed_product, each=other.split(W))
        else:
            products = _transposed_product(other, W)
        together = products.T - np.outer(W.sum(axis=0), mean)
        self._regression = np.linalg.pinv(T.T @ W) @ together
        return self

    @staticmethod
    def _second(y: Any, dtype: Any) -> Any:
        """Return the other side as a matrix."""
        if is_row_blocks(y):
            return y
        y = y.reshape(-1, 1) if y.ndim == 1 else y
        return y if y.dtype.kind == "f" else y.astype(dtype)

    def transform(self, X: MatrixLike, y: MatrixLike | None = None) -> Any:
        """Scores of the rows of X, and of y if given.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, p)
        y : array-like or sparse matrix of shape (m, q) or (m,), optional

        Returns
        -------
        ndarray of shape (m, r), or a pair of them

        {halves_example}
        >>> scores, y_scores = model.transform(X[:5], y[:5])
        >>> scores.shape, y_scores.shape
        ((5, 1), (5, 1))
        """
        return self._transformed(X) if y is None else self._both(X, y)

    def _transformed(self, X: Any) -> AnyArray:
        """Return scores as an array, whatever container `set_output` asks for."""
        return scores(self._new(X), self.components_.T, self.mean_, self.scale_)

    def _both(self, X: Any, y: Any) -> tuple[AnyArray, AnyArray]:
        """Return the scores of both sides."""
        own = self._new(X)
        y = aligned(joined(X, y, "y"), self.result_.names_y, "y")
        y = self._second(second_side(y), own.dtype)
        check_shape(y, "y", own.shape[0], self.y_components_.shape[1])
        return self.result_.transform(own, y)

    def fit_transform(self, X: MatrixLike, y: MatrixLike, sample_weight: ArrayLike | None = None) -> AnyArray:
        """Fit the model and return the scores of the rows of X.

        {weighted_sides}
        ndarray of shape (n, r)

        {halves_example}
        >>> model.fit_transform(X, y).shape
        (1797, 1)
        """
        return self.fit(X, y, sample_weight).transform(X)

    def predict(self, X: MatrixLike) -> Array:
        """Predict y from the scores of X, by least squares.

        {rows_to}
        ndarray of shape (m, q), or (m,) if y had one dimension in the fit

        {halves_example}
        >>> model.predict(X[:5]).shape
        (5, 32)
        """
        out = self._transformed(X) @ self._regression + self.y_mean_
        return out[:, 0] if self._flat else out

    def score(self, X: MatrixLike, y: MatrixLike) -> float:
        """Mean correlation of the pairs of scores, for rows of X and y.

        A pair counts as negative if its correlation has the opposite sign from that in the training data.

        {two_sides}
        float

        {halves_example}
        >>> round(model.score(X, y), 1)
        0.7
        """
        if y is None:
            raise ValueError("score needs y, the other side of the pairs")
        pairs = [unit_columns(np.asarray(S, np.float64)) for S in self._both(X, y)]
        U, V = (unit_columns(S - S.mean(axis=0)) for S in pairs)
        found = (U * V).sum(axis=0)
        return float(found.mean()) if len(found) else 0.0


def _transposed_product(rows: Any, W: Array) -> Array:
    """Return X'W."""
    return np.asarray(rows.T @ W)
