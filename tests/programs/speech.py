"""Cepstra of speech: frames, mel bank, Levinson's recursion, time warping."""

import numpy as np

class SplitRadix:
    pass

def levinson(r, order):
    a = np.zeros(order + 1)
    a[0] = 1.0
    e = r[0]
    ks = []
    for i in range(1, order + 1):
        acc = r[i] + np.dot(a[1:i], r[i - 1:0:-1])
        k = -acc / e
        prev = a.copy()
        for j in range(1, i):
            a[j] = prev[j] + k * prev[i - j]
        a[i] = k
        e *= 1 - k * k
        ks.append(k)
    return a, e, ks

def mel_bank(nf, nfft, fs):
    mel = lambda f: 2595 * np.log10(1 + f / 700)
    inv = lambda m: 700 * (10 ** (m / 2595) - 1)
    pts = inv(np.linspace(mel(0.0), mel(fs / 2), nf + 2))
    bins = np.floor((nfft + 1) * pts / fs).astype(int)
    bank = np.zeros((nf, nfft // 2 + 1))
    for m in range(1, nf + 1):
        for k in range(bins[m - 1], bins[m]):
            bank[m - 1, k] = (k - bins[m - 1]) / (bins[m] - bins[m - 1])
        for k in range(bins[m], bins[m + 1]):
            bank[m - 1, k] = (bins[m + 1] - k) / (bins[m + 1] - bins[m])
    return bank

def frames(x, size, hop):
    n = 1 + (len(x) - size) // hop
    idx = np.arange(size)[None, :] + hop * np.arange(n)[:, None]
    return x[idx]

def dct2(x):
    n = x.shape[-1]
    k = np.arange(n)
    return x @ np.cos(np.pi / n * (k[:, None] + 0.5) * k[None, :])

def dtw(A, B, gamma):
    n, m = len(A), len(B)
    D = np.full((n + 1, m + 1), 1e6)
    D[0, 0] = 0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            c = np.sum((A[i - 1] - B[j - 1]) ** 2)
            a = np.array([D[i - 1, j], D[i, j - 1], D[i - 1, j - 1]])
            mn = a.min()
            D[i, j] = c + mn - gamma * np.log(np.sum(np.exp(-(a - mn) / gamma)))
    return D[n, m]

def loss(x, pre, gamma, template, fs=8000, size=256, hop=128, nf=16, ncep=10, order=8):
    y = np.append(x[0], x[1:] - pre * x[:-1])
    F = frames(y, size, hop) * np.hamming(size)
    P = np.abs(np.fft.rfft(F, axis=1)) ** 2 / size
    mfcc = dct2(np.log(P @ mel_bank(nf, size, fs).T + 1e-6))[:, :ncep]
    gain = 0.0
    for f in F:
        r = np.correlate(f, f, mode="full")[size - 1:size + order]
        a, e, ks = levinson(r, order)
        gain += np.log(e + 1e-9) - 0.01 * np.sum(np.arctanh(np.clip(ks, -0.999, 0.999)) ** 2)
    return dtw(mfcc, template, gamma) / len(mfcc) + 0.01 * gain

def make(k):
    rng = np.random.default_rng(k)
    n = [2048, 6000][k]
    return (np.sin(np.arange(n) * 0.1) + 0.3 * rng.standard_normal(n), 0.97, 0.5, rng.standard_normal((20, 10))), 3
