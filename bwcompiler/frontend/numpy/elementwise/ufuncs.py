"""The rules of ufuncs in terms of ops.  The path from a call to values is in `ufunc_calls.py`.

`UFUNCS` is the table: ufuncs that are one op (by the op's declaration), and ufuncs that are composed of ops (here).  A rule
takes values of the dtype in which NumPy computes, and returns one value (or a tuple).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from bwcompiler import ops
from bwcompiler.frontend.tracing.operands import (
    cast,
    constant,
)
from bwcompiler.frontend.tracing.registry import HANDLERS, UFUNC_NAMES, unsupported
from bwcompiler.ir.op import UFUNC_OPS, Op, Value
from bwcompiler.ir.types import BOOL, F16, F32, I8, I64
from bwcompiler.ops.creation import full

Rule = Callable[..., Any]


class Ufunc(NamedTuple):
    """A supported ufunc: NumPy's object for its type resolution, and its rule.

    special   it belongs to scipy.special: its rule is for floats, and SciPy's loops compute complex numbers.
    loops     SciPy's ufunc, if its loops compute it: they determine the precision.
    """

    name: str
    numpy: Any
    rule: Rule
    special: bool = False
    loops: Any = None


UFUNCS: dict[str, Ufunc] = {}


def _ufunc(name: str, rule: Rule, *aliases: str) -> None:
    numpy = getattr(np, name, None)
    for key in (name, *aliases):
        if key not in UFUNCS:
            UFUNC_NAMES.append(key)
        UFUNCS[key] = Ufunc(key, numpy, rule, numpy is None)


def ufunc_named(name: str, ufunc: Any = None) -> Ufunc:
    """The entry of a ufunc; raises UnsupportedError with the nearest names."""
    found = UFUNCS.get(name) or HANDLERS["special_by_loop"](name, ufunc)
    if found is None:
        space = "np" if ufunc is None or getattr(np, name, None) is ufunc else "scipy.special"
        known = [one for one in UFUNC_NAMES if (UFUNCS[one].numpy is None) == (space != "np")]
        raise unsupported(f"{space}.{name}", name, known)
    return found


COMPLEX_RULES = ("xlogy", "xlog1py")         # functions of scipy.special whose rules hold for complex numbers


# ----- rules that are more than one op
def _boolean(on_boolean: Rule, otherwise: Rule) -> Rule:
    return lambda *xs: on_boolean(*xs) if xs[0].dtype is BOOL else otherwise(*xs)


def _identity(x: Value) -> Value:
    return x


def _on_integers(result: Any, otherwise: Rule) -> Rule:
    """A predicate that has one answer for every integer."""
    def rule(x: Value) -> Value:
        if x.dtype.kind in "iub":
            return full(value=result, shape=x.shape, dtype=BOOL)
        return otherwise(x)  # type: ignore[no-any-return]
    return rule


def _rounding(op: Rule) -> Rule:
    return lambda x: x if x.dtype.kind in "iub" else op(x)


def truth(x: Value) -> Value:
    """x != 0."""
    return x if x.dtype is BOOL else ops.not_equal(x, constant(0, x))


def _logical(op: Rule) -> Rule:
    return lambda *xs: op(*[truth(x) for x in xs])


def _scaled(numerator: float, denominator: float) -> Rule:
    def rule(x: Value) -> Value:
        if x.dtype is F16:                                       # NumPy computes float16 as float32
            return cast(rule(cast(x, F32)), F16)
        kind = x.dtype.numpy.type                                # NumPy divides in the dtype of the operand
        return ops.multiply(x, constant((kind(numerator) / kind(denominator)).item(), x))
    return rule


def reciprocal(x: Value) -> Value:
    """1 / x; integers truncate towards zero, so 0 except for 1 and -1; for 0, the result of NumPy's division on this machine."""
    if x.dtype.is_complex:
        return ops.reciprocal(x)
    if not x.dtype.is_integer:
        return ops.divide(constant(1, x), x)
    with np.errstate(all="ignore"):
        of_zero = np.reciprocal(np.zeros(1, x.dtype.numpy)).item()
    units = [1] if x.dtype.kind == "u" else [1, -1]
    found = ops.select(ops.equal(x, constant(0, x)), constant(of_zero, x), constant(0, x))
    for unit in units:
        found = ops.select(ops.equal(x, constant(unit, x)), x, found)
    return found


def _power(x: Value, y: Value) -> Value:
    return ops.integer_power(x, y) if x.dtype.is_integer else ops.power(x, y)


def conjugated(x: Value) -> Value:
    """np.conj."""
    if x.dtype.is_complex:
        return ops.conjugate(x)
    return cast(x, I8) if x.dtype is BOOL else x


def magnitude(x: Value) -> Value:
    """np.abs."""
    if x.dtype.is_complex:
        return ops.modulus(x)
    return x if x.dtype is BOOL else ops.absolute(x)


def _sign(x: Value) -> Value:
    """z / |z| for a complex number, 0 for 0; if |z| is infinite, the sign of the infinite part, or nan if both are."""
    if not x.dtype.is_complex:
        return ops.sign(x)
    size, parts = ops.modulus(x), (ops.real(x), ops.imag(x))
    far, zero, unknown, none = ops.isinf(size), ops.equal(size, constant(0.0, size)), ops.isnan(size), constant(0.0, size)
    length = ops.select(zero, constant(1.0, size), size)
    first, both = ops.isinf(parts[0]), ops.bitwise_and(*map(ops.isinf, parts))
    found = []
    for part, leads in zip(parts, (first, ops.invert(first)), strict=True):
        of_infinity = ops.select(both, constant(math.nan, part), ops.select(leads, ops.copysign(constant(1.0, part), part), none))
        found.append(ops.select(unknown, size, ops.select(far, of_infinity, ops.select(zero, none, ops.divide(part, length)))))
    return ops.make_complex(*found)


def _fmax(op: Rule) -> Rule:
    def rule(x: Value, y: Value) -> Value:
        if not x.dtype.is_differentiable:
            return op(x, y)  # type: ignore[no-any-return]
        if x.dtype.is_complex:                                   # the first of two nan
            return ops.select(ops.isnan(y), x, ops.select(ops.isnan(x), y, op(x, y)))
        return ops.select(ops.isnan(x), y, ops.select(ops.isnan(y), x, op(x, y)))
    return rule


def _heaviside(x: Value, at_zero: Value) -> Value:
    step = ops.select(ops.less(x, constant(0, x)), constant(0, x), constant(1, x))
    return ops.select(ops.isnan(x), x, ops.select(ops.equal(x, constant(0, x)), at_zero, step))


def _logaddexp2(x: Value, y: Value) -> Value:
    log_of_2 = constant(math.log(2.0), x)
    return ops.divide(ops.logaddexp(ops.multiply(x, log_of_2), ops.multiply(y, log_of_2)), log_of_2)


def _modf(x: Value) -> tuple[Value, Value]:
    """The fraction has the sign of x, also where it is 0, and the derivative 1."""
    whole = ops.trunc(x)
    negative = ops.less(ops.copysign(constant(1, x), x), constant(0, x))
    fraction = ops.select(negative, ops.negative(ops.subtract(whole, x)), ops.subtract(x, whole))
    return ops.select(ops.isinf(x), ops.copysign(constant(0, x), x), fraction), whole


def _clip(x: Value, low: Value, high: Value) -> Value:
    return ops.minimum(ops.maximum(x, low), high)


def _ldexp(x: Value, exponent: Value) -> Value:
    """Multiplications by powers of two in range; three suffice for any two numbers."""
    rest, most = cast(exponent, I64), {2: 14, 4: 120, 8: 1000}[x.dtype.numpy.itemsize]
    for _ in range(3):
        part = ops.maximum(ops.minimum(rest, constant(most, rest)), constant(-most, rest))
        x, rest = ops.multiply(x, ops.exp2(cast(part, x.dtype))), ops.subtract(rest, part)
    return x


def _frexp(x: Value) -> tuple[Value, Value]:
    exponent = ops.exponent(x)
    return _ldexp(x, ops.negative(exponent)), exponent


def _comparison(compare: Op, mirrored: Op, negative: bool) -> Rule:
    """compare(x, y), which equals mirrored(y, x); `negative`: the result for negative x and unsigned y."""
    def rule(x: Value, y: Value) -> Value:
        if x.dtype is y.dtype:
            return compare(x, y)
        if x.dtype.kind == "u":                                  # NumPy compares i64 with u64 exactly
            return _comparison(mirrored, compare, negative != (compare is not mirrored))(y, x)  # type: ignore[no-any-return]
        below = ops.less(x, constant(0, x))
        return ops.select(below, constant(negative, below), compare(cast(x, y.dtype), y))
    return rule


COMPARISONS = {
    "less": _comparison(ops.less, ops.greater, True), "less_equal": _comparison(ops.less_equal, ops.greater_equal, True),
    "greater": _comparison(ops.greater, ops.less, False), "greater_equal": _comparison(ops.greater_equal, ops.less_equal, False),
    "equal": _comparison(ops.equal, ops.equal, False), "not_equal": _comparison(ops.not_equal, ops.not_equal, True),
}
for _name, _op in UFUNC_OPS.items():                       # the assignments below replace some of these, for some dtypes
    _ufunc(_name, _op)
for _name, _compare in COMPARISONS.items():
    _ufunc(_name, _compare)
_ufunc("add", _boolean(ops.bitwise_or, ops.add))
_ufunc("multiply", _boolean(ops.bitwise_and, ops.multiply))
_ufunc("true_divide", ops.divide)
_ufunc("mod", ops.remainder)
_ufunc("divmod", lambda x, y: (ops.floor_divide(x, y), ops.remainder(x, y)))
_ufunc("power", _power, "pow")
_ufunc("float_power", _power)
_ufunc("absolute", magnitude, "abs")
_ufunc("sign", _sign)
_ufunc("fabs", ops.absolute)
_ufunc("positive", _identity)
_ufunc("conjugate", conjugated, "conj")
_ufunc("square", _boolean(_identity, lambda x: ops.multiply(x, x)))
_ufunc("reciprocal", reciprocal)
for _alias in ("bitwise_not", "bitwise_invert"):
    _ufunc(_alias, ops.invert)
_ufunc("logaddexp2", _logaddexp2)
_ufunc("deg2rad", _scaled(math.pi, 180.0), "radians")
_ufunc("rad2deg", _scaled(180.0, math.pi), "degrees")
for _name, _op in (("floor", ops.floor), ("ceil", ops.ceil), ("trunc", ops.trunc)):
    _ufunc(_name, _rounding(_op))
_ufunc("logical_and", _logical(ops.bitwise_and))
_ufunc("logical_or", _logical(ops.bitwise_or))
_ufunc("logical_xor", _logical(ops.bitwise_xor))
_ufunc("logical_not", _logical(ops.invert))
_ufunc("isnan", _on_integers(False, ops.isnan))
_ufunc("isinf", _on_integers(False, ops.isinf))
_ufunc("isfinite", _on_integers(True, ops.isfinite))
_ufunc("fmax", _fmax(ops.maximum))
_ufunc("fmin", _fmax(ops.minimum))
_ufunc("heaviside", _heaviside)
_ufunc("modf", _modf)
_ufunc("ldexp", _ldexp)
_ufunc("frexp", _frexp)
for _alias, _name in {"acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan", "atanh": "arctanh",
                      "atan2": "arctan2", "bitwise_left_shift": "left_shift", "bitwise_right_shift": "right_shift"}.items():
    _ufunc(_alias, UFUNCS[_name].rule)
_ufunc("clip", _clip)
UFUNCS["clip"] = Ufunc("clip", np._core.umath.clip, _clip)  # type: ignore[attr-defined]


def special_ufunc(name: str, rule: Rule) -> None:
    """Register a function of scipy.special, reached by the name of its ufunc."""
    UFUNCS[name] = Ufunc(name, None, rule, True)
    UFUNC_NAMES.append(name)
