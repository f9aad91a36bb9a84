"""Match arguments that have labels: entries go together by their labels, or by place where one has none.

Labels are the names of columns, the index of a dataframe or series of pandas, and the coordinates of a
DataArray of xarray. Names are compared as strings, because results keep them so. Numbers 0, 1, ... beside
other labels count as no labels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Sequence
from typing import Any

import numpy as np

from ._messages import first_of
from ._types import AnyArray, Index, Names

_BY_PLACE = "; what goes together by place has no labels, as to_numpy() gives it"


def columns_of(X: Any) -> Names:
    """Return the names of the columns of a table or of row blocks; None if there are none."""
    if hasattr(X, "__row_blocks__"):
        return X.names  # type: ignore[no-any-return]
    if isinstance(X, (np.ndarray, type)) or not hasattr(X, "__array__"):
        return None
    if has_coordinates(X):
        columns = _coordinates(X, 1)
    else:  # pyarrow has names, and its `columns` are the data
        columns = getattr(X, "column_names" if hasattr(type(X), "column_names") else "columns", None)
    return None if columns is None or callable(columns) else tuple(map(str, columns))


def row_labels(x: Any) -> Any:
    """Return the index of a dataframe, series or DataArray in memory; None if there is none."""
    if has_coordinates(x):
        return _coordinates(x, 0)
    index = getattr(x, "index", None)
    return index if hasattr(index, "get_indexer") else None


def has_coordinates(x: Any) -> bool:
    """Whether x is a DataArray: a dataframe has its columns as attributes, and its type has none of them."""
    return hasattr(type(x), "indexes")


def _coordinates(x: Any, axis: int) -> Any:
    """Return the index of one dimension of a DataArray; None if it has none."""
    return x.indexes.get(x.dims[axis]) if x.ndim > axis else None


def matched(value: Any, labels: Any, name: str, of: str = "the variables of X") -> Any:
    """Return `value` with its rows in the order of `labels`; unchanged if one of the two has no labels.

    `labels` are names, or an index as `row_labels` returns it. `name` and `of` are words for errors.
    """
    own = None if labels is None else row_labels(value)
    if own is None or (not isinstance(labels, tuple) and own.equals(labels)):
        return value
    wanted = labels if isinstance(labels, tuple) else tuple(labels)
    order = _order(tuple(map(str, own)) if isinstance(labels, tuple) else tuple(own), wanted, name, of)
    if order is None:
        return value
    if value.ndim == 1 and not hasattr(value, "iloc"):
        value = value.to_numpy()  # a DataArray of pandas' strings cannot be indexed
    return getattr(value, "iloc", value)[order]


def symmetric(value: Any, names: Names, name: str, of: str = "the variables of X") -> Any:
    """Return a symmetric matrix with its rows in the order of its columns, and both in that of `names`."""
    columns = columns_of(value)
    if columns is None:
        return value
    rows = row_labels(value)
    if rows is not None and len(rows) == len(columns) and not _counts(tuple(rows)):
        value = matched(value, columns, name, f"the columns of {name}")
    order = None if names is None else _order(columns, names, name, of)
    if order is None:
        return value
    return value.iloc[order, order] if hasattr(value, "iloc") else np.asarray(value)[np.ix_(order, order)]


def reordered(values: AnyArray, own: Any, names: Names, name: str) -> AnyArray:
    """Return an array whose rows have `own` names in the order of `names`; unchanged if there are none."""
    order = (
        None if own is None or names is None else _order(tuple(own), names, name, "the variables of X", "")
    )
    return values if order is None else values[order]


def joined(x: Any, y: Any, name: str) -> Any:
    """Return `y`, whose rows belong to the rows of x, in their order."""
    return matched(y, row_labels(x), name, "the rows of X")


def same_columns(X: Any, names: tuple[str, ...]) -> Any:
    """Return a dataframe with its columns in the order of `names`; unchanged unless it has exactly these."""
    given = columns_of(X)
    if given is None or given == names or len(given) != len(names) or set(given) != set(names):
        return X
    return aligned_columns(X, [given.index(name) for name in names], "X")


def aligned_columns(X: Any, order: Sequence[int], name: str) -> Any:
    """Return a dataframe with its columns in this order."""
    if hasattr(X, "iloc") or has_coordinates(X):
        return getattr(X, "iloc", X)[:, order]
    if hasattr(X, "select"):  # polars, pyarrow
        own = list(getattr(X, "column_names", X.columns))
        return X.select([own[j] for j in order])
    raise ValueError(f"{name} has its columns in another order than the fit")


def _order(
    own: tuple[Hashable, ...], wanted: tuple[Hashable, ...], name: str, of: str, advice: str = _BY_PLACE
) -> Index | None:
    """Return the place of each wanted label among its own; None if they go together by place."""
    if own == wanted or (_counts(own) and _counts(wanted)):
        return None
    place = {label: i for i, label in enumerate(own)}
    if (_counts(own) or _counts(wanted)) and place.keys().isdisjoint(wanted):
        return None
    wrong = wrong_labels(own, wanted)
    if wrong:
        raise ValueError(f"{name} must have the labels of {of}, in any order; it is {wrong}{advice}")
    return np.array([place[label] for label in wanted], np.intp)


def wrong_labels(own: Collection[Hashable], wanted: Collection[Hashable]) -> str:
    """Return words for labels that are missing, unknown or repeated; empty if there are none."""
    there, known = set(own), set(wanted)
    missing = [label for label in wanted if label not in there]
    unknown = [label for label in own if label not in known]
    twice = [label for label, n in (Counter(own) | Counter(wanted)).items() if n > 1 and label in known]
    return ", ".join(
        f"{what} {first_of(map(repr, some))}"
        for what, some in (("without", missing), ("with the unknown", unknown), ("with more than one", twice))
        if some
    )


def _counts(labels: tuple[Hashable, ...]) -> bool:
    """Whether labels are 0, 1, ..., as they are if none were given."""
    return all(str(label) == str(i) for i, label in enumerate(labels))
