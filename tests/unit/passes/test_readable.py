"""How derivatives read: the adjoint graph, loops and LLVM text of a handful of functions, as golden files, and what must hold of all."""

from __future__ import annotations

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.passes.rewriting.rewriter import attribute_key
from tests.support.source import from_text

SOURCE = '''
import numpy as np
import bwcompiler as bw

@bw.custom_vjp
def clipped(x):
    return np.clip(x, -1.0, 1.0)

clipped.defvjp(lambda x: (clipped(x), None), lambda residuals, ct: (ct,))

def softmax_loss(x, target):
    shifted = x - np.max(x, axis=1, keepdims=True)
    normaliser = np.log(np.sum(np.exp(shifted), axis=1, keepdims=True))
    return -np.mean(np.sum((shifted - normaliser) * target, axis=1))

def layer(x, w, b):
    hidden = np.tanh(x @ w + b)
    return np.mean(hidden ** 2)

def layer_norm(x, scale, offset):
    centred = x - np.mean(x, axis=-1, keepdims=True)
    deviation = np.sqrt(np.mean(centred ** 2, axis=-1, keepdims=True) + 1e-5)
    out = centred / deviation * scale + offset
    return np.sum(out ** 2)

def stencil(u):
    inner = u[:-2] - 2.0 * u[1:-1] + u[2:]
    new = u[1:-1] + 0.1 * inner
    return np.sum(new ** 2)

def custom(x):
    bounded = clipped(x)
    return np.sum(bounded * x)
'''
ROW, MATRIX = np.ones(4), np.ones((6, 4))
PROGRAMS = {"softmax_loss": (MATRIX, MATRIX), "layer": (MATRIX, np.ones((4, 3)), np.ones(3)), "layer_norm": (MATRIX, ROW, ROW),
            "stencil": (np.ones(20),), "custom": (MATRIX,)}


@pytest.fixture(scope="module")
def programs():
    found = {}
    for name, arguments in PROGRAMS.items():
        found[name] = bw.compile(from_text(SOURCE, name), *arguments)
    return found


@pytest.mark.parametrize("name", PROGRAMS)
def test_adjoint(name, programs, golden):
    golden(programs[name].as_text("adjoint"), "adjoint")


@pytest.mark.parametrize("name", PROGRAMS)
def test_loops(name, programs, golden):
    golden(programs[name].as_text("loops"), "loops")


def test_llvm_names_what_it_computes(programs, golden):
    text = programs["layer_norm"].as_text("llvm")
    golden("\n".join(line for line in text.split("\n") if line.startswith((";", "define internal void @k"))) + "\n", "comments")


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_value_is_computed_twice(name, programs):
    for graph in (programs[name].adjoint, programs[name].lowered().simplified):
        computed = [(value.op, value.operands, attribute_key(value.attrs)) for value in graph.body]
        assert len(set(computed)) == len(computed)


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_reshape_is_undone(name, programs):
    for graph in (programs[name].adjoint, programs[name].lowered().simplified):
        for value in graph.body:
            assert not (value.op.name == "reshape" and any(operand.op.name == "reshape" for operand in value.operands))


def test_names_are_the_users_at_every_stage(programs):
    for name, expected in (("layer", "hidden"), ("layer_norm", "deviation"), ("stencil", "inner")):
        for stage in ("forward", "simplified", "fused", "loops"):
            assert expected in programs[name].as_text(stage), (name, stage)
    assert "hidden.ct" in programs["layer"].as_text("adjoint")
    assert "deviation" in programs["layer_norm"].as_text("adjoint") and "normaliser" in programs["softmax_loss"].as_text("loops")
