"""Distances on an ellipsoid by Vincenty's formulas."""

import numpy as np

A_WGS, F_WGS = 6378137.0, 1 / 298.257223563

def to_ecef(lat, lon, h, a=A_WGS, f=F_WGS):
    e2 = f * (2 - f)
    N = a / np.sqrt(1 - e2 * np.sin(lat) ** 2)
    return np.stack([(N + h) * np.cos(lat) * np.cos(lon), (N + h) * np.cos(lat) * np.sin(lon), (N * (1 - e2) + h) * np.sin(lat)], axis=-1)

def to_geodetic(xyz, a=A_WGS, f=F_WGS, tol=1e-12):
    x, y, z = xyz.T
    e2 = f * (2 - f)
    p = np.hypot(x, y)
    lat = np.arctan2(z, p * (1 - e2))
    while True:
        N = a / np.sqrt(1 - e2 * np.sin(lat) ** 2)
        h = p / np.cos(lat) - N
        new = np.arctan2(z, p * (1 - e2 * N / (N + h)))
        if np.all(np.abs(new - lat) < tol):
            return new, np.arctan2(y, x), h
        lat = new

def vincenty(lat1, lon1, lat2, lon2, a=A_WGS, f=F_WGS):
    b = a * (1 - f)
    U1, U2 = np.arctan((1 - f) * np.tan(lat1)), np.arctan((1 - f) * np.tan(lat2))
    L = lon2 - lon1
    lam = L
    for _ in range(200):
        sl, cl = np.sin(lam), np.cos(lam)
        ss = np.sqrt((np.cos(U2) * sl) ** 2 + (np.cos(U1) * np.sin(U2) - np.sin(U1) * np.cos(U2) * cl) ** 2)
        cs = np.sin(U1) * np.sin(U2) + np.cos(U1) * np.cos(U2) * cl
        sig = np.arctan2(ss, cs)
        sa = np.cos(U1) * np.cos(U2) * sl / ss
        c2 = 1 - sa ** 2
        cm = cs - 2 * np.sin(U1) * np.sin(U2) / c2
        C = f / 16 * c2 * (4 + f * (4 - 3 * c2))
        old = lam
        lam = L + (1 - C) * f * sa * (sig + C * ss * (cm + C * cs * (-1 + 2 * cm ** 2)))
        if np.abs(lam - old).max() < 1e-12:
            break
    u2 = c2 * (a ** 2 - b ** 2) / b ** 2
    A = 1 + u2 / 16384 * (4096 + u2 * (-768 + u2 * (320 - 175 * u2)))
    B = u2 / 1024 * (256 + u2 * (-128 + u2 * (74 - 47 * u2)))
    ds = B * ss * (cm + B / 4 * (cs * (-1 + 2 * cm ** 2) - B / 6 * cm * (-3 + 4 * ss ** 2) * (-3 + 4 * cm ** 2)))
    return b * A * (sig - ds)

def helmert(xyz, p):
    t, s, r = p[:3], p[3] * 1e-6, p[4:] * 1e-6
    R = np.array([[1, -r[2], r[1]], [r[2], 1, -r[0]], [-r[1], r[0], 1]])
    return t + (1 + s) * xyz @ R.T

def loss(params, heights, lat, lon, ref, sigma):
    xyz = helmert(to_ecef(lat, lon, heights), params)
    la, lo, h = to_geodetic(xyz)
    d = vincenty(la[:-1], lo[:-1], la[1:], lo[1:])
    r = (d - ref) / sigma
    w = np.where(np.abs(r) < 2, 0.5 * r ** 2, 2 * (np.abs(r) - 1))
    return w.mean() + np.mean((h - heights) ** 2) / 100

def make(k):
    rng = np.random.default_rng(k)
    n = [500, 5000][k]
    lat, lon = np.cumsum(0.001 * rng.random(n)) % 1.0 + 0.1, np.cumsum(0.0007 * rng.random(n))
    d = vincenty(lat[:-1], lon[:-1], lat[1:], lon[1:])
    return (np.array([1.0, 2.0, 3.0, 1.0, 0.1, 0.2, 0.3]), 100 * rng.random(n), lat, lon, d + rng.standard_normal(n - 1), 1.0), 2
