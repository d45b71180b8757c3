"""Dataclasses as arguments and results: calls go to native code, and do what the first call did in Python."""

from __future__ import annotations

import dataclasses
import enum
import functools
import warnings
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from tests.end_to_end.test_call_forms import W, X, assert_native


@dataclasses.dataclass
class Layer:
    w: Any
    b: Any = 0.0

    def of(self, x: Any) -> Any:
        return self.w * x + self.b


@dataclasses.dataclass
class Named(Layer):
    name: str = "last"

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise TypeError("made by the constructor")


@dataclasses.dataclass(frozen=True)
class Frozen:
    w: Any
    b: Any
    of = Layer.of


@dataclasses.dataclass(slots=True)
class Slots:
    w: Any
    b: Any

    def of(self, x: Any) -> Any:
        return self.w * x + self.b


@dataclasses.dataclass(frozen=True, slots=True)
class FrozenSlots:
    w: Any
    b: Any

    def of(self, x: Any) -> Any:
        return self.w * x + self.b


CLASSES: list[Any] = [Layer, Named, Frozen, Slots, FrozenSlots]


def loss(layer: Any, x: Any) -> Any:
    return np.sum(layer.of(x) ** 2)


@pytest.mark.parametrize("cls", CLASSES)
def test_arguments_gradients_and_results(cls: Any) -> None:
    compiled, gradient, half = bw.jit(loss), bw.grad(loss), bw.jit(lambda layer, x: cls(layer.w / 2 + 0 * x, layer.b))
    for layer in (cls(W, 1.0), cls(W, X), cls(w=X[:3], b=np.float64(2.0))):
        x = np.ones(layer.w.shape)
        np.testing.assert_allclose(assert_native(compiled, layer, x), loss(layer, x))
        found = assert_native(gradient, layer, x)
        assert type(found) is cls
        np.testing.assert_allclose(found.w, 2 * layer.of(x) * x)
        np.testing.assert_allclose(found.b, 2 * layer.of(x) if np.ndim(layer.b) else np.sum(2 * layer.of(x)))
        result = assert_native(half, layer, x)
        assert type(result) is cls
        np.testing.assert_array_equal(result.w, layer.w / 2)


def test_in_containers_and_in_each_other() -> None:
    def total(net: Any) -> Any:
        return np.sum(net.w["first"].of(net.w["rest"][1].w)) * net.b[0]

    net = Layer({"first": Slots(W, 1.0), "rest": (None, Frozen(X, W))}, [2.0])
    np.testing.assert_allclose(assert_native(bw.jit(total), net), total(net))
    found = assert_native(bw.grad(total), net)
    assert (type(found), type(found.w["first"]), type(found.w["rest"][1])) == (Layer, Slots, Frozen) and found.w["rest"][0] is None
    np.testing.assert_allclose(found.w["first"].w, 2.0 * X)
    np.testing.assert_allclose(found.w["rest"][1].w, 2.0 * W)
    layers = [Layer(W, float(k)) for k in range(4)]
    every = lambda layers, x: np.sum(functools.reduce(lambda y, layer: layer.of(y), layers, x))
    np.testing.assert_allclose(assert_native(bw.jit(every), layers, X), every(layers, X))
    assert [type(one) for one in assert_native(bw.grad(every), layers, X)] == [Layer] * 4


@dataclasses.dataclass(eq=False)
class Config:
    rate: float


def test_objects_that_stand_for_arguments_are_not_read_from_outside() -> None:
    """What they hold is known; compile-time values are the user's own objects, which may change."""
    for transform in (bw.jit, bw.grad):
        compiled: Any = transform(lambda outer, x: np.sum(outer.w.b * x + outer.w.w) + getattr(outer.b, "more", 0.0))
        compiled(Layer(Slots(W, 1.0), Layer(1.0)), X)
        [form] = compiled._forms
        assert [read for read in form.reads if type(read.base) in CLASSES] == []
    config = Config(2.0)
    declared, field = bw.jit(lambda config, x: config.rate * x, static_argnums=0), bw.jit(lambda model, x: model.power.rate * x)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")            # an error would only have the function traced again
        for value in (2.0, 3.0, 4.0):
            config.rate = value
            np.testing.assert_array_equal(declared(config, X), value * X)
            np.testing.assert_array_equal(field(Model(X, config), X), value * X)
    assert not told                                # handles stand in them while the function is traced


def test_attributes_that_come_and_go() -> None:
    compiled, layer = bw.jit(lambda layer: np.sum(layer.w) + getattr(layer, "more", 0.5) + layer.b), Layer(W, 1.0)
    expected = lambda: np.sum(layer.w) + getattr(layer, "more", 0.5) + layer.b
    for _ in range(3):
        assert compiled(layer) == pytest.approx(expected())
        layer.more = 2.0                           # type: ignore[attr-defined]
        assert compiled(layer) == assert_native(compiled, layer) == pytest.approx(expected())
        layer.more = 3.0                           # type: ignore[attr-defined]
        assert compiled(layer) == pytest.approx(expected())
        del layer.b                                # the class has a default
        assert compiled(layer) == pytest.approx(expected())
        layer.b = 4.0
        del layer.more                             # type: ignore[attr-defined]
        assert compiled(layer) == pytest.approx(expected())
    with pytest.raises(AttributeError, match="w"):
        del layer.w
        compiled(layer)


def test_dicts_in_attributes_that_are_no_fields_have_the_order_of_their_keys() -> None:
    def first_less_second(layer: Any, x: Any) -> Any:
        first, second = layer.more.values()
        return np.sum(first * x - second * x ** 2)

    compiled = bw.jit(first_less_second)
    for items in (("b", 1.0), ("a", 5.0)), (("a", 5.0), ("b", 1.0)), (("b", 2.0), ("a", 3.0)):
        layer: Any = Layer(1.0)
        layer.more = dict(items)
        assert assert_native(compiled, layer, X) == pytest.approx(first_less_second(layer, X))


def test_texts_in_fields_are_compiled_in() -> None:
    compiled = bw.jit(lambda layer, x: np.sum(layer.of(x)) * (2.0 if layer.name == "last" else 1.0))
    for name, factor in (("last", 2.0), ("first", 1.0), ("".join(["la", "st"]), 2.0), ("first", 1.0)):
        layer = Named(W, 1.0, name)
        assert assert_native(compiled, layer, X) == pytest.approx(factor * np.sum(layer.of(X)))


@dataclasses.dataclass
class Model:
    w: Any
    power: Any = dataclasses.field(default=2, metadata={"static": True})
    activation: Any = dataclasses.field(default=np.tanh, metadata={"static": True})

    def of(self, x: Any) -> Any:
        return np.sum(self.activation(self.w * x) ** self.power)


def test_static_fields_are_compared() -> None:
    compiled, gradient = bw.jit(lambda model, x: model.of(x)), bw.grad(lambda model, x: model.of(x))
    for power, activation in ((2, np.tanh), (3, np.tanh), (3, np.sin), (2, np.tanh), (2, np.sin)):
        model = Model(W, power, activation)
        assert assert_native(compiled, model, X) == pytest.approx(model.of(X))
        found = assert_native(gradient, model, X)
        assert (type(found), found.power, found.activation) == (Model, power, activation)
        step = [Model(W + sign * 1e-5 * np.ones(8), power, activation).of(X) for sign in (1, -1)]
        assert np.sum(found.w) == pytest.approx((step[0] - step[1]) / 2e-5, rel=1e-6)


def test_static_fields_are_compared_by_type_and_value() -> None:
    scaled, inverse = bw.jit(lambda model, x: x * model.power), bw.jit(lambda model, x: x / (model.power or np.float64(model.power)))
    for power in (2, 2.0, True, 1, 1.0, 2):
        expected = np.arange(3) * power
        assert assert_native(scaled, Model(1.0, power), np.arange(3)).dtype == expected.dtype
    shape = bw.jit(lambda model, x: x * model.power[0])
    for first in (2, 2.0, 2):
        assert shape(Model(1.0, (first, 3)), np.arange(3)).dtype == (np.arange(3) * first).dtype
    with np.errstate(divide="ignore"):
        for zero in (0.0, -0.0, 0.0):
            np.testing.assert_array_equal(inverse(Model(1.0, zero), X), X / np.float64(zero))


class Mode(enum.Enum):
    SUM = 1
    MEAN = 2


@dataclasses.dataclass
class Reduction:
    x: Any
    mode: Mode = Mode.SUM
    sizes: Any = dataclasses.field(default=(2, 3), metadata={"static": True})

    def of(self) -> Any:
        return (np.sum(self.x) if self.mode is Mode.SUM else np.mean(self.x)) * self.sizes[1] + sum(vars(self).get("more", {}).values())


def test_members_of_enumerations_and_static_tuples() -> None:
    """Of all objects the function reads all names that it reads of any, as nobody knows which are there; tuples are compared by items."""
    compiled = bw.jit(lambda one: one.of() * getattr(one, "scale", 1.0))
    for mode in (Mode.SUM, Mode.MEAN, Mode.SUM):
        for size in (3, 5, 3.0):
            one: Any = Reduction(X, mode, (2, size))
            one.more = {"a": 1.0}
            assert assert_native(compiled, one) == pytest.approx(one.of())


def test_static_fields_that_can_be_changed_in_place_go_to_python() -> None:
    powers, compiled = [2], bw.jit(lambda model, x: np.sum(x ** model.power[0]) * model.w)
    for _ in range(3):
        assert compiled(Model(1.0, powers), X) == pytest.approx(np.sum(X ** 2))
    assert not compiled._forms  # type: ignore[attr-defined]


def test_classes_with_properties_and_other_ways_of_finding_attributes() -> None:
    @dataclasses.dataclass
    class Doubled:
        w: Any

        def __getattribute__(self, name: str) -> Any:
            found = object.__getattribute__(self, name)
            return 2 * found if name == "w" else found

    @dataclasses.dataclass
    class Celsius:
        kelvin: Any

        @property
        def celsius(self) -> Any:
            return self.kelvin - 273.15

    for value in (1.0, 2.0, 3.0):
        assert bw.jit(lambda temperature: temperature.celsius + 0.0)(Celsius(value)) == pytest.approx(value - 273.15)
    assert_native(bw.jit(lambda temperature: temperature.celsius + 0.0), Celsius(X))
    compiled = bw.jit(lambda one, x: one.w * x)
    for _ in range(3):
        np.testing.assert_array_equal(compiled(Doubled(W), X), bw.jit(lambda one, x: one.w * x)(Doubled(W), X))


def test_results_are_not_made_by_the_constructor() -> None:
    """Which may check what it is given: a text has no gradient."""
    found = assert_native(bw.grad(lambda layer: np.sum(layer.b ** 2)), Named(W, X))
    assert type(found) is Named and found.name is None
    np.testing.assert_array_equal(found.b, 2 * X)
    returned = assert_native(bw.jit(lambda x: (Named(x, 1.0, "text"), np.float32, x.dtype)), X)
    assert vars(returned[0]) == {"w": returned[0].w, "b": 1.0, "name": "text"} and returned[1:] == (np.float32, X.dtype)


def test_programs_and_their_derivatives() -> None:
    layer = Layer(W, X)
    program = bw.compile(loss, layer, X)
    np.testing.assert_allclose(program(layer, X), loss(layer, X))
    _, gradients = program.value_and_backward(layer, X, wrt=(0,))
    np.testing.assert_allclose(gradients[0].w, 2 * layer.of(X) * X)
    _, tangent = bw.jvp(loss, (layer, X), (Layer(np.ones(8), np.zeros(8)), np.zeros(8)))
    np.testing.assert_allclose(tangent, np.sum(2 * layer.of(X) * X))
    rows = bw.jit(bw.vmap(loss, in_axes=(None, 0)))
    np.testing.assert_allclose(assert_native(rows, layer, np.stack([X, W])), [loss(layer, X), loss(layer, W)])
