"""What users see of the pool of large blocks (`memory_pool.py`): how much it holds, and how to release that."""

from __future__ import annotations

from typing import NamedTuple

from bwcompiler.runtime import memory_pool, python_abi


class MemoryStats(NamedTuple):
    """Large results and arenas of compiled programs; sizes in bytes.

    used       of results that are alive, and of arenas of calls that are running
    cached     of dead ones, kept for the next calls
    limit      of `cached`: what is beyond it is given back to the system
    hits       blocks that came from the cache since the start of the process
    misses     blocks that came from the system
    """

    used: int
    cached: int
    limit: int
    hits: int
    misses: int


def memory_stats() -> MemoryStats:
    """How much memory large results and arenas of compiled programs take (those of 256 KB and more).

    When the last reference to such a result and to every view of it is gone, its memory is kept for the next result of about
    its size, because memory that is new to the process costs more than most arithmetic.  At most an eighth of the machine's
    memory is kept (the environment variable BW_MEMORY_BYTES sets the number of bytes), the least recently used goes first, and
    what lay idle for 10 s goes when another result dies.  Zeros where programs are called through Python (no CPython).

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
    """Give the memory of dead results and arenas back to the system; the number of bytes.  Results that are alive stay as they are.

    >>> import bwcompiler as bw
    >>> released = bw.release_memory()
    >>> bw.memory_stats().cached
    0
    """
    return memory_pool.pool().trim(0, 0) if python_abi.is_supported() else 0
