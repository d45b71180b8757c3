"""From an operator or ufunc call to values: promotion, `out=`, `where=`, `dtype=` and `casting=` of NumPy's protocol."""

from __future__ import annotations

from typing import Any

import numpy as np

from bwcompiler import ops
from bwcompiler.errors import ShapeError, TracerArrayError, UnsupportedError
from bwcompiler.frontend.numpy.elementwise.special_by_loop import complex_special
from bwcompiler.frontend.numpy.elementwise.special_precision import is_single_composed, loop_dtypes
from bwcompiler.frontend.numpy.elementwise.ufuncs import COMPARISONS, COMPLEX_RULES, UFUNCS, Ufunc, reciprocal, ufunc_named
from bwcompiler.frontend.tracing.handles import assign, value_of
from bwcompiler.frontend.tracing.indexing.masked_selection import Selection
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
from bwcompiler.frontend.tracing.registry import HANDLERS, UFUNC_METHODS
from bwcompiler.frontend.tracing.storages.region import active_region
from bwcompiler.frontend.tracing.storages.views import broadcast_value
from bwcompiler.frontend.tracing.tracer import ArrayTracer, ScalarTracer, Tracer, fresh
from bwcompiler.frontend.tracing.truths import are_pythons, note_truth
from bwcompiler.ir.op import Value
from bwcompiler.ir.types import BOOL, F32, F64, I64, DType
from bwcompiler.ops.creation import full


def _computed_in(ufunc: Ufunc, kinds: tuple[Kind, ...], dtype: DType | None, casting: str) -> tuple[DType, ...]:
    if ufunc.numpy is not None:
        return resolve(ufunc.numpy, kinds, dtype, casting).inputs
    if ufunc.loops is not None:
        return loop_dtypes(ufunc.loops, kinds)
    return (F32 if is_single_composed(ufunc.name, kinds) else F64,) * len(kinds)


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
        return complex_special(ufunc.name, inputs)
    dtypes = _computed_in(ufunc, tuple(kinds), dtype, casting)
    shape = payloads[0].shape if len(payloads) == 1 else broadcast_shapes([payload.shape for payload in payloads])
    if dtype is None and len(payloads) == 2:
        short = _shortened(ufunc.name, payloads[0], payloads[1], dtypes, shape)
        if short is not None:
            return short
    return ufunc.rule(*[materialise(payload, dtype_, shape)
                        for payload, dtype_ in zip(payloads, dtypes, strict=False)])


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
        return reciprocal(base)
    if exponent == 1:
        return base
    square = ops.multiply(base, base)
    return square if exponent == 2 else ops.multiply(square, base if exponent == 3 else square)


def _integer_power(x: Value, exponent: int) -> Value:
    """Integer power by squaring; overflow wraps around as in NumPy."""
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


def _weak_result(inputs: tuple[Any, ...], result: Value) -> type | None:
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
            inputs = (operator("multiply", inputs[0], 1.0), inputs[1])
    if name in _ARITHMETIC and are_pythons(*inputs):
        return operator(name, *[int(x) if isinstance(x, bool) else _as_int(x) for x in inputs])
    base, exponent = inputs if len(inputs) == 2 else (None, None)
    if name == "power" and isinstance(base, ArrayTracer) and base._type.dtype is BOOL and type(exponent) is int and exponent == 2:
        name, inputs = "square", inputs[:1]                # booleans give int8, unlike np.power, which gives int64
    result = evaluate(UFUNCS[name], inputs)
    if isinstance(result, tuple):
        return tuple([laid_out(fresh(value), inputs) for value in result])
    made = fresh(result)
    if not result.type.shape:
        kind = _weak_result(inputs, result)
        if name in _DIVIDING:
            _note_division(name, kind, inputs, made)
        made._kind = kind or made._kind
        if name in COMPARISONS and _are_pythons_numbers(inputs):
            note_truth(made, True)
        return made
    return laid_out(made, inputs)


def _as_int(x: Tracer) -> Tracer:
    return fresh(cast(value_of(x), I64), int)


def _are_pythons_numbers(inputs: tuple[Any, ...]) -> bool:
    return all((x._kind if isinstance(x, Tracer) else type(x)) in (int, float) for x in inputs)


_ARITHMETIC = frozenset(("absolute", "add", "floor_divide", "multiply", "negative", "positive", "power", "remainder", "subtract"))
_DIVIDING = frozenset(("divide", "floor_divide", "remainder", "power"))
_OF_DIVISIONS = (ZeroDivisionError(), OverflowError())


def _note_division(name: str, kind: type | None, inputs: tuple[Any, ...], made: Tracer) -> None:
    """A division or power, which may raise something if both are Python's numbers: it matters where that is caught."""
    region = active_region()
    trying = [] if region is None or region.policy is None else [*region.policy.tries, *region.policy.attempts]
    if region is not None and region.policy is not None and any(one.catches(error) for one in trying for error in _OF_DIVISIONS):
        if kind is not None and not HANDLERS["check_operator"](name, kind, inputs, made):
            return
        region.policy.divisions.add(value_of(made))
        region.policy.types_asked = True


def _is_count(x: Any) -> bool:
    """Whether it is a traced integer scalar."""
    return isinstance(x, ScalarTracer) and x._type.dtype.is_integer and not x._storage.writable


def _is_python_integer(x: Any) -> bool:
    return x._kind is int if isinstance(x, Tracer) else type(x) is int


def in_place(name: str, target: Tracer, other: Any) -> Any:
    """The handler of augmented assignments; a scalar is rebound, like all immutable objects."""
    if not target._storage.writable:
        return operator(name, target, other)
    if name == "matmul":
        store(target, value_of(HANDLERS["matmul"](target, other)), "same_kind", "matmul")
        return target
    other = HANDLERS["filling"](other, target.shape) if isinstance(other, Selection) else other
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
    """A result: written to `out` (or a 1-tuple of it), which is returned, or a new array."""
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
    if entry.numpy is not ufunc:
        entry = entry._replace(numpy=ufunc)         # scipy's own type resolution, also of what NumPy has by that name
    if not kwargs:
        return _wrapped(evaluate(entry, inputs), inputs)
    outs = kwargs.pop("out", None) or ()
    where = kwargs.pop("where", True)
    dtype = requested(kwargs.pop("dtype", None))
    casting = kwargs.pop("casting", "same_kind")
    kwargs.pop("subok", None)
    order = _memory_order(kwargs.pop("order", "K"))
    for key, value in kwargs.items():
        raise UnsupportedError(f"np.{name}: keyword {key}={value!r} is not supported on traced arrays")
    result = evaluate(entry, inputs, dtype, casting)
    results = result if isinstance(result, tuple) else (result,)
    if where is not True:
        results = tuple([_masked(name, value, where, outs[k] if k < len(outs) else None, casting) for k, value in enumerate(results)])
    if not outs:
        return _wrapped(results if len(results) > 1 else results[0], inputs, order)
    written = []
    for value, out in zip(results, outs, strict=True):
        if out is not None:
            store(out, _spread_over(out, value), casting, name)
        written.append(laid_out(fresh(value), inputs, order) if out is None else out)
    return tuple(written) if len(written) > 1 else written[0]


def _spread_over(out: Any, value: Value) -> Value:
    """A result of ufuncs, broadcast to the shape of `out`; unchanged if it does not fit."""
    if not isinstance(out, Tracer) or out.shape == value.shape or value.rank > out.ndim or (
            any(mine not in (1, theirs) for mine, theirs in zip(value.shape[::-1], out.shape[::-1], strict=False))):
        return value
    return broadcast_value(value, out.shape)


GENERALISED = {"matmul": "matmul", "vecdot": "vecdot", "vecmat": "vecmat", "matvec": "matvec"}


def _wrapped(result: Any, inputs: tuple[Any, ...], order: str = "K") -> Any:
    if isinstance(result, tuple):
        return tuple([laid_out(fresh(value), inputs, order) for value in result])
    return laid_out(fresh(result), inputs, order)


def _memory_order(order: Any) -> str:
    """Check `order=` of a ufunc, which only affects the memory of the result."""
    if order is None:
        return "K"
    if not isinstance(order, str):
        raise TypeError(f"order must be str, not {type(order).__name__}")
    if order.upper() not in ("C", "F", "A", "K"):
        raise ValueError(f"order must be one of 'C', 'F', 'A', or 'K' (got {order!r})")
    return order.upper()


def _masked(name: str, value: Value, where: Any, out: Any, casting: str) -> Value:
    if out is None:
        raise UnsupportedError(f"np.{name}: where= without out= leaves elements uninitialised\n"
                               "  hint: give out=, or use np.where(condition, a, b)")
    mask = mask_as(where, name)
    old = value_as(out)
    shape = broadcast_shapes([value.shape, mask.shape, old.shape])
    require_cast(value.dtype, old.dtype, casting, f"np.{name}: out=")
    return ops.select(materialise(mask, BOOL, shape), materialise(value, old.dtype, shape), materialise(old, old.dtype, shape))


HANDLERS.update(operator=operator, in_place=in_place)
UFUNC_METHODS["__call__"] = call_ufunc
