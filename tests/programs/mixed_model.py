"""A mixed model with groups, restricted likelihood, and matching by sites."""

import numpy as np
from collections import defaultdict, namedtuple

Result = namedtuple("Result", "coef se sigma2 groups")

def dummies(labels):
    levels, inv = np.unique(labels, return_inverse=True)
    return np.eye(len(levels))[inv], levels

def reml(theta, y, X, groups):
    n, p = X.shape
    total, logdetXVX = 0.0, 0.0
    XVX = np.zeros((p, p))
    XVy = np.zeros(p)
    parts = defaultdict(list)
    for i, g in enumerate(groups):
        parts[g].append(i)
    logdet = 0.0
    stored = []
    s2, tau2 = np.exp(theta)
    for g, idx in sorted(parts.items()):
        V = s2 * np.eye(len(idx)) + tau2
        L = np.linalg.cholesky(V)
        Z = np.linalg.solve(L, np.column_stack([X[idx], y[idx]]))
        XVX += Z[:, :p].T @ Z[:, :p]
        XVy += Z[:, :p].T @ Z[:, p]
        logdet += 2 * np.log(np.diagonal(L)).sum()
        stored.append(Z)
    beta = np.linalg.solve(XVX, XVy)
    rss = sum(((Z[:, p] - Z[:, :p] @ beta) ** 2).sum() for Z in stored)
    crit = logdet + np.linalg.slogdet(XVX)[1] + rss
    return crit, Result(beta, np.sqrt(np.diag(np.linalg.inv(XVX))), s2, len(parts))

def loss(theta, effects, age, y, site, treat, prior=2.0):
    D, levels = dummies(treat)
    X = np.hstack([np.ones((len(y), 1)), age[:, None], age[:, None] ** 2, D[:, 1:]])
    yadj = y - effects[np.searchsorted(np.unique(site), site)]
    crit, res = reml(theta, yadj, X, site.tolist())
    t = res.coef / res.se
    counts = np.bincount(treat)
    means = np.bincount(treat, weights=yadj) / counts
    return crit / len(y) + 0.01 * np.sum(np.tanh(t)) + np.ptp(means) + np.sum(effects ** 2) / prior

def make(k):
    rng = np.random.default_rng(k)
    n, g = [(80, 6), (300, 12)][k]
    return (np.array([0.0, -0.5]), 0.1 * rng.standard_normal(g), rng.standard_normal(n), rng.standard_normal(n), np.concatenate([np.arange(g), rng.integers(0, g, n - g)]), np.concatenate([np.arange(3), rng.integers(0, 3, n - 3)])), 2
