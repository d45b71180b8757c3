"""Variables that are None or a list, dictionary or object, as data decide: `best = None`, until a branch finds one."""

import dataclasses

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import TracerBoolError, UnsupportedError
from tests.unit.frontend.comparing import as_python, compare

PLACES = np.linspace(0.0, 1.0, 15)


class Found:
    def __init__(self, place, cost):
        self.place, self.cost = place, cost

    def weighted(self, k):
        return k * self.place if self.cost > 0.1 else self.place - k


@dataclasses.dataclass
class Record:
    cost: float
    path: np.ndarray


def of_lists(x, y):
    best, lowest = None, np.inf
    for place in PLACES:
        cost = (place - x) ** 2 + place * y
        if cost < lowest:
            lowest, best = cost, [place * x, place * y]
    return lowest + best[0] * x + best[1]


def of_dictionaries(x, y):
    best, lowest = None, np.inf
    for number, place in enumerate(PLACES):
        cost = (place - x) ** 2 + place * y
        if cost < lowest:
            lowest, best = cost, {"cost": cost, "name": "place", "at": (number, [place * x])}
    return best["cost"] * y + best["at"][0] + best["at"][1][0]


def of_objects(x, y):
    best = None
    for place in PLACES:
        cost = (place - x) ** 2 + y
        if best is None or cost < best.cost:
            best = Found(place * x, cost)
    return best.weighted(2.0) + best.place


def of_dataclasses(x, y):
    best = None
    for place in PLACES:
        cost = (place - x) ** 2
        if best is None or cost < best.cost:
            best = Record(cost, np.array([x * place, y]))
    return best.cost + best.path @ best.path


def as_attribute(x, y):
    class Search:
        best = None
        lowest = np.inf

    search = Search()
    for place in PLACES:
        cost = (place - x) ** 2
        if cost < search.lowest:
            search.lowest, search.best = cost, [x * place, y]
    return search.best[0] + search.best[1]


def of_copies_of_an_array(x, y):
    point, best, lowest = np.array([x, y]), None, np.inf
    for number in range(12):
        point += 0.1 * np.sin(point)
        cost = np.sum((point - 1.0) ** 2)
        if cost < lowest:
            best, lowest = {"point": point.copy(), "number": number}, cost
    return np.sum(best["point"]) + best["number"]


def left_when_found(x, y):
    found = None
    for number in range(30):
        t = x + 0.13 * number
        if t > y:
            found = [t, number]
            break
    return -x if found is None else found[0] * found[1]


def returned_by_a_function(x, y):
    def steps(a):
        if a <= 0.25:
            return None
        return {"a": a, "b": [a * 2, a ** 2]}

    found = steps(x)
    return y if found is None else found["a"] * found["b"][1]


def made_last(x, y):
    if x > 0.25:
        pair = None
    else:
        pair = [x, y]
    return x * y if pair is None else pair[0] - pair[1]


def unpacked_and_gone_over(x, y):
    pair = None
    if x > 0.25:
        pair = [x, y * 2]
    total = 0.0
    if pair:
        first, second = pair
        total = first * second + len(pair)
        for one in pair:
            total += one
    return total


def in_nested_branches(x, y):
    pair = None
    if x > 0.1:
        if y > 0.45:
            pair = [x, y]
    else:
        pair = [2 * x, y]
    if x > 0.9:
        pair = [y, y]
    return x if pair is None else pair[0] + sum(pair)


def by_two_names(x, y):
    first = second = None
    if x > 0.25:
        first = [x, y]
        second = first
    if second is not None:
        second = [second[0], 2 * second[1]]
    return 0.0 if second is None else second[1] + first[0]


PROGRAMS = [of_lists, of_dictionaries, of_objects, of_dataclasses, as_attribute, of_copies_of_an_array, left_when_found,
            returned_by_a_function, made_last, unpacked_and_gone_over, in_nested_branches, by_two_names]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda one: one.__name__)
@pytest.mark.parametrize("x", [0.05, 0.31, 0.97])
@pytest.mark.parametrize("y", [0.41, 0.52])
def test_as_python(program, x, y) -> None:
    compare(program, x, y)


@pytest.mark.parametrize("program", [of_lists, of_dictionaries, of_objects, of_dataclasses, as_attribute], ids=lambda one: one.__name__)
def test_their_loops_are_native(program) -> None:
    assert "unrolled:" not in bw.jit(program).explain(0.31, 0.41)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda one: one.__name__)
def test_gradients(program) -> None:
    value, slope = bw.value_and_grad(program)(0.31, 0.52)
    assert value == pytest.approx(program(0.31, 0.52), rel=1e-12)
    assert slope == pytest.approx((program(0.31 + 1e-6, 0.52) - program(0.31 - 1e-6, 0.52)) / 2e-6, rel=1e-6, abs=1e-7)


def test_none_has_no_items() -> None:
    def program(x):
        pair = None
        if x > 0:
            pair = [x, 2 * x]
        return pair[1]

    assert bw.jit(program)(1.5) == 3.0
    with pytest.raises(TypeError, match="there is None"):
        bw.jit(program)(-1.5)


def test_what_jit_returns() -> None:
    def program(x):
        return [x, {"twice": 2 * x}] if x > 0 else None

    assert bw.jit(program)(1.5) == [1.5, {"twice": 3.0}]
    assert bw.jit(program)(-1.5) is None


def test_they_are_not_changed_afterwards() -> None:
    def program(x):
        pair = None
        if x > 0:
            pair = [x, 2 * x]
        if pair is not None:
            pair[0] = 5.0
        return x if pair is None else pair[0]

    with pytest.raises(TracerBoolError, match="a list is changed"):
        bw.jit(program)(1.5)


def test_another_name_is_not_changed_afterwards() -> None:
    def program(x):
        pair, other = None, [1.0, x]
        if x > 0:
            other = [x, x]
            pair = other
        other[0] = 5.0
        return x if pair is None else pair[0]

    with pytest.raises(UnsupportedError, match="a list is changed"):
        bw.jit(program)(1.5)


def test_arrays_in_them_that_are_written_to_are_refused() -> None:
    def program(x):
        point, best, lowest = np.array([x, 2 * x]), None, np.inf
        for _ in range(12):
            point += 0.1 * np.sin(point)
            if np.sum(point) < lowest:
                best, lowest = {"point": point}, np.sum(point)
        return np.sum(best["point"])

    with pytest.raises(UnsupportedError, match="another name of an array"):
        bw.jit(program)(0.3)


def test_lists_without_numbers_are_known_to_the_end_of_the_block_alone() -> None:
    def program(x):
        words = None
        if x > 0:
            words = ["a", "b"]
        return x if words is None else 2 * x

    def behind(x):
        for words in [None]:
            if x > 0:
                words = ["a", "b"]
        return x if words is None else 2 * x

    assert [bw.jit(program)(x) for x in (1.5, -1.5)] == [3.0, -1.5]
    with pytest.raises(TracerBoolError, match="words is"):
        bw.jit(behind)(1.5)


def test_a_side_that_ends_before_all_that_it_assigns_to_is_known() -> None:
    def program(x):
        product, steps, last = None, 0, {"row": np.zeros(2)}
        while steps < 20:
            steps += 1
            row = np.array([x, 0.4 * steps])
            last["row"] = row
            if 0.4 * steps > 10 * x:
                break
            product = row if product is None or steps > 3 else product * row
        last["row"] += 1.0
        return np.sum(product)

    with pytest.raises(ValueError, match=r"after the (branch|loop) dict\['row'\] is one of"):
        bw.jit(program)(0.3)


class Filter:
    """Has arrays of None until there is a measurement, as filters of a well-known library have."""

    def __init__(self):
        self.x = np.zeros(2)
        self.measured = np.array([[None] * 2]).T
        self.likelihood = None

    def step(self, z, gain):
        residual = z - self.x[0]
        self.x = np.array([self.x[0] + gain * residual, self.x[1] + 0.1 * residual])
        self.measured = np.array([[z, residual]]).T
        self.likelihood = None

    def log_likelihood(self):
        if self.likelihood is None:
            self.likelihood = -np.sum(self.measured ** 2)
        return self.likelihood


def test_arrays_of_none_are_no_values_before_the_first_iteration() -> None:
    def program(gain, z):
        model, total = Filter(), 0.0
        for one in z:
            model.step(one, gain)
            total += model.log_likelihood()
        return total + model.x[1] + np.sum(model.measured)

    z = np.sin(np.arange(40.0))
    compare(program, 0.3, z)
    assert "unrolled:" not in bw.jit(program).explain(0.3, z)


def _some(x):
    found = [None] * 4
    for t in range(4):
        if x[0] * t > 0.4:
            found[t] = x[1] * t
    return found


@pytest.mark.parametrize("program", [
    lambda x: sum(v for v in _some(x) if v is not None),
    lambda x: np.mean([v for v in _some(x) if v is not None]),
    lambda x: sum(v * v for v in _some(x) if v),
    lambda x: float(len([v for v in _some(x) if v is None])) * x[0],
], ids=["sum", "mean", "truth", "length"])
def test_what_comprehensions_keep_is_there(program):
    as_python(program, np.array([0.3, 0.5, 0.7]), np.array([0.15, 0.5, 0.7]))


def _refracted(d, k):
    return None if d[0] * k > 7 else d * 0.9 + 0.1


def _rays(x, what):
    """d is None or an array, perhaps the one from before the iteration."""
    d, e, hits = x * 1.0, x * 1.0, 0.0
    for k in range(12):
        if d is None:
            continue
        e = d
        if d[1] < 0.45:
            d = _refracted(d, k)
        if what == "written in the loop":
            e[0] *= 1.01
        hits += k
    if what == "written after the loop":
        e[1] = 3.0
    return hits + (0.0 if d is None else np.sum(d)) + np.sum(e)


@pytest.mark.parametrize("what", ["nothing", "written in the loop", "written after the loop"])
def test_arrays_that_may_be_none_and_have_other_names(what):
    for x in (np.array([0.3, 0.2]), np.array([0.9, 0.4]), np.array([0.5, 0.5])):
        try:
            found = bw.jit(_rays)(x, what)
        except (UnsupportedError, TracerBoolError) as error:
            assert what != "nothing", error
        else:
            np.testing.assert_allclose(found, _rays(x, what), rtol=1e-13)


def with_a_length_that_data_decide(x):
    best = None
    if x[0] > 0:
        best = [v for v in x if v > 0.2]
    return 0.5 * x[1] if best is None else sum(best) * len(best)


def asked_for_all(x):
    best = None
    if x[0] > 0:
        best = [v for v in x if v > 0.2]
    if best is None:
        return x[1]
    found = max(best) + np.mean(best) + best[0] * best[-1] + sum(k * v for k, v in enumerate(best)) + np.sum(np.array(best) ** 2)
    return found + len(sorted(best)) * sorted(best)[0] + (x[1] if best else x[2]) + (x[3] if x[2] in best else 1.0)


@pytest.mark.parametrize("program", [with_a_length_that_data_decide, asked_for_all], ids=lambda one: one.__name__)
def test_lists_of_nobody_knows_how_many(program):
    x = np.array([0.63, -1.21, 0.84, -0.43, 1.52, 0.27])
    as_python(program, x, -x, 2.0 - x)
