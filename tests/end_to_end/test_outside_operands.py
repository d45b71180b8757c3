"""Arrays and numbers outside of a function that are bound anew between its calls are operands of its program from then on."""

from __future__ import annotations

import itertools
import types
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.api.programs.program import Program
from bwcompiler.api.transforms import reverse
from bwcompiler.errors import CompileError, SignatureError

X = np.arange(1.0, 4.0)
W = np.ones(3)
PARAMS: Any = {"w": np.ones(3), "b": 0.5}


class Holder:
    """Whatever has an array."""

    def __init__(self) -> None:
        self.w: Any = np.ones(3)


class Slotted:
    __slots__ = ("w",)

    def __init__(self) -> None:
        self.w = np.ones(3)


holder, slotted, table, items, nested = Holder(), Slotted(), {"w": np.ones(3)}, [np.ones(3)], [Holder(), Holder()]


def _global(w):
    global W
    W = w
    return lambda x: x * W


def _cell(w):
    _cell.bound(w)                                 # type: ignore[attr-defined]
    return _cell.read                              # type: ignore[attr-defined]


def _make_cell():
    w = np.ones(3)

    def bound(new):
        nonlocal w
        w = new
    return bound, lambda x: x * w


_cell.bound, _cell.read = _make_cell()             # type: ignore[attr-defined]


def _attribute(w):
    holder.w = w
    return lambda x: x * holder.w


def _slot(w):
    slotted.w = w
    return lambda x: x * slotted.w


def _entry(w):
    table["w"] = w
    return lambda x: x * table["w"]


def _computed_entry(w):
    table["w"] = w
    return lambda x: sum(x * value for value in table.values())


def _item(w):
    items[0] = w
    return lambda x: x * items[0]


def _item_in_a_loop(w):
    items[0] = w

    def read(x):
        for k in range(len(items)):
            x = x * items[k]
        return x
    return read


def _attribute_in_a_loop(w):
    for one in nested:
        one.w = w

    def read(x):
        for one in nested:
            x = x * one.w
        return x
    return read


def _list(w):
    holder.w = [w, 2.0 * w]
    return lambda x: x * holder.w[0] + holder.w[-1]


def _dict(w):
    global PARAMS
    PARAMS = {"w": w, "b": float(w[0])}
    return lambda x: x * PARAMS["w"] + PARAMS["b"]


def _tuple(w):
    holder.w = (w, {"deep": [2 * w]})

    def read(x):
        first, rest = holder.w
        return x * first * rest["deep"][0]
    return read


def _numpy_number(w):
    holder.w = w[0]
    return lambda x: x * holder.w


PLACES = [_global, _cell, _attribute, _slot, _entry, _computed_entry, _item, _item_in_a_loop, _attribute_in_a_loop, _list, _dict, _tuple,
          _numpy_number]


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
def test_what_is_bound_anew_is_traced_twice_at_most(place: Any) -> None:
    fun = place(np.ones(3))
    compiled, slope = bw.jit(fun), bw.grad(lambda x: np.sum(fun(x) ** 2))
    for k in range(5):
        place(np.array([1.0 + k, 2.0, -k]))
        for _ in range(2):
            np.testing.assert_allclose(compiled(X), fun(X), rtol=1e-14)
            np.testing.assert_allclose(slope(X), 2 * fun(X) * (fun(X + 1.0) - fun(X)), rtol=1e-12)        # they are linear
    assert compiled._traces == slope._traces == 2


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The programs that `vjp` and `linearize` make."""
    made: list[Any] = []

    class Counted(Program):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            made.append(self)

    monkeypatch.setattr(reverse, "Program", Counted)
    return made


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
def test_halves_of_what_reads_it_are_traced_twice_at_most(place: Any, programs: list[Any]) -> None:
    fun = place(np.ones(3))
    seed = np.array([1.0, -2.0, 3.0])
    for k in range(5):
        place(np.array([1.0 + k, 2.0, -k]))
        for _ in range(2):
            slope = fun(X + 1.0) - fun(X)
            out, pullback = bw.vjp(fun, X)
            np.testing.assert_allclose(out, fun(X), rtol=1e-14)
            np.testing.assert_allclose(pullback(seed)[0], slope * seed, rtol=1e-12)
            out, derivative = bw.linearize(fun, X)
            np.testing.assert_allclose(out, fun(X), rtol=1e-14)
            np.testing.assert_allclose(derivative(seed), slope * seed, rtol=1e-12)
    assert len(programs) == 2                      # both transforms have the same


def test_a_pullback_is_of_what_was_outside_when_it_was_made(programs: list[Any]) -> None:
    def fun(x):
        return np.sin(x * holder.w)

    pulled, weights = [], [np.full(3, 1.0 + k) for k in range(4)]
    for holder.w in weights:
        pulled.append((bw.vjp(fun, X)[1], bw.linearize(fun, X)[1]))
    for w, (pullback, derivative) in zip(weights, pulled, strict=True):
        for _ in range(2):
            np.testing.assert_allclose(pullback(np.ones(3))[0], np.cos(X * w) * w, rtol=1e-13)
            np.testing.assert_allclose(derivative(np.ones(3)), np.cos(X * w) * w, rtol=1e-13)
            np.testing.assert_allclose(bw.grad(lambda s, of=pullback: np.sum(of(s)[0]))(np.ones(3)), np.cos(X * w) * w, rtol=1e-13)
    assert len(programs) == 2


def test_halves_for_kinds_that_come_and_go(programs: list[Any]) -> None:
    kinds = [np.ones(3), 2.0, np.float32([1, 2, 3]), 3, np.arange(6.0)[::2], np.ones((2, 3))]

    def fun(x):
        return np.tanh(x * holder.w)

    for round_ in range(3):
        for array in kinds:
            holder.w = array + round_
            out, pullback = bw.vjp(fun, X)
            np.testing.assert_allclose(out, fun(X), rtol=1e-6)
            expected = np.atleast_2d((1 - fun(X) ** 2) * holder.w).sum(0)
            np.testing.assert_allclose(pullback(np.ones_like(out))[0], expected, rtol=1e-5, atol=1e-12)
    assert len(programs) <= 2 * len(kinds) + 2


def test_halves_of_a_loop_that_is_not_native_are_unrolled_with_what_varies(programs: list[Any]) -> None:
    def fun(x, *, unrolled=True):
        for _ in range(3):
            x = np.sin(x) * holder.w
        return x

    for k in range(3):
        holder.w = np.full(3, 1.0 + k)
        out, pullback = bw.vjp(fun, X, autoloop=False)
        np.testing.assert_array_equal(out, bw.jit(fun)(X))
        np.testing.assert_allclose(pullback(np.ones(3))[0], bw.grad(lambda x: np.sum(fun(x)))(X), rtol=1e-13)
    program = programs[-1]
    assert len(programs) == 2 and len(program.operands.reads) == 1
    program.traced.may_unroll = True
    program.unroll(CompileError("of a test"))
    assert len(program.operands.reads) == 1 and program.assumptions.layouts == (None, None)


def test_halves_for_the_memory_order_of_what_varies(programs: list[Any]) -> None:
    def raveled(x):
        return x * holder.w.ravel(order="K")[:3]

    base = np.arange(9.0).reshape(3, 3)
    for array in (base, base + 1, base.T, base.T + 1, base[::-1], base + 2):
        holder.w = array
        out, pullback = bw.vjp(raveled, X)
        np.testing.assert_array_equal(out, raveled(X))
        np.testing.assert_array_equal(pullback(np.ones(3))[0], array.ravel(order="K")[:3])
        np.testing.assert_array_equal(bw.linearize(raveled, X)[1](np.ones(3)), array.ravel(order="K")[:3])


def test_halves_found_anew_when_it_is_bound_anew_in_between(monkeypatch: pytest.MonkeyPatch) -> None:
    """As another thread may do it."""
    def fun(x):
        return x * holder.w

    for holder.w in (np.ones(3), np.full(3, 2.0)):
        bw.vjp(fun, X)
    found = reverse.program_of

    def rebinding(*args: Any) -> Any:
        program = found(*args)
        monkeypatch.undo()
        holder.w = 4.0
        return program

    monkeypatch.setattr(reverse, "program_of", rebinding)
    holder.w = np.full(3, 3.0)
    out, pullback = bw.vjp(fun, X)
    np.testing.assert_array_equal(out, 4 * X)
    assert pullback(np.ones(3))[0].tolist() == [4.0] * 3


def test_in_place_and_anew() -> None:
    compiled = bw.jit(lambda x: x * holder.w)
    for k in range(4):
        holder.w = np.full(3, 1.0 + k)
        np.testing.assert_array_equal(compiled(X), X * holder.w)
        holder.w[1] = -k
        np.testing.assert_array_equal(compiled(X), X * holder.w)
    assert compiled._traces == 2


@pytest.mark.parametrize("arrays", [
    [np.ones(3), np.ones(1), np.ones((2, 3)), np.float32([1, 2, 3]), np.arange(3)],
    [np.ones(3), 2.0, 3, np.float64(2.0), np.array(2.0), 1j],
    [np.ones((3, 3)), np.arange(9.0).reshape(3, 3).T, np.arange(18.0).reshape(3, 6)[:, ::2], np.arange(9.0)[::-1].reshape(3, 3)],
    [np.ones(3), np.arange(3.0).astype(">f8"), np.arange(6.0)[::2], np.ma.masked_array([1.0, 2.0, 3.0]).filled()],
    [[np.ones(3)], [np.ones(3), 2.0], (np.ones(3),), [np.ones(1)], [2.0]],
], ids=["types", "numbers", "layouts", "memory", "containers"])
def test_kinds_come_and_go(arrays: Any) -> None:
    """Every kind has a program of its own, and all are found again."""
    compiled = bw.jit(lambda x: sum(x * part for part in holder.w) if isinstance(holder.w, list | tuple) else x * holder.w)
    for round_ in range(3):
        for array in arrays:
            holder.w = array if isinstance(array, list | tuple) else array + round_
            expected = sum(X * part for part in array) if isinstance(array, list | tuple) else X * holder.w
            found = compiled(X)
            np.testing.assert_array_equal(found, expected)
            assert found.dtype == expected.dtype
    assert compiled._traces <= 2 * len(arrays) + 2


def test_memory_order_counts_where_it_matters() -> None:
    def raveled(x):
        return x * holder.w.ravel(order="K")[:3]

    compiled = bw.jit(raveled)
    base = np.arange(9.0).reshape(3, 3)
    for array in (base, base + 1, base.T, base.T + 1, base[::-1], base + 2):
        holder.w = array
        np.testing.assert_array_equal(compiled(X), raveled(X))


def test_what_has_to_be_known_does_not_keep_the_rest_from_varying() -> None:
    """An array of indices that chooses a size is traced again; one of weights, bound with it, is an operand all the same."""
    model = types.SimpleNamespace(count=1, mask=np.array([True, False, True]), w=np.ones(3))

    def fun(x):
        return np.sum(x[model.mask] * model.w[model.mask]) * len(range(model.count))

    compiled = bw.jit(fun)
    for k in range(3):
        model.count, model.mask, model.w = k + 1, np.arange(3) <= k, np.full(3, 1.0 + k)
        assert compiled(X) == fun(X)
    before = compiled._traces
    for _ in range(4):
        model.w = model.w + 1.0
        assert compiled(X) == fun(X)
    assert compiled._traces <= before + 1


def test_a_trace_that_fails_leaves_all_as_it_was() -> None:
    broken = False
    holder.w = [np.ones(3), 1.0]

    def fun(x):
        if broken:
            raise RuntimeError("broken")
        return x * holder.w[0] * holder.w[1]

    compiled = bw.jit(fun)
    compiled(X)
    holder.w, broken = [np.full(3, 2.0), 3.0], True
    before = holder.w
    with pytest.raises(RuntimeError, match="broken"):
        compiled(X)
    broken = False
    assert holder.w is before and type(before[0]) is np.ndarray and type(before[1]) is float
    np.testing.assert_array_equal(compiled(X), 6 * X)


def test_writing_to_it_is_refused_as_before() -> None:
    def fun(x):
        holder.w[1] = x[0]
        return holder.w.sum()

    holder.w = np.ones(3)
    compiled = bw.jit(fun)
    for _ in range(3):
        with pytest.raises(bw.errors.TracerError, match="holder.w"):
            compiled(X)
        holder.w = np.ones(3)
    assert holder.w.tolist() == [1.0, 1.0, 1.0]


def test_an_argument_that_is_written_to_must_not_be_it() -> None:
    def fun(x):
        x[0] = 5.0
        return np.sum(x * holder.w)

    compiled = bw.jit(fun)
    for k in range(3):
        holder.w = np.full(3, float(k))
        assert compiled(np.ones(3)) == 7.0 * k
        with pytest.raises(SignatureError, match="shares memory with an array that the function captures"):
            compiled(holder.w)
        with pytest.raises(SignatureError, match="shares memory"):
            compiled(holder.w[::-1])


def test_what_is_bound_anew_while_the_program_runs_stays_alive() -> None:
    def rebinding(y):
        holder.w = [np.zeros(100_000), 0.0]
        return y

    def fun(x):
        y = bw.pure_callback(rebinding, x, x)
        return np.sum(holder.w[0] * y[0]) * holder.w[1]

    compiled = bw.jit(fun)
    for k in range(1, 5):
        holder.w = [np.full(100_000, float(k)), 2.0]
        assert compiled(X) == 200_000 * k


class Network:
    """As people write a model: parameters are attributes, each step binds them anew."""

    def __init__(self, sizes: list[int]) -> None:
        rng = np.random.default_rng(0)
        self.weights = [rng.normal(size=pair) / np.sqrt(pair[0]) for pair in itertools.pairwise(sizes)]
        self.biases = [np.zeros(n) for n in sizes[1:]]
        self.rate = 0.1

    def predict(self, x):
        for w, b in zip(self.weights[:-1], self.biases[:-1], strict=True):
            x = np.tanh(x @ w + b)
        return x @ self.weights[-1] + self.biases[-1]

    def loss(self, x, y):
        return np.mean((self.predict(x) - y) ** 2)

    def loss_of(self, weights, x, y):
        for w, b in zip(weights, self.biases, strict=True):
            x = np.tanh(x @ w + b)
        return np.mean((x - y) ** 2) + 1e-3 * self.rate


def test_a_training_loop_compiles_a_few_times_at_most() -> None:
    network = Network([2, 5, 3])
    x, y = np.random.default_rng(1).normal(size=(8, 2)), np.zeros((8, 3))
    loss, gradient = bw.jit(network.loss), bw.grad(network.loss_of)
    for step in range(12):
        network.rate = 0.1 / (1 + step)
        change = gradient(network.weights, x, y)
        network.weights = [w - network.rate * d for w, d in zip(network.weights, change, strict=True)]
        network.biases[0] = network.biases[0] + 0.01
        network.biases = list(network.biases)
        np.testing.assert_allclose(loss(x, y), network.loss(x, y), rtol=1e-13)
    assert loss._traces <= 3 and gradient._traces <= 3
