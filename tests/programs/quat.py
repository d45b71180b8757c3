"""An attitude filter with quaternions."""

import numpy as np

def qmul(a, b):
    w1, x1, y1, z1 = a
    w2, x2, y2, z2 = b
    return np.array([w1 * w2 - x1 * x2 - y1 * y2 - z1 * z2, w1 * x2 + x1 * w2 + y1 * z2 - z1 * y2,
                     w1 * y2 - x1 * z2 + y1 * w2 + z1 * x2, w1 * z2 + x1 * y2 - y1 * x2 + z1 * w2])

def rotmat(q):
    w, x, y, z = q
    return np.array([[1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
                     [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
                     [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)]])

class Madgwick:
    def __init__(self, beta, bias=None, rate=100.0):
        self.beta = beta
        self.q = np.array([1.0, 0.0, 0.0, 0.0])
        self.bias = np.zeros(3) if bias is None else bias
        self.dt = 1.0 / rate

    def update(self, gyro, acc):
        q = self.q
        gyro = gyro - self.bias
        qdot = 0.5 * qmul(q, np.array([0.0, *gyro]))
        norm = np.linalg.norm(acc)
        if norm > 0:
            a = acc / norm
            w, x, y, z = q
            f = np.array([2 * (x * z - w * y) - a[0], 2 * (w * x + y * z) - a[1], 2 * (0.5 - x ** 2 - y ** 2) - a[2]])
            J = np.array([[-2 * y, 2 * z, -2 * w, 2 * x], [2 * x, 2 * w, 2 * z, 2 * y], [0, -4 * x, -4 * y, 0]])
            grad = J.T @ f
            n = np.linalg.norm(grad)
            if n > 1e-12:
                qdot -= self.beta * grad / n
        q = q + qdot * self.dt
        self.q = q / np.linalg.norm(q)
        return self.q

def loss(beta, bias, scale, gyro, acc, ref):
    filt = Madgwick(beta, bias)
    err = 0.0
    for i in range(len(gyro)):
        q = filt.update(scale * gyro[i], acc[i])
        R = rotmat(q)
        e = R[2] - ref[i]
        err += e @ e
    return np.sqrt(err / len(gyro))

def make(k):
    rng = np.random.default_rng(k)
    n = [300, 1000][k]
    ref = rng.standard_normal((n, 3)) * 0.1 + [0, 0, 1.0]
    return (0.1, np.array([0.01, -0.02, 0.03]), np.array([1.0, 1.01, 0.99]), 0.3 * rng.standard_normal((n, 3)), rng.standard_normal((n, 3)) * 0.1 + [0.1, 0, 1.0], ref), 3
