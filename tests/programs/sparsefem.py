"""Finite elements with a sparse matrix and its solve."""

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spla

def mesh(n):
    x = np.linspace(0, 1, n + 1)
    X, Y = np.meshgrid(x, x)
    nodes = np.column_stack([X.ravel(), Y.ravel()])
    tri = []
    for j in range(n):
        for i in range(n):
            a = j * (n + 1) + i
            tri.append((a, a + 1, a + n + 2))
            tri.append((a, a + n + 2, a + n + 1))
    boundary = np.where((nodes == 0).any(1) | (nodes == 1).any(1))[0]
    return nodes, np.array(tri), boundary

def assemble(nodes, tri, kappa):
    p = nodes[tri]
    b = np.roll(p[:, :, 1], -1, axis=1) - np.roll(p[:, :, 1], -2, axis=1)
    c = np.roll(p[:, :, 0], -2, axis=1) - np.roll(p[:, :, 0], -1, axis=1)
    area = 0.5 * np.abs(b[:, 0] * c[:, 1] - b[:, 1] * c[:, 0])
    ke = kappa[:, None, None] * (b[:, :, None] * b[:, None, :] + c[:, :, None] * c[:, None, :]) / (4 * area[:, None, None])
    rows = np.repeat(tri, 3, axis=1).ravel()
    cols = np.tile(tri, (1, 3)).ravel()
    K = sp.coo_matrix((ke.ravel(), (rows, cols)), shape=(len(nodes), len(nodes))).tocsr()
    F = np.zeros(len(nodes))
    np.add.at(F, tri.ravel(), np.repeat(area / 3, 3))
    return K, F

def loss(logk, nodes, tri, interior, obs, reg=1e-3):
    kappa = np.exp(logk)
    K, F = assemble(nodes, tri, kappa)
    Kii = K[interior][:, interior]
    u = np.zeros(len(nodes))
    u[interior] = spla.spsolve(Kii, F[interior])
    d = u - obs
    return np.sum(d ** 2) + reg * np.sum(np.diff(logk) ** 2)

def make(k):
    n = [20, 40][k]
    nodes, tri, bd = mesh(n)
    interior = np.setdiff1d(np.arange(len(nodes)), bd)
    rng = np.random.default_rng(k)
    return (0.3 * rng.standard_normal(len(tri)), nodes, tri, interior, 0.1 * rng.random(len(nodes))), 1
