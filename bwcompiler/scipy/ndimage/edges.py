"""Of `bw.scipy.ndimage`: arguments that its functions share, and arrays continued beyond their edges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bwcompiler.errors import UnsupportedError
from bwcompiler.frontend.numpy.axes import normalize_axis
from bwcompiler.frontend.tracing.operands import as_tracer, cast, is_traced, value_as
from bwcompiler.frontend.tracing.tracer import fresh
from bwcompiler.ir.types import C128, F64

Edges = Any                                                             # a name, or one per axis
# NumPy's names of the modes, whose "reflect" is SciPy's "mirror".
_MODES = {"reflect": "symmetric", "grid-mirror": "symmetric", "mirror": "reflect", "nearest": "edge", "wrap": "wrap", "grid-wrap": "wrap",
          "constant": "constant", "grid-constant": "constant"}


# ----- arguments
def array_of(given: Any) -> Any:
    """As doubles, or complex ones."""
    value = value_as(given)
    return fresh(cast(value, C128 if value.dtype.is_complex else F64))


def taken(given: Any) -> Any:
    """As an array: a plain one, or a traced one, of a list that holds traced values too."""
    return as_tracer(given) if is_traced(given) else np.asarray(given)


def finished(found: Any, given: Any, output: Any = None) -> Any:
    """In the dtype of the input, or the one that is asked for; to integers without the fraction."""
    if output is not None and (is_traced(output) or isinstance(output, np.ndarray)):
        raise UnsupportedError("scipy.ndimage of traced values: output= as an array is not supported\n  hint: output=its dtype, and assign")
    dtype = np.dtype(given.dtype if output is None else output)
    if given.dtype.kind == "c" and dtype.kind != "c":
        dtype = np.promote_types(dtype, np.complex64)                       # as SciPy, which warns of it
    return found.astype(dtype) if found.dtype != dtype else found


def per_axis(given: Any, axes: Sequence[int], what: str) -> list[Any]:
    found = [given] * len(axes) if isinstance(given, str) or np.ndim(given) == 0 else list(given)
    if len(found) != len(axes):
        raise RuntimeError(f"sequence argument must have length equal to input rank ({what})")
    return found


def axes_of(axes: Any, rank: int) -> list[int]:
    given = range(rank) if axes is None else axes if isinstance(axes, tuple | list) else (axes,)
    return [normalize_axis(axis, rank) for axis in given]


def _mode(mode: str) -> str:
    if mode not in _MODES:
        raise RuntimeError("boundary mode not supported")
    return _MODES[mode]


def continued(x: Any, axis: int, before: int, after: int, mode: str, cval: Any) -> Any:
    """x with so many elements more along an axis, as the mode says."""
    if not before and not after:
        return x
    if _mode(mode) == "constant":
        widths = [(before, after) if k == axis else (0, 0) for k in range(x.ndim)]
        return np.pad(x, widths, constant_values=cval)
    places = np.pad(np.arange(x.shape[axis]), (before, after), _mode(mode))  # type: ignore[call-overload]
    return np.take(x, places, axis)
