"""`ProgramParts`: the modules of one program, compiled in background threads while the program is still being written.

LLVM runs without the GIL, so on a second CPU it costs the writing thread next to nothing.
"""

from __future__ import annotations

import contextlib
from collections import deque
from functools import partial

from bwcompiler.collector import collect_meanwhile
from bwcompiler.locks import RenewedLock
from bwcompiler.runtime import machine, object_cache
from bwcompiler.runtime.compiled_once import CompiledOnce
from bwcompiler.target import Target
from bwcompiler.uninterrupted import in_background

MOST_HELPERS = 4               # there are twice as many of LLVM's lanes (`jit`), for all that compiles


class ProgramParts:
    """`begin` takes them as they come, on up to MOST_HELPERS other CPUs; `codes` waits for them all."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.most = max(1, min(machine.usable_cpus() - 1, MOST_HELPERS))
        self.parts: list[CompiledOnce] = []
        self.lock = RenewedLock()
        self.waiting: deque[CompiledOnce] = deque()
        self.helpers = 0                           # threads that compile

    def begin(self, text: str) -> None:
        """Compile a module, as soon as a helper has time for it."""
        part = CompiledOnce(partial(object_cache.object_for, text, self.target))
        self.parts.append(part)
        with self.lock:
            self.waiting.append(part)
            wanted = self.helpers < self.most
            self.helpers += wanted
        if wanted:
            in_background(self._help)

    def codes(self) -> list[bytes]:
        """The object code of all modules, in order.  The calling thread compiles some of those that wait."""
        while (part := self._next()) is not None:
            part.code()
        if any(part.compiled is None for part in self.parts):
            collect_meanwhile()
        return [part.code() for part in self.parts]

    def _help(self) -> None:
        while (part := self._next(1)) is not None:
            with contextlib.suppress(Exception):       # raised once more where it is waited for
                part.code()

    def _next(self, helpers: int = 0) -> CompiledOnce | None:
        """A part that waits; if there is none, these helpers end."""
        with self.lock:
            if self.waiting:
                return self.waiting.popleft()
            self.helpers -= helpers
            return None
