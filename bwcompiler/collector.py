"""The cyclic garbage collector, off while much is made that stays."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from bwcompiler.locks import in_forked_child


@contextmanager
def collector_paused() -> Iterator[None]:
    """Compilation makes many objects that all stay: the collector would only walk them again and again."""
    enabled = gc.isenabled()
    if enabled:
        _pausing.append(threading.get_ident())
        gc.disable()
    try:
        yield
    finally:
        if enabled:
            _pausing.remove(threading.get_ident())
            gc.enable()


_pausing: list[int] = []                        # threads that will turn the collector on again


def _resume_in_child() -> None:
    """Other threads do not live in a forked child: the collector they paused would stay off."""
    if _pausing and threading.get_ident() not in _pausing:
        gc.enable()
    _pausing[:] = [thread for thread in _pausing if thread == threading.get_ident()]


in_forked_child(_resume_in_child)
