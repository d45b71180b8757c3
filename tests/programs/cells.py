"""Lennard-Jones energy and forces with cell lists, then a few steps of velocity Verlet in 2D."""

import numpy as np

class Cells:
    def __init__(self, box, rcut):
        self.box = box
        self.rcut = rcut
        self.n = max(3, int(box / rcut))
        self.size = box / self.n

    def build(self, pos):
        head = -np.ones((self.n, self.n), dtype=int)
        nxt = -np.ones(len(pos), dtype=int)
        for i in range(len(pos)):
            cx = int(pos[i, 0] / self.size) % self.n
            cy = int(pos[i, 1] / self.size) % self.n
            nxt[i] = head[cx, cy]
            head[cx, cy] = i
        return head, nxt

    def forces(self, pos):
        head, nxt = self.build(pos)
        f = np.zeros_like(pos)
        energy = 0.0
        for cx in range(self.n):
            for cy in range(self.n):
                i = head[cx, cy]
                while i >= 0:
                    for dx in (-1, 0, 1):
                        for dy in (-1, 0, 1):
                            j = head[(cx + dx) % self.n, (cy + dy) % self.n]
                            while j >= 0:
                                if j > i:
                                    d = pos[i] - pos[j]
                                    d = d - self.box * np.round(d / self.box)
                                    r2 = d @ d
                                    if r2 < self.rcut ** 2:
                                        s6 = 1.0 / r2 ** 3
                                        energy += 4 * (s6 * s6 - s6)
                                        fij = 24 * (2 * s6 * s6 - s6) / r2 * d
                                        f[i] += fij
                                        f[j] -= fij
                                j = nxt[j]
                    i = nxt[i]
        return energy, f

def loss(pos, vel, box, dt, nsteps):
    cells = Cells(box, 2.0)
    e, f = cells.forces(pos)
    for _ in range(nsteps):
        vel = vel + 0.5 * dt * f
        pos = (pos + dt * vel) % box
        e, f = cells.forces(pos)
        vel = vel + 0.5 * dt * f
    return e + 0.5 * np.sum(vel ** 2) * 0.3

def make(k):
    rng = np.random.default_rng(k)
    m = [5, 6][k]
    box = 1.3 * m
    g = (np.arange(m) + 0.5) * 1.3
    pos = np.array([[a, b] for a in g for b in g]) + 0.05 * rng.standard_normal((m * m, 2))
    return (pos, rng.standard_normal((m * m, 2)), box, 0.002, 3), 2
