"""Annotated data: what is written, and that scanpy goes on from there."""

import warnings
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from oracles import centered

import spcacore

pytest.importorskip("anndata", reason="needs anndata")
import anndata

import spcacore.anndata as annotated

pytestmark = pytest.mark.filterwarnings("ignore")  # of anndata's and scanpy's own dependencies


@pytest.fixture
def X():
    return np.maximum(spcacore.datasets.make_spiked(80, 30, cardinality=6, variances=(9, 6), rng=0)[0], 0)


def made(X, **more):
    adata = anndata.AnnData(X, **more)
    adata.var_names = [f"g{j}" for j in range(X.shape[1])]
    return adata


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix, sp.csc_matrix])
def test_what_is_written(X, form):
    adata = made(form(X))
    assert annotated.sparse_pca(adata, 2, cardinality=6) is None
    expected = spcacore.sparse_pca(form(X), 2, cardinality=6)
    assert_array_equal(adata.varm["SPCs"], expected.loadings)
    assert_allclose(adata.obsm["X_spca"], centered(X) @ expected.loadings, atol=1e-10)
    written = adata.uns["spca"]
    assert_array_equal(written["variance"], expected.explained_variance)
    assert_array_equal(written["variance_ratio"], expected.explained_variance_ratio)
    assert written["params"]["cardinality"] == 6
    assert written["params"]["method"] == "tpower"
    table = written["variables"]
    for component, v in enumerate(expected.loadings.T, 1):
        ordered = np.argsort(-np.abs(v))[:6]
        rows = table[table["component"] == component]
        assert rows["variable"].tolist() == [f"g{j}" for j in ordered]
        assert_array_equal(rows["loading"], v[ordered])


def test_layers_masks_and_names(X):
    mask = np.arange(30) % 3 > 0
    adata = made(np.zeros_like(X), layers={"logs": sp.csr_matrix(X)})
    adata.var["highly_variable"] = mask
    adata.var["other"] = ~mask
    expected = spcacore.sparse_pca(X[:, mask], 2, cardinality=4).loadings
    copy = annotated.sparse_pca(adata, 2, cardinality=4, layer="logs", key_added="few", copy=True)
    assert "few" not in adata.obsm
    assert_allclose(copy.varm["few"][mask], expected, atol=1e-10)
    assert not copy.varm["few"][~mask].any()
    assert copy.obsm["few"].shape == (80, 2)
    assert copy.uns["few"]["params"]["mask_var"] == "highly_variable"
    weight = adata.obs.assign(weight=np.arange(80) % 3)["weight"]
    for option, kept in (("other", ~mask), (None, mask | True), (mask, mask)):
        known = {"sample_weight": weight[::-1], "choice": spcacore.Choice(include=[f"g{kept.argmax()}"])}
        model = partial(spcacore.sparse_pca, method=spcacore.TPower(), **known)
        annotated.sparse_pca(adata, 1, cardinality=3, layer="logs", mask_var=option, model=model)
        known = {"sample_weight": weight.to_numpy(), "choice": spcacore.Choice(include=[0])}
        found = spcacore.sparse_pca(X[:, kept], 1, 3, **known).loadings
        assert_allclose(adata.varm["SPCs"][kept], found, atol=1e-10)
        assert adata.uns["spca"]["params"]["method"] == "tpower"
    assert np.count_nonzero(adata.varm["SPCs"]) == 3


@pytest.mark.parametrize("masked", [False, True])
def test_a_matrix_in_a_file(tmp_path, X, masked):
    adata = made(sp.csr_matrix(X))
    if masked:
        adata.var["highly_variable"] = np.arange(30) < 20
    adata.write_h5ad(tmp_path / "x.h5ad")
    backed = anndata.read_h5ad(tmp_path / "x.h5ad", backed="r")
    try:
        annotated.sparse_pca(backed, 2, cardinality=5)
    finally:
        backed.file.close()
    expected = spcacore.sparse_pca(X[:, :20] if masked else X, 2, cardinality=5).loadings
    assert_allclose(backed.varm["SPCs"][: len(expected)], expected, atol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("masked", [False, True])
def test_with_all_genes_it_is_the_pca_of_scanpy(X, masked):
    """With every variable, the components are those that scanpy's PCA writes to the same kind of places."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scanpy = pytest.importorskip("scanpy", reason="needs scanpy")
    adata = made(sp.csr_matrix(X))
    if masked:
        adata.var["highly_variable"] = np.arange(30) < 20
    k = 20 if masked else 30
    annotated.sparse_pca(adata, 2, k, model=partial(spcacore.sparse_pca, method=spcacore.TPower(tol=1e-12)))
    scanpy.pp.pca(adata, n_comps=2, svd_solver="arpack")
    cosines = np.abs(np.sum(adata.varm["SPCs"] * adata.varm["PCs"], axis=0))
    assert_allclose(cosines, 1, atol=1e-4)
    assert_allclose(adata.uns["spca"]["variance"], adata.uns["pca"]["variance"], rtol=1e-4)
    assert_allclose(adata.uns["spca"]["variance_ratio"], adata.uns["pca"]["variance_ratio"], rtol=1e-4)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"layer": "no"}, KeyError, r"no layer 'no'; it has \[\]"),
        ({"mask_var": "no"}, KeyError, "no column 'no'"),
        ({"mask_var": np.ones(29, bool)}, ValueError, "30 variables"),
        ({"mask_var": np.zeros(30, bool)}, ValueError, "leaves no variable"),
        ({"mask_var": np.ones(30)}, ValueError, "mask_var must be one bool"),
        ({"mask_var": "mean"}, ValueError, "mask_var, the column 'mean', must be one bool"),
        ({"cardinality": 31}, ValueError, "cardinality"),
        ({"model": spcacore.spca}, TypeError, "is not for anndata.sparse_pca"),
        ({"model": partial(spcacore.sparse_pca, n_components=2)}, TypeError, "n_components of the model"),
        (
            {"model": partial(spcacore.sparse_pca, method=spcacore.PMD(2.0)), "cardinality": 3},
            TypeError,
            "one of the two",
        ),
    ],
)
def test_bad_arguments_leave_the_data(X, options, error, words):
    adata = made(X)
    adata.var["mean"] = X.mean(axis=0)
    with pytest.raises(error, match=words):
        annotated.sparse_pca(adata, 2, **options)
    assert not list(adata.obsm)
    assert not list(adata.uns)
    parts = dict.fromkeys(("X", "obsm", "varm", "uns", "var", "mod"))  # all that MuData has
    for other, words in (
        (X, "ndarray; spcacore.sparse_pca takes arrays"),
        (type("MuData", (), parts)(), "MuData; pass one of its mod"),
        (type("SpatialData", (), {"tables": {}})(), "SpatialData; pass one of its tab"),
    ):
        with pytest.raises(TypeError, match=f"must be an AnnData, not {words}"):
            annotated.sparse_pca(other, 2)


def test_words_for_annotated_data(X, tmp_path):
    adata = made(X)
    with pytest.raises(TypeError, match=r"type AnnData; pass adata to spcacore\.anndata\.sparse_pca"):
        spcacore.sparse_pca(adata)
    with pytest.raises(TypeError, match=r"spcacore.anndata.sparse_pca"):
        spcacore.sparse_pca(adata, 2)
    with pytest.raises(TypeError, match=r"use_highly_variable'.* as mask_var='highly_variable'"):
        annotated.sparse_pca(adata, 2, use_highly_variable=True)
    with pytest.raises(TypeError, match="after place 3 goes by name"):
        annotated.sparse_pca(adata, 2, 5, "logs")
    with pytest.raises(TypeError, match=r"go with it: model=partial\(sparse_pca, scale=True\)"):
        annotated.sparse_pca(adata, 2, scale=True)
    adata.write_h5ad(tmp_path / "cells.h5ad")
    view = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")[:, :10]
    told = []
    with pytest.raises(ValueError, match=r"a view of a file, .*to_memory\(\)"):
        annotated.sparse_pca(view, 2, model=partial(spcacore.sparse_pca, callback=told.append))
    assert not told
    inside = view.to_memory()
    annotated.sparse_pca(inside, 2, cardinality=3)
    expected = spcacore.sparse_pca(X[:, :10], 2, 3)
    assert_allclose(inside.varm["SPCs"], expected.loadings, atol=1e-10)
