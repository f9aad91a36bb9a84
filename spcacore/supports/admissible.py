"""Which supports a component may have.

`Supports` says how large they are, which variables must be in them or may not be, which go together, and
which signs their loadings have. A support is a set of units, as a mask. Units are the groups of variables, or
the variables themselves. Searches (search.py, tree.py) ask only which units may join, and which may leave.

A variable that is excluded is a column of zeros of the operator, so that no solver need know of it. The rest
changes what a step keeps of a product y = A x: entries of a wrong sign become zero, and then the units of the
largest norms are chosen, after those that are included.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._labels import matched
from .._messages import counted
from .._records import record, replaced
from .._types import AnyArray, Array, Index, Mask, Names
from .._validation import group_places, integer, is_flag, real_array
from ..choice import Choice
from ..linalg.scaling import with_entries

Units = Mask
Unit = int | np.integer[Any] | Index  # one, or several


@record
class Supports:
    """The supports that are allowed, checked once; `Supports.any_of(p, k)` allows any k of p variables.

    Attributes
    ----------
    unit : ndarray of shape (p,), int
        The group of each variable, 0, 1, ...; the variable itself where there are no groups.
    allowed, included : ndarray of shape (number of units,), bool
        The units that are not excluded, and those that every component has.
    signs : ndarray of shape (p,), int, or None
        1 for entries that may not be negative, -1 for those that may not be positive, 0 for others.
    grouped : bool
        Whether units are groups.
    size : ndarray of shape (number of units,), int
        What the cardinality counts of each: 1, or the number of its variables.
    shapes : bool
        Whether it has groups, included variables or signs that kernels of single variables do not respect.
    room : int
        The largest cardinality. It may differ between components: `within` sets it.
    """

    unit: Index
    allowed: Units
    included: Units
    signs: NDArray[np.int8] | None
    grouped: bool
    size: Index
    shapes: bool
    room: int = 0

    @classmethod
    def checked(
        cls, p: int, names: Names, include: Any = None, exclude: Any = None,
        groups: Any = None, signs: Any = None, count: Any = "groups", by_kernels: bool = False,
    ) -> Self:  # fmt: skip
        """Return the supports that the arguments of the caller allow.

        `names` are those of the p variables. With `by_kernels`, positive signs are left to kernels of single
        variables.
        """
        signs = _signs(signs, p, names)
        if include is None and exclude is None and groups is None and signs is None:
            return cls.any_of(p)
        inside = variables_of(include, "include", p, names)
        outside = variables_of(exclude, "exclude", p, names)
        unit = np.arange(p)
        labels: list[Any] = [*(range(p) if names is None else names)]
        if groups is not None:
            unit, labels = group_places(groups, names, p)
        n_units, what = len(labels), "variable" if groups is None else "group"
        inside_units, outside_units = np.unique(unit[inside]), np.unique(unit[outside])
        half = outside_units[
            np.bincount(unit[outside], minlength=n_units)[outside_units]
            < np.bincount(unit, minlength=n_units)[outside_units]
        ]
        if len(half):
            raise ValueError(
                f"exclude has only a part of the group {labels[half[0]]!r}; a group is in or out as a whole"
            )
        clash = np.intersect1d(inside_units, outside_units)
        if len(clash):
            raise ValueError(f"the {what} {labels[clash[0]]!r} is in include and in exclude")
        allowed, included = np.ones(n_units, bool), np.zeros(n_units, bool)
        allowed[outside_units], included[inside_units] = False, True
        if not allowed.any():
            raise ValueError("exclude leaves no variable")
        size = np.bincount(unit) if count == "variables" else np.ones(n_units, np.intp)
        shapes = groups is not None or (signs is not None and not by_kernels) or len(inside) > 0
        return cls(unit, allowed, included, signs, groups is not None, size, shapes)

    @classmethod
    @lru_cache(maxsize=8)  # nobody writes to these records
    def any_of(cls, p: int, k: int = 0, positive: bool = False) -> Self:
        """Return the supports of any k of p variables; `positive`: kernels keep entries positive."""
        everything, nothing, one = (np.broadcast_to(x, p) for x in (True, False, np.intp(1)))
        signs = np.ones(p, np.int8) if positive else None
        return cls(np.arange(p), everything, nothing, signs, False, one, False, k)

    def within(self, k: int) -> Self:
        """Return the same supports with another cardinality as their room."""
        return replaced(self, room=k)

    def only(self, index: Index) -> Supports:
        """Return supports of these variables alone, with the same signs and without groups."""
        allowed = with_entries(len(self.unit), index, True, bool)
        shapes = self.signs is not None
        return replaced(Supports.any_of(len(self.unit)), allowed=allowed, signs=self.signs, shapes=shapes)

    def whole(self, index: Index) -> Index:
        """Return these variables, all others of their groups, and what is included."""
        return self.index(self.mask(index) | self.included)

    def among(self, units: Units) -> Self:
        """Return the same supports where only these units are allowed."""
        return replaced(self, allowed=self.allowed & units)

    def on(self, index: Index) -> Self:
        """Return the same supports of these variables alone, numbered from 0.

        They must have what is included, and whole groups.
        """
        units, unit = np.unique(self.unit[index], return_inverse=True)
        signs = None if self.signs is None else self.signs[index]
        own = {name: getattr(self, name)[units] for name in ("allowed", "included", "size")}
        return replaced(self, unit=unit, signs=signs, **own)

    # ---- what searches ask: which units may join, and which may leave

    def left(self, units: Units) -> int:
        """Return the room that these units leave, as a cardinality."""
        return self.room - int(self.size[units].sum())

    def joining(self, units: Units) -> Units:
        """Return the other units that have room beside these."""
        return self.fitting(units, self.room)

    def leaving(self, units: Units) -> Units:
        """Return the units among these that are not included, so that they may leave."""
        return units & ~self.included

    def fitting(self, units: Units, count: int) -> Units:
        """Return the other units that have room beside these, up to a cardinality of `count`."""
        return self.allowed & ~units & (self.size <= count - int(self.size[units].sum()))

    def filled(self, value: Array, free: Units, room: int) -> Array:
        """Return the most that free units of these values add up to, the last one in part (Dantzig 1957).

        Units that fit into the room are worth no more. With a 2-d `value`, one number for each column.
        """
        value, size = np.maximum(value[free], 0), self.size[free]
        if (size == 1).all():
            return np.sort(value, axis=0)[::-1][:room].sum(axis=0)
        # In the order of value per size, each unit as far as there is room
        order = np.argsort(-(value.T / size).T, axis=0, kind="stable")
        size = size[order]
        part = np.clip((room - np.cumsum(size, axis=0)) / size + 1, 0, 1)
        return (part * np.take_along_axis(value, order, axis=0)).sum(axis=0)

    def per_unit(self, weight: Array, index: Index | None = None) -> Array:
        """Return the sum of the weights, or of rows of weights, over the variables of each unit.

        With `index`, the weights are for these variables alone.
        """
        unit = self.unit if index is None else self.unit[index]
        sums = np.zeros((len(self.allowed), *weight.shape[1:]))
        if self.grouped:
            np.add.at(sums, unit, weight)
        else:
            sums[unit] = weight
        return sums

    def index(self, units: Units) -> Index:
        """Return the variables of these units, ascending."""
        return np.flatnonzero(units if not self.grouped else units[self.unit])

    def mask(self, index: Index) -> Units:
        """Return the units that have at least one of these variables."""
        return with_entries(len(self.allowed), self.unit[index], True, bool)

    @property
    def plain(self) -> bool:
        """Whether any variables are allowed together."""
        return not self.shapes and bool(self.allowed.all())

    @property
    def shaping(self) -> str:
        """The option that makes the supports more than that, for a message."""
        return "groups" if self.grouped else "include" if self.signs is None else "signs"

    @property
    def counts_variables(self) -> bool:
        """Whether the cardinality counts variables while units are groups."""
        return bool((self.size > 1).any())

    @property
    def simple(self) -> bool:
        """Whether units are single variables of any sign, or of positive signs left to kernels."""
        return not self.grouped and (self.signs is None or self.positive)

    @property
    def positive(self) -> bool:
        """Whether all signs are positive, and left to kernels of single variables."""
        return self.signs is not None and not self.shapes

    @property
    def available(self) -> Index:
        """The variables that are not excluded."""
        return self.index(self.allowed)

    @property
    def excluded(self) -> Units:
        """Which variables are excluded, of shape (p,)."""
        return ~self.allowed[self.unit]

    @property
    def wanted(self) -> Index:
        """The variables of the units that are included."""
        return self.index(self.included)

    @property
    def bounds(self) -> tuple[int, int]:
        """The smallest and the largest cardinality that a component may have."""
        least = self.size[self.included].sum() if self.included.any() else self.size[self.allowed].min()
        return int(least), int(self.size[self.allowed].sum())

    def why(self) -> str:
        """Return the reason for these bounds, for a message."""
        if self.plain:
            return f": X has {counted(len(self.unit), 'variable')}"
        what = "group" if self.grouped else "variable"
        n_in, n_out = int(self.included.sum()), int(self.allowed.sum())
        words = [f"{counted(n_in, what)} included"] if n_in else []
        if self.counts_variables:
            least, most = self.bounds
            inside = f"{counted(n_in, what)} included, of" if n_in else "the smallest group has"
            return f": {inside} {counted(least, 'variable')}, {most} not excluded"
        return f": {', '.join([*words, f'{counted(n_out, what)} not excluded'])}"

    def count(self, value: Any, name: str) -> int:
        """Return a cardinality, checked."""
        return integer(value, name, *self.bounds, self.why)

    def most_variables(self, count: int) -> int:
        """Return the largest number of variables of a component of this cardinality."""
        if self.counts_variables or not self.grouped:
            return count
        return int(np.sort(np.bincount(self.unit)[self.allowed])[::-1][:count].sum())

    def cardinality_of(self, index: Index) -> int:
        """Return the cardinality of a support."""
        return int(self.size[self.mask(index)].sum())

    def cardinality_with(self, index: Index) -> int:
        """Return the cardinality of a support together with what is included."""
        return self.cardinality_of(np.append(index, self.wanted)) if self.shapes else len(index)

    def projected(self, y: AnyArray) -> AnyArray:
        """Return y with zeros where it has the wrong sign, or a variable is excluded."""
        wrong = self.excluded
        if self.signs is not None:
            wrong = wrong | (y * self.signs < 0)
        return np.where(wrong, y.dtype.type(0), y)

    def oriented(self, x: AnyArray) -> AnyArray:
        """Return x or -x, projected, whichever the signs leave more of."""
        if self.plain:
            return x
        if self.signs is None:
            return self.projected(x)
        return self.projected(x if self.sides(x) else -x)

    def sides(self, x: AnyArray) -> bool:
        """Whether the signs leave at least as much of x as of -x."""
        one, other = self.projected(x), self.projected(-x)
        return bool(one @ one >= other @ other)

    def cost(self, x: AnyArray) -> float:
        """Return the sum of the norms of the units that are not included."""
        return float(self.norms(x)[~self.included].sum())

    def sign(self, index: Index, entries: AnyArray) -> AnyArray:
        """Return the entries, or their negative if that suits the signs better."""
        if self.signs is None:
            return entries
        weight = entries * self.signs[index]
        return -entries if weight.sum() < 0 else entries

    def ones(self, index: Index) -> Array:
        """Return 1 for each of these variables, or -1 where no positive entry is allowed."""
        return np.ones(len(index)) if self.signs is None else np.where(self.signs[index] < 0, -1.0, 1.0)

    def norms(self, y: AnyArray) -> Array:
        """Return the norm of y on each unit."""
        return np.sqrt(np.bincount(self.unit, y.astype(np.float64) ** 2, minlength=len(self.allowed)))

    def rule(
        self, step: int, count: int = 0, level: float = 0.0, Q: AnyArray | None = None
    ) -> _core.UnitRule:
        """Return the rule of a step among these supports, as kernels take it (solvers/refitting, units.c)."""
        allowed, included = (np.array(mask, np.uint8) for mask in (self.allowed, self.included))
        size = np.ascontiguousarray(self.size)
        span = None if Q is None else np.asfortranarray(Q, np.float64)
        return _core.UnitRule(self.unit, size, allowed, included, self.signs, step, count, level, span)

    def largest(self, norms: Array, count: int) -> Units:
        """Return the included units and, up to this cardinality, those of the largest norms.

        Of units that tie, the first ones are taken.
        """
        return self.rule(0, count).largest(np.ascontiguousarray(norms, np.float64)).view(bool)

    def truncated(self, x: AnyArray, count: int) -> Index:
        """Return the variables that a truncation of x to this cardinality keeps."""
        if self.plain:
            return _core.select_largest(x, count)
        return self.index(self.largest(self.norms(self.oriented(x)), count))


def knowledge(choice: Choice | None) -> dict[str, Any]:
    """Return the arguments of `Supports.checked` for a choice; an empty dict if it says nothing."""
    if not isinstance(choice, Choice | None):
        raise TypeError(f"choice must be Choice(...), not {choice!r:.60}")
    given = {word: getattr(choice, word, None) for word in ("include", "exclude", "groups", "signs")}
    if all(value is None for value in given.values()):
        return {}
    count = getattr(choice, "count", "groups")
    return given if count == "groups" else given | {"count": count}


def refuse_count(known: dict[str, Any], otherwise: str) -> None:
    """Refuse `count`, which says what a cardinality counts, where there is no cardinality."""
    if "count" in known:
        raise ValueError(f"count={known['count']!r} says what a cardinality counts; {otherwise}")


def variables_of(given: Any, name: str, p: int, names: Names) -> Index:
    """Return the positions of variables given by names or by indices, ascending."""
    if given is None:
        return np.empty(0, np.intp)
    if isinstance(given, (str, bytes)) or not (hasattr(given, "__iter__") and hasattr(given, "__len__")):
        raise TypeError(f"{name} must be a sequence of names or indices of variables, not {given!r}")
    found = []
    for one in given:
        if isinstance(one, str):
            if names is None:
                raise ValueError(f"{name} has the name {one!r}, and the variables of X have no names")
            places = [j for j, other in enumerate(names) if other == one]
            if len(places) != 1:
                many = "no variable" if not places else "more than one variable"
                raise ValueError(f"{name} has the name {one!r}, which {many} of X has")
            found.append(places[0])
            continue
        if is_flag(one) or not isinstance(one, (int, np.integer)):
            raise TypeError(f"{name} must have names or indices of variables, not {one!r}")
        if not 0 <= one < p:
            raise ValueError(f"{name} has the index {one}: indices are in [0, {p - 1}]")
        found.append(int(one))
    return np.unique(np.array(found, np.intp))


def _signs(signs: Any, p: int, names: Names) -> NDArray[np.int8] | None:
    """Return the signs that the caller gave, checked, one for each variable; None if all are 0."""
    if signs is None:
        return None
    if isinstance(signs, (bool, np.bool_, str, bytes)) or (np.ndim(signs) == 0 and signs not in (-1, 1)):
        raise TypeError(f"signs must be 1, -1, or an array of the signs -1, 0 and 1, not {signs!r}")
    if np.ndim(signs) == 0:
        return np.full(p, signs, np.int8)
    signs = matched(signs, names, "signs")
    if np.asarray(signs).dtype.kind == "b":
        raise TypeError("signs must be an array of the signs -1, 0 and 1, not of booleans")
    signs = real_array(signs, "signs", ndim=1)
    if len(signs) != p:
        raise ValueError(f"signs has {counted(len(signs), 'entry')} for {counted(p, 'variable')}")
    if not np.isin(signs, (-1, 0, 1)).all():
        raise ValueError("signs must have only the signs -1, 0 and 1")
    return signs.astype(np.int8) if signs.any() else None


def with_unit(units: Units, add: Unit | None = None, drop: Unit | None = None) -> Units:
    """Return a copy of the units with one more or several more, or less, or both."""
    out = units.copy()
    if drop is not None:
        out[drop] = False
    if add is not None:
        out[add] = True
    return out
