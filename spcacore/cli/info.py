"""What `spcacore info` prints of a file: what a user should know before fitting."""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from typing import Any

import numpy as np
import scipy.sparse

from .. import _core
from .._limits import INFO_ENTRIES, INFO_NAMES, INFO_VARIANCE_RATIO
from .._messages import counted
from .._rendering import printable, significant
from ..linalg.threads import get_num_threads
from .reading import places_in, read, symmetric
from .report import print_json
from .table import Arguments, Table, UserError

__all__ = ["facts_of", "run"]


def run(args: Arguments) -> None:
    if bool(args.build) == (args.file is not None):
        raise UserError("info needs either FILE or --build; see spcacore info --help")
    if args.build:
        facts, table = _build(), None
    else:
        table = read(args)
        size = None if args.source.content is not None else os.path.getsize(args.file)
        facts = {
            "file": args.file,
            "format": args.source.kind.lstrip("."),
            "contents": table.contents or None,
        }
        facts |= {"bytes_on_disk": size, "orientation": args.orientation, **facts_of(table.matrix)}
        facts |= {"names": table.names and table.variables(), "notes": args.notes}
        facts["sample_names"] = table.row_names and table.samples()
    if args.json:
        print_json({"command": "info", **facts})
        return
    if table is not None:
        on_disk = f", {_amount(facts['bytes_on_disk'])}" if facts["bytes_on_disk"] else ""
        print(f"{args.source}: {facts['format']}{on_disk}\n")
    rows = {"spcacore": version("spcacore"), **facts} if table is None else _rows(facts, table)
    width = max(len(title) for title, text in rows.items() if text)
    lines = [f"  {title.ljust(width)}  {text}" for title, text in rows.items() if text]
    advice = [] if table is None else [*_advice(facts), *(f"Note: {note}." for note in args.notes)]
    print("\n".join([*lines, *[""] * bool(advice), *advice]))


def _build() -> dict[str, Any]:
    """What decides how fast the package is here, and the last bits of its numbers."""
    blas = scipy.show_config(mode="dicts").get("Build Dependencies", {}).get("blas", {})
    return {
        "python": platform.python_version(), "numpy": np.__version__, "scipy": scipy.__version__,
        "blas": f"{blas.get('name')} {blas.get('version')}", "threads": get_num_threads(),
        "clone": _core.clone(), "clones": list(_core.clones()),
    }  # fmt: skip


# ---- numbers ----------------------------------------------------------------------------------------


def facts_of(X: Any) -> dict[str, Any]:
    n, p = X.shape
    sparse, as_covariance = X.format if scipy.sparse.issparse(X) else None, symmetric(X)
    entries, columns = (X.data, X.tocsc()) if sparse else (X, X)
    parts, step = [], max(1, INFO_ENTRIES // n)
    for start in range(0, p, step):
        block = columns[:, start : start + step]
        block = np.asarray(block.toarray() if sparse else block, np.float64)
        with np.errstate(all="ignore"):
            known = np.ma.masked_invalid(block)
            moments = known.count(0), known.min(0), known.max(0), known.var(0, ddof=1)
            parts.append(np.ma.stack(moments).filled(np.nan))
    count, low, high, variance = np.concatenate(parts, axis=1)
    constant = (count > 0) & (low == high)
    sizes = variance[(count > 1) & ~constant & np.isfinite(variance)]
    return {
        "samples": n, "variables": p, "dtype": str(X.dtype), "sparse": sparse,
        "bytes_in_memory": entries.nbytes + (X.indices.nbytes + X.indptr.nbytes if sparse else 0),
        "nonzeros": int(np.count_nonzero(entries)), "missing": np.isnan(entries).sum(),
        "infinite": np.isinf(entries).sum(),
        "first_not_finite": min(places_in(X, lambda x: ~np.isfinite(x)).tolist(), default=None),
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
        "numbers": f"{facts['dtype']}, {facts['sparse'] or 'dense'}",
        "nonzero": _share(facts["nonzeros"], n * p),
        "in memory": _amount(facts["bytes_in_memory"]),
    }
    entries = counted(n * p, "entry")
    rows |= {
        what: f"{facts[what]} of {entries} ({_share(facts[what], n * p)})" if facts[what] else "none"
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
