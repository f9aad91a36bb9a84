"""What docs/examples/dendrograms.py says holds, and its picture can be drawn."""

from functools import cache

import numpy as np
import pytest
from extras import drawn, example, optional
from oracles import data_file
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import pdist, squareform

import spcacore

pytestmark = pytest.mark.slow  # `nox -s docs` runs them
adjusted_rand_score = optional("sklearn.metrics", "adjusted_rand_score")
silhouette_score = optional("sklearn.metrics", "silhouette_score")


@cache
def golub():
    module = example("dendrograms")
    X, genes, labels = module.data(data_file("golub_leukemia.npz"))
    return module, X, labels, module.analyze(X, genes, labels, n_jobs=2)


def test_ten_genes_tell_the_leukemias_apart():
    module, X, labels, result = golub()
    assert X.shape == (72, 3571)
    assert result.gap.l1_bound == pytest.approx(2.64, abs=0.005)
    assert set(result.genes) == set(module.NAMES)
    assert sorted(result.after.branches.tolist()) == [[0, 21], [47, 4]]
    assert sorted(result.before.branches.sum(axis=1)) == [2, 70]
    few = spcacore.sparse_dissimilarity(X, result.gap.l1_bound).dissimilarity
    for one, D, index, width in (
        (result.before, pdist(X, "sqeuclidean"), -0.02, 0.17), (result.after, few, 0.78, 0.63)
    ):  # fmt: skip
        branch = fcluster(one.linkage, 2, "maxclust")
        assert one.rand_index == pytest.approx(adjusted_rand_score(labels, branch), abs=1e-12)
        assert one.rand_index == pytest.approx(index, abs=0.005)
        theirs = silhouette_score(squareform(D), labels, metric="precomputed")
        assert one.silhouette == pytest.approx(theirs, abs=1e-12)
        assert one.silhouette == pytest.approx(width, abs=0.005)


def test_other_cuts_and_linkages():
    _, X, labels, result = golub()
    six = fcluster(result.before.linkage, 6, "maxclust")
    assert sorted(np.bincount(six)[1:].tolist()) == [1, 1, 1, 1, 24, 44]
    index = {}
    for bound in (None, 2.64, 8.63):
        D = (
            pdist(X, "sqeuclidean")
            if bound is None
            else spcacore.sparse_dissimilarity(X, bound).dissimilarity
        )
        for method in ("average", "complete", "weighted"):
            branch = fcluster(linkage(D, method), 2, "maxclust")
            index[bound, method] = round(adjusted_rand_score(labels, branch), 2)
    assert index[None, "complete"] == 0.78
    assert index[2.64, "complete"] == 0.30
    assert {index[8.63, method] for method in ("average", "complete", "weighted")} == {0.78}
    assert result.gap.l1_bounds[5] == pytest.approx(8.63, abs=0.005)
    assert result.gap.cardinality[5] == 146


def test_picture():
    module, _, _, result = golub()
    drawn(module, result, ink=0.05)
