"""Chebyshev's differentiation matrices: an eigenvalue problem and Burgers' equation."""

import numpy as np
from numpy.polynomial import chebyshev as C

def cheb(N):
    x = np.cos(np.pi * np.arange(N + 1) / N)
    c = np.hstack([2, np.ones(N - 1), 2]) * (-1) ** np.arange(N + 1)
    X = np.tile(x, (N + 1, 1)).T
    dX = X - X.T
    D = np.outer(c, 1 / c) / (dX + np.eye(N + 1))
    return D - np.diag(D.sum(axis=1)), x

def orr_sommerfeld_like(Re, alpha, N, profile):
    D, y = cheb(N)
    D2 = D @ D
    U = profile(y)
    U2 = D2 @ U
    I = np.eye(N - 1)
    L = D2[1:-1, 1:-1] - alpha ** 2 * I
    A = 1j * alpha * (np.diag(U[1:-1]) @ L - np.diag(U2[1:-1])) - L @ L / Re
    w = np.linalg.eigvals(np.linalg.solve(L, A))
    return w[np.argmin(w.real)]

def burgers_spectral(nu, u0, dt, steps):
    n = len(u0)
    k = np.fft.rfftfreq(n, 1 / n) * 1j
    kmax = n // 3
    uh = np.fft.rfft(u0)
    E = np.exp(nu * k.real ** 2 * dt) * np.exp(nu * (k ** 2).real * dt)
    def nonlin(uh):
        u = np.fft.irfft(uh, n)
        r = -0.5 * k * np.fft.rfft(u * u)
        r[kmax:] = 0
        return r
    for s in range(steps):
        k1 = nonlin(uh)
        k2 = nonlin(E * (uh + dt * k1))
        uh = E * uh + 0.5 * dt * (E * k1 + k2)
    return np.fft.irfft(uh, n)

def loss(Re, coeffs, nu, u0, target, alpha=1.02, N=24, steps=50):
    prof = lambda y: C.chebval(y, coeffs)
    w = orr_sommerfeld_like(Re, alpha, N, prof)
    u = burgers_spectral(nu, u0, 0.01, steps)
    return np.abs(w) ** 2 + np.mean((u - target) ** 2)

def make(k):
    rng = np.random.default_rng(k)
    n = [64, 256][k]
    x = np.linspace(0, 2 * np.pi, n, endpoint=False)
    return (500.0, np.array([0.5, 0.05, -0.5]), 0.05, np.sin(x) + 0.1 * rng.standard_normal(n), np.cos(x), 1.02, [16, 24][k], [50, 200][k]), 4
