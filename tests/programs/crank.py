"""Options priced by Crank-Nicolson, European (Thomas's algorithm) and American (projected SOR)."""

import numpy as np

def thomas(a, b, c, d):
    n = len(d)
    cp = np.empty(n)
    dp = np.empty(n)
    cp[0] = c[0] / b[0]
    dp[0] = d[0] / b[0]
    for i in range(1, n):
        m = b[i] - a[i] * cp[i - 1]
        cp[i] = c[i] / m
        dp[i] = (d[i] - a[i] * dp[i - 1]) / m
    x = np.empty(n)
    x[-1] = dp[-1]
    for i in range(n - 2, -1, -1):
        x[i] = dp[i] - cp[i] * x[i + 1]
    return x

def psor(a, b, c, rhs, x, floor, omega=1.3, tol=1e-8, maxit=100):
    for it in range(maxit):
        err = 0.0
        for i in range(len(x)):
            s = rhs[i]
            if i > 0:
                s -= a[i] * x[i - 1]
            if i < len(x) - 1:
                s -= c[i] * x[i + 1]
            new = max(floor[i], x[i] + omega * (s / b[i] - x[i]))
            err = max(err, abs(new - x[i]))
            x[i] = new
        if err < tol:
            break
    return x

def price(sigma, r, q, K, S, steps, T, american=False):
    dt = T / steps
    j = np.arange(1, len(S) - 1)
    alpha = 0.25 * dt * (sigma ** 2 * j ** 2 - (r - q) * j)
    beta = -0.5 * dt * (sigma ** 2 * j ** 2 + r)
    gam = 0.25 * dt * (sigma ** 2 * j ** 2 + (r - q) * j)
    V = np.maximum(K - S, 0.0)
    floor = V[1:-1].copy()
    for n in range(steps):
        tau = (n + 1) * dt
        rhs = alpha * V[:-2] + (1 + beta) * V[1:-1] + gam * V[2:]
        V[0] = K if american else K * np.exp(-r * tau)
        V[-1] = 0.0
        rhs[0] += alpha[0] * V[0]
        if american:
            V[1:-1] = psor(-alpha, 1 - beta, -gam, rhs, V[1:-1].copy(), floor)
        else:
            V[1:-1] = thomas(-alpha, 1 - beta, -gam, rhs)
    return V

def loss(sigma, r, q, strikes, quotes, spot=100.0, nS=80, steps=20, american=False):
    S = np.linspace(0, 300, nS + 1)
    err = 0.0
    for K, quote in zip(strikes, quotes):
        V = price(sigma, r, q, K, S, steps, 1.0, american)
        p = np.interp(spot, S, V)
        err += (p - quote) ** 2
    return np.sqrt(err / len(strikes))

def make(k):
    return (0.25, 0.04, 0.01, np.array([80.0, 90, 100, 110.0]), np.array([3.0, 6.0, 9.0, 15.0]), 100.0, [80, 60][k], [20, 15][k], bool(k)), 3
