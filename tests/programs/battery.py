"""A single-particle model of a battery: diffusion in two electrodes, discharged with a current profile."""

import numpy as np
from types import SimpleNamespace

def ocv(s, neg=False):
    if neg:
        return 0.7222 + 0.1387 * s + 0.029 * np.sqrt(s) - 0.0172 / s + 0.28 * np.exp(0.9 - 15 * s)
    return 4.2 - 0.7 * s - 0.3 * s ** 2 + 0.05 * np.tanh(10 * (s - 0.5))

class Particle:
    def __init__(self, D, R, cmax, c0, n=15):
        self.D, self.R, self.cmax, self.n = D, R, cmax, n
        self.dr = R / n
        self.r = np.linspace(0, R, n + 1)
        rm = 0.5 * (self.r[1:] + self.r[:-1])
        self.vol = (self.r[1:] ** 3 - self.r[:-1] ** 3) / 3
        self.area = self.r ** 2
        self.c = np.full(n, c0 * cmax)

    def advance(self, flux, dt):
        N = np.zeros(self.n + 1)
        N[1:-1] = -self.D * np.diff(self.c) / self.dr
        N[-1] = flux
        self.c = self.c - dt * np.diff(self.area * N) / self.vol

    @property
    def surface(self):
        return (1.5 * self.c[-1] - 0.5 * self.c[-2]) / self.cmax

def simulate(p, current, dt, T0=298.0, cutoff=2.5):
    pos = Particle(p.Dp, p.Rp, p.cpmax, 0.45)
    neg = Particle(p.Dn, p.Rn, p.cnmax, 0.75)
    T = T0
    V = []
    temps = np.zeros(len(current))
    for k, I in enumerate(current):
        arr = np.exp(p.Ea * (1 / 298.0 - 1 / T) / 8.314)
        neg.advance(I / (p.area * 96485) * arr, dt)
        pos.advance(-I / (p.area * 96485) * arr, dt)
        sp, sn = pos.surface, neg.surface
        i0 = p.k * arr * np.sqrt(np.abs(sp * (1 - sp)) + 1e-9)
        eta = 2 * 8.314 * T / 96485 * np.arcsinh(I / (2 * p.area * i0))
        U = ocv(sp) - ocv(sn, neg=True)
        v = U - eta - I * p.Rs
        heat = I * (U - v)
        T += dt * (heat - p.h * (T - T0)) / p.Cp
        temps[k] = T
        V.append(v)
        if v < cutoff:
            break
    return np.array(V), temps

def loss(theta, current, measured, dt, soh=1.0):
    names = ["Dp", "Dn", "k", "Rs", "h"]
    p = SimpleNamespace(Rp=1e-5, Rn=1e-5, cpmax=5e4, cnmax=3e4 * soh, area=0.5, Ea=2e4, Cp=50.0)
    for name, t in zip(names, theta):
        setattr(p, name, np.exp(t))
    V, temps = simulate(p, current, dt)
    m = measured[:len(V)]
    return np.sqrt(np.mean((V - m) ** 2)) + 1e-4 * (temps[-1] - 300) ** 2

def make(k):
    rng = np.random.default_rng(k)
    n = [200, 1000][k]
    return (np.log([1e-14, 2e-14, 10.0, 0.02, 0.5]), 0.5 + 0.5 * np.sin(np.arange(n) / 20), 3.5 + 0.01 * rng.standard_normal(n), 1.0, 1.0), 1
