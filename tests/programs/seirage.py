"""An epidemic with age groups."""

import numpy as np
from dataclasses import dataclass, field

@dataclass
class Model:
    contact: np.ndarray
    population: np.ndarray
    latent: float = 4.0
    infectious: float = 6.0
    ifr: np.ndarray = field(default_factory=lambda: np.array([0.0001, 0.001, 0.01, 0.05]))

    def rhs(self, y, beta, susceptibility):
        S, E, I, R = y
        foi = beta * susceptibility * (self.contact @ (I / self.population))
        inf = foi * S
        return np.stack([-inf, inf - E / self.latent, E / self.latent - I / self.infectious, I / self.infectious]), inf

def piecewise(t, knots, values):
    if t <= knots[0]:
        return values[0]
    for i in range(1, len(knots)):
        if t < knots[i]:
            w = (t - knots[i - 1]) / (knots[i] - knots[i - 1])
            return (1 - w) * values[i - 1] + w * values[i]
    return values[-1]

def simulate(model, logbeta, susceptibility, seeds, knots, days, substeps=4):
    y = np.zeros((4, len(model.population)))
    y[2] = seeds
    y[0] = model.population - seeds
    cases = np.zeros((days, len(model.population)))
    h = 1.0 / substeps
    for day in range(days):
        for s in range(substeps):
            t = day + s * h
            b = np.exp(piecewise(t, knots, logbeta))
            k1, c1 = model.rhs(y, b, susceptibility)
            k2, c2 = model.rhs(y + h / 2 * k1, b, susceptibility)
            y = y + h * k2
            cases[day] += h * c2
    return cases

def delay_kernel(mean, n):
    k = np.arange(n)
    w = np.exp(-(k - mean) ** 2 / (2 * 9.0))
    return w / w.sum()

def loss(logbeta, susceptibility, seeds, model, knots, deaths, dispersion=10.0):
    days = len(deaths)
    cases = simulate(model, logbeta, susceptibility, seeds, knots, days)
    w = delay_kernel(14.0, 30)
    nll = 0.0
    for a in range(cases.shape[1]):
        mu = np.convolve(cases[:, a] * model.ifr[a], w)[:days] + 1e-8
        obs = deaths[:, a]
        nll -= np.sum(obs * np.log(mu / (mu + dispersion)) + dispersion * np.log(dispersion / (dispersion + mu)))
    return nll + 10 * np.sum(np.diff(logbeta) ** 2)

def make(k):
    rng = np.random.default_rng(k)
    c = rng.random((4, 4)) * 5 + np.eye(4) * 5
    m = Model(c, np.array([1e6, 2e6, 2e6, 8e5]))
    d = [60, 150][k]
    return (np.log(0.02) * np.ones(5), np.array([0.4, 0.9, 1.0, 1.1]), np.full(4, 100.0), m, np.linspace(0, d, 5), rng.poisson(3.0, (d, 4))), 3
