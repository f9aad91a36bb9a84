"""Normal priors of a loading, by their precision `L = C^-1`, and supports chosen under them.

An iteration needs `K = a I + L` for one number a after another: `K^-1 v`, the trace of K^-1 and log det K.

* With few variables, the eigenvectors of L give all three (`Spectral`).
* With many variables, K^-1 v comes from a Cholesky factor in bands, which are narrow for chains and grids of
  two dimensions, or from conjugate gradients. Stochastic Lanczos quadrature gives the trace and the
  determinant: one set of nodes and weights serves every a (`Sparse`).

All priors have the same methods: `solve` (K^-1 V), `product` (L v), `trace` (of K^-1), `logdet` (of K), and
`rows` and `restricted` for the rows of L and for L between some variables.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache, reduce
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg
from scipy.optimize import brentq
from scipy.special import erfcx, log_ndtr

from .. import _core
from .._labels import symmetric
from .._limits import (
    BAND_WORK,
    GRADIENT_RESIDUAL,
    GRADIENT_STEPS,
    PRIOR_SHIFT,
    SPECTRAL_ORDER,
    TRACE_ENTRIES,
    TRACE_STEPS,
)
from .._messages import counted, warn
from .._records import record
from .._types import AnyArray, Array, Index, Names
from .._validation import integer, is_sparse
from ..choice import Prior
from ..linalg.eigen import interruptible
from ..linalg.orthogonal import symmetrized
from ..linalg.scaling import EPS, LOG_2PI, TINY, divisor
from ..objectives.ratio import Regression
from ..operators.gram import KeptRows
from ..operators.sparse import Covariance
from ..supports.admissible import Supports
from ..supports.search import forward_ways

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@record
class Diagonal:
    """L is diagonal."""

    diagonal: Array

    @property
    def p(self) -> int:
        return len(self.diagonal)

    def solve(self, a: float, V: Array, guess: Array | None = None, residual: float = 0.0) -> Array:
        weight = 1 / (a + self.diagonal)
        return (weight if V.ndim == 1 else weight[:, None]) * V

    def product(self, v: Array) -> Array:
        return self.diagonal * v

    def trace(self, a: float) -> float:
        return float(np.sum(1 / (a + self.diagonal)))

    def logdet(self, a: float) -> float:
        return float(np.sum(np.log(a + self.diagonal)))


class Isotropic(Diagonal):
    """L = I."""

    def restricted(self, index: Index) -> Isotropic:
        return Isotropic(self.diagonal[index])

    def rows(self, S: Index) -> Array:
        return np.equal.outer(S, np.arange(self.p)).astype(np.float64)


@record
class Spectral:
    """L = U diag(theta) U', known entry by entry."""

    theta: Array
    U: Array
    matrix: Array

    @classmethod
    def of(cls, matrix: Array) -> Spectral:
        """Return the prior with this precision matrix."""
        theta, U = linalg.eigh(matrix, check_finite=False)
        return cls(np.maximum(theta, 0), U, matrix)

    @property
    def p(self) -> int:
        return len(self.theta)

    def solve(self, a: float, V: Array) -> Array:
        return self.U @ self.rotated.solve(a, self.U.T @ V)

    @property
    def rotated(self) -> Diagonal:
        """The same prior in the basis of the eigenvectors, where L is diagonal."""
        return Diagonal(self.theta)

    def restricted(self, index: Index) -> Spectral:
        return Spectral.of(self.matrix[np.ix_(index, index)])

    @property
    def diagonal(self) -> Array:
        return self.matrix.diagonal()

    def rows(self, S: Index) -> Array:
        return self.matrix[S]


@record
class Sparse:
    """L is a sparse matrix. Quadrature gives Tr f(L) as about `weights @ f(nodes)`."""

    matrix: Any
    diagonal: Array
    nodes: Array
    weights: Array
    order: Index  # an order of the variables in which L has narrow bands
    factor: Callable[[float], Array] | None  # Cholesky factor of K in these bands, for a given a

    @classmethod
    def of(cls, matrix: Any, seed: int) -> Sparse:
        """Return the prior with this precision matrix; the quadrature uses random numbers of `seed`."""
        nodes, weights = _spectrum(matrix, np.random.default_rng([seed, 0]))
        return cls(matrix, matrix.diagonal(), nodes, weights, *_banded(matrix))

    @property
    def p(self) -> int:
        return len(self.diagonal)

    @property
    def pattern(self) -> tuple[Index, Index]:
        """Where the rows of L begin, and their columns, as in CSR."""
        return self.matrix.indptr.astype(np.intp), self.matrix.indices.astype(np.intp)

    def solve(
        self, a: float, V: Array, guess: Array | None = None, residual: float = GRADIENT_RESIDUAL
    ) -> Array:
        """Return K^-1 V, by the factor in bands or by conjugate gradients for each column.

        The diagonal is the preconditioner. `guess` is where they begin, `residual` the relative residual at
        which they end.
        """
        if self.factor is not None:
            solved = np.empty_like(V)
            solved[self.order] = linalg.cho_solve_banded((self.factor(a), True), V[self.order])
            return solved
        from scipy.sparse import diags_array
        from scipy.sparse.linalg import cg

        K, M = self.matrix + diags_array(np.full(self.p, a)), diags_array(1 / (a + self.diagonal))
        columns = V.reshape(self.p, -1).T
        near = columns * 0 if guess is None else guess.reshape(self.p, -1).T
        options = {"rtol": residual, "M": M, "maxiter": GRADIENT_STEPS}
        found = [cg(K.tocsr(), v, x, **options) for v, x in zip(columns, near, strict=True)]
        if any(left for _, left in found):
            warn("the precision is so ill-conditioned that its systems are solved only roughly")
        return np.stack([x for x, _ in found], axis=1).reshape(V.shape)

    def product(self, v: Array) -> Array:
        return self.matrix @ v

    def trace(self, a: float) -> float:
        return float(self.weights @ (1 / (a + self.nodes)))

    def logdet(self, a: float) -> float:
        return float(self.weights @ np.log(a + self.nodes))

    def restricted(self, index: Index) -> Spectral:
        return Spectral.of(self.matrix[index][:, index].toarray())

    def rows(self, S: Index) -> Array:
        return np.asarray(self.matrix[S].toarray())

    def support(self, r: Array, a: float, k: int) -> Index:
        """Return k variables, chosen greedily for a large r_S'(K_S)^-1 r_S - log det K_S."""
        return np.sort(_core.prior_support(*self.pattern, self.matrix.data, r, a, k))


PriorMatrix = Isotropic | Spectral | Sparse


def independent(prior: PriorMatrix) -> bool:
    """Whether L is diagonal."""
    return isinstance(prior, Isotropic) or bool(abs(prior.matrix).sum() <= (1 + 1e-12) * prior.diagonal.sum())


def _banded(matrix: Any) -> tuple[Index, Callable[[float], Array] | None]:
    """Return an order of the variables with narrow bands, and a function that factors L + a I in it.

    The function is None if the bands are too wide for that to be little work.
    """
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    order = reverse_cuthill_mckee(matrix, symmetric_mode=True)
    entries = matrix[order][:, order].tocoo()
    below = entries.row - entries.col
    width = int(below.max()) + 1
    if width**2 * len(order) > BAND_WORK:
        return order, None
    band = np.zeros((width, len(order)))
    band[below[below >= 0], entries.col[below >= 0]] = entries.data[below >= 0]

    @lru_cache(2)
    def factor(a: float) -> Array:
        shifted = band.copy()
        shifted[0] += a
        return np.asarray(linalg.cholesky_banded(shifted, overwrite_ab=True, lower=True))

    return order, factor


def _spectrum(matrix: Any, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return nodes and weights with `trace f(L) ~ weights @ f(nodes)`, by Lanczos from random signs."""
    p = matrix.shape[0]
    count = min(128, max(16, TRACE_ENTRIES // p))
    V = rng.integers(0, 2, (p, count)) * 2.0 - 1
    V /= np.sqrt(p)
    before, beta = np.zeros_like(V), np.zeros(count)
    alphas, betas = np.zeros((TRACE_STEPS, count)), np.zeros((TRACE_STEPS, count))
    size = float(np.abs(matrix.data).max(initial=0.0)) or 1.0
    # Lanczos: alphas and betas make a tridiagonal matrix for each start
    for s in range(TRACE_STEPS):
        W = matrix @ V - beta * before
        alphas[s] = np.sum(W * V, axis=0)
        W -= alphas[s] * V
        beta = np.linalg.norm(W, axis=0)
        beta[beta < 1e-13 * size] = 0
        betas[s] = beta
        before, V = V, W / divisor(beta)
    # Its eigenvalues are the nodes; the squares of the first entries of its eigenvectors are the weights
    nodes, weights = [], []
    for t in range(count):
        ends = np.flatnonzero(betas[:, t] == 0)
        m = int(ends[0]) + 1 if len(ends) else TRACE_STEPS
        theta, S = linalg.eigh_tridiagonal(alphas[:m, t], betas[: m - 1, t])
        nodes.append(theta)
        weights.append(S[0] ** 2 * (p / count))
    theta = np.concatenate(nodes)
    refuse_negative(theta, "precision of the prior")
    least = PRIOR_SHIFT / 2 * float(matrix.diagonal().mean())  # half of the shift that `as_prior` adds
    return np.maximum(theta, least), np.concatenate(weights)


def refuse_negative(theta: Array, name: str) -> None:
    """Raise ValueError if eigenvalues (or Ritz values) are negative beyond rounding, or none is positive."""
    if theta.min() < -1e-9 * max(theta.max(), 0.0) or not theta.max() > 0:
        raise ValueError(
            f"{name} must be positive semidefinite and not zero; it has the eigenvalue {theta.min():.3g}"
        )


def as_prior(given: Prior | None, p: int, names: Names, seed: int) -> tuple[PriorMatrix, float]:
    """Return the prior, and the number that times its L is the caller's precision.

    `given` has a covariance or a precision; None is the precision I.
    """
    if given is None or given.covariance is given.precision is None:
        return Isotropic(np.ones(p)), 1.0
    # A covariance, whose inverse is L
    if given.covariance is not None:
        C, size = _symmetric(given.covariance, "covariance of the prior", p, names)
        C = C.toarray() if is_sparse(C) else C
        values, U = interruptible(lambda: linalg.eigh(C))
        refuse_negative(values, "covariance of the prior")
        if values[0] <= p * EPS * values[-1]:
            raise ValueError(
                "covariance of the prior is singular to rounding: add to its diagonal, or give a precision"
            )
        theta = values[-1] / values
        return Spectral(theta, U, (U * theta) @ U.T), 1 / max(float(size * values[-1]), TINY)
    # A precision; a small shift makes it definite, since in a direction of precision 0 the free energy would
    # have no bound
    L, largest = _symmetric(given.precision, "precision of the prior", p, names)
    if is_sparse(L) and p > SPECTRAL_ORDER:  # its smallest eigenvalue is unknown
        from scipy.sparse import eye_array

        shift = PRIOR_SHIFT * float(L.diagonal().mean())
        return Sparse.of((L + shift * eye_array(p, format="csr")).tocsr(), seed), largest
    matrix = L.toarray() if is_sparse(L) else L
    theta, U = interruptible(lambda: linalg.eigh(matrix))
    refuse_negative(theta, "precision of the prior")
    shift = max(0.0, PRIOR_SHIFT * float(matrix.diagonal().mean()) - theta[0])
    return Spectral(theta + shift, U, matrix + shift * np.eye(p)), largest


def _symmetric(x: Any, name: str, p: int, names: Names) -> tuple[Any, float]:
    """Return a symmetric matrix, dense or sparse, divided by its largest magnitude, and that magnitude."""
    store = Covariance(symmetric(x, names, name), definite=False, called=name)
    if store.shape != (p, p):
        raise ValueError(f"{name} has shape {store.shape} for {counted(p, 'variable')}")
    largest = store.largest()
    if largest == 0:
        raise ValueError(f"{name} is zero")
    return symmetrized(store.matrix.astype(np.float64) / largest), largest


def grid_laplacian(shape: int | Sequence[int], mask: ArrayLike | None = None) -> csr_array:
    """The graph Laplacian L of a grid, for use as a prior that favors smooth maps.

    `w'L w` is the sum of `(w_i - w_j)^2` over all pairs of neighbors i and j.

    Parameters
    ----------
    shape : tuple of ints
        Number of points along each axis. Neighbors differ by 1 along one axis.
    mask : array-like of bool of that shape, optional
        True for each point that has a variable. Default: all points.

    Returns
    -------
    csr_array of shape (p, p)
        The p points are in C order. The matrix is singular, because `w'L w` is 0 for a constant map. Use
        `L + c I` to shrink maps toward 0 as well.

    Raises
    ------
    ValueError
        For an empty grid, or a mask of another shape.
    TypeError
        For sizes that are not integers, or a mask that is not boolean.

    References
    ----------
    H. Rue and L. Held (2005). Gaussian Markov random fields. Chapman & Hall, section 3.3.

    Examples
    --------
    >>> import spcacore
    >>> spcacore.grid_laplacian((3,)).toarray()
    array([[ 1., -1.,  0.],
           [-1.,  2., -1.],
           [ 0., -1.,  1.]])
    """
    from scipy.sparse import diags_array, eye_array, kronsum

    lengths: Any = shape if isinstance(shape, (tuple, list)) else (shape,)
    sizes = tuple(integer(s, "shape", 1) for s in lengths)
    if not sizes:
        raise ValueError("shape must have at least one dimension, not ()")
    if mask is None:
        inside = np.ones(sizes, np.bool_)
    else:
        inside = np.asarray(mask)
        if inside.dtype != np.bool_:
            raise TypeError(f"mask must be boolean, not {inside.dtype}")
        if inside.shape != sizes:
            raise ValueError(f"mask has shape {inside.shape} for a grid of shape {sizes}")
        if not inside.any():
            raise ValueError("mask leaves no points")
    steps = [eye_array(n, k=1) + eye_array(n, k=-1) for n in sizes]  # ones for neighbors along each axis
    index = np.flatnonzero(inside)
    near = reduce(lambda before, along: kronsum(along, before), steps).tocsr()[index][:, index]
    return (diags_array(near.sum(axis=0)) - near).tocsr()


# ---- supports under a prior, and how many there are ---------------------------------------------------


def chosen_support(prior: PriorMatrix, supports: Supports, r: Array, a: float) -> Index:
    """Return a support with a large r_S'(K_S)^-1 r_S - log det K_S, where K = a I + L.

    It is found by greedy search over units. Where K is a multiple of I, the units of largest norm are best.
    Where signs are given, K is diagonal, and the units of largest mass are best: mass is the logarithm of the
    integral of the density over the signs.
    """
    if supports.signs is not None:
        mass = supports.per_unit(within_signs(r, a + prior.diagonal, supports.signs)[0])
        return supports.index(supports.largest(mass - mass.min() + 1, supports.room))
    if isinstance(prior, Sparse) and supports.plain:
        return prior.support(r, a, supports.room)
    ends = []
    if isinstance(prior, Isotropic):
        ends = [supports.largest(supports.norms(r), supports.room)]
        if not supports.grouped:
            return supports.index(ends[0])

    def rows(S: Index) -> tuple[Array]:
        K = prior.rows(S)
        K[np.arange(len(S)), S] += a
        return (K,)

    objective = Regression(KeptRows(rows, prior.p), a + prior.diagonal, r, supports, volume=True)
    return supports.index(max([*forward_ways(objective), *ends], key=objective.value))


def log_binomial(n: int, k: int) -> float:
    """The logarithm of the number of sets of k of n things."""
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def log_supports(choice: Supports, S: Index, k: int) -> float:
    """Return the logarithm of the number of supports of k units, one of them the support S.

    Where the cardinality counts the variables of groups, it is the number of sets of whole groups with as
    many variables as S has.
    """
    free = choice.allowed & ~choice.included
    if not choice.counts_variables:
        return log_binomial(int(free.sum()), k - int(choice.included.sum()))
    room = int(choice.size[free & np.isin(np.arange(len(free)), choice.unit[S])].sum())
    # ways[m]: log of the number of ways to fill m places, adding groups of one size after another
    ways = np.full(room + 1, -np.inf)
    ways[0] = 0.0
    for size, n in zip(*np.unique(choice.size[free], return_counts=True), strict=True):
        before = ways.copy()
        for m in range(1, min(int(n), room // int(size)) + 1):
            some = m * int(size)
            ways[some:] = np.logaddexp(ways[some:], before[: room + 1 - some] + log_binomial(int(n), m))
    return float(ways[room])


# ---- normal distributions that are truncated at 0 ----------------------------------------------------


def within_signs(r: Array, precision: Array, signs: AnyArray) -> tuple[Array, Array, Array, Array]:
    """Independent normal variables of mean r/K and precision K, restricted to these signs.

    With t = s r/sqrt(K) and the ratio h = phi(t)/Phi(t) they have means (t + h) s/sqrt(K), variances
    (1 - h (h + t))/K and entropies log Phi(t) + log(2 pi e/K)/2 - t h/2 (Johnson, Kotz and Balakrishnan 1994,
    section 13.10). Where no sign is given h = 0 and Phi = 1.

    Returns
    -------
    mass : ndarray of shape (p,)
        The logarithm of the integral of exp(r w - K w^2/2)/sqrt(2 pi).
    means, variances, entropies : ndarray of shape (p,)
    """
    signed, side = signs != 0, np.where(signs < 0, -1.0, 1.0)
    t = side * r / np.sqrt(precision)
    h = np.where(signed, math.sqrt(2 / math.pi) / erfcx(-t / math.sqrt(2)), 0.0)
    inside = np.where(signed, log_ndtr(t), 0.0)
    far = signed & (t < -70)  # h is so near to -t that their sum has few digits
    s = 1 / np.where(far, t, -1.0)
    means = np.where(far, -s * (1 - 2 * s**2 + 10 * s**4), t + h)
    variances = np.where(far, s**2 * (1 - 6 * s**2 + 50 * s**4), 1 - h * (h + t))
    mass = inside + (t**2 - np.log(precision)) / 2
    entropies = inside + (1 + LOG_2PI - np.log(precision) - t * h) / 2
    return mass, side * means / np.sqrt(precision), variances / precision, entropies


def variances_of(means: Array, precision: Array, signs: AnyArray) -> Array:
    """Return the variances of variables as in `within_signs` whose means are known, but not r."""
    one = np.ones(1)
    t = np.zeros(len(means))
    for j in np.flatnonzero(signs):
        u = abs(means[j]) * math.sqrt(precision[j])  # t + h
        t[j] = brentq(lambda t, u=u: within_signs(np.array([t]), one, one)[1][0] - u, -2 / u, u)
    return within_signs(t, np.ones(len(t)), np.abs(signs))[2] / precision
