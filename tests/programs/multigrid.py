"""Poisson's equation by V-cycles on a list of grids."""

import numpy as np

class Grid2D:
    def __init__(self, n, h, bc="dirichlet"):
        self.n, self.h, self.bc = n, h, bc

    @property
    def shape(self):
        return (self.n, self.n)

    def smooth(self, u, f, a, sweeps, omega=0.8):
        for _ in range(sweeps):
            r = self.residual(u, f, a)
            u = u + omega * r * self.h ** 2 / (4 * a)
        return u

    def residual(self, u, f, a):
        p = np.pad(u, 1)
        lap = p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] - 4 * u
        return f + a * lap / self.h ** 2

    @staticmethod
    def restrict(r):
        p = np.pad(r, ((0, 1), (0, 1)))
        return 0.25 * (p[1:-1:2, 1:-1:2] * 2 + 0.5 * (p[:-2:2, 1:-1:2] + p[2::2, 1:-1:2] + p[1:-1:2, :-2:2] + p[1:-1:2, 2::2]))

    @classmethod
    def coarse(cls, fine):
        return cls((fine.n - 1) // 2, 2 * fine.h, fine.bc)

def prolong(e, n):
    out = np.zeros((n, n))
    out[1::2, 1::2] = e
    out[::2, 1::2] = 0.5 * (np.pad(e, ((1, 0), (0, 0))) + np.pad(e, ((0, 1), (0, 0))))
    col = np.pad(out[:, 1::2], ((0, 0), (1, 1)))
    out[:, ::2] = 0.5 * (col[:, 1:] + col[:, :-1])
    return out

def vcycle(grid, u, f, a, pre=2, post=2):
    if grid.n <= 3:
        return grid.smooth(u, f, a, 20)
    u = grid.smooth(u, f, a, pre)
    r = grid.residual(u, f, a)
    c = Grid2D.coarse(grid)
    rc = Grid2D.restrict(r)
    ac = a[1::2, 1::2]
    e = vcycle(c, np.zeros(c.shape), rc, ac, pre, post)
    u = u + prolong(e, grid.n)
    return grid.smooth(u, f, a, post)

def solve(grid, f, a, tol, maxcycles=10):
    u = np.zeros(grid.shape)
    r0 = np.linalg.norm(f)
    for it in range(maxcycles):
        u = vcycle(grid, u, f, a)
        if np.linalg.norm(grid.residual(u, f, a)) < tol * r0:
            break
    return u, it

def loss(loga, src, obs, tol=1e-3):
    n = loga.shape[0]
    g = Grid2D(n, 1.0 / (n + 1))
    a = np.exp(loga)
    u, its = solve(g, src, a, tol)
    flux = -a[:, 0] * u[:, 0] / g.h
    return np.mean((u - obs) ** 2) * 1e3 + 0.1 * np.mean(flux ** 2)

def make(k):
    rng = np.random.default_rng(k)
    n = [15, 31][k]
    return (0.2 * rng.standard_normal((n, n)), 1 + rng.random((n, n)), 0.05 * rng.random((n, n))), 2
