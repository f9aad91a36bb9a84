"""One set of k variables for r components: the sum of the r largest eigenvalues of A[S, S].

For any level t >= 0 write A = B + C, where the eigenvalues of B are min(l, t), l those of A, and those of C
what they exceed t by. Both are semidefinite. The r largest eigenvalues of B[S, S] are at most those of B, and
those of C[S, S] in sum at most its trace, so that the sum is at most

    sum_(q <= r) min(l_q, t) + sum_(i in S) c_i,    c_i = sum_q max(l_q - t, 0) v_qi^2,

of which the k largest c_i make a bound for all S, and those of a variable that must be in S count for it.
"""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Iterable

import numpy as np

from .._limits import ACROSS_RANDOM, RISE, SMALL_ORDER
from .._records import record
from ..linalg.eigen import leading_eigenpairs
from .bordered_sums import Array, Index, Steps, leading_sum, promising, with_each

__all__ = ["CommonProof", "best_common", "bound_of", "exchanged", "forward", "prove", "truncated_iteration"]
__dir__ = __all__.copy


def best_common(
    A: Array, k: int, r: int, steps: Steps, starts: Iterable[Index] = (),
    rng: np.random.Generator | None = None,
) -> Index:  # fmt: skip
    """The best set of k variables that exchanges of one lead to, from a few starts or those given.

    With `rng` some of few variables are random.
    """
    p = len(A)
    if k == p:
        return np.arange(p)
    starts = [*starts]
    if not starts:
        values, V, _ = leading_eigenpairs(A.copy(), r, A if p > SMALL_ORDER and 2 * r < p else None)
        weight = np.square(V) @ np.maximum(values, 0)
        starts = [_largest(A.diagonal(), k), _largest(weight, k), forward(A, k, r)]
        if rng is not None and p <= SMALL_ORDER:
            starts += [np.sort(rng.permutation(p)[:k]) for _ in range(ACROSS_RANDOM)]
    found: dict[bytes, tuple[float, Index]] = {}
    for S in starts:
        S = truncated_iteration(A, S, r)
        if S.tobytes() not in found:
            found[S.tobytes()] = leading_sum(A, S, r), S
    best, most = starts[0], -math.inf
    for _, S in sorted(found.values(), key=lambda one: -one[0]):
        value, S = exchanged(A, S, r, steps)
        if value > most * (1 + RISE) or most == -math.inf:
            most, best = value, S
    return best


def _largest(weight: Array, k: int) -> Index:
    return np.sort(np.argsort(-weight, kind="stable")[:k])


def forward(A: Array, k: int, r: int) -> Index:
    """One variable at a time, that which raises the sum most."""
    S = np.array([int(np.argmax(A.diagonal()))])
    for _ in range(k - 1):
        others = promising(A, S, np.setdiff1d(np.arange(len(A)), S), r)
        S = np.sort(np.append(S, others[int(np.argmax(with_each(A, S, others, r)))]))
    return S


def truncated_iteration(A: Array, S: Index, r: int) -> Index:
    """The k rows of A V of largest norm, V the leading eigenvectors of S, as long as the sum rises."""
    value = leading_sum(A, S, r)
    while True:
        V = np.linalg.eigh(A[np.ix_(S, S)])[1][:, -r:]
        new = _largest(np.square(A[:, S] @ V).sum(axis=1), len(S))
        more = leading_sum(A, new, r)
        if not more > value * (1 + RISE):
            return S
        S, value = new, more


def exchanged(A: Array, S: Index, r: int, steps: Steps) -> tuple[float, Index]:
    """The sum where no exchange of one variable raises it, and the set."""
    value, improved = leading_sum(A, S, r), len(S) < len(A)
    while improved and not steps.over:
        improved = False
        V = np.linalg.eigh(A[np.ix_(S, S)])[1][:, -r:]
        others = promising(A, S, np.setdiff1d(np.arange(len(A)), S), r)
        for i in S[np.argsort(np.square(V).sum(axis=1), kind="stable")]:
            rest = S[i != S]
            sums = with_each(A, rest, others, r) if len(rest) else A.diagonal()[others]
            j = int(np.argmax(sums))
            new = np.sort(np.append(rest, others[j]))
            if sums[j] > value * (1 + RISE) and (more := leading_sum(A, new, r)) > value * (1 + RISE):
                S, value, improved = new, more, True
                steps()
                break
    return value, S


@record
class CommonProof:
    """The best set, no other being above `upper`, and whether the search tree was finished."""

    index: Index
    upper: float
    complete: bool


@record
class _Node:
    """Sets that hold the first `taken` of these variables, and others of them."""

    index: Index
    taken: int


def prove(
    A: Array, k: int, r: int, begin: Index, steps: Steps, *,
    tol: float = 0.0, seconds: float = math.inf, nodes: int | None = None,
) -> CommonProof:  # fmt: skip
    """Branch and bound over all sets of k variables, the most promising one first."""
    end = time.monotonic() + seconds
    best, most = begin, leading_sum(A, begin, r)
    slack = max(tol, 1e-12)
    bound, _, _ = bound_of(A, np.arange(len(A)), 0, k, r)
    open_nodes, number = [(-bound, 0, _Node(np.arange(len(A)), 0))], 1
    while open_nodes and -open_nodes[0][0] > most * (1 + slack):
        upper = -open_nodes[0][0]
        out = nodes is not None and number > nodes
        if out or time.monotonic() > end or steps.report(number):
            return CommonProof(best, upper, False)
        node = heapq.heappop(open_nodes)[2]
        _, weight, S = bound_of(A, node.index, node.taken, k, r)
        value = leading_sum(A, S, r)
        if value > most:
            most, best = value, np.sort(S)
        chosen = node.taken + int(np.argmax(weight[node.taken :]))
        rest = np.delete(node.index, chosen)
        taken = np.insert(rest, node.taken, node.index[chosen])
        for child in (_Node(taken, node.taken + 1), _Node(rest, node.taken)):
            if len(child.index) < k:
                continue
            bound = min(upper, bound_of(A, child.index, child.taken, k, r)[0])
            if bound > most * (1 + slack):
                heapq.heappush(open_nodes, (-bound, number, child))
                number += 1
    upper = max(most, -open_nodes[0][0]) if open_nodes else most
    return CommonProof(best, upper * (1 + 1e-12), True)


def bound_of(A: Array, index: Index, taken: int, k: int, r: int) -> tuple[float, Array, Index]:
    """A bound on the sum over sets of k of these variables with the first ones taken; what each adds to it,
    and the set that it is the sum of."""
    if taken == k or len(index) == k:
        S = index[:k]
        return leading_sum(A, S, r), np.ones(len(index)), S
    G = A[np.ix_(index, index)]
    values, V = np.linalg.eigh(G)
    values = np.maximum(values, 0)
    levels = np.concatenate([[0.0], values, (values[1:] + values[:-1]) / 2])
    share = np.square(V) @ np.maximum(values[:, None] - levels, 0)
    order = np.sort(share[taken:], axis=0)[::-1][: k - taken]
    bounds = np.minimum(values[-r:, None], levels).sum(axis=0) + share[:taken].sum(axis=0) + order.sum(axis=0)
    at = int(np.argmin(bounds))
    weight, bound = share[:, at], float(bounds[at])
    if taken:  # and a semidefinite matrix has at most the sums of its two diagonal blocks
        diagonal = np.sort(G.diagonal()[taken:])[::-1][: k - taken]
        bound = min(bound, leading_sum(A, index[:taken], r) + float(diagonal.sum()))
    others = taken + np.argsort(-weight[taken:], kind="stable")[: k - taken]
    return bound, weight, index[np.concatenate([np.arange(taken), others])]
