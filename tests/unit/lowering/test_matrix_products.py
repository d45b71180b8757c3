"""What a matrix product calls with which arguments: its text runs against routines that write them down."""

from __future__ import annotations

import ctypes
import re
from typing import Any, NamedTuple

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.compiler.pipeline import lower
from bwcompiler.frontend.tracing.trace import trace
from bwcompiler.ir.contracts.fusion import Call
from bwcompiler.ir.extent import upper
from bwcompiler.ir.texts.graph_parser import parse_graph
from bwcompiler.lowering.libraries import matrix_products
from bwcompiler.lowering.libraries.matrix_products import product_text
from bwcompiler.lowering.products.call import WORDS
from bwcompiler.passes.fusion.fuse import fuse
from bwcompiler.runtime import jit
from tests.support.targets import HOST
from tests.support.threads import with_threads


@pytest.fixture(autouse=True)
def none_written_out(monkeypatch):
    """Small products are shown as what larger ones are: calls."""
    monkeypatch.setattr(matrix_products, "is_written_out", lambda value: False)


class Written:
    """The text of the only matrix product of a graph, as a function that tells where its pointers point."""

    def __init__(self, text: str) -> None:
        fused = fuse(parse_graph(text))
        (step,) = [step for step in fused.steps if isinstance(step, Call)]
        self.made = product_text("product", step.value, step.operands)
        assert not self.made.words
        self.begins = [*[upper(view.offset) for view in step.operands], 0]
        self.arrays = [*[np.zeros(view.base.shape, view.base.dtype.numpy) for view in step.operands],
                       np.full(step.value.shape, 7, step.value.dtype.numpy)]

    def run(self, routines: dict[str, Any]) -> None:
        source = self.made.text.replace("define internal", "define") + "\n".join(self.made.declares) + "\nattributes #1 = { nounwind }\n"
        symbols = {name: ctypes.cast(f, ctypes.c_void_p).value or 0 for name, f in routines.items()}
        code = jit.load(jit.optimise(source, HOST), symbols, ["product"])
        ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)(code.addresses["product"])(
            *[x.ctypes.data + begin * x.itemsize for x, begin in zip(self.arrays, self.begins, strict=True)])

    def where(self, pointer: int) -> tuple[str, int]:
        for name, array in zip("abc", self.arrays, strict=True):
            if array.ctypes.data <= pointer < array.ctypes.data + max(array.nbytes, 1):
                return name, (pointer - array.ctypes.data) // array.itemsize
        raise AssertionError("a pointer into none of the arrays")


class Told(NamedTuple):
    """What `products` are told: extents, then (where, strides) of both operands, the rows of the result, and batch axes."""

    extents: tuple[int, ...]
    a: tuple[Any, ...]
    b: tuple[Any, ...]
    c_row: int
    axes: list[tuple[int, ...]]


def told_by(text: str, dtype: str = "f64") -> list[Told]:
    """What the only matrix product of a graph calls products with."""
    written = Written(text)
    found: list[Told] = []

    def record(a: int, b: int, c: int, address: int) -> int:
        words = (ctypes.c_int64 * 64).from_address(address)
        told = dict(zip(WORDS, words, strict=False))
        axes = [tuple(words[k:k + 4]) for k in range(len(WORDS), len(WORDS) + 4 * told["axes"], 4)]
        assert written.where(c) == ("c", 0)
        found.append(Told((told["m"], told["n"], told["k"]), (*written.where(a), told["a.row"], told["a.column"]),
                          (*written.where(b), told["b.row"], told["b.column"]), told["c.row"], axes))
        return 0

    called = [name for line in written.made.declares for name in re.findall(r"@(bw_product_[\w.]+)", line)]
    assert all(name.startswith((f"bw_product_{dtype}", f"bw_product_alone_{dtype}")) for name in called)
    written.run(dict.fromkeys(called, ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 4)(record)))
    if not found:
        np.testing.assert_array_equal(written.arrays[-1], 0)
    return found


def graph(x: str, y: str, result: str, a: str = "", b: str = "") -> str:
    """A product of %a and %b, which are %x and %y or what these statements make of them."""
    lines = [line for line in (a, b) if line]
    left, right = "%a" if a else "%x", "%b" if b else "%y"
    body = "".join(f"  {line}\n" for line in [*lines, f"%c: {result} = matmul {left}, {right}", "return %c"])
    return f"graph g(%x: {x}, %y: {y}) -> {result} {{\n{body}}}"


def transposed(name: str, source: str, result: str) -> str:
    return f"%{name}: {result} = transpose %{source} {{axes=[1,0]}}"


A, B, C = ("a", 0), ("b", 0), ("c", 0)


@pytest.mark.parametrize("text, extents, a, b", [
    (graph("f64[3,4]", "f64[4,5]", "f64[3,5]"), (3, 5, 4), ("a", 0, 4, 1), ("b", 0, 5, 1)),
    (graph("f64[4,3]", "f64[4,5]", "f64[3,5]", a=transposed("a", "x", "f64[3,4]")), (3, 5, 4), ("a", 0, 1, 3), ("b", 0, 5, 1)),
    (graph("f64[9,8]", "f64[4,5]", "f64[3,5]", a="%a: f64[3,4] = slice %x {starts=[2,0], sizes=[3,4], steps=[2,2]}"),
     (3, 5, 4), ("a", 16, 16, 2), ("b", 0, 5, 1)),
    (graph("f64[3,4]", "f64[4,5]", "f64[3,5]", b="%b: f64[4,5] = flip %y {axes=[0]}"), (3, 5, 4), ("a", 0, 4, 1), ("b", 15, -5, 1)),
    (graph("f64[4]", "f64[4,5]", "f64[3,5]", a="%a: f64[3,4] = broadcast %x {shape=[3,4], axes=[1]}"),
     (3, 5, 4), ("a", 0, 0, 1), ("b", 0, 5, 1)),
], ids=["plain", "transposed", "strided", "flipped", "broadcast"])
@pytest.mark.parametrize("dtype", ["f64", "f32", "c64", "c128"])
def test_what_products_are_told(text, extents, a, b, dtype):
    """Operands are read where they lie, whatever their strides are."""
    assert told_by(text.replace("f64", dtype), dtype) == [Told(extents, a, b, extents[1], [])]


def test_batches():
    """Axes that are one in all arrays are told as one."""
    text = graph("f64[2,3,4,5]", "f64[2,3,5,6]", "f64[2,3,4,6]")
    assert told_by(text) == [Told((4, 6, 5), ("a", 0, 5, 1), ("b", 0, 6, 1), 6, [(6, 20, 30, 24)])]


@pytest.mark.parametrize("left, result, extents, a_row, axes", [
    ("f64[2,3,4,5]", "f64[2,3,4,6]", (24, 6, 5), 5, []),                    # all matrices lie below one another
    ("f64[3,1,5]", "f64[3,1,6]", (3, 6, 5), 5, []),
    ("f64[4,2,5]", "f64[2,4,6]", (4, 6, 5), 10, [(2, 5, 0, 24)]),           # rows of the matrices alternate
])
def test_batches_with_one_matrix(left, result, extents, a_row, axes):
    """Such a batch is one product, if its rows lie at equal distances."""
    batch = left[4:-1].split(",")[:-2]
    shape = ",".join([*(batch if not axes else ["2"]), "5", "6"])
    turn = "%a: f64[2,4,5] = transpose %x {axes=[1,0,2]}" if axes else ""
    spread = f"%b: f64[{shape}] = broadcast %y {{shape=[{shape}], axes=[{shape.count(',') - 1},{shape.count(',')}]}}"
    assert told_by(graph(left, "f64[5,6]", result, a=turn, b=spread)) == [Told(extents, ("a", 0, a_row, 1), ("b", 0, 6, 1), 6, axes)]


def test_batches_of_transposed_axes_and_of_one_matrix():
    text = graph("f64[3,2,4,5]", "f64[5,6]", "f64[2,3,4,6]", a="%a: f64[2,3,4,5] = transpose %x {axes=[1,0,2,3]}",
                 b="%b: f64[2,3,5,6] = broadcast %y {shape=[2,3,5,6], axes=[2,3]}")
    assert [told.axes for told in told_by(text)] == [[(2, 20, 0, 72), (3, 40, 0, 24)]]


def test_heads_in_the_last_axis():
    """Rows of another matrix lie between those of each."""
    text = graph("f64[7,2,5]", "f64[7,2,5]", "f64[2,7,7]", a="%a: f64[2,7,5] = transpose %x {axes=[1,0,2]}",
                 b="%b: f64[2,5,7] = transpose %y {axes=[1,2,0]}")
    assert told_by(text) == [Told((7, 7, 5), ("a", 0, 10, 1), ("b", 0, 1, 10), 7, [(2, 5, 5, 49)])]


@pytest.mark.parametrize("text", [
    graph("f64[0,4]", "f64[4,5]", "f64[0,5]"), graph("f64[3,0]", "f64[0,5]", "f64[3,5]"), graph("f64[3,4]", "f64[4,0]", "f64[3,0]"),
    graph("f64[0,3,4]", "f64[0,4,5]", "f64[0,3,5]"), graph("f64[2,3,0]", "f64[2,0,5]", "f64[2,3,5]")])
def test_without_elements_nothing_is_called(text):
    assert told_by(text) == []


@pytest.mark.parametrize("left, right, shared", [
    ((20000, 3, 3), (20000, 3, 3), True), ((100, 200, 2, 4), (200, 4, 4), True), ((40000, 7), (7, 9), True), ((50, 3, 3), (50, 3, 3), False),
    ((20, 3), (3, 3), False)])
def test_threads_share_small_matrices(monkeypatch, left, right, shared, rng):
    """Of a batch, or the rows of one: where there are many, and with the same bits."""
    monkeypatch.setattr(matrix_products, "is_written_out", lambda value: True)
    a, b = rng.standard_normal(left), rng.standard_normal(right)
    (step,) = [step for step in fuse(trace(np.matmul, (a, b)).graph).steps if isinstance(step, Call)]
    text = product_text("small", step.value, step.operands)
    assert ("@small.range(" in text.text) is shared
    assert any("bw_parallel" in declare for declare in text.declares) is shared
    found = [with_threads(count, bw.jit(np.matmul), a, b) for count in (1, 2, 3)]
    np.testing.assert_allclose(found[0], a @ b, rtol=1e-12, atol=1e-12)
    for other in found[1:]:
        np.testing.assert_array_equal(found[0], other)


def test_products_that_differ_in_where_they_begin_are_one_function():
    def products(a, x):
        return [a[i:i + 9, i:i + 20] @ x[i:i + 20] for i in range(30)]

    text = lower(trace(products, (np.ones((60, 60)), np.ones((60, 40))), autoloop=False).graph).program.text
    assert text.count("define internal void @gemm") == 1


@pytest.mark.parametrize("shapes, alone", [(((40, 30), (30, 50)), True), (((3, 40, 30), (3, 30, 50)), False), (((200, 300), (300, 200)), False)],
                         ids=["small", "batch", "large"])
def test_a_small_product_goes_straight_to_its_tiles(shapes, alone):
    """There is nothing to be cut among threads."""
    arrays = [np.ones(shape) for shape in shapes]
    text = lower(trace(lambda x, y: x @ y, arrays).graph).program.text
    assert ("@bw_product_alone_f64" in text) is alone
