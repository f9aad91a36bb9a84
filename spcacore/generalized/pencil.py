"""The pencil (A, B): its leading x on a support, its deflation, and upper bounds on x'Ax/x'Bx.

All work is done in units in which the diagonals of B are near 1: with a diagonal D of powers of two, `x = Dy`
has the support of y, and the pencil (DAD, DBD) has the same values.

On a support S let the columns of W have `W'B_S W = I` and `W'A_S W = diag(lambda)`. With `b = W'A_Sj`,
`d = W'B_Sj` and `sigma = B_jj - d'd`, one step of a Cholesky factorization makes the pencil on S and j the
bordered matrix

    diag(lambda)  e         e = (b - lambda d)/sqrt(sigma)
    e'            corner    corner = (a_jj - 2 d'b + sum lambda d^2)/sigma.

Its largest eigenvalue is a root of one equation (greedy.c). Where sigma is 0, the direction `e_j - Wd` has
x'Bx = 0; A must map it to zero, too.

Deflation (operators/deflation) is a term of low rank beside A and B, which never change.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._limits import (
    CERTIFIED_ITERATIONS,
    CERTIFIED_NODES,
    CERTIFIED_ORDER,
    CERTIFIED_ROUNDS,
    CERTIFIED_TOL,
    CERTIFIED_TREES,
    CHOLESKY_ORDER,
    CHUNK,
    CROSS_COLUMNS,
    IN_SPAN,
    NAMED_WEIGHT,
    PENCIL_DEFLATED_NULL,
    PENCIL_ENTERING,
    PENCIL_NULL,
    PENCIL_ROUNDING,
    PENCIL_SCHUR,
    PENCIL_SLACK,
    SUBMATRIX_ORDER,
    slices,
)
from .._messages import first_of
from .._records import record
from .._types import AnyArray, Array, DType, Index, Mask
from .._validation import is_sparse
from ..linalg.eigen import PencilBasis, all_eigenpairs, largest_value, whitening
from ..linalg.orthogonal import symmetrized
from ..linalg.scaling import (
    EPS,
    below_range,
    beyond_range,
    descending,
    divisor,
    eps_of,
    largest_magnitude,
    with_entries,
)
from ..objectives.ratio import Quotient
from ..operators.deflation import Deflation, LowRank
from ..operators.dense import blas_layout
from ..operators.gram import rows_of
from ..operators.problem import Affine
from ..operators.sparse import is_indefinite, squared_norms
from ..operators.statistics import entries
from ..solvers.matrix_search import Search
from ..solvers.semidefinite import solve_shaped
from ..solvers.solution import ProgressClock, Report, Solution
from ..supports.admissible import Supports


def common_dtype(x: Any, y: Any) -> DType:
    """Return float32 if two matrices have it, else float64."""
    return np.dtype(np.float32 if x.dtype == y.dtype == np.float32 else np.float64)


class Unbounded(ValueError):
    """The ratio has no bound: B maps a direction to zero that A does not."""


def unbounded(index: Index, direction: Array, advice: str) -> Unbounded:
    """Return the error for such a direction, with the names of its variables; `index` are the variables."""
    weight = np.abs(direction)
    named = index[weight > NAMED_WEIGHT * weight.max()]
    shown = first_of(map(str, named.tolist()), 8)
    return Unbounded(
        f"x'Bx = 0 where A x is not 0, for an x on the variables {shown}: the ratio has no bound; {advice}"
    )


class Pencil(Quotient):
    """The deflated pencil in units in which B has diagonals near 1; an objective over supports (`Quotient`).

    `A0` and `B0` are the forms before deflation. `unit` is the diagonal D, 0 for variables that B does not
    use. Values times 2**exponent are those of the caller.
    """

    p: int
    dtype: DType
    usable: Mask
    entering: int = PENCIL_ENTERING
    advice: str
    least: float
    null: float
    slack: float

    def __init__(self, A: Form, B: Form, *, dtype: DType, advice: str = "add to the diagonal of B"):
        self.dtype, self.advice = dtype, advice
        self.least, self.null, self.slack = (
            precision.of(dtype) for precision in (PENCIL_SCHUR, PENCIL_NULL, PENCIL_SLACK)
        )
        # Units from the diagonal of B; variables with B_jj = 0 are not used
        variance = B.diagonal()
        if variance.min() < -self.slack * variance.max():
            raise ValueError("B must be positive semidefinite; it has a negative diagonal entry")
        used = variance > 0
        exponent = np.round(np.log2(divisor(variance)) / 2).astype(int)
        self.p, self.usable = B.p, used
        self.active: Index = np.flatnonzero(used)
        self._refuse_unused(A, B, np.flatnonzero(~used))
        if not used.any():
            raise ValueError("B is zero")
        # The forms
        self.unit: AnyArray = np.where(used, np.ldexp(1.0, -exponent), 0.0)
        self.B = self.B0 = B.in_units(self.unit)
        self.removed: list[tuple[Array, Array]] = []
        self._numerator(A)
        self._refuse_indefinite()

    def _numerator(self, A: Form) -> None:
        """Set A, in units in which its largest entry is near 1."""
        A = A.in_units(self.unit)
        with beyond_range():
            largest = largest_magnitude(A.diagonal())
            if A.op.symmetric_form:  # else the largest entry is on the diagonal
                largest = max(largest, *(float(size.max(initial=0)) for size, _, _ in A.magnitudes()))
        if not math.isfinite(largest):
            raise ValueError("A is so large beside B that x'Ax / x'Bx exceeds the number range; rescale one")
        self.exponent: int = 2 * round(math.log2(largest) / 2) if largest > 0 else 0
        self.A = self.A0 = A.in_units(np.full(A.p, math.ldexp(1.0, -self.exponent // 2)))
        self._diagonals()

    def _refuse_unused(self, A: Form, B: Form, unused: Index) -> None:
        """Raise an error if a variable with B_jj = 0 has a nonzero row in B, or in A."""
        for start in range(0, len(unused), CROSS_COLUMNS):
            S = unused[start : start + CROSS_COLUMNS]
            if B.rows(S).any():
                raise ValueError("B must be positive semidefinite; a row with diagonal entry 0 is not zero")
            wrong = A.rows(S).any(axis=1)
            if wrong.any():
                raise unbounded(S[wrong][:1], np.ones(1), self.advice)

    def _refuse_indefinite(self) -> None:
        """Raise ValueError if B is indefinite, by Cholesky or, for many variables, by 2 x 2 minors."""
        if not self.B.op.symmetric_form:
            return
        if len(self.active) <= CHOLESKY_ORDER:
            bad = is_indefinite(self.B.block(self.active), self.slack)
        else:
            root = np.sqrt(self.G_diagonal)
            bad = any((x > root[i] * root[j] + self.slack).any() for x, i, j in self.B.magnitudes())
        if bad:
            raise ValueError("B must be positive semidefinite, and is not")

    def _diagonals(self) -> None:
        """Set the diagonals of the deflated pencil."""
        self.M_diagonal: Array = self.A.diagonal()
        self.G_diagonal: Array = self.B.diagonal()

    def rows(self, S: Index) -> tuple[Array, Array]:
        """Return the rows S of A and B."""
        return self.A.rows(S), self.B.rows(S)

    def blocks(self, S: Index) -> tuple[Array, Array]:
        """Return A and B between the variables S."""
        return self.A.block(S), self.B.block(S)

    def basis(self, GA: Array, GB: Array, index: Index) -> PencilBasis:
        """Return W with W'B_S W = I and W'A_S W diagonal; directions that B maps to zero are left out."""
        if self.B is self.B0 and (basis := PencilBasis.definite(GA, GB)) is not None:
            return basis
        mu, U = all_eigenpairs(GB)
        top = float(mu[-1])
        if mu[0] < -self.slack * (top if self.B is self.B0 else max(top, 1.0)):
            raise ValueError("B must be positive semidefinite, and is not")
        kept = mu > self.cut(top)
        if not kept.all():
            if self.A is self.A0:
                self._refuse_unbounded(GA, U[:, ~kept], index)
            else:
                self._refuse_unbounded_on(index)
        return PencilBasis.of(GA, mu, U, kept)

    def cut(self, top: Any) -> Any:
        """Return the size up to which eigenvalues of B_S are rounding, where `top` is the largest one."""
        deflated = 0.0 if self.B is self.B0 else max(self.least, PENCIL_DEFLATED_NULL)
        return np.maximum(self.null * top, deflated)

    def _refuse_unbounded(self, GA: Array, N: Array, index: Index) -> None:
        """Raise `Unbounded` if A does not map the columns of N to zero, which B does."""
        product = np.abs(GA @ N).max(axis=0, initial=0)
        if product.max(initial=0) > self.slack * np.abs(GA).max():
            raise unbounded(index, N[:, np.argmax(product)], self.advice)

    def _refuse_unbounded_on(self, S: Index) -> None:
        """Do the same on S before deflation, since a deflated A may be rounding alone."""
        mu, U = all_eigenpairs(self.B0.block(S))
        self._refuse_unbounded(self.A0.block(S), U[:, mu <= self.null * mu[-1]], S)

    def least_norm(self, x: Solution) -> Solution:
        """Return the x with the least x'B_0 x among those that differ by what the deflated B maps to zero."""
        if self.B is self.B0:
            return x
        mu, U = all_eigenpairs(self.B.block(x.index))
        N = U[:, mu <= self.cut(float(mu[-1]))]
        if not N.shape[1]:
            return x
        BN = self.B0.block(x.index) @ N
        y = x.entries - N @ np.linalg.lstsq(N.T @ BN, BN.T @ x.entries, rcond=self.null)[0]
        return replace(x, entries=y)

    def _refuse_null(self, size: Array, d: Array, candidate: Index, basis: PencilBasis, S: Index) -> None:
        """Raise `Unbounded` if x'Bx = 0 for e_j - W d, and its image under A, of this `size`, is not 0."""
        worst = int(np.argmax(size))
        if size[worst] > self.slack * max(1.0, float(np.abs(basis.eigenvalues).max(initial=0))):
            support = np.append(S, candidate[worst])
            if self.A is self.A0:
                raise unbounded(support, np.append(-basis.W @ d[:, worst], 1.0), self.advice)
            self._refuse_unbounded_on(support)

    def rounding(self, x: Solution) -> float:
        """Return how much of the deflated x'Ax may be rounding."""
        return PENCIL_ROUNDING * float(np.abs(x.entries) @ np.abs(self.A0.block(x.index)) @ np.abs(x.entries))

    def ratio(self, x: Solution) -> tuple[float, float]:
        """Return x'Ax/x'Bx of the caller's pencil, and x'Bx in the units of this one."""
        v = x.entries
        square = float(v @ (self.B0.block(x.index) @ v))
        with below_range():
            return float(np.ldexp(v @ (self.A0.block(x.index) @ v) / square, self.exponent)), square

    def remove(self, x: Solution, deflation: Deflation) -> tuple[Array, Array] | None:
        """Deflate by x; return the direction that was removed and B_0 times it, or None if x adds none."""
        # The direction q and z = B_0 q with q'z = 1; if orthogonalized, B_0-orthogonal to the earlier ones
        q = with_entries(self.B.p, x.index, x.entries)
        z = self.B0.matvec(x.entries, x.index)
        if deflation.orthogonalized:
            before = math.sqrt(q @ z)
            for _ in range(2):
                for other, z in self.removed:
                    q = q - other * (z @ q)
            z = self.B0.matvec(q)
            if not float(q @ z) > (IN_SPAN * before) ** 2:
                return None
        size = math.sqrt(q @ z)
        q, z = q / size, z / size
        self.removed.append((q, z))
        # A loses its part along q, and B too for a quotient
        w = self.A.matvec(q)
        self.A += LowRank.removal(deflation.update, float(q @ w), (z, w))
        if deflation.quotient:
            self.B += LowRank.removal("hotelling", 1.0, (z, z))
        self._diagonals()
        return q, z

    def bound(self) -> float | None:
        """Return the largest value of the whole pencil, or a little more.

        None if it has no bound or too many variables.
        """
        if len(self.active) > SUBMATRIX_ORDER or self._whitening is None:
            return None
        return _at_least(self.A.block(self.active), self._whitening)

    @cached_property
    def _whitening(self) -> Array | None:
        """Return T with T'BT = I for the whole of B; None if A does not map to zero what B does."""
        mu, U = all_eigenpairs(self.B0.block(self.active))
        kept = mu > self.null * mu[-1]
        GA = self.A0.block(self.active)
        product = GA @ U[:, ~kept]
        large = np.abs(GA).max()
        rounding = 16 * len(GA) * eps_of(self.dtype)
        if np.abs(product).max(initial=0) > self.slack * large:
            return None
        if np.abs(U[:, ~kept].T @ product).max(initial=0) > rounding * large:
            return None
        return whitening(mu, U, kept)


@record
class Form:
    """A symmetric matrix diag(unit) (A + diag(ridge)) diag(unit) + terms, where A is an operator.

    Nothing large is copied. The terms, of low rank, are in the units of the product. `sparse` is A if that is
    sparse.
    """

    op: Any
    own: Array  # diagonal of A + diag(ridge)
    ridge: Array | None
    unit: Array
    terms: LowRank
    sparse: Any = None

    @classmethod
    def of_operator(cls, op: Any, diagonal: AnyArray, ridge: Array | None = None, sparse: Any = None) -> Form:
        """Return the form of an operator A with this diagonal, plus diag(ridge)."""
        own = diagonal.astype(np.float64) + (0 if ridge is None else ridge)
        return cls(op, own, ridge, np.ones(len(own)), LowRank.none(len(own)), sparse)

    @classmethod
    def of_storage(cls, A: Any) -> Form:
        """Return the form of a symmetric matrix, which stays where it is."""
        sparse = A.matrix if is_sparse(A.matrix) else None
        return cls.of_operator(A.operator(Affine()), A.diagonal(), sparse=sparse)

    @classmethod
    def of(cls, A: AnyArray, level: Array | float = 0.0) -> Form:
        """Return the form of the dense matrix A + diag(level); A is overwritten."""
        if np.any(level):
            A[np.diag_indices(len(A))] += level
        return cls.of_operator(_core.dense(blas_layout(A), True), A.diagonal())

    @classmethod
    def of_rows(cls, F: Any, factor: float = 1.0, ridge: Array | None = None) -> Form:
        """Return the form of factor F'F + diag(ridge); F may be dense or sparse."""
        op = _core.operator(F, False, None, None, 1.0, factor)
        return cls.of_operator(op, factor * squared_norms(F), ridge)

    @property
    def p(self) -> int:
        return len(self.unit)

    def __add__(self, term: LowRank) -> Form:
        """Return the form plus a term of low rank."""
        return replace(self, terms=self.terms + term)

    def in_units(self, unit: Array) -> Form:
        """Return diag(unit) form diag(unit)."""
        return replace(self, unit=self.unit * unit, terms=self.terms.in_units(unit))

    def diagonal(self) -> Array:
        return self.own * self.unit * self.unit + self.terms.diagonal()

    def magnitudes(self) -> Iterator[tuple[Array, Index, Any]]:
        """Yield the magnitudes of the entries of A, a part at a time, and their rows and columns."""
        if self.sparse is not None:
            for x, i, j in entries(self.sparse):
                yield np.abs(x) * self.unit[i] * self.unit[j], i, j
            return
        for part in slices(self.p, self.p, CHUNK):
            S = np.arange(part.start, part.stop)
            yield np.abs(self.rows(S)), S[:, None], slice(None)

    def rows(self, S: Index) -> Array:
        """Return the rows S, (k, p)."""
        A = self.op.columns(S) if self.op.symmetric_form else rows_of(self.op, S)
        return self._scaled(A, S, S)

    def block(self, S: Index) -> Array:
        """Return the entries between the variables S, (k, k)."""
        A = self.op.submatrix(S) if self.op.symmetric_form else self.op.gram(S)
        return symmetrized(self._scaled(A, S, np.arange(len(S)), S))

    def _scaled(self, A: AnyArray, S: Index, own: Index, columns: Index | slice = slice(None)) -> Array:
        """Return rows S of A with ridge, units and terms; their diagonal is in the columns `own` of A."""
        out = A.astype(np.float64)
        if self.ridge is not None:
            out[np.arange(len(S)), own] += self.ridge[S]
        out *= self.unit[S, None]
        out *= self.unit[columns]
        return out + self.terms.rows(S, columns) if self.terms else out

    def matvec(self, x: Array, S: Index | None = None) -> Array:
        """Return the product with a vector; with S, x has its entries on S, and the others are zero."""
        at = slice(None) if S is None else S
        z = self.unit[at] * x
        y = self.op.apply(S, z.astype(self.op.dtype)).astype(np.float64)
        if self.ridge is not None:
            y[at] += self.ridge[at] * z
        y *= self.unit
        return y + self.terms.times(x, S) if self.terms else y


# ---- upper bounds on x'Ax/x'Bx over x with few nonzeros, and on canonical correlations ----------------
# Let B be definite and N = tB - A. No x with at most k nonzeros has a ratio above t if and only if no
# principal submatrix of order k of N has a negative eigenvalue. The tree of branch and bound
# (solvers/matrix_search.py) searches for one, at the largest ratio t that is known. If x'Nx >= -e on the
# supports of a node, their ratios are at most t + e/beta, where beta is the smallest eigenvalue of B. If that
# tree does not end, others at larger t may.
#
# If Y has no diagonal, and entries of magnitude at most rho, then |x'Yx| <= rho (k - 1) x'x. So the ratio is
# at most lambda_1 of the pencil (A - Y + rho (k - 1) I, B). With B = I this is the relaxation of sparse
# principal components. Y is found for A - tB (shaped.c), and t is lowered to the bound that it gives
# (Dinkelbach's iteration).
#
# Canonical pairs are the pencil ([0 C; C' 0], [B_x 0; 0 B_y]), with k_x nonzeros of the one part and k_y of
# the other: a node that has all of a part leaves out the rest of it.


def refuse_many(p: int) -> None:
    """Raise ValueError if p is too large for a certificate."""
    if p > CERTIFIED_ORDER:
        raise ValueError(f"a certificate takes at most {CERTIFIED_ORDER} variables, not {p}")


def pencil_bounds(
    pencil: Pencil, k: int, nodes: int = CERTIFIED_NODES, start: Index | None = None,
    hook: Report | None = None,
) -> dict[str, float]:  # fmt: skip
    """Return upper bounds on the value at cardinality k, by name, from a support `start`."""
    active = pencil.active
    k = min(k, len(active))
    spectral = pencil.bound()
    A, B = pencil.A.block(active), pencil.B.block(active)
    support = None if start is None else np.searchsorted(active, start)
    return bounds_of(A, B, k, spectral, nodes, hook, support)


def bounds_of(
    A: Array, B: Array, k: int, spectral: float | None, nodes: int, hook: Report | None,
    support: Index | None = None, parts: tuple[int, int, int] | None = None,
) -> dict[str, float]:  # fmt: skip
    """Return upper bounds on the ratio at cardinality k, by name, with an allowance for rounding.

    `spectral` is one that is known. For a pair, `parts` has the number of variables of X and both
    cardinalities. If the hook ends the search, the bounds that are known are returned.
    """
    clock = ProgressClock(hook)
    # Only the largest value of the whole pencil, if B is nearly singular
    mu, U = all_eigenpairs(B)
    top, rounding = float(mu[-1]), _rounding(len(B))
    least = float(mu[0]) - rounding * top
    if not least > 1e4 * rounding * top:
        return {} if spectral is None else {"spectral": spectral}

    # The largest value, then a tree, and if it does not end the relaxation and further trees
    largest = partial(_at_least, T=whitening(mu, U, mu > 0))
    out = {"spectral": largest(A)}
    tree = _Tree(A, B, k, least, parts, support)
    tree.run(nodes, clock, 64)
    if not tree.open():
        return out | {"search": tree.upper()}
    out["relaxation"] = _relaxed(A, B, k, tree.value, out["spectral"], largest, clock)
    return out | {"search": _searched(tree, min(tree.upper(), out["relaxation"]), nodes, clock)}


def _rounding(p: int) -> float:
    """Return by how much rounding may move the values of a pencil of order p, as a share of its entries.

    With u = EPS/2, LAPACK's eigenvalues are off by at most 2 p u of a norm, which is at most p times the
    largest entry: those of B by 2 p u top. If T'T has the norm 1/least, T'MT is off by as much, and by
    gamma_p of the sums that make it. T'BT differs from I by 2 p u top/least, which moves a ratio by that
    share of it. 32 p^2 u is more than all of these.
    """
    return 16 * p**2 * EPS


def _at_least(M: Array, T: Array) -> float:
    """Return the largest value of the pencil (M, B), where T'BT = I, or as much more as rounding may hide."""
    value, inverse = largest_value(M, T), (T**2).sum(axis=0)  # 1/mu
    return float(
        value + _rounding(len(T)) * (largest_magnitude(M) + abs(value) / inverse.min()) * inverse.max()
    )


def _relaxed(
    A: Array, B: Array, k: int, known: float, bound: float, largest: Callable[[Array], float], clock: Report
) -> float:
    """Return the bound of the relaxation, by Dinkelbach's iteration from a known ratio and a known bound.

    At each level t the relaxation of A - tB gives Y. The bound is then `largest` of A - Y + rho (k - 1) I,
    and the next level.
    """
    p, level = len(A), known
    for _ in range(CERTIFIED_ROUNDS):
        M = A - level * B
        shift = largest_magnitude(M) * np.eye(p)  # the tolerance is then a share of the entries
        limits = CERTIFIED_ITERATIONS, CERTIFIED_TOL, clock
        lowest = solve_shaped(M + shift, Supports.any_of(p, k), np.arange(p), k, 0.0, *limits)[-1]
        before, bound = bound, min(bound, largest(lowest - shift + level * B))
        if level == before and bound > before - 1e-4 * abs(before):
            break
        level = bound
    return bound


def _searched(tree: _Tree, bound: float, nodes: int, clock: Report) -> float:
    """Return the bound of trees, each at a level halfway between the best ratio and the bound."""
    best = bound
    for _ in range(CERTIFIED_TREES):
        other = tree.above((tree.value + best) / 2)
        other.run(nodes, clock, 64)
        tree.value, best = max(tree.value, other.value), min(best, other.upper())
        if not best > tree.value + 1e-6 * abs(tree.value):
            break
    return best


class _Tree(Search):
    """Branch and bound for a pencil, if `parts` is given with a cardinality for each of two parts.

    `least` is the smallest eigenvalue of B. Only ratios above `floor` are sought.
    """

    def __init__(
        self, A: Array, B: Array, k: int, least: float, parts: tuple[int, int, int] | None,
        support: Index | None, floor: float = -np.inf,
    ):  # fmt: skip
        self.B, self.least, self.parts, self.floor = B, least, parts, floor
        super().__init__(A, k, _first(A, B, k, parts) if support is None else support)
        self.gain = float(1 / least)

    def above(self, floor: float) -> _Tree:
        """Return a tree that looks only for ratios above `floor`."""
        return _Tree(self.A, self.B, self.k, self.least, self.parts, self.index, floor)

    def _root_bound(self) -> float:
        return np.inf

    def _best_on(self, support: Index) -> tuple[Array, float]:
        return _leading(self.A, self.B, support)

    def _set_level(self) -> None:
        """Set N = level B - A: where N is definite on a support, that support does not beat the level.

        A margin for rounding is added to the diagonal of N, and to the bound that follows.
        """
        level = max(self.value, self.floor)
        N, diagonal = level * self.B - self.A, np.diag_indices_from(self.A)
        size = largest_magnitude(N[diagonal]) + abs(level) * float(self.B.max())  # |A| is not larger
        margin = 16 * (self.k + 4) ** 2 * EPS * size
        N[diagonal] += margin
        self.N, self.pruning_level = N, level + 2 * margin / self.least

    def _queue_children(self, bound: float, rows: NDArray[np.uint8], excess: Array) -> bool:
        if self.parts is not None:
            feasible = np.array([self._close(row) for row in rows], bool)
            rows, excess = rows[feasible], excess[feasible]
        return super()._queue_children(bound, rows, excess)

    def _close(self, variables: NDArray[np.uint8]) -> bool:
        """Leave out the rest of a part that is complete; whether both parts can have their cardinalities."""
        assert self.parts is not None
        first, *counts = self.parts
        for part, most in zip((variables[:first], variables[first:]), counts, strict=True):
            given = np.count_nonzero(part == 2)  # 0: out, 1: open, 2: in
            if given > most or np.count_nonzero(part) < most:
                return False
            if given == most:
                part[part == 1] = 0
        return True


def _leading(A: Array, B: Array, S: Index) -> tuple[Array, float]:
    """Return the leading x on a support, and its value."""
    mu, U = all_eigenpairs(B[np.ix_(S, S)])
    basis = PencilBasis.of(A[np.ix_(S, S)], mu, U, mu > 0)
    return basis.W[:, 0], float(basis.eigenvalues[0])


def _first(A: Array, B: Array, k: int, parts: tuple[int, int, int] | None) -> Index:
    """Return the k variables of largest magnitude in the leading eigenvector, or as many of each part."""
    order = descending(np.abs(_leading(A, B, np.arange(len(A)))[0]))
    if parts is None:
        return np.sort(order[:k])
    first, kx, ky = parts
    return np.sort(np.concatenate([order[order < first][:kx], order[order >= first][:ky]]))
