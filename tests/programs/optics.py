"""Reflectance of a stack of thin films by transfer matrices per wavelength (complex numbers)."""

import numpy as np

def layer_matrix(n, d, lam, theta, pol):
    k0 = 2 * np.pi / lam
    cos_t = np.sqrt(1 - (np.sin(theta) / n) ** 2 + 0j)
    delta = k0 * n * d * cos_t
    eta = n * cos_t if pol == "s" else n / cos_t
    m = np.empty(np.shape(lam) + (2, 2), dtype=complex)
    m[..., 0, 0] = np.cos(delta)
    m[..., 0, 1] = 1j * np.sin(delta) / eta
    m[..., 1, 0] = 1j * np.sin(delta) * eta
    m[..., 1, 1] = np.cos(delta)
    return m

def sellmeier(lam, coeffs):
    n2 = np.ones_like(lam)
    for b, c in coeffs:
        n2 = n2 + b * lam ** 2 / (lam ** 2 - c)
    return np.sqrt(n2)

def reflectance(ns, ds, lam, theta, n_sub, pol="s"):
    M = np.broadcast_to(np.eye(2, dtype=complex), lam.shape + (2, 2))
    for n, d in zip(ns, ds):
        M = M @ layer_matrix(n, d, lam, theta, pol)
    c0 = np.cos(theta)
    cs = np.sqrt(1 - (np.sin(theta) / n_sub) ** 2 + 0j)
    e0 = c0 if pol == "s" else 1 / c0
    es = n_sub * cs if pol == "s" else n_sub / cs
    BC = M @ np.stack([np.ones_like(es), es], axis=-1)[..., None]
    B, C = BC[..., 0, 0], BC[..., 1, 0]
    r = (e0 * B - C) / (e0 * B + C)
    return np.abs(r) ** 2

BK7 = [(1.03961212, 0.00600069867), (0.231792344, 0.0200179144), (1.01046945, 103.560653)]

def loss(thickness, n_high, n_low, lam, angles, target, absorb=1e-4):
    n_sub = sellmeier(lam, BK7)
    total = 0.0
    for theta in angles:
        for pol in "sp":
            idx = [(n_high if i % 2 == 0 else n_low) * np.ones_like(lam) + 1j * absorb for i in range(len(thickness))]
            R = reflectance(idx, thickness, lam, theta, n_sub, pol)
            total += np.sqrt(np.mean((R - target) ** 2))
    return total / (2 * len(angles))

def make(k):
    nl, nw = [(8, 200), (16, 400)][k]
    rng = np.random.default_rng(k)
    return (0.08 + 0.04 * rng.random(nl), 2.3, 1.46, np.linspace(0.4, 0.8, nw), np.deg2rad([0.0, 30.0, 45.0]), np.zeros(nw)), 3
