"""Special functions, element by element.  The references use NumPy and `math` only, in double precision.

Formula numbers are those of the NIST Digital Library of Mathematical Functions (https://dlmf.nist.gov).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bwcompiler.errors import DTypeError
from bwcompiler.ir import scalar as s
from bwcompiler.ir.extent import Extent
from bwcompiler.ir.op import ELEMENTWISE, Op, Value, define_op
from bwcompiler.ir.types import TensorType
from bwcompiler.ops.elementwise import elementwise, exp

TWO_OVER_SQRT_PI = 2.0 / math.sqrt(math.pi)
Function = Callable[[Any], Any]


def _in_double(function: Function) -> Function:
    """The reference that computes in f64 and returns the dtype it was given; IEEE special values, no warnings."""
    def reference(x: Any) -> Any:
        x = np.asarray(x)
        with np.errstate(all="ignore"):
            return np.asarray(function(x.astype(np.float64))).astype(x.dtype)
    return reference


def _each(function: Callable[[float], float]) -> Function:
    elements = np.frompyfunc(function, 1, 1)
    return lambda x: np.asarray(elements(x), dtype=np.float64)


# ----- error functions
def _erfinv_reference(y: Any) -> Any:
    """Newton's method on erf or erfc (whichever keeps the digits), from Winitzki's approximation (error 2e-3)."""
    size = np.abs(y)
    log = np.log1p(-size * size) / 2
    half = 2 / (math.pi * 0.147) + log
    x = np.sqrt(np.maximum(np.sqrt(half * half - 2 * log / 0.147) - half, 0.0))
    erf_, erfc_ = _each(math.erf), _each(math.erfc)
    for _ in range(5):
        residual = np.where(size < 0.5, erf_(x) - size, (1 - size) - erfc_(x))
        step = residual / (TWO_OVER_SQRT_PI * np.exp(-x * x))
        x = x - np.where(np.isfinite(step), step / (1 + x * step), 0.0)      # Halley: f''/f' = -2x
    x = np.where(size < 1e-150, size / TWO_OVER_SQRT_PI, x)
    return np.copysign(np.where(size < 1, x, np.where(size == 1, np.inf, np.nan)), y)


def _sigmoid_reference(x: Any) -> Any:
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0, small) / (1.0 + small)


erf: Op = elementwise("erf", _in_double(_each(math.erf)), (lambda ct, out, x: ct * (exp(-(x * x)) * TWO_OVER_SQRT_PI),),
                      doc="The error function.", kinds="f", cheap=False)
erfc: Op = elementwise("erfc", _in_double(_each(math.erfc)),
                       (lambda ct, out, x: ct * (exp(-(x * x)) * -TWO_OVER_SQRT_PI),),
                       doc="1 - erf(x), accurate where that is small.", kinds="f", cheap=False)
erfinv: Op = elementwise("erfinv", _in_double(_erfinv_reference),
                         (lambda ct, out, x: ct * (exp(out * out) * (1.0 / TWO_OVER_SQRT_PI)),),
                         doc="The inverse of erf: infinite at -1 and 1, nan beyond.", kinds="f", cheap=False)
sigmoid: Op = elementwise("sigmoid", _in_double(_sigmoid_reference), (lambda ct, out, x: ct * (out * (1.0 - out)),),
                          doc="1 / (1 + exp(-x)), without overflow.  The VJP reads the output, so x need not be kept.",
                          kinds="f", cheap=False)


# ----- gamma functions
def _lgamma(x: float) -> float:
    try:
        return math.lgamma(x)
    except (ValueError, OverflowError):        # a pole, or a result that is too large
        return math.inf


SHIFT = 10
BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)     # B_2, B_4, ... B_16


def _psi_positive(x: Any) -> Any:
    # ψ(x) = ψ(x + n) - Σ 1 / (x + k)  (5.5.2);  ψ(y) ~ ln y - 1/2y - Σ B_2k / (2k y^2k)  (5.11.2)
    y = np.where(x < SHIFT, x + SHIFT, x)
    series = sum(bernoulli / (2 * k * y ** (2 * k)) for k, bernoulli in enumerate(BERNOULLI, 1))
    shift = sum(1.0 / (x + k) for k in range(SHIFT))
    return np.log(y) - 0.5 / y - series - np.where(x < SHIFT, shift, 0.0)


def _digamma_reference(x: Any) -> Any:
    # ψ(x) = ψ(1 - x) - π / tan(πx)  (5.5.4);  x - rint(x) is exact
    cotangent = math.pi / np.tan(math.pi * (x - np.rint(x)))
    found = _psi_positive(np.where(x < 0, 1.0 - x, x)) - np.where(x < 0, cotangent, 0.0)
    pole = (x < 0) & (x == np.rint(x))
    return np.where(x == 0, np.copysign(np.inf, -x), np.where(pole, np.nan, found))


def _trigamma(x: Any, select: Callable[..., Any], call: Callable[..., Any]) -> Any:
    """ψ'(x), for arrays and for scalar expressions alike.

    ψ'(x) = ψ'(x + n) + Σ 1 / (x + k)²  (5.15.5);  ψ'(y) ~ 1/y + 1/2y² + Σ B_2k / y^(2k+1)  (5.15.8);
    ψ'(x) + ψ'(1 - x) = (π / sin πx)²  (5.15.6).  All terms are positive but the reflected one.
    """
    negative = x < 0.0
    z = select(negative, 1.0 - x, x)
    total = 1.0 / (z * z)
    for k in range(1, SHIFT):
        total = total + 1.0 / ((z + float(k)) * (z + float(k)))
    inverse = 1.0 / (z + float(SHIFT))
    square = inverse * inverse
    series = square * 0.0
    for bernoulli in reversed(BERNOULLI):
        series = (series + bernoulli) * square
    total = total + (inverse + square * 0.5 + inverse * series)
    sine = call("sin", (x - call("rint", x)) * math.pi)
    reflected = math.pi / sine
    return select(negative, reflected * reflected - total, total)


def _trigamma_reference(x: Any) -> Any:
    return _trigamma(x, np.where, lambda name, y: getattr(np, name)(y))


def _cotangent_polynomial(n: int) -> list[int]:
    """Coefficients, from c⁰ on, of Q in dⁿ/dxⁿ cot(πx) = πⁿ Q(c), c = cot(πx):  Q₀ = c,  Qₖ₊₁ = -(1 + c²) Qₖ'."""
    found = [0, 1]
    for _ in range(n):
        slope = [k * coefficient for k, coefficient in enumerate(found)][1:]
        found = [-(a + b) for a, b in zip([*slope, 0, 0], [0, 0, *slope], strict=True)]
    return found


def _power(x: Any, n: int) -> Any:
    result = x
    for _ in range(n - 1):
        result = result * x
    return result


def _polygamma(x: Any, n: int, select: Callable[..., Any], call: Callable[..., Any]) -> Any:
    """ψ⁽ⁿ⁾(x), n >= 1, for arrays and for scalar expressions alike.

    With z > 0, m terms and y = z + m:  (-1)ⁿ⁺¹ ψ⁽ⁿ⁾(z) ~ n! Σ 1/(z + k)ⁿ⁺¹ + (n-1)!/yⁿ + n!/2yⁿ⁺¹ + Σ B_2k (2k+n-1)!/((2k)! y^(2k+n))
    (5.15.1, 5.15.8);  ψ⁽ⁿ⁾(x) = (-1)ⁿ ψ⁽ⁿ⁾(1 - x) - π dⁿ/dxⁿ cot(πx)  (5.15.6).
    """
    shift = SHIFT + n
    negative = x < 0.0
    z = select(negative, 1.0 - x, x)
    total = 1.0 / _power(z, n + 1)
    for k in range(1, shift):
        total = total + 1.0 / _power(z + float(k), n + 1)
    inverse = 1.0 / (z + float(shift))
    square = inverse * inverse
    series = square * 0.0
    for k in range(len(BERNOULLI), 0, -1):
        series = (series + BERNOULLI[k - 1] * math.factorial(2 * k + n - 1) / math.factorial(2 * k)) * square
    tail = _power(inverse, n) * (series + float(math.factorial(n - 1)) + inverse * (0.5 * math.factorial(n)))
    sign = -1.0 if n % 2 == 0 else 1.0
    found = (total * float(math.factorial(n)) + tail) * sign
    angle = (x - call("rint", x)) * math.pi
    cotangent = call("cos", angle) / call("sin", angle)
    polynomial = cotangent * 0.0
    for coefficient in reversed(_cotangent_polynomial(n)):
        polynomial = polynomial * cotangent + float(coefficient)
    return select(negative, found * -sign - polynomial * math.pi ** (n + 1), found)


def polygamma_reference(x: Any, *, n: int) -> Any:
    """In double precision."""
    return _in_double(lambda y: _polygamma(y, n, np.where, lambda name, z: getattr(np, name)(z)))(x)


def _polygamma_shape(x: TensorType, *, n: int) -> TensorType:
    if x.dtype.kind != "f" or n < 1:
        raise DTypeError(f"polygamma of order {n} does not take {x.dtype.numpy}")
    return x


def _polygamma_batch(operands: Sequence[Value], batched: Any, size: Extent, *, n: int) -> Value:
    return polygamma(operands[0], n=n)


lgamma: Op = elementwise("lgamma", _in_double(_each(_lgamma)), (lambda ct, out, x: ct * digamma(x),),
                         doc="The logarithm of |Γ(x)|.", kinds="f", cheap=False)
digamma: Op = elementwise("digamma", _in_double(_digamma_reference), (lambda ct, out, x: ct * trigamma(x),),
                          doc="The derivative of lgamma.", kinds="f", cheap=False)
trigamma: Op = elementwise("trigamma", _in_double(_trigamma_reference), (lambda ct, out, x: ct * polygamma(x, n=2),),
                           kinds="f", cheap=False,
                           scalar=lambda x: _trigamma(x, s.select, s.operation), doc="The derivative of digamma.")
polygamma: Op = define_op(
    "polygamma", "elementwise", doc="The derivative of order n >= 1 of digamma.", attributes=("n",), shape=_polygamma_shape,
    vjp=(lambda ct, out, x, *, n: ct * polygamma(x, n=n + 1),), jvp=ELEMENTWISE, batch=_polygamma_batch,
    reference=polygamma_reference, element=lambda at, x, *, n: _polygamma(x(*at), n, s.select, s.operation), cheap=False,
)
