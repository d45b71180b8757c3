"""The number of threads that compiled programs use, in the libraries they call.

Loops of a program run in the calling thread; matrix products run on the BLAS's threads.  The BLAS is the one NumPy uses,
so the number holds for NumPy's own products too.
"""

from __future__ import annotations

import ctypes
import operator
import os

from bwcompiler.runtime import blas


class _Setting:
    count: int | None = None


def get_num_threads() -> int:
    """The number of threads that compiled programs may use.

    >>> import bwcompiler as bw
    >>> bw.get_num_threads() >= 1
    True
    """
    if _Setting.count is None:
        found = blas.find()
        if found is None or not found.get_num_threads:
            return available_cpus()
        return int(ctypes.CFUNCTYPE(ctypes.c_int)(found.get_num_threads)())
    return _Setting.count


def set_num_threads(n: int) -> None:
    """Let compiled programs use n threads, from now on and in the whole process (NumPy's matrix products included).

    The environment variable BW_NUM_THREADS sets it at import.  Raises TypeError for what is no integer, ValueError below 1.

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
    found = blas.find()
    if found is not None and found.set_num_threads:
        ctypes.CFUNCTYPE(None, ctypes.c_int)(found.set_num_threads)(count)
    _Setting.count = count


def available_cpus() -> int:
    """CPUs this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def read_environment() -> None:
    """Obey BW_NUM_THREADS, if it is set."""
    text = os.environ.get("BW_NUM_THREADS")
    if text is None:
        return
    if not text.strip().isdecimal() or int(text) < 1:
        raise ValueError(f"BW_NUM_THREADS={text!r}: expected a number of threads, such as BW_NUM_THREADS=2")
    set_num_threads(int(text))
