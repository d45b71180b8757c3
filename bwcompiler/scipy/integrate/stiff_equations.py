"""Stiff differential equations inside of traced functions: an implicit method as a native loop, which is differentiated as it is.

The method is RODAS (E. Hairer and G. Wanner, "Solving Ordinary Differential Equations II", IV.7 and IV.10): a Rosenbrock method of order 4
with an embedded one of order 3, stiffly accurate and L-stable.  A step solves six linear systems with one matrix, of the Jacobian, and no
nonlinear one; so a derivative of a step is that of its formulas.  The lengths of steps count as constants.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bwcompiler.api.inside.loops import scan, while_loop
from bwcompiler.api.transforms.forward import jvp
from bwcompiler.api.transforms.jacobians import jacfwd
from bwcompiler.api.transforms.reverse import stop_gradient
from bwcompiler.scipy.integrate.ordinary_differential_equations import Control
from bwcompiler.scipy.linalg import lu_factor, lu_solve

Function = Callable[..., Any]

GAMMA = 0.25
NODES = (0.0, 0.386, 0.21, 0.63, 1.0, 1.0)
TIME_SLOPES = (0.25, -0.1043, 0.1035, -0.0362, 0.0, 0.0)
INNER = (
    (), (1.544,), (0.9466785280815826, 0.2557011698983284), (3.314825187068521, 2.896124015972201, 0.9986419139977817),
    (1.221224509226641, 6.019134481288629, 12.53708332932087, -0.6878860361058950),
)
COUPLING = (
    (), (-5.6688,), (-2.430093356833875, -0.2063599157091915), (-0.1073529058151375, -9.594562251023355, -20.47028614809616),
    (7.496443313967647, -10.24680431464352, -33.99990352819905, 11.70890893206160),
    (8.083246795921522, -7.981132988064893, -31.52159432874371, 16.31930543123136, -6.058818238834054),
)
SAFETY, SMALLEST, LARGEST = 0.9, 0.2, 6.0             # of the factors by which a step may change


def _weighted(weights: tuple[float, ...], stages: list[Any]) -> Any:
    return sum(weight * stage for weight, stage in zip(weights, stages, strict=False))


def _step(func: Function, t: Any, y: Any, h: Any) -> tuple[Any, Any]:
    """(the next y, the estimated error)."""
    by_t, by_y = jacfwd(func, (0, 1))(t, y)
    factors = lu_factor(np.eye(y.shape[0]) / (GAMMA * h) - by_y)
    stages: list[Any] = []
    inner = y
    for k, (node, of_time, coupling) in enumerate(zip(NODES, TIME_SLOPES, COUPLING, strict=True)):
        inner = inner + stages[-1] if k == 5 else y + _weighted(INNER[k], stages) if k else y
        right = func(t + node * h, inner) + (_weighted(coupling, stages) / h if k else 0.0)
        stages.append(lu_solve(factors, right + (h * of_time) * by_t if of_time else right))
    return inner + stages[-1], stages[-1]


def stiff_solution(fun: Function, y0: Any, times: Any, control: Control) -> Any:
    """The solution of dy/dt = fun(t, y) at all times, inside of a trace; nan after the most steps between two times."""
    def func(t: Any, y: Any) -> Any:
        return fun(t, y) + 0.0 * y

    def interval(carry: Any, end: Any) -> Any:
        y, start, h = carry
        found, h = _between(func, y, start, end, h, control)
        return (found, end, h), found

    span = stop_gradient(times[-1] - times[0])
    guess = control.first
    if guess is None:
        scale = control.atol + control.rtol * np.abs(y0)
        rate = stop_gradient(np.sqrt(np.mean((func(times[0], y0) / scale) ** 2)))
        guess = np.minimum(0.01 * np.abs(span), 0.1 / np.maximum(rate, 1e-30))
    first = control.limited(stop_gradient(guess)) * np.sign(span)
    _, rest = scan(interval, (y0, times[0], first), times[1:])
    return np.concatenate([y0[None], rest])


def _between(func: Function, y: Any, start: Any, end: Any, h: Any, control: Control) -> tuple[Any, Any]:
    """(y(end) from y(start), the length that the step control wants next)."""
    rtol, atol, most, *_ = control
    direction = stop_gradient(np.sign(end - start))

    def go_on(state: Any) -> Any:
        _, t, _, count = state
        return ((end - t) * direction > 0) & (count < most)

    def advance(state: Any) -> Any:
        y, t, h, count = state
        last = np.abs(h) >= np.abs(end - t)
        taken = np.where(last, end - t, h)
        found, error = _step(func, t, y, taken)
        size = np.sqrt(np.mean((stop_gradient(error) / (atol + rtol * stop_gradient(np.maximum(np.abs(y), np.abs(found))))) ** 2))
        accepted = size <= 1.0                                          # not nan
        factor = np.where(size > 0, SAFETY * np.where(size > 0, size, 1.0) ** -0.25, np.where(size == 0, LARGEST, SMALLEST))
        factor = np.clip(factor, SMALLEST, np.where(accepted, LARGEST, 1.0))
        length = np.where(last & accepted, np.maximum(np.abs(h), factor * np.abs(taken)), factor * np.abs(taken))
        now = np.where(accepted, np.where(last, end, t + h), t)
        return np.where(accepted, found, y), now, stop_gradient(control.limited(length)) * direction, count + 1

    change = end - start                                                # where it is 0 no step is made, and the derivatives are these
    slope, bend = jvp(func, (start, y), (1.0 + 0.0 * start, func(start, y)))
    y = np.where(change == 0, y + change * slope + change * change * 0.5 * bend, y)
    y, t, h, _ = while_loop(go_on, advance, (y, start + 0.0 * end, h, 0))
    return np.where((end - t) * direction > 0, np.nan, y), h            # too many steps
