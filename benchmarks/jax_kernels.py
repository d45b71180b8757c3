"""The kernels as they are best written for JAX: `scan` and `fori_loop`, whole arrays instead of slices that grow, its own factorisations.

They compute what `kernels.py` computes; `loops.py` checks that before it times them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.scipy.linalg import solve_triangular

from benchmarks.kernels import STEPS


def _line(step: Callable[[Any, Any], Any], first: Any, *rows: Any) -> Any:
    """first, and what step makes of the one before and a row of each array, stacked."""
    def body(before: Any, row: Any) -> Any:
        found = step(before, row)
        return found, found
    return jnp.concatenate([jnp.asarray(first)[None], lax.scan(body, first, rows)[1]])


def sweep(a: Any) -> Any:
    def row(above: Any, rows: Any) -> Any:
        return _line(lambda before, here: (here[0] + here[1] + before) / 3.0, rows[0][0], rows[0][1:], above[1:])
    return _line(row, a[0], a[1:])


def gauss_seidel(u: Any, source: Any) -> Any:
    def once(u: Any, _: Any) -> Any:
        def row(above: Any, rows: Any) -> Any:
            old, below, f = rows
            inner = _line(lambda before, here: 0.25 * (here[0] + here[1] + before + here[2] - here[3]), old[0],
                          above[1:-1], below[1:-1], old[2:], f[1:-1])
            return jnp.concatenate([inner, old[-1:]])
        return jnp.concatenate([_line(row, u[0], u[1:-1], u[2:], source[1:-1]), u[-1:]]), None
    return lax.scan(once, u, None, length=STEPS)[0]


def recursive_filter(x: Any) -> Any:
    drive = 0.4 * x[2:] + 0.2 * x[1:-1]

    def step(last: Any, d: Any) -> Any:
        y = d + 0.6 * last[0] - 0.1 * last[1]
        return (y, last[0]), y
    first, second = x[0], x[1] + 0.6 * x[0]
    return jnp.concatenate([jnp.stack([first, second]), lax.scan(step, (second, first), drive)[1]])


def alignment(cost: Any) -> Any:
    def row(above: Any, rows: Any) -> Any:
        here = rows[0]
        return _line(lambda before, at: at[0] + jnp.minimum(at[1], jnp.minimum(at[2], before)), above[0] + here[0],
                     here[1:], above[:-1], above[1:])
    return _line(row, jnp.cumsum(cost[0]), cost[1:])


def triangular_solve(lower: Any, b: Any) -> Any:
    return solve_triangular(lower, b, lower=True)


def lu(a: Any) -> Any:
    index = jnp.arange(a.shape[0])

    def step(k: Any, a: Any) -> Any:
        below, right = index > k, index > k
        factors = jnp.where(below, a[:, k] / a[k, k], a[:, k])
        a = a.at[:, k].set(factors)
        return a - jnp.outer(jnp.where(below, factors, 0.0), jnp.where(right, a[k], 0.0))
    return lax.fori_loop(0, a.shape[0], step, a)


def cholesky(a: Any) -> Any:
    return jnp.linalg.cholesky(a, symmetrize_input=False)


def durbin(r: Any) -> Any:
    n = r.shape[0]
    index = jnp.arange(n)

    def step(carry: Any, k: Any) -> Any:
        y, alpha, beta = carry
        beta = beta * (1.0 - alpha * alpha)
        mirror = jnp.clip(k - 1 - index, 0, n - 1)
        alpha = -(r[k] + jnp.sum(jnp.where(index < k, r[mirror] * y, 0.0))) / beta
        y = jnp.where(index < k, y + alpha * y[mirror], jnp.where(index == k, alpha, y))
        return (y, alpha, beta), None
    start = (jnp.zeros_like(r).at[0].set(-r[0]), -r[0], jnp.ones_like(r[0]))
    return lax.scan(step, start, jnp.arange(1, n))[0][0]


def shortest_paths(d: Any) -> Any:
    return lax.fori_loop(0, d.shape[0], lambda k, d: jnp.minimum(d, d[:, k, None] + d[None, k]), d)


def heat(u: Any) -> Any:
    def step(u: Any, _: Any) -> Any:
        around = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]
        return u.at[1:-1, 1:-1].add(0.1 * (around - 4.0 * u[1:-1, 1:-1])), None
    return lax.scan(step, u, None, length=STEPS)[0]


def adi(u: Any) -> Any:
    n = u.shape[0]
    c = _line(lambda before, _: 0.25 / (1.5 - 0.25 * before), jnp.asarray(0.25 / 1.5, u.dtype), jnp.zeros(n - 1))

    def implicit(u: Any) -> Any:
        down = _line(lambda before, at: (at[0] + 0.25 * before) * (at[1] * 4.0), u[0] * (c[0] * 4.0), u[1:], c[1:])
        return _line(lambda before, at: at[0] + at[1] * before, down[-1], down[-2::-1], c[-2::-1])[::-1]

    def step(u: Any, _: Any) -> Any:
        return implicit(implicit(u).T).T, None
    return lax.scan(step, u, None, length=STEPS)[0]


def columns(field: Any, speed: Any) -> Any:
    first = (0.5 * speed[0] / (2.0 - 0.5 * speed[0]), field[0] / (2.0 - 0.5 * speed[0]))

    def down(before: Any, level: Any) -> Any:
        at, here, last = level
        pivot = 1.0 / (2.0 + 0.3 * last * before[0])
        found = (0.5 * here * pivot, (at + 0.3 * last * before[1]) * pivot)
        return found, found
    upper, found = lax.scan(down, first, (field[1:], speed[1:], speed[:-1]))[1]
    upper, found = jnp.concatenate([first[0][None], upper]), jnp.concatenate([first[1][None], found])
    return _line(lambda before, at: at[0] - at[1] * before, found[-1], found[-2::-1], upper[-2::-1])[::-1]


def bodies(place: Any, velocity: Any) -> Any:
    n = place.shape[0]

    def step(state: Any, _: Any) -> Any:
        x, v = state
        x = x + 0.01 * v
        difference = x[None] - x[:, None]
        weight = (0.1 + jnp.sum(difference * difference, axis=-1)) ** -1.5
        return (x, v + (0.01 / n) * jnp.sum(weight[..., None] * difference, axis=1)), None
    return lax.scan(step, (place, velocity), None, length=STEPS)[0][0]


def value_and_grad(name: str) -> Callable[..., Any]:
    """The compiled value and gradient of a kernel's sum of squares."""
    function = globals()[name]
    return jax.jit(jax.value_and_grad(lambda *args: jnp.sum(function(*args) ** 2)))


def forward(name: str) -> Callable[..., Any]:
    """The compiled kernel."""
    return jax.jit(globals()[name])
