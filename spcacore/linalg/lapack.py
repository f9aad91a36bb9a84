"""Long LAPACK calls that Ctrl-C need not wait for."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable
from typing import Any

__all__ = ["interruptible"]


def interruptible(call: Callable[[], Any]) -> Any:
    """The result of a call that cannot be interrupted, made by another thread while this one listens.

    Python delivers signals to its main thread between two instructions, hence after LAPACK returns; but it
    wakes a main thread that waits. The call is then left to itself, so it must not write to what the caller
    keeps; the end of the process waits for it, as LAPACK's buffers must outlive it.
    """
    if threading.current_thread() is not threading.main_thread():
        return call()
    outcome: list[tuple[bool, Any]] = []
    ended = threading.Event()

    def run() -> None:
        try:
            outcome.append((True, call()))
        except BaseException as error:
            outcome.append((False, error))
        finally:
            ended.set()

    worker = threading.Thread(target=run, daemon=True)
    worker.start()
    try:
        ended.wait()
    except BaseException:
        atexit.register(worker.join)
        raise
    done, value = outcome[0]
    if not done:
        raise value
    return value
