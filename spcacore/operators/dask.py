"""Dask arrays: blocks of rows stay where they are, on the threads of this process or on a cluster.

What is computed of a block, and of the results, is for `_blocks` to say. Tasks go to the scheduler in force,
hence to the distributed client if there is one.
"""

from __future__ import annotations

import copy
import inspect
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from itertools import accumulate
from typing import Any, cast

import dask
import dask.array as da
import numpy as np
from dask.core import flatten

from .._limits import DASK_FAN_IN, DASK_ON_CLIENT, DASK_SMALL, DASK_WIDE
from .._validation import check_bool, column_names, is_sparse
from .blocks import Combine, Expected, RowBlocks, as_kernel_input
from .screening import available_memory

__all__ = ["DaskBlocks"]
__dir__ = __all__.copy


class DaskBlocks(RowBlocks):
    """The row chunks of a dask array or dataframe; see `row_blocks`."""

    def __init__(self, X: Any, persist: bool | None, names: Any) -> None:
        names = column_names(X) if names is None else names
        if hasattr(X, "to_dask_array"):
            X = X.to_dask_array(lengths=True)
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
        super().__init__(X.shape, X.dtype, list(accumulate(X.chunks[0][:-1], initial=0)), names)
        self.persist = None if persist is None else check_bool(persist, "persist")
        self.array = X
        self.blocks = list(X.to_delayed().ravel())
        found = self._found()
        self.futures = found if all(map(_is_future, found)) else None

    @property
    def client(self) -> Any:
        """The distributed client in force, or None."""
        owner = getattr(dask.base.get_scheduler(collections=[self.array]), "__self__", None)
        return owner if hasattr(owner, "scheduler_info") else None

    def _found(self) -> list[Any]:
        """What the graph has of each block: a task, the block itself or, of a cluster, a future."""
        graph = dict(self.array.__dask_graph__())
        values = [graph.get(key) for key in flatten(self.array.__dask_keys__())]
        return [getattr(value, "value", value) for value in values]

    def _computed(self) -> bool:
        """Whether the blocks are in the memory of those who will read them."""
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
        for worker in client.scheduler_info(**every)["workers"].values():
            limit = worker["memory_limit"]
            free += max(limit - worker["metrics"].get("memory", 0), 0) if limit else np.inf
        return self.array.nbytes <= free / 2

    def held(self) -> RowBlocks:
        if self._computed() or self.persist is False or not (self.persist or self._fits()):
            return self
        return self._kept()

    def aligned(self) -> RowBlocks:
        return self._kept() if self._computed() and self._fits() else self

    def _kept(self) -> RowBlocks:
        out = copy.copy(self)
        out.blocks = list(dask.persist(*(dask.delayed(_kept)(*pair) for pair in self._pairs())))
        found = [dict(block.__dask_graph__()).get(block.key) for block in out.blocks]
        out.futures = found if all(map(_is_future, found)) else None
        return out

    def _pairs(self) -> Iterator[tuple[Any, Expected]]:
        return zip(self.blocks, self.expected(), strict=True)

    def _submitted(
        self, task: Callable[..., Any], arguments: tuple[Any, ...], each: list[Any] | None
    ) -> tuple[list[Any], Callable[..., Any]]:
        """What will be the results, and the function that applies another to a list of these."""
        self._passes[0] += 1
        client = self.client
        own = [(block, () if each is None else (each[block.number],)) for block in self.expected()]
        shared: Any = arguments
        if client is not None and sum(getattr(argument, "nbytes", 0) for argument in arguments) > DASK_SMALL:
            shared = client.scatter([arguments], broadcast=True, hash=False)[0]
        lazy = len(dask.base.unpack_collections(each)[0]) > 0
        if client is not None and self.futures is not None and not lazy:  # costs a third less than a graph
            count = self.n_blocks  # large keyword arguments of `map` would become tasks of one name
            nodes = client.map(_run, self.futures, own, [task] * count, [shared] * count, pure=False)
            return nodes, partial(client.submit, pure=False)
        if shared is arguments:
            shared = dask.delayed(arguments, name=f"spcacore-{uuid.uuid4().hex}", traverse=False)
        run = dask.delayed(_run, pure=False)
        nodes = [run(*pair, task, shared) for pair in zip(self.blocks, own, strict=True)]
        return nodes, lambda function, part: dask.delayed(function, pure=False)(part)

    def _gathered(self, nodes: list[Any]) -> list[Any]:
        if all(map(_is_future, nodes)):
            return list(self.client.gather(nodes))
        return list(dask.compute(*nodes))

    def results(
        self, task: Callable[..., Any], *arguments: Any, each: list[Any] | None = None
    ) -> Iterator[Any]:
        yield from self._gathered(self._submitted(task, arguments, each)[0])

    def reduced(self, combine: Combine, task: Callable[..., Any], *arguments: Any, each: Any = None) -> Any:
        nodes, submit = self._submitted(task, arguments, each)
        most = max(DASK_FAN_IN, min(DASK_ON_CLIENT, DASK_WIDE // self.shape[1]))
        while len(nodes) > most:
            nodes = [submit(combine, nodes[i : i + DASK_FAN_IN]) for i in range(0, len(nodes), DASK_FAN_IN)]
        return combine(self._gathered(nodes))

    def mapped(
        self, task: Callable[..., Any], tail: tuple[int, ...], dtype: np.dtype[Any], *arguments: Any
    ) -> Any:
        run = partial(_mapped, expected=self.expected(), task=task, arguments=arguments)
        axes: dict[str, Any] = (
            {"drop_axis": 1} if len(tail) == 0 else {"new_axis": [*range(2, 1 + len(tail))]}
        )
        chunks = self.array.chunks[0], *((size,) for size in tail)
        return self.array.map_blocks(
            run, chunks=chunks, dtype=dtype, meta=np.empty((0, *tail), dtype), **axes
        )

    def _slice(self, b: int, i: int) -> Any:
        return dask.compute(dask.delayed(_one_row)(self.blocks[b], i))[0]

    def beside(self, other: RowBlocks, a: Any) -> Any:
        chunks, rows = (self.array.chunks[0], other.shape[1]), cast(Any, other)
        if isinstance(other, DaskBlocks):
            array = other.array.rechunk(chunks)
        else:
            array = da.from_array(rows.source, chunks, asarray=False)
        return list(zip(array.to_delayed().ravel(), self.split_or_none(a), strict=True))


def _run(
    block: Any, own: tuple[Expected, tuple[Any, ...]], task: Callable[..., Any], arguments: tuple[Any, ...]
) -> Any:
    expected, first = own
    return task(expected.check(block), *first, *arguments)


def _kept(block: Any, expected: Expected) -> Any:
    return as_kernel_input(expected.check(block))


def _mapped(
    block: Any, expected: list[Expected], task: Callable[..., Any], arguments: Any, block_id: tuple[int, ...]
) -> Any:
    return task(expected[block_id[0]].check(block), *arguments)


def _one_row(block: Any, i: int) -> Any:
    return block[i : i + 1]


def _is_future(value: Any) -> bool:
    return hasattr(type(value), "status")  # a delayed object has any attribute
