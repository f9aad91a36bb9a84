"""Nonnegative weights of variables with a bound on their l1 norm."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._messages import counted, warn
from .._rendering import Part, table_of
from .._validation import number, real_array
from ..readable import Listing, Tabular, labels
from .columns import Array, Labels

__all__ = [
    "Fit", "WeightedResult", "check_l1_bound", "check_l1_bounds", "l1_threshold", "warn_unless_converged",
]  # fmt: skip


class WeightedResult(Tabular):
    """A result with weights of the variables.

    `to_frame()` has a row for each variable and the column weight.
    """

    weights: NDArray[Any]
    names: tuple[str, ...] | None
    converged: bool
    n_iter: int

    @property
    def cardinality(self) -> int:
        """Number of nonzero weights."""
        return int(np.count_nonzero(self.weights))

    @property
    def selected(self) -> Labels:
        """Indices of the variables with nonzero weights, in descending order of weight."""
        order = np.argsort(-self.weights, kind="stable")
        return order[: self.cardinality]

    def _chosen(self) -> str:
        return f"{self.cardinality} of {counted(len(self.weights), 'variable')}"

    def _table(self) -> Listing:
        return Listing("variable", labels(self.names, len(self.weights)), {"weight": self.weights})

    def _parts(self) -> list[Part]:
        return table_of(*self._table(), rows=self.selected.tolist(), noun="variable")


@dataclass
class Fit:
    """The end of one search: weights, the objective at each iteration and, of K-means, the partition."""

    weights: Array
    trace: list[float]
    converged: bool
    labels: Labels = field(default_factory=lambda: np.empty(0, np.intp))


def l1_threshold(a: Array, bound: float) -> Array:
    """The w that maximizes a'w subject to w >= 0, ||w||_2 <= 1 and ||w||_1 <= bound."""
    w = np.empty_like(a)
    _core.l1_threshold(a, bound, 2, w)
    return w


def check_l1_bound(value: Any, name: str, p: int) -> float:
    """A number in [1, sqrt(p)]."""
    root = math.sqrt(p)
    return min(number(value, name, 1.0, root * (1 + 1e-12)), root)


def check_l1_bounds(values: Any, p: int) -> list[float]:
    """Several bounds in ascending order; by default ten in geometric progression."""
    if values is None:
        last = max(0.7 * math.sqrt(p), min(1.2, math.sqrt(p)))
        return np.unique(np.geomspace(min(1.2, last), last, 10)).tolist()
    real_array(values, "l1_bounds", ndim=1)
    return sorted({check_l1_bound(c, f"l1_bounds[{i}]", p) for i, c in enumerate(values)})


def warn_unless_converged(converged: bool, max_iter: int) -> None:
    if not converged:
        warn(f"not converged in {counted(max_iter, 'iteration')}")
