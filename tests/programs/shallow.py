"""Shallow water in two dimensions."""

import numpy as np
from dataclasses import dataclass

@dataclass
class Grid:
    nx: int
    ny: int
    dx: float
    dy: float

G = 9.81

def ddx(f, grid):
    return (np.roll(f, -1, axis=1) - np.roll(f, 1, axis=1)) / (2 * grid.dx)

def ddy(f, grid):
    out = np.zeros_like(f)
    out[1:-1] = (f[2:] - f[:-2]) / (2 * grid.dy)
    out[0] = (f[1] - f[0]) / grid.dy
    out[-1] = (f[-1] - f[-2]) / grid.dy
    return out

def tendencies(state, H, grid, coriolis, drag):
    h, u, v = state
    dh = -(ddx((H + h) * u, grid) + ddy((H + h) * v, grid))
    du = -u * ddx(u, grid) - v * ddy(u, grid) + coriolis * v - G * ddx(h, grid) - drag * u
    dv = -u * ddx(v, grid) - v * ddy(v, grid) - coriolis * u - G * ddy(h, grid) - drag * v
    dv[0] = 0
    dv[-1] = 0
    return dh, du, dv

def rk3(state, dt, *args):
    k1 = tendencies(state, *args)
    s1 = tuple(s + dt / 3 * k for s, k in zip(state, k1))
    k2 = tendencies(s1, *args)
    s2 = tuple(s + dt / 2 * k for s, k in zip(state, k2))
    k3 = tendencies(s2, *args)
    return tuple(s + dt * k for s, k in zip(state, k3))

def loss(h0, H, drag, grid, gauges, observed, nsteps=60, dt=20.0):
    u = np.zeros((grid.ny, grid.nx))
    v = np.zeros((grid.ny, grid.nx))
    state = (h0, u, v)
    misfit = 0.0
    rec = 0
    for n in range(nsteps):
        state = rk3(state, dt, H, grid, 1e-4, drag)
        if (n + 1) % 10 == 0:
            for g, (j, i) in enumerate(gauges):
                misfit += (state[0][j, i] - observed[rec, g]) ** 2
            rec += 1
    return misfit / (rec * len(gauges))

def make(k):
    rng = np.random.default_rng(k)
    nx, ny = [(64, 48), (96, 80)][k]
    g = Grid(nx, ny, 1e4, 1e4)
    y, x = np.mgrid[0:ny, 0:nx]
    h0 = np.exp(-((x - nx / 2) ** 2 + (y - ny / 2) ** 2) / 30.0)
    H = 100.0 + 10 * rng.random((ny, nx))
    gauges = [(5, 6), (10, 40), (30, 20), (20, 50)]
    return (h0, H, 1e-5, g, gauges, 0.1 * rng.standard_normal((6, 4))), 3
