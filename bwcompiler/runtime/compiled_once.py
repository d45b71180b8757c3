"""`CompiledOnce`: the object code of one module, which several threads may ask for."""

from __future__ import annotations

from collections.abc import Callable

from bwcompiler.locks import RenewedLock


class CompiledOnce:
    """The thread that asks first compiles; others wait for it, and get the same.  An error is raised to each, who tries again."""

    def __init__(self, compile_: Callable[[], bytes]) -> None:
        self.compile = compile_
        self.lock = RenewedLock()
        self.compiled: bytes | None = None         # to be looked at without waiting

    def code(self) -> bytes:
        with self.lock:
            if self.compiled is None:
                self.compiled = self.compile()
            return self.compiled
