"""Dask arrays: blocks of rows stay where they are, on the threads of this process or on a cluster.

What is computed for a block, and how results are combined, is in `blocks`. Tasks go to the scheduler in
force, so they go to the distributed client if there is one.
"""

from __future__ import annotations

import copy
import inspect
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import accumulate, pairwise
from threading import get_ident
from typing import Any
from weakref import WeakSet

import dask
import dask.array as da
import numpy as np
from dask.core import flatten

from .._limits import DASK_FAN_IN, DASK_MATRICES, DASK_ON_CLIENT, DASK_SMALL, DASK_TRAFFIC, DASK_WIDE
from .._types import DType
from .._validation import AFTER_ERRORS, check_bool, column_names, is_sparse
from .blocks import Combine, Expected, RowBlocks, Task, as_kernel_input, named
from .row_sources import fingerprint, refuse_columns
from .screening import available_memory

_MACHINERY = ("asyncio", "concurrent", "dask", "distributed", "tornado")  # their errors are not of a block
_KEPT: WeakSet[DaskBlocks] = WeakSet()  # what calls keep on workers, to be released after an error


class DaskBlocks(RowBlocks):
    """The row chunks of a dask array or dataframe; see `row_blocks`."""

    prints: list[int | None]
    together = 0

    def __init__(self, X: Any, persist: bool | None, names: Any) -> None:
        names = column_names(X) if names is None else names
        if hasattr(X, "to_dask_array"):
            X = _as_numbers(X).to_dask_array(lengths=True)
        elif not isinstance(X, da.Array):
            X = getattr(X, "data", X)
        if not isinstance(X, da.Array):
            raise TypeError(f"X must be a dask array or dataframe, not {type(X).__name__}")
        if X.ndim != 2:
            raise ValueError(f"X must have 2 dimensions, not shape {X.shape}")
        if any(np.isnan(size) for size in X.shape):
            raise ValueError("X has chunks of unknown sizes; call X.compute_chunk_sizes() first")
        if X.numblocks[1] > 1:
            X = X.rechunk({1: -1})
        if 0 in X.chunks[0] and X.shape[0]:
            X = X.blocks[np.flatnonzero(X.chunks[0]).tolist()]
        super().__init__(X.shape, X.dtype, list(accumulate(X.chunks[0][:-1], initial=0)), names)
        self.persist: bool | None = None if persist is None else check_bool(persist, "persist")
        self.array = X
        self.blocks: list[Any] = list(X.to_delayed().ravel())
        found = self._found()
        self.futures = found if all(map(_is_future, found)) else None
        self.origin: DaskBlocks | None = None  # the data whose blocks are kept here, by calls of `thread`
        self.sent: WeakSet[Any] = WeakSet()  # futures of arrays that go as `each`
        self.thread: int = 0

    @property
    def client(self) -> Any:
        """The distributed client in force, or None."""
        owner = getattr(dask.base.get_scheduler(collections=[self.array]), "__self__", None)
        return owner if hasattr(owner, "scheduler_info") else None

    def _found(self) -> list[Any]:
        """Return what the graph has for each block: a task, the block itself or, on a cluster, a future."""
        graph = dict(self.array.__dask_graph__())
        values = [graph.get(key) for key in flatten(self.array.__dask_keys__())]
        return [getattr(value, "value", value) for value in values]

    def _computed(self) -> bool:
        """Whether the blocks are in the memory of the workers that will read them."""
        if self.client is not None:
            return self.futures is not None
        return all(isinstance(value, np.ndarray) or is_sparse(value) for value in self._found())

    def _fits(self) -> bool:
        """Whether all of X fits in half of the free memory of the workers, or of this machine."""
        free, client = 0.0, self.client
        if client is None:
            return self.array.nbytes <= available_memory() / 2
        every = (
            {"n_workers": -1} if "n_workers" in inspect.signature(client.scheduler_info).parameters else {}
        )
        info = client.scheduler_info(**every)
        if "workers" not in info:
            raise self._without_scheduler()
        for worker in info["workers"].values():
            limit = worker["memory_limit"]
            free += max(limit - worker["metrics"].get("memory", 0), 0) if limit else np.inf
        return self.array.nbytes <= free / 2

    def _without_scheduler(self) -> ConnectionError:
        """Return the error that the scheduler of the client is gone."""
        return ConnectionError(
            f"{self.called} is to be read by a dask client whose scheduler is gone: {self.client}"
        )

    def _require_scheduler(self) -> None:
        """Raise if there is no scheduler any more that could read the blocks."""
        client = self.client
        if client is not None and client.status != "running":
            raise self._without_scheduler()
        for future, block in zip(self.futures or (), self.expected(), strict=False):
            if future.client.status != "running" or future.status in ("cancelled", "lost"):
                raise ConnectionError(
                    f"{block.name} is on a dask cluster, and its client is closed or has lost it "
                    f"({future.client.status}, {future.status}): compute X again with the client in force"
                )

    def held(self) -> RowBlocks:
        self._require_scheduler()
        kept = self.origin is not None or self._computed()
        if kept or self.persist is False or not (self.persist or self._fits()):
            return self
        return self._kept()

    def aligned(self) -> RowBlocks:
        return self._kept() if self._computed() and self._fits() else self

    def _kept(self) -> RowBlocks:
        """Return the same data with blocks that are computed once, and kept on the workers.

        Their fingerprints are computed beside them if they are not known.
        """
        out = copy.copy(self)
        out.prints = [None] * self.n_blocks  # what is kept may have another dtype
        with self._explaining():
            pairs = list(self._pairs())
            prints = [dask.delayed(_fingerprint)(*pair) for pair in pairs] if None in self.prints else []
            kept = dask.persist(*(dask.delayed(_kept)(*pair) for pair in pairs), *prints)  # computed once
            out.blocks, prints = list(kept[: len(pairs)]), list(kept[len(pairs) :])
            found = [dict(one.__dask_graph__()).get(one.key) for one in kept]
            out.futures = found[: len(pairs)] if all(map(_is_future, found)) else None
            out.origin, out.thread, out.sent = self, get_ident(), WeakSet()
            _KEPT.add(out)
            try:
                if prints:
                    self.prints[:] = dask.compute(*prints)
            finally:
                _release(filter(_is_future, found[len(pairs) :]))
        return out

    def let_go(self) -> None:
        """Release what is kept, after an error whose traceback holds this object; passes compute it anew."""
        origin, self.origin = self.origin, None
        _release(list(self.sent))
        if origin is None:
            return
        origin.let_go()
        _release(self.futures or ())
        self.blocks, self.futures, self.prints = origin.blocks, origin.futures, origin.prints

    @contextmanager
    def _explaining(self) -> Iterator[None]:
        """A context that adds to an error the block that it comes from, and releases what is kept."""
        try:
            yield
        except BaseException as error:
            if isinstance(error, Exception) and type(error).__module__.partition(".")[0] not in _MACHINERY:
                self._explain(error)
            _let_go()
            raise

    def _explain(self, error: Exception) -> None:
        """Note in an error which block it comes from: the first one that cannot be computed."""
        if "block " in str(error):
            return
        for block, expected in self._pairs():
            try:
                dask.compute(dask.delayed(_nothing)(block))
            except Exception:
                return expected.note(error)

    def _pairs(self) -> Iterator[tuple[Any, Expected]]:
        """Return the blocks, each with what it must be."""
        return zip(self.blocks, self.expected(), strict=True)

    def results(
        self, task: Task, *arguments: Any, each: Any = None, combine: Combine | None = None, entries: int = 0
    ) -> Iterator[Any]:
        self._passes[0] += 1
        with self._explaining():
            self._require_scheduler()
            sent: list[Any] = []
            try:
                # Results, combined by tasks until few enough must travel
                nodes, blocks, submit = self._submitted(task, arguments, each, sent)
                most = max(1, min(DASK_ON_CLIENT, DASK_WIDE // max(entries, self.shape[1])))
                while combine is not None and len(nodes) > most:
                    groups = range(0, len(nodes), DASK_FAN_IN)
                    nodes = [submit(combine, nodes[i : i + DASK_FAN_IN]) for i in groups]
                # Fingerprints of blocks that were not read before
                unread = blocks if None in self.prints else []
                prints = [
                    submit(partial(_fingerprint, expected=expected), block)
                    for block, expected in zip(unread, self.expected(), strict=False)
                ]
                if blocks is self.futures:
                    sent += nodes + prints
                    found = list(self.client.gather(nodes + prints))
                else:
                    found = list(dask.compute(*nodes, *prints))
            finally:
                _release(sent)
        if prints:
            self.prints[:] = found[len(nodes) :]
        return iter(found[: len(nodes)])

    def _submitted(
        self,
        task: Task,
        arguments: tuple[Any, ...],
        each: list[Any] | None,
        sent: list[Any],
    ) -> tuple[list[Any], list[Any], Callable[..., Any]]:
        """Return the results to come, as nodes, the blocks, and a function that applies another one to nodes.

        What is sent to workers for them is added to `sent`.
        """
        client = self.client
        own = [(block, () if each is None else (each[block.number],)) for block in self.expected()]
        shared: Any = arguments
        if client is not None and sum(getattr(argument, "nbytes", 0) for argument in arguments) > DASK_SMALL:
            shared = client.scatter([arguments], broadcast=True, hash=False)[0]
            sent.append(shared)
        lazy = _is_lazy(each)
        if client is not None and self.futures is not None and not lazy:  # costs a third less than a graph
            count = self.n_blocks  # large keyword arguments of `map` would become tasks of one name
            nodes = client.map(_run, self.futures, own, [task] * count, [shared] * count, pure=False)
            return nodes, self.futures, partial(client.submit, pure=False)
        if shared is arguments:
            shared = dask.delayed(arguments, name=f"spcacore-{uuid.uuid4().hex}", traverse=False)
        run = dask.delayed(_run, pure=False)
        nodes = [run(*pair, task, shared) for pair in zip(self.blocks, own, strict=True)]
        return nodes, self.blocks, lambda function, part: dask.delayed(function, pure=False)(part)

    def _sent(self, parts: list[Any]) -> list[Any]:
        """Send large parts to the workers, and return their futures; small parts go with each task."""
        client = self.client
        if client is None or sum(getattr(part, "nbytes", 0) for part in parts) <= DASK_SMALL:
            return parts
        futures = list(client.scatter(parts, hash=False))
        self.sent.update(futures)
        self.thread = get_ident()
        _KEPT.add(self)
        return futures

    def has_room(self, size: int) -> bool:
        most = max(DASK_TRAFFIC * self.array.nbytes, DASK_MATRICES)
        return super().has_room(size) and size * self.n_blocks <= most

    def mapped(self, task: Task, tail: tuple[int, ...], dtype: DType, *arguments: Any) -> Any:
        expected = (self.origin or self).expected()  # since what is kept is not kept for long
        run = partial(_mapped, expected=expected, arguments=(self.called, task, *arguments))
        axes: dict[str, Any] = (
            {"drop_axis": 1} if len(tail) == 0 else {"new_axis": [*range(2, 1 + len(tail))]}
        )
        chunks = self.array.chunks[0], *((size,) for size in tail)
        return self.array.map_blocks(
            run, chunks=chunks, dtype=dtype, meta=np.empty((0, *tail), dtype), **axes
        )

    def _slice(self, b: int, i: int) -> Any:
        return dask.compute(self.blocks[b][i : i + 1])[0]

    def _parted_like(self, other: RowBlocks) -> RowBlocks:
        if self.starts == other.starts:
            return self
        rows = tuple(j - i for i, j in pairwise([*other.starts, self.shape[0]]))
        out = DaskBlocks(self.array.rechunk({0: rows}), self.persist, self.names)
        out.called = self.called
        return out

    def beside(self, other: RowBlocks, a: Any) -> Any:
        rows: Any = other
        if isinstance(other, DaskBlocks):
            blocks = other.blocks
        else:
            chunks = self.array.chunks[0], other.shape[1]
            blocks = da.from_array(rows.source, chunks, asarray=False).to_delayed().ravel()
        pairs = zip(blocks, other.expected(), self.split(a), strict=True)
        return [(dask.delayed(own.check, pure=False)(block), part) for block, own, part in pairs]


def _as_numbers(frame: Any) -> Any:
    """Return a dataframe with float64 in place of types that NumPy does not have, such as nullable ones."""
    kinds = dict(frame.dtypes)
    wrong = [column for column in kinds.items() if getattr(column[1], "kind", "O") not in "fiub"]
    refuse_columns(wrong, "drop, encode or convert")
    others = [name for name, kind in kinds.items() if not isinstance(kind, np.dtype) or kind.kind == "b"]
    return frame.astype(dict.fromkeys(others, np.float64)) if others else frame


def _run(block: Any, own: tuple[Expected, tuple[Any, ...]], task: Task, arguments: tuple[Any, ...]) -> Any:
    """Return the task's result for a block, which is checked first."""
    expected, first = own
    return task(expected.check(block), *first, *arguments)


def _fingerprint(block: Any, expected: Expected) -> int:
    """Return the fingerprint of a block, which is checked first."""
    return fingerprint(expected.check(block))


def _kept(block: Any, expected: Expected) -> Any:
    """Return a block as it is kept: as kernels read it in place."""
    return as_kernel_input(expected.check(block))


def _mapped(block: Any, expected: list[Expected], arguments: Any, block_id: tuple[int, ...]) -> Any:
    """Return the task's result for the block of this number; an error says where an entry is not finite."""
    own = expected[block_id[0]]
    return named(own.check(block), own.start, *arguments)


def _nothing(_: Any) -> None:
    """Do nothing with a block: it only has to be computed."""


def _release(futures: Iterable[Any]) -> None:
    """Release futures, and cancel tasks that still run for them, whatever has become of their client."""
    for future in futures:
        with suppress(Exception):
            if not future.done():
                future.cancel()
            future.release()


def _let_go() -> None:
    """Release what calls in this thread have kept, after an error in a function of the caller."""
    for blocks in list(_KEPT):
        if blocks.thread == get_ident():
            blocks.let_go()


AFTER_ERRORS.append(_let_go)


def _is_lazy(value: Any) -> bool:
    """Whether dask is to compute it, or a part of it; no cycle is left that holds futures."""
    if isinstance(value, tuple | list):
        return any(map(_is_lazy, value))
    return bool(dask.is_dask_collection(value))


def _is_future(value: Any) -> bool:
    return hasattr(type(value), "status")  # a delayed object has any attribute
