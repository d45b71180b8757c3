"""Derivatives of what `np.where` did not choose are exact zeros, whatever is between the choice and what made the nan."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.compiler.pipeline import derive
from bwcompiler.frontend.tracing.trace import trace
from bwcompiler.passes.derivatives import masks
from bwcompiler.passes.derivatives.autodiff import ONE
from tests.support.derivatives import check_derivatives

B = np.array([0.5, -0.3, 0.8, -0.2])
T = 10


@pytest.fixture(autouse=True)
def _no_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)            # of NumPy, on the nan
        yield


# ----- between the choice and the nan: moves and sums
def a_slice(b):
    return np.sum(np.where(b[1:] > 0, np.sqrt(b)[1:], 0)) + b[0]


def a_gather(b):
    k = np.array([2, 1, 1])
    return np.sum(np.where(b[k] > 0, np.log(b)[k], 0.5))


def a_broadcast(b):
    return np.sum(np.where((b > 0)[:, None], np.sqrt(b)[:, None] * np.arange(3.0), 1.0))


def a_sum(b):
    return np.where(b[1] > 0, np.sum(np.sqrt(b)), 2.0) * b[0]


def a_running_sum(b):
    return np.sum(np.where(np.cumsum(b) > 9, np.cumsum(np.log(b)), b))


def pieces_and_padding(b):
    y = np.pad(np.concatenate([np.sqrt(b), b]), 1)
    return np.sum(np.where(np.isnan(y), 0.0, y) ** 2)


def two_uses(b):
    y = np.sqrt(b)
    return np.sum(np.where(b > 0, y, 0.0)[::2]) + np.sum(np.where(b[:2] > 0, y[:2] ** 2, 0.0))


def a_complex_number(b):
    y = np.sqrt(b) * (1 + 2j)
    return np.sum(np.where(b[::-1] > 0, y[::-1], 0.0).imag)


# ----- loops and branches
def hoisted_out_of_a_loop(b):
    s = 1.0
    for i in range(T):
        s = s + np.sum(np.where(b > 0.01 * i + 0.1, np.sqrt(b), 0.5 * b)) * 0.01 * s
    return s


def carried_and_masked_in_the_loop(b):
    before, total = b, 0.0
    for i in range(T):
        total = total + np.sum(np.where(b > 0.1, before, 0.0))
        before = np.sqrt(b - 0.001 * i) * before
    return total


def masked_after_the_loop(b):
    y = b
    for _ in range(T):
        y = np.sqrt(y)
    return np.sum(np.where(b > 0, y, 0.0))


def masked_after_two_loops(b):
    y = b + 0.0
    for i in range(T):
        for j in range(2, T):
            y = np.sqrt(y) * (1.0 + i / j)
    return np.sum(np.where(b > 0, y, 0.0)[1:])


def masked_in_the_next_loop(b):
    y, total = b, 0.0
    for _ in range(T):
        y = np.sqrt(y)
    for k in range(4):
        total = total + np.where(b[k] > 0, y[k] * total, 1.0)
    return total


def masked_in_a_while(b):
    y, t = np.log(b), 0.0
    while t < 5.0:
        t = t + np.sum(np.where(b > 0, y * y, b * b)) + 0.1
    return t


def masked_after_a_while(b):
    y, k = b, 0.0
    while k < np.sum(b) * 10.3:
        y, k = np.sqrt(y), k + 1.0
    return np.sum(np.where(b > 0, y, 0.0))


def masked_in_a_branch(b):
    return bw.cond(b[0] > 0, lambda y: np.sum(np.where(b > 0, y * y * y, 0.0)), np.sum, np.sqrt(b))


def masked_after_a_branch(b):
    y = bw.cond(b[0] > 0, np.sqrt, np.log, b)
    return np.sum(np.where(b > 0, y, 0.0))


def masked_in_a_checkpoint(b):
    return bw.checkpoint(lambda y: np.sum(np.where(b > 0, np.sin(y), 0.0)))(np.sqrt(b))


def masked_after_a_checkpoint(b):
    return np.sum(np.where(b > 0, bw.checkpoint(lambda b: np.log(np.sqrt(b)))(b), 0.0))


def branches_in_a_loop(b):
    y = b
    for i in range(T):
        y = bw.cond(np.sum(b) * i > 4.3, np.sqrt, lambda y: y * 0.9 + np.sqrt(y), y)
    return np.sum(np.where(b > 0, y, 0.0))


# ----- assignment over it
def an_element_set(b):
    y = np.sin(b) / np.sqrt(b)
    y[1], y[3] = 1.0, b[0]
    return np.sum(y ** 2)


def places_set(b):
    y = np.log(b)
    y[np.array([3, 1])] = b[:2] ** 2
    return np.sum(y * b)


def an_element_of_a_loop_set(b):
    y = np.zeros(4)
    for i in range(T):
        y[i % 4] = np.sqrt(b[i % 4]) * (i + 1.0)
    y[1::2] = b[0]
    return np.sum(y ** 2)


def elements_set_in_a_loop(b):
    total = 0.0
    for i in range(T):
        y = np.sqrt(b) * (i + total)
        y[1] = y[3] = b[2]
        total = total + np.sum(y) * 0.1
    return total


def a_row_set(b):
    y = np.outer(b, b) / np.sqrt(b)[:, None]
    y[1:4:2] = 0.0
    return np.sum(y[:, 0] * b)


PROGRAMS = [a_slice, a_gather, a_broadcast, a_sum, a_running_sum, pieces_and_padding, two_uses, a_complex_number, hoisted_out_of_a_loop,
            carried_and_masked_in_the_loop, masked_after_the_loop, masked_after_two_loops, masked_in_the_next_loop, masked_in_a_while,
            masked_after_a_while, masked_in_a_branch, masked_after_a_branch, masked_in_a_checkpoint, masked_after_a_checkpoint,
            branches_in_a_loop, an_element_set, places_set, an_element_of_a_loop_set, elements_set_in_a_loop, a_row_set]


@pytest.mark.parametrize("fun", PROGRAMS, ids=lambda fun: fun.__name__)
def test_first_and_second_derivatives(fun) -> None:
    check_derivatives(fun, B, tolerance=1e-5)


@pytest.mark.parametrize("fun", [masked_after_two_loops, masked_after_a_while, branches_in_a_loop], ids=lambda fun: fun.__name__)
def test_compiled(fun) -> None:
    found = bw.jacfwd(bw.grad(fun))(B)
    kept = B > 0
    assert found[np.ix_(kept, kept)].any() and not found[~kept].any() and not found[:, ~kept].any()


def of_a_loop(b):
    y = b
    for _ in range(T):
        y = np.sqrt(y) * b
    return np.where(b > 0.7, y, 0.0)


def of_running_sums(b):
    return np.where(b > 0.7, np.cumsum(np.log(b) + b), 0.0)


def of_assignment(b):
    y = np.exp(b - 1.0) / b
    y[2] = y[3] = 0.0
    return y


@pytest.mark.parametrize("fun", [of_a_loop, of_running_sums, of_assignment], ids=lambda fun: fun.__name__)
def test_second_derivatives_where_a_cotangent_is_zero_by_its_value(fun) -> None:
    """A least-squares loss at its minimum: the zeros there are none that a choice has left."""
    b = np.array([1.0, 1.0, 1.0, 0.5])
    target = fun(b)
    jacobian = bw.jacfwd(fun)(b)
    loss = lambda b: np.sum((fun(b) - target) ** 2)
    for hessian in (bw.hessian(loss), bw.jacrev(bw.grad(loss)), bw.jacfwd(bw.grad(loss))):
        np.testing.assert_allclose(hessian(b), 2.0 * jacobian.T @ jacobian, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("fun", [
    lambda b: np.where(b[1:] > 0, np.power(b, 1.5)[1:], 0.0), lambda b: np.where(b[1:] > 0, (b * np.sqrt(b))[1:], 0.0),
    lambda b: np.where(b[1:] > 0, np.cumsum(np.power(b, 1.5) / 2)[1:] - np.cumsum(np.power(b, 1.5) / 2)[:-1] + np.power(b, 1.5)[1:] / 2, 0.0),
], ids=["a power", "a product", "running sums"])
def test_second_derivatives_where_the_first_is_finite_and_the_second_is_not(fun) -> None:
    b = np.array([1.0, 0.0, 2.0, 3.0])
    loss = lambda b: np.sum(fun(b) ** 2)                               # the sum of b ** 3 but for the first two
    for hessian in (bw.hessian(loss), bw.jacrev(bw.grad(loss)), bw.jacfwd(bw.grad(loss))):
        np.testing.assert_allclose(hessian(b), np.diag([0.0, 0.0, 12.0, 18.0]), atol=1e-9)


def put_together(b):
    y = np.zeros(4)
    y[0], y[1:3], y[3] = np.exp(b[0]) / b[1], np.sqrt(b[1:3]), 1.0 / b[0]
    return np.sum(np.concatenate([y, 1.0 / b]) ** 2)


def filled_by_loops(b):
    y = np.zeros((T, 4))
    for i in range(T):
        y[i, 1:] = b[1:] / (i + b[0])
        y[i, 0] = 1.0 / b[3]
    for i in range(1, T):
        for j in range(1, 3):
            y[i, j] = y[i, j + 1] / y[i - 1, j]
    return np.sum(y ** 2)


def sections_that_meet_nowhere(b):
    y = np.zeros(T)
    for k in range(1, T):
        ratio = b[0] / (b[2] + y[k - 1])
        y[:k] = y[:k][::-1] / (b[2] + ratio)
        y[k] = ratio
    y = y / np.exp(y)
    return np.sum(y)


@pytest.mark.parametrize("fun", [
    lambda b: np.sum(np.sqrt(np.exp(b)[1:]) * 3.0),
    lambda b: np.sum(np.where(b > 0, b[::-1], np.sum(b))[1:] * np.sin(b[1:])),
    lambda b: np.sum(np.where(b > 0, np.maximum(b[::-1], 0.1)[::-1], 2.0)[1:]),
    lambda b: np.sum(np.std(np.exp(b)[1:])),
    lambda b: np.sum(np.where(np.exp(b)[1:] > 0.5, np.exp(b)[1:], 0.0)),
    lambda b: bw.fori_loop(0, T, lambda i, s: np.tanh(s) * np.sum(np.exp(b)), 1.0),
    lambda b: bw.fori_loop(0, T, lambda i, s: np.where(b > 0, s * 0.5, s), b).sum(),
    put_together,
    filled_by_loops,
    sections_that_meet_nowhere,
], ids=["no choice", "nothing that makes a nan", "sizes that stay finite", "a deviation", "a choice by size",
       "a loop without choices", "a loop whose zeros stay", "elements set once", "loops that fill and change an array",
       "sections of a loop that meet nowhere"])
def test_nothing_is_asked_where_no_zero_can_become_a_nan(fun) -> None:
    joint = derive(trace(fun, (B,)).graph, (0,), [ONE]).graph
    inside = [value.op.name for one in joint.body for region in one.op.regions for value in one.attrs[region].body]
    assert "absolute" not in [value.op.name for value in joint.body] + inside


def upwind(u):
    """Both sides are made of a difference, of which both operands have a cotangent, and of a multiple."""
    for _ in range(40):
        v = u * 0.2
        u[1:-1] = np.where(u[1:-1] > 0, u[1:-1] - v[1:-1] * (u[1:-1] - u[:-2]), u[1:-1] - v[1:-1] * (u[2:] - u[1:-1]))
    return np.sum(u * u)


def test_negatives_and_multiples_are_asked_once() -> None:
    u = np.cos(np.arange(200.0))
    text = bw.grad(lambda u: upwind(u * 1.0)).as_text("adjoint", u)
    assert text.count("= equal ") == 4                          # of a difference and a factor, on two sides
    check_derivatives(lambda u: upwind(u * 1.0), u[:20], order=2)


def test_a_nan_that_was_chosen_shows() -> None:
    found = bw.grad(lambda b: np.sum(np.where(b < 0.6, np.sqrt(b), 0.0)[1:]) + np.sum(np.sqrt(b)[1:2]))(B)
    np.testing.assert_array_equal(np.isnan(found), [False, True, False, True])


# ----- what is set before it is read, in loops and past it
def set_first(x):
    y = np.log(x)
    y[0] = 0.0
    y[1:] = y[1:] * 0.9                            # reads past what was set
    return np.sum(y * np.cos(y))


def set_in_a_few_iterations(x):
    y = np.log(x)
    for _ in range(5):
        y[0] = x[3] ** 2
        y[1:] = y[1:] * 0.9 + y[:-1]
    return np.sum(np.sin(y))


def set_in_a_loop(x):
    y = 1 / x
    for i in range(20):
        y[0] = x[3] * i
        y[1:] = y[:-1] * 0.5 + x[1:]
    return np.sum(np.sin(y))


def set_in_nested_loops(x):
    y = 1 / x
    for i in range(20):
        for j in range(3):
            y[j] = x[j + 3] * i
        for j in range(3, 12):
            y[j] = 0.9 * y[j] + y[j - 3] * 0.1
    return np.sum(np.sin(y))


def set_in_a_while(x):
    y, s, t = np.log(x), 0.0, 0
    while s < 3.0 and t < 40:
        y[0] = s * x[3]
        y[1:] = y[:-1] * 0.5 + x[1:]
        s += y[5] * 0.3
        t += 1
    return np.sum(y) + s


@pytest.mark.parametrize("program", [set_first, set_in_a_few_iterations, set_in_a_loop, set_in_nested_loops, set_in_a_while],
                         ids=lambda program: program.__name__)
def test_what_loops_set_has_no_derivative(program):
    x = np.linspace(0.0, 1.1, 12)
    with np.errstate(all="ignore"):
        slope = bw.grad(program)(x)
        assert slope[0] == 0.0 and np.all(np.isfinite(slope))
        for k in range(1, 12):
            step = 1e-6 * (np.arange(12) == k)
            assert slope[k] == pytest.approx((program(x + step) - program(x - step)) / 2e-6, rel=1e-5, abs=1e-7)
        direction = np.cos(np.arange(12.0)) * (x > 0)
        second = bw.jvp(bw.grad(program), (x,), (direction,))[1]
        ahead, behind = bw.grad(program)(x + 1e-6 * direction), bw.grad(program)(x - 1e-6 * direction)
        np.testing.assert_allclose(second, (ahead - behind) / 2e-6, rtol=1e-5, atol=1e-6)


def test_regions_in_regions_are_looked_at_once(monkeypatch) -> None:
    """What a branch hides is asked by each of the branches around it."""
    def nested(b, depth):
        if depth == 0:
            return np.sum(np.where(b > 0, np.sqrt(b), 0.0))
        if b[depth % 4] > -1.0 - depth:
            return b[0] * nested(b, depth - 1)
        return b[1]

    def looked(depth):
        seen = []
        with monkeypatch.context() as patch:
            patch.setattr(masks, "hides_nan", lambda condition, operand: seen.append(operand) or True)
            derive(trace(lambda b: nested(b, depth), (B,)).graph, (0,), [ONE])
        return len(seen)

    assert looked(10) <= 4 * looked(5)
