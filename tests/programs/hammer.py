"""Water hammer in a pipeline by the method of characteristics: valve closing, surge tank, vapour pressure limit."""

import numpy as np

g = 9.81

def friction_factor(V, D, eps=1e-4, nu=1e-6):
    Re = np.abs(V) * D / nu + 1.0
    f = np.where(Re < 2000, 64 / Re, 0.25 / np.log10(eps / (3.7 * D) + 5.74 / Re ** 0.9) ** 2)
    return f

def valve(t, tc, m):
    if t >= tc:
        return 0.0
    return (1 - t / tc) ** m

def loss(H0, Q0, wave, closing, L, D, N, tmax):
    A = np.pi * D ** 2 / 4
    dx = L / N
    dt = dx / wave
    B = wave / (g * A)
    tc, m = closing
    nt = int(tmax / (L / N / 1200.0))
    H = np.zeros((nt, N + 1))
    Q = np.zeros((nt, N + 1))
    f = friction_factor(Q0 / A, D)
    Rr = f * dx / (2 * g * D * A ** 2)
    for i in range(N + 1):
        H[0, i] = H0 - i * Rr * Q0 * abs(Q0)
        Q[0, i] = Q0
    Hv0 = H[0, N]
    Ht = H0 * 0.98
    At = 5.0
    mid = N // 2
    for n in range(1, nt):
        t = n * dt
        fr = friction_factor(Q[n - 1] / A, D)
        R = fr * dx / (2 * g * D * A ** 2)
        CP = H[n - 1, :-1] + B * Q[n - 1, :-1] - R[:-1] * Q[n - 1, :-1] * np.abs(Q[n - 1, :-1])
        CM = H[n - 1, 1:] - B * Q[n - 1, 1:] + R[1:] * Q[n - 1, 1:] * np.abs(Q[n - 1, 1:])
        H[n, 1:-1] = (CP[:-1] + CM[1:]) / 2
        Q[n, 1:-1] = (CP[:-1] - CM[1:]) / (2 * B)
        H[n, 0] = H0
        Q[n, 0] = (H0 - CM[0]) / B
        tau = valve(t, tc, m)
        if tau <= 0:
            Q[n, N] = 0.0
            H[n, N] = CP[-1]
        else:
            Cv = (tau * Q0) ** 2 / (2 * Hv0)
            Q[n, N] = -B * Cv + np.sqrt((B * Cv) ** 2 + 2 * Cv * max(CP[-1], 0.0))
            H[n, N] = CP[-1] - B * Q[n, N]
        low = H[n] < -10.0
        H[n][low] = -10.0
        dH = H[n, mid] - Ht
        Qt = 0.01 * np.sign(dH) * np.sqrt(abs(dH))
        Ht += Qt * dt / At
        H[n, mid] -= B * Qt / 2
    return np.max(H[:, N]) / H0 - 0.1 * np.percentile(H[:, mid], 5) / H0

def make(k):
    return (150.0, 0.477, 1200.0, np.array([2.1, 1.5]), 600.0, 0.5, [10, 12][k], [8.0, 5.0][k]), 4
