"""The options that `sparse_eigen` and `sparse_lda` share."""

from __future__ import annotations

from typing import Any

from .._asked import as_ratio_search
from .._limits import PENCIL_BACKWARD_ORDER, PENCIL_SUPPORT
from .._records import record
from .._validation import (
    as_seed,
    check_bool,
    check_choice,
    default_cardinality,
    integer,
    per_component,
)
from ..operators.deflation import DEFLATIONS as ALL_DEFLATIONS
from .ratio_bounds import refuse_many

__all__ = ["DEFLATIONS", "Options", "check_options"]

DEFLATIONS = {name: one for name, one in ALL_DEFLATIONS.items() if not one.residual}


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
    p: int, cardinality: Any, n_components: Any, method: Any, deflation: Any, certify: Any
) -> Options:
    """Validate what `sparse_eigen` and `sparse_lda` share."""
    given = as_ratio_search(method)
    r = integer(n_components, "n_components", 1, p)
    most = min(p, PENCIL_SUPPORT)
    k = per_component(
        min(default_cardinality(p), most) if cardinality is None else cardinality, "cardinality", r,
        lambda v, name: integer(v, name, 1, most),
    )  # fmt: skip
    if given.strategy in ("backward", "bidirectional") and p > PENCIL_BACKWARD_ORDER:
        raise ValueError(
            f"strategy={given.strategy!r} takes at most {PENCIL_BACKWARD_ORDER} variables, not {p}: "
            "use strategy='forward'"
        )
    if check_bool(certify, "certify"):
        refuse_many(p)
    return Options(
        k, given.method, given.strategy, given.swaps, check_choice(deflation, "deflation", DEFLATIONS),
        given.max_iter, given.tol, as_seed(given.rng), bool(certify),
    )  # fmt: skip
