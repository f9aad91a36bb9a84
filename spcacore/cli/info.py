"""`spcacore info`: what a user should know of a file before fitting; the same facts as text and as JSON."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from typing import Any

import numpy as np
import scipy.sparse

from .. import _core
from .._limits import INFO_ENTRIES, INFO_NAMES, INFO_VARIANCE_RATIO
from .._rendering import printable, significant
from ..linalg.threads import get_num_threads
from .reading import places_in, read, symmetric
from .report import print_json
from .source import Arguments, Table, UserError


def run(args: Arguments) -> None:
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
    return facts | {"notes": [*args.notes, *_advice(facts)]}


def facts_of(table: Table) -> dict[str, Any]:
    X, names = table.matrix, table.variables()
    n, p = X.shape
    sparse, as_covariance = X.format if scipy.sparse.issparse(X) else None, symmetric(X)
    entries, columns = (X.data, X.tocsc()) if sparse else (X, X)
    parts, step = [], max(1, INFO_ENTRIES // n)
    for start in range(0, p, step):
        block = columns[:, start : start + step]
        with np.errstate(all="ignore"):
            known = np.ma.masked_invalid(np.asarray(block.toarray() if sparse else block, np.float64))
            moments = known.count(0), known.min(0), known.max(0), known.var(0, ddof=1)
            parts.append(np.ma.stack(moments).filled(np.nan))
    count, low, high, variance = np.concatenate(parts, axis=1)
    constant = (count > 0) & (low == high)
    sizes = variance[(count > 1) & ~constant & np.isfinite(variance)]
    bad = min(places_in(X, lambda x: ~np.isfinite(x)).tolist(), default=None)
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


def _advice(facts: dict[str, Any]) -> list[str]:
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
