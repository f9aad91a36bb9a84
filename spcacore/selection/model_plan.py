"""Values of the sparsity of models that find all components together, or with a prior."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._limits import GRID_CARDINALITY
from .._messages import listed, quiet
from .._validation import as_seed, integer
from ..linalg.orthogonal import unit_columns
from ..linalg.threads import Report
from ..models.elastic_net import spca
from ..models.rotated import sca, sma
from ..models.structured import soppca
from ..models.variance import operator_variances
from ..operators.inputs import as_problem
from ..operators.leading import dense_shares
from ..operators.problem import Problem
from ..solvers.solution import Solution
from .grids import component_grids, sparsity_values
from .tuning import Array, Plan, SparsityPath

__all__ = ["MODELS", "ModelPlan"]
__dir__ = __all__.copy

MODELS: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "spca": (spca, ("cardinality", "penalty")),
    "sca": (sca, ("l1_bound",)),
    "sma": (sma, ("l1_bound",)),
    "soppca": (soppca, ("cardinality",)),
}


class ModelPlan(Plan):
    """What to fit of one of these models, for any rows."""

    def __init__(
        self, model: str, X: Any, n_components: Any, given: dict[str, Any], center: Any, scale: Any,
        rng: Any, options: dict[str, Any],
    ):  # fmt: skip
        if options.get("sample_weight") is not None:
            raise TypeError("sample_weight cannot be used here: folds and permutations weigh all rows alike")
        if not isinstance(center, bool) or not isinstance(scale, bool):
            raise TypeError("center and scale must be True or False when the sparsity is chosen")
        self.function, taken = MODELS[model]
        named = [name for name in given if given[name] is not None]
        self.parameter = named[0] if len(named) == 1 else taken[0]
        if len(named) > 1 or self.parameter not in taken:
            raise TypeError(f"model={model!r} takes {listed(taken)}, one of them, not {listed(named, 'and')}")
        self.X, self.method, self.deflation, self.kind, self.counting = X, model, "none", "data", False
        given_options = {name: value for name, value in options.items() if value is not None}
        self.model_options = {"center": center, "scale": scale, **given_options}
        self.options = {"model": model, **self.model_options}
        self.treatment: dict[str, Any] = {"center": center, "scale": scale}
        self.problem = self._problem(X)
        most = min(self.problem.p, self.problem.n_samples or self.problem.p)
        self.r = integer(n_components, "n_components", 1, most)
        self.checked: list[dict[str, Any]] = []
        self.grids = component_grids(self.parameter, given, n_components)
        if self.grids is None:
            self.values = sparsity_values(X, self.parameter, given, options)
        elif self.parameter == "l1_bound":
            raise TypeError(f"l1_bound of model={model!r} is of all components together: give one grid")
        elif self.parameter == "cardinality":
            for t, grid in enumerate(self.grids):
                integer(grid[-1], f"cardinality[{t}][{len(grid) - 1}]", 1, self.problem.p)
        if given[self.parameter] is None and self.parameter == "l1_bound":  # of all components together
            self.values = np.geomspace(
                self.r, self.r * np.sqrt(min(self.problem.p, GRID_CARDINALITY)), len(self.values)
            )
        self.seed = as_seed(rng)
        self.rows: dict[int, Any] = {}

    def _problem(self, X: Any) -> Problem:
        return as_problem(X, **self.treatment)

    def problem_of(self, X: Any) -> Problem:
        problem = self._problem(X)
        self.rows[id(problem)] = X
        return problem

    def search_values(
        self, problem: Problem, hook: Callable[[Any], object] | None, report: Report | None = None
    ) -> list[list[Solution]]:
        X = self.rows.pop(id(problem))
        out: list[list[Solution]] = [[] for _ in self.values]
        for i in range(len(out) - 1, -1, -1):
            out[i] = _solutions(self._fit(X, i, report).loadings, problem)
            if hook is not None:
                hook(self.values[i].item())
        return out

    def cross_validated(self, *arguments: Any) -> Array:
        with quiet():  # of each fold
            return super().cross_validated(*arguments)

    def permuted(self, *arguments: Any) -> Array:
        with quiet():
            return super().permuted(*arguments)

    def _fit(self, X: Any, i: int, report: Report | None) -> Any:
        options = {self.parameter: self.given(i), **self.model_options}
        if report is not None:
            options["callback"] = lambda progress: report()
        return self.function(X, self.r, **options)

    def warn(self, results: Sequence[Any]) -> None:
        """Each fit of all the data has warned by itself."""

    def shares(self, problem: Problem, solutions: list[list[Solution]]) -> Array:
        assert problem.diagonal is not None
        total = float(problem.diagonal.sum())
        out = np.zeros((len(solutions), self.r))
        for i, components in enumerate(solutions):
            V = np.zeros((problem.p, len(components)))
            for t, x in enumerate(components):
                V[x.index, t] = x.entries
            out[i, : len(components)] = operator_variances(problem, V, "cumulative") / total
        return out

    def path(self, hook: Callable[[Any], object]) -> SparsityPath:
        results: list[Any] = []
        for i in range(len(self.values) - 1, -1, -1):
            results.insert(0, self._fit(self.X, i, None))
            if hook(self.values[i].item()) is True:
                self.values = self.values[i:]
                break
        m, r = len(results), self.r
        shares, cardinality = np.zeros((m, r)), np.zeros((m, r), np.intp)
        for i, result in enumerate(results):
            shares[i] = self.shares(self.problem, [_solutions(result.loadings, self.problem)])[0]
            cardinality[i, : result.loadings.shape[1]] = np.count_nonzero(result.loadings, axis=0)
        dense, problem = dense_shares(self.problem, r), self.problem
        zeros = 1 - cardinality.sum(axis=1) / (self.problem.p * r)
        return SparsityPath(
            self.parameter, self.values, shares, cardinality, dense, shares.sum(axis=1) * dense.sum() * zeros,
            tuple(results), self.method, self.deflation, self.kind, problem.n_samples, problem.names,
        )  # fmt: skip


def _solutions(loadings: NDArray[Any], problem: Problem) -> list[Solution]:
    """The loadings of unit length, but for those without nonzeros."""
    out = []
    for v in unit_columns(np.asarray(loadings, np.float64)).T:
        index = np.flatnonzero(v)
        if len(index):
            out.append(Solution(index, v[index].astype(problem.operator.dtype), 0.0, 0, True))
    return out
