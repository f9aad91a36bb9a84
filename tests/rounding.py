"""How many digits each function keeps where the processor rounds otherwise, or X has other last bits.

As a program, it writes the table of docs/developer/reliability.md; test_rounding.py asks some of its rows.
"""

import contextlib
import ctypes
import math
import os
import sys
import warnings
from pathlib import Path

import numpy as np
from calls import CALLS, numbers

PAGE = Path(__file__).resolve().parents[1] / "docs" / "developer" / "reliability.md"
BEGIN, END = "<!-- digits -->\n", "<!-- end of digits -->"
MODES = {"up": 0x800, "down": 0x400, "to zero": 0xC00}  # of fesetround, on x86-64
HERE = sys.platform == "linux" and os.uname().machine == "x86_64"
PERTURBED = 2  # matrices
LOADINGS = "loadings", "loading", "loadings_x", "loadings_y", "weights", "rotation"
VALUES = (
    "explained_variance", "value", "values", "total_variance", "pve", "correlations", "strengths",
    "objective", "upper_bound", "noise_variance", "dissimilarity", "criterion", "gap",
)  # fmt: skip


@contextlib.contextmanager
def rounding(mode):
    """All arithmetic of this thread, and of those that work for it, is rounded so."""
    libm = ctypes.CDLL("libm.so.6")
    before = libm.fegetround()
    assert libm.fesetround(mode) == 0
    try:
        yield
    finally:
        libm.fesetround(before)


def answers(call):
    """By nearest rounding, and then in each other way."""
    X = call.clean()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield numbers(call.run(X))
        for mode in MODES.values():
            with rounding(mode):
                out = call.run(X)
            yield numbers(out)
        for seed in range(PERTURBED):
            bits = np.random.default_rng(seed).integers(-1, 2, X.shape)
            if call.takes in ("covariance", "metric"):
                bits = np.triu(bits) + np.triu(bits, 1).T
            yield numbers(call.run(X * (1 + bits * np.finfo(float).eps)))


def digits(out, expected):
    """How many leading ones the largest entries have in common."""
    size = np.abs(expected).max(initial=0)
    off = np.abs(out - expected).max(initial=0) / size if size > 0 and np.isfinite(size) else 0.0
    return 15 if off < 1e-15 else int(-math.log10(off)) if off < 1 else 0


def kept(call):
    """Digits of values and of loadings, or of all numbers, and whether the supports stay."""
    expected, *others = answers(call)
    named = {name: name.split(".")[-1] for name, a in expected.items() if a.dtype.kind == "f"}
    least = {}
    for title, words in (("values", VALUES), ("loadings", LOADINGS)):
        chosen = [name for name, last in named.items() if last in words]
        pairs = [(out[name], expected[name]) for out in others for name in chosen]
        least[title] = min((digits(a, b) if a.shape == b.shape else 0 for a, b in pairs), default=None)
    supports = [name for name in named if named[name] in LOADINGS[:4]]
    same = all(np.array_equal(out[name] != 0, expected[name] != 0) for out in others for name in supports)
    if least == {"values": None, "loadings": None}:
        pairs = [(out[name], expected[name]) for out in others for name in named]
        least["values"] = min(digits(a, b) for a, b in pairs)
    return least["values"], least["loadings"], same if supports else None


def table():
    """A row a function, the least of its calls."""
    rows = {}
    for call in CALLS:
        rows.setdefault(call.function, []).append(kept(call))
    lines = ["| function | digits of values | of loadings | supports |", "| --- | ---: | ---: | --- |"]
    for function, all_calls in sorted(rows.items()):
        values, loadings, same = (
            [one for one in column if one is not None] for column in zip(*all_calls, strict=True)
        )
        supports = "" if not same else "same" if all(same) else "other"
        cells = min(values, default=""), min(loadings, default=""), supports
        lines.append(f"| `{function}` | {' | '.join(map(str, cells))} |")
    return "\n".join(lines) + "\n"


def rows():
    """What the page says of each function."""
    told = PAGE.read_text(encoding="utf-8").split(BEGIN)[1].split(END)[0].splitlines()[2:]
    cells = ([cell.strip(" `") for cell in line.strip("|").split("|")] for line in told)
    return {name: (values, loadings, same) for name, values, loadings, same in cells}


if __name__ == "__main__":
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    PAGE.write_text(before + BEGIN + table() + END + rest.split(END)[1], encoding="utf-8")
