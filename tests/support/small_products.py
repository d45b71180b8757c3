"""Random programs of small products: outer products, reshapes, transposes, windows, convolutions, steps and pads.

Short loops over odd extents are what LLVM's vectorisers make shuffles of.  All arguments are small integers, so that every
result and gradient is an exact number: one wrong element shows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import bwcompiler as bw

Array = np.ndarray[Any, Any]


@dataclass
class SmallProduct:
    """A program; `seed` makes it again."""

    seed: int
    fun: Callable[..., Any]
    arguments: tuple[Array, ...]


def small_product(seed: int) -> SmallProduct:
    rng = np.random.default_rng(seed)
    make = FAMILIES[seed % len(FAMILIES)]
    dtype = "f4" if rng.integers(3) == 0 else "f8"
    fun, shapes = make(rng)
    return SmallProduct(seed, fun, tuple(integers(rng, shape, dtype) for shape in shapes))


def integers(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Array:
    return np.asarray(rng.integers(-4, 5, shape)).astype(dtype)


Made = tuple[Callable[..., Any], list[tuple[int, ...]]]


def outer(rng: np.random.Generator) -> Made:
    """(a[..., None] * b[..., None, :]) with the axes split and some of them permuted: short last axes, several to a vector."""
    batch = int(rng.integers(1, 5))
    left = split(rng, int(rng.integers(2, 4)), (2, 3, 4))
    right = split(rng, int(rng.integers(1, 3)), (2, 3, 3, 5))
    moved = 1 + int(rng.integers(1, len(left) + 1))
    rank = 1 + len(left) + len(right)
    order = (*rng.permutation(moved).tolist(), *range(moved, rank)) if rng.integers(3) else tuple(rng.permutation(rank).tolist())
    shape = (batch, *left, *right)

    def fun(a: Any, b: Any) -> Any:
        return (a * b).reshape(shape).transpose(order)
    return fun, [(batch, int(np.prod(left)), 1), (batch, 1, int(np.prod(right)))]


def split(rng: np.random.Generator, count: int, sizes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(size) for size in rng.choice(sizes, count))


def elements(rng: np.random.Generator) -> Made:
    """x * y with x transposed and reshaped."""
    shape = split(rng, int(rng.integers(2, 5)), (1, 2, 3, 4, 5, 7))
    order = tuple(rng.permutation(len(shape)).tolist())
    target = (shape[0], -1) if rng.integers(2) else (-1,)

    def fun(x: Any, y: Any) -> Any:
        return x.transpose(order).reshape(target) * y
    moved = [shape[axis] for axis in order]
    return fun, [shape, np.zeros(moved).reshape(target).shape if moved[0] == shape[0] or target == (-1,) else
                 np.zeros(shape).reshape(target).shape]


def windows(rng: np.random.Generator) -> Made:
    """Products of shifted and stepped slices."""
    rows, columns = int(rng.integers(3, 9)), int(rng.integers(4, 20))
    width, step = int(rng.integers(1, 4)), int(rng.integers(1, 4))

    def fun(x: Any, w: Any) -> Any:
        parts = [x[:, k:columns - width + 1 + k:step] * w[:, k:k + 1] for k in range(width)]
        return sum(parts[1:], parts[0]), np.stack(parts, axis=int(rows) % 3)
    return fun, [(rows, columns), (rows, width)]


def convolution(rng: np.random.Generator) -> Made:
    """Of one and two dimensions, with groups: depthwise too."""
    batch, groups = int(rng.integers(1, 4)), int(rng.choice((1, 2, 4)))
    inner, outer_ = int(rng.integers(1, 3)), int(rng.integers(1, 3))
    kernel, stride, padding = int(rng.integers(1, 4)), int(rng.integers(1, 3)), int(rng.integers(0, 2))
    size = split(rng, 2, (4, 5, 6, 7))

    def fun(x: Any, w: Any) -> Any:
        return bw.nn.conv2d(x, w, stride=stride, padding=padding, groups=groups)
    return fun, [(batch, inner * groups, *size), (outer_ * groups, inner, kernel, kernel)]


def pooling(rng: np.random.Generator) -> Made:
    """Blocks of an image, summed and multiplied by a factor each."""
    blocks, size = split(rng, 2, (1, 2, 3, 4)), split(rng, 2, (2, 3, 4))

    def fun(x: Any, w: Any) -> Any:
        y = x.reshape(blocks[0], size[0], blocks[1], size[1])
        return np.sum(y * w, axis=(1, 3)), y.transpose(0, 2, 1, 3) * w[:, 0]
    return fun, [(blocks[0] * size[0], blocks[1] * size[1]), (size[0], 1, size[1])]


def pads(rng: np.random.Generator) -> Made:
    """Reversed, rolled, padded and joined."""
    rows, columns = int(rng.integers(2, 7)), int(rng.integers(2, 9))
    before, after = (int(n) for n in rng.integers(0, 4, 2))

    def fun(x: Any, y: Any) -> Any:
        z = np.concatenate([x[:, ::-1] * y, np.roll(y, 1, axis=1)], axis=int(before % 2))
        return np.pad(z, ((0, 1), (before, after))), z.T * 2.0
    return fun, [(rows, columns), (rows, columns)]


def small_matrices(rng: np.random.Generator) -> Made:
    """Matrix products written as sums of outer products, and with einsum."""
    n, m, k, batch = (int(size) for size in rng.integers(1, 6, 4))

    def fun(x: Any, y: Any) -> Any:
        return np.sum(x[:, :, :, None] * y[:, None, :, :], axis=2), np.einsum("bik,bkj->jbi", x, y)
    return fun, [(batch, n, k), (batch, k, m)]


FAMILIES: tuple[Callable[[np.random.Generator], Made], ...] = (outer, elements, windows, convolution, pooling, pads, small_matrices)
