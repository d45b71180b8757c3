"""How long threads wait for the interpreter while programs are compiled: `short_turns`.

A thread that comes back from LLVM waits for the interpreter's lock until the thread that has it gives it up: 5 ms later, where that one is
busy.  A module takes LLVM some ten calls, so that threads which compile beside tracing and lowering would do little but wait.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from bwcompiler.locks import RenewedLock, in_forked_child

SHORT = 2e-4                   # seconds; giving the lock up takes some microseconds


_lock = RenewedLock()
_compiling: list[int] = []     # the threads that do


class _Interval:
    """What was set before the first of them began, and what they set."""

    before = ours = 0.0


@contextmanager
def short_turns() -> Iterator[None]:
    """While programs are compiled: what was set before holds again after the last one, unless somebody sets another interval."""
    with _lock:
        if not _compiling:
            _Interval.before = sys.getswitchinterval()
            sys.setswitchinterval(min(SHORT, _Interval.before))
            _Interval.ours = sys.getswitchinterval()
        _compiling.append(threading.get_ident())
    try:
        yield
    finally:
        with _lock:
            _compiling.remove(threading.get_ident())
            _end()


def _end() -> None:
    if not _compiling and sys.getswitchinterval() == _Interval.ours:
        sys.setswitchinterval(_Interval.before)


def _without_others() -> None:
    """Other threads do not live in a forked child: what they would set back is set back here."""
    if _compiling:
        _compiling[:] = [thread for thread in _compiling if thread == threading.get_ident()]
        _end()


in_forked_child(_without_others)
