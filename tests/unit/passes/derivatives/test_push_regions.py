"""Forward mode of loops and branches: tangents are those of differences and fit the cotangents; no loop runs twice."""

from __future__ import annotations

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.frontend import trace
from tests.support import loop_programs
from tests.support import plain_loops as plain
from tests.support.loop_programs import PROGRAMS, weighted
from tests.unit.passes.adjoints.test_expand_regions import NOT_SMOOTH


def results(fun, *args):
    return loop_programs.results(fun, *args, modes=("interpreted",))


RNG = np.random.default_rng(11)
STEP = 1e-6


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in NOT_SMOOTH])
def test_tangents(name, rng):
    """<gradient, direction> = the tangent = the difference; and so for the gradient itself (forward over reverse)."""
    program, args = PROGRAMS[name]
    numbers = [k for k, arg in enumerate(args) if np.asarray(arg).dtype.kind == "f"]
    direction = [rng.standard_normal(np.shape(args[k])) for k in numbers]

    def loss(namespace, *given):
        full = list(args)
        for k, x in zip(numbers, given, strict=True):
            full[k] = x
        return weighted(program, namespace, *full)

    at = [args[k] for k in numbers]
    def moved(step):
        return loss(plain, *[x + step * v for x, v in zip(at, direction, strict=True)])
    value, tangent = results(lambda *xs: bw.jvp(lambda *ys: loss(bw, *ys), xs[:len(at)], xs[len(at):]), *at, *direction)
    assert value == pytest.approx(loss(plain, *at), rel=1e-12)
    assert tangent == pytest.approx((moved(STEP) - moved(-STEP)) / (2 * STEP), rel=1e-5, abs=1e-6)
    gradient = bw.grad(lambda *ys: loss(bw, *ys), argnums=tuple(range(len(at))))
    cotangents = results(gradient.fun, *at)
    assert tangent == pytest.approx(sum(np.sum(ct * v) for ct, v in zip(cotangents, direction, strict=True)), rel=1e-10, abs=1e-11)

    def products(*xs):
        return bw.jvp(gradient, xs[:len(at)], xs[len(at):])[1]

    def reverse_over_reverse(*xs):
        return bw.grad(lambda *ys: sum(np.sum(g * v) for g, v in zip(gradient(*ys), xs[len(at):], strict=True)),
                       argnums=tuple(range(len(at))))(*xs[:len(at)])
    for one, other in zip(results(products, *at, *direction), results(reverse_over_reverse, *at, *direction), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


def loops_of(fun, *args):
    return [value for value in trace(fun, args).graph.body if value.op.kind == "region"]


def test_no_loop_runs_twice():
    x = np.ones(3)
    program = lambda x: bw.scan(lambda c, v: (np.sin(c * v), c), 1.0, x)
    assert len(loops_of(lambda x: bw.jvp(program, (x,), (x,)), x)) == 1
    branch = lambda x: bw.cond(x[0] > 0, lambda: np.sin(x), lambda: x)
    assert len(loops_of(lambda x: bw.jvp(branch, (x,), (x,)), x)) == 1
    until = lambda x: bw.while_loop(lambda c: c[0] < 9.0, lambda c: c * 2.0, x)
    assert len(loops_of(lambda x: bw.jvp(until, (x,), (x,)), x)) == 1


def test_what_has_no_tangent_is_not_doubled():
    [loop] = loops_of(lambda x, y: bw.jvp(lambda x: bw.fori_loop(0, 3, lambda i, c: (c[0] * y, c[1] + 1, c[2] * c[0]), (y, 0, x)), (x,), (x,)),
                      np.ones(3), np.ones(3))
    assert [str(type_) for type_ in loop.type.items] == ["f64[3]", "i64[]", "f64[3]", "f64[3]"]


def test_custom_rules_inside_of_a_loop():
    weights = np.arange(3.0)

    @bw.custom_jvp
    def doubled(x):
        return np.sin(x)
    doubled.defjvp(lambda primals, tangents: (doubled(primals[0]), 2.0 * np.cos(primals[0]) * tangents[0] * weights))

    def program(x):
        return bw.fori_loop(0, 2, lambda i, c: doubled(c), x)
    x = np.array([0.1, 0.2, 0.3])
    expected = 2 * np.cos(np.sin(x)) * weights * 2 * np.cos(x) * weights
    np.testing.assert_allclose(results(lambda x: bw.jvp(program, (x,), (np.ones_like(x),))[1], x)[0], expected)
    np.testing.assert_allclose(results(bw.grad(lambda x: program(x).sum()).fun, x)[0], expected)


def test_maps_of_programs_with_loops():
    """vmap, jacobians in both modes, hessians: transforms nest over loops."""
    def program(x):
        return bw.scan(lambda c, v: (np.sin(c) * v, c * v), 0.7, x)[1]
    x = np.array([0.5, -0.3, 1.1])
    forward, reverse = results(bw.jacfwd(program).fun, x)[0], results(bw.jacrev(program).fun, x)[0]
    np.testing.assert_allclose(forward, reverse, rtol=1e-12)
    [hessian] = results(bw.hessian(lambda x: program(x).sum()).fun, x)
    np.testing.assert_allclose(hessian, hessian.T, rtol=1e-12)
    [mapped] = results(bw.vmap(bw.grad(lambda x: program(x).sum())).fun, np.stack([x, 2 * x]))
    np.testing.assert_allclose(mapped[1], results(bw.grad(lambda x: program(x).sum()).fun, 2 * x)[0], rtol=1e-12)
