"""np.roots, and np.emath, whose results are always complex here."""

from __future__ import annotations

from typing import Any

import numpy as np

from bwcompiler.frontend.numpy.elementwise.ufunc_calls import operator
from bwcompiler.frontend.tracing.operands import as_tracer, cast, value_as
from bwcompiler.frontend.tracing.registry import implements
from bwcompiler.frontend.tracing.tracer import fresh
from bwcompiler.ir.types import C128, F64, complex_of


@implements(np.roots)
def roots(p: Any) -> Any:
    """Complex or real, like eigenvalues.  Leading coefficients are assumed to differ from 0, as traced ones are not known."""
    coefficients: Any = np.atleast_1d(as_tracer(p))
    if coefficients.ndim != 1:
        raise ValueError("Input must be a rank-1 array.")
    coefficients = coefficients if coefficients.dtype.kind in "fc" else as_tracer(coefficients.astype(np.float64))
    count = coefficients.shape[0] - 1
    if count < 1:
        return fresh(cast(value_as(np.zeros(0)), C128))
    first = operator("negative", operator("divide", coefficients[1:], coefficients[0]))
    return np.linalg.eigvals(np.concatenate([first[None], np.eye(count - 1, count, dtype=first.dtype)]))


# ----- np.emath: always complex, as it is not known whether all numbers are in the real domain
def _complex(x: Any) -> Any:
    value = value_as(x)
    return fresh(value if value.dtype.is_complex else cast(value, complex_of(value.dtype if value.dtype.is_float else F64)))


def _on_complex(name: str) -> Any:
    ufunc: Any = getattr(np, name)

    def function(x: Any) -> Any:
        return ufunc(_complex(x))

    function.__name__ = name
    return function


for _name in ("sqrt", "log", "log2", "log10", "arccos", "arcsin", "arctanh"):
    implements(getattr(np.emath, _name))(_on_complex(_name))


@implements(np.emath.logn)
def logn(n: Any, x: Any) -> Any:
    return operator("divide", np.log(_complex(x)), np.log(_complex(n)))


@implements(np.emath.power)
def power(x: Any, p: Any) -> Any:
    return operator("power", _complex(x), p if isinstance(p, int) else _complex(p))
