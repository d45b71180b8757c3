"""How long threads wait for the interpreter while programs are compiled: `short_turns`.

A thread that comes back from LLVM waits for the interpreter's lock until the thread that has it gives it up: 5 ms later, where that one is
busy.  A module takes LLVM twenty calls, so that threads which compile beside tracing and lowering would do little but wait.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from bwcompiler.locks import RenewedLock

SHORT = 2e-4                   # seconds; giving the lock up takes some microseconds


class _Turns:
    """How many threads compile, and the interval that was set before the first of them began."""

    lock = RenewedLock()
    depth = 0
    before = ours = 0.0


@contextmanager
def short_turns() -> Iterator[None]:
    """While programs are compiled: what was set before holds again after the last one, unless somebody sets another interval."""
    with _Turns.lock:
        _Turns.depth += 1
        if _Turns.depth == 1:
            _Turns.before = sys.getswitchinterval()
            sys.setswitchinterval(min(SHORT, _Turns.before))
            _Turns.ours = sys.getswitchinterval()
    try:
        yield
    finally:
        with _Turns.lock:
            _Turns.depth -= 1
            if _Turns.depth == 0 and sys.getswitchinterval() == _Turns.ours:
                sys.setswitchinterval(_Turns.before)
