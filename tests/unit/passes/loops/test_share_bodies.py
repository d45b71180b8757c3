"""Loops whose bodies differ in a few numbers get one body: which do, and which do not."""

from __future__ import annotations

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler import ops
from bwcompiler.frontend import trace
from bwcompiler.ir.graph import Graph, all_values
from bwcompiler.ir.op import Value
from bwcompiler.ir.semantics.graph_interpreter import interpret
from bwcompiler.ir.semantics.graph_verifier import verify
from bwcompiler.passes.loops import share_bodies as module
from bwcompiler.passes.loops.share_bodies import share_bodies
from tests.support.derivatives import check_derivatives

X = np.array([0.7, 1.3, 0.4])


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LEAST", 4)


def loops(graph: Graph) -> list[Value]:
    return [value for value in graph.body if value.op in ops.LOOPS]


def shared(fun) -> tuple[int, int]:
    """How many loops there are, and how many bodies they have; what they compute stays the same."""
    traced = trace(fun, (X,))
    made = share_bodies(traced.graph).graph
    verify(made)
    assert share_bodies(made).graph is made
    given = [X, *traced.captured]
    for one, other in zip(interpret(traced.graph, given), interpret(made, given), strict=True):
        np.testing.assert_array_equal(one, other)
    return len(loops(made)), len({value.attrs["body"] for value in loops(made)})


def decayed(y, begin, end, rate=1.0):
    t, h = begin, 0.1
    while t < end:
        h = min(h, end - t)
        y = y - h * rate * np.sin(y)
        h = h * (1.1 + 0.1 * np.tanh(y[0]))
        t = t + h
    return y


def dosed(x):
    y = decayed(x, 0.0, 1.0)
    y = decayed(y + 0.5, 1.0, 2.5)
    return decayed(y * x, 2.5, 4.0)


def counted(x, rate=0.5, times=12):
    for i in range(times):
        x = np.sin(x * rate) + np.cos(x) * i * 0.01
    return x


def test_bodies_that_differ_in_numbers_are_one_whose_operands_these_are() -> None:
    assert shared(dosed) == (3, 1)
    graph = share_bodies(trace(dosed, (X,)).graph).graph
    ends = [[operand.attrs["value"] for operand in value.operands[value.attrs["carried"]:] if operand.op is ops.full]
            for value in loops(graph)]
    assert ends == [[1.0], [2.5], [4.0]]                       # one operand, for the test and the step
    assert len({value.attrs["condition"] for value in loops(graph)}) == 1


def test_equal_bodies_of_counted_loops_are_one() -> None:
    assert shared(lambda x: counted(counted(x) * 2.0)) == (2, 1)
    assert shared(lambda x: counted(counted(x), 0.75)) == (2, 1)


@pytest.mark.parametrize("fun", [
    lambda x: counted(counted(x), times=13),
    lambda x: counted(counted(x), 1.0),                        # what is known makes it simpler
    lambda x: counted(counted(x[:2])[0] + x),                  # other shapes
    lambda x: decayed(decayed(x, 0.0, 1.0), 1.0, 2.0, rate=0.0),
], ids=["other iterations", "a factor of one", "other shapes", "a factor of zero"])
def test_other_bodies_stay_apart(fun) -> None:
    assert shared(fun) == (2, 2)


def test_small_bodies_and_many_numbers_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_NUMBERS", 0)
    assert shared(dosed) == (3, 3)
    monkeypatch.setattr(module, "LEAST", 1000)
    assert shared(lambda x: counted(counted(x) * 2.0)) == (2, 2)


def test_what_is_in_a_loop_inside_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    def swept(x, times=40):
        for _ in range(times):
            x = counted(x)
        return x

    monkeypatch.setattr(module, "LEAST", 12)
    outer = loops(trace(swept, (X,)).graph)[0].attrs["body"]
    assert len(outer.body) < module.LEAST <= len(list(all_values(outer)))
    assert shared(lambda x: swept(swept(x) * 2.0)) == (2, 1)


def test_numbers_that_differ_alike_are_one_operand_and_others_several() -> None:
    def stepped(y, low, high):
        t = 0.25
        while t < high:
            y = np.maximum(y * low, 0.125) + np.minimum(y, high) * low
            t = t + 0.5 + 0.01 * y[0] * y[0]
        return y

    graph = share_bodies(trace(lambda x: stepped(stepped(x, 0.3, 2.25), 0.4, 3.25), (X,)).graph).graph
    first, second = loops(graph)
    assert first.attrs["body"] is second.attrs["body"]
    given = [[operand.attrs["value"] for operand in value.operands if operand.op is ops.full] for value in (first, second)]
    assert sorted(set(given[0]) - set(given[1])) == [0.3, 2.25] and sorted(set(given[1]) - set(given[0])) == [0.4, 3.25]


@pytest.mark.parametrize("fun", [dosed, lambda x: counted(counted(x), 0.75)], ids=["while", "for"])
def test_derivatives(fun) -> None:
    def total(x):
        return (fun(x) ** 2).sum()

    check_derivatives(total, X)
    np.testing.assert_allclose(bw.jit(total)(X), total(X), rtol=1e-13)


def test_bodies_with_lines_that_errors_name_stay_apart() -> None:
    def solved(x):
        t = 0.0
        while t < 1.0:
            x = np.linalg.solve(np.diag(x) + np.eye(3), x) + np.sin(x) * 0.3
            t = t + 0.25 + 0.0 * x[0]
        return x

    def twice(x):
        first = solved(x)
        return solved(first + 1.0)

    assert shared(twice) == (2, 2)


def _with_cotangent(factor):
    @bw.custom_vjp
    def halved(x):
        return x * 0.5
    halved.defvjp(lambda x: (x * 0.5, None), lambda _, ct: ct * factor)
    return halved


def _repeated(fun, x):
    for _ in range(12):
        x = fun(np.sin(x) * 1.5) + x
    return x


def test_bodies_that_call_functions_with_other_derivatives_stay_apart() -> None:
    one, other = _with_cotangent(3.0), _with_cotangent(7.0)

    def total(x, y):
        return (_repeated(one, x) + _repeated(other, y)).sum()

    found = bw.grad(total, argnums=(0, 1))(X, X * 0.5)
    np.testing.assert_allclose(found[0], bw.grad(lambda x: _repeated(one, x).sum())(X), rtol=1e-14)
    np.testing.assert_allclose(found[1], bw.grad(lambda y: _repeated(other, y).sum())(X * 0.5), rtol=1e-14)
