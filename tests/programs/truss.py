"""A plane truss: elements, assembly, solution, stresses."""

import numpy as np

class Truss:
    def __init__(self, nodes, members, supports):
        self.nodes = np.asarray(nodes)
        self.members = members
        self.fixed = sorted({2 * n + d for n, dirs in supports.items() for d in dirs})
        self.free = [i for i in range(2 * len(nodes)) if i not in self.fixed]

    def element_stiffness(self, i, j, EA, nodes):
        d = nodes[j] - nodes[i]
        L = np.linalg.norm(d)
        c, s = d / L
        k = np.array([[c * c, c * s], [c * s, s * s]])
        return EA / L * np.block([[k, -k], [-k, k]]), L, np.array([-c, -s, c, s])

    def assemble(self, areas, E):
        n = 2 * len(self.nodes)
        K = np.zeros((n, n))
        for e, (i, j) in enumerate(self.members):
            ke, _, _ = self.element_stiffness(i, j, E * areas[e], self.nodes)
            dofs = [2 * i, 2 * i + 1, 2 * j, 2 * j + 1]
            K[np.ix_(dofs, dofs)] += ke
        return K

    def solve(self, areas, E, load):
        K = self.assemble(areas, E)
        u = np.zeros(2 * len(self.nodes))
        u[self.free] = np.linalg.solve(K[np.ix_(self.free, self.free)], load[self.free])
        return u

    def stresses(self, u, E):
        out = []
        for i, j in self.members:
            _, L, b = self.element_stiffness(i, j, 1.0, self.nodes)
            ue = np.concatenate([u[2 * i:2 * i + 2], u[2 * j:2 * j + 2]])
            out.append(E * (b @ ue) / L)
        return np.array(out)

def loss(areas, E, truss, load, allowable, penalty=10.0):
    u = truss.solve(areas, E, load)
    s = truss.stresses(u, E)
    weight = 0.0
    for e, (i, j) in enumerate(truss.members):
        weight += areas[e] * np.linalg.norm(truss.nodes[i] - truss.nodes[j])
    viol = np.maximum(np.abs(s) / allowable - 1, 0)
    return weight + penalty * np.sum(viol ** 2) + 100 * np.max(np.abs(u))

def make(k):
    n = [12, 30][k]
    nodes = [(i, 0.0) for i in range(n)] + [(i, 1.0 + 0.1 * np.sin(i)) for i in range(n)]
    mem = []
    for i in range(n - 1):
        mem += [(i, i + 1), (n + i, n + i + 1), (i, n + i + 1), (i + 1, n + i)]
    mem += [(i, n + i) for i in range(n)]
    load = np.zeros(4 * n); load[3:2 * n:2] = -1.0
    t = Truss(np.array(nodes, float), mem, {0: (0, 1), n - 1: (1,)})
    return (np.full(len(mem), 0.5) + 0.01 * np.arange(len(mem)), 200.0, t, load, 5.0), 2
