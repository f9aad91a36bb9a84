"""What the commands do that fit, run or compare models: each ends in an outcome."""

from __future__ import annotations

import os
import platform
import time
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import scipy.sparse

from .. import _core, datasets
from .._limits import COMMAND_RELAXATION_ORDER, INFO_ENTRIES, INFO_NAMES, INFO_VARIANCE_RATIO, slices
from .._messages import counted
from .._records import replaced
from .._rendering import gap, percent, printable, significant
from .._validation import as_dense, stored
from ..linalg.threads import get_num_threads
from ..models.comparison import compare as side_by_side
from ..models.components import sparse_pca
from ..models.variance import from_loadings
from ..operators.inputs import as_problem
from ..operators.transform import scores
from ..readable import component_frame
from ..results import LoadingsResult
from ..selection.criteria import select_sparsity, sparsity_path
from ..selection.model import SPARSITY_WORDS
from ..selection.stable_variables import stability as chosen_again
from ..solvers.certificates import optimality_bound
from ..solvers.truncated_power import tpower
from .options import long_flag, takes
from .reading import places, read, rows_for, symmetric
from .report import entries, fields_of, print_json, text_of, write_frame
from .source import Arguments, Table, UserError
from .task import Task

_KNOWN = ("include", "exclude", "groups", "signs", "count")


def show_pitprops() -> None:
    pitprops = datasets.load_pitprops()
    started = time.perf_counter()
    result = sparse_pca(pitprops.correlation, 6, [7, 4, 4, 1, 1, 1], kind="covariance")
    seconds = time.perf_counter() - started
    print(
        "Sparse PCA of the pit props: correlations of 13 measurements of 180 mine timbers (Jeffers 1967)\n"
        "6 components of 7, 4, 4, 1, 1 and 1 variables, as in Zou, Hastie and Tibshirani (2006)\n\n"
        f"{text_of(result, pitprops.names)}\n\n{seconds:.3f} s\n"
        "Your own data: spcacore fit FILE      More: spcacore --help"
    )


def fit(args: Arguments) -> None:
    given = args.of_model
    if given.get("certify") and "time_limit" in given and "time_limit" not in takes(args.method):
        given["certify"] = given.pop("time_limit") or "bounds"
    task = Task(args)
    result, names = task.run(5), task.names
    if args.plot and result.n_components == 0:
        raise UserError(f"cannot write {args.plot}: there is no component to draw")
    table = replaced(result, names=names).to_frame()
    if hasattr(result, "kind"):  # then .csv says what the fit did to its data, too
        done = {"center": result.mean, "scale": result.scale, "kind": result.kind}
        table = table.assign(**{name: value for name, value in done.items() if value is not None})
    files = {"output": {".csv": table, ".npz": _arrays(result, names)}}
    if args.scores:
        files["scores"] = _scores(result.transform(task.matrix), task.table.samples())

    def draw(plot: Any, figure: Any) -> None:
        left, right = figure.subplots(1, 2)
        plot.heatmap(result, names=names, ax=left)
        plot.scree(result, None if np.isnan(task.matrix.sum()) else task.matrix, ax=right)

    task.finish("Sparse PCA", text_of(result, names), {"result": result}, files, draw, 11)


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
    grids = {name: asked.pop(name) for name in SPARSITY_WORDS if name in asked}
    args.grid_of, grid = next(iter(grids.items()), ("cardinality", None))
    if args.criterion is None and "rng" in takes(args.method):
        asked |= choosing  # of which only the seed goes without a criterion
    if grid and isinstance(grid[0], list):
        if args.criterion is None:
            flag = long_flag(args.grid_of)
            raise UserError(f"argument {flag}: values for each component require --criterion")
        asked.setdefault("n_components", len(grid))
    task = Task(args)
    if args.criterion is None:
        curve = task.run(1, sparsity_path, grids or None)
    else:
        curve = task.run(1, select_sparsity, grids or None, **choosing)
    path, arrays = getattr(curve, "path", curve), {}
    r = counted(path.n_components, "ordinary principal component")
    parts = [path.summary(), f"{percent(path.dense_ratio.sum())} % by {r}"]
    if path is not curve:
        parts += [curve.summary(), text_of(curve.result, task.names)]
        arrays = _arrays(curve.result, task.names)
    files = {"output": {".csv": curve.to_frame(), ".npz": arrays | fields_of(curve)}}
    draw = lambda plot, figure: plot.path(curve, ax=figure.subplots())  # noqa: E731
    task.finish("Sparsity path", "\n\n".join(parts), {"result": curve}, files, draw)


def stability(args: Arguments) -> None:
    task = Task(args)
    found = replace(task.run(2, chosen_again, **args.of_function), names=tuple(task.names))
    table, arrays = found.to_frame(), fields_of(found) | {"names": np.array(task.names, np.str_)}
    files = {"output": {".csv": table.astype({"stable": int}), ".npz": arrays}}
    r = found.loadings.shape[1]

    def draw(plot: Any, figure: Any) -> None:
        for t, ax in enumerate(np.atleast_1d(figure.subplots(1, r))):
            plot.stability(found, t, ax=ax)

    fields = {"result": found, "frequencies": table}
    task.finish("Stability", found.summary(), fields, files, draw, 5.5 * r)


def transform(args: Arguments) -> None:
    task = Task(args)
    (saved,) = task.saved
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
    task.finish("", text, document, files)


def compare(args: Arguments) -> None:
    args.loadings = [args.loadings, *args.others]
    reference = 1 if args.reference is None else args.reference
    if not 1 <= reference <= len(args.loadings):
        raise UserError(f"argument --reference: must be in [1, {len(args.loadings)}], not {reference}")
    stems = [Path(path).stem for path in args.loadings]
    labels = stems if len(set(stems)) == len(stems) else args.loadings
    if len(set(labels)) < len(labels):
        raise UserError("argument --loadings: names a file twice")
    task, results = Task(args), {}
    with task.work():
        for label, saved in zip(labels, task.saved, strict=True):
            task(saved.path)
            V = rows_for(saved, task.table, args.source)
            results[label] = from_loadings(V, task.matrix, names=task.names, label=label, **task.treatment)
        found = side_by_side(results, task.matrix, reference=reference - 1, **task.treatment)
    table = found.to_frame()
    fields = {"reference": found.labels[found.reference], "total_variance": found.total_variance}
    draw = lambda plot, figure: plot.comparison(found, ax=figure.subplots())  # noqa: E731
    written = {"output": {".csv": table, ".html": found._repr_html_()}}
    task.finish("Comparison", found.summary(), fields | {"components": table}, written, draw, 8)


# ---- bounds ----------------------------------------------------------------------------------------


def certify(args: Arguments) -> None:
    if (args.cardinality is None) == (not args.loadings):
        raise UserError("give either -k/--cardinality or --loadings; see spcacore certify --help")
    task = Task(args)
    relaxed = task.p <= COMMAND_RELAXATION_ORDER if args.relaxation is None else args.relaxation
    with task.work():
        rows, text, fields = (_of_loadings if task.saved else _of_cardinalities)(task, relaxed)
    numbers = pandas.DataFrame(rows).drop(columns="loadings", errors="ignore")
    forms = {"gap": lambda share: f"{gap(share)} %"}
    table = numbers.to_string(index=False, formatters=forms, float_format=significant)
    task.finish("Optimality", f"{table}\n\n{text}", {**fields, "components": rows}, {})


def _of_cardinalities(task: Task, relaxed: bool) -> Any:
    """How much variance a component of each cardinality can have, and how much the best one found has."""
    args, rows = task.args, []
    known = {name: value for name, value in args.of_model.items() if name in _KNOWN}
    options = task.treatment | task.choice(known)
    for k in args.cardinality:
        task.label = f"cardinality {k}: "
        task("bounds")
        best = optimality_bound(task.matrix, k, relaxation=relaxed, **options)
        x = tpower(task.matrix, k, callback=lambda state: task(counted(state.n_iter, "iteration")), **options)
        x = replace(x, upper_bound=max(best.upper_bound, x.value))
        row = {"cardinality": k, **best.bounds, "upper_bound": x.upper_bound, "value": x.value, "gap": x.gap}
        rows.append(row | {"loadings": entries(x.loading, task.names)})
    state = "optimal, proved" if x.gap == 0 else f"at most {gap(x.gap)} % below the optimum"
    return rows, f"the last component, {state}\n\n{text_of(x, task.names)}", {}


def _of_loadings(task: Task, relaxed: bool) -> Any:
    """What given loadings explain, and a bound on what any as many of as few variables explain together."""
    V = rows_for(task.saved[0], task.table, task.args.source)
    given = side_by_side([V], task.matrix, **task.treatment)
    variances = {name: values for name, (values,) in given.explained_variance.items()}
    r, (sizes,), value = V.shape[1], given.cardinality, float(variances["cumulative"].sum())
    best = optimality_bound(task.matrix, sizes, r, relaxation=relaxed, **task.treatment)
    bound = max(best.upper_bound, value)
    below = 1 - value / bound if 0 < bound < np.inf else 0.0
    columns = {"component": np.arange(r) + 1, "cardinality": sizes, **variances}
    total = given.total_variance or 0.0
    shown = f", {percent(value / total)} % of the variance" if 0 < total < np.inf else ""
    text = f"together {significant(value)}{shown}, at most {gap(below)} % below the optimum"
    fields = {
        "loadings": task.args.loadings, "total_variance": given.total_variance, "value": value,
        "bounds": best.bounds, "upper_bound": bound, "gap": below,
    }  # fmt: skip
    return pandas.DataFrame(columns).to_dict("records"), text, fields


# ---- what to know of a file before a fit ---------------------------------------------------------------


def info(args: Arguments) -> None:
    if bool(args.build) == (args.file is not None):
        raise UserError("info needs either FILE or --build; see spcacore info --help")
    facts = {"spcacore": version("spcacore"), **_build()} if args.build else _facts_of_file(args)
    if args.json:
        print_json({"command": "info", **facts})
        return
    width, known = max(map(len, facts)), {name: value for name, value in facts.items() if value is not None}
    for name, value in known.items():
        print(f"  {name.replace('_', ' '):{width}}  {_shown(value)}")


def _build() -> dict[str, Any]:
    """What decides how fast the package is here, and the last bits of its numbers."""
    blas = scipy.show_config(mode="dicts").get("Build Dependencies", {}).get("blas", {})
    return {
        "python": platform.python_version(), "numpy": np.__version__, "scipy": scipy.__version__,
        "blas": f"{blas.get('name')} {blas.get('version')}", "threads": get_num_threads(),
        "clone": _core.clone(), "clones": list(_core.clones()),
    }  # fmt: skip


def _facts_of_file(args: Arguments) -> dict[str, Any]:
    table = read(args)
    size = None if args.source.content is not None else os.path.getsize(args.file)
    facts = {"file": args.file, "format": args.source.kind.lstrip("."), "bytes_on_disk": size}
    facts |= {"orientation": args.orientation} | facts_of(table)
    return facts | {"notes": [*args.notes, *_notes(facts)]}


def facts_of(table: Table) -> dict[str, Any]:
    X, names = table.matrix, table.variables()
    n, p = X.shape
    sparse, as_covariance = X.format if scipy.sparse.issparse(X) else None, symmetric(X)
    entries, columns, parts = stored(X), X.tocsc() if sparse else X, []
    for some in slices(p, n, INFO_ENTRIES):
        known = pandas.DataFrame(as_dense(columns[:, some]), dtype=np.float64)
        known = known[np.isfinite(known)]
        with np.errstate(over="ignore", invalid="ignore"):
            parts.append([known.count(), known.min(), known.max(), known.var()])
    count, low, high, variance = np.concatenate(parts, axis=1)
    constant = (count > 0) & (low == high)
    sizes = variance[(count > 1) & ~constant & np.isfinite(variance)]
    at = np.argwhere(~np.isfinite(entries))
    if sparse:
        at = np.transpose(X.tocoo().coords)[at[:, 0]]
    bad = min(at.tolist(), default=None)
    return {
        "samples": n, "variables": p, "sample_names": table.row_names and table.samples(),
        "names": table.names and names, "dtype": str(X.dtype), "sparse": sparse,
        "nonzeros": int(np.count_nonzero(entries)), "missing": int(np.isnan(entries).sum()),
        "infinite": int(np.isinf(entries).sum()),
        "first_not_finite": bad and [table.samples()[bad[0]], names[bad[1]]],
        "constant_variables": [names[j] for j in np.flatnonzero(constant)],
        "empty_variables": [names[j] for j in np.flatnonzero(count == 0)],
        "smallest_variance": sizes.min(initial=np.inf), "largest_variance": sizes.max(initial=-np.inf),
        "median_variance": np.median(sizes) if len(sizes) else None,
        "symmetric": as_covariance, "unit_diagonal": as_covariance and bool(np.allclose(X.diagonal(), 1)),
    }  # fmt: skip


def _notes(facts: dict[str, Any]) -> list[str]:
    median = facts["median_variance"]
    ratio = facts["largest_variance"] / median if median else 0
    what = "correlations" if facts["unit_diagonal"] else "covariances"
    known = {
        "missing entries of dense data are left out by --method tpower, pmd, spca, sca and ppca, and "
        "filled in or dropped by --impute":
            facts["missing"],
        "infinite entries must be replaced or dropped before a fit": facts["infinite"],
        f"the matrix is symmetric; if it holds {what}, say --covariance": facts["symmetric"],
        f"the largest variance is {ratio:.2g} times the median: such variables will make up the components, "
        "unless --scale gives all of them the same weight":
            ratio > INFO_VARIANCE_RATIO and not facts["symmetric"],
        "no variable varies": facts["samples"] > 1 and median is None,
    }  # fmt: skip
    return [advice for advice, holds in known.items() if holds]


def _shown(value: Any) -> str:
    """As a word, or the first few and their number; notes are lines."""
    if isinstance(value, float):
        return significant(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, list):
        return printable(str(value))
    words = [printable(str(one).strip()) or "?" for one in value]
    if any(" " in word for word in words):
        return "".join(f"\n    {word}" for word in words)
    more = f", ... ({len(words)})" * (len(words) > INFO_NAMES)
    return (", ".join(words[:INFO_NAMES]) or "none") + more
