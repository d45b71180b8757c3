"""Loops as they are written in NumPy: every kernel is a function of arrays, with a maker of its arguments for a size n.

What is timed is the sum of squares of a kernel's result and its gradient with respect to the first argument (`loops.py`).  The functions
are plain: Numba compiles the same source, and NumPy runs it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

STEPS = 8                          # of what runs in time


class Kernel(NamedTuple):
    """arguments(n): those of size n.  sizes: that are timed, small enough for NumPy's loops over elements."""

    function: Callable[..., Any]
    arguments: Callable[[int], tuple[Any, ...]]
    sizes: tuple[int, ...]


def _random(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).uniform(0.5, 1.5, shape)


def _definite(n: int) -> Any:
    a = _random(n, n)
    return a @ a.T / n + np.eye(n)


def _triangle(n: int) -> Any:
    return np.tril(_random(n, n)) / n + np.eye(n)


# ----- element by element
def sweep(given):  # type: ignore[no-untyped-def]
    """A recurrence in two directions: each element of the mean of itself, the one above and the one before."""
    a = given.copy()
    n = a.shape[0]
    for i in range(1, n):
        for j in range(1, n):
            a[i, j] = (a[i, j] + a[i - 1, j] + a[i, j - 1]) / 3.0
    return a


def gauss_seidel(given, source):  # type: ignore[no-untyped-def]
    """Sweeps of Gauss-Seidel's method for the Poisson equation, which use new values as soon as they are there."""
    u = given.copy()
    n = u.shape[0]
    for _ in range(STEPS):
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - source[i, j])
    return u


def recursive_filter(x):  # type: ignore[no-untyped-def]
    """A filter of second order with feedback."""
    y = np.zeros_like(x)
    y[0] = x[0]
    y[1] = x[1] + 0.6 * y[0]
    for t in range(2, x.shape[0]):
        y[t] = 0.4 * x[t] + 0.2 * x[t - 1] + 0.6 * y[t - 1] - 0.1 * y[t - 2]
    return y


def alignment(cost):  # type: ignore[no-untyped-def]
    """Dynamic programming: the cheapest monotone path to each element (dynamic time warping)."""
    n = cost.shape[0]
    d = np.zeros_like(cost)
    d[0, 0] = cost[0, 0]
    for j in range(1, n):
        d[0, j] = d[0, j - 1] + cost[0, j]
    for i in range(1, n):
        d[i, 0] = d[i - 1, 0] + cost[i, 0]
        for j in range(1, n):
            d[i, j] = cost[i, j] + min(d[i - 1, j - 1], min(d[i - 1, j], d[i, j - 1]))
    return d


# ----- matrices
def triangular_solve(lower, b):  # type: ignore[no-untyped-def]
    """Forward substitution."""
    x = np.zeros_like(b)
    for i in range(b.shape[0]):
        x[i] = (b[i] - np.dot(lower[i, :i], x[:i])) / lower[i, i]
    return x


def lu(given):  # type: ignore[no-untyped-def]
    """The LU factors without pivots, in place (Doolittle)."""
    a = given.copy()
    n = a.shape[0]
    for i in range(n):
        for j in range(i):
            a[i, j] = (a[i, j] - np.dot(a[i, :j], a[:j, j])) / a[j, j]
        for j in range(i, n):
            a[i, j] = a[i, j] - np.dot(a[i, :i], a[:i, j])
    return a


def cholesky(given):  # type: ignore[no-untyped-def]
    """The Cholesky factor, row by row."""
    a = np.zeros_like(given)
    n = given.shape[0]
    for i in range(n):
        for j in range(i):
            a[i, j] = (given[i, j] - np.dot(a[i, :j], a[j, :j])) / a[j, j]
        a[i, i] = np.sqrt(given[i, i] - np.dot(a[i, :i], a[i, :i]))
    return a


def durbin(r):  # type: ignore[no-untyped-def]
    """The Yule-Walker equations of a Toeplitz matrix by Durbin's recursion."""
    y = np.zeros_like(r)
    alpha, beta = -r[0], 1.0
    y[0] = alpha
    for k in range(1, r.shape[0]):
        beta = beta * (1.0 - alpha * alpha)
        alpha = -(r[k] + np.dot(r[:k][::-1].copy(), y[:k])) / beta
        y[:k] += alpha * y[:k][::-1].copy()
        y[k] = alpha
    return y


def shortest_paths(given):  # type: ignore[no-untyped-def]
    """All shortest paths of a graph (Floyd and Warshall)."""
    d = given.copy()
    n = d.shape[0]
    for k in range(n):
        d[:, :] = np.minimum(d, d[:, k].copy().reshape(n, 1) + d[k, :].copy().reshape(1, n))
    return d


# ----- in time
def heat(given):  # type: ignore[no-untyped-def]
    """Explicit steps of the heat equation."""
    u = given.copy()
    for _ in range(STEPS):
        u[1:-1, 1:-1] = u[1:-1, 1:-1] + 0.1 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4.0 * u[1:-1, 1:-1])
    return u


def adi(given):  # type: ignore[no-untyped-def]
    """Steps of the heat equation that are implicit along one axis, then along the other: tridiagonal systems for all lines at once."""
    u = given.copy()
    n = u.shape[0]
    c = np.zeros(n)
    c[0] = 0.25 / 1.5
    for k in range(1, n):
        c[k] = 0.25 / (1.5 - 0.25 * c[k - 1])
    for _ in range(STEPS):
        u[0, :] = u[0, :] * (c[0] * 4.0)
        for k in range(1, n):
            u[k, :] = (u[k, :] + 0.25 * u[k - 1, :]) * (c[k] * 4.0)
        for k in range(n - 2, -1, -1):
            u[k, :] = u[k, :] + c[k] * u[k + 1, :]
        u[:, 0] = u[:, 0] * (c[0] * 4.0)
        for k in range(1, n):
            u[:, k] = (u[:, k] + 0.25 * u[:, k - 1]) * (c[k] * 4.0)
        for k in range(n - 2, -1, -1):
            u[:, k] = u[:, k] + c[k] * u[:, k + 1]
    return u


def columns(field, speed):  # type: ignore[no-untyped-def]
    """Implicit transport along the columns of a grid with a speed of its own everywhere: Thomas' algorithm, level by level."""
    n = field.shape[0]
    upper = np.zeros_like(field)
    found = np.zeros_like(field)
    upper[0] = 0.5 * speed[0] / (2.0 - 0.5 * speed[0])
    found[0] = field[0] / (2.0 - 0.5 * speed[0])
    for k in range(1, n):
        pivot = 1.0 / (2.0 + 0.3 * speed[k - 1] * upper[k - 1])
        upper[k] = 0.5 * speed[k] * pivot
        found[k] = (field[k] + 0.3 * speed[k - 1] * found[k - 1]) * pivot
    for k in range(n - 2, -1, -1):
        found[k] = found[k] - upper[k] * found[k + 1]
    return found


def bodies(place, velocity):  # type: ignore[no-untyped-def]
    """Bodies that attract each other: leapfrog steps, all pairs at once."""
    x, v = place.copy(), velocity.copy()
    n = x.shape[0]
    for _ in range(STEPS):
        x = x + 0.01 * v
        force = np.zeros_like(x)
        near = np.zeros((n, n)) + 0.1
        for axis in range(3):
            difference = x[:, axis].copy().reshape(1, n) - x[:, axis].copy().reshape(n, 1)
            near = near + difference * difference
        weight = near ** -1.5
        for axis in range(3):
            difference = x[:, axis].copy().reshape(1, n) - x[:, axis].copy().reshape(n, 1)
            force[:, axis] = np.sum(weight * difference, axis=1)
        v = v + (0.01 / n) * force
    return x


MATRIX, VECTOR = (20, 40, 80, 160), (200, 800, 3200)
KERNELS = {
    "sweep": Kernel(sweep, lambda n: (_random(n, n),), MATRIX),
    "gauss_seidel": Kernel(gauss_seidel, lambda n: (_random(n, n), _random(n, n)), MATRIX),
    "recursive_filter": Kernel(recursive_filter, lambda n: (_random(n),), VECTOR),
    "alignment": Kernel(alignment, lambda n: (_random(n, n),), MATRIX),
    "triangular_solve": Kernel(triangular_solve, lambda n: (_triangle(n), _random(n)), MATRIX),
    "lu": Kernel(lu, lambda n: (_definite(n),), MATRIX),
    "cholesky": Kernel(cholesky, lambda n: (_definite(n),), MATRIX),
    "durbin": Kernel(durbin, lambda n: (0.4 ** np.arange(1.0, n + 1.0),), MATRIX),
    "shortest_paths": Kernel(shortest_paths, lambda n: (_random(n, n),), MATRIX),
    "heat": Kernel(heat, lambda n: (_random(n, n),), MATRIX),
    "adi": Kernel(adi, lambda n: (_random(n, n),), MATRIX),
    "columns": Kernel(columns, lambda n: (_random(n, n), _random(n, n)), MATRIX),
    "bodies": Kernel(bodies, lambda n: (_random(n, 3), _random(3, n).T.copy()), MATRIX),
}
