"""Travel times by fast sweeping over the four directions of a grid."""

import numpy as np
import heapq

def fast_sweep(slow, src, dx, sweeps=2):
    ny, nx = slow.shape
    T = np.full((ny, nx), 1e10)
    T[src] = 0.0
    for s in range(sweeps):
        for ys, xs in ((range(ny), range(nx)), (range(ny), range(nx - 1, -1, -1)),
                       (range(ny - 1, -1, -1), range(nx - 1, -1, -1)), (range(ny - 1, -1, -1), range(nx))):
            for i in ys:
                for j in xs:
                    a = min(T[i - 1, j] if i > 0 else 1e10, T[i + 1, j] if i < ny - 1 else 1e10)
                    b = min(T[i, j - 1] if j > 0 else 1e10, T[i, j + 1] if j < nx - 1 else 1e10)
                    f = slow[i, j] * dx
                    if abs(a - b) >= f:
                        t = min(a, b) + f
                    else:
                        t = 0.5 * (a + b + np.sqrt(2 * f * f - (a - b) ** 2))
                    if t < T[i, j]:
                        T[i, j] = t
    return T

def bilinear(T, y, x):
    i, j = int(y), int(x)
    wy, wx = y - i, x - j
    return (1 - wy) * (1 - wx) * T[i, j] + (1 - wy) * wx * T[i, j + 1] + wy * (1 - wx) * T[i + 1, j] + wy * wx * T[i + 1, j + 1]

def loss(logv, sources, receivers, times, dx=0.1, smooth=0.01):
    slow = np.exp(-logv)
    res = 0.0
    n = 0
    for k, src in enumerate(sources):
        T = fast_sweep(slow, tuple(src), dx)
        for r, (y, x) in enumerate(receivers):
            d = bilinear(T, y, x) - times[k, r]
            res += d * d
            n += 1
    gy, gx = np.gradient(logv)
    return res / n + smooth * np.mean(gy ** 2 + gx ** 2)

def make(k):
    rng = np.random.default_rng(k)
    n, ns = [(15, 2), (24, 3)][k]
    return (0.2 * rng.standard_normal((n, n)), [(0, 3), (n - 1, 4), (2, n - 1)][:ns], [(3.3, 5.2), (8.7, 2.1), (10.1, 11.9)], rng.random((ns, 3)), 0.1), 1
