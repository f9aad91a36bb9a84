"""Data in dask arrays, on threads and on a cluster of two processes."""

import gc
import os
import re
import signal
import sys
import threading
import time

import flat
import numpy as np
import pytest
import row_block_tools
import scipy.sparse as sp
from numpy.testing import assert_allclose
from row_block_tools import METHODS, N, P, dask_array, data, same

import spcacore

pytestmark = [
    pytest.mark.filterwarnings("ignore:scale=True leaves"),  # the one column that is constant
    pytest.mark.usefixtures("never_formed"),  # many passes
]


def gone(left):
    """Whether soon nothing is left: workers and the scheduler hear of it by threads of their own."""
    deadline = time.monotonic() + 10
    while left() and time.monotonic() < deadline:
        time.sleep(0.05)
    return not left()


# ---- dask arrays on the threads of this process ------------------------------------------------------


@pytest.mark.share(12)
@pytest.mark.parametrize("name", ["tpower", "tpower, scaled", "gpower", "pmd", "greedy gradient", "schur"])
@pytest.mark.parametrize("how", ["lazy", "kept", "persisted", "columns", "csr"])
def test_dask_arrays(name, how):
    X = np.where(np.abs(data()) > 3, data(), 0)
    lazy = dask_array(X, columns=70 if how == "columns" else P)
    expected = flat.sparse_pca(sp.csr_matrix(X) if how == "csr" else X, 2, **METHODS[name])
    source = {
        "lazy": lambda: spcacore.row_blocks(lazy + 0, persist=False),
        "kept": lambda: spcacore.row_blocks(lazy + 0, persist=True),
        "persisted": lambda: lazy.persist(),
        "columns": lambda: lazy,
        "csr": lambda: lazy.map_blocks(sp.csr_matrix, meta=sp.csr_matrix((0, 0))),
    }[how]()
    same(flat.sparse_pca(source, 2, **METHODS[name]), expected, 1e-12)


def test_without_workers_nothing_is_sent(with_limits):
    pytest.importorskip("dask", reason="needs dask")
    from spcacore.operators import dask as module

    with_limits(module, DASK_SMALL=0)
    parts = [np.zeros(9)]
    assert spcacore.row_blocks(dask_array(data()))._sent(parts) is parts


def test_blocks_are_computed_once_where_they_are_kept():
    computed = []

    def count(block):
        if len(block):
            computed.append(len(block))
        return block

    lazy = dask_array(data()).map_blocks(count, meta=np.empty((0, 0)))
    for persist, passes in ((None, False), (True, False), (False, True)):
        computed.clear()
        blocks = spcacore.row_blocks(lazy, persist=persist)
        spcacore.sparse_pca(blocks, 1, cardinality=8, method=spcacore.TPower(n_starts=1))
        assert blocks.passes > 2
        assert len(computed) == 3 * (blocks.passes if passes else 1)


def test_results_added_by_tasks(with_limits):
    pytest.importorskip("dask", reason="needs dask")
    import spcacore.operators.dask as module

    X = data()
    with_limits(module, DASK_ON_CLIENT=3, DASK_FAN_IN=2)
    result = spcacore.sparse_pca(dask_array(X, rows=20), 2, cardinality=8)
    same(result, spcacore.sparse_pca(X, 2, cardinality=8), 1e-12)


@pytest.mark.parametrize("types", ["nullable", "bool", "arrow"])
def test_types_that_numpy_has_not(types):
    dd = pytest.importorskip("dask.dataframe", reason="needs dask.dataframe")
    pd = pytest.importorskip("pandas", reason="needs pandas")
    frame = pd.DataFrame(data()[:, :30], columns=[f"v{j}" for j in range(30)])
    frame["v1"] = (frame["v1"] > 1).astype("bool" if types == "bool" else "boolean")
    if types == "nullable":
        frame = frame.astype({"v0": "Float64"}).convert_dtypes()
    elif types == "arrow":
        frame = frame.convert_dtypes(dtype_backend="pyarrow")
    expected = spcacore.sparse_pca(frame.astype(float).to_numpy(), 2, cardinality=8)
    same(spcacore.sparse_pca(dd.from_pandas(frame, npartitions=3), 2, cardinality=8), expected, 1e-12)
    frame["v0"] = frame["v0"].mask(frame.index == 333)
    with pytest.raises(ValueError, match=r"1 entry that is NaN or infinite, the first at \(333, 0\)"):
        spcacore.sparse_pca(dd.from_pandas(frame, npartitions=3), 2, cardinality=8)
    frame["text"] = "some"
    with pytest.raises(TypeError, match="no numbers: drop, encode or convert 'text'"):
        spcacore.sparse_pca(dd.from_pandas(frame, npartitions=3), 2, cardinality=8)


def stop_with_an_error(progress):
    raise RuntimeError("of the caller")


FAILED = {  # a call, its error, and what the error says of where
    "a block": (
        lambda X, bad, persist: spcacore.sparse_pca(
            spcacore.row_blocks(bad, persist=persist), 2, cardinality=8
        ),
        ZeroDivisionError, r"block 1 of X \(rows 150 to 299\) could not be read, in pass 1",
    ),
    "a block of clusters": (
        lambda X, bad, persist: spcacore.sparse_kmeans(spcacore.row_blocks(bad, persist=persist), 2, 2.0),
        ZeroDivisionError, r"block 1 of X \(rows 150 to 299\)",
    ),
    "a block of the second side": (
        lambda X, bad, persist: spcacore.sparse_cca(
            X, spcacore.row_blocks(bad, persist=persist), 1, l1_bound=2.0
        ),
        ZeroDivisionError, r"block 1 of Y \(rows 150 to 299\)",
    ),
    "a callback": (
        lambda X, bad, persist: spcacore.sparse_pca(
            spcacore.row_blocks(X, persist=persist), 2, cardinality=8, callback=stop_with_an_error
        ),
        RuntimeError, "of the caller",
    ),
}  # fmt: skip


def failing_calls(name, persist):
    """The errors of three calls, which keep the frames and so what is in them."""
    call, error, words = FAILED[name]

    def raising(block, block_info=None):  # which workers get by value
        if block_info and block_info[0]["chunk-location"][0] == 1:
            raise ZeroDivisionError("no such rows")
        return block

    lazy = dask_array(data()) + 0
    for _ in range(3):
        with pytest.raises(error) as caught:
            call(lazy, lazy.map_blocks(raising, meta=np.empty((0, 0))), persist)
        said = "\n".join([str(caught.value), *getattr(caught.value, "__notes__", [])])
        assert re.search(words, said), said
        yield caught


@pytest.mark.share(3)
@pytest.mark.parametrize("persist", [True, False])
@pytest.mark.parametrize("name", FAILED)
def test_a_failed_call_names_the_block_and_keeps_none(name, persist):
    pytest.importorskip("dask", reason="needs dask")
    from spcacore.operators import dask as module

    errors = list(failing_calls(name, persist))
    assert errors
    assert all(blocks.origin is None for blocks in module._KEPT)


def test_failed_calls_leave_no_bytes_on_workers():
    """As the scheduler counts them: after each of three calls, whose errors are kept, as many as before."""
    distributed = pytest.importorskip("distributed", reason="needs distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster),
    ):

        def held():
            return sum(worker.nbytes for worker in cluster.scheduler.workers.values())

        most, errors = [], []
        for error in failing_calls("a block", True):
            errors.append(error)
            most.append(held())
            assert gone(held)
        assert max(most) > data().nbytes / 2  # what would add up


@pytest.fixture
def no_collector():
    gc.disable()
    yield
    gc.enable()


@pytest.mark.slow
@pytest.mark.usefixtures("no_collector")
def test_weights_travel_once(monkeypatch, with_limits):
    """In all passes of K-means and of a search they are where the blocks are; then no cycle keeps them."""
    distributed = pytest.importorskip("distributed", reason="needs distributed")
    from spcacore.operators import dask as module

    with_limits(module, DASK_SMALL=1000)
    X, w = data(), np.random.default_rng(0).uniform(0.5, 2, N)
    calls = (
        lambda X: spcacore.sparse_kmeans(X, 2, 2.0, n_init=2, sample_weight=w).weights,
        lambda X: spcacore.sparse_pca(X, 1, cardinality=3, sample_weight=w).loadings,
    )
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        sent, scatter = [], client.scatter
        monkeypatch.setattr(client, "scatter", lambda a, **o: sent.append(a) or scatter(a, **o))
        for call in calls:
            sent.clear()
            blocks = spcacore.row_blocks(dask_array(X), persist=False)
            assert_allclose(call(blocks), call(X), atol=1e-10)
            assert blocks.passes >= 2
            weights = [a for a in sent if isinstance(a[0], np.ndarray)]
            assert [sum(map(len, parts)) for parts in weights] == [N]
            assert gone(blocks.sent.__len__)


# ---- a cluster of two processes ----------------------------------------------------------------------


@pytest.fixture(scope="session")
def cluster():
    distributed = pytest.importorskip("distributed", reason="needs distributed")
    import cloudpickle

    for module in (sys.modules[__name__], row_block_tools):  # which the workers cannot import
        cloudpickle.register_pickle_by_value(module)
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", memory_limit="1GiB"
    ) as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    import distributed

    with distributed.Client(cluster) as client:
        client.wait_for_workers(2, timeout=30)
        yield client


def made_by_workers(X, rows=105):
    """Each block a task that needs nothing from the client, so that it can be done again."""
    import dask
    import dask.array as da

    make = dask.delayed(lambda start: data(dtype=X.dtype)[start : start + rows], pure=True)
    return da.concatenate(
        [da.from_delayed(make(start), (rows, P), X.dtype) for start in range(0, N, rows)]
    ).persist()


@pytest.mark.slow
def test_scattered_blocks_are_aligned_once(client):
    import dask.array as da

    from spcacore.operators.moments import statistics
    from spcacore.operators.statistics import merged

    X = data()
    futures = client.scatter([X[start : start + 105] for start in range(0, N, 105)])
    array = da.concatenate([da.from_delayed(future, (105, P), X.dtype) for future in futures]).persist()
    blocks = spcacore.row_blocks(array)
    assert blocks.futures is not None
    assert not blocks.reduced(merged, statistics).plain
    aligned = blocks.aligned()
    assert aligned is not blocks
    assert aligned.futures is not None
    assert aligned.reduced(merged, statistics).plain
    same(spcacore.sparse_pca(array, 2, cardinality=8), spcacore.sparse_pca(X, 2, cardinality=8), 1e-12)


@pytest.mark.slow
def test_a_client_that_is_closed(cluster):
    import distributed

    with distributed.Client(cluster) as client:
        array = made_by_workers(data())
        distributed.wait(array)
        assert client.futures
    with pytest.raises(ConnectionError, match=r"block 0 of X \(rows 0 to 104\) is on a dask cluster"):
        spcacore.sparse_pca(array, 1, cardinality=8)


@pytest.mark.slow
def test_workers_that_never_come():
    """The setting of dask ends the wait, and leaves nothing on the scheduler."""
    distributed = pytest.importorskip("distributed", reason="needs distributed")
    import dask

    with (
        dask.config.set({"distributed.scheduler.no-workers-timeout": "500ms"}),
        distributed.LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as cluster,
        distributed.Client(cluster),
    ):
        with pytest.raises(distributed.scheduler.NoWorkerError, match="without any running workers"):
            spcacore.sparse_pca(dask_array(data()), 1, cardinality=3)
        assert gone(lambda: cluster.scheduler.tasks)


@pytest.mark.slow
def test_a_scheduler_that_is_gone(client, monkeypatch):
    """No KeyError, whatever it said last."""
    array = made_by_workers(data())
    monkeypatch.setattr(client, "status", "connecting")
    monkeypatch.setattr(client, "scheduler_info", lambda *_, **__: {})
    with pytest.raises(ConnectionError, match="scheduler is gone"):
        spcacore.sparse_pca(array, 1, cardinality=8)
    monkeypatch.setattr(client, "status", "running")
    with pytest.raises(ConnectionError, match="scheduler is gone"):
        spcacore.sparse_pca(array + 0, 1, cardinality=8)


@pytest.mark.slow
def test_a_worker_that_dies(client, monkeypatch):
    """Its blocks are made again, and the result is the same."""
    from spcacore.operators.dask import DaskBlocks

    X = data()
    array = made_by_workers(X)
    expected = spcacore.sparse_pca(X, 2, cardinality=8)
    pids = client.run(os.getpid)
    submit, killed = DaskBlocks._submitted, []

    def kill_then_submit(self, *arguments):
        if self.passes == 2 and not killed:
            killed.append(next(iter(pids.values())))
            os.kill(killed[0], signal.SIGKILL)
        return submit(self, *arguments)

    monkeypatch.setattr(DaskBlocks, "_submitted", kill_then_submit)
    same(spcacore.sparse_pca(array, 2, cardinality=8), expected, 1e-12)
    assert killed


@pytest.mark.slow
@pytest.mark.usefixtures("interruptible")
def test_interrupting_a_cluster(client, tmp_path):
    """The call does not wait for what workers do."""
    import dask
    import dask.array as da

    def slow(start):
        time.sleep(20)
        (tmp_path / "made").touch()
        return data()[start : start + 210]

    array = da.concatenate(
        [da.from_delayed(dask.delayed(slow)(start), (210, P), np.float64) for start in (0, 210)]
    )
    threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        spcacore.sparse_pca(array, 1, cardinality=8)
    assert not (tmp_path / "made").exists()
    client.restart()
