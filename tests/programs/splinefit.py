"""A penalised B-spline fitted robustly, with missing data; generalised cross-validation."""

import numpy as np
import numpy.ma as ma

def basis(x, knots, degree):
    n = len(knots) - degree - 1
    B = np.zeros((len(x), len(knots) - 1))
    for i in range(len(knots) - 1):
        B[:, i] = (x >= knots[i]) & (x < knots[i + 1])
    B[x == knots[-1], n - 1] = 1
    for d in range(1, degree + 1):
        new = np.zeros_like(B)
        for i in range(len(knots) - d - 1):
            left = knots[i + d] - knots[i]
            right = knots[i + d + 1] - knots[i + 1]
            if left > 0:
                new[:, i] += (x - knots[i]) / left * B[:, i]
            if right > 0:
                new[:, i] += (knots[i + d + 1] - x) / right * B[:, i + 1]
        B = new
    return B[:, :n]

def penalty(n, order=2):
    D = np.diff(np.eye(n), order, axis=0)
    return D.T @ D

def gcv(y, w, B, P, lam):
    A = (B * w[:, None]).T @ B + lam * P
    c = np.linalg.solve(A, B.T @ (w * y))
    H = B @ np.linalg.solve(A, (B * w[:, None]).T)
    edf = np.trace(H)
    n = np.sum(w > 0)
    r = y - B @ c
    return n * np.sum(w * r ** 2) / (n - edf) ** 2, c, edf

def loss(loglam, warp, x, y, missing, interior=10, robust=3):
    xw = x + warp[0] * np.sin(np.pi * x) + warp[1] * np.sin(2 * np.pi * x)
    knots = np.concatenate([[0] * 4, np.linspace(0, 1, interior)[1:-1], [1] * 4])
    B = basis(xw, knots, 3)
    P = penalty(B.shape[1])
    w = np.where(missing, 0.0, 1.0)
    lam = np.exp(loglam)
    for it in range(robust):
        score, c, edf = gcv(y, w, B, P, lam)
        r = y - B @ c
        s = 1.4826 * np.median(np.abs(r[~missing]))
        u = r / (4.685 * s)
        w = np.where(missing | (np.abs(u) > 1), 0.0, (1 - u ** 2) ** 2)
    return np.log(score) + 0.01 * edf

def make(k):
    rng = np.random.default_rng(k)
    n = [200, 1000][k]
    x = np.sort(rng.random(n))
    return (-3.0, np.array([0.02, 0.01]), x, np.sin(6 * x) + 0.1 * rng.standard_normal(n), rng.random(n) < 0.1, [10, 20][k]), 2
