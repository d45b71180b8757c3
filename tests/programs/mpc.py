"""A linear-quadratic regulator by Riccati's recursion, and the pendulum that it controls."""

import numpy as np
from typing import NamedTuple

class LQR(NamedTuple):
    A: np.ndarray
    B: np.ndarray
    Q: np.ndarray
    R: np.ndarray

def riccati(sys, horizon):
    P = sys.Q
    gains = []
    for _ in range(horizon):
        S = sys.R + sys.B.T @ P @ sys.B
        K = np.linalg.solve(S, sys.B.T @ P @ sys.A)
        P = sys.Q + sys.A.T @ P @ (sys.A - sys.B @ K)
        P = (P + P.T) / 2
        gains.append(K)
    gains.reverse()
    return P, gains

def pendulum(x, u, p):
    th, om = x[1], x[3]
    s, c = np.sin(th), np.cos(th)
    tot = p["M"] + p["m"]
    tmp = (u + p["m"] * p["l"] * om ** 2 * s) / tot
    alpha = (p["g"] * s - c * tmp) / (p["l"] * (4 / 3 - p["m"] * c ** 2 / tot))
    acc = tmp - p["m"] * p["l"] * alpha * c / tot
    return np.array([x[2], om, acc, alpha])

def linearise(p, dt):
    eps = 1e-4
    A = np.zeros((4, 4))
    x0 = np.zeros(4)
    f0 = pendulum(x0, 0.0, p)
    for i in range(4):
        e = np.zeros(4)
        e[i] = eps
        A[:, i] = (pendulum(x0 + e, 0.0, p) - f0) / eps
    B = ((pendulum(x0, eps, p) - f0) / eps)[:, None]
    return np.eye(4) + dt * A, dt * B

def loss(qdiag, r, masses, x0, dt=0.02, steps=200, limit=15.0, horizon=100, noise=None):
    p = {"M": masses[0], "m": masses[1], "l": 0.5, "g": 9.81}
    A, B = linearise(p, dt)
    P, gains = riccati(LQR(A, B, np.diag(qdiag), np.array([[r]])), horizon)
    x = x0.copy()
    cost = 0.0
    for k in range(steps):
        K = gains[min(k, horizon - 1)]
        u = -(K @ x)[0]
        u = max(-limit, min(limit, u))
        x = x + dt * pendulum(x, u, p)
        if noise is not None:
            x[2:] += noise[k]
        cost += dt * (x @ (qdiag * x) + r * u ** 2)
    return cost + 0.01 * np.trace(P)

def make(k):
    rng = np.random.default_rng(k)
    return (np.array([1.0, 10.0, 0.1, 0.1]), 0.05, np.array([1.0, 0.2]), np.array([0.5, 0.2, 0.0, 0.0]), 0.02, [200, 600][k], 15.0, [100, 300][k], None if k == 0 else 0.01 * rng.standard_normal((600, 2))), 4
