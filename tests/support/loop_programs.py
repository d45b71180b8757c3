"""Programs with loops and branches, each run with `bwcompiler` and with plain Python (`plain_loops`), and checks of values and derivatives.

A program takes the namespace that has the loop functions, then its arguments.  `MODES` says how traced programs are run; second
derivatives are interpreted only, because compiling them takes most of the time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import bwcompiler as bw
from bwcompiler import tree
from bwcompiler.frontend import trace
from bwcompiler.ir.semantics.graph_interpreter import interpret
from bwcompiler.ir.semantics.graph_verifier import verify
from tests.support import plain_loops as plain
from tests.support.arrays import copies
from tests.support.gradcheck import central_differences

MODES = ("interpreted", "compiled")

Program = Callable[..., Any]
PROGRAMS: dict[str, tuple[Program, tuple[Any, ...]]] = {}


def results(fun: Callable[..., Any], *args: Any, modes: tuple[str, ...] = MODES) -> list[Any]:
    """The leaves of what a function of arrays gives, by its graph; equal in all modes."""
    traced = trace(fun, args)
    verify(traced.graph)
    leaves = [np.asarray(leaf) for leaf in tree.leaves(args)]
    found = interpret(traced.graph, [*leaves, *traced.captured])[:len(traced.outputs)]
    if "compiled" in modes:
        for one, other in zip(found, tree.leaves(bw.jit(fun, mutates=False)(*args)), strict=True):
            assert np.shape(other) == one.shape and np.asarray(other).dtype == one.dtype
            np.testing.assert_allclose(other, one, rtol=1e-12, atol=1e-12)
    return found


def check_values(program: Program, *args: Any) -> None:
    """The same values, shapes and dtypes as plain Python gives."""
    expected = tree.leaves(program(plain, *copies(args)))
    actual = results(lambda *given: program(bw, *given), *copies(args))
    assert len(actual) == len(expected)
    for one, other in zip(actual, expected, strict=True):
        assert one.dtype == np.asarray(other).dtype and one.shape == np.shape(other)
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)


def weighted(program: Program, namespace: Any, *args: Any) -> Any:
    """One number of all results."""
    total = 0.0
    for number, leaf in enumerate(tree.leaves(program(namespace, *args))):
        total = total + np.sum(np.sin(leaf * (number + 1.0)))
    return total


def check_gradients(program: Program, *args: Any, order: int = 2) -> None:
    """Gradients of float arguments equal central differences; those of gradients too."""
    numbers = tuple(k for k, arg in enumerate(args) if np.asarray(arg).dtype.kind == "f")

    def gradient(*given: Any) -> Any:
        return bw.grad(lambda *xs: weighted(program, bw, *xs), argnums=numbers)(*given)

    found = results(gradient, *args)
    for place, k in enumerate(numbers):
        expected = central_differences(lambda x, k=k: weighted(program, plain, *args[:k], x, *args[k + 1:]), args[k])
        _assert_near(found[place], expected, 1e-6)
    if order < 2:
        return
    traced = trace(gradient, args)

    def direction(*given: Any) -> Any:
        return sum(np.sum(np.cos(leaf)) for leaf in gradient(*given))

    second = results(bw.grad(direction, argnums=numbers).fun, *args, modes=("interpreted",))
    for place, k in enumerate(numbers):
        def by_graph(x: Any, k: int = k) -> Any:
            leaves = interpret(traced.graph, [*args[:k], x, *args[k + 1:], *traced.captured])
            return sum(np.sum(np.cos(leaf)) for leaf in leaves[:len(numbers)])
        _assert_near(second[place], central_differences(by_graph, args[k], eps=1e-5), 1e-5)


def _assert_near(actual: Any, expected: Any, tolerance: float) -> None:
    scale = max(1.0, float(np.max(np.abs(expected), initial=0.0)))
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance * scale)


def program(*args: Any) -> Callable[[Program], Program]:
    """Register a program with its arguments."""
    def register(fun: Program) -> Program:
        PROGRAMS[fun.__name__] = (fun, args)
        return fun
    return register


RNG = np.random.default_rng(7)
ROWS = RNG.standard_normal((4, 3))
SQUARE = RNG.standard_normal((3, 3))
VECTOR = RNG.standard_normal(4)
GRID = RNG.standard_normal((5, 5))
SYMMETRIC = ROWS.T @ ROWS + 3.0 * np.eye(3)


# ----- counted loops
@program(SQUARE, ROWS, ROWS[0])
def recurrent_net(bw, w, xs, h):
    def step(h, x):
        h = np.tanh(h @ w + x)
        return h, {"h": h, "sum": h.sum()}
    return bw.scan(step, h, xs)


@program(VECTOR)
def reversed_scan(bw, x):
    return bw.scan(lambda c, v: (c + v * v, c * v), 0.5, x, reverse=True)


@program(VECTOR, np.array(0.3))
def scan_without_xs(bw, x, a):
    return bw.scan(lambda c, _: (c * np.cos(c) + a, None), x, None, length=3)


@program(ROWS, VECTOR, ROWS[:, 0].copy())
def scan_over_a_tree(bw, a, b, c):
    xs = {"a": a, "b": (b, c)}

    def step(c, x):
        return (c[0] + x["b"][0], c[1] * x["a"]), (x["a"] * c[0], None, x["b"][1])
    return bw.scan(step, (0.0, np.ones(3)), xs)


@program(ROWS)
def mapped(bw, x):
    return bw.map(lambda row: {"unit": row / np.sqrt(np.sum(row * row)), "first": row[0]}, x)


@program(ROWS)
def index_as_a_number(bw, x):
    return bw.fori_loop(0, 4, lambda i, c: c * x[i] + i * 0.5, np.ones(3))


@program(ROWS, SQUARE)
def nested_scans(bw, x, w):
    def outer(c, row):
        def inner(d, v):
            return d * v + np.sin(c), d
        d, ds = bw.scan(inner, np.ones(3), w * row)
        return c + d.sum() * 0.1, ds
    return bw.scan(outer, 0.2, x)


@program(SYMMETRIC)
def cholesky(bw, given):
    a = given.copy()

    def row(i, _):
        def column(j, _):
            a[i, j] -= a[i, :j] @ a[j, :j]
            a[i, j] /= a[j, j]
        bw.fori_loop(0, i, column, None)
        a[i, i] -= a[i, :i] @ a[i, :i]
        a[i, i] = np.sqrt(a[i, i])
    bw.fori_loop(0, 3, row, None)
    return np.tril(a)


@program(GRID)
def seidel(bw, given):
    a = given.copy()

    def sweep(t, _):
        def row(i, _):
            a[i, 1:-1] += a[i - 1, :-2] * a[i - 1, 1:-1] + a[i, 2:] + a[i + 1, :-2]

            def column(j, _):
                a[i, j] += a[i, j - 1]
                a[i, j] /= 9.0
            bw.fori_loop(1, 4, column, None)
        bw.fori_loop(1, 4, row, None)
    bw.fori_loop(0, 2, sweep, None)
    return a


@program(np.tril(SYMMETRIC), ROWS[0])
def forward_substitution(bw, matrix, b):
    x = np.zeros_like(b)

    def row(i, _):
        x[i] = (b[i] - matrix[i, :i] @ x[:i]) / matrix[i, i]
    bw.fori_loop(0, 3, row, None)
    return x


@program(GRID, VECTOR)
def triangular_sums(bw, a, v):
    def outer(i, total):
        def inner(j, c):
            return c + a[i, j] * np.sum(a[j:i + 1, j] ** 2)
        return bw.fori_loop(0, i + 1, inner, total)
    return bw.fori_loop(1, 5, outer, v[0])


@program(VECTOR)
def carry_and_closure(bw, x):
    history = np.zeros_like(x)

    def step(i, c):
        c[1] = c[0] * x[i]
        history[i] = c.sum()
        return c[::-1] + 0.1
    return bw.fori_loop(0, 4, step, np.array([0.5, 2.0])), history


@program(VECTOR)
def rows_from_the_end(bw, x):
    y = x.copy()

    def step(i, _):
        y[3 - i] = y[3 - i] * y[-1] + x[-1 - i]
    bw.fori_loop(0, 4, step, None)
    return y


# ----- loops whose end is data
@program(VECTOR, ROWS[0])
def while_below(bw, x, y):
    """Seven iterations, of which the number is data."""
    def step(c):
        return c[0] * 1.3 + np.sin(c[0]) * y[0], c[1] + c[0].sum() * y, c[2] + 1
    found = bw.while_loop(lambda c: np.sum(c[0] ** 2) < 60.0, step, (x, y, 0))
    return found[0] * 0.1, found[1] * 0.1


@program(VECTOR, np.array(20))
def many_iterations(bw, x, limit):
    return bw.while_loop(lambda c: c[1] < limit, lambda c: (np.sin(c[0]) * 1.1, c[1] + 1), (x, 0))[0]


@program(np.abs(VECTOR), np.array([7, 2]))
def counted_by_data(bw, x, n):
    return bw.fori_loop(0, n[0] + n[1], lambda i, c: c * np.cos(c) + x / (i + 1.0), x)


@program(np.abs(ROWS) + 1.0)
def newton_in_a_scan(bw, rows):
    def root(carry, row):
        found = bw.while_loop(lambda s: np.max(np.abs(s * s - row)) > 1e-12, lambda s: 0.5 * (s + row / s), row * 0.5 + 0.5)
        return carry + found.sum(), found
    return bw.scan(root, 0.0, rows)


@program(VECTOR)
def no_iterations(bw, x):
    return bw.while_loop(lambda c: np.sum(c) > 1e9, lambda c: c * 2.0, x * x)


@program(VECTOR)
def while_in_a_while(bw, x):
    def outer(c):
        inner = bw.while_loop(lambda d: np.sum(d[0] ** 2) < 9.0, lambda d: (d[0] * 1.5, d[1] + x), (c[0], c[0]))
        return np.sin(inner[0]) * 0.5 + inner[1] * 0.01, c[1] + 1
    return bw.while_loop(lambda c: c[1] < 3, outer, (x, 0))[0]


@program(GRID)
def while_over_parts(bw, a):
    """What each iteration reads is larger or smaller by the indices of the loops around."""
    def until(part):
        step = lambda c: (c[0] + 0.4 + 0.1 * np.sum(np.exp(np.sin(part * c[0]))), c[1] + 1)
        return bw.while_loop(lambda c: c[0] ** 2 < 4.0, step, (0.1, 0))[0]

    def row(i, total):
        return bw.fori_loop(0, i + 1, lambda j, total: total + until(a[j:i + 1, i + 1:]) * (i - j + 1), total)
    return bw.fori_loop(0, 4, row, 0.0)


@program(VECTOR)
def while_of_few_iterations(bw, x):
    """At most seven, that data end earlier, or six."""
    first = bw.while_loop(lambda c: (c[1] < 7) & (np.sum(c[0] ** 2) < 40.0), lambda c: (c[0] * 1.3 + np.sin(c[0]) * x, c[1] + 1), (x, 0))
    second = bw.while_loop(lambda c: (np.sum(c[0] ** 2) < 1e9) & (c[1] < 16), lambda c: (c[0] * np.cos(c[0] * x), c[1] + 3), (x, 1))
    never = bw.while_loop(lambda c: (c[1] < 5) & (np.sum(c[0]) > 1e9), lambda c: (c[0] * c[0], c[1] + 1), (x, 0))
    return first[0] * 0.1 + second[0] + never[0]


@program(ROWS)
def while_of_few_iterations_in_loops(bw, rows):
    """Its residuals are values that the loops around keep: a scan, and a while loop of few iterations itself."""
    def until(y, x):
        return bw.while_loop(lambda c: (c[1] < 4) & (c[0] < 1.9), lambda c: (np.sin(c[0]) + 0.6 + 0.2 * np.sin(x), c[1] + 1), (y, 0))[0]

    def row(carry, x):
        again = bw.while_loop(lambda c: (c[1] < 3) & (c[0] < 50.0), lambda c: (until(c[0] + 0.3, x[0]) * 0.8, c[1] + 1), (carry * 0.5, 0))
        return again[0] + until(np.sum(x) * 0.2, carry), again[0]
    return bw.scan(row, 0.4, rows)


# ----- branches
@program(VECTOR, ROWS[0])
def branch_on_data(bw, x, y):
    return bw.cond(x[0] > 0.1, lambda a: (np.sin(a) * x.sum(), y), lambda a: (a * 2.0, a[0] * y), x)


@program(-np.abs(VECTOR), ROWS[0])
def other_branch_on_data(bw, x, y):
    return branch_on_data(bw, x, y)


@program(ROWS, SQUARE)
def branches_in_a_scan(bw, x, w):
    """Both branches keep residuals; one of them captures an array, the other one assigns to one outside."""
    seen = np.zeros_like(x)

    def step(c, row):
        i, h = c

        def product():
            return np.exp(np.tanh(h @ w)) * row

        def other():
            seen[0] = seen[0] + h * row
            return np.sin(h) @ SQUARE
        return (i + 1, bw.cond(row[0] > 0.0, product, other)), h.sum()
    (_, h), sums = bw.scan(step, (0, x[0]), x)
    return h, sums, seen


@program(ROWS)
def switch_by_index(bw, x):
    branches = [lambda row: row * 2.0, lambda row: np.exp(row), lambda row: row[::-1] * row[0]]
    return bw.fori_loop(0, 4, lambda i, c: c * 0.5 + bw.switch(i, branches, x[i] + c), np.zeros(3))


@program(GRID)
def loop_in_a_branch(bw, a):
    def sweep(m):
        return bw.fori_loop(0, 5, lambda i, c: c * np.cos(m[i]) + i, m[0])
    return bw.cond(np.sum(a) > 1000.0, lambda m: m[1], sweep, a)


# ----- computed again
@program(ROWS, SQUARE)
def checkpointed_layers(bw, x, w):
    layer = bw.checkpoint(lambda h: np.tanh(np.sin(h) @ w))
    return layer(layer(x))


@program(ROWS, SQUARE)
def checkpointed_with_products_kept(bw, x, w):
    layer = bw.checkpoint(lambda h, w: (np.tanh(np.sin(h) @ w), h.sum()), policy=lambda op: op == "matmul")
    h, total = layer(x, w)
    return layer(h * total, w)


@program(ROWS, SQUARE)
def checkpoints_in_loops_and_branches(bw, xs, w):
    seen = np.zeros_like(xs)

    def step(i, h):
        def inner(h):
            seen[i] = np.sin(h)
            return bw.cond(h.sum() > 0, lambda: np.tanh(h @ w), lambda: np.exp(-h * h))
        return bw.checkpoint(inner)(h) + xs[i]
    return bw.fori_loop(0, 4, step, xs[0]), seen


@program(RNG.standard_normal((7, 3)), SQUARE, ROWS[0])
def scan_in_segments(bw, xs, w, h):
    def step(h, x):
        h = np.tanh(h @ w + x)
        return h, {"sum": h.sum(), "h": h}
    first = bw.scan(step, h, xs, checkpoint=True)
    return first, bw.scan(step, first[0], xs, reverse=True, checkpoint=3)


@program(ROWS.astype(np.float32), np.float64(0.5))
def promoted_carries(bw, x, a):
    """A Python integer becomes float32, another one stays an integer, float32 becomes float64."""
    def step(c, row):
        return (c[0] + row.sum(), c[1] + 1, c[2] * a), c[1]
    (total, _, scaled), _ = bw.scan(step, (0, 0, x[0]), x)
    return total, scaled
