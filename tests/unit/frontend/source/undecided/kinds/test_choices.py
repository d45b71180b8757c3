"""Variables of which data decides what kind of thing they hold: None or a number, one string, member of an enumeration or object of several."""

import enum
import math

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import TracerBoolError, TracerError
from bwcompiler.frontend.tracing.trace import trace
from tests.unit.frontend.comparing import as_python

X = np.array([0.7, -0.4, 1.3, 0.2, -1.1, 0.9, 0.35, 1.7, -0.6, 0.45, 0.15, -0.25])


def first_above(x):
    found = None
    for i in range(1, len(x)):
        if x[i] > 1.0:
            found = i
            break
    if found is None:
        return np.mean(x)
    return found * 0.1 + x[found] * x[found - 1]


def best_of_pairs(x):
    best, where = np.inf, None
    for k, a in enumerate(np.linspace(-1.0, 1.0, 11)):
        cost = np.sum((x - a) ** 4)
        if cost < best:
            best, where = cost, (k, a * cost)
    k, a = where
    return best + 0.01 * k + a


def the_one_before(x):
    previous, total = None, 0.0
    for v in x:
        if v > 0.3:
            if previous is not None:
                total += v * previous
            previous = v
    return total if previous is None else total + previous


def until_it_settles(x):
    t, last = x[0], None
    while last is None or abs(t - last) > 1e-3:
        last = t
        t = 0.5 * (t + x[1] / (1.0 + t * t))
    return t + last


def array_or_none(x):
    kept = None
    for k in range(4):
        if x[k] > 0.5:
            kept = x[4:8] * x[k]
    if kept is not None and kept.sum() > 0:
        return np.sum(kept ** 2)
    return -np.sum(x) if kept is None else np.prod(kept)


def words(x):
    mode, energy = "idle", 0.0
    for k in range(12):
        if x[k] > 0.5:
            mode = "heat"
        elif x[k] < -0.3:
            mode = "cool"
        energy += {"idle": 0.1, "heat": 2.0, "cool": -1.0}[mode] * x[k]
        if mode in ("heat", "cool"):
            energy *= 0.9
    return energy if mode != "idle" else 2 * energy


class Mode(enum.Enum):
    OFF = 0
    ON = 1


def members(x):
    mode, t = Mode.OFF, x[0]
    while t < 5.0:
        if t < 1.0:
            mode = Mode.ON
        elif t > 3.0:
            mode = Mode.OFF
        t = t + (0.4 if mode is Mode.ON else 0.3 * (1.1 + np.sin(x[1])))
    return t * (2.0 if mode == Mode.OFF else 1.0)


class Ball:
    def __init__(self, centre, radius):
        self.centre, self.radius = centre, radius

    @property
    def volume(self):
        return math.pow(self.radius, 3) if self.radius > 0.5 else self.radius

    def distance(self, p):
        return math.sqrt((self.centre - p) ** 2 + 0.1) - self.radius


class Wall:
    def __init__(self, place):
        self.place, self.radius, self.volume = place, 0.25, 0.0

    def distance(self, p):
        return abs(self.place - p)


def nearest(x):
    things, total = [Ball(x[0], x[1]), Ball(2.0, 0.3), Ball(x[2], 0.9)], 0.0
    for p in x[3:7]:
        best, nearest = math.inf, None
        for thing in things:
            distance = thing.distance(p)
            if distance < best:
                best, nearest = distance, thing
        total += best * nearest.radius + nearest.volume + nearest.distance(0.5)
        if nearest is things[1]:
            total -= 0.5
    return total


BALL = Ball(1.0, 0.75)


def functions(x):
    activation = np.tanh
    if x[0] > 0.5:
        activation = squared
    elif x[0] < -0.5:
        activation = halved
    return np.sum(activation(x)) if activation is not np.tanh else np.sum(x)


def squared(x):
    return x ** 2


def halved(x):
    if x[1] > 0:
        return x / 2
    return x / 4


def helper(x, limit):
    if x > limit:
        return None
    return x * 2


def of_a_helper(x):
    total = 0.0
    for v in x:
        y = helper(v, 0.65)
        if y is None:
            continue
        total += y ** 2
    return total


class Recorder:
    def __init__(self):
        self.best, self.state = None, "empty"

    def see(self, v):
        if self.best is None or v > self.best:
            self.best = v
            if v > 1.0:
                self.state = "large"


def attributes(x):
    recorder = Recorder()
    for v in x:
        recorder.see(v * v)
    return recorder.best * (2.0 if recorder.state == "large" else 1.0)


def defaults(x):
    scale = None
    if x[0] > 0.5:
        scale = x[1]
    factor = scale or 3.0
    return np.sum(x[2:]) * factor * (1.0 if scale else 2.0)


def numbers_and_functions_of_numpy(x):
    last = None
    for k in range(3):
        if x[k] > 0.1:
            last = x[k]
    if last is None:
        return x[0]
    return np.sqrt(last) + math.exp(last) + max(last, 0.2) + np.sum([last, x[1]]) + x[0] * last + abs(last) + last ** 2 - 1 / last


PROGRAMS = [first_above, best_of_pairs, the_one_before, until_it_settles, array_or_none, words, members, nearest, functions, of_a_helper,
            attributes, defaults, numbers_and_functions_of_numpy]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_as_python(program):
    as_python(program, X, -X, 0.1 * X, np.roll(X, 5), X + 1.0)


def test_what_is_returned_has_to_be_a_number():
    def found(x):
        best = None
        for v in x:
            if v > 1.0:
                best = v
        return {"best": best, "sum": np.sum(x)}

    compiled = bw.compile(found, X)
    assert compiled(X)["best"] == 1.7
    with pytest.raises(TypeError, match="returns None for these arguments"):
        compiled(0.1 * X)
    with pytest.raises(TracerError, match="which of 'a', 'b' this is"):
        bw.compile(lambda x: "a" if x > 0 else "b", 1.0)
    assert bw.jit(found)(0.1 * X)["best"] is None


def test_what_jit_returns_may_be_one_of_several_things():
    def found(x):
        state = "none"
        for v in x:
            if v > 1.0:
                state = "large"
        return {"state": state, "kind": type(x), "dtype": x.dtype, "name": "x", "pair": ("low" if x[0] < 0 else "high", x[0])}

    compiled = bw.jit(found)
    for x in (X, 0.1 * X, -X):
        assert compiled(x) == found(x)
    with pytest.raises(TracerError, match="a text of traced numbers"):
        bw.jit(lambda x: f"{x.sum():.3f}")(X)


def test_what_choices_cannot_do_is_refused():
    def asked(x):
        mode = "a"
        if x[0] > 0:
            mode = "b"
        return x[0] * len(mode)

    def made_there(x):
        for thing in ["none"]:
            if x[0] > 0:
                thing = Ball(x[0], x[1])
        return thing

    with pytest.raises(TracerError, match="which of 'b', 'a' this is|which of 'a', 'b' this is"):
        bw.jit(asked)(X)
    with pytest.raises(TracerBoolError, match="thing is an object that was made there on one side"):
        bw.jit(made_there)(X)


def test_an_object_that_one_side_makes_is_known_to_the_end_of_the_block():
    def made_there(x):
        thing = "none"
        if x[0] > 0:
            thing = Ball(x[0], x[1])
        return x[0] if thing == "none" else thing.radius

    for x in (X, -X):
        assert bw.jit(made_there)(x) == made_there(x)


THIN = Wall(0.5)


def test_a_choice_of_objects_of_two_classes_has_what_both_have():
    def of_two(x):
        thing = THIN
        if x[0] > 0:
            thing = BALL
        return x[1] * thing.radius

    for x in (X, -X):
        assert bw.jit(of_two)(x) == of_two(x)


# ----- elements of strings, at places that move with a loop
def common_subsequence(w):
    s, t = "GATTACAGTC", "GCATGCTTAC"
    table = np.zeros((len(s) + 1, len(t) + 1))
    for i in range(1, len(s) + 1):
        for j in range(1, len(t) + 1):
            if s[i - 1] == t[j - 1]:
                table[i, j] = table[i - 1, j - 1] + w[0]
            else:
                table[i, j] = max(table[i - 1, j] - w[1], table[i, j - 1] - w[2])
    return table[-1, -1]


def vowels(w):
    n, found = 0.0, 0
    for letter in "hello world of strings":
        if letter in "aeiou":
            found += 1
            n = n * w[0] + 1
        elif letter == " ":
            n -= w[1]
        else:
            n += w[2] * found
    return n


def costs_by_letter(w):
    cost, total = {"A": w[0], "C": w[1], "G": w[2], "T": 0.5}, 0.0
    for k, letter in enumerate("ACGTTGCAAC"):
        total = total * 0.9 + cost[letter] * k
    for a, b in zip("kitten in the barn", "sitting on a bar!!", strict=True):
        total = total * w[0] + (a != b) * w[1] + (w[2] if a == b else 0)
    return total


def a_list_of_names(w):
    modes, words, x = ["up", "down", "stay", "up", "up", "down", "stay", "stay", "down"], ["ab", "b", "abc", "c", "ab", "b", "a", "c"], 1.0
    for k in range(9):
        mode = modes[k]
        if mode == "up":
            x = x * w[0]
        elif mode == "down":
            x = x - w[1]
    for k in range(8):
        if words[k] in "abcd":
            x += w[0] * k
        if words[k] in ("b", "c"):
            x += w[1]
    return x


def the_one_before_it(w):
    total, last = 0.0, ""
    for letter in "abcabcaab":
        total += w[0] if letter == last else w[1]
        last = letter
    return total + w[2] * (last == "b")


def at_a_place_that_is_data(w):
    return w[1] * (2.0 if "abc"[int(np.argmax(w))] == "c" else 3.0)


def made_into_texts(w):
    total = 0.0
    for letter in "abcabcabc":
        if f"{letter}!" == "a!":
            total += w[0]
        if str(letter) == "b" or letter.upper() == "C":
            total += w[1]
        if "%s" % letter == "c" or letter * 2 == "aa":  # noqa: UP031
            total += w[2] * ord(letter)
    return total


def kept_in_containers(w):
    seen, count, order, text, total = set(), {}, [], "", 0.0
    for letter in "abcabdabc":
        if letter in seen:
            total += w[0]
        seen.add(letter)
        count[letter] = count.get(letter, 0) + w[1]
        order.append(letter)
        text += letter
    return total + count["a"] * len(order) + order.count("b") * w[2] + (text == "abcabdabc")


STRINGS = [common_subsequence, vowels, costs_by_letter, a_list_of_names, the_one_before_it]


@pytest.mark.parametrize("program", [*STRINGS, at_a_place_that_is_data, made_into_texts, kept_in_containers], ids=lambda program: program.__name__)
def test_letters_of_strings(program):
    w, d, h = np.array([0.7, 0.4, 1.3]), np.array([0.3, -0.5, 0.7]), 1e-6
    found, gradient = bw.value_and_grad(program)(w)
    assert found == pytest.approx(program(w), rel=1e-12)
    assert gradient @ d == pytest.approx((program(w + h * d) - program(w - h * d)) / (2 * h), rel=1e-5, abs=1e-8)
    if program in STRINGS:
        assert not trace(program, (w,)).notes


class _Rate(enum.Enum):
    SLOW = 1.5
    FAST = 2.5


class _Part:
    def __init__(self, value, which):
        self.value, self.which = value, which


def _attributes_of_any_name(x):
    """`value` and `which` are also what a choice itself has."""
    total = 0.0
    for k in range(12):
        rate = _Rate.SLOW if x[k] > 0.31 else _Rate.FAST
        part = _Part(x[0], 3.0) if rate.name == "SLOW" else _Part(x[1], 2.0)
        total += rate.value * x[k] + part.value * part.which
    one, other = _Part(x[2], 1.0), _Part(x[3], 2.0)
    chosen = one if x[4] > 0 else other
    return total + chosen.value * chosen.which


def test_attributes_of_any_name() -> None:
    as_python(_attributes_of_any_name, np.array([0.7, -0.4, 1.3, 0.2, -1.1, 0.9, 0.35, 1.7, -0.6, 0.45, 0.15, -0.25]))


# ----- nothing, in the place of a number
def found_one(x):
    found = None
    for k in range(len(x)):
        if x[k] > 10:
            found = x[k]
    return found


def found_place(x):
    found = None
    for k in range(len(x)):
        if x[k] > 10:
            found = k
    return found


def word_or_number(x):
    return "word" if x[0] < 10 else x[1]


@pytest.mark.parametrize("use", [
    lambda x: found_one(x) * 2.0, lambda x: -found_one(x), lambda x: np.sin(found_one(x)), lambda x: x * found_one(x),
    lambda x: found_one(x) > 3, lambda x: 1.0 if found_one(x) > 3 else 2.0, lambda x: max(found_one(x), 5.0), lambda x: float(found_one(x)),
    lambda x: found_place(x) + 1, lambda x: x * found_place(x), lambda x: x[found_place(x) + 1:].sum(), lambda x: np.sum(x) * word_or_number(x)])
def test_what_is_no_number_is_not_computed_with(use):
    """It was nan, False or 0."""
    compiled, there, nothing = bw.jit(use), np.array([11.0, 12.0, 3.0]), np.array([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(compiled(there), use(there))
    for _ in range(2):
        with pytest.raises(TypeError):
            use(nothing)
        with pytest.raises(TypeError, match="a number or array is needed here, but for these arguments there is") as raised:
            compiled(nothing)
        assert str(raised.value).startswith(f"{__file__}:") and str(raised.value).count(__file__) == 1
    np.testing.assert_array_equal(compiled(there), use(there))


def test_what_a_test_keeps_from_nothing_is_computed():
    def use(x):
        found, total = found_one(x), 0.0
        for v in x:
            if found is not None and v < found:
                total += v * found
        return total if found is None else total + found

    for x in (np.array([11.0, 12.0, 3.0]), np.array([1.0, 2.0, 3.0])):
        assert bw.jit(use)(x) == use(x)
        assert bw.grad(use)(x).shape == (3,)


KINDS = np.array(["steep", "flat", "none"])


def kinds_of_an_array(x):
    kind = KINDS[np.digitize(x[0], np.array([0.0, 1.0]))]
    return np.sum(x) * (2.0 if kind == "flat" else 3.0)


def kinds_with_a_number(x):
    kinds = np.append(np.array(["low", "middle"], dtype=object), np.nan)
    kind = kinds[np.digitize(np.asarray(x[0]), np.array([0.0, 1.0]), right=True)]
    return {"value": np.sum(x) ** 2, "kind": kind}["value"] * (1.5 if kind == "low" else 1.0)


def kinds_in_a_loop(x):
    kinds, total = np.array(["linear", "square"]), 0.0
    for k in range(len(x)):
        total += x[k] if kinds[k % 2] == "linear" else x[k] ** 2
    return total


@pytest.mark.parametrize("program", [kinds_of_an_array, kinds_with_a_number, kinds_in_a_loop], ids=lambda program: program.__name__)
def test_texts_in_arrays(program):
    as_python(program, X, X - 1.0, X + 1.0)


def test_texts_in_arrays_from_outside_are_looked_at_in_each_call():
    kinds = np.array(["a", "b", "c"])
    compiled = bw.jit(lambda x: x * (2.0 if kinds[int(x)] == "b" else 1.0))
    assert (compiled(1.0), compiled(2.0)) == (2.0, 2.0)
    kinds[1:] = "c", "b"
    assert (compiled(1.0), compiled(2.0)) == (1.0, 4.0)
    with pytest.raises(IndexError, match="out of bounds"):
        compiled(7.0)


class Node:
    def __init__(self):
        self.kids = None
        self.number = None

    def put(self, v):
        if self.number is None and self.kids is None:
            self.number = v
            return
        if self.kids is None:
            self.kids = [None, None]
        k = 1 if v > 0.5 else 0
        if self.kids[k] is None:
            self.kids[k] = Node()
        self.kids[k].put(v * 0.7)


def test_a_tree_that_data_let_grow_is_refused_by_the_names_of_classes():
    def program(x):
        root = Node()
        for k in range(3):
            root.put(x[k])
        return root.number

    with pytest.raises(TracerError) as refused:
        bw.jit(program)(X)
    text = str(refused.value)
    assert "0x" not in text and "of Node, None this is" in text and "arrays in the place of such objects" in text, text
