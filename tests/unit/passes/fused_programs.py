"""Programs of every kind, and what they are lowered to, for the tests of fusion and of memory."""

from __future__ import annotations

import numpy as np
import pytest

from bwcompiler.compiler.pipeline import derive, lower
from bwcompiler.frontend import trace
from bwcompiler.ir.contracts.fusion import FusionGroup
from bwcompiler.passes.derivatives.autodiff import INPUT_SEED

X, W = np.ones((6, 8)), np.ones((8, 5))


def network(x, w):
    hidden = np.tanh(x @ w)
    return np.sum((hidden @ hidden.T) ** 2)


def softmax(x, w):
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True), w


def recurrence(x, w):
    y = np.zeros_like(x)
    for t in range(1, 6):
        y[t] = np.sin(y[t - 1]) + x[t]
    return y * np.sum(w)


def gathers(x, w):
    return x[:, np.argsort(x[0])] * 2.0, np.cumsum(w, axis=0), np.linalg.inv(w.T @ w + np.eye(5))


PROGRAMS = [network, softmax, recurrence, gathers]
each = pytest.mark.parametrize("function", PROGRAMS, ids=lambda function: function.__name__)


def lowered(function, *arguments, gradient=True):
    graph = trace(function, arguments or (X, W)).graph
    if gradient:
        graph = derive(graph, range(len(graph.inputs) - graph.captured), [INPUT_SEED] * len(graph.outputs)).graph
    return lower(graph)


def values_of(step):
    return [member.value for member in step.members] if isinstance(step, FusionGroup) else [step.value]


def steps_of(function, *arguments, gradient=False):
    """Per step the ops of a group, or the name of a call."""
    return ops_of(lowered(function, *arguments, gradient=gradient).fused)


def ops_of(fused):
    return [[member.value.op.name for member in step.members] if isinstance(step, FusionGroup) else step.value.op.name
            for step in fused.steps]
