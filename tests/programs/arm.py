"""Inverse kinematics of a robot arm: damped least squares for several targets."""

import numpy as np

def dh(a, alpha, d, theta):
    ca, sa = np.cos(alpha), np.sin(alpha)
    ct, st = np.cos(theta), np.sin(theta)
    return np.array([[ct, -st * ca, st * sa, a * ct],
                     [st, ct * ca, -ct * sa, a * st],
                     [0.0, sa, ca, d],
                     [0.0, 0.0, 0.0, 1.0]])

class Arm:
    def __init__(self, table):
        self.table = table
        self.n = len(table)

    def frames(self, q):
        T = np.eye(4)
        out = [T]
        for i in range(self.n):
            a, alpha, d, off = self.table[i]
            T = T @ dh(a, alpha, d, q[i] + off)
            out.append(T)
        return out

    def jacobian(self, q):
        fr = self.frames(q)
        p = fr[-1][:3, 3]
        J = np.zeros((6, self.n))
        for i in range(self.n):
            z = fr[i][:3, 2]
            o = fr[i][:3, 3]
            J[:3, i] = np.cross(z, p - o)
            J[3:, i] = z
        return J, p

def ik(arm, q, target, damping, iters=30, tol=1e-8):
    for _ in range(iters):
        J, p = arm.jacobian(q)
        e = target - p
        if e @ e < tol:
            break
        Jp = J[:3]
        dq = Jp.T @ np.linalg.solve(Jp @ Jp.T + damping ** 2 * np.eye(3), e)
        step = np.linalg.norm(dq)
        if step > 0.5:
            dq *= 0.5 / step
        q = q + dq
    return q

def loss(table, damping, targets, q0):
    arm = Arm(table)
    q = q0
    cost = 0.0
    manip = []
    for t in targets:
        qn = ik(arm, q, t, damping, iters=8)
        cost += np.sum((qn - q) ** 2)
        J, _ = arm.jacobian(qn)
        manip.append(np.sqrt(np.abs(np.linalg.det(J[:3] @ J[:3].T))))
        q = qn
    return cost - 0.1 * np.min(manip)

def make(k):
    rng = np.random.default_rng(k)
    table = np.array([[0.0, np.pi / 2, 0.4, 0], [0.5, 0, 0, 0], [0.1, np.pi / 2, 0, 0], [0, -np.pi / 2, 0.4, 0], [0, np.pi / 2, 0, 0], [0, 0, 0.1, 0]])
    n = [10, 40][k]
    s = np.linspace(0, 2 * np.pi, n)
    return (table, 0.05, np.stack([0.5 + 0.1 * np.cos(s), 0.2 * np.sin(s), 0.4 + 0.05 * s / 6], 1), np.array([0.1, 0.5, -0.4, 0.2, 0.5, 0.1])), 2
