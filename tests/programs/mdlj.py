"""Molecular dynamics with a list of neighbours and a thermostat."""

import numpy as np

class LennardJones:
    def __init__(self, epsilon, sigma, rcut):
        self.epsilon = epsilon
        self.sigma = sigma
        self.rcut = rcut

    def energy_and_forces(self, pos, pairs, box):
        i, j = pairs[:, 0], pairs[:, 1]
        d = pos[i] - pos[j]
        d -= box * np.round(d / box)
        r2 = np.sum(d * d, axis=1)
        inside = r2 < self.rcut ** 2
        s2 = np.where(inside, self.sigma ** 2 / r2, 0.0)
        s6 = s2 ** 3
        e = 4 * self.epsilon * np.sum(s6 * s6 - s6)
        fmag = 24 * self.epsilon * (2 * s6 * s6 - s6) / r2
        f = np.zeros_like(pos)
        np.add.at(f, i, fmag[:, None] * d)
        np.add.at(f, j, -fmag[:, None] * d)
        return e, f

def neighbour_list(pos, box, cutoff):
    n = len(pos)
    d = pos[:, None, :] - pos[None, :, :]
    d -= box * np.round(d / box)
    r2 = (d ** 2).sum(-1)
    i, j = np.triu_indices(n, 1)
    keep = r2[i, j] < cutoff ** 2
    return np.stack([i[keep], j[keep]], axis=1)

def temperature(vel, mass):
    return (mass[:, None] * vel ** 2).sum() / (3 * len(mass))

def loss(epsilon, sigma, pos0, vel0, mass, pairs, params):
    box, dt = params["box"], params["dt"]
    pot = LennardJones(epsilon, sigma, params["rcut"])
    pos = pos0.copy()
    vel = vel0.copy()
    e, f = pot.energy_and_forces(pos, pairs, box)
    energies = []
    temps = np.empty(params["steps"])
    for step in range(params["steps"]):
        vel += 0.5 * dt * f / mass[:, None]
        pos += dt * vel
        pos %= box
        e, f = pot.energy_and_forces(pos, pairs, box)
        vel += 0.5 * dt * f / mass[:, None]
        T = temperature(vel, mass)
        temps[step] = T
        if params["thermostat"] and step % 5 == 4:
            vel *= np.sqrt(1 + 0.1 * (params["T"] / T - 1))
        energies.append(e)
    return np.mean(energies) / len(mass) + 0.1 * (temps[-10:].mean() - params["T"]) ** 2

def make(k):
    rng = np.random.default_rng(k)
    m = [5, 6][k]
    box = m * 1.2
    g = (np.arange(m) + 0.5) * 1.2
    pos = np.stack(np.meshgrid(g, g, g), -1).reshape(-1, 3) + 0.05 * rng.standard_normal((m ** 3, 3))
    pairs = neighbour_list(pos, box, 3.0)
    return (1.0, 1.0, pos, rng.standard_normal((m ** 3, 3)), np.ones(m ** 3), pairs,
            dict(box=box, dt=0.002, rcut=2.5, steps=40, thermostat=bool(k == 0), T=1.0)), 4
