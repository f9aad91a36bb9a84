"""What the commands do that fit, run or compare models: each ends in an outcome."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import scipy.sparse

from .. import datasets
from .._limits import COMMAND_RELAXATION_ORDER
from .._messages import counted
from .._records import replaced
from .._rendering import gap, percent, significant
from .._types import Definition
from ..methods import BranchAndBound
from ..models.comparison import compare as side_by_side
from ..models.components import sparse_pca
from ..models.variance import explained_variance, from_loadings
from ..operators.inputs import as_problem
from ..operators.transform import scores
from ..readable import component_frame
from ..results import LoadingsResult
from ..selection.criteria import select_sparsity, sparsity_path
from ..selection.stable_variables import stability as chosen_again
from ..solvers.certificates import optimality_bound
from ..solvers.exact import branch_and_bound
from ..solvers.truncated_power import tpower
from .console import Work
from .loadings import adopt, places, read_saved, rows_for
from .models import FILES, SPARSITY, long_flag, refuse, takes
from .reading import read, read_lines
from .report import Outcome, entries, fields_of, text_of, write_frame
from .source import STDIN, Arguments, Table, UserError
from .task import Task

_KNOWN = ("include", "exclude", "groups", "signs", "count")
_DEFINITIONS: tuple[Definition, ...] = ("adjusted", "raw")


def show_pitprops() -> None:
    pitprops = datasets.load_pitprops()
    with Work(False) as work:
        result = sparse_pca(pitprops.correlation, 6, [7, 4, 4, 1, 1, 1], kind="covariance", callback=work)
    print(
        "Sparse PCA of the pit props: correlations of 13 measurements of 180 mine timbers (Jeffers 1967)\n"
        "6 components of 7, 4, 4, 1, 1 and 1 variables, as in Zou, Hastie and Tibshirani (2006)\n\n"
        f"{text_of(result, pitprops.names)}\n\n{work.seconds:.3f} s\n"
        "Your own data: spcacore fit FILE      More: spcacore --help"
    )


def fit(args: Arguments) -> None:
    given = args.of_model
    if given.get("certify") and "time_limit" in given and "time_limit" not in takes(args.method):
        given["certify"] = given.pop("time_limit") or "bounds"
    task = Task(args)
    model, names = task.model(5), task.names
    with task.work() as work:
        result = model(task.matrix, callback=work)
    if args.plot and result.n_components == 0:
        raise UserError(f"cannot write {args.plot}: there is no component to draw")
    table, files = replaced(result, names=names).to_frame(), {}
    if hasattr(result, "kind"):  # then .csv says what the fit did to its data, too
        done = {"center": result.mean, "scale": result.scale, "kind": result.kind}
        table = table.assign(**{name: value for name, value in done.items() if value is not None})
    files["output"] = {".csv": table, ".npz": _arrays(result, names)}
    if args.scores:
        files["scores"] = _scores(result.transform(task.matrix), task.table.samples())

    def draw(plot: Any, figure: Any) -> None:
        left, right = figure.subplots(1, 2)
        plot.heatmap(result, names=names, ax=left)
        plot.scree(result, None if np.isnan(task.matrix.sum()) else task.matrix, ax=right)

    task.finish(Outcome("Sparse PCA", text_of(result, names), {"result": result}, files, draw, 11))


def _arrays(result: Any, names: list[str]) -> dict[str, Any]:
    """What an .npz of a fit holds; scores have a file of their own."""
    fields = fields_of(result) | {"gap": getattr(result, "gap", None), "names": np.array(names, np.str_)}
    if type(result).transform is not LoadingsResult.transform:  # then a unit row of data has the weights
        eye = scipy.sparse.csr_array(scipy.sparse.identity(len(names), format="csr"))
        fields["weights"] = replaced(result, mean=None, scale=None).transform(eye)
    return fields | {"scores": None}


def _scores(values: Any, samples: list[str]) -> dict[str, Any]:
    """As a table, and as arrays."""
    arrays = {"scores": values, "names": np.array(samples, np.str_)}
    return {".csv": component_frame(values, samples, "sample"), ".npz": arrays}


def path(args: Arguments) -> None:
    asked, choosing = args.of_model, args.of_function
    grids = {name: asked.pop(name) for name in SPARSITY if name in asked}
    for name in grids:
        if name not in takes(args.method):
            refuse(args, name)
    args.grid_of, grid = next(iter(grids.items()), ("cardinality", None))
    if args.criterion is None and "rng" in choosing:
        seed = choosing.pop("rng")
        asked |= {"rng": seed} if "rng" in takes(args.method) else {}
    if grid is not None and isinstance(grid[0], list):
        if args.criterion is None:
            raise UserError(
                f"argument {long_flag(args.grid_of)}: values for each component require --criterion"
            )
        asked.setdefault("n_components", len(grid))
    task = Task(args)
    function = sparsity_path if args.criterion is None else select_sparsity
    with task.work() as work:
        curve: Any = function(task.matrix, task.model(1), grids or None, callback=work, **choosing)
    path, arrays = getattr(curve, "path", curve), {}
    r = counted(path.n_components, "ordinary principal component")
    parts = [path.summary(), f"{percent(path.dense_ratio.sum())} % by {r}"]
    if path is not curve:
        parts += [curve.summary(), text_of(curve.result, task.names)]
        arrays = _arrays(curve.result, task.names)
    files = {"output": {".csv": curve.to_frame(), ".npz": arrays | fields_of(curve)}}
    draw = lambda plot, figure: plot.path(curve, ax=figure.subplots())  # noqa: E731
    task.finish(Outcome("Sparsity path", "\n\n".join(parts), {"result": curve}, files, draw))


def stability(args: Arguments) -> None:
    option = FILES.get(args.method, "")
    path = getattr(args, option)
    if option and path in (None, STDIN):
        why = "a file is needed, not the standard input" if path else f"method {args.method} needs it"
        raise UserError(f"argument --{option}: {why}")
    if option and args.impute == "drop-rows":
        raise UserError(f"argument --impute: drop-rows would leave no row for some of those of --{option}")
    task = Task(args)
    names, Y, fields = task.names, None, {}
    if option == "other":
        table = _other(task)
        Y, other = table.matrix, table.variables("y")
        fields = {"other": path, "other_names": other}
        task.names = [*names, *(f"{name} (other)" if name in set(names) else name for name in other)]
    elif option == "labels":
        Y = np.array(read_lines(args, option, task.n, "sample"), np.str_)
    model = task.model(1 if option == "labels" else 2)
    with task.work() as work:
        found = chosen_again(task.matrix, model, Y, callback=work, **args.of_function)
    found = replace(found, names=tuple(task.names))
    table, arrays = found.to_frame(), fields_of(found) | {"names": np.array(task.names, np.str_)}
    files = {"output": {".csv": table.astype({"stable": int}), ".npz": arrays}}
    r = found.loadings.shape[1]

    def draw(plot: Any, figure: Any) -> None:
        for t, ax in enumerate(np.atleast_1d(figure.subplots(1, r))):
            plot.stability(found, t, ax=ax)

    fields |= {"result": found, "frequencies": table}
    task.finish(Outcome("Stability", found.summary(), fields, files, draw, 5.5 * r))


def _other(task: Task) -> Table:
    """The other side of canonical pairs, whose rows are those of the matrix."""
    args = Arguments(**vars(task.args) | {"file": task.args.other})
    args.drop = args.format = args.names = args.array = None
    table = read(args)
    here, there = task.table.row_names, table.row_names
    wrong = "" if table.matrix.shape[0] == task.n else f"it has {counted(table.matrix.shape[0], 'sample')}"
    if here and there and not wrong and here != there:
        i = int(np.argmin(np.equal(here, there)))
        wrong = f"its sample {i + 1} is {there[i]!r}, not {here[i]!r}"
    if wrong:
        which = f"the {counted(task.n, 'sample')} of {task.args.source}"
        raise UserError(f"argument --other: {args.file} must have {which}; {wrong}")
    return table


def transform(args: Arguments) -> None:
    saved = read_saved(args.loadings)
    adopt(args, [saved])
    task = Task(args)
    X, fields = task.matrix[:, places(saved, task.table, args.source)], saved.fields
    with task.work():
        mean, scale = fields.get("mean"), fields.get("scale")
        if not saved.kind:  # then the moments of the samples themselves
            problem = as_problem(X, center=task.treatment["center"], scale=task.treatment["scale"])
            mean, scale = problem.mean, problem.scale
        values = scores(X, fields.get("weights", saved.loadings), mean, scale)
    samples = task.table.samples()
    files = {"output": _scores(values, samples)}
    text = write_frame(files["output"][".csv"], None, args.raw_names) or ""
    document = {"loadings": args.loadings, "sample_names": samples, "scores": values}
    task.finish(Outcome("", text, document, files))


def compare(args: Arguments) -> None:
    args.loadings = [args.loadings, *args.others]
    reference = 1 if args.reference is None else args.reference
    if not 1 <= reference <= len(args.loadings):
        raise UserError(f"argument --reference: must be in [1, {len(args.loadings)}], not {reference}")
    stems = [Path(path).stem for path in args.loadings]
    labels = stems if len(set(stems)) == len(stems) else args.loadings
    if len(set(labels)) < len(labels):
        raise UserError("argument --loadings: names a file twice")
    files = list(map(read_saved, args.loadings))
    adopt(args, files)
    task, results = Task(args), {}
    with task.work() as work:
        for label, saved in zip(labels, files, strict=True):
            work(saved.path)
            V = rows_for(saved, task.table, args.source)
            results[label] = from_loadings(V, task.matrix, names=task.names, label=label, **task.treatment)
        found = side_by_side(results, task.matrix, reference=reference - 1, **task.treatment)
    table = found.to_frame()
    fields = {"reference": found.labels[found.reference], "total_variance": found.total_variance}
    draw = lambda plot, figure: plot.comparison(found, ax=figure.subplots())  # noqa: E731
    written = {"output": {".csv": table, ".html": found._repr_html_()}}
    task.finish(Outcome("Comparison", found.summary(), fields | {"components": table}, written, draw, 8))


# ---- bounds ----------------------------------------------------------------------------------------


def certify(args: Arguments) -> None:
    if (args.cardinality is None) == (args.loadings is None):
        raise UserError("give either -k/--cardinality or --loadings; see spcacore certify --help")
    if args.relaxation is not None and args.exact:
        raise UserError("argument --relaxation: not with --exact")
    saved = [] if args.loadings is None else [read_saved(args.loadings)]
    adopt(args, saved)
    task = Task(args)
    relaxed = task.p <= COMMAND_RELAXATION_ORDER if args.relaxation is None else args.relaxation
    with task.work() as work:
        if saved:
            rows, text, fields = _of_loadings(task, rows_for(saved[0], task.table, args.source), relaxed)
        else:
            rows, text, fields = _of_cardinalities(task, relaxed, work)
    numbers = pandas.DataFrame(rows).drop(columns="loadings", errors="ignore")
    forms = {"gap": lambda share: f"{gap(share)} %"}
    table = numbers.to_string(index=False, formatters=forms, float_format=significant)
    task.finish(Outcome("Optimality", f"{table}\n\n{text}", {**fields, "components": rows}, {}))


def _of_cardinalities(task: Task, relaxed: bool, work: Work) -> Any:
    """How much variance a component of each cardinality can have, and how much the best one found has."""
    args, rows = task.args, []
    options = task.treatment | task.choice(
        {name: value for name, value in args.of_model.items() if name in _KNOWN}
    )
    for k in args.cardinality:
        work.task = f"cardinality {k}: "
        work("bounds")
        told = lambda state: work(f"{state.n_iter} {'nodes' if args.exact else 'iterations'}")  # noqa: E731
        if args.exact:
            search = BranchAndBound(time_limit=args.time_limit, rng=args.rng)
            x: Any = branch_and_bound(task.matrix, k, options=search, callback=told, **options)
            bounds = {"nodes": x.n_nodes}
        else:
            best = optimality_bound(task.matrix, k, relaxation=relaxed, **options)
            x, bounds = tpower(task.matrix, k, callback=told, **options), best.bounds
            x = replace(x, upper_bound=max(best.upper_bound, x.value))
        row = {"cardinality": k, **bounds, "upper_bound": x.upper_bound, "value": x.value, "gap": x.gap}
        rows.append(row | {"loadings": entries(x.loading, task.names)})
    state = "optimal, proved" if x.gap == 0 else f"at most {gap(x.gap)} % below the optimum"
    return rows, f"the last component, {state}\n\n{text_of(x, task.names)}", {}


def _of_loadings(task: Task, V: Any, relaxed: bool) -> Any:
    """What given loadings explain, and a bound on what any as many of as few variables explain together."""
    given = from_loadings(V, task.matrix, **task.treatment)
    r, sizes, value = V.shape[1], given.cardinality, float(given.explained_variance.sum())
    best = optimality_bound(task.matrix, sizes, r, relaxation=relaxed, **task.treatment)
    bound = max(best.upper_bound, value)
    below = 1 - value / bound if 0 < bound < np.inf else 0.0
    columns = {"component": np.arange(r) + 1, "cardinality": sizes, "cumulative": given.explained_variance}
    for name in _DEFINITIONS:
        columns[name] = explained_variance(task.matrix, V, name, **task.treatment)
    total = given.total_variance or 0.0
    shown = f", {percent(value / total)} % of the variance" if 0 < total < np.inf else ""
    text = f"together {significant(value)}{shown}, at most {gap(below)} % below the optimum"
    fields = {
        "loadings": task.args.loadings, "total_variance": given.total_variance, "value": value,
        "bounds": best.bounds, "upper_bound": bound, "gap": below,
    }  # fmt: skip
    return pandas.DataFrame(columns).to_dict("records"), text, fields
