"""An ordinary differential equation fitted with adaptive steps."""

import numpy as np

A = [[], [1/5], [3/40, 9/40], [44/45, -56/15, 32/9], [19372/6561, -25360/2187, 64448/6561, -212/729],
     [9017/3168, -355/33, 46732/5247, 49/176, -5103/18656], [35/384, 0, 500/1113, 125/192, -2187/6784, 11/84]]
C = [0, 1/5, 3/10, 4/5, 8/9, 1, 1]
B5 = np.array([35/384, 0, 500/1113, 125/192, -2187/6784, 11/84, 0])
B4 = np.array([5179/57600, 0, 7571/16695, 393/640, -92097/339200, 187/2100, 1/40])

def step(f, t, y, h):
    ks = []
    for a, c in zip(A, C):
        yi = y
        for aij, kj in zip(a, ks):
            yi = yi + h * aij * kj
        ks.append(f(t + c * h, yi))
    K = np.array(ks)
    return y + h * (B5 @ K), h * ((B5 - B4) @ K)

def integrate(f, t0, t1, y0, rtol=1e-6, atol=1e-8, h=0.1, max_steps=10000):
    t, y = t0, y0
    n = 0
    while t < t1:
        if t + h > t1:
            h = t1 - t
        ynew, err = step(f, t, y, h)
        scale = atol + rtol * np.maximum(np.abs(y), np.abs(ynew))
        e = np.sqrt(np.mean((err / scale) ** 2))
        if e <= 1:
            t = t + h
            y = ynew
        factor = 0.9 * (1 / max(e, 1e-10)) ** 0.2
        h = h * min(5.0, max(0.2, factor))
        n += 1
        if n > max_steps:
            raise RuntimeError("too many steps")
    return y

def lotka(params):
    a, b, c, d = params
    def rhs(t, y):
        x, z = y
        return np.array([a * x - b * x * z, -c * z + d * x * z])
    return rhs

def loss(params, y0, times, observed):
    f = lotka(params)
    y = y0
    sse = 0.0
    t = 0.0
    for i, ti in enumerate(times):
        y = integrate(f, t, ti, y)
        t = ti
        sse += np.sum((np.log(y) - np.log(observed[i])) ** 2)
    return sse

def make(k):
    rng = np.random.default_rng(k)
    n = [10, 40][k]
    return (np.array([1.0, 0.4, 1.2, 0.3]), np.array([5.0, 2.0]), np.linspace(1, n, n), np.exp(0.5 * rng.standard_normal((n, 2))) * 3), 2
