"""Variables that have a value or none, as data decide: reading them is what Python does, or its exception."""

from __future__ import annotations

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import TracerError
from bwcompiler.frontend import trace
from tests.unit.frontend.comparing import as_python

X = np.array([0.53, 2.11, -1.23, 1.57, 3.04, -0.21, 1.13, 2.71, 0.37, -2.3, 1.91, 0.35])


def one_sided(x):
    if x > 0:
        y = x * 3
    return y


def last_before(x):
    for v in x:
        if v > 0.5:
            break
        last = v * 2
    return last


def density(x):
    """Whether the loop has bound it is what the next test says."""
    for base, factor in ((1.0, 2.0), (2.0, 3.0), (5.0, 1.0)):
        if x < base:
            break
        found = factor * x
    else:
        found = x * x
    if x < 1.0:
        found = 7 * x
    return found * 2 + found


def self_consistent(x):
    """No iteration is left before the first has bound what is read."""
    density, energy = np.eye(3) * x[0], 0.0
    for k in range(30):
        matrix = density + np.diag(x)
        now = np.sum(matrix * density)
        if k > 0 and abs(now - energy) < 1e-9:
            break
        energy = now
        e, c = np.linalg.eigh(matrix)
        density = 0.4 * c @ np.diag(np.tanh(e)) @ c.T
    return np.sum(c[:, 0] * x) ** 2 + energy + e[0]


def while_above(x):
    error = x
    while error > 1e-3:
        new = error * 0.5 + 0.01 * error * error
        error = new * 0.7
    return new


def last_positive(x):
    for k in range(len(x)):
        if x[k] > 0:
            last, place = x[k], k
    return last * place


def changed(x):
    for v in x:
        if v > 0.3:
            s = v
        if v > 0.6:
            s *= 2
    return s


def text(x):
    if x > 0:
        mode = "low"
    if x > 1:
        mode = "high"
    return 2.0 * x if mode == "low" else 3 * x


LINE = np.linspace(0.1, 1.0, 12)


@pytest.mark.parametrize(("fun", "args"), [
    (one_sided, (2.0, -1.0)), (last_before, (LINE, LINE + 1, LINE * 0.2)), (density, (0.5, 1.5, 3.0, 7.0)),
    (self_consistent, (np.array([0.3, 0.5, 1.0]),)), (while_above, (1.0, 0.3, 1e-5)),
    (last_positive, (np.sin(np.arange(20.0)), -np.ones(20))), (changed, (LINE, LINE * 0.5, LINE * 0)), (text, (0.5, 1.5, -1.0))])
def test_variables_that_may_have_no_value(fun, args) -> None:
    value, gradient = bw.jit(fun), bw.grad(fun)
    for x in args:
        try:
            expected = fun(x)
        except UnboundLocalError:
            for run in (value, gradient):
                with pytest.raises(UnboundLocalError, match="cannot access local variable"):
                    run(x)
            continue
        assert value(x) == pytest.approx(expected, rel=1e-12)
        slope = (fun(x + 1e-6) - fun(x - 1e-6)) / 2e-6
        assert np.sum(gradient(x)) == pytest.approx(slope, rel=1e-6)


def test_functions_inside_that_read_one() -> None:
    def around(x):
        if x[0] > 0:
            c = x[1]

        def inner():
            return c * 2 if c > 0 else -c
        return inner()

    for x in ([1.0, 2.0], [1.0, -2.0]):
        assert bw.jit(around)(np.array(x)) == around(np.array(x))
    with pytest.raises(NameError, match="has no value"):
        bw.jit(around)(np.array([-1.0, 2.0]))


def test_lists_that_one_side_makes() -> None:
    def made(x):
        if x > 0:
            y = [x, 2 * x]
        return y[0]

    with pytest.raises(bw.errors.TracerError, match=r"y may have no value here(?s:.)*only one side"):
        bw.jit(made)(1.0)


# ----- None or an integer, in whose place there is no nan
def last_above(x):
    k = None
    for i, v in enumerate(x):
        if v > 1.0:
            k = i
    return k


def compared(x):
    best = None
    for v in x:
        if v > 1.0:
            best = v
    return x[0] if best > 2.0 else x[1]


def largest(x):
    best = None
    for v in x:
        if v > 1.0:
            best = v
    return max(best, 0.5)


def as_an_index(x):
    s, best = 0.0, None
    for i, v in enumerate(x):
        if best is not None and x[best] > v:
            s += x[best] * v
        if best is None or v > x[best]:
            best = i
    return s + x[best]


def compared_if_it_is_there(x):
    s, best = 0.0, None
    for v in x:
        if best and v > best:
            s += v
        if best is None or v < best:
            best = v
        if v > 0.3 and not (best is not None and best > 0):
            s -= best
    return s


@pytest.mark.parametrize("use", [lambda x: last_above(x) + 1, lambda x: x[0] * last_above(x), lambda x: x[last_above(x)].sum(), compared,
                                 largest], ids=["sum", "product", "index", "comparison", "maximum"])
def test_none_is_no_integer(use):
    compiled = bw.jit(use)
    assert compiled(X) == use(X)
    with pytest.raises(TypeError, match="a number or array is needed here"):
        compiled(0 * X)
    assert compiled(X) == use(X)


def test_what_is_asked_for_is_not_checked():
    as_python(as_an_index, X, -X)
    as_python(compared_if_it_is_there, X, -X)

    def callbacks(values):
        return sum((value.op.name == "callback") + sum(callbacks(value.attrs[name].body) for name in value.op.regions) for value in values)
    assert callbacks(trace(as_an_index, (X,)).graph.body) == callbacks(trace(compared_if_it_is_there, (X,)).graph.body) == 0
    assert callbacks(trace(lambda x: last_above(x) + 1, (X,)).graph.body) == 1


def added_where_it_is_one(x):
    def look(v):
        if v > 1.0:
            return v * v
        elif v > 0:
            return v
    total, y = 0.0, np.zeros(3)
    for v in x:
        found = look(v)
        if found is not None:
            total += found
            y[1] -= found
            y *= found
            y[0] = found
    return total + y.sum()


def test_a_choice_is_added_in_place():
    as_python(added_where_it_is_one, X, -X)


# ----- variables that have no value yet, as exceptions
def found_first(x):
    best = x[0] + 100.0
    for v in x:
        try:
            if v < least:  # noqa: F821
                least = v
        except UnboundLocalError:
            least = v * 1.0
        best = best * 0.5 + least
    return best


def summed_up(x):
    for v in x:
        try:
            total += v * v  # noqa: F821
        except UnboundLocalError:
            total = 3.0 * v
    return total


def once(x):
    try:
        y = y * x[0]  # noqa: F821
    except UnboundLocalError:
        y = x[1]
    return y


def of_a_function_around(x):
    def summed():
        s = 0.0
        for v in x:
            try:
                s += later
            except UnboundLocalError:
                s += 100.0
            except NameError:
                s += v
        return s
    found = summed()
    later = 2.0
    return found * later


@pytest.mark.parametrize("program", [found_first, summed_up, once, of_a_function_around], ids=lambda program: program.__name__)
def test_handlers_for_variables_without_value(program):
    as_python(program, np.array([0.4, 0.9, -0.3, 0.7]), np.array([-0.4, 0.2, 1.3, -0.7]))


def test_what_is_raised_for_variables_without_value():
    def read_in_a_loop(x):
        y = 0.0
        for v in x:
            y = before + v  # noqa: F821
        before = 1.0
        return y + before

    def read_in_a_side(x):
        if x[0] > 0:
            x = x + later  # noqa: F821
        later = 3.0
        return x * later
    for program in (read_in_a_loop, read_in_a_side):
        with pytest.raises(UnboundLocalError, match="cannot access local variable '(before|later)'"):
            bw.jit(program)(np.ones(3))
    np.testing.assert_allclose(bw.jit(read_in_a_side)(-np.ones(3)), -3 * np.ones(3))


def _damped(x):
    """The text says that w may be from the iteration before; but a loop whose first test is known binds it."""
    v = x.copy()
    for it in range(20):  # noqa: B007
        if np.linalg.norm(v) < 0.05:
            break
        step = 1.0
        while step > 1e-3:
            w = v.copy()
            w[1:] -= step * 0.4 * v[1:]
            w[0] *= 1 - 0.3 * step
            if np.linalg.norm(w) < 0.9 * np.linalg.norm(v):
                break
            step /= 2
        v = w
    return np.sum(v) + it


def _from_an_iteration_before(x):
    total = 0.0
    for i in range(12):
        if x[0] * i > 1.0 and i % 3 == 1:
            y = x[1] * i
        if x[0] * i > 3.0:
            total += y
    return total


@pytest.mark.parametrize("program", [_damped, _from_an_iteration_before])
def test_variables_that_each_iteration_binds(program):
    as_python(program, np.array([0.7, 0.4]), np.array([0.8, 0.7]))
    assert "unrolled" not in bw.jit(program).explain(np.array([0.7, 0.4]))


class Bag:
    """Nothing is set at first."""


def attribute_of_one_side(x):
    bag = Bag()
    if x[0] > 0:
        bag.extra = x[1] * 2
    return bag.extra * x[0]


def asked_for(x):
    bag = Bag()
    if x[0] > 0:
        bag.extra = x[1] * 2
    return (bag.extra if hasattr(bag, "extra") else 3 * x[2]) + getattr(bag, "extra", 5.0) * x[1]


def best_so_far(x):
    bag = Bag()
    for k in range(len(x)):
        if x[k] > 1.0 and (not hasattr(bag, "best") or x[k] > bag.best):
            bag.best, bag.place = x[k], k
    return bag.best ** 2 + bag.place


def kinds_of_objects(x):
    bags = []
    for v in x:
        bag = Bag()
        if v > 0:
            bag.above = v
        else:
            bag.below = v
        bags.append(bag)
    return sum(getattr(bag, "above", 0.0) ** 2 for bag in bags) + sum(bag.below if hasattr(bag, "below") else 0.0 for bag in bags)


@pytest.mark.parametrize("program", [attribute_of_one_side, asked_for, best_so_far, kinds_of_objects])
def test_attributes_that_data_bind(program):
    as_python(program, X, X * 0.9)
    if program in (asked_for, kinds_of_objects):
        as_python(program, -X)
    else:
        with pytest.raises(AttributeError, match="'Bag' object has no attribute '(extra|best)'"):
            bw.jit(program)(-np.abs(X))


def test_all_attributes_are_refused_where_data_bind_one():
    def names(x):
        bag = Bag()
        if x > 0:
            bag.extra = x
        return len(vars(bag)) * x

    with pytest.raises(TracerError, match="of which data say whether it has .extra"):
        bw.jit(names)(1.0)


# ----- attributes that are new in a loop, in some of its iterations
def set_in_some(x):
    bag, total = Bag(), 0.0
    for k in range(len(x)):
        if hasattr(bag, "held"):
            total = total + bag.held
        if np.sin(3 * x[k]) > 0.3:
            bag.held = x[k] * k
    return total


def set_before_the_end(x):
    bag, total, k = Bag(), 0.0, 0
    while total < 4.0:
        if x[k] > 1.0:
            bag.held = x[k] * k
        total = total + abs(x[k])
        k += 1
    return total + bag.held


def set_where_it_leaves(x):
    bag, total = Bag(), 0.0
    for k in range(len(x)):
        total = total + abs(x[k])
        if total > 3.0:
            bag.held = k * total
            break
    return total * bag.held


def set_in_a_loop_inside(x):
    bag, total = Bag(), 0.0
    for v in x:
        for k in range(10):
            if v * k > 5.0:
                bag.held = v * k
        total = total + getattr(bag, "held", v)
    return total


def kind_of_the_last(x):
    bag, total = Bag(), 0.0
    for v in x:
        if v > 1.0:
            bag.kind = "hot"
        elif v > 0.0:
            bag.kind = "warm"
        total = total + v * (getattr(bag, "kind", "cold") == "warm")
    return total


class Stump:
    def fit(self, x, shift):
        best = -np.inf
        for k in range(len(x)):
            gain = np.sin(x[k] + shift)
            if gain > best:
                best = gain
                self.value = gain * x[k]
        return self


def fitted(x):
    model, total = [], 0.0
    for r in range(12):
        stump = Stump().fit(x, 0.3 * r + total)
        model.append(stump)
        total = total + 0.1 * stump.value
        if total > 2.5:
            break
    return total + sum(stump.value for stump in model)


@pytest.mark.parametrize("program", [set_in_some, set_before_the_end, set_where_it_leaves, set_in_a_loop_inside, kind_of_the_last, fitted])
def test_attributes_that_some_iterations_set(program):
    as_python(program, X, X * 0.9)
    assert "unrolled" not in bw.jit(program).explain(X)


def test_attributes_that_no_iteration_sets():
    def program(x):
        bag = Bag()
        for k in range(20):
            if x * k > 100.0:
                bag.held = x * k
        return bag.held

    assert bw.jit(program)(6.0) == 114.0
    with pytest.raises(AttributeError, match="'Bag' object has no attribute 'held'"):
        bw.jit(program)(0.3)
