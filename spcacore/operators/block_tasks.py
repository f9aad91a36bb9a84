"""What is computed of a block of rows, wherever it is; and how the results of several are put together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._limits import CACHED_ENTRIES, slices
from .._types import AnyArray, Array, Index
from .._validation import as_dense, float_type, is_sparse, stored
from ..linalg.scaling import beyond_range
from .base import Affine
from .dense import is_small
from .neighbors import in_runs
from .sparse import compressed, in_memory
from .statistics import (
    Statistics,
    extreme_rows,
    from_whole,
    in_range,
    merged,
    scaled_statistics,
    statistics_of,
)

WHOLE = 2.0**53  # up to which a double holds every integer


def as_kernel_input(block: Any) -> Any:
    """A block that the tasks below read in place: of a float dtype, aligned, rows or columns contiguous."""
    if is_sparse(block) and block.shape[0] == 0:
        return np.empty(block.shape, float_type(block.dtype))
    return in_memory(block, "X" if is_sparse(block) else "a block of X", empty=True)


def finite(block: Any) -> Any:
    """The same, where nothing in it is NaN or infinite."""
    X = as_kernel_input(block)
    if not np.isfinite(stored(X)).all():
        raise ValueError("X has entries that are NaN or infinite")
    return X


def dense_rows(X: Any, entries: int = 1 << 22) -> Iterator[tuple[slice, AnyArray]]:
    """A prepared block as dense rows, so many entries at a time."""
    for part in slices(X.shape[0], X.shape[1], entries):
        yield part, as_dense(X[part])


def statistics(block: Any, weight: Array | None = None) -> Statistics | None:
    """Of a block; None where it has no rows, or no weight."""
    X = as_kernel_input(block)
    found = statistics_of(X, weight)
    plain = np.may_share_memory(stored(X), stored(block))
    return None if found is None else replace(found, plain=plain)


def moments(block: Any, weight: Array | None) -> tuple[Statistics | None, Array | None]:
    """`statistics`, and (X - 1 mean')' diag(weight) (X - 1 mean') about the means of the block.

    None in place of that where squares in the precision of X leave the number range.
    """
    found = statistics(block, weight)
    if found is None or not in_range(found, float_type(block.dtype)):
        return found, None
    X = as_kernel_input(block)
    mean = found.mean.astype(X.dtype)
    op = _core.operator(X, False, mean)
    if weight is not None:
        op = op.row_weighted(np.sqrt(weight).astype(X.dtype), True)
    M = op.gram()
    assert M is not None
    M -= found.n * np.multiply.outer(found.mean - mean, found.mean - mean)
    return found, M


def whole_sums(block: Any) -> tuple[AnyArray, ...] | None:
    """Lowest and highest entries, sums, and sums of products of columns of whole numbers, the sums as int64;
    None where an entry is no such number, or doubles do not hold a sum."""
    small: tuple[AnyArray, ...] | None = _core.whole_moments(block) if is_small(block) else None
    if small is not None:
        return small
    found, X = statistics(block), as_kernel_input(block)
    if found is None or max(found.high.max(), -found.low.min()) >= WHOLE**0.5:
        return None
    M = _core.operator(X.astype(np.float64)).gram()
    assert M is not None
    if M.diagonal().max() >= WHOLE:
        return None
    total = np.asarray(X.sum(axis=0), np.int64).ravel()
    return found.low, found.high, total, M.astype(np.int64)


def added(parts: Iterable[Any]) -> Any:
    """Of all rows, from the `whole_sums` of some."""
    each = iter(parts)
    out = next(each)
    for other in each:
        if out is not None and other is not None:
            low, high = np.minimum(out[0], other[0]), np.maximum(out[1], other[1])
            out = low, high, out[2] + other[2], out[3] + other[3]
        else:
            out = None
    return out if out is not None and out[3].diagonal().max() < WHOLE else None


def all_moments(blocks: Any, weight: Array | None) -> tuple[Any, Any, tuple[AnyArray, ...] | None]:
    """Of all rows: statistics, moments about the means, and what tells these exactly of whole numbers."""
    (rows, p), whole = blocks.shape, None
    if blocks.dtype.kind in "iub" and weight is None:
        whole = blocks.reduced(added, whole_sums, entries=p * p)
    if whole is not None:
        return *from_whole(rows, whole), whole
    each = blocks.split_or_none(weight)
    return *blocks.reduced(merged_moments, moments, each=each, entries=p * p), None


def merged_moments(parts: Iterable[Any]) -> tuple[Statistics | None, Array | None]:
    """Of all rows, from those of some, as `merged`."""
    each = iter(parts)
    found, M = next(each)
    for other, N in each:
        if found is None or other is None:
            found, M = (other, N) if found is None else (found, M)
            continue
        if M is not None and N is not None:
            d = other.mean - found.mean
            M = M + N
            M += np.multiply.outer(d * (found.n * (other.n / (found.n + other.n))), d)
        else:
            M = None
        found = merged([found, other])
    return found, M


def not_finite(block: Any, start: int) -> tuple[int, tuple[int, int] | None]:
    """How many entries are NaN or infinite, and the row and column of the first."""
    X = as_kernel_input(block)
    if is_sparse(X):
        X = X.tocsr()
        bad = np.flatnonzero(~np.isfinite(X.data))
        row = np.searchsorted(X.indptr, bad[:1], "right") - 1
        where = None if len(bad) == 0 else (int(row[0]) + start, int(X.indices[bad[0]]))
        return len(bad), where
    rows, columns = np.nonzero(~np.isfinite(X))
    return len(rows), (int(rows[0]) + start, int(columns[0])) if len(rows) else None


def scaled_statistics_of(block: Any, *sides: Any) -> Statistics | None:
    """`scaled_statistics` of a block."""
    return scaled_statistics(as_kernel_input(block), *sides)


def forward(block: Any, index: Index | None, W: AnyArray, shift: AnyArray, range_: float) -> AnyArray:
    """range (X[:, index] W - 1 shift'); W of one dimension is a diagonal."""
    X = as_kernel_input(block)
    if X.shape[0] == 0:
        return np.zeros((0, len(shift)), W.dtype)
    if index is not None and W.shape == (len(index), 1):
        U = _core.operator(X).forward(index, np.ascontiguousarray(W[:, 0]))[:, None]
    elif is_sparse(X):
        if index is not None:
            full = np.zeros((X.shape[1], len(shift)), W.dtype, order="F")
            full[index] = np.diag(W) if W.ndim == 1 else W
            W = full
        U = _core.operator(X).forward_block(W)
    elif index is None:
        U = X @ W
    else:
        U = X[:, index] * W if W.ndim == 1 else X[:, index] @ W
    U -= shift
    U *= W.dtype.type(range_)
    return U


def products(
    block: Any,
    row_weight: AnyArray | None,
    index: Index | None,
    W: AnyArray,
    shift: AnyArray,
    range_: float,
    factor: float,
) -> tuple[AnyArray, AnyArray]:
    """X'U and 1'U, U = factor range^2 diag(row_weight)^2 (X[:, index] W - 1 shift')."""
    X = as_kernel_input(block)
    U = forward(X, index, W, shift, range_)
    U *= W.dtype.type(factor)
    U *= W.dtype.type(range_)
    if row_weight is not None:
        U *= (row_weight * row_weight)[:, None]
    return backward(X, U)


def backward(block: Any, U: AnyArray) -> tuple[AnyArray, Array]:
    """X'U and 1'U."""
    X, b = as_kernel_input(block), U.shape[1]
    if X.shape[0] == 0:
        return np.zeros((X.shape[1], b), U.dtype), np.zeros(b)
    if is_sparse(X) and b == 1:  # by entries that lie side by side
        Y = _core.operator(X).backward(np.ascontiguousarray(U[:, 0]))[:, None]
    else:
        Y = _core.operator(X).backward_block(U) if is_sparse(X) or b < 8 else X.T @ U
    return Y, U.sum(axis=0, dtype=np.float64)


def submatrix(
    block: Any,
    row_weight: AnyArray | None,
    index: Index,
    first: int,
    W: AnyArray,
    shift: AnyArray,
    range_: float,
    double: bool,
) -> tuple[AnyArray]:
    """The first rows of U U', U' = range diag(row_weight) (X[:, index] diag(W) - 1 shift')."""
    X = as_kernel_input(block)
    U = _core.operator(X).columns(index) if X.shape[0] else np.zeros((len(index), 0), W.dtype)
    if double:
        U, W, shift = U.astype(np.float64), W.astype(np.float64), shift.astype(np.float64)
    U *= W[:, None]
    U -= shift[:, None]
    U *= U.dtype.type(range_)
    if row_weight is not None:
        U *= row_weight
    return (U[:first] @ U.T,)


def extreme_rows_of(
    block: Any, row_weight: AnyArray | None, affine: Affine, index: Index, k: int, levels: Array
) -> tuple[Array, AnyArray]:
    """`extreme_rows`; none where there are no rows."""
    X = as_kernel_input(block)
    if X.shape[0] == 0:
        return np.zeros(0), np.zeros(X.shape, X.dtype)
    return extreme_rows(affine._replace(row_weight=row_weight).operator(X), index, k, levels)


def in_runs_of(block: Any, row_weight: AnyArray | None, affine: Affine, sorts: Index) -> tuple[AnyArray]:
    """`in_runs`; zeros where there are no rows."""
    X, width = as_kernel_input(block), sorts.shape[2]
    if X.shape[0] == 0:
        return (np.zeros((sorts.size // width, width, width), np.float32),)
    return (np.stack([A.copy() for A in in_runs(affine._replace(row_weight=row_weight).operator(X), sorts)]),)


def columns(block: Any, index: Index) -> AnyArray:
    """X[:, index], dense."""
    return np.asarray(as_dense(as_kernel_input(block)[:, index]))


def sum_parts(parts: Iterable[tuple[AnyArray, ...]]) -> tuple[Array, ...]:
    """The sums of arrays, in double precision and in this order."""
    each = iter(parts)
    out = tuple(np.array(part, np.float64) for part in next(each))
    for part in each:
        for total, one in zip(out, part, strict=True):
            total += one
        del part, one  # before the next is computed
    return out


_FLAT = 1 << 10  # entries in a line of what has one dimension


def fingerprint(block: Any) -> int:
    """Whether a block is what it was: a number that two reads of the same rows have in common.

    Each entry is taken as a whole number, by its bits. The columns are summed modulo 2^64, each entry times a
    key of its row, random and fixed, and the sums are hashed in their order. Whole numbers add without
    rounding, so the same bits give the same number in any layout, by any order of additions and on any
    processor: there is no margin to choose, and no false alarm. At most one in 2^32 of all keys misses a
    change (fingerprint.c).
    """
    digest = blake2b(digest_size=8)
    if not is_sparse(block):
        digest.update(_sums(_words(np.asarray(block))).tobytes())
        return int.from_bytes(digest.digest(), "little")
    X = block if block.format in ("csr", "csc") else compressed(block)
    for part in (X.data, X.indices, X.indptr):
        words = _words(part)
        whole = len(words) // _FLAT * _FLAT
        digest.update(_sums(words[:whole].reshape(-1, _FLAT)).tobytes())
        digest.update(words[whole:].tobytes())
    return int.from_bytes(digest.digest(), "little")


def _words(a: AnyArray) -> AnyArray:
    """The bits of the entries as whole numbers."""
    if a.dtype.itemsize not in (1, 2, 4, 8):  # long doubles, whose bytes are not all in use
        with beyond_range():
            a = a.astype(np.float64)
    return a.view(np.dtype(f"u{a.dtype.itemsize}").newbyteorder(a.dtype.byteorder))


@lru_cache(maxsize=4)
def _keys(n: int) -> NDArray[np.uint64]:
    return np.random.PCG64(0).random_raw(n)


def _sums(words: AnyArray) -> NDArray[np.uint64]:
    """The sums of the columns, each word times the key of its row."""
    (n, p), size = words.shape, words.itemsize
    keys, out = _keys(n), np.zeros(p, np.uint64)
    ordered = size in words.strides and all(stride % size == 0 for stride in words.strides)
    if ordered and words.flags.aligned and words.dtype.isnative:
        _core.fingerprint(words, keys, out)
        return out
    sums = np.empty(p, np.uint64)
    for part in slices(n, p, CACHED_ENTRIES):
        _core.fingerprint(np.ascontiguousarray(words[part], f"u{size}"), keys[part], sums)
        out += sums
    return out
