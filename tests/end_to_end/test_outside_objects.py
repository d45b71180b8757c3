"""Attributes of objects that no name leads to: items of containers, results of calls, links: they are followed like all others."""

from __future__ import annotations

import contextvars
import copy
import dataclasses
import operator
import types
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw

X = np.arange(1.0, 4.0)


class Layer:
    def __init__(self, rate: float) -> None:
        self.w, self.rate, self.seen, self.next = np.full(3, rate), rate, None, None

    @property
    def strength(self) -> float:
        return 2 * self.rate

    def apply(self, x):
        self.seen = x                              # as those who write their own derivatives keep it
        return x * self.w + 0 * self.seen

    def doubled(self):
        return 2 * self.rate


class Slotted:
    __slots__ = ("rate", "w")

    def __init__(self, rate: float) -> None:
        self.w, self.rate = np.full(3, rate), rate


class Stack:
    def __init__(self) -> None:
        self.layers = [Layer(1.5), Layer(0.5)]
        self.layers[0].next = self.layers[1]
        self.named = {"first": self.layers[0], "second": self.layers[1]}
        self.pair = tuple(self.layers)
        self.nested = [{"group": (self.layers[0], [self.layers[1]])}]

    def __iter__(self):
        return iter(self.layers)

    def __getitem__(self, k):
        return self.layers[k]

    def get(self, k):
        return self.layers[k]


stack = Stack()
slotted = [Slotted(1.5), Slotted(0.5)]


def rate_of(layer):
    return layer.rate * 1.0


def in_a_loop(x):
    for layer in stack.layers:
        x = x * layer.w + layer.rate
    return x


def by_index(x):
    for k in range(len(stack.layers)):
        x = x * stack.layers[k].w
    return x


def enumerated(x):
    for k, layer in enumerate(reversed(stack.layers)):
        x = x * layer.w + k * layer.rate
    return x


def in_a_comprehension(x):
    return sum([x * layer.rate for layer in stack.layers])


def in_a_generator(x):
    return sum(layer.rate for layer in stack.layers) * x


def by_lambda(x):
    return x * max(stack.layers, key=lambda layer: layer.rate).rate


def of_a_dict(x):
    for name, layer in stack.named.items():
        x = x * layer.w + len(name)
    return x


def of_a_tuple(x):
    first, *rest = stack.pair
    return x * first.w + rest[0].rate


def deep(x):
    for entry in stack.nested:
        first, others = entry["group"]
        x = x * first.w + sum(other.rate for other in others)
    return x


def linked(x):
    node = stack.layers[0]
    while node is not None:
        x = x * node.w
        node = node.next
    return x


def chosen(x):
    layer = stack.layers[0]
    if len(x) > 2:
        layer = stack.layers[-1]
    return x * layer.w


def from_a_method(x):
    return x * stack.get(0).w + stack.get(1).rate


def by_special_methods(x):
    for layer in stack:
        x = x * layer.rate
    return x + stack[1].rate


def passed_on(x):
    return x * sum(rate_of(layer) for layer in stack.layers)


def methods(x):
    for layer in stack.layers:
        x = layer.apply(x) * layer.strength + layer.doubled()
    return x


def slots(x):
    for layer in slotted:
        x = x * layer.w + layer.rate
    return x


class Delegate:
    """Has what another object has."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name):
        return getattr(self._inner, name)

    def __getitem__(self, name):
        return getattr(self._inner, "w" if name == 0 else name)


@dataclasses.dataclass
class Record:
    w: Any
    rate: float


one, record, GAIN = Layer(1.5), Record(np.full(3, 1.5), 1.5), 1.5
delegate = Delegate(one)


def by_computed_names(x):
    for name in ("w", "rate"):
        x = x * getattr(one, name)
    return x


def by_computed_names_with_defaults(x):
    return x * getattr(one, "".join("w"), 0.0) + getattr(one, "rate", 0.0)


def by_vars(x):
    return x * vars(one)["w"] + sum(value for name, value in one.__dict__.items() if name == "rate")


def by_unpacking(x):
    return (lambda w, rate, **rest: x * w + rate)(**vars(one))


def by_getters(x):
    return x * operator.attrgetter("w")(one)


def by_globals(x):
    return x * globals()["GA" + "IN"]


def delegated(x):
    return x * delegate.w + delegate["rate"] * delegate[0]


def by_fields(x):
    for field in dataclasses.fields(record):
        x = x * getattr(record, field.name)
    return x * dataclasses.asdict(record)["w"]


def copied(x):
    return x * copy.copy(one).w + dataclasses.replace(record, rate=2.0).w


def _change(step: float) -> None:
    global GAIN
    GAIN += step
    for layer in (*stack.layers, *slotted, one, record):
        layer.w = layer.w + step
        layer.rate += step


READERS = [in_a_loop, by_index, enumerated, in_a_comprehension, in_a_generator, by_lambda, of_a_dict, of_a_tuple, deep, linked, chosen,
           from_a_method, by_special_methods, passed_on, methods, slots, by_computed_names, by_computed_names_with_defaults, by_vars, by_unpacking,
           by_getters, by_globals, delegated, by_fields, copied]


@pytest.mark.parametrize("fun", READERS, ids=lambda fun: fun.__name__)
@pytest.mark.parametrize("autoloop", [True, False])
def test_objects_without_names(fun: Any, autoloop: bool) -> None:
    compiled, slope = bw.jit(fun, autoloop=autoloop), bw.grad(lambda x: np.sum(fun(x)), autoloop=autoloop)
    for step in (0.0, 0.25, -0.5, 0.125):
        _change(step)
        for _ in range(2):                         # the second time from native code
            np.testing.assert_allclose(compiled(X), fun(X), rtol=1e-14)
            np.testing.assert_allclose(slope(X), (fun(X + 1e-4) - fun(X - 1e-4)) / 2e-4, rtol=1e-7)


def test_variables_of_contexts_are_warned_of() -> None:
    variable = contextvars.ContextVar("variable", default=1.0)
    with pytest.warns(bw.errors.StaleValueWarning, match="variable.get is called while the function is traced only"):
        bw.jit(lambda x: x * variable.get())(X)


def test_objects_that_are_arguments() -> None:
    def total(model, x):
        for layer in model.layers:
            x = x * layer.w
        return np.sum(x)

    compiled, model = bw.jit(total), types.SimpleNamespace(layers=[Layer(1.0), Layer(2.0)])
    for rate in (2.0, 3.0, 4.0):
        model.layers[1].w = np.full(3, rate)
        np.testing.assert_allclose(compiled(model, X), total(model, X))


def test_objects_that_the_function_makes_are_no_part_of_the_outside() -> None:
    def steps(x):
        layers = [Layer(1.0), Layer(2.0)]
        for layer in layers:
            layer.rate = layer.rate + 1.0
            layer.w = layer.w * x
        return sum(layer.w * layer.rate for layer in layers)

    compiled = bw.jit(steps)
    for _ in range(2):
        np.testing.assert_allclose(compiled(X), steps(X))
    assert compiled._traces == 1


def test_attributes_of_functions() -> None:
    def fun(x):
        return x * fun.rate                                    # type: ignore[attr-defined]

    compiled = bw.jit(fun)
    for rate in (2.0, 3.0, 4.0):
        fun.rate = rate                                        # type: ignore[attr-defined]
        np.testing.assert_array_equal(compiled(X), X * rate)
    assert compiled._traces == 2


# ----- attributes that are not there yet
class Options:
    def scaled(self, x):
        return x * getattr(self, "scale", 1.0)

    def shifted(self, x):
        return x + 5 if hasattr(self, "shift") else x

    def counted(self, x):
        self.calls = getattr(self, "calls", 0) + 1
        return x * self.calls


def with_default(x):
    return x * getattr(with_default, "factor", 1.0)


def test_attributes_that_are_bound_later():
    options = Options()
    scaled, shifted, factored = bw.jit(options.scaled), bw.jit(options.shifted), bw.jit(with_default)
    assert scaled(2.0) == 2.0 and shifted(2.0) == 2.0 and factored(2.0) == 2.0
    options.scale, options.shift, with_default.factor = 3.0, True, 4.0
    assert scaled(2.0) == 6.0 and shifted(2.0) == 7.0 and factored(2.0) == 8.0
    del options.scale, with_default.factor
    assert scaled(2.0) == 2.0 and factored(2.0) == 2.0


def test_attributes_that_the_function_itself_adds():
    with pytest.warns(bw.errors.StaleValueWarning, match=r"self\.calls is assigned to"):
        bw.jit(Options().counted)(1.0)


class Attributes(dict[str, Any]):
    """Of which attributes are items, as in many configurations; there is a KeyError for one that is missing."""

    __getattr__ = dict.__getitem__
    __setattr__ = dict.__setitem__  # type: ignore[assignment]


class Asking(dict[str, Any]):
    def __getattr__(self, name: str) -> Any:
        return self[name]


class Holding:
    def __init__(self, **items: Any) -> None:
        self.__dict__["_items"] = items

    def __getattr__(self, name: str) -> Any:
        return self.__dict__["_items"][name]


class Itself(dict[str, Any]):
    def __init__(self, **items: Any) -> None:
        super().__init__(**items)
        self.__dict__ = self


@pytest.mark.parametrize("kind", [Attributes, Asking, Holding, Itself])
def test_configurations_with_items_as_attributes(kind: Any) -> None:
    x = np.array([2.0, 3.0])
    items = {"w": np.array([0.5, 1.5]), "scale": 2.0, "mode": "sum", "inner": kind(k=3.0)}
    config = kind(**items)

    def total(config: Any, x: Any) -> Any:
        return np.sum(config.w * x) * config.scale * config.inner.k if config.mode == "sum" else np.mean(x)

    argument, outside = bw.jit(total), bw.jit(lambda x: total(config, x))
    gradient = bw.grad(total, argnums=1)
    held = config._items if kind is Holding else config
    for change in ({}, {"scale": 5.0}, {"w": np.array([1.0, -1.0])}, {"mode": "mean"}, {"mode": "sum", "inner": kind(k=4.0)}, {"more": 1}):
        held.update(change)
        for found in (argument(config, x), outside(x), argument(kind(**held), x)):
            np.testing.assert_allclose(found, total(config, x))
        steps = [(total(config, x + h) - total(config, x - h)) / 2e-4 for h in 1e-4 * np.eye(2)]
        np.testing.assert_allclose(gradient(config, x), steps, rtol=1e-8)
    held["w"][0] = 7.0
    np.testing.assert_allclose([argument(config, x), outside(x)], [total(config, x)] * 2)
