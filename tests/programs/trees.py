"""Boosted soft decision trees, walked by recursion over arrays of integers."""

import numpy as np

class DecisionTree:
    def __init__(self, feature, threshold, left, right, value):
        self.feature, self.threshold, self.left, self.right, self.value = feature, threshold, left, right, value

    def predict_one(self, x):
        node = 0
        while self.left[node] >= 0:
            if x[self.feature[node]] <= self.threshold[node]:
                node = self.left[node]
            else:
                node = self.right[node]
        return self.value[node]

    def predict(self, X):
        return np.array([self.predict_one(x) for x in X])

    def soft(self, x, temp, node=0):
        if self.left[node] < 0:
            return self.value[node]
        p = 1 / (1 + np.exp((x[self.feature[node]] - self.threshold[node]) / temp))
        return p * self.soft(x, temp, self.left[node]) + (1 - p) * self.soft(x, temp, self.right[node])

def loss(values, thresholds, temp, structure, X, y, shrink=0.3):
    pred = np.zeros(len(y))
    for t, (feat, left, right) in enumerate(structure):
        tree = DecisionTree(feat, thresholds[t], left, right, values[t])
        pred += shrink * tree.predict(X)
        pred += 0.1 * tree.soft(X.T, temp)
    margin = y * pred
    l = np.logaddexp(0, -margin)
    order = np.argsort(pred, kind="stable")
    ranks = np.empty(len(y))
    ranks[order] = np.arange(1, len(y) + 1)
    pos = y > 0
    auc = (ranks[pos].sum() - pos.sum() * (pos.sum() + 1) / 2) / (pos.sum() * (~pos).sum())
    return l.mean() + 0.0 * auc

def make(k):
    rng = np.random.default_rng(k)
    nt, d, n = [(3, 4, 100), (6, 8, 400)][k]
    s = []
    for _ in range(nt):
        left = np.array([1, 3, 5, -1, -1, -1, -1]); right = np.array([2, 4, 6, -1, -1, -1, -1])
        s.append((rng.integers(0, d, 7), left, right))
    return (rng.standard_normal((nt, 7)), rng.standard_normal((nt, 7)), 0.5, s, rng.standard_normal((n, d)), rng.choice([-1.0, 1.0], n)), 3
