"""`+=` of objects whose class has no `__iadd__`: the name or attribute is bound to what `+` makes, and the object stays as it is."""

import numpy as np
import pytest

import bwcompiler as bw


class Vector:
    def __init__(self, x, y):
        self.x, self.y = x, y

    def __add__(self, other):
        if self.x > 1.0:                           # decided by data, in an operator
            return Vector(self.x + 0.9 * other.x, self.y + other.y)
        return Vector(self.x + other.x, self.y + other.y)

    def __mul__(self, scale):
        return Vector(self.x * scale, self.y * scale)

    __rmul__ = __mul__

    def __or__(self, other):
        return Vector(self.x, other.y)

    def __matmul__(self, other):
        return Vector(self.x * other.x, self.y * other.y)


class Changed(Vector):
    def __iadd__(self, other):
        self.x = self.x + other.x
        return self


class Body:
    def __init__(self, position, velocity):
        self.position, self.velocity = position, velocity
        self.first = position


def of_attributes(x):
    bodies = [Body(Vector(x, k * x), Vector(0.0 * x, x)) for k in range(3)]
    for _ in range(20):
        for body in bodies:
            body.velocity += -0.1 * body.position
            body.position += 0.1 * body.velocity
    return [(body.position.x, body.position.y, body.first.x) for body in bodies]


def of_names(x):
    v = first = Vector(x, 2.0 * x)
    for _ in range(20):
        v += 0.1 * v
        v |= Vector(x, 0.5)
        v @= Vector(1.01, 1.1)
    return v.x, v.y, first.x


def of_items(x):
    held = {"v": Vector(x, 2.0 * x)}
    first = held["v"]
    for _ in range(20):
        held["v"] += 0.1 * held["v"]
    return held["v"].x, first.x


def of_objects_that_change(x):
    v = first = Changed(x, 2.0 * x)
    for _ in range(20):
        v += Vector(0.1 * v.x, 0.0)
    return v.x, first.x


@pytest.mark.parametrize("program", [of_attributes, of_names, of_items, of_objects_that_change])
def test_program(program):
    for x in (0.3, -0.4, 1.2):
        np.testing.assert_allclose(bw.jit(program)(x), program(x), rtol=1e-14)
    bw.check_grads(lambda x: np.sum(np.array(program(x))), (0.3,), order=1)


@pytest.mark.parametrize("program", [of_attributes, of_names, of_items])
def test_captured(program):
    assert "unrolled" not in bw.jit(program).explain(0.3)
