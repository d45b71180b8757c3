"""A bucket model of a catchment: snow, soil, runoff."""

import numpy as np

DEFAULTS = {"tt": 0.0, "cfmax": 3.0, "fc": 200.0, "lp": 0.7, "beta": 2.0, "k0": 0.2, "k1": 0.1, "k2": 0.02, "uzl": 20.0, "perc": 1.5, "maxbas": 3.5}

def triangular(maxbas, n=10):
    w = np.zeros(n)
    for i in range(n):
        lo, hi = i, min(i + 1, maxbas)
        if lo < maxbas:
            mid = (lo + hi) / 2
            w[i] = max(0.0, 2 / maxbas - abs(mid - maxbas / 2) * 4 / maxbas ** 2) * (hi - lo)
    return w / w.sum()

def hbv(P, T, E, p, return_states=False):
    n = len(P)
    snow = 0.0
    water = 0.0
    sm = 0.5 * p["fc"]
    suz = slz = 0.0
    q = np.zeros(n)
    states = np.zeros((n, 4))
    for t in range(n):
        if T[t] < p["tt"]:
            snow += P[t]
            rain = 0.0
            refreeze = min(water, 0.05 * p["cfmax"] * (p["tt"] - T[t]))
            snow += refreeze
            water -= refreeze
        else:
            melt = min(snow, p["cfmax"] * (T[t] - p["tt"]))
            snow -= melt
            water += melt
            rain = P[t]
        infil = rain
        if water > 0.1 * snow:
            infil += water - 0.1 * snow
            water = 0.1 * snow
        recharge = infil * (sm / p["fc"]) ** p["beta"]
        sm += infil - recharge
        if sm > p["fc"]:
            recharge += sm - p["fc"]
            sm = p["fc"]
        et = E[t] * min(sm / (p["lp"] * p["fc"]), 1.0)
        et = min(et, sm)
        sm -= et
        suz += recharge
        perc = min(p["perc"], suz)
        suz -= perc
        slz += perc
        q0 = p["k0"] * max(suz - p["uzl"], 0)
        q1 = p["k1"] * suz
        q2 = p["k2"] * slz
        suz -= q0 + q1
        slz -= q2
        q[t] = q0 + q1 + q2
        states[t] = snow, sm, suz, slz
    q = np.convolve(q, triangular(p["maxbas"]))[:n]
    return (q, states) if return_states else q

def loss(params, P, T, E, obs, warmup=30, log=False):
    p = {**DEFAULTS, **params}
    q, states = hbv(P, T, E, p, return_states=True)
    s, o = q[warmup:], obs[warmup:]
    if log:
        s, o = np.log(s + 0.01), np.log(o + 0.01)
    nse = 1 - np.sum((s - o) ** 2) / np.sum((o - o.mean()) ** 2)
    return 1 - nse + 1e-4 * states[-1].sum()

def make(k):
    rng = np.random.default_rng(k)
    n = [365, 2000][k]
    return (dict(DEFAULTS), rng.exponential(4.0, n) * (rng.random(n) < 0.4), 8 - 12 * np.cos(2 * np.pi * np.arange(n) / 365) + rng.standard_normal(n), np.full(n, 2.0), rng.exponential(2.0, n), 30, bool(k)), 1
