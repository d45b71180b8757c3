"""Dynamic programming of an inventory over periods."""

import numpy as np
from math import lgamma

def poisson_pmf(lam, n):
    k = np.arange(n)
    logfact = np.array([lgamma(i + 1) for i in k])
    p = np.exp(k * np.log(lam) - lam - logfact)
    p[-1] += 1 - p.sum()
    return p

class Inventory:
    def __init__(self, capacity, demand, price, hold, order, fixed, shortage):
        self.capacity = capacity
        self.demand = demand
        self.price = price
        self.hold = hold
        self.order = order
        self.fixed = fixed
        self.shortage = shortage

    def stage(self, V):
        C = self.capacity
        best = np.full(C + 1, -np.inf)
        after = np.zeros(C + 1)
        for y in range(C + 1):
            ev = 0.0
            for d, pd in enumerate(self.demand):
                sold = min(y, d)
                left = y - sold
                ev += pd * (self.price * sold - self.hold * left - self.shortage * (d - sold) + V[left])
            after[y] = ev
        for s in range(C + 1):
            for y in range(s, C + 1):
                q = y - s
                val = after[y] - self.order * q - (self.fixed if q > 0 else 0.0)
                if val > best[s]:
                    best[s] = val
        return best

def loss(lam, price, hold, order, fixed, shortage, capacity, periods, gamma=0.98):
    dem = poisson_pmf(lam, capacity + 1)
    inv = Inventory(capacity, dem, price, hold, order, fixed, shortage)
    V = np.zeros(capacity + 1)
    for t in range(periods):
        V = inv.stage(gamma * V)
    return -V[0] + 0.1 * V.mean()

def make(k):
    return (6.0, 10.0, 0.5, 4.0, 8.0, 2.0, [15, 25][k], [10, 20][k]), 6
