"""Cox regression: the partial likelihood by strata, with ties."""

import numpy as np

def partial_likelihood(beta, X, time, event, strata, ties="breslow"):
    ll = 0.0
    for s in np.unique(strata):
        idx = np.where(strata == s)[0]
        idx = idx[np.argsort(-time[idx], kind="stable")]
        x, t, e = X[idx], time[idx], event[idx]
        eta = x @ beta
        m = eta.max()
        risk = np.cumsum(np.exp(eta - m))
        i = 0
        n = len(t)
        while i < n:
            j = i
            while j < n and t[j] == t[i]:
                j += 1
            d = e[i:j].sum()
            if d > 0:
                ll += np.sum(eta[i:j][e[i:j] == 1])
                if ties == "breslow":
                    ll -= d * (np.log(risk[j - 1]) + m)
                else:
                    tied = np.exp(eta[i:j] - m)[e[i:j] == 1].sum()
                    for l in range(int(d)):
                        ll -= np.log(risk[j - 1] - l / d * tied) + m
            i = j
    return ll

def loss(beta, X, time, event, strata, l1=0.01, l2=0.1, ties="breslow"):
    return -partial_likelihood(beta, X, time, event, strata, ties) / len(time) + l1 * np.abs(beta).sum() + 0.5 * l2 * beta @ beta

def make(k):
    rng = np.random.default_rng(k)
    n, p = [(150, 5), (400, 10)][k]
    return (0.1 * rng.standard_normal(p), rng.standard_normal((n, p)), np.ceil(rng.exponential(20, n)), (rng.random(n) < 0.7).astype(int), rng.integers(0, 3, n), 0.01, 0.1, ["breslow", "efron"][k]), 1
