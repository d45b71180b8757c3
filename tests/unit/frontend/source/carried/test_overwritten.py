"""Attributes and items that every iteration of a loop binds before it reads them, and that have another shape before the loop."""

import numpy as np
import pytest

from bwcompiler.frontend.tracing.trace import trace
from tests.unit.frontend.comparing import as_python

X = np.linspace(0.3, 1.7, 20)


class Layer:
    def __init__(self, w):
        self.w = w

    def forward(self, x):
        self.x, self.y = x, np.tanh(x * self.w)
        return self.y

    def slope(self, g):
        return np.sum(g * self.x * (1 - self.y ** 2))


def kept_inputs(x):
    layer = Layer(x[0])
    layer.forward(x[:3])
    for k in range(10):
        layer.w = layer.w - 0.1 * layer.slope(layer.forward(x[k:k + 4]))
    return layer.w + np.sum(layer.x) * layer.y[1]


def batches(x):
    layer = Layer(x[0])
    for epoch in range(3):
        for start in range(0, 20, 2):
            layer.w = layer.w - 0.05 * layer.slope(layer.forward(x[start:start + 4]) - epoch)
    return layer.w + np.sum(layer.x)


def items(x):
    cache, total = {"part": x[:2]}, x[0]
    for k in range(10):
        cache["part"] = x[k:k + 4] * total
        total = 0.5 * total + np.mean(cache["part"])
    return total * np.sum(cache["part"])


def read_before(x):
    cache, total = {"part": x[:2]}, x[0]
    for k in range(10):
        total = total + np.sum(cache.get("part", 0.0)) / 10
        cache["part"] = x[k:k + 4] * total
    return total


def asked_for_its_length(x):
    layer = Layer(x[0])
    layer.forward(x[:3])
    for k in range(10):
        weight = len(layer.x) + layer.x.size
        layer.w = layer.w - 0.01 * weight * layer.slope(layer.forward(x[k:k + 4]))
    return layer.w


def asked_for_its_type(x):
    layer, total = Layer(x[0]), 0.0
    layer.forward(x[:3])
    for k in range(10):
        if isinstance(layer.x, np.ndarray) and layer.x is not None:
            total = total + x[k]
        total = total + np.sum(layer.forward(x[k:k + 4]))
    return total


def kept_by_another_name(x):
    layer = Layer(x[0])
    layer.x = layer.last = x[:3]
    total = x[0]
    for k in range(10):
        layer.last = layer.x
        layer.x = x[k:k + 4] * total
        total = np.sum(layer.last) * 0.1 + np.sum(layer.x) * 0.1
    return total + np.sum(layer.last)


@pytest.mark.parametrize("program", [kept_inputs, batches, items, read_before, asked_for_its_length, asked_for_its_type,
                                     kept_by_another_name], ids=lambda program: program.__name__)
def test_as_python(program):
    as_python(program, X, X[::-1] * 0.7)


@pytest.mark.parametrize("program", [kept_inputs, items, batches], ids=lambda program: program.__name__)
def test_are_loops(program):
    loops = [text for _, text in trace(program, (X,)).loops]
    assert any(text.startswith("one of 10" if program is not batches else "one of 9") for text in loops), loops
