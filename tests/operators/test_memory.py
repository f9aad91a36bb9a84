"""Memory: the matrix is neither copied nor indexed with 32 bits.

Each case runs in a process of its own, with the resident size before the call as the base line. What glibc
keeps of memory that is freed does not count; what circles keep until garbage is collected does.
"""

import io
import itertools
import json
import math
import os
import resource
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from in_turn import each_order
from numpy.testing import assert_allclose
from processes import output_of

import spcacore
from spcacore import (
    deflate,
    gpower,
    greedy,
    pmd,
    refine,
    renormalize,
    scotlass,
    sparse_pca,
    tpower,
)
from spcacore.operators import screening as _screening

SCRIPT = """
import ctypes, gc, json, sys
import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg, scipy.linalg
from spcacore import deflate, explained_variance, renormalize, sparse_pca
from spcacore import tpower

def status(field):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))

def bytes_of(X):
    return X.nbytes if isinstance(X, np.ndarray) else X.data.nbytes + X.indices.nbytes + X.indptr.nbytes

small = np.random.default_rng(0).standard_normal((40, 30))
r = sparse_pca(small, 2, cardinality=3)  # libraries are loaded, BLAS has its buffers
tpower(small, 3), explained_variance(small, r.loadings), renormalize(small, r.loadings), r.transform(small)
gc.collect(), gc.disable()
getattr(ctypes.CDLL(None), "mallopt", max)(-3, 1 << 20)  # M_MMAP_THRESHOLD, which else follows what is freed
rng = np.random.default_rng(0)
{setup}
base = status("VmRSS")
with open("/proc/self/clear_refs", "w") as reset:
    reset.write("5")
{call}
print(json.dumps([status("VmHWM") - base, bytes_of(X), status("VmRSS") - base]))
"""

DENSE = "X = rng.standard_normal(({n}, {p}), np.{dtype}); X[:, :5] *= 3"
FORTRAN = "X = rng.standard_normal(({p}, {n}), np.{dtype}).T; X[:, :5] *= 3"
SPARSE = """
n, p, c = 2000, 50000, 5000
columns = 10 * np.arange(c, dtype=np.int32) + np.arange(n, dtype=np.int32)[:, None] % 10
rows = np.arange(0, n * c + 1, c, dtype=np.int32)
X = sp.csr_array((rng.standard_normal(n * c), columns.ravel(), rows), (n, p)).to{0}()
del columns, rows
"""
SETUPS = {
    "C": DENSE.format(n=500, p=50000, dtype="float64"),
    "F": FORTRAN.format(n=500, p=50000, dtype="float64"),
    "float32": DENSE.format(n=500, p=50000, dtype="float32"),
    "read-only F": FORTRAN.format(n=500, p=50000, dtype="float32") + "; X.flags.writeable = False",
    "csr": SPARSE.format("csr"),
    "csc": SPARSE.format("csc"),
    "covariance": "X = np.full((4000, 4000), 1.0); X.flat[::4001] += np.arange(4000)",
}
CALLS = {
    "sparse_pca": "sparse_pca(X, 3, cardinality=50{kind})",
    "scaled": "sparse_pca(X, 3, cardinality=50, scale=True{kind})",
    "schur": "sparse_pca(X, 3, cardinality=50, deflation='schur'{kind})",
    "tpower": "tpower(X, 50{kind})",
    "explained_variance": "explained_variance(X, np.eye(X.shape[1], 3), 'adjusted'{kind})",
    "renormalize": "renormalize(X, np.tri(X.shape[1], 1, -X.shape[1] + 50){kind})",
}


def measure(setup, call, tmp_path, limit=600):
    return json.loads(output_of(SCRIPT.format(setup=setup, call=call), cwd=tmp_path, timeout=limit))


linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")


def cases():
    """All of them; by default those that differ most."""
    for call in CALLS:
        for setup in SETUPS:
            often = setup not in ("read-only F", "csc") and call == "sparse_pca"
            often = often or (call == "tpower" and setup in ("C", "csr"))
            slow = [] if often else [pytest.mark.slow]
            yield pytest.param(call, setup, marks=slow)


@pytest.mark.share(12)
@linux
@pytest.mark.parametrize(("call", "setup"), list(cases()))
def test_matrix_is_not_copied(call, setup, tmp_path):
    """The peak above the matrix stays below a fifth of it, of float32 with its quantized copy two fifths.

    Of CSR there is a copy by columns, with what bounds of earlier products need; many starts on a covariance
    race on a copy in single precision, and on data between 3072 variables: two such matrices, with what forms
    one.
    """
    kind = ", kind='covariance'" if setup == "covariance" else ""
    peak, size, left = measure(SETUPS[setup], CALLS[call].format(kind=kind), tmp_path)
    print(f"memory: {call} {setup}: {peak / 1e6:.1f} MB above {size / 1e6:.0f} MB, {left / 1e6:.1f} MB left")
    share = 1.7 if setup == "csr" and "explained" not in call and "renorm" not in call else 0.2
    share = 0.4 if "float32" in SETUPS[setup] or setup == "covariance" else share
    field = 3 * 4 * 3072**2 if call in ("sparse_pca", "scaled", "schur", "tpower") else 0
    assert peak < share * size + field
    assert left < 0.1 * size + 5e6  # the allocator keeps some


@pytest.mark.slow
@linux
@pytest.mark.parametrize(
    "setup", ["csr", *(pytest.param(s, marks=pytest.mark.slow) for s in ("C", "F", "csc"))]
)
def test_transform_copies_the_columns_in_use_alone(setup, tmp_path):
    """Scores need n x (columns in use) and the result."""
    made = SETUPS[setup] + "\nr = sparse_pca(X[:50], 3, cardinality=50)"
    peak, size, _ = measure(made, "r.transform(X)", tmp_path)
    print(f"memory: transform {setup}: {peak / 1e6:.1f} MB above {size / 1e6:.0f} MB")
    assert peak < 0.2 * size


@linux
def test_not_finite_is_found_without_a_mask_of_the_whole(tmp_path):
    call = """
X[400, 49000] = np.inf
try:
    tpower(X, 3)
except ValueError as error:
    assert "(400, 49000)" in str(error)
"""
    peak, size, _ = measure(SETUPS["C"], call, tmp_path)
    assert peak < 0.2 * size


# ---- more than 2^31 entries ------------------------------------------------------------------------------


def zeros(shape, order, dtype=np.float32):
    """Virtual memory alone: pages never written are all the same zero page."""
    try:
        return np.zeros(shape, dtype, order=order)
    except MemoryError:
        pytest.skip("the system does not overcommit memory")


@linux
def test_long_rows():
    """A leading dimension beyond what BLAS counts in, by a view of few columns of a huge row-major array."""
    n, p, wide = 2, 40, 2**31 + 64
    X = zeros((n, wide), "C")[:, -p:]
    X[:, -1] = [1, 4]
    X[:, -3] = [2, 8]
    x = tpower(X, 2)
    assert np.flatnonzero(x.loading).tolist() == [p - 3, p - 1]
    assert x.value == pytest.approx(5 * 4.5, rel=1e-5)


@linux
def test_long_columns():
    """The same in Fortran order."""
    n, tall = 40, 2**31 + 64
    X = zeros((tall, 2), "F")[-n:]
    X[-1] = [3, 4]
    x = tpower(X, 2)
    assert_allclose(x.loading, [0.6, 0.8], rtol=1e-5)
    assert x.value == pytest.approx(25 / n, rel=1e-5)


FAR = {  # what finds, or keeps, the last two columns
    "tpower, references": lambda X, v: (
        tpower(X, 2, options=spcacore.TPower(n_starts=1, screening="references")).loading
    ),
    "gpower": lambda X, v: (
        gpower(X, 0.5, options=spcacore.GPower(relative=True, n_starts=1, screening="none")).loading
    ),
    "pmd": lambda X, v: (
        pmd(X, 2**0.5, options=spcacore.PMD(n_starts=1, screening="none", renormalize=False)).loading
    ),
    "scotlass": lambda X, v: (
        scotlass(X, 2**0.5, options=spcacore.SCoTLASS(n_starts=1, renormalize=False)).loading
    ),
    "greedy": lambda X, v: greedy(X, 2, options=spcacore.Greedy(screening="none")).loading,
    "sparse_pca": lambda X, v: sparse_pca(
        X, 1, cardinality=2, method=spcacore.TPower(n_starts=1, screening="none")
    ).loadings[:, 0],
    "renormalize": lambda X, v: renormalize(X, v),
    "refine": lambda X, v: refine(X, v[:, None], cardinality=2)[:, 0],
    "deflate": lambda X, v: v + np.abs(deflate(X, v, kind="data", overwrite=True)[-2:]).sum(axis=0),
}
FAR_CASES = [
    pytest.param(*case, marks=[] if case == ("renormalize", "F", "f8") else [pytest.mark.slow])
    for case in itertools.product(FAR, "CF", ("f4", "f8"))
    if case[:2] != ("deflate", "C")  # which writes to every row, hence to every huge page
]


@pytest.mark.share(4)
@linux
@pytest.mark.parametrize(("name", "order", "dtype"), FAR_CASES)
def test_every_reader_of_more_entries_than_32_bits_count(name, order, dtype):
    n, p = 46400, 46500
    X = zeros((n, p), order, dtype)
    X[-1, -2:], X[-2, -2:] = 3, -3
    X[0, 0] = 1
    v = np.zeros(p, dtype)
    v[-2:] = 0.5**0.5
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    out = FAR[name](X, v)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    assert_allclose(out, v, atol=1e-5)
    assert grown < 0.5e9


def overcommits():
    try:
        with open("/proc/sys/vm/overcommit_memory") as file:
            return file.read().strip() == "1"
    except OSError:
        return True


@pytest.mark.skipif(overcommits(), reason="the system may promise memory that it has not")
@pytest.mark.parametrize("call", [tpower, sparse_pca])
@pytest.mark.parametrize("fmt", ["csr", "csc"])
def test_lengths_for_which_no_vector_fits(fmt, call):
    """2^38 columns (CSR) or rows (CSC) of few entries: vectors of that length are needed, and refused."""
    last = 2**38
    entries = np.array([1.0, -1.0, 2.0]), np.array([last - 3, last - 1, last - 1]), np.array([0, 1, 2, 3])
    shape = (3, last) if fmt == "csr" else (last, 3)
    X = (sp.csr_array if fmt == "csr" else sp.csc_array)(entries, shape=shape)
    with pytest.raises(MemoryError):
        call(X, 1) if call is tpower else call(X, 1, cardinality=1)


# ---- what screening may take --------------------------------------------------------------------------

LIMITED = """
import json, resource, sys
import numpy as np
import spcacore
from spcacore import TPower, _core, sparse_pca

path, order, n, p = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
large = np.ones((600, 600))
large @ large, large[0] @ large  # products of small matrices take no buffer of BLAS
small = np.random.default_rng(0).standard_normal((80, 60))
sparse_pca(small, 2, 3, method=TPower(screening="both"))  # libraries are loaded, BLAS has its buffers
with open("/proc/self/status") as lines:
    used = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmData"))
limit = used + n * p * 8 // 4
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
try:
    np.ones(n * p * 8 // 3, np.int8)
except MemoryError:
    pass
else:
    raise SystemExit("the limit does not hold")
X = np.memmap(path, np.float64, "r", shape=(n, p), order=order)
r = sparse_pca(X, 2, cardinality=20, method=TPower(screening="both", n_starts=1))
print(json.dumps([r.loadings.tobytes().hex(), r.n_iter.tolist(), r.screening.mode]))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_DATA counts private mappings on Linux")
@each_order
def test_memory_map_in_little_memory(order, tmp_path, rng):
    n, p = 500, 50_000  # 200 MB, of which a quarter may be used
    X = np.empty((n, p), order=order)
    for block in np.array_split(np.arange(p), 50):
        X[:, block] = rng.standard_normal((n, len(block)))
    X[:, 100:140] += rng.standard_normal((n, 1))
    path = tmp_path / "x"
    X.ravel(order="K").tofile(path)
    loadings, n_iter, mode = json.loads(output_of(LIMITED, path, order, n, p, cwd=tmp_path))
    plain = sparse_pca(X, 2, cardinality=20, method=spcacore.TPower(screening="none", n_starts=1))
    assert bytes.fromhex(loadings) == plain.loadings.tobytes()
    assert n_iter == plain.n_iter.tolist()
    assert mode == "both"


def test_a_shadow_that_does_not_fit_is_done_without(monkeypatch):
    monkeypatch.setattr(_screening, "available_memory", lambda: math.inf)
    plan = _screening.plan(np.broadcast_to(0.0, (4096, 2**45)), "auto")
    assert (plan.mode, plan.shadow) == ("references", None)


def test_memory_is_what_the_system_says(monkeypatch):
    """The kernel's own figure, or else free pages, or else no limit."""
    whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert 0 < _screening.available_memory() <= whole
    for text in ("MemTotal: 9 kB\nMemAvailable: 7 kB\n", "MemTotal: 9 kB\n", "MemAvailable: kB\n", None):
        sizes = {"SC_AVPHYS_PAGES": 3, "SC_PAGE_SIZE": 5}

        def read(*_, text=text, **__):
            if text is None:
                raise FileNotFoundError
            return io.StringIO(text)

        monkeypatch.setattr(_screening, "open", read, raising=False)
        monkeypatch.setattr(os, "sysconf", sizes.__getitem__)
        assert _screening.available_memory() == (7 * 1024 if text and "7" in text else 15)
    monkeypatch.delattr(os, "sysconf")
    assert _screening.available_memory() == math.inf
