"""A GRU encoder and decoder with Bahdanau's attention and beam of one, from scratch; label smoothing."""

import numpy as np

def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))

def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)

class Module:
    def parameters(self):
        for name, value in vars(self).items():
            if isinstance(value, Module):
                yield from value.parameters()
            elif isinstance(value, np.ndarray):
                yield value

class GRUCell(Module):
    def __init__(self, p):
        self.Wx, self.Wh, self.b = p["Wx"], p["Wh"], p["b"]
        self.hidden = self.Wh.shape[0]

    def __call__(self, x, h):
        n = self.hidden
        gx = x @ self.Wx + self.b
        gh = h @ self.Wh
        r = sigmoid(gx[:, :n] + gh[:, :n])
        z = sigmoid(gx[:, n:2 * n] + gh[:, n:2 * n])
        cand = np.tanh(gx[:, 2 * n:] + r * gh[:, 2 * n:])
        return (1 - z) * cand + z * h

class Attention(Module):
    def __init__(self, p):
        self.W1, self.W2, self.v = p["W1"], p["W2"], p["v"]

    def __call__(self, query, memory, mask):
        score = np.tanh((query @ self.W1)[:, None, :] + memory @ self.W2) @ self.v
        score = np.where(mask, score, -np.inf)
        w = softmax(score)
        return np.einsum("bt,bt...->b...", w, memory), w

class Seq2Seq(Module):
    def __init__(self, params):
        self.embed = params["embed"]
        self.encoder = GRUCell(params["enc"])
        self.decoder = GRUCell(params["dec"])
        self.attention = Attention(params["att"])
        self.out = params["out"]

    def forward(self, src, lengths, tgt, teacher):
        B, T = src.shape
        h = np.zeros((B, self.encoder.hidden))
        states = []
        for t in range(T):
            new = self.encoder(self.embed[src[:, t]], h)
            alive = (t < lengths)[:, None]
            h = np.where(alive, new, h)
            states.append(h)
        memory = np.stack(states, axis=1)
        mask = np.arange(T)[None, :] < lengths[:, None]
        token = np.zeros(B, dtype=int)
        logits, attn = [], []
        for t in range(tgt.shape[1]):
            ctx, w = self.attention(h, memory, mask)
            h = self.decoder(np.concatenate([self.embed[token], ctx], axis=-1), h)
            logit = h @ self.out
            logits.append(logit)
            attn.append(w)
            token = tgt[:, t] if teacher[t] else logit.argmax(-1)
        return np.array(logits).transpose(1, 0, 2), np.array(attn)

def loss(params, src, lengths, tgt, teacher, smooth=0.1):
    model = Seq2Seq(params)
    logits, attn = model.forward(src, lengths, tgt, teacher)
    logp = logits - logits.max(-1, keepdims=True)
    logp = logp - np.log(np.exp(logp).sum(-1, keepdims=True))
    nll = -np.take_along_axis(logp, tgt[..., None], axis=-1).squeeze(-1)
    valid = tgt != 0
    ce = ((1 - smooth) * nll - smooth * logp.mean(-1))[valid].mean()
    coverage = np.minimum(attn, np.cumsum(attn, axis=0) - attn).sum() / attn.shape[0]
    return ce + 0.01 * coverage + 1e-4 * sum((w ** 2).sum() for w in model.parameters())

def make(k):
    rng = np.random.default_rng(k)
    V, E, H, A, B, T, U = 12, 8, [16, 12][k], 10, 5, 9, 7
    g = lambda *s: rng.standard_normal(s) * 0.3
    params = dict(embed=g(V, E), enc=dict(Wx=g(E, 3 * H), Wh=g(H, 3 * H), b=g(3 * H)),
                  dec=dict(Wx=g(E + H, 3 * H), Wh=g(H, 3 * H), b=g(3 * H)), att=dict(W1=g(H, A), W2=g(H, A), v=g(A)), out=g(H, V))
    return (params, rng.integers(0, V, (B, T)), rng.integers(3, T + 1, B), rng.integers(0, V, (B, U)), rng.random(U) < 0.6), 1
