"""Fits the polynomials of the inline math library and writes `bwcompiler/lowering/math/coefficients.py`.

Each table is a weighted minimax polynomial by the Remez exchange algorithm in 60-digit arithmetic (mpmath).  The
coefficients are then rounded one at a time, from the lowest, refitting the rest after each.

    python tools/fit_math.py        # about half a minute
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mpmath as mp  # type: ignore[import-untyped]

mp.mp.dps = 60
Real = Any  # mpmath has no types
Function = Callable[[Real], Real]


@dataclass(frozen=True)
class Fit:
    """`weight(t) |p(t) - function(t)|` is to be small on [low, high], with p of `degree`."""

    name: str
    comment: str
    function: Function
    weight: Function
    low: Real
    high: Real
    degree: int
    single: bool = False  # round to f32 instead of f64
    start: tuple[float, ...] = ()  # lowest coefficients, given


def rounded(value: Real, single: bool) -> float:
    return struct.unpack("<f", struct.pack("<f", float(value)))[0] if single else float(value)


def grid(low: Real, high: Real, count: int) -> list[Real]:
    """Chebyshev points of the first kind: dense at the ends, never at the middle when count is even."""
    middle, half = (low + high) / 2, (high - low) / 2
    return [middle - half * mp.cos(mp.pi * (2 * i + 1) / (2 * count)) for i in range(count)]


def evaluate(coefficients: Iterable[Real], t: Real) -> Real:
    return mp.polyval(list(coefficients)[::-1], t)


def weighted_errors(polynomial: list[Real], points: list[Real], values: list[Real], weights: list[Real]) -> list[Real]:
    return [w * (evaluate(polynomial, t) - v) for t, v, w in zip(points, values, weights, strict=True)]


def solve(points: list[Real], values: list[Real], weights: list[Real], degree: int) -> list[Real]:
    """The polynomial whose weighted error alternates between +E and -E on degree + 2 points."""
    size = degree + 2
    matrix, right = mp.matrix(size, size), mp.matrix(size, 1)
    for row in range(size):
        power = mp.mpf(1)
        for column in range(degree + 1):
            matrix[row, column] = power
            power *= points[row]
        matrix[row, size - 1] = (-1) ** row / weights[row]
        right[row] = values[row]
    return list(mp.lu_solve(matrix, right))[:-1]


def extrema(errors: list[Real], wanted: int) -> list[int]:
    """Indices of `wanted` points of alternating error, the largest of each run of one sign."""
    runs: list[int] = []
    for index, error in enumerate(errors):
        if runs and (errors[runs[-1]] > 0) == (error > 0):
            if abs(error) > abs(errors[runs[-1]]):
                runs[-1] = index
        else:
            runs.append(index)
    while len(runs) > wanted + 1:  # drop the lowest pair of neighbours: the rest still alternates
        lowest = min(range(len(runs) - 1), key=lambda i: max(abs(errors[runs[i]]), abs(errors[runs[i + 1]])))
        del runs[lowest : lowest + 2]
    if len(runs) > wanted:
        runs.pop(0 if abs(errors[runs[0]]) < abs(errors[runs[-1]]) else -1)
    return runs


def remez(points: list[Real], values: list[Real], weights: list[Real], degree: int) -> list[Real]:
    size = degree + 2
    chosen = [round(i * (len(points) - 1) / (size - 1)) for i in range(size)]
    best: list[Real] = []
    smallest = mp.inf
    for _ in range(20):
        t, v, w = ([column[i] for i in chosen] for column in (points, values, weights))
        coefficients = solve(t, v, w, degree)
        errors = weighted_errors(coefficients, points, values, weights)
        if (largest := max(abs(e) for e in errors)) < smallest:
            best, smallest = coefficients, largest
        following = extrema(errors, size)
        if len(following) < size or following == chosen:
            break
        chosen = following
    return best


def fit(task: Fit) -> tuple[list[float], Real]:
    """Rounded coefficients and the largest weighted error that they have."""
    points = grid(mp.mpf(task.low), mp.mpf(task.high), 16 * (task.degree + 3))
    values = [task.function(t) for t in points]
    weights = [task.weight(t) for t in points]
    fixed = list(task.start)
    while len(fixed) <= task.degree:
        shift = len(fixed)
        known = [mp.mpf(c) for c in fixed]
        rest = [(v - (evaluate(known, t) if known else 0)) / t**shift for t, v in zip(points, values, strict=True)]
        scaled = [w * abs(t) ** shift for t, w in zip(points, weights, strict=True)]
        free = remez(points, rest, scaled, task.degree - shift)
        taken = len(free) if shift >= 5 and not task.single else 1
        fixed += [rounded(c, task.single) for c in free[:taken]]
    final = [mp.mpf(c) for c in fixed]
    return fixed, max(abs(e) for e in weighted_errors(final, points, values, weights))


def atanh_ratio(z: Real) -> Real:
    """atanh(s) / s as a function of z = s^2."""
    return mp.atanh(mp.sqrt(z)) / mp.sqrt(z)


def sine_ratio(z: Real) -> Real:
    return (mp.sin(mp.sqrt(z)) / mp.sqrt(z) - 1) / z


def cosine_ratio(z: Real) -> Real:
    return (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2


def erf_ratio(z: Real) -> Real:
    return mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1


def erfcx_scaled(q: Real, middle: int) -> Real:
    """(1 + 2a) e^(a^2) erfc(a) for q = (a - middle) / (a + middle)."""
    a = middle * (1 + q) / (1 - q)
    return (1 + 2 * a) * mp.exp(a * a) * mp.erfc(a)


def erfinv_ratio(w: Real) -> Real:
    """erfinv(x) / x for w = -log(1 - x^2)."""
    x = mp.sqrt(-mp.expm1(-w))
    return mp.erfinv(x) / x


def binet(w: Real) -> Real:
    """x (log gamma(x) - (x - 1/2) log x + x - log(2 pi) / 2) for w = 1/x^2."""
    x = 1 / mp.sqrt(w)
    return x * (mp.loggamma(x) - (x - mp.mpf(1) / 2) * mp.log(x) + x - mp.log(2 * mp.pi) / 2)


def binet_derivative(w: Real) -> Real:
    """x^2 (log x - 1/(2x) - digamma(x)) for w = 1/x^2."""
    x = 1 / mp.sqrt(w)
    return x * x * (mp.log(x) - 1 / (2 * x) - mp.digamma(x))


DIGAMMA_ROOT = mp.findroot(mp.digamma, mp.mpf("1.4616321449683623"))
LN2 = mp.log(2)
HALF_LN2 = LN2 / 2 * mp.mpf("1.001")
LOG_LOW, LOG_HIGH = mp.sqrt(2) / 2 - 1, mp.sqrt(2) - 1
SERIES_HIGH = (LOG_HIGH / (2 + LOG_HIGH)) ** 2
QUARTER_PI_SQUARED = (mp.pi / 4 * mp.mpf("1.001")) ** 2


def both(
    name: str, comment: str, function: Function, weight: Function, low: Real, high: Real, degrees: tuple[int, int]
) -> list[Fit]:
    """The same table in f32 and f64; `degrees` in that order."""
    return [
        Fit(f"{name}_F32", comment, function, weight, low, high, degrees[0], single=True),
        Fit(f"{name}_F64", comment, function, weight, low, high, degrees[1]),
    ]


TASKS: list[Fit] = [
    *both("EXP", "(e^r - 1 - r) / r^2 on |r| <= ln(2)/2; error relative to e^r - 1",
          lambda r: (mp.expm1(r) - r) / r**2, lambda r: abs(r**2 / mp.expm1(r)), -HALF_LN2, HALF_LN2, (4, 9)),
    *both("EXP2", "(2^r - 1) / r on |r| <= 1/2; error relative to 2^r",
          lambda r: mp.expm1(r * LN2) / r, lambda r: abs(r) / 2**r, -mp.mpf("0.501"), mp.mpf("0.501"), (5, 11)),
    Fit("EXP2_WIDE", "(2^r - 1) / r on |r| <= 1/2; error relative to 2^r; f64 arithmetic for f32 results",
        lambda r: mp.expm1(r * LN2) / r, lambda r: abs(r) / 2**r, -mp.mpf("0.501"), mp.mpf("0.501"), 6),
    Fit("LOG_F32", "(log(1+f) - f + f^2/2) / f^3 on sqrt(1/2) <= 1+f <= sqrt(2); relative error",
        lambda f: (mp.log1p(f) - f + f * f / 2) / f**3, lambda f: abs(f**3 / mp.log1p(f)),
        LOG_LOW, LOG_HIGH, 8, single=True),
    Fit("LOG_F64", "(2 atanh(s)/s - 2) / z, z = s^2, s = f/(2+f), sqrt(1/2) <= 1+f <= sqrt(2); relative error",
        lambda z: (2 * atanh_ratio(z) - 2) / z, lambda z: z / (2 * atanh_ratio(z)), 0, SERIES_HIGH, 6),
    Fit("LOG2_TAIL", "(2/ln2 atanh(s)/s - 2/ln2 - 2/(3 ln2) z) / z^2, z = s^2 as LOG_F64; relative error",
        lambda z: (2 * atanh_ratio(z) - 2 - 2 * z / 3) / LN2 / z**2, lambda z: z**2 / 2, 0, SERIES_HIGH, 7),
    Fit("LOG2_WIDE", "2/ln2 atanh(s)/s, z = s^2 as LOG_F64; relative error; f64 arithmetic for f32 results",
        lambda z: 2 * atanh_ratio(z) / LN2, lambda z: mp.mpf(1) / 2, 0, SERIES_HIGH, 5),
    Fit("SIN_WIDE", "(sin(r)/r - 1) / z, z = r^2, |r| <= pi/4; relative error; f64 arithmetic for f32 results",
        sine_ratio, lambda z: z, 0, QUARTER_PI_SQUARED, 3),
    Fit("COS_WIDE", "(cos(r) - 1 + z/2) / z^2, z = r^2, |r| <= pi/4; relative error; f64 arithmetic for f32 results",
        cosine_ratio, lambda z: z**2, 0, QUARTER_PI_SQUARED, 2),
    Fit("SIN_F64", "(sin(r)/r - 1) / z, z = r^2, |r| <= pi/4; relative error",
        sine_ratio, lambda z: z, 0, QUARTER_PI_SQUARED, 5),
    Fit("COS_F64", "(cos(r) - 1 + z/2) / z^2, z = r^2, |r| <= pi/4; relative error",
        cosine_ratio, lambda z: z**2, 0, QUARTER_PI_SQUARED, 5),
    *both("ERF_SMALL", "erf(x)/x - 1, z = x^2, |x| <= 1; relative error",
          erf_ratio, lambda z: mp.mpf("0.9"), 0, 1, (6, 12)),
    Fit("ERF_LARGE_F32", "log(erfc(x)) on 1 <= x <= 4; error relative to erf(x)",
        lambda x: mp.log(mp.erfc(x)), lambda x: mp.erfc(x), 1, 4, 7, single=True),
    Fit("ERF_LARGE_F64", "log(erfc(x)) on 1 <= x <= 6; error relative to erf(x)",
        lambda x: mp.log(mp.erfc(x)), lambda x: mp.erfc(x), 1, 6, 16),
]
TASKS += [
    *both("SINH", "(sinh(x)/x - 1) / z, z = x^2, |x| <= 1; relative error",
          lambda z: (mp.sinh(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, lambda z: z, 0, 1, (3, 6)),
    *both("TANH", "(tanh(x)/x - 1) / z, z = x^2, |x| <= 0.55; relative error",
          lambda z: (mp.tanh(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, lambda z: z, 0, mp.mpf("0.5501") ** 2, (4, 9)),
    *both("ATAN", "(atan(t)/t - 1) / z, z = t^2, |t| <= 1/2; relative error",
          lambda z: (mp.atan(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, lambda z: z, 0, mp.mpf("0.2501"), (4, 11)),
    *both("ASIN", "(asin(s)/s - 1) / z, z = s^2, |s| <= 1/2; relative error",
          lambda z: (mp.asin(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, lambda z: z, 0, mp.mpf("0.2501"), (4, 11)),
    Fit("ERFC_F32", "(1 + 2a) e^(a^2) erfc(a), q = (a - 2) / (a + 2), 0 <= a <= 10.1; relative error",
        lambda q: erfcx_scaled(q, 2), lambda q: mp.mpf(1), -1, mp.mpf("8.1") / mp.mpf("12.1"), 9, single=True),
    Fit("ERFC_F64", "(1 + 2a) e^(a^2) erfc(a), q = (a - 4) / (a + 4), 0 <= a <= 27.3; relative error",
        lambda q: erfcx_scaled(q, 4), lambda q: mp.mpf(1), -1, mp.mpf("23.3") / mp.mpf("31.3"), 21),
    Fit("CBRT", "m^(-1/3) on 1/2 <= m <= 1; relative error; start of an iteration",
        lambda m: m ** (-mp.mpf(1) / 3), lambda m: m ** (mp.mpf(1) / 3), mp.mpf("0.5"), 1, 4),
    Fit("ERFINV_NEAR_F32", "erfinv(x)/x, t = w - 5/2, w = -log(1-x^2) <= 5; relative error",
        lambda t: erfinv_ratio(t + mp.mpf("2.5")), lambda t: 1 / erfinv_ratio(t + mp.mpf("2.5")),
        -mp.mpf("2.5"), mp.mpf("2.5"), 9, single=True),
    Fit("ERFINV_FAR_F32", "erfinv(x)/x, t = sqrt(w) - 3, 5 <= w <= 16; relative error",
        lambda t: erfinv_ratio((t + 3) ** 2), lambda t: 1 / erfinv_ratio((t + 3) ** 2),
        mp.sqrt(5) - 3, mp.mpf(1), 8, single=True),
    Fit("ERFINV_NEAR_F64", "erfinv(x)/x, t = w - 3, w = -log(1-x^2) <= 6; relative error",
        lambda t: erfinv_ratio(t + 3), lambda t: 1 / erfinv_ratio(t + 3), -3, 3, 22),
    Fit("ERFINV_MIDDLE_F64", "erfinv(x)/x, t = sqrt(w) - 13/4, 6 <= w <= 16; relative error",
        lambda t: erfinv_ratio((t + mp.mpf("3.25")) ** 2), lambda t: 1 / erfinv_ratio((t + mp.mpf("3.25")) ** 2),
        mp.sqrt(6) - mp.mpf("3.25"), mp.mpf("0.75"), 19),
    Fit("ERFINV_FAR_F64", "erfinv(x)/x, t = sqrt(w) - 5, 16 <= w <= 36.5; relative error",
        lambda t: erfinv_ratio((t + 5) ** 2), lambda t: 1 / erfinv_ratio((t + 5) ** 2),
        -mp.mpf(1), mp.sqrt(mp.mpf("36.5")) - 5, 17),
    *both("SINPI", "sin(pi f)/f, z = f^2, |f| <= 1/2; relative error",
          lambda z: mp.sin(mp.pi * mp.sqrt(z)) / mp.sqrt(z), lambda z: mp.mpf(1) / 3, 0, mp.mpf("0.25"), (5, 9)),
    *both("COSPI", "cos(pi f), z = f^2, |f| <= 1/2; absolute error",
          lambda z: mp.cos(mp.pi * mp.sqrt(z)), lambda z: mp.mpf(1), 0, mp.mpf("0.25"), (5, 9)),
    *both("LGAMMA_NEAR", "log(gamma(2 + e)) / e, -3/4 <= e <= 1/2; relative error",
          lambda e: mp.loggamma(2 + e) / e, lambda e: e / mp.loggamma(2 + e), -mp.mpf("0.75"), mp.mpf("0.5"), (10, 21)),
    *both("LGAMMA_FAR", "x (log(gamma(x)) - Stirling), w = 1/x^2, x >= 4.5; error relative to 1/12 x/32",
          binet, lambda w: mp.mpf(3) / 8, mp.mpf(10) ** -8, 1 / mp.mpf("4.5") ** 2, (3, 9)),
    *both("DIGAMMA_NEAR", "digamma(1 + e) / (1 + e - root), t = e - 1/2, 0 <= e <= 1; relative error",
          lambda t: mp.digamma(t + mp.mpf("1.5")) / (t + mp.mpf("1.5") - DIGAMMA_ROOT),
          lambda t: (t + mp.mpf("1.5") - DIGAMMA_ROOT) / mp.digamma(t + mp.mpf("1.5")),
          -mp.mpf("0.5"), mp.mpf("0.5"), (10, 21)),
    *both("DIGAMMA_FAR", "x^2 (log x - 1/(2x) - digamma(x)), w = 1/x^2, x >= 4; absolute error / 16",
          binet_derivative, lambda w: mp.mpf(1) / 16, mp.mpf(10) ** -8, mp.mpf(1) / 16, (3, 11)),
]


def table_text(task: Fit) -> str:
    coefficients, error = fit(task)
    lines = [f"# {task.comment}: 2^{float(mp.log(error, 2)):.1f}", f"{task.name} = ("]
    lines += ["    " + ", ".join(map(repr, coefficients[i : i + 4])) + "," for i in range(0, len(coefficients), 4)]
    return "\n".join([*lines, ")"])


def two_over_pi_text() -> str:
    """2/pi truncated to 1344 binary places, for the reduction of huge angles."""
    with mp.workprec(1500):
        digits = f"{int(mp.floor(mp.ldexp(2 / mp.pi, 1344))):0336X}"
    rows = [f'    "{digits[i : i + 84]}"' for i in range(0, len(digits), 84)]
    rows[-1] += ","
    return "\n".join(["# floor(2/pi 2^1344)", "TWO_OVER_PI = int(", *rows, "    16,", ")"])


HEADER = '''"""Polynomial coefficients of the inline math functions, lowest degree first, by `tools/fit_math.py`.

Each comment gives the function, the interval and the largest error of the rounded coefficients (in exact arithmetic).
"""
'''


def main() -> None:
    target = Path(__file__).resolve().parent.parent / "bwcompiler" / "lowering" / "math" / "coefficients.py"
    target.write_text("\n".join([HEADER, *(table_text(task) for task in TASKS), two_over_pi_text()]) + "\n")


if __name__ == "__main__":
    main()
