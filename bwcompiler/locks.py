"""Locks that survive `os.fork`.  A child has only the thread that forked: what other threads held, nobody will ever give back.

`RenewedLock`    for state that is whole at every moment (a dict gets its entry last): free in the child.
`held_at_fork`   for state that is torn meanwhile (LLVM's): the fork waits until the lock is free, so the work under it must end.
`importing`      such a lock, around imports on first use (`lazy.py`).
`once`, `renewed_properties`   what is computed once, under the first kind of lock.

A fork takes `importing` first and then the lock that was made last.  Modules make theirs when imported, so a lock is never waited for
while one is held that the owner may need: code holds a lock only while it calls modules that it imports, and never imports under one.
"""

from __future__ import annotations

import functools
import logging  # noqa: F401  (takes a lock when forking, too: imported while a fork waits here, it would give back what it never took)
import os
import threading
import weakref
from collections.abc import Callable
from typing import TypeVar


def in_forked_child(action: Callable[[], object]) -> None:
    """Call action in every child of this process, right after the fork."""
    if hasattr(os, "register_at_fork"):            # not on Windows, which has no fork either
        os.register_at_fork(after_in_child=action)


importing = threading.RLock()
_held_at_fork = [importing]
_taken: list[threading.RLock] = []


def held_at_fork() -> threading.RLock:
    """A re-entrant lock that the forking thread takes before a fork, and gives back in parent and child."""
    lock = threading.RLock()
    _held_at_fork.insert(1, lock)
    return lock


def _take_all() -> None:
    while True:
        locks = list(_held_at_fork)
        for lock in locks:
            lock.acquire()
        if len(locks) == len(_held_at_fork):
            _taken[:] = locks
            return
        _give_back(locks)                          # the import that was waited for has made more


def _give_back(locks: list[threading.RLock]) -> None:
    for lock in locks:
        lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_take_all, after_in_parent=lambda: _give_back(_taken), after_in_child=lambda: _give_back(_taken))


class RenewedLock:
    """A re-entrant lock that is free in a forked child, unless the thread that forked holds it."""

    __slots__ = ("__weakref__", "_lock")

    def __init__(self) -> None:
        self._lock = threading.RLock()
        _renewed.add(self)

    # `with` calls what these give, C functions: an interrupt cannot come between them and the block.  In functions of ours it could,
    # and the lock would stay taken for ever.
    @property
    def __enter__(self) -> Callable[[], bool]:
        return self._lock.__enter__

    @property
    def __exit__(self) -> Callable[..., None]:
        return self._lock.__exit__

    def renew(self) -> None:
        """Forget an owner that is not this thread."""
        if self._lock.acquire(blocking=False):
            self._lock.release()
        else:
            self._lock = threading.RLock()


_renewed: weakref.WeakSet[RenewedLock] = weakref.WeakSet()


def _renew_all() -> None:
    for lock in list(_renewed):
        lock.renew()


in_forked_child(_renew_all)


Computed = TypeVar("Computed")


def once(function: Callable[..., Computed]) -> Callable[..., Computed]:
    """functools.cache, but that threads that come at the same time wait for the first and share its result.

    For results whose owner must not be dropped: addresses of loaded code outlive the loser's copy otherwise.
    """
    lock, results = RenewedLock(), dict[tuple[object, ...], Computed]()

    @functools.wraps(function)
    def cached(*args: object) -> Computed:
        if args not in results:
            with lock:
                if args not in results:
                    results[args] = function(*args)
        return results[args]

    return cached


Class = TypeVar("Class", bound=type)


def renewed_properties(cls: Class) -> Class:
    """A decorator of classes, which may be another library's: every functools.cached_property of the class can be asked in forked children.

    Before Python 3.12 such a property has a lock for all objects of the class.  A thread that computes it while another one forks holds
    this lock in the child for ever: no object there would get its value.
    """
    for base in cls.__mro__:
        for attribute in vars(base).values():
            if isinstance(attribute, functools.cached_property) and hasattr(attribute, "lock"):
                attribute.lock = RenewedLock()
    return cls
