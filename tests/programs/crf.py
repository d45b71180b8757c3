"""A conditional random field over sentences of several lengths."""

import numpy as np

def logsumexp(a, axis):
    m = np.max(a, axis=axis, keepdims=True)
    return np.squeeze(m, axis) + np.log(np.sum(np.exp(a - m), axis=axis))

def features(tokens, E, W, window=1):
    x = E[tokens]
    n, d = x.shape
    padded = np.vstack([np.zeros((window, d)), x, np.zeros((window, d))])
    cat = np.hstack([padded[i:i + n] for i in range(2 * window + 1)])
    return cat @ W

def log_partition(unary, trans, start, end):
    alpha = start + unary[0]
    for u in unary[1:]:
        alpha = logsumexp(alpha[:, None] + trans, axis=0) + u
    return logsumexp(alpha + end, axis=0)

def path_score(unary, trans, start, end, tags):
    score = start[tags[0]] + unary[0, tags[0]]
    for i in range(1, len(tags)):
        score += trans[tags[i - 1], tags[i]] + unary[i, tags[i]]
    return score + end[tags[-1]]

def loss(params, sentences, l2=1e-3):
    total = 0.0
    E, W, trans, start, end = params["E"], params["W"], params["trans"], params["start"], params["end"]
    for tokens, tags in sentences:
        unary = features(tokens, E, W)
        total += log_partition(unary, trans, start, end) - path_score(unary, trans, start, end, tags)
    reg = sum(np.sum(p ** 2) for p in params.values())
    return total / len(sentences) + l2 * reg

class _(dict): pass
def make(k):
    rng = np.random.default_rng(k)
    V, d, T = 500, 16, [6, 9][k]
    p = dict(E=rng.standard_normal((V, d)), W=0.1 * rng.standard_normal((3 * d, T)), trans=0.1 * rng.standard_normal((T, T)),
             start=np.zeros(T), end=np.zeros(T))
    s = []
    for i in range([8, 20][k]):
        L = rng.integers(5, 40)
        s.append((rng.integers(0, V, L), rng.integers(0, T, L)))
    return (p, s), 1
