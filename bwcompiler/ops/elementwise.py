"""Elementwise ops: arithmetic, transcendental functions, comparisons, logic, select, cast.

Operands have one shape and (except select's condition and cast) one dtype; the frontend inserts broadcast and cast.
A VJP rule is a formula in `ct`, `out` and the operands; the JVP is the same formula applied to the tangent, because
every elementwise derivative is diagonal.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bwcompiler.errors import DTypeError
from bwcompiler.ir import scalar as s
from bwcompiler.ir.declaration import NotDifferentiable, not_differentiable
from bwcompiler.ir.op import Op, Value, Vjp, define_op
from bwcompiler.ir.types import BOOL, DType, TensorType, complex_of, component_of
from bwcompiler.ops import numpy_text
from bwcompiler.ops.broadcasting import LEADING_AXES
from bwcompiler.ops.creation import full
from bwcompiler.ops.numpy_text import infix
from bwcompiler.ops.rules import require, require_same

PIECEWISE_CONSTANT = not_differentiable("piecewise constant: its derivative is zero")
BOOLEAN = not_differentiable("a boolean result has no derivative")
INTEGER = not_differentiable("an integer operation has no derivative")


_RESULTS: dict[str, Callable[[DType], DType]] = {
    "same": lambda dtype: dtype, "bool": lambda dtype: BOOL, "part": component_of, "complex": complex_of}


def elementwise(name: str, reference: Callable[..., Any], vjp: Vjp, *, doc: str = "", kinds: str = "iufc",
                result: str = "same", jvp: Any = None, scalar: Callable[..., s.Scalar] | None = None,
                numpy: str | Callable[..., Any] | None = None, ufuncs: tuple[str, ...] | None = None,
                keeps_zero: bool = False, commutative: bool = False, cheap: bool = True) -> Op:
    """Declare an elementwise op.

    kinds     supported dtype kinds; result: "same", "bool", "part" (real, for complex operands) or "complex" (for real ones).
    scalar    one element of the result from those of the operands, composed of scalar operations (`bwcompiler.ir.scalar`);
              None: there is a scalar operation of the op's name.
    """
    def shape(*types: TensorType) -> TensorType:
        type_ = require_same(name, *types)
        if type_.dtype.kind not in kinds:
            raise DTypeError(f"{name} does not take {type_.dtype.numpy}")
        return type_.with_dtype(_RESULTS[result](type_.dtype))

    rule = s.primitive(name) if scalar is None else scalar

    def element(at: tuple[Any, ...], *reads: s.Read) -> s.Scalar:
        return rule(*[operand(*at) for operand in reads])

    return define_op(name, "elementwise", doc=doc or f"np.{name}, element by element.", attributes=(), shape=shape,
                     vjp=vjp, jvp=jvp, batch=LEADING_AXES, reference=reference, element=element, numpy=numpy, ufuncs=ufuncs,
                     kinds=kinds, keeps_zero=keeps_zero, commutative=commutative, cheap=cheap)


def full_like(like: Value, value: Any) -> Value:
    """A constant of like's type."""
    return full(value=value, shape=like.shape, dtype=like.dtype)


def _unary(name: str, derivative: Callable[[Value, Value, Value], Value] | NotDifferentiable, **options: Any) -> Op:
    reference = options.pop("reference", None) or getattr(np, name)
    vjp: Vjp = derivative if isinstance(derivative, NotDifferentiable) else (derivative,)
    return elementwise(name, reference, vjp, **options)


# ----- arithmetic
add = elementwise("add", np.add, (lambda ct, out, x, y: ct, lambda ct, out, x, y: ct), keeps_zero=True,
                  commutative=True, numpy=infix("+"))
subtract = elementwise("subtract", np.subtract, (lambda ct, out, x, y: ct, lambda ct, out, x, y: -ct), keeps_zero=True, numpy=infix("-"))
multiply = elementwise("multiply", np.multiply, (lambda ct, out, x, y: ct * y, lambda ct, out, x, y: ct * x),
                       commutative=True, numpy=infix("*"))
divide = elementwise("divide", np.divide, (lambda ct, out, x, y: ct / y, lambda ct, out, x, y: -(ct / y * out)),
                     kinds="fc", numpy=infix("/"))
negative = _unary("negative", lambda ct, out, x: -ct, keeps_zero=True, numpy="-{0}")
absolute = _unary("absolute", lambda ct, out, x: ct * sign(x), doc="|x|; the derivative at 0 is 0.", kinds="iuf")
sign: Op = _unary("sign", PIECEWISE_CONSTANT, kinds="iuf")
floor_divide = elementwise("floor_divide", np.floor_divide, PIECEWISE_CONSTANT, kinds="iuf", numpy=infix("//"))
remainder = elementwise("remainder", np.remainder,
                        (lambda ct, out, x, y: ct, lambda ct, out, x, y: -(ct * floor_divide(x, y))),
                        doc="x mod y with the sign of y.", kinds="iuf", numpy=infix("%"))
fmod = elementwise("fmod", np.fmod, (lambda ct, out, x, y: ct, lambda ct, out, x, y: -(ct * trunc(x / y))),
                   doc="x mod y with the sign of x.", kinds="iuf")


def _balanced(ct: Value, mine: Value, other: Value) -> Value:
    """ct if this operand is the result, half of it if the other one is too (JAX's convention), else 0.  One comparison per operand, so that
    both cotangents share two comparisons."""
    return select(mine, select(other, ct * 0.5, ct), full_like(ct, 0.0))


maximum = elementwise("maximum", np.maximum, (lambda ct, out, x, y: _balanced(ct, greater_equal(x, y), less_equal(x, y)),
                                              lambda ct, out, x, y: _balanced(ct, less_equal(x, y), greater_equal(x, y))),
                      doc="The larger operand (complex ones by real, then imaginary part); nan if either is nan; the gradient is halved "
                      "at ties.", commutative=True, kinds="biufc")
minimum = elementwise("minimum", np.minimum, (lambda ct, out, x, y: _balanced(ct, less_equal(x, y), greater_equal(x, y)),
                                              lambda ct, out, x, y: _balanced(ct, greater_equal(x, y), less_equal(x, y))),
                      doc="The smaller operand (complex ones by real, then imaginary part); nan if either is nan; the gradient is halved "
                      "at ties.", commutative=True, kinds="biufc")
copysign: Op = elementwise(
    "copysign", np.copysign,
    (lambda ct, out, x, y: ct * (copysign(full_like(x, 1.0), x) * copysign(full_like(y, 1.0), y)), PIECEWISE_CONSTANT),
    kinds="f")

# ----- powers, exponentials, logarithms
sqrt = _unary("sqrt", lambda ct, out, x: ct * 0.5 / out, kinds="fc")
cbrt = _unary("cbrt", lambda ct, out, x: ct / (out * out * 3.0), kinds="f", cheap=False)
exp = _unary("exp", lambda ct, out, x: ct * out, kinds="fc", cheap=False)
exp2 = _unary("exp2", lambda ct, out, x: ct * out * math.log(2.0), kinds="fc", cheap=False)
expm1 = _unary("expm1", lambda ct, out, x: ct * (out + 1.0), kinds="fc", cheap=False)
log = _unary("log", lambda ct, out, x: ct / x, kinds="fc", cheap=False)
log2 = _unary("log2", lambda ct, out, x: ct / (x * math.log(2.0)), kinds="fc", cheap=False)
log10 = _unary("log10", lambda ct, out, x: ct / (x * math.log(10.0)), kinds="fc", cheap=False)
log1p = _unary("log1p", lambda ct, out, x: ct / (x + 1.0), kinds="fc", cheap=False)


def _power_base(ct: Value, out: Value, x: Value, y: Value) -> Value:
    # d/dx x**y = y x**(y-1); at 0**0 the power counts as the constant 1.  Elsewhere y == 0 is not special: d²/dx dy is 1 / x there.
    constant = equal(y, full_like(y, 0.0))
    zero = select(constant, equal(x, full_like(x, 0.0)), full_like(constant, False))
    return select(zero, full_like(ct, 0.0), ct * (y * power(x, select(zero, full_like(y, 1.0), y - 1.0))))


def _power_exponent(ct: Value, out: Value, x: Value, y: Value) -> Value:
    # d/dy x**y = x**y log(x); at x == 0 the limit 0 is taken (as JAX does).
    return ct * (log(select(equal(x, full_like(x, 0.0)), full_like(x, 1.0), x)) * out)


power = elementwise("power", np.power, (_power_base, _power_exponent), kinds="iufc", cheap=False, numpy=infix("**"))


def _share_of_sum(out: Value, x: Value) -> Value:
    """exp(x - out); 1 if both are the same infinity, as for any x that dominates the sum."""
    all_of_it = bitwise_and(isinf(out), equal(x, out))
    return exp(select(all_of_it, full_like(x, 0.0), x - out))


logaddexp = elementwise("logaddexp", np.logaddexp, (lambda ct, out, x, y: ct * _share_of_sum(out, x),
                                                    lambda ct, out, x, y: ct * _share_of_sum(out, y)),
                        kinds="f", commutative=True, cheap=False)

# ----- trigonometric and hyperbolic functions
sin = _unary("sin", lambda ct, out, x: ct * cos(x), kinds="fc", cheap=False)
cos: Op = _unary("cos", lambda ct, out, x: -(ct * sin(x)), kinds="fc", cheap=False)
tan = _unary("tan", lambda ct, out, x: ct * (out * out + 1.0), kinds="fc", cheap=False)
arcsin = _unary("arcsin", lambda ct, out, x: ct / sqrt(1.0 - x * x), kinds="fc", cheap=False)
arccos = _unary("arccos", lambda ct, out, x: -(ct / sqrt(1.0 - x * x)), kinds="fc", cheap=False)
arctan = _unary("arctan", lambda ct, out, x: ct / (x * x + 1.0), kinds="fc", cheap=False)
sinh = _unary("sinh", lambda ct, out, x: ct * cosh(x), kinds="fc", cheap=False)
cosh: Op = _unary("cosh", lambda ct, out, x: ct * sinh(x), kinds="fc", cheap=False)
tanh = _unary("tanh", lambda ct, out, x: ct * (1.0 - out * out), kinds="fc", cheap=False,
              doc="Hyperbolic tangent.  The VJP reads the output, so x need not be kept.")
arcsinh = _unary("arcsinh", lambda ct, out, x: ct / sqrt(x * x + 1.0), kinds="fc", cheap=False)
arccosh = _unary("arccosh", lambda ct, out, x: ct / (sqrt(x - 1.0) * sqrt(x + 1.0)), kinds="fc", cheap=False)
arctanh = _unary("arctanh", lambda ct, out, x: ct / (1.0 - x * x), kinds="fc", cheap=False)
arctan2 = elementwise("arctan2", np.arctan2, (lambda ct, out, y, x: ct * (x / (x * x + y * y)),
                                              lambda ct, out, y, x: -(ct * (y / (x * x + y * y)))), kinds="f",
                      cheap=False)


def _direction(x: Value, out: Value) -> Value:
    """x / out; 0 at the origin, where hypot has no derivative (norms have the same convention)."""
    origin = equal(out, full_like(out, 0.0))
    return select(origin, full_like(x, 0.0), x / select(origin, full_like(out, 1.0), out))


hypot = elementwise("hypot", np.hypot, (lambda ct, out, x, y: ct * _direction(x, out),
                                        lambda ct, out, x, y: ct * _direction(y, out)), kinds="f", commutative=True, cheap=False,
                    doc="sqrt(x**2 + y**2) without overflow; the derivative at (0, 0) is 0.")

# ----- rounding
floor = _unary("floor", PIECEWISE_CONSTANT, kinds="f")
ceil = _unary("ceil", PIECEWISE_CONSTANT, kinds="f")
trunc: Op = _unary("trunc", PIECEWISE_CONSTANT, kinds="f")
rint = _unary("rint", PIECEWISE_CONSTANT, kinds="fc")

# ----- comparisons and predicates
equal: Op = elementwise("equal", np.equal, BOOLEAN, result="bool", commutative=True, kinds="biufc", numpy=infix("=="))
not_equal = elementwise("not_equal", np.not_equal, BOOLEAN, result="bool", commutative=True, kinds="biufc", numpy=infix("!="))
less: Op = elementwise("less", np.less, BOOLEAN, result="bool", kinds="biufc", numpy=infix("<"))
less_equal: Op = elementwise("less_equal", np.less_equal, BOOLEAN, result="bool", kinds="biufc", numpy=infix("<="))
greater: Op = elementwise("greater", np.greater, BOOLEAN, result="bool", kinds="biufc", numpy=infix(">"))
greater_equal: Op = elementwise("greater_equal", np.greater_equal, BOOLEAN, result="bool", kinds="biufc", numpy=infix(">="))
isnan = _unary("isnan", BOOLEAN, result="bool", kinds="fc")
isinf: Op = _unary("isinf", BOOLEAN, result="bool", kinds="fc")
isfinite = _unary("isfinite", BOOLEAN, result="bool", kinds="fc")
signbit = _unary("signbit", BOOLEAN, result="bool", kinds="f")

# ----- bits (for booleans these are the logical operations)
bitwise_and: Op = elementwise("bitwise_and", np.bitwise_and, INTEGER, kinds="biu", commutative=True, numpy=infix("&"))
bitwise_or = elementwise("bitwise_or", np.bitwise_or, INTEGER, kinds="biu", commutative=True, numpy=infix("|"))
bitwise_xor = elementwise("bitwise_xor", np.bitwise_xor, INTEGER, kinds="biu", commutative=True, numpy=infix("^"))
invert = _unary("invert", INTEGER, kinds="biu", numpy="~{0}")
left_shift = elementwise("left_shift", np.left_shift, INTEGER, kinds="iu", numpy=infix("<<"))
right_shift = elementwise("right_shift", np.right_shift, INTEGER, kinds="iu", numpy=infix(">>"))


# ----- select, cast, stop_gradient
def _select_shape(condition: TensorType, x: TensorType, y: TensorType) -> TensorType:
    require(condition.dtype is BOOL, "select: the condition must be boolean", condition)
    type_ = require_same("select", x, y)
    require(condition.shape == type_.shape, "select: condition and branches must have one shape", condition, x, y)
    return type_


# The cotangent of a branch is to be read as 0 if the other one was chosen; autodiff turns these rules into guards
# (bwcompiler.passes.derivatives.cotangents), so that nan and inf of the masked branch never reach the gradient.
def _select_jvp(tangents: Sequence[Value | None], out: Value, c: Value, x: Value, y: Value) -> Value | None:
    _, dx, dy = tangents
    if dx is None and dy is None:
        return None
    guard = guard_of_nan(c, x)
    if guard is not None and dx is not None and dy is None:
        return without_nan(dx, guard)
    return select(c, full_like(x, 0.0) if dx is None else dx, full_like(y, 0.0) if dy is None else dy)


select: Op = define_op(
    "select", "elementwise", doc="x where the condition holds, else y.", attributes=(), shape=_select_shape,
    vjp=(BOOLEAN, lambda ct, out, c, x, y: select(c, ct, full_like(ct, 0.0)),
         lambda ct, out, c, x, y: select(c, full_like(ct, 0.0), ct)),
    jvp=_select_jvp, batch=LEADING_AXES, reference=lambda c, x, y: np.where(c, x, y),
    numpy="np.where({0}, {1}, {2})",
    element=lambda at, c, x, y: s.select(c(*at), x(*at), y(*at)),
)


def without_nan(x: Value, guard: Value) -> Value:
    """x, with 0 instead of nan where the guard is false: for a cotangent (or its tangent) whose zeros may stand for masked values."""
    return select(bitwise_or(guard, equal(x, x)), x, full_like(x, 0.0))


def guard_of_nan(condition: Value, x: Value) -> Value | None:
    """The guard of `without_nan`, if this is the condition of it."""
    if condition.op is bitwise_or:
        for guard, asked in (condition.operands, condition.operands[::-1]):
            if asked.op is equal and asked.operands == (x, x):
                return guard
    return None


def _cast_vjp(ct: Value, out: Value, x: Value, *, dtype: DType) -> Value | None:
    if not (x.dtype.is_differentiable and dtype.is_differentiable):
        return None
    return cast(ct, dtype=x.dtype)


def _cast_jvp(tangents: Sequence[Value | None], out: Value, x: Value, *, dtype: DType) -> Value | None:
    if tangents[0] is None or not (x.dtype.is_differentiable and dtype.is_differentiable):
        return None
    return cast(tangents[0], dtype=dtype)


def _cast_reference(x: Any, *, dtype: DType) -> Any:
    x = np.asarray(x)
    if x.dtype.kind == "c" and dtype.kind not in "bc":      # NumPy's astype warns that it discards the imaginary part
        x = x.real
    return x.astype(dtype.numpy)


cast: Op = define_op(
    "cast", "elementwise", doc="x converted to another dtype, as NumPy's astype.", attributes=("dtype",),
    shape=lambda x, *, dtype: x.with_dtype(dtype), vjp=(_cast_vjp,), jvp=_cast_jvp, batch=LEADING_AXES,
    reference=_cast_reference, numpy=numpy_text.cast,
    element=lambda at, x, *, dtype: s.cast(x(*at), dtype), keeps_zero=True,
)
stop_gradient = define_op(
    "stop_gradient", "elementwise", doc="x, with a zero derivative.", attributes=(), shape=lambda x: x,
    vjp=not_differentiable("stop_gradient was applied"), batch=LEADING_AXES,
    reference=lambda x: x, numpy="{0}", element=lambda at, x: x(*at), virtual=True,
)
