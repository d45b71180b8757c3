"""Bundle adjustment: rotations, projections with distortion, robust residuals."""

import numpy as np

def rodrigues(r):
    th = np.sqrt(r @ r + 1e-12)
    k = r / th
    K = np.array([[0, -k[2], k[1]], [k[2], 0, -k[0]], [-k[1], k[0], 0]])
    return np.eye(3) + np.sin(th) * K + (1 - np.cos(th)) * K @ K

def project(X, R, t, f, c, dist):
    P = X @ R.T + t
    xy = P[:, :2] / P[:, 2:]
    r2 = np.sum(xy ** 2, axis=1, keepdims=True)
    radial = 1 + dist[0] * r2 + dist[1] * r2 ** 2
    return f * radial * xy + c

def huber(r, delta=1.0):
    a = np.abs(r)
    return np.where(a < delta, 0.5 * r ** 2, delta * (a - 0.5 * delta))

def fundamental(p, q):
    A = np.stack([q[:, 0] * p[:, 0], q[:, 0] * p[:, 1], q[:, 0], q[:, 1] * p[:, 0], q[:, 1] * p[:, 1], q[:, 1], p[:, 0], p[:, 1], np.ones(len(p))], axis=1)
    _, _, Vt = np.linalg.svd(A)
    F = Vt[-1].reshape(3, 3)
    U, s, Vt = np.linalg.svd(F)
    s[2] = 0
    return U @ np.diag(s) @ Vt

def loss(cams, intr, points, obs, visible, weight=0.1):
    total = 0.0
    count = 0
    proj = []
    for i in range(len(cams)):
        cam = cams[i]
        R = rodrigues(cam[:3])
        uv = project(points, R, cam[3:], intr["f"], intr["c"], intr["dist"])
        proj.append(uv)
        r = uv[visible[i]] - obs[i][visible[i]]
        total += huber(r).sum()
        count += visible[i].sum()
    F = fundamental(proj[0] / 100, proj[1] / 100)
    ones = np.ones((len(points), 1))
    a, b = np.hstack([obs[0] / 100, ones]), np.hstack([obs[1] / 100, ones])
    epi = np.abs(np.einsum("ni,ij,nj->n", b, F / np.linalg.norm(F), a))
    return total / count + weight * epi.mean()

def make(k):
    rng = np.random.default_rng(k)
    nc, npt = [(4, 60), (10, 400)][k]
    pts = rng.standard_normal((npt, 3)) + [0, 0, 6]
    cams = np.hstack([0.1 * rng.standard_normal((nc, 3)), 0.3 * rng.standard_normal((nc, 3))])
    intr = dict(f=500.0, c=np.array([320.0, 240.0]), dist=np.array([-0.1, 0.01]))
    obs = np.stack([project(pts, rodrigues(c[:3]), c[3:], 500.0, intr["c"], intr["dist"]) + rng.standard_normal((npt, 2)) for c in cams])
    return (cams, intr, pts, obs, rng.random((nc, npt)) < 0.8), 3
