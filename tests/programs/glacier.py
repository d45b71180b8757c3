"""A glacier on a slope: semi-implicit diffusion, Thomas's algorithm."""

import numpy as np

class Glacier:
    """1d shallow ice with semi-implicit diffusion."""
    rho, g, n = 910.0, 9.81, 3

    def __init__(self, bed, dx, A):
        self.bed = bed
        self.dx = dx
        self.A = A
        self.H = np.zeros_like(bed)

    def diffusivity(self):
        s = self.bed + self.H
        Hm = 0.5 * (self.H[1:] + self.H[:-1])
        grad = (s[1:] - s[:-1]) / self.dx
        gamma = 2 * self.A * (self.rho * self.g) ** self.n / (self.n + 2)
        return gamma * Hm ** (self.n + 2) * np.abs(grad) ** (self.n - 1)

    def mass_balance(self, ela, gradient, cap):
        return np.minimum(gradient * (self.bed + self.H - ela), cap)

    def step(self, dt, ela, gradient, cap):
        D = self.diffusivity()
        N = len(self.bed)
        lower, diag, upper = np.zeros(N), np.ones(N), np.zeros(N)
        c = dt / self.dx ** 2
        diag[1:-1] += c * (D[1:] + D[:-1])
        lower[1:-1] = -c * D[:-1]
        upper[1:-1] = -c * D[1:]
        rhs = self.H + dt * self.mass_balance(ela, gradient, cap)
        b = self.bed
        rhs[1:-1] += c * (D[1:] * (b[2:] - b[1:-1]) - D[:-1] * (b[1:-1] - b[:-2]))
        for i in range(1, N):
            w = lower[i] / diag[i - 1]
            diag[i] -= w * upper[i - 1]
            rhs[i] -= w * rhs[i - 1]
        x = np.zeros(N)
        x[-1] = rhs[-1] / diag[-1]
        for i in range(N - 2, -1, -1):
            x[i] = (rhs[i] - upper[i] * x[i + 1]) / diag[i]
        self.H = np.maximum(x, 0.0)
        self.H[-1] = 0.0

def loss(A, ela, gradient, bed, obs, years=60, dt=0.5, warming=0.0):
    gl = Glacier(bed, 200.0, A * 1e-16)
    t = 0.0
    volumes = []
    while t < years:
        gl.step(dt, ela + warming * 100 * t / years, gradient, 2.0)
        t += dt
        volumes.append(gl.H.sum() * gl.dx)
    length = np.sum(gl.H > 1.0)
    misfit = np.mean((gl.H - obs) ** 2)
    return misfit / 100 + np.log(volumes[-1] + 1) + 0.0 * length

def make(k):
    n = [60, 120][k]
    x = np.arange(n) * 200.0
    bed = 3000 - 0.1 * x
    return (1.0, 2605.0, 0.007, bed, np.maximum(0, 100 - x / 80), [30, 60][k], 0.5, 0.5 * k), 3
