"""`bw.scipy.integrate.odeint`: an adaptive Runge-Kutta method as one native loop, differentiated by its adjoint equation.

The method is that of Dormand and Prince (1980), of order 5 with an error estimate of order 4.  The adjoint is integrated backwards
between the times together with the solution (Chen et al., "Neural ordinary differential equations", 2018), from the solution at each
time.  It is made of the same function, so that it can be differentiated again.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from bwcompiler import tree
from bwcompiler.api.inside.loops import scan, while_loop
from bwcompiler.api.programs.functions import jit
from bwcompiler.api.programs.kept import made_of
from bwcompiler.api.transforms.forward import jvp
from bwcompiler.api.transforms.implicit import ClosedFunction
from bwcompiler.api.transforms.reverse import vjp
from bwcompiler.errors import ShapeError, UnsupportedError
from bwcompiler.frontend.tracing.custom_rules import CustomBoth
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
PARTS = {"f": ("real",), "c": ("real", "imag")}
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

    def beside(self, count: int) -> Control:
        """For the solution and `count` numbers behind it, for which the least of the tolerances of its elements is taken."""
        if np.ndim(self.atol) == 0:
            return self
        atol = np.asarray(self.atol)
        return self._replace(atol=np.concatenate([atol, np.full(count, atol.min())]))


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
    span = end - start
    slope = func(y, start)
    guess = control.first
    if guess is None:
        scale = atol + rtol * np.abs(y)
        rate = np.sqrt(np.mean((slope / scale) ** 2))
        guess = np.where(rate > 1e-15, 0.01 * np.sqrt(np.mean((y / scale) ** 2) + 1e-6) / np.where(rate > 1e-15, rate, 1.0), 1e-6)
    first = np.sign(span) * control.limited(np.minimum(np.abs(span), guess))

    def go_on(state: Any) -> Any:
        _, _, t, _, count = state
        return ((end - t) * np.sign(span) > 0) & (count < most)

    def advance(state: Any) -> Any:
        y, slope, t, h, count = state
        last = np.abs(h) >= np.abs(end - t)
        h = np.where(last, end - t, h)
        found, after, error = _step(func, y, slope, t, h)
        size = np.sqrt(np.mean((error / (atol + rtol * np.maximum(np.abs(y), np.abs(found)))) ** 2))
        accepted = size <= 1.0
        factor = np.where(size > 0, SAFETY * np.where(size > 0, size, 1.0) ** -0.2, LARGEST)
        change = np.clip(factor, SMALLEST, np.where(accepted, LARGEST, 1.0))
        now = np.where(accepted, np.where(last, end, t + h), t)
        return np.where(accepted, found, y), np.where(accepted, after, slope), now, control.limited(h * change), count + 1

    y, _, t, _, _ = while_loop(go_on, advance, (y, slope, start + 0.0 * end, first, 0))
    return np.where((end - t) * np.sign(span) > 0, np.nan, y)                       # too many steps


def _solved(func: Function, y0: Any, times: Any, control: Control) -> Any:
    """The solution at all times."""
    def interval(carry: Any, end: Any) -> Any:
        y, start = carry
        found = _between(func, y, start, end, control)
        return (found, end), found

    _, rest = scan(interval, (y0, times[0]), times[1:])
    return np.concatenate([y0[None], rest])


def _flat(leaves: Sequence[Any]) -> tuple[Any, Callable[[Any], list[Any]]]:
    """The floats among traced arrays, and the parts of complex numbers, as one vector, and the way back."""
    moving = [(k, kind) for k, leaf in enumerate(leaves) for kind in PARTS.get(leaf.dtype.kind, ())]
    vector = np.concatenate([np.reshape(getattr(leaves[k], kind), (-1,)) for k, kind in moving]) if moving else np.zeros(0)

    def back(vector: Any) -> list[Any]:
        found, start = list(leaves), 0
        for k, kind in moving:
            part: Any = vector[start:start + leaves[k].size].reshape(leaves[k].shape)
            found[k], start = part if kind == "real" else found[k] + 1j * part, start + leaves[k].size
        return [one.astype(leaf.dtype) for one, leaf in zip(found, leaves, strict=True)]
    return vector, back


class _Solver:
    """The solution as a function of y0, times and the vector of what func(outside, y, t) reads from outside, with its derivative rules.

    back    from the vector to what func reads.
    odeint  the function.
    """

    def __init__(self, func: Function, back: Callable[[Any], list[Any]], control: Control) -> None:
        self.func = func
        self.back = back
        self.control = control
        self.odeint = CustomBoth(self.solution, self.forward, self.backward, self.push)

    def slope(self, y: Any, t: Any, vector: Any) -> Any:
        return self.func(self.back(vector), y, t) + 0.0 * y

    def solution(self, y0: Any, times: Any, vector: Any) -> Any:
        return _solved(lambda y, t: self.slope(y, t, vector), y0, times, self.control)

    # ----- cotangents
    def forward(self, y0: Any, times: Any, vector: Any) -> Any:
        ys = self.odeint(y0, times, vector)
        return ys, (ys, times, vector)

    def backward(self, kept: Any, ct: Any) -> Any:
        """The adjoint equation, solved backwards from each time to the one before it, with the solution, which starts anew at each."""
        ys, times, vector = kept
        size, count = ys.shape[1], vector.shape[0]
        control = self.control.beside(size + 1 + count)

        def adjoint(state: Any, t: Any) -> Any:
            y, bar = state[:size], state[size:2 * size]
            dy, pull = vjp(self.slope, y, t, vector)
            of_y, of_t, of_vector = pull(-bar)
            return np.concatenate([dy, of_y, np.reshape(of_t, (1,)), of_vector])

        def interval(carry: Any, given: Any) -> Any:
            bar, of_start, of_vector = carry
            y, end, start, ct_now, ct_before = given
            of_end = np.sum(self.slope(y, end, vector) * ct_now)                # a later time moves the solution along its slope
            state = np.concatenate([y, bar, np.reshape(of_start - of_end, (1,)), of_vector])
            state = _between(adjoint, state, end, start, control)
            return (state[size:2 * size] + ct_before, state[2 * size], state[2 * size + 1:]), of_end

        first = (ct[-1], 0.0 * times[0], np.zeros(count) * times[0])
        (bar, of_start, of_vector), of_times = scan(interval, first, (ys[1:], times[1:], times[:-1], ct[1:], ct[:-1]), reverse=True)
        return bar, np.concatenate([np.reshape(of_start, (1,)), of_times]), of_vector

    # ----- tangents
    def push(self, primals: Any, tangents: Any) -> Any:
        """The tangent is integrated together with the solution, from that of y0, which a later start moves against the slope."""
        y0, times, vector = primals
        moving = [tree.leaves(one) for one in tangents]
        of_y0, of_times, of_vector = [one[0] if one else x * 0.0 for x, one in zip(primals, moving, strict=True)]
        size = y0.shape[0]

        def both(state: Any, t: Any) -> Any:
            y, moved = state[:size], state[size:]
            return np.concatenate(jvp(lambda y, vector: self.slope(y, t, vector), (y, vector), (moved, of_vector)))

        start = of_y0 - self.slope(y0, times[0], vector) * of_times[0]
        found = _solved(both, np.concatenate([y0, start]), times, self.control.beside(size))
        later = scan(lambda _, at: (0, self.slope(at[0], at[1], vector) * at[2]), 0, (found[:, :size], times, of_times))[1]
        return self.odeint(*primals), found[:, size:] + later


def solution_at(func: Function, y0: Any, times: Any, control: Control) -> Any:
    """The solution of dy/dt = func(y, t) at all times, inside of a trace; what func reads from outside has derivatives too."""
    closed = ClosedFunction(func, y0, times[0])
    vector, back = _flat(closed.lifted)
    places = [handle._storage for handle in closed.lifted]

    def function(outside: list[Any], y: Any, t: Any) -> Any:
        return closed(dict(zip(places, outside, strict=True)), y, t)
    return _Solver(function, back, control).odeint(y0, times, vector)


def odeint(func: Function, y0: Any, t: Any, args: Any = (), Dfun: Any = None, *, rtol: float = 1.49012e-8,
           atol: float = 1.49012e-8, mxstep: int = 100_000, **options: Any) -> Any:
    """The solution of dy/dt = func(y, t, *args) with y(t[0]) = y0 at all times t, of shape (times, *y0.shape).

    y0, t, args and whatever func reads from outside are differentiated, by the adjoint equation, to the same tolerances.  Between two times
    at most mxstep steps are made, else the rest is nan.  Raises ShapeError for y0 of more than one axis.

    With Dfun=True (or a function), or another keyword of scipy.integrate.odeint, it is that function, LSODA, for stiff equations, with the
    derivative by y taken from func; not inside of traced functions, where UnsupportedError is raised (except for tfirst).

    >>> import numpy as np, bwcompiler as bw
    >>> solve = lambda rate: bw.scipy.integrate.odeint(lambda y, t, rate: -rate * y, np.ones(1), np.array([0.0, 1.0]), (rate,))[1, 0]
    >>> float(bw.grad(solve)(2.0).round(6))
    -0.135335
    """
    args = tuple(args) if isinstance(args, tuple | list) else (args,)
    time_first = is_traced_call() and options.pop("tfirst", False)
    if Dfun is not None or options:
        if is_traced_call():
            name = "Dfun" if Dfun is not None else next(iter(options))
            raise UnsupportedError(f"odeint inside of a traced function: {name} cannot be given; the method is an explicit one\n"
                                   "  hint: leave it out, or call it outside of traced functions")
        return lsoda(func, y0, t, args, Dfun, {"rtol": rtol, "atol": atol, "mxstep": mxstep, **options})
    y0, t = (as_tracer(one) if is_traced(one) else np.asarray(one) for one in (y0, t))
    if np.ndim(y0) > 1 or np.ndim(t) != 1:
        raise ShapeError(f"odeint: y0 of shape {np.shape(y0)} must have one axis, and t of shape {np.shape(t)} must have one")
    chosen = Control(rtol, atol, mxstep)
    if not is_traced_call():
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
