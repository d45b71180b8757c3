"""Ufuncs element by element: what each is in terms of ops, and the path from an operator or ufunc call to values.

`UFUNCS` is the table: ufuncs that are one op, by the op's declaration, and those that are composed of ops, here.  A rule
takes values of the dtype that NumPy computes in and gives one value (or a tuple).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from bwcompiler import ops
from bwcompiler.errors import ShapeError, TracerArrayError, UnsupportedError
from bwcompiler.frontend.numpy.elementwise.special_precision import is_single, is_single_composed
from bwcompiler.frontend.tracing.operands import (
    Constant,
    Payload,
    broadcast_shapes,
    cast,
    constant,
    known,
    laid_out,
    mask_as,
    materialise,
    operand,
    value_as,
)
from bwcompiler.frontend.tracing.promotion import Kind, requested, require_cast, resolve
from bwcompiler.frontend.tracing.refusals.conversions import output_advice
from bwcompiler.frontend.tracing.registry import HANDLERS, UFUNC_METHODS, UFUNC_NAMES, nearest
from bwcompiler.frontend.tracing.tracer import ArrayTracer, ScalarTracer, Tracer, assign, fresh, value_of
from bwcompiler.ir.op import UFUNC_OPS, Op, Value
from bwcompiler.ir.types import BOOL, F32, F64, I8, DType
from bwcompiler.ops.creation import full

Rule = Callable[..., Any]


class Ufunc(NamedTuple):
    """A supported ufunc: NumPy's object for its type resolution, and its rule.

    special   it is of scipy.special: its rule is for floats, and SciPy's loops take complex numbers.
    loops     SciPy's object, where its loops compute it: they say whether with single or double precision.
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
        if ufunc is not None and not name.isidentifier():                        # np.frompyfunc, np.vectorize
            raise UnsupportedError(f"a ufunc made of a Python function, {name}, is not supported on traced arrays\n"
                                   "  hint: call the function on the array itself; where it branches, np.where(condition, a, b)")
        space = "np" if ufunc is None or getattr(np, name, None) is ufunc else "scipy.special"
        if space != "np" and getattr(sys.modules.get(space), name, None) is not ufunc:         # numba.vectorize
            raise UnsupportedError(f"{name}, a ufunc that is neither NumPy's nor SciPy's, is not supported on traced arrays\n"
                                   "  hint: call the Python function that it is made of; where it branches, np.where(condition, a, b)")
        known = [one for one in UFUNC_NAMES if (UFUNCS[one].numpy is None) == (space != "np")]
        raise UnsupportedError(f"{space}.{name} is not supported on traced arrays{nearest(name, known)}")
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
        kind = x.dtype.numpy.type                                # NumPy divides in the dtype of the operand
        return ops.multiply(x, constant((kind(numerator) / kind(denominator)).item(), x))
    return rule


def _reciprocal(x: Value) -> Value:
    """1 / x; of integers towards zero, so 0 but for 1 and -1; of 0 whatever this machine's division gives NumPy."""
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
    """Of a complex number z / |z|, 0 for 0; where |z| is infinite the sign of the infinite part, nan where both are."""
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
        if x.dtype.is_complex:                                   # of two nan the first
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
    half = ops.floor_divide(exponent, constant(2, exponent))            # 2**exponent itself may be out of range
    for part in (half, ops.subtract(exponent, half)):
        x = ops.multiply(x, ops.exp2(cast(part, x.dtype)))
    return x


def _frexp(x: Value) -> tuple[Value, Value]:
    exponent = ops.exponent(x)
    return _ldexp(x, ops.negative(exponent)), exponent


def _comparison(compare: Op, mirrored: Op, negative: bool) -> Rule:
    """compare(x, y), which is mirrored(y, x); `negative`: the answer where x is negative and y unsigned."""
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
for _name, _op in UFUNC_OPS.items():                       # what follows replaces some of these, for some dtypes
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
_ufunc("reciprocal", _reciprocal)
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


# ----- from operands to values
def _computed_in(ufunc: Ufunc, kinds: tuple[Kind, ...], dtype: DType | None, casting: str) -> tuple[DType, ...]:
    if ufunc.numpy is not None:
        return resolve(ufunc.numpy, kinds, dtype, casting).inputs
    single = is_single(ufunc.loops, kinds) if ufunc.loops is not None else is_single_composed(ufunc.name, kinds)
    return (F32 if single else F64,) * len(kinds)


def evaluate(ufunc: Ufunc, inputs: tuple[Any, ...], dtype: DType | None = None, casting: str = "same_kind") -> Any:
    """The ufunc's rule on the inputs, promoted and broadcast: a value or a tuple of values."""
    payloads: list[Payload] = []
    kinds: list[Kind] = []
    for x in inputs:
        payload, kind = operand(x)
        payloads.append(payload)
        kinds.append(kind)
    if ufunc.special and ufunc.name not in COMPLEX_RULES and any(
            kind is complex or (isinstance(kind, DType) and kind.is_complex) for kind in kinds):
        return HANDLERS["complex_special"](ufunc.name, inputs)
    dtypes = _computed_in(ufunc, tuple(kinds), dtype, casting)
    shape = payloads[0].shape if len(payloads) == 1 else broadcast_shapes([payload.shape for payload in payloads])
    if dtype is None and len(payloads) == 2:
        short = _shortened(ufunc.name, payloads[0], payloads[1], dtypes, shape)
        if short is not None:
            return short
    return ufunc.rule(*[materialise(payload, dtype_, shape)
                        for payload, dtype_ in zip(payloads, dtypes, strict=False)])


def _evaluate_named(name: str, inputs: tuple[Any, ...]) -> Any:
    return evaluate(ufunc_named(name), inputs)


HANDLERS["evaluate"] = _evaluate_named         # for `masked_selection`


def _shortened(name: str, x: Payload, y: Payload, dtypes: tuple[DType, ...], shape: tuple[Any, ...]) -> Value | None:
    """Powers by small constants are products and roots, as in NumPy's fast paths; comparisons with numbers out of range."""
    if name in COMPARISONS:
        return _out_of_range(name, x, y, dtypes[0], shape)
    if name not in ("power", "float_power", "pow") or not isinstance(y, Constant) or isinstance(x, Constant):
        return None
    exponent = y.value
    if isinstance(exponent, complex) or (dtypes[0].is_integer and exponent < 0):
        return None
    if dtypes[0].is_integer:
        return _integer_power(materialise(x, dtypes[0], shape), int(exponent)) if exponent < 64 else None
    if exponent not in (0, 1, 2, 3, 4, 0.5, -1):
        return None
    base = materialise(x, dtypes[0], shape)
    if exponent == 0:
        return constant(1, base)
    if exponent == 0.5:
        return ops.sqrt(base)
    if exponent == -1:
        return _reciprocal(base)
    if exponent == 1:
        return base
    square = ops.multiply(base, base)
    return square if exponent == 2 else ops.multiply(square, base if exponent == 3 else square)


def _integer_power(x: Value, exponent: int) -> Value:
    """By squaring; it wraps around as NumPy's does."""
    result: Value | None = None
    while exponent:
        if exponent & 1:
            result = x if result is None else ops.multiply(result, x)
        exponent >>= 1
        x = ops.multiply(x, x) if exponent else x
    return constant(1, x) if result is None else result


def _out_of_range(name: str, x: Payload, y: Payload, dtype: DType, shape: tuple[Any, ...]) -> Value | None:
    """An integer array compared with a Python integer that its dtype cannot hold."""
    if not dtype.is_integer or not (isinstance(x, Constant) or isinstance(y, Constant)):
        return None
    number, swapped = (x.value, True) if isinstance(x, Constant) else (y.value, False)  # type: ignore[union-attr]
    limits = np.iinfo(dtype.numpy)
    if limits.min <= number <= limits.max:
        return None
    example = 0
    answer = getattr(np, name)(*((int(number), example) if swapped else (example, int(number))))
    return full(value=bool(answer), shape=shape, dtype=BOOL)


def _weak_result(name: str, inputs: tuple[Any, ...], result: Value) -> type | None:
    """Python numbers stay Python numbers under operators."""
    for x in inputs:
        kind = x._kind if isinstance(x, Tracer) else type(x)
        if isinstance(kind, DType) or kind not in (int, float, complex):
            return None
    return {"f": float, "i": int, "c": complex}.get(result.dtype.kind)


def operator(name: str, *inputs: Any) -> Any:
    """The handler of Python's operators."""
    if name == "matmul":
        return HANDLERS["matmul"](*inputs)
    if name == "multiply" and any(map(_is_count, inputs)) and any(isinstance(x, list | tuple) for x in inputs):
        first, second = [x.__index__() if _is_count(x) else x for x in inputs]
        return first * second                              # `[0.0] * n` is a longer list
    if name == "power" and all(_is_python_integer(x) for x in inputs):
        inputs = (inputs[0], known(inputs[1]))             # 2 ** -1 is a float
        if not isinstance(inputs[0], Tracer) and not isinstance(inputs[1], Tracer):
            return inputs[0] ** int(inputs[1])
        if not isinstance(inputs[1], Tracer) and inputs[1] < 0:
            inputs = (HANDLERS["operator"]("multiply", inputs[0], 1.0), inputs[1])
    base, exponent = inputs if len(inputs) == 2 else (None, None)
    if name == "power" and isinstance(base, ArrayTracer) and base._type.dtype is BOOL and type(exponent) is int and exponent == 2:
        name, inputs = "square", inputs[:1]                # of booleans int8, where np.power gives int64
    result = evaluate(UFUNCS[name], inputs)
    if isinstance(result, tuple):
        return tuple([laid_out(fresh(value), inputs) for value in result])
    made = fresh(result)
    if not result.type.shape:
        made._kind = _weak_result(name, inputs, result) or made._kind
        return made
    return laid_out(made, inputs)


def _is_count(x: Any) -> bool:
    """Whether it is a traced integer, no array."""
    return isinstance(x, ScalarTracer) and x._type.dtype.is_integer and not x._storage.writable


def _is_python_integer(x: Any) -> bool:
    return x._kind is int if isinstance(x, Tracer) else type(x) is int


def in_place(name: str, target: Tracer, other: Any) -> Any:
    """The handler of `+=` and the like; a scalar is rebound, as Python does with immutable objects."""
    if not target._storage.writable:
        return operator(name, target, other)
    if name == "matmul":
        store(target, value_of(HANDLERS["matmul"](target, other)), "same_kind", "matmul")
        return target
    store(target, evaluate(UFUNCS[name], (target, other)), "same_kind", name)
    return target


def store(target: Any, value: Value, casting: str, name: str) -> None:
    """Write a result to `out`."""
    if not isinstance(target, Tracer):
        raise TracerArrayError(output_advice(name))
    require_cast(value.dtype, target._type.dtype, casting, f"np.{name}: out=")
    if value.shape != target.shape:
        raise ShapeError(f"np.{name}: the result of shape {value.shape} does not fit into out= of shape {target.shape}")
    assign(target, cast(value, target._type.dtype))


def delivered(name: str, value: Value, out: Any, casting: str = "same_kind") -> Any:
    """A result: written to `out` (NumPy also takes a tuple of one) and given back as that, or a new array."""
    out = out[0] if isinstance(out, tuple) else out
    if out is None:
        return fresh(value)
    store(out, value, casting, name)
    return out


def call_ufunc(ufunc: Any, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """ufunc(*inputs, out=, where=, dtype=, casting=) of NumPy's protocol."""
    name = ufunc.__name__
    if name in GENERALISED:
        return HANDLERS[GENERALISED[name]](*inputs, **kwargs)
    entry = ufunc_named(name, ufunc)
    if entry.numpy is None:
        entry = entry._replace(numpy=ufunc)         # scipy's own type resolution
    if not kwargs:
        return _wrapped(evaluate(entry, inputs), inputs)
    outs = kwargs.pop("out", None) or ()
    where = kwargs.pop("where", True)
    dtype = requested(kwargs.pop("dtype", None))
    casting = kwargs.pop("casting", "same_kind")
    kwargs.pop("subok", None)
    if kwargs.get("order") == "K":
        kwargs.pop("order")
    for key, value in kwargs.items():
        raise UnsupportedError(f"np.{name}: keyword {key}={value!r} is not supported on traced arrays")
    result = evaluate(entry, inputs, dtype, casting)
    results = result if isinstance(result, tuple) else (result,)
    if where is not True:
        results = tuple([_masked(name, value, where, outs[k] if k < len(outs) else None) for k, value in enumerate(results)])
    if not outs:
        return _wrapped(results if len(results) > 1 else results[0], inputs)
    written = []
    for value, out in zip(results, outs, strict=True):
        if out is not None:
            store(out, value, casting, name)
        written.append(laid_out(fresh(value), inputs) if out is None else out)
    return tuple(written) if len(written) > 1 else written[0]


GENERALISED = {"matmul": "matmul", "vecdot": "vecdot", "vecmat": "vecmat", "matvec": "matvec"}


def _wrapped(result: Any, inputs: tuple[Any, ...]) -> Any:
    if isinstance(result, tuple):
        return tuple([laid_out(fresh(value), inputs) for value in result])
    return laid_out(fresh(result), inputs)


def _masked(name: str, value: Value, where: Any, out: Any) -> Value:
    if out is None:
        raise UnsupportedError(f"np.{name}: where= without out= leaves elements uninitialised\n"
                               "  hint: give out=, or use np.where(condition, a, b)")
    mask = mask_as(where, name)
    shape = broadcast_shapes([value.shape, mask.shape])
    old = materialise(value_as(out), value.dtype, shape)
    return ops.select(materialise(mask, BOOL, shape), materialise(value, value.dtype, shape), old)


HANDLERS.update(operator=operator, in_place=in_place)
UFUNC_METHODS["__call__"] = call_ufunc
