"""Holt and Winters' smoothing, GARCH and autocorrelations of a series."""

import numpy as np

def sliding(x, w):
    return np.lib.stride_tricks.sliding_window_view(x, w)

def holt_winters(y, alpha, beta, gamma, season, damped=None):
    level = y[:season].mean()
    trend = (y[season:2 * season].mean() - level) / season
    seas = list(y[:season] - level)
    fitted = []
    for t in range(len(y)):
        s = seas[t % season]
        phi = 1.0 if damped is None else damped
        fitted.append(level + phi * trend + s)
        old = level
        level = alpha * (y[t] - s) + (1 - alpha) * (level + phi * trend)
        trend = beta * (level - old) + (1 - beta) * phi * trend
        seas[t % season] = gamma * (y[t] - level) + (1 - gamma) * s
    return np.asarray(fitted)

def garch(r, omega, a, b):
    s2 = np.empty_like(r)
    s2[0] = r.var()
    for t in range(1, r.size):
        s2[t] = omega + a * r[t - 1] ** 2 + b * s2[t - 1]
    return s2

def arma_acf(resid, nlags):
    r = resid - resid.mean()
    return np.array([np.dot(r[:len(r) - k], r[k:]) for k in range(nlags + 1)]) / np.dot(r, r)

def loss(logits, garch_p, y, season=12, nlags=8, window=20):
    alpha, beta, gamma = 1 / (1 + np.exp(-logits))
    fit = holt_winters(y, alpha, beta, gamma, season, damped=0.98)
    r = (y - fit)[2 * season:]
    omega, a, b = np.exp(garch_p)
    if a + b >= 1:
        scale = 0.999 / (a + b)
        a, b = a * scale, b * scale
    s2 = garch(r, omega, a, b)
    ll = -0.5 * np.sum(np.log(2 * np.pi * s2) + r ** 2 / s2)
    acf = arma_acf(r / np.sqrt(s2), nlags)
    n = len(r)
    Q = n * (n + 2) * np.sum(acf[1:] ** 2 / (n - np.arange(1, nlags + 1)))
    mad = np.median(np.abs(sliding(r, window) - np.median(sliding(r, window), axis=1)[:, None]), axis=1)
    return -ll / n + 0.01 * Q + mad.max()

def make(k):
    rng = np.random.default_rng(k)
    n = [150, 800][k]
    t = np.arange(n)
    return (np.array([-1.0, -2.0, -1.5]), np.log([0.05, 0.1, 0.8]), 10 + 0.01 * t + np.sin(2 * np.pi * t / 12) + 0.3 * rng.standard_normal(n)), 2
