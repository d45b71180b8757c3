"""An LSTM over sequences of symbols."""

import numpy as np

def sigmoid(x):
    return 1 / (1 + np.exp(-x))

class LSTM:
    def __init__(self, params):
        self.Wx, self.Wh, self.b = params["Wx"], params["Wh"], params["b"]
        self.H = self.Wh.shape[0]

    def __call__(self, x, lengths=None):
        B, T, _ = x.shape
        h = np.zeros((B, self.H))
        c = np.zeros((B, self.H))
        hs = []
        for t in range(T):
            z = x[:, t] @ self.Wx + h @ self.Wh + self.b
            i, f, o, g = np.split(z, 4, axis=1)
            cn = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            hn = sigmoid(o) * np.tanh(cn)
            if lengths is not None:
                m = (t < lengths)[:, None]
                h = np.where(m, hn, h)
                c = np.where(m, cn, c)
            else:
                h, c = hn, cn
            hs.append(h)
        return np.stack(hs, axis=1), h

class Adam:
    def __init__(self, lr=1e-2, b1=0.9, b2=0.999):
        self.lr, self.b1, self.b2 = lr, b1, b2
        self.m, self.v, self.t = None, None, 0

def dropout(x, mask, p):
    return x * mask / (1 - p) if p > 0 else x

def loss(params, x, y, lengths, mask, p=0.1, clip=5.0):
    layers = [LSTM(q) for q in params["layers"]]
    h = x
    for l, layer in enumerate(layers):
        h, last = layer(h, lengths)
        if l < len(layers) - 1:
            h = dropout(h, mask[l], p)
    attn = h @ params["query"]
    T = h.shape[1]
    attn = np.where(np.arange(T) < lengths[:, None], attn, -np.inf)
    a = np.exp(attn - attn.max(1, keepdims=True))
    a /= a.sum(1, keepdims=True)
    ctx = np.einsum("bt,bth->bh", a, h)
    logits = np.concatenate([ctx, last], axis=1) @ params["out"]
    lse = np.log(np.exp(logits - logits.max(1, keepdims=True)).sum(1)) + logits.max(1)
    ce = lse - logits[np.arange(len(y)), y]
    return ce.mean() + 1e-4 * sum((q["Wh"] ** 2).sum() for q in params["layers"])

def make(k):
    rng = np.random.default_rng(k)
    B, T, D, H, C = [(16, 20, 8, 16, 5), (32, 50, 16, 32, 10)][k]
    r = lambda *s: 0.2 * rng.standard_normal(s)
    layers = [dict(Wx=r(D if l == 0 else H, 4 * H), Wh=r(H, 4 * H), b=np.zeros(4 * H)) for l in range(2)]
    return (dict(layers=layers, query=r(H), out=r(2 * H, C)), rng.standard_normal((B, T, D)), rng.integers(0, C, B), rng.integers(T // 2, T + 1, B), (rng.random((1, B, T, H)) > 0.1).astype(float)), 1
