"""What every one-component solver shares."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from .._asked import as_record, seed_of, sparsity_given
from .._messages import counted, warn
from .._records import filled, record, replaced
from .._validation import (
    Hook,
    check_choice,
    check_l1_bound,
    integer,
    is_flag,
    number,
    per_component,
    positive,
    real_array,
)
from ..choice import Choice, Explained
from ..linalg.scaling import with_entries
from ..methods import METHODS, Method
from ..operators.deflation import DeflatedOperator
from ..operators.gram import formed
from ..operators.inputs import as_problem
from ..operators.problem import Problem, warn_out_of_range
from ..progress import Callback, Progress, check_callback
from ..results import SparseComponent
from ..supports.admissible import knowledge, refuse_count
from .solution import Ended, ProgressHook, Solution, ended
from .solver import Needs, Solver

# ---- paragraphs that the docstrings of the solvers and of the models share ------------------------------


_WEIGHT = """\
sample_weight : array-like of shape (n,), optional
    How many samples each row stands for, at least 0. Means and covariances are the same as if each row were
    repeated that often. The divisor ``sum(sample_weight) - 1`` must be positive. Rows of weight 0 are
    left out. X is not copied, and dense X is not screened."""
_STANDARDIZATION = """\
kind : {"data", "covariance"}, default "data"
    Whether X holds data or a covariance matrix.
center : bool or array-like of shape (p,), default True
    Subtract the column means, or these numbers, implicitly. True is ignored for a covariance.
scale : bool or array-like of shape (p,), default False
    Divide each column by its standard deviation, or by these positive numbers, implicitly. If `center` is
    False or an array, the deviation is the root mean square about 0 or about it, with divisor n - 1.
    Constant columns are divided by 1. True turns a covariance into the correlation."""
_SHARED = {
    "standardization": _STANDARDIZATION,
    "sample_weight": _WEIGHT,
    "each_iteration": """\
callback : callable or True, optional
    Called with a `Progress` after each iteration. Raising StopIteration ends the search early,
    see `Progress`.""",
    "switches": """\
kind : {"data", "covariance"}, default "data"
    Whether X holds data or a covariance matrix.
center : bool, default True
    Subtract the column means, implicitly. Ignored for a covariance.
scale : bool, default False
    Divide each column by its standard deviation, implicitly. Turns a covariance into the correlation.""",
    "oppca_example": """\
Examples
--------
>>> import numpy as np, spcacore
>>> X, planted = spcacore.datasets.make_spiked(100, 30, cardinality=5, rng=0)
>>> result = spcacore.oppca(X, 2)""",
    "matrix": f"{_STANDARDIZATION}\n{_WEIGHT}",
    "choice": """\
choice : Choice, optional
    What you know about the variables: which ones the component must have or may not have, which go together,
    and their signs.""",
    "callback": """\
callback : callable or True, optional
    Called with a `Progress` at most twenty times a second, and once at the end.
    Raising StopIteration ends the search early, see `Progress`.""",
    "type_error": """\
TypeError
    For input that is not real numbers, masked arrays, or an option of the wrong type.""",
    "pitprops": """\
Examples
--------
>>> import spcacore
>>> pitprops = spcacore.datasets.load_pitprops()""",
}
_SHARED["common"] = "\n".join(_SHARED[name] for name in ("choice", "matrix", "callback"))
shared_parameters = filled(_SHARED)


def check_sparsity(method: type[Solver], value: Any, name: str, problem: Problem) -> Any:
    """Return how sparse one component is to be, checked: as a cardinality, an l1 bound, a penalty or a share.

    `name` is the argument's name in messages.
    """
    if method.takes_share and isinstance(value, Explained):
        return shares_of(value, 1)[0]
    if method.sparsity == "penalty":
        return number(value, name, 0)
    if method.sparsity == "l1_bound":
        return check_l1_bound(value, name, problem.p)
    return problem.supports.count(value, name)


def shares_of(explained: Explained, r: int) -> tuple[Explained, ...]:
    """Return the share that each of r components is to explain, checked: a tuple from one `Explained`."""
    return per_component(
        explained.share, "share", r,
        lambda one, name: Explained(positive(one, name, 1, closed=True), explained.of),
    )  # fmt: skip


def refuse_costly(
    strategy: str, p: int, most: int, costly: tuple[str, ...] = ("backward", "bidirectional")
) -> None:
    """Refuse strategies that take too long for so many variables."""
    if strategy in costly and p > most:
        raise ValueError(
            f"strategy={strategy!r} takes at most {most} variables, not {p}: use strategy='forward'"
        )


def limit_of(solver: Solver) -> str:
    """Return what a component ran into that has not converged, in words for a warning."""
    max_iter = getattr(solver, "max_iter", None)
    return "the limits given" if max_iter is None else counted(max_iter, "iteration")


def checked_screening(method: type[Solver], record: Method) -> str:
    """Return the `screening` of a record, or refuse one that cannot help the method with these options."""
    needs, screening = method.needs(record), record.screening
    helps = {"auto": True, "none": True, "gram": not needs.samples, "working_set": needs.working_set}
    if not helps.get(screening, not needs.whole_products):
        raise ValueError(
            f"screening={screening!r} does not help {method.name} with these options: leave it out"
        )
    return screening


def check_working_set(solver: Solver, screening: str, state: DeflatedOperator, sparsity: Any) -> None:
    """Refuse screening="working_set" where an iterative solver cannot use it even for the first component.

    `state` is the operator before any deflation.
    """
    steps = isinstance(solver, IterativeSolver)
    if screening == "working_set" and steps and solver.among_some(state, sparsity) is None:
        raise ValueError(
            f"screening='working_set' is not possible for {solver.name} with this start, n_starts, "
            "max_iter or deflation: leave it out"
        )


@record
class IterativeSolver(Solver):
    """A solver that iterates from several starts and keeps the best run. `start` is its only array."""

    max_iter: int
    tol: float

    maximizes_quotient = True
    usual_needs: ClassVar[Needs] = Needs(working_set=True)

    @classmethod
    def from_record(cls, problem: Problem, record: Any) -> Self:
        start, n_starts = check_start(problem, record.start, record.n_starts)
        return replaced(super().from_record(problem, record), start=start, n_starts=n_starts)

    def among_some(self, state: DeflatedOperator, sparsity: Any) -> tuple[Solver, Any] | None:
        default = self.n_starts in (None, 1) and (self.start is None or isinstance(self.start, str))
        usual = self.nearby is not None or (default and self.start != "eigenvector")
        possible = usual and self.max_iter > 0 and state.constraint is None and state.deflation.semidefinite
        return (replaced(self, renormalize=False), sparsity) if possible and not state.quotient else None


def check_start(problem: Problem, start: Any, n_starts: Any) -> tuple[Any, int | None]:
    """Return `start` and `n_starts`, checked; an array is scaled so that its largest magnitude is 1."""
    if isinstance(start, str):
        check_choice(start, "start", ("diagonal", "eigenvector"))
    elif start is not None:
        p = problem.p
        start = real_array(start, "start", ndim=1, labels=problem.names).astype(np.float64)
        if start.size != p:
            raise ValueError(f"start has {counted(start.size, 'entry')} for {counted(p, 'variable')}")
        if not start.any():
            raise ValueError("start is the zero vector")
        start = start / np.abs(start).max()
    if n_starts is not None:
        if start is not None:
            raise ValueError("n_starts requires start=None; a given start is the only one")
        n_starts = integer(n_starts, "n_starts", 1)
    return start, n_starts


def hook_of_component(hook: Hook, t: int, r: int, whole: bool = False) -> ProgressHook | None:
    """Return the `ProgressHook` of component t of r, or None without a callback."""
    return None if hook.callback is None else ProgressHook(hook, t, r, whole)


def found_in_turn(
    r: int, find: Callable[[list[Any], ProgressHook | None], Any], hook: Hook, noun: str,
    value: Callable[[Any], float],
) -> list[Any]:  # fmt: skip
    """Return up to r records, which `find` makes one after another.

    `find` is given the list of earlier records and the hook of the next one. It returns a record with
    `n_iter` and `converged`, or None where nothing is left; after the first record, that is a warning.
    `value` gives what the callback is told of a record.
    """
    found = list[Any]()
    for t in range(r):
        try:
            x = find(found, hook_of_component(hook, t, r, whole=t > 0))
        except Ended:
            break
        if x is None:
            if t > 0:
                warn(f"found only {t} of {counted(r, noun)}: nothing is left")
            break
        over = hook.ended
        found.append(replaced(x, converged=x.converged and not over))
        if over or (hook.callback is not None and hook(Progress(t, r, x.n_iter, value(x)))):
            break
    return found


def as_ended(found: Sequence[Any]) -> dict[str, Any]:
    """Return the arrays `n_iter` and `converged` of a result, with an entry for each component."""
    return {
        "n_iter": np.array([x.n_iter for x in found], np.intp),
        "converged": np.array([x.converged for x in found], np.bool_),
    }


def progress_hook(callback: Callback | None) -> ProgressHook | None:
    """Return the hook that reports a single component, or None without a callback."""
    return hook_of_component(check_callback(callback), 0, 1)


@record
class Run:
    """A solver and the matrix on which it searches one component, and what it has found."""

    state: DeflatedOperator
    solver: Solver
    found: Solution | None = None
    cardinality: Any = None

    def component(self) -> SparseComponent:
        """Return the result of a one-component function, and warn if it has not converged."""
        problem, hook = self.state.problem, self.state.hook
        found = self._with_variance()
        limit = limit_of(self.solver)
        if ended(hook):
            found, limit = replaced(found, converged=False), counted(found.n_iter, "iteration")
        if not found.converged:
            warn(f"not converged in {limit}")
        value = float(problem.in_units(found.objective))
        warn_out_of_range(found.objective, value)
        if hook is not None:
            hook(found.n_iter, value)
        return self.result(found)

    def result(self, found: Solution) -> SparseComponent:
        """Return a component, in the caller's units, as the result."""
        problem = self.state.problem
        loading = with_entries(problem.p, found.index, found.entries, problem.operator.dtype)
        value = float(problem.in_units(found.objective))
        return SparseComponent(
            loading, value, int(np.count_nonzero(loading)), found.n_iter, found.converged, self.solver.name,
            problem.screening(), names=problem.names, missing_entries=problem.missing_entries,
            n_starts=found.tally.starts, n_ends=found.tally.ends, n_best=found.tally.best,
            mean=problem.mean, scale=problem.scale, given=problem.given, kind=problem.kind,
        )  # fmt: skip

    def _with_variance(self) -> Solution:
        """Return what was found or, where that has no variance, the variable of largest variance.

        If no variable has any variance, the loading is a unit vector with value 0.
        """
        state, found = self.state, self.found
        problem = state.problem
        if found is not None and found.objective > problem.noise(found.index):
            return found
        supports, dtype = problem.supports, problem.operator.dtype
        allowed = supports.wanted
        if not len(allowed):
            allowed = supports.available
            if supports.counts_variables and isinstance(self.cardinality, int):  # only groups that have room
                units = supports.fitting(supports.included, self.cardinality)
                allowed = supports.index(units)
        diagonal = np.zeros(problem.p) if problem.diagonal is None else problem.diagonal
        if problem.diagonal is None or all(abs(diagonal[j]) <= problem.noise(np.array([j])) for j in allowed):
            warn(f"{problem.emptiness}; the loading is the first unit vector")
            best, value = allowed[:1], 0.0
        else:
            best = allowed[[np.argmax(diagonal[allowed])]]
            value = float(diagonal[best[0]])
            if found is not None and (state.constrained or state.basis or found.objective >= value):
                return found
            if found is None and value > problem.noise(best):
                warn("no component was found: the loading is the variable of largest variance")
        return Solution(best, supports.ones(best).astype(dtype), value)


def choice_options(method: type[Solver], choice: Choice | None, kernels: bool = False) -> dict[str, Any]:
    """Return the arguments of `Supports.checked` for a choice.

    If `signs=1` is all that the choice says, and the method has a kernel for nonnegative entries, that kernel
    takes the signs (`by_kernels`).
    """
    known = knowledge(choice)
    if not known:
        return known
    if method.sparsity != "cardinality":
        refuse_count(known, f"method {method.name!r} takes {method.sparsity}")
    signs = known["signs"]
    plain = np.ndim(signs) == 0 and signs == 1 and not is_flag(signs)
    alone = plain and known["include"] is known["groups"] is None
    return known | {"by_kernels": alone and kernels and method.nonnegative_kernel}


def begun(
    method: type[Solver], options: Method | None, X: Any, sparsity: Any, choice: Choice | None,
    callback: Callback | None, kind: Any, center: Any, scale: Any, sample_weight: Any,
    definite: bool = False,
) -> Run:  # fmt: skip
    """Return the `Run` of a one-component function before the search, with all that was given validated."""
    record = as_record(options, METHODS[method.name])
    needs = method.needs(record)
    problem = as_problem(
        X, kind, center, scale, sample_weight, definite=definite, missing=method.missing,
        columnwise=not needs.whole_products, restrictable=needs.working_set, form=not needs.samples,
        choice=choice_options(method, choice, kernels=True), screening=checked_screening(method, record),
    )  # fmt: skip
    sparsity = check_sparsity(method, sparsity_given(record, sparsity), method.sparsity, problem)
    solver: Solver = method.from_record(problem, record)
    check_working_set(solver, record.screening, DeflatedOperator.from_problem(problem), sparsity)
    hook = progress_hook(callback)
    state = DeflatedOperator.from_problem(formed(problem, hook))
    state = replaced(state, seed=(seed_of(record), 0), hook=hook)
    return Run(state, solver, None, sparsity)


def run_one(*given: Any) -> Run:
    """Return the `Run` of a one-component function after its search."""
    run = begun(*given)
    return replaced(run, found=run.solver.find(run.state, run.cardinality))
