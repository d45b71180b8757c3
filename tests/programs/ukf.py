"""An unscented Kalman filter."""

import numpy as np

class UnscentedFilter:
    def __init__(self, n, alpha=0.5, beta=2.0, kappa=0.0):
        self.n = n
        lam = alpha ** 2 * (n + kappa) - n
        self.lam = lam
        self.wm = np.full(2 * n + 1, 0.5 / (n + lam))
        self.wc = self.wm.copy()
        self.wm[0] = lam / (n + lam)
        self.wc[0] = lam / (n + lam) + 1 - alpha ** 2 + beta

    def sigma_points(self, x, P):
        L = np.linalg.cholesky((self.n + self.lam) * P)
        pts = np.empty((2 * self.n + 1, self.n))
        pts[0] = x
        for i in range(self.n):
            pts[1 + i] = x + L[:, i]
            pts[1 + self.n + i] = x - L[:, i]
        return pts

    def transform(self, pts, noise):
        mean = self.wm @ pts
        d = pts - mean
        return mean, d.T @ (self.wc[:, None] * d) + noise, d

def motion(pts, dt, drag):
    out = np.empty_like(pts)
    speed = np.hypot(pts[:, 2], pts[:, 3])
    out[:, 0] = pts[:, 0] + dt * pts[:, 2]
    out[:, 1] = pts[:, 1] + dt * pts[:, 3]
    out[:, 2] = pts[:, 2] - dt * drag * speed * pts[:, 2]
    out[:, 3] = pts[:, 3] - dt * (drag * speed * pts[:, 3] + 9.81 * 0.1)
    return out

def radar(pts):
    return np.column_stack([np.sqrt(pts[:, 0] ** 2 + pts[:, 1] ** 2), np.arctan2(pts[:, 1], pts[:, 0])])

def loss(drag, logq, logr, measurements, dt=0.1, skip=None):
    f = UnscentedFilter(4)
    x = np.array([100.0, 50.0, 20.0, 15.0])
    P = np.diag([10.0, 10.0, 4.0, 4.0])
    Q = np.exp(logq) * np.diag([dt ** 3 / 3, dt ** 3 / 3, dt, dt])
    R = np.diag(np.exp(logr))
    nll = 0.0
    for t, z in enumerate(measurements):
        pts = f.sigma_points(x, P)
        pred = motion(pts, dt, drag)
        x, P, dx = f.transform(pred, Q)
        if skip is not None and skip[t]:
            continue
        zp = radar(pred)
        zm, S, dz = f.transform(zp, R)
        C = dx.T @ (f.wc[:, None] * dz)
        K = np.linalg.solve(S, C.T).T
        innov = z - zm
        x = x + K @ innov
        P = P - K @ S @ K.T
        P = 0.5 * (P + P.T)
        sign, logdet = np.linalg.slogdet(S)
        nll += 0.5 * (innov @ np.linalg.solve(S, innov) + logdet + 2 * np.log(2 * np.pi))
    return nll

def make(k):
    rng = np.random.default_rng(k)
    n = [150, 400][k]
    t = 0.1 * np.arange(1, n + 1)
    xs = 100 + 20 * t; ys = 50 + 15 * t - 0.3 * t ** 2 + 100
    z = np.stack([np.hypot(xs, ys), np.arctan2(ys, xs)], 1) + rng.standard_normal((n, 2)) * [1.0, 0.01]
    return (0.001, np.log(0.1), np.log([1.0, 1e-4]), z) + ((0.1, np.arange(n) % 7 == 3) if k else ()), 3
