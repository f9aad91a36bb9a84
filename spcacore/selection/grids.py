"""Values of the sparsity that are tried: of all components, or of each given the choices for earlier ones."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._limits import GRID_CARDINALITY, GRID_VALUES
from .._messages import counted
from .._validation import integer, number
from ..solvers.table import SPARSITY

__all__ = ["component_grids", "sparsity_values"]
__dir__ = __all__.copy


def sparsity_values(X: Any, parameter: str, given: dict[str, Any], options: dict[str, Any]) -> NDArray[Any]:
    """The values, from the sparsest to the densest."""
    _refuse_others(parameter, given)
    values = given[parameter]
    if values is None:
        if parameter == "penalty":
            raise TypeError("penalty must be given: a sequence of numbers")
        most = min(_variables(X, options.get("n_features")), GRID_CARDINALITY)
        if parameter == "l1_bound":
            return np.geomspace(1, math.sqrt(most), GRID_VALUES if most > 1 else 1)
        return np.unique(np.geomspace(1, most, GRID_VALUES).round().astype(np.intp))
    return _checked(values, parameter, parameter)


def component_grids(parameter: str, given: dict[str, Any], n_components: Any) -> list[NDArray[Any]] | None:
    """The values of each component where they are given by component, else None."""
    values = given[parameter]
    if isinstance(values, (str, bytes, dict)) or not np.iterable(values):
        return None
    grids = list(values)
    if not any(np.iterable(grid) and not isinstance(grid, (str, bytes)) for grid in grids):
        return None
    _refuse_others(parameter, given)
    if len(grids) != integer(n_components, "n_components", 1):
        raise ValueError(
            f"{parameter} has {counted(len(grids), 'grid')} for {counted(n_components, 'component')}"
        )
    return [_checked(grid, f"{parameter}[{t}]", parameter) for t, grid in enumerate(grids)]


def _refuse_others(parameter: str, given: dict[str, Any]) -> None:
    for name in SPARSITY:
        if name != parameter and given[name] is not None:
            raise TypeError(f"this method takes {parameter}, not {name}")


def _checked(values: Any, name: str, parameter: str) -> NDArray[Any]:
    if isinstance(values, (str, bytes, dict)) or not np.iterable(values) or getattr(values, "ndim", 1) != 1:
        raise TypeError(f"{name} must be a sequence of numbers, one for each choice, not {values!r}")
    values = list(values)
    if not values:
        raise ValueError(f"{name} is empty: there is nothing to choose from")
    whole = parameter == "cardinality"
    for i, value in enumerate(values):
        number(value, f"{name}[{i}]", 0)
        if whole:
            integer(value, f"{name}[{i}]", 1)
    array = np.array(values, np.intp if whole else np.float64)
    array = np.sort(array)[:: -1 if parameter == "penalty" else 1]
    if (array[1:] == array[:-1]).any():
        raise ValueError(f"{name} has a value twice: {array[1:][array[1:] == array[:-1]][0]:g}")
    return array


def _variables(X: Any, n_features: Any) -> int:
    """Their number; 1 for input that is not a matrix, which is an error later."""
    try:
        shape = np.shape(X)
    except ValueError:  # ragged
        return 1
    p = shape[1] if len(shape) == 2 else n_features
    return int(p) if isinstance(p, (int, np.integer)) and p > 0 else 1
