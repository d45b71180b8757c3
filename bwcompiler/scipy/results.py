"""What solvers inside of traced functions give besides the solution: as SciPy's results, as far as it is known while tracing.

Texts that data decide refuse to be compared (`Untold`).
"""

from __future__ import annotations

from typing import Any, NoReturn

from bwcompiler import lazy
from bwcompiler.errors import UnsupportedError

scipy_optimize = lazy.module("scipy.optimize")


class Untold(str):
    """A text that data decide: it can be shown, and be part of others, but not be asked for anything.  hint: what says the same."""

    hint: str

    def __new__(cls, what: str, hint: str) -> Untold:
        made = super().__new__(cls, f"<{what}, which is known when the program runs>")
        made.__dict__["hint"] = hint
        return made

    def _refuse(self, *_: Any) -> NoReturn:
        raise UnsupportedError(f"{str.__str__(self)} is asked for what data decide\n  hint: {self.__dict__['hint']}")

    def __getattribute__(self, name: str) -> Any:
        return super().__getattribute__(name) if name.startswith("_") else self._refuse()

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __len__ = __contains__ = __bool__ = __getitem__ = __iter__ = _refuse
    __hash__ = None  # type: ignore[assignment]


def as_result(**fields: Any) -> Any:
    """As `scipy.optimize.OptimizeResult`, with a message."""
    return scipy_optimize.OptimizeResult(**fields, message=Untold("result.message", "result.success says whether a solution was found"))
