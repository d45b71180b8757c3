"""Concentrations of a drug after several doses, by a Runge-Kutta method."""

import numpy as np
from scipy.special import gammaln

class TwoCompartment:
    names = ["CL", "V1", "Q", "V2", "ka"]

    def __init__(self, **p):
        for k, v in p.items():
            setattr(self, k, v)

    def derivs(self, y):
        depot, c, p = y
        return np.array([-self.ka * depot,
                         self.ka * depot - (self.CL / self.V1) * c - (self.Q / self.V1) * c + (self.Q / self.V2) * p,
                         (self.Q / self.V1) * c - (self.Q / self.V2) * p])

    def simulate(self, doses, times, dt=0.05):
        y = np.zeros(3)
        conc = []
        t = 0.0
        pending = sorted(doses, key=lambda d: d["time"])
        for target in times:
            while t < target - 1e-9:
                for d in pending:
                    if abs(d["time"] - t) < 1e-6:
                        y[0] += d["amount"]
                h = min(dt, target - t)
                k1 = self.derivs(y)
                k2 = self.derivs(y + 0.5 * h * k1)
                k3 = self.derivs(y + 0.5 * h * k2)
                k4 = self.derivs(y + h * k3)
                y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
                t += h
            conc.append(y[1] / self.V1)
        return np.array(conc)

def loss(theta, omega, etas, sigma, subjects):
    obj = 0.0
    for s, eta in zip(subjects, etas):
        p = {}
        for i, name in enumerate(TwoCompartment.names):
            p[name] = np.exp(theta[i] + (eta[i] if i < len(eta) else 0.0))
        p["CL"] *= (s["weight"] / 70) ** 0.75
        m = TwoCompartment(**p)
        c = m.simulate(s["doses"], s["times"])
        r = (np.log(s["obs"]) - np.log(c + 1e-6)) / sigma
        obj += 0.5 * np.sum(r ** 2) + len(r) * np.log(sigma)
        obj += 0.5 * np.sum(eta ** 2 / omega) + 0.5 * np.sum(np.log(omega))
    return obj

def make(k):
    rng = np.random.default_rng(k)
    ns = [2, 5][k]
    subs = [dict(weight=60 + 5 * i, doses=[dict(time=0.0, amount=100.0), dict(time=6.0, amount=50.0)], times=np.array([0.5, 1, 2, 4, 8, 12.0]), obs=np.exp(rng.standard_normal(6) * 0.3)) for i in range(ns)]
    return (np.log([5.0, 20.0, 3.0, 40.0, 1.0]), np.array([0.1, 0.1]), 0.1 * rng.standard_normal((ns, 2)), 0.2, subs), 4
