"""Dynamic programs: soft knapsack, matrix chain, optimal binary search tree, longest increasing subsequence, unit commitment."""

import numpy as np
from functools import lru_cache

def knapsack(values, weights, capacity, tau):
    n = len(values)
    T = np.zeros((n + 1, capacity + 1))
    for i in range(1, n + 1):
        for w in range(capacity + 1):
            if weights[i - 1] <= w:
                a, b = T[i - 1, w], T[i - 1, w - weights[i - 1]] + values[i - 1]
                T[i, w] = tau * np.logaddexp(a / tau, b / tau)
            else:
                T[i, w] = T[i - 1, w]
    return T[n, capacity]

def matrix_chain(p):
    n = len(p) - 1
    m = [[0.0] * n for _ in range(n)]
    for length in range(2, n + 1):
        for i in range(n - length + 1):
            j = i + length - 1
            m[i][j] = np.inf
            for k in range(i, j):
                q = m[i][k] + m[k + 1][j] + p[i] * p[k + 1] * p[j + 1]
                if q < m[i][j]:
                    m[i][j] = q
    return m[0][n - 1]

def obst(freq):
    n = len(freq)

    @lru_cache(maxsize=None)
    def cost(i, j):
        if i > j:
            return 0.0
        s = freq[i:j + 1].sum()
        return s + min(cost(i, r - 1) + cost(r + 1, j) for r in range(i, j + 1))

    return cost(0, n - 1)

def lis(x, w):
    best = np.zeros(len(x))
    for i in range(len(x)):
        best[i] = w[i]
        for j in range(i):
            if x[j] < x[i] and best[j] + w[i] > best[i]:
                best[i] = best[j] + w[i]
    return best.max()

def unit_commitment(load, cost, start_up, pmin, pmax):
    INF = 1e9
    J = np.zeros(2)
    J[1] = start_up
    plan = []
    for t in range(len(load)):
        new = np.full(2, INF)
        choice = [0, 0]
        for s in (0, 1):
            for sp in (0, 1):
                p = min(max(load[t], pmin), pmax) * s
                shortage = max(load[t] - p, 0.0)
                c = J[sp] + cost[0] * p + cost[1] * p ** 2 * s + 50.0 * shortage + (start_up if s > sp else 0.0)
                if c < new[s]:
                    new[s] = c
                    choice[s] = sp
        plan.append(choice)
        J = new
    s = int(np.argmin(J))
    on = 0
    for choice in plan[::-1]:
        on += s
        s = choice[s]
    return J.min(), on

def loss(values, dims, freq, x, load, cost, weights, capacity):
    k = knapsack(values, weights, capacity, 0.1)
    m = matrix_chain(dims)
    o = obst(freq)
    l = lis(x, np.abs(x) + 1)
    u, on = unit_commitment(load, cost, 30.0, 2.0, 8.0)
    return k + 1e-2 * m + o + l + 1e-2 * u + 0.1 * on

def make(k):
    rng = np.random.default_rng(k)
    n = [8, 10][k]
    return (rng.random(n) * 5, rng.uniform(1, 6, 7), rng.random(6), rng.standard_normal(15), rng.uniform(0, 10, 12), np.array([3.0, 0.2]), rng.integers(1, 6, n), 15), 6
