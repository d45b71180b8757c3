"""Deconvolution by Fourier transforms."""

import numpy as np

def gaussian_psf(shape, sx, sy, theta):
    ny, nx = shape
    y = np.fft.fftfreq(ny) * ny
    x = np.fft.fftfreq(nx) * nx
    X, Y = np.meshgrid(x, y)
    c, s = np.cos(theta), np.sin(theta)
    u, v = c * X + s * Y, -s * X + c * Y
    k = np.exp(-0.5 * ((u / sx) ** 2 + (v / sy) ** 2))
    return k / k.sum()

def convolve(a, H):
    return np.fft.irfft2(np.fft.rfft2(a) * H, s=a.shape)

def richardson_lucy(data, psf, iters, bg):
    H = np.fft.rfft2(psf)
    x = np.full_like(data, data.mean())
    for _ in range(iters):
        model = convolve(x, H) + bg
        ratio = data / np.maximum(model, 1e-6)
        x = x * convolve(ratio, H.conj())
    return x

def wiener(data, psf, snr):
    H = np.fft.fft2(psf)
    G = np.conj(H) / (np.abs(H) ** 2 + 1 / snr)
    return np.fft.ifft2(np.fft.fft2(data) * G).real

def radial_profile(img, nbins):
    ny, nx = img.shape
    y, x = np.indices(img.shape)
    r = np.hypot(y - ny / 2, x - nx / 2)
    b = np.minimum((r / r.max() * nbins).astype(int), nbins - 1).ravel()
    return np.bincount(b, weights=img.ravel(), minlength=nbins) / np.bincount(b, minlength=nbins)

def loss(p, bg, data, truth, iters=10, method="rl"):
    psf = gaussian_psf(data.shape, p[0], p[1], p[2])
    if method == "rl":
        est = richardson_lucy(data, psf, iters, bg)
    else:
        est = wiener(data - bg, psf, np.exp(p[3]))
    d = radial_profile(est, 10) - radial_profile(truth, 10)
    return np.mean((est - truth) ** 2) / np.var(truth) + np.sum(d ** 2)

def make(k):
    rng = np.random.default_rng(k)
    n = [64, 128][k]
    t = rng.random((n, n)) ** 8
    d = convolve(t, np.fft.rfft2(gaussian_psf((n, n), 1.5, 2.0, 0.3))) + 0.1
    return (np.array([1.4, 2.1, 0.2, 3.0]), 0.1, d + 0.01 * rng.random((n, n)), t, 10, ["rl", "wiener"][k]), 2
