"""`bw.compile`: programs, their seeds, `wrt`, `into` and `scale`, what they refuse, and their texts."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import BwError, GradientError, SeedError, SignatureError, UnsupportedError

X, Y = np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0])


def two_outputs(x, y):
    return x * y, np.sum(x + 2 * y)


@pytest.fixture
def two() -> bw.Program:
    return bw.compile(two_outputs, X, Y)


# ----- seeds
def test_scalar_output_needs_no_seed() -> None:
    program = bw.compile(lambda x: np.sum(x * x), X)
    assert program.backward(X)[0].tolist() == [2.0, 4.0, 6.0]
    assert program.backward(X, grad_outputs=10.0)[0].tolist() == [20.0, 40.0, 60.0]
    assert program.backward(X, grad_outputs=np.float64(10))[0].tolist() == [20.0, 40.0, 60.0]
    assert program.backward(X, grad_outputs=np.array(10.0))[0].tolist() == [20.0, 40.0, 60.0]


def test_one_seed_per_output(two: bw.Program) -> None:
    gx, gy = two.backward(X, Y, grad_outputs=(np.ones(3), 10.0))
    assert gx.tolist() == [14.0, 15.0, 16.0]
    assert gy.tolist() == [21.0, 22.0, 23.0]


def test_none_as_a_seed_means_zero(two: bw.Program) -> None:
    gx, gy = two.backward(X, Y, grad_outputs=(None, 1.0))
    assert gx.tolist() == [1.0] * 3 and gy.tolist() == [2.0] * 3
    gx, gy = two.backward(X, Y, grad_outputs=(np.ones(3), None))
    assert gx.tolist() == Y.tolist() and gy.tolist() == X.tolist()
    gx, gy = two.backward(X, Y, grad_outputs=(None, None))
    assert not gx.any() and not gy.any()


def test_several_outputs_need_seeds(two: bw.Program) -> None:
    with pytest.raises(SeedError, match="scalar"):
        two.backward(X, Y)


@pytest.mark.parametrize(("seed", "parts"), [
    (np.ones(3), ["2 outputs"]),
    ((np.ones(3),), ["2 outputs", "1 entries"]),
    ((np.ones(3), 1.0, 1.0), ["2 outputs", "3 entries"]),
    ((np.ones((1, 3)), 1.0), ["grad_outputs[0]", "(1, 3)", "(3,)"]),
    ((np.ones(3), np.ones(1)), ["grad_outputs[1]", "(1,)", "()"]),
    ((np.ones(3, np.float32), 1.0), ["grad_outputs[0]", "float32", "float64"]),
    ((np.ones(3, np.int64), 1.0), ["grad_outputs[0]", "int64", "float64"]),
    (([1.0, 2.0], 1.0), ["grad_outputs[0]", "(2,)", "(3,)"]),
], ids=lambda value: value[0] if isinstance(value, list) else "seed")
def test_wrong_seeds_are_named(two: bw.Program, seed: Any, parts: list[str]) -> None:
    with pytest.raises(SeedError) as caught:
        two.backward(X, Y, grad_outputs=seed)
    for part in parts:
        assert part in str(caught.value)


def test_wrong_seed_names_the_line_of_the_output(two: bw.Program) -> None:
    with pytest.raises(SeedError) as caught:
        two.backward(X, Y, grad_outputs=(np.ones(2), 1.0))
    assert "test_program.py" in str(caught.value).splitlines()[0]
    assert "return x * y, np.sum(x + 2 * y)" in str(caught.value)


def test_seeds_of_a_dictionary() -> None:
    program = bw.compile(lambda x: {"a": x * x, "b": [np.sum(x), 3 * x]}, X)
    (gx,) = program.backward(X, grad_outputs={"a": np.ones(3), "b": [2.0, None]})
    assert gx.tolist() == [4.0, 6.0, 8.0]
    with pytest.raises(SeedError, match="keys"):
        program.backward(X, grad_outputs={"a": np.ones(3), "c": [2.0, None]})
    with pytest.raises(SeedError, match=r"\['b'\]\[1\].*\(2,\)"):
        program.backward(X, grad_outputs={"a": None, "b": [None, np.ones(2)]})


def test_numbers_and_lists_take_the_dtype_of_the_output() -> None:
    x = X.astype(np.float32)
    program = bw.compile(lambda x: (x * x, np.sum(x)), x)
    (gx,) = program.backward(x, grad_outputs=([1, 2, 3], 1))
    assert gx.dtype == np.float32 and gx.tolist() == [3.0, 9.0, 19.0]


@pytest.mark.parametrize("seed", [np.ones((4, 3))[:, 0], np.ones(8)[::2], np.broadcast_to(1.0, 4), np.ones(4, ">f8")],
                         ids=["column", "strided", "broadcast", "byte-swapped"])
def test_seeds_of_any_layout(seed: np.ndarray) -> None:
    x = np.arange(4.0)
    assert bw.compile(lambda x: x * x, x).backward(x, grad_outputs=seed)[0].tolist() == (2 * x).tolist()


def test_integer_outputs_take_none() -> None:
    program = bw.compile(lambda x: (x * x, np.argmax(x)), X)
    out, (gx,) = program.value_and_backward(X, grad_outputs=(np.ones(3), None))
    assert out[1] == 2
    assert gx.tolist() == [2.0, 4.0, 6.0]


# ----- wrt
def test_a_seed_for_an_integer_output() -> None:
    program = bw.compile(lambda x: (x * 2, np.argmax(x)), X)
    with pytest.raises(SeedError, match=r"grad_outputs\[1\]: the output is of dtype int64, which has no derivative"):
        program.backward(X, grad_outputs=(np.ones(3), np.int64(1)))


def test_wrt_names_each_argument_once(two: bw.Program) -> None:
    for wrt in ((0, 0), (1, -1)):
        with pytest.raises(GradientError, match="twice"):
            two.backward(X, Y, grad_outputs=(X, 1.0), wrt=wrt)


@pytest.mark.parametrize("scale", ["2", [2.0], 1j, np.ones(1)])
def test_scale_is_a_number(two: bw.Program, scale: Any) -> None:
    with pytest.raises(SignatureError, match="it must be a number"):
        two.backward(X, Y, grad_outputs=(X, 1.0), into=(np.zeros(3), None), scale=scale)


def test_wrt_of_the_program_and_of_the_call() -> None:
    fun = lambda x, y, z: np.sum(x * y * z)
    program = bw.compile(fun, X, X, X, wrt=(0, 2))
    gradients = program.backward(X, X, X)
    assert gradients[1] is None and gradients[0].tolist() == gradients[2].tolist() == (X * X).tolist()
    gradients = program.backward(X, X, X, wrt=1)
    assert gradients[0] is None and gradients[2] is None and gradients[1].tolist() == (X * X).tolist()
    gradients = program.backward(X, X, X, wrt=(-1,))
    assert gradients[0] is None and gradients[1] is None and gradients[2] is not None
    assert program.backward(X, X, X, wrt=()) == (None, None, None)


def test_wrt_computes_only_what_is_asked_for() -> None:
    program = bw.compile(lambda x, a: x @ a, np.ones((2, 3)), np.ones((3, 4)), wrt=(0,))
    assert program.as_text("adjoint").count(" = matmul ") == 1
    assert "%x:" not in program.as_text("adjoint")


def test_integer_arguments_get_none() -> None:
    program = bw.compile(lambda x, i, m: np.sum(x[i] * m), X, np.array([0, 0, 2]), np.array([True, True, False]))
    gradients = program.backward(X, np.array([0, 0, 2]), np.array([True, True, False]))
    assert gradients[0].tolist() == [2.0, 0.0, 0.0]
    assert gradients[1] is None and gradients[2] is None
    assert "None" in program.explain()


@pytest.mark.parametrize("wrt", [1, (0, 1), (-1,)], ids=str)
def test_integer_argument_in_wrt(wrt: Any) -> None:
    i = np.array([0, 1])
    with pytest.raises(GradientError, match="int64"):
        bw.compile(lambda x, i: np.sum(x[i]), X, i, wrt=wrt)
    program = bw.compile(lambda x, i: np.sum(x[i]), X, i)
    with pytest.raises(GradientError, match="int64"):
        program.backward(X, i, wrt=wrt)


@pytest.mark.parametrize("wrt", [2, (0, 5), -3], ids=str)
def test_wrt_out_of_range(two: bw.Program, wrt: Any) -> None:
    with pytest.raises(GradientError, match="2 positional arguments"):
        two.backward(X, Y, grad_outputs=(None, 1.0), wrt=wrt)


def test_unused_argument_gets_zeros() -> None:
    program = bw.compile(lambda x, unused: np.sum(x), X, np.ones((2, 2), np.float32))
    gx, gu = program.backward(X, np.ones((2, 2), np.float32))
    assert gx.tolist() == [1.0] * 3
    assert gu.shape == (2, 2) and gu.dtype == np.float32 and not gu.any()


# ----- into and scale
def test_into_adds_scaled_gradients(two: bw.Program) -> None:
    bx, by = np.full(3, 100.0), np.full(3, 200.0)
    returned = two.backward(X, Y, grad_outputs=(None, 1.0), into=(bx, by), scale=0.5)
    assert returned[0] is bx and returned[1] is by
    assert bx.tolist() == [100.5] * 3 and by.tolist() == [201.0] * 3
    two.backward(X, Y, grad_outputs=(None, 1.0), into=(bx, by))
    assert bx.tolist() == [101.5] * 3 and by.tolist() == [203.0] * 3


def test_into_for_some_arguments(two: bw.Program) -> None:
    buffer = np.zeros(3)
    gx, gy = two.backward(X, Y, grad_outputs=(None, 1.0), into=(None, buffer), scale=10.0)
    assert gx.tolist() == [1.0] * 3  # allocated, and not scaled: scale is what into adds
    assert gy is buffer and buffer.tolist() == [20.0] * 3


def test_scale_can_change_without_compilation(two: bw.Program, compilations: list[str]) -> None:
    buffer = np.zeros(3)
    for scale in (1.0, 2, np.float64(3.0), -1.0):
        two.backward(X, Y, grad_outputs=(None, 1.0), wrt=0, into=(buffer, None), scale=scale)
    assert buffer.tolist() == [5.0] * 3
    assert len(compilations) == 1


def test_scale_without_into(two: bw.Program) -> None:
    with pytest.raises(SignatureError, match="into"):
        two.backward(X, Y, grad_outputs=(None, 1.0), scale=2.0)


@dataclasses.dataclass
class Layer:
    weight: Any
    bias: Any


def test_into_of_containers() -> None:
    parameters = {"layer": Layer(np.ones((2, 2)), np.ones(2)), "list": [np.float64(3.0), np.ones(2)]}

    def fun(p):
        return np.sum(p["layer"].weight @ p["layer"].bias) * p["list"][0] + np.sum(p["list"][1])

    program = bw.compile(fun, parameters)
    scale_buffer = np.zeros(())
    buffers = {"layer": Layer(np.zeros((2, 2)), np.zeros(2)), "list": [scale_buffer, np.zeros(2)]}
    (returned,) = program.backward(parameters, into=(buffers,), scale=2.0)
    assert returned["layer"].weight is buffers["layer"].weight and returned["list"][0] is scale_buffer
    assert buffers["layer"].weight.tolist() == [[6.0, 6.0], [6.0, 6.0]]
    assert buffers["layer"].bias.tolist() == [12.0, 12.0]
    assert scale_buffer == 8.0 and buffers["list"][1].tolist() == [2.0, 2.0]


@pytest.mark.parametrize(("buffer", "part"), [
    (np.zeros(2), "(2,)"), (np.zeros((3, 1)), "(3, 1)"), (np.zeros(3, np.float32), "float32"), ([0.0, 0.0, 0.0], "array"),
], ids=["length", "rank", "dtype", "list"])
def test_buffers_that_do_not_fit(two: bw.Program, buffer: Any, part: str) -> None:
    with pytest.raises((SignatureError, SeedError)) as caught:
        two.backward(X, Y, grad_outputs=(None, 1.0), into=(buffer, None))
    assert part in str(caught.value)


def test_buffer_for_an_argument_not_differentiated(two: bw.Program) -> None:
    with pytest.raises(SignatureError, match="wrt"):
        two.backward(X, Y, grad_outputs=(None, 1.0), wrt=0, into=(None, np.zeros(3)))


@pytest.mark.parametrize("into", [np.zeros(3), (np.zeros(3),), (None, None, None)], ids=["array", "one", "three"])
def test_into_needs_one_entry_per_argument(two: bw.Program, into: Any) -> None:
    with pytest.raises(SignatureError, match="one entry per argument"):
        two.backward(X, Y, grad_outputs=(None, 1.0), into=into)


def test_read_only_buffer(two: bw.Program) -> None:
    buffer = np.zeros(3)
    buffer.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        two.backward(X, Y, grad_outputs=(None, 1.0), into=(buffer, None))
    assert not buffer.any()


def test_buffers_of_any_layout(two: bw.Program) -> None:
    whole = np.zeros((3, 4))
    two.backward(X, Y, grad_outputs=(None, 1.0), into=(whole[:, 1], whole[::-1, 2]))
    assert whole[:, 1].tolist() == [1.0] * 3 and whole[:, 2].tolist() == [2.0] * 3
    assert not whole[:, [0, 3]].any()


def test_overlapping_buffers(two: bw.Program) -> None:
    whole = np.zeros(4)
    with pytest.raises(SignatureError, match="share memory"):
        two.backward(X, Y, grad_outputs=(None, 1.0), into=(whole[:3], whole[1:]))
    with pytest.raises(SignatureError, match="share memory"):
        two.backward(X, Y, grad_outputs=(None, 1.0), into=(whole[:3], whole[:3]))
    assert not whole.any()


def test_buffer_that_is_an_argument(two: bw.Program) -> None:
    """The gradient is that at the value on entry: descent in place."""
    x = X.copy()
    program = bw.compile(lambda x: np.sum(x[::-1] * x**2), x)
    (expected,) = program.backward(x)
    program.backward(x, into=(x,), scale=-0.1)
    np.testing.assert_allclose(x, X - 0.1 * expected)


# ----- value and pullback
def test_value_and_backward(two: bw.Program) -> None:
    out, gradients = two.value_and_backward(X, Y, grad_outputs=(None, 1.0))
    assert isinstance(out, tuple) and out[0].tolist() == (X * Y).tolist() and out[1] == np.sum(X + 2 * Y)
    assert gradients[0].tolist() == [1.0] * 3
    called = two(X, Y)
    assert called[0].tolist() == out[0].tolist() and called[1] == out[1]


def test_pullback_is_callable_repeatedly(two: bw.Program) -> None:
    x, y = X.copy(), Y.copy()
    out, pullback = two.vjp(x, y)
    x[:], y[:] = np.nan, np.nan  # what is needed was saved
    out[0][:] = np.nan
    for factor in (1.0, 2.0, 3.0):
        gx, gy = pullback((factor * np.ones(3), None))
        assert gx.tolist() == (factor * Y).tolist() and gy.tolist() == (factor * X).tolist()
    buffer = np.zeros(3)
    pullback((None, 1.0), into=(buffer, None), scale=5.0)
    assert buffer.tolist() == [5.0] * 3
    with pytest.raises(SeedError):
        pullback()


def test_two_pullbacks_do_not_disturb_each_other() -> None:
    program = bw.compile(lambda x: np.sum(np.tanh(x)), X)
    _, first = program.vjp(X)
    _, second = program.vjp(2 * X)
    np.testing.assert_allclose(first()[0], 1 - np.tanh(X) ** 2, rtol=1e-12)
    np.testing.assert_allclose(second()[0], 1 - np.tanh(2 * X) ** 2, rtol=1e-12)


# ----- arguments
def test_arguments_that_do_not_fit(two: bw.Program) -> None:
    for arguments, part in (((X,), "compiled for"), ((X, Y, Y), "compiled for"), ((X, Y[:2]), r"\(2,\)"),
                            ((X, Y.astype(np.float32)), "float32"), (((X, X), Y), "compiled for")):
        with pytest.raises(SignatureError, match=part):
            two(*arguments)


def test_shapes_and_dtypes_without_data() -> None:
    class Spec:
        shape = (3,)
        dtype = np.dtype(np.float64)

    program = bw.compile(lambda x: np.sum(x**2), Spec())
    assert program(X) == 14.0
    assert program.backward(X)[0].tolist() == [2.0, 4.0, 6.0]


# ----- looking
STAGES = ("source", "forward", "adjoint", "simplified", "fused", "plan", "loops", "llvm", "llvm-opt", "asm")


@pytest.mark.parametrize("stage", STAGES)
def test_every_stage_is_text(two: bw.Program, stage: str) -> None:
    text = two.as_text(stage)
    assert isinstance(text, str) and text.strip()
    expected = {"source": "def two_outputs", "forward": "multiply %x, %y", "adjoint": ".ct", "llvm": "define", "llvm-opt": "define"}
    assert expected.get(stage, "") in text


def test_unknown_stage(two: bw.Program) -> None:
    with pytest.raises(UnsupportedError, match="adjoint"):
        two.as_text("ptx")


def test_dump_writes_a_file_per_stage(two: bw.Program, tmp_path: Path) -> None:
    written = two.dump(tmp_path / "dump")
    assert len(written) >= len(STAGES)
    assert all(path.read_text().strip() for path in written)


def test_graphs_and_analyses(two: bw.Program) -> None:
    assert [value.op.name for value in two.graph.body].count("multiply") >= 1
    assert two.adjoint.outputs
    assert two.memory_analysis()["argument_bytes"] >= 48
    assert two.cost_analysis()["flops"] > 0
    assert isinstance(two.explain(), str)


def test_programs_compile_what_is_used_only(compilations: list[str]) -> None:
    program = bw.compile(lambda x: np.sum(np.cosh(x)), X)
    assert not compilations
    program(X)
    assert len(compilations) == 1
    program.backward(X)
    program.backward(2 * X)
    assert len(compilations) == 2


def test_results_are_fresh_writable_arrays(two: bw.Program) -> None:
    first, second = (two.backward(X, Y, grad_outputs=(None, 1.0)) for _ in range(2))
    for a, b in zip(first, second, strict=True):
        assert type(a) is np.ndarray and a.flags.writeable and not np.may_share_memory(a, b)


def test_errors_share_one_base() -> None:
    raising: list[Callable[[], Any]] = [
        lambda: bw.compile(lambda x: x, X).backward(X), lambda: bw.compile(lambda x: x, X)(X[:1]), lambda: bw.grad(lambda x: x)(X)]
    for call in raising:
        with pytest.raises(BwError):
            call()


# ----- functions that assign to their arguments
def assigns(x, y):
    x[0] = y[0] * 2
    return np.sum(x * y)


def test_program_writes_back_and_its_derivatives_do_not() -> None:
    x, y = np.ones(3), np.array([3.0, 4.0, 5.0])
    program = bw.compile(assigns, x, y)
    gradients = program.backward(x, y)
    assert gradients[0].tolist() == [0.0, 4.0, 5.0] and gradients[1].tolist() == [12.0, 1.0, 1.0] and x.tolist() == [1.0, 1.0, 1.0]
    assert program(x, y) == 27.0 and x.tolist() == [6.0, 1.0, 1.0]
    x = np.ones(3)
    assert bw.compile(assigns, x, y, mutates=False)(x, y) == 27.0 and x.tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(("shape", "axis"), [((1, 2), 0), ((2, 1), 1), ((1,), 0), ((2,), ()), ((3, 2), 0), ((2, 40), 1), ((), None)], ids=str)
def test_sums_of_negative_zeros(shape, axis):
    """A sum begins with 0.0, so that it is 0.0, of one element too."""
    x = np.full(shape, -0.0)
    for function in (np.sum, np.mean):
        found = bw.jit(lambda x, function=function: function(x, axis=axis))(x)
        np.testing.assert_array_equal(np.signbit(found), np.signbit(function(x, axis=axis)))
