"""check_grads: passes where derivatives are right, and names the rule and the line where one is wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import DerivativeError, GradientError, SignatureError
from bwcompiler.ir.op import REGISTRY

X = np.array([0.5, -1.25, 0.8])


@bw.custom_vjp
def sine(x):
    return np.sin(x)


sine.defvjp(lambda x: (sine(x), x), lambda x, ct: (ct * np.cos(x) * 1.01,))


@bw.custom_jvp
def cosine(x):
    return np.cos(x)


cosine.defjvp(lambda primals, tangents: (cosine(*primals), -1.01 * np.sin(primals[0]) * tangents[0]))

RIGHT: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "scalar": (lambda x: x**3 * np.sin(x), (0.7,)),
    "trees": (lambda p, k: {"out": np.tanh(p["w"] @ p["x"]) * k, "index": k}, ({"w": np.outer(X, X), "x": X}, np.arange(3))),
    "linear algebra": (lambda a, b: np.linalg.solve(a @ a.T + 3 * np.eye(3), b), (np.outer(X, X) + np.diag(X), X)),
    "float32": (lambda x: np.exp(x) * x, (X.astype(np.float32),)),
    "complex": (lambda z: {"z": np.abs(z) ** 2 * z + np.conj(z), "r": np.angle(z) * z.real}, (X + 1j * X[::-1],)),
    "complex results": (lambda x: np.fft.fft(np.sin(x)) * x[0], (X,)),
    "python int": (lambda x: x * x, (3,)),
    "masked": (lambda x: np.where(x > 0, np.sqrt(np.abs(x)), x), (X,)),
    "loop": (lambda x: [x := np.sin(x) for _ in range(3)][-1], (X,)),
    "large and small": (lambda x: np.log(x), (np.array([1e-6, 1.0, 1e8]),)),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_derivatives(name: str) -> None:
    function, args = RIGHT[name]
    bw.check_grads(function, args, order=2)


def line_of(text: str) -> int:
    with open(__file__) as file:
        return next(number for number, line in enumerate(file, 1) if text in line and "line_of" not in line)


def through_rule(x):
    y = 2.0 * x
    z = sine(y)  # the wrong one
    return np.sum(z * x)


@pytest.mark.parametrize("mode", ["fwd", "rev"])
def test_a_wrong_custom_vjp_is_named(mode: str) -> None:
    with pytest.raises(DerivativeError) as found:
        bw.check_grads(through_rule, (X,), modes=(mode,))
    assert f"test_check_grads.py:{line_of('z = sine(y)  # the wrong one')}: " in str(found.value)
    kind = {"fwd": "tangents", "rev": "cotangents"}[mode]
    assert f"the rule for {kind} of custom_vjp(sine) is wrong, at operands (f64[3])" in str(found.value)
    assert "of through_rule, order 1" in str(found.value)
    assert isinstance(found.value, AssertionError)


@pytest.mark.parametrize("mode", ["fwd", "rev"])
def test_a_wrong_custom_jvp_is_named(mode: str) -> None:
    with pytest.raises(DerivativeError, match=r"of custom_jvp\(cosine\) is wrong"):
        bw.check_grads(lambda x: np.sum(cosine(x)), (X,), modes=(mode,))


def in_a_captured_loop(x):
    total = 0.0
    for i in range(1, 3):
        for j in range(3):
            total = total + x[j] * np.sum(sine(x[:i]))
    return total


def in_a_while(x):
    while np.sum(x) > 0.01:
        x = 0.3 * sine(x)
    return x


INSIDE: dict[str, Any] = {
    "cond": lambda x: bw.cond(x[0] > 0, lambda x: 2.0 * sine(x), lambda x: x, x),
    "switch": lambda x: bw.switch(2, [lambda x: x, np.exp, lambda x: 2.0 * sine(x)], x),
    "scan": lambda x: bw.scan(lambda c, e: (sine(c) * e, None), x, np.stack([x, x]))[0],
    "loop": in_a_captured_loop,
    "while": in_a_while,
    "checkpoint": bw.checkpoint(lambda x: np.tanh(sine(x))),
    "jit": bw.jit(lambda x: np.tanh(sine(x))),
    "cond in a loop": lambda x: bw.fori_loop(0, 4, lambda i, c: bw.cond(i == 2, lambda c: sine(c), lambda c: 2.0 * c, c), x),
    "mapped loop": lambda x: bw.vmap(lambda y: bw.fori_loop(0, 2, lambda i, c: sine(c) + i, y))(np.stack([x, x])),
    "Jacobian": lambda x: bw.jacfwd(np.exp)(x) @ sine(x),
}


@pytest.mark.parametrize("name, mode", list(zip(INSIDE, ["fwd", "rev"] * len(INSIDE), strict=False)))
def test_a_wrong_rule_inside_of_loops_and_branches_is_named(name: str, mode: str) -> None:
    with pytest.raises(DerivativeError, match=r"(?s)test_check_grads.py:\d+: .*of (batched )?custom_vjp\(sine\) is wrong, at operands"):
        bw.check_grads(INSIDE[name], (X + 0.3,), order=1, modes=(mode,))


@pytest.mark.parametrize("name, function", [("tanh", np.tanh), ("matmul", lambda x: np.outer(x, x) @ x), ("cumsum", np.cumsum)])
def test_a_wrong_op_is_named(name: str, function: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    op = REGISTRY[name]
    wrong = tuple([lambda ct, out, *operands, rule=rule, **attrs: rule(ct, out, *operands, **attrs) * 0.9 for rule in op.vjp])
    monkeypatch.setattr(op, "vjp", wrong)
    with pytest.raises(DerivativeError, match=f"the rule for cotangents of the op {name} is wrong"):
        bw.check_grads(lambda x: np.sum(np.sin(function(x))), (X,), modes=("rev",))


def test_the_second_order_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    op = REGISTRY["exp"]
    monkeypatch.setattr(op, "vjp", (lambda ct, out, x: ct * REGISTRY["stop_gradient"](out),))       # right, but not its derivative
    bw.check_grads(np.exp, (X,), order=1)
    with pytest.raises(DerivativeError, match="(?s)order 2.*the op stop_gradient is wrong"):
        bw.check_grads(np.exp, (X,), order=2)


def test_a_kink_is_no_wrong_rule() -> None:
    function = lambda x: np.sum(np.maximum(x, 0.0) * 2)
    with pytest.raises(DerivativeError, match="not smooth here"):
        bw.check_grads(function, (np.zeros(3),))
    assert bw.grad(function)(np.zeros(3)).tolist() == [1.0] * 3


def test_options() -> None:
    with pytest.raises(GradientError, match="mode 'forward'"):
        bw.check_grads(np.sin, (X,), modes=("forward",))
    with pytest.raises(SignatureError, match=r"check_grads\(fun, \(x,\)\)"):
        bw.check_grads(np.sin, X)
    bw.check_grads(through_rule, (X,), order=1, modes="rev", rtol=0.1)
    bw.check_grads(np.sin, (X,), eps=1e-4)
    bw.check_grads(through_rule, (X,), order=0)
