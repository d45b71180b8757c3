"""Functions named as in scipy that work on traced and on plain arrays; other modules than `special` are loaded when used."""

import sys
from typing import Any

from bwcompiler import lazy
from bwcompiler.frontend.tracing.registry import LIBRARIES
from bwcompiler.scipy import special

__all__ = ["fft", "integrate", "linalg", "optimize", "signal", "special", "stats"]
fft: Any = lazy.module("bwcompiler.scipy.fft")
integrate: Any = lazy.module("bwcompiler.scipy.integrate")
linalg: Any = lazy.module("bwcompiler.scipy.linalg")
optimize: Any = lazy.module("bwcompiler.scipy.optimize")
signal: Any = lazy.module("bwcompiler.scipy.signal")
stats: Any = lazy.module("bwcompiler.scipy.stats")
LIBRARIES["scipy"] = sys.modules[__name__]
