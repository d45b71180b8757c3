"""An American option by regression on simulated paths."""

import numpy as np

def simulate(S0, r, sigma, T, Z):
    n, steps = Z.shape
    dt = T / steps
    paths = np.empty((n, steps + 1))
    paths[:, 0] = S0
    for t in range(steps):
        paths[:, t + 1] = paths[:, t] * np.exp((r - 0.5 * sigma ** 2) * dt + sigma * np.sqrt(dt) * Z[:, t])
    return paths

def laguerre(x, degree):
    cols = [np.ones_like(x), 1 - x]
    for k in range(1, degree):
        cols.append(((2 * k + 1 - x) * cols[k] - k * cols[k - 1]) / (k + 1))
    return np.column_stack(cols[:degree + 1])

def payoff(S, K, kind):
    if kind == "put":
        return np.maximum(K - S, 0)
    return np.maximum(S - K, 0)

def loss(S0, sigma, r, Z, K=100.0, T=1.0, kind="put", degree=3):
    paths = simulate(S0, r, sigma, T, Z)
    steps = Z.shape[1]
    disc = np.exp(-r * T / steps)
    cash = payoff(paths[:, -1], K, kind)
    for t in range(steps - 1, 0, -1):
        cash = cash * disc
        ex = payoff(paths[:, t], K, kind)
        itm = ex > 0
        if itm.sum() < degree + 2:
            continue
        A = laguerre(paths[itm, t] / K, degree)
        coef, *_ = np.linalg.lstsq(A, cash[itm], rcond=None)
        cont = A @ coef
        exercise = ex[itm] > cont
        idx = np.where(itm)[0][exercise]
        cash[idx] = ex[idx]
    return disc * cash.mean()

def make(k):
    rng = np.random.default_rng(k)
    return (98.0, 0.25, 0.05, rng.standard_normal([(1000, 25), (5000, 50)][k])), 3
