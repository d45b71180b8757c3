"""A plane frame: beam elements assembled in a dense matrix, with supports."""

import numpy as np

def beam_stiffness(E, A, I, L):
    a = E * A / L
    b = 12 * E * I / L ** 3
    c = 6 * E * I / L ** 2
    d = 4 * E * I / L
    e = 2 * E * I / L
    return np.array([
        [a, 0, 0, -a, 0, 0],
        [0, b, c, 0, -b, c],
        [0, c, d, 0, -c, e],
        [-a, 0, 0, a, 0, 0],
        [0, -b, -c, 0, b, -c],
        [0, c, e, 0, -c, d]])

def beam_mass(rho, A, L):
    return rho * A * L / 420 * np.array([
        [140, 0, 0, 70, 0, 0],
        [0, 156, 22 * L, 0, 54, -13 * L],
        [0, 22 * L, 4 * L ** 2, 0, 13 * L, -3 * L ** 2],
        [70, 0, 0, 140, 0, 0],
        [0, 54, 13 * L, 0, 156, -22 * L],
        [0, -13 * L, -3 * L ** 2, 0, -22 * L, 4 * L ** 2]])

def rotation(c, s):
    T = np.eye(6)
    for o in (0, 3):
        T[o, o] = c
        T[o, o + 1] = s
        T[o + 1, o] = -s
        T[o + 1, o + 1] = c
    return T

def newmark(M, C, K, force, dt, steps, beta=0.25, gamma=0.5):
    n = len(M)
    u = np.zeros(n)
    v = np.zeros(n)
    a = np.linalg.solve(M, force(0.0))
    Keff = K + gamma / (beta * dt) * C + M / (beta * dt ** 2)
    inv = np.linalg.inv(Keff)
    history = np.zeros((steps, n))
    for i in range(steps):
        t = (i + 1) * dt
        rhs = force(t) + M @ (u / (beta * dt ** 2) + v / (beta * dt) + (0.5 / beta - 1) * a) \
            + C @ (gamma / (beta * dt) * u + (gamma / beta - 1) * v + dt * (gamma / (2 * beta) - 1) * a)
        un = inv @ rhs
        an = (un - u) / (beta * dt ** 2) - v / (beta * dt) - (0.5 / beta - 1) * a
        v = v + dt * ((1 - gamma) * a + gamma * an)
        u, a = un, an
        history[i] = u
    return history

def loss(E, I, damping, nodes, elements, fixed, accel, dt, area=0.01, rho=7800.0):
    nd = 3 * len(nodes)
    K = np.zeros((nd, nd))
    M = np.zeros((nd, nd))
    for e, (i, j) in enumerate(elements):
        dx, dy = nodes[j] - nodes[i]
        L = np.sqrt(dx ** 2 + dy ** 2)
        T = rotation(dx / L, dy / L)
        k = T.T @ beam_stiffness(E, area, I[e], L) @ T
        m = T.T @ beam_mass(rho, area, L) @ T
        dofs = np.r_[3 * i:3 * i + 3, 3 * j:3 * j + 3]
        for p in range(6):
            for q in range(6):
                K[dofs[p], dofs[q]] += k[p, q]
                M[dofs[p], dofs[q]] += m[p, q]
    free = fixed
    Kf = K[free][:, free]
    Mf = M[free][:, free]
    C = damping[0] * Mf + damping[1] * Kf
    infl = (free % 3 == 0).astype(float)
    def force(t):
        x = t / dt
        i = min(int(x), len(accel) - 1)
        return -Mf @ infl * accel[i]
    h = newmark(Mf, C, Kf, force, dt, len(accel))
    top = h[:, -3]
    return np.sqrt(np.mean(top ** 2)) * 1e3 + np.abs(top).max()

def make(k):
    rng = np.random.default_rng(k)
    s = [4, 8][k]
    nodes = np.array([(3.0 * c, 3.0 * r) for r in range(s + 1) for c in range(2)])
    el = []
    for r in range(s):
        el += [(2 * r, 2 * r + 2), (2 * r + 1, 2 * r + 3), (2 * r + 2, 2 * r + 3)]
    return (2e11, np.full(len(el), 1e-5) * (1 + 0.1 * rng.random(len(el))), np.array([0.1, 1e-3]), nodes, el, np.arange(6, 3*len(nodes)), rng.standard_normal([200, 400][k]), 0.01), 3
