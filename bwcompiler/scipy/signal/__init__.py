"""Functions named as in scipy.signal that work on traced and on plain arrays.

Designs of filters and windows (butter, firwin, get_window ...) are scipy.signal's own: their numbers are known while tracing.
"""

from typing import TYPE_CHECKING

from bwcompiler.scipy.missing import says_instead
from bwcompiler.scipy.refusals import refused
from bwcompiler.scipy.signal.chirp_transforms import czt, zoom_fft
from bwcompiler.scipy.signal.convolutions import convolve, convolve2d, correlate, correlate2d, fftconvolve, oaconvolve
from bwcompiler.scipy.signal.extrema import argrelextrema, argrelmax, argrelmin
from bwcompiler.scipy.signal.filter_forms import bilinear, bilinear_zpk, freqz_zpk, normalize, sos2zpk, tf2zpk, zpk2tf
from bwcompiler.scipy.signal.filters import (
    deconvolve,
    filtfilt,
    lfilter,
    lfilter_zi,
    lfiltic,
    sosfilt,
    sosfilt_zi,
    sosfiltfilt,
)
from bwcompiler.scipy.signal.resampling import decimate, envelope, hilbert, hilbert2, resample, resample_poly, upfirdn
from bwcompiler.scipy.signal.smoothing import (
    detrend,
    medfilt,
    medfilt2d,
    order_filter,
    savgol_coeffs,
    savgol_filter,
    wiener,
)
from bwcompiler.scipy.signal.spectra import coherence, csd, istft, lombscargle, periodogram, spectrogram, stft, welch
from bwcompiler.scipy.signal.splines import cspline1d, cspline1d_eval, qspline1d, qspline1d_eval
from bwcompiler.scipy.signal.waveforms import (
    chirp,
    freqs,
    freqz,
    freqz_sos,
    gausspulse,
    group_delay,
    sawtooth,
    sos2tf,
    sosfreqz,
    square,
    vectorstrength,
)

_MASK = ("scipy.signal.argrelmax, or a mask, such as (x[1:-1] > x[:-2]) & (x[1:-1] > x[2:]), with np.where or sums over it; or the "
         "peaks outside of the function, given to it as integers")
find_peaks, find_peaks_cwt = (
    refused(f"signal.{name}", "how many there are is not known while tracing", _MASK) for name in ("find_peaks", "find_peaks_cwt"))

__all__ = [
    "argrelextrema", "argrelmax", "argrelmin", "bilinear", "bilinear_zpk", "chirp", "coherence", "convolve", "convolve2d",
    "correlate", "correlate2d", "csd", "cspline1d", "cspline1d_eval", "czt", "decimate", "deconvolve", "detrend", "envelope",
    "fftconvolve", "filtfilt", "find_peaks", "find_peaks_cwt", "freqs", "freqz", "freqz_sos", "freqz_zpk", "gausspulse",
    "group_delay", "hilbert", "hilbert2", "istft", "lfilter", "lfilter_zi", "lfiltic", "lombscargle", "medfilt", "medfilt2d",
    "normalize", "oaconvolve", "order_filter", "periodogram", "qspline1d", "qspline1d_eval", "resample", "resample_poly",
    "savgol_coeffs", "savgol_filter", "sawtooth", "sos2tf", "sos2zpk", "sosfilt", "sosfilt_zi", "sosfiltfilt", "sosfreqz",
    "spectrogram", "square", "stft", "tf2zpk", "upfirdn", "vectorstrength", "welch", "wiener", "zoom_fft", "zpk2tf",
]

if not TYPE_CHECKING:
    __getattr__ = says_instead("signal", __all__)
