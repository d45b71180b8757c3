"""Queues: a Markov chain's stationary and transient states, Lindley's recursion, mean value analysis."""

import numpy as np

class MMc:
    def __init__(self, lam, mu, c, K):
        self.lam, self.mu, self.c, self.K = lam, mu, c, K

    def generator(self):
        n = self.K + 1
        Q = np.zeros((n, n))
        for i in range(n):
            if i < self.K:
                Q[i, i + 1] = self.lam
            if i > 0:
                Q[i, i - 1] = min(i, self.c) * self.mu
            Q[i, i] = -Q[i].sum()
        return Q

    def stationary(self):
        Q = self.generator()
        A = Q.T.copy()
        A[-1] = 1.0
        b = np.zeros(len(A))
        b[-1] = 1.0
        return np.linalg.solve(A, b)

    def transient(self, p0, t, tol=1e-10):
        Q = self.generator()
        rate = np.max(-np.diag(Q))
        P = np.eye(len(Q)) + Q / rate
        term = np.exp(-rate * t)
        v = p0
        out = term * v
        total = term
        k = 0
        while total < 1 - tol and k < 2000:
            k += 1
            v = v @ P
            term = term * rate * t / k
            out = out + term * v
            total += term
        return out

def lindley(arr, serv):
    w = 0.0
    waits = []
    for a, s in zip(arr, serv):
        waits.append(w)
        w = max(0.0, w + s - a)
    return np.array(waits)

def mva(demands, think, N):
    q = np.zeros(len(demands))
    for n in range(1, N + 1):
        r = demands * (1 + q)
        X = n / (think + r.sum())
        q = X * r
    return X, q

def loss(loglam, logmu, demands, e1, e2, servers=3, K=30, N=50, t=5.0):
    lam, mu = np.exp(loglam), np.exp(logmu)
    sys_ = MMc(lam, mu, servers, K)
    pi = sys_.stationary()
    L = np.arange(K + 1) @ pi
    W = L / (lam * (1 - pi[-1]))
    p0 = np.zeros(K + 1)
    p0[0] = 1.0
    pt = sys_.transient(p0, t)
    waits = lindley(e1 / lam, e2 / (mu * servers))
    X, q = mva(demands, 2.0, N)
    return W + np.sum((pt - pi) ** 2) + np.quantile(waits, 0.9) + waits.mean() - X + q.max()

def make(k):
    rng = np.random.default_rng(k)
    n = [500, 5000][k]
    return (np.log(2.0), 0.0, rng.random(5) + 0.1, rng.exponential(1, n), rng.exponential(1, n), 3, [30, 60][k], [50, 200][k]), 3
