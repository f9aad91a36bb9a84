"""Values of the sparsity that are tried: of all components, or of each given the choices for earlier ones."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._asked import SPARSITY
from .._limits import GRID_CARDINALITY, GRID_VALUES
from .._messages import counted, listed
from .._validation import integer, number
from .model import TOGETHER, Model

__all__ = ["Grid", "grid_of", "refuse_nested"]

Grid = tuple[str, NDArray[Any], list[NDArray[Any]] | None]


def refuse_nested(grid: Any) -> None:
    """Where one grid is of all components."""
    values = next(iter(grid.values()), ()) if isinstance(grid, Mapping) else grid
    if _is_nested(values):
        raise TypeError("grid must be a sequence of numbers, of all components; select_sparsity takes grids")


def _is_nested(grid: Any) -> bool:
    if isinstance(grid, (str, bytes)) or not np.iterable(grid):
        return False
    return any(np.iterable(one) and not isinstance(one, (str, bytes)) for one in grid)


def grid_of(model: Model, grid: Any, X: Any) -> Grid:
    """The parameter, its values the sparsest first, and those of each component if they differ."""
    parameter, name = None, "grid"
    if isinstance(grid, Mapping):
        if len(grid) != 1:
            named = listed([*map(str, grid)] or ["none"], "and")
            raise TypeError(f"grid must have the values of one parameter, not of {named}")
        ((parameter, grid),) = grid.items()
        name = f"grid[{parameter!r}]"
        _check_parameter(model, parameter)
    elif model.is_foreign:
        raise TypeError(
            f"grid of {model.name} must be a mapping that says of what, as in {{'alpha': [1, 2]}}"
        )
    for one in SPARSITY:
        if model.given(one):
            raise TypeError(
                f"{one} of the model must be left out: grid has the values of the sparsity to try"
            )
    parameter = model.parameter if parameter is None else parameter
    if grid is None:
        return parameter, _default(model, parameter, X), None
    if not _is_nested(grid):
        return parameter, _checked(grid, name, parameter), None
    parts = list(grid)
    if model.name in TOGETHER:
        raise TypeError(f"l1_bound of {model.name} is of all components together: give one grid")
    if len(parts) != integer(model.n_components, "n_components", 1):
        raise ValueError(
            f"{name} has {counted(len(parts), 'grid')} for {counted(model.n_components, 'component')}"
        )
    return parameter, np.zeros(1), [_checked(one, f"{name}[{t}]", parameter) for t, one in enumerate(parts)]


def _check_parameter(model: Model, parameter: Any) -> None:
    """Refuse what does not set the sparsity of this model."""
    takes = (model.parameter,) if model.name == "sparse_pca" else model.parameters
    if parameter not in takes:
        what = f"method {model.method.name!r}" if model.name == "sparse_pca" else model.name
        raise TypeError(f"grid[{parameter!r}]: {what} takes {listed(takes)}, not {parameter}")


def _default(model: Model, parameter: str, X: Any) -> NDArray[Any]:
    if parameter == "penalty":
        raise TypeError("grid must be given: a sequence of numbers, the penalties")
    most = min(_variables(X), GRID_CARDINALITY)
    if parameter == "l1_bound":
        r = model.n_components if model.name in TOGETHER else 1
        return np.geomspace(r, r * math.sqrt(most), GRID_VALUES if most > 1 else 1)
    return np.unique(np.geomspace(1, most, GRID_VALUES).round().astype(np.intp))


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
    array = np.array(values, np.intp if whole else np.float64 if parameter in SPARSITY else None)
    array = np.sort(array)[:: 1 if parameter in ("cardinality", "l1_bound") else -1]
    if (array[1:] == array[:-1]).any():
        raise ValueError(f"{name} has a value twice: {array[1:][array[1:] == array[:-1]][0]:g}")
    return array


def _variables(X: Any) -> int:
    """Their number; 1 for input that is not a matrix, which is an error later."""
    try:
        shape = np.shape(X)
    except ValueError:  # ragged
        return 1
    p = shape[1] if len(shape) == 2 else 1
    return int(p) if isinstance(p, (int, np.integer)) and p > 0 else 1
