"""A mixture of Gaussians by expectation and maximisation, until it converges."""

import numpy as np

class GaussianMixture:
    def __init__(self, means, covs, weights, reg=1e-3):
        self.means = means
        self.covs = covs
        self.weights = weights
        self.reg = reg

    def log_prob(self, X):
        n, d = X.shape
        K = len(self.weights)
        out = np.empty((n, K))
        for k in range(K):
            L = np.linalg.cholesky(self.covs[k])
            z = np.linalg.solve(L, (X - self.means[k]).T)
            out[:, k] = -0.5 * (z ** 2).sum(0) - np.log(np.diag(L)).sum() - 0.5 * d * np.log(2 * np.pi) + np.log(self.weights[k])
        return out

    def e_step(self, X):
        lp = self.log_prob(X)
        m = lp.max(axis=1)
        ll = m + np.log(np.exp(lp - m[:, None]).sum(axis=1))
        return np.exp(lp - ll[:, None]), ll.mean()

    def m_step(self, X, R):
        nk = R.sum(axis=0)
        self.weights = nk / len(X)
        self.means = (R.T @ X) / nk[:, None]
        covs = []
        for k in range(len(nk)):
            d = X - self.means[k]
            covs.append((R[:, k, None] * d).T @ d / nk[k] + self.reg * np.eye(X.shape[1]))
        self.covs = np.array(covs)

    def fit(self, X, iters, tol=1e-6):
        prev = -np.inf
        self.converged = False
        for it in range(iters):
            R, ll = self.e_step(X)
            self.m_step(X, R)
            if abs(ll - prev) < tol:
                self.converged = True
                break
            prev = ll
        return ll

def loss(means, reg, X, Xtest, iters=20):
    K, d = means.shape
    gm = GaussianMixture(means, np.array([np.eye(d)] * K), np.ones(K) / K, reg)
    ll = gm.fit(X, iters)
    _, test = gm.e_step(Xtest)
    entropy = -np.sum(gm.weights * np.log(gm.weights))
    return -test + 0.1 * entropy - 0.01 * ll

def make(k):
    rng = np.random.default_rng(k)
    n, d, K = [(300, 2, 3), (1500, 4, 5)][k]
    c = 3 * rng.standard_normal((K, d))
    X = c[rng.integers(0, K, n)] + rng.standard_normal((n, d))
    return (c + rng.standard_normal((K, d)), 1e-2, X[: n * 3 // 4], X[n * 3 // 4:]), 2
