"""An ensemble Kalman filter with localisation, of Lorenz's model; Cholesky factors with more and more jitter."""

import numpy as np

def robust_cholesky(A, jitter=1e-8, tries=6):
    for i in range(tries):
        try:
            return np.linalg.cholesky(A + jitter * np.eye(len(A)))
        except np.linalg.LinAlgError:
            jitter *= 10
    raise np.linalg.LinAlgError("not positive definite")

class EnKF:
    def __init__(self, ensemble, inflation, loc):
        self.E = ensemble
        self.inflation = inflation
        self.loc = loc

    def forecast(self, model, steps):
        for _ in range(steps):
            self.E = np.stack([model(e) for e in self.E])

    def analyse(self, y, idx, r, noise):
        m = self.E.mean(axis=0)
        A = self.inflation * (self.E - m)
        self.E = m + A
        P = self.loc * (A.T @ A) / (len(A) - 1)
        S = P[np.ix_(idx, idx)] + r * np.eye(len(idx))
        L = robust_cholesky(S)
        K = np.linalg.solve(L.T, np.linalg.solve(L, P[idx])).T
        self.E = self.E + (y + np.sqrt(r) * noise - self.E[:, idx]) @ K.T

def lorenz96(x, F, dt=0.05):
    def f(x):
        return (np.roll(x, -1) - np.roll(x, 2)) * np.roll(x, 1) - x + F
    k1 = f(x)
    k2 = f(x + dt / 2 * k1)
    k3 = f(x + dt / 2 * k2)
    k4 = f(x + dt * k3)
    return x + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

def gaspari(n, c):
    d = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    d = np.minimum(d, n - d) / c
    return np.piecewise(d, [d <= 1, (d > 1) & (d <= 2)], [lambda r: 1 - 5 / 3 * r ** 2 + 5 / 8 * r ** 3 + r ** 4 / 2 - r ** 5 / 4,
                        lambda r: 4 - 5 * r + 5 / 3 * r ** 2 + 5 / 8 * r ** 3 - r ** 4 / 2 + r ** 5 / 12 - 2 / (3 * r), 0])

def loss(F, inflation, logr, c, E0, obs, idx, noise, truth, steps=2):
    n = E0.shape[1]
    kf = EnKF(E0, inflation, gaspari(n, c))
    rmse, spread = [], []
    for t, y in enumerate(obs):
        kf.forecast(lambda e: lorenz96(e, F), steps)
        kf.analyse(y, idx, np.exp(logr), noise[t])
        rmse.append(np.sqrt(np.mean((kf.E.mean(0) - truth[t]) ** 2)))
        spread.append(kf.E.std(axis=0, ddof=1).mean())
    return np.mean(rmse) + 0.1 * np.abs(np.log(np.mean(spread)))

def make(k):
    rng = np.random.default_rng(k)
    n, m, T = [(12, 8, 6), (20, 15, 15)][k]
    idx = np.arange(0, n, 2)
    return (8.0, 1.05, -1.0, 3.0, 8 + rng.standard_normal((m, n)), 8 + rng.standard_normal((T, len(idx))), idx, rng.standard_normal((T, m, len(idx))), 8 + rng.standard_normal((T, n))), 4
