"""One line on stderr for a compilation that takes longer than a second, so that nobody wonders what is going on."""

from __future__ import annotations

import sys
import threading
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
    timer = threading.Timer(SECONDS, _show, (name, operations))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _show(name: str, operations: int) -> None:
    stream = sys.stderr
    if stream is not None:                         # there is none under pythonw
        stream.write(f"bwcompiler: compiling {name} ({operations} operations) takes more than {SECONDS:g} s; BW_PROGRESS=0 is silent\n")
        stream.flush()
