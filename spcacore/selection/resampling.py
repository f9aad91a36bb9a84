"""Samples drawn again from the rows, and the sparse components of each.

A resample is a vector of weights, how often each row was drawn, so that no rows are copied. Each has a
seed of its own: which thread works on it does not matter.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .._records import record
from .._types import AnyArray, Array, Index, Names
from .._validation import Hook
from ..linalg.threads import Report
from ..models.alternation import problem_of, search
from ..models.components import components_result
from ..models.variance import nonzeros_of
from ..operators.gram import formed
from ..progress import check_callback
from ..readable import names_of_sides
from ..solvers.solution import Solution
from .model import Model, plain_rows

Sparse = tuple[Index, Array]


@record
class Refit:
    """Components of one resample: variables and entries of each, and shares of its variance if known."""

    components: list[Sparse]
    shares: Array | None


def drawn_weights(n: int, resampling: str, seed: int, labels: Index | None) -> Callable[[int], Array]:
    """The weights of the i-th resample, drawn within each label where there are some.

    Half-samples have floor(m/2) of m rows; of complementary pairs the two of a pair share none.
    """
    parts = [np.arange(n)]
    if labels is not None:
        parts = [np.flatnonzero(labels == label) for label in range(labels.max() + 1)]

    def weights(i: int) -> Array:
        pair, second = divmod(i, 2) if resampling == "complementary" else (i, 0)
        rng = np.random.default_rng([seed, 2, pair])
        out = np.zeros(n)
        for rows in parts:
            m = len(rows)
            if resampling == "bootstrap":
                out[rows] = rng.multinomial(m, np.full(m, 1 / m))
            else:
                half = m // 2
                out[rng.permutation(rows)[second * half : (1 + second) * half]] = 1
        return out

    return weights


class Refits(ABC):
    """The components of all the data, `result`, and those of resamples."""

    result: Any

    @abstractmethod
    def of(self, weights: Array, report: Report) -> Refit:
        """Of a resample."""

    def loadings(self, result: Any) -> AnyArray:
        return np.asarray(result.loadings)

    def reference(self) -> Array:
        """The loadings of all the data."""
        return self.loadings(self.result).astype(np.float64, copy=False)

    def refit(self, result: Any) -> Refit:
        shares = getattr(result, "explained_variance_ratio", None)
        shares = None if shares is None else np.asarray(shares, np.float64)
        return Refit(nonzeros_of(self.loadings(result).astype(np.float64, copy=False)), shares)

    def names(self) -> Names:
        names: Names = self.result.names
        return names


class ComponentRefits(Refits):
    """Of `sparse_pca`."""

    solver: Any
    r: Any
    request: Any
    warm: bool

    def __init__(self, X: Any, model: Model, warm: bool):
        problem, self.solver, self.r, (self.request,) = model.prepared(X)
        self.X, self.warm = X, warm
        problem = formed(problem)
        self.found = search(problem, self.solver, self.request, [], self.r, Hook(None))
        self.result: Any = components_result(problem, self.found, self.request)
        if warm and hasattr(self.solver, "swaps") and getattr(self.request.method, "swaps", None) is None:
            self.solver = replace(self.solver, swaps=0.0)

    def of(self, weights: Array, report: Report) -> Refit:
        """Searched from the components of all the data, where warm."""
        request = self.request.having(sample_weight=weights)
        tell = check_callback(lambda progress: report())
        problem = formed(problem_of(self.X, request))
        near: Sequence[Solution] = self.found if self.warm else ()
        found = search(problem, self.solver, request, [], self.r, tell, near, quick=self.warm)
        return self.refit(components_result(problem, found, request))


class WeightedRefits(Refits):
    """Of a function that takes `sample_weight`; where warm, also `start`, loadings to begin with."""

    data: tuple[Any, ...]
    model: Model

    def __init__(self, data: tuple[Any, ...], model: Model, warm: bool):
        self.data, self.model = data, model
        self.result: Any = model.fit(*data)
        V = self.reference()
        if warm and V.any(axis=0).all():
            self.model = model.begun_at(V)

    def of(self, weights: Array, report: Report) -> Refit:
        return self.refit(self.weighted(weights, lambda progress: report()))

    def weighted(self, w: Array, tell: Callable[[Any], object]) -> Any:
        """The result of rows of these weights."""
        return self.model.fit(*self.data, sample_weight=w, callback=tell)


class RowRefits(WeightedRefits):
    """Of an estimator that knows no weights: it is fitted to the rows of a resample, as often as drawn."""

    def weighted(self, w: Array, tell: Callable[[Any], object]) -> Any:
        rows = np.repeat(np.arange(len(w)), w.astype(np.intp))
        return self.model.fit(plain_rows(self.data[0])[rows], callback=tell)


class PairRefits(WeightedRefits):
    """Of `sparse_cca`: the variables of X, and then those of Y."""

    def loadings(self, result: Any) -> AnyArray:
        return np.concatenate([side.loadings for side in result._sides()])

    def names(self) -> Names:
        return tuple(names_of_sides(self.result))
