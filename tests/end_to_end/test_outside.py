"""Compiled functions follow what they read from outside of their arguments, as plain Python does."""

from __future__ import annotations

import argparse
import array
import collections
import ctypes
import io
import random
import subprocess
import sys
import time
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import RecompileWarning, StaleValueWarning

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


# ----- warnings
def test_rebinding_again_and_again_warns() -> None:
    name = ""
    compiled = bw.jit(lambda x: x * len(name))
    with pytest.warns(RecompileWarning, match=r"traced and compiled 16 times; this time because name was rebound\n.*pass name as an arg"):
        for _ in range(16):
            name = name + "+"
            np.testing.assert_allclose(compiled(X), X * len(name))


def test_many_shapes_warn_with_the_difference() -> None:
    compiled = bw.jit(lambda x: x + 1)
    with pytest.warns(RecompileWarning, match=r"x is float64\[16\] after float64\[15\]"):
        for n in range(1, 17):
            compiled(np.ones(n))


OLD_GENERATOR, PYTHONS = np.random.RandomState(0), random.Random(0)
NORMAL = np.random.default_rng(0).normal
GENERATOR = np.random.default_rng(0)

UNREPEATED = {
    "legacy": (lambda x: x + np.random.normal(), "random numbers were drawn from np.random or random"),
    "random": (lambda x: x * random.random(), "random numbers were drawn"),
    "generator": (lambda x: x + GENERATOR.normal(size=3), "GENERATOR gives random numbers while the function is traced"),
    "generator's method": (lambda x: x + NORMAL(size=3), "NORMAL gives random numbers while the function is traced"),
    "old generator": (lambda x: x + OLD_GENERATOR.randn(3), "OLD_GENERATOR gives random numbers while the function is traced"),
    "Python's": (lambda x: x * PYTHONS.random(), "PYTHONS gives random numbers while the function is traced"),
    "clock": (lambda x: x * time.time(), "time.time is called while the function is traced only"),
    "open": (lambda x: x * len(open(__file__).read()), "open is called while the function is traced only"),  # noqa: SIM115
    "loaded": (lambda x: x * np.loadtxt(io.StringIO("2")), "np.loadtxt is called while the function is traced only"),
    "path": (lambda x: x * len(Path(__file__).read_text()), "read_text is called while the function is traced only"),
}


@pytest.mark.parametrize("name", UNREPEATED)
def test_what_cannot_be_read_again_warns(name: str) -> None:
    fun, message = UNREPEATED[name]
    with pytest.warns(StaleValueWarning, match=message) as caught:
        bw.jit(fun)(X)
    assert "test_outside.py" in str(caught[0].message) and caught[0].filename == __file__


@pytest.mark.parametrize("generator", [np.random.default_rng(0), np.random.RandomState(0), random.Random(0)], ids=lambda one: type(one).__name__)
def test_generators_that_are_arguments(generator: Any) -> None:
    def drawn(rng: Any) -> Any:
        def inside() -> Any:
            return (rng.random if hasattr(rng, "random") else rng.rand)()
        return inside()

    with pytest.warns(StaleValueWarning, match="rng gives random numbers while the function is traced"):
        bw.jit(lambda x, rng: x * drawn(rng))(X, generator)


def test_what_the_caller_reads_is_no_part_of_the_function() -> None:
    def crossing(x: Any) -> Any:
        found = None                               # is put together after the function returned
        for k in range(1, len(x)):
            if x[k] > 1.0:
                found = k
                break
        return found

    text = Path(__file__).read_text()
    assert time.time() > 0 and text
    assert bw.jit(crossing)(np.arange(3.0)) == 2


@pytest.mark.parametrize("expression, warned", [("np.random.rand(3)", True), ("(np.random.rand is None)", False)])
def test_np_random_imported_while_tracing(expression: str, warned: bool) -> None:
    """NumPy imports np.random when it is first named: its first numbers warn, too."""
    script = f"import numpy as np, bwcompiler as bw; bw.jit(lambda x: x * {expression})(np.ones(3))"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert ("random numbers were drawn from np.random" in run.stderr) == warned, run.stderr


def test_assignment_outside_warns() -> None:
    calls = 0

    def fun(x: Any) -> Any:
        nonlocal calls
        calls += 1
        return x * calls

    with pytest.warns(StaleValueWarning, match="calls is assigned to while the function is traced"):
        bw.jit(fun)(X)


@pytest.mark.parametrize("loops", [1, 100])
def test_state_that_a_call_leaves_behind_warns(loops: int) -> None:
    """A traced value in an attribute, as in an optimiser that remembers its step: the second call would be wrong in silence."""
    class Optimiser:
        step = np.zeros(3)

        def __call__(self, x: Any) -> Any:
            for _ in range(loops):
                self.step = 0.9 * self.step + x
            return self.step

    function = bw.jit(Optimiser())
    with pytest.warns(StaleValueWarning, match=r"self.step is assigned to while the function is traced: compiled calls neither repeat"):
        assert function(X).tolist() == Optimiser()(X).tolist()


def test_attributes_that_are_assigned_to_before_they_are_read_do_not_matter() -> None:
    class Layer:
        output = None

        def __call__(self, x: Any) -> Any:
            self.output = np.tanh(x)
            return self.output * self.output

    function = bw.jit(Layer())
    for x in (X, X + 1):
        np.testing.assert_allclose(function(x), np.tanh(x) ** 2, rtol=1e-15)


def test_lists_that_are_only_written_to_do_not_matter() -> None:
    log: list[Any] = []

    def fun(x: Any) -> Any:
        log.append(x.shape)
        return x

    compiled = bw.jit(fun)
    compiled(X)
    compiled(X)
    assert log == [(3,)]


def test_masked_arrays() -> None:
    masked = np.ma.masked_array([1.0, 2.0, 3.0], mask=[0, 1, 0])
    fun = lambda x: x * masked.mean()
    compiled = bw.jit(fun)
    for k in range(4):
        assert compiled(2.0) == fun(2.0)
        masked[0] = 5.0 + k
        if k == 1:
            masked.mask[2] = True
