"""Hamiltonian Monte Carlo: gradients inside of loops, keys (bw.random) and many chains at once (bw.vmap), in one compiled program.

The target is a correlated normal distribution of four variables.  Expected: means within 0.1 of zero, covariances within 15 %, and most
proposals accepted.
"""

import numpy as np

import bwcompiler as bw

CHAINS, STEPS, LEAPS, WIDTH = 64, 200, 11, 0.25
scale = np.array([[1.0, 0.0, 0.0, 0.0], [0.8, 0.6, 0.0, 0.0], [0.0, 0.5, 0.9, 0.0], [0.2, 0.0, -0.4, 0.7]])
precision = np.linalg.inv(scale @ scale.T)


def energy(q):
    return 0.5 * q @ precision @ q


def leapfrog(q, p):
    """Hamilton's equations, in LEAPS steps of WIDTH."""
    force = bw.grad(energy)

    def leap(_, state):
        q, p = state
        q = q + WIDTH * p
        return q, p - WIDTH * force(q)

    q, p = bw.fori_loop(0, LEAPS, leap, (q, p - 0.5 * WIDTH * force(q)))
    return q, p + 0.5 * WIDTH * force(q)


def step(q, key):
    """One proposal, accepted or not."""
    momentum_key, accept_key = bw.random.split(key)
    p = bw.random.normal(momentum_key, (4,))
    proposed, p_end = leapfrog(q, p)
    gain = energy(q) + 0.5 * p @ p - energy(proposed) - 0.5 * p_end @ p_end
    accepted = np.log(bw.random.uniform(accept_key)) < gain
    return np.where(accepted, proposed, q), accepted


@bw.jit
def sample(key):
    keys = bw.random.split(key, (STEPS, CHAINS))
    start = np.zeros((CHAINS, 4))

    def sweep(q, keys):
        q, accepted = bw.vmap(step)(q, keys)
        return q, (q, accepted)

    return bw.scan(sweep, start, keys)[1]


draws, accepted = sample(bw.random.key(0))
draws = draws[20:].reshape(-1, 4)
covariance = np.cov(draws.T)
print("accepted:", round(float(accepted.mean()), 3), "means:", draws.mean(0).round(3))
print("covariance:", *covariance.round(2).tolist(), "\nexpected:  ", *(scale @ scale.T).round(2).tolist())
assert accepted.mean() > 0.7
assert np.abs(draws.mean(0)).max() < 0.1
assert np.allclose(covariance, scale @ scale.T, atol=0.15 * np.diag(scale @ scale.T).max())
