"""Spins on a lattice: transfer matrices, mean field, likelihood of samples."""

import numpy as np

def energy(spins, J, h):
    e = 0.0
    for axis in (0, 1):
        e -= J[axis] * np.sum(spins * np.roll(spins, 1, axis=axis))
    return e - h * spins.sum()

def transfer_matrix(J, h, L):
    states = np.array([[1 if (s >> i) & 1 else -1 for i in range(L)] for s in range(2 ** L)])
    within = J[1] * np.sum(states * np.roll(states, 1, axis=1), axis=1)
    between = J[0] * states @ states.T
    field = h * states.sum(axis=1)
    return np.exp(between + 0.5 * (within[:, None] + within[None, :]) + 0.5 * (field[:, None] + field[None, :]))

def logZ(J, h, L, M):
    T = transfer_matrix(J, h, L)
    v = np.ones(len(T))
    total = 0.0
    for _ in range(M):
        v = T @ v
        n = np.linalg.norm(v)
        total += np.log(n)
        v /= n
    return total + np.log(v.sum())

def meanfield(J, h, m0, sweeps):
    m = m0.copy()
    ny, nx = m.shape
    for s in range(sweeps):
        for parity in (0, 1):
            for i in range(ny):
                for j in range((i + parity) % 2, nx, 2):
                    nb = J[0] * (m[i - 1, j] + m[(i + 1) % ny, j]) + J[1] * (m[i, j - 1] + m[i, (j + 1) % nx])
                    m[i, j] = 0.5 * m[i, j] + 0.5 * np.tanh(nb + h)
    return m

def loss(J, h, m0, samples, L=6, M=20, sweeps=5):
    e = np.array([energy(s, J, h) for s in samples])
    m = meanfield(J, h, m0, sweeps)
    return e.mean() + logZ(J, h, L, M) * samples[0].size / (L * M) + np.var(m) + (m.mean() - 0.1) ** 2

def make(k):
    rng = np.random.default_rng(k)
    n = [16, 32][k]
    return (np.array([0.3, 0.25]), 0.05, 0.1 * rng.standard_normal((n, n)), rng.choice([-1, 1], size=([10, 30][k], n, n)), [6, 8][k], 20, [5, 8][k]), 3
