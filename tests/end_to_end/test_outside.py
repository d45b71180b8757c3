"""Compiled functions follow what they read from outside of their arguments, as plain Python does."""

from __future__ import annotations

import argparse
import array
import collections
import ctypes
import types
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw

X = np.arange(1.0, 4.0)

RATE = 0.5
TABLE = np.ones(3)
OPTIONS = {"power": 2, "names": ["a", "b"]}
PROXIED = {"a": 1.0}
settings = types.ModuleType("settings")
settings.gain = 3.0  # type: ignore[attr-defined]


def helper(x: Any) -> Any:
    return RATE * x


def twice(x: Any) -> Any:
    return 2 * helper(x)


class Layer:
    bias = 1.0

    def __init__(self, w: Any) -> None:
        self.w = w

    def __call__(self, x: Any) -> Any:
        return self.w * x + self.bias


class Model:
    def __init__(self) -> None:
        self.l2 = 0.1
        self.layers = [Layer(np.full(3, 2.0)), Layer(np.full(3, 3.0))]
        self.options = {"scale": 1.0, "mode": "sum"}
        self._gain = 1.0

    @property
    def gain(self) -> float:
        return 2 * self._gain

    def reduce(self, x: Any) -> Any:
        return np.sum(x) if self.options["mode"] == "sum" else np.mean(x)

    def loss(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return self.reduce(x) * self.options["scale"] * self.gain + self.l2


def follows(function: Any, compiled: Any, *args: Any) -> bool:
    return bool(np.allclose(compiled(*args), function(*args), rtol=1e-12)) and bool(
        np.allclose(compiled(*args), function(*args), rtol=1e-12))      # the second time from native code


# ----- kinds of reads
def test_globals_of_the_function_and_of_its_helpers(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = bw.jit(twice)
    assert follows(twice, compiled, X)
    monkeypatch.setitem(globals(), "RATE", 0.75)
    assert follows(twice, compiled, X)
    monkeypatch.setitem(globals(), "helper", lambda x: -x)
    assert follows(twice, compiled, X)


def test_variables_of_enclosing_functions() -> None:
    w, n, f = np.ones(3), 2, np.sin

    def fun(x: Any) -> Any:
        for _ in range(n):
            x = f(x * w)
        return x

    compiled = bw.jit(fun)
    assert follows(fun, compiled, X)
    w = np.full(3, 2.0)
    assert follows(fun, compiled, X)
    n = 3
    assert follows(fun, compiled, X)
    f = np.cos
    assert follows(fun, compiled, X)


MODEL_CHANGES = {
    "number": lambda model: setattr(model, "l2", 100),
    "array": lambda model: setattr(model.layers[0], "w", np.full(3, -1.0)),
    "in place": lambda model: model.layers[1].w.__imul__(2),
    "layer": lambda model: model.layers.__setitem__(1, Layer(np.zeros(3))),
    "more layers": lambda model: model.layers.append(Layer(np.ones(3))),
    "string": lambda model: model.options.update(mode="mean"),
    "entry": lambda model: model.options.update(scale=0.25),
    "new dict": lambda model: setattr(model, "options", {"scale": 4.0, "mode": "sum"}),
    "class attribute": lambda model: setattr(Layer, "bias", 7.0),
    "own attribute": lambda model: setattr(model.layers[0], "bias", -7.0),
    "behind a property": lambda model: setattr(model, "_gain", 5.0),
    "method": lambda model: setattr(Model, "reduce", lambda self, x: 3 * np.sum(x)),
}


@pytest.mark.parametrize("change", MODEL_CHANGES)
@pytest.mark.parametrize("derived", [False, True], ids=["value", "gradient"])
def test_attributes(change: str, derived: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Layer, "bias", 1.0)
    monkeypatch.setattr(Model, "reduce", Model.reduce)
    model = Model()

    def plain(x: Any) -> Any:
        if not derived:
            return model.loss(x)
        return np.array([model.loss(x + h) - model.loss(x - h) for h in 1e-3 * np.eye(3)]) / 2e-3     # exact: it is linear

    compiled = bw.grad(model.loss) if derived else bw.jit(model.loss)
    assert np.allclose(compiled(X), plain(X), rtol=1e-7)
    MODEL_CHANGES[change](model)
    assert np.allclose(compiled(X), plain(X), rtol=1e-7)
    assert np.allclose(compiled(X), plain(X), rtol=1e-7)


class Table(dict[str, float]):
    """A class of the user's whose items are a dict's."""


class Slotted:
    __slots__ = ("rate",)


@pytest.mark.parametrize("make", [types.SimpleNamespace, argparse.Namespace, Slotted, type("Own", (), {})])
def test_attributes_of_namespaces(make: Any) -> None:
    options = make()
    options.rate = 2.0
    functions = [lambda x: x * options.rate, lambda x: x * getattr(options, "rate"), lambda x: x * (options.rate if x.ndim else 0)]  # noqa: B009
    compiled = [bw.jit(function) for function in functions]
    for rate in (2.0, 3.0, 5, 7.0):
        options.rate = rate
        assert all(follows(function, program, X) for function, program in zip(functions, compiled, strict=True))


@pytest.mark.parametrize("make", [dict, collections.OrderedDict, lambda: collections.defaultdict(float), collections.Counter, Table])
def test_items_of_other_dicts(make: Any) -> None:
    table = make()
    table["rate"] = 2.0
    functions = [lambda x: x * table["rate"], lambda x: x * table.get("rate"), lambda x: x * sum(table[key] for key in table)]
    compiled = [bw.jit(function) for function in functions]
    for rate in (2.0, 3.0, 5, 7.0):
        table["rate"] = rate
        assert all(follows(function, program, X) for function, program in zip(functions, compiled, strict=True))
    table["more"] = 1.0
    assert all(follows(function, program, X) for function, program in zip(functions, compiled, strict=True))


@pytest.mark.parametrize("make", [dict, collections.OrderedDict, lambda: collections.defaultdict(float), collections.Counter, Table])
def test_order_of_items(make: Any) -> None:
    table = make()
    table.update(first=2.0, second=3.0)
    functions = [lambda x: x * next(iter(table.values())), lambda x: sum((k + 1) * x * table[key] for k, key in enumerate(table))]
    compiled = [bw.jit(function) for function in functions]
    for _ in range(3):
        assert all(follows(function, program, X) for function, program in zip(functions, compiled, strict=True))
        table["first"] = table.pop("first")                    # moves it to the end
        assert all(follows(function, program, X) for function, program in zip(functions, compiled, strict=True))
        if isinstance(table, collections.OrderedDict):
            table.move_to_end("second")


def test_nested_namespaces() -> None:
    options = types.SimpleNamespace(layers=[types.SimpleNamespace(rate=2.0), collections.OrderedDict(rate=3.0)])
    function = lambda x: x * options.layers[0].rate + options.layers[1]["rate"]
    compiled = bw.jit(function)
    assert follows(function, compiled, X)
    options.layers[0].rate = 4.0
    assert follows(function, compiled, X)
    options.layers[1]["rate"] = 5.0
    assert follows(function, compiled, X)
    options.layers = options.layers[:1] + [{"rate": 6.0}]
    assert follows(function, compiled, X)


def test_items_of_containers(monkeypatch: pytest.MonkeyPatch) -> None:
    def fun(x: Any) -> Any:
        return x ** OPTIONS["power"] * len(OPTIONS["names"])          # type: ignore[operator, arg-type]

    compiled = bw.jit(fun)
    assert follows(fun, compiled, X)
    monkeypatch.setitem(OPTIONS, "power", 3)
    assert follows(fun, compiled, X)
    monkeypatch.setitem(OPTIONS, "names", ["a"])
    assert follows(fun, compiled, X)


class Counts(collections.UserDict[str, float]):
    pass


@pytest.mark.parametrize(("container", "read", "change"), [
    (collections.deque([1.0, 2.0]), lambda c: c[0] + len(c), lambda c: c.appendleft(5.0)),
    (collections.deque([1.0, 2.0]), sum, lambda c: c.rotate()),
    (collections.UserDict(a=1.0), lambda c: c["a"], lambda c: c.update(a=3.0)),
    (Counts(a=1.0), lambda c: c.get("a", 0.0), lambda c: c.update(a=3.0)),
    (collections.ChainMap({"b": 2.0}, {"a": 1.0}), lambda c: c["a"], lambda c: c.maps[1].update(a=3.0)),
    (collections.ChainMap({"b": 2.0}, {"a": 1.0}), lambda c: c["a"], lambda c: c.update(a=3.0)),
    (collections.UserList([1.0, 2.0]), lambda c: c[1], lambda c: c.__setitem__(1, 7.0)),
    ({1.0, 2.0}, sum, lambda c: c.add(3.0)),
    ({1.0, 2.0}, lambda c: 1.0 if 3.0 in c else 2.0, lambda c: c.add(3.0)),
    ({0: 1.0, 1: 5.0}, lambda c: c[0], lambda c: c.update({0: 3.0})),
    ({(0, 1): 1.0}, lambda c: sum(value * i for (_, i), value in c.items()), lambda c: c.update({(0, 2): 3.0})),
    (array.array("d", [1.0, 2.0]), lambda c: c[0], lambda c: c.__setitem__(0, 4.0)),
    (bytearray(b"ab"), lambda c: c[0], lambda c: c.__setitem__(0, 7)),
    ([float(k) for k in range(1000)], sum, lambda c: c.__setitem__(500, 4.0)),
    ([{"w": [1.0, {"v": np.ones(2)}]}], lambda c: c[0]["w"][1]["v"][0], lambda c: c[0]["w"][1]["v"].__setitem__(0, 4.0)),
], ids=lambda part: type(part).__name__)
def test_changes_of_containers(container: Any, read: Any, change: Any) -> None:
    holder = types.SimpleNamespace(kept=container)
    plain, attribute = bw.jit(lambda x: x * read(container)), bw.jit(lambda x: x * read(holder.kept))
    for function in (plain, attribute):
        np.testing.assert_array_equal(function(X), X * read(container))
    before = read(container)
    change(container)
    assert read(container) != before or type(container) is collections.deque
    for function in (plain, attribute):
        np.testing.assert_array_equal(function(X), X * read(container))


@pytest.mark.parametrize(("container", "read", "change"), [
    ({1.0, 2.0}, sum, lambda c: c.add(3.0)),
    (array.array("d", [1.0, 2.0]), np.sum, lambda c: c.__setitem__(0, 4.0)),
    (array.array("d", [1.0] * 1000), np.sum, lambda c: c.__setitem__(700, 4.0)),
    (memoryview(bytearray(16)).cast("d"), np.sum, lambda c: c.__setitem__(0, 4.0)),
    (memoryview(np.arange(8.0))[::2], np.sum, lambda c: c.__setitem__(1, 9.0)),
    ((ctypes.c_double * 2)(1.0, 2.0), lambda c: np.sum(c) + c[0], lambda c: c.__setitem__(0, 4.0)),
    (bytearray(b"ab"), lambda c: np.frombuffer(c, np.uint8).sum(), lambda c: c.__setitem__(0, 7)),
    (types.MappingProxyType(PROXIED), lambda c: c["a"], lambda c: PROXIED.update(a=5.0)),
    (collections.UserDict(a=1.0), lambda c: c["a"], lambda c: c.update(a=3.0)),
], ids=lambda part: type(part).__name__)
def test_changes_of_containers_that_are_compiled_in(container: Any, read: Any, change: Any) -> None:
    """Given as arguments, and read from outside."""
    argument, outside = bw.jit(lambda x, c: x * read(c)), bw.jit(lambda x: x * read(container))
    np.testing.assert_array_equal(argument(X, container), X * read(container))
    np.testing.assert_array_equal(outside(X), X * read(container))
    before = read(container)
    change(container)
    assert read(container) != before
    np.testing.assert_array_equal(argument(X, container), X * read(container))
    np.testing.assert_array_equal(outside(X), X * read(container))


def test_modules_made_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = bw.jit(lambda x: x * settings.gain)                    # type: ignore[attr-defined]
    assert compiled(X).tolist() == (3 * X).tolist()
    monkeypatch.setattr(settings, "gain", 4.0)
    assert compiled(X).tolist() == (4 * X).tolist()


def test_modules_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "__file__", __file__, raising=False)
    compiled = bw.jit(lambda x: x * settings.gain)                    # type: ignore[attr-defined]
    assert compiled(X).tolist() == (3 * X).tolist()
    monkeypatch.setattr(settings, "gain", 4.0)
    assert compiled(X).tolist() == (4 * X).tolist()


def test_objects_given_as_arguments() -> None:
    layer = Layer(np.ones(3))
    gradient = bw.grad(lambda x, layer: np.sum(layer(x) ** 2))
    assert gradient(X, layer).tolist() == (2 * (X + 1)).tolist()
    layer.w = np.full(3, 2.0)
    np.testing.assert_allclose(gradient(X, layer), 4 * (2 * X + 1))


# ----- numbers that change become operands
def test_a_number_that_changes_is_compiled_twice_at_most(compilations: list[str]) -> None:
    model = Model()
    gradient = bw.grad(lambda x: np.sum(x ** 2) * model.l2)
    for rate in (0.1, 0.2, 0.3, 0.4, 0.5):
        model.l2 = rate
        np.testing.assert_allclose(gradient(X), 2 * X * rate)
    assert len(compilations) == 2
    assert gradient._traces == 2


def test_a_number_that_has_to_be_known_is_traced_again() -> None:
    steps = 1

    def fun(x: Any) -> Any:
        for _ in range(steps):
            x = 2 * x
        return x

    compiled = bw.jit(fun)
    for count in (1, 3, 2, 1, 3):
        steps = count
        assert follows(fun, compiled, X)
    assert compiled._traces <= 5


def test_numbers_come_back_where_they_were() -> None:
    model = Model()
    compiled = bw.jit(lambda x: x * model.l2)
    for rate in (0.1, 0.2, 0.3):
        model.l2 = rate
        compiled(X)
        assert model.l2 == rate and type(model.l2) is float


def test_a_trace_that_fails_leaves_numbers_as_they_were() -> None:
    rate, broken = 1.0, False

    def fun(x: Any) -> Any:
        if broken:
            raise RuntimeError("broken")
        return x * rate

    compiled = bw.jit(fun)
    compiled(X)
    rate, broken = 2.0, True
    with pytest.raises(RuntimeError, match="broken"):
        compiled(X)
    broken = False
    assert rate == 2.0 and compiled(X).tolist() == (2 * X).tolist()


# ----- arrays whose contents change
WEIGHTS, ORDER = np.array([1.0, 2.0, 3.0]), np.array([2, 0, 1])


def _element(x):
    return WEIGHTS[0] * x


def _elements(x):
    total = 0.0
    for weight in WEIGHTS:
        total += weight * x
    return total


def _reduced(x):
    return WEIGHTS.sum() * x + np.linalg.norm(WEIGHTS) + float(WEIGHTS[1])


def _tested(x):
    return x * 2 if WEIGHTS[0] + 2 * WEIGHTS[1] > 6.0 else x * 3


def _of_a_view(x):
    return x * np.sqrt(WEIGHTS[1:]).max() + np.dot(WEIGHTS, WEIGHTS)


@pytest.mark.parametrize("fun", [_element, _elements, _reduced, _tested, _of_a_view], ids=lambda fun: fun.__name__)
def test_contents_that_change_are_read_by_the_program(fun) -> None:
    """After the first change: nothing is traced again for another."""
    compiled, slope = bw.jit(fun), bw.grad(lambda x: np.sum(fun(x)))
    traces = []
    for k in range(6):
        WEIGHTS[:] = [1.0 + k, 2.0 * k, 3.0]
        np.testing.assert_allclose(compiled(1.5), fun(1.5), rtol=1e-14)
        np.testing.assert_allclose(slope(1.5), (fun(1.5001) - fun(1.4999)) / 2e-4, rtol=1e-7)
        traces.append(compiled._traces)
    assert traces[-1] == traces[1] == 2


def _sizes(x):
    return np.ones(int(ORDER[0])) * x


def _assigned_to(x):
    WEIGHTS[0] = 5.0
    return WEIGHTS[0] * x + WEIGHTS[1]


@pytest.mark.parametrize("fun", [_sizes, _assigned_to], ids=lambda fun: fun.__name__)
def test_contents_that_must_be_known_are_traced_again(fun) -> None:
    compiled = bw.jit(fun)
    for k in range(4):
        WEIGHTS[:], ORDER[:] = [1.0 + k, 2.0 * k, 3.0], [k + 1, 0, 1]
        np.testing.assert_allclose(compiled(1.5), fun(1.5), rtol=1e-14)


def test_masked_arrays() -> None:
    masked = np.ma.masked_array([1.0, 2.0, 3.0], mask=[0, 1, 0])
    fun = lambda x: x * masked.mean()
    compiled = bw.jit(fun)
    for k in range(4):
        assert compiled(2.0) == fun(2.0)
        masked[0] = 5.0 + k
        if k == 1:
            masked.mask[2] = True


def test_code_and_defaults_that_are_put_into_a_function() -> None:
    """As IPython's autoreload does with functions of a module that was edited."""
    def inner(x: Any, power: int = 2, *, gain: float = 1.0) -> Any:
        return gain * x ** power

    def outer(x: Any) -> Any:
        return inner(x) + 1.0

    def edited(x: Any, power: int = 2, *, gain: float = 1.0) -> Any:
        return -gain * x ** power

    outer_edited: Any = lambda x: inner(x) + 2.0
    value, slope, of_method = bw.jit(outer), bw.grad(outer), bw.jit(types.MethodType(inner, 3.0))
    assert (value(3.0), slope(3.0), of_method()) == (10.0, 6.0, 9.0)
    assert "is read at every call" not in value.explain(3.0)           # nobody wrote that down
    inner.__defaults__ = (3,)
    assert (value(3.0), slope(3.0), of_method()) == (28.0, 27.0, 27.0)
    inner.__kwdefaults__ = {"gain": 2.0}
    assert (value(3.0), slope(3.0), of_method()) == (55.0, 54.0, 54.0)
    inner.__code__ = edited.__code__
    assert (value(3.0), slope(3.0), of_method()) == (-53.0, -54.0, -54.0)
    outer.__code__ = outer_edited.__code__
    assert (value(3.0), slope(3.0)) == (-52.0, -54.0)
