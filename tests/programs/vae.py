"""A variational autoencoder with convolutions."""

import numpy as np

def conv2d(x, w, b, stride=1, pad=1):
    B, H, W, C = x.shape
    kh, kw, _, F = w.shape
    x = np.pad(x, ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    oh = (H + 2 * pad - kh) // stride + 1
    ow = (W + 2 * pad - kw) // stride + 1
    out = np.zeros((B, oh, ow, F))
    for i in range(kh):
        for j in range(kw):
            out += x[:, i:i + stride * oh:stride, j:j + stride * ow:stride, :] @ w[i, j]
    return out + b

def batchnorm(x, gamma, beta, eps=1e-5):
    mu = x.mean(axis=(0, 1, 2))
    var = x.var(axis=(0, 1, 2))
    return gamma * (x - mu) / np.sqrt(var + eps) + beta

def leaky(x, a=0.1):
    return np.where(x > 0, x, a * x)

def upsample(x):
    return x.repeat(2, axis=1).repeat(2, axis=2)

def encode(p, x):
    h = leaky(batchnorm(conv2d(x, p["w1"], p["b1"], 2), p["g1"], p["be1"]))
    h = leaky(conv2d(h, p["w2"], p["b2"], 2))
    h = h.reshape(len(x), -1)
    return h @ p["wm"], np.clip(h @ p["wv"], -5, 5)

def decode(p, z, shape):
    h = leaky(z @ p["wd"]).reshape(len(z), shape[0] // 4, shape[1] // 4, -1)
    h = leaky(conv2d(upsample(h), p["w3"], p["b3"]))
    return conv2d(upsample(h), p["w4"], p["b4"])

def loss(params, x, eps, beta=0.5, free_bits=0.1):
    mu, logvar = encode(params, x)
    z = mu + np.exp(0.5 * logvar) * eps
    logits = decode(params, z, x.shape[1:3])
    bce = np.sum(np.maximum(logits, 0) - logits * x + np.log1p(np.exp(-np.abs(logits))), axis=(1, 2, 3))
    kl = -0.5 * (1 + logvar - mu ** 2 - np.exp(logvar)).mean(axis=0)
    kl = np.maximum(kl, free_bits).sum()
    return bce.mean() / x[0].size + beta * kl

def make(k):
    rng = np.random.default_rng(k)
    B, n, F, Z = [(8, 16, 8, 4), (16, 28, 12, 8)][k]
    r = lambda *s: 0.2 * rng.standard_normal(s)
    m = (n // 4) ** 2 * F
    return (dict(w1=r(3, 3, 1, F), b1=np.zeros(F), g1=np.ones(F), be1=np.zeros(F), w2=r(3, 3, F, F), b2=np.zeros(F), wm=0.1 * r(m, Z), wv=0.1 * r(m, Z), wd=r(Z, m), w3=r(3, 3, F, F), b3=np.zeros(F), w4=r(3, 3, F, 1), b4=np.zeros(1)),
            (rng.random((B, n, n, 1)) > 0.5).astype(float), rng.standard_normal((B, Z))), 1
