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
from bwcompiler.ir.op import Op, Value, Vjp, define_op
from bwcompiler.ir.types import F64, TensorType
from bwcompiler.ops.broadcasting import LEADING_AXES
from bwcompiler.ops.elementwise import elementwise, exp, full_like, greater, select

TWO_OVER_SQRT_PI = 2.0 / math.sqrt(math.pi)
Function = Callable[..., Any]


# ----- references, which compute in double precision.  Exported programs bring their source along: they name nothing but NumPy,
# `math`, and functions and numbers of this module.
def in_double(function: Function, x: Any) -> Any:
    """A function computed in float64, in the dtype of x; no warnings."""
    x = np.asarray(x)
    with np.errstate(all="ignore"):
        return np.asarray(function(x.astype(np.float64))).astype(x.dtype)


def each(function: Function, x: Any) -> Any:
    """A function of one float applied to all elements."""
    return np.asarray(np.frompyfunc(function, 1, 1)(x), dtype=np.float64)


def numpy_call(name: str, x: Any) -> Any:
    """The function of NumPy of that name: what formulas for scalar expressions call when they compute arrays."""
    return getattr(np, name)(x)


def special(name: str, reference: Function, vjp: Vjp, *ufuncs: str, doc: str, scalar: Callable[..., s.Scalar] | None = None) -> Op:
    """Declare a function of one float array.  ufuncs: its names in scipy.special, each an entry of bw.scipy.special."""
    return elementwise(name, reference, vjp, doc=doc, kinds="f", cheap=False, scalar=scalar, ufuncs=ufuncs)


def _chain(series: Sequence[float], x: Value) -> Value:
    """series[0] + series[1] x + ... by Horner's rule."""
    result = x * series[-1] + series[-2]
    for coefficient in reversed(series[:-2]):
        result = result * x + coefficient
    return result


# ----- error functions
def erf_reference(x: Any) -> Any:
    """The error function."""
    return in_double(lambda y: each(math.erf, y), x)


def erfc_reference(x: Any) -> Any:
    """1 - erf(x)."""
    return in_double(lambda y: each(math.erfc, y), x)


def inverse_of_erf(y: Any) -> Any:
    """Halley's method on erf or erfc (whichever keeps the digits), from Winitzki's approximation (error 2e-3)."""
    size = np.abs(y)
    log = np.log1p(-size * size) / 2
    half = 2 / (math.pi * 0.147) + log
    x = np.sqrt(np.maximum(np.sqrt(half * half - 2 * log / 0.147) - half, 0.0))
    for _ in range(5):
        residual = np.where(size < 0.5, each(math.erf, x) - size, (1 - size) - each(math.erfc, x))
        step = residual / (TWO_OVER_SQRT_PI * np.exp(-x * x))
        x = x - np.where(np.isfinite(step), step / (1 + x * step), 0.0)      # f''/f' = -2x
    x = np.where(size < 1e-150, size / TWO_OVER_SQRT_PI, x)
    return np.copysign(np.where(size < 1, x, np.where(size == 1, np.inf, np.nan)), y)


def erfinv_reference(x: Any) -> Any:
    """The inverse of erf."""
    return in_double(inverse_of_erf, x)


# P with erfcx(x) = P(q) / (1 + 2x), q = (x - 3) / (x + 3), on x >= 0: Chebyshev interpolation in 50 digits; relative error 2^-58
# (degree 25), and 2^-28 (degree 12) for f32 results, which are computed in f64.
ERFCX = (
    1.2530080582697296, -0.1356211061245812, -0.04756229435344912, 0.12964515870276316, -0.11927366341538978,
    0.06830802734389313, -0.023770514917107986, 0.0025293918173706497, 0.0018886903443894542, -0.0007798322831260387,
    -0.00010515971612176149, 0.00012509940933306624, 4.949184182276066e-06, -2.010075903780886e-05, -7.307985940695724e-07,
    3.4728430145951554e-06, 3.5571413343395913e-07, -6.172971639709339e-07, -1.4042772727671948e-07, 1.0252159854733823e-07,
    4.1031674722876435e-08, -1.3744637271614611e-08, -8.205287217548862e-09, 1.1435382719942424e-09, 8.373239801913565e-10,
    -2.5208846559132343e-11,
)
ERFCX_SINGLE = (
    1.2530080582697296, -0.13562106822069417, -0.04756229382771763, 0.1296440910249622, -0.1192736784315029,
    0.06831669729438275, -0.023770388711381683, 0.0024988226113873105, 0.0018882157008084247, -0.0007261608011693134,
    -0.00010422117710741312, 7.720413938052222e-05, 3.891751557197811e-06,
)


def erfcx_formula(x: Any, series: Any, select: Function, call: Function) -> Any:
    """exp(x²) erfc(x), for arrays and for scalar expressions alike; for x < 0: 2 exp(x²) - erfcx(-x).

    x² = h² + (|x| - h)(|x| + h) with h = |x| rounded down to 1/16: h² is exact, so exp(x²) keeps all digits.
    """
    size = call("absolute", x)
    finite = select(size > 1e30, 1e30, size)
    q = (finite - 3.0) / (finite + 3.0)
    polynomial = q * series[-1] + series[-2]
    for k in range(3, len(series) + 1):
        polynomial = polynomial * q + series[-k]
    positive = polynomial * 0.5 / (size + 0.5)
    bounded = select(size > 28.0, 28.0, size)                                # exp(28²) is infinite
    high = call("floor", bounded * 16.0) * 0.0625
    growth = call("exp", high * high) * (call("exp", (bounded - high) * (bounded + high)) * 2.0)
    return select(x < 0.0, growth - positive, positive)


def erfcx_reference(x: Any) -> Any:
    """exp(x²) erfc(x)."""
    return in_double(lambda y: erfcx_formula(y, ERFCX, np.where, numpy_call), x)


def _erfcx_scalar(x: s.Scalar) -> s.Scalar:
    found = erfcx_formula(s.cast(x, F64), ERFCX if x.dtype is F64 else ERFCX_SINGLE, s.select, s.operation)
    return s.cast(found, x.dtype)


# √π x erfcx(x) - 1 = Σ_k>0 (-1)ᵏ (2k - 1)!! / (2x²)ᵏ (7.12.1), as a polynomial in 1/x² after the first 1/x²
ERFCX_SLOPE = tuple(-((-1.0) ** k) * math.prod(range(1, 2 * k + 2, 2)) / 2.0 ** (k + 1) for k in range(9))


def _erfcx_vjp(ct: Value, out: Value, x: Value) -> Value:
    # 2x erfcx(x) - 2/√π, which cancels for large x: there its asymptotic series (relative error 1e-13; f32: 4e-6)
    far = greater(x, full_like(x, 12.0 if x.dtype is F64 else 5.0))
    inverse = 1.0 / select(far, x, full_like(x, 1.0))
    square = inverse * inverse
    series = square * _chain(ERFCX_SLOPE, square) * TWO_OVER_SQRT_PI
    near = select(far, full_like(x, 0.0), x) * out * 2.0 - TWO_OVER_SQRT_PI
    return ct * select(far, series, near)


def sigmoid_of_double(x: Any) -> Any:
    """1 / (1 + exp(-x)), without overflow."""
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0, small) / (1.0 + small)


def sigmoid_reference(x: Any) -> Any:
    """1 / (1 + exp(-x)), without overflow."""
    return in_double(sigmoid_of_double, x)


erf = special("erf", erf_reference, (lambda ct, out, x: ct * (exp(-(x * x)) * TWO_OVER_SQRT_PI),), "erf",
              doc="The error function.")
erfc = special("erfc", erfc_reference, (lambda ct, out, x: ct * (exp(-(x * x)) * -TWO_OVER_SQRT_PI),), "erfc",
               doc="1 - erf(x), accurate where that is small.")
erfcx = special("erfcx", erfcx_reference, (_erfcx_vjp,), "erfcx",
                scalar=_erfcx_scalar,
                doc="exp(x**2) erfc(x), which neither overflows nor vanishes for large x.")
erfinv = special("erfinv", erfinv_reference, (lambda ct, out, x: ct * (exp(out * out) * (1.0 / TWO_OVER_SQRT_PI)),), "erfinv",
                 doc="The inverse of erf: infinite at -1 and 1, nan beyond.")
sigmoid = special("sigmoid", sigmoid_reference, (lambda ct, out, x: ct * (out * (1.0 - out)),), "expit",
                  doc="1 / (1 + exp(-x)), without overflow.  The VJP reads the output, so x need not be kept.")


# ----- gamma functions
def lgamma_of_float(x: float) -> float:
    """log |Γ(x)|, infinite at poles."""
    try:
        return math.lgamma(x)
    except (ValueError, OverflowError):        # a pole, or a result that is too large
        return math.inf


SHIFT = 10
BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)     # B_2, B_4, ... B_16


def psi_of_positive(x: Any) -> Any:
    # ψ(x) = ψ(x + n) - Σ 1 / (x + k)  (5.5.2);  ψ(y) ~ ln y - 1/2y - Σ B_2k / (2k y^2k)  (5.11.2)
    y = np.where(x < SHIFT, x + SHIFT, x)
    series = sum(bernoulli / (2 * k * y ** (2 * k)) for k, bernoulli in enumerate(BERNOULLI, 1))
    shift = sum(1.0 / (x + k) for k in range(SHIFT))
    return np.log(y) - 0.5 / y - series - np.where(x < SHIFT, shift, 0.0)


def psi_of_double(x: Any) -> Any:
    # ψ(x) = ψ(1 - x) - π / tan(πx)  (5.5.4);  x - rint(x) is exact
    cotangent = math.pi / np.tan(math.pi * (x - np.rint(x)))
    found = psi_of_positive(np.where(x < 0, 1.0 - x, x)) - np.where(x < 0, cotangent, 0.0)
    pole = (x < 0) & (x == np.rint(x))
    return np.where(x == 0, np.copysign(np.inf, -x), np.where(pole, np.nan, found))


def digamma_reference(x: Any) -> Any:
    """The derivative of log |Γ(x)|."""
    return in_double(psi_of_double, x)


def trigamma_formula(x: Any, select: Function, call: Function) -> Any:
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


def trigamma_reference(x: Any) -> Any:
    """The derivative of digamma."""
    return in_double(lambda y: trigamma_formula(y, np.where, numpy_call), x)


def cotangent_polynomial(n: int) -> list[int]:
    """Coefficients, from c⁰ on, of Q in dⁿ/dxⁿ cot(πx) = πⁿ Q(c), c = cot(πx):  Q₀ = c,  Qₖ₊₁ = -(1 + c²) Qₖ'."""
    found = [0, 1]
    for _ in range(n):
        slope = [k * coefficient for k, coefficient in enumerate(found)][1:]
        found = [-(a + b) for a, b in zip([*slope, 0, 0], [0, 0, *slope], strict=True)]
    return found


def power_of_integer(x: Any, n: int) -> Any:
    result = x
    for _ in range(n - 1):
        result = result * x
    return result


def polygamma_formula(x: Any, n: int, select: Function, call: Function) -> Any:
    """ψ⁽ⁿ⁾(x), n >= 1, for arrays and for scalar expressions alike.

    With z > 0, m terms and y = z + m:  (-1)ⁿ⁺¹ ψ⁽ⁿ⁾(z) ~ n! Σ 1/(z + k)ⁿ⁺¹ + (n-1)!/yⁿ + n!/2yⁿ⁺¹ + Σ B_2k (2k+n-1)!/((2k)! y^(2k+n))
    (5.15.1, 5.15.8);  ψ⁽ⁿ⁾(x) = (-1)ⁿ ψ⁽ⁿ⁾(1 - x) - π dⁿ/dxⁿ cot(πx)  (5.15.6).
    """
    shift = SHIFT + n
    negative = x < 0.0
    z = select(negative, 1.0 - x, x)
    total = 1.0 / power_of_integer(z, n + 1)
    for k in range(1, shift):
        total = total + 1.0 / power_of_integer(z + float(k), n + 1)
    inverse = 1.0 / (z + float(shift))
    square = inverse * inverse
    series = square * 0.0
    for k in range(len(BERNOULLI), 0, -1):
        series = (series + BERNOULLI[k - 1] * math.factorial(2 * k + n - 1) / math.factorial(2 * k)) * square
    tail = power_of_integer(inverse, n) * (series + float(math.factorial(n - 1)) + inverse * (0.5 * math.factorial(n)))
    sign = -1.0 if n % 2 == 0 else 1.0
    found = (total * float(math.factorial(n)) + tail) * sign
    distance = x - call("rint", x)
    angle = distance * math.pi
    cotangent = call("cos", angle) / call("sin", angle)
    polynomial = cotangent * 0.0
    for coefficient in reversed(cotangent_polynomial(n)):
        polynomial = polynomial * cotangent + float(coefficient)
    found = select(negative, found * -sign - polynomial * math.pi ** (n + 1), found)
    return select(negative & (call("absolute", distance) <= 0.0), sign * math.inf, found)            # poles at -1, -2, ...


def polygamma_reference(x: Any, *, n: int) -> Any:
    """The derivative of order n of digamma."""
    return in_double(lambda y: polygamma_formula(y, n, np.where, numpy_call), x)


def _polygamma_shape(x: TensorType, *, n: int) -> TensorType:
    if x.dtype.kind != "f" or n < 1:
        raise DTypeError(f"polygamma of order {n} does not take {x.dtype.numpy}")
    return x


# 1 - γ and (-1)ᵏ (ζ(k) - 1) / k for k = 2, 3, ...:  log Γ(2 + e) = e Σ LGAMMA_NEAR_TWO[k] eᵏ  (5.7.3)
LGAMMA_NEAR_TWO = (
    0.42278433509846713, 0.3224670334241132, -0.0673523010531981, 0.020580808427784546, -0.007385551028673986,
    0.0028905103307415234, -0.001192753911703261, 0.0005096695247430425, -0.00022315475845357939, 9.945751278180853e-05,
    -4.492623673813314e-05, 2.050721277567069e-05, -9.439488275268397e-06, 4.374866789907488e-06,
    -2.039215753801366e-06, 9.55141213040742e-07, -4.492469198764566e-07, 2.1207184805554665e-07,
    -1.0043224823968099e-07, 4.7698101693639804e-08, -2.2711094608943164e-08, 1.0838659214896955e-08,
    -5.183475041970047e-09, 2.4836745438024785e-09, -1.1921401405860912e-09, 5.731367241678862e-10,
    -2.7595228851242334e-10, 1.330476437424449e-10, -6.4229645638381e-11, 3.1044247747322276e-11,
)


def lgamma_of_double(x: Any) -> Any:
    """log |Γ(x)|; near its zeros 1 and 2 by its series there, which keeps the digits that math.lgamma loses."""
    below = (x > 0.5) & (x <= 1.5)
    e = np.where(below, x - 1.0, np.where((x > 1.5) & (x < 2.5), x - 2.0, 0.0))
    series = np.zeros_like(e)
    for coefficient in reversed(LGAMMA_NEAR_TWO):
        series = series * e + coefficient
    near = e * series - np.where(below, np.log1p(e), 0.0)                    # Γ(1 + e) = Γ(2 + e) / (1 + e)
    return np.where((x > 0.5) & (x < 2.5), near, each(lgamma_of_float, x))


def lgamma_reference(x: Any) -> Any:
    """The logarithm of |Γ(x)|."""
    return in_double(lgamma_of_double, x)


lgamma = special("lgamma", lgamma_reference, (lambda ct, out, x: ct * digamma(x),), "gammaln",
                 doc="The logarithm of |Γ(x)|.")
digamma: Op = special("digamma", digamma_reference, (lambda ct, out, x: ct * trigamma(x),), "psi", "digamma",
                      doc="The derivative of lgamma.")
trigamma: Op = special("trigamma", trigamma_reference, (lambda ct, out, x: ct * polygamma(x, n=2),),
                       scalar=lambda x: trigamma_formula(x, s.select, s.operation), doc="The derivative of digamma.")
polygamma: Op = define_op(
    "polygamma", "elementwise", doc="The derivative of order n >= 1 of digamma.", attributes=("n",), shape=_polygamma_shape,
    vjp=(lambda ct, out, x, *, n: ct * polygamma(x, n=n + 1),), batch=LEADING_AXES, reference=polygamma_reference,
    element=lambda at, x, *, n: polygamma_formula(x(*at), n, s.select, s.operation), kinds="f", cheap=False,
)
