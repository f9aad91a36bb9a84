"""Sparse linear discriminant analysis: directions of few variables that separate classes.

With classes c of proportions pi_c, means m_c and m = sum pi_c m_c, the scatters between and within are

    S_b = sum pi_c (m_c - m)(m_c - m)'      S_w = sum pi_c/n_c sum_{i in c} (x_i - m_c)(x_i - m_c)'

and a direction solves `max x'S_b x / x'B x`, `B = (1 - a) S_w + a diag(S_w)`, with few nonzeros. For more
than 1024 variables both scatters stay as the rows that they are products of.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._labels import joined, matched
from .._limits import PRIOR_SUM, SPAN
from .._messages import counted
from .._records import filled, frozen_record
from .._types import AnyArray, Array, Index, MatrixLike, Weights
from .._validation import (
    aligned,
    check_sample_weight,
    framed,
    integer,
    number,
    real_array,
    without_label,
)
from ..choice import Choice
from ..linalg.eigen import whitening
from ..linalg.scaling import beyond_range
from ..methods import RatioSearch
from ..operators.transform import scores
from ..progress import Callback, check_callback
from .eigen import DirectionsResult, check_options, directions
from .pencil import Form, Pencil, Unbounded
from .scatter import Scatter


@filled(
    {
        "rows": "Parameters\n----------\nX : array-like or sparse matrix of shape (m, p)",
        "example": """\
Examples
--------
>>> import numpy as np, spcacore
>>> X, y = np.random.default_rng(0).standard_normal((90, 20)), np.repeat([0, 1, 2], 30)
>>> X[:, :3] += 3 * np.eye(3)[y]
>>> result = spcacore.sparse_lda(X, y, cardinality=3)""",
    }
)
@frozen_record(kw_only=True)
class SparseLDAResult(DirectionsResult):
    """Sparse discriminant directions.

    Attributes
    ----------
    loadings : ndarray of shape (p, r)
        Columns of unit 2-norm; in each, the entry of largest magnitude is positive.
    scalings : ndarray of shape (p, r)
        The same directions, scaled to unit variance within classes (after shrinkage): `x'Bx = 1`. `transform`
        uses these.
    values : ndarray of shape (r,)
        The ratio `x'S_b x/x'Bx` of each direction.
    upper_bound : ndarray of shape (r,) or None
        Upper bounds on the deflated values, as in `SparseEigenResult`.
    cardinality : ndarray of shape (r,), int
    classes : ndarray of shape (c,)
        The labels, ascending.
    priors : ndarray of shape (c,)
    means : ndarray of shape (c, p)
        The mean of each class.
    mean : ndarray of shape (p,)
        `sum pi_c m_c`.
    centroids : ndarray of shape (c, r)
        The means, transformed.
    metric : ndarray of shape (r, r)
        `scalings' B scalings`: the covariance, within classes, of the scores that `transform` gives.
    shrinkage : float
    n_iter : ndarray of shape (r,), int
    converged : ndarray of shape (r,), bool
    method, deflation : str
    names : tuple of str or None
        Names of the variables, if the input had any.

    {example}
    >>> result.loadings.shape, result.centroids.shape
    ((20, 2), (3, 2))
    """

    scalings: AnyArray
    classes: AnyArray
    priors: Array
    means: AnyArray
    mean: AnyArray
    centroids: Array
    metric: Array
    shrinkage: float

    def transform(self, X: MatrixLike) -> AnyArray:
        """Discriminant scores `(X - mean) @ scalings`.

        {rows}

        Returns
        -------
        ndarray of shape (m, r), or a dataframe with the index of X where X is one of pandas or polars

        {example}
        >>> result.transform(X[:5]).shape
        (5, 2)
        """
        return framed(X, self._scores(X))

    def _scores(self, X: Any) -> AnyArray:
        return scores(aligned(X, self.names), self.scalings, self.mean, None)

    def decision_function(self, X: MatrixLike) -> Array:
        """`log pi_c - d^2/2`, d the distance to each centroid in the discriminant space.

        Distances are in the metric of the scatter within classes, `d^2 = z' metric^-1 z`.

        {rows}

        Returns
        -------
        ndarray of shape (m, c)

        {example}
        >>> result.decision_function(X[:5]).shape
        (5, 3)
        """
        values, vectors = np.linalg.eigh(self.metric)
        root = whitening(values, vectors, values > SPAN * values[-1])
        z = self._scores(X).astype(np.float64) @ root
        apart = z[:, None, :] - (self.centroids @ root)[None]
        return np.log(self.priors) - 0.5 * np.einsum("ijk,ijk->ij", apart, apart)

    def predict(self, X: MatrixLike) -> AnyArray:
        """The class of largest `decision_function`: the nearest centroid, adjusted for the priors.

        {rows}

        Returns
        -------
        ndarray of shape (m,)

        {example}
        >>> result.predict(X[::30]).tolist()
        [0, 1, 2]
        """
        return self.classes[np.argmax(self.decision_function(X), axis=1)]

    def score(self, X: MatrixLike, y: ArrayLike) -> float:
        """The share of rows that are classified as in y.

        {rows}
        y : array-like of shape (m,)

        Returns
        -------
        float

        {example}
        >>> result.score(X, y) > 0.9
        True
        """
        predicted = self.predict(X)
        labels = np.asarray(joined(X, y, "y"))
        if labels.shape != predicted.shape:
            raise ValueError(f"y has shape {labels.shape} for {counted(len(predicted), 'row')}")
        return float(np.mean(predicted == labels))

    def _facts(self) -> list[str]:
        classes = counted(len(self.classes), "class")
        return [classes, *self._sizes("direction"), f"shrinkage={self.shrinkage:.3g}"]


def sparse_lda(
    X: MatrixLike, y: ArrayLike, n_components: int | None = None,
    cardinality: int | ArrayLike | None = None, *,
    priors: ArrayLike | None = None, shrinkage: float | str | None = "auto",
    options: RatioSearch | None = None, choice: Choice | None = None,
    deflation: str = "projection", certify: bool = False,
    sample_weight: Weights = None, callback: Callback | None = None,
) -> SparseLDAResult:  # fmt: skip
    """Sparse linear discriminant analysis.

    Searches `max x'S_b x / x'B x` over x with at most `cardinality` nonzeros, where S_b is the scatter
    between the class means and B the scatter within classes, shrunk if requested. It then repeats the search
    in the deflated pencil for further directions. Neither matrix is formed for more than 1024 variables,
    unless X is in blocks of rows.

    Parameters
    ----------
    X : array-like of shape (n, p), sparse matrix, RowBlocks or dask array
        One row per sample. float32 stays float32. Dense data are copied once, centered within classes; CSR
        and CSC matrices are centered implicitly. Blocks of rows, of at most 16,384 variables, are read three
        times, or four to choose the shrinkage, and the scatter within classes is formed; y must be in memory.
    y : array-like of shape (n,)
        Class labels, of at least two classes.
    n_components : int, optional
        r, in [1, classes - 1]. Default: classes - 1.
    cardinality : int or sequence of r ints, optional
        k, in [1, p]. Default: the square root of the number of variables, rounded up.
    priors : array-like of shape (c,), optional
        Proportions of the classes, in the order of the sorted labels, positive and with sum 1. They weight
        the classes in both scatters and in the classification. Default: the proportions in y.
    shrinkage : "auto", float or None, default "auto"
        a in [0, 1]: `B = (1 - a) S_w + a diag(S_w)`, so that the units of X do not matter. "auto": a by the
        formula of Ledoit and Wolf, for variables of unit variance within classes, and of all variables, those
        that `choice` excludes too. None means 0, which is enough for few variables and many samples; if n -
        classes + 1 or more variables may enter, B must be shrunk. A variable that is constant within each
        class gets the entry in diag(S_w) with which it would separate the classes as well as the best of the
        other variables.
    options, choice, deflation, certify, callback
        As in `sparse_eigen`.
    sample_weight : array-like of shape (n,), optional
        How many samples each row stands for, at least 0: the result is the same as if each row were repeated
        that often. The sum must be above 1. Classes without weight are left out.

    Returns
    -------
    SparseLDAResult
        `loadings` (p, r), `scalings` (p, r), `values` (r,), `centroids` (c, r), ..., with `transform`,
        `predict`, `decision_function` and `score`.

    Raises
    ------
    ValueError
        For NaN, infinite or empty input, a single class, more directions than classes - 1, priors that are
        not proportions, a direction without scatter within classes, or an option out of range.
    TypeError
        For input that is not real numbers, or an option of the wrong type.

    References
    ----------
    B. Moghaddam, Y. Weiss and S. Avidan (2006). Generalized spectral bounds for sparse LDA. Proceedings of
    the 23rd International Conference on Machine Learning, 641-648.

    O. Ledoit and M. Wolf (2004). A well-conditioned estimator for large-dimensional covariance matrices.
    Journal of Multivariate Analysis 88, 365-411, section 3.2.

    Examples
    --------
    >>> import numpy as np, spcacore
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["a", "b", "c"], 30)
    >>> X = rng.standard_normal((90, 500))
    >>> X[y == "b", :2] += 3
    >>> X[y == "c", 2:4] -= 3
    >>> result = spcacore.sparse_lda(X, y, cardinality=4)
    >>> np.unique(np.flatnonzero(result.loadings) // 2)
    array([0, 1, 2, 3])
    >>> round(result.score(X, y), 2)
    0.94
    """
    # Rows, labels and options
    data = Scatter(X)
    names = data.blocks.names
    weight = check_sample_weight(joined(X, sample_weight, "sample_weight"), data.n)
    labels, classes, sizes = _labels(joined(X, y, "y"), data.n, weight)
    c = len(classes)
    if n_components is not None:
        n_components = integer(n_components, "n_components", 1)
        if n_components > c - 1:
            raise ValueError(f"n_components must be at most classes - 1 = {c - 1}, not {n_components}")
    r = min(c - 1, data.p) if n_components is None else n_components
    proportions = _priors(priors, sizes, classes)
    asked = check_options(data.p, names, cardinality, r, choice, options, deflation, certify)
    if isinstance(shrinkage, str):
        if shrinkage != "auto":
            raise ValueError(f"shrinkage must be None, 'auto' or a number in [0, 1], not {shrinkage!r}")
    elif shrinkage is not None:
        shrinkage = number(shrinkage, "shrinkage", 0, 1)
    hook = check_callback(callback)

    # Both scatters
    means = data.means(labels, c, weight)
    mean = proportions @ means
    apart = means - mean
    apart[:, (means == means[0]).all(axis=0)] = 0  # rounding of the mean must not count
    B, coefficient = data.within(
        labels, means, np.sqrt(proportions / sizes), weight, proportions @ apart**2,
        None if shrinkage == "auto" else float(shrinkage or 0.0), float(sizes.sum()),
    )  # fmt: skip
    A = Form.of_rows(np.sqrt(proportions)[:, None] * apart)
    # Directions
    try:
        advice = "use shrinkage" if shrinkage is None else "use more shrinkage"
        pencil = Pencil(A, B, dtype=data.dtype, advice=advice)
        found = directions(pencil, asked, hook)
    except Unbounded as error:
        raise ValueError(f"B is the scatter within classes, and {error}") from None
    # What classification needs, in the caller's units
    scalings = found.loadings / found.metric_norm
    used = np.flatnonzero(scalings.any(axis=1))
    metric = scalings[used].T @ B.block(used) @ scalings[used]
    centroids = apart @ scalings
    with beyond_range():
        back = np.ldexp(1.0, data.exponent)
        given = (scalings / back).astype(data.dtype)
        if not np.isfinite(given).all():
            raise ValueError(
                f"X varies too little: its scalings exceed the number range of {data.dtype}; rescale X"
            )
        of_pencil = {field.name: getattr(found, field.name) for field in fields(DirectionsResult)}
        return SparseLDAResult(
            **of_pencil | {"names": names}, scalings=given, classes=classes, priors=proportions,
            means=(means * back).astype(data.dtype), mean=(mean * back).astype(data.dtype),
            centroids=centroids, metric=metric, shrinkage=coefficient,
        )  # fmt: skip


def _labels(y: Any, n: int, weight: Array | None) -> tuple[Index, AnyArray, Array]:
    """Return the class of each row, -1 for rows without weight, the labels of classes, and their samples."""
    labels = np.asarray(y)
    if labels.ndim != 1:
        raise ValueError(f"y must have 1 dimension, not shape {labels.shape}")
    if len(labels) != n:
        raise ValueError(f"y has {counted(len(labels), 'label')} for {counted(n, 'row')} of X")
    missing = without_label(labels)
    if missing:
        raise ValueError(f"y has labels that are missing, the first at {missing[0]}")
    try:
        every, numbers = np.unique(labels, return_inverse=True)
    except TypeError:
        raise TypeError("y has labels of several types that cannot be sorted") from None
    sizes = np.bincount(numbers, weight).astype(np.float64)
    some = sizes > 0
    place = np.where(some, np.cumsum(some) - 1, -1)
    numbers, classes = place[numbers], every[some]
    if len(classes) < 2:
        of = "" if weight is None else " among the rows of positive sample_weight"
        raise ValueError(f"y has one class only{of}, {classes[0]}; at least two are needed")
    if weight is not None:
        numbers[weight == 0] = -1
    return numbers.astype(np.intp), classes, sizes[some]


def _priors(priors: Any, sizes: Array, classes: AnyArray) -> Array:
    """Return the proportions of the classes, checked, or those in the data."""
    if priors is None:
        return sizes / sizes.sum()
    given = matched(priors, tuple(map(str, classes)), "priors", "the classes")
    given = real_array(given, "priors", ndim=1).astype(np.float64)
    if len(given) != len(sizes):
        raise ValueError(f"priors has {counted(len(given), 'entry')} for {counted(len(sizes), 'class')}")
    if not (given > 0).all() or abs(given.sum() - 1) > PRIOR_SUM:
        raise ValueError(f"priors must be positive with sum 1, not {given.tolist()}")
    return given / given.sum()
