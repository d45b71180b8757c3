"""Spectra: windows of a signal, their trends removed, and Fourier transforms of them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from bwcompiler import lazy, ops
from bwcompiler.api.inside.eager import graph_function
from bwcompiler.errors import UnsupportedError
from bwcompiler.frontend.numpy.axes import normalize_axis
from bwcompiler.frontend.tracing.operands import is_traced, number_value, real_value, value_as
from bwcompiler.frontend.tracing.tracer import fresh
from bwcompiler.scipy.signal.filters import extended
from bwcompiler.scipy.signal.smoothing import detrend as without_trend

scipy_signal = lazy.module("scipy.signal")
BOUNDARIES = ("even", "odd", "constant", "zeros", None)


# ----- parts
def _window(window: Any, size: int | None, count: int) -> Any:
    """The window as an array, of 256 elements unless given, and not more than the signal has."""
    if size is not None and size < 1:
        raise ValueError(f"nperseg must be a positive integer, got {size}")
    if isinstance(window, str | tuple):
        size = 256 if size is None else size
        if size > count:
            warnings.warn(f"nperseg = {size} is greater than signal length = {count}, using nperseg = {count}", stacklevel=4)
        return scipy_signal.get_window(window, min(size, count))
    found = window if is_traced(window) else np.asarray(window)
    if found.ndim != 1:
        raise ValueError("window must be 1-D")
    if count < found.shape[0]:
        raise ValueError("window is longer than input signal")
    if size not in (None, found.shape[0]):
        raise ValueError("value specified for nperseg is different from length of window")
    return found


def _counts(size: int, noverlap: int | None, nfft: int | None) -> tuple[int, int]:
    """How many elements neighbouring windows share, half of them unless given, and how many a transform has."""
    shared = size // 2 if noverlap is None else int(noverlap)
    if shared >= size:
        raise ValueError("noverlap must be less than nperseg.")
    count = size if nfft is None else int(nfft)
    if count < size:
        raise ValueError("nfft must be greater than or equal to nperseg.")
    return shared, count


def _segments(lines: Any, size: int, shared: int, trend: Any) -> Any:
    """(..., segment, element) of the signals along the last axis, without their trends."""
    if callable(trend):
        raise UnsupportedError("spectra of traced values: detrend= is 'constant', 'linear' or False\n"
                               "  hint: remove the trend from the signal before, with scipy.signal.detrend or by a function of your own")
    cut: Any = fresh(ops.windows(value_as(lines), sizes=(size,), strides=(size - shared,), low=(0,), high=(0,), dilations=(1,)))
    return without_trend(cut, -1, trend) if trend else cut


def _transformed(segments: Any, window: Any, count: int, onesided: bool) -> Any:
    weighted = segments * window
    return np.fft.rfft(weighted, count) if onesided else np.fft.fft(weighted, count)


def _scale(window: Any, fs: float, scaling: str) -> Any:
    if scaling not in ("density", "spectrum"):
        raise ValueError(f"Unknown scaling: {scaling!r}")
    return 1.0 / (fs * (abs(window) ** 2).sum()) if scaling == "density" else 1.0 / abs(window.sum()) ** 2


def _frequencies(count: int, fs: float, onesided: bool) -> Any:
    return np.fft.rfftfreq(count, 1 / fs) if onesided else np.fft.fftfreq(count, 1 / fs)


def _one_sided(power: Any, count: int) -> Any:
    """Twice the power, but of frequency 0, and of the highest one where it is its own mirror image."""
    factor = np.full(power.shape[-1], 2.0)
    factor[0] = 1.0
    if count % 2 == 0:
        factor[-1] = 1.0
    return power * factor


def _lines(x: Any, axis: int) -> tuple[Any, int]:
    signal: Any = fresh(number_value(x))
    place = normalize_axis(axis, signal.ndim)
    return np.moveaxis(signal, place, -1), place


def _single(*arrays: Any) -> bool:
    return np.result_type(*arrays, np.complex64) == np.complex64


def _of_precision(found: Any, single: bool) -> Any:
    if not single:
        return found
    return found.astype(np.complex64 if np.iscomplexobj(found) else np.float32)


# ----- densities
def _cross_density(x: Any, y: Any, options: dict[str, Any]) -> tuple[Any, Any]:
    axis, average = options["axis"], options["average"]
    one, place = _lines(x, axis)
    other = one if y is x else _lines(y, axis)[0]
    if y is not x:
        np.broadcast_shapes(one.shape[:-1], other.shape[:-1])
        count = max(one.shape[-1], other.shape[-1])
        one, other = (np.pad(part, [*[(0, 0)] * (part.ndim - 1), (0, count - part.shape[-1])]) for part in (one, other))
    window = _window(options["window"], options["nperseg"], one.shape[-1])
    size = window.shape[0]
    shared, count = _counts(size, options["noverlap"], options["nfft"])
    onesided = options["return_onesided"] and not np.iscomplexobj(one) and not np.iscomplexobj(other)
    scale = _scale(window, options["fs"], options["scaling"])
    left = _transformed(_segments(one, size, shared, options["detrend"]), window, count, onesided)
    if y is x:
        power = left.real ** 2 + left.imag ** 2
    else:
        power = np.conj(left) * _transformed(_segments(other, size, shared, options["detrend"]), window, count, onesided)
    power = _one_sided(power, count) if onesided else power
    if average not in ("mean", "median"):
        raise ValueError(f"average must be 'median' or 'mean', got {average!r}")
    number = power.shape[-2]
    if average == "median" and number > 1:
        steps = 2.0 * np.arange(1, (number - 1) // 2 + 1)
        bias = 1 + np.sum(1 / (steps + 1) - 1 / steps)
        if np.iscomplexobj(power):
            found = np.median(power.real, -2) + 1j * np.median(power.imag, -2)
        else:
            found = np.median(power, -2)
        found = found / bias
    else:
        found = power.mean(-2)
    return _frequencies(count, options["fs"], onesided), np.moveaxis(_of_precision(found * scale, _single(one, other)), -1, place)


@graph_function
def csd(x: Any, y: Any, fs: float = 1.0, window: Any = "hann", nperseg: int | None = None, noverlap: int | None = None,
        nfft: int | None = None, detrend: Any = "constant", return_onesided: bool = True, scaling: str = "density", axis: int = -1,
        average: str = "mean") -> Any:
    """(frequencies, cross power spectral density) by Welch's method: the mean, or median, of conj(X) Y over overlapping windows.

    Arguments as SciPy's; detrend= does not take functions.  Of a shorter signal the rest is zeros.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.signal.csd(np.arange(8.0), np.arange(8.0) ** 2, nperseg=4)[0].tolist()
    [0.0, 0.25, 0.5]
    """
    return _cross_density(x, y, {"fs": fs, "window": window, "nperseg": nperseg, "noverlap": noverlap, "nfft": nfft, "detrend": detrend,
                                 "return_onesided": return_onesided, "scaling": scaling, "axis": axis, "average": average})


@graph_function
def welch(x: Any, fs: float = 1.0, window: Any = "hann", nperseg: int | None = None, noverlap: int | None = None, nfft: int | None = None,
          detrend: Any = "constant", return_onesided: bool = True, scaling: str = "density", axis: int = -1, average: str = "mean") -> Any:
    """(frequencies, power spectral density) by Welch's method: the mean, or median, of periodograms of overlapping windows.

    Arguments as SciPy's; detrend= does not take functions.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.signal.welch(np.array([1.0, -1.0] * 8), nperseg=4, detrend=False, scaling="spectrum")[1].round(3).tolist()
    [0.0, 0.5, 1.0]
    """
    return _cross_density(x, x, {"fs": fs, "window": window, "nperseg": nperseg, "noverlap": noverlap, "nfft": nfft, "detrend": detrend,
                                 "return_onesided": return_onesided, "scaling": scaling, "axis": axis, "average": average})


@graph_function
def periodogram(x: Any, fs: float = 1.0, window: Any = "boxcar", nfft: int | None = None, detrend: Any = "constant",
                return_onesided: bool = True, scaling: str = "density", axis: int = -1) -> Any:
    """(frequencies, power spectral density) of the whole signal: the square of its Fourier transform.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.signal.periodogram(np.array([1.0, -1.0, 1.0, -1.0]))[1].tolist()
    [0.0, 0.0, 4.0]
    """
    lines, place = _lines(x, axis)
    if nfft is not None and nfft < lines.shape[-1]:
        lines, nfft = lines[..., :nfft], None
    size = lines.shape[-1]
    window = "boxcar" if window is None else window
    if hasattr(window, "shape") and window.shape != (size,):
        raise ValueError("the size of the window must be the same size of the input on the specified axis")
    frequencies, power = welch(lines, fs, window, size, 0, nfft, detrend, return_onesided, scaling)
    return frequencies, np.moveaxis(power, -1, place)


@graph_function
def coherence(x: Any, y: Any, fs: float = 1.0, window: Any = "hann", nperseg: int | None = None, noverlap: int | None = None,
              nfft: int | None = None, detrend: Any = "constant", axis: int = -1) -> Any:
    """(frequencies, magnitude squared coherence): |Pxy|² / (Pxx Pyy), with the densities of `csd` and `welch`.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.signal.coherence(np.arange(8.0) ** 3, np.arange(8.0) ** 2, nperseg=8)[1].shape
    (5,)
    """
    options: Any = {"fs": fs, "window": window, "nperseg": nperseg, "noverlap": noverlap, "nfft": nfft, "detrend": detrend, "axis": axis}
    frequencies, of_x = welch(x, **options)
    mixed = csd(x, y, **options)[1]
    return frequencies, (mixed.real ** 2 + mixed.imag ** 2) / of_x / welch(y, **options)[1]


# ----- short-time transforms
def _short_time(x: Any, options: dict[str, Any], window: Any, boundary: str | None, padded: bool) -> tuple[Any, Any, Any, Any]:
    """Frequencies, times, transforms (..., segment, frequency) of the signal along the last axis, and whether these are one-sided."""
    fs, axis = options["fs"], options["axis"]
    lines, _ = _lines(x, axis)
    if boundary not in BOUNDARIES:
        raise ValueError(f"Unknown boundary option '{boundary}', must be one of: {list(BOUNDARIES)}")
    size = window.shape[0]
    shared, count = _counts(size, options["noverlap"], options["nfft"])
    onesided = options["return_onesided"] and not np.iscomplexobj(lines)
    half, step, margins = size // 2, size - shared, [(0, 0)] * (lines.ndim - 1)
    if boundary is not None:
        lines = np.pad(lines, [*margins, (half, half)]) if boundary == "zeros" else extended(lines, half, boundary)
    if padded:
        lines = np.pad(lines, [*margins, (0, (size - lines.shape[-1]) % step % size)])
    times = np.arange(size / 2, lines.shape[-1] - size / 2 + 1, step) / float(fs)
    times = times if boundary is None else times - (size / 2) / fs
    found = _transformed(_segments(lines, size, shared, options["detrend"]), window, count, onesided)
    return _frequencies(count, fs, onesided), times, found, onesided


def _placed(found: Any, axis: int) -> Any:
    """(..., segment, frequency) with the frequencies in the place of the axis, and the segments last."""
    return np.moveaxis(found, -1, axis - 1 if axis < 0 else axis)


@graph_function
def stft(x: Any, fs: float = 1.0, window: Any = "hann", nperseg: int | None = 256, noverlap: int | None = None, nfft: int | None = None,
         detrend: Any = False, return_onesided: bool = True, boundary: str | None = "zeros", padded: bool = True, axis: int = -1,
         scaling: str = "spectrum") -> Any:
    """(frequencies, times, transforms of overlapping windows); the frequencies are in the place of the axis, the times last.

    Arguments as SciPy's; detrend= does not take functions.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.signal.stft(np.arange(16.0), nperseg=8)[2].shape
    (5, 5)
    """
    if scaling not in ("psd", "spectrum"):
        raise ValueError(f"Parameter scaling={scaling!r} not in ['spectrum', 'psd']!")
    weights = _window(window, nperseg, np.shape(x)[axis])
    options = {"fs": fs, "noverlap": noverlap, "nfft": nfft, "detrend": detrend, "return_onesided": return_onesided, "axis": axis}
    frequencies, times, found, _ = _short_time(x, options, weights, boundary, padded)
    scale = np.sqrt(_scale(weights, fs, "density" if scaling == "psd" else scaling))
    return frequencies, times, _placed(_of_precision(found * scale, _single(fresh(number_value(x)))), axis)


@graph_function
def spectrogram(x: Any, fs: float = 1.0, window: Any = ("tukey", 0.25), nperseg: int | None = None, noverlap: int | None = None,
                nfft: int | None = None, detrend: Any = "constant", return_onesided: bool = True, scaling: str = "density", axis: int = -1,
                mode: str = "psd") -> Any:
    """(frequencies, times, power of windows), or with another mode their "complex" transforms, or "magnitude", "angle" or "phase" of these.

    Arguments as SciPy's; detrend= does not take functions.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.signal.spectrogram(np.arange(16.0), nperseg=8)[2].shape
    (5, 2)
    """
    modes = ("psd", "complex", "magnitude", "angle", "phase")
    if mode not in modes:
        raise ValueError(f"unknown value for mode {mode}, must be one of {list(modes)}")
    weights = _window(window, nperseg, np.shape(x)[axis])
    shared = weights.shape[0] // 8 if noverlap is None else noverlap
    options = {"fs": fs, "noverlap": shared, "nfft": nfft, "detrend": detrend, "return_onesided": return_onesided, "axis": axis}
    frequencies, times, found, onesided = _short_time(x, options, weights, None, False)
    scale = _scale(weights, fs, scaling)
    if mode == "psd":
        power = (found.real ** 2 + found.imag ** 2) * scale
        result = _one_sided(power, _counts(weights.shape[0], shared, nfft)[1]) if onesided else power
    else:
        result = found * np.sqrt(scale)
    result = _of_precision(result, _single(fresh(number_value(x))))
    if mode == "magnitude":
        result = abs(result)
    elif mode in ("angle", "phase"):
        result = np.angle(result)
        result = np.unwrap(result, axis=-1) if mode == "phase" else result
    return frequencies, times, _placed(result, axis)


@graph_function
def istft(Zxx: Any, fs: float = 1.0, window: Any = "hann", nperseg: int | None = None, noverlap: int | None = None,
          nfft: int | None = None, input_onesided: bool = True, boundary: bool = True, time_axis: int = -1, freq_axis: int = -2,
          scaling: str = "spectrum") -> Any:
    """(times, signal): the inverse of `stft`, by adding the windows up.

    Arguments as SciPy's.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.signal.istft(bw.scipy.signal.stft(np.arange(8.0), nperseg=4)[2])[1].round(6).tolist()
    [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]
    """
    if scaling not in ("psd", "spectrum"):
        raise ValueError(f"Parameter scaling={scaling!r} not in ['spectrum', 'psd']!")
    given: Any = fresh(number_value(Zxx))
    if given.ndim < 2:
        raise ValueError("Input stft must be at least 2d!")
    times_at, rows = (normalize_axis(axis, given.ndim) for axis in (time_axis, freq_axis))
    if times_at == rows:
        raise ValueError("Must specify differing time and frequency axes!")
    spectra = np.moveaxis(given, (times_at, rows), (-2, -1))                    # (..., segment, frequency)
    usual = 2 * (spectra.shape[-1] - 1) if input_onesided else spectra.shape[-1]
    size = usual if nperseg is None else int(nperseg)
    if size < 1:
        raise ValueError("nperseg must be a positive integer")
    shared, count = _counts(size, noverlap, nfft if nfft is not None or (input_onesided and size == usual + 1) else usual)
    named = isinstance(window, str | tuple)
    weights = scipy_signal.get_window(window, size) if named else window if is_traced(window) else np.asarray(window)
    if weights.ndim != 1:
        raise ValueError("window must be 1-D")
    if weights.shape[0] != size:
        raise ValueError(f"window must have length of {size}")
    parts = (np.fft.irfft(spectra, count) if input_onesided else np.fft.ifft(spectra, count))[..., :size]
    scale = weights.sum() if scaling == "spectrum" else np.sqrt(fs * (weights ** 2).sum())
    squares = np.broadcast_to(weights ** 2, parts.shape[-2:])
    signal, norm = _added(parts * (weights * scale), size - shared), _added(squares, size - shared)
    half = size // 2
    if boundary:
        signal, norm = (one[..., half:one.shape[-1] - half] for one in (signal, norm))
    found = _of_precision(signal / np.where(norm > 1e-10, norm, 1.0), _single(given))
    lead = times_at - (1 if rows < times_at else 0)
    found = np.moveaxis(found, -1, lead) if found.ndim > 1 else found
    return np.arange(found.shape[0]) / float(fs), found


def _added(parts: Any, step: int) -> Any:
    """The sum of segments (..., segment, element) that begin every `step` elements."""
    *lead, number, size = parts.shape
    length = size + (number - 1) * step
    return fresh(ops.windows_add(value_as(parts), shape=(*lead, length), sizes=(size,), strides=(step,), low=(0,), high=(0,),
                                 dilations=(1,)))


@graph_function
def lombscargle(x: Any, y: Any, freqs: Any, precenter: bool = False, normalize: bool | str = False, *, weights: Any = None,
                floating_mean: bool = False) -> Any:
    """The periodogram of samples y at any times x, at angular frequencies freqs, as scipy.signal.lombscargle.

    normalize   False or "power", True or "normalize" (of 0 to 1), "amplitude" (complex amplitudes).  weights of the samples; with
                floating_mean a mean is fitted too, with precenter it is taken away before.

    Raises ValueError for arrays that do not fit.

    >>> import numpy as np, bwcompiler as bw
    >>> times = np.array([0.0, 0.7, 1.1, 2.3, 3.4])
    >>> bw.scipy.signal.lombscargle(times, np.sin(2 * times), np.array([1.0, 2.0]), normalize=True).round(3).tolist()
    [0.198, 1.0]
    """
    kind = {True: "normalize", False: "power"}.get(normalize, normalize) if isinstance(normalize, bool) else normalize
    if kind not in ("power", "normalize", "amplitude"):
        raise ValueError("Normalize must be: False (or 'power'), True (or 'normalize'), or 'amplitude'.")
    times, values, angular = (fresh(real_value(one)) for one in (x, y, freqs))
    share: Any = np.ones(values.shape, values.dtype) if weights is None else fresh(real_value(weights))
    if times.ndim != 1 or not times.size or not times.shape == values.shape == share.shape:
        raise ValueError("Parameters x, y, weights must be 1-D arrays of equal non-zero length!")
    if angular.ndim != 1 or not angular.size:
        raise ValueError("Parameter freqs must be a 1-D array of non-zero length!")
    share = share / share.sum()
    if precenter:
        values = values - values.mean()

    def moments(cosine: Any, sine: Any) -> tuple[Any, Any, Any]:
        """Of cos², sin² and cos sin, about their means where a mean is fitted too."""
        cc, cs = share @ (cosine * cosine), share @ (cosine * sine)
        ss = 1.0 - cc
        if not floating_mean:
            return cc, ss, cs
        c, s = share @ cosine, share @ sine
        return cc - c * c, ss - s * s, cs - c * s

    phase = times[:, None] * angular
    cc, ss, cs = moments(np.cos(phase), np.sin(phase))
    tau = 0.5 * np.arctan2(2.0 * cs, cc - ss)                            # the phase from which cosine and sine are orthogonal
    cosine, sine = np.cos(phase - tau), np.sin(phase - tau)
    cc, ss, _ = moments(cosine, sine)
    weighed = share * (values - share @ values if floating_mean else values)
    yc, ys = weighed @ cosine, weighed @ sine
    least = float(np.finfo(values.dtype).epsneg)
    a, b = yc / np.where(cc < least, least, cc), ys / np.where(ss < least, least, ss)
    if kind == "amplitude":
        return (a + 1j * b) * np.exp(1j * tau)
    power: Any = 2.0 * (a * yc + b * ys)
    if kind == "power":
        return power * (times.shape[0] / 4.0)
    return power * (0.5 / (weighed @ values))
