"""Matrix products as loops over rows: what they compute, as part of sweeps, and where the other matrix is put ready for them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.api.programs.executables import lower
from bwcompiler.errors import InternalError
from bwcompiler.frontend.tracing.trace import trace
from bwcompiler.ir.loop import Kernel, Loop
from bwcompiler.ir.product_loop import PRODUCT, product_of
from bwcompiler.ir.semantics.loop_interpreter import run_kernel
from bwcompiler.ir.semantics.loop_verifier import statements, verify_kernel
from bwcompiler.ir.texts.loop_parser import parse_kernel
from bwcompiler.ir.texts.loop_printer import kernel_to_text
from bwcompiler.lowering import join_sweeps
from bwcompiler.lowering.loops import blocks
from bwcompiler.lowering.loops.sweeps import profit as sweep_profit
from bwcompiler.lowering.loops.sweeps import sweep as sweeps
from bwcompiler.lowering.loops.tiling.stage_products import is_staged, stage_products
from bwcompiler.passes.derivatives.autodiff import ONE, differentiate
from bwcompiler.passes.rewriting.simplify import simplify
from tests.support.threads import with_threads

Array = np.ndarray[Any, Any]

ROWS = """kernel rows(%a: in f64[40,3], %b: in f64[3,5], %c: out f64[40,5])
  for p in 0..4
    for i in 0..10 product
      for j in 0..5
        reduce t: f64 = add
        for k in 0..3
          t add= %a[10*p + i, k] * %b[k, j]
        store %c[10*p + i, j], t
"""
SUMS = ROWS.replace("%b: in f64[3,5], ", "%b: in f64[3,5], %d: in f64[40,5], ").replace(
    "store %c[10*p + i, j], t", "store %c[10*p + i, j], %d[10*p + i, j] + t")
TERMS = """kernel terms(%a: in f64[40,3], %b: in f64[40,5], %c: out f64[3,5])
  fill %c, 0.0
  for k in 0..40 product
    for i in 0..3
      for j in 0..5
        %c[i, j] add= %a[k, i] * %b[k, j]
"""


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays of any size are worth a sweep, and sums of any length worth blocks."""
    for module, name, number in ((sweep_profit, "LEAST_SHARED", 1), (join_sweeps, "LEAST_SHARED", 1), (sweeps, "LEAST_BLOCKS", 2), (sweep_profit, "LEAST_BLOCKS", 2),
                                 (sweep_profit, "LEAST_ELEMENTS", 1), (sweep_profit, "LEAST_ROWS", 2), (blocks, "LEAST_WORK", 1),
                                 (blocks, "BLOCK_WORK", 16)):
        monkeypatch.setattr(module, name, number)


def products_in(kernel: Kernel) -> list[Loop]:
    return [one for one, _ in statements(kernel.body) if isinstance(one, Loop) and one.kind == PRODUCT]


# ----- the loops
@pytest.mark.parametrize("text", [ROWS, TERMS], ids=["rows", "terms"])
def test_loops_read_as_what_they_compute(text: str, rng: np.random.Generator) -> None:
    kernel = parse_kernel(text)
    verify_kernel(kernel)
    assert kernel_to_text(kernel) == text
    a, b = (rng.standard_normal(buffer.shape) for buffer in kernel.buffers[:2])
    c = np.full(kernel.buffers[2].shape, np.nan)
    run_kernel(kernel, [a, b, c])
    np.testing.assert_allclose(c, a @ b if text is ROWS else a.T @ b, rtol=1e-13)


def test_rows_are_added_to_others(rng: np.random.Generator) -> None:
    kernel = parse_kernel(SUMS)
    verify_kernel(kernel)
    assert kernel_to_text(kernel) == SUMS
    a, b, d = (rng.standard_normal(buffer.shape) for buffer in kernel.buffers[:3])
    c = np.full(kernel.buffers[3].shape, np.nan)
    run_kernel(kernel, [a, b, d, c])
    np.testing.assert_allclose(c, d + a @ b, rtol=1e-13)
    product = product_of(products_in(kernel)[0])
    assert product is not None and product.start is not None and (product.start.row, product.start.column) == (5, 1)


def test_what_they_multiply() -> None:
    [loop] = products_in(parse_kernel(ROWS))
    product = product_of(loop)
    assert product is not None and not product.adds
    assert (product.rows, product.columns, product.terms) == (10, 5, 3)
    assert [(one.row, one.column) for one in (product.a, product.b, product.c)] == [(3, 1), (5, 1), (5, 1)]
    [loop] = products_in(parse_kernel(TERMS))
    product = product_of(loop)
    assert product is not None and product.adds
    assert (product.rows, product.columns, product.terms) == (3, 5, 40)
    assert [(one.row, one.column) for one in (product.a, product.b, product.c)] == [(1, 3), (5, 1), (5, 1)]


@pytest.mark.parametrize("old, new", [
    ("t add= %a[10*p + i, k] * %b[k, j]", "t add= %a[10*p + i, k] + %b[k, j]"), ("* %b[k, j]", "* %a[10*p + i, k]"),
    ("store %c[10*p + i, j], t", "store %c[10*p + i, j], t * 2.0"), ("store %c[10*p + i, j], t", "store %c[10*p + i, j], 2.0 + t"),
    ("reduce t: f64 = add", "reduce t: f64 = add from -0.0")])
def test_other_loops_are_no_products(old: str, new: str) -> None:
    with pytest.raises(InternalError, match="is not a product of two matrices"):
        verify_kernel(parse_kernel(ROWS.replace(old, new)))


def test_the_other_matrix_is_put_ready_once(golden: Callable[..., None]) -> None:
    kernel = stage_products(parse_kernel(ROWS))
    verify_kernel(kernel)
    golden(kernel_to_text(kernel), "loops")
    [loop] = products_in(kernel)
    product = product_of(loop)
    assert product is not None and is_staged(product)


def test_a_matrix_that_moves_is_not_put_ready() -> None:
    moving = ROWS.replace("%b: in f64[3,5]", "%b: in f64[12,5]").replace("%b[k, j]", "%b[3*p + k, j]")
    for text in (moving, TERMS):
        kernel = parse_kernel(text)
        assert stage_products(kernel) is kernel


# ----- in programs
def layers(x: Array, *parameters: Array) -> Any:
    for w, b in zip(parameters[::2], parameters[1::2], strict=True):
        x = np.tanh(x @ w + b)
    return np.mean(x * x)


def parameters_of(rng: np.random.Generator, extents: tuple[int, ...], dtype: str) -> list[Array]:
    shapes = [shape for pair in itertools.pairwise(extents) for shape in (pair, pair[1:])]
    return [rng.uniform(-1, 1, shape).astype(dtype) for shape in shapes]


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("extents", [(3, 4, 5), (9, 17, 16, 2), (40, 33, 1), (5, 70, 8, 8)])
@pytest.mark.parametrize("rows", [4, 30, 96, 97])
def test_layers(rows: int, extents: tuple[int, ...], dtype: str, small: None, rng: np.random.Generator) -> None:
    """Values and gradients; the same bits for any number of threads."""
    x, parameters = rng.uniform(-1, 1, (rows, extents[0])).astype(dtype), parameters_of(rng, extents, dtype)
    function = bw.value_and_grad(layers, argnums=tuple(range(1 + len(parameters))))
    one, other = [with_threads(count, function, x, *parameters) for count in (1, 2)]
    np.testing.assert_allclose(one[0], layers(x, *parameters), rtol=1e-4 if dtype == "f4" else 1e-12)
    for mine, theirs in zip(one[1], other[1], strict=True):
        np.testing.assert_array_equal(mine, theirs)
    if dtype == "f8":
        bw.check_grads(layers, (x, *parameters), order=1)
    else:
        exact = function(x.astype("f8"), *[parameter.astype("f8") for parameter in parameters])[1]
        for mine, theirs in zip(one[1], exact, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-3, atol=1e-5)


def lowered_gradient(function: Callable[..., Any], *arguments: Array) -> Any:
    joint = differentiate(trace(function, arguments, autoloop=False).graph, tuple(range(len(arguments))), [ONE]).graph
    return lower(simplify(joint).graph)


def test_the_gradient_of_layers_over_many_points_is_one_sweep(rng: np.random.Generator) -> None:
    """Nothing between its arguments and its results is as long as the points are many."""
    x, parameters = rng.standard_normal((20000, 8)), parameters_of(rng, (8, 16, 16), "f8")
    lowered = lowered_gradient(layers, x, *parameters)
    long = [step for step in lowered.steps if step.kernel is None or any(value.type.nbytes >= 1 << 20 for value in step.owners if value)]
    assert len(long) == 1
    assert lowered.plan.arena_bytes < x.nbytes
    forms = [product_of(loop) for loop in products_in(long[0].kernel)]
    assert [form.adds for form in forms if form is not None].count(True) == 2


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("order", ["once", "read again", "multiplied too"])
def test_products_are_added_in_a_sweep(order: str, dtype: str, small: None, rng: np.random.Generator) -> None:
    """With the bits of products that are stored and then added, for any number of threads; where one lies that nothing else reads."""
    def sums(x: Array, y: Array, v: Array, w: Array) -> Any:
        first = np.tanh(x) @ v
        if order == "read again":
            return np.tanh(first + y @ w) + np.sqrt(first * first)
        if order == "multiplied too":
            return np.tanh(first + first @ w)
        return np.tanh(first + y @ w + np.cos(y) @ v)

    x, y, v, w = (rng.uniform(-1, 1, (rows, 40)).astype(dtype) for rows in (96, 96, 40, 40))
    lowered = lower(trace(sums, (x, y, v, w), autoloop=False).graph)
    products = [product_of(loop) for step in lowered.steps if step.kernel is not None for loop in products_in(step.kernel)]
    laid = [product for product in products if product is not None and product.start is not None]
    assert len(laid) == (2 if order == "once" else 0)
    assert all(product.start == product.c for product in laid)
    product = bw.jit(np.matmul)
    first, second, third = product(np.tanh(x), v), product(y, w), product(np.cos(y), v)
    if order == "read again":
        wanted = np.tanh(first + second) + np.sqrt(first * first)
    elif order == "multiplied too":
        wanted = np.tanh(first + product(first, w))
    else:
        wanted = np.tanh(first + second + third)
    one, other = [with_threads(count, bw.jit(sums), x, y, v, w) for count in (1, 2)]
    np.testing.assert_array_equal(one, other)
    np.testing.assert_allclose(one, wanted, rtol=1e-4 if dtype == "f4" else 1e-12, atol=1e-5 if dtype == "f4" else 1e-14)


def test_wide_products_stay_calls(rng: np.random.Generator) -> None:
    """Few of their rows fill the cache: what a sweep saves is little beside the product."""
    x, parameters = np.ones((1000, 2000)), parameters_of(rng, (2000, 2000), "f8")
    lowered = lower(trace(lambda x, w, b: np.tanh(x @ w + b), (x, *parameters), autoloop=False).graph)
    assert [step.kernel is None for step in lowered.steps] == [True, False]


def test_long_sums_are_shared_by_threads(rng: np.random.Generator) -> None:
    """Of more rows than blocks divide; each has a result of its own."""
    x, y = rng.standard_normal((20003, 7)), rng.standard_normal((20003, 5))
    product = bw.jit(lambda x, y: x.T @ y)
    found = [with_threads(count, product, x, y) for count in (1, 2, 3)]
    np.testing.assert_allclose(found[0], x.T @ y, rtol=1e-11, atol=1e-11)
    for other in found[1:]:
        np.testing.assert_array_equal(found[0], other)


def test_steps_between_come_after(small: None, rng: np.random.Generator) -> None:
    """Small steps that read a sum of the sweep, and one that writes what is read later."""
    def both(x: Array, w: Array) -> Any:
        y = np.tanh(x @ w)
        total = np.sum(y, 0)
        z = y @ w.T
        return np.cumsum(total[::-1]), z - x, np.sum(z * z)

    x, w = rng.standard_normal((64, 6)), rng.standard_normal((6, 6))
    for found, wanted in zip(bw.jit(both)(x, w), both(x, w), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


def test_products_of_parts_of_arrays(small: None, rng: np.random.Generator) -> None:
    """The loops of the first product are those of the second one, but on a smaller array."""
    def both(y: Array, x: Array, w: Array) -> Any:
        return np.tanh(y @ w) + np.tanh(x[:4] @ w) * np.tanh(x[4:8] @ w)

    arrays = rng.standard_normal((4, 3)), rng.standard_normal((9, 3)), rng.standard_normal((3, 3))
    np.testing.assert_allclose(bw.jit(both)(*arrays), both(*arrays), rtol=1e-12)


def test_sweeps_of_the_same_kernels_have_names_of_their_own(small: None, rng: np.random.Generator) -> None:
    """One stores a product that the other one keeps to itself."""
    def both(x: Array, w: Array) -> Any:
        product = x @ w
        return product, np.tanh(np.cumsum(np.tanh(product), 0) @ w)

    x, w = rng.standard_normal((8, 40)), rng.standard_normal((40, 40))
    lowered = lower(trace(both, (x, w), autoloop=False).graph)
    assert [len(step.positions) for step in lowered.steps] == [2, 1, 2]
    for found, wanted in zip(bw.jit(both)(x, w), both(x, w), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-13)


def test_convolutions_go_through_one_image_at_a_time(rng: np.random.Generator) -> None:
    """Rows of a product are blocks of as many as an image has; what is between loops over images is as long as one."""
    x, w, b = rng.standard_normal((96, 1, 24, 24)), rng.standard_normal((4, 1, 5, 5)), rng.standard_normal(4)

    def layer(x: Array, w: Array, b: Array) -> Any:
        return np.maximum(bw.nn.conv2d(x, w, b), 0.0)

    lowered = lower(trace(layer, (x, w, b), autoloop=False).graph)
    assert [len(step.positions) for step in lowered.steps if any(v is not None and v.type.nbytes >= 1 << 20 for v in step.owners)] == [3]
    rows = [product_of(loop) for step in lowered.steps if step.kernel is not None for loop in products_in(step.kernel)]
    assert [form.rows for form in rows if form is not None] == [400]
    np.testing.assert_allclose(bw.jit(layer)(x, w, b), layer(x, w, b), rtol=1e-12)


def test_products_beside_complex_numbers(small: None, rng: np.random.Generator) -> None:
    def waves(x: Array, w: Array) -> Any:
        phase = x @ w
        return np.exp(1j * phase) * (phase @ w.T)[:, :1], np.sum(np.abs(np.exp(1j * phase) + phase))

    x, w = rng.standard_normal((32, 3)), rng.standard_normal((3, 5))
    for found, wanted in zip(bw.jit(waves)(x, w), waves(x, w), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)
    bw.check_grads(lambda x, w: waves(x, w)[1], (x, w), order=1)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("rows, terms, columns", [(2, 2, 2), (3, 3, 3), (2, 5, 3), (4, 16, 2), (8, 8, 8)])
def test_products_of_small_matrices_are_written_out(rows: int, terms: int, columns: int, dtype: str, small: None,
                                                    rng: np.random.Generator) -> None:
    """In a sweep over a batch, whichever way the matrices lie; with the bits of a product that is a step of its own."""
    def products(a: Array, b: Array, c: Array) -> Any:
        return np.sqrt(a * a + 1) @ b, np.sqrt(a + 2) @ np.swapaxes(c, 1, 2)

    shapes = (37, rows, terms), (37, terms, columns), (37, columns, terms)
    arrays = [rng.uniform(-1, 1, shape).astype(dtype) for shape in shapes]
    lowered = lower(trace(products, arrays, autoloop=False).graph)
    assert any(products_in(step.kernel) for step in lowered.steps if step.kernel is not None)
    assert "@bw_product" not in lowered.program.text
    alone = [bw.jit(np.matmul)(np.sqrt(arrays[0] * arrays[0] + 1), arrays[1]),
             bw.jit(np.matmul)(np.sqrt(arrays[0] + 2), np.swapaxes(arrays[2], 1, 2))]
    for count in (1, 2):
        for found, wanted in zip(with_threads(count, bw.jit(products), *arrays), alone, strict=True):
            np.testing.assert_array_equal(found, wanted)
    for found, wanted in zip(alone, products(*arrays), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4 if dtype == "f4" else 1e-12, atol=1e-6 if dtype == "f4" else 1e-14)


def test_products_of_larger_matrices_are_calls(small: None, rng: np.random.Generator) -> None:
    a, b = rng.standard_normal((37, 12, 12)), rng.standard_normal((37, 12, 12))
    text = lower(trace(lambda a, b: np.tanh(a) @ b, (a, b), autoloop=False).graph).program.text
    assert "@bw_product_alone_f64" in text


def test_products_in_loops(small: None, rng: np.random.Generator) -> None:
    """Of rows that move with a loop's index."""
    def steps(xs: Array, w: Array) -> Any:
        h = np.zeros((16, 4))
        for t in range(30):
            h = np.tanh(xs[t] @ w + h @ w)
        return np.sum(h * h)

    xs, w = rng.standard_normal((30, 16, 4)), rng.standard_normal((4, 4))
    np.testing.assert_allclose(bw.jit(steps)(xs, w), steps(xs, w), rtol=1e-12)
    bw.check_grads(steps, (xs, w), order=1)


def test_long_sums_look_for_signals() -> None:
    """And return the status; those of which no part takes long have none."""
    for terms, looks in ((80_000_000, True), (100_000, False)):
        x = np.empty((terms, 8), "f4")                       # none of which is touched
        text = lower(trace(lambda x: x.T @ x, (x,), autoloop=False).graph).program.text
        part = text.partition(".range(")[2].partition("ret i32 0")[0]
        assert "call i32 @bw_product_alone_f32.8x8" in text
        assert ("label %interrupted" in part) is looks
