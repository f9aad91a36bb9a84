"""The options that `sparse_eigen` and `sparse_lda` share."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._limits import PENCIL_BACKWARD_ORDER, PENCIL_SUPPORT
from .._records import record
from .._validation import LARGEST, as_seed, check_bool, check_choice, integer, number, per_component
from ..operators.deflation import DEFLATIONS as ALL_DEFLATIONS
from .ratio_bounds import refuse_many

__all__ = ["DEFLATIONS", "SOLVERS", "STRATEGIES", "Options", "check_options"]
__dir__ = __all__.copy

DEFLATIONS = {name: one for name, one in ALL_DEFLATIONS.items() if not one.residual}
SOLVERS = ("auto", "greedy", "rayleigh_flow")
STRATEGIES = ("auto", "forward", "backward", "bidirectional")


@record
class Options:
    """How directions are sought."""

    cardinality: tuple[int, ...]
    method: str
    strategy: str
    swaps: bool
    deflation: str
    max_iter: int
    tol: float
    seed: int
    certify: bool


def check_options(
    p: int, cardinality: Any, n_components: Any, method: Any, strategy: Any, swaps: Any, deflation: Any,
    max_iter: Any, tol: Any, rng: Any, dtype: np.dtype, certify: Any = False,
) -> Options:  # fmt: skip
    """Validate what `sparse_eigen` and `sparse_lda` share."""

    r = integer(n_components, "n_components", 1, p)
    k = per_component(
        cardinality, "cardinality", r, lambda v, name: integer(v, name, 1, min(p, PENCIL_SUPPORT))
    )
    check_choice(method, "method", SOLVERS)
    check_choice(strategy, "strategy", STRATEGIES)
    if strategy in ("backward", "bidirectional") and p > PENCIL_BACKWARD_ORDER:
        raise ValueError(
            f"strategy={strategy!r} takes at most {PENCIL_BACKWARD_ORDER} variables, not {p}: "
            "use strategy='forward'"
        )
    if strategy != "auto" and method == "rayleigh_flow":
        raise ValueError("strategy is for the greedy method, not for method='rayleigh_flow'")
    if check_bool(certify, "certify"):
        refuse_many(p)
    return Options(
        k, method, strategy, check_bool(swaps, "swaps"), check_choice(deflation, "deflation", DEFLATIONS),
        integer(max_iter, "max_iter", 1, LARGEST), number(tol, "tol", 0), as_seed(rng), bool(certify),
    )  # fmt: skip
