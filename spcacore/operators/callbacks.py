"""Operators that are known by their products alone."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._limits import CALLABLE_ORDER
from .._validation import LARGEST, float_type, is_operator
from ..linalg.scaling import exponent_of, power_of_two_scale
from .dense import from_dense
from .problem import Problem


class Callbacks:
    """F v and F'f by the caller's products, with the mean removed and the range brought near 1."""

    def __init__(self, matvec: Any, rmatvec: Any, n: int, p: int, dtype: np.dtype, center: bool):
        self.matvec, self.rmatvec, self.shape, self.dtype = matvec, rmatvec, (n, p), dtype
        self.mean: NDArray[Any] | None = None
        self.range = 1.0
        if center:
            self.mean = self._checked(rmatvec, np.ones(n, dtype), p) / n
        sample = self.forward(np.random.default_rng(0).standard_normal(p).astype(dtype) / math.sqrt(p))
        largest = float(np.abs(sample).max())
        if self.mean is not None:  # below this, the sample is rounding alone
            largest = max(largest, float(np.finfo(dtype).eps * np.abs(self.mean).max()))
        self.range = power_of_two_scale(largest, dtype)

    def _checked(self, product: Any, v: NDArray[Any], length: int) -> NDArray[Any]:
        try:
            y = np.asarray(product(v))
        except StopIteration as error:  # which would end a generator, or a search, without a word
            raise RuntimeError(f"X, an operator, raised StopIteration: {error}") from error
        if y.dtype.kind not in "fiu":
            raise TypeError(f"X, an operator, returned dtype {y.dtype}; real numbers are needed")
        if y.size != length or y.ndim > 2:
            raise ValueError(f"X, an operator, returned shape {y.shape} where ({length},) is needed")
        with np.errstate(over="ignore", under="ignore"):
            y = np.ascontiguousarray(y.reshape(length), self.dtype)
        if not np.isfinite(y).all():
            raise ValueError("X, an operator, returned NaN or infinity")
        return y

    def _scaled(self, v: NDArray[Any]) -> NDArray[Any]:
        with np.errstate(under="ignore"):
            return v * self.dtype.type(self.range)

    def forward(self, v: NDArray[Any]) -> NDArray[Any]:
        v = self._scaled(v)
        shift = 0 if self.mean is None else self.mean @ v
        return self._scaled(self._checked(self.matvec, v, self.shape[0]) - shift)

    def backward(self, f: NDArray[Any]) -> NDArray[Any]:
        f = self._scaled(f)
        shift = 0 if self.mean is None else f.sum() * self.mean
        return self._scaled(self._checked(self.rmatvec, f, self.shape[1]) - shift)


def _entries(owner: Callbacks) -> NDArray[Any]:
    """The symmetric matrix, by its product with each unit vector; as it is where it is far from symmetric."""
    p = owner.shape[1]
    A = np.empty((p, p), owner.dtype, order="F")
    for j in range(p):
        A[:, j] = owner._checked(owner.matvec, np.eye(1, p, j, owner.dtype)[0], p)
    with np.errstate(over="ignore", under="ignore"):
        rounded = np.abs(A - A.T).max() <= 1e-5 * np.abs(A).max()
        return A / 2 + A.T / 2 if rounded else A


def from_products(
    X: Any, covariance: bool, center: bool, scale: bool, n_features: int | None, definite: bool
) -> Problem:
    small = covariance and (X.shape[1] if is_operator(X) else n_features or LARGEST) <= CALLABLE_ORDER
    if scale and not small:
        raise ValueError("scale=True needs the entries of X; an operator offers only products")
    if is_operator(X):
        n, p = X.shape
        matvec, rmatvec, dtype = X.matvec, X.rmatvec, np.dtype(X.dtype)
        if dtype.kind not in "fiub":
            raise TypeError(f"X has dtype {dtype}; real numbers are needed")
        if n == 0 or p == 0:
            raise ValueError(f"X is empty: shape {X.shape}")
        if covariance and n != p:
            raise ValueError(f"a covariance must be square, not of shape {X.shape}")
    else:
        if not covariance:
            raise TypeError(
                "X is a callable, which must be a covariance product v -> A v: pass kind='covariance'"
            )
        if n_features is None:
            raise TypeError("X is a callable, which has no shape: pass n_features")
        n = p = n_features
        matvec, rmatvec, dtype = X, None, np.dtype(np.float64)
    dtype = float_type(dtype)
    owner = Callbacks(matvec, rmatvec, n, p, dtype, center and not covariance)
    if small:
        return from_dense(_entries(owner), True, center, scale, definite, "none")
    factor = 1.0 if covariance else 1.0 / max(n - 1, 1)
    eps = float(np.finfo(dtype).eps)
    size = 1.0  # of A: its products are about that
    if owner.mean is not None:  # what was subtracted may have been larger
        with np.errstate(over="ignore", under="ignore"):
            size += float(np.sum((owner.mean.astype(np.float64) * owner.range * owner.range) ** 2))
    return Problem(
        operator=_core.products(owner, n, p, covariance, factor, dtype == np.float32),
        n_samples=None if covariance else n,
        diagonal=None,
        exponent=(-2 if covariance else -4) * exponent_of(owner.range),
        moment=None,
        floor=eps * p if covariance else 4 * eps**2 * max(n, p) * size,
        mean=owner.mean,
        scale=None,
        names=None,
        cost=n * p,
    )
