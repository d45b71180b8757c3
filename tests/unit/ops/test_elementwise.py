"""Elementwise ops and constants."""

from __future__ import annotations

import math

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import DTypeError, ShapeError
from bwcompiler.ir.op import REGISTRY
from bwcompiler.ir.types import BOOL, C64, C128, F32, F64, I8, I32, I64, tensor
from tests.support.gradcheck import jvp, vjp
from tests.support.opcases import case, op_tests

X = np.array([[-1.7, -0.6, 0.3], [0.8, 1.4, 2.6]])       # away from integers, half-integers and zero
Y = np.array([[0.7, -1.1, 1.9], [2.3, 0.4, -0.9]])
POSITIVE = np.array([0.2, 0.7, 1.3, 4.0])
UNIT = np.array([-0.9, -0.3, 0.2, 0.7])
Z = np.array([0.3 + 0.4j, -0.6 + 1.1j, 1.2 - 0.7j])
W = np.array([1.1 - 0.3j, 0.4 + 0.8j, -0.9 - 0.2j])
INTEGERS = np.array([-7, -2, 1, 6])
DIVISORS = np.array([2, 3, -4, 5])
ODD = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 5e-324, 1.0])
PAIRED = np.array([1.0, np.inf, -np.inf, -0.0, 0.0, np.nan, 1.0])
EMPTY = np.zeros((2, 0))
POINT = np.array(0.4)
BITS, OTHER_BITS = np.array([True, True, False, False]), np.array([True, False, True, False])

UNARY = {                                                # op: operand away from kinks; "c": also for complex operands
    "negative": (X, "c"), "absolute": (X, ""), "sign": (X, ""), "sqrt": (POSITIVE, "c"), "cbrt": (POSITIVE, ""),
    "exp": (X, "c"), "exp2": (X, "c"), "expm1": (X, "c"), "log": (POSITIVE, "c"), "log2": (POSITIVE, "c"),
    "log10": (POSITIVE, "c"), "log1p": (UNIT, "c"), "sin": (X, "c"), "cos": (X, "c"), "tan": (X / 2, "c"),
    "arcsin": (UNIT, "c"), "arccos": (UNIT, "c"), "arctan": (X, "c"), "sinh": (X, "c"), "cosh": (X, "c"),
    "tanh": (X, "c"), "arcsinh": (X, "c"), "arccosh": (POSITIVE + 1.5, "c"), "arctanh": (UNIT, "c"), "floor": (X, ""),
    "ceil": (X, ""), "trunc": (X, ""), "rint": (X, "c"), "isnan": (X, "c"), "isinf": (X, "c"), "isfinite": (X, "c"),
    "signbit": (X, ""), "stop_gradient": (X, "c"),
}
BINARY = {
    "add": (X, Y, "c"), "subtract": (X, Y, "c"), "multiply": (X, Y, "c"), "divide": (X, Y, "c"),
    "floor_divide": (X, Y, ""), "remainder": (X, Y, ""), "fmod": (X, Y, ""), "maximum": (X, Y, "c"),
    "minimum": (X, Y, "c"), "copysign": (X, Y, ""), "power": (POSITIVE, UNIT, "c"), "logaddexp": (X, Y, ""),
    "arctan2": (X, Y, ""), "hypot": (X, Y, ""), "equal": (X, Y, "c"), "not_equal": (X, Y, "c"), "less": (X, Y, "c"),
    "less_equal": (X, Y, "c"), "greater": (X, Y, "c"), "greater_equal": (X, Y, "c"),
}


def _unary_cases():
    for name, (x, kinds) in UNARY.items():
        yield case(name, x)
        yield case(name, ODD).but(smooth=False)
        yield case(name, POINT + (1.5 if name == "arccosh" else 0))
        yield case(name, EMPTY)
        yield case(name, x.astype(np.float32)).but(smooth=False)
        if "c" in kinds:
            yield case(name, Z)


def _binary_cases():
    for name, (x, y, kinds) in BINARY.items():
        yield case(name, x, y)
        yield case(name, ODD, PAIRED).but(smooth=False)
        yield case(name, POINT, POINT + 0.2)
        yield case(name, EMPTY, EMPTY)
        if "c" in kinds:
            yield case(name, Z, W)


CASES = [
    *_unary_cases(),
    *_binary_cases(),
    *[case(name, INTEGERS, DIVISORS) for name in (
        "add subtract multiply floor_divide remainder fmod maximum minimum equal not_equal less less_equal greater "
        "greater_equal bitwise_and bitwise_or bitwise_xor").split()],
    *[case(name, BITS, OTHER_BITS) for name in
      "bitwise_and bitwise_or bitwise_xor equal not_equal less greater maximum minimum".split()],
    *[case(name, INTEGERS) for name in ("negative", "absolute", "sign", "invert")],
    case("invert", BITS),
    case("left_shift", INTEGERS, np.arange(4)),
    case("right_shift", INTEGERS, np.arange(4)),
    case("power", INTEGERS, np.arange(4)),
    case("power", np.array([-1.5, 2.0, 3.0, -0.5]), np.array([2.0, 3.0, 0.0, -1.0])).but(smooth=False),
    case("select", BITS, POSITIVE, UNIT).gives(np.where(BITS, POSITIVE, UNIT)),
    case("select", BITS, INTEGERS, DIVISORS),
    case("select", np.array(True), POINT, POINT + 1),
    case("select", np.zeros((2, 0), bool), EMPTY, EMPTY),
    case("select", np.arange(7) % 2 == 0, ODD, PAIRED).but(smooth=False),
    case("cast", X, dtype=F64),
    case("cast", X, dtype=C128).but(smooth=False),                    # differentiable, but not between real directions
    case("cast", X, dtype=F32).but(smooth=False),
    case("cast", X, dtype=I32).but(smooth=False).gives(np.array([[-1, 0, 0], [0, 1, 2]], np.int32)),
    case("cast", np.array([0.0, -0.0, np.nan, 2.0]), dtype=BOOL).but(smooth=False),
    case("cast", INTEGERS * 100, dtype=I8),
    case("cast", BITS, dtype=I64),
    case("cast", EMPTY, dtype=F32).but(smooth=False),
    case("full", value=2.5, shape=(2, 3), dtype=F32),
    case("full", value=True, shape=(), dtype=BOOL),
    case("full", value=1j, shape=(0, 2), dtype=C64),
    case("unset", shape=(2, 3), dtype=F32).gives(np.zeros((2, 3), np.float32)),
    case("unset", shape=(), dtype=BOOL),
    case("unset", shape=(0, 2), dtype=C64),
    case("iota", shape=(2, 3), axis=1, dtype=I64).gives([[0, 1, 2], [0, 1, 2]]),
    case("iota", shape=(3,), axis=0, dtype=F32),
    case("iota", shape=(0, 2), axis=1, dtype=I64),
    case("index_value", extent=7).gives(7),
]
test_op = op_tests(CASES)


@pytest.mark.parametrize("name", ["divide", "sqrt", "exp"])
def test_integers_are_not_promoted(name):
    types = (tensor(I64, (2,)),) * (2 if name == "divide" else 1)
    with pytest.raises(DTypeError):
        REGISTRY[name].shape(*types)


@pytest.mark.parametrize(("source", "target"), [(F32, F64), (F64, F32), (F64, C128), (C64, C128), (C128, F64)])
def test_derivatives_of_cast_have_the_dtypes_of_its_ends(source, target):
    row = case("cast", X.astype(source.numpy), dtype=target)
    ct = np.full(X.shape, 1 + (2j if target.kind == "c" else 0), target.numpy)
    [bar] = vjp(row.program(), [0]).run(*row.arrays, ct)
    [tangent] = jvp(row.program(), [0]).run(*row.arrays, np.ones(X.shape, source.numpy))
    assert (bar.dtype, tangent.dtype) == (source.numpy, target.numpy)
    assert (bar == (ct if source.kind == "c" else ct.real)).all() and (tangent == 1).all()


def test_operands_are_not_broadcast():
    with pytest.raises(ShapeError):
        REGISTRY["add"].shape(tensor(F64, (2,)), tensor(F64, (1,)))
    with pytest.raises(DTypeError):
        REGISTRY["add"].shape(tensor(F64, (2,)), tensor(F32, (2,)))
    with pytest.raises(ShapeError):
        REGISTRY["select"].shape(tensor(BOOL), tensor(F64, (2,)), tensor(F64, (2,)))


@pytest.mark.parametrize("exponent", [0.0, 1.0, 2.0, -1.0, 0.5])
def test_second_derivatives_of_powers(exponent: float) -> None:
    """At exponents where the first derivative by the base vanishes too."""
    base, log = 2.0, math.log(2.0)
    found = bw.hessian(lambda b, y: b**y, argnums=(0, 1))(base, exponent)
    mixed = base ** (exponent - 1) * (1 + exponent * log)
    expected = [[exponent * (exponent - 1) * base ** (exponent - 2), mixed], [mixed, base**exponent * log * log]]
    np.testing.assert_allclose(np.array(found, float), expected, rtol=1e-12)
    assert bw.grad(lambda b, y: b**y)(0.0, 0.0) == 0.0


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("number", [0.1, -3.0, 0.0, np.inf, 1e-40, 1e38, np.nan])
def test_cotangents_of_quotients_by_a_known_number(number, dtype):
    """Products with the reciprocal, where that is a number as any other."""
    ct = np.array([1.0, -2.5, 0.0, np.inf], dtype)
    known = np.dtype(dtype).type(number)
    with np.errstate(all="ignore"):
        expected = ct / known
    _, pullback = bw.vjp(lambda x: x / known, np.ones(4, dtype))
    (found,) = pullback(ct)
    np.testing.assert_allclose(found, expected, rtol=2 * np.finfo(dtype).eps)
