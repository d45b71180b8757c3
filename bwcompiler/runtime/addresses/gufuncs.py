"""Inner loops of NumPy's universal functions by address: factorisations and FFT without Python.

A loop is `void (char **args, intptr_t *dimensions, intptr_t *steps, void *data)`.  `dimensions` begins with the number of
iterations, then the core extents; `steps` with one step per operand, then the core strides in bytes, operand by operand.
The callee changes `args`.  numpy.linalg's loops report failure by NaN in the outputs and the invalid flag.  They need no GIL.
Source of the layout: struct _tagPyUFuncObject in numpy/ufuncobject.h (unchanged up to `types` from 1.7 to 2.4).
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any, NamedTuple

import numpy as np

from bwcompiler.lazy import imported

_HEADER = object.__basicsize__
_COUNTS = _HEADER  # int nin, nout, nargs, identity
_FUNCTIONS, _DATA, _LOOPS, _TYPES = _HEADER + 16, _HEADER + 24, _HEADER + 32, _HEADER + 48
_CHARACTERS: dict[int, str] = {np.dtype(character).num: character for character in "?bhilqBHILQefdgFDGmM"}      # by NumPy's type numbers


class InnerLoop(NamedTuple):
    function: int
    data: int  # to be passed as the last argument; may be 0
    signature: str  # core dimensions, "(m,m)->(m,m)"; "" for an elementwise function


def fft_loop(name: str, types: str) -> InnerLoop | None:
    """The loop of numpy.fft._pocketfft_umath.<name> ("fft", "rfft_n_even", ...) for `types` such as "Dd->D"."""
    return loop_of_module("numpy.fft._pocketfft_umath", name, types)


@functools.cache
def loop_of_module(module: str, name: str, types: str) -> InnerLoop | None:
    """The loop of a ufunc of any module (numpy, scipy.special ...), if the ufunc and the loop exist."""
    try:  # private modules may move, and then there is no loop
        ufunc = getattr(imported(module), name, None)
    except ImportError:
        return None
    return inner_loop(ufunc, types) if isinstance(ufunc, np.ufunc) else None


def inner_loop(ufunc: np.ufunc, types: str) -> InnerLoop | None:
    """The loop of `ufunc` for exactly these type characters; None if there is none or the layout is not as expected."""
    if types not in ufunc.types or not _layout_holds(ufunc):
        return None
    number = ufunc.types.index(types)
    function = _pointers(ufunc, _FUNCTIONS)[number] or 0
    data = _pointers(ufunc, _DATA)[number] if ctypes.c_void_p.from_address(id(ufunc) + _DATA).value else 0
    return InnerLoop(function, data or 0, ufunc.signature or "") if function else None


def _pointers(ufunc: np.ufunc, offset: int) -> Any:
    array_type = ctypes.c_void_p * ufunc.ntypes
    return array_type.from_address(ctypes.c_void_p.from_address(id(ufunc) + offset).value or 0)


@functools.cache
def _layout_holds(ufunc: np.ufunc) -> bool:
    """Compare the object in memory with its attributes in Python."""
    counts = tuple((ctypes.c_int * 3).from_address(id(ufunc) + _COUNTS))
    loops = ctypes.c_int.from_address(id(ufunc) + _LOOPS).value
    if (counts, loops) != ((ufunc.nin, ufunc.nout, ufunc.nargs), ufunc.ntypes):
        return False
    table = ctypes.c_void_p.from_address(id(ufunc) + _TYPES).value
    if not table or not ctypes.c_void_p.from_address(id(ufunc) + _FUNCTIONS).value:
        return False
    numbers = ctypes.string_at(table, ufunc.nargs * loops)
    rows = [numbers[start : start + ufunc.nargs] for start in range(0, len(numbers), ufunc.nargs)]
    return [_characters(row, ufunc.nin) for row in rows] == list(ufunc.types)


def _characters(numbers: bytes, inputs: int) -> str:
    """Type numbers as NumPy's notation of loops: "dd->d"."""
    characters = [_CHARACTERS.get(number, "O") for number in numbers]
    return f"{''.join(characters[:inputs])}->{''.join(characters[inputs:])}"
