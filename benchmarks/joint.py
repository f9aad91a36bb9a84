"""How near the best `refine=True` comes on many matrices, half of which nobody tuned on; a part of a page.

python benchmarks/joint.py CACHE -o docs/measured/quality.md. One thread; CPU times. CACHE: the folder of
`real_data.py`. The best known are in `joint_best.json`, from this search and others that run long; what is
better is written there.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import json
import time
import warnings
from pathlib import Path

import joint_problems
import numpy as np
import pages

import spcacore

BEST = Path(__file__).with_name("joint_best.json")


def explained(A, V):
    Q = np.linalg.qr(V)[0]
    return float(np.trace(Q.T @ A @ Q))


def measured(problem, best):
    """Name, order, r, k, then how far below the best, in percent, and the seconds of each search."""
    A = problem.make()
    row = [problem.name, len(A), problem.r, problem.k]
    for refine in (False, True):
        begin = time.process_time()
        V = spcacore.sparse_pca(A, problem.r, problem.k, kind="covariance", refine=refine).loadings
        seconds, value = time.process_time() - begin, explained(A, V)
        best[problem.name] = max(best.get(problem.name, 0.0), value)
        row += [value, seconds]
    return row


def as_table(rows, best):
    lines = pages.head("matrix", "p", "r", "k", "best known", "default", "s", "refined", "s")
    short = []
    for name, *sizes, plain, first, refined, second in rows:
        below = [100 * (1 - value / best[name]) for value in (plain, refined)]
        short.append((below[1], second))
        cells = [*sizes, f"{best[name]:.6g}"]
        cells += [f"-{below[0]:.2f} %", f"{first:.2f}", f"-{below[1]:.2f} %", f"{second:.2f}"]
        lines.append(f"| {name} | " + " | ".join(map(str, cells)) + " |")
    below, seconds = np.array(short).T
    near, far = np.count_nonzero(below <= 0.2), np.count_nonzero(below <= 1)
    summary = (
        f"Refined, of {len(rows)} problems {near} are within .2 % of the best known, {far} within 1 %; "
        f"{below.mean():.2f} % below it in the mean, {below.max():.2f} % at most; "
        f"{seconds.mean():.2f} seconds in the mean, {seconds.max():.1f} at most."
    )
    return [summary, "", *lines]


def part(cache):
    best = json.loads(BEST.read_text()) if BEST.exists() else {}
    text = []
    for held_back, title in ((False, "Matrices that it was tuned on"), (True, "Matrices held back")):
        problems = [*joint_problems.made(), *joint_problems.real(cache)]
        rows = [measured(one, best) for one in problems if one.held_back == held_back]
        text += [f"### {title}", "", *as_table(rows, best), ""]
    BEST.write_text(json.dumps(dict(sorted(best.items())), indent=1) + "\n")
    return "\n".join(text)


if __name__ == "__main__":
    options = pages.parser(__doc__)
    options.add_argument("cache", type=Path)
    asked = options.parse_args()
    warnings.simplefilter("ignore", RuntimeWarning)
    found = part(asked.cache)
    if asked.output:
        pages.rewrite(str(asked.output.resolve().relative_to(pages.DOCS)), "joint", found)
    else:
        print(found)
