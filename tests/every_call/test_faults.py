"""Around every call of the table: no memory, floating-point errors and modes, threads."""

import ctypes
import gc
import inspect
import subprocess
import sys
import threading
import time
import types
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import calls
import flat
import numpy as np
import pytest
from faults import FORMS, allocations, outcome
from in_turn import in_turn
from kinds import untouched
from oracles import normal
from processes import output_of
from scipy.sparse.linalg import LinearOperator
from threadpoolctl import threadpool_limits

from spcacore.linalg import eigen as _eigen
from spcacore.linalg.eigen import interruptible
from spcacore.linalg.threads import Stopped, in_threads
from spcacore.solvers import exact, solution

pytestmark = pytest.mark.usefixtures("few_starts")

FEW = ["f64", "csr f32"]  # forms that share the least code


def every(forms=FORMS, few=FEW, heavy=()):
    """Every call in every form; by default in one of the few, in turn, and heavy functions in none.

    Not of sparse data that the call itself slices: SciPy crashes where memory ends in its slices.
    """
    out = []
    for i, call in enumerate(calls.CALLS):
        for form in forms:
            sliced = call.function.startswith(("sparse_cca", "sparse_kmeans"))
            if "csr" in form and sliced:
                continue
            chosen = few[0 if sliced else i % len(few)]
            often = form == chosen and call.function not in heavy
            marks = [] if often else pytest.mark.slow
            out.append(pytest.param(call, form, id=f"{call}-{form}", marks=marks))
    return out


# ---- allocations --------------------------------------------------------------------------------------


def refuse_in_turn(call, form, most, lasting=False):
    """The i-th allocation of a call refused, or all from it on, for i = 0, 1, ... until the call answers.

    No more than `most` of them: the first half one by one, the others spread over the rest.
    """
    X = FORMS[form](call)
    with allocations() as memory, untouched(X):
        expected = outcome(call, X)
        gc.collect()  # what the calls so far have left in circles
        gc.disable()
        live = memory.live
        with memory.refusing(-1, -1):
            assert outcome(call, X) == expected
        assert memory.live == live  # which a circle would keep until garbage is collected
        gc.enable()
        points = memory.asked
        spread = np.linspace(0, max(points - 1, 0), most - most // 2, dtype=int).tolist()
        tried = range(points) if points <= most else sorted({*range(most // 2), *spread})
        for i in tried:
            live = memory.live
            with pytest.raises(MemoryError) as caught, memory.refusing(i, 2**40 if lasting else i + 1):
                outcome(call, X)
            assert memory.refused > 0
            in_scipy = any("scipy" in str(entry.path) for entry in caught.traceback)
            del caught
            if memory.live != live:
                gc.collect()
            assert memory.live == live or in_scipy  # whose wrappers of LAPACK lose an array there
        with memory.refusing(points, 2**40):
            assert outcome(call, X) == expected
        assert memory.refused == 0
    return points


def in_thread(run, *args, **options):
    """The handler of NumPy belongs to a thread; in one that is not the first, LAPACK is called directly."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(run, *args, **options).result()


@pytest.mark.share(16)
@pytest.mark.parametrize(("call", "form"), every(heavy=("refine", "spca")))
def test_no_memory(call, form):
    in_thread(refuse_in_turn, call, form, 5)


@pytest.mark.slow
@pytest.mark.parametrize("lasting", [False, True], ids=["one", "all that follow"])
@pytest.mark.parametrize(("call", "form"), every())
def test_no_memory_at_any_point(call, form, lasting):
    most = 20 if call.function == "refine" or form not in FEW else 60 if lasting else 250
    points = in_thread(refuse_in_turn, call, form, most, lasting)
    print(f"no memory: {call}, {form}: {points} allocations, {min(points, most)} refused")


def test_no_memory_in_the_thread_of_lapack():
    def fail():
        raise MemoryError("mine")

    before = set(threading.enumerate())
    with pytest.raises(MemoryError, match="mine"):
        _eigen.interruptible(fail)
    assert not set(threading.enumerate()) - before


# ---- the floating-point unit ----------------------------------------------------------------------------


def modes():
    """Rounding, traps, and whether subnormal numbers are read and written."""
    c = ctypes.CDLL(None)
    traps = c.fegetexcept() if hasattr(c, "fegetexcept") else 0
    out = [c.fegetround() if hasattr(c, "fegetround") else 0, traps]
    for dtype in (np.float32, np.float64):
        tiny, one = np.finfo(dtype).smallest_subnormal, np.ones(9, dtype)
        small = np.full(9, tiny) * np.arange(9, dtype=dtype)
        out += [(small * one).tobytes(), (np.finfo(dtype).tiny * one / 2).tobytes()]
        out += [(s * one + s * np.finfo(dtype).eps / 4).tobytes() for s in (-1, 1)]
        out += [(s * one - s * np.finfo(dtype).eps / 8).tobytes() for s in (-1, 1)]
    return out


def raise_no_flag(call, X):
    """No operation of NumPy would raise, were all flags errors; the modes stay."""
    before, old = modes(), np.geterr()
    with untouched(X):
        expected = outcome(call, X)
        with np.errstate(all="raise"):
            assert outcome(call, X) == expected
    assert modes() == before
    assert np.geterr() == old


@pytest.mark.share(12)
@pytest.mark.parametrize(("call", "form"), every())
def test_floating_point(call, form):
    raise_no_flag(call, FORMS[form](call))


@pytest.mark.share(12)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of variances beyond the range
@pytest.mark.parametrize(("call", "end"), in_turn(calls.CALLS, [("f64", -1060), ("f64", 900), ("f32", -140)]))
def test_floating_point_at_the_ends_of_the_range(call, end):
    form, exponent = end
    if call.takes == "covariance":
        exponent //= 2
    raise_no_flag(call, np.ldexp(FORMS[form](call), exponent))


IMPORT = """
import ctypes, numpy as np
{modes}
before, errors = modes(), np.geterr()
import spcacore, spcacore._core
assert modes() == before and np.geterr() == errors
"""


def test_import_keeps_the_floating_point_modes(tmp_path):
    code = IMPORT.format(modes=inspect.getsource(modes))
    output_of(code, cwd=tmp_path)


# ---- limits of time -------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [120, pytest.param(3000, marks=pytest.mark.slow)])
def test_time_limit(p, monkeypatch):
    """Kept at the start of the search and in the tree: what comes after it is short beside the first node."""
    for module in (exact, solution):
        monkeypatch.setattr(module, "time", types.SimpleNamespace(monotonic=time.process_time))
    Z = normal(0, p, p)
    A = Z @ Z.T

    def search(**limit):
        began = time.process_time()
        with threadpool_limits(1):
            x = flat.branch_and_bound(A, 20, kind="covariance", **limit)
        return x, time.process_time() - began

    first = min(search(node_limit=1)[1] for _ in range(2))
    for share in (0.75, 2):
        x, taken = search(time_limit=share * first)
        print(f"time limit, p = {p}: {share * first:.3f} s, and {taken - share * first:.3f} s more")
        assert share * first <= taken < (share + 0.5) * first
        assert not x.converged
        assert x.value <= x.upper_bound


# ---- threads --------------------------------------------------------------------------------------------


OFTEN = (
    "sparse_pca",
    "tpower",
    "pmd",
    "dspca",
    "sca",
    "ppca",
    "sparse_cca",
    "sparse_eigen",
    "varimax",
    "l1_threshold",
)
# What a function keeps of another call shows in distinct inputs; that the input stays, other tests check too.
SEVERAL = [
    pytest.param(
        call, form, *often, shared, id=f"{call}-{form}-{often}-{'shared' if shared else 'distinct'}",
        marks=[pytest.mark.slow] * (slow or (shared and call.name not in OFTEN)),
    )
    for call in calls.CALLS
    for shared in (True, False)
    for form, often, slow in (
        ("f64", (4, 1), call.function == "refine"), ("csr f32", (8, 3), call.name not in OFTEN[:3]),
        ("operator", (8, 3), call.name not in OFTEN[:3]), ("f64", (8, 100), True),
    )
    if often[1] == 1 or call.name in OFTEN
]  # fmt: skip


@pytest.mark.share(32)
@pytest.mark.parametrize(("call", "form", "threads", "times", "shared"), SEVERAL)
def test_threads(call, form, threads, times, shared):
    """At the same time as in turn, to the bit."""
    first = FORMS[form](call)
    inputs = [first if shared else first * (1 + i / 8) for i in range(threads)]
    start = threading.Barrier(threads)

    def run(i):
        start.wait(60)
        return {str(outcome(call, inputs[i])) for _ in range(times)}

    with threadpool_limits(1), untouched(*inputs):
        expected = [outcome(call, X) for X in (inputs[:1] * threads if shared else inputs)]
        with ThreadPoolExecutor(threads) as pool:
            for found, alone in zip(pool.map(run, range(threads)), expected, strict=True):
                assert found == {str(alone)}


# ---- exceptions -----------------------------------------------------------------------------------------


class Mine(BaseException):
    pass


def failing(X, error, after):
    """An operator whose product raises once it has given some."""
    left = iter(range(after))

    def matvec(v):
        if next(left, None) is None:
            raise error
        return X @ v

    return LinearOperator(X.shape, matvec=matvec, rmatvec=lambda f: X.T @ f, dtype=X.dtype)


@pytest.mark.share(3)
@pytest.mark.parametrize("after", [0, 3])
@pytest.mark.parametrize("kind", [KeyError, MemoryError, SystemExit, KeyboardInterrupt, GeneratorExit, Mine])
def test_exceptions_of_operators_arrive(kind, after):
    """The very object, from every call that multiplies by an operator."""
    same = {}
    for call in calls.CALLS:
        X, error = call.clean(), kind("mine")
        try:
            with untouched(X):
                call.run(failing(X, error, after))
        except (TypeError, ValueError):
            continue  # it takes no operators
        except BaseException as caught:
            same[call.function] = same.get(call.function, True) and caught is error
    assert {"sparse_pca", "tpower", "pmd", "scotlass", "branch_and_bound", "dspca", "refine"} <= same.keys()
    assert all(same.values()), same


# ---- processes ------------------------------------------------------------------------------------------

PROCESSES = """
import sys
sys.path.insert(0, {tests!r})
import multiprocessing, warnings
import numpy as np
import calls
from concurrent.futures import ProcessPoolExecutor
from threadpoolctl import threadpool_limits

CHOSEN = [i for i, call in enumerate(calls.CALLS) if i % 2 == 0 and call.function not in ("refine", "spca")]

def answer(i):
    call = calls.CALLS[i]
    return {{name: value.tobytes() for name, value in calls.numbers(call.run(call.clean())).items()}}

if __name__ == "__main__":
    warnings.simplefilter("ignore", DeprecationWarning)
    A = np.random.default_rng(0).standard_normal((900, 900))
    with threadpool_limits(2):
        A @ A, np.linalg.svd(A[:300, :300])  # the threads of BLAS are there
        here = [answer(i) for i in CHOSEN]
        {pool}
        assert [answer(i) for i in CHOSEN] == here
    print("same")
"""
POOLS = {
    "fork": """
        with multiprocessing.get_context("fork").Pool(4) as pool:
            assert pool.map_async(answer, CHOSEN).get(60) == here
        with ProcessPoolExecutor(2) as pool:
            assert list(pool.map(answer, CHOSEN, timeout=60)) == here""",
    "spawn": """
        with multiprocessing.get_context("spawn").Pool(2) as pool:
            assert pool.map_async(answer, CHOSEN).get(120) == here""",
    "loky": """
        from joblib import Parallel, delayed
        assert Parallel(2, backend="loky", timeout=120)(delayed(answer)(i) for i in CHOSEN) == here""",
}


@pytest.mark.slow
@pytest.mark.parametrize("pool", POOLS)
def test_processes(pool, tmp_path):
    """Half of the calls by other processes, after BLAS had threads in this one."""
    if pool == "loky":
        pytest.importorskip("joblib")
    script = tmp_path / "script.py"
    tests = str(Path(calls.__file__).parent)
    script.write_text(PROCESSES.format(tests=tests, pool=POOLS[pool].strip()))
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=240, cwd=tmp_path, check=False
    )
    assert done.stdout.strip() == "same", done.stderr


def test_lapack_is_called_where_it_is_and_its_errors_are_raised():
    def fail():
        raise np.linalg.LinAlgError("singular")

    with pytest.raises(np.linalg.LinAlgError, match="singular"):
        interruptible(fail)
    where = []
    thread = threading.Thread(target=lambda: where.append(interruptible(threading.current_thread)))
    thread.start()
    thread.join()
    assert where == [thread]


def test_the_first_error_ends_the_other_tasks():
    stopped, begun = [], threading.Event()

    def task(item, report):
        if item == "fail":
            begun.wait(10)
            raise KeyError(item)
        try:
            while True:
                begun.set()
                report()
        except Stopped:
            stopped.append(item)
            raise

    with pytest.raises(KeyError, match="fail"):
        in_threads(task, ["go on", "fail"], 2)
    assert stopped == ["go on"]
