"""The cyclic garbage collector, off while much is made that stays."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from bwcompiler.locks import in_forked_child


@contextmanager
def collector_paused(for_ever: bool = False) -> Iterator[None]:
    """Compilation makes many objects that all stay: the collector would only walk them again and again.  for_ever: what is made is
    modules, which it need not even walk once."""
    enabled = gc.isenabled()
    if enabled:
        _pausing.append(threading.get_ident())
        gc.disable()
    try:
        yield
    finally:
        if enabled:
            _pausing.remove(threading.get_ident())
            if for_ever and gc.get_count()[0] > MANY and not gc.get_freeze_count():
                gc.freeze()                     # all that lives is old then, without a walk; what others froze stays so
                gc.unfreeze()
            gc.enable()


def collect_meanwhile() -> None:
    """Walk what was made, as the collector does when it is turned on again: in a thread that would only wait for others now."""
    if _pausing and gc.get_count()[0] > MANY:
        gc.collect(0)


MANY = 20_000                                   # objects, of which a walk takes more than a millisecond

_pausing: list[int] = []                        # threads that will turn the collector on again


def _resume_in_child() -> None:
    """Other threads do not live in a forked child: the collector they paused would stay off."""
    if _pausing and threading.get_ident() not in _pausing:
        gc.enable()
    _pausing[:] = [thread for thread in _pausing if thread == threading.get_ident()]


in_forked_child(_resume_in_child)
