"""From the caller's matrix to the operator that solvers see.

The matrix is not copied, except for the entries of dense data that are nearly all zero.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from .._labels import columns_of, joined, matched, symmetric
from .._limits import CALLABLE_ORDER, WORKING_SET_COST
from .._messages import counted, first_of, warn
from .._records import replaced
from .._types import AnyArray, Array, Names, ScreeningMode
from .._validation import (
    aligned,
    check_choice,
    check_flag_or_vector,
    column_names,
    has_only_products,
    is_row_blocks,
    is_sparse,
    require_memory,
)
from ..linalg.scaling import beyond_range
from ..supports.admissible import Supports
from . import gram
from .base import DataInMemory, DataStorage, Storage
from .block_operator import BlockData
from .callbacks import Products
from .dense import DenseData
from .field import Ground
from .partition import row_blocks
from .problem import Problem
from .sparse import CompressedData, Covariance, by_entries
from .statistics import Standardization

KINDS = ("data", "covariance")
UNASKED = object()
AS_DATA = (
    "X is symmetric, as a covariance or correlation matrix is, and is taken as {} samples; if it is such a "
    "matrix, say kind='covariance'"
)


def as_fitted(X: Any, kind: str, names: Names) -> Any:
    """Return X with its columns in the order of the fit; of a covariance, its rows too."""
    if kind == "covariance":
        return symmetric(X, names, "X", "the fit")
    X = aligned(X, names)
    return row_blocks(X) if is_row_blocks(X) else X


def in_order(X: Any, center: Any, scale: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
    """Return `center`, `scale` and `sample_weight` in the order of the columns and rows of X."""
    names = columns_of(X)
    return (
        matched(center, names, "center"), matched(scale, names, "scale"),
        joined(X, sample_weight, "sample_weight"),
    )  # fmt: skip


def as_problem(
    X: Any,
    kind: Any = UNASKED,
    center: Any = True,
    scale: Any = False,
    sample_weight: Any = None,
    *,
    definite: bool = True,
    screening: str | None = None,
    columnwise: bool = True,
    restrictable: bool = False,
    form: bool = False,
    missing: bool = False,
    choice: Supports | dict[str, Any] | None = None,
) -> Problem:
    """Validate the caller's matrix and wrap it as a `Problem`.

    Parameters
    ----------
    X, kind, center, scale, sample_weight
        As the caller of a public function gave them. A function without `kind` leaves it UNASKED: X are data.
    definite : bool
        Whether an indefinite covariance is refused.
    screening : str or None
        None for a function without that option. Then A is formed by default from data in blocks of rows.
    columnwise : bool
        Whether single columns of products will be asked for.
    restrictable : bool
        Whether the search can use a working set.
    form : bool
        Whether A as a matrix serves the search as well.
    missing : bool
        Whether dense data may have NaN entries.
    choice : Supports or dict
        What the caller knows about the variables, as a record or as the arguments of `Supports.checked`.
    """
    # Check the options, alone and together
    if screening is None:
        screening = "auto" if form and is_row_blocks(X) else "none"
    check_choice(screening, "screening", ScreeningMode)
    if screening == "working_set" and not restrictable:
        raise ValueError("screening='working_set' is not possible with this method or its options")
    covariance = kind is not UNASKED and check_choice(kind, "kind", KINDS) == "covariance"
    center, scale, sample_weight = in_order(X, center, scale, sample_weight)
    center, scale = check_flag_or_vector(center, "center"), check_flag_or_vector(scale, "scale")
    if covariance and not isinstance(center, bool):
        raise ValueError("a vector for center is for data; a covariance is about its own mean")
    if covariance and sample_weight is not None:
        raise ValueError("sample_weight is for data; the samples of a covariance are not known")
    # The storage, how it is standardized, and which supports are allowed
    storage = _storage(X, covariance, definite, missing)
    if kind == "data" and storage.resembles_covariance():
        warn(AS_DATA.format(storage.shape[0]), UserWarning)
    treatment = Standardization.checked(storage.shape, center, scale, sample_weight)
    supports = choice
    if not isinstance(supports, Supports):
        supports = Supports.checked(storage.shape[1], storage.names, **(supports or {}))
    if not supports.allowed.all():
        treatment = replaced(treatment, excluded=supports.excluded)
    if supports.shapes and screening == "working_set":
        raise ValueError(f"screening='working_set' cannot be combined with {supports.shaping}")
    # The operator, with what saves reading the data
    restrictable = restrictable and not supports.shapes
    problem = _wrapped(storage, treatment, screening, columnwise, restrictable, form)
    problem = replaced(problem, ground=Ground())
    if treatment.scale and treatment.deviation is None:
        _tell_constant(problem, treatment)
    data = None if problem.data is None else replaced(problem.data, supports=supports)
    return replaced(problem, supports=supports, data=data)


def _tell_constant(problem: Problem, treatment: Standardization) -> None:
    """Warn of constant columns, which no standard deviation divides, or of variables without variance."""
    constant = problem.variances == 0
    if constant.all():  # there is nothing to search in, which is told where a search finds none
        return
    if treatment.excluded is not None:
        constant &= ~treatment.excluded
    index = np.flatnonzero(constant).tolist()
    if index:
        which = first_of(repr(problem.names[j]) if problem.names else str(j) for j in index)
        warn(f"scale=True leaves {counted(len(index), 'constant column')} undivided: {which}", UserWarning)


def _wrapped(
    storage: Storage, treatment: Standardization, screening: str, columnwise: bool, restrictable: bool,
    form: bool,
) -> Problem:  # fmt: skip
    """Return the problem of a storage, with what saves products where that is asked for or pays."""
    if not (form and isinstance(storage, DataStorage) and storage.forms_gram(screening)):
        wanted = screening == "working_set"
        if isinstance(storage, DenseData) and columnwise and screening != "gram":
            storage.screening = "auto" if wanted else screening
        if restrictable and (wanted or screening == "auto"):
            return _searched_by_columns(storage, treatment, wanted)
        return storage.problem(treatment)
    if isinstance(storage, DenseData) and storage.small and treatment.sample_weight is None:
        storage = BlockData(storage.given)
    storage.form = screening
    problem = storage.problem(treatment)
    if isinstance(storage, DataInMemory) and problem.data is None:
        return replaced(problem, form=gram.keeps_digits(problem, storage.dense, screening))
    return problem


def _searched_by_columns(storage: Storage, treatment: Standardization, wanted: bool) -> Problem:
    """Return the problem, with an empty working set if that is wanted or pays."""
    if isinstance(storage, DenseData):
        storage = by_entries(storage)
    kind = storage.working_set
    if kind is None and wanted:
        raise ValueError("screening='working_set' needs data that have entries: leave it out")
    given = storage
    if wanted or storage.cost >= WORKING_SET_COST:
        storage = storage.by_columns()
    problem = storage.problem(treatment)
    screened = problem.operator.unscreened() is not problem.operator
    if wanted and problem.filled is not None:
        raise ValueError("screening='working_set' cannot be combined with X, which has NaN entries")
    if kind is None or problem.filled is not None:
        return problem
    if not wanted and (screened or problem.cost < WORKING_SET_COST):
        return problem
    working_set = kind(problem)
    working_set.reads += storage is not given
    working_set.asked = wanted
    return replaced(
        problem, working_set=working_set, screening=partial(working_set.report, problem.screening)
    )


def _storage(
    X: Any,
    covariance: bool,
    definite: bool,
    missing: bool,
) -> Storage:
    """Return the storage for the kind of matrix that X is."""
    if is_row_blocks(X):
        if not covariance:
            return BlockData(X)
        blocks = row_blocks(X)
        if blocks.summed:
            raise TypeError("X are moments of rows, which are taken as rows are: leave out kind='covariance'")
        X = blocks.whole()
    if has_only_products(X):
        products = Products(X, covariance)
        if not covariance or products.shape[1] > CALLABLE_ORDER:
            return products
        X = products.entries()
    if covariance:
        return Covariance(X, definite)
    return CompressedData(X) if is_sparse(X) else DenseData(X, missing)


# ---- data scaled by the sums of their rows and columns ------------------------------------------------


_Data = DenseData | CompressedData


def degree_problem(X: Any, *, center: bool) -> Problem:
    """Return the problem of `X_ij / sqrt((d_i + tau) (g_j + tau'))` for nonnegative X.

    d and g are the row and column sums, tau and tau' their means.
    """
    data, rows, columns = _sums(X)
    if not rows.any():
        raise ValueError("X has only zeros")
    weight = _weight(data, rows, float(rows.mean()))
    root = np.sqrt(columns + columns.mean())
    problem = _scaled(data, weight).problem(Standardization(len(rows), center, True, deviation=root))
    return replace(problem, degree_weight=weight, compressed=None, names=column_names(X), given=())


def row_shift(problem: Problem) -> float | None:
    """Return tau of a graph scaled by its degrees, the mean of d; None for other problems.

    The weights of its rows are `(d_i + tau)^(-1/2)`, with d the row sums.
    """
    weight = problem.degree_weight
    return None if weight is None else float(np.mean(weight.astype(np.float64) ** -2)) / 2


def degree_weight(X: Any, tau: float) -> AnyArray:
    """Return `(d_i + tau)^(-1/2)` for the rows of nonnegative X, with d the row sums."""
    data, rows, _ = _sums(X)
    return _weight(data, rows, tau)


def _weight(data: _Data, rows: Array, tau: float) -> AnyArray:
    """Return (rows + tau)^(-1/2), in the precision of the data."""
    return np.asarray(1 / np.sqrt(rows + tau), data.dtype)


def _sums(X: Any) -> tuple[_Data, Array, Array]:
    """Return the data, and the sums of their rows and columns."""
    require_memory(X, "scale='degree' needs")
    data = CompressedData(X) if is_sparse(X) else DenseData(X)
    matrix = data.matrix
    with beyond_range():
        rows, columns = (np.asarray(matrix.sum(axis=axis, dtype=np.float64)).ravel() for axis in (1, 0))
    if not (np.isfinite(rows).all() and np.isfinite(columns).all()):
        data.raise_not_finite()
        raise ValueError("the row and column sums of X exceed the number range")
    if (low := float(matrix.min())) < 0:
        raise ValueError(f"scale='degree' needs nonnegative entries, and X has {low:.6g}")
    return data, rows, columns


def _scaled(data: _Data, weight: AnyArray) -> _Data:
    """Return diag(weight) X, a copy."""
    if isinstance(data, DenseData):
        return DenseData(data.matrix * weight[:, None])
    X = data.matrix
    each = np.repeat(weight, np.diff(X.indptr)) if X.format == "csr" else weight[X.indices]
    return CompressedData(type(X)((X.data * each, X.indices, X.indptr), shape=X.shape))
