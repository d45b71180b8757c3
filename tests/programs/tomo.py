"""Tomography: Siddon's rays through a grid of pixels, total variation, filtered projections."""

import numpy as np

def siddon(img, angles, offsets, n):
    out = np.zeros((len(angles), len(offsets)))
    ts = np.linspace(-1.4, 1.4, 2 * n)
    for a, th in enumerate(angles):
        c, s = np.cos(th), np.sin(th)
        for k, o in enumerate(offsets):
            x = (o * c - ts * s + 1) * (n - 1) / 2
            y = (o * s + ts * c + 1) * (n - 1) / 2
            ok = (x >= 0) & (x < n - 1) & (y >= 0) & (y < n - 1)
            xi, yi = x[ok].astype(int), y[ok].astype(int)
            fx, fy = x[ok] - xi, y[ok] - yi
            v = img[yi, xi] * (1 - fx) * (1 - fy) + img[yi, xi + 1] * fx * (1 - fy) + img[yi + 1, xi] * (1 - fx) * fy + img[yi + 1, xi + 1] * fx * fy
            out[a, k] = v.sum() * 2.8 / (2 * n)
    return out

def tv(img, eps):
    dx = img[:, 1:] - img[:, :-1]
    dy = img[1:] - img[:-1]
    return np.sqrt(dx[:-1] ** 2 + dy[:, :-1] ** 2 + eps).sum()

def ramp_filter(sino):
    n = sino.shape[1]
    f = np.abs(np.fft.fftfreq(n))
    return np.real(np.fft.ifft(np.fft.fft(sino, axis=1) * f, axis=1))

def loss(img, logbeta, angles, offsets, counts, I0=1e3):
    n = img.shape[0]
    p = siddon(img, angles, offsets, n)
    mean = I0 * np.exp(-p)
    nll = np.sum(mean - counts * np.log(mean))
    fb = ramp_filter(p)
    return nll / counts.size + np.exp(logbeta) * tv(img, 1e-4) + 1e-3 * np.sum(fb ** 2)

def make(k):
    rng = np.random.default_rng(k)
    n, na = [(24, 12), (40, 24)][k]
    offs = np.linspace(-0.9, 0.9, n)
    return (rng.random((n, n)), -3.0, np.linspace(0, np.pi, na, endpoint=False), offs, rng.poisson(500, (na, n)).astype(float)), 2
