"""Of `bw.scipy.signal`: the z-transform on a spiral, and spectra between two frequencies, by Bluestein's algorithm."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bwcompiler.api.inside.eager import graph_function
from bwcompiler.errors import UnsupportedError
from bwcompiler.frontend.numpy.axes import normalize_axis
from bwcompiler.frontend.tracing.operands import number_value
from bwcompiler.frontend.tracing.tracer import fresh
from bwcompiler.scipy.fft import next_fast_len


def _points(name: str, m: Any, n: int) -> int:
    count = n if m is None else m
    if not isinstance(count, int | np.integer):
        raise UnsupportedError(f"{name}: the number of points must be an integer that is known while tracing")
    if n < 1 or count < 1:
        raise ValueError(f"Invalid number of CZT data points ({n if n < 1 else count}) specified.")
    return int(count)


def _bluestein(x: Any, before: Any, chirp: Any, m: int, axis: int) -> Any:
    """Σ x[n] before[n] chirp[k - n]⁻¹ chirp[k]: a convolution with the chirp, by Fourier transforms."""
    place = normalize_axis(axis, x.ndim)
    lines = np.moveaxis(x, place, -1)
    n = lines.shape[-1]
    size = next_fast_len(n + m - 1)
    kernel = np.fft.fft(1 / np.concatenate([chirp[n - 1:0:-1], chirp[:m]]), size)
    found = np.fft.ifft(kernel * np.fft.fft(lines * before, size))[..., n - 1:n + m - 1] * chirp[:m]
    return np.moveaxis(found, -1, place)


@graph_function
def czt(x: Any, m: int | None = None, w: Any = None, a: Any = 1 + 0j, *, axis: int = -1) -> Any:
    """The z-transform at the m points a wᵏ⁻¹ ..., Σ x[n] a⁻ⁿ wⁿᵏ, as scipy.signal.czt; w is exp(-2πi/m) by default: the Fourier transform.

    >>> import numpy as np, bwcompiler as bw
    >>> np.abs(bw.scipy.signal.czt(np.array([1.0, 2.0, 3.0, 4.0]))).round(4).tolist()
    [10.0, 2.8284, 2.0, 2.8284]
    """
    given: Any = fresh(number_value(x))
    n = given.shape[normalize_axis(axis, given.ndim)]
    count = _points("czt", m, n)
    k = np.arange(max(count, n))
    chirp = np.exp(-(1j * math.pi / count) * (k * k % (2 * count))) if w is None else w ** (k * k / 2.0)
    return _bluestein(given, a ** -k[:n].astype(float) * chirp[:n], chirp, count, axis)


@graph_function
def zoom_fft(x: Any, fn: Any, m: int | None = None, *, fs: Any = 2, endpoint: bool = False, axis: int = -1) -> Any:
    """The Fourier transform at m frequencies from fn[0] to fn[1] (or from 0 to fn), as scipy.signal.zoom_fft; fs is the sampling rate.

    >>> import numpy as np, bwcompiler as bw
    >>> np.abs(bw.scipy.signal.zoom_fft(np.array([1.0, 2.0, 3.0, 4.0]), 2.0)).round(4).tolist()
    [10.0, 2.8284, 2.0, 2.8284]
    """
    given: Any = fresh(number_value(x))
    low, high = (0.0, fn) if np.ndim(fn) == 0 else (fn[0], fn[1])
    n = given.shape[normalize_axis(axis, given.ndim)]
    count = _points("zoom_fft", m, n)
    k = np.arange(max(count, n))
    scale = (high - low) * count / (fs * (count - 1)) if endpoint else (high - low) / fs
    chirp = np.exp(-(1j * math.pi / count) * (scale * k * k))
    return _bluestein(given, np.exp(-2j * math.pi * (low / fs) * k[:n]) * chirp[:n], chirp, count, axis)
