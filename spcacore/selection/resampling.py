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
from numpy.typing import NDArray

from .._limits import RESAMPLE_BATCH, RESAMPLE_ENTRIES
from .._records import record
from ..linalg.threads import Report
from ..models.alternation import problem_of, refine_all, search
from ..models.components import components_result
from ..operators.gram import formed
from ..progress import check_callback
from ..solvers.solution import Solution
from .candidates import CandidateRefits
from .model import Model
from .rows import plain_rows

__all__ = [
    "RESAMPLINGS", "ComponentRefits", "PairRefits", "Refit", "Refits", "RowRefits", "Sparse",
    "WeightedRefits", "columns_of", "drawn_weights",
]  # fmt: skip

RESAMPLINGS = ("complementary", "half", "bootstrap")
Sparse = tuple[NDArray[np.intp], NDArray[np.float64]]


@record
class Refit:
    """Components of one resample: variables and entries of each, and shares of its variance if known."""

    components: list[Sparse]
    shares: NDArray[np.float64] | None


def drawn_weights(
    n: int, resampling: str, seed: int, labels: NDArray[np.intp] | None
) -> Callable[[int], NDArray[np.float64]]:
    """The weights of the i-th resample, drawn within each label where there are some.

    Half-samples have floor(m/2) of m rows; of complementary pairs the two of a pair share none.
    """
    parts = [np.arange(n)]
    if labels is not None:
        parts = [np.flatnonzero(labels == label) for label in range(labels.max() + 1)]

    def weights(i: int) -> NDArray[np.float64]:
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
    batch = 1

    @abstractmethod
    def of(self, weights: NDArray[np.float64], report: Report) -> list[Refit]:
        """Of resamples, one per row."""

    def reference(self) -> NDArray[np.float64]:
        """The loadings of all the data."""
        return np.asarray(self.result.loadings, np.float64)

    def names(self) -> tuple[str, ...] | None:
        names: tuple[str, ...] | None = self.result.names
        return names


class ComponentRefits(Refits):
    """Of `sparse_pca`."""

    r: int
    request: Any
    warm: bool
    solver: Any
    kept: CandidateRefits | None
    batch: int

    def __init__(self, X: Any, model: Model, warm: bool):
        problem, self.solver, self.r, (self.request,) = model.prepared(X)
        self.X, self.warm, self.kept = X, warm, None
        problem = formed(problem)
        found = search(problem, self.solver, self.request, [], self.r, None)
        if self.request.attempts and found:
            found = refine_all(problem, found, self.request, None)
        read, problem = problem.screening(), problem.unscreened()
        self.result: Any = components_result(problem, found, read, self.request)
        self.found = found
        quick = {"swaps": 0.0} if warm and hasattr(self.solver, "swaps") else {}
        if getattr(self.request.method, "swaps", None) is None and quick:
            self.solver = replace(self.solver, **quick)
        if warm and CandidateRefits.serves(problem, self.request, X):
            self.kept = CandidateRefits(problem, self.solver, self.request, found)
            entries = max(problem.cost // 2, RESAMPLE_ENTRIES)
            self.batch = int(np.clip(entries // (problem.p * (2 + self.r)), 1, RESAMPLE_BATCH))

    def of(self, weights: NDArray[np.float64], report: Report) -> list[Refit]:
        if self.kept is None:
            return [self._one(w, report) for w in weights]
        out = []
        for found, w in zip(self.kept.of(weights, report), weights, strict=True):
            if found is None:
                out.append(self._one(w, report))
            else:
                out.append(Refit([(x.index, x.entries.astype(np.float64)) for x in found[0]], found[1]))
        return out

    def _one(self, w: NDArray[np.float64], report: Report) -> Refit:
        """Searched among all variables."""
        request = self.request.having(sample_weight=w)
        tell = check_callback(lambda progress: report())
        problem = formed(problem_of(self.X, request))
        near: Sequence[Solution] = self.found if self.warm else ()
        found = search(problem, self.solver, request, [], self.r, tell, near, quick=self.warm, quiet=True)
        if request.attempts and found:
            found = refine_all(problem, found, request, tell, quiet=True)
        result = components_result(problem.unscreened(), found, problem.screening(), request, quiet=True)
        return Refit(columns_of(result.loadings), _floats(result.explained_variance_ratio))


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

    def of(self, weights: NDArray[np.float64], report: Report) -> list[Refit]:
        out = []
        for w in weights:
            result = self.weighted(w, lambda progress: report())
            shares = getattr(result, "explained_variance_ratio", None)
            out.append(Refit(columns_of(self.loadings(result)), _floats(shares)))
        return out

    def weighted(self, w: NDArray[np.float64], tell: Callable[[Any], object]) -> Any:
        """The result of rows of these weights."""
        return self.model.fit(*self.data, sample_weight=w, callback=tell)

    def loadings(self, result: Any) -> NDArray[Any]:
        return np.asarray(result.loadings)

    def reference(self) -> NDArray[np.float64]:
        return np.asarray(self.loadings(self.result), np.float64)


class RowRefits(WeightedRefits):
    """Of an estimator that knows no weights: it is fitted to the rows of a resample, as often as drawn."""

    def weighted(self, w: NDArray[np.float64], tell: Callable[[Any], object]) -> Any:
        rows = np.repeat(np.arange(len(w)), w.astype(np.intp))
        return self.model.fit(plain_rows(self.data[0])[rows], callback=tell)


class PairRefits(WeightedRefits):
    """Of `sparse_cca`: the variables of X, and then those of Y."""

    def loadings(self, result: Any) -> NDArray[Any]:
        return np.concatenate([result.loadings_x, result.loadings_y])

    def names(self) -> tuple[str, ...] | None:
        names: list[str] = []
        sides = ("x", self.result.names_x, self.result.loadings_x), (
            "y", self.result.names_y, self.result.loadings_y,
        )  # fmt: skip
        for letter, given, loadings in sides:
            names += [f"{letter}{j + 1}" for j in range(len(loadings))] if given is None else given
        return tuple(names)


def columns_of(loadings: NDArray[Any]) -> list[Sparse]:
    """The nonzeros of each column."""
    out = []
    for v in np.asarray(loadings, np.float64).T:
        index = np.flatnonzero(v)
        out.append((index, v[index]))
    return out


def _floats(shares: Any) -> NDArray[np.float64] | None:
    return None if shares is None else np.asarray(shares, np.float64)
