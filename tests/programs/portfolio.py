"""A portfolio optimised on a simplex and rebalanced, with drawdowns."""

import numpy as np

def project_simplex(v):
    u = np.sort(v)[::-1]
    css = np.cumsum(u) - 1
    k = np.arange(1, len(v) + 1)
    rho = np.nonzero(u - css / k > 0)[0][-1]
    theta = css[rho] / (rho + 1)
    return np.maximum(v - theta, 0)

def ewma_cov(R, lam):
    n, d = R.shape
    S = np.cov(R[:20].T)
    for t in range(20, n):
        S = lam * S + (1 - lam) * np.outer(R[t], R[t])
    return S

def shrink(S, delta):
    d = len(S)
    target = np.trace(S) / d * np.eye(d)
    return (1 - delta) * S + delta * target

def optimise(mu, S, gamma, w0, cost, iters=50, lr=0.5):
    w = w0.copy()
    L = np.linalg.norm(S, 2)
    for i in range(iters):
        g = gamma * S @ w - mu + cost * np.sign(w - w0) * (np.abs(w - w0) > 1e-4)
        w = project_simplex(w - lr / (gamma * L) * g)
    return w

def drawdown(equity):
    peak = equity[0]
    worst = 0.0
    for e in equity:
        if e > peak:
            peak = e
        worst = max(worst, 1 - e / peak)
    return worst

def loss(lam, delta, gamma, R, window=60, rebalance=20, cost=1e-3):
    T, d = R.shape
    w = np.ones(d) / d
    equity = [1.0]
    for t in range(window, T, rebalance):
        hist = R[t - window:t]
        S = shrink(ewma_cov(hist, lam), delta)
        mu = hist.mean(axis=0)
        wn = optimise(mu, S, gamma, w, cost)
        turnover = np.abs(wn - w).sum()
        w = wn
        for r in R[t:t + rebalance]:
            equity.append(equity[-1] * (1 + w @ r))
        equity[-1] *= 1 - cost * turnover
    equity = np.array(equity)
    ret = np.diff(np.log(equity))
    return -ret.mean() / ret.std() + 0.1 * drawdown(equity)

def make(k):
    rng = np.random.default_rng(k)
    T, d = [(160, 5), (300, 12)][k]
    return (0.94, 0.2, 5.0, 0.01 * rng.standard_normal((T, d)) + 0.0005), 3
