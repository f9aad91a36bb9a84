"""Clusters of samples that rest on few variables."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, replace
from typing import Any, Literal, Self

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from sklearn.base import ClusterMixin
from sklearn.utils.validation import check_is_fitted

from .._labels import joined
from .._types import AnyArray, Array, Index, MatrixLike, Metric, Names, RandomState, Weights
from .._validation import check_choice, check_sample_weight, column_names, default_cardinality, integer
from ..clustering.columns import WeightedResult, renumbered
from ..clustering.dissimilarity import sparse_dissimilarity
from ..clustering.kmeans import nearest_clusters, sparse_kmeans
from ..operators.moments import column_means
from .base import TakesSparse, as_rng, checked_input, estimator, options_of

Linkage = Literal["average", "complete", "single", "weighted"]


class _SparseClusters(ClusterMixin, TakesSparse):
    """What the estimators of clusters have in common."""

    l1_bound: float | None

    def _bound(self, p: int) -> float:
        return math.sqrt(default_cardinality(p)) if self.l1_bound is None else self.l1_bound

    def _set(self, result: Any, names: Names) -> None:
        self.result_: WeightedResult | None = replace(result, names=names)
        self.weights_: Array = result.weights
        self.n_iter_: int = result.n_iter
        self.objective_: float = result.objective


@estimator
class SparseKMeans(_SparseClusters):
    """K-means with few variables, which are chosen together with the clusters.

    The estimator calls `spcacore.sparse_kmeans`, which explains the parameters and cites the paper. If the
    variables have different units, put a `StandardScaler` before.

    Parameters
    ----------
    n_clusters : int, default 2
        With 1, all samples are in one cluster, and all weights are zero.
    l1_bound : float, optional
        Bound on the weights, in [1, sqrt(p)]. Default: the l1 norm of a unit vector of weights in which about
        sqrt(p) are equal and the others zero. `spcacore.sparse_kmeans_gap` chooses a bound from the data.
    n_init, max_iter
        As in `sparse_kmeans`.
    {random_state}

    Attributes
    ----------
    labels_ : ndarray of shape (n,)
        Clusters, numbered from 0 as they first occur.
    cluster_centers_ : ndarray of shape (n_clusters, p)
    weights_ : ndarray of shape (p,)
        Weights of the variables: nonnegative, and zero for the variables that are not used.
    objective_ : float
        Weighted sum of squares between clusters.
    n_iter_ : int
    result_ : spcacore.SparseKMeans
    {features}

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from spcacore.sklearn import SparseKMeans
    >>> wine = load_wine(as_frame=True)
    >>> model = make_pipeline(StandardScaler().set_output(transform="pandas"), SparseKMeans(3, l1_bound=2))
    >>> labels = model.fit_predict(wine.data)
    >>> model[-1].feature_names_in_[model[-1].weights_ > 0.3].tolist()
    ['total_phenols', 'flavanoids', 'od280/od315_of_diluted_wines']
    """

    n_clusters: int = 2
    _: KW_ONLY
    l1_bound: float | None = None
    n_init: int = 20
    max_iter: int = 100
    random_state: RandomState = None

    def fit(self, X: MatrixLike, y: object = None, sample_weight: Weights = None) -> Self:
        """Find the clusters of the rows of X.

        {fit}

        {clusters_example}
        >>> np.bincount(SparseKMeans(2, l1_bound=3).fit(X).labels_).tolist()
        [20, 10]
        """
        names, weight = column_names(X), joined(X, sample_weight, "sample_weight")
        rows = checked_input(self, X, least=min(2, integer(self.n_clusters, "n_clusters", 1)))
        if self.n_clusters == 1:
            weight = check_sample_weight(weight, rows.shape[0])
            self.labels_: Index = np.zeros(rows.shape[0], np.intp)
            self.cluster_centers_: AnyArray = column_means(rows, weight)[None].astype(rows.dtype, copy=False)
            self.weights_, self.objective_ = np.zeros(rows.shape[1], rows.dtype), 0.0
            self.n_iter_, self.result_ = 1, None
            return self
        options = options_of(self, sparse_kmeans) | {"l1_bound": self._bound(rows.shape[1])}
        result = sparse_kmeans(rows, **options, sample_weight=weight, rng=as_rng(self.random_state))
        self._set(result, names)
        self.labels_, self.cluster_centers_ = result.labels, result.centers
        return self

    def predict(self, X: MatrixLike) -> Index:
        """The cluster of the nearest center, in the weighted variables.

        {rows_to}
        ndarray of shape (m,)

        {clusters_example}
        >>> SparseKMeans(2, l1_bound=3).fit(X).predict(X[18:22]).tolist()
        [0, 0, 1, 1]
        """
        check_is_fitted(self)
        X = checked_input(self, X, reset=False)
        return nearest_clusters(X, self.cluster_centers_, self.weights_)


@estimator
class SparseHierarchical(_SparseClusters):
    """Hierarchical clustering by a dissimilarity that depends on few variables.

    The estimator calls `spcacore.sparse_dissimilarity`, which explains the parameters and cites the paper,
    and then `linkage` of SciPy.

    Parameters
    ----------
    n_clusters : int, default 2
    l1_bound : float, optional
        Bound on the weights, in [1, sqrt(p)]. Default: the l1 norm of a unit vector of weights in which about
        sqrt(p) are equal and the others zero. `spcacore.sparse_dissimilarity_gap` chooses a bound from the
        data.
    metric : {"sqeuclidean", "absolute"} or callable, default "sqeuclidean"
    linkage : {"average", "complete", "single", "weighted"}, default "complete"
    max_iter, tol
        As in `sparse_dissimilarity`.

    Attributes
    ----------
    labels_ : ndarray of shape (n,)
        Clusters, numbered from 0 as they first occur.
    linkage_ : ndarray of shape (n - 1, 4)
        The tree, in the format of `scipy.cluster.hierarchy.dendrogram`.
    weights_ : ndarray of shape (p,)
        Weights of the variables: nonnegative, and zero for the variables that are not used.
    objective_ : float
    n_iter_ : int
    result_ : spcacore.SparseDissimilarity
    {features}

    Examples
    --------
    >>> import numpy as np
    >>> from spcacore.sklearn import SparseHierarchical
    >>> X = np.random.default_rng(0).standard_normal((30, 200))
    >>> X[20:, :10] += 3
    >>> model = SparseHierarchical(2, l1_bound=3).fit(X)
    >>> np.bincount(model.labels_).tolist(), np.argsort(-model.weights_)[:3].tolist()
    ([20, 10], [4, 6, 9])
    """

    n_clusters: int = 2
    _: KW_ONLY
    l1_bound: float | None = None
    metric: Metric = "sqeuclidean"
    linkage: Linkage = "complete"
    max_iter: int = 200
    tol: float | None = None

    def fit(self, X: MatrixLike, y: object = None) -> Self:
        """Find the clusters of the rows of X.

        {fit_rows}

        {clusters_example}
        >>> np.bincount(SparseHierarchical(2, l1_bound=3).fit(X).labels_).tolist()
        [20, 10]
        """
        check_choice(self.linkage, "linkage", Linkage)
        if self.metric == "precomputed":
            raise ValueError(
                "metric='precomputed' has a row for each pair: call spcacore.sparse_dissimilarity"
            )
        names = column_names(X)
        rows = checked_input(self, X, least=2)
        n_clusters = integer(self.n_clusters, "n_clusters", 1, rows.shape[0])
        options = options_of(self, sparse_dissimilarity) | {"l1_bound": self._bound(rows.shape[1])}
        result = sparse_dissimilarity(rows, **options)
        self._set(result, names)
        self.linkage_: Array = linkage(result.dissimilarity.astype(np.float64), self.linkage)
        in_order = self.linkage_.copy()
        in_order[:, 2] = range(len(in_order))  # merges that tie would be undone together
        self.labels_: Index = renumbered(fcluster(in_order, n_clusters, "maxclust"))[0]
        return self
