"""Filters with feedback: loops over an axis, forwards, or forwards and backwards."""

from __future__ import annotations

from typing import Any

import numpy as np

from bwcompiler.api.inside.eager import graph_function
from bwcompiler.api.inside.loops import scan
from bwcompiler.errors import UnsupportedError
from bwcompiler.frontend.numpy.axes import normalize_axis
from bwcompiler.frontend.tracing.operands import is_traced, number_value, value_as
from bwcompiler.frontend.tracing.tracer import fresh
from bwcompiler.scipy.signal.convolutions import convolved


@graph_function
def lfilter(b: Any, a: Any, x: Any, axis: int = -1, zi: Any = None) -> Any:
    """The rational filter a[0] y[n] = Σ b[k] x[n - k] - Σ a[k] y[n - k] along an axis; with its state zi also the last state.

    A filter without feedback (a of one element) is a convolution, any other a loop over the axis.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.signal.lfilter(np.array([1.0]), np.array([1.0, -0.5]), np.array([1.0, 0.0, 0.0])).tolist()
    [1.0, 0.5, 0.25]
    """
    given: list[Any] = [np.atleast_1d(fresh(number_value(one))) for one in (b, a, x)]
    forward, back, signal = given
    place = normalize_axis(axis, signal.ndim)
    forward, back = forward / back[0], back / back[0]
    size = max(forward.shape[0], back.shape[0])
    forward, back = (np.pad(one, (0, size - one.shape[0])) for one in (forward, back))
    lines = np.moveaxis(signal, place, 0)
    if zi is None and back.shape[0] == forward.shape[0] and np.shape(a) in ((), (1,)):
        flat = lines.reshape(lines.shape[0], -1)
        full = convolved(value_as(flat), value_as(forward), ([0], [0]), ([], []), "full")        # (lines, places)
        columns: Any = fresh(full)
        found = np.moveaxis(columns, -1, 0)[:lines.shape[0]].reshape(lines.shape)
        return np.moveaxis(found, 0, place)
    shape = lines.shape[1:]
    begin: Any = None if zi is None else fresh(number_value(zi))
    kind = np.result_type(lines.dtype, forward.dtype, back.dtype)
    state = np.zeros((size - 1, *shape), kind) if begin is None else np.moveaxis(begin, place, 0)
    state = np.broadcast_to(state, (size - 1, *shape)) + np.zeros((), kind)
    wide = (-1, *[1] * len(shape))
    taps, feedback = forward[1:].reshape(wide), back[1:].reshape(wide)
    first = forward[0]

    def step(carry: Any, now: Any) -> Any:                                       # the transposed direct form II
        out = first * now + carry[0] if size > 1 else first * now
        moved = np.concatenate([carry[1:], np.zeros_like(carry[:1])]) if size > 1 else carry
        return moved + taps * now - feedback * out, out

    last, filtered = scan(step, state, lines)
    result = np.moveaxis(filtered, 0, place)
    final: Any = last
    return result if zi is None else (result, np.moveaxis(final, 0, place))


@graph_function
def lfilter_zi(b: Any, a: Any) -> Any:
    """The state of `lfilter` in which the response to a constant signal of ones is constant.

    Raises ValueError for coefficients of more than one axis.  Leading coefficients of a count as different from 0.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.signal.lfilter_zi(np.array([1.0]), np.array([1.0, -0.5])).tolist()
    [1.0]
    """
    forward, back = _coefficients(b, a)
    gain = forward[1:] - back[1:] * forward[0]
    first = gain.sum() / back.sum()
    return (np.cumsum(back) * first)[:-1] - np.concatenate([np.zeros(1, gain.dtype), np.cumsum(gain)[:-1]]) if gain.shape[0] else gain


def _coefficients(b: Any, a: Any) -> tuple[Any, Any]:
    """Numerator and denominator of equal length, divided by a[0]."""
    forward, back = (np.atleast_1d(fresh(number_value(one))) for one in (b, a))
    if forward.ndim != 1:
        raise ValueError("Numerator b must be 1-D.")
    if back.ndim != 1:
        raise ValueError("Denominator a must be 1-D.")
    size = max(forward.shape[0], back.shape[0])
    return tuple([np.pad(one / back[0], (0, size - one.shape[0])) for one in (forward, back)])  # type: ignore[return-value]


@graph_function
def lfiltic(b: Any, a: Any, y: Any, x: Any = None) -> Any:
    """The state of `lfilter` after results y and signals x, the latest first.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.signal.lfiltic(np.array([1.0]), np.array([1.0, -0.5]), np.array([3.0])).tolist()
    [1.5]
    """
    forward, back = (np.atleast_1d(fresh(number_value(one))) for one in (b, a))
    forward, back = forward / back[0], back / back[0]
    count, orders = max(forward.shape[0], back.shape[0]) - 1, (forward.shape[0] - 1, back.shape[0] - 1)
    given = [None if one is None else np.atleast_1d(fresh(number_value(one))) for one in (x, y)]
    before, after = [np.zeros(order) if one is None else np.pad(one[:order], (0, max(0, order - one.shape[0])))
                     for one, order in zip(given, orders, strict=True)]
    state = [(forward[m + 1:] * before[:max(orders[0] - m, 0)]).sum() - (back[m + 1:] * after[:max(orders[1] - m, 0)]).sum()
             for m in range(count)]
    return np.stack(state) if state else np.zeros(0)


# ----- second-order sections
def _sections(sos: Any) -> Any:
    sections: Any = fresh(number_value(sos))
    if sections.ndim != 2:
        raise ValueError("sos array must be 2D")
    if sections.shape[1] != 6:
        raise ValueError("sos array must be shape (n_sections, 6)")
    if not is_traced(sos) and not (np.asarray(sos)[:, 3] == 1).all():
        raise ValueError("sos[:, 3] should be all ones")
    return sections


@graph_function
def sosfilt(sos: Any, x: Any, axis: int = -1, zi: Any = None) -> Any:
    """A cascade of filters of second order along an axis; with their states zi also the last ones.

    sos       rows b0 b1 b2 1 a1 a2, one per filter.  Raises ValueError for another shape.
    zi        (n_sections, ..., 2, ...), with 2 in the place of the axis.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.signal.sosfilt(np.array([[1.0, 0, 0, 1, -0.5, 0]]), np.array([1.0, 0.0, 0.0])).tolist()
    [1.0, 0.5, 0.25]
    """
    sections, signal = _sections(sos), np.atleast_1d(fresh(number_value(x)))
    count, place = sections.shape[0], normalize_axis(axis, signal.ndim)
    lines = np.moveaxis(signal, place, 0)
    begin: Any = None if zi is None else fresh(number_value(zi))
    kinds = [one.dtype for one in (lines, sections, begin) if one is not None]
    shape = (count, 2, *lines.shape[1:])
    if begin is not None:
        expected = (count, *[2 if k == place else extent for k, extent in enumerate(signal.shape)])
        if begin.shape != expected:
            raise ValueError(f"Invalid zi shape. With axis={axis!r}, an input with shape {signal.shape!r}, and an sos array with "
                             f"{count} sections, zi must have shape {expected!r}, got {begin.shape!r}.")
    state = np.zeros(shape, np.result_type(*kinds)) if begin is None else np.moveaxis(begin, place + 1, 1).astype(np.result_type(*kinds))

    def step(carry: Any, now: Any) -> Any:                                       # the transposed direct form II, section by section
        after = []
        for k in range(count):
            b0, b1, b2, _, a1, a2 = (sections[k, j] for j in range(6))
            out = b0 * now + carry[k, 0]
            after.append(np.stack([b1 * now - a1 * out + carry[k, 1], b2 * now - a2 * out]))
            now = out
        return np.stack(after), now

    last, filtered = scan(step, state, lines.astype(state.dtype))
    result = np.moveaxis(filtered, 0, place)
    final: Any = last
    return result if zi is None else (result, np.moveaxis(final, 1, place + 1))


@graph_function
def sosfilt_zi(sos: Any) -> Any:
    """The states of `sosfilt`, (n_sections, 2), in which the response to a constant signal of ones is constant.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.signal.sosfilt_zi(np.array([[1.0, 0, 0, 1, -0.5, 0]])).tolist()
    [[1.0, 0.0]]
    """
    sections = _sections(sos)
    forward, back = sections[:, :3], sections[:, 3:]
    gains = forward.sum(1) / back.sum(1)
    scale = np.concatenate([np.ones(1, gains.dtype), np.cumprod(gains)[:-1]])
    change = forward[:, 1:] - back[:, 1:] * forward[:, :1]
    first = change.sum(1) / back.sum(1)
    return scale[:, None] * np.stack([first, (1 + back[:, 1]) * first - change[:, 0]], 1)


# ----- forwards and backwards
def extended(lines: Any, edge: int, how: str | None) -> Any:
    """The signal along the last axis with `edge` more elements at both ends: mirrored, turned about its ends, or repeated."""
    if how is None or not edge:
        return lines
    first, last = lines[..., :1], lines[..., -1:]
    if how == "constant":
        before, after = (np.broadcast_to(one, (*one.shape[:-1], edge)) for one in (first, last))
    else:
        before, after = lines[..., edge:0:-1], lines[..., -2:-(edge + 2):-1]
        before, after = (2 * first - before, 2 * last - after) if how == "odd" else (before, after)
    return np.concatenate([before, lines, after], -1)


def _edge(padtype: str | None, padlen: int | None, count: int, taps: int) -> int:
    if padtype not in ("even", "odd", "constant", None):
        raise ValueError(f"Unknown value '{padtype}' given to padtype. padtype must be 'even', 'odd', 'constant', or None.")
    edge = 0 if padtype is None else 3 * taps if padlen is None else padlen
    if count <= edge:
        raise ValueError(f"The length of the input vector x must be greater than padlen, which is {edge}.")
    return edge


def _there_and_back(x: Any, axis: int, padtype: str | None, padlen: int | None, taps: int, run: Any) -> Any:
    """run(lines, start) -> filtered lines, from the state in which `start` was there for ever; forwards, then backwards."""
    signal: Any = fresh(number_value(x))
    place = normalize_axis(axis, signal.ndim)
    lines = np.moveaxis(signal, place, -1)
    edge = _edge(padtype, padlen, lines.shape[-1], taps)
    for _ in range(2):
        wide = lines if _ else extended(lines, edge, padtype)
        lines = run(wide, wide[..., :1])[..., ::-1]
    return np.moveaxis(lines[..., edge:-edge] if edge else lines, -1, place)


@graph_function
def filtfilt(b: Any, a: Any, x: Any, axis: int = -1, padtype: str | None = "odd", padlen: int | None = None, method: str = "pad",
             irlen: int | None = None) -> Any:
    """`lfilter` forwards and backwards, so that nothing is delayed.

    padtype, padlen   how the signal is continued beyond its ends ("odd", "even", "constant" or None), and by how many elements.
    method            "pad"; Gustafsson's method ("gust") raises UnsupportedError for traced values.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.signal.filtfilt(np.array([0.5, 0.5]), np.array([1.0]), np.arange(8.0)).round(8).tolist()
    [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]
    """
    if method not in ("pad", "gust"):
        raise ValueError("method must be 'pad' or 'gust'.")
    if method == "gust":
        raise UnsupportedError("scipy.signal.filtfilt of traced values: method 'gust' is not supported\n  hint: method=\"pad\"")
    forward, back = (np.atleast_1d(fresh(number_value(one))) for one in (b, a))
    taps = max(forward.shape[0], back.shape[0])
    zi: Any = lfilter_zi(forward, back)
    return _there_and_back(x, axis, padtype, padlen, taps, lambda lines, start: lfilter(forward, back, lines, -1, zi * start)[0])


def sosfiltfilt(sos: Any, x: Any, axis: int = -1, padtype: str | None = "odd", padlen: int | None = None) -> Any:
    """`sosfilt` forwards and backwards, so that nothing is delayed; see `filtfilt`.

    Where sos is traced the default of padlen is not known, as it depends on which coefficients are 0: UnsupportedError.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.signal.sosfiltfilt(np.array([[0.5, 0.5, 0, 1, 0, 0]]), np.arange(8.0)).round(8).tolist()
    [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]
    """
    if padlen is None and padtype is not None:
        if is_traced(sos):
            raise UnsupportedError("scipy.signal.sosfiltfilt: how far the signal is continued depends on which coefficients are 0, "
                                   "which is not known of traced ones\n  hint: say padlen=3 * (2 * len(sos) + 1) or another number")
        known = np.asarray(sos)
        padlen = 3 * (2 * len(known) + 1 - min(int((known[:, 2] == 0).sum()), int((known[:, 5] == 0).sum())))
    return _sosfiltfilt(sos, x, axis, padtype, padlen)


@graph_function
def _sosfiltfilt(sos: Any, x: Any, axis: int, padtype: str | None, padlen: int | None) -> Any:
    zi: Any = sosfilt_zi(sos)
    signal: Any = fresh(number_value(x))
    wide = (zi.shape[0], *[1] * (signal.ndim - 1), 2)
    return _there_and_back(signal, axis, padtype, padlen, 0, lambda lines, start: sosfilt(sos, lines, -1, zi.reshape(wide) * start)[0])


@graph_function
def deconvolve(signal: Any, divisor: Any) -> Any:
    """(quotient, remainder): signal = convolve(divisor, quotient) + remainder, by division of polynomials.

    Raises ValueError unless both have one axis and elements.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.signal.deconvolve(np.array([0.0, 2.0, 5.0, 2.0]), np.array([2.0, 1.0]))[0].tolist()
    [0.0, 1.0, 2.0]
    """
    num, den = (np.atleast_1d(fresh(number_value(one))) for one in (signal, divisor))
    for name, one in (("signal", num), ("divisor", den)):
        if one.ndim != 1 or not one.shape[0]:
            raise ValueError(f"Parameter {name} must be non-empty 1d array, but its shape is {one.shape}!")
    count = num.shape[0] - den.shape[0] + 1
    if count < 1:
        return np.zeros(0), num
    quotient: Any = lfilter(np.ones(1), den, num[:count])
    return quotient, num - np.convolve(den, quotient)
