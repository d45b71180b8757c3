"""Cotangents that are made zero and added again stay, and all others are made zero."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler import ops
from bwcompiler.compiler.pipeline import derive
from bwcompiler.frontend import trace
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import Record, Value, input_value
from bwcompiler.ir.semantics.graph_interpreter import interpret
from bwcompiler.ir.types import F64, tensor
from bwcompiler.passes.adjoints.bodies.keep_cotangents import keep_cotangents
from bwcompiler.passes.derivatives.autodiff import INPUT_SEED
from bwcompiler.passes.rewriting.simplify import simplify

C = np.linspace(-1.0, 1.0, 12)
P = np.cos(np.arange(12.0))


def part(x: Value, start: int, size: int, step: int = 1) -> Value:
    return ops.slice(x, starts=(start,), sizes=(size,), steps=(step,))


def cleared(c: Value, start: int, size: int, step: int = 1) -> Value:
    return ops.slice_update(c, ops.full(value=0.0, shape=(size,), dtype=F64), starts=(start,), steps=(step,))


def added(c: Value, v: Value, start: int, step: int = 1) -> Value:
    return ops.slice_add(c, v, starts=(start,), steps=(step,))


def left_behind(c: Value, p: Value) -> list[Value]:
    """What is read of the cleared cotangent besides: it has to be there."""
    zero = cleared(c, 2, 4)
    return [added(zero, part(c, 2, 4), 2), ops.multiply(zero, p)]


KEPT: dict[str, tuple[Callable[[Value, Value], Value], int]] = {           # the last: how many elements are made zero
    "all again": (lambda c, p: added(cleared(c, 2, 4), part(c, 2, 4), 2), 0),
    "after others": (lambda c, p: added(added(cleared(c, 2, 1), part(p, 0, 9), 3), part(c, 2, 1), 2), 0),
    "in a sum": (lambda c, p: added(cleared(c, 2, 4), ops.add(part(p, 1, 4), part(c, 2, 4)), 2), 0),
    "in two pieces": (lambda c, p: added(added(cleared(c, 2, 4), part(c, 2, 3), 2), part(c, 5, 1), 5), 0),
    "the beginning": (lambda c, p: added(cleared(c, 2, 4), part(c, 2, 3), 2), 1),
    "the end": (lambda c, p: added(cleared(c, 2, 4), part(c, 4, 2), 4), 2),
    "backwards": (lambda c, p: added(added(cleared(c, 0, 5), part(c, 4, 5, -1), 0), part(c, 0, 5), 0), 0),
    "in steps": (lambda c, p: added(cleared(c, 1, 4, 3), part(c, 1, 4, 3), 1, 3), 0),
    "the middle": (lambda c, p: added(cleared(c, 2, 4), part(c, 3, 2), 3), 4),
    "twice": (lambda c, p: added(added(cleared(c, 2, 4), part(c, 2, 4), 2), part(c, 2, 4), 2), 4),
    "twice in parts": (lambda c, p: added(added(cleared(c, 2, 4), part(c, 2, 3), 2), part(c, 3, 3), 3), 4),
    "beyond": (lambda c, p: added(cleared(c, 2, 4), part(c, 2, 5), 2), 4),
    "of another place": (lambda c, p: added(cleared(c, 2, 4), part(c, 3, 4), 2), 4),
    "of another array": (lambda c, p: added(cleared(c, 2, 4), part(p, 2, 4), 2), 4),
    "in a difference": (lambda c, p: added(cleared(c, 2, 4), ops.subtract(part(c, 2, 4), part(p, 1, 4)), 2), 0),
    "before another": (lambda c, p: added(added(cleared(cleared(c, 2, 4), 7, 2), part(c, 2, 4), 2), part(p, 1, 2), 7), 2),
    "behind another": (lambda c, p: added(cleared(added(cleared(c, 2, 3), part(p, 0, 2), 8), 5, 2), part(c, 5, 2), 5), 3),
    "of even places": (lambda c, p: added(added(cleared(cleared(c, 0, 6, 2), 1, 6, 2), part(c, 0, 6, 2), 0, 2), part(c, 1, 6, 2), 1, 2), 0),
    "zero again": (lambda c, p: added(cleared(cleared(c, 2, 4), 3, 2), part(c, 2, 4), 2), 6),
    "changed between": (lambda c, p: added(cleared(added(c, part(p, 0, 3), 4), 2, 4), part(c, 2, 4), 2), 4),
    "a multiple": (lambda c, p: added(cleared(c, 2, 4), ops.add(part(c, 2, 4), part(c, 2, 4)), 2), 0),
}


SET: dict[str, tuple[Callable[[Value, Value], Value], int]] = {            # the last: how many updates set elements
    "in two pieces": (lambda c, p: added(added(cleared(c, 2, 4), part(p, 2, 3), 2), part(p, 5, 1), 5), 2),
    "backwards": (lambda c, p: added(added(cleared(c, 2, 4), part(p, 5, 1), 5), part(p, 2, 3), 2), 2),
    "and added": (lambda c, p: added(added(added(cleared(c, 2, 4), part(p, 2, 3), 2), part(p, 5, 1), 5), part(p, 0, 9), 1), 2),
    "added before": (lambda c, p: added(added(added(cleared(c, 2, 4), part(p, 0, 9), 1), part(p, 2, 3), 2), part(p, 5, 1), 5), 1),
    "in part": (lambda c, p: added(cleared(c, 2, 4), part(p, 5, 1), 5), 1),
    "in all": (lambda c, p: added(cleared(c, 2, 4), part(p, 5, 4), 2), 1),
}


@pytest.mark.parametrize("name", SET)
def test_what_is_added_to_zeros_is_set(name: str) -> None:
    build, updates = SET[name]
    c, p = input_value(tensor(F64, C.shape)), input_value(tensor(F64, P.shape))
    with Record() as record:
        total = build(c, p)
    graph = Graph("ct", [c, p], record.values, [total])
    made = keep_cotangents(graph, 1)
    assert sum([value.op is ops.slice_update for value in made.body]) == updates
    np.testing.assert_allclose(interpret(made, [C, P])[0], interpret(graph, [C, P])[0], rtol=1e-15, atol=1e-15)


@pytest.mark.parametrize("name", KEPT)
def test_what_is_added_again_is_not_made_zero(name: str) -> None:
    build, zeros = KEPT[name]
    c, p = input_value(tensor(F64, C.shape)), input_value(tensor(F64, P.shape))
    with Record() as record:
        total = build(c, p)
    graph = Graph("ct", [c, p], record.values, [total])
    made = keep_cotangents(graph, 1)
    assert sum([value.operands[1].type.size for value in made.body if value.op is ops.slice_update]) == zeros
    np.testing.assert_allclose(interpret(made, [C, P])[0], interpret(graph, [C, P])[0], rtol=1e-15, atol=1e-15)
    assert keep_cotangents(graph, 0) is graph and keep_cotangents(made, 1) is made


def test_what_is_read_between_stays() -> None:
    c, p = input_value(tensor(F64, C.shape)), input_value(tensor(F64, P.shape))
    with Record() as record:
        outputs = left_behind(c, p)
    graph = Graph("ct", [c, p], record.values, outputs)
    assert keep_cotangents(graph, 2) is graph


def triangular(a, b):
    """trmm of PolyBench."""
    b = b.copy()
    for i in range(b.shape[0]):
        for j in range(b.shape[1]):
            b[i, j] += np.dot(a[i + 1:, i], b[i + 1:, j])
    return b


def recursion(a, b):
    """A vector that grows by an element, and to which it is added backwards (Durbin's)."""
    y = b[0].copy()
    for k in range(1, y.shape[0]):
        y[:k] += a[0, k] * y[:k][::-1]
        y[k] = np.sin(a[1, k] * y[k - 1])
    return y


@pytest.mark.parametrize(("program", "zeros"), [(triangular, 0), (recursion, 1)])
def test_gradients_of_updates_that_add(program, zeros, rng) -> None:
    a, b = rng.uniform(-0.3, 0.3, (2, 20, 20))
    joint = derive(simplify(trace(program, (a, b)).graph).graph, (0, 1), [INPUT_SEED]).graph
    loop = next(value for value in joint.body if value.op is ops.loop and value.attrs["step"] == -1)
    made = [value for value in loop.attrs["body"].body if value.op is ops.slice_update and value.operands[1].op is ops.full]
    assert sum([value.operands[1].type.size for value in made]) == zeros
    bw.check_grads(program, (a[:6, :6], b[:6, :6]), order=2)
