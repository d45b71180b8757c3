"""Addresses of BLAS and LAPACK in the library that NumPy itself uses, found among the libraries mapped into the process.

NumPy's wheels bring OpenBLAS with 64-bit integers and prefixed names; other builds use the system's cblas or Accelerate.
A library is used only if a small test product is correct.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np


class Blas(NamedTuple):
    """Addresses of the routines of one library.

    routines   by name with the letter of the type ("dgemm", "dtrsm": cblas; "dgetrf": LAPACK); only existing ones.
    """

    routines: Mapping[str, int]
    integers_64: bool  # extents and leading dimensions are 64 bit (enumerations are always 32 bit)
    set_num_threads: int  # void (int); OpenBLAS only; 0 elsewhere
    get_num_threads: int  # int ()
    path: str


# (name of a cblas routine, of a LAPACK routine, names of set/get_num_threads).  NumPy 2 wheels, NumPy 1.26 wheels, others.
_SPELLINGS = (
    ("scipy_cblas_{}64_", "scipy_{}_64_", "scipy_openblas_{}_num_threads64_", True),
    ("cblas_{}64_", "{}_64_", "openblas_{}_num_threads64_", True),
    ("scipy_cblas_{}", "scipy_{}_", "scipy_openblas_{}_num_threads", False),
    ("cblas_{}", "{}_", "openblas_{}_num_threads", False),
)
_CBLAS = ("sgemm", "dgemm", "cgemm", "zgemm", "strsm", "dtrsm", "strsv", "dtrsv")
_COMPLEX = ("ctrsm", "ztrsm", "ctrsv", "ztrsv")
_LAPACK = ("sgetrf", "dgetrf", "cgetrf", "zgetrf")
_ACCELERATE = "/System/Library/Frameworks/Accelerate.framework/Accelerate"
_ROW_MAJOR, _NO_TRANSPOSE, _TRANSPOSE = 101, 111, 112


@functools.cache
def find() -> Blas | None:
    """The BLAS of this process; None if there is no working one."""
    for path in _candidates():
        try:
            library = ctypes.CDLL(path)
        except OSError:
            continue
        for routine, lapack, threads, integers_64 in _SPELLINGS:
            found = {name: _address(library, routine.format(name)) for name in _CBLAS}
            if not all(found.values()) or not _works(found["dgemm"], integers_64):
                continue
            found.update((name, address) for name in _COMPLEX if (address := _address(library, routine.format(name))))
            found.update((name, address) for name in _LAPACK if (address := _address(library, lapack.format(name))))
            setter, getter = (_address(library, threads.format(verb)) for verb in ("set", "get"))
            return Blas(found, integers_64, setter, getter, path)
    return None


def _candidates() -> Iterator[str]:
    """Libraries that may be NumPy's BLAS, most likely ones first."""
    package = Path(np.__file__).parent
    bundled = [*package.parent.glob("numpy.libs/*blas*"), *package.glob(".dylibs/*blas*")]
    # SciPy may have mapped another OpenBLAS, with its own threads: NumPy's libraries come first.
    yield from map(str, sorted(bundled))
    yield from _mapped_libraries()
    if sys.platform == "darwin":
        yield _ACCELERATE


def _mapped_libraries() -> list[str]:
    try:
        maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return []
    fields = (line.split(maxsplit=5) for line in maps.splitlines())
    paths = dict.fromkeys(field[5] for field in fields if len(field) == 6)
    wanted = ("blas", "mkl_rt", "blis")
    found = [path for path in paths if any(word in Path(path).name.lower() for word in wanted)]
    return sorted(found, key=lambda path: "scipy.libs" in path)


def _address(library: ctypes.CDLL, name: str) -> int:
    function = getattr(library, name, None)
    return 0 if function is None else ctypes.cast(function, ctypes.c_void_p).value or 0


def _works(dgemm: int, integers_64: bool) -> bool:
    """Multiply a 2x3 matrix by a transposed 4x3 one; a wrong integer size gives a wrong result."""
    integer: Any = ctypes.c_int64 if integers_64 else ctypes.c_int32
    pointer, double, enumeration = ctypes.c_void_p, ctypes.c_double, ctypes.c_int32
    function = ctypes.CFUNCTYPE(
        None,
        *(enumeration, enumeration, enumeration, integer, integer, integer, double),
        *(pointer, integer, pointer, integer, double, pointer, integer),
    )(dgemm)
    left, right = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(4, 3)
    product = np.zeros((2, 4))
    places = (array.__array_interface__["data"][0] for array in (left, right, product))
    at_left, at_right, at_product = places
    function(_ROW_MAJOR, _NO_TRANSPOSE, _TRANSPOSE, 2, 4, 3, 1.0, at_left, 3, at_right, 3, 0.0, at_product, 4)
    return bool(np.array_equal(product, [[5.0, 14.0, 23.0, 32.0], [14.0, 50.0, 86.0, 122.0]]))
