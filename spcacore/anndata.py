"""Sparse components of annotated data, written to the places where scanpy looks for components."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ._labels import joined, matched
from ._messages import counted, with_advice
from ._rendering import leading
from ._types import AnyArray, Mask, ModelLike
from .models.components import sparse_pca as components_of
from .operators.partition import row_blocks
from .selection.model import SPARSITY_WORDS, as_model, takes_model

if TYPE_CHECKING:
    from anndata import AnnData

__all__ = ["sparse_pca"]
__dir__: Callable[[], list[str]] = __all__.copy


_INSIDE = {
    "MuData": "pass one of its modalities, mdata['rna']",
    "SpatialData": "pass one of its tables, sdata['table']",
}
_SAVED = str, int, float, np.ndarray, list, np.generic  # what .h5ad has a place for
_CARDINALITY = 50  # genes that a reader still takes in


@with_advice
@takes_model("sparse_pca")
def sparse_pca(
    adata: AnnData,
    n_components: int = 10,
    cardinality: int | ArrayLike | None = None,
    *,
    model: ModelLike = components_of,
    layer: str | None = None,
    mask_var: str | ArrayLike | None = "auto",
    key_added: str | None = None,
    copy: bool = False,
) -> AnnData | None:
    """Sparse principal components of an AnnData, written to the places that `scanpy.pp.pca` uses.

    Sparse matrices are centered implicitly and never made dense. A matrix in a file (``backed="r"``) is read
    in blocks of rows.

    Parameters
    ----------
    adata : AnnData
        n observations of p variables, normalized and log-transformed as for PCA.
    n_components : int, default 10
        r, as in `spcacore.sparse_pca`.
    cardinality : int or sequence of ints, optional
        The number of variables of each component. Default: 50, or all if there are fewer, unless the model
        says how sparse they are.
    model : function or functools.partial, optional
        `spcacore.sparse_pca`, the default, or a partial of it with its other options by name:
        ``partial(spcacore.sparse_pca, method=spcacore.PMD(5), scale=True)``.
    layer : str, optional
        The layer to read. Default: X.
    mask_var : str, array-like of bool of shape (p,), or None, default "auto"
        Which variables may be used: the name of a boolean column of `adata.var`, or an array. None: all.
        "auto": `adata.var["highly_variable"]` if it exists, else all. Indices and arrays of a `Choice` count
        only these variables; names do not depend on the mask.
    key_added : str, optional
        Where to write. Default: "X_spca", "SPCs" and "spca".
    copy : bool, default False
        Return a copy of `adata` with the components instead of writing into it.

    Returns
    -------
    AnnData or None
        The copy with ``copy=True``, else None. The function writes:

        * ``.obsm["X_spca"]``, ndarray of shape (n, r): the scores;
        * ``.varm["SPCs"]``, ndarray of shape (p, r): the loadings, zero for variables not in the mask;
        * ``.uns["spca"]``: "variance" and "variance_ratio" of each component given the earlier ones, arrays
          of shape (r,), "params", and "variables", a dataframe with a row for each loading that is not zero:
          "component" (from 1), "variable" and "loading", the largest magnitude of a component first.

        With `key_added`, all three are under that name.

    Raises
    ------
    KeyError
        For a layer or a column of `var` that does not exist.
    ValueError, TypeError
        For a mask of the wrong length or without any variable, and as in `spcacore.sparse_pca`.

    References
    ----------
    F. A. Wolf, P. Angerer and F. J. Theis (2018). SCANPY: large-scale single-cell gene expression data
    analysis. Genome Biology 19, 15.

    Examples
    --------
    >>> import anndata, numpy as np, spcacore.anndata
    >>> X, planted = spcacore.datasets.make_spiked(100, 60, cardinality=5, rng=0)
    >>> cells = anndata.AnnData(X)
    >>> spcacore.anndata.sparse_pca(cells, 2, 5)
    >>> cells.obsm["X_spca"].shape, np.count_nonzero(cells.varm["SPCs"], axis=0).tolist()
    ((100, 2), [5, 5])
    >>> cells.uns["spca"]["variables"].groupby("component")["variable"].agg(" ".join).tolist()
    ['3 1 4 2 0', '7 8 6 5 9']
    """
    # Options
    asked = as_model(model, "anndata.sparse_pca", ("sparse_pca",), n_components=None, refused={})
    if asked.has_defaults:
        raise TypeError("model must be spcacore.sparse_pca or a partial of it here, not an estimator")
    if asked.n_components is not None:
        raise TypeError("n_components of the model must be left out: give it to anndata.sparse_pca itself")
    if cardinality is not None and asked.given(*SPARSITY_WORDS):
        raise TypeError("cardinality takes the place of the sparsity of the model: give one of the two")
    kind, elsewhere = type(adata).__name__, "spcacore.sparse_pca takes arrays and dataframes"
    if kind in _INSIDE or not all(hasattr(adata, part) for part in ("X", "obsm", "varm", "uns", "var")):
        raise TypeError(f"adata must be an AnnData, not {kind}; {_INSIDE.get(kind, elsewhere)}")
    if layer is not None and layer not in adata.layers:
        raise KeyError(f"adata has no layer {layer!r}; it has {sorted(filter(None, adata.layers))}")
    if getattr(adata, "isbacked", False) and getattr(adata, "is_view", False) and not copy:
        raise ValueError(
            "adata is a view of a file, to which nothing can be written; pass adata.to_memory(), or the file "
            "as a whole with mask_var"
        )
    # The matrix, of the variables that may be used
    kept, name = _mask(adata, mask_var)
    target = adata.copy() if copy else adata
    X: Any = adata.X if layer is None else adata.layers[layer]
    if X is None:
        raise ValueError("adata has no X; use layer to say where its numbers are")
    if getattr(adata, "isbacked", False) and layer is None:
        X = row_blocks(X if kept is None else _Columns(X, kept))
    elif kept is not None:
        X = X[:, kept]
    # The components
    if cardinality is None and not asked.given(*SPARSITY_WORDS):
        cardinality = min(_CARDINALITY, X.shape[1])
    asked = asked.of(n_components)
    asked = asked if cardinality is None else asked.having(cardinality=cardinality)
    names = tuple(map(str, adata.var_names if kept is None else adata.var_names[kept]))
    weight = joined(adata.obs, asked.keywords.get("sample_weight"), "sample_weight")
    result = asked.by_place(names, len(names)).weighted(weight).fit(X)
    result = replace(result, names=names)
    loadings = result.loadings
    if kept is not None:
        loadings = np.zeros((len(kept), result.n_components), result.loadings.dtype)
        loadings[kept] = result.loadings
    # Where scanpy looks for them
    scores_key, loadings_key, key = (key_added,) * 3 if key_added else ("X_spca", "SPCs", "spca")
    params = {**asked.keywords, "layer": layer, "mask_var": name, "n_components": n_components,
              "method": result.method, "deflation": result.deflation}  # fmt: skip
    target.obsm[scores_key] = result.transform(X)
    target.varm[loadings_key] = loadings
    target.uns[key] = {
        "params": {word: value for word, value in params.items() if isinstance(value, _SAVED)},
        "variance": result.explained_variance,
        "variance_ratio": result.explained_variance_ratio,
        "variables": _variables(loadings, target.var_names),
    }
    return target if copy else None


def _variables(loadings: AnyArray, names: Any) -> Any:
    """Return a table with a row for each nonzero loading, by component and magnitude."""
    of_each = [leading(v) for v in loadings.T]
    component, place = np.repeat(range(len(of_each)), [*map(len, of_each)]), np.concatenate(of_each)
    columns = {"component": component + 1, "variable": names[place], "loading": loadings[place, component]}
    return type(names.to_frame())(columns)  # the DataFrame of pandas, which anndata has imported


class _Columns:
    """Some columns of a matrix in a file, which can be sliced by rows."""

    def __init__(self, X: Any, kept: Mask):
        self.X, self.index = X, np.flatnonzero(kept)
        self.shape, self.dtype = (X.shape[0], len(self.index)), X.dtype

    def __getitem__(self, rows: Any) -> Any:
        return self.X[rows][:, self.index]


def _mask(adata: Any, mask_var: Any) -> tuple[Mask | None, str | None]:
    """Return the variables that may be used, and the name of the column that says so."""
    if isinstance(mask_var, str) and mask_var == "auto":
        mask_var = "highly_variable" if "highly_variable" in adata.var else None
    if mask_var is None:
        return None, None
    name = None
    if isinstance(mask_var, str):
        name = mask_var
        if name not in adata.var:
            raise KeyError(f"adata.var has no column {name!r}, for mask_var")
        mask_var = adata.var[name]
    names = tuple(map(str, adata.var_names))
    mask = np.asarray(matched(mask_var, names, "mask_var", "the variables of adata"))
    p = len(adata.var_names)
    if mask.dtype != bool or mask.shape != (p,):
        raise ValueError(
            f"mask_var{'' if name is None else f', the column {name!r},'} must be one bool for each of "
            f"{counted(p, 'variable')}, not {mask.dtype} {mask.shape}"
        )
    if not mask.any():
        raise ValueError("mask_var leaves no variable")
    return mask, name
