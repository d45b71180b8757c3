"""Any ufunc's inner loop can compute an op: scipy.special's and pocketfft's need the data that belongs to a loop."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
import scipy.special

from bwcompiler.compiler import pipeline
from bwcompiler.compiler.native import inner_loop
from bwcompiler.ir.declaration import not_differentiable
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import REGISTRY, Op, Record, input_value
from bwcompiler.ir.routine import InnerLoop
from bwcompiler.ir.types import F32, F64, I64, tensor
from bwcompiler.lowering.libraries.call_texts import Libraries
from bwcompiler.runtime import jit
from tests.support.targets import HOST


def op_of(name: str, reference: Any, routine: InnerLoop) -> Op:
    return Op(name, "library", doc="A test.", attributes=(), shape=lambda *types: types[0], vjp=not_differentiable("a test"),
              batch=None, reference=reference, library=routine)


SPECIAL: dict[str, tuple[Any, int, str]] = {
    "i0": (scipy.special.i0, 1, "{}->{}"), "jv": (scipy.special.jv, 2, "{}{}->{}"), "betainc": (scipy.special.betainc, 3, "{}{}{}->{}"),
}


@pytest.mark.parametrize("name", SPECIAL)
def test_loops_with_data(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function, count, types = SPECIAL[name]
    routine = InnerLoop((name,), types, module="scipy.special")
    addresses = {symbol: address for symbol, address in inner_loop(routine, name, F64).items() if address}
    symbol = routine.symbol(F64, name)
    assert {symbol, f"{symbol}.data"} <= addresses.keys()
    monkeypatch.setattr(pipeline, "native_libraries", lambda: Libraries(frozenset(addresses)))
    inputs = [input_value(tensor(F64, (2, 3)), f"x{k}") for k in range(count)]
    op = op_of(f"test_{name}", function, routine)
    monkeypatch.setitem(REGISTRY, op.name, op)
    with Record() as record:
        out = op(*inputs)
    program = pipeline.lower(Graph(name, inputs, record.values, [out])).program
    assert not program.callbacks
    arguments = [np.linspace(0.1 * (k + 1), 0.9, 6).reshape(2, 3) for k in range(count)]
    np.testing.assert_array_equal(run(program.text, addresses, arguments), function(*arguments))


def run(text: str, addresses: dict[str, int], arguments: list[Any]) -> Any:
    """The result of a program that needs no arena beyond the error record."""
    code = jit.load(jit.optimise(text, HOST), addresses, ["bw_program"])
    result, record = np.empty_like(arguments[0]), np.zeros(64, np.uint8)
    buffers = (ctypes.c_void_p * (len(arguments) + 1))(*[array.ctypes.data for array in (*arguments, result)])
    status = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(code.addresses["bw_program"])(
        ctypes.addressof(buffers), record.ctypes.data)
    assert status == 0
    return result


def test_a_loop_of_another_signature_is_not_taken() -> None:
    routine = InnerLoop(("svd",), "{}->{}", "(m,m)->(m)")
    for dtype in (F32, F64, I64):
        assert not inner_loop(routine, "svd", dtype)
        assert not inner_loop(InnerLoop(("no_such_loop",), "{}->{}"), "no_such_loop", dtype)
