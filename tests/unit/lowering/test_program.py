"""The module of a program: sequences and tables of calls, functions that are shared, statuses, copies."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.compiler.pipeline import lower
from bwcompiler.frontend import trace
from bwcompiler.ir.contracts.memory import Location, MemoryPlan
from bwcompiler.ir.contracts.program_interface import CALLBACK_DONE, CALLBACK_ERROR, ERROR_RECORD_BYTES, INDEX_ERROR
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.semantics.graph_interpreter import interpret
from bwcompiler.lowering import calls
from bwcompiler.lowering.libraries import matrix_products
from bwcompiler.lowering.module import Module
from bwcompiler.lowering.program import ProgramText, emit_llvm
from bwcompiler.passes.memory import find_updates
from bwcompiler.passes.memory.plan_memory import plan_memory
from bwcompiler.runtime import jit
from tests.support.kernels import Array
from tests.support.lowered_programs import NO_LIBRARIES, steps_of
from tests.support.targets import HOST

FORMS = {"sequence": 48, "table": 0}                        # by the number of calls that makes a program a table


@dataclass
class Emitted:
    graph: Graph
    plan: MemoryPlan
    program: ProgramText

    def run(self, arguments: list[Array], callback: Callable[[Any], int] = lambda pointers: CALLBACK_DONE) -> tuple[int, list[Array], list[int]]:
        """Status, outputs and the error record."""
        outputs = [np.full(value.shape, 77, value.dtype.numpy) for value in self.graph.outputs]
        arena = np.full(self.plan.arena_bytes + ERROR_RECORD_BYTES, 0xD5, np.uint8)
        function = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_void_p))(callback)
        symbols = {call.symbol: ctypes.cast(function, ctypes.c_void_p).value or 0 for call in self.program.callbacks}
        code = jit.load(jit.optimise(self.program.text, HOST), symbols, ["bw_program"])
        arrays = [*arguments, *outputs]
        buffers = (ctypes.c_void_p * len(arrays))(*[array.ctypes.data for array in arrays])
        entry = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(code.addresses["bw_program"])
        status = entry(ctypes.addressof(buffers), arena.ctypes.data)
        return status, outputs, arena[:24].view(np.int64).tolist()


def emitted(text: str) -> Emitted:
    graph, steps = steps_of(text)
    plan = plan_memory(graph, steps)
    return Emitted(graph, plan, emit_llvm(graph, steps, plan, Module(NO_LIBRARIES, HOST)))


def body_of(text: str) -> str:
    """bw_program alone."""
    return text[text.index("define i32 @bw_program"):].split("\n}\n")[0] + "\n}\n"


@pytest.fixture(params=FORMS)
def form(request, monkeypatch):
    monkeypatch.setattr(calls, "TABLE_CALLS", FORMS[request.param])
    monkeypatch.setattr(calls, "REPEATS", 0)
    return request.param


TWO_STEPS = """
graph g(%x: f64[4,3], %y: f64[3,5]) -> (f64[4,5], f64[4,3], f64[5,4]) {
  %twice: f64[4,3] = multiply %x, 2.0
  %product: f64[4,5] = matmul %twice, %y
  %half: f64[4,5] = multiply %product, 0.5
  %turned: f64[5,4] = transpose %half {axes=[1,0]}
  return %half, %x, %turned
}"""


def test_text(form, golden):
    golden(body_of(emitted(TWO_STEPS).program.text), "ll")


def test_steps_run_in_order(form, rng):
    made = emitted(TWO_STEPS)
    arguments = [np.rint(rng.uniform(-8, 8, shape)) for shape in ((4, 3), (3, 5))]
    status, outputs, _ = made.run(arguments)
    assert status == 0
    for found, expected in zip(outputs, interpret(made.graph, arguments), strict=True):
        np.testing.assert_array_equal(found, expected)


def rows(count: int, op: str = "scatter_add") -> str:
    """Updates of one array one after the other."""
    lines, last = [], "x"
    for k in range(count):
        lines.append(f"  %y{k}: f64[6,3] = {op} %{last}, %u, %i {{axes=[0]}}\n")
        last = f"y{k}"
    return f"graph g(%x: f64[6,3], %u: f64[2,3], %i: i64[2]) -> f64[6,3] {{\n{''.join(lines)}  return %{last}\n}}"


def test_equal_steps_are_one_function(form, rng):
    made = emitted(rows(5))
    assert made.program.text.count("define internal void @k") == 1
    assert made.program.kernels == 2                                     # the kernel, and the copy of %x that is not to change
    arguments = [rng.integers(-4, 5, (6, 3)) / 4, rng.integers(-4, 5, (2, 3)) / 4, np.array([4, 4])]
    before = arguments[0].copy()
    _, (found,), _ = made.run(arguments)
    np.testing.assert_array_equal(found, interpret(made.graph, arguments)[0])
    np.testing.assert_array_equal(arguments[0], before)


def test_rows_of_one_array_are_one_function(monkeypatch, form, rng):
    """Kernels that differ in where they start are called with other pointers."""
    monkeypatch.setattr(find_updates, "CHAIN", 2)
    monkeypatch.setattr(find_updates, "SHARE", 1)
    lines, last = [], "x"
    for k in range(6):
        lines.append(f"  %e{k}: f64[1,3] = slice %{last} {{starts=[{k},0], sizes=[1,3], steps=[1,1]}}\n"
                     f"  %d{k}: f64[1,3] = divide %u, %e{k}\n"
                     f"  %y{k}: f64[7,3] = slice_update %{last}, %d{k} {{starts=[{k + 1},0], steps=[1,1]}}\n")
        last = f"y{k}"
    made = emitted(f"graph g(%x: f64[7,3], %u: f64[1,3]) -> f64[7,3] {{\n{''.join(lines)}  return %{last}\n}}")
    assert made.program.text.count("define internal void @k") <= 4 < 6
    arguments = [rng.uniform(1, 2, (7, 3)), rng.uniform(1, 2, (1, 3))]
    _, (found,), _ = made.run(arguments)
    np.testing.assert_array_equal(found, interpret(made.graph, arguments)[0])


def test_long_programs_are_tables(monkeypatch):
    """A sequence says every call; a table has one row for each, and the text of one call per function."""
    count = body_of(emitted(rows(20)).program.text).count("call void")
    assert count >= 20
    monkeypatch.setattr(calls, "TABLE_CALLS", count)
    assert "@bw_program.table" not in emitted(rows(20)).program.text
    monkeypatch.setattr(calls, "TABLE_CALLS", count - 1)
    text = emitted(rows(20)).program.text
    assert "@bw_program.table" in text
    assert text.count("call void @k") == text.count("call void @copy") == 1


CHECKED = """
graph g(%x: f64[3], %i: i64[2], %j: i64[1]) -> (f64[2], f64[1]) {
  %a: i64[2] = normalize_index %i {extent=3}
  %first: f64[2] = gather %x, %a {axes=[0]}
  %b: i64[1] = normalize_index %j {extent=3}
  %second: f64[1] = gather %x, %b {axes=[0]}
  return %first, %second
}"""


def test_checks_pass(form):
    status, (first, second), _ = emitted(CHECKED).run([np.arange(3.0), np.array([-1, 0]), np.array([1])])
    assert (status, first.tolist(), second.tolist()) == (0, [2.0, 0.0], [1.0])


@pytest.mark.parametrize("i, j, record", [([3, 0], [0], [0, 3, 3]), ([0, -4], [9], [0, -4, 3]), ([0, -3], [9], [1, 9, 3])])
def test_a_check_that_fails_ends_the_program(form, i, j, record):
    """The record says which check, the index and the extent; nothing after it runs."""
    made = emitted(CHECKED)
    assert [value.name for value in made.program.checked] == ["a", "b"]
    status, (_, second), found = made.run([np.arange(3.0), np.array(i), np.array(j)])
    assert (status, found) == (INDEX_ERROR, record)
    assert second.tolist() == [77.0]


CALLBACK = """
graph g(%x: f64[2,2]) -> (f64[2,2], f64[2,2]) {
  %y: f64[2,2] = add %x, 1.0
  %z: f64[2,2] = inv %y
  %w: f64[2,2] = add %z, 1.0
  return %z, %w
}"""


def test_callbacks_get_operands_and_results(form):
    made = emitted(CALLBACK)
    assert [call.value.op.name for call in made.program.callbacks] == ["inv"]

    def double(pointers: Any) -> int:
        x, y = [np.ctypeslib.as_array(ctypes.cast(pointers[k], ctypes.POINTER(ctypes.c_double)), (4,)) for k in range(2)]
        y[:] = 2 * x
        return CALLBACK_DONE

    x = np.arange(4.0).reshape(2, 2)
    status, (z, w), _ = made.run([x], double)
    assert status == 0
    np.testing.assert_array_equal(z, 2 * (x + 1))
    np.testing.assert_array_equal(w, z + 1)


@pytest.mark.parametrize("returned", [CALLBACK_ERROR, 0], ids=["failed", "interrupted in its first line"])
def test_a_callback_that_fails_ends_the_program(form, returned):
    status, (_, w), _ = emitted(CALLBACK).run([np.eye(2)], lambda pointers: returned)
    assert status == CALLBACK_ERROR
    assert w.tolist() == [[77.0, 77.0]] * 2


def test_functions_are_declared_once():
    text = emitted(CALLBACK.replace("return", "%v: f64[2,2] = inv %w\n  return")).program.text
    declared = [line for line in text.splitlines() if line.startswith("declare")]
    assert len({line[line.index("@"):line.index("(")] for line in declared}) == len(declared)


def test_pointers_to_one_place_are_one_register():
    """A part of an array in the arena, and what lies there after it: the same address, said in two ways."""
    part, whole = calls.Pointer(Location("arena", 48), 16), calls.Pointer(Location("arena", 64))
    text = calls.program_text("f", calls.Slots(0, 0), [calls.FunctionCall("g", (part, whole))], [])
    assert text.count("%memory.64 = ") == 1
    assert "@g(ptr %memory.64, ptr %memory.64)" in text


@pytest.mark.parametrize("merged_first", [True, False])
def test_steps_alike_of_which_one_writes_to_what_it_reads(merged_first: bool) -> None:
    """They share a kernel, but not its function: one has two parameters in one memory, wherever it stands."""
    def program(x: Any, y: Any) -> Any:
        z = x.copy()
        z[np.array([0, 1])] = y[:2]
        if merged_first:
            x[1:] += y[:-1]
            z[1:] += x[:-1]
        else:
            z[1:] += y[:-1]
            x[1:] += z[:-1]
        return z

    x, y = np.linspace(0.0, 1.0, 5), np.linspace(1.0, 3.0, 5)
    other = x.copy()
    np.testing.assert_array_equal(bw.jit(program)(other, y), program(x, y))
    np.testing.assert_array_equal(other, x)


def test_equal_small_products_are_written_once() -> None:
    """A long program of them costs what tracing it costs."""
    def steps(a: Any, x: Any) -> Any:
        for _ in [None] * 30:
            x = np.tanh(a @ x)
        return np.sum(x)

    matrix_products._sums_of_products.cache_clear()
    text = bw.compile(steps, np.ones((3, 3)), np.ones((3, 3))).as_text("llvm")
    assert matrix_products._sums_of_products.cache_info().misses <= 5 and 1 <= text.count("define internal void @gemm") <= 5


def test_a_kernel_that_two_steps_run_in_different_orders_is_two_functions():
    """One of them may write over what it reads, if it stores behind its reads."""
    def total(a, b, x, y):
        a, b, x, y = a.copy(), b.copy(), x.copy(), y.copy()
        first, last = b, y
        for _ in range(4):
            x, y = y, x
            for i in range(9):
                for j in range(9):
                    b[i, j] -= x[0]
                    for k in range(9):
                        a[k, k:] = 1.0
                        y[k] = y[k] / (2.0 + b[k, k] ** 2)
                    b = a * 0.5
            x *= 0.5 + 0.5 * np.cos(0.2 * (x[1::2] @ a[8, 1::2]))
        return np.sum(first) + np.sum(last * last)

    args = [np.linspace(0.1, 1.0, 81).reshape(9, 9), np.linspace(0.5, 0.2, 81).reshape(9, 9), np.linspace(0.3, 1.0, 9), np.linspace(1.0, 0.1, 9)]
    traced = trace(bw.value_and_grad(total, argnums=(0, 1, 2, 3)).fun, tuple(args))
    names = re.findall(r"^define [^@]*@([\w.]+)\(", lower(traced.graph).program.text, re.MULTILINE)
    assert len(set(names)) == len(names)
    value, _ = bw.value_and_grad(total, argnums=(0, 1, 2, 3))(*args)
    assert value == pytest.approx(total(*args), rel=1e-13)
