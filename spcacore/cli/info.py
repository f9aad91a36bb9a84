"""What `spcacore info` prints of a file: what a user should know before fitting."""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import Any

import numpy as np
import scipy.sparse

from .. import _core
from .._limits import INFO_ENTRIES, INFO_NAMES, INFO_VARIANCE_RATIO
from .._rendering import printable, significant
from ..linalg.cores import get_num_threads
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
        "format": source.kind.lstrip("."), "contents": table.contents or None,
        "columns_of_words": table.words,
        "bytes_on_disk": None if source.content is not None else os.path.getsize(args.file),
        "orientation": args.orientation, **facts_of(table.matrix),
    }  # fmt: skip
    if args.json:
        names = {
            "names": table.variables() if table.names else None,
            "sample_names": table.samples() if table.row_names else None,
        }
        print_json({"command": "info", "file": args.file, **facts, **names, "notes": args.notes})
        return
    size = "" if facts["bytes_on_disk"] is None else f", {_amount(facts['bytes_on_disk'])}"
    print(f"{source}: {facts['format']}{size}\n")
    _print_rows(_rows(facts, table))
    advice = [*_advice(facts), *(f"Note: {note}." for note in args.notes)]
    if advice:
        print("\n" + "\n".join(advice))


def _tell_build(args: Arguments) -> None:
    """What decides how fast the package is here, and the last bits of its numbers."""
    blas = scipy.show_config(mode="dicts").get("Build Dependencies", {}).get("blas", {})
    facts = {
        "python": platform.python_version(), "numpy": np.__version__, "scipy": scipy.__version__,
        "blas": f"{blas.get('name', '')} {blas.get('version', '')}".strip() or None,
        "threads": get_num_threads(), "clone": _core.clone(), "clones": list(_core.clones()),
    }  # fmt: skip
    if args.json:
        print_json({"command": "info", **facts})
        return
    words = {"clone": "kernels for", "clones": "could run"}
    told = {"spcacore": version("spcacore"), **facts, "clones": ", ".join(_core.clones())}
    _print_rows({words.get(key, key): str(value or "unknown") for key, value in told.items()})


def _print_rows(rows: Mapping[str, str]) -> None:
    width = max(len(title) for title, text in rows.items() if text)
    print("\n".join(f"  {title.ljust(width)}  {text}" for title, text in rows.items() if text))


# ---- numbers ----------------------------------------------------------------------------------------


def facts_of(X: Any) -> dict[str, Any]:
    n, p = X.shape
    sparse, as_covariance = X.format if scipy.sparse.issparse(X) else None, symmetric(X)
    size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes if sparse else X.nbytes
    parts, first, nonzeros, missing, infinite = [], [], 0, 0, 0
    columns = X.tocsc() if sparse else X
    step = max(1, INFO_ENTRIES // n)
    for start in range(0, p, step):
        block = columns[:, start : start + step]
        block = np.asarray(block.toarray() if sparse else block, np.float64)
        nonzeros += int(np.count_nonzero(block))
        missing += np.isnan(block).sum()
        infinite += np.isinf(block).sum()
        first += [(int(i), start + int(j)) for i, j in np.argwhere(~np.isfinite(block))[:1]]
        with np.errstate(all="ignore"):
            known = np.ma.masked_invalid(block)
            moments = known.count(0), known.min(0), known.max(0), known.var(0, ddof=1)
            parts.append(np.ma.stack(moments).filled(np.nan))
    count, low, high, variance = np.concatenate(parts, axis=1)
    constant = (count > 0) & (low == high)
    sizes = variance[(count > 1) & ~constant & np.isfinite(variance)]
    return {
        "samples": n, "variables": p, "dtype": str(X.dtype), "sparse": sparse, "bytes_in_memory": size,
        "nonzeros": nonzeros, "missing": missing, "infinite": infinite,
        "first_not_finite": min(first, default=None),
        "constant_variables": np.flatnonzero(constant), "empty_variables": np.flatnonzero(count == 0),
        "smallest_variance": sizes.min(initial=np.inf), "largest_variance": sizes.max(initial=-np.inf),
        "median_variance": np.median(sizes) if len(sizes) else None,
        "symmetric": as_covariance, "unit_diagonal": as_covariance and bool(np.allclose(X.diagonal(), 1)),
    }  # fmt: skip


# ---- text -------------------------------------------------------------------------------------------


def _rows(facts: dict[str, Any], table: Table) -> dict[str, str]:
    n, p, names = facts["samples"], facts["variables"], table.variables()
    constant, empty = ([names[j] for j in facts[f"{what}_variables"]] for what in ("constant", "empty"))
    low, median, high = (facts[f"{which}_variance"] for which in ("smallest", "median", "largest"))
    rows = {
        "contents": printable(facts["contents"] or ""),
        "samples": f"{n}{_some(table.row_names)}",
        "variables": f"{p}{_some(table.names)}",
        "words": f"{len(table.words)}{_some(table.words)}, left out" * bool(table.words),
        "numbers": f"{facts['dtype']}, {facts['sparse'] or 'dense'}",
        "nonzero": _share(facts["nonzeros"], n * p),
        "in memory": _amount(facts["bytes_in_memory"]),
    }
    rows |= {
        what: f"{facts[what]} of {n * p} entries ({_share(facts[what], n * p)})" if facts[what] else "none"
        for what in ("missing", "infinite")
    }
    if facts["first_not_finite"]:
        i, j = facts["first_not_finite"]
        kind = "missing" if np.isnan(table.matrix[i, j]) else "infinite"
        rows[kind] += f", the first: sample {printable(table.samples()[i])}, variable {printable(names[j])}"
    return rows | {
        "constant": f"{len(constant) or 'none'}{_some(constant)}",
        "all missing": f"{len(empty)}{_some(empty)}" * bool(empty),
        "variances": "" if median is None
        else f"{significant(low)} to {significant(high)}, median {significant(median)}",
        "symmetric": "yes" if facts["symmetric"] else "no",
    }  # fmt: skip


def _advice(facts: dict[str, Any]) -> Iterator[str]:
    if facts["missing"]:
        otherwise = "" if facts["sparse"] else ", or left out by --method pmd"
        yield f"Missing entries must be filled in or dropped (--impute){otherwise}."
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


def _some(names: Sequence[str] | None) -> str:
    """The first few in brackets."""
    if not names:
        return ""
    shown = ", ".join(printable(name.strip()) or "?" for name in names[:INFO_NAMES])
    return f" ({shown}{', ...' * (len(names) > INFO_NAMES)})"


def _share(number: int, total: int) -> str:
    share = 100 * number / total
    return f"{share:.3g} %" if number in (0, total) or 0.1 < share < 99.9 else f"{share:.6g} %"


def _amount(size: float) -> str:
    power = min(3, int(math.log10(max(size, 1))) // 3)
    return f"{size / 1000**power:.3g} {('bytes', 'kB', 'MB', 'GB')[power]}"
