"""Independent tasks by threads: the kernels release the GIL, so that threads suffice."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from contextvars import Context, copy_context
from functools import partial
from itertools import takewhile
from queue import SimpleQueue
from typing import Any, TypeVar

from .. import _core
from .._validation import integer
from .cores import available_cores

__all__ = ["Item", "Report", "Result", "Stopped", "check_jobs", "in_threads", "one_ahead"]

Item = TypeVar("Item")
Result = TypeVar("Result")


class Stopped(Exception):
    """Another task has failed, or the call was interrupted."""


class Report:
    """What a task calls now and then: it raises `Stopped` once the other tasks are to end too.

    A message is passed to `on_message` in the thread of the caller.
    """

    def __init__(self, on_message: Callable[[Any], object] | None):
        self.on_message = on_message
        self.stop: threading.Event = threading.Event()

    def __call__(self, message: Any = None) -> None:
        if self.stop.is_set():
            raise Stopped
        if message is not None and self.on_message is not None and self.on_message(message) is True:
            self.stop.set()  # from the next report on


def check_jobs(n_jobs: Any) -> int:
    """The number of threads that `n_jobs` stands for."""
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
    """`[task(item, report) for item in items]`; the first exception, or Ctrl-C, ends all of them.

    Loops inside of a task have no threads of their own: that would be more than there are cores. What the
    caller has set for itself, as by `np.errstate` of NumPy 2, holds in each.
    Where `on_message` returns True, the tasks before the one that it heard are completed; of that one and all
    after it, those that are not done by then are left out.
    """
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


def one_ahead(task: Callable[[Item], Result], items: Sequence[Item]) -> Generator[Result, None, None]:
    """`task(item)` of each item in turn; the next is computed by a thread while the caller uses this one.

    An error of the next is raised in its turn. No thread is left once the iterator is closed or has failed.
    """
    following: Future[Result] | None = None
    thread = threading.Thread()

    def compute(item: Item, context: Context, future: Future[Result]) -> None:
        try:
            future.set_result(context.run(task, item))
        except BaseException as error:
            future.set_exception(error)

    try:
        for i, item in enumerate(items):
            result = task(item) if following is None else following.result()
            following = None
            if i + 1 < len(items):
                future: Future[Result] = Future()
                thread = threading.Thread(target=compute, args=(items[i + 1], copy_context(), future))
                with suppress(RuntimeError):  # where no thread can be started, the caller computes it
                    thread.start()
                    following = future
            yield result
            del result
    finally:
        if following is not None:
            thread.join()


def _put(messages: SimpleQueue[tuple[int, Any]], place: int, message: Any) -> None:
    messages.put((place, message))


def _end(reports: list[Report]) -> None:
    for report in reports:
        report.stop.set()


def _left_out(future: Future[Any]) -> bool:
    return future.cancelled() or isinstance(future.exception(), Stopped)
