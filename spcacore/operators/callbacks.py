"""Operators that are known by their products alone: a `LinearOperator` or an object like it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import _core
from .._types import AnyArray, DType
from .._validation import float_type, is_operator, require_real
from ..linalg.scaling import below_range, beyond_range, eps_of, largest_magnitude, power_of_two_scale
from .base import Storage, divisors, refuse_oblong
from .problem import Affine, Problem
from .statistics import Standardization


class Products(Storage):
    """A matrix X known by its products v -> X v and, for data, u -> X'u.

    The kernels ask this object for F v and F'f, where F has the mean removed and its range brought near 1.
    """

    matvec: Any
    rmatvec: Any
    shape: tuple[int, int]
    dtype: DType
    covariance: bool
    cost: int
    affine: Affine

    def __init__(self, X: Any, covariance: bool) -> None:
        if not is_operator(X):
            raise TypeError(
                "X is a function, which has no shape: pass "
                "scipy.sparse.linalg.LinearOperator(shape, matvec=X)"
            )
        n, p = X.shape
        self.matvec, self.rmatvec, dtype = X.matvec, X.rmatvec, np.dtype(X.dtype)
        require_real(dtype)
        if n == 0 or p == 0:
            raise ValueError(f"X is empty: shape {X.shape}")
        if covariance:
            refuse_oblong((n, p))
        self.shape, self.dtype, self.covariance = (n, p), float_type(dtype), covariance
        self.cost, self.affine = n * p, Affine()

    def entries(self) -> AnyArray:
        """Return the symmetric matrix, from its product with each unit vector.

        Rounding that makes it asymmetric is averaged out; a matrix far from symmetric is returned as it is.
        """
        p = self.shape[1]
        A = np.empty((p, p), self.dtype, order="F")
        for j in range(p):
            A[:, j] = self._checked(self.matvec, np.eye(1, p, j, self.dtype)[0], p)
        with beyond_range():
            rounded = np.abs(A - A.T).max() <= 1e-5 * np.abs(A).max()
            return A / 2 + A.T / 2 if rounded else A

    def operator(self, affine: Affine) -> _core.Operator:
        self.affine = affine
        return _core.products(self, *self.shape, self.covariance, affine.factor, self.dtype == np.float32)

    def problem(self, treatment: Standardization) -> Problem:
        if treatment.scale and treatment.deviation is None:
            raise ValueError("scale=True needs the entries of X; an operator offers only products")
        (n, p), dtype = self.shape, self.dtype
        # What is subtracted from the columns: their means are a product with X'
        mean = weight = None
        row_weight = treatment.row_weight(dtype)
        if treatment.center and not self.covariance:
            if treatment.mean is not None:
                mean = treatment.mean.astype(dtype)
            else:
                share = treatment.sample_weight
                ones = np.ones(n, dtype) if share is None else (share / treatment.total_weight).astype(dtype)
                mean = self._checked(self.rmatvec, ones, p)
                mean = mean / n if share is None else mean
        # What divides them, if it was given
        scale = None
        if treatment.deviation is not None:
            _, scale, weight = divisors(treatment.deviation, treatment, dtype)
        weight = treatment.without_excluded(weight, dtype)
        factor = 1.0 if self.covariance else 1.0 / max(n - 1, 1)
        # A power of two that brings a random product near 1, and the variance that rounding may leave
        self.affine = Affine(mean, weight, 1.0, factor, row_weight)
        sample = self.forward(np.random.default_rng(0).standard_normal(p).astype(dtype) / math.sqrt(p))
        largest, eps = largest_magnitude(sample), eps_of(dtype)
        center = mean if mean is None or weight is None else mean * weight
        if center is not None:  # below this the random product is rounding alone
            largest = max(largest, eps * largest_magnitude(center))
        range_ = power_of_two_scale(largest, dtype)
        size = 1.0  # of A: its products are about that
        if center is not None:  # what was subtracted may have been larger
            with beyond_range():
                size += float(np.sum((center.astype(np.float64) * range_ * range_) ** 2))
        floor = eps * p if self.covariance else 4 * eps**2 * max(n, p) * size
        affine = self.affine._replace(range=range_)
        return self.made(affine, treatment, diagonal=None, moment=None, scale=scale, floor=floor)

    def _checked(self, product: Any, v: AnyArray, length: int) -> AnyArray:
        """Return a product of the caller's operator, checked: real, finite and of this length."""
        try:
            y = np.asarray(product(v))
        except StopIteration as error:  # it would end a generator, or a search, without a word
            raise RuntimeError(f"X, an operator, raised StopIteration: {error}") from error
        require_real(y.dtype, "X, an operator, returned", "fiu")
        if y.size != length or y.ndim > 2:
            raise ValueError(f"X, an operator, returned shape {y.shape} where ({length},) is needed")
        with beyond_range():
            y = np.ascontiguousarray(y.reshape(length), self.dtype)
        if not np.isfinite(y).all():
            raise ValueError("X, an operator, returned NaN or infinity")
        return y

    def _scaled(self, v: AnyArray, weight: AnyArray | None) -> AnyArray:
        """Return v times the range and, if given, a weight."""
        with below_range():
            v = v * self.dtype.type(self.affine.range)
            return v if weight is None else v * weight

    def forward(self, v: AnyArray) -> AnyArray:
        """Return range u (X w - mean'w) with w = range weight v; for a covariance range weight (X w)."""
        mean, weight, _, _, row_weight = self.affine
        v = self._scaled(v, weight)
        shift = 0 if mean is None else mean @ v
        f = self._checked(self.matvec, v, self.shape[0]) - shift
        return self._scaled(f, weight if self.covariance else row_weight)

    def backward(self, f: AnyArray) -> AnyArray:
        """Return range weight (X'g - (1'g) mean) with g = range u f."""
        mean, weight, _, _, row_weight = self.affine
        f = self._scaled(f, row_weight)
        shift = 0 if mean is None else f.sum() * mean
        return self._scaled(self._checked(self.rmatvec, f, self.shape[1]) - shift, weight)
