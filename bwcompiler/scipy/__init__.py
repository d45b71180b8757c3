"""Functions named as in scipy that work on traced and on plain arrays; other modules than `special` are loaded when used."""

from typing import Any

from bwcompiler import lazy
from bwcompiler.scipy import special

__all__ = ["fft", "special", "stats"]
fft: Any = lazy.module("bwcompiler.scipy.fft")
stats: Any = lazy.module("bwcompiler.scipy.stats")
