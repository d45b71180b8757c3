"""Blocks of a controlled plant as classes, chained and simulated."""

import numpy as np
from abc import ABC, abstractmethod
from enum import Enum

class Kind(Enum):
    LINEAR = 1
    SATURATING = 2

class Block(ABC):
    @abstractmethod
    def step(self, u, dt): ...

class FirstOrder(Block):
    def __init__(self, tau, gain=1.0):
        self.tau, self.gain, self.x = tau, gain, 0.0
    def step(self, u, dt):
        self.x += dt * (self.gain * u - self.x) / self.tau
        return self.x

class PID(Block):
    def __init__(self, kp, ki, kd, lo=-np.inf, hi=np.inf, kind=Kind.LINEAR):
        self.kp, self.ki, self.kd, self.lo, self.hi, self.kind = kp, ki, kd, lo, hi, kind
        self.integral = 0.0
        self.prev = None
    def step(self, e, dt):
        d = 0.0 if self.prev is None else (e - self.prev) / dt
        self.prev = e
        u = self.kp * e + self.ki * (self.integral + e * dt) + self.kd * d
        if self.kind is Kind.SATURATING:
            if u > self.hi:
                return self.hi
            if u < self.lo:
                return self.lo
        self.integral += e * dt
        return u

class Delay(Block):
    def __init__(self, n):
        self.buffer = [0.0] * n
    def step(self, u, dt):
        self.buffer.append(u)
        return self.buffer.pop(0)

class Chain(Block):
    def __init__(self, *blocks):
        self.blocks = blocks
    def step(self, u, dt):
        for b in self.blocks:
            u = b.step(u, dt)
        return u

def simulate(controller, plant, ref, dt, disturbance):
    y = 0.0
    ys, us = [], []
    for k, r in enumerate(ref):
        u = controller.step(r - y, dt)
        y = plant.step(u + disturbance[k], dt)
        ys.append(y)
        us.append(u)
    return np.array(ys), np.array(us)

def loss(gains, taus, ref, dist, dt=0.05, limit=2.0, kind="SATURATING", delay=5):
    c = PID(*gains, lo=-limit, hi=limit, kind=Kind[kind])
    plant = Chain(FirstOrder(taus[0], 1.2), Delay(delay), FirstOrder(taus[1]))
    y, u = simulate(c, plant, ref, dt, dist)
    e = ref - y
    iae = np.sum(np.abs(e)) * dt
    overshoot = max(0.0, (y - ref).max())
    settle = np.argmax(np.abs(e[::-1]) > 0.05)
    return iae + 5 * overshoot ** 2 + 0.01 * np.sum(np.diff(u) ** 2) + 0.0 * settle

def make(k):
    rng = np.random.default_rng(k)
    n = [200, 1000][k]
    return (np.array([2.0, 1.0, 0.2]), np.array([0.8, 0.3]), np.where(np.arange(n) > 10, 1.0, 0.0), 0.05 * rng.standard_normal(n)), 2
