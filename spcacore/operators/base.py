"""What a kind of input must tell, so that nothing beyond it asks how the caller's matrix is stored."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .problem import Problem, covariance_problem, data_problem
from .standardization import Standardization
from .statistics import Index, Statistics, column_statistics, recomputed_statistics


class Storage(ABC):
    """The caller's matrix where it lies.

    A new kind of input is one subclass of `DataStorage` or `CovarianceStorage` here, one line in
    `inputs.as_problem`, and in C the table of functions that `operator` fills (spca_proto.h).

    Attributes
    ----------
    shape : (n, p)
    dtype : numpy dtype
        float32 or float64: what products are computed in.
    names : tuple of str or None
        Of the columns.
    cost : int
        Multiplications of one product.
    """

    covariance = False
    shape: tuple[int, int]
    dtype: np.dtype[Any]
    names: tuple[str, ...] | None = None
    cost: int

    @abstractmethod
    def operator(
        self,
        mean: NDArray[Any] | None,
        weight: NDArray[Any] | None,
        range_: float,
        factor: float,
        row_weight: NDArray[Any] | None = None,
    ) -> Any:
        """The symmetric operator A that solvers see.

        Of data `A = F'F factor`, F = diag(row_weight) (X - 1 mean') diag(weight) range^2; of a covariance
        `A = factor range^2 diag(weight) X diag(weight)`. None stands for ones, and for a mean of 0.
        """

    @abstractmethod
    def problem(self, treatment: Standardization) -> Problem:
        """The operator with what Python needs to know of it."""


class DataStorage(Storage):
    """Data, one row a sample."""

    @abstractmethod
    def statistics(self, weight: NDArray[np.float64] | None) -> Statistics:
        """Of all columns in one pass, each row counted as often as its weight says; sums may overflow."""

    @abstractmethod
    def raise_not_finite(self) -> None:
        """Raise and say where, if an entry is NaN or infinite."""

    def columns(self, index: Index) -> NDArray[np.float64]:
        """Some columns as a new float64 array, for `recompute`."""
        raise NotImplementedError

    def recompute(
        self, index: Index, treatment: Standardization
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Mean and deviation of columns whose squares left the number range."""
        return recomputed_statistics(self, index, treatment)

    def problem(self, treatment: Standardization) -> Problem:
        return self.problem_with(self.statistics(treatment.sample_weight), treatment)

    def problem_with(self, statistics: Statistics, treatment: Standardization) -> Problem:
        """`problem` from the statistics of the columns."""
        return data_problem(self, column_statistics(self, statistics, treatment), treatment)


class CovarianceStorage(Storage):
    """A symmetric p x p matrix."""

    covariance = True

    @abstractmethod
    def largest(self) -> float:
        """The largest magnitude of an entry; an error where X is not finite, symmetric or, if asked for,
        positive semidefinite."""

    @abstractmethod
    def diagonal(self) -> NDArray[Any]:
        """The variances."""

    def problem(self, treatment: Standardization) -> Problem:
        return covariance_problem(self, self.largest(), treatment)
