"""Objects outside of a function that are replaced as wholes: traced twice, and then whatever stands in their place is seen."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pytest

import bwcompiler as bw


class Pair(NamedTuple):
    weights: np.ndarray
    offset: float


@dataclass(frozen=True)
class Settings:
    weights: np.ndarray
    offset: float
    name: str = "square"


class Model:
    def __init__(self, weights, offset, name="square"):
        self.weights, self.offset, self.name = weights, offset, name

    def apply(self, x):
        found = x * self.weights + self.offset
        return found ** 2 if self.name == "square" else found


class Net:
    def __init__(self, layers):
        self.layers = layers


class Trainer:
    def __init__(self, model):
        self.model = model

    def loss(self, x):
        traces.append(1)
        return np.sum(self.model.apply(x))


traces: list[int] = []
X = np.arange(3.0)


def check(program, step, transforms=(bw.jit, bw.grad, bw.hessian), most=2):
    """Each transform of a program sees what step() does, and is traced no more than so often."""
    for transform in transforms:
        compiled, expected = transform(program), []
        traces.clear()
        for _ in range(6):
            found = compiled(X)
            number = len(traces)
            direct = program(X) if transform is bw.jit else transform(lambda x: program(x))(X)
            np.testing.assert_allclose(found, direct, rtol=1e-12)
            del traces[number:]
            expected.append(number)
            step()
        assert len(traces) <= most, (transform, expected)


def of_fields(x, found):
    traces.append(1)
    return np.sum((x * found.weights + found.offset) ** 2)


def test_named_tuples_and_dataclasses():
    state = {"pair": Pair(np.ones(3), 0.5)}
    pair, settings = Pair(np.ones(3), 0.5), Settings(np.ones(3), 0.5)

    def step():
        nonlocal pair, settings
        pair = pair._replace(weights=pair.weights * 1.1, offset=pair.offset + 0.1)
        settings = replace(settings, weights=settings.weights * 1.1)
        state["pair"] = state["pair"]._replace(offset=state["pair"].offset + 1)
    for program in (lambda x: of_fields(x, pair), lambda x: of_fields(x, settings), lambda x: of_fields(x, state["pair"])):
        check(program, step)


def test_models():
    trainer = Trainer(Model(np.ones(3), 0.5))
    net = Net([Model(np.ones(3), 0.5), Model(2 * np.ones(3), 0.1)])

    def through_layers(x):
        traces.append(1)
        for layer in net.layers:
            x = layer.apply(x)
        return np.sum(x)

    def step():
        trainer.model = Model(trainer.model.weights * 1.1, trainer.model.offset)
        net.layers = [Model(layer.weights * 0.9, layer.offset) for layer in net.layers]
    check(trainer.loss, step)
    check(through_layers, step)


def test_other_things_in_them_are_seen():
    trainer = Trainer(Model(np.ones(3), 0.5))
    compiled = bw.jit(trainer.loss)
    for number in range(9):
        trainer.model = Model(trainer.model.weights * 1.1, 0.5 + number, "square" if number % 3 else "line")
        if number == 5:
            trainer.model.weights = np.ones(1)
        if number == 7:
            trainer.model.apply = lambda x: x - 1.0
        assert compiled(X) == pytest.approx(trainer.loss(X), rel=1e-12)
    net = Net([Model(np.ones(3), 0.5)])
    compiled = bw.jit(lambda x: sum([np.sum(layer.apply(x)) for layer in net.layers]))
    for number in range(6):
        net.layers = [Model(layer.weights * 1.1, 0.5) for layer in net.layers] + [Model(np.ones(3), 1.0)] * (number % 2)
        assert compiled(X) == pytest.approx(sum([np.sum(layer.apply(X)) for layer in net.layers]), rel=1e-12)


def test_objects_that_are_found_in_two_ways():
    class Holder:
        pass
    shared, holder, other = Model(np.ones(3), 0.5), Holder(), Holder()
    holder.model = other.model = shared

    def program(x):
        return np.sum(holder.model.apply(x)) + 10 * np.sum(other.model.apply(x)) + 100 * np.sum(shared.apply(x))
    compiled = bw.jit(program)
    for number in range(10):
        if number % 2:
            holder.model = Model(holder.model.weights * 1.1, 0.5)
        if number % 3 == 0:
            other.model = holder.model
        if number == 7:
            shared = Model(np.zeros(3), 2.0)
        shared.offset += 0.1
        assert compiled(X) == pytest.approx(program(X), rel=1e-12)


def test_objects_that_hold_themselves_or_what_the_method_is_of():
    trainer = Trainer(Model(np.ones(3), 0.5))
    trainer.scale = 2.0
    trainer.model.trainer = trainer

    def loss(self, x):
        return self.scale * np.sum(self.model.apply(x)) * self.model.trainer.scale
    Trainer.scaled = loss
    compiled = bw.jit(trainer.scaled)
    for number in range(8):
        trainer.model = Model(trainer.model.weights * 1.1, 0.5)
        trainer.model.trainer = trainer if number % 2 else Trainer(trainer.model)
        trainer.model.trainer.scale = 2.0 + number
        assert compiled(X) == pytest.approx(trainer.scaled(X), rel=1e-12)


def test_items_of_lists_and_dictionaries():
    nets = {"a": Net([Model(np.ones(3), 0.5), Model(np.ones(3), 0.2)])}

    def program(x):
        traces.append(1)
        return np.sum(nets["a"].layers[-1].apply(x)) + np.sum(nets["a"].layers[0].weights)

    def step():
        nets["a"] = Net([Model(layer.weights * 1.1, layer.offset + 0.1) for layer in nets["a"].layers])
    check(program, step)
