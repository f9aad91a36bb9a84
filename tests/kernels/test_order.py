"""The order in which loops over X add up: one, whichever clone of the kernels runs, and however many threads.

It is read off a loop by swamping (FPRev, USENIX ATC 2025): of ones, a huge number and its negative, those
ones are lost that are added to the huge number before its negative is. So the sum says how many entries
stand below the least node of the tree of additions that has both; many such pairs tell one tree from another.
"""

import functools
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from spcacore import _core, get_num_threads, set_num_threads

HUGE = 2.0**80  # its last place is above any sum of ones, in single precision too
N, PAIRS = 4500, 72  # observations of several blocks; of more than four megabytes, which threads share
MOST = 17  # vectors that a block is multiplied by
# In these a product and its sum are rounded together where the processor can: other bits, in the same order
FUSED = {"product", "product, few", "gram, C", "gram, F", "gram, csr", "gram, csc", "scores, C"}


def pairs():
    """Neighbors, the ends of vectors and blocks of all lengths, and any."""
    rng = np.random.default_rng(0)
    near = [(i, i + 2**e) for e in range(12) for i in (0, 1, 2**e, 3 * 2**e - 1) if i + 2**e < N]
    some = [tuple(rng.choice(N, 2, replace=False)) for _ in range(PAIRS - len(near))]
    return np.array(near + some)


def swamped(dtype, density):
    """Rows of ones, and zeros, with a huge number and its negative in each."""
    rng = np.random.default_rng(1)
    T = (rng.random((PAIRS, N)) < density).astype(dtype)
    rows, (i, j) = np.arange(PAIRS), pairs().T
    T[rows, i], T[rows, j] = HUGE, -HUGE
    return T


@functools.cache
def factors(what, dtype, density):
    """Rows to be added up, and columns that they are multiplied by."""
    if what == "order":
        return swamped(dtype, density), np.ones((N, MOST), dtype)
    rng = np.random.default_rng(2)
    T = rng.standard_normal((PAIRS, N)) * (rng.random((PAIRS, N)) < density)
    return T.astype(dtype), rng.standard_normal((N, MOST)).astype(dtype)


def threads_for(what, dtype, density):
    """Less than four megabytes are not shared."""
    return (1, 2, 3, 8) if (what, dtype, density) == ("order", "float64", 1) else (1, 8)


def operator(X, kind):
    return _core.operator(np.array(X, order=kind) if kind in "CF" else sp.csr_array(X).asformat(kind))


# Each is made ready once, and then called with any number of threads.


def product(T, W, count):
    B, out = np.ascontiguousarray(W[:, :count].T), np.full((PAIRS, count), np.nan, T.dtype)
    return lambda: _core.matrix_product(T, B, 1.0, out) or out.copy()


def gram(T, W, kind):
    """Of each row, as a column of data, with three columns of W."""
    op = operator(np.vstack([T, W[:, :3].T]).T, kind)
    index = np.roll(np.arange(PAIRS + 3), 3)
    return lambda: op.gram(index, None, 3)[:, 3:].T


def scores(T, W, order):
    X, zeros, V = np.array(T, order=order), np.zeros(N, T.dtype), W[:, :5].copy()
    out = np.full((PAIRS, 5), np.nan, T.dtype)
    return lambda: _core.scores(X, None, zeros, V, out) or out.copy()


def means(T, W, order):
    """Of columns that begin with 0, about which deviations are taken."""
    X = np.array(np.vstack([np.zeros((1, PAIRS), T.dtype), T.T]), order=order)
    return lambda: _core.dense_statistics(X, True)[0][0] * (N + 1)


def block(T, W, kind, back):
    """Of one vector, of a few and of many."""
    op = operator(T.T if back else T, kind)
    times = op.backward_block if back else op.forward_block
    return lambda: np.hstack([times(W[:, :count]) for count in (1, 3, MOST)])


SUMS = {"product": (product, MOST), "product, few": (product, 3)}
SUMS |= {f"gram, {kind}": (gram, kind) for kind in ("C", "F", "csr", "csc")}
SUMS |= {f"scores, {order}": (scores, order) for order in "CF"}
SUMS |= {f"means, {order}": (means, order) for order in "CF"}
SUMS |= {
    f"{'back' if back else 'for'}ward, {kind}": (block, kind, back)
    for kind in ("C", "F", "csr", "csc") for back in (False, True)
}  # fmt: skip
CASES = [
    (name, dtype, density)
    for name in SUMS for dtype in ("float64", "float32")
    for density in ((1.0, 0.2) if "cs" in name else (1.0,))
]  # fmt: skip


def main(path):
    """What each of these sums comes to, by 1, 2, 3 and 8 threads."""
    out = {}
    for name, *case in CASES:
        function, *arguments = SUMS[name]
        for what in ("order", "bits"):
            ready = function(*factors(what, *case), *arguments)
            for threads in threads_for(what, *case):
                set_num_threads(threads)
                out["/".join(map(str, (what, name, *case, threads)))] = ready()
    np.savez(path, **out)


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """All of it, of each clone that the processor can run."""
    folder, results = tmp_path_factory.mktemp("order"), {}
    for clone in _core.clones():
        path = folder / f"{clone}.npz"
        if clone == _core.clone():
            before = get_num_threads()
            main(path)
            set_num_threads(before)
        else:
            run = "from kernels import test_order; test_order.main(sys.argv[2])"
            code = f"import sys; sys.path.insert(0, sys.argv[1]); {run}"
            command = [sys.executable, "-P", "-c", code, str(Path(__file__).parents[1]), str(path)]
            subprocess.run(command, env={**os.environ, "SPCACORE_CLONE": clone}, check=True)
        with np.load(path) as file:
            results[clone] = dict(file)
    return results


def same(found, what, case, clones):
    names = ["/".join(map(str, (what, *case, threads))) for threads in threads_for(what, *case[1:])]
    values = [found[clone][name] for clone in clones for name in names]
    return len({v.tobytes() for v in values}) == 1


def test_additions_have_one_order_and_sums_the_same_bits(found):
    """With every clone; where products are fused with their sums, with all that have the instruction."""
    fused = [clone for clone in found if clone != "generic"]
    for case in CASES:
        order = found["generic"]["/".join(map(str, ("order", *case, 1)))].reshape(PAIRS, -1)
        if "means" not in case[0]:  # those of blocks are merged by their weights, so that ones are no counts
            assert np.isin(order, np.arange(N - 1)).all(), case
        assert len(np.unique(order)) > 5, case  # so that it says something
        assert same(found, "order", case, found), case
        groups = [["generic"], fused] if case[0] in FUSED else [[*found]]
        assert all(same(found, "bits", case, clones) for clones in groups if clones), case
