"""Felsenstein's pruning over a tree of nodes, with rates in categories."""

import numpy as np

class Node:
    def __init__(self, name=None, left=None, right=None, index=-1):
        self.name = name
        self.left = left
        self.right = right
        self.index = index

    def is_leaf(self):
        return self.left is None

def gtr(rates, freqs):
    Q = np.zeros((4, 4))
    k = 0
    for i in range(4):
        for j in range(i + 1, 4):
            Q[i, j] = rates[k] * freqs[j]
            Q[j, i] = rates[k] * freqs[i]
            k += 1
    for i in range(4):
        Q[i, i] = -Q[i].sum()
    return Q / -(np.diag(Q) @ freqs)

def transition(Q, freqs, t):
    s = np.sqrt(freqs)
    S = s[:, None] * Q / s[None, :]
    w, U = np.linalg.eigh((S + S.T) / 2)
    return (U * np.exp(w * t)) @ U.T * s[None, :] / s[:, None]

def prune(node, lengths, Q, freqs, data, rate):
    if node.is_leaf():
        return data[node.name], 0.0
    partial = 1.0
    scale = 0.0
    for child in (node.left, node.right):
        L, s = prune(child, lengths, Q, freqs, data, rate)
        P = transition(Q, freqs, rate * lengths[child.index])
        partial = partial * (L @ P.T)
        scale = scale + s
    m = partial.max(axis=1, keepdims=True)
    return partial / m, scale + np.log(m[:, 0])

def gamma_rates(alpha, k):
    q = (np.arange(k) + 0.5) / k
    r = (-np.log(1 - q)) ** (1 / alpha)
    return r / r.mean()

def loss(loglengths, lograte, logitfreq, alpha, tree, data, weights, ncat=4):
    f = np.exp(logitfreq - logitfreq.max())
    f = f / f.sum()
    Q = gtr(np.exp(np.append(lograte, 0.0)), f)
    lengths = np.exp(loglengths)
    lls = []
    for r in gamma_rates(alpha, ncat):
        L, s = prune(tree, lengths, Q, f, data, r)
        lls.append(np.log(L @ f) + s)
    lls = np.array(lls)
    m = lls.max(0)
    site = m + np.log(np.exp(lls - m).mean(0))
    return -np.sum(weights * site) + 0.1 * lengths.sum()

def make(k):
    rng = np.random.default_rng(k)
    n, sites = [(8, 200), (16, 500)][k]
    nodes = [Node(name=f"t{i}", index=i) for i in range(n)]
    c = n
    while len(nodes) > 1:
        a, b = nodes.pop(0), nodes.pop(0)
        nodes.append(Node(left=a, right=b, index=c)); c += 1
    data = {f"t{i}": np.eye(4)[rng.integers(0, 4, sites)] for i in range(n)}
    return (np.log(0.1) * np.ones(2 * n - 1), np.array([0.1, 0.6, -0.2, 0.3, 0.5]), np.array([0.0, 0.1, 0.2, 0.0]), 0.8, nodes[0], data, np.ones(sites)), 4
