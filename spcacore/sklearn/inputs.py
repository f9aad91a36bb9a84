"""What the estimators are given: arrays by the checks of scikit-learn, blocks of rows as they are."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.validation import validate_data

from .._messages import counted
from .._validation import is_row_blocks
from ..operators.blocks import RowBlocks
from ..operators.partition import row_blocks

__all__ = ["checked_input", "second_side"]


def checked_input(estimator: Any, X: Any, *y: Any, reset: bool = True, least: int = 1, **checks: Any) -> Any:
    """X, or X and y, as `validate_data` has them; what is in blocks of rows is not computed.

    There must be so many rows at `least`. With `reset`, the estimator is fitted to X.
    """
    if not any(map(is_row_blocks, (X, *y))):
        return validate_data(
            estimator, X, *y, reset=reset, accept_sparse=("csr", "csc"), dtype=(np.float64, np.float32),
            ensure_min_samples=least, **checks,
        )  # fmt: skip
    matrix = {name: checks[name] for name in checks if name == "ensure_all_finite"}
    if is_row_blocks(X):
        rows = row_blocks(X)
        _check_columns(estimator, rows, reset)
        if rows.shape[0] < least:
            raise ValueError(
                f"X has {counted(rows.shape[0], 'row')}, and {type(estimator).__name__} needs {least}"
            )
        rows = rows.held() if reset else rows
    else:
        rows = checked_input(estimator, X, reset=reset, least=least, **matrix)
    if not y:
        return rows
    if y[0] is None:
        raise ValueError(f"{type(estimator).__name__} requires y to be passed, but the target y is None")
    several = checks.get("multi_output", False)
    other = second_side(y[0]) if several else column_or_1d(np.asarray(y[0]))
    if other.shape[0] != rows.shape[0]:
        raise ValueError(f"y has {counted(other.shape[0], 'row')}, and X has {rows.shape[0]}")
    return rows, other


def second_side(y: Any) -> Any:
    """A second matrix, or one variable; in blocks of rows where it is given so."""
    if is_row_blocks(y):
        return row_blocks(y) if getattr(y, "ndim", 2) == 2 else np.asarray(y)
    return check_array(y, accept_sparse=("csr", "csc"), ensure_2d=False, input_name="y")


def _check_columns(estimator: Any, rows: RowBlocks, reset: bool) -> None:
    """The number of columns and their names, as scikit-learn remembers and compares them."""
    p, names = rows.shape[1], rows.names
    if reset:
        estimator.n_features_in_ = p
        if names is None:
            estimator.__dict__.pop("feature_names_in_", None)
        else:
            estimator.feature_names_in_ = np.asarray(names, object)
        return
    if p != estimator.n_features_in_:
        raise ValueError(
            f"X has {counted(p, 'feature')}, but {type(estimator).__name__} is expecting "
            f"{counted(estimator.n_features_in_, 'feature')} as input"
        )
    known = getattr(estimator, "feature_names_in_", None)
    if names is not None and known is not None and names != tuple(known):
        raise ValueError(
            "The feature names should match those that were passed during fit, in the same order"
        )
