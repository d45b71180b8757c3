"""Marginal likelihood of a Gaussian process."""

import numpy as np

KERNELS = {}

def kernel(name):
    def register(f):
        KERNELS[name] = f
        return f
    return register

def sqdist(A, B, ls):
    a = A / ls
    b = B / ls
    return np.maximum(np.sum(a ** 2, 1)[:, None] + np.sum(b ** 2, 1)[None, :] - 2 * a @ b.T, 0.0)

@kernel("rbf")
def rbf(A, B, theta):
    return np.exp(theta[0]) * np.exp(-0.5 * sqdist(A, B, np.exp(theta[1:])))

@kernel("matern52")
def matern(A, B, theta):
    r = np.sqrt(5 * sqdist(A, B, np.exp(theta[1:])) + 1e-12)
    return np.exp(theta[0]) * (1 + r + r ** 2 / 3) * np.exp(-r)

class GaussianProcess:
    def __init__(self, kernel="rbf", mean="constant", jitter=1e-6):
        if kernel not in KERNELS:
            raise ValueError(f"unknown kernel {kernel!r}")
        self.k = KERNELS[kernel]
        self.mean = mean
        self.jitter = jitter

    def fit(self, X, y, theta, log_noise, mu):
        self.X = X
        self.theta = theta
        n = len(X)
        K = self.k(X, X, theta)
        K[np.diag_indices(n)] += np.exp(2 * log_noise) + self.jitter
        self.L = np.linalg.cholesky(K)
        r = y - (mu if self.mean == "constant" else 0.0)
        z = np.linalg.solve(self.L, r)
        self.alpha = np.linalg.solve(self.L.T, z)
        self.lml = -0.5 * r @ self.alpha - np.log(np.diag(self.L)).sum() - 0.5 * n * np.log(2 * np.pi)
        return self

    def predict(self, Xs):
        Ks = self.k(Xs, self.X, self.theta)
        v = np.linalg.solve(self.L, Ks.T)
        return Ks @ self.alpha, np.exp(self.theta[0]) - np.sum(v * v, axis=0)

def loss(theta, log_noise, mu, X, y, Xtest, ytest, kernel="rbf", weight=1.0):
    gp = GaussianProcess(kernel).fit(X, y, theta, log_noise, mu)
    m, v = gp.predict(Xtest)
    v = v + np.exp(2 * log_noise)
    nlpd = np.mean(0.5 * np.log(2 * np.pi * v) + 0.5 * (ytest - m - mu) ** 2 / v)
    return -gp.lml / len(y) + weight * nlpd

def make(k):
    rng = np.random.default_rng(k)
    n, d = [(150, 3), (400, 5)][k]
    X = rng.random((n, d)); f = lambda X: np.sin(5 * X[:, 0]) + X[:, 1] ** 2
    Xt = rng.random((n // 4, d))
    return (np.zeros(d + 1), -2.0, 0.1, X, f(X) + 0.1 * rng.standard_normal(n), Xt, f(Xt), ["rbf", "matern52"][k]), 3
