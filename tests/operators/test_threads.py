"""Threads of the loops over a matrix: how many there are, and that no bit depends on it."""

import ctypes
import functools
import os
import subprocess
import sys
import textwrap
import threading
import time
import types
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp
from calls import CALLS, numbers
from numpy.testing import assert_array_equal
from oracles import normal
from threadpoolctl import threadpool_limits

import spcacore
from spcacore import _core, get_num_threads, limit_threads, set_num_threads
from spcacore.linalg import threads
from spcacore.operators.inputs import as_problem
from spcacore.operators.transform import scores

pytestmark = pytest.mark.usefixtures("few_starts")


@pytest.fixture(autouse=True)
def as_before():
    before = get_num_threads()
    yield
    set_num_threads(before)


def large(n, p):
    """Entries enough for many parts of each loop; a few strong directions."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p))
    X[:, :30] += 3 * rng.standard_normal((n, 1))
    X[:, 30:60] += 2 * rng.standard_normal((n, 1))
    return X


WIDE, TALL = large(300, 4000), large(6000, 200)
SPARSE = WIDE * (np.abs(WIDE) > 0.7)
LONG, LOADINGS = large(20_000, 60), normal(4, 60, 18)
COUNTS = normal(1, 200, 1200)
ENTRIES = {  # of more than four megabytes each
    "wide, C": WIDE,
    "wide, F": np.asfortranarray(WIDE),
    "wide, float32": WIDE.astype(np.float32),
    "tall, C": TALL,
    "tall, F": np.asfortranarray(TALL),
    "csr": sp.csr_array(SPARSE),
    "csc": sp.csc_array(SPARSE),
    "csr, float32": sp.csr_array(SPARSE.astype(np.float32)),
}
MANY = (8, 64)  # threads
LARGE = {
    "sparse_pca": lambda X: spcacore.sparse_pca(X, 2, cardinality=20),
    "sparse_pca, plain": lambda X: spcacore.sparse_pca(
        X, 2, cardinality=20, method=spcacore.TPower(screening="none")
    ),
    "sparse_pca, schur": lambda X: spcacore.sparse_pca(X, 2, cardinality=20, deflation="schur"),
    "pmd": lambda X: spcacore.pmd(X, 4.0, options=spcacore.PMD(renormalize=False)),
    "gpower": lambda X: spcacore.gpower(X, 0.3, options=spcacore.GPower(relative=True)),
    "sca": lambda X: spcacore.sca(X, 5, l1_bound=20.0, tol=0.01),
    "spca": lambda X: spcacore.spca(X, 2, cardinality=20, tol=0.01),
    "explained_variance": lambda X: spcacore.explained_variance(X, np.eye(X.shape[1], 3), "adjusted"),
}
MORE = {
    "sparse_kmeans": lambda: spcacore.sparse_kmeans(COUNTS, 3, 4.0, n_init=2),
    "sparse_dissimilarity": lambda: spcacore.sparse_dissimilarity(COUNTS, 4.0),
    "sparse_dissimilarity, absolute": lambda: spcacore.sparse_dissimilarity(COUNTS, 4.0, "absolute"),
    "kernel_pca": lambda: spcacore.kernel_pca(TALL[:1200], 3),
    "covariance": lambda: spcacore.sparse_pca(np.cov(WIDE[:, :800].T), 2, cardinality=20, kind="covariance"),
    "varimax": lambda: spcacore.varimax(normal(2, 60_000, 8)),
    "scores, C": lambda: scores(LONG, LOADINGS, LONG[0], None),
    "scores, F": lambda: scores(np.asfortranarray(LONG), LOADINGS, LONG[0], None),
    "l1_threshold": lambda: spcacore.l1_threshold(normal(3, 600_000), 40.0),
}


def outcome(result):
    return {name: value.tobytes() for name, value in numbers(result).items()}


@functools.cache
def alone(name, entries=None):
    """What one thread computes."""
    set_num_threads(1)
    with threadpool_limits(1):
        return outcome(LARGE[name](ENTRIES[entries]) if entries else MORE[name]())


@pytest.mark.share(72)
@pytest.mark.parametrize("n_threads", [3, *(pytest.param(n, marks=pytest.mark.slow) for n in (2, *MANY))])
@pytest.mark.parametrize("entries", ENTRIES)
@pytest.mark.parametrize("name", LARGE)
def test_bits_of_large_calls(name, entries, n_threads):
    expected = alone(name, entries)
    with threadpool_limits(1):
        set_num_threads(n_threads)
        assert outcome(LARGE[name](ENTRIES[entries])) == expected


@pytest.mark.share(6)
@pytest.mark.parametrize("name", MORE)
def test_bits_of_other_loops(name):
    expected = alone(name)
    for n_threads in (2, 3, 8):
        with threadpool_limits(1):
            set_num_threads(n_threads)
            assert outcome(MORE[name]()) == expected, n_threads


@functools.cache
def called_alone(index):
    set_num_threads(1)
    with threadpool_limits(1):
        return outcome(CALLS[index].run(CALLS[index].clean()))


@pytest.mark.share(20)
@pytest.mark.parametrize(
    ("index", "n_threads"),
    [
        pytest.param(i, n, id=f"{n}-{call}", marks=[pytest.mark.slow] * (n in MANY))
        for i, call in enumerate(CALLS)
        for n in (2, 3, *MANY)
    ],
)
def test_bits_of_every_call(index, n_threads):
    """The inputs are small: `nox -s threads` runs this where loops are cut into tiny parts."""
    expected = called_alone(index)
    set_num_threads(n_threads)
    with threadpool_limits(1, user_api="blas"):
        assert outcome(CALLS[index].run(CALLS[index].clean())) == expected


GRAMS = {
    "matrix product": lambda: products_of(np.float64),
    "matrix product, float32": lambda: products_of(np.float32),
    "submatrix": lambda: as_problem(WIDE).operator.submatrix(np.arange(0, 4000, 11)),
    "outer": lambda: as_problem(WIDE).operator.outer(),
    "gram, C": lambda: as_problem(TALL).operator.gram(),
    "gram, F": lambda: as_problem(np.asfortranarray(TALL)).operator.gram(),
    "gram, float32": lambda: as_problem(TALL.astype(np.float32)).operator.gram(),
    "moments, C": lambda: np.vstack(_core.dense(TALL, False).moments()),
    "moments, F": lambda: np.vstack(_core.dense(np.asfortranarray(TALL), False).moments()),
    "moments, float32": lambda: np.vstack(_core.dense(TALL.astype(np.float32), False).moments()),
    "gram, cut by rows": lambda: as_problem(LONG).operator.gram(),
    "moments, cut by rows": lambda: np.vstack(_core.dense(LONG, False).moments()),
    "gram, csr": lambda: as_problem(sp.csr_array((TALL * (np.abs(TALL) > 1.2))[:3000])).operator.gram(),
    "gram, csr, dense columns": lambda: as_problem(
        sp.csr_array((TALL * (np.abs(TALL) > np.where(np.arange(TALL.shape[1]) % 5, 2.2, 0.5)))[:9000])
    ).operator.gram(),
    "gram, csc": lambda: as_problem(sp.csc_array((TALL * (np.abs(TALL) > 1.8))[:3000])).operator.gram(),
}


def products_of(dtype):
    """A A' and A B', as parts of a larger array."""
    A, B = WIDE[:290, :700].astype(dtype), WIDE[50:, 900:1600].astype(dtype)
    out = np.empty((290, 540), dtype)
    _core.matrix_product(A, None, 0.5, out[:, :290])
    _core.matrix_product(A, B, 0.5, out[:, 290:])
    return out


@pytest.mark.share(3)
@pytest.mark.parametrize("name", GRAMS)
def test_bits_of_gram_matrices(name):
    """Neither the threads of the loops nor those of BLAS change one."""
    results = []
    for blas, n_threads in ((1, 1), (2, 1), (1, 2), (2, 5)):
        with threadpool_limits(blas, user_api="blas"):
            set_num_threads(n_threads)
            results.append(GRAMS[name]())
    assert len({G.tobytes() for G in results}) == 1


def test_callers_at_the_same_time_have_the_bits_of_one():
    cases = [("sparse_pca", "wide, C"), ("sca", "csc")]
    expected = [alone(*case) for case in cases]
    with threadpool_limits(1), ThreadPoolExecutor(4) as pool:
        set_num_threads(3)
        outs = list(pool.map(lambda case: outcome(LARGE[case[0]](ENTRIES[case[1]])), 2 * cases))
    assert outs == 2 * expected


def test_a_callback_may_call():
    """In the middle of a loop, while the threads work on it."""
    inner = []

    def callback(progress):
        inner.append(spcacore.explained_variance(TALL, np.eye(200, 2)).tobytes())

    set_num_threads(2)
    spcacore.sparse_pca(WIDE, 2, cardinality=20, callback=callback)
    assert inner
    assert len(set(inner)) == 1


# ---- how many ------------------------------------------------------------------------------------------


def test_set_num_threads():
    for n_threads in (1, 2, 1024, np.int64(3)):
        set_num_threads(n_threads)
        assert get_num_threads() == n_threads
    for wrong, error in (
        (0, ValueError),
        (-1, ValueError),
        (1025, ValueError),
        (1.5, TypeError),
        ("2", TypeError),
    ):
        with pytest.raises(error, match="n_threads"):
            set_num_threads(wrong)
    assert get_num_threads() == 3


def test_limit_threads():
    """Of this thread alone, and until the statement ends."""
    set_num_threads(3)
    with ThreadPoolExecutor(1) as other, limit_threads(2):
        assert get_num_threads() == 2
        assert other.submit(get_num_threads).result() == 3
        with limit_threads(5):
            assert get_num_threads() == 5
        with threadpool_limits(1):
            assert other.submit(get_num_threads).result() == 1
        assert other.submit(get_num_threads).result() == 3
        assert get_num_threads() == 2
    with pytest.raises(KeyError), limit_threads(1):
        raise KeyError
    assert get_num_threads() == 3
    for wrong, error in ((0, ValueError), (1025, ValueError), (None, TypeError)):
        with pytest.raises(error, match="n_threads"), limit_threads(wrong):
            pass


def test_bits_inside_of_limit_threads():
    expected = alone("sparse_pca", "wide, F")
    set_num_threads(1)
    with threadpool_limits(1), limit_threads(4):
        assert outcome(LARGE["sparse_pca"](ENTRIES["wide, F"])) == expected


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, 6),
        ({"SPCACORE_NUM_THREADS": "3"}, 3),
        ({"SPCACORE_NUM_THREADS": "64"}, 64),
        ({"SPCACORE_NUM_THREADS": "5000"}, 1024),
        ({"SPCACORE_NUM_THREADS": ""}, 6),
        ({"OMP_NUM_THREADS": "2"}, 2),
        ({"OMP_NUM_THREADS": "20"}, 6),
        ({"OMP_NUM_THREADS": "4,2"}, 4),
        ({"OMP_NUM_THREADS": "0"}, 6),
        ({"OMP_NUM_THREADS": "many"}, 6),
        ({"SPCACORE_NUM_THREADS": "8", "OMP_NUM_THREADS": "2"}, 2),
    ],
    ids=str,
)
def test_default(monkeypatch, environment, expected):
    monkeypatch.setattr(threads, "available_cores", lambda: 6)
    for name in ("SPCACORE_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert threads.default_threads() == expected


@pytest.mark.parametrize("value", ["0", "-2", "two", "1.5"])
def test_a_variable_that_is_no_number(monkeypatch, value):
    monkeypatch.setenv("SPCACORE_NUM_THREADS", value)
    with pytest.raises(ValueError, match="SPCACORE_NUM_THREADS must be an integer of at least 1"):
        threads.default_threads()


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, 8),
        ({"/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/cpu.max": "max 100000\n"}, 8),
        ({"/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/cpu.max": "250000 100000\n"}, 3),
        ({"/proc/self/cgroup": "0::/a/b\n", "/sys/fs/cgroup/a/cpu.max": "200000 100000\n",
          "/sys/fs/cgroup/a/b/cpu.max": "max 100000\n"}, 2),
        ({"/proc/self/cgroup": "0::/a\n", "/sys/fs/cgroup/a/cpu.max": "5000 100000\n"}, 1),
        ({"/proc/self/cgroup": "4:memory:/m\n3:cpu,cpuacct:/d\n",
          "/sys/fs/cgroup/cpu/d/cpu.cfs_quota_us": "400000\n",
          "/sys/fs/cgroup/cpu/d/cpu.cfs_period_us": "100000\n"}, 4),
        ({"/proc/self/cgroup": "3:cpu:/d\n", "/sys/fs/cgroup/cpu/d/cpu.cfs_quota_us": "-1\n",
          "/sys/fs/cgroup/cpu/d/cpu.cfs_period_us": "100000\n"}, 8),
    ],
    ids=["none", "no limit", "root", "a group above", "less than one", "version 1", "version 1, none"],
)  # fmt: skip
def test_limits_of_control_groups(monkeypatch, files, expected):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    monkeypatch.setattr(threads, "_read", lambda path: files.get(path, ""))
    assert threads.available_cores() == expected
    assert threads.check_jobs(-1) == expected


def run(code, **environment):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True, text=True, timeout=120, check=False, env={**os.environ, **environment}, cwd="/",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.share(2)
@pytest.mark.parametrize("imports", ["spcacore, threadpoolctl", "threadpoolctl, spcacore"])
def test_threadpoolctl(imports):
    code = f"""
    import sys, {imports}
    from threadpoolctl import threadpool_info, threadpool_limits
    spcacore.set_num_threads(5)
    print([i["num_threads"] for i in threadpool_info() if i["user_api"] == "spcacore"])
    with threadpool_limits(1):
        print(spcacore.get_num_threads())
    with threadpool_limits({{"spcacore": 2}}):
        print(spcacore.get_num_threads())
    with threadpool_limits(1, user_api="blas"):
        print(spcacore.get_num_threads())
    print(any(type(f).__module__ == "spcacore.linalg.threads" for f in sys.meta_path))
    """
    assert run(code).split("\n") == ["[5]", "1", "2", "5", "False"]


@pytest.mark.share(2)
@pytest.mark.parametrize("first", ["spcacore.get_num_threads()", "import threadpoolctl"])
def test_a_threadpoolctl_that_knows_no_others(tmp_path, first):
    """Before 3.3 it had no `register`; Debian 13 has 3.1."""
    (tmp_path / "threadpoolctl.py").write_text("__version__ = '3.1.0'\n")
    code = f"""
    import sys, spcacore
    sys.path.insert(0, {str(tmp_path)!r})
    {first}
    import threadpoolctl
    spcacore.set_num_threads(3)
    print(threadpoolctl.__version__, [type(f).__name__ for f in sys.meta_path].count("_OnImport"))
    """
    assert run(code) == "3.1.0 0"


def test_a_library_of_the_same_name_is_left_alone(monkeypatch):
    monkeypatch.setattr(_core, "__file__", "/elsewhere/" + os.path.basename(_core.__file__))

    class LibController:
        def __init__(self, filepath):
            self.filepath, self.dynlib = filepath, self
            self._handle = 1
            self.get_version()

    registered = []
    threads._register(types.SimpleNamespace(LibController=LibController, register=registered.append))
    (controller,) = registered
    assert hasattr(controller(_core.__file__).dynlib, controller.check_symbols[0])
    assert not hasattr(controller("/other/_core.abi3.so").dynlib, controller.check_symbols[0])


def test_environment_of_a_process():
    code = "import spcacore; print(spcacore.get_num_threads())"
    assert run(code, SPCACORE_NUM_THREADS="7", OMP_NUM_THREADS="") == "7"
    assert run(code, SPCACORE_NUM_THREADS="7", OMP_NUM_THREADS="1") == "1"


# ---- what happens around a loop ----------------------------------------------------------------------------


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="threads are counted on Linux alone")
def test_small_work_wakes_no_thread():
    """Loops of less than four megabytes stay with the caller."""
    code = """
    import os
    import numpy as np, spcacore
    spcacore.set_num_threads(6)
    def threads_after(n, p):
        X = np.random.default_rng(0).standard_normal((n, p))
        spcacore.explained_variance(X, np.eye(p, 1))
        spcacore.l1_threshold(X.ravel(), 4.0)
        return len(os.listdir("/proc/self/task"))
    spcacore.sparse_pca(np.random.default_rng(0).standard_normal((100, 80)), 2, cardinality=5)
    spcacore.varimax(np.random.default_rng(0).standard_normal((5000, 4)))
    print(threads_after(20, 30), threads_after(131, 4000), threads_after(132, 4000) > 1)
    """
    assert run(code, OPENBLAS_NUM_THREADS="1") == "1 1 True"


def test_threads_end_with_the_interpreter():
    """Also while a daemon thread is in a loop."""
    code = """
    import threading, time
    import numpy as np, spcacore
    spcacore.set_num_threads(4)
    X = np.random.default_rng(0).standard_normal((400, 5000))
    def calls():
        while True:
            spcacore.sparse_pca(X, 2, 20, method=spcacore.TPower(screening="none"))
    threading.Thread(target=calls, daemon=True).start()
    time.sleep(0.5)
    print("end")
    """
    assert run(code, OPENBLAS_NUM_THREADS="1") == "end"


def test_tasks_in_threads_are_alone():
    """Loops inside of folds have no threads; those of the caller still do."""

    def serial(item, report):
        return _core.shares_loops()

    set_num_threads(3)
    assert threads.in_threads(serial, [0, 1, 2], 2) == [1, 1, 1]
    assert _core.shares_loops() == 3


@pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) < "2.0.0", reason="its modes are of a thread")
def test_tasks_in_threads_have_the_floating_point_modes_of_the_caller():
    modes = {"divide": "raise", "over": "ignore", "under": "raise", "invalid": "print"}
    with np.errstate(**modes):
        assert threads.in_threads(lambda item, report: np.geterr(), [0, 1, 2], 2) == [modes] * 3


def test_tasks_before_the_one_that_ends_a_call_are_completed():
    ended = threading.Event()

    def task(item, report):
        if item == 1:
            report("end")
            while True:
                report()
        assert ended.wait(10)
        time.sleep(0.1)
        report("late")
        return item

    def hears(message):
        assert message == "end"
        ended.set()
        return True

    assert threads.in_threads(task, [0, 1, 2], 2, hears) == [0]


@pytest.mark.skipif(
    not (sys.platform == "linux" and os.uname().machine == "x86_64"), reason="the number of a rounding mode"
)
def test_threads_round_as_their_caller():
    """Upwards, say: a product of positive numbers is larger, in the parts of all threads."""
    libm, nearest, upward = ctypes.CDLL("libm.so.6"), 0, 0x800
    A, n = np.random.default_rng(0).uniform(1, 2, (400, 3000)), 400
    out = {}
    for threads_of, mode in ((1, nearest), (1, upward), (8, upward)):
        set_num_threads(threads_of)
        result = np.empty((n, n))
        libm.fesetround(mode)
        try:
            _core.matrix_product(A, None, 1.0, result)
        finally:
            libm.fesetround(nearest)
        out[threads_of, mode] = result
    assert (out[1, upward] > out[1, nearest]).mean() > 0.9
    assert_array_equal(out[8, upward], out[1, upward])
