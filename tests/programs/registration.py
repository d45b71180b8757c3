"""Registration of two images by an affine map."""

import numpy as np
from scipy.ndimage import map_coordinates, gaussian_filter

def affine(p, shape):
    th, sx, sy, tx, ty = p
    c, s = np.cos(th), np.sin(th)
    A = np.array([[c, -s], [s, c]]) @ np.diag([np.exp(sx), np.exp(sy)])
    y, x = np.mgrid[:shape[0], :shape[1]].astype(float)
    cy, cx = (shape[0] - 1) / 2, (shape[1] - 1) / 2
    q = np.einsum("ij,jkl->ikl", A, np.stack([y - cy, x - cx]))
    return q[0] + cy + ty, q[1] + cx + tx

def sample(img, y, x):
    h, w = img.shape
    y0 = np.clip(np.floor(y).astype(int), 0, h - 2)
    x0 = np.clip(np.floor(x).astype(int), 0, w - 2)
    fy = np.clip(y - y0, 0, 1)
    fx = np.clip(x - x0, 0, 1)
    return ((1 - fy) * (1 - fx) * img[y0, x0] + (1 - fy) * fx * img[y0, x0 + 1]
            + fy * (1 - fx) * img[y0 + 1, x0] + fy * fx * img[y0 + 1, x0 + 1])

def pyramid(img, levels):
    out = [img]
    for _ in range(levels - 1):
        out.append(gaussian_filter(out[-1], 1.0)[::2, ::2])
    return out[::-1]

def mutual_information(a, b, bins, sigma):
    centres = np.linspace(0, 1, bins)
    wa = np.exp(-0.5 * ((a.ravel()[:, None] - centres) / sigma) ** 2)
    wb = np.exp(-0.5 * ((b.ravel()[:, None] - centres) / sigma) ** 2)
    wa /= wa.sum(1, keepdims=True)
    wb /= wb.sum(1, keepdims=True)
    P = wa.T @ wb / a.size + 1e-12
    return np.sum(P * np.log(P / (P.sum(1, keepdims=True) * P.sum(0))))

def loss(p, sigma, fixed, moving, levels=2, bins=12):
    total = 0.0
    for l, (f, m) in enumerate(zip(pyramid(fixed, levels), pyramid(moving, levels))):
        scale = 2.0 ** (levels - 1 - l)
        q = np.concatenate([p[:3], p[3:] / scale])
        y, x = affine(q, f.shape)
        warped = sample(m, y, x)
        inside = (y >= 0) & (y <= f.shape[0] - 1) & (x >= 0) & (x <= f.shape[1] - 1)
        ssd = np.sum(np.where(inside, (warped - f) ** 2, 0)) / np.count_nonzero(inside)
        total += ssd - 0.1 * mutual_information(f, warped, bins, sigma)
    return total

def make(k):
    rng = np.random.default_rng(k)
    n = [32, 64][k]
    img = gaussian_filter(rng.random((n, n)), 3)
    img = (img - img.min()) / np.ptp(img)
    return (np.array([0.05, 0.02, -0.03, 1.3, -0.7]), 0.08, img, np.roll(img, 1, 0), 2 + k), 2
