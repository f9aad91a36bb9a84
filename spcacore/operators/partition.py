"""Blocks of rows, from what the caller gives."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .._messages import refuse_no_array
from .._types import MatrixLike
from .._validation import check_shape, integer
from .blocks import RowBlocks, SlicedRows
from .row_sources import as_sliced, own_names


def row_blocks(
    X: MatrixLike,
    *,
    block_bytes: int | None = None,
    persist: bool | None = None,
    names: Iterable[str] | None = None,
) -> RowBlocks:
    """Data to be read one block of rows at a time, for `sparse_pca` and the other functions of (n, p) data.

    Each pass reads every row once. Memory holds one block, another that is read meanwhile, and at most 1 GB
    of columns of the covariance. With up to 3072 variables, one pass finds the covariance, and solvers need
    no other. With more, there is one pass for the statistics of the columns, and then a few for each
    component.

    Parameters
    ----------
    X : object with `shape`, `dtype` and slices of rows, or dask array, of shape (n, p)
        An `h5py.Dataset`, a `zarr.Array`, the `X` of a backed AnnData, or a memory map. Rows are read as
        ``X[i:j]``, dense, as a sparse matrix or as a dataframe. Also a dataframe, a table or a dataset
        of pyarrow, the path of a file or a folder of .npy or .parquet, a list of matrices or paths, one below
        the other, or a function that returns an iterator of blocks, which is called for each pass.
        Computations on a dask array or dask dataframe run where its
        blocks are stored, by the distributed client if there is one.
    block_bytes : int, optional
        Bytes of X in a block (of a sparse matrix in memory, bytes of its entries), rounded to whole chunks if
        the file has chunks. Default: 16 MB if these hold at least 16 p rows, else 128 MB, or an eighth of X
        if that is less. The blocks of a dask array are its chunks.
    persist : bool, optional
        For a dask array. True computes its blocks once and keeps them while a function runs; False computes
        them in every pass. Default: keep them if they fit in half of the free memory. Blocks that
        `X.persist()` has computed are used in place.
    names : sequence of str, optional
        Names of the variables. Default: the columns of a dataframe.

    Returns
    -------
    RowBlocks
        Pass it in place of X.

    Raises
    ------
    TypeError
        If X cannot be read by rows or is not real, or an option does not apply to this X.
    ValueError
        For an empty X, or a dask array of unknown shape. Also, while a function reads the data, for a block
        whose shape or type is not the one that X reports.

    References
    ----------
    The means and variances of blocks are merged as in T. F. Chan, G. H. Golub and R. J. LeVeque (1983).
    Algorithms for computing the sample variance. The American Statistician 37, 242-247.

    Examples
    --------
    >>> import numpy as np, spcacore
    >>> X, _ = spcacore.datasets.make_spiked(200, 50, cardinality=5, rng=0)
    >>> by_rows = spcacore.row_blocks(X, block_bytes=20_000)
    >>> by_rows
    RowBlocks(200 x 50, float64, 4 blocks)
    >>> result = spcacore.sparse_pca(by_rows, 1, cardinality=5)
    >>> np.abs(result.loadings - spcacore.sparse_pca(X, 1, cardinality=5).loadings).max() < 1e-12
    np.True_
    """
    if isinstance(X, RowBlocks):
        if block_bytes is not None or persist is not None or names is not None:
            raise TypeError("X has been made by row_blocks already: options must be given there")
        return X
    if getattr(X, "__dask_graph__", None) is not None:
        from . import dask

        if block_bytes is not None:
            raise TypeError("block_bytes is not for dask arrays, whose blocks are their chunks: see rechunk")
        return dask.DaskBlocks(X, persist, names)
    if persist is not None:
        raise TypeError("persist is for dask arrays; other data are read in every pass")
    X = as_sliced(X)
    refuse_no_array(X, "X")
    size = None if block_bytes is None else integer(block_bytes, "block_bytes", 1)
    return SlicedRows(X, size, own_names(X) if names is None else names)


def matching_blocks(X: Any, p: int) -> RowBlocks:
    """Return X in blocks of rows, and refuse any other number of columns than p."""
    blocks = row_blocks(X)
    check_shape(blocks, "X", "m", p)
    return blocks
