"""Checkpointed functions are computed again for their derivatives: what is kept, what is run twice, and the same bits."""

from __future__ import annotations

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler import errors
from bwcompiler.api.inside.checkpoints import parsed_bytes
from bwcompiler.compiler.pipeline import derive, split
from bwcompiler.frontend import trace
from bwcompiler.passes.derivatives.autodiff import INPUT_SEED

RNG = np.random.default_rng(5)
X = RNG.standard_normal((6, 3))
W = RNG.standard_normal((3, 3))
STEPS = RNG.standard_normal((64, 3))


def layers(wrap):
    layer = wrap(lambda h, w: np.tanh(np.sin(h) @ w))
    return lambda x, w: np.sum(layer(layer(x, w), w) ** 2)


def joint_of(fun, *args):
    traced = trace(fun, args)
    return derive(traced.graph, list(range(len(args))), [INPUT_SEED] + [None] * (len(traced.graph.outputs) - 1))


def count(fun, *args, name):
    return sum(value.op.name == name for value in joint_of(fun, *args).graph.body)


def kept(fun, *args):
    """The bytes that are handed from the forward to the adjoint program, without arguments."""
    joint = joint_of(fun, *args)
    parts = split(joint.graph, [place for place in joint.seeds if place is not None], 1)
    return sum(value.type.nbytes for value in parts.residuals if value.op.kind != "input")


def test_the_same_bits():
    plain = bw.grad(layers(lambda f: f), argnums=(0, 1))(X, W)
    for policy in (None, lambda op: op == "matmul", lambda op: True):
        again = bw.grad(layers(lambda f, policy=policy: bw.checkpoint(f, policy)), argnums=(0, 1))(X, W)
        for one, other in zip(plain, again, strict=True):
            np.testing.assert_array_equal(one, other)


def test_values_inside_are_computed_again():
    """Two layers with a product and a tanh each, once for the value and once for the derivative, which adds two products per layer."""
    plain, wrapped = layers(lambda f: f), layers(bw.checkpoint)
    assert [count(plain, X, W, name=name) for name in ("tanh", "sin", "matmul")] == [2, 2, 6]
    assert [count(wrapped, X, W, name=name) for name in ("tanh", "sin", "matmul")] == [4, 4, 8]
    products = layers(lambda f: bw.checkpoint(f, policy=lambda op: op == "matmul"))
    assert [count(products, X, W, name=name) for name in ("tanh", "sin", "matmul")] == [4, 4, 6]
    everything = layers(lambda f: bw.checkpoint(f, policy=lambda op: True))
    assert [count(everything, X, W, name=name) for name in ("tanh", "sin")] == [2, 2]


def test_only_arguments_are_kept():
    assert kept(layers(bw.checkpoint), X, W) == 2 * X.nbytes                   # of the second layer; the last result
    assert kept(layers(lambda f: f), X, W) >= 5 * X.nbytes
    deep = bw.checkpoint(lambda x: np.sin(np.exp(np.sin(x))))
    assert kept(lambda x: np.sum(deep(x)), X) == 0


def test_what_a_loop_reads_beside_nothing_that_was_computed_again_has_a_barrier():
    """Otherwise the loop would be that of the value, whose results would be kept."""
    def totals(wrap, begin, x):
        return np.sum(wrap(lambda x: bw.scan(lambda c, row: (c * np.sin(row), c), begin(x), x)[1])(x) ** 2)

    for begin in (lambda x: np.ones(3), lambda x: x[0], lambda x: np.cos(x[0])):
        fun = lambda x, begin=begin: totals(bw.checkpoint, begin, x)
        assert count(fun, STEPS, name="loop") == 3, "the value's, again, and the adjoint"
        assert kept(fun, STEPS) == STEPS.nbytes, "the results"
        np.testing.assert_array_equal(bw.grad(fun)(STEPS), bw.grad(lambda x, begin=begin: totals(lambda f: f, begin, x))(STEPS))


def test_without_a_derivative_it_is_the_function():
    wrapped = bw.checkpoint(np.sin)
    np.testing.assert_array_equal(wrapped(X), np.sin(X))
    np.testing.assert_array_equal(bw.jit(lambda x: wrapped(x))(X), np.sin(X))
    assert wrapped.__name__ == "sin"


def test_a_policy_must_be_a_function():
    with pytest.raises(TypeError, match="the policy must be a function of the name of an op, got 'dots'"):
        bw.checkpoint(np.sin, policy="dots")


def recurrence(checkpoint, reverse=False):
    def loss(xs, w):
        h, sums = bw.scan(lambda h, x: (np.tanh(h @ w + x), np.sum(np.exp(h))), np.zeros(3), xs, reverse=reverse, checkpoint=checkpoint)
        return np.sum(h) + np.sum(sums ** 2)
    return loss


def test_scans_keep_the_carry_once_per_segment():
    plain, root, eight = (kept(recurrence(how), STEPS, W) for how in (None, True, 16))
    assert root < plain / 2 and eight < plain / 2
    for how in (True, "sqrt", 1, 5, 16, 63, 64, 1000, "4KB", "1 MiB"):
        for reverse in (False, True):
            expected = bw.grad(recurrence(None, reverse), argnums=(0, 1))(STEPS, W)
            for one, other in zip(bw.grad(recurrence(how, reverse), argnums=(0, 1))(STEPS, W), expected, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-13)


def test_a_size_decides_how_much_runs_again():
    plain = kept(recurrence(None), STEPS, W)
    assert kept(recurrence("1MB"), STEPS, W) == plain
    assert kept(recurrence("2kB"), STEPS, W) < plain
    with pytest.raises(errors.CompileError, match=r"test_checkpoint.py:\d+: .*\n  scan: checkpoint: 100 bytes are not enough: \d+ are needed"):
        trace(recurrence("100B"), (STEPS, W))


@pytest.mark.parametrize("text, expected", [("64MB", 64_000_000), ("1.5 KiB", 1536), ("7b", 7), ("2gib", 2 << 30)])
def test_sizes(text, expected):
    assert parsed_bytes(text) == expected


@pytest.mark.parametrize("how, message", [
    ("many", "is neither True, 'sqrt', a number of steps per segment, nor a size such as '64MB'"), (0, "a segment has at least one iteration"),
    (1.5, "is neither True")])
def test_segments_that_make_no_sense(how, message):
    with pytest.raises(ValueError, match=message):
        trace(recurrence(how), (STEPS, W))


def test_errors_are_those_of_scan():
    with pytest.raises(errors.ShapeError, match="says 4 iterations, but"):
        trace(lambda x: bw.scan(lambda c, v: (c, v), 0.0, {"a": x, "b": x[1:]}, checkpoint=True), (np.ones(4),))
