"""Lowering keeps meaning: for forward and joint graphs the kernels, run by the loop interpreter, give what the graph means,
and native code gives the same bits as the interpreter (where only + - * / and moves are used; else nearly the same).

`GOLDEN` are the functions whose value and gradients must be one sweep; their loop trees are golden files.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.ir.contracts.fusion import FusionGroup
from bwcompiler.ir.semantics.graph_interpreter import interpret
from bwcompiler.ir.texts.loop_printer import kernel_to_text
from bwcompiler.scipy import special
from tests.support.graph_strategies import run_compiled
from tests.support.lowered_programs import assert_near, lowered_steps, run_steps
from tests.support.targets import HOST, narrowest, on_each, require_agreement

Array = np.ndarray[Any, Any]


# ----- the functions
@dataclass
class Function:
    name: str
    fun: Callable[..., Any]
    arguments: tuple[Any, ...]
    exact: bool = False            # + - * / and moves only: the interpreter and native code agree in every bit
    forward_only: bool = False


def array(*shape: int, dtype: str = "f8", seed: int = 0) -> Array:
    return np.asarray(np.random.default_rng(seed + 7 * len(shape)).uniform(-2, 2, shape)).astype(dtype)


def softmax(x):
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def layer_norm(x, gamma, beta):
    d = x - np.mean(x, axis=-1, keepdims=True)
    return d / np.sqrt(np.mean(d * d, axis=-1, keepdims=True) + 1e-5) * gamma + beta


def log_sum_exp(axis):
    def log_sum_exp(x):
        m = np.max(x, axis=axis, keepdims=True)
        return np.squeeze(m, axis) + np.log(np.sum(np.exp(x - m), axis=axis))
    return log_sum_exp


def stencil(x):
    return 0.2 * (x[1:-1, 1:-1] + x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:])


def stencil_step(x):
    y = np.copy(x)
    y[1:-1, 1:-1] = stencil(x)
    return y


def strided_assignment(x, v):
    y = x * 2.0
    y[::2, 1::3] = v
    y[:, -1] += x[:, 0]
    return y


def column_center(x):
    c = np.sum(x, axis=0)
    return x - c, np.sum(c)


def batch_norm(x, gamma, beta):
    d = x - np.mean(x, axis=0)
    return d / np.sqrt(np.mean(d * d, axis=0) + 1e-5) * gamma + beta


def heat_steps(x):
    for _ in range(3):
        y = np.copy(x)
        y[1:-1] = x[1:-1] + 0.1 * (x[2:] - 2.0 * x[1:-1] + x[:-2])
        x = y
    return x


def assign_rows(x, i, v):
    y = x * 1.0
    y[i] = v
    return y


def standardise(x):
    d = x - np.mean(x)
    return d / np.sqrt(np.mean(d * d))


X, WIDE, CUBE = array(5, 7), array(3, 70), array(3, 4, 5)
FUNCTIONS = [
    Function("softmax", softmax, (X,)),
    Function("softmax_long", softmax, (WIDE,)),
    Function("softmax_f4", softmax, (array(4, 40, dtype="f4"),)),
    Function("softmax_vector", softmax, (array(9),)),
    Function("softmax_size_1", softmax, (array(4, 1),)),
    Function("softmax_empty", softmax, (np.zeros((0, 3)),)),
    Function("layer_norm", layer_norm, (X, array(7, seed=1), array(7, seed=2))),
    Function("layer_norm_cube", layer_norm, (array(2, 3, 33), array(33, seed=1), array(33, seed=2))),
    Function("softmax_short", softmax, (array(200, 10),)),
    Function("softmax_short_f4", softmax, (array(2, 130, 3, dtype="f4"),)),
    Function("layer_norm_short", layer_norm, (array(150, 7), array(7, seed=1), array(7, seed=2))),
    Function("layer_norm_short_cube", layer_norm, (array(3, 70, 5), array(5, seed=1), array(3, 1, 5, seed=2))),
    Function("softmax_windows", lambda x: np.exp(x) / np.sum(np.exp(x), axis=(2, 3), keepdims=True), (array(2, 66, 2, 3),)),
    Function("short_rows_and_totals", lambda x, w: (np.sum(np.exp(x) * w), np.sum(np.exp(x), axis=0), np.sum(np.tanh(x) * w, axis=1)),
             (array(90, 4), array(4, seed=1))),
    Function("short_elements", lambda x, w: np.exp(x * w), (array(70, 3), array(3, seed=1))),
    Function("rows_of_columns", lambda x, w: (x * np.exp(w)) @ w, (array(30, 6), array(6, seed=1))),
    Function("column_totals_of_all", lambda x: (np.sum(x / np.sum(x, axis=0)), np.sum(x * x)), (array(9, 70) + 5.0,)),
    Function("log_sum_exp_0", log_sum_exp(0), (X,)),
    Function("log_sum_exp_0_panels", log_sum_exp(0), (array(2, 1100),)),
    Function("log_sum_exp_1", log_sum_exp(1), (X,)),
    Function("stencil", stencil, (array(12, 11),), True),
    Function("stencil_small", stencil, (array(3, 4),), True),
    Function("stencil_step", stencil_step, (array(12, 40),), True),
    Function("strided_assignment", strided_assignment, (array(4, 8), array(2, 3, seed=3)), True),
    Function("reverse", lambda x: x[::-1, 2:-1] * x[:, 1:-2], (X,), True),
    Function("outer", lambda x, y: x[:, None] * y, (array(4), array(6, seed=1)), True),
    Function("concatenate", lambda x, y: np.concatenate([x, y * 2.0], axis=1), (X, array(5, 40, seed=1)), True),
    Function("concatenate_sum", lambda x, y: np.sum(np.concatenate([x, y])), (array(40), array(50, seed=1)), True),
    Function("concatenate_empty", lambda x, y: np.concatenate([x, y]) + 1.0, (array(0), array(3)), True),
    Function("stack", lambda x, y: np.stack([x, y, x * y], axis=1), (array(4), array(4, seed=1)), True),
    Function("pad", lambda x: np.pad(x, ((1, 2), (0, 9))) * 3.0, (X,), True),
    Function("pad_constant", lambda x: np.sum(np.pad(x, 3, constant_values=2.0), axis=0), (X,), True),
    Function("roll", lambda x: np.roll(x, 2, axis=1) - x, (array(3, 20),), True),
    Function("rows", lambda x: x[2] + x[0], (X,), True),
    Function("gather", lambda x, i: x[i] * 3.0, (X, np.array([2, 0, 2, -1])), True),
    Function("gather_columns", lambda x, i: x[:, i] * x[:, i], (X, np.array([[2, 0], [2, -1]])), True),
    Function("cumsum", lambda x: np.cumsum(x, axis=1) * x, (X,), True),
    Function("cumsum_rows", lambda x: np.cumsum(x, axis=0), (X,), True),
    Function("cumprod", lambda x: np.cumprod(x, axis=-1), (X,), forward_only=True),
    *[Function(f"sum_{axis}", lambda x, axis=axis: np.sum(x * x, axis=axis), (CUBE,), True)
      for axis in (None, 0, 1, 2, (0, 1), (0, 2), (1, 2))],
    Function("sum_long", np.sum, (array(5000),), True),
    Function("sum_long_f4", lambda x: np.sum(x, axis=-1), (array(2, 2200, dtype="f4"),), True),
    Function("sum_empty", lambda x: np.sum(x, axis=0) + 1.0, (np.zeros((0, 3)),), True),
    Function("mean_all_consumed", standardise, (X,)),
    Function("column_center", column_center, (X,), True),
    Function("column_center_empty", column_center, (np.zeros((4, 0)),), True),
    Function("variance", lambda x: np.var(x, axis=1), (CUBE,), True),
    Function("product", lambda x: np.prod(x, axis=1), (X,), True),
    Function("maximum", lambda x: np.max(x, axis=(0, 2)), (CUBE,), True),
    Function("argmax", lambda x: np.argmax(x, axis=1), (X,), True, forward_only=True),
    Function("scalar", lambda x, y: x * y + x / y, (array(), array(seed=1)), True),
    Function("scalar_special", lambda x: special.erf(x) + np.tanh(x), (array(),)),
    Function("size_1", lambda x: np.sum(x * 2.0, axis=1) / x[:, 0], (array(1, 1),), True),
    Function("where", lambda x: np.where(x > 0.0, np.sqrt(np.abs(x)), x), (X,)),
    Function("integers", lambda x, y: x * y + x // y, (np.arange(6), np.arange(1, 7)), True, forward_only=True),
    Function("booleans", lambda x: np.any(x > 1.0, axis=1) & np.all(x < 1.5, axis=1), (X,), True, forward_only=True),
    Function("transpose", lambda x: np.sum(x.T * 2.0, axis=0) + x[:, 0], (X,), True),
    Function("reshape", lambda x: np.sum(x.reshape(4, 3, 5), axis=1), (CUBE,), True),
    Function("shifted", lambda x: x[1:] * x[:-1], (array(40),), True),
    Function("convolve", lambda x, w: np.convolve(x, w, "valid"), (array(40), array(3)), forward_only=False),
    Function("batch_norm_panels", batch_norm, (array(5, 600), array(600), array(600, seed=2))),
    Function("softmax_middle_axis", lambda x: np.exp(x) / np.sum(np.exp(x), axis=1, keepdims=True), (array(2, 3, 40),)),
    Function("many_reductions", lambda x: (np.sum(x, 0), np.sum(x, 1), np.max(x, 1), np.sum(x)), (array(9, 40),), True),
    Function("both_axes", lambda x: x / np.sum(x, axis=1, keepdims=True) / np.sum(x, axis=0), (array(5, 40) + 3.0,)),
    Function("heat_steps", heat_steps, (array(9, 20),)),
    Function("scatter", assign_rows, (array(6, 3), np.array([1, 1, 4]), array(3, 3, seed=4)), True),
    Function("pooling", lambda x: x.reshape(4, 2, 5, 2).max(axis=(1, 3)), (array(8, 10),), True),
    Function("merged", lambda x: (x * 2.0).T.reshape(-1) * 3.0, (X,), True),
    Function("concatenate_columns", lambda x, y: np.concatenate([x, y]) - np.sum(np.concatenate([x, y]), axis=0),
             (array(3, 40), array(9, 40, seed=5)), True),
    Function("cumsum_reverse", lambda x: np.cumsum(x[:, ::-1], axis=1)[:, ::-1], (X,), True),
    Function("special", lambda x: special.erf(x) + special.gammaln(np.abs(x) + 1.0) + special.expit(x), (array(7),)),
    Function("matmul", lambda x, y: np.tanh(x @ y.T), (X, array(4, 7, seed=1))),
]


def runner_of(program: bw.Program, joint: bool) -> Any:
    if joint:
        return program.runners.joint(program.default_request(value=True))
    return program.runners.forward()


def seeds_of(program: bw.Program) -> list[Array]:
    return [array(*output.shape, dtype=output.dtype.numpy.str, seed=11 + k) for k, output in enumerate(program.traced.outputs)
            if output.dtype.is_differentiable]


PROGRAMS = [pytest.param(function, joint, id=f"{function.name}-{'joint' if joint else 'forward'}")
            for function in FUNCTIONS for joint in (False, True) if not (joint and function.forward_only)]


@pytest.mark.parametrize(("function", "joint"), PROGRAMS)
def test_loops_mean_the_graph(function, joint):
    program = bw.compile(function.fun, *function.arguments)
    runner = runner_of(program, joint)
    lowered = runner.compiled.lowered
    arguments = [np.asarray(argument) for argument in function.arguments] + (seeds_of(program) if joint else [])
    interpreted = run_steps(lowered.simplified, lowered.steps, arguments)
    expected = interpret(lowered.graph, arguments)
    native = runner.bound.call(arguments)
    for number, (found, wanted, ran) in enumerate(zip(interpreted, expected, native, strict=True)):
        assert_near(found, np.asarray(wanted), f"output {number}: loops differ from the graph")
        if function.exact:
            np.testing.assert_array_equal(np.asarray(ran), found, f"output {number}: native code differs from its loops")
        assert_near(np.asarray(ran), found, f"output {number}: native code differs from its loops")


@pytest.mark.parametrize(("function", "joint"), PROGRAMS[::4])
def test_targets_agree(function, joint):
    check_targets(function, joint)


@pytest.mark.slow
@pytest.mark.parametrize(("function", "joint"), PROGRAMS)
def test_all_targets_agree(function, joint):
    check_targets(function, joint)


def check_targets(function: Function, joint: bool) -> None:
    """Every bit where the CPU has FMA; where it has none, what is made of + - * / and moves."""
    program = bw.compile(function.fun, *function.arguments)
    graph = runner_of(program, joint).compiled.graph
    arguments = [np.asarray(argument) for argument in function.arguments] + (seeds_of(program) if joint else [])
    found = on_each(lambda: run_compiled(graph, arguments))
    require_agreement(found, function.name)
    for number, (plain, fused) in enumerate(zip(found[narrowest()], found[HOST], strict=True)):
        if function.exact:
            np.testing.assert_array_equal(plain, fused, f"output {number}: {narrowest()} and {HOST}")
        assert_near(plain, fused, f"output {number}: {narrowest()} and {HOST}")


def test_matrix_products_as_loops():
    """Those of integers, for which there is no other code."""
    x, y = np.arange(9 * 33).reshape(9, 33) % 7 - 3, np.arange(15 * 33).reshape(15, 33) % 5 - 2
    lowered = runner_of(bw.compile(lambda x, y: x @ y.T, x, y), False).compiled.lowered
    steps = lowered_steps(lowered.simplified)
    assert all(step.kernel is not None for step in steps)
    for found, wanted in zip(run_steps(lowered.simplified, steps, [x, y]), interpret(lowered.graph, [x, y]), strict=True):
        np.testing.assert_array_equal(found, wanted)


# ----- one sweep
GOLDEN = {
    "softmax": (softmax, (array(32, 8),)),
    "layer_norm": (layer_norm, (array(32, 8), array(8), array(8, seed=1))),
    "log_sum_exp_0": (log_sum_exp(0), (array(32, 8),)),
    "log_sum_exp_1": (log_sum_exp(1), (array(32, 8),)),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_value_and_gradients_are_one_sweep(name, golden):
    fun, arguments = GOLDEN[name]
    lowered = bw.compile(fun, *arguments).lowered()
    golden("\n".join(kernel_to_text(step.kernel) for step in lowered.steps), "loops")
    assert [type(step) for step in lowered.fused.steps] == [FusionGroup]
    assert len(lowered.steps) == 1


def test_stencil_adjoint_is_one_sweep(golden):
    program = bw.compile(lambda x, ct: np.sum(stencil(x) * ct), array(64, 64), array(62, 62), wrt=0)
    runner = program.runners.joint(program.default_request()._replace(seeds=("one",)))
    steps = runner.compiled.lowered.steps
    golden("\n".join(kernel_to_text(step.kernel) for step in steps), "loops")
    assert len(steps) == 1
