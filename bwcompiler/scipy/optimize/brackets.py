"""Roots between two places, as native loops: what `brentq` and `bisect` are inside of programs.

The steps are those of SciPy (`scipy/optimize/Zeros`): calling it back would cost more than all of them together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bwcompiler.api.inside.loops import while_loop
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.scipy.solutions import handle

Function = Callable[..., Any]
SMALLEST_RTOL = 4 * float(np.finfo(np.float64).eps)


def brent(f: Function, a: Any, b: Any, xtol: Any = 2e-12, rtol: Any = SMALLEST_RTOL, maxiter: int = 100, disp: bool = True) -> Any:
    """The root by Brent's method: interpolation through the last places where that shrinks the bracket enough, bisection elsewhere."""
    at_a, at_b = _ends(f, a, b, xtol, rtol)
    zero = handle(0.0)

    def go_on(state: tuple[Any, ...]) -> Any:
        (_, x, other), (_, y, _), _, count = state
        tolerance = _tolerance(x, xtol, rtol)
        return (y != 0) & np.logical_not(np.isnan(y)) & np.logical_not(np.abs(other - x) / 2 < tolerance) & (count < maxiter)

    def step(state: tuple[Any, ...]) -> Any:
        places, values, steps, count = state
        moved, steps = _brent_step(places, values, steps, _tolerance(places[1], xtol, rtol))
        value = f(moved)
        return *_with_root_between((places[1], moved, places[2]), (values[1], value, values[2]), steps), count + 1

    x, y = np.where(at_a == 0, a, b), np.where(at_a == 0, at_a, at_b)
    start = _with_root_between((a, x, zero), (at_a, y, zero), (zero, zero))
    (_, x, _), (_, y, _), _, count = while_loop(go_on, step, (*start, 0))
    _require_value(y)
    _require_converged(count >= maxiter, maxiter, disp)
    return x


def _tolerance(x: Any, xtol: Any, rtol: Any) -> Any:
    return (xtol + rtol * np.abs(x)) / 2


def _with_root_between(places: tuple[Any, ...], values: tuple[Any, ...], steps: tuple[Any, ...]) -> tuple[Any, ...]:
    """(places, values, steps) such that the root is between the second place, where the value is the smaller one, and the third."""
    (before, x, other), (at_before, at_x, at_other), (last, this) = places, values, steps
    crossed = (at_before != 0) & (at_x != 0) & (np.signbit(at_before) != np.signbit(at_x))
    other, at_other = np.where(crossed, before, other), np.where(crossed, at_before, at_other)
    last, this = np.where(crossed, x - before, last), np.where(crossed, x - before, this)
    worse = np.abs(at_other) < np.abs(at_x)
    places = np.where(worse, x, before), np.where(worse, other, x), np.where(worse, x, other)
    values = np.where(worse, at_x, at_before), np.where(worse, at_other, at_x), np.where(worse, at_x, at_other)
    return places, values, (last, this)


def _brent_step(places: tuple[Any, ...], values: tuple[Any, ...], steps: tuple[Any, ...], tolerance: Any) -> tuple[Any, tuple[Any, ...]]:
    """Where to look next, and the last two steps then."""
    (before, x, other), (at_before, at_x, at_other), (last, this) = places, values, steps
    half = (other - x) / 2
    secant = -at_x * (x - before) / (at_x - at_before)
    slope, slope_of_other = (at_before - at_x) / (before - x), (at_other - at_x) / (other - x)
    quadratic = -at_x * (at_other * slope_of_other - at_before * slope) / (slope_of_other * slope * (at_other - at_before))
    guess = np.where(before == other, secant, quadratic)
    is_good = (np.abs(last) > tolerance) & (np.abs(at_x) < np.abs(at_before)) & (
        2 * np.abs(guess) < np.minimum(np.abs(last), 3 * np.abs(half) - tolerance))
    last, this = np.where(is_good, this, half), np.where(is_good, guess, half)
    return x + np.where(np.abs(this) > tolerance, this, np.where(half > 0, tolerance, -tolerance)), (last, this)


def bisection(f: Function, a: Any, b: Any, xtol: Any = 2e-12, rtol: Any = SMALLEST_RTOL, maxiter: int = 100, disp: bool = True) -> Any:
    """The root by halving the bracket."""
    at_a, at_b = _ends(f, a, b, xtol, rtol)
    ended = np.where(at_a == 0, a, b)
    is_end = (at_a == 0) | (at_b == 0)

    def go_on(state: tuple[Any, ...]) -> Any:
        _, _, _, y, found, count = state
        return np.logical_not(found) & np.logical_not(np.isnan(y)) & (count < maxiter)

    def step(state: tuple[Any, ...]) -> Any:
        low, width, _, _, _, count = state
        width = width / 2
        x = low + width
        y = f(x)
        found = (y == 0) | (np.abs(width) < xtol + rtol * np.abs(x))
        return np.where(np.signbit(y) == np.signbit(at_a), x, low), width, x, y, found, count + 1

    low, _, x, y, found, _ = while_loop(go_on, step, (a, b - a, ended, np.where(is_end, 0.0, at_a), is_end, 0))
    _require_value(y)
    _require_converged(np.logical_not(found), maxiter, disp)
    return np.where(found, x, low)


# ----- what SciPy raises
def _ends(f: Function, a: Any, b: Any, xtol: Any, rtol: Any) -> tuple[Any, Any]:
    """f(a) and f(b), of different signs."""
    if xtol <= 0:
        raise ValueError(f"xtol too small ({xtol:g} <= 0)")
    if rtol < SMALLEST_RTOL:
        raise ValueError(f"rtol too small ({rtol:g} < {SMALLEST_RTOL:g})")
    at_a, at_b = f(a), f(b)
    _require_value(at_a + at_b)
    alike = (at_a != 0) & (at_b != 0) & (np.signbit(at_a) == np.signbit(at_b))
    HANDLERS["raise_where"](alike, ValueError("f(a) and f(b) must have different signs"))
    return at_a, at_b


def _require_value(y: Any) -> None:
    HANDLERS["raise_where"](np.isnan(y), ValueError("The function value is NaN; solver cannot continue."))


def _require_converged(failed: Any, maxiter: int, disp: bool) -> None:
    if disp:
        HANDLERS["raise_where"](failed, RuntimeError(f"Failed to converge after {maxiter} iterations."))
