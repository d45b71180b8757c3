"""Affine registration by mutual information with a Parzen histogram, on an image pyramid."""
import numpy as np
from scipy.ndimage import gaussian_filter


def downsample(img):
    return 0.25 * (img[::2, ::2] + img[1::2, ::2] + img[::2, 1::2] + img[1::2, 1::2])


def bilinear(img, y, x, fill=0.0):
    h, w = img.shape
    inside = (y >= 0) & (y <= h - 1) & (x >= 0) & (x <= w - 1)
    y0 = np.clip(np.floor(y).astype(int), 0, h - 2)
    x0 = np.clip(np.floor(x).astype(int), 0, w - 2)
    fy, fx = y - y0, x - x0
    v = (img[y0, x0] * (1 - fy) * (1 - fx) + img[y0, x0 + 1] * (1 - fy) * fx
         + img[y0 + 1, x0] * fy * (1 - fx) + img[y0 + 1, x0 + 1] * fy * fx)
    return np.where(inside, v, fill), inside


def warp(img, params, center):
    a, b, c, d, ty, tx = params
    yy, xx = np.meshgrid(np.arange(img.shape[0]), np.arange(img.shape[1]), indexing="ij")
    y, x = yy - center[0], xx - center[1]
    return bilinear(img, (1 + a) * y + b * x + ty + center[0], c * y + (1 + d) * x + tx + center[1])


def bspline3(u):
    u = np.abs(u)
    return np.select([u < 1, u < 2], [2 / 3 - u**2 + u**3 / 2, (2 - u) ** 3 / 6], default=0.0)


def joint_histogram(p, q, mask, bins):
    lo, hi = -0.1, 1.1
    centers = np.linspace(lo, hi, bins)
    width = centers[1] - centers[0]
    wp = bspline3((p[mask][:, None] - centers) / width)
    wq = bspline3((q[mask][:, None] - centers) / width)
    H = wp.T @ wq
    return H / H.sum()


def entropy(p):
    return -np.sum(np.where(p > 1e-12, p * np.log(np.where(p > 1e-12, p, 1.0)), 0.0))


def loss(params, fixed, moving, levels=2, bins=8, smooth=0.7):
    total = 0.0
    f, m = fixed, moving
    p = params
    for level in range(levels):
        if level > 0:
            f, m = downsample(f), downsample(m)
            p = np.concatenate([p[:4], p[4:] / 2])
        fs = gaussian_filter(f, smooth)
        ms = gaussian_filter(m, smooth)
        warped, inside = warp(ms, p, ((f.shape[0] - 1) / 2, (f.shape[1] - 1) / 2))
        if inside.mean() < 0.3:
            total += 10.0
            continue
        H = joint_histogram(fs, warped, inside, bins)
        mi = entropy(H.sum(axis=0)) + entropy(H.sum(axis=1)) - entropy(H)
        total -= mi / 2**level
    return total + 0.1 * np.sum(params[:4] ** 2)


def make(k):
    n = [16, 24][k]
    y, x = np.mgrid[0:n, 0:n] / n
    img = np.exp(-((x - 0.5) ** 2 + (y - 0.4) ** 2) / 0.03) * 0.8 + 0.2 * (x + y > 1)
    mov = np.exp(-((x - 0.55) ** 2 + (y - 0.45) ** 2) / 0.03) * 0.8 + 0.2 * (x + y > 1.1)
    shift = [[1.1317, 1.3129], [0.7331, -0.4173]][k]
    return (np.array([0.01371, 0.02113, -0.01727, 0.01191, *shift]), img, mov, 1 + k), 1
