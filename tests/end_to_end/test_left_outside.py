"""What a function stores outside while it is traced: undone where a trace is given up, and taken away before it is traced once more."""

import collections

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import BwError, EscapedTracerError, StaleValueWarning

X = np.array([1.0, 2.0, 3.0])
pytestmark = pytest.mark.filterwarnings("ignore::bwcompiler.errors.StaleValueWarning")
seen, memo, recent, met, latest = [], collections.OrderedDict(), collections.deque([0.5], maxlen=2), set(), None


class Slotted:
    __slots__ = ("last", "steps")

    def __init__(self):
        self.steps = 0


class Model:
    def __init__(self):
        self.cache, self.table, self.history, self.calls, self.parts = None, None, [], 0, {"a": []}
        self.slotted = Slotted()

    def loss(self, x):
        """An array that the function makes takes traced values in a loop: the first trace is given up."""
        self.calls += 1
        self.slotted.steps += 1
        if self.cache is None:
            self.cache = np.cumsum(x)
        if self.table is None:
            self.table = np.arange(3.0) ** 2
        self.history.append(self.cache.sum())
        self.parts["a"].append({"x": x})
        self.slotted.last = x * 2
        squares = np.zeros(3)
        for i in range(3):
            squares[i] = self.cache[i] ** 2
        return (squares * self.table).sum() + self.calls * len(self.history) * x[0]


def gradient(x):
    return np.array([2 * (x[0] + x[1]) + 8 * x.sum() + 1, 2 * (x[0] + x[1]) + 8 * x.sum(), 8 * x.sum()])


def test_a_trace_that_is_given_up_leaves_what_was_there_before():
    model = Model()
    value, found = bw.value_and_grad(model.loss)(X)
    assert value == Model().loss(X)
    np.testing.assert_allclose(found, gradient(X))
    assert (model.calls, model.slotted.steps, len(model.history), len(model.parts["a"])) == (1, 1, 1, 1)


def test_the_next_trace_finds_what_was_there_before():
    model = Model()
    bw.grad(model.loss)(X)
    model.calls, model.slotted.steps = 0, 0
    table = model.table
    for fun, x in [(bw.grad(model.loss), X.astype("float32")), (bw.value_and_grad(model.loss), X * 3)]:
        found = fun(x)
        np.testing.assert_allclose(found[1] if isinstance(found, tuple) else found, gradient(x), rtol=1e-5)
        model.calls = 0
    assert len(model.history) == 1
    assert model.table is table                    # which is computed of known things alone


def test_traced_values_that_are_left_are_told():
    model = Model()
    bw.grad(model.loss)(X)
    for left in (model.cache, model.history[0], model.slotted.last, model.parts["a"][0]["x"]):
        with pytest.raises(EscapedTracerError, match="return the value from the function instead of storing it elsewhere"):
            left + 1


def test_other_functions_are_told_of_traced_values_that_are_left():
    model = Model()
    bw.grad(model.loss)(X)
    with pytest.raises(EscapedTracerError, match="a traced value is used after"):
        bw.grad(lambda x: np.sum(x * model.cache))(X)
    with pytest.raises(EscapedTracerError, match="a traced value is used after"):
        bw.grad(lambda x: np.sum(x * model.history[0]))(X)


def test_what_others_store_since_stays():
    model = Model()
    bw.grad(model.loss)(X)
    model.history.append(7.0)
    model.cache = X * 2
    bw.grad(model.loss)(X * 2)
    bw.value_and_grad(model.loss)(X * 2)
    assert model.history[0] == 7.0 and len(model.history) == 2
    assert model.cache[0] == 2.0


def refused(x):
    seen.append(x)
    memo["sum"] = x.sum()
    memo.move_to_end("first")
    recent.append(x)
    recent.append(x[0])
    met.add(len(seen))
    seen.pop(0)
    return x.sum() * len(format(hash(x[0])))


def test_a_function_that_is_refused_leaves_nothing():
    first = np.ones(2)
    seen[:], met_before = [first], set(met)
    memo.clear()
    memo.update(first=1, second=2)
    with pytest.raises(BwError):
        bw.grad(refused)(X)
    assert seen[0] is first and len(seen) == 1
    assert list(memo.items()) == [("first", 1), ("second", 2)]
    assert list(recent) == [0.5]
    assert met == met_before


def failing(x):
    seen.append(x)
    raise KeyError("of the user's")


def test_an_error_of_the_users_leaves_nothing():
    seen.clear()
    with pytest.raises(KeyError):
        bw.grad(failing)(X)
    assert seen == []


def of_global(x):
    global latest
    latest = x * 2 if latest is None else latest + x
    kept = np.zeros(3)
    kept[0] = latest[1]
    return kept.sum() + x[0]


def of_variable():
    last = None

    def fun(x):
        nonlocal last
        last = x**2 if last is None else last + x
        kept = np.zeros(3)
        kept[0] = last[1]
        return kept.sum()
    return fun


@pytest.mark.parametrize(("make", "expected"), [(lambda: of_global, lambda x: np.eye(len(x))[0] + 2 * np.eye(len(x))[1]),
                                                (of_variable, lambda x: 2 * x * np.eye(len(x))[1])])
def test_names_outside(make, expected):
    fun = make()
    for x in (X, X[:2], X):
        np.testing.assert_allclose(bw.grad(fun)(x), expected(x))


def test_readers_are_warned_nevertheless():
    with pytest.warns(StaleValueWarning, match=r"self.cache is assigned to while the function is traced"):
        bw.grad(Model().loss)(X)


def test_traces_of_transforms_of_transforms():
    model = Model()
    x = X[:2]
    def fun(x):
        model.history.append(x[0])
        return np.sum(x**3) * len(model.history)
    np.testing.assert_allclose(bw.hessian(fun)(x), np.diag(6 * x))
    np.testing.assert_allclose(bw.jacfwd(bw.grad(fun))(np.array([2.0, 1.0])), np.diag([12.0, 6.0]))
