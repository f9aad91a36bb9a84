"""Components without a common variable: the sum of the largest eigenvalues of their submatrices.

Such loadings are orthogonal, so that this is the variance that they explain together. Places are given by
`label`: the component that a variable belongs to, or -1.
"""

from __future__ import annotations

from itertools import permutations

import numpy as np

from .._limits import ACROSS_RANDOM, RISE, SMALL_ORDER
from .bordered_sums import Array, Index, Steps, leading_sum, promising, with_each
from .common_support import best_common
from .disjoint_enumeration import Sets, enumerated, splits_of

__all__ = ["best_disjoint"]
__dir__ = __all__.copy


def best_disjoint(
    A: Array, sizes: tuple[int, ...], steps: Steps, total: bool, seed: int, begin: Sets | None = None
) -> tuple[Sets, bool]:  # fmt: skip
    """The best sets of these sizes that exchanges lead to, and whether they are proved to be the best of all.

    With `total` only the sum of the sizes is kept. Of few variables all supports are tried.
    """
    small, rng = len(A) <= SMALL_ORDER, np.random.default_rng(seed)
    if begin is not None:
        return _ascended(A, begin, steps, total, small), False
    starts = [_in_turn(A, [None] * len(sizes), sizes, steps, deflated) for deflated in (False, True)]
    ends = [_ascended(A, sets, steps, total, small) for sets in starts]
    best, proved = max(ends, key=lambda sets: _value(A, sets)), False
    if small and not steps.over:
        ways = splits_of(sum(sizes), len(sizes), len(A)) if total else [tuple(sorted(sizes, reverse=True))]
        best, proved = enumerated(A, ways, best, _value(A, best))
    for _ in range(ACROSS_RANDOM if small else 0):
        if steps.over or proved:
            break
        dropped = rng.random(len(sizes)) < 0.5
        kept = [None if out else S for S, out in zip(best, dropped, strict=True)]
        counts = tuple(map(len, best))
        new = _ascended(A, _in_turn(A, kept, counts, steps, False, rng), steps, total, pairs=False)
        if _value(A, new) > _value(A, best) * (1 + RISE):
            best = new
    return best, proved


def _value(A: Array, sets: Sets) -> float:
    return sum(leading_sum(A, S, 1) for S in sets)


def _in_turn(
    A: Array, sets: list[Index | None], sizes: tuple[int, ...], steps: Steps, deflated: bool,
    rng: np.random.Generator | None = None,
) -> Sets:  # fmt: skip
    """The sets that are missing, one after another among the variables left, of A or of what is left of it;
    with `rng` random ones."""
    left, out = A, dict(enumerate(sets))
    missing = [t for t, S in out.items() if S is None]
    for t in missing:
        used = [S for S in out.values() if S is not None]
        free = np.setdiff1d(np.arange(len(A)), np.concatenate([*used, np.zeros(0, np.intp)]))
        if rng is not None:
            out[t] = np.sort(rng.permutation(free)[: sizes[t]])
            continue
        out[t] = free[best_common(left[np.ix_(free, free)], sizes[t], 1, steps)]
        if deflated:
            S = out[t]
            assert S is not None
            x = np.zeros(len(A))
            x[S] = np.linalg.eigh(left[np.ix_(S, S)])[1][:, -1]
            y = left @ x
            left = left - np.outer(x, y) - np.outer(y, x) + (x @ y) * np.outer(x, x)
    return [S for S in out.values() if S is not None]


def _ascended(A: Array, sets: Sets, steps: Steps, total: bool, pairs: bool = True) -> Sets:
    """Exchanges, and each component or pair anew among what the others leave, as long as the value rises."""
    value = _value(A, sets)
    while not steps.over:
        new = _exchanged(A, sets, total)
        if new is None:
            new = _each_anew(A, sets, steps, pairs)
        if not (more := _value(A, new)) > value * (1 + RISE):
            break
        sets, value = new, more
        steps()
    return sets


def _each_anew(A: Array, sets: Sets, steps: Steps, pairs: bool) -> Sets:
    """Each component, and of `pairs` each in both orders, chosen again where that explains more.

    From its own variables and those that belong to none.
    """
    r, sets = len(sets), [*sets]
    sizes = tuple(map(len, sets))
    groups: list[tuple[int, ...]] = [(t,) for t in range(r)]
    groups += permutations(range(r), 2) if pairs else ()
    for group in groups:
        if steps.over:
            break
        free = np.setdiff1d(
            np.arange(len(A)), np.concatenate([S for t, S in enumerate(sets) if t not in group] + [[]])
        ).astype(np.intp)
        new = [*sets]
        for t in group:
            new[t] = free[best_common(A[np.ix_(free, free)], sizes[t], 1, steps)]
            free = np.setdiff1d(free, new[t])
        if _value(A, new) > _value(A, sets) * (1 + RISE):
            sets = new
    return sets


def _exchanged(A: Array, sets: Sets, total: bool) -> Sets | None:
    """The sets after the exchange of one variable, or of two between components, that gains most; or None.

    With `total` a variable may leave one component while another, the same or not, joins another component.
    """
    p, r = len(A), len(sets)
    label = np.full(p, -1)
    for t, S in enumerate(sets):
        label[S] = t
    now = np.array([leading_sum(A, S, 1) for S in sets])
    gain: dict[tuple[int, int], float] = {}  # of component t, by i that leaves and j that joins
    table = np.full((p, p), -np.inf)  # the same by i and j, whose component is that of i
    for t, S in enumerate(sets):
        others = promising(A, S, np.flatnonzero(label != t), 1)
        for i in S:
            rest = S[i != S]
            table[i, others] = (with_each(A, rest, others, 1) if len(rest) else A.diagonal()[others]) - now[t]
    free = np.flatnonzero(label < 0)
    for i in np.flatnonzero(label >= 0):
        if len(free):
            j = int(free[np.argmax(table[i, free])])
            gain[int(i), j] = float(table[i, j])
    both = np.where((label[:, None] >= 0) & (label >= 0), table + table.T, -np.inf)
    if r > 1 and np.isfinite(both).any():
        i, j = divmod(int(np.argmax(both)), p)
        gain[i, j] = float(both[i, j])
    move, best = max(gain.items(), key=lambda one: one[1], default=((0, 0), -np.inf))
    label_after = label.copy()
    label_after[list(move)] = label[list(reversed(move))]
    if total:
        given, least = _given(A, sets, label, now)
        if least > best:
            label_after, best = given, least
    if not best > RISE * now.sum():
        return None
    return [np.flatnonzero(label_after == t) for t in range(r)]


def _given(A: Array, sets: Sets, label: Index, now: Array) -> tuple[Index, float]:
    """The labels where one component has a variable less and another one more, and what that gains."""
    free, best, out = np.flatnonzero(label < 0), -np.inf, label
    joined = {t: with_each(A, S, free, 1) - now[t] for t, S in enumerate(sets)}
    for s, S in enumerate(sets):
        for i in S if len(S) > 1 else ():
            loss = now[s] - leading_sum(A, S[i != S], 1)
            for t, T in enumerate(sets):
                if t == s:
                    continue
                own = float(with_each(A, T, np.array([i]), 1)[0]) - now[t]
                j = int(free[np.argmax(joined[t])]) if len(free) else i
                gain = max(own, float(joined[t].max(initial=-np.inf))) - loss
                if gain > best:
                    best, out = gain, label.copy()
                    out[i] = -1
                    out[i if own >= gain + loss else j] = t
    return out, best
