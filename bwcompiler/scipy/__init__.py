"""Functions named as in scipy that work on traced and on plain arrays; other modules than `special` are loaded when used."""

from typing import Any

from bwcompiler import lazy
from bwcompiler.scipy import special

__all__ = ["linalg", "special", "stats"]
linalg: Any = lazy.module("bwcompiler.scipy.linalg")
stats: Any = lazy.module("bwcompiler.scipy.stats")
