"""Of `bw.scipy.ndimage`: filters that call a function of the user's, for each window or for each axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bwcompiler.api.inside.loops import map as over_rows
from bwcompiler.errors import UnsupportedError
from bwcompiler.frontend.tracing.operands import as_tracer
from bwcompiler.frontend.tracing.storages.region import active_region
from bwcompiler.frontend.tracing.trace import call_user
from bwcompiler.scipy.ndimage.edges import Edges, array_of, axes_of, finished, per_axis, taken
from bwcompiler.scipy.ndimage.ranks import footprint_of, lanes_of


def generic_filter(input: Any, function: Callable[..., Any], size: Any = None, footprint: Any = None, output: Any = None,
                   mode: Edges = "reflect", cval: Any = 0.0, origin: Any = 0, extra_arguments: Sequence[Any] = (),
                   extra_keywords: Any = None, *, axes: Any = None) -> Any:
    """function(window), a number, for the window at each place, whose elements are in one axis.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.ndimage.generic_filter(np.array([1.0, 5.0, 2.0, 0.0]), lambda window: window.max() - window.min(), 3).tolist()
    [4.0, 4.0, 5.0, 2.0]
    """
    x = taken(input)
    chosen = axes_of(axes, x.ndim)
    mask, origins, places = footprint_of(x, size, footprint, origin, chosen)
    lanes = lanes_of(array_of(x) if active_region() is not None else np.asarray(x, float), cval, chosen, mask.shape,
                     per_axis(mode, chosen, "mode"), origins, places)
    options = dict(extra_keywords or {})

    def of_window(window: Any) -> Any:
        found = call_user(function, (window, *extra_arguments), options) if active_region() is not None else function(
            window, *extra_arguments, **options)
        return np.reshape(as_tracer(found) if active_region() is not None else found, ()) * 1.0
    result = over_rows(of_window, np.reshape(lanes, (-1, lanes.shape[-1])))
    return finished(np.reshape(result, x.shape), x, output)


def _of_axes(function: Callable[..., Any], name: str, input: Any, output: Any, mode: Edges, cval: Any, arguments: Sequence[Any],
             keywords: Any, axes: Any) -> list[Any]:
    """What the function gives along each axis."""
    x = taken(input)
    chosen = axes_of(axes, x.ndim)
    if isinstance(output, np.ndarray):
        raise UnsupportedError(f"scipy.ndimage.{name} of traced values: output= as an array is not supported\n"
                               "  hint: output=its dtype, and assign")
    dtype = np.dtype(x.dtype if output is None else output)
    found = []
    for axis, edges in zip(chosen, per_axis(mode, chosen, "mode"), strict=True):
        given = (x, axis, dtype.type, edges, cval, *arguments)
        options = dict(keywords or {})
        one = call_user(function, given, options) if active_region() is not None else function(*given, **options)
        if one is None:
            raise UnsupportedError(f"scipy.ndimage.{name}: the function writes its result into an array that it is given, of traced ones\n"
                                   "  hint: return it; the third argument is a dtype here")
        found.append(one)
    if not found:
        raise UnsupportedError(f"scipy.ndimage.{name} along no axis")
    return found


def generic_laplace(input: Any, derivative2: Callable[..., Any], output: Any = None, mode: Edges = "reflect", cval: Any = 0.0,
                    extra_arguments: Sequence[Any] = (), extra_keywords: Any = None, *, axes: Any = None) -> Any:
    """The sum of derivative2(x, axis, dtype, mode, cval) over the axes.

    >>> import numpy as np, bwcompiler as bw
    >>> second = lambda x, axis, output, mode, cval: bw.scipy.ndimage.correlate1d(x, [1, -2, 1], axis, output, mode, cval)
    >>> bw.scipy.ndimage.generic_laplace(np.array([1.0, 2.0, 4.0]), second).tolist()
    [1.0, 1.0, -2.0]
    """
    parts = _of_axes(derivative2, "generic_laplace", input, output, mode, cval, extra_arguments, extra_keywords, axes)
    return finished(sum(parts[1:], start=parts[0]), taken(input), output)


def generic_gradient_magnitude(input: Any, derivative: Callable[..., Any], output: Any = None, mode: Edges = "reflect", cval: Any = 0.0,
                               extra_arguments: Sequence[Any] = (), extra_keywords: Any = None, *, axes: Any = None) -> Any:
    """The length of the vector of derivative(x, axis, dtype, mode, cval).

    >>> import numpy as np, bwcompiler as bw
    >>> first = lambda x, axis, output, mode, cval: bw.scipy.ndimage.correlate1d(x, [-0.5, 0, 0.5], axis, output, mode, cval)
    >>> bw.scipy.ndimage.generic_gradient_magnitude(np.array([1.0, 2.0, 4.0]), first).tolist()
    [0.5, 1.5, 1.0]
    """
    parts = [part * part for part in _of_axes(derivative, "generic_gradient_magnitude", input, output, mode, cval, extra_arguments,
                                              extra_keywords, axes)]
    total = sum(parts[1:], start=parts[0])
    return finished(np.where(total == 0, total, np.sqrt(total)), taken(input), output)          # whose derivative at 0 is 0
