"""Legalisation: each rewrite gives ops that lowering accepts, and the same numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler import ops
from bwcompiler.compiler.pipeline import derive
from bwcompiler.frontend.tracing.trace import trace
from bwcompiler.ir.graph import Graph, cut
from bwcompiler.ir.op import Record, input_value
from bwcompiler.ir.semantics.graph_interpreter import interpret
from bwcompiler.ir.types import F64, I64, tensor
from bwcompiler.passes.derivatives.autodiff import ONE
from bwcompiler.passes.rewriting.legalize import legalize
from bwcompiler.passes.rewriting.simplify import simplify


def op_names(graph: Graph) -> list[str]:
    return [value.op.name for value in graph.body]


def legalized(function: Callable[..., Any], *arguments: Any) -> Graph:
    """The legalised graph, which gives the same numbers."""
    graph = trace(function, arguments).graph
    result = legalize(graph)
    for found, expected in zip(interpret(result, arguments), interpret(graph, arguments), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    return result


@pytest.mark.parametrize("lead", [(3,), (2, 3)], ids=str)
def test_sum_of_products_is_one_product(lead: tuple[int, ...], rng: np.random.Generator) -> None:
    x, y = rng.standard_normal((*lead, 4, 5)), rng.standard_normal((*lead, 4, 6))
    axes = tuple(range(len(lead)))

    def turned(x, y):
        return np.sum(np.swapaxes(x, -1, -2) @ y, axis=axes)

    def plain(x, y):
        return np.sum(np.swapaxes(x, -1, -2) @ y @ np.swapaxes(y, -1, -2), axis=axes)

    for function in (turned, plain):
        products = [value for value in legalized(function, x, y).body if value.op.name == "matmul"]
        assert products[-1].rank == 2
    part = legalized(lambda x, y: np.sum(np.swapaxes(x, -1, -2) @ y, axis=-1), x, y)
    assert "sum" in op_names(part)


@pytest.mark.parametrize("dtype", ["f4", "f8", "c16"])
def test_sums_of_products_in_derivatives_are_products_of_matrices(dtype: str, rng: np.random.Generator) -> None:
    """Of x[i, k] w[k, l, j] summed over k and l, i being two axes; the forward value is the sum that was written."""
    x, w = (np.asarray(rng.standard_normal(shape), dtype) for shape in ((6, 9, 8, 7), (8, 7, 12)))

    def function(x: Any, w: Any) -> Any:
        return np.sum(np.sin(np.sum(x[:, :, :, :, None] * w, axis=(2, 3))).real)

    joint = derive(simplify(trace(function, (x, w)).graph).graph, (0, 1), [ONE]).graph
    found = legalize(joint)
    assert op_names(found).count("matmul") == 2 and "matmul" not in op_names(legalize(trace(function, (x, w)).graph))
    for one, other in zip(interpret(found, [x, w]), interpret(joint, [x, w]), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4 if dtype == "f4" else 1e-12, atol=1e-5 if dtype == "f4" else 1e-13)


@pytest.mark.parametrize(("sides", "products"), [((6, 5, 4), 0), ((4, 64, 64), 0), ((16, 16, 16), 2), ((4, 64, 128), 2)], ids=str)
def test_small_and_narrow_sums_of_products_stay_sums(sides: tuple[int, int, int], products: int, rng: np.random.Generator) -> None:
    """A convolution that loops over places multiplies small matrices at each, by the thousand."""
    m, k, n = sides
    x, w = rng.standard_normal((m, k)), rng.standard_normal((k, n))
    joint = derive(trace(lambda x, w: np.sum(np.sum(x[:, :, None] * w, axis=1) ** 2), (x, w)).graph, (0, 1), [ONE]).graph
    found = legalize(joint)
    assert op_names(found).count("matmul") == products
    for one, other in zip(interpret(found, [x, w]), interpret(joint, [x, w]), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-10)


def test_gradient_of_a_matrix_used_for_a_batch(rng: np.random.Generator) -> None:
    w, x = rng.standard_normal((4, 5)), rng.standard_normal((3, 5, 6))
    gradient = bw.grad(lambda w, x: np.sum(np.sin(w @ x)))(w, x)
    np.testing.assert_allclose(gradient, np.sum(np.cos(w @ x) @ x.transpose(0, 2, 1), axis=0), rtol=1e-12)


def test_windows_lose_their_padding(rng: np.random.Generator) -> None:
    x, w = rng.standard_normal((2, 3, 6, 6)), rng.standard_normal((4, 3, 3, 3))
    graph = legalized(lambda x, w: bw.nn.conv2d(x, w, padding=1), x, w)
    assert "pad" in op_names(graph)
    assert not any(any(value.attrs["low"]) for value in graph.body if value.op.name == "windows")


def slid(x: Any, k: Any, stride: int = 1) -> Any:
    """Products of k with the windows of x: a matrix product with one column."""
    windows = np.lib.stride_tricks.sliding_window_view(x, k.shape)[(slice(None, None, stride),) * x.ndim]
    return np.reshape(np.reshape(windows, (-1, k.size)) @ np.reshape(k, (k.size, 1)), windows.shape[:x.ndim])


@pytest.mark.parametrize("shape, size, stride", [((200,), (31,), 1), ((200,), (7,), 3), ((70, 80), (5, 3), 1), ((20, 21), (4, 4), 2),
                                                 ((5, 6, 70), (2, 3, 2), 1), ((9,), (9,), 1), ((9,), (1,), 1)], ids=str)
@pytest.mark.parametrize("dtype", ["f8", "c16", "f4"])
def test_windows_by_one_kernel_are_not_stored(shape, size, stride, dtype, rng: np.random.Generator) -> None:
    """Neither there nor in the adjoint: their products are sums, read along all windows at a time."""
    def normal(shape: tuple[int, ...]) -> Any:
        found = rng.standard_normal(shape)
        return (found + 1j * rng.standard_normal(shape) if dtype == "c16" else found).astype(dtype)

    def loss(x, k):
        found = slid(x, k, stride)
        return np.sum(np.real(found * np.conj(found)))

    x, k = normal(shape), normal(size)
    tolerance = {"rtol": 1e-4, "atol": 1e-3} if dtype == "f4" else {"rtol": 1e-10, "atol": 1e-10}
    np.testing.assert_allclose(bw.jit(slid, static_argnums=2)(x, k, stride), slid(x, k, stride), **tolerance)
    places = slid(x, k, stride).shape
    expected = np.zeros_like(x), np.zeros_like(k)
    ct = 2 * np.conj(slid(x, k, stride))
    for place in np.ndindex(places):
        window = tuple([slice(stride * i, stride * i + n) for i, n in zip(place, size, strict=True)])
        expected[0][window] += ct[place] * k
        expected[1][...] += ct[place] * x[window]
    gradient = bw.grad(loss, argnums=(0, 1))
    for found, one in zip(gradient(x, k), expected, strict=True):
        np.testing.assert_allclose(found, one, **tolerance)
    if stride == 1:
        assert {"matmul", "windows_add"}.isdisjoint(op_names(legalize(gradient.lower(x, k).graph)))


def test_windows_of_several_kernels_are_a_product(rng: np.random.Generator) -> None:
    graph = legalized(lambda x, k: np.lib.stride_tricks.sliding_window_view(x, 5) @ k, rng.standard_normal(40), rng.standard_normal((5, 3)))
    assert "matmul" in op_names(graph)


@pytest.mark.parametrize("dtype", ["f8", "i8", "?"])
def test_many_pieces_are_written_into_place(dtype: str, rng: np.random.Generator) -> None:
    x = (rng.standard_normal((3, 4)) * 3).astype(dtype)
    graph = legalized(lambda x: np.concatenate([x[:, :k % 4] for k in range(12)], axis=1), x)
    assert "concatenate" not in op_names(graph) and op_names(graph).count("slice_update") == 9
    assert "concatenate" in op_names(legalized(lambda x: np.concatenate([x, x, x]), x))


def test_a_trajectory_of_many_steps() -> None:
    def trajectory(x):
        points = []
        for _ in range(150):
            x = x - 0.01 * np.sin(x)
            points.append(x)
        return np.stack(points)

    x = np.array([1.0, 2.0])
    np.testing.assert_allclose(bw.jit(trajectory)(x), trajectory(x), rtol=1e-12)
    gradient = bw.grad(lambda x: np.sum(trajectory(x)))(x)
    numeric = [(np.sum(trajectory(x + e)) - np.sum(trajectory(x - e))) / 2e-6 for e in 1e-6 * np.eye(2)]
    np.testing.assert_allclose(gradient, numeric, rtol=1e-7)


def in_loops(graph: Graph) -> list[str]:
    """The ops of a legalised graph and of the loops in it, which are legalised too."""
    names = []
    for value in legalize(graph).body:
        names += [value.op.name, *[name for region in value.op.regions for name in in_loops(value.attrs[region])]]
    return names


def columns(h: Any, x: Any, k: Any) -> Any:
    h = h.copy()
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            h[i, k[i, j]] += x[i, j]
    return h


def rows(h: Any, x: Any, k: Any) -> Any:
    h = h.copy()
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            h[k[i, j], i] = x[i, j] * h[k[i, j] - 1, j]
    return h


def part_of_a_row(h: Any, x: Any, k: Any) -> Any:
    """Element k of what begins at column 1."""
    h = h.copy()
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            h[i + 1, 1:5][k[i, j]] = h[i, k[i, j]] + x[i, j]
    return h


@pytest.mark.parametrize("function", [columns, rows, part_of_a_row])
def test_one_element_of_a_row_is_written_where_it_lies(function: Callable[..., Any], rng: np.random.Generator) -> None:
    h, x, k = rng.standard_normal((9, 9)), rng.standard_normal((8, 9)), rng.integers(-4, 4, (8, 9))
    graph = trace(function, (h, x, k)).graph
    np.testing.assert_array_equal(bw.jit(function)(h, x, k), function(h, x, k))
    found = in_loops(graph)
    assert "scatter_update" in found and "slice_update" not in found

    def loss(h: Any, x: Any) -> Any:
        return np.sum(np.sin(function(h, x, k)))
    bw.check_grads(loss, (h, x), order=1)


# starts, sizes and steps of a part of an array of shape (4, 5, 6), its shape without some axes, the axes that are indexed, and the indices
PARTS = [((1, 0, 0), (1, 5, 6), (1, 1, 1), (5, 6), (0,), ([3, 0, 3],)), ((1, 0, 0), (1, 5, 6), (1, 1, 1), (5, 6), (0, 1), (4, 2)),
         ((0, 2, 0), (4, 1, 6), (1, 1, 1), (4, 6), (1,), ([[5, 1], [0, 5]],)), ((2, 1, 3), (1, 3, 1), (1, 1, 1), (3,), (0,), (2,)),
         ((0, 1, 0), (4, 3, 6), (1, 1, 1), (4, 3, 6), (1,), ([2, 0],)), ((0, 4, 2), (4, 1, 4), (1, 1, 1), (4, 4), (0, 1), ([1, 3], [3, 0]))]
OTHERS = [((0, 0, 0), (1, 3, 6), (1, 2, 1), (3, 6), (0,), ([1, 2],)), ((1, 1, 0), (1, 3, 6), (1, 1, 1), (3, 6), (1,), ([5, 1],)),
          ((1, 0, 0), (1, 5, 6), (1, 1, 1), (6, 5), (0,), ([5, 1],)),
          ((3, 0, 2), (1, 5, 1), (1, 1, 1), (1, 5, 1), (1, 2), ([4, 4], [0, 0]))]


@pytest.mark.parametrize("part, fires", [*[(part, True) for part in PARTS], *[(part, False) for part in OTHERS]])
@pytest.mark.parametrize("operation", ["add to zeros", "add", "update"])
def test_elements_of_parts_are_changed_where_they_lie(part: Any, fires: bool, operation: str, rng: np.random.Generator) -> None:
    starts, sizes, steps, inner, axes, indices = part
    places = [np.array(index) for index in indices]
    array = input_value(tensor(F64, (4, 5, 6)), "array")
    shape = (*places[0].shape, *[extent for axis, extent in enumerate(inner) if axis not in axes])
    values = input_value(tensor(F64, shape), "values")
    given = [input_value(tensor(I64, place.shape), "index") for place in places]
    with Record() as record:
        if operation == "add to zeros":
            before = ops.full(value=0.0, shape=inner, dtype=F64)
        else:
            before = ops.reshape(ops.slice(array, starts=starts, sizes=sizes, steps=steps), shape=inner)
        scatter = ops.scatter_update if operation == "update" else ops.scatter_add
        changed = ops.reshape(scatter(before, values, *given, axes=axes), shape=sizes)
        write = ops.slice_add if operation == "add to zeros" else ops.slice_update
        out = write(array, changed, starts=starts, steps=steps)
    graph = cut("f", [array, values, *given], record.values, [out])
    found = legalize(graph)
    arguments = [rng.standard_normal((4, 5, 6)), rng.standard_normal(shape), *places]
    np.testing.assert_allclose(interpret(found, arguments)[0], interpret(graph, arguments)[0], rtol=1e-13)
    assert ({"slice_add", "slice_update"}.isdisjoint(op_names(found))) == fires


def test_other_rows_stay_rows(rng: np.random.Generator) -> None:
    """Another row is changed than was read, or not one element."""
    x, k = rng.standard_normal((5, 6)), np.array([1, 3])

    def moved(x: Any, k: Any) -> Any:
        y = x.copy()
        y[1] = np.where(np.arange(6) == k[0], 7.0, x[0])
        y[2, k] = y[3, k]
        return y
    np.testing.assert_array_equal(bw.jit(moved)(x, k), moved(x, k))


@pytest.mark.parametrize("shape", [(5, 5), (6, 4), (4, 6), (2, 3, 5)], ids=str)
@pytest.mark.parametrize("offset", [0, 1, 2, -1])
def test_diagonals_of_constants_are_elements_that_ask_for_their_place(shape: tuple[int, ...], offset: int, rng: np.random.Generator) -> None:
    size = np.diagonal(np.zeros(shape), offset, -2, -1).shape
    v = rng.standard_normal(size)

    def add(v: Any) -> Any:
        a = bw.numpy.full(shape, 0.5)
        flat = a.reshape((*shape[:-2], -1))
        start = offset if offset >= 0 else -offset * shape[-1]
        flat[..., start:start + (shape[-1] + 1) * (size[-1] - 1) + 1:shape[-1] + 1] = v
        return flat.reshape(shape)

    expected = np.full(shape, 0.5)
    for k in range(size[-1]):
        expected[..., k + max(-offset, 0), k + max(offset, 0)] = v[..., k]
    graph = legalized(add, v)
    assert "slice_update" not in op_names(graph) and "select" in op_names(graph)
    np.testing.assert_array_equal(bw.jit(add)(v), expected)


def test_parts_of_diagonals_and_those_that_go_on_in_the_next_column(rng: np.random.Generator) -> None:
    v = rng.standard_normal(3)

    def part(v: Any) -> Any:
        flat = bw.numpy.zeros(30)
        flat[12:30:6][:3] = v[:3]                              # rows 2 to 4 of 6 x 5
        return flat.reshape(6, 5)

    def wraps(v: Any) -> Any:
        flat = bw.numpy.zeros(18)
        flat[1:18:4][:5] = np.concatenate([v, v[:2]])          # 6 x 3: columns 1, 2, 0, 1, 2
        return flat.reshape(6, 3)

    def update(v: Any) -> Any:
        flat = np.concatenate([v, v, v]) * 2
        flat[::4] = v                                          # of what is no constant: where it lies
        return flat.reshape(3, 3)

    for function, is_update in ((part, False), (wraps, True), (update, True)):
        assert ("slice_update" in op_names(legalized(function, v))) == is_update
        np.testing.assert_array_equal(bw.jit(function)(v), function(v))


def test_derivatives_multiply_by_the_reciprocal_of_a_number() -> None:
    """One division for all elements; what the user divides by is divided by, with NumPy's bits."""
    def misfit(x: Any, step: Any) -> Any:
        return np.sum(((x[1:] - x[:-1]) / step) ** 3)

    x, step = np.linspace(0.0, 1.0, 30) ** 2, np.array(0.3)
    joint = legalize(derive(trace(misfit, (x, step)).graph, [0], [ONE]).graph)
    assert [value.shape for value in joint.body if value.op is ops.divide] == [(29,), ()]
    alone = legalize(trace(misfit, (x, step)).graph)
    assert [value.shape for value in alone.body if value.op is ops.divide] == [(29,)]
    inner = 3 * ((x[1:] - x[:-1]) / step) ** 2 / step
    np.testing.assert_allclose(bw.grad(misfit)(x, step), np.append(0.0, inner) - np.append(inner, 0.0), rtol=1e-13)
