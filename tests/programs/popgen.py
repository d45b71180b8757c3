"""Wright and Fisher's model of an allele as a hidden Markov chain."""

import numpy as np
from scipy.special import betaln, gammaln

def wright_fisher_matrix(N, s, h, mu):
    i = np.arange(2 * N + 1)
    p = i / (2 * N)
    wbar = p ** 2 * (1 + s) + 2 * p * (1 - p) * (1 + h * s) + (1 - p) ** 2
    ps = (p ** 2 * (1 + s) + p * (1 - p) * (1 + h * s)) / wbar
    ps = ps * (1 - mu) + (1 - ps) * mu
    ps = np.clip(ps, 1e-12, 1 - 1e-12)
    j = i
    logc = gammaln(2 * N + 1) - gammaln(j + 1) - gammaln(2 * N - j + 1)
    return np.exp(logc[None, :] + j[None, :] * np.log(ps)[:, None] + (2 * N - j)[None, :] * np.log1p(-ps)[:, None])

def forward(P, samples, N):
    dist = np.ones(2 * N + 1) / (2 * N + 1)
    freqs = np.arange(2 * N + 1) / (2 * N)
    ll = 0.0
    g = 0
    for gen, k, n in samples:
        while g < gen:
            dist = dist @ P
            g += 1
        f = np.clip(freqs, 1e-9, 1 - 1e-9)
        emit = np.exp(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1) + k * np.log(f) + (n - k) * np.log(1 - f))
        post = dist * emit
        z = post.sum()
        ll += np.log(z)
        dist = post / z
    return ll

def loss(s, h, logmu, samples, N=40):
    P = wright_fisher_matrix(N, s, h, np.exp(logmu))
    ll = 0.0
    for locus in samples:
        ll += forward(P, locus, N)
    return -ll + 0.5 * (s / 0.1) ** 2 + 0.5 * ((h - 0.5) / 0.3) ** 2

def make(k):
    rng = np.random.default_rng(k)
    L = [3, 8][k]
    return (0.05, 0.5, np.log(1e-3), [[(10 * t, int(rng.integers(0, 20)), 20) for t in range(6)] for _ in range(L)], [40, 60][k]), 3
