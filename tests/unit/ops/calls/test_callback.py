"""The op `callback`: results, batches, checks of what the function returns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bwcompiler import tree
from bwcompiler.errors import CallbackError, UnsupportedError
from bwcompiler.ir.types import F32, F64, I64, tensor
from bwcompiler.ops.calls.callback import HostFunction
from tests.support.opcases import case, op_tests

ONE = tree.structure(((0.0,), {}))
TWO = tree.structure(((0.0, 0.0), {}))
X, Y = np.array([3.0, 1.0, 2.0]), np.array([[1.0, 2.0], [0.5, -1.0], [0.0, 4.0]])


def host(fun: Any, arguments: Any, results: Any, tree_: Any = 0, **options: Any) -> HostFunction:
    return HostFunction(fun, arguments, {}, results, tree.structure(tree_), **options)


SORT = host(lambda x: np.sort(x), ONE, [tensor(F64, (3,))])
PRODUCT = host(lambda x, y: (x @ y, np.argmax(x)), TWO, [tensor(F64, (2,)), tensor(I64)], (0, 0))
AT_ONCE = host(lambda x: np.sort(x, axis=-1), ONE, [tensor(F64, (3,))], vectorized=True)
CASES = [
    case("callback", X, host=SORT, result=0, batch=()).but(smooth=False).gives([1.0, 2.0, 3.0]),
    case("callback", X, Y, host=PRODUCT, result=0, batch=()).but(smooth=False).gives(X @ Y),
    case("callback", X, Y, host=PRODUCT, result=1, batch=()).but(smooth=False).gives(np.int64(0)),
    case("callback", np.stack([X, -X]), host=SORT, result=0, batch=(2,)).but(smooth=False),
    case("callback", np.stack([X, -X]), host=AT_ONCE, result=0, batch=(2,)).but(smooth=False).gives([[1.0, 2.0, 3.0], [-3.0, -2.0, -1.0]]),
    case("callback", np.zeros((0, 3)), host=SORT, result=0, batch=(0,)).but(smooth=False),
]
test_op = op_tests(CASES)


def test_one_call_for_all_results() -> None:
    calls = []

    def fun(x):
        calls.append(x.copy())
        return x + 1, x * 2

    both = host(fun, ONE, [tensor(F64, (3,))] * 2, (0, 0))
    assert both.result(1, (), [X]).tolist() == [6.0, 2.0, 4.0] and both.result(0, (), [X]).tolist() == [4.0, 2.0, 3.0]
    assert len(calls) == 1
    assert both.result(0, (), [X]).tolist() == [4.0, 2.0, 3.0] and len(calls) == 2        # a new evaluation
    assert both.result(1, (), [-X]).tolist() == [-6.0, -2.0, -4.0] and len(calls) == 3    # of other operands


def test_the_function_has_arrays_of_its_own() -> None:
    def fun(x):
        x[:] = 0.0
        return x

    x = X.copy()
    assert host(fun, ONE, [tensor(F64, (3,))]).result(0, (), [x]).tolist() == [0.0] * 3
    assert x.tolist() == X.tolist()


def test_what_is_converted() -> None:
    assert host(lambda x: 2, ONE, [tensor(F32)]).result(0, (), [X]).dtype == np.float32
    assert host(lambda x: x.astype(">f8"), ONE, [tensor(F64, (3,))]).result(0, (), [X]).dtype == np.dtype("=f8")
    assert host(lambda x: None, ONE, [tensor(F64, (3,))], none_is_zero=True).result(0, (), [X]).tolist() == [0.0] * 3


RETURNED = {
    "shape": (lambda x: x[:2], r"returned result of shape \(2,\) and dtype float64; declared are shape \(3,\) and dtype float64"),
    "dtype": (lambda x: x.astype(np.float32), "dtype float32; declared are .*dtype float64"),
    "number": (lambda x: 1j, "dtype complex128; declared"),
    "None": (lambda x: None, "another structure than declared: result is a NoneType"),
    "tuple": (lambda x: (x, x), "another structure than declared"),
    "object": (lambda x: object(), "dtype object; declared"),
}


@pytest.mark.parametrize("name", RETURNED)
def test_what_is_refused(name: str) -> None:
    fun, message = RETURNED[name]
    with pytest.raises(CallbackError, match=message) as found:
        host(fun, ONE, [tensor(F64, (3,))]).result(0, (), [X])
    assert isinstance(found.value, ValueError) and isinstance(found.value, TypeError)


def test_a_leaf_is_named() -> None:
    with pytest.raises(CallbackError, match=r"result\['b'\] of shape \(2,\)"):
        host(lambda x: {"a": x, "b": x[:2]}, ONE, [tensor(F64, (3,))] * 2, {"a": 0, "b": 0}).result(0, (), [X])
    with pytest.raises(CallbackError, match=r"result is \S*PyTreeSpec\({'a'"):
        host(lambda x: {"a": x}, ONE, [tensor(F64, (3,))] * 2, {"a": 0, "b": 0}).result(0, (), [X])


def test_numpy_source_is_refused() -> None:
    import bwcompiler as bw

    program = bw.compile(lambda x: x * bw.pure_callback(np.sort, x, bw.stop_gradient(x)), X)
    with pytest.raises(UnsupportedError, match="cannot be written as NumPy source"):
        program.as_text("py")
    assert "callback" in program.as_text("forward")
