"""Smoothed particle hydrodynamics: a toy star (after Philip Mocz)."""

import numpy as np
from scipy.special import gamma

def W(x, y, z, h):
    r = np.sqrt(x ** 2 + y ** 2 + z ** 2)
    w = (1.0 / (h * np.sqrt(np.pi))) ** 3 * np.exp(-r ** 2 / h ** 2)
    return w

def gradW(x, y, z, h):
    r = np.sqrt(x ** 2 + y ** 2 + z ** 2)
    n = -2 * np.exp(-r ** 2 / h ** 2) / h ** 5 / (np.pi) ** (3 / 2)
    wx = n * x
    wy = n * y
    wz = n * z
    return wx, wy, wz

def getPairwiseSeparations(ri, rj):
    M = ri.shape[0]
    N = rj.shape[0]
    rix = ri[:, 0].reshape((M, 1))
    riy = ri[:, 1].reshape((M, 1))
    riz = ri[:, 2].reshape((M, 1))
    rjx = rj[:, 0].reshape((N, 1))
    rjy = rj[:, 1].reshape((N, 1))
    rjz = rj[:, 2].reshape((N, 1))
    dx = rix - rjx.T
    dy = riy - rjy.T
    dz = riz - rjz.T
    return dx, dy, dz

def getDensity(r, pos, m, h):
    M = r.shape[0]
    dx, dy, dz = getPairwiseSeparations(r, pos)
    rho = np.sum(m * W(dx, dy, dz, h), 1).reshape((M, 1))
    return rho

def getPressure(rho, k, n):
    return k * rho ** (1 + 1 / n)

def getAcc(pos, vel, m, h, k, n, lmbda, nu):
    N = pos.shape[0]
    rho = getDensity(pos, pos, m, h)
    P = getPressure(rho, k, n)
    dx, dy, dz = getPairwiseSeparations(pos, pos)
    dWx, dWy, dWz = gradW(dx, dy, dz, h)
    ax = -np.sum(m * (P / rho ** 2 + P.T / rho.T ** 2) * dWx, 1).reshape((N, 1))
    ay = -np.sum(m * (P / rho ** 2 + P.T / rho.T ** 2) * dWy, 1).reshape((N, 1))
    az = -np.sum(m * (P / rho ** 2 + P.T / rho.T ** 2) * dWz, 1).reshape((N, 1))
    a = np.hstack((ax, ay, az))
    a -= lmbda * pos
    a -= nu * vel
    return a

def loss(pos, vel, M, R, k, steps):
    n = 1
    nu = 1
    N = len(pos)
    h = 0.1 * 3
    dt = 0.04
    lmbda = 2 * k * (1 + n) * np.pi ** (-3 / (2 * n)) * (M * gamma(5 / 2 + n) / R ** 3 / gamma(1 + n)) ** (1 / n) / R ** 2
    m = M / N
    pos = pos.copy()
    vel = vel.copy()
    acc = getAcc(pos, vel, m, h, k, n, lmbda, nu)
    for i in range(steps):
        vel += acc * dt / 2
        pos += vel * dt
        acc = getAcc(pos, vel, m, h, k, n, lmbda, nu)
        vel += acc * dt / 2
    rho = getDensity(pos, pos, m, h)
    rr = np.zeros((50, 3))
    rlin = np.linspace(0, 1, 50)
    rr[:, 0] = rlin
    rho_analytic = lmbda / (4 * k) * (R ** 2 - rlin ** 2)
    rho_radial = getDensity(rr, pos, m, h)
    return np.mean((rho_radial[:, 0] - rho_analytic) ** 2) + np.log(rho).mean()

def make(k):
    rng = np.random.default_rng(42 + k)
    N = [40, 60][k]
    return (rng.standard_normal((N, 3)), np.zeros((N, 3)), 2.0, 0.75, 0.1, 10 + 5 * k), 5
