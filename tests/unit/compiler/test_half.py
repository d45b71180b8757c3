"""float16: conversions, arithmetic and what only moves numbers have NumPy's bits on every target; the rest differs by what sums round."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler import ops
from bwcompiler.frontend.tracing.trace import trace
from bwcompiler.passes.rewriting.legal.half_rules import HALF_RULES
from bwcompiler.passes.rewriting.legalize import legalize
from bwcompiler.target import Target, compiling_for
from tests.support.targets import TARGETS

HALVES = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
BINARY = "add subtract multiply divide maximum minimum fmax fmin copysign less equal not_equal greater_equal nextafter".split()
UNARY = "sqrt negative absolute floor ceil trunc rint sign isnan isinf isfinite signbit reciprocal spacing positive square".split()


@pytest.fixture(params=TARGETS.values(), ids=str)
def target(request: pytest.FixtureRequest) -> Iterator[Target]:
    with compiling_for(request.param), np.errstate(all="ignore"):
        yield request.param


def require_bits(found: Any, expected: Any, what: str) -> None:
    """The same bits; a nan may be another nan."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape), what
    np.testing.assert_array_equal(found, expected, what)
    if expected.dtype.kind == "f":
        numbers = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(found[numbers]), np.signbit(expected[numbers]), what)


def ties() -> np.ndarray[Any, Any]:
    """Doubles: all numbers halfway between two halves, their neighbours, and others of every size."""
    positive = HALVES[: 0x7C00].astype(np.float64)
    middle = (positive[1:] + positive[:-1]) / 2
    edges = np.array([65504.0, 65519.999, 65520.0, 65536.0, 1e30, 1e300, 5e-324, 1e-40, np.inf, np.nan, 2.0**-25, 2.0**-24])
    found = np.concatenate([positive, middle, np.nextafter(middle, 0), np.nextafter(middle, 1e9), edges])
    return np.concatenate([found, -found])


def test_conversions(target: Target) -> None:
    doubles = ties()
    for dtype in (np.float32, np.float64, np.int16, np.uint8, np.bool_, np.complex64):
        x = HALVES if np.dtype(dtype).kind in "fcb" else np.arange(-100, 100).astype(np.float16)
        x = np.abs(x) if np.dtype(dtype).kind == "u" else x
        require_bits(bw.jit(lambda x, kind=dtype: x.astype(kind))(x), x.astype(dtype), f"to {dtype}")
    whole = np.arange(-70000, 70000)
    for x in (doubles, doubles.astype(np.float32), whole, whole.astype(np.int32), whole.astype(np.uint16), whole > 3, np.array(0.1)):
        require_bits(bw.jit(lambda x: x.astype(np.float16))(x), x.astype(np.float16), f"from {x.dtype}")


def test_arithmetic(target: Target, rng: np.random.Generator) -> None:
    x, y = rng.permutation(HALVES), rng.permutation(HALVES)
    found = bw.jit(lambda x, y: [getattr(np, name)(x, y) for name in BINARY])(x, y)
    for name, one in zip(BINARY, found, strict=True):
        require_bits(one, getattr(np, name)(x, y), name)
    found = bw.jit(lambda x: [getattr(np, name)(x) for name in UNARY])(HALVES)
    for name, one in zip(UNARY, found, strict=True):
        require_bits(one, getattr(np, name)(HALVES), name)

    def chain(x, y):
        return np.sqrt(x * x + y) / np.float16(3) - x                                         # each operation rounds
    require_bits(bw.jit(chain)(x, y), chain(x, y), "chain")


MOVES: dict[str, Callable[..., Any]] = {
    "where": lambda x: np.where(x > 0, x, 0), "gather": lambda x: x[np.array([3, 0, 3])], "columns": lambda x: x[:, ::-2],
    "concatenate": lambda x: np.concatenate([x, x * 2], axis=1), "pad": lambda x: np.pad(x, 1, constant_values=0.1), "sort": lambda x: np.sort(x, 0),
    "argsort": lambda x: np.argsort(x, 1), "max": lambda x: x.max(0), "argmin": lambda x: x.argmin(1), "full": lambda x: np.full_like(x, 0.1),
    "clip": lambda x: np.clip(x, -0.5, 0.3), "roll": lambda x: np.roll(x, 2, 1), "stack": lambda x: np.stack([x, x]), "diagonal": lambda x: np.diag(x),
    "python numbers": lambda x: 0.1 * x + 3, "epsilon": lambda x: x + np.finfo(x.dtype).eps, "transposed": lambda x: x.T.copy(),
    "median": lambda x: np.median(x, axis=1), "diff": lambda x: np.diff(x), "scalar": lambda x: x[1, 2], "int8": lambda x: np.sqrt((x > 0).astype(np.int8)),
    "float32": lambda x: x * np.float32(0.1), "float64": lambda x: x * np.array([0.1]), "mean": lambda x: np.mean(x * np.float16(30000)),
    "parts": lambda x: np.frexp(x)[0], "written": lambda x: _written(x.copy())}


def _written(x: Any) -> Any:
    x[1, ::2] += x[0, 1::2]
    x[2] = 0.1
    return x


@pytest.mark.parametrize("name", MOVES)
def test_as_numpy(name: str, rng: np.random.Generator) -> None:
    x = rng.standard_normal((4, 6)).astype(np.float16)
    with np.errstate(over="ignore"):
        require_bits(bw.jit(MOVES[name])(x), MOVES[name](x), name)


@pytest.mark.parametrize("function", [
    lambda x: x.sum(0), lambda x: np.cumsum(x, 1), lambda x: x @ x.T, lambda x: np.var(x, axis=1), np.exp, np.tanh, lambda x: np.abs(x) ** 1.5,
    lambda x: np.einsum("ij,kj->ki", x, x), lambda x: np.prod(x, 1), lambda x: np.arctan2(x, x + 1), np.fft.rfft, np.linalg.norm])
def test_close_to_numpy(function: Callable[..., Any], rng: np.random.Generator) -> None:
    x = rng.standard_normal((4, 6)).astype(np.float16)
    found, expected = bw.jit(function)(x), np.asarray(function(x))
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(np.asarray(found), expected, rtol=3e-3, atol=3e-3)


def test_derivatives(rng: np.random.Generator) -> None:
    x = rng.uniform(0.5, 1.5, 5).astype(np.float16)
    value, gradient = bw.value_and_grad(lambda x: np.sum(x * x * np.sin(x)))(x)
    assert type(value) is np.float16 and gradient.dtype == np.float16
    np.testing.assert_allclose(gradient, bw.grad(lambda x: np.sum(x * x * np.sin(x)))(x.astype(np.float64)), rtol=5e-3)
    assert bw.hessian(lambda x: np.sum(x**3))(x).dtype == np.float16
    assert bw.jvp(np.tanh, (x,), (x,))[1].dtype == np.float16
    np.testing.assert_array_equal(bw.vmap(bw.grad(lambda x: x * x))(x), x + x)
    bw.check_grads(lambda x: np.sum(np.sqrt(x) * x[::-1]), (x,), order=1)
    cotangent = bw.vjp(lambda x: x.astype(np.float64) * 2, x)[1](np.ones(5))[0]
    assert cotangent.dtype == np.float16


def test_loops_and_programs(rng: np.random.Generator) -> None:
    x = rng.standard_normal((3, 4)).astype(np.float16)

    def loop(x):
        y = np.zeros((8, 4), np.float16) + x[0, 0] * 0
        for i in range(1, 8):
            y[i] = y[i - 1] * np.float16(0.5) + x[i % 3]
        return y

    require_bits(bw.jit(loop)(x), loop(x), "a loop")
    wide = bw.grad(lambda x: (loop(x).astype(np.float64) ** 2).sum())(x)
    np.testing.assert_allclose(wide, bw.grad(lambda x: (loop(x) ** 2).sum())(x.astype(np.float64)), rtol=1e-2, atol=1e-2)
    program = bw.compile(lambda x, w: np.maximum(x @ w, 0), x, x.T.copy())
    buffers = [np.ones((3, 4), np.float16), None]
    program.backward(x, x.T.copy(), grad_outputs=np.ones((3, 3), np.float16), into=buffers)
    assert buffers[0].dtype == np.float16 and (buffers[0] != 1).any()
    assert bw.jit(lambda x, factor: x * factor)(x, 2.5).dtype == np.float16                       # a Python number as argument
    assert bw.jit(lambda x, flag: x + flag)(x, True).dtype == np.float16
    assert type(bw.jit(lambda x: x * 2)(np.float16(3))) is np.float16


def test_slices_are_added_to_in_place(rng: np.random.Generator) -> None:
    """The cotangent of a row costs a row: nothing as long as the whole array is converted."""
    def change(x, row):
        x[2] += row
        return x

    x = rng.standard_normal((100, 4)).astype(np.float16)
    graph = legalize(bw.jit(bw.grad(lambda x: (x[2] * x[3]).sum())).lower(x).graph)
    casts = [value for value in graph.body if value.op.name == "cast"]
    assert casts and all(value.type.size <= 4 for value in casts)
    require_bits(bw.jit(change)(x.copy(), x[0]), change(x.copy(), x[0]), "x[2] += row")


def test_what_moves_stays_half() -> None:
    graph = legalize(trace(lambda x: np.where(x[::-1] > 0, x, x[::-1]), (np.ones(3, np.float16),)).graph)
    assert [str(value.dtype) for value in graph.body if value.op.name == "select"] == ["f16"]
    assert ops.select not in HALF_RULES and ops.add in HALF_RULES and ops.matmul in HALF_RULES
