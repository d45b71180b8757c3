"""Random loops that update arrays in place: their gradients are those of the same loops unrolled, bit patterns of order aside.

A program is a nest of counted loops over statements such as `a[i] = sin(a[i - 1]) * b[:i + 1].sum()`; the oracle runs it with Python's
loops (`plain_loops`), which are unrolled while tracing.  So the undo log, stacks, hoisting and pruning are tried on many shapes of bodies.
"""

from __future__ import annotations

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.frontend import trace
from bwcompiler.ir.semantics.graph_interpreter import interpret
from bwcompiler.ir.semantics.graph_verifier import verify
from tests.support import plain_loops as plain

SIZE = 5
PROGRAMS = 40
COMPILED = 8                   # of these are compiled too


def reads(rng, depth):
    """An expression of one number; i and j are indices that may be there."""
    index = rng.choice(["i", "j"] if depth > 1 else ["i"])
    array = rng.choice(["a", "b", "w"])
    return rng.choice([
        f"{array}[{index}]", f"np.sin({array}[{index} - 1])", f"np.sum({array}[:{index} + 1] * {array}[0])", f"{array}[{index}:].sum()",
        f"a[{index}] * b[{index}]", "s * 0.5", f"np.cos(b[{index}] * a[-1])", f"np.exp(-np.abs({array}[{index}]))"])


def statement(rng, depth):
    index = rng.choice(["i", "j"] if depth > 1 else ["i"])
    array = rng.choice(["a", "b"])
    value = f"{reads(rng, depth)} + 0.3 * {reads(rng, depth)}"
    return rng.choice([
        f"{array}[{index}] = {value}", f"{array}[{index}] += 0.1 * ({value})", f"{array}[{index}] *= np.tanh({value})",
        f"{array}[:{index} + 1] *= 0.9 + 0.01 * ({value})", f"{array}[{index}:] = np.sin({array}[{index}:] + 0.1 * b[{index}])",
        f"s = np.sin(s + {value})", f"{array}[{index}] = 0.5 * ({value}); {array}[{index}] = np.sin({array}[{index}])",
        f"a[{index}], b[{index}] = b[{index}], a[{index}]", f"t = {array}[{index}] * 1.0; {array}[{index}] = {value}; s = s + 0.1 * t * {array}[{index}]"])


def loop(rng, depth, name):
    """The source of one nested function and its call; `s` is carried, a and b are assigned to."""
    index = "ij"[depth - 1]
    bounds = rng.choice(["0, 5", "1, 4", "0, 3"] if depth == 1 else ["0, 5", "0, i", "i, 5", "1, 4", "0, i + 1", "2, 2"])
    lines = []
    for _ in range(rng.integers(1, 4)):
        if depth == 1 and rng.random() < 0.4:
            lines += loop(rng, 2, f"{name}_{len(lines)}")
        else:
            lines.append(statement(rng, depth))
    body = "\n".join(f"    {line}" for line in lines)
    return f"def {name}({index}, s):\n{body}\n    return s\ns = loops.fori_loop({bounds}, {name}, s)".split("\n")


def program(seed):
    rng = np.random.default_rng(seed)
    lines = [line for number in range(rng.integers(1, 3)) for line in loop(rng, 1, f"body{number}")]
    text = "def run(loops, a, b, w):\n    a, b, s = a.copy(), b.copy(), w[0] * 0.7\n" + "\n".join(f"    {line}" for line in lines)
    text += "\n    return np.sum(a * np.arange(1.0, 6.0)) + np.sum(np.sin(b)) + s\n"
    space = {"np": np}
    exec(text, space)
    return space["run"], text


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_gradients_are_those_of_unrolled_loops(seed):
    run, text = program(seed)
    args = [np.random.default_rng(100 + seed).uniform(-1, 1, SIZE) for _ in range(3)]
    found = []
    for namespace in (bw, plain):
        both = bw.value_and_grad(lambda *given, namespace=namespace: run(namespace, *given), argnums=(0, 1, 2)).fun
        traced = trace(both, args)
        verify(traced.graph)
        found.append(interpret(traced.graph, [*args, *traced.captured]))
    if seed < COMPILED:
        value, gradients = bw.value_and_grad(lambda *given: run(bw, *given), argnums=(0, 1, 2))(*args)
        found.append([np.asarray(value), *gradients])
    for one, *others in zip(*found, strict=True):
        for other in others:
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-10, err_msg=text)
