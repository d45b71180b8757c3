"""Glider/rocket flight: atmosphere layers, aircraft hierarchy, event detection of apogee and ground."""
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
import numpy as np

G0 = 9.80665
LAYERS = [(0.0, 288.15, -0.0065, 101325.0), (11000.0, 216.65, 0.0, 22632.0), (20000.0, 216.65, 0.001, 5474.9)]


class Atmosphere:
    R = 287.05

    def __init__(self, wind=0.0):
        self.wind = wind

    def density(self, h):
        h = max(h, 0.0)
        for (h0, T0, lapse, p0), nxt in zip(LAYERS, LAYERS[1:] + [None]):
            if nxt is None or h < nxt[0]:
                break
        T = T0 + lapse * (h - h0)
        if lapse == 0.0:
            p = p0 * np.exp(-G0 * (h - h0) / (self.R * T0))
        else:
            p = p0 * (T / T0) ** (-G0 / (self.R * lapse))
        return p / (self.R * T)


@dataclass
class Vehicle(ABC):
    mass: float
    area: float
    cd0: float
    atmosphere: Atmosphere = field(default_factory=Atmosphere)

    @cached_property
    def loading(self):
        return self.mass * G0 / self.area

    @abstractmethod
    def lift_coefficient(self, t, state):
        ...

    def thrust(self, t):
        return 0.0

    def mass_at(self, t):
        return self.mass

    def derivative(self, t, s):
        x, h, vx, vh = s
        ax, ay = vx - self.atmosphere.wind, vh
        v = np.sqrt(ax * ax + ay * ay) + 1e-9
        q = 0.5 * self.atmosphere.density(h) * v * self.area
        cl = self.lift_coefficient(t, s)
        cd = self.cd0 + 0.05 * cl**2
        m = self.mass_at(t)
        T = self.thrust(t)
        fx = q * (-cd * ax - cl * ay) + T * ax / v
        fy = q * (-cd * ay + cl * ax) + T * ay / v
        return np.array([vx, vh, fx / m, fy / m - G0])


@dataclass
class Glider(Vehicle):
    cl_table: tuple = ((0.0, 0.6), (10.0, 0.8), (30.0, 0.5))

    def lift_coefficient(self, t, state):
        ts, cl = zip(*self.cl_table)
        return np.interp(t, ts, cl)


@dataclass
class Rocket(Vehicle):
    burn_time: float = 3.0
    peak: float = 400.0
    propellant: float = 1.0

    def lift_coefficient(self, t, state):
        return 0.0

    def thrust(self, t):
        if t >= self.burn_time:
            return 0.0
        return self.peak * (1 - 0.3 * t / self.burn_time)

    def mass_at(self, t):
        return self.mass - self.propellant * min(t / self.burn_time, 1.0)


def fly(vehicle, state, dt, t_max, events):
    t = 0.0
    found = {}
    s = state
    while t < t_max:
        k1 = vehicle.derivative(t, s)
        k2 = vehicle.derivative(t + dt / 2, s + dt / 2 * k1)
        k3 = vehicle.derivative(t + dt / 2, s + dt / 2 * k2)
        k4 = vehicle.derivative(t + dt, s + dt * k3)
        new = s + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        for name, fn in events.items():
            a, b = fn(s), fn(new)
            if name not in found and a > 0 >= b:
                f = a / (a - b)
                found[name] = (t + f * dt, s + f * (new - s))
        if "ground" in found:
            break
        s, t = new, t + dt
    return s, t, found


def loss(params, state, kind="glider", wind=0.0, t_max=40.0, dt=0.25):
    air = Atmosphere(wind)
    if kind == "glider":
        v = Glider(mass=10.0, area=0.8, cd0=params[0], atmosphere=air, cl_table=((0.0, params[1]), (10.0, params[2]), (30.0, 0.5)))
    else:
        v = Rocket(mass=8.0, area=0.02, cd0=params[0], atmosphere=air, burn_time=params[1], peak=params[2])
    events = {"ground": lambda s: s[1], "apogee": lambda s: s[3]}
    s, t, found = fly(v, state, dt, t_max, events)
    score = 0.0
    if "ground" in found:
        tg, sg = found["ground"]
        score -= sg[0] / 100 + 0.01 * tg
    else:
        score -= s[0] / 100 + s[1] / 200
    if "apogee" in found:
        score -= found["apogee"][1][1] / 100
    return score + 1e-3 * v.loading


def make(k):
    if k:
        return (np.array([0.5, 2.9, 400.0]), np.array([0.0, 0.1, 5.0, 20.0]), "rocket", 3.0, 30.0), 2
    return (np.array([0.03, 0.6, 0.7]), np.array([0.0, 60.0, 14.0, -1.0])), 2
