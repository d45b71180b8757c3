"""Weights of a logistic regression, found by L-BFGS with a memory of the last steps, as lists of arrays."""

import numpy as np

def two_loop(g, s_list, y_list, rho_list):
    q = g.copy()
    alphas = []
    for s, y, rho in zip(reversed(s_list), reversed(y_list), reversed(rho_list)):
        a = rho * np.dot(s, q)
        alphas.append(a)
        q = q - a * y
    if s_list:
        gamma = np.dot(s_list[-1], y_list[-1]) / np.dot(y_list[-1], y_list[-1])
    else:
        gamma = 1.0
    r = gamma * q
    for s, y, rho, a in zip(s_list, y_list, rho_list, reversed(alphas)):
        b = rho * np.dot(y, r)
        r = r + s * (a - b)
    return r

def objective(w, X, t, penalty):
    z = X @ w
    p = 1 / (1 + np.exp(-z))
    f = np.mean(np.logaddexp(0.0, z) - t * z) + 0.5 * penalty * np.dot(w, w)
    return f, X.T @ (p - t) / len(t) + penalty * w

def fit(X, t, penalty, m=3, steps=12):
    w = np.zeros(X.shape[1])
    f, g = objective(w, X, t, penalty)
    s_list, y_list, rho_list = [], [], []
    for it in range(steps):
        d = -two_loop(g, s_list, y_list, rho_list)
        step = 1.0
        slope = np.dot(g, d)
        while True:
            w_new = w + step * d
            f_new, g_new = objective(w_new, X, t, penalty)
            if f_new <= f + 1e-4 * step * slope or step < 1e-8:
                break
            step *= 0.5
        s = w_new - w
        y = g_new - g
        if np.dot(s, y) > 1e-10:
            s_list.append(s)
            y_list.append(y)
            rho_list.append(1.0 / np.dot(s, y))
            if len(s_list) > m:
                s_list.pop(0)
                y_list.pop(0)
                rho_list.pop(0)
        w, f, g = w_new, f_new, g_new
        if np.linalg.norm(g) < 1e-9:
            break
    return w

def loss(log_penalty, X, t, X_test, t_test):
    w = fit(X, t, np.exp(log_penalty))
    z = X_test @ w
    return np.mean(np.logaddexp(0.0, z) - t_test * z)

def make(scale=0):
    rng = np.random.default_rng(2)
    n, p = (40, 3) if scale == 0 else (300, 8)
    X = rng.standard_normal((2 * n, p)) * np.linspace(0.5, 3.0, p)
    truth = rng.standard_normal(p)
    t = (rng.random(2 * n) < 1 / (1 + np.exp(-X @ truth))).astype(float)
    return (-3.0, X[:n], t[:n], X[n:], t[n:]), 2
