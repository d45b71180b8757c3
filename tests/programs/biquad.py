"""Peaking filters and a compressor, over an audio signal, compared by spectra."""

import numpy as np
from scipy.signal import lfilter, sosfilt

def peaking(f0, gain_db, q, fs):
    A = 10 ** (gain_db / 40)
    w0 = 2 * np.pi * f0 / fs
    alpha = np.sin(w0) / (2 * q)
    b = np.array([1 + alpha * A, -2 * np.cos(w0), 1 - alpha * A])
    a = np.array([1 + alpha / A, -2 * np.cos(w0), 1 - alpha / A])
    return b / a[0], a / a[0]

def compressor(x, threshold, ratio, attack, release, fs):
    env = 0.0
    out = np.empty_like(x)
    ga, gr = np.exp(-1 / (fs * attack)), np.exp(-1 / (fs * release))
    for n in range(len(x)):
        level = abs(x[n])
        g = ga if level > env else gr
        env = g * env + (1 - g) * level
        db = 20 * np.log10(env + 1e-6)
        over = max(db - threshold, 0.0)
        out[n] = x[n] * 10 ** (-over * (1 - 1 / ratio) / 20)
    return out

def spectrum(x, size=512, hop=256):
    win = np.hanning(size)
    frames = [np.abs(np.fft.rfft(win * x[i:i + size])) ** 2 for i in range(0, len(x) - size + 1, hop)]
    return np.mean(frames, axis=0)

def loss(freqs, gains, qs, comp, x, target, fs=16000.0):
    y = x
    for f, g, q in zip(freqs, gains, qs):
        b, a = peaking(f, g, q, fs)
        y = lfilter(b, a, y)
    y = compressor(y, comp[0], comp[1], comp[2], comp[3], fs)
    d = np.log10(spectrum(y) + 1e-8) - target
    return np.mean(d ** 2)

def make(k):
    rng = np.random.default_rng(k)
    n = [4096, 16384][k]
    return (np.array([300.0, 1200.0, 4000.0]), np.array([3.0, -4.0, 2.0]), np.array([1.0, 0.7, 2.0]), np.array([-20.0, 4.0, 0.005, 0.05]), rng.standard_normal(n) * 0.3, rng.standard_normal(257) * 0.1), 4
