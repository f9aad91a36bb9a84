"""Whether a block of rows is what it was: a number that two reads of the same rows have in common.

Each entry is taken as a whole number, by its bits. The columns are summed modulo 2^64, each entry times a key
of its row, random and fixed, and the sums are hashed in their order. Whole numbers add without rounding, so
the same bits give the same number in any layout, by any order of additions and on any processor: there is no
margin to choose, and no false alarm. At most one in 2^32 of all keys misses a change (fingerprint.c).
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._limits import CACHED_ENTRIES
from .._validation import is_sparse
from .sparse_format import compressed

__all__ = ["fingerprint"]

_FLAT = 1 << 10  # entries in a line of what has one dimension


def fingerprint(block: Any) -> int:
    """The number of a block: an array of numbers, dense or sparse."""
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


def _words(a: NDArray[Any]) -> NDArray[Any]:
    """The bits of the entries as whole numbers."""
    if a.dtype.itemsize not in (1, 2, 4, 8):  # long doubles, whose bytes are not all in use
        with np.errstate(over="ignore"):
            a = a.astype(np.float64)
    return a.view(np.dtype(f"u{a.dtype.itemsize}").newbyteorder(a.dtype.byteorder))


@lru_cache(maxsize=4)
def _keys(n: int) -> NDArray[np.uint64]:
    return np.random.PCG64(0).random_raw(n)


def _sums(words: NDArray[Any]) -> NDArray[np.uint64]:
    """The sums of the columns, each word times the key of its row."""
    (n, p), size = words.shape, words.itemsize
    keys, out = _keys(n), np.zeros(p, np.uint64)
    ordered = size in words.strides and all(stride % size == 0 for stride in words.strides)
    if ordered and words.flags.aligned and words.dtype.isnative:
        _core.fingerprint(words, keys, out)
        return out
    part, step = np.empty(p, np.uint64), max(1, CACHED_ENTRIES // p)
    for start in range(0, n, step):
        rows = np.ascontiguousarray(words[start : start + step], f"u{size}")
        _core.fingerprint(rows, keys[start : start + step], part)
        out += part
    return out
