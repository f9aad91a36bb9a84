"""Threads: how many the loops over a matrix have, and independent tasks that run in threads.

Threads suffice for the tasks, because the kernels release the GIL.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from contextvars import copy_context
from functools import partial
from importlib.machinery import ModuleSpec, PathFinder
from itertools import takewhile
from pathlib import Path
from queue import SimpleQueue
from types import ModuleType
from typing import Any, TypeVar

from .. import _core
from .._limits import MOST_THREADS
from .._validation import integer

# ---- how many threads the loops over a matrix may have --------------------------------------------------


_CGROUPS = "/sys/fs/cgroup"


def set_num_threads(n_threads: int) -> None:
    """Set how many threads the loops over a matrix may have, in the whole process.

    Results do not depend on it, to the last bit.

    Parameters
    ----------
    n_threads : int
        1 to 1024, the thread of the caller among them. Loops as short as reading four megabytes have one,
        and so has a call while another one has the threads.

    Raises
    ------
    TypeError, ValueError
        If `n_threads` is no integer from 1 to 1024.

    See Also
    --------
    get_num_threads : The number in force, and its default.
    limit_threads : A limit for some calls only.

    Notes
    -----
    ``threadpoolctl.threadpool_limits`` sets it too, together with the threads of BLAS, and for a while.
    Products of small matrices and decompositions are made by BLAS and LAPACK, which have threads of their
    own.

    Examples
    --------
    >>> import spcacore
    >>> before = spcacore.get_num_threads()
    >>> spcacore.set_num_threads(1)
    >>> spcacore.get_num_threads()
    1
    >>> spcacore.set_num_threads(before)
    """
    _core.set_threads(_check(n_threads))


@contextmanager
def limit_threads(n_threads: int) -> Iterator[None]:
    """Set how many threads the loops over a matrix may have, for the calls inside of a ``with`` statement.

    The limit holds only for calls from this thread of the program, and overrides `set_num_threads`. It takes
    the place of an argument ``n_threads`` of every function. Results are the same to the last bit.

    Parameters
    ----------
    n_threads : int
        1 to 1024, the thread of the caller among them.

    Yields
    ------
    None

    Raises
    ------
    TypeError, ValueError
        If `n_threads` is not such a number.

    See Also
    --------
    set_num_threads : for the whole process.

    Examples
    --------
    >>> import numpy as np
    >>> import spcacore
    >>> X = np.random.default_rng(0).standard_normal((20, 50))
    >>> with spcacore.limit_threads(1):
    ...     result = spcacore.sparse_pca(X, 1, cardinality=5)
    """
    before = _core.limit_own(_check(n_threads))
    try:
        yield
    finally:
        _core.limit_own(before)


def _check(n_threads: Any) -> int:
    """Return a number of threads, checked."""
    n_threads = integer(n_threads, "n_threads", 1)
    if n_threads > MOST_THREADS:
        raise ValueError(f"n_threads must be at most {MOST_THREADS}, not {n_threads}")
    return n_threads


def get_num_threads() -> int:
    """How many threads the loops over a matrix may have, in calls of this thread.

    Returns
    -------
    int
        What `limit_threads` says, else `set_num_threads`. By default the number of cores that the process may
        use: its affinity and the limits of its control groups count. The environment variable
        ``SPCACORE_NUM_THREADS`` sets another number, and ``OMP_NUM_THREADS``, which joblib sets for its
        workers, is a ceiling for both; they are read once, at import.

    See Also
    --------
    set_num_threads : sets it.

    Examples
    --------
    >>> import spcacore
    >>> spcacore.get_num_threads() >= 1
    True
    """
    return _core.shares_loops()


def available_cores() -> int:
    """Return the number of cores that the process may use."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        cores = os.cpu_count() or 1
    return max(1, min([cores, *_group_limits()]))


def default_threads() -> int:
    """Return the number of threads at import, see `get_num_threads`."""
    asked, ceiling = os.environ.get("SPCACORE_NUM_THREADS"), os.environ.get("OMP_NUM_THREADS", "")
    if not asked:
        threads = available_cores()
    elif asked.strip().isdecimal() and int(asked) > 0:
        threads = int(asked)
    else:
        raise ValueError(f"SPCACORE_NUM_THREADS must be an integer of at least 1, not {asked!r}")
    ceiling = ceiling.split(",")[0].strip()  # a list has one number for each nested level
    if ceiling.isdecimal() and int(ceiling) > 0:
        threads = min(threads, int(ceiling))
    return min(threads, MOST_THREADS)


def _group_limits() -> Iterator[int]:
    """Yield the numbers of cores that the control groups of the process allow, rounded up.

    Both versions of control groups are read.
    """
    for line in _read("/proc/self/cgroup").splitlines():
        _, controllers, path = line.rstrip("/").split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        while True:  # a limit of a group above counts too
            if controllers:
                folder = f"{_CGROUPS}/cpu{path}"
                quota, period = _read(f"{folder}/cpu.cfs_quota_us"), _read(f"{folder}/cpu.cfs_period_us")
            else:
                quota, _, period = _read(f"{_CGROUPS}{path}/cpu.max").strip().partition(" ")
            if quota.strip().isdecimal() and period.strip().isdecimal() and int(period) > 0:
                yield max(1, -(-int(quota) // int(period)))
            if not path:
                break
            path = path.rpartition("/")[0]


def _read(path: str) -> str:
    """Return the text of a file, or nothing if it cannot be read."""
    try:
        return Path(path).read_text("utf-8")
    except OSError:
        return ""


# ---- threadpoolctl


def _register(threadpoolctl: Any) -> None:
    """Make `threadpool_limits` and `threadpool_info` of threadpoolctl 3.3 or later know these threads."""
    if not hasattr(threadpoolctl, "register"):
        return
    path = os.path.realpath(_core.__file__)

    class Controller(threadpoolctl.LibController):  # type: ignore[misc,name-defined]
        user_api = internal_api = "spcacore"
        filename_prefixes = (os.path.basename(path).lower(),)
        check_symbols = ("_handle",)

        def get_version(self) -> None:
            if os.path.realpath(self.filepath) != path:  # another package may have a library of that name
                self.dynlib = None

        def set_additional_attributes(self) -> None:
            self.architecture = _core.clone()  # OpenBLAS has this attribute

        def get_num_threads(self) -> int:
            return _core.threads()

        def set_num_threads(self, num_threads: int) -> None:
            set_num_threads(num_threads)

    threadpoolctl.register(Controller)


class _OnImport:
    """Calls `_register` once threadpoolctl is imported.

    To import it here would take as long as the package itself.
    """

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != "threadpoolctl":
            return None
        spec = PathFinder.find_spec(name, path, target)
        loader: Any = spec.loader if spec else None
        if loader is not None:
            execute = loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                sys.meta_path.remove(self)
                _register(module)

            loader.exec_module = exec_module
        return spec


_core.set_threads(default_threads())
atexit.register(_core.end_threads)
if "threadpoolctl" in sys.modules:
    _register(sys.modules["threadpoolctl"])
else:
    sys.meta_path.insert(0, _OnImport())  # type: ignore[arg-type]


Item = TypeVar("Item")
Result = TypeVar("Result")


class Stopped(Exception):
    """Another task has failed, or the call was interrupted."""


class Report:
    """What a task calls now and then; it raises `Stopped` once the task is to end.

    A message is passed to `on_message` in the thread of the caller. If that returns True, the tasks end at
    their next report.
    """

    def __init__(self, on_message: Callable[[Any], object] | None):
        self.on_message = on_message
        self.stop: threading.Event = threading.Event()

    def __call__(self, message: Any = None) -> None:
        if self.stop.is_set():
            raise Stopped
        if message is not None and self.on_message is not None and self.on_message(message) is True:
            self.stop.set()  # the next report raises Stopped


def check_jobs(n_jobs: Any) -> int:
    """Return the number of threads that `n_jobs` stands for."""
    n_jobs = integer(n_jobs, "n_jobs", -1)
    if n_jobs == 0:
        raise ValueError("n_jobs must be at least 1, or -1, not 0")
    return n_jobs if n_jobs > 0 else available_cores()


def in_threads(
    task: Callable[[Item, Report], Result],
    items: Sequence[Item],
    threads: int,
    on_message: Callable[[Any], object] | None = None,
) -> list[Result]:
    """Return `[task(item, report) for item in items]`, computed by threads.

    The first exception, or Ctrl-C, ends all tasks. Loops inside a task have no threads of their own, because
    that would be more threads than cores. What the caller has set in its context, such as `np.errstate` of
    NumPy 2, holds in each task. If `on_message` returns True, the tasks before the one that sent the message
    are completed; that one, and those after it, are left out unless they are done by then.
    """
    # One thread
    threads = min(threads, len(items))
    if threads <= 1:
        report, results = Report(on_message), []
        for item in items:
            try:
                results.append(task(item, report))
            except Stopped:
                break
            if report.stop.is_set():
                break
        return results
    # Several threads send messages, which this one passes on
    messages: SimpleQueue[tuple[int, Any]] = SimpleQueue()
    puts = [None if on_message is None else partial(_put, messages, place) for place in range(len(items))]
    reports = [Report(put) for put in puts]
    with ThreadPoolExecutor(threads, initializer=_core.limit_own, initargs=(1,)) as pool:
        try:
            both = zip(items, reports, strict=True)
            futures = [pool.submit(copy_context().run, task, item, report) for item, report in both]
            waiting = set(futures)
            while waiting:
                done, waiting = wait(waiting, 0.05, FIRST_COMPLETED)
                while on_message is not None and not messages.empty():
                    place, message = messages.get()
                    if on_message(message) is True:
                        on_message = None
                        _end(reports[place:])
                        waiting -= {future for future in futures[place:] if future.cancel()}
                for future in done:
                    if on_message is not None or not _left_out(future):
                        future.result()
        except BaseException:
            _end(reports)
            pool.shutdown(cancel_futures=True)
            raise
    return [future.result() for future in takewhile(lambda future: not _left_out(future), futures)]


def settle(future: Future[Result], call: Callable[[], Result]) -> None:
    """Give a future the result of a call, or its error."""
    try:
        future.set_result(call())
    except BaseException as error:
        future.set_exception(error)


def one_ahead(task: Callable[[Item], Result], items: Sequence[Item]) -> Generator[Result, None, None]:
    """Yield `task(item)` for each item in turn, while a thread computes the next one.

    An error of the next is raised in its turn. No thread is left once the iterator is closed or has failed.
    """
    following: Future[Result] | None = None
    thread = threading.Thread()
    try:
        for i, item in enumerate(items):
            if following is None:
                result = task(item)
            else:
                thread.join()  # so that it has ended when its last result is used
                result, following = following.result(), None
            if i + 1 < len(items):
                future: Future[Result] = Future()
                call = partial(copy_context().run, task, items[i + 1])
                thread = threading.Thread(target=settle, args=(future, call))
                with suppress(RuntimeError):  # if no thread can be started, the caller computes it
                    thread.start()
                    following = future
            yield result
            del result
    finally:
        if following is not None:
            thread.join()


def _put(messages: SimpleQueue[tuple[int, Any]], place: int, message: Any) -> None:
    """Send a message from the task at this place."""
    messages.put((place, message))


def _end(reports: list[Report]) -> None:
    """Ask tasks to end at their next report."""
    for report in reports:
        report.stop.set()


def _left_out(future: Future[Any]) -> bool:
    """Whether a task was cancelled or stopped."""
    return future.cancelled() or isinstance(future.exception(), Stopped)
