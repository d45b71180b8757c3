"""Chemical kinetics with a mechanism, by a Rosenbrock method."""

import numpy as np

class Mechanism:
    def __init__(self, species, reactions):
        self.species = species
        self.index = {s: i for i, s in enumerate(species)}
        n, m = len(species), len(reactions)
        self.nu_f = np.zeros((m, n))
        self.nu_r = np.zeros((m, n))
        for k, (lhs, rhs) in enumerate(reactions):
            for s, c in lhs.items():
                self.nu_f[k, self.index[s]] += c
            for s, c in rhs.items():
                self.nu_r[k, self.index[s]] += c

    def rates(self, c, T, logA, Ea, dG):
        R = 8.314
        kf = np.exp(logA - Ea / (R * T))
        K = np.exp(-dG / (R * T))
        lc = np.log(np.maximum(c, 1e-30))
        fwd = kf * np.exp(self.nu_f @ lc)
        rev = kf / K * np.exp(self.nu_r @ lc)
        return (self.nu_r - self.nu_f).T @ (fwd - rev)

    def jacobian(self, c, T, *args):
        n = len(c)
        J = np.empty((n, n))
        f0 = self.rates(c, T, *args)
        for j in range(n):
            h = 1e-7 * max(abs(c[j]), 1e-3)
            cp = c.copy()
            cp[j] += h
            J[:, j] = (self.rates(cp, T, *args) - f0) / h
        return J

def rosenbrock(mech, c, T, dt, steps, args):
    g = 1 / (2 + np.sqrt(2))
    out = [c]
    I = np.eye(len(c))
    for s in range(steps):
        J = mech.jacobian(c, T, *args)
        W = I - dt * g * J
        k1 = np.linalg.solve(W, mech.rates(c, T, *args))
        k2 = np.linalg.solve(W, mech.rates(c + dt * k1, T, *args) - 2 * k1)
        c = c + 1.5 * dt * k1 + 0.5 * dt * k2
        c = np.where(c < 0, 0.0, c)
        out.append(c)
    return np.stack(out)

def loss(logA, Ea, dG, mech, c0, temps, data, dt, steps=30):
    err = 0.0
    for T, d in zip(temps, data):
        traj = rosenbrock(mech, c0, T, dt, steps, (logA, Ea, dG))
        err += np.sum((np.log(traj[1::5] + 1e-8) - np.log(d + 1e-8)) ** 2)
    return err / len(temps)

def make(k):
    rng = np.random.default_rng(k)
    m = Mechanism(["A", "B", "C", "D", "E"], [({"A": 1, "B": 1}, {"C": 1}), ({"C": 1}, {"D": 1, "E": 1}), ({"A": 2}, {"E": 1}), ({"D": 1, "A": 1}, {"B": 2})])
    nT, st = [(2, 30), (5, 60)][k]
    return (np.array([5.0, 4.0, 3.0, 4.5]), np.array([1e4, 1.2e4, 9e3, 1.1e4]), np.array([-5e3, -2e3, 1e3, -1e3]), m, np.array([1.0, 0.8, 0.1, 0.05, 0.05]), np.linspace(300, 400, nT), rng.random((nT, len(range(1, st + 1, 5)), 5)), 0.02, st), 3
