"""Of `bw.scipy.ndimage`: morphology of masks, and their connected parts.  Masks have no derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.ndimage as host

from bwcompiler.api.inside.eager import graph_function
from bwcompiler.api.inside.loops import while_loop
from bwcompiler.errors import UnsupportedError
from bwcompiler.frontend.tracing.callbacks import host_call
from bwcompiler.frontend.tracing.operands import value_as
from bwcompiler.frontend.tracing.tracer import fresh
from bwcompiler.ir.types import BOOL
from bwcompiler.scipy.ndimage.edges import per_axis, taken
from bwcompiler.scipy.ndimage.ranks import masked_extreme


@graph_function
def _repeated(x: Any, mask: Any, border: Any, structure: tuple[Any, ...], origin: tuple[int, ...], which: str, iterations: int) -> Any:
    """The largest or smallest element under the structure, again and again; less than one iteration: until nothing changes."""
    whole: Any = fresh(value_as(x)) != 0
    among = None if mask is None else fresh(value_as(mask)) != 0
    footprint = np.array(structure, bool)

    def step(now: Any) -> Any:
        found = masked_extreme(now, footprint, border, origin, which)
        return found if among is None else np.where(among, found, whole)

    if iterations >= 1:
        found = whole
        for _ in range(iterations):
            found = step(found)
        return found
    before, _ = while_loop(lambda pair: np.any(pair[0] != pair[1]), lambda pair: (pair[1], step(pair[1])), (whole, step(whole)))
    return before


def _morphed(name: str, input: Any, structure: Any, iterations: int, mask: Any, output: Any, border: Any, origin: Any, axes: Any,
             which: str) -> Any:
    if output is not None or axes is not None:
        raise UnsupportedError(f"scipy.ndimage.{name} of traced values: output= and axes= are not supported\n  hint: use what it returns")
    if np.iscomplexobj(input):
        raise TypeError("Complex type not supported")
    rank = int(np.ndim(input))
    footprint = host.generate_binary_structure(rank, 1) if structure is None else np.asarray(structure, bool)
    if footprint.ndim != rank:
        raise RuntimeError("structure and input must have same dimensionality")
    if not footprint.any():
        raise RuntimeError("structure must not be empty")
    origins = tuple(int(one) for one in per_axis(origin, range(rank), "origin"))
    return _repeated(taken(input), mask, bool(border), _tuples(footprint.tolist()), origins, which,
                     int(iterations))


def _tuples(x: Any) -> Any:
    return tuple(map(_tuples, x)) if isinstance(x, list) else x


def binary_dilation(input: Any, structure: Any = None, iterations: int = 1, mask: Any = None, output: Any = None, border_value: Any = 0,
                    origin: Any = 0, brute_force: bool = False, *, axes: Any = None) -> Any:
    """Where the structure, put on an element, meets one that is true.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.ndimage.binary_dilation(np.array([0.0, 0.0, 1.0, 0.0])).tolist()
    [False, True, True, True]
    """
    return _morphed("binary_dilation", input, structure, iterations, mask, output, border_value, origin, axes, "max")


def binary_erosion(input: Any, structure: Any = None, iterations: int = 1, mask: Any = None, output: Any = None, border_value: Any = 0,
                   origin: Any = 0, brute_force: bool = False, *, axes: Any = None) -> Any:
    """Where the structure, put on an element, meets none that is false.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.ndimage.binary_erosion(np.array([1.0, 1.0, 1.0, 0.0])).tolist()
    [False, True, False, False]
    """
    return _morphed("binary_erosion", input, structure, iterations, mask, output, border_value, origin, axes, "min")


def binary_opening(input: Any, structure: Any = None, iterations: int = 1, output: Any = None, origin: Any = 0, mask: Any = None,
                   border_value: Any = 0, brute_force: bool = False, *, axes: Any = None) -> Any:
    """The dilation of the erosion.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.ndimage.binary_opening(np.array([1.0, 0.0, 1.0, 1.0, 1.0])).tolist()
    [False, False, True, True, True]
    """
    eroded = binary_erosion(input, structure, iterations, mask, None, border_value, origin, axes=axes)
    return binary_dilation(eroded, structure, iterations, mask, output, border_value, origin, axes=axes)


def binary_closing(input: Any, structure: Any = None, iterations: int = 1, output: Any = None, origin: Any = 0, mask: Any = None,
                   border_value: Any = 0, brute_force: bool = False, *, axes: Any = None) -> Any:
    """The erosion of the dilation.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.ndimage.binary_closing(np.array([0.0, 1.0, 0.0, 1.0, 0.0])).tolist()
    [False, True, True, True, False]
    """
    dilated = binary_dilation(input, structure, iterations, mask, None, border_value, origin, axes=axes)
    return binary_erosion(dilated, structure, iterations, mask, output, border_value, origin, axes=axes)


def binary_propagation(input: Any, structure: Any = None, mask: Any = None, output: Any = None, border_value: Any = 0, origin: Any = 0, *,
                       axes: Any = None) -> Any:
    """Dilations until nothing changes.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.ndimage.binary_propagation(np.array([1.0, 0.0, 0.0, 0.0]), mask=np.array([1.0, 1.0, 0.0, 1.0])).tolist()
    [True, True, False, False]
    """
    return binary_dilation(input, structure, -1, mask, output, border_value, origin, axes=axes)


def binary_fill_holes(input: Any, structure: Any = None, output: Any = None, origin: Any = 0, *, axes: Any = None) -> Any:
    """The mask with all that it encloses.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.ndimage.binary_fill_holes(np.array([0.0, 1.0, 0.0, 1.0])).tolist()
    [False, True, True, True]
    """
    outside = np.logical_not(_truths(input))
    around = binary_dilation(np.zeros(np.shape(input), bool), structure, -1, outside, output, 1, origin, axes=axes)
    return np.logical_not(around)


@graph_function
def _truths(x: Any) -> Any:
    found: Any = fresh(value_as(x))
    return found if value_as(x).dtype is BOOL else found != 0


def label(input: Any, structure: Any = None, output: Any = None) -> Any:
    """The number of the connected part that each element is in, and how many there are: SciPy is called back.

    >>> import numpy as np, bwcompiler as bw
    >>> labels, count = bw.scipy.ndimage.label(np.array([1.0, 0.0, 2.0, 3.0]))
    >>> labels.tolist(), int(count)
    ([1, 0, 2, 2], 2)
    """
    if output is not None:
        raise UnsupportedError("scipy.ndimage.label of traced values: output= is not supported\n  hint: use what it returns")
    known = None if structure is None else np.asarray(structure)

    def numbered(mask: Any) -> Any:
        labels, count = host.label(mask, known)
        return labels.astype(np.int32), np.int64(count)

    spec = (np.empty(np.shape(input), np.int32), np.empty((), np.int64))
    return host_call(numbered, spec, (_truths(input),))
