"""The search of one component from the ends of races on A between some variables, or between all.

Also here: whether noise alone would explain what was found, so that a weak signal may have been missed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from .. import _core
from .._limits import (
    BRIEF_ORDER,
    DEEP_ENDS,
    FIELD_AT_ONCE,
    FIELD_GAIN,
    FIELD_IMAGE_WORK,
    FIELD_INSIDE,
    FIELD_LEADS,
    FIELD_LEADS_LEAST,
    FIELD_LIFTED,
    FIELD_NEAR,
    FIELD_ORDER,
    FIELD_PARTNERS,
    FIELD_PROBE,
    FIELD_PROBE_EACH,
    FIELD_ROUNDING,
    FIELD_ROUNDS,
    FIELD_SLACK,
    FIELD_SOME,
    KRYLOV_WORK,
    NOISE_GROWTH,
    NOISE_INDEPENDENT,
    NOISE_VARIABLES,
    PROBE_AGAIN,
    PROBE_COLUMNS,
    PROBE_DROP,
    PROBE_ENTRIES,
    PROBE_FIRST,
    PROBE_LEAST,
    PROBE_PAIRED,
    PROBE_PART,
    PROBE_ROWS,
    PROBE_RUN,
    PROBE_SHARE,
    PROBE_STARTS,
    PROBES,
    RACE_ENDS,
    RACE_STARTS,
    RANDOM_AMONG,
    RANDOM_FEW,
    RANDOM_HITS,
    RANDOM_SHARE,
    RANDOM_SPARSE,
    RANDOM_TOLD,
    RANDOM_WORK,
    RISE,
    SUBMATRIX_ORDER,
    WEAK_CORRELATION,
    WEAK_SWAP_WORK,
)
from .._records import record, replaced
from .._types import Array, Index
from ..linalg.scaling import are_among, roots, union
from ..operators.deflation import DeflatedOperator
from ..operators.field import Field, Ground, variances_tie
from ..operators.gram import largest_submatrix, rows_of
from .base import IterativeSolver
from .matrix_search import End, can_be_swapped, ends_on_field
from .refitting import fitted_on, is_better
from .solution import Solution, Tally, agreeing, drop_zeros, ended
from .solver import found_from_each
from .starts import ends_of_columns, extreme_samples
from .variance import swap_search

Race = tuple[list[End], int, int]  # ends, the best first; the number of starts; the steps to the best end


@record
class FieldSearch:
    """The search of one component from the ends of races on fields.

    A field is A between some variables, in single precision. First, columns at random lead to supports of
    which variances tell nothing, and a part of A has too few variables (`elsewhere`). A race on a small field
    then tells whether one start is enough (`probed`): it is, if the ends of that race, once all variables may
    enter, lead to nothing better, and columns of A do not tell of other supports. Otherwise a race runs on
    the field of all variables, or of as many as memory allows (`raced`). Where the signal may be weak, all
    columns of a field start (`deeper`).
    """

    solver: IterativeSolver
    state: DeflatedOperator
    cardinality: int
    ground: Ground
    swaps: float

    def at_once(self) -> bool:
        """Whether a race comes first, before any search from one start.

        It does where a race costs less than dense leading vectors, if variables are few or variances do not
        tell which ones to try.
        """
        p, cheap = self.state.p, self.state.p <= FIELD_ORDER or self.state.problem.cost > KRYLOV_WORK
        return cheap and p > BRIEF_ORDER and self._untold()

    def all_race(self) -> bool:
        """Whether a race comes first, and has all variables."""
        return self.state.p <= FIELD_ORDER and self.at_once()

    def _untold(self) -> bool:
        """Whether a small field tells nothing of the other variables: if all are few, or variances tie."""
        p = self.state.p
        return p <= FIELD_AT_ONCE or variances_tie(self.state.diagonal, min(4 * self.cardinality, p))

    @property
    def _some(self) -> int:
        """The number of variables of the small field."""
        return max(FIELD_PROBE, FIELD_PROBE_EACH * self.cardinality)

    def expect(self) -> None:
        """Tell data in blocks of rows which variables will be asked for, so that one pass serves them all.

        These are variables of the small field, and those of large variance, from which noise is estimated.
        """
        op: Any = self.state.problem.operator
        if op.by_passes and len(op.gram.members) == 0 and not self._untold():
            count = min(SUBMATRIX_ORDER + 4 * self.cardinality, FIELD_SOME, self.state.p)
            likely = _core.select_largest(self.state.problem.variances, count)
            op.gram.expected = union(self.ground.some(self.state, self._some, False), likely)

    def probed(self, best: Solution) -> tuple[Solution | None, bool]:
        """Return the better of this component and those from a race on a small field; whether that is enough.

        It is not enough if the race finds a better support that has variables in common with this one,
        because one start then misses supports. A better support without common variables may be the next
        component, which came first. So `ground.moved` is set, and every later component is probed too.
        """
        ground = self.ground
        if ground.wide or self._untold():
            return best, False
        before, ground.value = ground.value, best.objective
        if ground.enough >= PROBES and not ground.moved and best.objective > PROBE_DROP * before:
            return best, True
        field = ground.field(self.state, self._some, False)
        if field is None:
            return best, True
        new = self._best_of_race(field.index, best, self._race(field, PROBE_STARTS, RACE_ENDS), FIELD_LIFTED)
        moved = _moved(new, best)
        ground.wide = moved and (new is None or bool(are_among(best.index, new.index).any()))
        if not ground.wide and (moved or ground.enough == 0):
            ground.wide = self._hidden(field, best if new is None else new)
        enough = new is None or not ground.wide or ended(self.state.hook)
        ground.moved |= moved
        ground.enough += enough
        return new, enough

    def raced(self, best: Solution | None) -> Solution | None:
        """Return the better of this component and those that the ends of a race lead to."""
        return self._raced(best, FIELD_ORDER if self.state.p <= FIELD_ORDER else FIELD_SOME, RACE_STARTS)

    def deeper(self, best: Solution | None) -> Solution | None:
        """Return the better of this component and those to which a race from all columns leads.

        This is for a component that is no more correlated than noise, so that a weak signal may have been
        missed.
        """
        thorough = replaced(self, swaps=max(self.swaps, WEAK_SWAP_WORK))
        return thorough._raced(best, FIELD_ORDER if self.all_race() else FIELD_SOME, 0)

    def _raced(self, best: Solution | None, most: int, count: int) -> Solution | None:
        """Return the better of this component and those from a race between all variables, or between `most`.

        The race has `count` starts, or starts from all columns of the field if that is 0. A field of some
        variables lacks others that the best support has, and no other variable tells of one that has little
        variance. So the ends of a race on part of A name the variables with which they have most in common,
        and the next race runs among these. Where variances tell which variables to try, that is done only if
        many variables of the best component so far are outside of the field. After a weak signal every other
        component is first sought in the last field of the one before, with one race fewer.
        """
        ground, state, deep, at_once = self.ground, self.state, count == 0, self.at_once()
        field = ground.field(state, most, deep)
        if field is None or ended(self.state.hook):
            return best
        # How many rounds follow the first race, and how many ends lead to the variables of the next field
        last = leads = DEEP_ENDS if deep else RACE_ENDS
        if field.whole or deep:
            rounds = 0 if field.whole else FIELD_ROUNDS - field.led
        else:
            outside = best is not None and np.isin(best.index, field.index).mean() < FIELD_INSIDE
            rounds = int(at_once or (outside and ground.partial < PROBES))
        if rounds:
            leads = min(FIELD_LEADS, max(FIELD_LEADS_LEAST, int(FIELD_IMAGE_WORK / self.state.problem.cost)))
        # The first race; its ends go on among all variables
        few = deep or not (rounds or field.whole)  # fewer of its ends go on
        race, lifted = self._race(field, count, leads), FIELD_LIFTED // (1 + few)
        if not (deep or field.whole):
            best = self._best_of_race(field.index, best, race, lifted)
            if not rounds:
                return best
        # The next races, each among the variables whose products with vectors of the last ends are largest
        made, keeps = 0, deep and not field.led
        for left in range(rounds)[::-1]:
            made += race[1] * deep
            supports = [end.index for end in race[0][:leads]]
            among = field.around(supports, FIELD_PARTNERS * self.cardinality, FIELD_SOME)
            del field  # its memory is free before the next is formed
            field = ground.led(state.problem, among) if keeps else Field(state.problem, among)
            if ended(self.state.hook) or not field.without(state):
                return best
            race = self._race(field, count, leads if left else last)
        # The ends of the last race go on among all variables
        among = field.index
        del field  # its memory is free before that
        new = self._best_of_race(among, best, race, lifted, made)
        if rounds and not deep and best is not None and new is not None:
            ground.partial += new.objective <= best.objective * (1 + FIELD_GAIN)
        return new

    def _best_of_race(
        self, among: Index, best: Solution | None, race: Race, lifted: int, made: int = 0
    ) -> Solution | None:
        """Return the better of this component and those that the ends of a race lead to among all variables.

        The race was `among` these variables. At most `lifted` of its ends go on: those with values near the
        best, or above it, on other supports. `made` is the number of starts of earlier races.
        """
        # Which ends go on: values on the field are rough, so those a little less than the best count too
        state, k, p = self.state, self.cardinality, self.state.p
        ends, n_starts, steps = race
        whole = len(among) == p
        comparable = state.constraint is None and not state.quotient
        slack = FIELD_ROUNDING if whole else FIELD_SLACK[p > FIELD_ORDER]
        least, here = -np.inf, among[:0]  # `here`: the variables of the best that are in the field
        if best is not None:
            least = best.objective * (1 - slack) if comparable else least
            here = best.index if whole else np.intersect1d(best.index, among)
        alike = whole and comparable  # values here are those among all variables
        if alike and ends:
            least = max(least, ends[0].value * (1 - slack))
        reached = [end for end in ends if len(here) and are_among(here, end.index).all()]  # the best itself
        chosen = [end for end in ends if end.value >= least and not any(end is other for other in reached)]
        chosen = chosen[: FIELD_LIFTED // 2 if alike else lifted]
        # Continue from these, and count all runs
        fitted = steps if alike and can_be_swapped(k, len(among), self.swaps) else None
        before = Tally(0, 0, 0) if best is None else best.tally
        tally = Tally(
            before.starts + made + n_starts,
            before.ends + sum(end.runs for end in ends),
            before.best + sum(end.runs for end in reached),
        )
        return self._lifted(chosen, best, alike, fitted, tally)

    def elsewhere(self, best: Solution, may_be_weak: bool, apart: bool) -> tuple[Solution, bool]:
        """Return the better of this component and those from samples and columns; whether it is weak.

        It may be weak if noise explains it, unless columns that meet each support lead to something stronger.
        Samples and columns are asked if A is `apart`: not in memory as a whole.
        """
        best = self.from_samples(best) if apart else best
        weak = may_be_weak and not rises_above_noise(self.state, best)
        if not apart:
            return best, weak
        best, everywhere = self.from_columns(best, weak)
        return best, weak and not (everywhere and rises_above_noise(self.state, best))

    def from_samples(self, best: Solution) -> Solution:
        """Return the better of this component and those to which samples with extreme entries lead.

        A part of A, in which races begin, has few of the variables that share such a sample.
        """
        if self.state.p <= FIELD_AT_ONCE or self.all_race():  # races have all variables
            return best
        ends = []
        for support in extreme_samples(self.state, self.cardinality, best.objective):
            G = np.ascontiguousarray(self.state.submatrix(support))
            ends.append(End(support, float(_core.leading_eigenvector(G)[0]), 1))
        least = best.objective * (1 - FIELD_SLACK[False])
        return self._from_ends(sorted((e for e in ends if e.value >= least), key=lambda e: -e.value), best)

    def from_columns(self, best: Solution, weak: bool) -> tuple[Solution, bool]:
        """Return the better of this component and those from columns at random; whether these suffice.

        They suffice if some are likely to belong to each support, or a race has all variables. Where the
        variables of the best component are among those of largest variance, and no signal is weak, variances
        tell where to start, and few columns are tried, unless they lead to something better.
        """
        whole = self.ground.wide and self.state.p <= FIELD_ORDER
        if self.state.p <= FIELD_AT_ONCE or whole or self.all_race():
            return best, True
        count = min(RANDOM_AMONG * self.cardinality, self.state.p)
        large = _core.select_largest(self.state.variances, count)
        told = not weak and bool(are_among(best.index, large).mean() >= RANDOM_TOLD)
        new, enough, many = self._from_columns(best, RANDOM_WORK[told])
        if told and (many or _moved(new, best)):
            new, enough, _ = self._from_columns(new, RANDOM_WORK[0])
        return new, enough

    def _from_columns(self, best: Solution, work: float) -> tuple[Solution, bool, bool]:
        """Return the same for so much work, and whether the columns lead to many supports as promising."""
        state, k, ground = self.state, self.cardinality, self.ground
        # More columns, unless so many have been tried in this call
        varying = np.flatnonzero(state.problem.variances > 0)
        enough = int(RANDOM_HITS * len(varying) / k)
        op: Any = state.operator
        cost = state.problem.cost * (1 if op.by_passes or op.dense else RANDOM_SPARSE)
        count, (tried, ends) = int(min(enough, work / cost)), ground.columns.get(k, (0, []))
        if count > tried and count >= RANDOM_FEW * len(varying) / k:
            order = np.random.default_rng([*state.seed[:1], k]).permutation(varying)
            found = ends_of_columns(state, k, np.sort(order[tried:count]))
            ends, tried = ends + [End(S, bound, 0) for S, bound in found], count
        # Those that promise most and lead elsewhere than to known components, and what is known to be better
        known = [best.index, *(variables for variables, _ in state.loadings)]
        chosen: list[End] = []
        left: list[End] = []
        many = False
        for end in sorted(ends, key=lambda end: -end.value):
            least = 1 + RISE if end.runs or op.by_passes else RANDOM_SHARE  # a step of blocks costs a pass
            elsewhere = end.value >= least * best.objective and all(
                2 * are_among(end.index, S).sum() < k for S in known
            )
            many |= elsewhere and len(chosen) == FIELD_LIFTED
            (chosen if elsewhere and not many else left).append(end)
        before = len(ground.found)
        new = self._from_ends(chosen, best)
        ground.columns[k] = tried, left + ground.found[before:]
        return new, tried >= enough, many

    def _from_ends(self, ends: list[End], best: Solution) -> Solution:
        """Return the better of this component and those to which these ends lead among all variables."""
        starts, runs, reached = best.tally
        tally = Tally(starts + len(ends), runs + len(ends), reached)
        new = self._lifted(ends, best, False, None, tally)
        return best if new is None else new

    def _lifted(
        self, chosen: list[End], best: Solution | None, alike: bool, fitted: int | None, tally: Tally
    ) -> Solution | None:
        """Return the better of this component and those to which these ends lead among all variables.

        If the ends are `alike`, their values are those among all variables. If `fitted` is a number of steps,
        their variables have been swapped, and only values are re-fitted. The tally counts the runs so far.
        """
        state, new = self.state, best
        if fitted is not None:
            lifted: Iterable[Solution | None] = (
                drop_zeros(fitted_on(state, end.index, fitted)) for end in chosen
            )
        else:
            starts = [self._leading(end.index) for end in chosen]
            lifted = found_from_each(replaced(self.solver, swaps=0.0), state, self.cardinality, best, starts)
        n_iter = 0 if best is None else best.n_iter
        runs = [] if best is None else [(best.objective, tally.best)]
        for end, x in zip(chosen, lifted, strict=False):
            if x is None or ended(self.state.hook):
                break
            n_iter += x.n_iter
            if not alike and (new is None or x.objective > (1 - FIELD_NEAR) * new.objective):
                x = swap_search(state, x, self.swaps)
            runs.append((x.objective, max(end.runs, 1)))
            self.ground.found.append(End(x.index, x.objective, 1))
            if new is None or (x.objective > new.objective * (1 + RISE) and is_better(state, x, new, 0)):
                new = x
        if new is None:
            return None
        tally = Tally(tally.starts, tally.ends, agreeing(runs, new.objective))
        return replaced(new, tally=tally, n_iter=new.n_iter if new is best else n_iter)

    def _race(self, field: Field, count: int, most: int) -> Race:
        """Race on a field. Swaps are left for later if its ends go on among all variables."""
        swaps = self.swaps if field.whole or count == 0 else 0.0
        tol = max(self.solver.tol, 1e-6)
        return ends_on_field(field, self.cardinality, count, most, swaps, tol, self.state.hook)

    def _leading(self, support: Index) -> Solution:
        """Return the leading eigenvector on a support, to start from."""
        vector = _core.leading_eigenvector(np.ascontiguousarray(self.state.submatrix(support)))[1]
        return Solution(support, np.ascontiguousarray(vector), 0.0)

    def _hidden(self, field: Field, best: Solution) -> bool:
        """Whether columns of A tell of supports that a part of A hides.

        Columns at random are compared, as `_reaching` does. Of data only some entries of each are read.
        """
        if self._apart_in(field, best):
            return False
        # Columns at random
        op: Any = self.state.operator
        diagonal = self.state.variances
        rng = np.random.default_rng([*self.state.seed[:1], PROBE_COLUMNS])
        some = np.flatnonzero(diagonal > 0)
        few = np.sort(rng.choice(some, min(PROBE_COLUMNS, len(some)), replace=False))
        if op.symmetric_form and not op.by_passes:
            return self._reaching(best, few, rows_of(op, few), np.arange(op.p)) >= PROBE_AGAIN
        # Their entries at random rows: a few first, and all of them only if the few tell of something
        rows = _runs(some, min(PROBE_ROWS, max(PROBE_ENTRIES // op.n, 1)), rng)
        F = None if op.by_passes else float(op.factor) * op.columns(few).astype(np.float32)

        def at(rows: Index) -> Array:
            if F is None:  # of blocks of rows: by one pass
                return np.asarray(op.first_rows(np.append(few, rows), len(few))[:, len(few) :])
            parts = (rows[at : at + PROBE_PART] for at in range(0, len(rows), PROBE_PART))
            return np.concatenate([F @ op.columns(part).astype(np.float32).T for part in parts], axis=1)

        early = np.arange(len(rows)) // PROBE_RUN % PROBE_FIRST == 0
        known = at(rows) if op.by_passes and 4 * len(rows) <= op.p else None  # else a pass costs less
        if np.count_nonzero(early) > PROBE_LEAST:
            first = at(rows[early]) if known is None else known[:, early]
            if self._reaching(best, few, first, rows[early]) == 0:
                return False
        return self._reaching(best, few, at(rows) if known is None else known, rows) >= PROBE_AGAIN

    def _apart_in(self, field: Field, best: Solution) -> bool:
        """Whether the random variables of a field have so few partners there that no support can be hidden.

        The number of the k variables of a support that are in the field follows a Poisson distribution. The
        largest entries of a row of the field stand for more of them, in proportion to the variables outside.
        """
        diagonal = self.state.problem.variances
        known = union(best.index, _core.select_largest(diagonal, len(field.index) // 2))
        chance = np.flatnonzero(~are_among(field.index, known))
        read = len(chance) / max(int(np.count_nonzero(diagonal > 0)), 1)
        partners = (self.cardinality - 1) * read
        expected = len(chance) * PROBE_AGAIN / PROBE_COLUMNS * -math.expm1(-partners)
        if expected < PROBE_PAIRED:
            return False
        A = field.matrix[np.ix_(chance, chance)]
        variance = A.diagonal().astype(np.float64)
        np.fill_diagonal(A, 0)
        largest = _core.largest_norms(A, np.arange(len(A)), max(1, round(partners)))
        others = largest.astype(np.float64) ** 2 / read
        reaching = variance**2 + others >= PROBE_SHARE / 2 * best.objective * variance
        return bool(np.count_nonzero(reaching & (variance > 0)) < expected / 2)

    def _reaching(self, best: Solution, few: Index, columns: Array, rows: Index) -> int:
        """Return how many columns lead to other supports that explain as much, by these rows of them.

        For x = T_k(a_j)/||T_k(a_j)||, the k largest entries of column j, x'Ax >= ||T_k(a_j)||^2/a_jj, as
        (e_j'A x)^2 <= a_jj x'Ax. The largest entries that are read, beside a_jj, stand for more of them in
        proportion.
        """
        diagonal, reaching = self.state.variances[few], 0
        read = len(rows) / max(int(np.count_nonzero(self.state.variances > 0)), 1)
        count, known = max(1, round((self.cardinality - 1) * read)), are_among(rows, best.index)
        columns = np.where(rows == few[:, None], 0, columns)
        for column, variance in zip(columns, diagonal, strict=True):
            largest = _core.select_largest(column, min(count, len(column)))
            others = float(np.square(column[largest].astype(np.float64)).sum()) / read / float(variance)
            enough = variance + others >= PROBE_SHARE * best.objective
            reaching += bool(enough and 2 * known[largest].sum() < count)
        return reaching


def _moved(new: Solution | None, best: Solution) -> bool:
    """Whether a race has found another component than the best before."""
    return new is None or new.objective != best.objective or not np.array_equal(new.index, best.index)


def _runs(some: Index, count: int, rng: np.random.Generator) -> Index:
    """Return `count` variables at random, in runs of neighbors, which share the cache lines of X by rows."""
    if len(some) <= count:
        return some
    first = rng.choice(len(some) // PROBE_RUN, count // PROBE_RUN, replace=False)
    return some[(np.sort(first)[:, None] * PROBE_RUN + np.arange(PROBE_RUN)).ravel()]


# ---- whether noise explains what was found --------------------------------------------------------------

NORMAL_MEDIAN = 0.67449  # the median of |z| for standard normal z


def rises_above_noise(state: DeflatedOperator, x: Solution) -> bool:
    """Whether the variables of x are correlated by more than noise explains.

    Their mean correlation, weighted by |x_i x_j| (a_ii a_jj)^(1/2), is compared with the best one that noise
    alone would give,

        s (2 log(p over k) / m)^(1/2), about,    m = k (k - 1) / 2,

    because there are (p over k) supports of k of p variables, and each has the mean of m correlations with
    standard deviation s. If a better support exists, its correlations are larger still, and the start from
    one of its variables sees them.

    Where A is a matrix, so that another start costs little, unequal weights w count as fewer:
    m = (sum w)^2 / sum w^2, which is k - 1 where one variable has nearly all of x. The s of an earlier
    component is used where it leaves no doubt: s would have to grow NOISE_GROWTH times.

    Correlations of independent variables deviate by n^(-1/2), whatever their distribution. With heavy tails,
    as in rare counts, most are smaller, and s is at least n^(-1/2). Where they deviate by much more, as in
    words, genes and cells, all variables are dependent, and it is not a weak signal that may have been
    missed.
    """
    diagonal = np.maximum(state.variances, 0)
    size = np.abs(x.entries) * np.sqrt(diagonal[x.index])
    alone, p, k = float(size @ size), len(diagonal), len(x.index)
    pairs = float(size.sum()) ** 2 - alone
    if k < 2 or not pairs > 0:
        return False
    weights = k * (k - 1.0)
    if state.operator.symmetric_form:
        weights = pairs**2 / max(alone**2 - float((size**4).sum()), pairs**2 / weights)  # at most k (k - 1)
    correlation = (x.objective - alone) / pairs
    supports = math.lgamma(p + 1) - math.lgamma(k + 1) - math.lgamma(p - k + 1)
    explained = WEAK_CORRELATION * math.sqrt(4 * supports / weights)
    known = None if (kept := _keeper(state)) is None else kept.noise
    if known is not None and correlation > NOISE_GROWTH * known * explained:
        return True
    noise, over = noise_of(state)
    return over > NOISE_INDEPENDENT or correlation > noise * explained


def noise_of(state: DeflatedOperator) -> tuple[float, float]:
    """Return the deviation of correlations that are noise, and its ratio to that of independent variables.

    The ratio is 0 if the number of samples is not known.
    """
    noise, problem = _sampled_noise(state, np.maximum(state.variances, 0)), state.problem
    chance = 0.0 if problem.n_samples is None else problem.degrees**-0.5
    if (kept := _keeper(state)) is not None:
        kept.noise = max(noise, chance)
    return max(noise, chance), 0.0 if problem.n_samples is None else noise / chance


def _keeper(state: DeflatedOperator) -> Any:
    """Return the record that keeps the noise from one component to the next, or None."""
    problem = state.problem
    return problem.ground if problem.working_set is None else problem.working_set


def _sampled_noise(state: DeflatedOperator, diagonal: Array) -> float:
    """Return the standard deviation of correlations that are noise: from their median, for a few variables.

    These are spread over the variables of largest variance.
    """
    op = state.operator
    among = _core.select_largest(diagonal, min(op.p, SUBMATRIX_ORDER))
    count = min(NOISE_VARIABLES, max(2, largest_submatrix(op)))
    G = op.submatrix(np.ascontiguousarray(among[:: -(-len(among) // count)]))
    root = roots(G.diagonal())
    with np.errstate(divide="ignore", under="ignore"):
        inverse = np.where(root > 0, 1 / root, 0).astype(root.dtype)
    size = np.abs(G * inverse) * inverse[:, None]
    np.fill_diagonal(size, 0)
    return float(np.median(size)) / NORMAL_MEDIAN
