"""Detumbling and pointing of a satellite with reaction wheels (controller classes, quaternions)."""
import numpy as np


def skew(v):
    return np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])


class Controller:
    def __init__(self, max_torque):
        self.max_torque = max_torque

    def torque(self, q, w):
        raise NotImplementedError

    def command(self, q, w):
        return np.clip(self.torque(q, w), -self.max_torque, self.max_torque)


class RateDamping(Controller):
    def __init__(self, gain, max_torque):
        super().__init__(max_torque)
        self.gain = gain

    def torque(self, q, w):
        return -self.gain * w


class Pointing(Controller):
    def __init__(self, kp, kd, max_torque):
        super().__init__(max_torque)
        self.kp, self.kd = kp, kd

    def torque(self, q, w):
        sign = 1.0 if q[0] >= 0 else -1.0
        return -self.kp * sign * q[1:] - self.kd * w


class Spacecraft:
    def __init__(self, inertia):
        self.inertia = inertia
        self.inv = np.linalg.inv(inertia)

    def omega_matrix(self, w):
        Om = np.zeros((4, 4))
        Om[0, 1:] = -w
        Om[1:, 0] = w
        Om[1:, 1:] = -skew(w)
        return Om

    def dynamics(self, state, u):
        q, w, hw = state[:4], state[4:7], state[7:]
        qdot = 0.5 * self.omega_matrix(w) @ q
        wdot = self.inv @ (u - np.cross(w, self.inertia @ w + hw))
        return np.concatenate((qdot, wdot, -u))


def loss(inertia, w0, gains, q0):
    sat = Spacecraft(inertia)
    modes = {"detumble": RateDamping(gains[0], 0.02), "point": Pointing(gains[1], gains[2], 0.02)}
    state = np.hstack([q0 / np.linalg.norm(q0), w0, np.zeros(3)])
    dt = 0.5
    mode = "detumble"
    cost = 0.0
    switch_time = None
    for k in range(240):
        w = state[4:7]
        if mode == "detumble" and np.linalg.norm(w) < 0.02:
            mode = "point"
            switch_time = k * dt
        u = modes[mode].command(state[:4], w)
        k1 = sat.dynamics(state, u)
        k2 = sat.dynamics(state + dt * k1, u)
        state = state + 0.5 * dt * (k1 + k2)
        state[:4] /= np.linalg.norm(state[:4])
        if mode == "point":
            cost += dt * (1 - state[0] ** 2)
        cost += 50 * dt * u @ u
    if switch_time is None:
        return cost + 100.0
    return cost + 0.01 * switch_time + np.abs(state[7:]).max()


def make(k):
    rng = np.random.default_rng(k)
    inertia = np.array([[1.2, 0.05, 0.0], [0.05, 1.0, 0.02], [0.0, 0.02, 0.8]])
    spin = np.array([0.08, -0.05, 0.06]) + 0.01 * k * rng.standard_normal(3)
    return (inertia, spin, np.array([0.12, 0.01, 0.1]), np.array([0.7, 0.4, -0.3, 0.5])), 4
