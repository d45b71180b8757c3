"""Radial velocities of several planets; Kepler's equation by iteration."""

import numpy as np

def solve_kepler(M, e, tol=1e-12):
    M = np.mod(M, 2 * np.pi)
    E = np.where(M < np.pi, M + e / 2, M - e / 2)
    for _ in range(50):
        f = E - e * np.sin(E) - M
        dE = f / (1 - e * np.cos(E))
        E = E - dE
        if np.max(np.abs(dE)) < tol:
            break
    return E

def radial_velocity(t, planet):
    P, K, e, w, t0 = planet["P"], planet["K"], planet["e"], planet["w"], planet["t0"]
    E = solve_kepler(2 * np.pi * (t - t0) / P, e)
    nu = 2 * np.arctan2(np.sqrt(1 + e) * np.sin(E / 2), np.sqrt(1 - e) * np.cos(E / 2))
    return K * (np.cos(nu + w) + e * np.cos(w))

def loss(planets, offsets, jitter, t, rv, err, instrument):
    model = np.zeros_like(t)
    for p in planets:
        model += radial_velocity(t, p)
    for i in range(len(offsets)):
        model[instrument == i] += offsets[i]
    s2 = err ** 2 + jitter[instrument] ** 2
    ll = -0.5 * np.sum((rv - model) ** 2 / s2 + np.log(2 * np.pi * s2))
    for p in planets:
        if not 0 <= p["e"] < 1:
            return np.inf
        ll += -0.5 * ((p["e"] - 0.1) / 0.2) ** 2
    return -ll

def make(k):
    rng = np.random.default_rng(k)
    n = [500, 5000][k]
    pl = [dict(P=10.0 * (i + 1), K=20.0, e=0.1 + 0.1 * i, w=0.3 * i, t0=1.0) for i in range(2 + k)]
    return (pl, np.zeros(3), np.ones(3), np.sort(rng.random(n)) * 500, 20 * rng.standard_normal(n), np.ones(n), rng.integers(0, 3, n)), 3
