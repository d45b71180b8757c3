"""Methods of a `Program` that native code calls directly, once it knows the form of a call: `Calls`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bwcompiler.locks import RenewedLock
from bwcompiler.runtime.executable import CallForm, chain

FORMS = 32                     # most call forms that the native entry tries, per method


class Calls:
    """A method whose calls of a known form go to the native entry; `slow` takes all others."""

    def __init__(self, name: str, slow: Callable[..., Any], install: Callable[[Callable[..., Any]], None]) -> None:
        self.name = name
        self.slow = slow
        self.install = install
        self.forms: list[CallForm] = []
        self.lock = RenewedLock()
        install(slow)

    def add(self, form: CallForm | None) -> None:
        """Let the native entry take calls of this form."""
        if form is not None:
            with self.lock:
                self.forms = [form, *self.forms][:FORMS]
                self.install(chain(self.forms, self.slow, self.name))
