"""Every way of calling a compiled function gives the same, the second time straight from native code."""

from __future__ import annotations

import collections
import dataclasses
import enum
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.fft

import bwcompiler as bw
from bwcompiler.errors import SignatureError

X, W = np.linspace(0.1, 0.8, 8), np.linspace(1.0, 2.0, 8)


class Mode(enum.Enum):
    PLAIN = 1
    DOUBLE = 2


class Config:
    def __init__(self, power: int) -> None:
        self.power = power


def assert_native(function: Any, *args: Any, **kwargs: Any) -> Any:
    """The result of a call, which the native entry takes the second time (the Python path is not there any more)."""
    first = function(*args, **kwargs)

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("the call came to Python")

    owner = function.func if isinstance(function, functools.partial) else function
    slow = owner._slow
    try:
        owner._slow = refuse
        owner.add_form(owner._forms.pop(0))               # the chain again, with this end
        second = function(*args, **kwargs)
    finally:
        owner._slow = slow
        owner.add_form(owner._forms.pop(0))
    for one, two in zip(bw.tree.leaves(first), bw.tree.leaves(second), strict=True):
        np.testing.assert_array_equal(one, two)
        assert type(one) is type(two)
    return second


def scaled(x: Any, w: Any = 2.0, *, mode: Any = "plain", n: int = 1, f: Any = None) -> Any:
    for _ in range(n):
        x = x * w
    if f is not None:
        x = f(x)
    return np.sum(x if mode in ("plain", Mode.PLAIN) else 2 * x)


CALLS = {
    "positional": ((X, W), {}),
    "default": ((X,), {}),
    "keyword": ((X,), {"w": W}),
    "all keywords": ((), {"w": W, "x": X}),
    "string": ((X, W), {"mode": "double"}),
    "enum": ((X, W), {"mode": Mode.DOUBLE}),
    "number of steps": ((X, W), {"n": 3}),
    "function": ((X, W), {"f": np.sin}),
    "float": ((X, 1.5), {}),
    "int": ((X, 3), {}),
    "NumPy scalar": ((X, np.float64(1.5)), {}),
    "float32": ((X.astype(np.float32), np.float32(1.5)), {}),
    "other shape": ((X[:3], W[:3]), {}),
    "strided": ((np.repeat(X, 2)[::2], W[::-1]), {}),
    "0-d": ((X, np.array(1.5)), {}),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("derived", [False, True], ids=["value", "gradient"])
def test_calls_of_one_function(name: str, derived: bool) -> None:
    args, kwargs = CALLS[name]
    if not derived:
        expected = scaled(*args, **kwargs)
        np.testing.assert_allclose(assert_native(bw.jit(scaled), *args, **kwargs), expected, rtol=1e-6)
        return
    step = 1e-3
    value, gradient = assert_native(bw.value_and_grad(scaled), *args, **kwargs)
    x = np.asarray(args[0] if args else kwargs["x"])
    moved = [scaled(x + sign * step * np.ones_like(x), *args[1:], **{k: v for k, v in kwargs.items() if k != "x"}) for sign in (1, -1)]
    np.testing.assert_allclose(np.sum(gradient, dtype=float), (float(moved[0]) - float(moved[1])) / (2 * step), rtol=1e-3)
    np.testing.assert_allclose(value, scaled(*args, **kwargs), rtol=1e-6)


def test_alternating_calls_stay_native() -> None:
    function = bw.jit(scaled)
    for _ in range(2):
        for args, kwargs in CALLS.values():
            np.testing.assert_allclose(function(*args, **kwargs), scaled(*args, **kwargs), rtol=1e-6)
    for args, kwargs in CALLS.values():
        assert_native(function, *args, **kwargs)


class Layer(NamedTuple):
    w: Any
    b: Any = 0.0


def test_named_tuples() -> None:
    def loss(layers: dict[str, Layer], x: Any) -> Any:
        return np.sum((layers["first"].w * x + layers["first"].b) ** 2)
    for layers in ({"first": Layer(W, 1.0)}, {"first": Layer(w=W.copy(), b=X)}):
        np.testing.assert_allclose(assert_native(bw.jit(loss), layers, X), loss(layers, X))
        gradient = assert_native(bw.grad(loss), layers, X)
        assert type(gradient["first"]) is Layer
        np.testing.assert_allclose(gradient["first"].w, 2 * (W * X + layers["first"].b) * X)
    plain: Any = {"first": (W, 1.0)}                # is not taken for one
    compiled = bw.jit(loss)
    compiled({"first": Layer(W, 1.0)}, X)
    with pytest.raises(AttributeError):
        compiled(plain, X)


def test_trees_that_alternate() -> None:
    total = bw.jit(lambda p: sum(np.sum(leaf) for leaf in bw.tree.leaves(p)))
    for tree in ({"a": X, "b": [W, 1.0]}, [X], (X, None, {"w": W}), {"a": X}):
        np.testing.assert_allclose(assert_native(total, tree), sum(np.sum(leaf) for leaf in bw.tree.leaves(tree)))


def test_objects_are_static_by_themselves() -> None:
    power = bw.grad(lambda x, c: np.sum(x ** c.power))
    square, cube = Config(2), Config(3)
    np.testing.assert_allclose(assert_native(power, X, square), 2 * X)
    np.testing.assert_allclose(assert_native(power, X, cube), 3 * X ** 2)
    np.testing.assert_allclose(assert_native(power, X, square), 2 * X)


def test_configuration_inside_containers() -> None:
    layer = bw.value_and_grad(lambda p: np.sum(np.tanh(p["w"]) if p["activation"] == "tanh" else p["w"]))
    value, gradient = layer({"w": X, "activation": "tanh"})
    np.testing.assert_allclose(gradient["w"], 1 - np.tanh(X) ** 2)
    assert gradient["activation"] is None
    np.testing.assert_allclose(value, np.sum(np.tanh(X)), rtol=1e-14)
    assert layer({"w": X, "activation": "none"})[1]["w"].tolist() == [1.0] * 8


def test_statics_of_transforms() -> None:
    def polynomial(x: Any, powers: Any) -> Any:
        return sum(np.sum(x ** power) for power in powers)

    gradient = bw.grad(polynomial, static_argnums=1)
    np.testing.assert_allclose(gradient(X, (1, 2)), 1 + 2 * X)
    np.testing.assert_allclose(bw.jacobian(polynomial, static_argnames="powers")(X, (2, 3)), 2 * X + 3 * X ** 2)
    np.testing.assert_allclose(bw.hessian(polynomial, static_argnums=(1,))(X[:2], (3,)), np.diag(6 * X[:2]))
    with pytest.raises(SignatureError, match="hashable"):
        gradient(X, [1, 2])


def test_integers_that_are_asked_for(compilations: list[str]) -> None:
    def march(x: Any, steps: int, factor: int) -> Any:
        for _ in range(steps):
            x = np.sin(x) * factor
        return np.sum(x)

    gradient = bw.grad(march)
    np.testing.assert_allclose(gradient(X, 1, 2), 2 * np.cos(X))
    for factor in range(3, 8):                      # an operand: nothing is compiled again
        np.testing.assert_allclose(gradient(X, 1, factor), factor * np.cos(X))
    assert len(compilations) == 1
    np.testing.assert_allclose(assert_native(gradient, X, 0, 2), np.ones(8))
    assert len(compilations) == 2


def test_sizes_axes_and_shapes_as_arguments() -> None:
    def fun(x: Any, n: int, axis: int) -> Any:
        return np.sum(x.reshape(n, -1), axis=axis) * np.eye(n)[0].sum()

    for n, axis in ((2, 0), (4, 1), (2, 1)):
        np.testing.assert_allclose(bw.jit(fun)(X, n, axis), X.reshape(n, -1).sum(axis=axis))
        assert bw.jacobian(fun)(X, n, axis).shape == (*X.reshape(n, -1).sum(axis=axis).shape, 8)


def test_methods_and_partials() -> None:
    class Model:
        def __init__(self) -> None:
            self.w = W

        @bw.jit
        def apply(self, x: Any) -> Any:
            return np.sum(self.w * x)

    model = Model()
    np.testing.assert_allclose(model.apply(X), np.sum(W * X))
    np.testing.assert_allclose(model.apply(X), np.sum(W * X))
    np.testing.assert_allclose(bw.grad(model.apply)(X), W)
    bound = functools.partial(bw.jit(scaled), w=W)
    np.testing.assert_allclose(assert_native(bound, X), np.sum(W * X))


# ----- assignment
def add_one(x: Any, w: Any) -> Any:
    x += 1
    return np.sum(x * w)


def test_arguments_that_are_assigned_to_are_written_by_the_kernels() -> None:
    function = bw.jit(add_one)
    x = X.copy()
    for count in range(1, 4):
        np.testing.assert_allclose(function(x, W), np.sum((X + count) * W))
        np.testing.assert_allclose(x, X + count)
    function._slow = None
    function.add_form(function._forms[0])          # no way to Python any more
    np.testing.assert_allclose(function(x, W), np.sum((X + 4) * W))
    function = bw.jit(lambda x, w: add_one(x, w))
    backwards = np.zeros(16)[::-2]
    function(backwards, W)                          # through Python, with a copy
    assert backwards.tolist() == [1.0] * 8


SWAPS = {
    "swap": lambda a, b: (a.copy(), np.copyto(a, b), np.copyto(b, a * 2))[0],
    "reverse": lambda a, b: a.__setitem__(slice(None), a[::-1]),
    "shift": lambda a, b: a.__setitem__(slice(1, None), a[:-1]),
    "item": lambda a, b: a.__setitem__(0, 5.0),
    "items": lambda a, b: [a.__setitem__(k, b[k] * a[k - 1]) for k in range(1, 7)] and None,
    "kept": lambda a, b: (a.copy(), np.multiply(a, 3.0, out=a))[0],
    "reduced": lambda a, b: np.subtract(a, np.mean(a), out=a) * 1.0,
    "both": lambda a, b: (np.add(a, b, out=a), np.multiply(a, b, out=b), a * b)[2],
    "other": lambda a, b: a.__setitem__(slice(None), b),
    "product": lambda a, b: a.__setitem__(slice(None), np.outer(a, b) @ a),
}


@pytest.mark.parametrize("name", SWAPS)
def test_assignments_of_every_kind(name: str) -> None:
    fun = SWAPS[name]
    compiled = bw.jit(fun)
    for _ in range(2):
        expected, found = [X.copy(), W.copy()], [X.copy(), W.copy()]
        wanted, got = fun(*expected), compiled(*found)
        if wanted is not None:
            np.testing.assert_allclose(got, wanted, rtol=1e-14)
        for one, two in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-14)


def test_an_argument_that_is_also_captured() -> None:
    def fun(x: Any) -> Any:
        x += 1
        return np.sum(captured * x)

    captured = X.copy()
    for function in (bw.jit(fun), bw.jit(fun, mutates=False), bw.grad(fun)):
        with pytest.raises(SignatureError, match="x is assigned to and shares memory with an array that the function captures"):
            function(captured)
        function(X.copy())


def test_buffers_are_added_to_in_place() -> None:
    program = bw.compile(lambda x, w: np.sum(np.tanh(x * w)), X, W)
    expected = program.backward(X, W)
    first, second = np.ones(8), np.full(8, 2.0)
    for _ in range(2):
        given = program.backward(X, W, into=(first, second), scale=0.5)
        assert given[0] is first and given[1] is second
    np.testing.assert_allclose(first, 1 + expected[0], rtol=1e-13)
    np.testing.assert_allclose(second, 2 + expected[1], rtol=1e-13)
    _, (fresh, buffer) = program.value_and_backward(X, W, into=(None, first))
    assert buffer is first and fresh.tolist() == expected[0].tolist()
    w = W.copy()
    program.backward(X, w, wrt=(1,), into=(None, w), scale=-0.1)          # gradient descent on the argument itself
    np.testing.assert_allclose(w, W - 0.1 * expected[1], rtol=1e-13)


def test_pullbacks_in_every_form() -> None:
    program = bw.compile(lambda x, w: (x * w, np.sum(x)), X, W)
    value, pullback = program.vjp(X, W)
    np.testing.assert_allclose(value[0], X * W)
    seed = np.arange(8.0)
    for _ in range(2):
        for found in (pullback((seed, 1.0)), pullback((seed, np.float64(1.0))), pullback(grad_outputs=(seed, 1.0))):
            np.testing.assert_allclose(found[0], seed * W + 1.0)
        np.testing.assert_allclose(pullback((seed, None))[0], seed * W)
        buffer = np.zeros(8)
        assert pullback((seed, 1.0), into=(None, buffer), scale=2.0)[1] is buffer
        np.testing.assert_allclose(buffer, 2 * seed * X)
    with pytest.raises(TypeError, match="one seed"):
        pullback(seed, seed)
    other = program.vjp(2 * X, W)[1]
    np.testing.assert_allclose(other((seed, 0.0))[1], 2 * seed * X)
    np.testing.assert_allclose(pullback((seed, 0.0))[1], seed * X)


@pytest.mark.parametrize("view", [np.transpose, lambda a: np.moveaxis(a, 0, 1), np.asfortranarray, lambda a: a.swapaxes(0, 2)[:, :, :]],
                         ids=["T", "moveaxis", "Fortran", "a view of a view"])
def test_transposed_arrays_from_outside_are_read_where_they_lie(view: Any) -> None:
    base = np.arange(24.0).reshape(2, 3, 4)
    outside = view(base)
    function = bw.jit(lambda x: x * outside + (x - outside))
    expected = lambda: outside + (1.0 - outside)
    np.testing.assert_array_equal(assert_native(function, np.ones(outside.shape)), expected())
    outside[0] = 7.0
    np.testing.assert_array_equal(function(np.ones(outside.shape)), expected())
    product = bw.value_and_grad(lambda x: np.sum((x @ base[0].T) ** 2))
    np.testing.assert_allclose(assert_native(product, np.ones((2, 4)))[1], 2 * np.ones((2, 4)) @ base[0].T @ base[0])


@dataclasses.dataclass
class Grid:
    length: float
    u: Any

    def __post_init__(self) -> None:
        self.step = self.length / len(self.u)
        self.x = np.linspace(0.0, self.length, len(self.u))
        self.rule = "trapezium"

    @functools.cached_property
    def mean(self) -> Any:
        return np.mean(self.u)

    def energy(self) -> Any:
        return np.sum(self.u ** 2 * np.sin(self.x)) * self.step * (2.0 if self.rule == "trapezium" else 1.0) - self.mean


def test_dataclasses_with_attributes_that_are_no_fields() -> None:
    """They are arguments like the fields, as in NumPy: setting a field does not compute them again."""
    energy = bw.jit(lambda grid: grid.energy())
    changed, cached = Grid(2.0, X), Grid(2.0, X)
    changed.step, changed.rule = 7.0, "other"
    cached.u = cached.u + 0.0 * cached.mean + 1.0                              # the mean stays what it was
    for grid in (Grid(2.0, X), Grid(3.0, W), Grid(2.0, X[:3]), changed, cached):
        np.testing.assert_allclose(energy(dataclasses.replace(grid)), dataclasses.replace(grid).energy())
        assert energy(grid) == pytest.approx(float(grid.energy()), rel=1e-12)
    found = bw.grad(lambda grid: grid.energy())(Grid(2.0, X))
    assert (found.length, found.rule) == (0.0, None)
    np.testing.assert_allclose(found.step * 0.25, Grid(2.0, X).energy() + np.mean(X))
    np.testing.assert_allclose(bw.grad(lambda u: dataclasses.replace(Grid(2.0, X), u=u).energy())(X), found.u)


def test_functions_of_other_libraries_inside() -> None:
    """They are objects of classes that C code has made, without attributes of the user's that a call would have to look for."""
    def noisy(x: Any, text: str = "a b c") -> Any:
        generator = np.random.default_rng(len(text.split()))
        return x + generator.normal(size=8)

    np.testing.assert_array_equal(assert_native(bw.jit(noisy), X), noisy(X))
    energy = lambda x: np.sum(np.abs(scipy.fft.rfft(x)).clip(0.5))
    np.testing.assert_allclose(assert_native(bw.jit(energy), X), energy(X))


# ----- dicts
@dataclasses.dataclass
class Held:
    table: dict[Any, float]


def first_less_second(table: Any, x: Any) -> Any:
    first, second = (table.table if isinstance(table, Held) else table).values()
    return np.sum(first * x - second * x ** 2)


@pytest.mark.parametrize("make", [dict, lambda items: collections.defaultdict(float, items), collections.OrderedDict,
                                  lambda items: Held(dict(items))], ids=["dict", "defaultdict", "OrderedDict", "dataclass"])
@pytest.mark.parametrize("transform", [bw.jit, lambda function: bw.grad(function, argnums=1), lambda function: bw.vmap(function, in_axes=(None, 0))],
                         ids=["jit", "grad", "vmap"])
def test_dicts_have_the_order_of_their_keys(make: Any, transform: Any) -> None:
    """As in NumPy: equal dicts whose keys are in another order are other arguments."""
    items, compiled = [("b", 1.0), ("a", 5.0)], transform(first_less_second)
    for _ in range(2):
        for each in (items, items[::-1]):
            alone = transform(lambda table, x: first_less_second(table, x))
            np.testing.assert_array_equal(compiled(make(each), X), alone(make(each), X))
    np.testing.assert_allclose(bw.jit(first_less_second)(make(items), X), first_less_second(make(items), X))


def test_native_dicts_with_integers_as_keys() -> None:
    function = bw.jit(first_less_second)
    for table in ({3: 1.0, 1: 5.0}, {1: 5.0, 3: 1.0}, {"a": 1.0, 3: 2.0}, {"a": 2.0, "b": 3}):
        np.testing.assert_allclose(assert_native(function, table, X), first_less_second(table, X))


def test_keys_that_are_equal_but_of_other_types() -> None:
    def halves(table: Any, x: Any) -> Any:
        return sum(x[0] * value * (key if type(key) is int else 3) for key, value in table.items())

    function = bw.jit(halves)
    for table in ({1: 2.0, 2: 3.0}, {1.0: 2.0, 2.0: 3.0}, {True: 2.0, 2: 3.0}, {1: 2.0, 2: 3.0}):
        np.testing.assert_allclose(function(table, X), halves(table, X))


def test_results_have_the_order_of_their_keys() -> None:
    function = bw.jit(lambda x: {"sum": np.sum(x), "all": {2: x, 1: -x}})
    assert [list(function(X)), list(function(X)["all"])] == [["sum", "all"], [2, 1]]
    assert list(bw.grad(lambda table: np.sum(table["w"] * table["b"]))({"w": X, "b": W})) == ["w", "b"]


def test_keywords_have_an_order_where_a_function_takes_any() -> None:
    def any_of_them(x: Any, **more: float) -> Any:
        first, second = more.values()
        return first * x - second

    def named(x: Any, *, scale: float, shift: float) -> Any:
        return scale * x - shift

    function = bw.jit(any_of_them)
    for _ in range(2):
        np.testing.assert_allclose(function(X, a=2.0, b=1.0), 2 * X - 1)
        np.testing.assert_allclose(function(X, b=1.0, a=2.0), X - 2)
    traces: list[int] = []
    note = traces.append           # which nobody follows: a list is put back where a trace is given up
    function = bw.jit(lambda x, *, scale, shift: (note(1), named(x, scale=scale, shift=shift))[1])
    for _ in range(2):
        np.testing.assert_allclose(function(X, scale=2.0, shift=1.0), 2 * X - 1)
        np.testing.assert_allclose(function(X, shift=1.0, scale=2.0), 2 * X - 1)
    assert len(traces) == 1


def test_a_program_refuses_dicts_in_another_order() -> None:
    program = bw.compile(first_less_second, {"b": 1.0, "a": 5.0}, X)
    np.testing.assert_allclose(program({"b": 2.0, "a": 3.0}, X), first_less_second({"b": 2.0, "a": 3.0}, X))
    with pytest.raises(SignatureError, match=r"argument 0 has a dict with the keys \['a', 'b'\], but the program was compiled for .*\['b', 'a'\]"):
        program({"a": 3.0, "b": 2.0}, X)


# ----- copies of what is written to
WRITES: dict[str, Callable[[Any], None]] = {
    "sort": lambda x: x.sort(0), "inverse": lambda x: np.copyto(x, np.linalg.inv(x)), "product": lambda x: np.copyto(x, x @ x @ x),
    "eigenvectors": lambda x: np.copyto(x, np.linalg.eigh(x + x.T)[1]), "scan": lambda x: np.copyto(x, np.cumsum(x, 0).cumsum(1)),
    "rows": lambda x: np.copyto(x, x[[1, 0, 3, 2]]), "transform": lambda x: np.copyto(x, np.fft.fft(np.fft.fft(x, axis=0), axis=1).real),
    "sums": lambda x: np.copyto(x, x - np.sum(np.sin(x), 0) - np.sum(x, 1)), "loop": lambda x: _written_in_a_loop(x)}


def _written_in_a_loop(x: Any) -> None:
    for i in range(12):
        x[i % 4] += np.sort(x, axis=0)[1]


@pytest.mark.parametrize("copy", [np.copy, np.transpose, lambda x: x.flatten(), lambda x: x.reshape(2, 8) + 0.0], ids=["copy", "view", "flat", "sum"])
@pytest.mark.parametrize("write", WRITES)
def test_a_copy_of_an_argument_that_is_written_to(write: str, copy: Callable[[Any], Any], rng: np.random.Generator) -> None:
    """What the copy is kept in meanwhile belongs to no step."""
    def function(x, y):
        old, other = copy(x), copy(y)
        WRITES[write](x)
        WRITES[write](y)
        return old, other

    x, y = rng.uniform(-1, 1, (2, 4, 4))
    given, expected = (x.copy(), y.copy()), (x.copy(), y.copy())
    for found, wanted in zip((*bw.jit(function)(*given), *given), (*function(*expected), *expected), strict=True):
        if write == "eigenvectors":                                  # up to their signs
            found, wanted = abs(found), abs(wanted)
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9)
