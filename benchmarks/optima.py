"""How near each search comes to the best there is, on 200 small matrices of which all supports are tried.

python benchmarks/optima.py --write: the table of docs/developer/reliability.md. The matrices are those of
tests/solvers/test_oracle.py, which needs pytest. Shares are rounded down.
"""

import math
import sys

import numpy as np
import pages

SEEDS = range(25)


def shares():
    """Of the optimum, by search: an array over the matrices."""
    from test_oracle import FAMILIES, attained

    found = [attained(family, seed) for family in FAMILIES for seed in SEEDS]
    return {name: np.array([f[name] for f in found]) for name in found[0]}


def table():
    lines = ["| search | at least 95 % of the optimum | lowest |", "| --- | ---: | ---: |"]
    rows = [(np.mean(share >= 0.95), share.min(), name) for name, share in shares().items()]
    for near, lowest, name in sorted(rows, reverse=True):
        method, _, rest = name.partition(", ")
        label = f"`{method}`" + (f", {rest}" if rest else "")
        lines.append(f"| {label} | {down(near):.0%} | {down(lowest):.2f} |".replace("%", " %"))
    return "\n".join(lines)


def down(share):
    return math.floor(100 * share + 1e-6) / 100


def main():
    text = table()
    print(text)
    if "--write" in sys.argv:
        pages.rewrite("developer/reliability.md", "optima", text)


if __name__ == "__main__":
    main()
