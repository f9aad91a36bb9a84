"""From the caller's matrix to the operator that solvers see; the matrix itself is never copied."""

from __future__ import annotations

from typing import Any

from .._messages import counted
from .._validation import check_bool, check_choice, integer, is_operator, is_row_blocks, is_sparse
from . import screening as _screening
from .callbacks import from_products
from .dense import from_dense
from .problem import Problem
from .sparse import from_sparse


def as_problem(
    X: Any,
    *,
    kind: str = "data",
    center: bool = True,
    scale: bool = False,
    n_features: int | None = None,
    definite: bool = True,
    screening: str = "none",
    missing: bool = False,
) -> Problem:
    """Validate the caller's matrix and wrap it.

    `definite` refuses an indefinite covariance; `missing` allows dense data to have NaN entries.
    """
    check_choice(screening, "screening", _screening.MODES)
    covariance = check_choice(kind, "kind", ("data", "covariance")) == "covariance"
    center, scale = check_bool(center, "center"), check_bool(scale, "scale")
    if n_features is not None:
        n_features = integer(n_features, "n_features", 1)
    if is_row_blocks(X):
        from . import partition

        if not covariance:
            return _of_width(n_features, partition.problem_of(X, center, scale))
        X = partition.row_blocks(X).whole()
    if is_sparse(X):
        problem = from_sparse(X, covariance, center, scale, definite)
    elif is_operator(X) or (callable(X) and not hasattr(X, "__array__")):
        problem = from_products(X, covariance, center, scale, n_features, definite)
    else:
        problem = from_dense(X, covariance, center, scale, definite, screening, missing)
    return _of_width(n_features, problem)


def _of_width(n_features: int | None, problem: Problem) -> Problem:
    if n_features not in (None, problem.p):
        raise ValueError(f"n_features is {n_features}, and X has {counted(problem.p, 'column')}")
    return problem
