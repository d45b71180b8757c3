"""Waveforms, and the responses of filters to frequencies."""

from __future__ import annotations

from typing import Any

import numpy as np

from bwcompiler.api.inside.eager import graph_function
from bwcompiler.errors import UnsupportedError
from bwcompiler.frontend.tracing.operands import is_traced, number_value, real_value
from bwcompiler.frontend.tracing.tracer import fresh

TURN = 2 * np.pi


def _array(x: Any) -> Any:
    return fresh(real_value(x))


# ----- waveforms
def _phase(t: Any, f0: Any, t1: Any, f1: Any, method: str, vertex_zero: bool) -> Any:
    """The phase of a chirp, as SciPy's `_chirp_phase` defines it."""
    if method in ("linear", "lin", "li"):
        return TURN * (f0 * t + 0.5 * (f1 - f0) / t1 * t * t)
    if method in ("quadratic", "quad", "q"):
        beta = (f1 - f0) / t1 ** 2
        return TURN * (f0 * t + beta * t ** 3 / 3) if vertex_zero else TURN * (f1 * t + beta * ((t1 - t) ** 3 - t1 ** 3) / 3)
    same = f0 == f1
    other = np.where(same, 2 * f0 + 1, f1)                                    # where they are equal the frequency is constant
    if method in ("logarithmic", "log", "lo"):
        rate = t1 / np.log(other / f0)
        return np.where(same, TURN * f0 * t, TURN * rate * f0 * ((other / f0) ** (t / t1) - 1.0))
    if method in ("hyperbolic", "hyp"):
        singular = -other * t1 / (f0 - other)
        return np.where(same, TURN * f0 * t, TURN * (-singular * f0) * np.log(abs(1 - t / singular)))
    raise ValueError("method must be 'linear', 'quadratic', 'logarithmic', or 'hyperbolic', "
                     f"but a value of {method!r} was given.")


@graph_function
def chirp(t: Any, f0: Any, t1: Any, f1: Any, method: str = "linear", phi: Any = 0, vertex_zero: bool = True, *,
          complex: bool = False) -> Any:
    """A cosine whose frequency goes from f0 at time 0 to f1 at t1; phi is its phase in degrees; complex: exp(i phase).

    Raises ValueError for unknown methods; the signs of traced frequencies are not checked.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.signal.chirp(np.array([0.0, 1.0]), 1.0, 1.0, 3.0).round(6).tolist()
    [1.0, 1.0]
    """
    if method in ("logarithmic", "log", "lo") and not is_traced(f0) and not is_traced(f1) and f0 * f1 <= 0:
        raise ValueError("For a logarithmic chirp, f0 and f1 must be nonzero and have the same sign.")
    if method in ("hyperbolic", "hyp") and not is_traced(f0) and not is_traced(f1) and (f0 == 0 or f1 == 0):
        raise ValueError("For a hyperbolic chirp, f0 and f1 must be nonzero.")
    f0, t1, f1 = (_array(one) if is_traced(one) else one for one in (f0, t1, f1))
    phase = _phase(_array(t), f0, t1, f1, method, vertex_zero)
    phase = phase + np.deg2rad(_array(phi) if is_traced(phi) else phi)          # a number of NumPy's: the sum is float64
    return np.exp(1j * phase) if complex else np.cos(phase)


@graph_function
def sawtooth(t: Any, width: Any = 1) -> Any:
    """Waves of period 2 π: from -1 up to 1 in the share `width` of it, then down; nan where that is not between 0 and 1.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.signal.sawtooth(np.array([0.0, np.pi])).tolist()
    [-1.0, 0.0]
    """
    time, share = _array(t), _array(width)
    share = share + np.zeros_like(time)
    place = np.mod(time, TURN)
    rising = place < share * TURN
    up, down = np.where(rising, share, 1.0), np.where(rising, 0.0, share)
    found = np.where(rising, place / (np.pi * up) - 1, (np.pi * (share + 1) - place) / (np.pi * (1 - down)))
    return np.where((share > 1) | (share < 0), np.nan, found)


@graph_function
def square(t: Any, duty: Any = 0.5) -> Any:
    """Waves of period 2 π: 1 in the share `duty` of it, then -1; nan where that is not between 0 and 1.  The derivative is 0.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.signal.square(np.array([0.0, 4.0])).tolist()
    [1.0, -1.0]
    """
    time, share = _array(t), _array(duty)
    share = share + np.zeros_like(time)
    found = np.where(np.mod(time, TURN) < share * TURN, 1.0, -1.0)
    return np.where((share > 1) | (share < 0), np.nan, found)


@graph_function
def gausspulse(t: Any, fc: float = 1000, bw: float = 0.5, bwr: float = -6, tpr: float = -60, retquad: bool = False,
               retenv: bool = False) -> Any:
    """A cosine of frequency fc under a Gaussian envelope of the fractional bandwidth bw at bwr decibels; also the sine, also the envelope.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.signal.gausspulse(np.array([0.0]), fc=5.0).tolist()
    [1.0]
    """
    if fc < 0 or bw <= 0 or bwr >= 0:
        raise ValueError(f"fc={fc:.2f} must be >= 0, bw={bw:.2f} > 0 and bwr={bwr:.2f} < 0 dB")
    level = -(np.pi * fc * bw) ** 2 / (4.0 * np.log(10.0 ** (bwr / 20.0)))
    if isinstance(t, str):
        if t != "cutoff":
            raise ValueError("If `t` is a string, it must be 'cutoff'")
        if tpr >= 0:
            raise ValueError("Reference level for time cutoff must be < 0 dB")
        return np.sqrt(-np.log(10.0 ** (tpr / 20.0)) / level)
    time = _array(t)
    envelope = np.exp(-level * time * time)
    found = [envelope * np.cos(TURN * fc * time), envelope * np.sin(TURN * fc * time), envelope]
    chosen = [part for part, wanted in zip(found, (True, retquad, retenv), strict=True) if wanted]
    return chosen[0] if len(chosen) == 1 else tuple(chosen)


@graph_function
def vectorstrength(events: Any, period: Any) -> Any:
    """(strength, phase) of how events keep to a period: |mean of exp(2 π i events / period)| and its angle; of several periods, for each.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.signal.vectorstrength(np.array([0.0, 1.0, 2.0]), 1.0)[0].round(6).tolist()
    1.0
    """
    times, periods = _array(events), _array(period)
    if times.ndim > 1 or periods.ndim > 1:
        raise ValueError("events and period cannot have dimensions more than 1")
    angles = TURN / np.atleast_1d(periods)[:, None] * np.atleast_1d(times)
    real, imag = np.cos(angles).mean(1), np.sin(angles).mean(1)
    strength, phase = np.hypot(real, imag), np.arctan2(imag, real)
    return (strength, phase) if periods.ndim else (strength[0], phase[0])


# ----- responses to frequencies
def _places(points: Any, whole: bool, fs: float, include_nyquist: bool, dtype: Any) -> tuple[Any, Any]:
    """The frequencies in units of fs, and as angles, in the precision of coefficients of a dtype."""
    real = np.finfo(dtype).dtype
    if isinstance(points, int | np.integer) or points is None:
        last = TURN if whole else np.pi
        angles = np.linspace(0, last, 512 if points is None else int(points), endpoint=include_nyquist and not whole, dtype=real)
        return angles * (fs / TURN), angles
    given: Any = np.atleast_1d(_array(points) if is_traced(points) else np.asarray(points)).astype(real)
    return given, given * (TURN / fs)


def _polynomial(coefficients: Any, z: Any) -> Any:
    """Σ coefficients[k] zᵏ, the coefficients along the first axis."""
    found = coefficients[-1] + 0 * z
    for k in range(coefficients.shape[0] - 2, -1, -1):
        found = coefficients[k] + found * z
    return found


@graph_function
def freqz(b: Any, a: Any = 1, worN: Any = 512, whole: bool = False, plot: None = None, fs: float = TURN,
          include_nyquist: bool = False) -> Any:
    """(frequencies, responses) of a digital filter: Σ b[k] e^(-iωk) / Σ a[k] e^(-iωk).

    worN   how many frequencies, up to fs / 2 (whole: fs), or an array of them.  Coefficients of one axis.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.signal.freqz(np.array([0.5, 0.5]), worN=2)[1].round(6).tolist()
    [(1+0j), (0.5-0.5j)]
    """
    forward, back = (np.atleast_1d(fresh(number_value(one))) for one in (b, a))
    if forward.ndim > 1 or back.ndim > 1:
        raise UnsupportedError("scipy.signal.freqz of traced values: coefficients have one axis\n  hint: bw.vmap over filters")
    frequencies, angles = _places(worN, whole, fs, include_nyquist, np.result_type(forward, back))
    z = np.exp(-1j * angles)
    response = _polynomial(forward, z) / _polynomial(back, z)
    by_transform = back.size == 1 and np.ndim(worN) == 0 and frequencies.size * (1 if whole else 2) - 2 * include_nyquist >= forward.size
    return frequencies, response.astype(np.result_type(forward, np.complex64)) if by_transform else response


@graph_function
def freqz_sos(sos: Any, worN: Any = 512, whole: bool = False, fs: float = TURN) -> Any:
    """(frequencies, responses) of a cascade of second-order sections; see `freqz`.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.signal.freqz_sos(np.array([[0.5, 0.5, 0, 1, 0, 0]]), worN=2)[1].round(6).tolist()
    [(1+0j), (0.5-0.5j)]
    """
    sections: Any = fresh(number_value(sos))
    if sections.ndim != 2 or sections.shape[1] != 6:
        raise ValueError("sos array must be shape (n_sections, 6)")
    if not sections.shape[0]:
        raise ValueError("Cannot compute frequencies with no sections")
    frequencies, angles = _places(worN, whole, fs, False, sections.dtype)
    z = np.exp(-1j * angles)
    forward, back = (_polynomial(part.T[:, :, None], z).prod(0) for part in (sections[:, :3], sections[:, 3:]))
    return frequencies, forward / back


sosfreqz = freqz_sos


@graph_function
def freqs(b: Any, a: Any, worN: Any = 200, plot: None = None) -> Any:
    """(frequencies, responses) of an analog filter: its numerator over its denominator at i ω.

    worN   an array of angular frequencies; how many, which SciPy then chooses by the roots, raises UnsupportedError.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.signal.freqs(np.array([1.0]), np.array([1.0, 1.0]), np.array([0.0, 1.0]))[1].round(6).tolist()
    [(1+0j), (0.5-0.5j)]
    """
    if np.ndim(worN) == 0 and not is_traced(worN):
        raise UnsupportedError("scipy.signal.freqs of traced values: the frequencies are chosen by the numbers\n"
                               "  hint: worN= an array of frequencies")
    forward, back = (np.atleast_1d(fresh(number_value(one))) for one in (b, a))
    frequencies = np.atleast_1d(_array(worN))
    s = 1j * frequencies
    return frequencies, _polynomial(forward[::-1], s) / _polynomial(back[::-1], s)


def group_delay(system: Any, w: Any = 512, whole: bool = False, fs: float = TURN) -> Any:
    """(frequencies, delays in samples) of the digital filter system = (b, a).

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.signal.group_delay((np.array([0.5, 0.5]), np.array([1.0])), 2)[1].round(6).tolist()
    [0.5, 0.5]
    """
    b, a = system
    return _group_delay(b, a, w, whole, fs)


@graph_function
def _group_delay(b: Any, a: Any, w: Any, whole: bool, fs: float) -> Any:
    forward, back = (np.atleast_1d(fresh(number_value(one))) for one in (b, a))
    frequencies, angles = _places(w, whole, fs, False, np.float64)
    joined = np.convolve(forward, np.conj(back[::-1]))
    z = np.exp(-1j * angles)
    numerator, denominator = _polynomial(joined * np.arange(joined.shape[0]), z), _polynomial(joined, z)
    singular = abs(denominator) < 10 * np.finfo(float).eps
    return frequencies, np.where(singular, 0.0, (numerator / np.where(singular, 1.0, denominator)).real - back.shape[0] + 1)


@graph_function
def sos2tf(sos: Any) -> Any:
    """(b, a) of a cascade of second-order sections: the products of their polynomials.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.signal.sos2tf(np.array([[1.0, 2.0, 0, 1, -0.5, 0]]))[1].tolist()
    [1.0, -0.5, 0.0]
    """
    sections: Any = fresh(number_value(sos))
    if sections.ndim != 2 or sections.shape[1] != 6:
        raise ValueError("sos array must be shape (n_sections, 6)")
    forward = back = np.ones(1, sections.dtype)
    for k in range(sections.shape[0]):
        forward, back = np.convolve(forward, sections[k, :3]), np.convolve(back, sections[k, 3:])
    return forward, back
