"""Bodies under gravity, as objects with vectors of their own class."""

import numpy as np
from functools import partial, reduce
from itertools import combinations

class Vec:
    __slots__ = ("x", "y", "z")
    def __init__(self, x, y, z):
        self.x, self.y, self.z = x, y, z
    def __add__(self, o): return Vec(self.x + o.x, self.y + o.y, self.z + o.z)
    def __sub__(self, o): return Vec(self.x - o.x, self.y - o.y, self.z - o.z)
    def __mul__(self, s): return Vec(self.x * s, self.y * s, self.z * s)
    __rmul__ = __mul__
    def dot(self, o): return self.x * o.x + self.y * o.y + self.z * o.z
    def norm(self): return np.sqrt(self.dot(self))
    def __iter__(self):
        yield self.x
        yield self.y
        yield self.z

class Body:
    def __init__(self, m, p, v):
        self.m, self.p, self.v = m, p, v
        self.a = Vec(0.0, 0.0, 0.0)

def accelerate(bodies, G, soft=0.01):
    for b in bodies:
        b.a = Vec(0.0, 0.0, 0.0)
    for a, b in combinations(bodies, 2):
        d = b.p - a.p
        r2 = d.dot(d) + soft
        f = G / (r2 * np.sqrt(r2))
        a.a = a.a + f * b.m * d
        b.a = b.a - f * a.m * d

def energy(bodies, G):
    e = sum(0.5 * b.m * b.v.dot(b.v) for b in bodies)
    for a, b in combinations(bodies, 2):
        e -= G * a.m * b.m / (a.p - b.p).norm()
    return e

def loss(masses, pos, vel, G, dt=0.01, steps=200):
    bodies = [Body(m, Vec(*p), Vec(*v)) for m, p, v in zip(masses, pos, vel)]
    e0 = energy(bodies, G)
    accelerate(bodies, G)
    closest = np.inf
    for i in range(steps):
        for b in bodies:
            b.v += 0.5 * dt * b.a
            b.p += dt * b.v
        accelerate(bodies, G)
        for b in bodies:
            b.v += 0.5 * dt * b.a
        closest = min(closest, (bodies[0].p - bodies[1].p).norm())
    com = reduce(lambda u, b: u + b.m * b.p, bodies, Vec(0.0, 0.0, 0.0))
    return np.sum(np.array([*bodies[0].p, *com]) ** 2) + closest + (energy(bodies, G) - e0) ** 2

def make(k):
    rng = np.random.default_rng(k)
    n = [3, 4][k]
    return (1 + rng.random(n), rng.standard_normal((n, 3)) * 2, 0.2 * rng.standard_normal((n, 3)), 1.0, 0.01, [100, 300][k]), 4
