"""NumPy's namespace for files in which `import numpy as np` cannot reach everything.

Functions that make arrays give traced ones inside a trace, so that `y = np.zeros(n); y[i] = x` and
`np.array([x0, x1])` work, functions take sequences of traced arrays (`np.mean([x, y])`, `np.r_[x, y]`); everything else is
NumPy's own and dispatches on its arguments.
"""

from typing import Any

import numpy

from bwcompiler.frontend.numpy.manipulation.creation import (
    arange,
    array,
    asanyarray,
    asarray,
    ascontiguousarray,
    asfortranarray,
    empty,
    eye,
    fromiter,
    full,
    identity,
    linspace,
    ndarray,
    ones,
    require,
    zeros,
)
from bwcompiler.frontend.numpy.manipulation.sequences import c_, on_sequences, r_

__all__ = [
    "arange", "array", "asanyarray", "asarray", "ascontiguousarray", "asfortranarray", "c_", "empty", "eye", "fromiter",
    "full", "identity", "linspace", "ndarray", "ones", "r_", "require", "zeros",
]


def __getattr__(name: str) -> Any:
    found = getattr(numpy, name)
    wrapped = on_sequences(found) if callable(found) and not isinstance(found, type | numpy.ufunc) else None
    if wrapped is None:
        return found
    globals()[name] = wrapped
    return wrapped


def __dir__() -> list[str]:
    return sorted({*globals(), *dir(numpy)})
