"""Graphs: PageRank by iteration, shortest paths by Dijkstra and by Bellman and Ford, a Laplacian's solve."""

import numpy as np
import heapq

def dijkstra(n, edges, weights, source):
    adj = {i: [] for i in range(n)}
    for k, (u, v) in enumerate(edges):
        adj[u].append((v, weights[k]))
        adj[v].append((u, weights[k]))
    dist = [np.inf] * n
    dist[source] = 0.0
    done = [False] * n
    for _ in range(n):
        u = -1
        best = np.inf
        for i in range(n):
            if not done[i] and dist[i] < best:
                best = dist[i]
                u = i
        if u < 0:
            break
        done[u] = True
        for v, w in adj[u]:
            if dist[u] + w < dist[v]:
                dist[v] = dist[u] + w
    return np.array(dist)

def bellman_ford(n, edges, w, source):
    d = np.full(n, 1e9)
    d[source] = 0
    for it in range(n - 1):
        changed = False
        for k, (u, v) in enumerate(edges):
            if d[u] + w[k] < d[v]:
                d[v] = d[u] + w[k]
                changed = True
            if d[v] + w[k] < d[u]:
                d[u] = d[v] + w[k]
                changed = True
        if not changed:
            break
    return d

def pagerank(n, edges, w, damp, tol=1e-10):
    A = np.zeros((n, n))
    for k, (u, v) in enumerate(edges):
        A[u, v] += 1 / w[k]
        A[v, u] += 1 / w[k]
    P = A / A.sum(axis=1, keepdims=True)
    r = np.ones(n) / n
    for _ in range(200):
        new = damp * r @ P + (1 - damp) / n
        if np.abs(new - r).sum() < tol:
            break
        r = new
    return r

def laplacian(n, edges, w):
    L = np.zeros((n, n))
    for (u, v), x in zip(edges, w):
        L[[u, v], [u, v]] += x
        L[[u, v], [v, u]] -= x
    return L

def loss(w, damp, n, edges, demand):
    w = np.abs(w) + 0.1
    d = bellman_ford(n, edges, w, 0)
    r = pagerank(n, edges, w, damp)
    L = laplacian(n, edges, 1 / w)
    pot = np.linalg.solve(L[1:, 1:], demand[1:])
    flows = np.array([(pot[v - 1] if v else 0.0) - (pot[u - 1] if u else 0.0) for u, v in edges]) / w
    return np.sum(d * demand) + n * r.max() + np.sum(w * flows ** 2)

def make(k):
    rng = np.random.default_rng(k)
    n = [12, 30][k]
    edges = [(i, i + 1) for i in range(n - 1)] + [tuple(sorted(rng.choice(n, 2, replace=False).tolist())) for _ in range(n)]
    return (rng.random(len(edges)), 0.85, n, edges, rng.standard_normal(n) * 0.1), 2
