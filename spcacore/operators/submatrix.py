"""How large a submatrix may be formed."""

from __future__ import annotations

from .. import _core
from .._limits import SUBMATRIX_ENTRIES, SUBMATRIX_ORDER, SUBMATRIX_WORK

__all__ = ["largest_submatrix"]
__dir__ = __all__.copy


def largest_submatrix(op: _core.Operator) -> int:
    """The largest order at which A[S, S] is formed rather than applied."""
    if op.symmetric_form:
        return SUBMATRIX_ORDER
    return min(SUBMATRIX_ORDER, SUBMATRIX_ENTRIES // op.m, int((SUBMATRIX_WORK / op.m) ** 0.5))
