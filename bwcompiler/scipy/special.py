"""Functions of scipy.special that work on traced and on plain arrays: `dir(bw.scipy.special)` lists them."""

from typing import Any

from bwcompiler.frontend.tracing.registry import nearest
from bwcompiler.scipy.special_functions import FUNCTIONS

__all__ = sorted(FUNCTIONS)
globals().update(FUNCTIONS)


def __getattr__(name: str) -> Any:
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{nearest(name, list(FUNCTIONS))}")
