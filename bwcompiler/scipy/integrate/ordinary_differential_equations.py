"""`bw.scipy.integrate.odeint`: an adaptive Runge-Kutta method as one native loop, which is differentiated as it is.

The method is that of Dormand and Prince (1980), of order 5 with an error estimate of order 4.  The lengths of steps count as constants.
The other way, to integrate the adjoint equation backwards (Chen et al., "Neural ordinary differential equations", 2018), needs no memory
for the steps, but has to integrate the solution backwards as well, which is unstable where it is damped: of the Robertson equations it
gives 1e269 for 4e-4 after 0.3 s.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from bwcompiler.api.inside.loops import scan, while_loop
from bwcompiler.api.programs.functions import jit
from bwcompiler.api.programs.kept import made_of
from bwcompiler.api.transforms.reverse import stop_gradient
from bwcompiler.errors import ShapeError, UnsupportedError
from bwcompiler.frontend.tracing.operands import as_tracer, is_traced
from bwcompiler.frontend.tracing.trace import call_user
from bwcompiler.scipy.integrate.right_hand_sides import lsoda
from bwcompiler.scipy.packing import is_traced_call
from bwcompiler.scipy.solutions import handle

Function = Callable[..., Any]

NODES = (0.0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0)
STAGES = (
    (), (1 / 5,), (3 / 40, 9 / 40), (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
)
RESULT = (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84)
ERROR = (71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)
SAFETY, SMALLEST, LARGEST = 0.9, 0.2, 5.0             # of the factors by which a step may change


class Control(NamedTuple):
    """Of steps: tolerances, how many there may be between two times, the longest, and the first (else the method chooses it)."""

    rtol: Any
    atol: Any
    most: int
    longest: Any = np.inf
    first: Any = None

    def limited(self, h: Any) -> Any:
        """A step that is at most the longest one."""
        return h if type(self.longest) is float and self.longest == np.inf else np.clip(h, -self.longest, self.longest)


def _step(func: Function, y: Any, slope: Any, t: Any, h: Any) -> tuple[Any, Any, Any]:
    """(the next y, its slope, the estimated error) for a step h."""
    slopes = [slope]
    for node, weights in zip(NODES[1:], STAGES[1:], strict=True):
        inner = y + h * sum(weight * one for weight, one in zip(weights, slopes, strict=True) if weight)
        slopes.append(func(inner, t + node * h))
    found = y + h * sum(weight * one for weight, one in zip(RESULT, slopes, strict=True) if weight)
    slopes.append(func(found, t + h))
    return found, slopes[-1], h * sum(weight * one for weight, one in zip(ERROR, slopes, strict=True) if weight)


def _between(func: Function, y: Any, start: Any, end: Any, control: Control) -> Any:
    """y(end) from y(start)."""
    rtol, atol, most, *_ = control
    span, direction = end - start, stop_gradient(np.sign(end - start))
    slope = func(y, start)
    first = control.first
    if first is None:
        first = _first_step(stop_gradient(y), stop_gradient(slope), rtol, atol)
    h = stop_gradient(control.limited(np.minimum(np.abs(span), first))) * direction

    def go_on(state: Any) -> Any:
        _, _, t, _, count = state
        return ((end - t) * direction > 0) & (count < most)

    def advance(state: Any) -> Any:
        y, slope, t, h, count = state
        last = np.abs(h) >= np.abs(end - t)
        taken = np.where(last, end - t, h)
        found, after, error = _step(func, y, slope, t, taken)
        scale = atol + rtol * stop_gradient(np.maximum(np.abs(y), np.abs(found)))
        size = np.sqrt(np.mean((stop_gradient(error) / scale) ** 2))
        accepted = size <= 1.0
        factor = np.where(size > 0, SAFETY * np.where(size > 0, size, 1.0) ** -0.2, LARGEST)
        length = stop_gradient(control.limited(taken * np.clip(factor, SMALLEST, np.where(accepted, LARGEST, 1.0))))
        now = np.where(accepted, np.where(last, end, t + h), t)
        return np.where(accepted, found, y), np.where(accepted, after, slope), now, length, count + 1

    y = y + np.where(span == 0, span, 0.0) * slope                                  # no step is made then: the derivative is this
    y, _, t, _, _ = while_loop(go_on, advance, (y, slope, start + 0.0 * end, h, 0))
    return np.where((end - t) * direction > 0, np.nan, y)                           # too many steps


def _first_step(y: Any, slope: Any, rtol: Any, atol: Any) -> Any:
    """A hundredth of the time in which y moves by itself, both as the tolerances measure it."""
    scale = atol + rtol * np.abs(y)
    rate = np.sqrt(np.mean((slope / scale) ** 2))
    return np.where(rate > 1e-15, 0.01 * np.sqrt(np.mean((y / scale) ** 2) + 1e-6) / np.where(rate > 1e-15, rate, 1.0), 1e-6)


def solution_at(func: Function, y0: Any, times: Any, control: Control) -> Any:
    """The solution of dy/dt = func(y, t) at all times, inside of a trace; what func reads from outside has derivatives too."""
    def slope(y: Any, t: Any) -> Any:
        return func(y, t) + 0.0 * y

    def interval(carry: Any, end: Any) -> Any:
        y, start = carry
        found = _between(slope, y, start, end, control)
        return (found, end), found

    _, rest = scan(interval, (y0, times[0]), times[1:])
    return np.concatenate([y0[None], rest])


def odeint(func: Function, y0: Any, t: Any, args: Any = (), Dfun: Any = None, *, rtol: float = 1.49012e-8,
           atol: float = 1.49012e-8, mxstep: int = 100_000, **options: Any) -> Any:
    """The solution of dy/dt = func(y, t, *args) with y(t[0]) = y0 at all times t, of shape (times, *y0.shape).

    y0, t, args and whatever func reads from outside have derivatives, those of the steps that are made.  Between two times at most mxstep
    steps are made, else the rest is nan.  Raises ShapeError for y0 of more than one axis.

    With Dfun=True (or a function), or another keyword of scipy.integrate.odeint, it is that function, LSODA, for stiff equations, with the
    derivative by y taken from func.  Inside of traced functions the method stays the explicit one, which takes tfirst, hmax and h0 and
    needs no Dfun; UnsupportedError is raised there for other keywords.

    >>> import numpy as np, bwcompiler as bw
    >>> solve = lambda rate: bw.scipy.integrate.odeint(lambda y, t, rate: -rate * y, np.ones(1), np.array([0.0, 1.0]), (rate,))[1, 0]
    >>> float(bw.grad(solve)(2.0).round(6))
    -0.135335
    """
    args = tuple(args) if isinstance(args, tuple | list) else (args,)
    traced = is_traced_call()
    time_first = traced and options.pop("tfirst", False)
    longest, first = (options.pop("hmax", 0.0) or np.inf, options.pop("h0", 0.0) or None) if traced else (np.inf, None)
    if traced and options:
        raise UnsupportedError(f"odeint inside of a traced function: {next(iter(options))} cannot be given; the method is an explicit one\n"
                               "  hint: leave it out, or call it outside of traced functions")
    if (Dfun is not None and not traced) or options:
        return lsoda(func, y0, t, args, Dfun, {"rtol": rtol, "atol": atol, "mxstep": mxstep, **options})
    y0, t = (as_tracer(one) if is_traced(one) else np.asarray(one) for one in (y0, t))
    if np.ndim(y0) > 1 or np.ndim(t) != 1:
        raise ShapeError(f"odeint: y0 of shape {np.shape(y0)} must have one axis, and t of shape {np.shape(t)} must have one")
    chosen = Control(rtol, atol, mxstep, longest, first)
    if not traced:
        compiled = made_of(func, ("odeint", *chosen), lambda: jit(functools.partial(_in_trace, func, chosen), mutates=False))
        return compiled(np.asarray(y0), np.asarray(t), args)
    return _in_trace(func, chosen, y0, t, args, time_first)


def _in_trace(func: Function, control: Control, y0: Any, t: Any, args: tuple[Any, ...], time_first: bool = False) -> Any:
    start = np.reshape(y0, (-1,)) + 0.0

    def slope(y: Any, t: Any) -> Any:
        found = call_user(func, (t, y, *args) if time_first else (y, t, *args), {})
        found = np.stack(found) if isinstance(found, list | tuple) else found
        if getattr(found, "ndim", 0) and found.shape not in (start.shape, (1,)):
            raise ShapeError(f"odeint: func gives shape {found.shape}, but y0 has shape {start.shape}")
        return found

    return solution_at(slope, handle(start), handle(t), control)
