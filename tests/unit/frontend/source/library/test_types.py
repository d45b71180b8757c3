"""What a traced value is, asked in the many places where programs ask: isinstance, type, match, functools.singledispatch, hasattr."""

import abc
import dataclasses
import functools
import numbers
import operator
from collections import namedtuple

import numpy as np
import pytest

import bwcompiler as bw
from tests.unit.frontend.comparing import as_python


class Holder:
    """Asks for the type of what it holds in methods that Python calls."""

    def __init__(self, w):
        self.w = w

    def number(self):
        return 2.0 if isinstance(self.w, np.ndarray) else 1.0

    plain = property(number)

    @functools.cached_property
    def cached(self):
        return 2.0 if isinstance(self.w, np.ndarray) else 1.0

    def __iter__(self):
        return iter([2.0 if isinstance(self.w, np.ndarray) else 1.0])

    def __enter__(self):
        return 2.0 if isinstance(self.w, np.ndarray) else 1.0

    def __exit__(self, *found):
        return None

    def __getattr__(self, name):
        if name != "other":
            raise AttributeError(name)
        return 2.0 if isinstance(self.w, np.ndarray) else 1.0


class Described:
    def __get__(self, instance, owner=None):
        return 2.0 if isinstance(instance.w, np.ndarray) else 1.0


class WithDescriptor:
    value = Described()

    def __init__(self, w):
        self.w = w


class Noted(type):
    def __call__(cls, w):
        made = super().__call__(w)
        made.value = 2.0 if isinstance(w, np.ndarray) else 1.0
        return made


class OfNoted(metaclass=Noted):
    def __init__(self, w):
        pass


class Base(abc.ABC):  # noqa: B024
    def __init__(self, w):
        self.value = 2.0 if isinstance(w, np.ndarray) else 1.0


class Derived(Base):
    def __init__(self, w):
        super().__init__(w)


@dataclasses.dataclass
class Record:
    w: object
    value: float = 0.0

    def __post_init__(self):
        self.value = 2.0 if isinstance(self.w, np.ndarray) else 1.0


class Named(namedtuple("Named", "w")):
    __slots__ = ()

    def __new__(cls, w):
        return super().__new__(cls, 2.0 if isinstance(w, np.ndarray) else 1.0)


@functools.singledispatch
def dispatched(v):
    return 1.0


@dispatched.register(np.ndarray)
def _(v):
    return 2.0


@dispatched.register(float)
def _(v):
    return 3.0


class Dispatching:
    @functools.singledispatchmethod
    def method(self, v):
        return 1.0

    @method.register(np.ndarray)
    def _(self, v):
        return 2.0


def matched(v):
    match {"key": v}:
        case {"key": float()}:
            return 3.0
        case {"key": np.ndarray() as found}:
            return 2.0 + 0.0 * found.ndim
        case _:
            return 1.0


def entered(v):
    with Holder(v) as found:
        return found


def with_locals(v):
    return 2.0 * len(locals()) if isinstance(v, np.ndarray) else 1.0


def evaluated(v):
    return 2.0 if eval("isinstance(v, np.ndarray)") else 1.0


QUESTIONS = {
    "property": lambda v: Holder(v).plain, "cached_property": lambda v: Holder(v).cached, "iter": lambda v: sum(Holder(v)),
    "starred": lambda v: max(*Holder(v), 0.0), "with": entered, "getattr": lambda v: Holder(v).other, "descriptor": lambda v: WithDescriptor(v).value,
    "metaclass": lambda v: OfNoted(v).value, "super": lambda v: Derived(v).value, "dataclass": lambda v: Record(v).value,
    "new": lambda v: Named(v).w, "singledispatch": dispatched, "singledispatchmethod": lambda v: Dispatching().method(v), "match": matched,
    "locals": with_locals, "eval": evaluated, "attrgetter": lambda v: operator.attrgetter("plain")(Holder(v)),
    "methodcaller": lambda v: operator.methodcaller("number")(Holder(v)), "class": lambda v: 2.0 if v.__class__ is np.ndarray else 1.0,
    "abstract": lambda v: 3.0 if isinstance(v, numbers.Real) else 1.0, "float": lambda v: 3.0 if isinstance(v, float) else 1.0,
    "type": lambda v: {np.ndarray: 2.0, float: 3.0, np.float64: 4.0}[type(v)], "hasattr": lambda v: 2.0 if hasattr(v, "shape") else 1.0,
    "hasattr of arrays": lambda v: 2.0 if hasattr(v, "__len__") else 1.0,
    "hasattr of functions": lambda v: 2.0 if hasattr(v, "__call__") or hasattr(v, "__dict__") else 1.0,         # noqa: B004
}


@pytest.mark.parametrize("value", [np.array([1.0, 2.0]), 1.5, np.float64(1.5), np.array(2.0)], ids=["array", "float", "float64", "0-d"])
@pytest.mark.parametrize("name", QUESTIONS)
def test_types(name, value):
    ask = QUESTIONS[name]
    np.testing.assert_array_equal(bw.jit(lambda v: ask(v) * v)(value), ask(value) * value)


def test_without_source():
    names = {"np": np}
    exec("def f(x):\n    return 2.0 * x if isinstance(x, np.ndarray) else x", names)
    np.testing.assert_array_equal(bw.jit(names["f"])(np.ones(2)), [2.0, 2.0])


def test_of_what_has_escaped():
    kept = []
    with pytest.warns(bw.errors.StaleValueWarning):
        bw.jit(lambda x: kept.append(x) or x * 2.0)(np.ones(2))
    assert not isinstance(kept[0], np.ndarray)


def sums_of_truths(x):
    """Of Python's truth values the sum is 2, of NumPy's it is True."""
    n, total = 0, 0.0
    while n < x[0]:
        n += 1
        total += x[1] * ((n > 1) + (n > 2)) + ((x[0] > 1) + (x[1] > 0.1)) * x[0]
    return total + ((not n > 9) + True) + (x[0] > n + True)


@dataclasses.dataclass
class Checked:
    w: float
    flag: bool
    scale: float = 2.0

    def __post_init__(self):
        if not isinstance(self.flag, bool):
            raise TypeError("flag")
        if self.w < 0.0:
            self.w = -self.w
        self.total = 0.0
        for k in range(20):
            self.total = self.total + self.w * k


class Scaled(Checked):
    def __init__(self, w, flag):
        super().__init__(w=w, flag=flag, scale=3.0)
        self.result = self.total * self.scale


class ScaledTwice(Scaled):
    def __init__(self, w):
        Checked.__init__(self, 2.0 * w, True)
        self.result = self.total


def test_generated_initialisers_that_derived_classes_call_have_their_ends_captured():
    def in_iterations(x, flag):
        total = 0.0
        for k in range(12):
            total = total + Scaled(x * k, flag).result * ScaledTwice(x).result
        return total

    for program in (lambda x, flag: Scaled(x, flag).result, lambda x, flag: ScaledTwice(x).result, in_iterations):
        compiled = bw.value_and_grad(program)
        for x, flag in ((1.5, True), (-1.5, False), (1.5, True)):
            value, slope = compiled(x, flag)
            assert value == pytest.approx(program(x, flag), rel=1e-12)
            assert slope == pytest.approx((program(x + 1e-6, flag) - program(x - 1e-6, flag)) / 2e-6, rel=1e-6)


def in_a_branch(x):
    first, second = x > 1.0, x > 2.0
    return (first + second) * x if x > 0.0 else x


def in_a_loop(x):
    first, second, total = x > 1.0, x > 2.0, 0.0
    for k in range(20):
        total = total + (first + second) * x * k
    return total


def in_a_loop_that_data_end(x):
    first, second = x > 1.0, x > 2.0
    while x < 100.0:
        x = 2.0 * x + (first + second)
    return x


@pytest.mark.parametrize("program", [in_a_branch, in_a_loop, in_a_loop_that_data_end], ids=lambda program: program.__name__)
def test_pythons_truth_values_from_outside_of_a_body_are_added_as_numbers(program):
    compiled = bw.jit(program)
    for x in (3.0, 0.5, 1.5, 3.0):
        assert compiled(x) == program(x), x


def test_truth_values_are_added_as_python_does() -> None:
    as_python(sums_of_truths, np.array([2.7, 0.4]), np.array([4.2, -0.3]))


def test_a_matrix_of_traced_values_is_refused_where_it_is_made():
    def stiffness(x):
        made = x * np.matrix([[1.0, x], [x, 0.0]]) / 2.0
        return np.sum(np.real(made) * 1.0)

    with pytest.raises(bw.errors.UnsupportedError, match=r"(?s)made = x \* np.matrix.*matrix is a subclass.*hint: np.array\(x\), and x @ y"):
        bw.jit(stiffness)(0.5)


def of_truths_and_selections(x):
    s, total = x[x > 0.5], 0.0
    for one, weight in ((np.allclose(x, x), 1.0), (np.array_equal(x, s), 2.0), (x[0] > 1, 4.0), (s, 8.0), (sorted(s), 16.0)):
        total += weight * (isinstance(one, bool) + 3 * isinstance(one, np.ndarray) + 5 * isinstance(one, list) + 7 * (type(one) is np.ndarray))
    return s.sum() * total + sum(sorted(s) + [1.0]) + sum(sorted(s, key=lambda one: -one)[:2]) + len(sorted(s, reverse=True) * 2)


@pytest.mark.usefixtures("assuming")
def test_truths_of_python_and_selections():
    as_python(of_truths_and_selections, np.array([1.5, 0.25, 2.0, 0.75]), np.array([0.75, 3.0, 0.1, 0.2]))
