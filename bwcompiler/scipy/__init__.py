"""Functions named as in scipy that work on traced and on plain arrays; other modules than `special` are loaded when used."""

import sys
from typing import Any

from bwcompiler import lazy
from bwcompiler.frontend.tracing.registry import LIBRARIES
from bwcompiler.scipy import special

__all__ = ["fft", "integrate", "interpolate", "linalg", "signal", "special", "stats"]
fft: Any = lazy.module("bwcompiler.scipy.fft")
integrate: Any = lazy.module("bwcompiler.scipy.integrate")
interpolate: Any = lazy.module("bwcompiler.scipy.interpolate")
linalg: Any = lazy.module("bwcompiler.scipy.linalg")
signal: Any = lazy.module("bwcompiler.scipy.signal")
stats: Any = lazy.module("bwcompiler.scipy.stats")
LIBRARIES["scipy"] = sys.modules[__name__]
