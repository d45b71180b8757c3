"""NumPy's namespace for files in which `import numpy as np` cannot reach everything.

Functions that make arrays give traced ones inside a trace, so that `y = np.zeros(n); y[i] = x` and
`np.array([x0, x1])` work; everything else is NumPy's own and dispatches on its arguments.
"""

import sys
from typing import Any

import numpy

from bwcompiler.frontend.creation_functions import (
    arange,
    array,
    asarray,
    empty,
    eye,
    full,
    identity,
    linspace,
    ones,
    zeros,
)
from bwcompiler.frontend.registry import HANDLERS

__all__ = ["arange", "array", "asarray", "empty", "eye", "full", "identity", "linspace", "ones", "zeros"]


def __getattr__(name: str) -> Any:
    return getattr(numpy, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *dir(numpy)})


def _namespace() -> Any:
    return sys.modules[__name__]


HANDLERS["namespace"] = _namespace
