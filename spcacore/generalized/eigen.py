"""Sparse generalized eigenproblems: `max x'Ax/x'Bx` with few nonzeros, one direction after another."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import _core
from .._asked import as_record
from .._labels import columns_of, symmetric
from .._limits import (
    CERTIFIED_NODES,
    CERTIFIED_WORK,
    PENCIL_ALL_SWAPS_WORK,
    PENCIL_BACKWARD_ORDER,
    PENCIL_ENTERING,
    PENCIL_ENUMERATED,
    PENCIL_GREEDY_WORK,
    PENCIL_LEFT,
    PENCIL_PAIRS,
    PENCIL_START_WORK,
    PENCIL_STARTS,
    PENCIL_SUPPORT,
    PENCIL_SWAP_WORK,
    SIGNED_ORDER,
    TIE,
    USUAL_BACKWARD_ORDER,
)
from .._messages import few
from .._records import frozen_record, record
from .._types import AnyArray, Array, DType, Index, Mask, MatrixLike, Names
from .._validation import (
    Hook,
    check_bool,
    check_choice,
    column_names,
    default_cardinality,
    integer,
    per_component,
)
from ..choice import Choice
from ..linalg.orthogonal import fix_sign
from ..linalg.scaling import below_range, descending
from ..methods import RatioSearch
from ..objectives.ratio import RatioOfUnits
from ..operators.deflation import DEFLATIONS as ALL_DEFLATIONS
from ..operators.deflation import Deflation
from ..operators.sparse import Covariance
from ..progress import Callback, check_callback
from ..readable import Named
from ..solvers.base import as_ended, found_in_turn, progress_hook, refuse_costly
from ..solvers.certificates import OptimalityBound
from ..solvers.solution import ProgressHook, Solution, ended
from ..supports.admissible import Supports, Units, knowledge, with_unit
from ..supports.search import Clock, Steps, backward, forward, forward_ways, never, swap
from ..supports.tree import prove
from .pencil import Form, Pencil, Unbounded, common_dtype, pencil_bounds, refuse_many


@frozen_record(kw_only=True)
class DirectionsResult(Named):
    """Directions of a pencil, in the order in which they were found."""

    loadings: AnyArray
    values: Array
    upper_bound: Array | None
    cardinality: Index
    n_iter: Index
    converged: Mask
    method: str
    deflation: str
    names: Names = None


@frozen_record(kw_only=True)
class SparseEigenResult(DirectionsResult):
    """Sparse generalized eigenvectors, in the order in which they were found.

    Attributes
    ----------
    loadings : ndarray of shape (p, r)
        Columns of unit 2-norm; in each, the entry of largest magnitude is positive, where no signs are given.
    values : ndarray of shape (r,)
        The ratio `x'Ax/x'Bx` of each loading.
    deflated_values : ndarray of shape (r,)
        The same ratio in the deflated pencil, which was maximized; for the first loading it equals the value.
    metric_norm : ndarray of shape (r,)
        `sqrt(x'Bx)`: `loadings / metric_norm` has `x'Bx = 1`.
    upper_bound : ndarray of shape (r,) or None
        The largest generalized eigenvalue of the deflated pencil, which no x can exceed. With
        ``certify=True``, a bound that no x of that cardinality can exceed, see `sparse_eigen_bound`. None
        where the bound was not computed, with more than 1024 variables, or where B is singular along a
        direction that A does not map to zero.
    cardinality : ndarray of shape (r,), int
        Nonzeros of each loading.
    n_iter : ndarray of shape (r,), int
        Variables added or removed and swaps made by all searches.
    converged : ndarray of shape (r,), bool
        Whether swaps of variables ended at a support that none improves, among those considered.
    method, deflation : str
    names : tuple of str or None
        Names of the variables, when A had any.

    Examples
    --------
    >>> import spcacore
    >>> A, B = [[2.0, 1.0, 0.0], [1.0, 3.0, 0.0], [0.0, 0.0, 1.0]], [[1.0, 0, 0], [0, 2.0, 0], [0, 0, 1.0]]
    >>> result = spcacore.sparse_eigen(A, B, cardinality=2)
    >>> result.cardinality.tolist(), result.values.round(2).tolist()
    ([2], [2.5])
    """

    deflated_values: Array
    metric_norm: Array

    def _facts(self) -> list[str]:
        return [f"method={self.method!r}", *self._sizes("direction"), f"values={few(self.values)}"]


def sparse_eigen(
    A: MatrixLike, B: MatrixLike, n_components: int = 1, cardinality: int | ArrayLike | None = None, *,
    options: RatioSearch | None = None, choice: Choice | None = None,
    deflation: str = "projection", certify: bool = False, callback: Callback | None = None,
) -> SparseEigenResult:  # fmt: skip
    """Sparse generalized eigenvectors of a symmetric pencil.

    Searches `max x'Ax/x'Bx` over x with at most `cardinality` nonzeros, for B positive semidefinite and
    possibly singular. It then repeats the search in the deflated pencil, until there are `n_components`
    directions.

    Parameters
    ----------
    A : array-like or sparse matrix of shape (p, p)
        Symmetric; it may be indefinite. float32 and float64 are not copied; a sparse matrix stays sparse.
    B : array-like or sparse matrix of shape (p, p)
        Symmetric positive semidefinite. Where x'Bx = 0, Ax must be 0 too; the search ignores such directions.
        Otherwise the ratio has no bound, and a search that meets such a direction raises a ValueError.
    n_components : int, default 1
        In [1, p].
    cardinality : int or sequence of n_components ints, optional
        k, in [1, p], at most 4000. Default: the square root of the number of variables, rounded up.
    options : RatioSearch, optional
        How directions are sought.
    choice : Choice, optional
        What you know about the variables; the cardinality then counts groups.
    deflation : str, default "projection"
        As in `deflate`, in the metric of B: "hotelling", "projection", "schur",
        "orthogonalized_hotelling", "orthogonalized_projection", "orthogonalized_schur" or "generalized".
    certify : bool, default False
        Make `upper_bound` a bound for the given cardinality (see `sparse_eigen_bound`) and choice (by branch
        and bound over what may be chosen), for up to 500 variables.
    callback : callable or True, optional
        Called with a `Progress` after each step, and with the value once a direction is found.
        Raising StopIteration ends the search early, see `Progress`.

    Returns
    -------
    SparseEigenResult
        `loadings` (p, r) of unit 2-norm, `values` (r,), `metric_norm` (r,), `upper_bound` (r,), ... Fewer
        directions, and a RuntimeWarning, where the deflated pencil has nothing left.

    Raises
    ------
    ValueError
        For NaN, infinite or empty input, matrices that are not square, symmetric or of one size, B not
        positive semidefinite, a ratio without bound, or an option out of range.
    TypeError
        For input that is not real numbers, or an option of the wrong type.

    References
    ----------
    B. Moghaddam, Y. Weiss and S. Avidan (2006). Generalized spectral bounds for sparse LDA. Proceedings of
    the 23rd International Conference on Machine Learning, 641-648.

    L. Mackey (2008). Deflation methods for sparse PCA. Advances in Neural Information Processing Systems 21.

    Examples
    --------
    >>> import numpy as np, spcacore
    >>> A = np.diag([4.0, 3.0, 2.0, 1.0])
    >>> B = np.diag([4.0, 1.0, 1.0, 1.0])
    >>> A[1, 2] = A[2, 1] = 1
    >>> result = spcacore.sparse_eigen(A, B, 1, 2)
    >>> np.flatnonzero(result.loadings[:, 0]), result.values.round(4)
    (array([1, 2]), array([3.618]))
    """
    forms, dtype = read_pencil(A, B)
    p = forms[0].p
    names = column_names(A)
    asked = check_options(p, names, cardinality, n_components, choice, options, deflation, certify)
    found = directions(Pencil(*forms, dtype=dtype), asked, check_callback(callback))
    return replace(found, names=names)


def read_pencil(A: Any, B: Any) -> tuple[tuple[Form, Form], DType]:
    """Return the forms of A and B, checked, and the type of the results."""
    A = symmetric(A, None, "A")
    given = (A, "A"), (symmetric(B, columns_of(A), "B", "the variables of A"), "B")
    stores = [Covariance(x, definite=False, called=name) for x, name in given]
    for one in stores:
        one.largest()  # refuses what is not finite or not symmetric
    x, y = stores
    if x.shape != y.shape:
        raise ValueError(f"A and B must be of one size, not {x.shape} and {y.shape}")
    return (Form.of_storage(x), Form.of_storage(y)), common_dtype(x, y)


def directions(pencil: Pencil, options: Options, hook: Hook) -> SparseEigenResult:
    """Find one direction after another, and return the result.

    Deflation removes each before the next is sought. The search ends early where only rounding is left.
    """
    r, p = len(options.cardinality), pencil.A.p

    def find(earlier: list[Solution], progress: ProgressHook | None) -> Solution | None:
        """Return the next direction, with an upper bound if that is asked for; None if nothing is left."""
        if earlier:
            pencil.remove(earlier[-1], options.deflation)
        k = options.cardinality[len(earlier)]
        x = search(pencil, min(k, len(pencil.active)) if options.supports.plain else k, options, progress)
        least = [PENCIL_LEFT.of(pencil.dtype) * abs(one.objective) for one in earlier[:1]]
        if earlier and not x.objective > max(*least, pencil.rounding(x)):
            return None
        if options.certify and not ended(progress):
            bound = min(_bounds(pencil, k, x, options), default=None)
        else:
            bound = pencil.bound()
        return replace(x, upper_bound=None if bound is None else max(bound, x.objective))

    # Loadings of unit length in the caller's units, and their ratios
    found: list[Solution] = found_in_turn(r, find, hook, "direction", lambda x: pencil.ratio(x)[0])
    loadings = np.zeros((p, len(found)), pencil.dtype, order="F")
    values, norms = np.zeros(len(found)), np.zeros(len(found))
    for t, x in enumerate(found):
        exponents = np.frexp(pencil.unit[x.index])[1]
        v = np.ldexp(x.entries, exponents - exponents.max())
        v = v if options.supports.signs is not None else fix_sign(v)
        size = float(np.linalg.norm(v))
        loadings[x.index, t] = v / size
        values[t], square = pencil.ratio(x)
        norms[t] = math.sqrt(square) / size / math.ldexp(1.0, int(exponents.max()) - 1)
    # Bounds and deflated values in the caller's units
    scale = np.ldexp(1.0, pencil.exponent)
    known = [x.upper_bound for x in found if x.upper_bound is not None]
    with below_range():
        deflated = np.array([x.objective for x in found]) * scale
        upper_bound = np.array(known) * scale if len(known) == len(found) else None
    return SparseEigenResult(
        loadings=loadings, values=values,
        deflated_values=deflated, metric_norm=norms, upper_bound=upper_bound,
        cardinality=np.count_nonzero(loadings, axis=0), **as_ended(found),
        method="greedy", deflation=options.deflation.name,
    )  # fmt: skip


def _bounds(pencil: Pencil, k: int, x: Solution, options: Options) -> Iterator[float]:
    """Yield upper bounds on the values of all supports that are allowed; x is the best direction known."""
    supports, p = options.supports.within(k), len(pencil.active)
    most = min(supports.most_variables(k), p)
    if not (supports.plain or (supports.signs is not None and most > SIGNED_ORDER)):
        objective, begin = ratio_of(pencil, supports), supports.mask(x.index) | supports.included
        work = 25 * p**3 * (1 + supports.grouped * len(begin) // 5)
        with suppress(Unbounded):  # the ratio of more variables may have no bound
            proof = prove(objective, begin, node_limit=min(CERTIFIED_NODES, CERTIFIED_WORK // work))
            yield proof.upper()
            if not proof.open():
                return
    yield from pencil_bounds(pencil, most, start=x.index).values()


def search(pencil: Pencil, k: int, options: Options, progress: ProgressHook | None) -> Solution:
    """Return the best direction of cardinality k that greedy searches and swaps find."""
    # Which searches are affordable
    objective = ratio_of(pencil, options.supports.within(k))
    steps, whole = Steps(progress or never), options.supports.plain and k == len(pencil.active)
    costly = 4 / 3 * k**3 * len(pencil.active) > PENCIL_GREEDY_WORK  # forward search would be
    strategy = "rough" if costly and options.strategy == "auto" else options.strategy
    work = 0.0 if strategy == "rough" else 2 * (4 / 3 * k**3 * len(pencil.active) + 6 * k**4)

    def clock(n: int) -> bool:
        """Report progress; never end a forward search, so that supports have their full cardinality."""
        return steps(n) and False

    # Each support that a search finds, improved by swaps
    runs = iter([pencil.usable]) if whole else greedy_searches(objective, pencil, strategy, clock)
    best, most, converged, seen = objective.supports.included, -math.inf, True, set()
    for units in runs:
        if units.tobytes() in seen:
            continue
        seen.add(units.tobytes())
        value, done = objective.value(units), True
        if options.swaps and not whole and not steps.ended:
            objective.work = max(PENCIL_ALL_SWAPS_WORK, work)
            value, units = swap(objective, units, steps)
            done = not objective.exhausted and not steps.ended
            seen.add(units.tobytes())
        if value > most + TIE.double * abs(most) or most == -math.inf:
            best, most, converged = units, value, done
        if steps.ended:
            break
    # The direction on the best support
    x = objective.best_on(best)
    if x is None:
        raise ValueError("choice leaves no direction of these signs")
    y = pencil.least_norm(Solution(x.index, x.x, x.value, max(steps.done, 1), converged))
    kept = y.entries != 0
    return replace(y, index=y.index[kept], entries=y.entries[kept])


def sparse_eigen_bound(
    A: MatrixLike,
    B: MatrixLike,
    cardinality: int,
    *,
    node_limit: int = 2000,
    callback: Callback | None = None,
) -> OptimalityBound:
    """An upper bound on `x'Ax/x'Bx` over x with at most k nonzeros.

    The smallest of

    - "spectral": the largest generalized eigenvalue;
    - "search": the bound of branch and bound, where B is positive definite; it is the optimum, up to
      rounding, if the search is completed;
    - "relaxation": the bound of a semidefinite relaxation, where the search is not completed.

    Parameters
    ----------
    A : array-like or sparse matrix of shape (p, p)
        Symmetric; it may be indefinite.
    B : array-like or sparse matrix of shape (p, p)
        Symmetric positive semidefinite.
    cardinality : int
        k, in [1, p].
    node_limit : int, default 2000
        Nodes of each search tree; there are at most five trees.
    callback : callable or True, optional
        Called with a `Progress` at most twenty times a second, and with the bound as its value at the end.
        Raising StopIteration ends the search with the bounds that are known. True draws a progress bar.

    Returns
    -------
    OptimalityBound
        `upper_bound`, `which` and `bounds`.

    Raises
    ------
    ValueError
        For NaN, infinite or empty input, matrices that are not square, symmetric or of one size, B not
        positive semidefinite, a ratio without bound, more than 500 variables, or an option out of range.
    TypeError
        For input that is not real numbers, or an option of the wrong type.

    References
    ----------
    B. Moghaddam, Y. Weiss and S. Avidan (2006). Generalized spectral bounds for sparse LDA. Proceedings of
    the 23rd International Conference on Machine Learning, 641-648. W. Dinkelbach (1967). On nonlinear
    fractional programming. Management Science 13, 492-498.

    Examples
    --------
    >>> import numpy as np, spcacore
    >>> A, B = np.diag([4.0, 3.0, 2.0, 1.0]), np.diag([4.0, 1.0, 1.0, 1.0])
    >>> A[1, 2] = A[2, 1] = 1
    >>> best = spcacore.sparse_eigen_bound(A, B, 2)
    >>> best.which, round(best.upper_bound, 4), spcacore.sparse_eigen(A, B, 1, 2).values.round(4)
    ('spectral', 3.618, array([3.618]))
    """
    forms, dtype = read_pencil(A, B)
    k = integer(cardinality, "cardinality", 1, forms[0].p)
    nodes = integer(node_limit, "node_limit", 1)
    hook = progress_hook(callback)
    refuse_many(forms[0].p)
    pencil = Pencil(*forms, dtype=dtype)
    bounds = pencil_bounds(pencil, k, nodes, hook=hook)
    if not bounds:
        raise ValueError("B maps a direction to zero that A does not: the ratio has no bound")
    return OptimalityBound.smallest(bounds, pencil.exponent, hook)


# ---- how directions are sought: options, and where searches begin ------------------------------------------


DEFLATIONS = {name: one for name, one in ALL_DEFLATIONS.items() if not one.residual}


@record
class Options:
    """The options of a search for directions, checked."""

    supports: Supports
    cardinality: tuple[int, ...]
    strategy: str
    swaps: bool
    deflation: Deflation
    certify: bool


def check_options(
    p: int, names: Names, cardinality: Any, n_components: Any, choice: Any, options: Any,
    deflation: Any, certify: Any,
) -> Options:  # fmt: skip
    """Return the options that `sparse_eigen` and `sparse_lda` share, checked."""
    given, supports = as_record(options, RatioSearch), Supports.checked(p, names, **knowledge(choice))
    r = integer(n_components, "n_components", 1, p)
    least, most = supports.bounds
    most = min(most, PENCIL_SUPPORT)
    k = per_component(
        min(max(default_cardinality(p), least), most) if cardinality is None else cardinality, "cardinality",
        r, lambda v, name: integer(v, name, least, most, "" if supports.plain else supports.why()),
    )  # fmt: skip
    removal = DEFLATIONS[check_choice(deflation, "deflation", DEFLATIONS)]
    if supports.signs is not None and removal.quotient:
        raise ValueError(f"signs cannot be combined with deflation={deflation!r}: leave one out")
    refuse_costly(given.strategy, p, PENCIL_BACKWARD_ORDER)
    if check_bool(certify, "certify"):
        refuse_many(p)
    return Options(supports, k, given.strategy, given.swaps, removal, bool(certify))


def ratio_of(pencil: Pencil, supports: Supports) -> RatioOfUnits:
    """Return the objective of the search: the largest value of the pencil on a support.

    Only usable variables are allowed.
    """
    objective = RatioOfUnits(pencil, supports.among(supports.mask(pencil.active)))
    objective.most_tried = max(PENCIL_ENTERING, int(PENCIL_SWAP_WORK / (4.0 * supports.room**3)))
    return objective


def greedy_searches(objective: RatioOfUnits, pencil: Pencil, strategy: str, clock: Clock) -> Iterator[Units]:
    """Yield the supports that the searches of a strategy find."""
    supports = objective.supports
    k, n = supports.room, len(pencil.active)
    if strategy == "rough":
        yield _rough(objective, clock)
        return
    if strategy != "backward":
        yield from forward_ways(objective, clock)
    if strategy in ("backward", "bidirectional"):
        yield backward(objective, clock)
    # "auto": all supports if they are few; else backward search, and forward search from several starts
    if strategy != "auto" or k == 1:
        return
    if supports.plain and math.comb(n, k) <= PENCIL_ENUMERATED:
        sets = [supports.mask(np.array(S)) for S in combinations(pencil.active, k)]
        yield sets[int(np.argmax(objective.most(sets)))]
        return
    if n <= USUAL_BACKWARD_ORDER:
        # the ratio of all variables may have no bound where that of a few has
        with suppress(Unbounded):
            yield backward(objective, clock)
    affordable = int(PENCIL_START_WORK / (4 / 3 * k**3 * n))
    if supports.plain and k > 2 and n <= PENCIL_BACKWARD_ORDER:
        starts = best_pairs(pencil, min(PENCIL_PAIRS, affordable))
    else:
        starts = single_units(objective, min(PENCIL_STARTS, affordable))[:, None]
    for start in starts:
        with suppress(Unbounded):
            yield forward(objective, with_unit(supports.included, add=start), clock)


def _rough(objective: RatioOfUnits, clock: Clock) -> Units:
    """Return the support of a rough forward search, for many variables.

    Each step adds about a seventh more units, those with the largest ratios beside the units that are there.
    """
    supports, steps = objective.supports, 0
    units = supports.included
    while len(others := np.flatnonzero(supports.joining(units))) and not clock(steps):
        order = descending(objective.with_each(units, others))
        for unit in others[order[: 1 + np.count_nonzero(units) // 7]]:
            if supports.joining(units)[unit]:
                units = with_unit(units, add=unit)
        steps += 1
    return units


def single_units(objective: RatioOfUnits, count: int) -> Index:
    """Return the units with the largest ratios beside the included ones."""
    included = objective.supports.included
    others = np.flatnonzero(objective.supports.joining(included))
    return others[descending(objective.with_each(included, others))[:count]]


def best_pairs(pencil: Pencil, count: int, apart: Index | None = None) -> Index:
    """Return the pairs of variables with the largest values; each variable is in at most two of them.

    With `apart`, which says of each variable in which of two parts it is, a pair has one variable of each
    part. The values are the larger roots v of det(A - v B) = 0 on the pairs.
    """
    active = pencil.active
    part = None if apart is None else apart[active]
    return active[_core.best_pairs(*pencil.blocks(active), pencil.least, count, part)]
