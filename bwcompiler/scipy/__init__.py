"""Functions named as in scipy that work on traced and on plain arrays; the modules are loaded on first use.

Unless a docstring says otherwise, arguments, shapes and dtypes of results are those of the SciPy function of the same name, except that
float32 arguments give float32 results throughout (SciPy's `linalg.det`, `integrate.simpson` and distributions return float64).  Functions
raise ShapeError (a ValueError) for shapes that do not fit, DTypeError (a TypeError) for dtypes that are not supported, UnsupportedError
for options that are not supported on traced arrays, and SciPy's ValueError and LinAlgError for invalid values.

Functions of arrays (`special`, `stats`, `linalg`, `signal`, `fft`, `fftpack`, `ndimage`, `interpolate`, `spatial`) are compositions of
NumPy's functions and of ops.  Solvers (`optimize`, `integrate`, `sparse`) call SciPy when the program runs; derivatives are those of the
equation that they solve, by the implicit function theorem (`solutions.py`).
"""

from typing import TYPE_CHECKING

from bwcompiler import spellings
from bwcompiler.lazy import loader

if TYPE_CHECKING:
    from bwcompiler.scipy import fft, fftpack, integrate, interpolate, linalg, ndimage, optimize, signal, sparse, spatial, special, stats

__all__ = ["fft", "fftpack", "integrate", "interpolate", "linalg", "ndimage", "optimize", "signal", "sparse", "spatial", "special", "stats"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = loader(
        __name__, {}, "fft fftpack integrate interpolate linalg ndimage optimize signal sparse spatial special stats",
        lambda name: spellings.missing("bw.scipy", name, lambda: __all__))
