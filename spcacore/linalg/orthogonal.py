"""Orthonormal bases and signs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def fix_sign(value: NDArray[Any]) -> NDArray[Any]:
    """The entry of largest magnitude, the first if tied, becomes positive."""
    return -value if value[np.argmax(np.abs(value))] < 0 else value


def unit(x: NDArray[Any]) -> NDArray[Any] | None:
    """x over its norm, at any scale; None for the zero vector."""
    largest = np.abs(x).max(initial=0)
    if largest == 0:
        return None
    x = x / largest
    return x / np.linalg.norm(x)


def orthogonal_part(x: NDArray[Any], basis: list[NDArray[Any]]) -> NDArray[Any] | None:
    """The normalized part of x orthogonal to an orthonormal basis; None if that is only rounding."""
    q = unit(x)
    if q is None:
        return None
    for _ in range(2):
        for b in basis:
            q = q - b * (b @ q)
        norm = np.linalg.norm(q)
        if norm < 1e-7:
            return None
        q = q / norm
    return q


def orthonormal(V: NDArray[Any]) -> NDArray[np.float64]:
    """Gram-Schmidt in order; a column in the span of the earlier ones becomes zero."""
    Q = np.zeros(V.shape)
    basis: list[NDArray[Any]] = []
    for t, v in enumerate(V.T.astype(np.float64)):
        q = orthogonal_part(v, basis)
        if q is not None:
            Q[:, t] = q
            basis.append(q)
    return Q
