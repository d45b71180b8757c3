"""`bw.scipy.signal`: filters, spectra, resampling and waveforms against SciPy, with their derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.signal
import scipy.signal as sig

import bwcompiler as bw
from bwcompiler import tree
from bwcompiler.errors import UnsupportedError
from tests.support.derivatives import check_derivatives
from tests.unit.frontend.comparing import run_traced

rng = np.random.default_rng(4)
X = rng.standard_normal(40)
XX = rng.standard_normal((3, 40))
Z = X + 1j * X[::-1]
T = np.linspace(0.05, 1.9, 9)
B, A = sig.butter(3, 0.25)
SOS = sig.butter(3, 0.25, output="sos")
FIR = sig.firwin(5, 0.3)
W = sig.get_window("hamming", 8)

# what is computed with the functions of a module `s` (ours or SciPy's), of these arguments
CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "lfilter_zi": (lambda s, b, a: (s.lfilter_zi(b, a), s.lfilter_zi(b, a[:1]), s.lfilter_zi(a[:2], 2 * a)), (B, A)),
    "lfiltic": (lambda s, b, a, x: (s.lfiltic(b, a, x[:3], x[3:5]), s.lfiltic(b, a[:1], x[:1], x[:4]), s.lfiltic(b[:2], a, x[:2])), (B, A, X)),
    "sosfilt": (lambda s, c, x: (s.sosfilt(c, x), s.sosfilt(c, x.T, 0)), (SOS, XX)),
    "sosfilt zi": (lambda s, c, x: s.sosfilt(c, x, zi=s.sosfilt_zi(c) * x[0]), (SOS, X)),
    "sosfilt zi of rows": (lambda s, c, x, z: s.sosfilt(c, x, 1, z), (SOS, XX, rng.standard_normal((2, 3, 2)))),
    "sosfilt_zi": (lambda s, c: s.sosfilt_zi(c), (sig.butter(5, 0.2, output="sos"),)),
    "filtfilt": (lambda s, b, a, x: (s.filtfilt(b, a, x), s.filtfilt(b, a, x.T, 0, "even"), s.filtfilt(b, a, x, padtype="constant", padlen=3),
                                     s.filtfilt(b, a, x, padtype=None), s.filtfilt(b[:2], a[:1], x, padlen=0)), (B, A, XX)),
    "sosfiltfilt": (lambda s, x: (s.sosfiltfilt(SOS, x), s.sosfiltfilt(SOS, x.T, 0, "constant", 5)), (XX,)),
    "deconvolve": (lambda s, x, d: (s.deconvolve(x, d), s.deconvolve(d, x)[1]), (X[:6], np.array([2.0, 0.5, -1.0]))),
    "medfilt": (lambda s, x: (s.medfilt(x), s.medfilt(x[0], 5), s.medfilt2d(x), s.medfilt2d(x, [1, 3])), (XX[:, :7],)),
    "order_filter": (lambda s, x: s.order_filter(x, np.array([[0, 1, 0], [1, 1, 1], [0, 1, 0]]), 1), (XX[:, :7],)),
    "wiener": (lambda s, x: (s.wiener(x), s.wiener(x, 5), s.wiener(x, (3, 5), 0.3)), (XX[:, :7],)),
    "hilbert": (lambda s, x: (s.hilbert(x), s.hilbert(x, 7), s.hilbert(x.T, 50, 0)), (XX,)),
    "hilbert2": (lambda s, x: (s.hilbert2(x), s.hilbert2(x.T, 4), s.hilbert2(x, (3, 5), (1, 0))), (XX[:, :6],)),
    "resample": (lambda s, x: [s.resample(x, n) for n in (3, 10, 20, 39, 40, 41, 64)], (X,)),
    "resample odd": (lambda s, x: [s.resample(x, n, axis=1) for n in (4, 5, 7, 8, 12)], (XX[:, :7],)),
    "resample complex": (lambda s, x: [s.resample(x, n) for n in (10, 11, 40, 60)] + [s.resample(x[:7], n, domain="freq") for n in (4, 5, 9)], (Z,)),
    "resample with windows": (lambda s, x: (s.resample(x, 30, window="hamming"), s.resample(x, 60, window=("kaiser", 2.0)),
                                            s.resample(x, 30, window=lambda f: 1 - f**2), s.resample(x + 0j, 30, window=np.arange(40.0)),
                                            s.resample(x, 20, np.arange(40.0))), (X,)),
    "upfirdn": (lambda s, h, x: [s.upfirdn(h, x, up, down) for up, down in ((1, 1), (2, 1), (1, 3), (3, 2), (7, 4))], (FIR, X)),
    "upfirdn at the ends": (lambda s, h, x: [s.upfirdn(h, x, 2, 1, 1, mode) for mode in (
        "wrap", "edge", "symmetric", "reflect", "antireflect", "line", "smooth", "antisymmetric")], (FIR, XX[:, :6])),
    "upfirdn beyond": (lambda s, h, x: s.upfirdn(h, x.T, 3, 2, 0, cval=2.0), (FIR, XX[:, :6])),
    "resample_poly": (lambda s, x: (s.resample_poly(x, 3, 2), s.resample_poly(x, 2, 5), s.resample_poly(x, 4, 4), s.resample_poly(x, 1, 2)), (X,)),
    "resample_poly of rows": (lambda s, x, h: (s.resample_poly(x, 3, 2, 1, h), s.resample_poly(x, 2, 1, 1, "hann", "line"),
                                               s.resample_poly(x, 2, 1, 1, padtype="mean"), s.resample_poly(x, 1, 2, 1, padtype="median"),
                                               s.resample_poly(x, 1, 2, 1, padtype="maximum"), s.resample_poly(x, 2, 1, 1, cval=1.5)), (XX, FIR)),
    "decimate": (lambda s, x: (s.decimate(x, 2), s.decimate(x, 3, 4), s.decimate(x, 2, zero_phase=False), s.decimate(x, 2, ftype="fir"),
                               s.decimate(x, 2, 6, "fir", zero_phase=False), s.decimate(x.T, 4, axis=0)), (XX,)),
    "welch": (lambda s, x: (s.welch(x, nperseg=16), s.welch(x, 10.0, W, noverlap=3, nfft=11), s.welch(x.T, axis=0, nperseg=9, detrend=False),
                            s.welch(x, nperseg=8, detrend="linear", scaling="spectrum", average="median")), (XX,)),
    "welch of complex numbers": (lambda s, x: (s.welch(x, nperseg=8), s.welch(x.real, nperseg=8, return_onesided=False)), (Z,)),
    "welch with a window": (lambda s, x, w: s.welch(x, window=w), (X, W)),
    "csd": (lambda s, x, y: (s.csd(x, y, nperseg=16), s.csd(x, y[:, :30], nperseg=8, average="median"), s.csd(x, x[0] * 2, 3.0, nperseg=10)),
            (XX, rng.standard_normal((3, 40)))),
    "coherence": (lambda s, x, y: s.coherence(x, y, nperseg=10), (X, XX[1])),
    "periodogram": (lambda s, x: (s.periodogram(x), s.periodogram(x, 5.0, "hann", 32), s.periodogram(x, window=None, nfft=64, scaling="spectrum"),
                                  s.periodogram(x.T, axis=0, detrend="linear")), (XX,)),
    "stft": (lambda s, x: (s.stft(x, nperseg=16), s.stft(x, 2.0, "hamming", 9, 4, 12, "constant"), s.stft(x.T, nperseg=8, axis=0),
                           s.stft(x, nperseg=8, boundary="even", padded=False), s.stft(x, nperseg=8, boundary="odd", scaling="psd"),
                           s.stft(x, nperseg=8, boundary="constant"), s.stft(x, nperseg=8, boundary=None), s.stft(x + 0j, nperseg=8,
                                                                                                                  return_onesided=False)), (XX,)),
    "istft": (lambda s, x: (s.istft(x), s.istft(x, 2.0, boundary=False, scaling="psd"), s.istft(x[:, :1], nperseg=8, nfft=12, window="boxcar"),
                            s.istft(x[:, 0].T, time_axis=0, freq_axis=1), s.istft(x[0], input_onesided=False, noverlap=3, nperseg=7)),
              (rng.standard_normal((2, 3, 7, 5)) + 1j,)),
    "spectrogram": (lambda s, x: [s.spectrogram(x, nperseg=16, mode=mode) for mode in ("psd", "complex", "magnitude", "angle")]
                    + [s.spectrogram(x.T, 2.0, "hann", 8, 2, axis=0)], (XX,)),
    "spectrogram phase": (lambda s, x: s.spectrogram(x, nperseg=16, mode="phase"), (X,)),
    "chirp": (lambda s, t, f: [s.chirp(t, f, 1.5, 3.0 * f, method, 30.0, zero) for method in ("linear", "quadratic", "logarithmic", "hyperbolic")
                               for zero in (True, False)], (T, 2.0)),
    "chirp of one frequency": (lambda s, t: [s.chirp(t, 2.0, 1.0, 2.0, method) for method in ("log", "hyp", "lin")], (T,)),
    "sawtooth": (lambda s, t, w: (s.sawtooth(t), s.sawtooth(7 * t, w), s.sawtooth(t, 0)), (T, 0.3)),
    "square": (lambda s, t: (s.square(5 * t), s.square(5 * t, 0.2), s.square(t, -1), s.sawtooth(t, np.full(9, 1.5))), (T,)),
    "gausspulse": (lambda s, t: (s.gausspulse(t, 5), s.gausspulse(t, 5, 0.4, retquad=True), s.gausspulse(t, 5, retquad=True, retenv=True)), (T,)),
    "vectorstrength": (lambda s, t, p: (s.vectorstrength(t, p), s.vectorstrength(t, np.array([0.2, 0.5]) * p)), (T, 0.7)),
    "freqz": (lambda s, b, a: (s.freqz(b, a, 5), s.freqz(b, worN=4, whole=True), s.freqz(b, a, np.array([0.1, 2.0]), fs=10.0),
                               s.freqz(b, a, 4, include_nyquist=True)), (B, A)),
    "sosfreqz": (lambda s, c: (s.sosfreqz(c, 5), s.sosfreqz(c, np.array([0.3]), fs=3.0)), (SOS,)),
    "freqs": (lambda s, b, a: s.freqs(b, a, T), (B, A)),
    "group_delay": (lambda s, b, a: (s.group_delay((b, a), 5), s.group_delay((b[:3], a[:1]), T)), (B, A)),
    "sos2tf": (lambda s, c: s.sos2tf(c), (SOS,)),
    "zeros and poles": (lambda s, b, a, z, p: (s.normalize(b, a), s.tf2zpk(b, a), s.zpk2tf(z, p, 2.0), s.zpk2tf(z[:0], p, b[0])),
                        (np.array([2.0, 0.3, 0.7]), np.array([1.5, -0.5, 0.8]), np.array([-1.0, 0.5]), np.array([0.5, 0.2, -0.3]))),
    "sos2zpk": (lambda s, c: s.sos2zpk(c), (np.array([[1.0, 0.3, 0.9, 1.5, -0.5, 0.4], [2.0, 0.1, 0.4, 1.0, 0.3, 0.2]]),)),
    "bilinear": (lambda s, b, a, z, p: (s.bilinear(b[:2], a, 2.0), s.bilinear(b, a[:2]), s.bilinear_zpk(z, p, 2.0, 3.0)),
                 (np.array([1.0, 0.3, 0.5]), np.array([1.5, 0.5, 0.2]), np.array([-1.0]), np.array([-0.5, -0.2, -3.0]))),
    "freqz_zpk": (lambda s, z, p: (s.freqz_zpk(z, p, 2.0, 4), s.freqz_zpk(z, p, 2.0, np.array([0.1, 0.4]), fs=2.0), s.freqz_zpk(z, p, 1.0, 3, True)),
                  (np.array([-1.0]), np.array([0.5, 0.2]))),
    "splines": (lambda s, x, t: [(s.cspline1d(one), s.qspline1d(one)) for one in (x[:10], x[:3], x[:2], x[:1])]
                + [s.cspline1d_eval(x[:10], t, 0.7, 0.1), s.qspline1d_eval(x[:10], t, 0.7, 0.1), s.cspline1d_eval(x[:2], t)],
                (X, np.array([-3.3, -0.2, 0.05, 0.41, 1.07, 2.72, 9.13, 14.2]))),
    "envelope": (lambda s, x: [s.envelope(x, band, n_out=n, residual=rest, squared=n == 6) for band in ((1, None), (None, None), (2, 4), (-3, -1))
                               for n in (None, 6, 13) for rest in ("lowpass", "all")] + [s.envelope(x.T, axis=0, residual=None)], (XX[:2, :8],)),
    "envelope of complex numbers": (lambda s, x: [s.envelope(x, band, n_out=n) for band in ((0, 3), (-2, 2)) for n in (None, 6, 13)], (Z[:9],)),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", CASES)
def test_as_scipy(name: str) -> None:
    fun, args = CASES[name]
    with np.errstate(all="ignore"):
        expected, found = fun(scipy.signal, *args), run_traced(lambda *args: fun(bw.scipy.signal, *args), *args)[0]
    for one, other in zip(tree.leaves(found), tree.leaves(expected), strict=True):
        assert one.shape == np.shape(other)
        assert one.dtype == np.asarray(other).dtype
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-11)


SHORTER: dict[str, Callable[..., Any]] = {
    "filtfilt": lambda s, b, a, x: s.filtfilt(b, a, x[:2, :12], padlen=4),
    "decimate": lambda s, x: s.decimate(x[0], 2, 2),
    "envelope": lambda s, x: s.envelope(x[0], (1, 3), n_out=6, squared=True),
}
TWICE = ("lfilter_zi", "sosfilt zi", "deconvolve", "wiener", "welch with a window", "coherence", "chirp", "vectorstrength", "freqz", "group_delay", "zeros and poles",
         "bilinear", "envelope")


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", [name for name in CASES if name not in ("order_filter", "square")])
def test_derivatives(name: str) -> None:
    fun, args = CASES[name]
    if any(np.iscomplexobj(arg) for arg in args):
        fun, args = (lambda s, *parts: CASES[name][0](s, *[part * (1 + 0.5j) for part in parts])), tuple([arg.real for arg in args])
    if name in SHORTER:
        fun = SHORTER[name]

    def real(*args: Any) -> Any:
        leaves = [leaf for leaf in tree.leaves(fun(bw.scipy.signal, *args)) if isinstance(leaf, bw.frontend.tracing.tracer.Tracer)]
        return [part for leaf in leaves for part in ((leaf.real, leaf.imag) if np.iscomplexobj(leaf) else (leaf,))]

    check_derivatives(real, *args, order=2 if name in TWICE else 1, tolerance=3e-6)


SINGLE = {
    "sosfilt": (lambda s, x: s.sosfilt(SOS.astype(np.float32), x)), "filtfilt": lambda s, x: s.filtfilt(FIR.astype(np.float32), np.float32([1]), x),
    "hilbert": lambda s, x: s.hilbert(x), "resample": lambda s, x: s.resample(x, 30), "resample_poly": lambda s, x: s.resample_poly(x, 3, 2),
    "upfirdn": lambda s, x: s.upfirdn(FIR.astype(np.float32), x, 2), "welch": lambda s, x: s.welch(x, nperseg=8)[1],
    "stft": lambda s, x: s.stft(x, nperseg=8)[2], "medfilt": lambda s, x: s.medfilt(x), "decimate": lambda s, x: s.decimate(x, 2),
}


@pytest.mark.parametrize("name", SINGLE)
def test_single_precision(name: str) -> None:
    x = X.astype(np.float32)
    found, expected = run_traced(lambda x: SINGLE[name](bw.scipy.signal, x), x)[0], SINGLE[name](scipy.signal, x)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_scipys_own_functions_in_compiled_programs() -> None:
    def power(x: Any) -> Any:
        smooth = scipy.signal.sosfiltfilt(scipy.signal.butter(3, 0.25, output="sos"), x)
        return scipy.signal.welch(smooth, nperseg=16)[1].sum() + abs(scipy.signal.hilbert(x)).sum()

    value, slope = bw.value_and_grad(power)(X)
    assert value == pytest.approx(power(X), rel=1e-12)
    h = 1e-6 * np.cos(np.arange(40))
    assert slope @ h == pytest.approx((power(X + h) - power(X - h)) / 2, rel=1e-6)


def test_refusals() -> None:
    with pytest.raises(UnsupportedError, match="gust"):
        bw.jit(lambda x: scipy.signal.filtfilt(B, A, x, method="gust"))(X)
    with pytest.raises(UnsupportedError, match="mask"):
        bw.jit(lambda x: scipy.signal.find_peaks(x)[0])(X)
    with pytest.raises(UnsupportedError, match="padlen"):
        bw.jit(lambda c: scipy.signal.sosfiltfilt(c, X))(SOS)
    with pytest.raises(UnsupportedError, match="trend"):
        bw.jit(lambda x: scipy.signal.welch(x, nperseg=8, detrend=lambda x: x))(X)
    with pytest.raises(UnsupportedError, match="frequencies"):
        bw.jit(lambda b: scipy.signal.freqs(b, A)[1])(B)
    for wrong in (lambda s: s.filtfilt(B, A, X[:5]), lambda s: s.sosfilt(SOS[:, :5], X), lambda s: s.welch(X, nperseg=8, noverlap=8),
                  lambda s: s.stft(X, nperseg=8, boundary="none"), lambda s: s.hilbert(Z), lambda s: s.upfirdn(FIR, X, 0),
                  lambda s: s.chirp(T, 1.0, 1.0, 2.0, "cubic"), lambda s: s.resample(X, 5, domain="space"), lambda s: s.deconvolve(XX, X)):
        for module in (bw.scipy.signal, scipy.signal):
            with pytest.raises(ValueError):
                wrong(module)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.complex64])
def test_responses_have_the_precision_of_the_coefficients(dtype: Any) -> None:
    b = np.array([1, 2, 3, 4], dtype)
    for call in (lambda s, b: s.freqz(b, worN=8), lambda s, b: s.freqz(b, worN=2), lambda s, b: s.freqz(b, b + 1, 8),
                 lambda s, b: s.freqz(b, b, np.array([0.1, 0.2])), lambda s, b: s.freqz(b, [2.0], 5, whole=True),
                 lambda s, b: s.freqz(b, 1, 3, include_nyquist=True), lambda s, b: s.chirp(b.real, 1, 2, 3)):
        expected = call(scipy.signal, b)
        for found, wanted in zip(np.atleast_1d(bw.jit(lambda b, c=call: c(bw.scipy.signal, b))(b)), np.atleast_1d(expected), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
            assert found.dtype == wanted.dtype or (dtype == np.complex64 and wanted.dtype == np.complex128 and found.dtype == np.float64)
