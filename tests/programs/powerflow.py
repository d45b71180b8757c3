"""Power flow in a network by Newton's method."""

import numpy as np

class Network:
    def __init__(self, lines, nbus, slack, pv):
        self.lines = lines
        self.nbus = nbus
        self.slack = slack
        self.pv = pv
        self.pq = [b for b in range(nbus) if b != slack and b not in pv]

    def ybus(self, r, x, b):
        Y = np.zeros((self.nbus, self.nbus), dtype=complex)
        for k, (i, j) in enumerate(self.lines):
            y = 1 / (r[k] + 1j * x[k])
            Y[i, i] += y + 0.5j * b[k]
            Y[j, j] += y + 0.5j * b[k]
            Y[i, j] -= y
            Y[j, i] -= y
        return Y

def newton_power_flow(net, Y, P, Q, vset, tol=1e-9, maxiter=15):
    V = np.ones(net.nbus)
    V[net.slack] = vset[0]
    V[net.pv] = vset[1:]
    th = np.zeros(net.nbus)
    pvpq = net.pv + net.pq
    G, B = Y.real, Y.imag
    for it in range(maxiter):
        Vc = V * np.exp(1j * th)
        S = Vc * np.conj(Y @ Vc)
        mis = np.concatenate([(P - S.real)[pvpq], (Q - S.imag)[net.pq]])
        if np.linalg.norm(mis, np.inf) < tol:
            break
        diagV = np.diag(Vc)
        diagI = np.diag(Y @ Vc)
        dth = 1j * diagV @ np.conj(diagI - Y @ diagV)
        dV = diagV @ np.conj(Y @ np.diag(np.exp(1j * th))) + np.conj(diagI) @ np.diag(np.exp(1j * th))
        J = np.block([[dth.real[np.ix_(pvpq, pvpq)], dV.real[np.ix_(pvpq, net.pq)]],
                      [dth.imag[np.ix_(net.pq, pvpq)], dV.imag[np.ix_(net.pq, net.pq)]]])
        dx = np.linalg.solve(J, mis)
        th[pvpq] += dx[:len(pvpq)]
        V[net.pq] += dx[len(pvpq):]
    return V, th

def loss(P, Q, vset, r, x, b, net, limits):
    Y = net.ybus(r, x, b)
    V, th = newton_power_flow(net, Y, P, Q, vset)
    Vc = V * np.exp(1j * th)
    losses = (Vc * np.conj(Y @ Vc)).real.sum()
    over = 0.0
    for k, (i, j) in enumerate(net.lines):
        flow = abs((Vc[i] - Vc[j]) / (r[k] + 1j * x[k]))
        if flow > limits[k]:
            over += (flow - limits[k]) ** 2
    return losses + over + 10 * np.sum(np.maximum(0, np.abs(V - 1) - 0.02) ** 2)

def make(k):
    rng = np.random.default_rng(k)
    n = [14, 40][k]
    lines = [(i, i + 1) for i in range(n - 1)] + [(int(rng.integers(0, n - 3)), int(rng.integers(n - 3, n))) for _ in range(n)]
    lines = [(i, j) for i, j in lines if i != j]
    m = len(lines)
    net = Network(lines, n, 0, [3, n // 2])
    return (-0.05 * rng.random(n), -0.02 * rng.random(n), np.array([1.02, 1.0, 1.01]), 0.01 + 0.01 * rng.random(m), 0.05 + 0.05 * rng.random(m), 0.01 * np.ones(m), net, 0.05 * np.ones(m)), 6
