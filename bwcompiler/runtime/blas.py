"""NumPy's BLAS by address (interim)."""

from __future__ import annotations

import ctypes
import glob
import os
from typing import NamedTuple

import numpy as np


class Blas(NamedTuple):
    sgemm: int
    dgemm: int
    integers_64: bool


def find() -> Blas | None:
    """The cblas gemm routines of the BLAS that NumPy brings."""
    for path in glob.glob(os.path.join(os.path.dirname(np.__file__), "..", "numpy.libs", "*openblas*")):
        lib = ctypes.CDLL(path)
        a = [ctypes.cast(getattr(lib, f"scipy_cblas_{c}gemm64_"), ctypes.c_void_p).value or 0 for c in "sd"]
        return Blas(a[0], a[1], True)
    return None
