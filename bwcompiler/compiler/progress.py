"""One line on stderr for a compilation that takes longer than a second."""

from __future__ import annotations

import _thread
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from bwcompiler.compiler.options import shows_progress

SECONDS = 1.0


@contextmanager
def progress(name: str, operations: int) -> Iterator[None]:
    """A context around the compilation of `operations` operations."""
    if not shows_progress():
        yield
        return
    busy = _thread.allocate_lock()
    busy.acquire()
    _thread.start_new_thread(_show, (busy, name, operations))       # an interrupt could leave the tables of threading.Thread inconsistent
    try:
        yield
    finally:
        busy.release()


def _show(busy: _thread.LockType, name: str, operations: int) -> None:
    """Wait for the end of the compilation, and write the line if it takes longer than SECONDS."""
    stream = sys.stderr
    if not busy.acquire(timeout=SECONDS) and stream is not None:           # stream is None under pythonw
        stream.write(f"bwcompiler: compiling {name} ({operations} operations) takes more than {SECONDS:g} s; BW_PROGRESS=0 is silent\n")
        stream.flush()
