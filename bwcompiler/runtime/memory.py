"""The public interface of the pool of large memory blocks (`memory_pool.py`): statistics, and release."""

from __future__ import annotations

from typing import NamedTuple

from bwcompiler.runtime import memory_pool, python_abi


class MemoryStats(NamedTuple):
    """Memory of large results and arenas of compiled programs; sizes in bytes.

    used       blocks of live results and of arenas in running calls
    cached     blocks of dead ones, kept for the next calls
    limit      the limit of `cached`; blocks beyond it are returned to the system
    hits       number of blocks taken from the cache since the start of the process
    misses     number of blocks taken from the system
    """

    used: int
    cached: int
    limit: int
    hits: int
    misses: int


def memory_stats() -> MemoryStats:
    """The memory of large results and arenas of compiled programs (arrays of any dtype from 256 KB on), as a `MemoryStats`.

    When the last reference to such a result and its views is gone, its memory is cached for the next result of about that size,
    because new memory from the system costs more than most arithmetic.  At most an eighth of the machine's memory is cached (the
    environment variable BW_MEMORY_BYTES sets another number of bytes); the least recently used blocks are released first, and blocks
    that were idle for 10 s are released when another result dies.  All values are zero on interpreters other than CPython.  Raises
    nothing.

    >>> import numpy as np, bwcompiler as bw
    >>> y = bw.jit(np.sin)(np.ones(100_000))
    >>> bw.memory_stats().used >= y.nbytes
    True
    >>> del y
    >>> bw.memory_stats().cached >= 800_000
    True
    """
    if not python_abi.is_supported():
        return MemoryStats(0, 0, 0, 0, 0)
    pool = memory_pool.pool()
    return MemoryStats(*(pool.word(name) for name in ("used", "kept", "limit", "hits", "misses")))


def release_memory() -> int:
    """Return the cached memory of dead results and arenas to the system; returns the number of bytes.  Live results are not affected.

    >>> import bwcompiler as bw
    >>> released = bw.release_memory()
    >>> bw.memory_stats().cached
    0
    """
    return memory_pool.pool().trim(0, 0) if python_abi.is_supported() else 0
