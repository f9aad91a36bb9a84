"""Missing entries filled in, or dropped with their rows or columns, as --impute says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from .._messages import counted
from .table import Arguments, Table, UserError

__all__ = ["imputed"]
__dir__ = __all__.copy


def imputed(table: Table, args: Arguments) -> Table:
    """The table without missing entries, and a note of what was done; infinite entries stay."""
    if args.covariance:
        raise UserError("argument --impute: not with --covariance, whose entries are no samples")
    missing = _missing(table.matrix)
    if not len(missing):
        return table
    many = counted(len(missing), "missing entry")
    if args.impute == "mean":
        columns = np.unique(missing[:, 1])
        args.notes.append(f"{many} of {counted(len(columns), 'variable')} replaced by means")
        return replace(table, matrix=_with_means(table, missing))
    axis = 0 if args.impute == "drop-rows" else 1
    kept = np.setdiff1d(np.arange(table.matrix.shape[axis]), missing[:, axis])
    what = "sample" if axis == 0 else "variable"
    if not len(kept):
        raise UserError(f"argument --impute: every {what} has a missing entry, none is left")
    dropped = counted(table.matrix.shape[axis] - len(kept), what)
    args.notes.append(f"{dropped} dropped, with {many}")
    return (table.with_columns if axis else table.with_rows)(kept.tolist())


def _missing(X: Any) -> NDArray[np.intp]:
    """Row and column of each NaN."""
    if scipy.sparse.issparse(X):
        entries = X.tocoo()
        at = np.flatnonzero(np.isnan(entries.data))
        return np.stack([entries.row[at], entries.col[at]], axis=1).astype(np.intp)
    return np.argwhere(np.isnan(X)) if X.dtype.kind == "f" else np.empty((0, 2), np.intp)


def _with_means(table: Table, missing: NDArray[np.intp]) -> Any:
    """A copy in which the mean of the rest of its column takes the place of each missing entry."""
    X: Any = table.matrix
    rows, columns = missing.T
    wanted, place = np.unique(columns, return_inverse=True)
    means = np.empty(len(wanted))
    for i, j in enumerate(wanted):
        x = X[:, [j]].toarray()[:, 0] if scipy.sparse.issparse(X) else np.asarray(X[:, j])
        known = x[~np.isnan(x)]
        if not len(known):
            name = table.variables()[j]
            raise UserError(f"argument --impute: variable {name} has no entry to take the mean of; drop it")
        with np.errstate(over="ignore"):
            means[i] = known.mean(dtype=np.float64)
    if not scipy.sparse.issparse(X):
        filled = np.array(X)
        filled[rows, columns] = means[place]
        return filled
    filled = X.copy()
    entry = np.flatnonzero(np.isnan(filled.data))
    major = np.searchsorted(filled.indptr, entry, side="right") - 1
    column = filled.indices[entry] if filled.format == "csr" else major
    filled.data[entry] = means[np.searchsorted(wanted, column)]
    return filled
