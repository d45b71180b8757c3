"""The number of threads that compiled programs use: in their loops (`pool/thread_pool.py`) and in the libraries they call.

The BLAS is the one NumPy uses, so the number holds for NumPy's own products too.
"""

from __future__ import annotations

import ctypes
import operator
import os
from collections.abc import Callable

from bwcompiler.ir.contracts.program_interface import PARALLEL
from bwcompiler.locks import once
from bwcompiler.runtime import machine
from bwcompiler.runtime.addresses import blas
from bwcompiler.runtime.pool import thread_pool
from bwcompiler.uninterrupted import in_background


class _Setting:
    count: int | None = None
    pool: thread_pool.ThreadPool | None = None
    set_blas: Callable[[int], object] | None = None
    is_begun = False


def get_num_threads() -> int:
    """The number of threads that compiled programs may use, an int.

    By default: the number of CPUs that the process may use (affinity, quota of the control group), or fewer if the BLAS was configured
    so (OMP_NUM_THREADS, OPENBLAS_NUM_THREADS).  Raises nothing.

    >>> import bwcompiler as bw
    >>> bw.get_num_threads() >= 1
    True
    """
    if _Setting.count is None:
        found = blas.find()
        known = found is not None and found.get_num_threads
        told = int(ctypes.CFUNCTYPE(ctypes.c_int)(found.get_num_threads)()) if found and known else 2**31
        _Setting.count = max(1, min(machine.usable_cpus(), told))
    return _Setting.count


def set_num_threads(n: int) -> None:
    """Let compiled programs use n threads, from now on and in the whole process (NumPy's matrix products included).

    Results of compiled loops and matrix products do not depend on it, bit for bit.  The environment variable BW_NUM_THREADS sets it
    when the compiler is first used.
    Raises TypeError if n is not an integer, ValueError if it is less than 1.

    >>> import bwcompiler as bw
    >>> before = bw.get_num_threads()
    >>> bw.set_num_threads(1)
    >>> bw.get_num_threads()
    1
    >>> bw.set_num_threads(before)
    """
    count = operator.index(n)
    if count < 1:
        raise ValueError(f"set_num_threads({n}): a program needs at least one thread")
    set_blas_threads(count)
    _Setting.count = count
    if _Setting.pool is not None:
        _Setting.pool.set_threads(count)


def set_blas_threads(count: int) -> None:
    """Let NumPy's own products use that many threads, whatever compiled programs use."""
    found = blas.find()
    if _Setting.set_blas is not None:
        _Setting.set_blas(count)
    elif found is not None and found.set_num_threads:
        ctypes.CFUNCTYPE(None, ctypes.c_int)(found.set_num_threads)(count)


@once
def pool() -> thread_pool.ThreadPool:
    """The pool of this process, with the configured number of threads."""
    _Setting.pool = thread_pool.pool()
    _Setting.pool.set_threads(get_num_threads())
    return _Setting.pool


def begin() -> None:
    """Start compiling the pool in a background thread, unless that was done."""
    if _Setting.pool is None and not _Setting.is_begun:
        _Setting.is_begun = True
        in_background(pool)


def symbols() -> dict[str, int]:
    """The symbol for programs: `i32 bw_parallel(ptr fn, ptr context, i64 count, i64 grain)`."""
    return {PARALLEL: pool().address}


def set_blas_by(function: Callable[[int], object]) -> None:
    """Register the function that sets the number of BLAS threads outside of programs."""
    _Setting.set_blas = function


def _read_environment() -> None:
    """Apply BW_NUM_THREADS, if it is set."""
    text = os.environ.get("BW_NUM_THREADS")
    if text is None:
        return
    if not text.strip().isdecimal() or int(text) < 1:
        raise ValueError(f"BW_NUM_THREADS={text!r}: expected a number of threads, such as BW_NUM_THREADS=2")
    set_num_threads(int(text))


_read_environment()
