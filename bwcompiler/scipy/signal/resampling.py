"""Other rates of sampling: by Fourier transforms, by filters between samples; and analytic signals."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from bwcompiler import lazy
from bwcompiler.api.inside.eager import graph_function
from bwcompiler.errors import UnsupportedError
from bwcompiler.frontend.numpy.axes import normalize_axis
from bwcompiler.frontend.tracing.operands import number_value
from bwcompiler.frontend.tracing.tracer import fresh
from bwcompiler.scipy.signal.filters import lfilter, sosfilt, sosfiltfilt

scipy_signal = lazy.module("scipy.signal")
BACKGROUNDS: dict[str, Any] = {"mean": np.mean, "median": np.median, "minimum": np.min, "maximum": np.max}


# ----- analytic signals
def _numbers(x: Any) -> Any:
    return fresh(number_value(x))


def _kept(count: int) -> Any:
    """Twice the frequencies above 0, none of those below."""
    weights = np.zeros(count)
    weights[0] = 1.0
    weights[1:(count + 1) // 2] = 2.0
    if count % 2 == 0:
        weights[count // 2] = 1.0
    return weights


def _real(x: Any) -> Any:
    signal: Any = fresh(number_value(x))
    if np.iscomplexobj(signal):
        raise ValueError("x must be real.")
    return signal


@graph_function
def hilbert(x: Any, N: int | None = None, axis: int = -1) -> Any:
    """The analytic signal along an axis, of N elements (of as many as x has): its imaginary part is the Hilbert transform.

    Raises ValueError for complex numbers.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.signal.hilbert(np.array([1.0, 0.0, -1.0, 0.0])).round(6).tolist()
    [(1+0j), 1j, (-1+0j), -1j]
    """
    signal = _real(x)
    place = normalize_axis(axis, signal.ndim)
    count = signal.shape[place] if N is None else N
    if count <= 0:
        raise ValueError("N must be positive.")
    spectrum = np.fft.fft(np.moveaxis(signal, place, -1), count)
    return np.moveaxis(np.fft.ifft(spectrum * _kept(count).astype(signal.dtype)), -1, place)


@graph_function
def hilbert2(x: Any, N: int | tuple[int, int] | None = None, axes: tuple[int, int] = (-2, -1)) -> Any:
    """The analytic signal along two axes.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.signal.hilbert2(np.eye(2)).real.round(6).tolist()
    [[0.5, 0.5], [0.5, 0.5]]
    """
    signal = np.atleast_2d(_real(x))
    if len(axes) != 2:
        raise ValueError("axes must be a tuple of length 2")
    places = [normalize_axis(axis, signal.ndim) for axis in axes]
    if places[0] == places[1]:
        raise ValueError("axes must contain 2 distinct axes")
    counts = [signal.shape[place] for place in places] if N is None else [N, N] if isinstance(N, int) else list(N)
    if len(counts) != 2 or min(counts) <= 0:
        raise ValueError("N must be positive.")
    spectrum = np.fft.fft2(np.moveaxis(signal, places, (-2, -1)), counts)
    weights = []
    for count in counts:
        half = (count + 1) // 2
        weight = np.zeros(count, signal.dtype)
        weight[:half] = 2.0
        weight[0] = 1.0
        weights.append(weight)
    return np.moveaxis(np.fft.ifft2(spectrum * weights[0][:, None] * weights[1]), (-2, -1), places)


# ----- resampling by transforms
def _weights(window: Any, count: int) -> Any:
    if callable(window):
        return window(np.fft.fftfreq(count))
    if hasattr(window, "shape"):
        if window.shape != (count,):
            raise ValueError(f"window.shape={window.shape} != ({count},), i.e., window length is not equal to number of frequency bins!")
        return window
    return np.fft.fftshift(scipy_signal.get_window(window, count))


@graph_function
def resample(x: Any, num: int, t: Any = None, axis: int = 0, window: Any = None, domain: str = "time") -> Any:
    """num samples in the place of those along an axis, by Fourier transforms: as if the signal were repeated for ever.

    t        the places of the samples; the new ones are returned too, (samples, places).
    window   weights of the frequencies: an array, a function of them, or what get_window takes.
    domain   "time", or "freq" where x is the Fourier transform.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.signal.resample(np.array([0.0, 1.0, 0.0, -1.0]), 8).round(4).tolist()
    [0.0, 0.7071, 1.0, 0.7071, 0.0, -0.7071, -1.0, -0.7071]
    """
    if domain not in ("time", "freq"):
        raise ValueError(f"Parameter domain={domain!r} not in ('time', 'freq')!")
    signal: Any = fresh(number_value(x))
    place = normalize_axis(axis, signal.ndim)
    lines = np.moveaxis(signal, place, -1)
    count = lines.shape[-1]
    ratio, fewer = count / num, min(num, count)
    weights = None if window is None else _weights(window, count)
    one_sided = domain == "time" and not np.iscomplexobj(lines)
    if one_sided:
        spectrum = np.fft.rfft(lines)
        if weights is not None:
            kept = spectrum.shape[-1]
            spectrum = spectrum * np.concatenate([weights[:1], (weights[1:kept] + weights[::-1][:kept - 1]) / 2])
        found: Any = np.fft.irfft(_stretched(spectrum, fewer, num, count) / ratio, num)
    else:
        spectrum = np.fft.fft(lines) if domain == "time" else lines
        spectrum = spectrum if weights is None else spectrum * weights
        found = np.fft.ifft(_stretched_both(spectrum, fewer, num, count) / ratio, num)
    found = np.moveaxis(found, -1, place)
    return found if t is None else (found, t[0] + (t[1] - t[0]) * ratio * np.arange(num))


def _stretched(spectrum: Any, fewer: int, num: int, count: int) -> Any:
    """The frequencies from 0 up that are kept; the highest of an even number is half of two that are one with fewer samples."""
    half = fewer // 2
    kept = spectrum[..., :half + 1]
    if fewer % 2 or num == count:
        return kept
    factor = np.ones(half + 1)
    factor[half] = 2.0 if num < count else 0.5
    return kept * factor.astype(kept.real.dtype)


def _stretched_both(spectrum: Any, fewer: int, num: int, count: int) -> Any:
    half = fewer // 2 + 1
    above, below = spectrum[..., :half], spectrum[..., count - (fewer - half):]
    between = np.zeros((*spectrum.shape[:-1], num - fewer), spectrum.dtype)
    if fewer % 2 or num == count:
        return np.concatenate([above, between, below], -1)
    last = above[..., half - 1:]
    if num < count:
        return np.concatenate([above[..., :half - 1], last + spectrum[..., count - fewer // 2:][..., :1], below], -1)
    return np.concatenate([above[..., :half - 1], last / 2, between[..., 1:], last / 2, below], -1)


# ----- filters between samples
def _beyond(lines: Any, count: int, mode: str, cval: Any) -> Any:
    """The signal along the last axis with count more elements at both ends."""
    margins = [*[(0, 0)] * (lines.ndim - 1), (count, count)]
    if mode == "constant":
        return np.pad(lines, margins, constant_values=cval)
    if mode in ("wrap", "edge", "symmetric", "reflect"):
        return np.pad(lines, margins, mode=mode)  # type: ignore[call-overload]
    if mode == "antireflect":
        return np.pad(lines, margins, mode="reflect", reflect_type="odd")
    steps = np.arange(1, count + 1)
    if mode in ("smooth", "line"):
        first, last = lines[..., :1], lines[..., -1:]
        if mode == "line":
            slopes = ((last - first) / max(lines.shape[-1] - 1, 1),) * 2
        else:
            slopes = (lines[..., 1:2] - first, last - lines[..., -2:-1])
        return np.concatenate([first - slopes[0] * steps[::-1], lines, last + slopes[1] * steps], -1)
    if mode == "antisymmetric":
        signs = np.where((np.arange(-count, lines.shape[-1] + count) // lines.shape[-1]) % 2, -1, 1)
        return np.pad(lines, margins, mode="symmetric") * signs
    raise ValueError(f"Unknown mode: {mode}")


@graph_function
def upfirdn(h: Any, x: Any, up: int = 1, down: int = 1, axis: int = -1, mode: str = "constant", cval: Any = 0) -> Any:
    """x with up - 1 zeros between its elements, convolved with h; and of that every element at a multiple of down.

    mode, cval   what is beyond the ends: cval, or the signal as np.pad continues it, "line", "smooth", "antisymmetric", "antireflect".

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.signal.upfirdn(np.array([1.0, 1.0]), np.array([1.0, 2.0, 3.0]), up=2).tolist()
    [1.0, 1.0, 2.0, 2.0, 3.0, 3.0]
    """
    taps, signal = _numbers(h), _numbers(x)
    if taps.ndim != 1 or not taps.shape[0]:
        raise ValueError("h must be 1-D with non-zero length")
    if up < 1 or down < 1:
        raise ValueError("Both up and down must be >= 1")
    place = normalize_axis(axis, signal.ndim)
    lines = np.moveaxis(signal, place, -1)
    size = lines.shape[-1]
    count = ((size - 1) * up + taps.shape[0] - 1) // down + 1
    phases = -(-taps.shape[0] // up)
    table = np.pad(taps, (0, phases * up - taps.shape[0])).reshape(phases, up)  # [i, r] = h[r + i up]
    at = np.arange(count) * down
    wide = _beyond(lines, phases, mode, cval)
    places = phases + (at // up)[:, None] - np.arange(phases)                    # y[n] = Σ_i h[n down % up + i up] x[n down // up - i]
    found = (wide[..., places] * table[:, at % up].T).sum(-1)
    return np.moveaxis(found, -1, place)


@graph_function
def resample_poly(x: Any, up: int, down: int, axis: int = 0, window: Any = ("kaiser", 5.0), padtype: str = "constant",
                  cval: Any = None) -> Any:
    """up / down times as many samples along an axis, by a filter without delay.

    window    what firwin takes, or the filter's coefficients.
    padtype   what is beyond the ends: cval ("constant"), a mode of `upfirdn`, or "mean", "median", "minimum" or "maximum" of the signal.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.signal.resample_poly(np.ones(6), 2, 1, padtype="mean").round(6).tolist()
    [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    """
    if up != int(up) or down != int(down):
        raise ValueError("up and down must be integers")
    if up < 1 or down < 1:
        raise ValueError("up and down must be >= 1")
    if cval is not None and padtype != "constant":
        raise ValueError("cval has no effect when padtype is ", padtype)
    signal: Any = fresh(number_value(x))
    common = math.gcd(int(up), int(down))
    up, down = int(up) // common, int(down) // common
    if up == down == 1:
        return signal + 0
    place = normalize_axis(axis, signal.ndim)
    count = -(-signal.shape[place] * up // down)
    if isinstance(window, list) or hasattr(window, "shape"):
        taps: Any = fresh(number_value(window))
        half = (taps.shape[0] - 1) // 2
    else:
        rate = max(up, down)
        half = 10 * rate
        taps = scipy_signal.firwin(2 * half + 1, 1.0 / rate, window=window).astype(signal.real.dtype)
    before = down - half % down
    removed = (half + before) // down
    after = 0
    while ((signal.shape[place] - 1) * up + taps.shape[0] + before + after - 1) // down + 1 < count + removed:
        after += 1
    taps = np.pad(taps * up, (before, after))
    background = BACKGROUNDS[padtype](signal, axis=place, keepdims=True) if padtype in BACKGROUNDS else None
    if background is not None:
        found = upfirdn(taps, signal - background, up, down, place)
    else:
        found = upfirdn(taps, signal, up, down, place, padtype, 0 if cval is None else cval)
    kept = found[tuple([slice(removed, removed + count) if k == place else slice(None) for k in range(signal.ndim)])]
    return kept if background is None else kept + background


@graph_function
def decimate(x: Any, q: int, n: int | None = None, ftype: str = "iir", axis: int = -1, zero_phase: bool = True) -> Any:
    """Every q-th sample, after a low-pass filter of order n (8, or 20 q for "fir").

    ftype        "iir" (Chebyshev) or "fir" (a Hamming window); an object of scipy.signal.dlti raises UnsupportedError.
    zero_phase   filters without delay.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.signal.decimate(np.ones(40), 4).shape
    (10,)
    """
    signal: Any = fresh(number_value(x))
    q = operator.index(q)
    place = normalize_axis(axis, signal.ndim)
    kind = signal.real.dtype
    every = tuple([slice(None, None, q) if k == place else slice(None) for k in range(signal.ndim)])
    if ftype == "fir":
        taps = scipy_signal.firwin((20 * q if n is None else n) + 1, 1.0 / q, window="hamming").astype(kind)
        if zero_phase:
            return resample_poly(signal, 1, q, place, taps)
        return lfilter(taps, np.ones(1, kind), signal, place)[every]
    if ftype != "iir":
        if isinstance(ftype, str):
            raise ValueError("invalid ftype")
        raise UnsupportedError("scipy.signal.decimate of traced values: ftype is 'iir' or 'fir'\n"
                               "  hint: filter with filtfilt or sosfiltfilt, and take every q-th sample, y[..., ::q]")
    sos = scipy_signal.cheby1(8 if n is None else n, 0.05, 0.8 / q, output="sos").astype(kind)
    return (sosfiltfilt(sos, signal, place) if zero_phase else sosfilt(sos, signal, place))[every]


# ----- envelopes
@graph_function
def envelope(z: Any, bp_in: tuple[int | None, int | None] = (1, None), *, n_out: int | None = None, squared: bool = False,
             residual: str | None = "lowpass", axis: int = -1) -> Any:
    """The sizes of a signal's oscillations, and what they oscillate about (residual "lowpass"; "all": with what is above the band).

    bp_in      the band: numbers of Fourier coefficients, from the first (0: the mean) up to the one before the last.
    n_out      how many samples come out; None: as many as went in.
    squared    the squares of the sizes.
    residual   None: the sizes alone; else both, stacked along a new first axis.

    Raises ValueError for a band that is out of range, or another residual.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.signal.envelope(3.0 + 2.0 * np.cos(np.arange(8) * np.pi / 4))[:, :3].round(6).tolist()
    [[2.0, 2.0, 2.0], [3.0, 3.0, 3.0]]
    """
    signal: Any = np.moveaxis(_numbers(z), axis, -1)
    n, is_complex = signal.shape[-1], signal.dtype.kind == "c"
    count = n if n_out is None else n_out
    start = -(n // 2) if bp_in[0] is None else bp_in[0]
    stop = (n + 1) // 2 if bp_in[1] is None else bp_in[1]
    if not -n // 2 <= start < stop <= (n + 1) // 2 or count < 1:
        raise ValueError(f"envelope: the band {bp_in} or n_out={n_out} is out of range for {n} samples")
    if residual not in ("lowpass", "all", None):
        raise ValueError(f"residual={residual!r} not in ['lowpass', 'all', None]!")
    band = slice(start, stop)
    if is_complex:
        spectrum = np.fft.fft(signal)
    else:                                                          # the negative frequencies are known: the positive ones count twice
        spectrum = np.zeros_like(signal, dtype=np.complex64 if signal.dtype == np.float32 else np.complex128)
        spectrum[..., :n // 2 + 1] = np.fft.rfft(signal)
        if stop > 0:
            spectrum[..., max(start, 1):stop] *= 2
    around_zero = start <= 0 < stop
    chosen = np.fft.fftshift(spectrum, axes=-1)[..., start + n // 2:stop + n // 2] if around_zero else spectrum[..., band]
    inside = np.fft.ifft(chosen, n=count) * (count / n)            # shifted, which sizes do not see
    sizes = inside.real**2 + inside.imag**2 if squared else np.abs(inside)
    found = np.moveaxis(sizes, -1, axis)
    if residual is None:
        return found
    return np.stack([found, np.moveaxis(_outside(spectrum, band, count, residual, is_complex), -1, axis)])


def _outside(spectrum: Any, band: slice, count: int, residual: str, is_complex: bool) -> Any:
    """The signal without the frequencies of the band; "lowpass": without those above it, too."""
    n = spectrum.shape[-1]
    if band.start <= 0 < band.stop:
        spectrum[..., :band.stop] = 0
        spectrum[..., band.start:] = 0
    else:
        spectrum[..., band] = 0
    if residual == "lowpass" and band.stop > 0:
        spectrum[..., band.stop:(n + 1) // 2] = 0
    elif residual == "lowpass":
        spectrum[..., band.start:] = 0
        spectrum[..., :(n + 1) // 2] = 0
    if is_complex:
        return resample(spectrum, count, axis=-1, domain="freq")
    fewer = min(n, count)
    if count != n and fewer % 2 == 0:                              # of which there is no pair
        spectrum[..., fewer // 2] *= 2 if count < n else 0.5
    return count / n * np.fft.irfft(spectrum, n=count)
