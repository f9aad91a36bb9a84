"""The likelihood of components with noise, `x ~ N(mean, WW' + s2 I)`, and what its parameters cost.

As for left-out entries, `W = V diag(max(d - s2, 0))^(1/2)` for loadings V of additional variances d, and
`s2 = (total - sum d)/(p - r)`. With `M = W'W + s2 I` and the sample covariance A,

    log det(WW' + s2 I) = (p - r) log s2 + log det M,   Tr((WW' + s2 I)^-1 A) = (Tr A - Tr(M^-1 W'AW))/s2.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..models.variance import operator_variances
from ..operators.problem import Problem

__all__ = ["schwarz_criterion"]


def schwarz_criterion(problem: Problem, V: NDArray[Any]) -> float:
    """The log-likelihood of loadings of data, less `log(n)/2` for each nonzero and for s2, over n."""
    assert problem.diagonal is not None
    assert problem.n_samples is not None
    n, p, r = problem.n_samples, problem.p, V.shape[1]
    total = float(problem.diagonal.sum())
    if not total > 0:
        return 0.0
    variances = operator_variances(problem, V, "cumulative")
    left = max(total - float(variances.sum()), 0.0) / max(p - r, 1)
    noise = max(left, 1e-10 * total / p)
    root = np.sqrt(np.maximum(variances - noise, 0))
    W = V.astype(np.float64) * root
    image = np.zeros((p, r))
    for t, v in enumerate(V.T):
        index = np.flatnonzero(v)
        if len(index):
            image[:, t] = problem.operator.apply(index, np.ascontiguousarray(v[index]))
    inner = W.T @ (image * root)
    M = W.T @ W + noise * np.eye(r)
    trace = (total - float(np.trace(np.linalg.solve(M, inner)))) / noise
    determinant = (p - r) * math.log(noise) + float(np.linalg.slogdet(M)[1])
    if problem.unit > 0 and math.isfinite(problem.unit):
        determinant += p * math.log(problem.unit)
    likelihood = -0.5 * (n * (p * math.log(2 * math.pi) + determinant) + (n - 1) * trace)
    return (likelihood - 0.5 * (np.count_nonzero(V) + 1) * math.log(n)) / n
