"""A ray tracer with spheres, shadows and reflections."""

import numpy as np
from dataclasses import dataclass

@dataclass
class Sphere:
    center: np.ndarray
    radius: float
    color: np.ndarray
    shine: float

def normalize(v):
    return v / np.linalg.norm(v, axis=-1, keepdims=True)

def intersect(o, d, s):
    oc = o - s.center
    b = np.sum(oc * d, axis=-1)
    c = np.sum(oc * oc, axis=-1) - s.radius ** 2
    disc = b * b - c
    sq = np.sqrt(np.maximum(disc, 1e-12))
    t0, t1 = -b - sq, -b + sq
    t = np.where(t0 > 1e-3, t0, t1)
    return np.where((disc > 0) & (t > 1e-3), t, np.inf)

def trace_rays(o, d, scene, light, depth):
    color = np.zeros(d.shape)
    t = np.full(d.shape[:-1], np.inf)
    which = np.full(d.shape[:-1], -1)
    for k, s in enumerate(scene):
        tk = intersect(o, d, s)
        closer = tk < t
        t = np.where(closer, tk, t)
        which[closer] = k
    for k, s in enumerate(scene):
        hit = which == k
        tt = np.where(hit, t, 1.0)
        p = o + tt[..., None] * d
        n = normalize(p - s.center)
        l = normalize(light - p)
        lam = np.maximum(np.sum(n * l, axis=-1), 0)
        for other in scene:
            if other is not s:
                lam = np.where(np.isfinite(intersect(p + 1e-3 * n, l, other)), 0.2 * lam, lam)
        r = d - 2 * np.sum(d * n, axis=-1, keepdims=True) * n
        spec = np.maximum(np.sum(r * l, axis=-1), 0) ** 20
        c = s.color * lam[..., None] + s.shine * spec[..., None]
        if depth > 0 and s.shine > 0:
            c = c + 0.3 * s.shine * trace_rays(p + 1e-3 * n, r, scene, light, depth - 1)
        color += np.where(hit[..., None], c, 0.0)
    return color

def render(scene, light, width, height, depth):
    x, y = np.meshgrid(np.linspace(-1, 1, width), np.linspace(-1, 1, height))
    d = normalize(np.stack([x, y, np.ones_like(x) * 1.5], axis=-1))
    return trace_rays(np.array([0.0, 0.0, -3.0]), d, scene, light, depth)

def loss(scene, light, target, depth=1):
    h, w, _ = target.shape
    img = np.clip(render(scene, light, w, h, depth), 0, 1)
    return np.mean((img - target) ** 2) ** 0.5

def make(k):
    rng = np.random.default_rng(k)
    n = [32, 64][k]
    scene = [Sphere(np.array([-0.7, 0.0, 0.5]), 0.6, np.array([0.8, 0.2, 0.2]), 0.3), Sphere(np.array([0.7, 0.1, 0.2]), 0.5, np.array([0.2, 0.7, 0.3]), 0.2)]
    return (scene, np.array([2.0, 3.0, -3.0]), 0.3 * rng.random((n, n, 3)), k), 2
