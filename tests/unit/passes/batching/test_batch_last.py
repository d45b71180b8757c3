"""Batching with the new axis last: the same as with it first, for every op that has a rule; and which loops are mapped so."""

from __future__ import annotations

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler import ops
from bwcompiler.frontend import trace
from bwcompiler.ir.semantics.graph_interpreter import interpret
from bwcompiler.ir.semantics.graph_verifier import verify
from bwcompiler.passes.batching import batch_last, batch_regions
from bwcompiler.passes.batching.batch import batch_graph
from tests.support.loop_programs import PROGRAMS, weighted

SIZE = 3
RNG = np.random.default_rng(11)
X, Y, W, PLACES = RNG.standard_normal((4, 5)), RNG.standard_normal((4, 5)), RNG.standard_normal((5, 2)), np.array([2, 0, 2])
LONG = RNG.standard_normal((2, batch_last.WRITTEN_OUT + 1))


def updated(x, y):
    z = x * 1.0
    z[1:3, ::2] = y[:2, ::2]
    z[::-1, 1] += y[0, :4]
    return z


def scattered(x, i, y):
    z = x * 1.0
    z[i, 1] = y[:3, 0]
    z[i] = y[:3]
    return z


def convolved(x, w):
    one = bw.nn.conv1d(x[None], w[:4].reshape(2, 2, 2), stride=2, padding=1, dilation=2, groups=2)
    return one, bw.nn.conv2d(x[None, None], w[None, None, :3], padding=(1, 0))


RULES = {
    "elementwise": (lambda x, y: np.where(x > y, np.sin(x), y) * 2.0, (X, Y)),
    "numbers": (lambda x, y: x * y[0, 0] + np.sum(y), (1.5, Y)),
    "broadcast": (lambda x, y: x[0] * 2.0 + y[:, 1:2] + np.ones((2, 4, 5)), (X, Y)),
    "transpose": (lambda x: np.transpose(x.reshape(4, 5, 1), (2, 0, 1)), (X,)),
    "reshape": (lambda x: x.reshape(2, 10).reshape(-1), (X,)),
    "flip": (lambda x: np.flip(x, 0) + np.flip(x, -1), (X,)),
    "slice": (lambda x: x[1:3, ::-2] * x[2, 3], (X,)),
    "update": (updated, (X, Y)),
    "pad": (lambda x: np.pad(x, ((1, 0), (0, 2)), constant_values=3.0), (X,)),
    "concatenate": (lambda x, y: np.concatenate([x, y, x[:, :1] * np.ones((4, 2))], axis=1), (X, Y)),
    "reductions": (lambda x: (np.sum(x, axis=0), np.max(x, axis=1), np.mean(x), np.argmax(x, axis=1), np.prod(x)), (X,)),
    "scans": (lambda x: np.cumsum(x, axis=0) + np.cumsum(x, axis=1) + np.cumprod(x, axis=-1), (X,)),
    "product": (lambda x, w: x @ w, (X, W)),
    "product with a vector": (lambda x, w: (x @ w[:, 0], x[0] @ w, x[0] @ w[:, 1]), (X, W)),
    "long product": (lambda x, y: x @ y.T, (LONG, LONG * 0.5)),
    "stack of products": (lambda x, w: np.stack([x, x * 2.0]) @ np.stack([w, w + 1.0]), (X, W)),
    "gather": (lambda x, i: (x[i], x[i, 1], x[:, i], x[i - 4, i]), (X, PLACES)),
    "take": (lambda x, i: np.take_along_axis(x, i[:, None] + np.zeros((1, 2), int), 1), (X[:3], PLACES)),
    "scatter": (scattered, (X, PLACES, Y)),
    "windows": (convolved, (X, W)),
    "windows that add": (lambda x, w: bw.grad(lambda x, w: np.sum(convolved(x, w)[0] ** 2) + np.sum(convolved(x, w)[1] ** 3), (0, 1))(x, w), (X, W)),
}


def check(fun, args, flags):
    """The batch with the axis last is that with the axis first."""
    traced = trace(fun, args)
    assert batch_last.has_last_axis_rules(traced.graph)
    inputs, flags = [*args, *traced.captured], [*flags, *[False] * len(traced.captured)]
    given = []
    rng = np.random.default_rng(11)                       # here: other numbers, in another order of tests, might make a loop endless
    for x, flag in zip(inputs, flags, strict=True):
        x = np.asarray(x)
        shifts = rng.standard_normal((SIZE, *x.shape)) * 0.3 if x.dtype.kind == "f" else np.arange(SIZE).reshape(SIZE, *[1] * x.ndim) % 2
        given.append((x + shifts).astype(x.dtype) if flag else x)
    first, has_axis = batch_graph(traced.graph, flags, SIZE)
    last, has_last = batch_graph(traced.graph, flags, SIZE, last=True)
    verify(last)
    assert has_axis == has_last
    expected = interpret(first, given)
    found = interpret(last, [np.moveaxis(x, 0, -1) if flag else x for x, flag in zip(given, flags, strict=True)])
    for one, other, axis in zip(found, expected, has_axis, strict=True):
        assert np.asarray(one).dtype == np.asarray(other).dtype
        np.testing.assert_allclose(np.moveaxis(one, -1, 0) if axis else one, other, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", RULES)
def test_a_rule_for_the_last_axis_is_that_for_the_first(name):
    fun, args = RULES[name]
    for chosen in range(1, 1 << len(args)):
        check(fun, args, [bool(chosen >> k & 1) for k in range(len(args))])


def test_every_rule_is_tested():
    seen = set()
    for fun, args in RULES.values():
        seen |= {value.op for value in trace(fun, args).graph.body}
    assert set(batch_last._RULES) <= seen | {ops.barrier, ops.slice_add, ops.scatter_add}     # these: in the gradients below


@pytest.mark.parametrize("name", ["nested_scans", "seidel", "while_below", "branches_in_a_scan", "triangular_sums"])
def test_loops_with_the_axis_last(name, monkeypatch):
    """Every loop that can be mapped so is: values and gradients are those with the axis first."""
    program, args = PROGRAMS[name]
    batches = [x + 0.1 * np.arange(SIZE).reshape(SIZE, *[1] * x.ndim) if x.dtype.kind == "f" else np.stack([x] * SIZE)
               for x in map(np.asarray, args)]
    for fun in (lambda *given: weighted(program, bw, *given), bw.grad(lambda *given: weighted(program, bw, *given))):
        found = []
        for chosen in (lambda *_: False, lambda body, *_: batch_last.has_last_axis_rules(body)):
            monkeypatch.setattr(batch_regions, "gains_by_last_axis", chosen)
            traced = trace(bw.vmap(fun), batches)
            found.append(interpret(traced.graph, [*batches, *traced.captured]))
        np.testing.assert_allclose(found[0], found[1], rtol=1e-10, atol=1e-11)


def test_native_code_of_loops_with_the_axis_last(rng):
    def solve(y, a):
        def step(y, _):
            k = np.tanh(a @ y) + np.stack([y[1], y[0] * y[2], y[2]])
            return y + 0.1 * k + 0.05 * np.tanh(a.T @ k), y[0]
        last, path = bw.scan(step, y, None, length=6)
        return np.sum(last ** 2) + path[2] * path[3]
    y, a = rng.standard_normal((20, 3)), rng.standard_normal((3, 3))
    found = bw.vmap(bw.grad(solve, argnums=(0, 1)), in_axes=(0, None))(y, a)
    alone = bw.grad(solve, argnums=(0, 1))
    for number in (0, 7, 19):
        for one, other in zip(found, alone(y[number], a), strict=True):
            np.testing.assert_allclose(one[number], other, rtol=1e-11, atol=1e-12)
    total = bw.grad(lambda a: np.sum(bw.vmap(solve, in_axes=(0, None))(y, a)))(a)
    np.testing.assert_allclose(total, np.sum(found[1], axis=0), rtol=1e-11, atol=1e-12)


def test_loops_whose_ends_vary(monkeypatch):
    monkeypatch.setattr(batch_regions, "gains_by_last_axis", lambda *_: True)

    def halvings(x):
        return bw.while_loop(lambda s: np.sum(s[0]) > 1.0, lambda s: (s[0] * 0.5, s[1] + 1), (x, 0))
    x = np.array([[8.0, 1.0], [0.1, 0.2], [3.0, 30.0]])
    found, counts = bw.vmap(halvings)(x)
    assert counts.tolist() == [4, 0, 6]
    np.testing.assert_array_equal(found, x * 0.5 ** counts[:, None])


# ----- which loops
def steps(state_of, extent):
    def function(x):
        return bw.fori_loop(0, 20, lambda t, y: state_of(y), x)
    return function, np.ones((64, extent))


def vector(y):
    return np.stack([y[1], y[0] * 0.5, *y[2:]]) if len(y) < 8 else np.concatenate([y[1:], y[:1] * 0.5])


@pytest.mark.parametrize(("extent", "size", "shape"), [(3, 64, (3, 64)), (3, 2, (2, 3)), (100, 64, (64, 100))],
                         ids=["small arrays", "small batch", "long arrays"])
def test_where_the_axis_goes(extent, size, shape):
    function, x = steps(vector, extent)
    graph = trace(bw.vmap(function), [x[:size]]).graph
    [loop] = [value for value in graph.body if value.op is ops.loop]
    assert loop.attrs["body"].inputs[0].shape == shape


def test_residuals_have_the_loops_axis_first():
    """What a loop over numbers keeps for its adjoint: a row per iteration, along the batch."""
    def decay(x):
        return bw.fori_loop(0, 20, lambda t, y: y - 0.1 * np.sin(y), x)
    graph = trace(bw.vmap(bw.grad(decay)), [np.ones(64)]).graph
    shapes = {state.shape for value in graph.body if value.op is ops.loop for state in value.attrs["body"].inputs}
    assert shapes == {(64,), (20, 64)}
    assert not [value for value in graph.body if value.op is ops.transpose and value.operands[0].op is not ops.transpose
                and value.rank > 1 and value.operands[0].op is not ops.item]


def test_a_loop_that_moves_more_than_it_gains_is_left():
    function, x = steps(lambda y: y * 0.5 + 1.0, 3)          # element by element: rows are as good as columns
    graph = trace(bw.vmap(function), [x]).graph
    [loop] = [value for value in graph.body if value.op is ops.loop]
    assert loop.attrs["body"].inputs[0].shape == (64, 3)


def carry_of_mapped(function, x):
    graph = trace(bw.vmap(function), [x]).graph
    [loop] = [value for value in graph.body if value.op is ops.loop]
    return loop.attrs["body"].inputs[0].shape


def recurrence(x):
    y = np.empty_like(x)
    for k in range(x.shape[0]):
        y[k] = x[k] + (y[k - 1] if k else 0)
    return y


def dear_recurrence(x):
    y = np.empty_like(x)
    for k in range(x.shape[0]):
        y[k] = x[k] + (np.sin(y[k - 1]) if k else 0)
    return y


def by_data(x):
    y = np.zeros_like(x)
    for k in range(x.shape[0]):
        y[k] = x[k] + y[(x[k] > 0).astype(int)]
    return y


@pytest.mark.parametrize(("function", "shape"), [(recurrence, (64, 20)), (dear_recurrence, (20, 64)), (by_data, (20, 64))])
def test_what_will_be_written_out_has_the_axis_first(function, shape):
    x = np.cos(np.arange(64.0 * 20)).reshape(64, 20)
    assert carry_of_mapped(function, x) == shape
    assert carry_of_mapped(function, x[:8]) == (20, 8)
    np.testing.assert_allclose(bw.vmap(function)(x), [function(row) for row in x], rtol=1e-13, atol=1e-14)
    gradient = bw.grad(lambda x: np.sum(np.sin(function(x))))
    np.testing.assert_allclose(bw.grad(lambda x: np.sum(np.sin(bw.vmap(function)(x))))(x), [gradient(row) for row in x], rtol=1e-12, atol=1e-14)
