"""Functions named as in scipy that work on traced and on plain arrays; the modules are loaded when used."""

from typing import TYPE_CHECKING

from bwcompiler.lazy import loader

if TYPE_CHECKING:
    from bwcompiler.scipy import fft, integrate, interpolate, linalg, ndimage, optimize, signal, sparse, spatial, special, stats

__all__ = ["fft", "integrate", "interpolate", "linalg", "ndimage", "optimize", "signal", "sparse", "spatial", "special", "stats"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = loader(__name__, {}, "fft integrate interpolate linalg ndimage optimize signal sparse spatial special stats")
