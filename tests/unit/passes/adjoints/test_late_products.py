"""Products that a loop backwards adds up are one product after it, where that pays, and the same numbers."""

from __future__ import annotations

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.frontend import trace
from bwcompiler.passes.adjoints import late_products
from tests.support.loop_programs import check_gradients, results

RNG = np.random.default_rng(2)
SIZE, STEPS = 48, 6
W = RNG.standard_normal((SIZE, SIZE)) / 8
H = RNG.standard_normal(SIZE)
XS = RNG.standard_normal((STEPS, SIZE))


def row_times_matrix(bw, w, h, xs):
    return bw.scan(lambda h, x: (np.tanh(h @ w + x), None), h, xs)[0]


def matrix_times_column(bw, w, h, xs):
    return bw.scan(lambda h, x: (np.tanh(w @ h + x), None), h, xs)[0]


def transposed_matrix(bw, w, h, xs):
    return bw.scan(lambda h, x: (np.tanh(h @ w.T + x), None), h, xs)[0]


def used_twice(bw, w, h, xs):
    return bw.scan(lambda h, x: (np.tanh(np.sin(h @ w) @ w + x), None), h, xs)[0]


def used_outside_too(bw, w, h, xs):
    return bw.scan(lambda h, x: (np.tanh(h @ w + x), None), h @ w, xs)[0] + np.sum(w, axis=0)


def also_used_element_by_element(bw, w, h, xs):
    return bw.scan(lambda h, x: (np.tanh(h @ w + x + w[0] * h), None), h, xs)[0]


def a_few_rows(bw, w, h, xs):
    rows = bw.scan(lambda h, x: (np.tanh(h @ w + x), None), np.stack([h, -h]), xs)[0]
    return rows


def moving_columns(bw, w, h, xs):
    return bw.fori_loop(0, STEPS, lambda i, total: total + xs[i, 0] * np.sum(np.tanh(h @ w[:, i:])), 0.0)


def moving_rows(bw, w, h, xs):
    return bw.fori_loop(0, STEPS, lambda i, total: total + xs[i, 0] * np.sum(np.tanh(w[i:] @ h)), 0.0)


def moving_columns_and_one_of_them(bw, w, h, xs):
    return bw.fori_loop(0, STEPS, lambda i, total: total + np.sum(np.tanh(w[:, i] @ w[:, i:])) * xs[i, 0] * h[i], 0.0)


PROGRAMS = (row_times_matrix, matrix_times_column, transposed_matrix, used_twice, used_outside_too, also_used_element_by_element, a_few_rows,
            moving_columns, moving_rows, moving_columns_and_one_of_them)
IN_PART = (also_used_element_by_element, moving_columns_and_one_of_them)


def gradient_of(program):
    return bw.grad(lambda w, h, xs: np.sum(program(bw, w, h, xs) ** 2), argnums=(0, 1, 2))


def backward_loop(program, *args):
    [loop] = [value for value in trace(gradient_of(program).fun, args).graph.body
              if value.op.name == "loop" and value.attrs["step"] == -1]
    return loop


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_the_same_gradient(program, monkeypatch):
    late = results(gradient_of(program), W, H, XS)
    monkeypatch.setattr(late_products, "FEWEST", 100)
    for one, other in zip(late, results(gradient_of(program), W, H, XS, modes=("interpreted",)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("program", [p for p in PROGRAMS if p not in IN_PART], ids=lambda program: program.__name__)
def test_the_loop_does_not_carry_the_matrix(program):
    assert (SIZE, SIZE) not in [type_.shape for type_ in backward_loop(program, W, H, XS).type.items]


@pytest.mark.parametrize("program", IN_PART, ids=lambda program: program.__name__)
def test_what_else_is_added_stays_in_the_loop(program):
    loop = backward_loop(program, W, H, XS)
    assert (SIZE, SIZE) in [type_.shape for type_ in loop.type.items]
    whole = [value for value in loop.attrs["body"].body if value.op.name == "matmul" and SIZE in value.shape and value.shape[0] == SIZE]
    assert all(value.shape[1] == 1 for value in whole)


def test_small_parts_stay():
    def program(bw, w, h, xs):
        return bw.fori_loop(0, STEPS, lambda i, total: total + xs[i, 0] * np.sum(np.tanh(h @ w[:, i:i + 9])), 0.0)
    assert (SIZE, SIZE) in [type_.shape for type_ in backward_loop(program, W, H, XS).type.items]


def test_small_matrices_and_few_steps_stay():
    small = W[:8, :8]
    assert (8, 8) in [type_.shape for type_ in backward_loop(row_times_matrix, small, H[:8], XS[:, :8]).type.items]
    assert (SIZE, SIZE) in [type_.shape for type_ in backward_loop(row_times_matrix, W, H, XS[:3]).type.items]


def test_many_rows_stay():
    """Factors that are as large as the product are not stored for all iterations."""
    def program(bw, w, h, xs):
        return bw.scan(lambda h, x: (np.tanh(h @ w + x), None), np.outer(np.arange(60.0), h), xs)[0]
    assert (SIZE, SIZE) in [type_.shape for type_ in backward_loop(program, W, H, XS).type.items]


def test_differences_and_second_order(monkeypatch):
    monkeypatch.setattr(late_products, "SMALLEST", 1)
    args = (W[:5, :5], H[:5], XS[:, :5])
    for program in (row_times_matrix, transposed_matrix, used_twice, moving_columns):
        assert (5, 5) not in [type_.shape for type_ in backward_loop(program, *args).type.items]
        check_gradients(program, *args)
