"""Forward mode: graphs before and after, what is left out, rules that are transposed twice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler import ops
from bwcompiler.errors import GradientError, UnsupportedError
from bwcompiler.frontend import trace
from bwcompiler.ir.declaration import LINEAR, TRANSPOSED, absent
from bwcompiler.ir.graph import Graph, cut
from bwcompiler.ir.op import REGISTRY, Record, Value, input_value
from bwcompiler.ir.semantics.graph_interpreter import interpret
from bwcompiler.ir.semantics.graph_verifier import verify
from bwcompiler.ir.types import F64, I64, tensor
from bwcompiler.passes.derivatives.push_forward import push_forward
from tests.support.gradcheck import directional


def graph_of(function: Callable[..., Any], *types: Any) -> Graph:
    inputs = [input_value(type_, name) for type_, name in zip(types, "xyz", strict=False)]
    with Record() as record:
        outputs = function(*inputs)
    return cut("f", inputs, record.values, outputs if isinstance(outputs, list) else [outputs])


def text(graph: Graph) -> list[str]:
    return [f"{value.name or value.op.name} = {value.op.name} {' '.join(o.name or o.op.name for o in value.operands)}" for value in graph.body]


def test_tangents_stand_behind_their_values() -> None:
    pushed = push_forward(graph_of(lambda x, y: ops.sin(x) * y, tensor(F64, (3,)), tensor(F64, (3,))), (0, 1))
    verify(pushed.graph)
    assert [value.name for value in pushed.graph.inputs] == ["x", "y", "x.tangent", "y.tangent"]
    assert pushed.seeds == (2, 3) and pushed.tangents == (1,)
    assert text(pushed.graph) == [
        "sin = sin x", "cos = cos x", "sin.tangent = multiply x.tangent cos", "multiply = multiply sin y",
        "multiply = multiply sin.tangent y", "multiply = multiply y.tangent sin", "multiply.tangent = add multiply multiply"]


def test_what_no_output_needs_and_no_input_reaches_has_no_tangent() -> None:
    function = lambda x, y: [ops.exp(x) * ops.sin(y), ops.cos(y), ops.tanh(x)]
    pushed = push_forward(graph_of(function, tensor(F64), tensor(F64)), (0,), (True, True, False))
    verify(pushed.graph)
    assert pushed.tangents == (3, None, None)
    assert sum(".tangent" in (value.name or "") for value in pushed.graph.body) == 2
    assert not any(value.op is ops.multiply and value.operands[0].op is ops.tanh for value in pushed.graph.body)


def test_an_output_that_is_an_input_has_its_tangent() -> None:
    pushed = push_forward(graph_of(lambda x: [x, x], tensor(F64)), (0,))
    assert pushed.graph.outputs == (*pushed.graph.inputs[:1] * 2, *pushed.graph.inputs[1:] * 2)


def test_operands_in_another_order() -> None:
    """2 * x is written x * 2 where it is simplified."""
    pushed = push_forward(trace(lambda x: 2.0 * x, (np.ones(2),)).graph, (0,))
    assert interpret(pushed.graph, [np.full(2, 3.0), np.ones(2)])[1].tolist() == [2.0, 2.0]


def test_nothing_to_push() -> None:
    graph = graph_of(lambda x: ops.sin(x), tensor(F64))
    pushed = push_forward(graph, ())
    assert pushed.tangents == (None,) and pushed.graph.body == graph.body
    integers = push_forward(graph_of(lambda x: ops.cast(x, dtype=I64), tensor(F64)), (0,))
    assert integers.tangents == (None,)


def test_equal_tangents_are_made_once() -> None:
    pushed = push_forward(graph_of(lambda x: ops.exp(x), tensor(F64, (2,))), (0,))
    assert text(pushed.graph) == ["exp = exp x", "exp.tangent = multiply x.tangent exp"]


@pytest.mark.parametrize("name", ["sin", "cumsum", "sum", "matmul", "select", "max", "sort", "cholesky", "det"])
def test_transposed_twice_equals_the_rule(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is derived from the VJP is what the JVP rule gives."""
    rng = np.random.default_rng(0)
    m = rng.standard_normal((3, 3))
    x = m @ m.T + 3 * np.eye(3)
    functions: dict[str, Callable[[Any], Any]] = {
        "sin": np.sin, "cumsum": lambda x: np.cumsum(x, axis=1), "sum": lambda x: np.sum(x, axis=0), "matmul": lambda x: x @ x[0],
        "select": lambda x: np.where(x > 1.5, x, 2 * x), "max": lambda x: np.max(x, axis=0), "sort": lambda x: np.sort(x, axis=0),
        "cholesky": np.linalg.cholesky, "det": np.linalg.det}
    result = trace(functions[name], (x,))
    v = (m + m.T) / 2
    expected = interpret(push_forward(result.graph, (0,)).graph, [x, v])
    assert any(value.op.name == name for value in result.graph.body)
    monkeypatch.setattr(REGISTRY[name], "jvp", TRANSPOSED)
    pushed = push_forward(result.graph, (0,))
    verify(pushed.graph)
    for one, two in zip(interpret(pushed.graph, [x, v]), expected, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(expected[1], directional(lambda h: functions[name](x + h * v)), rtol=1e-6, atol=1e-8)


def test_an_op_without_a_rule_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(REGISTRY["sinh"], "jvp", absent("the forward derivative of sinh is not written"))
    with pytest.raises(UnsupportedError, match=r"test_push_forward.py:\d+: .*np.sinh\(x\).*\n.*the forward derivative of sinh is not written"):
        bw.jvp(lambda x: np.sinh(x), (1.0,), (1.0,))


def test_a_wrong_rule_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(tangents: Sequence[Value | None], out: Value, x: Value, **_: Any) -> Value | None:
        return tangents[0]

    assert REGISTRY["sum"].jvp is LINEAR
    monkeypatch.setattr(REGISTRY["sum"], "jvp", wrong)
    with pytest.raises(AssertionError, match=r"the tangent of %.*: f64\[\] is f64\[3\]"):
        push_forward(graph_of(lambda x: ops.sum(x, axes=(0,)), tensor(F64, (3,))), (0,))


# ----- custom rules
@bw.custom_vjp
def clipped(x):                                             # whose pullback is not linear
    return x * 1.0


clipped.defvjp(lambda x: (clipped(x), None), lambda residuals, ct: (np.clip(ct, -1.0, 1.0),))
SCALE = np.array([2.0, 3.0])


@bw.custom_vjp
def scaled(x, y):                                           # by rule: df = SCALE * x dx + 5 sum(dy); two outputs
    return x * y[0], np.sum(y)


def _scaled_bwd(residuals: Any, cts: Any) -> Any:
    return cts[0] * residuals * SCALE + cts[1] * 0.0, 5.0 * cts[1] + np.zeros(3)


scaled.defvjp(lambda x, y: (scaled(x, y), x), _scaled_bwd)


def test_forward_mode_of_a_rule_for_cotangents() -> None:
    x, y, dx, dy = np.array([1.0, 2.0]), np.arange(3.0), np.array([0.5, 0.25]), np.array([1.0, 2.0, 3.0])
    out, tangent = bw.jvp(scaled, (x, y), (dx, dy))
    np.testing.assert_allclose(out[0], x * y[0])
    np.testing.assert_allclose(tangent[0], SCALE * x * dx)
    np.testing.assert_allclose(tangent[1], 30.0)
    _, tangent = bw.jvp(scaled, (x, y), (dx, None))
    np.testing.assert_allclose(tangent[1], 0.0)
    # once more: the derivative of x -> SCALE * x * dx
    _, (second, _) = bw.jvp(lambda x: bw.jvp(scaled, (x, y), (dx, None))[1], (x,), (dx,))
    np.testing.assert_allclose(second, SCALE * dx * dx)


def test_a_rule_that_is_not_linear_is_refused() -> None:
    with pytest.raises(GradientError, match=r"(?s)test_push_forward.py:\d+: .*custom_vjp\(clipped\).*not a linear function.*bw.custom_jvp"):
        bw.jvp(lambda x: clipped(x) * 2, (1.0,), (1.0,))
    assert bw.grad(lambda x: clipped(x) * 2)(1.0) == 1.0
    assert bw.jacobian(lambda x: clipped(x)[None] * np.ones(3))(1.0).tolist() == [1.0, 1.0, 1.0]       # goes backwards
    function = lambda x: clipped(x) ** 3
    assert bw.hvp(function)(0.25, 1.0) == bw.hessian(function)(0.25) == bw.jacrev(bw.grad(function))(0.25)      # these too
