"""A transformer's block written by hand."""

import numpy as np

def layer_norm(x, g, b, eps=1e-5):
    m = x.mean(-1, keepdims=True)
    v = x.var(-1, keepdims=True)
    return g * (x - m) / np.sqrt(v + eps) + b

def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3)))

def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)

def rope(x, base=10000.0):
    T, D = x.shape[-2:]
    half = D // 2
    freq = base ** (-np.arange(half) / half)
    ang = np.outer(np.arange(T), freq)
    c, s = np.cos(ang), np.sin(ang)
    x1, x2 = x[..., :half], x[..., half:]
    return np.concatenate([x1 * c - x2 * s, x1 * s + x2 * c], axis=-1)

class Block:
    def __init__(self, p, heads):
        self.p = p
        self.heads = heads

    def attention(self, x):
        B, T, C = x.shape
        H = self.heads
        q, k, v = np.split(x @ self.p["qkv"], 3, axis=-1)
        shape = lambda a: a.reshape(B, T, H, C // H).transpose(0, 2, 1, 3)
        q, k, v = shape(q), shape(k), shape(v)
        q, k = rope(q), rope(k)
        att = q @ k.swapaxes(-1, -2) / np.sqrt(C // H)
        mask = np.tril(np.ones((T, T), dtype=bool))
        att = softmax(np.where(mask, att, -1e9))
        y = (att @ v).transpose(0, 2, 1, 3).reshape(B, T, C)
        return y @ self.p["proj"]

    def __call__(self, x):
        p = self.p
        x = x + self.attention(layer_norm(x, p["g1"], p["b1"]))
        h = gelu(layer_norm(x, p["g2"], p["b2"]) @ p["w1"] + p["c1"])
        return x + h @ p["w2"] + p["c2"]

class GPT:
    def __init__(self, params, heads):
        self.emb = params["emb"]
        self.blocks = [Block(p, heads) for p in params["blocks"]]
        self.gf, self.bf = params["gf"], params["bf"]

    def forward(self, tokens):
        x = self.emb[tokens]
        for b in self.blocks:
            x = b(x)
        return layer_norm(x, self.gf, self.bf) @ self.emb.T

def loss(params, tokens, heads=4, label_smoothing=0.0):
    model = GPT(params, heads)
    logits = model.forward(tokens[:, :-1])
    targets = tokens[:, 1:]
    logp = logits - logits.max(-1, keepdims=True)
    logp = logp - np.log(np.exp(logp).sum(-1, keepdims=True))
    B, T = targets.shape
    nll = -logp[np.arange(B)[:, None], np.arange(T), targets]
    if label_smoothing > 0:
        nll = (1 - label_smoothing) * nll - label_smoothing * logp.mean(-1)
    return nll.mean()

def make(k):
    rng = np.random.default_rng(k)
    V, C, L, B, T = [(100, 32, 2, 4, 33), (200, 64, 3, 4, 65)][k]
    r = lambda *s: 0.1 * rng.standard_normal(s)
    blk = lambda: dict(qkv=r(C, 3 * C), proj=r(C, C), g1=np.ones(C), b1=np.zeros(C), g2=np.ones(C), b2=np.zeros(C), w1=r(C, 4 * C), c1=np.zeros(4 * C), w2=r(4 * C, C), c2=np.zeros(C))
    p = dict(emb=r(V, C), blocks=[blk() for _ in range(L)], gf=np.ones(C), bf=np.zeros(C))
    return (p, rng.integers(0, V, (B, T)), 4, 0.1 * k), 1
