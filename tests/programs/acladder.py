"""Impedance of an AC ladder network, fitted to a measured spectrum (complex numbers)."""

import numpy as np

class Circuit:
    def __init__(self, n):
        self.n = n
        self.elements = []

    def add(self, kind, a, b, value):
        self.elements.append((kind, a, b, value))

    def admittance(self, omega):
        Y = np.zeros((self.n, self.n), dtype=complex)
        for kind, a, b, value in self.elements:
            if kind == "R":
                y = 1 / value
            elif kind == "C":
                y = 1j * omega * value
            elif kind == "L":
                y = 1 / (1j * omega * value)
            else:
                raise ValueError(kind)
            if a > 0:
                Y[a - 1, a - 1] += y
            if b > 0:
                Y[b - 1, b - 1] += y
            if a > 0 and b > 0:
                Y[a - 1, b - 1] -= y
                Y[b - 1, a - 1] -= y
        return Y

def response(circuit, omegas, source, out):
    H = np.zeros(len(omegas), dtype=complex)
    for i, w in enumerate(omegas):
        Y = circuit.admittance(w)
        I = np.zeros(circuit.n, dtype=complex)
        I[source - 1] = 1.0
        H[i] = np.linalg.solve(Y, I)[out - 1]
    return H

def loss(R, L, C, freqs, target_db, load=50.0):
    n = len(L) + 1
    c = Circuit(n)
    c.add("R", 1, 0, R)
    for i in range(len(L)):
        c.add("L", i + 1, i + 2, L[i])
        c.add("C", i + 1, 0, C[i])
    c.add("R", n, 0, load)
    H = response(c, 2 * np.pi * freqs, 1, n)
    db = 20 * np.log10(np.abs(H))
    phase = np.unwrap(np.angle(H))
    delay = -np.diff(phase) / np.diff(freqs)
    return np.mean((db - target_db) ** 2) + 1e3 * np.std(delay)

def make(k):
    n, m = [(3, 60), (6, 200)][k]
    rng = np.random.default_rng(k)
    f = np.logspace(5, 7, m)
    return (50.0, 1e-6 * (1 + rng.random(n)), 4e-10 * (1 + rng.random(n)), f, 28 - 20 * np.log10(1 + (f / 2e6) ** 2)), 3
