"""Work that no handler of a signal may tear in two.

Python runs such handlers in the main thread, between any two of its steps, and what they raise (Ctrl-C, for one) ends the step: a lock is
taken and never given back, memory is freed and still known.  In code of our own that can be written down; that of a library, such as
llvmlite's around LLVM, is run where no handler runs, by a thread.  The main thread waits for it.  When that is interrupted, the work is
still done to its end.
"""

from __future__ import annotations

import _thread
import atexit
import contextlib
import functools
import threading
from collections.abc import Callable
from typing import Generic, ParamSpec, TypeVar

from bwcompiler.locks import in_forked_child

P = ParamSpec("P")
R = TypeVar("R")


def uninterrupted(function: Callable[P, R]) -> Callable[P, R]:
    """A decorator: called from the main thread, the function runs in a thread of its own, to its end.

    Starting the thread takes less than 0.1 ms.  Locks that the main thread holds are not the function's, so it must need none of them.
    """
    @functools.wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        if threading.get_ident() != threading.main_thread().ident:
            return function(*args, **kwargs)
        work = _Work(functools.partial(function, *args, **kwargs))
        try:
            _thread.start_new_thread(work.run, ())     # one step; those of threading.Thread are many, which an interrupt tears
        except RuntimeError:                           # an interpreter that ends starts no threads
            work.run()
        return work.outcome()

    return called


def in_background(work: Callable[[], object]) -> None:
    """Do what is only to be done early, in a thread of its own; who needs it does it where an interpreter that ends starts no threads.

    What it raises is raised again where it is needed.
    """
    with contextlib.suppress(RuntimeError):
        _thread.start_new_thread(_Work(work).run, ())


class _Work(Generic[R]):
    def __init__(self, action: Callable[[], R]) -> None:
        self.action = action
        self.results: list[R] = []
        self.errors: list[BaseException] = []
        self.done = _thread.allocate_lock()
        self.done.acquire()

    def run(self) -> None:
        _running.add(self.done)
        try:
            self.results.append(self.action())
        except BaseException as error:                 # raised where it is waited for
            self.errors.append(error)
        finally:
            _running.discard(self.done)
            self.done.release()

    def outcome(self) -> R:
        """Wait; what the action gave or raised."""
        self.done.acquire()
        if self.errors:
            raise self.errors.pop()
        return self.results.pop()                      # not kept by the thread, which may still be on its last step


_running: set[_thread.LockType] = set()
in_forked_child(_running.clear)                        # whose threads do not live there


@atexit.register
def _wait() -> None:
    """The process does not end in the middle of an interrupted piece of work: libraries are taken down then."""
    for done in list(_running):
        done.acquire()
