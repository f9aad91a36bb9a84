"""The two half-steps of `spca`: the rotation V for given loadings B, and the loadings B for given V.

G is the Gram matrix of the data, here their covariance. V has orthonormal columns and maximizes Tr V'GB. Each
column of B is an elastic net for the products C = GV, or a threshold of them if the ridge is infinite.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from .. import _core
from .._limits import JOINING_VARIABLES, SAMPLE_ORDER, WORKING_SET_VARIABLES
from .._messages import warn
from .._records import record
from .._types import Array, Index
from ..linalg.eigen import upper_eigenpairs
from ..linalg.orthogonal import inner_products, procrustes
from ..linalg.scaling import eps_of, roots, union, with_entries
from ..operators.problem import Problem
from ..solvers.refitting import Step
from ..supports.admissible import Supports
from .variance import images_of


def space_of(problem: Problem) -> Space:
    """Return V itself, or what stands for V where dense data have so few rows that FF' pays."""
    few = (
        problem.n_samples is not None
        and problem.n_samples < min(problem.p, SAMPLE_ORDER)
        and problem.operator.dense
        and not problem.is_matrix
    )
    return (_SampleSpace if few else _VariableSpace)(problem.operator)


class _VariableSpace:
    """V itself, with the products G V.

    `f` below is what `forward` returns for B; the other methods compute from it.
    """

    def __init__(self, op: _core.Operator):
        self.op = op

    def begin(self, V: Array) -> Array:
        """Set V, and return G V."""
        self.V = V
        return self.op.apply_block(V).astype(np.float64)

    def forward(self, B: Array) -> Array:
        """Return f = G B."""
        return self.op.apply_block(B).astype(np.float64)

    def products(self, f: Array) -> Array:
        """Return G B."""
        return f

    def inner(self, B: Array, f: Array) -> Array:
        """Return B'G B."""
        return B.T @ f

    def turn(self, f: Array) -> tuple[Array, float]:
        """Set V to the maximum of Tr V'G B; return G V and that maximum."""
        self.V, nuclear = procrustes(f, self.V)
        return self.op.apply_block(self.V).astype(np.float64), nuclear


class _SampleSpace:
    """The same with n < p: V = F'T is represented by Y = H T, where H = (FF')^(1/2) and G = F'F.

    Then Y'Y = V'V and F V = H Y. Products with the sparse columns of B read few columns of X; only F'H Y
    reads all of it.
    """

    def __init__(self, op: _core.Operator):
        self.op = op
        self.unit = math.sqrt(max(op.n - 1, 1))  # the operator's F over the one with G = F'F
        values, vectors = upper_eigenpairs(op.outer().astype(np.float64), op.m)
        root = roots(values)
        self.H = _power(vectors, root)
        kept = root > 1e-6 * root[-1]
        self.inverse = _power(vectors[:, kept], 1 / root[kept])

    def begin(self, V: Array) -> Array:
        """Set Y to what is nearest to V, and return G V."""
        near = np.eye(*self.H.shape)[:, : V.shape[1]]
        self.Y = procrustes(inner_products(self.inverse, self.forward(V)), near)[0]
        return self.op.apply_block(V).astype(np.float64)

    def forward(self, B: Array) -> Array:
        """Return f = F B."""
        return images_of(self.op, B).T / self.unit

    def products(self, f: Array) -> Array:
        """Return F'f = G B."""
        return self.op.backward_block(f).astype(np.float64, copy=False) * self.unit

    def inner(self, B: Array, f: Array) -> Array:
        return f.T @ f

    def turn(self, f: Array) -> tuple[Array, float]:
        self.Y, nuclear = procrustes(inner_products(self.H, f), self.Y)
        return self.products(inner_products(self.H, self.Y)), nuclear


def _power(vectors: Array, values: Array) -> Array:
    """Return the symmetric matrix with these eigenpairs, in Fortran order."""
    return inner_products((vectors * np.sqrt(values)).T).T


Space = _VariableSpace | _SampleSpace


@record
class Wanted:
    """How sparse a loading is to be.

    It has at most `limit` nonzeros, and half of its penalty is at least `floor`.
    """

    limit: int
    floor: float

    def rule(self, choice: Supports) -> _core.UnitRule:
        """Return the step rule: truncation to `limit` units, or a soft threshold."""
        if self.limit < len(choice.unit):
            return choice.rule(Step.TRUNCATION, self.limit)
        return choice.rule(Step.L1, level=self.floor)


@record
class Thresholds:
    """The loadings for an infinite ridge: the products C = G V after a soft threshold, or the largest."""

    wanted: tuple[Wanted, ...]
    choice: Supports

    @cached_property
    def rules(self) -> list[_core.UnitRule]:
        return [wanted.rule(self.choice) for wanted in self.wanted]

    def solve(self, C: Array) -> tuple[Array, Array]:
        """Return B, and half of each penalty."""
        levels = np.array([w.floor for w in self.wanted[: C.shape[1]]])
        steps = [rule.step(np.ascontiguousarray(c), 1.0) for c, rule in zip(C.T, self.rules, strict=False)]
        return np.stack([b for b, _ in steps], axis=1), levels


@dataclass(eq=False)
class ElasticNets:
    """The loadings for a finite ridge: elastic nets, on a working set of variables.

    Their path needs the Gram matrix of the set. One pass over X then finds the variables outside the set that
    violate the optimality conditions, and these join it. Sets and supports are kept between iterations.
    """

    op: _core.Operator
    space: Space
    wanted: tuple[Wanted, ...]
    ridge: float
    choice: Supports
    B: Array | None = None
    own: Supports = field(init=False)

    def __post_init__(self) -> None:
        self.levels: Array = np.zeros(len(self.wanted))
        self.eps: float = eps_of(self.op.dtype)
        self.working: Index = np.zeros(0, np.intp)

    def solve(self, C: Array) -> tuple[Array, Array]:
        """Return B, and half of each penalty, for the products C = G V."""
        # The working set begins with the largest products
        if self.B is None:
            self.B = np.zeros_like(C)
            self._enlarge(self._excess(C, 0.0))
        noise = 64 * self.eps * np.abs(C).max(axis=0)
        while True:
            # Nets on the working set
            B, levels = np.zeros_like(C), np.zeros(C.shape[1])
            for j, wanted in enumerate(self.wanted[: C.shape[1]]):
                B[self.working, j], levels[j] = self._net(
                    C[self.working, j], wanted, self.B[self.working, j], self.levels[j]
                )
            self.B, self.levels[: len(levels)] = B, levels
            if len(self.working) == self.op.p:
                return B, levels
            # Optimality elsewhere: |c_j - (G b)_j| is at most half of the penalty
            rest = C - self.space.products(self.space.forward(B))
            violation = self._excess(rest, levels * (1 + 1e-9)) - noise
            violation[self.working] = 0
            if not (violation > 0).any():
                return B, levels
            self._enlarge(violation)

    def _excess(self, C: Array, levels: Any) -> Array:
        """Return by how much each product exceeds the levels: its magnitude, or the norm of its unit."""
        choice = self.choice
        norms = np.stack([choice.norms(choice.projected(c)) for c in C.T], axis=1)
        return (norms - np.where(choice.included[:, None], 0, levels))[choice.unit]

    def _net(self, c: Array, wanted: Wanted, last: Array, near: float) -> tuple[Array, float]:
        """Return one net on the working set, for its products c, and half of its penalty.

        The search begins at the last net, `last`, and the level `near` that it had.
        """
        # Groups, signs or included variables
        if self.choice.shapes:
            if wanted.limit < self.op.p:
                return sparse_net(self.own, self.G, c, wanted.limit, last, near)
            return _core.unit_net(wanted.rule(self.own), self.G, c, last)[:2]
        # Single variables: a path, from the last support
        guess = np.flatnonzero(last)
        limit = min(wanted.limit, len(c))
        status, index, value, level = _core.elastic_net(
            self.G,
            np.ascontiguousarray(c),
            limit,
            self.ridge,
            wanted.floor,
            64 * self.eps,
            guess,
            last[guess],
        )
        if status > 0:
            warn("the path of an elastic net did not finish")
        return with_entries(len(c), index, value), level

    def _enlarge(self, violation: Array) -> None:
        """Add the variables of largest violation to the working set, a few for each loading.

        If p is small, all variables are in the set.
        """
        first = len(self.working) == 0
        joining = [self.working]
        for wanted, size in zip(self.wanted, np.maximum(violation, 0).T, strict=False):
            most = (
                max(JOINING_VARIABLES, 2 * wanted.limit) if first and wanted.floor == 0 else JOINING_VARIABLES
            )
            best = _core.select_largest(np.ascontiguousarray(size), min(most, len(size)))
            joining.append(best[(size[best] > 0) | first])
        some = union(*joining) if self.op.p > WORKING_SET_VARIABLES else np.arange(self.op.p)
        self.working = self.choice.whole(some)
        self.G = np.ascontiguousarray(self.op.submatrix(self.working), np.float64)
        if self.choice.shapes:
            self.own = self.choice.on(self.working)
            self.G[np.diag_indices(len(self.G))] += self.ridge


def sparse_net(
    choice: Supports, K: Array, c: Array, limit: int, b: Array,
    near: float,
) -> tuple[Array, float]:  # fmt: skip
    """Return the net of the lowest level at which at most `limit` units are not zero, and that level.

    Where the cardinality counts the variables of groups, `limit` is a number of variables. Included units are
    among them. `choice` has the supports allowed, K = G + ridge I, c the products; the search begins at b, at
    a level `near` it. A unit for which there is no room is left out, and the level falls further as long as
    another one fits.
    """
    choice = choice.among(choice.included | choice.fitting(choice.included, limit))
    while True:
        b, near, beyond = _core.unit_net(choice.rule(Step.TRUNCATION, limit), K, c, b, near)
        # Which units would enter next
        inside = (choice.norms(b) > 0) | choice.included
        more = np.flatnonzero((choice.norms(beyond) > 0) & ~inside)
        if not choice.counts_variables or len(more) == 0:
            return b, near
        # Rule out those without room, and go on
        without_room = choice.allowed & ~inside & ~choice.fitting(inside, limit)
        without_room[more[-1]] |= not without_room.any()  # each fits, but not all together
        choice = choice.among(~without_room)
        if not (choice.allowed & ~inside).any():
            return b, near
