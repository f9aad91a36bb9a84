"""The options of `sparse_pca` as one record, each checked by itself and against the others."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from .._asked import SPARSITY, as_method, methods_of, seed_of
from .._messages import listed
from .._records import replaced
from .._types import Array, Bounded, Kind, Support
from .._validation import LARGEST, as_share, check_choice, integer, is_flag, number
from ..choice import Choice, Explained, Total
from ..methods import Method
from ..operators.deflation import DEFLATIONS, PROJECTION, Deflation
from ..solvers.base import checked_screening, choice_options
from ..solvers.solver import Solver
from ..solvers.table import SOLVERS
from ..supports.admissible import Supports

CONSTRAINTS = ("orthogonal", "uncorrelated")
_TOGETHER = {"tpower": ("max_iter",), "branch_and_bound": ("tol", "time_limit", "node_limit")}
_PROOF_SECONDS = 2.0  # time of a tree from a component; 2000 variables of real data mostly take less
_OF_ANY = ("renormalize", "screening", "rng")  # options that every method takes


@dataclass(frozen=True, eq=False)
class Request:
    """The options of a call, checked.

    `sparsity` has one entry for each component: a cardinality, an l1 bound or a penalty, as the method takes
    it.
    """

    method: Method
    removal: str  # the name of the deflation
    constraint: str | None  # it takes the place of a deflation
    support: str
    attempts: int  # how often components are refined
    certify: bool | str
    proof_seconds: float
    choice: dict[str, Any] | Supports  # the caller's, until X is known
    kind: Kind
    center: bool | Array
    scale: bool | Array
    sample_weight: Array | None
    screening: str
    seed: int = 0
    sparsity: tuple[Any, ...] = ()
    total: int | None = None  # nonzeros of all components together
    total_share: float | None = None  # share of the variance that all components must explain

    @classmethod
    def checked(
        cls, n_components: object, sparsities: Sequence[object], kind: Kind = "data", center: Any = True,
        scale: Any = False, sample_weight: Any = None, *, method: Any = "tpower",
        choice: Choice | None = None, deflation: str | None = None, support: str = "free",
        refine: bool | int = False, certify: bool | float | str = False,
    ) -> Request:  # fmt: skip
        """Check all options that can be checked without X.

        `sparsities` has the values along a path; each must go with the other options.
        """
        record = as_method(method)
        solver = SOLVERS[record.name]
        name, constraint = _removal(deflation, solver)
        bounded, seconds = _bounded(certify)
        number_of = ": True, False, or a number of attempts"
        attempts = int(refine) if is_flag(refine) else integer(refine, "refine", 1, LARGEST, number_of)
        totals = [integer(one.count, "Total", 1) for one in sparsities if isinstance(one, Total)]
        start = getattr(record, "start", None)
        if start is not None and not isinstance(start, str):
            raise TypeError(f"start must be a word here: vectors are for the function {record.name}")
        if start is not None:
            check_choice(start, "start", ("diagonal", "eigenvector"))
        new = cls(
            record, name, constraint, check_choice(support, "support", Support), attempts,
            bounded, seconds, {}, kind, center, scale, sample_weight, record.screening,
            seed_of(record), (), totals[0] if totals else None, _share(n_components),
        )  # fmt: skip
        known = choice_options(solver, choice, kernels=not (new.attempts or new.together))
        new = replaced(new, choice=known)
        for refusal in new._refusals(sparsities):
            raise ValueError(refusal)
        for given in sparsities:
            new.refuse_sparsity(given)
        checked_screening(solver, record)
        return new

    @property
    def solver(self) -> type[Solver]:
        """The class of the solver that belongs to the method."""
        return SOLVERS[self.method.name]

    @property
    def deflation(self) -> Deflation:
        """The record of the deflation."""
        return DEFLATIONS[self.removal]

    @property
    def together(self) -> bool:
        """Whether the supports of all components are chosen together."""
        return self.support != "free" or self.total is not None

    def constraint_in_turn(self, r: int) -> str | None:
        """Return the constraint that holds while components are found one after another, or None.

        If all loadings have more than r nonzeros, they can meet the constraint afterwards, so it is left to
        refinement.
        """
        later = self.attempts and all(isinstance(k, int) and k > r for k in self.cardinality)
        return None if later and self.cardinality else self.constraint

    @property
    def cardinality(self) -> tuple[Any, ...]:
        """The cardinality of each component; empty if the method takes an l1 bound or a penalty."""
        return self.sparsity if self.method.sparsity == "cardinality" else ()

    def refuse_sparsity(self, given: object) -> None:
        """Raise TypeError if the method does not take `given` as its sparsity."""
        wanted, name = self.method.sparsity, self.method.name
        if isinstance(given, Explained) and wanted != "cardinality":
            raise TypeError(
                f"method {name!r} takes {wanted}; Explained requires method={methods_of('cardinality')}"
            )
        if given is None and wanted == "penalty":
            raise TypeError(
                f"method {name!r} needs {wanted}, {SPARSITY[wanted]}: "
                f"method={type(self.method).__name__}({wanted}=...)"
            )

    def _refusals(self, sparsities: Sequence[object]) -> Iterator[str]:
        """Yield a message for each combination of options that is not possible."""
        method, removal = self.method, self.deflation
        known = self.choice if isinstance(self.choice, dict) else {}
        signed = known.get("signs") is not None
        certified = f"certify={self.certify!r}"
        asked = f"deflation={self.constraint or self.removal!r}"
        if self.attempts and not method.renormalize:
            yield "refine=True requires renormalize=True"
        if self.constraint is not None and signed:
            yield f"{asked} cannot be met by loadings of given signs: drop one of the two"
        # Supports chosen together
        if self.together:
            yield from self._refusals_together(sparsities, known)
        # Least squares
        if self.solver.objective == "least_squares":
            if self.attempts or self.certify:
                what = "refine=True" if self.attempts else certified
                yield f"{what} requires a method that maximizes the variance, not 'least_squares'"
            if not removal.semidefinite:
                yield (
                    f"{asked} cannot be combined with method 'least_squares': it may leave negative "
                    "variances, and the share that a score explains is not defined then"
                )
        # Values that are not re-fitted
        if not method.renormalize and (
            self.constraint is not None or (removal.quotient and not self.solver.maximizes_quotient)
        ):
            what = asked if self.constraint is not None else f"{asked} of {method.name}"
            yield f"{what} needs renormalize=True: it re-fits the values on the supports found"
        # All components at once
        if getattr(method, "block", False):
            if removal is not PROJECTION or self.constraint is not None:
                yield "block=True finds all components at once; leave deflation out"
            if self.certify is True:
                yield "certify=True bounds one component after another; block=True finds all at once"
            if known:
                yield "block=True cannot be combined with a choice of variables"
            if self.total_share is not None:
                yield "block=True finds all components at once: n_components must be an integer"
        if self.total_share is not None:
            shares: list[Any] = [one.share if isinstance(one, Explained) else one for one in sparsities]
            if any(np.ndim(one) > 0 for one in shares):
                yield f"{method.sparsity} must be one number when n_components is a share"

    def _refusals_together(self, sparsities: Sequence[object], known: Mapping[str, object]) -> Iterator[str]:
        """Yield a message for each option that cannot go with supports that are chosen together."""
        name, common = self.method.name, self.support == "common"
        what = f"support={self.support!r}" if self.support != "free" else "Total"
        if common and self.total is not None:
            yield (
                "support='common' uses one set for all components: give cardinality, the number of its "
                "variables, not Total"
            )
        methods = [*_TOGETHER] if common else ["tpower"]
        if name not in methods:
            yield f"{what} requires method {listed(map(repr, methods), 'or')}, not {name!r}"
        # Options of a search for one component after another
        apart = {
            "deflation": self.deflation is not PROJECTION or self.constraint is not None,
            "refine": self.attempts,
            "renormalize": not self.method.renormalize,
            "Explained": any(isinstance(given, Explained) for given in sparsities),
            "screening": self.screening not in ("auto", "gram"),
            "n_components as a share": self.total_share is not None,
        }
        for word in (word for word, given in apart.items() if given):
            yield f"{what} finds all components at once: leave {word} out"
        # What the caller knows about the variables
        if common and known.get("signs") is not None:
            yield (
                "support='common' has orthogonal loadings on the same variables, which cannot all have given "
                "signs: leave signs out"
            )
        if self.support == "disjoint" and known.get("include") is not None:
            yield (
                "include is for every component, and with support='disjoint' no two share a variable: leave "
                "include out"
            )
        # Options of the method
        given = [f.name for f in fields(self.method) if getattr(self.method, f.name) is not f.default]
        for word in (word for word in given if word not in (*_TOGETHER[name], *_OF_ANY)):
            takes = listed(_TOGETHER[name], "and")
            yield f"{word} cannot be combined with {what}, whose search of method {name!r} takes {takes}"
        if self.certify is True:
            yield (
                f"certify=True bounds one component after another; {what} finds all at once: "
                "certify='jointly'"
            )


def _removal(given: str | None, solver: type[Solver]) -> tuple[str, str | None]:
    """Return the deflation, by default that of the method, and the constraint in its place, or None."""
    if given is None:
        return solver.default_deflation, None
    check_choice(given, "deflation", (*DEFLATIONS, *CONSTRAINTS))
    return (PROJECTION.name, given) if given in CONSTRAINTS else (given, None)


def _bounded(certify: bool | float | str) -> tuple[bool | str, float]:
    """Return what is bounded, and how many seconds a tree may take."""
    if isinstance(certify, str):
        return (True, 0.0) if check_choice(certify, "certify", Bounded) == "bounds" else (certify, 0.0)
    if is_flag(certify):
        return bool(certify), _PROOF_SECONDS
    if not number(certify, "certify", -math.inf) > 0:
        raise ValueError("certify must be a positive number of seconds; 'bounds' makes no search")
    return True, float(certify)


def _share(n_components: object) -> float | None:
    """Return the share of the total variance that all components must explain, or None for a number."""
    if not isinstance(n_components, (float, np.floating)):
        return None
    if not 0 < n_components < 1:
        raise TypeError(
            f"n_components must be an integer, or a share between 0 and 1, not {n_components!r}"
            f"{as_share(float(n_components), 1)}"
        )
    return float(n_components)
