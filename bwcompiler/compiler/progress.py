"""One line on stderr for a compilation that takes longer than a second, so that nobody wonders what is going on."""

from __future__ import annotations

import _thread
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from bwcompiler.compiler.options import shows_progress

SECONDS = 1.0


@contextmanager
def progress(name: str, operations: int) -> Iterator[None]:
    """Around a compilation of so many operations."""
    if not shows_progress():
        yield
        return
    busy = _thread.allocate_lock()
    busy.acquire()
    _thread.start_new_thread(_show, (busy, name, operations))       # threading.Thread has tables that an interrupt leaves torn
    try:
        yield
    finally:
        busy.release()


def _show(busy: _thread.LockType, name: str, operations: int) -> None:
    """Wait for the end of the compilation, and write the line if that is too long."""
    stream = sys.stderr
    if not busy.acquire(timeout=SECONDS) and stream is not None:           # there is none under pythonw
        stream.write(f"bwcompiler: compiling {name} ({operations} operations) takes more than {SECONDS:g} s; BW_PROGRESS=0 is silent\n")
        stream.flush()
