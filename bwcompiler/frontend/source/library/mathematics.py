"""Python's modules math and cmath for traced numbers: NumPy's functions, which give nan where those of math raise ValueError.

In a `try` that catches it, they raise as those do (`effects/number_errors.py`).
"""

from __future__ import annotations

import builtins
import cmath
import functools
import math
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from bwcompiler import ops
from bwcompiler.frontend.numpy.elementwise.ufunc_calls import evaluate
from bwcompiler.frontend.numpy.elementwise.ufuncs import ufunc_named
from bwcompiler.frontend.source.effects.number_errors import check_function, check_whole
from bwcompiler.frontend.tracing.calls import call
from bwcompiler.frontend.tracing.handles import value_of
from bwcompiler.frontend.tracing.operands import value_as
from bwcompiler.frontend.tracing.tracer import Tracer, fresh
from bwcompiler.ir.types import BOOL, C128, F64, I64, DType


def mathematical(function: Any, numpy: Any) -> Callable[..., Any]:
    """A function of `math` that takes numbers: `numpy` of traced ones."""
    def compute(*args: Any, **kwargs: Any) -> Any:
        if not _is_traced(args):
            return function(*args, **kwargs)
        found = _with_type(function, numpy, numpy(*args, **kwargs))
        check_function(function, args, found)
        return found
    compute.__name__ = function.__name__
    return compute


def _of_sequences(function: Any, numpy: Any) -> Callable[..., Any]:
    """A function of `math` that takes sequences of numbers."""
    def compute(*args: Any, **kwargs: Any) -> Any:
        given = [arg if isinstance(arg, Tracer) or not hasattr(arg, "__iter__") else builtins.list(arg) for arg in args]
        traced = any(isinstance(arg, Tracer) or (isinstance(arg, list) and _is_traced(arg)) for arg in given)
        return _with_type(function, numpy, numpy(*given, **kwargs)) if traced else function(*given, **kwargs)
    compute.__name__ = function.__name__
    return compute


def _complex(function: Any, numpy: Any) -> Callable[..., Any]:
    """A function of `cmath`: `numpy` of complex numbers."""
    def compute(*args: Any, **kwargs: Any) -> Any:
        if not _is_traced(args):
            return function(*args, **kwargs)
        return _with_type(function, numpy, numpy(*[call(_as_complex, arg) for arg in args], **kwargs))
    compute.__name__ = function.__name__
    return compute


def _is_traced(args: Any) -> bool:
    return any(isinstance(arg, Tracer) for arg in args)


def _as_complex(x: Any) -> Tracer:
    value = value_as(x)
    return fresh(value if value.dtype is C128 else ops.cast(value, dtype=C128))


def _with_type(function: Any, numpy: Any, found: Any) -> Any:
    """What Python's function gives: its own integers, floats, complex numbers, truth values or pairs of these."""
    if isinstance(found, tuple):
        return tuple([_with_type(function, numpy, one) for one in found])
    if not isinstance(found, Tracer):
        return found
    if found._type.size != 1:
        call(_refuse_array, function, numpy, found)
    if found._type.dtype is BOOL:
        return found
    kind, dtype = ((int, I64) if found._type.dtype.kind in "iu" else (complex, C128) if found._type.dtype.kind == "c" else (float, F64))
    return call(converted, found, dtype, kind)


def converted(x: Tracer, dtype: DType, kind: Any) -> Tracer:
    """A traced number as one of Python's."""
    value = value_of(x)
    if value.shape:
        value = ops.reshape(value, shape=())
    return fresh(value if value.dtype is dtype else ops.cast(value, dtype=dtype), kind)


def _refuse_array(function: Any, numpy: Any, found: Tracer) -> NoReturn:
    better = f"np.{numpy.__name__.strip('_')}" if isinstance(numpy, np.ufunc) else "NumPy's function"
    space = "cmath" if function.__module__ == "cmath" else "math"
    raise TypeError(f"{space}.{function.__name__} takes numbers, not an array of shape {found.shape}\n"
                    f"  hint: {better} instead of {space}.{function.__name__}")


# ----- what has another name, or none, in NumPy
def _named(name: str) -> Callable[..., Any]:
    """The op that the function of this name in scipy.special is."""
    return lambda x: call(lambda: fresh(evaluate(ufunc_named(name), (fresh(ops.cast(value_as(x), dtype=F64)),))))


def _rounded(numpy: Any) -> Callable[[Any], Any]:
    """Rounding to an integer."""
    def rounded(x: Any) -> Any:
        check_whole(x)
        return x if x._type.dtype.kind in "iu" else numpy(x).astype(np.int64)
    return rounded


def _log(x: Any, *base: Any) -> Any:
    found = np.log(x)
    return found / np.log(base[0]) if base else found


def _hypot(*args: Any) -> Any:
    return functools.reduce(np.hypot, args) if len(args) > 1 else np.abs(args[0])


def _dist(p: Any, q: Any) -> Any:
    difference = np.subtract(p, q)
    return np.hypot.reduce(difference) if not isinstance(difference, Tracer) else np.linalg.norm(difference)


def _remainder(x: Any, y: Any) -> Any:
    """What remains of a division whose quotient is rounded to the nearest integer, to the even one of two."""
    divisor, left = np.abs(y), np.fmod(np.abs(x), 2 * np.abs(y))
    half = 0.5 * divisor
    nearest = np.where(left <= half, left, np.where(left < 3 * half, left - divisor, left - 2 * divisor))
    return np.where(np.isinf(divisor), 1.0 * x, np.where(np.signbit(x), -nearest, nearest))


def _isclose(a: Any, b: Any, *, rel_tol: Any = 1e-09, abs_tol: Any = 0.0) -> Any:
    difference, largest = np.abs(np.subtract(a, b)), np.maximum(np.abs(a), np.abs(b))
    near = np.logical_and(np.isfinite(difference), difference <= np.maximum(rel_tol * largest, abs_tol))
    return np.logical_or(np.equal(a, b), near)


def _modf(x: Any) -> Any:
    whole = np.trunc(x)
    return np.where(np.isinf(x), np.copysign(0.0, x), np.fmod(x, 1.0)), whole


def _fsum(numbers: Any) -> Any:
    return np.sum(numbers if isinstance(numbers, Tracer) else np.stack([np.asarray(one, float) if not isinstance(one, Tracer) else one
                                                                         for one in numbers]))


def _sumprod(p: Any, q: Any) -> Any:
    return functools.reduce(lambda total, pair: total + pair[0] * pair[1], zip(p, q, strict=True), 0)


def complex_of(x: Any, y: Any) -> Any:
    """complex(x, y)."""
    def made() -> Tracer:
        parts = [ops.cast(value, dtype=F64) if value.dtype is not F64 else value for value in map(value_as, (x, y))]
        return fresh(ops.make_complex(*[ops.reshape(part, shape=()) if part.shape else part for part in parts]), complex)
    return x + y * 1j if np.iscomplexobj(x) or np.iscomplexobj(y) else call(made)


def _polar(z: Any) -> Any:
    return np.abs(z), np.angle(z)


def _rect(r: Any, phi: Any) -> Any:
    return r * np.exp(1j * phi)


_NAMES = """sqrt exp expm1 log1p log10 log2 sin cos tan sinh cosh tanh degrees radians copysign isnan isinf isfinite fmod exp2 cbrt
    nextafter"""
_MATH: dict[str, Any] = {
    "fabs": np.abs, "pow": np.power, "acos": np.arccos, "asin": np.arcsin, "atan": np.arctan, "atan2": np.arctan2, "acosh": np.arccosh,
    "asinh": np.arcsinh, "atanh": np.arctanh, "log": _log, "hypot": _hypot, "remainder": _remainder, "isclose": _isclose, "modf": _modf,
    "floor": _rounded(np.floor), "ceil": _rounded(np.ceil), "trunc": _rounded(np.trunc), "erf": _named("erf"), "erfc": _named("erfc"),
    "gamma": _named("gamma"), "lgamma": _named("gammaln"), **{name: getattr(np, name) for name in _NAMES.split()},
}
_SEQUENCES = {"fsum": _fsum, "dist": _dist, "sumprod": _sumprod}
_CMATH: dict[str, Any] = {
    "acos": np.arccos, "asin": np.arcsin, "atan": np.arctan, "acosh": np.arccosh, "asinh": np.arcsinh, "atanh": np.arctanh, "log": _log,
    "phase": np.angle, "polar": _polar, "isclose": _isclose,
    **{name: getattr(np, name) for name in "sqrt exp log10 sin cos tan sinh cosh tanh isnan isinf isfinite".split()},
}

MATHEMATICS: dict[Any, Any] = {                # some functions are newer than the oldest Python
    **{getattr(math, name): mathematical(getattr(math, name), numpy) for name, numpy in _MATH.items() if hasattr(math, name)},
    **{getattr(math, name): _of_sequences(getattr(math, name), numpy) for name, numpy in _SEQUENCES.items() if hasattr(math, name)},
    **{getattr(cmath, name): _complex(getattr(cmath, name), numpy) for name, numpy in _CMATH.items()},
    cmath.rect: mathematical(cmath.rect, _rect),
}
