"""Stiff kinetics by an implicit method with Newton's iterations."""

import numpy as np

def robertson(y, k):
    r1 = k[0] * y[0]
    r2 = k[1] * y[1] * y[2]
    r3 = k[2] * y[1] ** 2
    return np.array([-r1 + r2, r1 - r2 - r3, r3])

def jac(y, k):
    J = np.zeros((3, 3))
    J[0, 0] = -k[0]
    J[0, 1] = k[1] * y[2]
    J[0, 2] = k[1] * y[1]
    J[1] = -J[0]
    J[1, 1] -= 2 * k[2] * y[1]
    J[2, 1] = 2 * k[2] * y[1]
    return J

def implicit_euler(f, jac, y, h, k, tol=1e-10, maxit=20):
    x = y.copy()
    for it in range(maxit):
        r = x - y - h * f(x, k)
        dx = np.linalg.solve(np.eye(len(y)) - h * jac(x, k), -r)
        x += dx
        if np.abs(dx).max() < tol:
            break
    else:
        raise RuntimeError("Newton failed")
    return x

def loss(logk, y0, times, obs, weights):
    k = np.exp(logk)
    y = y0
    res = 0.0
    for i in range(1, len(times)):
        y = implicit_euler(robertson, jac, y, times[i] - times[i - 1], k)
        e = (y - obs[i]) * weights
        res += e @ e
    return res / len(times)

def make(k):
    n = [100, 400][k]
    t = np.concatenate([[0], np.logspace(-4, 3, n)])
    rng = np.random.default_rng(k)
    return (np.log([0.04, 1e2, 3e3]), np.array([1.0, 0.0, 0.0]), t, rng.random((n + 1, 3)), np.array([1.0, 10.0, 1.0])), 2
