"""Of `bw.scipy.signal`: places of extrema, as many as the data have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bwcompiler.frontend.tracing.operands import is_traced


def argrelextrema(data: Any, comparator: Callable[..., Any], axis: int = 0, order: int = 1, mode: str = "clip") -> Any:
    """Where comparator(data, neighbour) holds for `order` neighbours on both sides along an axis: a tuple of indices, one for each axis.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.signal.argrelextrema(np.array([2.0, 1.0, 3.0, 0.0]), np.less)[0].tolist()
    [1]
    """
    if int(order) != order or order < 1:
        raise ValueError("Order must be an int >= 1")
    array: Any = data if is_traced(data) else np.asarray(data)
    places = np.arange(array.shape[axis])
    found: Any = np.ones(array.shape, bool)
    for shift in range(1, order + 1):
        for neighbours in (places + shift, places - shift):
            found = found & comparator(array, np.take(array, neighbours, axis=axis, mode=mode))  # type: ignore[call-overload]
    return np.nonzero(found)


def argrelmax(data: Any, axis: int = 0, order: int = 1, mode: str = "clip") -> Any:
    """`argrelextrema` of maxima.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.signal.argrelmax(np.array([2.0, 1.0, 3.0, 0.0]))[0].tolist()
    [2]
    """
    return argrelextrema(data, np.greater, axis, order, mode)


def argrelmin(data: Any, axis: int = 0, order: int = 1, mode: str = "clip") -> Any:
    """`argrelextrema` of minima.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.signal.argrelmin(np.array([2.0, 1.0, 3.0, 0.0]))[0].tolist()
    [1]
    """
    return argrelextrema(data, np.less, axis, order, mode)
