"""Functions named as in scipy that work on traced and on plain arrays; the modules are loaded when used.

Functions of arrays (`special`, `stats`, `linalg`, `signal`, `fft`, `ndimage`, `interpolate`, `spatial`) are compositions of NumPy's
functions and of ops.  Solvers (`optimize`, `integrate`, `sparse`) call SciPy when the program runs; the derivative is that of the
equation that they solve (`solutions.py`).
"""

from typing import TYPE_CHECKING

from bwcompiler import spellings
from bwcompiler.lazy import loader

if TYPE_CHECKING:
    from bwcompiler.scipy import fft, integrate, interpolate, linalg, ndimage, optimize, signal, sparse, spatial, special, stats

__all__ = ["fft", "integrate", "interpolate", "linalg", "ndimage", "optimize", "signal", "sparse", "spatial", "special", "stats"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = loader(__name__, {}, "fft integrate interpolate linalg ndimage optimize signal sparse spatial special stats",
                                  lambda name: spellings.missing("bw.scipy", name, lambda: __all__))
