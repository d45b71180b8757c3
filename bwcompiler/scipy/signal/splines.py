"""Of `bw.scipy.signal`: B-splines through samples at equal distances, mirrored at both ends."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from bwcompiler.api.inside.eager import graph_function
from bwcompiler.errors import UnsupportedError
from bwcompiler.frontend.tracing.operands import number_value, real_value
from bwcompiler.frontend.tracing.tracer import fresh
from bwcompiler.scipy.signal.filters import lfilter


def _coefficients(signal: Any, pole: float, factor: float) -> Any:
    """Forwards and backwards through a recursive filter of one pole; the samples are mirrored at the ends."""
    samples: Any = fresh(number_value(signal))
    if samples.ndim != 1 or not samples.shape[0]:
        raise ValueError("Signal must be a 1d array with 1 sample at least.")
    count, back = samples.shape[0], np.array([1.0, -pole])
    start = samples[0] + pole * np.sum(pole ** np.arange(count) * samples)
    if count == 1:
        return np.atleast_1d(pole / (pole - 1) * start)
    rest, _ = lfilter(np.ones(1), back, samples[1:], zi=np.reshape(pole * start, 1))
    forward = np.concatenate([np.reshape(start, 1), rest])
    last = np.reshape(pole / (pole - 1) * forward[-1], 1)
    found, _ = lfilter(np.array([-pole]), back, forward[-2::-1], zi=pole * last)
    return np.concatenate([found[::-1], last]) * factor


def _unsmoothed(name: str, lamb: Any) -> None:
    if lamb != 0.0:
        raise UnsupportedError(f"scipy.signal.{name} on traced arrays takes lamb=0\n  hint: bw.scipy.signal.savgol_filter smooths")


@graph_function
def cspline1d(signal: Any, lamb: float = 0.0) -> Any:
    """The coefficients of the cubic spline through samples at 0, 1, 2 ...; lamb=0 alone.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.signal.cspline1d(np.ones(40))[20:22].round(6).tolist()
    [1.0, 1.0]
    """
    _unsmoothed("cspline1d", lamb)
    return _coefficients(signal, -2 + math.sqrt(3.0), 6.0)


@graph_function
def qspline1d(signal: Any, lamb: float = 0.0) -> Any:
    """The coefficients of the quadratic spline through samples at 0, 1, 2 ...; lamb=0 alone.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.signal.qspline1d(np.ones(40))[20:22].round(6).tolist()
    [1.0, 1.0]
    """
    _unsmoothed("qspline1d", lamb)
    return _coefficients(signal, -3 + 2 * math.sqrt(2.0), 8.0)


def _cubic(x: Any) -> Any:
    x = np.abs(x)
    return np.where(x < 1, 2 / 3 - x * x * (1 - x / 2), np.where(x < 2, (2 - x) ** 3 / 6, 0.0))


def _quadratic(x: Any) -> Any:
    x = np.abs(x)
    return np.where(x < 0.5, 0.75 - x * x, np.where(x < 1.5, (x - 1.5) ** 2 / 2, 0.0))


def _evaluate(cj: Any, newx: Any, dx: Any, x0: Any, basis: Callable[[Any], Any], reach: float) -> Any:
    coefficients: Any = fresh(number_value(cj))
    if not coefficients.shape[0]:
        raise ValueError("Spline coefficients 'cj' must not be empty.")
    last = coefficients.shape[0] - 1
    x = (fresh(real_value(newx)) - x0) / dx
    turned = np.remainder(x, 2 * last) if last else x * 0.0                       # mirrored at 0 and at the last sample
    x = np.where(turned > last, 2 * last - turned, turned)
    first = np.floor(x - reach).astype(np.int64) + 1
    total = 0.0
    for k in range(int(2 * reach)):
        place = first + k
        total = total + coefficients[np.clip(place, 0, last)] * basis(x - place)
    return total


@graph_function
def cspline1d_eval(cj: Any, newx: Any, dx: Any = 1.0, x0: Any = 0) -> Any:
    """The cubic spline of coefficients cj at newx; the samples were at x0, x0 + dx, x0 + 2 dx ...

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.signal.cspline1d_eval(np.ones(4), np.array([0.5, 2.0])).round(6).tolist()
    [1.0, 1.0]
    """
    return _evaluate(cj, newx, dx, x0, _cubic, 2.0)


@graph_function
def qspline1d_eval(cj: Any, newx: Any, dx: Any = 1.0, x0: Any = 0) -> Any:
    """The quadratic spline of coefficients cj at newx; the samples were at x0, x0 + dx, x0 + 2 dx ...

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.signal.qspline1d_eval(np.ones(4), np.array([0.5, 2.0])).round(6).tolist()
    [1.0, 1.0]
    """
    return _evaluate(cj, newx, dx, x0, _quadratic, 1.5)
