"""What `spcacore info` prints of a file: what a user should know before fitting."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Iterator
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

__all__ = ["facts_of", "run"]
__dir__ = __all__.copy


def run(args: Arguments) -> None:
    if bool(args.build) == (args.file is not None):
        raise UserError("info needs either FILE or --build; see spcacore info --help")
    if args.build:
        _tell_build(args)
        return
    table = read(args)
    source = args.source
    facts = {
        "format": source.kind.lstrip("."),
        "contents": table.contents or None,
        "columns_of_words": list(table.words),
        "bytes_on_disk": None if source.content is not None else os.path.getsize(args.file),
        "orientation": args.orientation,
        **facts_of(table.matrix),
    }
    if args.json:
        names = {
            "names": table.variables() if table.names else None,
            "sample_names": table.samples() if table.row_names else None,
        }
        print_json({"command": "info", "file": args.file, **facts, **names, "notes": args.notes})
    else:
        _print(facts, table, args)


def _tell_build(args: Arguments) -> None:
    """What decides how fast the package is here, and the last bits of its numbers."""
    blas = scipy.show_config(mode="dicts").get("Build Dependencies", {}).get("blas", {})
    facts = {
        "python": platform.python_version(), "numpy": np.__version__, "scipy": scipy.__version__,
        "blas": " ".join(str(blas[key]) for key in ("name", "version") if blas.get(key)) or None,
        "threads": get_num_threads(), "clone": _core.clone(), "clones": list(_core.clones()),
    }  # fmt: skip
    if args.json:
        print_json({"command": "info", **facts})
        return
    words = {"clone": "kernels for", "clones": "could run"}
    told = {"spcacore": version("spcacore"), **facts, "clones": ", ".join(_core.clones())}
    _print_rows({words.get(key, key): str(value or "unknown") for key, value in told.items()})


def _print_rows(rows: dict[str, Any]) -> None:
    width = max(len(title) for title, text in rows.items() if text)
    print("\n".join(f"  {title.ljust(width)}  {text}" for title, text in rows.items() if text))


# ---- numbers ----------------------------------------------------------------------------------------


def facts_of(X: Any) -> dict[str, Any]:
    n, p = X.shape
    sparse, as_covariance = scipy.sparse.issparse(X), symmetric(X)
    if sparse and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    stored, count, total, squares = np.zeros((4, p))
    low, high = np.full(p, np.inf), np.full(p, -np.inf)
    nonzeros = missing = infinite = 0
    first: list[list[int]] = []
    for row, column, value in _pieces(X):
        stored += np.bincount(column, minlength=p)
        nonzeros += int(np.count_nonzero(value))
        finite = np.isfinite(value)
        if not finite.all():
            missing += np.isnan(value).sum()
            infinite += np.isinf(value).sum()
            first += sorted(np.stack([row, column], axis=1)[~finite].tolist())[:1]
            column, value = column[finite], value[finite]
        count += np.bincount(column, minlength=p)
        total += np.bincount(column, value, minlength=p)
        np.minimum.at(low, column, value)
        np.maximum.at(high, column, value)
    zeros = n - stored  # which are not stored
    low[zeros > 0], high[zeros > 0] = low[zeros > 0].clip(max=0), high[zeros > 0].clip(min=0)
    count += zeros
    with np.errstate(all="ignore"):
        mean = total / count
        for _, column, value in _pieces(X):
            square = np.where(np.isfinite(value), (value - mean[column]) ** 2, 0)
            squares += np.bincount(column, square, minlength=p)
        variance = (squares + np.where(zeros > 0, zeros * mean**2, 0)) / (count - 1)
    constant = (count > 0) & (low == high)
    size = variance[(count > 1) & ~constant & np.isfinite(variance)]
    seconds = None
    if not first and nonzeros >= INFO_TIMED_ENTRIES and not as_covariance:
        op = as_problem(X).operator
        started = time.perf_counter()
        op.apply(None, np.eye(1, op.p, dtype=op.dtype)[0])  # as the solvers multiply by the covariance
        seconds = time.perf_counter() - started
    return {
        "samples": n, "variables": p, "dtype": str(X.dtype), "sparse": X.format if sparse else None,
        "bytes_in_memory": sum(a.nbytes for a in ((X.data, X.indices, X.indptr) if sparse else (X,))),
        "nonzeros": nonzeros, "missing": missing, "infinite": infinite,
        "first_not_finite": min(first, default=None),
        "constant_variables": np.flatnonzero(constant).tolist(),
        "empty_variables": np.flatnonzero(count == 0).tolist(),
        "smallest_variance": size.min(initial=np.inf), "largest_variance": size.max(initial=-np.inf),
        "median_variance": np.median(size) if len(size) else None,
        "symmetric": as_covariance, "unit_diagonal": as_covariance and bool(np.allclose(X.diagonal(), 1)),
        "seconds_per_product": seconds,
    }  # fmt: skip


def _pieces(X: Any) -> Iterator[tuple[NDArray[Any], ...]]:
    """Rows, columns and values of the entries stored, some at a time."""
    sparse = scipy.sparse.issparse(X)
    turned = X.format == "csc" if sparse else X.flags.f_contiguous and not X.flags.c_contiguous
    lines = X.T if turned else X
    per_line = max(1, (X.nnz if sparse else X.size) // lines.shape[0])
    step = max(1, INFO_ENTRIES // per_line)
    for start in range(0, lines.shape[0], step):
        block = scipy.sparse.coo_array(lines[start : start + step]) if sparse else lines[start : start + step]
        i, j = (block.row, block.col) if sparse else map(np.ravel, np.indices(block.shape))
        value = np.asarray(block.data if sparse else block, np.float64).ravel()
        where = (j, i + start) if turned else (i + start, j)
        yield *where, value


# ---- text -------------------------------------------------------------------------------------------


def _print(facts: dict[str, Any], table: Table, args: Arguments) -> None:
    n, p = facts["samples"], facts["variables"]
    size = "" if facts["bytes_on_disk"] is None else f", {_amount(facts['bytes_on_disk'])}"
    print(f"{args.source}: {facts['format']}{size}\n")
    names, first = table.variables(), facts["first_not_finite"]
    constant, empty = facts["constant_variables"], facts["empty_variables"]
    seconds, median = facts["seconds_per_product"], facts["median_variance"]
    where = "" if first is None else f"sample {printable(table.samples()[first[0]])}"
    where += "" if first is None else f", variable {printable(names[first[1]])}"
    rows = {
        "contents": facts["contents"] and printable(facts["contents"]),
        "samples": f"{n}{_some(table.row_names)}",
        "variables": f"{p}{_some(table.names)}",
        "words": table.words and f"{len(table.words)}{_some(list(table.words))}, left out",
        "numbers": f"{facts['dtype']}, {facts['sparse'] or 'dense'}",
        "nonzero": _share(facts["nonzeros"], n * p),
        "in memory": _amount(facts["bytes_in_memory"]),
        "missing": _count_of(facts["missing"], n * p),
        "infinite": _count_of(facts["infinite"], n * p),
        "": where and f"the first: {where}",
        "constant": f"{len(constant) or 'none'}{_some([names[j] for j in constant])}",
        "all missing": empty and f"{len(empty)}{_some([names[j] for j in empty])}",
        "variances": median is not None
        and f"{significant(facts['smallest_variance'])} to "
        f"{significant(facts['largest_variance'])}, median {significant(median)}",
        "symmetric": "yes" if facts["symmetric"] else "no",
        "one product": seconds is not None and f"{1000 * seconds:.2g} ms",
    }
    _print_rows(rows)
    advice = [*_advice(facts, args)]
    if advice:
        print("\n" + "\n".join(advice))


def _advice(facts: dict[str, Any], args: Arguments) -> Iterator[str]:
    if facts["missing"]:
        otherwise = " before a fit." if facts["sparse"] else ", or left out by --method pmd."
        yield f"Missing entries must be filled in or dropped{otherwise}"
    if facts["infinite"]:
        yield "Infinite entries must be replaced or dropped before a fit."
    median = facts["median_variance"]
    ratio = facts["largest_variance"] / median if median else 0
    if facts["symmetric"]:
        what = "correlations" if facts["unit_diagonal"] else "covariances"
        yield f"The matrix is symmetric; if it holds {what}, say --covariance."
    elif ratio > INFO_VARIANCE_RATIO:
        yield (
            f"The largest variance is {ratio:.2g} times the median: such variables will make up the "
            "components, unless --scale gives all of them the same weight."
        )
    if facts["samples"] > 1 and len(facts["constant_variables"]) == facts["variables"]:
        yield "No variable varies."
    if facts["seconds_per_product"] is not None:
        yield (
            "A component takes from 5 (clear structure) to 200 (noise) such products; with many columns of "
            "dense data most are spared."
        )
    yield from (f"Note: {note}." for note in args.notes)


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
    return f"{size:.3g} {unit}"
