"""What the commands do with a file once it is read; each ends in a report."""

from __future__ import annotations

import contextlib
import re
import sys
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import scipy.sparse

from .. import datasets
from .._limits import COMMAND_RELAXATION_ORDER, INFO_ENTRIES, INFO_NAMES, INFO_VARIANCE_RATIO, slices
from .._messages import counted
from .._records import replaced
from .._rendering import gap, percent, printable, significant
from .._validation import as_dense
from ..choice import Choice
from ..models.comparison import compare as side_by_side
from ..models.components import sparse_pca
from ..models.variance import from_loadings
from ..operators.inputs import as_problem
from ..operators.transform import scores
from ..readable import component_frame
from ..results import LoadingsResult
from ..selection.criteria import select_sparsity, sparsity_path
from ..selection.model import SPARSITY_WORDS, by_place
from ..selection.stable_variables import stability as chosen_again
from ..solvers.certificates import optimality_bound
from ..solvers.truncated_power import tpower
from .options import SPARSITY, call_of, in_flags, refusal, signature, takes
from .reading import adopt, places, read, read_lines, read_saved, symmetric
from .report import Draw, Files, check_outputs, entries, fields_of, print_json, text_of, write_all
from .source import Arguments, Table, UserError, say


class Task:
    """A file that was read, and what to do with it."""

    args: Arguments
    table: Table
    names: list[str]
    matrix: Any
    n: Any
    p: Any
    warnings: list[str]

    def __init__(self, args: Arguments):
        self.call: Any = call_of(args) if args.methods else None
        if args.covariance and args.scores:
            raise UserError("argument --scores: a covariance has no samples to score")
        self.saved: list[Arguments] = [read_saved(path) for path in args.loadings]
        adopt(args, self.saved)
        check_outputs(args)
        self.args, self.table = args, read(args)
        self.names, self.matrix = self.table.variables(), self.table.matrix
        self.n, self.p = self.matrix.shape
        self.treatment: dict[str, Any] = {  # how all functions read the matrix
            "kind": "covariance" if args.covariance else "data", "center": args.center, "scale": args.scale,
        }  # fmt: skip
        watched = sys.stderr is not None and sys.stderr.isatty()
        self.callback: Any = True if watched and not args.quiet else None  # a bar, if somebody watches

    def choice(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the options say about the variables, by position, as an argument."""
        groups = {"groups": read_lines(self.args, "groups", self.p)} if "groups" in given else {}
        known = by_place({**given, **groups}, tuple(self.names), self.p)
        return {"choice": Choice(**known)} if known else {}

    def run(self, default: int, runs: Any = None, *more: Any, **options: Any) -> Any:
        """Return the result of the model, or of the function `runs` that takes the model.

        `default` is the number of components if no option says it.
        """
        with self.work():
            model = self.model(default)
            call = partial(runs, self.matrix, model, *more) if runs else partial(model, self.matrix)
            return self.named(call(callback=self.callback, **options))

    def named(self, result: Any) -> Any:
        """Return the result with the names of the variables, if it can have names."""
        return replaced(result, names=tuple(self.names)) if hasattr(result, "names") else result

    def model(self, default: int) -> Any:
        """Return the function of the method with its options.

        The number of components is that of the numbers that say how sparse, if there are several; else
        `default`.
        """
        function, keywords, known = self.call
        several = [v for name in SPARSITY if isinstance(v := self.args.of_model.get(name), list)]
        r = len(several[0]) if several else min(default, self.n, self.p)
        return partial(function, **{"n_components": r} | keywords | self.choice(known))

    @contextlib.contextmanager
    def work(self) -> Iterator[None]:
        """Keep warnings to print them as lines; turn an error about matrix or options into one line."""
        try:
            with warnings.catch_warnings(record=True) as log:
                warnings.simplefilter("ignore")
                warnings.simplefilter("always", RuntimeWarning)
                yield
        except (TypeError, ValueError) as error:
            raise refusal(self.args, error) from None
        self.warnings = [_reworded(said) for said in dict.fromkeys(str(w.message) for w in log)]
        lines = [f"warning: {one}" for one in self.warnings] + [f"note: {one}" for one in self.args.notes]
        for line in lines[: len(self.warnings) if self.args.quiet else None]:
            say(line)

    def finish(
        self, title: str, text: str, fields: Mapping[str, Any], files: Files, draw: Draw | None = None,
        width: float = 7,
    ) -> None:  # fmt: skip
        """Write, draw and print what was found."""
        args = self.args
        paths = write_all(args, files, draw, width)
        if args.json:
            print_json(self._document(fields), self.names)
        elif not args.quiet and title:
            print(f"{title} of {args.source}: {self._matrix()}\n\n{text}")
            print("".join(f"\nwrote {path}" for path in paths))
        elif not args.output and not title:
            print(text, end="")

    def _matrix(self) -> str:
        """Return words for the size and the treatment of the matrix."""
        args, variables = self.args, counted(self.p, "variable")
        if args.covariance:
            return f"{variables}, {'correlation' if args.scale else 'covariance'} matrix"
        treatment = f"{'not ' * (not args.center)}centered, {'not ' * (not args.scale)}scaled"
        return f"{counted(self.n, 'sample')}, {variables}, {treatment}"

    def _document(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return the document for --json."""
        args = self.args
        return {
            "command": args.command, "file": args.file, "samples": self.n, "variables": self.p,
            **self.treatment, "names": self.names if self.table.names else None, **fields,
            "warnings": self.warnings, "notes": args.notes,
        }  # fmt: skip


def _reworded(message: str) -> str:
    """Return a warning of the library in the words of the command, which counts components from 1."""
    missed = re.fullmatch(r"(components? [\d, ]+ )?(not converged in .*?)(iterations?)?", message)
    if missed is None:
        return in_flags(message)
    some = re.sub(r"\d+", lambda t: str(int(t[0]) + 1), missed[1] or "")
    return f"{some}{missed[2]}{missed[3] or ''}; raise {'--max-iter' if missed[3] else '--time-limit'}"


def show_pitprops() -> None:
    """Print what the command can do, for the data that the package has."""
    pitprops = datasets.load_pitprops()
    result = sparse_pca(pitprops.correlation, 6, [7, 4, 4, 1, 1, 1], kind="covariance")
    print(
        "Sparse PCA of the pit props: correlations of 13 measurements of 180 mine timbers (Jeffers 1967)\n"
        "6 components of 7, 4, 4, 1, 1 and 1 variables, as in Zou, Hastie and Tibshirani (2006)\n\n"
        f"{text_of(replaced(result, names=pitprops.names))}\n\n"
        "Your own data: spcacore fit FILE      More: spcacore --help"
    )


def fit(args: Arguments) -> None:
    """Run `spcacore fit`."""
    given = args.of_model
    if given.get("certify") and "time_limit" in given and "time_limit" not in takes(args.method):
        given["certify"] = given.pop("time_limit") or "bounds"
    task = Task(args)
    result = task.run(5)
    if args.plot and result.n_components == 0:
        raise UserError(f"cannot write {args.plot}: there is no component to draw")
    arrays = _arrays(result)
    beside = {"center": result.mean, "scale": result.scale, "kind": result.kind}  # .csv says it, too
    beside |= {f"weight_{t + 1}": w for t, w in enumerate(np.transpose(arrays.get("weights", [])))}
    table = result.to_frame().assign(**{name: value for name, value in beside.items() if value is not None})
    files = {"output": {".csv": table, ".npz": arrays}}
    if args.scores:
        files["scores"] = _scores(result.scores, task.table.samples())

    def draw(plot: Any, figure: Any) -> None:
        left, right = figure.subplots(1, 2)
        plot.heatmap(result, ax=left)
        plot.scree(result, None if np.isnan(task.matrix.sum()) else task.matrix, ax=right)

    task.finish("Sparse PCA", text_of(result), {"result": result}, files, draw, 11)


def _arrays(result: Any) -> dict[str, Any]:
    """Return the arrays of a fit for .npz; scores have a file of their own."""
    fields = fields_of(result) | {"gap": getattr(result, "gap", None)}
    # The weights are then the transform of a unit matrix
    if type(result).transform is not LoadingsResult.transform:
        eye = scipy.sparse.csr_array(scipy.sparse.identity(len(result.loadings), format="csr"))
        fields["weights"] = replaced(result, mean=None, scale=None).transform(eye)
    return fields | {"scores": None}


def _scores(values: Any, samples: list[str]) -> dict[str, Any]:
    """Return scores as a table and as arrays."""
    arrays = {"scores": values, "names": np.array(samples, np.str_)}
    return {".csv": component_frame(values, samples, "sample"), ".npz": arrays}


def path(args: Arguments) -> None:
    """Run `spcacore path`."""
    asked, choosing = args.of_model, args.of_function
    grids = {name: asked.pop(name) for name in SPARSITY_WORDS if name in asked}
    args.grid_of = next(iter(grids), "cardinality")
    runs = select_sparsity
    if args.criterion is None:  # only the seed is used
        asked |= choosing if "rng" in takes(args.method) else {}
        runs, choosing = sparsity_path, {}
    task = Task(args)
    curve = task.run(1, runs, grids or None, **choosing)
    path = getattr(curve, "path", curve)
    r = counted(path.n_components, "ordinary principal component")
    parts = [path.summary(), f"{percent(path.dense_ratio.sum())} % by {r}"]
    fields, arrays = {"result": curve}, fields_of(curve)
    if path is not curve:
        chosen = task.named(curve.result)
        parts += [curve.summary(), text_of(chosen)]
        fields |= {"path": path, "chosen": chosen}
        arrays = _arrays(chosen) | arrays
    files = {"output": {".csv": curve.to_frame(), ".npz": arrays}}
    draw = lambda plot, figure: plot.path(curve, ax=figure.subplots())  # noqa: E731
    task.finish("Sparsity path", "\n\n".join(parts), fields, files, draw)


def stability(args: Arguments) -> None:
    """Run `spcacore stability`."""
    task = Task(args)
    found = task.run(2, chosen_again, **args.of_function)
    table, r = found.to_frame(), found.n_components
    files = {"output": {".csv": table.astype({"stable": int}), ".npz": fields_of(found)}}

    def draw(plot: Any, figure: Any) -> None:
        for t, ax in enumerate(np.atleast_1d(figure.subplots(1, r))):
            plot.stability(found, t, ax=ax)

    fields = {"result": found, "frequencies": table}
    task.finish("Stability", found.summary(), fields, files, draw, 5.5 * r)


def transform(args: Arguments) -> None:
    """Run `spcacore transform`."""
    task = Task(args)
    (saved,) = task.saved
    X = task.matrix[:, places(saved, task.table, args.source)]
    with task.work():
        # If the file does not say how its data were treated, the samples' own moments are used
        moments = saved if saved.kind else as_problem(X, center=args.center, scale=args.scale)
        V = saved.loadings if saved.weights is None else saved.weights
        values = scores(X, V, moments.mean, moments.scale, missing=bool(saved.missing_entries))
    samples = task.table.samples()
    files = {"output": _scores(values, samples)}
    document = {"loadings": saved.path, "sample_names": samples, "scores": values}
    task.finish("", files["output"][".csv"].to_csv(lineterminator="\n"), document, files)


def compare(args: Arguments) -> None:
    """Run `spcacore compare`."""
    paths = args.loadings
    reference = 1 if args.reference is None else args.reference
    if not 1 <= reference <= len(paths):
        raise UserError(f"argument --reference: must be in [1, {len(paths)}], not {reference}")
    stems = [Path(path).stem for path in paths]
    labels = stems if len({*stems}) == len(stems) else paths
    if len({*labels}) < len(labels):
        raise UserError("argument --loadings: names a file twice")
    task, results = Task(args), {}
    with task.work():
        for label, saved in zip(labels, task.saved, strict=True):
            V = np.zeros((task.p, saved.loadings.shape[1]))
            V[places(saved, task.table, args.source)] = saved.loadings
            results[label] = from_loadings(V, task.matrix, names=task.names, label=label, **task.treatment)
        found = side_by_side(results, task.matrix, reference=reference - 1, **task.treatment)
    table = found.to_frame()
    fields = {
        "reference": found.labels[found.reference], "total_variance": found.total_variance,
        "components": table,
    }  # fmt: skip
    draw = lambda plot, figure: plot.comparison(found, ax=figure.subplots())  # noqa: E731
    files = {"output": {".csv": table, ".html": found._repr_html_()}}
    task.finish("Comparison", found.summary(), fields, files, draw, 8)


def certify(args: Arguments) -> None:
    """Run `spcacore certify`: upper bounds at each cardinality, and the best component found."""
    task, rows = Task(args), []
    relaxed = task.p <= COMMAND_RELAXATION_ORDER if args.relaxation is None else args.relaxation
    given = {name: value for name, value in args.of_model.items() if name in signature(Choice)}
    with task.work():
        options = task.treatment | task.choice(given)
        for k in args.cardinality:
            best = optimality_bound(task.matrix, k, relaxation=relaxed, **options)
            found = tpower(task.matrix, k, callback=task.callback, **options)
            x = replace(found, upper_bound=max(best.upper_bound, found.value), names=tuple(task.names))
            rows.append({
                "cardinality": k, **best.bounds, "upper_bound": x.upper_bound, "value": x.value, "gap": x.gap,
                "loadings": entries(x.loading, task.names),
            })  # fmt: skip
    forms = {"gap": lambda share: f"{gap(share)} %"}
    numbers = pandas.DataFrame(rows).drop(columns="loadings")
    table = numbers.to_string(index=False, formatters=forms, float_format=significant)
    task.finish(
        "Optimality", f"{table}\n\ncomponent of the last line\n\n{text_of(x)}", {"components": rows}, {}
    )


# ---- what to know of a file before a fit ---------------------------------------------------------------


def info(args: Arguments) -> None:
    """Run `spcacore info`: what to know about a file before a fit."""
    facts = {"file": args.file} | facts_of(read(args))
    facts["notes"] = [*args.notes, *_notes(facts)]
    if args.json:
        print_json({"command": "info", **facts})
        return
    for name, value in facts.items():
        if value is not None:
            print(f"  {name.replace('_', ' '):{max(map(len, facts))}}  {_shown(value)}")


def facts_of(table: Table) -> dict[str, Any]:
    """Return facts about a table."""
    X, names = table.matrix, table.variables()
    n, p = X.shape
    sparse = scipy.sparse.issparse(X)
    columns, parts = X.tocsc() if sparse else X, []
    with np.errstate(over="ignore", invalid="ignore"):
        for some in slices(p, n, INFO_ENTRIES):
            part = pandas.DataFrame(as_dense(columns[:, some]), dtype=np.float64)
            known = part[np.isfinite(part)]
            parts.append([known.count(), part.isna().sum(), known.min(), known.max(), known.var()])
    count, missing, low, high, variance = np.concatenate(parts, axis=1)
    varies = (count > 1) & (low < high)
    sizes = variance[varies & np.isfinite(variance)]
    return {
        "samples": n, "variables": p, "sample_names": table.row_names and table.samples(),
        "names": table.names and names, "dtype": str(X.dtype), "sparse": sparse,
        "missing": int(missing.sum()), "infinite": int((n - count - missing).sum()),
        "constant_variables": [names[j] for j in np.flatnonzero(~varies)],
        "smallest_variance": sizes.min(initial=np.inf), "largest_variance": sizes.max(initial=-np.inf),
        "median_variance": np.median(sizes) if len(sizes) else None, "symmetric": symmetric(X),
    }  # fmt: skip


def _notes(facts: dict[str, Any]) -> list[str]:
    """Return advice that follows from the facts."""
    median = facts["median_variance"]
    ratio = facts["largest_variance"] / median if median else 0
    known = {
        "missing entries of dense data are left out by --method tpower, pmd, spca, sca and ppca":
            facts["missing"],
        "infinite entries must be replaced or dropped before a fit": facts["infinite"],
        "the matrix is symmetric; if it holds covariances or correlations, say --covariance":
            facts["symmetric"],
        f"the largest variance is {ratio:.2g} times the median: such variables will make up the components, "
        "unless --scale gives all of them the same weight":
            ratio > INFO_VARIANCE_RATIO and not facts["symmetric"],
    }  # fmt: skip
    return [advice for advice, holds in known.items() if holds]


def _shown(value: Any) -> str:
    """Return a fact as a word, a list as its first entries and their number, and notes as lines."""
    if isinstance(value, float):
        return significant(value)
    if not isinstance(value, list):
        return printable(str(value))
    words = [printable(one.strip()) or "?" for one in value]
    if any(" " in word for word in words):
        return "".join(f"\n    {word}" for word in words)
    more = f", ... ({len(words)})" * (len(words) > INFO_NAMES)
    return (", ".join(words[:INFO_NAMES]) or "none") + more
