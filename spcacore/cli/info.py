"""What `spcacore info` prints of a file: what a user should know before fitting."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from .. import _core
from .._limits import INFO_ENTRIES, INFO_NAMES, INFO_TIMED_ENTRIES, INFO_VARIANCE_RATIO
from .._rendering import printable, significant
from ..linalg.cores import get_num_threads
from ..operators.inputs import as_problem
from .reading import read, symmetric
from .report import print_json
from .table import Arguments, Table, UserError

__all__ = ["run"]
__dir__ = __all__.copy


def run(args: Arguments) -> None:
    if args.build == (args.file is not None):
        raise UserError("info needs either FILE or --build; see spcacore info --help")
    if args.build:
        _print_build(args)
        return
    table = read(args)
    source = args.source
    facts = {
        "format": source.kind.lstrip("."),
        "contents": table.contents or None,
        "columns_of_words": list(table.words),
        "bytes_on_disk": None if source.content is not None else os.path.getsize(args.file),
        **_facts(table, args),
    }
    if args.json:
        print_json(
            {"command": "info", "file": args.file, **facts,
             "names": table.variables() if table.names else None,
             "sample_names": table.samples() if table.row_names else None, "notes": args.notes}
        )  # fmt: skip
        return
    _print_facts(facts, table, args)


def _facts(table: Table, args: Arguments) -> dict[str, Any]:
    X = table.matrix
    n, p = X.shape
    sparse = scipy.sparse.issparse(X)
    columns = _Columns(X)
    known = columns.count > 0
    constant = known & (columns.low == columns.high)
    variances = columns.variance[(columns.count > 1) & ~constant]
    size = variances[np.isfinite(variances)]
    square = symmetric(X)
    facts: dict[str, Any] = {
        "samples": n,
        "variables": p,
        "orientation": args.orientation,
        "dtype": str(X.dtype),
        "sparse": X.format if sparse else None,
        "bytes_in_memory": _bytes(X),
        "nonzeros": int(columns.nonzeros),
        "missing": int(columns.missing),
        "infinite": int(columns.infinite),
        "first_not_finite": None if columns.first is None else list(columns.first),
        "constant_variables": np.flatnonzero(constant).tolist(),
        "empty_variables": np.flatnonzero(~known).tolist(),
        "smallest_variance": size.min(initial=np.inf),
        "median_variance": np.median(size) if len(size) else None,
        "largest_variance": size.max(initial=-np.inf),
        "symmetric": square,
        "unit_diagonal": square and bool(np.allclose(X.diagonal(), 1)),
    }
    facts["seconds_per_product"] = None
    if columns.first is None and (X.nnz if sparse else n * p) >= INFO_TIMED_ENTRIES and not square:
        facts["seconds_per_product"] = _product_time(X)
    return facts


def _print_build(args: Arguments) -> None:
    """What decides how fast the package is here, and the last bits of its numbers."""
    blas = scipy.show_config(mode="dicts").get("Build Dependencies", {}).get("blas", {})
    facts = {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "blas": " ".join(str(blas[key]) for key in ("name", "version") if blas.get(key)) or None,
        "threads": get_num_threads(),
        "clone": _core.clone(),
        "clones": list(_core.clones()),
    }
    if args.json:
        print_json({"command": "info", **facts})
        return
    words = {"clone": "kernels for", "clones": "could run"}
    rows = [("spcacore", version("spcacore"))]
    for key, value in facts.items():
        text = ", ".join(value) if isinstance(value, list) else "unknown" if value is None else str(value)
        rows.append((words.get(key, key), text))
    for title, text in rows:
        print(f"  {title.ljust(11)}  {text}")


def _bytes(X: Any) -> int:
    if scipy.sparse.issparse(X):
        return sum(part.nbytes for part in (X.data, X.indices, X.indptr))
    return X.nbytes


def _product_time(X: Any) -> float:
    """Of the covariance matrix with a vector, as the solvers make it."""
    op = as_problem(X).operator
    v = np.zeros(op.p, op.dtype)
    v[0] = 1
    started = time.perf_counter()
    op.apply(None, v)
    return time.perf_counter() - started


class _Columns:
    """Of each column, leaving out what is not finite: count, least and largest entry, variance."""

    def __init__(self, X: Any):
        p = X.shape[1]
        self.count = np.zeros(p, np.int64)
        self.low, self.high = np.full(p, np.inf), np.full(p, -np.inf)
        self.nonzeros = self.missing = self.infinite = 0
        self.first: tuple[int, int] | None = None
        measure = self._of_sparse if scipy.sparse.issparse(X) else self._of_dense
        with np.errstate(all="ignore"):
            measure(X)

    def _not_finite(self, values: NDArray[Any], where: Callable[[], tuple[int, int]]) -> None:
        missing = int(np.isnan(values).sum())
        self.missing += missing
        self.infinite += len(values) - missing
        if len(values):
            self.first = where() if self.first is None else min(self.first, where())

    def _exponent(self) -> NDArray[np.intc]:
        """A power of two near the largest entry, by which squares neither overflow nor vanish."""
        return np.frexp(np.where(self.count > 0, np.maximum(np.abs(self.low), np.abs(self.high)), 1))[1]

    def _of_dense(self, X: Any) -> None:
        """Blocks are merged as by Chan, Golub and LeVeque (1983), The American Statistician 37, eq. 2.1."""
        p = X.shape[1]
        for rows, columns, block in _blocks(X):
            finite = np.isfinite(block)
            self.count[columns] += finite.sum(axis=0)
            low, high = self.low[columns], self.high[columns]
            np.minimum(low, np.min(block, axis=0, where=finite, initial=np.inf), out=low)
            np.maximum(high, np.max(block, axis=0, where=finite, initial=-np.inf), out=high)
            self.nonzeros += int(np.count_nonzero(block))
            bad = np.argwhere(~finite)
            self._not_finite(
                block[tuple(bad.T)],
                lambda bad=bad, i=rows.start, j=columns.start: (int(bad[0][0]) + i, int(bad[0][1]) + j),  # type: ignore[misc]
            )
        exponent = self._exponent()
        mean, squares, seen = np.zeros(p), np.zeros(p), np.zeros(p, np.int64)
        for _, columns, block in _blocks(X):
            _merge(np.ldexp(block, -exponent[columns]), mean[columns], squares[columns], seen[columns])
        self.variance = np.ldexp(squares / np.maximum(seen - 1, 1), 2 * exponent)

    def _of_sparse(self, X: Any) -> None:
        n, p = X.shape
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        stored, total, squares = np.zeros(p, np.int64), np.zeros(p), np.zeros(p)
        self.count[:] = n
        for row, column, value in _entries(X):
            finite = np.isfinite(value)
            stored += np.bincount(column, minlength=p)
            self.count -= np.bincount(column[~finite], minlength=p)
            np.minimum.at(self.low, column[finite], value[finite])
            np.maximum.at(self.high, column[finite], value[finite])
            self.nonzeros += int(np.count_nonzero(value))
            bad = np.flatnonzero(~finite)
            places = zip(row[bad].tolist(), column[bad].tolist(), strict=True)
            self._not_finite(value[bad], lambda places=places: min(places))  # type: ignore[misc]
        zeros = n - stored
        self.low[zeros > 0] = np.minimum(self.low[zeros > 0], 0)
        self.high[zeros > 0] = np.maximum(self.high[zeros > 0], 0)
        exponent = self._exponent()
        known = np.maximum(self.count, 1)

        def add(to: NDArray[Any], function: Callable[[Any, Any], Any]) -> None:
            for _, column, value in _entries(X):
                kept = np.isfinite(value)
                column, value = column[kept], np.ldexp(value[kept], -exponent[column[kept]])
                to += np.bincount(column, function(column, value), minlength=p)

        add(total, lambda column, value: value)
        mean = total / known
        add(squares, lambda column, value: (value - mean[column]) ** 2)
        squares += zeros * mean**2
        self.variance = np.ldexp(squares / np.maximum(self.count - 1, 1), 2 * exponent)


def _blocks(X: NDArray[Any]) -> Iterator[tuple[slice, slice, NDArray[np.float64]]]:
    """Pieces of X in float64, in the order in which it is stored."""
    n, p = X.shape
    by_columns = X.flags.f_contiguous and not X.flags.c_contiguous
    step = max(1, INFO_ENTRIES // (n if by_columns else p))
    for start in range(0, p if by_columns else n, step):
        part = slice(start, start + step)
        rows, columns = (slice(0, n), part) if by_columns else (part, slice(0, p))
        yield rows, columns, np.asarray(X[rows, columns], np.float64)


def _entries(X: Any) -> Iterator[tuple[NDArray[Any], NDArray[Any], NDArray[np.float64]]]:
    """Rows, columns and values of the entries stored of a CSR or CSC matrix, some at a time."""
    for start in range(0, len(X.data), INFO_ENTRIES):
        part = slice(start, min(start + INFO_ENTRIES, len(X.data)))
        minor = X.indices[part]
        major = np.searchsorted(X.indptr, np.arange(part.start, part.stop), side="right") - 1
        value = np.asarray(X.data[part], np.float64)
        yield (major, minor, value) if X.format == "csr" else (minor, major, value)


def _merge(block: NDArray[np.float64], mean: NDArray[Any], squares: NDArray[Any], seen: NDArray[Any]) -> None:
    """Take the finite entries of a block into the mean, sum of squares about it, and count, in place."""
    finite = np.isfinite(block)
    count = finite.sum(axis=0)
    block = np.where(finite, block, 0)
    here = block.sum(axis=0) / np.maximum(count, 1)
    spread = (np.where(finite, block - here, 0) ** 2).sum(axis=0)
    both = np.maximum(seen + count, 1)
    squares += spread + (here - mean) ** 2 * seen * count / both
    mean += (here - mean) * count / both
    seen += count


# ---- text -------------------------------------------------------------------------------------------


def _print_facts(facts: dict[str, Any], table: Table, args: Arguments) -> None:
    n, p = facts["samples"], facts["variables"]
    size = "" if facts["bytes_on_disk"] is None else f", {_amount(facts['bytes_on_disk'])}"
    print(f"{args.source}: {facts['format']}{size}\n")
    rows = []
    if facts["contents"]:
        rows.append(["contents", printable(facts["contents"])])
    rows += [
        ["samples", f"{n}{_some(table.row_names)}"],
        ["variables", f"{p}{_some(table.names)}"],
        *([["words", f"{len(table.words)}{_some(list(table.words))}, left out"]] if table.words else []),
        ["numbers", f"{facts['dtype']}, {facts['sparse'] or 'dense'}"],
        ["nonzero", _share(facts["nonzeros"], n * p)],
        ["in memory", _amount(facts["bytes_in_memory"])],
        ["missing", _count_of(facts["missing"], n * p)],
        ["infinite", _count_of(facts["infinite"], n * p)],
    ]  # fmt: skip
    names = table.variables()
    if facts["first_not_finite"]:
        i, j = facts["first_not_finite"]
        rows.append(
            ["", f"the first: sample {printable(table.samples()[i])}, variable {printable(names[j])}"]
        )
    constant, empty = facts["constant_variables"], facts["empty_variables"]
    rows.append(["constant", f"{len(constant) or 'none'}{_some([names[j] for j in constant])}"])
    if empty:
        rows.append(["all missing", f"{len(empty)}{_some([names[j] for j in empty])}"])
    if facts["median_variance"] is not None:
        rows.append(
            ["variances", f"{significant(facts['smallest_variance'])} to "
             f"{significant(facts['largest_variance'])}, median {significant(facts['median_variance'])}"]
        )  # fmt: skip
    rows.append(["symmetric", "yes" if facts["symmetric"] else "no"])
    if facts["seconds_per_product"] is not None:
        rows.append(["one product", f"{1000 * facts['seconds_per_product']:.2g} ms"])
    width = max(len(row[0]) for row in rows)
    for title, text in rows:
        print(f"  {title.ljust(width)}  {text}")
    advice = _advice(facts, args)
    if advice:
        print("\n" + "\n".join(advice))


def _advice(facts: dict[str, Any], args: Arguments) -> list[str]:
    advice = []
    if facts["missing"]:
        advice.append(
            "Missing entries must be filled in or dropped"
            + (" before a fit." if facts["sparse"] else ", or left out by --method pmd.")
        )
    if facts["infinite"]:
        advice.append("Infinite entries must be replaced or dropped before a fit.")
    if facts["symmetric"]:
        what = "correlations" if facts["unit_diagonal"] else "covariances"
        advice.append(f"The matrix is symmetric; if it holds {what}, say --covariance.")
    elif facts["median_variance"]:
        ratio = facts["largest_variance"] / facts["median_variance"]
        if ratio > INFO_VARIANCE_RATIO:
            advice.append(
                f"The largest variance is {ratio:.2g} times the median: such variables will make up the "
                "components, unless --scale gives all of them the same weight."
            )
    if facts["samples"] > 1 and len(facts["constant_variables"]) == facts["variables"]:
        advice.append("No variable varies.")
    if facts["seconds_per_product"] is not None:
        advice.append(
            "A component takes from 5 (clear structure) to 200 (noise) such products; with many columns of "
            "dense data most are spared."
        )
    return [*advice, *(f"Note: {note}." for note in args.notes)]


def _some(names: Any) -> str:
    """The first few in brackets."""
    if not names:
        return ""
    shown = ", ".join(printable(name.strip()) or "?" for name in names[:INFO_NAMES])
    return f" ({shown}{', ...' if len(names) > INFO_NAMES else ''})"


def _count_of(number: int, total: int) -> str:
    return "none" if number == 0 else f"{number} of {total} entries ({_share(number, total)})"


def _share(number: int, total: int) -> str:
    share = 100 * number / total
    return f"{share:.3g} %" if number in (0, total) or 0.1 < share < 99.9 else f"{share:.6g} %"


def _amount(size: float) -> str:
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            break
        size /= 1000
    return f"{size:.3g} {unit}" if unit != "bytes" else f"{size} bytes"
